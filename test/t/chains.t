#!/usr/bin/env perl
# A failed wait whose holder itself waits: DETAIL says so, and HINT names wait_tree(), which shows
# for whom, through locks of every kind, although nobody waits for the advisory lock any more. Pids
# and times do not fit into expected output.
use AdvisoryTest;
use Semaphores;

my $look = observer();
my $user = $ENV{PGUSER};
my $SINCE = qr/since \d{4}-\d\d-\d\d [^\n]*?/;
my $HOLDS = q(application "middle", holds it in exclusive mode; it is);
$look->run('CREATE TABLE item (id int PRIMARY KEY, n int)',
    'INSERT INTO item VALUES (1, 0), (2, 0)', 'CREATE TABLE other (n int)');

my $asks = session(application => 'asks');
my $LOCK = q(SELECT advisory.lock('chain', 'a', '0'));

# A new session that holds the lock, and then waits in the statement.
sub middle ($wants, @first) {
    my $session = session(application => 'middle')->run(q(SET deadlock_timeout = '1h'),
        q(SELECT advisory.lock('chain', 'a')), @first);
    $session->start($wants);
    return waits_somehow($session);
}

# It waits for a lock, itself or in a parallel worker, or for a slot.
sub waits_somehow ($session) {
    $look->wait_until('the session waits',
        q(SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE coalesce(a.leader_pid, a.pid) = ? AND NOT l.granted AND l.waitstart IS NOT NULL)
                           OR EXISTS (SELECT FROM advisory.locks WHERE pid = ? AND NOT granted
                           AND wait_start IS NOT NULL)), $session->pid, $session->pid);
    return $session;
}

sub root { return session(application => 'root')->run('BEGIN', @_) }

sub end_of {
    my @sessions = @_;
    leave($look, @sessions);
    return;
}

# The HINT, and what the statement in it shows: the session at the root of the waits of this one.
my $HINT = 'To see who waits for whom: SELECT * FROM advisory.wait_tree().';

sub root_of ($session) {
    return $look->value('SELECT root_pid FROM advisory.waits WHERE pid = ?', $session->pid);
}

# ---- What the holder waits for, of every kind ----------------------------------------------------

# By name: the statements of the root in its transaction, the statement in which the holder waits,
# and those before it.
my %kind = (
    'a row'                => [ [ 'UPDATE item SET n = 1 WHERE id = 1' ],
        'UPDATE item SET n = 2 WHERE id = 1' ],
    'a unique key'         => [ [ 'INSERT INTO item VALUES (3, 0)' ],
        'INSERT INTO item VALUES (3, 1)' ],
    'a table'              => [ [ 'LOCK other' ], 'SELECT * FROM other' ],
    'a native lock'        => [ [ 'SELECT pg_advisory_xact_lock(7, 8)' ],
        'SELECT pg_advisory_lock_shared(7, 8)' ],
    'a lock by name'       => [ [ q(SELECT advisory.lock('chain', 'b')) ],
        q(SELECT advisory.lock('chain', 'b')) ],
    'a slot'               => [ [ q(SELECT advisory.acquire('chain', 's', 2)
        FROM generate_series(1, 2)) ], q(SELECT advisory.acquire('chain', 's', 2)) ],
    'a slot, with another' => [ [ q(SELECT advisory.acquire('chain', 's', 2)) ],
        q(SELECT advisory.acquire('chain', 's', 2)), q(SELECT advisory.acquire('chain', 's', 2)) ],
    'the only slot'        => [ [ q(SELECT advisory.acquire('chain', 's', 1)) ],
        q(SELECT advisory.acquire('chain', 's', 1)) ],
    'without a snapshot'   => [ [ q(SELECT advisory.lock('chain', 'b')) ],
        q(CALL advisory.await_lock('chain', 'b')) ],
);
for my $what (sort keys %kind) {
    my ($does, $wants, @first) = @{ $kind{$what} };
    my $root = root(@$does);
    my $middle = middle($wants, @first);
    my ($m, $r) = ($middle->pid, $root->pid);
    my $error = $asks->query($LOCK);
    my $awaited = $what =~ /slot/ ? 'slot' : 'lock';
    like($error->{detail}, qr{^Process $m of role "$user", $HOLDS waiting for a $awaited $SINCE\.$},
        "$what: the detail says that the holder waits");
    is($error->{hint}, $HINT, '... and the hint how to see for whom');
    is(root_of($middle), $r, '... which that shows');
    my $blocked = qr{(?:  .*\n)*? +$m $user\@middle waits for };
    like($look->value(q(SELECT string_agg(line, E'\n') FROM advisory.wait_tree() AS line)),
        qr{^$r $user\@root holds .*, idle in transaction \d+ s\n$blocked}m,
        '... as text, too');
    $look->run("SELECT pg_terminate_backend($r)");
    $middle->ends(undef, '... which lets the holder go on');
    end_of($root, $middle);
}

