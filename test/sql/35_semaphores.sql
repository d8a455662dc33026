-- Editions: both.
-- Semaphores in one session: slots, and refused arguments. (36_semaphores_extension: what the views
-- show, and more that only the extension has.) That others wait, and are woken, takes more
-- sessions: see the script tests.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

---- Each call another slot, up to as many as there are
SELECT advisory.acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3),
    advisory.acquire('ns', 'three', 3, '1s'); --> 1|2|3
SELECT advisory.try_acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3, '10ms'); --> |

---- Giving back: the one taken last, or a certain one
SELECT advisory.release('ns', 'three', 1); --> t
SELECT advisory.release('ns', 'three'); --> t
SELECT advisory.acquire('ns', 'three', 3); --> 1
SELECT advisory.release('ns', 'three'), advisory.release('ns', 'three'),
    advisory.release('ns', 'three');
--> WARNING:  you don't own a slot of semaphore "ns/three"
--> t|t|f
SELECT advisory.release('ns', 'three', 2);
--> WARNING:  you don't own slot 2 of semaphore "ns/three"
--> f

---- By id, and other forms of the name
SELECT advisory.acquire('ns', 42, 2), advisory.acquire('ns', '42', 2), advisory.release('ns', 42),
    advisory.release('ns', '42'); --> 1|2|t|t
SELECT advisory.xact_acquire('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, 2); --> 1

---- For the transaction, and for the savepoint
BEGIN;
SELECT advisory.xact_acquire('ns', 'three', 3); --> 1
SAVEPOINT s;
SELECT advisory.try_xact_acquire('ns', 'three', 3); --> 2
SELECT advisory.acquire('ns', 'three', 3); --> 3
SELECT advisory.try_acquire('ns', 'three', 3) AS none; -->
ROLLBACK TO s;
SELECT advisory.try_acquire('ns', 'three', 3) AS of_the_savepoint,
    advisory.release('ns', 'three', 2); --> 2|t
SELECT advisory.release('ns', 'three', 1);
--> WARNING:  you don't own slot 1 of semaphore "ns/three"
--extension> DETAIL:  A transaction-level slot is released at the end of the transaction.
--> f
SELECT advisory.release('ns', 'three'); --> t
SELECT advisory.release('ns', 'three');
--> WARNING:  you don't own a slot of semaphore "ns/three"
--extension> DETAIL:  A transaction-level slot is released at the end of the transaction.
--> f
COMMIT;
SELECT advisory.acquire('ns', 'three', 3) AS first, advisory.release('ns', 'three'); --> 1|t

---- Not the lock of the same name
SELECT advisory.lock('ns', 'both'), advisory.acquire('ns', 'both', 1); --> t|1
SELECT advisory.unlock('ns', 'both'), advisory.release('ns', 'both'); --> t|t
SELECT advisory.lock('ns', 'both'), advisory.release('ns', 'both');
--> WARNING:  you don't own a slot of semaphore "ns/both"
--extension> DETAIL:  This session holds the lock of that name, which is separate from the semaphore.
--extension> HINT:  To release the lock, use advisory.unlock().
--> t|f
SELECT advisory.release('ns', 'both', 1);
--> WARNING:  you don't own slot 1 of semaphore "ns/both"
--extension> DETAIL:  This session holds the lock of that name, which is separate from the semaphore.
--extension> HINT:  To release the lock, use advisory.unlock().
--> f
SELECT advisory.unlock('ns', 'both'), advisory.acquire('ns', 'both', 1),
    advisory.unlock('ns', 'both');
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/both"
--extension> DETAIL:  This session has a slot of the semaphore of that name, which is separate from the lock.
--extension> HINT:  To release a slot, use advisory.release().
--> t|1|f
SELECT advisory.release('ns', 'both'); --> t
SELECT advisory.holds('ns', 'both'), advisory.is_locked('ns', 'both'); --> f|f

---- None free
SELECT advisory.acquire('ns', 'one', 1); --> 1
SELECT advisory.try_acquire('ns', 'one', 1), advisory.try_xact_acquire('ns', 'one', 1),
    advisory.try_acquire('ns', 'one', 1, '10ms'); --> ||
\set VERBOSITY terse
SELECT advisory.acquire('ns', 'one', 1, '10ms');
--> ERROR:  could not obtain a slot of semaphore "ns/one" within 10 ms
SELECT advisory.acquire('ns', 'one', 1, '0');
--> ERROR:  could not obtain a slot of semaphore "ns/one" without waiting
SET lock_timeout = '10ms';
SELECT advisory.acquire('ns', 'one', 1);
--> ERROR:  could not obtain a slot of semaphore "ns/one" within lock_timeout of 10 ms
SELECT advisory.try_acquire('ns', 'one', 1, NULL); -->
RESET lock_timeout;
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '10ms';
SELECT advisory.acquire('ns', 'one', 1); --> ERROR:  canceling statement due to statement timeout
RESET statement_timeout;
RESET jit;
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
END $$; --> NOTICE:  ns one

SELECT advisory.release('ns', 'one'), advisory.release('ns', 'one') AS again;
--> WARNING:  you don't own a slot of semaphore "ns/one"
--> t|f

---- Waiting without a snapshot
CALL advisory.await_acquire('ns', 'await', 3); --> 1
CALL advisory.await_acquire('ns', 'await', 3, '1s'); --> 2
CALL advisory.await_acquire('ns', 42, 1, NULL, NULL); --> 1
DO $$
DECLARE
    taken integer;
BEGIN
    CALL advisory.await_acquire('ns', 'await', 3, slot => taken);
    RAISE NOTICE 'slot %', taken;
END $$; --> NOTICE:  slot 3
SELECT pg_advisory_unlock_all(); -->

---- Many slots
SELECT count(advisory.acquire('ns', 'many', 16000)), max(advisory.acquire('ns', 'many', 16000))
    FROM generate_series(1, 40); --> 40|80
SELECT advisory.release('ns', 'many', 7); --> t
SELECT advisory.acquire('ns', 'many', 16000); --> 7
SELECT pg_advisory_unlock_all(); -->

---- try_acquire_any(): a slot of each of the first names that have one free
SELECT * FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2); --> z|1
SELECT i, name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'z', 'm'], 2,
    9) WITH ORDINALITY AS t(name, slot, i) ORDER BY i;
