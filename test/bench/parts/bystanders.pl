# What a load without the extension keeps of its throughput, while others hold locks, look at them
# and wait.
package Bench::Part::bystanders;

use AdvisoryTest;
use Bench;

my ($locks, $waiters, $seconds) = QUICK ? (20_000, 50, 1) : (100_000, 300, 3);

my $ADVISORY = q{pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'};
my %OTHERS = (
    ours => {
        hold => "SELECT count(advisory.lock('held', i)) FROM generate_series(1, $locks) AS i",
        take => q{SELECT advisory.acquire('bench', 'slots', 1)},
        wait => q{SELECT advisory.acquire('bench', 'slots', 1)},
        look => [ map { "SELECT count(*) FROM advisory.$_" }
            qw(locks waits activity semaphores pressure) ],
    },
    theirs => {
        hold => "SELECT count(pg_advisory_lock(i)) FROM generate_series(1, $locks) AS i",
        take => 'SELECT pg_advisory_lock(-1)', wait => 'SELECT pg_advisory_lock(-1)',
        # As much as can be had of the same, in the same order.
        look => [ "SELECT count(*) FROM $ADVISORY",
            "SELECT count(pg_blocking_pids(pid)) FROM $ADVISORY AND NOT granted",
            "SELECT count(*) FROM $ADVISORY AND NOT granted",
            "SELECT classid, objid, count(*) FROM $ADVISORY AND objsubid > 16384 GROUP BY 1, 2",
            'SELECT count(*) FROM pg_locks' ],
    },
);
my %set;

# The sessions that hold and wait, on a server of their own for each side: those of the other one
# sleep meanwhile.
sub others ($tree, $side) {
    return $set{$tree}{$side} //= do {
        my $server = server_of($tree, $side);
        my $how = $OTHERS{$side};
        my $where = join ' ', map { "$_=$server->{$_}" } qw(PGHOST PGPORT PGUSER);
        system("$where $ENV{PG_BINDIR}/pgbench -iq postgres >/dev/null 2>&1") == 0
            or die "no tables of pgbench\n";
        my $holder = session(server => $server)->run($how->{hold}, $how->{take});
        my @waiting = map { session(server => $server)->start($how->{wait}) } 1 .. $waiters;
        { server => $server, sessions => [@waiting, $holder],
            looker => session(server => $server) };
    };
}

# Runs the work while processes of the lowest priority keep all processors awake. On a virtual
# machine one that sleeps wakes up late, so that a load would be the faster, the more time the views
# beside it take.
sub awake ($work) {
    my @pids;
    for (1 .. qx{nproc}) {
        my $pid = fork // die "cannot fork: $!\n";
        push @pids, $pid if $pid;
        exec 'nice', '-n', '19', $^X, '-e', '1 while getppid > 1' if !$pid;
    }
    my $value = eval { $work->() };
    my $error = $@;
    kill 'TERM', @pids;
    waitpid $_, 0 for @pids;
    die $error if $error;
    return $value;
}

sub kept ($side) {
    return sub ($tree, @) {
        my $others = others($tree, $side);
        # All views, ten times a second.
        my $look = join ' ', map { "PERFORM * FROM ($_) AS view;" } @{ $OTHERS{$side}{look} };
        my $looks = 10 * ($seconds + 1);
        $others->{looker}->start("DO \$\$ BEGIN
            FOR i IN 1..$looks LOOP $look PERFORM pg_sleep(0.1); END LOOP; END \$\$");
        # One client: with more, two processors would not be enough, and the figure would be who
        # gets one.
        my $tps = awake(sub {
            pgbench($others->{server}, 1, $seconds, 'prepared',
                "\\set aid random(1, 100000)\n"
                . 'SELECT abalance FROM pgbench_accounts WHERE aid = :aid;')->[0]
        });
        $others->{looker}{dbh}->pg_cancel;
        $others->{looker}->finish;
        return $tps;
    };
}

compare(work => "a load without the extension, beside $locks locks, $waiters waiters, "
        . 'and views read ten times a second', of => 'throughput',
    against => "beside the same of the built-ins", 'at least' => 1, ours => kept('ours'),
    theirs => kept('theirs'));
# advisory.pressure is read 100 times a second, beside the locks. (The usual query keeps all of the
# lock table locked while it copies it.)
my $calls = QUICK ? 50_000 : 200_000;
my $LOAD = "DO \$\$ BEGIN FOR i IN 1 .. $calls LOOP
    PERFORM pg_advisory_lock(-i); PERFORM pg_advisory_unlock(-i);
END LOOP; END \$\$";

# What a load that takes locks and releases them takes beside such a reader. Time without a
# processor does not count.
sub load_beside ($query = undef) {
    return sub ($tree, @) {
        my $set = others($tree, 'ours');
        my $load = $set->{load} //= session(server => $set->{server});
        my $look = $set->{looker};
        return undisturbed_time(sub { $load->run($LOAD) }, $load) if !$query;
        $look->start("DO \$\$ DECLARE found record;
            BEGIN LOOP $query; PERFORM pg_sleep(0.01); END LOOP; END \$\$");
        my $time = undisturbed_time(sub { $load->run($LOAD) }, $load);
        $look->{dbh}->pg_cancel;
        die "the reader has ended\n" if ($look->finish->{state} // '') ne '57014';
        return $time;
    };
}

my @how = (work => "a load of the built-ins, beside $locks locks and a reader of pressure",
    of => 'time', ours => load_beside('SELECT * INTO found FROM advisory.pressure'));
compare(@how, against => 'alone', 'at most' => 1.2, theirs => load_beside());
compare(@how, against => 'beside a reader of pg_locks', 'at most' => 1,
    theirs => load_beside('SELECT count(*) INTO found FROM pg_locks'));
for my $sides (values %set) {
    $_->disconnect for map { @{ $_->{sessions} }, $_->{looker}, $_->{load} // () } values %$sides;
}
1;
