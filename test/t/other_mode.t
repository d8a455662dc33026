#!/usr/bin/env perl
# The only holder of a lock gets it in the other mode, by try_* too, whoever waits behind it. The
# test needs a session that waits.
use AdvisoryTest;

create_database();
my ($look, $waiter, $sharer) = (session(), session(), session());

for my $scope ('', 'xact_') {
    for my $case ([ '', '_shared' ], [ '_shared', '' ]) {
        my ($held, $asked) = @{$case};
        my $what = "try_${scope}lock$asked() of the holder of ${scope}lock$held()";
        my $session = session();
        $session->run('BEGIN', "SELECT advisory.${scope}lock$held('mode', 'a')");
        waits($look, $waiter, q(SELECT advisory.lock('mode', 'a')));
        $session->shows("SELECT advisory.try_${scope}lock$asked('mode', 'a')", 1,
            "$what, without waiting");
        $session->shows("SELECT advisory.try_${scope}lock${asked}_key(advisory.key('mode', 'a'),
            '0')", 1, "$what, by its key");
        $look->shows(q(SELECT count(*) FROM pg_locks WHERE pid = ? AND granted
            AND locktype = 'advisory'), 2, "$what: it holds both modes", $session->pid);
        $session->run('COMMIT', 'SELECT pg_advisory_unlock_all()');
        $waiter->returns(1, "$what: then the waiter gets it");
        $waiter->run('SELECT pg_advisory_unlock_all()');
    }
}

# ---- Not the only holder -------------------------------------------------------------------------

my $session = session();
$session->run(q(SELECT advisory.lock_shared('mode', 'a')));
$sharer->run(q(SELECT advisory.lock_shared('mode', 'a')));
$session->shows(q(SELECT advisory.try_lock('mode', 'a')), 0, 'not while another session shares it');
waits($look, $sharer, q(SELECT advisory.lock('mode', 'a')));
$session->shows(q(SELECT advisory.try_lock('mode', 'a')), 0,
    'nor if that one waits for exclusive mode, which would be a deadlock');
$session->run(q(SELECT advisory.unlock_shared('mode', 'a')));
$sharer->returns(1, 'which it gets');

done_testing();
