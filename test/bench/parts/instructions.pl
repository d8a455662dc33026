# The processor's instructions for one call, which hardly differ between machines that have the same
# packages: callgrind counts those of a server in single-user mode, for two numbers of rows, and the
# difference is divided by the difference of the rows. So what a server takes to start, and a
# statement to be planned, does not count; all else of a row does.
package Bench::Part::instructions;

use AdvisoryTest;
use Bench;

use constant { FEW => 2000, MANY => 8000 };

# A server of each tree, stopped: callgrind runs another one on its files.
my %stopped;

sub stopped ($tree) {
    return $stopped{$tree} //= do {
        my $server = server_of($tree, 'instructions');
        $server->ctl('stop', '-m', 'fast') or die "cannot stop the server\n";
        $server;
    };
}

# How many instructions it takes to run this for so many rows.
sub instructions ($server, $sql, $rows) {
    local %ENV = (%ENV, map { $_ => $server->{$_} } grep { /^(PG|ADVISORY_EXT_)/ } keys %$server);
    my $script = write_script($server, 'instructions', $sql =~ s/\bROWS\b/$rows/r);
    my @command = (qw(valgrind --tool=callgrind --callgrind-out-file=/dev/null),
        "$ENV{PG_BINDIR}/postgres", '--single', '-D', $ENV{ADVISORY_EXT_DATADIR}, '-j', 'postgres');
    my $said = qx{bash '$server->{script}' as @command <'$script' 2>&1};
    my ($collected) = $said =~ /Collected\s*:\s*(\d+)/;
    die "callgrind counted nothing:\n$said" if !$collected || $said =~ /ERROR:|FATAL:/;
    return $collected;
}

# Those of one row of a statement, which may use the row's number i.
sub of_row ($columns) {
    my $sql = "SELECT count(*) FROM (SELECT $columns FROM generate_series(1, ROWS) AS i OFFSET 0)";
    return sub ($tree, @) {
        my ($few, $many) = map { instructions(stopped($tree), "$sql AS rows", $_) } FEW, MANY;
        return ($many - $few) / (MANY - FEW);
    };
}

my $hash = q{hashtextextended('billing/invoice:' || %s, 0)};

sub ours ($call, $name) {
    return join ', ', map { sprintf "advisory.$_", "'billing', 'invoice:' || $name" } @$call;
}

sub theirs ($call, $name) {
    return join ', ', map { sprintf $_, sprintf $hash, $name } @$call;
}

my $again = 'i % 900';
my @compared = (
    ['try_xact_lock(), 900 names again and again', "the built-in's with a hash", 1.3,
        ours(['try_xact_lock(%s)'], $again), theirs(['pg_try_advisory_xact_lock(%s)'], $again)],
    ['try_xact_lock(), new names', "the built-in's with a hash", 2.5,
        ours(['try_xact_lock(%s)'], 'i'), theirs(['pg_try_advisory_xact_lock(%s)'], 'i')],
    ['try_lock() and unlock(), 900 names', "the built-ins' with a hash", 1.4,
        ours(['try_lock(%s)', 'unlock(%s)'], $again),
        theirs(['pg_try_advisory_lock(%s)', 'pg_advisory_unlock(%s)'], $again)],
    ['try_acquire() and release(), one semaphore', "a plain lock's by number", 2,
        q{advisory.try_acquire('billing', 'jobs', 5), advisory.release('billing', 'jobs')},
        'pg_try_advisory_lock(42), pg_advisory_unlock(42)'],
);

if (QUICK) {
    @compared = $compared[0];
}
if (qx{valgrind --version 2>&1} !~ /^valgrind-/) {
    print "skipped: there is no valgrind\n";
    @compared = ();
}

# Each is counted once, since they hardly differ.
for my $compared (@compared) {
    my ($work, $against, $most, $ours, $theirs) = @$compared;
    for my $tree (tree_names()) {
        progress("instructions: $work");
        my ($our, $their) = map { of_row($_)->($tree) } $ours, $theirs;
        figure(work => $work, of => 'instructions', against => $against, 'at most' => $most,
            ratio => $our / $their, ours => $our, theirs => $their, tree => $tree);
    }
}
1;
