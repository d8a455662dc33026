CREATE FUNCTION advisory._semaphores(
    OUT namespace text,
    OUT name text,
    OUT key bigint,
    OUT slots integer,
    OUT in_use integer,
    OUT free integer,
    OUT waiting integer,
    OUT holders integer[],
    OUT slots_disagree boolean)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'advisory_semaphores'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory._semaphores() IS 'rows of advisory.semaphores';

CREATE VIEW advisory.semaphores AS
    SELECT namespace, name, key, slots, in_use, free, waiting, holders, slots_disagree
    FROM advisory._semaphores();
COMMENT ON VIEW advisory.semaphores IS
    'semaphores of this database that have holders of slots, or waiters';
COMMENT ON COLUMN advisory.semaphores.namespace IS 'namespace; null if unknown';
COMMENT ON COLUMN advisory.semaphores.name IS 'name; null if unknown';
COMMENT ON COLUMN advisory.semaphores.key IS 'key of the name';
COMMENT ON COLUMN advisory.semaphores.slots IS 'how many slots it has, according to the sessions that use it; the largest number if they disagree; null if unknown';
COMMENT ON COLUMN advisory.semaphores.in_use IS 'slots that are taken';
COMMENT ON COLUMN advisory.semaphores.free IS 'slots that are free';
COMMENT ON COLUMN advisory.semaphores.waiting IS 'sessions that wait for a slot';
COMMENT ON COLUMN advisory.semaphores.holders IS 'process of each taken slot, in their order; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.semaphores.slots_disagree IS 'do sessions use it with different numbers of slots?';
GRANT SELECT ON advisory.semaphores TO PUBLIC;
