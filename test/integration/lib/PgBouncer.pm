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
use Launch;
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
    spew("$self->{file}.users", join '', map { qq{"$_" ""\n} } $server->{PGUSER}, 'app');
    spew("$self->{file}.ini", join "\n", '[databases]',
        "* = host=$server->{PGHOST} port=$server->{PGPORT}", '[pgbouncer]',
        map { "$_ = $all{$_}" } sort keys %all);
    $self->start;
    return $self;
}

# It refuses root.
sub start ($self) {
    $self->{program} = launch_as_owner(Programs::pgbouncer(), '--quiet', "$self->{file}.ini");
    push @running, $self;
    wait_until('PgBouncer listens', sub {
        die "PgBouncer did not start:\n", $self->{program}->said, slurp("$self->{file}.log")
            if $self->{program}->is_done;
        # The socket is there a moment before it can be connected to.
        return IO::Socket::UNIX->new(Peer => "$self->{PGHOST}/.s.PGSQL.$self->{PGPORT}");
    });
    return;
}

# A command of its console, such as RECONNECT. (DBD::Pg does not talk to what calls itself version
# 1.)
sub console ($self, $command) {
    system('psql', '-Xq', '-o', '/dev/null', '-h', $self->{PGHOST}, '-p', $self->{PGPORT}, '-U',
        $self->{PGUSER}, '-d', 'pgbouncer', '-c', $command) == 0
        or die "PgBouncer refused $command\n";
    return;
}

# Newer ones wait for their clients when they are asked to end, and this one may be out of order.
sub stop ($self) {
    eval { $self->{program}->stop('TERM', 3) } // $self->{program}->kill;
    return;
}

END {
    my $status = $?;
    $_->stop for @running;
    $? = $status;
}

1;
