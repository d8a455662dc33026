-- The views for 3 a.m.: activity shows waiters, their blockers, and everything else that is held;
-- blockers what to end. No row of activity is wider than a terminal of 120 columns.

-- The text without its middle if it is wider than so many columns of a terminal. Names often
-- differ only at their ends.
CREATE FUNCTION advisory_internal.cut(line text, columns integer)
    RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_cut'
    LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.cut(text, integer) IS
    'text cut to so many columns of a terminal';

CREATE FUNCTION advisory_internal.activity()
    RETURNS TABLE (
        lock text,
        slot integer,
        mode text,
        pid integer,
        who text,
        state text,
        waiting interval,
        held interval,
        blocked_by text)
    AS 'MODULE_PATHNAME', 'advisory_activity'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.activity() IS 'rows of advisory.activity';

CREATE VIEW advisory.activity AS
    SELECT lock, slot, mode, pid, who, state, waiting, held, blocked_by
    FROM advisory_internal.activity();
COMMENT ON VIEW advisory.activity IS
    'waiters for advisory locks, their blockers, and all other holders';
COMMENT ON COLUMN advisory.activity.lock IS
    'namespace/name, a label in quotes, or the key; lease: before leases';
COMMENT ON COLUMN advisory.activity.slot IS 'slot of a semaphore, from 1';
COMMENT ON COLUMN advisory.activity.mode IS
    'exclusive or shared; lease, also for sessions that use one';
COMMENT ON COLUMN advisory.activity.pid IS
    'process; null for a prepared transaction, and for a lease';
COMMENT ON COLUMN advisory.activity.who IS 'role@application; the owner of a lease';
COMMENT ON COLUMN advisory.activity.state IS
    'state, shortened; waiting: a holder that waits; null if hidden';
COMMENT ON COLUMN advisory.activity.waiting IS 'how long it has waited; null for a holder';
COMMENT ON COLUMN advisory.activity.held IS 'how long it has held the lock; null where unknown';
COMMENT ON COLUMN advisory.activity.blocked_by IS
    'up to three holders, and +N for others; 0: a prepared transaction';

-- exact_lock is a text for remedies, which no other lock has; lock is one for people.
CREATE FUNCTION advisory_internal.blockers()
    RETURNS TABLE (
        pid integer,
        gid text,
        role text,
        application_name text,
        state text,
        since timestamptz,
        lock text,
        exact_lock text,
        waiters integer,
        longest_wait interval,
        remedy text,
        transaction xid,
        backend_type text,
        client_addr inet,
        query text,
        pid_to_cancel integer)
    AS 'MODULE_PATHNAME', 'advisory_blockers'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory_internal.blockers() IS 'rows of advisory.blockers';

CREATE VIEW advisory.blockers AS
    SELECT b.pid,
           advisory_internal.cut(
               CASE WHEN b.gid IS NOT NULL THEN concat(role, ' (prepared ', b.gid, ')')
                    WHEN application_name <> '' THEN concat(role, '@', application_name)
                    ELSE role
               END, 60) AS who,
           b.state,
           date_trunc('second', coalesce(b.since, p.prepared)) AS since,
           advisory_internal.cut(lock, 90) AS lock,
           waiters,
           date_trunc('second', longest_wait) AS longest_wait,
           remedy,
           backend_type, client_addr,
           advisory_internal.cut(left(advisory_internal.printable(ltrim(regexp_replace(
               query, E'[ \\t\\n\\r\\v\\f]+', ' ', 'g'))), 1000), 90) AS query
    FROM advisory_internal.blockers() AS b
    LEFT JOIN pg_catalog.pg_prepared_xact() AS p ON p.transaction = b.transaction
    ORDER BY waiters DESC, b.longest_wait DESC NULLS LAST, b.pid;
COMMENT ON VIEW advisory.blockers IS
    'what others wait for in the end, and the statement that ends it';
COMMENT ON COLUMN advisory.blockers.pid IS
    'process; null for a prepared transaction, and for a lease';
COMMENT ON COLUMN advisory.blockers.who IS 'role@application; the owner of a lease';
COMMENT ON COLUMN advisory.blockers.state IS
    'state, and what an active session waits for itself; null if hidden';
COMMENT ON COLUMN advisory.blockers.since IS
    'since when in that state; when it was prepared, or granted';
COMMENT ON COLUMN advisory.blockers.lock IS 'what it holds, of which the longest wait is';
COMMENT ON COLUMN advisory.blockers.waiters IS
    'how many sessions wait for it, directly or through others';
COMMENT ON COLUMN advisory.blockers.longest_wait IS 'how long the first of them has waited';
COMMENT ON COLUMN advisory.blockers.remedy IS
    'statement that ends it, cancels a waiter, or shows who gives which K';
COMMENT ON COLUMN advisory.blockers.backend_type IS
    'as in pg_stat_activity; null if hidden';
COMMENT ON COLUMN advisory.blockers.client_addr IS
    'address of the client; null for a socket, and if hidden';
COMMENT ON COLUMN advisory.blockers.query IS
    'query on one line, cut; hidden without the privilege to see it';

CREATE FUNCTION advisory.terminate_blocker(pid integer, lock text)
    RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    SELECT coalesce(pg_terminate_backend((
        SELECT b.pid FROM advisory_internal.blockers() AS b
        WHERE b.pid = terminate_blocker.pid AND b.exact_lock = terminate_blocker.lock)), false);
END;
COMMENT ON FUNCTION advisory.terminate_blocker(integer, text) IS
    'end a session if advisory.blockers still shows it with this lock';

CREATE FUNCTION advisory.cancel_waiter(pid integer, lock text)
    RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    SELECT coalesce(pg_cancel_backend((
        SELECT cancel_waiter.pid FROM advisory_internal.blockers() AS b
        WHERE b.pid_to_cancel = cancel_waiter.pid AND b.exact_lock = cancel_waiter.lock
        LIMIT 1)), false);
END;
COMMENT ON FUNCTION advisory.cancel_waiter(integer, text) IS
    'cancel the wait of a session if advisory.blockers still asks for it';
