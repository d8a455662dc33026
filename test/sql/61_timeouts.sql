-- Editions: both.
-- Ten thousand waits that time out, in one transaction: no lock, no transaction ID and no memory is
-- left behind. (Who owns only a database may not ask about memory.)
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;
SELECT has_function_privilege('pg_get_backend_memory_contexts()', 'EXECUTE') AS may_ask \gset

CREATE TABLE items (id int);
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

BEGIN;
SELECT pg_temp.time_out(100) AS taken; --> 0
\if :may_ask
SELECT sum(used_bytes) AS before FROM pg_backend_memory_contexts \gset
\endif
SELECT pg_temp.time_out(10000) AS taken; --> 0
\if :may_ask
-- A leak of ten bytes a time would show.
SELECT sum(used_bytes) - :before < 100000 AS bounded FROM pg_backend_memory_contexts;
--extension> t
\endif
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_transaction_id,
       count(*) AS locked FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
--> t|0
INSERT INTO items VALUES (1);
SAVEPOINT s;
SELECT pg_temp.time_out(100) AS taken; --> 0
INSERT INTO items VALUES (2);
ROLLBACK TO s;
INSERT INTO items VALUES (3);
SELECT advisory.try_xact_lock('ns', 'free'); --> t
COMMIT;
SELECT array_agg(id) FROM items; --> {1,3}

ROLLBACK PREPARED 'regress_advisory';
SELECT advisory.try_xact_lock('ns', 'taken'); --> t
DROP TABLE items;
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
