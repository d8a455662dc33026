#!/usr/bin/env perl
# advisory.stats is exact when several sessions take, try, wait, time out and are cancelled, sixteen
# of them at once; and what advisory_ext.track keeps out of it.
use AdvisoryTest;

use constant { CLIENTS => 16, TRANSACTIONS => 150 };

my $database = create_database();
my $look = session();
my ($h, $t) = (session(application => 'h'), session(application => 't'));

# acquired, contended, failed, timeouts, skipped of a name; nothing for a name that advisory.stats
# does not have.
sub counts ($name, $namespace = 'stats') {
    return $look->rows(q(SELECT acquired, contended, failed, timeouts, skipped FROM advisory.stats
                         WHERE name = $1 AND namespace IS NOT DISTINCT FROM $2), $name,
                         $namespace)->[0];
}

# ---- One session ---------------------------------------------------------------------------------

$t->run(map { "SELECT advisory.$_" } q(lock('stats', 'session')), q(lock('stats', 'session')),
    q(try_lock('stats', 'session', '1s')));
is_deeply(counts('session'), [ 3, 0, 0, 0, 0 ], 'each time counts, while it is held');
$look->shows(q(SELECT last_acquired_at <= clock_timestamp() AND hold_total = '0' FROM advisory.stats
    WHERE name = 'session'), 1, 'a hold is timed when it ends');
$t->run(q(SELECT advisory.unlock('stats', 'session') FROM generate_series(1, 3)));
is_deeply(counts('session'), [ 3, 0, 0, 0, 0 ], 'and not once more when it is released');

$t->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'xact')), q(SELECT advisory.xact_lock('stats',
    'xact')), 'SAVEPOINT s', q(SELECT advisory.xact_lock('stats', 'xact')),
    'ROLLBACK TO s', q(SELECT advisory.try_xact_lock('stats', 'xact')));
is_deeply(counts('xact'), [ 4, 0, 0, 0, 0 ], 'in a transaction, a savepoint rolled back or not');
$t->run('RELEASE s', 'COMMIT');
is_deeply(counts('xact'), [ 4, 0, 0, 0, 0 ], 'and after it');
$t->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'rolled back')), 'ROLLBACK');
is_deeply(counts('rolled back'), [ 1, 0, 0, 0, 0 ], 'what is rolled back counts');

$t->run('BEGIN', q(SELECT advisory.lock('stats', 'mixed'), advisory.lock_shared('stats', 'mixed'),
    advisory.xact_lock('stats', 'mixed')), 'COMMIT', q(SELECT advisory.unlock_all('stats')));
is_deeply(counts('mixed'), [ 3, 0, 0, 0, 0 ], 'in both modes and scopes');
$t->run(q(SELECT advisory.lock_key(42, label => 'a label')), q(SELECT advisory.unlock_key(42)),
    q(CALL advisory.await_lock('stats', 'awaited')), q(SELECT advisory.unlock_all('stats')));
$look->shows(q(SELECT namespace, name, acquired FROM advisory.stats WHERE namespace IS NULL),
    'NULL|a label|1', 'a label has a row');
is_deeply(counts('awaited'), [ 1, 0, 0, 0, 0 ], 'await_lock');
$t->run(q(SELECT pg_advisory_lock(advisory.key('stats', 'session')),
    pg_advisory_unlock(advisory.key('stats', 'session'))));
is_deeply(counts('session'), [ 3, 0, 0, 0, 0 ], 'the built-ins do not count');
$t->run(q(SELECT advisory.lock('stats', 'discarded')), 'DISCARD ALL');
is_deeply(counts('discarded'), [ 1, 0, 0, 0, 0 ],
    'DISCARD ALL does not take back what was counted');
$t->run(q(SELECT advisory.lock('stats', 'discarded')), 'SELECT pg_advisory_unlock_all()',
    q(SELECT advisory.lock('stats', 'discarded'), advisory.unlock('stats', 'discarded')));
is_deeply(counts('discarded'), [ 3, 0, 0, 0, 0 ], 'nor count it twice');
$t->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'prepared')), q(PREPARE TRANSACTION 'stats'),
    q(COMMIT PREPARED 'stats'));
is_deeply(counts('prepared'), [ 1, 0, 0, 0, 0 ], 'PREPARE TRANSACTION');
{
    my $leaves = session();
    $leaves->run(q(SELECT advisory.lock('stats', 'left'), advisory.lock('stats', 'left')), 'BEGIN',
        q(SELECT advisory.xact_lock('stats', 'left in a transaction')));
}
is_deeply(counts('left'), [ 2, 0, 0, 0, 0 ], 'a session that ends');
is_deeply(counts('left in a transaction'), [ 1, 0, 0, 0, 0 ], 'in a transaction');
$look->shows(q(SELECT count(*) FROM advisory.stats WHERE name LIKE 'left%' AND hold_total > '0'
    AND hold_max = hold_total), 2, 'ends its holds');

