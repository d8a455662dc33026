# The views, beside pg_locks and pg_stat_activity with the same columns.
package Bench::Part::views;

use AdvisoryTest;
use Bench;
use Time::HiRes qw(time);

use constant HOLDERS => 10;

# count() computes every column, but sends none.
sub counted ($from, @columns) {
    return 'SELECT ' . join(', ', map { "count($_)" } @columns) . " FROM $from";
}

my $KEY = '(classid::bigint << 32) | objid::bigint';
my $ADVISORY = q{pg_locks l LEFT JOIN pg_stat_activity a USING (pid) WHERE locktype = 'advisory'};
my %QUERIES = (
    locks => [ counted('advisory.locks',
        qw(pid role application_name mode granted key key1 key2 namespace name query held)),
        counted($ADVISORY, qw(pid usename application_name mode granted), $KEY,
            qw(classid objid query)) ],
    activity => [ 'SELECT * FROM advisory.activity',
        "SELECT $KEY, mode, pid, usename, application_name, state, clock_timestamp() - waitstart,
            pg_blocking_pids(pid) FROM $ADVISORY ORDER BY granted, waitstart" ],
    waits => [ 'SELECT * FROM advisory.waits',
        "SELECT pid, usename, application_name, mode, $KEY, waitstart, query,
            pg_blocking_pids(pid) FROM $ADVISORY AND NOT granted" ],
);
my %PROMISED = (locks => { 10_000 => 2.4, 100_000 => 2.4 });

sub time_of ($query) {
    return on_server(sub { my $start = time; $_[0]->rows($query); return time - $start });
}

for my $locks (QUICK ? 10_000 : (100, 10_000, 100_000)) {
    my @holders = map { my $tree = $_; map { session(server => server_of($tree))->run(
        "SELECT count(advisory.lock('held', '$_ ' || i))
            FROM generate_series(1, $locks / @{[HOLDERS]}) AS i") } 1 .. HOLDERS } tree_names();
    # And some that wait.
    my @waiters = map { my $tree = $_; map { session(server => server_of($tree))
        ->start("SELECT advisory.lock('held', '$_ 1')") } 1 .. 5 } tree_names();
    for my $view (sort keys %QUERIES) {
        my ($ours, $theirs) = @{ $QUERIES{$view} };
        next if $view eq 'activity' && $locks > 10_000;
        my $promise = $PROMISED{$view}{$locks};
        compare(work => "advisory.$view, $locks locks", of => 'speed',
            against => "pg_locks and pg_stat_activity's",
            ($promise ? ('at least' => $promise) : ()),
            series => "speed of $view", at => $locks, ours => time_of($theirs),
            theirs => time_of($ours));
    }
    $_->disconnect for @waiters, @holders;
}
1;
