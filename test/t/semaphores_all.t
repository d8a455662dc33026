#!/usr/bin/env perl
# One slot of each of several semaphores: all or none, in turn, whatever ends a wait; and deadlocks.
use AdvisoryTest;
use Semaphores;
use Time::HiRes qw(sleep);

# A deadlock is found deadlock_timeout after the wait began, or 1 s after the cycle was closed.
use constant { CHECKED_S => 2, SOON_S => 60, AT_ONCE_S => 0.7 };

my $look = observer();

# The names and numbers of slots of several semaphores: acquires_all(a => 1, b => 2).
sub lists (%slots) {
    my @names = sort keys %slots;
    return sprintf q('sem', '{%s}', '{%s}'), join(',', @names), join ',', @slots{@names};
}

sub acquires_all (%slots) { return 'SELECT advisory.acquire_all(' . lists(%slots) . ')' }

sub tries_all (%slots) { return 'SELECT advisory.try_acquire_all(' . lists(%slots) . ')' }

# As shows() and returns(), of slots.
sub has ($result, $slots, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply($result->{value}, $slots, $name) || diag explain $result;
}

sub gives_back ($session, @names) {
    $session->run("SELECT advisory.release('sem', '$_')") for @names;
    return;
}

sub gives_back_slot ($session, $name, $slot) {
    $session->run("SELECT advisory.release('sem', '$name', $slot)");
    return;
}

# Nobody has or awaits a slot of these, and all are marked as free.
sub all_free ($what, %slots) {
    my $session = session();
    for my $name (sort keys %slots) {
        $session->shows("SELECT cardinality(advisory.try_acquire_many('sem', '$name', "
                . "$slots{$name}, $slots{$name}))",
            $slots{$name}, "$what: all of $name are free");
    }
    leave($look, $session);
    return;
}

# ---- All or none ---------------------------------------------------------------------------------

{
    my %slots = (tenant => 2, vendor => 1);
    my $holder = holder('vendor', 1);
    my ($both) = queue_up('', 0, { asks => acquires_all(%slots) });
    sleep CHECKED_S;
    ok(!$both->is_done, 'who lacks one of two waits');
    is(scalar @{ slots_of($both) }, 0, 'and has no part meanwhile');
    my $other = session(application => 'other');
    $other->shows(tries('tenant', 2), 1, 'others get what it cannot use');
    $other->shows(tries('tenant', 2), 'NULL', 'but not what is set aside for it');
    $other->shows(tries_all(tenant => 2, elsewhere => 1), 'NULL', 'in either way');
    $look->shows(q(SELECT waiting FROM advisory.semaphores WHERE name = 'vendor'), 1,
        'semaphores counts it where it lacks a slot');
    my $took = undisturbed_time(sub {
        gives_back($holder, 'vendor');
        has($both->finish(SOON_S), [ 2, 1 ], 'it has both when the vendor comes free');
    }, $holder, $both);
    cmp_ok($took, '<', AT_ONCE_S, 'at once');
    leave($look, $holder, $other, $both);
    all_free('afterwards', %slots);
}

# ---- In turn -------------------------------------------------------------------------------------

# Of those that could be served, the first is: here, the one that waits for both, then the others.
{
    my ($first, $second) = map { holder($_, 1) } qw(x y);
    my @waiters = queue_up('', 0, { asks => acquires('x', 1) },
        { asks => acquires_all(x => 1, y => 1) }, { asks => acquires_all(y => 1, z => 1) },
        { asks => acquires('y', 1) }, { asks => acquires('x', 1) });
    my $done = sub { join '', map { $_->is_done ? 1 : 0 } @waiters };
    gives_back($second, 'y');
    sleep CHECKED_S;
    is($done->(), '00000', 'y is set aside for the first that wants both');
    gives_back($first, 'x');
    $waiters[0]->returns(1, 'x is for the one that came before it');
    is($done->(), '10000', 'and for nobody else');
    gives_back($waiters[0], 'x');
    has($waiters[1]->finish(SOON_S), [ 1, 1 ], 'then it has both');
    gives_back($waiters[1], 'y');
    has($waiters[2]->finish(SOON_S), [ 1, 1 ], 'then the next one has what it wants');
    gives_back($waiters[1], 'x');
    $waiters[4]->returns(1, 'and x goes to the next one');
    gives_back($waiters[2], 'y');
    $waiters[3]->returns(1, 'as y does');
    leave($look, $first, $second, @waiters);
    all_free('in turn', x => 1, y => 1, z => 1);
}

# Opposite orders, and three in a circle: all are served, nobody is in a deadlock.
{
    my @sessions = map { session(application => 'opposite') } 1 .. 9;
    my @pairs = ('{a,b}', '{b,a}', '{b,c}', '{c,b}', '{c,a}', '{a,c}');
    $_->run("SET deadlock_timeout = '10ms'") for @sessions;
    my %served = (errors => 0);
    for my $round (1 .. 20) {
        for my $i (0 .. $#sessions) {
            $sessions[$i]->start(sprintf q(
                SELECT set_config('test.slots', advisory.acquire_all('sem', '%s', '{1,1}')::text,
                                  false), pg_sleep(0.002), pg_advisory_unlock_all()),
                $pairs[ ($i + $round) % @pairs ]);
        }
        for my $session (@sessions) {
            my $state = $session->finish(SOON_S)->{state};
            $served{ defined $state ? 'errors' : 'served' }++;
        }
    }
    is_deeply(\%served, { served => 180, errors => 0 }, 'in opposite orders all are served');
    leave($look, @sessions);
    all_free('opposite', a => 1, b => 1, c => 1);
}

