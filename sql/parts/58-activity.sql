-- The views for 3 a.m.: activity shows waiters, their blockers, and everything else that is held;
-- blockers what to end. No row of activity is wider than a terminal of 120 columns.

-- The text without its middle if it is wider than so many columns of a terminal. Names often
-- differ only at their ends.
CREATE FUNCTION advisory_internal.cut(line text, columns integer)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    -- A character takes two columns at most, and none that is shorter than these takes more than
    -- one.
    WITH setting AS (
        SELECT getdatabaseencoding() = 'UTF8' AS is_utf8,
               getdatabaseencoding() = 'UTF8' AND pg_client_encoding() = 'UTF8' AS has_ellipsis
    ), sign AS (
        SELECT CASE WHEN has_ellipsis THEN convert_from(E'\\xe280a6', 'UTF8') ELSE '...'
               END AS mark,
               columns - CASE WHEN has_ellipsis THEN 1 ELSE 3 END AS room
        FROM setting
    ), one AS (
        -- In SQL_ASCII a letter is a byte, and a part of a character would be no text.
        SELECT CASE WHEN getdatabaseencoding() = 'SQL_ASCII' AND ascii(letter) > 127 THEN '?'
                    ELSE letter
               END AS letter, number,
               CASE WHEN octet_length(letter) > CASE WHEN is_utf8 THEN 2 ELSE 1 END THEN 2
                    ELSE 1
               END AS width
        FROM setting, string_to_table(line, NULL) WITH ORDINALITY AS letters (letter, number)
    ), placed AS (
        SELECT letter, number,
               sum(width) OVER (ORDER BY number) AS from_left,
               sum(width) OVER (ORDER BY number DESC) AS from_right
        FROM one
    )
    SELECT CASE WHEN max(from_left) <= columns THEN line
                ELSE concat(string_agg(letter, '' ORDER BY number)
                                FILTER (WHERE from_left <= (room + 1) / 2),
                            mark,
                            string_agg(letter, '' ORDER BY number)
                                FILTER (WHERE from_right <= room / 2))
           END
    FROM placed, sign
    GROUP BY mark;
END;
COMMENT ON FUNCTION advisory_internal.cut(text, integer) IS
    'text cut to so many columns of a terminal';

