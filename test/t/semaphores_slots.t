#!/usr/bin/env perl
# The slots of one session: each call takes another slot, and release() gives back the right one.
use AdvisoryTest;
use Semaphores;

my $look = observer();

{
    my $session = session();
    my $held = sub { return [ map { $_->[0] } @{ slots_of($session) } ] };
    my @slots = map { $session->value(acquires('own', 4)) } 1 .. 3;
    push @slots, $session->value(tries('own', 4));
    is_deeply([ sort @slots ], [ 1 .. 4 ], 'each call takes a different slot');
    $session->shows(tries('own', 4), 'NULL', 'until none is free');
    $session->shows(releases('own'), 1, 'release');
    is_deeply($held->(), [ sort @slots[ 0 .. 2 ] ], 'releases the slot that was taken last');
    $session->shows(q(SELECT advisory.release('sem', 'own', ?)), 1,
        'release() of a given slot', $slots[0]);
    is_deeply($held->(), [ sort @slots[ 1, 2 ] ], 'releases that one');
    my $result = $session->query(q(SELECT advisory.release('sem', 'own', ?)), $slots[0]);
    is($result->{value}, 0, 'a second release() of it does nothing');
    like(join('', @{ $result->{warnings} }),
        qr{WARNING:  you don't own slot $slots[0] of semaphore "sem/own"}, 'with a warning');
    is_deeply([ sort map { $look->value(tries('own', 4)) } 1, 2 ], [ sort @slots[ 0, 3 ] ],
        'another session can take these two');
    $look->shows(q(SELECT advisory.unlock_all('sem')), 2,
        'unlock_all(namespace) releases and counts them');
    $session->shows(releases('own'), 1, 'release() releases the last');
    is_deeply($held->(), [ $slots[1] ], 'of the slots that are left');
    $session->run(releases('own'));
    $result = $session->query(releases('own'));
    is($result->{value}, 0, 'with none left, release is false');
    like(join('', @{ $result->{warnings} }),
        qr{WARNING:  you don't own a slot of semaphore "sem/own"}, 'with a warning');

    $session->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'own', 4)));
    my ($of_transaction) = @{ $held->() };
    $result = $session->query(releases('own'));
    is($result->{value}, 0, 'release() does not release a transaction-level slot');
    like(join('', @{ $result->{warnings} }),
        qr{WARNING:  you don't own a slot of semaphore "sem/own"
.*transaction-level slot is released at the end of the transaction}s, 'and says so');
    is_deeply($held->(), [$of_transaction], 'it is still held');
    my $mine = $session->value(acquires('own', 4));
    isnt($mine, $of_transaction, 'acquire() takes a different slot');
    $session->run(q(SELECT advisory.xact_acquire('sem', 'own', 4)));
    $session->shows(releases('own'), 1,
        'which release() releases, although another was taken after it');
    is(scalar(grep { $_ == $mine } @{ $held->() }), 0, 'exactly that one');
    $session->run(acquires('own', 4), 'ROLLBACK');
    is(scalar @{ $held->() }, 1,
        'the end of the transaction releases its slots and leaves the one of the session');
    $session->run(releases('own'));

    $session->run(q(SELECT advisory.lock('sem', 'own')));
    $look->shows(q(SELECT advisory.try_acquire('sem', 'own', 1)), 1,
        'the lock of the same name does not block it');
    $look->run(releases('own'));
    $session->run(q(SELECT advisory.unlock('sem', 'own')), acquires('own', 4),
        q(SELECT advisory.lock('sem', 'own lock')));
    $result = $session->query(releases('own lock'));
    is($result->{value}, 0, 'release on a lock');
    like(join('', @{ $result->{warnings} }),
        qr{"sem/own lock"\n.*holds the lock of that name.*advisory\.unlock\(\)}s,
        'says that unlock was meant');
    $result = $session->query(q(SELECT advisory.unlock('sem', 'own')));
    is($result->{value}, 0, 'unlock on a semaphore');
    like(join('', @{ $result->{warnings} }),
        qr{"sem/own"\n.*has a slot of the semaphore.*advisory\.release\(\)}s,
        'says that release was meant');
    is(scalar @{ $held->() }, 1, 'neither releases anything');
    $session->shows(q(SELECT advisory.holds('sem', 'own lock')), 1, 'the lock is still held');
    $session->run(acquires('own', 4), acquires('own too', 2), q(SELECT advisory.acquire('other',
        'own', 2)), 'BEGIN', q(SELECT advisory.xact_acquire('sem', 'own', 4)));
    $session->shows(q(SELECT advisory.unlock_all('sem')), 4,
        'unlock_all(namespace) counts slots and locks');
    $look->shows(q(SELECT string_agg(namespace || '/' || name, ',' ORDER BY namespace)
        FROM advisory.semaphores), 'other/own,sem/own',
        'and leaves those of other namespaces, and of the transaction');
}

# pg_advisory_unlock_all() releases slots even where the oldest lock and the newest are taken again
# in the same statement.
{
    my $session = session();
    my @keys = map { "advisory.key('other', '$_')" } qw(first last);
    $session->run(q(SELECT advisory.lock('other', 'first')), acquires('again', 1),
        acquires('several', 2), q(SELECT advisory.lock('other', 'last')));
    $session->run("SELECT pg_advisory_unlock_all(), pg_advisory_lock($keys[0]),
        pg_advisory_lock($keys[1])");
    is_deeply([ map { $look->value(tries(@$_)) } [ 'again', 1 ], [ 'several', 2 ],
            [ 'several', 2 ] ], [ 1, 1, 2 ], 'others can take all of them');
    $session->shows(releases('several'), 0,
        'and the session does not release what it does not have');
    $look->run(q(SELECT advisory.unlock_all('sem')));
}
# try_acquire_any(): what others hold, and what others wait for, is passed over.
{
    my ($one, $two, $waits, $asks) = map { session() } 1 .. 4;
    my $any = sub ($session, $slots, $wanted, @names) { return join ' ',
        map { "$_->[0]:$_->[1]" } @{ $session->rows('SELECT name, slot
            FROM advisory.try_acquire_any(?, ?::text[], ?, ?)', 'sem',
            '{' . join(',', @names) . '}', $slots, $wanted) } };
    is($any->($one, 1, 2, qw(t1 t2 t3)), 't1:1 t2:1', 'a slot of each of the first two');
    is($any->($two, 1, 2, qw(t1 t2 t3)), 't3:1', 'another session gets what is left');
    is($any->($asks, 2, 3, qw(t1 t2 t3)), 't1:2 t2:2 t3:2', 'with more slots there is more');
    is($any->($asks, 2, 3, qw(t1 t2 t3)), '', 'until nothing is free');
    in_queue($waits, acquires('t2', 2));
    # Its waiter is stopped, so that the slot stays free for a while.
    kill STOP => $waits->pid;
    $one->run(releases('t2'), releases('t1'));
    is($any->($two, 2, 3, qw(t2 t1)), 't1:1', 'a slot that a session waits for is not taken');
    kill CONT => $waits->pid;
    ok($waits->finish->{value}, 'the waiter gets it');
    # An error while it runs: what it took for the session is free again.
    $_->run(q{SELECT advisory.unlock_all('sem')}) for $one, $two, $waits, $asks;
    $one->run(q{SET advisory_ext.pool_limit = 90});
    my $end = $one->query(q{SELECT advisory.try_acquire_any('sem', (SELECT array_agg('many' || i)
        FROM generate_series(1, 100000) AS i), 1, 100000)});
    ok(($end->{state} // '') =~ /^53[24]00$/, 'an error after many were taken')
        or diag explain $end;
    $look->shows(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?}, 0,
        'leaves none taken', $one->pid);
}

# No session knows that the slot of a prepared transaction is taken, if none has used the semaphore
# since.
{
    my $gone = session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'prepared', 2)),
        q(PREPARE TRANSACTION 'slot'));
    leave($look, $gone);
    my ($other, $later) = map { session() } 1, 2;
    $other->shows(tries('prepared', 2), 2, 'the slot of a prepared transaction is not given away');
    $later->shows(tries('prepared', 2), 'NULL', 'then no slot is free');
    $look->run(q(COMMIT PREPARED 'slot'));
    $later->shows(tries('prepared', 2), 1, 'but it is free when the transaction has ended');
}

done_testing();