# ---- What ends the wait --------------------------------------------------------------------------

for my $case (
    [ cancel => sub ($head) { $look->run('SELECT pg_cancel_backend(' . $head->pid . ')') },
        '57014' ],
    [ kill => sub ($head) { $look->run('SELECT pg_terminate_backend(' . $head->pid . ')') },
        undef ],
    [ lock_timeout => undef, '55P03', "SET lock_timeout = '400ms'" ],
    [ statement_timeout => undef, '57014', "SET statement_timeout = '400ms'" ]) {
    my ($how, $end, $state, $before) = @$case;
    my %slots = ("$how 1" => 1, "$how 2" => 1);
    my $holder = holder("$how 1", 1);
    my ($head) = queue_up('', 0, { before => $before, asks => acquires_all(%slots) });
    my @behind = map { session(application => 'behind') } 1, 2;
    # In the first and in the last of its queues.
    $behind[0]->start(acquires("$how 2", 1));
    $behind[1]->start(acquires("$how 1", 1));
    in_queue($_) for $end ? @behind : ();
    $end->($head) if $end;
    $behind[0]->returns(1, "$how: what was set aside is for the next one");
    $head->ends($state, "$how: the wait ends") if $state;
    is(scalar @{ slots_of($head) }, 0, "$how: with nothing") if $state;
    gives_back($holder, "$how 1");
    $behind[1]->returns(1, "$how: it does not stand in the other queue either");
    leave($look, $holder, @behind, $state ? $head : ());
    all_free($how, %slots);
}

# ---- Slots that nobody marks as free, and transactions ------------------------------------------

{
    my $prepares = session()->run('BEGIN',
        q(SELECT advisory.xact_acquire_all('sem', '{p1,p2}', '{1,2}')),
        q(PREPARE TRANSACTION 'all'));
    my ($both) = queue_up('', 0, { asks => acquires_all(p1 => 1, p2 => 2) });
    sleep CHECKED_S;
    ok(!$both->is_done, 'the slots of a prepared transaction are taken');
    $look->run(q(COMMIT PREPARED 'all'));
    has($both->finish(SOON_S), [ 1, 1 ], 'and come free with its end, though nobody marks them');
    leave($look, $prepares, $both);

    my $session = session()->run('BEGIN', 'SAVEPOINT s',
        q(SELECT advisory.xact_acquire_all('sem', '{p1,p2}', '{1,2}', '10s')));
    my ($waiter) = queue_up('', 0, { asks => acquires_all(p1 => 1, p2 => 2) });
    $session->run('ROLLBACK TO s');
    has($waiter->finish(SOON_S), [ 1, 1 ], 'the rollback to a savepoint frees all');
    leave($look, $session, $waiter);
    all_free('transactions', p1 => 1, p2 => 2);
}

# ---- Deadlocks -----------------------------------------------------------------------------------

