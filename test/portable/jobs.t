#!/usr/bin/env perl
# Claims, jobs and fences of the portable edition, mostly as a role without privileges: commands
# that exclude each other to the end of the commit of their effects, what run() refuses, and what
# another session can do between the claim and the command.
use AdvisoryTest;
use Jobs;
use Trap;

my $owner = create_portable_database();
my $look = session();
$look->run('CREATE ROLE jobs_nobody LOGIN', 'CREATE ROLE jobs_other LOGIN',
    'CREATE SCHEMA work AUTHORIZATION jobs_nobody');
sub nobody {
    return session(role => 'jobs_nobody', application => $_[0] // 'nobody')
        ->run('SET search_path = work, public')
}
my ($one, $two, $three, $gate) = map { nobody($_) } qw(one two three gate);
begin_jobs(gate => $gate, one => $one, two => $two, three => $three,
    look => session()->run('SET search_path = work, public'),
    free => q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'));

sub claim ($window, $name = 'x') {
    return "SELECT advisory.claim('claims', '$name', '10 min', '$window')"
}

# Tests what the server says of a claim: claimed, finished. There is none without an answer.
sub claim_is ($name, $expected, $what) {
    return $owner->shows(q(SELECT claimed_at IS NOT NULL, finished_at IS NOT NULL
        FROM advisory._claims WHERE name = ?), $expected, $what, $name);
}

# ---- Claims (claims.spec of both editions has those at the same time) ----------------------------

$one->run(claim('2026-01-01 10:00+00'), 'BEGIN', claim('2026-01-01 12:00+00'));
$two->run("SET statement_timeout = '50ms'");
$two->fails(claim('2026-01-01 12:00+00'), '57014', 'statement_timeout ends the wait for a claim');
$two->run('RESET statement_timeout');
$two->fails(q(SELECT advisory.unclaim('claims', 'x', '2026-01-01 10:00+00')), '42501',
    'unclaim() is for the owner');
$one->run('ROLLBACK');
$owner->shows(q(SELECT advisory.unclaim('claims', 'x', '2026-01-01 10:00+00')), 1,
    'the owner takes a claim back');
ok($two->value(claim('2026-01-01 10:00+00')), '... and it is claimed again');
ok($two->value('SELECT advisory.claim(?, ?, ?, ?)', 'claims', 'untyped', '1 hour',
    '2026-01-01 00:00+00'), 'with untyped parameters');

# ---- Which window --------------------------------------------------------------------------------

{
    my ($origin, $wrong, $number) = (978_307_200_000_000, 0, 0);
    my @lengths = (1, 2, 999_999, 60_000_000, 119_999_999, 120_000_001, 3_600_000_000,
        86_400_000_000, 7 * 86_400_000_000, 17 * 86_400_000_000 + 7, 366 * 86_400_000_000,
        map { int(10**(1 + rand 12)) } 1 .. 40);
    for my $length (@lengths) {
        $one->run('SET timezone = '
            . (qw('UTC' 'America/St_Johns' 'Europe/Berlin' 'Pacific/Chatham'))[ $number++ % 4 ],
            'SET intervalstyle = ' . (qw(postgres iso_8601 sql_standard))[ $number % 3 ]);
        my $early = $length / 2 < 60_000_000 ? int($length / 2) : 60_000_000;
        my $days = int($length / 86_400_000_000);
        my ($from, $window, $to) =
            @{ $one->rows(sprintf q(SELECT (extract(epoch FROM f)::numeric * 1000000)::bigint,
                (extract(epoch FROM c)::numeric * 1000000)::bigint,
            (extract(epoch FROM clock_timestamp())::numeric * 1000000)::bigint
            FROM (SELECT clock_timestamp() OFFSET 0) AS x (f),
            LATERAL (SELECT advisory.claim('window', '%d',
            make_interval(days => %d) + %s * interval '1 us') OFFSET 0) AS y (c)),
            $number, $days, $length % 86_400_000_000)->[0] };
        # It is said by the millisecond in which it begins: the first and the last one of those.
        my $first = $window + ($origin - $window) % $length;
        my $last = $first + $length * int(($window + 999 - $first) / $length);
        next if $window % 1000 == 0 && $first < $window + 1000
            && $last + $length > $from + $early && $first <= $to + $early;
        $wrong++;
        diag "every $length µs: window $window, not of $from to $to";
    }
    is($wrong, 0,
        'windows are multiples of their length since 2001, in whole ms, in every time zone');
    $one->run('RESET timezone', 'RESET intervalstyle');
}

# ---- Who sees what -------------------------------------------------------------------------------

my $other = session(role => 'jobs_other', application => "oth\ner\x{202e}");
$other->run(q(SELECT advisory.claim('other', 'secret', '1 hour')),
    q(SELECT advisory.claim('other', E'forged\nline', '1 hour')));
is_deeply($one->rows(q(SELECT DISTINCT namespace, name, key, claimed_by FROM advisory.claims
        WHERE namespace <> ALL ('{claims,window}'))),
            [ [ '<insufficient privilege>', '<insufficient privilege>', undef,
                '<insufficient privilege>' ] ],
    "other roles' claims are hidden");
$other->shows(q(SELECT count(*) FROM advisory.claims WHERE name IN ('secret', 'forged?line')
        AND claimed_by LIKE 'jobs_other@%' AND key IS NOT NULL), 2, '... but not from themselves');
$look->shows(q(SELECT count(*) FROM advisory.claims WHERE namespace = 'other'), 2,
    '... nor from a superuser');
$one->fails("SELECT * FROM advisory.$_", '42501', "$_ cannot be read") for qw(_claims fences);
like($one->query($_)->{state}, qr/^(42501|55000)$/, "refused: $_")
    for 'DELETE FROM advisory._claims', q(UPDATE advisory.claims SET name = 'x'),
    'INSERT INTO advisory.fences VALUES (1, 1)';
$look->run('SET ROLE jobs_other');
$look->run(q(SELECT advisory.claim('other', 'set role', '1 hour')), 'RESET ROLE');
$owner->shows(q(SELECT role::regrole FROM advisory._claims WHERE name = 'set role'), 'jobs_other',
    'after SET ROLE it is the claim of that role');
$one->run(q(SELECT advisory.check_token('fence', 'f', 7)));
is($one->query(q(SELECT advisory.check_token('fence', 'f', 6)))->{detail},
    'A later holder has already used a greater token.', 'a stale token');

# ---- Who claims: the role whose code calls -------------------------------------------------------

# Another role's code, where session_user is a superuser. It must not pass for one.
$look->run(q(SELECT advisory.claim('victim', 'open', '1 hour')),
    q(UPDATE advisory._claims SET finished_at = NULL WHERE name = 'open'));
set_trap($look, $other, 'jobs_other', 'place text, session name, name text', <<'SQL');
    INSERT INTO lair.loot
        SELECT acts.place, session_user, namespace || '/' || name FROM advisory.claims;
    PERFORM advisory.claim('lair', place, '1 hour');
    PERFORM advisory._request('finish', 'victim', 'open', NULL, NULL, claimed_at)
    FROM advisory.claims;
    INSERT INTO advisory._request (asked_by, what, namespace, name, length)
        VALUES (10, 'claim_apart', 'lair', place || ' by hand', '1 us');
SQL
spring_trap($look);
$owner->shows(q(SELECT name, role::regrole::text, split_part(claimed_by, '@', 1)
        FROM advisory._claims WHERE namespace = 'lair' ORDER BY name),
    [ map { "$_|jobs_other|jobs_other" } map { ($_, "$_ by hand") } qw(analyze definer) ],
    'its claims are its own, in an index and behind SECURITY DEFINER');
$look->shows(q(SELECT count(DISTINCT place), bool_and(session <> 'jobs_other'),
        count(*) FILTER (WHERE name ~ '^victim') FROM lair.loot), '2|1|0',
    '... it sees no more than else');
claim_is('open', '1|0', '... and ends no job of others');
$look->run(q(SELECT advisory._request('finish', 'victim', 'open', NULL, NULL, claimed_at)
    FROM advisory._claims WHERE name = 'open'));
claim_is('open', '1|1', '... whose owner does');
$other->run('CREATE TABLE lair.request (LIKE advisory._request)',
    'CREATE TRIGGER forged BEFORE INSERT ON lair.request FOR EACH ROW
        EXECUTE FUNCTION advisory._serve_request()');
$other->fails(q(INSERT INTO lair.request (asked_by, what, namespace, name, length)
    VALUES (10, 'claim', 'victim', 'forged', '1 h')), '39P01',
    'no other table fires what serves a claim');
# A role by its number, not by its name.
$look->run('CREATE ROLE jobs_before', 'SET ROLE jobs_before');
session()->run('ALTER ROLE jobs_before RENAME TO jobs_after', 'CREATE ROLE jobs_before');
$look->run(q(SELECT advisory.claim('victim', 'renamed', '1 hour')), 'RESET ROLE');
$owner->shows(q(SELECT role::regrole::text FROM advisory._claims WHERE name = 'renamed'),
    'jobs_after', 'a role that was renamed claims as itself');
$look->run('SET session_replication_role = replica');
$look->fails(q(SELECT advisory.claim('victim', 'replica', '1 hour')), '55000',
    'where triggers do not fire, an error says so');
$look->run('RESET session_replication_role');

# ---- run() excludes ------------------------------------------------------------------------------

busy();
deferred_triggers();
two_slots();
transaction_blocks();

# With the other protocol.
$one->run('TRUNCATE done');
$one->shows('CALL advisory.run(?, ?, ?)', 1, 'extended protocol', 'jobs', 'nightly',
    q(INSERT INTO done VALUES ('bound')));
$one->shows('CALL advisory.run(?, ?, ?, once_per => ?)', 1, '... with once_per', 'jobs', 'nightly',
    q(INSERT INTO done VALUES ('bound once')), '1 day');
$one->shows('CALL advisory.run(?, ?, ?, once_per => ?)', 0, '... again', 'jobs', 'nightly',
    q(INSERT INTO done VALUES ('never')), '1 day');
done_is('bound,bound once', '... and the commands have run');
zoned();
$one->shows($_, 1, "with an id: $_")
    for q(CALL advisory.run('jobs', 5, 'SELECT 1', once_per => '1 hour')),
    q(CALL advisory.run('jobs', '00000000-0000-0000-0000-000000000001'::uuid, 'SELECT 1'));
apart();

# Who may not see the claim's owner is told the rest; where the lock is another session's, the job
# has failed.
$one->fails(q(CALL advisory.run('jobs', 'state', 'SELECT 1/0', once_per => '1 day')), '22012',
    'a job that fails');
my $STATE = q(SELECT state FROM advisory.claims WHERE name = 'state');
$two->run(q(SELECT advisory.lock('jobs', 'state')));
$look->shows($STATE, 'failed', 'its state');
$two->run(q(SELECT advisory.unlock('jobs', 'state')));
for ([ $two, qr/ by jobs_nobody\@one, and has/ ], [ $other, qr/[+-]\d\d, and has/ ]) {
    my ($session, $detail) = @$_;
    like("@{ $session->query(q(CALL advisory.run('jobs', 'state', 'SELECT 1', once_per => '1 day'))
        )->{warnings} }", qr/\nDETAIL:  Window .* was claimed at .*$detail not finished\.$/,
        'what another one is told');
}
is_free('all of these');

# The command is the caller's: role, search_path, settings.
$one->shows(run_sql(q(DO $_$ BEGIN IF current_user <> 'jobs_nobody'
        OR current_setting('search_path') <> 'work, public' THEN RAISE division_by_zero; END IF;
        END $_$)), 1, 'with its search_path');
$one->run(q(SET synchronous_commit = off), q(CREATE TABLE level (at_claim text)),
    q(CALL advisory.run('jobs', 'level',
        'INSERT INTO level VALUES (current_setting(''synchronous_commit''))',
        once_per => '1 day')));
is($one->value('SELECT at_claim FROM level') . ',' . $one->value('SHOW synchronous_commit'),
    'off,off', 'only the claim is committed synchronously');
$one->run('BEGIN',
    q(SELECT advisory._request('run', 'jobs', 'level', '1 us')));
$one->shows('SHOW synchronous_commit', 'on', '... which it is');
$one->run('ROLLBACK', 'RESET synchronous_commit');

# ---- Exclusion is never lost silently ------------------------------------------------------------

$one->run('TRUNCATE done');
my $HINT = qr/CALL advisory\.await_lock\(\) as a separate statement before the command/;
my %refused = (
    'CALL in_steps()' => [ '0A000', $HINT ],
    'INSERT INTO done VALUES (1); CALL in_steps()' => [ '0A000', $HINT ],
    'DO $_$ BEGIN INSERT INTO done VALUES (1); COMMIT; END $_$' => [ '0A000', $HINT ],
    'DO $_$ BEGIN ROLLBACK; END $_$' => [ '0A000', $HINT ], 'VACUUM done' => [ '25001', $HINT ],
    'CREATE INDEX CONCURRENTLY ON done (what)' => [ '25001', $HINT ],
    'DISCARD ALL' => [ '25001', $HINT ],
    q{WAIT FOR LSN '0/0'} => $one->value('SHOW server_version_num') < 190000
    ? ['42601'] : [ '0A000', $HINT ],
    'INSERT INTO done VALUES (1); COMMIT' => ['0A000'], 'COMMIT; BEGIN' => ['0A000'],
    'ROLLBACK' => ['0A000'], 'SAVEPOINT a' => ['0A000'], q(PREPARE TRANSACTION 'x') => ['0A000'],
    'COPY done TO STDOUT' => ['0A000'],
    'COPY done FROM STDIN' => ['0A000'], 'SELECT 1 AS one INTO into_table' => ['0A000'],
    'SELECT 1/0' => ['22012'], 'INSERT INTO done VALUES (1); SELECT 1/0' => ['22012'],
    'CALL in_steps(); SELEC 1' => ['42601'], 'SELECT 1; /* open' => ['42601'], '' => ['22023'],
    " ;\n /* a * / */ -- b\n;" => ['22023']);
for my $once ('', q(, once_per => '1 us')) {
    for my $command (sort keys %refused) {
        my ($state, $hint) = @{ $refused{$command} };
        my $result = $one->query(run_sql($command, $once));
        is($result->{state}, $state, "$state$once: $command") or diag explain $result;
        like($result->{hint}, $hint, '... and what to do') if $hint;
        is_free($command);
    }
}
done_is(undef, 'nothing of that has an effect');
$one->shows(run_sql('SELECT pg_advisory_unlock_all()'), 1,
    'a command that releases all session-level locks');
close_gate();
$one->start(run_sql('SELECT pg_advisory_unlock_all(); SELECT passes_gate($_$all$_$)'));
waits($look, $one);
skips('it', $two);
open_gate();
$one->finish;
$one->run('TRUNCATE done');
$one->shows(run_sql('INSERT INTO done VALUES (1); INSERT INTO done SELECT count(*) FROM done; -- '
        . 'the end'), 1, 'several statements, and a comment at the end');
done_is('1,1', '... each of which sees those before it');
$one->shows(run_sql("SELECT 'it''s'; SELECT ';'; DO \$_\$ BEGIN NULL; END \$_\$"), 1,
    'texts with semicolons');

# ---- Wrong arguments -----------------------------------------------------------------------------

wrong_arguments();
if ($look->value(q(SELECT current_setting('server_version_num')::int >= 170000))) {
    my %infinite = (
        q('claims', 'x', 'infinity') => '22008', q('claims', 'x', '-infinity') => '22023',
        q('claims', 'x', 'infinity', '2027-01-01') => '22008');
    $one->fails("SELECT advisory.claim($_)", $infinite{$_},
        "$infinite{$_}: claim($_)") for sort keys %infinite;
}
# ---- Once per window -----------------------------------------------------------------------------

sub once ($name, $command, $more = '') {
    return "CALL advisory.run('once', '$name', \$run\$$command\$run\$, once_per => '1 hour',
            once_window => '2026-03-01 03:00Z'$more)"
}
$one->run('TRUNCATE done');
$one->fails(once('a', 'SELEC 1'), '42601', 'a syntax error');
claim_is('a', [], '... claims nothing');
$one->shows(once('a', 'INSERT INTO done VALUES (1)'), 1, 'once');
claim_is('a', '1|1', '... it has finished');
my $result = $two->query(once('a', 'INSERT INTO done VALUES (2)'));
is($result->{value}, 0, 'not twice');
like("@{ $result->{warnings} }",
    qr{command was not run because window .* of "once/a" or a later one is already claimed},
    '... and a notice says so');
