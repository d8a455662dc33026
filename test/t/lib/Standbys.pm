# What both editions say on a standby: to whoever takes locks there or reads a view, once each, and
# again to the next client of a session pooler; and what claims shows of a job that runs on the
# primary.
package Standbys;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use Replica;
use Test::More;

our @EXPORT = qw(told_readers told_takers job_from_standby);

my $NOTICE = qr/\ANOTICE:  this server is a standby: it shows its own locks, not those of the /;
my $WARNING = qr/\AWARNING:  locks on a standby do not exclude sessions of the primary\n/;

# The session, on a standby, reads each of these and more.
sub told_readers {
    my ($session, @more) = @_;
    for my $rows (
        (map { "advisory.$_" } qw(activity blockers locks waits semaphores leases claims)),
        q(advisory.wait_tree()), q(advisory.holders('s', 'a')), @more
    ) {
        $session->run('DISCARD ALL');
        like($session->warned("SELECT * FROM $rows"), $NOTICE, "$rows: a session is told");
        is($session->warned("SELECT * FROM $rows"), '', '... once');
    }
    is($session->warned(q(SELECT * FROM advisory.locks CROSS JOIN advisory.leases)), '',
        '... by one of the views');
    $session->run('DISCARD ALL');
    my @told = $session->warned(q(SELECT FROM advisory.locks, advisory.activity, advisory.leases))
        =~ /NOTICE/g;
    is(@told, 1, 'the next client of a session pooler is told again');
    return;
}

# It takes locks by each kind of function.
sub told_takers {
    my ($session) = @_;
    for my $call (
        q(SELECT advisory.lock('s', 'a')), q(SELECT advisory.try_lock('s', 42)),
        q(SELECT advisory.lock_shared('s', 'a', '1s')), q(SELECT advisory.try_lock_key(4711)),
        q(SELECT advisory.lock_all('s', '{a,b}')), q(SELECT advisory.try_lock_any('s', '{a,b}')),
        q(SELECT advisory.acquire('s', 'a', 2)),
        q(SELECT advisory.try_acquire_many('s', 'a', 3, 2)),
        q(SELECT * FROM advisory.try_acquire_any('s', '{a,b}', 1)),
        q(SELECT advisory.try_acquire_all('s', '{a,b}', '{3,3}')),
        q(CALL advisory.await_lock('s', 'a')), q(CALL advisory.await_acquire('s', 'a', 2)),
        q(CALL advisory.run('s', 'a', 'SELECT 1')),
    ) {
        $session->run('DISCARD ALL');
        like($session->warned($call), $WARNING, "$call: a session is warned");
        is($session->warned($call), '', '... once');
    }
    $session->run('DISCARD ALL', 'SELECT * FROM advisory.locks', 'BEGIN');
    like($session->warned(q(SELECT advisory.xact_lock('s', 'a'))), $WARNING,
        'also if it has read a view before');
    $session->run('COMMIT');
    return;
}

# A job of the primary, which the worker runs, as a session of the standby sees it.
sub job_from_standby {
    my ($primary, $worker, $standby, $session) = @_;
    my $state = q(SELECT coalesce(state, 'unknown') FROM advisory.claims WHERE name = 'job');
    $primary->run(q(SELECT advisory.lock('s', 'work')));
    $worker->start(q(CALL advisory.run('s', 'job', $$SELECT advisory.xact_lock('s', 'work')$$,
        once_per => '1 hour')));
    $primary->wait_until('the job runs', q(SELECT state = 'running' FROM advisory.claims));
    caught_up($primary, $standby);
    $session->shows($state, 'unknown', 'claims: a standby does not know whether a job runs');
    $primary->run(q(SELECT advisory.unlock('s', 'work')));
    $worker->ends(undef, 'the job ends');
    caught_up($primary, $standby);
    $session->shows($state, 'done', '... but that it is done');
    return;
}

1;
