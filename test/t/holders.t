#!/usr/bin/env perl
# Who holds a lock or a slot, and how to end that session: holders(), terminate_holder() and
# terminate_holder_key(), and the statements that the hints of failed waits give, which are run as
# they stand.
use AdvisoryTest;
use List::Util qw(max);
use Semaphores;

my $look = observer();
my $asks = session(application => 'asks');

# The statements of a hint.
sub statements { return $_[0] =~ /(SELECT .*?)\.(?: |$)/g }

# ---- Hints: the statement that looks shows the holder, and the one that ends it ends it ----------

my $LONG = 'n' x 300;
for my $case (
    # What it is called, taken by the holder, asked for, how the functions are called.
    [ 'a lock by name',         q(SELECT advisory.lock('look', 'a')),
        q(SELECT advisory.lock('look', 'a', '0')),           q(('look', 'a')) ],
    [ 'a lock by key',          q(SELECT pg_advisory_lock(-42)),
        q(SELECT advisory.lock_key(-42, '0')),               '_key(-42)' ],
    [ 'a key with a label',     q(SELECT advisory.lock_key(43, label => 'l')),
        q(SELECT advisory.lock_key(43, '0', 'l')),           '_key(43)' ],
    [ 'a name of 300 bytes',    qq(SELECT advisory.lock('look', '$LONG')),
        qq(SELECT advisory.lock('look', '$LONG', '0')),      undef ],
    [ 'a slot',                 q(SELECT advisory.acquire('look', 's', 2) FROM generate_series(1,
        2)), q(SELECT advisory.acquire('look', 's', 2, '0')), q(('look', 's')) ],
    [ 'the only slot',          q(SELECT advisory.acquire('look', 'one', 1)),
        q(SELECT advisory.acquire('look', 'one', 1, '0')),   q(('look', 'one')) ],
    [ 'a slot of a long name',  qq(SELECT advisory.acquire('look', '$LONG', 1)),
        qq(SELECT advisory.acquire('look', '$LONG', 1, '0')), undef ],
) {
    my ($what, $takes, $wants, $call) = @$case;
    my $holder = session(application => 'holder')->run($takes);
    my $pid = $holder->pid;
    my $hint = $asks->query($wants)->{hint};
    my ($looks, $ends) = statements($hint);
    $call //= '_key(' . $look->value('SELECT advisory.key(?, ?)', 'look', $LONG) . ')';
    is($looks, 'SELECT * FROM advisory.blockers', "$what: the hint says how to look")
        or diag $hint;
    my $waiter = session()->start($wants =~ s/'0'/'1h'/r);
    $look->wait_until('it waits', 'SELECT count(*) FROM advisory.locks WHERE pid = ? AND NOT granted
        AND wait_start IS NOT NULL', $waiter->pid);
    is_deeply([ $look->column($looks) ], [$pid], '... which shows the holder while others wait');
    is($ends, "SELECT advisory.terminate_holder" . substr($call, 0, -1)
        . ", $pid, kind => '" . ($wants =~ /acquire/ ? 'semaphore' : 'lock') . "')",
        '... and how to end it');
    $look->shows($ends, 1, '... which ends it');
    $waiter->finish;
    leave($look, $waiter);
    $look->shows('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', 0, '... indeed', $pid);
}

{
    my $holder = session()
        ->run(q(SELECT advisory.lock('look', 'modes'), advisory.lock_shared('look', 'modes')));
    my $waiter = session()->start(q(SELECT advisory.lock('look', 'modes')));
    waits($look, $waiter);
    is_deeply($look->value('SELECT blocked_by FROM advisory.locks WHERE pid = ?', $waiter->pid),
        [ $holder->pid ], 'a session that holds a lock in both modes is in the way once');
}

# ---- holders() shows the lock, the slots and the queue of one name -------------------------------

{
    my ($lock, $slots, $wants_lock) = map { session() } 1 .. 3;
    $lock->run(q(SELECT advisory.lock('sem', 'both')));
    $slots->run((q(SELECT advisory.acquire('sem', 'both', 200))) x 2);
    leave($look, session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'both', 3)),
            q(PREPARE TRANSACTION 'both')));
    my $slot = session()->run(q(SELECT advisory.acquire('sem', 'both', 200)
        FROM generate_series(1, 197)));
    my ($wants_slot) = queue_up('both', 2, {});
    waits($look, $wants_lock, q(SELECT advisory.lock_shared('sem', 'both')));
    my $key = $look->value(q(SELECT advisory.key('sem', 'both')));
    for my $call (q(holders('sem', 'both')), "holders_key($key)") {
        is_deeply($look->rows("SELECT pid, gid, kind, slot, mode, granted, blocked_by
                FROM advisory.$call WHERE slot IS NULL OR slot <= 3 OR slot = 200
                ORDER BY kind, granted DESC, slot"),
            [ [ $lock->pid, undef, 'lock', undef, 'exclusive', 1, undef ],
              [ $wants_lock->pid, undef, 'lock', undef, 'shared', 0, [ $lock->pid ] ],
              [ $wants_slot->pid, undef, 'queue', undef, 'exclusive', 0, [ $slots->pid ] ],
              [ $slots->pid, undef, 'semaphore', 1, 'exclusive', 1, undef ],
              [ $slots->pid, undef, 'semaphore', 2, 'exclusive', 1, undef ],
              [ undef, 'both', 'semaphore', 3, 'exclusive', 1, undef ],
              [ $slot->pid, undef, 'semaphore', 200, 'exclusive', 1, undef ] ],
              "$call: lock, queue and slots");
        $look->shows("SELECT count(*) FROM advisory.$call", 203, '... all of them');
    }
    $look->shows(q(SELECT count(*) FROM advisory.holders('sem', 'other')), 0,
        'nothing of another name');

    # It ends the session that holds the last slot, but no session that only waits for a slot or
    # holds another lock.
    my $ends = q(SELECT advisory.terminate_holder('sem', ?, ?::int));
    for my $case ([ 'who waits for a slot', 'both', $wants_slot ], [ 'who waits for the lock',
            'both', $wants_lock ], [ 'who has slots of another semaphore', 'other', $slots ]) {
        my ($who, $name, $session) = @$case;
        my $result = $look->query($ends, $name, $session->pid);
        is($result->{value}, 0, "terminate_holder() of $who: false");
        my $pid = $session->pid;
        my $neither = qq{hold advisory lock "sem/$name", nor a slot of the semaphore of that name};
        like("@{ $result->{warnings} }", qr{PID $pid does not $neither}, '... with a warning');
    }
    $look->shows($ends, 1, 'who has the last slots', 'both', $slot->pid);
    $look->run(q(ROLLBACK PREPARED 'both'));
    $look->shows(qq(SELECT advisory.terminate_holder_key($key, ?::int)), 1, 'by key, who has two',
        $slots->pid);
    # Whichever was released first.
    like($wants_slot->finish->{value}, qr/^[12]$/, 'the waiter has one of them');
    $slots = $wants_slot;
    $slots->run(releases('both'));
    $look->shows($ends, 0, 'not who has just released it', 'both', $slots->pid);
    $lock->run(q(SELECT advisory.unlock('sem', 'both')));
    $wants_lock->finish;
}

