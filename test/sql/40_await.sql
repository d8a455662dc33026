-- await_lock(): where it may be called and where not, and that the session stays usable either way.
-- The isolation tests show that it does not hold up other sessions meanwhile.
-- PL/pgSQL's context is of no interest here.
\pset format unaligned \pset tuples_only on
\set SHOW_CONTEXT never

CREATE VIEW pg_temp.mine AS
    SELECT name FROM advisory.locks WHERE pid = pg_backend_pid();
CREATE TABLE items (id int);
INSERT INTO items VALUES (1), (2), (3);

---- Allowed
-- In a READ COMMITTED transaction, before and after queries, and in its savepoints.
BEGIN;
CALL advisory.await_lock('ns', 'a');
SELECT count(*) FROM items; --> 3
CALL advisory.await_lock('ns', 'b');
SAVEPOINT s;
CALL advisory.await_lock('ns', 'c');
SELECT count(*) FROM items; --> 3
ROLLBACK TO s;
CALL advisory.await_lock('ns', 'd');
SELECT count(*) FROM items; --> 3
COMMIT;
-- A cursor that was closed, or is held beyond its transaction, keeps no snapshot.
BEGIN;
DECLARE closed CURSOR FOR SELECT * FROM items;
FETCH closed; --> 1
CLOSE closed;
CALL advisory.await_lock('ns', 'e');
DECLARE held CURSOR WITH HOLD FOR SELECT * FROM items;
COMMIT;
CALL advisory.await_lock('ns', 'f');
FETCH ALL held;
--> 1
--> 2
--> 3
CLOSE held;
-- In procedures and DO blocks, after a COMMIT there, and nested; snapshots work again afterwards.
CREATE PROCEDURE inner_await(name text) LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', name);
    RAISE NOTICE '% sees %', name, (SELECT count(*) FROM items);
END $$;
CREATE PROCEDURE outer_await() LANGUAGE plpgsql AS $$
BEGIN
    CALL inner_await('g');
    INSERT INTO items VALUES (4);
    COMMIT;
    CALL inner_await('h');
    DELETE FROM items WHERE id = 4;
    ROLLBACK;
    FOR i IN 1..2 LOOP
        CALL advisory.await_lock('ns', 'loop over numbers');
    END LOOP;
END $$;
CALL outer_await();
--> NOTICE:  g sees 3
--> NOTICE:  h sees 4
DO $$
BEGIN
    CALL advisory.await_lock('ns', 'i');
    RAISE NOTICE 'i sees %', (SELECT count(*) FROM items);
END $$; --> NOTICE:  i sees 4
-- As an implicit transaction of several statements.
SELECT 1 \; CALL advisory.await_lock('ns', 'j') \; SELECT count(*) FROM items;
--> 1
--> 4
SELECT string_agg(name, ', ' ORDER BY name) FROM pg_temp.mine;
--> a, b, c, d, e, f, g, h, i, j, loop over numbers
SELECT advisory.unlock_all('ns'); --> 12

---- Refused: 25001, with the reason, and with nothing taken, whether the lock is free or not
\set call 'CALL advisory.await_lock(''ns'', ''refused'');'
-- The isolation levels that keep one snapshot.
BEGIN ISOLATION LEVEL REPEATABLE READ;
:call
--> ERROR:  await_lock() cannot wait without a snapshot here
--> DETAIL:  In isolation level REPEATABLE READ or SERIALIZABLE a transaction keeps its snapshot.
--> HINT:  Use isolation level READ COMMITTED.
ROLLBACK;
\set VERBOSITY terse
SET default_transaction_isolation = serializable;
:call
--> ERROR:  await_lock() cannot wait without a snapshot here
RESET default_transaction_isolation;
\set VERBOSITY default
-- A transaction that has written, or locked rows.
BEGIN;
UPDATE items SET id = id;
:call
--> ERROR:  await_lock() cannot wait without a snapshot here
--> DETAIL:  The transaction has a transaction ID, because it has already written or locked rows.
--> HINT:  Make the CALL the first statement of the transaction.
ROLLBACK;
BEGIN;
\set VERBOSITY terse
SELECT id FROM items ORDER BY id LIMIT 1 FOR UPDATE; --> 1
:call
--> ERROR:  await_lock() cannot wait without a snapshot here
ROLLBACK;
\set VERBOSITY default
-- An open cursor, and other ways to keep a snapshot.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM items;
:call
--> ERROR:  await_lock() cannot wait without a snapshot here
--> DETAIL:  The transaction has an open cursor or is inside a loop over a query.
--> HINT:  Close the cursor, or CALL it outside of the loop.
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM items;
FETCH c; --> 1
SAVEPOINT s;
\set VERBOSITY terse
:call
--> ERROR:  await_lock() cannot wait without a snapshot here
-- The savepoint brings the transaction back, cursor and all.
ROLLBACK TO s;
FETCH c; --> 2
CLOSE c;
CALL advisory.await_lock('ns', 'after the cursor');
SELECT count(*) FROM items; --> 4
COMMIT;
SELECT advisory.unlock('ns', 'after the cursor'); --> t
-- A loop over a query.
DO $$
DECLARE
    item record;
BEGIN
    FOR item IN SELECT id FROM items LOOP
        CALL advisory.await_lock('ns', 'refused');
    END LOOP;
END $$; --> ERROR:  await_lock() cannot wait without a snapshot here
-- A block with an EXCEPTION clause: even when the error is caught, in which case the block goes on.
DO $$
BEGIN
    BEGIN
        CALL advisory.await_lock('ns', 'refused');
    EXCEPTION WHEN active_sql_transaction THEN
        RAISE NOTICE 'caught: %', SQLERRM;
    END;
    RAISE NOTICE 'sees %', (SELECT count(*) FROM items);
    CALL advisory.await_lock('ns', 'after the block');
    RAISE NOTICE 'holds %', advisory.unlock('ns', 'after the block');
