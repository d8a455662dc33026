#!/usr/bin/env perl
# A failed wait ends with its own error even while the server's lock table is full, so that the
# session cannot read names of roles, prepared transactions or leases. The detail is shorter then.
# And a superuser can end the session that has filled the table.
use utf8;
use AdvisoryTest;

use constant { MORE_THAN_FITS => 1_000_000, TABLES => 200, ATTEMPTS => 5 };

my $server =
    own_server('max_locks_per_transaction=10', 'max_connections=20', 'max_prepared_transactions=2');
my $look = session(server => $server);
$look->run('CREATE EXTENSION advisory_ext', 'CREATE ROLE ordinary LOGIN',
    'CREATE ROLE other LOGIN');
$look->run("CREATE TABLE t$_ ()", "GRANT SELECT ON t$_ TO PUBLIC") for 1 .. TABLES;
my $holder = session(server => $server, role => 'other', application => 'holder')
    ->run(q(SELECT advisory.lock('full', 'a')),
    q(SELECT advisory.acquire('full', 's', 1)));
leave($look,
    session(server => $server, role => 'other')->run(
        'BEGIN', q(SELECT advisory.xact_lock('full', 'prepared')), q(PREPARE TRANSACTION 'a gid')));
$look->run(q(SELECT advisory.lease('full', 'lease', '1 h')));
my $h = $holder->pid;

# The error of a statement that waits, with a timeout in milliseconds in place of the ?, while
# another session fills the lock table. The session has taken its own places for locks on tables
# (the fast path) before. Another session runs the other statement before, if there is one, which
# may wait. The wait itself fails with 53200 if it has to look at the lock again after the table is
# full. So this tries several times.
sub error_while_full ($statement, $waits_before) {
    my $error;
    for my $attempt (1 .. ATTEMPTS) {
        my $asks = session(server => $server, role => 'ordinary');
        $asks->run('BEGIN');
        $asks->run("SELECT FROM t$_") for 1 .. TABLES / 2;
        my $before = $waits_before && session(server => $server)->start($waits_before);
        $look->wait_until('another waits', q(SELECT count(*) FROM advisory.waits WHERE pid = ?),
            $before->pid) if $before;
        $asks->start($statement =~ s/\?/2000 * 2 ** $attempt/er);
        $look->wait_until('it waits', q(SELECT count(*) FROM pg_stat_activity
                    WHERE pid = ? AND wait_event_type IS NOT NULL AND state = 'active'),
                    $asks->pid);
        my $hog = session(server => $server);
        $hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
                . ') AS i', '53200', 'the lock table is full');
        my $in_time = !$asks->is_done;
        $error = $asks->finish;
        $asks->disconnect;
        ok($look->value('SELECT pg_terminate_backend(?, 10000)', $hog->pid), 'it is emptied');
        leave($look, $before) if $before;
        last if $in_time && ($error->{state} // '') ne '53200';
    }
    return $error;
}

for my $case (
    [ 'a lock', q(SELECT advisory.lock('full', 'a', '? ms')),
        qr{^Process $h(?: of role "other")?, application "holder", holds it in exclusive mode},
        qr{terminate_holder} ],
    [ 'a slot', q(SELECT advisory.acquire('full', 's', 1, '? ms')),
        qr{^Process $h(?: of role "other")?, application "holder", has slot 1},
        qr{terminate_holder} ],
    [ 'a lock of a prepared transaction', q(SELECT advisory.lock('full', 'prepared', '? ms')),
        qr{^(?:A prepared transaction|Prepared transaction "a gid") holds it in exclusive mode\.$},
        qr{^To } ],
    # The first waiter for a lease looks at it again and again. So this is the second.
    [ 'a lease', q(SELECT * FROM advisory.lease('full', 'lease', '1 h', '? ms')), undef,
        qr{advisory\.leases}, q(SELECT advisory.lease('full', 'lease', '1 h')) ],
) {
    my ($what, $statement, $detail, $hint, $waits_before) = @$case;
    my $error = error_while_full($statement, $waits_before);
    is($error->{state}, '55P03', "$what: the error of the wait") or diag $error->{message};
    like($error->{detail} // '', $detail, '... with a detail') if $detail;
    like($error->{hint}, $hint, '... and a hint');
}

# ---- The views that say who is in the way --------------------------------------------------------

{
    my $waiter = session(server => $server)->start(q(SELECT advisory.lock('full', 'a')));
    waits($look, $waiter);
    # Its known use is looked up.
    my $plain = session(server => $server)->run('SELECT pg_advisory_lock(12345)');
    my @views = qw(activity blockers waits wait_tree() locks leaks leases pressure);
    my $ordinary = session(server => $server, role => 'ordinary');
    $look->run("SELECT * FROM advisory.$_") for @views;
    $ordinary->run('SELECT * FROM advisory.leases');
    # Then the catalog has to be asked again who is a member of what.
    $look->run('GRANT pg_read_all_settings TO other');
    my $hog = session(server => $server);
    $hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
            . ') AS i', '53200', 'the lock table is full');
    $look->succeeds("SELECT count(*) FROM (SELECT * FROM advisory.$_ OFFSET 0) AS all_columns",
        "$_ can be read") for @views;
    $ordinary->succeeds('SELECT count(*) FROM (SELECT * FROM advisory.leases OFFSET 0) AS all_rows',
        'leases can be read by a role that took none');
    $look->shows('SELECT count(*) FROM advisory.activity WHERE lock ~ ?', 1,
        'activity shows a lock without a name', '^12345');
    $look->shows('SELECT remedy FROM advisory.blockers',
        "SELECT advisory.terminate_holder('full', 'a', $h, kind => 'lock');",
        'blockers says what ends the holder');
    ok($look->value('SELECT pg_terminate_backend(?, 10000)', $_->pid), 'it is emptied')
        for $hog, $waiter, $plain;
}

