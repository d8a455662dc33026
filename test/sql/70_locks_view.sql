-- advisory.locks: every advisory lock decoded, ours and not.
-- Other sessions' locks and waiters are for the isolation tests; objsubids of semaphores and of
-- strangers cannot be made here.
\pset format unaligned \pset tuples_only on

---- Names, slots and scope (69_locks_decoded: the same locks as pg_locks)
BEGIN;
SELECT advisory.lock('billing', 'invoice:42'), advisory.lock_shared('user', 42),
       advisory.xact_lock_key(-1, label => 'label'),
       pg_advisory_lock(4294967296), pg_advisory_xact_lock_shared(9223372036854775807),
       pg_advisory_lock(-9223372036854775808); --> t|t|t|||
SELECT pg_advisory_lock(1, 2), pg_advisory_lock(-1, -2147483648),
    pg_advisory_xact_lock_shared(2147483647, -2), pg_advisory_lock(0, 0); --> |||
SELECT kind, namespace, name, slot, key, key1, key2, mode, scope, granted FROM advisory.locks
    WHERE pid = pg_backend_pid() ORDER BY key, key1, key2;
--> lock||||-9223372036854775808|||exclusive|session|t
--> lock||label||-1|||exclusive|transaction|t
--> lock||||4294967296|||exclusive|session|t
--> lock|billing|invoice:42||1572001551135567388|||exclusive|session|t
--> lock|user|42||8907056734076048704|||shared|session|t
--> lock||||9223372036854775807|||shared|transaction|t
--> lock|||||-1|-2147483648|exclusive|session|t
--> lock|||||0|0|exclusive|session|t
--> lock|||||1|2|exclusive|session|t
--> lock|||||2147483647|-2|shared|transaction|t
COMMIT;
-- A pair is not called like the key that has its halves.
SELECT pg_advisory_lock(366010132, -104042980); -->
SELECT namespace, name, key, key1, key2 FROM advisory.locks
    WHERE pid = pg_backend_pid() AND key1 = 366010132 OR name = 'invoice:42' ORDER BY key;
--> billing|invoice:42|1572001551135567388||
--> |||366010132|-104042980
SELECT pg_advisory_unlock_all(); -->

-- A lock and two slots of one name.
BEGIN;
SELECT advisory.lock('both', 'x'), advisory.xact_acquire('both', 'x', 3),
    advisory.acquire('both', 'x', 3); --> t|1|2
SELECT kind, name, slot, scope, slots FROM advisory.locks
    WHERE pid = pg_backend_pid() ORDER BY kind, slot;
--> lock|x||session|
--> semaphore|x|1|transaction|3
--> semaphore|x|2|session|3
COMMIT;
SELECT pg_advisory_unlock_all(); -->

---- The holder
SELECT advisory.lock('ns', 'name'); --> t
SELECT pid = pg_backend_pid() AS me, database = current_database() AS here,
       role = session_user AS is_role, application_name,
       l.client_addr IS NOT DISTINCT FROM a.client_addr AS same_address, l.state, wait_start,
       waited, held >= '0' AS held,
       acquired_at BETWEEN a.backend_start AND clock_timestamp() AS acquired, blocked_by, known_as,
       gid, l.query LIKE '%who is it%' AS query
    FROM advisory.locks l JOIN pg_stat_activity a USING (pid, application_name)
        WHERE pid = pg_backend_pid() /* who is it */;
--> t|t|t|pg_regress/70_locks_view|t|active|||t|t||||t
-- acquired_at is when the first of the present holds was taken; NULL where the built-ins took it.
SELECT acquired_at AS first FROM advisory.locks WHERE name = 'name' \gset
SELECT advisory.lock('ns', 'name'), pg_sleep(0.002); --> t|
SELECT acquired_at = :'first' AS kept FROM advisory.locks WHERE name = 'name'; --> t
SELECT advisory.unlock('ns', 'name'); --> t
SELECT acquired_at = :'first' AS kept FROM advisory.locks WHERE name = 'name'; --> t
SELECT advisory.unlock('ns', 'name'); --> t
SELECT advisory.lock('ns', 'name'); --> t
SELECT acquired_at > :'first' AS anew FROM advisory.locks WHERE name = 'name'; --> t
SELECT advisory.unlock('ns', 'name'); --> t
SELECT pg_advisory_lock(424243); -->
SELECT acquired_at, held, namespace, name FROM advisory.locks WHERE key = 424243; --> |||
SELECT pg_advisory_unlock(424243); --> t

---- Names and labels of a megabyte, and those that are made to be mistaken for others
SELECT advisory.lock(repeat('n', 1000000), repeat('x', 1000000)) AS lock,
       advisory.hold_count(repeat('n', 1000000), repeat('x', 1000000)),
       advisory.unlock(repeat('n', 1000000), repeat('x', 1000000)); --> t|1|t
