-- Well-known keys: those of migration tools and extensions, and those that users label.

CREATE TABLE advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL,
    note text,
    CONSTRAINT key_labels_one_form CHECK (
        CASE WHEN key IS NOT NULL THEN key1 IS NULL AND key2 IS NULL
             ELSE key1 IS NOT NULL AND key2 IS NOT NULL END),
    CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_unique UNIQUE NULLS NOT DISTINCT (key, key1, key2, label)
);
-- The unique key has nulls, so it cannot be the replica identity.  FULL lets rows be changed where
-- all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS
    'labels that users give to keys; for locks.known_as and known_keys';
COMMENT ON COLUMN advisory.key_labels.key IS 'key, as in pg_advisory_lock(bigint); null for a pair';
COMMENT ON COLUMN advisory.key_labels.key1 IS
    'first key of a pair, as in pg_advisory_lock(int, int)';
COMMENT ON COLUMN advisory.key_labels.key2 IS 'second key of a pair';
COMMENT ON COLUMN advisory.key_labels.label IS 'what the lock is called, up to 200 characters';
COMMENT ON COLUMN advisory.key_labels.note IS 'note about the lock, up to 1000 characters';
SELECT pg_extension_config_dump('advisory.key_labels', '');

---- What the library does for the views below

-- A table that a view reads only if that is possible at once: locks it and its indexes.  Null if
-- the current user may not read it, or is subject to a policy, or if the server's lock table is
-- full.  Null, with a NOTICE that begins with this text, if somebody else has locked it.
CREATE FUNCTION advisory_internal.readable(relation regclass, otherwise text) RETURNS regclass
    AS 'MODULE_PATHNAME', 'advisory_readable'
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.readable(regclass, text) IS
    'table that can be read without waiting; null if it cannot';

CREATE FUNCTION advisory_internal.this_database() RETURNS oid
    AS 'MODULE_PATHNAME', 'advisory_this_database'
    LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.this_database() IS 'OID of the current database';

-- (The name of a database need not be valid in the encoding of this one.)
CREATE FUNCTION advisory_internal.bytes_of(name name) RETURNS bytea
    AS 'MODULE_PATHNAME', 'advisory_bytes_of'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.bytes_of(name) IS 'name as it is stored';

