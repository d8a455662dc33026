#!/usr/bin/env perl
# Timeouts in documents and examples must have a unit, or be '0' or NULL, or a parameter (in a
# document) or psql's variable "timeout". A number without a unit means seconds, which the reader of
# 5000 does not expect. The documents must say so, and so must the examples for Node, whose driver
# accepts numbers. Prints violations.
use strict;
use warnings;
use utf8;

my $SAYS_SO = qr{^(?:README\.md|doc/locks\.md|examples/migration/node/[^/]*\.js)$};
my $QUOTED = qr/'[^']*'/;
my $LIST = qr/(?<list>[(\[](?:[^()\[\]']++|$QUOTED|(?&list))*[)\]])/;
my $TAKING = qr/(?:try_|await_)?(?:xact_)?(?:lock(?:_shared)?(?:_key)?|lock_all|acquire)/;
my $CALL = qr/(?<![\w.])(?:advisory\.)?(?<function>$TAKING|run|terminate_holder)(?=\()$LIST/;

my $errors = 0;
my $found = 0;

sub complain {
    my ($where, $what) = @_;
    print "$where: $what\n";
    $errors++;
    return;
}

# The elements of a list in parentheses or brackets.
sub elements {
    my ($list) = @_;
    my $inside = substr $list, 1, -1;
    my @elements;
    my $ELEMENT = qr/(?<element>(?:[^,()\[\]']++|$QUOTED|$LIST)++)/;
    push @elements, $+{element} while $inside =~ /\G\s*$ELEMENT(?:,|$)/g;
    return @elements;
}

# The timeout of a call, or nothing; $behind is the text after the call.
sub timeout_of {
    my ($function, $list, $behind) = @_;
    my @arguments = elements($list);
    my $place = $function =~ /acquire|run|terminate/ ? 3 : $function =~ /_key/ ? 1 : 2;
    # Prose has "…" for namespace and name.
    $place-- if ($arguments[0] // '') eq '…';
    my ($timeout) = ((map { /^timeout\s*=>\s*(.*)/ } @arguments), $arguments[$place]);
    # The value that Node gives to a parameter stands behind the statement.
    if (defined $timeout and my ($number) = $timeout =~ /^\$(\d+)$/) {
        $timeout = (elements($1))[ $number - 1 ] if $behind =~ /^[^\n]*?(\[[^\]]*\])/;
    }
    # A function's head, or another argument by name.
    return if !defined $timeout || $timeout =~ /^timeout\b|=>/;
    return $timeout;
}

for my $file (grep { -f } glob 'README.md doc/*.md demo/* examples/*/* examples/*/*/*') {
    open my $in, '<:encoding(UTF-8)', $file or die "cannot read $file: $!\n";
    my $text = do { local $/ = undef; <$in> };
    close $in;
    while ($text =~ /$CALL/g) {
        my $line = 1 + (substr($text, 0, $-[0]) =~ tr/\n//);
        my $function = $+{function};
        my $timeout = timeout_of($function, $+{list}, substr $text, $+[0]) // next;
        $found++;
        next if $timeout =~ /^(?:'-?\d+ ?[a-z]+'|'0'|NULL)$/ || $timeout eq q(:'timeout');
        next if $file =~ /\.md$/ && $timeout =~ /^(?:\$\d+|\?::interval|%s)$/;
        complain("$file:$line", "$function() with the timeout $timeout, which has no unit");
    }
    complain($file, 'does not say what the number 5000 would mean')
        if $file =~ $SAYS_SO && $text !~ /\b5000\b[^.]*\b5,000 seconds\b/;
}
complain('scripts/timeouts.pl', "found only $found timeouts") if $found < 30;
exit($errors ? 1 : 0);
