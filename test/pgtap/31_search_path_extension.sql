-- A hostile search_path, as in 30_search_path, and what only the extension has: nothing that stands
-- before pg_catalog in it is ever called.
\ir search_path_trap.psql
SELECT plan(9);

---- The trap works

SELECT is(pg_temp.trapped($$ SELECT starts_with('a'::text, 'a'::text) $$), 'EV000 sprung',
          'a function is trapped');

---- The extension does not fall into it

SELECT is(pg_temp.trapped(statement), 'untouched', statement) FROM unnest(ARRAY[
    'SELECT * FROM advisory.settings',
    'SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.unnest(ARRAY[1, 16185446]), 1)',
    'SELECT pg_catalog.pg_advisory_xact_lock(-1023410177, 1)',
    'SELECT known_as FROM advisory.locks',
    $$SELECT advisory.lock('tap', 'a'), advisory.hold_count('tap', 'a')$$,
    $$SELECT advisory.unlock_all('tap')$$,
    $$SELECT advisory.edition(), advisory.version()$$]) AS statement;
SET LOCAL advisory_ext.session_locks = off;
SELECT is(pg_temp.trapped($$ SELECT advisory.try_lock('tap', 'a') $$),
          '55000 session-level advisory locks are turned off by "advisory_ext.session_locks"',
          'a hint that has to look up a name');

SELECT * FROM finish();
ROLLBACK;
ROLLBACK PREPARED 'advisory_ext_tap_search_path';
