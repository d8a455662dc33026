-- Editions: both.
-- try_lock_any(): up to so many of the candidates, in the order given, each looked at once.
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT n.name, mode
    FROM advisory.locks LEFT JOIN unnest('{a,b,c,d,e,m,z,1,2,3,4,5,6,7,8,9,10,-7,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,00000000-0000-0000-0000-000000000001}'::text[]) AS n (name)
        ON key = advisory.key('ns', n.name)
    WHERE pid = pg_backend_pid();
-- What the session holds, how often, and from then on no more.
CREATE FUNCTION pg_temp.released() RETURNS TABLE (name text, holds integer) LANGUAGE sql AS
    $$ SELECT name, advisory.unlock_all('ns', name) FROM pg_temp.mine ORDER BY name $$;

---- The order given is kept, in what is tried and in what comes back

SELECT advisory.try_lock_any('ns', ARRAY['z', 'a', 'm']);
SELECT * FROM pg_temp.released();
SELECT i, name FROM advisory.try_lock_any('ns', ARRAY['z', 'a', 'm', 'b'], 3) WITH ORDINALITY AS t(name, i);
SELECT * FROM pg_temp.released();
-- More than there are: all of them.
SELECT advisory.try_lock_any('ns', ARRAY['b', 'a'], wanted => 2147483647);
SELECT * FROM pg_temp.released();

---- The type of the list comes back

SELECT id, pg_typeof(id) FROM advisory.try_lock_any('ns', ARRAY[7, -7], 2) AS id;
SELECT id, pg_typeof(id) FROM advisory.try_lock_any('ns', ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11']::uuid[]) AS id;
SELECT id, pg_typeof(id) FROM advisory.try_lock_any('ns', '{b,a}') AS id;
SELECT * FROM pg_temp.released();

---- Duplicates: a second look is none

SELECT advisory.try_lock_any('ns', ARRAY['a', 'a', 'b', 'a'], 4);
SELECT * FROM pg_temp.released();

---- Until the end of the transaction

BEGIN;
SELECT advisory.try_xact_lock_any('ns', ARRAY['b', 'a']);
SELECT advisory.try_xact_lock_any('ns', ARRAY[2, 1], 2);
SELECT advisory.try_xact_lock_any('ns', ARRAY['00000000-0000-0000-0000-000000000001']::uuid[]);
SELECT advisory.try_xact_lock_any('ns', '{z}');
SELECT * FROM pg_temp.mine ORDER BY name;
SAVEPOINT s;
SELECT advisory.try_xact_lock_any('ns', ARRAY['c']);
ROLLBACK TO s;
SELECT advisory.holds('ns', 'c');
COMMIT;
SELECT * FROM pg_temp.mine;

---- Nothing free

SELECT advisory.try_lock_any('ns', '{}'::text[]);
SELECT advisory.try_lock_any('ns', '{}'::bigint[], 5);
SELECT advisory.try_lock_any('ns', '{}'::uuid[]);
SELECT advisory.try_xact_lock_any('ns', '{}');
-- Locks that others hold are skipped (here: of prepared transactions).
BEGIN;
SELECT advisory.xact_lock_all('ns', ARRAY['a', 'b']);
PREPARE TRANSACTION 'regress_advisory';
SELECT advisory.try_lock_any('ns', ARRAY['a', 'b']);
SELECT advisory.try_lock_any('ns', ARRAY['a', 'c', 'b', 'd', 'e'], 2);
ROLLBACK PREPARED 'regress_advisory';
SELECT * FROM pg_temp.released();
-- The session gets locks that it holds already once more, as with try_lock.
SELECT advisory.lock('ns', 'a');
SELECT advisory.try_lock_any('ns', ARRAY['a', 'b']);
SELECT * FROM pg_temp.released();

---- The LIMIT trap: the built-in locks rows that nobody gets to see

CREATE TEMP TABLE jobs AS SELECT i AS id FROM generate_series(1, 10) i;
SELECT id FROM (SELECT id, pg_try_advisory_lock(advisory.key('ns', id)) AS locked FROM jobs ORDER BY locked, id LIMIT 1) AS trapped;
SELECT count(*) AS locked_for_one FROM advisory.locks WHERE pid = pg_backend_pid();
SELECT pg_advisory_unlock_all();
SELECT advisory.try_lock_any('ns', array_agg(id::bigint ORDER BY id DESC)) FROM jobs;
SELECT * FROM pg_temp.released();
-- What was locked is always returned: nothing in the query around it changes how often candidates are looked at.
SELECT j.id FROM jobs j JOIN advisory.try_lock_any('ns', ARRAY[3, 4, 5], 2) AS got(id) USING (id) ORDER BY j.id DESC LIMIT 1;
SELECT * FROM pg_temp.released();

---- Errors

-- One that comes after the call (too many rows for this place) releases nothing, as with every session-level lock.
SELECT (SELECT advisory.try_lock_any('ns', ARRAY['a', 'b'], 2));
SELECT * FROM pg_temp.released();
-- One in the list comes before anything is taken.
\set VERBOSITY sqlstate
SELECT advisory.try_lock_any('ns', ARRAY['a', '']);
SELECT advisory.try_lock_any('ns', ARRAY['a', NULL]);
SELECT advisory.try_lock_any('ns', ARRAY['a'], 0);
SELECT advisory.try_lock_any('ns', ARRAY['a'], -1);
SELECT advisory.try_lock_any('ns', ARRAY['a'], NULL);
SELECT advisory.try_xact_lock_any('ns', ARRAY['a'], 0);
SELECT advisory.try_lock_any('ns', 'a');
\set VERBOSITY default

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