# A parallel worker waits for what its leader does not need.
{
    my $root = root('LOCK other');
    $look->run('CREATE FUNCTION reads_other(int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS $$
        BEGIN RETURN (SELECT count(*) FROM other); END $$');
    my $middle = middle('SELECT max(reads_other(id)) FROM item', q(SET parallel_setup_cost = 0),
        q(SET parallel_tuple_cost = 0), q(SET min_parallel_table_scan_size = 0),
        'SET parallel_leader_participation = off');
    my ($m, $r) = ($middle->pid, $root->pid);
    $look->shows('SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted', 0,
        'only a parallel worker waits', $m);
    like($asks->query($LOCK)->{detail},
        qr{^Process $m .* holds it in exclusive mode; it is waiting for a lock $SINCE\.$},
        '... and the detail says so of its leader');
    is(root_of($middle), $r, '... under which waits shows it');
    $root->run('COMMIT');
    $middle->ends(undef, 'the holder goes on');
    end_of($root, $middle);
}

# A prepared transaction at the root.
{
    leave($look, root('UPDATE item SET n = 1 WHERE id = 1', q(PREPARE TRANSACTION 'a gid')));
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{ holds it in exclusive mode; it is waiting for a lock $SINCE\.$},
        'a prepared transaction');
    is($error->{hint}, $HINT, '... and its hint');
    is(root_of($middle), 0, '... shows that it is at the root');
    like($look->value('SELECT line FROM advisory.wait_tree() AS line LIMIT 1'),
        qr{^prepared transaction "a gid" of $user holds }, '... by its identifier');
    $look->run(q(ROLLBACK PREPARED 'a gid'));
    $middle->finish;
    end_of($middle);
}

# ---- Longer chains, and who asks for what --------------------------------------------------------

{
    # The root has a row; the next the slot of a semaphore, and waits for the row; the holder waits
    # for the slot.
    my $root = root('UPDATE item SET n = 1 WHERE id = 1');
    my $between = root(q(SELECT advisory.acquire('chain', 's', 2) FROM generate_series(1, 2)));
    $between->start('UPDATE item SET n = 2 WHERE id = 1');
    waits_somehow($between);
    my $middle = middle(q(SELECT advisory.acquire('chain', 's', 2)),
        q(SELECT advisory.acquire('chain', 'asked for', 2) FROM generate_series(1, 2)));
    my ($m, $b, $r) = map { $_->pid } $middle, $between, $root;
    my $waits = qr{it is waiting for a slot $SINCE\.};
    is_deeply($look->value('SELECT path FROM advisory.waits WHERE pid = ?', $m), [ $r, $b, $m ],
        'waits shows the chain');
    my $key = $look->value(q(SELECT advisory.key('chain', 'a')));
    for my $case (
        [ $LOCK, qr{holds it in exclusive mode} ],
        [ q(SELECT advisory.lock('chain', 'a', '10ms')), qr{holds it in exclusive mode} ],
        [ "SELECT advisory.xact_lock_shared_key($key, '0')", qr{holds it in exclusive mode} ],
        [ q(SELECT advisory.lock_all('chain', ARRAY['a', 'z'], '0')),
            qr{holds it in exclusive mode} ],
        [ q(CALL advisory.await_lock('chain', 'a', '0')), qr{holds it in exclusive mode} ],
        [ q(SELECT advisory.acquire('chain', 'asked for', 2, '0')), qr{has slot 1} ],
        [ q(CALL advisory.run('chain', 'a', 'SELECT 1', if_busy => 'error')),
            qr{holds it in exclusive mode} ],
    ) {
        my ($statement, $holds) = @$case;
        my $error = $asks->fails($statement, '55P03', "$statement: 55P03");
        like($error->{detail},
            qr{^Process $m of role "$user", application "middle", $holds; $waits},
            '... and the holder waits');
        is($error->{hint}, $HINT, '... and how to see for whom');
    }
    like($asks->warned(q(CALL advisory.run('chain', 'a', 'SELECT 1'))),
        qr{DETAIL:\s+Process $m .* holds it in exclusive mode; $waits}, 'the notice of run()');

    # A holder that does not wait is ended as ever, and so is one that waits no more.
    $root->run('COMMIT');
    $between->finish;
    $between->run('ROLLBACK');
    $between->shows(q(SELECT advisory.release('chain', 's')), 1, 'all have gone on');
    $middle->finish;
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{^Process $m of role "$user", $HOLDS idle $SINCE\.$},
        'then the detail has the state of the holder');
    like($error->{hint},
        qr{SELECT advisory\.terminate_holder\('chain', 'a', $m, kind => 'lock'\)\.$},
        '... and the hint how to end it');
    end_of($root, $between, $middle);
}

