-- Waits.

-- What is in the way of a session that waits: all holders, or else the last waiter ahead of it.
-- Trees show it under rank 1; if it waits for a slot, that is a holder that does not itself wait.
-- Only waits that have to do with an advisory lock, through others or not.
CREATE OR REPLACE VIEW advisory._edges AS
    WITH RECURSIVE entry AS MATERIALIZED (
        SELECT e,
               (e).session,
               (e).tag,
               greatest((e).session, 0)::integer AS pid,
               (e).granted,
               (e).mode,
               -- Does a holder's mode conflict with this one?
               (e).mode IN ('exclusive', 'shared')
                   AND bool_or((e).granted AND (e).mode = 'exclusive') OVER (PARTITION BY (e).tag)
               OR (e).mode = 'exclusive'
                   AND bool_or((e).granted AND (e).mode = 'shared') OVER (PARTITION BY (e).tag)
                   AS has_holder
        FROM _entry AS e),
    edge AS MATERIALIZED (
        -- Behind a holder the other waiters do not matter.  Each session is in the way once.
        SELECT w.e AS waiter,
               b.e AS blocker,
               w.session,
               b.session AS above,
               count(*) FILTER (WHERE b.granted) OVER of_waiter AS holders,
               row_number() OVER (
                   of_waiter
                   ORDER BY b.granted DESC, (b.e).slot IS NOT NULL AND (b.e).is_waiting,
                            CASE WHEN b.granted THEN array_position(w.blocked_by, b.pid) END,
                            (b.e).wait_start DESC, b.mode DESC, (b.e).since) AS rank
        FROM (SELECT DISTINCT ON (session) *, (e).blocked_by
              FROM entry
              WHERE NOT granted
              ORDER BY session, (e).wait_start) AS w
        JOIN (SELECT DISTINCT ON (tag, session, granted, mode) *
              FROM entry
              ORDER BY tag, session, granted, mode, (e).slot) AS b
            ON b.tag = w.tag AND b.session <> w.session
            AND b.granted >= w.has_holder AND b.pid = ANY (w.blocked_by)
        WHERE NOT (w.mode = 'shared' AND b.mode = 'shared')
        WINDOW of_waiter AS (PARTITION BY w.session)),
    link (one, other) AS MATERIALIZED (
        SELECT session, above FROM edge
        UNION
        SELECT above, session FROM edge),
    concerned (session) AS (
        SELECT unnest(ARRAY[session, above])
        FROM edge
        WHERE (waiter).has_advisory OR (blocker).has_advisory
        UNION
        SELECT other FROM concerned AS c JOIN link ON one = c.session)
    SELECT *
    FROM edge
    WHERE (rank = 1 OR (blocker).granted) AND session IN (SELECT session FROM concerned);

-- Each session once, with the entry that is shown.  The root of a cycle is its smallest process.
CREATE OR REPLACE VIEW advisory._tree AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT *,
               row_number() OVER (PARTITION BY above ORDER BY (waiter).wait_start, session)
                   AS number
        FROM _edges
        WHERE rank = 1),
    climb (session, above) AS (
        SELECT session, above FROM edge
        UNION
        SELECT c.session, e.above FROM climb AS c JOIN edge AS e ON e.session = c.above),
    root AS (
        SELECT above AS session FROM edge
        EXCEPT
        SELECT session FROM edge
        UNION
        -- Whoever comes to himself is in a cycle.
        SELECT session FROM climb GROUP BY session HAVING min(above) = session),
    line (session, root, e, above, holders, path, place) AS (
        SELECT r.session, r.session, coalesce(own.waiter, f.blocker), own.above, own.holders,
               ARRAY[greatest(r.session, 0)::integer], '{}'::bigint[]
        FROM root AS r
        LEFT JOIN edge AS own ON own.session = r.session
        LEFT JOIN edge AS f ON f.above = r.session AND f.number = 1
        UNION ALL
        SELECT n.session, root, waiter, n.above, n.holders, path || n.session::integer,
               place || number
        FROM line JOIN edge AS n ON n.above = line.session AND n.session <> root)
    SELECT *,
           cardinality(place) AS depth,
           min((e).wait_start) OVER (PARTITION BY root) AS oldest
    FROM line;

