#!/usr/bin/env perl
# advisory.blockers: one row for whatever is at the root of waits, with all that wait for it, and a
# statement that ends it. Each statement is run as it is shown. It takes sessions that wait for each
# other, other databases, and prepared transactions.
use utf8;
use AdvisoryTest;
use Waits;
use IO::Socket::INET;

my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport;
my $server = own_server('max_prepared_transactions=4', 'max_connections=60',
    'listen_addresses=127.0.0.1', "port=$port");
$server->{PGPORT} = $port;
sub there { return session(server => $server, @_) }
my $look = there(application => 'look');
$look->run('CREATE EXTENSION advisory_ext', 'CREATE DATABASE "oth er"', 'CREATE ROLE app LOGIN',
    'CREATE ROLE nobody LOGIN', 'CREATE ROLE oncall LOGIN IN ROLE pg_read_all_stats',
    'GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) TO oncall',
    'CREATE TABLE item (id int PRIMARY KEY, n int)',
    'INSERT INTO item VALUES (1, 0), (2, 0)', 'GRANT ALL ON item TO PUBLIC');
my $there = there(database => 'oth er')->run('CREATE EXTENSION advisory_ext');

my $ROWS = q(SELECT pid, who, state, since <= now(), lock, waiters, longest_wait >= '0', remedy
    FROM advisory.blockers);

sub waiter ($statement, @how) {
    my $waiter = there(@how)->run(q(SET deadlock_timeout = '1h'));
    $waiter->start($statement);
    wait_until('it waits', sub { $look->value(q(SELECT count(*) FROM pg_stat_activity
            WHERE pid = ? AND wait_event IS NOT NULL AND wait_event_type <> 'Client'), $waiter->pid)
        && $look->value(q(SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted
            AND waitstart IS NOT NULL) .
            q( UNION ALL SELECT count(*) FROM advisory.locks
            WHERE pid = $1 AND wait_start IS NOT NULL ORDER BY 1 DESC LIMIT 1), $waiter->pid) });
    return $waiter;
}

sub end_of { my @sessions = @_; leave($look, @sessions); return }

# The remedy of the only row with this lock, which must end the waits of these sessions.
sub cures ($what, $lock, $remedy, @waiters) {
    my $shown = $look->value('SELECT remedy FROM advisory.blockers WHERE lock = ?', $lock);
    is($shown, $remedy, "$what: the remedy") or diag explain $look->rows($ROWS);
    $look->run($shown);
    $_->ends(undef, "$what: it ends the wait") for @waiters;
    return;
}

$look->shows($ROWS, [], 'no row while nobody waits');

# ---- A session -----------------------------------------------------------------------------------

{
    my ($holder, $middle) = map { there(role => 'app', application => $_) } qw(holder middle);
    $holder->run('BEGIN', "SELECT advisory.xact_lock('billing', 'invoice:42')");
    $middle->run("SELECT advisory.lock('q', 'of middle')");
    waits($look, $middle, "SELECT advisory.lock('billing', 'invoice:42')");
    my $last = waiter("SELECT advisory.lock('q', 'of middle')");
    my $of_two = $holder->pid;
    my $other = there(application => 'other')->run('SELECT pg_advisory_lock(4711)');
    my $of_other = waiter('SELECT pg_advisory_lock(4711)');
    is_deeply($look->rows($ROWS), [
        [ $holder->pid, 'app@holder', 'idle in transaction', 1, 'billing/invoice:42', 2, 1,
            "SELECT advisory.terminate_holder('billing', 'invoice:42', $of_two, kind => 'lock');" ],
        [ $other->pid, 'postgres@other', 'idle', 1, '4711', 1, 1,
            'SELECT advisory.terminate_holder_key(4711, ' . $other->pid . q{, kind => 'lock');} ],
    ], 'a row for each root, with those that wait for it through others; those with most '
    . 'waiters first');
    my $nobody = there(role => 'nobody');
    is_deeply($nobody->rows(q(SELECT pid, who, state, since, lock, waiters, remedy
            FROM advisory.blockers LIMIT 1)),
        [ [ $holder->pid, 'app@holder', undef, undef, '1572001551135567388', 2,
            'SELECT advisory.terminate_holder_key(1572001551135567388, '
                . "$of_two, kind => 'lock');" ] ],
        'who may not see the session sees neither its state nor the name, and gets a statement all '
        . 'the same');
    $nobody->fails("SELECT advisory.terminate_holder_key(1572001551135567388, $of_two)", '42501',
        '... which needs the privilege');
    cures('a lock by name', 'billing/invoice:42',
        "SELECT advisory.terminate_holder('billing', 'invoice:42', $of_two, kind => 'lock');",
        $middle);
    cures('a lock by key', '4711', 'SELECT advisory.terminate_holder_key(4711, ' . $other->pid
        . q{, kind => 'lock');}, $of_other);
    $middle->run('SELECT pg_advisory_unlock_all()');
    $last->finish;
    end_of($middle, $last, $of_other, $nobody);
}

