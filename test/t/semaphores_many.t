#!/usr/bin/env perl
# Several slots of a semaphore at once: all or none, in the order of the queue, whatever ends a
# wait; and deadlocks over sets of slots.
use AdvisoryTest;
use Semaphores;
use Time::HiRes qw(sleep);

# A deadlock is found deadlock_timeout after the wait began, or 1 s after the cycle was closed.
use constant { CHECKED_S => 2, SOON_S => 60, AT_ONCE_S => 0.7 };

my $look = observer();

sub acquires_many ($name, $slots, $wanted, @rest) {
    return sprintf q(SELECT advisory.acquire_many('sem', '%s', %s)), $name,
        join ', ', $slots, $wanted, map { "'$_'" } @rest;
}

sub tries_many ($name, $slots, $wanted) {
    return "SELECT advisory.try_acquire_many('sem', '$name', $slots, $wanted)";
}

sub gives_back ($name, $list) { return "SELECT advisory.release_many('sem', '$name', '$list')" }

# As shows() and returns(), of slots.
sub has ($result, $slots, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply($result->{value}, $slots, $name) || diag explain $result;
}

# A session that has these slots, which are the lowest, of this semaphore.
sub many_holder ($name, $slots, $wanted) {
    return session(application => 'holder')->run(acquires_many($name, $slots, $wanted));
}

# All slots are free, and marked as free.
sub all_free ($name, $slots, $what) {
    my $session = session();
    $session->shows("SELECT cardinality(advisory.try_acquire_many('sem', '$name', $slots, $slots))",
        $slots, $what);
    leave($look, $session);
    return;
}

# ---- The queue -----------------------------------------------------------------------------------

{
    my $holder = many_holder('queue', 4, 4);
    my $other = session(application => 'other');
    my ($heavy, $light) = queue_up('queue', 4, { asks => acquires_many('queue', 4, 2) }, {});
    $holder->run(gives_back('queue', '{3}'));
    sleep CHECKED_S;
    ok(!$heavy->is_done && !$light->is_done,
        'a slot that is free is set aside for the waiter at the head, which wants two');
    $other->shows(tries('queue', 4), 'NULL', 'and is not for those that try');
    $other->shows(tries_many('queue', 4, 1), 'NULL', 'in either way');
    is(scalar @{ slots_of($heavy) }, 0, 'nor does the waiter hold it');
    $other->shows(tries('queue', 5), 5, 'only a slot that the head cannot use is');
    $other->run('SELECT advisory.release(\'sem\', \'queue\')');
    $look->shows(q(SELECT waiting, slots_wanted, in_use, free FROM advisory.semaphores
        WHERE name = 'queue'), '2|3|3|1', 'semaphores says how many slots the waiters want');
    my $took = undisturbed_time(sub {
        $holder->run(gives_back('queue', '{1}'));
        has($heavy->finish(SOON_S), [ 1, 3 ], 'with the next one it has both');
    }, $holder, $heavy);
    cmp_ok($took, '<', AT_ONCE_S, 'at once');
    ok(!$light->is_done, 'and the one behind it waits on');
    $heavy->run(gives_back('queue', '{3}'));
    $light->returns(3, 'for the next slot');
    leave($look, $holder, $other, $heavy, $light);
    all_free('queue', 4, 'afterwards all are free');
}

# Several that wait: in their order, each as soon as there is enough for it and for all before it.
{
    my $holder = many_holder('order', 6, 6);
    my @waiters = queue_up('order', 6, map { { asks => acquires_many('order', 6, $_) } } 3, 1, 2);
    $holder->run(gives_back('order', '{1,2}'));
    sleep CHECKED_S;
    is_deeply([ map { $_->is_done ? 1 : 0 } @waiters ], [ 0, 0, 0 ],
        'two are too few for the head');
    $holder->run(gives_back('order', '{3,4,5}'));
    my @served = map { $_->finish(SOON_S)->{value} } @waiters[ 0, 1 ];
    is_deeply([ map { scalar @$_ } @served ], [ 3, 1 ],
        'five are enough for the head and the second');
    ok(!$waiters[2]->is_done, 'but not for the third');
    $holder->run(gives_back('order', '{6}'));
    push @served, $waiters[2]->finish(SOON_S)->{value};
    is_deeply([ sort map { @$_ } @served ], [ 1 .. 6 ],
        'which has what is left, and one more');
    leave($look, $holder, @waiters);
}

