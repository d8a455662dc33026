-- The role that looks at advisory_ext for monitoring. A superuser runs this once for the server.
-- Another run does no harm:
--
--   psql -f monitoring/grants.sql
--
-- It needs one privilege. pg_read_all_stats shows the states of other roles' sessions and the names
-- of their locks. Without it the sums are right, but blockers have the state "unknown", leaks of
-- other roles do not show, and namespaces are hidden. Everything else (the schema, the views) is
-- open to everybody already. The role needs CONNECT on the database, which everybody has unless
-- somebody revoked it. It can take advisory locks, as every role can, but it cannot end sessions or
-- reset statistics.
--
-- The role has no password: let it in by pg_hba.conf ("peer" with a map, or "cert"), or give it one
-- with \password.

\set ON_ERROR_STOP on
-- No function or operator that somebody else has created may run here.
SET search_path = pg_catalog;

DO $$
BEGIN
    CREATE ROLE advisory_monitor LOGIN;
    GRANT pg_read_all_stats TO advisory_monitor;
EXCEPTION WHEN duplicate_object THEN
    -- Somebody who made the role may know its password. So it gets nothing here that it does not
    -- have.
    IF NOT pg_has_role('advisory_monitor', 'pg_read_all_stats', 'USAGE') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'duplicate_object',
            MESSAGE = 'role "advisory_monitor" already exists, and this script did not make it',
            DETAIL = 'It does not have the privileges of role "pg_read_all_stats".',
            HINT = 'Drop the role; or if it is yours, GRANT pg_read_all_stats TO advisory_monitor, '
                'and run this again.';
    END IF;
END $$;

-- A scrape that hangs is worse than one that fails.
ALTER ROLE advisory_monitor SET statement_timeout = '5s';
ALTER ROLE advisory_monitor SET lock_timeout = '1s';

-- The queries call no function or operator that an owner of a database has created.
ALTER ROLE advisory_monitor SET search_path = pg_catalog;
