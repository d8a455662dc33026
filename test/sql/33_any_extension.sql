-- try_lock_any() and try_xact_lock_any(), as in 31_try_lock_any: names, scope and number of holds, which only the extension has.
CREATE VIEW pg_temp.mine AS
    SELECT name, scope, advisory.hold_count('ns', name) FROM advisory.locks WHERE pid = pg_backend_pid();

SELECT i, name FROM advisory.try_lock_any('ns', ARRAY['z', 'a', 'm', 'b'], 3) WITH ORDINALITY AS t(name, i);
SELECT advisory.try_lock_any('ns', ARRAY['a', 'a', 'b', 'a'], 4);
SELECT * FROM pg_temp.mine ORDER BY name;
SELECT advisory.unlock_all('ns');
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

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
