# How cost grows: with the locks that others hold, and with the number of sessions.
package Bench::Part::growth;

use AdvisoryTest;
use Bench;

my $names = QUICK ? 1000 : 3000;
my %hog;

my $ours = on_server(sub { loop($_[0], names_array($names, 'grow '), 'text',
    q{PERFORM advisory.lock('bench', element)}, q{PERFORM advisory.unlock('bench', element)}) });
my $theirs = on_server(sub { loop($_[0],
    "ARRAY(SELECT i * 4294967311 FROM generate_series(1, $names) AS i)", 'bigint',
    'PERFORM pg_advisory_lock(element)', 'PERFORM pg_advisory_unlock(element)') });
for my $locks (QUICK ? (0, 50_000) : (0, 1000, 100_000)) {
    $hog{$_} //= session(server => server_of($_)) for tree_names();
    $hog{$_}->run('SELECT pg_advisory_unlock_all()',
        "SELECT count(advisory.lock('held', i)) FROM generate_series(1, $locks) AS i")
        for tree_names();
    compare(work => "lock and unlock beside $locks locks of others", of => 'time',
        against => "the built-ins'", 'at most' => 2, series => 'growth by locks', at => $locks,
        ours => $ours, theirs => $theirs);
}
undef %hog;

for my $clients (QUICK ? (1, 16) : (1, 2, 4, 8, 16, 32, 64)) {
    my ($of_names, $of_keys) = throughputs(\&server_of, $clients, QUICK ? 1 : 3, 'prepared',
        q{SELECT advisory.lock('client', :client_id);}
            . q{SELECT advisory.unlock('client', :client_id);},
        'SELECT pg_advisory_lock(:client_id); SELECT pg_advisory_unlock(:client_id);');
    compare(work => "lock and unlock by $clients sessions, distinct names", of => 'throughput',
        against => "the built-ins'", 'at least' => 0.9,
        series => 'growth by sessions', at => $clients, ours => $of_names, theirs => $of_keys);
}
1;
