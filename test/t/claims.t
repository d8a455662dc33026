#!/usr/bin/env perl
# Once per window: of schedulers whose clocks differ each window is claimed once, and none is
# missed. Sessions that claim at the same time, roll back or are ended in the middle of it never
# have one window twice. It needs many sessions at once, and signals.
use AdvisoryTest;
use Time::HiRes qw(sleep time);

use constant { WINDOWS => 5000, PLAYERS => 8, MOST_LOADED_S => 60, KILLS => 10, LEAST_WINDOWS => 20,
    LEAST_EACH => 5 };

create_database();
my ($look, $one, $two, $three) = map { session() } 1 .. 4;
my $CONTEXT = qr{while claiming window .* of "claims/x"};

sub claim ($window, $name = 'x') {
    return "SELECT advisory.claim('claims', '$name', '1 hour', '$window')";
}

# ---- Three schedulers, whose clocks are off by up to 4 s -----------------------------------------

# Each fires for 70 % of the windows, as job.schedule says, and up to job.delay late. In some
# windows somebody calls by hand, at any time but within a minute of the schedule. The server's
# clock says `at` then. In 2010, so that no window is too far ahead.
$look->run(<<"SQL");
    CREATE TABLE job (job text, every interval, schedule interval, delay interval, windows int,
        by_hand float);
    INSERT INTO job VALUES ('of 15 s', '15 s', '0', '0', ${\WINDOWS}, 0), ('hourly', '1 hour', '0',
        '15 s', 2000, 0.5),
        ('daily at midnight', '1 day', '0', '15 s', 2000, 0.5), ('daily at noon', '1 day', '12 h',
            '15 s', 2000, 0.5);
    CREATE TABLE firing AS
        SELECT job, every, w, 'scheduler' AS caller, w + schedule + (random() * 8 - 4) * interval
            '1 s' + random() * delay AS at
        FROM job, generate_series(1, windows) AS k,
            LATERAL (SELECT '2010-01-01 00:00+00'::timestamptz + k * every) AS w (w),
                generate_series(1, 3)
        WHERE random() < 0.7
        UNION ALL
        SELECT job, every, w, 'hand', w + offs
        FROM job, generate_series(1, windows) AS k,
            LATERAL (SELECT '2010-01-01 00:00+00'::timestamptz + k * every, (0.02 + random() * 0.96)
                * every + k * interval '0', random() + k * 0) AS w (w, offs, dice)
        WHERE dice < by_hand AND abs(extract(epoch FROM offs - schedule)) > 60;
    INSERT INTO firing SELECT 'daily at midnight', '1 day', w, 'hand', w + interval '22 h 46 min'
        FROM generate_series('2010-01-02 00:00+00'::timestamptz, '2010-03-01', '1 day') AS w;
    CREATE TABLE claimed (rule text, job text, claimed timestamptz, w timestamptz, caller text);
    CREATE PROCEDURE simulate(rule text, as_sql text) LANGUAGE plpgsql AS \$\$
    DECLARE
        firing record;
        claimed timestamptz;
    BEGIN
        FOR firing IN EXECUTE format('SELECT *, %s AS start FROM firing ORDER BY at', as_sql) LOOP
            claimed := advisory.claim(rule, firing.job, firing.every, firing.start);
            IF claimed IS NOT NULL THEN
                INSERT INTO claimed VALUES (rule, firing.job, claimed, firing.w, firing.caller);
            END IF;
            COMMIT;
        END LOOP;
    END \$\$;
SQL

