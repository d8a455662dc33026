-- Once per window: which window is claimed, that it is claimed once, and what rolls back. Sessions beside each other are for script tests.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS advisory_ext;
RESET client_min_messages;
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
SELECT n.name, c.last_window FROM advisory.claims AS c JOIN (VALUES ('a'), ('b'), ('1'), ('monthly')) AS n(name) ON c.key = advisory.key('claims', n.name) ORDER BY 1;

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
-- An error in the table's triggers does not change the caller's subtransactions.
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON advisory.claims FOR EACH ROW EXECUTE FUNCTION fails();
ALTER TABLE advisory.claims ENABLE ALWAYS TRIGGER fails;
CREATE TEMP TABLE kept (t text);
DO $$
BEGIN
    INSERT INTO kept VALUES ('before');
    BEGIN
        INSERT INTO kept VALUES ('inside');
        PERFORM advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00');
    EXCEPTION WHEN raise_exception THEN
        INSERT INTO kept VALUES (current_user = session_user);
    END;
END $$;
SELECT * FROM kept;
DROP TRIGGER fails ON advisory.claims;
DROP FUNCTION fails();

---- The nearest boundary

SELECT every, at, advisory._window(every::interval, at::timestamptz) FROM (VALUES
    ( 1, '1 hour', '2026-03-04 10:29:59.999999+00'),
    ( 2, '1 hour', '2026-03-04 10:30:00+00'),
    ( 3, '1 hour', '2026-03-04 11:29:59.999999+00'),
    ( 4, '1 hour', '2026-03-04 10:29:59+05:30'),
    ( 5, '15 s', '2026-03-04 10:29:52.499999+00'),
    ( 6, '15 s', '2026-03-04 10:29:52.5+00'),
    ( 7, '0.2 s', '2026-03-04 10:29:52.55+00'),
    ( 8, '3 us', '2026-03-04 10:29:52.500001+00'),
    ( 9, '1 day', '2026-03-04 11:59:59+00'),
    (10, '1 day', '2026-03-04 12:00+00'),
    (11, '24 hours', '2026-03-04 12:00+00'),
    (12, '1 week', '2026-03-04 12:00+00'),
    (13, '1 week', '2026-03-05 12:00+00'),
    (14, '1 week', '1999-03-03 00:00+00'),
    (15, '1 day -1 hour', '2001-01-02 00:00+00'),
    (16, '7 days', '2000-12-31 00:00+00')) AS t(n, every, at) ORDER BY n;
SELECT advisory._window('365000 days', '2026-03-04 12:00+00') AS long;
-- On the first and the last timestamp.
SELECT advisory._window('1 day', '4714-11-24 00:00+00 BC'), advisory._window('1 us', '294276-12-31 23:59:59.999999+00');
SELECT advisory._window('1 day', '294276-12-31 23:59:59.999999+00');
SELECT advisory._window('5 days', '4714-11-24 00:00+00 BC');
SELECT advisory._window('106000000 days', '4714-11-24 00:00+00 BC');
SELECT advisory._window('1 day', 'infinity');
SELECT advisory._window('1 day', '-infinity');
-- claim() takes the one that is nearest to the clock.
SELECT claimed BETWEEN clock_timestamp() - interval '30 min' AND clock_timestamp() + interval '30 min' AS near, extract(epoch FROM claimed)::numeric % 3600 AS seconds
FROM advisory.claim('claims', 'hourly', '1 hour') AS claimed;
BEGIN;
SELECT pg_sleep(0.03);
SELECT advisory.claim('claims', 'short', '10 ms') > now() + interval '20 ms' AS "not by now()";
COMMIT;
-- A clock that was set back claims no window again, nor an earlier one.
SELECT advisory.claim('claims', 'clock', '1 hour', clock_timestamp() + interval '1 hour') IS NOT NULL AS ahead, advisory.claim('claims', 'clock', '1 hour') AS behind;
-- A window far ahead is refused, because no window before it could be claimed any more.
SELECT advisory.claim('claims', 'ahead', '1 hour', '294276-12-31 23:00+00');
SELECT advisory.claim('claims', 'ahead', '290000 years', '200000-01-01 00:00+00');
\set VERBOSITY sqlstate
SELECT advisory.claim('claims', 'ahead', '1 hour', clock_timestamp() + interval '61 min');
SELECT advisory.claim('claims', 'ahead', '367 days', clock_timestamp() + interval '367 days');
SELECT advisory.claim('claims', 'ahead', '18000 days');
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
SELECT last_window FROM advisory.claims WHERE key = advisory.key('claims', 'a');

---- Privileges: anybody may claim; nobody but the owner writes the table

CREATE ROLE regress_claims;
SET ROLE regress_claims;
SELECT advisory.claim('claims', 'of a role', '1 hour', '2026-01-01 10:00+00'), current_user;
SELECT advisory.claim('claims', 'of a role', '1 hour', '2026-01-01 10:00+00'), advisory.claim('claims', 'of a role', '1 hour', '2026-01-01 11:00+00'), current_user;
SELECT count(*) > 0 AS may_read FROM advisory.claims;
UPDATE advisory.claims SET last_window = '2000-01-01';
DELETE FROM advisory.claims;
INSERT INTO advisory.claims VALUES (1, now());
RESET ROLE;
DROP ROLE regress_claims;
DELETE FROM advisory.claims;