# ---- Several at once -----------------------------------------------------------------------------

$t->run(q(SELECT advisory.lock_all('all', '{a,b,a,c,b}'::text[])),
    q(SELECT advisory.unlock_all('all')));
is_deeply(counts($_, 'all'), [ 1, 0, 0, 0, 0 ], "lock_all, $_ of a list with repeats")
    for qw(a b c);
{
    # The locks are taken in the order of their keys.
    my @sorted = $look->column(q(SELECT n FROM unnest('{k,l,m}'::text[]) AS n
        ORDER BY advisory.key('all', n)));
    my ($before, $taken, $behind) = @sorted;
    $h->value(q(SELECT advisory.lock('all', ?)), $taken);
    $t->shows(q(SELECT advisory.try_lock_all('all', '{k,l,m}'::text[])), 0,
        'try_lock_all, the one in the middle is taken');
    $t->query(q(SELECT advisory.xact_lock_all('all', '{k,l,m}'::text[], '0')));
    is_deeply(counts($before, 'all'), [ 2, 0, 0, 0, 0 ],
        'what comes before it is acquired, and given back');
    is_deeply(counts($taken, 'all'),  [ 1, 0, 2, 0, 0 ], 'it fails');
    is_deeply(counts($behind, 'all') // [ (0) x 5 ], [ (0) x 5 ],
        'what comes behind it is not looked at');
}
$h->run(q(SELECT advisory.lock('any', 'b')));
$t->shows(q(SELECT * FROM advisory.try_lock_any('any', '{a,b,c,a,d}'::text[], 2)), [ 'a', 'c' ],
    'try_lock_any');
