-- A migration as a plain psql script, for deployments that may start at the same time: one
-- migrates, the others wait and then find nothing to do.
--
--   psql -X -d shop -f deploy.sql    (not with --single-transaction: some steps have to commit)
--
-- CALL advisory.await_lock() waits without a snapshot, so that CREATE INDEX CONCURRENTLY does not
-- wait for it. See "Wait without a snapshot" in doc/locks.md.
\set ON_ERROR_STOP on
-- The schema of the tables; pg_catalog goes before it. Nothing runs that somebody has put before
-- that in the path of the role or database.
SET search_path = public;

CALL advisory.await_lock('migration', 'app', '10 min');

-- Under the lock: look what is left to do, and do it.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

SELECT NOT EXISTS (SELECT FROM schema_migrations WHERE version = '1_item') AS todo \gset
\if :todo
    BEGIN;
    CREATE TABLE item (id bigint PRIMARY KEY, name text NOT NULL);
    INSERT INTO schema_migrations VALUES ('1_item');
    COMMIT;
\endif

SELECT NOT EXISTS (SELECT FROM schema_migrations WHERE version = '2_item_name') AS todo \gset
\if :todo
    -- No transaction around it, so an attempt that was broken off leaves an invalid index.
    DROP INDEX CONCURRENTLY IF EXISTS item_name_idx;
    CREATE INDEX CONCURRENTLY item_name_idx ON item (name);
    INSERT INTO schema_migrations VALUES ('2_item_name');
\endif

SELECT advisory.unlock('migration', 'app');
