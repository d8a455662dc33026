#!/usr/bin/env perl
# advisory_ext.idle_holder_timeout: a session that holds a lock and is idle is ended, so that those
# who wait get the lock. Nothing else ends it: not a long statement, an open transaction, a
# procedure that commits, the work of others, or a lock that was released.
use AdvisoryTest;
use Time::HiRes qw(sleep);

use constant {
    SHORT => '300ms',
    LONG  => '10min',
    PAST  => 1,                     # seconds, longer than SHORT
};

create_database();
my $look = session();
my $TAKE = q(SELECT advisory.lock('idle', 'a'));

# A new session with the timeout, which runs these statements.
sub holder ($timeout, @statements) {
    my $session = session(application => 'holder')
        ->run("SET advisory_ext.idle_holder_timeout = '$timeout'");
    $session->query($_) for @statements;
    return $session;
}

sub is_there ($session) {
    return $look->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $session->pid)
}

# What the log has about the end of the session.
sub end_of ($session) {
    my $pid = $session->pid;
    return sub { return join "\n", grep { /\[$pid\].*(?:FATAL|DETAIL)/ } split /\n/, $_[0] };
}

# Runs the code, which returns a session that the timeout then ends. Returns the log's lines about
# that.
sub ended ($code) {
    my $session;
    my $log = logged(sub { $session = $code->(); until_gone($look, $session) });
    return (end_of($session)->($log), $session);
}

# What a program prints that runs a file with this text.
sub with_file ($text, $command) {
    my $file = "$ENV{ADVISORY_EXT_TMP}/idle_holder.$$.sql";
    open my $script, '>', $file or die "$file: $!\n";
    print {$script} $text;
    close $script or die "$file: $!\n";
    my $printed = qx{$ENV{PG_BINDIR}/$command -f $file $ENV{ADVISORY_TEST_DATABASE} 2>&1};
    unlink $file;
    return $printed;
}

# ---- It ends the session

my ($log, $session) =
    ended(sub { holder(SHORT, $TAKE, q(SELECT advisory.acquire('idle', 'slots', 3))) });
like($log, qr{FATAL:  terminating connection due to "advisory_ext.idle_holder_timeout"$}m,
    'a session with a lock and a slot: the log says why it ended');
like($log, qr{DETAIL:  The session was idle and held "idle/slots", "idle/a"\.$}m, 'and names both');
$session->fails('SELECT 1', '08000', 'the connection is lost');
# (DBD::Pg does not tell why.)
my $told = with_file(
    "\\set VERBOSITY verbose\nSET advisory_ext.idle_holder_timeout = '300ms';\n$TAKE;\n\\! sleep "
        . "1\nSELECT 1;\n", 'psql -X');
like($told, qr/FATAL:  57P05: terminating connection due to "advisory_ext.idle_holder_timeout"$/m,
    'the client is told, with the SQLSTATE of idle_session_timeout');
unlike($told, qr{DETAIL|idle/a}, 'without the names');

my $hangs = holder(SHORT, $TAKE);
my $waiter = session();
$waiter->shows($TAKE, 1, 'a session that waits for such a holder gets the lock');
leave($look, $waiter, $hangs);

($log) = ended(sub { holder(SHORT, map { "SELECT advisory.lock('idle', $_)" } 1 .. 12) });
like($log, qr{held "idle/1", .*"idle/10" and 2 more\.$}m, 'not more than ten names');
($log) = ended(sub { holder(SHORT, map { "SELECT advisory.lock('idle', $_)" } 1 .. 10) });
like($log, qr{held "idle/1", .*"idle/10"\.$}m, 'and ten are all of them');
($log) = ended(
    sub {
        holder(SHORT, (map { "SELECT advisory.lock('idle', '$_')" } 'a' .. 'c'),
            q(SELECT pg_advisory_unlock(advisory.key('idle', 'b'))))
    });
like($log, qr{held "idle/a", "idle/c"\.$}m, 'only what it still holds');

# ---- However the lock was taken

