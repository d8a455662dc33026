-- Once per window: the last claimed window of time of each name.

-- Only claim() and run() write this table, on behalf of every role.
CREATE TABLE advisory.claims (
    key bigint PRIMARY KEY,
    last_window timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory.claims IS 'the last claimed window of each name';
COMMENT ON COLUMN advisory.claims.key IS 'key of the name';
COMMENT ON COLUMN advisory.claims.last_window IS 'last claimed window; only later windows can be claimed';
SELECT pg_extension_config_dump('advisory.claims', '');

CREATE FUNCTION advisory._window(every interval, at timestamptz)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_window'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory._window(interval, timestamptz) IS 'the window that claim() claims at a time';

CREATE FUNCTION advisory.claim(namespace text, name text, every interval, slot timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, text, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.claim(namespace text, id bigint, every interval, slot timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, bigint, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.claim(namespace text, id uuid, every interval, slot timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, uuid, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';
