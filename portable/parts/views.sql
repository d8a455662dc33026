
---- Labels and known keys
CREATE TABLE IF NOT EXISTS advisory.key_labels (
    key bigint, key1 integer, key2 integer,
    label text NOT NULL CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    note text CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_one_form CHECK ((key IS NULL) = (key1 IS NOT NULL) AND (key1 IS NULL) = (key2 IS NULL)));
CREATE UNIQUE INDEX IF NOT EXISTS key_labels_unique ON advisory.key_labels
    ((key IS NULL), coalesce(key, 0), coalesce(key1, 0), coalesce(key2, 0), label);
-- It has no primary key.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';
-- Labels, and keys of programs.  The columns after key2 say which locks are meant, and a pair is one key there.
CREATE OR REPLACE VIEW advisory._uses AS
    SELECT advisory._printable(label) AS tool, advisory._printable(note) AS purpose, CASE WHEN key IS NULL THEN 'int4 pair' ELSE 'bigint' END AS form,
           NULL AS scope, 'exact' AS match, coalesce(key::text, format('(%s, %s)', key1, key2)) AS rule, 'advisory.key_labels' AS source,
           key, key1, key2, number AS first_key, number AS last_key, CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid, true AS is_label
    FROM advisory.key_labels, LATERAL (SELECT coalesce(key, (key1::bigint << 32) | (key2 & 4294967295))) AS n (number)
    UNION ALL
    SELECT tool, purpose, 'bigint', CASE WHEN tool ~ 'pgroll|rake-db|pg-workflows' OR purpose ~ 'data source' THEN 'transaction' ELSE 'session' END,
           'exact', key::text, source, key, NULL, NULL, key, key, 1, false
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 72707369::bigint, 'prisma/prisma-engines'), ('pgroll', 'state lock', 12388221127840347, 'xataio/pgroll'),
        ('DBOS', 'data source migration (dbos)', -539682970964697559, 'dbos-inc/dbos-transact-ts'),
        ('postgres-migrations', 'migration lock', -8525285245963000605, 'ThomWright/postgres-migrations'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 5887940537704921958, 'pressly/goose'), ('Atlas', 'migrate diff', 361947982, 'ariga/atlas'),
        ('node-pg-migrate', 'migration lock', 7241865325823964, 'salsita/node-pg-migrate'), ('goose', 'migration lock', 4097083626, 'pressly/goose'),
        ('DBOS', 'system database migration', 1234567890, 'dbos-inc/dbos-transact-py'), ('Concourse', 'database migration', 5, 'concourse/concourse'),
        ('graphile-migrate', 'migration lock', 4727445306447283, 'graphile/migrate'), ('authentik', 'migration lock', 1000, 'goauthentik/authentik'),
        ('Kysely', 'migration lock', 3853314791062309107, 'kysely-org/kysely'), ('slonik', 'migration (migration)', 1230759186, 'mmkal/slonik-tools'),
        ('pgBackRest', 'backup', 12340078987004321, 'pgbackrest/pgbackrest'), ('rake-db', 'migration', 8582141715823621641, 'romeerez/orchid-orm'),
        ('dumbo (Emmett)', 'migration', 999956789, 'event-driven-io/Pongo'), ('Airflow', 'scheduler critical section', 2, 'apache/airflow'),
        ('tern', 'migration lock', 9628173550095224, 'jackc/tern'), ('Marten', 'default global lock', 4004, 'JasperFx/marten'),
        ('pg-workflows', 'migration', 738291645, 'pg-workflows'), ('Atlas', 'migrate execute', 2686470616, 'ariga/atlas'),
        ('Evolve', 'migration lock', 12345, 'lecaillon/Evolve'), ('sqitch', 'deployment', 75474063, 'sqitchers/sqitch'),
        ('Unleash', 'migration', 479341, 'Unleash/unleash'), ('Airflow', 'migrations', 1, 'apache/airflow')
    ) AS fact (tool, purpose, key, source)
    UNION ALL
    SELECT 'pg_partman', job, 'bigint', CASE WHEN job ~ 'drop|undo' THEN 'transaction' WHEN job = 'run_maintenance' THEN 'session or transaction'
           ELSE 'session' END, 'formula', format('hashtext(%L)', 'pg_partman ' || job), 'pgpartman/pg_partman', key, NULL, NULL, key, key, 1, false
    FROM unnest('{run_maintenance,run_maintenance procedure,drop_partition_id,drop_partition_time,undo_partition_native,undo_partition,
                  reapply_constraints,run_analyze}'::text[]) AS job, LATERAL (SELECT hashtext('pg_partman ' || job)::bigint) AS h (key)
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL, first, last, objsubid, false
    FROM (VALUES
        ('pg_repack', 'table being repacked', 'int4 pair', 'session', 'formula', '(16185446, table oid - 2^31)', 'reorg/pg_repack',
            2, 16185446::bigint << 32, (16185447::bigint << 32) - 1),
        ('n8n', 'migrations and maintenance', 'bigint', 'transaction', 'range', '1001 to 1009 (1005: migrations)', 'n8n-io/n8n', 1, 1001, 1009),
        ('Flyway', 'migration lock', 'bigint', 'session or transaction', 'range',
            '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31', 'flyway/flyway', 1, 77429560795513, 77433855762808),
        ('Citus', 'distributed execution', 'objsubid 4-16', 'any', 'class', 'objsubid', 'citusdata/citus', 4, -1::bigint << 63, ~(-1::bigint << 63))
    ) AS fact (tool, purpose, form, scope, match, rule, source, objsubid, first, last);
