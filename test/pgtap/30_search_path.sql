-- Editions: both.
-- A hostile search_path: nothing that stands before pg_catalog in it is ever called by the functions and views of advisory.
-- The trap is a twin of every function, operator, table and view of pg_catalog, each of which raises an error.

-- Only with a prepared transaction does the extension ask about them. (31_search_path_extension has what only it has.)
BEGIN;
DO $$ BEGIN PERFORM advisory.xact_lock('tap', 'prepared'); END $$;
PREPARE TRANSACTION 'advisory_ext_tap_search_path';

BEGIN;
SELECT plan(24);
SET LOCAL client_min_messages = error;
CREATE SCHEMA evil;
CREATE FUNCTION evil.sprung() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'sprung' USING ERRCODE = 'EV000'; END $$;

DO $$
DECLARE
    twin record;
    arguments text;
BEGIN
    FOR twin IN SELECT oid, proname FROM pg_proc
                WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
                  AND NOT EXISTS (SELECT FROM unnest(proargtypes) AS t(type) JOIN pg_type y ON y.oid = t.type WHERE typtype = 'p')
    LOOP
        SELECT coalesce(string_agg(format_type(type, NULL), ', ' ORDER BY i), '') INTO arguments
            FROM pg_proc, unnest(proargtypes) WITH ORDINALITY AS t(type, i) WHERE oid = twin.oid;
        EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS text LANGUAGE sql AS ''SELECT evil.sprung()''', twin.proname, arguments);
    END LOOP;
    FOR twin IN SELECT DISTINCT oprname, format_type(oprleft, NULL) AS l, format_type(oprright, NULL) AS r
                FROM pg_operator o JOIN pg_type y ON y.oid = oprright JOIN pg_type x ON x.oid = oprleft
                WHERE oprnamespace = 'pg_catalog'::regnamespace AND x.typtype <> 'p' AND y.typtype <> 'p'
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION evil.operator(%s, %s) RETURNS boolean LANGUAGE sql AS ''SELECT evil.sprung()::boolean''', twin.l, twin.r);
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.operator)', twin.oprname, twin.l, twin.r);
    END LOOP;
    FOR twin IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
    LOOP
        EXECUTE format('CREATE VIEW evil.%I AS SELECT evil.sprung()', twin.relname);
    END LOOP;
END $$;

-- Runs a statement with the trap set.  Only what it executes is subject to it: the rest is qualified.
CREATE FUNCTION pg_temp.trapped(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    path text := pg_catalog.current_setting('search_path');
    state text;
    message text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'evil, pg_catalog', true);
    EXECUTE statement;
    PERFORM pg_catalog.set_config('search_path', path, true);
    RETURN 'untouched';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    RETURN pg_catalog.concat(state, ' ', message);
END $$;

---- The trap works

SELECT is(pg_temp.trapped($$ SELECT starts_with('a'::text, 'a'::text) $$), 'EV000 sprung', 'a function is trapped');
SELECT is(pg_temp.trapped($$ SELECT 'a'::text = 'a'::text $$), 'EV000 sprung', 'an operator is trapped');
SELECT is(pg_temp.trapped($$ SELECT * FROM pg_prepared_xacts $$), 'EV000 sprung', 'a view is trapped');
SELECT is(pg_temp.trapped($$ SELECT * FROM pg_catalog.pg_prepared_xacts $$), 'untouched', 'what is qualified is not');

---- The functions and views of advisory do not fall into it

SELECT is(pg_temp.trapped(statement), 'untouched', statement) FROM unnest(ARRAY[
    'SELECT * FROM advisory.locks',
    'SELECT * FROM advisory.known_keys',
    $$SELECT * FROM advisory.holders('tap', 'prepared')$$,
    $$SELECT * FROM advisory.holders_key(42)$$,
    $$SELECT advisory.key('tap'), advisory.key('tap', 'a'), advisory.key('tap', 42), advisory.key('tap', '00000000-0000-0000-0000-000000000001'::pg_catalog.uuid)$$,
    $$SELECT advisory.lock('tap', 'a'), advisory.lock('tap', 42), advisory.lock_shared('tap', 'a', '1s')$$,
    $$SELECT advisory.try_lock('tap', 'a'), advisory.try_lock('tap', 'prepared'), advisory.try_lock_shared('tap', 'prepared', '1ms')$$,
    $$SELECT advisory.xact_lock('tap', 'a'), advisory.xact_lock_shared('tap', 'a'), advisory.try_xact_lock('tap', 'prepared', '1ms')$$,
    $$SELECT advisory.lock_key(42, label => 'label'), advisory.try_xact_lock_key(43)$$,
    $$SELECT advisory.lock_all('tap', ARRAY['a', 'b']), advisory.lock_all('tap', '{a,b}'), advisory.try_lock_all('tap', ARRAY['a', 'prepared'])$$,
    $$SELECT advisory.xact_lock_all('tap', ARRAY[1, 2]), advisory.try_xact_lock_all('tap', ARRAY['a', 'prepared'])$$,
    $$SELECT advisory.try_lock_any('tap', ARRAY['prepared', 'a', 'b'], 2)$$,
    $$SELECT advisory.try_lock_any('tap', '{prepared,a,b}', 2)$$,
    $$SELECT advisory.holds('tap', 'a'), advisory.is_locked('tap', 'prepared')$$,
    $$SELECT advisory.unlock('tap', 'a'), advisory.unlock('tap', 'never held'), advisory.unlock_shared('tap', 'a'), advisory.unlock_key(42)$$,
    $$SELECT advisory.unlock_all('tap', 'a'), advisory.unlock_all('tap', ARRAY['b'])$$,
    $$SELECT advisory.claim('tap', 'a', '1 hour', '2026-01-01 00:00+00'), advisory.claim('tap', 'a', '1 hour'), advisory.claim('tap', 'a', '1 hour')$$,
    $$SELECT advisory.terminate_holder('tap', 'a', 0)$$]) AS statement;
SELECT is(pg_temp.trapped($$ SELECT advisory.lock('tap', 'prepared', '1ms') $$),
          '55P03 could not obtain advisory lock "tap/prepared" within 1 ms', 'an error that has to name the holder');
SELECT is(pg_temp.trapped($$ SELECT advisory.xact_lock_all('tap', ARRAY['a', 'prepared'], '0') $$),
          '55P03 could not obtain advisory lock "tap/prepared" without waiting', 'the same for several');

SELECT * FROM finish();
ROLLBACK;
ROLLBACK PREPARED 'advisory_ext_tap_search_path';
