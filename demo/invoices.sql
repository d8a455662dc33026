-- The same worker with a lock, and a row that says "done".
CALL meet(:'meeting', :'worker', :expected);

SELECT advisory.try_lock('billing', 'invoices:' || :'window') AS mine \gset
\if :mine
    -- This session holds the lock, so no other worker can make invoices between this check and the
    -- INSERTs below.
    SELECT EXISTS (SELECT FROM billing_done WHERE billing_window = :'window') AS done \gset
    \if :done
        INSERT INTO report (scene, worker, got_lock, outcome)
            VALUES ('with', :'worker', true, 'was done already');
    \else
        SELECT pg_sleep(1) \g /dev/null
        BEGIN;
        CALL make_invoices(:'window', :'worker');
        INSERT INTO billing_done VALUES (:'window', :'worker');
        COMMIT;
        INSERT INTO report (scene, worker, got_lock, outcome)
            VALUES ('with', :'worker', true, 'made invoices');
    \endif
    SELECT advisory.unlock('billing', 'invoices:' || :'window') \g /dev/null
\else
    INSERT INTO report (scene, worker, got_lock, outcome)
        VALUES ('with', :'worker', false, 'busy, skipped');
\endif
