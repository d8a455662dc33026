-- Locks.

-- Locks of a prepared transaction show its virtual transaction.  If two have one, none is named.
CREATE OR REPLACE VIEW advisory._prepared AS
    SELECT virtualtransaction, raw_gid, gid, role, prepared, datname,
           role || ' (prepared ' || gid || ')' AS who,
           'ROLLBACK PREPARED ' || CASE raw_gid WHEN gid THEN quote_literal(gid) END || ';'
           || coalesce(' -- in database ' || quote_ident(nullif(datname, current_database())), '')
               AS rollback
    FROM (SELECT virtualtransaction, min(gid) AS raw_gid, _printable(min(gid)) AS gid,
                 _printable(min(owner)) AS role, min(prepared) AS prepared,
                 _printable(min(p.database)) AS datname
          FROM pg_locks AS l JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid
          WHERE pid IS NULL
          GROUP BY virtualtransaction
          HAVING count(*) = 1) AS one;

-- The names of locks and semaphores of this database: those of labels namespace/name, and that of
-- the arguments.  key is that of a lock, base that of slot 0 of a semaphore.  Last come semaphores
-- that have no name.
CREATE OR REPLACE FUNCTION advisory._names(of_namespace text, of_name text)
    RETURNS TABLE (key bigint, base bigint, namespace text, name text)
    LANGUAGE sql STABLE AS $$
    WITH given (key, space, name) AS (
        -- Any of the slashes can be the one between the two.
        SELECT k.key, left(label, i - 1), substr(label, i + 1)
        FROM advisory.key_labels AS k, generate_series(2, length(label) - 1) AS i
        WHERE substr(label, i, 1) = '/'
            AND k.key = advisory.key(left(label, i - 1), substr(label, i + 1))
        UNION
        SELECT CASE WHEN of_name <> '' THEN advisory.key(of_namespace, of_name) END,
               of_namespace, of_name),
    named AS MATERIALIZED (
        SELECT g.key, _slot_key(g.space, g.name, 0) AS base, _printable(g.space) AS namespace,
               _printable(g.name) AS name
        FROM given AS g
        WHERE g.space IS NOT NULL)
    SELECT n.key, n.base, n.namespace, n.name
    FROM named AS n
    UNION ALL
    -- One without a label is told by its queue: a lock whose key is that of a slot 0, and locks
    -- with the next keys.  No small numbers.
    SELECT NULL, k.key & -16384, NULL, NULL
    FROM _keys AS k
    WHERE abs(k.key >> 32) > 32768
    GROUP BY k.key & -16384
    HAVING bool_or(k.key & 16383 = 0) AND count(DISTINCT k.key) > 1
        AND k.key & -16384 NOT IN (SELECT n.base FROM named AS n) $$;

