#!/usr/bin/env perl
# The package clients/node as its users get it: packed by npm, installed from that file into an
# empty folder, and its own tests run there, with the extension and with the portable edition,
# against PostgreSQL, behind PgBouncer in both modes, and with a server that is killed.
use AdvisoryTest;
use FindBin;
use JSON::PP;
use Launch;
use PgBouncer;
use Programs;

# Without empty lines and comments, at a width of 100.
use constant { MOST_LINES => 560, TESTS => 118, SESSION_POOL => 5 };

my $modules = node_modules() or plan skip_all => 'there is no Node with node-postgres here';
my $source = "$FindBin::Bin/../../clients/node";

# ---- The package ---------------------------------------------------------------------------------

sub npm ($folder, @arguments) {
    my ($said, $status) =
        run_program('env', "--chdir=$folder", 'npm', '--offline', '--loglevel=error', @arguments);
    is($status, 0, "npm $arguments[0]") or diag($said);
    return $said;
}

# npm packs a copy, so that nothing is left in this folder.
my $copy = scratch() . '/source';
system('cp', '-r', $source, $copy) == 0 or die "cannot copy $source\n";
my $packed = decode_json(npm($copy, 'pack', '--json'))->[0];
is_deeply(
    [ grep { !m{^examples/\w+[.]js$} } sort map { $_->{path} } @{ $packed->{files} } ],
    [ 'LICENSE', 'README.md', 'index.d.ts', 'index.js',
        (map { "lib/$_.js" } qw(connection errors lease pooler values)), 'package.json' ],
    'the package has its code, types, examples and documents, and nothing else');
is(slurp("$source/LICENSE"), slurp("$source/../../LICENSE"), 'it has the license of the project');

sub code_lines (@files) {
    return scalar grep { !m{^\s*(?://.*)?$} } map { split /\n/, slurp($_) } @files;
}

cmp_ok(code_lines("$source/index.js", glob "$source/lib/*.js"),
    '<=', MOST_LINES, 'its code is short');
cmp_ok(code_lines($_), '<', 40, "$_ is short") for glob "$source/examples/*.js";

my $empty = scratch() . '/user';
mkdir $empty or die "$empty: $!\n";
spew("$empty/package.json", '{ "private": true }');
# The driver is where the other tests have theirs.
npm($empty, 'install', '--legacy-peer-deps', '--no-audit', '--no-fund',
    "$copy/$packed->{filename}");
ok(!-e "$empty/node_modules/pg", 'it brings nothing with it');
system('cp', '-r', "$source/test", "$empty/test") == 0 or die "cannot copy the tests\n";

# ---- Its types -----------------------------------------------------------------------------------

# A program that uses them is compiled with the others' types beside them.
my $compiler = node_modules("$FindBin::Bin/node/types/package.json");
my $compiled;
if ($compiler) {
    my $typed = scratch() . '/typed';
    system('cp', '-rs', $compiler, "$typed-modules") == 0 or die "cannot copy $compiler\n";
    mkdir $typed or die "$typed: $!\n";
    rename "$typed-modules", "$typed/node_modules" or die "$typed: $!\n";
    system('cp', '-r', "$empty/node_modules/advisory-ext", "$typed/node_modules/") == 0
        or die "cannot copy the package\n";
    spew("$typed/use.ts", slurp("$FindBin::Bin/node/types/use.ts"));
    my @options = qw(--noEmit --strict --module nodenext --moduleResolution nodenext
        --target es2022 --preserveSymlinks);
    $compiled = launch('node', "$compiler/typescript/bin/tsc", @options, "$typed/use.ts");
}

# ---- Its tests -----------------------------------------------------------------------------------

my $server = own_server('max_prepared_transactions=5');
my $look = session(server => $server);
my %poolers = (
    TRANSACTION_POOLER =>
        PgBouncer->new($server, pool_mode => 'transaction', default_pool_size => 4),
    SESSION_POOLER =>
        PgBouncer->new($server, pool_mode => 'session', default_pool_size => SESSION_POOL),
);
my %environment = (
    NODE_PATH => $modules,
    (map { $_ => $server->{$_} } qw(PGHOST PGPORT PGUSER)),
    (map { $_ => $poolers{$_}{PGPORT} } keys %poolers),
    SESSION_POOLER_SIZE => SESSION_POOL,
);

$look->run('CREATE ROLE portable_owner LOGIN', 'CREATE DATABASE extension',
    'CREATE DATABASE portable OWNER portable_owner');
session(server => $server, database => 'extension')->run('CREATE EXTENSION advisory_ext');
is(load_portable('portable', 'portable_owner', $server), '', 'the portable edition is loaded');

sub run_tests ($database, $more, @files) {
    return launch({ %environment, %$more, PGDATABASE => $database },
        'node', '--test', '--test-concurrency=1', '--test-reporter=tap',
        map { "$empty/test/$_.test.js" } @files);
}

# All of them succeed, and none is left out. Returns how many there are.
sub succeed ($program, $what) {
    my ($said, $status) = $program->finish;
    my %number = $said =~ /^# (\w+) (\d+)$/mg;
    ok($status == 0 && $number{pass} && $number{pass} == $number{tests}, $what) or diag($said);
    return $number{pass} // 0;
}

# Some look at all locks of their database. Those of leases measure time, so not all run at once.
my @others = grep { !/^(?:killed|lease|lease_slot|lock)$/ }
    map { m{(\w+)[.]test[.]js$} } glob "$empty/test/*.test.js";
my @groups = (['lease'], ['lease_slot'], ['lock'], \@others);
my @EDITIONS = qw(extension portable);
my %count;
for my $group (@groups) {
    my %running;
    for my $edition (@EDITIONS) {
        my $database = "${edition}_$group->[0]";
        $look->run("CREATE DATABASE $database TEMPLATE $edition");
        $running{$edition} = in_turn(run_tests($database, {}, @$group));
    }
    $count{$_} += succeed($running{$_}, "its tests, with $_") for @EDITIONS;
}
cmp_ok($count{$_}, '>=', TESTS, "its tests, with $_, are complete") for @EDITIONS;

SKIP: {
    skip 'there is no TypeScript here', 1 unless $compiled;
    $compiled->ends(0, '', 'a program in TypeScript that uses it is compiled');
}

# "node --test" ends with 0 if it finds no test; and a test that fails must be seen.
spew("$empty/test/fails.test.js", "require('node:test').test('fails', () => { throw 1; });\n");
isnt((run_tests('extension', {}, 'fails')->finish)[1], 0, '... which can fail');

$_->stop for values %poolers;
my %ctl = map { $_ => $server->{$_} } grep { /^(PG|ADVISORY_EXT_)/ } keys %$server;
for my $database (@EDITIONS) {
    $look->disconnect;
    succeed(run_tests($database,
            { %ctl, SERVER_CTL => "bash $FindBin::Bin/../../scripts/server.sh ctl" }, 'killed'),
        "a server that is killed, with $database");
}
done_testing();
