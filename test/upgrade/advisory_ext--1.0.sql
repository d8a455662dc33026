\echo Use "CREATE EXTENSION advisory_ext" to load this file. \quit
-- The schema is made here and not named in the control file, so that a schema
-- that somebody else has made, with whatever is in it, is never adopted.
CREATE SCHEMA advisory;
COMMENT ON SCHEMA advisory IS 'advisory_ext: named advisory locks with timeouts, and a decoded view of all advisory locks';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

-- Keys: from a name to the 64-bit lock identifier.
--
-- A permanent public format: the first 8 bytes, big-endian and signed, of SHA-256
-- over the UTF-8 bytes of namespace, one zero byte and name.

CREATE FUNCTION advisory.key(name text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_key_name'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory.key(text) IS
    'key of a name alone: first 8 bytes of SHA-256 over its UTF-8 bytes';

CREATE FUNCTION advisory.key(namespace text, name text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_key_text'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory.key(text, text) IS
    'key of a named lock, the same that pg_advisory_lock() takes';

CREATE FUNCTION advisory.key(namespace text, id bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_key_bigint'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory.key(text, bigint) IS
    'key of a named lock, the same that pg_advisory_lock() takes, with id::text as name';

CREATE FUNCTION advisory.key(namespace text, id uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_key_uuid'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory.key(text, uuid) IS
    'key of a named lock, the same that pg_advisory_lock() takes, with id::text as name';

-- Named locks.
--
-- Not STRICT: a null namespace or name is an error, never a silent nothing.  COST is
-- high so that the planner filters by everything else first.

---- lock, try_lock

CREATE FUNCTION advisory.lock(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock(text, text, interval) IS
    'take an exclusive session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock(text, bigint, interval) IS
    'take an exclusive session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock(text, uuid, interval) IS
    'take an exclusive session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.try_lock(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock(text, text, interval) IS
    'take an exclusive session-level lock if it is free within timeout (0: at once): true or false';

CREATE FUNCTION advisory.try_lock(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock(text, bigint, interval) IS
    'take an exclusive session-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

CREATE FUNCTION advisory.try_lock(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock(text, uuid, interval) IS
    'take an exclusive session-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

---- lock_shared, try_lock_shared

CREATE FUNCTION advisory.lock_shared(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared(text, text, interval) IS
    'take a shared session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.lock_shared(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared(text, bigint, interval) IS
    'take a shared session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.lock_shared(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared(text, uuid, interval) IS
    'take a shared session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.try_lock_shared(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared(text, text, interval) IS
    'take a shared session-level lock if it is free within timeout (0: at once): true or false';

CREATE FUNCTION advisory.try_lock_shared(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared(text, bigint, interval) IS
    'take a shared session-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

CREATE FUNCTION advisory.try_lock_shared(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared(text, uuid, interval) IS
    'take a shared session-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

---- xact_lock, try_xact_lock

CREATE FUNCTION advisory.xact_lock(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock(text, text, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.xact_lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock(text, bigint, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.xact_lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock(text, uuid, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.try_xact_lock(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock(text, text, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout (0: at once): true or false';

CREATE FUNCTION advisory.try_xact_lock(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock(text, bigint, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

CREATE FUNCTION advisory.try_xact_lock(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock(text, uuid, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

---- xact_lock_shared, try_xact_lock_shared

CREATE FUNCTION advisory.xact_lock_shared(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, text, interval) IS
    'take a shared transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.xact_lock_shared(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, bigint, interval) IS
    'take a shared transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.xact_lock_shared(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, uuid, interval) IS
    'take a shared transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.try_xact_lock_shared(namespace text, name text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, text, interval) IS
    'take a shared transaction-level lock if it is free within timeout (0: at once): true or false';

CREATE FUNCTION advisory.try_xact_lock_shared(namespace text, id bigint, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, bigint, interval) IS
    'take a shared transaction-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

CREATE FUNCTION advisory.try_xact_lock_shared(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, uuid, interval) IS
    'take a shared transaction-level lock if it is free within timeout (0: at once): true or false (id::text as name)';

---- unlock

CREATE FUNCTION advisory.unlock(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock(text, text) IS
    'release one exclusive session-level hold; false with a warning if there is none';

CREATE FUNCTION advisory.unlock(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock(text, bigint) IS
    'release one exclusive session-level hold; false with a warning if there is none (id::text as name)';

CREATE FUNCTION advisory.unlock(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock(text, uuid) IS
    'release one exclusive session-level hold; false with a warning if there is none (id::text as name)';

CREATE FUNCTION advisory.unlock_shared(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared(text, text) IS
    'release one shared session-level hold; false with a warning if there is none';

CREATE FUNCTION advisory.unlock_shared(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared(text, bigint) IS
    'release one shared session-level hold; false with a warning if there is none (id::text as name)';

CREATE FUNCTION advisory.unlock_shared(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared(text, uuid) IS
    'release one shared session-level hold; false with a warning if there is none (id::text as name)';

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
    'does this session hold the lock, in any mode and scope (id::text as name)';

CREATE FUNCTION advisory.holds(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_holds_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.holds(text, uuid) IS
    'does this session hold the lock, in any mode and scope (id::text as name)';

CREATE FUNCTION advisory.hold_count(namespace text, name text) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_hold_count_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.hold_count(text, text) IS
    'how often this session holds the lock through this extension, in any mode and scope';

CREATE FUNCTION advisory.hold_count(namespace text, id bigint) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_hold_count_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.hold_count(text, bigint) IS
    'how often this session holds the lock through this extension, in any mode and scope (id::text as name)';

CREATE FUNCTION advisory.hold_count(namespace text, id uuid) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_hold_count_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.hold_count(text, uuid) IS
    'how often this session holds the lock through this extension, in any mode and scope (id::text as name)';

CREATE FUNCTION advisory.is_locked(namespace text, name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked(text, text) IS
    'does anybody hold the lock at this moment: an observation, never a guard, since it can change before you act on it; to act, take the lock';

CREATE FUNCTION advisory.is_locked(namespace text, id bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked(text, bigint) IS
    'does anybody hold the lock at this moment: an observation, never a guard, since it can change before you act on it; to act, take the lock (id::text as name)';

CREATE FUNCTION advisory.is_locked(namespace text, id uuid) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked(text, uuid) IS
    'does anybody hold the lock at this moment: an observation, never a guard, since it can change before you act on it; to act, take the lock (id::text as name)';

CREATE FUNCTION advisory.holders(namespace text, name text)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, text) IS
    'the sessions that hold the lock and those that wait for it';

CREATE FUNCTION advisory.holders(namespace text, id bigint)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, bigint) IS
    'the sessions that hold the lock and those that wait for it (id::text as name)';

CREATE FUNCTION advisory.holders(namespace text, id uuid)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, uuid) IS
    'the sessions that hold the lock and those that wait for it (id::text as name)';

CREATE FUNCTION advisory.terminate_holder(namespace text, name text, pid integer, timeout interval DEFAULT '5s')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder(text, text, integer, interval) IS
    'end that session, only if it still holds the lock, and wait for its end within timeout; privileges as for pg_terminate_backend()';

CREATE FUNCTION advisory.terminate_holder(namespace text, id bigint, pid integer, timeout interval DEFAULT '5s')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder(text, bigint, integer, interval) IS
    'end that session, only if it still holds the lock, and wait for its end within timeout; privileges as for pg_terminate_backend() (id::text as name)';

CREATE FUNCTION advisory.terminate_holder(namespace text, id uuid, pid integer, timeout interval DEFAULT '5s')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder(text, uuid, integer, interval) IS
    'end that session, only if it still holds the lock, and wait for its end within timeout; privileges as for pg_terminate_backend() (id::text as name)';

-- The same for keys that an application already has: bigint keys as in
-- pg_advisory_lock(bigint).  They have names of their own because lock('42', '5s')
-- must never be able to mean two things.

CREATE FUNCTION advisory.lock_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever); label is the name that views and messages show';

CREATE FUNCTION advisory.try_lock_key(key bigint, timeout interval DEFAULT '0', label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock if it is free within timeout (0: at once): true or false; label is the name that views and messages show';

CREATE FUNCTION advisory.lock_shared_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever); label is the name that views and messages show';

CREATE FUNCTION advisory.try_lock_shared_key(key bigint, timeout interval DEFAULT '0', label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock if it is free within timeout (0: at once): true or false; label is the name that views and messages show';

CREATE FUNCTION advisory.xact_lock_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_key(bigint, interval, text) IS
    'take an exclusive transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever); label is the name that views and messages show';

CREATE FUNCTION advisory.try_xact_lock_key(key bigint, timeout interval DEFAULT '0', label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_key(bigint, interval, text) IS
    'take an exclusive transaction-level lock if it is free within timeout (0: at once): true or false; label is the name that views and messages show';

CREATE FUNCTION advisory.xact_lock_shared_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_shared_key(bigint, interval, text) IS
    'take a shared transaction-level lock: true, or error 55P03 when timeout is over (NULL: wait for ever); label is the name that views and messages show';

CREATE FUNCTION advisory.try_xact_lock_shared_key(key bigint, timeout interval DEFAULT '0', label text DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_shared_key(bigint, interval, text) IS
    'take a shared transaction-level lock if it is free within timeout (0: at once): true or false; label is the name that views and messages show';

CREATE FUNCTION advisory.unlock_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_key(bigint) IS
    'release one exclusive session-level hold; false with a warning if there is none';

CREATE FUNCTION advisory.unlock_shared_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unlock_shared_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_shared_key(bigint) IS
    'release one shared session-level hold; false with a warning if there is none';

CREATE FUNCTION advisory.holds_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_holds_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.holds_key(bigint) IS
    'does this session hold the lock, in any mode and scope';

CREATE FUNCTION advisory.is_locked_key(key bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_is_locked_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.is_locked_key(bigint) IS
    'does anybody hold the lock at this moment: an observation, never a guard, since it can change before you act on it; to act, take the lock';

CREATE FUNCTION advisory.holders_key(key bigint)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders_key(bigint) IS
    'the sessions that hold the lock and those that wait for it';

-- Several locks at once.
--
-- Each function also takes its list as text: that is what an untyped literal or
-- parameter ('{a,b}', as node-postgres sends arrays) resolves to, which could not
-- choose between the array types; it is read as a text[].

CREATE FUNCTION advisory.lock_all(namespace text, names text[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, text[], interval) IS
    'take exclusive session-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.lock_all(namespace text, ids bigint[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, bigint[], interval) IS
    'take exclusive session-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.lock_all(namespace text, ids uuid[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, uuid[], interval) IS
    'take exclusive session-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.lock_all(namespace text, names text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, text, interval) IS
    'take exclusive session-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever) (an untyped list, read as text[])';

CREATE FUNCTION advisory.try_lock_all(namespace text, names text[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, text[], interval) IS
    'take exclusive session-level locks on all of the list, in key order, if all are free within timeout: true, or false and none';

CREATE FUNCTION advisory.try_lock_all(namespace text, ids bigint[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, bigint[], interval) IS
    'take exclusive session-level locks on all of the list, in key order, if all are free within timeout: true, or false and none';

CREATE FUNCTION advisory.try_lock_all(namespace text, ids uuid[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, uuid[], interval) IS
    'take exclusive session-level locks on all of the list, in key order, if all are free within timeout: true, or false and none';

CREATE FUNCTION advisory.try_lock_all(namespace text, names text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, text, interval) IS
    'take exclusive session-level locks on all of the list, in key order, if all are free within timeout: true, or false and none (an untyped list, read as text[])';

CREATE FUNCTION advisory.xact_lock_all(namespace text, names text[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, text[], interval) IS
    'take exclusive transaction-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.xact_lock_all(namespace text, ids bigint[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, bigint[], interval) IS
    'take exclusive transaction-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.xact_lock_all(namespace text, ids uuid[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, uuid[], interval) IS
    'take exclusive transaction-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.xact_lock_all(namespace text, names text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, text, interval) IS
    'take exclusive transaction-level locks on all of the list, in key order: true, or error 55P03 and none when timeout is over (NULL: wait for ever) (an untyped list, read as text[])';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, names text[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, text[], interval) IS
    'take exclusive transaction-level locks on all of the list, in key order, if all are free within timeout: true, or false and none';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, ids bigint[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, bigint[], interval) IS
    'take exclusive transaction-level locks on all of the list, in key order, if all are free within timeout: true, or false and none';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, ids uuid[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, uuid[], interval) IS
    'take exclusive transaction-level locks on all of the list, in key order, if all are free within timeout: true, or false and none';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, names text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, text, interval) IS
    'take exclusive transaction-level locks on all of the list, in key order, if all are free within timeout: true, or false and none (an untyped list, read as text[])';

CREATE FUNCTION advisory.try_lock_any(namespace text, names text[], wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, text[], integer) IS
    'take exclusive session-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken';

CREATE FUNCTION advisory.try_lock_any(namespace text, ids bigint[], wanted integer DEFAULT 1)
    RETURNS SETOF bigint
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, bigint[], integer) IS
    'take exclusive session-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken';

CREATE FUNCTION advisory.try_lock_any(namespace text, ids uuid[], wanted integer DEFAULT 1)
    RETURNS SETOF uuid
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, uuid[], integer) IS
    'take exclusive session-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken';

CREATE FUNCTION advisory.try_lock_any(namespace text, names text, wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, text, integer) IS
    'take exclusive session-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken (an untyped list, read as text[])';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, names text[], wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, text[], integer) IS
    'take exclusive transaction-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, ids bigint[], wanted integer DEFAULT 1)
    RETURNS SETOF bigint
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, bigint[], integer) IS
    'take exclusive transaction-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, ids uuid[], wanted integer DEFAULT 1)
    RETURNS SETOF uuid
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, uuid[], integer) IS
    'take exclusive transaction-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, names text, wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, text, integer) IS
    'take exclusive transaction-level locks on up to wanted of the list that are free, in its order, looking at each once; returns those taken (an untyped list, read as text[])';

---- unlock_all: to zero and without a warning, for finally blocks

CREATE FUNCTION advisory.unlock_all(namespace text, name text) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, text) IS
    'release every session-level hold of the lock, in both modes; returns how many there were';

CREATE FUNCTION advisory.unlock_all(namespace text, id bigint) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, bigint) IS
    'release every session-level hold of the lock, in both modes; returns how many there were (id::text as name)';

CREATE FUNCTION advisory.unlock_all(namespace text, id uuid) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, uuid) IS
    'release every session-level hold of the lock, in both modes; returns how many there were (id::text as name)';

CREATE FUNCTION advisory.unlock_all(namespace text, names text[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_names'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, text[]) IS
    'release every session-level hold of each lock in the list, in both modes; returns how many there were';

CREATE FUNCTION advisory.unlock_all(namespace text, ids bigint[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_names'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, bigint[]) IS
    'release every session-level hold of each lock in the list, in both modes; returns how many there were';

CREATE FUNCTION advisory.unlock_all(namespace text, ids uuid[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_names'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, uuid[]) IS
    'release every session-level hold of each lock in the list, in both modes; returns how many there were';

CREATE FUNCTION advisory.unlock_all(namespace text) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_namespace'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text) IS
    'release every session-level hold that this session took by name in the namespace through this extension; returns how many there were';

-- Semaphores: at most K at once.
--
-- Not STRICT, and of high COST, as the locks are.

---- acquire, try_acquire

CREATE FUNCTION advisory.acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire(text, text, integer, interval) IS
    'take one of the given number of slots for the session: which one, or error 55P03 when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.acquire(namespace text, id bigint, slots integer, timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire(text, bigint, integer, interval) IS
    'take one of the given number of slots for the session: which one, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.acquire(namespace text, id uuid, slots integer, timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire(text, uuid, integer, interval) IS
    'take one of the given number of slots for the session: which one, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.try_acquire(namespace text, name text, slots integer, timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire(text, text, integer, interval) IS
    'take one of the given number of slots for the session if one is free within timeout (0: at once): which one, or NULL';

CREATE FUNCTION advisory.try_acquire(namespace text, id bigint, slots integer, timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire(text, bigint, integer, interval) IS
    'take one of the given number of slots for the session if one is free within timeout (0: at once): which one, or NULL (id::text as name)';

CREATE FUNCTION advisory.try_acquire(namespace text, id uuid, slots integer, timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire(text, uuid, integer, interval) IS
    'take one of the given number of slots for the session if one is free within timeout (0: at once): which one, or NULL (id::text as name)';

---- xact_acquire, try_xact_acquire

CREATE FUNCTION advisory.xact_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire(text, text, integer, interval) IS
    'take one of the given number of slots until the end of the transaction: which one, or error 55P03 when timeout is over (NULL: wait for ever)';

CREATE FUNCTION advisory.xact_acquire(namespace text, id bigint, slots integer, timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire(text, bigint, integer, interval) IS
    'take one of the given number of slots until the end of the transaction: which one, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.xact_acquire(namespace text, id uuid, slots integer, timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire(text, uuid, integer, interval) IS
    'take one of the given number of slots until the end of the transaction: which one, or error 55P03 when timeout is over (NULL: wait for ever) (id::text as name)';

CREATE FUNCTION advisory.try_xact_acquire(namespace text, name text, slots integer, timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, text, integer, interval) IS
    'take one of the given number of slots until the end of the transaction if one is free within timeout (0: at once): which one, or NULL';

CREATE FUNCTION advisory.try_xact_acquire(namespace text, id bigint, slots integer, timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, bigint, integer, interval) IS
    'take one of the given number of slots until the end of the transaction if one is free within timeout (0: at once): which one, or NULL (id::text as name)';

CREATE FUNCTION advisory.try_xact_acquire(namespace text, id uuid, slots integer, timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, uuid, integer, interval) IS
    'take one of the given number of slots until the end of the transaction if one is free within timeout (0: at once): which one, or NULL (id::text as name)';

---- release

CREATE FUNCTION advisory.release(namespace text, name text, slot integer DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_release_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release(text, text, integer) IS
    'give back a slot that this session took (NULL: the one that it took last): true; or false, with a warning, if it has none';

CREATE FUNCTION advisory.release(namespace text, id bigint, slot integer DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_release_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release(text, bigint, integer) IS
    'give back a slot that this session took (NULL: the one that it took last): true; or false, with a warning, if it has none (id::text as name)';

CREATE FUNCTION advisory.release(namespace text, id uuid, slot integer DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_release_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release(text, uuid, integer) IS
    'give back a slot that this session took (NULL: the one that it took last): true; or false, with a warning, if it has none (id::text as name)';

---- await_acquire: a procedure, as await_lock is

CREATE PROCEDURE advisory.await_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL, INOUT slot integer DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_acquire_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_acquire(text, text, integer, interval, integer) IS
    'take one of the given number of slots for the session, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released';

CREATE PROCEDURE advisory.await_acquire(namespace text, id bigint, slots integer, timeout interval DEFAULT NULL, INOUT slot integer DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_acquire_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_acquire(text, bigint, integer, interval, integer) IS
    'take one of the given number of slots for the session, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released (id::text as name)';

CREATE PROCEDURE advisory.await_acquire(namespace text, id uuid, slots integer, timeout interval DEFAULT NULL, INOUT slot integer DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_acquire_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_acquire(text, uuid, integer, interval, integer) IS
    'take one of the given number of slots for the session, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released (id::text as name)';
-- Waiting without a snapshot.
--
-- Procedures, because only those can release the session's snapshot.  They have no SET
-- clause, because a procedure with one cannot.

CREATE PROCEDURE advisory.await_lock(namespace text, name text, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock(text, text, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released';

CREATE PROCEDURE advisory.await_lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock(text, bigint, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released (id::text as name)';

CREATE PROCEDURE advisory.await_lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock(text, uuid, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released (id::text as name)';

CREATE PROCEDURE advisory.await_lock_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_key'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock by key, waiting without a snapshot; error 55P03 when timeout is over, 25001 where the snapshot cannot be released';

CREATE PROCEDURE advisory.await_lock_shared(namespace text, name text, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, text, interval) IS
    'take a shared session-level lock, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released';

CREATE PROCEDURE advisory.await_lock_shared(namespace text, id bigint, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, bigint, interval) IS
    'take a shared session-level lock, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released (id::text as name)';

CREATE PROCEDURE advisory.await_lock_shared(namespace text, id uuid, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, uuid, interval) IS
    'take a shared session-level lock, waiting without a snapshot, so that CREATE INDEX CONCURRENTLY and vacuum are not held up; error 55P03 when timeout is over, 25001 where the snapshot cannot be released (id::text as name)';

CREATE PROCEDURE advisory.await_lock_shared_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_key'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock by key, waiting without a snapshot; error 55P03 when timeout is over, 25001 where the snapshot cannot be released';

-- Well-known keys: those of migration tools and extensions, which the library knows,
-- and those that users label.

CREATE TABLE advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL,
    note text,
    CONSTRAINT key_labels_one_form CHECK (
        CASE WHEN key IS NOT NULL THEN key1 IS NULL AND key2 IS NULL
             ELSE key1 IS NOT NULL AND key2 IS NOT NULL END),
    CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_unique UNIQUE NULLS NOT DISTINCT (key, key1, key2, label)
);
-- The unique key has nulls, so it cannot be the replica identity.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS
    'what keys of this database are for, as its users say; shown in locks.known_as and in known_keys';
COMMENT ON COLUMN advisory.key_labels.key IS 'key, as in pg_advisory_lock(bigint); null for a pair';
COMMENT ON COLUMN advisory.key_labels.key1 IS 'first key of a pair, as in pg_advisory_lock(int, int)';
COMMENT ON COLUMN advisory.key_labels.key2 IS 'second key of a pair';
COMMENT ON COLUMN advisory.key_labels.label IS 'what the lock is called, up to 200 characters';
COMMENT ON COLUMN advisory.key_labels.note IS 'what there is to say about it, up to 1000 characters';
GRANT SELECT ON advisory.key_labels TO PUBLIC;
SELECT pg_extension_config_dump('advisory.key_labels', '');

-- The table belongs to the superuser that a trusted extension's script runs as; labels
-- are written by the role that installs it, and by those to whom that role grants it.
-- (The script's placeholder for that role refuses names with quotes, $ or \.)
DO $$
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON advisory.key_labels TO %I WITH GRANT OPTION',
                   (SELECT pg_get_userbyid(extowner) FROM pg_extension WHERE extname = 'advisory_ext'));
END $$;

CREATE FUNCTION advisory._known_keys()
    RETURNS TABLE (
        tool text,
        purpose text,
        form text,
        scope text,
        match text,
        rule text,
        source text,
        key bigint,
        key1 integer,
        key2 integer)
    AS 'MODULE_PATHNAME', 'advisory_known_keys'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 30;
COMMENT ON FUNCTION advisory._known_keys() IS 'rows of advisory.known_keys';

CREATE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM advisory._known_keys();
COMMENT ON VIEW advisory.known_keys IS
    'well-known keys of migration tools and extensions, and those of key_labels; candidates, not verdicts';
COMMENT ON COLUMN advisory.known_keys.tool IS 'program that takes the lock, or the label of key_labels';
COMMENT ON COLUMN advisory.known_keys.purpose IS 'what for, with the table or queue where there is one; or the note of key_labels';
COMMENT ON COLUMN advisory.known_keys.form IS 'bigint, int4 pair, or the objsubids of a class';
COMMENT ON COLUMN advisory.known_keys.scope IS 'how the program takes it: session, transaction, or both';
COMMENT ON COLUMN advisory.known_keys.match IS 'how a lock is recognised: exact, formula, range or class';
COMMENT ON COLUMN advisory.known_keys.rule IS 'the key, or how it is made';
COMMENT ON COLUMN advisory.known_keys.source IS 'where this is known from: repository and file, or key_labels';
COMMENT ON COLUMN advisory.known_keys.key IS 'the key in this database, bigint form; null where there is none, or not only one';
COMMENT ON COLUMN advisory.known_keys.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.known_keys.key2 IS 'second key of the pair form, signed';
GRANT SELECT ON advisory.known_keys TO PUBLIC;

-- Loads the known keys once for each query, so that further rows cost little.
CREATE FUNCTION advisory._known_as(database oid, high integer, low integer, objsubid integer) RETURNS text[]
    AS 'MODULE_PATHNAME', 'advisory_known_as'
    LANGUAGE C STABLE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory._known_as(oid, integer, integer, integer) IS
    'what a lock tag may be by known_keys, labels first; null if it fits nothing';
-- Views.  PUBLIC may read each of them.  The functions that make the rows hide values
-- from roles without the privilege to see them.

CREATE FUNCTION advisory._locks_handler()
    RETURNS fdw_handler
    AS 'MODULE_PATHNAME', 'advisory_locks_handler'
    LANGUAGE C;
COMMENT ON FUNCTION advisory._locks_handler() IS 'handler of the foreign table advisory._locks';

CREATE FOREIGN DATA WRAPPER advisory_ext HANDLER advisory._locks_handler NO VALIDATOR;
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
    datid oid,
    high integer,
    low integer,
    objsubid integer)
    SERVER advisory_ext;
COMMENT ON FOREIGN TABLE advisory._locks IS 'rows of advisory.locks';

CREATE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace,
           name, slot, key, key1, key2, mode, scope, granted, wait_start,
           waited, acquired_at, held, blocked_by, advisory._known_as(datid, high, low, objsubid) AS known_as,
           gid, query
    FROM advisory._locks;
COMMENT ON VIEW advisory.locks IS
    'every advisory lock and waiter on the server, decoded';
COMMENT ON COLUMN advisory.locks.pid IS 'process that holds or waits; null for a prepared transaction';
COMMENT ON COLUMN advisory.locks.database IS 'database that the lock is in; null if it was dropped';
COMMENT ON COLUMN advisory.locks.role IS 'role of the session, or owner of the prepared transaction';
COMMENT ON COLUMN advisory.locks.application_name IS 'application_name of the session';
COMMENT ON COLUMN advisory.locks.client_addr IS 'address of the client; null for a socket, and without the privilege to see it';
COMMENT ON COLUMN advisory.locks.state IS 'state of the session as in pg_stat_activity; null without the privilege to see it';
COMMENT ON COLUMN advisory.locks.kind IS 'lock, semaphore (a slot), queue (a waiter for a slot) or foreign (neither bigint, pair nor ours)';
COMMENT ON COLUMN advisory.locks.namespace IS 'namespace of the lock; null where never seen';
COMMENT ON COLUMN advisory.locks.name IS 'name or label of the lock; null where never seen';
COMMENT ON COLUMN advisory.locks.slot IS 'slot of a semaphore, from 1';
COMMENT ON COLUMN advisory.locks.key IS '64-bit key';
COMMENT ON COLUMN advisory.locks.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.locks.key2 IS 'second key of the pair form, signed';
COMMENT ON COLUMN advisory.locks.mode IS 'exclusive or shared';
COMMENT ON COLUMN advisory.locks.scope IS 'session or transaction; null where unknown';
COMMENT ON COLUMN advisory.locks.granted IS 'true: held; false: waited for';
COMMENT ON COLUMN advisory.locks.wait_start IS 'when the wait began';
COMMENT ON COLUMN advisory.locks.waited IS 'how long it has lasted';
COMMENT ON COLUMN advisory.locks.acquired_at IS 'when the lock was acquired; null for locks taken by the built-in functions';
COMMENT ON COLUMN advisory.locks.held IS 'how long it has been held';
COMMENT ON COLUMN advisory.locks.blocked_by IS 'processes in the way of a waiter; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.locks.known_as IS 'well-known uses of this key, as candidates, not verdicts; see known_keys';
COMMENT ON COLUMN advisory.locks.gid IS 'identifier of the prepared transaction';
COMMENT ON COLUMN advisory.locks.query IS 'query of the session; hidden without the privilege to see it';
GRANT SELECT ON advisory.locks TO PUBLIC;
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
    'semaphores of this database that somebody has or awaits a slot of';
COMMENT ON COLUMN advisory.semaphores.namespace IS 'namespace; null where never seen';
COMMENT ON COLUMN advisory.semaphores.name IS 'name; null where never seen';
COMMENT ON COLUMN advisory.semaphores.key IS 'key of the name';
COMMENT ON COLUMN advisory.semaphores.slots IS 'how many slots it has, according to the sessions that use it; the largest number if they disagree; null if unknown';
COMMENT ON COLUMN advisory.semaphores.in_use IS 'slots that are taken';
COMMENT ON COLUMN advisory.semaphores.free IS 'slots that are not';
COMMENT ON COLUMN advisory.semaphores.waiting IS 'sessions that wait for a slot';
COMMENT ON COLUMN advisory.semaphores.holders IS 'process of each taken slot, in their order; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.semaphores.slots_disagree IS 'do sessions use it with different numbers of slots?';
GRANT SELECT ON advisory.semaphores TO PUBLIC;
-- Who waits for whom.

CREATE FUNCTION advisory._waits()
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
        query text)
    AS 'MODULE_PATHNAME', 'advisory_waits'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory._waits() IS 'rows of advisory.waits';

CREATE VIEW advisory.waits AS
    SELECT root_pid, depth, path, pid, waits_for_pid, namespace, name, key, mode, waited, state, application_name, query
    FROM advisory._waits();
COMMENT ON VIEW advisory.waits IS
    'who waits for whom, as trees that lead to a waiter for an advisory lock';
COMMENT ON COLUMN advisory.waits.root_pid IS 'process at the root of the tree; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.waits.depth IS 'how far from the root, which has depth 0';
COMMENT ON COLUMN advisory.waits.path IS 'processes from the root to this one';
COMMENT ON COLUMN advisory.waits.pid IS 'process; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.waits.waits_for_pid IS 'process in its way; null for a root, which waits for nothing';
COMMENT ON COLUMN advisory.waits.namespace IS 'namespace of the lock; null where never seen, and for what is no advisory lock';
COMMENT ON COLUMN advisory.waits.name IS 'name or label of the lock; null where never seen, and for what is no advisory lock';
COMMENT ON COLUMN advisory.waits.key IS '64-bit key; null for a pair, and for what is no advisory lock';
COMMENT ON COLUMN advisory.waits.mode IS 'mode waited for; of a root, the mode held';
COMMENT ON COLUMN advisory.waits.waited IS 'how long the wait has lasted; null for a root';
COMMENT ON COLUMN advisory.waits.state IS 'state of the session as in pg_stat_activity; null without the privilege to see it';
COMMENT ON COLUMN advisory.waits.application_name IS 'application_name of the session';
COMMENT ON COLUMN advisory.waits.query IS 'query of the session; hidden without the privilege to see it';
GRANT SELECT ON advisory.waits TO PUBLIC;

CREATE FUNCTION advisory.wait_tree() RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_wait_tree'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory.wait_tree() IS
    'who waits for whom, as indented text: blockers first, under each the sessions that wait for it';
-- Statistics, and the table of names that they are kept in.

CREATE FUNCTION advisory._stats()
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
        stats_since timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_stats'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1000;
COMMENT ON FUNCTION advisory._stats() IS 'rows of advisory.stats';

CREATE VIEW advisory.stats AS
    SELECT namespace, name, acquired, contended, failed, timeouts, skipped, wait_total,
           wait_max, hold_total, hold_max, last_acquired_at, stats_since
    FROM advisory._stats();
COMMENT ON VIEW advisory.stats IS
    'what happened to the locks of this database, by name';
COMMENT ON COLUMN advisory.stats.namespace IS 'namespace; null for the label of a key; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.stats.name IS 'name or label; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.stats.acquired IS 'how often it was granted';
COMMENT ON COLUMN advisory.stats.contended IS 'how often it had to be waited for, however the wait ended';
COMMENT ON COLUMN advisory.stats.failed IS 'how often it was not free and not waited for';
COMMENT ON COLUMN advisory.stats.timeouts IS 'how often a timeout, or lock_timeout, ended the wait';
COMMENT ON COLUMN advisory.stats.skipped IS 'how often advisory.run() ran nothing because it was taken';
COMMENT ON COLUMN advisory.stats.wait_total IS 'time spent in all waits together';
COMMENT ON COLUMN advisory.stats.wait_max IS 'the longest wait';
COMMENT ON COLUMN advisory.stats.hold_total IS 'time for which it was held, all holds that have ended together';
COMMENT ON COLUMN advisory.stats.hold_max IS 'the longest of these holds';
COMMENT ON COLUMN advisory.stats.last_acquired_at IS 'when it was last granted';
COMMENT ON COLUMN advisory.stats.stats_since IS 'when counting began';
GRANT SELECT ON advisory.stats TO PUBLIC;

CREATE FUNCTION advisory.stats_reset()
    RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_stats_reset'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.stats_reset() IS 'set the statistics of this database''s locks to zero';
REVOKE ALL ON FUNCTION advisory.stats_reset() FROM PUBLIC;

CREATE FUNCTION advisory._directory()
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
COMMENT ON FUNCTION advisory._directory() IS 'row of advisory.directory';

CREATE VIEW advisory.directory AS
    SELECT available, names, max_names, evicted, not_stored, collisions, reason
    FROM advisory._directory();
COMMENT ON VIEW advisory.directory IS
    'the state of the server''s table of names';
COMMENT ON COLUMN advisory.directory.available IS 'can names be shared at all; false while shared memory is not available';
COMMENT ON COLUMN advisory.directory.names IS 'names in it, of all databases';
COMMENT ON COLUMN advisory.directory.max_names IS 'how many names it may hold';
COMMENT ON COLUMN advisory.directory.evicted IS 'names that were removed for others, with their statistics';
COMMENT ON COLUMN advisory.directory.not_stored IS 'how often there was no room for a name';
COMMENT ON COLUMN advisory.directory.collisions IS 'how often two different names had the same key';
COMMENT ON COLUMN advisory.directory.reason IS 'the server''s error message if it is not available';
GRANT SELECT ON advisory.directory TO PUBLIC;
-- Session-level locks that look forgotten.

CREATE FUNCTION advisory._leaks()
    RETURNS TABLE (
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
        acquired_at timestamptz,
        held interval,
        taken_by_role text,
        taken_by_application text,
        reason text)
    AS 'MODULE_PATHNAME', 'advisory_leaks'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory._leaks() IS 'rows of advisory.leaks';

CREATE VIEW advisory.leaks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace,
           name, slot, key, key1, key2, mode, acquired_at, held, taken_by_role,
           taken_by_application, reason
    FROM advisory._leaks();
COMMENT ON VIEW advisory.leaks IS
    'session-level locks that look forgotten, and why; of sessions that the user may see';
COMMENT ON COLUMN advisory.leaks.pid IS 'process that holds it';
COMMENT ON COLUMN advisory.leaks.database IS 'database that the lock is in';
COMMENT ON COLUMN advisory.leaks.role IS 'role of the session';
COMMENT ON COLUMN advisory.leaks.application_name IS 'application_name of the session, at present';
COMMENT ON COLUMN advisory.leaks.client_addr IS 'address of the client (or pooler); null for a socket';
COMMENT ON COLUMN advisory.leaks.state IS 'state of the session as in pg_stat_activity';
COMMENT ON COLUMN advisory.leaks.kind IS 'lock, semaphore (a slot) or foreign';
COMMENT ON COLUMN advisory.leaks.namespace IS 'namespace of the lock; null where never seen';
COMMENT ON COLUMN advisory.leaks.name IS 'name or label of the lock; null where never seen';
COMMENT ON COLUMN advisory.leaks.slot IS 'slot of a semaphore, from 1';
COMMENT ON COLUMN advisory.leaks.key IS '64-bit key';
COMMENT ON COLUMN advisory.leaks.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.leaks.key2 IS 'second key of the pair form, signed';
COMMENT ON COLUMN advisory.leaks.mode IS 'exclusive or shared';
COMMENT ON COLUMN advisory.leaks.acquired_at IS 'when it was acquired; null for locks taken by the built-in functions';
COMMENT ON COLUMN advisory.leaks.held IS 'how long it has been held';
COMMENT ON COLUMN advisory.leaks.taken_by_role IS 'current user when it was taken; null for locks taken by the built-in functions';
COMMENT ON COLUMN advisory.leaks.taken_by_application IS 'application_name when it was taken; null for locks taken by the built-in functions';
COMMENT ON COLUMN advisory.leaks.reason IS 'what makes it look forgotten';
GRANT SELECT ON advisory.leaks TO PUBLIC;
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
-- How full the server's lock table is.

CREATE FUNCTION advisory._pressure(
    by_counting boolean DEFAULT false,
    OUT status text,
    OUT percent_used double precision,
    OUT headroom bigint,
    OUT locks_used bigint,
    OUT locks_estimated bigint,
    OUT locks_guaranteed bigint,
    OUT percent_of_guaranteed double precision,
    OUT holders_used bigint,
    OUT holders_guaranteed bigint,
    OUT recommended_max_locks_per_transaction integer,
    OUT exact boolean,
    OUT holders_estimated bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'advisory_pressure'
    LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION advisory._pressure(boolean) IS
    'row of advisory.pressure; what is in use counted lock by lock if by_counting';

CREATE VIEW advisory.pressure AS
    SELECT status, percent_used, headroom, locks_used, locks_estimated, locks_guaranteed,
           percent_of_guaranteed, holders_used, holders_guaranteed,
           recommended_max_locks_per_transaction, exact, holders_estimated
    FROM advisory._pressure();
COMMENT ON VIEW advisory.pressure IS
    'how full the server''s shared lock table is, and how full it can get; one row, at no cost worth mentioning';
COMMENT ON COLUMN advisory.pressure.status IS
    'ok, warning or critical, by advisory_ext.pressure_warning and pressure_critical';
COMMENT ON COLUMN advisory.pressure.percent_used IS
    'what is in use in percent of the estimated capacity, of the fuller of the two tables';
COMMENT ON COLUMN advisory.pressure.headroom IS 'how many further locks with one holder each are estimated to fit';
COMMENT ON COLUMN advisory.pressure.locks_used IS 'locks of all types that are held or awaited, without those on the fast path';
COMMENT ON COLUMN advisory.pressure.locks_estimated IS 'how many locks it will really hold before it is full';
COMMENT ON COLUMN advisory.pressure.locks_guaranteed IS
    'how many it holds at least: max_locks_per_transaction times the number of processes and prepared transactions';
COMMENT ON COLUMN advisory.pressure.percent_of_guaranteed IS
    'what is in use in percent of what is guaranteed, of the fuller table; can be more than 100';
COMMENT ON COLUMN advisory.pressure.holders_used IS
    'entries of the second table: one for each session that holds or awaits a lock';
COMMENT ON COLUMN advisory.pressure.holders_guaranteed IS 'how many such entries there are room for at least';
COMMENT ON COLUMN advisory.pressure.recommended_max_locks_per_transaction IS
    'setting that would bring the present use to ok; the present one if it is ok';
COMMENT ON COLUMN advisory.pressure.exact IS
    'false where locks had to be counted one by one, or where it cannot be told how the tables have grown';
COMMENT ON COLUMN advisory.pressure.holders_estimated IS 'how many entries the second table will have when the pool is full';
GRANT SELECT ON advisory.pressure TO PUBLIC;

CREATE FUNCTION advisory._pressure_by_backend(
    OUT pid integer,
    OUT role text,
    OUT application_name text,
    OUT state text,
    OUT locks bigint,
    OUT advisory_locks bigint,
    OUT session_locks bigint,
    OUT statement_cost interval,
    OUT gid text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'advisory_pressure_by_backend'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory._pressure_by_backend() IS 'rows of advisory.pressure_by_backend';

CREATE VIEW advisory.pressure_by_backend AS
    SELECT pid, role, application_name, state, locks, advisory_locks, session_locks, statement_cost, gid
    FROM advisory._pressure_by_backend()
    ORDER BY locks DESC, pid;
COMMENT ON VIEW advisory.pressure_by_backend IS
    'what each session and prepared transaction has in the server''s shared lock table, the most first';
COMMENT ON COLUMN advisory.pressure_by_backend.pid IS 'process; null for a prepared transaction';
COMMENT ON COLUMN advisory.pressure_by_backend.role IS 'role of the session; of a prepared transaction, its owner';
COMMENT ON COLUMN advisory.pressure_by_backend.application_name IS 'application_name of the session';
COMMENT ON COLUMN advisory.pressure_by_backend.state IS
    'state as in pg_stat_activity; null for other roles'' sessions unless a member of pg_read_all_stats asks';
COMMENT ON COLUMN advisory.pressure_by_backend.locks IS 'locks of all types, without those on the fast path';
COMMENT ON COLUMN advisory.pressure_by_backend.advisory_locks IS 'advisory locks among them';
COMMENT ON COLUMN advisory.pressure_by_backend.session_locks IS
    'session-level locks among those, as far as known: all outside a transaction, in one those taken through this extension';
COMMENT ON COLUMN advisory.pressure_by_backend.statement_cost IS
    'what they cost the session at the end of every transaction, so of each statement outside a block: an estimate';
COMMENT ON COLUMN advisory.pressure_by_backend.gid IS 'global identifier of a prepared transaction';
GRANT SELECT ON advisory.pressure_by_backend TO PUBLIC;

CREATE FUNCTION advisory._pressure_by_type(
    OUT type text,
    OUT locks bigint,
    OUT holders bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'advisory_pressure_by_type'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 5;
COMMENT ON FUNCTION advisory._pressure_by_type() IS 'rows of advisory.pressure_by_type';

CREATE VIEW advisory.pressure_by_type AS
    SELECT type, locks, holders
    FROM advisory._pressure_by_type()
    ORDER BY locks DESC, type;
COMMENT ON VIEW advisory.pressure_by_type IS
    'what is in the server''s shared lock table by type of lock, the most first';
COMMENT ON COLUMN advisory.pressure_by_type.type IS 'type of the lock, as pg_locks.locktype';
COMMENT ON COLUMN advisory.pressure_by_type.locks IS 'locks of that type, without those on the fast path';
COMMENT ON COLUMN advisory.pressure_by_type.holders IS 'one for each session that holds or awaits one';
GRANT SELECT ON advisory.pressure_by_type TO PUBLIC;

CREATE FUNCTION advisory.can_fit(n integer)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_can_fit'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.can_fit(integer) IS
    'would this many more locks fit into the server''s lock table? An estimate for this moment, which reserves nothing';
-- Settings.

CREATE FUNCTION advisory._settings()
    RETURNS TABLE (
        name text,
        setting text,
        unit text,
        default_setting text,
        context text,
        description text)
    AS 'MODULE_PATHNAME', 'advisory_settings'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory._settings() IS 'rows of advisory.settings';

CREATE VIEW advisory.settings AS
    SELECT name, setting, unit, default_setting, context, description
    FROM advisory._settings();
COMMENT ON VIEW advisory.settings IS
    'the settings of advisory_ext, also before the session has loaded the library';
COMMENT ON COLUMN advisory.settings.name IS 'name of the setting';
COMMENT ON COLUMN advisory.settings.setting IS 'present value';
COMMENT ON COLUMN advisory.settings.unit IS 'unit of the value';
COMMENT ON COLUMN advisory.settings.default_setting IS 'value when nobody sets it';
COMMENT ON COLUMN advisory.settings.context IS 'what it takes to set it, as in pg_settings';
COMMENT ON COLUMN advisory.settings.description IS 'what it does';
GRANT SELECT ON advisory.settings TO PUBLIC;
-- Jobs: a command that runs while a lock is held.
--
-- Procedures, so that the command may commit; without a SET clause, which would forbid it.

CREATE PROCEDURE advisory.run(namespace text, name text, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean) IS
    'run a command while holding an exclusive lock (with slots: one of that many slots), until its effects are committed; if it is taken, skip the command or raise error 55P03';

CREATE PROCEDURE advisory.run(namespace text, id bigint, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, bigint, text, interval, integer, text, boolean) IS
    'run a command while holding an exclusive lock (with slots: one of that many slots), until its effects are committed; if it is taken, skip the command or raise error 55P03 (id::text as name)';

CREATE PROCEDURE advisory.run(namespace text, id uuid, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, uuid, text, interval, integer, text, boolean) IS
    'run a command while holding an exclusive lock (with slots: one of that many slots), until its effects are committed; if it is taken, skip the command or raise error 55P03 (id::text as name)';
