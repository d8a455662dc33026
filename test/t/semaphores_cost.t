#!/usr/bin/env perl
# What semaphores cost: shared memory for each that sessions wait for, and, for a session that has very many slots, time
# for each statement and for each block with an EXCEPTION clause, compared with as many built-in locks.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

use constant {
    CONTENDED => 1000, MEGABYTE => 1024 * 1024,
    USED_ONCE => 100_000, NAMES => 10_000,
    MANY => 16_000, BLOCKS => 1000, STATEMENTS => 200, RATIO => 3, REPEATS => 5, MOST_REPEATS => 20,
};

my $server = own_server('max_connections=5000', 'max_locks_per_transaction=64', 'shared_buffers=16MB');
my ($holder, $other) = map { session(server => $server) } 1, 2;
$holder->run('CREATE EXTENSION advisory_ext');

# How much dynamic shared memory the session has mapped.
sub mapped {
    my ($session) = @_;
    my $bytes = 0;
    open my $maps, '<', '/proc/' . $session->pid . '/maps' or die "cannot read the process's maps: $!\n";
    no warnings 'portable';
    while (<$maps>) {
        $bytes += hex($2) - hex($1) if m{^(\w+)-(\w+) .* /dev/shm/PostgreSQL\.};
    }
    close $maps;
    return $bytes;
}

# ---- Memory ---------------------------------------------------------------------------------------------------------

{
    my $contend = sub {
        my ($name) = @_;
        $holder->run("SELECT advisory.acquire('cost', '$name', 2), advisory.acquire('cost', '$name', 2)");
        die "a slot is free\n" if defined $other->value("SELECT advisory.try_acquire('cost', '$name', 2, '1ms')");
        return;
    };
    # What is made once.
    $contend->("first $_") for 1 .. 3;
    my $before = mapped($other);
    cmp_ok($before, '>', 0, 'shared memory is seen');
    $contend->($_) for 1 .. CONTENDED;
    my $cost = mapped($other) - $before;
    note sprintf '%d contended semaphores, max_connections = 5000: %.1f MB', CONTENDED, $cost / MEGABYTE;
    # A semaphore's state has 4 kB. Memory comes in segments, each of which doubles it; there are also names and held slots in it.
    cmp_ok($cost, '<=', 8 * MEGABYTE, CONTENDED . ' contended semaphores need little shared memory');
    $holder->run('SELECT pg_advisory_unlock_all()');

    my $use_once = sub {
        my ($prefix, $count) = @_;
        $holder->run("DO \$\$ BEGIN FOR i IN 1 .. $count LOOP PERFORM advisory.acquire('cost', '$prefix ' || i, 2), advisory.release('cost', '$prefix ' || i); END LOOP; END \$\$");
    };
    # The name table is full then.
    $use_once->('before', 2 * NAMES);
    $before = mapped($holder);
    $use_once->('once', USED_ONCE);
    $cost = mapped($holder) - $before;
    note sprintf '%d semaphores used once: %.1f MB', USED_ONCE, $cost / MEGABYTE;
    cmp_ok($cost, '<=', 4 * MEGABYTE, 'semaphores that nobody uses any more leave nothing behind');
}

# ---- Many slots in one session --------------------------------------------------------------------------------------

# The processor time of the session.
sub milliseconds {
    my ($session, $sql, $times) = @_;
    return 1000 * processor_time($session, sub { $session->run($sql) for 1 .. $times });
}

my %takes = (
    'built-in' => { session => 'SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ?) AS i', transaction => 'SELECT count(pg_advisory_xact_lock(i)) FROM generate_series(1, ?) AS i' },
    'slots' => { session => "SELECT count(advisory.acquire('cost', 'many', @{[MANY]})) FROM generate_series(1, ?) AS i",
        transaction => "SELECT count(advisory.xact_acquire('cost', 'many', @{[MANY]})) FROM generate_series(1, ?) AS i" },
);
my %does = (
    'blocks with an EXCEPTION clause' => [ "DO \$\$ BEGIN FOR i IN 1 .. @{[BLOCKS]} LOOP BEGIN RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$", 1 ],
    'blocks without an error' => [ "DO \$\$ BEGIN FOR i IN 1 .. @{[BLOCKS]} LOOP BEGIN PERFORM 1; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$", 1 ],
    'statements' => [ 'SELECT 1', STATEMENTS ],
);
for my $scope (qw(session transaction)) {
    my %sessions = map { $_ => session(server => $server) } keys %takes;
    for my $way (keys %takes) {
        $sessions{$way}->run('BEGIN') if $scope eq 'transaction';
        is($sessions{$way}->value($takes{$way}{$scope}, MANY), MANY, MANY . " $way of the $scope");
    }
    for my $what (sort keys %does) {
        # Another program may disturb the processor's caches: the shortest of several times counts, and of more where the ratio is still too large.
        my (%times, $ratio);
        for my $repeat (1 .. MOST_REPEATS) {
            for my $way (keys %takes) {
                my $took = milliseconds($sessions{$way}, @{ $does{$what} });
                $times{$way} = $took if !defined $times{$way} || $took < $times{$way};
            }
            $ratio = $times{slots} / $times{'built-in'};
            last if $repeat >= REPEATS && $ratio <= RATIO;
        }
        note sprintf '%s, %s: %.1f ms, beside built-in locks %.1f ms; ratio %.2f', $scope, $what, @times{ 'slots', 'built-in' }, $ratio;
        cmp_ok($ratio, '<=', RATIO, "$what, with slots of the $scope");
    }
    $_->disconnect for values %sessions;
}

$_->disconnect for $holder, $other;
done_testing();
