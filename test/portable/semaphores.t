#!/usr/bin/env perl
# Semaphores of the portable edition: never more than K at once whatever ends the sessions, in turn,
# and nothing is left behind. (`make bench BENCH=portable` has how soon a waiter is woken.)
use AdvisoryTest;
use Time::HiRes qw(sleep time);

use constant { SESSIONS => 16, SLOTS => 3, SECONDS => 4 };

create_portable_database();
my $look = session();
$look->run('CREATE TABLE inside (slot integer PRIMARY KEY, place bigint)',
    'INSERT INTO inside SELECT i FROM generate_series(1, ' . SLOTS . ') AS i',
    'CREATE TABLE wrong (what text)', 'CREATE SEQUENCE done');

sub locks_of ($session) {
    return $look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?),
        $session->pid);
}

# ---- Never more than K ---------------------------------------------------------------------------

# Whoever has a slot locks its row. That lock is the server's own, and ends with the session before
# the slot does: nobody finds it taken.
$look->run(<<'SQL');
CREATE PROCEDURE work(is_xact boolean, slots integer) LANGUAGE plpgsql AS $$
DECLARE
    got integer;
BEGIN
    got := CASE WHEN is_xact THEN advisory.xact_acquire('k', 's', slots)
        ELSE advisory.acquire('k', 's', slots) END;
    BEGIN
        PERFORM FROM inside WHERE slot = got FOR UPDATE NOWAIT;
        IF NOT FOUND THEN INSERT INTO wrong VALUES ('slot ' || got); END IF;
    EXCEPTION WHEN lock_not_available THEN
        INSERT INTO wrong VALUES ('two in slot ' || got);
    END;
    PERFORM pg_sleep(random() * 0.004), nextval('done');
    COMMIT;
    IF NOT is_xact AND NOT advisory.release('k', 's', got) THEN
        INSERT INTO wrong VALUES ('not released');
    END IF;
END $$;
SQL
{
    my @workers;
    my ($kills, $cancels, $errors) = (0, 0, 0);
    # On a busy machine it takes longer until enough has happened.
    my $end = time + SECONDS;
    while (time < $end || (($kills <= 10 || $cancels <= 10) && time < $end + 60)) {
        for my $i (0 .. SESSIONS - 1) {
            my $worker = $workers[$i] //= session(application => 'worker');
            if ($worker->{busy} && $worker->is_done) {
                my $state = $worker->finish->{state};
                $worker->{busy} = 0;
                if (defined $state) {
                    $errors++;
                    diag $state if $state !~ /^(57|08|XX000$|25P02)/;
                    # After an error the session may still have its slot.
                    $workers[$i] = undef;
                    next;
                }
            }
            next if $worker->{busy};
            $worker->start(sprintf 'CALL work(%s, %d)', $i % 2 ? 'true' : 'false', SLOTS);
            $worker->{busy} = 1;
        }
        my $worker = $workers[ rand @workers ];
        if ($worker && $worker->{busy} && rand() < 0.2) {
            my $is_kill = rand() < 0.5;
            $is_kill ? $kills++ : $cancels++;
            my $ends = $is_kill ? 'pg_terminate_backend' : 'pg_cancel_backend';
            $look->run("SELECT $ends(" . $worker->pid . ')');
        }
        sleep 0.002;
    }
    undef @workers;
    is_deeply($look->rows('SELECT * FROM wrong'), [], 'no slot is ever held by two, or beyond K');
    cmp_ok($kills, '>', 10, "... with $kills sessions killed");
    cmp_ok($cancels, '>', 10, "... and $cancels calls cancelled");
    cmp_ok($look->value('SELECT last_value FROM done'), '>', 100, '... and they work')
        or diag "$errors errors";
    wait_until('all have gone', sub {
        !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'worker'));
    });
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0,
        'nothing is left');
}

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

# ---- Cancels -------------------------------------------------------------------------------------

# A transaction-level slot is gone with the transaction, wherever the cancel came.
{
    my @sessions = map { session() } 1 .. 3;
    my ($end, $cancelled, $left) = (time + 3, 0, 0);
    while (time < $end || ($cancelled <= 20 && time < $end + 60)) {
        for my $session (@sessions) {
            $session->run(sprintf q(SET statement_timeout = %d), 1 + rand 30);
            $session->start(q(DO $$ BEGIN
                PERFORM advisory.xact_acquire('late', 's', 1, '1s'), pg_sleep(random() * 0.01);
            END $$));
        }
        $cancelled += ($_->finish->{state} // '') eq '57014' for @sessions;
        # The timeout is also that of the statement that turns it off.
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
done_testing();