$two->fails(once('a', 'SELECT 1', q(, if_busy => 'error')), '55000', '... or an error');
done_is('1', '... and it has run once');
$one->fails(once('b', 'SELECT 1/0'), '22012', 'a command that fails');
claim_is('b', '1|0', '... leaves the window claimed, and not finished');
$look->run('GRANT jobs_other TO jobs_nobody');
$one->shows(once('role', 'SET LOCAL ROLE jobs_other'), 1, 'a job that sets a role');
claim_is('role', '1|1', '... has finished');
$owner->run('REVOKE USAGE ON SCHEMA advisory FROM PUBLIC',
    'GRANT USAGE ON SCHEMA advisory TO jobs_nobody');
$one->shows(once('no rights', 'SET ROLE jobs_other'), 1, 'a job that sets a role without rights');
$owner->run('GRANT USAGE ON SCHEMA advisory TO PUBLIC');
claim_is('no rights', '1|1', '... has finished, too');
$one->shows('SELECT current_user', 'jobs_other', '... and the role stays');
$one->run('RESET ROLE');
is_free('once per window');
for my $where ("BEGIN; %s", 'DO $d$ DECLARE ran boolean; BEGIN %s; END $d$') {
    my $call = $where =~ /DO/
        ? q(CALL advisory.run('once', 'c', 'SELECT 1', once_per => '1 hour', ran => ran))
        : once('c', 'SELECT 1');
    $one->run('BEGIN') if $where =~ /DO/;
    $result = $one->query(sprintf $where, $call);
    is($result->{state}, '2D000', 'where it cannot commit');
    $one->run('ROLLBACK');
}
$one->run(q(DO $d$ DECLARE ran boolean; BEGIN INSERT INTO done VALUES ('before');
        CALL advisory.run('once', 'd', 'SELECT 1/0', once_per => '1 hour', ran => ran);
    EXCEPTION WHEN invalid_transaction_termination THEN NULL; END $d$));
