#!/usr/bin/env perl
# advisory.pressure counts correctly however many locks are held and while they change, and says
# when it cannot be exact. (`make bench BENCH="questions bystanders pool"` has what a look costs,
# whom it holds up, and how long the first one takes.)
use AdvisoryTest;

use constant { CHURNERS => 8, CHURNED => 40 };

my $server = own_server('max_locks_per_transaction=1024', 'max_connections=60',
    'max_prepared_transactions=10', 'jit=off', 'autovacuum=off');
my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $hog = session(server => $server);

# The true contents of the lock table. pg_locks has more than that, and shows a lock once for each
# holder and mode.
my $LOCK = 'locktype, database, relation, page, tuple, virtualxid, transactionid::text, '
    . 'classid, objid, objsubid';
my $TRUE = q{FROM pg_locks WHERE NOT fastpath AND mode NOT LIKE 'SIRead%'};
my $TRUE_LOCKS = "SELECT count(DISTINCT ($LOCK)) $TRUE";
my $TRUE_HOLDERS = "SELECT count(DISTINCT ($LOCK, pid, virtualtransaction)) $TRUE";

sub pressure_is ($what, $expected, $name) {
    is($look->value("SELECT $what FROM advisory.pressure"), $expected, $name);
    return;
}

for my $held (0, 100, 10_000, 100_000) {
    $hog->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $held) AS i");
    pressure_is("locks_used - ($TRUE_LOCKS)", 0, "$held held: locks are counted right");
    pressure_is("holders_used - ($TRUE_HOLDERS)", 0, "$held held: holders, too");
    pressure_is("locks_used >= $held AND exact", 1, "$held held: the figures are exact");
    $hog->run('SELECT pg_advisory_unlock_all()');
}

# Several holders of one lock, waiters, and prepared transactions: the second table is the fuller.
sub by_type ($what) {
    return "(SELECT $what FROM advisory.pressure_by_type WHERE type = 'advisory')";
}
sub backends ($what, $where) {
    return "(SELECT $what FROM advisory.pressure_by_backend WHERE $where)";
}
my @holders = map { session(server => $server) } 1 .. CHURNERS;
$_->run('SELECT count(pg_advisory_lock_shared(i)) FROM generate_series(1, 1000) AS i') for @holders;
pressure_is(by_type('locks'), 1000, 'shared locks are one lock');
pressure_is(by_type('holders'), 1000 * CHURNERS, 'with many holders');
pressure_is('holders_used - locks_used', 1000 * (CHURNERS - 1), 'as pressure has it');
pressure_is('percent_used = round((100.0 * holders_used / holders_estimated)::numeric, 2)::float8',
    1, 'the fuller table decides');
waits($look, $hog, 'SELECT pg_advisory_lock(1)');
pressure_is(by_type('holders'), 1000 * CHURNERS + 1, 'a waiter counts as well');
pressure_is(backends(q{string_agg(DISTINCT session_locks::text, ',')}, 'session_locks > 0'), '1000',
    'idle sessions hold session-level locks');
pressure_is(backends('max(statement_cost)', 'true'), '00:00:00.0001',
    'which cost them something on every statement');
pressure_is(backends('count(*)', 'locks = 1000 AND advisory_locks = 1000'), CHURNERS, 'by session');
leave($look, @holders);
$hog->finish;
$hog->run('SELECT pg_advisory_unlock_all()');
$hog->run('BEGIN')->run('SELECT count(pg_advisory_xact_lock(i)) FROM generate_series(1, 10) AS i');
pressure_is(backends(q{concat_ws(' ', state, advisory_locks, session_locks)}, 'pid = ' . $hog->pid),
    'idle in transaction 10 0',
    'the locks of a session that is idle in a transaction may be those of the transaction');
$hog->run(q{PREPARE TRANSACTION 'pressure'});
pressure_is(backends('advisory_locks', q{gid = 'pressure' AND pid IS NULL AND role = current_user}),
    10, 'a prepared transaction');
$hog->run(q{COMMIT PREPARED 'pressure'});

# While other sessions take and release locks, each count has all locks that stay held, and not more
# than there can be.
$hog->run('SELECT count(advisory.lock($$stays$$, i)) FROM generate_series(1, 10000) AS i');
my $quiet = $look->value('SELECT locks_estimated FROM advisory.pressure');
my @new = map { session(server => $server) } 1 .. CHURNERS;
my @churners = map { session(server => $server) } 1 .. CHURNERS;
my ($reads, $wrong, %seen, @estimates) = (0, 0);
# On a busy machine there are few looks in two seconds.
for (my $round = 0; $round < 20 && $reads <= 100; $round++) {
    $churners[$_]->start(<<"SQL") for 0 .. $#churners;
DO \$\$ DECLARE until timestamptz := clock_timestamp() + '2 s'; BEGIN
    WHILE clock_timestamp() < until LOOP
        FOR i IN 1..@{[CHURNED]} LOOP PERFORM advisory.lock('churn $_', i); END LOOP;
        FOR i IN 1..@{[CHURNED]} LOOP PERFORM advisory.unlock('churn $_', i); END LOOP;
    END LOOP;
END \$\$
SQL
    until (grep { $_->is_done } @churners) {
        # The first look of a session visits lists that change meanwhile.
        my $first = shift @new;
        push @estimates, $first->value('SELECT locks_estimated FROM advisory.pressure WHERE exact')
            if $first;
        my $used = $look->value('SELECT locks_used FROM advisory.pressure');
        $reads++;
        # (Other locks, of the churners' own transactions and of the server's processes, are few.)
        $wrong++ if $used < 10_000 || $used > 10_000 + CHURNERS * CHURNED + 5 * CHURNERS;
        $seen{$used} = 1;
    }
    $_->finish for @churners;
}
ok($reads > 100 && keys(%seen) > 5, "looked $reads times while locks come and go");
is($wrong, 0, 'no count was wrong');
ok(!(grep { abs($_ / $quiet - 1) > 0.01 } @estimates),
    "nor a first look (@estimates; $quiet before)");
$_->finish for @churners;
leave($look, @churners);
is($look->value('SELECT locks_used FROM advisory.pressure'), 10_000, 'and afterwards it is right');
$_->disconnect for $hog, $look;
$server->stop;

# The table was full before the extension was used; also where another library has a large hash
# table in shared memory, among whose entries those of the lock tables have to be found.
my @STATEMENTS = ('shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.save=off',
    'pg_stat_statements.max=1000000');
for my $case ([ 'first used late' ], [ 'beside pg_stat_statements', @STATEMENTS ]) {
    my ($when, @settings) = @$case;
    $server = own_server('max_locks_per_transaction=64', 'max_connections=60', @settings);
    $look = session(server => $server);
    $hog = session(server => $server)->run(<<'SQL');
DO $$ DECLARE filled bigint := 0; BEGIN
    LOOP PERFORM pg_advisory_lock(filled); filled := filled + 1; END LOOP;
EXCEPTION WHEN out_of_memory THEN PERFORM set_config('pool.filled', filled::text, false); END $$
SQL
    my $filled = $hog->value(q{SELECT current_setting('pool.filled')});
    $hog->run('SELECT pg_advisory_unlock_all()');
    $look->run('CREATE EXTENSION advisory_ext');
    pressure_is('exact', 1, "$when: it can be told how the tables have grown");
    my $estimate = $look->value('SELECT locks_estimated FROM advisory.pressure');
    ok($estimate <= 1.02 * $filled && $estimate > 0.98 * $filled,
        "$when: and what fits ($estimate of $filled)");
    $_->disconnect for $hog, $look;
    $server->stop;
}
done_testing();
