#!/usr/bin/env perl
# README.md's chapters "Getting started" and "Everyday patterns" with the portable edition, as a
# reader types them who owns the database and nothing else. doc/portable.md says how they differ.
# Runs once: the tests of what it calls run with each version.
use AdvisoryTest;
use Psql;
use Readme;

my $page = readme();
my @steps = grep { $_->{chapter} =~ /^(?:Getting started|Everyday patterns)$/ } $page->steps;
cmp_ok(scalar @steps, '>=', 15, 'the chapters are there');

# What is otherwise here: how it is installed, and the names in views.
for my $step (@steps) {
    s/^CREATE EXTENSION.*\n//mg for grep { defined } @{$step}{qw(sql shown)};
    delete $step->{shown} if $step->{sql} =~ /advisory[.]blockers/;
}

my $server = own_server();
$page->run($server, role => 'app', called => 'postgres', pid => 4711, steps => \@steps,
    portable => 1);

my @to_database = (server => $server, database => 'documents');
my $psql = Psql->new(@to_database, role => 'app');
my $look = session(@to_database);
queue_works($page, $psql, $look);

# What is in the way while a session waits, for a lock whose name has no label.
my ($who) = map { $_->{sql} } grep { $_->{sql} =~ /advisory[.]blockers/ } @steps;
my ($holder, $waiter) = map { session(@to_database) } 1, 2;
$holder->run(q{SELECT advisory.lock('export', 8)});
$waiter->start(q{SELECT advisory.lock('export', 8)});
waits($look, $waiter);
my ($said, $pid) = ($psql->run($who), $holder->pid);
unlike($said, qr/ERROR/, 'the views can be read while a session waits for a lock without a label');
like($said, qr/\bSELECT advisory\.terminate_holder_key\(-?\d+, $pid, kind => 'lock'\)/,
    '... and name the statement that ends its holder');
$holder->run(q{SELECT advisory.unlock('export', 8)});
$waiter->finish;
done_testing();
