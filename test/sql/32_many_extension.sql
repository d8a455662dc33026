-- Several locks at once, as in 30_many: names, scope and number of holds, which only the extension has.
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT namespace, name, mode, scope FROM advisory.locks WHERE pid = pg_backend_pid();

---- Names and scope

SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c']), advisory.try_lock_all('ns', ARRAY['c', 'd']);
SELECT *, advisory.hold_count('ns', name) FROM pg_temp.mine ORDER BY name;
SELECT advisory.unlock_all('ns');
SELECT advisory.lock_all('ns', ARRAY[3, 1, 2]), advisory.try_lock_all('ns', ARRAY[4]::bigint[]);
SELECT * FROM pg_temp.mine ORDER BY name;
SELECT advisory.unlock_all('ns');
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']), advisory.try_xact_lock_all('ns', ARRAY['b', 'c']),
       advisory.xact_lock_all('ns', ARRAY[1]), advisory.try_xact_lock_all('ns', ARRAY[2]),
       advisory.xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]),
       advisory.try_xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12']::uuid[]);
SELECT *, advisory.hold_count('ns', name) FROM pg_temp.mine ORDER BY name;
-- Not the session's to release; gone with the transaction.
SELECT advisory.unlock_all('ns');
COMMIT;
SELECT * FROM pg_temp.mine;

---- An untyped list

SELECT advisory.lock_all('ns', '{a,"b c",NULL-and-void}');
SELECT name FROM pg_temp.mine ORDER BY name COLLATE "C";
SELECT advisory.unlock_all('ns');

---- Savepoints: the transaction-level locks of a call belong to the caller's

BEGIN;
SAVEPOINT s;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']);
ROLLBACK TO s;
SELECT count(*) FROM pg_temp.mine;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']);
SAVEPOINT t;
ROLLBACK TO t;
SELECT count(*), sum(advisory.hold_count('ns', name)) FROM pg_temp.mine;
COMMIT;

---- One of them is taken: nothing stays locked but what was before
-- (By a prepared transaction, which is another holder than this session.)

BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['taken']);
PREPARE TRANSACTION 'regress_advisory';
SELECT advisory.lock('ns', 'f');
-- With enough others some come before it in key order, and some after.
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
SELECT name, advisory.hold_count('ns', name) FROM pg_temp.mine;
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['f', 'g']);
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
SELECT name, advisory.hold_count('ns', name) FROM pg_temp.mine ORDER BY name;
-- The error names the lock that could not be obtained.
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'taken'], '1ms');
ROLLBACK;
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '0');
SELECT name, advisory.hold_count('ns', name) FROM pg_temp.mine;
-- Another error in the wait takes back as much.
SET statement_timeout = '50ms';
\set VERBOSITY sqlstate
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
\set VERBOSITY default
RESET statement_timeout;
SELECT name, advisory.hold_count('ns', name) FROM pg_temp.mine;
ROLLBACK PREPARED 'regress_advisory';
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'taken']), advisory.unlock_all('ns');

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
