-- advisory_ext, portable edition: named locks, semaphores, jobs and views for servers where no library can be installed.
--
--     psql -d mydb -f advisory.sql
--
-- The role that runs it owns the objects.  It needs no privilege but CREATE on the database, and no setting.  To remove all: DROP SCHEMA
-- advisory CASCADE.  To upgrade, run a newer file: rows of tables are kept.  doc/portable.md says what differs from the extension.
--
-- Nobody's search_path may replace an operator.  So each function in PL/pgSQL gets a search_path of its own, at the end of this file.
-- Procedures that COMMIT cannot have one, and SQL functions that the planner shall inline must not: these have no operators, and call
-- functions by their full names.  Other SQL functions without one are called by functions with one only.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'this database has the extension advisory_ext',
            HINT = 'It has all that the portable edition has. Never use both editions in one database.';
    ELSIF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'advisory' AND nspowner <> current_user::regrole) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'schema "advisory" belongs to another role',
            HINT = 'Run this file as that role.';
    ELSIF to_regnamespace('advisory') IS NULL THEN
        CREATE SCHEMA advisory;
    ELSIF to_regprocedure('advisory.edition()') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'schema "advisory" exists, and is not that of the portable edition';
    END IF;
END $$;
COMMENT ON SCHEMA advisory IS 'advisory locks by name: portable edition of advisory_ext';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

CREATE OR REPLACE FUNCTION advisory.edition() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 'portable' $$;
COMMENT ON FUNCTION advisory.edition() IS 'portable, or extension';
CREATE OR REPLACE FUNCTION advisory.version() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT '1.1' $$;
COMMENT ON FUNCTION advisory.version() IS 'version of the functions of this schema';

---- Checks

-- The error, unless ok.
CREATE OR REPLACE FUNCTION advisory._require(ok boolean, state text, message text, detail text DEFAULT NULL, hint text DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF ok IS NOT FALSE THEN RETURN;
    ELSIF coalesce(detail, hint) IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF hint IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    ELSIF detail IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSE RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._check(value text, what text) RETURNS void LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF value <> '' THEN RETURN; END IF;
    PERFORM advisory._require(value IS NOT NULL, '22004', what || ' must not be null'), advisory._require(false, '22023', what || ' must not be empty');
END $$;

-- The list, if it has no nulls and no empty names.
CREATE OR REPLACE FUNCTION advisory._check_list(namespace text, names text[], what text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace'), advisory._require(names IS NOT NULL, '22004', 'list of names must not be null');
    PERFORM advisory._check(element, what) FROM unnest(names) AS element;
    RETURN names;
END $$;

-- '?' for control characters, line separators, and what changes the direction of text: a name cannot forge a line.
CREATE OR REPLACE FUNCTION advisory._printable(line text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding() WHEN 'UTF8'
        THEN '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]' ELSE '[\x01-\x1f\x7f]' END, '?', 'g')
$$;

-- What a lock is called in messages.
CREATE OR REPLACE FUNCTION advisory._display(namespace text, name text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT advisory._printable(string_agg(left(part, 256) || CASE WHEN length(part) > 256 THEN '...' ELSE '' END, '/'))
    FROM unnest(ARRAY[namespace, name]) AS part
$$;

---- Keys

-- The same bytes in every database.  Only in SQL_ASCII can a text be something else than text.
CREATE OR REPLACE FUNCTION advisory._utf8(value text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT convert_to(CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN convert_from(convert_to(value, 'UTF8'), 'UTF8') ELSE value END, 'UTF8')
$$;
CREATE OR REPLACE FUNCTION advisory._hash(value bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT ('x' || encode(substr(sha256(value), 1, 8), 'hex'))::bit(64)::bigint $$;

CREATE OR REPLACE FUNCTION advisory.key(name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
    $$ BEGIN PERFORM advisory._check(name, 'name'); RETURN advisory._hash(advisory._utf8(name)); END $$;
COMMENT ON FUNCTION advisory.key(text) IS 'key of a name without a namespace';
CREATE OR REPLACE FUNCTION advisory.key(namespace text, name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace'), advisory._check(name, 'name');
    RETURN advisory._hash(advisory._utf8(namespace) || '\x00' || advisory._utf8(name));
END $$;
COMMENT ON FUNCTION advisory.key(text, text) IS 'key of a namespace and a name';

-- The slots of a semaphore have 16,384 keys in a row.  The first one, slot 0, is the lock of the queue.
CREATE OR REPLACE FUNCTION advisory._slot_key(namespace text, name text, slot integer) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace'), advisory._check(name, 'name');
    RETURN advisory._hash(advisory._utf8(namespace) || '\x00' || advisory._utf8(name) || '\x00') & -16384 | slot;
END $$;
