#!/usr/bin/env perl
# What we hand to people, in a database whose owner has planted functions, operators and views
# before those of pg_catalog: nothing of them runs, with the rights of whoever administers.
use CPAN::Meta::YAML;
use FindBin;
use AdvisoryTest;

my $root = "$FindBin::Bin/../..";
my $psql = "$ENV{PG_BINDIR}/psql";
my $database = create_database();
my $holder = session();
$holder->run(q(SELECT advisory.lock('planted', 'held')));
my $waiter = session();
$waiter->start(q(SELECT advisory.lock('planted', 'held')));

# The output and messages of a program, and how it has ended.
sub outcome (@program) {
    local %ENV = (%ENV, PGDATABASE => $database, PGAPPNAME => 'planted');
    open my $out, '-|', 'sh', '-c', 'exec "$@" 2>&1 </dev/null', 'sh', @program or die "$!\n";
    my $said = do { local $/ = undef; <$out> };
    close $out;
    return ($said // '') . ($? ? 'exit code ' . ($? >> 8) : '');
}

sub is_untouched ($what, @program) {
    my $said = outcome(@program);
    unlike($said, qr/sprung|ERROR|exit code/, $what) or diag $said;
    return;
}

my @psql = ($psql, '-XqAt', '-v', 'ON_ERROR_STOP=1');
is(outcome(@psql, '-c', 'SET client_min_messages = error', '-f', "$root/test/pgtap/evil.psql",
    '-c', qq(ALTER DATABASE "$database" SET search_path = evil, pg_catalog)), '',
    'the trap is set');
like(outcome(@psql, '-c', q(SELECT 'a' || 'b'::text)), qr/sprung/, '... and works');

open my $file, '<', "$root/monitoring/psqlrc" or die "psqlrc: $!\n";
for my $name (map { /^\\set (\w+) / ? $1 : () } readline $file) {
    is_untouched("psqlrc, :$name", 'sh', '-c', 'printf ":%s\n" "$1" | cat "$2" - | "$3" -XqAt',
        'sh', $name, "$root/monitoring/psqlrc", $psql);
}

is_untouched('with_lock', "$root/examples/shell/with_lock", 'planted', 'free', '1s', '--', 'true');

for my $mode (qw(pool waits leaks)) {
    my $said = outcome("$root/examples/monitoring/check_advisory.sh", $mode);
    like($said, qr/^ADVISORY (?:OK|WARNING|CRITICAL) - /, "check_advisory.sh $mode") or diag $said;
}

is_untouched('grants.sql', $psql, '-Xq', '-f', "$root/monitoring/grants.sql");
my $queries = CPAN::Meta::YAML->read("$root/monitoring/postgres_exporter.yml")->[0];
my $monitor = session(role => 'advisory_monitor');
for my $name (sort keys %{$queries}) {
    $monitor->succeeds($queries->{$name}{query}, "a monitoring query: $name");
}

# The owner of the database can put own functions in place of the extension's.
leave($waiter, $holder, $monitor);
session(database => $database)->run('RESET search_path', 'DROP EXTENSION advisory_ext',
    'CREATE ROLE planter', 'CREATE SCHEMA advisory AUTHORIZATION planter', 'SET ROLE planter',
    q(CREATE PROCEDURE advisory.await_lock(text, text, interval) LANGUAGE plpgsql
        AS $$ BEGIN RAISE NOTICE 'sprung'; END $$),
    q(CREATE FUNCTION advisory.sprung() RETURNS boolean LANGUAGE plpgsql
        AS $$ BEGIN RAISE NOTICE 'sprung'; RETURN true; END $$),
    'CREATE VIEW advisory.settings AS SELECT advisory.sprung()',
    'CREATE VIEW advisory.pressure AS SELECT advisory.sprung()');
for my $program ([qw(shell/with_lock a b 1s -- true)], [qw(monitoring/check_advisory.sh pool)]) {
    my ($script, @arguments) = @{$program};
    my $said = outcome("$root/examples/$script", @arguments);
    like($said, qr/belongs to a role that is not a superuser/, "a superuser's $script stops");
    unlike($said, qr/sprung/, '... and runs nothing of theirs');
}
session(database => 'postgres')->run(qq(ALTER DATABASE "$database" RESET search_path));
done_testing();
