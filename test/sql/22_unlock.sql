-- Releasing: one hold with the built-ins' warning, or all of them without any.

CREATE VIEW pg_temp.mine AS
    SELECT namespace, name, mode, scope FROM advisory.locks WHERE pid = pg_backend_pid();

---- Nothing to release: false, and a warning that bears the name

SELECT advisory.unlock('billing', 'invoice:42');
SELECT advisory.unlock('user', 42);
SELECT advisory.unlock('order', '00000000-0000-0000-0000-000000000001'::uuid);
SELECT advisory.unlock_shared('billing', 'invoice:42');
SELECT advisory.unlock_shared('user', 42);
SELECT advisory.unlock_shared('order', '00000000-0000-0000-0000-000000000001'::uuid);
SELECT advisory.unlock_key(-42), advisory.unlock_shared_key(42);
-- The warning says what the session holds instead.
SELECT advisory.lock_shared('ns', 'name'), advisory.unlock('ns', 'name'), advisory.unlock_shared('ns', 'name');
SELECT advisory.lock('ns', 'name'), advisory.unlock_shared('ns', 'name'), advisory.unlock('ns', 'name');
BEGIN;
SELECT advisory.xact_lock('ns', 'name');
SELECT advisory.unlock('ns', 'name');
SELECT advisory.unlock_shared('ns', 'name');
SELECT mode, scope FROM pg_temp.mine;
COMMIT;
-- A warning has no SQLSTATE of its own, as the built-ins'.
\set VERBOSITY sqlstate
SELECT advisory.unlock('ns', 'name');
SELECT pg_advisory_unlock(42);
\set VERBOSITY default
-- Names that need care where they are shown.
SELECT advisory.unlock('%s %n', 'it''s "quoted" \ %m');
SELECT advisory.unlock(repeat('n', 300), repeat('x', 256));
-- A warning leaves the transaction as it was.
BEGIN;
SELECT advisory.unlock('ns', 'name');
SELECT 1 AS goes_on;
COMMIT;

---- One hold at a time, whichever function took it and by whichever name

SELECT advisory.lock('ns', 42), advisory.lock('ns', '42'), pg_advisory_lock(advisory.key('ns', 42));
SELECT advisory.unlock('ns', 42), advisory.unlock_key(advisory.key('ns', 42)), advisory.unlock('ns', '42');
SELECT advisory.unlock('ns', 42);

---- unlock_all of one name: both modes, the session's holds only, no warning

SELECT advisory.unlock_all('ns', 'name') AS nothing, advisory.unlock_all('ns', 42) AS no_id,
       advisory.unlock_all('ns', '00000000-0000-0000-0000-000000000001'::uuid) AS no_uuid;
BEGIN;
SELECT advisory.lock('ns', 'name'), advisory.lock('ns', 'name'), advisory.lock_shared('ns', 'name'),
       advisory.xact_lock('ns', 'name'), advisory.lock('ns', 'other');
SELECT advisory.unlock_all('ns', 'name');
SELECT name, mode, scope FROM pg_temp.mine ORDER BY name;
SELECT advisory.unlock_all('ns', 'name') AS again, advisory.unlock_all('ns', 'other') AS other;
COMMIT;
-- This includes holds that the built-ins took.
SELECT advisory.lock('ns', 42), pg_advisory_lock(advisory.key('ns', 42)), pg_advisory_lock_shared(advisory.key('ns', 42));
SELECT advisory.unlock_all('ns', 42);
SELECT advisory.lock('ns', '00000000-0000-0000-0000-000000000001'::uuid);
SELECT advisory.unlock_all('ns', '00000000-0000-0000-0000-000000000001'::uuid);

---- unlock_all of several names

SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'a'), advisory.lock_shared('ns', 'b'), advisory.lock('ns', 'c'), advisory.lock('ns2', 'a');
-- Duplicates and names that are not held do no harm.
SELECT advisory.unlock_all('ns', ARRAY['a', 'b', 'a', 'never held']);
SELECT namespace, name FROM pg_temp.mine ORDER BY 1, 2;
SELECT advisory.unlock_all('ns', '{}'::text[]) AS of_none, advisory.unlock_all('ns', ARRAY['c']) AS c, advisory.unlock_all('ns2', ARRAY['a']) AS a;
SELECT advisory.lock('ns', 1), advisory.lock('ns', 2), advisory.unlock_all('ns', ARRAY[1, 2, 3]::bigint[]) AS ids;
SELECT advisory.lock('ns', '00000000-0000-0000-0000-000000000001'::uuid),
       advisory.unlock_all('ns', ARRAY['00000000-0000-0000-0000-000000000001']::uuid[]) AS uuids;

---- unlock_all of a namespace: what this session took by name through this extension

BEGIN;
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'a'), advisory.lock_shared('ns', 'a'), advisory.lock('ns', 42),
       advisory.lock('ns', '00000000-0000-0000-0000-000000000001'::uuid), advisory.xact_lock('ns', 'x'),
       advisory.lock('ns2', 'a'), advisory.lock('n', 's');
SELECT advisory.lock_key(advisory.key('ns', 'by key')), advisory.lock_key(1, label => 'ns');
SELECT pg_advisory_lock(advisory.key('ns', 'built-in')), pg_advisory_lock(advisory.key('ns', 'a'));
SELECT advisory.unlock_all('ns');
-- Not touched: the built-ins' hold on the same lock, what was taken by key, other namespaces, the transaction's.
SELECT namespace, name, mode, scope FROM pg_temp.mine ORDER BY namespace, name, mode;
SELECT advisory.unlock_all('ns') AS again, advisory.unlock_all('nobody''s') AS unknown;
COMMIT;
SELECT advisory.unlock('ns', 'built-in'), advisory.unlock('ns', 'a'), advisory.unlock('ns', 'by key'), advisory.unlock_key(1);
SELECT advisory.unlock_all('ns2') AS ns2, advisory.unlock_all('n') AS n;
-- Locks that lock_all() or a procedure takes are taken by name, too.
SELECT advisory.lock_all('ns', ARRAY['a', 'b']);
SELECT advisory.try_lock_any('ns', ARRAY['c', 'd']);
CALL advisory.await_lock('ns', 'e');
CALL advisory.await_lock_shared('ns', 'e');
SELECT advisory.unlock_all('ns');
-- Holds that were released without the extension are not counted, and not released again.
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'b'), advisory.lock('ns', 'b');
SELECT pg_advisory_unlock(advisory.key('ns', 'a')), pg_advisory_unlock(advisory.key('ns', 'b'));
SELECT advisory.unlock_all('ns');
-- A large number of them, so that the session cleans up its records several times.
SELECT count(*) FROM generate_series(1, 2000) i WHERE advisory.lock('many', i);
SELECT advisory.unlock_all('many');

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- unlock_all(namespace) is for what was taken by name: a hold by key on the same lock stays, whatever was tried by name.
SELECT advisory.lock_key(advisory.key('mixed', 'a')), advisory.lock('mixed', 'a');
SELECT advisory.unlock_all('mixed') AS by_name, advisory.hold_count('mixed', 'a') AS by_key;
SELECT advisory.lock_shared('mixed', 'a'), advisory.unlock_key(advisory.key('mixed', 'a'));
SELECT advisory.unlock_all('mixed') AS by_name, advisory.hold_count('mixed', 'a') AS none;
-- A list that was not cast is one name. That this would release nothing is an error, since a finally block would not notice.
SELECT advisory.lock_all('mixed', '{c,d}');
SELECT advisory.unlock_all('mixed', '{c,d}');
SELECT advisory.unlock_all('mixed', '{}');
\set VERBOSITY sqlstate
SELECT advisory.unlock_all('mixed', '{c,d}');
\set VERBOSITY default
-- A lock of that very name is no list, also if there is no session-level hold to release.
BEGIN;
SELECT advisory.xact_lock('mixed', '{c,d}'), advisory.unlock_all('mixed', '{c,d}');
COMMIT;
SELECT advisory.unlock_all('mixed', '{c,d}'::text[]) AS both;
