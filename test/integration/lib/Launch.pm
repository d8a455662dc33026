# Programs that run while the test goes on, in the test's database, and that do not outlive it.
package Launch;

use AdvisoryTest;
use Exporter 'import';
use File::Temp qw(tempdir);
use POSIX qw(WNOHANG _exit);
use Programs;
use Test::More;

our @EXPORT =
    qw(launch launch_as_owner launch_node run_program in_turn java scratch wait_for waiting_pid);

my @launched;
my $count = 0;

# A directory that is removed at the end of the test. The server's user may read it.
my $scratch;
sub scratch {
    if (!defined $scratch) {
        $scratch = tempdir('advisory_test_XXXXXX', TMPDIR => 1, CLEANUP => 1);
        chmod 0755, $scratch;
    }
    return $scratch;
}

# launch(program, argument, …), or launch({ NAME => value, … }, program, …) with these in its
# environment.
sub launch (@command) {
    my %environment = ref $command[0] ? %{ shift @command } : ();
    my $file = scratch() . '/out.' . ++$count;
    my $pid = fork // die "cannot fork: $!\n";
    if (!$pid) {
        $ENV{PGDATABASE} = $ENV{ADVISORY_TEST_DATABASE} if defined $ENV{ADVISORY_TEST_DATABASE};
        $ENV{PYTHONDONTWRITEBYTECODE} = 1;
        @ENV{ keys %environment } = values %environment;
        open STDIN,  '<', '/dev/null' or _exit(126);
        open STDOUT, '>', $file       or _exit(126);
        open STDERR, '>&', \*STDOUT   or _exit(126);
        { exec 'setpriv', '--pdeathsig', 'KILL', '--', @command }
        _exit(127);
    }
    my $self = bless { pid => $pid, file => $file, command => "@command" }, __PACKAGE__;
    push @launched, $self;
    return $self;
}

# The same as the server's owner, in the server's directory, with which its files go.
sub launch_as_owner (@command) {
    return launch('env', "--chdir=$ENV{ADVISORY_EXT_TMP}", "HOME=$ENV{ADVISORY_EXT_TMP}", as_user(),
        'setpriv', '--pdeathsig', 'KILL', '--', @command);
}

# launch_node('file.js', 'argument'), also with an environment: with the modules of the examples.
sub launch_node (@program) {
    my %environment = ref $program[0] ? %{ shift @program } : ();
    return launch({ NODE_PATH => node_modules(), %environment }, 'node', @program);
}

# A program that measures time, and that others may run beside: waits for its end first if this
# test has failed before and is run once more, alone (see scripts/tap.pl). Returns it.
sub in_turn ($program) {
    $program->finish if $ENV{TEST_ALONE};
    return $program;
}

# Runs it to its end: what it wrote, and its exit code (128 and the signal, if one ended it).
sub run_program (@command) { return launch(@command)->finish }

# Compiles these sources, and returns the start of a command line that runs one of their classes;
# nothing if Java or the JDBC driver is not here. (The second half of the compiler would cost more
# than it gains here.)
sub java (@sources) {
    my $jdbc = '/usr/share/java/postgresql.jar';
    return unless -e $jdbc && program('javac') && program('java');
    my ($said, $status) =
        run_program('javac', '-encoding', 'UTF-8', '-cp', $jdbc, '-d', scratch(), @sources);
    die $said if $status;
    return ('java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', scratch() . ":$jdbc");
}

sub finish ($self, $seconds = 240) {
    eval { wait_until('it ends', sub { $self->is_done }, $seconds) }
        or die "gave up waiting for $self->{command}, which said:\n" . $self->said;
    return ($self->said, $self->{status});
}

# Tests that it ends with this exit code, and that it wrote this (or what matches).
sub ends ($self, $code, $words, $what) {
    my ($said, $was) = $self->finish;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok($was == $code && (ref $words ? $said =~ $words : $said eq $words), $what)
        || diag("exit code $was, $said");
}

# Tests its report: each line says what was tried, what came and what should, and the last one that
# this is the end.
sub reports ($self, $least) {
    my ($said, $code) = $self->finish;
    is($code, 0, "$self->{command} ends well") or diag($said);
    my @lines = split /\n/, $said;
    is(pop @lines, 'end', 'at its end');
    is((split /\t/)[1], (split /\t/)[2], (split /\t/)[0]) for @lines;
    return cmp_ok(scalar @lines, '>', $least, 'it tried all there is');
}

sub is_done ($self) {
    if (!defined $self->{status} && waitpid($self->{pid}, WNOHANG) == $self->{pid}) {
        $self->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    }
    return defined $self->{status};
}

# What it has written until now, errors included.
sub said ($self) { return -e $self->{file} ? slurp($self->{file}, ':raw') : '' }

# Waits until it has said that, and returns what was in the parentheses.
sub says ($self, $pattern) {
    eval { wait_until('it says so', sub { $self->said =~ $pattern || $self->is_done }) };
    my ($found) = $self->said =~ $pattern
        or die "gave up waiting for $pattern; the program said:\n", $self->said;
    return $found;
}

# Asks it to end, and returns its exit code.
sub stop ($self, $signal = 'TERM', $seconds = 240) {
    CORE::kill($signal => $self->{pid}) if !$self->is_done;
    return ($self->finish($seconds))[1];
}

sub kill ($self) { return $self->stop('KILL') }

# Waits until so many sessions of an application wait for this (as in pg_stat_activity).
sub wait_for ($look, $count, $application, $event) {
    return $look->wait_until(
        "$count of $application wait for $event", <<'SQL', $count, $application, $event);
        SELECT count(*) = $1 FROM pg_stat_activity
        WHERE application_name = $2 AND wait_event_type = 'Lock' AND wait_event = $3
SQL
}

sub waiting_pid ($look, $application) {
    return $look->value("SELECT pid FROM pg_stat_activity
        WHERE application_name = ? AND wait_event_type = 'Lock'", $application);
}

END {
    my $status = $?;
    for my $self (grep { !$_->is_done } @launched) {
        $self->kill;
        print STDERR "# ended with the test: $self->{command}, which had said:\n",
            map { "#   $_\n" } split /\n/, $self->said;
    }
    $? = $status;
}

1;
