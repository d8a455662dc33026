#!/usr/bin/env perl
# What the extension costs beside what the server itself offers for the same purpose: `make bench`.
#
#   BASE=/path/to/another/tree   measure the extension built from there, too, on a server beside this tree's
#   ROUNDS=7                     how often each measurement is repeated
#   ONLY=semaphore               only the measurements whose names match
#
# Two measurements that are compared run one right after the other, several times, and the median of their ratios is shown, so
# that other load on the machine affects both alike. Only the ratios mean something. The last column is the promised ratio; MISSED
# is about this tree.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib";
use AdvisoryTest;
use Time::HiRes qw(time);

use constant { NAMES => 5000, PGBENCH_SECONDS => 4, SEMAPHORE_SESSIONS => 32, SLOTS => 4, SEMAPHORE_SECONDS => 2, HAND_OVER_SESSIONS => 4,
    HOLDERS => 10 };
my $rounds = $ENV{ROUNDS} // 7;
my $only = $ENV{ONLY} // '';
my %trees = (this => undef, ($ENV{BASE} ? (base => $ENV{BASE}) : ()));
my @trees = sort { $b cmp $a } keys %trees;

# ---- The servers ------------------------------------------------------------------------------------------

my %server;
for my $tree (@trees) {
    local $AdvisoryTest::Server::tree = $trees{$tree};
    $server{$tree} = own_server('max_locks_per_transaction=2048', 'max_connections=100', 'jit=off', 'autovacuum=off');
    session(server => $server{$tree})->run('CREATE EXTENSION advisory_ext');
}

# ---- Measuring --------------------------------------------------------------------------------------------

# Runs two measurements by turns on each tree; they are given the tree and the round, and return a number. Prints the median of
# the first one's ratio to the second one, and the bound: {'at most' => number} or {'at least' => number}.
sub compare {
    my ($name, $bound, $ours, $theirs) = @_;
    return if $name !~ /\Q$only/;
    my ($direction, $bar) = %$bound;
    my %ratios;
    for my $round (1 .. $rounds) {
        for my $tree (@trees) {
            # Each of the two is the first one in every other round.
            my %result = map { $_ => ($_ eq 'ours' ? $ours : $theirs)->($tree, $round) } $round % 2 ? qw(ours theirs) : qw(theirs ours);
            push @{ $ratios{$tree} }, $result{ours} / ($result{theirs} || 1e-9);
        }
    }
    my %ratio = map { $_ => median(@{ $ratios{$_} }) } @trees;
    my $kept = $direction eq 'at most' ? $ratio{this} <= $bar : $ratio{this} >= $bar;
    printf "%-70s %s  %s %g%s\n", $name, join('', map { sprintf '%10.3f', $ratio{$_} } @trees), $direction, $bar, $kept ? '' : '  MISSED';
    return;
}

