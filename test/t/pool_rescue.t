#!/usr/bin/env perl
# What doc/pressure.md says about a full lock table: new connections fail, but a superuser's open
# session finds out which session fills the table, and ends it.
use AdvisoryTest;

use constant MORE_THAN_FITS => 1_000_000;

my $server = own_server('max_locks_per_transaction=10', 'max_connections=20');
session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $open = session(server => $server);
my $hog = session(server => $server);
$hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
        . ') AS i', '53200', 'the lock table is full');

ok(!eval { session(server => $server); 1 }, 'a new connection fails');
$open->shows('SELECT status FROM advisory.pressure', 'critical', 'the open session reads pressure');
is($open->value('SELECT pid FROM advisory.pressure_by_backend LIMIT 1'), $hog->pid,
    'and finds the session that fills the table');
$open->shows('SELECT pg_terminate_backend(' . $hog->pid . ')', 1, 'and ends it');
wait_until('the table is empty again',
    sub { $open->value('SELECT status FROM advisory.pressure') eq 'ok' });
ok(eval { session(server => $server); 1 }, 'new connections work again');
done_testing();
