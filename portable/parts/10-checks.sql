-- Checks.

-- The error, unless ok.  Never IMMUTABLE: the planner would call it early.
CREATE OR REPLACE FUNCTION advisory._require(
    ok boolean, state text, message text, detail text DEFAULT NULL, hint text DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN
    CASE WHEN ok IS NOT FALSE THEN RETURN;
        WHEN coalesce(detail, hint) IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
        WHEN hint IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
        WHEN detail IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
        ELSE RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
    END CASE; END $$;

-- What is kept in a table has at most so many bytes.
CREATE OR REPLACE FUNCTION advisory._check(value text, what text, most integer DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN
    IF value <> '' AND most IS NULL THEN RETURN; END IF;
    PERFORM _require(value IS NOT NULL, '22004', what || ' must not be null'),
            _require(value <> '', '22023', what || ' must not be empty'),
            _require(octet_length(value) <= most, '22001', what || ' is too long',
                     format('It can have at most %s bytes.', most)); END $$;

-- The list, if it has no nulls and no empty names.
CREATE OR REPLACE FUNCTION advisory._check_list(namespace text, names text[], what text)
    RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN
    PERFORM _check(namespace, 'namespace'),
            _require(names IS NOT NULL, '22004', 'list of names must not be null');
    PERFORM _check(element, what) FROM unnest(names) AS element;
    RETURN names; END $$;

-- '?' for control characters, line separators, and changes of direction: a name forges no line.
CREATE OR REPLACE FUNCTION advisory._printable(line text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding() WHEN 'UTF8'
        THEN E'[\\u0001-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]'
        ELSE E'[\\x01-\\x1f\\x7f]' END, '?', 'g') $$;

-- What a lock is called in messages.
CREATE OR REPLACE FUNCTION advisory._display(namespace text, name text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT _printable(string_agg(
        left(part, 256) || CASE WHEN length(part) > 256 THEN '...' ELSE '' END, '/'))
    FROM unnest(ARRAY[namespace, name]) AS part $$;
