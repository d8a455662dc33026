# README.md for the tests that type it as a reader does, with either edition.
package Readme;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use File::Basename qw(dirname);
use Page;
use Test::More;

our @EXPORT = qw(readme table_works queue_works);

my $file = dirname(__FILE__) . '/../../../README.md';

sub readme { return Page->new($file) }

# The statements of its table "instead of this, write that", but for those that match.
sub table_works {
    my ($psql, $without) = @_;
    open my $in, '<', $file or die "cannot read $file: $!\n";
    my @statements = map { /^\|.*\| `((?:SELECT|CALL) [^`]*)` \|$/ ? $1 : () } <$in>;
    close $in;
    for my $statement (grep { !$without || $_ !~ $without } @statements) {
        unlike($psql->run("$statement;"), qr/ERROR|WARNING|error:|warning:|NOTICE/, $statement);
    }
    return cmp_ok(scalar @statements, '>', 8, 'all of the table was run');
}

# Its work queue, with jobs in it, after the page has created the table.
sub queue_works {
    my ($page, $psql, $look) = @_;
    my ($queue) = grep { ($_->{sql} // '') =~ /try_lock_any/ } $page->steps;
    my $work = $queue->{sql} =~ s/\ACREATE TABLE.*?;\n//sr;
    $psql->run('INSERT INTO job VALUES (1), (2);');
    $psql->run($work) for 1, 2;
    is($look->value('SELECT count(*) FROM job WHERE done IS NOT NULL'), 2,
        'the queue is worked off');
    like($psql->run($work), qr/\A\s*\z/, 'and then there is nothing to do');
    return is($look->value(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?},
        $psql->pid), 0, 'nothing is left locked');
}

1;
