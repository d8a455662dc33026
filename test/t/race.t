#!/usr/bin/env perl
# Of many sessions that ask at the same moment exactly one gets the lock, round after round; and
# under a lock a plain read-modify-write loses no update. The test needs many sessions that really
# run at once.
use AdvisoryTest;
use Time::HiRes qw(time);

# As many rounds as the machine has time for, within bounds.
use constant { SESSIONS => 16, LEAST_ROUNDS => 100, MOST_ROUNDS => 1000, ROUNDS_S => 5, STEPS => 40,
    GATE => 0 };

create_database();
my $gate = session();
my @players = map { session() } 1 .. SESSIONS;

# ---- Exactly one winner --------------------------------------------------------------------------

$gate->run('CREATE TABLE win (lock text, round int, pid int DEFAULT pg_backend_pid())');
for my $function (qw(try_lock try_xact_lock)) {
    # All wait at the gate, which is another lock, and so ask within the time that it takes to wake
    # them.
    $gate->run(<<"SQL");
        CREATE FUNCTION play_$function(round int) RETURNS boolean LANGUAGE plpgsql AS \$\$
        BEGIN
            PERFORM pg_advisory_xact_lock_shared(${\GATE});
            IF advisory.$function('race', round) THEN
                INSERT INTO win VALUES ('$function', round);
                RETURN true;
            END IF;
            RETURN false;
        END
        \$\$
SQL
    my ($winners, $rounds, $until) = (0, 0, time + ROUNDS_S);
    my %winning;
    while ($rounds < LEAST_ROUNDS || ($rounds < MOST_ROUNDS && time < $until)) {
        $rounds++;
        $gate->value('SELECT pg_advisory_lock(?)', GATE);
        # The transaction ends, and with it the winner's lock, only when all have asked.
        $_->dbh->begin_work for @players;
        $_->start("SELECT play_$function($rounds)") for @players;
        $gate->value('SELECT pg_advisory_unlock(?)', GATE);
        for my $player (@players) {
            my $result = $player->finish;
            die $result->{message} if $result->{state};
            next unless $result->{value};
            $winners++;
            $winning{ $player->pid }++;
        }
        $_->dbh->commit for @players;
    }
    is($winners, $rounds, "$function: $rounds rounds, as many winners");
    $gate->shows('SELECT count(*), count(DISTINCT round), min(round), max(round) FROM win
            WHERE lock = ?', "$rounds|$rounds|1|$rounds",
            "$function: exactly one winner in each round", $function);
    cmp_ok(scalar keys %winning, '>', 1, "$function: not always the same one wins");
    $_->value('SELECT pg_advisory_unlock_all()') for @players;
}

# ---- Mutual exclusion ----------------------------------------------------------------------------

$gate->run('CREATE TABLE counter (value int)', 'INSERT INTO counter VALUES (0)', <<'SQL');
    CREATE PROCEDURE count_up(steps int, locked boolean) LANGUAGE plpgsql AS $$
    DECLARE
        seen int;
    BEGIN
        FOR step IN 1 .. steps LOOP
            IF locked THEN
                PERFORM advisory.lock('race', 'counter');
            END IF;
            seen := value FROM counter;
            PERFORM pg_sleep(0.0005);
            UPDATE counter SET value = seen + 1;
            COMMIT;
            IF locked THEN
                PERFORM advisory.unlock('race', 'counter');
            END IF;
        END LOOP;
    END
    $$
SQL

sub count_up ($locked) {
    $gate->run('UPDATE counter SET value = 0');
    $_->start("CALL count_up(${\STEPS}, $locked)") for @players;
    for my $player (@players) {
        my $result = $player->finish;
        die $result->{message} if $result->{state};
    }
    return $gate->value('SELECT value FROM counter');
}

is(count_up('true'), SESSIONS * STEPS,
    'with lock() and unlock() around it, counting up loses nothing');
cmp_ok(count_up('false'), '<', SESSIONS * STEPS, 'without, it does (so the test can fail)');

done_testing();