for my $case ([ q{'o''brien', E'a\\\\b'}, q(o'brien/a\b),
        q(SELECT advisory.terminate_holder('o''brien', E'a\\\\b', %d, kind => 'lock');) ],
    [ q{'q', 'größe ☃'}, 'q/größe ☃',
        q(SELECT advisory.terminate_holder('q', 'größe ☃', %d, kind => 'lock');) ],
    [ q{'q', repeat('x', 51)}, 'q/' . 'x' x 51, 'SELECT advisory.terminate_holder_key('
        . $look->value(q(SELECT advisory.key('q', repeat('x', 51)))) . q{, %d, kind => 'lock');} ],
    [ q{'q', repeat('x', 300)}, undef, 'SELECT advisory.terminate_holder_key('
        . $look->value(q(SELECT advisory.key('q', repeat('x', 300)))) . q{, %d, kind => 'lock');} ],
    [ q{'q', E'two\nlines'}, 'q/two?lines', 'SELECT advisory.terminate_holder_key('
        . $look->value(q(SELECT advisory.key('q', E'two\nlines'))) . q{, %d, kind => 'lock');} ])
{
    my ($name, $shown, $remedy) = @$case;
    my $holder = there()->run("SELECT advisory.lock($name)");
    my $waiter = waiter("SELECT advisory.lock($name)");
    $shown //= $look->value('SELECT lock FROM advisory.blockers');
    cures("a lock ($name)", $shown, sprintf($remedy, $holder->pid), $waiter);
    end_of($waiter);
}

{
    my $holder = there()->run('SELECT pg_advisory_lock(7, -8)');
    my $waiter = waiter('SELECT pg_advisory_lock(7, -8)');
    my $remedy = "SELECT advisory.terminate_blocker(%d, '7, -8');";
    my $of_holder = $look->value('SELECT remedy FROM advisory.blockers');
    is($of_holder, sprintf($remedy, $holder->pid), 'the remedy for a pair');
    $holder->run('SELECT pg_advisory_unlock(7, -8)', 'SELECT pg_advisory_lock(7, -9)');
    $waiter->finish;
    my @next = map { waiter("SELECT pg_advisory_lock(7, $_)") } -8, -9;
    $look->shows($of_holder, 0, '... ends nobody who has let go, also if others wait for it');
    $holder->shows('SELECT pg_advisory_unlock(7, -9)', 1, '... who goes on');
    $next[1]->finish;
    cures('a pair', '7, -8', sprintf($remedy, $waiter->pid), $next[0]);
    end_of($holder, @next);
}

