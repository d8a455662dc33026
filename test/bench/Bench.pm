# Common code of the parts of the bench: servers, alternating measurements, and the output of the
# results.
package Bench;

use AdvisoryTest;
use Exporter 'import';
use JSON::PP;
use List::Util qw(min);
use Time::HiRes qw(time);

our @EXPORT = qw(QUICK compare server_of session_of sessions_of on_server loop names_array once
    pgbench throughputs write_script figure progress tree_names finish_bench);

# A short run: fewer repetitions, and less in each.
use constant QUICK => !!$ENV{QUICK};

# By how much a ratio may miss its bound before the bench fails. Machines differ, and a short run is
# less exact.
use constant GENEROSITY => 2;

my $rounds = $ENV{ROUNDS} // (QUICK ? 3 : 5);
my %trees = (this => undef, ($ENV{BASE} ? (base => $ENV{BASE}) : ()));
my @trees = sort { $b cmp $a } keys %trees;
my (@results, %servers, %sessions);
my $part = '';

sub tree_names { return @trees }

sub progress ($what) { print {*STDERR} "\r\e[K$what" if -t STDERR; return }

# ---- Servers -------------------------------------------------------------------------------------

# A server with the extension of a tree, for a purpose, perhaps with settings; the same purpose has
# the same server.
sub server_of ($tree, $purpose = '', @settings) {
    return $servers{$tree}{$purpose} //= do {
        local $AdvisoryTest::Server::tree = $trees{$tree};
        my $server = own_server('max_locks_per_transaction=1024', 'max_connections=400', 'jit=off',
            'autovacuum=off', 'log_lock_waits=off', @settings);
        session(server => $server)->run('CREATE EXTENSION advisory_ext');
        $server;
    };
}

# The session of a tree that runs what one session is enough for.
sub session_of ($tree) {
    return $sessions{$tree}[0] //= session(server => server_of($tree));
}

# So many more of them, which stay for the next measurement.
sub sessions_of ($tree, $count) {
    $sessions{$tree}[$_] //= session(server => server_of($tree)) for 0 .. $count;
    return @{ $sessions{$tree} }[1 .. $count];
}

# A measurement on the server of each tree: code that is given a session.
sub on_server ($code) {
    return sub ($tree, $round) { return $code->(session_of($tree), $round) };
}

