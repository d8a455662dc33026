#!/usr/bin/env perl
# Semaphores of the portable edition: never more than K at once whatever ends the sessions, and fair to those who wait.
# Runs alone: it measures how long sessions wait.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib";
use AdvisoryTest;
use Test::More;
use Time::HiRes qw(sleep time);

use constant { SESSIONS => 16, SLOTS => 3, SECONDS => 6 };

create_portable_database();
my $look = session();
$look->run('CREATE TABLE inside (slot integer PRIMARY KEY, place bigint)', 'INSERT INTO inside SELECT i FROM generate_series(1, ' . SLOTS . ') AS i',
    'CREATE TABLE wrong (what text)', 'CREATE SEQUENCE done');

# ---- Never more than K --------------------------------------------------------------------------------------------------------

# Whoever has a slot locks its row. That lock is the server's own, and ends with the session before the slot does: nobody finds it taken.
$look->run(<<'SQL');
CREATE PROCEDURE work(is_xact boolean, slots integer) LANGUAGE plpgsql AS $$
DECLARE
    got integer;
BEGIN
    got := CASE WHEN is_xact THEN advisory.xact_acquire('k', 's', slots) ELSE advisory.acquire('k', 's', slots) END;
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
    my $end = time + SECONDS;
    while (time < $end) {
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
            $look->run(sprintf 'SELECT %s(%d)', $is_kill ? 'pg_terminate_backend' : 'pg_cancel_backend', $worker->pid);
        }
        sleep 0.002;
    }
    undef @workers;
    is_deeply($look->rows('SELECT * FROM wrong'), [], 'no slot is ever held by two, or beyond K');
    cmp_ok($kills, '>', 10, "... with $kills sessions killed");
    cmp_ok($cancels, '>', 10, "... and $cancels calls cancelled");
    cmp_ok($look->value('SELECT last_value FROM done'), '>', 100, '... and they work') or diag "$errors errors";
    wait_until('all have gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'worker')) });
    is($look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')), 0, 'nothing is left');
}

# ---- Woken soon ----------------------------------------------------------------------------------------------------------------

{
    my ($holder, $waiter) = (session(), session());
    $holder->run(q(SELECT advisory.acquire('w', 's', 1)));
    my @waits;
    for (1 .. 15) {
        $waiter->start(q(SELECT advisory.acquire('w', 's', 1)));
        wait_until('it waits', sub { $look->value('SELECT count(*) FROM pg_locks WHERE pid = ? AND locktype = ?', $waiter->pid, 'advisory') });
        sleep 0.02 + rand 0.02;
        my $begun = time;
        $holder->run(q(SELECT advisory.release('w', 's')));
        is($waiter->finish->{value}, 1, 'who waits gets the slot') if $_ == 1;
        push @waits, time - $begun;
        ($holder, $waiter) = ($waiter, $holder);
    }
    cmp_ok(median(@waits), '<', 0.02, 'who waits is woken within 20 ms') or diag "@waits";
    $holder->run('SELECT pg_advisory_unlock_all()');
}

# ---- Fair -----------------------------------------------------------------------------------------------------------------------

$look->run(<<'SQL');
CREATE PROCEDURE turn(is_polling boolean, finish timestamptz, INOUT longest double precision, INOUT turns integer) LANGUAGE plpgsql AS $$
DECLARE
    asked timestamptz;
BEGIN
    turns := 0;
    longest := 0;
    WHILE clock_timestamp() < finish LOOP
        asked := clock_timestamp();
        IF is_polling THEN
            WHILE NOT pg_try_advisory_lock(4711) LOOP
                PERFORM pg_sleep(0.01);
            END LOOP;
        ELSE
            PERFORM advisory.acquire('fair', 's', 1);
        END IF;
        longest := greatest(longest, extract(epoch FROM clock_timestamp() - asked));
        turns := turns + 1;
        PERFORM pg_sleep(0.02);
        PERFORM CASE WHEN is_polling THEN pg_advisory_unlock(4711) ELSE advisory.release('fair', 's') END;
        COMMIT;
    END LOOP;
END $$;
SQL
{
    my %longest;
    for my $way ('polling', 'acquire') {
        my @sessions = map { session() } 1 .. 8;
        my $finish = $look->value(q(SELECT clock_timestamp() + '5 s'));
        $_->start(sprintf q(CALL turn(%s, '%s', NULL, NULL)), $way eq 'polling' ? 'true' : 'false', $finish) for @sessions;
        my @results = map { $_->finish->{rows}[0] } @sessions;
        $longest{$way} = (sort { $b <=> $a } map { $_->[0] } @results)[0];
        diag sprintf '%s: longest wait %.3f s, turns %s', $way, $longest{$way}, join ' ', sort { $a <=> $b } map { $_->[1] } @results;
    }
    cmp_ok($longest{acquire}, '<=', $longest{polling} / 3, 'the longest wait is at most a third of that of sessions that poll');
}

# ---- Cancels ------------------------------------------------------------------------------------------------------------------------

# A transaction-level slot is gone with the transaction, wherever the cancel came.
{
    my @sessions = map { session() } 1 .. 3;
    my ($end, $cancelled, $left) = (time + 3, 0, 0);
    while (time < $end) {
        for my $session (@sessions) {
            $session->run(sprintf q(SET statement_timeout = %d), 1 + rand 30);
            $session->start(q(DO $$ BEGIN PERFORM advisory.xact_acquire('late', 's', 1, '1s'), pg_sleep(random() * 0.01); END $$));
        }
        $cancelled += ($_->finish->{state} // '') eq '57014' for @sessions;
        # The timeout is also that of the statement that turns it off.
        for my $session (@sessions) { wait_until('it has no timeout', sub { !$session->query('SET statement_timeout = 0')->{state} }) }
        $left += $look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?), $_->pid) for @sessions;
    }
    cmp_ok($cancelled, '>', 20, 'transaction-level slots, and many cancels');
    is($left, 0, '... that leave none behind');
}
is($look->query(q(CALL advisory.await_acquire('late', 's', NULL)))->{state}, '22004', 'await_acquire() needs the number of slots');
done_testing();
