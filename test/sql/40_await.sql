-- await_lock(): where it may be called and where not, and that the session stays usable either way.
-- The isolation tests show that it does not hold up other sessions meanwhile.
-- PL/pgSQL's context is of no interest here.
\set SHOW_CONTEXT never

CREATE VIEW pg_temp.mine AS
    SELECT namespace, name, mode, scope FROM advisory.locks WHERE pid = pg_backend_pid();
CREATE TABLE items (id int);
INSERT INTO items VALUES (1), (2), (3);

---- Every form, at top level

CALL advisory.await_lock('ns', 'text');
CALL advisory.await_lock('ns', 42, '1s');
CALL advisory.await_lock('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL);
CALL advisory.await_lock_shared('ns', 'text');
CALL advisory.await_lock_shared('ns', 42, '1s');
CALL advisory.await_lock_shared('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
CALL advisory.await_lock_key(42, '1s', 'label');
CALL advisory.await_lock_shared_key(-42);
SELECT * FROM pg_temp.mine ORDER BY name, mode;
SELECT advisory.unlock_all('ns'), advisory.unlock_key(42), advisory.unlock_shared_key(-42);

---- Allowed

-- In a READ COMMITTED transaction, before and after queries, and in its savepoints.
BEGIN;
CALL advisory.await_lock('ns', 'a');
SELECT count(*) FROM items;
CALL advisory.await_lock('ns', 'b');
SAVEPOINT s;
CALL advisory.await_lock('ns', 'c');
SELECT count(*) FROM items;
ROLLBACK TO s;
CALL advisory.await_lock('ns', 'd');
SELECT count(*) FROM items;
COMMIT;
-- A cursor that was closed, or is held beyond its transaction, keeps no snapshot.
BEGIN;
DECLARE closed CURSOR FOR SELECT * FROM items;
FETCH closed;
CLOSE closed;
CALL advisory.await_lock('ns', 'e');
DECLARE held CURSOR WITH HOLD FOR SELECT * FROM items;
COMMIT;
CALL advisory.await_lock('ns', 'f');
FETCH ALL held;
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
DO $$
BEGIN
    CALL advisory.await_lock('ns', 'i');
    RAISE NOTICE 'i sees %', (SELECT count(*) FROM items);
END $$;
-- As an implicit transaction of several statements.
SELECT 1 \; CALL advisory.await_lock('ns', 'j') \; SELECT count(*) FROM items;
SELECT string_agg(name, ', ' ORDER BY name) FROM pg_temp.mine;
SELECT advisory.unlock_all('ns');

---- Refused: 25001, with the reason, and with nothing taken; whether the lock is free makes no difference

\set call 'CALL advisory.await_lock(''ns'', ''refused'');'
-- The isolation levels that keep one snapshot.
BEGIN ISOLATION LEVEL REPEATABLE READ;
:call
ROLLBACK;
SET default_transaction_isolation = serializable;
:call
RESET default_transaction_isolation;
-- A transaction that has written, or locked rows.
BEGIN;
UPDATE items SET id = id;
:call
ROLLBACK;
BEGIN;
SELECT id FROM items ORDER BY id LIMIT 1 FOR UPDATE;
:call
ROLLBACK;
-- An open cursor, and other ways to keep a snapshot.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM items;
:call
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM items;
FETCH c;
SAVEPOINT s;
:call
-- The savepoint brings the transaction back, cursor and all.
ROLLBACK TO s;
FETCH c;
CLOSE c;
CALL advisory.await_lock('ns', 'after the cursor');
SELECT count(*) FROM items;
COMMIT;
SELECT advisory.unlock('ns', 'after the cursor');
-- A loop over a query.
DO $$
DECLARE
    item record;
BEGIN
    FOR item IN SELECT id FROM items LOOP
        CALL advisory.await_lock('ns', 'refused');
    END LOOP;
END $$;
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
DO $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'not this one';
END $$;
-- Inside a function or a query.
CREATE FUNCTION await_in_function() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
END $$;
SELECT await_in_function();
DO $$
BEGIN
    PERFORM await_in_function();
END $$;
-- A DO block or procedure in an explicit transaction, or a procedure with a SET clause.
BEGIN;
DO $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
END $$;
ROLLBACK;
BEGIN;
CALL inner_await('refused');
ROLLBACK;
CREATE PROCEDURE await_with_set() LANGUAGE plpgsql SET work_mem = '1MB' AS $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
END $$;
CALL await_with_set();
-- Dynamic SQL, and a procedure in SQL, which run what they are given as a query.
DO $$
BEGIN
    EXECUTE 'CALL advisory.await_lock(''ns'', ''refused'')';
END $$;
CREATE PROCEDURE await_in_sql() LANGUAGE sql AS $$ CALL advisory.await_lock('ns', 'refused') $$;
CALL await_in_sql();
-- A trigger.
CREATE FUNCTION await_in_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', 'refused');
    RETURN NEW;
END $$;
CREATE TRIGGER await BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION await_in_trigger();
INSERT INTO items VALUES (5);
DROP TRIGGER await ON items;
-- Each of the four procedures refuses, and its error has its name.
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_lock_shared('ns', 42);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_lock_key(42);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_lock_shared_key(42);
ROLLBACK;
\set VERBOSITY sqlstate
BEGIN ISOLATION LEVEL REPEATABLE READ;
:call
ROLLBACK;
BEGIN;
UPDATE items SET id = id;
:call
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM items;
:call
ROLLBACK;
SELECT await_in_function();
\set VERBOSITY default
-- An exported snapshot is one that others rely on.
\set VERBOSITY sqlstate
BEGIN;
SELECT pg_export_snapshot() IS NOT NULL AS exported;
:call
ROLLBACK;
\set VERBOSITY default

---- Nothing of it has left anything behind: the session waits, reads and writes as before

SELECT * FROM pg_temp.mine;
:call
SELECT name FROM pg_temp.mine;
SELECT advisory.unlock('ns', 'refused');
UPDATE items SET id = id + 1;
SELECT sum(id) FROM items;

---- Timed out (by a prepared transaction's lock): the error of lock(), and a session that goes on

BEGIN;
SELECT advisory.xact_lock('ns', 'taken');
PREPARE TRANSACTION 'regress_advisory';
CALL advisory.await_lock('ns', 'taken', '1ms');
CALL advisory.await_lock('ns', 'taken', '0');
CALL advisory.await_lock_shared('ns', 'taken', '1ms');
SET lock_timeout = '1ms';
CALL advisory.await_lock('ns', 'taken');
RESET lock_timeout;
SET statement_timeout = '50ms';
CALL advisory.await_lock('ns', 'taken');
RESET statement_timeout;
CREATE PROCEDURE await_taken() LANGUAGE plpgsql AS $$
BEGIN
    CALL advisory.await_lock('ns', 'taken', '1ms');
END $$;
\set VERBOSITY sqlstate
CALL await_taken();
\set VERBOSITY default
BEGIN;
CALL advisory.await_lock('ns', 'taken', '1ms');
SELECT 1 AS failed;
ROLLBACK;
BEGIN;
SAVEPOINT s;
CALL advisory.await_lock('ns', 'taken', '1ms');
ROLLBACK TO s;
SELECT count(*) FROM items;
CALL advisory.await_lock('ns', 'free');
COMMIT;
SELECT name FROM pg_temp.mine;
SELECT advisory.unlock('ns', 'free');
ROLLBACK PREPARED 'regress_advisory';

DROP PROCEDURE inner_await, outer_await, await_with_set, await_in_sql, await_taken;
DROP FUNCTION await_in_function, await_in_trigger;
DROP TABLE items;
SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
