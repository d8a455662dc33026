#!/usr/bin/env perl
# A cursor that is older than a savepoint keeps, after ROLLBACK TO, the locks that it took since,
# whether it had to wait for them or not, as with the built-in functions. What stays is not
# forgotten. The test needs a second session, for which the first one waits.
use AdvisoryTest;

create_database();
my ($look, $other) = (session(), session());

# How each kind is taken; its keys by name; and how the other session takes it.
my %kinds = (
    'pg_advisory_xact_lock()' => [ q(pg_advisory_xact_lock(advisory.key('cursor', name))), 'lock' ],
    'xact_lock()'             => [ q(advisory.xact_lock('cursor', name)), 'lock' ],
    'xact_lock_shared()'      => [ q(advisory.xact_lock_shared('cursor', name)), 'lock' ],
    'xact_lock(timeout)'      => [ q(advisory.xact_lock('cursor', name, '1 min')), 'lock' ],
    'xact_lock_all()'         => [ q(advisory.xact_lock_all('cursor', ARRAY[name])), 'lock' ],
    'xact_acquire(2)'         =>
        [ q(advisory.xact_acquire('cursor', name, 2, '1 min')), 'slot', 2 ],
    'xact_acquire(1)'         =>
        [ q(advisory.xact_acquire('cursor', name, 1, '1 min')), 'slot', 1 ],
);

sub held_names ($session) {
    return $look->value(<<'SQL', $session->pid);
        SELECT string_agg(
            DISTINCT coalesce(name, names.n) || CASE WHEN held IS NULL THEN '?' ELSE '' END,
            ' ' ORDER BY coalesce(name, names.n) || CASE WHEN held IS NULL THEN '?' ELSE '' END)
        FROM advisory.locks LEFT JOIN (VALUES ('before'), ('free'), ('awaited')) names (n)
            ON locks.key = advisory.key('cursor', n)
        WHERE pid = ? AND granted AND kind <> 'queue'
SQL
}

for my $what (sort keys %kinds) {
    my ($call, $kind, $slots) = @{ $kinds{$what} };
    my $session = session();
    $other->run($kind eq 'lock' ? q(SELECT advisory.lock('cursor', 'awaited'))
        : "SELECT advisory.acquire('cursor', 'awaited', $slots) FROM generate_series(1, $slots)");
    $session->run('BEGIN',
        "DECLARE c CURSOR FOR
            SELECT $call FROM (VALUES ('before'), ('free'), ('awaited')) v (name)",
        'FETCH c', 'SAVEPOINT s', 'FETCH c');
    $session->start('FETCH c');
    $look->wait_until('it waits',
        q(SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = ?),
            $session->pid);
    $other->run("SELECT pg_advisory_unlock_all()");
    my $result = $session->finish;
    die $result->{message} if $result->{state};
    $session->run('ROLLBACK TO s');
    my $unknown = $what =~ /^pg_/ ? '?' : '';
    is(held_names($session), join(' ', map { "$_$unknown" } qw(awaited before free)),
        "$what: all three locks stay, and since when is known");
    is($session->value(q(SELECT string_agg(advisory.hold_count('cursor', name)::text, ' ')
        FROM (VALUES ('before'), ('free'), ('awaited')) v (name))), $unknown ? '0 0 0' : '1 1 1',
        "$what: hold_count()") if $kind eq 'lock';
    $session->run('COMMIT');
    is(held_names($session), undef, "$what: COMMIT ends all");
    $other->shows("SELECT count(*) FROM advisory.semaphores WHERE in_use > 0", 0,
        "$what: no slot is in use") if $kind eq 'slot';
}

# ---- Cursors of several levels -----

my $nested = session();

sub slots_in_use {
    return $look->value(q(SELECT string_agg(name, ' ' ORDER BY name) FROM advisory.semaphores
        WHERE namespace = 'levels' AND in_use > 0));
}

sub cursor { return "DECLARE $_[0] CURSOR FOR "
        . "SELECT advisory.xact_acquire('levels', '$_[0]' || i, 1) FROM generate_series(1, 3) i" }
sub take { return "SELECT advisory.xact_acquire('levels', '$_[0]', 1)" }

$nested->run('BEGIN', cursor('wide'), 'SAVEPOINT a', take('a'), 'SAVEPOINT b', cursor('deep'),
    take('b'), 'SAVEPOINT c', 'FETCH wide', take('c'), 'FETCH deep', 'FETCH wide',
    'SAVEPOINT d', take('d'), 'ROLLBACK TO c');
is(slots_in_use(), 'a b deep1 wide1 wide2', 'both cursors keep theirs');
$nested->run(take('c'), 'FETCH wide', 'ROLLBACK TO c');
is(slots_in_use(), 'a b deep1 wide1 wide2 wide3', 'again');
$nested->run('CLOSE deep', 'ROLLBACK TO b');
is(slots_in_use(), 'a wide1 wide2 wide3', 'a cursor that ends leaves its locks to its level');
$nested->run('ROLLBACK TO a', 'COMMIT');
is(slots_in_use(), undef, 'COMMIT ends all of them');

# ---- Beside a session-level hold -----

# Nobody notices that ROLLBACK TO releases the first transaction-level hold, because the lock stays.
# The second one begins anew nevertheless.
my $session = session();
$session->run('BEGIN', q(SELECT advisory.lock('beside', 'a')), 'SAVEPOINT s',
    q(SELECT advisory.xact_lock('beside', 'a')), 'ROLLBACK TO s', 'SAVEPOINT t',
    q(SELECT advisory.xact_lock('beside', 'a')), q(SELECT advisory.unlock('beside', 'a')),
    'ROLLBACK TO t');
my $between = $session->value('SELECT clock_timestamp()');
$session->run(q(SELECT advisory.xact_lock('beside', 'a')));
$look->shows(q(SELECT acquired_at > ?::timestamptz FROM advisory.locks WHERE pid = ?), 1,
    'a lock that ROLLBACK TO has released is not remembered beside another hold', $between,
    $session->pid);

done_testing();