# Only a waiter is in the way.
{
    my $root = session(application => 'root')->run(q(SELECT advisory.lock_shared('chain', 'w')));
    my $waiter = session(application => 'waiter');
    $waiter->start(q(SELECT advisory.lock('chain', 'w')));
    waits_somehow($waiter);
    my ($w, $r) = ($waiter->pid, $root->pid);
    my $error = $asks->query(q(SELECT advisory.lock_shared('chain', 'w', '0')));
    my $waits = qr{Process $w .* waits for it in exclusive mode; it is active $SINCE\.$};
    like($error->{detail}, qr{^$waits}, 'a waiter ahead in the queue');
    is($error->{hint}, $HINT, '... and its hint');
    is(root_of($waiter), $r, '... shows the holder');
    # If the holder blocks, too, the message names it alone.
    like($asks->query(q(SELECT advisory.lock('chain', 'w', '0')))->{detail},
        qr{^Process $r .* holds it in shared mode; it is idle $SINCE\.\n$waits}, 'behind a holder');
    $root->run(q(SELECT advisory.unlock_shared('chain', 'w')));
    $waiter->finish;
    end_of($root, $waiter);
}

# ---- In a function that waits for rows -----------------------------------------------------------

# The lines of wait_tree() from that of a session on, without what tells sessions apart.
sub tree_below ($root) {
    my $tree = $look->value(q(SELECT string_agg(line, E'\n') FROM advisory.wait_tree() AS line));
    return [ map { s/^ *\d+ \S+ |,.*| \d+ s$//gr } split /\n/,
        $tree =~ s/^.*?(?=^@{[$root->pid]} )//msr ];
}

# It waits for a window only while it waits for a transaction that has claimed one, or behind such a
# waiter for the row.
$look->run(q(SELECT advisory.claim('chain', 'nightly', '1 hour', '2026-01-01')));
my ($CLAIM, $UNCLAIM) = (q(SELECT advisory.claim('chain', 'nightly', '1 hour', '2026-01-02')),
    q(SELECT advisory.unclaim('chain', 'nightly', '2026-01-01')));
my $LEASE = q(SELECT token FROM advisory.lease('chain', 'leader', '1 hour', '1 hour'));
my ($IN_CLAIMS, $IN_LEASES) = map { "relation advisory.$_ AccessExclusiveLock" } qw(_claims
    _leases);
for my $case (
    [ 'a window', $CLAIM, $CLAIM, 'holds transaction N exclusive',
        ('waits for a window of chain/nightly shared') x 2 ],
    [ 'a window', $UNCLAIM, $UNCLAIM, 'holds transaction N exclusive',
        map { "waits for a window of chain/nightly $_" } 'shared', 'exclusive' ],
    [ 'the table of windows', 'LOCK advisory._claims', $CLAIM, "holds $IN_CLAIMS",
        ('waits for relation advisory._claims RowExclusiveLock') x 2 ],
    [ 'the table of leases', 'LOCK advisory._leases', $LEASE, "holds $IN_LEASES",
        'waits for relation advisory._leases AccessShareLock',
        'waits for lease chain/leader exclusive' ],
) {
    my ($what, $does, $wants, @lines) = @$case;
    my $root = root($does);
    my @waiters = map { session(application => 'waiter')->run('BEGIN') } 1 .. 2;
    for my $waiter (@waiters) {
        $waiter->start($wants);
        waits_somehow($waiter);
    }
    is_deeply([ map { s/(transaction) \d+/$1 N/r } @{ tree_below($root) } ], \@lines,
        "$what: what wait_tree() says");
    $look->run('SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE pid IN ('
        . join(',', map { $_->pid } @waiters) . ')');
    $_->finish for @waiters;
    end_of($root, @waiters);
}

# ---- Other roots ---------------------------------------------------------------------------------

# A root that works, seen by a role that may not see states.
{
    my $root = root('UPDATE item SET n = 1 WHERE id = 1');
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    my ($m, $r) = ($middle->pid, $root->pid);
    my $role = "advisory_chains_$$";
    $look->run("CREATE ROLE $role LOGIN");
    my $stranger = session(role => $role);
    my $error = $stranger->query($LOCK);
    like($error->{detail}, qr{^Process $m of role "$user", $HOLDS waiting for a lock $SINCE\.$},
        'every role may know of a wait, as in pg_locks');
    is($error->{hint}, $HINT, '... and is told how to see for whom');
    my @tree = $stranger->column('SELECT * FROM advisory.wait_tree()');
    like($tree[0], qr{^$r $user\@root holds transaction \d+ exclusive$},
        '... which does not show the state of the root');
    like($tree[1], qr{^  $m $user\@middle waits for transaction \d+ shared \d+ s$},
        '... but who waits for it');
    $root->start('SELECT pg_sleep(60)');
    $look->wait_until('the root works',
        q(SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = ?), $r);
    like($look->value('SELECT line FROM advisory.wait_tree() AS line LIMIT 1'),
        qr{^$r .*, active \d+ s, waits for PgSleep \(Timeout\)$}, 'a root that works');
    end_of($stranger, $root);
    $middle->finish;
    end_of($middle);
    $look->run("DROP ROLE $role");
}

# This session itself.
{
    $asks->run('BEGIN', 'UPDATE item SET n = 1 WHERE id = 1');
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    is(root_of($middle), $asks->pid, 'the holder waits for this session');
    like($asks->query($LOCK)->{detail},
        qr{ holds it in exclusive mode; it is waiting for a lock $SINCE\.$},
        '... which is told that it waits');
    $asks->run('ROLLBACK');
    $middle->ends(undef, '... and so the holder goes on');
    end_of($middle);
}

# A deadlock that is not found yet.
{
    my @pair = map { session(application => "pair $_")->run(q(SET deadlock_timeout = '1h'), 'BEGIN',
            "UPDATE item SET n = 1 WHERE id = $_") } 1, 2;
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    $pair[0]->start('UPDATE item SET n = 3 WHERE id = 2');
    waits_somehow($pair[0]);
    $pair[1]->start('UPDATE item SET n = 3 WHERE id = 1');
    waits_somehow($pair[1]);
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{ holds it in exclusive mode; it is waiting for a lock $SINCE\.$},
        'a holder behind a cycle');
    is($error->{hint}, $HINT, '... with the same hint');
    my ($first) = sort { $a <=> $b } map { $_->pid } @pair;
    is(root_of($middle), $first, '... which shows the cycle');
    like($look->value('SELECT line FROM advisory.wait_tree() AS line LIMIT 1'),
        qr{^$first .* waits for (?:transaction|row) .*, in a cycle with \d+$}, '... as one');
    $look->value('SELECT pg_terminate_backend(?)', $_->pid) for @pair;
    $middle->finish;
    end_of($middle);
}

# A session that waits for a slot while another slot's holder is free to go on is in no cycle.
{
    my ($middle, $root, $other) = map { session(application => $_) } qw(middle root other);
    # Who has had a slot of one semaphore longest wants a slot of the other. The second holder of
    # both waits for nothing.
    $_->run(q(SELECT advisory.acquire('chain', 's', 2))) for $middle, $root;
    $other->run(q(SELECT advisory.acquire('chain', 't', 2)));
    $root->run(q(SELECT advisory.acquire('chain', 't', 2)));
    $middle->start(q(SELECT advisory.acquire('chain', 't', 2)));
    waits_somehow($middle);
    is(root_of($middle), $other->pid, 'it stands under the holder that has had its slot longest');
    $other->start(q(SELECT advisory.acquire('chain', 's', 2)));
    waits_somehow($other);
    $look->shows('SELECT pid, waits_for_pid FROM advisory.waits ORDER BY depth',
        [ "$root->{pid}|NULL", "$other->{pid}|$root->{pid}", "$middle->{pid}|$other->{pid}" ],
        'but when that one waits for a slot, too, it does not stand under the session that waits '
        . 'for it: there is no cycle');
    end_of($root);
    $_->finish for $middle, $other;
    end_of($middle, $other);
}

done_testing;
