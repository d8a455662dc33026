#!/usr/bin/env perl
# What pg_stat_activity says of sessions that wait in the extension. (For its LWLocks:
# test/races/lwlocks.t.)
use AdvisoryTest;

$ENV{PGOPTIONS} = '-c advisory_ext.warn_no_transaction=off';
create_database();
my $look = session();
my $version = int($look->value(q(SELECT current_setting('server_version_num'))) / 10000);

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

done_testing();
