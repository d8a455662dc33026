-- Locks by key: labels, names and scope, which only the extension shows.
SET advisory_ext.warn_no_transaction = off;

CREATE VIEW pg_temp.mine AS
    SELECT key, mode, scope, namespace, name FROM advisory.locks WHERE pid = pg_backend_pid();

---- Every function, with nothing but the key, and with a label

CREATE FUNCTION pg_temp.take(function text, arguments text, OUT result boolean, OUT held text, OUT left_over bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE format('SELECT advisory.%s(%s)', function, arguments) INTO STRICT result;
        SELECT string_agg(concat_ws(' ', key, mode, scope, name), ', ') FROM pg_temp.mine INTO STRICT held;
        IF function LIKE '%xact%' THEN
            RAISE EXCEPTION 'take it back' USING ERRCODE = 'RB000';
        ELSIF function LIKE '%shared%' THEN
            PERFORM advisory.unlock_shared_key(42);
        ELSE
            PERFORM advisory.unlock_key(42);
        END IF;
    EXCEPTION WHEN SQLSTATE 'RB000' THEN
    END;
    SELECT count(*) FROM pg_temp.mine INTO STRICT left_over;
END $$;
SELECT string_agg(function, ' ' ORDER BY function) AS functions, arguments, taken.*
    FROM unnest(ARRAY['lock_key', 'lock_shared_key', 'xact_lock_key', 'xact_lock_shared_key',
                      'try_lock_key', 'try_lock_shared_key', 'try_xact_lock_key', 'try_xact_lock_shared_key']) AS function,
         unnest(ARRAY['42', '42, ''1s''', '42, NULL, ''label''', '42, label => ''only label''']) WITH ORDINALITY AS a(arguments, i),
         LATERAL pg_temp.take(function, arguments) AS taken
    GROUP BY i, arguments, result, held, left_over ORDER BY held, i;

---- The built-ins' locks

SELECT pg_advisory_lock(42);
SELECT mode, scope, acquired_at FROM advisory.holders_key(42);
SELECT advisory.unlock_key(42);

---- A name

SELECT advisory.lock('billing', 'invoice:42');
-- The name, from which the key was computed, outranks a label.
SELECT advisory.lock_key(1572001551135567388, label => 'label');
SELECT namespace, name FROM pg_temp.mine;
SELECT advisory.hold_count('billing', 'invoice:42');
SELECT advisory.unlock_key(1572001551135567388), advisory.unlock('billing', 'invoice:42');

---- Labels

SELECT advisory.lock_key(42, label => 'first');
SELECT advisory.lock_key(42);
SELECT name AS kept FROM pg_temp.mine;
SELECT advisory.lock_key(42, label => 'second');
SELECT name AS renamed FROM pg_temp.mine;
SELECT advisory.unlock_key(42), advisory.unlock_key(42), advisory.unlock_key(42);
-- Without a hold there is nothing to know a label from.
SELECT advisory.unlock_key(42);
SELECT advisory.unlock_shared_key(42);

-- A label goes with the lock that it was given for, also when that is released without the extension.
SELECT advisory.lock_key(43, label => 'once');
SELECT pg_advisory_unlock_all();
SELECT advisory.lock_key(43);
SELECT name FROM advisory.locks WHERE key = 43 AND pid = pg_backend_pid();
SELECT advisory.unlock_key(43);

SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
