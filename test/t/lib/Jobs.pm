# What advisory.run() does in both editions: run.t has it of the extension, portable/jobs.t of the
# portable edition. Each of them begins with begin_jobs(), which says who its sessions are.
package Jobs;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(begin_jobs run_sql close_gate open_gate is_free skips done_is busy
    deferred_triggers transaction_blocks two_slots zoned apart stale wrong_arguments under_load);

# Arguments of every call.
our $always = '';

my ($look, $gate, $one, $two, $three, $free);

# The sessions look, which sees all, gate, one, two, three; and free: a statement that returns 0 if
# no job has a lock. Session one makes the tables and routines that commands use.
sub begin_jobs (%sessions) {
    ($look, $gate, $one, $two, $three, $free) = @sessions{qw(look gate one two three free)};
    return $one->run(<<'SQL');
CREATE TABLE done (what text, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION passes_gate(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock(99);
    PERFORM pg_advisory_unlock(99);
    INSERT INTO done VALUES (what);
END $$;
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO done VALUES ('first step');
    COMMIT;
    PERFORM passes_gate('second step');
    COMMIT;
    INSERT INTO done VALUES ('third step');
END $$;
CREATE TABLE deferred (what text);
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM passes_gate(NEW.what);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION at_commit();
SQL
}

sub run_sql ($command, $more = '') {
    return "CALL advisory.run('jobs', 'nightly', \$run\$$command\$run\$$more$always)";
}

sub close_gate { return $gate->run('SELECT pg_advisory_lock(99)') }

sub open_gate { return $gate->run('SELECT pg_advisory_unlock(99)') }

sub is_free ($what) { return $look->shows($free, 0, "$what: free again") }

# Tests which commands have run; undef: none.
sub done_is ($expected, $what) {
    return $look->shows('SELECT string_agg(what, $$,$$ ORDER BY at) FROM done',
        $expected // 'NULL', $what);
}

sub skips ($what, $session, $more = '') {
    my $result = $session->query(run_sql('SELECT passes_gate($_$never$_$)', $more));
    is($result->{value}, 0, "$what: another is skipped");
    return like("@{$result->{warnings}}",
        qr{command was not run because (advisory lock|semaphore) "jobs/nightly" is taken},
        "$what: ... and told so");
}

# ---- Scenarios -----------------------------------------------------------------------------------

# While a command runs. The code looks at the session that waits for its end.
sub busy ($look_at_waiter = sub { }) {
    $one->run('TRUNCATE done');
    close_gate();
    waits($look, $one, run_sql('SELECT passes_gate($_$one$_$)'));
    skips('while it runs', $two);
    my $result = $two->fails(run_sql('SELECT 1', q{, if_busy => 'error'}), '55P03',
        'or it is an error');
    is("$result->{schema}/$result->{constraint}", 'jobs/nightly',
        '... by whose fields a program finds the lock');
    like($result->{detail}, qr/@{[$one->pid]}/, '... and the detail names its holder');
    $two->shows(run_sql('SELECT 1', q{, timeout => '100 ms'}), 0,
        'it waits as long as it is told, and then skips');
    $result = $two->query(run_sql('SELECT 1', q{, timeout => '100 ms', if_busy => 'error'}));
    like($result->{message}, qr/within 100 ms/, '... or says how long it waited');
    $two->shows(q(SELECT pg_try_advisory_lock(advisory.key('jobs', 'nightly'))), 0,
        'the lock is that of the name');
    waits($look, $two, run_sql('INSERT INTO done VALUES ($_$two$_$)', q{, timeout => '1 min'}));
    $look_at_waiter->($two);
    open_gate();
    $one->returns(1, 'the first has run');
    $two->returns(1, 'then the second');
    done_is('one,two', '... one after the other');
    return is_free('after both');
}

# Deferred triggers of the command run at commit, under the lock.
sub deferred_triggers {
    $one->run('TRUNCATE done');
    close_gate();
    waits($look, $one, run_sql('INSERT INTO deferred VALUES ($_$deferred$_$)'));
    skips('while a deferred trigger runs', $two);
    done_is(undef, '... which is not committed yet');
    open_gate();
    $one->returns(1, 'it has run');
    done_is('deferred', '... with what was deferred');
    return is_free('after the commit');
}

# In a transaction block the lock is kept until the block ends, or until a rollback to a savepoint
# before it.
sub transaction_blocks {
    $one->run('BEGIN', run_sql('SELECT 1'));
    skips('before COMMIT', $two);
    $one->run('COMMIT');
    is_free('after COMMIT');
    $one->run('BEGIN', 'SAVEPOINT a', run_sql('SELECT 1'), 'ROLLBACK TO a');
    is_free('after ROLLBACK TO');
    return $one->run('COMMIT');
}

sub two_slots {
    close_gate();
    waits($look, $_, run_sql('SELECT passes_gate($_$slot$_$)', ', slots => 2')) for $one, $two;
    skips('two slots', $three, ', slots => 2');
    $three->fails(run_sql('SELECT 1', q{, slots => 2, if_busy => 'error'}), '55P03',
        'two slots: or an error');
    open_gate();
    $_->returns(1, 'two slots: both have run') for $one, $two;
    return is_free('two slots');
}

sub zoned {
    my $ZONED = q{CALL advisory.run('jobs', 'zoned', 'SELECT 1', once_per => '1 day',
        time_zone => 'Asia/Tokyo')};
    $two->shows($ZONED, 1, 'in the day of a time zone');
    $two->shows($ZONED, 0, '... once');
    return $look->shows(q{SELECT (last_window AT TIME ZONE 'Asia/Tokyo')::time FROM advisory.claims
        WHERE name = 'zoned'}, '00:00:00', '... which begins at midnight there');
}

# Apart from the last claim, from when the lock is there.
sub apart {
    my $APART = q{CALL advisory.run('jobs', 'apart', 'SELECT 1', '1 min', apart => '1 hour')};
    $gate->run(q{SELECT advisory.lock('jobs', 'apart')});
    waits($look, $two, $APART);
    my $before = $look->value('SELECT clock_timestamp()');
    $gate->run(q{SELECT advisory.unlock('jobs', 'apart')});
    $two->returns(1, 'apart: it runs');
    $look->shows(q{SELECT claimed_at > ?, last_window = date_trunc('milliseconds', claimed_at),
            finished_at > claimed_at
        FROM advisory.claims WHERE name = 'apart'}, '1|1|1', '... from when it has waited',
        $before);
    my $result = $two->query($APART);
    is($result->{value}, 0, '... once');
    like("@{ $result->{warnings} }",
        qr{command was not run because the last claim of "jobs/apart" is not long enough ago},
        '... and another is told so');
    $two->fails($APART =~ s/\)$/, if_busy => 'error')/r, '55000', '... or gets an error');
    $two->fails(q{CALL advisory.run('jobs', 'apart 2', 'SELECT 1/0', apart => '1 us')}, '22012',
        'apart: a command that fails');
    $look->shows(q{SELECT finished_at IS NULL FROM advisory.claims WHERE name = 'apart 2'}, 1,
        '... stays claimed');
    return $two->shows(
        q{CALL advisory.run('jobs', 'apart 2', 'SELECT 1', slots => 2, apart => '1 us')}, 1,
        '... and the next one runs, with slots, too');
}

# In REPEATABLE READ, what it waited for has changed a row of its command.
sub stale {
    $one->run('CREATE TABLE balance AS SELECT 0 AS n',
        q(SET default_transaction_isolation = 'repeatable read'));
    $two->run('BEGIN', q(SELECT advisory.xact_lock('jobs', 'nightly')), 'UPDATE balance SET n = 1');
    waits($look, $one, run_sql('UPDATE balance SET n = n + 1', q{, timeout => '1 min'}));
    $two->run('COMMIT');
    $one->ends('40001', 'REPEATABLE READ: run() that had to wait');
    return $one->run('RESET default_transaction_isolation');
}

sub wrong_arguments {
    my %wrong = (q(NULL, 'x', 'SELECT 1') => '22004', q('jobs', NULL::text, 'SELECT 1') => '22004',
        q('jobs', '', 'SELECT 1') => '22023', q('jobs', 'x', NULL) => '22004',
        q('jobs', 'x', 'SELECT 1', '-1 s') => '22023',
        q('jobs', 'x', 'SELECT 1', '25 days') => '22008',
        q('jobs', 'x', 'SELECT 1', slots => 0) => '22023',
        q('jobs', 'x', 'SELECT 1', slots => 16001) => '22023',
        q('jobs', 'x', 'SELECT 1', if_busy => NULL) => '22004',
        q('jobs', 'x', 'SELECT 1', if_busy => 'wait') => '22023',
        q('jobs', 'x', 'SELECT 1', once_window => '2026-01-01') => '22023',
        q('jobs', 'x', 'SELECT 1', once_per => '0') => '22023',
        q('jobs', 'x', 'SELECT 1', once_per => '1 month') => '22023',
        q('jobs', 'x', 'SELECT 1', once_per => '2147483647 days') => '22008',
        q('jobs', 'x', 'SELECT 1', once_per => '1 h', once_window => 'infinity') => '22008',
        q('jobs', repeat('x', 1025), 'SELECT 1', once_per => '1 h') => '22001',
        q('jobs', 'x', 'SELECT 1', once_per => '1 h', once_window => now() + interval '2 h') =>
            '22023');
    $one->fails("CALL advisory.run($_)", $wrong{$_}, "$wrong{$_}: run($_)") for sort keys %wrong;
    like($one->query(q(CALL advisory.run('jobs', 'x', 'SELECT 1', once_per => '1 month')))->{hint},
        qr/as once_window/, 'the hint names the argument');
    return is_free('wrong arguments');
}

# ---- Under load ----------------------------------------------------------------------------------

use constant { PLAYERS => 6, LOAD_S => 6, KILLS => 4 };

# Each command adds one more row than it sees. So a number comes twice if a command begins before
# the effects of another one are committed. The code makes a session.
sub under_load ($join) {
    $one->run('CREATE TABLE seen (number bigint, at timestamptz)',
        'CREATE TABLE ran (claimed timestamptz, pid int DEFAULT pg_backend_pid())', <<'SQL');
CREATE PROCEDURE play() LANGUAGE plpgsql AS $$
DECLARE
    ran boolean;
    claimed timestamptz;
    add text := 'INSERT INTO seen SELECT count(*), clock_timestamp() FROM seen;
                 SELECT pg_sleep(random() * 0.002)';
BEGIN
    -- Until the test takes this lock.
    WHILE pg_try_advisory_xact_lock_shared(97) LOOP
        COMMIT;
        CASE (random() * 6)::int
            WHEN 0 THEN
                CALL advisory.run('load', 'a', add, ran => ran);
            WHEN 1 THEN
                CALL advisory.run('load', 'a', add, timeout => '3 ms', ran => ran);
            WHEN 2 THEN
                CALL advisory.run('load', 'a', add, timeout => NULL, once_per => '5 ms',
                    ran => ran);
            WHEN 3 THEN
                CALL advisory.run('load', 'a', add, once_per => '1 ms', ran => ran);
            WHEN 4 THEN
                BEGIN
                    CALL advisory.run('load', 'a', add || '; SELECT 1/0', timeout => NULL,
                        ran => ran);
                EXCEPTION WHEN division_by_zero THEN
                    NULL;
                END;
            WHEN 5 THEN
                CALL advisory.run('load', 'a', add, timeout => NULL, ran => ran);
                ROLLBACK;
            ELSE
                claimed := advisory.claim('load', 'window', '20 ms');
                IF claimed IS NOT NULL THEN
                    INSERT INTO ran VALUES (claimed);
                END IF;
                IF random() < 0.3 THEN
                    ROLLBACK;
                END IF;
        END CASE;
        COMMIT;
    END LOOP;
END $$
SQL
    my $player = sub {
        return $join->()->run('SET client_min_messages = warning')->start('CALL play()');
    };
    my @players = map { $player->() } 1 .. PLAYERS;
    my ($killed, $until) = (0, time + LOAD_S);
    my $ENOUGH = 'SELECT (SELECT count(*) > 50 FROM seen) AND (SELECT count(*) > 10 FROM ran)';
    while (time < $until || (!$look->value($ENOUGH) && time < $until + 60)) {
        sleep 0.2;
        next if $killed >= KILLS;
        my $pid = $players[ rand @players ]->pid;
        $killed += $look->value(q(SELECT count(*) FROM (SELECT pg_terminate_backend(pid)
            FROM pg_stat_activity WHERE pid = ? AND state = 'active') AS k), $pid);
        push @players, $player->();
    }
    $look->run('SELECT pg_advisory_lock(97)');
    my %states;
    $states{ $_->finish->{state} // 'success' }++ for @players;
    delete @states{qw(57P01 08000 08006)};
    is(join(',', keys %states), 'success',
        "under load: all end well but the $killed that were ended");
    my ($rows, $distinct, $last) = @{ $look->rows(
        'SELECT count(*), count(DISTINCT number), max(number) + 1 FROM seen')->[0] };
    is("$distinct,$last", "$rows,$rows",
        "under load: $rows commands, each of which saw all before it");
    cmp_ok($rows, '>', 50, 'under load: many');
    ($rows, $distinct) =
        @{ $look->rows('SELECT count(*), count(DISTINCT claimed) FROM ran')->[0] };
    is($distinct, $rows, "under load: $rows windows, none twice");
    cmp_ok($rows, '>', 10, 'under load: many');
    $look->run('SELECT pg_advisory_unlock(97)');
    return leave($look, @players);
}

1;
