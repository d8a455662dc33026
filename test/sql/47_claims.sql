-- Editions: both.
-- Once per window: which window is claimed, that it is claimed once, and what rolls back. Sessions beside each other are for script tests.
-- 49_claims_extension has its table, who may do what, and windows by themselves.
SET application_name = 'claims';
SET timezone = 'UTC';
SET datestyle = 'ISO';

---- A window given by the caller

SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 10:00+00');
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 10:00+00') AS again;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 09:00+00') AS earlier;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 10:00:00.000001+00') AS later;
-- Other names have their own.
SELECT advisory.claim('claims', 'b', '1 hour', '2026-01-01 09:00+00'), advisory.claim('claims', 1, '1 hour', '2026-01-01 08:00+00') AS by_id,
       advisory.claim('claims', '00000000-0000-0000-0000-000000000001'::uuid, '1 hour', '2026-01-01 07:00+00') AS by_uuid,
       advisory.claim('claims', '1', '1 hour', '2026-01-01 08:00+00') AS the_id_again;
-- It need not be on a boundary, and every may have months then.
SELECT advisory.claim('claims', 'monthly', '1 month', '2026-01-31 12:34:56.789+00');
-- A lock of that name is another thing.
SELECT advisory.lock('claims', 'a'), advisory.claim('claims', 'a', '1 hour', '2026-01-01 11:00+00'), advisory.unlock('claims', 'a');
SELECT namespace, name, key = advisory.key(namespace, name) AS is_key, last_window, claimed_at <= now() AS claimed, replace(claimed_by, current_user, 'ROLE') AS claimed_by, finished_at = claimed_at AS finished
FROM advisory.claims ORDER BY name;

---- In the caller's transaction

BEGIN;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00');
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS again;
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS after_rollback;
ROLLBACK TO s;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS after_rollback_to_savepoint;
COMMIT;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 12:00+00') AS after_commit;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 13:00+00') AS repeatable_read, advisory.claim('claims', 'a', '1 hour', '2026-01-01 13:00+00') AS again;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 13:00+00') AS again, advisory.claim('claims', 'a', '1 hour', '2026-01-01 14:00+00') AS serializable;
COMMIT;
-- A window that cannot be claimed needs no transaction ID, so the call locks nothing.
BEGIN;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 14:00+00'), pg_current_xact_id_if_assigned();
COMMIT;
-- In a subtransaction that ends by an error.
DO $$
BEGIN
    PERFORM advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00');
    RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'then: %', advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00');
END $$;
BEGIN READ ONLY;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00');
ROLLBACK;

---- Which window

-- claim() takes the one of now.
SELECT clock_timestamp() BETWEEN claimed - interval '1 min' AND claimed + interval '1 hour' AS contains_now, extract(epoch FROM claimed)::numeric % 3600 AS seconds
FROM advisory.claim('claims', 'hourly', '1 hour') AS claimed;
BEGIN;
SELECT pg_sleep(0.03);
SELECT advisory.claim('claims', 'short', '10 ms') > now() + interval '20 ms' AS "not by now()";
COMMIT;
-- A clock that was set back claims no window again, nor an earlier one.
SELECT advisory.claim('claims', 'clock', '1 hour', clock_timestamp() + interval '1 hour') IS NOT NULL AS ahead, advisory.claim('claims', 'clock', '1 hour') AS behind;
-- A job by hand, in the evening or at any other time, does not use up the next window.
SELECT claimed <= clock_timestamp() + interval '1 min' AS "not that of tomorrow" FROM advisory.claim('claims', 'daily', '1 day') AS claimed;
-- A window far ahead is refused, because no window before it could be claimed any more.
SELECT advisory.claim('claims', 'ahead', '1 hour', '294276-12-31 23:00+00');
SELECT advisory.claim('claims', 'ahead', '290000 years', '200000-01-01 00:00+00');
\set VERBOSITY sqlstate
SELECT advisory.claim('claims', 'ahead', '1 hour', clock_timestamp() + interval '61 min');
SELECT advisory.claim('claims', 'ahead', '367 days', clock_timestamp() + interval '367 days');
\set VERBOSITY default
SELECT advisory.claim('claims', 'ahead', '1 month', clock_timestamp() + interval '1 month') IS NOT NULL AS a_month_ahead;

