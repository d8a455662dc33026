-- How full the server's lock table is: advisory.pressure, by backend, by type, can_fit. What the figures are worth is for the
-- script tests, which fill servers of their own.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS advisory_ext;
RESET client_min_messages;

---- One row, with all figures

SELECT count(*) FROM advisory.pressure;
SELECT status, exact, headroom > 0 AS has_room, headroom = locks_estimated - locks_used AS room_is_right,
       locks_estimated >= locks_guaranteed AS estimate_is_more, holders_guaranteed = 2 * locks_guaranteed AS twice_the_holders,
       holders_estimated >= locks_estimated AS enough_holders, percent_used < 50 AS is_low,
       recommended_max_locks_per_transaction = current_setting('max_locks_per_transaction')::int AS setting_will_do
FROM advisory.pressure;

---- What is in use, in both tables

SELECT locks_used, holders_used FROM advisory.pressure \gset before_
BEGIN;
SELECT count(advisory.xact_lock('pressure', i)) FROM generate_series(1, 300) AS i;
SELECT locks_used - :before_locks_used BETWEEN 300 AND 310 AS locks, holders_used - :before_holders_used BETWEEN 300 AND 310 AS holders
    FROM advisory.pressure;
SELECT locks, holders FROM advisory.pressure_by_type WHERE type = 'advisory';
SELECT locks >= 300 AS all, advisory_locks, session_locks, statement_cost, gid FROM advisory.pressure_by_backend WHERE pid = pg_backend_pid();
COMMIT;
SELECT count(advisory.lock('pressure', i)) FROM generate_series(1, 300) AS i;
SELECT count(advisory.lock_shared('pressure', i)) FROM generate_series(1, 300) AS i;
SELECT locks, holders FROM advisory.pressure_by_type WHERE type = 'advisory';
SELECT advisory_locks, session_locks, statement_cost FROM advisory.pressure_by_backend WHERE pid = pg_backend_pid();

---- Counted one by one it is the same, and says so

SELECT exact, locks_used, holders_used FROM advisory._pressure(true)
    EXCEPT SELECT NOT exact, locks_used, holders_used FROM advisory.pressure;
SELECT sum(locks) - max(p.locks_used) AS locks, sum(holders) - max(p.holders_used) AS holders
    FROM advisory.pressure p, advisory._pressure_by_type();

---- Thresholds

SET advisory_ext.pressure_warning = 1;
SELECT status, recommended_max_locks_per_transaction > current_setting('max_locks_per_transaction')::int AS more FROM advisory.pressure;
SET advisory_ext.pressure_critical = 1;
SELECT status, recommended_max_locks_per_transaction > current_setting('max_locks_per_transaction')::int AS more FROM advisory.pressure;
RESET advisory_ext.pressure_warning;
RESET advisory_ext.pressure_critical;
SELECT status FROM advisory.pressure;
SET advisory_ext.pressure_warning = 0;
SET advisory_ext.pool_limit = 101;
SELECT advisory.unlock_all('pressure');

---- can_fit

SELECT advisory.can_fit(0), advisory.can_fit(100), advisory.can_fit(2000000000);
SELECT advisory.can_fit(NULL);
SELECT advisory.can_fit(headroom::int), advisory.can_fit(headroom::int + 1) FROM advisory.pressure;
SELECT advisory.can_fit(-1);

---- For everybody, but for the settings

CREATE ROLE regress_pressure;
SET ROLE regress_pressure;
SELECT count(*) FROM advisory.pressure;
SELECT advisory.lock('pressure', 'role');
SELECT locks, state FROM advisory.pressure_by_backend WHERE pid = pg_backend_pid();
SELECT locks FROM advisory.pressure_by_type WHERE type = 'advisory';
SELECT advisory.unlock('pressure', 'role');
SELECT advisory.can_fit(1);
SET advisory_ext.pool_limit = 0;
SET advisory_ext.pressure_warning = 60;
SET advisory_ext.pressure_critical = 60;
-- Not every role sees what other sessions do.
SELECT count(*) FROM advisory.pressure_by_backend WHERE state IS NOT NULL AND role <> 'regress_pressure';
RESET ROLE;
DROP ROLE regress_pressure;

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
