-- The role that looks at advisory_ext for monitoring. A superuser runs this once for the server. Another run does no harm:
--
--   psql -f monitoring/grants.sql
--
-- It needs one privilege. pg_read_all_stats shows the states of other roles' sessions and the names of their locks. Without it
-- the sums are right, but blockers have the state "unknown", leaks of other roles do not show, and namespaces are hidden.
-- Everything else (the schema, the views) is open to everybody already. The role needs CONNECT on the database, which everybody
-- has unless somebody revoked it. It can take advisory locks, as every role can, but it cannot end sessions or reset statistics.
--
-- The role has no password: let it in by pg_hba.conf ("peer" with a map, or "cert"), or give it one with \password.
DO $$
BEGIN
    CREATE ROLE advisory_monitor LOGIN;
EXCEPTION WHEN duplicate_object THEN
    NULL;   -- it is from an earlier run
END $$;
GRANT pg_read_all_stats TO advisory_monitor;

-- A scrape that hangs is worse than one that fails.
ALTER ROLE advisory_monitor SET statement_timeout = '5s';
ALTER ROLE advisory_monitor SET lock_timeout = '1s';