CREATE VIEW advisory_internal.activity AS
    WITH entry AS MATERIALIZED (
        SELECT kind, key, database, lock, datid, high, low, objsubid, slot,
               CASE kind WHEN 'lease' THEN kind ELSE mode END AS mode, pid, gid, state,
               granted, wait_start, waited, held, blocked_by,
               CASE WHEN gid IS NOT NULL THEN concat(role, ' (prepared ', gid, ')')
                    WHEN application_name <> '' THEN concat(role, '@', application_name)
                    ELSE role
               END AS who,
               -- A semaphore's slots and its queue are one lock, and so are a lease and its queue.
               -- (Records cannot be hashed.)
               ARRAY[datid::bigint, high, low,
                     CASE kind WHEN 'semaphore' THEN 16383 WHEN 'lease' THEN 16382 ELSE objsubid
                     END] AS tag
        FROM advisory._locks
    ), waiting AS MATERIALIZED (
        -- The server shows this to those who may see the state, too.
        SELECT pid
        FROM pg_catalog.pg_stat_get_activity(NULL)
        WHERE wait_event_type = 'Lock' OR wait_event = 'AdvisoryExtLease'
    ), waiter AS (
        SELECT *,
               row_number() OVER in_turn AS place,
               count(*) OVER (PARTITION BY tag) - 10 AS others,
               nth_value(wait_start, 10) OVER in_turn AS tenth_start
        -- The first in the queue of a lease may wait for the lease, too.
        FROM (SELECT DISTINCT ON (tag, pid) *
              FROM entry
              WHERE NOT granted
              ORDER BY tag, pid, cardinality(blocked_by) DESC) AS waits
        WINDOW in_turn AS (PARTITION BY tag ORDER BY wait_start, pid)
    ), blocker AS (
        -- Whoever is in the way of a later waiter is also in the way of one of these.
        SELECT w.tag, w.place, w.wait_start, blocker_pid
        FROM waiter AS w, unnest(blocked_by) AS blocker_pid
        WHERE place <= 11
    ), holder AS (
        SELECT *, NOT is_blocker
               AND count(*) OVER (PARTITION BY is_blocker, pid, gid) > 20 AS is_one_of_many
        FROM (SELECT e.tag, database, lock, datid, high, low, objsubid, slot, mode, pid, gid, who,
                     state, held, b.blocker_pid IS NOT NULL AS is_blocker, b.awaited_since
              FROM entry AS e
              LEFT JOIN (SELECT tag, blocker_pid, min(wait_start) AS awaited_since
                         FROM blocker
                         GROUP BY tag, blocker_pid) AS b
                  ON b.tag = e.tag AND b.blocker_pid = coalesce(e.pid, 0)
              WHERE granted) AS held
    ), held_by AS (
        SELECT b.tag, b.place, array_agg(DISTINCT blocker_pid) AS pids
        FROM blocker AS b
        JOIN (SELECT DISTINCT tag, coalesce(pid, 0) AS blocker_pid
              FROM holder WHERE is_blocker) AS h USING (tag, blocker_pid)
        GROUP BY b.tag, b.place
    ), shown_waiter AS (
        -- If only waiters ahead of it are in the way, it waits for the same holders as these.
        SELECT w.*, coalesce(pids, min(pids) OVER (PARTITION BY tag)) AS held_by
        FROM waiter AS w
        LEFT JOIN held_by USING (tag, place)
        WHERE place <= 11
    ), some_lease AS MATERIALIZED (
        SELECT * FROM advisory_internal.lease_rows()
    ), used_lease AS (
        SELECT key, min(wait_start) AS since, bool_or(NOT granted) AS is_awaited
        FROM entry
        WHERE kind = 'lease' AND database = current_database()
        GROUP BY key
    ), lease AS (
        -- One that has expired matters while a session waits for it, or relies on it.
        SELECT l.*, u.is_awaited, u.since,
               row_number() OVER (ORDER BY u.is_awaited IS NOT TRUE, u.since, u.key IS NULL,
                                           l.acquired_at, l.lock) > 20 AS is_one_of_many
        FROM (SELECT lock, owner, state, acquired_at, key FROM some_lease
              UNION ALL
              SELECT r.lock, r.owner, r.state, r.acquired_at, r.key
              FROM used_lease AS used, advisory_internal.lease_rows(true, used.key) AS r
              WHERE r.key NOT IN (SELECT key FROM some_lease WHERE key IS NOT NULL)) AS l
        LEFT JOIN used_lease AS u ON u.key = l.key
        WHERE l.state <> 'expired' OR u.key IS NOT NULL
    ), line (rank, since, place, database, lock, datid, high, low, objsubid, slot, mode, pid, who,
             state, waiting, held, pids) AS (
        SELECT 1, wait_start, place, database, lock, datid, high, low, objsubid, slot, mode, pid,
               who, state, waited, NULL::interval, held_by
        FROM shown_waiter
        WHERE place <= 10
        UNION ALL
        -- The eleventh stands for the others, of whom it has waited longest.
        SELECT 1, tenth_start, place, current_database(), concat('(', others, ' more)'), NULL, NULL,
               NULL, NULL, NULL, NULL, NULL, NULL, NULL, waited, NULL, held_by
        FROM shown_waiter
        WHERE place = 11
        UNION ALL
        SELECT CASE WHEN is_blocker THEN 2 ELSE 3 END, awaited_since, NULL, database, lock, datid,
               high, low, objsubid, slot, mode, pid, who,
               CASE WHEN pid IN (SELECT pid FROM waiting) THEN 'waiting' ELSE state END,
               NULL, held, NULL
        FROM holder
        WHERE NOT is_one_of_many
        UNION ALL
        SELECT 3, NULL, NULL, current_database(), concat('(', count(*), ' locks)'), NULL, NULL,
               NULL, NULL, NULL, NULL, pid, who, state, NULL, max(held), NULL
        FROM holder
        WHERE is_one_of_many
        GROUP BY pid, gid, who, state
        UNION ALL
        SELECT CASE WHEN is_awaited THEN 2 ELSE 3 END, since, NULL, current_database(),
               concat('lease ', lock), NULL, NULL, NULL, NULL, NULL, 'lease', NULL, owner, state,
               NULL, clock_timestamp() - acquired_at, NULL
        FROM lease
        WHERE NOT is_one_of_many
        UNION ALL
        SELECT 3, NULL, NULL, current_database(), concat('(', count(*), ' leases)'), NULL, NULL,
               NULL, NULL, NULL, 'lease', NULL, NULL, NULL, NULL,
               clock_timestamp() - min(acquired_at), NULL
        FROM lease
        WHERE is_one_of_many
        HAVING count(*) > 0
    ), narrow AS MATERIALIZED (
        -- Names and known uses are looked up for what is shown, not for each of many locks.
        SELECT rank, since, place,
               CASE WHEN database = current_database() THEN what
                    ELSE concat(coalesce(database, '(dropped)'), ': ', what)
               END AS lock,
               slot,
               CASE WHEN length(mode) > 9 THEN advisory_internal.cut(mode, 9) ELSE mode END AS mode,
               pid, who,
               replace(replace(replace(state, 'idle in transaction (aborted)', 'failed xact'),
                               'idle in transaction', 'idle in xact'),
                       'fastpath function call', 'fastpath') AS state,
               date_trunc('second', waiting) AS waiting,
               date_trunc('second', held) AS held, held AS exactly,
               -- Three processes, or two if their numbers are long.
               concat(array_to_string(pids[:shown], ','),
                      ' +' || nullif(cardinality(pids) - shown, 0)) AS blocked_by
        FROM line
        LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
        LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
        LEFT JOIN advisory_internal.range_starts USING (objsubid, high)
        CROSS JOIN LATERAL (SELECT concat(
                                CASE WHEN objsubid IN (16381, 16382) THEN 'lease ' END,
                                coalesce(lock, advisory_internal.unnamed(
                                    objsubid, high, low,
                                    (advisory_internal.known_as(
                                        datid, objsubid, high, low, own, exact, is_start))[1],
                                    is_label)))) AS text (what)
        CROSS JOIN LATERAL (SELECT least(cardinality(pids),
                                   CASE WHEN length(array_to_string(pids[:3], ',')) > 17 THEN 2
                                        ELSE 3
                                   END)) AS few (shown)
    ), wanted AS (
        -- What a line of 120 columns leaves for lock and who.  No text takes more columns than it
        -- has bytes.
        SELECT 120 - 26 - greatest(max(length(slot::text)), 4) - greatest(max(length(mode)), 4)
                   - greatest(max(length(pid::text)), 3) - greatest(max(length(state)), 5)
                   - greatest(max(length(waiting::text)), 7) - greatest(max(length(held::text)), 4)
                   - greatest(max(length(blocked_by)), 10) AS room,
               greatest(max(octet_length(lock)), 4) AS lock,
               greatest(max(octet_length(who)), 3) AS who
        FROM narrow
    ), width AS (
        -- The lock matters more: if both do not fit, who gets 14 columns, or less on a crowded
        -- line.
        SELECT lock, room - lock AS who
        FROM (SELECT room,
                     greatest(least(lock, greatest(room - who, room - 14, room * 3 / 5)), 4) AS lock
              FROM wanted) AS of_lock
    )
    SELECT CASE WHEN octet_length(n.lock) > width.lock
                THEN advisory_internal.cut(n.lock, width.lock)
                ELSE n.lock
           END AS lock,
           slot, mode, pid,
           CASE WHEN octet_length(n.who) > width.who THEN advisory_internal.cut(n.who, width.who)
                ELSE n.who
           END AS who,
           state, waiting, held,
           nullif(blocked_by, '') AS blocked_by
    FROM narrow AS n, width
    ORDER BY rank, since, place, exactly DESC NULLS LAST, n.lock, slot, pid;
COMMENT ON VIEW advisory_internal.activity IS 'rows of advisory.activity';

CREATE VIEW advisory.activity AS
    SELECT lock, slot, mode, pid, who, state, waiting, held, blocked_by
    FROM advisory_internal.activity;
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
        before_lock text,
        after_lock text,
        datid oid,
        high integer,
        low integer,
        objsubid integer,
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
           advisory_internal.cut(
               concat(before_lock, advisory_internal.unnamed(
                   objsubid, high, low,
                   (advisory_internal.known_as(datid, objsubid, high, low, own, exact,
                                               is_start))[1],
                   is_label), after_lock), 90) AS lock,
           waiters,
           date_trunc('second', longest_wait) AS longest_wait,
           remedy,
           backend_type, client_addr,
           advisory_internal.cut(left(advisory_internal.printable(ltrim(regexp_replace(
               query, E'[ \\t\\n\\r\\v\\f]+', ' ', 'g'))), 1000), 90) AS query
    FROM advisory_internal.blockers() AS b
    LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
    LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
    LEFT JOIN advisory_internal.range_starts USING (objsubid, high)
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
