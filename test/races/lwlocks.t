#!/usr/bin/env perl
# What pg_stat_activity says of sessions that wait for one of the extension's LWLocks: another
# session is stopped when it has just taken it.
use AdvisoryTest;
use StopPoints;

$ENV{PGOPTIONS} = '-c advisory_ext.warn_no_transaction=off';
create_stoppable_database();
my $look = session();
# Up to 18, a session knows the names of LWLocks only when it has used the extension.
$look->run(q(SELECT advisory.try_xact_lock('n', 'look')));

sub event ($session) {
    return $look->value(
        q(SELECT wait_event_type || '/' || wait_event FROM pg_stat_activity WHERE pid = ?),
        $session->pid) // '';
}

# Stops one session at the point, where it has the LWLock, and sees for what another one waits. Both
# have run what comes first.
sub waits_at ($point, $event, $first, $holds, $asks) {
    my ($holder, $asker) = map { session()->run($first) } 1 .. 2;
    ok(has_stopped(stop_at($holder, $point)->start($holds)), $point) or return;
    $asker->start($asks);
    my $seen = '';
    eval {
        wait_until($event, sub {
            ($seen = event($asker)) eq $event || $asker->is_done }, 20);
    };
    is($seen, $event, "… another session waits for $event");
    go_on($holder)->ends(undef, '… until the first one goes on');
    $asker->ends(undef, '… and has what it asked for');
    return;
}

waits_at('names are locked', 'LWLock/AdvisoryExtNames',
    map { "SELECT advisory.try_xact_lock('n', '$_')" } qw(first one two));

# While nobody is in the queue, the slots are not locked.
my ($full, $queued) = map { session() } 1 .. 2;
$full->run(q(SELECT advisory.acquire('s', 'slots', 2) FROM generate_series(1, 2)));
$queued->start(q(SELECT advisory.acquire('s', 'slots', 2)));
wait_until('somebody is in the queue', sub { event($queued) eq 'Lock/advisory' });
waits_at('slots are locked', 'LWLock/AdvisoryExtSlots',
    map { "SELECT advisory.try_xact_acquire('s', 'slots', $_)" } 10, 100, 200);

# To use the extension for the first time is to attach to its shared memory.
waits_at('root is locked', 'LWLock/AdvisoryExtMemory', 'SELECT 1',
    map { "SELECT advisory.try_xact_acquire('m', '$_', 2)" } qw(one two));

done_testing();
