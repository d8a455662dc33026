#!/usr/bin/env perl
# README.md: the test runs its SQL in one psql, from top to bottom, as a new user does. No statement fails, psql prints no
# warning, and no lock is left behind.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib", "$FindBin::Bin/lib";
use AdvisoryTest;
use Psql;
use Test::More;

# Objects that the reader must have.
my $OWN = <<'SQL';
CREATE PROCEDURE run_invoices() LANGUAGE SQL AS 'SELECT 1';
SQL

my $file = "$FindBin::Bin/../../README.md";
open my $in, '<', $file or die "cannot read $file: $!\n";
my (@blocks, $block);
while (my $line = <$in>) {
    if ($line =~ /^```sql$/) { push @blocks, $block = { sql => '', line => $. } }
    elsif ($line =~ /^```/) { undef $block }
    elsif ($block) { $block->{sql} .= $line }
}
close $in;

my $database = create_database(extension => 0);
my $look = session();
my $psql = Psql->new;
$psql->run($OWN);
for my $block (@blocks) {
    my $said = $psql->run($block->{sql});
    # There is no process 12345, and that is what it is told.
    unlike($said =~ s/^WARNING:  PID 12345.*\n//mr, qr/ERROR|WARNING|error:|warning:|invalid|unrecognized/, "line $block->{line}: as it says") or diag($said);
    is($look->value(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?}, $psql->pid), 0, "line $block->{line}: nothing is left locked");
}
cmp_ok(scalar @blocks, '>', 8, 'all of it was run');

# With work in the queue.
my ($queue) = grep { $_->{sql} =~ /try_lock_any/ } @blocks;
my $work = $queue->{sql} =~ s/^CREATE TABLE.*\n//mr;
$psql->run('INSERT INTO job VALUES (1), (2);');
$psql->run($work) for 1, 2;
is($look->value('SELECT count(*) FROM job WHERE done IS NOT NULL'), 2, 'the queue is worked off');
like($psql->run($work), qr/\A\s*\z/, 'and then there is nothing to do');
done_testing();
