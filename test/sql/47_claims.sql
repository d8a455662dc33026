-- Editions: both.
-- Once per window: which window is claimed, that it is claimed once, and what rolls back. Sessions
-- beside each other are for script tests. 49_claims_extension has its table, who may do what, and
-- windows by themselves.
\pset format unaligned \pset tuples_only on
SET application_name = 'claims';
SET timezone = 'UTC';
SET datestyle = 'ISO';

---- A window given by the caller
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 10:00+00'); --> 2026-01-01 10:00:00+00
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 10:00+00') AS again; -->
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 09:00+00') AS earlier; -->
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 10:00:00.001+00') AS later;
--> 2026-01-01 10:00:00.001+00
-- Other names have their own.
SELECT advisory.claim('claims', 'b', '1 hour', '2026-01-01 09:00+00'),
       advisory.claim('claims', 1, '1 hour', '2026-01-01 08:00+00') AS by_id,
       advisory.claim('claims', '00000000-0000-0000-0000-000000000001'::uuid, '1 hour',
       '2026-01-01 07:00+00') AS by_uuid,
       advisory.claim('claims', '1', '1 hour', '2026-01-01 08:00+00') AS the_id_again;
--> 2026-01-01 09:00:00+00|2026-01-01 08:00:00+00|2026-01-01 07:00:00+00|
-- It need not be on a boundary, and every may have months then.
SELECT advisory.claim('claims', 'monthly', '1 month', '2026-01-31 12:34:56.789+00');
--> 2026-01-31 12:34:56.789+00
-- A lock of that name is another thing.
SELECT advisory.lock('claims', 'a'), advisory.claim('claims', 'a', '1 hour', '2026-01-01 11:00+00'),
    advisory.holds('claims', 'a'); --> t|2026-01-01 11:00:00+00|t
SELECT advisory.unlock('claims', 'a'); --> t
SELECT namespace, name, key = advisory.key(namespace, name) AS is_key, last_window,
    claimed_at <= now() AS claimed, replace(claimed_by, current_user, 'ROLE') AS claimed_by,
    state, finished_at, every
FROM advisory.claims ORDER BY name;
--> claims|00000000-0000-0000-0000-000000000001|t|2026-01-01 07:00:00+00|t|ROLE@claims|done||@ 1 hour
--> claims|1|t|2026-01-01 08:00:00+00|t|ROLE@claims|done||@ 1 hour
--> claims|a|t|2026-01-01 11:00:00+00|t|ROLE@claims|done||@ 1 hour
--> claims|b|t|2026-01-01 09:00:00+00|t|ROLE@claims|done||@ 1 hour
--> claims|monthly|t|2026-01-31 12:34:56.789+00|t|ROLE@claims|done||@ 1 mon

---- In the caller's transaction
BEGIN;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00'); --> 2026-01-01 12:00:00+00
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS again; -->
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS after_rollback;
--> 2026-01-01 12:00:00+00
ROLLBACK TO s;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00')
    AS after_rollback_to_savepoint; --> 2026-01-01 12:00:00+00
COMMIT;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS after_commit; -->
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 13:00+00') AS repeatable_read,
    advisory.claim('claims', 'a', '1 hour', '2026-01-01 13:00+00') AS again;
--> 2026-01-01 13:00:00+00|
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 13:00+00') AS again,
    advisory.claim('claims', 'a', '1 hour', '2026-01-01 14:00+00') AS serializable;
--> |2026-01-01 14:00:00+00
COMMIT;
-- A window that cannot be claimed needs no transaction ID, so the call locks nothing.
BEGIN;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 14:00+00'),
    pg_current_xact_id_if_assigned(); --> |
COMMIT;
-- In a subtransaction that ends by an error.
DO $$
BEGIN
    PERFORM advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00');
    RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'then: %', advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00');
END $$; --> NOTICE:  then: 2026-01-01 15:00:00+00
BEGIN READ ONLY;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00');
--extension> ERROR:  cannot execute advisory.claim() in a read-only transaction
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK;

---- Which window
-- claim() takes the one of now.
SELECT clock_timestamp() BETWEEN claimed - interval '1 min'
    AND claimed + interval '1 hour' AS contains_now,
    extract(epoch FROM claimed)::numeric % 3600 AS seconds
