-- Views.  PUBLIC may read each of them.  The functions that make the rows hide values
-- from roles without the privilege to see them.

CREATE FUNCTION advisory_internal.locks_handler()
    RETURNS fdw_handler
    AS 'MODULE_PATHNAME', 'advisory_locks_handler'
    LANGUAGE C;
COMMENT ON FUNCTION advisory_internal.locks_handler() IS
    'handler of the foreign table advisory._locks';

CREATE FOREIGN DATA WRAPPER advisory_ext HANDLER advisory_internal.locks_handler NO VALIDATOR;
COMMENT ON FOREIGN DATA WRAPPER advisory_ext IS 'this server''s own advisory locks';
CREATE SERVER advisory_ext FOREIGN DATA WRAPPER advisory_ext;
COMMENT ON SERVER advisory_ext IS 'this server''s own advisory locks';

CREATE FOREIGN TABLE advisory._locks (
    pid integer,
    database text,
    role text,
    application_name text,
    client_addr inet,
    state text,
    kind text,
    namespace text,
    name text,
    slot integer,
    key bigint,
    key1 integer,
    key2 integer,
    mode text,
    scope text,
    granted boolean,
    wait_start timestamptz,
    waited interval,
    acquired_at timestamptz,
    held interval,
    blocked_by integer[],
    gid text,
    query text,
    slots integer,
    datid oid,
    high integer,
    low integer,
    objsubid integer,
    wanted integer)
    SERVER advisory_ext;
COMMENT ON FOREIGN TABLE advisory._locks IS
    'rows of advisory.locks and advisory.semaphores';

CREATE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace,
           name, slot, key, key1, key2, mode, scope, granted, wait_start,
           waited, acquired_at, held, blocked_by,
           advisory_internal.known_as(datid, objsubid, high, low, own, exact, is_small, is_start)
               AS known_as,
           gid, query, slots
    FROM advisory._locks
    LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
    LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
    LEFT JOIN advisory_internal.range_starts USING (objsubid, high);
COMMENT ON VIEW advisory.locks IS
    'every advisory lock on the server, with its name, holders and waiters';
COMMENT ON COLUMN advisory.locks.pid IS
    'process that holds or waits; null for a prepared transaction';
COMMENT ON COLUMN advisory.locks.database IS 'database that the lock is in; null if it was dropped';
COMMENT ON COLUMN advisory.locks.role IS
    'role of the session, or owner of the prepared transaction';
COMMENT ON COLUMN advisory.locks.application_name IS 'application_name of the session';
COMMENT ON COLUMN advisory.locks.client_addr IS
    'address of the client; null for a socket, and if hidden';
COMMENT ON COLUMN advisory.locks.state IS 'state as in pg_stat_activity; null if hidden';
COMMENT ON COLUMN advisory.locks.kind IS
    'lock, semaphore (a slot), queue (waits for a slot), lease or foreign';
COMMENT ON COLUMN advisory.locks.namespace IS 'namespace of the lock; null if unknown';
COMMENT ON COLUMN advisory.locks.name IS 'name or label of the lock; null if unknown';
COMMENT ON COLUMN advisory.locks.slot IS 'slot of a semaphore, or lease slot, from 1';
COMMENT ON COLUMN advisory.locks.key IS '64-bit key';
COMMENT ON COLUMN advisory.locks.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.locks.key2 IS 'second key of the pair form, signed';
COMMENT ON COLUMN advisory.locks.mode IS 'exclusive or shared';
COMMENT ON COLUMN advisory.locks.scope IS 'session or transaction; null where unknown';
COMMENT ON COLUMN advisory.locks.granted IS 'true: held; false: waited for';
COMMENT ON COLUMN advisory.locks.wait_start IS 'when the wait began';
COMMENT ON COLUMN advisory.locks.waited IS 'how long it has lasted';
COMMENT ON COLUMN advisory.locks.acquired_at IS
    'when it was acquired; null for the built-in functions';
COMMENT ON COLUMN advisory.locks.held IS 'how long it has been held';
COMMENT ON COLUMN advisory.locks.blocked_by IS
    'processes that block a waiter; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.locks.known_as IS
    'well-known uses of this key: candidates, not proof; see known_keys';
COMMENT ON COLUMN advisory.locks.gid IS 'identifier of the prepared transaction';
COMMENT ON COLUMN advisory.locks.query IS
    'query of the session; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.locks.slots IS
    'number of slots that this session gave; null where unknown';