END $$;
--> NOTICE:  caught: await_lock() cannot wait without a snapshot here
--> NOTICE:  sees 4
--> NOTICE:  holds t
\set VERBOSITY default
DO $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'not this one';
END $$;
--> ERROR:  await_lock() cannot wait without a snapshot here
--> DETAIL:  The call is at a place where a procedure cannot commit: inside a query, a function, EXECUTE, a block with an EXCEPTION clause, a procedure with SECURITY DEFINER or SET, or a DO block or procedure in an explicit transaction.
--> HINT:  CALL it outside of these, for example at top level.
\set VERBOSITY terse
-- Inside a function or a query.
CREATE FUNCTION await_in_function() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
END $$;
SELECT await_in_function(); --> ERROR:  await_lock() cannot wait without a snapshot here
DO $$
BEGIN
    PERFORM await_in_function();
END $$; --> ERROR:  await_lock() cannot wait without a snapshot here
-- A DO block or procedure in an explicit transaction, or a procedure with a SET clause.
BEGIN;
DO $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
END $$; --> ERROR:  await_lock() cannot wait without a snapshot here
ROLLBACK;
BEGIN;
CALL inner_await('refused'); --> ERROR:  await_lock() cannot wait without a snapshot here
ROLLBACK;
CREATE PROCEDURE await_with_set() LANGUAGE plpgsql SET work_mem = '1MB' AS $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
END $$;
CALL await_with_set(); --> ERROR:  await_lock() cannot wait without a snapshot here
-- Dynamic SQL, and a procedure in SQL, which run what they are given as a query.
DO $$
BEGIN
    EXECUTE 'CALL advisory.await_lock(''ns'', ''refused'')';
END $$; --> ERROR:  await_lock() cannot wait without a snapshot here
CREATE PROCEDURE await_in_sql() LANGUAGE sql AS $$ CALL advisory.await_lock('ns', 'refused') $$;
CALL await_in_sql(); --> ERROR:  await_lock() cannot wait without a snapshot here
-- A trigger.
CREATE FUNCTION await_in_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
    RETURN NEW;
END $$;
CREATE TRIGGER await BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION await_in_trigger();
INSERT INTO items VALUES (5); --> ERROR:  await_lock() cannot wait without a snapshot here
DROP TRIGGER await ON items;
-- Each of the four procedures refuses, and its error has its name.
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_lock_shared('ns', 42);
--> ERROR:  await_lock_shared() cannot wait without a snapshot here
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_lock_key(42); --> ERROR:  await_lock_key() cannot wait without a snapshot here
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_lock_shared_key(42);
--> ERROR:  await_lock_shared_key() cannot wait without a snapshot here
ROLLBACK;
\set VERBOSITY sqlstate
BEGIN ISOLATION LEVEL REPEATABLE READ;
:call
--> ERROR:  25001
ROLLBACK;
BEGIN;
UPDATE items SET id = id;
:call
--> ERROR:  25001
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM items;
:call
--> ERROR:  25001
ROLLBACK;
SELECT await_in_function(); --> ERROR:  25001
-- An exported snapshot is one that others rely on.
BEGIN;
SELECT pg_export_snapshot() IS NOT NULL AS exported; --> t
:call
--> ERROR:  25001
ROLLBACK;
\set VERBOSITY default

---- Nothing of it has left anything behind: the session waits, reads and writes as before
SELECT * FROM pg_temp.mine;
:call
SELECT name FROM pg_temp.mine; --> refused
SELECT advisory.unlock('ns', 'refused'); --> t
UPDATE items SET id = id + 1;
SELECT sum(id) FROM items; --> 14

---- Timed out (by a prepared transaction's lock): the error of lock(), and a session that goes on
BEGIN;
SELECT advisory.xact_lock('ns', 'taken'); --> t
PREPARE TRANSACTION 'regress_advisory';
CALL advisory.await_lock('ns', 'taken', '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
--> DETAIL:  Prepared transaction "regress_advisory" holds it in exclusive mode.
--> HINT:  To end the prepared transaction that holds it: COMMIT PREPARED 'regress_advisory' or ROLLBACK PREPARED 'regress_advisory'.
\set VERBOSITY terse
SET lock_timeout = '1ms';
CALL advisory.await_lock('ns', 'taken');
--> ERROR:  could not obtain advisory lock "ns/taken" within lock_timeout of 1 ms
RESET lock_timeout;
CREATE PROCEDURE await_taken() LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', 'taken', '1ms');
END $$;
\set VERBOSITY sqlstate
CALL await_taken(); --> ERROR:  55P03
\set VERBOSITY terse
BEGIN;
CALL advisory.await_lock('ns', 'taken', '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
SELECT 1 AS failed;
--> ERROR:  current transaction is aborted, commands ignored until end of transaction block
ROLLBACK;
BEGIN;
SAVEPOINT s;
CALL advisory.await_lock('ns', 'taken', '1ms');
--> ERROR:  could not obtain advisory lock "ns/taken" within 1 ms
ROLLBACK TO s;
SELECT count(*) FROM items; --> 4
CALL advisory.await_lock('ns', 'free');
COMMIT;
SELECT name FROM pg_temp.mine; --> free
SELECT advisory.unlock('ns', 'free'); --> t
ROLLBACK PREPARED 'regress_advisory';

DROP PROCEDURE inner_await, outer_await, await_with_set, await_in_sql, await_taken;
DROP FUNCTION await_in_function, await_in_trigger;
DROP TABLE items;
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
