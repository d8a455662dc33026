CREATE VIEW advisory.semaphores AS
    SELECT (array_agg(namespace ORDER BY granted DESC, slot DESC))[1] AS namespace,
           (array_agg(name ORDER BY granted DESC, slot DESC))[1] AS name,
           key,
           max(slots) AS slots,
           (count(*) FILTER (WHERE granted))::integer AS in_use,
           CASE WHEN max(slots) IS NOT NULL THEN greatest(max(slots) - count(*) FILTER (WHERE granted), 0)::integer END AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}') AS holders,
           coalesce(min(slots) <> max(slots), false) AS slots_disagree
    FROM advisory._locks
    WHERE kind IN ('semaphore', 'queue') AND database = current_database()
    GROUP BY key;
COMMENT ON VIEW advisory.semaphores IS
    'semaphores of this database that have holders of slots, or waiters';
COMMENT ON COLUMN advisory.semaphores.namespace IS 'namespace; null if unknown';
COMMENT ON COLUMN advisory.semaphores.name IS 'name; null if unknown';
COMMENT ON COLUMN advisory.semaphores.key IS 'key of the name';
COMMENT ON COLUMN advisory.semaphores.slots IS 'how many slots it has, as its users say: the largest number';
COMMENT ON COLUMN advisory.semaphores.in_use IS 'slots that are taken';
COMMENT ON COLUMN advisory.semaphores.free IS 'slots that are free';
COMMENT ON COLUMN advisory.semaphores.waiting IS 'sessions that wait for a slot';
COMMENT ON COLUMN advisory.semaphores.holders IS 'process of each taken slot, in order; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.semaphores.slots_disagree IS 'do sessions use it with different numbers of slots?';
