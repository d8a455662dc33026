# Locks by name: one after the other in one backend, and over connections.
package Bench::Part::locks;

use AdvisoryTest;
use Bench;

my $names = QUICK ? 2000 : 5000;
my $seconds = QUICK ? 1 : 4;
my %warm;

# The session knows the names from the second loop on.
sub known (@statements) {
    return on_server(sub ($session, @) {
        my @loop = ($session, names_array($names, 'known '), 'text',
            map { "PERFORM $_" } @statements);
        loop(@loop) unless $warm{$session}{"@statements"}++;
        return loop(@loop);
    });
}

# Of keys, which need no names.
sub by_key (@statements) {
    my $keys = "ARRAY(SELECT i * 4294967311 FROM generate_series(1, $names) AS i)";
    return on_server(sub { loop($_[0], $keys, 'bigint', map { "PERFORM $_" } @statements) });
}

my $hash = q{hashtextextended('bench' || element, 0)};
my @XACT = (known(q{advisory.try_xact_lock('bench', element)}),
    by_key('pg_try_advisory_xact_lock(element)'), known("pg_try_advisory_xact_lock($hash)"));
my @BOTH = (known(q{advisory.lock('bench', element)}, q{advisory.unlock('bench', element)}),
    by_key('pg_advisory_lock(element)', 'pg_advisory_unlock(element)'),
    known("pg_advisory_lock($hash)", "pg_advisory_unlock($hash)"));
my $new = on_server(sub ($session, $round) { loop($session, names_array($names, "new $round "),
    'text', q{PERFORM advisory.try_xact_lock('bench', element)}) });

for my $case (
    [ 'try_xact_lock in a loop, known names', "a bare number's", @XACT[ 0, 1 ], 'at most' => 1.5 ],
    [ 'try_xact_lock in a loop, known names', "a hashed name's", @XACT[ 0, 2 ] ],
    [ 'try_xact_lock in a loop, names never seen before', "a bare number's", $new, $XACT[1],
        'at most' => 3 ],
    [ 'lock and unlock in a loop, known names', "a bare number's", @BOTH[ 0, 1 ], 'at most' => 2 ],
    [ 'lock and unlock in a loop, known names', "a hashed name's", @BOTH[ 0, 2 ] ],
) {
    my ($work, $against, $ours, $theirs, @promise) = @$case;
    compare(work => $work, of => 'time', against => $against, ours => $ours, theirs => $theirs,
        @promise);
}

my $ID = '\set id random(1, 1000)';
my %STATEMENTS = (
    'try_xact_lock' => [ q{SELECT advisory.try_xact_lock('bench', :id)},
        'SELECT pg_try_advisory_xact_lock(:id)',
        q{SELECT pg_try_advisory_xact_lock(hashtextextended('bench' || :id, 0))} ],
    'lock and unlock' =>
    [ qq{SELECT advisory.lock('bench', :id);\nSELECT advisory.unlock('bench', :id)},
    "SELECT pg_advisory_lock(:id);\nSELECT pg_advisory_unlock(:id)",
        q{SELECT pg_advisory_lock(hashtextextended('bench' || :id, 0));} . "\n"
        . q{SELECT pg_advisory_unlock(hashtextextended('bench' || :id, 0))} ],
);
# With as many sessions as processors half of what a lock by name costs is the wait for its entries
# in memory: 1,000 names do not stay in the cache. With 20 names that is not to be seen.
for my $clients (QUICK ? (2) : (1, 2, 4, 8)) {
    for my $protocol (QUICK ? 'prepared' : qw(prepared simple)) {
        for my $work (sort keys %STATEMENTS) {
            my @throughput = throughputs(\&server_of, $clients, $seconds, $protocol,
                map { "$ID\n$_;" } @{ $STATEMENTS{$work} });
            my $how = sprintf '%s over pgbench, %d client%s, %s', $work, $clients, $clients == 1
                ? '' : 's', $protocol;
            my @promise = $protocol eq 'prepared' ? ('at least' => 0.93) : ();
            compare(work => $how, of => 'throughput', against => "a bare number's",
                ours => $throughput[0], theirs => $throughput[1]);
            compare(work => $how, of => 'throughput', against => "a hashed name's", @promise,
                ours => $throughput[0], theirs => $throughput[2]);
        }
    }
}
1;
