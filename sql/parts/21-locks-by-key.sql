-- The same for keys that an application already has: bigint keys as in
-- pg_advisory_lock(bigint).  They have names of their own because lock('42', '5s')
-- must never be able to mean two things.

CREATE FUNCTION advisory.lock_key(key bigint, timeout interval DEFAULT NULL,
                                  label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_lock_key(key bigint, timeout interval DEFAULT '0',
                                      label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE FUNCTION advisory.lock_shared_key(key bigint, timeout interval DEFAULT NULL,
                                         label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_lock_shared_key(key bigint, timeout interval DEFAULT '0',
                                             label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock if it is free within timeout';

CREATE FUNCTION advisory.xact_lock_key(key bigint, timeout interval DEFAULT NULL,
                                       label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_key(bigint, interval, text) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_xact_lock_key(key bigint, timeout interval DEFAULT '0',
                                           label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_key(bigint, interval, text) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE FUNCTION advisory.xact_lock_shared_key(key bigint, timeout interval DEFAULT NULL,
                                              label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared_key(bigint, interval, text) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE FUNCTION advisory.try_xact_lock_shared_key(key bigint, timeout interval DEFAULT '0',
                                                  label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared_key(bigint, interval, text) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE FUNCTION advisory.unlock_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_key(bigint) IS
    'release one exclusive session-level hold; false if there is none';

CREATE FUNCTION advisory.unlock_shared_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared_key(bigint) IS
    'release one shared session-level hold; false if there is none';

CREATE FUNCTION advisory.holds_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_holds_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.holds_key(bigint) IS
    'does this session hold the lock, in any mode and scope';

CREATE FUNCTION advisory.is_locked_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked_key(bigint) IS
    'does any session hold the lock: an observation, never a guard';

CREATE FUNCTION advisory.holders_key(key bigint)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz,
    waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text,
    query text, slots integer)
    AS 'MODULE_PATHNAME', 'advisory_holders_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders_key(bigint) IS
    'sessions that hold the lock, or a slot of this key, or wait for it';


CREATE FUNCTION advisory.terminate_holder_key(key bigint, pid integer,
                                              timeout interval DEFAULT '5s',
                                              kind text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder_key(bigint, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this key';
