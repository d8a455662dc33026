-- Editions: both.
-- The same functions for keys that an application already has.
\pset format unaligned \pset tuples_only on
CREATE VIEW pg_temp.mine AS
    SELECT key, mode, scope, name FROM advisory.locks WHERE pid = pg_backend_pid();

---- Every function, with nothing but the key, and with a label: what it takes; and what of scope
---- and label the views show
CREATE FUNCTION pg_temp.take(function text, arguments text, OUT result boolean, OUT held text,
    OUT shown text, OUT left_over bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE format('SELECT advisory.%s(%s)', function, arguments) INTO STRICT result;
        SELECT string_agg(concat_ws(' ', key, mode), ', '),
               string_agg(concat_ws(' ', scope, name), ', ')
            FROM pg_temp.mine INTO STRICT held, shown;
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
                      'try_lock_key', 'try_lock_shared_key', 'try_xact_lock_key',
                      'try_xact_lock_shared_key']) AS function,
         unnest(ARRAY['42', '42, ''1s''', '42, NULL, ''label''',
         '42, label => ''only label''']) WITH ORDINALITY AS a(arguments, i),
         LATERAL pg_temp.take(function, arguments) AS taken
    GROUP BY i, arguments, result, held, shown, left_over ORDER BY held, shown, i;
--extension> lock_key try_lock_key|42|t|42 exclusive|session|0
--extension> lock_key try_lock_key|42, '1s'|t|42 exclusive|session|0
--extension> lock_key try_lock_key|42, NULL, 'label'|t|42 exclusive|session label|0
--extension> lock_key try_lock_key|42, label => 'only label'|t|42 exclusive|session only label|0
--extension> try_xact_lock_key xact_lock_key|42|t|42 exclusive|transaction|0
--extension> try_xact_lock_key xact_lock_key|42, '1s'|t|42 exclusive|transaction|0
--extension> try_xact_lock_key xact_lock_key|42, NULL, 'label'|t|42 exclusive|transaction label|0
--extension> try_xact_lock_key xact_lock_key|42, label => 'only label'|t|42 exclusive|transaction only label|0
--extension> lock_shared_key try_lock_shared_key|42|t|42 shared|session|0
--extension> lock_shared_key try_lock_shared_key|42, '1s'|t|42 shared|session|0
--extension> lock_shared_key try_lock_shared_key|42, NULL, 'label'|t|42 shared|session label|0
--extension> lock_shared_key try_lock_shared_key|42, label => 'only label'|t|42 shared|session only label|0
--extension> try_xact_lock_shared_key xact_lock_shared_key|42|t|42 shared|transaction|0
--extension> try_xact_lock_shared_key xact_lock_shared_key|42, '1s'|t|42 shared|transaction|0
--extension> try_xact_lock_shared_key xact_lock_shared_key|42, NULL, 'label'|t|42 shared|transaction label|0
--extension> try_xact_lock_shared_key xact_lock_shared_key|42, label => 'only label'|t|42 shared|transaction only label|0
--portable> lock_key try_lock_key try_xact_lock_key xact_lock_key|42|t|42 exclusive||0
--portable> lock_key try_lock_key try_xact_lock_key xact_lock_key|42, '1s'|t|42 exclusive||0
--portable> lock_key try_lock_key try_xact_lock_key xact_lock_key|42, NULL, 'label'|t|42 exclusive||0
--portable> lock_key try_lock_key try_xact_lock_key xact_lock_key|42, label => 'only label'|t|42 exclusive||0
--portable> lock_shared_key try_lock_shared_key try_xact_lock_shared_key xact_lock_shared_key|42|t|42 shared||0
--portable> lock_shared_key try_lock_shared_key try_xact_lock_shared_key xact_lock_shared_key|42, '1s'|t|42 shared||0
--portable> lock_shared_key try_lock_shared_key try_xact_lock_shared_key xact_lock_shared_key|42, NULL, 'label'|t|42 shared||0
--portable> lock_shared_key try_lock_shared_key try_xact_lock_shared_key xact_lock_shared_key|42, label => 'only label'|t|42 shared||0

---- The built-ins' locks, both ways
SELECT pg_advisory_lock(42), pg_advisory_lock_shared(-1); --> |
SELECT advisory.holds_key(42), advisory.holds_key(-1), advisory.is_locked_key(42),
    advisory.holds_key(43); --> t|t|t|f
SELECT mode, acquired_at FROM advisory.holders_key(42); --> exclusive|
SELECT advisory.unlock_key(42), advisory.unlock_shared_key(-1); --> t|t
SELECT advisory.lock_key(9223372036854775807), advisory.lock_shared_key(-9223372036854775808);
--> t|t
SELECT key, mode FROM pg_temp.mine ORDER BY key;
--> -9223372036854775808|shared
--> 9223372036854775807|exclusive
SELECT pg_advisory_unlock(9223372036854775807), pg_advisory_unlock_shared(-9223372036854775808);
--> t|t
-- A pair is another lock, even where it has the same bits.
SELECT pg_advisory_lock(0, 42); -->
SELECT advisory.holds_key(42), advisory.is_locked_key(42),
    (SELECT count(*) FROM advisory.holders_key(42)) AS holders; --> f|f|0
SELECT pg_advisory_unlock(0, 42); --> t

---- A key is the lock of the name that it was made of
SELECT advisory.lock('billing', 'invoice:42'); --> t
SELECT advisory.holds_key(1572001551135567388),
    advisory.is_locked_key(advisory.key('billing', 'invoice:42')); --> t|t
SELECT mode FROM advisory.holders_key(1572001551135567388); --> exclusive
SELECT advisory.unlock_key(1572001551135567388); --> t

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
