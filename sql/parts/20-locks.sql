-- Named locks.
--
-- The functions are not STRICT, because a null namespace or name must be an error.  COST
-- is high so that the planner filters by everything else first.

---- lock, try_lock

CREATE FUNCTION advisory.lock(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock(text, text, interval) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock(text, bigint, interval) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock(text, uuid, interval) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_lock(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock(text, text, interval) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_lock(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock(text, bigint, interval) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_lock(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock(text, uuid, interval) IS
    'take an exclusive session-level lock if it is free within timeout';

---- lock_shared, try_lock_shared

CREATE FUNCTION advisory.lock_shared(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared(text, text, interval) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.lock_shared(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared(text, bigint, interval) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.lock_shared(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared(text, uuid, interval) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_lock_shared(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared(text, text, interval) IS
    'take a shared session-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_lock_shared(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared(text, bigint, interval) IS
    'take a shared session-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_lock_shared(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared(text, uuid, interval) IS
    'take a shared session-level lock if it is free within timeout';

---- xact_lock, try_xact_lock

CREATE FUNCTION advisory.xact_lock(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock(text, text, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock(text, bigint, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock(text, uuid, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_xact_lock(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock(text, text, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_xact_lock(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock(text, bigint, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_xact_lock(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock(text, uuid, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout';

---- xact_lock_shared, try_xact_lock_shared

CREATE FUNCTION advisory.xact_lock_shared(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, text, interval) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock_shared(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, bigint, interval) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock_shared(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, uuid, interval) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_xact_lock_shared(namespace text, name text,
                                              timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, text, interval) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_xact_lock_shared(namespace text, id bigint,
                                              timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, bigint, interval) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE FUNCTION advisory.try_xact_lock_shared(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, uuid, interval) IS
    'take a shared transaction-level lock if it is free within timeout';

---- unlock

CREATE FUNCTION advisory.unlock(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock(text, text) IS
    'release one exclusive session-level hold; false if there is none';

CREATE FUNCTION advisory.unlock(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock(text, bigint) IS
    'release one exclusive session-level hold; false if there is none';

CREATE FUNCTION advisory.unlock(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock(text, uuid) IS
    'release one exclusive session-level hold; false if there is none';

CREATE FUNCTION advisory.unlock_shared(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared(text, text) IS
    'release one shared session-level hold; false if there is none';

CREATE FUNCTION advisory.unlock_shared(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared(text, bigint) IS
    'release one shared session-level hold; false if there is none';

CREATE FUNCTION advisory.unlock_shared(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared(text, uuid) IS
    'release one shared session-level hold; false if there is none';

---- asking

CREATE FUNCTION advisory.holds(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_holds_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.holds(text, text) IS
    'does this session hold the lock, in any mode and scope';

CREATE FUNCTION advisory.holds(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_holds_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.holds(text, bigint) IS
    'does this session hold the lock, in any mode and scope';

CREATE FUNCTION advisory.holds(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_holds_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.holds(text, uuid) IS
    'does this session hold the lock, in any mode and scope';

CREATE FUNCTION advisory.hold_count(namespace text, name text) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_hold_count_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.hold_count(text, text) IS
    'how often this session holds the lock through this extension';

CREATE FUNCTION advisory.hold_count(namespace text, id bigint) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_hold_count_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.hold_count(text, bigint) IS
    'how often this session holds the lock through this extension';

CREATE FUNCTION advisory.hold_count(namespace text, id uuid) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_hold_count_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.hold_count(text, uuid) IS
    'how often this session holds the lock through this extension';

CREATE FUNCTION advisory.is_locked(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked(text, text) IS
    'does any session hold the lock: an observation, never a guard';

CREATE FUNCTION advisory.is_locked(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked(text, bigint) IS
    'does any session hold the lock: an observation, never a guard';

CREATE FUNCTION advisory.is_locked(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked(text, uuid) IS
    'does any session hold the lock: an observation, never a guard';

CREATE FUNCTION advisory.holders(namespace text, name text)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz,
    waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text,
    query text, slots integer)
    AS 'MODULE_PATHNAME', 'advisory_holders_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, text) IS
    'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE FUNCTION advisory.holders(namespace text, id bigint)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz,
    waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text,
    query text, slots integer)
    AS 'MODULE_PATHNAME', 'advisory_holders_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, bigint) IS
    'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE FUNCTION advisory.holders(namespace text, id uuid)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz,
    waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text,
    query text, slots integer)
    AS 'MODULE_PATHNAME', 'advisory_holders_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, uuid) IS
    'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE FUNCTION advisory.terminate_holder(namespace text, name text, pid integer,
                                          timeout interval DEFAULT '5s',
                                          kind text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder(text, text, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE FUNCTION advisory.terminate_holder(namespace text, id bigint, pid integer,
                                          timeout interval DEFAULT '5s',
                                          kind text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder(text, bigint, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE FUNCTION advisory.terminate_holder(namespace text, id uuid, pid integer,
                                          timeout interval DEFAULT '5s',
                                          kind text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder(text, uuid, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this name';

