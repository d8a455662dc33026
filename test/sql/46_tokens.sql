-- Fencing tokens: who gets one, that they grow, and what refuses smaller ones. Crashes, failovers
-- and upgrades are for script tests.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

---- Only who holds the lock in exclusive mode gets one

SELECT advisory.token('tokens', 'a');
--> ERROR:  this session does not hold advisory lock "tokens/a" in exclusive mode
--> DETAIL:  A session can get a token only for a lock or slot that it holds in exclusive mode.
\set VERBOSITY terse
SELECT advisory.token('tokens', 1);
--> ERROR:  this session does not hold advisory lock "tokens/1" in exclusive mode
SELECT advisory.token('tokens', '00000000-0000-0000-0000-000000000001'::uuid);
--> ERROR:  this session does not hold advisory lock "tokens/00000000-0000-0000-0000-000000000001" in exclusive mode
SELECT advisory.token_key(-7);
--> ERROR:  this session does not hold advisory lock "-7" in exclusive mode
SELECT advisory.token('tokens', 'a', 2);
--> ERROR:  this session does not have slot 2 of semaphore "tokens/a"
SELECT advisory.lock_shared('tokens', 'a'); --> t
SELECT advisory.token('tokens', 'a');
--> ERROR:  this session does not hold advisory lock "tokens/a" in exclusive mode
SELECT advisory.unlock_shared('tokens', 'a'); --> t
\set VERBOSITY default
-- However it was taken.
SELECT advisory.lock('tokens', 'a'), advisory.token('tokens', 'a') > 0 AS by_name; --> t|t
SELECT pg_advisory_lock(advisory.key('tokens', 'b')),
       advisory.token('tokens', 'b') > 0 AS by_the_built_in; --> |t
SELECT advisory.lock('tokens', 1), advisory.token('tokens', 1) > 0 AS by_id, advisory.lock_key(-7),
       advisory.token_key(-7) > 0 AS by_key,
       advisory.lock('tokens', '00000000-0000-0000-0000-000000000001'::uuid),
       advisory.token('tokens', '00000000-0000-0000-0000-000000000001'::uuid) > 0 AS by_uuid;
--> t|t|t|t|t|t
BEGIN;
SELECT advisory.xact_lock('tokens', 'c'), advisory.token('tokens', 'c') > 0 AS of_the_transaction;
--> t|t
COMMIT;
\set VERBOSITY terse
SELECT advisory.token('tokens', 'c');
--> ERROR:  this session does not hold advisory lock "tokens/c" in exclusive mode
-- A slot has its own.
SELECT advisory.acquire('tokens', 'slots', 3) AS slot,
       advisory.token('tokens', 'slots', 1) > 0 AS of_slot; --> 1|t
SELECT advisory.token('tokens', 'slots', 2);
--> ERROR:  this session does not have slot 2 of semaphore "tokens/slots"
SELECT advisory.token('tokens', 'slots');
--> ERROR:  this session does not hold advisory lock "tokens/slots" in exclusive mode
\set VERBOSITY default
SELECT advisory.acquire('tokens', 2, 3) AS slot, advisory.token('tokens', 2, 1) > 0 AS by_id,
       advisory.acquire('tokens', '00000000-0000-0000-0000-000000000001'::uuid, 3) AS slot,
       advisory.token('tokens', '00000000-0000-0000-0000-000000000001'::uuid, 1) > 0 AS by_uuid;
--> 1|t|1|t

---- They grow, whatever becomes of the transaction, and whatever it may do

CREATE TEMP TABLE given (n serial, token bigint);
INSERT INTO given (token) SELECT advisory.token('tokens', 'a');
INSERT INTO given (token) SELECT advisory.token('tokens', 'b');
BEGIN;
SELECT advisory.token('tokens', 'a') AS token \gset
ROLLBACK;
INSERT INTO given (token) VALUES (:token);
BEGIN READ ONLY;
SELECT advisory.token('tokens', 'a') AS token \gset
COMMIT;
INSERT INTO given (token) VALUES (:token);
BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE;
SELECT advisory.token('tokens', 'a') AS token \gset
COMMIT;
INSERT INTO given (token) VALUES (:token);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SAVEPOINT s;
SELECT advisory.token('tokens', 'a') AS token \gset
ROLLBACK TO s;
SELECT advisory.token('tokens', 'a') AS next \gset
COMMIT;
INSERT INTO given (token) VALUES (:token), (:next);
SELECT count(*) AS given, bool_and(token > before) AS grow
    FROM (SELECT token, lag(token, 1, 0::bigint) OVER (ORDER BY n) AS before FROM given) AS g;
