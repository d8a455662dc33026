-- ==== Known keys and labels ====

CREATE TABLE IF NOT EXISTS advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    note text CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_one_form CHECK (
        CASE WHEN key IS NOT NULL THEN key1 IS NULL AND key2 IS NULL
             ELSE key1 IS NOT NULL AND key2 IS NOT NULL END));
CREATE UNIQUE INDEX IF NOT EXISTS key_labels_unique
    ON advisory.key_labels ((key IS NULL), coalesce(key, 0), coalesce(key1, 0), coalesce(key2, 0), label);
-- It has no primary key.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';
GRANT SELECT ON advisory.key_labels TO PUBLIC;

-- '?' for control characters, line separators, and what changes the direction of text: a name cannot forge a line of a view.
CREATE OR REPLACE FUNCTION advisory._printable(line text) RETURNS text
    LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding()
        WHEN 'UTF8' THEN '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]' ELSE '[\x01-\x1f\x7f]' END, '?', 'g')
$$;

-- The text without its middle if it is longer than so many characters.  Names often differ only at their ends.
CREATE OR REPLACE FUNCTION advisory._cut(line text, columns integer) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN length(line) <= columns THEN line
                ELSE left(line, (columns - 2) / 2) || '...' || right(line, greatest((columns - 3) / 2, 0)) END
$$;

-- The columns up to key2 are those of known_keys.  The others say which locks are meant: a pair is one key there.
CREATE OR REPLACE VIEW advisory._key_facts AS
    SELECT tool, purpose, form, scope, match, coalesce(rule, first_key::text) AS rule, source,
           CASE WHEN first_key = last_key THEN first_key END AS key, NULL::integer AS key1, NULL::integer AS key2,
           coalesce(first_key, '-9223372036854775808'::bigint) AS first_key, coalesce(last_key, 9223372036854775807) AS last_key,
           CASE form WHEN 'bigint' THEN 1 WHEN 'int4 pair' THEN 2 ELSE 4 END AS first_objsubid,
           CASE form WHEN 'bigint' THEN 1 WHEN 'int4 pair' THEN 2 ELSE 16 END AS last_objsubid
    FROM (
        SELECT tool, purpose, 'bigint', scope, 'exact', NULL, key, key, source
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
            ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows')) AS fact (tool, purpose, scope, key, source)
        UNION ALL
        SELECT 'pg_partman', job || since, 'bigint', scope, 'formula', format('hashtext(%L)', text), hashtext(text), hashtext(text),
               'pgpartman/pg_partman sql/' || folder
        FROM (VALUES
            ('run_maintenance', '', 'session or transaction', 'functions, sql/procedures'), ('drop_partition_id', '', 'transaction', 'functions'),
            ('run_maintenance procedure', ' (from 5.1.0)', 'session', 'procedures'), ('drop_partition_time', '', 'transaction', 'functions'),
            ('undo_partition_native', '', 'transaction', 'functions'), ('undo_partition', '', 'transaction', 'functions'),
            ('reapply_constraints', '', 'session', 'functions'), ('run_analyze', '', 'session', 'functions')) AS job (job, since, scope, folder),
            concat('pg_partman ', job) AS text
        UNION ALL
        SELECT 'pg_partman', job, 'int4 pair', 'session or transaction', 'formula', format('(hashtext(%L), hashtext(parent_table))', 'pg_partman ' || job),
               first, first | 4294967295, 'pgpartman/pg_partman sql/procedures'
        FROM unnest('{partition_data_proc,undo_partition_proc}'::text[]) AS job, LATERAL (SELECT hashtext('pg_partman ' || job)::bigint << 32) AS k (first)
        UNION ALL VALUES
            ('slonik', 'migration (migration)', 'bigint', 'session', 'formula', 'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json(table))',
                1230759186, 1230759186, 'mmkal/slonik-tools packages/migrator'),
            ('DBOS', 'data source migration (dbos)', 'bigint', 'transaction', 'formula',
                'first 8 bytes, big-endian, of sha256(''dbos.datasource_migrations.'' || schema)',
                advisory.key('dbos.datasource_migrations.dbos'), advisory.key('dbos.datasource_migrations.dbos'), 'dbos-inc/dbos-transact-ts datasource.ts'),
            ('pg_repack', 'table being repacked', 'int4 pair', 'session', 'formula', '(16185446, table oid - 2^31)',
                16185446::bigint << 32, (16185447::bigint << 32) - 1, 'reorg/pg_repack bin/pg_repack.c'),
            ('n8n', 'migrations and maintenance', 'bigint', 'transaction', 'range', '1001 to 1009 (1005: migrations)',
                1001, 1009, 'n8n-io/n8n packages/@n8n/db db-lock.service.ts'),
            ('Flyway', 'migration lock', 'bigint', 'session or transaction', 'range',
                '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31', 77429560795513, 77433855762808,
                'flyway/flyway PostgreSQLAdvisoryLockTemplate.java'),
            ('Citus', 'distributed execution', 'objsubid 4-16', 'any', 'class', 'objsubid', NULL, NULL, 'citusdata/citus resource_lock.h')
    ) AS fact (tool, purpose, form, scope, match, rule, first_key, last_key, source);

