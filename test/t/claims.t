#!/usr/bin/env perl
# Once per window: of schedulers whose clocks differ each window is claimed once, and none is missed. Sessions that claim at the same
# time, roll back or are ended in the middle of it never have one window twice. It needs many sessions at once, and signals.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;
use Time::HiRes qw(sleep time);

use constant { WINDOWS => 5000, PLAYERS => 8, MOST_LOADED_S => 60, KILLS => 10, LEAST_WINDOWS => 20, LEAST_EACH => 5 };

create_database();
my ($look, $one, $two, $three) = map { session() } 1 .. 4;
my $CONTEXT = qr{while claiming window .* of "claims/x"};

sub claim { my ($window, $name) = @_; $name //= 'x'; return "SELECT advisory.claim('claims', '$name', '1 hour', '$window')" }

# ---- Three schedulers, of which each fires in 70 % of the windows of 15 s; their clocks are off by up to 4 s -------------------

# The server's clock says `at` when a scheduler fires for the window number k. The rule makes a window of that.
$look->run(<<"SQL");
    CREATE TABLE firing AS
        SELECT k, '2026-01-01 00:00+00'::timestamptz + k * interval '15 s' AS nominal,
               '2026-01-01 00:00+00'::timestamptz + k * interval '15 s' + (random() * 8 - 4) * interval '1 s' AS at
        FROM generate_series(1, ${\WINDOWS}) AS k, generate_series(1, 3) AS scheduler WHERE random() < 0.7;
    CREATE TABLE claimed (rule text, k int);
    CREATE INDEX ON claimed (k);
    CREATE PROCEDURE simulate(rule text, of_firing text) LANGUAGE plpgsql AS \$\$
    DECLARE
        firing record;
    BEGIN
        FOR firing IN EXECUTE format('SELECT k, %s AS slot FROM firing ORDER BY at', of_firing) LOOP
            IF advisory.claim('simulation', rule, '15 s', firing.slot) IS NOT NULL THEN
                INSERT INTO claimed VALUES (rule, firing.k);
            END IF;
            COMMIT;
        END LOOP;
    END \$\$;
SQL

# [windows in which a scheduler fired, windows of these that were not claimed, windows that were claimed more than once]
sub simulate {
    my ($rule, $of_firing) = @_;
    $one->query('CALL simulate(?, ?)', $rule, $of_firing)->{state} and die "the simulation failed\n";
    return $look->rows(<<'SQL', $rule)->[0];
        SELECT count(*), count(*) FILTER (WHERE claims = 0), count(*) FILTER (WHERE claims > 1)
        FROM (SELECT k, (SELECT count(*) FROM claimed AS c WHERE c.k = f.k AND rule = $1) AS claims FROM (SELECT DISTINCT k FROM firing) AS f) AS w
SQL
}

my %rules = ('the nearest boundary' => q{advisory._window('15 s', at)}, 'the nominal time' => 'nominal');
for my $rule (sort keys %rules) {
    my ($fired, $missed, $twice) = @{ simulate($rule, $rules{$rule}) };
    cmp_ok($fired, '>', WINDOWS * 0.9, "$rule: somebody fired in $fired windows");
    is("$missed,$twice", '0,0', "$rule: none is missed, and none is claimed twice");
}
my (undef, $missed, $twice) = @{ simulate('rounded down', q{date_bin('15 s', at, '2001-01-01 00:00+00')}) };
cmp_ok($missed, '>', 100, "rounded down: $missed are missed (so the test can fail)");
cmp_ok($twice, '>', 100, "rounded down: and $twice are claimed twice");
is($look->value(q{SELECT count(*) FROM firing WHERE advisory._window('15 s', at) <> nominal}), 0, 'the nearest boundary is the nominal time');

# ---- Many sessions, short windows, rollbacks, ends in the middle ----------------------------------------------------------------

$look->run('CREATE TABLE ran (claimed timestamptz, pid int DEFAULT pg_backend_pid())', 'CREATE SEQUENCE rolled_back', 'CREATE SEQUENCE came_second', <<'SQL');
    CREATE PROCEDURE play() LANGUAGE plpgsql AS $$
    DECLARE
        claimed timestamptz;
    BEGIN
        -- Until the test takes this lock.
        WHILE pg_try_advisory_xact_lock_shared(97) LOOP
            COMMIT;
            BEGIN
                claimed := advisory.claim('claims', 'load', '100 ms');
            EXCEPTION WHEN serialization_failure THEN
                claimed := NULL;
                PERFORM nextval('came_second');
            END;
            IF claimed IS NULL THEN
                PERFORM pg_sleep(random() * 0.005);
                CONTINUE;
            END IF;
            INSERT INTO ran VALUES (claimed);
            PERFORM pg_sleep(random() * 0.03);
            IF random() < 0.4 THEN
                PERFORM nextval('rolled_back');
                ROLLBACK;
            END IF;
        END LOOP;
    END $$
SQL
my @levels = ('read committed', 'read committed', 'repeatable read', 'serializable');

sub player {
    my ($number) = @_;
    return session(application => 'player')->run("SET default_transaction_isolation = '$levels[$number % @levels]'")->start('CALL play()');
}

my @players = map { player($_) } 0 .. PLAYERS - 1;
my ($killed, $number, $end) = (0, 0, time + MOST_LOADED_S);
# Until all of it has happened often enough.
my $ENOUGH = "SELECT (SELECT count(*) FROM ran) > @{[LEAST_WINDOWS]} AND (SELECT min(last_value) FROM (TABLE rolled_back UNION ALL TABLE came_second) AS s) > @{[LEAST_EACH]}";
while (time < $end && ($killed < KILLS || !$look->value($ENOUGH))) {
    sleep 0.1;
    next if $killed >= KILLS;
    # One that has claimed a window and works.
    $killed += $look->value(q{SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'player' AND wait_event = 'PgSleep' AND backend_xid IS NOT NULL LIMIT 1) AS k});
    push @players, player(++$number) while PLAYERS > grep { !$_->is_done } @players;
}
$look->run('SELECT pg_advisory_lock(97)');
my %states;
$states{ $_->finish->{state} // 'success' }++ for @players;
# A SERIALIZABLE transaction can also fail at its COMMIT, which ends the procedure.
delete @states{qw(57P01 08000 08006 40001)};
is(join(',', keys %states), 'success', 'under load: all end well but those that were ended, or could not be serialized');
cmp_ok($killed, '>', 0, "under load: $killed were, with a claim");
my ($windows, $distinct) = @{ $look->rows('SELECT count(*), count(DISTINCT claimed) FROM ran')->[0] };
is($windows, $distinct, "under load: $windows windows, none twice");
cmp_ok($look->value('SELECT last_value FROM came_second'), '>', 3, 'under load: also after serialization failures');
cmp_ok($windows, '>', 10, 'under load: many');
cmp_ok($look->value('SELECT last_value FROM rolled_back'), '>', 3, 'under load: also after rollbacks');
is($look->value(q{SELECT max(claimed) = (SELECT last_window FROM advisory.claims WHERE key = advisory.key('claims', 'load')) FROM ran}), 1, 'under load: the last one is what claims has');

# ---- How a wait for another claim ends ------------------------------------------------------------------------------------------

$one->run('BEGIN', claim('2026-01-01 10:00+00'));
$two->run('BEGIN')->start(claim('2026-01-01 10:00+00'));
waits($look, $two);
is($look->value('SELECT pg_blocking_pids(?)', $two->pid)->[0], $one->pid, 'a claim waits for another one of its window');
is($look->value('SELECT pg_terminate_backend(?, 5000)', $one->pid), 1, 'which is ended');
like($two->finish->{value}, qr/^2026-01-01/, 'then it has the window');
$one = session();
$one->start(claim('2026-01-01 10:00+00'));
waits($look, $one);
$look->run('SELECT pg_cancel_backend(' . $one->pid . ')');
$end = $one->finish;
is($end->{state}, '57014', 'a cancel ends the wait');
like($end->{context}, $CONTEXT, 'and the context says what for');
my %limits = (statement_timeout => '57014', lock_timeout => '55P03');
for my $limit (sort keys %limits) {
    $end = $one->run("SET $limit = '100ms'")->query(claim('2026-01-01 10:00+00'));
    is($end->{state}, $limits{$limit}, "$limit ends it");
    like($end->{context}, $CONTEXT, "$limit: and the context says what for");
    $one->run("RESET $limit");
}
$two->run('COMMIT');
is($one->value(claim('2026-01-01 10:00+00')), undef, 'it was claimed');

# A prepared transaction.
$two->run('BEGIN', claim('2026-01-01 11:00+00'), q{PREPARE TRANSACTION 'claim'});
$one->start(claim('2026-01-01 11:00+00'));
waits($look, $one);
$two->run(q{ROLLBACK PREPARED 'claim'});
like($one->finish->{value}, qr/^2026-01-01/, 'a prepared transaction that is rolled back leaves the window');

# Two that claim two names in different order.
$_->run(q{SET deadlock_timeout = '50ms'}, 'BEGIN') for $one, $two;
$one->run(claim('2026-01-01 12:00+00'));
$two->run(claim('2026-01-01 12:00+00', 'y'));
$one->start(claim('2026-01-01 12:00+00', 'y'));
waits($look, $one);
$two->start(claim('2026-01-01 12:00+00'));
my @states = map { $_->finish->{state} // 'success' } $one, $two;
is(join(',', sort @states), '40P01,success', 'in different order: a deadlock, which is found');
$_->run('ROLLBACK', 'RESET deadlock_timeout') for $one, $two;

# ---- Errors -------------------------------------------------------------------------------------------------------------------

my %errors = (
    q{'claims', 'x', NULL} => '22004', q{'claims', NULL::text, '1 h'} => '22004', q{NULL, 'x', '1 h'} => '22004', q{'claims', '', '1 h'} => '22023',
    q{'claims', 'x', '0'} => '22023', q{'claims', 'x', '-1 s'} => '22023', q{'claims', 'x', '1 month'} => '22023', q{'claims', 'x', '2147483647 days'} => '22008',
    q{'claims', 'x', '1 h', 'infinity'} => '22008', q{'claims', 'x', '1 h', '-infinity'} => '22008',
);
# Intervals can be infinite since 17.
@errors{ q{'claims', 'x', 'infinity'}, q{'claims', 'x', '-infinity'}, q{'claims', 'x', 'infinity', '2027-01-01'} } = qw(22008 22023 22008)
    if $look->value(q{SELECT current_setting('server_version_num')::int >= 170000});
is($look->query("SELECT advisory.claim($_)")->{state}, $errors{$_}, "claim($_): $errors{$_}") for sort keys %errors;
like($look->query(q{SELECT advisory.claim('claims', 'x', '1 month')})->{hint}, qr/as slot/, 'months: the hint says what to do');
$look->run('BEGIN READ ONLY');
is($look->query(claim('2026-01-01'))->{state}, '25006', 'in READ ONLY: 25006');
$look->run('ROLLBACK');
$end = $look->query('SELECT advisory.claim(?, ?, ?, ?)', 'claims', 'untyped', '1 hour', '2026-01-01 00:00+00');
like($end->{value}, qr/^20/, 'with untyped parameters');
done_testing();
