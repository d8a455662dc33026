#!/usr/bin/env perl
# A question about one lock costs the same however many other locks there are: is_locked(), holders(), and the DETAIL of a
# lock() or acquire() that fails look at that lock, or at that semaphore's slots, and at nothing else. Of several processor
# times the shortest counts, because other programs disturb the processor's caches.
# Runs alone: it compares the times of short calls.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use List::Util qw(min);
use Test::More;

# ADVISORY_EXT_LOCKS=200000 for a bench.
use constant {
    LOCKS  => $ENV{ADVISORY_EXT_LOCKS} // 100_000,
    ROUNDS => 8,
    CALLS  => 100,
    MOST   => 2,                                                # times as much beside the others; 1.5 on a quiet machine
};

my $server = own_server('max_locks_per_transaction=' . int(LOCKS / 50), 'max_connections=40');
my ($look, $holder, $waiter, $many) = map { session(server => $server) } 1 .. 4;
$look->run('CREATE EXTENSION advisory_ext');
$holder->run(q(SELECT advisory.lock('look', 'taken')), q(SELECT advisory.acquire('look', 'slots', 3) FROM generate_series(1, 3)));
# A chain: who asks for this waits for one that itself waits.
$waiter->run(q(SELECT advisory.lock('look', 'chained')));
$waiter->start(q(SELECT advisory.lock('look', 'taken')));
waits($look, $waiter);

# Calls it, with the error that it may end in.
$look->run(q{
    CREATE FUNCTION calls(call text, calls integer) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1 .. calls LOOP
            BEGIN
                EXECUTE call;
            EXCEPTION WHEN lock_not_available THEN
            END;
        END LOOP;
    END $$});

my %call = (
    'is_locked()'                    => q(SELECT advisory.is_locked('look', 'taken')),
    'is_locked() of a free one'      => q(SELECT advisory.is_locked('look', 'free')),
    'holders()'                      => q(SELECT * FROM advisory.holders('look', 'taken')),
    'lock() without waiting'         => q(SELECT advisory.lock('look', 'taken', '0')),
    'lock() behind a chain'          => q(SELECT advisory.lock('look', 'chained', '0')),
    'acquire() without waiting'      => q(SELECT advisory.acquire('look', 'slots', 3, '0')),
);
my $measure = sub {
    my ($times, $what) = @_;
    for my $call (sort keys %call) {
        push @{ $times->{$call} }, 1000 * processor_time($look, sub { $look->run("SELECT calls(\$call\$$call{$call}\$call\$, @{[CALLS]})") }) / CALLS;
    }
};

my (%alone, %beside);
$measure->({});
for (1 .. ROUNDS) {
    $measure->(\%alone);
    $many->run('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . LOCKS . ') i');
    $measure->(\%beside);
    $many->run('SELECT pg_advisory_unlock_all()');
}
for my $call (sort keys %call) {
    my ($alone, $beside) = (min(@{ $alone{$call} }), min(@{ $beside{$call} }));
    cmp_ok($beside, '<', MOST * $alone, "$call costs the same beside @{[LOCKS]} other locks")
        and note sprintf '%s: %.3f and %.3f ms, %.2f times as much', $call, $alone, $beside, $beside / $alone;
}

done_testing;
