-- unlock() in a transaction that has written since it took the lock: others see the old rows until
-- COMMIT.
\pset format unaligned \pset tuples_only on
CREATE TABLE regress_early (n int);
INSERT INTO regress_early VALUES (1);
SET client_min_messages = error;
SELECT advisory.lock('early', 'a'); --> t
RESET client_min_messages;

---- Taken before the transaction
BEGIN;
UPDATE regress_early SET n = 2;
SELECT advisory.unlock('early', 'a');
--> WARNING:  advisory lock "early/a" is released before what was written under it is committed
--> DETAIL:  Until COMMIT others see the old rows, also whoever takes the lock now.
--> HINT:  Release it after COMMIT, or take it with advisory.xact_lock(). To allow it, SET advisory_ext.unlock_before_commit = on.
--> t
COMMIT;
\set VERBOSITY terse

---- Taken in the transaction, before it wrote
BEGIN;
SELECT advisory.lock('early', 'a'); --> t
UPDATE regress_early SET n = 3;
SELECT advisory.unlock('early', 'a');
--> WARNING:  advisory lock "early/a" is released before what was written under it is committed
--> t
COMMIT;

---- ... and after it wrote, under the lock and not
BEGIN;
UPDATE regress_early SET n = 4;
SELECT advisory.lock('early', 'a'); --> t
SELECT n FROM regress_early; --> 4
SELECT advisory.unlock('early', 'a'); --> t
SELECT advisory.lock('early', 'a'); --> t
UPDATE regress_early SET n = 5;
SELECT advisory.unlock('early', 'a');
--> WARNING:  advisory lock "early/a" is released before what was written under it is committed
--> t
COMMIT;

---- Each way to release it
BEGIN;
SELECT advisory.lock('early', 'a'), advisory.lock('early', 42), advisory.lock_key(7),
    advisory.lock_shared('early', 'shared'), advisory.lock('early', 'list'),
    advisory.lock('early', 'rest'), advisory.acquire('early', 'slot', 1); --> t|t|t|t|t|t|1
DELETE FROM regress_early;
SELECT advisory.unlock_all('early', 'a');
--> WARNING:  advisory lock "early/a" is released before what was written under it is committed
--> 1
SELECT advisory.unlock('early', 42);
--> WARNING:  advisory lock "early/42" is released before what was written under it is committed
--> t
SELECT advisory.unlock_key(7);
--> WARNING:  advisory lock "7" is released before what was written under it is committed
--> t
SELECT advisory.unlock_shared('early', 'shared');
--> WARNING:  advisory lock "early/shared" is released before what was written under it is committed
--> t
SELECT advisory.unlock_all('early', ARRAY['list']);
--> WARNING:  advisory lock "early/list" is released before what was written under it is committed
--> 1
SELECT advisory.unlock_all('early');
--> WARNING:  advisory lock "early/rest" is released before what was written under it is committed
--> 2
SELECT count(advisory.lock('early', 'n' || n)) FROM generate_series(1, 300) AS n; --> 300
UPDATE regress_early SET n = 13;
SELECT advisory.unlock_all('early');
--> WARNING:  advisory lock "early/n1" and 299 more are released before what was written under them is committed
--> 300
ROLLBACK;

---- In a function, in one statement, and in a procedure that commits
DO $$
BEGIN
    PERFORM advisory.lock('early', 'a');
    UPDATE regress_early SET n = 6;
    PERFORM advisory.unlock('early', 'a');
END $$;
--> WARNING:  advisory lock "early/a" is released before what was written under it is committed
DO $$
BEGIN
    PERFORM advisory.lock('early', 'a');
    UPDATE regress_early SET n = 7;
    COMMIT;
    PERFORM advisory.unlock('early', 'a');
END $$;
SELECT advisory.lock('early', 'a'); --> t
UPDATE regress_early SET n = 8 RETURNING advisory.unlock('early', 'a');
--> WARNING:  advisory lock "early/a" is released before what was written under it is committed
--> t

---- Nothing is released, or nothing was written: no warning
SELECT advisory.lock('early', 'a'), advisory.lock('early', 'a'); --> t|t
BEGIN;
UPDATE regress_early SET n = 9;
SELECT advisory.unlock('early', 'a') AS one_of_two; --> t
SELECT advisory.xact_lock('early', 'a'); --> t
SELECT advisory.unlock('early', 'a') AS until_commit; --> t
COMMIT;
SELECT advisory.lock('early', 'a'); --> t
BEGIN;
SELECT n FROM regress_early; --> 9
UPDATE regress_early SET n = 0 WHERE n = -1;
SELECT advisory.unlock('early', 'a'); --> t
COMMIT;
BEGIN;
SELECT advisory.lock_shared('early', 'a'), advisory.lock('early', 'a'); --> t|t
UPDATE regress_early SET n = 10;
SELECT advisory.unlock_shared('early', 'a') AS it_is_still_exclusive; --> t
COMMIT;
BEGIN;
SELECT advisory.lock('early', 'b'), advisory.lock('early', 'c'); --> t|t
UPDATE regress_early SET n = 14;
SELECT pg_advisory_unlock(advisory.key('early', 'b')) AS without_the_extension; --> t
SELECT advisory.unlock_all('early', 'b') AS nothing_is_left; --> 0
COMMIT;
SELECT advisory.unlock('early', 'c'); --> t
UPDATE regress_early SET n = 11;
SELECT advisory.unlock('early', 'a'); --> t

---- Turned off
SELECT advisory.lock('early', 'a'); --> t
SET advisory_ext.unlock_before_commit = on;
BEGIN;
UPDATE regress_early SET n = 12;
SELECT advisory.unlock('early', 'a'); --> t
COMMIT;
\set VERBOSITY default
SET advisory_ext.unlock_before_commit = off;
--> ERROR:  invalid value for parameter "advisory_ext.unlock_before_commit": "off"
--> HINT:  Available values: on, warn.
RESET advisory_ext.unlock_before_commit;
DROP TABLE regress_early;
SELECT count(*) FROM advisory.locks; --> 0
