-- Ten thousand waits that time out, as in 61_timeouts, leave no memory behind.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

BEGIN;
SELECT advisory.xact_lock('ns', 'taken'), advisory.xact_lock_all('ns', ARRAY['x', 'y']); --> t|t
PREPARE TRANSACTION 'regress_advisory';

-- A quarter of them after 1 ms, the rest at once; in both scopes, one lock and several.
CREATE FUNCTION pg_temp.time_out(times int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    taken int := 0;
    timeout interval;
BEGIN
    FOR i IN 1..times / 4 LOOP
        timeout := (i % 4 = 0)::int * interval '1ms';
        taken := taken + advisory.try_lock('ns', 'taken', timeout)::int
                       + advisory.try_xact_lock_shared('ns', 'taken', timeout)::int
                       + advisory.try_lock_all('ns', ARRAY['a', 'x', 'z'], timeout)::int
                       + advisory.try_xact_lock_all('ns', ARRAY['a', 'x', 'z'], timeout)::int;
    END LOOP;
    RETURN taken;
END $$;
CREATE FUNCTION pg_temp.memory() RETURNS bigint LANGUAGE sql AS
    $$ SELECT sum(used_bytes)::bigint FROM pg_backend_memory_contexts $$;

BEGIN;
SELECT pg_temp.time_out(100) AS taken; --> 0
SELECT pg_temp.memory() AS before \gset
SELECT pg_temp.time_out(10000) AS taken; --> 0
-- A leak of ten bytes a time would show.
SELECT pg_temp.memory() - :before < 100000 AS bounded; --> t
COMMIT;
ROLLBACK PREPARED 'regress_advisory';
