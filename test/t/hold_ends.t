#!/usr/bin/env perl
# Every way in which a hold of a lock or slot ends, in both modes and both scopes: the hold is
# counted in hold_total and hold_max, and logged with log_hold, once and with its whole length. The
# test needs sessions that end.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

use constant HELD_S => 0.05;

my $database = create_database();
my $look = session(application => 'look');
# Not by SET, which DISCARD ALL would undo.
$look->run(qq(ALTER DATABASE "$database" SET advisory_ext.log_hold = 0),
    q(SET advisory_ext.log_hold = -1));
$look->run('CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$');

# The locks and slots, as the calls name them. Each hold has another name.
my %session = (
    'a lock'        => [ 'lock(%s)',         'unlock(%s)',        'exclusive' ],
    'a shared lock' => [ 'lock_shared(%s)',  'unlock_shared(%s)', 'shared' ],
    'a slot'        => [ 'acquire(%s, 2)',   'release(%s)',       'exclusive' ],
    'the only slot' => [ 'acquire(%s, 1)',   'release(%s)',       'exclusive' ],
);
my %transaction = (
    'a lock'        => [ 'xact_lock(%s)',        undef, 'exclusive' ],
    'a shared lock' => [ 'xact_lock_shared(%s)', undef, 'shared' ],
    'a slot'        => [ 'xact_acquire(%s, 2)',  undef, 'exclusive' ],
    'the only slot' => [ 'xact_acquire(%s, 1)',  undef, 'exclusive' ],
);

sub sends (@statements) { return sub { $_[0]->query($_) for @statements } }

# How a session ends.
sub terminates ($session) {
    $look->run('SELECT pg_terminate_backend(' . $session->pid . ')');
    return until_gone($look, $session);
}
my %ends = (
    'the session disconnects'   => sub { leave($look, $_[0]) },
    'the session is terminated' => sub { terminates($_[0]) },
    'it is terminated while it works' => sub ($session, @) {
        $session->start('SELECT pg_sleep(60)');
        $look->wait_until('it works',
            q(SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = ?), $session->pid);
        terminates($session);
    },
    'it is terminated while it waits' => sub ($session, @) {
        waits($look, $session, q(SELECT pg_advisory_lock(4711)));
        terminates($session);
    },
);
$look->run('SELECT pg_advisory_lock(4711)');

# Ways for session-level holds: the session's action, as a function of the session, the release of
# that hold, its key and mode.
my %session_way = (
    'it is released'            => sub ($session, $release, @) { $session->run(
        "SELECT advisory.$release") },
    'it is released in a block' => sub ($session, $release, @) { $session->run('BEGIN',
        "SELECT advisory.$release", 'ROLLBACK') },
    'unlock_all(namespace)'     => sends(q(SELECT advisory.unlock_all('ends'))),
    'pg_advisory_unlock_all()'  => sends('SELECT pg_advisory_unlock_all()'),
    'pg_advisory_unlock_all() in a block' => sends('BEGIN',
        'SELECT pg_advisory_unlock_all()', 'COMMIT'),
    'pg_advisory_unlock_all() in a block that fails' => sends('BEGIN',
        'SELECT pg_advisory_unlock_all()', 'SELECT 1/0', 'ROLLBACK', 'SELECT 1'),
    'DISCARD ALL'               => sends('DISCARD ALL'),
    'pg_advisory_unlock()'      => sub ($session, $, $key, $mode) { $session->run(
        'SELECT pg_advisory_unlock' . ($mode eq 'shared' ? '_shared' : '') . "($key)") },
    %ends,
);

# Ways for transaction-level holds, which are taken in a block.
my %transaction_way = (
    'COMMIT'            => sends('COMMIT'),
    'ROLLBACK'          => sends('ROLLBACK', 'SELECT 1'),
    'an error'          => sends('SELECT 1/0', 'COMMIT', 'SELECT 1'),
    'ROLLBACK TO'       => sends('ROLLBACK TO before', 'COMMIT'),
    'ROLLBACK TO, of a released savepoint' => sends('RELEASE hold', 'ROLLBACK TO before', 'COMMIT'),
    'a cancelled statement' => sends(q(SET LOCAL statement_timeout = '1ms'), 'SELECT pg_sleep(1)',
        'ROLLBACK', 'SELECT 1'),
    'a failing COMMIT'  => sends('INSERT INTO deferred VALUES (1), (1)', 'COMMIT', 'SELECT 1'),
    'idle_in_transaction_session_timeout' => sub {
        $_[0]->run(q(SET idle_in_transaction_session_timeout = '1ms'));
        until_gone($look, $_[0])
    },
    %ends,
);
$look->run('CREATE TABLE deferred (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)');

# Checks the statistics and the log of one hold. count: how often it ended.
my $number = 0;
sub check ($what, $mode, $takes, $ends, $count) {
    my $name = 'n' . ++$number;
    my $session = session(application => 'holds');
    my $pid = $session->pid;
    my $from = time;
    my $log = logged(sub {
        $takes->($session, $name);
        sleep HELD_S;
        $ends->($session, $name);
    });
    my $longest = time - $from;
    my $row = $look->rows(q(SELECT acquired, extract(epoch FROM hold_total)::float8, hold_total =
        hold_max FROM advisory.stats WHERE namespace = 'ends' AND name = ?), $name)->[0];
    my $held = qr{LOG: +session held advisory lock "ends/$name" in $mode mode for};
    my @logged = $log =~ m{\[$pid\].*$held (\d+\.\d+) ms$}mg;
    subtest $what => sub {
        if ($count) {
            cmp_ok($row->[1], '>=', HELD_S, 'hold_total has its length');
            cmp_ok($row->[1], '<=', $longest, '... and no more');
            ok($row->[2], '... as has hold_max');
        }
        else {
            is($row->[1], 0, 'hold_total is 0');
        }
        is(scalar @logged, $count, $count ? 'it is logged, once' : 'it is not logged') or diag $log;
        cmp_ok($logged[0] / 1000, '>=', HELD_S, '... with its length') if @logged;
    };
    leave($look, $session)
        if $look->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $pid);
    return;
}

