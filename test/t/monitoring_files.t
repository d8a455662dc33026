#!/usr/bin/env perl
# The queries of monitoring/postgres_exporter.yml run as the role of grants.sql, and have the
# columns that the file names, in its order. (test/integration/monitoring.t compares what they
# return, with the real exporters, which make test does not have.) More than 100 namespaces are one
# row. grants.sql leaves a role alone that it did not make.
use CPAN::Meta::YAML;
use FindBin;
use AdvisoryTest;

my $files = "$FindBin::Bin/../../monitoring";
my $server = own_server('max_connections=150');
sub there (@how) { return session(server => $server, @how) }
my $super = there()->run('CREATE EXTENSION advisory_ext');

# What psql says, and whether it succeeds.
sub grants () {
    local @ENV{qw(PGHOST PGPORT PGUSER)} = @{$server}{qw(PGHOST PGPORT PGUSER)};
    my $said = qx('$ENV{PG_BINDIR}/psql' -XqAt -f '$files/grants.sql' postgres 2>&1 </dev/null);
    return ($? == 0, $said);
}

$super->run(q(CREATE ROLE advisory_monitor LOGIN PASSWORD 'known to somebody'));
my ($succeeds, $said) = grants();
ok(!$succeeds, 'grants.sql stops if somebody else has made the role');
like($said, qr/role "advisory_monitor" already exists, and this script did not make it/,
    '... and says so');
$super->shows(q(SELECT pg_has_role('advisory_monitor', 'pg_read_all_stats', 'MEMBER'), rolconfig
    FROM pg_roles WHERE rolname = 'advisory_monitor'), '0|NULL', '... which gets nothing');
$super->run('DROP ROLE advisory_monitor');
is_deeply([ grants() ], [ 1, '' ], 'grants.sql makes the role');
is_deeply([ grants() ], [ 1, '' ], '... and can run again');
my $monitor = there(role => 'advisory_monitor');
my $queries = CPAN::Meta::YAML->read("$files/postgres_exporter.yml")->[0];
for my $name (sort keys %{$queries}) {
    my $sth = $monitor->dbh->prepare($queries->{$name}{query});
    $sth->execute or die "$name: ", $sth->errstr, "\n";
    is_deeply($sth->{NAME}, [ map { keys %{$_} } @{ $queries->{$name}{metrics} } ],
        "$name has its columns in order");
}

# ---- Many namespaces -----------------------------------------------------------------------------

# Each of them has a lock with a waiter, and a semaphore with a slot taken.
sub take ($holder, @numbers) {
    $holder->run(map { ("SELECT advisory.lock('series $_', 'lock')",
        "SELECT advisory.acquire('series $_', 'semaphore', 1)") } @numbers);
    return;
}

my @folding = map { "advisory_ext_$_" } qw(leaks semaphores stats waits);
is_deeply([ grep { $queries->{$_}{query} =~ /'\(all\)'/ } sort keys %{$queries} ], \@folding,
    'these show namespaces');
my $holder = there();
$monitor->run('SET advisory_ext.leak_after = 0');
$super->run('SELECT advisory.stats_reset()');
# One row more is always there, for what has no namespace.
take($holder, 1 .. 99);
my @waiters = map { there()->start("SELECT advisory.lock('series $_', 'lock')") } 1 .. 99;
waits($super, $_) for @waiters;
for my $query (@folding) {
    is(scalar grep({ /^series / } $monitor->column(
        "SELECT namespace FROM ($queries->{$query}{query}) AS q")), 99,
        "$query shows 100 namespaces");
}
take($holder, 100, 101);
push @waiters, map { there()->start("SELECT advisory.lock('series $_', 'lock')") } 100, 101;
waits($super, $_) for @waiters[-2, -1];
for my $query (@folding) {
    $monitor->shows("SELECT DISTINCT namespace FROM ($queries->{$query}{query}) AS q", '(all)',
        '... and more as one');
}
$monitor->shows("SELECT sum(sessions) FROM ($queries->{advisory_ext_waits}{query}) AS q", 101,
    '... with all their waiters');
$holder->run('SELECT pg_advisory_unlock_all()');
$_->finish for @waiters;
done_testing();
