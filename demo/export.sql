-- A request for one user's export. A second request for the same user gets the answer "busy" at
-- once.
CALL meet('exports', :'worker', 6);

SELECT clock_timestamp() AS asked_at \gset
SELECT advisory.try_lock('export', :'user') AS mine \gset
\if :mine
    SELECT clock_timestamp() AS got_at \gset
    -- The export lasts until every request has been answered, and a little longer.
    CALL meet('answered', :'worker', 6);
    SELECT pg_sleep(0.3) \g /dev/null
    INSERT INTO report (scene, worker, got_lock, outcome, asked_at, got_at)
        VALUES ('export ' || :'user', :'worker', true, 'exported', :'asked_at', :'got_at');
    SELECT advisory.unlock('export', :'user') \g /dev/null
\else
    INSERT INTO report (scene, worker, got_lock, outcome, asked_at)
        VALUES ('export ' || :'user', :'worker', false, 'told: busy', :'asked_at');
    CALL meet('answered', :'worker', 6);
\endif
