# Phase crashes: under load a backend or the postmaster is killed by SIGKILL, or the server is
# stopped in immediate mode. After that the server starts, only the prepared transactions hold
# locks, everything works immediately, and leases, fences and tokens have their values from before.
package Stress::Crashes;

use AdvisoryTest;
use Stress::Load qw(slurp);
use Time::HiRes qw(time);

use constant { UP_S => 60, LOAD_S => 2 };

sub run (%how) {
    srand $how{seed};
    my $load = Stress::Load->new(%how);
    my (%done, @seconds);
    $load->start;
    for my $crash (1 .. $how{crashes}) {
        $load->watch(0.3 + rand LOAD_S);
        my $model = $load->{model};
        my @pids = grep { $_ } $model->doom([ 0 .. $how{sessions} - 1 ], pause => 1);
        my $way = rand() < 0.6 && @pids ? 'a backend killed' : rand() < 0.6
            ? 'the postmaster killed' : 'an immediate stop';
        crash($load, $way, @pids);
        my $down = time;
        come_up($load, $way);
        push @seconds, time - $down;
        wait_until('no worker has a session', sub {
            $load->look_after;
            !grep { $model->pid($_) } 0 .. $how{sessions} - 1
        }, UP_S);
        check($load);
        $done{$way}++;
        $model->touch($_) for 0 .. $how{sessions} - 1;
        $model->set_state('go');
    }
    $load->watch(LOAD_S);
    $load->finish;
    $load->check_end(crashes => 1);
    $load->check_works;
    printf "  %d crashes (%s), up again after %.1f s (median)\n", $how{crashes},
        join(', ', map { "$_: $done{$_}" } sort keys %done), median(@seconds);
    $load->report;
    $load->{server}->stop;
    return;
}

sub postmaster ($load) {
    return slurp("$load->{server}{ADVISORY_EXT_DATADIR}/postmaster.pid") =~ /\A(\d+)/;
}

# Is it still a process of the server? It may have ended, and its number may be somebody else's by
# now.
sub is_servers ($load, $pid) {
    return (readlink("/proc/$pid/cwd") // '') eq $load->{server}{ADVISORY_EXT_DATADIR}
}

sub kill_one ($load, @pids) {
    my @own = grep { is_servers($load, $_) } @pids or return;
    return kill KILL => $own[ rand @own ];
}

sub crash ($load, $way, @pids) {
    if    ($way eq 'a backend killed')      { kill_one($load, @pids) }
    elsif ($way eq 'the postmaster killed') {
        kill_one($load, postmaster($load)) or die "the postmaster is gone\n"
    }
    else                                    { $load->{server}->ctl('stop', '-m', 'immediate') }
    return;
}

# A new postmaster does not start while a process of the old one has not noticed yet.
sub come_up ($load, $way) {
    if ($way ne 'a backend killed') {
        wait_until('the server starts', sub {
            open my $stderr, '>&', \*STDERR or die "stderr: $!\n";
            open STDERR, '>', '/dev/null' or die "stderr: $!\n";
            my $is_up = $load->{server}->ctl('start');
            open STDERR, '>&', $stderr or die "stderr: $!\n";
            return $is_up;
        }, UP_S);
    }
    # It may not have noticed yet that a backend was killed; or that one had ended already.
    my $old = $load->{look}->pid;
    my $again = time + 2;
    wait_until('the server has crashed', sub {
        kill_one($load, $old) if time > $again;
        return !is_servers($load, $old);
    }, UP_S);
    wait_until('the server is up', sub {
        eval {
            $load->{look} = $load->observer;
            !$load->{look}->value('SELECT pg_is_in_recovery()')
        }
    }, UP_S);
    return;
}

sub check ($load) {
    my ($look, $model) = @{$load}{qw(look model)};
    my $now = 1e6 * time;
    # Locks of those that are gone.
    for my $source (q(pg_locks WHERE locktype = 'advisory' AND pid IS NOT NULL),
        'advisory.locks WHERE pid IS NOT NULL', 'advisory.waits WHERE pid > 0',
        'advisory.semaphores WHERE waiting > 0 OR EXISTS (SELECT FROM unnest(holders) AS h WHERE '
            . 'h <> 0)') {
        my $rows = $look->value("SELECT count(*) FROM $source");
        $load->fail("after the crash there are $rows rows of $source") if $rows;
    }
    # Those of prepared transactions are what they were. There may be more, of which the worker was
    # not told.
    my %held = map { $_->[0] => $_->[1] } @{ $look->rows(<<'SQL') };
        SELECT (classid::bigint << 32 | objid::bigint) || ':' || objsubid,
        string_agg(CASE mode WHEN 'ExclusiveLock' THEN 'X' ELSE 'S' END, '') FROM pg_locks
        WHERE locktype = 'advisory' AND pid IS NULL GROUP BY 1
SQL
    for my $resource (@{ $load->{plan}{resources} }) {
        my ($marks, $modes) =
            ($model->prepared_marks($resource->{index}), $held{ $resource->{tag} } // '');
        $load->fail(
            "prepared transactions held $resource->{what} in modes $marks, and after the crash in "
                . "modes '$modes'")
            if ($marks =~ /X/ && $modes !~ /X/) || ($marks =~ tr/S//) > length $modes;
    }
    for my $lease (@{ $load->{plan}{leases} }) {
        my ($token, $from, $to) = $model->lease($lease->{index});
        # It is tried as long as it is held for certain.
        my $got = $look->value("SELECT token FROM advisory.try_lease($lease->{call}, '1ms')");
        $load->fail(
            "lease $lease->{call} was held until $to with token $token, and after the crash "
                . "somebody else gets it at $now with token $got")
            if defined $got && $to > 1e6 * time;
    }
    my %fences =
        map { $_->[0] => $_->[1] } @{ $look->rows('SELECT key, token FROM advisory.fences') };
    for my $lock (@{ $load->{plan}{locks} }) {
        my ($checked, $kept) = ($model->fence($lock->{index}), $fences{ $lock->{key} } // 0);
        $load->fail(
            "token $checked of $lock->{what} was checked, and after the crash the fence has $kept")
                if $kept < $checked;
    }
    my $available = $look->rows('SELECT available, reason FROM advisory.directory')->[0];
    $load->fail("after the crash the directory is not available: $available->[1]")
        if !$available->[0];
    $load->check_works;
    return;
}

1;
