#!/usr/bin/env perl
# Semaphores, where it takes several sessions: never more than K inside and no slot idle, served in order, woken at once
# by whatever frees a slot, no overtaking, deadlocks and what only looks like one, disagreement on K, the views, 16000
# slots, sessions that are killed at random, and what is counted.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use List::Util qw(max);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use constant {
    CLIENTS => 12, SLOTS => 3, WORK_S => 2, WORK_REPEATS => 3,   # the load
    FRONT_ROW => 70,                                             # more waiters than are woken by a slot of their own
    WOKEN_MS => 300, PREPARED_MS => 1500, REPETITIONS => 3,
    RACES => 60, LOST_MS => 800,                                 # who is not woken looks after 1 s
    CHECKED_S => 2, MARGIN_S => 3,                               # a deadlock is found: deadlock_timeout and 1 s; on a busy machine
    MAX_SLOTS => 16000, MANY => 2000, FOUND_MS => 50,
    KILLS_S => 12,
};

# It is a long one.
alarm 400;
srand 4711;

my $database = create_database();
my $look = session(application => 'look');

# ---- What the sections share ----------------------------------------------------------------------------------------

# Waits until the session sleeps in the line of a semaphore, as others see it; or until it has done, as waits() does.
sub in_line {
    my ($waiter) = @_;
    return wait_until('session waits for a slot', sub {
        $look->value(q(SELECT count(*) FROM advisory.locks l JOIN pg_stat_activity a USING (pid)
                       WHERE l.pid = ? AND NOT l.granted AND a.wait_event = 'advisory'), $waiter->pid) || $waiter->is_done;
    });
}

# How many wait for a semaphore of namespace sem.
sub waiting { return $look->value(q(SELECT coalesce(sum(waiting), 0) FROM advisory.semaphores WHERE namespace = 'sem' AND name = ?), $_[0]) }

# The slots that a session has, as the lock manager says.
sub slots_of {
    my ($session, $observer) = @_;
    return ($observer // $look)->rows(q(SELECT objsubid - 16384 AS slot FROM pg_locks WHERE locktype = 'advisory' AND pid = ? AND granted AND objsubid > 16384 ORDER BY slot),
        $session->pid);
}

# A new session that has so many slots of sem/name.
sub holder {
    my ($name, $slots, $count) = @_;
    my $session = session(application => 'holder');
    $session->run("SELECT advisory.acquire('sem', '$name', $slots, '10s')") for 1 .. $count // 1;
    return $session;
}

sub acquires { my ($name, $slots) = @_; return "SELECT advisory.acquire('sem', '$name', $slots)" }

sub tries { my ($name, $slots) = @_; return "SELECT advisory.try_acquire('sem', '$name', $slots)" }

sub releases { my ($name) = @_; return "SELECT advisory.release('sem', '$name')" }

# The largest number of [from, to] that cover one moment. What ends when another begins does not overlap it.
sub largest_overlap {
    my (@spans) = @_;
    my ($inside, $most) = (0, 0);
    for my $event (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } map { ([ $_->[0], 1 ], [ $_->[1], -1 ]) } @spans) {
        $inside += $event->[1];
        $most = max($most, $inside);
    }
    return $most;
}

# ---- Never more than K, and as many as that -------------------------------------------------------------------------

$look->run('CREATE UNLOGGED TABLE span (way text, client int, asked timestamptz, got timestamptz, done timestamptz)', <<'SQL', <<'SQL');
    CREATE FUNCTION work(client int) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        asked timestamptz := clock_timestamp();
        got timestamptz;
        done timestamptz;
    BEGIN
        PERFORM advisory.acquire('sem', 'work', 3);
        got := clock_timestamp();
        PERFORM pg_sleep(0.001);
        done := clock_timestamp();
        PERFORM advisory.release('sem', 'work');
        INSERT INTO span VALUES ('work', client, asked, got, done);
    END
    $$
SQL
    -- What people do without semaphores.
    CREATE FUNCTION poll(client int) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        asked timestamptz := clock_timestamp();
        got timestamptz;
        done timestamptz;
        slot int;
    BEGIN
        LOOP
            FOR i IN 1 .. 3 LOOP
                IF pg_try_advisory_lock(4711, i) THEN
                    slot := i;
                    EXIT;
                END IF;
            END LOOP;
            EXIT WHEN slot IS NOT NULL;
            PERFORM pg_sleep(0.01);
        END LOOP;
        got := clock_timestamp();
        PERFORM pg_sleep(0.001);
        done := clock_timestamp();
        PERFORM pg_advisory_unlock(4711, slot);
        INSERT INTO span VALUES ('poll', client, asked, got, done);
    END
    $$
SQL

sub pgbench {
    my ($sql, @options) = @_;
    my $script = "$ENV{ADVISORY_EXT_TMP}/semaphores.$$.sql";
    open my $file, '>', $script or die "$script: $!\n";
    print {$file} "$sql\n";
    close $file;
    my $status = system "$ENV{PG_BINDIR}/pgbench -n -c @{[CLIENTS]} @options -f $script $database >/dev/null 2>&1";
    unlink $script;
    wait_until('they are gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench')) });
    return $status;
}

my $worked = 0;
{
    # The longest of all waits is at the mercy of the machine: the median of some runs.
    my (%longest, @utilisation, @overlap);
    for (1 .. WORK_REPEATS) {
        $look->run('TRUNCATE span');
        is(pgbench("SELECT $_(:client_id);", '-T', WORK_S), 0, CLIENTS . " clients, $_") for qw(work poll);
        push @{ $longest{ $_->[0] } }, $_->[1] for @{ $look->rows('SELECT way, 1000 * extract(epoch FROM max(got - asked)) FROM span GROUP BY way') };
        push @overlap, largest_overlap(map { [ @$_ ] } @{ $look->rows(q(SELECT extract(epoch FROM got), extract(epoch FROM done) FROM span WHERE way = 'work')) });
        # While all of them are at it.
        push @utilisation, $look->value(<<'SQL', SLOTS);
            WITH range AS (SELECT max(first) AS first, min(last) AS last
                           FROM (SELECT min(got) AS first, max(got) AS last FROM span WHERE way = 'work' GROUP BY client) AS client)
            SELECT sum(extract(epoch FROM done - got)) / (? * extract(epoch FROM max(done) - min(got)))
            FROM span, range WHERE way = 'work' AND got BETWEEN first AND last
SQL
        my $holds = $look->value(q(SELECT count(*) FROM span WHERE way = 'work'));
        $worked += $holds;
        note sprintf '%d holds; longest wait %.1f ms, polling %.1f ms; utilisation %.3f', $holds, $longest{work}[-1], $longest{poll}[-1], $utilisation[-1];
    }
    is_deeply(\@overlap, [ (SLOTS) x WORK_REPEATS ], 'by the work itself: never more than ' . SLOTS . ' inside, and as many as that');
    # 0.90 to 0.96 on a machine that does nothing else at the time.
    cmp_ok(median(@utilisation), '>=', 0.5, 'the slots are busy all the time, with others waiting');
    cmp_ok(median(@{ $longest{work} }), '<=', median(@{ $longest{poll} }) / 5, 'the longest wait is a fraction of that of a loop that polls');
    is($look->value(q(SELECT count(*) FROM advisory.semaphores WHERE namespace = 'sem')), 0, 'nothing is left');
}

# ---- In order -------------------------------------------------------------------------------------------------------

