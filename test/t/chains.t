#!/usr/bin/env perl
# A failed wait whose holder itself waits: DETAIL says for whom, also through locks of other kinds, and HINT names the session
# at the root of the chain. Pids and times do not fit into expected output.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Semaphores;
use Test::More;

my $look = observer();
my $user = $ENV{PGUSER};
my $SINCE = qr/since \d{4}-\d\d-\d\d [^\n]*?/;
$look->run('CREATE TABLE item (id int PRIMARY KEY, n int)', 'INSERT INTO item VALUES (1, 0), (2, 0)', 'CREATE TABLE other (n int)');

my $asks = session(application => 'asks');
my $LOCK = q(SELECT advisory.lock('chain', 'a', '0'));

# A new session that holds the lock, and then waits in the statement.
sub middle {
    my ($wants, @first) = @_;
    my $session = session(application => 'middle')->run(q(SET deadlock_timeout = '1h'), q(SELECT advisory.lock('chain', 'a')), @first);
    $session->start($wants);
    return waits_somehow($session);
}

# It waits for a lock, itself or in a parallel worker, or for a slot.
sub waits_somehow {
    my ($session) = @_;
    wait_until('the session waits', sub {
        $look->value(q(SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE coalesce(a.leader_pid, a.pid) = ? AND NOT l.granted AND l.waitstart IS NOT NULL)
                           OR EXISTS (SELECT FROM advisory.locks WHERE pid = ? AND NOT granted AND wait_start IS NOT NULL)), $session->pid, $session->pid) });
    return $session;
}

sub root { return session(application => 'root')->run('BEGIN', @_) }

sub end_of {
    my @sessions = @_;
    leave($look, @sessions);
    return;
}

# ---- What the holder waits for, of every kind ------------------------------------------------------------------------

# By name: the statements of the root in its transaction, the statement in which the holder waits, and those before it.
my %kind = (
    'a row'                => [ [ 'UPDATE item SET n = 1 WHERE id = 1' ], 'UPDATE item SET n = 2 WHERE id = 1' ],
    'a unique key'         => [ [ 'INSERT INTO item VALUES (3, 0)' ], 'INSERT INTO item VALUES (3, 1)' ],
    'a table'              => [ [ 'LOCK other' ], 'SELECT * FROM other' ],
    'a native lock'        => [ [ 'SELECT pg_advisory_xact_lock(7, 8)' ], 'SELECT pg_advisory_lock_shared(7, 8)' ],
    'a lock by name'       => [ [ q(SELECT advisory.lock('chain', 'b')) ], q(SELECT advisory.lock('chain', 'b')) ],
    'a slot'               => [ [ q(SELECT advisory.acquire('chain', 's', 2) FROM generate_series(1, 2)) ], q(SELECT advisory.acquire('chain', 's', 2)) ],
    'a slot, with another' => [ [ q(SELECT advisory.acquire('chain', 's', 2)) ], q(SELECT advisory.acquire('chain', 's', 2)), q(SELECT advisory.acquire('chain', 's', 2)) ],
    'the only slot'        => [ [ q(SELECT advisory.acquire('chain', 's', 1)) ], q(SELECT advisory.acquire('chain', 's', 1)) ],
    'without a snapshot'   => [ [ q(SELECT advisory.lock('chain', 'b')) ], q(CALL advisory.await_lock('chain', 'b')) ],
);
for my $what (sort keys %kind) {
    my ($does, $wants, @first) = @{ $kind{$what} };
    my $root = root(@$does);
    my $middle = middle($wants, @first);
    my ($m, $r) = ($middle->pid, $root->pid);
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{^Process $m of role "$user", application "middle", holds it in exclusive mode; it itself waits for process $r of role "$user", application "root", which is idle in transaction $SINCE\.$},
        "$what: the detail says for whom the holder waits");
    is($error->{hint}, "To see what process $r does: SELECT * FROM pg_stat_activity WHERE pid = $r. To end it: SELECT pg_terminate_backend($r).", '... and the hint how to end that');
    $look->run("SELECT pg_terminate_backend($r)");
    is($middle->finish->{state}, undef, '... which lets the holder go on');
    end_of($root, $middle);
}

