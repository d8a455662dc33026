#!/usr/bin/env perl
# advisory.stats to the last digit where several sessions take, try, wait, time out and are cancelled, sixteen of them
# at once; what becomes of it and of the names when the directory is full; and what the log says of long waits and
# holds. Sessions that wait for each other, and servers with settings of their own.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

use constant { CLIENTS => 16, TRANSACTIONS => 150 };

my $database = create_database();
my $look = session();
my ($h, $t) = (session(application => 'h'), session(application => 't'));

# acquired, contended, failed, timeouts, skipped of a name; nothing for one that has no row.
sub counts {
    my ($name, $namespace) = @_;
    return $look->rows(q(SELECT acquired, contended, failed, timeouts, skipped FROM advisory.stats
                         WHERE name = $1 AND namespace IS NOT DISTINCT FROM $2), $name, $namespace // 'stats')->[0];
}

# ---- One session --------------------------------------------------------------------------------------------

$t->run(map { "SELECT advisory.$_" } q(lock('stats', 'session')), q(lock('stats', 'session')), q(try_lock('stats', 'session', '1s')));
is_deeply(counts('session'), [ 3, 0, 0, 0, 0 ], 'each time counts, while it is held');
is($look->value(q(SELECT last_acquired_at <= clock_timestamp() AND hold_total = '0' FROM advisory.stats WHERE name = 'session')), 1, 'a hold is timed when it ends');
$t->run(q(SELECT advisory.unlock('stats', 'session') FROM generate_series(1, 3)));
is_deeply(counts('session'), [ 3, 0, 0, 0, 0 ], 'and not once more when it is released');

$t->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'xact')), q(SELECT advisory.xact_lock('stats', 'xact')), 'SAVEPOINT s', q(SELECT advisory.xact_lock('stats', 'xact')),
    'ROLLBACK TO s', q(SELECT advisory.try_xact_lock('stats', 'xact')));
is_deeply(counts('xact'), [ 4, 0, 0, 0, 0 ], 'in a transaction, a savepoint rolled back or not');
$t->run('RELEASE s', 'COMMIT');
is_deeply(counts('xact'), [ 4, 0, 0, 0, 0 ], 'and after it');
$t->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'rolled back')), 'ROLLBACK');
is_deeply(counts('rolled back'), [ 1, 0, 0, 0, 0 ], 'what is rolled back counts');

$t->run('BEGIN', q(SELECT advisory.lock('stats', 'mixed'), advisory.lock_shared('stats', 'mixed'), advisory.xact_lock('stats', 'mixed')), 'COMMIT', q(SELECT advisory.unlock_all('stats')));
is_deeply(counts('mixed'), [ 3, 0, 0, 0, 0 ], 'in both modes and scopes');
$t->run(q(SELECT advisory.lock_key(42, label => 'a label')), q(SELECT advisory.unlock_key(42)), q(CALL advisory.await_lock('stats', 'awaited')), q(SELECT advisory.unlock_all('stats')));
is_deeply($look->rows(q(SELECT namespace, name, acquired FROM advisory.stats WHERE namespace IS NULL)), [ [ undef, 'a label', 1 ] ], 'a label has a row');
is_deeply(counts('awaited'), [ 1, 0, 0, 0, 0 ], 'await_lock');
$t->run(q(SELECT pg_advisory_lock(advisory.key('stats', 'session')), pg_advisory_unlock(advisory.key('stats', 'session'))));
is_deeply(counts('session'), [ 3, 0, 0, 0, 0 ], 'the built-ins do not count');
$t->run(q(SELECT advisory.lock('stats', 'discarded')), 'DISCARD ALL');
is_deeply(counts('discarded'), [ 1, 0, 0, 0, 0 ], 'DISCARD ALL does not take back what was counted');
$t->run(q(SELECT advisory.lock('stats', 'discarded')), 'SELECT pg_advisory_unlock_all()', q(SELECT advisory.lock('stats', 'discarded'), advisory.unlock('stats', 'discarded')));
is_deeply(counts('discarded'), [ 3, 0, 0, 0, 0 ], 'nor count it twice');
$t->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'prepared')), q(PREPARE TRANSACTION 'stats'), q(COMMIT PREPARED 'stats'));
is_deeply(counts('prepared'), [ 1, 0, 0, 0, 0 ], 'PREPARE TRANSACTION');
{
    my $leaves = session();
    $leaves->run(q(SELECT advisory.lock('stats', 'left'), advisory.lock('stats', 'left')), 'BEGIN', q(SELECT advisory.xact_lock('stats', 'left in a transaction')));
    leave($look, $leaves);
}
is_deeply(counts('left'), [ 2, 0, 0, 0, 0 ], 'a session that ends');
is_deeply(counts('left in a transaction'), [ 1, 0, 0, 0, 0 ], 'in a transaction');
is($look->value(q(SELECT count(*) FROM advisory.stats WHERE name LIKE 'left%' AND hold_total > '0' AND hold_max = hold_total)), 2, 'ends its holds');

