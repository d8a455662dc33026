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
    role_name name NOT NULL,
    server bigint NOT NULL,
    finished_at timestamptz,
    every interval,
    pid integer
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
COMMENT ON COLUMN advisory._claims.role IS 'OID of the role that claimed it, on that server';
COMMENT ON COLUMN advisory._claims.role_name IS 'name of that role, for other servers';
COMMENT ON COLUMN advisory._claims.server IS 'system identifier of the server that wrote this';
COMMENT ON COLUMN advisory._claims.finished_at IS
    'when its work was done; claimed_at if that was with the claim';
COMMENT ON COLUMN advisory._claims.every IS
    'length of the window; null if it begins when it was claimed';
COMMENT ON COLUMN advisory._claims.pid IS
    'process that claimed it; its job runs while it has the lock';
SELECT pg_extension_config_dump('advisory._claims', '');

CREATE FUNCTION advisory_internal.shown(value text, may_see boolean)
    RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_shown'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.shown(text, boolean) IS 'a text as views show it';

-- On another server, after a dump was restored, the OID of a role is that of somebody else.
CREATE FUNCTION advisory_internal.role_here(role oid, role_name name, server bigint)
    RETURNS oid
    AS 'MODULE_PATHNAME', 'advisory_role_here'
    LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.role_here(oid, name, bigint) IS
    'the role that a row of a table means; 0 if there is none';

-- For the DETAIL of run().
CREATE FUNCTION advisory_internal.describe_claim(claim advisory._claims, viewer oid)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.concat(
        CASE WHEN claim.every IS NULL THEN 'It'
             ELSE pg_catalog.concat('Window ', claim.last_window) END,
        ' was claimed ',
        CASE WHEN claim.claimed_at IS NULL THEN 'before one that was taken back'
             ELSE pg_catalog.concat('at ', pg_catalog.date_trunc('second', claim.claimed_at)) END,
        CASE WHEN claim.claimed_by IS NOT NULL
                  AND (pg_catalog.pg_has_role(viewer, 'pg_read_all_stats'::name, 'USAGE')
                       OR pg_catalog.pg_has_role(viewer, advisory_internal.role_here(
                              claim.role, claim.role_name, claim.server), 'USAGE') IS TRUE)
             THEN pg_catalog.concat(' by ', advisory_internal.shown(
                pg_catalog.left(claim.claimed_by, 256), true)) END,
        CASE WHEN claim.finished_at OPERATOR(pg_catalog.=) claim.claimed_at
             THEN ', and its work is done'
             WHEN claim.finished_at IS NOT NULL
             THEN pg_catalog.concat(', and finished at ',
                                    pg_catalog.date_trunc('second', claim.finished_at))
             WHEN claim.claimed_at IS NOT NULL THEN ', and has not finished' END, '.')
$$;
COMMENT ON FUNCTION advisory_internal.describe_claim(advisory._claims, oid) IS
    'a claim as a sentence, as far as a role may see it';

CREATE FUNCTION advisory_internal.tell_of_standby()
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_tell_of_standby'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.tell_of_standby() IS
    'true; on a standby with a NOTICE, once a session';

-- A restored dump may contain any text.  A standby does not know whether a job runs.
CREATE VIEW advisory.claims AS
    SELECT advisory_internal.shown(pg_catalog.left(namespace, 1024), may_see) AS namespace,
           advisory_internal.shown(pg_catalog.left(name, 1024), may_see) AS name,
           CASE WHEN may_see THEN key END AS key,
           last_window,
           claimed_at,
           advisory_internal.shown(pg_catalog.left(claimed_by, 256), may_see) AS claimed_by,
           nullif(finished_at, claimed_at) AS finished_at,
           CASE WHEN finished_at IS NULL AND claimed_at IS NOT NULL AND pg_is_in_recovery()
                THEN NULL
                WHEN finished_at IS NULL AND claimed_at IS NOT NULL AND (pid, key) IN (
                    SELECT l.pid, l.key
                    FROM advisory._locks AS l
                    WHERE l.datid = advisory_internal.this_database() AND l.granted
                        AND l.kind <> 'lease') THEN 'running'
                WHEN last_window > now + least(every / 2, '1 minute'::interval) THEN 'ahead'
                WHEN claimed_at IS NULL THEN 'taken back'
                WHEN finished_at IS NULL THEN 'failed'
                ELSE 'done' END AS state,
           every,
           extract(epoch FROM now) - extract(epoch FROM last_window)
               > 2.1 * extract(epoch FROM every) AS overdue,
           last_skipped_at
    FROM advisory._claims
    LEFT JOIN (SELECT key, max(last_skipped_at) AS last_skipped_at FROM advisory_internal.stats()
               WHERE namespace IS NOT NULL GROUP BY key) AS skipped USING (key),
    LATERAL (SELECT pg_catalog.pg_has_role('pg_read_all_stats'::name, 'USAGE'::text)
                    OR pg_catalog.pg_has_role(
                        advisory_internal.role_here(role, role_name, server), 'USAGE'::text)
                    IS TRUE,
                    pg_catalog.clock_timestamp()) AS visible (may_see, now)
    -- That is what unclaim() of the first one leaves.  And a function that is called once, also if
    -- there are no rows.
    WHERE last_window > '-infinity'::timestamptz AND (SELECT advisory_internal.tell_of_standby());
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
    'when run() has finished it; null if it has not, or is of claim()';
COMMENT ON COLUMN advisory.claims.state IS
    'running, done, failed, taken back or ahead; null: unknown to a standby';
COMMENT ON COLUMN advisory.claims.every IS
    'length of the window; null if it begins when it was claimed';
COMMENT ON COLUMN advisory.claims.overdue IS
    'has more than one window passed since it? null without every';
COMMENT ON COLUMN advisory.claims.last_skipped_at IS
    'when run() last did not run its command; null without statistics';

CREATE FUNCTION advisory_internal.window(every interval, at timestamptz,
                                         time_zone text DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_window'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.window(interval, timestamptz, text) IS
    'the window that claim() claims at a time';