CREATE FUNCTION advisory_internal.crc32(bytes bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_crc32'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.crc32(bytea) IS 'CRC-32 as zlib computes it';

CREATE FUNCTION advisory_internal.printable(line text) RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_printable'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.printable(text) IS
    'text with ? for control characters';

---- The facts

-- known_keys consists of the rows of these four.  Each fact names its source, a file of a public
-- repository.  first_key and last_key say which locks are meant; a pair is one key there.

-- A null argument means that the table is not read: the function is not called.
CREATE FUNCTION advisory_internal.key_labels(labels regclass)
    RETURNS TABLE (
        place bigint, tool text, purpose text, form text, scope text, match text, rule text,
        source text, key bigint, key1 integer, key2 integer, objsubid integer, first_key bigint)
    LANGUAGE sql STABLE STRICT PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    -- Limits, so that the views work whatever is in the table.
    SELECT row_number() OVER in_order, advisory_internal.printable(left(label, 200)),
           advisory_internal.printable(left(note, 1000)),
           CASE WHEN is_pair THEN 'int4 pair' ELSE 'bigint' END, NULL, 'exact',
           CASE WHEN is_pair THEN format('(%s, %s)', key1, key2) ELSE key::text END,
           'advisory.key_labels', key, key1, key2, objsubid, tag
    FROM (SELECT *, key IS NULL AS is_pair, CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
                 coalesce(key, (key1::bigint << 32) | (key2 & 4294967295)) AS tag
          FROM ONLY advisory.key_labels
          LIMIT 10000) AS labels
    WHERE tag IS NOT NULL AND label IS NOT NULL
    WINDOW in_order AS (ORDER BY tag, is_pair, label COLLATE "C")
    ORDER BY 1;
END;
COMMENT ON FUNCTION advisory_internal.key_labels(regclass) IS 'rows of advisory.known_keys: labels';

-- Keys that are the same in every database.
CREATE VIEW advisory_internal.key_facts AS
    SELECT row_number() OVER () AS place, tool, purpose, 'bigint'::text AS form, scope, match, rule,
           source, CASE WHEN first_key = last_key THEN first_key END AS key, first_key, last_key,
           only_with
    FROM (
@sql/known-keys.sql
    UNION ALL
    SELECT 'golang-migrate', 'migration lock (public.schema_migrations)', 'session', 'formula',
           E'uint32(crc32(schema || ''\\0'' || table || ''\\0/'') * 1486364155)'
               ', by a URL without a database',
           'golang-migrate/migrate database/util.go', key, key, NULL
    FROM (SELECT advisory_internal.crc32(E'public\\000schema_migrations\\000/') * 1486364155
                 & 4294967295) AS computed (key)
    ) AS facts;
COMMENT ON VIEW advisory_internal.key_facts IS 'rows of advisory.known_keys: keys of programs';

-- Keys that are computed from the name of the database, in its own encoding.
CREATE FUNCTION advisory_internal.database_keys(databases regclass)
    RETURNS TABLE (
        datid oid, place bigint, tool text, purpose text, form text, scope text, match text,
        rule text, source text, key bigint)
    LANGUAGE sql STABLE STRICT PARALLEL UNSAFE COST 1000 ROWS 100
BEGIN ATOMIC
    SELECT d.oid, row_number() OVER (), tool, purpose, 'bigint', scope, 'formula', rule, source, key
    FROM pg_database AS d,
         LATERAL (SELECT advisory_internal.bytes_of(datname)) AS bytes (name),
         LATERAL (VALUES
        ('Rails', 'schema migration', 'session', '2053462845 * crc32(database)',
         'rails/rails activerecord migration.rb', 2053462845 * advisory_internal.crc32(name)),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0'' || database) * 1486364155)',
         'golang-migrate/migrate database/util.go',
         advisory_internal.crc32(E'public\\000schema_migrations\\000' || name) * 1486364155
             & 4294967295),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0/'' || database) * 1486364155)'
             ', connected by URL',
         'golang-migrate/migrate database/util.go',
         advisory_internal.crc32(E'public\\000schema_migrations\\000/' || name) * 1486364155
             & 4294967295),
        ('Grafana', 'migration lock', 'session', 'uint32(crc32(database) * 1486364155)',
         'grafana/grafana migrator/advisory_lock_id.go',
         advisory_internal.crc32(name) * 1486364155 & 4294967295),
        ('sqlx', 'migration lock', 'session', '0x3d32ad9e * crc32(database)',
         'launchbadge/sqlx sqlx-postgres/src/migrate.rs',
         1026731422 * advisory_internal.crc32(name))
    ) AS fact (tool, purpose, scope, rule, source, key)
    UNION ALL
    -- pg-boss in its usual schema, and in that of pg-workflows.
    SELECT d.oid, 1000 + row_number() OVER (), 'pg-boss', format('%s (%s)', purpose, schema),
           'bigint', 'transaction', 'formula',
           'first 8 bytes, big-endian, of sha224(database || ''.pgboss.'' || schema'
               || coalesce(format(' || %L', suffix), '') || ')',
           'timgit/pg-boss src/plans.ts',
           ('x' || left(encode(sha224(advisory_internal.bytes_of(datname) ||
                                      convert_to(concat('.pgboss.', schema, suffix), 'UTF8')),
                               'hex'), 16))::bit(64)::bigint
    FROM pg_database AS d,
         (VALUES ('pgboss'), ('pgboss_v12_pgworkflow')) AS s (schema),
         (VALUES
        ('create and migrate', NULL),
        ('create a queue', 'create-queue'),
        ('delete a queue', 'delete-queue'),
        ('work after a migration', 'bamClaim'),
        ('statistics of queues', 'queue-stats'),
        ('history of statistics', 'queue-stats-insert'),
        ('jobs that took too long', 'job_commonfailJobsByTimeout'),
        ('jobs without a sign of life', 'job_commonfailJobsByHeartbeat'),
        ('old jobs', 'job_commondeletion'),
        ('dependencies of old jobs', 'job_commoncleanupDependencies')
    ) AS fact (purpose, suffix);
END;
COMMENT ON FUNCTION advisory_internal.database_keys(regclass) IS
    'rows of advisory.known_keys: keys made from the name of a database';

