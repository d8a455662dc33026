-- advisory.leaks: session-level locks of a connection that now serves somebody else. This session
-- is never idle while it looks, so idle sessions are for the isolation tests.
\pset format unaligned \pset tuples_only on
SET application_name = 'first';
CREATE ROLE regress_leaks_other;
CREATE VIEW pg_temp.mine AS
    SELECT kind, namespace, name, key1, key2, mode,
        replace(taken_by_role, session_user, 'ROLE') AS taken_by_role, taken_by_application,
           replace(reason, session_user, 'ROLE') AS reason
    FROM advisory.leaks WHERE pid = pg_backend_pid() ORDER BY namespace, name, key1;
GRANT SELECT ON pg_temp.mine TO regress_leaks_other;

---- Nobody has changed
SELECT advisory.lock('leaks', 'a'), advisory.lock_shared('leaks', 'b'), pg_advisory_lock(1, 2);
--> t|t|
SET advisory_ext.leak_after = 0;
SELECT * FROM pg_temp.mine;

---- Another application
SET application_name = 'second';
SELECT * FROM pg_temp.mine;
--> lock|leaks|a|||exclusive|ROLE|first|taken by application "first", now serves "second"
--> lock|leaks|b|||shared|ROLE|first|taken by application "first", now serves "second"
SELECT advisory.lock('leaks', 'c'); --> t
SELECT namespace, name, taken_by_application, reason FROM pg_temp.mine;
--> leaks|a|first|taken by application "first", now serves "second"; held through 2 transactions of others' work
--> leaks|b|first|taken by application "first", now serves "second"; held through 2 transactions of others' work
SET application_name = 'first';
SELECT namespace, name, taken_by_application, reason FROM pg_temp.mine;
--> leaks|a|first|held through 3 transactions of others' work
--> leaks|b|first|held through 3 transactions of others' work
--> leaks|c|second|taken by application "second", now serves "first"
SELECT advisory.unlock('leaks', 'c'); --> t
SELECT * FROM pg_temp.mine;
--> lock|leaks|a|||exclusive|ROLE|first|held through 3 transactions of others' work
--> lock|leaks|b|||shared|ROLE|first|held through 3 transactions of others' work

---- Another user, as of the transaction before
SET ROLE regress_leaks_other;
SELECT current_user; --> regress_leaks_other
-- A superuser's session, which the other must not see.
SELECT * FROM pg_temp.mine;
RESET ROLE;
SELECT current_user = session_user AS back; --> t
SELECT * FROM pg_temp.mine;
--> lock|leaks|a|||exclusive|ROLE|first|held through 5 transactions of others' work
--> lock|leaks|b|||shared|ROLE|first|held through 5 transactions of others' work
SET ROLE regress_leaks_other;
SELECT advisory.lock('leaks', 'by another'), advisory.lock('leaks', 'a'); --> t|t
RESET ROLE;
SELECT current_user = session_user AS back; --> t
SELECT namespace, name, mode, taken_by_role, taken_by_application, reason FROM pg_temp.mine;
--> leaks|a|exclusive|ROLE|first|held through 6 transactions of others' work
--> leaks|b|shared|ROLE|first|held through 6 transactions of others' work
--> leaks|by another|exclusive|regress_leaks_other|first|taken as user "regress_leaks_other", now acts as "ROLE"; held through 1 transaction of others' work
SET application_name = 'third';
SELECT namespace, name, taken_by_role, taken_by_application, reason FROM pg_temp.mine;
--> leaks|a|ROLE|first|taken by application "first", now serves "third"; held through 6 transactions of others' work
--> leaks|b|ROLE|first|taken by application "first", now serves "third"; held through 6 transactions of others' work
--> leaks|by another|regress_leaks_other|first|taken as user "regress_leaks_other", now acts as "ROLE"; taken by application "first", now serves "third"; held through 2 transactions of others' work

---- What the key is known as
SELECT advisory.lock_key(72707369), advisory.lock_key(7, label => 'nobody''s'); --> t|t
SET application_name = 'other';
SELECT key, name, known_as FROM advisory.leaks WHERE pid = pg_backend_pid() AND key IN (7, 72707369)
    ORDER BY key;