# A parallel worker waits for what its leader does not need.
{
    my $root = root('LOCK other');
    $look->run('CREATE FUNCTION reads_other(int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN RETURN (SELECT count(*) FROM other); END $$');
    my $middle = middle('SELECT max(reads_other(id)) FROM item', q(SET parallel_setup_cost = 0), q(SET parallel_tuple_cost = 0), q(SET min_parallel_table_scan_size = 0),
        'SET parallel_leader_participation = off');
    my ($m, $r) = ($middle->pid, $root->pid);
    is($look->value('SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted', $m), 0, 'only a parallel worker waits');
    like($asks->query($LOCK)->{detail}, qr{^Process $m .* holds it in exclusive mode; it itself waits for process $r }, '... and the detail says so of its leader');
    $root->run('COMMIT');
    is($middle->finish->{state}, undef, 'the holder goes on');
    end_of($root, $middle);
}

# A prepared transaction at the root.
{
    leave($look, root('UPDATE item SET n = 1 WHERE id = 1', q(PREPARE TRANSACTION 'a gid')));
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{ holds it in exclusive mode; it itself waits for prepared transaction "a gid"\.$}, 'a prepared transaction');
    is($error->{hint}, q(To end the prepared transaction that the holder waits for: COMMIT PREPARED 'a gid' or ROLLBACK PREPARED 'a gid'.), '... and its hint');
    $look->run(q(ROLLBACK PREPARED 'a gid'));
    $middle->finish;
    end_of($middle);
}

# ---- Longer chains, and who asks for what ----------------------------------------------------------------------------

{
    # The root has a row; the next the slot of a semaphore, and waits for the row; the holder waits for the slot.
    my $root = root('UPDATE item SET n = 1 WHERE id = 1');
    my $between = root(q(SELECT advisory.acquire('chain', 's', 2) FROM generate_series(1, 2)));
    $between->start('UPDATE item SET n = 2 WHERE id = 1');
    waits_somehow($between);
    my $middle = middle(q(SELECT advisory.acquire('chain', 's', 2)), q(SELECT advisory.acquire('chain', 'asked for', 2) FROM generate_series(1, 2)));
    my ($m, $b, $r) = map { $_->pid } $middle, $between, $root;
    my $chain = qr{it itself waits for process $b, which in the end waits for process $r of role "$user", application "root", which is idle in transaction $SINCE\.};
    my $key = $look->value(q(SELECT advisory.key('chain', 'a')));
    for my $case (
        [ $LOCK, qr{holds it in exclusive mode} ],
        [ q(SELECT advisory.lock('chain', 'a', '10ms')), qr{holds it in exclusive mode} ],
        [ "SELECT advisory.xact_lock_shared_key($key, '0')", qr{holds it in exclusive mode} ],
        [ q(SELECT advisory.lock_all('chain', ARRAY['a', 'z'], '0')), qr{holds it in exclusive mode} ],
        [ q(CALL advisory.await_lock('chain', 'a', '0')), qr{holds it in exclusive mode} ],
        [ q(SELECT advisory.acquire('chain', 'asked for', 2, '0')), qr{has slot 1} ],
        [ q(CALL advisory.run('chain', 'a', 'SELECT 1', if_busy => 'error')), qr{holds it in exclusive mode} ],
    ) {
        my ($statement, $holds) = @$case;
        my $error = $asks->query($statement);
        is($error->{state}, '55P03', "$statement: 55P03");
        like($error->{detail}, qr{^Process $m of role "$user", application "middle", $holds; $chain}, '... with the chain');
        like($error->{hint}, qr{To end it: SELECT pg_terminate_backend\($r\)\.$}, '... and how to end its root');
    }
    my $result = $asks->query(q(CALL advisory.run('chain', 'a', 'SELECT 1')));
    like("@{ $result->{warnings} }", qr{DETAIL:\s+Process $m .* holds it in exclusive mode; $chain}, 'the notice of run()');

    # A holder that does not wait is ended as ever, and so is one that waits no more.
    $root->run('COMMIT');
    $between->finish;
    $between->run('ROLLBACK');
    is($between->value(q(SELECT advisory.release('chain', 's'))), 1, 'all have gone on');
    $middle->finish;
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{^Process $m of role "$user", application "middle", holds it in exclusive mode; it is idle $SINCE\.$}, 'then the detail has the state of the holder');
    like($error->{hint}, qr{SELECT advisory\.terminate_holder\('chain', 'a', $m\)\.$}, '... and the hint how to end it');
    end_of($root, $between, $middle);
}

