-- Releasing all of a namespace, and lists that were not cast.
\pset format unaligned \pset tuples_only on
CREATE VIEW pg_temp.mine AS
    SELECT namespace, name, mode, scope FROM advisory.locks WHERE pid = pg_backend_pid();

---- unlock_all of a name leaves the transaction's holds
BEGIN;
SELECT advisory.lock('ns', 'name'), advisory.xact_lock('ns', 'name'), advisory.unlock('ns', 'name'),
    advisory.unlock_all('ns', 'name') AS nothing; --> t|t|t|0
SELECT name, mode, scope FROM pg_temp.mine; --> name|exclusive|transaction
COMMIT;

---- unlock_all of a namespace: what this session took by name through this extension
BEGIN;
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'a'), advisory.lock_shared('ns', 'a'),
       advisory.lock('ns', 42),
       advisory.lock('ns', '00000000-0000-0000-0000-000000000001'::uuid),
       advisory.xact_lock('ns', 'x'),
       advisory.lock('ns2', 'a'), advisory.lock('n', 's'); --> t|t|t|t|t|t|t|t
SELECT advisory.lock_key(advisory.key('ns', 'by key')), advisory.lock_key(1, label => 'ns'); --> t|t
SELECT pg_advisory_lock(advisory.key('ns', 'built-in')), pg_advisory_lock(advisory.key('ns', 'a'));
--> |
SELECT advisory.unlock_all('ns'); --> 5
-- Not touched: the built-ins' hold on the same lock, what was taken by key, other namespaces, the
-- transaction's.
SELECT namespace, name, mode, scope FROM pg_temp.mine ORDER BY namespace, name, mode;
--> n|s|exclusive|session
--> ns|a|exclusive|session
--> ns|x|exclusive|transaction
--> ns2|a|exclusive|session
--> |ns|exclusive|session
--> ||exclusive|session
--> ||exclusive|session
SELECT advisory.unlock_all('ns') AS again, advisory.unlock_all('nobody''s') AS unknown; --> 0|0
COMMIT;
SELECT advisory.unlock('ns', 'built-in'), advisory.unlock('ns', 'a'),
    advisory.unlock('ns', 'by key'), advisory.unlock_key(1); --> t|t|t|t
SELECT advisory.unlock_all('ns2') AS ns2, advisory.unlock_all('n') AS n; --> 1|1
-- Locks that lock_all() or a procedure takes are taken by name, too.
SELECT advisory.lock_all('ns', ARRAY['a', 'b']); --> t
SELECT advisory.try_lock_any('ns', ARRAY['c', 'd']); --> c
CALL advisory.await_lock('ns', 'e');
CALL advisory.await_lock_shared('ns', 'e');
SELECT advisory.unlock_all('ns'); --> 5
-- Holds that were released without the extension are not counted, and not released again.
SELECT advisory.lock('ns', 'a'), advisory.lock('ns', 'b'), advisory.lock('ns', 'b'); --> t|t|t
SELECT pg_advisory_unlock(advisory.key('ns', 'a')), pg_advisory_unlock(advisory.key('ns', 'b'));
--> t|t
SELECT advisory.unlock_all('ns'); --> 1
-- A large number of them, so that the session cleans up its records several times.
SELECT count(*) FROM generate_series(1, 2000) i WHERE advisory.lock('many', i); --> 2000
SELECT advisory.unlock_all('many'); --> 2000
-- Each of long namespaces that look alike, because views and messages cut them, is its own.
SELECT count(*) FROM unnest(ARRAY['', '1', '2']) AS n
    WHERE advisory.lock(repeat('n', 300) || n, 'a');
--> 3
SELECT n, advisory.unlock_all(repeat('n', 300) || n) FROM unnest(ARRAY['1', '', '3', '2']) AS n;
--> 1|1
--> |1
--> 3|0
--> 2|1

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0

-- unlock_all(namespace) is for what was taken by name: a hold by key on the same lock stays,
-- whatever was tried by name.
SELECT advisory.lock_key(advisory.key('mixed', 'a')), advisory.lock('mixed', 'a'); --> t|t
SELECT advisory.unlock_all('mixed') AS by_name, advisory.hold_count('mixed', 'a') AS by_key; --> 1|1
SELECT advisory.lock_shared('mixed', 'a'), advisory.unlock_key(advisory.key('mixed', 'a')); --> t|t
SELECT advisory.unlock_all('mixed') AS by_name, advisory.hold_count('mixed', 'a') AS none; --> 1|0
-- A list that was not cast is one name. That this would release nothing is an error, since a
-- finally block would not notice.
SELECT advisory.lock_all('mixed', '{c,d}'); --> t
SELECT advisory.unlock_all('mixed', '{c,d}');
--> ERROR:  this session does not hold an advisory lock of that name, which looks like a list
--> HINT:  To release a list of locks, cast it: unlock_all(namespace, list::text[]).
SELECT advisory.unlock_all('mixed', '{}'); --> 0
\set VERBOSITY sqlstate
SELECT advisory.unlock_all('mixed', '{c,d}'); --> ERROR:  22023
SELECT advisory.unlock_all('mixed', 'c,d'); --> ERROR:  22023
SELECT advisory.unlock_all('mixed', '["c", "d"]'); --> ERROR:  22023
SELECT advisory.unlock_all('mixed', '[''c'', ''d'']'); --> ERROR:  22023
SELECT advisory.unlock_all('mixed', '[c]'); --> ERROR:  22023
-- Ordinary names.
SELECT advisory.unlock_all('mixed', name) FROM unnest(
    '{"Miller, Jim","Miller ,Jim",",","a,",",a","[]","{a","a]"}'::text[]) AS name;
--> 0
--> 0
--> 0
--> 0
--> 0
--> 0
--> 0
--> 0
\set VERBOSITY default
-- A lock of that very name is no list, also if there is no session-level hold to release.
BEGIN;
SELECT advisory.xact_lock('mixed', '{c,d}'), advisory.unlock_all('mixed', '{c,d}'); --> t|0
COMMIT;
SELECT advisory.lock('mixed', 'c,d'), advisory.unlock_all('mixed', 'c,d'); --> t|1
SELECT advisory.unlock_all('mixed', '{c,d}'::text[]) AS both; --> 2
