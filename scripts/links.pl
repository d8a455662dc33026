#!/usr/bin/env perl
# Follows the relative links of the documents in a folder: perl scripts/links.pl FOLDER. It prints those that lead nowhere, or out of the
# folder, and fails if there is one.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Find qw(find);

my $root = $ARGV[0] or die "usage: perl scripts/links.pl FOLDER\n";
my ($seen, @bad) = (0);

find({ no_chdir => 1, wanted => sub { follow($_) if /[.]md\z/ } }, $root);
print "no document in $root\n" if !$seen;
print map { "$_\n" } @bad;
exit(@bad || !$seen ? 1 : 0);

sub follow {
    my ($file) = @_;
    $seen++;
    open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
    my $text = do { local $/ = undef; <$in> };
    $text =~ s/^```.*?^```//gms;
    $text =~ s/`[^`\n]*`//g;
    for my $link ($text =~ /\]\(([^)\s#]+)/g) {
        next if $link =~ /^[a-z]+:/;
        my $depth = () = substr($file, length $root) =~ m{/(?=.*/)}g;
        my $up    = () = $link =~ m{(?:\A|/)[.][.](?=/)}g;
        push @bad, "$file: $link" if $up > $depth || !-e dirname($file) . "/$link";
    }
    return;
}
