-- try_lock_any() and try_xact_lock_any(), as in 31_try_lock_any: names, scope and number of holds,
-- which only the extension has.
\pset format unaligned \pset tuples_only on
CREATE VIEW pg_temp.mine AS
    SELECT name, scope, advisory.hold_count('ns', name) FROM advisory.locks
        WHERE pid = pg_backend_pid();

SELECT count(*) FROM advisory.try_lock_any('ns', ARRAY['z', 'a', 'm', 'b'], 3); --> 3
SELECT count(*) FROM advisory.try_lock_any('ns', ARRAY['a', 'a', 'b', 'a'], 4); --> 2
SELECT * FROM pg_temp.mine ORDER BY name;
--> a|session|2
--> b|session|1
--> m|session|1
--> z|session|1
SELECT advisory.unlock_all('ns'); --> 5
BEGIN;
SELECT advisory.try_xact_lock_any('ns', ARRAY['b', 'a']); --> b
SELECT count(*) FROM advisory.try_xact_lock_any('ns', ARRAY[2, 1], 2); --> 2
SELECT * FROM pg_temp.mine ORDER BY name;
--> 1|transaction|1
--> 2|transaction|1
--> b|transaction|1
COMMIT;
SELECT * FROM pg_temp.mine;

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
