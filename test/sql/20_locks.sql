-- Editions: both.
-- Taking one lock: each function in each form takes the lock that it says, in its mode, until the
-- end that it says. 26_scope has what only the extension knows of it.
\pset format unaligned \pset tuples_only on
-- Locks and modes, from the server's view and ours.
CREATE VIEW pg_temp.mine AS
    SELECT l.mode AS lockmode, ours.mode, (l.classid::bigint << 32) | l.objid::bigint AS key
    FROM pg_locks l JOIN advisory.locks ours
        ON ours.pid = l.pid AND ours.key = (l.classid::bigint << 32) | l.objid::bigint
           AND ours.mode = CASE l.mode WHEN 'ExclusiveLock' THEN 'exclusive'
           WHEN 'ShareLock' THEN 'shared' END
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.pid = pg_backend_pid();

---- One lock in four lines
SELECT advisory.lock('billing', 'invoice:42'); --> t
SELECT lockmode, mode, key = advisory.key('billing', 'invoice:42') AS right_key FROM pg_temp.mine;
--> ExclusiveLock|exclusive|t
SELECT advisory.unlock('billing', 'invoice:42'); --> t
SELECT * FROM pg_temp.mine;

---- Every function, in every form, without and with a timeout
CREATE TABLE pg_temp.functions (function text);
INSERT INTO pg_temp.functions VALUES
    ('lock'), ('lock_shared'), ('xact_lock'), ('xact_lock_shared'),
    ('try_lock'), ('try_lock_shared'), ('try_xact_lock'), ('try_xact_lock_shared');
CREATE TABLE pg_temp.forms (form text, arguments text);
INSERT INTO pg_temp.forms VALUES
    ('text', $$'ns', 'name'$$),
    ('bigint', $$'ns', 42$$),
    ('uuid', $$'ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid$$);

-- Calls, notes what is held then, and takes all of it back with the subtransaction or by unlocking.
CREATE FUNCTION pg_temp.take(function text, arguments text, rest text,
                             OUT result boolean, OUT held text, OUT right_key boolean,
                             OUT unlocked boolean, OUT left_over bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE format('SELECT advisory.%s(%s%s)', function, arguments, rest) INTO STRICT result;
        EXECUTE format('SELECT string_agg(concat_ws('' '', lockmode, mode), '', ''),
                               bool_and(key = advisory.key(%s)) FROM pg_temp.mine', arguments)
            INTO STRICT held, right_key;
        IF function LIKE '%xact%' THEN
            RAISE EXCEPTION 'take it back' USING ERRCODE = 'RB000';
        END IF;
        EXECUTE format('SELECT advisory.unlock%s(%s)', CASE
            WHEN function LIKE '%shared' THEN '_shared' END, arguments)
            INTO STRICT unlocked;
    EXCEPTION WHEN SQLSTATE 'RB000' THEN
    END;
    SELECT count(*) FROM pg_temp.mine INTO STRICT left_over;
END $$;

-- Three forms with four timeouts: twelve calls of each function, and all of them alike.
SELECT function, count(*) AS calls, taken.*
    FROM pg_temp.functions, pg_temp.forms,
        unnest(ARRAY['', ', ''1s''', ', NULL', ', timeout => ''0''']) AS rest,
         LATERAL pg_temp.take(function, arguments, rest) AS taken
    GROUP BY function, result, held, right_key, unlocked, left_over ORDER BY function;
--> lock|12|t|ExclusiveLock exclusive|t|t|0
--> lock_shared|12|t|ShareLock shared|t|t|0
--> try_lock|12|t|ExclusiveLock exclusive|t|t|0
--> try_lock_shared|12|t|ShareLock shared|t|t|0
--> try_xact_lock|12|t|ExclusiveLock exclusive|t||0
--> try_xact_lock_shared|12|t|ShareLock shared|t||0
--> xact_lock|12|t|ExclusiveLock exclusive|t||0
--> xact_lock_shared|12|t|ShareLock shared|t||0

---- Scope: what ends when
BEGIN;
SELECT advisory.xact_lock('ns', 'transaction'), advisory.lock('ns', 'session'); --> t|t
COMMIT;
SELECT mode, key = advisory.key('ns', 'session') AS is_session FROM pg_temp.mine; --> exclusive|t
BEGIN;
SELECT advisory.lock('ns', 'in a failed transaction'); --> t
SELECT 1/0; --> ERROR:  division by zero
ROLLBACK;
-- As with the built-ins, an error does not release session-level locks.
SELECT advisory.holds('ns', 'session'), advisory.holds('ns', 'in a failed transaction'); --> t|t
SELECT advisory.unlock('ns', 'session'), advisory.unlock('ns', 'in a failed transaction'); --> t|t
BEGIN;
SAVEPOINT s;
SELECT advisory.xact_lock('ns', 'savepoint'); --> t
ROLLBACK TO s;
SELECT advisory.holds('ns', 'savepoint'); --> f
COMMIT;

---- Modes: both at once, shared with shared, and within one session nothing blocks
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), advisory.xact_lock_shared('ns', 'name'),
       advisory.try_lock('ns', 'name'), advisory.try_lock_shared('ns', 'name'); --> t|t|t|t
SELECT mode FROM pg_temp.mine ORDER BY mode;
--> exclusive
--> shared
-- The session's holds are let go of, the transaction's stay.
SELECT advisory.unlock('ns', 'name'), advisory.unlock_shared('ns', 'name'); --> t|t
SELECT mode FROM pg_temp.mine ORDER BY mode;
--> exclusive
--> shared
COMMIT;
SELECT * FROM pg_temp.mine;

---- Asking
SELECT advisory.holds('ns', 42), advisory.is_locked('ns', 42),
       (SELECT count(*) FROM advisory.holders('ns', 42)) AS holders; --> f|f|0
SELECT advisory.lock('ns', '42'); --> t
-- Whichever way the name is given.
SELECT advisory.holds('ns', 42), advisory.is_locked('ns', 42),
       (SELECT count(*) FROM advisory.holders('ns', 42)) AS holders; --> t|t|1
SELECT pid = pg_backend_pid() AS me, database = current_database() AS here,
       role = current_user AS is_role,
       application_name, state, mode, granted, wait_start, waited, blocked_by, gid,
       query LIKE '%advisory.holders%' AS query
    FROM advisory.holders('ns', 42); --> t|t|t|pg_regress/20_locks|active|exclusive|t|||||t
SELECT advisory.unlock('ns', 42); --> t
SELECT advisory.lock_shared('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid); --> t
SELECT advisory.holds('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
       advisory.holds('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11') AS other_letters,
       advisory.holds('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid) AS as_uuid,
       advisory.is_locked('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid) AS locked; --> t|f|t|t
SELECT mode FROM advisory.holders('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid); --> shared
SELECT advisory.unlock_shared('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid); --> t
-- Another lock of the session does not count.
SELECT advisory.lock('ns', 'other'); --> t
SELECT advisory.holds('ns', 'name'), advisory.is_locked('ns', 'name'); --> f|f
SELECT advisory.unlock('ns', 'other'); --> t

---- The planner filters by everything cheaper first, so only the chosen row is locked
SELECT name, advisory.try_lock('ns', name)
    FROM (VALUES ('a'), ('b'), ('c')) AS names(name)
    WHERE advisory.try_lock('ns', name) AND name = 'b'; --> b|t
SELECT count(*), sum(advisory.unlock_all('ns', 'b')) FROM pg_temp.mine; --> 1|2

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
