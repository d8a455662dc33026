-- Well-known keys: those of migration tools and extensions, which the library knows,
-- and those that users label.

CREATE TABLE advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL,
    note text,
    CONSTRAINT key_labels_one_form CHECK (
        CASE WHEN key IS NOT NULL THEN key1 IS NULL AND key2 IS NULL
             ELSE key1 IS NOT NULL AND key2 IS NOT NULL END),
    CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_unique UNIQUE NULLS NOT DISTINCT (key, key1, key2, label)
);
-- The unique key has nulls, so it cannot be the replica identity.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS
    'labels that users give to keys of this database; shown in locks.known_as and in known_keys';
COMMENT ON COLUMN advisory.key_labels.key IS 'key, as in pg_advisory_lock(bigint); null for a pair';
COMMENT ON COLUMN advisory.key_labels.key1 IS 'first key of a pair, as in pg_advisory_lock(int, int)';
COMMENT ON COLUMN advisory.key_labels.key2 IS 'second key of a pair';
COMMENT ON COLUMN advisory.key_labels.label IS 'what the lock is called, up to 200 characters';
COMMENT ON COLUMN advisory.key_labels.note IS 'note about the lock, up to 1000 characters';
SELECT pg_extension_config_dump('advisory.key_labels', '');

CREATE FUNCTION advisory._known_keys()
    RETURNS TABLE (
        tool text,
        purpose text,
        form text,
        scope text,
        match text,
        rule text,
        source text,
        key bigint,
        key1 integer,
        key2 integer)
    AS 'MODULE_PATHNAME', 'advisory_known_keys'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 60;
COMMENT ON FUNCTION advisory._known_keys() IS 'rows of advisory.known_keys';

CREATE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM advisory._known_keys();
COMMENT ON VIEW advisory.known_keys IS
    'well-known keys of migration tools and extensions, and those of key_labels; candidates, not proof';
COMMENT ON COLUMN advisory.known_keys.tool IS 'program that takes the lock, or the label of key_labels';
COMMENT ON COLUMN advisory.known_keys.purpose IS 'what the lock is for, with the table, queue or schema where there is one; or the note of key_labels';
COMMENT ON COLUMN advisory.known_keys.form IS 'bigint, int4 pair, or the objsubids of a class';
COMMENT ON COLUMN advisory.known_keys.scope IS 'how the program takes it: session, transaction, or both';
COMMENT ON COLUMN advisory.known_keys.match IS 'how a lock is recognized: exact, formula, range or class';
COMMENT ON COLUMN advisory.known_keys.rule IS 'the key, or how it is made';
COMMENT ON COLUMN advisory.known_keys.source IS 'where this is known from: repository and file, or key_labels';
COMMENT ON COLUMN advisory.known_keys.key IS 'the key in this database, bigint form; null if there is none, or more than one';
COMMENT ON COLUMN advisory.known_keys.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.known_keys.key2 IS 'second key of the pair form, signed';
GRANT SELECT ON advisory.known_keys TO PUBLIC;

-- Loads the known keys once for each query, so that further rows cost little.
CREATE FUNCTION advisory._known_as(database oid, high integer, low integer, objsubid integer) RETURNS text[]
    AS 'MODULE_PATHNAME', 'advisory_known_as'
    LANGUAGE C STABLE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory._known_as(oid, integer, integer, integer) IS
    'possible uses of a lock tag according to known_keys, labels first; null if there are none';
