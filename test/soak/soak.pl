#!/usr/bin/env perl
# Load for hours, to see whether memory grows, waits become longer, or a session is forgotten: `make
# soak`.
#
#   HOURS=1                      how long; a fraction is possible. 0.05 is a short run, whose last
#                                figures are less exact
#   SESSIONS=2000                how many there are
#   NAMES="10000 1000000"        values of advisory_ext.max_names. Each has a new server, and its
#                                part of the time
#
# pgbench is the load (see the *.sql beside this file). Its rates are fixed and far below what a
# machine with two cores can do, so that throughput falls only if something is wrong. The time
# begins when the memory of the sessions is warm. Each tenth prints figures. At the end the last
# tenth is compared with the first. The last line says "N passed, N failed", and the exit code is 1
# if a check failed.
use FindBin;
use lib "$FindBin::Bin/../t/lib";
use AdvisoryTest;
use List::Util qw(max min sum0);
use POSIX qw(WNOHANG);
use Time::HiRes qw(sleep time);

use constant { WARM_S => 45, SESSION_MB => 4, MB => 1024 * 1024 };

# What fails, in the last tenth beside the first. A wait may become a tenth longer, and by FLOOR_S
# more, because the longest of a few milliseconds are chance.
use constant { SLOWER => 0.1, FLOOR_S => 0.25 };
# A waiter for a slot that nobody wakes looks once a second, and one for a lease every five seconds.
# So this is a lost wake-up, unless the machine itself stood still.
use constant { LOST_S => 0.5, FORGOTTEN_S => 30 };
# Memory: of a session of each kind on average, of any one, and dynamic shared memory; and rows of
# pg_locks.
use constant { GROWN_MB => 0.1, ONE_GROWN_MB => 1, SHARED_GROWN => 0.02, LOCKS_GROWN => 0.1 };

$| = 1;
alarm 0;
$SIG{TERM} = $SIG{INT} = sub { exit 1 };
my $hours = $ENV{HOURS} || 1;
my @sizes = split ' ', $ENV{NAMES} || '10000 1000000';
my %children;
END {
    my $status = $?;
    kill TERM => keys %children;
    $? = $status;
}

my $asked = $ENV{SESSIONS} || 2000;
my $available = available_mb();
my $sessions = min($asked, int($available / SESSION_MB));
my @kinds = load($sessions);
print "HOURS=$hours SESSIONS=$sessions NAMES=\"@sizes\"\n";
print "($asked sessions would need @{[$asked * SESSION_MB]} MB, and $available MB are available)\n"
    if $sessions < $asked;
my ($passed, $failed, @works, @memories) = (0, 0);
soak($_) for @sizes;
print map { "$_\n" } '',
    'First → last tenth; in seconds 99.9 % of them, and in parentheses the longest; in MB the '
        . 'private memory of a session:', '',
    '| `max_names` | work | a second | waits | wake-ups | memory |',
    '|---|---|---|---|---|---|', @works, '',
    '| `max_names` | sessions | private memory | shared memory | rows of `pg_locks` | a name | a '
        . 'session with built-in locks | more if it waits for a slot, a lock, a lease of ours |',
    '|---|---|---|---|---|---|---|---|', @memories;
print "\n$passed passed, $failed failed\n";
exit($failed ? 1 : 0);

# ---- The load ------------------------------------------------------------------------------------

sub available_mb {
    my ($line) = grep { /^MemAvailable/ } split /\n/, slurp('/proc/meminfo');
    return int(($line =~ /(\d+)/)[0] / 1024);
}

# Each kind of work with the options of its pgbench. Of those who wait for each other, ten share a
# lock, a lease or one of ten slots.
sub load ($all) {
    my $waiting = max(30, $all - 61);
    my %count = (locks => int 0.35 * $waiting, leases => int 0.15 * $waiting);
    $count{slots} = $waiting - $count{locks} - $count{leases};
    return (
        (map { { name => $_, sessions => $count{$_}, script => 'take',
            options => [ "-Dkind=$_",
                '-Dplaces=' . (int($count{$_} / ($_ eq 'slots' ? 100 : 10) + 0.5) || 1) ] }
        } qw(slots locks leases)),
        { name => 'renewals', sessions => 20, script => 'renew',
            options => [ '--rate=1000', '-Dnext=0' ] },
        { name => 'names', sessions => 20, script => 'names',
            options => [ '--rate=400', '-Dnext=0' ] },
        { name => 'scrapes', sessions => 1, script => 'scrape',
            options => [ '--username=advisory_monitor' ],
            # With many names, on a slow machine, a scrape may take longer than that role allows.
            # There are few of them, too.
            settings => '-c statement_timeout=1min', floor => 1 },
        { name => 'plain', sessions => 20, script => 'plain', options => ['--rate=20'] });
}

