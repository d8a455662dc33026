#!/usr/bin/env perl
# Semaphores serve the sessions in their queue in order, also when some of them give up, and
# try_acquire() does not overtake a waiter.
use AdvisoryTest;
use Semaphores;

use constant { WAITERS => 70 };

my $look = observer();

# The result of a session's statement. A client of a terminated session gets one of several errors:
# 'lost' stands for them.
sub ended ($session) {
    my $result = $session->finish;
    $result->{state} = 'lost' if ($result->{state} // '') =~ /^(57P01|08...|XX000)$/;
    return $result;
}

# Releases the slot of the session from; the session of the queue that gets it releases it again,
# and so on. Returns the order in which the sessions of the queue got it.
sub order_served ($name, $from, @queue) {
    my @order;
    my %left = map { $_ => $queue[$_] } 0 .. $#queue;
    while (%left) {
        $from->run(releases($name));
        my $next;
        my $is_served = eval { wait_until('a session gets the slot', sub { ($next) =
                grep { $left{$_}->is_done } sort { $a <=> $b } keys %left; defined $next }, 10) };
        return [ @order, 'none' ] unless $is_served;
        $from = delete $left{$next};
        my $result = $from->finish;
        push @order, $result->{state} // $next;
        return \@order if $result->{state};
    }
    $from->run(releases($name));
    return \@order;
}

{
    my $rest = holder('order', 2);
    my $from = holder('order', 2);
    my @queue;
    for my $n (1 .. 6) {
        push @queue, queue_up('order', 2, {});
        is(waiting('order'), $n, "$n sessions wait");
    }
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY (?)
        AND objsubid > 16384), 0, 'none of them has a slot', [ map { $_->pid } @queue ]);
    is_deeply(order_served('order', $from, @queue), [ 0 .. 5 ], 'first come, first served');
    is(waiting('order'), 0, 'no session waits');

    # Transaction-level functions and the procedure wait in the same queue.
    $from = holder('order', 2);
    @queue = queue_up('order', 2, {},
        { before => 'BEGIN', asks => q(SELECT advisory.xact_acquire('sem', 'order', 2)) },
        { asks => q(CALL advisory.await_acquire('sem', 'order', 2)) },
        { asks => q(SELECT advisory.try_acquire('sem', 'order', 2, '1h')) },
        { before => 'BEGIN', asks => q(SELECT advisory.try_xact_acquire('sem', 'order', 2, NULL)) },
        {});
    my @order;
    for my $i (0 .. $#queue) {
        $i == 0 ? $from->run(releases('order')) : $queue[ $i - 1 ]->run(
            $queue[ $i - 1 ]{in_transaction} ? 'COMMIT' : releases('order'));
        $queue[$i]{in_transaction} = $i == 1 || $i == 4;
        push @order, $queue[$i]->finish(10)->{value} =~ /^[12]$/
            && !(grep { $_->is_done } @queue[ $i + 1 .. $#queue ]) ? $i : 'wrong';
    }
    is_deeply(\@order, [ 0 .. 5 ], 'in order whichever function they wait in');
    # The procedure holds no snapshot and no transaction ID while it waits.
    for my $slots (2, 1) {
        my @holders = map { holder('snapshot', $slots) } 1 .. $slots;
        my ($waiter) = queue_up('snapshot', $slots,
            { asks => "CALL advisory.await_acquire('sem', 'snapshot', $slots)" });
        $look->shows('SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE pid = ?',
            'NULL|NULL', "K = $slots, await_acquire holds no snapshot", $waiter->pid);
        $holders[0]->run(releases('snapshot'));
        like($waiter->finish->{value}, qr/^[12]$/, 'and gets its slot');
    }
}

# When a session at the head or in the middle of the queue gives up, the others keep their order.
my %give_up = (
    'is cancelled'   => [ {}, '57014',
        sub { $look->value('SELECT pg_cancel_backend(?)', $_[0]->pid) } ],
    'is terminated'  => [ {}, 'lost',
        sub { $look->value('SELECT pg_terminate_backend(?)', $_[0]->pid) } ],
    'times out'      => [ { asks => q(SELECT advisory.acquire('sem', 'give up', 2, '300ms')) },
        '55P03' ],
    'try_acquire times out'  => [
        { asks => q(SELECT advisory.try_acquire('sem', 'give up', 2, '300ms')) }, undef ],
    'lock_timeout'   => [ { before => q(SET lock_timeout = '300ms') }, '55P03' ],
    'statement_timeout' => [ { before => q(SET statement_timeout = '300ms') }, '57014' ],
);
for my $what (sort keys %give_up) {
    my ($how, $state, $act) = @{ $give_up{$what} };
    for my $where (0, 2) {
        my $rest = holder('give up', 2);
        my $from = holder('give up', 2);
        my @queue = queue_up('give up', 2, map { $_ == $where ? $how : {} } 0 .. 4);
        my ($quitter) = splice @queue, $where, 1;
        $act->($quitter) if $act;
        my $result = ended($quitter);
        is($result->{state}, $state, "$what, position $where: how its wait ends")
            or diag explain $result;
        is($result->{value}, undef, 'it gets no slot');
        wait_until('it has left the queue', sub { waiting('give up') == 4 });
        is_deeply(slots_of($quitter), [], 'and holds none');
        is_deeply(order_served('give up', $from, @queue), [ 0 .. 3 ],
            'and the others are served in order');
    }
}

{
    my $rest = holder('long', 2);
    my $from = holder('long', 2);
    my @queue = queue_up('long', 2, map { {} } 1 .. WAITERS);
    is(waiting('long'), WAITERS, WAITERS . ' sessions wait');
    is($look->value(q(SELECT count(*) FROM advisory.locks WHERE name = 'long' AND NOT granted
            AND kind = 'queue')), WAITERS, 'advisory.locks shows all of them');
    is_deeply(order_served('long', $from, @queue), [ 0 .. $#queue ],
        'a long queue is served in order');
    leave($look, @queue);

    # Sessions in all parts of the queue give up.
    $from = holder('long', 2);
    @queue = queue_up('long', 2, map { {} } 1 .. WAITERS);
    my %quits = map { $_ => 1 } 0, 1, 30, 62 .. 65, 68;
    for my $i (sort { $a <=> $b } keys %quits) {
        $look->value($i % 2 ? 'SELECT pg_cancel_backend(?)' : 'SELECT pg_terminate_backend(?)',
            $queue[$i]->pid);
    }
    is_deeply([ map { ended($queue[$_])->{state} } sort { $a <=> $b } keys %quits ],
        [ map { $_ % 2 ? '57014' : 'lost' } sort { $a <=> $b } keys %quits ],
        'some sessions give up');
    my @left = @queue[ grep { !$quits{$_} } 0 .. $#queue ];
    wait_until('they have left the queue', sub { waiting('long') == @left });
    is_deeply(order_served('long', $from, @left), [ 0 .. $#left ],
        'the others are served in order');
}

# ---- No overtaking -------------------------------------------------------------------------------

# While its process is stopped, the waiter cannot take the slot that it is next for.
for my $slots (2, 1) {
    my @holders = map { holder('overtake', $slots) } 1 .. $slots;
    my $other = session(application => 'other');
    my ($waiter) = queue_up('overtake', $slots, {});
    my @tries = map { sprintf $_, $slots } q(SELECT advisory.try_acquire('sem', 'overtake', %d)),
        q(SELECT advisory.try_xact_acquire('sem', 'overtake', %d)),
        q(SELECT advisory.try_acquire('sem', 'overtake', %d, '100ms'));
    is_deeply([ map { $other->value($_) } @tries ], [ (undef) x 3 ],
        "K = $slots, no slot is free: try_acquire() gets none");
    kill STOP => $waiter->pid or die 'cannot stop the process ' . $waiter->pid . ": $!\n";
    $holders[0]->run(releases('overtake'));
    is_deeply([ map { $other->value($_) } @tries ], [ (undef) x 3 ],
        "K = $slots, the free slot has a waiter: try_acquire() gets none");
    is($other->query(sprintf q(SELECT advisory.acquire('sem', 'overtake', %d, '100ms')),
            $slots)->{state}, '55P03', 'nor does acquire() behind the waiter');
    kill CONT => $waiter->pid;
    like($waiter->finish->{value}, qr/^[12]$/, "K = $slots: the waiter gets it");
    $waiter->run(releases('overtake'));
    like($other->value($tries[0]), qr/^[12]$/,
        "K = $slots: when no session waits any more, try_acquire() gets it");
}

# A caller with slots => 1 does not overtake those with more, nor they it.
{
    my $from = holder('numbers', 3, 3);
    my $other = session(application => 'other');
    my ($more, $one, $last) = queue_up('numbers', 3, {}, { asks => acquires('numbers', 1) }, {});
    my $blocked_by = q(SELECT ? = ANY (blocked_by) FROM advisory.locks
        WHERE pid = ? AND NOT granted);
    $look->shows($blocked_by, 1, 'a waiter with slots => 1 is behind one with more',
        $more->pid, $one->pid);
    kill STOP => $more->pid or die 'cannot stop the process ' . $more->pid . ": $!\n";
    $from->run(q(SELECT advisory.release('sem', 'numbers', 1)));
    is_deeply([ map { $other->value(tries('numbers', $_)) } 1, 3 ], [ undef, undef ],
        'the only slot that it can use has a waiter: try_acquire() gets none');
    ok(!$one->is_done, 'nor does the waiter with slots => 1');
    kill CONT => $more->pid;
    $more->returns(1, 'the first in the queue gets it');
    $from->run(q(SELECT advisory.release('sem', 'numbers', 2)));
    $last->returns(2, 'one behind it gets a slot that it cannot use');
    $more->run(releases('numbers'));
    $one->returns(1, 'and it gets slot 1 in its turn');

    # It waited before there was a queue.
    $more->run(tries('numbers', 3));
    my ($first) = queue_up('numbers', 1, {});
    my ($behind) = queue_up('numbers', 3, {});
    $look->shows($blocked_by, 0, 'one that comes later is not in its way', $behind->pid,
        $first->pid);
    $one->run(releases('numbers'));
    $first->returns(1, 'one that waits before those with more comes first');
    ok(!$behind->is_done, 'they wait');
    $first->run(releases('numbers'));
    $behind->returns(1, 'until there is another slot');

    # A session that has the only slot and asks for it again in a queue is in a deadlock.
    $behind->run('SET deadlock_timeout = 100');
    my ($queued) = queue_up('numbers', 3, {});
    $behind->fails(acquires('numbers', 1), '40P01', 'who has slot 1 never gets it again');
    leave($look, $_) for $queued, $from, $other, $more, $one, $last, $first, $behind;
}

# A stopped waiter keeps others from one slot only.
{
    my @holders = map { holder('absent', 2) } 1, 2;
    my ($absent, @queue) = queue_up('absent', 2, {}, {}, {});
    kill STOP => $absent->pid or die 'cannot stop the process ' . $absent->pid . ": $!\n";
    $_->run(releases('absent')) for @holders;
    like($queue[0]->finish(10)->{value}, qr/^[12]$/,
        'two slots are free and the first waiter is stopped: the second waiter gets one');
    ok(!$queue[1]->is_done, 'the third gets none');
    $queue[0]->run(releases('absent'));
    like($queue[1]->finish(10)->{value}, qr/^[12]$/, 'until another slot becomes free');
    ok(!$absent->is_done, 'the first is still waiting');
    kill CONT => $absent->pid;
    like($absent->finish->{value}, qr/^[12]$/, 'and gets its slot when it continues');
}
done_testing();
