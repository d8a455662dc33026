-- How full the server's lock table is: advisory.pressure, by backend, by type, can_fit. What the
-- figures are worth is for the script tests, which fill servers of their own.
\pset format unaligned \pset tuples_only on
-- Whether the query returns true within 60 s. Other sessions, such as autovacuum, take locks at any
-- time, so that two looks at the lock table can differ.
CREATE FUNCTION pg_temp.becomes_true(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + interval '60 s';
    is_true boolean;
BEGIN
    LOOP
        EXECUTE query INTO is_true;
        IF is_true OR clock_timestamp() > until THEN
            RETURN is_true;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
-- The server's own view of the lock table, but for advisory locks.
CREATE VIEW pg_temp.other AS
    SELECT count(DISTINCT lock) AS locks, count(DISTINCT (lock, pid, virtualtransaction)) AS holders
    FROM (SELECT pid, virtualtransaction,
        (locktype, database, relation, page, tuple, virtualxid, transactionid::text, classid, objid,
        objsubid)::text AS lock
          FROM pg_locks WHERE NOT fastpath AND mode <> 'SIReadLock' AND locktype <> 'advisory')
              AS l;

---- One row, with all figures
SELECT count(*) FROM advisory.pressure; --> 1
SELECT status, exact, headroom > 0 AS has_room,
       headroom = locks_estimated - locks_used AS room_is_right,
       locks_estimated >= locks_guaranteed AS estimate_is_more,
       holders_guaranteed = 2 * locks_guaranteed AS twice_the_holders,
       holders_estimated >= locks_estimated AS enough_holders, percent_used < 50 AS is_low,
       recommended_max_locks_per_transaction = current_setting('max_locks_per_transaction')::int
       AS setting_will_do
FROM advisory.pressure; --> ok|t|t|t|t|t|t|t|t

---- What is in use, in both tables
BEGIN;
SELECT count(advisory.xact_lock('pressure', i)) FROM generate_series(1, 300) AS i; --> 300
SELECT pg_temp.becomes_true('SELECT locks_used = 300 + locks FROM advisory.pressure, pg_temp.other')
    AS locks,
       pg_temp.becomes_true('SELECT holders_used = 300 + holders
                             FROM advisory.pressure, pg_temp.other') AS holders; --> t|t
SELECT locks, holders FROM advisory.pressure_by_type WHERE type = 'advisory'; --> 300|300
SELECT locks >= 300 AS all, advisory_locks, session_locks, statement_cost, gid
    FROM advisory.pressure_by_backend WHERE pid = pg_backend_pid(); --> t|300|0|@ 0|
COMMIT;
SELECT count(advisory.lock('pressure', i)) FROM generate_series(1, 300) AS i; --> 300
SELECT count(advisory.lock_shared('pressure', i)) FROM generate_series(1, 300) AS i; --> 300
SELECT locks, holders FROM advisory.pressure_by_type WHERE type = 'advisory'; --> 300|300
SELECT advisory_locks, session_locks, statement_cost FROM advisory.pressure_by_backend
    WHERE pid = pg_backend_pid(); --> 300|300|@ 0.00003 secs

---- The types add up to it
SELECT pg_temp.becomes_true('SELECT (sum(t.locks), sum(t.holders))
    = (max(p.locks_used), max(p.holders_used))
                             FROM advisory.pressure p, advisory.pressure_by_type AS t') AS sums;
--> t

---- Thresholds
SET advisory_ext.pressure_warning = 1;
SELECT status, recommended_max_locks_per_transaction
    > current_setting('max_locks_per_transaction')::int AS more FROM advisory.pressure;
--> warning|t
SET advisory_ext.pressure_critical = 1;
SELECT status, recommended_max_locks_per_transaction
    > current_setting('max_locks_per_transaction')::int AS more FROM advisory.pressure;
--> critical|t
RESET advisory_ext.pressure_warning;
RESET advisory_ext.pressure_critical;
SELECT status FROM advisory.pressure; --> ok
SET advisory_ext.pressure_warning = 0;
--> ERROR:  0 is outside the valid range for parameter "advisory_ext.pressure_warning" (1 .. 100)
SET advisory_ext.pool_limit = 101;
--> ERROR:  101 is outside the valid range for parameter "advisory_ext.pool_limit" (0 .. 100)
SELECT advisory.unlock_all('pressure'); --> 600

---- can_fit
SELECT advisory.can_fit(0), advisory.can_fit(100), advisory.can_fit(2000000000); --> t|t|f
SELECT advisory.can_fit(NULL); --> ERROR:  number of locks must not be null
SET advisory_ext.pool_limit = 0;
SELECT pg_temp.becomes_true('SELECT advisory.can_fit(headroom::int)
    AND NOT advisory.can_fit(headroom::int + 1) FROM advisory.pressure') AS just_the_headroom; --> t
RESET advisory_ext.pool_limit;
SELECT pg_temp.becomes_true('SELECT NOT advisory.can_fit(headroom::int) FROM advisory.pressure')
    AS guard_counts; --> t
SELECT advisory.max_locks_for(0) = current_setting('max_locks_per_transaction')::int AS as_it_is,
    advisory.max_locks_for(1000000) > 1000, advisory.max_locks_for(2147483647) > 1000000; --> t|t|t
SELECT advisory.max_locks_for(NULL); --> ERROR:  number of locks must not be null
SELECT advisory.max_locks_for(-1); --> ERROR:  number of locks must not be negative
SELECT advisory.can_fit(-1); --> ERROR:  number of locks must not be negative

---- For everybody, but for the settings
CREATE ROLE regress_pressure;
SET ROLE regress_pressure;
SELECT count(*) FROM advisory.pressure; --> 1
SELECT advisory.lock('pressure', 'role'); --> t
SELECT locks, state FROM advisory.pressure_by_backend WHERE pid = pg_backend_pid(); --> 1|
SELECT locks FROM advisory.pressure_by_type WHERE type = 'advisory'; --> 1
SELECT advisory.unlock('pressure', 'role'); --> t
SELECT advisory.can_fit(1); --> t
SET advisory_ext.pool_limit = 0;
--> ERROR:  permission denied to set parameter "advisory_ext.pool_limit"
SET advisory_ext.pressure_warning = 60;
--> ERROR:  permission denied to set parameter "advisory_ext.pressure_warning"
SET advisory_ext.pressure_critical = 60;
--> ERROR:  permission denied to set parameter "advisory_ext.pressure_critical"
-- Not every role sees what other sessions do.
SELECT count(*) FROM advisory.pressure_by_backend WHERE state IS NOT NULL
    AND role <> 'regress_pressure'; --> 0
RESET ROLE;
DROP ROLE regress_pressure;

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
