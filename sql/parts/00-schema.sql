-- The script creates the schemas itself, and the control file does not name them.  So CREATE
-- EXTENSION never adopts a schema that somebody else has made, but fails.
DO $$
BEGIN
    -- Only the catalog is asked: a function of that schema could be anybody's.
    IF to_regprocedure('advisory.edition()') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'schema "advisory" already exists',
            HINT = 'If it is that of the portable edition, run portable/to-extension.sql, which '
                   'puts the extension in its place, with all labels, claims, fences and leases.';
    END IF;
END $$;
CREATE SCHEMA advisory;
COMMENT ON SCHEMA advisory IS 'advisory_ext: named advisory locks, semaphores, leases, and views';

-- What users do not call.  PUBLIC has no USAGE on it, and views do not need that.
CREATE SCHEMA advisory_internal;
COMMENT ON SCHEMA advisory_internal IS 'what the views of advisory_ext are made of';

-- Two editions have these functions: this extension, and plain SQL for servers without it.
CREATE FUNCTION advisory.edition() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'extension'::text;
COMMENT ON FUNCTION advisory.edition() IS 'which edition is installed: extension or portable';

CREATE FUNCTION advisory.version() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT extversion FROM pg_extension WHERE extname = 'advisory_ext';
END;
COMMENT ON FUNCTION advisory.version() IS 'installed version of this edition';
