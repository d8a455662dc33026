-- One of five workers, as it is often written: look, then do.
SELECT NOT EXISTS (SELECT FROM invoice WHERE billing_window = :'window') AS nothing_there \gset

-- All have looked before any has written. In production this happens rarely; here all sessions wait for each other first.
CALL meet('looked', :'worker', 5);

\if :nothing_there
    CALL make_invoices(:'window', :'worker');
    INSERT INTO report (scene, worker, outcome) VALUES ('without', :'worker', 'made invoices');
\endif