# What ends the wait of the head: the others have what was set aside for it at once.
for my $case (
    [ cancel => sub ($head) { $look->run('SELECT pg_cancel_backend(' . $head->pid . ')') },
        '57014' ],
    [ kill => sub ($head) { $look->run('SELECT pg_terminate_backend(' . $head->pid . ')') },
        undef ],
    [ timeout => undef, '55P03', '300ms' ]) {
    my ($how, $end, $state, @timeout) = @$case;
    my $holder = many_holder($how, 3, 2);
    my ($head) = queue_up($how, 3, { asks => acquires_many($how, 3, 2, @timeout) });
    my $light = session(application => 'light');
    $light->start(acquires($how, 3));
    in_queue($light) if !@timeout;
    $end->($head) if $end;
    $light->returns(3, "$how: the next one has the slot");
    $head->ends($state, "$how: the head has an error") if $state;
    is(scalar @{ slots_of($head) }, 0, "$how: and nothing") if $state;
    leave($look, $holder, $light, $state ? $head : ());
    all_free($how, 3, "$how: all are free afterwards");
}

# ---- Slots that nobody marks as free -------------------------------------------------------------

{
    my $prepares = session()->run('BEGIN',
        q(SELECT advisory.xact_acquire_many('sem', 'prepared', 4, 2)),
        q(PREPARE TRANSACTION 'set'));
    my $holder = session()->run(acquires_many('prepared', 4, 1));
    my ($heavy) = queue_up('prepared', 4, { asks => acquires_many('prepared', 4, 3) });
    sleep CHECKED_S;
    ok(!$heavy->is_done, 'the slots of a prepared transaction are taken');
    leave($look, $prepares);
    $look->run(q(COMMIT PREPARED 'set'));
    has($heavy->finish(SOON_S), [ 1, 2, 4 ],
        'and come free with its end, though no session marks them');
    leave($look, $holder, $heavy);
    all_free('prepared', 4, 'afterwards all are free');
}

# ---- Transactions --------------------------------------------------------------------------------

{
    my $session = session()->run('BEGIN', 'SAVEPOINT s');
    has($session->query(q(SELECT advisory.xact_acquire_many('sem', 'savepoint', 3, 2))), [ 1, 2 ],
        'in a subtransaction');
    has($session->query(q(SELECT advisory.try_xact_acquire_many('sem', 'savepoint', 3, 1, '10ms'))),
        [3], 'and one more, with a timeout');
    $session->run('ROLLBACK TO s');
    is(scalar @{ slots_of($session) }, 0, 'its rollback frees all');
    all_free('savepoint', 3, 'for others at once');
    $session->run(acquires_many('savepoint', 3, 2));
    my $other = session();
    $other->shows(tries_many('savepoint', 3, 2), 'NULL', 'two of one that is left: none');
    is(scalar @{ slots_of($other) }, 0, 'and no part');
    $session->run('ROLLBACK');
    is(scalar @{ slots_of($session) }, 2, 'session-level slots survive the rollback');
    $session->run('SELECT pg_advisory_unlock_all()');
    all_free('savepoint', 3, 'pg_advisory_unlock_all() frees them');
    leave($look, $session, $other);
}

# ---- Deadlocks -----------------------------------------------------------------------------------

