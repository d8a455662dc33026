    -- Ranges of keys of other programs that both editions know.  detail: what else the key tells.
    -- only_with: see known-keys.sql.
    -- Pairs with a certain first key.
    SELECT tool, purpose, 'int4 pair' AS form, scope, 'formula' AS match, rule, source,
           2 AS objsubid, key1::bigint << 32 AS first_key,
           (key1::bigint << 32) | 4294967295 AS last_key, detail,
           NULL::name AS only_with
    FROM (VALUES
        ('pg_partman', 'partition_data_proc', 'session or transaction',
         '(hashtext(''pg_partman partition_data_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman partition_data_proc'), NULL),
        ('pg_partman', 'undo_partition_proc', 'session or transaction',
         '(hashtext(''pg_partman undo_partition_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman undo_partition_proc'), NULL),
        ('mimeo', 'refresh of a table', 'transaction',
         '(hashtext(''mimeo advisory lock''), hashtext(dest_table))', 'omniti-labs/mimeo sql',
         hashtext('mimeo advisory lock'), NULL),
        ('pg_repack', 'table being repacked', 'session', '(16185446, table oid - 2^31)',
         'reorg/pg_repack bin/pg_repack.c', 16185446, 'table')
    ) AS fact (tool, purpose, scope, rule, source, key1, detail)
    UNION ALL
    SELECT tool, purpose, 'bigint', scope, 'range', rule, source, 1, first_key, last_key, detail,
           NULL
    FROM (VALUES
        ('Flyway', 'migration lock', 'session or transaction',
         '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31',
         'flyway/flyway PostgreSQLAdvisoryLockTemplate.java',
         77431708279161 - 2147483648, 77431708279161 + 2147483647, NULL),
        ('Mastra', 'columns of a vector index', 'transaction', '(1936876916 << 32) | table oid',
         'mastra-ai/mastra stores/pg', 1936876916::bigint << 32,
         (1936876916::bigint << 32) | 4294967295, 'oid')
    ) AS fact (tool, purpose, scope, rule, source, first_key, last_key, detail)
    UNION ALL
    SELECT 'n8n', 'migrations and maintenance of a part', 'int4 pair', 'transaction', 'range',
           '(1001 to 1009, part), beside a table workflow_entity',
           'n8n-io/n8n packages/@n8n/db db-lock.service.ts', 2, 1001::bigint << 32,
           (1009::bigint << 32) | 4294967295, NULL, 'workflow_entity'
