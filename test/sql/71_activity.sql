-- advisory.activity: each lock on a line that can be read. Order and waiters are for the isolation tests.
SET application_name = 'activity';
-- Sessions of other tests may still be ending.
CREATE VIEW pg_temp.mine AS
    SELECT lock, slot, mode, pid = pg_backend_pid() AS me, replace(who, session_user, 'ROLE') AS who, state, waiting, held >= '0' AS held, blocked_by
    FROM advisory.activity WHERE pid = pg_backend_pid() OR who ~ 'prepared regress_activity';

---- What a lock is called

SELECT advisory.lock('billing', 'invoice:42'), advisory.lock_shared('user', 42), advisory.lock_key(-7171, label => 'a label'), advisory.lock_key(99999);
SELECT pg_advisory_lock(12345), pg_advisory_lock(-1, -2147483648), pg_advisory_lock(advisory.key('billing', 'invoice:42')), pg_advisory_lock_shared(advisory.key('billing', 'by its key'));
SELECT * FROM pg_temp.mine ORDER BY lock COLLATE "C";
-- That a name has a slash, or looks like a number, is its own affair.
SELECT advisory.unlock_all('billing'), advisory.unlock_all('user');
SELECT pg_advisory_unlock_all();
SELECT advisory.lock('a/b', 'c'), advisory.lock('a', 'b/c'), advisory.lock(' ', E'two\nlines');
SELECT count(*) AS locks, count(DISTINCT lock) AS texts FROM pg_temp.mine;
SELECT lock, mode FROM pg_temp.mine ORDER BY lock COLLATE "C";
SELECT pg_advisory_unlock_all();

---- What a key is known for

INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'nightly import'), (1, 'ours'), (424242424242, repeat('long ', 10) || 'label');
INSERT INTO advisory.key_labels (key1, key2, label) VALUES (1, 42, 'cache warm-up');
SELECT pg_advisory_lock(4711), pg_advisory_lock(424242424242), pg_advisory_lock(1, 42), pg_advisory_lock(72707369), pg_advisory_lock(2), pg_advisory_lock(1), pg_advisory_lock(99999);
SELECT lock FROM pg_temp.mine ORDER BY lock COLLATE "C";
-- A name outranks it, and so does a label.
SELECT advisory.lock_key(72707369, label => 'mine');
SELECT lock FROM pg_temp.mine WHERE lock ~ 'mine';
SELECT pg_advisory_unlock_all();
DELETE FROM advisory.key_labels;

---- The column who

SET application_name = '';
SELECT advisory.lock('who', 'no application');
SELECT lock, who FROM pg_temp.mine;
SELECT advisory.unlock('who', 'no application');
RESET application_name;
BEGIN;
SELECT advisory.xact_lock('who', 'prepared'), advisory.xact_lock_shared('who', 'prepared');
PREPARE TRANSACTION 'regress_activity';
SELECT * FROM pg_temp.mine ORDER BY mode;
ROLLBACK PREPARED 'regress_activity';
SELECT * FROM pg_temp.mine;

---- Times: whole seconds

SELECT advisory.lock('time', 'held'), pg_sleep(0.01);
SELECT held, extract(microseconds FROM held)::int % 1000000 AS fraction FROM advisory.activity WHERE lock = 'time/held';
SELECT held >= '0.01s' AS exactly FROM advisory.locks WHERE name = 'held';
SELECT advisory.unlock('time', 'held');

---- The oldest first

SELECT advisory.lock('order', n) FROM unnest('{3,1,2}'::bigint[]) WITH ORDINALITY AS u(n, i), LATERAL pg_sleep(0.002 * i) ORDER BY i;
SELECT lock FROM advisory.activity WHERE lock LIKE 'order/%';
SELECT advisory.unlock_all('order');
