-- Once per window, as in 47_claims: windows by themselves, the table, and who may do what.
\pset format unaligned \pset tuples_only on
CREATE ROLE regress_claimer SUPERUSER;
SET ROLE regress_claimer;
SET application_name = 'claims';
DELETE FROM advisory._claims;
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT advisory.claim('claims', 'a', '1 hour', '2026-01-01 15:00+00'); --> 2026-01-01 15:00:00+00
SELECT claimed_by FROM advisory.claims; --> regress_claimer@claims

---- The table
-- An error in the table's triggers does not change the caller's subtransactions.
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON advisory._claims FOR EACH ROW
    EXECUTE FUNCTION fails();
ALTER TABLE advisory._claims ENABLE ALWAYS TRIGGER fails;
CREATE TEMP TABLE kept (t text);
DO $$
BEGIN
    INSERT INTO kept VALUES ('before');
    BEGIN
        INSERT INTO kept VALUES ('inside');
        PERFORM advisory.claim('claims', 'a', '1 hour', '2026-01-01 16:00+00');
    EXCEPTION WHEN raise_exception THEN
        INSERT INTO kept VALUES (current_user = 'regress_claimer');
    END;
END $$;
SELECT * FROM kept;
--> before
--> true
DROP TRIGGER fails ON advisory._claims;
DROP FUNCTION fails();
DROP TABLE kept;

---- Which window
SELECT every, at, advisory_internal.window(every::interval, at::timestamptz) FROM (VALUES
    ( 1, '1 hour', '2026-03-04 10:00+00'),
    ( 2, '1 hour', '2026-03-04 10:58:59.999999+00'),
    ( 3, '1 hour', '2026-03-04 10:59+00'),
    ( 4, '1 hour', '2026-03-04 10:29:59+05:30'),
    ( 5, '15 s', '2026-03-04 10:29:52.499999+00'),
    ( 6, '15 s', '2026-03-04 10:29:52.5+00'),
    ( 7, '0.2 s', '2026-03-04 10:29:52.55+00'),
    ( 8, '3 us', '2026-03-04 10:29:52.500001+00'),
    ( 9, '1 us', '2026-03-04 10:29:52.500001+00'),
    (10, '2 min', '2026-03-04 10:01+00'),
    (11, '2 min -1 us', '2026-03-04 10:01+00'),
    (12, '1 day', '2026-11-22 00:00+00'),
    (13, '1 day', '2026-11-22 12:00+00'),
    (14, '1 day', '2026-11-22 22:46+00'),
    (15, '24 hours', '2026-11-22 23:58:59.999999+00'),
    (16, '1 day', '2026-11-22 23:59+00'),
    (17, '1 week', '2026-03-04 12:00+00'),
    (18, '1 week', '2026-03-08 23:59+00'),
    (19, '1 week', '1999-03-03 00:00+00'),
    (20, '1 day -1 hour', '2001-01-02 00:00+00'),
    (21, '7 days', '2000-12-31 00:00+00')) AS t(n, every, at) ORDER BY n;
--> 1 hour|2026-03-04 10:00+00|2026-03-04 10:00:00+00
--> 1 hour|2026-03-04 10:58:59.999999+00|2026-03-04 10:00:00+00
--> 1 hour|2026-03-04 10:59+00|2026-03-04 11:00:00+00
--> 1 hour|2026-03-04 10:29:59+05:30|2026-03-04 05:00:00+00
--> 15 s|2026-03-04 10:29:52.499999+00|2026-03-04 10:29:45+00
--> 15 s|2026-03-04 10:29:52.5+00|2026-03-04 10:30:00+00
--> 0.2 s|2026-03-04 10:29:52.55+00|2026-03-04 10:29:52.6+00
--> 3 us|2026-03-04 10:29:52.500001+00|2026-03-04 10:29:52.5+00
--> 1 us|2026-03-04 10:29:52.500001+00|2026-03-04 10:29:52.500001+00
--> 2 min|2026-03-04 10:01+00|2026-03-04 10:02:00+00
--> 2 min -1 us|2026-03-04 10:01+00|2026-03-04 10:01:53.380739+00
--> 1 day|2026-11-22 00:00+00|2026-11-22 00:00:00+00
--> 1 day|2026-11-22 12:00+00|2026-11-22 00:00:00+00
--> 1 day|2026-11-22 22:46+00|2026-11-22 00:00:00+00
--> 24 hours|2026-11-22 23:58:59.999999+00|2026-11-22 00:00:00+00
--> 1 day|2026-11-22 23:59+00|2026-11-23 00:00:00+00
--> 1 week|2026-03-04 12:00+00|2026-03-02 00:00:00+00
--> 1 week|2026-03-08 23:59+00|2026-03-09 00:00:00+00
--> 1 week|1999-03-03 00:00+00|1999-03-01 00:00:00+00
--> 1 day -1 hour|2001-01-02 00:00+00|2001-01-01 23:00:00+00
--> 7 days|2000-12-31 00:00+00|2000-12-25 00:00:00+00
-- It contains the time, or begins at most a minute, or half a window, later.
SELECT count(*) AS tried, count(*) FILTER (WHERE w <= at + early AND at + early < w + every
    AND advisory_internal.window(every, w) = w) AS good
FROM generate_series(1, 300000::bigint) AS n,
    LATERAL (SELECT 1 + n * n * 7919 % 200000000 AS length,
    '1995-01-01'::timestamptz + n * interval '3000.123457 s' AS at) AS t,
    LATERAL (SELECT length * interval '1 us' AS every,
    least(length / 2, 60000000) * interval '1 us' AS early) AS i,
    advisory_internal.window(every, at) AS w; --> 300000|300000