CREATE OR REPLACE VIEW advisory._labels AS
    SELECT advisory._printable(label) AS tool, advisory._printable(note) AS purpose,
           CASE WHEN key IS NULL THEN 'int4 pair' ELSE 'bigint' END AS form, NULL::text AS scope, 'exact' AS match,
           CASE WHEN key IS NULL THEN format('(%s, %s)', key1, key2) ELSE key::text END AS rule, 'advisory.key_labels' AS source,
           key, key1, key2, CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
           coalesce(key, (key1::bigint << 32) | (key2 & 4294967295)) AS tag
    FROM advisory.key_labels
    ORDER BY tag, objsubid, label COLLATE "C";

CREATE OR REPLACE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2 FROM advisory._labels
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2 FROM advisory._key_facts;
COMMENT ON VIEW advisory.known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';

-- The labels that are names: namespace/name, if that has the key.  Any of the slashes can be the one between the two.
CREATE OR REPLACE VIEW advisory._names AS
    SELECT DISTINCT ON (key) key, left(label, slash - 1) AS namespace, substr(label, slash + 1) AS name
    FROM advisory.key_labels, generate_series(2, length(label) - 1) AS slash
    WHERE key IS NOT NULL AND substr(label, slash, 1) = '/' AND advisory.key(left(label, slash - 1), substr(label, slash + 1)) = key
    ORDER BY key, slash;

-- ==== Locks ====

-- Only the local number of a prepared transaction stands at its locks.  If two of a database have the same, neither is named.
CREATE OR REPLACE VIEW advisory._prepared AS
    SELECT l.virtualtransaction, d.oid AS datid, min(gid) AS gid, min(owner) AS owner, min(prepared) AS prepared
    FROM pg_locks AS l JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid JOIN pg_database AS d ON d.datname = p.database
    WHERE pid IS NULL
    GROUP BY l.virtualtransaction, d.oid HAVING count(*) = 1;

