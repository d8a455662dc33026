#!/usr/bin/env perl
# Each alert of monitoring/alerts.yml fires for what it is named after: that happens on a server,
# the exporters' queries look at it several times, and promtool gets what they saw. In its time, a
# quarter of an hour lies between two looks, and a second of a wait is more than a day.
use CPAN::Meta::YAML;
use AdvisoryTest;
use Launch;
use Monitoring;
use Programs;
use Time::HiRes qw(sleep);

use constant MINUTES => 15;
use constant LOOKS => 7;    # after the first two, before which nothing happens
use constant SECOND => 100_000;

plan(skip_all => 'there is no promtool here') unless program('promtool');

my $files = work_dir() . '/monitoring';
sub yaml { return CPAN::Meta::YAML->read_string(slurp("$files/$_[0]"))->[0] }
my $queries = yaml('postgres_exporter.yml');
my @alerts = map { $_->{alert} } @{ yaml('alerts.yml')->{groups}[0]{rules} };

my $server;
sub there { return session(server => $server, role => 'app', @_) }
my ($look, $monitor);

sub on_server (@settings) {
    $server = own_server('max_connections=90', 'max_prepared_transactions=2', @settings);
    $look = session(server => $server);
    $look->run('CREATE EXTENSION advisory_ext', 'CREATE ROLE app LOGIN');
    my ($said, $status) = command(
        block(qr/psql -f/), { PGHOST => $server->{PGHOST}, PGPORT => $server->{PGPORT},
            PGUSER => 'postgres', PGDATABASE => 'postgres' })->finish;
    die "grants.sql: $said" if $status;
    # At once: what is idle looks forgotten.
    $look->run('ALTER ROLE advisory_monitor SET advisory_ext.leak_after = 0');
    $monitor = session(server => $server, role => 'advisory_monitor');
    return;
}

# What an exporter would say: { 'name{labels}' => value }.
sub look_at_all {
    my %seen;
    for my $name (sort keys %$queries) {
        my @columns = map { [ %$_ ] } @{ $queries->{$name}{metrics} };
        my @labels = map { $_->[0] } grep { $_->[1]{usage} eq 'LABEL' } @columns;
        my @values = map { $_->[0] } grep { $_->[1]{usage} ne 'LABEL' } @columns;
        my $wanted = join ', ', @labels, map { "q.$_\::float8" } @values;
        for my $row (@{ $monitor->rows("SELECT $wanted FROM ($queries->{$name}{query}) AS q") }) {
            my %of;
            @of{ @labels, @values } = @$row;
            my $labels = join ', ', 'instance="db"', 'job="advisory_ext"',
                map { qq{$_="$of{$_}"} } grep { $of{$_} ne '' } @labels;
            $seen{"${name}_$_\{$labels}"} = $of{$_} * (/_seconds$/ ? SECOND : 1) for @values;
        }
    }
    return \%seen;
}

