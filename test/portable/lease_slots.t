#!/usr/bin/env perl
# Slots that outlive a session, in the portable edition, as a role without privileges: between
# sessions, after crashes, where a service refuses what they are made of, and how views show them.
use AdvisoryTest;
use Leases;
use LeaseSlots;
use Time::HiRes qw(sleep time);

# With LONG=1 there are 10,000 grants.
use constant { TAKERS => 10, GRANTS => $ENV{LONG} ? 3500 : 150, CRASHES => $ENV{LONG} ? 30 : 3 };

my $owner = create_portable_database();
my $look = session(application => 'look');
$look->run('CREATE ROLE lessee LOGIN', 'CREATE ROLE stranger LOGIN');
my $lessee = sub ($application) { session(role => 'lessee', application => $application) };
begin_lease_slots(look => $look, session => $lessee);

slots_outlive();
cmp_ok(median(slots_in_order()), '<', 1, 'soon');
slots_in_transactions();
slot_waits_end();
longest_hold();
slots_and_roles(session(role => 'stranger'));
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');
$owner->run('DELETE FROM advisory._leases');

# ---- A cancel while another one is served --------------------------------------------------------

{
    my ($holder, $waiter, $many) = map { $lessee->($_) } qw(holder waiter many);
    # With so many locks it takes some milliseconds to find out whether a session is the first.
    $many->run('SELECT count(pg_advisory_lock(g)) FROM generate_series(1, 5000) g');
    lease_slot($holder, 'twice', 1);
    my $stays = 0;
    for (1 .. 10) {
        waits_for_lease($waiter, q(SELECT slot FROM advisory.lease_slot('l', 'twice', 1, '1 h')));
        $look->run('SELECT pg_cancel_backend(pid), pg_sleep(0.002), pg_cancel_backend(pid)
            FROM pg_stat_activity WHERE pid = ' . $waiter->pid);
        $waiter->ends('57014', 'two cancels');
        $stays += $look->value('SELECT count(*) FROM pg_locks WHERE locktype = ? AND pid = ?',
            'advisory', $waiter->pid);
    }
    is($stays, 0, 'nobody stays in front of the queue');
    leave($look, $many);
    $owner->run('DELETE FROM advisory._leases');
}

# ---- How views show them -------------------------------------------------------------------------

{
    my ($holder, $viewer, $one, $two) = map { $lessee->($_) } qw(holder viewer one two);
    my @tokens = map { (lease_slot($holder, 'shown', 2))[1] } 1, 2;
    lease($holder, 'shown');
    waits_for_lease($_, q(SELECT slot FROM advisory.lease_slot('l', 'shown', 2, '1 h')))
        for $one, $two;
    my ($first, $second) = map { $_->pid } $one, $two;
    my $stranger = session(role => 'stranger');
    $stranger->shows('SELECT count(*), count(queue), count(tag) FROM advisory._shown_leases',
        '3|2|2', 'no key tells the name of a lease that nobody waits for');
    is_deeply($viewer->rows('SELECT pid, who, state, lock, waiters, remedy FROM advisory.blockers
            ORDER BY lock'),
        [ map { [ undef, 'lessee@holder', 'held', "slot $_ of lease l/shown", 2,
            "SELECT advisory.break_lease('l', 'shown', $tokens[$_ - 1]);" ] } 1, 2 ],
        'blockers has each slot, and what breaks it');
    is_deeply([ map { s/ \d+ s\b//r } $viewer->column('SELECT * FROM advisory.wait_tree()') ],
        [ 'lessee@holder holds slot 1 of lease l/shown exclusive, held',
            "  $first lessee\@one waits for a slot of lease l/shown exclusive (and 1 more holder)",
            "  $second lessee\@two waits for a slot of lease l/shown exclusive (and 1 more holder)"
        ], 'wait_tree() shows the waiters below the slot that was taken first')
        or diag explain [ $viewer->column('SELECT * FROM advisory.wait_tree()') ];
    $viewer->shows(q(SELECT slot, mode, count(pid) FROM advisory.activity
            WHERE lock = 'lease l/shown' GROUP BY 1, 2 ORDER BY 1),
        [ '1|lease|0', '2|lease|0', 'NULL|lease|2' ],
        'activity has each slot, and the lease, with who waits');
    $viewer->shows(q(SELECT kind, slot, granted, count(*) FROM advisory.locks WHERE name = 'shown'
        GROUP BY 1, 2, 3), 'lease|NULL|0|2', 'locks has who waits');
    $holder->run('BEGIN', "SELECT advisory.check_lease('l', 'shown', $tokens[1])");
    $viewer->shows(q(SELECT kind, slot, mode, pid FROM advisory.locks WHERE granted
        AND name = 'shown'), 'lease|2|shared|' . $holder->pid, '... and who relies on a slot');
    $holder->run('COMMIT');
    $look->shows('SELECT count(*) FROM advisory.semaphores', 0, 'none of that is a semaphore');
    # Nobody overtakes who waits, whatever number he gives.
    is((try_lease_slot($holder, 'shown', 3))[0], undef, 'nobody overtakes who waits');
    $owner->run("SELECT advisory.break_lease('l', 'shown', $_)") for @tokens;
    is_deeply([ map { $_->finish->{value} } $one, $two ], [ 1, 2 ], 'who waits gets them');
    is((try_lease_slot($holder, 'shown', 3))[0], 3, '... and then others do');
    $owner->run('DELETE FROM advisory._leases');
}

{
    # In another database the extension has locked a slot; its objsubid is negative.
    my $there = create_database(aside => 1, name => 'slots_there');
    my $other = session(database => $there);
    $other->run('BEGIN', q(SELECT advisory.lease_slot('l', 'there', 1, '1 h')));
    $look->shows("SELECT kind, count(*) FROM advisory.locks WHERE database = '$there'
        GROUP BY kind", 'foreign|1', 'a slot of the extension is not taken for a lock');
    $look->shows("SELECT count(*) FROM advisory._entry
        WHERE lock LIKE '%(objsubid -32767) in database \"$there\"'", 1, '... in texts, too');
    leave($look, $other);
    $look->run("DROP DATABASE $there");
}

# ---- Tokens that the WAL cannot exceed -----------------------------------------------------------

{
    # As after a restored dump where a service does not tell what cluster it is.
    my ($one, $two) = map { $lessee->($_) } qw(one two);
    my (undef, $token) = lease_slot($one, 'high', 3);
    $owner->run('UPDATE advisory._leases SET token = token + (1::bigint << 40)');
    $one->run('BEGIN');
    my @tokens = ($token + 2**40, map { (lease_slot($_, 'high', 3))[1] } $one, $two);
    $one->run('COMMIT');
    cmp_ok($tokens[1], '>', $tokens[0], 'a token is greater than those before');
    cmp_ok($tokens[2], '>', $tokens[0], '... also beside a transaction that takes another slot');
    isnt($tokens[1], $tokens[2], '... and never the same');
    $owner->run('DELETE FROM advisory._leases');
}

# ---- Never more owners than slots ----------------------------------------------------------------

never_two_owners(session => sub { session(role => 'lessee') }, takers => TAKERS, grants => GRANTS,
    waits_in => qr/READ COMMITTED/, slots => 3);
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');

# ---- Over crashes --------------------------------------------------------------------------------

{
    my $server = own_server();
    my $name = "slots_there_$$";
    session(server => $server)->run(qq(CREATE DATABASE "$name"));
    is(load_portable($name, $ENV{PGUSER}, $server), '', 'on another server');
    my $on = sub { session(server => $server, database => $name, application => 'there') };
    my $there = $on->();
    my @tokens = map { (lease_slot($there, 'kept', 3, q(, '60 s')))[1] } 1, 2;
    my $old = (lease_slot($there, 'kept', 3, q(, '60 s', max_hold => '1 h')))[1];
    $there->run(q(UPDATE advisory._leases SET acquired_at = now() - interval '2 h'
        WHERE slot = 3));
    my $highest = $old;
    sleep 1.2;
    for my $crash (1 .. CRASHES) {
        $there->disconnect;
        $server->ctl('stop', '-m', 'immediate');
        $server->ctl('start');
        $there = $on->();
        $there->shows(q(SELECT slot, state, expires_at > renewed_at + interval '61 s'
            FROM advisory.leases WHERE slot < 4 ORDER BY slot),
            [ map { "$_|restarted|1" } 1 .. 3 ], 'after a crash slots have their whole TTL again');
        is((try_lease_slot($there, 'kept', 3))[0], undef, '... and nobody else gets one');
        $there->shows("SELECT count(advisory.renew_lease('l', 'kept', token))
            FROM unnest(ARRAY[$tokens[0], $tokens[1]]) AS token", 2, '... but owners renew them');
        $there->shows("SELECT advisory.renew_lease('l', 'kept', $old)", 'NULL',
            '... unless that would be beyond max_hold');
        my ($slot, $token) = lease_slot($there, 'kept', 4, q(, '1 ms', '10 s'));
        is($slot, 4, '... one more');
        cmp_ok($token, '>', $highest, '... has a greater token');
        $highest = $token;
        sleep 1.2;
    }
}

# ---- Where a service refuses what they are made of -----------------------------------------------

{
    my $name = "slots_refused_$$";
    create_portable_database(name => $name, aside => 1);
    my ($admin, $here, $else) = (session(database => $name),
        map { session(database => $name, role => 'lessee', application => $_) } qw(here else));
    my @WAL = map { "FUNCTION pg_catalog.$_" } qw(pg_walfile_name(pg_lsn) pg_control_system()
        pg_current_wal_insert_lsn()), 'pg_logical_emit_message(boolean, text, text'
        . ($admin->value('SHOW server_version_num') >= 170000 ? ', boolean)' : ')');
    my @LOCKS = map { "FUNCTION pg_catalog.$_(bigint)" }
        qw(pg_try_advisory_xact_lock pg_advisory_xact_lock pg_try_advisory_lock_shared
        pg_advisory_unlock_shared pg_advisory_unlock pg_advisory_lock pg_try_advisory_lock);
    $admin->run(map { "REVOKE EXECUTE ON $_ FROM PUBLIC" } @WAL);
    is(load_portable($name), '', 'where a service refuses functions');
    my (undef, $token) = lease_slot($here, 'plain', 3);
    for my $what ('without WAL functions', 'without advisory locks') {
        $admin->run(map { "REVOKE EXECUTE ON $_ FROM PUBLIC" } @LOCKS) if $what =~ /locks/;
        # Two at once never get the same.
        $here->run('BEGIN');
        my @first = lease_slot($here, 'plain', 3);
        my ($slot, $second) = $what =~ /locks/ ? (undef, $token) : lease_slot($else, 'plain', 3);
        $here->run('COMMIT');
        cmp_ok($first[1], '>', $token, "$what tokens grow");
        isnt($first[1], $second, '... and two slots never have the same');
        $here->run("SELECT advisory.end_lease('l', 'plain', $_)") for $first[1], $second;
        $here->shows(q(SELECT advisory.leased_slots('l', 'plain')), $what =~ /locks/ ? 0 : 1,
            '... they end');
        (undef, my $next) = lease_slot($else, 'plain', 3);
        cmp_ok($next, '>', $_, '... and tokens grow on') for $first[1], $second;
        $token = $next;
        is_deeply([ (try_lease_slot($here, 'plain', 1)) ], [ undef, undef ], '... nobody else');
        $else->run("SELECT advisory.end_lease('l', 'plain', token) FROM advisory.leases
            WHERE token <> $token");
        $here->start(q(SELECT token FROM advisory.lease_slot('l', 'plain', 1, '1 h', '20 s')));
        sleep 0.05;
        $else->run("SELECT advisory.end_lease('l', 'plain', $token)");
        cmp_ok($here->finish->{value}, '>', $token, '... and they are waited for');
        ($token) = $here->value(q(SELECT max(token) FROM advisory.leases));
    }
    $admin->run(map { "GRANT EXECUTE ON $_ TO PUBLIC" } @WAL, @LOCKS);
    cmp_ok((lease_slot($here, 'plain', 3))[1], '>', 1 << 50, 'with WAL functions, too');
}
done_testing();
