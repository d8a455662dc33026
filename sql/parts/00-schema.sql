-- The script creates the schemas itself, and the control file does not name them.  So CREATE
-- EXTENSION never adopts a schema that somebody else has made, but fails.
CREATE SCHEMA advisory;
COMMENT ON SCHEMA advisory IS 'advisory_ext: named advisory locks, semaphores, leases, and views';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

-- What users do not call.  PUBLIC has no USAGE on it, and views do not need that.
CREATE SCHEMA advisory_internal;
COMMENT ON SCHEMA advisory_internal IS 'what the views of advisory_ext are made of';
