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
system('cp', '-r', "$work/tests", "$work/examples", $elsewhere) == 0 or die "cannot copy tests\n";
my $package = { PYTHONPATH => $installed };

sub python_with ($environment, @arguments) {
    return launch({ %$package, %$environment }, 'env', '-C', "$elsewhere/tests", $python, @arguments);
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
    my $may_skip = $what =~ /psycopg2/ ? 5 : 0;
    return ok($code == 0 && ($skipped // 0) <= $may_skip, "$what: all of them passed")
        || diag($said);
}

# Those of leases mostly wait.
my %leases = map { $_ => $tests{$_}->(['test_leases']) } sort keys %tests;
my %others = map { $_ => $tests{$_}->([qw(test_values test_locks test_pooler)]) } sort keys %tests;

my $server = own_server();
my @ctl = ('env', (map { "$_=$server->{$_}" } grep { /^(PG|ADVISORY_EXT_)/ } keys %$server),
    'bash', "$repository/scripts/server.sh", 'ctl');
session(server => $server)->run('CREATE EXTENSION advisory_ext');
for my $driver ('psycopg2', 'psycopg') {
    passes("$driver, server killed", 6,
        python_with({ (map { $_ => $server->{$_} } qw(PGHOST PGPORT PGUSER)),
            PGDATABASE => 'postgres', ADVISORY_TEST_DRIVER => $driver,
            ADVISORY_TEST_CTL => join ' ', map { "'$_'" } @ctl }, '-m', 'unittest',
            'test_server_killed'));
}
passes("$_, leases", 14, $leases{$_}) for sort keys %leases;
passes($_, 32, $others{$_}) for sort keys %others;

# ---- Examples ------------------------------------------------------------------------------------

for my $example (glob "$work/examples/*.py") {
    my @lines = split /\n/, slurp($example);
    cmp_ok(scalar @lines, '<', 40, "$example has less than 40 lines");
}

done_testing();
