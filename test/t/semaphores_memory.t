#!/usr/bin/env perl
# Semaphores need little shared memory: each that sessions wait for some, and those that nobody uses
# any more none. (`make bench BENCH=semaphores` has what a session pays that holds many slots.)
use AdvisoryTest;

use constant { CONTENDED => 1000, NAMES => 1000, USED_ONCE => 10_000, MEGABYTE => 1024 * 1024 };

my $server = own_server('max_connections=5000', 'max_locks_per_transaction=64',
    'shared_buffers=16MB', 'advisory_ext.max_names=' . NAMES);
my ($holder, $other) = map { session(server => $server) } 1, 2;
$holder->run('CREATE EXTENSION advisory_ext');

# How much dynamic shared memory the session has mapped.
sub mapped ($session) {
    my $bytes = 0;
    my $file = '/proc/' . $session->pid . '/maps';
    open my $maps, '<', $file or die "cannot read $file: $!\n";
    no warnings 'portable';
    while (<$maps>) {
        $bytes += hex($2) - hex($1) if m{^(\w+)-(\w+) .* /dev/shm/PostgreSQL\.};
    }
    close $maps;
    return $bytes;
}

sub contend ($name) {
    $holder->run("SELECT advisory.acquire('cost', '$name', 2) FROM generate_series(1, 2)");
    die "a slot is free\n"
        if defined $other->value("SELECT advisory.try_acquire('cost', '$name', 2, '1ms')");
    return;
}

# What is made once.
contend("first $_") for 1 .. 3;
my $before = mapped($other);
cmp_ok($before, '>', 0, 'shared memory is seen');
contend($_) for 1 .. CONTENDED;
my $cost = mapped($other) - $before;
note sprintf '%d contended semaphores: %.1f MB', CONTENDED, $cost / MEGABYTE;
# A semaphore's state has 4 kB. Memory comes in segments, each of which doubles it; there are also
# names and held slots in it.
cmp_ok($cost, '<=', 8 * MEGABYTE, CONTENDED . ' contended semaphores need little shared memory');
$holder->run('SELECT pg_advisory_unlock_all()');

sub use_once ($prefix, $count) {
    $holder->run(<<"SQL");
DO \$\$ BEGIN FOR i IN 1 .. $count LOOP
    PERFORM advisory.acquire('cost', '$prefix ' || i, 2), advisory.release('cost', '$prefix ' || i);
END LOOP; END \$\$
SQL
    return;
}

# The name table is full then.
use_once('before', 2 * NAMES);
$before = mapped($holder);
use_once('once', USED_ONCE);
$cost = mapped($holder) - $before;
note sprintf '%d semaphores used once: %.1f MB', USED_ONCE, $cost / MEGABYTE;
cmp_ok($cost, '<=', 4 * MEGABYTE, 'semaphores that nobody uses any more leave nothing behind');

done_testing();
