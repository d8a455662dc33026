-- Editions: both.
-- try_lock_any(): up to so many of the candidates, in the order given, each looked at once.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT n.name, mode
    FROM advisory.locks
        LEFT JOIN unnest('{a, b, c, d, e, m, z, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -7,
                           a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,
                           00000000-0000-0000-0000-000000000001}'::text[]) AS n (name)
        ON key = advisory.key('ns', n.name)
    WHERE pid = pg_backend_pid();
-- What the session holds, how often, and from then on no more.
CREATE FUNCTION pg_temp.released() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(name || ' ' || advisory.unlock_all('ns', name), ', ' ORDER BY name)
        FROM pg_temp.mine $$;

---- The order given is kept, in what is tried and in what comes back
SELECT advisory.try_lock_any('ns', ARRAY['z', 'a', 'm']); --> z
SELECT pg_temp.released(); --> z 1
SELECT i, name FROM advisory.try_lock_any('ns', ARRAY['z', 'a', 'm', 'b'], 3) WITH ORDINALITY
    AS t(name, i);
--> 1|z
--> 2|a
--> 3|m
SELECT pg_temp.released(); --> a 1, m 1, z 1
-- More than there are: all of them.
SELECT advisory.try_lock_any('ns', ARRAY['b', 'a'], wanted => 2147483647);
--> b
--> a
SELECT pg_temp.released(); --> a 1, b 1

---- The type of the list comes back
SELECT id, pg_typeof(id) FROM advisory.try_lock_any('ns', ARRAY[7, -7], 2) AS id;
--> 7|bigint
--> -7|bigint
SELECT id, pg_typeof(id) FROM advisory.try_lock_any('ns',
    ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[]) AS id;
--> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|uuid
SELECT id, pg_typeof(id) FROM advisory.try_lock_any('ns', '{b,a}') AS id; --> b|text
SELECT pg_temp.released(); --> -7 1, 7 1, a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 1, b 1

---- Duplicates: a second look is none
SELECT advisory.try_lock_any('ns', ARRAY['a', 'a', 'b', 'a'], 4);
--> a
--> b
SELECT pg_temp.released(); --> a 1, b 1

---- Until the end of the transaction
BEGIN;
SELECT advisory.try_xact_lock_any('ns', ARRAY['b', 'a']); --> b
SELECT advisory.try_xact_lock_any('ns', ARRAY[2, 1], 2);
--> 2
--> 1
SELECT advisory.try_xact_lock_any('ns', ARRAY['00000000-0000-0000-0000-000000000001']::uuid[]);
--> 00000000-0000-0000-0000-000000000001
SELECT advisory.try_xact_lock_any('ns', '{z}'); --> z
SELECT * FROM pg_temp.mine ORDER BY name;
--> 00000000-0000-0000-0000-000000000001|exclusive
--> 1|exclusive
--> 2|exclusive
--> b|exclusive
--> z|exclusive
SAVEPOINT s;
SELECT advisory.try_xact_lock_any('ns', ARRAY['c']); --> c
ROLLBACK TO s;
SELECT advisory.holds('ns', 'c'); --> f
COMMIT;
SELECT * FROM pg_temp.mine;

---- Nothing free
SELECT advisory.try_lock_any('ns', '{}'::text[]);
SELECT advisory.try_lock_any('ns', '{}'::bigint[], 5);
SELECT advisory.try_lock_any('ns', '{}'::uuid[]);
SELECT advisory.try_xact_lock_any('ns', '{}');
-- Locks that others hold are skipped (here: of prepared transactions).
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']); --> t
PREPARE TRANSACTION 'regress_advisory';
SELECT advisory.try_lock_any('ns', ARRAY['a', 'b']);
SELECT advisory.try_lock_any('ns', ARRAY['a', 'c', 'b', 'd', 'e'], 2);
--> c
--> d
ROLLBACK PREPARED 'regress_advisory';
SELECT pg_temp.released(); --> c 1, d 1
-- The session gets locks that it holds already once more, as with try_lock.
SELECT advisory.lock('ns', 'a'); --> t
SELECT advisory.try_lock_any('ns', ARRAY['a', 'b']); --> a
SELECT pg_temp.released(); --> a 2

---- The LIMIT trap: the built-in locks rows that nobody gets to see
CREATE TEMP TABLE jobs AS SELECT i AS id FROM generate_series(1, 10) i;
SELECT id FROM (SELECT id, pg_try_advisory_lock(advisory.key('ns', id)) AS locked FROM jobs
    ORDER BY locked, id LIMIT 1) AS trapped; --> 1
SELECT count(*) AS locked_for_one FROM advisory.locks WHERE pid = pg_backend_pid(); --> 10
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.try_lock_any('ns', array_agg(id::bigint ORDER BY id DESC)) FROM jobs; --> 10
SELECT pg_temp.released(); --> 10 1
-- What was locked is always returned: nothing in the query around it changes how often candidates
-- are looked at.
SELECT j.id FROM jobs j JOIN advisory.try_lock_any('ns', ARRAY[3, 4, 5], 2) AS got(id) USING (id)
    ORDER BY j.id DESC LIMIT 1; --> 4
SELECT pg_temp.released(); --> 3 1, 4 1

---- Errors
-- One that comes after the call (too many rows for this place) releases nothing, as with every
-- session-level lock.
SELECT (SELECT advisory.try_lock_any('ns', ARRAY['a', 'b'], 2));
--> ERROR:  more than one row returned by a subquery used as an expression
SELECT pg_temp.released(); --> a 1, b 1
-- One in the list comes before anything is taken.
\set VERBOSITY sqlstate
SELECT advisory.try_lock_any('ns', ARRAY['a', '']); --> ERROR:  22023
SELECT advisory.try_lock_any('ns', ARRAY['a', NULL]); --> ERROR:  22004
SELECT advisory.try_lock_any('ns', ARRAY['a'], 0); --> ERROR:  22023
SELECT advisory.try_lock_any('ns', ARRAY['a'], -1); --> ERROR:  22023
SELECT advisory.try_lock_any('ns', ARRAY['a'], NULL); --> ERROR:  22004
SELECT advisory.try_xact_lock_any('ns', ARRAY['a'], 0); --> ERROR:  22023
SELECT advisory.try_lock_any('ns', 'a'); --> ERROR:  22P02
\set VERBOSITY default

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