# Sessions that wait for sem/name, one behind the other. How each of them asks, or undef for the plain way.
sub line_up {
    my ($name, $slots, @how) = @_;
    my @line;
    for my $how (@how) {
        my $session = session(application => 'in line');
        $session->run($how->{before}) if $how->{before};
        $session->start($how->{asks} // acquires($name, $slots));
        in_line($session);
        push @line, $session;
    }
    return @line;
}

# What became of a session's statement; of one that was terminated meanwhile, a client learns this or that.
sub ended {
    my ($session) = @_;
    my $result = $session->finish;
    $result->{state} = 'lost' if ($result->{state} // '') =~ /^(57P01|08...|XX000)$/;
    return $result;
}

# Gives back one slot, which whoever is served gives back, and so on: the order in which those of this line were served.
sub order_served {
    my ($name, $from, @line) = @_;
    my @order;
    my %left = map { $_ => $line[$_] } 0 .. $#line;
    while (%left) {
        $from->run(releases($name));
        my $next;
        my $is_served = eval { wait_until('somebody is served', sub { ($next) = grep { $left{$_}->is_done } sort { $a <=> $b } keys %left; defined $next }, 10) };
        return [ @order, 'nobody' ] unless $is_served;
        $from = delete $left{$next};
        my $result = $from->finish;
        push @order, $result->{state} // $next;
        return \@order if $result->{state};
    }
    $from->run(releases($name));
    return \@order;
}

{
    my $rest = holder('order', 2);
    my $from = holder('order', 2);
    my @line;
    for my $n (1 .. 6) {
        push @line, line_up('order', 2, {});
        is(waiting('order'), $n, "$n waiting");
    }
    is($look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ANY (?) AND objsubid > 16384), [ map { $_->pid } @line ]), 0, 'none has a slot');
    is_deeply(order_served('order', $from, @line), [ 0 .. 5 ], 'first come, first served');
    is(waiting('order'), 0, 'nobody waits');

    # With the transaction's functions and the procedure among them, which stand in the same line.
    $from = holder('order', 2);
    @line = line_up('order', 2, {}, { before => 'BEGIN', asks => q(SELECT advisory.xact_acquire('sem', 'order', 2)) },
        { asks => q(CALL advisory.await_acquire('sem', 'order', 2)) }, { asks => q(SELECT advisory.try_acquire('sem', 'order', 2, '1h')) },
        { before => 'BEGIN', asks => q(SELECT advisory.try_xact_acquire('sem', 'order', 2, NULL)) }, {});
    my @order;
    for my $i (0 .. $#line) {
        $i == 0 ? $from->run(releases('order')) : $line[ $i - 1 ]->run($line[ $i - 1 ]{in_transaction} ? 'COMMIT' : releases('order'));
        $line[$i]{in_transaction} = $i == 1 || $i == 4;
        push @order, $line[$i]->finish(10)->{value} =~ /^[12]$/ && !(grep { $_->is_done } @line[ $i + 1 .. $#line ]) ? $i : 'wrong';
    }
    is_deeply(\@order, [ 0 .. 5 ], 'whatever function they wait in');
    # A procedure that waits for one holds no snapshot, and no transaction id.
    for my $slots (2, 1) {
        my @holders = map { holder('snapshot', $slots) } 1 .. $slots;
        my ($waiter) = line_up('snapshot', $slots, { asks => "CALL advisory.await_acquire('sem', 'snapshot', $slots)" });
        is_deeply($look->rows('SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE pid = ?', $waiter->pid), [ [ undef, undef ] ], "K = $slots, await_acquire holds no snapshot");
        $holders[0]->run(releases('snapshot'));
        like($waiter->finish->{value}, qr/^[12]$/, 'and has its slot');
        leave($look, @holders, $waiter);
    }
    leave($look, $rest, $from, @line);
}

# Those who give up, at the head of the line and in its middle, leave the others in their order.
my %give_up = (
    'is cancelled'   => [ {}, '57014', sub { $look->value('SELECT pg_cancel_backend(?)', $_[0]->pid) } ],
    'is terminated'  => [ {}, 'lost', sub { $look->value('SELECT pg_terminate_backend(?)', $_[0]->pid) } ],
    'times out'      => [ { asks => q(SELECT advisory.acquire('sem', 'give up', 2, '300ms')) }, '55P03' ],
    'tries in vain'  => [ { asks => q(SELECT advisory.try_acquire('sem', 'give up', 2, '300ms')) }, undef ],
    'lock_timeout'   => [ { before => q(SET lock_timeout = '300ms') }, '55P03' ],
    'statement_timeout' => [ { before => q(SET statement_timeout = '300ms') }, '57014' ],
);
for my $what (sort keys %give_up) {
    my ($how, $state, $act) = @{ $give_up{$what} };
    for my $where (0, 2) {
        my $rest = holder('give up', 2);
        my $from = holder('give up', 2);
        my @line = line_up('give up', 2, map { $_ == $where ? $how : {} } 0 .. 4);
        my ($quitter) = splice @line, $where, 1;
        $act->($quitter) if $act;
        my $result = ended($quitter);
        is($result->{state}, $state, "$what, place $where: so it ends") or diag explain $result;
        is($result->{value}, undef, 'without a slot');
        wait_until('it has left the line', sub { waiting('give up') == 4 });
        is_deeply(slots_of($quitter), [], 'nor does it hold one');
        is_deeply(order_served('give up', $from, @line), [ 0 .. 3 ], 'and the others are served in order');
        leave($look, $rest, $from, $quitter, @line);
    }
}

{
    my $rest = holder('long', 2);
    my $from = holder('long', 2);
    my @line = line_up('long', 2, map { {} } 1 .. FRONT_ROW);
    is(waiting('long'), FRONT_ROW, FRONT_ROW . ' waiting');
    is($look->value(q(SELECT count(*) FROM advisory.locks WHERE name = 'long' AND NOT granted AND kind = 'queue')), FRONT_ROW, 'all of them in locks');
    is_deeply(order_served('long', $from, @line), [ 0 .. $#line ], 'a long line: in order');
    leave($look, @line);

    # Some of all parts of it give up: the front, the one that keeps the door, and those behind.
    $from = holder('long', 2);
    @line = line_up('long', 2, map { {} } 1 .. FRONT_ROW);
    my %quits = map { $_ => 1 } 0, 1, 30, 62 .. 65, 68;
    for my $i (sort { $a <=> $b } keys %quits) {
        $look->value($i % 2 ? 'SELECT pg_cancel_backend(?)' : 'SELECT pg_terminate_backend(?)', $line[$i]->pid);
    }
    is_deeply([ map { ended($line[$_])->{state} } sort { $a <=> $b } keys %quits ], [ map { $_ % 2 ? '57014' : 'lost' } sort { $a <=> $b } keys %quits ],
        'some give up');
    my @left = @line[ grep { !$quits{$_} } 0 .. $#line ];
    wait_until('they have left the line', sub { waiting('long') == @left });
    is_deeply(order_served('long', $from, @left), [ 0 .. $#left ], 'the others are served in order');
    leave($look, $rest, $from, @line);
}

# ---- Woken at once --------------------------------------------------------------------------------------------------

# What frees a slot: what the holder does to have one, and to be rid of it.
my $HAS      = q(SELECT advisory.acquire('sem', 'woken', %d));
my $XACT_HAS = q(SELECT advisory.xact_acquire('sem', 'woken', %d));
sub run_all { my ($session, @statements) = @_; $session->query($_) for @statements; return }
my @frees = (
    [ 'release()',                            [$HAS],                               [ releases('woken') ] ],
    [ 'release() in a statement that goes on', [$HAS],                              sub { $_[0]->start(releases('woken') . ', pg_sleep(0.5)') } ],
    [ 'unlock_all(namespace)',                [$HAS],                               [ q(SELECT advisory.unlock_all('sem')) ] ],
    [ 'COMMIT',                               [ 'BEGIN', $XACT_HAS ],               ['COMMIT'] ],
    [ 'ROLLBACK',                             [ 'BEGIN', $XACT_HAS ],               ['ROLLBACK'] ],
    [ 'ROLLBACK TO SAVEPOINT',                [ 'BEGIN', 'SAVEPOINT s', $XACT_HAS ], ['ROLLBACK TO SAVEPOINT s'] ],
    [ 'an error in a transaction',            [ 'BEGIN', $XACT_HAS ],               ['SELECT 1/0'] ],
    [ 'pg_advisory_unlock_all()',             [$HAS],                               ['SELECT pg_advisory_unlock_all()'] ],
    [ 'DISCARD ALL',                          [$HAS],                               ['DISCARD ALL'] ],
    [ 'a client that leaves',                 [$HAS],                               sub { $_[0]->disconnect } ],
    [ 'a client that leaves in a transaction', [ 'BEGIN', $XACT_HAS ],              sub { $_[0]->disconnect } ],
    [ 'pg_terminate_backend()',               [$HAS],                               sub { $look->value('SELECT pg_terminate_backend(?)', $_[0]->pid) } ],
    [ 'an error that PL/pgSQL catches',       ['SELECT 1'],                         sub { $_[0]->start($_[1]) },
        q(DO $$ BEGIN
                    PERFORM advisory.xact_acquire('sem', 'woken', %d), pg_sleep(0.5);
                    RAISE division_by_zero;
                EXCEPTION WHEN division_by_zero THEN
                    PERFORM pg_sleep(0.5);
                END $$) ],
    [ 'COMMIT PREPARED',   [ 'BEGIN', $XACT_HAS, q(PREPARE TRANSACTION 'slot') ], sub { $look->run(q(COMMIT PREPARED 'slot')) } ],
    [ 'ROLLBACK PREPARED', [ 'BEGIN', $XACT_HAS, q(PREPARE TRANSACTION 'slot') ], sub { $look->run(q(ROLLBACK PREPARED 'slot')) } ],
);

# How many milliseconds after its cause a wait ends. (A statement of the holder's is its own cause, 0.5 s after its start.)
sub delay {
    my ($slots, $before, $free, $statement) = @_;
    my $holder = session(application => 'holder');
    my $waiter = session(application => 'waiter');
    my $with_slots = sub { $_[0] =~ s/%d/$slots/r };
    my $from;
    $holder->run(map { $with_slots->($_) } @$before);
    if ($statement) {
        $free->($holder, $with_slots->($statement));
        wait_until('it has its slot', sub { @{ slots_of($holder) } == 1 });
        $from = 0.5 + $look->value('SELECT extract(epoch FROM query_start) FROM pg_stat_activity WHERE pid = ?', $holder->pid);
    }
    $waiter->start($with_slots->("$HAS, extract(epoch FROM clock_timestamp())"));
    in_line($waiter);
    if (!$statement) {
        $from = time;
        ref $free eq 'CODE' ? $free->($holder) : run_all($holder, @$free);
    }
    my $result = $waiter->finish;
    die $result->{message} if $result->{state};
    $holder->finish if $holder->{sth};
    leave($look, $waiter, $holder);
    return 1000 * ($result->{rows}[0][1] - $from);
}

for my $slots (2, 1) {
    my $rest = $slots == 2 ? holder('woken', 2) : undef;
    for my $case (@frees) {
        my ($what, @how) = @$case;
        my $limit = $what =~ /PREPARED/ && $slots > 1 ? PREPARED_MS : WOKEN_MS;
        my @delays = map { delay($slots, @how) } 1 .. REPETITIONS;
        cmp_ok(median(@delays), '<', $limit, "K = $slots, woken by $what") or diag "after ms: @delays";
        note sprintf 'K = %d, %s: %s ms', $slots, $what, join ', ', map { sprintf '%.1f', $_ } @delays;
    }
    leave($look, $rest) if $rest;
}

# When the first in line is cancelled at the moment that a slot becomes free, the next has it at once, or after the first.
{
    my $rest = holder('race', 2);
    my $from = holder('race', 2);
    my ($first, $second, $killer) = map { session() } 1 .. 3;
    my (%ends, @late);
    for (1 .. RACES) {
        for my $waiter ($first, $second) {
            $waiter->start(acquires('race', 2) . ', extract(epoch FROM clock_timestamp())');
            in_line($waiter);
        }
        $killer->start(sprintf 'SELECT pg_sleep(%f), pg_cancel_backend(%d)', 0.0005 * int rand 4, $first->pid);
        $from->start(sprintf q(SELECT pg_sleep(%f), advisory.release('sem', 'race')), 0.0005 * int rand 4);
        $_->finish for $killer, $from;
        $ends{ $first->finish->{state} // 'served' }++;
        my $free = time;
        # (If it was cancelled after all was done it has the slot with an error, as with any lock.)
        $first->run(q(SELECT advisory.unlock_all('sem')));
        my $result = $second->finish;
        push @late, 1000 * ($result->{rows}[0][1] - $free);
        $second->run(releases('race'));
        $from->run(acquires('race', 2));
    }
    note join ', ', map { "$_: $ends{$_}" } sort keys %ends;
    is_deeply([ grep { !/^(57014|served)$/ } keys %ends ], [], 'a cancel and a release at once');
    cmp_ok(max(@late), '<', LOST_MS, 'no wake-up is lost');
    leave($look, $rest, $from, $first, $second, $killer);
}

# ---- Nobody overtakes -----------------------------------------------------------------------------------------------

# The waiter cannot take what is meant for it while it is stopped.
for my $slots (2, 1) {
    my @holders = map { holder('overtake', $slots) } 1 .. $slots;
    my $other = session(application => 'other');
    my ($waiter) = line_up('overtake', $slots, {});
    my @tries = map { sprintf $_, $slots } q(SELECT advisory.try_acquire('sem', 'overtake', %d)), q(SELECT advisory.try_xact_acquire('sem', 'overtake', %d)),
        q(SELECT advisory.try_acquire('sem', 'overtake', %d, '100ms'));
    is_deeply([ map { $other->value($_) } @tries ], [ (undef) x 3 ], "K = $slots, no slot is free: nothing for those who try");
    kill STOP => $waiter->pid or die 'cannot stop the process ' . $waiter->pid . ": $!\n";
    $holders[0]->run(releases('overtake'));
    is_deeply([ map { $other->value($_) } @tries ], [ (undef) x 3 ], "K = $slots, a slot is free that somebody waits for: neither");
    is($other->query(sprintf q(SELECT advisory.acquire('sem', 'overtake', %d, '100ms')), $slots)->{state}, '55P03', 'nor for who lines up behind it');
    kill CONT => $waiter->pid;
    like($waiter->finish->{value}, qr/^[12]$/, "K = $slots: the waiter has it");
    $waiter->run(releases('overtake'));
    like($other->value($tries[0]), qr/^[12]$/, "K = $slots: and when nobody waits for it any more, it is for those who try");
    leave($look, @holders, $waiter, $other);
}

# Who does not come to take its slot keeps that one, and no other.
{
    my @holders = map { holder('absent', 2) } 1, 2;
    my ($absent, @line) = line_up('absent', 2, {}, {}, {});
    kill STOP => $absent->pid or die 'cannot stop the process ' . $absent->pid . ": $!\n";
    $_->run(releases('absent')) for @holders;
    like($line[0]->finish(10)->{value}, qr/^[12]$/, 'two slots are free, and the first in line is away: the second has one');
    ok(!$line[1]->is_done, 'the third has none');
    $line[0]->run(releases('absent'));
    like($line[1]->finish(10)->{value}, qr/^[12]$/, 'but the next one that becomes free');
    ok(!$absent->is_done, 'so it goes on without it');
    kill CONT => $absent->pid;
    like($absent->finish->{value}, qr/^[12]$/, 'and what was meant for it is there when it comes');
    leave($look, @holders, $absent, @line);
}

# ---- Deadlocks, and what only looks like one ------------------------------------------------------------------------

{
    $look->run('CREATE TABLE row (id int PRIMARY KEY, n int DEFAULT 0)', 'INSERT INTO row VALUES (1)');

    # Both holders of a semaphore come to wait for a lock of the one that waits for a slot; the second of them only later.
    my @holders = map { holder('dead', 2) } 1, 2;
    my $waiter = session()->run(q(SELECT advisory.lock('sem', 'in the way')));
    $waiter->start(acquires('dead', 2));
    in_line($waiter);
    $holders[0]->start(q(SELECT advisory.lock('sem', 'in the way')));
    waits($look, $holders[0]);

    # The same over a row, in transactions.
    my @writers = map { session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'dead rows', 2))) } 1, 2;
    my $row_waiter = session()->run('BEGIN', 'UPDATE row SET n = n + 1');
    $row_waiter->start(q(SELECT advisory.xact_acquire('sem', 'dead rows', 2)));
    in_line($row_waiter);
    $writers[0]->start('UPDATE row SET n = n + 10');
    waits($look, $writers[0]);

    # Somebody else's transaction has what all holders wait for, and will end.
    my $idle = session()->run('BEGIN', q(SELECT advisory.xact_lock('sem', 'for long')));
    my @blocked = map { holder('alive', 2) } 1, 2;
    for my $blocked (@blocked) {
        $blocked->start(q(SELECT advisory.xact_lock('sem', 'for long')));
        waits($look, $blocked);
    }
    my ($patient) = line_up('alive', 2, { before => q(SELECT advisory.lock('sem', 'patient')) });
    # A waiter behind the head, whose lock one of the holders waits for: the other will release its slot.
    my @half = map { holder('half', 2) } 1, 2;
    my ($head, $second) = line_up('half', 2, {}, { before => q(SELECT advisory.lock('sem', 'second')) });
    $half[0]->start(q(SELECT advisory.lock('sem', 'second')));
    waits($look, $half[0]);

    # All of one semaphore, waiting for the other.
    my %all = (x => holder('x', 2, 2), y => holder('y', 2, 2));
    $all{x}->start(acquires('y', 2));
    in_line($all{x});
    my $from = time;
    $all{y}->start(acquires('x', 2));

    # One alone, that has all there is.
    my %alone = map { $_ => holder("alone $_", $_, $_) } 1, 2;
    $alone{$_}->start(acquires("alone $_", $_)) for 1, 2;

    wait_until('they are found', sub { !grep { !$_->is_done } values %alone }, CHECKED_S + MARGIN_S);
    is_deeply([ map { $_->finish->{state} } @alone{ 1, 2 } ], [ ('40P01') x 2 ], 'one that waits for what it has itself: a deadlock');
    wait_until('it is found', sub { grep { $_->is_done } values %all }, CHECKED_S + MARGIN_S);
    note sprintf 'crosswise: found after %.1f s', time - $from;
    # The time in which the others would be found, were they taken for deadlocks.
    sleep CHECKED_S + 0.5;
    my @victims = grep { $all{$_}->is_done } keys %all;
    is(scalar @victims, 1, 'two that have all of one semaphore and wait for the other: one gives up');
    my ($victim) = @victims;
    my ($winner) = grep { $_ ne $victim } keys %all;
    my $result = $all{$victim}->finish;
    is($result->{state}, '40P01', 'with a deadlock') or diag explain $result;
    for my $pid (map { $_->pid } values %all) {
        like($result->{detail}, qr/\bProcess $pid waits for one of the 2 slots of .*; blocked by process/, "whose detail says what process $pid waits for");
    }
    like($result->{context}, qr{semaphore "sem/$winner"}, 'and whose context names the semaphore');
    is(scalar @{ slots_of($all{$victim}) }, 2, 'it has its slots still');
    $all{$victim}->run(releases($victim));
    like($all{$winner}->finish->{value}, qr/^[12]$/, 'and as soon as it gives one back the other goes on');

    ok(!$waiter->is_done && !$holders[0]->is_done, 'while one holder can go on, it is no deadlock');
    ok(!$row_waiter->is_done && !$writers[0]->is_done, 'nor over a row');
    ok(!(grep { $_->is_done } $patient, @blocked), 'nor while all wait for a transaction that will end');
    ok(!(grep { $_->is_done } $head, $second, $half[0]), 'nor for one behind the head of the line');

    $from = time;
    $holders[1]->start(q(SELECT advisory.lock('sem', 'in the way')));
    $writers[1]->start('UPDATE row SET n = n + 100');
    wait_until('the deadlock is found', sub { grep { $_->is_done } $waiter, @holders }, CHECKED_S + MARGIN_S);
    note sprintf 'found after %.1f s', time - $from;
    ok($waiter->is_done && !$holders[0]->is_done && !$holders[1]->is_done, 'when the other waits, too, it is one');
    $result = $waiter->finish;
    is($result->{state}, '40P01', 'so the waiter for the slot gives up') or diag explain $result;
    my ($w, $a, $b) = map { $_->pid } $waiter, @holders;
    like($result->{detail}, qr/^Process $w waits for one of the 2 slots of .*; blocked by processes (?:$a, $b|$b, $a)\.$/m, 'it says who is in its way');
    like($result->{detail}, qr/^Process $_ waits for ExclusiveLock on .*; blocked by process(?:es)? .*\b$w\b/m, "and what $_ waits for") for $a, $b;
    is_deeply([ map { scalar @{ slots_of($_) } } $waiter, @holders ], [ 0, 1, 1 ], 'it has no slot');
    $waiter->run(q(SELECT advisory.unlock('sem', 'in the way')));
    $holders[0]->finish;
    $holders[0]->run(releases('dead'), q(SELECT advisory.unlock('sem', 'in the way')));
    is($holders[1]->finish->{value}, 1, 'the others go on');
    like($waiter->value(acquires('dead', 2)), qr/^[12]$/, 'and so does it');

    wait_until('that over a row is found', sub { grep { $_->is_done } $row_waiter, @writers }, CHECKED_S + MARGIN_S);
    $result = $row_waiter->finish(1);
    is($result->{state}, '40P01', 'over a row, too') or diag explain $result;
    $row_waiter->run('ROLLBACK');
    is($writers[0]->finish->{state}, undef, 'the first writer goes on');
    $writers[0]->run('COMMIT');
    is($writers[1]->finish->{state}, undef, 'and the second');
    $writers[1]->run('COMMIT');
    is($look->value('SELECT n FROM row'), 110, 'with all that they did');

    $idle->run('COMMIT');
    is_deeply([ map { $_->finish->{state} } @blocked ], [ undef, undef ], 'the transaction ends, and those that waited for it go on');
    $blocked[1]->run(releases('alive'));
    like($patient->finish->{value}, qr/^[12]$/, 'as does who waited for them');
    $half[1]->run(releases('half'));
    like($head->finish->{value}, qr/^[12]$/, 'the head of the other line has its slot');
    $head->run(releases('half'));
    like($second->finish->{value}, qr/^[12]$/, 'then the next');
    $second->run(q(SELECT advisory.unlock('sem', 'second')));
    is($half[0]->finish->{value}, 1, 'and who waited for that');
    leave($look, $waiter, @holders, $row_waiter, @writers, $idle, @blocked, $patient, @half, $head, $second, values %all, values %alone);
    is($look->value('SELECT count(*) FROM advisory.semaphores'), 0, 'nothing is left');
}

# Those who stand by are not part of it: somebody of the circle gives up, and then their wait goes on.
{
    my %all = map { $_ => holder("circle $_", 2, 2) } 1, 2;
    my @crosswise = line_up('circle 1', 2, {}, {});
    for (1, 2) {
        $all{$_}->start(acquires('circle ' . (3 - $_), 2));
        in_line($all{$_});
    }
    # One further back in the line is in the way of those who have the slots.
    my @holders = map { holder('circle', 2) } 1, 2;
    my ($ahead, $culprit) = line_up('circle', 2, {}, { before => q(SELECT advisory.lock('sem', 'circle')) });
    for my $holder (@holders) {
        $holder->start(q(SELECT advisory.lock('sem', 'circle')));
        waits($look, $holder);
    }
    # The holders' own deadlock, over locks, which is the server's to resolve.
    my @natives = map { holder('native', 2)->run("SELECT advisory.lock('sem', 'native $_')") } 1, 2;
    my ($stands_by) = line_up('native', 2, {});
    for (1, 2) {
        $natives[ $_ - 1 ]->start("SELECT advisory.lock('sem', 'native @{[3 - $_]}')");
        waits($look, $natives[ $_ - 1 ]);
    }
    sleep CHECKED_S + 1;
    my $what_of = sub { return [ map { $_->is_done ? $_->finish->{state} // 'goes on' : 'waits' } @_ ] };
    is_deeply([ sort @{ $what_of->(values %all) } ], [qw(40P01 waits)], 'a circle over two semaphores: one gives up');
    is_deeply($what_of->(@crosswise), [qw(waits waits)], 'those who wait beside it wait on');
    is_deeply($what_of->($culprit, @holders), [qw(40P01 waits waits)], 'a circle over a lock of the second in line: that one gives up');
    is_deeply($what_of->($ahead), ['waits'], 'the first in line waits on');
    is_deeply([ sort @{ $what_of->(@natives) } ], [qw(40P01 waits)], 'a deadlock of the holders over locks: one of them gives up');
    is_deeply($what_of->($stands_by), ['waits'], 'who waits for a slot of theirs waits on');
    leave($look, values %all, @crosswise, $ahead, $culprit, @holders, @natives, $stands_by);
}

# ---- One session's slots --------------------------------------------------------------------------------------------

{
    my $session = session();
    my $held = sub { return [ map { $_->[0] } @{ slots_of($session) } ] };
    my @slots = map { $session->value(acquires('own', 4)) } 1 .. 3;
    push @slots, $session->value(tries('own', 4));
    is_deeply([ sort @slots ], [ 1 .. 4 ], 'each call takes another slot');
    is($session->value(tries('own', 4)), undef, 'until there is none');
    is($session->value(releases('own')), 1, 'release');
    is_deeply($held->(), [ sort @slots[ 0 .. 2 ] ], 'gives back the one that was taken last');
    is($session->value(q(SELECT advisory.release('sem', 'own', ?)), $slots[0]), 1, 'release of a certain one');
    is_deeply($held->(), [ sort @slots[ 1, 2 ] ], 'gives back that');
    my $result = $session->query(q(SELECT advisory.release('sem', 'own', ?)), $slots[0]);
    is($result->{value}, 0, 'not twice');
    like(join('', @{ $result->{warnings} }), qr{WARNING:  you don't own slot $slots[0] of semaphore "sem/own"}, 'with a warning');
    is_deeply([ sort map { $look->value(tries('own', 4)) } 1, 2 ], [ sort @slots[ 0, 3 ] ], 'others can have these two');
    is($look->value(q(SELECT advisory.unlock_all('sem'))), 2, 'unlock_all(namespace) counts them');
    is($session->value(releases('own')), 1, 'the last');
    is_deeply($held->(), [ $slots[1] ], 'of those that are left');
    $session->run(releases('own'));
    $result = $session->query(releases('own'));
    is($result->{value}, 0, 'with none left, release is false');
    like(join('', @{ $result->{warnings} }), qr{WARNING:  you don't own a slot of semaphore "sem/own"}, 'with a warning');

    $session->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'own', 4)));
    my ($of_transaction) = @{ $held->() };
    $result = $session->query(releases('own'));
    is($result->{value}, 0, 'what belongs to the transaction is not given back');
    like(join('', @{ $result->{warnings} }), qr{WARNING:  you don't own a slot of semaphore "sem/own"\n.*taken for the transaction are given back at its end}s, 'which is said');
    is_deeply($held->(), [$of_transaction], 'it is there');
    my $mine = $session->value(acquires('own', 4));
    isnt($mine, $of_transaction, 'one for the session is another');
    $session->run(q(SELECT advisory.xact_acquire('sem', 'own', 4)));
    is($session->value(releases('own')), 1, 'and is given back, though it is not the last that was taken');
    is(scalar(grep { $_ == $mine } @{ $held->() }), 0, 'that one');
    $session->run(acquires('own', 4), 'ROLLBACK');
    is(scalar @{ $held->() }, 1, 'the end of the transaction takes its own, and leaves the one of the session');
    $session->run(releases('own'));

    $session->run(q(SELECT advisory.lock('sem', 'own')));
    is($look->value(q(SELECT advisory.try_acquire('sem', 'own', 1))), 1, 'the lock of the same name does not hinder it');
    $look->run(releases('own'));
    $session->run(q(SELECT advisory.unlock('sem', 'own')), acquires('own', 4), q(SELECT advisory.lock('sem', 'own lock')));
    $result = $session->query(releases('own lock'));
    is($result->{value}, 0, 'release on a lock');
    like(join('', @{ $result->{warnings} }), qr{"sem/own lock"\n.*holds the lock of that name.*advisory\.unlock\(\)}s, 'says that unlock was meant');
    $result = $session->query(q(SELECT advisory.unlock('sem', 'own')));
    is($result->{value}, 0, 'unlock on a semaphore');
    like(join('', @{ $result->{warnings} }), qr{"sem/own"\n.*has a slot of the semaphore.*advisory\.release\(\)}s, 'says that release was meant');
    is(scalar @{ $held->() }, 1, 'neither releases anything');
    is($session->value(q(SELECT advisory.holds('sem', 'own lock'))), 1, 'of the other kind');
    $session->run(acquires('own', 4), acquires('own too', 2), q(SELECT advisory.acquire('other', 'own', 2)), 'BEGIN', q(SELECT advisory.xact_acquire('sem', 'own', 4)));
    is($session->value(q(SELECT advisory.unlock_all('sem'))), 4, 'unlock_all(namespace) counts slots and locks');
    is($look->value(q(SELECT string_agg(namespace || '/' || name, ',' ORDER BY namespace) FROM advisory.semaphores)), 'other/own,sem/own',
        'and leaves those of other namespaces, and of the transaction');
    leave($look, $session);
}

# ---- Disagreement ---------------------------------------------------------------------------------------------------

{
    my $DISAGREES = qr{^WARNING:  semaphore "sem/disagreed" is used with different numbers of slots};
    my $try = sub { return tries('disagreed', @_) };
    my ($three, $five, $five_too) = map { session(application => $_) } '3', '5', '5 too';
    is_deeply($three->query($try->(3))->{warnings}, [], 'the first that comes is right');
    is($look->value(q(SELECT slots_disagree FROM advisory.semaphores WHERE name = 'disagreed')), 0, 'nobody disagrees');
    for my $session ($five, $five_too) {
        my $result = $session->query($try->(5));
        like($result->{value}, qr/^[1-5]$/, 'who says another number has a slot');
        is(scalar(grep { /$DISAGREES/ } @{ $result->{warnings} }), 1, 'and a warning') or diag explain $result->{warnings};
        my ($pid, $other) = map { $_->pid } $session, $three;
        like(join('', @{ $result->{warnings} }), qr/says that it has 5, process $other that it has 3/, 'that says who says what');
    }
    is_deeply($look->rows(q(SELECT slots, in_use, slots_disagree FROM advisory.semaphores WHERE name = 'disagreed')), [ [ 5, 3, 1 ] ], 'which the view shows');
    # Fill it.
    my @more = map { $five->query($try->(5)) } 1 .. 3;
    is(scalar(grep { defined $_->{value} } @more), 2, 'five at once');
    is_deeply([ map { @{ $_->{warnings} } } @more ], [], 'without another warning');
    # What only some may have is free: not for those who say less.
    my %has = map { $_->[0] => $_->[1] } @{ $look->rows(q(SELECT slot, pid FROM advisory.locks WHERE name = 'disagreed')) };
    my %of = map { $_->pid => $_ } $three, $five, $five_too;
    $of{ $has{$_} }->run("SELECT advisory.release('sem', 'disagreed', $_)") for 4, 5;
    is($three->value($try->(3)), undef, 'slots 4 and 5 are free, but not for who says 3');
    my $waiter = session()->start(acquires('disagreed', 3));
    in_line($waiter);
    is($look->value(q(SELECT in_use || ' of ' || slots FROM advisory.semaphores WHERE name = 'disagreed')), '3 of 5', 'it waits');
    $of{ $has{2} }->run(q(SELECT advisory.release('sem', 'disagreed', 2)));
    is($waiter->finish->{value}, 2, 'until it can have one of the first three');
    is_deeply([ sort map { $five->value($try->(5)) } 1, 2 ], [ 4, 5 ], 'who says 5 has them');
    $_->run('SELECT pg_advisory_unlock_all()') for $three, $five, $five_too, $waiter;
    is_deeply($look->rows(q(SELECT * FROM advisory.semaphores WHERE name = 'disagreed')), [], 'all are gone');
    is_deeply($three->query($try->(7))->{warnings}, [], 'then another number is right');
    is_deeply(session()->query($try->(7))->{warnings}, [], 'for others too');
    is_deeply($look->rows(q(SELECT slots, slots_disagree FROM advisory.semaphores WHERE name = 'disagreed')), [ [ 7, 0 ] ], 'in the view, too');
    leave($look, $three, $five, $five_too, $waiter);
}

# ---- The views ------------------------------------------------------------------------------------------------------

{
    my $role = "advisory_semaphores_$$";
    $look->run("CREATE ROLE $role LOGIN");
    my $key = $look->value(q(SELECT advisory.key('sem', 'shown')));
    my ($holder, $other, $first, $second) = map { session(application => $_) } qw(holder other first second);
    my $from = $look->value('SELECT clock_timestamp()');
    $holder->run(acquires('shown', 3));
    $other->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'shown', 3)));
    my $prepares = session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'shown', 3)), q(PREPARE TRANSACTION 'a gid'));
    leave($look, $prepares);
    for my $waiter ($first, $second) {
        $waiter->start(acquires('shown', 3));
        in_line($waiter);
    }
    my $to = $look->value('SELECT clock_timestamp()');
    my @holders = ($holder->pid, $other->pid, 0);
    is_deeply($look->rows('SELECT * FROM advisory.semaphores'), [ [ 'sem', 'shown', $key, 3, 3, 0, 2, \@holders, 0 ] ], 'semaphores');
    is_deeply($look->rows(q(SELECT pid, gid, kind, namespace, name, slot, key, key1, key2, mode, scope, granted, blocked_by, acquired_at BETWEEN ? AND ?, held >= '0', wait_start, waited
                            FROM advisory.locks WHERE granted ORDER BY slot), $from, $to),
        [ [ $holder->pid, undef, 'semaphore', 'sem', 'shown', 1, $key, undef, undef, 'exclusive', 'session', 1, undef, 1, 1, undef, undef ],
          [ $other->pid, undef, 'semaphore', 'sem', 'shown', 2, $key, undef, undef, 'exclusive', 'transaction', 1, undef, 1, 1, undef, undef ],
          [ undef, 'a gid', 'semaphore', 'sem', 'shown', 3, $key, undef, undef, 'exclusive', 'transaction', 1, undef, undef, undef, undef, undef ] ], 'locks: a row for each slot');
    my @waiting = @{ $look->rows(q(SELECT pid, kind, namespace, name, slot, key, mode, granted, acquired_at, held, wait_start BETWEEN ? AND ?, waited >= '0', blocked_by
                                   FROM advisory.locks WHERE NOT granted ORDER BY wait_start), $from, $to) };
    is_deeply([ map { [ @$_[ 0 .. 11 ] ] } @waiting ], [ map { [ $_->pid, 'queue', 'sem', 'shown', undef, $key, 'exclusive', 0, undef, undef, 1, 1 ] } $first, $second ],
        'and one for each waiter');
    for my $row (@waiting) {
        my %blocked_by = map { $_ => 1 } @{ $row->[12] };
        is_deeply([ @blocked_by{@holders} ], [ 1, 1, 1 ], 'blocked by those that have the slots');
    }
    is_deeply($look->rows('SELECT root_pid, depth, path, pid, waits_for_pid, namespace, name, key, mode FROM advisory.waits WHERE depth = 0 AND root_pid = ?', $holder->pid),
        [ [ $holder->pid, 0, [ $holder->pid ], $holder->pid, undef, 'sem', 'shown', $key, 'exclusive' ] ], 'waits: a holder is a root');
    is_deeply($look->rows(q(SELECT DISTINCT pid FROM advisory.waits WHERE depth > 0 AND waits_for_pid IS NOT NULL AND name = 'shown' AND waited >= '0' ORDER BY pid)),
        [ map { [$_] } sort { $a <=> $b } map { $_->pid } $first, $second ], 'with the waiters below');
    is_deeply($look->rows('SELECT DISTINCT root_pid FROM advisory.waits WHERE pid = ? ORDER BY root_pid', $first->pid), [ map { [$_] } sort { $a <=> $b } @holders ],
        'the first of them under each holder');
    my $tree = join '', map { "$_->[0]\n" } @{ $look->rows('SELECT * FROM advisory.wait_tree()') };
    my ($h, $o, $f, $s) = map { $_->pid } $holder, $other, $first, $second;
    like($tree, qr{^$h postgres\@holder holds slot 1 of sem/shown exclusive, idle \d+ s\n(?:  .*\n)*?  $f postgres\@first waits for a slot of sem/shown exclusive \d+ s}m, 'wait_tree()');
    like($tree, qr{^$o postgres\@other holds slot 2 of sem/shown exclusive, idle in transaction \d+ s\n(?:  .*\n)*?  $f postgres\@first waits}m, 'the other slot');
    like($tree, qr{^prepared transaction "a gid" of postgres holds slot 3 of sem/shown exclusive\n(?:  .*\n)*?  $f postgres\@first waits}m, 'and that of the prepared transaction');
    like($tree, qr{^ +$s postgres\@second waits for a slot of sem/shown exclusive \d+ s$}m, 'and the second waiter') or diag $tree;
    is_deeply($look->rows('SELECT lock, slot, pid, who, state FROM advisory.activity'),
        [ [ 'sem/shown', undef, $f, 'postgres@first', 'active' ], [ 'sem/shown', undef, $s, 'postgres@second', 'active' ],
          @{ $look->rows('SELECT lock, slot, pid, who, state FROM advisory.activity WHERE waiting IS NULL ORDER BY slot') } ], 'activity: the waiters first');
    is_deeply($look->rows('SELECT slot, who, state, waiting IS NULL, blocked_by FROM advisory.activity WHERE slot IS NOT NULL ORDER BY slot'),
        [ [ 1, 'postgres@holder', 'idle', 1, undef ], [ 2, 'postgres@other', 'idle in xact', 1, undef ], [ 3, 'postgres (prepared a gid)', undef, 1, undef ] ],
        'then the holders');

    # Nobody waits for those behind it. (By chance the right order could come out of two or three.)
    my @behind = line_up('shown', 3, map { {} } 1 .. 4);
    my @line = map { $_->pid } $first, $second, @behind;
    my %place = map { $line[$_] => $_ + 1 } 0 .. $#line;
    my $behind_it = sub {
        my ($pid, @in_its_way) = @_;
        return map { "number $place{$pid} waits for number $place{$_}" } grep { ($place{$_} // 0) > $place{$pid} } @in_its_way;
    };
    is(join("\n", map { $behind_it->($_->[0], @{ $_->[1] }) } @{ $look->rows('SELECT pid, blocked_by FROM advisory.locks WHERE NOT granted ORDER BY wait_start') }), '',
        'blocked_by: nobody is blocked by who stands behind it');
    is(join("\n", map { $behind_it->(@$_) } @{ $look->rows('SELECT DISTINCT pid, waits_for_pid FROM advisory.waits WHERE waits_for_pid IS NOT NULL') }), '',
        'waits: nobody waits for who stands behind it');
    leave($look, @behind);

    # What others may see, and what is their own.
    my $HIDDEN = '<insufficient privilege>';
    my $unprivileged = session(role => $role);
    $unprivileged->run(acquires('mine', 2));
    is_deeply($unprivileged->rows('SELECT namespace, name, slots, in_use, waiting, holders FROM advisory.semaphores ORDER BY in_use'),
        [ [ 'sem', 'mine', 2, 1, 0, [ $unprivileged->pid ] ], [ $HIDDEN, $HIDDEN, 3, 3, 2, \@holders ] ], 'an unprivileged role: no names of others in semaphores');
    is_deeply($unprivileged->rows('SELECT DISTINCT namespace, name, kind FROM advisory.locks WHERE role <> current_user ORDER BY kind'),
        [ [ $HIDDEN, $HIDDEN, 'queue' ], [ $HIDDEN, $HIDDEN, 'semaphore' ] ], 'nor in locks');
    is_deeply($unprivileged->rows('SELECT DISTINCT lock FROM advisory.activity ORDER BY lock'), [ [$HIDDEN], ['sem/mine'] ], 'nor in activity');
    is_deeply($unprivileged->rows('SELECT DISTINCT namespace, name FROM advisory.waits'), [ [ $HIDDEN, $HIDDEN ] ], 'nor in waits');
    unlike(join("\n", map { $_->[0] } @{ $unprivileged->rows('SELECT * FROM advisory.wait_tree()') }), qr/shown/, 'nor in wait_tree()');
    is_deeply($unprivileged->rows('SELECT name FROM advisory.locks WHERE pid = pg_backend_pid()'), [ ['mine'] ], 'but those of its own');
    $look->run("GRANT pg_read_all_stats TO $role");
    is_deeply($unprivileged->rows(q(SELECT namespace, name FROM advisory.semaphores WHERE name = 'shown')), [ [ 'sem', 'shown' ] ], 'with pg_read_all_stats it sees them');

    $look->run(q(ROLLBACK PREPARED 'a gid'));
    is($first->finish->{value}, 3, 'what the prepared transaction had');
    $holder->run(releases('shown'));
    is($second->finish->{value}, 1, 'and what a session had');
    leave($look, $holder, $other, $first, $second, $unprivileged);
    $look->run("DROP ROLE $role");
}

# ---- As many slots as there may be ----------------------------------------------------------------------------------

{
    my $server = own_server('max_locks_per_transaction=512');
    my ($taker, $other) = map { session(server => $server) } 1, 2;
    $taker->run('CREATE EXTENSION advisory_ext');
    my $milliseconds = sub {
        my ($code) = @_;
        my $from = time;
        my $value = $code->();
        return (1000 * (time - $from), $value);
    };
    my $TRY = tries('large', MAX_SLOTS);
    my $TAKE = "SELECT count(slot), count(DISTINCT slot) FROM ($TRY AS slot FROM generate_series(1, ?)) AS s";
    my ($took, $rows) = $milliseconds->(sub { $taker->rows($TAKE, MANY) });
    is_deeply($rows, [ [ MANY, MANY ] ], MANY . ' slots of ' . MAX_SLOTS);
    diag sprintf '%d slots taken in %.0f ms', MANY, $took;
    like($other->value($TRY), qr/^\d+$/, 'another session finds a free one');
    is($other->value(q(SELECT advisory.release('sem', 'large'))), 1, 'and gives it back');
    ($took, $rows) = $milliseconds->(sub { $taker->rows($TAKE, MAX_SLOTS - MANY - 1) });
    is_deeply($rows, [ [ (MAX_SLOTS - MANY - 1) x 2 ] ], 'all but one');
    diag sprintf '%d more in %.0f ms', MAX_SLOTS - MANY - 1, $took;
    for my $session ($other, session(server => $server)) {
        my @found = map {
            my ($found, $slot) = $milliseconds->(sub { $session->value($TRY) });
            like($slot, qr/^\d+$/, 'the last free one is found');
            my ($refused, $none) = $milliseconds->(sub { $session->value($TRY) });
            is($none, undef, 'and then there is none');
            $session->run(q(SELECT advisory.release('sem', 'large')));
            [ $found, $refused ];
        } 1 .. REPETITIONS;
        note join '; ', map { sprintf '%.1f ms, none in %.1f ms', @$_ } @found;
        cmp_ok(median(map { $_->[0] } @found), '<', FOUND_MS, 'fast');
        cmp_ok(median(map { $_->[1] } @found), '<', FOUND_MS, 'as is the answer that there is none');
    }
    is_deeply($other->rows('SELECT slots, in_use, free, waiting, cardinality(holders), slots_disagree FROM advisory.semaphores'),
        [ [ MAX_SLOTS, MAX_SLOTS - 1, 1, 0, MAX_SLOTS - 1, 0 ] ], 'semaphores counts them');
    # Somebody waits when all of them are released at once.
    my $last = $other->value($TRY);
    my $waiter = session(server => $server);
    $waiter->start(acquires('large', MAX_SLOTS));
    wait_until('it waits', sub { $other->value('SELECT waiting FROM advisory.semaphores') == 1 });
    ($took, my $slot) = $milliseconds->(sub { $taker->start('SELECT pg_advisory_unlock_all()'); $waiter->finish->{value} });
    like($slot, qr/^\d+$/, 'all are released: who waits has one');
    diag sprintf '%d slots released in %.0f ms', MAX_SLOTS - 1, $took;
    $taker->finish;
    is($taker->value($TRY) // 'none', $taker->value(q(SELECT max(slot) FROM advisory.locks WHERE pid = pg_backend_pid())), 'and the session can have one anew');
}

# ---- Random kills under load ----------------------------------------------------------------------------------------

# One process of the load: holds in a file, as 'got done'. Of a hold that is interrupted only what is certain.
sub work_and_suffer {
    my ($path, $until) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    my $session;
    # Until it is not cancelled; nothing if the session is lost.
    my $surely = sub {
        my ($sql) = @_;
        while (1) {
            my $result = $session->query($sql);
            return $result if !$result->{state};
            return if $result->{state} ne '57014';
        }
    };
    while (time < $until) {
        eval { $session //= session(application => 'suffers') } or next;
        my $result = $session->query(acquires('kills', SLOTS) . ', extract(epoch FROM clock_timestamp())');
        if ($result->{state}) {
            # If the cancel came after the grant, the slot is there.
            undef $session if $result->{state} ne '57014' || !$surely->(q(SELECT advisory.unlock_all('sem')));
            next;
        }
        my $got = my $done = $result->{rows}[0][1];
        $result = $session->query('SELECT pg_sleep(0.002), extract(epoch FROM clock_timestamp())');
        $result = $surely->('SELECT 1, extract(epoch FROM clock_timestamp())') if ($result->{state} // '') eq '57014';
        $done = $result->{rows}[0][1] if $result && $result->{rows};
        print {$out} "$got $done\n";
        undef $session if !$result || $result->{state} || !$surely->(q(SELECT advisory.unlock_all('sem')));
    }
    close $out;
    return;
}

{
    my $until = time + KILLS_S;
    my %children;
    for my $n (1 .. CLIENTS) {
        my $path = "$ENV{ADVISORY_EXT_TMP}/kills.$$.$n";
        my $child = fork // die "cannot fork: $!\n";
        if (!$child) {
            # Nothing of the parent's is to be ended here.
            alarm 2 * KILLS_S + 30;
            open STDERR, '>', '/dev/null';
            my $is_done = eval { work_and_suffer($path, $until); 1 } or print "# $@";
            close STDOUT;
            POSIX::_exit($is_done ? 0 : 1);
        }
        $children{$child} = $path;
    }
    my ($cancels, $kills) = (0, 0);
    while (time < $until) {
        my $way = rand() < 0.3 ? 'terminate' : 'cancel';
        my $hit = $look->value("SELECT pg_${way}_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'suffers' ORDER BY random() LIMIT 1) AS a");
        $hit && $way eq 'cancel' ? $cancels++ : $hit ? $kills++ : 0;
        sleep 0.01;
    }
    my (@spans, @ends);
    for my $child (keys %children) {
        waitpid $child, 0;
        push @ends, $?;
        open my $in, '<', $children{$child} or die "$children{$child}: $!\n";
        push @spans, map { [split] } <$in>;
        close $in;
        unlink $children{$child};
    }
    is_deeply(\@ends, [ (0) x CLIENTS ], 'sessions under random cancels and kills come to their end');
    cmp_ok($cancels, '>', 50, "$cancels cancels");
    cmp_ok($kills, '>', 20, "$kills kills");
    cmp_ok(scalar @spans, '>', 500, scalar(@spans) . ' holds');
    is(largest_overlap(@spans), SLOTS, 'never more than ' . SLOTS . ' of them at once');
    wait_until('they are gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'suffers')) });
    is_deeply($look->rows(q(SELECT * FROM advisory.semaphores)), [], 'nobody has a slot, or waits');
    my $session = session();
    is_deeply([ sort map { $_->[0] // 'none' } @{ $session->rows("SELECT advisory.try_acquire('sem', 'kills', i) FROM generate_series(@{[SLOTS]}, @{[SLOTS]}) AS i, generate_series(1, @{[SLOTS]})") } ],
        [ 1 .. SLOTS ], 'and all slots can be had at once');
    is_deeply($look->rows('SELECT in_use, free, waiting, holders, slots_disagree FROM advisory.semaphores'), [ [ SLOTS, 0, 0, [ ($session->pid) x SLOTS ], 0 ] ], 'the view shows just these');
    leave($look, $session);
}

# ---- What is counted ------------------------------------------------------------------------------------------------

{
    my ($h, $t) = (session(application => 'h'), session(application => 't'));
    my $counts = sub { return $look->rows(q(SELECT acquired, contended, failed, timeouts, skipped FROM advisory.stats WHERE namespace = 'sem' AND name = 'counted'))->[0] };
    $h->run(acquires('counted', 2), q(SELECT advisory.try_acquire('sem', 'counted', 2)));
    is_deeply($counts->(), [ 2, 0, 0, 0, 0 ], 'each slot counts');
    $t->query($_) for q(SELECT advisory.try_acquire('sem', 'counted', 2)), q(SELECT advisory.acquire('sem', 'counted', 2, '0')), q(SELECT advisory.try_xact_acquire('sem', 'counted', 2));
    is_deeply($counts->(), [ 2, 0, 3, 0, 0 ], 'none free, and not waited for');
    is($t->query(q(SELECT advisory.acquire('sem', 'counted', 2, '20ms')))->{state}, '55P03', 'a timeout');
    is($t->value(q(SELECT advisory.try_acquire('sem', 'counted', 2, '20ms'))), undef, 'and one of try_acquire');
    is_deeply($counts->(), [ 2, 2, 3, 2, 0 ], 'are counted');
    $t->run(q(SET lock_timeout = '20ms'));
    is($t->query(q(SELECT advisory.xact_acquire('sem', 'counted', 2)))->{state}, '55P03', 'lock_timeout');
    $t->run('RESET lock_timeout');
    is_deeply($counts->(), [ 2, 3, 3, 3, 0 ], 'is one, too');
    $t->start(acquires('counted', 2));
    in_line($t);
    is_deeply($counts->(), [ 2, 4, 3, 3, 0 ], 'a wait counts when it begins');
    $look->value('SELECT pg_cancel_backend(?)', $t->pid);
    is($t->finish->{state}, '57014', 'a cancel');
    is_deeply($counts->(), [ 2, 4, 3, 3, 0 ], 'adds nothing');
    $t->start(acquires('counted', 2));
    in_line($t);
    $h->run(releases('counted'));
    $t->finish;
    is_deeply($counts->(), [ 3, 5, 3, 3, 0 ], 'a wait that ends well');
    $h->run('BEGIN');
    $t->run(releases('counted'));
    $h->run(q(SELECT advisory.xact_acquire('sem', 'counted', 2)), 'ROLLBACK');
    is_deeply($counts->(), [ 4, 5, 3, 3, 0 ], 'one of a transaction');
    $_->run('SELECT pg_advisory_unlock_all()') for $h, $t;
    is($look->value(q(SELECT hold_total > '0' AND hold_max <= hold_total AND wait_total >= '60ms' AND wait_max < wait_total AND last_acquired_at <= clock_timestamp()
                      FROM advisory.stats WHERE name = 'counted')), 1, 'and so are times');
    leave($look, $h, $t);

    # Very short timeouts: each call is acquired, or has timed out, or failed.
    $look->run('CREATE UNLOGGED TABLE outcome (slot int)');
    my $total = CLIENTS * 200;
    is(pgbench(q(WITH s AS MATERIALIZED (SELECT advisory.try_acquire('sem', 'hasty', 2, '1ms') AS slot), o AS (INSERT INTO outcome SELECT slot FROM s)
                        SELECT pg_sleep(0.0005), advisory.unlock_all('sem') FROM s;), '-t', 200), 0, CLIENTS . ' hasty clients');
    is_deeply($look->rows(q(SELECT acquired + failed + timeouts, timeouts > 0 FROM advisory.stats WHERE name = 'hasty')), [ [ $total, 1 ] ], 'every call counts');
    is($look->value(q(SELECT acquired FROM advisory.stats WHERE name = 'hasty')), $look->value('SELECT count(slot) FROM outcome'), 'for what it came to');
    is($look->value(q(SELECT count(*) FROM advisory.semaphores WHERE name = 'hasty')), 0, 'nothing is left');
    is_deeply([ map { $look->value(tries('hasty', 2)) } 1 .. 3 ], [ 1, 2, undef ], 'and nobody in line');
    $look->run('SELECT pg_advisory_unlock_all()');
    is_deeply($look->rows(q(SELECT acquired, failed, timeouts, contended <= acquired FROM advisory.stats WHERE name = 'work')), [ [ $worked, 0, 0, 1 ] ],
        CLIENTS . ' clients at once, above: every time counts');
}

done_testing();
