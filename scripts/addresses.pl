#!/usr/bin/env perl
# Compares the addresses in the files of this tree with project.conf, which has the only ones that
# are written by hand.
#
#   perl scripts/addresses.pl [--write] [FOLDER]
#
# It prints a line for each file that has another address, and fails if there is one. With --write
# (`make addresses`) it changes the files, and fails only if a file has no place for an address any
# more.
use strict;
use warnings;
use FindBin;

my $is_write = @ARGV && $ARGV[0] eq '--write' && shift;
my $root     = @ARGV ? $ARGV[0] : "$FindBin::Bin/..";

# How the text with an address looks in each file, so that it is found whatever the address is.
# {keep} stands for any text that stays. The changelogs of packages begin with the newest version;
# older entries keep the address of their time.
my @MAINTAINER_FIELDS = (
    "\nMaintainer: {maintainer}\n", "\nVcs-Git: {repository}.git\n",
    "\nVcs-Browser: {repository}\n"
);
my %places = (
    'META.json' => [
        qq("maintainer": [\n    "{maintainer}"\n  ]),
        qq("bugtracker": {\n      "web": "{repository}/issues"\n    }),
        qq("repository": {\n      "type": "git",\n      "url": "{repository}.git",\n)
            . qq(      "web": "{repository}"\n    }),
    ],
    'README.md' => [ 'git clone {repository}.git && cd', '[issues]({repository}/issues)' ],
    'SECURITY.md' => ['[Security page]({repository}/security), or write to <{address}>.'],
    'clients/node/package.json'     => [qq("url": "git+{repository}.git")],
    'clients/python/pyproject.toml' => [qq(\nRepository = "{repository}"\n)],
    'debian/changelog'         => ["\n -- {maintainer}  "],
    'debian/control'           => \@MAINTAINER_FIELDS,
    'debian/control.in'        => \@MAINTAINER_FIELDS,
    'debian/copyright'         => ["\nUpstream-Contact: {maintainer}\n"],
    'debian/upstream/metadata' => [
        "\nBug-Database: {repository}/issues\n", "\nBug-Submit: {repository}/issues/new\n",
        "\nRepository: {repository}.git\n",      "\nRepository-Browse: {repository}\n",
        "\nSecurity-Contact: {address}\n",
    ],
    'rpm/advisory_ext.spec' => [
        "\nVCS:            git:{repository}.git\n",
        "\n%changelog\n* {keep} 20{keep} {maintainer} - "
    ],
);

sub content {
    my ($name) = @_;
    open my $in, '<:raw', "$root/$name" or die "$root/$name: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

sub put {
    my ($name, $text) = @_;
    open my $out, '>:raw', "$root/$name" or die "$root/$name: $!\n";
    print {$out} $text;
    close $out or die "$root/$name: $!\n";
    return;
}

my %value = content('project.conf') =~ /^(\w+)\s*=\s*(\S.*?)\s*$/mg;
for my $field (qw(repository maintainer)) { die "project.conf has no $field\n" if !$value{$field} }
($value{address}) = $value{maintainer} =~ /<(\S+@\S+)>$/
    or die "project.conf: the maintainer has no <address>\n";

my $bad = 0;
for my $name (sort keys %places) {
    my $text = my $old = content($name);
    for my $place (@{ $places{$name} }) {
        # Fields are odd: text {field} text {field} text
        my @parts   = split /\{(\w+)\}/, $place;
        my $pattern = join '', map { $_ % 2 ? '(.*?)' : quotemeta $parts[$_] } 0 .. $#parts;
        if (my @found = $text =~ $pattern) {
            my ($begin, $end) = ($-[0], $+[0]);
            my $new = join '', map {
                $_ % 2 == 0 ? $parts[$_] : $value{ $parts[$_] } // $found[ ($_ - 1) / 2 ]
            } 0 .. $#parts;
            substr $text, $begin, $end - $begin, $new;
        } else {
            print "$name has no place for an address: ", $place =~ s/\n/ /gr, "\n";
            $bad = 1;
        }
    }
    next if $text eq $old;
    if ($is_write) {
        put($name, $text);
    } else {
        print "$name has other addresses than project.conf: run 'make addresses'\n";
        $bad = 1;
    }
}
exit $bad;