# The exporter's queries, one after the other every few seconds.
sub write_scrape ($server) {
    my @queries = slurp("$FindBin::Bin/../../monitoring/sql_exporter.yml")
        =~ /^ +query: \|\n((?: {10}.*\n)+)/mg or die "found no queries\n";
    my $file = "$server->{ADVISORY_EXT_TMP}/scrape.sql";
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} "SELECT extract(epoch FROM clock_timestamp()) AS began \\gset\n",
        (map { "$_;\n" } @queries),
        "INSERT INTO soak.turns VALUES ('scrapes', clock_timestamp(), "
            . "soak.seconds_since(to_timestamp(:began)));\n\\sleep 5 s\n";
    close $out or die "$file: $!\n";
    return $file;
}

sub start ($server, $kind) {
    my $file = $kind->{script} eq 'scrape' ? write_scrape($server)
        : "$FindBin::Bin/$kind->{script}.sql";
    my @command = ("$ENV{PG_BINDIR}/pgbench", '--no-vacuum', '--protocol=prepared',
        "--client=$kind->{sessions}", '--time=1000000',
        @{ $kind->{options} }, "--file=$file");
    $kind->{log} = "$server->{ADVISORY_EXT_TMP}/$kind->{name}.log";
    my $child = fork // die "cannot fork: $!\n";
    if (!$child) {
        @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE PGAPPNAME)} =
            (@{$server}{qw(PGHOST PGPORT PGUSER PGDATABASE)}, $kind->{name});
        local $ENV{PGOPTIONS} = $kind->{settings} // '';
        open STDOUT, '>', $kind->{log} and open STDERR, '>&', \*STDOUT or POSIX::_exit(2);
        exec 'setpriv', '--pdeathsig', 'TERM', '--', 'sh', '-c',
            'ulimit -n "$(ulimit -H -n)"; exec "$@"', 'sh', @command or POSIX::_exit(2);
    }
    $children{$child} = $kind;
    return;
}

# pgbench goes on when one of its sessions fails, and says that at once.
sub check_load {
    for my $pid (keys %children) {
        my ($kind, $ended) = ($children{$pid}, waitpid($pid, WNOHANG) == $pid);
        delete $children{$pid} if $ended;
        my ($said) = grep { /error|aborted|fatal/i } split /\n/, slurp($kind->{log});
        die "FAILED: $kind->{name}: ", $said // 'pgbench ended', "\n" if $said || $ended;
    }
    return;
}

sub stop_load {
    kill TERM => keys %children;
    waitpid $_, 0 for keys %children;
    %children = ();
    return;
}

# ---- One server ----------------------------------------------------------------------------------

sub soak ($size) {
    my $server = own_server('max_connections=' . ($sessions + 30), "advisory_ext.max_names=$size");
    local @ENV{qw(PGHOST PGPORT)} = @{$server}{qw(PGHOST PGPORT)};
    for my $file ("$FindBin::Bin/setup.sql", "$FindBin::Bin/../../monitoring/grants.sql") {
        system('psql', '-XqAt', '-o', '/dev/null', '-v', 'ON_ERROR_STOP=1', '-U', $server->{PGUSER},
            '-f', $file, 'postgres') == 0 or die "$file fails\n";
    }
    my $look = session(server => $server, application => 'look');
    $look->run('GRANT USAGE ON SCHEMA soak TO advisory_monitor',
        'GRANT INSERT ON soak.turns TO advisory_monitor',
        'SET max_parallel_workers_per_gather = 0');
    my ($before, $known) = (memory($look)->{shared}, names($look));
    $look->run('SELECT soak.use_names(0, 1000000)');
    # (The leases' names may have filled the table.)
    my $more = names($look) - $known;
    my $a_name = $more > $known ? sprintf '%.2f kB',
        1024 * (memory($look)->{shared} - $before) / $more : '';
    $look->disconnect;
    $look = session(server => $server, application => 'look')
        ->run('SET max_parallel_workers_per_gather = 0');
    start($server, $_) for @kinds;
    my $expected = sum0 map { $_->{sessions} } @kinds;
    wait_until("$expected sessions are there", sub {
        sleep 1;
        check_load();
        $look->value('SELECT count(*) FROM pg_stat_activity WHERE application_name = ANY (?)',
            [ map { $_->{name} } @kinds ]) == $expected
    }, 300);
    sleep WARM_S;
    printf "\n== max_names = %d: %d sessions, %d of them wait for each other\n", $size, $expected,
        sum0 map { $_->{sessions} } grep { $_->{script} eq 'take' } @kinds;
    my ($start, @tenths) = (time);
    my $began = { time => $start, busy => busy(), at => $look->value('SELECT clock_timestamp()') };
    for my $number (1 .. 10) {
        check_load();
        push @tenths, tenth($look, $began, $start + $number * 360 * $hours / @sizes);
        $began = $tenths[-1]{next};
        show($number, $tenths[-1]);
    }
    check_load();
    my $mb = $tenths[-1]{memory}{kinds};
    push @memories, join ' | ', "| $size", $expected, judge($size, \@tenths), $a_name,
        sprintf('%.2f MB', $mb->{plain}),
        sprintf('%.2f, %.2f, %.2f MB', map { $mb->{$_} - $mb->{plain} } qw(slots locks leases))
            . ' |';
    stop_load();
    $look->disconnect;
    $server->stop;
    return;
}

