#!/usr/bin/env perl
# advisory.activity: its order, and that psql prints it in 120 columns. It takes sessions that wait for each other, and a server
# on which nobody else holds locks.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

my $server = own_server();
sub there { return session(server => $server, @_) }
my $look = there(application => 'look');

$look->run('CREATE EXTENSION advisory_ext', 'CREATE ROLE app LOGIN');
my @rest = there(application => 'rest');
$rest[0]->value("SELECT advisory.lock('q', 'older')");
$rest[0]->value("SELECT advisory.lock('q', 'younger')");
my $invoice = there(role => 'app', application => 'worker-1');
$invoice->run('BEGIN', "SELECT advisory.xact_lock('billing', 'invoice:42')");
my $second = there(application => 'second');
$second->value("SELECT advisory.lock('q', 'second')");
my ($w1, $w2, $w3) = map { there(role => 'app', application => "worker-$_") } 2 .. 4;
$w1->start("SELECT advisory.lock('q', 'second')");
waits($look, $w1);
$w2->start("SELECT advisory.lock('billing', 'invoice:42')");
waits($look, $w2);
$w3->start("SELECT advisory.lock('billing', 'invoice:42')");
waits($look, $w3);
is_deeply($look->rows(q(SELECT lock, slot, mode, pid, who, state, waiting >= '0', held >= '0', blocked_by FROM advisory.activity)), [
    [ 'q/second',           undef, 'exclusive', $w1->pid,      'app@worker-2',    'active',       1,     undef, [ $second->pid ] ],
    [ 'billing/invoice:42', undef, 'exclusive', $w2->pid,      'app@worker-3',    'active',       1,     undef, [ $invoice->pid ] ],
    [ 'billing/invoice:42', undef, 'exclusive', $w3->pid,      'app@worker-4',    'active',       1,     undef, [ $invoice->pid, $w2->pid ] ],
    [ 'q/second',           undef, 'exclusive', $second->pid,  'postgres@second', 'idle',         undef, 1,     undef ],
    [ 'billing/invoice:42', undef, 'exclusive', $invoice->pid, 'app@worker-1',    'idle in xact', undef, 1,     undef ],
    [ 'q/older',            undef, 'exclusive', $rest[0]->pid, 'postgres@rest',   'idle',         undef, 1,     undef ],
    [ 'q/younger',          undef, 'exclusive', $rest[0]->pid, 'postgres@rest',   'idle',         undef, 1,     undef ],
], 'activity: the longest waiters first, then their blockers in the same order, then the rest, oldest first');

my $table = do {
    local $ENV{PGCLIENTENCODING} = 'UTF8';
    my @command = ("$ENV{PG_BINDIR}/psql", '-X', '-h', $server->{PGHOST}, '-p', $server->{PGPORT}, '-U', $server->{PGUSER},
        '-d', 'postgres', '-c', 'SELECT * FROM advisory.activity');
    open my $psql, '-|:encoding(UTF-8)', @command or die "psql: $!\n";
    local $/ = undef;
    scalar <$psql>;
};
like($table, qr{billing/invoice:42 .* app\@worker-1 .* idle in xact}, 'psql prints it');
cmp_ok((sort { $b <=> $a } map { length } split /\n/, $table)[0], '<=', 120, 'in 120 columns') or diag $table;
$invoice->run('ROLLBACK');
$second->run('SELECT pg_advisory_unlock_all()');
$w1->finish;
$w2->finish;
$w2->run('SELECT pg_advisory_unlock_all()');
$w3->finish;
leave($look, @rest, $invoice, $second, $w1, $w2, $w3);
done_testing();
