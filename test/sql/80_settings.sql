-- The view settings, and what session_locks does.

---- The view loads the library, so that it knows what SHOW does not yet, unless the library is preloaded

\c
SELECT current_setting('advisory_ext.session_locks', true) IS NOT NULL
    = (current_setting('shared_preload_libraries') ~ 'advisory_ext') AS known_if_preloaded;
SELECT * FROM advisory.settings WHERE name = 'advisory_ext.session_locks';
SHOW advisory_ext.session_locks;
-- It is every setting of the extension, as pg_settings has it.
SELECT name FROM advisory.settings EXCEPT SELECT name FROM pg_settings WHERE name LIKE 'advisory\_ext.%';
SELECT name, setting, unit, boot_val, context, short_desc FROM pg_settings WHERE name LIKE 'advisory\_ext.%'
    EXCEPT SELECT * FROM advisory.settings;
-- There are no other settings, and none can be invented.
SET advisory_ext.no_such_setting = 1;

---- session_locks: values and privileges

SET advisory_ext.session_locks = warn;
SELECT setting, default_setting FROM advisory.settings WHERE name = 'advisory_ext.session_locks';
SET advisory_ext.session_locks = maybe;
SET advisory_ext.session_locks = false;
SHOW advisory_ext.session_locks;
SET advisory_ext.session_locks = yes;
SHOW advisory_ext.session_locks;
CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
SET advisory_ext.session_locks = off;
SHOW advisory_ext.session_locks;
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
CREATE TABLE pg_temp.refusals AS SELECT * FROM unnest(ARRAY[
    $$SELECT advisory.lock('ns', 'name')$$, $$SELECT advisory.lock('ns', 42)$$, $$SELECT advisory.lock_shared('ns', gen_random_uuid())$$,
    $$SELECT advisory.try_lock('ns', 'name')$$, $$SELECT advisory.try_lock_shared('ns', 'name')$$,
    $$SELECT advisory.lock_key(42)$$, $$SELECT advisory.lock_shared_key(42)$$, $$SELECT advisory.try_lock_key(42)$$, $$SELECT advisory.try_lock_shared_key(42)$$,
    $$SELECT advisory.lock_all('ns', ARRAY['a'])$$, $$SELECT advisory.try_lock_all('ns', ARRAY[1])$$, $$SELECT advisory.try_lock_any('ns', '{a}')$$, $$SELECT advisory.try_acquire_any('ns', '{a}', 1)$$,
    $$CALL advisory.await_lock('ns', 'name')$$, $$CALL advisory.await_lock_shared('ns', 42)$$,
    $$CALL advisory.await_lock_key(42)$$, $$CALL advisory.await_lock_shared_key(42)$$]) AS call, pg_temp.refusal(call);
SELECT * FROM pg_temp.refusals;
-- Each of these hints names a function that there is.
SELECT hint FROM pg_temp.refusals WHERE substring(hint FROM 'advisory\.(\w+)\(') NOT IN
    (SELECT proname FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f');
-- Transaction-level locks, and asking, are no concern of it; nor is releasing what was taken before.
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), advisory.xact_lock_shared('ns', 42), advisory.try_xact_lock('ns', 'a'), advisory.try_xact_lock_shared('ns', 'a'),
       advisory.xact_lock_key(42), advisory.try_xact_lock_key(42), advisory.xact_lock_all('ns', '{a}'), advisory.try_xact_lock_all('ns', '{a}');
SELECT advisory.try_xact_lock_any('ns', '{a}');
SELECT advisory.try_xact_acquire_any('ns', '{a}', 1);
SELECT advisory.holds('ns', 'name'), advisory.is_locked('ns', 'name'), advisory.hold_count('ns', 'name');
COMMIT;
SET advisory_ext.session_locks = on;
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'b'), advisory.lock_shared('ns', 'c'), advisory.lock_key(42);
SET advisory_ext.session_locks = off;
SELECT advisory.unlock('ns', 'a'), advisory.unlock_all('ns', 'b'), advisory.unlock_shared('ns', 'c'), advisory.unlock_key(42), advisory.unlock_all('ns');
-- Wrong input is told first.
SELECT advisory.lock('ns', NULL::text);

---- warn: a warning, and the lock

