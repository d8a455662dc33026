# Questions about one lock, and about the lock table, beside more and more locks of others.
package Bench::Part::questions;

use AdvisoryTest;
use Bench;
use Time::HiRes qw(time);

my %hog;
my $calls = QUICK ? 3 : 5;

sub time_of ($query) {
    return on_server(sub ($session, @) { my $start = time; $session->rows($query)
        for 1 .. $calls; return (time - $start) / $calls });
}

my $FILTER =
    q{FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND classid = 0 AND granted};
for my $locks (QUICK ? (0, 50_000) : (0, 1000, 200_000)) {
    $hog{$_} //= session(server => server_of($_)) for tree_names();
    $hog{$_}->run('SELECT pg_advisory_unlock_all()',
        "SELECT count(pg_advisory_lock(i + 1000)) FROM generate_series(1, $locks) AS i")
        for tree_names();
    my %at = (series => 'questions', at => $locks);
    compare(%at, work => "is_locked, $locks locks", of => 'time',
        against => "a filtered query on pg_locks's", 'at most' => 1.2,
        ours => time_of(q{SELECT advisory.is_locked('bench', 'question')}),
        theirs => time_of("SELECT EXISTS (SELECT $FILTER)"));
    compare(%at, work => "holders, $locks locks", of => 'time',
        against => "a filtered query on pg_locks's", 'at most' => 2,
        ours => time_of(q{SELECT pid FROM advisory.holders('bench', 'question')}),
        theirs => time_of("SELECT pid $FILTER"));
    compare(%at, work => "pressure, $locks locks", of => 'time',
        against => 'SELECT count(*) FROM pg_locks', 'at most' => $locks > 1000 ? 0.1 : 2,
        ours => time_of('SELECT percent_used, headroom, status FROM advisory.pressure'),
        theirs => time_of('SELECT count(*) FROM pg_locks'));
}

# What is asked about one lock looks at that lock, or at that semaphore's slots, and at nothing
# else; so does the DETAIL of a lock() or acquire() that fails.
my ($others, $repeated) = QUICK ? (50_000, 50) : (100_000, 200);
my %set;

sub set_up ($tree) {
    return $set{$tree} //= do {
        my ($holder, $waiter) = map { session(server => server_of($tree)) } 1, 2;
        $holder->run(q{SELECT advisory.lock('look', 'taken')},
            q{SELECT advisory.acquire('look', 'slots', 3) FROM generate_series(1, 3)});
        # A chain: who asks for this waits for one that itself waits.
        $waiter->run(q{SELECT advisory.lock('look', 'chained')});
        $waiter->start(q{SELECT advisory.lock('look', 'taken')});
        waits(session_of($tree), $waiter);
        { holder => $holder, waiter => $waiter, others => -1 };
    };
}

# How long the statement takes beside so many other locks, the error that it may end in included.
sub beside ($locks, $statement) {
    return sub ($tree, @) {
        my $set = set_up($tree);
        if ($set->{others} != $locks) {
            $hog{$tree}->run('SELECT pg_advisory_unlock_all()',
                "SELECT count(pg_advisory_lock(i + 1000)) FROM generate_series(1, $locks) AS i");
            $set->{others} = $locks;
        }
        return loop(session_of($tree), "ARRAY(SELECT generate_series(1, $repeated))", 'int',
            "BEGIN PERFORM $statement; EXCEPTION WHEN lock_not_available THEN NULL; END");
    };
}

for my $case (
    [ 'is_locked()',               q{advisory.is_locked('look', 'taken')} ],
    [ 'is_locked() of a free one', q{advisory.is_locked('look', 'free')} ],
    [ 'holders()',                 q{* FROM advisory.holders('look', 'taken')} ],
    [ 'lock() without waiting',    q{advisory.lock('look', 'taken', '0')} ],
    [ 'lock() behind a chain',     q{advisory.lock('look', 'chained', '0')} ],
    [ 'acquire() without waiting', q{advisory.acquire('look', 'slots', 3, '0')} ],
    [ 'pressure',                  q{* FROM advisory.pressure} ],
) {
    my ($what, $statement) = @$case;
    compare(work => "$what, $others other locks", of => 'time', against => 'beside none',
        'at most' => 2, ours => beside($others, $statement), theirs => beside(0, $statement));
}
$_->disconnect for map { @{$_}{qw(waiter holder)} } values %set;
undef %hog;
1;