-- The locks of the server with their sessions and names, and leases that sessions wait for: their
-- raw is null.  number: the key that pg_locks shows; key: that of the name.  session: the process,
-- of a parallel worker its leader; below 0 a prepared transaction, or a lease.  tag: what is waited
-- for; the queue of a semaphore or lease is one with it.  start: since when a session waits.
CREATE OR REPLACE FUNCTION advisory._named_locks(of_namespace text, of_name text)
    RETURNS TABLE (raw pg_locks, number bigint, key bigint, namespace text, name text,
                   slot integer, lease text, datname name, is_here boolean, role text,
                   application_name text, client_addr inet, state text, query text,
                   since timestamptz, who text, remedy text, session bigint, tag text,
                   is_held boolean, start timestamptz)
    LANGUAGE sql STABLE ROWS 100 AS $$
    WITH backend AS MATERIALIZED (SELECT *, _printable(usename) AS role FROM pg_stat_activity),
    name AS MATERIALIZED (SELECT * FROM _names(of_namespace, of_name)),
    lease AS MATERIALIZED (
        SELECT * FROM _shown_leases WHERE queue IN (SELECT k.key & -16384 | 1 FROM _keys AS k)),
    lease_name AS MATERIALIZED (
        SELECT DISTINCT ON (queue) * FROM lease ORDER BY queue, slot)
    SELECT l, number, CASE l.objsubid WHEN 1 THEN coalesce(s.key, number) END,
           coalesce(n.namespace, s.namespace, e.namespace), coalesce(n.name, s.name, e.name),
           o.slot, e.lock, d.datname, is_here, b.role, b.application_name, b.client_addr, b.state,
           b.query, b.state_change, NULL, NULL,
           coalesce(b.leader_pid, l.pid,
                    -abs(split_part(l.virtualtransaction, '/', 1)::bigint * 4294967296)
                    - split_part(l.virtualtransaction, '/', 2)::bigint),
           coalesce(s.base::text, e.tag,
                    (l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid,
                     l.transactionid, l.classid, l.objid, l.objsubid)::text),
           -- Whoever holds the lock of a queue waits for a slot or a lease, and is the only one
           -- that looks for it.
           l.granted AND (NOT is_queue OR l.pid IS NULL),
           -- waitstart is new in 14.
           CASE WHEN NOT l.granted THEN (to_jsonb(l) ->> 'waitstart')::timestamptz
                WHEN is_queue THEN b.query_start END
    FROM pg_locks AS l
    LEFT JOIN backend AS b ON b.pid = l.pid
    LEFT JOIN pg_database AS d ON d.oid = l.database
    CROSS JOIN LATERAL (
        SELECT CASE WHEN l.locktype = 'advisory'
                    THEN (l.classid::bigint << 32) | l.objid::bigint END,
               d.datname = current_database()) AS k (number, is_here)
    LEFT JOIN name AS n ON n.key = number AND l.objsubid = 1 AND is_here
    LEFT JOIN name AS s ON s.base = number & -16384 AND l.objsubid = 1 AND is_here
    LEFT JOIN lease_name AS e ON e.queue = number & -16384 | 1 AND l.objsubid = 1 AND is_here
    CROSS JOIN LATERAL (
        SELECT coalesce(number IN (s.base, e.queue), false),
               CASE WHEN s.base IS NOT NULL THEN number - s.base
                    WHEN e.slot IS NOT NULL THEN number - e.queue END::integer)
        AS o (is_queue, slot)
    -- Not the locks that tell how many slots are awaited.
    WHERE l.mode <> 'SIReadLock' AND (o.slot > 16000) IS NOT TRUE
    UNION ALL
    SELECT NULL, NULL, NULL, e.namespace, e.name, e.slot, e.lock, current_database(), true, NULL,
           NULL, NULL, e.state, NULL, e.acquired_at, e.owner, e.remedy,
           -abs(e.queue) - coalesce(e.slot, 0), e.tag, true, NULL
    FROM lease AS e $$;

-- What a lock is on: text for people.  label is one of those of its key.
CREATE OR REPLACE FUNCTION advisory._described(raw pg_locks, number bigint, key bigint,
                                               namespace text, name text, lease text, label text,
                                               datname name, is_here boolean)
    RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN number IS NULL    -- No advisory lock.
        THEN concat_ws(' ',
            CASE WHEN raw.locktype = 'tuple' THEN format('row (%s,%s) of', raw.page, raw.tuple)
                 WHEN raw.locktype = 'transactionid' THEN 'transaction'
                 WHEN (raw.locktype, raw.database, raw.classid, raw.objid) = ('object', 0, 1262, 0)
                 THEN 'NOTIFY''s commit lock'
                 ELSE raw.locktype END,
            raw.transactionid,
            raw.virtualxid,
            _printable(CASE WHEN raw.database = 0 OR is_here THEN raw.relation::regclass::text
                            ELSE raw.relation::text END))
        ELSE concat_ws(' ',
            coalesce(lease, namespace || '/' || name, key::text,
                     concat(raw.classid::integer, ', ', raw.objid::integer)),
            '(objsubid ' || nullif(nullif(raw.objsubid, 1), 2) || ')',
            CASE WHEN name IS NULL
                 THEN '"' || replace(regexp_replace(label, '^(.{21}).{4,}$', '\1...'), '"', '""')
                      || '"' END,
            CASE WHEN is_here IS NOT TRUE
                 THEN coalesce('in database "' || _printable(datname) || '"',
                               'in a dropped database') END) END $$;

