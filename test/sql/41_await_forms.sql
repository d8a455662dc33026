-- Editions: both.
-- Every form of the procedures that wait without a snapshot, at top level and for locks that are
-- free. (40_await: where else the extension allows them.)
\pset format unaligned \pset tuples_only on
CALL advisory.await_lock('ns', 'text');
CALL advisory.await_lock('ns', 42, '1s');
CALL advisory.await_lock('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL);
CALL advisory.await_lock_shared('ns', 'text');
CALL advisory.await_lock_shared('ns', 42, '1s');
CALL advisory.await_lock_shared('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
CALL advisory.await_lock_key(42, '1s', 'label');
CALL advisory.await_lock_shared_key(-42);
SELECT n, mode, namespace, name, scope
    FROM unnest(ARRAY['text', '42', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']) AS n
    JOIN advisory.locks ON key = advisory.key('ns', n) AND pid = pg_backend_pid()
    ORDER BY n, mode;
--extension> 42|exclusive|ns|42|session
--extension> 42|shared|ns|42|session
--extension> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|exclusive|ns|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|session
--extension> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|shared|ns|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|session
--extension> text|exclusive|ns|text|session
--extension> text|shared|ns|text|session
--portable> 42|exclusive|||
--portable> 42|shared|||
--portable> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|exclusive|||
--portable> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|shared|||
--portable> text|exclusive|||
--portable> text|shared|||
SELECT key, mode, name, scope FROM advisory.locks
    WHERE key IN (42, -42) AND pid = pg_backend_pid() ORDER BY key;
--extension> -42|shared||session
--extension> 42|exclusive|label|session
--portable> -42|shared||
--portable> 42|exclusive||
SELECT pg_advisory_unlock_all(); -->
CALL advisory.await_acquire('ns', 'slots', 2); --> 1
CALL advisory.await_acquire('ns', 'slots', 2, '1s'); --> 2
SELECT advisory.release('ns', 'slots', 1), advisory.release('ns', 'slots'),
    advisory.release('ns', 'slots') AS no_more;
--> WARNING:  you don't own a slot of semaphore "ns/slots"
--> t|t|f

---- Timed out (by a prepared transaction's lock): the error of lock(), and a session that goes on
BEGIN;
SELECT advisory.xact_lock('ns', 'taken'), advisory.xact_acquire('ns', 'slots', 1); --> t|1
PREPARE TRANSACTION 'regress_advisory';
CALL advisory.await_lock('ns', 'taken', '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
--extension> DETAIL:  Prepared transaction "regress_advisory" holds it in exclusive mode.
--extension> HINT:  To end the prepared transaction that holds it: COMMIT PREPARED 'regress_advisory' or ROLLBACK PREPARED 'regress_advisory'.
--portable> DETAIL:  A prepared transaction holds it in exclusive mode.
--portable> HINT:  To see the prepared transaction that holds it: SELECT * FROM pg_catalog.pg_prepared_xacts.
\set VERBOSITY terse
CALL advisory.await_lock('ns', 'taken', '0');
--> ERROR:  could not obtain advisory lock "ns/taken" without waiting
CALL advisory.await_lock_shared('ns', 'taken', '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
\set VERBOSITY sqlstate
CALL advisory.await_acquire('ns', 'slots', 1, '1ms'); --> ERROR:  55P03
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '50ms';
CALL advisory.await_lock('ns', 'taken'); --> ERROR:  57014
RESET statement_timeout;
RESET jit;
\set VERBOSITY default
SELECT advisory.holds('ns', 'taken'); --> f
ROLLBACK PREPARED 'regress_advisory';
CALL advisory.await_lock('ns', 'taken', '1ms');
SELECT advisory.unlock('ns', 'taken'); --> t
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
