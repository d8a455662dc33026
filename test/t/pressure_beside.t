#!/usr/bin/env perl
# How much throughput a load without the extension loses while advisory.pressure is read 100 times a second, with 100,000 locks
# held. The reader is stopped in every other second, and a second with it is compared with the
# two seconds around it, so that other load on the machine affects both alike.
# Runs alone: it compares throughput.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

use constant { LOCKS => 100_000, CLIENTS => 2, PAUSE => '10 ms', LEAST_KEPT => 0.9, LEAST_STEADY => 0.9, TRIES => 8, RUN_SECONDS => 9 };

my $server = own_server('max_locks_per_transaction=1024', 'max_connections=100', 'jit=off');
my $hog = session(server => $server)->run('CREATE EXTENSION advisory_ext');
local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} = @{$server}{qw(PGHOST PGPORT PGUSER PGDATABASE)};
my @PGBENCH = ("$ENV{PG_BINDIR}/pgbench", '--no-vacuum', '--protocol=prepared');
is(system("$PGBENCH[0] --initialize --quiet >/dev/null 2>&1"), 0, 'a load of its own tables');
$hog->run("SELECT count(advisory.lock('held', i)) FROM generate_series(1, @{[LOCKS]}) AS i");

sub script {
    my ($name, $query) = @_;
    my $file = "$server->{ADVISORY_EXT_TMP}/$name.sql";
    open my $out, '>', $file or die "cannot write $file: $!\n";
    print {$out} '\sleep ' . PAUSE . "\n$query;\n";
    close $out or die "cannot write $file: $!\n";
    return $file;
}

# A pgbench in the background: its process, and what it says.
sub start_pgbench {
    my (@options) = @_;
    my $pid = open my $out, '-|' // die "cannot fork: $!\n";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT or die "cannot join: $!\n";
        exec @PGBENCH, @options or die "cannot run pgbench: $!\n";
    }
    return ($pid, $out);
}

# What is kept of the throughput in each second with the reader. Nothing if the seconds without it differ, too, because the machine
# is busy with other things.
sub kept_beside {
    my ($name, $query) = @_;
    my ($reader, $said) = start_pgbench('--client=1', '--time=' . (RUN_SECONDS + 30), '--file=' . script($name, $query));
    kill STOP => $reader;
    my ($pid, $out) = start_pgbench('--select-only', '--client=' . CLIENTS, '--time=' . RUN_SECONDS, '--progress=1');
    my @tps;
    while (my $line = <$out>) {
        my ($tps) = $line =~ /^progress: [\d.]+ s, ([\d.]+) tps/ or next;
        push @tps, $tps;
        kill @tps % 2 ? 'CONT' : 'STOP', $reader;
    }
    waitpid $pid, 0;
    kill TERM => $reader;
    kill CONT => $reader;
    waitpid $reader, 0;
    for my $second (grep { $_ % 2 == 0 } 4 .. $#tps - 2) {
        my $same = 2 * $tps[$second] / ($tps[ $second - 2 ] + $tps[ $second + 2 ]);
        return if $same < LEAST_STEADY || $same > 1 / LEAST_STEADY;
    }
    # From the third second on, those with the reader.
    return map { 2 * $tps[$_] / ($tps[$_ - 1] + $tps[$_ + 1]) } grep { $_ % 2 && $_ > 2 && $_ < $#tps } 0 .. $#tps;
}

# It tries again where other programs disturb, and the median of all seconds counts. (Beside the usual query the throughput is never
# that high.)
my @kept;
for my $try (1 .. TRIES) {
    push @kept, kept_beside('pressure', 'SELECT * FROM advisory.pressure');
    last if @kept && median(@kept) >= LEAST_KEPT;
}
note join ' ', map { sprintf '%.2f', $_ } @kept;
SKIP: {
    skip 'the machine is too busy', 1 if !@kept;
    cmp_ok(median(@kept), '>=', LEAST_KEPT, 'reading pressure is not felt');
}
done_testing();