--> 7|t
-- tokens_above() begins a new era, also in a transaction that is rolled back.
SELECT max(token) AS highest FROM given \gset
BEGIN;
SELECT advisory.tokens_above(:highest); -->
ROLLBACK;
SELECT advisory.token('tokens', 'a') > :highest AS above,
       (advisory.token('tokens', 'a') >> 50) - (:highest >> 50) AS eras; --> t|1
SELECT advisory.tokens_above(1); -->
SELECT (advisory.token('tokens', 'a') >> 50) - (:highest >> 50) AS eras; --> 1

---- check_token

SELECT advisory.token('tokens', 'a') AS first, advisory.token('tokens', 'a') AS second \gset
SELECT advisory.check_token('tokens', 'a', :first) AS first,
       advisory.check_token('tokens', 'a', :first) AS again,
       advisory.check_token('tokens', 'a', :second) AS second; --> t|t|t
\set VERBOSITY sqlstate
SELECT advisory.check_token('tokens', 'a', :first); --> ERROR:  55000
\set VERBOSITY default
-- Another name has another fence.
SELECT advisory.check_token('tokens', 'b', :first), advisory.check_token('tokens', 1, :first),
       advisory.check_token('tokens', '00000000-0000-0000-0000-000000000001'::uuid, :first);
--> t|t|t
SELECT count(*) AS fences FROM advisory.fences WHERE token IN (:first, :second); --> 4
-- The check of a token in a transaction that is rolled back does not count.
BEGIN;
SELECT advisory.check_token('tokens', 'a', :second + 100); --> t
ROLLBACK;
SELECT advisory.check_token('tokens', 'a', :second); --> t
-- Nobody can use up the tokens of a name.
SELECT advisory.check_token('tokens', 'future', 9223372036854775807);
--> ERROR:  token 9223372036854775807 is greater than all tokens of this database
--> DETAIL:  If it counted as used, no later holder's token would be accepted.
\set VERBOSITY sqlstate
SELECT advisory.check_token('tokens', 'future', advisory.token('tokens', 'a') + 1000000000);
--> ERROR:  22023
SELECT advisory.check_token('tokens', 'future', ((advisory.token('tokens', 'a') >> 50) + 1) << 50);
--> ERROR:  22023
\set VERBOSITY default
SELECT advisory.check_token('tokens', 'future', advisory.token('tokens', 'a')),
       advisory.check_token('tokens', 'future', advisory.token('tokens', 'a')); --> t|t

---- The era after a restored dump: of another system, an older timeline, a newer one of the same