# Only a waiter is in the way: its chain is told.
{
    my $root = session(application => 'root')->run(q(SELECT advisory.lock_shared('chain', 'w')));
    my $waiter = session(application => 'waiter');
    $waiter->start(q(SELECT advisory.lock('chain', 'w')));
    waits_somehow($waiter);
    my ($w, $r) = ($waiter->pid, $root->pid);
    my $error = $asks->query(q(SELECT advisory.lock_shared('chain', 'w', '0')));
    like($error->{detail}, qr{^Process $w .* waits for it in exclusive mode; it itself waits for process $r of role "$user", application "root", which is idle $SINCE\.$}, 'a waiter ahead in the queue');
    like($error->{hint}, qr{To end it: SELECT pg_terminate_backend\($r\)\.$}, '... and its hint');
    # If the holder blocks, too, the message names it alone.
    like($asks->query(q(SELECT advisory.lock('chain', 'w', '0')))->{detail},
        qr{^Process $r .* holds it in shared mode; it is idle $SINCE\.\nProcess $w .* waits for it in exclusive mode; it is active $SINCE\.$}, 'behind a holder');
    $root->run(q(SELECT advisory.unlock_shared('chain', 'w')));
    $waiter->finish;
    end_of($root, $waiter);
}

# ---- Roots that are not to be ended ----------------------------------------------------------------------------------

# A root that works, and one whose state may not be seen.
{
    my $root = root('UPDATE item SET n = 1 WHERE id = 1');
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    my $r = $root->pid;
    my $role = "advisory_chains_$$";
    $look->run("CREATE ROLE $role LOGIN");
    my $stranger = session(role => $role);
    my $error = $stranger->query($LOCK);
    like($error->{detail}, qr{; it itself waits for process $r of role "$user", application "root"\.$}, 'a role that may not see the state does not');
    is($error->{hint}, "To see what process $r does: SELECT * FROM pg_stat_activity WHERE pid = $r.", '... nor is told to end it');
    $root->start('SELECT pg_sleep(60)');
    wait_until('the root works', sub { $look->value(q(SELECT state = 'active' FROM pg_stat_activity WHERE pid = ?), $r) });
    $error = $asks->query($LOCK);
    like($error->{detail}, qr{; it itself waits for process $r of role "$user", application "root", which is active $SINCE\.$}, 'a root that works');
    is($error->{hint}, "To see what process $r does: SELECT * FROM pg_stat_activity WHERE pid = $r.", '... is not to be ended');
    end_of($stranger, $root);
    $middle->finish;
    end_of($middle);
    $look->run("DROP ROLE $role");
}

# This session itself.
{
    $asks->run('BEGIN', 'UPDATE item SET n = 1 WHERE id = 1');
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{ holds it in exclusive mode; it itself waits for this session\.$}, 'the holder waits for this session');
    is($error->{hint}, 'End this transaction, or release what the holder waits for, and try again.', '... which is told what to do');
    $asks->run('ROLLBACK');
    is($middle->finish->{state}, undef, '... and so the holder goes on');
    end_of($middle);
}

# A deadlock that is not found yet.
{
    my @pair = map { session(application => "pair $_")->run(q(SET deadlock_timeout = '1h'), 'BEGIN', "UPDATE item SET n = 1 WHERE id = $_") } 1, 2;
    my $middle = middle('UPDATE item SET n = 2 WHERE id = 1');
    $pair[0]->start('UPDATE item SET n = 3 WHERE id = 2');
    waits_somehow($pair[0]);
    $pair[1]->start('UPDATE item SET n = 3 WHERE id = 1');
    waits_somehow($pair[1]);
    my $first = $pair[0]->pid;
    my $error = $asks->query($LOCK);
    like($error->{detail}, qr{ holds it in exclusive mode; it itself waits for process \d+, in a cycle of waits\.$}, 'a cycle is told as one');
    like($error->{hint}, qr{advisory\.terminate_holder\('chain', 'a', @{[ $middle->pid ]}\)\.$}, '... with the usual hint');
    $look->value('SELECT pg_terminate_backend(?)', $_->pid) for @pair;
    $middle->finish;
    end_of($middle);
}

# A session that waits for a slot while another slot's holder is free to go on is in no cycle.
{
    my $root = session(application => 'root')->run(q(SELECT advisory.acquire('chain', 's', 2)));
    my $middle = middle(q(SELECT advisory.acquire('chain', 's', 2)), q(SELECT advisory.acquire('chain', 's', 2)));
    my $r = $root->pid;
    like($asks->query($LOCK)->{detail}, qr{; it itself waits for process $r of role "$user", application "root", which is idle }, 'the holder of the other slot');
    end_of($root);
    $middle->finish;
    end_of($middle);
}

leave($look, $asks);
done_testing;