for my $way (sort keys %session_way) {
    for my $what (sort keys %session) {
        my ($call, $release, $mode) = @{ $session{$what} };
        next if $way eq 'pg_advisory_unlock()' && $what =~ /slot/;
        # Alone; in a transaction that has rolled back; with others.
        for my $how ('', ', taken in a block that failed', ', before others', ', after others',
            ', among others') {
            next if $how && $what =~ /shared|only/;
            # The extension does not learn which of many locks the built-in has released; it looks
            # at the oldest and the newest.
            next if $how =~ /among/ && $way eq 'pg_advisory_unlock()';
            check("$what: $way$how", $mode,
                sub ($session, $name) {
                    $session->run(map { "SELECT advisory.lock('ends', '$_')" } qw(a b))
                        if $how =~ /after|among/;
                    $session->run(q(SELECT advisory.acquire('ends', 'c', 2)
                        FROM generate_series(1, 2))) if $how =~ /among/;
                    my $takes = sprintf "SELECT advisory.$call", "'ends', '$name'";
                    $session->run($how =~ /failed/ ? ('BEGIN', $takes, 'ROLLBACK') : $takes);
                    $session->run(map { "SELECT advisory.lock_shared('ends', '$_')" } qw(d e))
                        if $how =~ /before|among/;
                },
                sub ($session, $name) {
                    $session_way{$way}->($session, sprintf($release, "'ends', '$name'"),
                        $look->value(q(SELECT advisory.key('ends', ?)), $name), $mode);
                }, 1);
        }
    }
}

for my $way (sort keys %transaction_way) {
    for my $what (sort keys %transaction) {
        my ($call, undef, $mode) = @{ $transaction{$what} };
        check("$what of a transaction: $way", $mode,
            sub ($session, $name) {
                $session->run('BEGIN', q(SELECT advisory.xact_lock('ends', 'before')),
                    'SAVEPOINT before', 'SAVEPOINT hold',
                    sprintf("SELECT advisory.$call", "'ends', '$name'"));
            },
            $transaction_way{$way}, 1);
    }
}

# Within one statement.
for my $what (sort keys %transaction) {
    my ($call, undef, $mode) = @{ $transaction{$what} };
    my $takes = sub { sprintf "PERFORM advisory.$call; PERFORM pg_sleep(%s);",
        "'ends', '$_[0]'", HELD_S };
    my $none = sub { };
    check("$what of a transaction: a statement of its own", $mode, sub ($session, $name) {
        $session->run("DO 'BEGIN " . $takes->($name) =~ s/'/''/gr . " END'")
    }, $none, 1);
    check("$what of a transaction: a block with an EXCEPTION clause", $mode,
        sub ($session, $name) { $session->run('DO $$ BEGIN BEGIN ' . $takes->($name)
            . ' RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END; END $$') }, $none,
        1);
    check("$what of a transaction: COMMIT in a procedure", $mode, sub ($session, $name) {
        $session->run('DO $$ BEGIN ' . $takes->($name) . ' COMMIT; PERFORM 1; END $$')
    }, $none, 1);
}

# Under run(), which hands its hold on to the transaction.
for my $slots ('', ', slots => 2') {
    my $run = sub ($name, $command) { "CALL advisory.run('ends', '$name', '$command'$slots)" };
    for my $case ([ 'succeeds', 'SELECT pg_sleep(0.05)' ], [ 'fails', 'SELECT pg_sleep(0.05);
            SELECT 1/0' ], [ 'commits', 'SELECT pg_sleep(0.05); CALL commits()' ],
        [ 'releases all', 'SELECT pg_sleep(0.05); SELECT pg_advisory_unlock_all()' ]) {
        my ($how, $command) = @$case;
        check("run()$slots: a command that $how", 'exclusive', sub ($session, $name) {
            $session->query($run->($name, $command));
            $session->run('SELECT 1')
        }, sub { }, 1);
    }
}

# Cases in which the hold does not end: a prepared transaction keeps its locks, another hold of the
# session keeps the lock.
for my $what (sort keys %transaction) {
    my ($call, undef, $mode) = @{ $transaction{$what} };
    check("$what of a transaction: PREPARE TRANSACTION", $mode,
        sub ($session, $name) { $session->run('BEGIN',
            sprintf("SELECT advisory.$call", "'ends', '$name'")) },
        sub ($session, $name) {
            $session->run("PREPARE TRANSACTION '$name'");
            leave($look, $session);
            $look->run("ROLLBACK PREPARED '$name'")
        }, 0);
    next if $what =~ /slot/;
    (my $session_call = $call) =~ s/xact_//;
    check("$what: ROLLBACK while the session goes on with it", $mode,
        sub ($session, $name) { $session->run('BEGIN',
            map { sprintf "SELECT advisory.$_", "'ends', '$name'" } $call, $session_call) },
        sends('ROLLBACK', 'SELECT 1'), 0);
    check("$what: unlock while the transaction goes on with it, until COMMIT", $mode,
        sub ($session, $name) { $session->run('BEGIN',
            map { sprintf "SELECT advisory.$_", "'ends', '$name'" } $call, $session_call) },
        sends('SELECT pg_advisory_unlock_all()', 'SELECT 1', 'COMMIT', 'SELECT 1'), 1);
}

leave($look);
done_testing;
