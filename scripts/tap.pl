#!/usr/bin/env perl
# Runs tests side by side, and counts single assertions, passed and failed, which prove does not.
#
#   scripts/tap.pl RESULT JOBS TEST…
#
# scripts/test-one.sh runs each TEST and prints TAP; JOBS of them run at the same time. A file with
# a line "# Runs first: …" begins before the others, because it takes long. One with a line "# Runs
# alone: …" waits until all others have ended, and nothing runs beside it. From the time TEST_UNTIL
# on none begins any more: those that are left are skipped. With TEST_TWICE=yes a test that has
# failed is run once more, alone, when all others have ended: on a machine that is busy, some that
# measure time fail beside others. What has failed first is named all the same.
#
# This script prints one line for each test, and below it the comments that the test has made on
# standard error. If it has failed, it prints all that the test has said but what passed. The first
# line of the file RESULT is "passed failed skipped", and each further one names a failure. A test
# that breaks off, has a wrong plan or runs nothing counts as one failure.
use strict;
use warnings;
use File::Basename qw(dirname);
use TAP::Parser;
use TAP::Parser::Multiplexer;
use Time::HiRes qw(time);

my ($result, $jobs, @tests) = @ARGV;
die "usage: scripts/tap.pl RESULT JOBS TEST...\n" unless @tests;
$| = 1;

# If this process is killed, the test ends with all processes that it has started.
my @runner = (qw(setpriv --pdeathsig TERM -- bash), dirname($0) . '/test-one.sh');

my ($passed, $failed, $skipped, @failures) = (0, 0, 0);
my @again;      # those that are to be run once more
my $running = TAP::Parser::Multiplexer->new;
my %order;
push @{ $order{ order_of($_) } }, $_ for @tests;
my @alone  = @{ $order{alone} // [] };
my @beside = map { @{ $order{$_} // [] } } qw(first beside);

while (1) {
    skip(splice(@beside), splice @alone) if $ENV{TEST_UNTIL} && time > $ENV{TEST_UNTIL};
    start(shift @beside) while @beside && $running->parsers < $jobs;
    start(shift @alone) if @alone && !$running->parsers;
    give_up(splice @again) if $ENV{TEST_UNTIL} && time > $ENV{TEST_UNTIL} + 120;
    start(@{ shift @again }) if @again && !$running->parsers;
    my ($parser, $test, $line) = $running->next or last;
    if   ($line) { hear($test, $line) }
    else         { finish($test, $parser) }
}

open my $out, '>', $result or die "cannot write $result: $!\n";
print {$out} map { "$_\n" } "$passed $failed $skipped", @failures;
close $out or die "cannot write $result: $!\n";
exit($failed ? 1 : 0);

sub order_of {
    my ($test) = @_;
    open my $file, '<', $test or return 'beside';    # library, regress and isolation are no files
    return (map { /^# Runs (alone|first)\b/ } <$file>)[0] // 'beside';
}

# With a second argument it is run once more: why it has failed before. TEST_ALONE tells it that it
# is to run its programs one after another, too.
sub start {
    my ($name, $before) = @_;
    local $ENV{TEST_ALONE} = $before ? 'yes' : $ENV{TEST_ALONE};
    $running->add(TAP::Parser->new({ exec => [ @runner, $name ] }),
        { name => $name, begun => time, before => $before });
    return;
}

# There are two minutes more for that than for tests to begin.
sub may_run_again {
    my ($test) = @_;
    return 0 if ($ENV{TEST_TWICE} // '') ne 'yes' || $test->{before};
    return !$ENV{TEST_UNTIL} || time < $ENV{TEST_UNTIL} + 120;
}

# There is no time to run these once more.
sub give_up {
    for (@_) {
        my ($name, $wrong) = @$_;
        $failed += @$wrong;
        push @failures, map { "$name: $_" } @$wrong;
    }
    return;
}

sub skip {
    my (@late) = @_;
    print "skipped: $_: there is no time left for it\n" for @late;
    $skipped += @late;
    return;
}

# A line of the test's output. test-one.sh marks what was on standard error with an exclamation
# mark.
sub hear {
    my ($test, $line) = @_;
    my ($mark, $text) = $line->as_string =~ /^(#! ?)?(.*)/s;
    push @{ $test->{said} }, $text unless $text =~ /^ *(?:ok |1\.\.\d|# Subtest)/;
    push @{ $test->{remarks} }, $text if $mark && $text =~ /^#/;
    return if !$line->is_test;
    push @{ $test->{remarks} }, 'skipped: ' . $line->explanation if $line->has_skip;
    push @{ $test->{failed} }, join ' ', $line->number, $line->description if !$line->is_ok;
    return;
}

sub finish {
    my ($test, $parser) = @_;
    # Tests marked as skipped or to do count neither as passed nor as failed.
    my %aside = map { $_ => 1 } $parser->skipped, $parser->todo;
    my @wrong = @{ $test->{failed} // [] };
    push @wrong, join '; ', broken($parser) || 'failed', last_words($test)
        if !@wrong && ($parser->has_problems || $parser->parse_errors);
    push @wrong, 'it ran nothing' if !@wrong && !$parser->skip_all && !$parser->tests_run;
    push @{ $test->{remarks} }, 'skipped: ' . $parser->skip_all if $parser->skip_all;
    my @shown = @{ $test->{@wrong ? 'said' : 'remarks'} // [] };
    printf "%-6s %6.1f s  %s\n", @wrong ? 'FAILED' : 'ok', time - $test->{begun}, $test->{name};
    print map { "    $_\n" } @shown, map { "FAILED: $_" } @wrong;
    if (@wrong && may_run_again($test)) {
        push @again, [ $test->{name}, \@wrong ];
        return;
    }
    print map { "failed beside others, passed alone: $test->{name}: $_\n" }
        @wrong ? () : @{ $test->{before} // [] };
    $skipped += keys(%aside) + ($parser->skip_all ? 1 : 0);
    $passed  += grep { !$aside{$_} } $parser->passed;
    $failed  += @wrong;
    push @failures, map { "$test->{name}: $_" } @wrong;
    return;
}

# What a test has said last that is no comment: why it died.
sub last_words {
    my ($test) = @_;
    my @words = grep { /^[^#\s]/ } @{ $test->{said} // [] };
    return @words ? substr $words[-1], 0, 200 : ();
}

sub broken {
    my ($parser) = @_;
    my @why = $parser->parse_errors;
    push @why, 'exit code ' . $parser->exit if $parser->exit;
    push @why, 'signal ' . $parser->wait % 128 if $parser->wait && $parser->wait % 128;
    return join '; ', @why;
}
