-- Once per window: the last claimed window of time of each name.

-- Only claim(), run() and unclaim() write this table, on behalf of every role.
CREATE TABLE advisory._claims (
    key bigint PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    last_window timestamptz NOT NULL,
    window_before timestamptz NOT NULL,
    claimed_at timestamptz,
    claimed_by text,
    role oid NOT NULL,
    finished_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory._claims IS 'rows of advisory.claims';
COMMENT ON COLUMN advisory._claims.key IS 'key of the name';
COMMENT ON COLUMN advisory._claims.namespace IS 'namespace';
COMMENT ON COLUMN advisory._claims.name IS 'name';
COMMENT ON COLUMN advisory._claims.last_window IS
    'last claimed window; earlier ones cannot be claimed';
COMMENT ON COLUMN advisory._claims.window_before IS
    'window claimed before it; unclaim() goes back to it';
COMMENT ON COLUMN advisory._claims.claimed_at IS
    'when it was claimed; null if a later claim was taken back';
COMMENT ON COLUMN advisory._claims.claimed_by IS 'role and application that claimed it';
-- No regrole: a dump could not be restored where one of the roles is missing.
COMMENT ON COLUMN advisory._claims.role IS 'OID of the role that claimed it';
COMMENT ON COLUMN advisory._claims.finished_at IS 'when its work was done';
SELECT pg_extension_config_dump('advisory._claims', '');

CREATE FUNCTION advisory_internal.shown(value text, may_see boolean)
    RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_shown'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.shown(text, boolean) IS 'a text as views show it';

-- A restored dump may contain any text.
CREATE VIEW advisory.claims AS
    SELECT advisory_internal.shown(pg_catalog.left(namespace, 1024), may_see) AS namespace,
           advisory_internal.shown(pg_catalog.left(name, 1024), may_see) AS name,
           CASE WHEN may_see THEN key END AS key,
           last_window,
           claimed_at,
           advisory_internal.shown(pg_catalog.left(claimed_by, 256), may_see) AS claimed_by,
           finished_at
    FROM advisory._claims,
    LATERAL (SELECT pg_catalog.pg_has_role('pg_read_all_stats'::name, 'USAGE'::text)
                    OR pg_catalog.pg_has_role(role, 'USAGE'::text) IS TRUE) AS visible (may_see)
    -- That is what unclaim() of the first one leaves.
    WHERE last_window > '-infinity'::timestamptz;
COMMENT ON VIEW advisory.claims IS 'the last claimed window of each name';
COMMENT ON COLUMN advisory.claims.namespace IS 'namespace; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.claims.name IS 'name; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.claims.key IS 'key of the name; null without the privilege to see it';
COMMENT ON COLUMN advisory.claims.last_window IS
    'last claimed window; earlier ones cannot be claimed';
COMMENT ON COLUMN advisory.claims.claimed_at IS
    'when it was claimed; null if a later claim was taken back';
COMMENT ON COLUMN advisory.claims.claimed_by IS 'role@application that claimed it; or hidden';
COMMENT ON COLUMN advisory.claims.finished_at IS
    'when its work was done; null while it runs, and if it failed';

CREATE FUNCTION advisory_internal.window(every interval, at timestamptz)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_window'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.window(interval, timestamptz) IS
    'the window that claim() claims at a time';

CREATE FUNCTION advisory.claim(namespace text, name text, every interval,
                               window_start timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, text, interval, timestamptz) IS
    'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.claim(namespace text, id bigint, every interval,
                               window_start timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, bigint, interval, timestamptz) IS
    'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.claim(namespace text, id uuid, every interval,
                               window_start timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, uuid, interval, timestamptz) IS
    'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.unclaim(namespace text, name text, window_start timestamptz)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unclaim_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unclaim(text, text, timestamptz) IS
    'take a claim back, so that its window can be claimed again';

CREATE FUNCTION advisory.unclaim(namespace text, id bigint, window_start timestamptz)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unclaim_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unclaim(text, bigint, timestamptz) IS
    'take a claim back, so that its window can be claimed again';

CREATE FUNCTION advisory.unclaim(namespace text, id uuid, window_start timestamptz)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unclaim_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unclaim(text, uuid, timestamptz) IS
    'take a claim back, so that its window can be claimed again';