# ---- Several at once ----------------------------------------------------------------------------------------

$t->run(q(SELECT advisory.lock_all('all', '{a,b,a,c,b}'::text[])), q(SELECT advisory.unlock_all('all')));
is_deeply(counts($_, 'all'), [ 1, 0, 0, 0, 0 ], "lock_all, $_ of a list with repeats") for qw(a b c);
{
    # The locks are taken in the order of their keys.
    my @sorted = map { $_->[0] } @{ $look->rows(q(SELECT n FROM unnest('{k,l,m}'::text[]) AS n ORDER BY advisory.key('all', n))) };
    my ($before, $taken, $behind) = @sorted;
    $h->value(q(SELECT advisory.lock('all', ?)), $taken);
    is($t->value(q(SELECT advisory.try_lock_all('all', '{k,l,m}'::text[]))), 0, 'try_lock_all, the one in the middle is taken');
    $t->query(q(SELECT advisory.xact_lock_all('all', '{k,l,m}'::text[], '0')));
    is_deeply(counts($before, 'all'), [ 2, 0, 0, 0, 0 ], 'what comes before it is acquired, and given back');
    is_deeply(counts($taken, 'all'),  [ 1, 0, 2, 0, 0 ], 'it fails');
    is_deeply(counts($behind, 'all') // [ (0) x 5 ], [ (0) x 5 ], 'what comes behind it is not looked at');
}
$h->run(q(SELECT advisory.lock('any', 'b')));
is_deeply($t->rows(q(SELECT * FROM advisory.try_lock_any('any', '{a,b,c,a,d}'::text[], 2))), [ ['a'], ['c'] ], 'try_lock_any');
is_deeply(counts('a', 'any'), [ 1, 0, 0, 0, 0 ], 'a, taken');
is_deeply(counts('b', 'any'), [ 1, 0, 1, 0, 0 ], 'b, held by another');
is_deeply(counts('c', 'any'), [ 1, 0, 0, 0, 0 ], 'c, taken');
is_deeply(counts('d', 'any') // [ (0) x 5 ], [ (0) x 5 ], 'd, not looked at');
$_->run('SELECT pg_advisory_unlock_all()') for $h, $t;

# ---- Not free -----------------------------------------------------------------------------------------------

$h->run(q(SELECT advisory.lock('stats', 'taken')));
$t->query($_) for q(SELECT advisory.try_lock('stats', 'taken')), q(SELECT advisory.lock('stats', 'taken', '0')), q(SELECT advisory.try_xact_lock_shared('stats', 'taken'));
is_deeply(counts('taken'), [ 1, 0, 3, 0, 0 ], 'not free, not waited for: failed');
is($t->query(q(SELECT advisory.lock('stats', 'taken', '20ms')))->{state}, '55P03', 'a timeout');
is_deeply(counts('taken'), [ 1, 1, 3, 1, 0 ], 'counts as contended, and as a timeout');
is($t->value(q(SELECT advisory.try_lock('stats', 'taken', '20ms'))), 0, 'of try_lock');
is_deeply(counts('taken'), [ 1, 2, 3, 2, 0 ], 'counts the same');
$t->run(q(SET lock_timeout = '20ms'));
is($t->query(q(SELECT advisory.xact_lock('stats', 'taken')))->{state}, '55P03', 'lock_timeout');
$t->run('SET lock_timeout = 0');
is_deeply(counts('taken'), [ 1, 3, 3, 3, 0 ], 'counts as a timeout');
$t->run(q(SET statement_timeout = '50ms'));
is($t->query(q(SELECT advisory.lock('stats', 'taken')))->{state}, '57014', 'statement_timeout');
$t->run('SET statement_timeout = 0');
is_deeply(counts('taken'), [ 1, 4, 3, 3, 0 ], 'does not');
for my $wait (q(SELECT advisory.lock('stats', 'taken')), q(SELECT advisory.lock('stats', 'taken', '1h'))) {
    $t->start($wait);
    waits($look, $t);
    $look->value('SELECT pg_cancel_backend(?)', $t->pid);
    is($t->finish->{state}, '57014', 'a cancel');
}
is_deeply(counts('taken'), [ 1, 6, 3, 3, 0 ], 'nor does that');
$t->start(q(SELECT advisory.lock('stats', 'taken', '1h')));
waits($look, $t);
is_deeply(counts('taken'), [ 1, 7, 3, 3, 0 ], 'a wait counts when it begins');
$look->value('SELECT pg_terminate_backend(?)', $t->pid);
$t->finish;
leave($look, $t);
is_deeply(counts('taken'), [ 1, 7, 3, 3, 0 ], 'a waiter that ends is counted as contended');
$t = session(application => 't');

# ---- Times --------------------------------------------------------------------------------------------------

{
    my $name = 'timed';
    my $now = sub { $look->value('SELECT clock_timestamp()') };
    # Two holds, of which the second is the longer; a wait for each.
    my ($least, $most) = ("'0'::interval", "'0'::interval");
    my @waits;
    for my $pause (0.02, 0.06) {
        $h->value("SELECT advisory.lock('stats', '$name')");
        my $before = $now->();
        $t->start("SELECT advisory.lock('stats', '$name', '1h')");
        waits($look, $t);
        my $waiting = $now->();
        # Not to wait for anything, but to have something to measure.
        $look->run("SELECT pg_sleep($pause)");
        my $still = $now->();
        $h->value("SELECT advisory.unlock('stats', '$name')");
        $t->finish;
        push @waits, [ $waiting, $still, $before, $now->() ];
        $t->value("SELECT advisory.unlock('stats', '$name')");
    }
    is_deeply(counts($name), [ 4, 2, 0, 0, 0 ], 'two waits that were granted');
    my @times = map { @$_ } @waits;
    is_deeply($look->rows(q(SELECT wait_total BETWEEN ($2 - $1) + ($6 - $5) AND ($4 - $3) + ($8 - $7), wait_max BETWEEN ($6 - $5) AND ($8 - $7)
                            FROM (VALUES ($1::timestamptz, $2::timestamptz, $3::timestamptz, $4::timestamptz, $5::timestamptz, $6::timestamptz, $7::timestamptz, $8::timestamptz)) AS v,
                                 advisory.stats WHERE name = 'timed'), @times), [ [ 1, 1 ] ], 'wait_total and wait_max');

    my $before = $now->();
    $h->run(q(SELECT advisory.lock('stats', 'held'))) for 1 .. 2;
    my $held = $now->();
    $look->run('SELECT pg_sleep(0.05)');
    $h->run(q(SELECT advisory.unlock('stats', 'held')));
    my $still = $now->();
    is($look->value(q(SELECT hold_total FROM advisory.stats WHERE name = 'held')), '00:00:00', 'one of two holds released: the lock is still held');
    $h->run(q(SELECT advisory.unlock('stats', 'held')));
    my $after = $now->();
    is_deeply($look->rows(q(SELECT hold_total BETWEEN $2::timestamptz - $1::timestamptz AND $4::timestamptz - $3::timestamptz, hold_max = hold_total
                            FROM advisory.stats WHERE name = 'held'), $held, $still, $before, $after), [ [ 1, 1 ] ], 'hold_total and hold_max, once for both');
    $h->run('BEGIN', q(SELECT advisory.xact_lock('stats', 'held')), 'COMMIT');
    is($look->value(q(SELECT hold_total > hold_max AND hold_max >= '50ms' FROM advisory.stats WHERE name = 'held')), 1, 'a short one later adds to the total');
    is($look->value(q(SELECT last_acquired_at > $1 AND stats_since < $1 FROM advisory.stats WHERE name = 'held'), $after), 1, 'and is the last');
}

# ---- stats_reset ----------------------------------------------------------------------------------------------

my $role = "advisory_stats_$$";
$look->run("CREATE ROLE $role LOGIN");
{
    my $other_database = create_database(name => "advisory_stats_other_$$", aside => 1);
    my $other = session(database => $other_database);
    $other->value(q(SELECT advisory.try_xact_lock('stats', 'elsewhere')));
    my $unprivileged = session(role => $role);
    is($unprivileged->query('SELECT advisory.stats_reset()')->{state}, '42501', 'stats_reset() is not for everybody');
    my $names = $look->value('SELECT count(*) FROM advisory.stats');
    my $before = $look->value('SELECT clock_timestamp()');
    is_deeply(counts('taken'), [ 1, 7, 3, 3, 0 ], 'and has done nothing');
    $h->run('SELECT pg_advisory_unlock_all()', q(SELECT advisory.lock('stats', 'held over')));
    $names++;
    $look->run('SELECT advisory.stats_reset()');
    is_deeply($look->rows(q(SELECT count(*), bool_and(stats_since >= $1), sum(acquired + contended + failed + timeouts + skipped), max(wait_total), max(wait_max), max(hold_total), max(hold_max)
                            FROM advisory.stats), $before), [ [ $names, 1, 0, ('00:00:00') x 4 ] ], 'stats_reset() sets them to zero');
    $h->run(q(SELECT advisory.unlock('stats', 'held over')));
    is_deeply(counts('held over'), [ 0, 0, 0, 0, 0 ], 'what was held then stays uncounted');
    is_deeply(counts('timed'), [ 0, 0, 0, 0, 0 ], 'with what was acquired');
    is($other->value('SELECT acquired FROM advisory.stats'), 1, 'but not those of another database');
    $look->run("GRANT EXECUTE ON FUNCTION advisory.stats_reset() TO $role");
    $h->run(q(SELECT advisory.try_xact_lock('stats', 'timed')));
    is_deeply(counts('timed'), [ 1, 0, 0, 0, 0 ], 'from then on it counts anew');
    is($unprivileged->query('SELECT advisory.stats_reset()')->{state}, undef, 'it can be granted');
    is_deeply(counts('timed'), [ 0, 0, 0, 0, 0 ], 'and works for whom it is granted to');
    leave($look, $unprivileged, $other);
}

# ---- Sixteen sessions at once -----------------------------------------------------------------------------------

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
SELECT advisory.try_xact_lock('bench', 'try'), advisory.try_lock('bench', 'timeout', '1ms'), advisory.unlock_all('bench', 'timeout');
SQL
    close $file;
    my $start = $look->value('SELECT clock_timestamp()');
    is(system("$ENV{PG_BINDIR}/pgbench -n -c @{[CLIENTS]} -j 2 -t @{[TRANSACTIONS]} -f $script $database >/dev/null 2>&1"), 0, CLIENTS . ' sessions at once');
    unlink $script;
    wait_until('they are gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench')) });
    my $total = CLIENTS * TRANSACTIONS;
    my $bench = q(FROM advisory.stats WHERE namespace = 'bench' AND name);
    is($look->value("SELECT acquired $bench = 'one'"), $total, 'a lock that all of them wait for: every time is counted');
    cmp_ok($look->value("SELECT contended $bench = 'one'"), '<=', $total, 'not waited for more often than that');
    is_deeply($look->rows("SELECT failed, timeouts $bench = 'one'"), [ [ 0, 0 ] ], 'and never in vain');
    is($look->value("SELECT hold_total <= clock_timestamp() - ? AND hold_total > '0' AND hold_max < hold_total $bench = 'one'", $start), 1,
        'held by one at a time, so not longer than it all lasted');
    is($look->value("SELECT sum(acquired) $bench IN ('1', '2', '3', '4')"), $total, 'some locks at random, in transactions');
    is($look->value("SELECT acquired $bench = 'shared'"), $total, 'a shared one');
    is($look->value("SELECT acquired + failed $bench = 'try'"), $total, 'tries are acquired or failed');
    is_deeply($look->rows("SELECT acquired + timeouts, contended >= timeouts, failed $bench = 'timeout'"), [ [ $total, 1, 0 ] ], 'timed tries are acquired or timed out');
    is($look->value("SELECT count(*) FROM advisory.locks WHERE namespace = 'bench'"), 0, 'nothing is left');
}

