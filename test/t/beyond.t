#!/usr/bin/env perl
# Tokens, leases and windows with wrong arguments, and in each place where a call can stand: READ
# ONLY, REPEATABLE READ with an old snapshot, a subtransaction that rolls back, a parallel query, a
# transaction that a crash ends, a commit that waits for a standby which is not there; and while
# they are cancelled. It needs a server of its own, which crashes.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

my $server = own_server('fsync=on', 'autovacuum=off');
my ($one, $two, $look);

sub connect_all {
    ($one, $two, $look) = map { session(server => $server, application => $_) } qw(one two look);
    return
}

connect_all();
$look->run('CREATE EXTENSION advisory_ext');

# What a call of each function changes, as a number that can be compared; each has a name of its
# own.
my %state = (
    check_token => sub {
        $look->value(q{SELECT token FROM advisory.fences WHERE key = advisory.key('b', ?)}, $_[0])
            // 0
    },
    try_lease   => sub {
        $look->value(q{SELECT count(*) FROM advisory.leases WHERE name = ?}, $_[0])
    },
    renew_lease => sub {
        $look->value(q{SELECT renewals FROM advisory.leases WHERE name = ?}, $_[0])
    },
    end_lease   => sub {
        $look->value(q{SELECT count(*) FROM advisory.leases WHERE name = ?}, $_[0])
    },
    claim       => sub {
        $look->value(q{SELECT coalesce(extract(epoch FROM max(last_window)), 0)::bigint
                FROM advisory.claims WHERE key = advisory.key('b', ?)}, $_[0])
    },
);

# [function, its call, name]: calls that succeed, of names that were not used before.
my $places = 0;

sub calls {
    my $name = 'n' . ++$places;
    my $token = $look->value("SELECT token FROM advisory.lease('b', ?, '1h')", "r$name");
    my $ended = $look->value("SELECT token FROM advisory.lease('b', ?, '1h')", "e$name");
    return (
        [ 'check_token', "SELECT advisory.check_token('b', 'f$name', 7)", "f$name" ],
        [ 'try_lease', "SELECT token > 0 FROM advisory.try_lease('b', 't$name', '1h')", "t$name" ],
        [ 'renew_lease',
            "SELECT advisory.renew_lease('b', 'r$name', $token) IS NOT NULL",       "r$name" ],
        [ 'end_lease', "SELECT advisory.end_lease('b', 'e$name', $ended)", "e$name" ],
        [ 'claim',       "SELECT advisory.claim('b', 'c$name', '1h', '2026-01-01') IS NOT NULL",
            "c$name" ],
    );
}

sub no_locks {
    return $look->shows(q{SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid > 16000}, 0, "$_[0]: nothing is left locked")
}

# ---- Wrong arguments -----------------------------------------------------------------------------

{
    my %more = (token => '', check_token => ', 1', lease => q(, '1h'), try_lease => q(, '1h'),
        renew_lease => ', 1', end_lease => ', 1', check_lease => ', 1',
        break_lease => '', claim => q(, '1h'));
    for my $function (sort keys %more) {
        my %state_of = (
            q(NULL, 'a') => '22004', q('', 'a') => '22023', q('b', NULL::text) => '22004',
            q('b', '') => '22023', q('b', NULL::bigint) => '22004', q('b', NULL::uuid) => '22004');
        $one->fails("SELECT advisory.$function($_$more{$function})", $state_of{$_},
            "$function($_): $state_of{$_}") for sort keys %state_of;
    }
    for my $function (grep { $more{$_} eq ', 1' } sort keys %more) {
        my %state_of =
            (NULL => '22004', 0 => '22023', -1 => '22023', -9223372036854775808 => '22023');
        $one->fails("SELECT advisory.$function('b', 'a', $_)", $state_of{$_},
            "$function, token $_: $state_of{$_}") for sort keys %state_of;
    }
    no_locks('wrong arguments');
}

# ---- READ ONLY -----------------------------------------------------------------------------------

for my $call (calls()) {
    my ($function, $sql, $name) = @$call;
    my $before = $state{$function}->($name);
    $one->run('BEGIN READ ONLY');
    my $result = $one->fails($sql, '25006', "READ ONLY, $function: 25006");
    like($result->{message},
        qr/^cannot execute advisory\.$function\(\) in a read-only transaction$/,
        "READ ONLY, $function: it is named");
    $one->run('ROLLBACK');
    is($state{$function}->($name), $before, "READ ONLY, $function: nothing has changed");
}
no_locks('READ ONLY');

# ---- A savepoint, or a transaction, that rolls back; then again ----------------------------------