CREATE OR REPLACE VIEW advisory.waits AS
    SELECT path[1] AS root_pid,
           depth,
           path,
           path[depth + 1] AS pid,
           CASE WHEN above < 0 THEN 0 ELSE above END::integer AS waits_for_pid,
           (e).namespace,
           (e).name,
           (e).key,
           (e).mode,
           (e).waited,
           (e).state,
           (e).application_name,
           (e).query,
           (e).key1,
           (e).key2,
           CASE WHEN (e).kind IS NOT NULL THEN (e).objsubid END AS objsubid
    FROM _tree
    ORDER BY oldest, root, place;
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';

CREATE OR REPLACE FUNCTION advisory.wait_tree()
    RETURNS SETOF text
    LANGUAGE sql COST 1000 ROWS 100
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT concat(
        repeat('  ', depth),
        coalesce((e).pid || ' ' || (e).who,
                 CASE WHEN (e).objsubid IS NULL AND (e).kind = 'lease' THEN (e).who END,
                 'prepared transaction "' || (e).gid || '" of ' || (e).role,
                 'a prepared transaction'),
        CASE WHEN (e).granted THEN ' holds ' ELSE ' waits for ' END,
        (e).part, (e).lock, ' ', (e).mode,
        CASE WHEN (e).granted THEN ', ' || (e).state END,
        ' ' || floor(extract(epoch FROM greatest(clock_timestamp(), start) - start)) || ' s',
        -- A root that waits itself is in a cycle.
        ', in a cycle with ' || CASE depth WHEN 0 THEN above END,
        CASE WHEN holders > 1
             THEN format(' (and %s more holder%s)', holders - 1,
                         left('s', (holders > 2)::integer)) END)
    FROM _tree,
         LATERAL (SELECT CASE WHEN NOT (e).granted THEN (e).wait_start
                              WHEN (e).state <> '' THEN (e).since END) AS a (start)
    ORDER BY oldest, root, place $$;
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';

-- The text of a lock for remedies, which no other lock has: by its key, or by a name that cannot be
-- a part of another text.  NULL if what is shown of a table or a database can be that of another.
CREATE OR REPLACE FUNCTION advisory._exact_lock(e advisory._entry)
    RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE
        WHEN kind IS NULL THEN CASE WHEN e.lock !~ '[?]' THEN e.lock END
        WHEN NOT is_here THEN part || keys || ' in database "'
            || CASE _printable(database) WHEN database THEN database END || '"'
        WHEN namespace !~ '[ /]' AND name !~ ' ' AND _is_name(namespace, name, key)
        THEN part || namespace || '/' || name
        ELSE part || keys END
    FROM (SELECT e.kind, e.namespace, e.name, e.key, e.database,
                 e.database IS NOT DISTINCT FROM current_database() AS is_here,
                 concat(e.part, CASE e.kind WHEN 'lease' THEN 'lease ' END) AS part,
                 coalesce(e.key::text,
                          concat(e.key1, ', ', e.key2,
                                 ' (objsubid ' || nullif(e.objsubid, 2) || ')')) AS keys) AS of $$;

