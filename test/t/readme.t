#!/usr/bin/env perl
# README.md as a reader types it: its blocks of SQL from top to bottom, in the psql sessions that
# its text names, by the owner of a database who is no superuser. Nothing that the reader does not
# see is run. Then the statements of its table "instead of this, write that", and its work queue
# with jobs in it.
use AdvisoryTest;
use Psql;
use Readme;

my $page = readme();
is_deeply([ map { $_->{do} // () } $page->steps ], [], 'no statement is hidden in a comment');
cmp_ok(scalar(grep { $_->{in} eq '2' } $page->steps), '>', 0, 'the page names two sessions');
cmp_ok(scalar(grep { ($_->{sql} // '') =~ /^CREATE EXTENSION/ } $page->steps), '==', 1,
    'and says when to create the extension');

my $server = own_server('deadlock_timeout=200ms');
$page->run($server, role => 'app', pid => 4711);

# What the page has created is still there, all but the extension.
my @to_database = (server => $server, database => 'documents');
my $psql = Psql->new(@to_database, role => 'app');
is($psql->run('CREATE EXTENSION advisory_ext;'), '', 'the extension can be created again');
table_works($psql);
is($psql->run(
    q(SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid() AND namespace IS NULL;)),
    "0\n", 'every lock shows its name');
$psql->run('DISCARD ALL;');
queue_works($page, $psql, session(@to_database));
done_testing();