SELECT last_value AS era FROM advisory._era \gset
SELECT setval('advisory._era', :era # 1) > 0 AS other_system; --> t
SELECT (advisory.token('tokens', 'a') >> 50) - (:era >> 50) AS grown; --> 1
SELECT setval('advisory._era', :era - (1::bigint << 37)) > 0 AS older_timeline; --> t
SELECT (advisory.token('tokens', 'a') >> 50) - (:era >> 50) AS grown; --> 1
SELECT setval('advisory._era', :era + (5::bigint << 37)) > 0 AS newer_timeline; --> t
SELECT (advisory.token('tokens', 'a') >> 50) - (:era >> 50) AS grown,
       (advisory.token('tokens', 'a') >> 50) - (:era >> 50) AS and_then; --> 1|1
SELECT advisory.check_token('tokens', 'future', advisory.token('tokens', 'a')); --> t

---- Wrong arguments

SELECT advisory.token(NULL, 'a'); --> ERROR:  namespace must not be null
SELECT advisory.token('', 'a'); --> ERROR:  namespace must not be empty
SELECT advisory.token('tokens', NULL::text); --> ERROR:  name must not be null
SELECT advisory.token('tokens', 'a', NULL); --> ERROR:  slot must not be null
SELECT advisory.token('tokens', 'a', 0); --> ERROR:  slot must be between 1 and 16000
SELECT advisory.token('tokens', 'a', 16001); --> ERROR:  slot must be between 1 and 16000
SELECT advisory.token_key(NULL); --> ERROR:  key must not be null
SELECT advisory.tokens_above(NULL); --> ERROR:  token must not be null
SELECT advisory.tokens_above(-1); --> ERROR:  token must be greater than zero
SELECT advisory.tokens_above(9223372036854775807);
--> ERROR:  token 9223372036854775807 is too large

---- Privileges: anybody may ask for tokens and check them; only the owner writes what is behind

CREATE ROLE regress_tokens;
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.greatest(bigint, bigint) RETURNS bigint
    LANGUAGE sql AS 'SELECT 666::bigint';
GRANT USAGE ON SCHEMA hostile TO PUBLIC;
SET ROLE regress_tokens;
SET search_path = hostile, pg_catalog;
SELECT advisory.lock('tokens', 'of a role'), advisory.token('tokens', 'of a role') > 0 AS token;
--> t|t
SELECT advisory.check_token('tokens', 'of a role', 5), current_user; --> t|regress_tokens
SELECT advisory.check_token('tokens', 'of a role', 4);
--> ERROR:  stale token 4 of "tokens/of a role"
--> DETAIL:  A later holder has already used a greater token.
SELECT current_user; --> regress_tokens
RESET search_path;
-- A role that knows the token of a lease can end it.
SELECT * FROM advisory.fences; --> ERROR:  permission denied for table fences
UPDATE advisory.fences SET token = 1; --> ERROR:  permission denied for table fences
DELETE FROM advisory.fences; --> ERROR:  permission denied for table fences
SELECT setval('advisory._era', 1); --> ERROR:  permission denied for sequence _era
SELECT advisory.tokens_above(1); --> ERROR:  permission denied for function tokens_above
RESET ROLE;
DROP SCHEMA hostile CASCADE;
--> NOTICE:  drop cascades to function hostile."greatest"(bigint,bigint)

---- fenced: tokens that cannot have been given yet (43_fences has the others)

CREATE TABLE invoice (id int PRIMARY KEY, note text, token bigint);
INSERT INTO invoice VALUES (3, 'old', NULL);
CREATE TRIGGER fence BEFORE INSERT OR UPDATE ON invoice
    FOR EACH ROW EXECUTE FUNCTION advisory.fenced('token');
INSERT INTO invoice VALUES (5, 'of the future', 9223372036854775807);
--> ERROR:  token 9223372036854775807 is greater than all tokens of this database
--> DETAIL:  If it counted as used, no later holder's token would be accepted.
\set VERBOSITY terse
UPDATE invoice SET token = 9223372036854775807 WHERE id = 3;
--> ERROR:  token 9223372036854775807 is greater than all tokens of this database
UPDATE invoice SET token = advisory.token('tokens', 'a') WHERE id = 3;
\set VERBOSITY sqlstate
UPDATE invoice SET token = advisory.token('tokens', 'a') + 1000000000 WHERE id = 3;
--> ERROR:  22023
\set VERBOSITY default
-- What was there before stays usable.
ALTER TABLE invoice DISABLE TRIGGER fence;
UPDATE invoice SET token = 9223372036854775807 WHERE id = 3;
ALTER TABLE invoice ENABLE TRIGGER fence;
UPDATE invoice SET note = 'same token' WHERE id = 3 RETURNING token; --> 9223372036854775807
DROP TRIGGER fence ON invoice;
SELECT advisory.fenced(); --> ERROR:  advisory.fenced() must be called as a trigger
DROP TABLE invoice;

SELECT pg_advisory_unlock_all(); -->
SET ROLE NONE;
DROP ROLE regress_tokens;
DELETE FROM advisory.fences;