-- All advisory locks, and the locks of other types that a session waits for.  A slot of a semaphore is a lock of its own, which only its
-- name tells: that of a label, or the arguments.  session: the process, of a parallel worker its leader; below 0 a prepared transaction.
-- tag: what is waited for; the slots of a semaphore and its queue are one.
CREATE OR REPLACE FUNCTION advisory._entries(of_namespace text DEFAULT NULL, of_name text DEFAULT NULL)
    RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, namespace text, name text,
        slot integer, key bigint, key1 integer, key2 integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
        acquired_at timestamptz, held interval, blocked_by integer[], known_as text[], gid text, query text,
        session bigint, objsubid integer, tag text, lock text, who text, since timestamptz, is_waiting boolean, has_advisory boolean)
    LANGUAGE sql VOLATILE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    -- Otherwise pg_stat_activity stays as it was when the transaction first looked at it.
    SELECT pg_stat_clear_snapshot();
    WITH backend AS MATERIALIZED (
        SELECT *, advisory._printable(usename) AS role FROM pg_stat_activity
    ), slot_key AS (
        SELECT n.*, i AS slot, CASE i WHEN -1 THEN n.key ELSE advisory._slot_key(n.namespace, n.name, i) END AS lock_key
        FROM (SELECT * FROM advisory._names UNION SELECT advisory.key(of_namespace, of_name), of_namespace, of_name WHERE of_name IS NOT NULL) AS n,
             generate_series(-1, 100) AS i
    ), lock AS MATERIALIZED (
        -- Whoever holds the lock of a queue waits for a slot, and is the only one that looks for it.  waitstart is new in 14.
        SELECT l.*, d.datname, n.number, t.kind, s.namespace, s.name, s.slot, s.slot = 0 AND granted AS is_head,
               granted AND s.slot IS DISTINCT FROM 0 AS is_held, CASE WHEN objsubid = 1 THEN coalesce(s.key, number) END AS key,
               coalesce(b.leader_pid, l.pid, -split_part(virtualtransaction, '/', 2)::bigint) AS session,
               CASE WHEN NOT granted THEN (to_jsonb(l) ->> 'waitstart')::timestamptz WHEN s.slot = 0 THEN b.query_start END AS start,
               CASE WHEN s.slot >= 0 THEN 'semaphore ' || s.key
                    ELSE (locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text END AS tag
        FROM pg_locks AS l
        LEFT JOIN backend AS b ON b.pid = l.pid
        LEFT JOIN pg_database AS d ON d.oid = l.database
        CROSS JOIN LATERAL (SELECT CASE locktype WHEN 'advisory' THEN (classid::bigint << 32) | objid::bigint END) AS n (number)
        LEFT JOIN slot_key AS s ON s.lock_key = number AND objsubid = 1 AND d.datname = current_database()
        CROSS JOIN LATERAL (SELECT CASE WHEN number IS NULL THEN NULL WHEN objsubid > 2 THEN 'foreign' WHEN s.slot > 0 THEN 'semaphore'
                                        WHEN s.slot = 0 THEN 'queue' ELSE 'lock' END) AS t (kind)
        WHERE mode <> 'SIReadLock'
    ), taken AS (
        SELECT tag, array_agg(greatest(session, 0)::integer ORDER BY slot) AS pids FROM lock WHERE slot > 0 AND granted GROUP BY tag
    ), label AS (
        SELECT tag, objsubid, array_agg(concat_ws(': ', tool, purpose)) AS uses FROM advisory._labels GROUP BY tag, objsubid
    ), fact AS MATERIALIZED (
        SELECT *, concat_ws(': ', tool, purpose) AS use FROM advisory._key_facts
    )
    SELECT l.pid, l.datname, coalesce(b.role, advisory._printable(p.owner)), b.application_name, b.client_addr, b.state, l.kind,
           advisory._printable(l.namespace), advisory._printable(l.name), nullif(greatest(l.slot, 0), 0),
           l.key, k.key1, k.key2, CASE l.mode WHEN 'ExclusiveLock' THEN 'exclusive' WHEN 'ShareLock' THEN 'shared' ELSE l.mode END,
           CASE WHEN l.pid IS NULL THEN 'transaction' END, is_held, start, clock_timestamp() - start, NULL::timestamptz, NULL::interval,
           CASE WHEN NOT is_held THEN array_remove(pids, l.session::integer) || CASE WHEN NOT granted THEN pg_blocking_pids(l.pid) END END,
           u.known_as, advisory._printable(p.gid), b.query, l.session, l.objsubid::integer, l.tag,
           CASE WHEN l.kind IS NULL
                THEN concat_ws(' ', CASE locktype WHEN 'tuple' THEN format('row (%s,%s) of', page, tuple) WHEN 'transactionid' THEN 'transaction'
                                                  ELSE locktype END, transactionid, virtualxid,
                               CASE WHEN l.database = 0 OR l.datname = current_database() THEN relation::regclass::text ELSE relation::text END)
                WHEN l.name IS NOT NULL THEN advisory._printable(concat(l.namespace, '/', l.name))
                -- Any program may use a small number.
                WHEN a.uses IS NOT NULL OR u.quoted IS NOT NULL AND (l.key IS NULL OR l.key NOT BETWEEN -99999 AND 99999) THEN u.quoted
                ELSE concat_ws(' ', coalesce(l.key::text, concat(k.key1, ', ', k.key2, ' (objsubid ' || nullif(l.objsubid, 2) || ')')), u.quoted) END,
           coalesce(b.role || coalesce('@' || nullif(b.application_name, ''), ''), advisory._printable(p.owner || ' (prepared ' || p.gid || ')')),
           coalesce(b.state_change, p.prepared), coalesce(b.wait_event_type = 'Lock', false), bool_or(l.kind IS NOT NULL) OVER (PARTITION BY l.session)
    FROM lock AS l
    LEFT JOIN backend AS b ON b.pid = l.pid
    LEFT JOIN advisory._prepared AS p ON l.pid IS NULL AND p.virtualtransaction = l.virtualtransaction AND p.datid = l.database
    LEFT JOIN taken USING (tag)
    LEFT JOIN label AS a ON a.tag = number AND a.objsubid = l.objsubid AND l.datname = current_database() AND coalesce(l.slot, -1) < 0
    CROSS JOIN LATERAL (SELECT CASE WHEN l.key IS NULL THEN classid::integer END, CASE WHEN l.key IS NULL THEN objid::integer END) AS k (key1, key2)
    CROSS JOIN LATERAL (
        SELECT nullif(a.uses || ARRAY(SELECT use FROM fact AS f WHERE l.kind IN ('lock', 'foreign') AND number BETWEEN first_key AND last_key
                                          AND l.objsubid BETWEEN first_objsubid AND last_objsubid), '{}')) AS c (known_as)
    CROSS JOIN LATERAL (
        SELECT c.known_as, '"' || replace(CASE WHEN length(known_as[1]) > 24 THEN left(known_as[1], 21) || '...' ELSE known_as[1] END, '"', '""') || '"'
    ) AS u (known_as, quoted)
    WHERE l.kind IS NOT NULL OR l.tag IN (SELECT tag FROM lock WHERE NOT granted)
$$;

CREATE OR REPLACE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace, name, slot, key, key1, key2, mode, scope, granted,
           wait_start, waited, acquired_at, held, blocked_by, known_as, gid, query
    FROM advisory._entries() WHERE kind IS NOT NULL;
COMMENT ON VIEW advisory.locks IS 'every advisory lock on the server, with its name, holders and waiters';

CREATE OR REPLACE FUNCTION advisory.holders(namespace text, name text)
    RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, slot integer, mode text, scope text,
        granted boolean, wait_start timestamptz, waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    LANGUAGE sql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._check_name(namespace, name);
    SELECT e.pid, e.database, e.role, e.application_name, e.client_addr, e.state, e.kind, e.slot, e.mode, e.scope,
           e.granted, e.wait_start, e.waited, e.acquired_at, e.held, e.blocked_by, e.gid, e.query
    FROM advisory._entries(holders.namespace, holders.name) AS e
    WHERE e.key = advisory.key(holders.namespace, holders.name) AND e.database = current_database()
$$;
COMMENT ON FUNCTION advisory.holders(text, text) IS 'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE OR REPLACE FUNCTION advisory.holders_key(key bigint)
    RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, slot integer, mode text, scope text,
        granted boolean, wait_start timestamptz, waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    LANGUAGE plpgsql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION 'key must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    RETURN QUERY
    SELECT e.pid, e.database, e.role, e.application_name, e.client_addr, e.state, e.kind, e.slot, e.mode, e.scope,
           e.granted, e.wait_start, e.waited, e.acquired_at, e.held, e.blocked_by, e.gid, e.query
    FROM advisory._entries() AS e WHERE e.key = holders_key.key AND e.database = current_database();
END $$;
COMMENT ON FUNCTION advisory.holders_key(bigint) IS 'sessions that hold the lock, or a slot of this key, or wait for it';

-- Those that have a label.  Nothing says how many slots a semaphore has.
CREATE OR REPLACE VIEW advisory.semaphores AS
    SELECT namespace, name, key, NULL::integer AS slots, (count(*) FILTER (WHERE granted))::integer AS in_use, NULL::integer AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}') AS holders, false AS slots_disagree
    FROM advisory._entries() WHERE kind IN ('semaphore', 'queue') GROUP BY namespace, name, key;
