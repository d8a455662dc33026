    -- Keys of other programs that both editions know, in every database.  Each fact names its
    -- source, a file of a public repository.
    SELECT tool, purpose, scope, 'exact' AS match, key::text AS rule, source,
           key AS first_key, key AS last_key
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 'session', 72707369::bigint,
            'prisma/prisma-engines schema-engine postgres flavour'),
        ('goose', 'migration lock', 'session', 4097083626,
            'pressly/goose lock/session_locker_options.go'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 'session', 5887940537704921958,
            'pressly/goose lock/session_locker_options.go'),
        ('Kysely', 'migration lock', 'session', 3853314791062309107,
            'kysely-org/kysely src/dialect/postgres/postgres-adapter.ts'),
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
        ('authentik', 'migration lock', 'session', 1000,
            'goauthentik/authentik lifecycle/migrate.py'),
        ('Evolve', 'migration lock', 'session', 12345, 'lecaillon/Evolve PostgreSQLDatabase.cs'),
        ('Marten', 'default global lock', 'session', 4004, 'JasperFx/marten StoreOptions.cs'),
        ('Airflow', 'migrations', 'session', 1, 'apache/airflow utils/db.py DBLocks'),
        ('Airflow', 'scheduler critical section', 'session', 2,
            'apache/airflow utils/db.py DBLocks'),
        ('Concourse', 'database migration', 'session', 5,
            'concourse/concourse atc/db/lock/lock.go'),
        ('sqitch', 'deployment', 'session', 75474063,
            'sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm'),
        ('pgBackRest', 'backup', 'session', 12340078987004321, 'pgbackrest/pgbackrest src/db/db.h'),
        ('Unleash', 'migration', 'session', 479341, 'Unleash/unleash src/lib/util/db-lock.ts'),
        ('rake-db', 'migration', 'transaction', 8582141715823621641,
            'romeerez/orchid-orm packages/rake-db'),
        ('dumbo (Emmett)', 'migration', 'session', 999956789,
            'event-driven-io/Pongo packages/dumbo'),
        ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows')
    ) AS fact (tool, purpose, scope, key, source)
    UNION ALL
    -- One key that is computed; null if it depends on names that are not known here.  Only slonik's
    -- is written down, because md5() fails on a server in FIPS mode.
    SELECT tool, purpose, scope, 'formula', rule, source, key, key
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
         'pgmq/pgmq pgmq.sql', NULL)
    ) AS fact (tool, purpose, scope, rule, source, key)
    UNION ALL
    SELECT 'pg_partman', purpose, scope, 'formula', format('hashtext(%L)', named),
           'pgpartman/pg_partman sql/' || file, hashtext(named), hashtext(named)
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
    SELECT 'n8n', 'migrations and maintenance', 'transaction', 'range',
           '1001 to 1009 (1005: migrations)', 'n8n-io/n8n packages/@n8n/db db-lock.service.ts',
           1001, 1009
