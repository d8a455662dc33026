#!/usr/bin/env perl
# The guard stops a session that takes ever more locks before the server's lock table is full, and
# stops no other session. Without the guard the server raises its own error; when that session has
# ended, everything works again.
use AdvisoryTest;

use constant { LOCKS => 32, LIMIT => 90, MODEST => 30, TABLES => 300 };

my @SETTINGS = ('max_connections=40', 'max_prepared_transactions=5');
my $server = own_server('max_locks_per_transaction=' . LOCKS, @SETTINGS);
my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext')
    ->run('CREATE ROLE modest LOGIN')->run('CREATE TABLE item (id int PRIMARY KEY)');
my $other = session(server => $server, role => 'modest');

sub pressure ($column) { return $look->value("SELECT $column FROM advisory.pressure") }

sub takes_until_stopped ($session, $call) {
    return $session->query(qq{DO \$\$ DECLARE i bigint := 0; BEGIN LOOP PERFORM $call; i := i + 1;
            END LOOP; END \$\$});
}

# Ordinary statements and a modest number of locks are not refused.
sub everybody_goes_on ($what) {
    $other->shows('SELECT count(*) > 0 FROM pg_class', 1, "$what: queries");
    $look->shows('INSERT INTO item SELECT coalesce(max(id), 0) + 1 FROM item RETURNING 1', 1,
        "$what: changes");
    $look->run('CREATE TABLE made (id int PRIMARY KEY, other int UNIQUE)')
        ->run('ALTER TABLE made ADD COLUMN more text')->run('DROP TABLE made');
    pass("$what: DDL");
    is($other->value("SELECT count(*) FROM generate_series(1, @{[MODEST]}) AS i
            WHERE advisory.try_lock('modest', i)"), MODEST, "$what: modest locking");
    is($other->value("SELECT advisory.unlock_all('modest')"), MODEST, "$what: and letting go");
    $other->shows("SELECT advisory.acquire('modest', 'slots', 3)", 1, "$what: a slot");
    $other->shows("SELECT advisory.release('modest', 'slots')", 1, "$what: given back");
    return;
}

# Every way to take a lock is stopped.
my %calls = (
    'session-level locks'     => q{advisory.lock('run', i)},
    'transaction-level locks' => q{advisory.try_xact_lock('run', i)},
    'shared locks by key'     => q{advisory.lock_shared_key(i)},
    'several at once'         => q{advisory.lock_all('run', ARRAY[i, -i])},
    'slots'                   => q{advisory.acquire('run', 'semaphore', 16000)},
    'slots of many semaphores' => q{advisory.xact_acquire('run', i, 2)},
    'leases'                  => q{advisory.try_lease('run', i, '1h')},
);
my ($token, $checked) =
    map { $look->value('SELECT token FROM advisory.lease(?, ?, ?)', 'run', $_, '1h') }
    qw(kept relied);
for my $what (sort keys %calls) {
    my $runaway = session(server => $server);
    my $result = takes_until_stopped($runaway, $calls{$what});
    is($result->{state}, '53400', "$what: a runaway is stopped");
    like($result->{message}, qr/because the server's lock table is nearly full/,
        "$what: and told why");
    like($result->{detail},
        qr{pool_limit\ is\ @{[LIMIT]}.\ This\ session\ holds\ \d+\ advisory\ locks,
            \ more\ than\ max_locks_per_transaction\ \(@{[LOCKS]}\)}x, "$what: with the figures");
    like($result->{hint}, qr/increase max_locks_per_transaction/, "$what: and what to do");
    my $used = pressure('percent_used');
    if ($what =~ /session|shared|several|^slots$/) {
        ok($used > LIMIT - 1 && $used < LIMIT + 1, "$what: at the limit ($used percent)");
        everybody_goes_on($what);
        # The session keeps its locks, and may take again what it holds already.
        if ($what eq 'session-level locks') {
            $runaway->shows(q{SELECT advisory.try_lock('run', 0)}, 1,
                'a lock that it has is no more locks');
            # Others' locks come and go; with these the table stays above the limit.
            $look->run('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 60) AS i');
            $runaway->fails(q{SELECT advisory.try_lock('run', 'new')}, '53400',
                'to ask is refused, too, not answered with false');
            # Only taking is refused.  What frees a place, or a lease's owner needs, goes on.
            $runaway->shows("SELECT advisory.check_lease('run', 'relied', $checked)", 1,
                'a lease can be checked');
            $runaway->shows("SELECT advisory.renew_lease('run', 'kept', $token) IS NULL", 0,
                '... and renewed');
            $runaway->shows("SELECT advisory.end_lease('run', 'kept', $token)", 1, '... and ended');
            $runaway->fails(q{SELECT advisory.try_lease('run', 'new', '1h')}, '53400',
                '... but no other one is granted');
            $runaway->run('BEGIN')
                ->run("SELECT advisory.check_lease('run', 'relied', $checked)");
            $runaway->shows("SELECT advisory.end_lease('run', 'relied', $checked)", 1,
                '... nor does it matter that this transaction has its lock');
            $runaway->run('ROLLBACK');
            $runaway->shows(q{SELECT advisory.unlock('run', 1)}, 1, 'a lock can be released');
            $look->run('SELECT pg_advisory_unlock_all()');
            $runaway->shows(q{SELECT pg_try_advisory_lock(1)}, 1, 'the built-ins are not');
            $runaway->fails(q{SET ROLE modest; SET advisory_ext.pool_limit = 0}, '42501',
                'and a role that is no superuser cannot turn it off');
            $runaway->run('RESET ROLE');
        }
    } else {
        ok($used < 5, "$what: all are gone with the transaction");
    }
    $runaway->run('SELECT pg_advisory_unlock_all()');
    $runaway->shows(q{SELECT advisory.try_lock('run', 'again')}, 1,
        "$what: with its locks released it goes on");
}

# What is wanted at once is refused before the first of it is taken.
{
    my $wants = session(server => $server);
    my $error = $wants->fails(q{SELECT advisory.acquire_many('run', 'at once', 16000, 9000)},
        '53400', 'very many slots at once are refused');
    like($error->{message}, qr/because the server's lock table would be nearly full/,
        '... as the table would be full');
    like($error->{detail}, qr/This session would hold 9000 advisory locks/, '... by so many');
    leave($look, $wants);
}

# Others fill the pool: built-in locks and a dump of many tables. A session that holds few locks is
# not refused.
my $hog = session(server => $server);
my $room = pressure('headroom');
my $most = int($room * 0.93);
$hog->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $most) AS i");
cmp_ok(pressure('percent_used'), '>', LIMIT,
    'built-in locks have filled the pool beyond the limit');
everybody_goes_on('others have filled the pool');
my $many = session(server => $server);
$many->fails(q{SELECT count(*) FROM generate_series(1, } . 2 * LOCKS
        . q{) AS i WHERE advisory.try_lock('many', i)}, '53400', 'who holds many then is stopped');
is($many->value(
    q{SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'}),
    LOCKS + 1, 'once it has more than max_locks_per_transaction');
# Only locks that the session really holds through the extension count, each of them once.
my $modest = session(server => $server);
$modest->run("SELECT count(advisory.lock('modes', i)), count(advisory.lock_shared('modes', i))
        FROM generate_series(1, @{[LOCKS - 8]}) AS i");
$modest->shows(q{SELECT advisory.lock('modes', 'more')}, 1, 'a lock in both modes is one lock');
$modest->run(q{SELECT advisory.unlock_all('modes')});
$modest->run("SELECT count(advisory.lock('lost', i)) FROM generate_series(1, @{[LOCKS]}) AS i")
    ->run('SELECT pg_advisory_unlock_all()');
$modest->run("SELECT count(pg_advisory_lock(100000 + i)) FROM generate_series(1, @{[LOCKS]}) AS i");
$modest->shows("SELECT count(advisory.lock('few', i)) FROM generate_series(1, 10) AS i", 10,
    'locks released without the extension do not count');
$modest->run('SELECT pg_advisory_unlock_all()')->run('BEGIN');
$modest->run(
    "SELECT count(advisory.xact_lock('twice', i)) FROM generate_series(1, @{[LOCKS - 8]}) AS i")
        ->run('SAVEPOINT a')
    ->run("SELECT count(advisory.xact_lock('twice', i))
        FROM generate_series(1, @{[LOCKS - 8]}) AS i");
$modest->shows(q{SELECT advisory.xact_lock('twice', 'more')}, 1,
    'nor does a lock twice in a savepoint');
$modest->run('COMMIT');
leave($look, $hog, $many, $modest);

my $dump = session(server => $server);
$look->run("DO \$\$ BEGIN FOR i IN 1..@{[TABLES]} LOOP EXECUTE format('CREATE TABLE t%s ()', i);
        COMMIT; END LOOP; END \$\$");
$dump->run('BEGIN');
$dump->run(join ' ', 'LOCK TABLE', join(', ', map { "t$_" } 1 .. TABLES), 'IN ACCESS SHARE MODE');
cmp_ok(pressure('locks_used'), '>=', TABLES - 200, 'a dump of many tables is in the pool');
my $while = session(server => $server);
is(takes_until_stopped($while, q{advisory.lock('run', i)})->{state}, '53400',
    'a runaway beside it is stopped');
everybody_goes_on('a dump and a runaway');
$dump->run('COMMIT');
leave($look, $dump, $while);

# can_fit() counts the guard.
{
    my $asks = session(server => $server);
    $asks->run("SELECT count(advisory.lock('asks', i)) FROM generate_series(1, @{[LOCKS]}) AS i");
    my ($fits, $too_many) = (0, pressure('locks_estimated'));
    while ($too_many - $fits > 1) {
        my $half = int(($fits + $too_many) / 2);
        ($asks->value("SELECT advisory.can_fit($half)") ? $fits : $too_many) = $half;
    }
    my $TAKES = q(SELECT count(advisory.lock('asked', i)) FROM generate_series(1, %d) AS i);
    $asks->shows(sprintf($TAKES, $fits), $fits, "can_fit($fits) is true: so many locks fit");
    # The guard looks once for 8 locks.
    $asks->fails(sprintf($TAKES, $fits + 16), '53400', '... and not many more');
    $asks->shows('SELECT advisory.can_fit(1)', 0, '... as it says then');
    leave($look, $asks);
}

# Several sessions at once.
my @runaways = map { session(server => $server) } 1 .. 6;
$runaways[$_]->start(
    qq{DO \$\$ DECLARE i bigint := 0; BEGIN LOOP PERFORM advisory.lock('race $_', i); i := i + 1;
        END LOOP; END \$\$}) for 0 .. $#runaways;
$_->ends('53400', 'a runaway among others is stopped') for @runaways;
# Each may have as many locks as are never refused, and 8 between two looks, however full the table
# is.
cmp_ok(pressure('locks_used'), '<=',
    LIMIT / 100 * pressure('locks_estimated') + @runaways * (LOCKS + 8), 'close to the limit');
everybody_goes_on('several runaways');
leave($look, @runaways);

# With the guard off the server raises its own error, and then everything works again.
my $unguarded = session(server => $server)->run('SET advisory_ext.pool_limit = 0');
is(takes_until_stopped($unguarded, q{advisory.lock('run', i)})->{state}, '53200',
    'without the guard the server is out of memory');
$other->fails(q{SELECT advisory.lock('modest', 'now')}, '53200', 'for everybody');
cmp_ok(pressure('percent_used'), '>', 97, 'as pressure still says');
$unguarded->disconnect;
ok(wait_until('its locks are gone', sub { pressure('percent_used') < 5 }),
    'nothing is left behind');
everybody_goes_on('after that');

# max_locks_for() tells the setting with which so many locks of one session fit.
my $wanted = 3 * pressure('locks_estimated');
my $locks = $look->value("SELECT advisory.max_locks_for($wanted)");
$look->shows("SELECT advisory.can_fit($wanted)", 0, "$wanted locks do not fit");
$server->stop;
$server = own_server("max_locks_per_transaction=$locks", @SETTINGS);
$look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
$look->shows("SELECT advisory.can_fit($wanted)", 1, "... but do with $locks, says can_fit()");
$look->shows("SELECT count(advisory.lock('wanted', i)) FROM generate_series(1, $wanted) AS i",
    $wanted, '... which is so');
is(pressure('status'), 'ok', '... with the status ok');
cmp_ok(pressure('percent_used'), '>', 30, '... and not much too large');
done_testing();
