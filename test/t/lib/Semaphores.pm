# Common code of the tests of semaphores. All semaphores have the namespace sem, unless a test gives
# another one.
package Semaphores;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use List::Util qw(max);

our @EXPORT = qw(observer in_queue queue_up waiting slots_of holder acquires tries releases
    largest_overlap run_pgbench);

my $look;

# A session that watches the others, in a new database.
sub observer {
    create_database();
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

1;
