-- Editions: both.
-- Another session holds the lock: false, or 55P03 which names the holder; and the transaction goes
-- on. The other holder is a prepared transaction, which one session can have; how waits between
-- sessions end is for the isolation tests. 62_blocked_extension has what only the extension says.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

-- The outcome of a call: its result, or its error, the mode in which it is held, and how to go on.
CREATE FUNCTION pg_temp.outcome(call text, OUT result text, OUT mode text, OUT hint text)
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT advisory.' || call INTO result;
EXCEPTION WHEN lock_not_available THEN
    GET STACKED DIAGNOSTICS result = MESSAGE_TEXT, mode = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    mode := substring(mode FROM 'repared transaction .*holds it in (\w+) mode\.$');
    hint := substring(hint FROM 'COMMIT PREPARED ''\w+''|pg_prepared\w+');
END $$;

CREATE TABLE items (id int);
BEGIN;
SELECT advisory.xact_lock('billing', 'invoice:42'), advisory.xact_lock_shared('billing', 'shared'),
    advisory.xact_lock_key(42); --> t|t|t
PREPARE TRANSACTION 'regress_advisory';

---- try_*: false, at once and after a wait, and with it the transaction is as good as before
BEGIN;
INSERT INTO items VALUES (1);
SELECT advisory.try_lock('billing', 'invoice:42') AS lock,
       advisory.try_lock_shared('billing', 'invoice:42') AS lock_shared,
       advisory.try_xact_lock('billing', 'invoice:42') AS xact_lock,
       advisory.try_xact_lock_shared('billing', 'invoice:42') AS xact_lock_shared; --> f|f|f|f
SELECT advisory.try_lock('billing', 'invoice:42', '1ms') AS lock,
       advisory.try_lock_shared('billing', 'invoice:42', '1ms') AS lock_shared,
       advisory.try_xact_lock('billing', 'invoice:42', '1ms') AS xact_lock,
       advisory.try_xact_lock_shared('billing', 'invoice:42', '1ms') AS xact_lock_shared;
--> f|f|f|f
SELECT advisory.try_lock_key(42) AS lock, advisory.try_lock_shared_key(42, '1ms') AS lock_shared,
       advisory.try_xact_lock_key(42, '1ms') AS xact_lock,
       advisory.try_xact_lock_shared_key(42) AS xact_lock_shared; --> f|f|f|f
INSERT INTO items VALUES (2);
COMMIT;
SELECT count(*) AS committed FROM items; --> 2
-- Shared goes with shared, and with nothing else.
BEGIN;
SELECT advisory.try_lock('billing', 'shared') AS lock,
       advisory.try_xact_lock('billing', 'shared', '1ms') AS xact_lock,
       advisory.try_lock_shared('billing', 'shared') AS lock_shared,
       advisory.try_xact_lock_shared('billing', 'shared') AS xact_lock_shared; --> f|f|t|t
SELECT advisory.unlock_shared('billing', 'shared'); --> t
COMMIT;
-- The time that was asked for is waited, and not much more.
SELECT clock_timestamp() AS before \gset
SELECT advisory.try_lock('billing', 'invoice:42', '200ms'); --> f
SELECT clock_timestamp() - :'before' BETWEEN '200ms' AND '10s' AS waited; --> t

---- lock_timeout: the shorter of the two ends the wait; try_* returns false for either
SET lock_timeout = '1ms';
BEGIN;
SELECT advisory.try_lock('billing', 'invoice:42', '1h') AS lock,
       advisory.try_xact_lock('billing', 'invoice:42', NULL) AS xact_lock,
       advisory.try_lock_key(42, NULL) AS lock_key,
       advisory.try_lock_all('billing', ARRAY['invoice:42'], NULL) AS lock_all; --> f|f|f|f
SELECT 1 AS goes_on; --> 1
COMMIT;
SELECT o.* FROM unnest(ARRAY['', ', ''1h''', ', ''1ms''']) AS timeout,
    pg_temp.outcome(format($$lock('billing', 'invoice:42'%s)$$, timeout)) AS o;