# Of each job: windows in which somebody called, [windows of these in which nothing ran, windows in
# which it ran more than once, runs by hand that took the window of a schedule still to come,
# schedules that found the window of another one].
sub simulate ($rule, $as_sql) {
    my $end = $one->query("CALL simulate(?, ?)", $rule, $as_sql);
    die "the simulation failed: $end->{message}\n" if $end->{state};
    return map { $_->[0] => [ $_->[1], "@{$_}[2 .. 5]" ] } @{ $look->rows(<<'SQL', $rule) };
        SELECT job, count(*), count(*) FILTER (WHERE ran = 0), count(*) FILTER (WHERE ran > 1),
            sum(too_early), sum(wrong)
        FROM (SELECT job, w, (SELECT count(*) FROM claimed AS c WHERE (c.job, c.w) = (f.job, f.w)
            AND rule = $1) AS ran,
                     (SELECT count(*) FROM claimed AS c WHERE (c.job, c.w) = (f.job, f.w)
                         AND rule = $1 AND caller = 'hand' AND claimed > w) AS too_early,
                     (SELECT count(*) FROM claimed AS c WHERE (c.job, c.w) = (f.job, f.w)
                         AND rule = $1 AND claimed <> w) AS wrong
              FROM (SELECT DISTINCT job, w FROM firing) AS f) AS x
        GROUP BY job
SQL
}

$look->run('CREATE INDEX ON claimed (job, w)');
for ([ 'the window of now' => 'advisory_internal.window(every, at)' ],
    [ 'given by the caller' => 'w' ]) {
    my ($rule, $as_sql) = @$_;
    my %of = simulate($rule, $as_sql);
    for my $job (sort keys %of) {
        my ($called, $wrong) = @{ $of{$job} };
        cmp_ok($called, '>', 1900, "$rule, $job: somebody called in $called windows");
        is($wrong, '0 0 0 0',
            "$rule, $job: in each it ran once, none was taken before its time, or for another one");
    }
    is(scalar keys %of, 4, "$rule: all jobs");
}
# So the test can fail.
for ([ 'the nearest boundary' => q{date_bin(every, at + every / 2, '2001-01-01 00:00+00')},
        'daily at noon', 'daily at midnight' ],
    [ 'rounded down' => q{date_bin(every, at, '2001-01-01 00:00+00')}, 'of 15 s', 'hourly' ]) {
    my ($rule, $as_sql, @jobs) = @$_;
    my %of = simulate($rule, $as_sql);
    isnt($of{$_}[1], '0 0 0 0', "$rule, $_: is wrong ($of{$_}[1])") for @jobs;
}

# ---- Many sessions, short windows, rollbacks, ends in the middle ---------------------------------

$look->run('CREATE TABLE ran (claimed timestamptz, pid int DEFAULT pg_backend_pid())',
    'CREATE SEQUENCE rolled_back', 'CREATE SEQUENCE came_second', <<'SQL');
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

sub player ($number) {
    return session(application => 'player')->run(
        "SET default_transaction_isolation = '$levels[$number % @levels]'")->start('CALL play()');
}

my @players = map { player($_) } 0 .. PLAYERS - 1;
my ($killed, $number, $end) = (0, 0, time + MOST_LOADED_S);
# Until all of it has happened often enough.
my $ENOUGH = "SELECT (SELECT count(*) FROM ran) > @{[LEAST_WINDOWS]} AND (SELECT min(last_value)
    FROM (TABLE rolled_back UNION ALL TABLE came_second) AS s) > @{[LEAST_EACH]}";
