-- What roles may do and see.  All in one session: SET ROLE changes whose privileges count, not
-- whose session it is.
BEGIN;
SELECT plan(52);

CREATE ROLE advisory_tap_nobody;
CREATE ROLE advisory_tap_reader IN ROLE pg_read_all_stats;
CREATE ROLE advisory_tap_signaller IN ROLE pg_signal_backend;

-- A statement's result as a role, or its SQLSTATE; with the exception the role is set back.
CREATE FUNCTION pg_temp.outcome_as(role text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := 'done';
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    IF statement ~ '^ *SELECT' THEN
        EXECUTE statement INTO result;
    ELSE
        EXECUTE statement;
    END IF;
    RESET ROLE;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
CREATE FUNCTION pg_temp.nobody(text) RETURNS text LANGUAGE sql
    RETURN pg_temp.outcome_as('advisory_tap_nobody', $1);
CREATE FUNCTION pg_temp.reader(text) RETURNS text LANGUAGE sql
    RETURN pg_temp.outcome_as('advisory_tap_reader', $1);

---- The unprivileged: use and read everything, create nothing

SELECT schema_privs_are('advisory', 'advisory_tap_nobody', ARRAY['USAGE'],
                        'the schema can be used, not added to');
SELECT is(pg_temp.nobody('CREATE FUNCTION advisory.try_lock(text, text, text) RETURNS boolean
                          LANGUAGE sql AS ''SELECT true'''), '42501',
          'nobody can plant a function in the schema');
SELECT is(pg_temp.nobody('CREATE TABLE advisory.planted (id int)'), '42501', 'nor a table');
SELECT is(pg_temp.nobody('CREATE OR REPLACE FUNCTION advisory.key(name text) RETURNS bigint
                          LANGUAGE sql AS ''SELECT 1::bigint'''), '42501', 'nor replace one');
SELECT is_empty($$ SELECT oid::regprocedure FROM pg_proc
    WHERE pronamespace = 'advisory'::regnamespace
                   AND NOT has_function_privilege('advisory_tap_nobody', oid, 'EXECUTE')
                       AND proname NOT IN ('stats_reset', 'tokens_above', 'break_lease', 'unclaim',
                       '_begin_era') $$, 'every function can be called');
SELECT is(pg_temp.nobody('SELECT advisory.stats_reset()'), '42501', 'but stats_reset()');
SELECT is(pg_temp.nobody('SELECT advisory.tokens_above(1)'), '42501', 'and tokens_above()');
SELECT is(pg_temp.nobody('SELECT advisory.break_lease(''ns'', ''name'')'), '42501',
          'and break_lease()');
SELECT is_empty($$ SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind = 'v'
                   AND NOT has_table_privilege('advisory_tap_nobody', oid, 'SELECT') $$,
                       'every view can be read');
SELECT is_empty($$ SELECT relname FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind = 'v'
                   AND pg_temp.nobody(format('SELECT count(*) >= 0 FROM advisory.%I',
                       relname)) <> 'true' $$, 'and is read');
SELECT is_empty($$ SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind IN ('v', 'f')
                   AND has_table_privilege('advisory_tap_nobody', oid,
                       'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') $$,
                'and nothing but read');
SELECT is(pg_temp.nobody('CREATE FOREIGN TABLE pg_temp.planted (pid integer) SERVER advisory_ext'),
          '42501', 'the foreign server is nobody''s to use');
SELECT is(pg_temp.nobody('CREATE SERVER planted FOREIGN DATA WRAPPER advisory_ext'), '42501',
          'nor its wrapper');
SELECT is(pg_temp.nobody('SET LOCAL advisory_ext.track = ''none'''), '42501',
          'what is remembered is the superuser''s business');
SELECT is(pg_temp.nobody('SET LOCAL advisory_ext.log_wait = 0'), '42501', 'so is the log');
SELECT is(pg_temp.nobody('SET LOCAL advisory_ext.leak_after = 0'), 'done',
          'what counts as a leak is not');
SELECT is(pg_temp.nobody($$ SELECT advisory.try_lock('ns', 'name') $$), 'true', 'a lock is taken');
SELECT is(pg_temp.nobody('SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid()'), '1',
          'and shown');
SELECT is(pg_temp.nobody('SELECT count(*) > 0 FROM advisory.settings'), 'true',
          'settings are shown');
SELECT is(pg_temp.nobody($$ SELECT advisory.edition() || ' '
    || (advisory.version() = default_version) FROM pg_available_extensions
              WHERE name = 'advisory_ext' $$), 'extension true', 'so are edition and version');

---- Labels: for everybody to read, for the owner of the database to write

SELECT table_privs_are('advisory', 'key_labels', 'advisory_tap_nobody', ARRAY['SELECT'],
                       'labels can be read, and no more');
SELECT table_privs_are('advisory', 'key_labels', 'pg_database_owner',
                       ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
                           'the owner of the database writes them');
SELECT is((SELECT relowner FROM pg_class WHERE oid = 'advisory.key_labels'::regclass), 10::oid,
          'their table belongs to the bootstrap superuser');
INSERT INTO advisory.key_labels (key, label) VALUES (42, 'a label');
SELECT is(pg_temp.nobody('SELECT pg_advisory_xact_lock(42)'), '', 'a lock is taken');
SELECT is(pg_temp.nobody('SELECT known_as FROM advisory.locks WHERE key = 42 '
                         'AND pid = pg_backend_pid()'), '{"a label"}', 'and known');
SELECT is(pg_temp.nobody($$ SELECT tool FROM advisory.known_keys WHERE key = 42 $$), 'a label',
          'as the view has it');

---- Claims: for everybody to make, by claim() alone

SELECT is(pg_temp.nobody($$ SELECT advisory.claim('ns', 'name', '1 hour',
    '2026-01-01 00:00+00') = '2026-01-01 00:00+00' $$), 'true', 'a window is claimed');
SELECT is(pg_temp.reader($$ SELECT advisory.claim('ns', 'name', '1 hour',
    '2026-01-01 00:00+00') IS NULL $$), 'true', 'for all roles');
SELECT table_privs_are('advisory', '_claims', 'advisory_tap_nobody', '{}',
                       'their table is nobody''s to read or write');
SELECT is(pg_temp.nobody($$ SELECT name FROM advisory.claims $$), 'name',
          'the view shows a role its own');
SELECT is(pg_temp.reader($$ SELECT name FROM advisory.claims $$),
          pg_temp.reader($$ SELECT '<insufficient privilege>'
              WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE') UNION ALL SELECT 'name'
              WHERE pg_has_role('pg_read_all_stats', 'USAGE') $$),
              'and those of others to who may see them');
SELECT is(pg_temp.nobody($$ SELECT advisory.unclaim('ns', 'name', '2026-01-01 00:00+00') $$),
          '42501', 'who has claimed a window cannot take that back');
SELECT is(pg_temp.nobody('UPDATE advisory._claims SET last_window = ''-infinity'''), '42501',
          'so no window can be had again');
SELECT is((SELECT relowner FROM pg_class WHERE oid = 'advisory._claims'::regclass), 10::oid,
          'their table belongs to the bootstrap superuser');

---- The owner of the database: what dump and restore need, and to delete what is no longer used

SELECT table_privs_are('advisory', '_claims', 'pg_database_owner',
                       ARRAY['SELECT', 'INSERT', 'DELETE'], 'claims');
SELECT table_privs_are('advisory', 'fences', 'pg_database_owner',
                       ARRAY['SELECT', 'INSERT', 'DELETE'], 'fences');
SELECT table_privs_are('advisory', '_leases', 'pg_database_owner', ARRAY['SELECT', 'INSERT'],
                       'leases');
SELECT sequence_privs_are('advisory', '_era', 'pg_database_owner', ARRAY['SELECT', 'UPDATE'],
          'the era');
SELECT sequence_privs_are('advisory', '_era_began', 'pg_database_owner', '{}',
          'but not what no dump has');
SELECT table_privs_are('advisory', '_leases', 'advisory_tap_nobody', '{}', 'and nobody else');

---- pg_stat_activity's rules: this session belongs to another role (a superuser)

SELECT is(pg_temp.nobody($$ SELECT row_to_json(l) FROM
              (SELECT state, client_addr, query FROM advisory.locks
                  WHERE pid = pg_backend_pid()) AS l $$)::jsonb,
          '{"state": null, "client_addr": null, "query": "<insufficient privilege>"}',
              'locks hides state, address and query of other roles'' sessions');
SELECT is(pg_temp.nobody($$ SELECT row_to_json(l) FROM
              (SELECT state, client_addr, query
                  FROM advisory.holders('ns', 'name')) AS l $$)::jsonb,
          '{"state": null, "client_addr": null, "query": "<insufficient privilege>"}',
              'so does holders()');
SELECT is(pg_temp.nobody($$ SELECT role = session_user AND database = current_database()
    FROM advisory.locks
              WHERE pid = pg_backend_pid() $$), 'true', 'role and database are for everybody');
SELECT is(pg_temp.reader($$ SELECT state || ' ' || (query LIKE '%outcome_as%')
              FROM advisory.locks WHERE pid = pg_backend_pid() $$), 'active true',
                  'members of pg_read_all_stats see the rest');

SELECT is(advisory.try_lock('ns', 'of a superuser'), true, 'a lock is taken by another role');
SELECT is(pg_temp.nobody($$ SELECT string_agg(DISTINCT namespace || '/' || name, ' ')
    FROM advisory.locks
              WHERE pid = pg_backend_pid()
                  AND key IN (advisory.key('ns', 'name'), advisory.key('ns', 'of a superuser')) $$),
          '<insufficient privilege>/<insufficient privilege>',
              'locks hides the names of a session that one may not see');
SELECT is(pg_temp.nobody($$ SELECT bool_and(lock !~ '/') FROM advisory.activity
    WHERE pid = pg_backend_pid() $$),
          'true', 'so does activity, which shows keys instead');
SELECT is(pg_temp.nobody($$ SELECT string_agg(namespace || '/' || name, ' ' ORDER BY name)
    FROM advisory.stats WHERE name LIKE 'name' OR name LIKE 'of %' $$),
          'ns/name', 'stats shows one''s own names only');
SELECT is(pg_temp.reader($$ SELECT string_agg(namespace || '/' || name, ' ' ORDER BY name)
    FROM advisory.stats WHERE name LIKE 'name' OR name LIKE 'of %' $$),
          'ns/name ns/of a superuser', 'members of pg_read_all_stats see all');
SELECT is(pg_temp.nobody('SELECT count(*) FROM advisory.leaks'), '0',
          'leaks shows no sessions that one may not see');

---- terminate_holder(): the privileges of pg_terminate_backend()

SELECT is(pg_temp.nobody($$ SELECT advisory.terminate_holder('ns', 'name', pg_backend_pid()) $$),
          '42501',
          'an unprivileged role cannot end another role''s session');
SELECT is(pg_temp.outcome_as('advisory_tap_signaller',
    $$ SELECT advisory.terminate_holder('ns', 'name', pg_backend_pid()) $$), '42501',
          'a member of pg_signal_backend cannot end a superuser''s');

SELECT * FROM finish();
ROLLBACK;
-- A session-level lock outlives the transaction.
DO $$ BEGIN PERFORM advisory.unlock_all('ns'); END $$;
