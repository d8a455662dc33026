-- Editions: both.
-- Several locks at once: all or nothing, each once, in key order.
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT n.name, mode
    FROM advisory.locks LEFT JOIN unnest('{a,b,c,d,e,f,g,taken,1,2,3,4,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12,b c,NULL-and-void}'::text[]) AS n (name)
        ON key = advisory.key('ns', n.name)
    WHERE pid = pg_backend_pid();

---- Every function with every kind of list

SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c']);
SELECT * FROM pg_temp.mine ORDER BY name;
SELECT advisory.try_lock_all('ns', ARRAY['c', 'd']);
SELECT name, advisory.unlock_all('ns', name) AS holds FROM pg_temp.mine ORDER BY name;
SELECT advisory.lock_all('ns', ARRAY[3, 1, 2]), advisory.try_lock_all('ns', ARRAY[4]::bigint[]);
SELECT * FROM pg_temp.mine ORDER BY name;
SELECT advisory.unlock_all('ns', ARRAY[1, 2, 3, 4]::bigint[]);
SELECT advisory.lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]),
       advisory.try_lock_all('ns', ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[]);
SELECT name, advisory.unlock_all('ns', name) AS holds FROM pg_temp.mine;
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']), advisory.try_xact_lock_all('ns', ARRAY['b', 'c']),
       advisory.xact_lock_all('ns', ARRAY[1]), advisory.try_xact_lock_all('ns', ARRAY[2]),
       advisory.xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]),
       advisory.try_xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12']::uuid[]);
SELECT *, advisory.unlock_all('ns', name) AS not_released FROM pg_temp.mine ORDER BY name;
-- Not the session's to release; gone with the transaction.
COMMIT;
SELECT * FROM pg_temp.mine;

---- Each once, whatever stands for it (unlock_all says how often it was held)

SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'a', 'a']);
SELECT name, advisory.unlock_all('ns', name) AS holds FROM pg_temp.mine ORDER BY name;
-- Of an array with several dimensions, or other bounds, all elements.
SELECT advisory.lock_all('ns', ARRAY[['a', 'b'], ['c', 'd']]), advisory.unlock_all('ns', ARRAY['a', 'b', 'c', 'd']);
SELECT advisory.lock_all('ns', '[5:6]={a,b}'::text[]), advisory.unlock_all('ns', '[-1:0]={a,b}'::text[]);

---- The empty list: there is nothing to wait for

SELECT advisory.lock_all('ns', '{}'::text[]), advisory.try_lock_all('ns', '{}'::bigint[]),
       advisory.xact_lock_all('ns', '{}'::uuid[]), advisory.try_xact_lock_all('ns', '{}'::text[]);

---- An untyped list, as drivers send it

SELECT advisory.lock_all('ns', '{a,"b c",NULL-and-void}');
SELECT name FROM pg_temp.mine ORDER BY name COLLATE "C";
SELECT advisory.unlock_all('ns', ARRAY['a', 'b c', 'NULL-and-void']);
SELECT advisory.lock_all('ns', '{}'), advisory.try_lock_all('ns', '{a}'), advisory.unlock_all('ns', 'a');
\set VERBOSITY sqlstate
SELECT advisory.lock_all('ns', 'a');
SELECT advisory.try_lock_all('ns', '{a');
SELECT advisory.xact_lock_all('ns', '{a,NULL}');
SELECT advisory.try_xact_lock_all('ns', '{a,""}');
\set VERBOSITY default

---- Savepoints: the transaction-level locks of a call belong to the caller's

BEGIN;
SAVEPOINT s;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']);
ROLLBACK TO s;
SELECT count(*) FROM pg_temp.mine;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']);
SAVEPOINT t;
ROLLBACK TO t;
SELECT count(*) FROM pg_temp.mine;
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
SELECT name FROM pg_temp.mine;
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['f', 'g']);
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
SELECT name FROM pg_temp.mine ORDER BY name;
-- The error names the lock that could not be obtained.
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'taken'], '1ms');
ROLLBACK;
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '0');
SELECT name FROM pg_temp.mine;
-- Another error in the wait takes back as much.
SET statement_timeout = '50ms';
\set VERBOSITY sqlstate
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']);
\set VERBOSITY default
RESET statement_timeout;
SELECT name FROM pg_temp.mine;
ROLLBACK PREPARED 'regress_advisory';
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'taken']);
SELECT name, advisory.unlock_all('ns', name) AS holds FROM pg_temp.mine ORDER BY name;

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
