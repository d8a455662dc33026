#!/usr/bin/env perl
# Draws a page of the documents as a terminal, in SVG:
#
#   scripts/terminal.pl PAGE.md >PICTURE.svg
#
# Its blocks of SQL become what a user types, and the fences after them what psql prints. If the
# page says in which sessions its blocks run (`<!-- in 4711 -->`), each session is a terminal, and
# the picture moves: each block and each answer appears in its turn. Headings of the second level
# are scenes, which have a number. Without motion, where the viewer asks for that or cannot do it,
# the picture is as it is in the end.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));

use constant { CHARACTER => 8.4, LINE => 19, MARGIN => 18, BAR => 30, PROMPT => 'app=> ' };

# Of a moving picture: characters in a line of a terminal; times in seconds; how often it is shown.
use constant { COLUMNS => 104, GAP => 10, TIMES => 3 };
use constant { TYPED_S => 0.7, SHOWN_S => 0.85, LINE_S => 0.4, END_S => 2, LIMIT_S => 20 };

my ($page) = @ARGV;
die "usage: scripts/terminal.pl PAGE.md\n" unless @ARGV == 1;
my (@blocks, @scenes);      # {session, scene, lines}; a line is [class, text]
read_page();
die "$page has nothing to draw\n" unless @blocks;
if   ($blocks[0]{session}) { draw_moving() }
else                       { draw_still() }

