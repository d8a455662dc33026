#!/usr/bin/env perl
# Deadlocks over semaphore slots are found, and a wait that some slot will end is not reported as
# one.
use AdvisoryTest;
use Semaphores;
use Time::HiRes qw(sleep time);

# A deadlock is found deadlock_timeout after the wait began, or 1 s after the cycle was closed.
use constant CHECKED_S => 2;

my $look = observer();

{
    $look->run('CREATE TABLE row (id int PRIMARY KEY, n int DEFAULT 0)',
        'INSERT INTO row VALUES (1)');

    # Both holders of a semaphore wait for a lock that the waiter for a slot holds; the second of
    # them begins later.
    my @holders = map { holder('dead', 2) } 1, 2;
    my $waiter = session()->run(q(SELECT advisory.lock('sem', 'in the way')));
    in_queue($waiter, acquires('dead', 2));
    $holders[0]->start(q(SELECT advisory.lock('sem', 'in the way')));
    waits($look, $holders[0]);

    # The same with a table's row instead of the lock, in transactions.
    my @writers = map { session()->run('BEGIN',
            q(SELECT advisory.xact_acquire('sem', 'dead rows', 2))) } 1, 2;
    my $row_waiter = session()->run('BEGIN', 'UPDATE row SET n = n + 1');
    in_queue($row_waiter, q(SELECT advisory.xact_acquire('sem', 'dead rows', 2)));
    $writers[0]->start('UPDATE row SET n = n + 10');
    waits($look, $writers[0]);

    # All holders wait for a transaction that will end.
    my $idle = session()->run('BEGIN', q(SELECT advisory.xact_lock('sem', 'for long')));
    my @blocked = map { holder('alive', 2) } 1, 2;
    waits($look, $_, q(SELECT advisory.xact_lock('sem', 'for long'))) for @blocked;
    my ($patient) = queue_up('alive', 2, { before => q(SELECT advisory.lock('sem', 'patient')) });
    # One holder waits for a lock of the second waiter; the other holder will release its slot.
    my @half = map { holder('half', 2) } 1, 2;
    my ($head, $second) = queue_up('half', 2, {},
        { before => q(SELECT advisory.lock('sem', 'second')) });
    $half[0]->start(q(SELECT advisory.lock('sem', 'second')));
    waits($look, $half[0]);

    # Two sessions hold all slots of one semaphore each, and wait for the other semaphore.
    my %all = (x => holder('x', 2, 2), y => holder('y', 2, 2));
    $all{x}->start(acquires('y', 2));
    in_queue($all{x});
    my $from = time;
    $all{y}->start(acquires('x', 2));

    # A session waits for a semaphore all of whose slots it holds itself.
    my %alone = map { $_ => holder("alone $_", $_, $_) } 1, 2;
    $alone{$_}->start(acquires("alone $_", $_)) for 1, 2;

    wait_until('the deadlocks of one session are found',
        sub { !grep { !$_->is_done } values %alone });
    is_deeply([ map { $_->finish->{state} } @alone{ 1, 2 } ], [ ('40P01') x 2 ],
        'a session that waits for its own slots: a deadlock');
    wait_until('the deadlock of two sessions is found', sub { grep { $_->is_done } values %all });
    note sprintf 'crosswise: found after %.1f s', time - $from;
    # By then the other waits would have been reported, if they were taken for deadlocks.
    sleep CHECKED_S;
    my @victims = grep { $all{$_}->is_done } keys %all;
    is(scalar @victims, 1,
        'two sessions that hold all of one semaphore and wait for the other: one gives up');
    my ($victim) = @victims;
    my ($winner) = grep { $_ ne $victim } keys %all;
    my $result = $all{$victim}->ends('40P01', 'with a deadlock');
    for my $pid (map { $_->pid } values %all) {
        like($result->{detail},
            qr/\bProcess $pid waits for one of the 2 slots of .*; blocked by process/,
            "whose detail says what process $pid waits for");
    }
    like($result->{context}, qr{semaphore "sem/$winner"}, 'and whose context names the semaphore');
    is(scalar @{ slots_of($all{$victim}) }, 2, 'it still has its slots');
    $all{$victim}->run(releases($victim));
    like($all{$winner}->finish->{value}, qr/^[12]$/,
        'and as soon as it releases one, the other goes on');

    ok(!$waiter->is_done && !$holders[0]->is_done, 'no deadlock while one holder can go on');
    ok(!$row_waiter->is_done && !$writers[0]->is_done, 'also with a table\'s row');
    ok(!(grep { $_->is_done } $patient, @blocked),
        'no deadlock while all wait for a transaction that will end');
    ok(!(grep { $_->is_done } $head, $second, $half[0]),
        'no deadlock over the second waiter while the other holder can go on');

    $from = time;
    $holders[1]->start(q(SELECT advisory.lock('sem', 'in the way')));
    $writers[1]->start('UPDATE row SET n = n + 100');
    wait_until('the deadlock is found', sub { grep { $_->is_done } $waiter, @holders });
    note sprintf 'found after %.1f s', time - $from;
    ok($waiter->is_done && !$holders[0]->is_done && !$holders[1]->is_done,
        'a deadlock when the other holder waits, too');
    $result = $waiter->ends('40P01', 'the waiter for the slot gives up');
    my ($w, $a, $b) = map { $_->pid } $waiter, @holders;
    my $blocked = qr/blocked by processes (?:$a, $b|$b, $a)/;
    like($result->{detail}, qr/^Process $w waits for one of the 2 slots of .*; $blocked\.$/m,
        'the detail names its blockers');
    like($result->{detail},
        qr/^Process $_ waits for ExclusiveLock on .*; blocked by process(?:es)? .*\b$w\b/m,
        "and says what process $_ waits for") for $a, $b;
    is_deeply([ map { scalar @{ slots_of($_) } } $waiter, @holders ], [ 0, 1, 1 ],
        'it has no slot');
    $waiter->run(q(SELECT advisory.unlock('sem', 'in the way')));
    $holders[0]->finish;
    $holders[0]->run(releases('dead'), q(SELECT advisory.unlock('sem', 'in the way')));
    $holders[1]->returns(1, 'the others go on');
    like($waiter->value(acquires('dead', 2)), qr/^[12]$/, 'and it gets a slot then');

    wait_until('the deadlock over the table\'s row is found',
        sub { grep { $_->is_done } $row_waiter, @writers });
    $result = $row_waiter->ends('40P01', 'the deadlock over the table\'s row, too');
    $row_waiter->run('ROLLBACK');
    $writers[0]->ends(undef, 'the first writer goes on');
    $writers[0]->run('COMMIT');
    $writers[1]->ends(undef, 'and the second');
    $writers[1]->run('COMMIT');
    $look->shows('SELECT n FROM row', 110, 'with the changes of both');

    $idle->run('COMMIT');
    is_deeply([ map { $_->finish->{state} } @blocked ], [ undef, undef ],
        'the transaction ends, and those that waited for it go on');
    $blocked[1]->run(releases('alive'));
    like($patient->finish->{value}, qr/^[12]$/, 'as does the session that waited for their slots');
    $half[1]->run(releases('half'));
    like($head->finish->{value}, qr/^[12]$/, 'the first waiter of the other queue gets its slot');
    $head->run(releases('half'));
    like($second->finish->{value}, qr/^[12]$/, 'then the second waiter');
    $second->run(q(SELECT advisory.unlock('sem', 'second')));
    $half[0]->returns(1, 'and then the holder that waited for its lock');
    leave($look, $waiter, @holders, $row_waiter, @writers, $idle, @blocked, $patient, @half, $head,
        $second, values %all, values %alone);
    $look->shows('SELECT count(*) FROM advisory.semaphores', 0,
        'no session holds or awaits a slot afterwards');
}

