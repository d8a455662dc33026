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
set terminal svg size 760,380 dynamic font 'sans-serif,13' background 'white'
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

sub data { my ($name, @rows) = @_; return "\$$name << EOD\n" . join('', map { join("\t", @$_) . "\n" } @rows) . "EOD\n" }

sub quoted { my ($text) = @_; $text =~ s/"/'/g; return qq{"$text"} }

# ---- What a lock by name costs ------------------------------------------------------------------------------

my @cost = map { [ quoted("$_->{work}\\n$_->{of} to $_->{against}"), $_->{ratio}, $_->{low}, $_->{high} ] }
    grep { $_->{part} eq 'locks' && $_->{against} =~ /hashed/ && $_->{work} !~ /simple/ } @figures;
draw('locks', data('cost', @cost) . <<'GNUPLOT') if @cost;
set yrange [0:*]
set ylabel "beside a hashed name with the built-ins"
set xtics rotate by -20 font ',9'
unset key
plot 1 lc rgb '#888888' dt 2, $cost using 0:2:3:4:xtic(1) with boxerrorbars lc rgb '#336791'
GNUPLOT

# ---- Waiting for a slot -------------------------------------------------------------------------------------

my %longest;
for my $figure (of_series('semaphore longest')) {
    my ($sessions, $ms) = split m{/}, $figure->{at};
    $longest{ $figure->{against} }{ sprintf '%02d sessions, %02d ms', $sessions, $ms } = $figure->{ratio};
}
my @rivals = sort keys %longest;
if (@rivals) {
    my @cases = sort keys %{ $longest{ $rivals[0] } };
    my $rows = data('longest', map { my $case = $_; [ quoted($case =~ s/\b0//gr), map { $longest{$_}{$case} } @rivals ] } @cases);
    my @colours = ('#336791', '#e08e0b', '#7a9f35', '#a23b3b');
    my $plots = join ', ', map { sprintf q{$longest using %d:xtic(1) title "%s" lc rgb '%s'}, $_ + 2, "beside $rivals[$_]", $colours[$_] } 0 .. $#rivals;
    draw('semaphores', $rows . <<"GNUPLOT");
set style data histogram
set style histogram clustered
set logscale y
set ylabel "longest wait for a slot, as a ratio"
set key outside top horizontal font ',10'
plot $plots, 1 lc rgb '#888888' dt 2 notitle
GNUPLOT
}

# ---- Looking, and growing -----------------------------------------------------------------------------------

sub lines {
    my ($name, $ylabel, $xlabel, %series) = @_;
    my @names = grep { of_series($_) } sort keys %series;
    return unless @names;
    my $rows = join '', map { my $i = $_; data("line$i", map { [ $_->{at}, $_->{ratio}, $_->{low} // $_->{ratio}, $_->{high} // $_->{ratio} ] } of_series($names[$i])) } 0 .. $#names;
    my $plots = join ', ', map { sprintf q{$line%d using ($1 > 0 ? $1 : 1):2:3:4 with yerrorlines title "%s" lw 2 pt 7}, $_, $series{ $names[$_] } } 0 .. $#names;
    draw($name, $rows . qq{set logscale x\nset yrange [0:*]\nset ylabel "$ylabel"\nset xlabel "$xlabel"\nplot $plots, 1 lc rgb '#888888' dt 2 notitle\n});
    return;
}

lines('views', 'times as fast as pg_locks and pg_stat_activity', 'advisory locks on the server',
    'speed of locks' => 'locks', 'speed of activity' => 'activity', 'speed of waits' => 'waits');
lines('growth', "throughput beside the built-ins'", 'sessions, each with a name of its own', 'growth by sessions' => 'lock and unlock');
lines('lock-table', 'ratio to what fits', 'locks that fit', 'estimate of the lock table' => 'advisory.pressure', 'usual formula of the lock table' => 'the usual formula');
