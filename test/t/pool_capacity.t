#!/usr/bin/env perl
# Fills the lock tables of servers of several sizes until they refuse, and compares that with what advisory.pressure had
# estimated before: within 2 percent, and never too much where the pool is very small. Run by `make bench-pool` it says so for
# more servers, beside what the usual formula says.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

# Limits by the number of guaranteed locks. In the smallest pools that are to be exact, it can be 3 percent by chance.
use constant { EXACT_FROM => 1200, LARGE_FROM => 2500, TOLERANCE => 0.02, SMALL_TOLERANCE => 0.03 };

# max_locks_per_transaction/max_connections/max_prepared_transactions
my %POOLS = (
    few  => [qw(64/100/0 64/20/0 20/50/2)],
    some => [qw(64/100/0 64/20/0 128/60/20 20/50/2 32/50/10 10/20/0 10/40/0)],
    many => [qw(10/100/0 16/60/5 20/70/0 24/40/0 30/50/0 40/30/0 48/25/0 64/100/0 256/100/50 64/20/0 128/300/0 64/100/100 512/60/0 20/50/2 32/50/10 30/20/0 16/30/0 10/90/0 10/40/0 10/20/0 10/10/0)],
);

# In a session of its own, since a session-level lock survives the error.
my $FILL = <<'SQL';
DO $$
DECLARE
    filled bigint := 0;
BEGIN
    LOOP
        PERFORM pg_advisory_lock(filled);
        filled := filled + 1;
    END LOOP;
EXCEPTION WHEN out_of_memory THEN
    PERFORM set_config('pool.filled', filled::text, false);
END $$
SQL

# The formula that most articles give.
my $USUAL = q{SELECT current_setting('max_locks_per_transaction')::int
    * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int)};

# The row of advisory.pressure, by its columns' names.
sub pressure_of {
    my ($session) = @_;
    return $session->dbh->selectrow_hashref('SELECT * FROM advisory.pressure');
}

sub off { my ($estimate, $actual) = @_; return sprintf '%+.1f %%', ($estimate / $actual - 1) * 100 }

sub try_pool {
    my ($pool) = @_;
    my ($locks, $connections, $prepared) = split m{/}, $pool;
    my $server = own_server("max_locks_per_transaction=$locks", "max_connections=$connections", "max_prepared_transactions=$prepared");
    my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
    my $before = pressure_of($look);
    my $usual = $look->value($USUAL);
    my $hog = session(server => $server)->run($FILL);
    my $actual = $hog->value(q{SELECT current_setting('pool.filled')});
    my $after = pressure_of($look);
    my $estimate = $before->{headroom};
    my $error = $estimate / $actual - 1;
    my $tolerance = $before->{locks_guaranteed} < LARGE_FROM ? SMALL_TOLERANCE : TOLERANCE;

    diag(sprintf '%-12s guaranteed %6d, estimated %6d (%s), usual formula %6d (%s), filled %6d', $pool, $before->{locks_guaranteed},
        $estimate, off($estimate, $actual), $usual, off($usual, $actual), $actual);
    ok($error <= ($before->{locks_guaranteed} < EXACT_FROM ? 0 : $tolerance), "$pool: not too much was estimated");
    ok($before->{locks_guaranteed} < EXACT_FROM || $error >= -$tolerance, "$pool: nor too little");
    ok($actual >= $before->{locks_guaranteed}, "$pool: what is guaranteed fits");
    is($after->{locks_used} - $before->{locks_used}, $actual, "$pool: all are counted");
    is($after->{status}, 'critical', "$pool: and it is critical");
    ok($after->{percent_used} > 97, "$pool: it is full");
    ok($before->{exact} && $after->{exact}, "$pool: without counting one by one");
    ok($after->{recommended_max_locks_per_transaction} > $locks, "$pool: more is recommended");
    $_->disconnect for $hog, $look;
    $server->stop;

    return if $pool ne '64/100/0';

    # With the recommended setting this use would have the status ok.
    $server = own_server("max_locks_per_transaction=$after->{recommended_max_locks_per_transaction}", "max_connections=$connections",
        "max_prepared_transactions=$prepared");
    $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
    $look->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $actual) AS i");
    is($look->value('SELECT status FROM advisory.pressure'), 'ok', "$pool: with what was recommended it is ok");
    $look->disconnect;
    $server->stop;
    return;
}

# On servers of other versions fewer pools are tried.
my $version = session()->value('SHOW server_version_num');
try_pool($_) for @{ $POOLS{ $ENV{ADVISORY_EXT_POOLS} // ($version < 160000 ? 'some' : 'few') } };
done_testing();
