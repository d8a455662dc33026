#!/usr/bin/env perl
# Every way in which a hold of a lock or slot ends, in both modes and both scopes: the hold is
# counted in hold_total and hold_max, and logged with log_hold, once and with its whole length. The
# test needs sessions that end.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

use constant HELD_S => 0.02;

my $database = create_database();
my $look = session(application => 'look');
# Not by SET, which DISCARD ALL would undo.
$look->run(qq(ALTER DATABASE "$database" SET advisory_ext.log_hold = 0),
    q(SET advisory_ext.log_hold = -1));
$look->run('CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$');

# The locks and slots: how they are taken and released. In statements <it> stands for namespace and
# name; each hold has another name.
my %calls = (
    'a lock'        => [ 'lock(<it>)',        'unlock(<it>)' ],
    'a shared lock' => [ 'lock_shared(<it>)', 'unlock_shared(<it>)' ],
    'a slot'        => [ 'acquire(<it>, 2)',  'release(<it>)' ],
    'the only slot' => [ 'acquire(<it>, 1)',  'release(<it>)' ],
);

# How a session ends. A way in which a hold ends is a function of the session, or statements.
sub terminates ($session) {
    $look->run('SELECT pg_terminate_backend(' . $session->pid . ')');
    return until_gone($look, $session);
}
my %ends = (
    'the session disconnects'   => sub ($session, $) { leave($look, $session) },
    'the session is terminated' => sub ($session, $) { terminates($session) },
    'it is terminated while it works' => sub ($session, $) {
        $session->start('SELECT pg_sleep(60)');
        $look->wait_until('it works',
            q(SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = ?), $session->pid);
        terminates($session);
    },
    'it is terminated while it waits' => sub ($session, $) {
        waits($look, $session, q(SELECT pg_advisory_lock(4711)));
        terminates($session);
    },
);
$look->run('SELECT pg_advisory_lock(4711)');

# Ways for session-level holds. <release> stands for the release of that hold.
my $ALL = 'SELECT pg_advisory_unlock_all()';
my %session_way = (
    'it is released'            => ['SELECT advisory.<release>'],
    'it is released in a block' => [ 'BEGIN', 'SELECT advisory.<release>', 'ROLLBACK' ],
    'unlock_all(namespace)'     => [q(SELECT advisory.unlock_all('ends'))],
    'pg_advisory_unlock_all()'  => [$ALL],
    'pg_advisory_unlock_all() in a block' => [ 'BEGIN', $ALL, 'COMMIT' ],
    'pg_advisory_unlock_all() in a block that fails' =>
        [ 'BEGIN', $ALL, 'SELECT 1/0', 'ROLLBACK', 'SELECT 1' ],
    'DISCARD ALL'               => ['DISCARD ALL'],
    'pg_advisory_unlock()'      => ['SELECT pg_advisory_<release>'],
    %ends,
);

# Ways for transaction-level holds, which are taken in a block.
my %transaction_way = (
    'COMMIT'            => ['COMMIT'],
    'ROLLBACK'          => [ 'ROLLBACK', 'SELECT 1' ],
    'an error'          => [ 'SELECT 1/0', 'COMMIT', 'SELECT 1' ],
    'ROLLBACK TO'       => [ 'ROLLBACK TO before', 'COMMIT' ],
    'ROLLBACK TO, of a released savepoint' => [ 'RELEASE hold', 'ROLLBACK TO before', 'COMMIT' ],
    'a cancelled statement' => [ q(SET LOCAL statement_timeout = '1ms'), 'SELECT pg_sleep(1)',
        'ROLLBACK', 'SELECT 1' ],
    'a failing COMMIT'  => [ 'INSERT INTO deferred VALUES (1), (1)', 'COMMIT', 'SELECT 1' ],
    'idle_in_transaction_session_timeout' => sub ($session, $) {
        $session->run(q(SET idle_in_transaction_session_timeout = '1ms'));
        until_gone($look, $session);
    },
    %ends,
);
$look->run('CREATE TABLE deferred (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)');

