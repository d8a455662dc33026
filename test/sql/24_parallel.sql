-- In a parallel worker "true" would not mean held: the lock would go with the worker. A wrapper
-- that is wrongly marked gets an error there; in the leader, and unmarked, it works.
\pset format unaligned \pset tuples_only on
CREATE TABLE many AS SELECT i FROM generate_series(1, 100) i;
CREATE FUNCTION wrongly_marked(i integer) RETURNS boolean LANGUAGE sql PARALLEL SAFE COST 1
    AS $$ SELECT advisory.try_lock('parallel', i) $$;
CREATE FUNCTION unmarked(i integer) RETURNS boolean LANGUAGE sql
    AS $$ SELECT advisory.try_lock('parallel', i) $$;

SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
-- (Its context differs between versions.)
\set VERBOSITY terse
SELECT count(*) FROM many WHERE wrongly_marked(i);
--> ERROR:  cannot take advisory locks in a parallel worker
\set VERBOSITY default
SELECT count(*) FROM many WHERE unmarked(i); --> 100
SELECT advisory.unlock_all('parallel'); --> 100
---- The cost of a call: a query of 4,000 is not worth compiling
SET jit = on;
SET jit_above_cost = 100000;
CREATE FUNCTION pg_temp.is_compiled(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        IF line LIKE 'JIT:%' THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT pg_temp.is_compiled($$ SELECT advisory.try_lock('ns', i), advisory.try_xact_lock_key(i)
    FROM generate_series(1, 4000) AS i $$); --> f
RESET jit;
RESET jit_above_cost;

SELECT count(*) AS left_locked FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE locktype = 'advisory' AND datname = current_database(); --> 0

RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;
DROP FUNCTION wrongly_marked, unmarked;
DROP TABLE many;
