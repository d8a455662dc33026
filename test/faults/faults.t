#!/usr/bin/env perl
# Fault injection: each public function is called repeatedly while its first, second, third …
# request for memory fails, until it makes no more requests. In one run only that request fails, in
# another run that one and all later ones. `make test-faults` runs it.
#
# After each failure: the error is 53200, or the call succeeded nevertheless; nothing is locked that
# was not locked before; the savepoint can be rolled back to; the session publishes no wait any
# more; the transaction, which holds locks and slots, commits although every request fails
# meanwhile, and without having made one; the session can take a lock again, and the server has not
# crashed.
use AdvisoryTest;

use constant { OUT_OF_MEMORY => '53200', MOST_REQUESTS => 2000, MANY_LOCKS => 2000 };
use constant HOLD => "SELECT advisory.lock('kept', 'lock'), advisory.xact_lock('kept', 'xact'),
        advisory.acquire('kept', 'slot', 2), advisory.xact_acquire('kept', 'xact', 2)";

create_database(faults => 1);
my $look = session();
$look->run(
    q(CREATE FUNCTION fail_at(n integer, forever boolean DEFAULT false)
        RETURNS integer AS 'advisory_ext_faults', 'advisory_fail_at' LANGUAGE c STRICT),
    q(CREATE FUNCTION publishes_wait() RETURNS boolean
        AS 'advisory_ext_faults', 'advisory_publishes_wait' LANGUAGE c),
    'CREATE TABLE guarded (id integer, token bigint)',
    q(CREATE TRIGGER fence BEFORE INSERT
        ON guarded FOR EACH ROW EXECUTE FUNCTION advisory.fenced('token', 'fence', 'id')));

# What is taken, for calls that find it so.
my $other = session();
$other->run(q(SELECT advisory.lock('taken', 'lock'), advisory.lock_key(7, label => 'seven'),
        advisory.acquire('taken', 'slot', 1), advisory.acquire_many('taken', 'set', 3, 2)),
    q(SELECT * FROM advisory.lease('taken', 'lease', '1 hour')));