{
    # Two that have two of four slots each and want two more.
    my @each = map { many_holder('crosswise', 4, 2) } 1, 2;
    in_queue($_, acquires_many('crosswise', 4, 2)) for @each;

    # A holder that wants one more waits behind one that wants both: the free slot is set aside.
    my $greedy = holder('behind', 2);
    my ($head) = queue_up('behind', 2, { asks => acquires_many('behind', 2, 2) });
    $greedy->start(acquires('behind', 2));

    # Two semaphores, with sets.
    my %all = (x => many_holder('x', 3, 2), y => many_holder('y', 3, 2));
    in_queue($all{x}, acquires_many('y', 3, 2));
    in_queue($all{y}, acquires_many('x', 3, 2));

    # Behind a head that will go on.
    my $patient = many_holder('alive', 3, 2);
    my ($first, $behind) = queue_up('alive', 3, { asks => acquires_many('alive', 3, 3) },
        { before => q(SELECT advisory.lock('sem', 'of the last')) });
    # One holder of three waits for the waiter, which wants two: the other two are enough.
    my @three = map { holder('enough', 3) } 1 .. 3;
    my ($two) = queue_up('enough', 3,
        { before => q(SELECT advisory.lock('sem', 'of two')),
            asks => acquires_many('enough', 3, 2) });
    waits($look, $three[0], q(SELECT advisory.lock('sem', 'of two')));
    # And two of three: the one that is left is too few.
    my @few = map { holder('few', 3) } 1 .. 3;
    my ($dead) = queue_up('few', 3,
        { before => q(SELECT advisory.lock('sem', 'of dead')),
            asks => acquires_many('few', 3, 2) });
    waits($look, $_, q(SELECT advisory.lock('sem', 'of dead'))) for @few[ 0, 1 ];

    # Callers who disagree: what is set aside for a head with two slots is not for one with three.
    my $of_three = holder('fewer', 3);
    my ($two_only) = queue_up('fewer', 3, { asks => acquires_many('fewer', 2, 2) });
    my ($wants_two) = queue_up('fewer', 3, { before => q(SELECT advisory.lock('sem', 'fewer')),
        asks => acquires_many('fewer', 3, 2) });
    waits($look, $of_three, q(SELECT advisory.lock('sem', 'fewer')));
    # The nearest that wants several will go on, the one before it never.
    my $of_six = holder('more', 6);
    my ($all_four, $three_of_six) = queue_up('more', 6, { asks => acquires_many('more', 4, 4) },
        { asks => acquires_many('more', 6, 3) });
    my ($wants_one) = queue_up('more', 6, { before => q(SELECT advisory.lock('sem', 'more')),
        asks => acquires('more', 4) });
    waits($look, $of_six, q(SELECT advisory.lock('sem', 'more')));

    for my $cycle (\@each, [ $greedy, $head ], [ values %all ], [ $dead, @few[ 0, 1 ] ],
        [ $two_only, $wants_two ], [ $all_four, $wants_one ]) {
        wait_until('the deadlock is found', sub { grep { $_->is_done } @$cycle });
    }
    sleep CHECKED_S;
    for my $cycle ([ 'crosswise', @each ], [ 'behind the head', $greedy, $head ],
        [ 'two semaphores', values %all ], [ 'too few', $dead ],
        [ 'a head with fewer slots', $two_only, $wants_two ],
        [ 'not the nearest', $all_four, $wants_one ]) {
        my ($what, @sessions) = @$cycle;
        my @victims = grep { $_->{state} } map { $_->is_done ? $_->finish : () } @sessions;
        is_deeply([ map { $_->{state} } @victims ], ['40P01'], "$what: one gives up");
        my $blocked = qr/blocked by process(?:es)? [1-9]\d*(?:, [1-9]\d*)*/;
        like($victims[0]{detail},
            qr/^Process \d+ waits for (?:2|one) of the [2346] slots of .*; $blocked\.$/m,
            "$what: and says what it waited for");
    }
    ok(!(grep { $_->is_done } $first, $behind), 'no deadlock behind a head that will go on');
    ok(!(grep { $_->is_done } $two, $three[0]), 'nor while as many as are wanted will come free');
    $patient->run(gives_back('alive', '{1,2}'));
    has($first->finish(SOON_S), [ 1, 2, 3 ], 'the head goes on');
    $_->run(releases('enough')) for @three[ 1, 2 ];
    has($two->finish(SOON_S), [ 2, 3 ], 'and so does the other');
    # A session that still waits does not answer.
    $look->run("SELECT pg_terminate_backend($_)") for map { $_->pid } @each, $greedy, $head,
        values %all, $patient, $first, $behind, @three, $two, @few, $dead, $of_three, $two_only,
        $wants_two, $of_six, $all_four, $three_of_six, $wants_one;
    wait_until('nobody holds or awaits a slot',
        sub { !$look->value('SELECT count(*) FROM advisory.semaphores') });
}

# ---- What people read ----------------------------------------------------------------------------

{
    my $holder = many_holder('shown', 3, 2);
    my ($heavy) = queue_up('shown', 3, { asks => acquires_many('shown', 3, 2) });
    my $other = session(application => 'other');
    my $result = $other->query(acquires_many('shown', 3, 3, '10ms'));
    is($result->{state}, '55P03', 'an error');
    like($result->{message}, qr{could not obtain 3 slots of semaphore "sem/shown" within 10 ms},
        'says how many slots');
    like($result->{detail}, qr/^Process @{[ $heavy->pid ]} .*\bwaits for 2 slots;/m,
        'and how many a waiter ahead wants');
    like($look->value('SELECT string_agg(line, chr(10)) FROM advisory.wait_tree() AS line'),
        qr{holds\ 2\ slots\ of\ sem/shown\ .*\n.*waits\ for\ 2\ slots\ of\ sem/shown}x,
        'as wait_tree() does');
    $look->shows('SELECT lock, waiters FROM advisory.blockers', '2 slots of sem/shown|1',
        'blockers names the holder');
    leave($look, $holder, $other);
    is(scalar @{ $heavy->finish(SOON_S)->{value} }, 2, 'and the waiter goes on');
}

{
    # The slot of a prepared transaction, of which nobody who is left knows. What was to be taken
    # beside it is free again.
    my ($first, $second) = map { session() } 1 .. 2;
    has($first->query(tries_many('beside', 3, 1)), [1], 'one has the first slot');
    $second->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'beside', 3)),
        q(PREPARE TRANSACTION 'beside'));
    leave($look, $first, $second);
    my $third = session();
    has($third->query(tries_many('beside', 3, 2)), [ 1, 3 ], 'the others are found around it');
    $look->run(q(ROLLBACK PREPARED 'beside'));
    leave($look, $third);
}
done_testing();
