-- The script creates the schema itself, and the control file does not name it.  So CREATE
-- EXTENSION never adopts a schema that somebody else has made, but fails.
CREATE SCHEMA advisory;
COMMENT ON SCHEMA advisory IS 'advisory_ext: named advisory locks with timeouts, semaphores, leases, and views of all advisory locks';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

