#!/usr/bin/env perl
# A session that is ended frees its locks and slots only after its transaction has ended: whoever
# gets one of them finds no row locked any more. The test needs a session that is terminated.
use AdvisoryTest;

# The savepoints make the end of the transaction long.
use constant { ROUNDS => 4, SAVEPOINTS => 1500 };

create_database();
my $look = session();
$look->run('CREATE TABLE work (id int PRIMARY KEY, n int)', 'INSERT INTO work VALUES (1, 0)');

# What both sessions take, by its title.
my %takes = (
    'a slot of the transaction'       => q(advisory.xact_acquire('end', 'sem', 2)),
    'the only slot of the session'    => q(advisory.acquire('end', 'one', 1)),
    'a slot of the session'           => q(advisory.acquire('end', 'sem', 2)),
    'a lock of the transaction'       => q(advisory.xact_lock('end', 'lock')),
    'a lock of the session'           => q(advisory.lock('end', 'lock')),
);

# Ends a session that holds the lock, works on the row, and has a slot of another semaphore. Returns
# whether the next holder finds the row locked.
sub finds_row_locked ($take) {
    my ($holder, $other, $next) = (session(), session(), session());
    # Of two slots the holder has one, and a session that does nothing the other.
    $other->run('BEGIN', "SELECT $take") if $take =~ /sem/;
    $holder->run('BEGIN',
        q(SELECT advisory.xact_acquire('end', 'aside', 5)), "SELECT $take",
        'UPDATE work SET n = 0 WHERE id = 1', map { "SAVEPOINT s$_" } 1 .. SAVEPOINTS);
    $next->start(
        "DO \$\$ BEGIN PERFORM $take; PERFORM FROM work WHERE id = 1 FOR UPDATE NOWAIT; END \$\$");
    $look->wait_until('it waits',
        q(SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = ?),
            $next->pid);
    $look->run('SELECT pg_terminate_backend(' . $holder->pid . ')');
    my $result = $next->finish;
    die $result->{message} if $result->{state} && $result->{state} ne '55P03';
    leave($look, $other, $next);
    until_gone($look, $holder);
    return $result->{state} ? 1 : 0;
}

for my $what (sort keys %takes) {
    my $locked = 0;
    $locked += finds_row_locked($takes{$what}) for 1 .. ROUNDS;
    is($locked, 0, "$what: in " . ROUNDS . ' rounds the next holder finds the row free');
}

done_testing();
