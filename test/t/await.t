#!/usr/bin/env perl
# A session that waits in CALL advisory.await_lock() blocks no CREATE INDEX CONCURRENTLY of the
# lock's holder, wherever the call is allowed; elsewhere the call is refused at once. The test needs
# clients of the extended protocol, the waiter's xmin as another session sees it, and signals during
# the wait.
use AdvisoryTest;

create_database();
my $observer = session();
my $holder   = session()->run("SET deadlock_timeout = '100ms'");

$observer->run(
    'CREATE TABLE item (id int)',
    'INSERT INTO item SELECT generate_series(1, 10)',
    'CREATE TABLE log (waited_in text, seen int)',
    # a call in a procedure, twice, with work before and after
    <<'SQL',
    CREATE PROCEDURE wait_in_procedure() LANGUAGE plpgsql AS $$
    DECLARE seen int;
    BEGIN
        seen := count(*) FROM item;
        CALL advisory.await_lock('await', 'a');
        CALL advisory.await_lock('await', 'free');
        CALL advisory.await_lock('await', 'a');
        PERFORM advisory.unlock('await', 'free'), advisory.unlock('await', 'a');
        INSERT INTO log SELECT 'procedure', count(*) FROM item;
    END $$
SQL
    'CREATE PROCEDURE wait_nested() LANGUAGE plpgsql AS $$ BEGIN CALL wait_in_procedure(); END $$',
    'CREATE PROCEDURE wait_nested_twice() LANGUAGE plpgsql AS $$ BEGIN CALL wait_nested(); END $$',
    <<'SQL',
    CREATE PROCEDURE wait_after_commit() LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO log VALUES ('before commit', 0);
        COMMIT;
        CALL advisory.await_lock('await', 'a');
        INSERT INTO log SELECT 'after commit', count(*) FROM item;
        ROLLBACK;
        CALL advisory.await_lock('await', 'free');
        PERFORM advisory.unlock('await', 'free');
    END $$
SQL
    # places where the call is refused
    'CREATE FUNCTION wait_in_function() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN CALL advisory.await_lock(\'await\', \'a\'); RETURN 1; END $$',
    'CREATE PROCEDURE wait_with_setting() LANGUAGE plpgsql SET work_mem = \'1MB\' AS $$
    BEGIN CALL advisory.await_lock(\'await\', \'a\'); END $$',
    'CREATE PROCEDURE wait_in_loop() LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN
    SELECT id FROM item LOOP CALL advisory.await_lock(\'await\', \'a\'); END LOOP; END $$',
    'CREATE PROCEDURE wait_after_writing() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log
    VALUES (\'written\', 0); CALL advisory.await_lock(\'await\', \'a\'); END $$',
    'CREATE PROCEDURE wait_with_cursor() LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT id
    FROM item; BEGIN OPEN c; CALL advisory.await_lock(\'await\', \'a\'); END $$',
    'CREATE PROCEDURE wait_in_block() LANGUAGE plpgsql AS $$ BEGIN BEGIN CALL
    advisory.await_lock(\'await\', \'a\'); EXCEPTION WHEN active_sql_transaction THEN INSERT
    INTO log VALUES (\'refused\', 0); END; COMMIT; INSERT INTO log VALUES (\'went on\', 0); END $$',
);

sub take    { $holder->value("SELECT advisory.lock('await', 'a')") }
sub release { $holder->value("SELECT advisory.unlock('await', 'a')") }

sub holds_anything ($session) {
    return $observer->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?",
        $session->pid);
}

sub build_index {
    return $holder->query('CREATE INDEX CONCURRENTLY item_id ON item (id)');
}

# A session that has run the statements before, and waits in the call.
sub waiting ($before, @call) {
    my $waiter = session()->run(@$before);
    waits($observer, $waiter, @call);
    return $waiter;
}

# ---- Where it works ------------------------------------------------------------------------------

my $CALL = "CALL advisory.await_lock('await', 'a')";
for my $place (
    [ 'at top level', [], $CALL ],
    [ 'at top level, with a timeout', [], "CALL advisory.await_lock('await', 'a', '1 min')" ],
    [ 'shared', [], "CALL advisory.await_lock_shared('await', 'a')" ],
    [ 'by key', [], "CALL advisory.await_lock_key(advisory.key('await', 'a'), label => 'l')" ],
    [ 'shared, by key', [], "CALL advisory.await_lock_shared_key(advisory.key('await', 'a'))" ],
    [ 'in BEGIN', ['BEGIN'], $CALL ],
    [ 'in BEGIN, after a query', [ 'BEGIN', 'SELECT * FROM item' ], $CALL ],
    [ 'in a savepoint', [ 'BEGIN', 'SAVEPOINT s' ], $CALL ],
    [ 'beside a cursor that holds its rows',
        [ 'BEGIN', 'DECLARE c CURSOR WITH HOLD FOR SELECT * FROM item', 'COMMIT' ], $CALL ],
    [ 'with another statement in one string', [], "$CALL; SELECT 1" ],
    [ 'in DO', [], "DO \$\$ BEGIN $CALL; END \$\$" ],
    [ 'in a procedure, several times', [], 'CALL wait_in_procedure()' ],
    [ 'in a nested procedure', [], 'CALL wait_nested()' ],
    [ 'in one nested twice, from DO', [], 'DO $$ BEGIN CALL wait_nested_twice(); END $$' ],
    [ 'after COMMIT in a procedure', [], 'CALL wait_after_commit()' ],
    [ 'by the extended protocol', [], 'CALL advisory.await_lock(?, ?)', 'await', 'a' ],
    [ 'by the extended protocol, with a timeout', [],
        'CALL advisory.await_lock(?, ?, ?)', 'await', 'a', '1 min' ],
    [ 'by the extended protocol, in BEGIN',  ['BEGIN'],          'CALL advisory.await_lock(?, ?)',
        'await', 'a' ],
) {
    my ($name, $before, @call) = @$place;
    take();
    my $waiter = waiting($before, @call);
    $observer->shows('SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE pid = ?',
        'NULL|NULL', "$name: the waiter has neither xmin nor transaction id", $waiter->pid);
    my $index = build_index();
    is($index->{state}, undef, "$name: the holder's CREATE INDEX CONCURRENTLY completes")
        or diag($index->{message});
    $holder->run('INSERT INTO item VALUES (11)');
    release();
    $waiter->ends(undef, "$name: the waiter gets the lock");
    $waiter->shows('SELECT count(*) FROM item', 11,
        "$name: and sees what was committed while it waited");
    $waiter->shows("SELECT advisory.holds('await', 'a')", 1, "$name: and holds the lock");
    $waiter->query('COMMIT') if @$before;
    $waiter->disconnect;
    $observer->run('DELETE FROM item WHERE id = 11', 'DROP INDEX item_id');
}
$observer->shows('SELECT DISTINCT waited_in, seen FROM log ORDER BY 1', [ 'before commit|0',
        'procedure|11' ], 'procedures go on after it with a new snapshot, and may roll back');

# The same if CREATE INDEX began while the waiter still had a snapshot: in the call's arguments, or
# before the call.
$observer->run(<<'SQL');
CREATE FUNCTION passes_gate() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock(99), pg_advisory_unlock(99);
    RETURN 'a';
END $$
SQL
my $gate = session();

sub close_gate { return $gate->run('SELECT pg_advisory_lock(99)') }

sub open_gate { return $gate->run('SELECT pg_advisory_unlock(99)') }

# Does a session wait for the end of this session's transaction?
sub is_end_awaited ($session) {
    return $observer->value(<<'SQL', $session->pid);
SELECT count(*) FROM pg_locks AS t JOIN pg_locks AS w USING (virtualxid) WHERE t.pid = ?
    AND t.granted AND NOT w.granted
SQL
}

# Until the session waits at the gate, and CREATE INDEX waits for the session.
sub overtaken ($builder, $before, @call) {
    close_gate();
    my $waiter = waiting($before, @call);
    $builder->start('CREATE INDEX CONCURRENTLY item_id ON item (id)');
    wait_until('it waits for the end of the transaction', sub { is_end_awaited($waiter) });
    return $waiter;
}

my %HELD = (
    lock => { take => "advisory.lock('await', 'a')", give => "advisory.unlock('await', 'a')" },
    only => { take => "advisory.acquire('await', 'a', 1)",
        give => "advisory.release('await', 'a')" },
    two  => { take => "advisory.acquire('await', 'a', 2), advisory.acquire('await', 'a', 2)",
        give => "advisory.unlock_all('await')" },
);
for my $place (
    [ 'at top level', 'lock', [], "CALL advisory.await_lock('await', passes_gate())" ],
    [ 'with a timeout', 'lock', [], "CALL advisory.await_lock('await', passes_gate(), '1 min')" ],
    [ 'shared', 'lock', [], "CALL advisory.await_lock_shared('await', passes_gate())" ],
    [ 'by key', 'lock', [], "CALL advisory.await_lock_key(advisory.key('await', passes_gate()))" ],
    [ 'the only slot', 'only', [], "CALL advisory.await_acquire('await', passes_gate(), 1)" ],
    [ 'one of two slots', 'two', [], "CALL advisory.await_acquire('await', passes_gate(), 2)" ],
    [ 'in BEGIN', 'lock', ['BEGIN'], "CALL advisory.await_lock('await', passes_gate())" ],
    [ 'in a savepoint',               'lock', [ 'BEGIN', 'SAVEPOINT s' ],
        "CALL advisory.await_lock('await', passes_gate(), '1 min')" ],
    [ 'before the call, in DO',       'lock', [],
        "DO \$\$ BEGIN PERFORM passes_gate(); $CALL; END \$\$" ],
    [ 'before two calls, in DO',      'lock', [], "DO \$\$ BEGIN PERFORM passes_gate();
        $CALL; PERFORM advisory.unlock('await', 'a'); $CALL; END \$\$" ],
    [ 'run()',                        'lock', [],
        "CALL advisory.run('await', passes_gate(), 'SELECT count(*) FROM item', '1 min')" ],
    [ 'run() with slots',             'two',  [], "CALL advisory.run('await', passes_gate(),
        'SELECT count(*) FROM item', '1 min', slots => 2)" ],
) {
    my ($name, $held, $before, $call) = @$place;
    # If one connection held the lock and another built the index, the server would find no
    # deadlock.
    for my $builder ($holder, session()) {
        my $what = "index first, $name" . ($builder == $holder ? '' : ', on another connection');
        $holder->run("SELECT $HELD{$held}{take}");
        my $waiter = overtaken($builder, $before, $call);
        open_gate();
        my $index = $builder->finish(20);
        is($index->{state}, undef, "$what: CREATE INDEX CONCURRENTLY completes")
            or diag($index->{message});
        $observer->wait_until('it waits', q{SELECT count(*) FROM advisory.waits WHERE pid = ?},
            $waiter->pid);
        $holder->run("SELECT $HELD{$held}{give}");
        $waiter->ends(undef, "$what: the waiter gets the lock");
        if (@$before) {
            # From now on other sessions can wait for it again.
            $waiter->run('SELECT * FROM item');
            $observer->shows(q{SELECT count(*) FROM pg_locks WHERE locktype = 'virtualxid'
                AND granted AND pid = ?}, 1, "$what: its transaction goes on", $waiter->pid);
            $waiter->run('COMMIT');
        }
        leave($observer, $waiter);
        leave($observer, $builder) if $builder != $holder;
        $observer->run('DROP INDEX item_id');
    }
}

# A wait that failed in a savepoint does not end the transaction: others wait for what it does then.
take();
my $survivor = session()->run('BEGIN', 'SAVEPOINT s');
$survivor->fails("CALL advisory.await_lock('await', 'a', '20 ms')", '55P03',
    'a wait that failed in a savepoint');
$survivor->run('ROLLBACK TO s', 'LOCK TABLE item IN ROW EXCLUSIVE MODE');
$gate->start('CREATE INDEX CONCURRENTLY item_id ON item (id)');
wait_until('it waits for the end of the transaction', sub { is_end_awaited($survivor) });
$survivor->run('INSERT INTO item VALUES (11)', 'COMMIT');
$gate->ends(undef, 'its transaction is waited for as before');
$observer->shows('SET enable_seqscan = off; SELECT count(*) FROM item WHERE id = 11', 1,
    'and the index has its row');
$observer->run('RESET enable_seqscan', 'DELETE FROM item WHERE id = 11', 'DROP INDEX item_id');
leave($observer, $survivor);

# A transaction that has locked tables keeps the lock on its virtual transaction ID. If another
# session waits for its end already, the call is refused.
for my $place (
    [ 'in DO',    [],        "DO \$\$ BEGIN PERFORM count(*) FROM log; PERFORM passes_gate();
        $CALL; END \$\$" ],
    [ 'in BEGIN', [ 'BEGIN', 'SELECT * FROM log' ],
        "CALL advisory.await_lock('await', passes_gate())" ],
) {
    my ($name, $before, $call) = @$place;
    my $waiter = overtaken($holder, $before, $call);
    open_gate();
    my $result = $waiter->finish(10);
    is($result->{state}, '25001', "tables locked, $name: refused");
    like($result->{detail}, qr/has locked tables, and another session waits for its end/,
        "tables locked, $name: and told why");
    $waiter->query('ROLLBACK');
    $holder->ends(undef, "tables locked, $name: CREATE INDEX CONCURRENTLY completes");
    $waiter->shows('SELECT count(*) FROM item', 10, "tables locked, $name: the session goes on");
    is(holds_anything($waiter), 0, "tables locked, $name: and holds nothing");
    leave($observer, $waiter);
    $observer->run('DROP INDEX item_id');
}
release();
leave($observer, $gate);

# A call that need not wait.
my $free = session();
$free->run($CALL, 'BEGIN', $CALL, 'INSERT INTO log VALUES (\'free\', 0)', 'COMMIT',
    'DO $$ BEGIN CALL wait_nested(); END $$');
$free->shows("SELECT advisory.hold_count('await', 'a')", 3,
    'a free lock is taken at once, and counts');
$free->disconnect;

# ---- Beside it, what a wait in a query does ------------------------------------------------------

take();
my $blocker = waiting([ "SET deadlock_timeout = '100ms'" ], "SELECT advisory.lock('await', 'a')");
isnt($observer->value('SELECT backend_xmin FROM pg_stat_activity WHERE pid = ?', $blocker->pid),
    undef,
    'a waiter in SELECT advisory.lock() has an xmin');
my $index = build_index();
$holder->run('DROP INDEX IF EXISTS item_id');
release();
my $end = $blocker->finish;
is_deeply([ sort map { $_->{state} // 'done' } $index, $end ], [ '40P01', 'done' ],
    'and CREATE INDEX CONCURRENTLY by the holder is a deadlock (so the test can fail)');
$blocker->disconnect;

# ---- Where it is refused -------------------------------------------------------------------------

my $session = session();
for my $free (0, 1) {
    take() unless $free;
    for my $place (
        [ 'REPEATABLE READ', ['BEGIN ISOLATION LEVEL REPEATABLE READ'], $CALL ],
        [ 'SERIALIZABLE', ['BEGIN ISOLATION LEVEL SERIALIZABLE'], $CALL ],
        [ 'an open cursor', [ 'BEGIN', 'DECLARE c CURSOR FOR SELECT * FROM item' ], $CALL ],
        [ 'a transaction that has written', [ 'BEGIN', "INSERT INTO log VALUES ('x', 0)" ], $CALL ],
        [ 'one that has locked rows', [ 'BEGIN', 'SELECT * FROM item FOR UPDATE' ], $CALL ],
        [ 'one that has asked for its id', [ 'BEGIN', 'SELECT pg_current_xact_id()' ], $CALL ],
        [ 'one that has written in a savepoint',
            [ 'BEGIN', 'SAVEPOINT s', "INSERT INTO log VALUES ('x', 0)" ], $CALL ],
        [ 'DO in BEGIN', ['BEGIN'], "DO \$\$ BEGIN $CALL; END \$\$" ],
        [ 'a procedure in BEGIN', ['BEGIN'], 'CALL wait_in_procedure()' ],
        [ 'a function', [], 'SELECT wait_in_function()' ],
        [ 'a function in a procedure', [], 'DO $$ BEGIN PERFORM wait_in_function(); END $$' ],
        [ 'a procedure with a SET clause', [], 'CALL wait_with_setting()' ],
        [ 'a loop over a query', [], 'CALL wait_in_loop()' ],
        [ 'a procedure that has written', [], 'CALL wait_after_writing()' ],
        [ 'a procedure with an open cursor', [], 'CALL wait_with_cursor()' ],
        [ 'a block with EXCEPTION',             [],
            "DO \$\$ BEGIN $CALL; EXCEPTION WHEN division_by_zero THEN NULL; END \$\$" ],
        [ 'REPEATABLE READ, extended protocol', ['BEGIN ISOLATION LEVEL REPEATABLE READ'],
            'CALL advisory.await_lock(?, ?)', 'await', 'a' ],
    ) {
        my ($name, $before, @call) = @$place;
        $name .= ', though the lock is free' if $free;
        $session->run(@$before);
        $session->start(@call);
        my $result = $session->finish(10);
        is($result->{state}, '25001', "$name: 25001") or diag(explain($result));
        like($result->{detail}, qr/\w.*\.$/, "$name: and says why");
        $session->query('ROLLBACK') if @$before;
        $session->shows('SELECT count(*) FROM item', 10, "$name: the session goes on");
        $observer->shows('SELECT backend_xmin FROM pg_stat_activity WHERE pid = ?', 'NULL',
            "$name: without a snapshot left behind", $session->pid);
        is(holds_anything($session), 0, "$name: and holds nothing");
    }
    # Refused and caught, the procedure goes on.
    $session->run('CALL wait_in_block()');
    release() unless $free;
}
$observer->shows("SELECT count(*) FROM log WHERE waited_in IN ('refused', 'went on')", 4,
    'a procedure that catches the refusal goes on, and commits');

# ---- How else the wait can end -------------------------------------------------------------------

take();
for my $place (
    [ 'top level',   [],                $CALL ],
    [ 'in BEGIN',    ['BEGIN'],         $CALL ],
    [ 'a procedure', [],                'CALL wait_nested()' ],
    [ 'extended protocol', [],          'CALL advisory.await_lock(?, ?)', 'await', 'a' ],
) {
    my ($name, $before, @call) = @$place;
    for my $way (
        [ 'cancel',            [],
            sub { $observer->value('SELECT pg_cancel_backend(?)', $_[0]->pid) }, '57014' ],
        [ 'statement_timeout', [ "SET statement_timeout = '80ms'" ], sub { }, '57014' ],
        [ 'lock_timeout',      [ "SET lock_timeout = '80ms'" ], sub { }, '55P03' ],
    ) {
        my ($how, $settings, $act, $state) = @$way;
        my $waiter = session()->run(@$settings, @$before);
        $waiter->start(@call);
        waits($observer, $waiter) if $how eq 'cancel';
        $act->($waiter);
        $waiter->ends($state, "$name, $how: $state");
        $waiter->query('ROLLBACK') if @$before;
        $waiter->shows('SELECT count(*) FROM item', 10, "$name, $how: the session goes on");
        is(holds_anything($waiter), 0, "$name, $how: and holds nothing");
    }
}
my $late = session();
my $error = $late->fails("CALL advisory.await_lock('await', 'a', '30ms')", '55P03',
    'its own timeout: 55P03');
like($error->{message}, qr/"await\/a" within 30 ms/, 'names lock and limit');
like($error->{detail}, qr/Process ${\$holder->pid}\b/, 'and the holder');
is(holds_anything($late), 0, 'and holds nothing');

my $doomed = waiting([], $CALL);
$observer->value('SELECT pg_terminate_backend(?)', $doomed->pid);
ok($doomed->finish->{state}, 'terminated while waiting, the call ends');
until_gone($observer, $doomed);
$observer->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", 0,
    'and is out of the queue');
release();
$late->shows("SELECT advisory.try_lock('await', 'a')", 1, 'the lock can be taken afterwards');
$late->disconnect;

# ---- What a plain role looks up on the way -------------------------------------------------------
# By key, in a new session: to decide whether the role may see the name, it has to read catalogs
# first.
take();
my $role = "advisory_await_$$";
$observer->run("CREATE ROLE $role LOGIN");
my $plain = session(role => $role);
waits($observer, $plain, 'CALL advisory.await_lock_key('
    . $observer->value("SELECT advisory.key('await', 'a')") . ')');
$observer->shows('SELECT backend_xmin FROM pg_stat_activity WHERE pid = ?', 'NULL',
    'a plain role waits for a key without a snapshot, too', $plain->pid);
release();
$plain->ends(undef, 'and gets it');
$plain->disconnect;
wait_until('the role is not in use',
    sub { !$observer->value('SELECT count(*) FROM pg_stat_activity WHERE usename = ?', $role) });
$observer->run("DROP ROLE $role");

# ---- A snapshot that stays -----------------------------------------------------------------------
# Without the lock on its virtual transaction ID, CREATE INDEX CONCURRENTLY would not wait for the
# cursor, which would then miss rows.
take();
for my $cursor ('', 'DECLARE c CURSOR FOR SELECT i FROM generate_series(1, 9) AS i') {
    my $waiter = session()->run('BEGIN', grep { $_ } $cursor);
    waits($observer, $waiter, "CALL advisory.run('await', 'a', 'SELECT 1', '1min')");
    is($observer->value("SELECT count(*) FROM pg_locks WHERE locktype = 'virtualxid' AND pid = ?",
            $waiter->pid), $cursor ? 1 : 0,
        $cursor ? 'run() beside an open cursor keeps the lock on its virtual transaction ID'
        : 'without one it waits without that lock');
    $observer->value('SELECT pg_cancel_backend(?)', $waiter->pid);
    $waiter->ends('57014', '... and can be cancelled');
    $waiter->run('ROLLBACK')->disconnect;
}
release();

done_testing();
