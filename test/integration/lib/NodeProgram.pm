# Programs for Node that run while the test goes on: started with the server's address in their
# environment, ended with the test.
#
#   my $program = NodeProgram->start(server => $pooler, database => 'x',
#       program => ['file.js', 'argument']);
#   $program->says(qr/ready on (\d+)/);          waits for that, and returns what was in the
#                                                parentheses
package NodeProgram;

use AdvisoryTest;
use IO::Handle;
use IO::Socket::INET;
use POSIX ();
use Programs;

my @running;

sub start ($class, %how) {
    my $server = $how{server} // \%ENV;
    local %ENV = (
        %ENV, NODE_PATH => node_modules(),
        PGDATABASE => $how{database} // $ENV{ADVISORY_TEST_DATABASE},
        map { $_ => $server->{$_} } qw(PGHOST PGPORT PGUSER));
    my $pid = open(my $out, '-|') // die "cannot fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null' and open STDERR, '>&', \*STDOUT
            and exec 'setpriv', '--pdeathsig', 'KILL', '--', 'node', @{ $how{program} };
        POSIX::_exit(127);
    }
    $out->blocking(0);
    my $self = bless { pid => $pid, out => $out, output => '', ended => 0 }, $class;
    push @running, $self;
    return $self;
}

sub pid { return $_[0]{pid} }

# What it has written until now, errors included.
sub output ($self) {
    while (!$self->{ended}) {
        my $read = sysread $self->{out}, $self->{output}, 65536, length $self->{output};
        last unless defined $read;
        $self->{ended} = 1 if $read == 0;
    }
    return $self->{output};
}

sub says ($self, $pattern) {
    my @found;
    eval {
        wait_until('it says so', sub { (@found = $self->output =~ $pattern) || $self->{ended} })
    };
    @found or die "gave up waiting for $pattern; the program said:\n", $self->output;
    return wantarray ? @found : $found[0];
}

# Waits for its end, and returns its exit status as in $?.
sub finish ($self) {
    wait_until('the program ends', sub { $self->output; $self->{ended} });
    return $self->reap;
}

# Asks it to end, by SIGTERM unless said otherwise.
sub stop ($self, $signal) {
    return unless $self->{out};
    kill $signal // 'TERM', $self->{pid};
    return $self->finish;
}

sub reap ($self) {
    my $out = delete $self->{out} or return $self->{status};
    close $out;
    return $self->{status} = $?;
}

END {
    my $status = $?;
    for my $program (grep { $_->{out} } @running) {
        kill KILL => $program->{pid};
        $program->reap;
    }
    $? = $status;
}

# ---- Over HTTP -----------------------------------------------------------------------------------

# Sends a request and returns at once; answer() waits for "status body".
sub post ($port, $path) {
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp')
        or die "port $port: $!\n";
    print {$socket} "POST $path HTTP/1.0\r\n\r\n";
    $socket->flush;
    return $socket;
}

sub answer ($socket) {
    local $/ = undef;
    my ($status, $body) = <$socket> =~ m{^HTTP/\S+ (\d+).*?\r\n\r\n(.*?)\n?$}s or die "no answer\n";
    return "$status $body";
}

1;
