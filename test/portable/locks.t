#!/usr/bin/env perl
# Locks of the portable edition between sessions: what an error says of the holder, the race of
# timeout and grant, cancelled waits for slots, await_lock. (The specs of both editions have waits,
# timeouts, cancelled waits and deadlocks.)
use AdvisoryTest;
use Time::HiRes qw(sleep time);

use constant RACES => 1000;

create_portable_database();
my ($holder, $waiter, $observer) = map { session(application => $_) } qw(holder waiter observer);

# Holds of a session, as the server has them.
sub holds {
    return $observer->value(
        q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = ?),
        $_[0]->pid)
}

# ---- In a WHERE clause ---------------------------------------------------------------------------

# What a lock is for is asked first, however dear it is.
$observer->run('CREATE FUNCTION dear(i integer) RETURNS boolean LANGUAGE plpgsql COST 900
    AS $$ BEGIN RETURN i = 5; END $$');
for my $takes (q(try_lock('where', i)), q(try_lock('where', i::text)), 'try_lock_shared_key(i)',
    q(try_acquire('where', i, 2) > 0), q(try_acquire('where', i::text, 2) > 0),
    q(try_lock_all('where', ARRAY[i])), q(try_acquire_many('where', i, 2, 1) <> '{}'))
{
    is($holder->value("SELECT count(*) FROM generate_series(1, 10) AS i
            WHERE advisory.$takes AND dear(i)") . ' ' . holds($holder), '1 1',
        "$takes: nothing but what the other condition wants");
    $holder->run('SELECT pg_advisory_unlock_all()');
}
$holder->run(q(SELECT advisory.lock('where', i), advisory.acquire('where', i, 2)
    FROM generate_series(1, 10) AS i));
for my $gives (q(unlock('where', i)), q(release('where', i)), q(unlock_all('where', i) > 0)) {
    my $before = holds($holder);
    $holder->run("SELECT FROM generate_series(1, 10) AS i WHERE advisory.$gives AND dear(i)");
    is($before - holds($holder), $gives =~ /all/ ? 0 : 1, "$gives: nor more is released");
}
$holder->run('SELECT pg_advisory_unlock_all()');

# The planner puts the functions' own expressions in the place of their calls.
$holder->run(q(SELECT advisory.lock('where', i) FROM generate_series(1, 3) AS i),
    'CREATE SEQUENCE once');
is_deeply($holder->query(q(SELECT count(*) FROM generate_series(1, 3) AS i
        WHERE NOT advisory.unlock('where', i)))->{warnings}, [],
    'NOT unlock(): no warning about locks that are held');
is(holds($holder), 0, '... and none is left');
$holder->shows(q(SELECT advisory.lock('where', nextval('once')),
    advisory.unlock('where', lastval()), lastval()), '1|1|1', 'an argument is evaluated once');

# ---- A setting without a library -----------------------------------------------------------------

{
    local $ENV{PGOPTIONS} = '-c advisory_ext.unlock_not_held=error';
    session()->fails(q(SELECT advisory.unlock('not', 'held')), '55000',
        'unlock_not_held, set by an option of the connection');
}

# ---- Errors --------------------------------------------------------------------------------------

$holder->run(q(SELECT advisory.lock('billing', 'invoice:42')));
{
    my $error = $waiter->fails(q(SELECT advisory.lock('billing', 'invoice:42', '10ms')), '55P03',
        'a lock that is not free in time');
    my $pid = $holder->pid;
    like($error->{detail},
        qr{^Process\ $pid\ of\ role\ "postgres",\ application\ "holder",\ holds\ it\ in
            \ exclusive\ mode;\ it\ is\ idle\ since\ }x, '... the error names its holder');
    is("$error->{schema} $error->{constraint}", 'billing invoice:42',
        '... and has the fields for programs');
    $waiter->run(q(SET lock_timeout = '20ms'));
    $waiter->run('BEGIN', q(SELECT advisory.try_lock('billing', 'invoice:42', '5ms')));
    $waiter->shows('SHOW lock_timeout', '20ms', 'lock_timeout is as before in the transaction');
    $waiter->run(q(SELECT advisory.lock('billing', 'free', '1s')));
    $waiter->shows('SHOW lock_timeout', '20ms', '... and after a wait that had its lock');
    $waiter->run('COMMIT', 'RESET lock_timeout', 'SELECT pg_advisory_unlock_all()');
}

# Its hint names what shows who waits for what, and the statement that ends the holder, as it is.
for my $case ([ q(lock('hint', 'it''s')), q(lock('hint', 'it''s', '0')), 1 ],
    [ q(lock('hint', E'two\nlines')), q(lock('hint', E'two\nlines', '0')), 1 ],
    [ 'lock_key(-7)', q(lock_key(-7, '0')), 1 ],
    [ 'lock_key(9223372036854775807)', q(lock_key(9223372036854775807, '20ms')), 1 ],
    [ q(acquire('hint', 'slots', 1)), q(acquire('hint', 'slots', 1, '0')), 1 ],
    [ q(acquire('hint', E'two\nlines', 1)), q(acquire('hint', E'two\nlines', 1, '0')), 0 ])
{
    my ($takes, $wants, $is_named) = @$case;
    my $one = session()->run("SELECT advisory.$takes");
    my $pid = $one->pid;
    my $hint = $observer->query("SELECT advisory.$wants")->{hint};
    my ($ends) = $hint =~ m{\ATo\ see\ what\ others\ wait\ for:
        \ SELECT\ \*\ FROM\ advisory\.blockers\.
        (?:\ To\ end\ that\ session:[ ]
            (SELECT\ advisory\.terminate_holder.*,\ $pid,\ kind\ =>\ '\w+'\))\.)?\z}x;
    is(defined $ends, $is_named == 1, "$takes: the hint") or diag $hint;
    $observer->shows($ends, 1, '... ends the holder') if $is_named;
    leave($observer, $one);
}
{
    my $one = session()->run(q(SELECT advisory.lock('hint', 'a')));
    my $two = session()->run(q(SELECT advisory.lock('hint', 'b')));
    waits($observer, $two, q(SELECT advisory.lock('hint', 'a')));
    like($observer->query(q(SELECT advisory.lock('hint', 'b', '0')))->{hint},
        qr/^To see who waits for whom: SELECT \* FROM advisory\.wait_tree\(\)\.$/,
        'a holder that waits is not to be ended');
    leave($observer, $one, $two);
}

# ---- Timeout and grant at the same moment --------------------------------------------------------

{
    my ($true, $false, $wrong) = (0, 0, 0);
    my @ways = ([ 'try_lock', q(SELECT advisory.try_lock('race', 'a', '8ms')) ],
        [ 'lock', q(SELECT advisory.lock('race', 'a', '8ms')) ],
        [ 'shared', q(SELECT advisory.try_lock_shared('race', 'a', '8ms')) ],
        [ 'lock_timeout', q(SELECT advisory.try_lock('race', 'a', NULL)) ],
        [ 'xact', q(SELECT advisory.try_xact_lock('race', 'a', '8ms')) ]);
    for my $race (1 .. RACES) {
        my $way = $ways[ $race % @ways ];
        $holder->run(q(SELECT advisory.lock('race', 'a')));
        $waiter->run($way->[0] eq 'lock_timeout' ? q(SET lock_timeout = '8ms')
            : 'RESET lock_timeout', 'BEGIN');
        $waiter->start($way->[1]);
        if ($race % 4 == 0) {
            # The process stands still while both happen: it gets the lock, and then notices its
            # timeout.
            waits($observer, $waiter);
            # (It may have in its hands what the holder needs, so nothing is waited for meanwhile.)
            kill STOP => $waiter->pid or die "cannot stop the waiter: $!\n";
            $holder->start(q(SELECT advisory.unlock('race', 'a')));
            sleep 0.012;
            kill CONT => $waiter->pid;
            $holder->finish;
        } else {
            sleep 0.007 + rand 0.003;
            $holder->run(q(SELECT advisory.unlock('race', 'a')));
        }
        my $result = $waiter->finish;
        my $has = $result->{value} ? 1 : 0;
        $has ? $true++ : $false++;
        $wrong++ if holds($waiter) != $has;
        $waiter->run('ROLLBACK', 'SELECT pg_advisory_unlock_all()');
        $wrong++ if holds($waiter);
    }
    is($wrong, 0, 'true means held, and false or an error means not held, in ' . RACES . ' races')
        or diag "$true true, $false false";
    cmp_ok($true,  '>', 10, '... of which some had the lock');
    cmp_ok($false, '>', 10, '... and some had not');
    $waiter->run('RESET lock_timeout');
}

# ---- Cancelled waits for a slot hold nothing -----------------------------------------------------

$holder->run(q(SELECT advisory.acquire('c', 's', 1)));
for my $call (q(acquire('c', 's', 1)), q(try_xact_acquire('c', 's', 1, '1min'))) {
    $waiter->start("SELECT advisory.$call");
    wait_until('it polls', sub { holds($waiter) });
    $observer->run('SELECT pg_cancel_backend(' . $waiter->pid . ')');
    $waiter->ends('57014', "a cancelled $call");
    is(holds($waiter), 0, '... holds nothing');
}

# ---- await_lock ----------------------------------------------------------------------------------

$_->run('SELECT pg_advisory_unlock_all()') for $holder, $waiter;
$holder->run(q(SELECT advisory.lock('a', 'w')));
$waiter->start(q(CALL advisory.await_lock('a', 'w')));
my %seen;
wait_until('its snapshots end', sub {
    $seen{ $observer->value('SELECT backend_xmin FROM pg_stat_activity WHERE pid = ?', $waiter->pid)
        // 'none' }++;
    $observer->run('SELECT pg_current_xact_id()');
    keys %seen > 3
});
pass('a waiting session does not keep its snapshot');
is($waiter->is_done, 0, '... and waits');
$holder->run(q(SELECT advisory.unlock('a', 'w')));
$waiter->ends(undef, '... until it has the lock');
$observer->shows(q(SELECT advisory.is_locked('a', 'w')), 1, '... which it keeps');
$holder->fails(q(CALL advisory.await_lock('a', 'w', '30ms')), '55P03',
    '... and a timeout ends such a wait');
$holder->fails(q(BEGIN; CALL advisory.await_lock('a', 'x')), '2D000',
    'in a transaction block it cannot be called');
$holder->run('ROLLBACK');

# Holders in shared mode that overlap, so that the lock is never free, do not keep it out: it waits
# in the queue.
{
    my @holders = map { session() } 1 .. 3;
    $holders[$_]->start("DO \$\$
        BEGIN
            PERFORM pg_sleep($_ * 0.1);
            FOR i IN 1 .. 60 LOOP
                PERFORM advisory.lock_shared('a', 'overlap');
                PERFORM pg_sleep(0.3), advisory.unlock_shared('a', 'overlap');
            END LOOP;
        END \$\$") for 0 .. 2;
    wait_until('all hold it', sub {
        $observer->value(q(SELECT count(*) = 3 FROM advisory.holders('a', 'overlap')
            WHERE granted))
    });
    $waiter->start(q(CALL advisory.await_lock('a', 'overlap', '15 s')));
    $waiter->ends(undef, 'await_lock() gets a lock that overlapping holders share');
    $observer->run('SELECT pg_terminate_backend(' . $_->pid . ')') for @holders;
}

done_testing();