while (time < $end && ($killed < KILLS || !$look->value($ENOUGH))) {
    sleep 0.1;
    next if $killed >= KILLS;
    # One that has claimed a window and works.
    $killed += $look->value(q{SELECT count(*) FROM (SELECT pg_terminate_backend(pid)
        FROM pg_stat_activity
        WHERE application_name = 'player' AND wait_event = 'PgSleep' AND backend_xid IS NOT NULL
        LIMIT 1) AS k});
    push @players, player(++$number) while PLAYERS > grep { !$_->is_done } @players;
}
$look->run('SELECT pg_advisory_lock(97)');
my %states;
$states{ $_->finish->{state} // 'success' }++ for @players;
# A SERIALIZABLE transaction can also fail at its COMMIT, which ends the procedure.
delete @states{qw(57P01 08000 08006 40001)};
is(join(',', keys %states), 'success',
    'under load: all end well but those that were ended, or could not be serialized');
cmp_ok($killed, '>', 0, "under load: $killed were, with a claim");
my ($windows, $distinct) = @{ $look->rows('SELECT count(*), count(DISTINCT claimed)
        FROM ran')->[0] };
is($windows, $distinct, "under load: $windows windows, none twice");
cmp_ok($look->value('SELECT last_value FROM came_second'), '>', 3,
    'under load: also after serialization failures');
cmp_ok($windows, '>', 10, 'under load: many');
cmp_ok($look->value('SELECT last_value FROM rolled_back'), '>', 3,
    'under load: also after rollbacks');
$look->shows(q{SELECT max(claimed) = (SELECT last_window FROM advisory.claims WHERE key =
    advisory.key('claims', 'load')) FROM ran}, 1, 'under load: the last one is what claims has');

# ---- How a wait for another claim ends -----------------------------------------------------------

$one->run('BEGIN', claim('2026-01-01 10:00+00'));
$two->run('BEGIN')->start(claim('2026-01-01 10:00+00'));
waits($look, $two);
is($look->value('SELECT pg_blocking_pids(?)', $two->pid)->[0], $one->pid,
    'a claim waits for another one of its window');
$look->shows('SELECT pg_terminate_backend(?, 5000)', 1, 'which is ended', $one->pid);
like($two->finish->{value}, qr/^2026-01-01/, 'then it has the window');
$one = session();
waits($look, $one, claim('2026-01-01 10:00+00'));
$look->run('SELECT pg_cancel_backend(' . $one->pid . ')');
$end = $one->ends('57014', 'a cancel ends the wait');
like($end->{context}, $CONTEXT, 'and the context says what for');
my %limits = (statement_timeout => '57014', lock_timeout => '55P03');
for my $limit (sort keys %limits) {
    $end = $one->run("SET $limit = '100ms'")->fails(claim('2026-01-01 10:00+00'), $limits{$limit},
        "$limit ends it");
    like($end->{context}, $CONTEXT, "$limit: and the context says what for");
    $one->run("RESET $limit");
}
$two->run('COMMIT');
$one->shows(claim('2026-01-01 10:00+00'), 'NULL', 'it was claimed');

# A claim that is taken back.
sub unclaim { return "SELECT advisory.unclaim('claims', 'x', '$_[0]')" }
$two->run('BEGIN', claim('2026-01-01 10:20+00'));
$one->shows(unclaim('2026-01-01 10:20+00'), 0,
    'a claim that is not committed cannot be taken back by others');
$two->run('COMMIT', 'BEGIN', claim('2026-01-01 10:30+00'));
for my $limit (sort keys %limits) {
    $end = $one->run("SET $limit = '100ms'")->fails(unclaim('2026-01-01 10:20+00'), $limits{$limit},
        "$limit ends the wait of unclaim() for a later claim");
    like($end->{context}, qr{while unclaiming window .* of "claims/x"},
        "$limit: and the context says what for");
    $one->run("RESET $limit");
}
waits($look, $one, unclaim('2026-01-01 10:20+00'));
$two->run('COMMIT');
$one->returns(0, 'if that is committed, the claim is not the last one any more');
$two->run('BEGIN', claim('2026-01-01 10:40+00'));
waits($look, $one, unclaim('2026-01-01 10:30+00'));
$two->run('ROLLBACK');
$one->returns(1, 'if it is rolled back, the claim is taken back');
# While that is not committed, others wait, as for a claim.
$one->run('BEGIN', claim('2026-01-01 10:30+00'), 'COMMIT', 'BEGIN', unclaim('2026-01-01 10:30+00'));
$two->shows(claim('2026-01-01 10:30+00'), 'NULL',
    'while that is not committed, the window is claimed');
waits($look, $two, claim('2026-01-01 10:40+00'));
$one->run('ROLLBACK');
like($two->finish->{value}, qr/^2026-01-01/, 'and the next one waits');

# A prepared transaction.
$two->run('BEGIN', claim('2026-01-01 11:00+00'), q{PREPARE TRANSACTION 'claim'});
waits($look, $one, claim('2026-01-01 11:00+00'));
$two->run(q{ROLLBACK PREPARED 'claim'});
like($one->finish->{value}, qr/^2026-01-01/,
    'a prepared transaction that is rolled back leaves the window');

# Two that claim two names in different order.
$_->run(q{SET deadlock_timeout = '50ms'}, 'BEGIN') for $one, $two;
$one->run(claim('2026-01-01 12:00+00'));
$two->run(claim('2026-01-01 12:00+00', 'y'));
waits($look, $one, claim('2026-01-01 12:00+00', 'y'));
$two->start(claim('2026-01-01 12:00+00'));
my @states = map { $_->finish->{state} // 'success' } $one, $two;
is(join(',', sort @states), '40P01,success', 'in different order: a deadlock, which is found');
$_->run('ROLLBACK', 'RESET deadlock_timeout') for $one, $two;

# ---- Errors --------------------------------------------------------------------------------------

my %errors = (
    q{'claims', 'x', NULL} => '22004', q{'claims', NULL::text, '1 h'} => '22004',
    q{NULL, 'x', '1 h'} => '22004', q{'claims', '', '1 h'} => '22023',
    q{'claims', 'x', '0'} => '22023', q{'claims', 'x', '-1 s'} => '22023',
    q{'claims', 'x', '1 month'} => '22023', q{'claims', 'x', '2147483647 days'} => '22008',
    q{'claims', 'x', '1 h', 'infinity'} => '22008', q{'claims', 'x', '1 h', '-infinity'} => '22008',
);
# Intervals can be infinite since 17.
@errors{ q{'claims', 'x', 'infinity'}, q{'claims', 'x', '-infinity'},
    q{'claims', 'x', 'infinity', '2027-01-01'} } = qw(22008 22023 22008)
    if $look->value(q{SELECT current_setting('server_version_num')::int >= 170000});
$look->fails("SELECT advisory.claim($_)", $errors{$_}, "claim($_): $errors{$_}")
    for sort keys %errors;
like($look->query(q{SELECT advisory.claim('claims', 'x', '1 month')})->{hint}, qr/as window_start/,
    'months: the hint says what to do');
$look->run('BEGIN READ ONLY');
$look->fails(claim('2026-01-01'), '25006', 'in READ ONLY: 25006');
$look->run('ROLLBACK');
$end = $look->query('SELECT advisory.claim(?, ?, ?, ?)', 'claims', 'untyped', '1 hour',
    '2026-01-01 00:00+00');
like($end->{value}, qr/^20/, 'with untyped parameters');

# ---- A claim belongs to a role, not to its name; a dump is restored where it does not exist ------

{
    my ($from, $to) = map { create_database(name => "advisory_claims_$_\_$$", aside => 1) } qw(from
        to);
    my $role = "advisory_claimer_$$";
    $look->run("CREATE ROLE $role LOGIN");
    my $claimer = session(database => $from, role => $role);
    $claimer->run(q(SELECT advisory.claim('dumped', 'job', '1 hour', '2026-01-01 00:00Z')));
    leave($look, $claimer);
    $look->run("ALTER ROLE $role RENAME TO ${role}_2");
    my $renamed = session(database => $from, role => "${role}_2");
    $renamed->shows('SELECT name FROM advisory.claims', 'job', 'a role that is renamed sees it');
    leave($look, $renamed);
    open my $rows, '-|', 'pg_dump', '--data-only', '--table=advisory._claims',
        $from or die "cannot run pg_dump: $!\n";
    my $dump = do { local $/ = undef; readline $rows };
    close $rows;
    $look->run("DROP ROLE ${role}_2");
    open my $psql, '|-', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-d',
        $to or die "cannot run psql: $!\n";
    print {$psql} $dump;
    ok(close $psql, 'the rows are restored');
    my $restored = session(database => $to);
    $restored->shows(q(SELECT name FROM advisory.claims), 'job', 'and shown');
    $restored->shows(q(SELECT advisory.claim('dumped', 'job', '1 hour', '2026-01-01 00:00Z')),
        'NULL', 'so the window is not claimed once more');
    $look->run("CREATE ROLE $role LOGIN");
    for my $database ($from, $to) {
        my $other = session(database => $database, role => $role);
        $other->shows('SELECT name, claimed_by FROM advisory.claims',
            '<insufficient privilege>|<insufficient privilege>',
            'a role that has got the name of one that was dropped does not');
        leave($look, $other);
    }
    leave($look, $restored);
    $look->run(map({ "DROP DATABASE $_ WITH (FORCE)" } $from, $to), "DROP ROLE $role");
}
done_testing();
