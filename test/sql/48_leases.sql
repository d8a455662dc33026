-- Leases: what each function returns, wrong arguments, and who sees what. Sessions that compete are for script tests.
SET application_name = '';
CREATE VIEW pg_temp.shown AS
    SELECT namespace, name, owner, token > 0 AS token, state, ttl, expires_at - renewed_at AS lasts, renewals FROM advisory.leases ORDER BY name;

---- Take, renew, check, end

SELECT token, expires_at, token > 0 AS token_is_new, expires_at > now() AS later FROM advisory.lease('leases', 'a', '1h') \gset a_
SELECT :'a_token_is_new' AS token, :'a_later' AS later;
SELECT token > 0 AS by_id FROM advisory.lease('leases', 42, '1h', owner => 'me');
SELECT token > 0 AS by_uuid FROM advisory.try_lease('leases', '00000000-0000-0000-0000-000000000001'::uuid, '2h', lock_delay => '10s');
SELECT namespace, name, replace(owner, session_user, 'ROLE') AS owner, token, state, ttl, lasts, renewals FROM pg_temp.shown;
-- Not again, by whomever.
SELECT * FROM advisory.try_lease('leases', 'a', '1h');
SELECT * FROM advisory.try_lease('leases', 'a', '1h', '10ms');
\set VERBOSITY terse
SELECT * FROM advisory.lease('leases', 'a', '1h', '0');
SELECT * FROM advisory.lease('leases', 'a', '1h', '10ms');
CALL advisory.await_lease('leases', 'a', '1h', '10ms');
SET lock_timeout = '10ms';
SELECT * FROM advisory.lease('leases', 'a', '1h');
SELECT * FROM advisory.try_lease('leases', 'a', '1h', NULL);
RESET lock_timeout;
\set VERBOSITY default
SELECT advisory.renew_lease('leases', 'a', :a_token) > :'a_expires_at' AS later, advisory.renew_lease('leases', 'a', :a_token, '2h') - now() > '119min' AS with_another_ttl;
SELECT advisory.check_lease('leases', 'a', :a_token), advisory.check_lease('leases', 42, token) FROM advisory.leases WHERE name = '42';
SELECT ttl, lasts, renewals FROM pg_temp.shown WHERE name = 'a';
-- By another token: lost.
SELECT advisory.renew_lease('leases', 'a', 1) AS renewed, advisory.end_lease('leases', 'a', 1) AS ended;
SELECT advisory.check_lease('leases', 'a', 1);
SELECT advisory.check_lease('leases', 'never taken', 1);
SELECT advisory.end_lease('leases', 'a', :a_token), advisory.end_lease('leases', 'a', :a_token) AS again;
SELECT advisory.renew_lease('leases', 'a', :a_token) AS of_one_that_was_ended;
-- The lock of the same name is another thing.
SELECT advisory.lock('leases', 'a'), (advisory.lease('leases', 'a', '1h')).token > 0 AS lease, advisory.unlock('leases', 'a');
SELECT advisory.break_lease('leases', 'a'), advisory.break_lease('leases', 'never taken') AS none, advisory.break_lease('leases', 42) AS by_id;

---- A day has 24 hours, also where a clock is set

SET timezone = 'Europe/Berlin';
SELECT token AS days_token FROM advisory.lease('leases', 'days', '300 days', lock_delay => '1 day') \gset
SELECT ttl, extract(epoch FROM expires_at - acquired_at)::int / 3600 AS hours FROM advisory.leases WHERE name = 'days';
SELECT extract(epoch FROM advisory.renew_lease('leases', 'days', :days_token, '200 days') - now())::int / 3600 AS hours;
SELECT extract(epoch FROM advisory.renew_lease('leases', 'days', :days_token) - now())::int / 3600 AS hours;
SELECT advisory.end_lease('leases', 'days', :days_token);
SELECT token > 0 AS longest FROM advisory.lease('leases', 'days', '366 days', lock_delay => '366 days') AS t;
SELECT advisory.break_lease('leases', 'days');
RESET timezone;

