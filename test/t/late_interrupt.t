#!/usr/bin/env perl
# An interrupt that arrives after the lock manager has checked for interrupts the last time, but
# before it returns with the lock, does not end in an error with the lock held. A debugger stops the
# waiter where it turns its timers off, because this moment is too short to be hit by chance.
use AdvisoryTest;
use Time::HiRes qw(time);

# The timeout, in milliseconds: the lock must be released before it ends. If the machine was too
# busy for that, the next try has twice as long.
use constant { FIRST_LIMIT_MS => 500, TRIES => 6 };

plan skip_all => 'gdb is not installed' unless program('gdb');

create_database();
my ($observer, $holder) = map { session() } 1 .. 2;
plan skip_all => 'processes may not be traced here' unless may_trace($holder->pid);

# An ordinary user under Yama, and some containers, may not.
sub may_trace ($pid) {
    my $said = `timeout 120 gdb -q -batch -nx -p $pid -ex detach 2>&1`;
    return $said =~ /detached/;
}

sub held ($waiter) {
    return $observer->value(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = ?",
        $waiter->pid);
}

# A debugger that stops the session at one of these functions for so many seconds. The session is
# idle, and goes on when this returns.
sub stop_at ($waiter, $pause, @functions) {
    my $pid = open my $gdb, '-|', 'sh', '-c', 'exec timeout 120 "$@" 2>/dev/null', 'sh', 'gdb',
        '-q', '-batch', '-nx', '-p', $waiter->pid,
        '-ex', 'handle SIGALRM SIGUSR1 SIGINT SIGURG SIGPIPE nostop noprint pass',
        map({ ('-ex', "break $_") } @functions),
        '-ex', 'echo goes on\n',
        '-ex', 'continue',
        '-ex', "shell sleep $pause",
        '-ex', 'detach', or die "cannot run gdb: $!\n";
    while (my $line = <$gdb>) {
        return ($pid, $gdb) if $line =~ /^goes on/;
    }
    die "gdb has ended\n";
}

# The session, its result, and whether it was stopped with the lock granted.
sub race ($statement, $setting, $limit) {
    my $waiter = session();
    $waiter->run($setting) if $setting;
    $holder->value("SELECT advisory.lock('late', 'a')");
    # When it has the lock and is about to turn off its timers (the second: without lock_timeout).
    my ($debugger, $gdb) =
        stop_at($waiter, 1.2 * $limit / 1000, 'disable_timeouts', 'disable_timeout');
    my $from = time;
    waits($observer, $waiter, $statement);
    $holder->value("SELECT advisory.unlock('late', 'a')");
    my $in_time = held($waiter) && time - $from < 0.9 * $limit / 1000;
    my $result = $waiter->finish;
    # If the session was never stopped, the debugger would wait on.
    kill TERM => $debugger;
    my $said = join '', <$gdb>;
    close $gdb;
    return ($waiter, $result, $in_time && $said =~ /Breakpoint \d, /);
}

# %s is the timeout.
my @ways = (
    [ 'try_lock, its own timeout',      "SELECT advisory.try_lock('late', 'a', '%s')" ],
    [ 'lock, statement_timeout',        "SELECT advisory.lock('late', 'a')",
        "SET statement_timeout = '%s'" ],
    [ 'try_xact_lock, its own timeout', "SELECT advisory.try_xact_lock('late', 'a', '%s')" ],
    [ 'await_lock, its own timeout',    "CALL advisory.await_lock('late', 'a', '%s')" ],
    [ 'lock_all, its own timeout',      "SELECT advisory.lock_all('late', ARRAY['a', 'b'], '%s')" ],
);
for my $way (@ways) {
    my ($name, $statement, $setting) = @$way;
    my ($waiter, $result, $caught);
    for my $try (0 .. TRIES - 1) {
        my $limit = FIRST_LIMIT_MS * 2**$try;
        ($waiter, $result, $caught) =
            race((map { $_ && s/%s/${limit}ms/r } $statement, $setting), $limit);
        last if $caught;
        $waiter->disconnect;
    }
    ok $caught, "$name: stopped with the lock granted" or next;
    is $waiter->query('SELECT 1')->{state}, undef, '… the next statement is not interrupted';
    my $said = $result->{state} ? 0 : $statement =~ /^CALL/ ? 1 : $result->{value};
    my $kept = held($waiter) ? 1 : 0;
    $kept = $said if $statement =~ /xact/ && !$result->{state};    # over with its transaction
    is $kept, $said, '… and it holds the lock just if that is what it was told ('
        . ($result->{state} // "value $said") . ')';
}

# A cancel that arrives when a free lock is granted, and not yet added to the held locks.
{
    my $session = session();
    $session->run("SELECT advisory.is_locked('late', 'free')");
    my ($debugger, $gdb) = stop_at($session, 1, 'held_add');
    $session->start("SELECT advisory.lock('late', 'free')");
    wait_until('it has the lock', sub { held($session) || $session->is_done });
    $observer->run('SELECT pg_cancel_backend(' . $session->pid . ')');
    $session->ends('57014', 'a cancel between the grant and the end of the call ends it');
    is held($session), 0, '… and the lock is released';
    waitpid $debugger, 0;
}

done_testing;