# ---- What is remembered -------------------------------------------------------------------------------------------

$h->run(q(SET advisory_ext.track = 'none'), q(SELECT advisory.lock('track', 'none')));
is_deeply($look->rows('SELECT namespace, name, acquired_at IS NOT NULL FROM advisory.locks WHERE pid = ?', $h->pid), [ [ undef, undef, 1 ] ], 'track none: no name for others');
is($h->value('SELECT name FROM advisory.locks WHERE pid = pg_backend_pid()'), 'none', 'but for the session itself');
$h->run(q(SELECT advisory.unlock('track', 'none')), q(SET advisory_ext.track = 'names'), q(SELECT advisory.lock('track', 'names')));
is($look->value('SELECT name FROM advisory.locks WHERE pid = ?', $h->pid), 'names', 'track names: a name');
$h->run(q(SELECT advisory.unlock('track', 'names')), 'RESET advisory_ext.track');
is_deeply($look->rows(q(SELECT name, acquired, hold_total FROM advisory.stats WHERE namespace = 'track')), [ [ 'names', 0, '00:00:00' ] ], 'without statistics');
is(session(role => $role)->query(q(SELECT advisory.key('a')))->{state}, undef, 'an unprivileged session');
is(session(role => $role)->run(q(SELECT advisory.key('a')))->query(q(SET advisory_ext.track = 'none'))->{state}, '42501', 'cannot turn it off');

