# Common code of the tests of semaphores. All semaphores have the namespace sem, unless a test gives
# another one.
package Semaphores;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use List::Util qw(max);
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(observer in_queue queue_up waiting slots_of holder acquires tries releases
    largest_overlap run_pgbench never_beyond);

my $look;

# A session that watches the others, in a new database, with the extension or, if it says portable,
# with that edition.
sub observer (%how) {
    $how{portable} ? create_portable_database() : create_database();
    return $look = session(application => 'look');
}

# Waits until the session sleeps in the queue of a semaphore, as the observer sees it, or until its
# statement has ended. With a statement, the session is sent that first.
sub in_queue {
    my ($waiter, @statement) = @_;
    $waiter->start(@statement) if @statement;
    return wait_until('session waits for a slot', sub {
        $look->value(q(SELECT count(*) FROM advisory.locks l JOIN pg_stat_activity a USING (pid)
                       WHERE l.pid = ? AND NOT l.granted AND a.wait_event = 'advisory'),
                       $waiter->pid) || $waiter->is_done;
    });
}

# New sessions that wait for a slot of this semaphore, one after the other. For each a hash: {before
# => a statement to run first, asks => the statement that waits}, both optional.
sub queue_up {
    my ($name, $slots, @how) = @_;
    my @queue;
    for my $how (@how) {
        my $session = session(application => 'in queue');
        $session->run($how->{before}) if $how->{before};
        in_queue($session, $how->{asks} // acquires($name, $slots));
        push @queue, $session;
    }
    return @queue;
}

# The number of sessions that wait for a slot of this semaphore.
sub waiting {
    return $look->value(
        q(SELECT coalesce(sum(waiting), 0) FROM advisory.semaphores
            WHERE namespace = 'sem' AND name = ?), $_[0])
}

# The slots that a session has, according to the lock manager.
sub slots_of {
    my ($session) = @_;
    return $look->rows(q(SELECT objsubid - 16384 AS slot FROM pg_locks WHERE locktype = 'advisory'
            AND pid = ? AND granted AND objsubid > 16384 ORDER BY slot),
        $session->pid);
}

# A new session that has one slot of this semaphore, or as many as count says.
sub holder {
    my ($name, $slots, $count) = @_;
    my $session = session(application => 'holder');
    $session->run("SELECT advisory.acquire('sem', '$name', $slots, '10s')") for 1 .. $count // 1;
    return $session;
}

sub acquires { my ($name, $slots) = @_; return "SELECT advisory.acquire('sem', '$name', $slots)" }

sub tries { my ($name, $slots) = @_; return "SELECT advisory.try_acquire('sem', '$name', $slots)" }

sub releases { my ($name) = @_; return "SELECT advisory.release('sem', '$name')" }

# The largest number of spans [from, to] that cover one moment. A span that ends when another begins
# does not overlap it.
sub largest_overlap {
    my (@spans) = @_;
    my ($inside, $most) = (0, 0);
    for my $event (
            sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } map {
                ([ $_->[0], 1 ], [ $_->[1], -1 ])
            } @spans) {
        $inside += $event->[1];
        $most = max($most, $inside);
    }
    return $most;
}

# Runs these statements as a script of pgbench; its exit status.
sub run_pgbench {
    my ($sql, $clients, @options) = @_;
    my $script = "$ENV{ADVISORY_EXT_TMP}/semaphores.$$.sql";
    open my $file, '>', $script or die "$script: $!\n";
    print {$file} "$sql\n";
    close $file;
    my $status = system "$ENV{PG_BINDIR}/pgbench -n -c $clients @options -f $script "
        . "$ENV{ADVISORY_TEST_DATABASE} >/dev/null 2>&1";
    unlink $script;
    wait_until('pgbench is gone', sub {
        !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'))
    });
    return $status;
}

# ---- Never more than K ---------------------------------------------------------------------------

# Whoever has a slot locks its row. That lock is the server's own, and ends with the session before
# the slot does: nobody finds it taken.
my $WORK = <<'SQL';
CREATE PROCEDURE work(is_xact boolean, slots integer, wanted integer) LANGUAGE plpgsql AS $$
DECLARE
    got integer[];
BEGIN
    got := CASE WHEN is_xact THEN advisory.xact_acquire_many('sem', 'k', slots, wanted)
        WHEN wanted > 1 THEN advisory.acquire_many('sem', 'k', slots, wanted)
        ELSE ARRAY[advisory.acquire('sem', 'k', slots)] END;
    BEGIN
        PERFORM FROM inside WHERE slot = ANY (got) ORDER BY slot FOR UPDATE NOWAIT;
        IF (SELECT count(*) <> wanted FROM inside WHERE slot = ANY (got)) THEN
            INSERT INTO wrong VALUES ('slots ' || got::text);
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        INSERT INTO wrong VALUES ('two in one of slots ' || got::text);
    END;
    PERFORM pg_sleep(random() * 0.004), nextval('done');
    COMMIT;
    IF NOT is_xact AND advisory.release_many('sem', 'k', got) <> wanted THEN
        INSERT INTO wrong VALUES ('not released');
    END IF;
END $$;
SQL

# Many sessions take one or several slots in every way, while calls are cancelled and sessions
# ended. sessions, slots: how many; seconds, and cancels, kills, done: how long it goes on, and how
# many of these there must be.
sub never_beyond (%how) {
    my $slots = $how{slots};
    $look->run('CREATE TABLE inside (slot integer PRIMARY KEY, place bigint)',
        "INSERT INTO inside SELECT i FROM generate_series(1, $slots) AS i",
        'CREATE TABLE wrong (what text)', 'CREATE SEQUENCE done', $WORK);
    my (@workers, %errors);
    my %count = (cancels => 0, kills => 0, done => 0);
    # On a busy machine it takes longer until enough has happened.
    my $end = time + $how{seconds};
    while (time < $end || (time < $end + 100 && grep { $count{$_} <= $how{$_} } keys %count)) {
        for my $i (0 .. $how{sessions} - 1) {
            my $worker = $workers[$i] //= session(application => 'worker');
            if ($worker->{busy} && $worker->is_done) {
                my $state = $worker->finish->{state};
                $worker->{busy} = 0;
                if (defined $state) {
                    $errors{$state}++;
                    # After an error the session may still have its slot.
                    $workers[$i] = undef;
                    next;
                }
                $count{done}++;
            }
            next if $worker->{busy};
            $worker->start(sprintf 'CALL work(%s, %d, %d)', $i % 2 ? 'true' : 'false', $slots,
                1 + int($i / 2) % 2);
            $worker->{busy} = 1;
        }
        my $worker = $workers[ rand @workers ];
        if ($worker && $worker->{busy} && rand() < 0.2) {
            my $is_kill = rand() < 0.5;
            $count{ $is_kill ? 'kills' : 'cancels' }++;
            my $ends = $is_kill ? 'pg_terminate_backend' : 'pg_cancel_backend';
            $look->run("SELECT $ends(" . $worker->pid . ')');
        }
        sleep 0.002;
    }
    undef @workers;
    is_deeply($look->rows('SELECT * FROM wrong'), [], 'no slot is ever held by two, or beyond K');
    is_deeply([ grep { !/^(57|08|XX000$|25P02)/ } keys %errors ], [], '... and no other errors');
    cmp_ok($count{$_}, '>', $how{$_}, "... with $count{$_} $_") for sort keys %count;
    wait_until('all have gone', sub {
        !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'worker'));
    });
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0,
        'nothing is left');
    return;
}

1;
