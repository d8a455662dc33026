# A streaming replica of a server of one's own: a hot standby.
package Replica;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';

our @EXPORT = qw(replica caught_up);

# replica($primary, 'name=value', …): what comes back is to be used as own_server()'s. It is made in the primary's
# directory, and removed with it.
sub replica {
    my ($primary, @settings) = @_;
    my $dir = "$primary->{ADVISORY_EXT_TMP}/standby";
    my $standby = bless { %$primary, PGPORT => $primary->{PGPORT} + 1, ADVISORY_EXT_DATADIR => $dir, ADVISORY_EXT_LOG => "$dir.log" },
        ref $primary;
    # It is not this one that the primary's processes belong to.
    delete @{$standby}{qw(pid in out)};
    as_server($primary, 'pg_basebackup', '--write-recovery-conf', '--checkpoint=fast', '--no-sync', "--pgdata=$dir");
    # Looks for what it misses often, and tells at once what it has replayed.
    as_server($primary, 'sh', '-c', 'conf=$1; shift; printf "%s\n" "$@" >>"$conf"', 'sh', "$dir/postgresql.conf",
        map { /^(\w+)=(.*)$/s ? "$1 = '$2'" : () } "port=$standby->{PGPORT}", 'listen_addresses=', 'wal_receiver_status_interval=1s', @settings);
    $standby->ctl('start') or die "the standby did not start: see $dir.log\n";
    return $standby;
}

# Waits until the standby has replayed all that the primary has written, as a session of each sees it.
sub caught_up {
    my ($primary, $standby) = @_;
    my $written = $primary->value('SELECT pg_current_wal_flush_lsn()');
    return wait_until('the standby has caught up', sub {
        my $result = $standby->query('SELECT pg_last_wal_replay_lsn() >= ?::pg_lsn', $written);
        # What is replayed meanwhile may cancel this query, too.
        die "$result->{message}\n" if $result->{state} && $result->{state} ne '40001';
        return $result->{value};
    });
}

sub as_server {
    my ($server, @command) = @_;
    local %ENV = (%ENV, map { $_ => $server->{$_} } grep { /^(PG|ADVISORY_EXT_)/ } keys %$server);
    system('bash', $server->{script}, 'as', @command) == 0 or die "failed: @command\n";
    return;
}

1;
