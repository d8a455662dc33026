-- Scope and number of holds, which only the extension knows, for each function that takes one lock.
\pset format unaligned \pset tuples_only on
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT mode, scope, key, acquired_at <= clock_timestamp() AS acquired, held < '1 minute' AS held
        FROM advisory.locks WHERE pid = pg_backend_pid();

CREATE FUNCTION pg_temp.take(function text, arguments text, rest text, OUT held text,
    OUT hold_count integer)
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT advisory.%s(%s%s)', function, arguments, rest);
    SELECT string_agg(concat_ws(' ', mode, scope, acquired, mine.held), ', ') FROM pg_temp.mine
        INTO STRICT held;
    EXECUTE format('SELECT advisory.hold_count(%s)', arguments) INTO STRICT hold_count;
    RAISE EXCEPTION USING ERRCODE = 'RB000';
EXCEPTION WHEN SQLSTATE 'RB000' THEN
    PERFORM pg_advisory_unlock_all();
END $$;
SELECT function, count(*) AS calls, taken.*
    FROM unnest(ARRAY['lock', 'lock_shared', 'xact_lock', 'xact_lock_shared', 'try_lock',
        'try_lock_shared', 'try_xact_lock', 'try_xact_lock_shared']) AS function,
         unnest(ARRAY[$$'ns', 'name'$$, $$'ns', 42$$,
         $$'ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid$$]) AS arguments,
         unnest(ARRAY['', ', ''1s''', ', NULL', ', timeout => ''0''']) AS rest,
         LATERAL pg_temp.take(function, arguments, rest) AS taken
    GROUP BY function, taken.held, hold_count ORDER BY function;
--> lock|12|exclusive session t t|1
--> lock_shared|12|shared session t t|1
--> try_lock|12|exclusive session t t|1
--> try_lock_shared|12|shared session t t|1
--> try_xact_lock|12|exclusive transaction t t|1
--> try_xact_lock_shared|12|shared transaction t t|1
--> xact_lock|12|exclusive transaction t t|1
--> xact_lock_shared|12|shared transaction t t|1

---- What ends when
BEGIN;
SELECT advisory.xact_lock('ns', 'transaction'), advisory.lock('ns', 'session'); --> t|t
SELECT mode, scope, key = advisory.key('ns', 'session') AS is_session FROM pg_temp.mine
    ORDER BY scope;
--> exclusive|session|t
--> exclusive|transaction|f
COMMIT;
SELECT mode, scope, key = advisory.key('ns', 'session') AS is_session FROM pg_temp.mine;
--> exclusive|session|t
SELECT advisory.unlock('ns', 'session'); --> t
BEGIN;
SELECT advisory.xact_lock('ns', 'name'), advisory.xact_lock_shared('ns', 'name'),
    advisory.try_lock('ns', 'name'), advisory.try_lock_shared('ns', 'name'); --> t|t|t|t
SELECT mode, scope FROM pg_temp.mine ORDER BY mode;
--> exclusive|session
--> shared|session
-- The session's holds are let go of, the transaction's stay.
SELECT advisory.unlock('ns', 'name'), advisory.unlock_shared('ns', 'name'); --> t|t
SELECT mode, scope FROM pg_temp.mine ORDER BY mode;
--> exclusive|transaction
--> shared|transaction
COMMIT;
SELECT * FROM pg_temp.mine;

---- Asking
SELECT advisory.hold_count('ns', 42), advisory.lock('ns', '42'), advisory.hold_count('ns', 42),
    advisory.hold_count('ns', 'other'); --> 0|t|1|0
SELECT mode, scope, granted, acquired_at <= clock_timestamp() AS acquired, held < '1 minute' AS held
    FROM advisory.holders('ns', 42); --> exclusive|session|t|t|t
SELECT advisory.unlock('ns', 42); --> t
SELECT advisory.lock_shared('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid),
       advisory.hold_count('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid),
       advisory.unlock_shared('ns', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid); --> t|1|t

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
