#!/usr/bin/env perl
# A hot standby: every kind of lock and every view works there, and its locks are independent of the
# primary's. Functions that must write raise an error. A recovery conflict can cancel a session that
# waits. Holders and waiters continue after a promotion.
use AdvisoryTest;
use FindBin;
use Replica;
use Standbys;
use Time::HiRes qw(sleep);

# (No autovacuum, whose snapshots could keep rows that a conflict needs to be removed.)
my $first = own_server('autovacuum=off');
my $primary = session(server => $first)->run('CREATE EXTENSION advisory_ext',
    'CREATE TABLE item (id integer)',
    "INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'nightly import')");
# A session that blocks replay is cancelled at once.
my $second = replica($first, 'max_standby_streaming_delay=0', 'deadlock_timeout=200ms');
sub there { return session(server => $second, @_) }
my $look = there(application => 'look');
caught_up($primary, $second);

# ---- Every kind of lock --------------------------------------------------------------------------

$look->shows('SELECT pg_is_in_recovery()', 1, 'it is a standby');

sub advisory_locks {
    return $_[0]->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
}

# How to take it, what another session asks that fails to get it, and how many locks it is if not
# one.
for my $kind (
    [ "advisory.lock('s', 'a')", "advisory.try_lock('s', 'a')" ],
    [ "advisory.lock('s', 42, '5s')", "advisory.try_lock('s', 42, '20ms')" ],
    [ "advisory.try_lock('s', 'a')", "advisory.try_lock_shared('s', 'a')" ],
    [ "advisory.lock_shared('s', 'a')", "advisory.try_lock('s', 'a')" ],
    [ "advisory.try_lock_shared('s', 'a', '5s')", "advisory.try_xact_lock('s', 'a')" ],
    [ "advisory.xact_lock('s', 'a')", "advisory.try_xact_lock('s', 'a')" ],
    [ "advisory.try_xact_lock('s', 'a', '5s')", "advisory.try_xact_lock_shared('s', 'a', '20ms')" ],
    [ "advisory.xact_lock_shared('s', 'a', '5s')", "advisory.try_xact_lock('s', 'a')" ],
    [ "advisory.try_xact_lock_shared('s', 'a')", "advisory.try_xact_lock('s', 'a')" ],
    [ "advisory.lock_key(4711)", "pg_try_advisory_lock(4711)" ],
    [ "advisory.xact_lock_key(4711, '5s')", "advisory.try_xact_lock_key(4711)" ],
    [ "pg_advisory_lock(advisory.key('s', 'a'))", "advisory.try_lock('s', 'a')" ],
    [ "advisory.lock_all('s', '{a,b}')", "advisory.try_lock('s', 'b')", 2 ],
    [ "advisory.try_xact_lock_all('s', ARRAY[1, 2, 3], '5s')",
        "advisory.try_lock_all('s', ARRAY[3, 4])", 3 ],
    [ "* FROM advisory.try_lock_any('s', ARRAY[1, 2, 3], 2)",
        "count(*) > 1 FROM advisory.try_xact_lock_any('s', ARRAY[1, 2, 3], 3)", 2 ],
    [ "* FROM advisory.try_acquire_any('s', ARRAY['a', 'b'], 1, 2)",
        "count(*) > 1 FROM advisory.try_xact_acquire_any('s', ARRAY['a', 'b'], 1, 2)", 2 ],
    [ "advisory.acquire('s', 'a', 1)", "advisory.try_acquire('s', 'a', 1) IS NOT NULL" ],
    [ "advisory.acquire('s', 'a', 2, '5s'), advisory.try_acquire('s', 'a', 2)",
        "advisory.try_acquire('s', 'a', 2, '20ms') IS NOT NULL", 2 ],
    [ "advisory.xact_acquire('s', 'a', 2), advisory.try_xact_acquire('s', 'a', 2)",
        "advisory.try_xact_acquire('s', 'a', 2) IS NOT NULL", 2 ],
    [ "CALL advisory.await_lock('s', 'a')", "advisory.try_lock('s', 'a')" ],
    [ "CALL advisory.await_lock_shared('s', 'a', '5s')", "advisory.try_lock('s', 'a')" ],
    [ "CALL advisory.await_lock_key(4711, '5s')", "advisory.try_lock_key(4711)" ],
    [ "CALL advisory.await_acquire('s', 'a', 1)", "advisory.try_acquire('s', 'a', 1) IS NOT NULL" ],
) {
    my ($take, $ask) = map { /^CALL/ ? $_ : "SELECT $_" } @$kind[ 0, 1 ];
    my $locks = $kind->[2] // 1;
    my $name = $kind->[0] =~ s/^CALL //r;
    my ($holder, $other) = (there(), there());
    $holder->run('BEGIN', $take);
    is(advisory_locks($look), $locks, "$name: taken");
    $other->shows($ask, 0, "$name: another session does not get it");
    $primary->run('BEGIN');
    isnt($primary->value($ask), 0, "$name: a session of the primary does");
    $primary->run('ROLLBACK', 'SELECT pg_advisory_unlock_all()');
    $holder->run('COMMIT');
    is(advisory_locks($look), $take =~ /xact/ ? 0 : $locks,
        "$name: and after COMMIT it is as its scope says");
    $holder->run('SELECT pg_advisory_unlock_all()');
    is(advisory_locks($look), 0, "$name: released");
}

