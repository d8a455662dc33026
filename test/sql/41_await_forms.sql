-- Editions: both.
-- Every form of the procedures that wait without a snapshot, at top level and for locks that are free. (40_await: where else the extension allows them.)
CALL advisory.await_lock('ns', 'text');
CALL advisory.await_lock('ns', 42, '1s');
CALL advisory.await_lock('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL);
CALL advisory.await_lock_shared('ns', 'text');
CALL advisory.await_lock_shared('ns', 42, '1s');
CALL advisory.await_lock_shared('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
CALL advisory.await_lock_key(42, '1s', 'label');
CALL advisory.await_lock_shared_key(-42);
SELECT n, mode FROM unnest(ARRAY['text', '42', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']) AS n JOIN advisory.locks ON key = advisory.key('ns', n) AND pid = pg_backend_pid()
    ORDER BY n, mode;
SELECT key, mode FROM advisory.locks WHERE key IN (42, -42) AND pid = pg_backend_pid() ORDER BY key;
SELECT pg_advisory_unlock_all();
CALL advisory.await_acquire('ns', 'slots', 2);
CALL advisory.await_acquire('ns', 'slots', 2, '1s');
SELECT advisory.release('ns', 'slots', 1), advisory.release('ns', 'slots'), advisory.release('ns', 'slots') AS no_more;

---- Timed out (by a prepared transaction's lock): the error of lock(), and a session that goes on

BEGIN;
SELECT advisory.xact_lock('ns', 'taken'), advisory.xact_acquire('ns', 'slots', 1);
PREPARE TRANSACTION 'regress_advisory';
CALL advisory.await_lock('ns', 'taken', '1ms');
CALL advisory.await_lock('ns', 'taken', '0');
CALL advisory.await_lock_shared('ns', 'taken', '1ms');
\set VERBOSITY sqlstate
CALL advisory.await_acquire('ns', 'slots', 1, '1ms');
SET statement_timeout = '50ms';
CALL advisory.await_lock('ns', 'taken');
RESET statement_timeout;
\set VERBOSITY default
SELECT advisory.holds('ns', 'taken');
ROLLBACK PREPARED 'regress_advisory';
CALL advisory.await_lock('ns', 'taken', '1ms');
SELECT advisory.unlock('ns', 'taken');
SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
