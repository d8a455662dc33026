-- Editions: both.
-- Several slots of a semaphore at once, in one session. (35_semaphores: one slot.) That others
-- wait, and in which order they are served, takes more sessions: see the script tests.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT coalesce(array_agg(slot ORDER BY slot), '{}') AS slots
    FROM advisory.holders('ns', 'four') WHERE pid = pg_backend_pid();

---- All or none, the lowest first
SELECT advisory.acquire_many('ns', 'four', 4, 2); --> {1,2}
SELECT advisory.try_acquire_many('ns', 'four', 4, 3),
    advisory.try_acquire_many('ns', 'four', 4, 3, '10ms'); --> |
SELECT slots FROM pg_temp.mine; --> {1,2}
SELECT advisory.try_acquire_many('ns', 'four', 4, 1); --> {3}
-- Three are taken, two are wanted: none is.
SELECT advisory.try_acquire_many('ns', 'four', 4, 2, NULL)
    FROM set_config('lock_timeout', '10ms', false); -->
RESET lock_timeout;
SELECT slots FROM pg_temp.mine; --> {1,2,3}
SELECT advisory.try_acquire('ns', 'four', 4); --> 4
SELECT advisory.try_acquire_many('ns', 'four', 4, 1); -->
-- What is free need not be in a row; the numbers come in order.
SELECT advisory.release('ns', 'four', 4), advisory.release('ns', 'four', 2); --> t|t
SELECT advisory.acquire_many('ns', 'four', 4, 2, '1s'); --> {2,4}
-- A caller with fewer slots takes none above its number.
SELECT advisory.release_many('ns', 'four', '{2,3,4}'); --> 3
\set VERBOSITY terse
SELECT advisory.try_acquire_many('ns', 'four', 2, 2), slots FROM pg_temp.mine;
--extension> WARNING:  semaphore "ns/four" is used with different numbers of slots
--> |{1}
\set VERBOSITY default
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.acquire_many('ns', 'four', 4, 4), advisory.try_acquire_many('ns', 'four', 4, 4);
--> {1,2,3,4}|

---- Giving back: how many this session had
SELECT advisory.release_many('ns', 'four', ARRAY[4, 1]); --> 2
SELECT slots FROM pg_temp.mine; --> {2,3}
SELECT advisory.release_many('ns', 'four', '{}'); --> 0
SELECT advisory.release_many('ns', 'four', '{3,1,3}');
--> WARNING:  you don't own slot 1 of semaphore "ns/four"
--> WARNING:  you don't own slot 3 of semaphore "ns/four"
--> 1
SELECT advisory.release_many('ns', 'four', advisory.acquire_many('ns', 'four', 4, 3)); --> 3
-- If one of the list is refused, none is released.
SELECT advisory.release_many('ns', 'four', '{2,NULL}');
--> ERROR:  slot must not be null
--extension> DETAIL:  Element 2 of the list is null.
SELECT advisory.release_many('ns', 'four', '{2,0}'); --> ERROR:  slot must be between 1 and 16000
SELECT advisory.release_many('ns', 'four', '{2,16001}');
--> ERROR:  slot must be between 1 and 16000
SELECT advisory.release_many('ns', 'four', NULL); --> ERROR:  slots must not be null
SELECT advisory.release_many(NULL, 'four', '{}'); --> ERROR:  namespace must not be null
SELECT advisory.release_many('ns', NULL::text, '{}'); --> ERROR:  name must not be null
SELECT advisory.release_many('', 'four', '{}'); --> ERROR:  namespace must not be empty
SELECT advisory.release_many('ns', '', '{}'); --> ERROR:  name must not be empty
SELECT slots FROM pg_temp.mine; --> {2}
SELECT advisory.release('ns', 'four', 2); --> t

---- By id, and each default
SELECT advisory.acquire_many('ns', 42, 3, 2), advisory.try_acquire_many('ns', '42', 3, 2),
    advisory.release_many('ns', 42, '{1}'), advisory.release_many('ns', '42', '{2}'); --> {1,2}||1|1