-- What sessions wait for in the end, directly or through others.
CREATE OR REPLACE VIEW advisory._blockers AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT *, (waiter).wait_start AS start FROM _edges),
    reach (waiter, start, above) AS (
        SELECT session, start, above FROM edge
        UNION
        SELECT r.waiter, r.start, e.above
        FROM reach AS r JOIN edge AS e ON e.session = r.above),
    root AS (
        SELECT above, count(*)::integer AS waiters, min(start) AS start
        FROM reach
        WHERE above NOT IN (SELECT session FROM edge)
        GROUP BY above)
    SELECT (e).pid,
           (e).who,
           -- What an active session waits for itself, for no other session holds that.
           (e).state || CASE WHEN a.state = 'active' AND wait_event IS NOT NULL
                             THEN format(', waits for %s (%s)', wait_event, wait_event_type)
                             ELSE '' END AS state,
           date_trunc('second', (e).since) AS since,
           concat((e).part, (e).lock) AS lock,
           waiters,
           date_trunc('second', clock_timestamp() - root.start) AS longest_wait,
           -- These end the session only if it still holds the lock.
           CASE WHEN (e).pid IS NULL THEN (e).rollback
                WHEN to_cancel IS NOT NULL
                THEN 'SELECT advisory.cancel_waiter(' || to_cancel || ', '
                     || quote_literal(exact_lock) || ');'
                WHEN (e).key IS NULL OR (e).database IS DISTINCT FROM current_database()
                THEN 'SELECT advisory.terminate_blocker(' || (e).pid || ', '
                     || quote_literal(exact_lock) || ');'
                ELSE _terminate_statement((e).namespace, (e).name, (e).key, (e).pid, (e).kind)
                     || ';'
           END AS remedy,
           backend_type,
           a.client_addr,
           regexp_replace(_printable(regexp_replace(left(a.query, 1000), '\s+', ' ', 'g')),
                          '^(.{43}).{5,}(.{43})$', '\1...\2') AS query,
           exact_lock,
           to_cancel
    FROM root
    JOIN (SELECT DISTINCT ON (above) above, blocker AS e
          FROM edge
          ORDER BY above, start, session) AS first USING (above)
    CROSS JOIN LATERAL _exact_lock(e) AS exact_lock
    LEFT JOIN pg_stat_activity AS a ON a.pid = (e).pid
    -- The program of an idle holder works in another session, and waits there for the snapshot, as
    -- CREATE INDEX CONCURRENTLY does, or for the transaction of somebody who waits for the lock.
    -- If the holder were ended, the lock would be free while its program works.
    LEFT JOIN LATERAL (
        SELECT min(work.above)
        FROM edge AS work
        JOIN edge AS m ON m.session = work.above AND m.above = root.above
        JOIN pg_stat_activity AS w ON w.pid = work.session
        WHERE (e).kind IS NOT NULL AND (m.waiter).tag = (e).tag
            AND a.state LIKE 'idle%'
            AND (w.usesysid, w.datid) = (a.usesysid, a.datid)
            AND w.application_name = a.application_name) AS h (to_cancel) ON true;

CREATE OR REPLACE VIEW advisory.blockers AS
    SELECT pid, who, state, since, lock, waiters, longest_wait, remedy, backend_type, client_addr,
           query
    FROM _blockers
    ORDER BY waiters DESC, longest_wait DESC NULLS LAST, pid;
COMMENT ON VIEW blockers IS 'what others wait for in the end, and the statement that ends it';

CREATE OR REPLACE FUNCTION advisory.terminate_blocker(pid integer, lock text)
    RETURNS boolean
    LANGUAGE sql
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT coalesce(pg_terminate_backend((
        SELECT b.pid
        FROM _blockers AS b
        WHERE b.pid = $1 AND b.exact_lock = $2)), false) $$;
COMMENT ON FUNCTION advisory.terminate_blocker(integer, text) IS
    'end a session if advisory.blockers still shows it with this lock';

CREATE OR REPLACE FUNCTION advisory.cancel_waiter(pid integer, lock text)
    RETURNS boolean
    LANGUAGE sql
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT coalesce(pg_cancel_backend((
        SELECT $1
        FROM _blockers AS b
        WHERE b.to_cancel = $1 AND b.exact_lock = $2
        LIMIT 1)), false) $$;
COMMENT ON FUNCTION advisory.cancel_waiter(integer, text) IS
    'cancel the wait of a session if advisory.blockers still asks for it';