# Slots of a prepared transaction that no session knows of any more.
{
    leave($look, session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'prepared', 100)
            FROM generate_series(1, 100)), q(PREPARE TRANSACTION 'slots')));
    my $other = session()->run(tries('prepared', 1));
    $look->shows(q(SELECT gid, count(*), max(slot) FROM advisory.holders('sem', 'prepared')
        GROUP BY 1), 'slots|100|100', 'holders() shows all slots of a prepared transaction');
    $look->run(q(ROLLBACK PREPARED 'slots'));
}

# ---- Privileges ----------------------------------------------------------------------------------

{
    my $role = "advisory_holders_$$";
    $look->run("CREATE ROLE $role LOGIN");
    my $stranger = session(role => $role);
    my $holder = holder('private', 1);
    my $key = $look->value(q(SELECT advisory.key('sem', 'private')));
    for my $call ("terminate_holder('sem', 'private'", "terminate_holder_key($key") {
        $stranger->fails("SELECT advisory.$call, ?::int)", '42501',
            "$call …) without the privilege", $holder->pid);
    }
    $stranger->shows(q(SELECT pid, kind, slot, state, query FROM advisory.holders('sem',
        'private')), "$holder->{pid}|semaphore|1|NULL|<insufficient privilege>",
        'holders() of a slot shows no more than of a lock');
    $holder->shows('SELECT 1', 1, 'the holder lives');
    leave($look, $stranger, $holder);
    $look->run("DROP ROLE $role");
}

# ---- What it costs -------------------------------------------------------------------------------

# A prepared transaction may have slots that no session knows of any more; only such slots cost.
{
    my $looks = q(SELECT count(*)
        FROM generate_series(1, 1000) AS n, advisory.holders('look', 'nobody' || n));
    my $time = sub { return undisturbed_time(sub { $look->run($looks) }, $look) };
    my $prepares = session();
    my $plain = $time->();
    $prepares->run('BEGIN', q(SELECT advisory.xact_lock('look', 'prepared')),
        "PREPARE TRANSACTION 'look $$'");
    # Each look for 16,000 slots takes about a millisecond.
    cmp_ok($time->(), '<', 3 * max($plain, 0.05),
        'a prepared transaction does not slow holders() down');
    $prepares->run("ROLLBACK PREPARED 'look $$'", 'BEGIN',
        q(SELECT advisory.xact_acquire('look', 'slots', 16000)), "PREPARE TRANSACTION 'look $$'");
    leave($look, $prepares);
    $look->shows(q(SELECT slot, gid FROM advisory.holders('look', 'slots')), "1|look $$",
        '... whose slots it shows');
    $look->run("ROLLBACK PREPARED 'look $$'");
}
done_testing;