# A measurement with several results runs once for each tree and round.
sub once ($code) {
    my %done;
    return sub ($tree, $round) { return $done{$tree}{$round} //= $code->($tree, $round) };
}

# ---- Comparing -----------------------------------------------------------------------------------

# compare(work => 'lock and unlock', of => 'time', against => 'the built-ins', 'at most' => 2,
#     ours => …, theirs => …)
#
# The two measurements run by turns, and which of them is the first changes from round to round, so
# that whatever else the machine does concerns both. They are given the tree and the round, and
# return a number. What is kept is the median of the ratios of ours to theirs, the quartiles, and
# the medians of ours and of theirs. 'at most' and 'at least' say what is promised. at => is the
# place on the x axis of a plot whose name is series. Returns this tree's median.
sub compare (%how) {
    my (%ratios, %results);
    for my $round (1 .. $rounds) {
        progress("$part: $how{work}, $how{of} to $how{against}: round $round of $rounds");
        for my $tree (@trees) {
            my @order = $round % 2 ? qw(ours theirs) : qw(theirs ours);
            my %result = map { $_ => $how{$_}->($tree, $round) } @order;
            push @{ $ratios{$tree} }, $result{ours} / ($result{theirs} || 1e-9);
            push @{ $results{$tree}{$_} }, $result{$_} for qw(ours theirs);
        }
    }
    for my $tree (@trees) {
        my @sorted = sort { $a <=> $b } @{ $ratios{$tree} };
        my %figure = (part => $part, ratio => median(@sorted), low => $sorted[ int(@sorted / 4) ],
            high => $sorted[ int(3 * @sorted / 4) ],
            map { $_ => median(@{ $results{$tree}{$_} }) } qw(ours theirs));
        $figure{$_} = $how{$_} for grep { defined $how{$_} } qw(work of against series at),
            'at most', 'at least';
        figure(%figure, tree => $tree);
    }
    return median(@{ $ratios{this} });
}

sub missed ($figure, $generosity) {
    return 1 if defined $figure->{'at most'}
        && $figure->{ratio} > $figure->{'at most'} * $generosity;
    return defined $figure->{'at least'} && $figure->{ratio} < $figure->{'at least'} / $generosity;
}

# Keeps and prints one line of the table.
sub figure (%figure) {
    $figure{part} //= $part;
    $figure{tree} //= 'this';
    push @results, \%figure;
    progress('');
    my $bound = join ', ', map { sprintf '%s %g', $_, $figure{$_} }
        grep { defined $figure{$_} } 'at most', 'at least';
    my $spread = defined $figure{low} ? sprintf '%.3g - %.3g', @figure{qw(low high)} : '';
    printf "%-100s %8s  %-16s %s%s\n", ($figure{tree} eq 'this' ? '' : "($figure{tree}) ")
        . "$figure{work}: $figure{of} to $figure{against}",
        sprintf('%.3g', $figure{ratio}), $spread, $bound, missed(\%figure, 1) ? '  MISSED' : '';
    return;
}

# Writes the results, and says whether all are near enough to what is promised.
sub finish_bench ($file, @parts) {
    for my $name (@parts) {
        $part = $name;
        print "\n== $name\n";
        my $start = time;
        do "./test/bench/parts/$name.pl" or die $@ || "cannot run part $name: $!\n";
        progress('');
    }
    open my $out, '>', $file or die "cannot write $file: $!\n";
    print {$out} JSON::PP->new->canonical->pretty->encode({
        quick => QUICK ? JSON::PP::true : JSON::PP::false, rounds => $rounds,
        server => session_of('this')->value('SHOW server_version'), figures => \@results });
    close $out or die "cannot write $file: $!\n";
    my @missed = grep { $_->{tree} eq 'this' && missed($_, GENEROSITY) } @results;
    print "\nFAILED: more than ${\GENEROSITY} times off: $_->{work}: $_->{of} to $_->{against}\n"
        for @missed;
    return !@missed;
}

# ---- What several parts measure with -------------------------------------------------------------

# An array of so many names, as an SQL expression.
sub names_array ($count, $prefix) {
    return "ARRAY(SELECT '$prefix' || i FROM generate_series(1, $count) AS i)";
}

# Microseconds of a PL/pgSQL loop over an array, whose elements the statements call element.
sub loop ($session, $array, $type, @statements) {
    my $body = join ' ', map { "$_;" } @statements;
    $session->run(<<"SQL");
DO \$\$
DECLARE
    elements $type\[] := $array;
    element $type;
    start timestamptz := clock_timestamp();
BEGIN
    FOREACH element IN ARRAY elements LOOP $body END LOOP;
    PERFORM set_config('bench.us',
        (extract(epoch FROM clock_timestamp() - start) * 1e6)::text, false);
END \$\$
SQL
    return $session->value(q{SELECT current_setting('bench.us')});
}

sub write_script ($server, $name, $text) {
    my $file = "$server->{ADVISORY_EXT_TMP}/bench-$name.sql";
    open my $out, '>', $file or die "cannot write $file: $!\n";
    print {$out} "$text\n";
    close $out or die "cannot write $file: $!\n";
    return $file;
}

# Runs pgbench with these statements, of which each transaction takes one at random, so that
# whatever else the machine does concerns all. Returns, for each, transactions per second of the
# time that a client spent on it.
sub pgbench ($server, $clients, $seconds, $protocol, @scripts) {
    local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
        @{$server}{qw(PGHOST PGPORT PGUSER PGDATABASE)};
    local $ENV{PGOPTIONS} = '-c advisory_ext.warn_no_transaction=off';
    my @files = map { '--file=' . write_script($server, "pgbench$_", $scripts[$_]) } 0 .. $#scripts;
    my $log = "$server->{ADVISORY_EXT_TMP}/bench.log";
    my $jobs = min($clients, 2);
    my @how = ("--protocol=$protocol", "--client=$clients", "--jobs=$jobs", "--time=$seconds");
    my $said = qx{$ENV{PG_BINDIR}/pgbench --no-vacuum @how @files --log --log-prefix=$log 2>&1};
    my (@count, @us);
    for my $file (glob "$log.*") {
        open my $in, '<', $file or die "cannot read $file: $!\n$said";
        while (my $line = <$in>) {
            my (undef, undef, $us, $script) = split ' ', $line;
            $count[$script]++;
            $us[$script] += $us;
        }
        close $in;
        unlink $file;
    }
    return [ map { $us[$_] ? 1e6 * $clients * $count[$_] / $us[$_]
        : die "pgbench ran nothing:\n$said" } 0 .. $#scripts ];
}

# A measurement for each of these statements, which run together on the server that the function
# names.
sub throughputs ($server_of, @how) {
    my (undef, undef, undef, @scripts) = @how;
    my $all = once(sub ($tree, @) { return pgbench($server_of->($tree), @how) });
    return map { my $i = $_; sub { return $all->(@_)->[$i] } } 0 .. $#scripts;
}

1;
