-- Semaphores in one session, as in 35_semaphores: what the views show, all of a namespace, another number of slots, and settings.
SET advisory_ext.warn_no_transaction = off;

-- Keys and pids differ from run to run, or say nothing.
CREATE VIEW pg_temp.mine AS
    SELECT kind, namespace, name, slot, mode, scope, granted, acquired_at IS NOT NULL AS has_time
    FROM advisory.locks WHERE pid = pg_backend_pid();
CREATE VIEW pg_temp.used AS
    SELECT namespace, name, key = advisory.key(namespace, name) AS has_key, slots, in_use, free, waiting,
           array_length(holders, 1) AS holders, slots_disagree
    FROM advisory.semaphores;

---- In views

SELECT advisory.acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3, '1s');
SELECT * FROM pg_temp.mine ORDER BY slot;
SELECT * FROM pg_temp.used;
SELECT lock, slot, mode FROM advisory.activity WHERE pid = pg_backend_pid() ORDER BY slot;
-- They are locks, as the server has them.
SELECT l.objsubid - 16384 AS slot, l.mode, l.granted
    FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid()
      AND (l.classid::bigint << 32) | l.objid::bigint = advisory.key('ns', 'three')
    ORDER BY slot;

SELECT advisory.release('ns', 'three', 1), advisory.release('ns', 'three');
SELECT slot FROM pg_temp.mine;
SELECT advisory.release('ns', 'three');
SELECT * FROM pg_temp.used;
SELECT advisory.acquire('ns', 'both', 1), advisory.hold_count('ns', 'both'), advisory.release('ns', 'both');

---- For the transaction, and for the savepoint

BEGIN;
SELECT advisory.xact_acquire('ns', 'three', 3);
SAVEPOINT s;
SELECT advisory.try_xact_acquire('ns', 'three', 3);
SELECT advisory.acquire('ns', 'three', 3);
SELECT slot, scope FROM pg_temp.mine ORDER BY slot;
ROLLBACK TO s;
SELECT slot, scope FROM pg_temp.mine ORDER BY slot;
SELECT advisory.release('ns', 'three');
COMMIT;
SELECT * FROM pg_temp.mine;

---- All of a namespace

SELECT advisory.acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3), advisory.acquire('other', 'three', 3), advisory.lock('ns', 'lock');
SELECT advisory.unlock_all('ns');
SELECT kind, namespace, name, slot FROM pg_temp.mine;
SELECT pg_advisory_unlock_all();
SELECT * FROM pg_temp.used;

SELECT advisory.acquire('ns', 'one', 1);
SELECT slot FROM pg_temp.mine;

---- More slots than before: told once

\set VERBOSITY terse
SELECT advisory.try_acquire('ns', 'one', 2);
SELECT advisory.try_acquire('ns', 'one', 3), advisory.try_acquire('ns', 'one', 1);
SELECT * FROM pg_temp.used;
SELECT advisory.unlock_all('ns');
SELECT advisory.acquire('ns', 'one', 5), advisory.release('ns', 'one');

---- Waiting without a snapshot

\set VERBOSITY default
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_acquire('ns', 'await', 2);
ROLLBACK;

---- Many slots

SELECT count(advisory.acquire('ns', 'many', 16000)) FROM generate_series(1, 80);
SELECT slots, in_use, free FROM advisory.semaphores WHERE name = 'many';
SELECT advisory.unlock_all('ns');

---- try_acquire_any()

SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 3);
SELECT name, slots, in_use FROM advisory.semaphores WHERE name IN ('a', 'm', 'z') ORDER BY name;
SELECT advisory.unlock_all('ns');
BEGIN;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a'], 2, 2);
SAVEPOINT s;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a', 'c'], 2, 3);
ROLLBACK TO s;
SELECT name, slot, scope FROM advisory.locks WHERE pid = pg_backend_pid() AND kind = 'semaphore' ORDER BY name;
COMMIT;
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();

---- The setting session_locks

SET advisory_ext.session_locks = off;
SELECT advisory.acquire('ns', 'name', 1);
SELECT advisory.try_acquire('ns', 'name', 1);
CALL advisory.await_acquire('ns', 'name', 1);
SELECT advisory.xact_acquire('ns', 'name', 1);
RESET advisory_ext.session_locks;
SELECT * FROM pg_temp.mine;
