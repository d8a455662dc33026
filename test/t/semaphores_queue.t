#!/usr/bin/env perl
# The queue of a semaphore: waiters that say a smaller number of slots leave the other slots to
# others, and sessions that had to wait for the queue lock are woken together, not one after the
# other.
use FindBin;
use AdvisoryTest;

use constant {
    # of address space: less than the first segment of shared memory takes; and more, but less than
    # the session table of MANY connections, which has a segment of its own
    BYTES_LEFT => 900 * 1024,
    BYTES_FOR_ROOT => 2500 * 1024,
    MANY => 3000,
    SOON_S => 60,
};

my $database = create_database();
my $look = session(application => 'look');

sub acquires ($name, $slots) { return "SELECT advisory.acquire('queue', '$name', $slots)" }

sub tries ($name, $slots) { return "SELECT advisory.try_acquire('queue', '$name', $slots)" }

# Starts to wait for a slot.
sub waiter ($name, $slots, $session = session(application => 'waiter')) {
    $session->start(acquires($name, $slots));
    wait_until('session waits', sub {
        $look->value(q(SELECT count(*) FROM advisory.locks l JOIN pg_stat_activity a USING (pid)
                       WHERE l.pid = ? AND NOT l.granted AND a.wait_event = 'advisory'),
                       $session->pid) || $session->is_done;
    });
    return $session;
}

# Leaves a session, which has loaded the library, so little address space. False if that fails.
sub leave_bytes ($session, $bytes) {
    my ($mapped) = map { /^VmSize:\s+(\d+) kB/ ? 1024 * $1 : () } do {
        open my $status, '<', '/proc/' . $session->pid . '/status'
            or die "cannot read the process's status: $!\n";
        <$status>;
    };
    return system('bash', "$FindBin::Bin/../../scripts/server.sh", 'as', 'prlimit', '--pid',
        $session->pid, '--as=' . ($mapped + $bytes)) == 0;
}

# ---- Different numbers of slots ------------------------------------------------------------------

{
    my $holder = session(application => 'holder');
    $holder->run(acquires('mixed', 2)) for 1, 2;
    my $small = waiter('mixed', 2);
    my $other = session(application => 'other');
    is_deeply([ map { $other->value(tries('mixed', 4)) } 1 .. 3 ], [ 3, 4, undef ],
        'slots that the waiter cannot use are for those that try, one by one, and then there '
        . 'are none');
    $other->shows(tries('mixed', 2), 'NULL', 'none for those that try with the smaller number');
    ok(!$small->is_done, 'the waiter waits');

    # A slot that both can use is the waiter's, even if it does not come to take it.
    kill STOP => $small->pid or die "cannot stop the process: $!\n";
    $holder->run(q(SELECT advisory.release('queue', 'mixed', 1)));
    $other->shows(tries('mixed', 4), 'NULL',
        'a slot that the waiter can use is not for those that try');
    $other->run(q(SELECT advisory.release('queue', 'mixed', 4)));
    $other->shows(tries('mixed', 4), 4, 'and does not keep them from the others');

    # One that waits behind it with the larger number is served at once, too.
    my $large = waiter('mixed', 4);
    my $largest = waiter('mixed', 5);
    is($largest->finish(SOON_S)->{value}, 5,
        'nor one that waits behind it from a slot which is free');
    my $took = undisturbed_time(sub {
        $other->run(q(SELECT advisory.release('queue', 'mixed', 3)));
        is($large->finish(SOON_S)->{value}, 3, 'or which becomes free');
    }, $other, $large);
    cmp_ok($took, '<', 0.7, 'at once');
    kill CONT => $small->pid;
    $small->returns(1, 'and the waiter has its slot when it comes');
}

# Waiters behind one with a smaller number: all that can be served are, in order.
{
    my $holder = session(application => 'holder');
    $holder->run(acquires('passed over', 4)) for 1 .. 4;
    my $small = waiter('passed over', 2);
    my @large = map { waiter('passed over', 4) } 1 .. 3;
    $holder->run(q(SELECT advisory.release('queue', 'passed over', slot)
        FROM unnest(ARRAY[3, 4]) AS slot));
    is_deeply([ sort map { $_->finish(SOON_S)->{value} } @large[ 0, 1 ] ], [ 3, 4 ],
        'a waiter that no slot is for does not keep others waiting');
    ok(!$large[2]->is_done && !$small->is_done, 'the other two wait');
    $holder->run(q(SELECT advisory.release('queue', 'passed over', 2)));
    is($small->finish(SOON_S)->{value}, 2, 'the first in the queue has the next');
    ok(!$large[2]->is_done, 'though the last could use it, too');
}

