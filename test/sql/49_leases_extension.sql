-- Leases: who sees what, and who may do what. (test/portable/leases.t has that of the portable
-- edition.)
\pset format unaligned \pset tuples_only on
SET application_name = '';
SELECT token > 0 AS token FROM advisory.lease('leases', 'another', '2h'); --> t

---- Privileges: as names of locks; who took a lease, renews, checks and ends it; nobody the table

CREATE ROLE regress_lease_a;
CREATE ROLE regress_lease_b;
SET ROLE regress_lease_a;
SELECT token > 0 AS token FROM advisory.lease('leases', 'of a', '1h', owner => 'the owner'); --> t
SELECT namespace, name, owner FROM advisory.leases WHERE token > 0; --> leases|of a|the owner
RESET ROLE;
SET ROLE regress_lease_b;
SELECT DISTINCT namespace, name, owner, token IS NULL AS hidden FROM advisory.leases;
--> <insufficient privilege>|<insufficient privilege>|<insufficient privilege>|t
\set VERBOSITY terse
SELECT advisory.lease('leases', 'of a', '1h', '0');
--> ERROR:  could not obtain lease "leases/of a" without waiting
\set VERBOSITY default
SELECT DISTINCT lock, left(who, 9) FROM advisory.activity WHERE mode = 'lease';
--> lease <insufficient privilege>|<insuffic
SELECT DISTINCT key FROM advisory_internal.lease_rows();
--> ERROR:  permission denied for schema advisory_internal
--> LINE 1: SELECT DISTINCT key FROM advisory_internal.lease_rows();
-->                                  ^
SELECT * FROM advisory._leases; --> ERROR:  permission denied for table _leases
DELETE FROM advisory._leases; --> ERROR:  permission denied for table _leases
SELECT advisory.break_lease('leases', 'of a');
--> ERROR:  permission denied for function break_lease
RESET ROLE;
SELECT lock, who, state, mode FROM advisory.activity WHERE lock = 'lease leases/of a';
--> lease leases/of a|the owner|held|lease
SELECT token AS a_token FROM advisory.leases WHERE name = 'of a' \gset
GRANT pg_read_all_stats TO regress_lease_b;
SET ROLE regress_lease_b;
SELECT owner, token FROM advisory.leases WHERE name = 'of a'; --> the owner|
SELECT advisory.renew_lease('leases', 'of a', :a_token),
       advisory.end_lease('leases', 'of a', :a_token); --> |f
\set VERBOSITY sqlstate
SELECT advisory.check_lease('leases', 'of a', :a_token); --> ERROR:  55000
\set VERBOSITY default
RESET ROLE;
REVOKE pg_read_all_stats FROM regress_lease_b;
GRANT regress_lease_a TO regress_lease_b;
ALTER ROLE regress_lease_a RENAME TO regress_lease_c;
SET ROLE regress_lease_b;
SELECT owner, token = :a_token AS token FROM advisory.leases WHERE name = 'of a'; --> the owner|t
SELECT advisory.renew_lease('leases', 'of a', :a_token) > now() AS renewed,
       advisory.check_lease('leases', 'of a', :a_token),
       advisory.end_lease('leases', 'of a', :a_token); --> t|t|t
SELECT token > 0 AS token FROM advisory.lease('leases', 'of b', '1h'); --> t
RESET ROLE;
SELECT token AS b_token FROM advisory.leases WHERE name = 'of b' \gset
ALTER ROLE regress_lease_c RENAME TO regress_lease_a;
-- A new role with the name of a dropped one is another role.
DROP ROLE regress_lease_b;
CREATE ROLE regress_lease_b;
SET ROLE regress_lease_b;
SELECT namespace, name, owner, token FROM advisory.leases WHERE state = 'held' AND ttl = '1h'
    GROUP BY 1, 2, 3, 4;
--> <insufficient privilege>|<insufficient privilege>|<insufficient privilege>|
SELECT advisory.renew_lease('leases', 'of b', :b_token),
       advisory.end_lease('leases', 'of b', :b_token); --> |f
RESET ROLE;
SELECT advisory.end_lease('leases', 'of b', :b_token) AS by_a_superuser; --> t
-- The owner of the database may break leases, and grants that.
GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) TO regress_lease_b;
SET ROLE regress_lease_a;
SELECT token > 0 AS token FROM advisory.lease('leases', 'of a', '1h', lock_delay => '366 days');
--> t
SET ROLE regress_lease_b;
SELECT advisory.break_lease('leases', 'of a'), advisory.break_lease('leases', 'of a') AS again;
--> t|f
SELECT token > 0 AS token FROM advisory.try_lease('leases', 'of a', '1h'); --> t
RESET ROLE;
REVOKE EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) FROM regress_lease_b;
DELETE FROM advisory._leases;
DROP ROLE regress_lease_a, regress_lease_b;
