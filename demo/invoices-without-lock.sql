-- One of five workers, as programs often do it: check, then write.
SELECT NOT EXISTS (SELECT FROM invoice WHERE billing_window = :'window') AS nothing_there \gset

-- Every worker has checked before one of them writes. In production this happens rarely; here all
-- sessions wait for each other first.
CALL meet('looked', :'worker', 5);

\if :nothing_there
    CALL make_invoices(:'window', :'worker');
    INSERT INTO report (scene, worker, outcome) VALUES ('without', :'worker', 'made invoices');
\endif