COMMENT ON VIEW advisory.semaphores IS 'semaphores of this database that have holders of slots, or waiters';

-- ==== Waits ====

CREATE OR REPLACE VIEW advisory._entry AS SELECT * FROM advisory._entries();

-- What is in the way of a session that waits: the holders, or else the waiters ahead of it.  In the trees it stands under the first, of
-- the waiters under the last that came.  For a slot, a holder that does not itself wait comes first.
CREATE OR REPLACE VIEW advisory._edges AS
    WITH entry AS MATERIALIZED (
        SELECT e, (e).session, (e).tag, greatest((e).session, 0) AS pid, (e).granted FROM advisory._entry AS e
    ), wait AS MATERIALIZED (
        SELECT DISTINCT ON (session) * FROM entry WHERE NOT granted ORDER BY session, (e).wait_start
    ), way AS MATERIALIZED (
        SELECT session, tag, p.pid, n, is_held, bool_or(is_held) OVER (PARTITION BY session) AS has_holder
        FROM wait, unnest((e).blocked_by) WITH ORDINALITY AS p (pid, n),
             LATERAL (SELECT (tag, p.pid) IN (SELECT tag, pid FROM entry WHERE granted)) AS h (is_held)
    )
    SELECT w.e AS waiter, b.e AS blocker, w.session, b.session AS above, count(*) FILTER (WHERE is_held) OVER (PARTITION BY w.session) AS holders,
           row_number() OVER (PARTITION BY w.session ORDER BY (b.e).slot IS NOT NULL AND (b.e).is_waiting,
                              CASE WHEN is_held THEN n END, (b.e).wait_start DESC, (b.e).mode DESC) AS rank
    FROM way JOIN wait AS w USING (session) JOIN entry AS b ON b.tag = way.tag AND b.pid = way.pid AND b.granted = is_held
    WHERE is_held >= has_holder AND b.session <> w.session AND NOT ((w.e).mode = 'shared' AND (b.e).mode = 'shared');