SET advisory_ext.session_locks = warn;
SELECT advisory.lock('ns', 'name');
SELECT advisory.try_lock_all('ns', ARRAY['a', 'b']);
SELECT advisory.try_lock_any('ns', ARRAY['c']);
CALL advisory.await_lock('ns', 'd');
BEGIN;
SELECT advisory.xact_lock('ns', 'no warning');
COMMIT;
SELECT advisory.unlock_all('ns');
-- The class of a warning that a program can tell apart.
\set VERBOSITY sqlstate
SELECT advisory.try_lock('ns', 'name'), advisory.unlock('ns', 'name');
\set VERBOSITY default
RESET advisory_ext.session_locks;
SELECT advisory.lock('ns', 'name'), advisory.unlock('ns', 'name');

---- reentrant: may a session take a lock that it holds already

SET advisory_ext.reentrant = maybe;
SELECT advisory.lock('re', 'a'), advisory.lock('re', 'a'), advisory.unlock('re', 'a');
SET advisory_ext.reentrant = off;
SELECT advisory.lock('re', 'a');
SELECT advisory.lock('re', 'a', '1s');
SELECT advisory.lock_key(advisory.key('re', 'a'));
CALL advisory.await_lock('re', 'a');
SELECT advisory.try_lock('re', 'a'), advisory.try_lock('re', 'a', '1s'), advisory.try_lock_key(advisory.key('re', 'a')), advisory.try_lock('re', 'b');
-- In either scope. Within a transaction, its own locks count, too, also those from before a savepoint.
BEGIN;
SELECT advisory.try_xact_lock('re', 'a'), advisory.try_xact_lock('re', 'c'), advisory.try_xact_lock('re', 'c'), advisory.try_lock('re', 'c');
SAVEPOINT s;
SELECT advisory.xact_lock('re', 'a');
ROLLBACK TO s;
SELECT advisory.try_xact_lock('re', 'c'), advisory.hold_count('re', 'a');
COMMIT;
-- Several at once: none of them, and in try_lock_any() only the others.
SELECT advisory.try_lock_all('re', '{b,d}'), advisory.holds('re', 'd');
SELECT advisory.lock_all('re', '{b,d}');
SELECT advisory.try_lock_all('re', '{d,d}');
SELECT * FROM advisory.try_lock_any('re', '{a,b,c,d,e}', 5);
-- run(): the lock of this session is in the way as that of any other.
CALL advisory.run('re', 'a', 'SELECT 1');
CALL advisory.run('re', 'a', 'SELECT 1', if_busy => 'error');
CALL advisory.run('re', 'job', $$DO 'BEGIN PERFORM advisory.lock(''re'', ''job''); END'$$);
-- Shared mode is no concern of it, so that a session can change the mode; nor are semaphores, and releasing.
SELECT advisory.lock_shared('re', 'a'), advisory.lock_shared('re', 'a'), advisory.unlock('re', 'a'), advisory.lock('re', 'a'), advisory.unlock_all('re', 'a');
SELECT advisory.acquire('re', 's', 3), advisory.acquire('re', 's', 3), advisory.try_acquire('re', 's', 3), advisory.acquire('re', 'only', 1), advisory.lock('re', 'only');
-- A lock that was taken by the built-in functions counts.
SELECT pg_advisory_lock(42), advisory.try_lock_key(42), advisory.try_lock_shared_key(42), advisory.unlock_all('re');
SELECT advisory.lock_key(42);
SELECT pg_advisory_unlock_all();
SELECT advisory.lock('re', 'a');
-- What was refused counts as failed.
SELECT name, acquired, failed FROM advisory.stats WHERE namespace = 're' AND name IN ('a', 'c', 'd') ORDER BY name;
-- For programs.
\set VERBOSITY sqlstate
SELECT advisory.lock('re', 'a');
\set VERBOSITY default
SET advisory_ext.reentrant = warn;
SELECT advisory.lock('re', 'a');
BEGIN;
SELECT advisory.try_xact_lock('re', 'a');
COMMIT;
SELECT advisory.lock_shared('re', 'a'), advisory.hold_count('re', 'a'), advisory.unlock_all('re');
RESET advisory_ext.reentrant;

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
