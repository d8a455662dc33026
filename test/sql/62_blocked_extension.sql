-- Another session holds the lock, as in 60_blocked: what only the extension knows and says of that.
-- It remembers labels, counts holds, knows their scope, and names the lock in the context of a
-- wait.
\pset format unaligned \pset tuples_only on
CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
BEGIN;
SELECT advisory.xact_lock('billing', 'invoice:42'), advisory.xact_lock_shared('billing', 'shared'),
    advisory.xact_lock_key(42); --> t|t|t
PREPARE TRANSACTION 'regress_advisory';
RESET ROLE;

---- A label
\set VERBOSITY terse
SELECT advisory.lock_shared_key(42, '0', 'label');
--> ERROR:  could not obtain advisory lock "label" without waiting
SELECT advisory.lock_shared_key(42, '0');
--> ERROR:  could not obtain advisory lock "label" without waiting

---- A savepoint
BEGIN;
SELECT advisory.lock('billing', 'other'); --> t
SAVEPOINT s;
\set VERBOSITY sqlstate
SELECT advisory.lock('billing', 'invoice:42', '1ms'); --> ERROR:  55P03
ROLLBACK TO s;
SELECT advisory.hold_count('billing', 'other') AS other,
    advisory.hold_count('billing', 'invoice:42') AS this; --> 1|0
COMMIT;
SELECT advisory.unlock('billing', 'other'); --> t

---- Cancelled in the wait: the lock's name as context
-- (19 puts a line of its own before ours.)
CREATE FUNCTION pg_temp.wait_context(call text, OUT error text, OUT context text)
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
EXCEPTION WHEN query_canceled THEN
    GET STACKED DIAGNOSTICS error = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
    context := substring(context FROM 'while waiting for.*?mode');
END $$;
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '50ms';
SELECT * FROM pg_temp.wait_context($$SELECT advisory.lock('billing', 'invoice:42')$$);
--> canceling statement due to statement timeout|while waiting for advisory lock "billing/invoice:42" in exclusive mode
SELECT *
    FROM pg_temp.wait_context(
        $$SELECT advisory.try_xact_lock_shared('billing', 'invoice:42', NULL)$$);
--> canceling statement due to statement timeout|while waiting for advisory lock "billing/invoice:42" in shared mode
SELECT * FROM pg_temp.wait_context($$SELECT advisory.lock_key(42, '1h', 'label')$$);
--> canceling statement due to statement timeout|while waiting for advisory lock "label" in exclusive mode
SELECT *
    FROM pg_temp.wait_context($$SELECT advisory.lock_all('billing', ARRAY['a', 'invoice:42'])$$);
--> canceling statement due to statement timeout|while waiting for advisory lock "billing/invoice:42" in exclusive mode
RESET statement_timeout;
RESET jit;

---- Looking at it
SELECT role, mode, scope, gid FROM advisory.holders('billing', 'shared');
--> regress_advisory_role|shared|transaction|regress_advisory
SELECT gid, mode, scope FROM advisory.holders_key(42); --> regress_advisory|exclusive|transaction
SELECT pid, role, mode, scope, granted, gid, key = advisory.key('billing', 'invoice:42') AS invoice,
    query
    FROM advisory.locks WHERE gid = 'regress_advisory' ORDER BY mode, key;
--> |regress_advisory_role|exclusive|transaction|t|regress_advisory|f|
--> |regress_advisory_role|exclusive|transaction|t|regress_advisory|t|
--> |regress_advisory_role|shared|transaction|t|regress_advisory|f|
COMMIT PREPARED 'regress_advisory';
DROP ROLE regress_advisory_role;
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
