-- How full the server's lock table is.

CREATE FUNCTION advisory_internal.pressure(
    OUT status text,
    OUT percent_used double precision,
    OUT headroom bigint,
    OUT locks_used bigint,
    OUT locks_estimated bigint,
    OUT locks_guaranteed bigint,
    OUT percent_of_guaranteed double precision,
    OUT holders_used bigint,
    OUT holders_guaranteed bigint,
    OUT recommended_max_locks_per_transaction integer,
    OUT exact boolean,
    OUT holders_estimated bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'advisory_pressure'
    LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION advisory_internal.pressure() IS 'row of advisory.pressure';

CREATE VIEW advisory.pressure AS
    SELECT status, percent_used, headroom, locks_used, locks_estimated, locks_guaranteed,
           percent_of_guaranteed, holders_used, holders_guaranteed,
           recommended_max_locks_per_transaction, exact, holders_estimated
    FROM advisory_internal.pressure();
COMMENT ON VIEW advisory.pressure IS
    'how full the server''s lock table is; one row, in constant time';
COMMENT ON COLUMN advisory.pressure.status IS
    'ok, warning or critical; see pressure_warning and pressure_critical';
COMMENT ON COLUMN advisory.pressure.percent_used IS
    'use of the fuller table, in percent of its estimated capacity';
COMMENT ON COLUMN advisory.pressure.headroom IS
    'how many further locks with one holder each are estimated to fit';
COMMENT ON COLUMN advisory.pressure.locks_used IS
    'locks of all types that are held or waited for, without fast path';
COMMENT ON COLUMN advisory.pressure.locks_estimated IS
    'how many locks are estimated to fit in total';
COMMENT ON COLUMN advisory.pressure.locks_guaranteed IS
    'how many it holds at least, by max_locks_per_transaction';
COMMENT ON COLUMN advisory.pressure.percent_of_guaranteed IS
    'use of the fuller table, in percent of its guaranteed size';
COMMENT ON COLUMN advisory.pressure.holders_used IS
    'entries of the second table: one for each lock and session';
COMMENT ON COLUMN advisory.pressure.holders_guaranteed IS 'how many such entries fit at least';
COMMENT ON COLUMN advisory.pressure.recommended_max_locks_per_transaction IS
    'setting with which the status would be ok';
COMMENT ON COLUMN advisory.pressure.exact IS 'false if the use or the growth is unknown';
COMMENT ON COLUMN advisory.pressure.holders_estimated IS
    'entries of the second table when the lock table is full';

CREATE FUNCTION advisory_internal.role_name(role oid)
    RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_role_name'
    LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.role_name(oid) IS
    'name of a role; null if the lock table is too full to look it up';

-- By session or prepared transaction, and by type.  Reads one partition of the lock table after the
-- other; pg_locks would lock all of them at once.
CREATE FUNCTION advisory_internal.lock_use()
    RETURNS TABLE (pid integer, transaction xid, type text, holders bigint, locks bigint)
    AS 'MODULE_PATHNAME', 'advisory_lock_use'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.lock_use() IS 'rows for advisory.pressure_by_backend';

-- A session-level lock costs its session 0.02 us at the end of each transaction, when the server
-- visits every lock of the session, if there are 1,000 of them; 0.2 us if there are 100,000, which
-- do not fit into the processor's caches.
CREATE VIEW advisory.pressure_by_backend AS
    SELECT l.pid,
           advisory_internal.role_name(coalesce(a.usesysid, p.ownerid)) AS role,
           a.application_name,
           a.state,
           l.locks,
           l.advisory_locks,
           s.session_locks,
           s.session_locks * 0.1 * interval '1 microsecond' AS statement_cost,
           p.gid
    FROM (SELECT pid, transaction, sum(holders)::bigint AS locks,
                 coalesce(sum(holders) FILTER (WHERE type = 'advisory'), 0)::bigint
                     AS advisory_locks
          FROM advisory_internal.lock_use()
          GROUP BY pid, transaction) AS l
    LEFT JOIN pg_catalog.pg_stat_get_activity(NULL) AS a ON a.pid = l.pid
    LEFT JOIN pg_catalog.pg_prepared_xact() AS p ON p.transaction = l.transaction
    LEFT JOIN (SELECT pid, count(*) AS locks
               FROM advisory._locks
               WHERE granted AND scope = 'session'
               GROUP BY pid) AS h ON h.pid = l.pid
    CROSS JOIN LATERAL (SELECT CASE WHEN a.state = 'idle' THEN l.advisory_locks
                                    ELSE least(coalesce(h.locks, 0), l.advisory_locks)
                               END AS session_locks) AS s
    ORDER BY l.locks DESC, l.pid;
COMMENT ON VIEW advisory.pressure_by_backend IS
    'use of the lock table by session and prepared transaction';
COMMENT ON COLUMN advisory.pressure_by_backend.pid IS 'process; null for a prepared transaction';
COMMENT ON COLUMN advisory.pressure_by_backend.role IS
    'role of the session; of a prepared transaction, its owner';
COMMENT ON COLUMN advisory.pressure_by_backend.application_name IS
    'application_name of the session';
COMMENT ON COLUMN advisory.pressure_by_backend.state IS
    'state as in pg_stat_activity; null without the privilege to see it';
COMMENT ON COLUMN advisory.pressure_by_backend.locks IS
    'locks of all types, without those on the fast path';
COMMENT ON COLUMN advisory.pressure_by_backend.advisory_locks IS 'advisory locks among them';
COMMENT ON COLUMN advisory.pressure_by_backend.session_locks IS
    'session-level locks among those, as far as known';
COMMENT ON COLUMN advisory.pressure_by_backend.statement_cost IS
    'estimated time that they cost at the end of each transaction';
COMMENT ON COLUMN advisory.pressure_by_backend.gid IS 'global identifier of a prepared transaction';

CREATE VIEW advisory.pressure_by_type AS
    SELECT type, sum(locks)::bigint AS locks, sum(holders)::bigint AS holders
    FROM advisory_internal.lock_use()
    GROUP BY type
    ORDER BY locks DESC, type;
COMMENT ON VIEW advisory.pressure_by_type IS
    'use of the server''s shared lock table by type of lock, largest first';
COMMENT ON COLUMN advisory.pressure_by_type.type IS 'type of the lock, as in pg_locks.locktype';
COMMENT ON COLUMN advisory.pressure_by_type.locks IS
    'locks of that type, without those on the fast path';
COMMENT ON COLUMN advisory.pressure_by_type.holders IS
    'entries of the second table for locks of that type';

CREATE FUNCTION advisory.can_fit(n integer)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_can_fit'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.can_fit(integer) IS
    'can this session take n more locks, as full as the lock table is now?';

CREATE FUNCTION advisory.max_locks_for(n integer)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_max_locks_for'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.max_locks_for(integer) IS
    'max_locks_per_transaction with which a session can take n more';
