#!/usr/bin/env perl
# monitoring/ without Prometheus: the names for psql, the check for Nagios and others,
# check_postgres. And every block of doc/monitoring.md is run by some test.
use AdvisoryTest;
use FindBin;
use Launch;
use Monitoring;
use Programs;
use Psql;

my $scene = Monitoring->new;
my $server = $scene->{server};
my $look = $scene->{look};
my $secret = SECRET;

# ---- The page ------------------------------------------------------------------------------------

# By monitoring.t and here; the others are what the check may print.
my @run = (qr/^psql -f monitoring\/grants\.sql$/, qr/^psql -c "ALTER ROLE/,
    qr/prometheus-postgres-exporter/, qr/prometheus-sql-exporter/, qr/^promtool/,
    qr/^prometheus --config/,
    qr/^\\i monitoring/, qr/^:activity/m, qr/^\\watch/m,
    qr/^examples\/monitoring\/check_advisory\.sh/, qr/^check_postgres --action=custom/,
    qr/^check_postgres --action=locks/, qr/^ADVISORY WARNING/);
for my $block (blocks()) {
    my ($language, $text) = @$block;
    ok(1 == (grep { $text =~ $_ } @run), "a block of $language is run: " . $text =~ s/\n.*//sr);
}
{
    command(block(qr/^psql -c/), $scene->environment('postgres'))->ends(
        0, qr/^ALTER ROLE$/m, "the page sets a role's leak_after");
    is(session(server => $server, role => 'advisory_monitor')
        ->value(q{SELECT setting FROM advisory.settings WHERE name = 'advisory_ext.leak_after'}),
        '3600', '... which it has then');
    $look->run('ALTER ROLE advisory_monitor RESET advisory_ext.leak_after');
}

# ---- psql ----------------------------------------------------------------------------------------

# What a psql as the role prints that reads this: by \i in the directory, as the page says.
sub psql ($lines, %environment) {
    my $file = spew(scratch() . '/lines.sql', $lines);
    my $no_file = $environment{PSQLRC} ? '' : '-X';
    my ($said, $status) = command(
        "exec psql $no_file -v ON_ERROR_STOP=1 -P pager=off -f '$file'",
        $scene->environment('advisory_monitor', %environment))->finish;
    is($status, 0, 'psql reads it: ' . $lines =~ s/\n.*//sr) or diag($said);
    return $said;
}

my @names = slurp(work_dir() . '/monitoring/psqlrc') =~ /^\\set (\w+) /mg;
my ($page) = slurp("$FindBin::Bin/../../doc/monitoring.md");
is_deeply([ grep { $page !~ /`:$_`/ } @names ], [], 'the page names each of the short names');
my ($comment) = slurp(work_dir() . '/monitoring/psqlrc') =~ /\A((?:--.*\n)+)/;
is_deeply([ grep { $comment !~ /:$_\b/ } @names ], [], '... and so does the file');
is_deeply([ sort @names ],
    [ sort qw(activity blockers locks waits tree pressure backends leaks semaphores stats leases) ],
    '... which are these');

my $read = '\i monitoring/psqlrc' . "\n";
my $empty = psql($read . join '', map { ":$_\n" } @names);
is(() = $empty =~ /^\(\d+ rows?\)$/mg, scalar @names,
    'each gives a result where nothing is going on');

$scene->play;
my ($waiter, $holder) = map {
    $look->rows("SELECT pid FROM advisory.locks WHERE namespace = 'billing' AND $_")->[0][0]
} 'NOT granted', 'granted';
my $remedy =
    qr/SELECT advisory\.terminate_holder\('billing', '$secret', $holder, kind => 'lock'\);/;
my %shows = (
    activity => qr{billing/cu\S*secret .*\| exclusive *\| *$waiter .*\| *$holder\b},
    blockers => qr/^pid +\| $holder\n(?:.*\n)*remedy +\| $remedy/m,
    locks => qr/^ *$waiter .*\| billing *\| $secret .*\{$holder\}/m,
    waits => qr/^ *$waiter *\| *$holder \| billing/m,
    tree => qr/$holder\b.*billing.*\n.*\b$waiter\b/, pressure => qr/^ ok +\|/m,
    backends => qr/^ *$holder \| app/m,
    leaks => qr/cache *\| $secret .*now serves "next"/,
    semaphores => qr/^ mail +\| $secret \| +2 \| +2 \| +0 \| +1/m,
    stats => qr/^ billing +\| $secret/m, leases => qr/^ old +\| 1 .*\| expired/m,
);
for my $name (@names) {
    like(psql("$read:$name\n"), $shows{$name}, ":$name shows it");
}
like(psql(":tree\n", PSQLRC => work_dir() . '/monitoring/psqlrc'), $shows{tree},
    'the file can be the PSQLRC');
like(psql(block(qr/^\\i /m) . block(qr/^:activity/m)), $shows{activity}, 'as the page says');
{
    local %ENV = (%ENV, PGUSER => 'advisory_monitor');
    my $psql = Psql->new(server => { %$server, PGUSER => 'advisory_monitor' });
    $psql->run('\cd ' . work_dir() . "\n$read");
    $psql->start(block(qr/^\\watch/m));
    wait_until('psql has looked three times', sub {
        $psql->is_done(0.2);
        3 <= (() = $psql->{seen} =~ /\b$waiter\b/g)
    });
    pass('\watch looks again and again');
    $psql->quit('KILL');
}

# ---- The check -----------------------------------------------------------------------------------

my $check = work_dir() . '/examples/monitoring/check_advisory.sh';

# Its exit code and what it prints, called by /bin/sh.
sub check (@arguments) {
    return reverse run_program($scene->environment('advisory_monitor'), 'sh', $check, @arguments);
}

sub gives ($code, $text, @arguments) {
    my ($status, $said) = check(@arguments);
    my $what = join ' ', 'check_advisory.sh', @arguments;
    is($status, $code, "$what: exit code") or diag($said);
    like($said, $text, '... and text');
    my $word = qw(OK WARNING CRITICAL UNKNOWN) [$code];
    my $datum = qr/'?\w+'?=-?[\d.]+(?:%|s)?;[^; ]*;[^; ]*;[\d.]*;[\d.]*/;
    like($said, qr/\AADVISORY $word - [^|\n]+(?:\| (?:$datum ?)+)?\n\z/,
        '... is one line, by the guidelines');
    is($said =~ /\|/ ? 1 : 0, $code == 3 ? 0 : 1, '... with performance data where it knows any');
    unlike($said, qr/$secret/, '... without names');
    return $said;
}

my $number = qr/\d+(?:\.\d+)?/;
gives(0, qr{lock\ table\ $number%\ full,\ \d+\ of\ \d+\ locks\ \|
    \ pool=$number%;50;75;0;100\ locks=\d+;;;0;\d+\ headroom=\d+;;;0;\n}x, 'pool');
gives(1, qr/;~:-1;75;/, 'pool', '-w', '~:-1', '-c', '75');
gives(2, qr/;50;\@0:100;/, 'pool', '-c', '@0:100');
gives(2, qr/;0:;90:100;/, 'pool', '-w', '0:', '-c', '90:100');
$look->run('ALTER ROLE advisory_monitor SET advisory_ext.pressure_warning = 41');
gives(0, qr/;41;75;0;100/, 'pool');
$look->run('ALTER ROLE advisory_monitor RESET advisory_ext.pressure_warning');

gives(0, qr{7\ waiting\ for\ advisory\ locks,\ the\ longest\ for\ \d+\ s,\ root\ \d+\ \|
    \ waits=\d+s;1000;2000;0;\ waiting=7;;;0;}x, 'waits', '-w', '1000', '-c', '2000');
gives(1, qr/waits=/, 'waits', '-w', '1000:', '-c', '2000');
gives(2, qr/waits=/, 'waits', '-w', '1000', '-c', '2000:');

gives(1, qr{locks\ that\ look\ forgotten:\ 1,\ in\ sessions:\ 1,\ such\ as\ process\ \d+\ \|
    \ leaks=1;0;100;0;\ sessions=1;;;0;}x, 'leaks');
gives(0, qr/leaks=1;5;10;0;/, 'leaks', '-w', '5', '-c', '10');
gives(2, qr/leaks=1;0;0;0;/, 'leaks', '-c', '0');
gives(0, qr/no lock looks forgotten/, 'leaks', '-U', 'nobody');
my ($before) = gives(0, qr/leaks=/, 'leaks', '-w', '1000', '-c', '1000') =~ /leaks=(\d+)/;
my $after;
wait_until('more look forgotten', sub {
    (undef, my $said) = check('leaks', '-l', '1s');
    ($after) = $said =~ /leaks=(\d+)/;
    $after > $before
});
cmp_ok($after, '>', $before, '-l says after what time a lock is forgotten');

# What cannot be.
gives(3, qr/a mode is missing/);
gives(3, qr/no such mode: locks/, 'locks');
gives(3, qr/no such option: -x/, 'pool', '-x');
gives(3, qr/-w: a value is missing/, 'pool', '-w');
gives(3, qr/not a range: $_/, 'pool', '-w', $_) for 'many', '5:1', '1:2:3', '-', '%';
gives(3, qr/not a number: soon/, 'pool', '-t', 'soon');
gives(3, qr/invalid value for parameter/, 'leaks', '-l', 'soon');
gives(3, qr/connection to server/, 'pool', '-H', $server->{PGHOST}, '-p', '1');
gives(3, qr/"no\/thing" does not exist/, 'pool', '-d', 'no|thing');
gives(3, qr{this database does not have the extension advisory_ext \(choose one with -d\)}, 'pool',
    '-d', 'template1');
for my $option (qw(--help -h)) {
    my ($status, $said) = check($option);
    is($status, 0, "$option: exit code");
    like($said, qr/\AUsage: check_advisory\.sh MODE .*^ +pool .*^ +waits .*^ +leaks .*UNKNOWN/ms,
        '... and help');
}
like((check('--version'))[1], qr/\Acheck_advisory\.sh \d+\.\d+/, '--version');

# A server that does not answer in time: somebody has locked a table that the query needs.
{
    my $keeper = session(server => $server)
        ->run('BEGIN', 'LOCK TABLE advisory.pressure IN ACCESS EXCLUSIVE MODE');
    gives(3, qr/timeout/, 'pool', '-t', '1');
    $keeper->run('ROLLBACK');
}

for my $command (grep { /\S/ } split /\n/, block(qr/^examples\/monitoring/)) {
    my ($said, $status) = command($command, $scene->environment('postgres'))->finish;
    like($status, qr/^[012]$/, "the page: $command") or diag($said);
}
{
    my ($example) = map { $_->[1] } grep { $_->[0] eq 'text' } blocks();
    my ($status, $said) = check('waits', '-w', '0', '-c', '3000');
    my ($shape, $shown) = map { s/\d+/N/gr } $said, $example;
    $shape =~ s/;N;N;/;;;/, $shown =~ s/;N;N;/;;;/;
    is($status == 0 ? $shape =~ s/OK/WARNING/r : $shape, $shown, 'it prints what the page shows');
}

SKIP: {
    skip 'there is no check_postgres here', 6 unless program('check_postgres');
    my $command = block(qr/^check_postgres --action=custom/) =~ s/\s+\z//r;
    my $environment = $scene->environment('advisory_monitor');
    command($command, $environment)->ends(
        0, qr/^POSTGRES_CUSTOM_QUERY OK: .* 0 \|/, 'check_postgres says how full it is');
    command($command =~ s/round\(percent_used\)/80/r, $environment)->ends(
        2, qr/^POSTGRES_CUSTOM_QUERY CRITICAL/, '... and critical above');

    # The check of locks that it has itself.
    my ($held, $awaited) = @{ $look->rows(q(SELECT count(*) FILTER (WHERE granted),
        count(*) FILTER (WHERE NOT granted) FROM pg_locks
        JOIN pg_database AS d ON d.oid = database AND datname = 'postgres'
        WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'))->[0] };
    cmp_ok($held, '>', $awaited, 'most exclusive locks are held and not awaited');
    command("check_postgres --action=locks --dbname=postgres --warning=100 --critical='exclusive="
        . ($held + $awaited) . q('), $environment)->ends(2,
        qr/postgres\.exclusive=@{[ $held + $awaited ]}\b/, 'its action locks counts all of them');
    command(block(qr/--action=locks/) =~ s/\s+\z//r, $environment)->ends(
        1, qr/postgres\.waiting=\d/, 'as on the page, it counts those that are awaited');
}

SKIP: {
    my ($queries) = glob '/usr/lib/python3/dist-packages/pgactivity/queries';
    skip 'there is no pg_activity here', 2 unless $queries;
    my %rows = map {
        my $query = slurp("$queries/get_${_}.sql");
        $query =~ s/%\(dbname_filter\)s/NULL::text/g;
        $query =~ s/%\(min_duration\)s/0/g;
        $query =~ s/\{duration_column\}/query_start/g;
        $_ => $look->rows($query)
    } qw(waiting_post_090200 blocking_post_090600);
    cmp_ok(scalar @{ $rows{waiting_post_090200} }, '>', 3,
        'pg_activity shows sessions that wait for advisory locks');
    is_deeply([ grep { "@$_[7]" eq 'advisory' } @{ $rows{blocking_post_090600} } ], [],
        '... and does not show whom they wait for');
}

done_testing();