FROM advisory.claim('claims', 'hourly', '1 hour') AS claimed; --> t|0.000000
BEGIN;
SELECT pg_sleep(0.03); -->
SELECT advisory.claim('claims', 'short', '10 ms') > now() + interval '20 ms' AS "not by now()";
--> t
COMMIT;
-- A clock that was set back claims no window again, nor an earlier one.
SELECT advisory.claim('claims', 'clock', '1 hour',
    clock_timestamp() + interval '1 hour') IS NOT NULL AS ahead,
    advisory.claim('claims', 'clock', '1 hour') AS behind; --> t|
-- A job by hand, in the evening or at any other time, does not use up the next window.
SELECT claimed <= clock_timestamp() + interval '1 min' AS "not that of tomorrow"
    FROM advisory.claim('claims', 'daily', '1 day') AS claimed; --> t
-- A window far ahead is refused, because no window before it could be claimed any more.
SELECT advisory.claim('claims', 'ahead', '1 hour', '294276-12-31 23:00+00');
--> ERROR:  window 294276-12-31 23:00:00+00 is too far ahead
--> DETAIL:  A window can be claimed at most one window before it begins.
\set VERBOSITY sqlstate
SELECT advisory.claim('claims', 'ahead', '1 hour', clock_timestamp() + interval '61 min');
--> ERROR:  22023
SELECT advisory.claim('claims', 'ahead', '366 days', clock_timestamp() + interval '367 days');
--> ERROR:  22023
\set VERBOSITY default
SELECT advisory.claim('claims', 'ahead', '1 month',
    clock_timestamp() + interval '1 month') IS NOT NULL AS a_month_ahead; --> t

---- Days of a time zone
-- A year of a job at each hour, in zones whose clocks change at different hours, in Havana and
-- Cairo at midnight. (A year that is over, because the rules of a later one may change.) It starts
-- at both times that are there twice, and after the gap instead of at a time that is not there. Two
-- schedulers start it, whose clocks are 20 s early and late.
SELECT CASE advisory.edition() WHEN 'portable' THEN 'advisory._window_at'
    ELSE 'advisory_internal.window' END AS window_at \gset
CREATE TEMP TABLE firing AS
    SELECT zone, local, at + early * interval '20 s' AS at
    FROM unnest(ARRAY['America/New_York', 'Europe/Prague', 'America/Havana', 'Africa/Cairo',
        'Australia/Lord_Howe', 'Asia/Kolkata']) AS zone,
        generate_series('2025-01-01'::timestamp, '2025-12-31 23:00', '1 hour') AS local,
        LATERAL (SELECT local AT TIME ZONE zone) AS t (later),
        LATERAL (VALUES (later), (later - interval '30 min'), (later - interval '1 h')) AS v (at),
        (VALUES (-1), (1)) AS e (early)
    WHERE at = later OR at AT TIME ZONE zone = local;
