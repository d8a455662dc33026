-- The WARNING about a SELECT of nothing but transaction-level functions outside a transaction
-- block.
\pset format unaligned \pset tuples_only on

---- Warns: a bare call of each function, and names the session-level one
SELECT advisory.xact_lock('n', 'a');
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> DETAIL:  The locks that it takes are released at the end of the statement.
--> HINT:  BEGIN a transaction first, or use the session-level function advisory.lock(). To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe "Barrier".
--> t
-- The others as this one.
\set VERBOSITY terse
SELECT advisory.xact_lock('n', 1::bigint, '5s') AS locked;
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> t
SELECT advisory.xact_lock('n', '00000000-0000-0000-0000-000000000001'::uuid);
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> t
SELECT advisory.xact_lock_shared('n', 'a');
--> WARNING:  advisory.xact_lock_shared() has no lasting effect outside a transaction block
--> t
SELECT advisory.try_xact_lock('n', 'a');
--> WARNING:  advisory.try_xact_lock() has no lasting effect outside a transaction block
--> t
SELECT advisory.try_xact_lock_shared('n', 'a');
--> WARNING:  advisory.try_xact_lock_shared() has no lasting effect outside a transaction block
--> t
SELECT advisory.xact_lock_key(1);
--> WARNING:  advisory.xact_lock_key() has no lasting effect outside a transaction block
--> t
SELECT advisory.xact_lock_shared_key(1);
--> WARNING:  advisory.xact_lock_shared_key() has no lasting effect outside a transaction block
--> t
SELECT advisory.try_xact_lock_key(1, '1s', 'label');
--> WARNING:  advisory.try_xact_lock_key() has no lasting effect outside a transaction block
--> t
\set VERBOSITY default
SELECT advisory.try_xact_lock_shared_key(1);
--> WARNING:  advisory.try_xact_lock_shared_key() has no lasting effect outside a transaction block
--> DETAIL:  The locks that it takes are released at the end of the statement.
--> HINT:  BEGIN a transaction first, or use the session-level function advisory.try_lock_shared_key(). To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe "Barrier".
--> t
\set VERBOSITY terse
SELECT advisory.xact_lock_all('n', ARRAY['a', 'b']);
--> WARNING:  advisory.xact_lock_all() has no lasting effect outside a transaction block
--> t
SELECT advisory.try_xact_lock_all('n', '{a,b}');
--> WARNING:  advisory.try_xact_lock_all() has no lasting effect outside a transaction block
--> t
SELECT advisory.xact_acquire('n', 's', 2);
--> WARNING:  advisory.xact_acquire() has no lasting effect outside a transaction block
--> 1
SELECT advisory.xact_acquire_many('n', 's', 2, 2);
--> WARNING:  advisory.xact_acquire_many() has no lasting effect outside a transaction block
--> {1,2}
SELECT advisory.try_xact_acquire_many('n', 's', 2, 1);
--> WARNING:  advisory.try_xact_acquire_many() has no lasting effect outside a transaction block
--> {1}
\set VERBOSITY default
SELECT advisory.try_xact_acquire('n', 's', 2);
--> WARNING:  advisory.try_xact_acquire() has no lasting effect outside a transaction block
--> DETAIL:  The locks that it takes are released at the end of the statement.
--> HINT:  BEGIN a transaction first, or use the session-level function advisory.try_acquire(). To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe "Barrier".
--> 1

-- The lock is not held after the statement.
SELECT advisory.holds('n', 'a'); --> f

-- The SQLSTATE is that of SET LOCAL outside a transaction block.
\set VERBOSITY sqlstate
SELECT advisory.xact_lock('n', 'a');
--> WARNING:  25P01
--> t
SET LOCAL work_mem = '1MB'; --> WARNING:  25P01
\set VERBOSITY terse

-- Whatever their arguments compute by the server's own functions, and whatever the search path is.
SELECT advisory.xact_lock('n', lower('A') || random()::text) AS locked;
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> t
SELECT advisory.xact_lock_key(advisory.key('n', 'a'));
--> WARNING:  advisory.xact_lock_key() has no lasting effect outside a transaction block
--> t
SET search_path = advisory;
SELECT xact_lock('n', 'a') AS "with no schema";
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> t
RESET search_path;

-- A wrong argument is that error only.
SELECT advisory.xact_lock('n', 'a', '-1s'); --> ERROR:  timeout must not be negative