is_deeply(counts('a', 'any'), [ 1, 0, 0, 0, 0 ], 'a, taken');
is_deeply(counts('b', 'any'), [ 1, 0, 1, 0, 0 ], 'b, held by another');
is_deeply(counts('c', 'any'), [ 1, 0, 0, 0, 0 ], 'c, taken');
is_deeply(counts('d', 'any') // [ (0) x 5 ], [ (0) x 5 ], 'd, not looked at');
$_->run('SELECT pg_advisory_unlock_all()') for $h, $t;

# ---- Not free ------------------------------------------------------------------------------------

$h->run(q(SELECT advisory.lock('stats', 'taken')));
$t->query($_) for q(SELECT advisory.try_lock('stats', 'taken')), q(SELECT advisory.lock('stats',
    'taken', '0')), q(SELECT advisory.try_xact_lock_shared('stats', 'taken'));
is_deeply(counts('taken'), [ 1, 0, 3, 0, 0 ], 'not free, not waited for: failed');
$t->fails(q(SELECT advisory.lock('stats', 'taken', '20ms')), '55P03', 'a timeout');
is_deeply(counts('taken'), [ 1, 1, 3, 1, 0 ], 'counts as contended, and as a timeout');
$t->shows(q(SELECT advisory.try_lock('stats', 'taken', '20ms')), 0, 'of try_lock');
is_deeply(counts('taken'), [ 1, 2, 3, 2, 0 ], 'counts the same');
$t->run(q(SET lock_timeout = '20ms'));
$t->fails(q(SELECT advisory.xact_lock('stats', 'taken')), '55P03', 'lock_timeout');
$t->run('SET lock_timeout = 0');
is_deeply(counts('taken'), [ 1, 3, 3, 3, 0 ], 'counts as a timeout');
$t->run(q(SET statement_timeout = '200ms'));
$t->fails(q(SELECT advisory.lock('stats', 'taken')), '57014', 'statement_timeout');
$t->run('SET statement_timeout = 0');
is_deeply(counts('taken'), [ 1, 4, 3, 3, 0 ], 'does not');
for my $wait (q(SELECT advisory.lock('stats', 'taken')),
    q(SELECT advisory.lock('stats', 'taken', '1h'))) {
    waits($look, $t, $wait);
    $look->value('SELECT pg_cancel_backend(?)', $t->pid);
    $t->ends('57014', 'a cancel');
}
is_deeply(counts('taken'), [ 1, 6, 3, 3, 0 ], 'nor does that');
waits($look, $t, q(SELECT advisory.lock('stats', 'taken', '1h')));
is_deeply(counts('taken'), [ 1, 7, 3, 3, 0 ], 'a wait counts when it begins');
$look->value('SELECT pg_terminate_backend(?)', $t->pid);
$t->finish;
leave($look, $t);
is_deeply(counts('taken'), [ 1, 7, 3, 3, 0 ], 'a waiter that ends is counted as contended');
$t = session(application => 't');

# ---- Times ---------------------------------------------------------------------------------------

{
    my $name = 'timed';
    my $now = sub { $look->value('SELECT clock_timestamp()') };
    # Two holds, of which the second is the longer; a wait for each.
    my ($least, $most) = ("'0'::interval", "'0'::interval");
    my @waits;
    for my $pause (0.02, 0.06) {
        $h->value("SELECT advisory.lock('stats', '$name')");
        my $before = $now->();
        waits($look, $t, "SELECT advisory.lock('stats', '$name', '1h')");
        my $waiting = $now->();
        # So that there is a time to measure.
        $look->run("SELECT pg_sleep($pause)");
        my $still = $now->();
        $h->value("SELECT advisory.unlock('stats', '$name')");
        $t->finish;
        push @waits, [ $waiting, $still, $before, $now->() ];
        $t->value("SELECT advisory.unlock('stats', '$name')");
    }
    is_deeply(counts($name), [ 4, 2, 0, 0, 0 ], 'two waits that were granted');
    my @times = map { @$_ } @waits;
    $look->shows(q(SELECT wait_total BETWEEN ($2 - $1) + ($6 - $5) AND ($4 - $3) + ($8 - $7),
        wait_max BETWEEN greatest($2 - $1, $6 - $5) AND greatest($4 - $3, $8 - $7)
                            FROM (VALUES ($1::timestamptz, $2::timestamptz, $3::timestamptz,
                            $4::timestamptz, $5::timestamptz, $6::timestamptz, $7::timestamptz,
                            $8::timestamptz)) AS v,
                                 advisory.stats WHERE name = 'timed'), '1|1',
                                 'wait_total and wait_max', @times);

    my $before = $now->();
    $h->run(q(SELECT advisory.lock('stats', 'held'))) for 1 .. 2;
    my $held = $now->();
    $look->run('SELECT pg_sleep(0.05)');
    $h->run(q(SELECT advisory.unlock('stats', 'held')));
    my $still = $now->();
    $look->shows(q(SELECT hold_total FROM advisory.stats WHERE name = 'held'), '00:00:00',
        'one of two holds released: the lock is still held');
    $h->run(q(SELECT advisory.unlock('stats', 'held')));
    my $after = $now->();
    $look->shows(q(SELECT hold_total BETWEEN $2::timestamptz - $1::timestamptz
        AND $4::timestamptz - $3::timestamptz, hold_max = hold_total
                            FROM advisory.stats WHERE name = 'held'), '1|1', 'hold_total and '
                            . 'hold_max, once for both', $held, $still, $before, $after);
    $h->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'held')), 'COMMIT');
    $look->shows(q(SELECT hold_total > hold_max AND hold_max >= '50ms' FROM advisory.stats
        WHERE name = 'held'), 1, 'a short one later adds to the total');
    $look->shows(q(SELECT last_acquired_at > $1 AND stats_since < $1 FROM advisory.stats
        WHERE name = 'held'), 1, 'and is the last', $after);
}

# ---- stats_reset ---------------------------------------------------------------------------------

my $role = "advisory_stats_$$";
$look->run("CREATE ROLE $role LOGIN");
{
    my $other_database = create_database(name => "advisory_stats_other_$$", aside => 1);
    my $other = session(database => $other_database);
    $other->value(q(SELECT advisory.try_xact_lock('stats', 'elsewhere')));
    my $unprivileged = session(role => $role);
    $unprivileged->fails('SELECT advisory.stats_reset()', '42501',
        'stats_reset() is not for everybody');
    my $names = $look->value('SELECT count(*) FROM advisory.stats');
    my $before = $look->value('SELECT clock_timestamp()');
    is_deeply(counts('taken'), [ 1, 7, 3, 3, 0 ], 'and has done nothing');
    $h->run('SELECT pg_advisory_unlock_all()', q(SELECT advisory.lock('stats', 'held over')));
    $names++;
    $look->run('SELECT advisory.stats_reset()');
    is_deeply($look->rows(q(SELECT count(*), bool_and(stats_since >= $1),
            sum(acquired + contended + failed + timeouts + skipped), max(wait_total), max(wait_max),
            max(hold_total), max(hold_max)
                            FROM advisory.stats), $before), [ [ $names, 1, 0, ('00:00:00') x 4 ] ],
                            'stats_reset() sets them to zero');
    $h->run(q(SELECT advisory.unlock('stats', 'held over')));
    is_deeply(counts('held over'), [ 0, 0, 0, 0, 0 ], 'what was held then stays uncounted');
    is_deeply(counts('timed'), [ 0, 0, 0, 0, 0 ], 'with what was acquired');
    $other->shows('SELECT acquired FROM advisory.stats', 1, 'but not those of another database');
    $look->run("GRANT EXECUTE ON FUNCTION advisory.stats_reset() TO $role");
    $h->run(q(SELECT advisory.try_xact_lock('stats', 'timed')));
    is_deeply(counts('timed'), [ 1, 0, 0, 0, 0 ], 'from then on it counts anew');
    $unprivileged->succeeds('SELECT advisory.stats_reset()', 'it can be granted');
    is_deeply(counts('timed'), [ 0, 0, 0, 0, 0 ], 'and works for whom it is granted to');
}

