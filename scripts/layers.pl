#!/usr/bin/env perl
# The layers of src: an #include may only name a file of the same folder or of a folder below it,
# and no two files may include each other, directly or through others. (A header and the .cpp of its
# name count as one file.) Prints what does not hold.
#
#   sql  →  views  →  core  →  shmem  →  server  →  base
#
# The README.md of a folder names each of its files, and no other one.
#
# And what PostgreSQL 20 changes, latches and the attachment to the server's own tables, is used in
# one place.
use strict;
use warnings;

my %below = (
    base   => [],
    server => [qw(base)],
    shmem  => [qw(base server)],
    core   => [qw(base server shmem)],
    views  => [qw(base server shmem core)],
    sql    => [qw(base server shmem core views)],
);

my %only_in = (
    'src/server/latch.h' =>
        qr/\b(?:WaitLatch|SetLatch|ResetLatch|MyLatch|procLatch|HandleCatchupInterrupt)\b/,
    'src/base/compat.h'  => qr/\bShmemInit(?:Hash|Struct)\b/,
);

my $errors = 0;
my %includes;    # by file without its ending: those that it includes
for my $file (sort glob 'src/*/*.h src/*/*.cpp') {
    my ($name, $folder) = $file =~ m{^src/((\w+)/\w+)\.};
    my $allowed = $below{$folder};
    if (!$allowed) {
        print "$file: '$folder' is no layer\n";
        $errors++;
        next;
    }
    open my $in, '<', $file or die "cannot read $file: $!\n";
    while (<$in>) {
        for my $owner (grep { $_ ne $file } sort keys %only_in) {
            next unless /($only_in{$owner})\s*[(),;]/;
            print "$file:$.: only $owner uses '$1'\n";
            $errors++;
        }
        next unless m{^\s*#\s*include\s+"((\w+)/\w+)\.h"} and -e "src/$1.h";
        my ($header, $its_folder) = ($1, $2);
        $includes{$name}{$header} = 1 if $header ne $name;
        next if $its_folder eq $folder or grep { $_ eq $its_folder } @$allowed;
        print "$file:$.: '$header.h' is not below $folder\n";
        $errors++;
    }
    close $in;
}

# The files stand in the first column of the README's first table, in backticks, mostly without
# their endings.
for my $folder (sort keys %below) {
    my $readme = "src/$folder/README.md";
    my $in;
    if (!open $in, '<', $readme) {
        print "there is no $readme\n";
        $errors++;
        next;
    }
    my $text = do { local $/ = undef; <$in> };
    close $in;
    my ($table) = $text =~ /^\| file \|.*\n((?:\|.*\n)+)/m;
    my %named = map { s/[.].*//r => 1 } map { /`([\w.]+)`/g } ($table // '') =~ /^\| ([^|]*)/mg;
    my %there = map { m{(\w+)\.\w+$} => 1 } glob "src/$folder/*.h src/$folder/*.cpp";
    for my $name (sort grep { !$named{$_} } keys %there) {
        print "$readme does not name $name\n";
        $errors++;
    }
    my @files = grep { !-e "src/$folder/$_" } $text =~ /`(\w+\.(?:h|cpp))`/g;
    for my $name ((sort grep { !$there{$_} } keys %named), @files) {
        print "$readme names $name, which is not there\n";
        $errors++;
    }
}

# Files that include no other file of the rest cannot be part of a circle. What is left in the end
# consists of circles, and of files that include them.
my %rest = %includes;
while (my @free = grep { my $file = $_; !grep { $rest{$_} } keys %{$includes{$file}} } keys %rest) {
    delete @rest{@free};
}
for my $file (sort keys %rest) {
    my @path = ($file);
    my %seen;
    while (!$seen{$path[-1]}++) {
        push @path, (sort grep { $rest{$_} } keys %{$includes{$path[-1]}})[0];
    }
    next if $path[-1] ne $file;
    print 'src: a circle: ', join(' → ', @path), "\n";
    $errors++;
}
exit($errors ? 1 : 0);