\set VERBOSITY default
-- If session-level locks are off, the hint does not recommend them.
SET advisory_ext.session_locks = off;
SELECT advisory.xact_lock('n', 'a');
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> DETAIL:  The locks that it takes are released at the end of the statement.
--> HINT:  BEGIN a transaction first. To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe "Barrier".
--> t
RESET advisory_ext.session_locks;

---- Does not warn: bare statements that it does not recognize, with several calls, functions that
---- return rows, and EXECUTE
SELECT advisory.xact_lock('n', 'a'), advisory.xact_lock('n', 'b'),
    advisory.try_xact_acquire('n', 's', 1); --> t|t|1
SELECT advisory.try_xact_lock_any('n', ARRAY['a', 'b', 'c'], 2);
--> a
--> b
SELECT advisory.try_xact_acquire_any('n', ARRAY['a', 'b', 'c'], 1, 2);
--> (a,1)
--> (b,1)
SELECT advisory.try_xact_lock_any('n', ARRAY['a', 'b']),
    advisory.try_xact_lock_any('n', ARRAY[1, 2]::bigint[]); --> a|1
PREPARE bare(text) AS SELECT advisory.try_xact_lock('n', $1);
EXECUTE bare('a'); --> t
SET plan_cache_mode = force_generic_plan;
EXECUTE bare('c'); --> t
RESET plan_cache_mode;

---- Does not warn: in a transaction block
BEGIN;
SELECT advisory.xact_lock('n', 'in a block'); --> t
SAVEPOINT s;
SELECT advisory.xact_lock('n', 'in a block'); --> t
EXECUTE bare('a'); --> t
SELECT advisory.holds('n', 'in a block'); --> t
COMMIT;
-- Statements that are sent together are one transaction, as is what follows a BEGIN among them.
SELECT advisory.xact_lock('n', 'first') \; SELECT advisory.holds('n', 'first');
--> t
--> t
SELECT 1 AS one \; SELECT advisory.xact_lock('n', 'last');
--> 1
--> t
BEGIN \; SELECT advisory.xact_lock('n', 'b') \; COMMIT; --> t
\set AUTOCOMMIT off
SELECT advisory.xact_lock('n', 'without autocommit'); --> t
COMMIT;
\set AUTOCOMMIT on

---- Does not warn: other statements, which may do something under the lock
CREATE TABLE regress_t (i int);
INSERT INTO regress_t VALUES (1);
SELECT advisory.xact_lock('n', 'a'), 1 AS one; --> t|1
SELECT advisory.xact_lock('n', 'a'), count(*) FROM regress_t; --> t|1
SELECT advisory.xact_lock('n', 'a'), (SELECT i FROM regress_t) AS i; --> t|1
SELECT advisory.xact_lock('n', (SELECT i::text FROM regress_t)) AS locked; --> t
SELECT advisory.xact_lock('n', 'a'), advisory.lock('n', 'a'), advisory.unlock('n', 'a'); --> t|t|t
SELECT advisory.lock('n', 'a'), advisory.xact_lock('n', 'a'), advisory.unlock('n', 'a'); --> t|t|t
SELECT advisory.xact_lock('n', 'a') IS TRUE AS locked; --> t
SELECT NOT advisory.xact_lock('n', 'a') AS failed; --> f
SELECT advisory.xact_lock('n', 'a')::text AS locked; --> true
SELECT CASE WHEN advisory.xact_lock('n', 'a') THEN 'locked' END AS locked; --> locked
SELECT coalesce(advisory.try_xact_lock('n', 'a'), false) AS locked; --> t
SELECT advisory.xact_lock('n', 'a') FROM regress_t; --> t
SELECT advisory.xact_lock('n', 'a') FROM (SELECT 1) AS s; --> t
SELECT advisory.xact_lock('n', 'a') FROM (VALUES (1)) AS v; --> t
SELECT advisory.xact_lock('n', 'a') FROM generate_series(1, 1); --> t
SELECT advisory.xact_lock('n', 'a') FROM lower('A'); --> t
SELECT * FROM (SELECT advisory.xact_lock('n', 'a')) AS s; --> t
SELECT * FROM advisory.xact_lock('n', 'a'); --> t
SELECT * FROM advisory.try_xact_lock_any('n', ARRAY['a']); --> a
SELECT advisory.xact_lock('n', 'a') WHERE pg_backend_pid() > 0; --> t
SELECT 1 AS one WHERE advisory.xact_lock('n', 'a'); --> 1
SELECT i FROM regress_t WHERE advisory.xact_lock('n', i); --> 1
SELECT advisory.xact_lock('n', 'a') ORDER BY 1; --> t
SELECT advisory.xact_lock('n', 'a') LIMIT 1; --> t
SELECT DISTINCT advisory.xact_lock('n', 'a'); --> t
SELECT advisory.try_xact_lock_any('n', ARRAY['a']), 1 AS one; --> a|1
SELECT advisory.try_xact_lock_any('n', ARRAY['a']) || '' AS locked; --> a
VALUES (advisory.xact_lock('n', 'a')); --> t
VALUES (advisory.xact_lock('n', 'a')), (advisory.xact_lock('n', 'b'));
--> t
--> t
SELECT advisory.xact_lock('n', 'a') UNION ALL SELECT advisory.xact_lock('n', 'b');
--> t
--> t
WITH c AS (SELECT advisory.xact_lock('n', 'a')) SELECT * FROM c; --> t
WITH c AS NOT MATERIALIZED (SELECT advisory.xact_lock('n', 'a')) SELECT * FROM c; --> t
WITH c AS (SELECT advisory.xact_lock('n', 'a') AS locked) UPDATE regress_t SET i = 2 FROM c
    WHERE locked RETURNING i; --> 2
