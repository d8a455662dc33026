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
    '-c', 'GRANT USAGE ON SCHEMA evil TO PUBLIC',
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

# Statements that a page shows: of blocks, of indented lines and within lines.
sub statements ($page) {
    open my $in, '<', "$root/$page" or die "$page: $!\n";
    my $text = do { local $/ = undef; <$in> };
    my @found = map { split /;\s*(?:--.*)?(?:\n|$)| \\gx\n/ }
        $text =~ /^```sql\n(.*?)^```/gms, $text =~ /^    (SELECT .*)$/gm,
        $text =~ /`(SELECT [^`]*)`/g;
    return grep { /^SELECT/ && /advisory\.|pg_/ && !/generate_series/ } @found;
}

my $superuser = session();
for my $page (qw(doc/views.md doc/pressure.md)) {
    my @statements = statements($page);
    cmp_ok(scalar @statements, '>', 4, "$page has statements for whoever administers");
    # (No process has the numbers of the page.)
    $superuser->succeeds(s/\b471\d\b/0/gr, "$page: $_") for @statements;
}

# What blockers advises: for a pair, for a lease and for a name.
$superuser->run(
    q(CREATE ROLE planted_oncall LOGIN IN ROLE pg_read_all_stats, pg_signal_backend),
    'GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) TO planted_oncall');
my $oncall = session(role => 'planted_oncall');
my ($pair, $pair_waiter, $lease_waiter) = map { session() } 1 .. 3;
$pair->run('SELECT pg_catalog.pg_advisory_lock(7, -8)',
    q(SELECT FROM advisory.lease('planted', 'lease', '1h')));
$pair_waiter->start('SELECT pg_catalog.pg_advisory_lock(7, -8)');
$lease_waiter->start(q(SELECT FROM advisory.lease('planted', 'lease', '1h')));
wait_until('all wait', sub { $superuser->value(
    'SELECT pg_catalog.array_length(pg_catalog.array_agg(pid), 1) FROM advisory.blockers') == 3 });
for my $who ($oncall, $superuser) {
    for my $remedy (sort grep { defined } $who->column('SELECT remedy FROM advisory.blockers')) {
        my $said = $who->query($remedy);
        unlike($said->{message} // '', qr/sprung/, "a remedy: $remedy");
    }
}
$_->finish for $waiter, $pair_waiter, $lease_waiter;

# The owner of the database can put own functions in place of the extension's.
leave($waiter, $holder, $monitor, $oncall, $pair, $pair_waiter, $lease_waiter);
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
