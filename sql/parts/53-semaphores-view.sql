CREATE VIEW advisory.semaphores AS
    WITH entry AS MATERIALIZED (
        SELECT key, namespace, name, slot, slots, granted, coalesce(pid, 0) AS pid, wanted
        FROM advisory._locks
        WHERE kind IN ('semaphore', 'queue') AND database = current_database()
    ), given AS (
        -- Ten processes for each number.
        SELECT key,
               string_agg(concat(slots, ' by ', array_to_string(pids[:10], ', '),
                                 ' +' || nullif(greatest(cardinality(pids), 10) - 10, 0)),
                          '; ' ORDER BY slots) AS slots_given
        FROM (SELECT key, slots, array_agg(DISTINCT pid) AS pids
              FROM entry
              WHERE slots IS NOT NULL
              GROUP BY key, slots) AS one
        GROUP BY key
    )
    SELECT (array_agg(namespace ORDER BY granted DESC, slot DESC))[1] AS namespace,
           (array_agg(name ORDER BY granted DESC, slot DESC))[1] AS name,
           key,
           max(slots) AS slots,
           (count(*) FILTER (WHERE granted))::integer AS in_use,
           CASE WHEN max(slots) IS NOT NULL
                THEN greatest(max(slots) - count(*) FILTER (WHERE granted), 0)::integer
           END AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(pid ORDER BY slot) FILTER (WHERE granted), '{}') AS holders,
           coalesce(min(slots) <> max(slots), false) AS slots_disagree,
           slots_given,
           (sum(wanted) FILTER (WHERE NOT granted))::integer AS slots_wanted
    FROM entry
    LEFT JOIN given USING (key)
    GROUP BY key, slots_given;
COMMENT ON VIEW advisory.semaphores IS
    'semaphores of this database that have holders of slots, or waiters';
COMMENT ON COLUMN advisory.semaphores.namespace IS 'namespace; null if unknown';
COMMENT ON COLUMN advisory.semaphores.name IS 'name; null if unknown';
COMMENT ON COLUMN advisory.semaphores.key IS 'key of the name';
COMMENT ON COLUMN advisory.semaphores.slots IS
    'how many slots it has, as its users say: the largest number';
COMMENT ON COLUMN advisory.semaphores.in_use IS 'slots that are taken';
COMMENT ON COLUMN advisory.semaphores.free IS 'slots that are free';
COMMENT ON COLUMN advisory.semaphores.waiting IS 'sessions that wait for a slot';
COMMENT ON COLUMN advisory.semaphores.holders IS
    'process of each taken slot, in order; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.semaphores.slots_disagree IS
    'do sessions use it with different numbers of slots?';
COMMENT ON COLUMN advisory.semaphores.slots_given IS
    'which number of slots which processes give: 2 by 4711; 3 by 4712';
COMMENT ON COLUMN advisory.semaphores.slots_wanted IS
    'how many slots the waiting sessions want together';