WITH c AS (INSERT INTO regress_t VALUES (3)) SELECT advisory.xact_lock('n', 'a'); --> t
CREATE VIEW regress_v AS SELECT advisory.xact_lock('n', 'a');
SELECT * FROM regress_v; --> t
INSERT INTO regress_t SELECT 4 WHERE advisory.xact_lock('n', 'a');
SELECT advisory.xact_lock('n', 'a') INTO regress_into;
CREATE TABLE regress_as AS SELECT advisory.xact_lock('n', 'a');
CREATE TABLE regress_execute AS EXECUTE bare('a');
COPY (SELECT advisory.xact_lock('n', 'a')) TO STDOUT; --> t
EXPLAIN ANALYZE SELECT advisory.xact_lock('n', 'a') \g /dev/null
EXPLAIN ANALYZE EXECUTE bare('a') \g /dev/null
DECLARE c CURSOR WITH HOLD FOR SELECT advisory.xact_lock('n', 'a');
FETCH c; --> t
CLOSE c;

---- Does not warn: in functions
CREATE SCHEMA regress_app;
CREATE FUNCTION regress_app.plan(query text) RETURNS SETOF text
    LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN VERBOSE ' || query; END $$;
-- The planner inlines this one, so that the plan is that of a bare call.
CREATE FUNCTION regress_app.xact_lock(text, text) RETURNS boolean
    LANGUAGE sql AS 'SELECT advisory.xact_lock($1, $2)';
SELECT regress_app.xact_lock('n', 'a'); --> t
SELECT count(*) FROM regress_app.plan($$SELECT regress_app.xact_lock('n', 'a')$$) AS plan
    WHERE plan ~ 'Output: advisory\.xact_lock'; --> 1
SET search_path = regress_app;
SELECT xact_lock('n', 'a'); --> t
RESET search_path;
PREPARE inlined AS SELECT regress_app.xact_lock('n', 'a');
EXECUTE inlined; --> t
CREATE FUNCTION regress_app.atomic() RETURNS boolean
    LANGUAGE sql BEGIN ATOMIC SELECT advisory.xact_lock('n', 'a'); END;
SELECT regress_app.atomic(); --> t
CREATE FUNCTION regress_app.not_inlined() RETURNS boolean
    LANGUAGE sql AS 'SELECT advisory.xact_lock($$n$$, $$a$$); SELECT true';
SELECT regress_app.not_inlined(); --> t
CREATE FUNCTION regress_app.in_plpgsql() RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
    locked boolean;
    cursor CURSOR FOR SELECT advisory.xact_lock('n', 'a');
BEGIN
    PERFORM advisory.xact_lock('n', 'a');
    locked := advisory.xact_lock('n', 'a');
    SELECT advisory.xact_lock('n', 'a') INTO locked;
    EXECUTE 'SELECT advisory.xact_lock($1, $2)' INTO locked USING 'n', 'a';
    EXECUTE 'EXECUTE bare($$a$$)';
    FOR locked IN SELECT advisory.xact_lock('n', 'a') LOOP END LOOP;
    OPEN cursor;
    FETCH cursor INTO locked;
    BEGIN
        PERFORM advisory.xact_lock('n', 'a');
    EXCEPTION WHEN OTHERS THEN
    END;
    RETURN 'a';