sub names ($look) { return $look->value('SELECT names FROM advisory.directory') }

# The figures of the seconds up to that end. It begins where the one before has ended, so the time
# for reading the memory counts, too.
sub tenth ($look, $began, $end) {
    my ($stall, $start) = (0, time);
    while ($start < $end) {
        sleep 0.02;
        $stall = max($stall, time - $start - 0.02);
        $start = time;
    }
    my ($busy, $to) = (busy(), $look->value('SELECT clock_timestamp()'));
    my $seconds = time - $began->{time};
    my %tenth = (busy => ($busy - $began->{busy}) / $seconds, stall => $stall,
        next => { time => time, busy => $busy, at => $to });
    $tenth{kinds}{ $_->[0] } = { count => $_->[1], rate => $_->[1] / $seconds, waited => $_->[2],
        longest => $_->[3], handed => $_->[4], handed_longest => $_->[5] }
        for @{ $look->rows(<<'SQL', $began->{at}, $to) };
SELECT kind, count(*), percentile_disc(0.999) WITHIN GROUP (ORDER BY waited), max(waited),
percentile_disc(0.999) WITHIN GROUP (ORDER BY handed), max(handed)
FROM soak.turns WHERE at >= $1 AND at < $2 GROUP BY kind
SQL
    # A session that is forgotten has no row there.
    $tenth{longest} = $look->value(
        q(SELECT max(soak.seconds_since(query_start)) FROM pg_stat_activity
            WHERE state = 'active' AND application_name = ANY (?)), [ map { $_->{name} } @kinds ]);
    $tenth{locks} = $look->value('SELECT count(*) FROM pg_locks');
    $look->rows('DELETE FROM soak.turns WHERE at < $1', $to);
    $tenth{memory} = memory($look);
    return \%tenth;
}

# Seconds for which the processors were busy, divided by their number.
sub busy {
    my ($all, @each) = (slurp('/proc/stat') =~ /^cpu +(.*)/m, slurp('/proc/stat') =~ /^cpu\d/mg);
    my @jiffies = split ' ', $all;
    return sum0(@jiffies[0 .. 2, 5 .. 7]) / POSIX::sysconf(POSIX::_SC_CLK_TCK()) / @each;
}

# In MB: the private memory of each process, the mean of each kind, the sum, and all dynamic shared
# memory. While the exporter's session reads the statistics of many names it needs more; so this
# waits until it rests, and reads its memory first.
sub memory ($look) {
    wait_until('the exporter rests', sub {
        !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'scrapes'
                AND state = 'active'))
    }, 120);
    my (%of, %sum, %count, %shared);
    for my $row (@{ $look->rows(q(SELECT pid, application_name FROM pg_stat_activity
            WHERE backend_type = 'client backend' ORDER BY application_name <> 'scrapes')) }) {
        my ($pid, $kind) = @$row;
        my ($kb) = (eval { slurp("/proc/$pid/smaps_rollup") } // '')
            =~ /^Pss_Anon: +(\d+)/m or next;
        $of{$pid} = $kb / 1024;
        $sum{$kind} += $of{$pid};
        $count{$kind}++;
        my $maps = eval { slurp("/proc/$pid/maps") } // next;
        $shared{$_} //= (-s $_ // 0) / MB for $maps =~ m{ (/dev/shm/PostgreSQL\.\d+)}g;
    }
    return { of => \%of, sum => sum0(values %sum),
        kinds => { map { $_ => $sum{$_} / $count{$_} } keys %sum },
        shared => sum0(values %shared) };
}

