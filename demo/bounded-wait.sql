-- Waits for the lock for one second, and stores the error as a program receives it.
DO $$
DECLARE
    error   failure;
    started timestamptz := clock_timestamp();
BEGIN
    PERFORM advisory.lock('billing', 'invoices:2026-12', '1s');
EXCEPTION WHEN lock_not_available THEN
    GET STACKED DIAGNOSTICS
        error.sqlstate  = RETURNED_SQLSTATE,
        error.message   = MESSAGE_TEXT,
        error.detail    = PG_EXCEPTION_DETAIL,
        error.hint      = PG_EXCEPTION_HINT,
        error.namespace = SCHEMA_NAME,
        error.name      = CONSTRAINT_NAME;
    error.seconds := extract(epoch FROM clock_timestamp() - started);
    INSERT INTO failure SELECT error.*;
END
$$;
