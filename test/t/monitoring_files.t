#!/usr/bin/env perl
# monitoring/opentelemetry.yml, datadog.yml and pgwatch.yml: they are as scripts/monitoring.pl writes them, have only the fields that the
# documents of these programs describe, and each query runs as the role of grants.sql and has the columns that the file names.
# (The receiver sqlquery's README of the collector 0.130, Datadog's postgres.d/conf.yaml.example of October 2026, pgwatch 3's metrics/types.go.)
use strict;
use warnings;
use CPAN::Meta::YAML;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

my $root = "$FindBin::Bin/../..";
my $database = create_database();
system("$ENV{PG_BINDIR}/psql", '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$root/monitoring/grants.sql", $database) == 0 or die "grants.sql fails\n";
my $monitor = session(role => 'advisory_monitor');

sub slurp { open my $file, '<', $_[0] or die "$_[0]: $!\n"; local $/ = undef; return scalar <$file> }
sub yaml { return CPAN::Meta::YAML->read("$root/monitoring/$_[0].yml")->[0] }
sub keys_of { return join ' ', sort keys %{ $_[0] } }

my @files = qw(opentelemetry datadog pgwatch);
{
    my $new = "$ENV{ADVISORY_EXT_TMP}/monitoring.$$";
    mkdir $new or die "$new: $!\n";
    is(system($^X, "$root/scripts/monitoring.pl", $new), 0, 'scripts/monitoring.pl runs');
    is(slurp("$root/monitoring/$_.yml"), slurp("$new/$_.yml"), "$_.yml is as make monitoring-files writes it") for @files;
}

# The queries that all of them have to have: name => [query, its columns in the order of the file, gauge, counter or label].
my $of_postgres = yaml('postgres_exporter');
my %wanted = map { my $query = $of_postgres->{$_};
    $_ => [ $query->{query}, [ map { my ($name) = keys %$_; [ $name, lc $_->{$name}{usage} ] } @{ $query->{metrics} } ] ] } keys %$of_postgres;
my @names = sort keys %wanted;

# The names and types of a query's columns.
sub columns_of {
    my ($sql) = @_;
    my $sth = $monitor->dbh->prepare($sql);
    $sth->execute or die $sth->errstr;
    return map { [ $sth->{NAME}[$_], $sth->{pg_type}[$_] ] } 0 .. $#{ $sth->{NAME} };
}
for my $name (@names) {
    my ($sql, $columns) = @{ $wanted{$name} };
    is_deeply([ map { $_->[0] } columns_of($sql) ], [ map { $_->[0] } @$columns ], "$name has its columns in the order of the file");
}

# ---- The OpenTelemetry Collector -------------------------------------------------------------------------------

{
    my $text = slurp("$root/monitoring/opentelemetry.yml");
    unlike($text, qr/\$/, 'opentelemetry.yml has no $, for which the collector would look into its environment');
    my $config = yaml('opentelemetry');
    is(keys_of($config), 'exporters receivers service', '... is a whole configuration');
    is_deeply([ sort @{ $config->{service}{pipelines}{metrics}{receivers} } ], [ sort keys %{ $config->{receivers} } ], '... that uses each of its receivers');
    my (%seen, @bad, %sql);
    for my $receiver (values %{ $config->{receivers} }) {
        push @bad, keys_of($receiver) if keys_of($receiver) ne 'collection_interval datasource driver queries' || $receiver->{driver} ne 'postgres';
        for my $query (@{ $receiver->{queries} }) {
            $sql{ $query->{sql} }++;
            push @bad, keys_of($query) if keys_of($query) ne 'metrics sql';
            for my $metric (@{ $query->{metrics} }) {
                push @bad, "$metric->{metric_name}: $_" for grep { !/^(?:metric_name|value_column|value_type|data_type|monotonic|aggregation|attribute_columns|description)$/ } keys %$metric;
                $seen{ $metric->{metric_name} } = join ' ', $metric->{data_type} // 'gauge', $metric->{monotonic} // 'false', sort @{ $metric->{attribute_columns} // [] };
            }
        }
    }
    is_deeply(\@bad, [], '... has fields that there are');
    is_deeply(\%sql, { map { $wanted{$_}[0] => 1 } @names }, '... has the same queries');
    my %expected;
    for my $name (@names) {
        my @labels = sort map { $_->[0] } grep { $_->[1] eq 'label' } @{ $wanted{$name}[1] };
        $expected{"${name}_$_->[0]"} = join ' ', $_->[1] eq 'counter' ? 'sum true' : 'gauge false', @labels for grep { $_->[1] ne 'label' } @{ $wanted{$name}[1] };
    }
    is_deeply(\%seen, \%expected, '... and the same metrics, with types and labels');
}

# ---- Datadog ---------------------------------------------------------------------------------------------------

{
    my $config = yaml('datadog');
    is(keys_of($config), 'init_config instances', 'datadog.yml has both parts');
    my ($instance) = @{ $config->{instances} };
    is(keys_of($instance), 'custom_queries dbname host only_custom_queries port username', '... has fields that there are');
    my %type = (label => 'tag', gauge => 'gauge', counter => 'monotonic_count');
    my @got = map { [ $_->{metric_prefix} =~ s/^advisory_ext\./advisory_ext_/r, $_->{query}, map { "$_->{name} $_->{type}" } @{ $_->{columns} } ] } @{ $instance->{custom_queries} };
    is_deeply(\@got, [ map { my ($sql, $columns) = @{ $wanted{$_} }; [ $_, $sql, map { "$_->[0] $type{ $_->[1] }" } @$columns ] } @names ], '... has the same queries, columns and types');
    is_deeply([ grep { !/^(?:collection_interval )?columns metric_prefix query$/ } map { keys_of($_) } @{ $instance->{custom_queries} } ], [], '... with fields that there are');
}

# ---- pgwatch ---------------------------------------------------------------------------------------------------

{
    my $config = yaml('pgwatch');
    is(keys_of($config), 'metrics presets', 'pgwatch.yml has both parts');
    is_deeply([ map { sort keys %{ $_->{metrics} } } $config, $config->{presets}{advisory_ext} ], [ @names, @names ], '... has all metrics, and a preset with them');
    for my $name (@names) {
        my $metric = $config->{metrics}{$name};
        my ($sql, $columns) = @{ $wanted{$name} };
        like(keys_of($metric), qr/^gauges (?:is_instance_level )?sqls$/, "$name has fields that there are");
        # Not each version of CPAN::Meta::YAML keeps the indentation.
        my ($whole, $part) = map { s/\s+/ /gr } $metric->{sqls}{15}, $sql;
        like($whole, qr/\Q$part\E/, '... and the same query');
        is_deeply([ columns_of($metric->{sqls}{15}) ], [ [ 'epoch_ns', 'int8' ], (map { [ "tag_$_->[0]", 'text' ] } grep { $_->[1] eq 'label' } @$columns),
            map { [ $_->[0], 'float8' ] } grep { $_->[1] ne 'label' } @$columns ], '... with columns and types that pgwatch knows');
        is_deeply($metric->{gauges}, [ map { $_->[0] } grep { $_->[1] eq 'gauge' } @$columns ], '... of which the rest are counters');
    }
}

done_testing();