CREATE OR REPLACE VIEW advisory.known_keys AS SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2 FROM advisory._uses;
COMMENT ON VIEW advisory.known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';

---- Locks

-- Nothing but its virtual transaction stands at the locks of a prepared transaction.  If two have the same, neither is named.
CREATE OR REPLACE VIEW advisory._prepared AS
    SELECT virtualtransaction, min(gid) AS raw_gid, advisory._printable(min(gid)) AS gid, advisory._printable(min(owner)) AS role,
           min(prepared) AS prepared, advisory._printable(min(p.database)) AS datname
    FROM pg_locks AS l JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid WHERE pid IS NULL GROUP BY 1 HAVING count(*) = 1;
-- All advisory locks, and other locks that a session waits for.  Only a name tells that a lock is a slot of a semaphore: that of a label
-- namespace/name, or the arguments.  session: the process, of a parallel worker its leader; below 0 a prepared transaction.  tag: what is
-- waited for; the slots of a semaphore and its queue are one.
CREATE OR REPLACE FUNCTION advisory._entries(of_namespace text DEFAULT NULL, of_name text DEFAULT NULL) RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, namespace text, name text,
        slot integer, key bigint, key1 integer, key2 integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
        acquired_at timestamptz, held interval, blocked_by integer[], known_as text[], gid text, query text, session bigint, objsubid integer,
        tag text, lock text, who text, since timestamptz, rollback text, is_waiting boolean, has_advisory boolean)
    LANGUAGE sql ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    -- Otherwise pg_stat_activity stays as it was when the transaction first looked at it.
    SELECT pg_stat_clear_snapshot();
    WITH backend AS MATERIALIZED (SELECT *, advisory._printable(usename) AS role FROM pg_stat_activity),
    name AS MATERIALIZED (
        -- Any of the slashes can be the one between the two.
        SELECT key, advisory._slot_key(space, n.name, 0) AS base, advisory._printable(space) AS namespace, advisory._printable(n.name) AS name
        FROM (SELECT key, left(label, i - 1), substr(label, i + 1) FROM advisory.key_labels, generate_series(2, length(label) - 1) AS i
              WHERE substr(label, i, 1) = '/' AND key = advisory.key(left(label, i - 1), substr(label, i + 1))
              UNION SELECT advisory.key(of_namespace, of_name), of_namespace, of_name WHERE of_name IS NOT NULL) AS n (key, space, name)),
    lock AS MATERIALIZED (
        -- Whoever holds the lock of a queue waits for a slot, and is the only one that looks for it.  waitstart is new in 14.
        SELECT l.*, d.datname, number, slot, is_here, coalesce(n.namespace, s.namespace) AS namespace, coalesce(n.name, s.name) AS name,
               b.role, b.application_name, b.client_addr, b.state, b.query, b.state_change,
               granted AND slot IS DISTINCT FROM 0 AS is_held, CASE objsubid WHEN 1 THEN coalesce(s.key, number) END AS key,
               coalesce(leader_pid, l.pid, -abs(split_part(virtualtransaction, '/', 1)::bigint * 4294967296)
                                           - split_part(virtualtransaction, '/', 2)::bigint) AS session,
               CASE WHEN NOT granted THEN (to_jsonb(l) ->> 'waitstart')::timestamptz WHEN slot = 0 THEN query_start END AS start,
               coalesce(s.base::text, (locktype, l.database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text) AS tag
        FROM pg_locks AS l LEFT JOIN backend AS b ON b.pid = l.pid LEFT JOIN pg_database AS d ON d.oid = l.database
        CROSS JOIN LATERAL (SELECT CASE locktype WHEN 'advisory' THEN (classid::bigint << 32) | objid::bigint END AS number,
                                   d.datname = current_database() AS is_here) AS k
        LEFT JOIN name AS n ON n.key = number AND objsubid = 1 AND is_here
        LEFT JOIN name AS s ON s.base = number & -16384 AND objsubid = 1 AND is_here
        CROSS JOIN LATERAL (SELECT (number - s.base)::integer AS slot) AS o
        WHERE mode <> 'SIReadLock'),
    use AS MATERIALIZED (SELECT *, concat_ws(': ', tool, purpose) AS use FROM advisory._uses
                         WHERE first_key < last_key OR first_key IN (SELECT number FROM lock))
    SELECT l.pid, l.datname, coalesce(l.role, p.role), application_name, client_addr, state,
           CASE WHEN slot > 0 THEN 'semaphore' WHEN slot = 0 THEN 'queue' WHEN number IS NULL THEN NULL WHEN objsubid > 2 THEN 'foreign'
                ELSE 'lock' END, namespace, name, nullif(slot, 0),
           key, CASE WHEN key IS NULL THEN classid::integer END, CASE WHEN key IS NULL THEN objid::integer END,
           CASE mode WHEN 'ExclusiveLock' THEN 'exclusive' WHEN 'ShareLock' THEN 'shared' ELSE mode END,
           CASE WHEN l.pid IS NULL THEN 'transaction' END, is_held, start, clock_timestamp() - start, NULL::timestamptz, NULL::interval,
           CASE WHEN NOT is_held THEN
               array_remove(array_agg(greatest(session, 0)::integer) FILTER (WHERE slot > 0 AND granted) OVER (PARTITION BY tag), session::integer)
               || CASE WHEN NOT granted THEN pg_blocking_pids(l.pid) END END,
           known_as, gid, query, session, objsubid::integer, tag, CASE WHEN number IS NULL
               THEN concat_ws(' ', CASE locktype WHEN 'tuple' THEN format('row (%s,%s) of', page, tuple) WHEN 'transactionid' THEN 'transaction'
                                   ELSE locktype END, transactionid, virtualxid,
                              advisory._printable(CASE WHEN l.database = 0 OR is_here THEN relation::regclass::text ELSE relation::text END))
               ELSE concat_ws(' ', coalesce(namespace || '/' || name, key::text, concat(classid::integer, ', ', objid::integer)),
                              '(objsubid ' || nullif(greatest(objsubid, 2), 2) || ')', '"' || CASE WHEN name IS NULL
                                   THEN replace(regexp_replace(known_as[1], '^(.{21}).{4,}$', '\1...'), '"', '""') END || '"',
                              CASE WHEN is_here IS NOT TRUE THEN
                                   coalesce('in database "' || advisory._printable(l.datname) || '"', 'in a dropped database') END) END,
           coalesce(l.role || coalesce('@' || nullif(application_name, ''), ''), p.role || ' (prepared ' || gid || ')'),
           coalesce(state_change, prepared), 'ROLLBACK PREPARED ' || CASE raw_gid WHEN gid THEN quote_literal(gid) END || ';'
               || coalesce(' -- in database ' || quote_ident(nullif(p.datname, current_database())), ''),
           bool_or(NOT is_held) OVER (PARTITION BY session), bool_or(number IS NOT NULL) OVER (PARTITION BY session)
    FROM lock AS l LEFT JOIN advisory._prepared AS p ON l.pid IS NULL AND p.virtualtransaction = l.virtualtransaction
    CROSS JOIN LATERAL (SELECT nullif(ARRAY(
        SELECT use FROM use AS r WHERE number BETWEEN first_key AND last_key AND r.objsubid = least(l.objsubid, 4) AND is_here >= is_label
        ORDER BY is_label DESC, use COLLATE "C"), '{}') AS known_as) AS a
    WHERE number IS NOT NULL OR tag IN (SELECT tag FROM lock WHERE NOT granted)
$$;
CREATE OR REPLACE VIEW advisory._entry AS SELECT * FROM advisory._entries();
CREATE OR REPLACE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace, name, slot, key, key1, key2, mode, scope, granted,
           wait_start, waited, acquired_at, held, blocked_by, known_as, gid, query FROM advisory._entry WHERE kind IS NOT NULL;
COMMENT ON VIEW advisory.locks IS 'every advisory lock on the server, with its name, holders and waiters';
CREATE OR REPLACE FUNCTION advisory._holders_of(namespace text, name text, key bigint) RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, slot integer, mode text, scope text,
        granted boolean, wait_start timestamptz, waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._check(key::text, 'key');
    SELECT pid, database, role, application_name, client_addr, state, kind, slot, mode, scope, granted, wait_start, waited, acquired_at, held,
           blocked_by, gid, query FROM advisory._entries($1, $2) AS e WHERE e.key = $3 AND database = current_database()
$$;
-- Those that have a label.  Nothing says how many slots a semaphore has.
CREATE OR REPLACE VIEW advisory.semaphores AS
    SELECT namespace, name, key, NULL::integer AS slots, (count(*) FILTER (WHERE granted))::integer AS in_use, NULL::integer AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}') AS holders, false AS slots_disagree
    FROM advisory._entry WHERE kind IN ('semaphore', 'queue') GROUP BY namespace, name, key;
