#!/usr/bin/env perl
# Draws the results of `make bench` as SVG pictures: plots.pl results/bench.json DIRECTORY
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
    my ($name, $commands) = @_;
    open my $gnuplot, '|-', 'gnuplot' or die "cannot run gnuplot: $!\n";
    print {$gnuplot} <<"GNUPLOT", $commands;
set terminal svg size 760,380 dynamic noenhanced font 'sans-serif,13' background 'white'
set output '$directory/$name.svg'
set border 3
set tics nomirror out
set grid ytics lc rgb '#dddddd'
set style fill solid 0.8 noborder
set key top left
GNUPLOT
    close $gnuplot or die "gnuplot failed on $name\n";
    print "$directory/$name.svg\n";
    return;
}

sub data {
    my ($name, @rows) = @_;
    return "\$$name << EOD\n" . join('', map { join("\t", @$_) . "\n" } @rows) . "EOD\n";
}

sub quoted { my ($text) = @_; $text =~ s/"/'/g; return qq{"$text"} }

my @colours = ('#336791', '#e08e0b', '#7a9f35', '#a23b3b');

# Bars in groups: the columns of each row behind its label are one bar each, with these titles.
sub bars {
    my ($name, $ylabel, $settings, $titles, @rows) = @_;
    my $plots = join ', ', map { sprintf q{$bars using %d:xtic(1) title "%s" lc rgb '%s'}, $_ + 2,
        $titles->[$_], $colours[$_] } 0 .. $#$titles;
    draw($name, data('bars', @rows) . <<"GNUPLOT");
set style data histogram
set style histogram clustered gap 1.5
set ylabel "$ylabel"
set key outside top horizontal font ',11'
set xtics font ',11'
set bmargin 4
$settings
plot $plots, 1 lc rgb '#888888' dt 2 notitle
GNUPLOT
    return;
}

# ---- What a lock by name costs -------------------------------------------------------------------

my %cost;
for my $figure (grep { $_->{part} eq 'locks' && $_->{against} =~ /hashed/
    && $_->{of} eq 'throughput' } @figures) {
    my ($what, $clients) = $figure->{work} =~ /^(.*) over pgbench, (\d+) clients?, prepared$/
    or next;
    $cost{$clients}{$what} = $figure->{ratio};
}
if (%cost) {
    my @whats = sort keys %{ $cost{ (sort keys %cost)[0] } };
    bars('locks', "throughput beside a hashed name's", 'set yrange [0:1.2]', \@whats,
        map { my $clients = $_; [ quoted($clients == 1 ? '1 client' : "$clients clients"),
            map { $cost{$clients}{$_} } @whats ] } sort { $a <=> $b } keys %cost);
}

# ---- Waiting for a slot --------------------------------------------------------------------------

my %longest;
for my $figure (of_series('semaphore longest')) {
    my ($sessions, $ms) = split m{/}, $figure->{at};
    $longest{ $figure->{against} }{ sprintf '%02d sessions, %02d ms', $sessions, $ms } =
        $figure->{ratio};
}
my @rivals = sort keys %longest;
if (@rivals) {
    my @cases = sort keys %{ $longest{ $rivals[0] } };
    bars('semaphores', 'longest wait for a slot, as a ratio', 'set logscale y',
        [ map { 'beside ' . s/'s$//r =~ s/s'$/s/r } @rivals ],
        map { my $case = $_; [ quoted($case =~ s/\b0//gr =~ s/, /\\n/r),
            map { $longest{$_}{$case} } @rivals ] } @cases);
}

# ---- Looking, and growing ------------------------------------------------------------------------

# Points with the quartiles, or lines through them.
sub points {
    my ($name, $style, $ylabel, $xlabel, $settings, %series) = @_;
    my @names = grep { of_series($_) } sort keys %series;
    return unless @names;
    my $rows = join '', map { my $i = $_; data("points$i",
        map { [ $_->{at}, $_->{ratio}, $_->{low} // $_->{ratio},
        $_->{high} // $_->{ratio} ] } of_series($names[$i])) } 0 .. $#names;
    my $plots = join ', ',
        map { sprintf q{$points%d using ($1 > 0 ? $1 : 1):2:3:4 with %s title "%s" lw 2 pt 7 }
            . q{lc rgb '%s'}, $_, $style, $series{ $names[$_] }, $colours[$_] } 0 .. $#names;
    draw($name, $rows . <<"GNUPLOT");
set logscale x
set ylabel "$ylabel"
set xlabel "$xlabel"
$settings
plot $plots, 1 lc rgb '#888888' dt 2 notitle
GNUPLOT
    return;
}

points('views', 'yerrorlines', 'times as fast as pg_locks and pg_stat_activity',
    'advisory locks on the server', 'set logscale y',
    'speed of locks' => 'locks', 'speed of activity' => 'activity', 'speed of waits' => 'waits');
points('growth', 'yerrorlines', "throughput beside the built-ins'",
    'sessions, each with a name of its own',
    "set key bottom left\nset yrange [0:1.2]\nset logscale x 2",
    'growth by sessions' => 'lock and unlock');
points('lock-table', 'yerrorbars', 'ratio to what fits', 'locks that fit',
    "set key bottom right\nset yrange [0:1.2]",
    'estimate of the lock table' => 'advisory.pressure',
    'usual formula of the lock table' => 'the usual formula');