my %taking = (
    'by a statement that fails later' => [
        q(SELECT advisory.lock('idle', 'a'), 1 / pg_backend_pid() / 0) ],
    'in a transaction that is rolled back' => [ 'BEGIN', $TAKE, 'ROLLBACK' ],
    'in a transaction that failed' => [ 'BEGIN', $TAKE, 'SELECT 1 / 0', 'ROLLBACK' ],
    'before an error'          => [ $TAKE, 'SELECT 1 / 0' ],
    'before the setting'       => [ 'RESET advisory_ext.idle_holder_timeout', $TAKE,
        "SET advisory_ext.idle_holder_timeout = '" . SHORT . q(') ],
    'before a shorter timeout' => [ "SET advisory_ext.idle_holder_timeout = '" . LONG . q('), $TAKE,
        "SET advisory_ext.idle_holder_timeout = '" . SHORT . q(') ],
    'by a procedure'           => [ q(CALL advisory.await_lock('idle', 'a')) ],
    'in several statements at once, of which the last fails' => [
        "BEGIN; $TAKE; COMMIT; SELECT pg_sleep(0.5); SELECT 1 / 0" ],
    'in several statements at once' => [ "BEGIN; $TAKE; COMMIT; SELECT pg_sleep(0.05)" ],
    'before a cursor'          => [
        $TAKE, 'BEGIN', 'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'COMMIT' ],
    'and LISTEN'               => [ 'LISTEN idle', $TAKE ],
);
ok((ended(sub { holder(SHORT, @{ $taking{$_} }) }))[0], "a lock taken $_") for sort keys %taking;

# By the extended protocol, where the end of a transaction comes after its statement.
($log) = ended(
    sub {
        my $holder = holder(SHORT);
        $holder->query('SELECT advisory.lock($1, $2)', 'idle', 'a');
        return $holder
    });
ok($log, 'by the extended protocol');

# ---- It does not

my $committing = q(DO $$ BEGIN PERFORM advisory.lock('idle', 'p'); COMMIT; PERFORM pg_sleep(1);
        COMMIT; PERFORM 1; COMMIT; END $$);
my @cases = (
    [ 'without a lock' ],
    [ 'with a transaction-level lock', 'BEGIN', q(SELECT advisory.xact_lock('idle', 'x')) ],
    [ 'in a transaction block', $TAKE, 'BEGIN' ],
    [ 'in a transaction block that failed', $TAKE, 'BEGIN', 'SELECT 1 / 0' ],
    [ 'after unlock', $TAKE, q(SELECT advisory.unlock('idle', 'a')) ],
    [ 'after DISCARD ALL', $TAKE, 'DISCARD ALL' ],
    [ 'after pg_advisory_unlock_all()', $TAKE, 'SELECT pg_advisory_unlock_all()' ],
    [ 'with a lock of the built-in functions', 'SELECT pg_advisory_lock(4711)' ],
    [ 'without the setting', $TAKE, 'SET advisory_ext.idle_holder_timeout = 0' ],
    [ 'with a longer timeout', $TAKE, "SET advisory_ext.idle_holder_timeout = '" . LONG . q(') ],
);
my @survivors = map {
    my ($what, @statements) = @$_;
    holder(SHORT, map { s/'a'/'$what'/r } @statements)
} @cases;
sleep PAST;
ok(is_there($survivors[$_]), $cases[$_][0]) for 0 .. $#cases;
leave($look, @survivors);

# Longer than SHORT: a busy machine may keep the test itself from its next statement.
my $busy = holder('1200ms', $TAKE);
$busy->succeeds('SELECT pg_sleep(2)', 'a long statement is not idle');
$busy->succeeds('SELECT pg_sleep($1)', 'nor by the extended protocol', 2);
$busy->query($committing =~ s/pg_sleep\(1\)/pg_sleep(2)/r);
$busy->shows('SELECT 1', 1, 'nor a DO block that commits');
$busy->succeeds('SELECT 1; COMMIT; SELECT pg_sleep(2)', 'nor statements that are sent together');
for (1 .. 4) { sleep 0.5; $busy->run('SELECT 1') }
$busy->shows('SELECT 1', 1, 'the time begins again after each statement');
$busy->query('SET statement_timeout = 100');
$busy->fails('SELECT pg_sleep(10)', '57014', 'other timeouts work');
$busy->shows('SELECT 1', 1, 'and do not end the session');
leave($look, $busy);

# A procedure by the extended protocol: its last commit comes after the statement, at the Sync.
$look->run(q(CREATE PROCEDURE commits() LANGUAGE plpgsql
        AS $$ BEGIN PERFORM advisory.lock('idle', 'p'); COMMIT; PERFORM pg_sleep(1); END $$));
{
    local $ENV{PGOPTIONS} = '-c advisory_ext.idle_holder_timeout=' . SHORT;
    like(with_file('CALL commits();', 'pgbench --no-vacuum --protocol=extended --transactions=2'),
        qr{processed: 2/2},
        'nor a procedure that commits, by the extended protocol');
}

# ---- Work that the server does in an idle session does not begin the time anew

my $listener = holder(SHORT, 'LISTEN idle', $TAKE);
wait_until('the listener is gone', sub {
    $look->run('NOTIFY idle');
    sleep 0.05;
    !is_there($listener)
});
ok(1, 'notifications do not keep a session alive');

# ---- Many sessions that work while the timer often comes just in time

my %states;
my $racer;
for my $i (1 .. 1200) {
    $racer //= holder('5ms', q(SELECT advisory.lock('idle', 'race')));
    my $result = $racer->query($i % 2 ? 'SELECT 1' : 'DO $$ BEGIN COMMIT; COMMIT; END $$');
    my $state = $result->{state} // 'alive';
    $states{$state}++;
    undef $racer if $result->{state};
    sleep 0.0045 if $i % 10 == 0;
}
is_deeply([ sort grep { !/^(?:alive|08000)$/ } keys %states ], [],
    'a statement that races with the timeout succeeds, or finds the session ended');
cmp_ok($states{alive}, '>', 200, 'often it succeeds') or diag(join ' ', %states);
done_testing();
