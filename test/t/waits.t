#!/usr/bin/env perl
# advisory.waits while many sessions wait for each other at random in every way, and while they come
# and go. Each waiter is in a tree, the trees are consistent, and reading the view never fails. The
# test needs more sessions than an isolation test has.
use utf8;
use AdvisoryTest;
use Time::HiRes qw(time);
use Waits;

use constant { WAITERS => 40, HOLDERS => 4, ROUNDS => 6, SECONDS => 3, CHAIN => 30 };

srand 4711;
create_database();
my $look = session();
my @waiters = map { session() } 1 .. WAITERS;
my @holders = map { session() } 1 .. HOLDERS;

# ---- Random pictures, standing still -------------------------------------------------------------

# Some sessions only hold.
cmp_ok(random_waits(look => $look, waiters => \@waiters, holders => \@holders, locks => 12,
    rounds => ROUNDS), '>', 0, 'cycles were among them');

# ---- A long chain --------------------------------------------------------------------------------

my @chain = @waiters[0 .. CHAIN - 1];
$chain[$_]->value('SELECT pg_advisory_lock(?)', 100 + $_) for 0 .. $#chain;
for my $i (1 .. $#chain) {
    $chain[$i]->start('SELECT pg_advisory_lock(' . (99 + $i) . ')');
    waits($look, $chain[$i]);
}
is($look->value('SELECT max(depth) FROM advisory.waits'), CHAIN - 1,
    'a chain of ' . CHAIN . ' is that deep');
is_deeply($look->value('SELECT path FROM advisory.waits ORDER BY depth DESC LIMIT 1'),
    [ map { $_->pid } @chain ],
    'and its path names them all in order');
end_waits($look, @chain[1 .. $#chain]);
$_->run('SELECT pg_advisory_unlock_all()') for @chain;

# ---- Many waiters --------------------------------------------------------------------------------

# Twelve wait for one lock, and one each for a lock of the first and of the last of them; two others
# wait for that one.
my ($held, $of_first, $of_last, $deepest, @many) = @waiters[0 .. 15];
$held->run('SELECT pg_advisory_lock(1)');
$many[0]->run('SELECT pg_advisory_lock(2)');
$many[11]->run('SELECT pg_advisory_lock(3)');
$of_last->run('SELECT pg_advisory_lock(4)');
waits($look, $_, 'SELECT pg_advisory_lock(1)') for @many;
for my $case ([ $of_first, 2 ], [ $of_last, 3 ], [ $deepest, 4 ]) {
    my ($waiter, $key) = @$case;
    waits($look, $waiter, "SELECT pg_advisory_lock($key)");
}
my @text = map { $_->[0] =~ s/ \d+ s/ N s/gr } @{ $look->rows('SELECT *
        FROM advisory.wait_tree()') };
is_deeply([ map { /^( *)(\d+|…)/ && [ length $1, $2 ] } @text ],
    [ [ 0, $held->pid ], [ 2, $many[0]->pid ], [ 4, $of_first->pid ],
        (map { [ 2, $_->pid ] } @many[1 .. 9]), [ 2, '…' ] ],
    'the text shows ten waiters under a session');
is($text[-1], '  … and 4 more, the longest N s',
    'and counts the others, with those that wait for them');
$look->shows('SELECT count(*) FROM advisory.waits', 16, 'the view shows all');
end_waits($look, @many, $of_first, $of_last, $deepest);
$held->run('SELECT pg_advisory_unlock_all()');

# ---- Slots ---------------------------------------------------------------------------------------

{
    my ($first, $second, @queue) = @waiters[0 .. 4];
    my $acquire = q(SELECT advisory.acquire('waits', 'slots', 2));
    my $lines = sub { return join "\n", map { $_->[0] =~ s/ \d+ s\b/ N s/gr
            =~ s/^( *\d+) \S+/$1/r } @{ $look->rows('SELECT * FROM advisory.wait_tree()') } };
    my $under = sub ($holder, $slot) {
        return join "\n", $holder->pid . " holds slot $slot of waits/slots exclusive, idle N s",
            map { '  ' . $_->pid
                . ' waits for a slot of waits/slots exclusive N s (and 1 more holder)' } @queue;
    };
    is($_->value($acquire), $_ == $first ? 1 : 2, 'a slot') for $first, $second;
    for my $waiter (@queue) {
        $waiter->start($acquire);
        $look->wait_until('it waits', q(SELECT count(*) FROM advisory.locks
            WHERE pid = ? AND wait_start IS NOT NULL), $waiter->pid);
    }
    is($lines->(), $under->($first, 1),
        'a waiter for a slot stands once, under the holder that has had its slot longest');
    $first->run(q(SELECT advisory.release('waits', 'slots')));
    $first = shift @queue;
    $first->returns(1, 'the first waiter has the slot');
    is($lines->(), $under->($second, 2), '... and now that is the holder of the other slot');
    $_->run(q(SELECT advisory.release('waits', 'slots'))) for $first, $second;
    is_deeply([ sort map { $_->finish->{value} } @queue ], [ 1, 2 ], 'the others have the slots');
    $_->run('SELECT pg_advisory_unlock_all()') for @queue;
}

# ---- Through a wait for a table ------------------------------------------------------------------

$look->run('CREATE TABLE item (id integer)');
my ($locks_table, $wants_row, $wants_lock) = @waiters;
$locks_table->run('BEGIN', 'LOCK TABLE item IN EXCLUSIVE MODE');
$wants_row->run('SELECT pg_advisory_lock(1)')->start('SELECT * FROM item FOR UPDATE');
waits($look, $wants_row);
$look->shows('SELECT pid FROM advisory.waits ORDER BY depth',
    [ $locks_table->pid, $wants_row->pid ], 'a holder of an advisory lock that waits for a table '
    . 'is there, even if nobody waits for its lock');
waits($look, $wants_lock, 'SELECT pg_advisory_lock(1)');
$look->shows('SELECT pid, mode FROM advisory.waits ORDER BY depth',
    [ "$locks_table->{pid}|exclusive", "$wants_row->{pid}|RowShareLock",
        "$wants_lock->{pid}|exclusive" ],
    'the mode of a lock on a table keeps the name that the server has for it');
$locks_table->run('ROLLBACK');
$wants_row->finish;
$wants_row->run('SELECT pg_advisory_unlock_all()');
$wants_lock->finish;
$wants_lock->run('SELECT pg_advisory_unlock_all()');

# ---- While everything moves ----------------------------------------------------------------------

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
    $lines += $look->value('SELECT count(*) FROM advisory.waits') + $look->value('SELECT count(*)
        FROM advisory.wait_tree()');
    $looks += 2;
}
is_deeply([ grep { defined } map { $_->finish->{message} } @busy ], [],
    'sessions that take locks all the time are not disturbed');
cmp_ok($lines, '>', 0, "and $looks looks at them saw $lines lines");

done_testing();
