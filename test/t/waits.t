#!/usr/bin/env perl
# advisory.waits while many sessions wait for each other at random in every way, and while they come and go. Each waiter is
# in a tree, the trees are consistent, and reading the view never fails. The test needs more sessions than an isolation test
# has.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use List::Util qw(shuffle);
use Test::More;
use Time::HiRes qw(time);

use constant { WAITERS => 40, HOLDERS => 4, ROUNDS => 6, SECONDS => 3, CHAIN => 30 };

srand 4711;
create_database();
my $look = session();
my @waiters = map { session() } 1 .. WAITERS;
my @holders = map { session() } 1 .. HOLDERS;
# Cycles stay until the test itself ends them.
$_->run(q(SET deadlock_timeout = '1h')) for @waiters;

# Rules for any result of the view, as queries that return the rows that break them.
my %wrong = (
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
    'a root holds and does not wait' => 'waits_for_pid IS NULL AND (waited IS NOT NULL OR depth > 0)',
);

sub end_waits {
    my @waiting = @_;
    $look->run('SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE pid IN (' . join(',', map { $_->pid } @waiting) . ')');
    $_->finish for @waiting;
    $_->run('SELECT pg_advisory_unlock_all()') for @waiting, @holders;
    return;
}

# ---- Random pictures, standing still -----------------------------------------------------------------------

my $cycles = 0;
for my $round (1 .. ROUNDS) {
    # Few locks, many of them shared, and some sessions that only hold: deep trees. Or a lock of its own for each of
    # the waiters: cycles.
    my $deep = $round % 2;
    my $some_mode = sub { $deep && rand() < 0.5 ? '_shared' : '' };
    my @keys = 1 .. ($deep ? 12 : WAITERS);
    my @own = @keys;
    for my $session ($deep ? @holders : (), @waiters) {
        my @wanted = $deep ? (shuffle @keys)[0 .. int rand 3] : shift @own;
        $session->value('SELECT count(pg_try_advisory_lock' . $some_mode->() . '(k)) FROM unnest(?::int[]) AS k',
            '{' . join(',', @wanted) . '}');
    }
    for my $session (@waiters) {
        $session->start('SELECT pg_advisory_lock' . $some_mode->() . '(' . $keys[rand @keys] . ')');
        waits($look, $session);
    }
    $look->run('CREATE TEMP TABLE tree AS SELECT * FROM advisory.waits');
    for my $what (sort keys %wrong) {
        is_deeply($look->rows("SELECT * FROM tree WHERE $wrong{$what}"), [], "round $round: $what");
    }
    is_deeply($look->rows(q(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                            EXCEPT SELECT pid FROM tree WHERE waits_for_pid IS NOT NULL)), [], "round $round: every waiter is there");
    is_deeply($look->rows(q(SELECT pid FROM tree WHERE waits_for_pid IS NOT NULL
                            EXCEPT SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)), [], "round $round: and nobody else");
    # Waits that would close a cycle have no row, but in the cycle's head.
    is_deeply($look->rows(q(SELECT l.pid, h.pid FROM pg_locks l JOIN pg_locks h USING (locktype, database, classid, objid, objsubid)
                            WHERE locktype = 'advisory' AND NOT l.granted AND h.granted AND l.pid <> h.pid
                              AND (l.mode <> 'ShareLock' OR h.mode <> 'ShareLock')
                              AND NOT EXISTS (SELECT FROM tree WHERE pid = l.pid AND waits_for_pid = h.pid)
                              AND NOT EXISTS (SELECT FROM tree WHERE pid = h.pid AND l.pid = ANY (path)))), [],
        "round $round: a waiter has a row for each holder");
    is_deeply($look->rows('SELECT count(*) FROM advisory.wait_tree()'), $look->rows('SELECT count(*) FROM tree'),
        "round $round: as many lines");
    $cycles += $look->value('SELECT count(*) FROM tree WHERE depth = 0 AND waits_for_pid IS NOT NULL');
    $look->run('DROP TABLE tree');
    end_waits(grep { !$_->is_done } @waiters);
    $_->finish for grep { $_->{sth} } @waiters;
    $_->run('SELECT pg_advisory_unlock_all()') for @waiters;
}
cmp_ok($cycles, '>', 0, 'cycles were among them');

