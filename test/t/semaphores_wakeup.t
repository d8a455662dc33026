#!/usr/bin/env perl
# A session that waits for a slot is woken immediately however a slot becomes free, and no wake-up
# is lost.
# Runs alone: it measures how soon a waiter goes on.
use AdvisoryTest;
use List::Util qw(max);
use Semaphores;
use Time::HiRes qw(time);

use constant {
    WOKEN_MS => 300, PREPARED_MS => 1500, REPETITIONS => 3,
    # a waiter that is not woken looks after 1 s
    RACES => 60, LOST_MS => 800,
};

srand 4711;

my $look = observer();

# The ways in which a slot becomes free: how the holder gets it, and how it loses it.
my $HAS      = q(SELECT advisory.acquire('sem', 'woken', %d));
my $XACT_HAS = q(SELECT advisory.xact_acquire('sem', 'woken', %d));
# Two gates, which are locks of the observer: one is opened when the slot shall become free, the
# other one when the waiter has it.
my $GOES_ON  = 'pg_advisory_xact_lock(98)';
sub run_all ($session, @statements) { $session->query($_) for @statements; return }
my @frees = (
    [ 'release()', [$HAS], [ releases('woken') ] ],
    [ 'release() in a statement that goes on', [$HAS],
        sub { $_[0]->start(releases('woken') . ", $GOES_ON") } ],
    [ 'unlock_all(namespace)', [$HAS], [ q(SELECT advisory.unlock_all('sem')) ] ],
    [ 'COMMIT', [ 'BEGIN', $XACT_HAS ], ['COMMIT'] ],
    [ 'ROLLBACK', [ 'BEGIN', $XACT_HAS ], ['ROLLBACK'] ],
    [ 'ROLLBACK TO SAVEPOINT', [ 'BEGIN', 'SAVEPOINT s', $XACT_HAS ], ['ROLLBACK TO SAVEPOINT s'] ],
    [ 'an error in a transaction', [ 'BEGIN', $XACT_HAS ], ['SELECT 1/0'] ],
    [ 'pg_advisory_unlock_all()', [$HAS], ['SELECT pg_advisory_unlock_all()'] ],
    [ 'DISCARD ALL', [$HAS], ['DISCARD ALL'] ],
    [ 'a client that leaves',                 [$HAS],
        sub { $_[0]->disconnect } ],
    [ 'a client that leaves in a transaction', [ 'BEGIN', $XACT_HAS ],
        sub { $_[0]->disconnect } ],
    [ 'pg_terminate_backend()',               [$HAS],
        sub { $look->value('SELECT pg_terminate_backend(?)', $_[0]->pid) } ],
    [ 'an error that PL/pgSQL catches',       ['SELECT 1'],
        sub { $look->run('SELECT pg_advisory_unlock(97)') },
        "DO \$\$ BEGIN
                    PERFORM advisory.xact_acquire('sem', 'woken', %d), pg_advisory_xact_lock(97);
                    RAISE division_by_zero;
                EXCEPTION WHEN division_by_zero THEN
                    PERFORM $GOES_ON;
                END \$\$" ],
    # A cursor that is older than the savepoint keeps its slot.
    (map { [ "$_->[-1] after ROLLBACK TO, of a cursor", [ 'BEGIN', 'SAVEPOINT before',
        "DECLARE c CURSOR FOR $XACT_HAS", 'SAVEPOINT s', 'FETCH c', 'ROLLBACK TO SAVEPOINT s' ],
        $_ ] } [ 'CLOSE c', 'COMMIT' ], ['ROLLBACK'], [ 'CLOSE c', 'ROLLBACK TO SAVEPOINT before' ],
        ['ROLLBACK TO SAVEPOINT before']),
    [ 'COMMIT PREPARED',   [ 'BEGIN', $XACT_HAS, q(PREPARE TRANSACTION 'slot') ],
        sub { $look->run(q(COMMIT PREPARED 'slot')) } ],
    [ 'ROLLBACK PREPARED', [ 'BEGIN', $XACT_HAS, q(PREPARE TRANSACTION 'slot') ],
        sub { $look->run(q(ROLLBACK PREPARED 'slot')) } ],
);

# How many milliseconds after the slot became free the wait ends.
sub delay ($slots, $before, $free, $statement = undef) {
    my ($holder, $waiter) = map { session(application => $_) } qw(holder waiter);
    my $with_slots = sub { $_[0] =~ s/%d/$slots/r };
    $look->run('SELECT pg_advisory_lock(gate) FROM unnest(ARRAY[97, 98]) AS gate');
    $holder->run(map { $with_slots->($_) } @$before);
    if ($statement) {
        $holder->start($with_slots->($statement));
        wait_until('the holder has its slot', sub { @{ slots_of($holder) } == 1 });
    }
    in_queue($waiter, $with_slots->("$HAS, extract(epoch FROM clock_timestamp())"));
    my ($from, $stalled) = (time, stalled($waiter, $holder, $look));
    ref $free eq 'CODE' ? $free->($holder) : run_all($holder, @$free);
    my $result = $waiter->finish;
    $stalled = max(0, stalled($waiter, $holder, $look) - $stalled);
    die $result->{message} if $result->{state};
    $look->run('SELECT pg_advisory_unlock_all()');
    $holder->finish if $holder->{sth};
    leave($look, $waiter, $holder);
    return 1000 * ($result->{rows}[0][1] - $from - $stalled);
}

for my $slots (2, 1) {
    my $rest = $slots == 2 ? holder('woken', 2) : undef;
    for my $case (@frees) {
        my ($what, @how) = @$case;
        my $limit = $what =~ /PREPARED/ && $slots > 1 ? PREPARED_MS : WOKEN_MS;
        my @delays = map { delay($slots, @how) } 1 .. REPETITIONS;
        cmp_ok(median(@delays), '<', $limit, "K = $slots, woken by $what")
            or diag "after ms: @delays";
        note sprintf 'K = %d, %s: %s ms', $slots, $what, join ', ',
            map { sprintf '%.1f', $_ } @delays;
    }
    leave($look, $rest) if $rest;
}

# If the first waiter is cancelled at the moment at which a slot becomes free, the second one gets
# the slot at once, or after the first one.
{
    my $rest = holder('race', 2);
    my $from = holder('race', 2);
    my ($first, $second, $killer) = map { session() } 1 .. 3;
    my (%ends, @late);
    for (1 .. RACES) {
        for my $waiter ($first, $second) {
            in_queue($waiter, acquires('race', 2) . ', extract(epoch FROM clock_timestamp())');
        }
        $killer->start(sprintf 'SELECT pg_sleep(%f), pg_cancel_backend(%d)', 0.0005 * int rand 4,
            $first->pid);
        $from->start(sprintf q(SELECT pg_sleep(%f), advisory.release('sem', 'race')),
            0.0005 * int rand 4);
        $_->finish for $killer, $from;
        $ends{ $first->finish->{state} // 'served' }++;
        my ($free, $stalled) = (time, stalled($first, $second));
        # (If it was cancelled when it had the slot already, it keeps the slot in spite of the
        # error, as it would any lock.)
        $first->run(q(SELECT advisory.unlock_all('sem')));
        my $result = $second->finish;
        push @late, 1000 * ($result->{rows}[0][1] - $free - (stalled($first, $second) - $stalled));
        $second->run(releases('race'));
        $from->run(acquires('race', 2));
    }
    note join ', ', map { "$_: $ends{$_}" } sort keys %ends;
    is_deeply([ grep { !/^(57014|served)$/ } keys %ends ], [],
        'a cancel and a release at the same time: the first waiter is cancelled or gets the slot');
    cmp_ok(max(@late), '<', LOST_MS, 'no wake-up is lost');
}
done_testing();
