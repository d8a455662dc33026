-- The error, unless ok.
CREATE OR REPLACE FUNCTION advisory._require(ok boolean, state text, message text, detail text DEFAULT NULL, hint text DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ok IS NOT FALSE THEN RETURN;
    ELSIF detail IS NULL AND hint IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF hint IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    ELSIF detail IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSE RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
    END IF;
END $$;

-- Who calls a SECURITY DEFINER function: the role of the last SET ROLE, or of the session.
CREATE OR REPLACE FUNCTION advisory._caller() RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END $$;

CREATE OR REPLACE FUNCTION advisory._printable(line text) RETURNS text
    LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding()
        WHEN 'UTF8' THEN '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]' ELSE '[\x01-\x1f\x7f]' END, '?', 'g')
$$;

-- In microseconds.  A month has 30 days, as in comparisons.  (In 13, the epoch of an interval as a whole is not exact.)
CREATE OR REPLACE FUNCTION advisory._microseconds(value interval) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(year FROM value) * 12 + extract(month FROM value))::numeric * 2592000000000
           + (extract(day FROM value) * 86400 + extract(hour FROM value) * 3600 + extract(minute FROM value) * 60)::numeric * 1000000
           + extract(microseconds FROM value)::numeric
$$;