# A measurement with two results runs once for each tree and round.
sub once {
    my ($code) = @_;
    my %done;
    return sub { my ($tree, $round) = @_; return $done{$tree}{$round} //= $code->($tree, $round) };
}

# ---- In a PL/pgSQL loop -----------------------------------------------------------------------------------

# Microseconds of a loop over this array, whose elements are called element in the statements.
sub loop {
    my ($session, $array, $type, @statements) = @_;
    my $body = join ' ', map { "PERFORM $_;" } @statements;
    $session->run(<<"SQL");
DO \$\$
DECLARE
    elements $type\[] := $array;
    element $type;
    start timestamptz := clock_timestamp();
BEGIN
    FOREACH element IN ARRAY elements LOOP $body END LOOP;
    PERFORM set_config('bench.us', (extract(epoch FROM clock_timestamp() - start) * 1e6)::text, false);
END \$\$
SQL
    return $session->value(q{SELECT current_setting('bench.us')});
}

sub names { my ($prefix) = @_; return "ARRAY(SELECT '$prefix' || i FROM generate_series(1, @{[NAMES]}) AS i)" }
my $KEYS = "ARRAY(SELECT i * 4294967311 FROM generate_series(1, @{[NAMES]}) AS i)";

my %session = map { $_ => session(server => $server{$_}) } @trees;
my %warm;

# The session knows the names from the second loop on.
sub known {
    my (@statements) = @_;
    return sub {
        my ($tree) = @_;
        loop($session{$tree}, names('known '), 'text', @statements) unless $warm{$tree}{"@statements"}++;
        return loop($session{$tree}, names('known '), 'text', @statements);
    };
}

sub built_in {
    my (@statements) = @_;
    return sub { my ($tree) = @_; return loop($session{$tree}, $KEYS, 'bigint', @statements) };
}

printf "%-70s %s  promised\n", 'ratio to the built-in', join '', map { sprintf '%10s', $_ } @trees;
compare('try_xact_lock in a loop, known names: time', { 'at most' => 1.5 },
    known(q{advisory.try_xact_lock('bench', element)}), built_in('pg_try_advisory_xact_lock(element)'));
compare('try_xact_lock in a loop, names never seen before: time', { 'at most' => 3 },
    sub { my ($tree, $round) = @_; loop($session{$tree}, names("new $round "), 'text', q{advisory.try_xact_lock('bench', element)}) },
    built_in('pg_try_advisory_xact_lock(element)'));
compare('lock and unlock in a loop: time', { 'at most' => 2 },
    known(q{advisory.lock('bench', element)}, q{advisory.unlock('bench', element)}),
    built_in('pg_advisory_lock(element)', 'pg_advisory_unlock(element)'));

# ---- Over pgbench -----------------------------------------------------------------------------------------

# All statements in one run of pgbench, which takes one of them for each transaction: so whatever else the machine does
# concerns all. Returns, for each, transactions per second of the time that a client spent on it.
my $pgbench = once(sub {
    my ($tree) = @_;
    my $server = $server{$tree};
    local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} = @{$server}{qw(PGHOST PGPORT PGUSER PGDATABASE)};
    # As an application has it that takes such a lock for its statement only, and knows that. (A BASE without it takes no notice.)
    local $ENV{PGOPTIONS} = '-c advisory_ext.warn_no_transaction=off';
    my @statements = (q{SELECT advisory.try_xact_lock('bench', :id)}, 'SELECT pg_try_advisory_xact_lock(:id)',
        q{SELECT pg_try_advisory_xact_lock(hashtextextended('bench:' || :id, 0))});
    my @files = map { "$server->{ADVISORY_EXT_TMP}/bench$_.sql" } 0 .. $#statements;
    for my $i (0 .. $#statements) {
        open my $script, '>', $files[$i] or die "cannot write $files[$i]: $!\n";
        print {$script} "\\set id random(1, 1000)\n$statements[$i];\n";
        close $script or die "cannot write $files[$i]: $!\n";
    }
    my $prefix = "$server->{ADVISORY_EXT_TMP}/bench.log";
    my $scripts = join ' ', map { "--file=$_" } @files;
    my $out = qx{$ENV{PG_BINDIR}/pgbench --no-vacuum --protocol=prepared --client=2 --jobs=2 --time=@{[PGBENCH_SECONDS]} $scripts --log --log-prefix=$prefix 2>&1};
    my (@count, @us);
    for my $file (glob "$prefix.*") {
        open my $log, '<', $file or die "cannot read $file: $!\n$out";
        while (my $line = <$log>) {
            my (undef, undef, $us, $script) = split ' ', $line;
            $count[$script]++;
            $us[$script] += $us;
        }
        close $log;
        unlink $file;
    }
    return [ map { 1e6 * $count[$_] / $us[$_] } 0 .. $#statements ];
});

sub tps { my ($statement) = @_; return sub { return $pgbench->(@_)->[$statement] } }

compare('try_xact_lock over pgbench, 2 clients: throughput', { 'at least' => 0.97 }, tps(0), tps(1));
compare('the same beside a hashed name: throughput', { 'at least' => 0.97 }, tps(0), tps(2));

# ---- Semaphores -------------------------------------------------------------------------------------------

# Several sessions run take, sleep and give in a loop for some seconds. Returns {count => loops of all sessions,
# longest => the longest run of take, in ms}. The statements may use number, the session's.
my %crowd;

sub contend {
    my ($sessions, $seconds, $sleep, $take, $give) = @_;
    my $work = $sleep ? "PERFORM pg_sleep($sleep);" : '';
    return sub {
        my ($tree) = @_;
        my $crowd = $crowd{$tree} //= [map { session(server => $server{$tree}) } 1 .. SEMAPHORE_SESSIONS];
        my @active = @{$crowd}[0 .. $sessions - 1];
        my $end = $active[0]->value("SELECT clock_timestamp() + '$seconds s'");
        for my $number (0 .. $#active) {
            $active[$number]->start(<<"SQL");
DO \$\$
DECLARE
    number integer := $number;
    taken integer;
    count integer := 0;
    start timestamptz;
    longest interval := '0';
BEGIN
    WHILE clock_timestamp() < '$end' LOOP
        start := clock_timestamp();
        $take
        longest := greatest(longest, clock_timestamp() - start);
        $work
        $give
        count := count + 1;
    END LOOP;
    PERFORM set_config('bench.count', count::text, false), set_config('bench.longest', (extract(epoch FROM longest) * 1e3)::text, false);
END \$\$
SQL
        }
        my %result = (count => 0, longest => 0);
        for my $session (@active) {
            my $finished = $session->finish;
            die $finished->{message} if $finished->{state};
            my ($count, $longest) = @{ $session->rows(q{SELECT current_setting('bench.count'), current_setting('bench.longest')})->[0] };
            $result{count} += $count;
            $result{longest} = $longest if $longest > $result{longest};
        }
        return \%result;
    };
}

sub result_of { my ($field, $code) = @_; return sub { return $code->(@_)->{$field} } }

my @CROWD = (SEMAPHORE_SESSIONS, SEMAPHORE_SECONDS, 0.001);
my $slots = SLOTS;
my $semaphore = once(contend(@CROWD, "taken := advisory.acquire('bench', 'slots', $slots);", q{PERFORM advisory.release('bench', 'slots', taken);}));
my $plain = contend(@CROWD, "PERFORM pg_advisory_lock(number % $slots);", "PERFORM pg_advisory_unlock(number % $slots);");
my $polling = contend(@CROWD, <<"SQL", 'PERFORM pg_advisory_unlock(taken);');
<<poll>> LOOP
    FOR slot IN 1..$slots LOOP
        taken := slot;
        EXIT poll WHEN pg_try_advisory_lock(slot);
    END LOOP;
    PERFORM pg_sleep(0.01);
END LOOP;
SQL
my $what = "semaphore, @{[SEMAPHORE_SESSIONS]} sessions, $slots slots, 1 ms";
compare("$what: throughput to $slots plain locks'", { 'at least' => 0.98 }, result_of(count => $semaphore), result_of(count => $plain));
compare("$what: longest wait to polling's", { 'at most' => 0.05 }, result_of(longest => $semaphore), result_of(longest => $polling));

my @PASSING = (HAND_OVER_SESSIONS, SEMAPHORE_SECONDS, 0);
# The time of a hand-over is the inverse of their number.
sub per_hand_over { my ($code) = @_; return sub { return 1 / $code->(@_)->{count} } }
compare("semaphore, @{[HAND_OVER_SESSIONS]} sessions, 1 slot: time of a hand-over to a plain lock's", { 'at most' => 1.2 },
    per_hand_over(contend(@PASSING, q{taken := advisory.acquire('bench', 'slot', 1);}, q{PERFORM advisory.release('bench', 'slot', taken);})),
    per_hand_over(contend(@PASSING, 'PERFORM pg_advisory_lock(1);', 'PERFORM pg_advisory_unlock(1);')));
$_->disconnect for map { @$_ } values %crowd;

# ---- advisory.locks ---------------------------------------------------------------------------------------

sub query_time {
    my ($query) = @_;
    return sub {
        my ($tree) = @_;
        my $start = time;
        $session{$tree}->rows($query);
        return time - $start;
    };
}

# count() computes every column, but sends none.
my $LOCKS = 'SELECT ' . join(', ', map { "count($_)" } qw(pid role application_name mode granted key key1 key2 namespace name query held)) . ' FROM advisory.locks';
my $USUAL = 'SELECT ' . join(', ', map { "count($_)" } qw(pid usename application_name mode granted), '(classid::bigint << 32) | objid::bigint', qw(classid objid query)) .
    q{ FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'};
for my $locks (10_000, 100_000) {
    my $name = "advisory.locks, $locks locks: speed to pg_locks and pg_stat_activity's";
    next if $name !~ /\Q$only/;
    my @holders = map { my $tree = $_; map { session(server => $server{$tree})->run(
        "SELECT count(advisory.lock('held', '$_ ' || i)) FROM generate_series(1, $locks / @{[HOLDERS]}) AS i") } 1 .. HOLDERS } @trees;
    compare($name, { 'at least' => 2 }, query_time($USUAL), query_time($LOCKS));
    $_->disconnect for @holders;
}
