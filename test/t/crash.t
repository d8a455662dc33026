#!/usr/bin/env perl
# Locks when a process or the whole server ends: a holder is terminated, a waiter is cancelled in
# the queue, a backend dies by SIGKILL, the server restarts with prepared transactions. The crashes
# happen on a server of their own.
use AdvisoryTest;

# ---- A session ends ------------------------------------------------------------------------------

create_database();
my $observer = session();

sub held_with_queue {
    my ($holder, $waiter) = (session(application => 'holder'), session());
    $holder->value("SELECT advisory.lock('crash', 'a')");
    waits($observer, $waiter, "SELECT advisory.lock('crash', 'a')");
    return ($holder, $waiter);
}

for my $end (
    [ 'the holder is killed by SIGTERM', sub { kill TERM => $_[0]->pid } ],
    [ 'the holder disconnects',          sub { $_[0]->disconnect } ],
    [ 'pg_terminate_backend(holder)',
        sub { $observer->value('SELECT pg_terminate_backend(?)', $_[0]->pid) } ],
    [ 'terminate_holder()',
        sub {
            $observer->shows("SELECT advisory.terminate_holder('crash', 'a', ?::int)", 1,
                'terminate_holder() returns true', $_[0]->pid)
        } ],
) {
    my ($name, $act) = @$end;
    my ($holder, $waiter) = held_with_queue();
    $act->($holder);
    $waiter->returns(1, "$name: the waiter gets the lock");
    until_gone($observer, $holder);
    $observer->shows("SELECT pid, granted FROM advisory.holders('crash', 'a')", "$waiter->{pid}|1",
        "$name: and is the only one to have it");
    leave($observer, $waiter);
}

