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
-- The unique key has nulls, so it cannot be the replica identity.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';
COMMENT ON COLUMN advisory.key_labels.key IS 'key, as in pg_advisory_lock(bigint); null for a pair';
COMMENT ON COLUMN advisory.key_labels.key1 IS 'first key of a pair, as in pg_advisory_lock(int, int)';
COMMENT ON COLUMN advisory.key_labels.key2 IS 'second key of a pair';
COMMENT ON COLUMN advisory.key_labels.label IS 'what the lock is called, up to 200 characters';
COMMENT ON COLUMN advisory.key_labels.note IS 'note about the lock, up to 1000 characters';
SELECT pg_extension_config_dump('advisory.key_labels', '');

-- The next two functions have the same columns.  known_keys shows those up to key2.  The others say which locks are meant: those
-- with an objsubid and a key in these ranges, where a pair is one key.  detail says what else the keys of a lock tell: a table, or a name.

CREATE FUNCTION advisory_internal.key_labels()
    RETURNS TABLE (
        tool text, purpose text, form text, scope text, match text, rule text, source text,
        key bigint, key1 integer, key2 integer,
        first_objsubid integer, last_objsubid integer, first_key bigint, last_key bigint, detail text)
    LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    -- Limits, so that the views work whatever is in the table.
    SELECT left(label, 200), left(note, 1000),
           CASE WHEN is_pair THEN 'int4 pair' ELSE 'bigint' END, NULL, 'exact',
           CASE WHEN is_pair THEN format('(%s, %s)', key1, key2) ELSE key::text END, 'advisory.key_labels',
           key, key1, key2,
           objsubid, objsubid, tag, tag, NULL
    FROM (SELECT *, key IS NULL AS is_pair, CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
                 coalesce(key, (key1::bigint << 32) | (key2 & 4294967295)) AS tag
          FROM ONLY advisory.key_labels
          LIMIT 10000) AS labels
    WHERE tag IS NOT NULL AND label IS NOT NULL
    ORDER BY tag, is_pair, label COLLATE "C";
END;
COMMENT ON FUNCTION advisory_internal.key_labels() IS 'rows of advisory.known_keys: labels';

