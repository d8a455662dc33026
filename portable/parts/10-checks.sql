-- Checks.

-- The error, unless ok.  Never IMMUTABLE: the planner would call it early.
CREATE OR REPLACE FUNCTION advisory._require(ok boolean, state text, message text,
                                             detail text DEFAULT NULL, hint text DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    IF ok IS NOT FALSE THEN
        RETURN;
    END IF;
    -- RAISE takes no null DETAIL or HINT.
    IF detail IS NULL AND hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    ELSIF detail IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSE
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
    END IF;
END $$;

-- The error if the value is null or empty.  What is kept in a table has at most so many bytes.
CREATE OR REPLACE FUNCTION advisory._check(value text, what text, most integer DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    IF value IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22004', MESSAGE = what || ' must not be null';
    ELSIF value = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = what || ' must not be empty';
    ELSIF octet_length(value) > most THEN
        RAISE EXCEPTION USING ERRCODE = '22001', MESSAGE = what || ' is too long',
            DETAIL = format('It can have at most %s bytes.', most);
    END IF;
END $$;

-- The error if this is too long for the name of a lease or of a claim, which is kept in a table.
-- advisory.key() has checked the rest.
CREATE OR REPLACE FUNCTION advisory._check_kept(namespace text, name text, of_what text)
    RETURNS void
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(namespace, 'namespace of a ' || of_what, 1024);
    PERFORM _check(name, 'name of a ' || of_what, 1024);
END $$;

-- The list, if it has no nulls and no empty names.
CREATE OR REPLACE FUNCTION advisory._check_list(namespace text, names text[], what text)
    RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(namespace, 'namespace');
    IF names IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22004', MESSAGE = 'list of names must not be null';
    END IF;
    PERFORM _check(element, what) FROM unnest(names) AS element;
    RETURN names;
END $$;

-- Tells a session on a standby, once, that locks there are its own.  DISCARD ALL resets a setting,
-- so after it the next client of a session pooler is told, too.  Always true, for conditions.
CREATE OR REPLACE FUNCTION advisory._tell_of_standby(takes_locks boolean)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    told text := 'advisory_portable.told_' || CASE WHEN takes_locks THEN 'taker' ELSE 'reader' END;
BEGIN
    IF NOT pg_is_in_recovery() OR current_setting(told, true) = 'yes' THEN
        RETURN true;
    END IF;
    PERFORM set_config(told, 'yes', false);
    IF takes_locks THEN
        RAISE WARNING 'locks on a standby do not exclude sessions of the primary'
            USING HINT = 'Take the lock on the primary.';
    ELSE
        RAISE NOTICE 'this server is a standby: it shows its own locks, not those of the primary'
            USING DETAIL = 'Leases and claims are those of the primary, as far as they have been '
                           'replicated.', HINT = 'Look on the primary.';
    END IF;
    RETURN true;
END $$;

-- '?' for control characters, line separators, and changes of direction: a name forges no line.
CREATE OR REPLACE FUNCTION advisory._printable(line text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding() WHEN 'UTF8'
        THEN E'[\\u0001-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]'
        ELSE E'[\\x01-\\x1f\\x7f]' END, '?', 'g') $$;

-- What a lock is called in messages.
CREATE OR REPLACE FUNCTION advisory._display(namespace text, name text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT _printable(string_agg(
        left(part, 256) || CASE WHEN length(part) > 256 THEN '...' ELSE '' END, '/'))
    FROM unnest(ARRAY[namespace, name]) AS part $$;
