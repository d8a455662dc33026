#!/usr/bin/env perl
# README.md's chapters "Getting started" and "Everyday patterns" with the portable edition, as a reader types them who owns the database and
# nothing else, and its table "instead of this, write that". doc/portable.md says how they differ.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib";
use AdvisoryTest;
use Psql;
use Readme;
use Test::More;

# What is otherwise here: how it is installed, the end of a HINT, the names in views, and leases.
my $INSTALLED = qr/^CREATE EXTENSION/;
my $HINT      = qr/ To end that session: .*/;
my $ABSENT    = qr/_lease\b/;

my $page = readme();
my @steps = grep { $_->{chapter} =~ /^(?:Getting started|Everyday patterns)$/ && $_->{sql} !~ $INSTALLED } $page->steps;
cmp_ok(scalar @steps, '>', 10, 'the chapters are there');
for my $step (@steps) { $step->{shown} =~ s/$HINT// if defined $step->{shown} }

my $server = own_server();
$page->run($server, role => 'app', pid => 4711, steps => \@steps, portable => 1);

my @to_database = (server => $server, database => 'documents');
my $psql = Psql->new(@to_database, role => 'app');
table_works($psql, $ABSENT);
$psql->run('DISCARD ALL;');
queue_works($page, $psql, session(@to_database));
done_testing();