COMMENT ON VIEW advisory.semaphores IS 'semaphores of this database that have holders of slots, or waiters';

---- Waits

-- What is in the way of a session that waits: all holders, or else the last waiter ahead of it.  Trees show it under rank 1; if it waits for a
-- slot, that is a holder that does not itself wait.  Only waits that have to do with an advisory lock, through others or not.
CREATE OR REPLACE VIEW advisory._edges AS
    WITH RECURSIVE entry AS MATERIALIZED (
        SELECT e, (e).session, (e).tag, greatest((e).session, 0)::integer AS pid, (e).granted, (e).mode,
               (e).mode IN ('exclusive', 'shared') AND bool_or((e).granted AND (e).mode = 'exclusive') OVER (PARTITION BY (e).tag)
               OR (e).mode = 'exclusive' AND bool_or((e).granted AND (e).mode = 'shared') OVER (PARTITION BY (e).tag) AS has_holder
        FROM advisory._entry AS e),
    edge AS MATERIALIZED (
        -- If a holder is in the way, the other waiters, perhaps thousands, do not matter.
        SELECT w.e AS waiter, b.e AS blocker, w.session, b.session AS above, count(*) FILTER (WHERE b.granted) OVER of_waiter AS holders,
               row_number() OVER (of_waiter ORDER BY b.granted DESC, (b.e).slot IS NOT NULL AND (b.e).is_waiting,
                                  CASE WHEN b.granted THEN array_position(w.blocked_by, b.pid) END, (b.e).wait_start DESC, b.mode DESC) AS rank
        FROM (SELECT DISTINCT ON (session) *, (e).blocked_by FROM entry WHERE NOT granted ORDER BY session, (e).wait_start) AS w
        JOIN entry AS b ON b.tag = w.tag AND b.session <> w.session AND b.granted >= w.has_holder AND b.pid = ANY (w.blocked_by)
        WHERE NOT (w.mode = 'shared' AND b.mode = 'shared') WINDOW of_waiter AS (PARTITION BY w.session)),
    link (one, other) AS MATERIALIZED (SELECT session, above FROM edge UNION SELECT above, session FROM edge),
    concerned (session) AS (
        SELECT unnest(ARRAY[session, above]) FROM edge WHERE (waiter).has_advisory OR (blocker).has_advisory
        UNION SELECT other FROM concerned AS c JOIN link ON one = c.session)
    SELECT * FROM edge WHERE (rank = 1 OR (blocker).granted) AND session IN (SELECT session FROM concerned);