SELECT advisory.xact_acquire_many('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, 2, 2),
    advisory.try_xact_acquire_many('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid, 2, 1),
    advisory.release_many('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid, '{1}');
--> WARNING:  you don't own slot 1 of semaphore "ns/a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
--extension> DETAIL:  A transaction-level slot is released at the end of the transaction.
--> {1,2}||0
SELECT advisory.try_acquire_many(namespace => 'ns', name => 'four', slots => 4, wanted => 2,
        timeout => '1s'),
    advisory.release_many(namespace => 'ns', name => 'four', slots => ARRAY[1, 2]); --> {1,2}|2

---- For the transaction, and for the savepoint
BEGIN;
SELECT advisory.xact_acquire_many('ns', 'four', 4, 1); --> {1}
SAVEPOINT s;
SELECT advisory.try_xact_acquire_many('ns', 'four', 4, 2, '1s'); --> {2,3}
SELECT advisory.acquire_many('ns', 'four', 4, 1); --> {4}
SELECT advisory.try_xact_acquire_many('ns', 'four', 4, 1); -->
ROLLBACK TO s;
SELECT slots FROM pg_temp.mine; --> {1,4}
SELECT advisory.xact_acquire_many('ns', 'four', 4, 2, '1s'); --> {2,3}
SELECT advisory.release_many('ns', 'four', '{1,4,2}');
--> WARNING:  you don't own slot 1 of semaphore "ns/four"
--extension> DETAIL:  A transaction-level slot is released at the end of the transaction.
--> WARNING:  you don't own slot 2 of semaphore "ns/four"
--extension> DETAIL:  A transaction-level slot is released at the end of the transaction.
--> 1
SELECT slots FROM pg_temp.mine; --> {1,2,3}
COMMIT;
SELECT slots FROM pg_temp.mine; --> {}
-- An error ends the transaction's, not the session's.
BEGIN;
SELECT advisory.acquire_many('ns', 'four', 4, 2), advisory.xact_acquire_many('ns', 'four', 4, 2);
--> {1,2}|{3,4}
SELECT 1 / 0; --> ERROR:  division by zero
ROLLBACK;
SELECT slots, advisory.release_many('ns', 'four', slots) FROM pg_temp.mine; --> {1,2}|2

---- Not free in time
\set VERBOSITY terse
SELECT advisory.acquire_many('ns', 'four', 4, 3); --> {1,2,3}
SELECT advisory.acquire_many('ns', 'four', 4, 2, '10ms');
--> ERROR:  could not obtain 2 slots of semaphore "ns/four" within 10 ms
SELECT advisory.acquire_many('ns', 'four', 4, 2, '0');
--> ERROR:  could not obtain 2 slots of semaphore "ns/four" without waiting
SELECT advisory.xact_acquire_many('ns', 'four', 4, 4, '10ms');
--> ERROR:  could not obtain 4 slots of semaphore "ns/four" within 10 ms
SELECT advisory.acquire_many('ns', 'one', 1, 1), advisory.try_acquire_many('ns', 'one', 1, 1);
--> {1}|
SELECT advisory.acquire_many('ns', 'one', 1, 1, '0');
--> ERROR:  could not obtain a slot of semaphore "ns/one" without waiting
SELECT advisory.try_xact_acquire_many('ns', 'four', 4, 2, '10ms'); -->
SET lock_timeout = '10ms';
SELECT advisory.acquire_many('ns', 'four', 4, 2);
--> ERROR:  could not obtain 2 slots of semaphore "ns/four" within lock_timeout of 10 ms
RESET lock_timeout;
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '10ms';
SELECT advisory.acquire_many('ns', 'four', 4, 2);
--> ERROR:  canceling statement due to statement timeout
SELECT advisory.try_xact_acquire_many('ns', 'four', 4, 2, NULL);
--> ERROR:  canceling statement due to statement timeout
RESET statement_timeout;
RESET jit;
\set VERBOSITY default
SELECT slots FROM pg_temp.mine; --> {1,2,3}
-- A program finds the semaphore in the error's fields.
DO $$
DECLARE
    schema_field text;
    constraint_field text;
BEGIN
    PERFORM advisory.acquire_many('ns', 'four', 4, 2, '0');
EXCEPTION WHEN lock_not_available THEN
    GET STACKED DIAGNOSTICS schema_field = SCHEMA_NAME, constraint_field = CONSTRAINT_NAME;
    RAISE NOTICE '% %', schema_field, constraint_field;
END $$; --> NOTICE:  ns four
SELECT pg_advisory_unlock_all(); -->

---- Some are a prepared transaction's
BEGIN;
SELECT advisory.xact_acquire_many('ns', 'four', 4, 3); --> {1,2,3}
PREPARE TRANSACTION 'regress_acquire_many';
SELECT advisory.try_acquire_many('ns', 'four', 4, 2),
    advisory.try_acquire_many('ns', 'four', 4, 2, '10ms'),
    advisory.try_acquire_many('ns', 'four', 4, 1); --> ||{4}
ROLLBACK PREPARED 'regress_acquire_many';
SELECT advisory.try_acquire_many('ns', 'four', 4, 3); --> {1,2,3}
SELECT pg_advisory_unlock_all(); -->

---- Many slots
SELECT cardinality(slots), slots[1], slots[200]
    FROM advisory.acquire_many('ns', 'many', 16000, 200) AS slots; --> 200|1|200
SELECT advisory.release_many('ns', 'many', '{7,9}'); --> 2
SELECT advisory.acquire_many('ns', 'many', 16000, 3); --> {7,9,201}
SELECT advisory.release_many('ns', 'many', ARRAY(SELECT generate_series(1, 201))); --> 201

---- What is refused
SELECT advisory.acquire_many('ns', 'name', 4, 0); --> ERROR:  wanted must be between 1 and 4
SELECT advisory.acquire_many('ns', 'name', 4, 5); --> ERROR:  wanted must be between 1 and 4
SELECT advisory.try_acquire_many('ns', 'name', 4, -1); --> ERROR:  wanted must be between 1 and 4
SELECT advisory.try_xact_acquire_many('ns', 'name', 4, NULL); --> ERROR:  wanted must not be null
SELECT advisory.xact_acquire_many('ns', 'name', 0, 1); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.acquire_many('ns', 'name', 16001, 1); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.acquire_many('ns', 'name', NULL, 1); --> ERROR:  slots must not be null
SELECT advisory.acquire_many(NULL, 'name', 1, 1); --> ERROR:  namespace must not be null
SELECT advisory.acquire_many('ns', NULL::text, 1, 1); --> ERROR:  name must not be null
SELECT advisory.acquire_many('ns', NULL::bigint, 1, 1); --> ERROR:  id must not be null
SELECT advisory.acquire_many('', 'name', 1, 1); --> ERROR:  namespace must not be empty
SELECT advisory.acquire_many('ns', '', 1, 1); --> ERROR:  name must not be empty
SELECT advisory.acquire_many('ns', 'name', 1, 1, '-1s'); --> ERROR:  timeout must not be negative
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 0
