-- Editions: both.
-- Releasing: one hold with the built-ins' warning, or all of them without any. (28_unlock_namespace: all of a namespace.)

CREATE VIEW pg_temp.mine AS
    SELECT n.namespace, n.name, mode
    FROM advisory.locks LEFT JOIN (VALUES ('ns', 'name'), ('ns', 'other'), ('ns', 'a'), ('ns', 'c'), ('ns2', 'a')) AS n (namespace, name) ON key = advisory.key(n.namespace, n.name)
    WHERE pid = pg_backend_pid();

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
SELECT mode FROM pg_temp.mine;
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
SELECT name, mode FROM pg_temp.mine ORDER BY name;
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

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