claim_is('d', [], 'nor in a block with an EXCEPTION clause');
$one->run(q(DO $d$ DECLARE ran boolean;
        BEGIN CALL advisory.run('once', 'd', 'INSERT INTO done VALUES (3)', once_per => '1 hour',
        ran => ran); INSERT INTO done VALUES (ran); END $d$));
done_is('1,3,true', 'in a DO block that can commit');
$one->run('SET default_transaction_read_only = on');
$one->fails(once('e', 'SELECT 1'), '25006', 'in a read-only transaction');
$one->shows(run_sql('SELECT 1'), 1, '... which does not matter without once_per');
$one->run('RESET default_transaction_read_only',
    q(SET default_transaction_isolation = 'repeatable read'));
$one->shows(once('f', q(DO $_$ BEGIN IF current_setting('transaction_isolation')
        <> 'repeatable read' THEN RAISE division_by_zero; END IF; END $_$)), 1,
    'REPEATABLE READ stays');
claim_is('f', '1|1', '... and it has finished');
$one->run('RESET default_transaction_isolation');

# The end of a job is not recorded if that would have to wait.
close_gate();
$one->start(once('g', 'SELECT passes_gate($_$g$_$)'));
waits($look, $one);
$two->run('BEGIN', q(SELECT advisory.claim('once', 'g', '1 hour', '2026-03-01 04:00Z')));
open_gate();
$one->returns(1, 'a job ends while another session claims the next window');
$two->run('ROLLBACK');
claim_is('g', '1|0', '... and has not waited for it');

