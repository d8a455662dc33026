-- Keys.

-- The first 8 bytes of the SHA-256 of the value.
CREATE OR REPLACE FUNCTION advisory._hash(value bytea)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.encode(pg_catalog.substr(
        pg_catalog.sha256(value), 1, 8), 'hex'))::pg_catalog.bit(64)::pg_catalog.int8 $$;

-- The same in every database; NULL if a name is null or empty.  In SQL_ASCII convert_to() checks
-- the bytes and leaves them as they are.
CREATE OR REPLACE FUNCTION advisory._bytes(namespace text, name text)
    RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN namespace OPERATOR(pg_catalog.<>) '' AND name OPERATOR(pg_catalog.<>) ''
                THEN pg_catalog.convert_to(namespace, 'UTF8')
                     OPERATOR(pg_catalog.||) pg_catalog.decode('00', 'hex')
                     OPERATOR(pg_catalog.||) pg_catalog.convert_to(name, 'UTF8') END $$;

-- The error of a name that has no key, because it is null or empty.
CREATE OR REPLACE FUNCTION advisory._no_key(namespace text, name text)
    RETURNS bigint
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(namespace, 'namespace');
    PERFORM _check(name, 'name');
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION advisory.key(name text)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(name, 'name');
    RETURN _hash(convert_to(name, 'UTF8'));
END $$;
COMMENT ON FUNCTION advisory.key(text) IS 'key of a name without a namespace';

CREATE OR REPLACE FUNCTION advisory.key(namespace text, name text)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(advisory._hash(advisory._bytes(namespace, name)),
                    advisory._no_key(namespace, name));
END $$;

-- The slots of a semaphore have 16,384 keys in a row.  The first, slot 0, is the queue's lock.
CREATE OR REPLACE FUNCTION advisory._slot_key(namespace text, name text, slot integer)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(advisory._hash(advisory._bytes(namespace, name)
                                   OPERATOR(pg_catalog.||) pg_catalog.decode('00', 'hex'))
                    OPERATOR(pg_catalog.&) -16384 OPERATOR(pg_catalog.|) slot,
                    advisory._no_key(namespace, name));
END $$;
