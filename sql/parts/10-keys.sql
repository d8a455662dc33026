-- Keys: from a name to the 64-bit lock identifier.
--
-- The key is a permanent public format: the first 8 bytes, big-endian and signed, of
-- SHA-256 over the UTF-8 bytes of namespace, one zero byte and name.

CREATE FUNCTION advisory.key(name text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_key_name'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory.key(text) IS
    'key of a name alone: first 8 bytes of SHA-256 over its UTF-8 bytes';