-- Ranges of many keys.  detail: what else the key tells, a table or a name.  extension: the one
-- whose locks these are.  only_with: a table without which they are not shown as the program's.
CREATE VIEW advisory_internal.key_ranges AS
    SELECT row_number() OVER () AS place, *
    FROM (
    SELECT tool, purpose, form, scope, match, rule, source, objsubid AS first_objsubid,
           objsubid AS last_objsubid, first_key, last_key, detail, NULL::name AS extension,
           only_with
    FROM (
@sql/known-ranges.sql
    ) AS range
    UNION ALL
    SELECT 'DistributedLock.NET', 'name of up to 9 ASCII characters', 'int4 pair', 'session',
           'formula', '7 bits a character, a 0 bit, then 1 bits',
           'madelson/DistributedLock PostgresAdvisoryLockKey.cs', 2, 2,
           '-9223372036854775808'::bigint, 9223372036854775807, 'name', NULL, NULL
    UNION ALL
    -- All keys of some objsubids.
    SELECT tool, purpose, form, 'any', 'class', rule, source, first_objsubid, last_objsubid,
           '-9223372036854775808'::bigint, 9223372036854775807, NULL, extension, NULL
    FROM (VALUES
        ('pg_auto_failover', 'monitor state', 'objsubid 10 and 11',
         'objsubid (10 is Citus''s too)', 'hapostgres/pg_auto_failover metadata.h',
         10, 11, 'pgautofailover'),
        ('Citus', 'distributed execution', 'objsubid 4-10', 'objsubid',
         'citusdata/citus resource_lock.h', 4, 10, 'citus'),
        ('Citus', 'distributed execution', 'objsubid 12-16', 'objsubid',
         'citusdata/citus resource_lock.h', 12, 16, 'citus')
    ) AS fact (tool, purpose, form, rule, source, first_objsubid, last_objsubid, extension)
    ) AS facts;
COMMENT ON VIEW advisory_internal.key_ranges IS
    'rows of advisory.known_keys: ranges of keys';

CREATE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM advisory_internal.key_labels(advisory_internal.readable(
        'advisory.key_labels', 'labels of keys are not shown'))
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, key, NULL, NULL
    FROM advisory_internal.key_facts
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, key, NULL, NULL
    FROM advisory_internal.database_keys(advisory_internal.readable(
        'pg_catalog.pg_database', 'keys made from names of databases are not shown'))
    WHERE datid = advisory_internal.this_database()
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL
    FROM advisory_internal.key_ranges;
COMMENT ON VIEW advisory.known_keys IS
    'well-known keys, and those of key_labels; candidates, not proof';
COMMENT ON COLUMN advisory.known_keys.tool IS
    'program that takes the lock, or the label of key_labels';
COMMENT ON COLUMN advisory.known_keys.purpose IS
    'what the lock is for; or the note of key_labels';
COMMENT ON COLUMN advisory.known_keys.form IS 'bigint, int4 pair, or the objsubids of a class';
COMMENT ON COLUMN advisory.known_keys.scope IS
    'how the program takes it: session, transaction, or both';
COMMENT ON COLUMN advisory.known_keys.match IS
    'how a lock is recognized: exact, formula, range or class';
COMMENT ON COLUMN advisory.known_keys.rule IS 'the key, or how it is made';
COMMENT ON COLUMN advisory.known_keys.source IS
    'where this is known from: repository and file, or key_labels';
COMMENT ON COLUMN advisory.known_keys.key IS
    'the key in this database, bigint form; null if there is not one';
COMMENT ON COLUMN advisory.known_keys.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.known_keys.key2 IS 'second key of the pair form, signed';

---- Which of them a lock matches

-- A view joins its locks to the next three views, and known_as() puts together what they say:
--
--      LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
--      LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
--      LEFT JOIN advisory_internal.range_starts USING (objsubid, high)
--
-- GROUP BY shows the planner that each of them has at most one row for a lock.  So it leaves them
-- out where known_as is not asked for.

CREATE VIEW advisory_internal.own_uses AS
    SELECT datid, objsubid, (key >> 32)::integer AS high, ((key << 32) >> 32)::integer AS low,
           array_agg(concat_ws(': ', tool, purpose) ORDER BY is_label DESC, place) AS own,
           bool_or(is_label) AS is_label
    FROM (SELECT advisory_internal.this_database() AS datid, objsubid, first_key AS key, tool,
                 purpose, place, true AS is_label
          FROM advisory_internal.key_labels(advisory_internal.readable(
              'advisory.key_labels', 'labels of keys are not shown'))
          UNION ALL
          SELECT datid, 1, key, tool, purpose, place, false
          FROM advisory_internal.database_keys(advisory_internal.readable(
              'pg_catalog.pg_database', 'keys made from names of databases are not shown'))) AS use
    GROUP BY datid, objsubid, 3, 4;
COMMENT ON VIEW advisory_internal.own_uses IS
    'uses of locks of certain databases: labels, and keys made from names';

CREATE VIEW advisory_internal.exact_uses AS
    SELECT 1 AS objsubid, (k >> 32)::integer AS high, ((k << 32) >> 32)::integer AS low,
           array_agg(concat_ws(': ', tool, purpose) ORDER BY place)
               FILTER (WHERE only_with IS NULL) AS exact,
           bool_or(only_with IS NOT NULL) AS is_small
    FROM advisory_internal.key_facts, generate_series(first_key, last_key) AS k
    GROUP BY 2, 3;