# Checks the statistics and the log of one hold. count: how often it ended.
my $number = 0;
sub check ($what, $takes, $ends, $count = 1) {
    my $name = 'n' . ++$number;
    my $mode = $what =~ /shared/ ? 'shared' : 'exclusive';
    my $session = session(application => 'holds');
    my $pid = $session->pid;
    my $from = time;
    my $log = logged(sub {
        $session->run(map { s/<it>/'ends', '$name'/gr } @$takes);
        sleep HELD_S;
        if (ref $ends eq 'CODE') { $ends->($session, $name) }
        else { $session->query(s/<it>/'ends', '$name'/gr) for @$ends }
    });
    my $longest = time - $from;
    my ($total, $equal) = @{ $look->rows(q(SELECT extract(epoch FROM hold_total)::float8,
        hold_total = hold_max FROM advisory.stats WHERE namespace = 'ends' AND name = ?),
        $name)->[0] };
    my $held = qr{LOG: +session held advisory lock "ends/$name" in $mode mode for};
    my @logged = $log =~ m{\[$pid\].*$held (\d+\.\d+) ms$}mg;
    subtest $what => sub {
        if ($count) {
            cmp_ok($total, '>=', HELD_S, 'hold_total has its length');
            cmp_ok($total, '<=', $longest, '... and no more');
            ok($equal, '... as has hold_max');
        }
        else {
            is($total, 0, 'hold_total is 0');
        }
        is(scalar @logged, $count, $count ? 'it is logged, once' : 'it is not logged') or diag $log;
        cmp_ok($logged[0] / 1000, '>=', HELD_S, '... with its length') if @logged;
    };
    return;
}

for my $way (sort keys %session_way) {
    for my $what (sort keys %calls) {
        my ($call, $release) = @{ $calls{$what} };
        my $ends = $session_way{$way};
        if ($way eq 'pg_advisory_unlock()') {
            next if $what =~ /slot/;
            $release =~ s/<it>/advisory.key(<it>)/;
        }
        $ends = [ map { s/<release>/$release/r } @$ends ] if ref $ends eq 'ARRAY';
        # Alone; in a transaction that has rolled back; with others.
        for my $how ('', ', taken in a block that failed', ', before others', ', after others',
            ', among others') {
            next if $how && $what =~ /shared|only/;
            # The extension does not learn which of many locks the built-in has released; it looks
            # at the oldest and the newest.
            next if $how =~ /among/ && $way eq 'pg_advisory_unlock()';
            my @takes = "SELECT advisory.$call";
            @takes = ('BEGIN', @takes, 'ROLLBACK') if $how =~ /failed/;
            unshift @takes, q(SELECT advisory.acquire('ends', 'c', 2) FROM generate_series(1, 2))
                if $how =~ /among/;
            unshift @takes, map { "SELECT advisory.lock('ends', '$_')" } qw(a b)
                if $how =~ /after|among/;
            push @takes, map { "SELECT advisory.lock_shared('ends', '$_')" } qw(d e)
                if $how =~ /before|among/;
            check("$what: $way$how", \@takes, $ends);
        }
    }
}

for my $what (sort keys %calls) {
    my ($call) = @{ $calls{$what} };
    my $takes = "SELECT advisory.xact_$call";
    check("$what of a transaction: $_", [ 'BEGIN', q(SELECT advisory.xact_lock('ends', 'before')),
        'SAVEPOINT before', 'SAVEPOINT hold', $takes ], $transaction_way{$_})
        for sort keys %transaction_way;

    # Within one statement.
    my $performs = "PERFORM advisory.xact_$call; PERFORM pg_sleep(${\HELD_S});";
    my %block = ('a statement of its own' => $performs,
        'a block with an EXCEPTION clause' => "BEGIN $performs RAISE division_by_zero;
            EXCEPTION WHEN division_by_zero THEN END;",
        'COMMIT in a procedure' => "$performs COMMIT; PERFORM 1;");
    check("$what of a transaction: $_", ["DO \$\$ BEGIN $block{$_} END \$\$"], [])
        for sort keys %block;

    # Cases in which the hold does not end: a prepared transaction keeps its locks, another hold of
    # the session keeps the lock.
    check("$what of a transaction: PREPARE TRANSACTION", [ 'BEGIN', $takes ],
        sub ($session, $name) {
            $session->run("PREPARE TRANSACTION '$name'");
            leave($look, $session);
            $look->run("ROLLBACK PREPARED '$name'");
        }, 0);
    next if $what =~ /slot/;
    my @both = ('BEGIN', $takes, "SELECT advisory.$call");
    check("$what: ROLLBACK while the session goes on with it", \@both, [ 'ROLLBACK', 'SELECT 1' ],
        0);
    check("$what: unlock while the transaction goes on with it, until COMMIT", \@both,
        [ $ALL, 'SELECT 1', 'COMMIT', 'SELECT 1' ]);
}

# Under run(), which hands its hold on to the transaction.
for my $slots ('', ', slots => 2') {
    my %then = (succeeds => '', fails => '; SELECT 1/0', commits => '; CALL commits()',
        'releases all' => "; $ALL");
    check("run()$slots: a command that $_", [],
        [ "CALL advisory.run(<it>, 'SELECT pg_sleep(${\HELD_S})$then{$_}'$slots)", 'SELECT 1' ])
        for sort keys %then;
}

done_testing;
