# What psql prints, and how much room that takes on a terminal.
package Screen;

use strict;
use warnings;
use Exporter 'import';
use IPC::Open2;

our @EXPORT = qw(screen columns);

# screen($input, database => …, role => …, server => …): psql's output for these lines of input.
sub screen {
    my ($input, %how) = @_;
    local @ENV{qw(PGCLIENTENCODING PSQLRC)} = ('UTF8', '/dev/null');
    my $at = $how{server} // { map { $_ => $ENV{$_} } qw(PGHOST PGPORT PGUSER) };
    my $pid = open2(my $out, my $in, "$ENV{PG_BINDIR}/psql", '-X', '-h', $at->{PGHOST}, '-p', $at->{PGPORT}, '-U', $how{role} // $at->{PGUSER},
        '-d', $how{database} // $ENV{PGDATABASE});
    binmode $_, ':encoding(UTF-8)' for $in, $out;
    print {$in} "$input\n";
    close $in;
    my $text = do { local $/ = undef; <$out> };
    waitpid $pid, 0;
    die "psql failed for $input\n" if $?;
    return $text;
}

# How many columns of a terminal the widest line takes.
sub columns {
    my ($text) = @_;
    my ($widest) = sort { $b <=> $a } 0, map { length($_) + (() = /[\p{Ea=W}\p{Ea=F}]/g) - (() = /\p{Mn}/g) } split /\n/, $text;
    return $widest;
}

1;
