-- The view settings, and what session_locks does.
\pset format unaligned \pset tuples_only on

---- The view loads the library, so that it knows what SHOW does not, unless it is preloaded
\c
SELECT current_setting('advisory_ext.session_locks', true) IS NOT NULL
    = (current_setting('shared_preload_libraries') ~ 'advisory_ext') AS known_if_preloaded; --> t
SELECT * FROM advisory.settings WHERE name = 'advisory_ext.session_locks';
--> advisory_ext.session_locks|on||on|user|Allows functions that take session-level locks.
SHOW advisory_ext.session_locks; --> on
-- It is every setting of the extension, as pg_settings has it.
SELECT name FROM advisory.settings EXCEPT SELECT name FROM pg_settings
    WHERE name LIKE 'advisory\_ext.%';
SELECT name, setting, unit, boot_val, context, short_desc FROM pg_settings
    WHERE name LIKE 'advisory\_ext.%'
    EXCEPT SELECT * FROM advisory.settings;
-- There are no other settings, and none can be invented.
SET advisory_ext.no_such_setting = 1;
--> ERROR:  invalid configuration parameter name "advisory_ext.no_such_setting"
--> DETAIL:  "advisory_ext" is a reserved prefix.

---- session_locks: values and privileges
SET advisory_ext.session_locks = warn;
SELECT setting, default_setting FROM advisory.settings WHERE name = 'advisory_ext.session_locks';
--> warn|on
SET advisory_ext.session_locks = maybe;
--> ERROR:  invalid value for parameter "advisory_ext.session_locks": "maybe"
--> HINT:  Available values: on, warn, off.
SET advisory_ext.session_locks = false;
SHOW advisory_ext.session_locks; --> off
SET advisory_ext.session_locks = yes;
SHOW advisory_ext.session_locks; --> on
CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
SET advisory_ext.session_locks = off;
SHOW advisory_ext.session_locks; --> off
RESET ROLE;
DROP ROLE regress_advisory_role;

---- off: every function that takes a session-level lock fails, and names the one to use instead
CREATE FUNCTION pg_temp.refusal(call text, OUT code text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
END $$;
SELECT advisory.lock('ns', 'name');
--> ERROR:  session-level advisory locks are turned off by "advisory_ext.session_locks"
--> DETAIL:  Behind a transaction pooler a session-level lock outlives the client that took it.
--> HINT:  Use advisory.xact_lock() instead.
CREATE TABLE pg_temp.refusals AS SELECT * FROM unnest(ARRAY[
    $$SELECT advisory.lock('ns', 'name')$$, $$SELECT advisory.lock('ns', 42)$$,
    $$SELECT advisory.lock_shared('ns', gen_random_uuid())$$,
    $$SELECT advisory.try_lock('ns', 'name')$$, $$SELECT advisory.try_lock_shared('ns', 'name')$$,
    $$SELECT advisory.lock_key(42)$$, $$SELECT advisory.lock_shared_key(42)$$,
    $$SELECT advisory.try_lock_key(42)$$, $$SELECT advisory.try_lock_shared_key(42)$$,
    $$SELECT advisory.lock_all('ns', ARRAY['a'])$$,
    $$SELECT advisory.try_lock_all('ns', ARRAY[1])$$, $$SELECT advisory.try_lock_any('ns', '{a}')$$,
    $$SELECT advisory.try_acquire_any('ns', '{a}', 1)$$,
    $$SELECT advisory.acquire_many('ns', 'a', 3, 2)$$,
    $$SELECT advisory.try_acquire_many('ns', 42, 3, 2)$$,
    $$CALL advisory.await_lock('ns', 'name')$$, $$CALL advisory.await_lock_shared('ns', 42)$$,
    $$CALL advisory.await_lock_key(42)$$, $$CALL advisory.await_lock_shared_key(42)$$]) AS call,
    pg_temp.refusal(call);
SELECT * FROM pg_temp.refusals;
--> SELECT advisory.lock('ns', 'name')|55000|Use advisory.xact_lock() instead.
--> SELECT advisory.lock('ns', 42)|55000|Use advisory.xact_lock() instead.
--> SELECT advisory.lock_shared('ns', gen_random_uuid())|55000|Use advisory.xact_lock_shared() instead.
--> SELECT advisory.try_lock('ns', 'name')|55000|Use advisory.try_xact_lock() instead.
--> SELECT advisory.try_lock_shared('ns', 'name')|55000|Use advisory.try_xact_lock_shared() instead.
--> SELECT advisory.lock_key(42)|55000|Use advisory.xact_lock_key() instead.
--> SELECT advisory.lock_shared_key(42)|55000|Use advisory.xact_lock_shared_key() instead.
--> SELECT advisory.try_lock_key(42)|55000|Use advisory.try_xact_lock_key() instead.
--> SELECT advisory.try_lock_shared_key(42)|55000|Use advisory.try_xact_lock_shared_key() instead.
--> SELECT advisory.lock_all('ns', ARRAY['a'])|55000|Use advisory.xact_lock_all() instead.
--> SELECT advisory.try_lock_all('ns', ARRAY[1])|55000|Use advisory.try_xact_lock_all() instead.
--> SELECT advisory.try_lock_any('ns', '{a}')|55000|Use advisory.try_xact_lock_any() instead.
--> SELECT advisory.try_acquire_any('ns', '{a}', 1)|55000|Use advisory.try_xact_acquire_any() instead.
--> SELECT advisory.acquire_many('ns', 'a', 3, 2)|55000|Use advisory.xact_acquire_many() instead.
--> SELECT advisory.try_acquire_many('ns', 42, 3, 2)|55000|Use advisory.try_xact_acquire_many() instead.
--> CALL advisory.await_lock('ns', 'name')|55000|Use advisory.xact_lock() instead.
--> CALL advisory.await_lock_shared('ns', 42)|55000|Use advisory.xact_lock_shared() instead.
--> CALL advisory.await_lock_key(42)|55000|Use advisory.xact_lock_key() instead.
--> CALL advisory.await_lock_shared_key(42)|55000|Use advisory.xact_lock_shared_key() instead.
-- Each of these hints names a function that there is.
SELECT hint FROM pg_temp.refusals WHERE substring(hint FROM 'advisory\.(\w+)\(') NOT IN
    (SELECT proname FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f');
-- Transaction-level locks, and asking, are no concern of it; nor is releasing what was taken
-- before.
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), advisory.xact_lock_shared('ns', 42),
       advisory.try_xact_lock('ns', 'a'), advisory.try_xact_lock_shared('ns', 'a'),
       advisory.xact_lock_key(42), advisory.try_xact_lock_key(42),
       advisory.xact_lock_all('ns', '{a}'), advisory.try_xact_lock_all('ns', '{a}');
--> t|t|t|t|t|t|t|t
SELECT advisory.try_xact_lock_any('ns', '{a}'); --> a
SELECT advisory.try_xact_acquire_any('ns', '{a}', 1); --> (a,1)
SELECT advisory.holds('ns', 'name'), advisory.is_locked('ns', 'name'),
    advisory.hold_count('ns', 'name'); --> t|t|1
COMMIT;
SET advisory_ext.session_locks = on;
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'b'), advisory.lock_shared('ns', 'c'),
    advisory.lock_key(42); --> t|t|t|t
