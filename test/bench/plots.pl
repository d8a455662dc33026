#!/usr/bin/env perl
# Draws the results of `make bench` as SVG pictures: plots.pl results/bench.json DIRECTORY
#
# The title of a picture is its message, and says which way is better.
use strict;
use warnings;
use File::Path qw(make_path);
use JSON::PP;

my ($file, $directory) = @ARGV;
die "usage: plots.pl results/bench.json DIRECTORY\n" unless $directory;
open my $in, '<', $file or die "cannot read $file: $!; run `make bench` first\n";
my $bench = decode_json(do { local $/ = undef; <$in> });
close $in;
make_path($directory);

my @figures = grep { $_->{tree} eq 'this' } @{ $bench->{figures} };

sub of_series { my ($series) = @_; return grep { ($_->{series} // '') eq $series } @figures }

# Runs gnuplot with these commands; data are here-documents in them.
sub draw {
    my ($name, $title, $commands) = @_;
    open my $gnuplot, '|-', 'gnuplot' or die "cannot run gnuplot: $!\n";
    print {$gnuplot} <<"GNUPLOT", $commands;
set terminal svg size 760,380 dynamic noenhanced font 'sans-serif,13' background 'white'
set output '$directory/$name.svg'
set title "$title" font ',15'
set border 3
set tics nomirror out
set grid ytics lc rgb '#dddddd'
set style fill solid 0.8 noborder
set key top left reverse Left
GNUPLOT
    close $gnuplot or die "gnuplot failed on $name\n";
    print "$directory/$name.svg\n";
    return;
}

sub data {
    my ($name, @rows) = @_;
    return "\$$name << EOD\n" . join('', map { join("\t", @$_) . "\n" } @rows) . "EOD\n";
}

# A dashed line through the picture, and at its end what it stands for.
sub same {
    my ($value, $what) = @_;
    return "set arrow from graph 0, first $value to graph 1, first $value nohead front"
        . qq{ lc rgb '#888888' dt 2\nset label "$what" at graph 0.99, first $value right}
        . " offset 0, 0.6 font ',9'\n";
}

sub quoted { my ($text) = @_; $text =~ s/"/'/g; return qq{"$text"} }

my @colours = ('#336791', '#e08e0b', '#7a9f35', '#a23b3b', '#7b5ea7');

# Bars in groups, each with its value above it: the columns of each row behind its label are one bar
# each, with these titles.
sub bars {
    my ($name, $title, $ylabel, $settings, $titles, @rows) = @_;
    my $width = 1 / (@$titles + 1.5);
    my $plots = join ', ', map { sprintf q{$bars using %d:xtic(1) title "%s" lc rgb '%s'}, $_ + 2,
        $titles->[$_], $colours[$_] } 0 .. $#$titles;
    my $values = join ', ', map { sprintf
        q{$bars using ($0 + %f):%d:(sprintf('%%.0f', $%d)) with labels offset 0,0.5 font ',9'}
        . ' notitle',
        ($_ - $#$titles / 2) * $width, $_ + 2, $_ + 2 } 0 .. $#$titles;
    draw($name, $title, data('bars', @rows) . <<"GNUPLOT");
set style data histogram
set style histogram clustered gap 1.5
set ylabel "$ylabel"
set key at screen 0.5, 0.06 center horizontal font ',11'
set bmargin at screen 0.27
set xtics font ',11'
$settings
plot $plots, $values
GNUPLOT
    return;
}

# ---- What a lock by name costs -------------------------------------------------------------------

my (%cost, %are_there);
for my $figure (grep { $_->{part} eq 'locks' && $_->{against} =~ /hashed/
    && $_->{of} eq 'throughput' } @figures) {
    my ($what, $clients, $how) = $figure->{work} =~ /^(.*) over pgbench, (\d+) clients?, (\w+)$/
    or next;
    my $bar = "$what, " . ($how eq 'prepared' ? 'prepared statement' : 'not prepared');
    $cost{$clients}{$bar} = 100 * $figure->{ratio};
    $are_there{$bar} = 1;
}
if (%cost) {
    my @whats = sort keys %are_there;
    bars('locks', 'Locks by name are about as fast as locks of hashed names (higher is better)',
        'calls a second, in % of those\nwith hashtextextended(name, 0)',
        'set yrange [0:140]' . "\n" . same(100, 'as fast'), \@whats,
        map { my $clients = $_; [ quoted($clients == 1 ? '1 connection' : "$clients connections"),
            map { $cost{$clients}{$_} // 'NaN' } @whats ] } sort { $a <=> $b } keys %cost);
}

# ---- Waiting for a slot --------------------------------------------------------------------------

use constant MS => 1000;

my %longest;
for my $figure (of_series('semaphore longest')) {
    my ($sessions, $ms) = split m{/}, $figure->{at};
    next if $ms == 2;       # as with 1 ms
    my $case = sprintf '%02d sessions, %02d ms', $sessions, $ms;
    $longest{ $figure->{against} =~ s/'s$//r =~ s/s'$/s/r }{$case} = MS * $figure->{theirs};
    $longest{'a semaphore'}{$case} = MS * $figure->{ours};
}
if (%longest) {
    my @ways = sort { ($b eq 'a semaphore') <=> ($a eq 'a semaphore') || $a cmp $b } keys %longest;
    my @cases = sort keys %{ $longest{ $ways[0] } };
    bars('semaphores',
        'With a semaphore nobody waits long, with polling some do (shorter is better)',
        'longest wait for one of 4 slots, ms', 'set yrange [0:*]', \@ways,
        map { my $case = $_; [ quoted($case =~ s/\b0//gr =~ s/, (.*)/,\\nhold it for $1/r),
            map { $longest{$_}{$case} } @ways ] } @cases);
}

# ---- Looking, and growing ------------------------------------------------------------------------

# Points with the quartiles, or lines through them.
sub points {
    my ($name, $title, $style, $ylabel, $xlabel, $settings, %series) = @_;
    my @names = grep { of_series($_) } sort keys %series;
    return unless @names;
    # Of ratios to what others do, in percent.
    my $scale = $ylabel =~ /%/ ? 100 : 1;
    my $rows = join '', map { my $i = $_; data("points$i",
        map { my $figure = $_; [ $figure->{at}, map { $scale * ($_ // $figure->{ratio}) }
            @{$figure}{qw(ratio low high)} ] } of_series($names[$i])) } 0 .. $#names;
    my $plots = join ', ',
        map { sprintf q{$points%d using ($1 > 0 ? $1 : 1):2%s with %s title "%s" lw 2 pt 7 }
            . q{lc rgb '%s'}, $_, $style eq 'points' ? '' : ':3:4', $style, $series{ $names[$_] },
            $colours[$_] } 0 .. $#names;
    draw($name, $title, $rows . <<"GNUPLOT");
set logscale x
set ylabel "$ylabel"
set xlabel "$xlabel"
$settings
plot $plots
GNUPLOT
    return;
}

points('views', 'The views are faster than pg_locks with pg_stat_activity (higher is better)',
    'yerrorlines', 'times as fast as\npg_locks JOIN pg_stat_activity',
    'advisory locks on the server',
    same(1, 'as fast') . "set logscale y\nset yrange [0.2:100]\n"
    . 'set ytics (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)',
    'speed of locks' => 'advisory.locks', 'speed of activity' => 'advisory.activity',
    'speed of waits' => 'advisory.waits');
points('growth',
    'Many sessions: a lock by name is nearly as fast as pg_advisory_lock (higher is better)',
    'yerrorlines', 'calls a second, in % of those\nof pg_advisory_lock(number)',
    'sessions at work, each with a name of its own',
    same(100, 'as fast') . "set key bottom left\nset yrange [0:120]\nset logscale x 2",
    'growth by sessions' => 'lock and unlock');
points('lock-table',
    'advisory.pressure knows how many locks fit, or is too careful (100 % is best)',
    'points', 'estimate, in % of\nthe locks that fitted',
    'locks that a server took until it was full',
    same(100, 'exact') . "set key at screen 0.5, 0.09 center\nset bmargin at screen 0.34\n"
    . 'set yrange [0:120]',
    'estimate of the lock table' => 'advisory.pressure',
    'usual formula of the lock table' =>
        'max_locks_per_transaction * (max_connections + max_prepared_transactions)');