# standby_locks.
{
    my $session = there();
    my @calls = ("SELECT advisory.try_lock('s', 'a')", "SELECT advisory.xact_acquire('s', 'b', 2)");
    $session->run('SET advisory_ext.standby_locks = off');
    $session->fails($_, '25006', "$_, with standby_locks = off")
        for @calls, q(CALL advisory.await_lock('s', 'a')),
        q(SELECT advisory.try_lock_any('s', '{a,b}', 1));
    is(advisory_locks($look), 0, '... and nothing is taken');
    $session->run('RESET advisory_ext.standby_locks');
    told_takers($session);
    told_readers($session, 'advisory.leaks', 'advisory.stats');
    $session->run('DISCARD ALL', 'SET advisory_ext.standby_locks = on', 'BEGIN');
    is($session->warned($_), '', "$_: no warning with standby_locks = on")
        for @calls, 'SELECT * FROM advisory.locks, advisory.claims';
    leave($look, $session);
    $primary->run('SET advisory_ext.standby_locks = off');
    $primary->shows($calls[0], 1, 'it does not concern the primary');
    $primary->run('SELECT pg_advisory_unlock_all()', 'RESET advisory_ext.standby_locks');
}

# Releasing, and asking.
{
    my $holder = there();
    $holder->run("SELECT advisory.lock_all('s', '{a,b,c}')", "SELECT advisory.lock('s', 'a')",
        "SELECT advisory.acquire('s', 'sem', 2)");
    $holder->shows("SELECT advisory.holds('s', 'a'), advisory.hold_count('s', 'a'),
        advisory.is_locked('s', 'b')", '1|2|1', 'it is known who holds');
    $look->shows("SELECT pid, granted FROM advisory.holders('s', 'a')", "$holder->{pid}|1",
        'holders()');
    $holder->shows("SELECT advisory.unlock('s', 'c'), advisory.unlock_all('s', 'a'),
        advisory.release('s', 'sem')", '1|2|1', 'unlock(), unlock_all(), release()');
    $look->shows("SELECT advisory.terminate_holder('s', 'b', ?::int)", 1, 'terminate_holder()',
        $holder->pid);
    is(advisory_locks($look), 0, 'nothing is left');
}

# An unlogged table cannot be read on a standby.
$primary->run('ALTER TABLE advisory.key_labels SET UNLOGGED');
caught_up($primary, $second);
$look->shows(q{SELECT count(*) FROM advisory.known_keys WHERE source = 'advisory.key_labels'}, 0,
    'where the labels are unlogged, the views do without');
$primary->run('ALTER TABLE advisory.key_labels SET LOGGED');
caught_up($primary, $second);

# ---- Whose locks they are ------------------------------------------------------------------------

{
    my ($holder, $waiter, $sem, $line) = map { there(application => $_) } qw(holder
        waiter sem line);
    $holder->run("SELECT advisory.lock('own', 'standby')", 'SELECT advisory.lock_key(4711)');
    $primary->run("SELECT advisory.lock('own', 'primary')",
        "SELECT advisory.lock('own', 'standby')");
    is_deeply($primary->rows('SELECT namespace, name, pid FROM advisory.locks ORDER BY name'),
        [ map { [ 'own', $_, $primary->pid ] } qw(primary standby) ], 'the primary sees its own');
    waits($look, $waiter, "SELECT advisory.lock('own', 'standby', '1 min')");
    $holder->shows("SELECT advisory.try_lock('own', 'primary')", 1,
        'what is taken there is free here');
    $holder->run("SELECT advisory.unlock('own', 'primary')");

    $sem->run("SELECT advisory.acquire('own', 'sem', 2)",
        "SELECT advisory.acquire('own', 'sem', 2)");
    $line->start("SELECT advisory.xact_acquire('own', 'sem', 2)");
    waits_for_slot($line);

    # Every view.
    is_deeply($look->rows("SELECT name, pid, scope, granted, known_as FROM advisory.locks
            WHERE kind = 'lock' ORDER BY granted DESC, name"),
        [ [ 'standby', $holder->pid, 'session', 1, undef ],
            [ undef, $holder->pid, 'session', 1, ['nightly import'] ],
            [ 'standby', $waiter->pid, undef, 0, undef ] ],
            'locks: names, scopes, labels that came from the primary');
    is_deeply($look->rows('SELECT name, slots, in_use, waiting, holders FROM advisory.semaphores'),
        [ [ 'sem', 2, 2, 1, [ ($sem->pid) x 2 ] ] ], 'semaphores');
    $look->shows('SELECT depth, pid, waits_for_pid, name FROM advisory.waits ORDER BY name DESC,
        depth', [ "0|$holder->{pid}|NULL|standby", "1|$waiter->{pid}|$holder->{pid}|standby",
            "0|$sem->{pid}|NULL|sem", "1|$line->{pid}|$sem->{pid}|sem" ], 'waits');
    like($look->value("SELECT string_agg(line, E'\n') FROM advisory.wait_tree() AS line"),
        qr{\@waiter waits for own/standby exclusive}, 'wait_tree()');
    is_deeply($look->rows("SELECT who, blocked_by FROM advisory.activity WHERE waiting IS NOT NULL
            AND lock = 'own/standby'"), [ [ "$second->{PGUSER}\@waiter", $holder->pid ] ],
        'activity');
    $look->shows("SELECT acquired, contended FROM advisory.stats
        WHERE namespace = 'own' AND name = 'standby'", '1|1', 'stats: what was counted here');
    $look->shows("SELECT source FROM advisory.known_keys WHERE key = 4711", 'advisory.key_labels',
        'known_keys');
    $look->shows('SELECT locks_used >= 3 AND NOT (percent_used > 50) FROM advisory.pressure', 1,
        'pressure');
    $look->shows('SELECT advisory_locks FROM advisory.pressure_by_backend WHERE pid = ?', 2,
        'pressure_by_backend', $holder->pid);
    cmp_ok($look->value("SELECT locks FROM advisory.pressure_by_type WHERE type = 'advisory'"),
        '>=', 4, 'pressure_by_type');
    $look->shows('SELECT advisory.can_fit(1)', 1, 'can_fit()');
    $look->shows('SELECT available FROM advisory.directory', 1, 'directory');
    cmp_ok($look->value('SELECT count(*) FROM advisory.settings'), '>', 5, 'settings');
    $look->run("SET advisory_ext.leak_after = '1ms'");
    wait_until('the leak shows', sub { $look->value('SELECT count(*) FROM advisory.leaks
            WHERE pid = ?', $holder->pid) == 2 });
    pass('leaks');
    $look->run('SELECT advisory.stats_reset()');
    $look->shows('SELECT sum(acquired) FROM advisory.stats', 0,
        'stats_reset(), which is of this server only');
    $primary->shows("SELECT sum(acquired) FROM advisory.stats WHERE namespace = 'own'", 2,
        'the primary counts its own');

    $holder->run("SELECT advisory.unlock('own', 'standby')");
    $waiter->returns(1, 'the waiter gets it when it is released here');
    $sem->run("SELECT advisory.release('own', 'sem')");
    like($line->finish->{value}, qr/^[12]$/, 'and a waiter for a slot gets it, too');
    $primary->shows("SELECT pid FROM advisory.locks WHERE name = 'standby'", $primary->pid,
        'the primary has noticed nothing');
    $primary->run('SELECT pg_advisory_unlock_all()');
}

# As the views show it.
sub waits_for_slot ($session) {
    return $look->wait_until('session waits for a slot',
        "SELECT count(*) FROM advisory.locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.pid = ? AND NOT l.granted AND a.wait_event = 'advisory'", $session->pid);
}

# Functions that must write.
for my $write (
    "INSERT INTO advisory.key_labels (key, label) VALUES (1, 'here')",
    "DELETE FROM advisory.key_labels",
    "SELECT advisory.claim('s', 'a', '1 hour')",
    "SELECT advisory.unclaim('s', 'a', '2026-01-01')",
    "SELECT advisory.check_token('s', 'a', 1)",
    "SELECT advisory.lease('s', 'a', '1 hour')",
    "SELECT advisory.try_lease('s', 'a', '1 hour')",
    "CALL advisory.await_lease('s', 'a', '1 hour')",
    "SELECT advisory.renew_lease('s', 'a', 1)",
    "SELECT advisory.end_lease('s', 'a', 1)",
    "SELECT advisory.break_lease('s', 'a')",
    "SELECT advisory.check_lease('s', 'a', 1)",
    "CALL advisory.run('s', 'a', 'SELECT 1', once_per => '1 hour')",
) {
    $look->fails($write, '25006', "$write: 25006, read-only");
}
$look->run("SELECT advisory.lock('s', 'a')")->fails("SELECT advisory.token('s', 'a')", '25006',
    'a token, also for what is held here');
$look->run("SELECT advisory.unlock('s', 'a')");

# Leases of the primary are seen.
{
    my $token = $primary->value("SELECT token
        FROM advisory.lease('s', 'seen', '1 hour', owner => 'of the primary')");
    my $expired = $primary->value("SELECT token FROM advisory.lease('s', 'expired', '1 ms')");
    sleep 0.01;
    caught_up($primary, $second);
    is_deeply($look->rows("SELECT name, owner, token, state FROM advisory.leases
            ORDER BY name DESC"),
        [ [ 'seen', 'of the primary', $token, 'held' ],
            [ 'expired', $primary->value('SELECT current_user'), $expired, 'expired' ] ], 'leases');
    $look->shows("SELECT who FROM advisory.activity WHERE lock = 'lease s/seen'", 'of the primary',
        'activity shows them');
    is(advisory_locks($look), 0, 'what failed has left nothing locked');
}

# The check for Nagios is one line there, too.
{
    local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
        (@{$second}{qw(PGHOST PGPORT PGUSER)}, 'postgres');
    my $check = "$FindBin::Bin/../../examples/monitoring/check_advisory.sh";
    like(scalar `sh '$check' waits -w 1000 -c 2000`, qr/\AADVISORY OK - [^\n]+\n\z/,
        'check_advisory.sh prints no notice');
}

{
    my $worker = session(server => $first);
    job_from_standby($primary, $worker, $second, $look);
}

# ---- How a wait ends -----------------------------------------------------------------------------

{
    my $holder = there()->run("SELECT advisory.lock('end', 'a')",
        "SELECT advisory.acquire('end', 'a', 2)", "SELECT advisory.acquire('end', 'a', 2)");
    for my $wait (
        "SELECT advisory.lock('end', 'a', %s)", "SELECT advisory.xact_lock('end', 'a', %s)",
        "SELECT advisory.lock_all('end', '{a,b}', %s)",
        "CALL advisory.await_lock('end', 'a', %s)", "SELECT advisory.acquire('end', 'a', 2, %s)",
        "CALL advisory.await_acquire('end', 'a', 2, %s)",
    ) {
        my $waiter = there();
        is($waiter->query(sprintf $wait, "'50ms'")->{state}, '55P03',
            sprintf "$wait: its timeout", "'50ms'");
        $waiter->start(sprintf $wait, 'NULL');
        $wait =~ /acquire/ ? waits_for_slot($waiter) : waits($look, $waiter);
        $look->value('SELECT pg_cancel_backend(?)', $waiter->pid);
        is($waiter->finish->{state}, '57014', sprintf "$wait: a cancel", 'NULL');
        $look->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?", 0,
            'it holds and awaits nothing', $waiter->pid);
    }
    # A deadlock, of which one gets out.
    my $other = there()->run("SELECT advisory.lock('end', 'b')");
    waits($look, $other, "SELECT advisory.lock('end', 'a')");
    $holder->start("SELECT advisory.lock('end', 'b')");
    wait_until('one of them gives up', sub { $holder->is_done || $other->is_done });
    my ($victim, $survivor) = $holder->is_done ? ($holder, $other) : ($other, $holder);
    $victim->ends('40P01', 'a deadlock is found');
    $victim->run('SELECT pg_advisory_unlock_all()');
    $survivor->returns(1, 'and the other one goes on');
}

# ---- A recovery conflict -------------------------------------------------------------------------
# Replay removes rows that a waiter's snapshot could still see.

sub conflict {
    $primary->run('INSERT INTO item VALUES (1)', 'DELETE FROM item', 'VACUUM item');
    return caught_up($primary, $second);
}
conflict();

for my $wait (
    [ "SELECT advisory.xact_lock('conflict', 'a')",                'query' ],
    [ "SELECT advisory.xact_lock('conflict', 'a', '1 min')",       'session' ],
    [ "SELECT advisory.try_xact_lock('conflict', 'a', '1 min')",   'session' ],
    [ "SELECT advisory.lock('conflict', 'a')",                     'query' ],
    [ "SELECT advisory.xact_acquire('conflict', 'a', 2)",          'query' ],
    [ "SELECT advisory.xact_acquire('conflict', 'a', 2, '1 min')", 'session' ],
    [ "CALL advisory.await_lock('conflict', 'a')",                 'nothing' ],
    [ "CALL advisory.await_lock('conflict', 'a', '1 min')",        'nothing' ],
    [ "CALL advisory.await_acquire('conflict', 'a', 2)",           'nothing' ],
) {
    my ($sql, $ended) = @$wait;
    my $holder = there()->run("SELECT advisory.lock('conflict', 'a')",
        "SELECT advisory.acquire('conflict', 'a', 2) FROM generate_series(1, 2)");
    my $waiter = there()->run('BEGIN', "SELECT advisory.xact_lock('conflict', 'before')");
    my $pid = $waiter->pid;
    $waiter->start($sql);
    $sql =~ /acquire/ ? waits_for_slot($waiter) : waits($look, $waiter);
    conflict();
    if ($ended eq 'nothing') {
        ok(!$waiter->is_done, "$sql goes on waiting: it has no snapshot to be in the way with");
        $holder->run("SELECT pg_advisory_unlock_all()");
        $waiter->ends(undef, 'and gets it');
    } elsif ($ended eq 'query') {
        my $error = $waiter->ends('40001', "$sql: the query is cancelled");
        like($error->{context}, qr{^while waiting for .*"conflict/a"}m,
            'the error says what it waited for');
        $look->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?", 0,
            'it awaits nothing, and holds nothing of its transaction', $pid);
        $waiter->run('ROLLBACK');
        $waiter->shows('SELECT 1', 1, 'the session goes on');
    } else {
        # DBD::Pg has no words for it; the server's log does.
        ok($waiter->finish->{state}, "$sql: the session is ended");
        wait_until("process $pid is gone",
            sub { !$look->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $pid) });
        $look->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?", 0,
            'and nothing of it is left', $pid);
    }
    is($look->value("SELECT advisory.try_xact_lock('conflict', 'before')"),
        $ended eq 'nothing' ? 0 : 1,
        $ended eq 'nothing' ? 'its transaction has what it had'
        : 'what its transaction had locked is free');
    $_->disconnect for $holder, $waiter;
    wait_until('all is released', sub { !advisory_locks($look) });
    $look->shows('SELECT * FROM advisory.semaphores', [], 'nothing stays locked');
}
like(log_of($second), qr/FATAL:  terminating connection due to conflict with recovery/,
    'the terminated session is told why');

# Session-level locks survive the canceled query, as they survive other errors.
{
    my $holder = there()->run("SELECT advisory.lock('conflict', 'a')");
    my $waiter = there()->run("SELECT advisory.lock('conflict', 'mine')");
    waits($look, $waiter, "SELECT advisory.xact_lock('conflict', 'a')");
    conflict();
    $waiter->ends('40001', 'a query is cancelled');
    $look->shows("SELECT name, pid FROM advisory.locks ORDER BY name", [ "a|$holder->{pid}",
            "mine|$waiter->{pid}" ], 'session-level locks are still held by the same sessions');
}

# A relation that its transaction has read: even a wait without a snapshot is in the way.
{
    my $holder = there()->run("SELECT advisory.lock('conflict', 'a')");
    my $waiter = there()->run('BEGIN', 'SELECT * FROM item');
    waits($look, $waiter, "CALL advisory.await_lock('conflict', 'a')");
    $primary->run('TRUNCATE item');
    $waiter->ends('40001', 'await_lock() after reading a table that is truncated: cancelled');
    $look->shows('SELECT pid FROM advisory.locks', $holder->pid, 'and awaits nothing');
}

sub log_of ($server) {
    open my $log, '<', $server->{ADVISORY_EXT_LOG} or die "cannot read the log: $!\n";
    local $/ = undef;
    return <$log>;
}

# ---- Once per window, where the claim's commit waits for a standby -------------------------------

my $runs = 0;

sub once {
    $runs++;
    return "CALL advisory.run('sync', 'a', 'INSERT INTO item VALUES (100)', once_per => '1 hour',
        once_window => '2026-01-01'::timestamptz + interval '$runs hours')";
}

sub ran { return $primary->value('SELECT count(*) FROM item WHERE id = 100') }

sub synchronous ($names) {
    set_standby_names($primary->run('SET synchronous_commit = local'), $names);
    return wait_until('there is a synchronous standby', sub { $primary->value(q{SELECT count(*)
            FROM pg_stat_replication WHERE sync_state = 'sync'}) == ($names eq '*') });
}

synchronous('*');
for my $level (qw(local remote_write on remote_apply)) {
    $primary->run("SET synchronous_commit = $level")->run(map { once() } 1 .. 10);
}
is(ran(), $runs, "with a synchronous standby: all of $runs have run");
synchronous('nobody');
my $confirmed = $runs;
for my $level (qw(remote_write on remote_apply)) {
    my $result = $primary->run("SET synchronous_commit = $level",
        q{SET statement_timeout = '200ms'})->fails(once(), '57014',
        "$level, and none is there: a cancelled wait for it is an error");
    my $no = 'no synchronous standby has confirmed the claim of window';
    like($result->{message}, qr{^command was not run because $no 2026-.* of "sync/a"$},
        'which says so');
    $primary->run('RESET statement_timeout');
    $primary->shows("SELECT advisory.is_locked('sync', 'a')", 0, 'the lock is free');
}
is(ran(), $confirmed, 'no command has run');
$primary->run('SET synchronous_commit = local', 'SET advisory_ext.lease_sync = off', once());
is(ran(), $confirmed + 1, 'where the commit is to wait for nobody, it runs');
synchronous('');
$primary->run('RESET synchronous_commit', 'RESET advisory_ext.lease_sync', once());
is(ran(), $confirmed + 2, 'and without synchronous standbys');

# ---- Promotion -----------------------------------------------------------------------------------

# A prepared transaction's locks come with it, but only when it is promoted.
session(server => $first)->run('BEGIN', 'INSERT INTO item VALUES (2)',
    "SELECT advisory.xact_lock('promote', 'prepared'), advisory.xact_lock('promote', 'both')",
    "PREPARE TRANSACTION 'one'");
$primary->run("SELECT advisory.lock('promote', 'of the primary')",
    "SELECT advisory.claim('promote', 'a', '1 hour', '2026-01-01')");
caught_up($primary, $second);
$look->shows("SELECT advisory.is_locked('promote', 'prepared')", 0,
    'before: a transaction that the primary has prepared locks nothing here');

my $both = there()->run("SELECT advisory.lock('promote', 'both')");

# Holders, and sessions that wait for them.
my %holder = map { $_ => there(application => "holds $_") } qw(session transaction slot);
$holder{session}->run("SELECT advisory.lock('promote', 'session')",
    "SELECT advisory.lock_shared('promote', 'shared')");
$holder{transaction}->run('BEGIN', "SELECT advisory.xact_lock('promote', 'transaction')");
$holder{slot}->run("SELECT advisory.acquire('promote', 'slot', 2)", 'BEGIN',
    "SELECT advisory.xact_acquire('promote', 'slot', 2)");
my @waiters = map { { sql => $_->[0], for => $_->[1],
        session => there(application => "waits for $_->[1]") } } (
    [ "SELECT advisory.lock('promote', 'session')",                       'session' ],
    [ "SELECT advisory.xact_lock('promote', 'session', '5 min')",         'session' ],
    [ "SELECT advisory.lock_all('promote', '{free,session}', '5 min')",   'session' ],
    [ "CALL advisory.await_lock('promote', 'session')",                   'session' ],
    [ "SELECT advisory.lock('promote', 'shared')",                        'session' ],
    [ "SELECT advisory.lock('promote', 'transaction')",                   'transaction' ],
    [ "SELECT advisory.try_xact_lock('promote', 'transaction', '5 min')", 'transaction' ],
    [ "SELECT advisory.acquire('promote', 'slot', 2) > 0",                'slot' ],
    [ "SELECT advisory.xact_acquire('promote', 'slot', 2, '5 min') > 0",  'slot' ],
    [ "CALL advisory.await_acquire('promote', 'slot', 2)",                'slot' ],
);
for my $waiter (@waiters) {
    $waiter->{session}->start($waiter->{sql});
    $waiter->{for} eq 'slot' ? waits_for_slot($waiter->{session}) : waits($look,
        $waiter->{session});
}
my $WHO = "SELECT kind, name, slot, pid, mode, scope, granted FROM advisory.locks WHERE gid IS NULL
    ORDER BY 1, 2, 3, 4, 5, 7";
my $before = $look->rows($WHO);
my $slots = $look->rows('SELECT name, slots, in_use, waiting, holders FROM advisory.semaphores');

$look->shows('SELECT pg_promote()', 1, 'it is promoted');
$look->shows('SELECT pg_is_in_recovery()', 0, 'and a standby no more');
is_deeply($look->rows($WHO), $before, 'holders still hold, waiters still wait');
is_deeply($look->rows('SELECT name, slots, in_use, waiting, holders FROM advisory.semaphores'),
    $slots, 'for slots, too');
is(scalar(grep { $_->{session}->is_done } @waiters), 0, 'no wait has ended');
$look->shows("SELECT advisory.claim('promote', 'a', '1 hour', '2026-01-01')", 'NULL',
    'a window that was claimed on the old primary is claimed');
$look->shows("SELECT advisory.claim('promote', 'a', '1 hour', '2026-01-02') IS NOT NULL", 1,
    'and the next one can be');
# (One that ended more than a minute before stays ended.)
$look->shows("SELECT name, state FROM advisory.leases WHERE name = 'seen'", 'seen|restarted',
    'leases of the old primary have their TTL again, from when somebody asks for one here');
$look->shows("SELECT token FROM advisory.try_lease('s', 'seen', '1 hour')", 'NULL',
    'so they are not free');
$look->shows("SELECT advisory.check_lease('s', 'seen', (SELECT token FROM advisory.leases
    WHERE name = 'seen'))", 1, 'and their owners keep them');
$look->shows("SELECT advisory.is_locked('promote', 'of the primary')", 0,
    'what a session of the old primary holds is free here');
$look->shows("SELECT count(*), bool_and(granted AND gid = 'one' AND mode = 'exclusive')
    FROM advisory.locks WHERE pid IS NULL", '2|1',
    'a transaction that it had prepared has its locks here now');
$look->shows("SELECT advisory.try_xact_lock('promote', 'prepared')", 0,
    'so that nobody else gets them');
# The server does not look whether they are free.
$look->shows("SELECT pid, gid FROM advisory.locks WHERE key = advisory.key('promote', 'both')
    AND granted ORDER BY pid", [ "$both->{pid}|NULL", 'NULL|one' ],
    'even where a session has the lock: then both have it, and the view says so');
leave($look, $both);
$look->run("COMMIT PREPARED 'one'");
$look->shows("SELECT advisory.try_xact_lock('promote', 'prepared')", 1, 'until it is committed');
$look->shows("SELECT advisory.is_locked('promote', 'both')", 0, 'both have let go');

# A transaction that began on the standby stays one that may not write, and its lock ends with it.
$holder{transaction}->shows("SELECT advisory.holds('promote', 'transaction')", 1,
    'a transaction that began before has its lock');
$look->run("INSERT INTO advisory.key_labels (key, label) VALUES (1, 'written here')");
$look->shows('SELECT label FROM advisory.key_labels ORDER BY key',
    [ 'written here', 'nightly import' ], 'labels can be written');

# Each lock that is released goes to its waiter at once.
$holder{session}->run("SELECT advisory.unlock('promote', 'session')",
    "SELECT advisory.unlock_shared('promote', 'shared')");
$holder{transaction}->run('COMMIT');
$holder{slot}->run('COMMIT', "SELECT advisory.release('promote', 'slot')");
for my $waiter (@waiters) {
    my $result = $waiter->{session}->finish(20);
    is($result->{state}, undef, "$waiter->{sql}, begun on the standby: got when it is released")
        or diag(explain($result));
    isnt($result->{value}, 0, 'and says so');
    $waiter->{session}->run("INSERT INTO item VALUES (3)");
    $waiter->{session}->run('SELECT pg_advisory_unlock_all()');
}
is($look->value('SELECT count(*) FROM item WHERE id = 3'), @waiters, 'those sessions can write');
is(advisory_locks($look), 0, 'in the end nothing is locked');

done_testing();