END $f$;
SELECT regress_app.in_plpgsql(); --> a
-- A function of one's own is other work, also as an argument.
SELECT advisory.xact_lock('n', regress_app.in_plpgsql()); --> t
PREPARE calls AS SELECT regress_app.in_plpgsql();
EXECUTE calls; --> a
PREPARE bare_a AS SELECT advisory.xact_lock('n', 'a');
DO $$ BEGIN
    PERFORM advisory.xact_lock('n', 'a');
    PERFORM regress_app.in_plpgsql();
    EXECUTE 'EXECUTE bare_a';
END $$;
CREATE PROCEDURE regress_app.procedure() LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory.xact_lock('n', 'a');
    COMMIT;
    PERFORM advisory.xact_lock('n', 'a');
END $$;
CALL regress_app.procedure();
CREATE PROCEDURE regress_app.sql_procedure()
    LANGUAGE sql AS 'SELECT advisory.xact_lock($$n$$, $$a$$)';
CALL regress_app.sql_procedure();
CALL advisory.run('n', 'job', 'SELECT advisory.xact_lock($$n$$, $$a$$)'); --> t
CREATE FUNCTION regress_app.trigger() RETURNS trigger
    LANGUAGE plpgsql AS $$ BEGIN PERFORM advisory.xact_lock('n', 'a'); RETURN NEW; END $$;
CREATE TRIGGER regress_trigger BEFORE INSERT ON regress_t FOR EACH ROW
    EXECUTE FUNCTION regress_app.trigger();
INSERT INTO regress_t VALUES (5);

---- Does not warn: session-level functions, and where it is off
SELECT advisory.lock('n', 'a'), advisory.unlock('n', 'a'); --> t|t
SET advisory_ext.warn_no_transaction = off;
SELECT advisory.xact_lock('n', 'a'); --> t
EXECUTE bare('a'); --> t
RESET advisory_ext.warn_no_transaction;
-- Every role can turn it off.
CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
\set VERBOSITY terse
SELECT advisory.xact_lock('n', 'a');
--> WARNING:  advisory.xact_lock() has no lasting effect outside a transaction block
--> t
SET advisory_ext.warn_no_transaction = off;
SELECT advisory.xact_lock('n', 'a'); --> t
RESET ROLE;
DROP ROLE regress_advisory_role;

\set VERBOSITY default
---- error: the same statements fail, and nothing is locked
SET advisory_ext.warn_no_transaction = error;
SELECT advisory.xact_lock('n', 'refused');
--> ERROR:  advisory.xact_lock() has no lasting effect outside a transaction block
--> DETAIL:  The locks that it takes are released at the end of the statement.
--> HINT:  BEGIN a transaction first, or use the session-level function advisory.lock(). To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe "Barrier".
\set VERBOSITY terse
SELECT advisory.try_xact_lock_all('n', '{refused}');
--> ERROR:  advisory.try_xact_lock_all() has no lasting effect outside a transaction block
SELECT advisory.xact_acquire('n', 's', 2);
--> ERROR:  advisory.xact_acquire() has no lasting effect outside a transaction block
SELECT acquired FROM advisory.stats WHERE namespace = 'n' AND name = 'refused';
\set VERBOSITY sqlstate
SELECT advisory.try_xact_lock_key(1); --> ERROR:  25P01
\set VERBOSITY default
-- A transaction, a function and other work are as before.
BEGIN;
SELECT advisory.xact_lock('n', 'in a block'); --> t
COMMIT;
CALL regress_app.procedure();
SELECT advisory.xact_lock('n', 'a'), count(*) FROM regress_t; --> t|4
-- Its values.
SET advisory_ext.warn_no_transaction = false;
SELECT advisory.xact_lock('n', 'a'); --> t
SET advisory_ext.warn_no_transaction = yes;
SHOW advisory_ext.warn_no_transaction; --> on
SET advisory_ext.warn_no_transaction = maybe;
--> ERROR:  invalid value for parameter "advisory_ext.warn_no_transaction": "maybe"
--> HINT:  Available values: on, off, error.
RESET advisory_ext.warn_no_transaction;

DEALLOCATE ALL;
SET client_min_messages = warning;
DROP SCHEMA regress_app CASCADE;
DROP TABLE regress_t, regress_into, regress_as, regress_execute;
DROP VIEW regress_v;