for my $call (calls()) {
    my ($function, $sql, $name) = @$call;
    my $before = $state{$function}->($name);
    $one->run('BEGIN', 'SAVEPOINT s');
    $one->shows($sql, 1, "savepoint, $function: it succeeds");
    $one->run('ROLLBACK TO s');
    # With the locks of the savepoint released another session is not kept from it.
    $two->run('BEGIN', q{SET LOCAL lock_timeout = '2s'});
    $two->shows($sql, 1, "savepoint, $function: after its rollback another session can do the same")
            if $function ne 'check_token' && $function ne 'claim';
    $two->run('ROLLBACK');
    $one->shows($sql, 1, "savepoint, $function: and so can the same transaction");
    $one->run('ROLLBACK');
    is($state{$function}->($name), $before, "rollback, $function: nothing has changed");
    $one->shows($sql, 1, "rollback, $function: it succeeds once more");
    isnt($state{$function}->($name), $before, "and has an effect: $function");
}
no_locks('rollback');

# ---- While another transaction does the same, and is not over ------------------------------------

$one->run(q{SET lock_timeout = '50ms'});
for my $call (grep { $_->[0] ne 'renew_lease' } calls()) {
    my ($function, $sql, $name) = @$call;
    $two->run('BEGIN');
    $two->value($sql);
    my $result = $one->query($sql);
    if ($function eq 'try_lease') {
        is($result->{value}, undef, 'try_lease waits for nobody');
    }
    else {
        is($result->{state}, '55P03', "$function waits, until lock_timeout");
        like($result->{context}, qr{"b/$name"$}m, "$function: the context says for what");
    }
    $two->run('ROLLBACK');
    $one->shows($sql, 1, "$function: then it succeeds");
}
$one->run('RESET lock_timeout');
no_locks('another transaction');

# ---- REPEATABLE READ and SERIALIZABLE, with a snapshot that is older than what the call changes --

for my $level ('REPEATABLE READ', 'SERIALIZABLE') {
    $one->run("BEGIN ISOLATION LEVEL $level", 'SELECT 1');
    my @calls = calls();
    # Somebody has used the same names since.
    $look->run(map {
        my $sql = $_->[1];
        $sql =~ s/, 7\)/, 6)/;
        $sql =~ s/2027/2026/;
        $sql
    } grep { $_->[0] =~ /check_token|claim/ } @calls);
    for my $call (@calls) {
        my ($function, $sql, $name) = @$call;
        $one->run('SAVEPOINT s');
        my $result = $one->query($sql);
        my $expected = $function =~ /check_token|claim/ ? '40001' : 'success';
        is($result->{state} // 'success', $expected, "$level, $function: $expected");
        is($result->{value}, 1, "$level, $function: its result") unless $result->{state};
        $one->run('ROLLBACK TO s') if $result->{state};
    }
    $one->run('COMMIT');
    is_deeply([ map { $state{ $_->[0] }->($_->[2]) } grep { $_->[0] =~ /lease/ } @calls ],
        [ 1, 1, 0 ], "$level: the leases are taken, renewed, and ended");
}
no_locks('levels');

# ---- A function that is wrongly marked, in a parallel worker and in a leader ---------------------

