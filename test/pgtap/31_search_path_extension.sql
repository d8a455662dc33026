-- A hostile search_path, as in 30_search_path, and what only the extension has: nothing that stands before pg_catalog in it is ever called.
-- The trap is a twin of every function, operator, table and view of pg_catalog, each of which raises an error.

-- Only with a prepared transaction does the extension ask about them.
BEGIN;
DO $$ BEGIN PERFORM advisory.xact_lock('tap', 'prepared'); END $$;
PREPARE TRANSACTION 'advisory_ext_tap_search_path';

BEGIN;
SELECT plan(7);
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

---- The extension does not fall into it

SELECT is(pg_temp.trapped(statement), 'untouched', statement) FROM unnest(ARRAY[
    'SELECT * FROM advisory.settings',
    'SELECT advisory_internal.known_as((SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()), 0, 1, 1)',
    'SELECT advisory_internal.known_as((SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()), 16185446, 1, 2)',
    $$SELECT advisory.lock('tap', 'a'), advisory.hold_count('tap', 'a'), advisory.unlock_all('tap')$$,
    $$SELECT advisory.edition(), advisory.version()$$]) AS statement;
SET LOCAL advisory_ext.session_locks = off;
SELECT is(pg_temp.trapped($$ SELECT advisory.try_lock('tap', 'a') $$),
          '55000 session-level advisory locks are turned off by "advisory_ext.session_locks"', 'a hint that has to look up a name');

SELECT * FROM finish();
ROLLBACK;
ROLLBACK PREPARED 'advisory_ext_tap_search_path';
