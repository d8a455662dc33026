-- Labels and known keys.

CREATE TABLE IF NOT EXISTS advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    note text CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_one_form
        CHECK ((key IS NULL) = (key1 IS NOT NULL) AND (key1 IS NULL) = (key2 IS NULL)));

CREATE UNIQUE INDEX IF NOT EXISTS key_labels_unique ON advisory.key_labels
    ((key IS NULL), coalesce(key, 0), coalesce(key1, 0), coalesce(key2, 0), label);

-- It has no primary key.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';

-- Labels, and keys of programs.  After key2: which locks are meant; a pair is one key there.
CREATE OR REPLACE VIEW advisory._uses AS
    SELECT _printable(label) AS tool,
           _printable(note) AS purpose,
           CASE WHEN key IS NULL THEN 'int4 pair' ELSE 'bigint' END AS form,
           NULL AS scope,
           'exact' AS match,
           coalesce(key::text, format('(%s, %s)', key1, key2)) AS rule,
           'advisory.key_labels' AS source,
           key,
           key1,
           key2,
           number AS first_key,
           number AS last_key,
           CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
           true AS is_label
    FROM advisory.key_labels,
         LATERAL (SELECT coalesce(key, (key1::bigint << 32) | (key2 & 4294967295))) AS n (number)
    UNION ALL
    -- One key of a program.
    SELECT tool, purpose, 'bigint',
           CASE WHEN tool ~ 'pgroll|rake-db|pg-workflows' OR purpose ~ 'data source'
                THEN 'transaction' ELSE 'session' END,
           'exact', key::text, source, key, NULL, NULL, key, key, 1, false
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 72707369::bigint, 'prisma/prisma-engines'),
        ('pgroll', 'state lock', 12388221127840347, 'xataio/pgroll'),
        ('DBOS', 'data source migration (dbos)', -539682970964697559, 'dbos-inc/dbos-transact-ts'),
        ('postgres-migrations', 'migration lock', -8525285245963000605,
         'ThomWright/postgres-migrations'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 5887940537704921958, 'pressly/goose'),
        ('Atlas', 'migrate diff', 361947982, 'ariga/atlas'),
        ('node-pg-migrate', 'migration lock', 7241865325823964, 'salsita/node-pg-migrate'),
        ('goose', 'migration lock', 4097083626, 'pressly/goose'),
        ('DBOS', 'system database migration', 1234567890, 'dbos-inc/dbos-transact-py'),
        ('Concourse', 'database migration', 5, 'concourse/concourse'),
        ('graphile-migrate', 'migration lock', 4727445306447283, 'graphile/migrate'),
        ('authentik', 'migration lock', 1000, 'goauthentik/authentik'),
        ('Kysely', 'migration lock', 3853314791062309107, 'kysely-org/kysely'),
        ('slonik', 'migration (migration)', 1230759186, 'mmkal/slonik-tools'),
        ('pgBackRest', 'backup', 12340078987004321, 'pgbackrest/pgbackrest'),
        ('rake-db', 'migration', 8582141715823621641, 'romeerez/orchid-orm'),
        ('dumbo (Emmett)', 'migration', 999956789, 'event-driven-io/Pongo'),
        ('Airflow', 'scheduler critical section', 2, 'apache/airflow'),
        ('tern', 'migration lock', 9628173550095224, 'jackc/tern'),
        ('Marten', 'default global lock', 4004, 'JasperFx/marten'),
        ('pg-workflows', 'migration', 738291645, 'pg-workflows'),
        ('Atlas', 'migrate execute', 2686470616, 'ariga/atlas'),
        ('Evolve', 'migration lock', 12345, 'lecaillon/Evolve'),
        ('sqitch', 'deployment', 75474063, 'sqitchers/sqitch'),
        ('Unleash', 'migration', 479341, 'Unleash/unleash'),
        ('Airflow', 'migrations', 1, 'apache/airflow')) AS fact (tool, purpose, key, source)
    UNION ALL
    -- Many keys of a program.
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL, first, last,
           objsubid, false
    FROM (VALUES
        ('pg_repack', 'table being repacked', 'int4 pair', 'session', 'formula',
         '(16185446, table oid - 2^31)', 'reorg/pg_repack', 2,
         16185446::bigint << 32, (16185447::bigint << 32) - 1),
        ('n8n', 'migrations and maintenance', 'bigint', 'transaction', 'range',
         '1001 to 1009 (1005: migrations)', 'n8n-io/n8n', 1, 1001, 1009),
        ('Flyway', 'migration lock', 'bigint', 'session or transaction', 'range',
         '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31',
         'flyway/flyway', 1, 77429560795513, 77433855762808),
        ('Citus', 'distributed execution', 'objsubid 4-16', 'any', 'class', 'objsubid',
         'citusdata/citus', 4, -1::bigint << 63, ~(-1::bigint << 63)))
        AS fact (tool, purpose, form, scope, match, rule, source, objsubid, first, last);

CREATE OR REPLACE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM _uses;
COMMENT ON VIEW known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';
