# A streaming replica of a server of one's own: a hot standby.
package Replica;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';

our @EXPORT = qw(replica caught_up cluster configure as_server);

# cluster($server, 'name'): another cluster, with this name in the server's directory, and removed
# with that. The files are not created yet. Use the returned object like that of own_server().
sub cluster {
    my ($server, $name) = @_;
    my $dir = "$server->{ADVISORY_EXT_TMP}/$name";
    my $cluster = bless { %$server, PGPORT => $server->{PGPORT} + 1, ADVISORY_EXT_DATADIR => $dir,
        ADVISORY_EXT_LOG => "$dir.log" },
        ref $server;
    # It is not this one that the server's processes belong to.
    delete @{$cluster}{qw(pid in out)};
    return $cluster;
}

# Adds 'name=value', … to a cluster's configuration.
sub configure {
    my ($cluster, @settings) = @_;
    as_server($cluster, 'sh', '-c', 'conf=$1; shift; printf "%s\n" "$@" >>"$conf"', 'sh',
        "$cluster->{ADVISORY_EXT_DATADIR}/postgresql.conf",
        map { /^(\w+)=(.*)$/s ? "$1 = '$2'" : () } "port=$cluster->{PGPORT}",
        'listen_addresses=', @settings);
    return;
}

# replica($primary, 'name=value', …): a cluster that follows it.
sub replica {
    my ($primary, @settings) = @_;
    my $standby = cluster($primary, 'standby-' . ($primary->{PGPORT} + 1));
    as_server($primary, 'pg_basebackup', '--write-recovery-conf', '--checkpoint=fast', '--no-sync',
        "--pgdata=$standby->{ADVISORY_EXT_DATADIR}");
    # It asks often for missing WAL, and reports immediately what it has replayed.
    configure($standby, 'wal_receiver_status_interval=1s', @settings);
    $standby->ctl('start') or die "the standby did not start: see $standby->{ADVISORY_EXT_LOG}\n";
    return $standby;
}

# Waits until the standby, a server, has replayed all that a session of the primary sees written.
sub caught_up {
    my ($primary, $standby) = @_;
    my $written = $primary->value('SELECT pg_current_wal_flush_lsn()');
    # A recovery conflict may cancel the query, or end its session, also while that connects: so it
    # is a session of its own.
    my $session;
    return wait_until('the standby has caught up', sub {
        my $result = eval {
            $session //= session(server => $standby);
            $session->query('SELECT pg_last_wal_replay_lsn() >= ?::pg_lsn', $written);
        };
        die $@ if !$result && $@ !~ /conflict with recovery/;
        return $result->{value} if $result && !$result->{state};
        die "$result->{message}\n" if $result && $result->{state} !~ /^(?:40001|08000)$/;
        undef $session;
        return;
    });
}

sub as_server {
    my ($server, @command) = @_;
    local %ENV = (%ENV, map { $_ => $server->{$_} } grep { /^(PG|ADVISORY_EXT_)/ } keys %$server);
    system('bash', $server->{script}, 'as', @command) == 0 or die "failed: @command\n";
    return;
}

1;
