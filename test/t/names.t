#!/usr/bin/env perl
# Locks are shown by name in other sessions: on a server where the extension's shared memory does
# not exist yet, after the session that made it has ended, after crashes and restarts, from
# databases in other encodings, and for dropped roles and databases.
use utf8;
use AdvisoryTest;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $server = own_server('restart_after_crash=on');

# Sessions that speak UTF-8, whatever the database is in.
sub there {
    my $session = session(server => $server, @_);
    return $session->run(q(SET client_encoding = 'UTF8'));
}

# The locks that a session holds or waits for, as another session sees them.
sub names_of ($observer, $session) {
    return $observer->rows(q(SELECT namespace, name FROM advisory.locks WHERE pid = ?
        ORDER BY name, key), $session->pid);
}

# ---- Straight after CREATE EXTENSION -------------------------------------------------------------

my $first = there(application => 'first')->run('CREATE EXTENSION advisory_ext');
my $look  = there(application => 'look');
$first->value("SELECT advisory.lock('names', 'a')");
is_deeply(names_of($look, $first), [ [ 'names', 'a' ] ],
    'the first lock on a server is shown by name in another session');
$look->shows('SELECT lock FROM advisory.activity', 'names/a', 'in activity too');
$look->shows('SELECT available, names, evicted, not_stored, collisions, reason
    FROM advisory.directory', '1|1|0|0|0|NULL', 'the name table has it');

leave($look, $first);
undef $first;
my $holder = there(application => 'holder');
$holder->value("SELECT advisory.lock('names', 'b')");
is_deeply(names_of($look, $holder), [ [ 'names', 'b' ] ],
    'so is one of a later session, after that one has gone');
is_deeply(names_of(there(), $holder), [ [ 'names', 'b' ] ],
    'to a session that has just begun, too');
$holder->run('SELECT pg_advisory_unlock_all()');

# ---- Taken by the built-ins ----------------------------------------------------------------------

$holder->run(q(SELECT pg_advisory_lock(advisory.key('names', 'a')),
    pg_advisory_lock(advisory.key('names', 'unseen'))));
$look->shows(q(SELECT namespace, name, scope, acquired_at, held,
    key = advisory.key('names', 'a') AS is_a FROM advisory.locks ORDER BY name),
    [ 'names|a|NULL|NULL|NULL|1', 'NULL|NULL|NULL|NULL|NULL|0' ], 'the built-in on a key that was '
    . 'seen shows its name, and nothing that is not known; one never seen has none');
is_deeply($look->rows('SELECT lock FROM advisory.activity ORDER BY lock COLLATE "C"'),
    [ [ $look->value(q(SELECT advisory.key('names', 'unseen')::text)) ], ['names/a'] ],
    'activity shows the key of the one never seen');
# Another session tries to lock it by name, which fails.
$look->shows("SELECT advisory.try_lock('names', 'unseen')", 0, 'a try_lock() by name fails');
is_deeply(names_of(there(), $holder), [ [ 'names', 'a' ], [ 'names', 'unseen' ] ],
    'but then the key has a name');
$holder->run('SELECT pg_advisory_unlock_all()');

# ---- Scope and times -----------------------------------------------------------------------------

my $from = $look->value('SELECT clock_timestamp()');
$holder->run('BEGIN', "SELECT advisory.xact_lock_shared('names', 'transaction')",
    "SELECT advisory.lock('names', 'session')", "SELECT advisory.lock_key(-7, label => 'a label')");
my $to = $look->value('SELECT clock_timestamp()');
$look->shows(q(SELECT namespace, name, key = -7, mode, scope, acquired_at BETWEEN ?
    AND ?, held BETWEEN '0' AND clock_timestamp() - ?::timestamptz,
                               waited, wait_start, blocked_by
                               FROM advisory.locks WHERE pid = ? ORDER BY name),
                               [ 'NULL|a label|1|exclusive|session|1|1|NULL|NULL|NULL',
                                   'names|session|0|exclusive|session|1|1|NULL|NULL|NULL',
                                   'names|transaction|0|shared|transaction|1|1|NULL|NULL|NULL' ],
                               'scope, and since when, in another session', $from, $to, $from,
                               $holder->pid);

my $waiter = there(application => 'waiter');
$from = $look->value('SELECT clock_timestamp()');
waits($look, $waiter, "SELECT advisory.xact_lock('names', 'session', '1h')");
$to = $look->value('SELECT clock_timestamp()');
is_deeply($look->rows(q(SELECT namespace, name, mode, scope, granted, wait_start BETWEEN ?
        AND ?, waited BETWEEN '0' AND clock_timestamp() - ?::timestamptz,
                               acquired_at, held, blocked_by FROM advisory.locks WHERE pid = ?),
                               $from, $to, $from, $waiter->pid),
    [ [ 'names', 'session', 'exclusive', undef, 0, 1, 1, undef, undef, [ $holder->pid ] ] ],
    'a waiter: since when, and for whom');
$look->shows('SELECT namespace, name, depth FROM advisory.waits',
    [ 'names|session|0', 'names|session|1' ], 'waits shows the name');
my $LOCK = 'names/session exclusive';
like(join("\n", $look->column('SELECT * FROM advisory.wait_tree()')),
    qr{\A\d+ postgres\@holder holds $LOCK, idle in transaction \d+ s
  \d+ postgres\@waiter waits for $LOCK \d+ s\z},
    'so does wait_tree()');
my $error = $look->query("SELECT advisory.lock('names', 'transaction', '10ms')");
like($error->{message}, qr{"names/transaction"}, 'and the error of a failed wait');
# A lock that is released and taken again has a new time.
$from = $look->value('SELECT clock_timestamp()');
$holder->run('COMMIT', "SELECT advisory.unlock('names', 'session')");
$waiter->finish;
$holder->run("SELECT advisory.lock('names', 'session')");
$look->shows(q(SELECT acquired_at >= ? FROM advisory.locks WHERE name = 'session'), 1,
    'taken anew, it counts from then', $from);
$holder->run('SELECT pg_advisory_unlock_all()');

# A lock that was released without the extension is not shown as held, and one taken without it has
# no times.
$holder->run("SELECT advisory.lock('names', 'a')",
    q(SELECT pg_advisory_unlock(advisory.key('names', 'a'))));
is_deeply(names_of($look, $holder), [], 'released by the built-in: not held');
$holder->run("SELECT advisory.lock('names', 'a')", 'DISCARD ALL', q(SET client_encoding = 'UTF8'));
$look->shows('SELECT * FROM advisory.activity', [], 'released by DISCARD ALL: not held');

# ---- New names are stored before the lock is asked for -------------------------------------------

{
    my $in_directory = sub { $look->value('SELECT names FROM advisory.directory') - shift };
    my $before       = $in_directory->(0);
    my $stats        = sub { $look->rows(q(SELECT name, acquired FROM advisory.stats
            WHERE namespace = 'new' ORDER BY name)) };
    $holder->run('BEGIN', "SELECT advisory.xact_lock_shared('new', 'a')", 'SAVEPOINT s',
        "SELECT advisory.xact_lock('new', 'b')");
    is($in_directory->($before), 2,
        'names of transaction-level locks are in the directory at once');
    is_deeply(names_of($look, $holder), [ [ 'new', 'a' ], [ 'new', 'b' ] ], 'and are shown');
    is_deeply($stats->(), [ [ 'a', 1 ], [ 'b', 1 ] ], 'in stats too');
    $look->run(q(SELECT pg_try_advisory_lock_shared(advisory.key('new', 'a'))));
    is_deeply(names_of($look, $look), [ [ 'new', 'a' ] ],
        'also for a session that took it by the built-in function');
    $look->shows(q(SELECT lock FROM advisory.activity WHERE pid = pg_backend_pid()), 'new/a',
        'in activity');
    $look->run('SELECT pg_advisory_unlock_all()');
    $look->shows("SELECT advisory.try_xact_lock('new', 'b')", 0,
        'somebody who asks for one unsuccessfully');
    is($in_directory->($before), 2, 'finds it there');
    $holder->run('ROLLBACK TO s');
    is_deeply($stats->(), [ [ 'a', 1 ], [ 'b', 1 ] ], 'what a savepoint gave back has counted');
    $holder->run("SELECT advisory.xact_lock('new', 'c')", 'COMMIT');
    is($in_directory->($before), 3, 'when they end, all are there');
    is_deeply($stats->(), [ [ 'a', 1 ], [ 'b', 1 ], [ 'c', 1 ] ], 'and have counted');
    $holder->run('BEGIN', "SELECT advisory.xact_lock('new', 'd')", 'SAVEPOINT s',
        "SELECT advisory.xact_lock('new', 'e')", 'ROLLBACK TO s');
    is($in_directory->($before), 5, 'a rolled back savepoint keeps its names there');
    $holder->query('SELECT 1/0');
    $holder->run('ROLLBACK');
    is($in_directory->($before), 5, 'and so does an error');
    my $ended = there(application => 'ended');
    $ended->run('BEGIN', "SELECT advisory.xact_lock('new', 'f')");
    leave($look, $ended);
    is($in_directory->($before), 6, 'and the end of a session');
    $holder->run(q(SELECT pg_advisory_lock(advisory.key('new', 'f'))));
    is_deeply(names_of($look, $holder), [ [ 'new', 'f' ] ],
        'so that the built-in on its key shows it');
    $holder->run('SELECT pg_advisory_unlock_all()');
}

# ---- Pairs, and long names -----------------------------------------------------------------------

$holder->run('SELECT pg_advisory_lock(-1, -2147483648), pg_advisory_lock_shared(2147483647, -2)');
is_deeply($look->rows('SELECT key, key1, key2, namespace, name, mode FROM advisory.locks
        ORDER BY key1'),
    [ [ undef, -1, -2147483648, undef, undef, 'exclusive' ],
        [ undef, 2147483647, -2, undef, undef, 'shared' ] ], 'pairs are signed');
$look->shows('SELECT lock FROM advisory.activity ORDER BY lock COLLATE "C"',
    [ '-1, -2147483648', '2147483647, -2' ], 'in activity too');
$holder->run('SELECT pg_advisory_unlock_all()');

for my $case (
    [ 'a megabyte', q(repeat('n', 1048576)), 'n' x 256 . '...' ],
    [ 'a megabyte with another end', q(repeat('n', 1048576) || 'x'), 'n' x 256 . '...' ],
    [ '256 bytes', q(repeat('n', 256)), 'n' x 256 ],
    [ '257 bytes', q(repeat('n', 257)), 'n' x 256 . '...' ],
    [ 'a megabyte of two bytes each', q(repeat('é', 524288)), 'é' x 128 . '...' ],
    [ 'the same, from an odd byte on', q('n' || repeat('é', 524288)), 'n' . 'é' x 127 . '...' ],
    [ 'a megabyte of four bytes each', q(repeat('😀', 262144)), '😀' x 64 . '...' ],
    [ 'the same, from the fourth byte on',   q('nnn' || repeat('😀', 262144)),
        'nnn' . '😀' x 63 . '...' ],
    [ 'four bytes', q('😀'), '😀' ],
) {
    my ($what, $name, $shown) = @$case;
    $holder->value("SELECT advisory.lock('long', $name)");
    is_deeply(names_of($look, $holder), [ [ 'long', $shown ] ], "a name of $what");
    my ($head, $tail) = split /…/, $look->value('SELECT lock FROM advisory.activity');
    like("long/$shown", defined $tail ? qr/^\Q$head\E.*\Q$tail\E$/ : qr/^\Q$head\E$/,
        'in activity as much of it as fits');
    $holder->value("SELECT advisory.unlock('long', $name)");
    # The observer's own lock of that namespace.
    $look->value("SELECT advisory.lock($name, 'name')");
    is_deeply(names_of($look, $look), [ [ $shown, 'name' ] ], 'the same as a namespace');
    $look->value("SELECT advisory.unlock($name, 'name')");
}
$look->shows(q(SELECT count(*) FROM advisory.stats WHERE namespace = 'long' AND name = repeat('n',
    256) || '...'), 3, 'names that only differ in what is not kept are different locks');
$look->shows('SELECT collisions FROM advisory.directory', 0, 'and no collision');

# ---- Collisions ----------------------------------------------------------------------------------

{
    my $key = q(advisory.key('names', 'a'));
    my $result = $holder->query("SELECT advisory.try_lock_key($key, label => 'other')");
    my $also = qr{advisory lock "other" also has another name\b.*Key -?\d+ is also the key of}s;
    like("@{ $result->{warnings} }", qr{key of $also "names/a"}s,
        'a label for a key that has a name: a warning');
    $look->shows('SELECT collisions FROM advisory.directory', 1, 'and counted');
    is_deeply(names_of($look, $holder), [ [ 'names', 'a' ] ], 'the name stays');
    is($holder->warned("SELECT advisory.try_lock_key($key, label => 'other')"), '',
        'the same session is warned once');
    $holder->run('SELECT pg_advisory_unlock_all()');
    # The label itself, and the name written out, are the same thing.
    for my $label ('a', 'names/a') {
        my $session = there()->run('SET advisory_ext.warn_no_transaction = off');
        is($session->warned("SELECT advisory.try_xact_lock_key($key, label => '$label')"), '',
            "the label $label is none");
    }
    # Also if the name would go into the name table only at the end of the transaction.
    $look->run(q(SELECT advisory.lock_key(advisory.key('names', 'in a transaction'),
        label => 'label')), 'SELECT pg_advisory_unlock_all()');
    like($holder->warned(q(SELECT advisory.try_xact_lock('names', 'in a transaction'))),
        qr{"names/in a transaction" also has another name\b.*"label"}s,
        'a label, and a name in a transaction: a warning');
    # A name replaces a label.
    $holder->value(q(SELECT advisory.lock_key(advisory.key('names', 'behind a label'),
        label => 'first')));
    is_deeply(names_of($look, $holder), [ [ undef, 'first' ] ], 'a key that was labelled');
    $holder->value(q(SELECT advisory.unlock_key(advisory.key('names', 'behind a label'))));
    $result = $look->query("SELECT advisory.try_lock('names', 'behind a label')");
    like("@{ $result->{warnings} }", qr{"names/behind a label" also has another name\b.*"first"}s,
        'and then named: a warning');
    is_deeply(names_of($holder, $look), [ [ 'names', 'behind a label' ] ], 'shows by its name');
    $look->run('SELECT pg_advisory_unlock_all()');
    $holder->run(q(SELECT advisory.lock_shared_key(advisory.key('names', 'beside a label'),
        label => 'first')));
    $look->run(q(SELECT advisory.lock_shared('names', 'beside a label')));
    is_deeply(names_of($look, $_), [ [ 'names', 'beside a label' ] ],
        'also while it is held under the label') for $holder, $look;
    $_->run('SELECT pg_advisory_unlock_all()') for $holder, $look;
}

# ---- Other databases, and those that are gone ----------------------------------------------------

# A database with another encoding, which template0 permits.
sub database ($name, $encoding) {
    $look->run(qq{CREATE DATABASE $name TEMPLATE template0 ENCODING '$encoding' LC_COLLATE 'C'
        LC_CTYPE 'C'});
    return there(database => $name)->run('CREATE EXTENSION advisory_ext');
}

{
    my $other = database('elsewhere', 'UTF8');
    $holder->value("SELECT advisory.lock_key(1, label => 'one')");
    $other->value("SELECT advisory.lock_key(1, label => 'uno')");
    $other->value("SELECT advisory.lock('names', 'elsewhere')");
    my $ALL = 'SELECT database, key = 1, namespace, name FROM advisory.locks
        ORDER BY database, namespace';
    my $expected = [ [ 'elsewhere', 0, 'names', 'elsewhere' ], [ 'elsewhere', 1, undef, 'uno' ],
        [ 'postgres', 1, undef, 'one' ] ];
    is_deeply($_->rows($ALL), $expected,
        'one key in two databases has two names, wherever one looks') for $look, $other;
    $other->shows(q(SELECT count(*) FROM advisory.stats WHERE name IN ('one', 'a')), 0,
        'stats are those of this database');
    $other->run('BEGIN', "SELECT advisory.xact_lock('names', 'force')");
    $look->run('DROP DATABASE elsewhere WITH (FORCE)');
    $look->shows($ALL, 'postgres|1|NULL|one', 'a database that is dropped takes its locks along');
    $look->shows('SELECT count(*) FROM advisory.activity', 1, 'activity does without them');
    $look->shows(q(SELECT count(*) FROM advisory.stats WHERE name = 'elsewhere'), 0,
        'and so does stats');
    $holder->run('SELECT pg_advisory_unlock_all()');
}

# ---- Roles that are gone -------------------------------------------------------------------------

{
    $look->run('CREATE ROLE app LOGIN', 'CREATE ROLE other LOGIN');
    my $doomed = there(role => 'app', application => 'of a dropped role');
    $doomed->value("SELECT advisory.lock('names', 'doomed')");
    my $prepares = there(role => 'app');
    $prepares->run('BEGIN', "SELECT advisory.xact_lock('names', 'prepared')",
        "PREPARE TRANSACTION 'of a dropped role'");
    leave($look, $prepares);
    $look->run('DROP ROLE app');
    $look->shows('SELECT role, application_name, gid, namespace, name FROM advisory.locks
        ORDER BY name', [ 'NULL|of a dropped role|NULL|names|doomed', 'NULL|NULL|of a dropped '
            . 'role|names|prepared' ], 'locks of a dropped role are shown, without its name');
    $look->shows('SELECT lock FROM advisory.activity ORDER BY lock',
        [ 'names/doomed', 'names/prepared' ], 'in activity too');
    $look->shows(q(SELECT name, taken_by_application FROM advisory.leaks), [], 'no leak');
    $look->run('SET advisory_ext.leak_after = 0');
    $look->shows(q(SELECT name, role, taken_by_role, taken_by_application FROM advisory.leaks),
        'doomed|NULL|NULL|of a dropped role', 'idle, it is one');
    $look->run('RESET advisory_ext.leak_after');
    my $unprivileged = there(role => 'other');
    is_deeply($unprivileged->rows('SELECT namespace, name, role, state FROM advisory.locks
            ORDER BY pid NULLS LAST'),
        [ [ ('<insufficient privilege>') x 2, undef, undef ],
            [ ('<insufficient privilege>') x 2, undef, undef ] ],
        'an unprivileged role may see a name of nobody no more than of somebody else');
    like($look->query("SELECT advisory.lock('names', 'doomed', '10ms')")->{detail},
        qr/^Process \d+, application "of a dropped role", holds it/,
        'the error of a wait has its pid')
        or diag explain $look->query("SELECT advisory.lock('names', 'doomed', '10ms')");
    $doomed->shows("SELECT advisory.try_lock('names', 'by nobody')", 1,
        'its session can still lock');
    is_deeply(names_of($doomed, $doomed), [ [ 'names', 'by nobody' ], [ 'names', 'doomed' ] ],
        'and see its own names');
    is_deeply(names_of($look, $doomed), [ [ 'names', 'by nobody' ], [ 'names', 'doomed' ] ],
        'as others do');
    leave($look, $doomed, $unprivileged);
    $look->run("ROLLBACK PREPARED 'of a dropped role'");
}

# ---- Prepared transactions, crashes and restarts -------------------------------------------------

sub prepare ($gid, $name) {
    my $session = there();
    $session->run('BEGIN', "SELECT advisory.xact_lock('names', '$name')",
        "PREPARE TRANSACTION '$gid'");
    leave($look, $session);
    return;
}

prepare('a gid', 'prepared');
$look->shows('SELECT pid, role, gid, namespace, name, scope, acquired_at FROM advisory.locks',
    'NULL|postgres|a gid|names|prepared|transaction|NULL', 'a prepared transaction: gid and name');
$look->shows('SELECT lock, pid, who, state, blocked_by FROM advisory.activity',
    'names/prepared|NULL|postgres (prepared a gid)|NULL|NULL', 'in activity');
waits($look, $holder, "SELECT advisory.lock('names', 'prepared')");
$look->shows('SELECT lock, who, blocked_by FROM advisory.activity',
    [ 'names/prepared|postgres@holder|0', 'names/prepared|postgres (prepared a gid)|NULL' ],
    'which somebody waits for');
$look->run("COMMIT PREPARED 'a gid'");
$holder->finish;
$holder->run('SELECT pg_advisory_unlock_all()');

for my $end (
    [ 'a backend dies by SIGKILL',   sub { kill KILL => $_[0]->pid } ],
    [ 'an immediate stop and start', sub { $server->ctl('restart', '-m', 'immediate') } ],
    [ 'a restart',                   sub { $server->ctl('restart', '-m', 'fast') } ],
) {
    my ($what, $act) = @$end;
    prepare('survivor', 'prepared');
    my $session = there(application => 'before');
    $session->run('BEGIN', "SELECT advisory.lock('names', 'session')",
        "SELECT advisory.xact_lock('names', 'transaction')");
    my $blocked = there(application => 'blocked');
    waits($look, $blocked, "SELECT advisory.lock('names', 'session')");
    $look->shows('SELECT lock FROM advisory.activity', [ 'names/session', 'names/session',
            'names/transaction', 'names/prepared' ], "before $what");
    $act->($session);
    $blocked->finish;
    wait_until('the server is back',
        sub { eval { there()->value('SELECT NOT pg_is_in_recovery()') } });
    $_->disconnect for $session, $blocked, $holder, $look;
    ($holder, $look) = (there(application => 'holder'), there(application => 'look'));

    $look->shows('SELECT pid, gid, namespace, name, acquired_at FROM advisory.locks',
        'NULL|survivor|NULL|NULL|NULL',
        "after $what nothing shows a holder that is none, and what is prepared has no name");
    $look->shows('SELECT who, held FROM advisory.activity', 'postgres (prepared survivor)|NULL',
        'in activity');
    $look->shows('SELECT * FROM advisory.stats', [], 'stats begin anew');
    $look->shows('SELECT available, names, evicted, not_stored, collisions FROM advisory.directory',
        '1|0|0|0|0', 'so does the directory');
    $holder->shows("SELECT advisory.try_lock('names', 'session')
        AND advisory.try_lock('names', 'transaction')", 1, 'the locks are free');
    is_deeply(names_of($look, $holder), [ [ 'names', 'session' ], [ 'names', 'transaction' ] ],
        'and come back by name');
    $holder->shows("SELECT advisory.try_lock('names', 'prepared')", 0,
        'what is prepared is not free');
    $look->shows(q(SELECT namespace, name FROM advisory.locks WHERE gid = 'survivor'),
        'names|prepared', 'and has its name back, being asked for');
    $look->shows(q(SELECT sum(acquired) FROM advisory.stats), 2, 'stats count');
    $look->run("ROLLBACK PREPARED 'survivor'");
    $holder->run('SELECT pg_advisory_unlock_all()');
}

# ---- Encodings -----------------------------------------------------------------------------------

{
    my $latin1 = database('latin', 'LATIN1');
    my $ascii  = database('sqlascii', 'SQL_ASCII');
    my $koi8   = database('koi', 'KOI8R');
    $holder->value("SELECT advisory.lock('größe', 'naïve ☃')");
    $holder->value("SELECT advisory.lock_key(1, label => '😀')");
    $holder->value("SELECT advisory.lock('long', repeat('é', 300))");
    $holder->value("SELECT advisory.lock('long', repeat('☃', 300))");
    $latin1->value("SELECT advisory.lock('größe', 'é')");
    $koi8->value("SELECT advisory.lock('мир', 'война')");
    # SQL_ASCII does not interpret the bytes.
    $ascii->value("SELECT advisory.lock('größe', 'naïve ☃')");

    my $NAMES = 'SELECT namespace, name FROM advisory.locks WHERE pid = ? ORDER BY key';
    my %shown = (
        utf8 => {
            holder => [ [ undef, '😀' ], [ 'größe', 'naïve ☃' ], [ 'long', 'é' x 128 . '...' ],
                [ 'long', '☃' x 85 . '...' ] ],
            latin1 => [ [ 'größe', 'é' ] ], koi8 => [ [ 'мир', 'война' ] ],
            ascii => [ [ 'größe', 'naïve ☃' ] ],
        },
        latin1 => {
            holder => [ [ undef, '\U0001F600' ], [ 'größe', 'naïve \u2603' ],
                [ 'long', 'é' x 128 . '...' ], [ 'long', '\u2603' x 85 . '...' ] ],
            latin1 => [ [ 'größe', 'é' ] ], koi8 => [ [ '\u043C\u0438\u0440',
                '\u0432\u043E\u0439\u043D\u0430' ] ], ascii => [ [ 'größe', 'naïve \u2603' ] ],
        },
        koi8 => {
            holder => [ [ undef, '\U0001F600' ], [ 'gr\u00F6\u00DFe', 'na\u00EFve \u2603' ],
                [ 'long', '\u00E9' x 128 . '...' ], [ 'long', '\u2603' x 85 . '...' ] ],
            latin1 => [ [ 'gr\u00F6\u00DFe', '\u00E9' ] ], koi8 => [ [ 'мир', 'война' ] ],
            ascii => [ [ 'gr\u00F6\u00DFe', 'na\u00EFve \u2603' ] ],
        },
    );
    $shown{ascii} = $shown{utf8};
    my %session = (holder => $holder, latin1 => $latin1, koi8 => $koi8, ascii => $ascii);
    my %looks_from = (utf8 => $look, latin1 => $latin1, koi8 => $koi8, ascii => $ascii);
    for my $where (sort keys %looks_from) {
        for my $who (sort keys %session) {
            my $rows = $looks_from{$where}->rows($NAMES, $session{$who}->pid);
            # In one order for all encodings.
            my $sorted = sub { [ sort { ($a->[0] // '')
                    . "/$a->[1]" cmp(($b->[0] // '') . "/$b->[1]") } @{ $_[0] } ] };
            is_deeply($sorted->($rows), $sorted->($shown{$where}{$who}),
                "names of $who as $where sees them") or diag explain $rows;
        }
        $looks_from{$where}->shows('SELECT count(*) FROM advisory.activity', 7, "activity, $where");
        cmp_ok($looks_from{$where}->value('SELECT count(*) FROM advisory.leaks'), '==', 0,
            "leaks, $where");
        cmp_ok($looks_from{$where}->value('SELECT count(*) FROM advisory.stats'), '>=', 1,
            "stats, $where");
    }
    $latin1->shows('SELECT name FROM advisory.stats WHERE pg_column_size(name) > 0', 'é',
        'stats of the LATIN1 database');
    # Names of other databases and of their prepared transactions come in those databases'
    # encodings.
    $latin1->run('BEGIN', "SELECT advisory.xact_lock('größe', 'prepared')",
        "PREPARE TRANSACTION 'gid größe'");
    $latin1->shows('SELECT gid FROM advisory.locks WHERE gid IS NOT NULL', 'gid größe',
        'a gid, where it was given');
    is_deeply($look->rows('SELECT gid, namespace, name FROM advisory.locks WHERE gid IS NOT NULL'),
        [ [ 'gid gr\xf6\xdfe', 'größe', 'prepared' ] ], 'and from elsewhere');
    like(join(' ', @{ $look->rows(q(SELECT lock, who FROM advisory.activity
            WHERE pid IS NULL))->[0] }), qr/^\w+: größe\/prepared postgre.*\\xdfe\)$/,
        'in activity, with its database');
    $latin1->run("ROLLBACK PREPARED 'gid größe'");
    # A name is cut at the same place in every encoding: 200 characters of LATIN1 have 400 bytes as
    # UTF-8.
    $latin1->run("SELECT advisory.lock('long', repeat('é', 200)),
        advisory.lock('long', repeat('é', 128)), advisory.lock('long', 'x' || repeat('é', 128))");
    for my $session ($latin1, $look) {
        is_deeply($session->rows(q(SELECT name FROM advisory.locks
                WHERE pid = ? AND namespace = 'long' ORDER BY length(name), name COLLATE "C"),
                $latin1->pid),
            [ [ 'é' x 128 ], [ 'x' . 'é' x 127 . '...' ], [ 'é' x 128 . '...' ] ],
            'a long name of LATIN1 is cut');
    }
    like(there(database => 'latin')->query("SELECT advisory.lock('long', repeat('é', 200),
            '0')")->{message}, qr{"long/é{128}\.\.\."}, 'in messages, too');
    $latin1->shows("SELECT advisory.unlock_all('long')", 3, 'and the namespace is found');
    # A waiter in another database, in the tree.
    my $blocked = there(application => 'blocked');
    waits($look, $blocked, "SELECT advisory.lock('größe', 'naïve ☃')");
    like($latin1->value('SELECT string_agg(t, chr(10)) FROM advisory.wait_tree() AS t'),
        qr{holds größe/naïve \\u2603 in database "postgres" exclusive},
        'wait_tree() in the LATIN1 database');
    $holder->run('SELECT pg_advisory_unlock_all()');
    $blocked->finish;
}

done_testing();
