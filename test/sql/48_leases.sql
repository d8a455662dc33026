-- Editions: both.
-- Leases: what each function returns, and wrong arguments. (49_leases_extension and the test leases
-- of the portable edition have who sees what; sessions that compete are for script tests.)
\pset format unaligned \pset tuples_only on
SET application_name = '';
CREATE VIEW pg_temp.shown AS
    SELECT namespace, name, owner, token > 0 AS token, state, ttl, expires_at - renewed_at AS lasts,
           renewals FROM advisory.leases ORDER BY name;

---- Take, renew, check, end

SELECT token, expires_at, token > 0 AS token_is_new, expires_at > now() AS later
    FROM advisory.lease('leases', 'a', '1h') \gset a_
SELECT :'a_token_is_new' AS token, :'a_later' AS later; --> t|t
SELECT token > 0 AS by_id FROM advisory.lease('leases', 42, '1h', owner => 'me'); --> t
SELECT token > 0 AS by_uuid FROM advisory.try_lease('leases',
    '00000000-0000-0000-0000-000000000001'::uuid, '2h', lock_delay => '10s'); --> t
SELECT namespace, name, replace(owner, session_user, 'ROLE') AS owner, token, state, ttl, lasts,
       renewals FROM pg_temp.shown;
--> leases|00000000-0000-0000-0000-000000000001|ROLE|t|held|@ 2 hours|@ 2 hours|0
--> leases|42|me|t|held|@ 1 hour|@ 1 hour|0
--> leases|a|ROLE|t|held|@ 1 hour|@ 1 hour|0
-- Not again, by whomever.
SELECT * FROM advisory.try_lease('leases', 'a', '1h'); --> |
SELECT * FROM advisory.try_lease('leases', 'a', '1h', '10ms'); --> |
\set VERBOSITY terse
SELECT * FROM advisory.lease('leases', 'a', '1h', '0');
--> ERROR:  could not obtain lease "leases/a" without waiting
SELECT * FROM advisory.lease('leases', 'a', '1h', '10ms');
--> ERROR:  could not obtain lease "leases/a" within 10 ms
CALL advisory.await_lease('leases', 'a', '1h', '10ms');
--> ERROR:  could not obtain lease "leases/a" within 10 ms
SET lock_timeout = '10ms';
SELECT * FROM advisory.lease('leases', 'a', '1h');
--> ERROR:  could not obtain lease "leases/a" within lock_timeout of 10 ms
SELECT * FROM advisory.try_lease('leases', 'a', '1h', NULL); --> |
RESET lock_timeout;
\set VERBOSITY default
SELECT advisory.renew_lease('leases', 'a', :a_token) > :'a_expires_at' AS later,
       advisory.renew_lease('leases', 'a', :a_token, '2h') - now() > '119min' AS with_another_ttl;
--> t|t
SELECT advisory.check_lease('leases', 'a', :a_token), advisory.check_lease('leases', 42, token)
    FROM advisory.leases WHERE name = '42'; --> t|t
SELECT ttl, lasts, renewals FROM pg_temp.shown WHERE name = 'a'; --> @ 2 hours|@ 2 hours|2
-- By another token: lost.
SELECT advisory.renew_lease('leases', 'a', 1) AS renewed,
       advisory.end_lease('leases', 'a', 1) AS ended; --> |f
SELECT advisory.check_lease('leases', 'a', 1);
--> ERROR:  lease "leases/a" with token 1 is lost
--> DETAIL:  The lease was ended, or it expired and was taken over, or it belongs to another role.
SELECT advisory.check_lease('leases', 'never taken', 1);
--> ERROR:  lease "leases/never taken" with token 1 is lost
--> DETAIL:  The lease was ended, or it expired and was taken over, or it belongs to another role.
SELECT advisory.end_lease('leases', 'a', :a_token),
       advisory.end_lease('leases', 'a', :a_token) AS again; --> t|f
