#!/usr/bin/env perl
# The layers of src: an #include may only name a file of the same folder or of a folder below it. Prints all others.
#
#   sql  →  views  →  core  →  shmem  →  server  →  base
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

my $errors = 0;
for my $file (sort glob 'src/*/*.h src/*/*.cpp') {
    my ($folder) = $file =~ m{^src/(\w+)/};
    my $allowed = $below{$folder};
    if (!$allowed) {
        print "$file: '$folder' is no layer\n";
        $errors++;
        next;
    }
    open my $in, '<', $file or die "cannot read $file: $!\n";
    while (<$in>) {
        next unless m{^\s*#\s*include\s+"((\w+)/\w+\.h)"} and -e "src/$1";
        my ($header, $its_folder) = ($1, $2);
        next if $its_folder eq $folder or grep { $_ eq $its_folder } @$allowed;
        print "$file:$.: '$header' is not below $folder\n";
        $errors++;
    }
    close $in;
}
exit($errors ? 1 : 0);
