-- Releasing all of a namespace, and lists that were not cast.
CREATE VIEW pg_temp.mine AS
    SELECT namespace, name, mode, scope FROM advisory.locks WHERE pid = pg_backend_pid();

---- unlock_all of a name leaves the transaction's holds

BEGIN;
SELECT advisory.lock('ns', 'name'), advisory.xact_lock('ns', 'name'), advisory.unlock('ns', 'name'), advisory.unlock_all('ns', 'name') AS nothing;
SELECT name, mode, scope FROM pg_temp.mine;
COMMIT;

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
