#!/usr/bin/env perl
# How long a timeout takes compared with the server's lock_timeout, what an error tells which role
# about the holder, and that ten thousand tries that time out leave nothing behind. Times, pids and
# memory do not fit into expected output.
use AdvisoryTest;
use List::Util qw(min);
use Time::HiRes qw(sleep time);

use constant { LIMIT => 0.250, TIMES => 4, MOST_TIMES => 40, TRIES => 10_000 };

create_database();
my $observer = session();
my $holder   = session(application => 'nightly batch');
my $waiter   = session();

sub advisory_locks_of ($session) {
    return $observer->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?",
        $session->pid);
}

sub duration ($code) {
    my $start = time;
    $code->();
    return time - $start;
}

$holder->value("SELECT advisory.lock('a', 'b')");

# ---- How long it takes ---------------------------------------------------------------------------

# The machine may be busy: the shortest of several times counts, and of more where the ratio is
# still too large.
my (@ours, @native, @falses);
for my $time (1 .. MOST_TIMES) {
    push @ours, duration(sub { push @falses,
            $waiter->value("SELECT advisory.try_lock('a', 'b', '250ms')") });
    $waiter->run("SET lock_timeout = '250ms'");
    push @native,
        duration(sub { $waiter->query("SELECT pg_advisory_lock(advisory.key('a', 'b'))") });
    $waiter->run('SET lock_timeout = 0');
    last if $time >= TIMES && min(@ours) <= 1.1 * min(@native);
}
is_deeply([ grep { $_ } @falses ], [], "try_lock('a', 'b', '250ms') returns false");
cmp_ok(min(@ours), '>=', LIMIT, 'not before 250 ms');
cmp_ok(min(@ours), '<=', 1.1 * min(@native),
    'nor later than the built-in under lock_timeout, within a tenth');

# A list has one timeout: what the wait for the first lock takes is not there for the second.
{
    my @names = $observer->column(q(SELECT name FROM unnest(ARRAY['c', 'd']) AS name
        ORDER BY advisory.key('a', name)));
    my @holders = map { session()->run("SELECT advisory.lock('a', '$_')") } @names;
    my $end;
    my $took = duration(sub {
        waits($observer, $waiter, "SELECT advisory.try_lock_all('a', ARRAY['c', 'd'], '1s')");
        sleep 0.7;
        $end = time + 1;
        $holders[0]->run('SELECT pg_advisory_unlock_all()');
        $waiter->returns(0, 'two locks, of which one becomes free');
    });
    cmp_ok(time, '<', $end, 'the second one has the rest of the time');
    cmp_ok($took, '>=', 1, '... all of it');
}

# ---- The transaction goes on ---------------------------------------------------------------------

$waiter->run('CREATE TABLE note (t text)', 'BEGIN', "INSERT INTO note VALUES ('before')");
$waiter->shows("SELECT advisory.try_lock('a', 'b', '10ms')", 0, 'false in a transaction');
$waiter->run("INSERT INTO note VALUES ('after')", 'COMMIT');
$observer->shows("SELECT string_agg(t, ',') FROM note", 'before,after',
    'that goes on, and commits all of it');

# ---- What the error says -------------------------------------------------------------------------

my $error = $waiter->fails("SELECT advisory.lock('a', 'b', '250ms')", '55P03',
    'lock() raises 55P03');
is($error->{message}, 'could not obtain advisory lock "a/b" within 250 ms', 'names lock and limit');
is($waiter->query("SELECT advisory.lock('a', 'b', '1 microsecond')")->{message},
    'could not obtain advisory lock "a/b" within 1 ms', 'the limit is rounded up to a millisecond');
my $pid = $holder->pid;
like($error->{detail}, qr/\bProcess $pid\b/, 'the detail names the holder: pid,');
like($error->{detail}, qr/role "\Q$ENV{PGUSER}\E"/, 'role,');
like($error->{detail}, qr/application "nightly batch"/, 'application,');
like($error->{detail}, qr/exclusive mode; it is idle since \d{4}-/, 'mode, state and since when');
is($error->{schema}, 'a', "the error's schema field is the namespace");
is($error->{constraint}, 'b', 'its constraint field is the name');
like($error->{hint},
    qr/advisory\.blockers\..*advisory\.terminate_holder\('a', 'b', $pid, kind => 'lock'\)/,
    'the hint says how to look and to act');
$waiter->shows("SELECT pid FROM advisory.holders('a', 'b')", $pid, 'and so it is');

# The hint's statement can be pasted, also with a quote in the name.
my $quoted = session()->run(q{SELECT advisory.lock('it''s', 'a\b')});
$error = $waiter->query(q{SELECT advisory.lock('it''s', 'a\b', '0')});
my ($statement) = $error->{hint} =~ /(SELECT advisory\.terminate_holder\(.*\))\.$/;
$waiter->shows($statement, 1, "a hint's statement can be pasted") or diag($error->{hint});
$quoted->disconnect;