---- In transactions

BEGIN;
SELECT token > 0 AS token FROM advisory.lease('leases', 'rolled back', '1h');
SELECT token FROM advisory.try_lease('leases', 'rolled back', '1h');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT token > 0 AS token FROM advisory.lease('leases', 'rolled back', '1h');
ROLLBACK TO s;
SELECT token > 0 AS token FROM advisory.lease('leases', 'committed', '1h', '1s');
COMMIT;
SELECT name FROM pg_temp.shown WHERE name LIKE '%ed';
BEGIN READ ONLY;
SELECT advisory.check_lease('leases', 'committed', token) FROM advisory.leases WHERE name = 'committed';
SAVEPOINT s;
SELECT * FROM advisory.lease('leases', 'x', '1h');
ROLLBACK TO s;
SELECT * FROM advisory.try_lease('leases', 'x', '1h');
ROLLBACK TO s;
SELECT advisory.renew_lease('leases', 'x', 1);
ROLLBACK TO s;
SELECT advisory.end_lease('leases', 'x', 1);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT token > 0 AS repeatable_read FROM advisory.lease('leases', 'level', '1h');
COMMIT;
DO $$ DECLARE taken record; BEGIN
    SELECT * INTO taken FROM advisory.try_lease('leases', 'in PL/pgSQL', '1h');
    RAISE NOTICE 'taken: %', taken.token > 0;
EXCEPTION WHEN division_by_zero THEN NULL; END $$;

---- Wrong arguments

SELECT advisory.lease(NULL, 'a', '1h');
SELECT advisory.lease('leases', '', '1h');
SELECT advisory.lease('leases', 'x', NULL);
SELECT advisory.lease('leases', 'x', '0');
SELECT advisory.lease('leases', 'x', '-1s');
SELECT advisory.lease('leases', 'x', '1h', '-1s');
SELECT advisory.lease('leases', 'x', '1h', owner => '');
SELECT advisory.lease('leases', 'x', '1h', lock_delay => NULL);
SELECT advisory.lease('leases', 'x', '1h', lock_delay => '-1s');
SELECT advisory.lease('leases', 'x', '1 month');
SELECT advisory.lease('leases', 'x', '1h', lock_delay => '1 month -30 days');
SELECT advisory.lease('leases', 'x', '367 days');
SELECT advisory.lease('leases', 'x', '1h', lock_delay => '367 days');
SELECT advisory.lease('leases', 'x', '2147483647 days');
SELECT advisory.lease('leases', repeat('x', 1025), '1h');
SELECT advisory.lease(repeat('x', 1025), 'x', '1h');
SELECT advisory.lease('leases', 'x', '1h', owner => repeat('x', 257));
SELECT advisory.check_lease('leases', repeat('x', 1025), 1);
SELECT advisory.renew_lease('leases', 'x', NULL);
SELECT advisory.renew_lease('leases', 'x', 1, '0');
SELECT advisory.renew_lease('leases', 'x', 1, '1 year');
SELECT advisory.end_lease('leases', 'x', NULL);
SELECT advisory.check_lease('leases', 'x', 0);
SELECT advisory.break_lease('leases', NULL::text);
SELECT count(*) AS left_over FROM advisory.locks WHERE kind = 'lease';

---- The default owner

SET application_name = 'a program';
SELECT token > 0 AS token FROM advisory.lease('leases', 'default owner', '1h');
SET application_name = '';
SELECT replace(owner, current_user, 'ROLE') AS owner FROM advisory.leases WHERE name = 'default owner';

---- In one transaction a lease is taken once