-- Each session of the trees with the entry that is shown.  The root of a cycle is its smallest process.
CREATE OR REPLACE VIEW advisory._tree AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT * FROM advisory._edges WHERE rank = 1
    ), climb (session, top, path) AS (
        SELECT session, above, ARRAY[session] FROM edge
        UNION ALL
        SELECT c.session, e.above, path || e.session FROM climb AS c JOIN edge AS e ON e.session = c.top WHERE c.top <> ALL (path)
    ), way AS (
        SELECT session, root, CASE WHEN root = ANY (path) THEN path[:array_position(path, root)] ELSE path || root END AS path
        FROM climb, LATERAL (SELECT coalesce((SELECT min(s) FROM unnest(path[array_position(path, top):]) AS s), top)) AS r (root)
        WHERE top = ANY (path) OR top NOT IN (SELECT session FROM edge)
    ), shown AS (
        -- Those that wait for an advisory lock or hold one, those behind them, and all that they wait for.
        SELECT DISTINCT unnest(path) AS session FROM way
        WHERE EXISTS (SELECT FROM edge AS e WHERE e.session = ANY (path) AND ((waiter).has_advisory OR (blocker).has_advisory))
    ), line AS (
        SELECT session, root, waiter AS entry, above, holders, ARRAY(SELECT s FROM unnest(path) WITH ORDINALITY AS p (s, n) ORDER BY n DESC) AS path
        FROM way JOIN edge USING (session) JOIN shown USING (session)
        UNION ALL
        (SELECT DISTINCT ON (above) above, above, blocker, NULL, 0, ARRAY[above] FROM edge JOIN shown ON shown.session = above
         WHERE above NOT IN (SELECT session FROM edge) ORDER BY above, (waiter).wait_start, edge.session)
    ), placed AS (
        SELECT *, cardinality(path) - 1 AS depth, min((entry).wait_start) OVER (PARTITION BY root) AS oldest,
               ARRAY(SELECT concat(to_char((e.waiter).wait_start AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS'), '~', lpad(s::text, 12))
                     FROM unnest(path[2:]) WITH ORDINALITY AS p (s, n) JOIN edge AS e ON e.session = s ORDER BY n) COLLATE "C" AS place
        FROM line
    )
    SELECT *, row_number() OVER (PARTITION BY path[:depth], depth > 0 ORDER BY place) AS number FROM placed;

CREATE OR REPLACE VIEW advisory.waits AS
    SELECT greatest(root, 0)::integer AS root_pid, depth, ARRAY(SELECT greatest(s, 0)::integer FROM unnest(path) AS s) AS path,
           greatest(session, 0)::integer AS pid, CASE WHEN above < 0 THEN 0 ELSE above END::integer AS waits_for_pid,
           (entry).namespace, (entry).name, (entry).key, (entry).mode, (entry).waited, (entry).state, (entry).application_name, (entry).query,
           (entry).key1, (entry).key2, CASE WHEN (entry).kind IS NOT NULL THEN (entry).objsubid END AS objsubid
    FROM advisory._tree ORDER BY oldest, root, place;
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';

CREATE OR REPLACE FUNCTION advisory._age(start timestamptz) RETURNS text
    LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(' ', greatest(floor(extract(epoch FROM clock_timestamp() - start)), 0), ' s')
$$;

-- Below each session it shows ten that wait for it.  The line of the eleventh counts it and all that follow, with those below them.
CREATE OR REPLACE FUNCTION advisory.wait_tree() RETURNS SETOF text
    LANGUAGE sql VOLATILE COST 1000 ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH tree AS MATERIALIZED (
        SELECT *, depth > 0 AND number > 10 AS is_cut FROM advisory._tree
    )
    SELECT repeat('  ', depth) || CASE WHEN is_cut
        THEN (SELECT concat('... and ', count(*), ' more', ', the longest' || advisory._age(min((b.entry).wait_start)))
              FROM tree AS b WHERE b.path[:t.depth] = t.path[:t.depth] AND b.depth >= t.depth AND b.place >= t.place)
        ELSE concat(
            coalesce((entry).pid::text, 'prepared transaction "' || (entry).gid || '"', 'a prepared transaction'),
            CASE WHEN (entry).pid IS NULL THEN ' of ' || (entry).role ELSE ' ' || (entry).who END,
            CASE WHEN (entry).granted THEN ' holds ' ELSE ' waits for ' END,
            CASE (entry).kind WHEN 'semaphore' THEN concat('slot ', (entry).slot, ' of ') WHEN 'queue' THEN 'a slot of ' END, (entry).lock,
            CASE WHEN (entry).kind IS NOT NULL AND (entry).database <> current_database() THEN format(' in database "%s"', (entry).database) END,
            ' ', (entry).mode, advisory._age((entry).wait_start),
            CASE WHEN (entry).granted THEN ', ' || (entry).state || coalesce(advisory._age((entry).since), '') END,
            CASE WHEN depth = 0 THEN ', in a cycle with ' || above END,
            CASE WHEN holders > 1 THEN format(' (and %s more holder%s)', holders - 1, left('s', (holders > 2)::integer)) END) END
    FROM tree AS t
    WHERE NOT EXISTS (SELECT FROM tree AS c WHERE c.is_cut AND c.root = t.root AND c.depth <= t.depth AND c.path[:c.depth] = t.path[:c.depth]
                          AND c.place < t.place AND (c.number = 11 AND c.depth = t.depth OR c.path = t.path[:c.depth + 1]))
    ORDER BY oldest, root, place
$$;
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';

-- What each session waits for in the end: all holders count, or the last waiter ahead of it.
CREATE OR REPLACE VIEW advisory.blockers AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT * FROM advisory._edges WHERE rank = 1 OR (blocker).granted
    ), reach (waiter, start, session, above, entry, has_advisory) AS (
        SELECT session, (waiter).wait_start, session, above, blocker, (waiter).has_advisory OR (blocker).has_advisory FROM edge
        UNION
        SELECT r.waiter, start, e.session, e.above, e.blocker, (e.waiter).has_advisory OR (e.blocker).has_advisory
        FROM reach AS r JOIN edge AS e ON e.session = r.above
    ), concerned AS MATERIALIZED (
        SELECT waiter, above FROM reach WHERE waiter IN (SELECT waiter FROM reach WHERE has_advisory)
    ), root AS (
        SELECT DISTINCT ON (above) above, entry, min(start) OVER (PARTITION BY above) AS start,
               dense_rank() OVER (PARTITION BY above ORDER BY waiter) + dense_rank() OVER (PARTITION BY above ORDER BY waiter DESC) - 1 AS waiters
        FROM reach
        WHERE above NOT IN (SELECT session FROM edge) AND (waiter IN (SELECT waiter FROM concerned) OR waiter IN (SELECT above FROM concerned))
        ORDER BY above, reach.start, waiter
    )
    SELECT (entry).pid, advisory._cut((entry).who, 60) AS who, (entry).state, date_trunc('second', (entry).since) AS since,
           advisory._cut(concat('slot ' || (entry).slot || ' of ', (entry).lock,
               CASE WHEN NOT is_here THEN coalesce(format(' in database "%s"', (entry).database), ' in a dropped database') END), 90) AS lock,
           waiters::integer AS waiters, date_trunc('second', clock_timestamp() - start) AS longest_wait,
           CASE WHEN p.gid IS NOT NULL
                THEN format('ROLLBACK PREPARED %L;', p.gid) || CASE WHEN p.database <> current_database() THEN format(' -- in database %I', p.database) ELSE '' END
                WHEN (entry).pid IS NULL THEN NULL
                -- These two end the session only if it still holds the lock.  Long names would not fit on a line.
                WHEN is_here AND octet_length((entry).namespace || (entry).name) <= 50 AND advisory.key((entry).namespace, (entry).name) = (entry).key
                THEN format('SELECT advisory.terminate_holder(%L, %L, %s);', (entry).namespace, (entry).name, (entry).pid)
                WHEN is_here AND (entry).key IS NOT NULL THEN format('SELECT advisory.terminate_holder_key(%s, %s);', (entry).key, (entry).pid)
                ELSE format('SELECT pg_terminate_backend(%s);', (entry).pid) END AS remedy
    FROM root
    CROSS JOIN LATERAL (SELECT (entry).kind IS NULL OR (entry).database IS NOT DISTINCT FROM current_database()) AS h (is_here)
    LEFT JOIN pg_prepared_xacts AS p ON advisory._printable(p.gid) = (entry).gid
    ORDER BY waiters DESC, longest_wait DESC NULLS LAST, pid;
COMMENT ON VIEW advisory.blockers IS 'what others wait for in the end, and the statement that ends it';

-- Waiters and what blocks them, then all other holders.  No row is wider than a terminal of 120 columns.
CREATE OR REPLACE VIEW advisory.activity AS
    WITH entry AS MATERIALIZED (
        SELECT *, concat(CASE WHEN database IS DISTINCT FROM current_database() THEN coalesce(database, '(dropped)') || ': ' END, lock) AS what
        FROM advisory._entries() WHERE kind IS NOT NULL
    ), waiter AS (
        SELECT *, row_number() OVER in_turn AS place, count(*) OVER (PARTITION BY tag) - 10 AS others, nth_value(wait_start, 10) OVER in_turn AS tenth_start
        FROM entry WHERE NOT granted
        WINDOW in_turn AS (PARTITION BY tag ORDER BY wait_start, pid)
    ), blocker AS (
        -- Whoever is in the way of a later waiter is also in the way of one of these.
        SELECT w.tag, w.place, w.wait_start, blocker_pid FROM waiter AS w, unnest(blocked_by) AS blocker_pid WHERE place <= 11
    ), held_by AS (
        SELECT tag, place, array_agg(DISTINCT blocker_pid) AS pids FROM blocker
        WHERE (tag, blocker_pid) IN (SELECT tag, greatest(session, 0) FROM entry WHERE granted)
        GROUP BY tag, place
    ), holder AS (
        SELECT *, NOT is_blocker AND count(*) OVER (PARTITION BY is_blocker, session, gid) > 20 AS is_one_of_many
        FROM (SELECT e.*, b.tag IS NOT NULL AS is_blocker, b.since AS awaited_since
              FROM entry AS e
              LEFT JOIN (SELECT tag, blocker_pid, min(wait_start) AS since FROM blocker GROUP BY tag, blocker_pid) AS b
                  ON b.tag = e.tag AND b.blocker_pid = greatest(e.session, 0)
              WHERE granted) AS held
    ), line (rank, since, place, lock, slot, mode, pid, who, state, waiting, pids) AS (
        -- If only waiters ahead of it are in the way, it waits for the same holders as these.  The eleventh stands for the others.
        SELECT 1, CASE WHEN place = 11 THEN tenth_start ELSE wait_start END, place, CASE WHEN place = 11 THEN concat('(', others, ' more)') ELSE what END,
               slot, CASE WHEN place <= 10 THEN mode END, CASE WHEN place <= 10 THEN pid END, CASE WHEN place <= 10 THEN who END,
               CASE WHEN place <= 10 THEN state END, waited, coalesce(pids, min(pids) OVER (PARTITION BY tag))
        FROM waiter LEFT JOIN held_by USING (tag, place) WHERE place <= 11
        UNION ALL
        SELECT CASE WHEN is_blocker THEN 2 ELSE 3 END, awaited_since, NULL, what, slot, mode, pid, who,
               CASE WHEN is_waiting THEN 'waiting' ELSE state END, NULL, NULL
        FROM holder WHERE NOT is_one_of_many
        UNION ALL
        SELECT 3, NULL, NULL, concat('(', count(*), ' locks)'), NULL, NULL, pid, who, state, NULL, NULL
        FROM holder WHERE is_one_of_many GROUP BY session, pid, gid, who, state
    ), narrow AS MATERIALIZED (
        SELECT rank, since, place, lock, slot, mode, pid, who,
               replace(replace(replace(state, 'idle in transaction (aborted)', 'failed xact'), 'idle in transaction', 'idle in xact'),
                       'fastpath function call', 'fastpath') AS state,
               date_trunc('second', waiting) AS waiting,
               concat(array_to_string(pids[:shown], ','), ' +' || nullif(cardinality(pids) - shown, 0)) AS blocked_by
        FROM line, LATERAL (SELECT least(cardinality(pids), CASE WHEN length(array_to_string(pids[:3], ',')) > 17 THEN 2 ELSE 3 END)) AS few (shown)
    ), wanted AS (
        -- What the other columns leave for lock and who.
        SELECT 120 - 26 - 4 - greatest(max(length(slot::text)), 4) - greatest(max(length(mode)), 4) - greatest(max(length(pid::text)), 3)
                   - greatest(max(length(state)), 5) - greatest(max(length(waiting::text)), 7) - greatest(max(length(blocked_by)), 10) AS room,
               greatest(max(length(lock)), 4) AS lock, greatest(max(length(who)), 3) AS who
        FROM narrow
    ), width AS (
        -- The lock matters more: if both do not fit, who gets 14 columns, or less on a crowded line.
        SELECT room, greatest(least(lock, greatest(room - who, room - 14, room * 3 / 5)), 4) AS lock FROM wanted
    )
    SELECT advisory._cut(n.lock, width.lock) AS lock, slot, mode, pid, advisory._cut(n.who, room - width.lock) AS who, state, waiting,
           NULL::interval AS held, nullif(blocked_by, '') AS blocked_by
    FROM narrow AS n, width
    ORDER BY rank, since, place, n.lock, slot, pid;
COMMENT ON VIEW advisory.activity IS 'waiters for advisory locks, their blockers, and all other holders';

-- ==== Ending a holder ====

CREATE OR REPLACE FUNCTION advisory._terminate(lock text, pid integer, timeout interval, holders integer[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    milliseconds numeric := ceil(extract(epoch FROM timeout)::numeric * 1000);
    until timestamptz := clock_timestamp() + timeout;
    other text := (SELECT datname FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid AND datname <> current_database());
BEGIN
    IF pid IS NULL THEN
        RAISE EXCEPTION 'pid must not be null' USING ERRCODE = 'null_value_not_allowed';
    ELSIF milliseconds < 0 THEN
        RAISE EXCEPTION 'timeout must not be negative' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) THEN
        RAISE WARNING 'PID % is not a PostgreSQL backend process', pid;
        RETURN false;
    ELSIF pid <> ALL (holders) THEN
        RAISE WARNING 'PID % does not hold advisory lock "%", nor a slot of the semaphore of that name', pid, lock
            USING HINT = coalesce(format('That session is in another database. To end it, connect to database "%s".', other), '');
        RETURN false;
    ELSIF NOT pg_terminate_backend(pid) OR milliseconds = 0 THEN
        RETURN milliseconds = 0;
    END IF;
    LOOP
        PERFORM pg_stat_clear_snapshot();
        IF NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) THEN
            RETURN true;
        ELSIF clock_timestamp() >= until THEN
            RAISE WARNING 'backend with PID % did not terminate within % milliseconds', pid, milliseconds;
            RETURN false;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION advisory.terminate_holder(namespace text, name text, pid integer, timeout interval DEFAULT '5s') RETURNS boolean
    LANGUAGE sql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._terminate(advisory._display(namespace, name), terminate_holder.pid, timeout,
                               ARRAY(SELECT h.pid FROM advisory.holders(namespace, name) AS h WHERE granted AND h.pid IS NOT NULL))
$$;
COMMENT ON FUNCTION advisory.terminate_holder(text, text, integer, interval) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE OR REPLACE FUNCTION advisory.terminate_holder_key(key bigint, pid integer, timeout interval DEFAULT '5s') RETURNS boolean
    LANGUAGE sql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._terminate(key::text, terminate_holder_key.pid, timeout,
                               ARRAY(SELECT h.pid FROM advisory.holders_key(key) AS h WHERE granted AND h.pid IS NOT NULL))
$$;
COMMENT ON FUNCTION advisory.terminate_holder_key(bigint, integer, interval) IS
    'end a session if it still holds the lock, or a slot, of this key';

-- ==== The lock table ====

-- Its entries, without those on the fast path.
CREATE OR REPLACE VIEW advisory._lock_table AS
    SELECT DISTINCT locktype, pid, virtualtransaction, (locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text AS tag
    FROM pg_locks WHERE NOT fastpath AND mode <> 'SIReadLock';

-- The server's own formula.  It holds more up to 18, but how many more cannot be seen from SQL, and the figures are on the safe side.
CREATE OR REPLACE VIEW advisory.pressure AS
    SELECT CASE WHEN percent >= 75 THEN 'critical' WHEN percent >= 50 THEN 'warning' ELSE 'ok' END AS status, NULL::double precision AS percent_used,
           NULL::bigint AS headroom, used.locks AS locks_used, NULL::bigint AS locks_estimated, guaranteed AS locks_guaranteed,
           percent AS percent_of_guaranteed, used.holders AS holders_used, 2 * guaranteed AS holders_guaranteed,
           greatest(per_process, CASE WHEN percent >= 50 THEN ceil(percent * guaranteed / 50 / processes) + 1 END)::integer
               AS recommended_max_locks_per_transaction, false AS exact, NULL::bigint AS holders_estimated
    FROM (SELECT count(DISTINCT tag) AS locks, count(*) AS holders FROM advisory._lock_table) AS used,
         (SELECT current_setting('max_locks_per_transaction')::bigint AS per_process,
                 current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint
                 + coalesce(current_setting('autovacuum_worker_slots', true), current_setting('autovacuum_max_workers'))::bigint
                 + current_setting('max_worker_processes')::bigint + current_setting('max_wal_senders')::bigint + 1 AS processes) AS server,
         LATERAL (SELECT per_process * processes AS guaranteed) AS size,
         LATERAL (SELECT round(100.0 * greatest(locks, holders / 2.0) / guaranteed, 2)::double precision AS percent) AS fullness;
COMMENT ON VIEW advisory.pressure IS 'how full the server''s lock table is; one row';

CREATE OR REPLACE VIEW advisory.pressure_by_backend AS
    SELECT l.pid, advisory._printable(coalesce(b.usename, p.owner)) AS role, b.application_name, b.state, l.locks, l.advisory_locks,
           CASE WHEN b.state = 'idle' THEN l.advisory_locks END AS session_locks, NULL::interval AS statement_cost, advisory._printable(p.gid) AS gid
    FROM (SELECT pid, virtualtransaction, count(*) AS locks, count(*) FILTER (WHERE locktype = 'advisory') AS advisory_locks
          FROM advisory._lock_table GROUP BY pid, virtualtransaction) AS l
    LEFT JOIN pg_stat_activity AS b ON b.pid = l.pid
    LEFT JOIN advisory._prepared AS p ON l.pid IS NULL AND p.virtualtransaction = l.virtualtransaction
    ORDER BY l.locks DESC, l.pid;
COMMENT ON VIEW advisory.pressure_by_backend IS 'use of the lock table by session and prepared transaction';

CREATE OR REPLACE VIEW advisory.pressure_by_type AS
    SELECT locktype AS type, count(DISTINCT tag) AS locks, count(*) AS holders FROM advisory._lock_table
    GROUP BY locktype ORDER BY locks DESC, type;
COMMENT ON VIEW advisory.pressure_by_type IS 'use of the server''s shared lock table by type of lock, largest first';

CREATE OR REPLACE FUNCTION advisory.can_fit(n integer) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF n IS NULL THEN
        RAISE EXCEPTION 'number of locks must not be null' USING ERRCODE = 'null_value_not_allowed';
    ELSIF n < 0 THEN
        RAISE EXCEPTION 'number of locks must not be negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN (SELECT n <= locks_guaranteed - greatest(locks_used, ceil(holders_used / 2.0)) FROM advisory.pressure);
END $$;
COMMENT ON FUNCTION advisory.can_fit(integer) IS 'would n more locks fit into the lock table? an estimate for now';

GRANT SELECT ON advisory.known_keys, advisory.locks, advisory.semaphores, advisory.waits, advisory.blockers, advisory.activity,
    advisory.pressure, advisory.pressure_by_backend, advisory.pressure_by_type, advisory._names, advisory._labels, advisory._key_facts,
    advisory._prepared, advisory._entry, advisory._edges, advisory._tree TO PUBLIC;
