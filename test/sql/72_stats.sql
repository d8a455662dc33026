-- advisory.stats and stats_reset(), as far as one session can tell: it never waits.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;
SELECT advisory.key('load the library'); --> -5588912621612554077
CREATE VIEW pg_temp.counts AS
    SELECT namespace, name, acquired, contended, failed, timeouts, skipped, wait_total, wait_max
        FROM advisory.stats
    WHERE namespace = 'stats' OR name = 'stats label' ORDER BY name COLLATE "C";

---- Nothing, then one by one
SELECT * FROM pg_temp.counts;
SELECT advisory.key('stats', 'only a key'), advisory.is_locked('stats', 'looked at'),
    advisory.hold_count('stats', 'looked at'), advisory.unlock_all('stats', 'looked at');
--> -2340655126943401996|f|0|0
SELECT * FROM pg_temp.counts;
SELECT advisory.lock('stats', 'a'), advisory.lock('stats', 'a'), advisory.lock_shared('stats', 'a');
--> t|t|t
SELECT * FROM pg_temp.counts; --> stats|a|3|0|0|0|0|@ 0|@ 0
SELECT hold_total, hold_max, last_acquired_at <= clock_timestamp() AS acquired,
    stats_since <= last_acquired_at AS since FROM advisory.stats WHERE namespace = 'stats';
--> @ 0|@ 0|t|t
SELECT advisory.unlock('stats', 'a'), pg_sleep(0.005); --> t|
SELECT hold_total FROM advisory.stats WHERE namespace = 'stats'; --> @ 0
SELECT advisory.unlock_all('stats'); --> 2
SELECT hold_total BETWEEN '10ms' AND '1min' AS total, hold_max BETWEEN '5ms'
    AND hold_total AS longest FROM advisory.stats WHERE namespace = 'stats'; --> t|t
SELECT * FROM pg_temp.counts; --> stats|a|3|0|0|0|0|@ 0|@ 0

---- Transactions
BEGIN;
SELECT advisory.xact_lock('stats', 'b'); --> t
SAVEPOINT s;
SELECT advisory.try_xact_lock('stats', 'b'), advisory.try_xact_lock('stats', 'c'); --> t|t
ROLLBACK TO s;
SELECT * FROM pg_temp.counts;
--> stats|a|3|0|0|0|0|@ 0|@ 0
--> stats|b|2|0|0|0|0|@ 0|@ 0
--> stats|c|1|0|0|0|0|@ 0|@ 0
ROLLBACK;
SELECT * FROM pg_temp.counts;
--> stats|a|3|0|0|0|0|@ 0|@ 0
--> stats|b|2|0|0|0|0|@ 0|@ 0
--> stats|c|1|0|0|0|0|@ 0|@ 0
DO $$ BEGIN
    PERFORM advisory.xact_lock('stats', 'd');
    RAISE EXCEPTION 'an error';
EXCEPTION WHEN raise_exception THEN
    PERFORM advisory.xact_lock('stats', 'd');
END $$;
SELECT * FROM pg_temp.counts WHERE name = 'd'; --> stats|d|2|0|0|0|0|@ 0|@ 0

---- Several, labels, bigints
SELECT advisory.lock_all('stats', ARRAY['e', 'f', 'e']), advisory.unlock_all('stats'); --> t|2
SELECT * FROM advisory.try_lock_any('stats', ARRAY['e', 'g', 'h'], 2);
--> e
--> g
SELECT advisory.unlock_all('stats'), advisory.lock_key(4711, label => 'stats label'),
    advisory.unlock_key(4711); --> 2|t|t
SELECT advisory.try_xact_lock('stats', 7), advisory.try_xact_lock('stats', '7'); --> t|t
SELECT namespace, name, acquired FROM pg_temp.counts;
--> stats|7|2
--> stats|a|3
--> stats|b|2
--> stats|c|1
--> stats|d|2
--> stats|e|2
--> stats|f|1
--> stats|g|1
--> |stats label|1

---- What a session releases and does not hold, by name or label, both with warn and with error
SET client_min_messages = error;
SELECT advisory.unlock('stats', 'gone'), advisory.unlock_shared('stats', 'gone'),
    advisory.release('stats', 'gone', 1), advisory.release_many('stats', 'gone', '{1,2}'),
    advisory.unlock_key(4711), advisory.unlock_key(4712); --> f|f|f|0|f|f
SET advisory_ext.unlock_not_held = error;
\set VERBOSITY terse
SELECT advisory.unlock('stats', 'gone');
--> ERROR:  you don't own a lock of type ExclusiveLock on "stats/gone"
SELECT advisory.release('stats', 'gone', 1);
--> ERROR:  you don't own slot 1 of semaphore "stats/gone"
\set VERBOSITY default
RESET advisory_ext.unlock_not_held;
RESET client_min_messages;
SELECT advisory.unlock_all('stats', 'gone'), advisory.lock('stats', 'gone'),
    advisory.unlock('stats', 'gone'); --> 0|t|t
SELECT namespace, name, acquired, not_held FROM advisory.stats
    WHERE (namespace = 'stats' OR name = 'stats label') AND not_held > 0 ORDER BY name COLLATE "C";
--> stats|gone|1|7
--> |stats label|1|1

---- Without
SET advisory_ext.track = 'none';
SELECT advisory.try_xact_lock('stats', 'e'), advisory.try_xact_lock('stats', 'untracked'); --> t|t
SET client_min_messages = error;
SELECT advisory.unlock('stats', 'untracked'), advisory.unlock('stats', 'gone'); --> f|f
RESET client_min_messages;
SET advisory_ext.track = 'names';
SELECT advisory.try_xact_lock('stats', 'e'), advisory.try_xact_lock('stats', 'by name only');
--> t|t
RESET advisory_ext.track;
SELECT namespace, name, acquired FROM pg_temp.counts
    WHERE name IN ('e', 'untracked', 'by name only');
--> stats|by name only|0
--> stats|e|2
SELECT not_held FROM advisory.stats WHERE namespace = 'stats' AND name = 'gone'; --> 7

---- The key of each name, to look up a number in a log
SELECT name, key, key = advisory.key(namespace, name) AS same FROM advisory.stats
    WHERE namespace = 'stats' AND name = 'a'; --> a|-8555713129462586915|t
SELECT namespace, name, key FROM advisory.stats WHERE name = 'stats label'; --> |stats label|4711
CREATE ROLE regress_stats_other;
SET ROLE regress_stats_other;
SELECT DISTINCT namespace, name, key FROM advisory.stats WHERE key IS NOT NULL
    OR name <> '<insufficient privilege>';
RESET ROLE;
DROP ROLE regress_stats_other;

---- Anew
SELECT count(*) AS names FROM pg_temp.counts \gset
SELECT clock_timestamp() AS before \gset
SELECT advisory.stats_reset(); -->
SELECT count(*) = :names AS all_there, sum(acquired) AS acquired, max(last_acquired_at) AS last,
    min(stats_since) > :'before' AS anew
    FROM advisory.stats WHERE namespace = 'stats' OR name = 'stats label'; --> t|0||t
SELECT advisory.try_xact_lock('stats', 'a'); --> t
SELECT name, acquired FROM pg_temp.counts WHERE acquired > 0; --> a|1
