#!/usr/bin/env perl
# Slots that outlive a session, between sessions: the scenarios of both editions, and what only the
# extension has.
use AdvisoryTest;
use Leases;
use LeaseSlots;
use Time::HiRes qw(sleep time);

# With LONG=1 there are 10,000 grants.
use constant { TAKERS => 10, GRANTS => $ENV{LONG} ? 3500 : 150, CRASHES => $ENV{LONG} ? 30 : 3 };

create_database();
my $look = session(application => 'look');
$look->run('CREATE ROLE lessee LOGIN', 'CREATE ROLE stranger LOGIN');
my $lessee = sub ($application) { session(role => 'lessee', application => $application) };
begin_lease_slots(look => $look, session => $lessee);

slots_outlive();
# Who is not woken looks after a second, or five.
cmp_ok(median(slots_in_order()), '<', 0.3, 'they are woken');
slots_in_transactions();
slot_waits_end();
longest_hold();
slots_and_roles(session(role => 'stranger'));
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');
$look->run('DELETE FROM advisory._leases');

# A transaction has locked slot 2 of two, and somebody owns slot 1: the views show the waiter below
# the transaction.
sub shown_in_the_way ($locker, $waiter) {
    my ($pid, $behind) = map { $_->pid } $locker, $waiter;
    waits_for_lease($waiter, q(SELECT slot FROM advisory.lease_slot('l', 'locked', 2, '1 h')));
    is_deeply($look->rows('SELECT pid, who, lock, waiters, remedy FROM advisory.blockers
            WHERE pid IS NOT NULL'),
        [ [ $pid, 'lessee@relying', 'slot 2 of lease l/locked', 1,
            "SELECT advisory.terminate_holder('l', 'locked', $pid, kind => 'lease');" ] ],
        'blockers has the transaction that has locked a slot');
    is_deeply([ $look->column('SELECT lock FROM advisory.blockers WHERE pid IS NULL') ],
        [ 'slot 1 of lease l/locked' ], '... beside the lease of the other one');
    is_deeply([ map { s/ \d+ s\b//gr } $look->column('SELECT * FROM advisory.wait_tree()') ],
        [ "$pid lessee\@relying holds slot 2 of lease l/locked exclusive, idle in transaction",
            "  $behind lessee\@taker waits for a slot of lease l/locked exclusive, 1 of 2 taken" ],
        'wait_tree() has the waiter below it');
    $look->shows("SELECT waits_for_pid FROM advisory.waits WHERE pid = $behind", $pid,
        'so has waits');
    $look->shows("SELECT blocked_by::text FROM advisory.locks WHERE pid = $behind", "{$pid}",
        'blocked_by of locks has it');
    $look->shows("SELECT pid, slot, mode, waiting IS NOT NULL, blocked_by FROM advisory.activity
        WHERE pid IN ($pid, $behind) ORDER BY slot NULLS FIRST",
        [ "$behind|NULL|lease|1|$pid", "$pid|2|lease|0|NULL" ],
        'activity has the lock that is in the way');
    return;
}

# ---- What else only the extension says -----------------------------------------------------------

{
    my ($holder, $one, $two) = map { $lessee->($_) } qw(holder one two);
    my @tokens = map { (lease_slot($holder, 'shown', 2))[1] } 1, 2;
    lease($holder, 'shown');
    waits_for_lease($_, q(SELECT slot FROM advisory.lease_slot('l', 'shown', 2, '1 h')))
        for $one, $two;
    my ($first, $second) = map { $_->pid } $one, $two;
    is_deeply($look->rows('SELECT pid, who, state, lock, waiters, remedy FROM advisory.blockers'),
        [ [ undef, 'lessee@holder', 'held', 'slot 1 of lease l/shown', 2,
            "SELECT advisory.break_lease('l', 'shown', $tokens[0]);" ] ],
        'blockers has the slot that expires first, and what breaks it');
    is_deeply([ map { s/ \d+ s\b//r } $look->column('SELECT * FROM advisory.wait_tree()') ],
        [ "$first lessee\@one waits for a slot of lease l/shown exclusive, 2 of 2 taken",
            "  $second lessee\@two waits for a slot of lease l/shown exclusive" ],
        'wait_tree() says how many are taken');
    $look->shows(q(SELECT slot, mode, count(pid) FROM advisory.activity
            WHERE lock = 'lease l/shown' GROUP BY 1, 2 ORDER BY 1),
        [ '1|lease|0', '2|lease|0', 'NULL|lease|2' ],
        'activity has each slot, and the lease, with who waits');
    $look->shows(q(SELECT kind, slot, count(*) FROM advisory.locks WHERE name = 'shown'
        AND (NOT granted OR wait_start IS NOT NULL) GROUP BY 1, 2), 'lease|NULL|2',
        'locks has who waits');
    $holder->run('BEGIN', "SELECT advisory.check_lease('l', 'shown', $tokens[1])");
    $look->shows('SELECT kind, slot, mode FROM advisory.locks WHERE granted AND pid = '
        . $holder->pid, 'lease|2|shared', '... and who relies on a slot');
    $look->shows("SELECT slot, mode FROM advisory.holders('l', 'shown') WHERE pid = "
        . $holder->pid, [], 'holders() is about locks and semaphores');
    $holder->run('COMMIT');
    $look->shows('SELECT count(*) FROM advisory.semaphores', 0, 'none of that is a semaphore');
    is((try_lease_slot($holder, 'shown', 3))[0], undef, 'nobody overtakes who waits');
    $look->run("SELECT advisory.break_lease('l', 'shown', $_)") for @tokens;
    is_deeply([ map { $_->finish->{value} } $one, $two ], [ 1, 2 ], 'who waits gets them');
    $look->run('DELETE FROM advisory._leases');
}

{
    # What is in the way may be no owner of a slot, but a transaction.
    my ($holder, $relying, $taker) = map { $lessee->($_) } qw(holder relying taker);
    lease_slot($holder, 'locked', 3);
    my $token = (lease_slot($holder, 'locked', 3, q(, '1 ms')))[1];
    sleep 0.01;
    $relying->run('BEGIN', "SELECT advisory.check_lease('l', 'locked', $token)");
    my $error = $taker->fails(q(SELECT advisory.lease_slot('l', 'locked', 2, '1 h', '50 ms')),
        '55P03', 'a slot that has expired, but which a transaction relies on');
    my $pid = $relying->pid;
    like($error->{detail} =~ s/\A1 of 2 taken, .*\n"lessee\@holder" holds slot 1 until .*\n//r,
        qr/\AProcess $pid of role "lessee", .* has locked slot 2 in shared mode; it is idle/,
        '... the error says which one');
    like($error->{hint}, qr/terminate_holder\('l', 'locked', $pid, kind => 'lease'\)/,
        '... and how to end it');
    waits_for_lease($taker, q(SELECT slot FROM advisory.lease_slot('l', 'locked', 2, '1 h')));
    is_deeply($look->rows('SELECT pid, lock FROM advisory.blockers ORDER BY pid'),
        [ [ $pid, 'slot 2 of lease l/locked' ], [ undef, 'slot 1 of lease l/locked' ] ],
        'so has blockers');
    leave($look, $taker);
    $taker = $lessee->('taker');
    $relying->run('COMMIT', 'BEGIN', q(SELECT advisory.lease_slot('l', 'locked', 2, '1 h')));
    like($taker->fails(q(SELECT advisory.lease_slot('l', 'locked', 2, '1 h', '0')), '55P03',
        'one that a transaction takes')->{detail}, qr/ has locked slot 2 in exclusive mode/,
        '... the same');
    shown_in_the_way($relying, $taker);
    $relying->run('COMMIT');
    is_deeply($look->rows('SELECT pid, lock FROM advisory.blockers'),
        [ [ undef, 'slot 1 of lease l/locked' ] ], 'when it is taken, only leases are in the way');
    $relying->run('BEGIN',
        q(SELECT advisory.renew_lease('l', 'locked', token) FROM advisory.leases WHERE slot = 2));
    is_deeply($look->rows('SELECT pid FROM advisory.blockers'), [ [undef] ],
        '... not the owner who renews one');
    $relying->run('ROLLBACK');
    leave($look, $taker);
    $taker = $lessee->('taker');
    $look->run('DELETE FROM advisory._leases WHERE slot = 2');
    # Who gives a smaller number keeps those behind it from slots beyond its own.
    waits_for_lease($relying, q(SELECT slot FROM advisory.lease_slot('l', 'locked', 1, '1 h')));
    $error = $taker->fails(q(SELECT advisory.lease_slot('l', 'locked', 2, '1 h', '0')), '55P03',
        'one that is free, but for which somebody waits');
    like($error->{detail} =~ s/\A1 of 2 taken, .*\n"lessee\@holder" holds slot 1 until .*\n//r,
        qr/\AProcess $pid of role "lessee", .* waits for it in exclusive mode; it is waiting for/,
        '... the error says who');
    unlike($error->{hint}, qr/terminate/, '... but not to end it');
    leave($look, $relying);
    $look->run('DELETE FROM advisory._leases');
}

{
    # What is in the way, and what is not.
    my ($owner, $locker, $waiter, $ender) = map { $lessee->($_) } qw(owner locker waiter ender);
    my $blockers = sub { $look->rows('SELECT pid, lock FROM advisory.blockers ORDER BY pid') };
    my $take = sub ($slots) { "SELECT slot FROM advisory.lease_slot('l', 'way', $slots, '1 h')" };
    my $token = (lease_slot($owner, 'way', 1))[1];

    # Slots beyond the number that the waiter gave.
    $locker->run('BEGIN', $take->(2));
    waits_for_lease($waiter, $take->(1));
    is_deeply($blockers->(), [ [ undef, 'slot 1 of lease l/way' ] ],
        'a slot beyond those of the waiter is not in its way');
    $look->shows('SELECT blocked_by::text FROM advisory.locks WHERE pid = ' . $waiter->pid, '{}',
        '... nor its transaction');
    $locker->run('ROLLBACK');

    # The owner's own transaction.
    $owner->run('BEGIN', "SELECT advisory.renew_lease('l', 'way', $token)");
    is_deeply($blockers->(), [ [ undef, 'slot 1 of lease l/way' ] ],
        'an owner who renews a lease is not in the way, but the lease');
    waits_for_lease($ender, "SELECT advisory.end_lease('l', 'way', $token)");
    $look->shows('SELECT blocked_by::text FROM advisory.locks WHERE NOT granted AND pid = '
        . $ender->pid, '{' . $owner->pid . '}', 'who ends it waits for the owner alone');
    $owner->run('COMMIT');
    $ender->returns(1, 'the lease is ended');
    $waiter->returns(1, '... and taken');
    $look->run('DELETE FROM advisory._leases');

    # A cycle: nothing ends it but a timeout, so the lease is shown as it is without one.
    $locker->run('BEGIN', $take->(1));
    $waiter->run(q(SELECT advisory.lock('l', 'other')));
    waits_for_lease($waiter, $take->(1));
    waits($look, $locker, q(SELECT advisory.lock('l', 'other')));
    is_deeply($blockers->(), [ [ undef, 'a slot of lease l/way' ] ],
        'in a cycle the lease is in the way');
    leave($look, $locker);
    $waiter->returns(1, 'the slot of a session that has ended is free');
    $waiter->run(q(SELECT advisory.unlock('l', 'other')));
    $look->run('DELETE FROM advisory._leases');

    # A transaction that waits for another slot of its own name.
    $locker = $lessee->('locker');
    lease_slot($owner, 'way', 2);
    $locker->run('BEGIN', $take->(2));
    waits_for_lease($locker, $take->(2));
    is_deeply($blockers->(), [ [ undef, 'slot 1 of lease l/way' ] ],
        'a session is not in its own way');
    leave($look, $locker);
    $look->run('DELETE FROM advisory._leases');
}

{
    # Others who give another number.
    my ($three, $two) = map { $lessee->($_) } qw(three two);
    lease_slot($three, 'differ', 3) for 1 .. 3;
    my $take = q(SELECT slot FROM advisory.try_lease_slot('l', 'differ', 2, '1 h'));
    like($two->warned($take), qr/"l\/differ" are used with different numbers of slots/,
        'a WARNING says that others gave another number');
    is($two->warned($take), '', '... once');
    $look->run('DELETE FROM advisory._leases');
}

{
    # The transaction that takes one is prepared; or a savepoint of it is rolled back.
    my ($taker, $waiter) = map { $lessee->($_) } qw(taker waiter);
    my $wait = q(SELECT slot FROM advisory.lease_slot('l', 'savepoint', 1, '1 h', '10 s'));
    $taker->run('BEGIN', 'SAVEPOINT s', $wait);
    waits_for_lease($waiter, $wait);
    $taker->run('ROLLBACK TO s');
    $waiter->returns(1, 'a waiter notices a rollback to a savepoint');
    $taker->run('ROLLBACK');
    $look->run('DELETE FROM advisory._leases');
    $taker->run('BEGIN', $wait, q(PREPARE TRANSACTION 'taken'));
    waits_for_lease($waiter, $wait);
    is_deeply($look->rows('SELECT pid, who, lock, waiters, remedy FROM advisory.blockers'),
        [ [ undef, 'lessee (prepared taken)', 'slot 1 of lease l/savepoint', 1,
            q(ROLLBACK PREPARED 'taken';) ] ], 'blockers has a prepared transaction');
    $look->run(q(ROLLBACK PREPARED 'taken'));
    $waiter->returns(1, '... and what ends it lets the waiter go on');
    $look->run('DELETE FROM advisory._leases');
}

{
    # A transaction takes one whose row has expired, and goes on. Who waits looks now and then.
    my ($taker, $waiter) = map { $lessee->($_) } qw(taker waiter);
    my $take = sub ($ttl) {
        "SELECT slot FROM advisory.lease_slot('l', 'locked', 1, '$ttl', '2 s')";
    };
    my $scans = sub { $look->value(q(SELECT idx_scan FROM pg_stat_user_indexes
        WHERE indexrelid = 'advisory._leases_pkey'::regclass)) };
    $taker->run($take->('1 ms'));
    sleep 0.01;
    $taker->run('BEGIN', $take->('1 h'));
    $waiter->run('SELECT pg_stat_force_next_flush()');
    my $before = $scans->();
    $waiter->fails($take->('1 h'), '55P03', 'a slot whose row has expired is locked');
    $waiter->run('SELECT pg_stat_force_next_flush()');
    cmp_ok($scans->() - $before, '<', 50, '... and who waits for it sleeps');
    # Who ends a slot that a transaction relies on waits for its lock, not for the queue.
    $taker->run('ROLLBACK');
    my $token = (lease_slot($waiter, 'locked', 1))[1];
    $taker->run('BEGIN', "SELECT advisory.check_lease('l', 'locked', $token)");
    waits_for_lease($waiter, "SELECT advisory.end_lease('l', 'locked', $token)");
    $look->shows('SELECT objsubid FROM advisory.waits WHERE pid = ' . $waiter->pid,
        1 - 32768, 'waits has the objsubid of a slot as pg_locks shows it');
    $taker->run('COMMIT');
    $waiter->returns(1, 'it is ended when that transaction has');
    $look->run('DELETE FROM advisory._leases');
}

{
    # Those that have expired long ago are swept, when others are taken.
    my $taker = $lessee->('taker');
    lease_slot($taker, 'swept', 40) for 1 .. 40;
    $look->run(q(UPDATE advisory._leases SET expires_at = now() - interval '8 days'
        WHERE slot > 20));
    my $taken = 0;
    wait_until('they are swept', sub {
        lease_slot($taker, 'sweep ' . $taken++, 1);
        lease_slot($taker, 'swept', 40) if $taken % 4 == 0;
        $look->value(q(SELECT count(*) FROM advisory._leases
            WHERE expires_at < now() - interval '1 day')) == 0 });
    $look->shows(q(SELECT count(*) FROM advisory._leases WHERE slot = 1 AND name = 'swept'), 1,
        'those that are held stay');
    $look->run('DELETE FROM advisory._leases');
}

{
    # Leaks: with a max_hold, renewed for longer than leak_after.
    my $taker = $lessee->('taker');
    my @tokens = map { (lease_slot($taker, 'leaks', 3, $_))[1] } q(, '1 h', max_hold => '2 h'),
        q(, '1 h', max_hold => '2 h'), q(, '1 h');
    $look->run(q(SET advisory_ext.leak_after = '0'));
    $look->shows('SELECT count(*) FROM advisory.leaks', 0, 'one that is not renewed is no leak');
    $taker->run("SELECT advisory.renew_lease('l', 'leaks', $_)") for @tokens[ 1, 2 ];
    $look->shows('SELECT pid, kind, state, name, slot, reason, held > interval \'0\'
        FROM advisory.leaks', 'NULL|lease|held|leaks|2|renewed 1 times by "lessee@taker", '
        . 'for at most 02:00:00|1', 'leaks has one with a max_hold that is renewed');
    session(role => 'stranger')->run(q(SET advisory_ext.leak_after = '0'))
        ->shows('SELECT count(*) FROM advisory.leaks', 0, '... not for strangers');
    $look->run(q(SET advisory_ext.leak_after = '1min'));
    $look->shows('SELECT count(*) FROM advisory.leaks', 0, '... nor before leak_after');
    session()->shows('SELECT count(*) FROM advisory.leaks', 0,
        '... also where nothing has loaded the library');
    $look->run('RESET advisory_ext.leak_after', 'DELETE FROM advisory._leases');
}

# ---- Never more owners than slots ----------------------------------------------------------------

never_two_owners(session => sub { session(role => 'lessee') }, takers => TAKERS, grants => GRANTS,
    waits_in => qr//, slots => 3);
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');

# ---- Over crashes, and a dump --------------------------------------------------------------------

{
    my $server = own_server();
    my $on = sub ($name = 'postgres') {
        return session(server => $server, database => $name, application => 'there');
    };
    my $there = $on->()->run('CREATE EXTENSION advisory_ext');
    my @tokens = map { (lease_slot($there, 'kept', 3, q(, '60 s')))[1] } 1, 2;
    my $old = (lease_slot($there, 'kept', 3, q(, '60 s', max_hold => '1 h')))[1];
    $there->run(q(UPDATE advisory._leases SET acquired_at = now() - interval '2 h'
        WHERE slot = 3));
    my $highest = $old;
    for my $crash (1 .. CRASHES) {
        $there->disconnect;
        $server->ctl('stop', '-m', 'immediate');
        $server->ctl('start');
        $there = $on->();
        is((try_lease_slot($there, 'kept', 3))[0], undef, 'after a crash nobody else gets a slot');
        $there->shows("SELECT count(advisory.renew_lease('l', 'kept', token))
            FROM unnest(ARRAY[$tokens[0], $tokens[1]]) AS token", 2, '... but owners renew theirs');
        $there->shows("SELECT advisory.renew_lease('l', 'kept', $old)", 'NULL',
            '... unless that would be beyond max_hold');
        my ($slot, $token) = lease_slot($there, 'kept', 4, q(, '1 ms', '10 s'));
        is($slot, 4, '... one more');
        cmp_ok($token, '>', $highest, '... has a greater token');
        $highest = $token;
        sleep 0.01;
    }
    # A failover: the era is that of an older timeline.
    $there->run(q(UPDATE advisory._leases SET expires_at = now() + interval '10 ms'),
        q(SELECT setval('advisory._era', last_value - (1::bigint << 37)) FROM advisory._era));
    sleep 0.02;
    $there->shows(q(SELECT advisory.leased_slots('l', 'kept')), 4, 'after a failover all are held');
    is((try_lease_slot($there, 'kept', 3))[0], undef, '... and nobody else gets one');
    $there->shows(q(SELECT slot, state, ttl, remaining > '55 s' FROM advisory.leases
        WHERE slot < 4 ORDER BY slot), [ map { "$_|restarted|00:01:00|1" } 1 .. 3 ],
        '... each has its whole TTL again');
    $there->shows("SELECT advisory.renew_lease('l', 'kept', $old)", 'NULL',
        '... but is not renewed beyond max_hold');
    # A dump has them.
    $there->run(q(CREATE DATABASE restored));
    my $at = "-h '$server->{PGHOST}' -p $server->{PGPORT}";
    my $load = "psql -X -q -1 -v ON_ERROR_STOP=1 -o /dev/null $at restored";
    is(qx(pg_dump $at postgres | $load 2>&1), '',
        'a dump is restored');
    my $restored = $on->('restored');
    is((try_lease_slot($restored, 'kept', 3))[0], undef, 'after dump and restore they are held');
    $restored->shows("SELECT advisory.renew_lease('l', 'kept', $tokens[0]) > now()", 1,
        '... by their tokens');
    cmp_ok((lease_slot($restored, 'kept', 5))[1], '>', $highest, '... and tokens grow');
}
done_testing();