# Does the alert fire for what these looks saw, and not before it happened?
sub fires ($alert, $what, @looks) {
    my %all = map { %$_ } @looks;
    my $series = '';
    for my $name (sort keys %all, 'up{instance="db", job="advisory_ext"}') {
        my @values = map { $_->{$name} // ($name =~ /^up\{/ ? 1 : '_') } @looks;
        my @between = map {
            my ($from, $to) = @values[ $_ - 1, $_ ];
            map { "$from$to" =~ /_/ ? $to : $from + ($to - $from) * $_ / MINUTES } 1 .. MINUTES
        } 1 .. $#values;
        $series .= "      - series: '$name'\n        values: '@between'\n";
    }
    my $firing = qq(ALERTS{alertname="AdvisoryExt$alert", alertstate="firing"});
    my $test = sub ($minute, $expected) { <<"TEST" };
      - expr: (count($firing) or vector(0)) > bool 0
        eval_time: ${minute}m
        exp_samples: [{labels: '{}', value: $expected}]
TEST
    spew("$files/one_test.yml",
        "rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n"
            . "    input_series:\n$series    promql_expr_test:\n"
            . $test->(MINUTES - 1, 0) . $test->(MINUTES * $#looks - 1, 1));
    my ($said, $status) = run_program('promtool', 'test', 'rules', "$files/one_test.yml");
    is($status, 0, "$alert fires: $what") or diag($said);
    return;
}

my %tested;

# Calls $happens->(number of the look) before each look; the sessions that it returns are ended
# afterwards.
sub case ($alert, $what, $happens) {
    my @looks = (look_at_all(), look_at_all());
    my @sessions = map {
        my @started = grep { ref } $happens->($_);
        sleep 0.02;
        push @looks, look_at_all();
        @started
    } 1 .. LOOKS;
    fires($alert, $what, @looks);
    $tested{"AdvisoryExt$alert"} = 1;
    leave($look, @sessions);
    return;
}

# At the first look, a session that has run these statements; or one for each that waits.
sub once ($step, @statements) { return $step == 1 ? there()->run(@statements) : () }

sub waiting ($step, @statements) {
    return if $step > 1;
    my @waiters = map { there()->start($_) } @statements;
    for my $waiter (@waiters) {
        $look->wait_until('it waits', 'SELECT count(*) FROM advisory.locks
            WHERE pid = ? AND NOT granted AND wait_start IS NOT NULL', $waiter->pid);
    }
    return @waiters;
}

# ---- Waits, holders, leases ----------------------------------------------------------------------

on_server();
case(LongWait => 'a session waits for long', sub ($step) {
    return once($step, q(SELECT advisory.lock('a', 'x'))),
        waiting($step, q(SELECT advisory.lock('a', 'x')));
});
case(ManyWaiters => 'fifty-one wait', sub ($step) {
    return once($step, q(SELECT advisory.lock('a', 'x'))),
        waiting($step, (q(SELECT advisory.lock('a', 'x'))) x 51);
});
case(IdleInTransactionBlocks => 'one waits for a session that is idle', sub ($step) {
    return once($step, 'BEGIN', q(SELECT advisory.xact_lock('a', 'x'))),
        waiting($step, q(SELECT advisory.lock('a', 'x')));
});
case(IdleInTransactionHolds => 'nobody waits for a session that is idle in a transaction',
    sub ($step) { return once($step, 'BEGIN', q(SELECT advisory.xact_lock('a', 'x'))) });
case(PreparedTransactionBlocks => 'one waits for a prepared transaction', sub ($step) {
    leave($look, once($step, 'BEGIN', q(SELECT advisory.xact_lock('a', 'x')),
        q(PREPARE TRANSACTION 'x')));
    return waiting($step, q(SELECT advisory.lock('a', 'x')));
});
$look->run(q(ROLLBACK PREPARED 'x'));
case(Leak => 'a pooled connection keeps a lock',
    sub ($step) { return once($step, q(SELECT advisory.lock('a', 'x'))) });
case(SemaphoreFull => 'one waits for a slot', sub ($step) {
    return once($step, q(SELECT advisory.acquire('a', 's', 1))),
        waiting($step, q(SELECT advisory.acquire('a', 's', 1)));
});
case(SemaphoreSlotsDisagree => 'two give different numbers', sub ($step) {
    return map { once($step, "SELECT advisory.acquire('a', 's', $_)") } 2, 3;
});
case(LeaseExpired => 'nobody ends a lease', sub ($step) {
    $look->run(q(SELECT advisory.lease('a', 'l', '1ms'))) if $step == 1;
    return;
});
$look->run(q(SELECT advisory.break_lease('a', 'l')));
case(LeaseRenewedForLong => 'an owner renews a lease with a max_hold for long', sub ($step) {
    $look->run(q(SELECT advisory.lease('a', 'r', '1 h', max_hold => '9 h')),
        q(SELECT advisory.renew_lease('a', 'r', token) FROM advisory.leases WHERE name = 'r'),
        q(UPDATE advisory._leases SET acquired_at = acquired_at - interval '1 h'))
        if $step == 1;
    return;
});
$look->run(q(SELECT advisory.break_lease('a', 'r')));

# ---- Statistics ----------------------------------------------------------------------------------

case(Timeouts => 'requests time out', sub ($step) {
    my $other = there();
    my @holder = once($step, q(SELECT advisory.lock('times out', 'x')));
    $other->run((q(SELECT advisory.try_lock('times out', 'x', '1ms'))) x 20);
    leave($look, $other);
    return @holder;
});
my $jobs = 0;
for my $is_new (1, 0) {
    my $of = $is_new ? 'new' : 'old';
    # Somebody has the lock, and each of these asks for it again and again.
    for my $job ([ 'JobsSkipped', q(CALL advisory.run('%s', 'x', 'SELECT 1')) ],
        [ 'JobStuck', q(CALL advisory.run('%s', 'x', 'SELECT 1')) ],
        [ 'JobStuck', q(SELECT advisory.try_xact_lock('%s', 'x')) ],
        [ 'JobStuck', q(SELECT advisory.try_xact_lock('%s', 'x', '1ms')) ],
        [ 'JobStuck', q(SELECT advisory.try_xact_acquire('%s', 'x', 1)) ])
    {
        my ($alert, $statement) = @$job;
        my $namespace = 'job ' . ++$jobs;
        my $takes = $statement =~ /acquire/ ? "advisory.xact_acquire('$namespace', 'x', 1)"
            : "advisory.xact_lock('$namespace', 'x')";
        $look->run('SELECT advisory.stats_reset()');
        leave($look, once(1, "SELECT $takes")) unless $is_new;
        case($alert => "$statement, in an $of namespace", sub ($step) {
            my @holder = once($step, 'BEGIN', "SELECT $takes");
            my $other = there()->run(sprintf $statement, $namespace);
            leave($look, $other);
            return @holder;
        });
    }
}

# ---- The lock table ------------------------------------------------------------------------------

my $taken = 0;

# Takes locks until the table is so full.
sub fill ($session, $percent) {
    $session->run(
        sprintf 'SELECT count(pg_advisory_lock(i)) FROM generate_series(%d, %d) AS i',
        $taken + 1, $taken += 50)
        while $look->value('SELECT percent_used FROM advisory.pressure') < $percent;
    return $session;
}
for my $case ([ PoolWarning => 55, 0 ], [ PoolCritical => 80, 0 ], [ PoolFillsUp => 22, 11 ]) {
    my ($alert, $first, $more) = @$case;
    my $filler;
    case($alert => 'locks fill the table', sub ($step) {
        $filler //= there();
        fill($filler, $first + $more * ($step - 1));
        return $step == 1 ? $filler : ();
    });
}

# ---- Names ---------------------------------------------------------------------------------------

on_server('advisory_ext.max_names=100');
case(NamesEvicted => 'old names make room', sub ($step) {
    $look->run("SELECT advisory.lock('name', i), advisory.unlock('name', i)
        FROM generate_series($step * 1000, $step * 1000 + 200) AS i");
    return;
});
case(NamesNotStored => 'all names are in use', sub ($step) {
    return there()->run("SELECT advisory.lock('held', i)
        FROM generate_series($step * 1000, $step * 1000 + 200) AS i");
});
case(KeyCollision => 'two labels have one key', sub ($step) {
    return map { there()->run("SELECT advisory.lock_shared_key($step, label => '$_')") } 'a', 'b';
});

# ---- The exporters -------------------------------------------------------------------------------

my %seen = %{ look_at_all() };
my @well = (\%seen) x 2;
fires('MetricsMissing', 'an exporter has no metrics', @well, ({}) x LOOKS);
for my $error ('pg_exporter_last_scrape_error', 'sql_exporter_last_scrape_failed') {
    my $series = $error . '{instance="db", job="advisory_ext"'
        . ($error =~ /^sql/ ? ', query="advisory_ext_stats"}' : '}');
    fires('QueryFails', $error, (map { { %$_, $series => 0 } } @well),
        ({ %seen, $series => 1 }) x LOOKS);
}
@tested{qw(AdvisoryExtMetricsMissing AdvisoryExtQueryFails)} = (1, 1);

is_deeply([ grep { !$tested{$_} } @alerts ], [], 'each alert has fired');
done_testing();
