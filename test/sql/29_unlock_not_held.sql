-- Editions: both.
-- advisory_ext.unlock_not_held: what unlock() and release() do with what the session does not hold.
-- (72_stats: counted in the column not_held.)
\pset format unaligned \pset tuples_only on

---- warn is the default: false, and a warning without a HINT
SELECT advisory.unlock('ns', 'name');
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/name"
--> f
SET advisory_ext.unlock_not_held = warn;
SELECT advisory.release('ns', 'name');
--> WARNING:  you don't own a slot of semaphore "ns/name"
--> f

---- error: the same words, and a HINT that names the pool
SET advisory_ext.unlock_not_held = error;
SELECT advisory.unlock('ns', 'name');
--> ERROR:  you don't own a lock of type ExclusiveLock on "ns/name"
--> HINT:  Another connection of a pool may have taken it. Take and release it on one connection, or use advisory.xact_lock().
SELECT advisory.unlock_shared('ns', 'name');
--> ERROR:  you don't own a lock of type ShareLock on "ns/name"
--> HINT:  Another connection of a pool may have taken it. Take and release it on one connection, or use advisory.xact_lock_shared().
SELECT advisory.unlock_key(42);
--> ERROR:  you don't own a lock of type ExclusiveLock on "42"
--> HINT:  Another connection of a pool may have taken it. Take and release it on one connection, or use advisory.xact_lock().
SELECT advisory.release('ns', 42);
--> ERROR:  you don't own a slot of semaphore "ns/42"
--> HINT:  Another connection of a pool may have taken it. Take and release it on one connection, or use advisory.xact_acquire().
SELECT advisory.release('ns', 'name', 2);
--> ERROR:  you don't own slot 2 of semaphore "ns/name"
--> HINT:  Another connection of a pool may have taken it. Take and release it on one connection, or use advisory.xact_acquire().
\set VERBOSITY sqlstate
SELECT advisory.unlock('ns', '00000000-0000-0000-0000-000000000001'::uuid); --> ERROR:  55000
SELECT advisory.unlock_shared_key(42); --> ERROR:  55000
SELECT advisory.release('ns', '00000000-0000-0000-0000-000000000001'::uuid, 1); --> ERROR:  55000
SELECT advisory.release_many('ns', 'name', '{1}'); --> ERROR:  55000
\set VERBOSITY default

---- What is held is released as ever, and a finally block fails with nothing
SELECT advisory.lock('ns', 'name'), advisory.lock_shared('ns', 'name'), advisory.lock_key(42),
    advisory.acquire('ns', 'name', 2), advisory.acquire('ns', 'name', 2); --> t|t|t|1|2
SELECT advisory.unlock('ns', 'name'), advisory.unlock_shared('ns', 'name'), advisory.unlock_key(42),
    advisory.release('ns', 'name', 1), advisory.release('ns', 'name'); --> t|t|t|t|t
SELECT advisory.unlock_all('ns', 'name'), advisory.unlock_all('ns', ARRAY['a', 'b']); --> 0|0
SELECT advisory.release_many('ns', 'name', '{}'); --> 0

---- No pool where the session itself has something of that name
SELECT advisory.lock_shared('ns', 'name'); --> t
SELECT advisory.unlock('ns', 'name');
--> ERROR:  you don't own a lock of type ExclusiveLock on "ns/name"
--extension> DETAIL:  This session holds it in shared mode.
SELECT advisory.release('ns', 'name');
--> ERROR:  you don't own a slot of semaphore "ns/name"
--extension> DETAIL:  This session holds the lock of that name, which is separate from the semaphore.
--extension> HINT:  To release the lock, use advisory.unlock().
SELECT advisory.unlock_shared('ns', 'name'), advisory.acquire('ns', 'name', 2); --> t|1
SELECT advisory.unlock('ns', 'name');
--> ERROR:  you don't own a lock of type ExclusiveLock on "ns/name"
--extension> DETAIL:  This session has a slot of the semaphore of that name, which is separate from the lock.
--extension> HINT:  To release a slot, use advisory.release().
SELECT advisory.release('ns', 'name'); --> t
BEGIN;
SELECT advisory.xact_lock('ns', 'name'); --> t
SELECT advisory.unlock('ns', 'name');
--> ERROR:  you don't own a lock of type ExclusiveLock on "ns/name"
--extension> DETAIL:  This session holds it until the end of the transaction.
ROLLBACK;

---- release_many gives back all that the session has before it fails for the first of the others
SELECT advisory.acquire_many('ns', 'name', 4, 2); --> {1,2}
SELECT advisory.release_many('ns', 'name', '{4,1,3,2}');
--> ERROR:  you don't own slot 4 of semaphore "ns/name"
--> HINT:  Another connection of a pool may have taken it. Take and release it on one connection, or use advisory.xact_acquire().
SELECT count(*) FROM advisory.holders('ns', 'name'); --> 0
SET advisory_ext.unlock_not_held = warn;
SELECT advisory.acquire_many('ns', 'name', 4, 2); --> {1,2}
SELECT advisory.release_many('ns', 'name', '{4,1,3,2}');
--> WARNING:  you don't own slot 4 of semaphore "ns/name"
--> WARNING:  you don't own slot 3 of semaphore "ns/name"
--> 2

---- The error is one that can be handled, and leaves locks as they are
SET advisory_ext.unlock_not_held = error;
SELECT advisory.lock('ns', 'other'); --> t
DO $$ BEGIN
    PERFORM advisory.unlock('ns', 'name');
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RAISE NOTICE '%', SQLERRM;
END $$;
--> NOTICE:  you don't own a lock of type ExclusiveLock on "ns/name"
SELECT advisory.unlock('ns', 'other'); --> t
RESET advisory_ext.unlock_not_held;
