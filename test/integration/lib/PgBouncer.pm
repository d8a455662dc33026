# A PgBouncer in front of a server of the tests, on a socket beside the server's own, for as long as
# the object lives.
#
#   my $pooler = PgBouncer->new($server, pool_mode => 'transaction', default_pool_size => 4);
#   session(server => $pooler, role => 'app', database => 'app');
#
# The server is what own_server() returns, or \%ENV for the shared one. Sessions through a pooler
# that shares connections between transactions take no values with their statements: DBD::Pg would
# prepare these on one connection and run them on another. Nor is their pid() the server's process.
package PgBouncer;

use AdvisoryTest;
use IO::Socket::UNIX;
use POSIX qw(WNOHANG);
use Programs;

my $next_port = 6432;
my @running;

sub new ($class, $server, %settings) {
    my $directory = $server->{ADVISORY_EXT_TMP};
    my $port = $next_port++;
    my $self = bless {
        PGHOST => $directory, PGPORT => $port, PGUSER => $server->{PGUSER},
        PGDATABASE => $server->{PGDATABASE},
        file => "$directory/pgbouncer-$port",
    }, $class;
    my %all = (
        listen_addr => '', listen_port => $port, unix_socket_dir => $directory,
        auth_type => 'trust', auth_file => "$self->{file}.users", admin_users => $server->{PGUSER},
        max_client_conn => 200, logfile => "$self->{file}.log", %settings,
    );
    delete $all{users};
    write_file("$self->{file}.users", map { qq{"$_" ""\n} } $server->{PGUSER},
        @{ $settings{users} // [] });
    write_file("$self->{file}.ini",
        "[databases]\n* = host=$server->{PGHOST} port=$server->{PGPORT}\n[pgbouncer]\n",
        map { "$_ = $all{$_}\n" } sort keys %all);
    $self->start;
    return $self;
}

# It refuses root, and is not to outlive the test, however that ends. Its files go with the server's
# directory.
sub start ($self) {
    my @command = (as_user(), 'setpriv', '--pdeathsig', 'TERM', '--', Programs::pgbouncer(),
        '--quiet', "$self->{file}.ini");
    defined($self->{pid} = fork) or die "cannot fork: $!\n";
    if (!$self->{pid}) {
        chdir $self->{PGHOST};
        open STDIN, '<', '/dev/null' and open STDOUT, '>', "$self->{file}.out"
            and open STDERR, '>&', \*STDOUT
            and exec @command;
        POSIX::_exit(127);
    }
    push @running, $self;
    wait_until('PgBouncer listens', sub {
        waitpid($self->{pid}, WNOHANG) == 0 or die "PgBouncer did not start:\n",
            `cat $self->{file}.out $self->{file}.log 2>&1`;
        # The socket is there a moment before it can be connected to.
        return IO::Socket::UNIX->new(Peer => "$self->{PGHOST}/.s.PGSQL.$self->{PGPORT}");
    });
    return;
}

# A command of its console, such as RECONNECT. (DBD::Pg does not talk to what calls itself version
# 1.)
sub console ($self, $command) {
    my @psql = ('psql', '-XqAt', '-h', $self->{PGHOST}, '-p', $self->{PGPORT}, '-U',
        $self->{PGUSER}, '-d', 'pgbouncer', '-c', $command);
    open my $out, '-|', @psql or die "cannot run psql: $!\n";
    my @lines = <$out>;
    close $out or die "PgBouncer refused $command\n";
    return @lines;
}

sub stop ($self) {
    my $pid = delete $self->{pid} or return;
    # Newer ones wait for their clients when they are asked to end, and this one may be out of
    # order.
    kill TERM => $pid;
    kill KILL => $pid
        unless eval { wait_until('PgBouncer ends', sub { waitpid($pid, WNOHANG) != 0 }, 3) };
    waitpid $pid, 0;
    return;
}

sub write_file ($name, @lines) {
    open my $file, '>', $name or die "$name: $!\n";
    print {$file} @lines;
    close $file or die "$name: $!\n";
    return;
}

END {
    my $status = $?;
    $_->stop for @running;
    $? = $status;
}

1;
