# Three Patroni members with PostgreSQL, and etcd, on loopback, for as long as the object lives; and
# ways to make them fail over.
#
#   my $cluster = Cluster->new(synchronous => 1);
#   session(server => $cluster->leader)->run('CREATE EXTENSION advisory_ext');
#   my $seconds = $cluster->failover('host');
#
# $PATRONI names another Patroni than that on PATH. Files are in the shared server's directory,
# which also ends what a killed test leaves running there.
package Cluster;

use AdvisoryTest;
use File::Basename qw(basename);
use HTTP::Tiny;
use JSON::PP qw(decode_json encode_json);
use Launch;
use MIME::Base64 qw(decode_base64 encode_base64);
use Programs;
use Test::More;
use Time::HiRes qw(sleep time);

use constant MEMBERS => 3;

my $patroni = $ENV{PATRONI} // program('patroni');
my ($faketime) = glob '/usr/lib/*/faketime/libfaketime.so.1';
my $count = 0;
my @running;

# Why there can be no cluster here, or nothing.
sub missing {
    return 'there is no Patroni here' unless $patroni && -x $patroni;
    return 'there is no etcd here'    unless program('etcd');
    return "$patroni does not run"    unless version();
    return 'there is no libfaketime here' if $ENV{FAILOVER_CLOCKS} && !$faketime;
    return;
}