-- Each session once, with the entry that is shown.  The root of a cycle is its smallest process.
CREATE OR REPLACE VIEW advisory._tree AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT *, row_number() OVER (PARTITION BY above ORDER BY (waiter).wait_start, session) AS number FROM advisory._edges WHERE rank = 1),
    climb (session, above) AS (SELECT session, above FROM edge UNION SELECT c.session, e.above FROM climb AS c JOIN edge AS e ON e.session = c.above),
    root AS (SELECT above AS session FROM edge EXCEPT SELECT session FROM edge
             UNION SELECT session FROM climb GROUP BY session HAVING min(above) = session),
    line (session, root, e, above, holders, path, place) AS (
        SELECT r.session, r.session, coalesce(own.waiter, f.blocker), own.above, own.holders, ARRAY[greatest(r.session, 0)::integer], '{}'::bigint[]
        FROM root AS r LEFT JOIN edge AS own ON own.session = r.session LEFT JOIN edge AS f ON f.above = r.session AND f.number = 1
        UNION ALL
        SELECT n.session, root, waiter, n.above, n.holders, path || n.session::integer, place || number
        FROM line JOIN edge AS n ON n.above = line.session AND n.session <> root)
    SELECT *, cardinality(place) AS depth, min((e).wait_start) OVER (PARTITION BY root) AS oldest FROM line;
