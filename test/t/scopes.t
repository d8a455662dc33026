#!/usr/bin/env perl
# Which scope other sessions see of a lock that is held in both, after the built-in functions have
# released the session-level hold. The test needs a second session.
use AdvisoryTest;

create_database();
my ($look, $session) = (session(), session());
my $key = q(advisory.key('scopes', name));
my $names = q(FROM unnest(ARRAY['a', 'b', 'c', 'd']) AS name);

sub scopes_are ($expected, $what) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $look->shows(q(SELECT string_agg(name || ' ' || scope, ', ' ORDER BY name, mode)
        FROM advisory.locks WHERE pid = ?), $expected, $what, $session->pid);
}
sub all_are ($scope) { return join ', ', map { "$_ $scope" } qw(a b c d) }

# What releases the hold of the lock in the middle, or of all.
my %middle = (
    'unlock()' => q(SELECT advisory.unlock('scopes', 'b')),
    'pg_advisory_unlock()' => q(SELECT pg_advisory_unlock(advisory.key('scopes', 'b'))),
    'pg_advisory_unlock() in a block' => q(DO $$ BEGIN
        PERFORM pg_advisory_unlock(advisory.key('scopes', 'b'));
        EXCEPTION WHEN division_by_zero THEN NULL; END $$),
);
my %all = (
    'pg_advisory_unlock_all()' => 'SELECT pg_advisory_unlock_all()',
    'pg_advisory_unlock() of each' => "SELECT pg_advisory_unlock($key) $names",
);
for my $first ('lock', 'xact_lock') {
    my $second = $first eq 'lock' ? 'xact_lock' : 'lock';
    my @takes = ('BEGIN', map { "SELECT advisory.$_('scopes', name) $names" } $first, $second);
    for my $what (sort keys %middle) {
        $session->run(@takes);
        scopes_are(all_are('session'), "$first() and $second(): the scope is session");
        $session->run($middle{$what});
        scopes_are('a session, b transaction, c session, d session',
            "$what leaves the transaction's hold");
        $session->run('COMMIT');
        scopes_are('a session, c session, d session', 'which ends with COMMIT');
        $session->run('SELECT pg_advisory_unlock_all()');
    }
    for my $what (sort keys %all) {
        $session->run(@takes, $all{$what});
        scopes_are(all_are('transaction'), "$what leaves those of the transaction");
        $session->run("SELECT advisory.lock('scopes', name) $names");
        scopes_are(all_are('session'), 'and another lock() adds a hold of the session');
        $session->run('SELECT pg_advisory_unlock_all()', 'ROLLBACK');
        scopes_are('NULL', 'ROLLBACK ends all');
    }
}

# What the built-in function has released in the middle of the list is not the session's when the
# transaction takes it, nor is its time.
$session->run(map({ "SELECT advisory.lock('scopes', '$_')" } 'a' .. 'c'),
    q(SELECT pg_advisory_unlock(advisory.key('scopes', 'b'))), 'BEGIN',
    q(SELECT advisory.xact_lock('scopes', 'b')));
scopes_are('a session, b transaction, c session', 'taken again for the transaction');
$look->shows(q(SELECT acquired_at >= (SELECT xact_start FROM pg_stat_activity WHERE pid = l.pid)
    FROM advisory.locks AS l WHERE name = 'b' AND pid = ?), 1, '... in the transaction',
    $session->pid);
$session->run('COMMIT', 'SELECT pg_advisory_unlock_all()');
scopes_are('NULL', '... which ends');

# Of two holds one is released by the built-in function, the other one by the extension.
$session->run(map({ "SELECT advisory.lock('scopes', '$_')" } qw(a b b c)),
    q(SELECT pg_advisory_unlock(advisory.key('scopes', 'b'))));
my $HOLDS = q(SELECT hold_total > interval '0' FROM advisory.stats
    WHERE namespace = 'scopes' AND name = 'b');
$look->run('SELECT advisory.stats_reset()');
$session->shows(q(SELECT advisory.unlock('scopes', 'b')), 1, 'the second one of two holds');
$look->shows($HOLDS, 1, '... is the last, and counts');
$session->run('SELECT pg_advisory_unlock_all()');

# The lock manager gives what it knew of a lock to another lock.
$session->run(map({ "SELECT advisory.lock('scopes', '$_')" } 'a' .. 'c'),
    q(SELECT pg_advisory_unlock(advisory.key('scopes', 'b'))), 'SELECT pg_advisory_lock(4711)');
$session->shows(q(SELECT advisory.hold_count('scopes', 'b')), 0,
    'another lock is not taken for it');
$session->shows(q(SELECT advisory.unlock('scopes', 'b')), 0, '... nor released');
$session->shows('SELECT pg_advisory_unlock(4711)', 1, '... which is still held');
$session->run('SELECT pg_advisory_unlock_all()');
$session->run(map({ "SELECT advisory.lock('scopes', '$_')" } 'a' .. 'c'),
    q(SELECT pg_advisory_unlock(advisory.key('scopes', 'b'))), 'SELECT pg_advisory_lock(4711)',
    q(SELECT advisory.lock('scopes', 'b')));
