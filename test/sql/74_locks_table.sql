-- The foreign table behind advisory.locks. The extension's own table is the only one that its server serves: a role that
-- was granted USAGE on the server can make foreign tables of its own, whose columns the extension would not write.

CREATE ROLE regress_advisory_role;
CREATE SCHEMA regress_advisory AUTHORIZATION regress_advisory_role;
GRANT USAGE ON FOREIGN SERVER advisory_ext TO regress_advisory_role;
GRANT USAGE ON FOREIGN DATA WRAPPER advisory_ext TO regress_advisory_role;
CREATE TABLE regress_advisory.plain (LIKE advisory._locks);
ALTER TABLE regress_advisory.plain OWNER TO regress_advisory_role;
SELECT advisory.lock('ns', 'name');

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
SELECT * FROM some_columns;
SELECT * FROM other_types;
SELECT * FROM more_columns;
SELECT * FROM one_dropped;
SELECT * FROM one_other;
SELECT * FROM the_same;
COPY (SELECT * FROM other_types) TO STDOUT;
COPY other_types TO STDOUT;
EXPLAIN SELECT * FROM other_types;
PREPARE reads AS SELECT more FROM more_columns;
EXECUTE reads;

-- As a partition or an inheritance child.
CREATE TABLE partitioned (pid text, database text) PARTITION BY LIST (pid);
CREATE FOREIGN TABLE a_partition PARTITION OF partitioned FOR VALUES IN ('1') SERVER advisory_ext;
SELECT database FROM partitioned;
CREATE TABLE parent (pid text, database text);
CREATE FOREIGN TABLE a_child () INHERITS (parent) SERVER advisory_ext;
SELECT database FROM parent;

-- On another server of the same wrapper.
CREATE SERVER regress_advisory_server FOREIGN DATA WRAPPER advisory_ext;
CREATE FOREIGN TABLE elsewhere () INHERITS (plain) SERVER regress_advisory_server;
SELECT * FROM elsewhere;
IMPORT FOREIGN SCHEMA advisory FROM SERVER advisory_ext INTO regress_advisory;

-- Nor can they be written to.
INSERT INTO other_types VALUES ('1');

-- The view is still readable, also by this role.
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
RESET search_path;
RESET ROLE;

---- The extension's own table, altered by its owner

BEGIN;
PREPARE looks AS SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
EXECUTE looks;
ALTER FOREIGN TABLE advisory._locks ADD COLUMN more text;
EXECUTE looks;
ROLLBACK;
-- A new name, a parent table and a child table make no difference.
BEGIN;
ALTER FOREIGN TABLE advisory._locks RENAME TO renamed;
CREATE TABLE parent (pid integer);
ALTER FOREIGN TABLE advisory.renamed INHERIT parent;
CREATE TABLE child () INHERITS (advisory.renamed);
SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid();
SELECT count(*) FROM parent WHERE pid = pg_backend_pid();
ROLLBACK;
EXECUTE looks;
DEALLOCATE ALL;

---- Tables that the extension's owner added to it are read if they have the same columns

BEGIN;
ALTER EXTENSION advisory_ext ADD FOREIGN TABLE regress_advisory.the_same;
SELECT count(*) FROM regress_advisory.the_same WHERE pid = pg_backend_pid();
ROLLBACK;
BEGIN;
ALTER EXTENSION advisory_ext ADD FOREIGN TABLE regress_advisory.one_dropped;
SELECT pid FROM regress_advisory.one_dropped;
ROLLBACK;
BEGIN;
ALTER EXTENSION advisory_ext ADD FOREIGN TABLE regress_advisory.one_other;
SELECT pid FROM regress_advisory.one_other;
ROLLBACK;

SELECT advisory.unlock('ns', 'name');
DROP SERVER regress_advisory_server CASCADE;
SET client_min_messages = warning;
DROP OWNED BY regress_advisory_role CASCADE;
DROP ROLE regress_advisory_role;
