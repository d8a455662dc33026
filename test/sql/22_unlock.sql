-- Editions: both.
-- Releasing: one hold with the built-ins' warning, or all of them without any.
-- (28_unlock_namespace: all of a namespace.)
\pset format unaligned \pset tuples_only on
CREATE VIEW pg_temp.mine AS
    SELECT n.namespace, n.name, mode
    FROM advisory.locks LEFT JOIN (VALUES ('ns', 'name'), ('ns', 'other'), ('ns', 'a'), ('ns', 'c'),
        ('ns2', 'a')) AS n (namespace, name) ON key = advisory.key(n.namespace, n.name)
    WHERE pid = pg_backend_pid();

---- Nothing to release: false, and a warning that bears the name
SELECT advisory.unlock('billing', 'invoice:42');
--> WARNING:  you don't own a lock of type ExclusiveLock on "billing/invoice:42"
--> f
SELECT advisory.unlock('user', 42);
--> WARNING:  you don't own a lock of type ExclusiveLock on "user/42"
--> f
SELECT advisory.unlock('order', '00000000-0000-0000-0000-000000000001'::uuid);
--> WARNING:  you don't own a lock of type ExclusiveLock on "order/00000000-0000-0000-0000-000000000001"
--> f
SELECT advisory.unlock_shared('billing', 'invoice:42');
--> WARNING:  you don't own a lock of type ShareLock on "billing/invoice:42"
--> f
SELECT advisory.unlock_shared('user', 42);
--> WARNING:  you don't own a lock of type ShareLock on "user/42"
--> f
SELECT advisory.unlock_shared('order', '00000000-0000-0000-0000-000000000001'::uuid);
--> WARNING:  you don't own a lock of type ShareLock on "order/00000000-0000-0000-0000-000000000001"
--> f
SELECT advisory.unlock_key(-42), advisory.unlock_shared_key(42);
--> WARNING:  you don't own a lock of type ExclusiveLock on "-42"
--> WARNING:  you don't own a lock of type ShareLock on "42"
--> f|f
-- The warning says what the session holds instead.
SELECT advisory.lock_shared('ns', 'name'), advisory.unlock('ns', 'name'),
    advisory.unlock_shared('ns', 'name');
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/name"
--extension> DETAIL:  This session holds it in shared mode.
--> t|f|t
SELECT advisory.lock('ns', 'name'), advisory.unlock_shared('ns', 'name'),
    advisory.unlock('ns', 'name');
--> WARNING:  you don't own a lock of type ShareLock on "ns/name"
--extension> DETAIL:  This session holds it in exclusive mode.
--> t|f|t
BEGIN;
SELECT advisory.xact_lock('ns', 'name'); --> t
SELECT advisory.unlock('ns', 'name');
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/name"
--extension> DETAIL:  This session holds it until the end of the transaction.
--> f
SELECT advisory.unlock_shared('ns', 'name');
--> WARNING:  you don't own a lock of type ShareLock on "ns/name"
--extension> DETAIL:  This session holds it until the end of the transaction.
--> f
SELECT mode FROM pg_temp.mine; --> exclusive
COMMIT;
-- A warning has no SQLSTATE of its own, as the built-ins'.
\set VERBOSITY sqlstate
SELECT advisory.unlock('ns', 'name');
--> WARNING:  01000
--> f
SELECT pg_advisory_unlock(42);
--> WARNING:  01000
--> f
\set VERBOSITY default
-- Names that need care where they are shown.
SELECT advisory.unlock('%s %n', 'it''s "quoted" \ %m');
--> WARNING:  you don't own a lock of type ExclusiveLock on "%s %n/it's "quoted" \ %m"
--> f
SELECT advisory.unlock(repeat('n', 300), repeat('x', 256));
--> WARNING:  you don't own a lock of type ExclusiveLock on "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn.../xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
--> f
-- A warning leaves the transaction as it was.
BEGIN;
SELECT advisory.unlock('ns', 'name');
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/name"
--> f
SELECT 1 AS goes_on; --> 1
COMMIT;

---- One hold at a time, whichever function took it and by whichever name
SELECT advisory.lock('ns', 42), advisory.lock('ns', '42'), pg_advisory_lock(advisory.key('ns', 42));
--> t|t|
SELECT advisory.unlock('ns', 42), advisory.unlock_key(advisory.key('ns', 42)),
    advisory.unlock('ns', '42'); --> t|t|t
SELECT advisory.unlock('ns', 42);
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/42"
--> f

---- unlock_all of one name: both modes, the session's holds only, no warning
SELECT advisory.unlock_all('ns', 'name') AS nothing, advisory.unlock_all('ns', 42) AS no_id,
       advisory.unlock_all('ns', '00000000-0000-0000-0000-000000000001'::uuid) AS no_uuid; --> 0|0|0
BEGIN;
SELECT advisory.lock('ns', 'name'), advisory.lock('ns', 'name'), advisory.lock_shared('ns', 'name'),
       advisory.xact_lock('ns', 'name'), advisory.lock('ns', 'other'); --> t|t|t|t|t
SELECT advisory.unlock_all('ns', 'name'); --> 3
SELECT name, mode FROM pg_temp.mine ORDER BY name;
--> name|exclusive
--> other|exclusive
SELECT advisory.unlock_all('ns', 'name') AS again, advisory.unlock_all('ns', 'other') AS other;
--> 0|1
COMMIT;
-- This includes holds that the built-ins took.
SELECT advisory.lock('ns', 42), pg_advisory_lock(advisory.key('ns', 42)),
    pg_advisory_lock_shared(advisory.key('ns', 42)); --> t||
SELECT advisory.unlock_all('ns', 42); --> 3
SELECT advisory.lock('ns', '00000000-0000-0000-0000-000000000001'::uuid); --> t
SELECT advisory.unlock_all('ns', '00000000-0000-0000-0000-000000000001'::uuid); --> 1

---- unlock_all of several names
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'a'), advisory.lock_shared('ns', 'b'),
    advisory.lock('ns', 'c'), advisory.lock('ns2', 'a'); --> t|t|t|t|t
-- Duplicates and names that are not held do no harm.
SELECT advisory.unlock_all('ns', ARRAY['a', 'b', 'a', 'never held']); --> 3
SELECT namespace, name FROM pg_temp.mine ORDER BY 1, 2;
--> ns|c
--> ns2|a
SELECT advisory.unlock_all('ns', '{}'::text[]) AS of_none,
    advisory.unlock_all('ns', ARRAY['c']) AS c, advisory.unlock_all('ns2', ARRAY['a']) AS a;
--> 0|1|1
SELECT advisory.lock('ns', 1), advisory.lock('ns', 2),
    advisory.unlock_all('ns', ARRAY[1, 2, 3]::bigint[]) AS ids; --> t|t|2
SELECT advisory.lock('ns', '00000000-0000-0000-0000-000000000001'::uuid),
       advisory.unlock_all('ns', ARRAY['00000000-0000-0000-0000-000000000001']::uuid[]) AS uuids;
--> t|1

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
