-- Editions: both.
-- Semaphores in one session: slots, and refused arguments. (36_semaphores_extension: what the views show, and more that only the extension has.)
-- That others wait, and are woken, takes more sessions: see the script tests.
SET advisory_ext.warn_no_transaction = off;

---- Each call another slot, up to as many as there are

SELECT advisory.acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3, '1s');
SELECT advisory.try_acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3, '10ms');

---- Giving back: the one taken last, or a certain one

SELECT advisory.release('ns', 'three', 1);
SELECT advisory.release('ns', 'three');
SELECT advisory.acquire('ns', 'three', 3);
SELECT advisory.release('ns', 'three'), advisory.release('ns', 'three'), advisory.release('ns', 'three');
SELECT advisory.release('ns', 'three', 2);

---- By id, and other forms of the name

SELECT advisory.acquire('ns', 42, 2), advisory.acquire('ns', '42', 2), advisory.release('ns', 42), advisory.release('ns', '42');
SELECT advisory.xact_acquire('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, 2);

---- For the transaction, and for the savepoint

BEGIN;
SELECT advisory.xact_acquire('ns', 'three', 3);
SAVEPOINT s;
SELECT advisory.try_xact_acquire('ns', 'three', 3);
SELECT advisory.acquire('ns', 'three', 3);
SELECT advisory.try_acquire('ns', 'three', 3) AS none;
ROLLBACK TO s;
SELECT advisory.try_acquire('ns', 'three', 3) AS of_the_savepoint, advisory.release('ns', 'three', 2);
SELECT advisory.release('ns', 'three', 1);
SELECT advisory.release('ns', 'three');
SELECT advisory.release('ns', 'three');
COMMIT;
SELECT advisory.acquire('ns', 'three', 3) AS first, advisory.release('ns', 'three');

---- Not the lock of the same name

SELECT advisory.lock('ns', 'both'), advisory.acquire('ns', 'both', 1);
SELECT advisory.unlock('ns', 'both'), advisory.release('ns', 'both');
SELECT advisory.lock('ns', 'both'), advisory.release('ns', 'both');
SELECT advisory.release('ns', 'both', 1);
SELECT advisory.unlock('ns', 'both'), advisory.acquire('ns', 'both', 1), advisory.unlock('ns', 'both');
SELECT advisory.release('ns', 'both');
SELECT advisory.holds('ns', 'both'), advisory.is_locked('ns', 'both');

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

SELECT advisory.release('ns', 'one'), advisory.release('ns', 'one') AS again;

---- Waiting without a snapshot

CALL advisory.await_acquire('ns', 'await', 3);
CALL advisory.await_acquire('ns', 'await', 3, '1s');
CALL advisory.await_acquire('ns', 42, 1, NULL, NULL);
DO $$
DECLARE
    taken integer;
BEGIN
    CALL advisory.await_acquire('ns', 'await', 3, slot => taken);
    RAISE NOTICE 'slot %', taken;
END $$;
SELECT pg_advisory_unlock_all();

---- Many slots

SELECT count(advisory.acquire('ns', 'many', 16000)), max(advisory.acquire('ns', 'many', 16000)) FROM generate_series(1, 40);
SELECT advisory.release('ns', 'many', 7);
SELECT advisory.acquire('ns', 'many', 16000);
SELECT pg_advisory_unlock_all();

---- try_acquire_any(): a slot of each of the first names that have one free

SELECT * FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2);
SELECT i, name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'z', 'm'], 2, 9) WITH ORDINALITY AS t(name, slot, i) ORDER BY i;
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT advisory.release('ns', 'a', 1);
SELECT * FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT pg_advisory_unlock_all();
-- The type of the list comes back.
SELECT id, pg_typeof(id), slot FROM advisory.try_acquire_any('ns', ARRAY[7, -7], 3, 2);
SELECT id, pg_typeof(id), slot FROM advisory.try_acquire_any('ns', ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[], 1);
SELECT name, pg_typeof(name), slot FROM advisory.try_acquire_any('ns', '{b,a}', 1);
SELECT advisory.try_acquire_any('ns', '{b,a}', 1, 2);
SELECT advisory.try_acquire_any('ns', '{}', 1), advisory.try_acquire_any('ns', '{}'::bigint[], 1, 5);
SELECT pg_advisory_unlock_all();
-- Until the end of the transaction, or of the savepoint.
BEGIN;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a'], 2, 2);
SAVEPOINT s;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a', 'c'], 2, 3);
ROLLBACK TO s;
SELECT advisory.try_xact_acquire('ns', 'c', 1) AS of_the_savepoint, advisory.try_xact_acquire('ns', 'b', 2) AS second, advisory.try_xact_acquire('ns', 'b', 2) AS third;
COMMIT;
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
-- A lock of the name is another thing.
SELECT advisory.lock('ns', 'a'), (SELECT slot FROM advisory.try_acquire_any('ns', '{a}', 1)), advisory.unlock('ns', 'a'), advisory.release('ns', 'a');
-- What was taken stays taken if the rest of the statement fails.
SELECT * FROM (SELECT * FROM advisory.try_acquire_any('ns', ARRAY['a', 'b'], 1, 2) OFFSET 0) AS t WHERE 1 / (slot - 1) = 0;
SELECT advisory.release('ns', 'a') AS by_the_caller, advisory.release('ns', 'b');
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
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();

---- DISCARD ALL gives back, too

SELECT advisory.acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3);
DISCARD ALL;
SELECT advisory.acquire('ns', 'three', 3), advisory.release('ns', 'three');