-- All advisory locks, and other locks that a session waits for.  Only a name tells that a lock is a
-- slot of a semaphore: that of a label namespace/name, or the arguments.  session and tag are those
-- of _named_locks.  blocked_by: for slots and leases their holders, then what the server says.
CREATE OR REPLACE FUNCTION advisory._entries(of_namespace text DEFAULT NULL,
                                             of_name text DEFAULT NULL)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, namespace text, name text, slot integer, key bigint,
                   key1 integer, key2 integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], known_as text[], gid text, query text, session bigint,
                   objsubid integer, tag text, lock text, who text, since timestamptz,
                   rollback text, is_waiting boolean, has_advisory boolean)
    LANGUAGE sql ROWS 100
    SET search_path = pg_catalog, advisory, pg_temp
    SET jit = off AS $$
    -- Otherwise pg_stat_activity stays as it was when the transaction first looked at it.
    SELECT pg_stat_clear_snapshot();
    SELECT _tell_of_standby(false);
    WITH lock AS MATERIALIZED (SELECT * FROM _named_locks(of_namespace, of_name)),
    holder AS MATERIALIZED (    -- Of slots and leases.
        SELECT tag, array_agg(DISTINCT greatest(session, 0)::integer) AS pids
        FROM lock WHERE (slot > 0 OR lease IS NOT NULL) AND is_held GROUP BY tag),
    use AS MATERIALIZED (
        SELECT *, concat_ws(': ', tool, purpose) AS use,
               only_with IS NULL OR EXISTS (
                   SELECT FROM pg_class
                   WHERE relname = only_with AND relkind IN ('r', 'p')
                       AND relpersistence <> 't') AS has_table
        FROM _uses
        WHERE first_key < last_key OR first_key IN (SELECT number FROM lock))
    SELECT (raw).pid, lock.datname, coalesce(lock.role, p.role), application_name, client_addr,
           state,
           CASE WHEN lease IS NOT NULL THEN 'lease' WHEN slot > 0 THEN 'semaphore'
                WHEN slot = 0 THEN 'queue' WHEN number IS NULL THEN NULL
                WHEN (raw).objsubid NOT IN (1, 2) THEN 'foreign' ELSE 'lock' END,
           namespace, name, nullif(slot, 0), key,
           CASE WHEN key IS NULL THEN (raw).classid::integer END,
           CASE WHEN key IS NULL THEN (raw).objid::integer END,
           CASE (raw).mode WHEN 'ExclusiveLock' THEN 'exclusive' WHEN 'ShareLock' THEN 'shared'
                ELSE (raw).mode END,
           CASE WHEN (raw).pid IS NULL THEN 'transaction' END,
           is_held, start, clock_timestamp() - start, NULL::timestamptz, NULL::interval,
           CASE WHEN NOT is_held THEN array_remove(pids, session::integer) END
               || CASE WHEN NOT (raw).granted THEN ARRAY(
                   SELECT p FROM unnest(pg_blocking_pids((raw).pid)) AS p
                   WHERE (p = ANY (pids)) IS NOT TRUE) END,
           known_as, gid, query, session, (raw).objsubid::integer, tag,
           _described(raw, number, key, namespace, name, lease, known_as[1], lock.datname, is_here),
           coalesce(lock.role || coalesce('@' || nullif(application_name, ''), ''), p.who),
           coalesce(since, prepared), p.rollback,
           bool_or(NOT is_held) OVER of_session, bool_or(number IS NOT NULL) OVER of_session
    FROM lock LEFT JOIN holder USING (tag)
    LEFT JOIN _prepared AS p
        ON (raw).pid IS NULL AND p.virtualtransaction = (raw).virtualtransaction
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(use ORDER BY is_label DESC, use COLLATE "C")
                            FILTER (WHERE is_shown), '{}'),
               bool_or(NOT is_shown)
        FROM use AS r, LATERAL (SELECT only_with IS NULL OR is_here AND has_table) AS s (is_shown)
        WHERE number BETWEEN first_key AND last_key
            AND r.objsubid = least((raw).objsubid, 4) AND is_here >= is_label)
        AS found (uses, is_anybodys)
    CROSS JOIN LATERAL (
        SELECT
@sql/known-as.sql
        ) AS a (known_as)
    WHERE (raw).locktype IS NOT NULL
        AND (number IS NOT NULL OR tag IN (SELECT tag FROM lock WHERE NOT (raw).granted))
    WINDOW of_session AS (PARTITION BY session)
    UNION ALL
    SELECT NULL, datname, NULL, NULL, NULL, state, 'lease', namespace, name, slot, NULL, NULL, NULL,
           'exclusive', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, session, NULL,
           tag, lease, who, since, remedy, false, true
    FROM lock WHERE (raw).locktype IS NULL $$;

