# What the tests of monitoring/ share: the files, the shell commands of doc/monitoring.md, and a
# server on which everything happens that monitoring is there for.
#
#   my $scene = Monitoring->new;                 # two databases with the extension, the role of
#                                                grants.sql, and the load
#   $scene->{look}                               # a superuser's session
package Monitoring;

use AdvisoryTest;
use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use Launch;
use Programs;

our @EXPORT = qw(work_dir command blocks block start_block SECRET);

# Names are never shown to whoever reads metrics.
use constant SECRET => 'customer-4711-secret';

my $repository = abs_path(dirname(__FILE__) . '/../../..');

# A directory with monitoring/ and examples/, in which the commands of the page run and whose files
# a test may change.
my $work_dir;
sub work_dir {
    return $work_dir if $work_dir;
    $work_dir = scratch() . '/work';
    mkdir $work_dir or die "$work_dir: $!\n";
    system('sh', '-c', 'cd "$0" && cp -r --parents monitoring examples/monitoring "$1"',
        $repository, $work_dir) == 0 or die "cannot copy monitoring/\n";
    return $work_dir;
}

# Starts a command line there.
sub command ($line, $environment = {}) {
    return launch($environment, 'sh', '-c', "cd '@{[work_dir()]}' && $line");
}

# ---- The page ------------------------------------------------------------------------------------

# Its blocks, in order: [language, text].
sub blocks {
    my $page = slurp("$repository/doc/monitoring.md");
    my @blocks;
    push @blocks, [$1, $2] while $page =~ /^```(\w*)\n(.*?)^```$/gms;
    return @blocks;
}

# The text of the only block that matches.
sub block ($pattern) {
    my @found = map { $_->[1] } grep { $_->[1] =~ $pattern } blocks();
    die 'the page has ' . @found . " blocks that match $pattern\n" if @found != 1;
    return $found[0];
}

# Starts the program of such a block as the server's owner, with more options and with parts of the
# text replaced. It does not outlive the test.
sub start_block ($pattern, $options, %replace) {
    my $command = block($pattern);
    for my $old (sort keys %replace) {
        $command =~ s/\Q$old\E/$replace{$old}/g or die "the block does not say $old:\n$command";
    }
    $command =~ s/(?<![\w-])(?=prometheus(?:-\w+-exporter)?(?: |$))/exec /m
        or die "which program is it? $command";
    $command =~ s/\s*\z/ $options/;
    return launch_as_owner('sh', '-c', 'cd "$0" && ' . $command, work_dir());
}

# ---- The scene -----------------------------------------------------------------------------------

sub new ($class) {
    my $server = own_server('max_prepared_transactions=4', 'max_connections=80', 'autovacuum=off');
    my $self = bless { server => $server, sessions => [] }, $class;
    my $look = $self->{look} = session(server => $server);
    $look->run('CREATE EXTENSION advisory_ext', 'CREATE DATABASE billing', 'CREATE ROLE app LOGIN',
        'CREATE ROLE nobody LOGIN');
    session(server => $server, database => 'billing')->run('CREATE EXTENSION advisory_ext');
    my ($said, $status) = command(block(qr/psql -f/), $self->environment('postgres'))->finish;
    die "grants.sql: $said" if $status;
    return $self;
}

# Where the server is, for programs; as this role.
sub environment ($self, $role, %more) {
    my $server = $self->{server};
    return { PGHOST => $server->{PGHOST}, PGPORT => $server->{PGPORT}, PGUSER => $role,
        PGDATABASE => 'postgres', %more };
}

# A session of an application, which stays.
sub app ($self, %how) {
    my $session = session(server => $self->{server}, role => 'app', application => 'worker', %how);
    push @{ $self->{sessions} }, $session;
    return $session;
}

# Another that waits for what its statement asks for.
sub waiter ($self, $statement, %how) {
    my $session = $self->app(%how)->start($statement);
    wait_until("somebody waits: $statement", sub {
        $self->{look}->value(
            'SELECT count(*) FROM advisory.waits WHERE pid = ? AND waits_for_pid IS NOT NULL',
            $session->pid);
    });
    return $session;
}

# Everything at once.
sub play ($self) {
    my $secret = SECRET;
    # Idle in transaction with a waiter, here and in the other database; and with a failed
    # transaction.
    $self->app->run('BEGIN', "SELECT advisory.xact_lock('billing', '$secret')");
    $self->waiter("SELECT advisory.lock('billing', '$secret')");
    $self->app(database => 'billing')
        ->run('BEGIN', "SELECT advisory.xact_lock('stock', '$secret')");
    $self->waiter("SELECT advisory.lock('stock', '$secret')", database => 'billing');
    $self->app->run("SELECT advisory.lock('report', '$secret')", 'BEGIN')->query('SELECT 1/0');
    $self->waiter("SELECT advisory.lock_shared('report', '$secret')");
    $self->waiter("SELECT advisory.lock_shared('report', '$secret')");
    # A prepared transaction with a waiter.
    $self->app->run('BEGIN', "SELECT advisory.xact_lock('payment', '$secret')",
        "PREPARE TRANSACTION 'payment'");
    $self->waiter("SELECT advisory.lock('payment', '$secret')");
    # A lock left behind by another application, the built-in functions, two kinds of foreign locks.
    $self->app->run("SELECT advisory.lock('cache', '$secret')", "SET application_name = 'next'");
    $self->app->run('SELECT pg_advisory_lock(4711), pg_advisory_lock_shared(1, 2)');
    $self->waiter('SELECT pg_advisory_lock(4711)');
    # A full semaphore with a waiter, one without; one with room, about whose size its users
    # disagree.
    $self->app->run("SELECT advisory.acquire('print', '$secret', 1)");
    $self->app->run("SELECT advisory.acquire('mail', '$secret', 2)") for 1 .. 2;
    $self->waiter("SELECT advisory.acquire('mail', '$secret', 2)");
    $self->app->run("SELECT advisory.acquire('export', '$secret', $_)") for 3, 4;
    # A job that is skipped, requests that time out or find the lock taken.
    $self->app->run("SELECT advisory.lock('jobs', 'nightly')");
    my $once = $self->app;
    $once->run("CALL advisory.run('jobs', 'nightly', 'SELECT 1')") for 1 .. 2;
    $once->run("SELECT advisory.try_lock('billing', '$secret')",
        "SELECT advisory.try_lock('billing', '$secret', '20ms')");
    $once->run("SELECT advisory.lock('billing', 'free')",
        "SELECT advisory.unlock('billing', 'free')");
    # Leases: one that is held, two that nobody ended.
    $once->run("SELECT advisory.lease('leader', '$secret', '1 h')",
        map { "SELECT advisory.lease('old', '$_', '1 ms')" } 1, 2);
    wait_until('leases expire', sub {
        2 == $self->{look}->value(q{SELECT count(*) FROM advisory.leases WHERE state = 'expired'})
    });
    return $self;
}

# What happens while the metrics are watched.
sub go_on ($self) {
    my $session = $self->{busy} //=
        session(server => $self->{server}, role => 'app', application => 'busy');
    $session->run(
        "SELECT advisory.lock('billing', 'free')", "SELECT advisory.unlock('billing', 'free')",
        "SELECT advisory.try_lock('billing', '@{[SECRET]}', '1ms')",
        "SELECT advisory.try_lock('billing', '@{[SECRET]}')",
        "CALL advisory.run('jobs', 'nightly', 'SELECT 1')");
    return;
}

1;
