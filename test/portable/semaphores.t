#!/usr/bin/env perl
# Semaphores of the portable edition: never more than K at once whatever ends the sessions, in turn,
# and nothing is left behind. (`make bench BENCH=portable` has how soon a waiter is woken.)
use AdvisoryTest;
use Semaphores;
use Time::HiRes qw(sleep time);

my $look = observer(portable => 1);

sub locks_of ($session) {
    return $look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?),
        $session->pid);
}

# ---- Nobody is in the way ------------------------------------------------------------------------

# The error names no session to end where there is no other one.
{
    my $session = session()->run(q(SELECT advisory.acquire('mine', 's', 1)));
    my $error = $session->fails(q(SELECT advisory.acquire('mine', 's', 1, '10 ms')), '55P03',
        'all slots are its own');
    is($error->{hint}, 'To see what others wait for: SELECT * FROM advisory.blockers.',
        'the hint names no session to end');
}

# ---- A timeout of the statement is never lost ----------------------------------------------------

# Somebody takes several slots just now, for a tenth of a second and more: a wait that ends then by
# itself must not swallow the timeout, which comes only once.
{
    my ($gate, $waiter) = map { session() } 1, 2;
    $gate->run(q(SELECT pg_advisory_lock(advisory._slot_key('timeout', 's', 16383)),
        advisory.acquire('timeout', 's', 2)));
    $waiter->run(q(SET statement_timeout = '101 ms'));
    my %states;
    for (1 .. 40) {
        $waiter->start(q(SELECT advisory.acquire_many('timeout', 's', 2, 2)));
        my $end = time + 20;
        sleep 0.005 until $waiter->is_done || time > $end;
        $look->run('SELECT pg_terminate_backend(' . $waiter->pid . ')') unless $waiter->is_done;
        my $state = $waiter->finish->{state} // 'none';
        $states{$state}++;
        last if $state ne '57014';
    }
    is_deeply(\%states, { 57014 => 40 }, 'statement_timeout ends each of 40 waits');
    # Nobody can make it wait where it has no limit.
    $gate->run(q(SELECT pg_advisory_lock(advisory._slot_key('timeout', 's', 16002))));
    $waiter->run(q(SET statement_timeout = '20 s'));
    $waiter->shows(q(SELECT advisory.try_acquire_many('timeout', 's', 2, 2, '300 ms')), 'NULL',
        'a wait for several slots ends in time, whatever others lock');
    leave($look, $gate, $waiter);
}

# ---- Never more than K ---------------------------------------------------------------------------

never_beyond(sessions => 16, slots => 3, seconds => 4, kills => 10, cancels => 10, done => 100);

# ---- In turn -------------------------------------------------------------------------------------

{
    my ($holder, @waiters) = map { session() } 1 .. 4;
    $holder->run(q(SELECT advisory.acquire('turn', 's', 1)));
    for my $waiter (@waiters) {
        $waiter->start(q(SELECT advisory.acquire('turn', 's', 1)));
        wait_until('it waits', sub { locks_of($waiter) });
    }
    while (my $next = shift @waiters) {
        $holder->run(q(SELECT advisory.release('turn', 's')));
        $next->returns(1, 'who has waited longest gets the slot');
        ok(!(grep { $_->is_done } @waiters), '... and nobody else');
        $holder = $next;
    }
    $holder->run('SELECT pg_advisory_unlock_all()');
}

# ---- Several at once, in turn --------------------------------------------------------------------

{
    my ($holder, $heavy, $light) = map { session() } 1 .. 3;
    $holder->run(q(SELECT advisory.acquire_many('many', 's', 3, 2)));
    $heavy->start(q(SELECT advisory.acquire_many('many', 's', 3, 2)::text));
    wait_until('it waits', sub { locks_of($heavy) == 2 });
    my ($pid, $queued) = map { $_->pid } $heavy, $light;
    $look->shows(q(SELECT advisory.try_acquire('many', 's', 3),
        advisory.try_acquire_many('many', 's', 3, 1, '10ms')), 'NULL|NULL',
        'while a session waits for two slots, nobody takes the one that is free');
    $look->shows(q(SELECT key - advisory._slot_key('many', 's', 0) FROM advisory._keys
        WHERE pid = ? ORDER BY 1), [ 0, 16002 ], '... and it holds none', $pid);
    $light->start(q(SELECT advisory.acquire('many', 's', 3)));
    wait_until('it waits', sub { locks_of($light) });
    like(join("\n", map { $_->[0] } @{ $look->rows('SELECT advisory.wait_tree()') }),
        qr/ holds 2 slots of .*\n  $pid .* waits for 2 slots of .*\n +$queued .* waits for a slot/,
        'wait_tree() says how many each has, or waits for');
    $look->shows(q(SELECT in_use, waiting, slots_wanted, lock ~ '^2 slots of '
        FROM advisory.semaphores, advisory.blockers), '2|2|3|1', '... as the views do');
    my $error = $look->fails(q(SELECT advisory.acquire_many('many', 's', 3, 3, '0')), '55P03',
        'an error');
    like($error->{detail}, qr/^Process $pid .* waits for 2 slots[;.]/m, '... and its detail, too');
    $look->shows(q(SELECT string_agg(concat_ws(' ', kind, slot, granted), ', ' ORDER BY slot)
        FROM advisory.holders('many', 's')),
        'semaphore 1 t, semaphore 2 t, queue f, queue f', 'holders() has no other locks');
    $holder->run(q(SELECT advisory.release('many', 's', 1)));
    $heavy->returns('{1,3}', 'it gets two as soon as two are free');
    ok(!$light->is_done, '... and who came later none');
    $heavy->run(q(SELECT advisory.release_many('many', 's', '{1,3}')));
    $light->returns(1, '... until there are more');
    $_->run('SELECT pg_advisory_unlock_all()') for $holder, $light;
}

