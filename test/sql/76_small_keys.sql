-- Editions: both.
-- Small numbers, which everybody uses: known as a program's only in a database that has a table of
-- that program.
\pset format unaligned \pset tuples_only on
-- Each is taken, and what it is known as; then released.
CREATE FUNCTION public.small(key bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    answer text[];
BEGIN
    PERFORM pg_advisory_lock(key);
    SELECT known_as INTO STRICT answer FROM advisory.locks l
        WHERE l.key = small.key AND pid = pg_backend_pid();
    PERFORM pg_advisory_unlock(key);
    RETURN answer;
END $$;
CREATE FUNCTION public.small(key1 int, key2 int) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    answer text[];
BEGIN
    PERFORM pg_advisory_lock(key1, key2);
    SELECT known_as INTO STRICT answer FROM advisory.locks l
        WHERE l.key1 = small.key1 AND l.key2 = small.key2 AND pid = pg_backend_pid();
    PERFORM pg_advisory_unlock(key1, key2);
    RETURN answer;
END $$;

SELECT key, public.small(key) FROM unnest('{1,2,5,42,1000,4004,12345,99995}'::bigint[]) AS key;
--> 1|{"several programs use it"}
--> 2|{"several programs use it"}
--> 5|{"several programs use it"}
--> 42|
--> 1000|{"several programs use it"}
--> 4004|{"several programs use it"}
--> 12345|{"several programs use it"}
--> 99995|{"several programs use it"}
SELECT public.small(1001, 7) AS n8n, public.small(1000, 7) AS before,
       public.small(1010, 7) AS after;
--> {"several programs use it"}||
-- A label says what it is.
INSERT INTO advisory.key_labels (key, label) VALUES (1, 'nightly import');
SELECT public.small(1); --> {"nightly import"}
DELETE FROM advisory.key_labels WHERE key = 1;

-- Beside the table of one program, and of two.
CREATE TABLE public.adonis_schema (name text);
SELECT public.small(1) AS lucid, public.small(2) AS airflow;
--> {"AdonisJS Lucid: migrations"}|{"several programs use it"}
CREATE TABLE public.dag_run (id integer);
SELECT public.small(1) AS both, public.small(2) AS airflow;
--> {"AdonisJS Lucid: migrations","Airflow: migrations"}|{"Airflow: scheduler critical section"}
DROP TABLE public.adonis_schema;
SELECT public.small(1) AS airflow; --> {"Airflow: migrations"}
DROP TABLE public.dag_run;
-- A temporary table and a view say nothing, a partitioned table in any schema does.
CREATE TEMPORARY TABLE adonis_schema (name text);
CREATE VIEW public.dag_run AS SELECT 1 AS id;
SELECT public.small(1); --> {"several programs use it"}
DROP TABLE pg_temp.adonis_schema;
DROP VIEW public.dag_run;
CREATE SCHEMA regress_advisory_small;
CREATE TABLE regress_advisory_small.workflow_entity (id integer) PARTITION BY RANGE (id);
SELECT key, public.small(key) FROM unnest('{1000,1001,1005,1009,1010}'::bigint[]) AS key;
--> 1000|{"several programs use it"}
--> 1001|{"n8n: migrations and maintenance"}
--> 1005|{"n8n: migrations and maintenance"}
--> 1009|{"n8n: migrations and maintenance"}
--> 1010|
SELECT key1, public.small(key1, -1) FROM unnest('{1000,1001,1005,1009,1010}'::int[]) AS key1;
--> 1000|
--> 1001|{"n8n: migrations and maintenance of a part"}
--> 1005|{"n8n: migrations and maintenance of a part"}
--> 1009|{"n8n: migrations and maintenance of a part"}
--> 1010|
DROP TABLE regress_advisory_small.workflow_entity;
DROP SCHEMA regress_advisory_small;

-- activity has the number in front, of a pair, too.
SELECT pg_advisory_lock(1), pg_advisory_lock(1001, 7) \g /dev/null
SELECT lock FROM advisory.activity WHERE pid = pg_backend_pid() ORDER BY lock COLLATE "C";
--> 1 "several programs use it"
--> 1001, 7 "several programs use it"
SELECT pg_advisory_unlock_all() \g /dev/null
DROP FUNCTION public.small(bigint), public.small(int, int);
