#!/usr/bin/env perl
# Tries to break the extension: `make stress`.
#
#   STRESS="exclusion crashes"   only these phases; see the modules in lib/Stress, one a phase
#   SECONDS=120                  how long the load of a phase lasts (STRESS_SECONDS in the
#                                environment: SECONDS is the shell's own)
#   SESSIONS=32                  how many sessions it has
#   SEED=…                       of all random choices. It repeats the operations of each session,
#                                but not their interleaving
#   CRASHES=…                    how often the server crashes in the phase of that name; by default
#                                one for each six seconds
#   CALLS=…                      how many hostile calls there are; by default 500 for each second
#
# At the first violation of a promise of the extension it prints the known facts about it and ends
# with status 1.
use FindBin;
use lib "$FindBin::Bin/lib", "$FindBin::Bin/../t/lib";
use AdvisoryTest;
use Stress::Crashes;
use Stress::Exclusion;
use Stress::Hostile;
use Stress::Load;
use Stress::Memory;
use Stress::Sets;
use Time::HiRes qw(time);

my @PHASES = qw(exclusion sets crashes memory hostile);

$| = 1;
# The phases watch their own time.
alarm 0;
$SIG{TERM} = $SIG{INT} = sub { exit 1 };
my $seconds = $ENV{STRESS_SECONDS} || 120;
my $sessions = $ENV{SESSIONS} || 32;
my %how = (seconds => $seconds, sessions => $sessions, seed => int($ENV{SEED} || time % 100000),
    crashes => $ENV{CRASHES} || int($seconds / 6) || 1,
    calls => $ENV{CALLS} || 500 * $seconds);
my @chosen = split ' ', $ENV{STRESS} || "@PHASES";
for my $phase (@chosen) {
    die "there is no phase $phase: choose of @PHASES\n" if !grep { $_ eq $phase } @PHASES;
}
print "SEED=$how{seed} SESSIONS=$sessions SECONDS=$seconds CRASHES=$how{crashes} "
    . "CALLS=$how{calls}\n" if !defined $ENV{STRESS_MEMORY_CASE};
for my $phase (@chosen) {
    my $module = ucfirst $phase;
    print "\n== $phase\n";
    my $start = time;
    if (!eval { "Stress::$module"->can('run')->(%how); 1 }) {
        print "FAILED: $phase, SEED=$how{seed}: $@";
        Stress::Load::print_logs();
        exit 1;
    }
    printf "ok - %s, in %d s\n", $phase, time - $start;
}
