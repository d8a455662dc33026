# Who waits for whom, as the views of both editions show it: of many sessions that wait for each
# other at random, in every way that locks allow; and of migrations.
package Waits;

use strict;
use warnings;
use utf8;
use AdvisoryTest;
use Exporter 'import';
use List::Util qw(shuffle);
use Test::More;

our @EXPORT = qw(random_waits end_waits migrations);

# Rules for any result of advisory.waits, as conditions of the rows that break them.
my %WRONG = (
    'a path leads from the root to the session, and is as long as it is deep' =>
        'path[1] <> root_pid OR path[depth + 1] <> pid OR cardinality(path) <> depth + 1',
    'no path goes through a session twice' =>
        'cardinality(path) <> (SELECT count(DISTINCT p) FROM unnest(path) AS p)',
    'a waiter stands under the one that it waits for' =>
        'depth > 0 AND waits_for_pid IS DISTINCT FROM path[depth]',
    'a row has a parent' =>
        'depth > 0 AND NOT EXISTS (SELECT FROM tree AS p WHERE p.path = tree.path[:tree.depth])',
    'what it waits for is in its way' =>
        'waits_for_pid IS NOT NULL AND NOT waits_for_pid = ANY (pg_blocking_pids(pid))',
    'a root holds and does not wait' =>
        'waits_for_pid IS NULL AND (waited IS NOT NULL OR depth > 0)',
);

# The same for all rows together, as queries that return what is wrong.
my %WRONG_TOGETHER = (
    'every waiter is there' => q(SELECT pid FROM pg_locks WHERE locktype = 'advisory'
        AND NOT granted EXCEPT SELECT pid FROM tree WHERE waits_for_pid IS NOT NULL),
    'and nobody else' => q(SELECT pid FROM tree WHERE waits_for_pid IS NOT NULL
        EXCEPT SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted),
    'each session stands once' => 'SELECT pid FROM tree GROUP BY pid HAVING count(*) > 1',
    'under a holder if one is in its way' => q(SELECT w.pid, w.waits_for_pid
        FROM tree w, pg_locks l JOIN pg_locks h USING (locktype, database, classid, objid, objsubid)
        WHERE w.waits_for_pid IS NOT NULL AND l.pid = w.pid AND NOT l.granted
            AND locktype = 'advisory' AND h.granted AND l.pid <> h.pid
            AND (l.mode <> 'ShareLock' OR h.mode <> 'ShareLock')
        GROUP BY w.pid, w.waits_for_pid HAVING w.waits_for_pid <> ALL (array_agg(h.pid))),
    # A waiter beyond the tenth may have no line of its own.
    'the text has a line for each session, or counts it' => q(SELECT FROM (
            SELECT sum(coalesce(substring(line
                FROM '^ *… and (\d+) more, the longest \d+ s$')::int, 1)) AS lines
            FROM advisory.wait_tree() AS line) AS text
        WHERE lines <> (SELECT count(*) FROM tree)),
);