--extension> could not obtain advisory lock "billing/invoice:42" within lock_timeout of 1 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/invoice:42" within lock_timeout of 1 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/invoice:42" within 1 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--portable> could not obtain advisory lock "billing/invoice:42" within lock_timeout of 1 ms|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/invoice:42" within lock_timeout of 1 ms|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/invoice:42" within 1 ms|exclusive|pg_prepared_xacts
SET lock_timeout = '1h';
SELECT result FROM pg_temp.outcome($$lock('billing', 'invoice:42', '1ms')$$);
--> could not obtain advisory lock "billing/invoice:42" within 1 ms
-- After a wait the setting has its previous value.
SHOW lock_timeout; --> 1h
RESET lock_timeout;

---- lock*: 55P03, and the holder
SELECT advisory.lock('billing', 'invoice:42', '0');
--> ERROR:  could not obtain advisory lock "billing/invoice:42" without waiting
--extension> DETAIL:  Prepared transaction "regress_advisory" holds it in exclusive mode.
--extension> HINT:  To end the prepared transaction that holds it: COMMIT PREPARED 'regress_advisory' or ROLLBACK PREPARED 'regress_advisory'.
--portable> DETAIL:  A prepared transaction holds it in exclusive mode.
--portable> HINT:  To see the prepared transaction that holds it: SELECT * FROM pg_catalog.pg_prepared_xacts.
-- In seconds if these are whole, and otherwise in milliseconds, rounded up.
SELECT o.* FROM unnest(ARRAY[
    $$lock('billing', 'invoice:42', '1ms')$$, $$lock('billing', 'invoice:42', '1s')$$,
    $$lock_shared('billing', 'invoice:42', '0.0015 s')$$,
    $$xact_lock('billing', 'invoice:42', '0')$$,
    $$xact_lock_shared('billing', 'invoice:42', '1ms')$$, $$xact_lock('billing', 'shared', '0')$$,
    $$lock_key(42, '0')$$, $$xact_lock_shared_key(42, '0')$$,
    $$lock_shared_key(42, '0', 'label')$$, $$xact_lock_key(42, '1ms', 'label')$$]) AS call,
    pg_temp.outcome(call) AS o;
--extension> could not obtain advisory lock "billing/invoice:42" within 1 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/invoice:42" within 1 s|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/invoice:42" within 2 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/invoice:42" without waiting|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/invoice:42" within 1 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "billing/shared" without waiting|shared|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "42" without waiting|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "42" without waiting|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "label" without waiting|exclusive|COMMIT PREPARED 'regress_advisory'
--extension> could not obtain advisory lock "label" within 1 ms|exclusive|COMMIT PREPARED 'regress_advisory'
--portable> could not obtain advisory lock "billing/invoice:42" within 1 ms|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/invoice:42" within 1 s|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/invoice:42" within 2 ms|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/invoice:42" without waiting|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/invoice:42" within 1 ms|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "billing/shared" without waiting|shared|pg_prepared_xacts
--portable> could not obtain advisory lock "42" without waiting|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "42" without waiting|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "label" without waiting|exclusive|pg_prepared_xacts
--portable> could not obtain advisory lock "label" within 1 ms|exclusive|pg_prepared_xacts
\set VERBOSITY sqlstate
SELECT advisory.lock('billing', 'invoice:42', '0'); --> ERROR:  55P03
SELECT advisory.lock('billing', 'invoice:42', '1ms'); --> ERROR:  55P03
SELECT advisory.xact_lock_key(42, '1ms'); --> ERROR:  55P03
\set VERBOSITY default
-- An error is an error: the transaction has failed, but a savepoint saves it.
BEGIN;
SELECT advisory.lock('billing', 'other'); --> t
SAVEPOINT s;
\set VERBOSITY terse
SELECT advisory.lock('billing', 'invoice:42', '1ms');
--> ERROR:  could not obtain advisory lock "billing/invoice:42" within 1 ms
\set VERBOSITY default
ROLLBACK TO s;
SELECT advisory.holds('billing', 'other') AS other, advisory.holds('billing', 'invoice:42') AS this;
--> t|f
COMMIT;
SELECT advisory.unlock('billing', 'other'); --> t

