-- Several locks at once, as in 30_many: names, scope and number of holds, which only the extension
-- has.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT namespace, name, mode, scope FROM advisory.locks WHERE pid = pg_backend_pid();

---- Names and scope
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c']), advisory.try_lock_all('ns', ARRAY['c', 'd']);
--> t|t
SELECT *, advisory.hold_count('ns', name) FROM pg_temp.mine ORDER BY name;
--> ns|a|exclusive|session|1
--> ns|b|exclusive|session|1
--> ns|c|exclusive|session|2
--> ns|d|exclusive|session|1
SELECT advisory.unlock_all('ns'); --> 5
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']),
       advisory.try_xact_lock_all('ns', ARRAY['b', 'c']),
       advisory.xact_lock_all('ns', ARRAY[1]), advisory.try_xact_lock_all('ns', ARRAY[2]),
       advisory.xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]),
       advisory.try_xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12']::uuid[]);
--> t|t|t|t|t|t
SELECT *, advisory.hold_count('ns', name) FROM pg_temp.mine ORDER BY name;
--> ns|1|exclusive|transaction|1
--> ns|2|exclusive|transaction|1
--> ns|a|exclusive|transaction|1
--> ns|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|exclusive|transaction|1
--> ns|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12|exclusive|transaction|1
--> ns|b|exclusive|transaction|2
--> ns|c|exclusive|transaction|1
-- Not the session's to release; gone with the transaction.
SELECT advisory.unlock_all('ns'); --> 0
COMMIT;
SELECT * FROM pg_temp.mine;

---- One of them is taken, by a prepared transaction: each other is held as often as before
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['taken']); --> t
PREPARE TRANSACTION 'regress_advisory';
SELECT advisory.lock('ns', 'f'); --> t
-- With enough others some come before it in key order, and some after.
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> f
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms'); --> f
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['f', 'g']); --> t
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> f
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms'); --> f
SELECT name, advisory.hold_count('ns', name) FROM pg_temp.mine ORDER BY name;
--> f|2
--> g|1
ROLLBACK;
\set VERBOSITY sqlstate
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
--> ERROR:  55P03
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '50ms';
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> ERROR:  57014
RESET statement_timeout;
RESET jit;
SELECT name, advisory.hold_count('ns', name) FROM pg_temp.mine; --> f|1
ROLLBACK PREPARED 'regress_advisory';
SELECT advisory.unlock_all('ns'); --> 1

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
