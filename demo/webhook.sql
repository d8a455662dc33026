-- One delivery of a webhook event. The sender sends it again if it gets no answer, so several
-- deliveries may run at once.
CALL meet('webhook', :'worker', 3);

BEGIN;
SELECT clock_timestamp() AS asked_at \gset
SELECT advisory.xact_lock('webhook', :'event', '5s') AS mine \gset
SELECT clock_timestamp() AS got_at \gset
SELECT EXISTS (SELECT FROM webhook_done WHERE event = :'event') AS done \gset
\if :done
    INSERT INTO report (scene, worker, got_lock, outcome, asked_at, got_at)
        VALUES ('webhook', :'worker', :'mine', 'duplicate, nothing to do', :'asked_at', :'got_at');
\else
    SELECT pg_sleep(0.5) \g /dev/null
    INSERT INTO webhook_done VALUES (:'event', :'worker');
    INSERT INTO report (scene, worker, got_lock, outcome, asked_at, got_at)
        VALUES ('webhook', :'worker', :'mine', 'processed', :'asked_at', :'got_at');
\endif
COMMIT;     -- releases the lock, too
