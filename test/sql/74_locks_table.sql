-- The foreign table behind advisory.locks. The extension's own table is the only one that its
-- server serves: a role that was granted USAGE on the server can make foreign tables of its own,
-- whose columns the extension would not write.
\pset format unaligned \pset tuples_only on
CREATE ROLE regress_advisory_role;
CREATE SCHEMA regress_advisory AUTHORIZATION regress_advisory_role;
GRANT USAGE ON FOREIGN SERVER advisory_ext TO regress_advisory_role;
GRANT USAGE ON FOREIGN DATA WRAPPER advisory_ext TO regress_advisory_role;
CREATE TABLE regress_advisory.plain (LIKE advisory._locks);
ALTER TABLE regress_advisory.plain OWNER TO regress_advisory_role;
SELECT advisory.lock('ns', 'name'); --> t

---- A role's own foreign tables are refused, whatever their columns are
SET ROLE regress_advisory_role;
SET search_path = regress_advisory;
CREATE FOREIGN TABLE no_columns () SERVER advisory_ext;
CREATE FOREIGN TABLE some_columns (pid integer, database text) SERVER advisory_ext;
CREATE FOREIGN TABLE other_types (pid text, database text, role text) SERVER advisory_ext;
CREATE FOREIGN TABLE more_columns (more text, and_more text) INHERITS (plain) SERVER advisory_ext;
CREATE FOREIGN TABLE one_dropped () INHERITS (plain) SERVER advisory_ext;
ALTER FOREIGN TABLE one_dropped NO INHERIT plain;
ALTER FOREIGN TABLE one_dropped DROP COLUMN objsubid;
CREATE FOREIGN TABLE one_other () INHERITS (plain) SERVER advisory_ext;
ALTER FOREIGN TABLE one_other NO INHERIT plain;
ALTER FOREIGN TABLE one_other ALTER COLUMN key TYPE integer;
CREATE FOREIGN TABLE the_same () INHERITS (plain) SERVER advisory_ext OPTIONS (nobody 'reads this');
SELECT count(*) FROM no_columns;
--> ERROR:  cannot read foreign table "no_columns"
--> DETAIL:  The foreign-data wrapper of extension "advisory_ext" does not support foreign tables other than its own.
--> HINT:  Use the view advisory.locks.
-- The others as this one.
\set VERBOSITY terse
SELECT * FROM some_columns; --> ERROR:  cannot read foreign table "some_columns"
SELECT * FROM other_types; --> ERROR:  cannot read foreign table "other_types"
SELECT * FROM more_columns; --> ERROR:  cannot read foreign table "more_columns"
SELECT * FROM one_dropped; --> ERROR:  cannot read foreign table "one_dropped"
SELECT * FROM one_other; --> ERROR:  cannot read foreign table "one_other"
SELECT * FROM the_same; --> ERROR:  cannot read foreign table "the_same"
COPY (SELECT * FROM other_types) TO STDOUT; --> ERROR:  cannot read foreign table "other_types"
COPY other_types TO STDOUT; --> ERROR:  cannot copy from foreign table "other_types"
EXPLAIN SELECT * FROM other_types; --> ERROR:  cannot read foreign table "other_types"
PREPARE reads AS SELECT more FROM more_columns;
EXECUTE reads; --> ERROR:  cannot read foreign table "more_columns"

-- As a partition or an inheritance child.
CREATE TABLE partitioned (pid text, database text) PARTITION BY LIST (pid);
CREATE FOREIGN TABLE a_partition PARTITION OF partitioned FOR VALUES IN ('1') SERVER advisory_ext;
SELECT database FROM partitioned; --> ERROR:  cannot read foreign table "a_partition"
CREATE TABLE parent (pid text, database text);
CREATE FOREIGN TABLE a_child () INHERITS (parent) SERVER advisory_ext;
SELECT database FROM parent; --> ERROR:  cannot read foreign table "a_child"

-- On another server of the same wrapper.
CREATE SERVER regress_advisory_server FOREIGN DATA WRAPPER advisory_ext;
CREATE FOREIGN TABLE elsewhere () INHERITS (plain) SERVER regress_advisory_server;
SELECT * FROM elsewhere; --> ERROR:  cannot read foreign table "elsewhere"
IMPORT FOREIGN SCHEMA advisory FROM SERVER advisory_ext INTO regress_advisory;
--> ERROR:  foreign-data wrapper "advisory_ext" does not support IMPORT FOREIGN SCHEMA

-- Nor can they be written to.
INSERT INTO other_types VALUES ('1'); --> ERROR:  cannot insert into foreign table "other_types"

-- The view is still readable, also by this role.
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 1
RESET search_path;
RESET ROLE;

\set VERBOSITY default
---- The extension's own table, altered by its owner
BEGIN;
PREPARE looks AS SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
EXECUTE looks; --> 1
ALTER FOREIGN TABLE advisory._locks ADD COLUMN more text;
EXECUTE looks;
--> ERROR:  foreign table "_locks" does not have the columns that advisory_ext created
--> HINT:  If the extension was updated after this session began, reconnect.
ROLLBACK;
-- A new name, a parent table and a child table make no difference.
BEGIN;
ALTER FOREIGN TABLE advisory._locks RENAME TO renamed;
CREATE TABLE parent (pid integer);
ALTER FOREIGN TABLE advisory.renamed INHERIT parent;
CREATE TABLE child () INHERITS (advisory.renamed);
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 1
SELECT count(*) FROM parent WHERE pid = pg_backend_pid(); --> 1
ROLLBACK;
EXECUTE looks; --> 1
DEALLOCATE ALL;

---- Tables that the extension's owner added to it are read if they have the same columns
BEGIN;
ALTER EXTENSION advisory_ext ADD FOREIGN TABLE regress_advisory.the_same;
SELECT count(*) FROM regress_advisory.the_same WHERE pid = pg_backend_pid(); --> 1
ROLLBACK;
BEGIN;
ALTER EXTENSION advisory_ext ADD FOREIGN TABLE regress_advisory.one_dropped;
SELECT pid FROM regress_advisory.one_dropped;
--> ERROR:  foreign table "one_dropped" does not have the columns that advisory_ext created
--> HINT:  If the extension was updated after this session began, reconnect.
ROLLBACK;
BEGIN;
ALTER EXTENSION advisory_ext ADD FOREIGN TABLE regress_advisory.one_other;
SELECT pid FROM regress_advisory.one_other;
--> ERROR:  foreign table "one_other" does not have the columns that advisory_ext created
--> HINT:  If the extension was updated after this session began, reconnect.
ROLLBACK;

SELECT advisory.unlock('ns', 'name'); --> t
DROP SERVER regress_advisory_server CASCADE;
--> NOTICE:  drop cascades to foreign table regress_advisory.elsewhere
SET client_min_messages = warning;
DROP OWNED BY regress_advisory_role CASCADE;
DROP ROLE regress_advisory_role;
