#!/usr/bin/env perl
# Semaphores need little shared memory: each as much as its slots need, all together no more than
# their limit, and those that no session uses any more none. (`make bench BENCH=semaphores` has what
# a session pays that holds many slots.)
use AdvisoryTest;
use Semaphores;

use constant {
    CONTENDED => 1000, NAMES => 1000, USED_ONCE => 10_000, GONE => 9000, LARGE => 2000,
    SLOTS => 16_000, MEGABYTE => 1024 * 1024,
};

my $server = own_server('max_connections=1000', 'max_locks_per_transaction=64',
    'shared_buffers=16MB', 'dynamic_shared_memory_type=mmap', 'advisory_ext.max_names=' . NAMES);
my ($holder, $other) = map { session(server => $server) } 1, 2;
$holder->run('CREATE EXTENSION advisory_ext');

# How much dynamic shared memory the server has, in files because of dynamic_shared_memory_type.
sub memory { return $other->value(<<'SQL') }
    SELECT sum((pg_stat_file('pg_dynshmem/' || name, true)).size)
    FROM pg_ls_dir('pg_dynshmem') AS name
SQL

# How much more it has after the code has run; memory comes in segments, of which each is as large
# as all before it.
sub costs ($what, $code) {
    my $before = memory();
    $code->();
    my $cost = memory() - $before;
    note sprintf '%s: %.1f MB', $what, $cost / MEGABYTE;
    return $cost;
}

sub contend ($name) {
    $holder->run("SELECT advisory.acquire('cost', '$name', 2) FROM generate_series(1, 2)");
    die "a slot is free\n"
        if defined $other->value("SELECT advisory.try_acquire('cost', '$name', 2, '1ms')");
    return;
}

# Each of these semaphores is used once: the statements are run for it, with its name.
sub each_of ($session, $prefix, $count, @calls) {
    my $calls = join ', ', map { "advisory.$_" } @calls;
    $calls =~ s/<it>/'cost', '$prefix ' || i/g;
    $session->run("DO \$\$ BEGIN FOR i IN 1 .. $count LOOP PERFORM $calls; END LOOP; END \$\$");
    return;
}

# What is made once. The name table is full then.
contend("first $_") for 1 .. 3;
each_of($holder, 'before', 2 * NAMES, 'acquire(<it>, 2)', 'release(<it>)');
cmp_ok(memory(), '>', 0, 'shared memory is seen');

cmp_ok(costs(CONTENDED . ' contended semaphores', sub { contend($_) for 1 .. CONTENDED }),
    '<=', 2 * MEGABYTE, CONTENDED . ' contended semaphores need little shared memory');
$holder->run('SELECT pg_advisory_unlock_all()');

cmp_ok(costs(USED_ONCE . ' semaphores used once',
        sub { each_of($holder, 'once', USED_ONCE, 'acquire(<it>, 2)', 'release(<it>)') }),
    '<=', 2 * MEGABYTE, 'semaphores that nobody uses any more leave nothing behind');

# What a session had that has ended is free when the next one takes any lock.
sub hold_and_leave ($prefix, $count, $slots) {
    my $session = session(server => $server);
    $session->run('SET advisory_ext.pool_limit = 0');
    each_of($session, $prefix, $count, "acquire(<it>, $slots)");
    leave($holder, $session);
    $other->run(q(SELECT advisory.try_xact_lock('cost', 'next')));
    return;
}
cmp_ok(costs(GONE . ' semaphores of a session', sub { hold_and_leave('a', GONE, 2) }),
    '<=', 8 * MEGABYTE, GONE . ' semaphores of one session need little shared memory');
cmp_ok(costs('others, after its end',
        sub { hold_and_leave("next $_", GONE, 2) for 1 .. 14 }),
    '<=', 1 * MEGABYTE, 'and nothing after its end');

sub look_time { return processor_time($other, sub { $other->run(q(SELECT count(*)
        FROM generate_series(1, 50) AS n, advisory.holders('cost', 'nobody' || n))) }) }
my $looked_before = look_time();

