#!/usr/bin/env perl
# A Patroni cluster that fails over repeatedly under load, with synchronous and with asynchronous
# replication: tokens never decrease, no fence accepts a stale write, and with synchronous
# replication no acknowledged commit is lost.
# Runs first: the cluster fails over again and again.
#
#   FAILOVER_CYCLES=3      failovers in each mode
#   FAILOVER_SECONDS=600   or as many as start in this time, half of it for each mode
#   FAILOVER_MODES="sync async"
#   FAILOVER_KINDS="frozen paused"  these of the ways to lose a primary, see Cluster::failover();
#                                   one after the other
#   FAILOVER_CLOCKS="0 2 -2"  by how many seconds the clocks of the servers differ from the
#                             machine's (with libfaketime)
#   EDITION=portable       with the portable edition, which has no tokens of locks before
#                          PostgreSQL 17
#   PATRONI=/path/to/it    another Patroni than the one on PATH
use FindBin;
use lib "$FindBin::Bin/../t/lib", "$FindBin::Bin/lib";
use AdvisoryTest;
use Cluster;
use Launch;
use Programs;
use Time::HiRes qw(sleep time);

my $python = python('psycopg2');
my @modes = split ' ', $ENV{FAILOVER_MODES} || 'sync async';
my $seconds = ($ENV{FAILOVER_SECONDS} || 0) / @modes;
my $cycles = $ENV{FAILOVER_CYCLES} || 3;

plan skip_all => Cluster::missing() if Cluster::missing();
plan skip_all => 'there is no psycopg2 here' unless $python;
alarm 60 + @modes * ($seconds || 60 * $cycles) + @modes * 60;

sub figures_of ($mode) {
    my $begun = time;
    my $cluster = Cluster->new(
        synchronous => $mode eq 'sync', clocks => [ split ' ', $ENV{FAILOVER_CLOCKS} // '' ]);
    if (($ENV{EDITION} // '') eq 'portable') {
        my $said = load_portable('postgres', 'postgres', $cluster->leader);
        die "portable/advisory.sql: $said\n" if $said ne '';
    }
    else { session(server => $cluster->leader)->run('CREATE EXTENSION advisory_ext') }
    my $load = launch('nice', $python, "$FindBin::Bin/failover.py", $cluster->ports);
    wait_until('the load is on', sub { $load->said =~ /^ready/m || $load->is_done });

    my @kinds = $ENV{FAILOVER_KINDS} ? split ' ', $ENV{FAILOVER_KINDS} : Cluster::kinds();
    my (@without, $loaded);
    for (my $cycle = 0; $seconds ? time - $begun < $seconds : $cycle < $cycles; $cycle++) {
        sleep 1;
        my $kind = $kinds[$cycle % @kinds];
        push @without, $cluster->failover($kind);
        note sprintf '%s, failover %d (%s): %.1f s without a primary', $mode, scalar @without,
            $kind, $without[-1];
    }
    sleep 1;
    kill TERM => $load->{pid};
    my ($said, $status) = $load->finish(120);
    $cluster->stop;
    is($status, 0, "$mode: the load ended well");
    diag $said if $status || $said =~ /^#/m;
    return (failovers => scalar @without, 'without a primary' => sprintf('%.1f', median(@without)),
        (map { /^([^#\t]+)\t(\d+)$/ ? ($1 => $2) : () } split /\n/, $said),
        seconds => sprintf('%.0f', time - $begun));
}

my (@names, %figures);
for my $mode (@modes) {
    my @figures = figures_of($mode);
    my $of = $figures{$mode} = {@figures};
    @names = @figures[grep { $_ % 2 == 0 } 0 .. $#figures] unless @names;
    cmp_ok($of->{grants}, '>', (exists $of->{refused} ? 50 : 5) * $of->{failovers},
        "$mode: tokens were given");
    is($of->{'not growing'}, 0, "$mode: no token falls");
    if (exists $of->{refused}) {
        cmp_ok($of->{refused}, '>', 0, "$mode: the fences refused stale writes");
        is($of->{'stale accepted'}, 0, "$mode: and accepted none");
        cmp_ok($of->{commits}, '>', 10 * $of->{failovers}, "$mode: transactions were committed");
    }
    cmp_ok($of->{$_}, '>', 3 * $of->{failovers}, "$mode: $_ were had")
        for qw(leases slots windows checks guarded);
    is($of->{'guarded, stale'}, 0,
        "$mode: no lease was checked successfully after a later holder's writes");
    # What was granted can be lost with the rest; then the tokens tell two holders apart.
    if ($mode eq 'sync') {
        is($of->{lost} // 0, 0, "$mode: none of those acknowledged is lost");
        is($of->{'held by two'}, 0, "$mode: no lease is held by two");
        cmp_ok($of->{carried}, '>', 0, "$mode: and some by the same holder after a failover");
        cmp_ok($of->{'slots at once'}, '<=', 3, "$mode: no more slots are leased than there are");
        is($of->{'slot held by two'}, 0, "$mode: and none by two");
        cmp_ok($of->{'slots carried'}, '>', 0, "$mode: and some by the same holder afterwards");
        is($of->{'run twice'}, 0, "$mode: no window is claimed twice");
        is($of->{'guarded, lost'}, 0, "$mode: no write under a lease is lost");
        is($of->{'used twice'}, 0, "$mode: no timeline is used twice") unless Cluster::is_old();
    }
    if ($of->{'used twice'}) {
        diag "$mode: $of->{'used twice'} timelines were used twice, as Patroni permits: "
            . "$of->{unordered} tokens and @{[$of->{'unordered writes'} // 0]} writes were not in "
            . 'order';
    }
    is($of->{'beyond max_hold'}, 0, "$mode: none is held for longer than its max_hold");
    is($of->{'unexpected errors'}, 0,
        "$mode: no session saw an error that a failover does not explain");
}

diag sprintf "Patroni %s, %s", Cluster::version(), $ENV{FAILOVER_KINDS} || join ', ',
    Cluster::kinds();
diag sprintf '%-20s' . '%10s' x @modes, '', @modes;
for my $name (@names) {
    diag sprintf '%-20s' . '%10s' x @modes, $name, map { $figures{$_}{$name} // '-' } @modes;
}
done_testing();
