# What psql prints, and how much room that takes on a terminal.
package Screen;

use strict;
use warnings;
use Exporter 'import';
use IPC::Open2;

our @EXPORT = qw(psql_begun screen columns);

# psql_begun(database => …, role => …, server => …): a psql that waits for its input.
sub psql_begun {
    my (%how) = @_;
    local @ENV{qw(PGCLIENTENCODING PSQLRC)} = ('UTF8', '/dev/null');
    my $at = $how{server} // { map { $_ => $ENV{$_} } qw(PGHOST PGPORT PGUSER) };
    my %psql;
    $psql{pid} = open2($psql{out}, $psql{in}, "$ENV{PG_BINDIR}/psql", '-X', '-h', $at->{PGHOST},
        '-p', $at->{PGPORT}, '-U', $how{role} // $at->{PGUSER},
        '-d', $how{database} // $ENV{PGDATABASE});
    binmode $_, ':encoding(UTF-8)' for @psql{qw(in out)};
    return \%psql;
}

# screen($input, …): psql's output for these lines of input; the rest as for psql_begun(), or psql
# => what that has returned.
sub screen {
    my ($input, %how) = @_;
    my $psql = $how{psql} // psql_begun(%how);
    my ($in, $out) = @$psql{qw(in out)};
    print {$in} "$input\n";
    close $in;
    my $text = do { local $/ = undef; <$out> };
    waitpid $psql->{pid}, 0;
    die "psql failed for $input\n" if $?;
    return $text;
}

# How many columns of a terminal the widest line takes.
sub columns {
    my ($text) = @_;
    my ($widest) = sort { $b <=> $a } 0,
        map { length($_) + (() = /[\p{Ea=W}\p{Ea=F}]/g) - (() = /\p{Mn}/g) } split /\n/, $text;
    return $widest;
}

1;
