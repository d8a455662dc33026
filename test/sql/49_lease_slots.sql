-- Editions: both.
-- Slots that outlive a session, and the longest hold: what each function returns, and wrong
-- arguments. (Sessions that compete are for script tests.)
\pset format unaligned \pset tuples_only on
\set SHOW_CONTEXT never
SET application_name = '';
CREATE VIEW pg_temp.shown AS
    SELECT namespace, name, slot, token > 0 AS token, state, ttl, expires_at - renewed_at AS lasts,
           max_hold, renewals
    FROM advisory.leases
    ORDER BY name, slot;

---- Take

SELECT slot, token, token > 0 AS token_is_new, expires_at > now() AS later,
       remaining BETWEEN '59 min' AND '1 h' AS remaining
    FROM advisory.lease_slot('slots', 'a', 2, '1h') \gset a_
SELECT :'a_slot' AS slot, :'a_token_is_new' AS token, :'a_later' AS later,
       :'a_remaining' AS remaining; --> 1|t|t|t
SELECT slot, token > :a_token AS greater
    FROM advisory.try_lease_slot('slots', 'a', 2, '2h', owner => 'me'); --> 2|t
SELECT * FROM advisory.try_lease_slot('slots', 'a', 2, '1h'); --> |||
SELECT * FROM advisory.try_lease_slot('slots', 'a', 2, '1h', '10ms'); --> |||
-- The extension warns that others gave another number.
SET client_min_messages = error;
SELECT slot FROM advisory.lease_slot('slots', 'a', 3, '1h'); --> 3
RESET client_min_messages;
SELECT slot FROM advisory.lease_slot('slots', 42, 1, '1h'); --> 1
SELECT slot FROM advisory.lease_slot('slots', '00000000-0000-0000-0000-000000000001'::uuid, 1,
    '1h'); --> 1
SELECT * FROM pg_temp.shown;
--> slots|00000000-0000-0000-0000-000000000001|1|t|held|@ 1 hour|@ 1 hour||0
--> slots|42|1|t|held|@ 1 hour|@ 1 hour||0
--> slots|a|1|t|held|@ 1 hour|@ 1 hour||0
--> slots|a|2|t|held|@ 2 hours|@ 2 hours||0
--> slots|a|3|t|held|@ 1 hour|@ 1 hour||0
\set VERBOSITY terse
SELECT * FROM advisory.lease_slot('slots', 'a', 3, '1h', '0');
--> ERROR:  could not obtain a slot of lease "slots/a" without waiting
SELECT * FROM advisory.lease_slot('slots', 'a', 3, '1h', '10ms');
--> ERROR:  could not obtain a slot of lease "slots/a" within 10 ms
CALL advisory.await_lease_slot('slots', 'a', 3, '1h', '10ms');
--> ERROR:  could not obtain a slot of lease "slots/a" within 10 ms
\set VERBOSITY default

---- What is held

SELECT advisory.leased_slots('slots', 'a'), advisory.leased_slots('slots', 42),
       advisory.leased_slots('slots', 'never taken'), advisory.is_leased('slots', 'a'); --> 3|1|0|f
SELECT token AS lease_token FROM advisory.lease('slots', 'a', '1h', lock_delay => '1h') \gset
SELECT advisory.is_leased('slots', 'a'), advisory.is_leased('slots', 42),
       advisory.is_leased('slots', '00000000-0000-0000-0000-000000000001'::uuid); --> t|f|f
SELECT advisory.renew_lease('slots', 'a', :lease_token, '1 us') IS NOT NULL AS renewed; --> t
SELECT pg_sleep(0.001);
-->
SELECT advisory.is_leased('slots', 'a') AS in_lock_delay; --> f
SELECT advisory.break_lease('slots', 'a'), advisory.leased_slots('slots', 'a'); --> t|3

---- Renew, check, end

SELECT advisory.renew_lease('slots', 'a', :a_token) > now() AS renewed,
       advisory.renew_lease('slots', 'a', :a_token, '2h') - now() > '119min' AS with_another_ttl,
       advisory.check_lease('slots', 'a', :a_token) AS checked; --> t|t|t
SELECT ttl, renewals FROM pg_temp.shown WHERE name = 'a' AND slot = 1; --> @ 2 hours|2
SELECT advisory.end_lease('slots', 'a', :a_token),
       advisory.end_lease('slots', 'a', :a_token) AS again; --> t|f
