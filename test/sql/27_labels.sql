-- Locks by key: labels, names and scope, which only the extension shows. (21_locks_by_key has them
-- for every function.)
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT key, mode, scope, namespace, name FROM advisory.locks WHERE pid = pg_backend_pid();

---- The built-ins' locks
SELECT pg_advisory_lock(42); -->
SELECT mode, scope, acquired_at FROM advisory.holders_key(42); --> exclusive|session|
SELECT advisory.unlock_key(42); --> t

---- A name
SELECT advisory.lock('billing', 'invoice:42'); --> t
-- The name, from which the key was computed, outranks a label.
SELECT advisory.lock_key(1572001551135567388, label => 'label');
--> WARNING:  the key of advisory lock "label" also has another name
--> DETAIL:  Key 1572001551135567388 is also the key of "billing/invoice:42".
--> HINT:  Locks with the same key exclude each other. Use another name or key for one of them.
--> t
SELECT namespace, name FROM pg_temp.mine; --> billing|invoice:42
SELECT advisory.hold_count('billing', 'invoice:42'); --> 2
SELECT advisory.unlock_key(1572001551135567388), advisory.unlock('billing', 'invoice:42'); --> t|t

---- Labels
SELECT advisory.lock_key(42, label => 'first'); --> t
SELECT advisory.lock_key(42); --> t
SELECT name AS kept FROM pg_temp.mine; --> first
SELECT advisory.lock_key(42, label => 'second'); --> t
SELECT name AS renamed FROM pg_temp.mine; --> second
SELECT advisory.unlock_key(42), advisory.unlock_key(42), advisory.unlock_key(42); --> t|t|t
-- Without a hold there is nothing to know a label from.
SELECT advisory.unlock_key(42);
--> WARNING:  you don't own a lock of type ExclusiveLock on "second"
--> f
SELECT advisory.unlock_shared_key(42);
--> WARNING:  you don't own a lock of type ShareLock on "second"
--> f

-- A label goes with the lock that it was given for, also when that is released without the
-- extension.
SELECT advisory.lock_key(43, label => 'once'); --> t
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.lock_key(43); --> t
SELECT name FROM advisory.locks WHERE key = 43 AND pid = pg_backend_pid(); --> once
SELECT advisory.unlock_key(43); --> t

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