-- How many slots of a semaphore a session has and waits for: NULL is one, or more than 382.
CREATE OR REPLACE VIEW advisory._sets AS
    SELECT pid,
           key & -16384 AS base,
           nullif(count(*) FILTER (WHERE key & 16383 <= 16000), 1) AS held,
           max(key & 16383) FILTER (WHERE key & 16383 > 16000) - 16000 AS wanted
    FROM _keys
    WHERE granted AND key & 16383 BETWEEN 1 AND 16382
    GROUP BY pid, key & -16384;

-- The entries, with the slots of a semaphore that a session has or waits for; part has the words,
-- those of a slot of a lease, too.
CREATE OR REPLACE VIEW advisory._entry AS
    SELECT e.*,
           slots,
           CASE WHEN kind IN ('semaphore', 'queue') OR tag LIKE 'lease slots %'
                THEN coalesce(slots || ' slots', 'slot ' || slot, 'a slot') || ' of ' END AS part
    FROM _entries() AS e
    LEFT JOIN _sets AS s ON s.pid = e.pid AND s.base::text = e.tag,
         LATERAL (SELECT CASE WHEN granted THEN s.held ELSE wanted END) AS n (slots);

CREATE OR REPLACE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace, name, slot,
           key, key1, key2, mode, scope, granted, wait_start, waited, acquired_at, held,
           blocked_by, known_as, gid, query, NULL::integer AS slots
    FROM _entry
    WHERE kind IS NOT NULL AND objsubid IS NOT NULL;
COMMENT ON VIEW locks IS 'every advisory lock on the server, with its name, holders and waiters';

CREATE OR REPLACE FUNCTION advisory._holders_of(namespace text, name text, key bigint)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, slot integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], gid text, query text, slots integer)
    LANGUAGE sql
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT _check(key::text, 'key');
    SELECT pid, database, role, application_name, client_addr, state, kind, slot, mode, scope,
           granted, wait_start, waited, acquired_at, held, blocked_by, gid, query, NULL::integer
    FROM _entries($1, $2) AS e
    WHERE e.key = $3 AND database = current_database() $$;

-- One without a label is there while somebody waits for a slot; its key is that of its slot 0.
-- Nothing says how many slots a semaphore has.
CREATE OR REPLACE VIEW advisory.semaphores AS
    SELECT namespace,
           name,
           CASE WHEN name IS NULL THEN tag::bigint ELSE key END AS key,
           NULL::integer AS slots,
           (count(*) FILTER (WHERE granted))::integer AS in_use,
           NULL::integer AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}')
               AS holders,
           false AS slots_disagree,
           NULL::text AS slots_given,
           (sum(coalesce(slots, 1)) FILTER (WHERE NOT granted))::integer AS slots_wanted
    FROM _entry
    WHERE kind IN ('semaphore', 'queue')
    GROUP BY 1, 2, 3;
COMMENT ON VIEW semaphores IS 'semaphores of this database that have holders of slots, or waiters';
