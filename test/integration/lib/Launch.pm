# Programs that run while the test goes on, in the test's database, and that do not outlive it.
package Launch;

use AdvisoryTest;
use Exporter 'import';
use File::Temp qw(tempdir);
use POSIX qw(WNOHANG _exit);
use Time::HiRes qw(sleep time);

our @EXPORT = qw(launch run_program scratch);

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
sub launch {
    my %environment = ref $_[0] ? %{ shift() } : ();
    my @command = @_;
    my $file = scratch() . '/out.' . ++$count;
    my $pid = fork // die "cannot fork: $!\n";
    if (!$pid) {
        $ENV{PGDATABASE} = $ENV{ADVISORY_TEST_DATABASE} if defined $ENV{ADVISORY_TEST_DATABASE};
        $ENV{PYTHONDONTWRITEBYTECODE} = 1;
        @ENV{ keys %environment } = values %environment;
        open STDIN,  '<', '/dev/null' or _exit(126);
        open STDOUT, '>', $file       or _exit(126);
        open STDERR, '>&', \*STDOUT   or _exit(126);
        { exec { $command[0] } @command }
        _exit(127);
    }
    my $self = bless { pid => $pid, file => $file, command => "@command" }, __PACKAGE__;
    push @launched, $self;
    return $self;
}

# Runs it to its end: what it wrote, and its exit code (128 and the signal, if one ended it).
sub run_program { return launch(@_)->finish }

sub finish ($self, $seconds) {
    my $end = time + ($seconds // 240);
    until ($self->is_done) {
        die "gave up waiting for $self->{command}, which said:\n" . $self->said if time > $end;
        sleep 0.01;
    }
    return ($self->said, $self->{status});
}

sub is_done ($self) {
    if (!defined $self->{status} && waitpid($self->{pid}, WNOHANG) == $self->{pid}) {
        $self->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    }
    return defined $self->{status};
}

sub said ($self) {
    open my $file, '<', $self->{file} or return '';
    local $/ = undef;
    return <$file> // '';
}

sub kill ($self) {
    return if $self->is_done;
    CORE::kill(KILL => $self->{pid});
    return $self->finish;
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