# ---- The log --------------------------------------------------------------------------------------------------------

{
    # A session's own lines of the server's log.
    my $log_of = sub {
        my ($session, @statements) = @_;
        my $pid = $session->pid;
        my $log = logged(sub { $session->query($_) for @statements });
        return join '', map { "$_\n" } grep { /\[$pid\].*\bsession (?:waited|held)\b/ } split /\n/, $log;
    };
    $t->run('SET advisory_ext.log_wait = 0', 'SET client_min_messages = log');
    $h->run(q(SELECT advisory.lock('log', 'a')));
    my $IN_VAIN = q(SELECT advisory.try_lock('log', 'a', '20ms'));
    like($log_of->($t, $IN_VAIN), qr{LOG: +session waited for advisory lock "log/a" in exclusive mode for \d+\.\d{3} ms and timed out$}m, 'log_wait: a timeout');
    is_deeply($t->query($IN_VAIN)->{warnings}, [], 'which the client is not told');
    like($log_of->($t, q(SET statement_timeout = '20ms'), q(SELECT advisory.lock('log', 'a')), 'RESET statement_timeout'), qr{ ms and did not obtain it$}m, 'a wait that is broken off');
    is($log_of->($t, q(SELECT advisory.try_lock('log', 'a'))), '', 'not where there was no wait');
    like(logged(sub {
        $t->start(q(SELECT advisory.lock_shared('log', 'a')));
        waits($look, $t);
        $h->run(q(SELECT advisory.unlock('log', 'a')));
        $t->finish;
    }), qr{"log/a" in shared mode for \d+\.\d{3} ms and obtained it$}m, 'a wait that ended well');
    $t->run('SELECT pg_advisory_unlock_all()', q(SET advisory_ext.log_wait = '1h'));
    is($log_of->($h, q(SELECT advisory.lock('log', 'a')), q(SELECT advisory.unlock('log', 'a'))), '', 'log_hold is off');
    $h->run(q(SELECT advisory.lock('log', 'a')), 'SET advisory_ext.log_hold = 0');
    is($log_of->($t, $IN_VAIN), '', 'not a wait that was shorter');
    like($log_of->($h, q(SELECT advisory.unlock('log', 'a'))), qr{LOG: +session held advisory lock "log/a" in exclusive mode for \d+\.\d{3} ms$}m, 'log_hold: when it is released');
    my $xact = $log_of->($h, 'BEGIN', q(SELECT advisory.xact_lock('log', 'b'), advisory.xact_lock_key(43)), 'COMMIT');
    like($xact, qr{"log/b" in exclusive mode}, 'at the end of a transaction');
    like($xact, qr{"43" in exclusive mode}, 'by its key where it has no name');
    $h->run(q(SET advisory_ext.log_hold = '1h'));
    is($log_of->($h, q(SELECT advisory.try_xact_lock('log', 'b'))), '', 'not a hold that was shorter');
}

