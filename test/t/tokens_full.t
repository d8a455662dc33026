#!/usr/bin/env perl
# A stale token is refused with its own error even while the server's lock table is full, when the
# session cannot find out whether its role may see the greater token.
use AdvisoryTest;

use constant { MORE_THAN_FITS => 1_000_000, TABLES => 200 };

my $server = own_server('max_locks_per_transaction=10', 'max_connections=20');
my $look = session(server => $server);
$look->run('CREATE EXTENSION advisory_ext', 'CREATE ROLE ordinary LOGIN',
    q(SELECT advisory.check_token('full', 'fence', 5)));
$look->run("CREATE TABLE t$_ ()", "GRANT SELECT ON t$_ TO PUBLIC") for 1 .. TABLES;

# This session has all locks that the call itself needs, and its own places for locks on tables (the
# fast path) are taken.
my $ordinary = session(server => $server, role => 'ordinary');
$ordinary->run('BEGIN', q(SELECT advisory.check_token('full', 'fence', 5)));
$ordinary->run("SELECT FROM t$_") for 1 .. TABLES / 2;
my $hog = session(server => $server);
$hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
    . ') AS i', '53200', 'the lock table is full');
is($ordinary->query('SAVEPOINT s')->{state} // '', '', 'the session goes on');
$ordinary->fails('SELECT FROM t' . TABLES, '53200', 'but can lock no other table');
$ordinary->run('ROLLBACK TO s', 'RELEASE s');
my $refused = $ordinary->fails(q(SELECT advisory.check_token('full', 'fence', 1)), '55000',
    'a stale token is refused');
is($refused->{detail}, 'A later holder has already used a greater token.',
    'and the greater one is not shown');

done_testing();
