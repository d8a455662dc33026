    -- Keys of other programs that both editions know, in every database.  Each fact names its
    -- source, a file of a public repository.  only_with: see below.
    SELECT tool, purpose, scope, 'exact' AS match, key::text AS rule, source,
           key AS first_key, key AS last_key, NULL::name AS only_with
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 'session', 72707369::bigint,
            'prisma/prisma-engines schema-engine postgres flavour'),
        ('goose', 'migration lock', 'session', 4097083626,
            'pressly/goose lock/session_locker_options.go'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 'session', 5887940537704921958,
            'pressly/goose lock/session_locker_options.go'),
        ('Kysely', 'migration lock', 'session or transaction', 3853314791062309107,
            'kysely-org/kysely src/dialect/postgres/postgres-adapter.ts (session from 0.29.3)'),
        ('node-pg-migrate', 'migration lock', 'session', 7241865325823964,
            'salsita/node-pg-migrate src/runner.ts'),
        ('graphile-migrate', 'migration lock', 'session', 4727445306447283,
            'graphile/migrate src/pgReal.ts'),
        ('postgres-migrations', 'migration lock', 'session', -8525285245963000605,
            'ThomWright/postgres-migrations src/with-lock.ts'),
        ('tern', 'migration lock', 'session', 9628173550095224, 'jackc/tern migrate/migrate.go'),
        ('pgroll', 'state lock', 'transaction', 12388221127840347,
            'xataio/pgroll pkg/state/state.go'),
        ('Atlas', 'migrate execute', 'session', 2686470616, 'ariga/atlas sql/postgres/driver.go'),
        ('Atlas', 'migrate diff', 'session', 361947982, 'ariga/atlas sql/postgres/driver.go'),
        ('DBOS', 'system database migration', 'session', 1234567890,
            'dbos-inc/dbos-transact-py dbos/_sys_db_postgres.py'),
        ('sqitch', 'deployment', 'session', 75474063,
            'sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm'),
        ('pgBackRest', 'backup', 'session', 12340078987004321, 'pgbackrest/pgbackrest src/db/db.h'),
        ('Unleash', 'migration', 'session', 479341, 'Unleash/unleash src/lib/util/db-lock.ts'),
        ('rake-db', 'migration', 'transaction', 8582141715823621641,
            'romeerez/orchid-orm packages/rake-db'),
        ('dumbo (Emmett)', 'migration', 'session', 999956789,
            'event-driven-io/Pongo packages/dumbo'),
        ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows'),
        ('Zero', 'changes of the schema', 'transaction', 4353719051050729648,
            'rocicorp/mono packages/zero-cache schema/ddl.ts')
    ) AS fact (tool, purpose, scope, key, source)
    UNION ALL
    -- Small numbers, which everybody uses.  A lock is shown as the program's only in a database
    -- that has a table of the program, only_with.
    SELECT tool, purpose, scope,
           CASE WHEN first_key = last_key THEN 'exact' ELSE 'range' END,
           CASE WHEN first_key = last_key THEN first_key::text
                ELSE format('%s to %s', first_key, last_key) END
               || ', beside a table ' || only_with COLLATE "default",    -- A name has "C".
           source, first_key, last_key, only_with
    FROM (VALUES
        ('AdonisJS Lucid', 'migrations', 'session', 1, 1, 'adonis_schema'::name,
            'adonisjs/lucid src/migration/runner.ts'),
        ('Airflow', 'migrations', 'session', 1, 1, 'dag_run', 'apache/airflow utils/db.py DBLocks'),
        ('Airflow', 'scheduler critical section', 'transaction', 2, 2, 'dag_run',
            'apache/airflow utils/db.py DBLocks'),
        ('Concourse', 'database migration', 'session', 5, 5, 'resource_config_versions',
            'concourse/concourse atc/db/lock/lock.go'),
        ('authentik', 'migration lock', 'session', 1000, 1000, 'authentik_core_user',
            'goauthentik/authentik lifecycle/migrate.py'),
        ('n8n', 'migrations and maintenance', 'transaction', 1001, 1009, 'workflow_entity',
            'n8n-io/n8n packages/@n8n/db db-lock.service.ts (1005: migrations)'),
        ('Marten', 'default global lock', 'session', 4004, 4004, 'mt_events',
            'JasperFx/marten StoreOptions.cs'),
        ('Evolve', 'migration lock', 'session', 12345, 12345, 'changelog',
            'lecaillon/Evolve PostgreSQLDatabase.cs'),
        ('pg_fact_loader', 'dependencies of queue tables', 'transaction', 99995, 99995,
            'fact_tables', 'enova/pg_fact_loader sql')
    ) AS fact (tool, purpose, scope, first_key, last_key, only_with, source)
    UNION ALL
    -- One key that is computed; null if it depends on names that are not known here.  Only slonik's
    -- is written down, because md5() fails on a server in FIPS mode.
    SELECT tool, purpose, scope, 'formula', rule, source, key, key, NULL
    FROM (VALUES
        ('slonik', 'migration (migration)', 'session',
         'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json(table))',
         'mmkal/slonik-tools packages/migrator', 1230759186),
        ('slonik', 'migration', 'session',
         'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json([schema, table]))',
         'mmkal/slonik-tools packages/migrator', NULL),
        ('DBOS', 'data source migration (dbos)', 'transaction',
         'first 8 bytes, big-endian, of sha256(''dbos.datasource_migrations.'' || schema)',
         'dbos-inc/dbos-transact-ts datasource.ts',
         advisory.key('dbos.datasource_migrations.dbos')),
        ('pgmq', 'queue creation', 'transaction', 'hashtext(''pgmq.queue_'' || queue)',
         'pgmq/pgmq pgmq.sql', NULL),
        ('pg_fact_loader', 'load of a fact table', 'transaction', 'fact_table_id',
         'enova/pg_fact_loader sql', NULL)
    ) AS fact (tool, purpose, scope, rule, source, key)
    UNION ALL
    SELECT 'pg_partman', purpose, scope, 'formula', format('hashtext(%L)', named),
           'pgpartman/pg_partman sql/' || file, hashtext(named), hashtext(named), NULL
    FROM (VALUES
        ('run_maintenance', 'session or transaction', 'functions, sql/procedures'),
        ('run_maintenance procedure (from 5.1.0)', 'session', 'procedures'),
        ('drop_partition_id', 'transaction', 'functions'),
        ('drop_partition_time', 'transaction', 'functions'),
        ('undo_partition_native', 'transaction', 'functions'),
        ('undo_partition', 'transaction', 'functions'),
        ('reapply_constraints', 'session', 'functions'),
        ('run_analyze', 'session', 'functions')
    ) AS fact (purpose, scope, file),
    LATERAL (SELECT 'pg_partman ' || replace(purpose, ' (from 5.1.0)', '')) AS names (named)
    UNION ALL
    SELECT 'Zero', purpose || ' (zero_0)', 'transaction', 'formula',
           format('hashtext(%L || app || ''_'' || shard)', named),
           'rocicorp/mono packages/zero-cache ' || file, hashtext(named || 'zero_0'),
           hashtext(named || 'zero_0'), NULL
    FROM (VALUES
        ('migration of its schema', 'migrate-schema:', 'db/migration.ts'),
        ('replication slots', 'replication-slot-management:', 'replication-slots.ts')
    ) AS fact (purpose, named, file)
