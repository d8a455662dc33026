#!/usr/bin/env perl
# Fills the lock tables of servers of several sizes until they refuse, and compares that with what
# advisory.pressure had estimated before: at most 1 percent too much and 3 percent too little, in
# small pools 5 percent, and never too much in very small ones. (`make bench` does it for more
# servers.)
use AdvisoryTest;
use Config;
use PoolFill;

# Limits by the number of guaranteed locks. In small pools chance makes a difference of some
# percent; with the smaller entries of 32-bit servers, pools are small for longer.
use constant { EXACT_FROM => 1200, LARGE_FROM => $Config{ptrsize} == 4 ? 5000 : 2500,
    TOO_MUCH => 0.01, TOO_LITTLE => 0.03, SMALL_TOLERANCE => 0.05 };

# max_locks_per_transaction/max_connections/max_prepared_transactions
use constant { FEW => [qw(64/100/0 64/20/0 20/50/2)],
    SOME => [qw(64/100/0 64/20/0 128/60/20 20/50/2 32/50/10 10/20/0 10/40/0)] };

sub off ($estimate, $actual) { return sprintf '%+.1f %%', ($estimate / $actual - 1) * 100 }

sub try_pool ($pool) {
    my ($server, $look) = pool_server($pool);
    my $fill = fill_pool($server, $look);
    my ($before, $after, $actual, $usual) = @{$fill}{qw(before after filled usual)};
    my $estimate = $before->{headroom};
    my $error = $estimate / $actual - 1;
    my $guaranteed = $before->{locks_guaranteed};
    my $too_much = $guaranteed < EXACT_FROM ? 0 : $guaranteed < LARGE_FROM
        ? SMALL_TOLERANCE : TOO_MUCH;
    my $too_little = $guaranteed < LARGE_FROM ? SMALL_TOLERANCE : TOO_LITTLE;

    diag(sprintf '%-12s guaranteed %6d, estimated %6d (%s), usual formula %6d (%s), filled %6d',
        $pool, $guaranteed,
        $estimate, off($estimate, $actual), $usual, off($usual, $actual), $actual);
    ok($error <= $too_much, "$pool: not too much was estimated");
    ok($guaranteed < EXACT_FROM || $error >= -$too_little, "$pool: nor too little");
    ok($actual >= $guaranteed, "$pool: what is guaranteed fits");
    is($after->{locks_used} - $before->{locks_used}, $actual, "$pool: all are counted");
    is($after->{status}, 'critical', "$pool: and it is critical");
    ok($after->{percent_used} > 97, "$pool: it is full");
    ok($before->{exact} && $after->{exact}, "$pool: and their number is exact");
    ok($after->{recommended_max_locks_per_transaction} > (split m{/}, $pool)[0],
        "$pool: more is recommended");
    $look->disconnect;
    $server->stop;

    return if $pool ne '64/100/0' && $pool ne '10/20/0';

    # With the recommended setting this use would have the status ok.
    ($server, $look) =
        pool_server($pool =~ s{^\d+}{$after->{recommended_max_locks_per_transaction}}r);
    $look->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $actual) AS i");
    $look->shows('SELECT status FROM advisory.pressure', 'ok',
        "$pool: with what was recommended it is ok");
    $look->disconnect;
    $server->stop;
    return;
}

# On servers of other versions fewer pools are tried.
my $version = session()->value('SHOW server_version_num');
try_pool($_) for @{ $version < 160000 ? SOME : FEW };
done_testing();