my $other = "advisory_other_$$";
$observer->run("CREATE ROLE $other LOGIN");
my $stranger = session(role => $other, application => 'stranger');
$error = $stranger->fails("SELECT advisory.lock('a', 'b', '10ms')", '55P03',
    'the same for a role without privileges');
like($error->{detail}, qr/\bProcess $pid\b.*application "nightly batch"/,
    'with pid and application');
unlike($error->{detail}, qr/idle|active|since/, 'and without state and time');
$observer->run("GRANT pg_read_all_stats TO $other");
$error = $stranger->query("SELECT advisory.lock('a', 'b', '10ms')");
like($error->{detail}, qr/it is idle since/, 'which a member of pg_read_all_stats is told');

# Waiters ahead in the queue are blockers, too.
$observer->run("REVOKE pg_read_all_stats FROM $other");
waits($observer, $stranger, "SELECT advisory.lock('a', 'b')");
$error = $waiter->query("SELECT advisory.lock('a', 'b', '10ms')");
my $ahead = $stranger->pid;
like($error->{detail},
    qr/Process $pid .* holds it .*\n.*Process $ahead of role "$other".* waits for it/,
    'first the holder, then the waiter ahead');
$observer->value('SELECT pg_cancel_backend(?)', $stranger->pid);
$stranger->ends('57014', 'the queue is empty again');
$stranger->disconnect;

# ---- Many of them --------------------------------------------------------------------------------

# Every open subtransaction has a memory context of this name.
my $OPEN_CONTEXTS = "SELECT count(*) FROM pg_backend_memory_contexts
    WHERE name = 'CurTransactionContext'";
my $MEMORY = 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts';

sub try_often ($tries) {
    $waiter->run(<<"SQL");
        DO \$\$ BEGIN
            FOR i IN 1 .. $tries LOOP
                IF advisory.try_lock('a', 'b', '1ms') THEN
                    RAISE 'got it';
                END IF;
            END LOOP;
        END \$\$
SQL
}

$waiter->value($_) for $OPEN_CONTEXTS, $MEMORY;
$waiter->run('BEGIN', "SET LOCAL lock_timeout = '1h'");
my $contexts = $waiter->value($OPEN_CONTEXTS);
try_often(500);
my $memory = $waiter->value($MEMORY);
try_often(TRIES);
cmp_ok($waiter->value($MEMORY) - $memory, '<', 64 * 1024,
    TRIES . ' timed-out tries: less than 7 bytes each');
is($waiter->value($OPEN_CONTEXTS), $contexts, 'no open subtransaction');
$waiter->shows('SELECT pg_current_xact_id_if_assigned()', 'NULL', 'no transaction id');
$waiter->shows("SELECT current_setting('lock_timeout')", '1h', 'lock_timeout as before');
is(advisory_locks_of($waiter), 0, 'no lock');
$waiter->run('COMMIT');
$waiter->shows("SELECT advisory.hold_count('a', 'b')", 0, 'nothing noted');

# The same for the error, caught each time.
$waiter->run(my $caught = <<'SQL');
    DO $$ BEGIN
        FOR i IN 1 .. 500 LOOP
            BEGIN
                PERFORM advisory.lock('a', 'b', '1ms');
                RAISE 'got it';
            EXCEPTION WHEN lock_not_available THEN
            END;
        END LOOP;
    END $$
SQL
$memory = $waiter->value($MEMORY);
$waiter->run($caught) for 1 .. 3;
cmp_ok($waiter->value($MEMORY) - $memory, '<', 64 * 1024,
    '1500 errors leave no memory behind either');

# ---- An interrupted wait -------------------------------------------------------------------------

for my $function (qw(lock try_lock xact_lock try_xact_lock lock_shared try_xact_lock_shared)) {
    my $call = "SELECT advisory.$function('a', 'b', NULL)";
    waits($observer, $waiter, $call);
    $observer->value('SELECT pg_cancel_backend(?)', $waiter->pid);
    $waiter->ends('57014', "$function: cancelled in the middle of a wait");
    $waiter->shows('SELECT 1', 1, 'the session goes on');
    is(advisory_locks_of($waiter), 0, 'and holds nothing');

    $waiter->run("SET statement_timeout = '50ms'");
    $waiter->fails($call, '57014', "$function: ended by statement_timeout");
    $waiter->run('SET statement_timeout = 0');
    is_deeply([ $waiter->value('SELECT 1'), advisory_locks_of($waiter) ], [ 1, 0 ],
        'the session goes on and holds nothing');
}
$holder->value("SELECT advisory.unlock('a', 'b')");
$waiter->shows("SELECT advisory.try_lock('a', 'b')", 1, 'and can have the lock once it is free');

done_testing();
