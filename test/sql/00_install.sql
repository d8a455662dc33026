-- CREATE EXTENSION is all the set-up, and never adopts a schema that somebody else has made.
-- Works through databases of its own. In the one that the other tests use, pg_regress has created
-- the extension.
\pset format unaligned \pset tuples_only on
CREATE ROLE regress_advisory_planter;
CREATE ROLE regress_advisory_owner;
CREATE ROLE regress_advisory_stranger;
SELECT current_database() AS regression \gset

---- A schema "advisory" that somebody else has made, with a function to be called by mistake
CREATE DATABASE regress_advisory_planted TEMPLATE template0;
GRANT CREATE ON DATABASE regress_advisory_planted TO regress_advisory_planter;
\c regress_advisory_planted
SET ROLE regress_advisory_planter;
CREATE SCHEMA advisory;
CREATE FUNCTION advisory.try_lock(namespace text, name text, timeout text)
    RETURNS boolean LANGUAGE sql AS 'SELECT true';
RESET ROLE;
-- Newer servers add the place in the script as context.
\set VERBOSITY terse
CREATE EXTENSION advisory_ext; --> ERROR:  schema "advisory" already exists
CREATE EXTENSION advisory_ext SCHEMA advisory;
--> ERROR:  extension "advisory_ext" must be installed in schema "pg_catalog"
\set VERBOSITY default
-- Nothing of it came, and nothing was adopted.
SELECT count(*) AS installed FROM pg_extension WHERE extname = 'advisory_ext'; --> 0
SELECT proname, proowner::regrole FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace;
--> try_lock|regress_advisory_planter
SELECT count(*) AS adopted FROM pg_depend
    WHERE objid IN ('advisory'::regnamespace, 'advisory.try_lock(text,text,text)'::regprocedure)
      AND deptype = 'e'; --> 0
DROP SCHEMA advisory CASCADE;
--> NOTICE:  drop cascades to function advisory.try_lock(text,text,text)
CREATE EXTENSION advisory_ext;

---- The owner of a database, without superuser privileges
\c :regression
CREATE DATABASE regress_advisory_owned OWNER regress_advisory_owner TEMPLATE template0;
\c regress_advisory_owned
SET ROLE regress_advisory_owner;
CREATE EXTENSION advisory_ext;
SELECT extowner::regrole FROM pg_extension WHERE extname = 'advisory_ext';
--> regress_advisory_owner
BEGIN;
SELECT advisory.try_xact_lock('billing', 'invoice:42'); --> t
COMMIT;
SELECT count(*) FROM advisory.locks; --> 0
DROP EXTENSION advisory_ext;
-- It takes everything along, the schema too.
SELECT to_regnamespace('advisory'); -->
CREATE EXTENSION advisory_ext;
-- "Not relocatable" holds for superusers, too.
ALTER EXTENSION advisory_ext SET SCHEMA public;
--> ERROR:  extension "advisory_ext" does not support SET SCHEMA
RESET ROLE;
ALTER EXTENSION advisory_ext SET SCHEMA public;
--> ERROR:  extension "advisory_ext" does not support SET SCHEMA
DROP EXTENSION advisory_ext;

---- A role that may not create anything in the database
SET ROLE regress_advisory_stranger;
\set VERBOSITY sqlstate
CREATE EXTENSION advisory_ext; --> ERROR:  42501
\set VERBOSITY default
RESET ROLE;
SELECT count(*) AS installed FROM pg_extension WHERE extname = 'advisory_ext'; --> 0

---- Clean up
\c :regression
DROP DATABASE regress_advisory_planted;
DROP DATABASE regress_advisory_owned;
DROP ROLE regress_advisory_planter;
DROP ROLE regress_advisory_owner;
DROP ROLE regress_advisory_stranger;
SELECT extname, extnamespace::regnamespace, extrelocatable FROM pg_extension
    WHERE extname = 'advisory_ext'; --> advisory_ext|pg_catalog|f
