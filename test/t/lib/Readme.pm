# README.md for the tests that type it as a reader does, with either edition.
package Readme;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use File::Basename qw(dirname);
use Page;
use Test::More;

our @EXPORT = qw(readme queue_works);

sub readme { return Page->new(dirname(__FILE__) . '/../../../README.md') }

# Its work queue, after the page has created the table and worked off the first of its two jobs.
sub queue_works {
    my ($page, $psql, $look) = @_;
    my ($take) = map { $_->{sql} =~ /^(SELECT max\(try_lock_any\).*)/ms } $page->steps;
    my ($work) = grep { /^UPDATE job\b/m } map { $_->{sql} } $page->steps;
    my $left = 'SELECT count(*) FROM job WHERE done IS NULL';
    is($look->value($left), 1, 'the page has worked off a job');
    $psql->run($take . $work);
    is($look->value($left), 0, 'the queue is worked off');
    is($psql->run("$take\\echo :{?id}"), "FALSE\n", 'and then there is nothing to do');
    return is($look->value(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?},
        $psql->pid), 0, 'nothing is left locked');
}

1;