# Two locks can be shown by the same text: a remedy names the one that is in the way, and no other.
for my $case ([ 'pair', [ '7, -8', '7, -9' ], 'key1, key2', 'twin' ],
    [ 'lock by key', [ 424242, 434343 ], 'key', 'x' x 30 ]) {
    my ($what, $keys, $columns, $label) = @$case;
    $look->run("INSERT INTO advisory.key_labels ($columns, label) VALUES ($keys->[0],
        '$label'), ($keys->[1], '$label')");
    my $holder = there(application => 'twin')->run("SELECT pg_advisory_lock($keys->[0])");
    my $waiter = waiter("SELECT pg_advisory_lock($keys->[0])");
    my $before = $look->value('SELECT remedy FROM advisory.blockers');
    my $text = $look->value('SELECT lock FROM advisory.blockers');
    like($before, qr/\Q$keys->[0]\E/, "the remedy for a $what has the key");
    $holder->run("SELECT pg_advisory_unlock($keys->[0])", "SELECT pg_advisory_lock($keys->[1])");
    $waiter->finish;
    $waiter->run("SELECT pg_advisory_unlock($keys->[0])");
    my $next = waiter("SELECT pg_advisory_lock($keys->[1])");
    $look->shows('SELECT lock FROM advisory.blockers', $text, '... another lock has its text');
    $look->shows($before =~ s/;//r, 0, '... but the remedy ends nobody who has that');
    $look->shows($look->value('SELECT remedy FROM advisory.blockers') =~ s/;//r, 1,
        '... which has a remedy of its own');
    $next->finish;
    end_of($waiter, $next);
    $look->run('DELETE FROM advisory.key_labels');
}
# So can the names of two leases, whose holders relied on them.
{
    my ($holder, $waiter, $work) = map { there(application => $_) } qw(migrate replica migrate);
    for my $name ([ 'a/b', 'c' ], [ 'a', 'b/c' ]) {
        my $key = $look->value('SELECT advisory.key(?, ?)', @$name);
        my $take = sprintf q{advisory.lock('%s', '%s')}, @$name;
        $holder->run("SELECT $take");
        $waiter->run('BEGIN', 'UPDATE item SET n = 3');
        waits($look, $waiter, "SELECT $take");
        $work->start('UPDATE item SET n = 4');
        wait_until('work waits', sub { $look->value(
                q(SELECT count(*) FROM advisory.waits WHERE depth = 2)) });
        $look->shows('SELECT lock, remedy FROM advisory.blockers',
            'a/b/c|SELECT advisory.cancel_waiter(' . $waiter->pid
                . ($name->[0] eq 'a' ? ", 'a/b/c');" : ", '$key');"),
            "the name (@$name) is exact, or the key stands for it");
        $look->run('SELECT pg_cancel_backend(' . $waiter->pid . ')');
        $waiter->finish;
        $waiter->run('ROLLBACK');
        $work->finish;
        $holder->run('SELECT pg_advisory_unlock_all()');
    }
    end_of($holder, $waiter, $work);
}

# The HINT of an error has the same statement as the view.
for my $case (
    [ "lock('billing', 'invoice:42')", "terminate_holder('billing', 'invoice:42'" ],
    [ "lock('q', repeat('x', 50))", 'terminate_holder_key(' ],
    [ q{lock('q', E'two\nlines')}, 'terminate_holder_key(' ],
    [ q{lock('a/b', 'o''c')}, q{terminate_holder('a/b', 'o''c'} ],
    [ 'lock_key(4711)', 'terminate_holder_key(4711' ],
    [ q{lock_key(4712, label => 'billing/invoice:42')}, 'terminate_holder_key(4712' ],
    [ q{acquire('q', 'slot', 1)}, q{terminate_holder('q', 'slot'} ])
{
    my ($take, $start) = @$case;
    my $holder = there()->run("SELECT advisory.$take");
    my $waiter = waiter("SELECT advisory.$take");
    my $remedy = $look->value('SELECT remedy FROM advisory.blockers');
    like($remedy, qr/^SELECT advisory\.\Q$start\E/, "the remedy for $take");
    my $error = $look->query('SELECT advisory.' . $take =~ s/\)$/, timeout => '0')/r);
    like($error->{hint} // '', qr/: \Q${\($remedy =~ s{;$}{}r)}\E\.$/, '... is that of the HINT');
    end_of($holder);
    $waiter->finish;
    end_of($waiter);
}
{
    my $owner = there();
    my $token = $owner->value(q(SELECT token FROM advisory.lease('l', 'relied on', '0.3s')));
    $owner->run('BEGIN', "SELECT advisory.check_lease('l', 'relied on', $token)");
    wait_until('it has expired', sub { $look->value(
            q(SELECT count(*) FROM advisory.leases WHERE state = 'expired')) });
    my $waiter = there();
    waits($look, $waiter, q(SELECT advisory.lease('l', 'relied on', '1 h')));
    my $remedy = q{SELECT advisory.terminate_holder('l', 'relied on', } . $owner->pid
        . q{, kind => 'lease')};
    $look->shows('SELECT lock, remedy FROM advisory.blockers', "lease l/relied on|$remedy;",
        'the remedy for the session that relies on a lease');
    my $error = $look->query(q(SELECT advisory.lease('l', 'relied on', '1 h', '0')));
    like($error->{hint} // '', qr/: \Q$remedy\E\.$/, '... is that of the HINT');
    $look->run("$remedy;");
    $waiter->ends(undef, '... and ends the wait');
    $look->run(q(SELECT advisory.break_lease('l', 'relied on')));
    end_of($owner, $waiter);
}

# ---- More than one at the root -------------------------------------------------------------------

migrations(look => $look, connect => sub ($application) { there(application => $application) },
    takes => [ q{lock('billing', 'invoice:42')}, q{acquire('billing', 'invoice:42', 1)} ]);

# A slot is not the lock of its name.
{
    my $holder = there(application => 'both')->run("SELECT advisory.acquire('q', 'both', 1)");
    my $waiter = waiter("SELECT advisory.acquire('q', 'both', 1)");
    my $remedy = $look->value("SELECT remedy FROM advisory.blockers WHERE lock ~ 'q/both'");
    like($remedy, qr/kind => 'semaphore'/, 'the remedy for a slot says so');
    $holder->run("SELECT advisory.release('q', 'both')", "SELECT advisory.lock('q', 'both')");
    $waiter->finish;
    $look->shows($remedy =~ s/;//r, 0, '... and does not end who has the lock of that name');
    $remedy =~ s/semaphore/lock/;
    $look->shows($remedy =~ s/;//r, 1, '... as that for the lock does');
    end_of($waiter);
}
{
    my @holders = map { there(application => "sharer-$_")
        ->run("SELECT advisory.lock_shared('q', 'shared')") } 1 .. 2;
    my @waiters = map { waiter("SELECT advisory.lock('q', 'shared')") } 1 .. 3;
    is_deeply($look->rows('SELECT pid, waiters, remedy FROM advisory.blockers ORDER BY who'),
        [ map { [ $_->pid, 3, "SELECT advisory.terminate_holder('q', 'shared', " . $_->pid
            . q{, kind => 'lock');} ] } @holders ],
        'a row for each that holds the lock in shared mode');
    end_of(@holders);
    while (my $next = shift @waiters) { $next->finish; end_of($next) }
}
{
    my @holders = map { there(application => "holder-$_")
        ->run("SELECT advisory.acquire('q', 'slots', 3)") } 1 .. 3;
    my @waiters = map { waiter("SELECT advisory.acquire('q', 'slots', 3)") } 1 .. 4;
    is_deeply($look->rows('SELECT pid, lock, waiters FROM advisory.blockers ORDER BY who'),
        [ map { [ $holders[$_]->pid, 'slot ' . ($_ + 1) . ' of q/slots', 4 ] } 0 .. 2 ],
        'a row for each slot that is waited for');
    cures('a slot', 'slot 2 of q/slots', "SELECT advisory.terminate_holder('q', 'slots', "
        . $holders[1]->pid . q{, kind => 'semaphore');}, shift @waiters);
    end_of(@holders[ 0, 2 ]);
    end_of($_) for @waiters;
}

# ---- Prepared transactions -----------------------------------------------------------------------

for my $database ('postgres', 'oth er') {
    my @how = (database => $database);
    my $doer = there(@how)->run('BEGIN', "SELECT advisory.xact_lock('q', 'prepared')",
        q(PREPARE TRANSACTION 'g''id'));
    my $waiter = waiter("SELECT advisory.lock('q', 'prepared')", @how);
    my $is_here = $database eq 'postgres';
    my $lock = 'q/prepared' . ($is_here ? '' : ' in database "oth er"');
    is_deeply($look->rows($ROWS), [ [ undef, "postgres (prepared g'id)", undef, 1, $lock, 1, 1,
            q(ROLLBACK PREPARED 'g''id';) . ($is_here ? '' : ' -- in database "oth er"') ] ],
        "a prepared transaction of database $database");
    ($is_here ? $look : $there)->run($look->value('SELECT remedy FROM advisory.blockers'));
    $waiter->ends(undef, '... is ended by the statement');
    end_of($doer, $waiter);
}

# What cannot be named has no remedy, and the name of another database cannot end the comment that
# it is in. PostgreSQL 19 has no database with such a name.
if ($look->value(q(SELECT current_setting('server_version_num'))) < 190000) {
    my $evil = "evil\nSELECT 1";
    $look->run(qq(CREATE DATABASE "$evil"));
    my @doers;
    for my $case ([ 'postgres', q(E'a\tb'), undef ],
        [ $evil, q('of evil'), q(ROLLBACK PREPARED 'of evil'; -- in database "evil?SELECT 1") ]) {
        my ($database, $gid, $remedy) = @$case;
        my $doer = there(database => $database)->run('CREATE EXTENSION IF NOT EXISTS advisory_ext',
            'BEGIN', "SELECT advisory.xact_lock('q', 'odd')", "PREPARE TRANSACTION $gid");
        # Its identifier is what is shown of the other one.
        $doer->run('BEGIN', 'SELECT 1', q(PREPARE TRANSACTION 'a?b'));
        my $waiter = waiter("SELECT advisory.lock('q', 'odd')", database => $database);
        $look->shows('SELECT remedy FROM advisory.blockers', $remedy // 'NULL',
            "the remedy of a prepared transaction $gid");
        $doer->run("ROLLBACK PREPARED $gid", q(ROLLBACK PREPARED 'a?b'));
        $waiter->finish;
        end_of($doer, $waiter);
    }
    $look->run(qq(DROP DATABASE "$evil" WITH (FORCE)));
}

# ---- Cut names in SQL_ASCII, where a letter is a byte --------------------------------------------

{
    $look->run(q(CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C'
        LC_CTYPE 'C'));
    my @sessions = map { there(database => 'ascii') } 1 .. 2;
    $sessions[0]->run('CREATE EXTENSION advisory_ext', 'SET client_encoding = UTF8',
        q(SELECT advisory.lock('q', repeat('x漢', 60))));
    $sessions[1]->run('SET client_encoding = UTF8')
        ->start(q(SELECT advisory.lock('q', repeat('x漢', 60))));
    waits($look, $sessions[1]);
    for my $view ('activity', 'blockers') {
        my $shown = $sessions[0]->succeeds("SELECT lock FROM advisory.$view LIMIT 1",
            "$view: a cut name is text in the client's encoding");
        like($shown->{value} // '', qr{^q/x\?}, '... in which ? stands for a byte');
    }
    $sessions[0]->run('SELECT pg_advisory_unlock_all()');
    $sessions[1]->finish;
    end_of(@sessions);
}

# ---- Leases --------------------------------------------------------------------------------------

{
    my $owner = there(role => 'app');
    my $token = $owner->value("SELECT token
        FROM advisory.lease('leader', 'of ''it', '1 hour', owner => 'host-1')");
    end_of($owner);
    my @waiters = map { waiter("SELECT advisory.lease('leader', 'of ''it', '1 hour')") } 1 .. 3;
    is_deeply($look->rows($ROWS), [ [ undef, 'host-1', 'held', 1, "lease leader/of 'it",
            3, 1, "SELECT advisory.break_lease('leader', 'of ''it', $token);" ] ],
        'a lease, whose owner is gone');
    my $nobody = there(role => 'nobody');
    $nobody->shows('SELECT who, state, since, waiters, remedy FROM advisory.blockers',
        'NULL|NULL|NULL|3|NULL', 'who may not see its name cannot end it');
    cures('a lease', "lease leader/of 'it", "SELECT advisory.break_lease('leader', 'of ''it', "
        . "$token);", shift @waiters);
    $look->shows("SELECT advisory.break_lease('leader', 'of ''it', $token)", 0,
        'which does not end the lease that somebody else has by now');
    my $oncall = there(role => 'oncall');
    $oncall->shows('SELECT lock, remedy FROM advisory.blockers', q(lease leader/of 'it|NULL),
        'who sees its name, but not its token, gets no remedy');
    end_of($nobody, $oncall, @waiters);
    $look->run(q(SELECT advisory.break_lease('leader', 'of ''it')));
}
# The owner sees his own lease, also if he may not see who waits for it.
{
    my $owner = there(role => 'app');
    my $token = $owner->value(q(SELECT token FROM advisory.lease('l', 'mine', '1 h')));
    my $waiter = waiter(q(SELECT advisory.lease('l', 'mine', '1 h')));
    $owner->shows('SELECT state, waiters, remedy FROM advisory.blockers',
        "held|1|SELECT advisory.break_lease('l', 'mine', $token);",
        'the remedy for his own lease that its owner is shown');
    $look->run($owner->value('SELECT remedy FROM advisory.blockers'));
    $waiter->ends(undef, '... which ends the wait');
    $look->run(q(SELECT advisory.break_lease('l', 'mine')));
    end_of($owner, $waiter);
}

# ---- Waits for rows and tables -------------------------------------------------------------------

{
    my $root = there(application => 'root')->run('BEGIN', 'UPDATE item SET n = 1 WHERE id = 1');
    my $middle = there(application => 'middle')->run("SELECT advisory.lock('q', 'row')");
    waits($look, $middle, 'UPDATE item SET n = 2 WHERE id = 1');
    my $last = waiter("SELECT advisory.lock('q', 'row')");
    $look->shows('SELECT pid, waiters FROM advisory.blockers', $root->pid . '|2',
        'the root of a wait for a row');
    my $remedy = $look->value('SELECT remedy FROM advisory.blockers');
    my $nobody = there(role => 'nobody');
    $nobody->fails($remedy, '42501', '... its remedy needs the privilege');
    end_of($nobody);
    like($look->value('SELECT lock FROM advisory.blockers'), qr/^transaction \d+$/,
        '... with what it holds');
    is($remedy, sprintf(q(SELECT advisory.terminate_blocker(%d, '%s');), $root->pid,
        $look->value('SELECT lock FROM advisory.blockers')), '... and the remedy');
    $root->run('COMMIT', 'BEGIN', 'UPDATE item SET n = 1 WHERE id = 9');
    $middle->finish;
    $look->shows($remedy, 0, '... which ends nobody in another transaction');
    end_of($root);
    end_of($middle);
    $last->finish;
    end_of($last);
}
{
    # A name that is cut looks different in another encoding.
    my $table = 's' x 60 . '.' . 't' x 60;
    $look->run('CREATE SCHEMA ' . 's' x 60, "CREATE TABLE $table ()");
    my $root = there(application => 'root')->run('BEGIN', "LOCK TABLE $table");
    my $middle = there(application => 'middle')->run("SELECT advisory.lock('q', 'cut')");
    waits($look, $middle, "SELECT FROM $table");
    my $last = waiter("SELECT advisory.lock('q', 'cut')");
    my ($lock, $remedy) = map { $look->value("SELECT $_ FROM advisory.blockers") } qw(lock remedy);
    unlike($lock, qr/\Q$table/, 'a long name is cut');
    $look->run(q(SET client_encoding = 'LATIN1'));
    isnt($look->value('SELECT lock FROM advisory.blockers'), $lock, '... as the encoding allows');
    $look->shows($remedy =~ s/;//r, 1, '... and the remedy holds in every encoding');
    $look->run('RESET client_encoding');
    $middle->finish;
    end_of($middle);
    $last->finish;
    end_of($last);
}
{
    # Nobody waits for the advisory lock itself.
    my $holder = there(application => 'holder')->run("SELECT advisory.lock('q', 'table')", 'BEGIN',
        'UPDATE item SET n = 1 WHERE id = 2');
    my $alter = waiter('ALTER TABLE item ADD COLUMN m int', application => 'alter');
    my $reader = waiter('SELECT count(*) FROM item', application => 'reader');
    is_deeply($look->rows('SELECT pid, lock, waiters, remedy FROM advisory.blockers'),
        [ [ $holder->pid, 'relation public.item', 2, 'SELECT advisory.terminate_blocker('
            . $holder->pid . ", 'relation public.item');" ] ],
        'ALTER TABLE behind a holder of an advisory lock, and whoever is behind it, count for '
        . 'its root');
    is_deeply([ map { $_->[0] =~ s/ \d+ s\b/ N s/gr =~ s/^( *)\d+ postgres@/$1/r } @{ $look->rows(
            'SELECT * FROM advisory.wait_tree()') } ],
        [ 'holder holds relation public.item RowExclusiveLock, idle in transaction N s',
            '  alter waits for relation public.item AccessExclusiveLock N s',
            '    reader waits for relation public.item AccessShareLock N s' ],
            '... and stand in the tree');
    $look->run($look->value('SELECT remedy FROM advisory.blockers'));
    $_->ends(undef, '... and go on') for $alter, $reader;
    end_of($alter, $reader);

    my $writer = there()->run('BEGIN', 'UPDATE item SET n = 1');
    my $drop = waiter('ALTER TABLE item DROP COLUMN m');
    $look->shows($ROWS, [], 'without an advisory lock there is no row');
    $look->shows('SELECT count(*) FROM advisory.wait_tree()', 0, '... and no tree');
    end_of($writer);
    $drop->finish;
    end_of($drop);
}

# ---- What one checks before ending a session -----------------------------------------------------

{
    my $holder = there(role => 'app');
    my $waiter = there();
    $holder->run('BEGIN', q(SELECT advisory.xact_lock('q', 'checked')));
    $holder->query("/* " . 'x' x 900 . " */ SELECT\n\t  1 AS \"\e[2J\"");
    waits($look, $waiter, q(SELECT advisory.lock('q', 'checked')));
    my ($row) = @{ $look->rows(
        'SELECT state, backend_type, client_addr, query FROM advisory.blockers') };
    is_deeply([ @$row[ 0 .. 2 ] ], [ 'idle in transaction', 'client backend', undef ],
        'a client by a socket, which is idle');
    like($row->[3], qr{^/\* x{40,}….*x \*/ SELECT 1 AS "\?\[2J"$},
        'its query, cut, on one line, without escapes');
    is(length $row->[3], 90, '... to 90 columns');
    my $nobody = there(role => 'nobody');
    is_deeply(
        $nobody->rows('SELECT state, backend_type, client_addr, query FROM advisory.blockers'),
        [ [ undef, undef, undef, '<insufficient privilege>' ] ],
        '... all for those only who may see the session');
    $holder->run('ROLLBACK');
    $waiter->finish;
    my $by_address = AdvisoryTest::Session->new(
        server => { %$server, PGHOST => '127.0.0.1' })->run(q(SELECT advisory.lock('q', 'far')));
    my $near = waiter(q(SELECT advisory.lock('q', 'far')));
    $look->shows('SELECT client_addr FROM advisory.blockers', '127.0.0.1', 'a client by TCP');
    end_of($by_address, $holder, $waiter, $nobody);
    $near->finish;
    end_of($near);
}

# A root that itself waits, but for no session: for a standby, in the commit of a NOTIFY, too; for
# a client that does not send its rows; or in a sleep.
{
    my ($commit, $copy, $sleep, $notify) = map { there(application => $_) } 1 .. 4;
    set_standby_names($look, 'nobody');
    $_->run("SET deadlock_timeout = '1h'") for $commit, $copy, $sleep, $notify;
    for (\($commit, $copy, $sleep)) { $$_->run(
            'SELECT advisory.lock(\'q\', \'root ' . $$_->pid . '\')') }
    $commit->start("BEGIN; SELECT advisory.xact_lock('q', 'commit'); NOTIFY x; INSERT INTO item "
        . 'VALUES (10, 0); COMMIT');
    $sleep->start('SELECT pg_sleep(600)');
    $copy->{dbh}->do('COPY item FROM STDIN');
    wait_until('it waits for the standby', sub { $look->value(
        q(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep')) });
    # The committer of another NOTIFY waits for its lock, and holds an advisory lock.
    $notify->start("BEGIN; SELECT advisory.xact_lock('q', 'second'); NOTIFY x; COMMIT");
    waits($look, $notify);
    my @behind = map { waiter("SELECT advisory.lock('q', '$_')") }
        'root ' . $copy->pid, 'root ' . $sleep->pid;
    is_deeply($look->rows('SELECT pid, state, lock FROM advisory.blockers ORDER BY state'), [
        [ $copy->pid, 'active, waits for ClientRead (Client)', 'q/root ' . $copy->pid ],
        [ $sleep->pid, 'active, waits for PgSleep (Timeout)', 'q/root ' . $sleep->pid ],
        [ $commit->pid, 'active, waits for SyncRep (IPC)', "NOTIFY's commit lock" ],
    ], "what roots wait for, and NOTIFY's commit lock");
    my ($line) = grep { /NOTIFY/ } $look->column('SELECT * FROM advisory.wait_tree()');
    like($line,
        qr/holds NOTIFY's commit lock \w+, active \d+ s, waits for SyncRep \(IPC\)$/,
        '... in the tree, too');
    my $nobody = there(role => 'nobody');
    $nobody->shows('SELECT count(state) FROM advisory.blockers', 0,
        'not for those who may not see the session');
    # The documents say to cancel first: that ends the statement, and the connection stays.
    $look->run('SELECT pg_cancel_backend(' . $sleep->pid . ')');
    is($sleep->finish->{state}, '57014', 'an active holder can be cancelled');
    set_standby_names($look, '');
    $_->finish for $commit, $notify;
    $copy->{dbh}->pg_putcopyend;
    end_of($commit, $notify, $copy, $sleep, $nobody);
    $_->finish for @behind;
    end_of(@behind);
}

# ---- Another database ----------------------------------------------------------------------------

{
    my $holder = there(database => 'oth er')->run("SELECT advisory.lock('q', 'there')");
    my $waiter = waiter("SELECT advisory.lock('q', 'there')", database => 'oth er');
    my $result = $look->query("SELECT advisory.terminate_holder('q', 'there', ?)", $holder->pid);
    is($result->{value}, 0, 'terminate_holder() ends no holder of a lock of another database');
    like("@{ $result->{warnings} }",
        qr/does not hold advisory lock "q\/there".*connect to database "oth er"/s,
        '... but says where to connect to');
    cures('a lock of another database', 'q/there in database "oth er"',
        'SELECT advisory.terminate_blocker(' . $holder->pid
            . q{, 'q/there in database "oth er"');}, $waiter);
    end_of($waiter);
}

# ---- Several holders of a semaphore --------------------------------------------------------------

# A role that sees little asks more of the catalog for each row.
{
    my @holders = map { there(role => 'app')->run(q(SELECT advisory.acquire('q', 'three', 3))) }
        1 .. 3;
    my $waiter = there(role => 'app');
    $waiter->start(q(SELECT advisory.acquire('q', 'three', 3)));
    wait_until('it waits', sub { $look->value(
        q(SELECT count(*) FROM advisory.locks WHERE pid = ? AND NOT granted), $waiter->pid) });
    my $nobody = there(role => 'nobody');
    for my $reader ($nobody, $look, $nobody) {
        $reader->shows(q(SELECT count(*), count(DISTINCT pid), count(remedy)
            FROM advisory.blockers), '3|3|3', 'a row, and a remedy, for each holder of a slot');
    }
    end_of($waiter, @holders);
}

# ---- Without the view that knows keys ------------------------------------------------------------

{
    my $holder = there()->run('SELECT pg_advisory_lock(12345)');
    my $waiter = waiter('SELECT pg_advisory_lock(12345)');
    my $nobody = there(role => 'nobody');
    my $TEXTS = q(SELECT lock FROM advisory.blockers UNION ALL
        SELECT lock FROM advisory.activity WHERE pid = ? ORDER BY 1);
    $look->run('REVOKE SELECT ON advisory._unnamed_texts FROM PUBLIC');
    $nobody->shows($TEXTS, [ ('12345') x 2 ],
        'who may not read the view of keys sees the key', $waiter->pid);
    $look->run('GRANT SELECT ON advisory._unnamed_texts TO PUBLIC');
    $nobody->shows($TEXTS, [ ('12345 "several programs use it"') x 2 ],
        'who may sees what it is known for', $waiter->pid);
    my $owner = there()->run('BEGIN', 'LOCK advisory._unnamed_texts IN ACCESS EXCLUSIVE MODE');
    $nobody->shows(q(SELECT lock FROM advisory.blockers), '12345',
        'who would have to wait for the view sees the key, too');
    $owner->run('ROLLBACK');
    end_of($waiter, $holder, $owner);
}

done_testing();
