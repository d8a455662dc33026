-- Editions: both.
-- What no other test of both editions reads: labels, and views of a database in which nobody waits.
\pset format unaligned \pset tuples_only on
SELECT advisory.version() ~ '^\d+[.]\d+$'; --> t
INSERT INTO advisory.key_labels (key, label) SELECT advisory.key('shown', n), 'shown/' || n
    FROM unnest('{a,b,s}'::text[]) AS n;
SELECT label FROM advisory.key_labels WHERE label ~ '^shown' ORDER BY 1;
--> shown/a
--> shown/b
--> shown/s
SELECT advisory.lock('shown', 'a'), advisory.lock_shared('shown', 'b'),
       advisory.acquire('shown', 's', 3), advisory.acquire('shown', 's', 3); --> t|t|1|2
SELECT lock, slot, mode, state, waiting, blocked_by FROM advisory.activity
    WHERE pid = pg_backend_pid() ORDER BY lock, slot;
--> shown/a||exclusive|active||
--> shown/b||shared|active||
--> shown/s|1|exclusive|active||
--> shown/s|2|exclusive|active||
SELECT namespace, name, key = advisory.key('shown', 's'), in_use, waiting,
       holders = ARRAY[pg_backend_pid(), pg_backend_pid()], slots_wanted
    FROM advisory.semaphores WHERE namespace = 'shown'; --> shown|s|t|2|0|t|
SELECT count(*) FROM advisory.blockers WHERE pid = pg_backend_pid(); --> 0
SELECT advisory.terminate_blocker(pg_backend_pid(), 'shown/a'); --> f
SELECT advisory.cancel_waiter(pg_backend_pid(), 'shown/a'); --> f
SELECT status, locks_used > 3, holders_used >= locks_used, locks_guaranteed > 1000,
       holders_guaranteed / locks_guaranteed, percent_of_guaranteed BETWEEN 0 AND 50
    FROM advisory.pressure; --> ok|t|t|t|2|t
SELECT advisory.unlock('shown', 'a'), advisory.unlock_shared('shown', 'b'),
       advisory.release_many('shown', 's', '{1,2}'); --> t|t|2
DELETE FROM advisory.key_labels WHERE label ~ '^shown';
