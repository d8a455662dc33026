#!/usr/bin/env perl
# advisory.pressure counts correctly however many locks are held and while they change. It costs the same at any size, costs
# other sessions nothing, and says when it cannot be exact.
# Runs alone: it compares the times of queries.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use List::Util qw(min);
use Test::More;

use constant { READS => 300, CHURNERS => 8, CHURNED => 40, LEAST_TIMES_CHEAPER => 300, MOST_TIMES_DEARER => 2 };

my $server = own_server('max_locks_per_transaction=1024', 'max_connections=60', 'max_prepared_transactions=10', 'jit=off', 'autovacuum=off');
my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $hog = session(server => $server);

# The true contents of the lock table. pg_locks has more than that, and shows a lock once for each holder and mode.
my $TRUE_LOCKS = q{SELECT count(DISTINCT (locktype, database, relation, page, tuple, virtualxid, transactionid::text, classid, objid, objsubid))
    FROM pg_locks WHERE NOT fastpath AND mode NOT LIKE 'SIRead%'};
my $TRUE_HOLDERS = q{SELECT count(DISTINCT (locktype, database, relation, page, tuple, virtualxid, transactionid::text, classid, objid, objsubid, pid, virtualtransaction))
    FROM pg_locks WHERE NOT fastpath AND mode NOT LIKE 'SIRead%'};

# The processor time in microseconds: a loop within the server.
sub cost_of {
    my ($query, $times) = @_;
    my $loop = sub { $look->run("DO \$\$ DECLARE found record; BEGIN FOR i IN 1 .. $_[0] LOOP $query; END LOOP; END \$\$") };
    $loop->(1);
    return 1e6 * processor_time($look, sub { $loop->($times) }) / $times;
}

my %cost;
for my $held (0, 100, 10_000, 100_000) {
    $hog->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $held) AS i");
    is($look->value('SELECT locks_used - (' . $TRUE_LOCKS . ') FROM advisory.pressure'), 0, "$held held: locks are counted right");
    is($look->value('SELECT holders_used - (' . $TRUE_HOLDERS . ') FROM advisory.pressure'), 0, "$held held: holders, too");
    is($look->value("SELECT count(*) FROM advisory.pressure WHERE locks_used >= $held AND exact"), 1, "$held held: the figures are exact");
    $cost{$held} = min(map { cost_of('SELECT * INTO found FROM advisory.pressure', READS) } 1 .. 5);
    $hog->run('SELECT pg_advisory_unlock_all()');
}
cmp_ok($cost{100_000}, '<', MOST_TIMES_DEARER * $cost{100}, sprintf 'a look costs %.1f us at 100,000 locks, %.1f us at 100', @cost{100_000, 100});
$hog->run('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 100000) AS i');
my $usual = cost_of('SELECT count(*) INTO found FROM pg_locks', 3);
cmp_ok($usual, '>', LEAST_TIMES_CHEAPER * $cost{100_000}, sprintf 'the usual query %.0f us, %.0f times as much', $usual, $usual / $cost{100_000});

# Several holders of one lock, waiters, and prepared transactions: the second table is the fuller one.
$hog->run('SELECT pg_advisory_unlock_all()');
my @holders = map { session(server => $server) } 1 .. CHURNERS;
$_->run('SELECT count(pg_advisory_lock_shared(i)) FROM generate_series(1, 1000) AS i') for @holders;
is($look->value('SELECT locks FROM advisory.pressure_by_type WHERE type = ?', 'advisory'), 1000, 'shared locks are one lock');
is($look->value('SELECT holders FROM advisory.pressure_by_type WHERE type = ?', 'advisory'), 1000 * CHURNERS, 'with many holders');
is($look->value('SELECT holders_used - locks_used FROM advisory.pressure'), 1000 * (CHURNERS - 1), 'as pressure has it');
is($look->value('SELECT percent_used = round((100.0 * holders_used / holders_estimated)::numeric, 2)::float8 FROM advisory.pressure'), 1, 'the fuller table decides');
$hog->start('SELECT pg_advisory_lock(1)');
waits($look, $hog);
is($look->value('SELECT holders FROM advisory.pressure_by_type WHERE type = ?', 'advisory'), 1000 * CHURNERS + 1, 'a waiter counts as well');
is($look->value('SELECT string_agg(DISTINCT session_locks::text, $$,$$) FROM advisory.pressure_by_backend WHERE session_locks > 0'), '1000', 'idle sessions hold session-level locks');
is($look->value('SELECT max(statement_cost) FROM advisory.pressure_by_backend'), '00:00:00.0001', 'which cost them something on every statement');
is($look->value('SELECT count(*) FROM advisory.pressure_by_backend WHERE locks = 1000 AND advisory_locks = 1000'), CHURNERS, 'by session');
leave($look, @holders);
$hog->finish;
$hog->run('SELECT pg_advisory_unlock_all()');
$hog->run('BEGIN')->run('SELECT count(pg_advisory_xact_lock(i)) FROM generate_series(1, 10) AS i');
is_deeply($look->rows('SELECT state, advisory_locks, session_locks FROM advisory.pressure_by_backend WHERE pid = ?', $hog->pid), [ [ 'idle in transaction', 10, 0 ] ],
    'the locks of a session that is idle in a transaction may be those of the transaction');
$hog->run(q{PREPARE TRANSACTION 'pressure'});
is($look->value(q{SELECT advisory_locks FROM advisory.pressure_by_backend WHERE gid = 'pressure' AND pid IS NULL AND role = current_user}), 10, 'a prepared transaction');
$hog->run(q{COMMIT PREPARED 'pressure'});

# While other sessions take and release locks, each count has all locks that stay held, and not more than there can be.
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
        push @estimates, (shift @new)->value('SELECT locks_estimated FROM advisory.pressure WHERE exact') if @new;
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
ok(!(grep { abs($_ / $quiet - 1) > 0.01 } @estimates), "nor a first look (@estimates; $quiet before)");
$_->finish for @churners;
leave($look, @churners);
is($look->value('SELECT locks_used FROM advisory.pressure'), 10_000, 'and afterwards it is right');
$_->disconnect for $hog, $look;
$server->stop;

# The table was full before the extension was used.
$server = own_server('max_locks_per_transaction=64', 'max_connections=60');
$look = session(server => $server);
$hog = session(server => $server);
my $fill = <<'SQL';
DO $$ DECLARE filled bigint := 0; BEGIN LOOP PERFORM pg_advisory_lock(filled); filled := filled + 1; END LOOP;
EXCEPTION WHEN out_of_memory THEN PERFORM set_config('pool.filled', filled::text, false); END $$
SQL
$hog->run($fill);
my $filled = $hog->value(q{SELECT current_setting('pool.filled')});
$hog->run('SELECT pg_advisory_unlock_all()');
$look->run('CREATE EXTENSION advisory_ext');
is($look->value('SELECT exact FROM advisory.pressure'), 1, 'first used late: it can be told how the tables have grown');
my $estimate = $look->value('SELECT locks_estimated FROM advisory.pressure');
ok($estimate <= 1.02 * $filled && $estimate > 0.98 * $filled, "and what fits ($estimate of $filled)");
done_testing();
