# From names to keys.
package Bench::Part::keys;

use AdvisoryTest;
use Bench;
use Time::HiRes qw(time);

my $count = QUICK ? 100_000 : 300_000;
my %ready;

# Seconds for all names of a table in memory, without what reading them takes.
sub time_of ($expression) {
    return on_server(sub ($session, @) {
        $session->run("CREATE TEMP TABLE names AS SELECT 'billing'::text AS ns,
            'invoice:' || i AS name FROM generate_series(1, $count) AS i",
            'ANALYZE names', 'SET max_parallel_workers_per_gather = 0') unless $ready{$session}++;
        my @times = map { my $start = time; $session
            ->rows("SELECT count($_) FROM names"); time - $start } $expression, 'name';
        return $times[0] - $times[1];
    });
}

my $key = time_of('advisory.key(ns, name)');
compare(work => 'key(namespace, name)', of => 'speed', against => "the md5 idiom's",
    'at least' => 4, ours => time_of(q{('x' || substr(md5(ns || name), 1, 16))::bit(64)::bigint}),
    theirs => $key);
compare(work => 'key(namespace, name)', of => 'time', against => "hashtextextended's", ours => $key,
    theirs => time_of('hashtextextended(ns || name, 0)'));
1;
