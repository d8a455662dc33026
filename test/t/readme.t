#!/usr/bin/env perl
# README.md: the statements of its table "instead of this, write that" work as they stand, and its work queue works off jobs.
# (test/t/documents.t runs its blocks from top to bottom.)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Page;
use Psql;
use Test::More;

# Objects that the reader must have.
my $OWN = <<'SQL';
CREATE PROCEDURE run_invoices() LANGUAGE SQL AS 'SELECT 1';
SQL

my $file = "$FindBin::Bin/../../README.md";
my $page = Page->new($file);
create_database();
my $look = session();
my $psql = Psql->new;
$psql->run($OWN);

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
my ($table, $work) = $queue->{sql} =~ /\A(CREATE TABLE.*?;\n)(.*)\z/s;
$psql->run($table . 'INSERT INTO job VALUES (1), (2);');
$psql->run($work) for 1, 2;
is($look->value('SELECT count(*) FROM job WHERE done IS NOT NULL'), 2, 'the queue is worked off');
like($psql->run($work), qr/\A\s*\z/, 'and then there is nothing to do');
is($look->value(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?}, $psql->pid), 0, 'nothing is left locked');
done_testing();