--> 1|z|2
--> 2|a|1
--> 3|m|1
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
--> a|2
--> m|2
SELECT name, slot FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2);
SELECT advisory.release('ns', 'a', 1); --> t
SELECT * FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2); --> a|1
SELECT pg_advisory_unlock_all(); -->
-- The type of the list comes back.
SELECT id, pg_typeof(id), slot FROM advisory.try_acquire_any('ns', ARRAY[7, -7], 3, 2);
--> 7|bigint|1
--> -7|bigint|1
SELECT id, pg_typeof(id), slot FROM advisory.try_acquire_any('ns',
    ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[], 1);
--> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|uuid|1
SELECT name, pg_typeof(name), slot FROM advisory.try_acquire_any('ns', '{b,a}', 1); --> b|text|1
SELECT advisory.try_acquire_any('ns', '{b,a}', 1, 2); --> (a,1)
SELECT advisory.try_acquire_any('ns', '{}', 1),
    advisory.try_acquire_any('ns', '{}'::bigint[], 1, 5);
SELECT pg_advisory_unlock_all(); -->
-- Until the end of the transaction, or of the savepoint.
BEGIN;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a'], 2, 2);
--> b|1
--> a|1
SAVEPOINT s;
SELECT * FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a', 'c'], 2, 3);
--> b|2
--> a|2
--> c|1
ROLLBACK TO s;
SELECT advisory.try_xact_acquire('ns', 'c', 1) AS of_the_savepoint,
    advisory.try_xact_acquire('ns', 'b', 2) AS second,
    advisory.try_xact_acquire('ns', 'b', 2) AS third; --> 1|2|
COMMIT;
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 0
-- A lock of the name is another thing.
SELECT advisory.lock('ns', 'a'), (SELECT slot FROM advisory.try_acquire_any('ns', '{a}', 1)),
    advisory.unlock('ns', 'a'), advisory.release('ns', 'a'); --> t|1|t|t
-- What was taken stays taken if the rest of the statement fails.
SELECT * FROM (SELECT * FROM advisory.try_acquire_any('ns', ARRAY['a', 'b'], 1, 2) OFFSET 0) AS t
    WHERE 1 / (slot - 1) = 0; --> ERROR:  division by zero
SELECT advisory.release('ns', 'a') AS by_the_caller, advisory.release('ns', 'b'); --> t|t
SELECT advisory.try_acquire_any('ns', ARRAY['a', NULL], 1);
--> ERROR:  name must not be null
--extension> DETAIL:  Element 2 of the list is null.
SELECT advisory.try_acquire_any('ns', ARRAY['a', ''], 1); --> ERROR:  name must not be empty
SELECT advisory.try_acquire_any('ns', NULL::text[], 1); --> ERROR:  list of names must not be null
SELECT advisory.try_acquire_any(NULL, '{a}', 1); --> ERROR:  namespace must not be null
SELECT advisory.try_acquire_any('ns', '{a}', 0); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.try_acquire_any('ns', '{a}', 16001); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.try_acquire_any('ns', '{a}', NULL); --> ERROR:  slots must not be null
SELECT advisory.try_acquire_any('ns', '{a}', 1, 0); --> ERROR:  wanted must be at least 1
SELECT advisory.try_acquire_any('ns', '{a}', 1, NULL); --> ERROR:  wanted must not be null
SELECT advisory.try_acquire_any('ns', 'a', 1);
--> ERROR:  malformed array literal: "a"
--> DETAIL:  Array value must start with "{" or dimension information.
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 0
---- What is refused
SELECT advisory.acquire('ns', 'name', 0); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.acquire('ns', 'name', 16001); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.try_acquire('ns', 'name', -1); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.acquire('ns', 'name', NULL); --> ERROR:  slots must not be null
SELECT advisory.acquire(NULL, 'name', 1); --> ERROR:  namespace must not be null
SELECT advisory.acquire('ns', NULL::text, 1); --> ERROR:  name must not be null
SELECT advisory.acquire('', 'name', 1); --> ERROR:  namespace must not be empty
SELECT advisory.acquire('ns', '', 1); --> ERROR:  name must not be empty
SELECT advisory.acquire('ns', 'name', 1, '-1s'); --> ERROR:  timeout must not be negative
SELECT advisory.release('ns', 'name', 0); --> ERROR:  slot must be between 1 and 16000
SELECT advisory.release('ns', 'name', 16001); --> ERROR:  slot must be between 1 and 16000
SELECT advisory.release('ns', NULL::text); --> ERROR:  name must not be null
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 0

---- DISCARD ALL gives back, too
SELECT advisory.acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3); --> 1|2
DISCARD ALL;
SELECT advisory.acquire('ns', 'three', 3), advisory.release('ns', 'three'); --> 1|t
