-- The view for 3 a.m.: waiters, their blockers, and everything else that is held.
-- Short enough for a terminal of 120 columns.

CREATE VIEW advisory.activity AS
    WITH entry AS MATERIALIZED (
        SELECT *
        FROM advisory._locks
    ), blocker AS (
        SELECT datid, high, low, objsubid, blocker_pid, min(wait_start) AS awaited_since
        FROM entry, unnest(blocked_by) AS blocker_pid
        WHERE NOT granted
        GROUP BY datid, high, low, objsubid, blocker_pid
    ), ranked AS (
        SELECT e.*,
               b.awaited_since,
               CASE WHEN NOT e.granted THEN 1 WHEN b.blocker_pid IS NOT NULL THEN 2 ELSE 3 END AS rank
        FROM entry AS e
        LEFT JOIN blocker AS b
            ON e.granted
            AND b.datid = e.datid AND b.high = e.high AND b.low = e.low AND b.objsubid = e.objsubid
            AND b.blocker_pid = coalesce(e.pid, 0)
    ), counted AS (
        SELECT *, rank = 3 AND count(*) OVER (PARTITION BY rank, pid, gid) > 20 AS is_one_of_many
        FROM ranked
    ), line AS (
        SELECT CASE WHEN database IS DISTINCT FROM current_database()
                    THEN concat(coalesce(database, '(dropped)'), ': ', lock)
                    ELSE lock
               END AS lock,
               slot, mode, pid, gid, role, application_name, state, waited, held, blocked_by, rank,
               coalesce(wait_start, awaited_since) AS since
        FROM counted
        WHERE NOT is_one_of_many
        UNION ALL
        SELECT concat('(', count(*), ' locks)'),
               NULL, NULL, pid, gid, role, application_name, state, NULL, max(held), NULL, rank, NULL
        FROM counted
        WHERE is_one_of_many
        GROUP BY pid, gid, role, application_name, state, rank
        UNION ALL
        SELECT l.lock, NULL, 'lease', NULL, NULL, l.owner, NULL, l.state, NULL, clock_timestamp() - l.acquired_at, NULL,
               CASE WHEN e.key IS NOT NULL THEN 2 ELSE 3 END, min(e.wait_start)
        FROM advisory._lease_rows() AS l
        LEFT JOIN entry AS e
            ON NOT e.granted AND e.kind = 'lease' AND e.key = l.key AND e.database = current_database()
        WHERE l.state <> 'expired'
        GROUP BY l.lock, l.owner, l.state, l.acquired_at, e.key
    )
    SELECT lock,
           slot,
           mode,
           pid,
           CASE WHEN gid IS NOT NULL THEN concat(role, ' (prepared ', gid, ')')
                WHEN application_name <> '' THEN concat(role, '@', application_name)
                ELSE role
           END AS who,
           replace(replace(state, 'idle in transaction (aborted)', 'failed xact'),
                   'idle in transaction', 'idle in xact') AS state,
           date_trunc('second', waited) AS waiting,
           date_trunc('second', held) AS held,
           blocked_by
    FROM line
    ORDER BY rank, since, line.held DESC NULLS LAST, line.lock, slot, pid;
COMMENT ON VIEW advisory.activity IS
    'waiters for advisory locks, their blockers, and all other holders; longest waits first';
COMMENT ON COLUMN advisory.activity.lock IS
    'namespace/name; or in quotes a label, or what the key is known for; or the key or pair; preceded by its database if that is not the current one; '
    'for a session with more than 20 locks that nobody waits for, their number';
COMMENT ON COLUMN advisory.activity.slot IS 'slot of a semaphore, from 1';
COMMENT ON COLUMN advisory.activity.mode IS 'exclusive or shared; or lease, which is not held by a session';
COMMENT ON COLUMN advisory.activity.pid IS 'process that holds or waits; null for a prepared transaction, and for a lease';
COMMENT ON COLUMN advisory.activity.who IS 'role@application; the owner of a lease';
COMMENT ON COLUMN advisory.activity.state IS 'state of the session, shortened; null without the privilege to see it';
COMMENT ON COLUMN advisory.activity.waiting IS 'how long it has waited; null for a holder';
COMMENT ON COLUMN advisory.activity.held IS 'how long it has held the lock; null where unknown';
COMMENT ON COLUMN advisory.activity.blocked_by IS 'processes that block a waiter; 0 is a prepared transaction';
GRANT SELECT ON advisory.activity TO PUBLIC;