# What is set aside for a waiter is the highest free slot that it can use, not the highest that the
# others can use.
{
    my $holder = session(application => 'holder');
    $holder->run(acquires('set aside', 4)) for 1 .. 4;
    my $large = waiter('set aside', 4);
    my $small = session(application => 'small');
    kill STOP => $large->pid or die "cannot stop the process: $!\n";
    $holder->run(q(SELECT advisory.release('queue', 'set aside', slot)
        FROM unnest(ARRAY[2, 4]) AS slot));
    $small->shows(tries('set aside', 2), 2, 'a waiter keeps a slot that only it can use, and '
        . 'leaves a lower one to a session with a smaller number');
    kill CONT => $large->pid;
    is($large->finish(SOON_S)->{value}, 4, 'and has its slot when it comes');
}

# ---- After a wait for the queue lock -------------------------------------------------------------

SKIP: {
    program('prlimit') or skip 'there is no prlimit', 1;

    my $holder = session(application => 'holder');
    my @slots = map { $holder->value(acquires('lock', 3)) } 1 .. 3;

    # A session that cannot map the shared memory: it holds the queue lock while it waits.
    my $alone = session(application => 'alone');
    $alone->value(q(SELECT advisory.key('loads the library')));
    ok(leave_bytes($alone, BYTES_LEFT), 'a session that is short of memory');
    waiter('lock', 3, $alone->run('BEGIN'));
    $holder->run(q(SELECT advisory.release('queue', 'lock', 1)));
    is($alone->finish(SOON_S)->{value}, 1, 'gets a slot in a transaction');
    $look->shows('SELECT count(*) FROM pg_locks WHERE pid = ? AND objsubid = 16383', 0,
        'and keeps no queue lock until that ends', $alone->pid);
    $alone->run(q(SELECT advisory.release('queue', 'lock')), 'COMMIT');
    $holder->run(acquires('lock', 3));
    waiter('lock', 3, $alone);
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE pid = ? AND granted
        AND mode = 'ExclusiveLock' AND locktype = 'advisory' AND objsubid = 16383), 1,
        'holds the queue lock', $alone->pid)
        or diag explain $look->rows('SELECT mode, granted, objsubid FROM pg_locks WHERE pid = ?',
            $alone->pid);

    my @waiters = map { waiter('lock', 3) } 1 .. 3;
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE NOT granted AND objsubid = 16383
        AND pid = ANY (?)), 3, 'three others wait for that lock', [ map { $_->pid } @waiters ]);
    $look->value('SELECT pg_cancel_backend(?)', $alone->pid);
    $alone->ends('57014', 'it gives up');
    wait_until('they have the lock', sub {
        $look->value(q(SELECT count(*) FROM pg_locks WHERE granted AND objsubid = 16383
            AND pid = ANY (?)), [ map { $_->pid } @waiters ]) == 3 }, SOON_S);
    pass('they have the queue lock all at once');
    kill STOP => $waiters[0]->pid or die "cannot stop the process: $!\n";
    $holder->run('SELECT pg_advisory_unlock_all()');
    my @served = map { eval { $_->finish(SOON_S)->{value} } // 'waits' } @waiters[ 1, 2 ];
    unlike(join(', ', @served), qr/waits/, 'three slots become free: the second and the third are '
        . 'woken, although the first does not come');
    kill CONT => $waiters[0]->pid;
    push @served, $waiters[0]->finish(SOON_S)->{value};
    is_deeply([ sort @served ], [ 1 .. 3 ], 'which has its slot when it does');
}

# A session that can map the root of the shared memory, but not the table of sessions.
SKIP: {
    program('prlimit') or skip 'there is no prlimit', 1;

    my $server = own_server('max_connections=' . MANY);
    my ($holder, $alone, $behind) = map { session(server => $server) } 1 .. 3;
    $holder->run('CREATE EXTENSION advisory_ext', acquires('half', 2));
    $holder->run(acquires('half', 2));
    $alone->value(q(SELECT advisory.key('loads the library')));
    ok(leave_bytes($alone, BYTES_FOR_ROOT), 'a session that is short of memory');
    $alone->start(acquires('half', 2));
    $behind->start(acquires('half', 2));
    # Both look for a deadlock meanwhile.
    sleep 2;
    $holder->run(q(SELECT advisory.release('queue', 'half'))) for 1, 2;
    # It may also fail for lack of memory, but nobody else.
    my $result = eval { $alone->finish(SOON_S) } // { state => 'no answer' };
    note join ' ', map { $_ // '' } @$result{qw(value state message)};
    like($behind->finish(SOON_S)->{value}, qr/^[12]$/,
        'it waits for a slot, and the one behind it, which has the memory, gets one');
    $holder->shows('SELECT 1', 1, 'the server has not crashed');
}

$look->shows('SELECT count(*) FROM advisory.semaphores', 0, 'nothing is left');
done_testing();