{
    my $token = $look->value("SELECT token FROM advisory.lease('b', 'parallel', '1h')");
    $one->run('CREATE TABLE many AS SELECT i FROM generate_series(1, 100) AS i',
        "SELECT advisory.lock('b', 'parallel')",
        map { "SET $_ = 0" } qw(min_parallel_table_scan_size parallel_setup_cost
            parallel_tuple_cost));
    my @wrong = (
        [ 'check_lease', "SELECT advisory.check_lease('b', 'parallel', $token)" ], calls());
    for my $leader (qw(off on)) {
        $one->run("SET parallel_leader_participation = $leader",
            'SET max_parallel_workers_per_gather = ' . ($leader eq 'on' ? 1 : 2),
            'SET max_parallel_workers = ' . ($leader eq 'on' ? 0 : 8));
        for my $call (@wrong) {
            my ($function, $sql) = @$call;
            $one->run("CREATE OR REPLACE FUNCTION wrongly_marked(i integer) RETURNS boolean
                    LANGUAGE plpgsql PARALLEL SAFE COST 1 AS \$\$ BEGIN RETURN ($sql); END \$\$");
            $one->fails('SELECT count(*) FROM many WHERE wrongly_marked(i)', '25000',
                "parallel, $function: 25000 (leader: $leader)");
        }
    }
    $one->run("SELECT advisory.unlock('b', 'parallel')", 'RESET ALL');
    no_locks('parallel');
}

# ---- Cancelled at any moment ---------------------------------------------------------------------

{
    my %end;
    my $until = time + 60;
    $two->start(
        "DO \$\$ BEGIN LOOP PERFORM pg_cancel_backend(${\$one->pid}), pg_sleep(0.002 * random());
            END LOOP; END \$\$");
    while (time < $until && (($end{57014} // 0) < 100 || ($end{success} // 0) < 100)) {
        for my $call (calls()) {
            my ($function, $sql, $name) = @$call;
            my $before = $state{$function}->($name);
            my $result = $one->query($sql);
            $end{ $result->{state} // 'success' }++;
            my $after = $state{$function}->($name);
            is($after == $before, !!$result->{state}, "cancel: $function says what it has done")
                if $result->{state} ? $after != $before : $after == $before;
        }
    }
    $look->value('SELECT pg_cancel_backend(?)', $two->pid);
    $two->finish;
    # A cancel that comes late is of the next statement.
    $one->query('SELECT 1') for 1 .. 2;
    is(join(',', grep { !/^(?:57014|success)$/ } sort keys %end), '', 'cancel: no other errors');
    cmp_ok($end{57014} // 0, '>', 10, "cancel: ${\($end{57014} // 0)} calls were cancelled");
    cmp_ok($end{success} // 0, '>', 10, "cancel: $end{success} were not");
    $one->shows('SELECT current_user = session_user', 1, 'cancel: the user is who it was');
    no_locks('cancel');
}

# ---- What a superuser attaches to the tables never runs as the caller ----------------------------

{
    $look->run('CREATE TABLE trapped (who text)', 'GRANT INSERT ON trapped TO PUBLIC',
        q{CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT
            INTO public.trapped VALUES (current_user); SET search_path = hostile; RETURN new;
            END$$},
        map {
            ("CREATE TRIGGER trap AFTER INSERT OR UPDATE
                OR DELETE ON advisory.$_ FOR EACH ROW EXECUTE FUNCTION trap()")
        } qw(fences _leases _claims));
    $one->shows($_->[1], 1, "trigger, $_->[0]: it succeeds") for calls();
    $look->shows('SELECT count(*) FROM trapped', 0, 'a trigger does not fire');
    $look->run(map {
        "ALTER TABLE advisory.$_ ENABLE ALWAYS TRIGGER trap"
    } qw(fences _leases _claims));
    $one->shows($_->[1], 1, "trigger that fires always, $_->[0]: it succeeds") for calls();
    $look->shows('SELECT bool_and(who = pg_get_userbyid(10)) FROM trapped', 1,
        'a trigger runs as the owner of the table');
    $one->shows('SHOW search_path', '"$user", public', 'and what it sets is undone');
    my @more = calls();
    $look->run('CREATE CONSTRAINT TRIGGER later AFTER INSERT
            ON trapped DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trap()',
            'ALTER TABLE trapped ENABLE ALWAYS TRIGGER later');
    $one->fails($_->[1], '42501', "a trigger that makes another one fire later, $_->[0]: 42501")
        for @more;
    $look->run('DROP TRIGGER later ON trapped');
    my @calls = calls();
    $look->run( 'TRUNCATE trapped', map { ("DROP TRIGGER trap ON advisory.$_",
        "CREATE CONSTRAINT TRIGGER trap AFTER INSERT OR UPDATE
            OR DELETE ON advisory.$_ DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION
            trap()", "ALTER TABLE advisory.$_ ENABLE ALWAYS TRIGGER trap") } qw(fences _leases
                _claims));
    $one->fails($_->[1], '42501', "deferred trigger, $_->[0]: 42501") for @calls;
    $look->shows('SELECT count(*) FROM trapped', 0,
        'a trigger that would run at the end of the transaction, as another role, does not run');
    $look->run(map { "DROP TRIGGER trap ON advisory.$_" } qw(fences _leases _claims));
}

sub waits_for_standby ($session) {
    return $look->value(
        q{SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = ?}, $session->pid)
}

# ---- A commit that waits for a synchronous standby -----------------------------------------------

{
    my @calls = calls();
    my $synchronous = sub ($names) {
        $look->run('SET synchronous_commit = local', 'SET advisory_ext.lease_sync = off',
            "ALTER SYSTEM SET synchronous_standby_names = '$names'", 'SELECT pg_reload_conf()');
        for my $session ($look, $one) {
            wait_until('the setting is known',
                sub { $session->value('SHOW synchronous_standby_names') eq $names });
        }
        # Commits wait when the checkpointer has heard of it, too.
        wait_until('a commit waits', sub {
            $two->start(q{SELECT pg_logical_emit_message(true, 'probe', '')});
            wait_until('it waits or not', sub { $two->is_done || waits_for_standby($two) });
            my $is_waiting = !$two->is_done;
            $look->value('SELECT pg_cancel_backend(?)', $two->pid) if $is_waiting;
            $two->finish;
            return $is_waiting;
        }) if $names;
    };
    $synchronous->('nobody');
    my $waits = sub {
        wait_until('it waits for a standby', sub { $one->is_done || waits_for_standby($one) });
        return !$one->is_done
    };
    $one->run(q{SET statement_timeout = '500ms'});
    for my $call (@calls) {
        my ($function, $sql, $name) = @$call;
        my $before = $state{$function}->($name);
        $one->start($sql);
        ok($waits->(), "no standby, $function: the commit waits");
        sleep 0.6;
        ok(!$one->is_done, "no standby, $function: statement_timeout does not end that");
        is($state{$function}->($name), $before, "no standby, $function: others do not see it yet");
        $look->value('SELECT pg_cancel_backend(?)', $one->pid);
        my $result = $one->finish;
        is($result->{value}, 1,
            "no standby, $function: where the wait is cancelled the call has succeeded");
        like(join('', @{ $result->{warnings} }),
            qr/^WARNING:  canceling wait for synchronous replication/,
            "no standby, $function: with a WARNING");
        isnt($state{$function}->($name), $before, "no standby, $function: on this server");
    }
    # A token waits for no standby.
    $one->run('RESET statement_timeout', "SELECT advisory.lock('b', 'sync')");
    my $token = $one->value("SELECT advisory.token('b', 'sync')");
    cmp_ok($one->value("SELECT advisory.token('b', 'sync')"), '>', $token,
        'no standby, token: it waits for none, and tokens grow');
    $one->run("SELECT advisory.unlock('b', 'sync')", 'SET synchronous_commit = off');
    for my $call (calls()) {
        my ($function, $sql) = @$call;
        $one->start($sql);
        my $waited = $waits->();
        is($waited ? 1 : 0, $function =~ /^(?:try|renew)_lease/ ? 1 : 0,
            "no standby, synchronous_commit off, $function: it waits "
                . ($waited ? 'all the same' : 'for none'));
        $look->value('SELECT pg_cancel_backend(?)', $one->pid) if $waited;
        $one->returns(1, "no standby, synchronous_commit off, $function: it succeeds");
    }
    $synchronous->('');
    $_->run('RESET ALL') for $one, $look;
    no_locks('no standby');
}

# ---- A crash -------------------------------------------------------------------------------------

{
    my (@committed, @open) = ();
    push @committed, [ $_, $one->value($_->[1]), $state{ $_->[0] }->($_->[2]) ] for calls();
    my @calls = calls();
    $two->run('BEGIN');
    for my $call (@calls) {
        push @open, [ $call, $state{ $call->[0] }->($call->[2]) ];
        $two->value($call->[1])
    }
    # On disk, although that is not committed.
    $look->run('CHECKPOINT');
    my $owned = $look->value("SELECT token FROM advisory.lease('b', 'crash', '1h')");
    my $expires = $look->value("SELECT expires_at FROM advisory.leases WHERE name = 'crash'");
    $one->run("SELECT advisory.lock('b', 'crash')");
    my $token = $one->value("SELECT advisory.token('b', 'crash')");
    $server->ctl('restart', '-m', 'immediate') or die "it did not start again\n";
    eval { $_->disconnect } for $one, $two, $look;
    connect_all();
    is($state{ $_->[0][0] }->($_->[0][2]), $_->[2], "crash: $_->[0][0] that was committed is there")
        for @committed;
    is($state{ $_->[0][0] }->($_->[0][2]), $_->[1],
        "crash: $_->[0][0] that was not committed is not") for @open;
    # A renewal and an end ask for the lease that is still there.
    $one->shows($_->[0][1], 1, "crash: and $_->[0][0] can be had then") for @open;
    $one->shows("SELECT advisory.check_lease('b', 'crash', $owned)", 1,
        'crash: a lease is held after it');
    is($one->value(
        "SELECT expires_at FROM advisory.leases WHERE name = 'crash' AND state = 'held'"), $expires,
        'crash: and expires when it would have, since it is the same era');
    $one->run("SELECT advisory.lock('b', 'crash')");
    cmp_ok($one->value("SELECT advisory.token('b', 'crash')"), '>', $token, 'crash: tokens grow');
    no_locks('crash');
}

done_testing();
