-- Editions: both.
-- One slot of each of several semaphores, in one session: the calls that do not wait in turn.
-- (39_acquire_all_extension: those that do.) That others wait takes more sessions: see the script
-- tests.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT coalesce(array_agg(name || slot ORDER BY name, slot), '{}') AS slots
    FROM unnest(ARRAY['t', 'u', 'v', '1', '2', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']) AS name,
        advisory.holders('ns', name) WHERE pid = pg_backend_pid();

---- The slot of each name, in their order: all or none
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'v'], ARRAY[2, 3]); --> {1,1}
SELECT advisory.try_acquire('ns', 'v', 3); --> 2
SELECT advisory.try_acquire_all('ns', ARRAY['v', 't'], ARRAY[3, 2], '1s'); --> {3,2}
SELECT advisory.try_acquire_all('ns', ARRAY['u', 'v'], ARRAY[1, 3]),
    advisory.try_acquire_all('ns', ARRAY['v', 'u'], ARRAY[3, 1], '10ms'); --> |
SELECT slots FROM pg_temp.mine; --> {t1,t2,v1,v2,v3}
SELECT advisory.release('ns', 'v', 2), advisory.release('ns', 't', 1); --> t|t
-- A slot that this session has already is not free.
SELECT advisory.try_acquire_all('ns', ARRAY['v', 'u', 't'], ARRAY[3, 1, 2]); --> {2,1,1}
SELECT advisory.try_acquire_all('ns', ARRAY['u'], ARRAY[1]); -->
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.try_acquire_all('ns', ARRAY['u'], ARRAY[1]); --> {1}
SELECT pg_advisory_unlock_all(); -->
-- In another session's way: one slot is enough for nobody to get a part.
SELECT advisory.try_acquire('ns', 'u', 1); --> 1
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'u', 'v'], ARRAY[2, 1, 3]); -->
SELECT slots FROM pg_temp.mine; --> {u1}
SELECT pg_advisory_unlock_all(); -->

---- Other forms of the names
SELECT advisory.try_acquire_all('ns', ARRAY[1, 2], '{1,1}'),
    advisory.try_acquire_all('ns', '{t,u}', '{1,1}'),
    advisory.try_acquire_all('ns', ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid], '{1}');
--> {1,1}|{1,1}|{1}
SELECT slots FROM pg_temp.mine;
--> {11,21,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111,t1,u1}
SELECT pg_advisory_unlock_all(); -->

---- For the transaction, and for the savepoint
BEGIN;
SELECT advisory.try_xact_acquire_all('ns', ARRAY['t', 'v'], ARRAY[2, 3]); --> {1,1}
SAVEPOINT s;
SELECT advisory.try_xact_acquire_all('ns', ARRAY['t', 'v'], ARRAY[2, 3], '1s'); --> {2,2}
SELECT advisory.try_xact_acquire_all('ns', ARRAY['v', 't'], ARRAY[3, 2], '10ms'); -->
SELECT slots FROM pg_temp.mine; --> {t1,t2,v1,v2}
ROLLBACK TO s;
SELECT slots FROM pg_temp.mine; --> {t1,v1}
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'v'], ARRAY[2, 3]); --> {2,2}
ROLLBACK;
SELECT slots FROM pg_temp.mine; --> {t2,v2}
SELECT pg_advisory_unlock_all(); -->

---- What is refused: nothing is taken
SELECT advisory.try_acquire_all('ns', '{}'::text[], '{}'); --> {}
SELECT advisory.try_acquire_all('ns', ARRAY['t', 't'], '{1,1}');
--> ERROR:  a semaphore must not be in the list twice
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'u'], '{1}');
--> ERROR:  the lists of names and of slots must have the same length
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'u'], '{1,NULL}');
--> ERROR:  slots must not be null
--extension> DETAIL:  Element 2 of the list is null.
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'u'], '{1,0}');
--> ERROR:  slots must be between 1 and 16000
SELECT advisory.try_acquire_all('ns', ARRAY['t', 'u'], '{1,16001}');
--> ERROR:  slots must be between 1 and 16000
SELECT advisory.try_acquire_all('ns', ARRAY['t', NULL], '{1,1}');
--> ERROR:  name must not be null
--extension> DETAIL:  Element 2 of the list is null.
SELECT advisory.try_acquire_all('ns', ARRAY['t', ''], '{1,1}');
--> ERROR:  name must not be empty
SELECT advisory.try_acquire_all('ns', NULL::text[], '{1}');
--> ERROR:  list of names must not be null
SELECT advisory.try_acquire_all('ns', ARRAY['t'], NULL); --> ERROR:  slots must not be null
SELECT advisory.try_acquire_all(NULL, ARRAY['t'], '{1}'); --> ERROR:  namespace must not be null
SELECT advisory.try_acquire_all('ns', ARRAY['t'], '{1}', '-1s');
--> ERROR:  timeout must not be negative
SELECT advisory.try_acquire_all('ns', array_agg(i), array_agg(1)) FROM generate_series(1, 17) AS i;
--> ERROR:  cannot take slots of more than 16 semaphores at once
SELECT cardinality(advisory.try_acquire_all('ns', array_agg(i), array_agg(1)))
    FROM generate_series(1, 16) AS i; --> 16
SELECT pg_advisory_unlock_all(); -->
SELECT slots FROM pg_temp.mine; --> {}