SET advisory_ext.session_locks = off;
SELECT advisory.unlock('ns', 'a'), advisory.unlock_all('ns', 'b'),
    advisory.unlock_shared('ns', 'c'), advisory.unlock_key(42), advisory.unlock_all('ns');
--> t|1|t|t|0
-- Wrong input is told first.
SELECT advisory.lock('ns', NULL::text); --> ERROR:  name must not be null

---- warn: a warning, and the lock
SET advisory_ext.session_locks = warn;
SELECT advisory.lock('ns', 'name');
--> WARNING:  session-level advisory lock taken with "advisory_ext.session_locks" set to "warn"
--> DETAIL:  Behind a transaction pooler a session-level lock outlives the client that took it.
--> HINT:  Use advisory.xact_lock() instead.
--> t
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b']);
--> WARNING:  session-level advisory lock taken with "advisory_ext.session_locks" set to "warn"
--> DETAIL:  Behind a transaction pooler a session-level lock outlives the client that took it.
--> HINT:  Use advisory.try_xact_lock_all() instead.
--> t
\set VERBOSITY terse
SELECT advisory.try_lock_any('ns', ARRAY['c']);
--> WARNING:  session-level advisory lock taken with "advisory_ext.session_locks" set to "warn"
--> c
CALL advisory.await_lock('ns', 'd');
--> WARNING:  session-level advisory lock taken with "advisory_ext.session_locks" set to "warn"
BEGIN;
SELECT advisory.xact_lock('ns', 'no warning'); --> t
COMMIT;
SELECT advisory.unlock_all('ns'); --> 5
-- The class of a warning that a program can tell apart.
\set VERBOSITY sqlstate
SELECT advisory.try_lock('ns', 'name'), advisory.unlock('ns', 'name');
--> WARNING:  01000
--> t|t
\set VERBOSITY default
RESET advisory_ext.session_locks;
SELECT advisory.lock('ns', 'name'), advisory.unlock('ns', 'name'); --> t|t

