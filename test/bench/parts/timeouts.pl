# A wait that ends after 1 ms, beside what has to be written for it without the extension.
package Bench::Part::timeouts;

use AdvisoryTest;
use Bench;

my $waits = QUICK ? 50 : 200;
my %holder;

sub timed ($statement) {
    return sub ($tree, @) {
        $holder{$tree} //= session(server => server_of($tree))
            ->run(q{SELECT advisory.lock('bench', 'held')});
        return loop(session_of($tree), "ARRAY(SELECT generate_series(1, $waits))", 'int',
            $statement);
    };
}

my $ours = timed(q{PERFORM advisory.try_lock('bench', 'held', '1ms')});
my $theirs = timed(<<'SQL');
BEGIN
    SET LOCAL lock_timeout = '1ms';
    PERFORM pg_advisory_lock(advisory.key('bench', 'held'));
EXCEPTION WHEN lock_not_available THEN
    NULL;
END
SQL
compare(work => 'a wait that times out after 1 ms', of => 'time',
    against => "SET LOCAL lock_timeout and EXCEPTION's", 'at most' => 1.1, ours => $ours,
    theirs => $theirs);
undef %holder;
1;
