-- Semaphores in one session, as in 35_semaphores: what the views show, all of a namespace, another
-- number of slots, and settings.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

-- Keys and pids differ from run to run, or say nothing.
CREATE VIEW pg_temp.mine AS
    SELECT kind, namespace, name, slot, mode, scope, granted, acquired_at IS NOT NULL AS has_time
    FROM advisory.locks WHERE pid = pg_backend_pid();
CREATE VIEW pg_temp.used AS
    SELECT namespace, name, key = advisory.key(namespace, name) AS has_key, slots, in_use, free,
        waiting,
           array_length(holders, 1) AS holders, slots_disagree
    FROM advisory.semaphores;

---- In views
SELECT advisory.acquire('ns', 'three', 3), advisory.try_acquire('ns', 'three', 3),
    advisory.acquire('ns', 'three', 3, '1s'); --> 1|2|3
SELECT * FROM pg_temp.mine ORDER BY slot;
--> semaphore|ns|three|1|exclusive|session|t|t
--> semaphore|ns|three|2|exclusive|session|t|t
--> semaphore|ns|three|3|exclusive|session|t|t
SELECT * FROM pg_temp.used; --> ns|three|t|3|3|0|0|3|f
SELECT lock, mode, array_agg(slot ORDER BY slot) AS slots FROM advisory.activity
    WHERE pid = pg_backend_pid() GROUP BY lock, mode; --> ns/three|exclusive|{1,2,3}
-- They are locks, as the server has them.
SELECT mode, granted, array_agg(objsubid - 16384 ORDER BY objsubid) AS slots FROM pg_locks
    WHERE locktype = 'advisory' AND pid = pg_backend_pid()
      AND (classid::bigint << 32) | objid::bigint = advisory.key('ns', 'three')
    GROUP BY mode, granted; --> ExclusiveLock|t|{1,2,3}

SELECT advisory.release('ns', 'three', 1), advisory.release('ns', 'three'); --> t|t
SELECT slot FROM pg_temp.mine; --> 2
SELECT advisory.release('ns', 'three'); --> t
SELECT * FROM pg_temp.used;
SELECT advisory.acquire('ns', 'both', 1), advisory.hold_count('ns', 'both'),
    advisory.release('ns', 'both'); --> 1|0|t

---- For the transaction, and for the savepoint
BEGIN;
SELECT advisory.xact_acquire('ns', 'three', 3); --> 1
SAVEPOINT s;
SELECT advisory.try_xact_acquire('ns', 'three', 3); --> 2
SELECT advisory.acquire('ns', 'three', 3); --> 3
SELECT array_agg(slot || ' ' || scope ORDER BY slot) FROM pg_temp.mine;
--> {"1 transaction","2 transaction","3 session"}
ROLLBACK TO s;
SELECT array_agg(slot || ' ' || scope ORDER BY slot) FROM pg_temp.mine;
--> {"1 transaction","3 session"}
SELECT advisory.release('ns', 'three'); --> t
COMMIT;
SELECT * FROM pg_temp.mine;

---- The only slot, which the transaction has, is not free for the session
BEGIN;
SELECT advisory.xact_acquire('ns', 'only', 1); --> 1
SELECT advisory.try_acquire('ns', 'only', 1), advisory.try_acquire('ns', 'only', 1, '20ms'),
    advisory.try_xact_acquire('ns', 'only', 1, '20ms'); --> ||
SAVEPOINT s;
\set VERBOSITY terse
SELECT advisory.acquire('ns', 'only', 1, '20ms');
--> ERROR:  could not obtain a slot of semaphore "ns/only" within 20 ms
\set VERBOSITY default
ROLLBACK TO s;
SELECT slot, scope FROM pg_temp.mine; --> 1|transaction
COMMIT;
SELECT * FROM pg_temp.mine;

---- Lost in the same statement
SELECT advisory.acquire('ns', 'lost', 2), advisory.acquire('ns', 'lost', 2); --> 1|2
SELECT pg_advisory_unlock_all(), advisory.release('ns', 'lost');
--> WARNING:  you don't own a slot of semaphore "ns/lost"
--> |f
SELECT advisory.acquire('ns', 'lost', 2), pg_advisory_unlock_all(),
    advisory.release('ns', 'lost', 1);