# Each: what is done before it, and the call; names are 'n'. (alone: not in a transaction block;
# frees: some of the locks may be gone after an error, too.)
my @cases = (
    { call => q(SELECT advisory.key('n', 'a')) },
    (map {
        ({ call => "SELECT advisory.$_('n', 'a')" },
            { call => "SELECT advisory.${_}_key(42, label => 'label')" })
    } qw(lock lock_shared xact_lock xact_lock_shared try_lock try_lock_shared try_xact_lock
            try_xact_lock_shared)),
    (map { { call => "SELECT advisory.$_('n', ARRAY['a', 'b', 'c'])" } } qw(lock_all try_lock_all
        xact_lock_all try_xact_lock_all)),
    (map { { call => "SELECT advisory.$_('n', ARRAY['a', 'b', 'c'], 2)" } } qw(try_lock_any
        try_xact_lock_any)),
    (map { { call => "SELECT advisory.$_('n', ARRAY['a', 'b', 'c'], 3, 2)" } } qw(try_acquire_any
        try_xact_acquire_any)),
    (map { { call => "SELECT advisory.$_('n', 'a', 3)" } } qw(acquire try_acquire xact_acquire
        try_xact_acquire)),
    (map { { call => "SELECT advisory.$_('n', 'a', 4, 3)" } } qw(acquire_many try_acquire_many
        xact_acquire_many try_xact_acquire_many)),
    (map { { call => "SELECT advisory.$_('n', '{a,b}', '{4,3}')" } } qw(acquire_all try_acquire_all
        xact_acquire_all try_xact_acquire_all)),
    # Waits that fail
    (map { { call => "SELECT advisory.$_('taken', 'lock', '2 ms')" } } qw(lock try_lock xact_lock
        try_xact_lock_shared)),
    { call => q(SELECT advisory.lock_key(7, '2 ms', 'eight')) },
    (map { { call => "SELECT advisory.$_('taken', ARRAY['free', 'lock'], '2 ms')" } } qw(lock_all
        try_lock_all xact_lock_all)),
    { call => q(SELECT advisory.try_lock_any('taken', ARRAY['lock', 'free'])) },
    (map { { call => "SELECT advisory.$_('taken', 'slot', 1, '2 ms')" } } qw(acquire try_acquire
        xact_acquire try_xact_acquire)),
    (map { { call => "SELECT advisory.$_('taken', 'set', 3, 2, '2 ms')" } } qw(acquire_many
        try_acquire_many xact_acquire_many try_xact_acquire_many)),
    { call => q(SELECT advisory.lease('taken', 'lease', '1 min', '2 ms')) },
    # What frees
    (map {
        { before => "SELECT advisory.$_->[0]", call => "SELECT advisory.$_->[1]", frees => 1 }
    } [ q(lock('n', 'a')), q(unlock('n', 'a')) ],
        [ q(lock_shared('n', 'a')), q(unlock_shared('n', 'a')) ],
        [ 'lock_key(42)', 'unlock_key(42)' ], [ 'lock_shared_key(42)', 'unlock_shared_key(42)' ],
        [ q(lock_all('n', ARRAY['a', 'b', 'c'])), q(unlock_all('n', ARRAY['a', 'b'])) ],
        [ q(lock_all('n', ARRAY['a', 'b', 'c'])), q(unlock_all('n')) ],
        [ q(acquire('n', 'a', 3)), q(release('n', 'a')) ],
        [ q(acquire_many('n', 'a', 4, 3)), q(release_many('n', 'a', '{3, 1}')) ]),
    (map { { call => "SELECT advisory.$_('n', 'not held')" } } qw(unlock release)),
    # Questions
    (map { { call => "SELECT advisory.$_('taken', 'lock')" } } qw(holds hold_count is_locked
        holders)),
    (map { { call => "SELECT advisory.$_(7)" } } qw(holds_key is_locked_key holders_key)),
    { call => q(SELECT advisory.terminate_holder('taken', 'lock', pg_backend_pid())) },
    { call => q(SELECT advisory.terminate_holder_key(7, pg_backend_pid())) },
    { call => q(SELECT advisory.terminate_blocker(0, 'none')) },
    { call => q(SELECT advisory.cancel_waiter(0, 'none')) },
    # Without a snapshot
    (map { ({ call => "CALL advisory.$_('n', 'a')", alone => 1 },
        { call => "CALL advisory.$_('taken', 'lock', '2 ms')", alone => 1 },
        { call => "CALL advisory.${_}_key(42, label => 'label')", alone => 1 }) } qw(await_lock
            await_lock_shared)),
    { call => q(CALL advisory.await_acquire('n', 'a', 3)), alone => 1 },
    { call => q(CALL advisory.await_acquire('taken', 'slot', 1, '2 ms')), alone => 1 },
    { call => q(CALL advisory.await_lease('n', 'a', '1 min')), alone => 1 },
    { call => q(CALL advisory.await_lease('taken', 'lease', '1 min', '2 ms')), alone => 1 },
    # Jobs
    { call => q(CALL advisory.run('n', 'a', 'SELECT 1')), alone => 1 },
    { call => q(CALL advisory.run('n', 'a', 'SELECT 1', slots => 3)), alone => 1 },
    { call => q(CALL advisory.run('n', 'a', 'SELECT 1', once_per => '1 hour')), alone => 1 },
    { before => q(SELECT advisory.claim('n', 'a', '1 hour', '2026-01-01')), call => q(CALL
        advisory.run('n', 'a', 'SELECT 1', once_per => '1 h', once_window => '2026-01-01')),
        alone => 1 },
    { call => q(CALL advisory.run('taken', 'lock', 'SELECT 1', if_busy => 'error')), alone => 1 },
    # Beyond a session
    { before => q(SELECT advisory.xact_lock('n', 'a')),
        call => q(SELECT advisory.token('n', 'a')) },
    { before => q(SELECT advisory.xact_acquire('n', 'a', 3)),
        call => q(SELECT advisory.token('n', 'a', 1)) },
    { before => q(SELECT advisory.xact_lock_key(42)), call => q(SELECT advisory.token_key(42)) },
    { call => q(SELECT advisory.tokens_above(1)) },
    { call => q(SELECT advisory.check_token('n', 'a', 1)) },
    { call => q(INSERT INTO guarded VALUES (1, 1)) },
    (map { { call => "SELECT * FROM advisory.$_('n', 'a', '1 min')" } } qw(lease try_lease)),
    (map { { before => q(SELECT * FROM advisory.lease('n', 'a', '1 min')),
        call => "SELECT advisory.$_('n', 'a', (SELECT token FROM advisory._leases
            WHERE key = advisory.key('n', 'a')))" } } qw(check_lease renew_lease end_lease)),
    { before => q(SELECT * FROM advisory.lease('n', 'a', '1 min')),
        call => q(SELECT advisory.break_lease('n', 'a')) },
    { call => q(CALL advisory.await_lease_slot('n', 'a', 3, '1 min')), alone => 1 },
    (map { { call => "SELECT * FROM advisory.$_('n', 'a', 3, '1 min')" } } qw(lease_slot
        try_lease_slot)),
    { before => q(SELECT * FROM advisory.lease_slot('n', 'a', 3, '1 min')),
        call => q(SELECT advisory.renew_lease('n', 'a', (SELECT token FROM advisory._leases
            WHERE key = advisory.key('n', 'a')))) },
    (map { { call => "SELECT advisory.$_('n', 'a')" } } qw(is_leased leased_slots)),
    { call => q(SELECT advisory.claim('n', 'a', '1 hour')) },
    { call => q(SELECT advisory.claim('n', 'a', '1 day', time_zone => 'Asia/Tokyo')) },
    { call => q(SELECT advisory.claim_apart('n', 'a', '1 hour')) },
    { before => q(SELECT advisory.claim('n', 'a', '1 hour', '2026-01-01')),
        call => q(SELECT advisory.unclaim('n', 'a', '2026-01-01')) },
    # Views
    (map {
        { call => "SELECT * FROM advisory.$_" }
    } qw(locks activity waits wait_tree() semaphores leases claims leaks stats directory
        settings pressure pressure_by_backend pressure_by_type can_fit(1)
        max_locks_for(1) edition() version())),
    { call => q(SELECT * FROM advisory.known_keys WHERE key = 1) },
    { call => q(SELECT advisory.stats_reset()) },
);

my $text = join "\n", map { $_->{call} } @cases;
is_deeply([ grep { $text !~ /advisory\.$_\(/ } map { $_->[0] } @{ $look->rows(
    q(SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace
        AND proname NOT LIKE '\_%' AND proname <> 'fenced' ORDER BY 1)) } ],
    [], 'every public function has its case');

my $started = $look->value('SELECT pg_postmaster_start_time()');
my $log = logged(sub { check($_) for @cases });
# A session's tables grow with the number of its names, locks and semaphores. Each request for
# memory on the way fails once.
my $grower = session()->run('BEGIN');
for my $way ([ "lock('grown', i)", "PERFORM advisory.unlock('grown', i)" ],
    [ "acquire('grown slots', i, 1)", "PERFORM advisory.release('grown slots', i)" ],
    [ "xact_lock('grown in transaction', i)", q(RAISE 'undo') ]) {
    my ($take, $undo) = @$way;
    $grower->run(<<"SQL");
DO \$\$
DECLARE
    n integer;
BEGIN
    FOR i IN 1 .. @{[MANY_LOCKS]} LOOP
        n := 0;
        LOOP
            n := n + 1;
            PERFORM fail_at(n);
            BEGIN
                PERFORM advisory.$take;
                EXIT WHEN fail_at(0) < n;
                $undo;
            EXCEPTION WHEN out_of_memory OR raise_exception THEN
                PERFORM fail_at(0);
            END;
        END LOOP;
    END LOOP;
END \$\$
SQL
}
# A subtransaction commits without a request, whatever the transaction holds.
$grower->run('SAVEPOINT s', map { "SELECT advisory.$_('both', 'a')" } 'lock', 'xact_lock');
$grower->succeeds(<<'SQL', 'no subtransaction that commits makes a request');
DO $$
BEGIN
    PERFORM fail_at(1, true);
    BEGIN
        NULL;
    EXCEPTION WHEN division_by_zero THEN
    END;
    ASSERT fail_at(0) = 0;
END $$
SQL
$grower->run('ROLLBACK TO s', q(SELECT advisory.unlock_all('both')));
is($grower->value("SELECT count(*) FROM generate_series(1, @{[MANY_LOCKS]}) AS i
        WHERE advisory.hold_count('$_', i) = 1"), MANY_LOCKS, "$_: each lock is held once")
    for 'grown', 'grown in transaction';
$grower->run('COMMIT');
is($grower->value("SELECT advisory.unlock_all('$_')"), MANY_LOCKS, "$_: all can be released")
    for 'grown', 'grown slots';
leave($look, $grower);
is($look->value('SELECT pg_postmaster_start_time()'), $started, 'the server is the same');
my $TROUBLE = join '|', 'PANIC:', 'FATAL:', 'was terminated', 'reference leak', 'not closed',
    'non-empty SPI stack', 'while in ABORT';
is_deeply([ $log =~ /^.*(?:$TROUBLE).*$/mg ], [],
    'and its log says nothing of crashes or leaks');
$other->disconnect;
wait_until('nothing is locked',
    sub { !$look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')) });
done_testing();

# One case, in a session that uses the extension for the first time, and in the middle of a
# transaction.
sub check ($case) {
    for my $where ($case->{alone} ? 'alone' : qw(alone transaction)) {
        my $usual = attempt($case, $where, 0, 0);
        for my $how ('once', 'from then on') {
            my (@problems, $n);
            # Far down, not each.
            for ($n = 1; $n <= MOST_REQUESTS; $n += 1 + int($n / 50)) {
                my $result = attempt($case, $where, $n, $how ne 'once');
                push @problems, map { "request $n: $_" } compare($case, $result, $usual);
                last if $result->{requests} < $n;
            }
            push @problems, 'no end' if $n > MOST_REQUESTS;
            is_deeply(\@problems, [],
                "$case->{call}; $where; $usual->{requests} requests, which fail $how");
        }
    }
    return;
}

# Makes the call while the n-th request fails. Returns the outcome.
sub attempt ($case, $where, $n, $forever) {
    my $session = session();
    my $block = $where eq 'transaction';
    $session->run($block ? ('BEGIN', HOLD) : (), $case->{before} // ());
    $session->run('SAVEPOINT before') if $block;
    my %result = (before => locks($session));
    $session->value('SELECT fail_at(?, ?)', $n, $forever ? 1 : 0);
    $result{state} = $session->query($case->{call})->{state} // '';
    $session->run('ROLLBACK TO before') if $block && $result{state};
    $result{requests} = $session->value('SELECT fail_at(0)');
    $result{after} = locks($session);
    $result{publishes} = $session->value('SELECT publishes_wait()');
    if ($block) {
        $session->value('SELECT fail_at(1, true)');
        $result{commit_state} = $session->query('COMMIT')->{state} // '';
        $result{commit_requests} = $session->value('SELECT fail_at(0)');
    }
    $result{next} = $session->query(
        q(SELECT advisory.lock('next', 'one'), advisory.acquire('next', 'one', 1)))->{state} // '';
    $session->value('SELECT fail_at(1, true)');
    leave($look, $session);
    $look->run(q(DELETE FROM advisory._leases WHERE namespace <> 'taken'),
        'DELETE FROM advisory._claims', 'DELETE FROM guarded');
    return \%result;
}

sub locks ($session) {
    return $look->value(
        q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?), $session->pid);
}

# Returns the errors in an outcome.
sub compare ($case, $result, $usual) {
    my @problems;
    my $failed = $result->{state} ne $usual->{state};
    my $most = $failed ? $result->{before} : $usual->{after};
    my $least = $case->{frees} ? $usual->{after} : $most;
    push @problems, "error $result->{state}" if $failed && $result->{state} ne OUT_OF_MEMORY;
    push @problems, "$result->{after} locks, not $least to $most"
        if $result->{after} < $least || $result->{after} > $most;
    push @problems, 'it still publishes a wait' if $result->{publishes};
    push @problems, "then a lock fails with $result->{next}" if $result->{next};
    if (exists $result->{commit_state}) {
        push @problems, "COMMIT fails with $result->{commit_state}" if $result->{commit_state};
        push @problems, "COMMIT asks for memory" if $result->{commit_requests};
    }
    return @problems;
}