# In another encoding a name is converted by a function that the catalog has. (The session has
# locked what the statement reads, and its places for locks on tables are in use.)
{
    $look->run(q(CREATE DATABASE latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'
        TEMPLATE template0));
    my ($names, $asks) = map {
        session(server => $server, database => 'latin1')->run(q(SET client_encoding = 'UTF8'))
    } 1 .. 2;
    $names->run('CREATE EXTENSION advisory_ext', map { "CREATE TABLE t$_ ()" } 1 .. TABLES / 2);
    my $shown = q(SELECT name FROM advisory.locks WHERE namespace = 'other');
    $asks->run('SET plan_cache_mode = force_generic_plan', "PREPARE shown AS $shown", 'BEGIN',
        'EXECUTE shown');
    # Then the catalog has to be read again.
    $names->run(q(SELECT advisory.lock('other', 'größe')),
        q(CREATE CONVERSION again FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8));
    $asks->run(map { "SELECT FROM t$_" } 1 .. TABLES / 2);
    my $hog = session(server => $server);
    $hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
            . ') AS i', '53200', 'the lock table is full');
    $asks->shows('EXECUTE shown', 'gr\u00F6\u00DFe', 'a name that cannot be converted is escaped');
    ok($look->value('SELECT pg_terminate_backend(?, 10000)', $hog->pid), 'it is emptied');
    $asks->shows('EXECUTE shown', 'größe', '... and is converted when there is room');
}

# ---- Who ends the session that has filled it -----------------------------------------------------

{
    my $admin = session(server => $server);
    my $ends = q(SELECT advisory.terminate_holder_key(1, ?::int));
    $admin->run("SET plan_cache_mode = force_generic_plan", 'BEGIN');
    $admin->run("SELECT FROM t$_") for 1 .. TABLES / 2;
    $admin->shows($ends, 0, 'the function is known to the session', $h);
    my $hog = session(server => $server, role => 'other');
    $hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
            . ') AS i', '53200', 'the lock table is full');
    my $result = $admin->query($ends, $hog->pid);
    is($result->{value}, 1, 'a superuser ends the session that has filled it')
        or diag $result->{message};
}

# ---- A slot that was set aside for a session that then failed ------------------------------------

{
    my ($taker, $other, $hog) = map { session(server => $server) } 1 .. 3;
    my $TRY = q(SELECT advisory.try_acquire('full', 'slots', 2));
    my $RELEASE = q(SELECT advisory.release('full', 'slots'));
    $_->run($TRY, $RELEASE) for $taker, $other;
    # What another session has released meanwhile has to be taken, too.
    my $failed;
    for my $attempt (1 .. ATTEMPTS) {
        $hog->fails("SELECT count(pg_advisory_lock($attempt, i))
            FROM generate_series(1, @{[MORE_THAN_FITS]}) AS i", '53200', 'the lock table is full');
        $failed = $taker->query($TRY);
        last if $failed->{state};
        $taker->run($RELEASE);
    }
    is($failed->{state}, '53200', 'a slot that is free cannot be taken');
    ok($look->value('SELECT pg_terminate_backend(?, 10000)', $hog->pid), 'it is emptied');
    $other->shows($TRY, $_, "and slot $_ is free at once") for 1, 2;
}

# A WARNING, too, about a key whose name another role has given.
{
    my $key = $look->value(q(SELECT advisory.key('full', 'early')));
    my $unlock = "SELECT advisory.unlock_key($key)";
    $holder->run(map { "SELECT advisory.$_('full', 'early')" } qw(lock unlock));
    my $asks = session(server => $server, role => 'ordinary')
        ->run('SET advisory_ext.unlock_before_commit = on', ("SELECT advisory.lock_key($key)") x 2,
        $unlock, 'SET advisory_ext.unlock_before_commit = warn', 'BEGIN',
        'SELECT pg_current_xact_id()', map { "SELECT FROM t$_" } 1 .. TABLES / 2);
    my $hog = session(server => $server);
    $hog->fails('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, ' . MORE_THAN_FITS
            . ') AS i', '53200', 'the lock table is full');
    my $result = $asks->query($unlock);
    ok($look->value('SELECT pg_terminate_backend(?, 10000)', $hog->pid), 'it is emptied');
    is($result->{value}, 1, 'a lock is released early') or diag $result->{message};
    like("@{ $result->{warnings} }", qr/^WARNING:  advisory lock "$key" is released before/,
        '... with the WARNING');
}
done_testing();