# A waiter in the middle of the queue.
{
    my ($holder, $waiter) = held_with_queue();
    my $next = session();
    waits($observer, $next, "SELECT advisory.lock('crash', 'a')");
    $observer->shows('SELECT ? = ANY (blocked_by) FROM advisory.locks WHERE pid = ?', 1,
        'one waits for another waiter', $waiter->pid, $next->pid);
    $observer->value('SELECT pg_terminate_backend(?)', $waiter->pid);
    until_gone($observer, $waiter);
    is_deeply($observer->rows("SELECT pid, granted, blocked_by FROM advisory.holders('crash', 'a')
            ORDER BY granted DESC"),
        [ [ $holder->pid, 1, undef ], [ $next->pid, 0, [ $holder->pid ] ] ],
        'which is terminated: the queue closes up');
    $holder->value("SELECT advisory.unlock('crash', 'a')");
    $next->returns(1, 'and goes on');
    $next->value("SELECT advisory.unlock('crash', 'a')");

    # A session that holds it no more is not terminated, and the caller gets a warning.
    for my $case ([ $holder->pid, qr/PID \d+ does not hold advisory lock "crash\/a"/ ],
            [ 2**31 - 1, qr/is not a PostgreSQL backend process/ ]) {
        my $result =
            $observer->query("SELECT advisory.terminate_holder('crash', 'a', ?::int)", $case->[0]);
        is($result->{value}, 0, 'terminate_holder() of somebody else: false');
        like("@{ $result->{warnings} }", $case->[1], 'with a warning that says why');
    }
    $holder->shows('SELECT 1', 1, 'and nobody is harmed');
}

# The privileges are those of pg_terminate_backend().
{
    my ($owner, $stranger) = map { "advisory_${_}_$$" } qw(owner stranger);
    $observer->run("CREATE ROLE $owner LOGIN", "CREATE ROLE $stranger LOGIN");
    my $holder = session(role => $owner);
    my $other  = session(role => $stranger);
    my $terminate = "SELECT advisory.terminate_holder('crash', 'b', ?::int)";
    $holder->value("SELECT advisory.lock('crash', 'b')");
    $other->fails($terminate, '42501', 'terminate_holder() of another role: 42501', $holder->pid);
    $other->fails('SELECT pg_terminate_backend(?)', '42501', 'as pg_terminate_backend() says',
        $holder->pid);
    $holder->shows('SELECT 1', 1, 'the holder lives');
    $observer->run("GRANT pg_signal_backend TO $stranger");
    $other->shows($terminate, 1, 'a member of pg_signal_backend may', $holder->pid);
    my $superuser = session();
    $superuser->value("SELECT advisory.lock('crash', 'b')");
    $other->fails($terminate, '42501', 'but not of a superuser', $superuser->pid);
    $_->disconnect for $holder, $other, $superuser;
    until_gone($observer, $_) for $holder, $other;
    $observer->run("DROP ROLE $owner", "DROP ROLE $stranger");
}

# ---- The server ends -----------------------------------------------------------------------------

my $server = own_server('restart_after_crash=on');
sub there { return session(server => $server) }

my $holder = there()->run('CREATE EXTENSION advisory_ext', 'CREATE TABLE note (t text)');

sub prepare ($gid, $name) {
    there()->run(
        'BEGIN', "INSERT INTO note VALUES ('$gid')", "SELECT advisory.xact_lock('crash', '$name')",
        "SELECT advisory.xact_lock_shared('crash', 'shared')", "PREPARE TRANSACTION '$gid'");
}

# What is held, and by which prepared transaction.
my $LEFT = <<'SQL';
    SELECT gid, pid, database, role, kind, mode, scope, granted,
    key = advisory.key('crash', 'prepared') AS is_prepared
    FROM advisory.locks ORDER BY gid, mode
SQL

my $prepared = [
    [ 'the gid', undef, 'postgres', $server->{PGUSER}, 'lock', 'exclusive', 'transaction', 1, 1 ],
    [ 'the gid', undef, 'postgres', $server->{PGUSER}, 'lock', 'shared',    'transaction', 1, 0 ],
];

prepare('the gid', 'prepared');
is_deeply($holder->rows($LEFT), $prepared, 'a prepared transaction shows its locks, with its gid');

for my $end (
    [ 'a backend dies by SIGKILL',   sub { kill KILL => $_[0]->pid } ],
    [ 'an immediate stop and start', sub { $server->ctl('restart', '-m', 'immediate') } ],
    [ 'a restart',                   sub { $server->ctl('restart', '-m', 'fast') } ],
) {
    my ($name, $act) = @$end;
    $holder->value("SELECT advisory.lock('crash', 'a')");
    $holder->value("SELECT advisory.lock_all('crash', '{x,y,z}')");
    my $waiter = there();
    waits($holder, $waiter, "SELECT advisory.lock('crash', 'a')");
    $act->($holder);
    my $result = $waiter->finish;
    ok($result->{state}, "$name: a waiter is told of an error");
    wait_until('the server is back',
        sub { eval { there()->value('SELECT NOT pg_is_in_recovery()') } });
    $_->disconnect for $holder, $waiter;
    $holder = there();
    is_deeply($holder->rows($LEFT), $prepared,
        "$name: nothing is locked afterwards but by the prepared transaction");
    $holder->shows("SELECT advisory.try_lock('crash', 'a')", 1, "$name: the lock is free");
    $holder->shows("SELECT advisory.try_lock('crash', 'prepared')", 0,
        "$name: the prepared transaction's is not");
    $holder->shows("SELECT advisory.try_lock_shared('crash', 'shared')", 1,
        "$name: and its shared one is shared");
    $holder->shows("SELECT advisory.hold_count('crash', 'x')", 0,
        "$name: a new session has nothing noted");
    $holder->run('SELECT pg_advisory_unlock_all()');
}

# The error of a wait for a prepared transaction says so.
my $waiter = there();
my $error = $waiter->query("SELECT advisory.lock('crash', 'prepared', '20ms')");
like($error->{detail}, qr/Prepared transaction "the gid" holds it in exclusive mode/,
    'the error names the prepared transaction');
waits($holder, $waiter, "SELECT advisory.lock('crash', 'prepared')");
is_deeply($holder->value('SELECT blocked_by FROM advisory.locks WHERE NOT granted'), [0],
    'blocked_by shows it as 0');
$holder->run("COMMIT PREPARED 'the gid'");
$waiter->returns(1, 'its COMMIT PREPARED lets the waiter go on');
$holder->shows('SELECT count(*) FROM note', 1, 'and keeps what it wrote');

# A transaction with both scopes on one lock cannot be prepared, and leaves no lock.
my $both = there();
$both->run('BEGIN', "SELECT advisory.lock('crash', 'both')",
    "SELECT advisory.xact_lock('crash', 'both')");
ok($both->query("PREPARE TRANSACTION 'both'")->{state},
    'a transaction with the same lock in both scopes cannot be prepared');
$both->shows("SELECT advisory.hold_count('crash', 'both')", 1,
    'and keeps the session-level hold, only');

done_testing();
