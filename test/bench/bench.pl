#!/usr/bin/env perl
# Measures the cost of the extension compared with the server's own means for the same purpose:
# `make bench`.
#
#   BENCH="keys views"           only these parts (the files in test/bench/parts)
#   QUICK=1                      a short run, within 2 minutes
#   ROUNDS=5                     how often each measurement is repeated
#   BASE=/path/to/another/tree   measures the extension built from there, too, on another server
#
# Each line is a ratio: the median of the rounds, the quartiles, and what is promised; MISSED where
# that is not kept. All ratios go to results/bench.json. The exit code is 1 where one is far off.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../t/lib";
use Bench;
use File::Path qw(make_path);

use constant PARTS =>
    qw(keys locks timeouts many semaphores views questions bystanders growth leases pool portable
    instructions);

my %known = map { $_ => 1 } PARTS;
my @parts = split ' ', $ENV{BENCH} || join ' ', PARTS;
for my $part (@parts) {
    die "there is no part \"$part\"; there are: @{[PARTS]}\n" unless $known{$part};
}
chdir "$FindBin::Bin/../.." or die "cannot enter the tree: $!\n";
make_path('results');
exit(finish_bench('results/bench.json', @parts) ? 0 : 1);
