-- Fencing tokens: numbers that grow with every holder of a lock, beyond sessions and servers.

-- The era of the tokens, packed into one value with its timeline and what cluster and database it
-- belongs to.  No transaction rolls a sequence back.  src/core/token.cpp says how it is read.
CREATE SEQUENCE advisory._era MINVALUE 1;
COMMENT ON SEQUENCE advisory._era IS 'era of the fencing tokens; see advisory.token()';
SELECT pg_extension_config_dump('advisory._era', '');

-- When this server first saw the era, in milliseconds since 2000, with the era again.  It is not
-- dumped: so a dump that is restored into this database does not bring an older era back.
CREATE SEQUENCE advisory._era_began MINVALUE -9223372036854775808;
COMMENT ON SEQUENCE advisory._era_began IS 'when the present era of the fencing tokens began';

CREATE FUNCTION advisory_internal.begin_era()
    RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_begin_era'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.begin_era() IS 'record the present era';

---- tokens_above

CREATE FUNCTION advisory.tokens_above(token bigint)
    RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_tokens_above'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.tokens_above(bigint) IS
    'make all later tokens of this database greater than this one';

---- Fences, which refuse smaller tokens

-- Only check_token() writes this table, on behalf of every role.
CREATE TABLE advisory.fences (
    key bigint PRIMARY KEY,
    token bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';
COMMENT ON COLUMN advisory.fences.key IS 'key of the name';
COMMENT ON COLUMN advisory.fences.token IS 'greatest token that was checked';
SELECT pg_extension_config_dump('advisory.fences', '');

CREATE FUNCTION advisory.fenced()
    RETURNS trigger
    AS 'MODULE_PATHNAME', 'advisory_fenced'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.fenced() IS
    'trigger function: refuses a NULL token and one smaller than the row''s';
