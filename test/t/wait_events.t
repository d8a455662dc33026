#!/usr/bin/env perl
# What pg_stat_activity says of sessions that wait in the extension: a session is stopped in each of
# these waits.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

$ENV{PGOPTIONS} = '-c advisory_ext.warn_no_transaction=off';
create_database();
my $look = session();
my $version = int($look->value(q(SELECT current_setting('server_version_num'))) / 10000);
# Up to 18, a session knows the names of LWLocks only when it has used the extension.
$look->value('SELECT count(*) FROM advisory.locks');

sub event {
    return $look->value(
        q(SELECT wait_event_type || '/' || wait_event FROM pg_stat_activity WHERE pid = ?),
        $_[0]->pid) // ''
}

# Does the session wait for this?
sub shows ($session, $event, $what) {
    my $seen = '';
    eval {
        wait_until($what, sub { ($seen = event($session)) eq $event || $session->is_done }, 20)
    };
    is($seen, $event, $what);
    return;
}

# ---- Sleeps --------------------------------------------------------------------------------------

{
    my ($holder, @waiters) = map { session() } 0 .. 5;
    my $lease_event = $version >= 17 ? 'Extension/AdvisoryExtLease' : 'Lock/advisory';
    $holder->run(q(SELECT advisory.lock('w', 'lock'), advisory.acquire('w', 'semaphore', 1),
            advisory.acquire('w', 'two', 2), advisory.acquire('w', 'two', 2)),
        q(SELECT * FROM advisory.lease('w', 'lease', '1 hour')));
    my @waits = ([q(SELECT advisory.lock('w', 'lock')), 'Lock/advisory', 'a wait for a lock'],
        [q(SELECT advisory.acquire('w', 'semaphore', 1)), 'Lock/advisory', 'for the only slot'],
        [q(SELECT advisory.acquire('w', 'two', 2)), 'Lock/advisory', 'for one of two slots'],
        [q(SELECT * FROM advisory.lease('w', 'lease', '1 hour')), $lease_event,
            'for the end of a lease'],
        [q(SELECT * FROM advisory.lease('w', 'lease', '1 hour')), 'Lock/advisory',
            'for the session ahead in the queue for it']);
    for my $i (0 .. $#waits) {
        $waiters[$i]->run("SELECT advisory.lock('held', $i)");
        $waiters[$i]->start($waits[$i][0]);
        shows($waiters[$i], @{ $waits[$i] }[1, 2]);
    }
    $look->shows(q(SELECT count(*) FROM advisory.activity WHERE state = 'waiting'
        AND pid = ANY (?)), 5, 'advisory.activity says of what all five hold that they wait',
        [ map { $_->pid } @waiters ]);
    my $killer = session();
    kill STOP => $holder->pid;
    $killer->start(
        sprintf q(SELECT advisory.terminate_holder('w', 'lock', %d, '1 min')), $holder->pid);
    shows($killer, 'IPC/BackendTermination', 'for the end of a session');
    kill CONT => $holder->pid;
    $_->disconnect for @waiters, $killer;
}

# ---- LWLocks -------------------------------------------------------------------------------------

# Stops some sessions, which run $busy, wherever they are, until another session that runs $asks has
# to wait for this LWLock.
sub stopped_at ($event, $what, $count, $busy, $asks) {
    my @holders = map { session()->start($busy) } 1 .. $count;
    my @pids = map { $_->pid } @holders;
    my $asker = session();
    my %seen;
    my $end = time + 200;    # on a busy machine a try takes a second
    while (!$seen{$event} && time < $end) {
        sleep rand 0.01;
        # What they hold may be in the way of this script, too.
        system "(sleep 0.2; kill -CONT @pids) 2>/dev/null &";
        kill STOP => @pids;
        sleep 0.002;
        $asker->start($asks);
        my $until = time + 0.05;
        while (!$asker->is_done && time < $until && !$seen{$event}) { $seen{ event($asker) } = 1 }
        kill CONT => @pids;
        $asker->finish;
    }
    ok($seen{$event}, $what) or diag("$event, but was seen: ", join ' ', sort keys %seen);
    $look->value('SELECT pg_terminate_backend(?)', $_) for @pids;
    eval { $_->finish } for @holders;
    return;
}

$look->run(q(SELECT count(advisory.try_xact_lock('names', i)) FROM generate_series(1, 5000) AS i));
stopped_at('LWLock/AdvisoryExtNames', 'the name table', 1,
    'DO $$ BEGIN LOOP PERFORM count(*) FROM advisory.stats; END LOOP; END $$',
    q(SELECT advisory.try_xact_lock('new', (random() * 1e9)::bigint)));
# While nobody is in the queue, it is not locked.
my ($full, $queued) = (session(), session());
$full->run(q(SELECT advisory.acquire('s', 'slots', 2) FROM generate_series(1, 2)));
$queued->start(q(SELECT advisory.acquire('s', 'slots', 2)));
shows($queued, 'Lock/advisory', 'somebody is in the queue');
stopped_at('LWLock/AdvisoryExtSlots', 'the slots of a semaphore', 1,
    q(SELECT count(advisory.try_acquire('s', 'slots', 16000)), count(advisory.release('s', 'slots'))
        FROM generate_series(1, 10000000)),
    q(SELECT advisory.try_xact_acquire('s', 'slots', 16000)));
stopped_at('LWLock/AdvisoryExtMemory', 'shared memory', 6,
    q(SELECT count(advisory.try_acquire('m', i, 16000)), count(advisory.release('m', i))
        FROM generate_series(1, 10000000) AS i),
    q(SELECT advisory.try_xact_acquire('asked', (random() * 1e9)::bigint, 16000)));

done_testing();
