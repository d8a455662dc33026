-- Several locks at once.
--
-- Each function also takes its list as text, which it reads as a text[].  An untyped literal
-- or parameter ('{a,b}', as node-postgres sends arrays) resolves to that variant.  Without it
-- PostgreSQL could not choose between the array types.

CREATE FUNCTION advisory.lock_all(namespace text, names text[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, text[], interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE FUNCTION advisory.lock_all(namespace text, ids bigint[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, bigint[], interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE FUNCTION advisory.lock_all(namespace text, ids uuid[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, uuid[], interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE FUNCTION advisory.lock_all(namespace text, names text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lock_all(text, text, interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE FUNCTION advisory.try_lock_all(namespace text, names text[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, text[], interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE FUNCTION advisory.try_lock_all(namespace text, ids bigint[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, bigint[], interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE FUNCTION advisory.try_lock_all(namespace text, ids uuid[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, uuid[], interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE FUNCTION advisory.try_lock_all(namespace text, names text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lock_all(text, text, interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE FUNCTION advisory.xact_lock_all(namespace text, names text[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, text[], interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock_all(namespace text, ids bigint[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, bigint[], interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock_all(namespace text, ids uuid[], timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, uuid[], interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE FUNCTION advisory.xact_lock_all(namespace text, names text, timeout interval DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.xact_lock_all(text, text, interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, names text[],
                                           timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, text[], interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, ids bigint[],
                                           timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, bigint[], interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, ids uuid[], timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, uuid[], interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE FUNCTION advisory.try_xact_lock_all(namespace text, names text, timeout interval DEFAULT '0')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_all_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, text, interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE FUNCTION advisory.try_lock_any(namespace text, names text[], wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, text[], integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE FUNCTION advisory.try_lock_any(namespace text, ids bigint[], wanted integer DEFAULT 1)
    RETURNS SETOF bigint
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, bigint[], integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE FUNCTION advisory.try_lock_any(namespace text, ids uuid[], wanted integer DEFAULT 1)
    RETURNS SETOF uuid
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, uuid[], integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE FUNCTION advisory.try_lock_any(namespace text, names text, wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_lock_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_lock_any(text, text, integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, names text[], wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, text[], integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, ids bigint[], wanted integer DEFAULT 1)
    RETURNS SETOF bigint
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, bigint[], integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, ids uuid[], wanted integer DEFAULT 1)
    RETURNS SETOF uuid
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, uuid[], integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE FUNCTION advisory.try_xact_lock_any(namespace text, names text, wanted integer DEFAULT 1)
    RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'advisory_try_xact_lock_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, text, integer) IS
    'lock up to wanted of the list that are free, for the transaction';

---- unlock_all: to zero and without a warning, for finally blocks

CREATE FUNCTION advisory.unlock_all(namespace text, name text) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, text) IS
    'release every session-level hold of the lock, in both modes';

CREATE FUNCTION advisory.unlock_all(namespace text, id bigint) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, bigint) IS
    'release every session-level hold of the lock, in both modes';

CREATE FUNCTION advisory.unlock_all(namespace text, id uuid) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, uuid) IS
    'release every session-level hold of the lock, in both modes';

CREATE FUNCTION advisory.unlock_all(namespace text, names text[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_names'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, text[]) IS
    'release every session-level hold of each lock in the list';

CREATE FUNCTION advisory.unlock_all(namespace text, ids bigint[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_names'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, bigint[]) IS
    'release every session-level hold of each lock in the list';

CREATE FUNCTION advisory.unlock_all(namespace text, ids uuid[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_names'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text, uuid[]) IS
    'release every session-level hold of each lock in the list';

CREATE FUNCTION advisory.unlock_all(namespace text) RETURNS integer
    AS 'MODULE_PATHNAME', 'advisory_unlock_all_namespace'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unlock_all(text) IS
    'release all session-level holds of the namespace taken by name';

