-- The view for 3 a.m.: waiters, their blockers, and everything else that is held.
-- Short enough for a terminal of 120 columns.

CREATE VIEW advisory.activity AS
    WITH entry AS MATERIALIZED (
        SELECT *,
               CASE WHEN name IS NULL THEN coalesce(key::text, key1 || ', ' || key2)
                    WHEN namespace IS NULL OR namespace = '<insufficient privilege>' THEN name
                    ELSE namespace || '/' || name
               END AS lock
        FROM advisory._locks
    ), blocker AS (
        SELECT datid, high, low, objsubid, blocker_pid, min(wait_start) AS wait_start
        FROM entry, unnest(blocked_by) AS blocker_pid
        WHERE NOT granted
        GROUP BY datid, high, low, objsubid, blocker_pid
    )
    SELECT e.lock,
           e.slot,
           e.mode,
           e.pid,
           CASE WHEN e.gid IS NOT NULL THEN concat(e.role, ' (prepared ', e.gid, ')')
                WHEN e.application_name <> '' THEN concat(e.role, '@', e.application_name)
                ELSE e.role
           END AS who,
           replace(replace(e.state, 'idle in transaction (aborted)', 'failed xact'),
                   'idle in transaction', 'idle in xact') AS state,
           date_trunc('second', e.waited) AS waiting,
           date_trunc('second', e.held) AS held,
           e.blocked_by
    FROM entry AS e
    LEFT JOIN blocker AS b
        ON e.granted
        AND b.datid = e.datid AND b.high = e.high AND b.low = e.low AND b.objsubid = e.objsubid
        AND b.blocker_pid = coalesce(e.pid, 0)
    ORDER BY CASE WHEN NOT e.granted THEN 1 WHEN b.blocker_pid IS NOT NULL THEN 2 ELSE 3 END,
             coalesce(e.wait_start, b.wait_start),
             e.held DESC NULLS LAST, e.lock, e.slot, e.pid;
COMMENT ON VIEW advisory.activity IS
    'waiters for advisory locks, their blockers, and what else is held; longest waits first';
COMMENT ON COLUMN advisory.activity.lock IS 'namespace/name; the label, key or pair where there is no name';
COMMENT ON COLUMN advisory.activity.slot IS 'slot of a semaphore, from 1';
COMMENT ON COLUMN advisory.activity.mode IS 'exclusive or shared';
COMMENT ON COLUMN advisory.activity.pid IS 'process that holds or waits; null for a prepared transaction';
COMMENT ON COLUMN advisory.activity.who IS 'role@application';
COMMENT ON COLUMN advisory.activity.state IS 'state of the session, shortened; null without the privilege to see it';
COMMENT ON COLUMN advisory.activity.waiting IS 'how long it has waited; null for a holder';
COMMENT ON COLUMN advisory.activity.held IS 'how long it has held the lock; null where unknown';
COMMENT ON COLUMN advisory.activity.blocked_by IS 'processes in the way of a waiter; 0 is a prepared transaction';
GRANT SELECT ON advisory.activity TO PUBLIC;