# Patroni's version, such as 3.0.2.
my $version;
sub version { return $version //= `$patroni --version 2>/dev/null` =~ /(\d+(?:\.\d+)+)/ ? $1 : '' }

sub is_old { return version() =~ /^[0-3]\./ }

# The ways in which the primary is lost without $FAILOVER_KINDS, see failover(). Patroni 3.0 can use
# a timeline twice in both modes when a primary was frozen (Patroni's issue 2787).
sub kinds { return is_old() ? qw(host postmaster) : qw(host paused postmaster frozen) }

# Comes back when there is a primary with two streaming standbys. With clocks => [ 0, 2, -2 ], the
# servers' clocks differ from the machine's by so many seconds. (By more than 3, Patroni does not
# know its server again.)
sub new ($class, %how) {
    my $prefix = join '-', "$ENV{ADVISORY_EXT_TMP}/cluster", $$, ++$count;
    my $self = bless { synchronous => $how{synchronous}, prefix => $prefix }, $class;
    push @running, $self;
    $self->start_etcd;
    $self->{members} =
        [ map { $self->new_member("m$_", $how{clocks}[ $_ - 1 ] // 0) } 1 .. MEMBERS ];
    $self->start_patroni($_) for @{ $self->{members} };
    $self->wait_for_standbys;
    for my $member (grep { $_->{clock} } @{ $self->{members} }) {
        my $ahead = session(server => $member)
            ->value('SELECT extract(epoch FROM clock_timestamp())') - time;
        die "the clock of $member->{name} is $ahead s ahead\n"
            if abs($ahead - $member->{clock}) > 1;
    }
    return $self;
}

# ---- Starting ------------------------------------------------------------------------------------

sub start_etcd ($self) {
    my ($clients, $peers) = map { 'http://127.0.0.1:' . free_port() } 1 .. 2;
    $self->{etcd} = $clients;
    $self->{etcd_process} =
        launch_as_owner('etcd', '--name=etcd', "--data-dir=$self->{prefix}-etcd",
        '--unsafe-no-fsync', '--logger=zap', '--log-level=warn', "--listen-client-urls=$clients",
        "--advertise-client-urls=$clients", "--listen-peer-urls=$peers",
        "--initial-advertise-peer-urls=$peers", "--initial-cluster=etcd=$peers");
    wait_until('etcd answers', sub {
        die "etcd did not start:\n", $self->{etcd_process}->said if $self->{etcd_process}->is_done;
        return $self->ask_etcd('/nothing');
    });
    return;
}

# What session(server => …) takes, and the member's files and processes.
sub new_member ($self, $name, $clock) {
    my $member = {
        name => $name, PGHOST => '127.0.0.1', PGPORT => free_port(), PGUSER => 'postgres',
        data => "$self->{prefix}-$name", file => "$self->{prefix}-$name.json", clock => $clock,
        bin => $ENV{PG_BINDIR},
    };
    wrap_server($member) if $clock;
    # JSON is YAML.
    spew($member->{file}, encode_json($self->settings($member)));
    return $member;
}

# Gives the member a server whose clock differs. Patroni itself does not run with libfaketime.
sub wrap_server ($member) {
    $member->{bin} = "$member->{data}.bin";
    mkdir $member->{bin} or die "$member->{bin}: $!\n";
    symlink $_, "$member->{bin}/" . basename($_) for glob "$ENV{PG_BINDIR}/*";
    unlink "$member->{bin}/postgres";
    spew("$member->{bin}/postgres", sprintf "#!/bin/sh\nLD_PRELOAD='%s' FAKETIME='%+ds' "
        . qq{FAKETIME_DONT_FAKE_MONOTONIC=1 exec '%s/postgres' "\$@"\n},
        $faketime, $member->{clock}, $ENV{PG_BINDIR});
    chmod 0755, "$member->{bin}/postgres";
    return;
}

# Quick, and not safe should this machine fail; otherwise as the documents say. (pg_rewind insists
# on full_page_writes.) Patroni does not try to start a killed primary again before it gives the
# leader's key away: that would be no failover.
sub settings ($self, $member) {
    my ($database, $rest) = ("127.0.0.1:$member->{PGPORT}", '127.0.0.1:' . free_port());
    my %user = (username => $member->{PGUSER});
    my $true = JSON::PP::true;
    return {
        scope => 'advisory', name => $member->{name},
        restapi => { listen => $rest, connect_address => $rest },
        etcd3 => { url => $self->{etcd} },
        bootstrap => {
            dcs => {
                (is_old() ? (ttl => 5, loop_wait => 1, retry_timeout => 2)
                    : (ttl => 20, loop_wait => 1, retry_timeout => 3)),
                maximum_lag_on_failover => 1 << 30, primary_start_timeout => 0,
                check_timeline => $true,
                ($self->{synchronous}
                    ? (synchronous_mode => $true, synchronous_node_count => 1) : ()),
                postgresql => {
                    use_pg_rewind => $true, use_slots => $true,
                    parameters => {
                        fsync => 'off', wal_log_hints => 'on', wal_keep_size => '256MB',
                        shared_buffers => '32MB', max_connections => 100,
                        log_min_messages => 'log', log_line_prefix => '%m [%p] %q%a ',
                    },
                },
            },
            initdb => [ { encoding => 'UTF8' }, { locale => 'C' }, 'no-sync', { auth => 'trust' } ],
        },
        watchdog => { mode => 'off' },
        postgresql => {
            listen => $database, connect_address => $database, data_dir => $member->{data},
            bin_dir => $member->{bin},
            pgpass => "$member->{data}.pgpass",
            authentication => { superuser => \%user, replication => \%user, rewind => \%user },
            parameters => { unix_socket_directories => '' },
            pg_hba => [ 'host all all 127.0.0.1/32 trust',
                'host replication all 127.0.0.1/32 trust' ],
        },
    };
}

sub start_patroni ($self, $member) {
    $member->{patroni} = launch_as_owner($patroni, $member->{file});
    return;
}

# ---- Looking -------------------------------------------------------------------------------------

sub ports ($self) { return map { $_->{PGPORT} } @{ $self->{members} } }

# The member that has the leader's key and is a primary, if there is one at the moment; never the
# one that is excepted, which may not answer at all.
sub leader ($self, $except = undef) {
    my $name = $self->key('leader') // return;
    my ($member) = grep { $_->{name} eq $name } @{ $self->{members} };
    return if $except && $member == $except;
    my $is_standby = eval { session(server => $member)->value('SELECT pg_is_in_recovery()') };
    return defined $is_standby && !$is_standby ? $member : undef;
}

# Waits until the primary has two standbys that use their slots (pg_basebackup streams, too, with a
# temporary one; and a new standby connects without its slot first, and then again), and in
# synchronous mode until Patroni has written down which of them it may promote: of a primary that is
# killed before, none is.
sub wait_for_standbys ($self, $seconds = 90) {
    return wait_until('the primary has its standbys', sub {
        sleep 0.1;
        my $leader = $self->leader or return;
        my $streaming = eval { session(server => $leader)->value(<<'SQL') };
            SELECT count(*) FROM pg_stat_replication JOIN pg_replication_slots ON active_pid = pid
            WHERE state = 'streaming' AND NOT temporary
SQL
        return unless ($streaming // 0) == MEMBERS - 1;
        return 1 unless $self->{synchronous};
        my $sync = decode_json($self->key('sync') // '{}');
        return ($sync->{leader} // '') eq $leader->{name} && $sync->{sync_standby};
    }, $seconds);
}

# The value of a key of the cluster's in etcd.
sub key ($self, $key) {
    my $answer = $self->ask_etcd("/service/advisory/$key") or die "etcd does not answer\n";
    my ($found) = @{ decode_json($answer)->{kvs} // [] };
    return $found ? decode_base64($found->{value}) : undef;
}

sub ask_etcd ($self, $key, $request = 'range') {
    my $answer = HTTP::Tiny->new(timeout => 5)->post("$self->{etcd}/v3/kv/$request",
        { content => encode_json({ key => encode_base64($key, '') }) });
    return $answer->{success} ? $answer->{content} : undef;
}

# ---- Failing -------------------------------------------------------------------------------------

# failover(kind): loses the primary, and has it come back as a standby. How long the cluster was
# without a primary, in seconds.
#   host        its standbys get no WAL for a moment, then all its processes are killed
#   postmaster  killed alone; Patroni is there
#   frozen      Patroni is stopped, and continued after the takeover: in between there are two
#               primaries
#   paused      so are all processes: sessions go on in the middle of what they did, and Patroni
#               finds out later
#   early       as host, and so is its successor as soon as there is one: Patroni may use the
#               successor's timeline once more
# Clients that have a connection to a primary which is frozen or paused keep it.
sub failover ($self, $kind) {
    $self->wait_for_standbys;
    my $old = $self->leader or die "there is no primary\n";
    my $postmaster = postmaster($old) or die "the primary $old->{name} has no postmaster\n";
    my @lost = $kind eq 'postmaster' ? $postmaster : $old->{patroni}{pid};
    hold_back_wal($old, $postmaster) if $kind eq 'host' || $kind eq 'early';
    @lost = all_processes(@lost, $postmaster) unless $kind eq 'postmaster' || $kind eq 'frozen';
    kill(($kind eq 'frozen' || $kind eq 'paused' ? 'STOP' : 'KILL'), @lost);
    my $begun = time;
    my $new;
    wait_until("a standby is promoted ($kind)", sub {
        sleep($kind eq 'early' ? 0.01 : 0.1);
        return $new = $self->leader($old);
    }, 90);
    my $seconds = time - $begun;
    if ($kind eq 'host') {
        $self->restart_patroni($old);
    } elsif ($kind eq 'early') {
        kill KILL => all_processes($new->{patroni}{pid}, postmaster($new) // ());
        eval { wait_until('the last one is promoted', sub { sleep 0.1; $self->leader($new) }, 20) };
        # In synchronous mode only the successor may become the primary.
        $self->restart_patroni($_) for $new, $old;
    } elsif ($kind ne 'postmaster') {
        sleep 3;
        kill CONT => @lost;
    }
    $self->make_members_follow;
    return $seconds;
}

# With all that they have started, stopped: none starts more processes while they are counted.
sub all_processes (@pids) {
    kill STOP => @pids;
    return @pids, map { descendants($_) } @pids;
}

sub restart_patroni ($self, $member) {
    $member->{patroni}->finish;
    return $self->start_patroni($member);
}

# A member that was on another branch of a timeline that was used twice cannot follow, and is made
# anew. The Patroni 3.0 of a primary that was frozen may write down that it is still the primary
# which has a synchronous standby. Nobody corrects that.
sub make_members_follow ($self) {
    return if eval { $self->wait_for_standbys(45); 1 };
    my $leader = $self->leader or die "there is no primary\n";
    my %follows = map { $_ => 1 } split ' ',
        session(server => $leader)
            ->value(q(SELECT string_agg(application_name, ' ') FROM pg_stat_replication
                WHERE state = 'streaming')) // '';
    my @strangers = grep { $_ != $leader && !$follows{ $_->{name} } } @{ $self->{members} };
    if (!@strangers && $self->{synchronous}) {
        note "what the key sync says is of a primary that is none: ", $self->key('sync');
        $self->ask_etcd('/service/advisory/sync', 'deleterange') or die "etcd does not answer\n";
    }
    for my $member (@strangers) {
        note "$member->{name} does not follow $leader->{name}, and is made anew";
        kill KILL => all_processes($member->{patroni}{pid}), processes_of($member);
        wait_until("$member->{name} has ended", sub { sleep 0.1; !processes_of($member) });
        system 'rm', '-rf', $member->{data};
        $self->restart_patroni($member);
    }
    return $self->wait_for_standbys;
}

# Comes back when there is WAL that no standby will get, if there is load, so that there is
# something to lose.
sub hold_back_wal ($primary, $postmaster) {
    my $session = session(server => $primary);
    kill STOP => grep { command_of($_) =~ /walsender/ } descendants($postmaster);
    my $end = time + 1;
    sleep 0.02 until time > $end
        || $session->value(
            'SELECT pg_current_wal_flush_lsn() - max(sent_lsn) > 100000 FROM pg_stat_replication');
    return;
}

# The process that a member's postmaster.pid names, if its command line names its directory: it
# could be a stranger that has got the number of one that is gone.
sub postmaster ($member) {
    my ($pid) = (eval { slurp("$member->{data}/postmaster.pid") } // '') =~ /\A(\d+)$/m or return;
    return command_of($pid) =~ /\0\Q$member->{data}\E\0/ ? $pid : undef;
}

sub descendants ($ancestor) {
    my %children;
    for my $stat (glob '/proc/[0-9]*/stat') {
        my ($pid, $parent) = (eval { slurp($stat, ':raw') } // '')
            =~ /^(\d+) \(.*\) \S (\d+)/s or next;
        push @{ $children{$parent} }, $pid;
    }
    my @found = ($ancestor);
    for (my $i = 0; $i < @found; $i++) { push @found, @{ $children{ $found[$i] } // [] } }
    return @found[1 .. $#found];
}

sub command_of ($pid) { return eval { slurp("/proc/$pid/cmdline", ':raw') } // '' }

# ---- The end -------------------------------------------------------------------------------------

# Patroni would start its server again, so it goes first. A server that ends by itself takes its
# shared memory along.
sub stop ($self, $tell = 0) {
    return if $self->{stopped}++;
    my @members = @{ $self->{members} // [] };
    for my $member (grep { $_->{patroni} } @members) {
        my $pid = $member->{patroni}{pid};
        kill STOP => $pid;
        kill KILL => descendants($pid);
        $member->{patroni}->kill;
        tell_log($member) if $tell;
    }
    for my $signal (qw(QUIT KILL)) {
        my @pids = map { processes_of($_) } @members;
        kill $signal => @pids;
        kill CONT => @pids;
        last if eval {
            wait_until('the members have ended', sub {
                sleep 0.1;
                !map { processes_of($_) } @members
            }, 10)
        };
    }
    $self->{etcd_process}->kill if $self->{etcd_process};
    system 'rm', '-rf', glob "$self->{prefix}-*";
    # libfaketime's memory stays when its process is killed.
    unlink grep { /_(\d+)$/ && !-e "/proc/$1" } glob '/dev/shm/*faketime_s*'
        if grep { $_->{clock} } @members;
    return;
}

# All that works in a member's directory, or is about to.
sub processes_of ($member) {
    return grep {
        (readlink("/proc/$_/cwd") // '') eq $member->{data}
            || command_of($_) =~ /\0\Q$member->{data}\E\0/
    }
        map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# The end of its log, without the lines of what its Patroni calls.
sub tell_log ($member) {
    my @lines = grep { /^\d/ } split /\n/, $member->{patroni}->said;
    splice @lines, 0, -40 if @lines > 40;
    diag "the end of $member->{name}'s log:\n", map { "  $_\n" } @lines;
    return;
}

# For END to run, too, when the test is ended or takes too long.
$SIG{$_} = sub { diag "ended by SIG$_[0]"; exit 1 } for qw(HUP INT TERM ALRM);

END {
    my $status = $?;
    local $SIG{ALRM} = 'IGNORE';
    $_->stop($status != 0) for @running;
    $? = $status;
}

1;