leave($look, $h, $t);
$look->run("REVOKE ALL ON FUNCTION advisory.stats_reset() FROM $role", "DROP ROLE $role");

# ---- A full directory ---------------------------------------------------------------------------------------------

my $server = own_server('advisory_ext.max_names=200');
sub there { return session(server => $server, @_) }

$look = there()->run('CREATE EXTENSION advisory_ext', map { "CREATE ROLE $_ LOGIN" } qw(a b flood));
my $DIRECTORY = 'SELECT names, evicted, not_stored FROM advisory.directory';
sub names { return $look->value('SELECT count(*) FROM advisory.stats WHERE namespace = ?', $_[0]) }

is_deeply($look->rows($DIRECTORY), [ [ 0, 0, 0 ] ], 'an empty directory');
my ($role_a, $role_b) = map { there(role => $_) } qw(a b);
my $root = there();
$role_a->run(q(SELECT count(advisory.try_xact_lock('a', i)) FROM generate_series(1, 50) AS i));
$role_b->run(q(SELECT count(advisory.try_xact_lock('b', i)) FROM generate_series(1, 40) AS i), q(SELECT count(advisory.lock('b held', i)) FROM generate_series(1, 10) AS i));
$root->run(q(SELECT count(advisory.try_xact_lock('root', i)) FROM generate_series(1, 40) AS i), q(SELECT count(advisory.lock('root held', i)) FROM generate_series(1, 10) AS i));
is_deeply($look->rows($DIRECTORY), [ [ 150, 0, 0 ] ], 'three roles with fifty names each');

