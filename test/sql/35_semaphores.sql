-- Semaphores in one session: slots, and refused arguments.
-- That others wait, and are woken, takes more sessions: see the script tests.
SET advisory_ext.warn_no_transaction = off;

-- Keys and pids differ from run to run, or say nothing.
CREATE VIEW pg_temp.mine AS
    SELECT kind, namespace, name, slot, mode, scope, granted, acquired_at IS NOT NULL AS has_time
    FROM advisory.locks WHERE pid = pg_backend_pid();
CREATE VIEW pg_temp.used AS
    SELECT namespace, name, key = advisory.key(namespace, name) AS has_key, slots, in_use, free, waiting,
           array_length(holders, 1) AS holders, slots_disagree
    FROM advisory.semaphores;

---- Each call another slot, up to as many as there are

SELECT advisory.acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3, '1s');
SELECT advisory.try_acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3, '10ms');
SELECT * FROM pg_temp.mine ORDER BY slot;
SELECT * FROM pg_temp.used;
SELECT lock, slot, mode FROM advisory.activity WHERE pid = pg_backend_pid() ORDER BY slot;
-- They are locks, as the server has them.
SELECT l.objsubid - 16384 AS slot, l.mode, l.granted
    FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid()
      AND (l.classid::bigint << 32) | l.objid::bigint = advisory.key('ns', 'three')
    ORDER BY slot;

---- Giving back: the one taken last, or a certain one

SELECT advisory.release('ns', 'three', 1);
SELECT advisory.release('ns', 'three');
SELECT slot FROM pg_temp.mine;
SELECT advisory.acquire('ns', 'three', 3);
SELECT advisory.release('ns', 'three'), advisory.release('ns', 'three'), advisory.release('ns', 'three');
SELECT advisory.release('ns', 'three', 2);
SELECT * FROM pg_temp.used;

---- By id, and other forms of the name

SELECT advisory.acquire('ns', 42, 2), advisory.acquire('ns', '42', 2), advisory.release('ns', 42), advisory.release('ns', '42');
SELECT advisory.xact_acquire('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, 2);

---- For the transaction, and for the savepoint

BEGIN;
SELECT advisory.xact_acquire('ns', 'three', 3);
SAVEPOINT s;
SELECT advisory.try_xact_acquire('ns', 'three', 3);
SELECT advisory.acquire('ns', 'three', 3);
SELECT slot, scope FROM pg_temp.mine ORDER BY slot;
ROLLBACK TO s;
SELECT slot, scope FROM pg_temp.mine ORDER BY slot;
SELECT advisory.release('ns', 'three', 1);
SELECT advisory.release('ns', 'three');
SELECT advisory.release('ns', 'three');
COMMIT;
SELECT * FROM pg_temp.mine;

---- Not the lock of the same name

SELECT advisory.lock('ns', 'both'), advisory.acquire('ns', 'both', 1);
SELECT advisory.unlock('ns', 'both'), advisory.release('ns', 'both');
SELECT advisory.lock('ns', 'both'), advisory.release('ns', 'both');
SELECT advisory.release('ns', 'both', 1);
SELECT advisory.unlock('ns', 'both'), advisory.acquire('ns', 'both', 1), advisory.unlock('ns', 'both');
SELECT advisory.release('ns', 'both');
SELECT advisory.holds('ns', 'both'), advisory.hold_count('ns', 'both'), advisory.is_locked('ns', 'both');

---- All of a namespace

SELECT advisory.acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3), advisory.acquire('other', 'three', 3), advisory.lock('ns', 'lock');
SELECT advisory.unlock_all('ns');
SELECT kind, namespace, name, slot FROM pg_temp.mine;
SELECT pg_advisory_unlock_all();
SELECT * FROM pg_temp.used;

---- None free

SELECT advisory.acquire('ns', 'one', 1);
SELECT advisory.try_acquire('ns', 'one', 1), advisory.try_xact_acquire('ns', 'one', 1), advisory.try_acquire('ns', 'one', 1, '10ms');
\set VERBOSITY terse
SELECT advisory.acquire('ns', 'one', 1, '10ms');
SELECT advisory.acquire('ns', 'one', 1, '0');
SET lock_timeout = '10ms';
SELECT advisory.acquire('ns', 'one', 1);
SELECT advisory.try_acquire('ns', 'one', 1, NULL);
RESET lock_timeout;
SET statement_timeout = '10ms';
SELECT advisory.acquire('ns', 'one', 1);
RESET statement_timeout;
\set VERBOSITY default
SELECT slot FROM pg_temp.mine;
-- A program finds the semaphore in the error's fields.
DO $$
DECLARE
    schema_field text;
    constraint_field text;
BEGIN
    PERFORM advisory.acquire('ns', 'one', 1, '0');
EXCEPTION WHEN lock_not_available THEN
    GET STACKED DIAGNOSTICS schema_field = SCHEMA_NAME, constraint_field = CONSTRAINT_NAME;
    RAISE NOTICE '% %', schema_field, constraint_field;
END $$;

---- More slots than before: told once

