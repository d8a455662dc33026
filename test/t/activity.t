#!/usr/bin/env perl
# advisory.activity: its order, that psql prints it in 120 columns, a session with many locks, and
# that nothing in it can pass for something else. It takes sessions that wait for each other, and a
# server on which nobody else holds locks.
use utf8;
use AdvisoryTest;
use Screen;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);
my $server = own_server('max_locks_per_transaction=1000', 'max_prepared_transactions=2',
    'max_connections=150');
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
waits($look, $w1, "SELECT advisory.lock('q', 'second')");
waits($look, $w2, "SELECT advisory.lock('billing', 'invoice:42')");
waits($look, $w3, "SELECT advisory.lock('billing', 'invoice:42')");
is_deeply($look->rows(q(SELECT lock, slot, mode, pid, who, state, waiting >= '0', held >= '0',
        blocked_by FROM advisory.activity)), [
    [ 'q/second', undef, 'exclusive', $w1->pid, 'app@worker-2', 'active', 1, undef, $second->pid ],
    [ 'billing/invoice:42', undef, 'exclusive', $w2->pid,      'app@worker-3',    'active',       1,
        undef, $invoice->pid ],
    [ 'billing/invoice:42', undef, 'exclusive', $w3->pid,      'app@worker-4',    'active',       1,
        undef, $invoice->pid ],
    [ 'q/second', undef, 'exclusive', $second->pid, 'postgres@second', 'idle', undef, 1, undef ],
    [ 'billing/invoice:42', undef, 'exclusive', $invoice->pid, 'app@worker-1',    'idle in xact',
        undef, 1,     undef ],
    [ 'q/older', undef, 'exclusive', $rest[0]->pid, 'postgres@rest', 'idle', undef, 1, undef ],
    [ 'q/younger', undef, 'exclusive', $rest[0]->pid, 'postgres@rest', 'idle', undef, 1, undef ],
], 'activity: the longest waiters first, then their blockers in the same order, then the rest, '
. 'oldest first');

my $table = screen('SELECT * FROM advisory.activity;', server => $server, database => 'postgres');
like($table, qr{billing/invoice:42 .* app\@worker-1 .* idle in xact}, 'psql prints it');
cmp_ok(columns($table), '<=', 120, 'in 120 columns') or diag $table;
$invoice->run('ROLLBACK');
$second->run('SELECT pg_advisory_unlock_all()');
$w1->finish;
$w2->finish;
$w2->run('SELECT pg_advisory_unlock_all()');
$w3->finish;
leave($look, @rest, $invoice, $second, $w1, $w2, $w3);

# ---- A session with many locks -------------------------------------------------------------------

