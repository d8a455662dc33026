-- Editions: both.
-- A hostile search_path: nothing that stands before pg_catalog in it is ever called by the
-- functions and views of advisory.
-- (31_search_path_extension has what only the extension has.)
\ir search_path_trap.psql
SELECT plan(34);

---- The trap works

SELECT is(pg_temp.trapped($$ SELECT starts_with('a'::text, 'a'::text) $$), 'EV000 sprung',
          'a function is trapped');
SELECT is(pg_temp.trapped($$ SELECT 'a'::text = 'a'::text $$), 'EV000 sprung',
          'an operator is trapped');
SELECT is(pg_temp.trapped($$ SELECT * FROM pg_prepared_xacts $$), 'EV000 sprung',
          'a view is trapped');
SELECT is(pg_temp.trapped($$ SELECT * FROM pg_catalog.pg_prepared_xacts $$), 'untouched',
          'what is qualified is not');

---- The functions and views of advisory do not fall into it

SELECT is(pg_temp.trapped(statement), 'untouched', statement) FROM unnest(ARRAY[
    'SELECT * FROM advisory.locks',
    'SELECT * FROM advisory.known_keys',
    $$SELECT * FROM advisory.holders('tap', 'prepared')$$,
    $$SELECT * FROM advisory.holders_key(42)$$,
    $$SELECT advisory.key('tap'), advisory.key('tap', 'a'), advisory.key('tap', 42)$$,
    $$SELECT advisory.key('tap', '00000000-0000-0000-0000-000000000001'::pg_catalog.uuid)$$,
    $$SELECT advisory.lock('tap', 'a'), advisory.lock('tap', 42)$$,
    $$SELECT advisory.lock_shared('tap', 'a', '1s')$$,
    $$SELECT advisory.try_lock('tap', 'a'), advisory.try_lock('tap', 'prepared')$$,
    $$SELECT advisory.try_lock_shared('tap', 'prepared', '1ms')$$,
    $$SELECT advisory.xact_lock('tap', 'a'), advisory.xact_lock_shared('tap', 'a')$$,
    $$SELECT advisory.try_xact_lock('tap', 'prepared', '1ms')$$,
    $$SELECT advisory.lock_key(42, label => 'label'), advisory.try_xact_lock_key(43)$$,
    $$SELECT advisory.lock_all('tap', ARRAY['a', 'b']), advisory.lock_all('tap', '{a,b}')$$,
    $$SELECT advisory.try_lock_all('tap', ARRAY['a', 'prepared'])$$,
    $$SELECT advisory.xact_lock_all('tap', ARRAY[1, 2])$$,
    $$SELECT advisory.try_xact_lock_all('tap', ARRAY['a', 'prepared'])$$,
    $$SELECT advisory.try_lock_any('tap', ARRAY['prepared', 'a', 'b'], 2)$$,
    $$SELECT advisory.try_lock_any('tap', '{prepared,a,b}', 2)$$,
    $$SELECT advisory.holds('tap', 'a'), advisory.is_locked('tap', 'prepared')$$,
    $$SELECT advisory.unlock('tap', 'a'), advisory.unlock('tap', 'never held')$$,
    $$SELECT advisory.unlock_shared('tap', 'a'), advisory.unlock_key(42)$$,
    $$SELECT advisory.unlock_all('tap', 'a'), advisory.unlock_all('tap', ARRAY['b'])$$,
    $$SELECT advisory.claim('tap', 'a', '1 hour', '2026-01-01 00:00+00')$$,
    $$SELECT advisory.claim('tap', 'a', '1 hour'), advisory.claim('tap', 'a', '1 hour')$$,
    $$SELECT advisory.claim('tap', 'b', '1 day', time_zone => 'Asia/Tokyo'),
        advisory.claim_apart('tap', 'c', '1 hour')$$,
    'SELECT * FROM advisory.claims',
    $$SELECT advisory.terminate_holder('tap', 'a', 0)$$]) AS statement;
SELECT is(pg_temp.trapped($$ SELECT advisory.lock('tap', 'prepared', '1ms') $$),
          '55P03 could not obtain advisory lock "tap/prepared" within 1 ms',
          'an error that has to name the holder');
SELECT is(pg_temp.trapped($$ SELECT advisory.xact_lock_all('tap', ARRAY['a', 'prepared'], '0') $$),
          '55P03 could not obtain advisory lock "tap/prepared" without waiting',
          'the same for several');

SELECT * FROM finish();
ROLLBACK;
ROLLBACK PREPARED 'advisory_ext_tap_search_path';
