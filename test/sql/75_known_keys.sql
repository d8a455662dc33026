-- advisory.known_keys and locks.known_as: what other programs' locks are recognised as, each by a
-- lock that is really held.
-- Objsubids of others cannot be taken from SQL; what the views join is asked about them directly.
\pset format unaligned \pset tuples_only on
-- The formulas once more and by other means, so that the two check each other.
CREATE FUNCTION pg_temp.crc32(bytes bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    crc bigint := 4294967295;
BEGIN
    FOR i IN 0 .. length(bytes) - 1 LOOP
        crc := crc # get_byte(bytes, i);
        FOR b IN 1 .. 8 LOOP
            crc := (crc >> 1) # (3988292384 * (crc & 1));
        END LOOP;
    END LOOP;
    RETURN crc # 4294967295;
END $$;
CREATE FUNCTION pg_temp.crc32(VARIADIC parts text[]) RETURNS bigint LANGUAGE sql AS $$
    SELECT pg_temp.crc32(string_agg(convert_to(part, 'UTF8'), '\x00' ORDER BY n))
        FROM unnest(parts) WITH ORDINALITY AS p(part, n)
$$;
CREATE FUNCTION pg_temp.golang_migrate(schema text, "table" text, database text) RETURNS bigint
    LANGUAGE sql AS $$
    SELECT pg_temp.crc32(schema, "table", database) * 1486364155::numeric % 4294967296
$$;
CREATE FUNCTION pg_temp.first_64(digest bytea) RETURNS bigint
    LANGUAGE sql AS $$ SELECT ('x' || encode(digest, 'hex'))::bit(64)::bigint $$;
CREATE FUNCTION pg_temp.slonik(written text) RETURNS bigint LANGUAGE sql AS $$
    SELECT ('x00000000' || left(md5('@slonik/migrator advisory lock:' || written),
                                 8))::bit(64)::bigint
$$;
-- The check value of CRC-32, and a database's name and key from another program's tests of sqlx's.
SELECT pg_temp.crc32('123456789') = 3421780262 AS crc32,
       pg_temp.crc32('zone') * 1026731422 = 2771974297191923538 AS sqlx; --> t|t
-- The extension's own function.
SELECT advisory_internal.crc32('123456789') = 3421780262 AS crc32,
       advisory_internal.crc32('') AS empty, advisory_internal.crc32(NULL) AS none; --> t|0|

-- What a lock is known as, by its tag.
CREATE FUNCTION public.known_as(oid, integer, integer, integer) RETURNS text[] LANGUAGE sql AS $$
    SELECT advisory_internal.known_as(datid, objsubid, high, low, own, exact, is_small, is_start)
    FROM (VALUES ($1, $2, $3, $4)) AS lock (datid, high, low, objsubid)
    LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
    LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
    LEFT JOIN advisory_internal.range_starts USING (objsubid, high)
$$;

-- Known: a lock is taken, and what it is known as; then released.
CREATE FUNCTION public.known(key bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    answer text[];
BEGIN
    PERFORM pg_advisory_lock(key);
    SELECT known_as INTO STRICT answer FROM advisory.locks l
        WHERE l.key = known.key AND pid = pg_backend_pid();
    PERFORM pg_advisory_unlock(key);
    RETURN answer;
END $$;
CREATE FUNCTION public.known(key1 int, key2 int) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    answer text[];
BEGIN
    PERFORM pg_advisory_lock(key1, key2);
    SELECT known_as INTO STRICT answer FROM advisory.locks l
        WHERE l.key1 = known.key1 AND l.key2 = known.key2 AND pid = pg_backend_pid();
    PERFORM pg_advisory_unlock(key1, key2);
    RETURN answer;
END $$;

---- The facts

-- None says half, or what another one says.
SELECT * FROM advisory.known_keys WHERE (tool, purpose, rule, source) IS NOT NULL IS NOT TRUE
    OR length(tool) * length(purpose) * length(rule) * length(source) = 0
    OR form NOT IN ('bigint', 'int4 pair') AND form NOT LIKE 'objsubid%'
    OR scope NOT IN ('session', 'transaction', 'session or transaction', 'any');
SELECT count(*) FROM advisory.known_keys GROUP BY tool, purpose, form, rule, key
    HAVING count(*) > 1;
-- A key is shown where there is one in this database, and only there.
SELECT match, count(*), count(key) AS keys, count(key1) + count(key2) AS pairs
    FROM advisory.known_keys GROUP BY match ORDER BY match;
--> class|3|0|0
--> exact|27|27|0
--> formula|46|38|0
--> range|4|0|0

---- Every key in the list, taken

SELECT tool, purpose FROM advisory.known_keys
    WHERE key IS NOT NULL AND abs(key) >= 100000
        AND public.known(key) IS DISTINCT FROM ARRAY[concat(tool, ': ', purpose)];
SELECT tool FROM advisory.known_keys
    WHERE match = 'exact' AND split_part(rule, ', ', 1) IS DISTINCT FROM key::text;
SELECT public.known(3), public.known(0), public.known(-1); --> ||
-- The same number as a pair is another lock.
SELECT public.known(0, 72707369), public.known(0, 1); --> |

-- A small number is a program's only beside its table: see 76_small_keys.sql.
SELECT tool FROM advisory.known_keys WHERE abs(key) < 100000 AND rule !~ ', beside a table \w+$';

---- Formulas over the database's name

SELECT public.known(2053462845 * pg_temp.crc32(current_database())) AS rails,
       public.known((pg_temp.crc32(current_database()) * 1486364155::numeric
                     % 4294967296)::bigint) AS grafana,
       public.known(1026731422 * pg_temp.crc32(current_database())) AS sqlx;
--> {"Rails: schema migration"}|{"Grafana: migration lock"}|{"sqlx: migration lock"}
SELECT public.known(2053462845 * pg_temp.crc32('another')) AS of_another_name; -->
SELECT public.known(pg_temp.first_64(sha224(convert_to(name, 'UTF8'))))
    FROM unnest(ARRAY[current_database() || '.pgboss.pgboss', 'another.pgboss.pgboss',
                      current_database() || '.pgboss.pgboss_v12_pgworkflowcreate-queue',
                      current_database() || '.pgboss.pgbossjob_commondeletion']) AS name;
--> {"pg-boss: create and migrate (pgboss)"}
-->
--> {"pg-boss: create a queue (pgboss_v12_pgworkflow)"}
--> {"pg-boss: old jobs (pgboss)"}

---- Formulas over a fixed text

SELECT text, public.known(hashtext(text))
    FROM unnest(ARRAY['run_maintenance', 'run_maintenance procedure', 'drop_partition_id',
                      'drop_partition_time', 'undo_partition_native', 'undo_partition',
                      'reapply_constraints', 'run_analyze', 'no such']) AS u(name),
         concat('pg_partman ', name) AS text;
--> pg_partman run_maintenance|{"pg_partman: run_maintenance"}
--> pg_partman run_maintenance procedure|{"pg_partman: run_maintenance procedure (from 5.1.0)"}
--> pg_partman drop_partition_id|{"pg_partman: drop_partition_id"}
--> pg_partman drop_partition_time|{"pg_partman: drop_partition_time"}
--> pg_partman undo_partition_native|{"pg_partman: undo_partition_native"}
--> pg_partman undo_partition|{"pg_partman: undo_partition"}
--> pg_partman reapply_constraints|{"pg_partman: reapply_constraints"}
--> pg_partman run_analyze|{"pg_partman: run_analyze"}
--> pg_partman no such|
-- DBOS's is advisory.key() too.
SELECT public.known(pg_temp.first_64(sha256('dbos.datasource_migrations.dbos'))) AS dbos,
       public.known(advisory.key('dbos.datasource_migrations.dbos')) AS the_same;
--> {"DBOS: data source migration (dbos)"}|{"DBOS: data source migration (dbos)"}

---- Formulas over the names of tables and schemas: the usual ones, which need not be there

-- golang-migrate, connected by URL, by one without a database, and otherwise.
SELECT public.known(pg_temp.golang_migrate('public', 'schema_migrations', database))
    FROM unnest(ARRAY['/' || current_database(), '/', current_database(), '/another']) AS database;
--> {"golang-migrate: migration lock (public.schema_migrations)"}
--> {"golang-migrate: migration lock (public.schema_migrations)"}
--> {"golang-migrate: migration lock (public.schema_migrations)"}
-->
SELECT purpose, count(*), count(DISTINCT key) FROM advisory.known_keys
    WHERE tool = 'golang-migrate' GROUP BY purpose ORDER BY purpose COLLATE "C";
--> migration lock (public.schema_migrations)|3|3
-- slonik: the table of its manual.
SELECT public.known(pg_temp.slonik('"migration"')) AS manual,
       public.known(pg_temp.slonik('"another"')) AS another; --> {"slonik: migration (migration)"}|

-- Other names are not looked up in the catalogs.
CREATE SCHEMA "regress Advisory";
CREATE TABLE "regress Advisory".moves (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);
CREATE TABLE "regress Advisory".others (version text);
SELECT public.known(pg_temp.golang_migrate('regress Advisory', 'moves',
    '/' || current_database())) AS by_url; -->

-- pg_partman's pairs, by their first key, whatever the table.
SELECT 'pg_partman ' || name AS text,
       public.known(hashtext('pg_partman ' || name), hashtext('public.event')) AS a_table,
       public.known(hashtext('pg_partman ' || name), -2147483648) AS least,
       public.known(hashtext('pg_partman ' || name), 2147483647) AS greatest
    FROM unnest('{partition_data_proc,undo_partition_proc,others}'::text[]) AS name;
--> pg_partman partition_data_proc|{"pg_partman: partition_data_proc"}|{"pg_partman: partition_data_proc"}|{"pg_partman: partition_data_proc"}
--> pg_partman undo_partition_proc|{"pg_partman: undo_partition_proc"}|{"pg_partman: undo_partition_proc"}|{"pg_partman: undo_partition_proc"}
--> pg_partman others|||

---- Ranges and patterns

-- Flyway's default table, the ends of the range, and what is just outside.
SELECT public.known(77433833903597) AS flyway; --> {"Flyway: migration lock"}
SELECT key, public.known(key)
    FROM unnest('{-2147483648,2147483647,-2147483649,2147483648}'::bigint[]) AS distance,
         CAST(77431708279161 + distance AS bigint) AS key;
--> 77429560795513|{"Flyway: migration lock"}
--> 77433855762808|{"Flyway: migration lock"}
--> 77429560795512|
--> 77433855762809|

-- Mastra: a table that is there, one that is not, and the greatest oid.
SELECT public.known((1936876916::bigint << 32) | 'pg_class'::regclass::oid::bigint) AS there,
       public.known(1936876916::bigint << 32) AS least,
       public.known((1936876916::bigint << 32) | 4294967295) AS greatest;
--> {"Mastra: columns of a vector index (pg_catalog.pg_class)"}|{"Mastra: columns of a vector index (oid 0)"}|{"Mastra: columns of a vector index (oid 4294967295)"}
-- mimeo, whatever the table.
SELECT public.known(hashtext('mimeo advisory lock'), hashtext('public.event'));
--> {"mimeo: refresh of a table"}
-- Zero: its usual schema.
SELECT public.known(4353719051050729648) AS ddl, public.known(hashtext('migrate-schema:zero_0'));
--> {"Zero: changes of the schema"}|{"Zero: migration of its schema (zero_0)"}

-- pg_repack: a table that is there, one that is not, and the least and the greatest oid.
SELECT public.known(16185446,
        ('"regress Advisory".others'::regclass::oid::bigint - 2147483648)::int) AS there,
       public.known(16185446, -2147483648) AS least, public.known(16185446, 2147483647) AS greatest;
--> {"pg_repack: table being repacked (\"regress Advisory\".others)"}|{"pg_repack: table being repacked (oid 0)"}|{"pg_repack: table being repacked (oid 4294967295)"}
SELECT 'pg_class'::regclass::oid::bigint - 2147483648 AS key2,
       public.known(16185446, ('pg_class'::regclass::oid::bigint - 2147483648)::int);
--> -2147482389|{"pg_repack: table being repacked (pg_catalog.pg_class)"}
DROP SCHEMA "regress Advisory" CASCADE;
--> NOTICE:  drop cascades to 2 other objects
--> DETAIL:  drop cascades to table "regress Advisory".moves
--> drop cascades to table "regress Advisory".others

-- DistributedLock.NET: names of 1, 6, 8 and 9 characters; one that has quotes; none at all; one
-- that cannot be printed; and numbers that are no names.
SELECT key1, key2, public.known(key1, key2)
    FROM (VALUES (-1023410177, -1), (0, 0), (1, 2), (42, -1), (2147483647, -1), (-1, -1),
        (-2147483648, 0)) AS v(key1, key2);
--> -1023410177|-1|{"DistributedLock.NET: name of up to 9 ASCII characters (perhaps \"a\")"}
--> 0|0|
--> 1|2|
--> 42|-1|
--> 2147483647|-1|
--> -1|-1|
--> -2147483648|0|
CREATE FUNCTION pg_temp.name_pair(name text, OUT key1 int, OUT key2 int) LANGUAGE plpgsql AS $$
DECLARE
    bits bit varying := '';
BEGIN
    FOR i IN 1 .. length(name) LOOP
        bits := bits || ascii(substr(name, i, 1))::bit(7);
    END LOOP;
    bits := rpad((bits || B'0')::text, 64, '1')::bit varying;
    key1 := substring(bits FROM 1 FOR 32)::bit(32)::int;
    key2 := substring(bits FROM 33)::bit(32)::int;
END $$;
SELECT to_json(name) AS name, key1, key2, public.known(key1, key2)
    FROM unnest(ARRAY['a', 'orders', 'abcdefgh', 'ninechars', '~ "x" ~', '', E'\x01abc', E'a\x7f',
        'ab' || chr(31)]) AS name, pg_temp.name_pair(name);
--> "a"|-1023410177|-1|{"DistributedLock.NET: name of up to 9 ASCII characters (perhaps \"a\")"}
--> "orders"|-540334498|1558183935|{"DistributedLock.NET: name of up to 9 ASCII characters (perhaps \"orders\")"}
--> "abcdefgh"|-1014292916|-1179391873|{"DistributedLock.NET: name of up to 9 ASCII characters (perhaps \"abcdefgh\")"}
--> "ninechars"|-576227748|2050028262|{"DistributedLock.NET: name of up to 9 ASCII characters (perhaps \"ninechars\")"}
--> "~ \"x\" ~"|-58648700|1212104703|{"DistributedLock.NET: name of up to 9 ASCII characters (perhaps \"~ \"x\" ~\")"}
--> ""|2147483647|-1|
--> "\u0001abc"|59184695|-1|
--> "a"|-1006764033|-1|
--> "ab\u001f"|-1014432769|-1|

-- Classes, by objsubid: Citus's, pg_auto_failover's, one of both's, nobody's, semaphores'.
SELECT public.known_as(d.oid, 7, -7, objsubid) AS known, array_agg(objsubid ORDER BY objsubid)
    FROM pg_database d, unnest('{-1,0,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,63,64,68,255,16383,
        16384,16385,32384,65535,65536,65540,2147483647}'::int[]) AS objsubid
    WHERE datname = current_database() GROUP BY known ORDER BY min(objsubid);
--> |{-1,0,3,17,63,64,68,255,16383,16384,16385,32384,65535,65536,65540,2147483647}
--> {"Citus: distributed execution"}|{4,5,6,7,8,9,12,13,14,15,16}
--> {"pg_auto_failover: monitor state","Citus: distributed execution"}|{10}
--> {"pg_auto_failover: monitor state"}|{11}

-- An extension that is not installed here is ruled out if one is that uses the same classes; but
-- not for another database.
CREATE FUNCTION pg_temp.pretend_extension(name name) RETURNS void LANGUAGE sql AS $$
    INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
        SELECT 99990 + count(*), name, 10, 'pg_catalog'::regnamespace, false, '1' FROM pg_extension;
$$;
CREATE VIEW pg_temp.class AS
    SELECT objsubid, public.known_as(d.oid, 7, -7, objsubid) AS here,
           public.known_as(1, 7, -7, objsubid) AS there
    FROM pg_database d, unnest('{3,9,10,11,12}'::int[]) AS objsubid
        WHERE datname = current_database();
BEGIN;
SELECT pg_temp.pretend_extension('pgautofailover') \g /dev/null
SELECT * FROM pg_temp.class;
--> 3||
--> 9||{"Citus: distributed execution"}
--> 10|{"pg_auto_failover: monitor state"}|{"pg_auto_failover: monitor state","Citus: distributed execution"}
--> 11|{"pg_auto_failover: monitor state"}|{"pg_auto_failover: monitor state"}
--> 12||{"Citus: distributed execution"}
SELECT pg_temp.pretend_extension('citus') \g /dev/null
SELECT objsubid, here FROM pg_temp.class;
--> 3|
--> 9|{"Citus: distributed execution"}
--> 10|{"pg_auto_failover: monitor state","Citus: distributed execution"}
--> 11|{"pg_auto_failover: monitor state"}
--> 12|{"Citus: distributed execution"}
ROLLBACK;
BEGIN;
SELECT pg_temp.pretend_extension('citus') \g /dev/null
SELECT objsubid, here FROM pg_temp.class;
--> 3|
--> 9|{"Citus: distributed execution"}
--> 10|{"Citus: distributed execution"}
--> 11|
--> 12|{"Citus: distributed execution"}
ROLLBACK;

---- Other databases, and what is none

CREATE DATABASE regress_advisory_known TEMPLATE template0;
SELECT current_database() AS regression, pg_temp.crc32(current_database()) AS here,
       pg_temp.crc32('regress_advisory_known') AS there,
       pg_temp.golang_migrate('public', 'schema_migrations',
           'regress_advisory_known') AS migrate_there,
       pg_temp.golang_migrate('public', 'schema_migrations',
           '/regress_advisory_known') AS migrate_there_by_url,
       pg_temp.golang_migrate('public', 'schema_migrations', '/') AS migrate_by_bare_url,
       pg_temp.golang_migrate('public', 'schema_migrations', current_database()) AS migrate_here,
       pg_temp.first_64(sha224('regress_advisory_known.pgboss.pgboss')) AS pgboss_there,
       pg_temp.slonik('"migration"') AS slonik,
       hashtext('pg_partman partition_data_proc') AS partman \gset
\c regress_advisory_known
BEGIN;
SELECT pg_advisory_xact_lock(2053462845::bigint * :here),
       pg_advisory_xact_lock(2053462845::bigint * :there),
       pg_advisory_xact_lock(1026731422::bigint * :there),
       pg_advisory_xact_lock(4097083626), pg_advisory_xact_lock(4711),
       pg_advisory_xact_lock(16185446, -2147482389),
       pg_advisory_xact_lock(:migrate_there), pg_advisory_xact_lock(:migrate_there_by_url),
       pg_advisory_xact_lock(:migrate_by_bare_url),
       pg_advisory_xact_lock(:migrate_here), pg_advisory_xact_lock(:pgboss_there),
       pg_advisory_xact_lock(:slonik), pg_advisory_xact_lock(:partman, 1); --> ||||||||||||
PREPARE TRANSACTION 'regress_advisory_known';
\c :regression
INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'only here');
SELECT * FROM (SELECT
           CASE key WHEN 2053462845::bigint * :here THEN 'Rails'' of this database'
                    WHEN 2053462845::bigint * :there THEN 'Rails'' of that one'
                    WHEN 1026731422::bigint * :there THEN 'sqlx''s of that one'
                    WHEN :migrate_there THEN 'golang-migrate there'
                    WHEN :migrate_there_by_url THEN 'golang-migrate there, by URL'
                    WHEN :migrate_by_bare_url THEN 'golang-migrate there, by a bare URL'
                    WHEN :migrate_here THEN 'golang-migrate''s of this database'
                    WHEN :pgboss_there THEN 'pg-boss there' WHEN :slonik THEN 'slonik there'
                    ELSE coalesce(key::text, CASE key1 WHEN :partman THEN 'pg_partman there'
                                             ELSE key1 || ', ' || key2 END) END AS lock, known_as
        FROM advisory.locks WHERE gid = 'regress_advisory_known') AS l ORDER BY lock COLLATE "C";
--> 16185446, -2147482389|{"pg_repack: table being repacked (oid 1259)"}
--> 4097083626|{"goose: migration lock"}
--> 4711|
--> Rails' of that one|{"Rails: schema migration"}
--> Rails' of this database|
--> golang-migrate there|{"golang-migrate: migration lock (public.schema_migrations)"}
--> golang-migrate there, by URL|{"golang-migrate: migration lock (public.schema_migrations)"}
--> golang-migrate there, by a bare URL|{"golang-migrate: migration lock (public.schema_migrations)"}
--> golang-migrate's of this database|
--> pg-boss there|{"pg-boss: create and migrate (pgboss)"}
--> pg_partman there|{"pg_partman: partition_data_proc"}
--> slonik there|{"slonik: migration (migration)"}
--> sqlx's of that one|{"sqlx: migration lock"}
-- A database that is dropped between the reading of the locks and this, no database, and nothing at
-- all.
SELECT public.known_as(4294967295, 0, 1, 1), public.known_as(0, 0, 1, 1),
       public.known_as(0, 0, 4711, 1),
       public.known_as(0, 16185446, -2147482389, 2);
--> {"several programs use it"}|{"several programs use it"}||{"pg_repack: table being repacked (oid 1259)"}
\c regress_advisory_known
ROLLBACK PREPARED 'regress_advisory_known';
\c :regression
DROP DATABASE regress_advisory_known;
DELETE FROM advisory.key_labels;

---- Labels

INSERT INTO advisory.key_labels (key, label, note) VALUES
    (1, 'nightly import', 'ask the billing team'), (1, 'another, on the same key', NULL),
    (-9223372036854775808, 'least', NULL);
INSERT INTO advisory.key_labels (key1, key2, label)
    VALUES (1, 2, 'a pair'), (-1, -2147483648, 'a signed one'),
    (16185446, 0, 'before pg_repack''s');
SELECT * FROM advisory.known_keys WHERE source = 'advisory.key_labels';
--> least||bigint||exact|-9223372036854775808|advisory.key_labels|-9223372036854775808||
--> a signed one||int4 pair||exact|(-1, -2147483648)|advisory.key_labels||-1|-2147483648
--> another, on the same key||bigint||exact|1|advisory.key_labels|1||
--> nightly import|ask the billing team|bigint||exact|1|advisory.key_labels|1||
--> a pair||int4 pair||exact|(1, 2)|advisory.key_labels||1|2
--> before pg_repack's||int4 pair||exact|(16185446, 0)|advisory.key_labels||16185446|0
-- They come first, and are told apart by form.
SELECT public.known(1) AS one, public.known(-9223372036854775808) AS least,
       public.known((1::bigint << 32) | 2) AS no_pair;
--> {"another, on the same key","nightly import: ask the billing team"}|{least}|
SELECT public.known(1, 2) AS pair, public.known(-1, -2147483648) AS signed,
       public.known(0, 1) AS no_bigint, public.known(16185446, 0);
--> {"a pair"}|{"a signed one"}||{"before pg_repack's","pg_repack: table being repacked (oid 2147483648)"}
-- A statement sees the labels of the time when it began.
BEGIN;
DELETE FROM advisory.key_labels WHERE label = 'nightly import';
SELECT public.known(1); --> {"another, on the same key"}
ROLLBACK;

-- One form, no empty text, no text without end, nothing twice.
\set VERBOSITY terse
INSERT INTO advisory.key_labels (label) VALUES ('no key');
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_one_form"
INSERT INTO advisory.key_labels (key, key1, key2, label) VALUES (1, 1, 1, 'two');
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_one_form"
INSERT INTO advisory.key_labels (key, key2, label) VALUES (1, 1, 'one and a half');
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_one_form"
INSERT INTO advisory.key_labels (key1, label) VALUES (1, 'half');
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_one_form"
INSERT INTO advisory.key_labels (key, label) VALUES (1, '');
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_label_length"
INSERT INTO advisory.key_labels (key, label) VALUES (1, NULL);
--> ERROR:  null value in column "label" of relation "key_labels" violates not-null constraint
INSERT INTO advisory.key_labels (key, label, note) VALUES (1, 'x', '');
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_note_length"
INSERT INTO advisory.key_labels (key, label) VALUES (1, repeat('x', 201));
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_label_length"
INSERT INTO advisory.key_labels (key, label, note) VALUES (1, 'x', repeat('x', 1001));
--> ERROR:  new row for relation "key_labels" violates check constraint "key_labels_note_length"
INSERT INTO advisory.key_labels (key, label) VALUES (1, 'nightly import');
--> ERROR:  duplicate key value violates unique constraint "key_labels_unique"
INSERT INTO advisory.key_labels (key1, key2, label) VALUES (1, 2, 'a pair');
--> ERROR:  duplicate key value violates unique constraint "key_labels_unique"
\set VERBOSITY default

-- As much as the table takes, and more labels than are read.
INSERT INTO advisory.key_labels (key, label, note) VALUES (0, repeat('x', 200), repeat('y', 1000));
SELECT char_length((public.known(0))[1]) AS characters; --> 1202
DELETE FROM advisory.key_labels WHERE key = 0;
INSERT INTO advisory.key_labels (key, label) SELECT 77, format('label %s', i)
    FROM generate_series(1, 12000) AS i;
SELECT cardinality(public.known(77)) BETWEEN 9000 AND 10000 AS enough,
       (public.known(77))[1] AS first; --> t|label 1
SELECT count(*) FROM advisory.known_keys WHERE source = 'advisory.key_labels'; --> 10000
DELETE FROM advisory.key_labels WHERE key = 77;

---- Everybody sees them, the owner of the database writes them

CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
SELECT public.known(1), public.known(1, 2),
       count(*) FILTER (WHERE source = 'advisory.key_labels') AS labels FROM advisory.known_keys;
--> {"another, on the same key","nightly import: ask the billing team"}|{"a pair"}|6
INSERT INTO advisory.key_labels (key, label) VALUES (3, 'not allowed');
--> ERROR:  permission denied for table key_labels
DELETE FROM advisory.key_labels; --> ERROR:  permission denied for table key_labels
RESET ROLE;
-- Without the right to read them, they are left out.
REVOKE SELECT ON advisory.key_labels FROM PUBLIC;
SET ROLE regress_advisory_role;
SELECT public.known(1), count(*) FILTER (WHERE source = 'advisory.key_labels') AS labels,
       count(*) AS all FROM advisory.known_keys; --> {"several programs use it"}|0|80
RESET ROLE;
GRANT SELECT ON advisory.key_labels TO PUBLIC;
-- Nor does it take the right to use the schema, in a view of somebody who has it.
CREATE VIEW pg_temp.mine AS SELECT known_as FROM advisory.locks WHERE pid = pg_backend_pid();
GRANT SELECT ON pg_temp.mine TO regress_advisory_role;
REVOKE USAGE ON SCHEMA advisory FROM PUBLIC;
SELECT pg_advisory_lock(1); -->
SET ROLE regress_advisory_role;
SELECT known_as FROM pg_temp.mine; --> {"several programs use it"}
RESET ROLE;
GRANT USAGE ON SCHEMA advisory TO PUBLIC;
SELECT known_as FROM pg_temp.mine;
--> {"another, on the same key","nightly import: ask the billing team"}
SELECT pg_advisory_unlock(1); --> t
DROP VIEW pg_temp.mine;
DROP ROLE regress_advisory_role;

---- Whatever the table has

-- The views work after everything that a superuser can do to the table.
BEGIN;
ALTER TABLE advisory.key_labels DROP CONSTRAINT key_labels_label_length,
    DROP CONSTRAINT key_labels_one_form, DROP CONSTRAINT key_labels_unique;
INSERT INTO advisory.key_labels (key, label) VALUES (78, repeat('x', 1000000)), (78, '');
INSERT INTO advisory.key_labels (label) VALUES ('no key');
SELECT length(known[1]), length(known[2]), cardinality(known), public.known(0, 0)
    FROM public.known(78) AS known; --> 0|200|2|
SELECT count(*) FROM advisory.known_keys WHERE source = 'advisory.key_labels'; --> 8
ROLLBACK;
-- It stays, as long as the extension does.
BEGIN;
ALTER EXTENSION advisory_ext DROP TABLE advisory.key_labels;
\set VERBOSITY terse
DROP TABLE advisory.key_labels;
--> ERROR:  cannot drop table advisory.key_labels because other objects depend on it
\set VERBOSITY default
ROLLBACK;

---- Large: every lock is looked at, most are nothing known

DELETE FROM advisory.key_labels;
SELECT count(pg_advisory_lock(i * 1000003)) FROM generate_series(5000000000, 5000002999) AS i;
--> 3000
SELECT pg_advisory_lock(1000); -->
SELECT count(*), count(known_as), min(known_as) FROM advisory.locks WHERE pid = pg_backend_pid();
--> 3001|1|{"several programs use it"}
SELECT pg_advisory_unlock_all(); -->

DROP FUNCTION public.known_as, public.known(bigint), public.known(int, int);
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