CREATE OR REPLACE VIEW advisory.waits AS
    SELECT path[1] AS root_pid, depth, path, path[depth + 1] AS pid, CASE WHEN above < 0 THEN 0 ELSE above END::integer AS waits_for_pid,
           (e).namespace, (e).name, (e).key, (e).mode, (e).waited, (e).state, (e).application_name, (e).query, (e).key1, (e).key2,
           CASE WHEN (e).kind IS NOT NULL THEN (e).objsubid END AS objsubid
    FROM advisory._tree ORDER BY oldest, root, place;
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';
CREATE OR REPLACE FUNCTION advisory.wait_tree() RETURNS SETOF text LANGUAGE sql COST 1000 ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(repeat('  ', depth),
                  coalesce((e).pid || ' ' || (e).who, 'prepared transaction "' || (e).gid || '" of ' || (e).role, 'a prepared transaction'),
                  CASE WHEN (e).granted THEN ' holds ' ELSE ' waits for ' END,
                  CASE (e).kind WHEN 'semaphore' THEN concat('slot ', (e).slot, ' of ') WHEN 'queue' THEN 'a slot of ' END, (e).lock, ' ', (e).mode,
                  CASE WHEN (e).granted THEN ', ' || (e).state END, ' ' || seconds || ' s', ', in a cycle with ' || CASE depth WHEN 0 THEN above END,
                  CASE WHEN holders > 1 THEN format(' (and %s more holder%s)', holders - 1, left('s', (holders > 2)::integer)) END)
    FROM advisory._tree, LATERAL (SELECT CASE WHEN NOT (e).granted THEN (e).wait_start WHEN (e).state <> '' THEN (e).since END) AS a (start),
         LATERAL (SELECT floor(extract(epoch FROM greatest(clock_timestamp(), start) - start))) AS s (seconds)
    ORDER BY oldest, root, place
