-- Semaphores: at most K at once.
--
-- Like those of locks, the functions are not STRICT and have a high COST.

---- acquire, try_acquire

CREATE FUNCTION advisory.acquire(namespace text, name text, slots integer,
                                 timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire(text, text, integer, interval) IS
    'take a slot of a semaphore for the session, or error 55P03';

CREATE FUNCTION advisory.acquire(namespace text, id bigint, slots integer,
                                 timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire(text, bigint, integer, interval) IS
    'take a slot of a semaphore for the session, or error 55P03';

CREATE FUNCTION advisory.acquire(namespace text, id uuid, slots integer,
                                 timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire(text, uuid, integer, interval) IS
    'take a slot of a semaphore for the session, or error 55P03';

CREATE FUNCTION advisory.try_acquire(namespace text, name text, slots integer,
                                     timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire(text, text, integer, interval) IS
    'take a slot for the session if one is free within timeout, or NULL';

CREATE FUNCTION advisory.try_acquire(namespace text, id bigint, slots integer,
                                     timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire(text, bigint, integer, interval) IS
    'take a slot for the session if one is free within timeout, or NULL';

CREATE FUNCTION advisory.try_acquire(namespace text, id uuid, slots integer,
                                     timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire(text, uuid, integer, interval) IS
    'take a slot for the session if one is free within timeout, or NULL';

---- xact_acquire, try_xact_acquire

CREATE FUNCTION advisory.xact_acquire(namespace text, name text, slots integer,
                                      timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire(text, text, integer, interval) IS
    'take a slot of a semaphore for the transaction, or error 55P03';

CREATE FUNCTION advisory.xact_acquire(namespace text, id bigint, slots integer,
                                      timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire(text, bigint, integer, interval) IS
    'take a slot of a semaphore for the transaction, or error 55P03';

CREATE FUNCTION advisory.xact_acquire(namespace text, id uuid, slots integer,
                                      timeout interval DEFAULT NULL)
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire(text, uuid, integer, interval) IS
    'take a slot of a semaphore for the transaction, or error 55P03';

CREATE FUNCTION advisory.try_xact_acquire(namespace text, name text, slots integer,
                                          timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, text, integer, interval) IS
    'take a slot for the transaction if one is free within timeout, or NULL';

CREATE FUNCTION advisory.try_xact_acquire(namespace text, id bigint, slots integer,
                                          timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, bigint, integer, interval) IS
    'take a slot for the transaction if one is free within timeout, or NULL';

CREATE FUNCTION advisory.try_xact_acquire(namespace text, id uuid, slots integer,
                                          timeout interval DEFAULT '0')
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, uuid, integer, interval) IS
    'take a slot for the transaction if one is free within timeout, or NULL';

---- A slot of each of the first names that have one free

CREATE FUNCTION advisory.try_acquire_any(namespace text, names text[], slots integer,
                                         wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, text[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_acquire_any(namespace text, ids bigint[], slots integer,
                                         wanted integer DEFAULT 1)
    RETURNS TABLE (id bigint, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, bigint[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_acquire_any(namespace text, ids uuid[], slots integer,
                                         wanted integer DEFAULT 1)
    RETURNS TABLE (id uuid, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, uuid[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_acquire_any(namespace text, names text, slots integer,
                                         wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, text, integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, names text[], slots integer,
                                              wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, text[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, ids bigint[], slots integer,
                                              wanted integer DEFAULT 1)
    RETURNS TABLE (id bigint, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, bigint[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, ids uuid[], slots integer,
                                              wanted integer DEFAULT 1)
    RETURNS TABLE (id uuid, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, uuid[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, names text, slots integer,
                                              wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, text, integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

---- release

CREATE FUNCTION advisory.release(namespace text, name text, slot integer DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_release_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release(text, text, integer) IS
    'give back a slot of this session (NULL: the one that it took last)';

CREATE FUNCTION advisory.release(namespace text, id bigint, slot integer DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_release_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release(text, bigint, integer) IS
    'give back a slot of this session (NULL: the one that it took last)';

CREATE FUNCTION advisory.release(namespace text, id uuid, slot integer DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_release_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release(text, uuid, integer) IS
    'give back a slot of this session (NULL: the one that it took last)';

---- acquire_many, try_acquire_many, xact_acquire_many, try_xact_acquire_many, release_many

CREATE FUNCTION advisory.acquire_many(namespace text, name text, slots integer,
                                      wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_acquire_many_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the session, all or none, or error 55P03';

CREATE FUNCTION advisory.acquire_many(namespace text, id bigint, slots integer,
                                      wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_acquire_many_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the session, all or none, or error 55P03';

CREATE FUNCTION advisory.acquire_many(namespace text, id uuid, slots integer,
                                      wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_acquire_many_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the session, all or none, or error 55P03';

CREATE FUNCTION advisory.try_acquire_many(namespace text, name text, slots integer,
                                          wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_many_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the session, all or none, or NULL';

CREATE FUNCTION advisory.try_acquire_many(namespace text, id bigint, slots integer,
                                          wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_many_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the session, all or none, or NULL';

CREATE FUNCTION advisory.try_acquire_many(namespace text, id uuid, slots integer,
                                          wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_many_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the session, all or none, or NULL';

CREATE FUNCTION advisory.xact_acquire_many(namespace text, name text, slots integer,
                                           wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_many_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or error 55P03';

CREATE FUNCTION advisory.xact_acquire_many(namespace text, id bigint, slots integer,
                                           wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_many_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or error 55P03';

CREATE FUNCTION advisory.xact_acquire_many(namespace text, id uuid, slots integer,
                                           wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_xact_acquire_many_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or error 55P03';

CREATE FUNCTION advisory.try_xact_acquire_many(namespace text, name text, slots integer,
                                               wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_many_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or NULL';

CREATE FUNCTION advisory.try_xact_acquire_many(namespace text, id bigint, slots integer,
                                               wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_many_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or NULL';

CREATE FUNCTION advisory.try_xact_acquire_many(namespace text, id uuid, slots integer,
                                               wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_many_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or NULL';

CREATE FUNCTION advisory.release_many(namespace text, name text, slots integer[])
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_release_many_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release_many(text, text, integer[]) IS
    'give back these slots of this session; returns how many it had';

CREATE FUNCTION advisory.release_many(namespace text, id bigint, slots integer[])
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_release_many_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release_many(text, bigint, integer[]) IS
    'give back these slots of this session; returns how many it had';

CREATE FUNCTION advisory.release_many(namespace text, id uuid, slots integer[])
    RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_release_many_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.release_many(text, uuid, integer[]) IS
    'give back these slots of this session; returns how many it had';

---- await_acquire: a procedure, as await_lock is

CREATE PROCEDURE advisory.await_acquire(namespace text, name text, slots integer,
                                        timeout interval DEFAULT NULL,
                                        INOUT slot integer DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_acquire_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_acquire(text, text, integer, interval, integer) IS
    'take a slot of a semaphore, waiting without a snapshot';

CREATE PROCEDURE advisory.await_acquire(namespace text, id bigint, slots integer,
                                        timeout interval DEFAULT NULL,
                                        INOUT slot integer DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_acquire_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_acquire(text, bigint, integer, interval, integer) IS
    'take a slot of a semaphore, waiting without a snapshot';

CREATE PROCEDURE advisory.await_acquire(namespace text, id uuid, slots integer,
                                        timeout interval DEFAULT NULL,
                                        INOUT slot integer DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_acquire_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_acquire(text, uuid, integer, interval, integer) IS
    'take a slot of a semaphore, waiting without a snapshot';
