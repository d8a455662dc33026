#!/usr/bin/env perl
# The programs of README.md, as they stand there: Node with pg, Python with psycopg 3. Each takes
# the lock, does its work, and releases the lock; while another session has it, it fails as its
# comment says.
use AdvisoryTest;
use FindBin;
use Launch;
use Page;
use Programs;

my $readme = Page->new("$FindBin::Bin/../../README.md");
my %shown;
push @{ $shown{ $_->{language} } }, $_->{text} for $readme->others;

create_database();
my ($look, $holder) = (session(), session(application => 'holder'));
$look->run('CREATE TABLE invoice (id bigint, paid boolean)', 'INSERT INTO invoice VALUES (42)');

# The program alone, and while another session has the lock.
sub try_it ($what, $run) {
    $look->run('UPDATE invoice SET paid = NULL');
    my ($said, $status) = $run->()->finish;
    is($status, 0, "$what: it works") or diag($said);
    $look->shows('SELECT paid FROM invoice', 1, "$what: the work is committed");
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0,
        "$what: the lock is free");
    $look->run('UPDATE invoice SET paid = NULL');
    $holder->run(q(SELECT advisory.lock('billing', 'invoice:42')));
    ($said, $status) = $run->()->finish;
    $holder->run(q(SELECT advisory.unlock('billing', 'invoice:42')));
    is($look->value('SELECT paid FROM invoice'), undef,
        "$what: nothing is done while another session has the lock");
    return ($said, $status);
}

SKIP: {
    skip 'there is no Node with node-postgres here', 1 unless node_modules();
    is(scalar @{ $shown{js} }, 1, 'README.md has one program for Node');
    my $program = spew(scratch() . '/program.js', <<"JS");
const { Pool } = require('pg');
const pool = new Pool();
async function main() {
$shown{js}[0]
}
main()
    .catch((error) => { console.log(error.code, error.detail); process.exitCode = 1; })
    .finally(() => pool.end());
JS
    my ($said, $status) = try_it('Node', sub { launch_node($program) });
    isnt($status, 0, 'Node: then it fails');
    like($said, qr/^55P03 Process \d+ of role .*, application "holder", holds it/,
        '... with the code and detail that the comment names');
}

SKIP: {
    my $python = python('psycopg') or skip 'there is no Python with psycopg 3 here', 1;
    is(scalar @{ $shown{python} }, 1, 'README.md has one program for Python');
    my $program = spew(scratch() . '/program.py', "import psycopg\n$shown{python}[0]");
    my ($said, $status) = try_it('Python', sub { launch($python, $program) });
    is($status, 0, 'Python: then it says so') or diag($said);
    like($said,
        qr/^somebody else works on it: Process \d+ of role .*, application "holder", holds it/,
        '... and who has it');
}
done_testing();
