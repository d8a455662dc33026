#!/usr/bin/env perl
# Semaphores on a server that has no byte of shared memory left, so that sessions cannot wake each
# other: there are never more than K sessions inside, they are served in order, and deadlocks are
# found. Only names and instant wake-ups are missing.
use AdvisoryTest;
use List::Util qw(max);
use Time::HiRes qw(time);

use constant { MORE_THAN_FITS => 1_000_000, SERVERS => 8, SESSIONS => 12, SLOTS => 3, HOLDS => 8,
    LOOKS_MS => 100 };

# As in names_full.t: each byte of this setting changes the memory that is left by a few dozen
# bytes.
my $query_size = 1024;
my ($server, $look, @sessions);

# A server whose lock table was full once, so that no memory is left for anything else. Returns the
# number of bytes left.
sub fill_a_server {
    $server = own_server('max_locks_per_transaction=10', 'max_connections=30',
        'max_prepared_transactions=2', "track_activity_query_size=$query_size");
    $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
    @sessions = map { session(server => $server) } 1 .. SESSIONS;
    $_->run('SELECT relname FROM pg_class') for @sessions, $look;
    for my $hog (map { session(server => $server) } 1, 2) {
        $hog->fails('SELECT count(pg_advisory_lock_shared(i)) FROM generate_series(1, '
            . MORE_THAN_FITS . ') AS i', '53200',
            "the lock table is full (query size $query_size)");
    }
    return $look->value('SELECT coalesce(sum(size), 0) FROM pg_shmem_allocations
        WHERE name IS NULL');
}

sub acquires ($name, $slots) { return "SELECT advisory.acquire('full', '$name', $slots)" }

sub releases ($name) { return "SELECT advisory.release('full', '$name')" }

# Leaves out the notice that each session gets once.
sub outcome ($session, $statement) {
    my $result = $session->query($statement);
    return $result->{state} // $result->{value};
}

sub in_line ($waiter) {
    return wait_until('session waits', sub { $look->value('SELECT count(*) FROM advisory.locks
            WHERE pid = ? AND NOT granted', $waiter->pid) || $waiter->is_done });
}

my $left = fill_a_server();
for (1 .. SERVERS) {
    last if $left == 0
        || $look->value(q(SELECT current_setting('server_version_num')::int >= 170000));
    $query_size += $left > 1024 ? int($left / 62) : 1;
    $server->stop;
    $left = fill_a_server();
}

SKIP: {
    skip 'from 17 on the server has a registry for such memory', 1
        if $look->value(q(SELECT current_setting('server_version_num')::int >= 170000));
    is($left, 0, 'a server with nothing left is found') or skip 'there is none', 1;

    my ($holder, $other, @queue) = @sessions[ 0 .. 7 ];
    # Each session has got its notice now.
    is_deeply([ map { outcome($_, "SELECT advisory.try_acquire('full', 'a', 2)") . outcome($_,
            releases('a')) } @sessions ], [ ('11') x SESSIONS ],
        'each session gets a slot and releases it');
    $look->shows('SELECT available FROM advisory.directory', 0, 'without shared memory');

    # ---- In order --------------------------------------------------------------------------------

    is_deeply([ map { outcome($holder, "SELECT advisory.try_acquire('full', 'a', 2)") } 1 .. 3 ],
        [ 1, 2, undef ], 'K slots');
    $other->shows("SELECT advisory.try_acquire('full', 'a', 2)", 'NULL', 'none for others');
    for my $waiter (@queue) {
        $waiter->start(acquires('a', 2) . ', extract(epoch FROM clock_timestamp())');
        in_line($waiter);
        next if $waiter != $queue[0];
        $look->shows('SELECT depth, waits_for_pid FROM advisory.waits WHERE pid = ?',
            "1|$holder->{pid}", 'advisory.waits shows the waiter', $waiter->pid);
        $look->shows('SELECT count(*) FROM advisory.wait_tree()', 2, 'so does wait_tree()');
    }
    is_deeply($look->rows('SELECT in_use, waiting, holders FROM advisory.semaphores'),
        [ [ 2, scalar @queue, [ ($holder->pid) x 2 ] ] ], 'semaphores');
    $other->shows("SELECT advisory.try_acquire('full', 'a', 2)", 'NULL',
        'try_acquire() does not overtake');
    my ($from, @order, @delays) = ($holder);
    while (grep { $_->{sth} } @queue) {
        my ($free, $stalled) = (time, stalled($holder, @queue));
        $from->run(releases('a'));
        wait_until('somebody is served',
            sub { grep { $queue[$_]{sth} && $queue[$_]->is_done } 0 .. $#queue });
        my ($next) = grep { $queue[$_]{sth} && $queue[$_]->is_done } 0 .. $#queue;
        push @order, $next;
        $from = $queue[$next];
        push @delays,
            1000 * ($from->finish->{rows}[0][1] - $free - (stalled($holder, @queue) - $stalled));
    }
    is_deeply(\@order, [ 0 .. $#queue ], 'first come, first served');
    cmp_ok(median(@delays), '<', 5 * LOOKS_MS, 'soon');
    $_->run('SELECT pg_advisory_unlock_all()') for $from, $holder;

    # ---- Never more than K -----------------------------------------------------------------------

    $look->run('CREATE UNLOGGED TABLE span (got float8, done float8)', sprintf <<'SQL', SLOTS);
        CREATE FUNCTION work(holds int) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            got float8;
            done float8;
        BEGIN
            FOR i IN 1 .. holds LOOP
                PERFORM advisory.acquire('full', 'b', %d);
                got := extract(epoch FROM clock_timestamp());
                PERFORM pg_sleep(0.002);
                done := extract(epoch FROM clock_timestamp());
                PERFORM advisory.release('full', 'b');
                INSERT INTO span VALUES (got, done);
            END LOOP;
        END
        $$
SQL
    $_->start('SELECT work(' . HOLDS . ')') for @sessions;
    is_deeply([ map { $_->finish->{state} } @sessions ], [ (undef) x SESSIONS ], 'many at once');
    my ($inside, $most) = (0, 0);
    for my $event (sort {
        $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1];
    } map { ([ $_->[0], 1 ], [ $_->[1], -1 ]) } @{ $look->rows('SELECT * FROM span') }) {
        $inside += $event->[1];
        $most = max($most, $inside);
    }
    is($most, SLOTS, 'never more than ' . SLOTS . ' inside, and as many as that');
    $look->shows('SELECT * FROM advisory.semaphores', [], 'nothing is left');

    # ---- One slot of each of several semaphores --------------------------------------------------

    $holder->run(acquires('of two', 1));
    my ($both, $behind) = @queue;
    $both->start(q(SELECT advisory.acquire_all('full', '{of two,free}', '{1,2}')::text));
    in_line($both);
    $other->shows(q(SELECT advisory.try_acquire_all('full', '{free,of two}', '{2,1}')), 'NULL',
        'try_acquire_all() does not overtake');
    $behind->start(q(SELECT advisory.acquire_all('full', '{free,of two}', '{2,1}', '20s')::text));
    in_line($behind);
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE objsubid > 16384 AND pid <> ?), 0,
        'nobody who waits has a part', $holder->pid);
    $holder->run(releases('of two'));
    $both->returns('{1,1}', 'acquire_all() has both');
    $both->run('SELECT pg_advisory_unlock_all()');
    $behind->returns('{1,1}', 'then the next one, in the opposite order');
    $behind->run('SELECT pg_advisory_unlock_all()');

    # Deadlocks, except over several semaphores, whose numbers of slots are unknown without shared
    # memory.

    my ($w, $p, $q) = @sessions;
    $_->run(acquires('z', 2)) for $p, $q;
    $w->run("SELECT advisory.lock('full', 'in the way')");
    $w->start(acquires('z', 2));
    in_line($w);
    $_->start("SELECT advisory.lock('full', 'in the way')") for $p, $q;
    wait_until('the deadlock is found', sub { $w->is_done });
    is_deeply([ map { $_->is_done ? $_->finish->{state} // 'goes on' : 'waits' } $w, $p, $q ],
        [qw(40P01 waits waits)], 'a cycle over a lock is found');
    $_->disconnect for @sessions;
}

done_testing();