# ---- Several at once, at the same time -----------------------------------------------------------

# One session takes its second slot late, and another has taken that meanwhile. So it gives up the
# first one, and a third session, which came when it still had that, does not fail.
$look->run(<<'SQL');
    CREATE OR REPLACE FUNCTION advisory._try_once(is_shared boolean, is_xact boolean, key bigint)
        RETURNS boolean LANGUAGE sql AS $$
        SELECT pg_sleep(0.06)
            WHERE current_setting('application_name') = 'late' AND key & 16383 = 2;
        SELECT pg_try_advisory_lock(key) $$
SQL
{
    my $late = session(application => 'late');
    my $others = session();
    my %ends;
    for (1 .. 20) {
        $late->start(q(SELECT advisory.try_acquire_many('late', 's', 2, 2)::text));
        wait_until('it has one', sub { locks_of($late) == 2 || $late->is_done });
        my $second = $others->value(q(SELECT advisory.try_acquire('late', 's', 2))) // '-';
        my $third = $others->value(q(SELECT advisory.try_acquire('late', 's', 2))) // '-';
        $ends{ join ' ', $late->finish->{value} // '-', $second, $third }++;
        $_->run('SELECT pg_advisory_unlock_all()') for $late, $others;
    }
    note join ', ', map { "$_: $ends{$_}" } sort keys %ends;
    is_deeply([ grep { !/^(- 2 1|\{1,2\} - -)$/ } keys %ends ], [],
        'nobody fails because of a slot that nobody keeps');
    cmp_ok($ends{'- 2 1'} // 0, '>', 0, '... and one could have');
}
load_portable($ENV{ADVISORY_TEST_DATABASE});

# ---- Cancels -------------------------------------------------------------------------------------

# A transaction-level slot is gone with the transaction, wherever the cancel came.
{
    my @sessions = map { session() } 1 .. 3;
    my ($end, $cancelled, $left) = (time + 3, 0, 0);
    while (time < $end || ($cancelled <= 20 && time < $end + 60)) {
        for my $session (@sessions) {
            # It is also that of the statement that sets it, and of the one that turns it off.
            wait_until('it has a timeout', sub { !$session->query(
                sprintf q(SET statement_timeout = %d), 1 + rand 30)->{state} });
            $session->start(sprintf q(DO $$ BEGIN
                PERFORM advisory.xact_acquire_many('late', 's', 3, %d, '1s'),
                    pg_sleep(random() * 0.01);
            END $$), 2 + rand 2);
        }
        $cancelled += ($_->finish->{state} // '') eq '57014' for @sessions;
        for my $session (@sessions) {
            wait_until('it has no timeout',
                sub { !$session->query('SET statement_timeout = 0')->{state} });
            $left += locks_of($session);
        }
    }
    cmp_ok($cancelled, '>', 20, 'transaction-level slots, and many cancels');
    is($left, 0, '... that leave none behind');
}
$look->fails(q(CALL advisory.await_acquire('late', 's', NULL)), '22004',
    'await_acquire() needs the number of slots');

# ---- A full lock table ---------------------------------------------------------------------------

{
    my $server = own_server('max_connections=20', 'max_locks_per_transaction=10');
    is(load_portable('postgres', $ENV{PGUSER}, $server), '', 'on a server with few locks');
    my $full = session(server => $server, database => 'postgres');
    # Often enough that the plans do not depend on the arguments any more.
    $full->run(q(SELECT advisory.release_many('full', 'w',
            advisory.acquire_many('full', 'w', 50, 40)) FROM generate_series(1, 9)), <<'SQL');
        DO $$
        DECLARE
            filled int := 0;
        BEGIN
            LOOP
                PERFORM pg_advisory_lock(77, filled);
                filled := filled + 1;
            END LOOP;
        EXCEPTION WHEN out_of_memory THEN
            PERFORM pg_advisory_unlock(77, i) FROM generate_series(filled - 20, filled - 1) AS i;
        END $$
SQL
    my $LEFT = q(SELECT count(*) FROM pg_lock_status() WHERE pid = pg_backend_pid()
        AND locktype = 'advisory' AND objsubid = 1);
    $full->run('BEGIN');
    $full->fails(q(SELECT advisory.xact_acquire_many('full', 's', 50, 40, '50 ms')), '53200',
        'the lock table is full');
    $full->run('ROLLBACK');
    $full->shows($LEFT, 0, '... and no slot is left');
    $full->fails(q(SELECT advisory.try_acquire_many('full', 's', 50, 40)), '53200',
        '... of a session');
    $full->shows($LEFT, 0, '... neither');
}
done_testing();
