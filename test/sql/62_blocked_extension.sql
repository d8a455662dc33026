-- Another session holds the lock, as in 60_blocked: what only the extension knows and says of that. It remembers labels, counts
-- holds, knows their scope, and names the lock in the context of a wait.
CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
BEGIN;
SELECT advisory.xact_lock('billing', 'invoice:42'), advisory.xact_lock_shared('billing', 'shared'), advisory.xact_lock_key(42);
PREPARE TRANSACTION 'regress_advisory';
RESET ROLE;

---- A label

SELECT advisory.lock_shared_key(42, '0', 'label');
SELECT advisory.lock_shared_key(42, '0');

---- A savepoint

BEGIN;
SELECT advisory.lock('billing', 'other');
SAVEPOINT s;
SELECT advisory.lock('billing', 'invoice:42', '1ms');
ROLLBACK TO s;
SELECT advisory.hold_count('billing', 'other') AS other, advisory.hold_count('billing', 'invoice:42') AS this;
COMMIT;
SELECT advisory.unlock('billing', 'other');

---- Cancelled in the wait: the lock's name as context

-- (19 puts a line of its own before ours.)
CREATE FUNCTION pg_temp.wait_context(call text, OUT error text, OUT context text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
EXCEPTION WHEN query_canceled THEN
    GET STACKED DIAGNOSTICS error = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
    context := substring(context FROM 'while waiting for.*?mode');
END $$;
SET statement_timeout = '50ms';
SELECT * FROM pg_temp.wait_context($$SELECT advisory.lock('billing', 'invoice:42')$$);
SELECT * FROM pg_temp.wait_context($$SELECT advisory.try_xact_lock_shared('billing', 'invoice:42', NULL)$$);
SELECT * FROM pg_temp.wait_context($$SELECT advisory.lock_key(42, '1h', 'label')$$);
SELECT * FROM pg_temp.wait_context($$SELECT advisory.lock_all('billing', ARRAY['a', 'invoice:42'])$$);
RESET statement_timeout;

---- Looking at it

SELECT role, mode, scope, gid FROM advisory.holders('billing', 'shared');
SELECT gid, mode, scope FROM advisory.holders_key(42);
SELECT pid, role, mode, scope, granted, gid, key = advisory.key('billing', 'invoice:42') AS invoice, query
    FROM advisory.locks WHERE gid = 'regress_advisory' ORDER BY mode, key;
COMMIT PREPARED 'regress_advisory';
DROP ROLE regress_advisory_role;
SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
