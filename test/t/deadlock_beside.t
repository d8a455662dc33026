#!/usr/bin/env perl
# A deadlock over semaphores is found in time although there are many locks, and many waiting
# sessions that are not part of a deadlock. They wait for the same semaphores or for another one,
# and some have slots. Some of them hold slots that others wait for, so their searches go as far as
# that of the deadlocked sessions. None of them is reported as part of the deadlock.
# Runs once: 500 sessions wait and time is measured; semaphores_deadlock.t has the deadlocks.
use AdvisoryTest;
use Time::HiRes qw(sleep);

# ADVISORY_EXT_WAITERS=1200 for a bench.
use constant {
    WAITERS => $ENV{ADVISORY_EXT_WAITERS} // 500,
    LOCKS   => 200_000,
    # of them behind the deadlock, and in somebody's way
    BEHIND  => 66,
    TRIES   => 3,
    FOUND_S => 2,                                               # deadlock_timeout and a second
    # the machine may be busy, with more than waiting for a processor
    SLACK_S => $ENV{ADVISORY_EXT_WAITERS} ? 0 : 1,
};

my $server = own_server(
    'max_connections=' . (WAITERS + 50), 'max_locks_per_transaction=' . int(LOCKS / WAITERS + 64),
    'deadlock_timeout=1s', 'autovacuum=off');
my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $new = sub { return session(server => $server) };

sub acquires ($name, $slots) {
    return "SELECT advisory.acquire('beside', '$name', $slots)"
}

sub takes ($session, $name, $slots, $count) {
    return $session->run((acquires($name, $slots)) x $count);
}

# How many sessions wait for a slot.
sub queued ($name) {
    return $look->value(q(SELECT sum(waiting) FROM advisory.semaphores WHERE name = ?), $name) // 0;
}

my $many = $new->()
    ->run('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . LOCKS . ') i');
my %all = map { $_ => takes($new->(), $_, 4, 4) } qw(x y);
my $idle = takes($new->(), 'busy', 2, 2);
my @holders = map { takes($new->(), 'n', 2, 1) } 1, 2;

# The first of them wait for x, and have a slot that another session waits for. The others wait for
# x, y, n and busy by turns, and most have a slot that no session waits for.
my @waiters;
for my $i (1 .. WAITERS - 1) {
    my $waiter = $new->();
    takes($waiter, $i <= BEHIND ? ('wanted', BEHIND) : ('unwanted', 16000), 1)
        if $i <= BEHIND || $i % 8;
    my $for = $i <= BEHIND ? 'x' : (qw(x y n busy))[ $i % 4 ];
    $waiter->start(acquires($for, $for =~ /^[xy]$/ ? 4 : 2));
    push @waiters, $waiter;
}
push @waiters, $new->()->start(acquires('wanted', BEHIND));
wait_until('all of them wait', sub {
    queued('x') + queued('y') + queued('n') + queued('busy') + queued('wanted') == WAITERS
}, 60);

# Over two semaphores: the sessions that have all slots of one wait for the other.
my @took;
for my $try (1 .. TRIES) {
    push @took, undisturbed_time(sub {
        $all{x}->start(acquires('y', 4));
        $all{y}->start(acquires('x', 4));
        wait_until('the deadlock is found', sub { grep { $_->is_done } values %all }, 100);
    }, values %all);
    my ($victim) = grep { $_->is_done } values %all;
    my ($winner) = grep { $_ != $victim } values %all;
    $victim->ends('40P01', "try $try: over two semaphores");
    $look->run('SELECT pg_cancel_backend(' . $winner->pid . ')');
    $winner->ends('57014', 'one gives up, and the other waits on');
}
note sprintf 'over two semaphores: found after %s s', join ', ',
    map { sprintf '%.2f', $_ } sort { $a <=> $b } @took;
ok(!(grep { $_ > FOUND_S + SLACK_S } @took), 'each is found in time');

# A cycle that an ordinary lock closes later: the holders wait for a lock of a session that waits
# for their slots.
my $key = $look->value(q(SELECT advisory.key('beside', 'key')));
@took = ();
for my $try (1 .. TRIES) {
    my $waiter = $new->()->run(q(SELECT advisory.lock('beside', 'key')));
    $waiter->start(acquires('n', 2));
    sleep 1.2;
    push @took, undisturbed_time(sub {
        $_->start("SELECT pg_advisory_lock($key)") for @holders;
        wait_until('the deadlock is found', sub { $waiter->is_done }, 100);
    }, $waiter, @holders);
    $waiter->ends('40P01', "try $try: over a semaphore and a lock");
    $waiter->disconnect;
    wait_until('one holder has the lock', sub { grep { $_->is_done } @holders });
    my ($first) = grep { $_->is_done } @holders;
    $first->finish;
    $first->run("SELECT pg_advisory_unlock($key)");
    for my $second (grep { $_ != $first } @holders) {
        $second->finish;
        $second->run("SELECT pg_advisory_unlock($key)");
    }
}
note sprintf 'over a lock: found after %s s', join ', ',
    map { sprintf '%.2f', $_ } sort { $a <=> $b } @took;
ok(!(grep { $_ > 1 + SLACK_S } @took), 'each is found in time, which is a second after it began');
is(scalar(grep { $_->is_done } @waiters), 0, 'none of the others has been taken for a part of it');

done_testing;