# One unprivileged role without end: it has its quarter, the others keep theirs.
my $flood = there(role => 'flood');
is($flood->value(q(SELECT count(*) FILTER (WHERE advisory.try_lock('flood', i) AND advisory.unlock('flood', i)) FROM generate_series(1, 2000) AS i)), 2000, 'a flood of names, one after the other');
cmp_ok(names('flood'), '<=', 50, 'keeps to a quarter');
is(names('flood') + $look->value('SELECT evicted + not_stored FROM advisory.directory'), 2000, 'what was evicted is counted');
my %kept = (a => 50, b => 40, 'b held' => 10, root => 40, 'root held' => 10);
my $others = sub {
    my ($what) = @_;
    is_deeply({ map { $_ => names($_) } keys %kept }, \%kept, "$what: the others' names are there");
    is($look->value(q(SELECT count(*) FROM advisory.locks WHERE pid = ANY (?) AND namespace LIKE '% held'), [ $role_b->pid, $root->pid ]), 20, "$what: those that are held, too");
    is_deeply($look->rows(q(SELECT sum(acquired), min(acquired), max(acquired) FROM advisory.stats WHERE namespace = ANY (?)), [ keys %kept ]), [ [ 150, 1, 1 ] ], "$what: with their statistics");
    return;
};
$others->('names');
is($flood->value(q(SELECT count(*) FILTER (WHERE advisory.lock('flood held', i)) FROM generate_series(1, 500) AS i)), 500, 'a flood of locks that are held');
$others->('locks');
is($look->value(q(SELECT count(*) FROM advisory.locks WHERE pid = ?), $flood->pid), 500, 'which are all shown');
cmp_ok($look->value('SELECT not_stored FROM advisory.directory'), '>=', 400, 'most of them without a name: counted');
is($flood->value(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'flood held')), 500, 'which the session itself knows');
is($flood->value(q(SELECT advisory.unlock_all('flood held'))), 500, 'and releases by it');
is($flood->value(q(SELECT count(*) FILTER (WHERE advisory.lock_key(i, label => repeat('l', 1000) || i)) FROM generate_series(1, 500) AS i)), 500, 'a flood of long labels');
$flood->run('SELECT pg_advisory_unlock_all()');
$others->('labels');
$role_a->value(q(SELECT advisory.lock('a', 50)));
is($look->value(q(SELECT name FROM advisory.locks WHERE pid = ?), $role_a->pid), '50', 'the others go on');
$role_a->value(q(SELECT advisory.unlock('a', 50)));

