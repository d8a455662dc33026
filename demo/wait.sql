-- Waits for the same lock without a limit.
CALL meet('held', 'waiter', 2);
SELECT advisory.lock('billing', 'invoices:2026-12') AS mine \gset
INSERT INTO report (scene, worker, got_lock, outcome)
    VALUES ('dba', 'waiter', :'mine', 'got it in the end');
SELECT advisory.unlock('billing', 'invoices:2026-12') \g /dev/null
