#!/usr/bin/env perl
# The package for Python: packed into a wheel, installed from that into an empty folder, and its own
# tests run from there, with psycopg 3 and psycopg2, against the extension and the portable edition,
# through PgBouncer, and while a server is killed. Its examples do what they say.
use AdvisoryTest;
use Cwd qw(abs_path);
use File::Path qw(make_path);
use FindBin;
use JSON::PP;
use Launch;
use PgBouncer;
use Programs;

plan skip_all => 'there is no PgBouncer here' unless pgbouncer();
my $python = python('psycopg', 'psycopg2', 'psycopg_pool', 'pip', 'wheel')
    or plan skip_all => 'Python is not here with psycopg, psycopg2, psycopg_pool, pip and wheel';

my $repository = abs_path("$FindBin::Bin/../..");

# ---- Packed and installed ------------------------------------------------------------------------

# Packing leaves files beside the sources, so it happens in a copy.
my $work = scratch() . '/package';
my $installed = scratch() . '/installed';
my $elsewhere = scratch() . '/elsewhere';
make_path($installed, $elsewhere);
system('cp', '-r', "$repository/clients/python", $work) == 0 or die "cannot copy the package\n";
my @pip = ($python, '-m', 'pip', '--quiet', '--disable-pip-version-check');
launch(@pip, 'wheel', '--no-build-isolation', '--no-deps', '--no-index', '-w', scratch(), $work)
    ->ends(0, qr//, 'it is packed');
my ($wheel, @others) = glob scratch() . '/*.whl';
is_deeply(\@others, [], 'into one file');

my ($version) =
    slurp("$repository/advisory_ext.control") =~ /^default_version = '(\d+[.]\d+(?:[.]\d+)?)'/m;
$version .= '.0' if $version =~ /\A\d+[.]\d+\z/;
like($wheel, qr{/advisory_ext-\Q$version\E-py3-none-any[.]whl\z},
    'that has the version of the extension');
my @files = grep { !/dist-info/ } map { m{^(advisory_ext\S+)} } `$python -m zipfile -l '$wheel'`;
my @sources = map { s{.*/src/}{}r } glob "$repository/clients/python/src/advisory_ext/*.*";
is_deeply([ sort @files ], [ sort @sources ], '... and all of the package, nothing else');
is(slurp("$repository/clients/python/LICENSE"), slurp("$repository/LICENSE"), '... our licence');

launch(@pip, 'install', '--no-deps', '--no-index', '--target', $installed, $wheel)
    ->ends(0, qr//, 'it is installed from that file');
my @copied = map { "$work/$_" } qw(tests examples README.md);
system('cp', '-r', @copied, $elsewhere) == 0 or die "cannot copy the tests\n";
my $package = { PYTHONPATH => $installed };

sub python_with ($environment, @arguments) {
    return launch({ %$package, %$environment },
        'env', '-C', "$elsewhere/tests", $python, @arguments);
}

python_with({}, '-c', 'import advisory_ext; print(advisory_ext.__file__)')
    ->ends(0, "$installed/advisory_ext/__init__.py\n", '... which is what the tests import');

# ---- Its own tests -------------------------------------------------------------------------------

my %POOLERS = (
    transaction   => { pool_mode => 'transaction', default_pool_size => 3 },
    'one server'  => { pool_mode => 'transaction', default_pool_size => 1 },
    'in turn'     => { pool_mode => 'transaction', default_pool_size => 4, min_pool_size => 4,
        server_round_robin => 1 },
    session       => { pool_mode => 'session', default_pool_size => 4 },
    'one session' => { pool_mode => 'session', default_pool_size => 1 },
);
my %pooler = map { $_ => PgBouncer->new(\%ENV, %{ $POOLERS{$_} }) } keys %POOLERS;

sub through ($name, $database) {
    my $pooler = $pooler{$name};
    return "host=$pooler->{PGHOST} port=$pooler->{PGPORT} user=$pooler->{PGUSER} dbname=$database";
}

my %tests;
for my $driver ('psycopg', 'psycopg2') {
    for my $edition ('extension', 'portable edition') {
        my $database = join '_', 'client', $driver, $edition =~ /^(\w+)/;
        $edition eq 'extension'
            ? create_database(name => $database, aside => 1)
            : create_portable_database(name => $database, aside => 1);
        my %through = map { $_ => through($_, $database) } keys %pooler;
        $tests{"$driver, $edition"} = sub ($modules) {
            return python_with({ PGDATABASE => $database, ADVISORY_TEST_DRIVER => $driver,
                    ADVISORY_TEST_POOLERS => encode_json(\%through) },
                '-m', 'unittest', @$modules);
        };
    }
}

# What psycopg2 does not have is skipped, and nothing else.
sub passes ($what, $least, $program) {
    my ($said, $code) = $program->finish;
    my ($ran) = $said =~ /^Ran (\d+) tests? in/m;
    cmp_ok($ran // 0, '>=', $least, "$what: tests ran");
    my ($skipped) = $said =~ /^OK(?: \(skipped=(\d+)\))?$/m;
    my $may_skip = $what =~ /psycopg2/ ? 6 : 0;
    return ok($code == 0 && ($skipped // 0) <= $may_skip, "$what: all of them passed")
        || diag($said);
}

# Not all at once: those of leases measure time.
my %leases = map { $_ => in_turn($tests{$_}->(['test_leases'])) } sort keys %tests;
passes("$_, leases", 19, $leases{$_}) for sort keys %leases;
my %others = map { $_ => $tests{$_}->([qw(test_values test_locks test_pooler test_readme)]) }
    sort keys %tests;
passes($_, 40, $others{$_}) for sort keys %others;

# A server of its own for each, which it kills.
sub killing ($driver) {
    my $server = own_server();
    my @ctl = ('env', (map { "$_=$server->{$_}" } grep { /^(PG|ADVISORY_EXT_)/ } keys %$server),
        'bash', "$repository/scripts/server.sh", 'ctl');
    session(server => $server)->run('CREATE EXTENSION advisory_ext');
    return python_with({ (map { $_ => $server->{$_} } qw(PGHOST PGPORT PGUSER)),
            PGDATABASE => 'postgres', ADVISORY_TEST_DRIVER => $driver,
            ADVISORY_TEST_CTL => join ' ', map { "'$_'" } @ctl }, '-m', 'unittest',
        'test_server_killed');
}

my %killed = map { $_ => in_turn(killing($_)) } 'psycopg', 'psycopg2';
passes("$_, server killed", 6, $killed{$_}) for sort keys %killed;

# ---- Examples ------------------------------------------------------------------------------------

for my $example (glob "$work/examples/*.py") {
    my $lines = () = slurp($example) =~ /^.*\S/mg;
    cmp_ok($lines, '<', 40, "$example has less than 40 lines of text");
}

create_database();
my $session = session();
my $gate = session();

sub example ($name, @arguments) { return python_with({}, "../examples/$name.py", @arguments) }

# The same through PgBouncer in transaction mode.
sub pooled ($name, @arguments) {
    my $pooler = $pooler{'one server'};
    return python_with({ map { $_ => $pooler->{$_} } qw(PGHOST PGPORT) },
        "../examples/$name.py", @arguments);
}

# Once a day.
$session->run('CREATE TABLE orders (id bigint, user_id bigint, amount numeric,
        paid_at timestamptz DEFAULT now())',
    'CREATE TABLE report (day date, total numeric)',
    q{INSERT INTO orders SELECT n, 7, 10 * n, (date_trunc('day', now() AT TIME ZONE 'Europe/Berlin')
        - '1 hour'::interval) AT TIME ZONE 'Europe/Berlin' FROM generate_series(1, 3) n});
my $MADE = "made the report\n";
my $SKIPPED = "skipped: the report of today is made, or is being made\n";
$session->run('ALTER TABLE report RENAME TO elsewhere');
pooled('daily_report')->ends(1, qr/relation "report" does not exist/, 'a report that fails');
$session->run('ALTER TABLE elsewhere RENAME TO report');
is_deeply([ sort map { ($_->finish)[0] } map { pooled('daily_report') } 1 .. 3 ],
    [ $MADE, $SKIPPED, $SKIPPED ], '... is made up for, through PgBouncer, once');
$session->shows(q{SELECT day - (now() AT TIME ZONE 'Europe/Berlin')::date, total FROM report},
    '-1|60', 'it is that of yesterday');

# Once a day, for long.
my $csv = scratch() . '/customers.csv';
$session->run('CREATE TABLE customer (id bigint, name text)',
    q{INSERT INTO customer VALUES (1, 'Ann'), (2, 'Bob, Jr.')});
$gate->run('BEGIN', 'LOCK TABLE customer');
my $first = pooled('daily_export', $csv);
$session->wait_until('it waits',
    q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'customer'::regclass AND NOT granted});
my $second = example('daily_export', $csv);
$second->ends(0, qr/^skipped: ".*\@daily-export" holds it until/, 'a second export ends at once');
$first->kill;
$gate->run('COMMIT', q{SELECT advisory.break_lease('export', 'daily')});
example('daily_export', $csv)->ends(0, "exported\n", 'an export that died is made again');
is(slurp($csv), "1,Ann\r\n2,\"Bob, Jr.\"\r\n", '... as a whole');
example('daily_export', $csv)->ends(0, "skipped: it is done\n", '... once');
is($session->value('SELECT count(*) FROM advisory.leases'), 0, '... and leaves no lease');

# One at a time for each user.
$session->run('CREATE TABLE app_user (id bigint, exports integer DEFAULT 0)',
    'INSERT INTO app_user VALUES (7), (8)');
$gate->run('BEGIN', 'SELECT FROM app_user FOR UPDATE');
$first = example('one_at_a_time', 7);
wait_for($session, 1, 'exporter', 'transactionid');
my $holder = waiting_pid($session, 'exporter');
example('one_at_a_time', 7)->ends(1,
    "an export of user 7 is under way, by exporter, process $holder\n",
    'the second export of a user fails, and says by whom');
my $other = example('one_at_a_time', 8);
$session->wait_until('that of another user goes on', q(SELECT count(*) = 2 FROM pg_stat_activity
    WHERE application_name = 'exporter' AND wait_event IN ('transactionid', 'tuple')));
$gate->run('COMMIT');
$first->ends(0, "1,10\n2,20\n3,30\n", 'the first one is made');
$other->ends(0, '', '... and the other one');
$session->shows('SELECT id, exports FROM app_user ORDER BY id', [ '7|1', '8|1' ], '... each once');

# Webhooks.
$session->run('CREATE TABLE webhook_event (id text PRIMARY KEY)',
    'CREATE TABLE account (id bigint, balance numeric DEFAULT 0)',
    'INSERT INTO account VALUES (7), (8)');
$gate->run('BEGIN', 'SELECT FROM account WHERE id = 7 FOR UPDATE');
my @deliveries = map { example('webhook', 'evt_1', 7, '12.50') } 1 .. 3;
wait_for($session, 1, 'webhook', 'transactionid');
wait_for($session, 2, 'webhook', 'advisory');
example('webhook', 'evt_2', 8, '3')->ends(0, "handled\n", 'another event is handled meanwhile');
$gate->run('COMMIT');
is_deeply([ sort map { join ' ', $_->finish } @deliveries ],
    [ "handled\n 0", ("handled before\n 0") x 2 ], 'of three deliveries at once one is handled');
$session->shows('SELECT id, balance FROM account ORDER BY id', [ '7|12.50', '8|3' ], '... once');
example('webhook', 'evt_3', 7, 'much')->ends(1, qr/InvalidTextRepresentation/,
    'a handler that fails');
example('webhook', 'evt_3', 7, '1')->ends(0, "handled\n", '... leaves no trace');

# A file that refuses stale tokens.
my $directory = scratch() . '/fenced';
make_path($directory);
example('fenced_file', $directory, 8, 'old')->ends(0, '', 'a file is written');
example('fenced_file', $directory, 9, 'new')->ends(0, '', '... by the next holder');
example('fenced_file', $directory, 8, 'late')->ends(
    1, qr/token 8 is stale, 9 was here/, '... and no longer by the former one');
is_deeply([ map { slurp($_) } glob "$directory/*" ], ['new'], '... with nothing left behind');

# An election: the leader is stopped, another one leads, and the first one finds out.
$session->run('CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY,
    due_at timestamptz DEFAULT now(), started_by text)');
my %candidate = map { $_ => example('election', $_) } qw(ann bob);

sub leader_after ($token) {
    my $rows;
    wait_until('somebody leads', sub {
        $rows = $session->rows(q{SELECT owner, token FROM advisory.leases
            WHERE namespace = 'leader' AND state = 'held' AND token > ?}, $token);
        return @$rows });
    return @{ $rows->[0] };
}

# Who starts a job that is due.
sub starts_job {
    my $id = $session->value('INSERT INTO job DEFAULT VALUES RETURNING id');
    my $by;
    wait_until('it is started',
        sub { $by = $session->value('SELECT started_by FROM job WHERE id = ?', $id) });
    return $by;
}

my ($leader, $token) = leader_after(0);
is(starts_job(), $leader, 'one of two leads, and starts the jobs');
my ($former) = ($leader);
kill STOP => $candidate{$former}{pid};
($leader, $token) = leader_after($token);
isnt($leader, $former, 'it is stopped: the other one leads');
kill CONT => $candidate{$former}{pid};
$candidate{$former}->says(qr/leads, token .*\n(\Q$former\E leads no more): lease .* is lost/);
is(starts_job(), $leader, '... and starts the jobs, and nobody else');
$candidate{$leader}->stop('INT');
is((leader_after($token))[0], $former, 'it ends: the first one leads again, at once');
# An end in the moment of the grant would leave the lease.
$candidate{$former}->says(qr/leads no more.*leads, token/s);
$candidate{$former}->stop('INT');
is($session->value('SELECT count(*) FROM advisory.leases'), 0, 'and in the end nobody');

done_testing();