\set VERBOSITY terse
SELECT advisory.try_acquire('ns', 'one', 2);
SELECT advisory.try_acquire('ns', 'one', 3), advisory.try_acquire('ns', 'one', 1);
SELECT * FROM pg_temp.used;
SELECT advisory.unlock_all('ns');
SELECT advisory.acquire('ns', 'one', 5), advisory.release('ns', 'one');

---- Waiting without a snapshot

CALL advisory.await_acquire('ns', 'await', 2);
CALL advisory.await_acquire('ns', 'await', 2, '1s');
CALL advisory.await_acquire('ns', 42, 1, NULL, NULL);
DO $$
DECLARE
    taken integer;
BEGIN
    CALL advisory.await_acquire('ns', 'await', 3, slot => taken);
    RAISE NOTICE 'slot %', taken;
END $$;
SELECT advisory.unlock_all('ns');
\set VERBOSITY default
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_acquire('ns', 'await', 2);
ROLLBACK;

---- Many slots

SELECT count(advisory.acquire('ns', 'many', 16000)), max(advisory.acquire('ns', 'many', 16000)) FROM generate_series(1, 40);
SELECT advisory.release('ns', 'many', 7);
SELECT advisory.acquire('ns', 'many', 16000);
SELECT slots, in_use, free FROM advisory.semaphores WHERE name = 'many';
SELECT advisory.unlock_all('ns');

---- try_acquire_any(): a slot of each of the first names that have one free

SELECT * FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2);
SELECT i, name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'z', 'm'], 2, 9) WITH ORDINALITY AS t(name, slot, i) ORDER BY i;
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT name, slots, in_use FROM advisory.semaphores WHERE name IN ('a', 'm', 'z') ORDER BY name;
SELECT advisory.release('ns', 'a', 1);
SELECT * FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT advisory.unlock_all('ns');
-- The type of the list comes back.
SELECT id, pg_typeof(id), slot FROM advisory.try_acquire_any('ns', ARRAY[7, -7], 3, 2);
SELECT id, pg_typeof(id), slot FROM advisory.try_acquire_any('ns', ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[], 1);
SELECT name, pg_typeof(name), slot FROM advisory.try_acquire_any('ns', '{b,a}', 1);
SELECT advisory.try_acquire_any('ns', '{b,a}', 1, 2);
SELECT advisory.try_acquire_any('ns', '{}', 1), advisory.try_acquire_any('ns', '{}'::bigint[], 1, 5);
SELECT advisory.unlock_all('ns');
-- Until the end of the transaction, or of the savepoint.
BEGIN;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a'], 2, 2);
SAVEPOINT s;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a', 'c'], 2, 3);
ROLLBACK TO s;
SELECT name, slot, scope FROM advisory.locks WHERE pid = pg_backend_pid() AND kind = 'semaphore' ORDER BY name;
COMMIT;
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
-- A lock of the name is another thing.
SELECT advisory.lock('ns', 'a'), (SELECT slot FROM advisory.try_acquire_any('ns', '{a}', 1)), advisory.unlock_all('ns');
-- What was taken stays taken if the rest of the statement fails.
SELECT * FROM (SELECT * FROM advisory.try_acquire_any('ns', ARRAY['a', 'b'], 1, 2) OFFSET 0) AS t WHERE 1 / (slot - 1) = 0;
SELECT advisory.unlock_all('ns') AS by_the_caller;
SELECT advisory.try_acquire_any('ns', ARRAY['a', NULL], 1);
SELECT advisory.try_acquire_any('ns', ARRAY['a', ''], 1);
SELECT advisory.try_acquire_any('ns', NULL::text[], 1);
SELECT advisory.try_acquire_any(NULL, '{a}', 1);
SELECT advisory.try_acquire_any('ns', '{a}', 0);
SELECT advisory.try_acquire_any('ns', '{a}', 16001);
SELECT advisory.try_acquire_any('ns', '{a}', NULL);
SELECT advisory.try_acquire_any('ns', '{a}', 1, 0);
SELECT advisory.try_acquire_any('ns', '{a}', 1, NULL);
SELECT advisory.try_acquire_any('ns', 'a', 1);
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
---- What is refused

SELECT advisory.acquire('ns', 'name', 0);
SELECT advisory.acquire('ns', 'name', 16001);
SELECT advisory.try_acquire('ns', 'name', -1);
SELECT advisory.acquire('ns', 'name', NULL);
SELECT advisory.acquire(NULL, 'name', 1);
SELECT advisory.acquire('ns', NULL::text, 1);
SELECT advisory.acquire('', 'name', 1);
SELECT advisory.acquire('ns', '', 1);
SELECT advisory.acquire('ns', 'name', 1, '-1s');
SELECT advisory.release('ns', 'name', 0);
SELECT advisory.release('ns', 'name', 16001);
SELECT advisory.release('ns', NULL::text);
SET advisory_ext.session_locks = off;
SELECT advisory.acquire('ns', 'name', 1);
SELECT advisory.try_acquire('ns', 'name', 1);
CALL advisory.await_acquire('ns', 'name', 1);
SELECT advisory.xact_acquire('ns', 'name', 1);
RESET advisory_ext.session_locks;
SELECT * FROM pg_temp.mine;

---- DISCARD ALL gives back, too

SELECT advisory.acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3);
DISCARD ALL;
SELECT advisory.acquire('ns', 'three', 3), advisory.release('ns', 'three');