SELECT advisory_internal.window('366 days', '2026-03-04 12:00+00') AS long;
--> 2026-01-20 00:00:00+00
-- On the first and the last timestamp.
SELECT advisory_internal.window('1 day', '4714-11-24 00:00+00 BC'),
    advisory_internal.window('1 us', '294276-12-31 23:59:59.999999+00'),
    advisory_internal.window('3 days', '294276-12-31 23:59:59.999999+00');
--> 4714-11-24 00:00:00+00 BC|294276-12-31 23:59:59.999999+00|294276-12-31 00:00:00+00
SELECT advisory_internal.window('1 day', '294276-12-31 23:59:59.999999+00');
--> ERROR:  timestamp out of range
SELECT advisory_internal.window('5 days', '4714-11-24 00:00+00 BC');
--> ERROR:  timestamp out of range
SELECT advisory_internal.window('106000000 days', '4714-11-24 00:00+00 BC');
--> ERROR:  every is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory_internal.window('1 day', 'infinity'); --> ERROR:  timestamp out of range
SELECT advisory_internal.window('1 day', '-infinity'); --> ERROR:  timestamp out of range

---- Privileges: anybody may claim; names are hidden from other roles; the owner of the database may
---- take claims back
DELETE FROM advisory._claims;
CREATE ROLE regress_claims;
CREATE ROLE regress_claims_other;
SELECT advisory.claim('claims', 'of a superuser', '1 hour', '2026-01-01 10:00+00');
--> 2026-01-01 10:00:00+00
SET ROLE regress_claims;
SELECT advisory.claim('claims', 'of a role', '1 hour', '2026-01-01 10:00+00'), current_user;
--> 2026-01-01 10:00:00+00|regress_claims
SELECT advisory.claim('claims', 'of a role', '1 hour', '2026-01-01 10:00+00'),
    advisory.claim('claims', 'of a role', '1 hour', '2026-01-01 11:00+00'), current_user;
--> |2026-01-01 11:00:00+00|regress_claims
SELECT namespace, name, key = advisory.key(namespace, name) AS is_key, last_window,
    claimed_at IS NOT NULL AS claimed, claimed_by FROM advisory.claims ORDER BY last_window;
--> <insufficient privilege>|<insufficient privilege>||2026-01-01 10:00:00+00|t|<insufficient privilege>
--> claims|of a role|t|2026-01-01 11:00:00+00|t|regress_claims@claims
-- A condition of the caller is asked about what it may see, and not more.
CREATE FUNCTION pg_temp.looks(text) RETURNS boolean
    LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'sees %', $1; RETURN true; END $$;
SELECT count(*) FROM advisory.claims WHERE pg_temp.looks(name)
    AND last_window = '2026-01-01 10:00+00';
--> NOTICE:  sees <insufficient privilege>
--> 1
SELECT advisory.unclaim('claims', 'of a role', '2026-01-01 11:00+00');
--> ERROR:  permission denied for function unclaim
SELECT * FROM advisory._claims; --> ERROR:  permission denied for table _claims
UPDATE advisory._claims SET last_window = '2000-01-01';
--> ERROR:  permission denied for table _claims
DELETE FROM advisory._claims; --> ERROR:  permission denied for table _claims
INSERT INTO advisory._claims SELECT * FROM advisory._claims;
--> ERROR:  permission denied for table _claims
RESET ROLE;
SET ROLE regress_claims_other;
SELECT namespace, name, key, last_window, claimed_by FROM advisory.claims ORDER BY last_window;
--> <insufficient privilege>|<insufficient privilege>||2026-01-01 10:00:00+00|<insufficient privilege>
--> <insufficient privilege>|<insufficient privilege>||2026-01-01 11:00:00+00|<insufficient privilege>
RESET ROLE;
GRANT pg_read_all_stats TO regress_claims_other;
SET ROLE regress_claims_other;
SELECT namespace, name, last_window, claimed_by FROM advisory.claims ORDER BY last_window;
--> claims|of a superuser|2026-01-01 10:00:00+00|regress_claimer@claims
--> claims|of a role|2026-01-01 11:00:00+00|regress_claims@claims
RESET ROLE;
-- The role is gone.
DROP FUNCTION pg_temp.looks(text);
DROP ROLE regress_claims;
REVOKE pg_read_all_stats FROM regress_claims_other;
SET ROLE regress_claims_other;
SELECT namespace, name, key, last_window, claimed_by FROM advisory.claims ORDER BY last_window;
--> <insufficient privilege>|<insufficient privilege>||2026-01-01 10:00:00+00|<insufficient privilege>
--> <insufficient privilege>|<insufficient privilege>||2026-01-01 11:00:00+00|<insufficient privilege>
RESET ROLE;
SELECT namespace, name, last_window, claimed_by FROM advisory.claims ORDER BY last_window;
--> claims|of a superuser|2026-01-01 10:00:00+00|regress_claimer@claims
--> claims|of a role|2026-01-01 11:00:00+00|regress_claims@claims
-- What cannot be printed, and what no function of the extension has written.
UPDATE advisory._claims SET namespace = E'a\nb', name = repeat('x', 2000), claimed_by = E'\x1b[31m'
    || repeat('y', 300) WHERE last_window = '2026-01-01 11:00+00';
SELECT namespace, length(name), replace(claimed_by, 'yyyyyyyyyy', '+') FROM advisory.claims
    WHERE last_window = '2026-01-01 11:00+00'; --> a?b|1024|?[31m+++++++++++++++++++++++++y
SELECT substring(advisory_internal.describe_claim(c, 'regress_claimer'::regrole), 'by .{9}')
FROM advisory._claims AS c WHERE last_window = '2026-01-01 11:00+00'; --> by ?[31myyyy
DROP ROLE regress_claims_other;
DROP ROLE regress_claimer;
DELETE FROM advisory._claims;