CREATE FUNCTION advisory_internal.crc32(bytes bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_crc32'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.crc32(bytea) IS 'CRC-32 as zlib computes it';

-- The only list of these facts.  Each one names its source, a file of a public repository.  The name of the database is in its own
-- encoding, and null if it is unknown.
CREATE FUNCTION advisory_internal.key_facts(database bytea, is_current boolean)
    RETURNS TABLE (
        tool text, purpose text, form text, scope text, match text, rule text, source text,
        key bigint, key1 integer, key2 integer,
        first_objsubid integer, last_objsubid integer, first_key bigint, last_key bigint, detail text)
    LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000 ROWS 60
BEGIN ATOMIC
    SELECT tool, purpose, 'bigint', scope, 'exact', key::text, source, key, NULL::integer, NULL::integer, 1, 1, key, key, NULL
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 'session', 72707369::bigint, 'prisma/prisma-engines schema-engine postgres flavour'),
        ('goose', 'migration lock', 'session', 4097083626, 'pressly/goose lock/session_locker_options.go'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 'session', 5887940537704921958, 'pressly/goose lock/session_locker_options.go'),
        ('Kysely', 'migration lock', 'session', 3853314791062309107, 'kysely-org/kysely src/dialect/postgres/postgres-adapter.ts'),
        ('node-pg-migrate', 'migration lock', 'session', 7241865325823964, 'salsita/node-pg-migrate src/runner.ts'),
        ('graphile-migrate', 'migration lock', 'session', 4727445306447283, 'graphile/migrate src/pgReal.ts'),
        ('postgres-migrations', 'migration lock', 'session', -8525285245963000605, 'ThomWright/postgres-migrations src/with-lock.ts'),
        ('tern', 'migration lock', 'session', 9628173550095224, 'jackc/tern migrate/migrate.go'),
        ('pgroll', 'state lock', 'transaction', 12388221127840347, 'xataio/pgroll pkg/state/state.go'),
        ('Atlas', 'migrate execute', 'session', 2686470616, 'ariga/atlas sql/postgres/driver.go'),
        ('Atlas', 'migrate diff', 'session', 361947982, 'ariga/atlas sql/postgres/driver.go'),
        ('DBOS', 'system database migration', 'session', 1234567890, 'dbos-inc/dbos-transact-py dbos/_sys_db_postgres.py'),
        ('authentik', 'migration lock', 'session', 1000, 'goauthentik/authentik lifecycle/migrate.py'),
        ('Evolve', 'migration lock', 'session', 12345, 'lecaillon/Evolve PostgreSQLDatabase.cs'),
        ('Marten', 'default global lock', 'session', 4004, 'JasperFx/marten StoreOptions.cs'),
        ('Airflow', 'migrations', 'session', 1, 'apache/airflow utils/db.py DBLocks'),
        ('Airflow', 'scheduler critical section', 'session', 2, 'apache/airflow utils/db.py DBLocks'),
        ('Concourse', 'database migration', 'session', 5, 'concourse/concourse atc/db/lock/lock.go'),
        ('sqitch', 'deployment', 'session', 75474063, 'sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm'),
        ('pgBackRest', 'backup', 'session', 12340078987004321, 'pgbackrest/pgbackrest src/db/db.h'),
        ('Unleash', 'migration', 'session', 479341, 'Unleash/unleash src/lib/util/db-lock.ts'),
        ('rake-db', 'migration', 'transaction', 8582141715823621641, 'romeerez/orchid-orm packages/rake-db'),
        ('dumbo (Emmett)', 'migration', 'session', 999956789, 'event-driven-io/Pongo packages/dumbo'),
        ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows')
    ) AS fact (tool, purpose, scope, key, source)
    UNION ALL
    -- One key that is computed, mostly from the name of the database.  It is null if it depends on names that are not known here.
    -- Only slonik's is written down, because md5() fails on a server in FIPS mode.
    SELECT tool, purpose, 'bigint', scope, 'formula', rule, source, key, NULL, NULL, 1, 1, key, key, NULL
    FROM (VALUES
        ('Rails', 'schema migration', 'session', '2053462845 * crc32(database)',
         'rails/rails activerecord migration.rb', 2053462845 * advisory_internal.crc32(database)),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0'' || database) * 1486364155)',
         'golang-migrate/migrate database/util.go', advisory_internal.crc32(E'public\\000schema_migrations\\000' || database) * 1486364155 & 4294967295),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0/'' || database) * 1486364155), connected by URL',
         'golang-migrate/migrate database/util.go', advisory_internal.crc32(E'public\\000schema_migrations\\000/' || database) * 1486364155 & 4294967295),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0/'') * 1486364155), by a URL without a database',
         'golang-migrate/migrate database/util.go', advisory_internal.crc32(E'public\\000schema_migrations\\000/') * 1486364155 & 4294967295),
        ('Grafana', 'migration lock', 'session', 'uint32(crc32(database) * 1486364155)',
         'grafana/grafana migrator/advisory_lock_id.go', advisory_internal.crc32(database) * 1486364155 & 4294967295),
        ('sqlx', 'migration lock', 'session', '0x3d32ad9e * crc32(database)',
         'launchbadge/sqlx sqlx-postgres/src/migrate.rs', 1026731422 * advisory_internal.crc32(database)),
        ('slonik', 'migration (migration)', 'session', 'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json(table))',
         'mmkal/slonik-tools packages/migrator', 1230759186),
        ('slonik', 'migration', 'session', 'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json([schema, table]))',
         'mmkal/slonik-tools packages/migrator', NULL),
        ('pg-boss', 'create and migrate (pgboss)', 'transaction', 'first 8 bytes, big-endian, of sha224(database || ''.pgboss.'' || schema)',
         'timgit/pg-boss src/plans.js',
         ('x' || left(encode(sha224(database || '.pgboss.pgboss'), 'hex'), 16))::bit(64)::bigint),
        ('DBOS', 'data source migration (dbos)', 'transaction', 'first 8 bytes, big-endian, of sha256(''dbos.datasource_migrations.'' || schema)',
         'dbos-inc/dbos-transact-ts datasource.ts', advisory.key('dbos.datasource_migrations.dbos')),
        ('pg_partman', 'run_maintenance', 'session or transaction', 'hashtext(''pg_partman run_maintenance'')',
         'pgpartman/pg_partman sql/functions, sql/procedures', hashtext('pg_partman run_maintenance')),
        ('pg_partman', 'run_maintenance procedure (from 5.1.0)', 'session', 'hashtext(''pg_partman run_maintenance procedure'')',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman run_maintenance procedure')),
        ('pg_partman', 'drop_partition_id', 'transaction', 'hashtext(''pg_partman drop_partition_id'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman drop_partition_id')),
        ('pg_partman', 'drop_partition_time', 'transaction', 'hashtext(''pg_partman drop_partition_time'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman drop_partition_time')),
        ('pg_partman', 'undo_partition_native', 'transaction', 'hashtext(''pg_partman undo_partition_native'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman undo_partition_native')),
        ('pg_partman', 'undo_partition', 'transaction', 'hashtext(''pg_partman undo_partition'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman undo_partition')),
        ('pg_partman', 'reapply_constraints', 'session', 'hashtext(''pg_partman reapply_constraints'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman reapply_constraints')),
        ('pg_partman', 'run_analyze', 'session', 'hashtext(''pg_partman run_analyze'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman run_analyze')),
        ('pgmq', 'queue creation', 'transaction', 'hashtext(''pgmq.queue_'' || queue)', 'pgmq/pgmq pgmq.sql', NULL)
    ) AS fact (tool, purpose, scope, rule, source, key)
    UNION ALL
    -- Pairs with a certain first key.
    SELECT tool, purpose, 'int4 pair', scope, 'formula', rule, source, NULL, NULL, NULL, 2, 2,
           key1::bigint << 32, (key1::bigint << 32) | 4294967295, detail
    FROM (VALUES
        ('pg_partman', 'partition_data_proc', 'session or transaction', '(hashtext(''pg_partman partition_data_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman partition_data_proc'), NULL),
        ('pg_partman', 'undo_partition_proc', 'session or transaction', '(hashtext(''pg_partman undo_partition_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman undo_partition_proc'), NULL),
        ('pg_repack', 'table being repacked', 'session', '(16185446, table oid - 2^31)',
         'reorg/pg_repack bin/pg_repack.c', 16185446, 'table')
    ) AS fact (tool, purpose, scope, rule, source, key1, detail)
    UNION ALL
    -- Ranges of keys.
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL, objsubid, objsubid, first_key, last_key, detail
    FROM (VALUES
        ('n8n', 'migrations and maintenance', 'bigint', 'transaction', 'range', '1001 to 1009 (1005: migrations)',
         'n8n-io/n8n packages/@n8n/db db-lock.service.ts', 1, 1001, 1009, NULL),
        ('Flyway', 'migration lock', 'bigint', 'session or transaction', 'range',
         '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31',
         'flyway/flyway PostgreSQLAdvisoryLockTemplate.java', 1, 77431708279161 - 2147483648, 77431708279161 + 2147483647, NULL),
        ('DistributedLock.NET', 'name of up to 9 ASCII characters', 'int4 pair', 'session', 'formula',
         '7 bits a character, a 0 bit, then 1 bits', 'madelson/DistributedLock PostgresAdvisoryLockKey.cs',
         2, '-9223372036854775808'::bigint, 9223372036854775807, 'name')
    ) AS fact (tool, purpose, form, scope, match, rule, source, objsubid, first_key, last_key, detail)
    UNION ALL
    -- All keys of some objsubids.  If an extension that uses them is installed in this database, the others are ruled out here.
    SELECT tool, purpose, form, 'any', 'class', rule, source, NULL, NULL, NULL, first_objsubid, last_objsubid,
           CASE WHEN NOT (is_current AND is_one_installed) OR extension IN (SELECT extname FROM pg_extension)
                THEN '-9223372036854775808'::bigint END,
           9223372036854775807, NULL
    FROM (VALUES
        ('pg_auto_failover', 'monitor state', 'objsubid 10 and 11', 'objsubid (10 is Citus''s too)',
         'hapostgres/pg_auto_failover metadata.h', 10, 11, 'pgautofailover'),
        ('Citus', 'distributed execution', 'objsubid 4-10', 'objsubid', 'citusdata/citus resource_lock.h', 4, 10, 'citus'),
        ('Citus', 'distributed execution', 'objsubid 12-16', 'objsubid', 'citusdata/citus resource_lock.h', 12, 16, 'citus')
    ) AS fact (tool, purpose, form, rule, source, first_objsubid, last_objsubid, extension),
    (SELECT count(*) > 0 FROM pg_extension WHERE extname IN ('pgautofailover', 'citus')) AS installed (is_one_installed);
END;
COMMENT ON FUNCTION advisory_internal.key_facts(bytea, boolean) IS 'rows of advisory.known_keys: keys of programs, in a database';

CREATE FUNCTION advisory_internal.known_keys()
    RETURNS TABLE (
        tool text,
        purpose text,
        form text,
        scope text,
        match text,
        rule text,
        source text,
        key bigint,
        key1 integer,
        key2 integer)
    AS 'MODULE_PATHNAME', 'advisory_known_keys'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 60;
COMMENT ON FUNCTION advisory_internal.known_keys() IS 'rows of advisory.known_keys';

CREATE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM advisory_internal.known_keys();
COMMENT ON VIEW advisory.known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';
COMMENT ON COLUMN advisory.known_keys.tool IS 'program that takes the lock, or the label of key_labels';
COMMENT ON COLUMN advisory.known_keys.purpose IS 'what the lock is for; or the note of key_labels';
COMMENT ON COLUMN advisory.known_keys.form IS 'bigint, int4 pair, or the objsubids of a class';
COMMENT ON COLUMN advisory.known_keys.scope IS 'how the program takes it: session, transaction, or both';
COMMENT ON COLUMN advisory.known_keys.match IS 'how a lock is recognized: exact, formula, range or class';
COMMENT ON COLUMN advisory.known_keys.rule IS 'the key, or how it is made';
COMMENT ON COLUMN advisory.known_keys.source IS 'where this is known from: repository and file, or key_labels';
COMMENT ON COLUMN advisory.known_keys.key IS 'the key in this database, bigint form; null if there is not one';
COMMENT ON COLUMN advisory.known_keys.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.known_keys.key2 IS 'second key of the pair form, signed';

-- Loads the known keys once for each query, so that further rows cost little.
CREATE FUNCTION advisory_internal.known_as(database oid, high integer, low integer, objsubid integer) RETURNS text[]
    AS 'MODULE_PATHNAME', 'advisory_known_as'
    LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory_internal.known_as(oid, integer, integer, integer) IS 'possible uses of a lock tag according to known_keys, labels first';