sub read_page {
    my ($fence, $session);
    open my $in, '<', $page or die "cannot read $page: $!\n";
    while (my $line = <$in>) {
        chomp $line;
        $session = $1 if $line =~ /^<!-- in (\d+) -->$/;
        push @scenes, $1 if $line =~ /^## (.*)$/;
        if ($line =~ /^```(\w*)$/) {
            if (defined $fence) { undef $fence; next }
            $fence = $1 || 'shown';
            push @blocks, { session => $session, scene => scalar @scenes, lines => [] };
            next;
        }
        next unless defined $fence;
        my $is_rule = $line =~ /^[-+]+$/ || $line =~ /^\(\d+ rows?\)$/;
        my $class = $fence eq 'sql' ? 'typed' : $is_rule ? 'rule' : 'shown';
        push @{ $blocks[-1]{lines} }, [ $class, $line ];
        push @{ $blocks[-1]{lines} }, [ 'shown', '' ] if $line =~ /^\(\d+ rows?\)$/;
    }
    close $in;
    return;
}

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
    my $form = '<text class="%s" x="%.1f" y="%d" textLength="%.1f" xml:space="preserve">%s</text>';
    return sprintf "$form\n",
        $class, MARGIN + $column * CHARACTER, $y, length($text) * CHARACTER, escaped($text);
}

# A line of a terminal, as [class, text].
sub line_at {
    my ($y, $class, $text) = @_;
    return text(0, $y, $class, $text) if $class ne 'typed';
    return text(0, $y, 'prompt', PROMPT) . text(length PROMPT, $y, 'typed', $text);
}

sub head {
    my ($width, $height, $title, $more) = @_;
    my $size = qq(viewBox="0 0 $width $height" width="$width" height="$height");
    my $font = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
    return <<"SVG";
<svg xmlns="http://www.w3.org/2000/svg" $size role="img">
<title>@{[escaped($title)]}</title>
<style>
text { font-family: $font; font-size: 14px; fill: #d8dee4; white-space: pre }
.typed { fill: #ffffff; font-weight: bold }
.prompt { fill: #6bc46d }
.rule { fill: #768390 }
.name { font-size: 13px; fill: #909dab }
$more</style>
SVG
}

# A window at this height, with three buttons and a name.
sub window {
    my ($y, $width, $height, $name) = @_;
    my $at = $y ? qq( y="$y") : '';
    my ($buttons, $base) = ($y + 17, $y + 22);
    my $button = qq(cy="$buttons" r="6");
    my $three = join '',
        qq(<circle cx="20" $button fill="#e5534b"/>),
        qq(<circle cx="40" $button fill="#c69026"/>),
        qq(<circle cx="60" $button fill="#57ab5a"/>);
    return <<"SVG";
<rect$at width="$width" height="$height" rx="8" fill="#1c2128"/>
$three
<text class="name" x="82" y="$base">$name</text>
SVG
}

sub draw_still {
    my @lines = map { @{ $_->{lines} } } @blocks;
    pop @lines while @lines && $lines[-1][1] eq '';
    my $columns = 0;
    for my $line (@lines) {
        my $length = length($line->[1]) + ($line->[0] eq 'typed' ? length PROMPT : 0);
        $columns = $length if $length > $columns;
    }
    my $width = int($columns * CHARACTER + 2 * MARGIN);
    my $height = @lines * LINE + BAR + 2 * MARGIN;
    my $typed = join ' ', map { $_->[1] } grep { $_->[0] eq 'typed' } @lines;
    print head($width, $height, "psql: $typed", ''), window(0, $width, $height, 'psql');
    my $y = BAR + MARGIN + 10;
    for my $line (@lines) {
        print line_at($y, @{$line});
        $y += LINE;
    }
    print "</svg>\n";
    return;
}

# ---- A moving picture ---------------------------------------------------------------------------

# A line as a terminal breaks it. The prompt stands before the first of its parts.
sub wrapped {
    my ($class, $text) = @_;
    my $first = COLUMNS - ($class eq 'typed' ? length PROMPT : 0);
    return [ $class, $text ] if length $text <= $first;
    my @parts = (substr($text, 0, $first), substr($text, $first) =~ /(.{1,${\COLUMNS}})/g);
    return ([ $class, shift @parts ], map { [ $class eq 'typed' ? 'typing' : $class, $_ ] } @parts);
}

# What is not there before this moment, of the whole time.
sub appears {
    my ($number, $from, $whole) = @_;
    my $percent = sprintf '%.2f', 100 * $from / $whole;
    my $then = sprintf '%.2f', 100 * $from / $whole + 0.01;
    return "\@keyframes k$number { 0%, $percent% { opacity: 0 } $then%, 100% { opacity: 1 } }\n"
        . ".s$number { animation-name: k$number }\n";
}

sub draw_moving {
    my (@sessions, %rows, @steps);      # a step is {at, scene, session, row, lines}
    my ($at, $scene) = (0.5, 0);
    for my $block (@blocks) {
        my $session = $block->{session};
        if (!defined $rows{$session}) { push @sessions, $session; $rows{$session} = 0 }
        my @lines = map { wrapped(@{$_}) } @{ $block->{lines} };
        pop @lines while @lines && $lines[-1][1] eq '';
        my $is_typed = $lines[0][0] eq 'typed';
        push @steps, { at => $at, session => $session, row => $rows{$session}, lines => \@lines,
            scene => $block->{scene} != $scene ? $scene = $block->{scene} : 0 };
        $rows{$session} += @lines;
        $at += $is_typed ? TYPED_S : SHOWN_S + LINE_S * (@lines - 1);
    }
    my $whole = sprintf '%.1f', $at + END_S;
    die "$page takes $whole seconds, more than ${\LIMIT_S}\n" if $whole >= LIMIT_S;
    my $style = ".typing { fill: #ffffff; font-weight: bold }\n"
        . ".scene { font-weight: bold; fill: #e3b341 }\n"
        . ".error { fill: #ff7b72 }\n"
        . ".step { animation-duration: ${whole}s; animation-iteration-count: @{[TIMES]} }\n"
        . join('', map { appears($_, $steps[$_]{at}, $whole) } 0 .. $#steps)
        . "\@media (prefers-reduced-motion: reduce) { .step { animation: none } }\n";

    my $width = int(COLUMNS * CHARACTER + 3 * MARGIN);
    my ($y, $windows, %top) = (@scenes * (LINE + 2) + GAP, '');
    for my $number (1 .. @sessions) {
        my $session = $sessions[ $number - 1 ];
        my $height = $rows{$session} * LINE + BAR + MARGIN;
        $windows .= window($y, $width, $height, "terminal $number: psql, process $session");
        $top{$session} = $y + BAR + MARGIN;
        $y += $height + GAP;
    }
    $y -= GAP;
    my $titles = join '; ', @scenes;
    print head($width, $y, "Two sessions of psql. $titles.", $style),
        qq(<rect width="$width" height="$y" rx="8" fill="#0d1117"/>\n), $windows;
    for my $number (0 .. $#steps) {
        my $step = $steps[$number];
        my $line_y = $top{ $step->{session} } + $step->{row} * LINE;
        print qq(<g class="step s$number">\n);
        if (my $n = $step->{scene}) {
            print text(0, $n * (LINE + 2) - 2, 'scene', "$n. $scenes[$n - 1]"),
                qq(<text class="scene" x="4" y="$line_y">$n</text>\n);
        }
        my $is_error;
        for my $line (@{ $step->{lines} }) {
            my ($class, $text) = @{$line};
            $is_error = 1 if $text =~ /^ERROR:/;
            $is_error = 0 if $text =~ /^(?:DETAIL|HINT):/;
            print line_at($line_y, $is_error ? 'error' : $class, $text);
            $line_y += LINE;
        }
        print "</g>\n";
    }
    print "</svg>\n";
    return;
}