---- reentrant: may a session take a lock that it holds already
SET advisory_ext.reentrant = maybe;
--> ERROR:  invalid value for parameter "advisory_ext.reentrant": "maybe"
--> HINT:  Available values: on, warn, off.
SELECT advisory.lock('re', 'a'), advisory.lock('re', 'a'), advisory.unlock('re', 'a'); --> t|t|t
SET advisory_ext.reentrant = off;
SELECT advisory.lock('re', 'a');
--> ERROR:  this session already holds advisory lock "re/a"
--> DETAIL:  "advisory_ext.reentrant" is "off".
\set VERBOSITY terse
SELECT advisory.lock('re', 'a', '1s'); --> ERROR:  this session already holds advisory lock "re/a"
SELECT advisory.lock_key(advisory.key('re', 'a'));
--> ERROR:  this session already holds advisory lock "re/a"
CALL advisory.await_lock('re', 'a'); --> ERROR:  this session already holds advisory lock "re/a"
SELECT advisory.try_lock('re', 'a'), advisory.try_lock('re', 'a', '1s'),
    advisory.try_lock_key(advisory.key('re', 'a')), advisory.try_lock('re', 'b'); --> f|f|f|t
-- In either scope. Within a transaction, its own locks count, too, also those from before a
-- savepoint.
BEGIN;
SELECT advisory.try_xact_lock('re', 'a'), advisory.try_xact_lock('re', 'c'),
    advisory.try_xact_lock('re', 'c'), advisory.try_lock('re', 'c'); --> f|t|f|f
SAVEPOINT s;
SELECT advisory.xact_lock('re', 'a'); --> ERROR:  this session already holds advisory lock "re/a"
ROLLBACK TO s;
SELECT advisory.try_xact_lock('re', 'c'), advisory.hold_count('re', 'a'); --> f|1
COMMIT;
-- Several at once: none of them, and in try_lock_any() only the others.
SELECT advisory.try_lock_all('re', '{b,d}'), advisory.holds('re', 'd'); --> f|f
SELECT advisory.lock_all('re', '{b,d}'); --> ERROR:  this session already holds advisory lock "re/b"
SELECT advisory.try_lock_all('re', '{d,d}'); --> t
SELECT * FROM advisory.try_lock_any('re', '{a,b,c,d,e}', 5);
--> c
--> e
\set VERBOSITY default
-- run(): the lock of this session is in the way as that of any other.
CALL advisory.run('re', 'a', 'SELECT 1');
--> NOTICE:  command was not run because advisory lock "re/a" is taken
--> DETAIL:  This session already holds it.
--> f
\set VERBOSITY terse
CALL advisory.run('re', 'a', 'SELECT 1', if_busy => 'error');
--> ERROR:  this session already holds advisory lock "re/a"
\set VERBOSITY default
CALL advisory.run('re', 'job', $$DO 'BEGIN PERFORM advisory.lock(''re'', ''job''); END'$$);
--> ERROR:  this session already holds advisory lock "re/job"
--> DETAIL:  "advisory_ext.reentrant" is "off".
--> CONTEXT:  SQL statement "SELECT advisory.lock('re', 'job')"
--> PL/pgSQL function inline_code_block line 1 at PERFORM
--> SQL statement "DO 'BEGIN PERFORM advisory.lock(''re'', ''job''); END'"
--> while running a command under advisory lock "re/job"
-- Shared mode is no concern of it, so that a session can change the mode; nor are semaphores, and
-- releasing.
SELECT advisory.lock_shared('re', 'a'), advisory.lock_shared('re', 'a'), advisory.unlock('re', 'a'),
    advisory.lock('re', 'a'), advisory.unlock_all('re', 'a'); --> t|t|t|t|3
SELECT advisory.acquire('re', 's', 3), advisory.acquire('re', 's', 3),
    advisory.try_acquire('re', 's', 3), advisory.acquire('re', 'only', 1),
    advisory.lock('re', 'only'); --> 1|2|3|1|t
-- A lock that was taken by the built-in functions counts.
SELECT pg_advisory_lock(42), advisory.try_lock_key(42), advisory.try_lock_shared_key(42),
    advisory.unlock_all('re'); --> |f|t|9
\set VERBOSITY terse
SELECT advisory.lock_key(42); --> ERROR:  this session already holds advisory lock "42"
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.lock('re', 'a'); --> t
-- What was refused counts as failed.
SELECT name, acquired, failed FROM advisory.stats WHERE namespace = 're' AND name IN ('a', 'c', 'd')
    ORDER BY name;
--> a|6|12
--> c|2|3
--> d|1|1
-- For programs.
\set VERBOSITY sqlstate
SELECT advisory.lock('re', 'a'); --> ERROR:  55006
\set VERBOSITY default
SET advisory_ext.reentrant = warn;
SELECT advisory.lock('re', 'a');
--> WARNING:  this session already holds advisory lock "re/a"
--> t
BEGIN;
SELECT advisory.try_xact_lock('re', 'a');
--> WARNING:  this session already holds advisory lock "re/a"
--> t
COMMIT;
SELECT advisory.lock_shared('re', 'a'), advisory.hold_count('re', 'a'), advisory.unlock_all('re');
--> t|3|3
RESET advisory_ext.reentrant;

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
