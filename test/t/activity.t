#!/usr/bin/env perl
# advisory.activity: its order, that psql prints it in 120 columns, a session with many locks, and that nothing in it can pass for
# something else. It takes sessions that wait for each other, and a server on which nobody else holds locks.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

my $server = own_server('max_locks_per_transaction=1000', 'max_prepared_transactions=2');
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

# ---- A session with many locks ------------------------------------------------------------------------------------------

{
    my $ACTIVITY = 'SELECT lock, slot, mode, pid, who, state, waiting, held IS NOT NULL, blocked_by FROM advisory.activity';
    my ($few, $many, $waiter) = map { there(application => $_) } qw(few many waiter);
    $few->run("SELECT advisory.lock('few', i) FROM generate_series(1, 20) AS i");
    $many->run("SELECT advisory.lock('many', i) FROM generate_series(1, 11500) AS i", "SELECT advisory.acquire('many', 'slots', 3)");
    my @few = map { [ "few/$_", undef, 'exclusive', $few->pid, 'postgres@few', 'idle', undef, 1, undef ] } 1 .. 20;
    my @of_many = ($many->pid, 'postgres@many', 'idle', undef, 1, undef);
    is_deeply([ sort { $a->[0] cmp $b->[0] } @{ $look->rows($ACTIVITY) } ], [ sort { $a->[0] cmp $b->[0] } [ '(11501 locks)', undef, undef, @of_many ], @few ],
        'more than 20 locks of a session that nobody waits for are one row');
    $waiter->start("SELECT advisory.lock('many', '77')");
    waits($look, $waiter);
    my $rows = $look->rows($ACTIVITY);
    is_deeply([ map { $_->[0] } @$rows[0, 1] ], [ 'many/77', 'many/77' ], 'the one that somebody waits for has its row');
    is_deeply([ grep { $_->[0] =~ /locks/ } @$rows ], [ [ '(11500 locks)', undef, undef, @of_many ] ], 'beside the count of the others');
    $many->run('SELECT pg_advisory_unlock_all()');
    $waiter->finish;
    $waiter->run('BEGIN', "SELECT advisory.xact_lock('prepared', i) FROM generate_series(1, 21) AS i", "PREPARE TRANSACTION 'many'");
    is_deeply($look->rows("SELECT lock, pid, who FROM advisory.activity WHERE pid IS NULL"), [ [ '(21 locks)', undef, 'postgres (prepared many)' ] ],
        "so are a prepared transaction's");
    $waiter->run("ROLLBACK PREPARED 'many'");
    leave($look, $few, $many, $waiter);
}

# ---- Another database, and what could pass for something else ---------------------------------------------------------------

