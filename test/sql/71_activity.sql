-- advisory.activity: each lock on a line that can be read. Order and waiters are for the isolation
-- tests.
\pset format unaligned \pset tuples_only on
-- Short, so that no text is cut because of sessions of other tests that are still ending.
SET application_name = 'a';
CREATE VIEW pg_temp.mine AS
    SELECT lock, slot, mode, pid = pg_backend_pid() AS me,
        replace(who, session_user, 'ROLE') AS who, state, waiting, held >= '0' AS held, blocked_by
    FROM advisory.activity WHERE pid = pg_backend_pid() OR who ~ 'prepared regress_activity';

---- What a lock is called
SELECT advisory.lock('billing', 'invoice:42'), advisory.lock_shared('user', 42),
    advisory.lock_key(-7171, label => 'a label'), advisory.lock_key(99999); --> t|t|t|t
SELECT pg_advisory_lock(12345), pg_advisory_lock(-1, -2147483648),
    pg_advisory_lock(advisory.key('billing', 'invoice:42')),
    pg_advisory_lock_shared(advisory.key('billing', 'by its key')); --> |||
SELECT * FROM pg_temp.mine ORDER BY lock COLLATE "C";
--> "a label"||exclusive|t|ROLE@a|active||t|
--> -1, -2147483648||exclusive|t|ROLE@a|active|||
--> 12345 "several programs use it"||exclusive|t|ROLE@a|active|||
--> 4238325935258488709||shared|t|ROLE@a|active|||
--> 99999||exclusive|t|ROLE@a|active||t|
--> billing/invoice:42||exclusive|t|ROLE@a|active||t|
--> user/42||shared|t|ROLE@a|active||t|
-- That a name has a slash, or looks like a number, is its own affair.
SELECT advisory.unlock_all('billing'), advisory.unlock_all('user'); --> 1|1
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.lock('a/b', 'c'), advisory.lock('a', 'b/c'), advisory.lock(' ', E'two\nlines');
--> t|t|t
SELECT count(*) AS locks, count(DISTINCT lock) AS texts FROM pg_temp.mine; --> 3|2
SELECT lock, mode FROM pg_temp.mine ORDER BY lock COLLATE "C";
-->  /two?lines|exclusive
--> a/b/c|exclusive
--> a/b/c|exclusive
SELECT pg_advisory_unlock_all(); -->

---- What a key is known for
INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'nightly import'), (1, 'ours'),
    (424242424242, repeat('long ', 10) || 'label');
INSERT INTO advisory.key_labels (key1, key2, label) VALUES (1, 42, 'cache warm-up');
SELECT pg_advisory_lock(4711), pg_advisory_lock(424242424242), pg_advisory_lock(1, 42),
    pg_advisory_lock(72707369), pg_advisory_lock(2), pg_advisory_lock(1), pg_advisory_lock(99999);
--> ||||||
SELECT lock FROM pg_temp.mine ORDER BY lock COLLATE "C";
--> "Prisma Migrate: migra..."
--> "cache warm-up"
--> "long long long long l..."
--> "nightly import"
--> "ours"
--> 2 "several programs use it"
--> 99999
-- A name outranks it, and so does a label.
SELECT advisory.lock_key(72707369, label => 'mine'); --> t
SELECT lock FROM pg_temp.mine WHERE lock ~ 'mine'; --> "mine"
SELECT pg_advisory_unlock_all(); -->
DELETE FROM advisory.key_labels;

---- The column who
SET application_name = '';
SELECT advisory.lock('who', 'no application'); --> t
SELECT lock, who FROM pg_temp.mine; --> who/no application|ROLE
SELECT advisory.unlock('who', 'no application'); --> t
RESET application_name;
BEGIN;
SELECT advisory.xact_lock('who', 'prepared'), advisory.xact_lock_shared('who', 'prepared'); --> t|t
PREPARE TRANSACTION 'regress_activity';
SELECT * FROM pg_temp.mine ORDER BY mode;
--> who/prepared||exclusive||ROLE (prepared regress_activity)||||
--> who/prepared||shared||ROLE (prepared regress_activity)||||
ROLLBACK PREPARED 'regress_activity';
SELECT * FROM pg_temp.mine;

---- Times: whole seconds
SET jit = off;  -- To compile the view takes a second.
SELECT advisory.lock('time', 'held'), pg_sleep(0.01); --> t|
SELECT held, extract(microseconds FROM held)::int % 1000000 AS fraction FROM advisory.activity
    WHERE lock = 'time/held'; --> @ 0|0
SELECT held >= '0.01s' AS exactly FROM advisory.locks WHERE name = 'held'; --> t
SELECT advisory.unlock('time', 'held'); --> t
RESET jit;

---- The oldest first
SELECT advisory.lock('order', n) FROM unnest('{3,1,2}'::bigint[]) WITH ORDINALITY AS u(n, i),
    LATERAL pg_sleep(0.002 * i) ORDER BY i;
--> t
--> t
--> t
SELECT lock FROM advisory.activity WHERE lock LIKE 'order/%';
--> order/3
--> order/1
--> order/2
SELECT advisory.unlock_all('order'); --> 3