SELECT advisory.renew_lease('leases', 'a', :a_token) AS of_one_that_was_ended; -->
-- The lock of the same name is another thing.
SELECT advisory.lock('leases', 'a'), (advisory.lease('leases', 'a', '1h')).token > 0 AS lease,
       advisory.holds('leases', 'a'); --> t|t|t
SELECT advisory.unlock('leases', 'a'); --> t
SELECT advisory.break_lease('leases', 'a'), advisory.break_lease('leases', 'never taken') AS none,
       advisory.break_lease('leases', 42) AS by_id; --> t|f|t

---- A day has 24 hours, also where a clock is set

SET timezone = 'Europe/Berlin';
SELECT token AS days_token
    FROM advisory.lease('leases', 'days', '300 days', lock_delay => '1 day') \gset
SELECT ttl, extract(epoch FROM expires_at - acquired_at)::int / 3600 AS hours FROM advisory.leases
    WHERE name = 'days'; --> @ 7200 hours|7200
SELECT extract(epoch FROM
    advisory.renew_lease('leases', 'days', :days_token, '200 days') - now())::int / 3600 AS hours;
--> 4800
SELECT extract(epoch FROM
    advisory.renew_lease('leases', 'days', :days_token) - now())::int / 3600 AS hours; --> 4800
SELECT advisory.end_lease('leases', 'days', :days_token); --> t
SELECT token > 0 AS longest
    FROM advisory.lease('leases', 'days', '366 days', lock_delay => '366 days') AS t; --> t
SELECT advisory.break_lease('leases', 'days'); --> t
RESET timezone;

---- In transactions

BEGIN;
SELECT token > 0 AS token FROM advisory.lease('leases', 'rolled back', '1h'); --> t
SELECT token FROM advisory.try_lease('leases', 'rolled back', '1h'); -->
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT token > 0 AS token FROM advisory.lease('leases', 'rolled back', '1h'); --> t
ROLLBACK TO s;
SELECT token > 0 AS token FROM advisory.lease('leases', 'committed', '1h', '1s'); --> t
COMMIT;
SELECT name FROM pg_temp.shown WHERE name LIKE '%ed'; --> committed
BEGIN READ ONLY;
SAVEPOINT s;
SELECT advisory.check_lease('leases', 'committed', token) FROM advisory.leases
    WHERE name = 'committed';
--extension> t
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK TO s;
SELECT * FROM advisory.lease('leases', 'x', '1h');
--extension> ERROR:  cannot execute advisory.lease() in a read-only transaction
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK TO s;
SELECT * FROM advisory.try_lease('leases', 'x', '1h');
--extension> ERROR:  cannot execute advisory.try_lease() in a read-only transaction
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK TO s;
SELECT advisory.renew_lease('leases', 'x', 1);
--extension> ERROR:  cannot execute advisory.renew_lease() in a read-only transaction
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK TO s;
SELECT advisory.end_lease('leases', 'x', 1);
--extension> ERROR:  cannot execute advisory.end_lease() in a read-only transaction
--portable> ERROR:  cannot execute INSERT in a read-only transaction
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT token > 0 AS repeatable_read FROM advisory.lease('leases', 'level', '1h'); --> t
COMMIT;
DO $$ DECLARE taken record; BEGIN
    SELECT * INTO taken FROM advisory.try_lease('leases', 'in PL/pgSQL', '1h');
    RAISE NOTICE 'taken: %', taken.token > 0;
EXCEPTION WHEN division_by_zero THEN NULL; END $$; --> NOTICE:  taken: t

---- Wrong arguments

