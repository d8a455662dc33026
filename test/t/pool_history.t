#!/usr/bin/env perl
# Memory that one of the lock tables has grown by stays with that table, so what still fits depends
# on what was held before. advisory.pressure knows it: after many holders of few locks, after many
# tables, also if it is read for the first time then, or when the table is half full or full. And
# the guard stops a session that would fill the rest.
use AdvisoryTest;
use Config;

# As in pool_capacity.t.
use constant { EXACT_FROM => 1200, LARGE_FROM => $Config{ptrsize} == 4 ? 5000 : 2500,
    TOLERANCE => 0.02,
    SMALL_TOLERANCE => $Config{ptrsize} == 4 ? 0.06 : 0.05 };
use constant { FULL => 94, HOLDERS => 12 };

# In a session of its own, since a session-level lock survives the error: fills the table with what
# the call takes.
sub filled ($session, $call) {
    $session->run(<<"SQL");
DO \$\$
DECLARE
    filled bigint := 0;
BEGIN
    LOOP
        PERFORM $call;
        filled := filled + 1;
    END LOOP;
EXCEPTION WHEN out_of_memory THEN
    PERFORM set_config('pool.filled', filled::text, false);
END \$\$
SQL
    return $session->value(q{SELECT current_setting('pool.filled')});
}

my ($server, $look);

sub pressure { return $look->dbh->selectrow_hashref('SELECT * FROM advisory.pressure') }

# A server that has just started, on which advisory.pressure was not read yet.
sub restart {
    $look->disconnect if $look;
    $server->ctl('restart', '-m', 'immediate') or die "no restart\n";
    return;
}

sub look { return $look = session(server => $server) }

# While the table is full nothing can be looked up, so the sessions release their locks first.
sub let_go (@sessions) {
    $_->run('SELECT pg_advisory_unlock_all()') for @sessions;
    leave($look, @sessions);
    return;
}

# Several sessions hold the same locks, and end.
sub peak ($times) {
    my @sessions = map {
        session(server => $server)
            ->run("SELECT count(pg_advisory_lock_shared(i)) FROM generate_series(1, $times) AS i")
    } 1 .. HOLDERS;
    my $watcher = session(server => $server);
    leave($watcher, @sessions);
    $watcher->disconnect;
    return;
}

# Compares the estimate with the number of locks that fit.
sub fits ($what) {
    my $before = pressure();
    my $hog = session(server => $server);
    my $actual = filled($hog, 'pg_advisory_lock(-filled)');
    my $after = pressure();
    my $error = $actual > 0 ? $before->{headroom} / $actual - 1 : 0;
    my $room = $before->{locks_used} + $actual;
    note(sprintf '%s: headroom %d, filled %d; in all %d (%+.1f %%), at the end %.1f %%', $what,
        $before->{headroom}, $actual, $room,
        ($before->{headroom} - $actual) / $room * 100, $after->{percent_used});
    my $tolerance = (
        $before->{locks_guaranteed} < EXACT_FROM ? 0 : $before->{locks_guaranteed} < LARGE_FROM
            ? SMALL_TOLERANCE : TOLERANCE) * $room;
    cmp_ok($before->{headroom} - $actual, '<=', $tolerance,
        "$what: no more was promised than fits");
    cmp_ok($actual - $before->{headroom}, '<=', $tolerance, "$what: nor much less")
        if $before->{locks_guaranteed} >= EXACT_FROM;
    cmp_ok($after->{percent_used}, '>=', FULL, "$what: and full is full");
    is($before->{exact}, 1, "$what: it says that it is exact");
    let_go($hog);
    return;
}

for my $pool ('64/100/0', '20/60/0', '10/20/0') {
    my ($locks, $connections, $prepared) = split m{/}, $pool;
    $server = own_server("max_locks_per_transaction=$locks", "max_connections=$connections",
        "max_prepared_transactions=$prepared");
    look()->run('CREATE EXTENSION advisory_ext');
    my $guaranteed = pressure()->{locks_guaranteed};
    # From 19 on the tables do not grow, and their history makes no difference.
    my $grows = $look->value('SHOW server_version_num') < 190000;
    my $many = int $guaranteed * ($grows ? 3.6 : 1.8) / HOLDERS;
    my $some = int $guaranteed * ($grows ? 1.2 : 0.5);

    # CREATE EXTENSION takes many locks, and what the tables have grown by for them stays: begin
    # with fresh ones.
    restart();
    look();
    pressure();
    peak($many);
    fits("$pool, after many holders of each lock");

    restart();
    peak($many);
    look();
    fits("$pool, first seen after many holders of each lock");

    restart();
    my $half = session(server => $server)
        ->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $some) AS i");
    look();
    fits("$pool, first seen half full");
    $half->disconnect;

    # Connecting takes locks, so the observer connects first.
    restart();
    look();
    my $hog = session(server => $server);
    filled($hog, 'pg_advisory_lock(filled)');
    my $full = pressure();
    cmp_ok($full->{percent_used}, '>=', FULL, "$pool, first seen full: it is full");
    cmp_ok($full->{headroom}, '<=', 0.02 * $full->{locks_used},
        "$pool, first seen full: with no room to speak of");
    is($full->{status}, 'critical', "$pool, first seen full: critical");
    let_go($hog);

    # The other way round: one holder of each lock first, then four.
    my @sessions = map { session(server => $server) } 1 .. 4;
    my $held = 0;
    until (grep { $_->query("SELECT pg_advisory_lock_shared($held)")->{state} } @sessions) {
        $held++
    }
    $full = pressure();
    cmp_ok($full->{percent_used}, '>=', FULL,
        "$pool, many locks first, then many holders: full is full");
    cmp_ok($full->{recommended_max_locks_per_transaction}, '>=', 1.4 * $locks,
        "$pool, many locks first, then many holders: and needs nearly twice as much");
    let_go(@sessions);

    # Whatever was held before, a session that takes ever more locks is stopped in time.
    next if $guaranteed < EXACT_FROM;
    restart();
    look();
    pressure();
    peak($many);
    my $runaway = session(server => $server);
    $runaway->fails('DO $$ DECLARE i bigint := 0;
        BEGIN LOOP PERFORM advisory.lock($_$runaway$_$, i);
            i := i + 1; END LOOP; END $$', '53400',
            "$pool, a runaway after it: stopped by the guard");
    session(server => $server)->succeeds('CREATE TABLE t (i int PRIMARY KEY)',
        "$pool, and others go on");
    undef $server;
    undef $look;
}
done_testing();
