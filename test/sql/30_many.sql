-- Editions: both.
-- Several locks at once: all or nothing, each once, in key order.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT n.name, mode
    FROM advisory.locks
        LEFT JOIN unnest('{a, b, c, d, e, f, g, taken, 1, 2, 3, 4, b c, NULL-and-void,
                           a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,
                           a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12}'::text[]) AS n (name)
        ON key = advisory.key('ns', n.name)
    WHERE pid = pg_backend_pid();

-- What the session holds, how often, and from then on no more but what a transaction holds.
CREATE FUNCTION pg_temp.released() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', name, mode, advisory.unlock_all('ns', name)), ', '
                      ORDER BY name) FROM pg_temp.mine $$;

---- Every function with every kind of list
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c']); --> t
SELECT advisory.try_lock_all('ns', ARRAY['c', 'd']); --> t
SELECT pg_temp.released(); --> a exclusive 1, b exclusive 1, c exclusive 2, d exclusive 1
SELECT advisory.lock_all('ns', ARRAY[3, 1, 2]), advisory.try_lock_all('ns', ARRAY[4]::bigint[]);
--> t|t
SELECT pg_temp.released(); --> 1 exclusive 1, 2 exclusive 1, 3 exclusive 1, 4 exclusive 1
SELECT advisory.lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]),
       advisory.try_lock_all('ns', ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[]); --> t|t
SELECT pg_temp.released(); --> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 exclusive 2
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']),
       advisory.try_xact_lock_all('ns', ARRAY['b', 'c']),
       advisory.xact_lock_all('ns', ARRAY[1]), advisory.try_xact_lock_all('ns', ARRAY[2]),
       advisory.xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[]),
       advisory.try_xact_lock_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12']::uuid[]);
--> t|t|t|t|t|t
SELECT pg_temp.released();
--> 1 exclusive 0, 2 exclusive 0, a exclusive 0, a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 exclusive 0, a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12 exclusive 0, b exclusive 0, c exclusive 0
-- Not the session's to release; gone with the transaction.
COMMIT;
SELECT * FROM pg_temp.mine;

---- Each once, whatever stands for it (unlock_all says how often it was held)
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'a', 'a']); --> t
SELECT pg_temp.released(); --> a exclusive 1, b exclusive 1
-- Of an array with several dimensions, or other bounds, all elements.
SELECT advisory.lock_all('ns', ARRAY[['a', 'b'], ['c', 'd']]),
    advisory.unlock_all('ns', ARRAY['a', 'b', 'c', 'd']); --> t|4
SELECT advisory.lock_all('ns', '[5:6]={a,b}'::text[]),
    advisory.unlock_all('ns', '[-1:0]={a,b}'::text[]); --> t|2

---- The empty list: there is nothing to wait for
SELECT advisory.lock_all('ns', '{}'::text[]), advisory.try_lock_all('ns', '{}'::bigint[]),
       advisory.xact_lock_all('ns', '{}'::uuid[]), advisory.try_xact_lock_all('ns', '{}'::text[]);
--> t|t|t|t

---- An untyped list, as drivers send it
SELECT advisory.lock_all('ns', '{a,"b c",NULL-and-void}'); --> t
SELECT name FROM pg_temp.mine ORDER BY name COLLATE "C";
--> NULL-and-void
--> a
--> b c
SELECT advisory.unlock_all('ns', ARRAY['a', 'b c', 'NULL-and-void']); --> 3
SELECT advisory.lock_all('ns', '{}'), advisory.try_lock_all('ns', '{a}'),
    advisory.unlock_all('ns', 'a'); --> t|t|1
\set VERBOSITY sqlstate
SELECT advisory.lock_all('ns', 'a'); --> ERROR:  22P02
SELECT advisory.try_lock_all('ns', '{a'); --> ERROR:  22P02
SELECT advisory.xact_lock_all('ns', '{a,NULL}'); --> ERROR:  22004
SELECT advisory.try_xact_lock_all('ns', '{a,""}'); --> ERROR:  22023
\set VERBOSITY default

---- Savepoints: the transaction-level locks of a call belong to the caller's
BEGIN;
SAVEPOINT s;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']); --> t
ROLLBACK TO s;
SELECT count(*) FROM pg_temp.mine; --> 0
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']); --> t
SAVEPOINT t;
ROLLBACK TO t;
SELECT count(*) FROM pg_temp.mine; --> 2
COMMIT;

---- One of them is taken: nothing stays locked but what was before
-- (By a prepared transaction, which is another holder than this session.)

BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['taken']); --> t
PREPARE TRANSACTION 'regress_advisory';
SELECT advisory.lock('ns', 'f'); --> t
-- With enough others some come before it in key order, and some after.
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> f
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms'); --> f
SELECT name FROM pg_temp.mine; --> f
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['f', 'g']); --> t
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> f
SELECT advisory.try_xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms'); --> f
SELECT name FROM pg_temp.mine ORDER BY name;
--> f
--> g
-- The error names the lock that could not be obtained.
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'taken'], '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
--extension> DETAIL:  Prepared transaction "regress_advisory" holds it in exclusive mode.
--extension> HINT:  To end the prepared transaction that holds it: COMMIT PREPARED 'regress_advisory' or ROLLBACK PREPARED 'regress_advisory'.
--portable> DETAIL:  A prepared transaction holds it in exclusive mode.
--portable> HINT:  To see the prepared transaction that holds it: SELECT * FROM pg_catalog.pg_prepared_xacts.
ROLLBACK;
\set VERBOSITY terse
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken'], '0');
--> ERROR:  could not obtain advisory lock "ns/taken" without waiting
SELECT name FROM pg_temp.mine; --> f
-- Another error in the wait takes back as much.
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '50ms';
\set VERBOSITY sqlstate
SELECT advisory.lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> ERROR:  57014
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'taken']); --> ERROR:  57014
\set VERBOSITY default
RESET statement_timeout;
RESET jit;
SELECT name FROM pg_temp.mine; --> f
ROLLBACK PREPARED 'regress_advisory';
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b', 'taken']); --> t
SELECT pg_temp.released(); --> a exclusive 1, b exclusive 1, f exclusive 1, taken exclusive 1

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
