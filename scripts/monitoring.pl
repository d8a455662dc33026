#!/usr/bin/env perl
# Writes monitoring/opentelemetry.yml, datadog.yml and pgwatch.yml, with the queries of monitoring/postgres_exporter.yml: `make monitoring-files`.
#
#   scripts/monitoring.pl [FOLDER]      writes them into another folder
use strict;
use warnings;
use CPAN::Meta::YAML;
use FindBin;

my $from = "$FindBin::Bin/../monitoring/postgres_exporter.yml";
my $folder = $ARGV[0] // "$FindBin::Bin/../monitoring";

# The order of the columns is that of the query. (CPAN::Meta::YAML does not keep the indentation of a query.)
my $yaml = CPAN::Meta::YAML->read($from)->[0];
my $text_of_all = do { open my $in, '<', $from or die "$from: $!\n"; local $/ = undef; <$in> };
my %sql = $text_of_all =~ /^(\w+):\n(?:  (?!query).*\n)*  query: \|\n((?:    .*\n)+)/mg;
s/^    //mg for values %sql;
my @queries = map {
    my ($name, $query) = ($_, $yaml->{$_});
    { name => $name, sql => $sql{$name}, by => $query->{master} ? 'server' : 'database', seconds => $query->{cache_seconds} ? 60 : 15,
        columns => [ map { my ($column) = keys %$_; { name => $column, %{ $_->{$column} } } } @{ $query->{metrics} } ] };
} sort keys %$yaml;

sub labels { return grep { $_->{usage} eq 'LABEL' } @{ $_[0]{columns} } }
sub values_of { return grep { $_->{usage} ne 'LABEL' } @{ $_[0]{columns} } }
sub indented { my ($by, $text) = @_; return $text =~ s/^(?=.)/' ' x $by/gmer }

sub spew {
    my ($file, $text) = @_;
    open my $out, '>:encoding(UTF-8)', "$folder/$file" or die "$folder/$file: $!\n";
    print {$out} $text;
    close $out or die "$folder/$file: $!\n";
    return;
}

# ---- OpenTelemetry ---------------------------------------------------------------------------------------------

sub opentelemetry {
    my $text = <<'YAML';
# advisory_ext: configuration of the OpenTelemetry Collector (contrib), with its receiver sqlquery.
#
#   otelcol-contrib --config=opentelemetry.yml
#
# scripts/monitoring.pl writes this file, with the queries of postgres_exporter.yml. See doc/monitoring.md. Exporter prometheus gives
# the metrics the names that the alerts and the dashboard know; use any other exporter instead.
# For another database, copy the receiver sqlquery/database, with another name and datasource.
receivers:
YAML
    my @receivers = (['server', 15], ['server_slow', 60], ['database', 15]);
    for my $receiver (@receivers) {
        my ($name, $seconds) = @$receiver;
        $text .= <<"YAML";
  sqlquery/$name:
    driver: postgres
    datasource: "host=/run/postgresql user=advisory_monitor dbname=postgres sslmode=disable"
    collection_interval: ${seconds}s
    queries:
YAML
        for my $query (grep { $_->{by} eq $name =~ s/_.*//r && $_->{seconds} == $seconds } @queries) {
            my $labels = join '', map { "              - $_->{name}\n" } labels($query);
            $text .= "      - sql: |\n" . indented(10, $query->{sql}) . "        metrics:\n";
            for my $column (values_of($query)) {
                $text .= qq{          - metric_name: "$query->{name}_$column->{name}"\n            value_column: "$column->{name}"\n            value_type: double\n};
                $text .= "            data_type: sum\n            monotonic: true\n            aggregation: cumulative\n" if $column->{usage} eq 'COUNTER';
                $text .= "            attribute_columns:\n$labels" if $labels;
                $text .= qq{            description: "$column->{description}"\n};
            }
        }
    }
    my $all = join "\n", map { "        - sqlquery/$_->[0]" } @receivers;
    return $text . <<"YAML";
exporters:
  prometheus:
    endpoint: "localhost:9464"
service:
  pipelines:
    metrics:
      receivers:
$all
      exporters:
        - prometheus
YAML
}

# ---- Datadog ---------------------------------------------------------------------------------------------------

sub datadog {
    my $text = <<'YAML';
# advisory_ext: custom queries for the Datadog Agent's Postgres integration: a file of conf.d/postgres.d, or a part of its conf.yaml.
#
# scripts/monitoring.pl writes this file, with the queries of postgres_exporter.yml. See doc/monitoring.md.
# A metric is called advisory_ext.pressure.used_ratio. For another database, add an instance with the queries whose first column is datname.
init_config:
instances:
  - host: localhost
    port: 5432
    username: advisory_monitor
    dbname: postgres
    only_custom_queries: true
    custom_queries:
YAML
    for my $query (@queries) {
        $text .= '      - metric_prefix: ' . ($query->{name} =~ s/^advisory_ext_/advisory_ext./r) . "\n        query: |\n" . indented(10, $query->{sql}) . "        columns:\n";
        my %type = (LABEL => 'tag', GAUGE => 'gauge', COUNTER => 'monotonic_count');
        $text .= "          - name: $_->{name}\n            type: $type{ $_->{usage} }\n" for @{ $query->{columns} };
        $text .= "        collection_interval: $query->{seconds}\n" if $query->{seconds} > 15;
    }
    return $text;
}

# ---- pgwatch ---------------------------------------------------------------------------------------------------

sub pgwatch {
    my $text = <<'YAML';
# advisory_ext: metrics for pgwatch 3 and later.
#
#   pgwatch --metrics=FOLDER --sources=FILE
#
# scripts/monitoring.pl writes this file, with the queries of postgres_exporter.yml. See doc/monitoring.md. FOLDER contains this file and,
# if you want them, pgwatch's own metrics.yaml, which --metrics replaces. Name the preset advisory_ext in the source.
metrics:
YAML
    for my $query (@queries) {
        my @columns = ('(extract(epoch FROM now()) * 1e9)::int8 AS epoch_ns', (map { qq{"$_->{name}" AS tag_$_->{name}} } labels($query)),
            map { qq{"$_->{name}"::float8} } values_of($query));
        my @gauges = map { $_->{name} } grep { $_->{usage} eq 'GAUGE' } values_of($query);
        $text .= "  $query->{name}:\n    sqls:\n      15: |\n" . indented(8, 'SELECT ' . join(",\n       ", @columns) . "\nFROM (\n" . indented(4, $query->{sql}) . ") AS q\n");
        $text .= "    gauges:\n" . join('', map { "      - $_\n" } @gauges);
        $text .= "    is_instance_level: true\n" if $query->{by} eq 'server';
    }
    $text .= "presets:\n  advisory_ext:\n    description: advisory locks, by the extension advisory_ext\n    metrics:\n";
    return $text . join '', map { "      $_->{name}: $_->{seconds}\n" } @queries;
}

spew('opentelemetry.yml', opentelemetry());
spew('datadog.yml', datadog());
spew('pgwatch.yml', pgwatch());