# However many slots a semaphore has, and however many of them there are.
my $hog = session(server => $server);
cmp_ok(costs('large semaphores', sub {
            $hog->run('SET advisory_ext.pool_limit = 0');
            each_of($hog, 'large', LARGE, 'acquire(<it>, ' . SLOTS . ')');
        }), '<=', 16 * MEGABYTE, LARGE . ' semaphores of ' . SLOTS . ' slots have a limit');

# A semaphore without room for its state works. When there is room again, a waiter that comes then
# is woken at once.
my $late = session(server => $server);
my $TAKES = sub ($name, $count, $slots) {
    "SELECT count(advisory.acquire('cost', '$name', $slots)) FROM generate_series(1, $count)" };
$holder->shows($TAKES->('no room', 3, 100), 3, 'a semaphore without room for its state works');
$other->shows(q(SELECT advisory.try_acquire('cost', 'no room', 100)), 4, 'for others, too');
$holder->run($TAKES->('no room', 90, 100));
$other->shows(q(SELECT count(*), max(slot) FROM advisory.holders('cost', 'no room')), '94|94',
    'holders() shows all who have a slot');
my $looked_everywhere = look_time();
$holder->run(q(SELECT advisory.release('cost', 'no room', n) FROM generate_series(5, 94) n));
$holder->shows($TAKES->('small', 3, 3), 3, 'small ones have room nevertheless');
$late->start(q(SELECT advisory.acquire('cost', 'no room', 4)));
$other->wait_until('it waits', q(SELECT wait_event = 'advisory' FROM pg_stat_activity
    WHERE pid = ?), $late->pid);
$holder->run(q(SELECT advisory.release('cost', 'no room')));
$late->returns(3, 'a waiter gets what is released');
# A session that has slots, and asks with a number for which there is no room.
$late->run(q(SELECT advisory.release('cost', 'no room')));
$holder->shows(q(SELECT advisory.acquire('cost', 'small', 200)), 4,
    'a session that asks for more slots than there is room for gets one');
is_woken_at_once('it still wakes others', 'small', 3, $holder, 2);
$late->run(q(SELECT advisory.release('cost', 'small')));
$holder->run(q(SELECT advisory.release('cost', 'small', n) FROM unnest(ARRAY[1, 3]) n));
$other->shows(q(SELECT count(advisory.try_acquire('cost', 'small', 3)) FROM generate_series(1, 4)),
    3, 'and others find what it has released');
$_->run('SELECT pg_advisory_unlock_all()') for $holder, $other, $late;

# When there is room again, who comes then is woken at once.
sub is_woken_at_once ($what, $name, $slots, $from, $slot) {
    $late->start("SELECT advisory.acquire('cost', '$name', $slots)");
    $other->wait_until('it waits',
        q(SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = ?), $late->pid);
    my $took = undisturbed_time(sub {
        $from->run("SELECT advisory.release('cost', '$name', $slot)");
        $late->returns($slot, "$what: a waiter gets slot $slot");
    }, $from, $late);
    return cmp_ok($took, '<', 0.09, 'at once');
}
leave($holder, $hog);
$other->run(q(SELECT advisory.try_xact_lock('cost', 'next')));
$holder->shows($TAKES->('no room', 100, 100), 100, 'when there is room again');
is_woken_at_once('then', 'no room', 100, $holder, 77);
$_->run('SELECT pg_advisory_unlock_all()') for $holder, $late;
cmp_ok(look_time(), '<', ($looked_before + $looked_everywhere) / 2,
    'and holders() no longer looks for slots that nobody knows of');

# Sessions that use more slots of a semaphore, one after the other; the first one wakes waiters that
# can use more than it has asked for itself.
for my $slots (300, 1100, 5000, SLOTS) {
    my ($first, $more) = map { session(server => $server) } 1, 2;
    $first->run($TAKES->('grows', 100, 100));
    $more->shows($TAKES->('grows', $slots - 100, $slots), $slots - 100, "it grows to $slots slots");
    $other->shows("SELECT advisory.try_acquire('cost', 'grows', $slots)", 'NULL', 'all are taken');
    is_woken_at_once("$slots slots, the first 100 of a session that does not know of others",
        'grows', $slots, $first, 5);
    is_woken_at_once('the others', 'grows', $slots, $more, $slots);
    $late->run('SELECT pg_advisory_unlock_all()');
    leave($holder, $first, $more);
}
done_testing();
