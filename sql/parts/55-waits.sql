-- Who waits for whom.

CREATE FUNCTION advisory_internal.waits()
    RETURNS TABLE (
        root_pid integer,
        depth integer,
        path integer[],
        pid integer,
        waits_for_pid integer,
        namespace text,
        name text,
        key bigint,
        mode text,
        waited interval,
        state text,
        application_name text,
        query text,
        key1 integer,
        key2 integer,
        objsubid integer)
    AS 'MODULE_PATHNAME', 'advisory_waits'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.waits() IS 'rows of advisory.waits';

CREATE VIEW advisory.waits AS
    SELECT root_pid, depth, path, pid, waits_for_pid, namespace, name, key, mode, waited, state,
           application_name, query,
           key1, key2, objsubid
    FROM advisory_internal.waits();
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';
COMMENT ON COLUMN advisory.waits.root_pid IS
    'process at the root of the tree; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.waits.depth IS 'how far from the root, which has depth 0';
COMMENT ON COLUMN advisory.waits.path IS 'processes from the root to this one';
COMMENT ON COLUMN advisory.waits.pid IS 'process; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.waits.waits_for_pid IS
    'process that blocks it; null for a root, which waits for nothing';
COMMENT ON COLUMN advisory.waits.namespace IS
    'namespace of the lock; null if unknown, and for locks of other types';
COMMENT ON COLUMN advisory.waits.name IS
    'name or label of the lock; null if unknown, or of another type';
COMMENT ON COLUMN advisory.waits.key IS '64-bit key; null for a pair, and for locks of other types';
COMMENT ON COLUMN advisory.waits.mode IS 'mode waited for; of a root, the mode held';
COMMENT ON COLUMN advisory.waits.waited IS 'how long the wait has lasted; null for a root';
COMMENT ON COLUMN advisory.waits.state IS 'state as in pg_stat_activity; null if hidden';
COMMENT ON COLUMN advisory.waits.application_name IS 'application_name of the session';
COMMENT ON COLUMN advisory.waits.query IS
    'query of the session; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.waits.key1 IS
    'first key of the pair form, signed; classid of a foreign lock';
COMMENT ON COLUMN advisory.waits.key2 IS
    'second key of the pair form, signed; objid of a foreign lock';
COMMENT ON COLUMN advisory.waits.objsubid IS 'as in pg_locks; null for locks of other types';

-- What the lines of wait_tree() say: the columns of waits, and more.  A row with left_out stands
-- for so many lines.
CREATE FUNCTION advisory_internal.wait_tree()
    RETURNS TABLE (
        root_pid integer,
        depth integer,
        path integer[],
        pid integer,
        waits_for_pid integer,
        namespace text,
        name text,
        key bigint,
        mode text,
        waited interval,
        state text,
        application_name text,
        query text,
        key1 integer,
        key2 integer,
        lock_objsubid integer,
        left_out integer,
        lock text,
        gid text,
        role text,
        is_waiting boolean,
        in_state interval,
        awaited text,
        lease text,
        other_holders integer)
    AS 'MODULE_PATHNAME', 'advisory_wait_tree'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.wait_tree() IS 'lines of advisory.wait_tree()';

-- 4711 app@worker holds billing/invoice:42 exclusive, idle in transaction 35 s
--   4712 app@web waits for billing/invoice:42 exclusive 12 s
CREATE FUNCTION advisory.wait_tree() RETURNS SETOF text
    LANGUAGE sql VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100
BEGIN ATOMIC
    SELECT concat(repeat('  ', depth), CASE WHEN left_out > 0
        THEN concat(
            CASE WHEN getdatabaseencoding() = 'UTF8' AND pg_client_encoding() = 'UTF8'
                 THEN convert_from(E'\\xe280a6', 'UTF8')
                 ELSE '...'
            END, ' and ', left_out, ' more', ', the longest' || wait_age)
        ELSE concat(
            CASE WHEN gid IS NOT NULL THEN concat('prepared transaction "', gid, '"')
                 WHEN pid = 0 THEN 'a prepared transaction'
                 ELSE pid::text
            END,
            CASE pid WHEN 0 THEN ' of ' ELSE ' ' END || role,
            CASE WHEN role IS NULL AND application_name <> '' THEN ' ' END,
            '@' || nullif(application_name, ''),
            CASE WHEN is_waiting THEN ' waits for ' ELSE ' holds ' END,
            lock, ' ', mode, wait_age,
            CASE WHEN NOT is_waiting THEN ', ' || state || concat(state_age, awaited) END,
            lease,
            CASE depth WHEN 0 THEN ', in a cycle with ' || waits_for_pid END,
            CASE WHEN other_holders > 0
                 THEN concat(' (and ', other_holders, ' more holder',
                             CASE WHEN other_holders > 1 THEN 's' END, ')')
            END)
        END)
    FROM advisory_internal.wait_tree() WITH ORDINALITY
    CROSS JOIN LATERAL (SELECT ' ' || trunc(extract(epoch FROM waited)) || ' s',
                               ' ' || trunc(extract(epoch FROM in_state)) || ' s')
        AS age (wait_age, state_age)
    ORDER BY ordinality;
END;
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';
