# A psql that keeps running, as in a terminal: it gets the lines of a document, and returns what it
# prints, also while the test goes on.
package Psql;

use strict;
use warnings;
use IPC::Open2;
use Time::HiRes qw(time);

# Psql->new(database => …, application => …, server => …, role => …, form => OPTIONS): a connection.
# Without a server, the shared one. It prints values alone, unless options of psql say another form.
sub new {
    my ($class, %how) = @_;
    local %ENV = %ENV;
    $ENV{PGDATABASE} = $how{database}
        // ($how{server} ? 'postgres' : $ENV{ADVISORY_TEST_DATABASE} // $ENV{PGDATABASE});
    $ENV{PGAPPNAME} = $how{application} // 'psql';
    if (my $server = $how{server}) { $ENV{$_} = $server->{$_} for qw(PGHOST PGPORT PGUSER) }
    $ENV{PGUSER} = $how{role} if $how{role};
    my $form = $how{form} // '-q -A -t -P pager=off';
    my $self = bless { marks => 0, seen => '' }, $class;
    $self->{client} = open2($self->{out}, $self->{in}, 'sh', '-c', "exec psql -X $form 2>&1");
    $self->{in}->autoflush(1);
    ($self->{pid}) = $self->run('SELECT pg_backend_pid();') =~ /^\s*(\d+)$/m
        or die "psql did not connect: $self->{seen}\n";
    return $self;
}

# The session's process in the server; and the client's own.
sub pid    { return $_[0]{pid} }
sub client { return $_[0]{client} }

# Gives it lines, and returns immediately.
sub start {
    my ($self, $text) = @_;
    my $mark = $self->{mark} = 'done ' . ++$self->{marks};
    @{$self}{qw(seen done)} = ('', 0);
    print { $self->{in} } "$text\n\\echo $mark\n\\warn $mark\n";
    return $self;
}

# Has it run all lines? Waits this many seconds for output.
sub is_done {
    my ($self, $seconds) = @_;
    vec(my $ready = '', fileno $self->{out}, 1) = 1;
    while (!$self->{done} && select(my $now = $ready, undef, undef, $seconds // 0)) {
        sysread($self->{out}, $self->{seen}, 65536, length $self->{seen}) or $self->{ended} = 1;
        # Standard output and standard error may overtake each other, so each says it.
        $self->{done} = 1
            if $self->{ended} || 2 == (() = $self->{seen} =~ /^\Q$self->{mark}\E\n/mg);
        $seconds = 0;
    }
    return $self->{done};
}

# What it has printed so far.
sub seen {
    my ($self) = @_;
    $self->is_done;
    return $self->{seen};
}

# Its output, including errors, when it has run all lines.
sub finish {
    my ($self, $seconds) = @_;
    my $end = time + ($seconds // 60);
    until ($self->is_done(0.2)) {
        die "gave up waiting for psql, process $self->{pid}, which has printed: $self->{seen}\n"
            if time > $end;
    }
    return $self->{seen} =~ s/^\Q$self->{mark}\E\n//mgr;
}

sub run { return $_[0]->start($_[1])->finish }

# Ends it like \q, even in the middle of a statement; with KILL like a client that crashes.
sub quit {
    my ($self, $signal) = @_;
    my $client = delete $self->{client} or return;
    kill $signal // 'TERM', $client;
    close $self->{in};
    waitpid $client, 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!);
    return $self->quit;
}

1;
