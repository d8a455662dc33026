#!/usr/bin/env perl
# DBD::Pg. Runs the calls that driver_calls.t writes, and says what came of each; see README.md
# here.
use strict;
use warnings;
use DBI;

binmode STDOUT, ':encoding(UTF-8)';
my $db = DBI->connect("dbi:Pg:dbname=$ENV{PGDATABASE}", $ENV{PGUSER}, '',
    { PrintError => 0, PrintWarn => 1, RaiseError => 0 });
my @notices;
local $SIG{__WARN__} = sub { push @notices, $_[0] };

# A value of the list, as a program has it.
sub value_of {
    my ($kind, $value) = split /:/, $_[0], 2;
    return undef if $kind eq 'null';    ## no critic (ProhibitExplicitReturnUndef)
    return $kind =~ /\[\]$/ ? [ split /,/, $value ] : $kind =~ /^(?:bigint|integer)$/
        ? 0 + $value : $value;
}

sub rows {
    my ($sql, @values) = @_;
    my $statement = $db->prepare($sql);
    my $at = 0;
    $statement->bind_param(++$at, $_) for @values;
    $statement->execute or return;
    return $statement->{NUM_OF_FIELDS} ? $statement->fetchall_arrayref : [];
}

open my $calls, '<:encoding(UTF-8)', $ARGV[0] or die "$ARGV[0]: $!\n";
while (my $line = <$calls>) {
    chomp $line;
    my ($sql, @values) = split /\t/, $line, -1;
    @notices = ();
    my @said;
    if (my $rows = rows($sql, map { value_of($_) } @values)) {
        my @shown = map { join '|', map { defined ? "'$_'" : 'null' } @$_ } @$rows;
        @said = ("@shown", ('') x 4);
    } else {
        @said = ('error ' . $db->state);
        # (It spoils its argument.)
        push @said, $db->pg_error_field("$_") // '' for qw(detail hint schema constraint);
    }
    print join("\t", map { s/\s+/ /gr } @said, @notices), "\n";
}
$db->disconnect;
