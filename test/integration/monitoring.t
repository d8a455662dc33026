#!/usr/bin/env perl
# monitoring/ with Prometheus: two exporters, a server with waits, leaks, full semaphores and the
# like, every metric against the views, every expression of the dashboard and of the alerts on a
# Prometheus that has scraped both. All on loopback.
use CPAN::Meta::YAML;
use AdvisoryTest;
use FindBin;
use HTTP::Tiny;
use JSON::PP qw(decode_json);
use Launch;
use List::Util qw(max min uniq);
use Monitoring;
use Programs;
use Time::HiRes qw(sleep);

my $files = work_dir() . '/monitoring';
my $http = HTTP::Tiny->new(timeout => 20);

sub yaml { return CPAN::Meta::YAML->read_string(slurp("$files/$_[0]"))->[0] }

# ---- The files by themselves ---------------------------------------------------------------------

# query => [query, its columns with their use, server or database]
my $of_postgres = yaml('postgres_exporter.yml');
my %queries = map {
    my ($name, $query) = ($_, $of_postgres->{$_});
    $name => { sql => $query->{query}, by => $query->{master} ? 'server' : 'database',
        columns => { map {
            my ($column) = keys %$_;
            $column => $_->{$column}
        } @{ $query->{metrics} } } };
} keys %$of_postgres;

sub columns ($name, $usage) {
    my $of = $queries{$name}{columns};
    my @columns = sort grep { $of->{$_}{usage} =~ $usage } keys %$of;
    return @columns;
}

my %metrics = map {
    my $name = $_;
    map { ("${name}_$_" => 1) } columns($name, qr/GAUGE|COUNTER/)
} keys %queries;