---- Wrong arguments

SELECT advisory.claim(NULL, 'a', '1 hour');
SELECT advisory.claim('claims', NULL::text, '1 hour');
SELECT advisory.claim('claims', '', '1 hour');
SELECT advisory.claim('claims', 'a', NULL);
SELECT advisory.claim('claims', 'a', NULL, '2026-01-01');
SELECT advisory.claim('claims', 'a', '0');
SELECT advisory.claim('claims', 'a', '-1 hour');
SELECT advisory.claim('claims', 'a', '-1 hour', '2026-01-01');
SELECT advisory.claim('claims', 'a', '1 month -30 days');
SELECT advisory.claim('claims', 'a', '1 month');
SELECT advisory.claim('claims', 'a', '1 year 2 days');
SELECT advisory.claim('claims', 'a', '2147483647 days');
SELECT advisory.claim('claims', 'a', '1 hour', 'infinity');
SELECT advisory.claim('claims', 'a', '1 hour', '-infinity');
SELECT advisory.claim('claims', repeat('x', 1025), '1 hour');
SELECT advisory.claim(repeat('x', 1025), 'a', '1 hour');
SELECT advisory.claim('claims', repeat('x', 1024), '1 hour') IS NOT NULL AS longest;
CALL advisory.run('claims', repeat('x', 1025), 'SELECT 1', once_per => '1 hour');
CALL advisory.run('claims', repeat('x', 1025), 'SELECT 1');
SELECT last_window FROM advisory.claims WHERE key = advisory.key('claims', 'a');

---- unclaim: the last claim is taken back, and no window before it can be claimed once more

SELECT advisory.unclaim('claims', 'a', '2026-01-01 14:00+00') AS not_the_last, advisory.unclaim('claims', 'none', '2026-01-01 14:00+00') AS none,
       advisory.unclaim('claims', 'a', '2026-01-01 15:00+00');
SELECT last_window, claimed_at, claimed_by, finished_at FROM advisory.claims WHERE name = 'a';
SELECT advisory.unclaim('claims', 'a', '2026-01-01 15:00+00') AS once_more, advisory.unclaim('claims', 'a', '2026-01-01 14:00+00') AS the_one_before;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 14:00+00') AS earlier;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00') AS again;
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00') AS and_again;
-- Somebody has claimed a later window by mistake.
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 20:00+00'), advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00') AS before;
SELECT advisory.unclaim('claims', 'a', '2026-01-01 20:00+00'), advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00') AS after;
-- The first claim of a name. The row stays, but shows nothing.
SELECT advisory.unclaim('claims', 1, '2026-01-01 08:00+00'), advisory.unclaim('claims', '00000000-0000-0000-0000-000000000001'::uuid, '2026-01-01 07:00+00') AS by_uuid;
SELECT count(*) FROM advisory.claims WHERE name = '1';
SELECT advisory.claim('claims', 1, '1 hour', '2025-01-01 08:00+00') AS earlier;
-- In a transaction.
BEGIN;
SELECT advisory.unclaim('claims', 'b', '2026-01-01 09:00+00'), advisory.claim('claims', 'b', '1 hour', '2026-01-01 09:00+00') AS again;
ROLLBACK;
BEGIN;
SELECT advisory.unclaim('claims', 'b', '2026-01-01 09:00+00');
ROLLBACK;
SELECT advisory.claim('claims', 'b', '1 hour', '2026-01-01 09:00+00') AS still_claimed;
BEGIN READ ONLY;
SELECT advisory.unclaim('claims', 'b', '2026-01-01 09:00+00');
ROLLBACK;
SELECT advisory.unclaim('claims', 'b', NULL);
SELECT advisory.unclaim('claims', 'b', 'infinity');
SELECT advisory.unclaim('claims', 'b', '-infinity');
SELECT advisory.unclaim('claims', '', '2026-01-01');
SELECT advisory.unclaim(NULL, 'b', '2026-01-01');
