-- Statistics, and the table of names that they are kept in.

CREATE FUNCTION advisory_internal.stats()
    RETURNS TABLE (
        namespace text,
        name text,
        acquired bigint,
        contended bigint,
        failed bigint,
        timeouts bigint,
        skipped bigint,
        wait_total interval,
        wait_max interval,
        hold_total interval,
        hold_max interval,
        last_acquired_at timestamptz,
        stats_since timestamptz,
        key bigint,
        last_skipped_at timestamptz,
        not_held bigint)
    AS 'MODULE_PATHNAME', 'advisory_stats'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1000;
COMMENT ON FUNCTION advisory_internal.stats() IS 'rows of advisory.stats';

CREATE VIEW advisory.stats AS
    SELECT namespace, name, acquired, contended, failed, timeouts, skipped, wait_total,
           wait_max, hold_total, hold_max, last_acquired_at, stats_since, key, not_held
    FROM advisory_internal.stats();
COMMENT ON VIEW advisory.stats IS
    'statistics of the locks of this database, one row for each name';
COMMENT ON COLUMN advisory.stats.namespace IS 'namespace; null for the label of a key; or hidden';
COMMENT ON COLUMN advisory.stats.name IS
    'name or label; or hidden; <evicted>: the sums of evicted names';
COMMENT ON COLUMN advisory.stats.acquired IS 'how often it was granted';
COMMENT ON COLUMN advisory.stats.contended IS
    'how often a session had to wait for it, whether or not it was granted';
COMMENT ON COLUMN advisory.stats.failed IS 'how often it was not free and the session did not wait';
COMMENT ON COLUMN advisory.stats.timeouts IS 'how often a timeout, or lock_timeout, ended the wait';
COMMENT ON COLUMN advisory.stats.skipped IS 'how often advisory.run() did not run its command';
COMMENT ON COLUMN advisory.stats.wait_total IS 'total time of all waits';
COMMENT ON COLUMN advisory.stats.wait_max IS 'the longest wait';
COMMENT ON COLUMN advisory.stats.hold_total IS 'total time of all holds that have ended';
COMMENT ON COLUMN advisory.stats.hold_max IS 'the longest of these holds';
COMMENT ON COLUMN advisory.stats.last_acquired_at IS 'when it was last granted';
COMMENT ON COLUMN advisory.stats.stats_since IS 'when counting began';
COMMENT ON COLUMN advisory.stats.key IS
    '64-bit key, to look up a number in a log; null if hidden or evicted';
COMMENT ON COLUMN advisory.stats.not_held IS
    'how often a session released it that did not hold it';

CREATE FUNCTION advisory.stats_reset()
    RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_stats_reset'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.stats_reset() IS
    'set the statistics of this database''s locks to zero';

CREATE FUNCTION advisory_internal.directory()
    RETURNS TABLE (
        available boolean,
        names bigint,
        max_names integer,
        evicted bigint,
        not_stored bigint,
        collisions bigint,
        reason text)
    AS 'MODULE_PATHNAME', 'advisory_directory'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory_internal.directory() IS 'row of advisory.directory';

CREATE VIEW advisory.directory AS
    SELECT available, names, max_names, evicted, not_stored, collisions, reason
    FROM advisory_internal.directory();
COMMENT ON VIEW advisory.directory IS
    'state of the name table, which all sessions of the server share';
COMMENT ON COLUMN advisory.directory.available IS
    'can names be shared at all; false while shared memory is not available';
COMMENT ON COLUMN advisory.directory.names IS 'names in it, of all databases';
COMMENT ON COLUMN advisory.directory.max_names IS 'how many names it may hold';
COMMENT ON COLUMN advisory.directory.evicted IS 'names that were removed to make room for others';
COMMENT ON COLUMN advisory.directory.not_stored IS 'how often there was no room for a name';
COMMENT ON COLUMN advisory.directory.collisions IS 'how often two different names had the same key';
COMMENT ON COLUMN advisory.directory.reason IS 'the server''s error message if it is not available';
