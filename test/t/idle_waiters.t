#!/usr/bin/env perl
# Sessions that wait for a slot, and hold a slot of another semaphore, use almost no processor time,
# however many locks there are. Their deadlock checks read only what they themselves hold and wait
# for. The test reads the processor time of the server's processes from /proc, which has it in
# nanoseconds, and compares it with that of as many sessions that only wake up once a second, too:
# what a wake-up costs differs between machines, and with what else they do.
# Runs once: what is measured is our own work.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

# ADVISORY_EXT_WAITERS=550 for a bench.
use constant {
    WAITERS => $ENV{ADVISORY_EXT_WAITERS} // 150,
    LOCKS   => 100_000,
    SECONDS => $ENV{ADVISORY_EXT_WAITERS} ? 20 : 4,
    MOST    => 1.5,                                             # times as much
};

plan skip_all => 'the kernel does not tell how long a process ran' unless -r '/proc/self/schedstat';

my $server = own_server(
    'max_connections=' . (WAITERS + 20), 'max_locks_per_transaction=' . int(LOCKS / WAITERS + 64),
    'deadlock_timeout=100ms', 'autovacuum=off');
my $new = sub { return session(server => $server) };
my $look = $new->()->run('CREATE EXTENSION advisory_ext');
my $many = $new->()
    ->run('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . LOCKS . ') i');
my $idle = $new->()->run(q(SELECT advisory.acquire('idle', 'busy', 2) FROM generate_series(1, 2)));

my @waiters =
    map { $new->()->run("SELECT advisory.acquire('idle', 'own', @{[WAITERS]})") } 1 .. WAITERS;

sub all_wait ($count) {
    return wait_until(
        'all of them wait',
        sub { $look->value('SELECT sum(waiting) FROM advisory.semaphores') == $count });
}

# Percent of a processor.
sub used {
    my $nanoseconds = sub {
        my $sum = 0;
        for my $waiter (@waiters) {
            open my $stat, '<', '/proc/' . $waiter->pid . '/schedstat'
                or die "a waiter has gone: $!\n";
            $sum += (split ' ', <$stat>)[0];
        }
        return $sum;
    };
    my ($from, $before) = (time, $nanoseconds->());
    sleep SECONDS;
    return 100 * ($nanoseconds->() - $before) / 1e9 / (time - $from);
}

$_->start('DO $$ BEGIN LOOP PERFORM pg_sleep(1); END LOOP; END $$') for @waiters;
sleep 2;
my $plain = used();
note sprintf '%.1f %% of a processor', $plain;
for my $waiter (@waiters) {
    $look->run('SELECT pg_cancel_backend(' . $waiter->pid . ')');
    $waiter->finish;
}
$_->start(q(SELECT advisory.acquire('idle', 'busy', 2))) for @waiters;
all_wait(WAITERS);
sleep 2;
cmp_ok(my $used = used(), '<', MOST * $plain,
    "@{[WAITERS]} waiters with a slot that nobody waits for");
note sprintf '%.1f %% of a processor', $used;

# Now each of them blocks another session.
my $other = $new->()->start("SELECT advisory.acquire('idle', 'own', @{[WAITERS]})");
all_wait(WAITERS + 1);
cmp_ok($used = used(), '<', MOST * $plain, 'and when somebody waits for that');
note sprintf '%.1f %% of a processor', $used;

done_testing;
