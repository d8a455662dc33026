-- advisory.leaks: session-level locks of a connection that now serves somebody else. This session is never idle while it
-- looks, so idle sessions are for the isolation tests.
SET application_name = 'first';
CREATE ROLE regress_leaks_other;
CREATE VIEW pg_temp.mine AS
    SELECT kind, namespace, name, key1, key2, mode, replace(taken_by_role, session_user, 'ROLE') AS taken_by_role, taken_by_application,
           replace(reason, session_user, 'ROLE') AS reason
    FROM advisory.leaks WHERE pid = pg_backend_pid() ORDER BY namespace, name, key1;
GRANT SELECT ON pg_temp.mine TO regress_leaks_other;

---- Nobody has changed

SELECT advisory.lock('leaks', 'a'), advisory.lock_shared('leaks', 'b'), pg_advisory_lock(1, 2);
SET advisory_ext.leak_after = 0;
SELECT * FROM pg_temp.mine;

---- Another application

SET application_name = 'second';
SELECT * FROM pg_temp.mine;
SELECT advisory.lock('leaks', 'c');
SELECT namespace, name, taken_by_application, reason FROM pg_temp.mine;
SET application_name = 'first';
SELECT namespace, name, taken_by_application, reason FROM pg_temp.mine;
SELECT advisory.unlock('leaks', 'c');
SELECT * FROM pg_temp.mine;

---- Another user, as of the transaction before

SET ROLE regress_leaks_other;
SELECT current_user;
-- A superuser's session, which the other must not see.
SELECT * FROM pg_temp.mine;
RESET ROLE;
SELECT current_user = session_user AS back;
SELECT * FROM pg_temp.mine;
SET ROLE regress_leaks_other;
SELECT advisory.lock('leaks', 'by another'), advisory.lock('leaks', 'a');
RESET ROLE;
SELECT current_user = session_user AS back;
SELECT namespace, name, mode, taken_by_role, taken_by_application, reason FROM pg_temp.mine;
SET application_name = 'third';
SELECT namespace, name, taken_by_role, taken_by_application, reason FROM pg_temp.mine;

---- What the key is known as

SELECT advisory.lock_key(72707369), advisory.lock_key(7, label => 'nobody''s');
SET application_name = 'other';
SELECT key, name, known_as FROM advisory.leaks WHERE pid = pg_backend_pid() AND key IN (7, 72707369) ORDER BY key;
SELECT advisory.unlock_key(72707369), advisory.unlock_key(7);
SET application_name = 'third';

---- Given back, or of a transaction: no leak

SELECT advisory.unlock('leaks', 'by another'), advisory.unlock_all('leaks', 'a'), advisory.unlock_shared('leaks', 'b');
BEGIN;
SELECT advisory.xact_lock('leaks', 'a');
SET LOCAL application_name = 'fourth';
SELECT * FROM pg_temp.mine;
COMMIT;
SELECT * FROM pg_temp.mine;
SELECT pg_advisory_unlock_all();

---- After many applications, one after the other, of which none has left a lock

SELECT format('SET application_name = %L', 'one of ' || i),
       $$DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'$$, $$DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'$$
FROM generate_series(1, 8) AS i \gexec
SET application_name = 'fifth';
SELECT advisory.lock('leaks', 'a');
SET application_name = 'sixth';
SELECT namespace, name, taken_by_application, reason FROM pg_temp.mine;
---- A busy connection: work for others while the lock is held, even if it now serves the first again

SELECT advisory.unlock_all('leaks');
SET application_name = 'first';
SELECT advisory.lock('leaks', 'busy');
SELECT 1 AS own;
SELECT 2 AS own;
CREATE VIEW pg_temp.busy AS SELECT name, reason, transactions FROM advisory.leaks WHERE pid = pg_backend_pid() ORDER BY name;
SELECT * FROM pg_temp.busy;
SET application_name = 'second';
SELECT 1 AS of_another;
SELECT * FROM pg_temp.busy;
SET application_name = 'first';
SELECT * FROM pg_temp.busy;
-- A lock that is taken now is not held through that.
SELECT advisory.lock('leaks', 'later'), advisory.lock('leaks', 'busy'), advisory.unlock('leaks', 'busy');
SELECT * FROM pg_temp.busy;
-- Also work for another role; what a transaction sets for itself does not count.
BEGIN;
SET LOCAL application_name = 'another';
SELECT 1 AS own;
COMMIT;
SET ROLE regress_leaks_other;
SELECT 1 AS of_another;
RESET ROLE;
SELECT * FROM pg_temp.busy;
-- With more applications than a session remembers.
SELECT format('SET application_name = %L', 'one of ' || i) FROM generate_series(1, 12) AS i \gexec
SET application_name = 'first';
SELECT * FROM pg_temp.busy;
SELECT advisory.unlock_all('leaks');
SELECT advisory.lock('leaks', 'again');
SELECT * FROM pg_temp.busy;
SELECT advisory.unlock_all('leaks');
REVOKE ALL ON pg_temp.mine FROM regress_leaks_other;
DROP ROLE regress_leaks_other;