$$;
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';
-- What sessions wait for in the end, directly or through others.
CREATE OR REPLACE VIEW advisory.blockers AS
    WITH RECURSIVE edge AS MATERIALIZED (SELECT *, (waiter).wait_start AS start FROM advisory._edges),
    reach (waiter, start, above) AS (
        SELECT session, start, above FROM edge UNION SELECT r.waiter, r.start, e.above FROM reach AS r JOIN edge AS e ON e.session = r.above),
    root AS (SELECT above, count(*)::integer AS waiters, min(start) AS start FROM reach WHERE above NOT IN (SELECT session FROM edge) GROUP BY above)
    SELECT (e).pid, (e).who, (e).state, date_trunc('second', (e).since) AS since, concat('slot ' || (e).slot || ' of ', (e).lock) AS lock, waiters,
           date_trunc('second', clock_timestamp() - root.start) AS longest_wait,
           -- Two of these end the session only if it still holds the lock.  Long names would not fit on a line.
           CASE WHEN (e).pid IS NULL THEN (e).rollback
                WHEN (e).key IS NULL OR (e).database IS DISTINCT FROM current_database() THEN format('SELECT pg_terminate_backend(%s);', (e).pid)
                WHEN coalesce(octet_length((e).namespace || (e).name) <= 50, false) AND advisory.key((e).namespace, (e).name) = (e).key
                THEN format('SELECT advisory.terminate_holder(%L, %L, %s);', (e).namespace, (e).name, (e).pid)
                ELSE format('SELECT advisory.terminate_holder_key(%s, %s);', (e).key, (e).pid) END AS remedy
    FROM root JOIN (SELECT DISTINCT ON (above) above, blocker AS e FROM edge ORDER BY above, start, session) AS first USING (above)
    ORDER BY waiters DESC, longest_wait DESC NULLS LAST, pid;
COMMENT ON VIEW advisory.blockers IS 'what others wait for in the end, and the statement that ends it';
-- Waiters (1), the holders of what they wait for (2), and other locks (3).  Of the waiters for a lock it shows ten, of the other locks of a
-- session thirty; the line of the next one counts it and all that follow.
CREATE OR REPLACE VIEW advisory.activity AS
    WITH entry AS (
        SELECT *, CASE WHEN NOT granted THEN 1 WHEN bool_or(NOT granted) OVER same THEN 2 ELSE 3 END AS rank,
               CASE WHEN granted THEN session::text ELSE tag END AS crowd, coalesce(wait_start, min(wait_start) OVER same) AS start,
               CASE WHEN NOT granted THEN array_remove(array_agg(greatest(session, 0)) FILTER (WHERE granted) OVER same, session) END AS pids
        FROM advisory._entry WHERE kind IS NOT NULL WINDOW same AS (PARTITION BY tag)),
    placed AS (
        SELECT *, CASE rank WHEN 1 THEN 10 WHEN 3 THEN 30 END AS most, count(*) OVER (PARTITION BY rank, crowd) AS total,
               row_number() OVER (PARTITION BY rank, crowd ORDER BY start, lock, pid) AS place FROM entry)
    SELECT CASE WHEN place > most THEN format('(%s more)', total - most) ELSE regexp_replace(lock, '^(.{19}).{4,}(.{18})$', '\1...\2') END AS lock,
           slot, mode, pid, regexp_replace(who, '^(.{14}).{4,}(.{13})$', '\1...\2') AS who,
           CASE WHEN granted AND is_waiting THEN 'waiting' ELSE state END AS state, date_trunc('second', waited) AS waiting, NULL::interval AS held,
           nullif(concat(array_to_string(pids[:3], ','), ' +' || nullif(greatest(cardinality(pids), 3) - 3, 0)), '') AS blocked_by
    FROM placed WHERE rank = 2 OR place <= most + 1
    ORDER BY rank, start, CASE rank WHEN 3 THEN pid END, place;
COMMENT ON VIEW advisory.activity IS 'waiters for advisory locks, their blockers, and all other holders';
CREATE OR REPLACE FUNCTION advisory._terminate(namespace text, name text, key bigint, pid integer, timeout interval) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    milliseconds integer := advisory._milliseconds(timeout);
    deadline timestamptz := clock_timestamp() + coalesce(timeout, '1000 years');
BEGIN
    PERFORM advisory._check(pid::text, 'pid');
    IF NOT EXISTS (SELECT FROM advisory._holders_of(namespace, name, key) AS h WHERE granted AND h.pid = _terminate.pid) THEN
        RAISE WARNING '%', format(CASE WHEN EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid)
                                       THEN 'PID %s does not hold advisory lock "%s", nor a slot of the semaphore of that name'
                                       ELSE 'PID %s is not a PostgreSQL backend process' END, pid,
                                  advisory._display(namespace, coalesce(name, key::text)));
        RETURN false;
    ELSIF NOT pg_terminate_backend(pid) OR milliseconds = 0 THEN
        RETURN milliseconds IS NOT DISTINCT FROM 0;
    END IF;
    WHILE clock_timestamp() < deadline LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
        IF NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) THEN RETURN true; END IF;
    END LOOP;
    RAISE WARNING 'backend with PID % did not terminate within % milliseconds', pid, milliseconds;
    RETURN false;
