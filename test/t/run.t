#!/usr/bin/env perl
# advisory.run(): two commands never run at the same time, until the effects of the first are
# committed and its deferred triggers have run. If the lock is taken, the command is skipped or an
# error is raised. The lock is free afterwards, however the command or its session ends.
use FindBin;
use AdvisoryTest;
use Jobs;
use Time::HiRes qw(sleep time);

create_database();
my ($look, $gate, $one, $two, $three) = map { session() } 1 .. 5;
begin_jobs(look => $look, gate => $gate, one => $one, two => $two, three => $three,
    free => q{SELECT count(*) FROM advisory.locks
        WHERE database = current_database() AND namespace = 'jobs'});

busy(sub ($waiter) {
    $look->shows('SELECT backend_xmin IS NULL AND backend_xid IS NULL FROM pg_stat_activity
        WHERE pid = ?', 1, 'it waits without a snapshot', $waiter->pid);
});
$look->shows(q{SELECT skipped FROM advisory.stats WHERE namespace = 'jobs' AND name = 'nightly'}, 2,
    'what was skipped is counted');
$look->shows(q{SELECT acquired FROM advisory.stats WHERE namespace = 'jobs' AND name = 'nightly'},
    2, 'and what ran, once each');

deferred_triggers();

# A command that commits keeps the lock until its end.
$look->run('TRUNCATE done');
close_gate();
waits($look, $one, run_sql('CALL in_steps()'));
done_is('first step', 'a command has committed its first step');
skips('in the middle of its steps', $two);
open_gate();
$one->returns(1, 'it has run to its end');
done_is('first step,second step,third step', 'all of its steps');
is_free('after the last step');

# Errors, cancels and terminations, also after steps that have committed.
sub interrupted ($interrupt) {
    my $session = session();
    close_gate();
    waits($look, $session, run_sql('CALL in_steps()'));
    $look->value("SELECT $interrupt", $session->pid);
    my $end = $session->finish;
    open_gate();
    return $end;
}
# The SQLSTATE, and the command or what happens to one.
my %ends = (
    'an error'           => [ '22012', 'SELECT 1/0' ],
    'a syntax error'     => [ '42601', 'SELEC 1' ],
    'an error at commit' => [ '23505', 'CREATE TABLE t (i int UNIQUE DEFERRABLE INITIALLY DEFERRED);
        INSERT INTO t VALUES (1), (1)' ],
    'statement_timeout'  => [ '57014', sub { $one->run("SET statement_timeout = '1 s'")
        ->query(run_sql('SELECT pg_sleep(30)')) } ],
    'a cancel'           => [ '57014', sub { interrupted('pg_cancel_backend(?)') } ],
    'pg_terminate_backend' =>
        [ '57P01|08000', sub { interrupted('pg_terminate_backend(?, 5000)') } ],
    'VACUUM'             => [ '25001', 'VACUUM done' ],
    'CREATE INDEX CONCURRENTLY' => [ '25001', 'CREATE INDEX CONCURRENTLY ON done (what)' ],
    'WAIT FOR' => [ $one->value('SHOW server_version_num') < 190000 ? '42601' : '0A000',
        q{WAIT FOR LSN '0/0'} ],
);
# Lets that happen. Returns the error, and the SQLSTATE that it should have.
sub ended ($what) {
    my ($state, $command) = @{ $ends{$what} };
    my $end = ref $command ? $command->() : $one->query(run_sql($command));
    $one->query('SET statement_timeout = 0');
    return ($end, $state);
}
for my $what (sort keys %ends) {
    my ($end, $state) = ended($what);
    like($end->{state}, qr{$state}, "$what: the error is the command's own");
    like($end->{hint}, qr/CALL advisory\.await_lock\(\) as a separate statement before the command/,
        "$what: and what to do instead") if $state =~ /25001|0A000/;
    is_free($what);
    $two->shows(run_sql('SELECT 1'), 1, "$what: the next one runs");
}

transaction_blocks();

# Slots: exactly two.
two_slots();
close_gate();
waits($look, $one, run_sql('INSERT INTO deferred VALUES ($_$slot$_$)', ', slots => 2'));
$look->shows(q{SELECT in_use FROM advisory.semaphores WHERE namespace = 'jobs'}, 1,
    'a slot is kept until the commit is done');
$two->shows(run_sql('SELECT 1', ', slots => 2'), 1, 'and the other is free');
open_gate();
$one->finish;
$two->fails(run_sql('SELECT 1/0', ', slots => 2'), '22012', 'a slot, and an error');
is_free('slots');
$two->shows(q{SELECT advisory.try_acquire('jobs', 'nightly',
    2) || ',' || advisory.try_acquire('jobs', 'nightly', 2)}, '1,2', 'all slots are free');
$two->shows(q{SELECT advisory.unlock_all('jobs')}, 2, 'and back');

# If the session holds the lock already, the job adds a hold.
$one->run(q{SELECT advisory.lock('jobs', 'nightly')});
$one->shows(run_sql('SELECT 1'), 1, 'a session that has the lock may run');
$one->shows(q{SELECT advisory.hold_count('jobs', 'nightly')}, 1, 'and has it as before');
$one->fails(run_sql('SELECT 1/0'), '22012', 'also after an error');
$one->shows(q{SELECT advisory.hold_count('jobs', 'nightly')}, 1, 'it has it');
$one->run(q{SELECT advisory.unlock('jobs', 'nightly')});

# Each statement of a command sees the effects of the statements before it, and what was committed
# before the lock was granted.
$look->run('CREATE TABLE q (i int, w text)');
for my $way (['at top level', sub { run_sql($_[0]) }], ['in DO', sub {
    "DO \$d\$ DECLARE ran boolean;
        BEGIN CALL advisory.run('jobs', 'nightly', \$\$$_[0]\$\$, ran => ran); END \$d\$";
}]) {
    my ($where, $call) = @$way;
    $one->run('TRUNCATE q')->run($call->(q{INSERT INTO q VALUES (1, 'a'); INSERT INTO q
            SELECT count(*), 'n' FROM q; UPDATE q SET i = i + 100}));
    $look->shows(q{SELECT string_agg(i || w, ',' ORDER BY w) FROM q}, '101a,101n',
        "$where: a statement sees the ones before");
    $one->run($call->('CREATE TEMP TABLE s AS SELECT 7 AS i; INSERT INTO q SELECT i FROM s;
            DROP TABLE s'));
    $look->shows('SELECT count(*) FROM q WHERE i = 7', 1, "$where: also a table that it made");
    $one->run('TRUNCATE q');
    close_gate();
    waits($look, $one, "DO \$d\$ DECLARE ran boolean; BEGIN PERFORM passes_gate('late');
        CALL advisory.run('jobs', 'nightly', 'INSERT INTO q SELECT count(*) FROM q', ran => ran);
        END \$d\$");
    $two->run($call->('INSERT INTO q SELECT count(*) FROM q'));
    open_gate();
    $one->finish;
    $look->shows(q{SELECT string_agg(i::text, ',' ORDER BY i) FROM q}, '0,1',
        "$where: and what the one before it committed");
}
$one->run('TRUNCATE q');
$one->run(run_sql(q{CALL in_steps(); INSERT INTO q SELECT count(*) FROM done; DO $x$ BEGIN INSERT
        INTO q SELECT count(*) FROM q; COMMIT; END $x$; INSERT INTO q SELECT count(*) FROM q}));
$look->shows(q{SELECT string_agg((i > 2)::int::text, ',' ORDER BY i) || ',' || count(*) FROM q},
    '0,0,1,3', 'statements that commit and others, in their order');

# Its time and number in the statistics and the log, as one hold.
for my $more ('', ', slots => 2') {
    my $what = $more ? 'slot' : 'lock';
    my $log = logged(sub { $one->run('SET advisory_ext.log_hold = 150')->run('BEGIN')
            ->run("CALL advisory.run('time', '$what', 'SELECT pg_sleep(0.2)'$more)")
            ->run('SELECT pg_sleep(0.1)')->run('COMMIT')->run('RESET advisory_ext.log_hold') });
    $look->shows(q{SELECT acquired || ',' || (hold_max > '290 ms') || ',' || (hold_total = hold_max)
        FROM advisory.stats WHERE namespace = 'time' AND name = ?}, '1,true,true',
        "$what: the whole time is one hold", $what);
    is(scalar(() = $log =~ m{held .*"time/$what}g), 1, "$what: and logged once") or diag($log);
}
$one->run('BEGIN')->run(q{SELECT advisory.xact_lock('time', 'twice')})
    ->run(q{CALL advisory.run('time', 'twice', 'SELECT 1')})->run('COMMIT');
$look->shows(q{SELECT acquired FROM advisory.stats WHERE namespace = 'time' AND name = 'twice'}, 2,
    'beside a hold of the transaction it is one more');
$one->run('BEGIN')->run(q{CALL advisory.run('time', 'before', 'SELECT 1')})
    ->run(q{SELECT advisory.xact_lock('time', 'before')})->run('COMMIT');
$look->shows(q{SELECT acquired FROM advisory.stats WHERE namespace = 'time' AND name = 'before'}, 2,
    'before one, too');

# A deadlock's hint names locks that survive the error; the job's lock does not survive it.
for my $more ('', ', slots => 1') {
    for my $kept (undef, 'kept') {
        my $what = ($more ? 'slot' : 'lock') . ($kept ? ', with another kept' : '');
        $one->run(q{SELECT advisory.lock('jobs', 'kept')}) if $kept;
        $one->run(q{SET deadlock_timeout = '10 ms'});
        $two->run(q{SET deadlock_timeout = '1 min'})->run('BEGIN')
            ->run('SELECT advisory.xact_lock_key(98)');
        close_gate();
        waits($look, $one, run_sql(q{SELECT passes_gate('_');
                CALL advisory.run('inner', 'job', 'SELECT advisory.xact_lock_key(98)')}, $more));
        waits($look, $two, $more ? q{SELECT advisory.xact_acquire('jobs', 'nightly', 1)}
            : q{SELECT advisory.xact_lock('jobs', 'nightly')});
        open_gate();
        my $end = $one->ends('40P01', "$what: a deadlock");
        my ($survivors) = $end->{hint} =~ /^This session still holds (.*)/m;
        is($survivors, $kept && 'session-level advisory lock "jobs/kept", which an error does not '
            . 'release.', "$what: what outlives it");
        $two->ends(undef, "$what: the other has it then");
        $_->run('ROLLBACK')->run('RESET deadlock_timeout') for $one, $two;
        $one->run('SELECT pg_advisory_unlock_all()');
        is_free("$what: after a deadlock");
    }
}

# If the command runs out of memory, the lock is released.
SKIP: {
    my $prlimit = program('prlimit') or skip 'prlimit is not installed', 1;
    for my $more (6_000, 10_000, 10_064, 10_448) {
        my $poor = session();
        $poor->run(run_sql('SELECT 1'));
        my ($size) = map { /^VmSize:\s+(\d+)/ } do {
            open my $status, '<', '/proc/' . $poor->pid . '/status' or ();
            <$status>
        };
        # The server's owner may send signals to its processes.
        my @limit = ('bash', "$FindBin::Bin/../../scripts/server.sh", 'as', $prlimit, '--pid',
            $poor->pid);
        system(@limit, '--as=' . ($size + $more) * 1024 . ':') == 0 or skip 'no limits here', 1;
        $poor->fails(run_sql(q{DO $x$ BEGIN FOR i
                IN 1..200000 LOOP EXECUTE 'PREPARE p' || i || ' AS SELECT 1'; END LOOP; END $x$ }),
            '53200', "a command that runs out of memory ($more kB)");
        is_free('out of memory');
    }
}

# An error points into the command, as one in EXECUTE does, also behind other statements and
# characters of several bytes.
sub points_at ($command, $state, $rest, $what) {
    my $result = $one->query(run_sql($command));
    my ($query, $position, $outside) = map { $one->dbh->pg_error_field("$_") } qw(internal_query
        internal_position statement_position);
    is($result->{state}, $state, "$what: $state");
    is(substr($query // '', ($position // 1) - 1), $rest, "$what: points at it in the command");
    is($outside, undef, "$what: and not into the CALL");
    is_free($what);
    return;
}
points_at('SELEC 1', '42601', 'SELEC 1', 'a syntax error');
points_at("SELECT 'größe ☃';\n -- ;\n SELEC 2; SELECT 3", '42601', 'SELEC 2; SELECT 3',
    'one in a later statement');
points_at('SELECT 1; SELECT (2', '42601', '', 'one at the end');
points_at('SELECT 1; SELECT (2; SELECT 3', '42601', '; SELECT 3', 'one at a semicolon');
points_at(q{SELECT 1; SELECT 'open; SELECT 2}, '42601', q{'open; SELECT 2},
    'a literal without an end');
points_at(q{SELECT 'größe ☃'; SELECT 'größe', nothing}, '42703', 'nothing',
    'a column that is not there');
my $result = $one->query(q{DO $d$ DECLARE ran boolean;
    BEGIN CALL advisory.run('jobs', 'nightly', 'SELECT 1; SELEC 2', ran => ran); END $d$});
is($one->dbh->pg_error_field('internal_query') . '|' . $one->dbh->pg_error_field(
        'internal_position'), 'SELECT 1; SELEC 2|11', 'from PL/pgSQL the same');

# A statement ends where PostgreSQL says so.
$look->run('CREATE TABLE said (i int GENERATED ALWAYS AS IDENTITY, what text)');
$one->run(run_sql(<<'SQL'));
 ; INSERT INTO said (what) VALUES ('a;b') -- one; two
    , ($_$c;d$_$) /* three; /* four; */ */; ;
INSERT INTO said (what) SELECT 'e' AS ";";
CREATE FUNCTION says() RETURNS text BEGIN ATOMIC SELECT CASE WHEN true THEN 'f' END;
    SELECT CASE WHEN true THEN 'g' END; END;
INSERT INTO said (what) VALUES (says());
CREATE RULE says AS ON DELETE TO said DO ALSO (INSERT INTO said (what)
    VALUES ('h'); INSERT INTO said (what) VALUES ('i'));
DELETE FROM said WHERE what = 'e'; -- the end
SQL
$look->shows(q{SELECT string_agg(what, ',' ORDER BY i) FROM said}, 'a;b,c;d,g,h,i',
    'semicolons inside statements, and between them');

# The whole command is parsed before anything of it runs, so under the settings that are in force at
# the call, as the server does with several statements in one string. (19 has no other
# standard_conforming_strings.)
my @settings = ([q{backslash_quote}, q{E'it\'s'}]);
push @settings, [q{standard_conforming_strings}, q{'it\'s'}]
    if $one->value(q{SELECT current_setting('server_version_num')::int < 190000});
my $quiet = @settings > 1 ? 'SET LOCAL escape_string_warning = off' : 'SELECT';
for my $setting (@settings) {
    my ($name, $literal) = @$setting;
    my ($can, $cannot) = $name eq 'backslash_quote' ? qw(on off) : qw(off on);
    $look->run('TRUNCATE said');
    $one->run('BEGIN')->run($quiet)->run("SET LOCAL $name = $can");
    is($one->query(run_sql("INSERT INTO said (what) VALUES ($literal)"))->{message}, undef,
        "no error: $name = $can");
    $one->run('COMMIT');
    is($look->value('SELECT what FROM said'), q{it's}, 'parsed under the setting');
    $one->run("SET $name = $cannot");
    $one->fails(run_sql("SET LOCAL $name = $can; INSERT INTO said (what) VALUES ($literal)"),
        $name eq 'backslash_quote' ? '22P06' : '42601', "an error: $name changes in the command");
    $one->run("RESET $name");
    is_free($name);
}
close_gate();
$result = $one->fails(run_sql('SELECT passes_gate($_$never$_$); SELEC 1'), '42601',
    'a syntax error in the last statement is found before the first runs');
open_gate();

# Parsing takes time and memory in proportion to the command's length, and gives the memory back.
sub status_kb ($what) {
    open my $status, '<', '/proc/' . $one->pid . '/status' or return;
    return (map { /^$what:\s+(\d+)/ } <$status>)[0];
}
SKIP: {
    skip 'the kernel does not tell how much memory and time a process used', 4
        unless defined status_kb('VmHWM') && -r '/proc/' . $one->pid . '/schedstat';
    my $cpu = sub {
        open my $stat, '<', '/proc/' . $one->pid . '/schedstat' or die "the session has gone: $!\n";
        return (split ' ', <$stat>)[0] / 1e9
    };
    my ($before_cpu, $before_kb) = ($cpu->(), status_kb('VmHWM'));
    $one->shows(run_sql('CREATE FUNCTION pg_temp.long() RETURNS integer BEGIN ATOMIC '
            . 'SELECT 1;' x 4_000 . ' END'), 1, 'one statement with 4000 semicolons');
    $one->fails(run_sql(';' x 500_000), '22023', '500000 semicolons without a statement');
    cmp_ok($cpu->() - $before_cpu, '<', 10, 'both take seconds of processor time at most');
    cmp_ok(status_kb('VmHWM') - $before_kb, '<', 500_000, 'and not much memory');
}
# Between two statements it looks for interrupts. A SET does not.
$one->run(q{SET statement_timeout = '300 ms'});
$one->fails(run_sql('SET LOCAL test.x = 1; ' x 500_000), '57014',
    'statement_timeout ends a command of many short statements');
$one->run('RESET statement_timeout');
# 3 MB of semicolons hold up neither a cancel nor pg_terminate_backend().
for my $case ([ 'pg_cancel_backend', ';' x 3_000_000, '57014|22023' ],
    [ 'pg_cancel_backend', 'SELECT 1;' x 333_333, '57014' ],
    [ 'pg_terminate_backend', 'SELECT 1;' x 333_333, '57P01|08000' ]) {
    my ($function, $command, $state) = @$case;
    my $parsing = session()->start(run_sql($command));
    sleep 0.1;
    $look->value("SELECT $function(?)", $parsing->pid);
    my $start = time;
    like($parsing->finish->{state}, qr/^(?:$state)$/, "$function ends 3 MB of semicolons");
    cmp_ok(time - $start, '<', 10, 'at once');
    eval { $parsing->disconnect };
    until_gone($look, $parsing) if $function eq 'pg_terminate_backend';
}
is_free('after many short statements');

# A procedure that commits, where it cannot: the hint says where it can.
my %no_commit = ('in a transaction block' => sub {
    $one->run('BEGIN');
    my $end = $one->query(run_sql($_[0]));
    $one->run('ROLLBACK');
    return $end
},
    'together with other statements' => sub { return $one->query('SELECT 1; ' . run_sql($_[0])) });
for my $where (sort keys %no_commit) {
    for my $command ('CALL in_steps()', 'SELECT 1; DO $x$ BEGIN COMMIT; END $x$ ') {
        my $end = $no_commit{$where}->($command);
        is($end->{state}, '2D000', "$where: $command cannot commit");
        like($end->{hint}, qr/Turn autocommit on/, 'and what to do');
    }
}
is_free('after a commit that was not possible');
$one->run('CREATE PROCEDURE in_a_subtransaction() LANGUAGE plpgsql AS $$ BEGIN BEGIN COMMIT;
    EXCEPTION WHEN division_by_zero THEN END; END $$');
$result = $one->query(run_sql('CALL in_a_subtransaction()'));
is("$result->{state}|" . ($result->{hint} // ''), '2D000|', 'no such hint where it is no help');

# Commands that release the lock: the warning is about what is gone. The first column is what the
# session does before.
sub warnings_of ($command, $more = '') {
    return join '', @{ $one->query(run_sql($command, $more))->{warnings} }
}
my $UNLOCK = q{SELECT advisory.unlock('jobs', 'nightly')};
my $LOCK = q{SELECT advisory.lock('jobs', 'nightly')};
my $RELEASED = 'WARNING:  advisory lock "jobs/nightly" was released by the command that ran '
    . 'under it';
my $GONE = qr{^$RELEASED
DETAIL:  Another session may have run its command at the same time\.\n?$};
like(warnings_of($UNLOCK), $GONE, 'the lock is released: a warning');
$one->run($LOCK);
like(warnings_of('SELECT pg_advisory_unlock_all()'), $GONE,
    'the lock and an earlier hold are released: the same');
$one->shows(q{SELECT advisory.hold_count('jobs', 'nightly')}, 0, 'and nothing is left');
$one->run($LOCK);
like(warnings_of($UNLOCK),
    qr{^WARNING:  the command released advisory lock "jobs/nightly", which this session held before
DETAIL:  The number of session-level holds was 1 before the command and is 0 now\.\n?$},
    'an earlier hold is released: the warning says that');
$one->shows(q{SELECT advisory.hold_count('jobs', 'nightly')}, 0, 'and it is gone');
$one->run($LOCK)->run($LOCK)->run($LOCK);
like(warnings_of("$UNLOCK; $UNLOCK"), qr{holds was 3 before the command and is 1 now},
    'two of three');
$one->shows(q{SELECT advisory.hold_count('jobs', 'nightly')}, 1, 'as it says');
is(warnings_of("$LOCK; $UNLOCK"), '', 'no warning if it takes what it releases');
is(warnings_of("$UNLOCK; $LOCK"), '', 'in either order, since the session had it before');
is(warnings_of($LOCK), '', 'or takes one more');
is($one->value($UNLOCK) . $one->value($UNLOCK), '11', 'which the session has then');
$one->run('BEGIN')->run(q{SELECT advisory.xact_lock('jobs', 'nightly')});
like(warnings_of($UNLOCK), qr{^$RELEASED\nDETAIL:  The transaction still holds it\.\n?$},
    'the transaction had it before: nothing else can have run');
$one->run('COMMIT');
$one->run(q{SELECT advisory.acquire('jobs', 'nightly', 3)});
like(warnings_of(q{SELECT advisory.release('jobs', 'nightly')}, ', slots => 3'),
    qr{^WARNING:  slot 2 of semaphore "jobs/nightly" was released},
    'a slot is released, not the one from before');
$one->shows(q{SELECT advisory.release('jobs', 'nightly', 1)}, 1, 'which the session still has');
is_free('commands that release');

# Once per window: the claim is committed before the command, under the lock.
my $hours = 0;

# Each use of next_window() has one that nobody had before.
sub next_window { $hours++; return }

sub arguments {
    return ", once_per => '1 hour', once_window => '2026-01-01 00:00+00'::timestamptz + interval "
        . "'$hours hours'";
}

sub once ($command, $more = '') { return run_sql($command, arguments() . $more) }

sub is_claimed ($expected, $what) {
    return is($look->value(q{SELECT extract(epoch FROM last_window - '2026-01-01 00:00+00')::int /
            3600 FROM advisory.claims WHERE key = advisory.key('jobs', 'nightly')}),
        $expected ? $hours : $hours - 1,
        $what . ($expected ? ': the window is claimed' : ': the window is not claimed'));
}
# What advisory.claims says of the last window.
sub finished {
    return $look->value(q{SELECT CASE WHEN finished_at >= claimed_at
        AND claimed_at <= clock_timestamp() THEN 'finished' WHEN finished_at IS NULL
        THEN 'not finished' END || ', ' || state FROM advisory.claims WHERE name = 'nightly'});
}
my $SKIPPED = 'NOTICE:  command was not run because window 2026-01-01 .* of "jobs/nightly"';
my $TIME = qr{\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d};
my $WAS = qr{Window $TIME was claimed at $TIME};
my $BY = qr{$WAS by .*, and finished at $TIME\.};
my $CLAIMED = qr{^$SKIPPED or a later one is already claimed\nDETAIL:  $BY\n?$};
next_window();
$look->run('TRUNCATE done', 'SELECT advisory.stats_reset()');
close_gate();
waits($look, $one, once('SELECT passes_gate($_$once$_$)'));
is_claimed(1, 'while the command runs');
is(finished(), 'not finished, running', 'while the command runs, claims says so');
is($look->value(q{SELECT namespace || '/' || name || ' by ' || claimed_by FROM advisory.claims
        WHERE name = 'nightly'}),
    $look->value(q{SELECT 'jobs/nightly by ' || concat_ws('@', usename, nullif(application_name,
        '')) FROM pg_stat_activity WHERE pid = ?}, $one->pid), 'and by whom');
skips('once per window: while it runs', $two, ", once_per => '1 hour'");
open_gate();
$one->returns(1, 'once per window: it has run');
is(finished(), 'finished, done', 'once per window: claims says that it has finished');
is_free('once per window: after it');
$result = $two->query(once('SELECT passes_gate($_$again$_$)'));
is($result->{value}, 0, 'once per window: then nobody else runs it');
like("@{$result->{warnings}}", $CLAIMED, 'and is told so');
is_free('once per window: after a second one');
$result = $two->query(once('SELECT passes_gate($_$again$_$)', q{, if_busy => 'error'}));
is("$result->{state}|$result->{schema}/$result->{constraint}", '55000|jobs/nightly',
    'or it is an error');
like($result->{message},
    qr{^window 2026-01-01 .* of "jobs/nightly" or a later one is already claimed$},
    'which says so');
like($result->{detail}, qr{^$BY$}, '... and what became of it');
is_free('once per window: after the error');
done_is('once', 'it ran once');
$look->shows(q{SELECT skipped FROM advisory.stats WHERE namespace = 'jobs' AND name = 'nightly'}, 2,
    'what was skipped is counted');
next_window();
$two->shows(once('SELECT 1'), 1, 'in the next window it runs again');
next_window();
$two->shows(once('SELECT 1', ', slots => 3'), 1, 'with slots, too');
$two->shows(once('SELECT 1', ', slots => 3'), 0, 'once');
$two->shows(q{CALL advisory.run('jobs', 'clock', 'SELECT 1', once_per => '1 hour')}, 1,
    'by the clock');
$look->shows(q{SELECT last_window = advisory_internal.window('1 hour', clock_timestamp())
    FROM advisory.claims WHERE key = advisory.key('jobs', 'clock')}, 1, 'the window of now');

zoned();
apart();

# At most once: whatever becomes of the command, the window stays claimed.
for my $what (sort keys %ends) {
    next_window();
    my ($end, $state) = do { local $Jobs::always = arguments(); ended($what) };
    like($end->{state}, qr{$state}, "once per window, $what: the error is the command's own");
    is_free("once per window, $what");
    # The command is parsed before anything is taken.
    is_claimed($end->{state} ne '42601', "once per window, $what");
    is(finished(), 'not finished, failed',
        "once per window, $what: claims says that it has failed")
        if $end->{state} ne '42601';
}
# That somebody else has the lock now does not make it run. Who may not see the claim's owner is
# told the rest.
$two->run(q{SELECT advisory.lock('jobs', 'nightly')});
is(finished(), 'not finished, failed', 'a lock that another session takes later is not that job');
$two->run(q{SELECT advisory.unlock('jobs', 'nightly')});
{
    $look->run('CREATE ROLE advisory_runner LOGIN');
    my $other = session(role => 'advisory_runner');
    $result = $other->query(once('SELECT 1'));
    like("@{$result->{warnings}}", qr{\nDETAIL:  $WAS, and has not finished\.\n?$},
        'another role is not told who has claimed it');
    $other->shows(q{SELECT state, name FROM advisory.claims WHERE state = 'failed'},
        'failed|<insufficient privilege>', '... and sees that something has failed');
    leave($look, $other);
    $look->run('DROP ROLE advisory_runner');
}
$look->shows(q{SELECT last_skipped_at BETWEEN claimed_at AND clock_timestamp() FROM advisory.claims
    WHERE name = 'nightly'}, 1, 'claims says when it was last skipped');


# The window is that of the call, however long it waits for the lock.
$look->run(q{SELECT advisory.lock('jobs', 'waits')});
waits($look, $one,
    q{CALL advisory.run('jobs', 'waits', 'SELECT 1', '1 min', once_per => '100 ms')});
my $asked = $look->value('SELECT clock_timestamp()');
$look->run('SELECT pg_sleep(0.3)', q{SELECT advisory.unlock('jobs', 'waits')});
$one->returns(1, 'after a wait for the lock it runs');
$look->shows(q{SELECT last_window <= ?::timestamptz + interval '50 ms' FROM advisory.claims
    WHERE key = advisory.key('jobs', 'waits')}, 1, 'in the window of the call', $asked);

# Another transaction has claimed the window by claim(), and does not say yet whether it keeps it.
next_window();
$two->run('BEGIN', "SELECT advisory.claim('jobs', 'nightly', '1 hour',
    '2026-01-01 00:00+00'::timestamptz + interval '$hours hours')");
$result = $one->run("SET lock_timeout = '100 ms'")->fails(once('SELECT 1'), '55P03',
    'lock_timeout ends the wait for a claim');
like($result->{context}, qr{^while claiming window 2026-01-01 .* of "jobs/nightly"}m,
    'and the context says so');
is_free('after lock_timeout');
$one->run('RESET lock_timeout')->start(once('SELECT 1'));
waits($look, $one);
$look->run('SELECT pg_cancel_backend(' . $one->pid . ')');
$one->ends('57014', 'so does a cancel');
is_free('after the cancel');
waits($look, $one, once('SELECT 1'));
$two->run('ROLLBACK');
$one->returns(1, 'if it rolls back, the command runs');
is_claimed(1, 'then');

# When it counts as finished: with the transaction in which the command ends, unless something else
# became of the claim.
$look->run('CREATE TABLE at_commit (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)',
    'CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$BEGIN INSERT INTO at_commit VALUES (0);
    COMMIT; PERFORM pg_sleep(0); COMMIT; END$$');
next_window();
$one->shows(once('CALL commits()'), 1, 'a command that commits');
is(finished(), 'finished, done', 'has finished');
next_window();
$one->fails(once('INSERT INTO at_commit VALUES (1), (1)'), '23505',
    'a command that fails at its commit');
is(finished(), 'not finished, failed', 'has not');
next_window();
$result = $one->query(once('SET TRANSACTION READ ONLY; SELECT 1'));
is($result->{value}, 1, 'a command that ends in a READ ONLY transaction has run');
my $END = 'the end of window 2026-01-01 .* of "jobs/nightly"';
like("@{$result->{warnings}}",
    qr{^WARNING:  $END is not recorded, because the transaction is read-only}, 'with a warning');
is(finished(), 'not finished, failed', 'as its end cannot be recorded');
my $LATER = "SELECT advisory.claim('jobs', 'nightly', '1 hour',
    '2026-01-01 00:00+00'::timestamptz + interval '%s hours')";
for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE') {
    $one->run("SET default_transaction_isolation = '$level'");
    # In the meantime: what another session does, and what becomes of the row.
    my %meanwhile = (
        'claims the next window, and does not commit' => sub { $two->run('BEGIN', sprintf $LATER,
            $hours + 1) },
        'claims the next window' => sub { $two->run(sprintf $LATER, ++$hours) },
        'takes the claim back' => sub {
            $two->run("SELECT advisory.unclaim('jobs', 'nightly',
                '2026-01-01 00:00+00'::timestamptz + interval '$hours hours')");
            $hours--
        },
        'takes the claim back, and claims the window' => sub {
            $two->run("SELECT advisory.unclaim('jobs', 'nightly',
                '2026-01-01 00:00+00'::timestamptz + interval '$hours hours')",
                sprintf($LATER, $hours), q{UPDATE advisory._claims SET finished_at = NULL}) },
        'locks the table, and does not commit' => sub { $two->run('BEGIN',
            'LOCK TABLE advisory._claims IN SHARE MODE') },
    );
    for my $what (sort keys %meanwhile) {
        next_window();
        close_gate();
        waits($look, $one, once('SELECT passes_gate($_$meanwhile$_$)'));
        $meanwhile{$what}->();
        my $before = $look->rows('SELECT last_window, claimed_at, finished_at
            FROM advisory.claims');
        open_gate();
        my $end = $one->finish;
        is(($end->{state} // '') . '|' . ($end->{value} // ''), '|1',
            "$level: if another session $what, the command does not fail, nor wait");
        is_deeply($look->rows('SELECT last_window, claimed_at, finished_at FROM advisory.claims'),
            $before, "$level: ... and its end is not recorded for that");
        $two->run('ROLLBACK') if $what =~ /does not commit/;
        next_window();
        $one->shows(once('SELECT 1'), 1, "$level: ... and the next window runs");
        is(finished(), 'finished, done', "$level: ... and finishes");
    }
}
$one->run('RESET default_transaction_isolation');
{
    my $database = create_database(name => "drops_$$", aside => 1);
    my $drops = session(database => $database);
    $result = $drops->query(run_sql('DROP EXTENSION advisory_ext', ", once_per => '1 hour'"));
    is(($result->{state} // '') . '|' . ($result->{value} // ''), '|1',
        'a command that drops the extension');
    $drops->shows(q{SELECT count(*) FROM pg_extension WHERE extname = 'advisory_ext'}, 0,
        'has dropped it');
}

# Where it cannot commit: an error, before it takes anything.
next_window();
$one->run('CREATE FUNCTION calls_run() RETURNS void LANGUAGE plpgsql AS $f$ DECLARE ran boolean;
    BEGIN ' . once('SELECT 1', ', ran => ran') . '; END $f$');
my %no_claim = (
    'in a transaction block' => sub {
        $one->run('BEGIN');
        my $end = $one->query(once('SELECT 1'));
        $one->run('ROLLBACK');
        return $end
    },
    'together with other statements' => sub { return $one->query('SELECT 1; ' . once('SELECT 1')) },
    'in a function' => sub { return $one->query('SELECT calls_run()') },
    'in a block with an EXCEPTION clause' => sub {
        return $one->query('DO $d$ DECLARE ran boolean; BEGIN BEGIN ' . once('SELECT 1',
                ', ran => ran') . '; EXCEPTION WHEN division_by_zero THEN END; END $d$');
    },
    'in EXECUTE' => sub { return $one->query('DO $d$ BEGIN EXECUTE $e$' . once('SELECT 1')
        . '$e$; END $d$') },
);
for my $where (sort keys %no_claim) {
    my $end = $no_claim{$where}->();
    is($end->{state}, '2D000', "once per window, $where: an error");
    like($end->{hint}, qr/Turn autocommit on.*use advisory\.claim\(\)/, "$where: and what to do");
}
is_free('where it cannot commit');
is_claimed(0, 'where it cannot commit');
$result = $one->run('SET default_transaction_read_only = on')->fails(once('SELECT 1'), '25006',
    'in READ ONLY: 25006');
like($result->{message}, qr/advisory\.run\(\)/, '... of the function that was called');
$one->run('RESET default_transaction_read_only');
is_free('in READ ONLY');

# From PL/pgSQL, in a loop over a query; it commits what was done before, and keeps the isolation
# level.
$look->run('TRUNCATE done');
$result = $one->query(<<'SQL');
    DO $d$ DECLARE
        ran boolean;
        i int;
    BEGIN
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
        INSERT INTO done VALUES ('before');
        FOR i IN SELECT generate_series(1, 3) LOOP
            CALL advisory.run('jobs', i,
                'INSERT INTO done VALUES (current_setting($$transaction_isolation$$))',
                    once_per => '1 hour', ran => ran);
            RAISE NOTICE 'ran: %', ran;
        END LOOP;
        ROLLBACK;
    END $d$
SQL
is($result->{state}, undef, 'from PL/pgSQL');
is(scalar(grep { /ran: t/ } @{ $result->{warnings} }), 3, 'it runs three times')
    or diag(@{ $result->{warnings} });
done_is('before,repeatable read,repeatable read', 'each commits what was before');
$look->shows(q{SELECT count(*) FROM advisory.claims WHERE key IN (advisory.key('jobs', 1),
    advisory.key('jobs', 2), advisory.key('jobs', 3))}, 3, 'and its claim');
# If that commit fails, the window is not claimed.
$look->run('CREATE TABLE once_each (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)');
$result = $one->fails('DO $d$ DECLARE ran boolean; BEGIN INSERT INTO once_each VALUES (1), (1); '
    . once('SELECT 1', ', ran => ran') . '; END $d$', '23505', 'a commit that fails');
is_free('a commit that fails');
is_claimed(0, 'a commit that fails');

stale();

# Arguments.
wrong_arguments();
$one->shows(q{CALL advisory.run('jobs', 'by position', 'SELECT 1', '0', NULL, 'skip', NULL,
        '1 hour', '2026-01-01')}, 1, 'by position, behind ran');
is_free('once per window');

# Other ways.
$one->run('SET advisory_ext.session_locks = off');
$one->shows(run_sql('SELECT 1'), 1, 'session_locks does not concern it');
$one->shows('CALL advisory.run(?, ?::bigint, ?)', 1, 'by id, with parameters', 'jobs', 42,
    'SELECT 1');
like($one->warned(q{DO $$ DECLARE ran boolean; BEGIN CALL advisory.run('jobs', 'nightly',
        'CALL in_steps()', ran => ran); RAISE NOTICE 'ran: %', ran; END $$}), qr/ran: t/,
    'from PL/pgSQL, commits and all');
like($one->warned(run_sql('SELECT pg_advisory_unlock_all()')),
    qr/advisory lock "jobs\/nightly" was released by the command that ran under it/,
    'a command that releases the lock gets a warning');
like($one->query(run_sql('SELECT 1; SELECT pg_advisory_unlock_all()',
        ', slots => 2'))->{warnings}[0], qr/slot \d of semaphore "jobs\/nightly" was released/,
    'or which slot');
is($one->query(run_sql('SELECT 1; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE'))->{hint}, undef,
    'no hint where it is no help');
my %bad = ('BEGIN' => '2D000', 'COPY done TO STDOUT' => '0A000');
$one->fails(run_sql($_), $bad{$_}, "$_ cannot be such a command") for sort keys %bad;
$one->fails("CALL advisory.run('jobs', 'nightly', '$_')", '22023', "an empty command: '$_'")
    for '', ' ; ;', '-- nothing';
is_free('at the end');

under_load(sub { session() });
is_free('after the load');

# The client reads nothing of a long message while the transaction is still there, with its rows.
{
    my ($failing, $look) = (session(), session());
    $failing->run('SET log_min_messages = panic');
    $failing->start(run_sql(
        q{DO $do$ BEGIN RAISE EXCEPTION '%', repeat('x', 20000000); END $do$;}));
    $look->wait_until('it sends the error', q(SELECT count(*) FROM pg_stat_activity
        WHERE pid = ? AND wait_event = 'ClientWrite'), $failing->pid);
    $look->shows(q(SELECT advisory.is_locked('jobs', 'nightly')), 1,
        'after an error the lock is held until the rows are gone');
    $failing->ends('P0001', 'which is soon');
    is_free('after it');
}
done_testing();