{
    my $jobs = yaml('sql_exporter.yml')->{jobs};
    my %of_sql = map {
        my $job = $_;
        map { $_->{name} => { %$_, by => $job->{name} =~ s/_.*//r } } @{ $job->{queries} }
    } @$jobs;
    for my $name (sort keys %queries) {
        my $other = delete $of_sql{$name};
        is_deeply([ $other->{query}, $other->{by}, [ sort @{ $other->{labels} // [] } ],
            [ sort @{ $other->{values} } ] ],
            [ $queries{$name}{sql}, $queries{$name}{by}, [ columns($name, qr/LABEL/) ],
                [ columns($name, qr/GAUGE|COUNTER/) ] ],
            "both exporters have the same $name");
        my $of = $queries{$name}{columns};
        my @wrong = grep { ($of->{$_}{usage} eq 'COUNTER') != /_total$/ } keys %$of;
        is_deeply(\@wrong, [], '... whose counters end in _total, and nothing else does');
    }
    is_deeply([ keys %of_sql ], [], 'sql_exporter.yml has no more queries');
}

# Names that an expression uses and no exporter gives.
sub unknown_metrics ($expression) {
    return grep { !$metrics{$_} } $expression =~ /\b(advisory_ext_\w+)\b/g;
}

my $rules = yaml('alerts.yml')->{groups}[0]{rules};
is_deeply([ map { unknown_metrics($_->{expr}) } @$rules ], [],
    'the alerts use metrics that there are');
{
    my $tests = slurp("$files/alerts_test.yml");
    is_deeply([ grep { $tests !~ /alertname="$_"/ } map { $_->{alert} } @$rules ], [],
        'each alert is tested');
    my $page = join '', slurp("$FindBin::Bin/../../doc/monitoring.md");
    my %is_alert = map { $_->{alert} => 1 } @$rules;
    my ($table) = $page =~ /^\| situation.*?\n\|---.*?\n(.*?)\n\n/ms;
    my @named = map { /`([A-Z]\w+)`/g } $table;
    is_deeply([ grep { !$is_alert{"AdvisoryExt$_"} } @named ], [],
        'the page names alerts that there are');
    cmp_ok(scalar @named, '>=', 12, '... and the most important ones');
}

# ---- The dashboard by itself ---------------------------------------------------------------------

my $dashboard = decode_json(slurp("$files/dashboard.json", ':raw'));
my @panels = @{ $dashboard->{panels} };
my @targets = map {
    my $panel = $_;
    map { { %$_, panel => $panel } } @{ $panel->{targets} // [] }
} @panels;
my @variables = @{ $dashboard->{templating}{list} };
{
    my @ids = map { $_->{id} } @panels;
    is(scalar(uniq @ids), scalar @ids, 'ids of panels are unique');
    my %taken;
    my @bad;
    for my $panel (@panels) {
        my ($x, $y, $w, $h) = @{ $panel->{gridPos} }{qw(x y w h)};
        push @bad, "$panel->{title} is too wide" if $x < 0 || $w < 1 || $x + $w > 24;
        for my $column ($x .. $x + $w - 1) {
            push @bad, map { "$panel->{title} is on $taken{$column, $_}" }
                grep { $taken{$column, $_} } $y .. $y + $h - 1;
            $taken{$column, $_} = $panel->{title} for $y .. $y + $h - 1;
        }
        push @bad, "$panel->{title} is a $panel->{type}"
            unless $panel->{type} =~ /^(?:row|stat|gauge|timeseries)$/;
        next if $panel->{type} eq 'row';
        push @bad, "$panel->{title} says nothing of itself" unless $panel->{description};
        push @bad, "$panel->{title} has no target" unless @{ $panel->{targets} };
        push @bad, "$panel->{title}: refIds"
            if uniq(map { $_->{refId} } @{ $panel->{targets} }) != @{ $panel->{targets} };
        push @bad, "$panel->{title}: data source"
            if grep { $_->{datasource}{uid} ne '${datasource}' } $panel, @{ $panel->{targets} };
    }
    push @bad, map { "$_->{panel}{title} has an empty query" } grep { !$_->{expr} } @targets;
    is_deeply(\@bad, [],
        'panels have a place of their own, a description, queries and the variable data source');
    is_deeply([ map { unknown_metrics($_->{expr}) } @targets,
        map { { expr => $_->{query}{query} } } grep { ref $_->{query} } @variables ], [],
        'the dashboard uses metrics that there are');
    my %known = map { $_->{name} => 1 } @variables;
    is_deeply([ grep { !$known{$_} && $_ ne '__rate_interval' }
        map { $_->{expr} =~ /\$(\w+)/g } @targets ], [], '... and variables that there are');
    my $shown = join ' ', map { $_->{expr} } @targets;
    cmp_ok(scalar(grep { $shown =~ /\b$_\b/ } keys %metrics), '>', 30,
        '... and most of the metrics');
}

SKIP: {
    my $modules = node_modules("$FindBin::Bin/node/dashboard/package.json");
    skip "Grafana's types or Node are not here", 2 unless $modules;
    my @check = ({ NODE_PATH => $modules }, 'node', "$FindBin::Bin/node/dashboard/check.js");
    launch(@check, "$files/dashboard.json")->ends(
        0, qr/^\d+ panels checked$/m, "the dashboard is one by Grafana's types");
    spew("$files/wrong.json", slurp("$files/dashboard.json") =~ s/"drawStyle"/"drawStile"/r);
    launch(@check, "$files/wrong.json")->ends(1, qr/drawStile/, '... which find what is not');
}

# ---- promtool ------------------------------------------------------------------------------------

SKIP: {
    skip 'there is no promtool here', 4 unless program('promtool');
    my @lines = grep { /^promtool/ } split /\n/, block(qr/^promtool/m);
    for my $command (@lines, 'promtool check rules monitoring/alerts.yml') {
        command($command)->ends(0, qr/SUCCESS/, $command);
    }
    # The tests would notice.
    my $alerts = slurp("$files/alerts.yml");
    spew("$files/alerts.yml", $alerts =~ s/longest_seconds > 300/longest_seconds > 30/r);
    my ($said, $status) = run_program('promtool', 'test', 'rules', "$files/alerts_test.yml");
    spew("$files/alerts.yml", $alerts);
    like($said, qr/FAILED.*AdvisoryExtLongWait/s,
        'the tests of the alerts fail where an alert is wrong');
}

# ---- What the role sees --------------------------------------------------------------------------

my $scene = Monitoring->new;
my $server = $scene->{server};
my $look = $scene->{look};

# A query's rows as role: { 'name{label="value"}' => value }.
sub rows_as ($session, $name) {
    my @labels = columns($name, qr/LABEL/);
    my @values = columns($name, qr/GAUGE|COUNTER/);
    my %row;
    for my $row (
            @{ $session->rows("SELECT @{[ join ', ', @labels, map { qq{q.$_\::float8} } @values ]}
                FROM ($queries{$name}{sql}) AS q") }) {
        my %of;
        @of{ @labels, @values } = @$row;
        my $labels = join ',', map { qq{$_="$of{$_}"} } grep { $of{$_} ne '' } @labels;
        $row{"${name}_$_" . ($labels ? "{$labels}" : '')} = $of{$_} for @values;
    }
    return \%row;
}

my $monitor = session(server => $server, role => 'advisory_monitor');
$monitor->shows('SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication
    FROM pg_roles WHERE rolname = current_user', 0, 'the role is an ordinary one');
$monitor->shows(q{SELECT string_agg(roleid::regrole::text, ',') FROM pg_auth_members WHERE member =
    'advisory_monitor'::regrole}, 'pg_read_all_stats', '... with one privilege');
is($monitor->value('SHOW statement_timeout'), '5s', '... and a limit for its statements');
{
    # On a server where nobody has used anything yet.
    my %rows = map { %{ rows_as($monitor, $_) } } sort keys %queries;
    is_deeply([ grep { !defined $rows{$_} } sort keys %rows ], [],
        'no metric is null while nothing has happened');
    is_deeply([ grep {
        my $metric = $_;
        !grep { /^\Q$metric\E(?:\{|$)/ } keys %rows
    } sort keys %metrics ], [], '... and each is there');
}

$scene->play;

# What each metric has to be, by the views. Others go by label: of these the list is complete.
my %expected = (
    (map {
        my ($column, $metric) = @$_;
        "advisory_ext_pressure_$metric" => "SELECT $column FROM advisory.pressure"
    } ['percent_used / 100', 'used_ratio'], ['headroom', 'headroom_locks'],
        ['locks_used', 'used_locks'], ['locks_estimated', 'estimated_locks'],
        ['locks_guaranteed', 'guaranteed_locks'], ['holders_used', 'used_holders'],
        ['holders_estimated', 'estimated_holders'],
        ['recommended_max_locks_per_transaction', 'recommended_max_locks_per_transaction'],
        ['exact::int', 'exact']),
    (map {
        ("advisory_ext_pressure_${_}_ratio" => "SELECT setting::float8 / 100 FROM advisory.settings
            WHERE name = 'advisory_ext.pressure_$_'")
    } qw(warning critical)),
    (map {
        (qq{advisory_ext_locks_held{kind="$_"}} => "SELECT count(*) FROM advisory.locks
            WHERE kind = '$_' AND granted")
    } qw(lock semaphore lease foreign)),
    (map { my ($namespace, $kind, $where) = @$_; my $labels = join ',', qq{kind="$kind"},
        $namespace ? qq{namespace="$namespace"} : ();
        (qq(advisory_ext_waits_sessions{$labels}) => "SELECT count(*) FROM advisory.locks
            WHERE NOT granted AND $where",
            qq(advisory_ext_waits_longest_seconds{$labels}) =>
                "SELECT extract(epoch FROM max(waited)) FROM advisory.locks
                    WHERE NOT granted AND $where") }
        ['', 'lock', 'namespace IS NULL'],
        (map { [$_, 'lock', "namespace = '$_'"] } qw(billing stock report payment)),
        ['mail', 'semaphore', q{namespace = 'mail'}]),
    # Of the holders of a semaphore, only the one that has had its slot longest counts.
    (map { my ($state, $where) = ($_->[0], "$_->[1] AND (h.kind <> 'semaphore' OR h.acquired_at = (
            SELECT min(o.acquired_at) FROM advisory.locks o
            WHERE o.kind = 'semaphore' AND o.granted AND o.key = h.key))");
        (qq(advisory_ext_blockers_sessions{state="$state"}) =>
                "SELECT count(DISTINCT coalesce(h.pid, 0)) FROM advisory.locks h
                    JOIN advisory.locks w ON NOT w.granted
                    AND coalesce(h.pid, 0) = ANY (w.blocked_by) WHERE h.granted AND $where",
            qq(advisory_ext_blockers_longest_wait_seconds{state="$state"}) =>
                "SELECT coalesce(extract(epoch FROM max(w.waited)), 0) FROM advisory.locks h
                    JOIN advisory.locks w ON NOT w.granted
                    AND coalesce(h.pid, 0) = ANY (w.blocked_by) WHERE h.granted AND $where") }
        (map { [$_, "h.state = '$_'"] } 'active', 'idle', 'idle in transaction',
            'idle in transaction (aborted)'), ['prepared transaction', 'h.gid IS NOT NULL'],
            ['unknown', 'false']),
    (map { my ($labels, $where) = @$_;
        ("advisory_ext_leaks_locks$labels" => "SELECT count(*) FROM advisory.leaks WHERE $where",
            "advisory_ext_leaks_sessions$labels" => "SELECT count(DISTINCT pid) FROM advisory.leaks
                WHERE $where",
            "advisory_ext_leaks_idle_in_transaction_sessions$labels" => "SELECT count(DISTINCT pid)
                FROM advisory.leaks WHERE state ~ '^idle in transaction' AND $where",
            "advisory_ext_leaks_oldest_seconds$labels" =>
                "SELECT coalesce(extract(epoch FROM max(held)), 0) FROM advisory.leaks
                    WHERE $where") }
        ['', 'namespace IS NULL'], ['{namespace="cache"}', q{namespace = 'cache'}]),
    (map {
        my ($column, $metric) = @$_;
        "advisory_ext_directory_$metric" => "SELECT $column FROM advisory.directory"
    } ['available::int', 'available'], ['names', 'names'], ['max_names', 'max_names'],
        ['evicted', 'evicted_total'], ['not_stored', 'not_stored_total'],
        ['collisions', 'collisions_total']),
);
for my $database ('postgres', 'billing') {
    $expected{"advisory_ext_leases_$_->[0]" . qq({datname="$database"})} =
        ["SELECT $_->[1] FROM advisory.leases", $database]
        for (map { [$_, "count(*) FILTER (WHERE state = '$_')"] } qw(held expired restarted)),
        ['expired_longest_seconds', q{coalesce(extract(epoch
            FROM now() - min(expires_at) FILTER (WHERE state = 'expired')), 0)}],
        ['renewed_for_long', q{count(*) FILTER (WHERE max_hold IS NOT NULL)}];
    for my $namespace ('', @{ $database eq 'postgres' ? ['mail', 'export', 'print'] : [] }) {
        my $labels = join ',', qq{datname="$database"},
            $namespace ? qq{namespace="$namespace"} : ();
        $expected{"advisory_ext_semaphores_$_->[0]\{$labels}"} = [
            "SELECT coalesce($_->[1], 0) FROM advisory.semaphores WHERE namespace = '$namespace'",
            $database]
            for ['used', 'count(*)'], ['slots', 'sum(slots)'], ['slots_in_use', 'sum(in_use)'],
            ['waiting_sessions', 'sum(waiting)'],
            ['full', 'sum((free = 0)::int)'],
            ['full_with_waiters', 'sum((free = 0 AND waiting > 0)::int)'],
            ['slots_disagree', 'sum(slots_disagree::int)'];
    }
    my @namespaces = $database eq 'postgres'
        ? qw(billing report payment cache mail export print jobs leader old) : qw(stock);
    expect_stats($database, $_, "coalesce(namespace, '') = '$_'") for '', @namespaces;
}

sub expect_stats ($database, $namespace, $where) {
    my $labels = join ',', qq{datname="$database"}, $namespace ? qq{namespace="$namespace"} : ();
    $expected{"advisory_ext_stats_$_->[0]\{$labels}"} = [
        "SELECT coalesce($_->[1], 0) FROM advisory.stats WHERE $where", $database]
        for (map { [ "${_}_total", "sum($_)" ] } qw(acquired contended failed timeouts skipped)),
        (map { [ "${_}_seconds_total", "extract(epoch FROM sum(${_}_total))" ],
            [ "longest_${_}_seconds", "extract(epoch FROM max(${_}_max))" ] } qw(wait hold));
    return;
}

my %of = (postgres => $look, billing => session(server => $server, database => 'billing'));
sub by_views {
    return { map {
        my $expected = $expected{$_};
        my ($sql, $database) = ref $expected ? @$expected : ($expected, 'postgres');
        $_ => 0 + ($of{$database}->value($sql) // die "$_: nothing\n");
    } keys %expected };
}

# What of this is less than in any of these looks, or more, or is missing, or too much.
sub differences ($got, @looks) {
    my ($low, $high) = ({}, {});
    for my $series (keys %{ $looks[0] }) {
        $low->{$series} = min(map { $_->{$series} } @looks);
        $high->{$series} = max(map { $_->{$series} } @looks);
    }
    my @bad = map {
        "$_ is " . ($got->{$_} // 'missing') . ", by the views $low->{$_} to $high->{$_}"
    } grep {
        !defined $got->{$_} || $got->{$_} < $low->{$_} - 1e-6 || $got->{$_} > $high->{$_} + 1e-6
    } sort keys %$low;
    return @bad,
        map { "$_ is nothing that was expected" } grep { !exists $low->{$_} } sort keys %$got;
}

my $before = by_views();
for my $case (
    [ 'waits_sessions{kind="lock",namespace="report"}', 2, 'two wait in one namespace' ],
    [ 'blockers_sessions{state="idle in transaction"}', 2,
        'for two that are idle in transaction others wait' ],
    [ 'semaphores_full_with_waiters{datname="postgres",namespace="mail"}', 1,
        'a semaphore is full, and somebody waits' ],
    [ 'semaphores_full{datname="postgres",namespace="print"}', 1, 'another is full' ],
    [ 'semaphores_slots_disagree{datname="postgres",namespace="export"}', 1,
        'of a third the users disagree' ],
    [ 'leaks_locks{namespace="cache"}', 1, 'a lock is forgotten' ],
    [ 'stats_skipped_total{datname="postgres",namespace="jobs"}', 2, 'a job was skipped twice' ],
    [ 'stats_timeouts_total{datname="postgres",namespace="billing"}', 1, 'a wait timed out' ],
    [ 'leases_expired{datname="postgres"}', 2, 'leases have expired' ],
) {
    my ($metric, $value, $what) = @$case;
    is($before->{"advisory_ext_$metric"}, $value, "the scene: $what");
}

{
    my $other = session(server => $server, role => 'advisory_monitor', database => 'billing');
    my $got = { map {
        %{ rows_as($monitor, $_) }, $queries{$_}{by} eq 'database' ? %{ rows_as($other, $_) } : ()
    } keys %queries };
    my @bad = differences($got, $before, by_views());
    is_deeply(\@bad, [], 'the role sees what the views say');

    # A role without any privilege: no errors, the same sums, but neither states nor namespaces.
    my $nobody = session(server => $server, role => 'nobody');
    my $less = { map { %{ rows_as($nobody, $_) } } keys %queries };
    my $blockers = 0;
    $blockers += $before->{$_}
        for grep { /^advisory_ext_blockers_sessions/ && !/prepared/ } keys %$before;
    is($less->{'advisory_ext_blockers_sessions{state="unknown"}'}, $blockers,
        'without the privilege, blockers have no state');
    is($less->{'advisory_ext_blockers_sessions{state="idle in transaction"}'}, 0,
        '... none is idle in transaction');
    is($less->{'advisory_ext_leaks_locks'}, 0, '... there are no leaks');
    my @namespaces = uniq(map { /namespace="(.*?)"/ } keys %$less);
    is_deeply(\@namespaces, ['<insufficient privilege>'], '... namespaces are hidden');
    for my $metric (qw(
            advisory_ext_stats_acquired_total advisory_ext_waits_sessions
            advisory_ext_semaphores_slots_in_use advisory_ext_locks_held)) {
        my ($all, $shown) = map {
            my $rows = $_;
            my $sum = 0;
            $sum += $rows->{$_} for grep { /^\Q$metric\E\{/ && !/datname="billing"/ } keys %$rows;
            $sum
        } $before, $less;
        is($shown, $all, "... the sum of $metric is right");
    }
}

# More than a hundred namespaces are one.
{
    my $session = session(server => $server, database => 'billing');
    $session->run(
        'BEGIN', q{SELECT count(advisory.xact_lock('many' || i, 'x'))
            FROM generate_series(1, 100) AS i}, 'COMMIT');
    my $rows = rows_as(
        session(server => $server, database => 'billing', role => 'advisory_monitor'),
        'advisory_ext_stats');
    is($rows->{'advisory_ext_stats_acquired_total{datname="billing",namespace="(all)"}'}, 101,
        'more than a hundred namespaces have one row');
    is(scalar(keys %$rows), 9, '... and no other');
    # From here on this database has this row only.
    delete @expected{ grep { /^advisory_ext_stats.*datname="billing"/ } keys %expected };
    expect_stats('billing', '(all)', 'true');
}

# ---- The exporters -------------------------------------------------------------------------------

my %port;
my @programs;

# What an exporter says, as { 'name{label="value"}' => value }, under the names and labels that
# prometheus.yml gives them.
sub scrape ($exporter) {
    my $answer = $http->get("http://127.0.0.1:$port{$exporter}/metrics");
    return unless $answer->{success};
    my %got;
    for (split /\n/, $answer->{content}) {
        my ($name, $labels, $value) = /^((?:sql_)?advisory_ext_\w+)\{?(.*?)\}? ([-+.e0-9]+|NaN)$/
            or next;
        my %label = $labels =~ /(\w+)="((?:[^"\\]|\\.)*)"/g;
        delete @label{qw(server driver host database user sql_job)};
        if ($name =~ s/^sql_//) { $name .= '_' . delete $label{col} }
        my $series = $name
            . (%label ? '{'
                . join(',', map { qq{$_="$label{$_}"} } grep { $label{$_} ne '' } sort keys %label)
                . '}' : '');
        $series =~ s/\{\}$//;
        $got{$series} = $value;
    }
    return (\%got, $answer->{content});
}

sub gives_what_views_say ($exporter, $program) {
    my @looks = by_views();
    my @bad;
    my $text;
    eval {
        wait_until("$exporter gives all metrics", sub {
            die "$exporter has ended\n" if $program->is_done;
            (my $got, $text) = scrape($exporter) or return;
            push @looks, by_views();
            @bad = differences($got, @looks);
            sleep 0.2 if @bad;
            return !@bad;
        });
    } or diag($@, join("\n", @bad), "\n", $program->said);
    is_deeply(\@bad, [], "$exporter: each metric is what the views say, and there are no more");
    unlike($text // '', qr/@{[SECRET]}/, "$exporter: no name is told");
    return $text // '';
}

SKIP: {
    skip 'there is no prometheus-postgres-exporter here', 5
        unless program('prometheus-postgres-exporter');
    $port{postgres_exporter} = free_port();
    my $where = "host=$server->{PGHOST} port=$server->{PGPORT} sslmode=disable";
    push @programs,
        my $program = start_block(
            qr/--include-databases/, "--web.listen-address=127.0.0.1:$port{postgres_exporter}",
            'host=/run/postgresql' => $where,
        'monitoring/postgres_exporter.yml' => "$files/quick.yml");
    # Without what is kept for a while.
    spew("$files/quick.yml", slurp("$files/postgres_exporter.yml") =~ s/^ *cache_seconds:.*\n//mgr);
    my $text = gives_what_views_say('postgres_exporter', $program);
    like($text, qr/^# TYPE advisory_ext_stats_acquired_total counter$/m, '... with types');
    like($text, qr/^# HELP advisory_ext_pressure_headroom_locks Further locks/m, '... and help');
    unlike($program->said, qr/advisory_ext_\w+.*(?:err|fail)/i, '... no query fails');
    my ($exclusive) =
        $text =~ /^pg_locks_count\{datname="postgres",mode="exclusivelock"[^}]*\} (\d+)$/m;
    cmp_ok($exclusive, '>=', $look->value(q(SELECT count(*) FROM advisory.locks WHERE database =
        'postgres' AND mode = 'exclusive' AND kind IN ('lock', 'semaphore'))),
        "... its own count of exclusivelock counts locks by name, also those that nobody awaits");

    # The shorter command, with the file as it is.
    $port{short} = free_port();
    push @programs,
        my $short = start_block(
            qr/postgres_exporter\.yml$/, "--web.listen-address=127.0.0.1:$port{short}",
            'host=/run/postgresql' => $where);
    my $seen;
    wait_until('the exporter answers', sub {
        die $short->said if $short->is_done;
        sleep 0.1;
        ($seen) = scrape('short');
        $seen && %$seen
    });
    is_deeply([ grep { /datname="billing"/ } keys %$seen ], [],
        'the shorter command is for one database');
    is($seen->{'advisory_ext_semaphores_slots_in_use{datname="postgres",namespace="mail"}'}, 2,
        '... and gives its metrics');
}

SKIP: {
    skip 'there is no prometheus-sql-exporter here', 2 unless program('prometheus-sql-exporter');
    $port{sql_exporter} = free_port();
    my $other = slurp("$files/sql_exporter.yml") =~ s/interval: \d+s/interval: 1s/gr;
    $other =~ s{(name: "database".*?- "postgres:///)"}{$1"\n      - "postgres:///billing"}s
        or die "which is the database's job?\n";
    spew("$files/quick_sql.yml", $other);
    local $ENV{LOGLEVEL} = 'warn';
    push @programs,
        my $program = start_block(
            qr/prometheus-sql-exporter/, "-web.listen-address 127.0.0.1:$port{sql_exporter}",
        'PGHOST=/run/postgresql' => "PGHOST=$server->{PGHOST} PGPORT=$server->{PGPORT}",
        'monitoring/sql_exporter.yml' => "$files/quick_sql.yml");
    gives_what_views_say('sql_exporter', $program);
}

# ---- Prometheus ----------------------------------------------------------------------------------

SKIP: {
    skip 'there is no Prometheus here', 1 unless program('prometheus');
    skip 'there is no exporter here', 1 unless $port{postgres_exporter} || $port{sql_exporter};
    my %target = (9187 => 'postgres_exporter', 9237 => 'sql_exporter');
    my $config = slurp("$files/prometheus.yml")
        =~ s/(scrape_interval|evaluation_interval): 15s/$1: 1s/gr
        =~ s/alerts\.yml/quick_alerts.yml/r;
    for my $default (keys %target) {
        my $port = $port{ $target{$default} };
        $config =~ s/"localhost:$default"/$port ? qq{"127.0.0.1:$port"} : ''/e
            or die "prometheus.yml does not say $default\n";
    }
    spew("$files/quick_prometheus.yml", $config);
    # At once, and from the first second on.
    spew("$files/quick_alerts.yml",
        slurp("$files/alerts.yml") =~ s/^ *for:.*\n//mgr =~ s/> (?:300|60|3600)$/> 0.001/mgr);
    my $port = $port{prometheus} = free_port();
    push @programs,
        my $program = start_block(
            qr/^prometheus --config/m,
            "--web.listen-address=127.0.0.1:$port "
                . "--storage.tsdb.path='$server->{ADVISORY_EXT_TMP}/prometheus'",
        'monitoring/prometheus.yml' => "$files/quick_prometheus.yml");

    my $ask = sub ($path, %values) {
        my $answer = $http->post_form("http://127.0.0.1:$port/api/v1/$path", \%values);
        return eval { decode_json($answer->{content}) }
            // { status => 'none', error => $answer->{content} };
    };
    my $get = sub {
        my $answer = $http->get("http://127.0.0.1:$port/api/v1/$_[0]");
        return eval { decode_json($answer->{content})->{data} }
    };
    wait_until('Prometheus answers', sub {
        die $program->said if $program->is_done;
        sleep 0.1;
        $http->get("http://127.0.0.1:$port/-/ready")->{success}
    }, 60);

    my $exporters = grep { $port{$_} } values %target;
    my $has = sub ($expression) {
        my $answer = $ask->('query', query => $expression);
        return $answer->{data}{result} // []
    };
    # As Grafana would fill in.
    my $filled = sub ($expression) {
        $expression =~ s/\$__rate_interval\b/30s/g;
        $expression =~ s/\$(?:job|instance|datname|namespace)\b/.*/g;
        return $expression;
    };
    my @expressions =
        map { [ "panel $_->{panel}{title} $_->{refId}", $filled->($_->{expr}) ] } @targets;
    my %open = map { ($_->[0] => $_->[1]) } @expressions;
    eval {
        wait_until('each panel has samples', sub {
            $scene->go_on;
            delete @open{ grep { @{ $has->($open{$_}) } } keys %open };
            sleep 0.3 if %open;
            return !%open;
        }, 60);
    };
    for my $query (@expressions) {
        my ($what, $expression) = @$query;
        my $answer = $ask->('query', query => $expression);
        ok(!exists $open{$what} && $answer->{status} eq 'success', "$what has samples")
            or diag($expression, "\n", $answer->{error} // '');
    }
    is_deeply([ map { $_->{metric}{col} } @{ $has->('{__name__=~"advisory_ext_.*", col!=""}') } ],
        [], 'the label of prometheus-sql-exporter is gone');
    for my $variable (grep { ref $_->{query} } @variables) {
        my ($metric, $label) = $filled->($variable->{query}{query})
            =~ /^label_values\((.*), (\w+)\)$/;
        my $values =
            $get->("label/$label/values?" . $http->www_form_urlencode({ 'match[]' => $metric }));
        ok(@{ $values // [] } > 0, "the variable $variable->{name} has values");
    }

    # Each alert's expression is answered; these fire, by each exporter, and the messages can be
    # made.
    my %firing = map { ("AdvisoryExt$_" => 1) } qw(
        LongWait IdleInTransactionBlocks PreparedTransactionBlocks Leak SemaphoreFull
        SemaphoreSlotsDisagree JobsSkipped LeaseExpired);
    # A namespace that is new has no past to compare with; and whether ten requests timed out
    # depends on how long all this took.
    my %may_fire = map { $_ => 1 } map { "AdvisoryExt$_" } qw(JobStuck Timeouts PoolFillsUp);
    my $alerts;
    my $instances = sub ($name) {
        return scalar(
            uniq(map { $_->{labels}{instance} } grep {
                $_->{labels}{alertname} eq $name && $_->{state} eq 'firing'
            } @$alerts))
    };
    my $wait_for_alerts = sub ($least) {
        eval {
            wait_until('alerts fire', sub {
                sleep 0.2;
                $alerts = $get->('alerts')->{alerts};
                !grep { $instances->($_) < $least } keys %firing
            }, 60)
        };
    };
    $wait_for_alerts->($exporters);
    for my $rule (@$rules) {
        my $name = $rule->{alert};
        is($ask->('query', query => $rule->{expr})->{status}, 'success', "$name is answered");
        next if $may_fire{$name};
        is($instances->($name), $firing{$name} ? $exporters : 0,
            $firing{$name} ? '... and fires' : '... and does not fire');
    }
    my @texts = map { values %{ $_->{annotations} } } @$alerts;
    is_deeply([ grep { /error|no value|%!|\Q@{[SECRET]}\E/i && !/the errors of/ } @texts ], [],
        'the messages of the alerts are whole');
    is_deeply([ grep { ($_->{health} // '') ne 'ok' }
        map { @{ $_->{rules} } } @{ $get->('rules')->{groups} } ], [],
        'Prometheus finds no fault with the rules');

    # Without the extension.
    session(server => $server)->run('DROP EXTENSION advisory_ext CASCADE');
    %firing = map { $_ => 1 } 'AdvisoryExtQueryFails',
        $port{postgres_exporter} ? 'AdvisoryExtMetricsMissing' : ();
    $wait_for_alerts->(1);
    ok($instances->($_), "$_ fires when the extension is gone") for sort keys %firing;
}

$_->kill for @programs;
done_testing();
