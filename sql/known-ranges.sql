    -- Ranges of keys of other programs that both editions know.  detail: what else the key tells.
    -- Pairs with a certain first key.
    SELECT tool, purpose, 'int4 pair' AS form, scope, 'formula' AS match, rule, source,
           2 AS objsubid, key1::bigint << 32 AS first_key,
           (key1::bigint << 32) | 4294967295 AS last_key, detail
    FROM (VALUES
        ('pg_partman', 'partition_data_proc', 'session or transaction',
         '(hashtext(''pg_partman partition_data_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman partition_data_proc'), NULL),
        ('pg_partman', 'undo_partition_proc', 'session or transaction',
         '(hashtext(''pg_partman undo_partition_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman undo_partition_proc'), NULL),
        ('pg_repack', 'table being repacked', 'session', '(16185446, table oid - 2^31)',
         'reorg/pg_repack bin/pg_repack.c', 16185446, 'table')
    ) AS fact (tool, purpose, scope, rule, source, key1, detail)
    UNION ALL
    SELECT tool, purpose, 'bigint', scope, 'range', rule, source, 1, first_key, last_key, NULL
    FROM (VALUES
        ('Flyway', 'migration lock', 'session or transaction',
         '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31',
         'flyway/flyway PostgreSQLAdvisoryLockTemplate.java',
         77431708279161 - 2147483648, 77431708279161 + 2147483647)
    ) AS fact (tool, purpose, scope, rule, source, first_key, last_key)