# ---- A long chain ------------------------------------------------------------------------------------------

my @chain = @waiters[0 .. CHAIN - 1];
$chain[$_]->value('SELECT pg_advisory_lock(?)', 100 + $_) for 0 .. $#chain;
for my $i (1 .. $#chain) {
    $chain[$i]->start('SELECT pg_advisory_lock(' . (99 + $i) . ')');
    waits($look, $chain[$i]);
}
is($look->value('SELECT max(depth) FROM advisory.waits'), CHAIN - 1, 'a chain of ' . CHAIN . ' is that deep');
is_deeply($look->value('SELECT path FROM advisory.waits ORDER BY depth DESC LIMIT 1'), [ map { $_->pid } @chain ],
    'and its path names them all in order');
end_waits(@chain[1 .. $#chain]);
$_->run('SELECT pg_advisory_unlock_all()') for @chain;

# ---- Through a wait for a row ---------------------------------------------------------------------------------

$look->run('CREATE TABLE item (id integer)');
my ($locks_table, $wants_row, $wants_lock) = @waiters;
$locks_table->run('BEGIN', 'LOCK TABLE item IN EXCLUSIVE MODE');
$wants_row->run('SELECT pg_advisory_lock(1)')->start('SELECT * FROM item FOR UPDATE');
waits($look, $wants_row);
$wants_lock->start('SELECT pg_advisory_lock(1)');
waits($look, $wants_lock);
is_deeply($look->rows('SELECT pid, mode FROM advisory.waits ORDER BY depth'),
    [ [ $locks_table->pid, 'exclusive' ], [ $wants_row->pid, 'RowShareLock' ], [ $wants_lock->pid, 'exclusive' ] ],
    'the mode of a lock on a table keeps the name that the server has for it');
$locks_table->run('ROLLBACK');
$wants_row->finish;
$wants_row->run('SELECT pg_advisory_unlock_all()');
$wants_lock->finish;
$wants_lock->run('SELECT pg_advisory_unlock_all()');

# ---- While everything moves --------------------------------------------------------------------------------

$look->run(<<'SQL');
    CREATE PROCEDURE bustle(seconds int) LANGUAGE plpgsql AS $$
    DECLARE
        until timestamptz := clock_timestamp() + make_interval(secs => seconds);
    BEGIN
        WHILE clock_timestamp() < until LOOP
            -- In the order of their keys, so that nobody comes to a deadlock.
            FOR k IN 1 .. 6 LOOP
                CASE (random() * 4)::int
                    WHEN 0 THEN PERFORM pg_advisory_xact_lock(k);
                    WHEN 1 THEN PERFORM pg_advisory_xact_lock_shared(k);
                    ELSE NULL;
                END CASE;
            END LOOP;
            PERFORM pg_sleep(0.001 * random());
            COMMIT;
        END LOOP;
    END
    $$
SQL
my @busy = @waiters[0 .. 19];
$_->start('CALL bustle(' . SECONDS . ')') for @busy;
my ($looks, $lines) = (0, 0);
my $end = time + SECONDS - 1;
while (time < $end) {
    $lines += $look->value('SELECT count(*) FROM advisory.waits') + $look->value('SELECT count(*) FROM advisory.wait_tree()');
    $looks += 2;
}
is_deeply([ grep { defined } map { $_->finish->{message} } @busy ], [], 'sessions that take locks all the time are not disturbed');
cmp_ok($lines, '>', 0, "and $looks looks at them saw $lines lines");

done_testing();
