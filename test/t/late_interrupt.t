#!/usr/bin/env perl
# An interrupt that arrives after the lock manager has checked for interrupts the last time, but before it returns with the lock,
# does not end in an error with the lock held. A debugger stops the waiter where it turns its timers off, because this moment is
# too short to be hit by chance.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;
use Time::HiRes qw(sleep);

# Long enough for the debugger to attach.
use constant LIMIT_MS => 2500;

plan skip_all => 'gdb is not installed' unless program('gdb');

# Skipped where processes may not be traced (an ordinary user under Yama, some containers).
sub may_trace {
    my ($pid) = @_;
    my $said = `timeout 30 gdb -q -batch -nx -p $pid -ex detach 2>&1`;
    return $said =~ /detached/;
}

create_database();
my $observer = session();
my $holder   = session();
plan skip_all => 'processes may not be traced here' unless may_trace($holder->pid);

sub held {
    my ($waiter) = @_;
    return $observer->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = ?",
        $waiter->pid);
}

# A debugger that stops the waiter when it has the lock and is about to turn off its timers, until the timers have fired.
sub stop_late {
    my ($waiter) = @_;
    my $pause = 1.2 * LIMIT_MS / 1000;
    open my $gdb, '-|', 'sh', '-c', 'exec timeout 30 "$@" 2>/dev/null', 'sh', 'gdb', '-q', '-batch', '-nx', '-p', $waiter->pid,
        '-ex', 'handle SIGALRM SIGUSR1 SIGINT SIGURG SIGPIPE nostop noprint pass',
        '-ex', 'break disable_timeouts',    # with lock_timeout
        '-ex', 'break disable_timeout',     # without
        '-ex', 'continue',
        '-ex', "shell sleep $pause",
        '-ex', 'detach', or die "cannot run gdb: $!\n";
    wait_until('the debugger is there', sub {
        open my $status, '<', '/proc/' . $waiter->pid . '/status' or return 0;
        return grep { /^TracerPid:\s*[1-9]/ } <$status>;
    });
    sleep 0.5;
    return $gdb;
}

sub race {
    my ($statement, $setting) = @_;
    my $waiter = session();
    $waiter->run($setting) if $setting;
    $holder->value("SELECT advisory.lock('late', 'a')");
    $waiter->start($statement);
    waits($observer, $waiter);
    my $gdb = stop_late($waiter);
    $holder->value("SELECT advisory.unlock('late', 'a')");
    my $said   = join '', <$gdb>;
    close $gdb;
    my $result = $waiter->finish;
    return ($waiter, $result, $said =~ /Breakpoint \d, /);
}

my $own = LIMIT_MS . 'ms';
my @ways = (
    [ 'try_lock, its own timeout',      "SELECT advisory.try_lock('late', 'a', '$own')" ],
    [ 'lock, statement_timeout',        "SELECT advisory.lock('late', 'a')",             "SET statement_timeout = '$own'" ],
    [ 'try_xact_lock, its own timeout', "SELECT advisory.try_xact_lock('late', 'a', '$own')" ],
    [ 'await_lock, its own timeout',    "CALL advisory.await_lock('late', 'a', '$own')" ],
    [ 'lock_all, its own timeout',      "SELECT advisory.lock_all('late', ARRAY['a', 'b'], '$own')" ],
);
for my $way (@ways) {
    my ($name, $statement, $setting) = @$way;
    my ($waiter, $result, $caught) = race($statement, $setting);
    ok $caught, "$name: stopped with the lock granted";
    is $waiter->query('SELECT 1')->{state}, undef, '… the next statement is not interrupted';
    my $said = $result->{state} ? 0 : $statement =~ /^CALL/ ? 1 : $result->{value};
    my $kept = held($waiter) ? 1 : 0;
    $kept = $said if $statement =~ /xact/ && !$result->{state};    # over with its transaction
    is $kept, $said, '… and it holds the lock just if that is what it was told (' . ($result->{state} // "value $said") . ')';
    $waiter->disconnect;
}

done_testing;
