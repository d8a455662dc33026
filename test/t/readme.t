#!/usr/bin/env perl
# README.md as a reader types it: its blocks of SQL from top to bottom, in the psql sessions that its text names, by the owner of a
# database who is no superuser. Nothing that the reader does not see is run. Then the statements of its table "instead of this, write
# that", and its work queue with jobs in it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Page;
use Psql;
use Test::More;

my $file = "$FindBin::Bin/../../README.md";
my $page = Page->new($file);
is_deeply([ map { $_->{do} // () } $page->steps ], [], 'no statement is hidden in a comment');
cmp_ok(scalar(grep { $_->{in} eq '2' } $page->steps), '>', 0, 'the page names two sessions');
cmp_ok(scalar(grep { ($_->{sql} // '') =~ /^CREATE EXTENSION/ } $page->steps), '==', 1, 'and says when to create the extension');

my $server = own_server('deadlock_timeout=200ms');
$page->run($server, role => 'app', pid => 4711);

# What the page has created is still there, all but the extension.
my @to_database = (server => $server, database => 'documents');
my $psql = Psql->new(@to_database, role => 'app');
is($psql->run('CREATE EXTENSION advisory_ext;'), '', 'the extension can be created again');
my $look = session(@to_database);

open my $in, '<', $file or die "cannot read $file: $!\n";
my @statements = map { /^\|.*\| `((?:SELECT|CALL) [^`]*)` \|$/ ? $1 : () } <$in>;
close $in;
for my $statement (@statements) {
    unlike($psql->run("$statement;"), qr/ERROR|WARNING|error:|warning:|NOTICE/, $statement);
}
cmp_ok(scalar @statements, '>', 8, 'all of the table was run');
is($psql->run(q(SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid() AND namespace IS NULL;)), "0\n", 'every lock shows its name');
$psql->run('DISCARD ALL;');

my ($queue) = grep { ($_->{sql} // '') =~ /try_lock_any/ } $page->steps;
my $work = $queue->{sql} =~ s/\ACREATE TABLE.*?;\n//sr;
$psql->run('INSERT INTO job VALUES (1), (2);');
$psql->run($work) for 1, 2;
is($look->value('SELECT count(*) FROM job WHERE done IS NOT NULL'), 2, 'the queue is worked off');
like($psql->run($work), qr/\A\s*\z/, 'and then there is nothing to do');
is($look->value(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?}, $psql->pid), 0, 'nothing is left locked');
done_testing();
