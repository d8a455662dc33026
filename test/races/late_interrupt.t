#!/usr/bin/env perl
# An interrupt that arrives after the lock manager has looked for interrupts the last time, but
# before the call returns, does not end in an error with the lock held. The first moment is inside
# of the server, where no point of ours can stop the session. So interrupts are held off while
# LockAcquire() runs: an interrupt of the wait is pending when that returns with the lock, and that
# is all that can be seen of an interrupt that came after the last look.
use AdvisoryTest;
use StopPoints;
use Time::HiRes qw(sleep);

# Timeouts, in milliseconds. Only statement_timeout may pass before the wait begins, on a busy
# machine: then the next try has the next one.
use constant LIMITS_MS => map { 100 * 2**$_ } 0 .. 7;

create_stoppable_database();
my ($observer, $holder) = map { session() } 1 .. 2;

# How many locks and slots of these tests are held by the waiter?
sub held ($waiter) {
    return $observer->value(
        "SELECT count(*) FROM advisory.locks WHERE namespace = 'late' AND granted AND pid = ?",
        $waiter->pid);
}

# Lets all timeouts of a wait pass, and then grants the lock. Returns the session.
sub race ($name, $statement, $setting = undef) {
    for my $limit (LIMITS_MS) {
        my $waiter = session();
        $waiter->run('SELECT interrupts_are_late(true)');
        $waiter->run('SET ' . $setting =~ s/<limit>/${limit}ms/r) if $setting;
        $holder->run(q(SELECT advisory.lock('late', 'a')));
        waits($observer, $waiter, $statement =~ s/<limit>/${limit}ms/r);
        sleep 1.1 * $limit / 1000;
        my $is_in_time = !$waiter->is_done;
        $holder->run(q(SELECT advisory.unlock('late', 'a')));
        return $waiter if $is_in_time;
    }
    die "$name: the wait ended before the lock was free, with each timeout\n";
}

# ---- While it waits ------------------------------------------------------------------------------

# name, statement, setting; how it ends, and what the session holds then
for my $way (
    [ 'try_lock, its own timeout', q(SELECT advisory.try_lock('late', 'a', '<limit>')), undef,
        'true', 1 ],
    [ 'lock, lock_timeout', q(SELECT advisory.lock('late', 'a')), q(lock_timeout = '<limit>'),
        'true', 1 ],
    [ 'lock, statement_timeout', q(SELECT advisory.lock('late', 'a')),
        q(statement_timeout = '<limit>'), '57014', 0 ],
    # The lock of the transaction is over with it.
    [ 'try_xact_lock, its own timeout', q(SELECT advisory.try_xact_lock('late', 'a', '<limit>')),
        undef, 'false', 0 ],
    [ 'await_lock, its own timeout', q(CALL advisory.await_lock('late', 'a', '<limit>')), undef,
        'true', 1 ],
    [ 'lock_all, its own timeout',
        q(SELECT advisory.lock_all('late', ARRAY['a', 'b'], '<limit>')), undef, 'true', 2 ],
) {
    my ($name, $statement, $setting, $end, $holds) = @$way;
    my $waiter = race($name, $statement, $setting);
    my $result = $waiter->finish;
    my $told = !defined $result->{value} || $result->{value} ? 'true' : 'false';
    is($result->{state} // $told, $end, "$name: $end") or diag(explain($result));
    is($waiter->query('SELECT 1')->{state}, undef, '… the next statement is not interrupted');
    is(held($waiter), $holds, '… and it holds the lock just if that is what it was told');
}

# If both its own timeout and statement_timeout have passed when the waiter looks, the server
# reports the lock timeout only. The statement must end all the same.
for my $call (q(advisory.try_lock('late', 'a', interval '<limit>' * 0.5)),
    q(advisory.try_lock_all('late', ARRAY['a', 'b'], interval '<limit>' * 0.5)),
    q(advisory.try_xact_lock('late', 'a', interval '<limit>' * 0.5)),
    q(advisory.lock('late', 'a', interval '<limit>' * 0.5))) {
    my $waiter = race($call, "SELECT $call, pg_sleep(60)", q(statement_timeout = '<limit>'));
    $waiter->ends('57014', "$call: statement_timeout ends the statement");
    is(held($waiter), 0, 'and nothing is held');
}

# ---- When it is granted --------------------------------------------------------------------------

# A cancel that arrives when it is granted, and not yet added to the held locks.
for my $call (q(lock('late', 'free')), q(xact_lock_shared('late', 'free')),
    q(try_acquire('late', 'free', 1)), q(acquire_many('late', 'free', 3, 2))) {
    my $session = session()->run('BEGIN', 'SAVEPOINT s');
    stop_at($session, 'granted')->start("SELECT advisory.$call");
    ok(has_stopped($session), "$call: stopped when it is granted") or next;
    isnt(held($session), 0, '… so it is held');
    $observer->value('SELECT pg_cancel_backend(?)', $session->pid);
    go_on($session)->ends('57014', '… a cancel before the end of the call ends it');
    $session->run('ROLLBACK TO s');
    is(held($session), 0, '… and it is released');
}

done_testing();