SELECT advisory.lock_key(42, label => repeat('l', 1000000)); --> t
SELECT length(name) AS label, advisory.unlock_key(42) FROM advisory.locks
    WHERE pid = pg_backend_pid(); --> 259|t
SELECT advisory.lock('a/b', 'c'), advisory.lock('a', E'b/c\n"\\'), advisory.lock(' ', ' '),
    advisory.lock('%s', '$1'); --> t|t|t|t
SELECT quote_literal(namespace), quote_literal(name) FROM advisory.locks
    WHERE pid = pg_backend_pid() ORDER BY namespace COLLATE "C";
--> ' '|' '
--> '%s'|'$1'
--> 'a'|E'b/c?"\\'
--> 'a/b'|'c'
SELECT advisory.unlock_all('a') + advisory.unlock_all('a/b') + advisory.unlock_all(' ')
    + advisory.unlock_all('%s') AS unlocked; --> 4

---- Another database
SELECT current_database() AS regression \gset
CREATE DATABASE regress_advisory_other TEMPLATE template0;
\c regress_advisory_other
BEGIN;
SELECT pg_advisory_xact_lock(42), pg_advisory_xact_lock(-4, 2); --> |
PREPARE TRANSACTION 'regress_advisory_other';
\c :regression
-- Shown with its database, and no obstacle here.
SELECT advisory.lock_key(42, label => 'here'), advisory.lock_key(43); --> t|t
SELECT database = current_database() AS here, nullif(database, current_database()) AS other,
    pid IS NOT NULL AS session, key, key1, key2, gid, name FROM advisory.locks
    WHERE database IN (current_database(), 'regress_advisory_other') ORDER BY here, key, key1;
--> f|regress_advisory_other|f|42|||regress_advisory_other|
--> f|regress_advisory_other|f||-4|2|regress_advisory_other|
--> t||t|42||||here
--> t||t|43||||
SELECT advisory.is_locked_key(42), (SELECT count(*) FROM advisory.holders_key(42)) AS holders,
    advisory.hold_count('ns', 'x'); --> t|1|0
SELECT advisory.unlock_key(42), advisory.unlock_key(43), advisory.is_locked_key(42); --> t|t|f
\c regress_advisory_other
ROLLBACK PREPARED 'regress_advisory_other';
\c :regression
DROP DATABASE regress_advisory_other;

---- Prepared transactions
CREATE ROLE regress_advisory_role;
SET ROLE regress_advisory_role;
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), pg_advisory_xact_lock_shared(-1, 1); --> t|
PREPARE TRANSACTION 'regress_advisory "it''s"';
RESET ROLE;
BEGIN;
SELECT advisory.xact_lock_shared('ns', 'other'); --> t
PREPARE TRANSACTION 'regress_advisory_2';
SELECT pid, database = current_database() AS here, role = session_user AS is_role, application_name,
       client_addr, state, kind, slot, key1, key2,
       mode, scope, granted, wait_start, waited, acquired_at, held, blocked_by, known_as, gid, query
    FROM advisory.locks WHERE gid LIKE 'regress_advisory%' ORDER BY is_role, key1;
--> |t|f||||lock||-1|1|shared|transaction|t|||||||regress_advisory "it's"|
--> |t|f||||lock||||exclusive|transaction|t|||||||regress_advisory "it's"|
--> |t|t||||lock||||shared|transaction|t|||||||regress_advisory_2|
SELECT role FROM advisory.locks WHERE key1 = -1; --> regress_advisory_role
ROLLBACK PREPARED 'regress_advisory "it''s"';
ROLLBACK PREPARED 'regress_advisory_2';
DROP ROLE regress_advisory_role;

---- Large: more locks than any first guess of a buffer; the view is read twice in a statement
SELECT count(advisory.lock('many', i)) FROM generate_series(1, 3000) i; --> 3000
SELECT count(*), count(DISTINCT name), count(DISTINCT key), count(held) FROM advisory.locks
    WHERE namespace = 'many'; --> 3000|3000|3000|3000
SELECT count(*) FROM advisory.locks a JOIN advisory.locks b USING (key) WHERE a.namespace = 'many';
--> 3000
-- Each has its own name, also where the query itself uses the memory of a row.
SELECT count(*) FROM advisory.locks WHERE namespace = 'many' AND lpad('', 3000, '#') <> name
    AND key = advisory.key(namespace, name); --> 3000
SELECT advisory.unlock_all('many'); --> 3000
-- Whatever their number is, in one mode or in both.
DO $$ BEGIN
    FOR i IN 1..120 LOOP
        PERFORM CASE i % 2 WHEN 1 THEN advisory.lock('any', i)
            ELSE advisory.lock_shared('any', i - 1) END;
        ASSERT (SELECT count(*) = i AND count(DISTINCT (key, mode)) = i FROM advisory.locks
            WHERE namespace = 'any' AND key = advisory.key(namespace, name)), i;
    END LOOP;
END $$;
SELECT advisory.unlock_all('any'); --> 120

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