# One that may fill it all: what is held or waited for stays.
my $waiter = there(role => 'a');
$waiter->start(q(SELECT advisory.lock('root held', 1)));
waits($look, $waiter);
my ($names, $evicted, $refused) = @{ $look->rows($DIRECTORY)->[0] };
is($root->value(q(SELECT count(*) FILTER (WHERE advisory.try_xact_lock('superuser', i)) FROM generate_series(1, 1000) AS i)), 1000, 'a superuser floods it');
my ($names_now, $evicted_now, $refused_now) = @{ $look->rows($DIRECTORY)->[0] };
cmp_ok($names_now, '<=', 200, 'it is never more than full');
is($names_now + $evicted_now + $refused_now - $names - $evicted - $refused, 1000, 'what was evicted, or found no room, is counted');
is_deeply([ map { names($_) } 'b held', 'root held' ], [ 10, 10 ], 'what is held stays');
is_deeply($look->rows(q(SELECT namespace, name FROM advisory.locks WHERE NOT granted)), [ [ 'root held', '1' ] ], 'and what is waited for');
$waiter->disconnect;

# More locks held than it has room for.
is($root->value(q(SELECT count(*) FILTER (WHERE advisory.lock('many', i)) FROM generate_series(1, 400) AS i)), 400, 'more are held than there is room for');
is($look->value('SELECT count(*) FROM advisory.locks WHERE pid = ?', $root->pid), 410, 'the view shows them');
is($look->value('SELECT names FROM advisory.directory'), 200, 'those for which there was room by name');
is($look->value(q(SELECT count(*) FROM advisory.locks WHERE pid = ? AND namespace = 'many'), $root->pid), names('many'), 'just these');
$root->run('SELECT pg_advisory_unlock_all()');
$role_b->run('SELECT pg_advisory_unlock_all()');

# Its size can be changed while the server runs.
sub resize {
    my ($size) = @_;
    $look->run("ALTER SYSTEM SET advisory_ext.max_names = $size", 'SELECT pg_reload_conf()');
    for my $session ($look, $root, $role_a) {
        wait_until('the session has the setting', sub { $session->value(q(SELECT current_setting('advisory_ext.max_names'))) == $size });
    }
    return;
}
resize(20);
$root->run(q(SELECT count(advisory.try_xact_lock('small', i)) FROM generate_series(1, 100) AS i));
cmp_ok($look->value('SELECT names FROM advisory.directory'), '<=', 20, 'made smaller, it shrinks');
resize(0);
is($root->value(q(SELECT advisory.lock('none', 1))), 1, 'with no room at all: locks');
is_deeply($look->rows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', $root->pid), [ [ undef, undef ] ], 'without names');
resize(1000);
$root->run(q(SELECT advisory.lock('none', 1)));
is_deeply($look->rows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', $root->pid), [ [ 'none', '1' ] ], 'made larger, names are stored again');

done_testing();
