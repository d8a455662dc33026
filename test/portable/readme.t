#!/usr/bin/env perl
# README.md's chapters "Getting started" and "Everyday patterns" with the portable edition, as a
# reader types them who owns the database and nothing else, and its table "instead of this, write
# that". doc/portable.md says how they differ.
use AdvisoryTest;
use Psql;
use Readme;

# What is otherwise here: how it is installed, a view that is absent, the names in views, and
# leases.
my $INSTALLED = qr/^CREATE EXTENSION|advisory[.]pressure_by_backend/;
my $ABSENT    = qr/_lease\b/;

my $page = readme();
my @steps = grep {
    $_->{chapter} =~ /^(?:Getting started|Everyday patterns)$/ && $_->{sql} !~ $INSTALLED
} $page->steps;
cmp_ok(scalar @steps, '>=', 10, 'the chapters are there');

my $server = own_server();
$page->run($server, role => 'app', pid => 4711, steps => \@steps, portable => 1);

my @to_database = (server => $server, database => 'documents');
my $psql = Psql->new(@to_database, role => 'app');
table_works($psql, $ABSENT);
$psql->run('DISCARD ALL;');
my $look = session(@to_database);
queue_works($page, $psql, $look);

# "Who holds it?" while a session waits, for a lock whose name has no label.
my ($who) = map { $_->{sql} } grep { $_->{sql} =~ /advisory[.]blockers/ } @steps;
my ($holder, $waiter) = map { session(@to_database) } 1, 2;
$holder->run(q{SELECT advisory.lock('export', 7)});
$waiter->start(q{SELECT advisory.lock('export', 7)});
waits($look, $waiter);
my ($said, $pid) = ($psql->run($who), $holder->pid);
unlike($said, qr/ERROR/, 'the views can be read while a session waits for a lock without a label');
like($said, qr/\bSELECT advisory\.terminate_holder_key\(-?\d+, $pid\)/,
    '... and name the statement that ends its holder');
$holder->run(q{SELECT advisory.unlock('export', 7)});
$waiter->finish;
done_testing();