{
    # Each has what the other one wants, beside something that is free.
    my ($left, $right) = (holder('left', 1), holder('right', 1));
    in_queue($left, acquires_all(right => 1, free => 9));
    in_queue($right, acquires_all(left => 1, free => 9));

    # A holder that wants one more waits behind one that wants both: what is free is set aside.
    my $greedy = holder('second', 1);
    my ($head) = queue_up('', 0, { asks => acquires_all(first => 1, second => 1) });
    $greedy->start(acquires('first', 1));

    # The same, with a slot more than is set aside: nobody is in a deadlock.
    my $modest = holder('more 2', 1);
    my ($wants) = queue_up('', 0, { asks => acquires_all('more 1' => 2, 'more 2' => 1) });
    $modest->start(acquires('more 1', 2));
    $modest->returns(1, 'what is set aside is one slot');

    # And behind two of whom one will go on: the other one's slot is missing.
    my $patient = holder('two 3', 1);
    my $eager = holder('two 2', 1);
    my ($will, $never) = queue_up('', 0, { asks => acquires_all('two 1' => 2, 'two 3' => 1) },
        { asks => acquires_all('two 1' => 2, 'two 2' => 1) });
    $eager->start(acquires('two 1', 2));

    # Behind one that waits for a session which waits for nothing.
    my $idle = holder('alive 2', 1);
    my ($goes_on) = queue_up('', 0,
        { asks => acquires_all('alive 1' => 1, 'alive 2' => 1) },
        { asks => acquires('alive 1', 1) });

    # Behind one that gave fewer slots, and of the slots that this one cannot use, one comes free.
    my ($frees, $keeps, $fourth) = (holder('few 2', 1), holder('few', 4, 3), holder('few', 4));
    my ($few) = queue_up('', 0, { asks => acquires_all(few => 2, 'few 3' => 1) });
    $keeps->start(acquires('few 2', 1));
    in_queue($frees, acquires('few', 4));

    # The same, but only the slot that is set aside could come free.
    my ($closes, $has_rest) = (holder('rest 2', 1), holder('rest', 4, 4));
    $closes->run(acquires('rest 3', 1));
    gives_back_slot($has_rest, 'rest', 1);
    my ($before) = queue_up('', 0, { asks => acquires_all(rest => 2, 'rest 2' => 1) });
    $has_rest->start(acquires('rest 3', 1));
    $closes->start(acquires('rest', 4));

    for my $cycle ([ $left, $right ], [ $greedy, $head ], [ $closes, $before ]) {
        wait_until('the deadlock is found', sub { grep { $_->is_done } @$cycle });
    }
    sleep CHECKED_S;
    for my $cycle ([ 'crosswise', $left, $right ], [ 'behind the head', $greedy, $head ],
        [ 'behind fewer slots', $closes, $before ]) {
        my ($what, @sessions) = @$cycle;
        my @victims = grep { $_->{state} } map { $_->is_done ? $_->finish : () } @sessions;
        is_deeply([ map { $_->{state} } @victims ], ['40P01'], "$what: one gives up");
        like($victims[0]{detail}, qr/^Process \d+ waits for .*; blocked by process [1-9]\d*\.$/m,
            "$what: and says what it waited for");
    }
    ok(!(grep { $_->is_done } $wants, $will, $never, $eager, $goes_on,
            $few, $keeps, $frees),
        'no deadlock where somebody will go on');
    gives_back($fourth, 'few');
    $frees->returns(4, 'a slot that the one ahead cannot use');
    gives_back($patient, 'two 3');
    has($will->finish(SOON_S), [ 1, 1 ], 'the first of two goes on');
    gives_back($will, 'two 1');
    $eager->returns(1, 'and the one behind both');
    gives_back($idle, 'alive 2');
    has($goes_on->finish(SOON_S), [ 1, 1 ], 'and who waits for an idle session');
    $look->run("SELECT pg_terminate_backend($_)")
        for map { $_->pid } $left, $right, $greedy, $head, $modest, $wants, $patient, $eager, $will,
        $never, $idle, $goes_on, $frees, $keeps, $fourth, $few, $closes, $has_rest, $before;
    wait_until('nobody holds or awaits a slot',
        sub { !$look->value('SELECT count(*) FROM advisory.semaphores') });
}

# ---- What people read ----------------------------------------------------------------------------

{
    my $holder = holder('shown', 3, 3);
    my ($both) = queue_up('', 0, { asks => acquires_all(idle => 1, shown => 3) });
    my $other = session(application => 'other');
    my $result = $other->query(
        q(SELECT advisory.acquire_all('sem', '{idle,shown}', '{1,3}', '10ms')));
    is($result->{state}, '55P03', 'an error');
    like($result->{message}, qr{^could not obtain a slot of semaphore "sem/(?:idle|shown)" within},
        'names one that was not free');
    my $tree = $look->value('SELECT string_agg(line, chr(10)) FROM advisory.wait_tree() AS line');
    like($tree, qr{holds\ .*sem/shown.*\n.*waits\ for\ a\ slot\ of\ sem/shown}x,
        'wait_tree() shows for which it waits');
    $look->shows(q(SELECT lock, waiters, pid = ) . $holder->pid . ' FROM advisory.blockers',
        '3 slots of sem/shown|1|1', 'blockers names the holder');
    # The end of a session frees its slots one by one.
    leave($look, $holder, $other);
    is(scalar @{ $both->finish(SOON_S)->{value} }, 2, 'and the waiter goes on');
    leave($look, $both);
}

# It stands in the queue of a semaphore that it is not said to wait for, too: in its place there.
{
    my ($holder, $late) = (holder('said', 3, 3), holder('unsaid', 2, 2));
    my ($ahead) = queue_up('unsaid', 2, {});
    my ($both) = queue_up('', 0, { asks => acquires_all(said => 3, unsaid => 2) });
    my @behind = (queue_up('said', 3, {}), queue_up('unsaid', 2, {}));
    for my $case ([ unsaid => 2, $late, $ahead, $both, $behind[1] ],
        [ said => 3, $holder, $both, $behind[0] ]) {
        my ($name, $slots, @order) = @$case;
        my $queue = "FROM advisory.locks WHERE NOT granted AND name = '$name'";
        my $pids = join ',', map { $_->pid } @order[ 1 .. $#order ];
        $look->shows(
            "SELECT array_agg(pid ORDER BY wait_start)::text, min(slots), count(waited) $queue",
            "{$pids}|$slots|$#order", "$name: each is in its place");
        $look->shows(
            "SELECT array_agg(cardinality(blocked_by) ORDER BY wait_start)::text $queue",
            '{' . join(',', 1 .. $#order) . '}', '... behind the holder and those ahead');
    }
    leave($look, $holder, $late, $ahead, $both, @behind);
}
done_testing();