---- The error's fields, for programs
CREATE FUNCTION pg_temp.error_fields(statement text, OUT code text, OUT schema_name text,
    OUT constraint_name text)
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, schema_name = SCHEMA_NAME,
        constraint_name = CONSTRAINT_NAME;
END $$;
SELECT statement, fields.* FROM unnest(ARRAY[
    $$SELECT advisory.lock('billing', 'invoice:42', '0')$$,
    $$SELECT advisory.lock('billing', 'invoice:42', '1ms')$$,
    $$SELECT advisory.xact_lock_all('billing', ARRAY['a', 'invoice:42', 'z'], '1ms')$$,
    $$SELECT advisory.lock_key(42, '0')$$,
    $$SELECT advisory.lock_key(42, '1ms', 'label')$$,
    $$SELECT advisory.lock_key(advisory.key('billing', 'invoice:42'), '0')$$]) AS statement,
    pg_temp.error_fields(statement) AS fields;
--> SELECT advisory.lock('billing', 'invoice:42', '0')|55P03|billing|invoice:42
--> SELECT advisory.lock('billing', 'invoice:42', '1ms')|55P03|billing|invoice:42
--> SELECT advisory.xact_lock_all('billing', ARRAY['a', 'invoice:42', 'z'], '1ms')|55P03|billing|invoice:42
--> SELECT advisory.lock_key(42, '0')|55P03||42
--> SELECT advisory.lock_key(42, '1ms', 'label')|55P03||label
--> SELECT advisory.lock_key(advisory.key('billing', 'invoice:42'), '0')|55P03||1572001551135567388

---- Cancelled in the wait: the error of the server
SET jit = off;  -- The time must not be over before the wait begins.
SET statement_timeout = '50ms';
\set VERBOSITY sqlstate
SELECT advisory.lock('billing', 'invoice:42'); --> ERROR:  57014
SELECT advisory.try_xact_lock_shared('billing', 'invoice:42', NULL); --> ERROR:  57014
SELECT advisory.lock_key(42, '1h', 'label'); --> ERROR:  57014
SELECT advisory.lock_all('billing', ARRAY['a', 'invoice:42']); --> ERROR:  57014
SELECT advisory.try_lock('billing', 'invoice:42', '1h'); --> ERROR:  57014
\set VERBOSITY default
RESET statement_timeout;
RESET jit;
SELECT advisory.holds('billing', 'invoice:42'), advisory.holds_key(42); --> f|f

---- Looking at it
SELECT advisory.is_locked('billing', 'invoice:42'), advisory.is_locked('billing', 'shared'),
       advisory.is_locked_key(42),
       advisory.is_locked('billing', 'free'), advisory.holds('billing', 'invoice:42'); --> t|t|t|f|f
SELECT pid, database = current_database() AS here, role = session_user AS is_role, application_name,
       client_addr, state, mode, granted,
       wait_start, waited, acquired_at, held, blocked_by, gid, query
    FROM advisory.holders('billing', 'shared'); --> |t|t||||shared|t||||||regress_advisory|
SELECT gid, mode FROM advisory.holders_key(42); --> regress_advisory|exclusive
SELECT pid, role = session_user AS is_role, mode, granted, gid,
    key = advisory.key('billing', 'invoice:42') AS invoice, query
    FROM advisory.locks WHERE gid = 'regress_advisory' ORDER BY mode, key;
--> |t|exclusive|t|regress_advisory|f|
--> |t|exclusive|t|regress_advisory|t|
--> |t|shared|t|regress_advisory|f|
-- It is no session that could be ended.
SELECT advisory.terminate_holder('billing', 'invoice:42', 0);
--extension> WARNING:  PID 0 is not a PostgreSQL backend process
--portable> WARNING:  PID 0 does not hold advisory lock "billing/invoice:42", nor a slot of the semaphore of that name
--> f

---- When it is over, so is that
COMMIT PREPARED 'regress_advisory';
SELECT advisory.is_locked('billing', 'invoice:42'),
    (SELECT count(*) FROM advisory.holders('billing', 'shared')); --> f|0
SELECT advisory.try_xact_lock('billing', 'invoice:42'), advisory.try_xact_lock('billing', 'shared'),
    advisory.try_xact_lock_key(42); --> t|t|t

DROP TABLE items;
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
