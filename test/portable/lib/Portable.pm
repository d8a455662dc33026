# A database with the portable edition, installed by a role that owns the database and nothing else.
package Portable;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use File::Basename qw(dirname);

our @EXPORT = qw(portable_database install portable_file);

# Creates a database of which the role portable_owner is the owner, and installs into it unless install => 0. session() connects to it.
sub portable_database {
    my %how = @_;
    my $name = create_database(extension => 0);
    session()->run(q(DO $$ BEGIN CREATE ROLE portable_owner LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$),
        qq(ALTER DATABASE "$name" OWNER TO portable_owner));
    install() unless exists $how{install} && !$how{install};
    return $name;
}

sub portable_file { return dirname(__FILE__) . '/../../../portable/' . ($_[0] // 'advisory.sql') }

# What psql says, which is nothing if all is well.
sub install {
    my %how = (role => 'portable_owner', database => $ENV{ADVISORY_TEST_DATABASE}, file => portable_file(), @_);
    open my $psql, '-|', 'sh', '-c', 'exec psql -X -q -v ON_ERROR_STOP=1 -U "$1" -d "$2" -f "$3" 2>&1', 'sh', @how{qw(role database file)}
        or die "cannot run psql: $!\n";
    local $/ = undef;
    my $said = <$psql>;
    close $psql;
    return $said;
}

1;
