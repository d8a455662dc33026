#!/usr/bin/env perl
# Sessions that take locks without the extension do not feel that advisory.pressure is read 100 times a second, with 100,000 locks
# held. They do feel the usual query, which keeps all partitions of the lock table locked while it copies them. The load runs alone,
# beside the one reader and beside the other in turn. Time in which it had no processor does not count, and the medians are compared.
# Runs alone: it compares the times of short calls.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

# MOST: times as long as alone. (Seen: 1.00 to 1.09, and 1.27 to 2.4 beside the usual query.)
use constant { LOCKS => 100_000, CALLS => 200_000, ROUNDS => 7, MOST => 1.2 };

# Room for all locks: the lock table of 19 does not grow.
my $server = own_server('max_locks_per_transaction=3072', 'max_connections=40', 'jit=off', 'autovacuum=off');
my ($look, $hog, $load, $reader) = map { session(server => $server) } 1 .. 4;
$look->run('CREATE EXTENSION advisory_ext');
$hog->run("SELECT count(advisory.lock('held', i)) FROM generate_series(1, @{[LOCKS]}) AS i");

# Takes a lock and releases it, again and again: each time two partitions of the lock table are locked for a moment.
my $LOAD = "DO \$\$ BEGIN FOR i IN 1 .. @{[CALLS]} LOOP PERFORM pg_advisory_lock(-i); PERFORM pg_advisory_unlock(-i); END LOOP; END \$\$";

# What the load takes beside a session that runs this 100 times a second, in seconds.
sub beside {
    my ($query) = @_;
    return undisturbed_time(sub { $load->run($LOAD) }, $load) if !$query;
    $reader->start("DO \$\$ DECLARE found record; BEGIN LOOP $query; PERFORM pg_sleep(0.01); END LOOP; END \$\$");
    wait_until('the reader reads', sub { $look->value(q(SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = ?), $reader->pid) });
    my $time = beside();
    $look->value('SELECT pg_cancel_backend(?)', $reader->pid);
    is($reader->finish->{state}, '57014', 'the reader was there until the end');
    return $time;
}

beside();
my (@alone, @pressure, @usual);
for (1 .. ROUNDS) {
    push @alone,    beside();
    push @pressure, beside('SELECT * INTO found FROM advisory.pressure');
    push @usual,    beside('SELECT count(*) INTO found FROM pg_locks');
}
my ($pressure, $usual) = map { median(@$_) / median(@alone) } \@pressure, \@usual;
cmp_ok($pressure, '<=', MOST, sprintf 'beside pressure the load takes %.2f times as long as alone (%.3f s)', $pressure, median(@alone));
cmp_ok($usual, '>', $pressure, sprintf 'beside the usual query it takes longer, %.2f times', $usual);
done_testing();
