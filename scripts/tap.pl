#!/usr/bin/env perl
# Runs TAP tests with the modules of prove, and counts single assertions, passed and failed, which prove does not.
#
#   scripts/tap.pl COUNTS SECONDS FILE…
#
# FILE is an executable (*.t), which may take SECONDS, or a pgTAP script (*.sql, run by psql in the database of the
# environment). The script writes one line, "passed failed skipped", into COUNTS. A file that breaks off, has a wrong
# plan or runs no test counts as a failure.
use strict;
use warnings;
use TAP::Harness;

my ($counts, $seconds, @files) = @ARGV;
die "usage: scripts/tap.pl COUNTS SECONDS FILE...\n" unless @files;

my ($passed, $failed, $skipped) = (0, 0, 0);

# The first line of a script names its interpreter. If a script hangs, or if this process is killed, the script ends with
# all processes that it has started.
my $scripts = qr/\.t$/;
my @limited = (qw(setpriv --pdeathsig TERM -- timeout --kill-after=10), $seconds);

for my $kind (qr/\.sql$/, $scripts) {
    my @chosen = grep { $_ =~ $kind } @files or next;
    my $harness = TAP::Harness->new({
        failures => 1,      # for a file that passes show only its name, for others also the failures,
        comments => 1,      # and the expected values
        color    => -t STDOUT ? 1 : 0,
        ($kind eq $scripts ? (exec => \@limited) : (sources => { pgTAP => { suffix => '.sql' } })),
    });
    # prove only prints how many tests were skipped, not why.
    $harness->callback(made_parser => sub {
        my ($parser) = @_;
        $parser->callback(test => sub { print "\nskipped: ", $_[0]->explanation, "\n" if $_[0]->has_skip });
    });
    count_file($_) for $harness->runtests(@chosen)->parsers;
}

open my $out, '>', $counts or die "cannot write $counts: $!\n";
print {$out} "$passed $failed $skipped\n";
close $out or die "cannot write $counts: $!\n";
exit($failed ? 1 : 0);

sub count_file {
    my ($parser) = @_;
    # Tests marked as skipped or to do count neither as passed nor as failed.
    my %aside = map { $_ => 1 } $parser->skipped, $parser->todo;
    my $broken = ($parser->has_problems && !$parser->failed) || $parser->parse_errors;
    $skipped += keys(%aside) + ($parser->skip_all ? 1 : 0);
    $passed  += grep { !$aside{$_} } $parser->passed;
    $failed  += $parser->failed + ($broken ? 1 : 0);
    $failed  += 1 if !$broken && !$parser->skip_all && !$parser->tests_run;
}
