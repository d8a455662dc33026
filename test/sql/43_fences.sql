-- Editions: both.
-- What refuses stale tokens: check_token() and the trigger function fenced(). (46_tokens has the
-- tokens themselves.)
\pset format unaligned \pset tuples_only on

---- check_token
SELECT advisory.check_token('fences', 'a', 10) AS first,
    advisory.check_token('fences', 'a', 10) AS again,
    advisory.check_token('fences', 'a', 11) AS second; --> t|t|t
\set VERBOSITY sqlstate
SELECT advisory.check_token('fences', 'a', 10); --> ERROR:  55000
\set VERBOSITY default
-- Another name has another fence.
SELECT advisory.check_token('fences', 'b', 10), advisory.check_token('fences', 1, 10),
    advisory.check_token('fences', '00000000-0000-0000-0000-000000000001'::uuid, 10); --> t|t|t
SELECT count(*) AS fences FROM advisory.fences WHERE token IN (10, 11); --> 4
-- The check of a token in a transaction that is rolled back does not count.
BEGIN;
SELECT advisory.check_token('fences', 'a', 111); --> t
ROLLBACK;
SELECT advisory.check_token('fences', 'a', 11); --> t
-- The error says both.
SELECT advisory.check_token('fences', 'readable', 7); --> t
SELECT advisory.check_token('fences', 'readable', 6);
--> ERROR:  stale token 6 of "fences/readable"
--extension> DETAIL:  A later holder has already used token 7.
--portable> DETAIL:  A later holder has already used a greater token.
BEGIN READ ONLY;
SELECT advisory.check_token('fences', 'readable', 8);
--extension> ERROR:  cannot execute advisory.check_token() in a read-only transaction
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK;

SELECT advisory.check_token('fences', 'a', NULL); --> ERROR:  token must not be null
SELECT advisory.check_token('fences', 'a', 0); --> ERROR:  token must be greater than zero
SELECT advisory.check_token('fences', NULL::text, 1); --> ERROR:  name must not be null

---- fenced
CREATE TABLE invoice (id int PRIMARY KEY, note text, token bigint);
CREATE TRIGGER fence BEFORE INSERT OR UPDATE ON invoice FOR EACH ROW
    EXECUTE FUNCTION advisory.fenced('token');
INSERT INTO invoice VALUES (1, 'first', 10);
INSERT INTO invoice VALUES (2, 'null', NULL);
--> ERROR:  null token in column "token" of relation "invoice"
UPDATE invoice SET note = 'stale', token = 9;
--> ERROR:  stale token 9 in column "token" of relation "invoice"
--> DETAIL:  A later holder has already written a greater token.
UPDATE invoice SET note = 'null', token = NULL;
--> ERROR:  null token in column "token" of relation "invoice"
INSERT INTO invoice VALUES (1, 'stale', 9) ON CONFLICT (id) DO UPDATE SET note = EXCLUDED.note,
    token = EXCLUDED.token;
--> ERROR:  stale token 9 in column "token" of relation "invoice"
--> DETAIL:  A later holder has already written a greater token.
\set VERBOSITY sqlstate
UPDATE invoice SET token = 9; --> ERROR:  55000
\set VERBOSITY default
UPDATE invoice SET note = 'same', token = 10;
UPDATE invoice SET note = 'later', token = 11;
UPDATE invoice SET note = 'without a token';
SELECT * FROM invoice; --> 1|without a token|11
-- A row that had no token before the trigger was created.
ALTER TABLE invoice DISABLE TRIGGER fence;
INSERT INTO invoice VALUES (3, 'old', NULL);
ALTER TABLE invoice ENABLE TRIGGER fence;
UPDATE invoice SET token = 1 WHERE id = 3;
DROP TRIGGER fence ON invoice;
-- Wrong uses.
CREATE FUNCTION pg_temp.try(definition text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE TRIGGER wrong ' || definition;
    INSERT INTO invoice VALUES (4, 'x', 1);
    RETURN 'accepted';
EXCEPTION WHEN others THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT pg_temp.try(definition) FROM (VALUES
    (1, 'BEFORE INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION advisory.fenced()'),
    (2, 'BEFORE INSERT ON invoice FOR EACH ROW
         EXECUTE FUNCTION advisory.fenced(''token'', ''note'')'),
    (3, 'BEFORE INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION advisory.fenced(''nothing'')'),
    (4, 'BEFORE INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION advisory.fenced(''note'')'),
    (5, 'BEFORE INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION advisory.fenced(''tableoid'')'),
    (6, 'AFTER INSERT ON invoice FOR EACH ROW EXECUTE FUNCTION advisory.fenced(''token'')'),
    (7, 'BEFORE INSERT ON invoice FOR EACH STATEMENT EXECUTE FUNCTION advisory.fenced(''token'')'))
    AS t(i, definition) ORDER BY i;
--> 39P01 advisory.fenced() takes the name of the token's column as its only argument
--> 39P01 advisory.fenced() takes the name of the token's column as its only argument
--> 42703 column "nothing" of relation "invoice" does not exist
--> 42804 column "note" of relation "invoice" must have type bigint
--> 42703 column "tableoid" of relation "invoice" does not exist
--> 39P01 advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW
--> 39P01 advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW
DROP TABLE invoice;