COMMENT ON VIEW advisory_internal.exact_uses IS
    'uses of locks of every database; where there are small numbers that everybody uses';

-- The upper halves of keys with which such a range begins, or goes on.
CREATE VIEW advisory_internal.range_starts AS
    SELECT first_objsubid AS objsubid, high::integer AS high, true AS is_start
    FROM advisory_internal.key_ranges, generate_series(first_key >> 32, last_key >> 32) AS high
    WHERE last_key <= first_key + 68719476736
    GROUP BY 1, 2;
COMMENT ON VIEW advisory_internal.range_starts IS 'where there are ranges of keys';

-- The table in a key, which is its OID - 2^31, as in pg_repack's; its OID if it is in another
-- database.
CREATE FUNCTION advisory_internal.table_in_key(datid oid, low integer) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    SELECT coalesce(CASE WHEN datid = advisory_internal.this_database()
                         THEN advisory_internal.printable((pg_identify_object(
                                  'pg_catalog.pg_class'::regclass, number::oid, 0)).identity) END,
                    'oid ' || number)
    FROM (SELECT low + 2147483648) AS of_table (number);
END;
COMMENT ON FUNCTION advisory_internal.table_in_key(oid, integer) IS 'table in a key';

-- Is this pair a name?  From the highest bit: 7 bits for each of up to 9 printable characters, then
-- a 0, then 1s.  The 0 is one of the bits 72624976668147841, and the lowest bits of the characters
-- are 145249953336295682.  A printable character has its first or second bit, and not all seven.
CREATE FUNCTION advisory_internal.is_name(key bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN (key >> 57) & 127 NOT BETWEEN 32 AND 126 OR key = 9223372036854775807 THEN false
    WHEN ~key & (key + 1) & 72624976668147841 = 0 THEN false
    ELSE ~((key >> 6) | (key >> 5))
         & -((~key & (key + 1)) << 1) & 145249953336295682 = 0
        AND key & (key >> 1) & (key >> 2) & (key >> 3) & (key >> 4) & (key >> 5) & (key >> 6)
         & -((~key & (key + 1)) << 1) & 145249953336295682 = 0
    END;
COMMENT ON FUNCTION advisory_internal.is_name(bigint) IS
    'is this pair a name of DistributedLock.NET?';

-- A class is ruled out for a lock of this database if only the other extension is installed here.
CREATE FUNCTION advisory_internal.owners_here(extensions regclass) RETURNS name[]
    LANGUAGE sql STABLE STRICT PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    SELECT array_agg(extname)
    FROM pg_extension
    WHERE extname IN (SELECT extension FROM advisory_internal.key_ranges);
END;
COMMENT ON FUNCTION advisory_internal.owners_here(regclass) IS
    'installed extensions whose locks are known';

-- A small number is a program's only in a database that has a table of that name.  classes:
-- pg_class, which can be read.
CREATE FUNCTION advisory_internal.has_table(classes regclass, named name) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_has_table'
    LANGUAGE C STABLE STRICT PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.has_table(regclass, name) IS
    'has the database a table of this name?';

-- What a lock is known as, if that takes a look at the ranges, or at the current database.  exact:
-- what is known without that.
CREATE FUNCTION advisory_internal.range_uses(
        datid oid, objsubid integer, key bigint, exact text[])
    RETURNS text[]
    LANGUAGE sql STABLE STRICT PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    SELECT
@sql/known-as.sql
    FROM (SELECT exact || coalesce(array_agg(use ORDER BY place) FILTER (WHERE is_here), '{}'),
                 bool_or(NOT is_here)
          FROM (SELECT place, concat(tool, ': ', purpose, ' (' || CASE detail
                           WHEN 'table' THEN advisory_internal.table_in_key(
                               datid, ((key << 32) >> 32)::integer)
                           WHEN 'oid' THEN advisory_internal.table_in_key(
                               datid, ((key << 32) >> 32)::integer # (-2147483648))
                           WHEN 'name' THEN
                               (SELECT concat('perhaps "', string_agg(chr(code), '' ORDER BY i),
                                              '"')
                                FROM generate_series(1, 9) AS i,
                                     LATERAL (SELECT ((key >> 64 - 7 * i) & 127)::integer,
                                                     -(~key & (key + 1))
                                                         & (1::bigint << 64 - 7 * i))
                                     AS letter (code, place)
                                WHERE place <> 0)
                           END || ')'),
                       only_with IS NULL
                           OR (datid = advisory_internal.this_database()
                               AND advisory_internal.has_table(
                                   advisory_internal.readable('pg_catalog.pg_class',
                                       'some known keys are not shown'), only_with)) IS TRUE
                FROM (SELECT place, tool, purpose, first_objsubid, last_objsubid, first_key,
                             last_key, detail, extension, only_with
                      FROM advisory_internal.key_ranges
                      UNION ALL
                      SELECT place, tool, purpose, 1, 1, first_key, last_key, NULL, NULL, only_with
                      FROM advisory_internal.key_facts
                      WHERE only_with IS NOT NULL) AS fact,
                     (SELECT CASE WHEN objsubid > 2 AND datid = advisory_internal.this_database()
                                  THEN advisory_internal.owners_here(advisory_internal.readable(
                                      'pg_catalog.pg_extension', 'some known keys are not shown'))
                             END)
                         AS here (owners)
                WHERE objsubid BETWEEN first_objsubid AND last_objsubid
                    AND key BETWEEN first_key AND last_key
                    AND (detail <> 'name' OR advisory_internal.is_name(key)) IS NOT FALSE
                    AND (extension = ANY (owners)) IS NOT FALSE) AS use (place, use, is_here)
         ) AS found (uses, is_anybodys);
END;
COMMENT ON FUNCTION advisory_internal.range_uses(oid, integer, bigint, text[]) IS
    'possible uses of a lock, also according to ranges of keys';

CREATE FUNCTION advisory_internal.known_as(
        datid oid, objsubid integer, high integer, low integer,
        own text[], exact text[], is_small boolean, is_start boolean)
    RETURNS text[]
    LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN CASE WHEN is_small OR is_start OR objsubid BETWEEN 3 AND 16
                OR objsubid = 2 AND advisory_internal.is_name(
                                        (high::bigint << 32) | (low & 4294967295))
            THEN advisory_internal.range_uses(
                     datid, objsubid, (high::bigint << 32) | (low & 4294967295),
                     coalesce(own || exact, '{}'))
            ELSE own || exact END;
COMMENT ON FUNCTION advisory_internal.known_as(
    oid, integer, integer, integer, text[], text[], boolean, boolean) IS
    'possible uses of a lock according to known_keys, labels first';

-- A lock without a name as text: its label or known use, in double quotes like an identifier, so
-- that it cannot be mistaken for a name; or else its key or keys.  Any program may use a small
-- number, so that is shown before its known use.
CREATE FUNCTION advisory_internal.unnamed(
        objsubid integer, high integer, low integer, use text, is_label boolean)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
BEGIN ATOMIC
    SELECT concat_ws(' ', CASE WHEN use IS NULL OR is_small AND is_label IS NOT TRUE THEN keys END,
                     '"' || replace(CASE WHEN length(use) > 24 THEN left(use, 21) || '...'
                                         ELSE use END, '"', '""') || '"')
    FROM (SELECT (high::bigint << 32) | (low & 4294967295),
                 objsubid = 1 OR objsubid BETWEEN 16380 AND 32384
                     OR objsubid BETWEEN 32769 AND 48768) AS lock (key, has_key),
         LATERAL (SELECT CASE WHEN has_key THEN key ELSE high END BETWEEN -99999 AND 99999,
                         CASE WHEN has_key THEN key::text
                              ELSE concat(high, ', ', low,
                                          ' (objsubid ' || nullif(objsubid, 2) || ')') END)
             AS text (is_small, keys)
    WHERE objsubid IS NOT NULL;
END;
COMMENT ON FUNCTION advisory_internal.unnamed(integer, integer, integer, text, boolean) IS
    'lock without a name as text';

-- The same for the locks that activity(), blockers() and wait_tree() are about to show, in their
-- order.  They ask by this view, and keep its plan, because to make that takes longer than all the
-- rest.
CREATE FUNCTION advisory_internal.unnamed_locks()
    RETURNS TABLE (datid oid, objsubid integer, high integer, low integer)
    AS 'MODULE_PATHNAME', 'advisory_unnamed_locks'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.unnamed_locks() IS 'rows for advisory._unnamed_texts';

CREATE VIEW advisory._unnamed_texts AS
    SELECT number,
           advisory_internal.unnamed(
               objsubid, high, low,
               (advisory_internal.known_as(datid, objsubid, high, low, own, exact, is_small,
                                            is_start))[1],
               is_label) AS text
    FROM advisory_internal.unnamed_locks()
        WITH ORDINALITY AS l (datid, objsubid, high, low, number)
    LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
    LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
    LEFT JOIN advisory_internal.range_starts USING (objsubid, high);
COMMENT ON VIEW advisory._unnamed_texts IS
    'texts of locks without names, for activity, blockers and wait_tree()';