--> WARNING:  you don't own slot 1 of semaphore "ns/lost"
--> 1||f
SELECT * FROM pg_temp.used;

---- All of a namespace
SELECT advisory.acquire('ns', 'three', 3), advisory.acquire('ns', 'three', 3),
    advisory.acquire('other', 'three', 3), advisory.lock('ns', 'lock'); --> 1|2|1|t
SELECT advisory.unlock_all('ns'); --> 3
SELECT kind, namespace, name, slot FROM pg_temp.mine; --> semaphore|other|three|1
SELECT pg_advisory_unlock_all(); -->
SELECT * FROM pg_temp.used;

SELECT advisory.acquire('ns', 'one', 1); --> 1
SELECT slot FROM pg_temp.mine; --> 1

---- More slots than before: told once
\set VERBOSITY terse
SELECT advisory.try_acquire('ns', 'one', 2);
--> WARNING:  semaphore "ns/one" is used with different numbers of slots
--> 2
SELECT advisory.try_acquire('ns', 'one', 3), advisory.try_acquire('ns', 'one', 1); --> 3|
SELECT * FROM pg_temp.used; --> ns|one|t|3|3|0|0|3|t
SELECT advisory.unlock_all('ns'); --> 3
SELECT advisory.acquire('ns', 'one', 5), advisory.release('ns', 'one'); --> 1|t

---- Waiting without a snapshot
\set VERBOSITY default
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL advisory.await_acquire('ns', 'await', 2);
--> ERROR:  await_acquire() cannot wait without a snapshot here
--> DETAIL:  In isolation level REPEATABLE READ or SERIALIZABLE a transaction keeps its snapshot.
--> HINT:  Use isolation level READ COMMITTED.
ROLLBACK;

---- Many slots
SELECT count(advisory.acquire('ns', 'many', 16000)) FROM generate_series(1, 80); --> 80
SELECT slots, in_use, free FROM advisory.semaphores WHERE name = 'many'; --> 16000|80|15920
SELECT advisory.unlock_all('ns'); --> 80

---- try_acquire_any()
SELECT count(*) FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 2); --> 2
SELECT count(*) FROM advisory.try_acquire_any('ns', ARRAY['z', 'a', 'm'], 2, 3); --> 3
SELECT name, slots, in_use FROM advisory.semaphores WHERE name IN ('a', 'm', 'z') ORDER BY name;
--> a|2|2
--> m|2|1
--> z|2|2
SELECT advisory.unlock_all('ns'); --> 5
BEGIN;
SELECT count(*) FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a'], 2, 2); --> 2
SAVEPOINT s;
SELECT count(*) FROM advisory.try_xact_acquire_any('ns', ARRAY['b', 'a', 'c'], 2, 3); --> 3
ROLLBACK TO s;
SELECT name, slot, scope FROM advisory.locks WHERE pid = pg_backend_pid() AND kind = 'semaphore'
    ORDER BY name;
--> a|1|transaction
--> b|1|transaction
COMMIT;
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 0

---- The setting session_locks
SET advisory_ext.session_locks = off;
SELECT advisory.acquire('ns', 'name', 1);
--> ERROR:  session-level advisory locks are turned off by "advisory_ext.session_locks"
--> DETAIL:  Behind a transaction pooler a session-level lock outlives the client that took it.
--> HINT:  Use advisory.xact_acquire() instead.
\set VERBOSITY terse
SELECT advisory.try_acquire('ns', 'name', 1);
--> ERROR:  session-level advisory locks are turned off by "advisory_ext.session_locks"
CALL advisory.await_acquire('ns', 'name', 1);
--> ERROR:  session-level advisory locks are turned off by "advisory_ext.session_locks"
SELECT advisory.xact_acquire('ns', 'name', 1); --> 1
RESET advisory_ext.session_locks;
SELECT * FROM pg_temp.mine;
