#!/usr/bin/env perl
# Draws a page of the documents as a terminal, in SVG:
#
#   scripts/terminal.pl PAGE.md >PICTURE.svg
#
# Its blocks of SQL become what a user types, and the fences after them what psql prints.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));

use constant { CHARACTER => 8.4, LINE => 19, MARGIN => 18, BAR => 30 };

my ($page) = @ARGV;
die "usage: scripts/terminal.pl PAGE.md\n" unless @ARGV == 1;
open my $in, '<', $page or die "cannot read $page: $!\n";
my (@lines, $fence);
while (my $line = <$in>) {
    chomp $line;
    if ($line =~ /^```(\w*)$/) { $fence = defined $fence ? undef : $1 || 'shown'; next }
    next unless defined $fence;
    my $class = $fence eq 'sql' ? 'typed' : $line =~ /^[-+]+$/ ? 'rule' : $line =~ /^\(\d+ rows?\)$/ ? 'rule' : 'shown';
    push @lines, [ $class, $line ];
    push @lines, [ 'shown', '' ] if $line =~ /^\(\d+ rows?\)$/;
}
close $in;
pop @lines while @lines && $lines[-1][1] eq '';
die "$page has nothing to draw\n" unless @lines;

my $prompt = 'app=> ';
my $columns = 0;
for my $line (@lines) {
    my $length = length($line->[1]) + ($line->[0] eq 'typed' ? length $prompt : 0);
    $columns = $length if $length > $columns;
}
my ($width, $height) = (int($columns * CHARACTER + 2 * MARGIN), @lines * LINE + BAR + 2 * MARGIN);

sub escaped {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;');
    return $text =~ s/([&<>])/$entity{$1}/gr;
}

# The length is given, so that columns stay aligned whatever font is there.
sub text {
    my ($column, $y, $class, $text) = @_;
    my ($indent) = $text =~ /^( *)/;
    $column += length $indent;
    $text = substr $text, length $indent;
    return '' if $text eq '';
    return sprintf qq(<text class="%s" x="%.1f" y="%d" textLength="%.1f" xml:space="preserve">%s</text>\n),
        $class, MARGIN + $column * CHARACTER, $y, length($text) * CHARACTER, escaped($text);
}

my $title = escaped(join ' ', map { $_->[1] } grep { $_->[0] eq 'typed' } @lines);
print <<"SVG";
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" height="$height" role="img">
<title>psql: $title</title>
<style>
text { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 14px; fill: #d8dee4; white-space: pre }
.typed { fill: #ffffff; font-weight: bold }
.prompt { fill: #6bc46d }
.rule { fill: #768390 }
.name { font-size: 13px; fill: #909dab }
</style>
<rect width="$width" height="$height" rx="8" fill="#1c2128"/>
<circle cx="20" cy="17" r="6" fill="#e5534b"/><circle cx="40" cy="17" r="6" fill="#c69026"/><circle cx="60" cy="17" r="6" fill="#57ab5a"/>
<text class="name" x="82" y="22">psql</text>
SVG
my $y = BAR + MARGIN + 10;
for my $line (@lines) {
    my ($class, $text) = @$line;
    if ($class eq 'typed') {
        print text(0, $y, 'prompt', $prompt), text(length $prompt, $y, 'typed', $text);
    } else {
        print text(0, $y, $class, $text);
    }
    $y += LINE;
}
print "</svg>\n";