END $$;

---- The lock table

-- Its entries, without those on the fast path.
CREATE OR REPLACE VIEW advisory._lock_table AS
    SELECT DISTINCT locktype, pid, virtualtransaction,
           (locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text AS tag
    FROM pg_locks WHERE NOT fastpath AND mode <> 'SIReadLock';
-- The server's own formula for what surely fits.  How much more does cannot be seen from SQL.
CREATE OR REPLACE VIEW advisory.pressure AS
    SELECT CASE WHEN percent >= 75 THEN 'critical' WHEN percent >= 50 THEN 'warning' ELSE 'ok' END AS status, NULL::double precision AS percent_used,
           NULL::bigint AS headroom, locks AS locks_used, NULL::bigint AS locks_estimated, guaranteed AS locks_guaranteed,
           percent AS percent_of_guaranteed, holders AS holders_used, 2 * guaranteed AS holders_guaranteed,
           greatest(per_process, CASE WHEN percent >= 50 THEN ceil(percent * per_process / 50) + 1 END)::integer
               AS recommended_max_locks_per_transaction, false AS exact, NULL::bigint AS holders_estimated
    FROM (SELECT count(DISTINCT tag) AS locks, count(*) AS holders FROM advisory._lock_table) AS used,
         (SELECT current_setting('max_locks_per_transaction')::bigint AS per_process,
                 sum(coalesce(current_setting(s, true), current_setting('autovacuum_max_workers'))::bigint)::bigint + 1 AS processes
          FROM unnest('{max_connections,max_prepared_transactions,max_worker_processes,max_wal_senders,autovacuum_worker_slots}'::text[]) AS s) AS p,
         LATERAL (SELECT per_process * processes AS guaranteed) AS size,
         LATERAL (SELECT round(100.0 * greatest(locks, holders / 2.0) / guaranteed, 2)::double precision AS percent) AS fullness;
COMMENT ON VIEW advisory.pressure IS 'how full the server''s lock table is; one row';
CREATE OR REPLACE VIEW advisory.pressure_by_backend AS
    SELECT pid, coalesce(advisory._printable(b.usename), p.role) AS role, b.application_name, b.state, count(*) AS locks,
           count(*) FILTER (WHERE locktype = 'advisory') AS advisory_locks,
           CASE b.state WHEN 'idle' THEN count(*) FILTER (WHERE locktype = 'advisory') END AS session_locks, NULL::interval AS statement_cost, p.gid
    FROM advisory._lock_table AS l LEFT JOIN pg_stat_activity AS b USING (pid)
    LEFT JOIN advisory._prepared AS p ON pid IS NULL AND p.virtualtransaction = l.virtualtransaction
    GROUP BY pid, l.virtualtransaction, b.usename, p.role, b.application_name, b.state, p.gid ORDER BY locks DESC, pid;
COMMENT ON VIEW advisory.pressure_by_backend IS 'use of the lock table by session and prepared transaction';
CREATE OR REPLACE VIEW advisory.pressure_by_type AS
    SELECT locktype AS type, count(DISTINCT tag) AS locks, count(*) AS holders FROM advisory._lock_table GROUP BY locktype ORDER BY locks DESC, type;
COMMENT ON VIEW advisory.pressure_by_type IS 'use of the server''s shared lock table by type of lock, largest first';
CREATE OR REPLACE FUNCTION advisory.can_fit(n integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(n::text, 'number of locks'), advisory._require(n >= 0, '22023', 'number of locks must not be negative');
    RETURN (SELECT n <= locks_guaranteed - greatest(locks_used, ceil(holders_used / 2.0)) FROM advisory.pressure);
END $$;
COMMENT ON FUNCTION advisory.can_fit(integer) IS 'would n more locks fit into the lock table? an estimate for now';
GRANT SELECT ON advisory.key_labels, advisory.known_keys, advisory.locks, advisory.semaphores, advisory.waits, advisory.blockers, advisory.activity,
    advisory.pressure, advisory.pressure_by_backend, advisory.pressure_by_type, advisory._uses, advisory._prepared, advisory._tree TO PUBLIC;