# A session that waits behind a cycle, but is no part of it, does not give up.
{
    my %all = map { $_ => holder("cycle $_", 2, 2) } 1, 2;
    my @crosswise = queue_up('cycle 1', 2, {}, {});
    for (1, 2) {
        $all{$_}->start(acquires('cycle ' . (3 - $_), 2));
        in_queue($all{$_});
    }
    # The holders of all slots wait for a lock of the second waiter.
    my @holders = map { holder('cycle', 2) } 1, 2;
    my ($ahead, $culprit) = queue_up('cycle', 2, {},
        { before => q(SELECT advisory.lock('sem', 'cycle')) });
    waits($look, $_, q(SELECT advisory.lock('sem', 'cycle'))) for @holders;
    # The holders have a deadlock of their own, over locks, which the server resolves.
    my @natives = map { holder('native', 2)->run("SELECT advisory.lock('sem', 'native $_')") } 1, 2;
    my ($stands_by) = queue_up('native', 2, {});
    for (1, 2) {
        $natives[ $_ - 1 ]->start("SELECT advisory.lock('sem', 'native @{[3 - $_]}')");
        waits($look, $natives[ $_ - 1 ]);
    }
    for my $cycle ([ values %all ], [$culprit], \@natives) {
        wait_until('the deadlock is found', sub { grep { $_->is_done } @$cycle });
    }
    sleep CHECKED_S;
    my $what_of = sub { return [ map { $_->is_done ? $_->finish->{state}
            // 'goes on' : 'waits' } @_ ] };
    is_deeply([ sort @{ $what_of->(values %all) } ], [qw(40P01 waits)],
        'a cycle over two semaphores: one gives up');
    is_deeply($what_of->(@crosswise), [qw(waits waits)], 'sessions that wait behind it wait on');
    is_deeply($what_of->($culprit, @holders), [qw(40P01 waits waits)],
        'a cycle over a lock of the second waiter: that one gives up');
    is_deeply($what_of->($ahead), ['waits'], 'the first waiter waits on');
    is_deeply([ sort @{ $what_of->(@natives) } ], [qw(40P01 waits)],
        'a deadlock of the holders over locks: one of them gives up');
    is_deeply($what_of->($stands_by), ['waits'],
        'a session that waits for a slot of theirs waits on');
    leave($look, values %all, @crosswise, $ahead, $culprit, @holders, @natives, $stands_by);
}

# A session that waits for a semaphore of which it has a slot itself. The search comes to it before
# it knows that another holder can go on, and once more later, by another way; and the same again
# with a semaphore whose other holder waits for this session.
{
    my $idle = session()->run(q(SELECT advisory.lock('sem', 'idle')));
    my %of = map { $_ => [ holder($_, 2), holder($_, 2) ] } qw(inner middle outer);
    my @sharing = map { session()->run(q(SELECT advisory.lock_shared('sem', 'shared'))) } 1 .. 3;
    $of{$_}[0]->run("SELECT advisory.lock('sem', '$_')") for qw(inner middle);
    my $wait_for_slot = sub ($session, $semaphore) {
        in_queue($session, acquires($semaphore, 2));
        return
    };
    my $wait_for_lock = sub ($session, $lock) {
        waits($look, $session, "SELECT advisory.lock('sem', '$lock')");
        return
    };
    $wait_for_slot->($_, 'inner')  for $of{inner}[0],  $sharing[0];
    $wait_for_slot->($_, 'middle') for $of{middle}[0], $sharing[1];
    $wait_for_lock->($of{inner}[1],  'idle');
    $wait_for_lock->($of{middle}[1], 'inner');
    $wait_for_lock->($of{outer}[0],  'shared');
    $wait_for_lock->($of{outer}[1],  'middle');
    $wait_for_slot->($sharing[2], 'outer');
    sleep CHECKED_S;
    my @all = ((map { @$_ } values %of), @sharing);
    is_deeply([ grep { $_->is_done } @all ], [],
        'no deadlock over slots of its own that others can go on without');
    $idle->run(q(SELECT advisory.unlock('sem', 'idle')));
    is($of{inner}[1]->finish->{value}, 1, 'and one of them goes on');
}

{
    # So deep in a recursion that the stack is too full to search, a session waits on. Where the
    # call itself still works is tried out.
    $look->run(
        q(CREATE FUNCTION deep(n int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN IF n = 0 THEN RETURN advisory.acquire('sem', 'deep', 2, '60ms'); END IF;
        RETURN deep(n - 1); END $$)
    );
    my $holder = holder('deep', 2, 2);
    my $deep   = session()->run(q(SET deadlock_timeout = '5ms'));
    my $depth = 40;
    my $state_at = sub ($kb) { return $deep->run("SET max_stack_depth = '${kb}kB'")
        ->query("SELECT deep($depth)")->{state} // 'no error' };
    my %times;

    # Planning needs more of the stack than the search, so it comes first.
    $deep->query('SELECT deep(20)') for 1 .. 8;
    # So deep that the smallest stack is too small, which depends on the server's build.
    $depth += 20 while $state_at->(100) ne '54001' and $depth < 1000;
    for my $kb (100 .. 1000) {
        $times{ $state_at->($kb) }++;
        last if ($times{'55P03'} // 0) > 5;
    }
    is_deeply([ sort keys %times ], [qw(54001 55P03)], 'with a full stack there is no deadlock');
}
done_testing();
