-- Editions: both.
-- advisory.locks has the same locks as pg_locks, key by key.
\pset format unaligned \pset tuples_only on
BEGIN;
SELECT advisory.lock('billing', 'invoice:42'), advisory.lock_shared('user', 42),
       advisory.xact_lock_key(-1, label => 'label'),
       pg_advisory_lock(4294967296), pg_advisory_xact_lock_shared(9223372036854775807),
       pg_advisory_lock(-9223372036854775808); --> t|t|t|||
SELECT pg_advisory_lock(1, 2), pg_advisory_lock(-1, -2147483648),
    pg_advisory_xact_lock_shared(2147483647, -2), pg_advisory_lock(0, 0); --> |||
SELECT key, key1, key2, mode, granted FROM advisory.locks WHERE pid = pg_backend_pid()
    ORDER BY key, key1, key2;
--> -9223372036854775808|||exclusive|t
--> -1|||exclusive|t
--> 4294967296|||exclusive|t
--> 1572001551135567388|||exclusive|t
--> 8907056734076048704|||shared|t
--> 9223372036854775807|||shared|t
--> |-1|-2147483648|exclusive|t
--> |0|0|exclusive|t
--> |1|2|exclusive|t
--> |2147483647|-2|shared|t
-- Both ways round: nothing is missing, nothing made up.
CREATE VIEW pg_temp.theirs AS
    SELECT pid, database, mode, granted,
           CASE objsubid WHEN 1 THEN (classid::bigint << 32) | objid::bigint END AS key,
           CASE objsubid WHEN 2 THEN classid::bigint::bit(32)::int END AS key1,
           CASE objsubid WHEN 2 THEN objid::bigint::bit(32)::int END AS key2
    FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
CREATE VIEW pg_temp.ours AS
    SELECT pid, d.oid AS database, CASE mode WHEN 'exclusive' THEN 'ExclusiveLock'
        ELSE 'ShareLock' END AS mode, granted, key, key1, key2
    FROM advisory.locks l JOIN pg_database d ON d.datname = l.database WHERE pid = pg_backend_pid();
SELECT count(*) FROM pg_temp.theirs; --> 10
(SELECT * FROM pg_temp.theirs EXCEPT ALL SELECT * FROM pg_temp.ours)
UNION ALL (SELECT * FROM pg_temp.ours EXCEPT ALL SELECT * FROM pg_temp.theirs);
COMMIT;
SELECT key, key1, key2, mode, granted FROM advisory.locks WHERE pid = pg_backend_pid()
    ORDER BY key, key1, key2;
--> -9223372036854775808|||exclusive|t
--> 4294967296|||exclusive|t
--> 1572001551135567388|||exclusive|t
--> 8907056734076048704|||shared|t
--> |-1|-2147483648|exclusive|t
--> |0|0|exclusive|t
--> |1|2|exclusive|t
SELECT pid = pg_backend_pid() AS me, database = current_database() AS here,
       role = session_user AS is_role, application_name,
       l.client_addr IS NOT DISTINCT FROM a.client_addr AS same_address, l.state, wait_start,
       waited, blocked_by, gid, l.query LIKE '%who is it%' AS query
    FROM advisory.locks l JOIN pg_stat_activity a USING (pid, application_name)
        WHERE pid = pg_backend_pid() AND key = 4294967296 /* who is it */;
--> t|t|t|pg_regress/69_locks_decoded|t|active|||||t
SELECT pg_advisory_unlock_all(); -->

---- Prepared transactions
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), pg_advisory_xact_lock_shared(-1, 1); --> t|
PREPARE TRANSACTION 'regress_advisory "it''s"';
SELECT pid, database = current_database() AS here, role = session_user AS is_role, application_name,
       client_addr, state, key = advisory.key('ns', 'name') AS named, key1, key2,
       mode, granted, wait_start, waited, acquired_at, held, blocked_by, gid, query
    FROM advisory.locks WHERE gid LIKE 'regress_advisory%' ORDER BY key1;
--> |t|t|||||-1|1|shared|t||||||regress_advisory "it's"|
--> |t|t||||t|||exclusive|t||||||regress_advisory "it's"|
ROLLBACK PREPARED 'regress_advisory "it''s"';

---- Large: more locks than any first guess of a buffer; the view is read twice in a statement
SELECT count(advisory.lock('many', i)) FROM generate_series(1, 3000) i; --> 3000
SELECT count(*), count(DISTINCT key) FROM advisory.locks WHERE pid = pg_backend_pid(); --> 3000|3000
SELECT count(*) FROM advisory.locks a JOIN advisory.locks b USING (key)
    WHERE a.pid = pg_backend_pid(); --> 3000
SELECT pg_advisory_unlock_all(); -->

SELECT count(*) AS left_locked FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE locktype = 'advisory' AND datname = current_database(); --> 0