sub slurp ($file) {
    open my $in, '<', $file or die "$file: $!\n";
    local $/ = undef;
    return scalar(<$in>) // '';
}

# ---- What it prints, and what fails --------------------------------------------------------------

sub show ($number, $tenth) {
    my $memory = $tenth->{memory};
    printf '-- tenth %d: processors %d %% busy, machine stood still for at most %.2f s; '
        . "sessions %.0f MB (largest %.1f), shared %.2f MB; %d rows in pg_locks\n",
        $number, 100 * $tenth->{busy}, $tenth->{stall}, $memory->{sum},
        max(values %{ $memory->{of} }), $memory->{shared}, $tenth->{locks};
    for my $name (grep { $tenth->{kinds}{$_} } map { $_->{name} } @kinds) {
        my $of = $tenth->{kinds}{$name};
        printf "   %-9s %8.1f/s  wait: 99.9 %% %8.3f s, longest %8.3f s%s\n", $name,
            @{$of}{qw(rate waited longest)},
            defined $of->{handed}
                ? sprintf('  wake-up: 99.9 %% %.3f s, longest %.3f s',
                    @{$of}{qw(handed handed_longest)}) : '';
    }
    return;
}

sub check ($ok, $what, @figures) {
    $ok ? $passed++ : $failed++;
    printf "%s - $what\n", $ok ? 'ok' : 'FAILED', @figures;
    return;
}

sub judge ($size, $tenths) {
    my @ends = @{$tenths}[0, -1];
    my $grows = sub ($format, @two) { return sprintf "$format → $format", @two };
    for my $kind (grep { $_->{name} ne 'plain' } @kinds) {
        my $name = $kind->{name};
        my ($old, $new) = map { $_->{kinds}{$name} // { count => 0, rate => 0 } } @ends;
        # What is left to chance is the square root of their number.
        check($new->{rate} >= $old->{rate} * (1 - SLOWER - 3 / sqrt($old->{count} || 1)),
            "$name: %.1f a second, then %.1f", $old->{rate}, $new->{rate});
        my @mb = map { $_->{memory}{kinds}{$name} } @ends;
        check($mb[1] - $mb[0] <= GROWN_MB, "$name: %.2f MB a session, then %.2f MB", @mb);
        my @cells = map { compare_waits($kind, $_, $old, $new) } qw(waited handed);
        push @works, join ' | ', "| $size", $name, $grows->('%.1f', $old->{rate}, $new->{rate}),
            @cells, $grows->('%.2f', @mb) . ' |';
        next if $kind->{script} ne 'take';
        my $worst = max map { ($_->{kinds}{$name}{handed_longest} // 0) - $_->{stall} } @$tenths;
        check($worst <= LOST_S,
            "$name: the longest wake-up took %.3f s more than the machine stood still", $worst);
    }
    my $longest = max map { $_->{longest} } @$tenths;
    check($longest <= FORGOTTEN_S, 'nobody has waited for more than %.1f s', $longest);
    my ($before, $after) = map { $_->{memory} } @ends;
    my $one = max map { $after->{of}{$_} - $before->{of}{$_} }
        grep { $before->{of}{$_} } keys %{ $after->{of} };
    check($one <= ONE_GROWN_MB, 'the session that grows most grows by %.2f MB', $one);
    check($after->{shared} <= (1 + SHARED_GROWN) * $before->{shared},
        'shared memory: %.2f MB, then %.2f MB', $before->{shared}, $after->{shared});
    check($ends[1]{locks} <= (1 + LOCKS_GROWN) * $ends[0]{locks}, 'rows of pg_locks: %d, then %d',
        map { $_->{locks} } @ends);
    return ($grows->('%.0f MB', $before->{sum}, $after->{sum}),
        $grows->('%.2f MB', $before->{shared}, $after->{shared}),
        $grows->('%d', map { $_->{locks} } @ends));
}

# Also the cell of the table.
sub compare_waits ($kind, $which, $old, $new) {
    my ($what, $longest) = $which eq 'waited' ? ('waits', 'longest')
        : ('wake-ups', 'handed_longest');
    return '' if grep { !defined $_->{$which} } $old, $new;
    check($new->{$which} <= (1 + SLOWER) * $old->{$which} + ($kind->{floor} // FLOOR_S),
        "$kind->{name}: 99.9 %% of the $what took at most %.3f s, then %.3f s", $old->{$which},
        $new->{$which});
    return sprintf '%.3f (%.3f) → %.3f (%.3f)', map { ($_->{$which}, $_->{$longest}) } $old, $new;
}