-- Waiters (1), holders of what they wait for (2), and other locks (3).  It shows ten waiters for
-- a lock, thirty other locks of a session; the line of the next one counts it and all that follow.
CREATE OR REPLACE VIEW advisory.activity AS
    WITH known AS MATERIALIZED (
        SELECT * FROM _entry WHERE kind IS NOT NULL),
    every_one AS (
        SELECT lock, slot, CASE kind WHEN 'lease' THEN kind ELSE mode END AS mode, pid, who, state,
               granted, is_waiting, wait_start, waited, session, tag
        FROM known
        UNION ALL
        -- Leases that nobody waits for count as those of one session.
        SELECT lock, slot, 'lease', NULL, owner, state, true, false, NULL, NULL, 0, NULL
        FROM _shown_leases AS l
        WHERE state <> 'expired' AND place <= 10000
            AND (l.tag IN (SELECT k.tag FROM known AS k)) IS NOT TRUE),
    entry AS (
        SELECT *,
               CASE WHEN NOT granted THEN 1
                    WHEN bool_or(NOT granted) OVER same THEN 2
                    ELSE 3 END AS rank,
               CASE WHEN granted THEN session::text ELSE tag END AS crowd,
               coalesce(wait_start, min(wait_start) OVER same) AS start,
               CASE WHEN NOT granted
                    THEN array_remove(array_agg(greatest(session, 0)) FILTER (WHERE granted)
                                          OVER same, session) END AS pids
        FROM every_one
        WINDOW same AS (PARTITION BY tag)),
    placed AS (
        SELECT *,
               CASE rank WHEN 1 THEN 10 WHEN 3 THEN 30 END AS most,
               count(*) OVER (PARTITION BY rank, crowd) AS total,
               row_number() OVER (PARTITION BY rank, crowd ORDER BY start, lock, pid) AS place
        FROM entry)
    SELECT CASE WHEN place > most THEN format('(%s more)', total - most)
                ELSE regexp_replace(lock, '^(.{19}).{4,}(.{18})$', '\1...\2') END AS lock,
           slot,
           mode,
           pid,
           regexp_replace(who, '^(.{14}).{4,}(.{13})$', '\1...\2') AS who,
           CASE WHEN granted AND is_waiting THEN 'waiting' ELSE state END AS state,
           date_trunc('second', waited) AS waiting,
           NULL::interval AS held,
           nullif(concat(array_to_string(pids[:3], ','),
                         ' +' || nullif(greatest(cardinality(pids), 3) - 3, 0)), '') AS blocked_by
    FROM placed
    WHERE rank = 2 OR place <= most + 1
    ORDER BY rank, start, CASE rank WHEN 3 THEN pid END, place;
COMMENT ON VIEW activity IS 'waiters for advisory locks, their blockers, and all other holders';

-- Ends the session if it still holds the lock, a slot, or a lock of the lease, of that name.
CREATE OR REPLACE FUNCTION advisory._terminate(namespace text, name text, key bigint, pid integer,
                                               timeout interval, only_kind text)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + _milliseconds(timeout) * interval '1 ms';
BEGIN
    PERFORM _check(pid::text, 'pid');
    PERFORM _require(only_kind IN ('lock', 'semaphore', 'lease'), '22023',
                     'kind must be "lock", "semaphore" or "lease"');

    IF NOT EXISTS (
            SELECT FROM _holders_of(namespace, name, key) AS h
            WHERE granted AND h.pid = _terminate.pid AND h.kind = coalesce(only_kind, h.kind))
       AND NOT EXISTS (
            SELECT FROM locks AS l
            WHERE kind = 'lease' AND granted AND l.pid = _terminate.pid
                AND l.kind = coalesce(only_kind, l.kind)
                AND (l.namespace, l.name) = (_printable($1), _printable($2))) THEN
        RAISE WARNING '%', format(
            CASE only_kind
                WHEN 'lock' THEN 'PID %s does not hold advisory lock "%s"'
                WHEN 'semaphore' THEN 'PID %s does not hold a slot of semaphore "%s"'
                WHEN 'lease' THEN 'PID %s does not hold lease "%s"'
                ELSE 'PID %s does not hold advisory lock "%s", '
                     'nor a slot of the semaphore of that name' END,
            pid, _display(namespace, coalesce(name, key::text)));
        RETURN false;
    END IF;

    IF NOT pg_terminate_backend(pid) OR timeout = '0' THEN
        RETURN coalesce(timeout = '0', false);
    END IF;
    WHILE EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) LOOP
        IF clock_timestamp() >= deadline THEN
            RAISE WARNING 'backend with PID % did not terminate within % milliseconds',
                pid, _milliseconds(timeout);
            RETURN false;
        END IF;
        PERFORM pg_sleep(0.01);
        PERFORM pg_stat_clear_snapshot();
    END LOOP;
    RETURN true;
END $$;
