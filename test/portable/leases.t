#!/usr/bin/env perl
# Leases and tokens of the portable edition, mostly as a role without privileges: between sessions,
# over restarts, crashes and promotions, and where a service refuses what they are made of.
# (48_leases of both editions has what each function returns.)
use AdvisoryTest;
use Leases;
use Replica;
use Time::HiRes qw(sleep time);
use Trap;

use constant { TAKERS => 10, GRANTS => 150, CRASHES => 3 };

my $owner = create_portable_database();
my $look = begin_leases(session(application => 'look'));
$look->run('CREATE ROLE lessee LOGIN', 'CREATE ROLE stranger LOGIN', 'CREATE ROLE member LOGIN',
    'GRANT lessee TO member');
my ($one, $two, $three) = map { session(role => 'lessee', application => $_) } qw(one two three);
my $stranger = session(role => 'stranger', application => 'stranger');

sub nothing_left ($what) {
    return $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0,
        "$what: no lock is left")
}

# ---- Whose it is ---------------------------------------------------------------------------------

{
    my $token = lease($one, 'whose', q(, '1 h', owner => 'host'));
    $stranger->shows('SELECT namespace, name, owner, token, state FROM advisory.leases',
        join('|', ('<insufficient privilege>') x 3, 'NULL', 'held'), 'hidden from other roles');
    is_deeply([ map { $stranger->value("SELECT advisory.${_}_lease('l', 'whose', $token)") }
            qw(renew end) ], [ undef, 0 ], '... to which it is lost');
    $stranger->fails("SELECT advisory.check_lease('l', 'whose', $token)", '55000',
        '... as is said');
    is($stranger->fails(q(SELECT advisory.lease('l', 'whose', '1 h', '0')), '55P03',
            'nor can they take it')->{detail} =~ s/until .*/until/sr, 'It is held until',
        '... and the error does not name the owner');
    for my $call ("break_lease('l', 'whose')", 'tokens_above(1)',
        "_end_lease('l', 'whose', 1, NULL)")
    {
        $stranger->fails("SELECT advisory.$call", '42501', "$call is for the owner");
    }
    $stranger->fails($_, '42501', $_) for 'TABLE advisory._leases', 'DELETE FROM advisory._leases',
        q(SELECT setval('advisory._era', 1)), 'TABLE advisory._era';
    $stranger->run("INSERT INTO advisory._request (what, namespace, name, token, asked_by)
        SELECT 'end', 'l', 'whose', $token, oid FROM pg_roles WHERE rolname = 'lessee'");
    $stranger->run('CREATE TEMP TABLE forged (LIKE advisory._request)',
        'CREATE TRIGGER forged BEFORE INSERT ON forged FOR EACH ROW
            EXECUTE FUNCTION advisory._serve_request()');
    $stranger->fails("INSERT INTO forged (what, namespace, name, token, asked_by)
        VALUES ('end', 'l', 'whose', $token, 10)", '39P01', 'no other table fires what serves it');
    my $member = session(role => 'member');
    $member->shows("SELECT advisory.check_lease('l', 'whose', $token), owner, token = $token
        FROM advisory.leases", '1|host|1', 'it belongs to members of the role, too');
    $look->run('GRANT pg_read_all_stats TO stranger');
    $stranger->shows('SELECT owner, token FROM advisory.leases', 'host|NULL',
        'who may see all statistics sees it, but not its token');
    $look->run('REVOKE pg_read_all_stats FROM stranger', 'ALTER ROLE lessee RENAME TO tenant');
    $one->shows("SELECT advisory.renew_lease('l', 'whose', $token) > now()", 1,
        'a role that was renamed has it');
    $look->run('ALTER ROLE tenant RENAME TO lessee');
    # Another role's code, where session_user is a superuser.
    set_trap($look, $stranger, 'stranger',
        'place text, token bigint, ended boolean, taken bigint', <<"SQL");
        INSERT INTO lair.loot SELECT acts.place, token, advisory.end_lease('l', 'whose', $token),
            (SELECT token FROM advisory.try_lease('lair', acts.place, '1 h'))
        FROM advisory.leases AS l WHERE namespace <> 'lair';
SQL
    spring_trap($look);
    $look->shows('SELECT count(DISTINCT place), count(token), count(*) FILTER (WHERE ended)
        FROM lair.loot', '2|0|0', 'code of another role sees and ends no lease of others');
    is_deeply($owner->rows(q(SELECT name, role::regrole::text, owner FROM advisory._leases
        WHERE namespace = 'lair' ORDER BY 1)),
        [ map { [ $_, 'stranger', 'stranger@look' ] } qw(analyze definer) ],
        '... and takes them for itself');
    $owner->shows("SELECT advisory.break_lease('l', 'whose', 1),
        advisory.break_lease('l', 'whose', $token)", '0|1', 'the owner breaks it');
    $owner->run('DELETE FROM advisory._leases');
}

# ---- Who waits -----------------------------------------------------------------------------------

{
    my @waiters = map { session(role => 'lessee', application => "w$_") } 1 .. 4;
    my $token = lease($one, 'queue');
    queue_for_lease('queue', @waiters);
    $stranger->shows(q(SELECT lock, count(*) FROM advisory.activity WHERE pid IS NOT NULL
        GROUP BY lock), 'lease <insufficient privilege>|4', 'others see that it is a lease');
    is_deeply($owner->rows('SELECT pid, who, state, lock, waiters, remedy FROM advisory.blockers'),
        [ [ undef, '<insufficient privilege>', 'held', 'lease <insufficient privilege>', 4,
            undef ] ],
        'blockers, for a role that may not see it');
    is_deeply($one->rows('SELECT pid, who, state, lock, waiters, remedy FROM advisory.blockers'),
        [ [ undef, 'lessee@one', 'held', 'lease l/queue', 4,
            "SELECT advisory.break_lease('l', 'queue', $token);" ] ], '... and for its own');
    my $odd = session(role => 'lessee');
    lease($owner, q(odd' || E'\\n' || ')) ? waits_for_lease($odd,
        q(SELECT token FROM advisory.lease('l', E'odd\n', '1 h'))) : 0;
    $owner->shows(q(SELECT lock, remedy FROM advisory.blockers WHERE lock ~ 'odd'),
        'lease l/odd?|NULL', 'no remedy for a name that cannot be shown');
    $owner->run(q(SELECT advisory.break_lease('l', E'odd\n')));
    $odd->finish;
    $owner->run(q(SELECT advisory.break_lease('l', E'odd\n')));
    is_deeply([ map { s/ \d+ s$//r } $one->column('SELECT * FROM advisory.wait_tree()') ],
        [ 'lessee@one holds lease l/queue exclusive, held',
            map { "  $waiters[$_ - 1]{pid} lessee\@w$_ waits for lease l/queue exclusive" }
                1 .. @waiters ], 'wait_tree() has the lease, and those who wait below it')
        or diag explain [ $one->column('SELECT * FROM advisory.wait_tree()') ];
    ($token, my @late) = served_in_order($one, 'queue', $token, @waiters);
    cmp_ok(median(@late), '<', 1, 'soon') or diag "@late";
    # A transaction that takes it, and one that relies on it.
    $one->run('BEGIN', "SELECT advisory.check_lease('l', 'queue', $token)");
    $one->shows(q(SELECT kind, name, mode, granted FROM advisory.locks WHERE pid = ?),
        'lease|queue|shared|1', 'who relies on it is shown', $one->pid);
    $one->run("SELECT advisory.renew_lease('l', 'queue', $token, '1 ms')");
    sleep 0.01;
    is(try_lease($two, 'queue'), undef, 'nobody takes over a lease that is relied on');
    waits_for_lease($two, q(SELECT token FROM advisory.lease('l', 'queue', '1 h')));
    $one->run('COMMIT');
    cmp_ok($two->finish->{value}, '>', $token, '... until that transaction ends');
    $token = $two->value(q(SELECT token FROM advisory.leases WHERE name = 'queue'));
    $one->run('BEGIN', "SELECT advisory.check_lease('l', 'queue', $token)");
    waits($look, $two, "SELECT advisory.end_lease('l', 'queue', $token)");
    $one->run('COMMIT');
    $two->returns(1, 'who ends it waits for those who rely on it');
    nothing_left('leases');
    # While a transaction takes it, others neither get it nor wait.
    $one->run('BEGIN');
    lease($one, 'taking');
    $two->run(q(SET lock_timeout = '5 s'));
    is(try_lease($two, 'taking'), undef, 'while another transaction takes it');
    $two->run('RESET lock_timeout');
    $one->run('ROLLBACK');
    # Old snapshots.
    $token = lease($two, 'snapshot');
    $one->run('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
    my $new = lease($two, 'newer');
    $one->fails("SELECT advisory.renew_lease('l', 'newer', $new)", '40001',
        'an old snapshot cannot tell that a lease is lost');
    $one->run('ROLLBACK', 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
    $one->fails(q(SELECT advisory.lease('l', 'newer', '1 h', '1 s')), '25001',
        '... nor can it wait');
    $one->run('ROLLBACK');
    waits_end($one, 'snapshot');
    nothing_left('waits that have ended');
    $one->run('BEGIN', 'CREATE TEMP TABLE written ()');
    $one->fails(q(CALL advisory.await_lease('l', 'snapshot', '1 h')), '25001',
        'await_lease() in a transaction that has written');
    $one->run('ROLLBACK')->start(q(CALL advisory.await_lease('l', 'snapshot', '1 h')));
    sleep 0.1;
    $look->run('CREATE TABLE indexed (i integer)', q(SET statement_timeout = '20 s'),
        'CREATE INDEX CONCURRENTLY ON indexed (i)', 'RESET statement_timeout');
    ok(!$one->is_done, '... does not hold up CREATE INDEX CONCURRENTLY');
    $two->run("SELECT advisory.end_lease('l', 'snapshot', $token)");
    cmp_ok($one->finish->{value}, '>', $token, '... and gets it');
    $owner->run('DELETE FROM advisory._leases');
}

# A role that takes very many, or lets them expire.
$owner->run(q(INSERT INTO advisory._leases SELECT i, i, 1, 'l', 'many ' || i, 'many',
    'portable_owner'::regrole, 1, '1 h', '0', now(), now(), now() - interval '1 h', 0,
    'portable_owner', 0 FROM generate_series(1, 10500) AS i));
lease($one, 'one of many');
$owner->run(q(ANALYZE advisory._leases));
$one->shows(q(SELECT count(*), count(*) FILTER (WHERE name = 'one of many') FROM advisory.leases),
    '10001|1', 'very many leases of one role do not hide that of another one');
my $took = undisturbed_time(sub { $one->run('SELECT FROM advisory.locks') }, $one);
cmp_ok($took, '<', 2, '... nor make locks slow');
note sprintf 'locks with 10,500 leases: %.0f ms', 1000 * $took;
$owner->run('DELETE FROM advisory._leases');

# ---- Never two owners ----------------------------------------------------------------------------

never_two_owners(session => sub { session(role => 'lessee') }, takers => TAKERS, grants => GRANTS,
    waits_in => qr/READ COMMITTED/);

# ---- Over restarts, crashes and promotions -------------------------------------------------------

sub on ($server, $name) {
    return session(server => $server, database => $name, application => 'there');
}
{
    my $server = own_server('wal_level=replica');
    my $name = "leases_there_$$";
    session(server => $server)->run(qq(CREATE DATABASE "$name"));
    is(load_portable($name, $ENV{PGUSER}, $server), '', 'on another server');
    my $there = on($server, $name);
    my $token = lease($there, 'kept', q(, '60 s'));
    my $highest = $token;
    my $grows = sub ($what) {
        my $new = lease($there, 'grows', q(, '1 ms', '10 s'));
        cmp_ok($new, '>', $highest, "$what: tokens grow");
        $highest = $new;
    };
    sleep 1.2;
    for my $how ('immediate', ('kill') x CRASHES) {
        $there->disconnect;
        if ($how eq 'kill') {
            $server->ctl('stop', '-m', 'immediate');
            $server->ctl('start');
        }
        else { $server->ctl('restart', '-m', 'fast') }
        $there = on($server, $name);
        $there->shows(q(SELECT state, expires_at > renewed_at + interval '61 s'
            FROM advisory.leases WHERE name = 'kept'), 'restarted|1', "$how: the whole TTL again");
        $there->shows(q(SELECT state, remaining < '60 s' FROM advisory.leases
            WHERE name = 'kept'), 'restarted|1', '... from the first look on');
        is(try_lease($there, 'kept'), undef, '... and nobody else gets it');
        $there->shows("SELECT advisory.renew_lease('l', 'kept', $token) > now()", 1,
            '... but its owner renews it');
        $grows->($how);
        sleep 1.2;
    }
    my $standby = replica($server);
    caught_up($there, $standby);
    my $second = on($standby, $name);
    $second->fails(q(SELECT advisory.lease('l', 'standby', '1 h')), '25006', 'not on a standby');
    $there->run("SELECT advisory.renew_lease('l', 'kept', $token)");
    caught_up($there, $standby);
    $second->shows(q(SELECT state FROM advisory.leases WHERE name = 'kept'), 'held',
        '... which shows it');
    $server->ctl('stop', '-m', 'immediate');
    $there = $second;
    $there->run('SELECT pg_promote()');
    $grows->('a promotion');
    $there->shows(qq(SELECT $highest >> 50), 2, '... in a new era');
    $there->shows("SELECT advisory.renew_lease('l', 'kept', $token) > now()", 1,
        '... and the owner keeps its lease');
    # A lease for a long time, whose server has not run for a while.
    my $long = lease($there, 'long', q(, '30 days'));
    $there->run(q(SELECT setval('advisory._server_began', last_value & 8191 |
        ((extract(epoch FROM now() - interval '8 days') * 1000)::bigint << 13))
        FROM advisory._server_began),
        q(UPDATE advisory._leases SET server = 1, expires_at = now() - interval '8 days'
            WHERE name = 'long'),
        q(INSERT INTO advisory._leases SELECT i, 2 * i, 1::bigint << 51, 'l', 'forgotten ' || i,
            'many', session_user::regrole, server, ttl, lock_delay, acquired_at, renewed_at,
            now() - interval '8 days', 0, role_name, system
        FROM advisory._leases, generate_series(1, 20) AS i WHERE name = 'kept'));
    $there->shows(q(SELECT state FROM advisory.leases WHERE name = 'long'), 'restarted',
        'a lease that has its whole TTL again');
    my $SWEEP = q(SELECT advisory.lease('l', 'sweep ' || random(), '1 h')
        FROM generate_series(1, 100) AS i);
    my $FORGOTTEN = q(SELECT count(*) FROM advisory.leases WHERE name ~ 'forgotten');
    $there->run('BEGIN', 'SELECT 1', 'SELECT pg_sleep(0.001)', $SWEEP);
    $there->shows($FORGOTTEN, 20, '... a transaction that goes on locks no other leases');
    $there->run('COMMIT', $SWEEP, $SWEEP);
    $there->shows(q(SELECT count(*) FILTER (WHERE name ~ 'forgotten'),
        count(*) FILTER (WHERE name = 'long') FROM advisory.leases), '0|1',
        '... stays, and what nobody has wanted for a week goes');
    $there->disconnect;
    $standby->ctl('stop', '-m', 'fast');
}

# ---- Where a service refuses what they are made of -----------------------------------------------

{
    my $name = "leases_refused_$$";
    create_portable_database(name => $name, aside => 1);
    my ($admin, $here, $else) = (session(database => $name),
        map { session(database => $name, role => 'lessee', application => $_) } qw(here else));
    my @refused = map { "FUNCTION pg_catalog.$_" } qw(pg_walfile_name(pg_lsn) pg_control_system()
        pg_current_wal_insert_lsn()), 'pg_logical_emit_message(boolean, text, text'
        . ($admin->value('SHOW server_version_num') >= 170000 ? ', boolean)' : ')'),
        qw(pg_try_advisory_xact_lock(bigint) pg_advisory_xact_lock(bigint));
    $admin->run(map { "REVOKE EXECUTE ON $_ FROM PUBLIC" } @refused);
    is(load_portable($name), '', 'the file is loaded where a service refuses functions');
    is(lease($here, 'plain'), 1, 'without WAL functions the first token is 1');
    is(try_lease($else, 'plain'), undef, '... and nobody else gets the lease');
    $else->start(q(SELECT token FROM advisory.lease('l', 'plain', '1 h', '20 s')));
    sleep 0.05;
    $here->run(q(SELECT advisory.end_lease('l', 'plain', 1)));
    $else->returns(2, 'it is waited for, and its next token is greater');
    $else->run(q(SELECT advisory.end_lease('l', 'plain', 2)));
    $here->shows('SELECT count(*) FROM advisory.leases', 0, 'it has ended');
    is(lease($here, 'plain', q(, '1 ms')), 3, 'and tokens grow on');
    $admin->run(map { "GRANT EXECUTE ON $_ TO PUBLIC" } @refused);
    sleep 0.01;
    cmp_ok(lease($here, 'plain'), '>', 1 << 50, 'with WAL functions, too');
}

# ---- Roles of another server, and an era that is set back ----------------------------------------

{
    $look->run(map { "CREATE ROLE $_ LOGIN" } qw(stayer outsider));
    session(role => 'stayer')->run(q(SELECT advisory.lease('l', 'stayer', '1 h')),
        q(SELECT advisory.claim('c', 'stayer', '1 hour')));
    roles_elsewhere(super => $look, connect => sub ($role) { session(role => $role) },
        cluster => 'system');
    $owner->run(q(DELETE FROM advisory._leases WHERE name = 'stayer'));
}

{
    era_set_back($owner, $one, q(SELECT setval('advisory._era', last_value - (1::bigint << 50))
        FROM advisory._era), q(SELECT setval('advisory._server_began', last_value - 1)
        FROM advisory._server_began));
    $one->fails(q(SELECT advisory.check_token('l', 'high', 4000::bigint << 50)), '22023',
        'a token that nobody gave uses up no eras');
    $owner->run(q(DELETE FROM advisory._leases));
}

# ---- A file of an older version ------------------------------------------------------------------

{
    # It had roles that had to be there when a dump was restored, and no names of them, and no
    # slots.
    $owner->run('DROP VIEW advisory._shown_leases CASCADE',
        'ALTER TABLE advisory._leases DROP role_name, DROP system, ALTER role TYPE regrole,
            DROP slot, DROP slots, DROP max_hold, ADD CONSTRAINT _leases_pkey PRIMARY KEY (key)',
        'CREATE VIEW advisory._shown_leases AS SELECT namespace, name, owner, token,
            role::text AS state, ttl, acquired_at, renewed_at, expires_at, ttl AS remaining,
            renewals, queue, name AS lock, name AS remedy FROM advisory._leases',
        'CREATE VIEW advisory.leases AS SELECT namespace, name, owner, token, state, ttl,
            acquired_at, renewed_at, expires_at, remaining, renewals FROM advisory._shown_leases',
        'CREATE VIEW mine AS SELECT name, state FROM advisory.leases',
        q(INSERT INTO advisory._leases SELECT advisory.key('l', 'older'), 4, 1, 'l', 'older',
            'owner', 'lessee'::regrole, 0, '1h', '0', now(), now(), now() + interval '1 h', 0));
    is(load_portable($owner->value('SELECT current_database()')), '',
        'the file of this version is loaded over an older one');
    $owner->shows('TABLE mine', '<insufficient privilege>|restarted',
        '... and what users have built on its views stays');
    $one->shows(q(SELECT advisory.renew_lease('l', 'older', 1) IS NOT NULL), 1,
        '... and leases are those of their roles');
    $owner->shows('SELECT queue & 16383 FROM advisory._leases', 1,
        '... which have a queue of this version');
    $one->shows(q(SELECT slot, token > 1 FROM advisory.try_lease_slot('l', 'older', 1, '1 h')),
        '1|1', '... and slots of the same name are another thing');
    $owner->run('DROP VIEW mine', q(DELETE FROM advisory._leases));
}

# ---- Tokens of locks and slots -------------------------------------------------------------------

{
    my $is_there = $one->value('SHOW server_version_num') >= 170000;
    $one->run(q(SELECT advisory.lock('t', 'a'), advisory.acquire('t', 's', 2),
        advisory.lock_shared('t', 'shared'), advisory.lock_key(5)));
    for my $call (q(token('t', 'a')), q(token('t', 's', 1)), 'token_key(5)') {
        my $first = $one->query("SELECT advisory.$call");
        if ($is_there) {
            cmp_ok($one->value("SELECT advisory.$call"), '>', $first->{value},
                "$call: tokens grow");
        }
        else {
            is($first->{state}, '0A000', "$call: not before PostgreSQL 17");
            like($first->{hint}, qr/Take a lease/, '... and what to do');
        }
    }
    if ($is_there) {
        $one->fails("SELECT advisory.$_", '55000', "$_: not held")
            for q(token('t', 'shared')), q(token('t', 'b')), q(token('t', 's', 2)), 'token_key(6)';
        $one->fails("SELECT advisory.$_", '22004', "$_: null")
            for q(token('t', 'a', NULL)), q(token('t', NULL::text)), 'token_key(NULL)';
        $one->run('BEGIN READ ONLY');
        cmp_ok($one->value(q(SELECT advisory.token('t', 'a'))), '>', 0,
            'in a READ ONLY transaction');
        $one->shows('SELECT pg_current_xact_id_if_assigned()', 'NULL', '... without an ID');
        $one->run('COMMIT');
        my $token = $one->value(q(SELECT advisory.token('t', 'a')));
        $owner->run("SELECT advisory.tokens_above($token)");
        cmp_ok($one->value(q(SELECT advisory.token('t', 'a'))), '>', $token + (1 << 49),
            'tokens_above() begins a new era');
    }
    $owner->fails("SELECT advisory.tokens_above($_->[0])", $_->[1], "tokens_above($_->[0])")
        for [ 'NULL', '22004' ], [ 0, '22023' ], [ '9223372036854775807', '22003' ];
}
done_testing();