CREATE TEMP TABLE windows AS SELECT *, :window_at('1 day', at, zone) AS w FROM firing;
-- A window is claimed if it begins later than the last one, and not on the same day.
CREATE FUNCTION pg_temp.lost_and_wrong(OUT zone text, OUT claimed bigint, OUT lost bigint,
    OUT wrong bigint) RETURNS SETOF record LANGUAGE sql AS $$
    SELECT zone, count(*), 24 * 365 - count(DISTINCT local),
        count(*) FILTER (WHERE (w AT TIME ZONE zone)::date <> local::date)
    FROM (SELECT *, max(w) OVER (PARTITION BY zone, local::time ORDER BY at
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last FROM windows) AS f
    WHERE w - last >= interval '12 hours' OR last IS NULL
    GROUP BY zone ORDER BY zone $$;
SELECT * FROM pg_temp.lost_and_wrong();
--> Africa/Cairo|8760|0|0
--> America/Havana|8760|0|0
--> America/New_York|8760|0|0
--> Asia/Kolkata|8760|0|0
--> Australia/Lord_Howe|8760|0|0
--> Europe/Prague|8760|0|0
-- With days of UTC, runs are lost where a job starts at midnight UTC on one side of a change.
UPDATE windows SET w = :window_at('1 day', at, NULL);
SELECT zone, lost > 0 AS are_lost FROM pg_temp.lost_and_wrong();
--> Africa/Cairo|t
--> America/Havana|t
--> America/New_York|t
--> Asia/Kolkata|f
--> Australia/Lord_Howe|f
--> Europe/Prague|t
-- Where midnight is there twice, it is the first one; where it is not there, the day begins later.
SELECT n, begins AT TIME ZONE zone AS begins, begins
FROM (VALUES (1, 'America/Havana', '1 day', '2025-03-09 12:00-04'),
    (2, 'America/Havana', '1 day', '2025-11-02 00:30-04'),
    (3, 'America/Havana', '1 day', '2025-11-02 00:30-05'),
    (4, 'America/St_Johns', '1 day', '2006-10-29 00:00-02:30'),
    (5, 'America/St_Johns', '1 day', '2006-10-28 23:30-03:30'),
    (6, 'Pacific/Apia', '1 day', '2011-12-31 12:00+14'),
    -- The time between is not there: 30 December was left out.
    (7, 'Pacific/Apia', '1 day', '2011-12-29 23:58-10'),
    -- Longer windows are counted from Monday, 2001-01-01.
    (8, 'Europe/Prague', '7 days', '2026-03-29 23:58+02'),
    (9, 'Europe/Prague', '1 week', '2026-03-29 23:59+02'),
    (10, 'Europe/Prague', '48 hours', '2001-01-02 23:00+01')) AS t(n, zone, every, at),
    LATERAL (SELECT :window_at(every::interval, at::timestamptz, zone)) AS w (begins) ORDER BY n;
--> 1|2025-03-09 01:00:00|2025-03-09 05:00:00+00
--> 2|2025-11-02 00:00:00|2025-11-02 04:00:00+00
--> 3|2025-11-02 00:00:00|2025-11-02 04:00:00+00
--> 4|2006-10-28 00:00:00|2006-10-28 02:30:00+00
--> 5|2006-10-28 00:00:00|2006-10-28 02:30:00+00
--> 6|2011-12-31 00:00:00|2011-12-30 10:00:00+00
--> 7|2011-12-29 00:00:00|2011-12-29 10:00:00+00
--> 8|2026-03-23 00:00:00|2026-03-22 23:00:00+00
--> 9|2026-03-30 00:00:00|2026-03-29 22:00:00+00
--> 10|2001-01-01 00:00:00|2000-12-31 23:00:00+00
-- claim() takes the day of now.
SELECT (w AT TIME ZONE 'America/New_York')::time AS begins,
    clock_timestamp() BETWEEN w - interval '1 min' AND w + interval '25 hours' AS contains_now,
    advisory.claim('claims', 'zone', '1 day', time_zone => 'America/New_York') AS again
FROM advisory.claim('claims', 'zone', '1 day', time_zone => 'America/New_York') AS w;
--> 00:00:00|t|
-- The zone gets new data, by which days begin earlier or later: it is the same day still.
UPDATE advisory._claims SET last_window = last_window - interval '2 hours' WHERE name = 'zone';
SELECT advisory.claim('claims', 'zone', '1 day', time_zone => 'America/New_York') AS same; -->
UPDATE advisory._claims SET last_window = last_window + interval '4 hours' WHERE name = 'zone';
SELECT advisory.claim('claims', 'zone', '1 day', time_zone => 'America/New_York') AS same; -->
UPDATE advisory._claims SET last_window = last_window - interval '25 hours' WHERE name = 'zone';
SELECT advisory.claim('claims', 'zone', '1 day', time_zone => 'America/New_York') IS NOT NULL
    AS next; --> t
SELECT current_setting('timezone'); --> UTC
\set VERBOSITY sqlstate
CALL advisory.run('claims', 'zone', 'SELECT 1', once_per => '1 day', time_zone => 'Mars/Tharsis');
--> ERROR:  22023
SELECT advisory.claim('claims', 'zone', '1 month', time_zone => 'Europe/Prague'); --> ERROR:  22023
\set VERBOSITY default
SELECT advisory.claim('claims', 'zone', '1 day', time_zone => 'Mars/Tharsis');
--> ERROR:  time zone "Mars/Tharsis" not recognized
SELECT advisory.claim('claims', 'zone', '1 day', time_zone => '');
--> ERROR:  time zone "" not recognized
SELECT advisory.claim('claims', 'zone', '1 hour', time_zone => 'Europe/Prague');
--> ERROR:  every must be whole days if time_zone is given
SELECT advisory.claim('claims', 'zone', '36 hours', time_zone => 'Europe/Prague');
--> ERROR:  every must be whole days if time_zone is given
SELECT advisory.claim('claims', 'zone', '1 day', '2026-01-01', 'Europe/Prague');
--> ERROR:  time_zone must not be given together with window_start
CALL advisory.run('claims', 'zone', 'SELECT 1', time_zone => 'Europe/Prague');
--> ERROR:  time_zone must not be given without once_per
CALL advisory.run('claims', 'zone', 'SELECT 1', once_per => '1 hour', time_zone => 'Asia/Tokyo');
--> ERROR:  once_per must be whole days if time_zone is given
CALL advisory.run('claims', 'zone', 'SELECT 1', once_per => '1 day', once_window => '2026-01-01',
    time_zone => 'Asia/Tokyo'); --> ERROR:  time_zone must not be given together with once_window

---- Claims that are only apart from each other
SELECT claimed BETWEEN date_trunc('milliseconds', now()) AND clock_timestamp() AS now,
    advisory.claim_apart('claims', 'apart', '1 hour') AS again,
    advisory.claim_apart('claims', 7, '1 hour') IS NOT NULL AS by_id,
    advisory.claim_apart('claims', '00000000-0000-0000-0000-000000000007'::uuid, '1 hour')
    IS NOT NULL AS by_uuid,
    advisory.claim_apart('claims', 7, '1 us') IS NOT NULL AS after_a_microsecond
FROM advisory.claim_apart('claims', 'apart', '1 hour') AS claimed; --> t||t|t|t
-- Its time goes by.
CREATE FUNCTION pg_temp.later(span interval) RETURNS text LANGUAGE sql AS $$
    UPDATE advisory._claims SET last_window = last_window - span, claimed_at = claimed_at - span
    WHERE name = 'apart';
    SELECT CASE WHEN claimed > now() - interval '1 ms' THEN 'claimed' END
    FROM advisory.claim_apart('claims', 'apart', '1 hour') AS claimed $$;
SELECT pg_temp.later('59 min'), pg_temp.later('1 min') AS an_hour_later,
    pg_temp.later('1 min') AS a_minute_later; --> |claimed|
-- What is taken back leaves the claim before it.
SELECT advisory.unclaim('claims', 'apart', last_window) FROM advisory.claims WHERE name = 'apart';
--> t
SELECT clock_timestamp() - last_window > interval '1 hour' AS the_one_before,
    advisory.claim_apart('claims', 'apart', '1 hour') IS NOT NULL AS again,
    advisory.claim_apart('claims', 'apart', '1 hour') AS and_again
FROM advisory.claims WHERE name = 'apart'; --> t|t|
BEGIN;
SELECT advisory.claim_apart('claims', 'rolled back', '1 hour') IS NOT NULL; --> t
ROLLBACK;
SELECT advisory.claim_apart('claims', 'rolled back', '1 hour') IS NOT NULL AS after_rollback; --> t
-- Beside windows of the same name: when such a window was claimed counts, not when it began.
SELECT advisory.claim('claims', 'both', '1 day', clock_timestamp() - interval '10 h') IS NOT NULL,
    advisory.claim_apart('claims', 'both', '1 hour') AS too_early,
    advisory.claim_apart('claims', 'both', '1 us') IS NOT NULL AS apart,
    advisory.claim('claims', 'both', '1 day', clock_timestamp() - interval '1 s') AS earlier_window;
--> t||t|
-- A claim ahead holds it up, as it holds up windows.
SELECT advisory.claim('claims', 'both', '1 day', clock_timestamp() + interval '1 h') IS NOT NULL,
    advisory.claim_apart('claims', 'both', '1 us') AS too_early; --> t|
-- A day has 24 hours, in every time zone: half an hour more or less decides, also where clocks were
-- put back or forward meanwhile.
SET timezone = 'America/New_York';
SELECT count(advisory.claim_apart('claims', 'days ' || d, '1 day'))
FROM generate_series(60, 300, 60) AS d; --> 5
CREATE FUNCTION pg_temp.days_later(more interval) RETURNS bigint LANGUAGE sql AS $$
    UPDATE advisory._claims SET claimed_at = clock_timestamp()
        - (split_part(name, ' ', 2)::integer * 24 * interval '1 hour' + more)
    WHERE name LIKE 'days %';
    UPDATE advisory._claims SET last_window = claimed_at WHERE name LIKE 'days %';
    SELECT count(advisory.claim_apart('claims', 'days ' || d, d * interval '1 day'))
    FROM generate_series(60, 300, 60) AS d $$;
SELECT pg_temp.days_later('-30 min') AS too_early, pg_temp.days_later('30 min') AS in_time; --> 0|5
SET timezone = 'UTC';
SELECT advisory.claim_apart('claims', 'apart', NULL); --> ERROR:  apart must not be null
SELECT advisory.claim_apart('claims', 'apart', '0'); --> ERROR:  apart must be greater than zero
SELECT advisory.claim_apart('claims', 'apart', '-1 hour');
--> ERROR:  apart must be greater than zero
SELECT advisory.claim_apart('claims', 'apart', '1 month');
--> ERROR:  apart must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Use days or smaller units.
SELECT advisory.claim_apart('claims', '', '1 hour'); --> ERROR:  name must not be empty
SELECT advisory.claim_apart('claims', repeat('x', 1025), '1 hour');
--> ERROR:  name of a claim is too long
--> DETAIL:  It can have at most 1024 bytes.
CALL advisory.run('claims', 'apart', 'SELECT 1', once_per => '1 hour', apart => '1 hour');
--> ERROR:  apart must not be given together with once_per
CALL advisory.run('claims', 'apart', 'SELECT 1', apart => '1 hour', time_zone => 'UTC');
--> ERROR:  time_zone must not be given without once_per
CALL advisory.run('claims', 'apart', 'SELECT 1', apart => '1 hour', once_window => '2026-01-01');
--> ERROR:  once_window must not be given without once_per
CALL advisory.run('claims', 'apart', 'SELECT 1', apart => '1 month');
--> ERROR:  apart must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Use days or smaller units.
-- DETAIL has times, and is for run.t.
\set VERBOSITY terse
CALL advisory.run('claims', 'apart', 'SELECT 1', apart => '1 hour', if_busy => 'error');
--> ERROR:  the last claim of "claims/apart" is not long enough ago
CALL advisory.run('claims', 'run apart', 'SELECT 1', apart => '1 hour'); --> t
CALL advisory.run('claims', 'run apart', 'SELECT 1', apart => '1 hour');
--> NOTICE:  command was not run because the last claim of "claims/run apart" is not long enough ago
--> f
\set VERBOSITY default

---- Wrong arguments
SELECT advisory.claim(NULL, 'a', '1 hour'); --> ERROR:  namespace must not be null
SELECT advisory.claim('claims', NULL::text, '1 hour'); --> ERROR:  name must not be null
SELECT advisory.claim('claims', '', '1 hour'); --> ERROR:  name must not be empty
SELECT advisory.claim('claims', 'a', NULL); --> ERROR:  every must not be null
SELECT advisory.claim('claims', 'a', NULL, '2026-01-01'); --> ERROR:  every must not be null
SELECT advisory.claim('claims', 'a', '0'); --> ERROR:  every must be greater than zero
SELECT advisory.claim('claims', 'a', '-1 hour'); --> ERROR:  every must be greater than zero
SELECT advisory.claim('claims', 'a', '-1 hour', '2026-01-01');
--> ERROR:  every must be greater than zero
SELECT advisory.claim('claims', 'a', '1 month -30 days');
--> ERROR:  every must be greater than zero
SELECT advisory.claim('claims', 'a', '1 month');
--> ERROR:  every must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Give the window itself as window_start, such as date_trunc('month', now() + interval '1 minute', 'UTC').
SELECT advisory.claim('claims', 'a', '1 year 2 days');
--> ERROR:  every must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Give the window itself as window_start, such as date_trunc('month', now() + interval '1 minute', 'UTC').
SELECT advisory.claim('claims', 'a', '2147483647 days');
--> ERROR:  every is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
-- An hour in nanoseconds, as a driver may send it.
SELECT advisory.claim('claims', 'a', '3600000000000');
--> ERROR:  every is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.claim('claims', 'a', '367 days', clock_timestamp());
--> ERROR:  every is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.claim_apart('claims', 'a', '3600000000000');
--> ERROR:  apart is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
CALL advisory.run('claims', 'a', 'SELECT 1', once_per => '3600000000000');
--> ERROR:  once_per is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
CALL advisory.run('claims', 'a', 'SELECT 1', apart => '366 days 1 us');
--> ERROR:  apart is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.claim_apart('claims', 'a year', '366 days') IS NOT NULL AS a_year; --> t
SELECT advisory.claim('claims', 'a', '1 hour', 'infinity'); --> ERROR:  window_start must be finite
SELECT advisory.claim('claims', 'a', '1 hour', '-infinity'); --> ERROR:  window_start must be finite
SELECT advisory.claim('claims', repeat('x', 1025), '1 hour');
--> ERROR:  name of a claim is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.claim(repeat('x', 1025), 'a', '1 hour');
--> ERROR:  namespace of a claim is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.claim('claims', repeat('x', 1024), '1 hour') IS NOT NULL AS longest; --> t
CALL advisory.run('claims', repeat('x', 1025), 'SELECT 1', once_per => '1 hour');
--> ERROR:  name of a claim is too long
--> DETAIL:  It can have at most 1024 bytes.
CALL advisory.run('claims', repeat('x', 1025), 'SELECT 1'); --> t
SELECT last_window FROM advisory.claims WHERE key = advisory.key('claims', 'a');
--> 2026-01-01 15:00:00+00

---- unclaim: the last claim is taken back, and no window before it can be claimed once more
SELECT advisory.unclaim('claims', 'a', '2026-01-01 14:00+00') AS not_the_last,
       advisory.unclaim('claims', 'none', '2026-01-01 14:00+00') AS none,
       advisory.unclaim('claims', 'a', '2026-01-01 15:00+00'); --> f|f|t
SELECT last_window, claimed_at, claimed_by, finished_at FROM advisory.claims WHERE name = 'a';
--> 2026-01-01 14:00:00+00|||
-- Many drivers keep milliseconds of a time, and give them back.
SELECT advisory.unclaim('claims', 'driver', date_trunc('milliseconds', claimed)) AS unclaimed,
       claimed = date_trunc('milliseconds', claimed) AS whole
FROM advisory.claim_apart('claims', 'driver', '1 hour') AS claimed; --> t|t
SELECT advisory.claim('claims', 'driver window', '1 hour', '2026-01-01 15:00:00.123456+00')
    AS claimed,
    advisory.claim('claims', 'driver window', '1 hour', '2026-01-01 15:00:00.123789+00') AS same,
    advisory.unclaim('claims', 'driver window', '2026-01-01 15:00:00.123456+00') AS unclaimed;
--> 2026-01-01 15:00:00.123+00||t
SELECT advisory.unclaim('claims', 'a', '2026-01-01 15:00+00') AS once_more,
    advisory.unclaim('claims', 'a', '2026-01-01 14:00+00') AS the_one_before; --> f|f
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 14:00+00') AS earlier; -->
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00') AS again;
--> 2026-01-01 15:00:00+00
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00') AS and_again; -->
-- Somebody has claimed a later window by mistake.
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 20:00+00'),
    advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00') AS before;
--> 2026-01-01 20:00:00+00|
SELECT advisory.unclaim('claims', 'a', '2026-01-01 20:00+00'),
    advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00') AS after;
--> t|2026-01-01 16:00:00+00
-- The first claim of a name. The row stays, but shows nothing.
SELECT advisory.unclaim('claims', 1, '2026-01-01 08:00+00'),
    advisory.unclaim('claims', '00000000-0000-0000-0000-000000000001'::uuid, '2026-01-01 07:00+00')
    AS by_uuid; --> t|t
SELECT count(*) FROM advisory.claims WHERE name = '1'; --> 0
SELECT advisory.claim('claims', 1, '1 hour', '2025-01-01 08:00+00') AS earlier;
--> 2025-01-01 08:00:00+00
-- In a transaction.
BEGIN;
SELECT advisory.unclaim('claims', 'b', '2026-01-01 09:00+00'),
    advisory.claim('claims', 'b', '1 hour', '2026-01-01 09:00+00') AS again;
--> t|2026-01-01 09:00:00+00
ROLLBACK;
BEGIN;
SELECT advisory.unclaim('claims', 'b', '2026-01-01 09:00+00'); --> t
ROLLBACK;
SELECT advisory.claim('claims', 'b', '1 hour', '2026-01-01 09:00+00') AS still_claimed; -->
BEGIN READ ONLY;
SELECT advisory.unclaim('claims', 'b', '2026-01-01 09:00+00');
--extension> ERROR:  cannot execute advisory.unclaim() in a read-only transaction
--portable> ERROR:  cannot execute UPDATE in a read-only transaction
ROLLBACK;
SELECT advisory.unclaim('claims', 'b', NULL); --> ERROR:  window_start must not be null
SELECT advisory.unclaim('claims', 'b', 'infinity'); --> ERROR:  window_start must be finite
SELECT advisory.unclaim('claims', 'b', '-infinity'); --> ERROR:  window_start must be finite
SELECT advisory.unclaim('claims', '', '2026-01-01'); --> ERROR:  name must not be empty
SELECT advisory.unclaim(NULL, 'b', '2026-01-01'); --> ERROR:  namespace must not be null
SELECT advisory.unclaim('claims', repeat('x', 1025), '2026-01-01');
--> ERROR:  name of a claim is too long
--> DETAIL:  It can have at most 1024 bytes.

---- What became of them
DELETE FROM advisory._claims;
SELECT advisory.claim('claims', 'done', '1 hour', clock_timestamp()) IS NOT NULL,
    advisory.claim('claims', 'early', '1 hour', clock_timestamp() + interval '50 s') IS NOT NULL,
    advisory.claim('claims', 'ahead', '1 hour', clock_timestamp() + interval '30 min') IS NOT NULL,
    advisory.claim_apart('claims', 'apart', '1 hour') IS NOT NULL AS apart,
    advisory.claim('claims', 'taken back', '1 day', '2026-01-01') IS NOT NULL,
    advisory.claim('claims', 'taken back', '1 day', '2026-01-02') IS NOT NULL,
    advisory.unclaim('claims', 'taken back', '2026-01-02'); --> t|t|t|t|t|t|t
SELECT name, state, finished_at, every, overdue FROM advisory.claims ORDER BY name;
--> ahead|ahead||@ 1 hour|f
--> apart|done|||
--> done|done||@ 1 hour|f
--> early|done||@ 1 hour|f
--> taken back|taken back||@ 1 day|t
-- A window may have passed without a claim, and a tenth of one more.
SELECT advisory.claim('overdue', name, every, clock_timestamp() - age) IS NOT NULL
FROM (VALUES ('hour', interval '1 hour', interval '2 hours'), ('day', '1 day', '49 hours'),
    ('month', '1 month', '62 days'), ('ages', '366 days', '2000 years'),
    ('late hour', '1 hour', '3 hours'), ('late day', '1 day', '3 days'),
    ('late month', '1 month', '3 months')) AS v (name, every, age);
--> t
--> t
--> t
--> t
--> t
--> t
--> t
SELECT name, overdue FROM advisory.claims WHERE namespace = 'overdue' ORDER BY name;
--> ages|t
--> day|f
--> hour|f
--> late day|t
--> late hour|t
--> late month|t
--> month|f
-- Jobs: while they run, and then.
CREATE TEMP TABLE seen (name text, state text);
CALL advisory.run('claims', 'job', 'INSERT INTO seen SELECT name, state FROM advisory.claims
    WHERE name = $$job$$', once_per => '1 hour'); --> t
CALL advisory.run('claims', 'slots', 'INSERT INTO seen SELECT name, state FROM advisory.claims
    WHERE name = $$slots$$', slots => 2, apart => '1 hour'); --> t
SELECT * FROM seen ORDER BY name;
--> job|running
--> slots|running
\set VERBOSITY terse
CALL advisory.run('claims', 'failed', 'SELECT 1/0', once_per => '1 hour');
--> ERROR:  division by zero
CALL advisory.run('claims', 'ahead', 'SELECT 1', if_busy => 'skip', apart => '1 min');
--> NOTICE:  command was not run because the last claim of "claims/ahead" is not long enough ago
--> f
SELECT name, state, finished_at >= claimed_at AS finished, overdue,
    last_skipped_at BETWEEN claimed_at AND clock_timestamp() AS skipped
FROM advisory.claims WHERE name IN ('job', 'slots', 'failed', 'ahead') ORDER BY name;
--extension> ahead|ahead||f|t
--portable> ahead|ahead||f|
--> failed|failed||f|
--> job|done|t|f|
--> slots|done|t||
