# A pgpool-II in front of a primary and its standby, on a socket beside the primary's own, for as
# long as the object lives. All that may be read on the standby is: nothing else has a weight.
#
#   my $pooler = PgPool->new($primary, $standby, failover_on_backend_shutdown => 'off');
#   session(server => $pooler, role => 'app');
#
# The servers are what own_server() and replica() return. As for PgBouncer, sessions take no values
# with their statements.
package PgPool;

use AdvisoryTest;
use Launch;
use Programs;

my $next_port = 9999;
my @running;

sub new ($class, $primary, $standby, %settings) {
    my $directory = $primary->{ADVISORY_EXT_TMP};
    my $port = $next_port;
    $next_port += 10;
    my $self = bless {
        PGHOST => $directory, PGPORT => $port, PGUSER => $primary->{PGUSER},
        PGDATABASE => $primary->{PGDATABASE}, file => "$directory/pgpool-$port",
    }, $class;
    my %all = (
        backend_clustering_mode => 'streaming_replication', listen_addresses => '', port => $port,
        socket_dir => $directory, unix_socket_directories => $directory,
        pcp_listen_addresses => '', pcp_port => $port + 1,
        pcp_socket_dir => $directory, wd_ipc_socket_dir => $directory, logdir => $directory,
        pid_file_name => "$self->{file}.pid", num_init_children => 8,
        sr_check_user => $primary->{PGUSER}, sr_check_database => 'postgres', sr_check_period => 0,
        search_primary_node_timeout => 1,
        backend_hostname0 => $primary->{PGHOST}, backend_port0 => $primary->{PGPORT},
        backend_weight0 => 0,
        backend_hostname1 => $standby->{PGHOST}, backend_port1 => $standby->{PGPORT},
        backend_weight1 => 1, %settings,
    );
    spew("$self->{file}.conf", join '', map { "$_ = '$all{$_}'\n" } sort keys %all);
    spew("$self->{file}.$_", '') for qw(pcp hba);
    $self->start;
    return $self;
}

# It forgets which servers another one has given up, and does not look long for a primary.
sub start ($self) {
    $self->{program} = launch_as_owner(Programs::pgpool(), '-n', '-D', '-f', "$self->{file}.conf",
        '-F', "$self->{file}.pcp", '-a', "$self->{file}.hba");
    push @running, $self;
    wait_until('pgpool-II serves clients', sub {
        die "pgpool-II did not start:\n", $self->{program}->said if $self->{program}->is_done;
        return eval { session(server => $self) };
    });
    return;
}

# The servers as it knows them: "0:up 1:up".  Nothing while it makes up its mind.
sub statuses ($self) {
    my $rows = eval { session(server => $self)->rows('SHOW pool_nodes') } // [];
    return join ' ', map { "$_->[0]:$_->[3]" } @$rows;
}

sub stop ($self) {
    eval { $self->{program}->stop('INT', 5) } // $self->{program}->kill;
    return;
}

END {
    my $status = $?;
    $_->stop for @running;
    $? = $status;
}

1;