# ---- Between the claim and the command -----------------------------------------------------------

# The COMMIT of the claim releases the lock. Who waited for it goes first; then the command runs.
# Nobody else runs it for this window.
for my $end ('runs', 'cancel', 'lock_timeout', 'terminate') {
    $one->run('TRUNCATE done');
    $gate->run(q(SELECT advisory.lock('once', 'gap')));
    my $job = nobody('job');
    $job->run($end eq 'lock_timeout' ? q(SET lock_timeout = '300ms') : 'RESET lock_timeout');
    my $call = q(CALL advisory.run('once', 'gap', 'INSERT INTO work.done VALUES (''job'')',
            timeout => NULL, once_per => '1 us'));
    $job->start($call);
    waits($look, $job);
    $two->start(q(SELECT advisory.lock('once', 'gap')));
    waits($look, $two);
    $gate->run(q(SELECT advisory.unlock('once', 'gap')));
    ok($two->finish->{value},
        "$end: a session that waited gets the lock when the claim is committed");
    claim_is('gap', '1|0', "$end: the window is claimed");
    done_is(undef, "$end: ... and the command does not run beside that session");
    waits($look, $job);
    $look->run('SELECT pg_cancel_backend(' . $job->pid . ')') if $end eq 'cancel';
    $look->run('SELECT pg_terminate_backend(' . $job->pid . ', 5000)') if $end eq 'terminate';
    if ($end eq 'runs') {
        $three->shows(q(CALL advisory.run('once', 'gap',
                'INSERT INTO work.done VALUES (''three'')', once_per => '1 us')), 0,
            'a third session is skipped');
        $two->run(q(SELECT advisory.unlock('once', 'gap')));
        $job->returns(1, 'then the command runs');
        done_is('job', '... once');
        claim_is('gap', '1|1', '... to its end');
    } else {
        like($job->finish->{state},
            { cancel => qr/57014/, lock_timeout => qr/55P03/,
                terminate => qr/57P01|08000/ }->{$end}, "$end: an error");
        $two->run(q(SELECT advisory.unlock('once', 'gap')));
        done_is(undef, "$end: the command has not run");
        claim_is('gap', '1|0', "$end: ... and the window is used up, which advisory.claims shows");
    }
    leave($look, $job);
    is_free($end);
}

# In REPEATABLE READ the command then does not see what that session has changed.
stale();
$one->run(q(SET default_transaction_isolation = 'repeatable read'));
$two->run(q(SELECT advisory.lock('once', 'stale')));
$one->start(q(CALL advisory.run('once', 'stale', 'UPDATE work.balance SET n = n + 1', '1 min',
    once_per => '1 hour')));
waits($look, $one);
$three->run('BEGIN');
$three->start(q(SELECT advisory.xact_lock('once', 'stale')));
waits($look, $three);
$two->run(q(SELECT advisory.unlock('once', 'stale')));
$three->returns(1, '... with once_per: another session has the lock after the claim');
waits($look, $one);
$three->run('UPDATE balance SET n = 2', 'COMMIT');
$one->ends('40001', '... and the command fails');
claim_is('stale', '1|0', '... although its window is claimed');
$one->run('RESET default_transaction_isolation');
is_free('REPEATABLE READ');

# ---- Under load ----------------------------------------------------------------------------------

under_load(sub { nobody('player') });
$_->run('SELECT pg_advisory_unlock_all()') for $one, $two, $three, $gate;
is_free('at the end');
done_testing();