$look->shows(q(SELECT advisory.try_lock('scopes', 'b')), 0,
    'nor is the other one taken for it when it is taken again');
$_->run('SELECT pg_advisory_unlock_all()') for $look, $session;

# A lock that is taken again begins again.
$session->run(map({ "SELECT advisory.lock('scopes', '$_')" } 'a' .. 'c'),
    q(SELECT pg_advisory_unlock(advisory.key('scopes', 'b'))));
my $before = $look->value('SELECT clock_timestamp()');
$session->run(q(SELECT advisory.lock('scopes', 'b')));
$look->shows(q(SELECT acquired_at >= ? FROM advisory.locks WHERE name = 'b' AND pid = ?), 1,
    'its time is that of the second lock()', $before, $session->pid);
$session->run('SELECT pg_advisory_unlock_all()');

# All are released, and the last one is taken again, before the statement ends.
$session->run(q(SELECT advisory.lock('scopes', 'first')),
    map({ q(SELECT advisory.acquire('scopes', 'slots', 2)) } 1, 2),
    q(SELECT advisory.lock('scopes', 'last')));
$session->run(
    q(SELECT pg_advisory_unlock_all(), pg_advisory_lock(advisory.key('scopes', 'last'))));
$look->shows(q(SELECT advisory.try_acquire('scopes', 'slots', 2)), 1,
    'slots are known to be free when all is released but what was taken then');
$_->run('SELECT pg_advisory_unlock_all()') for $look, $session;

# What is held in both scopes is held since the first of the two, also when that one ends.
$session->run(q(SELECT advisory.lock('scopes', 'a')), 'BEGIN',
    q(SELECT advisory.xact_lock('scopes', 'a')), q(SELECT advisory.unlock('scopes', 'a')));
$look->shows(q(SELECT acquired_at < (SELECT xact_start FROM pg_stat_activity WHERE pid = l.pid)
    FROM advisory.locks AS l WHERE name = 'a' AND pid = ?), 1,
    'the time of a lock is that of its first hold', $session->pid);
$session->run('COMMIT');

# Meanwhile, too, and under the label that was given for one of the two holds.
for my $first ('lock_shared_key', 'xact_lock_shared_key') {
    my $second = $first eq 'lock_shared_key' ? 'xact_lock_shared_key' : 'lock_shared_key';
    $session->run('BEGIN', "SELECT advisory.$first(7)");
    my $between = $look->value('SELECT clock_timestamp()');
    $session->run("SELECT advisory.$second(7, label => 'own')");
    $look->run(q(SELECT advisory.lock_shared_key(7, label => 'of another')));
    $look->shows(q(SELECT scope, name, acquired_at < ? FROM advisory.locks WHERE pid = ?),
        'session|own|1', "$first(), then $second() with a label", $between, $session->pid);
    $session->run('COMMIT');
    $look->shows('SELECT scope, name FROM advisory.locks WHERE pid = ?', 'session|own',
        'and after the transaction', $session->pid);
    $_->run('SELECT pg_advisory_unlock_all()') for $look, $session;
}

# A hold that was taken twice, or in a savepoint, and in both modes.
$session->run(q(SELECT advisory.lock('scopes', 'a') FROM generate_series(1, 2)), 'BEGIN',
    'SAVEPOINT s', q(SELECT advisory.xact_lock('scopes', 'a')),
    q(SELECT pg_advisory_unlock(advisory.key('scopes', 'a'))));
scopes_are('a session', 'one of two holds is left');
$session->run(q(SELECT pg_advisory_unlock(advisory.key('scopes', 'a'))));
scopes_are('a transaction', 'none is left');
$session->run(q(SELECT advisory.lock('scopes', 'a')), 'ROLLBACK TO s',
    q(SELECT advisory.xact_lock_shared('scopes', 'a')));
scopes_are('a session, a transaction', 'ROLLBACK TO leaves the session its hold');
$session->run(q(SELECT advisory.lock_shared('scopes', 'a')),
    q(SELECT pg_advisory_unlock_shared(advisory.key('scopes', 'a'))));
scopes_are('a session, a transaction', 'each mode has its own scope');
$session->run('COMMIT', 'SELECT pg_advisory_unlock_all()');
scopes_are('NULL', 'nothing is left');

# A job leaves its lock to the transaction.
$session->run('BEGIN', q(CALL advisory.run('scopes', 'a', 'SELECT 1')));
scopes_are('a transaction', 'a job in a transaction');
$session->run('COMMIT');
$session->run(q(SELECT advisory.lock('scopes', 'a')), 'BEGIN',
    q(CALL advisory.run('scopes', 'a', 'SELECT 1')));
scopes_are('a session', 'a job in a transaction, whose session has had its lock before');
$session->run(q(SELECT pg_advisory_unlock(advisory.key('scopes', 'a'))));
scopes_are('a transaction', 'without the hold of the session');
$session->run('COMMIT');
scopes_are('NULL', 'the hold of the job ends with the transaction');

done_testing();