{
    $look->run('CREATE DATABASE other', 'CREATE DATABASE doomed');
    my $other = there(database => 'other', application => 'x')->run('CREATE EXTENSION advisory_ext');
    $other->run("SELECT advisory.lock('billing', 'invoice:42')", 'SELECT pg_advisory_lock(99999)');
    is_deeply($look->rows('SELECT lock FROM advisory.activity ORDER BY lock'), [ ['other: 99999'], ['other: billing/invoice:42'] ], 'a lock of another database bears its name');
    is_deeply($other->rows('SELECT lock FROM advisory.activity ORDER BY lock'), [ ['99999'], ['billing/invoice:42'] ], 'there it does not');
    leave($look, $other);

    my $odd = there(application => 'odd');
    my $line = sub { my ($take) = @_; my $r = $odd->query("SELECT $take"); my $l = $look->value('SELECT lock FROM advisory.activity'); $odd->run('SELECT pg_advisory_unlock_all()'); return $l };
    is($line->("advisory.lock_key(7, label => 'billing/invoice:42')"), '"billing/invoice:42"', 'a label does not look like a name');
    is($line->(q{advisory.lock_key(8, label => 'a "b"')}),              '"a ""b"""',            'nor does one with quotes');
    is($line->("advisory.lock('<insufficient privilege>', 'x')"), '<insufficient privilege>/x', 'a namespace that looks like what is hidden is not');
    is($line->("advisory.lock('<insufficient privilege>', '<insufficient privilege>')"), '<insufficient privilege>/<insufficient privilege>', 'nor with such a name');
    is($line->("advisory.lock_key(9, label => '<insufficient privilege>')"), '"<insufficient privilege>"', 'nor such a label');
    for my $case ([ 'a line feed', 'a\nb', 'a?b' ], [ 'an escape', '\x1b[31m', '?[31m' ], [ 'a C1 control', '\u009b31m', '?31m' ], [ 'a next line', 'a\u0085b', 'a?b' ],
        [ 'a line separator', 'a\u2028b', 'a?b' ], [ 'a paragraph separator', 'a\u2029b', 'a?b' ], [ 'an override', '\u202Ea', '?a' ], [ 'an isolate', '\u2067a\u2069', '?a?' ],
        [ 'DEL', '\x7f', '?' ], [ 'letters', 'na\u00EFve \u2603', "na\x{EF}ve \x{2603}" ])
    {
        my ($what, $name, $shown) = @$case;
        is($line->("advisory.lock('q', E'$name')"), "q/$shown", "a name with $what");
        is($line->("advisory.lock(E'$name', 'q')"), "$shown/q", "a namespace with $what");
        is($line->("advisory.lock_key(10, label => E'$name')"), qq("$shown"), "a label with $what");
    }
    $odd->run(qq(CREATE ROLE "a\x{2029}b" LOGIN SUPERUSER), 'BEGIN', "SELECT advisory.xact_lock('q', 'prepared')", q(PREPARE TRANSACTION E'g\nid\u2028x'));
    is($look->value('SELECT who FROM advisory.activity'), 'postgres (prepared g?id?x)', 'a prepared transaction with such an identifier');
    $odd->run(q(ROLLBACK PREPARED E'g\nid\u2028x'));
    my $role = there(role => "a\x{2029}b", application => '')->run("SELECT advisory.lock('q', 'role')");
    is($look->value('SELECT who FROM advisory.activity'), 'a?b', 'a role with such a name');
    $odd->start(q(SELECT advisory.lock(E'w\u2028', E'x\u009by')));
    $odd->finish;
    my $blocked = there(application => 'blocked');
    $blocked->start(q(SELECT advisory.lock(E'w\u2028', E'x\u009by')));
    waits($look, $blocked);
    is_deeply([ map { $_->[0] =~ /(?:holds|waits for) (\S+)/ } @{ $look->rows('SELECT * FROM advisory.wait_tree()') } ], [ ('w?/x?y') x 2 ], 'wait_tree() likewise');
    $odd->run('SELECT pg_advisory_unlock_all()');
    $blocked->finish;
    leave($look, $odd, $role, $blocked);
}

# ---- A label that is too long for a line, in several rows ---------------------------------------------------------------

{
    my $label = 'the nightly import of ' . 'n' x 40;
    $look->run("INSERT INTO advisory.key_labels (key, label) VALUES (424242424242, '$label')");
    my ($holder, @waiters) = map { there(application => "labelled $_") } 1 .. 6;
    $holder->run('SELECT pg_advisory_lock(424242424242)');
    for my $waiter (@waiters) {
        $waiter->start('SELECT pg_advisory_lock(424242424242)');
        waits($look, $waiter);
    }
    my $shown = '"' . substr($label, 0, 21) . '..."';
    is_deeply([ map { $_->[0] } @{ $look->rows('SELECT lock FROM advisory.activity') } ], [ ($shown) x 6 ], 'activity has the same text in each row');
    is_deeply([ map { $_->[0] =~ /(?:holds|waits for) ("[^"]*")/ } @{ $look->rows('SELECT * FROM advisory.wait_tree()') } ], [ ($shown) x 6 ], 'and so has wait_tree()');
    leave($look, @waiters, $holder);
    $look->run('DELETE FROM advisory.key_labels WHERE key = 424242424242');
}
done_testing();
