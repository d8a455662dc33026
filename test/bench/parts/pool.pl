# How many locks fit: what advisory.pressure estimates, and what the usual formula says, beside what
# the server takes.
package Bench::Part::pool;

use AdvisoryTest;
use Bench;
use List::Util qw(min);
use PoolFill;

# Limits by the number of guaranteed locks. Smaller pools are promised only not to be overestimated.
use constant { EXACT_FROM => 1200, LARGE_FROM => 2500 };

for my $pool (QUICK ? qw(64/100/0) : MANY_POOLS) {
    progress("pool: $pool");
    my ($server, $look) = pool_server($pool);
    my $fill = fill_pool($server, $look);
    $look->disconnect;
    $server->stop;
    my $guaranteed = $fill->{before}{locks_guaranteed};
    my ($least, $most) = $guaranteed >= LARGE_FROM ? (0.97, 1.01) : $guaranteed >= EXACT_FROM
        ? (0.95, 1.05) : (undef, 1);
    my %which = (work => "lock table of $pool", against => 'what fits', at => $fill->{filled});
    figure(%which, of => 'estimate', ratio => $fill->{before}{headroom} / $fill->{filled},
        series => 'estimate of the lock table',
        'at most' => $most, (defined $least ? ('at least' => $least) : ()));
    figure(%which, of => 'usual formula', ratio => $fill->{usual} / $fill->{filled},
        series => 'usual formula of the lock table');
}

# The first look of a session, where another library has a large hash table in shared memory: the
# least processor time of several sessions, which have loaded the library before.
my $statements = QUICK ? 100_000 : 1_000_000;

sub first_look (@settings) {
    return sub ($tree, @) {
        return min(map {
            my $session = session(server => server_of($tree, "first look @settings", @settings));
            $session->run(q{SELECT advisory.key('loaded')});
            my $look = sub { $session->run('SELECT * FROM advisory.pressure') };
            my $taken = processor_time($session, $look);
            $session->disconnect;
            $taken;
        } 1 .. 7);
    };
}

compare(work => "the first look at pressure, with pg_stat_statements of $statements statements",
    of => 'time', against => 'without it', 'at most' => 3, theirs => first_look(),
    ours => first_look('shared_preload_libraries=pg_stat_statements',
        "pg_stat_statements.max=$statements", 'pg_stat_statements.save=off'));
1;