--> 7|nobody's|
--> 72707369||{"Prisma Migrate: migration lock"}
SELECT advisory.unlock_key(72707369), advisory.unlock_key(7); --> t|t
SET application_name = 'third';

---- Given back, or of a transaction: no leak
SELECT advisory.unlock('leaks', 'by another'), advisory.unlock_all('leaks', 'a'),
    advisory.unlock_shared('leaks', 'b'); --> t|2|t
BEGIN;
SELECT advisory.xact_lock('leaks', 'a'); --> t
SET LOCAL application_name = 'fourth';
SELECT * FROM pg_temp.mine;
COMMIT;
SELECT * FROM pg_temp.mine;
SELECT pg_advisory_unlock_all(); -->

---- After many applications, one after the other, of which none has left a lock
SELECT format('SET application_name = %L', 'one of ' || i),
       $$DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'$$,
       $$DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'$$
FROM generate_series(1, 8) AS i \gexec
--> SET application_name = 'one of 1'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 2'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 3'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 4'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 5'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 6'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 7'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
--> SET application_name = 'one of 8'
--> DO 'BEGIN PERFORM advisory.lock(''leaks'', ''a''); END'
--> DO 'BEGIN PERFORM advisory.unlock(''leaks'', ''a''); END'
SET application_name = 'fifth';
SELECT advisory.lock('leaks', 'a'); --> t
SET application_name = 'sixth';
SELECT namespace, name, taken_by_application, reason FROM pg_temp.mine;
--> leaks|a|fifth|taken by application "fifth", now serves "sixth"
---- A busy connection: work for others while the lock is held, even if it serves the first again
SELECT advisory.unlock_all('leaks'); --> 1
SET application_name = 'first';
SELECT advisory.lock('leaks', 'busy'); --> t
SELECT 1 AS own; --> 1
SELECT 2 AS own; --> 2
CREATE VIEW pg_temp.busy AS SELECT name, reason, transactions FROM advisory.leaks
    WHERE pid = pg_backend_pid() ORDER BY name;
SELECT * FROM pg_temp.busy;
SET application_name = 'second';
SELECT 1 AS of_another; --> 1
SELECT * FROM pg_temp.busy;
--> busy|taken by application "first", now serves "second"; held through 1 transaction of others' work|5
SET application_name = 'first';
SELECT * FROM pg_temp.busy; --> busy|held through 2 transactions of others' work|6
-- A lock that is taken now is not held through that.
SELECT advisory.lock('leaks', 'later'), advisory.lock('leaks', 'busy'),
    advisory.unlock('leaks', 'busy'); --> t|t|t
SELECT * FROM pg_temp.busy; --> busy|held through 2 transactions of others' work|8
-- Also work for another role; what a transaction sets for itself does not count.
BEGIN;
SET LOCAL application_name = 'another';
SELECT 1 AS own; --> 1
COMMIT;
SET ROLE regress_leaks_other;
SELECT 1 AS of_another; --> 1
RESET ROLE;
SELECT * FROM pg_temp.busy;
--> busy|held through 3 transactions of others' work|11
--> later|held through 1 transaction of others' work|3
-- With more applications than a session remembers.
SELECT format('SET application_name = %L', 'one of ' || i) FROM generate_series(1, 12) AS i \gexec
--> SET application_name = 'one of 1'
--> SET application_name = 'one of 2'
--> SET application_name = 'one of 3'
--> SET application_name = 'one of 4'
--> SET application_name = 'one of 5'
--> SET application_name = 'one of 6'
--> SET application_name = 'one of 7'
--> SET application_name = 'one of 8'
--> SET application_name = 'one of 9'
--> SET application_name = 'one of 10'
--> SET application_name = 'one of 11'
--> SET application_name = 'one of 12'
SET application_name = 'first';
SELECT * FROM pg_temp.busy;
--> busy|held through 9 transactions of others' work|19
--> later|held through 7 transactions of others' work|11
SELECT advisory.unlock_all('leaks'); --> 2
SELECT advisory.lock('leaks', 'again'); --> t
SELECT * FROM pg_temp.busy;
SELECT advisory.unlock_all('leaks'); --> 1
REVOKE ALL ON pg_temp.mine FROM regress_leaks_other;
DROP ROLE regress_leaks_other;
