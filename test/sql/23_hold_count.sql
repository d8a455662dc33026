-- hold_count() and holds() tell the truth whatever releases a lock: savepoints, the built-ins,
-- DISCARD, PREPARE.
\pset format unaligned \pset tuples_only on
CREATE FUNCTION pg_temp.state(OUT hold_count integer, OUT holds boolean, OUT shown text)
    LANGUAGE sql AS
    $$ SELECT advisory.hold_count('ns', 'name'), advisory.holds('ns', 'name'),
              (SELECT string_agg(mode || ' ' || scope, ', ' ORDER BY mode)
              FROM advisory.holders('ns', 'name')) $$;

---- Modes and scopes add up
SELECT * FROM pg_temp.state(); --> 0|f|
BEGIN;
SELECT advisory.lock('ns', 'name'), advisory.lock('ns', 'name'), advisory.lock_shared('ns', 'name'),
       advisory.xact_lock('ns', 'name'), advisory.try_xact_lock_shared('ns', 'name'); --> t|t|t|t|t
SELECT * FROM pg_temp.state(); --> 5|t|exclusive session, shared session
-- A failed or empty try is no hold.
SELECT advisory.lock('ns', 'name', '-1s'); --> ERROR:  timeout must not be negative
ROLLBACK;
SELECT * FROM pg_temp.state(); --> 3|t|exclusive session, shared session
SELECT advisory.unlock('ns', 'name'); --> t
SELECT * FROM pg_temp.state(); --> 2|t|exclusive session, shared session
SELECT advisory.unlock_shared('ns', 'name'), advisory.unlock('ns', 'name'); --> t|t
SELECT * FROM pg_temp.state(); --> 0|f|

---- Savepoints: a transaction-level hold ends with its own, a session-level one does not
BEGIN;
SELECT advisory.xact_lock('ns', 'name'); --> t
SAVEPOINT a;
SELECT advisory.xact_lock('ns', 'name'); --> t
SAVEPOINT b;
SELECT advisory.xact_lock('ns', 'name'), advisory.lock('ns', 'name'); --> t|t
SELECT hold_count FROM pg_temp.state(); --> 4
ROLLBACK TO b;
SELECT hold_count AS back_to_b FROM pg_temp.state(); --> 3
RELEASE b;
SAVEPOINT c;
SELECT advisory.xact_lock('ns', 'name'); --> t
RELEASE c;
SELECT hold_count AS released_c FROM pg_temp.state(); --> 4
-- A later savepoint of the same depth has nothing to do with it.
SAVEPOINT other;
ROLLBACK TO other;
SELECT hold_count AS back_to_other FROM pg_temp.state(); --> 4
-- The holds of a released savepoint go to the savepoint around it, and end with that.
ROLLBACK TO a;
SELECT hold_count AS back_to_a FROM pg_temp.state(); --> 2
SAVEPOINT d;
SELECT advisory.xact_lock('ns', 'name'); --> t
SELECT 1/0; --> ERROR:  division by zero
ROLLBACK TO d;
SELECT hold_count AS after_error FROM pg_temp.state(); --> 2
COMMIT;
SELECT * FROM pg_temp.state(); --> 1|t|exclusive session
SELECT advisory.unlock('ns', 'name'); --> t
-- A hold of a released savepoint outlives a later one of the same depth also if it is the lock's
-- only one.
BEGIN;
SAVEPOINT e;
SELECT advisory.xact_lock('ns', 'name'); --> t
RELEASE e;
SAVEPOINT other;
ROLLBACK TO other;
SELECT * FROM pg_temp.state(); --> 1|t|exclusive transaction
COMMIT;
-- The same in PL/pgSQL's blocks.
DO $$
BEGIN
    PERFORM advisory.xact_lock('ns', 'name');
    BEGIN
        PERFORM advisory.xact_lock('ns', 'name'), advisory.xact_lock_shared('ns', 'name');
        RAISE NOTICE 'within: %', advisory.hold_count('ns', 'name');
        RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN
        RAISE NOTICE 'after: %', advisory.hold_count('ns', 'name');
    END;
    COMMIT;
    RAISE NOTICE 'committed: %', advisory.hold_count('ns', 'name');
END $$;
--> NOTICE:  within: 3
--> NOTICE:  after: 1
--> NOTICE:  committed: 0

---- The built-ins release, and take
SELECT advisory.lock('ns', 'name'), advisory.lock('ns', 'name'),
    pg_advisory_unlock(advisory.key('ns', 'name')); --> t|t|t
SELECT * FROM pg_temp.state(); --> 1|t|exclusive session
SELECT pg_advisory_unlock(advisory.key('ns', 'name')); --> t
SELECT * FROM pg_temp.state(); --> 0|f|
SELECT advisory.unlock('ns', 'name');
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/name"
--> f
-- Held, but not through this extension.
SELECT pg_advisory_lock(advisory.key('ns', 'built-in')); -->
SELECT advisory.hold_count('ns', 'built-in'), advisory.holds('ns', 'built-in'),
       (SELECT acquired_at FROM advisory.holders('ns', 'built-in')); --> 0|t|