SELECT advisory.renew_lease('slots', 'a', :a_token) AS lost; -->
SELECT advisory.check_lease('slots', 'a', 1);
--> ERROR:  lease "slots/a" with token 1 is lost
--> DETAIL:  The lease was ended, or it expired and was taken over, or it belongs to another role.
SELECT advisory.leased_slots('slots', 'a'); --> 2
-- The lowest one that is free.
SELECT slot FROM advisory.lease_slot('slots', 'a', 3, '1h'); --> 1
SELECT advisory.break_lease('slots', 'a', token), slot FROM advisory.leases WHERE name = 'a'
    ORDER BY slot;
--> t|1
--> t|2
--> t|3
SELECT advisory.leased_slots('slots', 'a'), advisory.break_lease('slots', 'a'); --> 0|f

---- The longest hold

SELECT token AS held_token FROM advisory.lease('slots', 'held', '1h', max_hold => '10 min') \gset
SELECT ttl, lasts, max_hold FROM pg_temp.shown WHERE name = 'held';
--> @ 10 mins|@ 10 mins|@ 10 mins
SELECT advisory.renew_lease('slots', 'held', :held_token, '1h') = acquired_at + max_hold AS renewed
    FROM advisory.leases WHERE name = 'held'; --> t
-- So a restart or a failover, which gives the whole TTL again, gives no more than was left.
SELECT ttl = lasts, ttl <= max_hold FROM pg_temp.shown WHERE name = 'held'; --> t|t
SELECT slot FROM advisory.lease_slot('slots', 'held', 1, '1 min', max_hold => '366 days'); --> 1
SELECT lasts, max_hold FROM pg_temp.shown WHERE name = 'held' AND slot = 1;
--> @ 1 min|@ 8784 hours

---- Wrong arguments

SELECT advisory.lease_slot(NULL, 'a', 1, '1h'); --> ERROR:  namespace must not be null
SELECT advisory.lease_slot('slots', '', 1, '1h'); --> ERROR:  name must not be empty
SELECT advisory.lease_slot('slots', 'x', NULL, '1h'); --> ERROR:  slots must not be null
SELECT advisory.lease_slot('slots', 'x', 0, '1h'); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.lease_slot('slots', 'x', 16001, '1h'); --> ERROR:  slots must be between 1 and 16000
SELECT advisory.lease_slot('slots', 'x', 1, NULL); --> ERROR:  ttl must not be null
SELECT advisory.lease_slot('slots', 'x', 1, '1h', '-1s'); --> ERROR:  timeout must not be negative
SELECT advisory.lease_slot('slots', 'x', 1, '1h', owner => ''); --> ERROR:  owner must not be empty
SELECT advisory.lease('slots', 'x', '1h', max_hold => '0');
--> ERROR:  max_hold must be greater than zero
SELECT advisory.lease_slot('slots', 'x', 1, '1h', max_hold => '-1s');
--> ERROR:  max_hold must be greater than zero
SELECT advisory.lease('slots', 'x', '1h', max_hold => '1 month');
--> ERROR:  max_hold must not have months or years
--> DETAIL:  Months and years differ in length.
--> HINT:  Use days or smaller units.
SELECT advisory.lease_slot('slots', 'x', 1, '1h', max_hold => '367 days');
--> ERROR:  max_hold is out of range
--> DETAIL:  It can be at most 366 days.
--> HINT:  A number without a unit counts seconds. Pass the length with its unit, such as '1 hour'.
SELECT advisory.is_leased('slots', NULL); --> ERROR:  name must not be null
SELECT advisory.leased_slots(NULL, 'a'); --> ERROR:  namespace must not be null
SELECT advisory.is_leased('slots', repeat('x', 1025));
--> ERROR:  name of a lease is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.leased_slots(repeat('x', 1025), 'a');
--> ERROR:  namespace of a lease is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT advisory.break_lease('slots', repeat('x', 1025));
--> ERROR:  name of a lease is too long
--> DETAIL:  It can have at most 1024 bytes.
SELECT slot FROM advisory.lease_slot('slots', 'most', 16000, '366 days'); --> 1
SELECT advisory.break_lease('slots', name, token) FROM advisory.leases WHERE namespace = 'slots';
--> t
--> t
--> t
--> t
--> t
