#!/usr/bin/env perl
# A wait never ends in false or an error with the lock held. If the lock is granted before the
# waiter handles its timeout or cancel, the server gives it the lock and still raises the error.
#
# So the waiter has to be stopped inside of the lock manager's wait, until both have happened. With
# log_lock_waits the lock manager writes a message there, after deadlock_timeout. The message calls
# for its context, which is ours, and so is the point at which the session stops. When it goes on,
# the lock manager first looks for interrupts, and then at its lock.
use AdvisoryTest;
use StopPoints;
use Time::HiRes qw(sleep);

# Timeouts, in milliseconds. On a busy machine the timeout may end the wait before the message is
# written: then the next try has the next one.
use constant LIMITS_MS => map { 100 * 2**$_ } 0 .. 7;

create_stoppable_database();
my ($observer, $holder) = map { session() } 1 .. 2;

# How many locks and slots of these tests are held by the waiter?
sub held ($waiter) {
    return $observer->value(
        "SELECT count(*) FROM advisory.locks WHERE namespace = 'race' AND granted AND pid = ?",
        $waiter->pid);
}

# What the holder does before the wait and during it.
my %lock = (
    take => "SELECT advisory.lock('race', 'a')",
    free => "SELECT advisory.unlock('race', 'a')");
my %slot = (
    take => "SELECT advisory.acquire('race', 'only', 1)",
    free => "SELECT advisory.release('race', 'only')");

# Makes a session wait, stops it, gives it what it waits for, and lets its timeout pass or
# interrupts it. Returns the session, whose statement goes on.
sub race ($way) {
    my $thing = $way->{thing} // \%lock;
    for my $limit (LIMITS_MS) {
        my ($call, $setting) = map { $_ && s/<limit>/${limit}ms/r } @{$way}{qw(call setting)};
        my $waiter = session()->run(q(SET log_lock_waits = on), q(SET deadlock_timeout = '1ms'));
        # Before the timeout, which may be short for the compilation of a statement.
        stop_at($waiter, 'message from a wait');
        $waiter->run("SET $setting") if $setting;
        $waiter->run('BEGIN', 'SAVEPOINT s') if $way->{in_transaction};
        $holder->run($thing->{take});
        my $is_stopped = has_stopped($waiter->start($call));
        $holder->run($thing->{free});
        # If the message is the error's, it waits no longer.
        my $is_granted = $is_stopped && held($waiter);
        if ($way->{interrupt}) {
            $observer->value("SELECT $way->{interrupt}(?)", $waiter->pid);
        } else {
            sleep 1.1 * $limit / 1000;
        }
        go_on($waiter);
        return $waiter if $is_granted;
    }
    die "$way->{name}: the wait was never stopped before its timeout\n";
}

# Compares what the waiter was told with what it holds, while its transaction is open.
sub try_way ($way) {
    my $waiter = race($way);
    my $result = $waiter->finish;
    # An error ends the savepoint and not the transaction, which would release the lock in any case.
    $waiter->run('ROLLBACK TO s') if $way->{in_transaction} && $result->{state};
    my $told = $result->{state} ? 0 : !defined $result->{value} || $result->{value} ? 1 : 0;
    is($result->{state} // ($told ? 'true' : 'false'), $way->{end}, "$way->{name}: $way->{end}")
        or diag(explain($result));
    is(held($waiter), $told, "$way->{name}: true if held, and only then");
    return $waiter;
}

# ---- Locks ---------------------------------------------------------------------------------------

# name, call, setting, interrupt; and how it ends in session and in transaction scope. A lock of the
# session that was granted counts; that of the transaction ended with the wait's subtransaction.
my @ways = (
    [ 'try, its own timeout', q(try_%s('race', 'a', '<limit>')), undef, undef, 'true', 'false' ],
    [ 'lock, its own timeout', q(%s('race', 'a', '<limit>')), undef, undef, 'true', '55P03' ],
    [ 'try, lock_timeout', q(try_%s('race', 'a', NULL)), q(lock_timeout = '<limit>'), undef,
        'true', 'false' ],
    [ 'lock, lock_timeout', q(%s('race', 'a')), q(lock_timeout = '<limit>'), undef,
        'true', '55P03' ],
    [ 'try, statement_timeout', q(try_%s('race', 'a', NULL)), q(statement_timeout = '<limit>'),
        undef, '57014', '57014' ],
    [ 'lock, statement_timeout', q(%s('race', 'a')), q(statement_timeout = '<limit>'), undef,
        '57014', '57014' ],
    [ 'try, cancelled', q(try_%s('race', 'a', NULL)), undef, 'pg_cancel_backend', '57014',
        '57014' ],
    [ 'lock, cancelled', q(%s('race', 'a')), undef, 'pg_cancel_backend', '57014', '57014' ],
);
for my $way (@ways) {
    my ($name, $call, $setting, $interrupt, @ends) = @$way;
    for my $function (qw(lock lock_shared xact_lock xact_lock_shared)) {
        my $in_transaction = $function =~ /^xact/ ? 1 : 0;
        try_way({ name => "$name ($function)",
            call => 'SELECT advisory.' . sprintf($call, $function),
            setting => $setting, interrupt => $interrupt, in_transaction => $in_transaction,
            end => $ends[$in_transaction] });
    }
}

try_way({ name => $_->[0], call => $_->[1], setting => $_->[2], interrupt => $_->[3],
        end => $_->[4] }) for
    [ 'await_lock, its own timeout', q(CALL advisory.await_lock('race', 'a', '<limit>')), undef,
        undef, 'true' ],
    [ 'await_lock, cancelled', q(CALL advisory.await_lock('race', 'a')), undef,
        'pg_cancel_backend', '57014' ],
    [ 'lock_all, its own timeout', q(SELECT advisory.lock_all('race', '{a}', '<limit>')), undef,
        undef, 'true' ],
    [ 'lock_all, cancelled', q(SELECT advisory.lock_all('race', '{a}')), undef,
        'pg_cancel_backend', '57014' ],
    [ 'lock_key, statement_timeout', q(SELECT advisory.lock_key(advisory.key('race', 'a'))),
        q(statement_timeout = '<limit>'), undef, '57014' ];

# ---- Slots ---------------------------------------------------------------------------------------

# The only slot of a semaphore is waited for by the lock manager: a slot that is granted in time is
# there to be released.
{
    my $waiter = try_way({ name => 'try_acquire, its own timeout', thing => \%slot,
        call => q(SELECT advisory.try_acquire('race', 'only', 1, '<limit>')), end => 'true' });
    $waiter->shows("SELECT slot, scope, acquired_at IS NOT NULL FROM advisory.locks
            WHERE pid = pg_backend_pid() AND kind = 'semaphore'", '1|session|1',
        'try_acquire, its own timeout: a slot that was granted counts');
    is($waiter->warned("SELECT advisory.release('race', 'only')"), '',
        'and is released without a warning');
}
try_way({ name => 'acquire, cancelled', thing => \%slot, interrupt => 'pg_cancel_backend',
    call => q(SELECT advisory.acquire('race', 'only', 1)), end => '57014' });

done_testing();