SELECT advisory.lock('ns', 'built-in'), advisory.hold_count('ns', 'built-in'); --> t|1
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.hold_count('ns', 'built-in'), advisory.holds('ns', 'built-in'); --> 0|f
-- A transaction-level hold is no affair of pg_advisory_unlock_all().
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), advisory.lock('ns', 'name'); --> t|t
SELECT pg_advisory_unlock_all(); -->
SELECT * FROM pg_temp.state(); --> 1|t|exclusive transaction
COMMIT;
SELECT * FROM pg_temp.state(); --> 0|f|

---- DISCARD ALL, as connection poolers send it
SELECT advisory.lock('ns', 'name'), advisory.lock_shared('ns', 'name'); --> t|t
DISCARD ALL;
SELECT advisory.hold_count('ns', 'name'), advisory.holds('ns', 'name'); --> 0|f
-- Counting starts afresh.
SELECT advisory.lock('ns', 'name'), advisory.hold_count('ns', 'name'),
    advisory.unlock_all('ns', 'name'); --> t|1|1
-- A pooled connection does not keep records of locks that were released without the extension.
DO $$
BEGIN
    FOR client IN 1..50 LOOP
        PERFORM advisory.lock('pooled ' || client, i) FROM generate_series(1, 1000) i;
        PERFORM pg_advisory_unlock_all();
    END LOOP;
END $$;
SELECT sum(used_bytes) < 6000000 AS bounded FROM pg_backend_memory_contexts
    WHERE name LIKE 'advisory_ext%'; --> t

---- PREPARE TRANSACTION: looking at holds leaves nothing behind that would forbid it
SELECT advisory.lock('ns', 'session'); --> t
BEGIN;
SELECT advisory.xact_lock('ns', 'name'); --> t
SELECT advisory.holds('ns', 'name'), advisory.hold_count('ns', 'name'),
       advisory.unlock('ns', 'name'),
       advisory.unlock_all('ns', 'name'), (SELECT scope FROM advisory.holders('ns', 'name'));
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/name"
--> DETAIL:  This session holds it until the end of the transaction.
--> t|1|f|0|transaction
PREPARE TRANSACTION 'regress_advisory';
-- No longer this session's, but still locked; what the session holds has stayed.
SELECT advisory.holds('ns', 'name'), advisory.hold_count('ns', 'name'),
       advisory.is_locked('ns', 'name'),
       advisory.hold_count('ns', 'session'), advisory.try_lock('ns', 'name'); --> f|0|t|1|f
COMMIT PREPARED 'regress_advisory';
SELECT advisory.is_locked('ns', 'name'), advisory.unlock('ns', 'session'); --> f|t
-- The server's own rule: not with holds of both scopes on one lock.
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), advisory.lock('ns', 'name'); --> t|t
PREPARE TRANSACTION 'regress_advisory';
--> ERROR:  cannot PREPARE while holding both session-level and transaction-level locks on the same object
SELECT advisory.hold_count('ns', 'name'), advisory.unlock('ns', 'name'); --> 1|t

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0

-- What is released without the extension is removed when the record is next looked at, so that what
-- the built-ins take afterwards is not taken for ours.
SELECT advisory.lock('behind', 'b'); --> t
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.hold_count('behind', 'b') AS seen; --> 0
SELECT pg_advisory_lock(advisory.key('behind', 'b')); -->
SELECT advisory.hold_count('behind', 'b') AS still_theirs,
    advisory.unlock_all('behind') AS released; --> 0|0
SELECT acquired_at IS NULL AS unknown FROM advisory.locks WHERE key = advisory.key('behind', 'b');
--> t
SELECT pg_advisory_unlock_all(); -->

---- Wrong arguments, and which function a call means: as holds()
CREATE FUNCTION pg_temp.outcome(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'SELECT ' || call INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
-- (50_arguments has what holds() says, and 51_resolution which function a call of it means.)
SELECT count(*), bool_and(pg_temp.outcome(format('advisory.hold_count(%s)', arguments))
                          = pg_temp.outcome(format('advisory.holds(%s)', arguments))) AS same
    FROM unnest(ARRAY['NULL, ''name''', ''''', ''name''', '''ns'', NULL::text', '''ns'', ''''',
        'NULL, 42', ''''', 42', '''ns'', NULL::bigint',
                      'NULL, ''00000000-0000-0000-0000-000000000001''::uuid', '''ns'', NULL::uuid',
                      'NULL, NULL::text', ''''', ''''']) AS arguments; --> 11|t
SELECT pg_temp.outcome($$advisory.hold_count('ns', '')$$); --> 22023 name must not be empty
-- There are as many functions of that name, with the same arguments.
SELECT proname, array_agg(concat_ws(' ', proargnames, oidvectortypes(proargtypes))
                         ORDER BY proargtypes::oid[])
    FROM pg_proc
    WHERE pronamespace = 'advisory'::regnamespace AND proname IN ('hold_count', 'holds')
    GROUP BY proname ORDER BY proname;
--> hold_count|{"{namespace,id} text, bigint","{namespace,name} text, text","{namespace,id} text, uuid"}
--> holds|{"{namespace,id} text, bigint","{namespace,name} text, text","{namespace,id} text, uuid"}