# ---- Sixteen sessions at once --------------------------------------------------------------------

{
    my $script = "$ENV{ADVISORY_EXT_TMP}/stats.$$.sql";
    open my $file, '>', $script or die "$script: $!\n";
    print {$file} <<'SQL';
\set id random(1, 4)
SELECT advisory.lock('bench', 'one');
SELECT advisory.unlock('bench', 'one');
BEGIN;
SELECT advisory.xact_lock('bench', :id);
SELECT advisory.xact_lock_shared('bench', 'shared');
END;
SELECT advisory.try_xact_lock('bench', 'try'), advisory.try_lock('bench', 'timeout', '1ms'),
    advisory.unlock_all('bench', 'timeout');
SQL
    close $file;
    my $start = $look->value('SELECT clock_timestamp()');
    is(system("$ENV{PG_BINDIR}/pgbench -n -c @{[CLIENTS]} -j 2 -t @{[TRANSACTIONS]} -f $script "
            . "$database >/dev/null 2>&1"), 0, CLIENTS . ' sessions at once');
    unlink $script;
    wait_until('they are gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'pgbench')) });
    my $total = CLIENTS * TRANSACTIONS;
    my $bench = q(FROM advisory.stats WHERE namespace = 'bench' AND name);
    is($look->value("SELECT acquired $bench = 'one'"), $total,
        'a lock that all of them wait for: every time is counted');
    cmp_ok($look->value("SELECT contended $bench = 'one'"), '<=', $total,
        'not waited for more often than that');
    $look->shows("SELECT failed, timeouts $bench = 'one'", '0|0',
        'and none of them failed or timed out');
    $look->shows("SELECT hold_total <= clock_timestamp() - ?
        AND hold_total > '0' AND hold_max < hold_total $bench = 'one'", 1,
        'held by one at a time, so not longer than it all lasted', $start);
    is($look->value("SELECT sum(acquired) $bench IN ('1', '2', '3', '4')"), $total,
        'some locks at random, in transactions');
    is($look->value("SELECT acquired $bench = 'shared'"), $total, 'a shared one');
    is($look->value("SELECT acquired + failed $bench = 'try'"), $total,
        'tries are acquired or failed');
    $look->shows("SELECT acquired + timeouts, contended >= timeouts, failed $bench =
            'timeout'", "$total|1|0", 'timed tries are acquired or timed out');
    $look->shows("SELECT count(*) FROM advisory.locks WHERE namespace = 'bench'", 0,
        'nothing is left');
}

# ---- What is remembered --------------------------------------------------------------------------

$h->run(q(SET advisory_ext.track = 'none'), q(SELECT advisory.lock('track', 'none')));
$look->shows('SELECT namespace, name, acquired_at IS NOT NULL FROM advisory.locks WHERE pid = ?',
    'NULL|NULL|1', 'track none: no name for others', $h->pid);
$h->shows('SELECT name FROM advisory.locks WHERE pid = pg_backend_pid()', 'none',
    'but for the session itself');
$h->run(q(SELECT advisory.unlock('track', 'none')), q(SET advisory_ext.track = 'names'),
    q(SELECT advisory.lock('track', 'names')));
$look->shows('SELECT name FROM advisory.locks WHERE pid = ?', 'names',
    'track names: a name', $h->pid);
$h->run(q(SELECT advisory.unlock('track', 'names')), 'RESET advisory_ext.track');
$look->shows(q(SELECT name, acquired, hold_total FROM advisory.stats WHERE namespace = 'track'),
    'names|0|00:00:00', 'without statistics');
session(role => $role)->succeeds(q(SELECT advisory.key('a')), 'an unprivileged session');
session(role => $role)->run(q(SELECT advisory.key('a')))->fails(q(SET advisory_ext.track = 'none'),
    '42501', 'cannot turn it off');

done_testing();