{
    my $ACTIVITY = 'SELECT lock, slot, mode, pid, who, state, waiting, held IS NOT NULL, blocked_by
        FROM advisory.activity';
    my ($few, $many, $waiter) = map { there(application => $_) } qw(few many waiter);
    $few->run("SELECT advisory.lock('few', i) FROM generate_series(1, 20) AS i");
    $many->run("SELECT advisory.lock('many', i) FROM generate_series(1, 11500) AS i",
        "SELECT advisory.acquire('many', 'slots', 3)");
    my @few = map { [ "few/$_", undef, 'exclusive', $few->pid, 'postgres@few', 'idle', undef, 1,
            undef ] } 1 .. 20;
    my @of_many = ($many->pid, 'postgres@many', 'idle', undef, 1, undef);
    is_deeply([ sort { $a->[0] cmp $b->[0] } @{ $look->rows($ACTIVITY) } ],
        [ sort { $a->[0] cmp $b->[0] } [ '(11501 locks)', undef, undef, @of_many ], @few ],
        'more than 20 locks of a session that nobody waits for are one row');
    waits($look, $waiter, "SELECT advisory.lock('many', '77')");
    my $rows = $look->rows($ACTIVITY);
    is_deeply([ map { $_->[0] } @$rows[0, 1] ], [ 'many/77', 'many/77' ],
        'the one that somebody waits for has its row');
    is_deeply([ grep { $_->[0] =~ /locks/ } @$rows ],
        [ [ '(11500 locks)', undef, undef, @of_many ] ], 'beside the count of the others');
    $many->run('SELECT pg_advisory_unlock_all()');
    $waiter->finish;
    $waiter->run('BEGIN', "SELECT advisory.xact_lock('prepared', i)
        FROM generate_series(1, 21) AS i", "PREPARE TRANSACTION 'many'");
    $look->shows("SELECT lock, pid, who FROM advisory.activity WHERE pid IS NULL",
        '(21 locks)|NULL|postgres (prepared many)', "so are a prepared transaction's");
    $waiter->run("ROLLBACK PREPARED 'many'");
}

# ---- Another database, and what could pass for something else ------------------------------------

{
    $look->run('CREATE DATABASE other', 'CREATE DATABASE doomed');
    my $other = there(database => 'other',
        application => 'x')->run('CREATE EXTENSION advisory_ext');
    $other->run("SELECT advisory.lock('billing', 'invoice:42')", 'SELECT pg_advisory_lock(99999)');
    $look->shows('SELECT lock FROM advisory.activity ORDER BY lock', [ 'other: 99999',
            'other: billing/invoice:42' ], 'a lock of another database bears its name');
    $other->shows('SELECT lock FROM advisory.activity ORDER BY lock',
        [ 99999, 'billing/invoice:42' ], 'there it does not');
    leave($look, $other);

    my $odd = there(application => 'odd');
    my $line = sub ($take) {
        my $r = $odd->query("SELECT $take");
        my $l = $look->value('SELECT lock FROM advisory.activity');
        $odd->run('SELECT pg_advisory_unlock_all()');
        return $l
    };
    is($line->("advisory.lock_key(7, label => 'billing/invoice:42')"), '"billing/invoice:42"',
        'a label does not look like a name');
    is($line->(q{advisory.lock_key(8, label => 'a "b"')}),              '"a ""b"""',
        'nor does one with quotes');
    is($line->("advisory.lock('<insufficient privilege>', 'x')"), '<insufficient privilege>/x',
        'a namespace that looks like what is hidden is not');
    like($line->("advisory.lock('<insufficient privilege>', '<insufficient privilege>')"),
        qr/^<insufficient pri\w*\x{2026}\w*ent privilege>$/, 'nor with such a name');
    is($line->("advisory.lock_key(9, label => '<insufficient privilege>')"),
        '"<insufficient privilege>"', 'nor such a label');
    for my $case ([ 'a line feed', 'a\nb', 'a?b' ], [ 'an escape', '\x1b[31m', '?[31m' ],
        [ 'a C1 control', '\u009b31m', '?31m' ], [ 'a next line', 'a\u0085b', 'a?b' ],
        [ 'a line separator', 'a\u2028b', 'a?b' ], [ 'a paragraph separator', 'a\u2029b', 'a?b' ],
        [ 'an override', '\u202Ea', '?a' ], [ 'an isolate', '\u2067a\u2069', '?a?' ],
        [ 'DEL', '\x7f', '?' ], [ 'letters', 'na\u00EFve \u2603', "na\x{EF}ve \x{2603}" ])
    {
        my ($what, $name, $shown) = @$case;
        is($line->("advisory.lock('q', E'$name')"), "q/$shown", "a name with $what");
        is($line->("advisory.lock(E'$name', 'q')"), "$shown/q", "a namespace with $what");
        is($line->("advisory.lock_key(10, label => E'$name')"), qq("$shown"), "a label with $what");
    }
    $odd->run(qq(CREATE ROLE "a\x{2029}b" LOGIN SUPERUSER), 'BEGIN',
        "SELECT advisory.xact_lock('q', 'prepared')", q(PREPARE TRANSACTION E'g\nid\u2028x'));
    $look->shows('SELECT who FROM advisory.activity', 'postgres (prepared g?id?x)',
        'a prepared transaction with such an identifier');
    $odd->run(q(ROLLBACK PREPARED E'g\nid\u2028x'));
    my $role = there(role => "a\x{2029}b",
        application => '')->run("SELECT advisory.lock('q', 'role')");
    $look->shows('SELECT who FROM advisory.activity', 'a?b', 'a role with such a name');
    $odd->start(q(SELECT advisory.lock(E'w\u2028', E'x\u009by')));
    $odd->finish;
    my $blocked = there(application => 'blocked');
    waits($look, $blocked, q(SELECT advisory.lock(E'w\u2028', E'x\u009by')));
    is_deeply([ map { $_->[0] =~ /(?:holds|waits for) (\S+)/ } @{ $look->rows('SELECT *
            FROM advisory.wait_tree()') } ], [ ('w?/x?y') x 2 ], 'wait_tree() likewise');
    $odd->run('SELECT pg_advisory_unlock_all()');
    $blocked->finish;
}

# ---- A label that is too long for a line, in several rows ----------------------------------------

{
    my $label = 'the nightly import of ' . 'n' x 40;
    $look->run("INSERT INTO advisory.key_labels (key, label) VALUES (424242424242, '$label')");
    my ($holder, @waiters) = map { there(application => "labelled $_") } 1 .. 6;
    $holder->run('SELECT pg_advisory_lock(424242424242)');
    waits($look, $_, 'SELECT pg_advisory_lock(424242424242)') for @waiters;
    my $shown = '"' . substr($label, 0, 21) . '..."';
    is_deeply([ $look->column('SELECT lock FROM advisory.activity') ], [ ($shown) x 6 ],
        'activity has the same text in each row');
    is_deeply([ map { $_->[0] =~ /(?:holds|waits for) ("[^"]*")/ } @{ $look->rows('SELECT *
            FROM advisory.wait_tree()') } ], [ ($shown) x 6 ], 'and so has wait_tree()');
    leave($look, @waiters, $holder);
    $look->run('DELETE FROM advisory.key_labels WHERE key = 424242424242');
}

# ---- Many waiters, many holders, many leases -----------------------------------------------------

{
    my $LINES = q(SELECT lock, slot, mode, pid IS NOT NULL, who, waiting >= '0', blocked_by
        FROM advisory.activity);
    my $holder = there(application => 'holder')
        ->run("SELECT advisory.lock('q', 'awaited'), advisory.lock('q', 'other')");
    my @waiters = map { there(application => sprintf 'w%02d', $_) } 1 .. 24;
    my $other = there(application => 'w-other');
    for my $i (0 .. $#waiters) {
        $waiters[$i]->start("SELECT advisory.lock('q', 'awaited')");
        waits($look, $waiters[$i]);
        next if $i != 4;
        waits($look, $other, "SELECT advisory.lock('q', 'other')");
    }
    my $h = $holder->pid;
    my $one = sub { [ "q/$_[1]", undef, 'exclusive', 1, "postgres\@$_[0]", 1, $h ] };
    is_deeply($look->rows("$LINES LIMIT 14"), [
        (map { $one->($_, 'awaited') } qw(w01 w02 w03 w04 w05)), $one->('w-other', 'other'),
        (map { $one->($_, 'awaited') } qw(w06 w07 w08 w09 w10)),
        [ '(14 more)', undef, undef, 0, undef, 1, $h ],
        [ 'q/awaited', undef, 'exclusive', 1, 'postgres@holder', undef, undef ],
        [ 'q/other', undef, 'exclusive', 1, 'postgres@holder', undef, undef ],
    ], 'ten waiters of a lock, the longest first; behind the tenth a row for the others; the '
    . 'blocker is the holder, and nobody ahead in the queue');
    $look->shows(q(SELECT count(*) FROM advisory.activity a JOIN advisory.locks l ON l.pid = ?
        AND NOT l.granted WHERE a.lock = '(14 more)' AND abs(extract(epoch FROM l.waited -
        a.waiting)) < 3), 1, '... with the longest wait of these', $waiters[10]->pid);
    leave($look, reverse(@waiters), $other, $holder);
}

{
    my @holders = map { there(application => "h$_")->run("SELECT advisory.lock_shared('q',
            'shared')", "SELECT advisory.acquire('q', 'slots', 5)") } 1 .. 5;
    my ($exclusive, $head) = map { there(application => $_) } qw(exclusive head);
    waits($look, $exclusive, "SELECT advisory.lock('q', 'shared')");
    $head->start("SELECT advisory.acquire('q', 'slots', 5)");
    $look->wait_until('it waits', q(SELECT count(*) FROM advisory.locks
        WHERE pid = ? AND wait_start IS NOT NULL), $head->pid);
    my $three = join(',', (sort { $a <=> $b } map { $_->pid } @holders)[ 0 .. 2 ]) . ' +2';
    $look->shows('SELECT lock, who, blocked_by FROM advisory.activity
            WHERE waiting IS NOT NULL',
            [ "q/shared|postgres\@exclusive|$three", "q/slots|postgres\@head|$three" ],
            'blocked_by names three holders, and counts the others');
    $look->shows(q(SELECT count(*) FROM (SELECT lock FROM advisory.activity OFFSET 2 LIMIT 10) AS a
        WHERE lock ~ '^q/s'), 10, 'the holders of slots follow their waiters, too');
    $look->shows(q(SELECT bool_and(lock = 'q/shared') FROM (SELECT lock
        FROM advisory.activity OFFSET 2 LIMIT 5) AS a), 1, '... those of the longer wait first');
    my $sharer = there(application => 'sharer');
    waits($look, $sharer, "SELECT advisory.lock_shared('q', 'shared')");
    $look->shows('SELECT who, blocked_by FROM advisory.activity WHERE pid = ?',
        "postgres\@sharer|$three",
        'a sharer that is only behind another waiter waits for the same holders', $sharer->pid);
}

{
    my $lessee = there(application => 'lessee')->run(q(SELECT advisory.lease('l', 'of the ' || i,
        '1 hour', owner => 'o') FROM generate_series(1, 40) AS i));
    my $waiter = there(application => 'waiter');
    $waiter->start(q(SELECT advisory.lease('l', 'of the 33', '1 hour')));
    $look->wait_until('it waits', q(SELECT count(*) FROM advisory.locks
        WHERE pid = ? AND wait_start IS NOT NULL), $waiter->pid);
    $look->shows(q(SELECT lock, mode, who, state, held IS NOT NULL, blocked_by
        FROM advisory.activity WHERE lock IN ('lease l/of the 33', '(20 leases)')),
        [ 'lease l/of the 33|lease|postgres@waiter|active|0|NULL',
            'lease l/of the 33|lease|o|held|1|NULL', '(20 leases)|lease|NULL|NULL|1|NULL' ],
        'the lease that somebody waits for is one of twenty');
    $look->shows('SELECT count(*) FROM advisory.activity', 22, '... and one row counts the others');
    my $app = there(role => 'app');
    $app->shows(q{SELECT lock FROM advisory.activity WHERE lock LIKE '(%'}, '(20 leases)',
        '... each once, also for those who see none of their names');
    $app->run(q(SELECT advisory.lease('l', 'own', '1 hour', owner => 'o')));
    $app->shows(q{SELECT lock FROM advisory.activity WHERE lock = 'lease l/own' OR lock LIKE '(%'
        ORDER BY 1}, [ '(21 leases)', 'lease l/own' ], '... whose own lease comes first');
    $look->run(q(SELECT advisory.break_lease('l', 'own')));
    leave($look, $app);
    $look->run('SELECT pg_cancel_backend(' . $waiter->pid . ')');
    $waiter->finish;

    # A waiter that looks whether the lease is free, here held up by the lock on the table, does not
    # hold the lease.
    $lessee->run('BEGIN', 'LOCK TABLE advisory._leases');
    $waiter->start(q(SELECT advisory.lease('l', 'of the 33', '1 hour')));
    $look->wait_until('it looks', 'SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted',
        $waiter->pid);
    $look->shows('SELECT name, granted FROM advisory.locks WHERE pid = ?', 'of the 33|0',
        'a look at a lease is not shown as its holder', $waiter->pid);
    $lessee->run('ROLLBACK');
    leave($look, $waiter, $lessee);
    $look->run(q(SELECT advisory.break_lease('l', 'of the ' || i)
        FROM generate_series(1, 40) AS i));
}

# A lease is not a lock, whatever they are called. One that has expired is shown as long as a
# transaction relies on it, which may be that of a frozen client.
{
    my ($owner, $waiter, $liar) = map { there(application => $_) } qw(owner waiter liar);
    $liar->run(q(SELECT advisory.lock('lease l', 'a')), q(SELECT advisory.lock('l', 'a')));
    my ($token) = @{ $owner->rows(q(SELECT token
        FROM advisory.lease('l', 'a', '0.3s', owner => 'o')))->[0] };
    my ($late) = @{ $owner->rows(q(SELECT token
        FROM advisory.lease('l', 'late', '0.3s', owner => 'o')))->[0] };
    $owner->run('BEGIN', "SELECT advisory.check_lease('l', 'a', $token)");
    $look->wait_until('they have expired',
        q(SELECT count(*) = 2 FROM advisory.leases WHERE state = 'expired'));
    my $SHOWN = 'SELECT lock, mode, pid, who, state, held IS NOT NULL FROM advisory.activity
        ORDER BY lock, who COLLATE "C"';
    my @locks = map { [ $_, 'exclusive', $liar->pid, 'postgres@liar', 'idle', 1 ] }
        'l/a', 'lease l/a';
    is_deeply($look->rows($SHOWN),
        [ $locks[0], [ 'lease l/a', 'lease', undef, 'o', 'expired', 1 ], $locks[1],
            [ 'lease l/a', 'lease', $owner->pid, 'postgres@owner', 'idle in xact', 0 ] ],
        'an expired lease, and the session that relies on it');
    waits($look, $waiter, q(SELECT advisory.lease('l', 'a', '1h')));
    $look->shows(q(SELECT lock, mode, state, blocked_by FROM advisory.activity
        WHERE waiting IS NOT NULL), 'lease l/a|lease|active|' . $owner->pid,
        '... which is in the way of those who want it');
    my $nobody = there(role => 'app');
    $nobody->shows(q(SELECT DISTINCT lock, mode FROM advisory.activity WHERE mode = 'lease'),
        'lease ' . $look->value(q(SELECT advisory.key('l', 'a'))) . '|lease',
        'whoever may not see its name sees that it is a lease');
    # The page shows how the server ends the transaction of such a client.
    $owner->run('ROLLBACK', q(SET idle_in_transaction_session_timeout = '200ms'), 'BEGIN');
    is($waiter->finish->{state}, undef, 'the end of the transaction frees it');
    $owner->run("SELECT advisory.check_lease('l', 'late', $late)");
    my $next = there()->start(q(SELECT advisory.lease('l', 'late', '1h', '20s')));
    is($next->finish->{state}, undef,
        'idle_in_transaction_session_timeout ends a transaction that relies on a lease');
    $look->run(map { "SELECT advisory.break_lease('l', '$_')" } 'a', 'late');
    leave($look, $owner, $waiter, $liar, $nobody, $next);
}

# ---- Names of every width ------------------------------------------------------------------------

# What is shown of a lock of this name: all of it if there is room, else both its ends.
{
    my $long = "\x{540D}\x{524D}" x 10;
    $look->run(qq(CREATE ROLE "$long" LOGIN),
        q(CREATE DATABASE "the other database, whose name is long" TEMPLATE template0));
    my $far = there(database => 'the other database, whose name is long')
        ->run('CREATE EXTENSION advisory_ext');
    my $wide = there(role => $long, application => 'the application of a long name, ' . 'x' x 30);
    my @holders = map { there(role => $long, application => 'y' x 63) } 1 .. 12;
    my @kept;
    for my $name (q('x', repeat('x', 200)), q('x', 'short'), q(repeat('☃', 60), repeat('名前', 40)),
        q('é', repeat('naïve', 40)), q(repeat('ｘ', 30), 'e' || repeat(U&'\0301', 40))) {
        $_->run("SELECT advisory.lock_shared($name)") for @holders;
        my $waiter = there(role => $long, application => 'z' x 63);
        waits($look, $waiter, "SELECT advisory.lock($name)");
        push @kept, $waiter;
        my $text = screen('SELECT * FROM advisory.activity;', server => $server,
            database => 'postgres');
        cmp_ok(columns($text), '<=', 120, "lines with $name fit into 120 columns") or diag $text;
        cmp_ok(columns($text), '>=', 116, '... and fill them') or diag $text;
    }
    like($look->value(q(SELECT lock FROM advisory.activity WHERE mode = 'exclusive' AND lock ~
            '^x/x')), qr/^x\/x+\x{2026}x+$/, 'what is cut is cut in its middle, and marked');
    $look->shows(q(SELECT count(*) FROM advisory.activity WHERE lock = 'x/short'), 13,
        '... and what is short is not cut');
    $far->run("SELECT advisory.lock('billing', 'invoice:42')");
    my $gid = 'a prepared transaction that has got a very long global identifier, which nobody '
        . 'can remember';
    $look->run('BEGIN', q(SELECT advisory.xact_lock('q', 'p')), "PREPARE TRANSACTION '$gid'");
    my $text = screen('SELECT * FROM advisory.activity;', server => $server,
        database => 'postgres');
    cmp_ok(columns($text), '<=', 120, 'likewise with names of databases and prepared transactions')
        or diag $text;
    $look->run("ROLLBACK PREPARED '$gid'");
}

for my $encoding (qw(LATIN1 EUC_JP SQL_ASCII)) {
    $look->run(qq(CREATE DATABASE "in_$encoding" ENCODING $encoding
        LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0));
    my $there = there(database => "in_$encoding", application => 'z' x 63)
        ->run('CREATE EXTENSION advisory_ext', q(SET client_encoding = 'UTF8'));
    $there->run(q(SELECT advisory.lock('q', repeat('x', 200))),
        $encoding eq 'EUC_JP' ? q(SELECT advisory.lock('q', repeat('名前', 40))) : 'SELECT 1');
    my $text = screen('SELECT * FROM advisory.activity;', server => $server,
        database => "in_$encoding");
    cmp_ok(columns($text), '<=', 120, "likewise in a database in $encoding") or diag $text;
    like($text, qr/^ q\/x+\.\.\.x+ /m, '... which marks with what it has');
}
{
    my $there = there(application => 'z' x 63)->run(q(SELECT advisory.lock('q', repeat('x', 200))));
    $look->run(q(SET client_encoding = 'LATIN1'));
    like($look->value('SELECT lock FROM advisory.activity'), qr/^q\/x+\.\.\.x+$/,
        '... as for a client that has no ellipsis');
    $look->run('RESET client_encoding');
}
done_testing();