# look: a session that sees all; waiters; holders: sessions that only hold, in every second round;
# locks: how many there are then. Returns how many cycles there were.
sub random_waits (%how) {
    my ($look, $locks) = @how{qw(look locks)};
    my @waiters = @{ $how{waiters} };
    my @holders = @{ $how{holders} // [] };
    # Cycles stay until the test itself ends them.
    $_->run(q(SET deadlock_timeout = '1h')) for @waiters;
    my $cycles = 0;
    for my $round (1 .. $how{rounds}) {
        # Few locks, many of them shared: deep trees. Or a lock of its own for each of the waiters:
        # cycles.
        my $deep = $round % 2;
        my $some_mode = sub { $deep && rand() < 0.5 ? '_shared' : '' };
        my @keys = 1 .. ($deep ? $locks : @waiters);
        my @own = @keys;
        for my $session ($deep ? @holders : (), @waiters) {
            my @wanted = $deep ? (shuffle @keys)[ 0 .. int rand 3 ] : shift @own;
            $session->value('SELECT count(pg_try_advisory_lock' . $some_mode->()
                . '(k)) FROM unnest(?::int[]) AS k', '{' . join(',', @wanted) . '}');
        }
        for my $session (@waiters) {
            waits($look, $session,
                'SELECT pg_advisory_lock' . $some_mode->() . '(' . $keys[ rand @keys ] . ')');
        }
        $look->run('CREATE TEMP TABLE tree AS SELECT * FROM advisory.waits');
        $look->shows("SELECT * FROM tree WHERE $WRONG{$_}", [], "round $round: $_")
            for sort keys %WRONG;
        $look->shows($WRONG_TOGETHER{$_}, [], "round $round: $_") for sort keys %WRONG_TOGETHER;
        ok(defined $look->value('SELECT count(*) FROM advisory.blockers'),
            "round $round: and what blocks them");
        $cycles += $look->value('SELECT count(*) FROM tree
            WHERE depth = 0 AND waits_for_pid IS NOT NULL');
        $look->run('DROP TABLE tree');
        end_waits($look, grep { !$_->is_done } @waiters);
        $_->finish for grep { $_->{sth} } @waiters;
        $_->run('SELECT pg_advisory_unlock_all()') for @waiters, @holders;
    }
    return $cycles;
}

# Ends what these sessions wait for, and releases what they hold.
sub end_waits ($look, @waiting) {
    $look->run('SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE pid IN ('
        . join(',', map { $_->pid } @waiting) . ')');
    $_->finish for @waiting;
    $_->run('SELECT pg_advisory_unlock_all()') for @waiting;
    return;
}

# A migration holds a lock, or the only slot of a semaphore, in one session, and works in another
# one, which waits for the snapshot or the transaction of somebody who waits for the lock. If the
# holder were ended, two would migrate. look: a superuser's session; connect: makes one of an
# application; takes: what takes the lock billing/invoice:42.
sub migrations (%how) {
    my ($look, $connect) = @how{qw(look connect)};
    for my $take (@{ $how{takes} }) {
        my ($lock, $kind) = $take =~ /lock/ ? ('billing/invoice:42', 'lock')
            : ('slot 1 of billing/invoice:42', 'semaphore');
        for my $work ('CREATE INDEX CONCURRENTLY migrated ON public.item (id)',
            'UPDATE public.item SET n = 4') {
            for my $application ('migrate', 'dba') {
                my $what = "$take, while $application waits for $work";
                $look->run('DROP INDEX IF EXISTS public.migrated');
                my $holder = $connect->('migrate')->run("SELECT advisory.$take");
                my $replica = $connect->('replica');
                $replica->run('BEGIN', 'UPDATE public.item SET n = 3') if $work =~ /UPDATE/;
                waits($look, $replica, "SELECT advisory.$take");
                my $worker = $connect->($application)->run(q(SET deadlock_timeout = '1h'));
                waits($look, $worker, $work);
                my ($h, $r) = map { $_->pid } $holder, $replica;
                my $remedy = $look->value('SELECT remedy FROM advisory.blockers WHERE lock = ?',
                    $lock);
                is($remedy, $application eq 'migrate'
                    ? "SELECT advisory.cancel_waiter($r, '$lock');"
                    : "SELECT advisory.terminate_holder('billing', 'invoice:42', $h, "
                        . "kind => '$kind');", "the remedy, $what");
                $look->shows($remedy =~ s/;//r, 1, '... is what is done');
                if ($application eq 'migrate') {
                    $replica->ends('57014', '... and cancels the waiter');
                    $holder->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                        AND pid = pg_backend_pid()), 1, '... and the holder keeps what it has');
                    $look->shows($remedy =~ s/;//r, 0, '... once');
                } else {
                    $replica->ends(undef, '... and lets the waiter go on');
                    leave($look, $replica);
                }
                $worker->ends(undef, '... and then the work');
                $look->shows(q(SELECT indisvalid FROM pg_index
                    WHERE indexrelid = 'public.migrated'::regclass), 1, '... whose index is valid')
                    if $work =~ /INDEX/;
                leave($look, $worker, $replica, $holder);
            }
        }
    }
    return;
}

1;
