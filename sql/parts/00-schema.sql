-- The schema is made here and not named in the control file, so that a schema
-- that somebody else has made, with whatever is in it, is never adopted.
CREATE SCHEMA advisory;
COMMENT ON SCHEMA advisory IS 'advisory_ext: named advisory locks with timeouts, and a decoded view of all advisory locks';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