SELECT advisory.lease(NULL, 'a', '1h'); --> ERROR:  namespace must not be null
SELECT advisory.lease('leases', '', '1h'); --> ERROR:  name must not be empty
SELECT advisory.lease('leases', 'x', NULL); --> ERROR:  ttl must not be null
SELECT advisory.lease('leases', 'x', '0'); --> ERROR:  ttl must be greater than zero
SELECT advisory.lease('leases', 'x', '-1s'); --> ERROR:  ttl must be greater than zero
SELECT advisory.lease('leases', 'x', '1h', '-1s'); --> ERROR:  timeout must not be negative
SELECT advisory.lease('leases', 'x', '1h', owner => ''); --> ERROR:  owner must not be empty
SELECT advisory.lease('leases', 'x', '1h', lock_delay => NULL);
--> ERROR:  lock_delay must not be null
SELECT advisory.lease('leases', 'x', '1h', lock_delay => '-1s');
--> ERROR:  lock_delay must not be negative
SELECT advisory.lease('leases', 'x', '1 month');
--> ERROR:  ttl must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Use days or smaller units.
SELECT advisory.lease('leases', 'x', '1h', lock_delay => '1 month -30 days');
--> ERROR:  lock_delay must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Use days or smaller units.
SELECT advisory.lease('leases', 'x', '367 days');
--> ERROR:  ttl is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.lease('leases', 'x', '1h', lock_delay => '367 days');
--> ERROR:  lock_delay is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.lease('leases', 'x', '2147483647 days');
--> ERROR:  ttl is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.lease('leases', repeat('x', 1025), '1h');
--> ERROR:  name of a lease is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.lease(repeat('x', 1025), 'x', '1h');
--> ERROR:  namespace of a lease is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.lease('leases', 'x', '1h', owner => repeat('x', 257));
--> ERROR:  owner of a lease is too long
--> DETAIL:  It can have at most 256 bytes.
SELECT advisory.check_lease('leases', repeat('x', 1025), 1);
--> ERROR:  name of a lease is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.renew_lease('leases', 'x', NULL); --> ERROR:  token must not be null
SELECT advisory.renew_lease('leases', 'x', 1, '0'); --> ERROR:  ttl must be greater than zero
SELECT advisory.renew_lease('leases', 'x', 1, '1 year');
--> ERROR:  ttl must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Use days or smaller units.
SELECT advisory.end_lease('leases', 'x', NULL); --> ERROR:  token must not be null
SELECT advisory.check_lease('leases', 'x', 0); --> ERROR:  token must be greater than zero
SELECT advisory.break_lease('leases', NULL::text); --> ERROR:  name must not be null
SELECT count(*) AS left_over FROM advisory.locks WHERE kind = 'lease'; --> 0

---- The default owner

SET application_name = 'a program';
SELECT token > 0 AS token FROM advisory.lease('leases', 'default owner', '1h'); --> t
SET application_name = '';
SELECT replace(owner, current_user, 'ROLE') AS owner FROM advisory.leases
    WHERE name = 'default owner'; --> ROLE@a program

---- In one transaction a lease is taken once

\set VERBOSITY terse
SELECT (advisory.lease('leases', 'twice', '1h')).*;
--> ERROR:  this transaction has already taken or ended lease "leases/twice"
BEGIN;
SELECT advisory.end_lease('leases', 'default owner', token) FROM advisory.leases
    WHERE name = 'default owner'; --> t
SELECT token > 0 AS again FROM advisory.lease('leases', 'default owner', '1h'); --> t
SELECT * FROM advisory.try_lease('leases', 'default owner', '1h', '10s');
--> ERROR:  this transaction has already taken or ended lease "leases/default owner"
ROLLBACK;
\set VERBOSITY default


---- Tokens above others

SELECT token AS above FROM advisory.lease('leases', 'above', '1h') \gset
SELECT advisory.tokens_above(:above + (1::bigint << 51)); -->
SELECT token > :above + (1::bigint << 51) AS greater FROM advisory.lease('leases', 'later', '1h');
--> t
SELECT advisory.tokens_above(NULL); --> ERROR:  token must not be null
SELECT advisory.tokens_above(0); --> ERROR:  token must be greater than zero
SELECT advisory.tokens_above(9223372036854775807);
--> ERROR:  token 9223372036854775807 is too large
DELETE FROM advisory._leases;
