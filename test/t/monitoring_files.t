#!/usr/bin/env perl
# The queries of monitoring/postgres_exporter.yml run as the role of grants.sql, and have the
# columns that the file names, in its order. (test/integration/monitoring.t compares what they
# return, with the real exporters, which make test does not have.)
use CPAN::Meta::YAML;
use FindBin;
use AdvisoryTest;

my $files = "$FindBin::Bin/../../monitoring";
my $database = create_database();
system("$ENV{PG_BINDIR}/psql", qw(-XqAt -v ON_ERROR_STOP=1 -o /dev/null -f), "$files/grants.sql",
    $database) == 0
    or die "grants.sql fails\n";
my $monitor = session(role => 'advisory_monitor');
my $queries = CPAN::Meta::YAML->read("$files/postgres_exporter.yml")->[0];
for my $name (sort keys %{$queries}) {
    my $sth = $monitor->dbh->prepare($queries->{$name}{query});
    $sth->execute or die "$name: ", $sth->errstr, "\n";
    is_deeply($sth->{NAME}, [ map { keys %{$_} } @{ $queries->{$name}{metrics} } ],
        "$name has its columns in order");
}
done_testing();
