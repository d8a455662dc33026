-- One slot of each of several semaphores, with what only the extension has. (38_acquire_all: what
-- both editions have.)
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

---- In the order of the names; an error says which was not free
SELECT advisory.acquire_all('ns', ARRAY['z', 'y', 'x'], ARRAY[1, 2, 3]); --> {1,1,1}
SELECT advisory.acquire_all('ns', ARRAY['z', 'y', 'x'], ARRAY[1, 2, 3], '10ms');
--> ERROR:  could not obtain a slot of semaphore "ns/z" within 10 ms
--> DETAIL:  This session has 1 of the slots itself.
--> HINT:  To see what others wait for: SELECT * FROM advisory.blockers.
SELECT advisory.acquire_all('ns', ARRAY['y', 'x'], ARRAY[2, 3], '0'),
    advisory.acquire_all('ns', ARRAY['x'], ARRAY[3], '1s'); --> {2,2}|{3}
SELECT advisory.acquire_all('ns', ARRAY['w', 'x'], ARRAY[1, 3], '0');
--> ERROR:  could not obtain a slot of semaphore "ns/x" without waiting
--> DETAIL:  This session has 3 of the slots itself.
--> HINT:  To see what others wait for: SELECT * FROM advisory.blockers.
SET lock_timeout = '10ms';
SELECT advisory.acquire_all('ns', ARRAY['w', 'x'], ARRAY[1, 3]);
--> ERROR:  could not obtain a slot of semaphore "ns/x" within lock_timeout of 10 ms
--> DETAIL:  This session has 3 of the slots itself.
--> HINT:  To see what others wait for: SELECT * FROM advisory.blockers.
SELECT advisory.try_acquire_all('ns', ARRAY['w', 'x'], ARRAY[1, 3], NULL); -->
RESET lock_timeout;
SELECT name, slots, in_use, free, waiting FROM advisory.semaphores ORDER BY name;
--> x|3|3|0|0
--> y|2|2|0|0
--> z|1|1|0|0

---- Forms, and the scope
BEGIN;
SELECT advisory.xact_acquire_all('ns', ARRAY[1, 2], '{1,1}'),
    advisory.xact_acquire_all('ns', '{a,b}', '{1,1}', '1s'); --> {1,1}|{1,1}
SELECT advisory.xact_acquire_all('ns', ARRAY[2, 3], '{1,1}', '10ms');
--> ERROR:  could not obtain a slot of semaphore "ns/2" within 10 ms
--> DETAIL:  This session has 1 of the slots itself.
--> HINT:  To see what others wait for: SELECT * FROM advisory.blockers.
ROLLBACK;
SELECT advisory.acquire_all('ns', '{}'::text[], '{}'); --> {}
SELECT count(*) FROM advisory.locks WHERE namespace = 'ns'; --> 6
SET advisory_ext.warn_no_transaction = on;
SELECT advisory.xact_acquire_all('ns', ARRAY[2, 3], '{1,1}');
--> WARNING:  advisory.xact_acquire_all() has no lasting effect outside a transaction block
--> DETAIL:  The locks that it takes are released at the end of the statement.
--> HINT:  BEGIN a transaction first, or use the session-level function advisory.acquire_all(). To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe "Barrier".
--> {1,1}
RESET advisory_ext.warn_no_transaction;
SET advisory_ext.session_locks = off;
SELECT advisory.acquire_all('ns', ARRAY[2, 3], '{1,1}');
--> ERROR:  session-level advisory locks are turned off by "advisory_ext.session_locks"
--> DETAIL:  Behind a transaction pooler a session-level lock outlives the client that took it.
--> HINT:  Use advisory.xact_acquire_all() instead.
RESET advisory_ext.session_locks;

---- Other numbers of slots
\set VERBOSITY terse
SELECT advisory.acquire_all('ns', ARRAY['w', 'x'], ARRAY[1, 4]);
--> WARNING:  semaphore "ns/x" is used with different numbers of slots
--> {1,4}
\set VERBOSITY default

---- Counted for each name: a failure for the first in the order of the keys that was not free
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.stats_reset(); -->
SELECT advisory.acquire_all('ns', ARRAY['s1', 's2'], ARRAY[1, 1]); --> {1,1}
SELECT advisory.try_acquire_all('ns', ARRAY['s1', 's2'], ARRAY[1, 1]),
    advisory.try_acquire_all('ns', ARRAY['s1', 's2'], ARRAY[1, 1], '10ms'); --> |
SELECT name, acquired, failed, timeouts FROM advisory.stats WHERE name LIKE 's_' ORDER BY name;
--> s1|1|1|1
--> s2|1|0|0
