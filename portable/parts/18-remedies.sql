-- Remedies.

-- Is this the name of the key?  Not if something in it was cut or replaced.  False for NULL.
CREATE OR REPLACE FUNCTION advisory._is_name(namespace text, name text, key bigint)
    RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE WHEN namespace <> '' AND name <> '' THEN advisory.key(namespace, name) = $3
                ELSE false END $$;

-- The statement that ends a session, for the HINTs of errors and for blockers.  It names the lock,
-- slot or lease, and hits only whoever still holds that.  A name that is not printed as it is, or
-- is not that of the key, is not named; a long one, which would not fit on a line, only if nothing
-- has a key.  NULL if nothing is exact.
CREATE OR REPLACE FUNCTION advisory._terminate_statement(namespace text, name text, key bigint,
                                                         pid integer, kind text)
    RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE
        WHEN is_exact AND (key IS NULL OR octet_length(namespace || name) <= 50)
        THEN format('SELECT advisory.terminate_holder(%L, %L, %s, kind => %L)',
                    namespace, name, pid, kind)
        WHEN key IS NOT NULL
        THEN format('SELECT advisory.terminate_holder_key(%s, %s, kind => %L)', key, pid, kind) END
    FROM (SELECT _display(namespace, name) = namespace || '/' || name
                 AND (key IS NULL OR _is_name(namespace, name, key))) AS n (is_exact) $$;