\set VERBOSITY terse
SELECT (advisory.lease('leases', 'twice', '1h')).*;
BEGIN;
SELECT advisory.end_lease('leases', 'default owner', token) FROM advisory.leases WHERE name = 'default owner';
SELECT token > 0 AS again FROM advisory.lease('leases', 'default owner', '1h');
SELECT * FROM advisory.try_lease('leases', 'default owner', '1h', '10s');
ROLLBACK;
\set VERBOSITY default

---- Privileges: as names of locks; who took a lease, renews, checks and ends it; the table is for nobody

CREATE ROLE regress_lease_a;
CREATE ROLE regress_lease_b;
SET ROLE regress_lease_a;
SELECT token > 0 AS token FROM advisory.lease('leases', 'of a', '1h', owner => 'the owner');
SELECT namespace, name, owner FROM advisory.leases WHERE token > 0;
RESET ROLE;
SET ROLE regress_lease_b;
SELECT DISTINCT namespace, name, owner, token IS NULL AS hidden FROM advisory.leases;
\set VERBOSITY terse
SELECT advisory.lease('leases', 'of a', '1h', '0');
\set VERBOSITY default
SELECT DISTINCT lock, who FROM advisory.activity WHERE mode = 'lease';
SELECT DISTINCT key FROM advisory_internal.lease_rows();
SELECT * FROM advisory._leases;
DELETE FROM advisory._leases;
SELECT advisory.break_lease('leases', 'of a');
RESET ROLE;
SELECT lock, who, state, mode FROM advisory.activity WHERE lock = 'leases/of a';
SELECT token AS a_token FROM advisory.leases WHERE name = 'of a' \gset
GRANT pg_read_all_stats TO regress_lease_b;
SET ROLE regress_lease_b;
SELECT owner, token FROM advisory.leases WHERE name = 'of a';
SELECT advisory.renew_lease('leases', 'of a', :a_token), advisory.end_lease('leases', 'of a', :a_token);
\set VERBOSITY sqlstate
SELECT advisory.check_lease('leases', 'of a', :a_token);
\set VERBOSITY default
RESET ROLE;
REVOKE pg_read_all_stats FROM regress_lease_b;
GRANT regress_lease_a TO regress_lease_b;
ALTER ROLE regress_lease_a RENAME TO regress_lease_c;
SET ROLE regress_lease_b;
SELECT owner, token = :a_token AS token FROM advisory.leases WHERE name = 'of a';
SELECT advisory.renew_lease('leases', 'of a', :a_token) > now() AS renewed, advisory.check_lease('leases', 'of a', :a_token), advisory.end_lease('leases', 'of a', :a_token);
SELECT token > 0 AS token FROM advisory.lease('leases', 'of b', '1h');
RESET ROLE;
SELECT token AS b_token FROM advisory.leases WHERE name = 'of b' \gset
ALTER ROLE regress_lease_c RENAME TO regress_lease_a;
-- A new role with the name of a dropped one is another role.
DROP ROLE regress_lease_b;
CREATE ROLE regress_lease_b;
SET ROLE regress_lease_b;
SELECT namespace, name, owner, token FROM advisory.leases WHERE state = 'held' AND ttl = '1h' GROUP BY 1, 2, 3, 4;
SELECT advisory.renew_lease('leases', 'of b', :b_token), advisory.end_lease('leases', 'of b', :b_token);
RESET ROLE;
SELECT advisory.end_lease('leases', 'of b', :b_token) AS by_a_superuser;
-- The owner of the database may break leases, and grants that.
GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text) TO regress_lease_b;
SET ROLE regress_lease_a;
SELECT token > 0 AS token FROM advisory.lease('leases', 'of a', '1h', lock_delay => '366 days');
SET ROLE regress_lease_b;
SELECT advisory.break_lease('leases', 'of a'), advisory.break_lease('leases', 'of a') AS again;
SELECT token > 0 AS token FROM advisory.try_lease('leases', 'of a', '1h');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION advisory.break_lease(text, text) FROM regress_lease_b;
DELETE FROM advisory._leases;
DROP ROLE regress_lease_a, regress_lease_b;
