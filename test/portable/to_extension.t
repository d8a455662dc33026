#!/usr/bin/env perl
# portable/to-extension.sql: from the portable edition to the extension while sessions hold locks
# and wait for them. Claims, fences and labels go along. If it cannot be done, the error says why,
# and nothing has changed.
use FindBin;
use AdvisoryTest;

my $FILE = "$FindBin::Bin/../../portable/to-extension.sql";

# Runs the file. Returns psql's errors, and its details and hints.
sub move ($database, $role = 'portable_owner', @more) {
    local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
    my $psql = 'psql -Xq -v ON_ERROR_STOP=1 -o /dev/null';
    return scalar `$psql -U '$role' @more -f '$FILE' '$database' 2>&1`;
}

# All that a failed attempt must leave as it is.
sub state_of ($session) {
    return $session->rows(q(SELECT oid::regprocedure::text, md5(pg_get_functiondef(oid)),
            proacl::text FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace
        UNION ALL SELECT oid::regclass::text, relkind::text, relacl::text FROM pg_class
        WHERE relnamespace = 'advisory'::regnamespace
        UNION ALL SELECT 'claim', to_json(c)::text, '' FROM advisory._claims AS c
        UNION ALL SELECT 'fence', to_json(f)::text, '' FROM advisory.fences AS f
        UNION ALL SELECT 'lease', to_json(l)::text, '' FROM advisory._leases AS l
        UNION ALL SELECT 'label', to_json(l)::text, '' FROM advisory.key_labels AS l
        UNION ALL SELECT 'edition', advisory.edition(), ''
        UNION ALL SELECT 'schema', nspname, nspowner::text FROM pg_namespace ORDER BY 1, 2));
}

my $name = "advisory_move_$$";
my $owner = create_portable_database(name => $name);
my $admin = session();
$owner->run(q(SELECT advisory.claim('move', 'daily', '1 day', '2026-03-01 00:00+00')),
    q(SELECT advisory.claim('move', 'daily', '1 day', '2026-03-02 00:00+00')),
    q(SELECT advisory.check_token('move', 'file', 7)),
    q(INSERT INTO advisory.key_labels (key, label, note) VALUES (4711, 'import', 'of the night')),
    q(INSERT INTO advisory.key_labels (key1, key2, label) VALUES (1, 2, 'pair')),
    q(CALL advisory.run('move', 'hourly', 'SELECT 1', once_per => '1 hour')));
$owner->query(q(CALL advisory.run('move', 'failed', 'SELECT 1/0', once_per => '1 hour',
        once_window => '2026-03-02 03:00Z')));

# ---- It cannot be done ---------------------------------------------------------------------------

my $before = state_of($owner);

sub unchanged ($what) {
    return is_deeply(state_of($owner), $before, "$what: nothing has changed")
}

$owner->run('ALTER TABLE advisory._leases RENAME max_hold TO hold');
like(move($name), qr/older version.*HINT:  Run the file advisory[.]sql of this version first/s,
    'an older version of the portable edition is refused');
$owner->run('ALTER TABLE advisory._leases RENAME hold TO max_hold');
unchanged('an older version');
$owner->run(
    'CREATE TABLE invoice (name text, token bigint,
        key bigint GENERATED ALWAYS AS (advisory.key(name)) STORED)',
    'CREATE TRIGGER fence BEFORE INSERT
        OR UPDATE ON invoice FOR EACH ROW EXECUTE FUNCTION advisory.fenced(\'token\')',
    'CREATE INDEX by_key ON invoice (advisory.key(\'invoice\', name))',
    'CREATE VIEW mine AS SELECT pid FROM advisory.locks',
    'CREATE VIEW advisory.own AS SELECT 1 AS one',
    qq(CREATE VIEW "forged\nHINT:  Run it again" AS SELECT pid FROM advisory.locks),
    'CREATE FUNCTION advisory.own() RETURNS int LANGUAGE sql AS \'SELECT 1\'');
$before = state_of($owner);
my $said = move($name);
like($said, qr/ERROR:  other objects are in schema advisory, or depend on it/,
    'with objects of others there');
like($said, $_, '... which are named') for qr/trigger fence on table (public\.)?invoice/,
    qr/column key of table (public\.)?invoice/, qr/index (public\.)?by_key/,
    qr/view (public\.)?mine/,
    qr/view advisory_portable\.own/, qr/function advisory_portable\.own\(\)/;
unlike($said, qr/_portable\.(try_lock|unlock|claim|_window|waits)/, '... and no others');
like($said, qr/HINT:  Drop or move them/, '... with what to do');
unlike($said, qr/^HINT:  Run it again/m, '... and a name makes no line of its own');
unchanged('with objects of others');
move($name, 'portable_owner', '-v', 'ON_ERROR_STOP=0');
unchanged('... also if psql goes on after errors');
$owner->run(qq(DROP VIEW mine, advisory.own, "forged\nHINT:  Run it again"),
    'DROP FUNCTION advisory.own()', 'DROP TABLE invoice');
$before = state_of($owner);

$admin->run('CREATE ROLE move_nobody LOGIN');
like(move($name, 'move_nobody'), qr/ERROR:  permission denied for \w+ _(claims|request)/,
    'as another role');
unchanged('as another role');
$admin->run("ALTER DATABASE \"$name\" OWNER TO $ENV{PGUSER}");
like(move($name), qr/ERROR:  permission denied for database/, 'as a role that may create nothing');
unchanged('as that role');
$admin->run("GRANT CREATE ON DATABASE \"$name\" TO portable_owner");
like(move($name), qr/ERROR:  permission denied for \w+ _(claims|request)/,
    "as a role that does not own the extension's tables");
unchanged('as that role');
$admin->run("ALTER DATABASE \"$name\" OWNER TO portable_owner");

my $gate = session();
$gate->run('SELECT pg_advisory_lock(99)');
my $worker = session(role => 'move_nobody');
for my $slots ('NULL', 2) {
    $worker->start("CALL advisory.run('move', 'job', 'SELECT pg_advisory_lock(99)', slots => $slots,
            once_per => '1 ms')");
    waits($admin, $worker);
    $before = state_of($owner);
    $said = move($name);
    like($said, qr{ERROR:  jobs are running: move/job\n}, "while a job runs, slots $slots");
    like($said, qr/HINT:  Run this file when they have ended/, '... with what to do');
    unchanged('while a job runs');
    $gate->run('SELECT pg_advisory_unlock(99)');
    $worker->returns(1, 'the job has run');
    $worker->run('SELECT pg_advisory_unlock_all()');
    $gate->run('SELECT pg_advisory_lock(99)');
}

# ---- It is done ----------------------------------------------------------------------------------

my $CLAIMS = q(SELECT key, namespace, name, last_window, window_before, claimed_at, claimed_by,
    role, role_name, finished_at, every, pid FROM advisory._claims);
my $claims = $owner->rows($CLAIMS);
my $LEASES = q(SELECT namespace, name, owner, token, state, ttl, acquired_at, renewed_at,
    expires_at, renewals, slot, max_hold FROM advisory.leases ORDER BY name);
my $token = $owner->value(q(SELECT token FROM advisory.lease('move', 'held', '1 hour',
    owner => 'host', lock_delay => '5 min')));
my $slot_token = $owner->value(q(SELECT token
    FROM advisory.lease_slot('move', 'slot', 2, '1 hour', max_hold => '2 hours')));
$owner->run(q(SELECT advisory.lease('move', 'of another server', '1 hour')),
    q(UPDATE advisory._leases SET server = 1, renewed_at = now() - interval '1 hour',
        expires_at = now() + interval '1 min' WHERE name = 'of another server'));
my $leases = $owner->rows($LEASES);
is($leases->[1][4], 'restarted', 'a lease of another server has its whole TTL again');
my ($holder, $in_transaction, $waiter, $other) =
    map { session(role => 'move_nobody', application => $_) } qw(holder transaction waiter other);
$holder->run(q(SELECT advisory.lock('move', 'name'), advisory.lock('move', 'name'),
        advisory.lock_key(4711), advisory.lock_shared('move', 'shared'),
        advisory.lock('move', 42)));
$in_transaction->run(
    'BEGIN', q(SELECT advisory.xact_lock('move', 'transaction'),
        advisory.xact_lock_shared_key(4712)));
# One waits without a limit, one with a timeout, and one for a lock of a list.
$waiter->start(q(SELECT advisory.lock('move', 'name')));
my $bounded = session(role => 'move_nobody');
$bounded->start(q(SELECT advisory.lock('move', 'transaction', '100 s')));
my $plain_job = session(role => 'move_nobody');
$plain_job->start(q(CALL advisory.run('move', 'plain', 'SELECT pg_advisory_lock(99)')));
waits($admin, $_) for $waiter, $bounded, $plain_job;

# Is each of the locks taken, for a session that comes now?
sub all_taken ($what) {
    my $new = session(role => 'move_nobody');
    is_deeply($new->rows(q(SELECT advisory.try_lock('move', 'name'), advisory.try_lock_key(4711),
            advisory.try_lock('move', 'shared'), advisory.try_lock_shared('move', 'shared'),
        advisory.try_lock('move', 42), advisory.try_lock('move', 'transaction'),
        advisory.try_lock_key(4712), advisory.try_lock_shared_key(4712),
        advisory.try_lock('move', 'plain'),
        advisory.try_lock('move', 'free'))), [[ 0, 0, 0, 1, 0, 0, 0, 1, 0, 1 ]],
            "$what: locks that others hold exclude");
    leave($admin, $new);
    return;
}
all_taken('before');
is(move($name), '', 'to the extension, while sessions hold locks and wait');
$owner->shows('SELECT advisory.edition()', 'extension', 'it is the extension');
is($owner->value(q(SELECT to_regnamespace('advisory_portable'))), undef,
    '... and nothing is left of the other edition');
all_taken('after');
$other->start(q(SELECT advisory.lock('move', 'name', '100 s')));
waits($admin, $other);

$holder->shows(q(SELECT advisory.unlock('move', 'name')), 1,
    'a holder from before releases a lock');
ok(!$waiter->is_done && !$other->is_done, '... that it has twice');
$holder->run(q(SELECT advisory.unlock('move', 'name')));
$waiter->returns(1, 'who waited before has the lock');
ok(!$other->is_done, '... and excludes who began to wait after');
$waiter->shows(q(SELECT advisory.unlock('move', 'name')), 1, '... until it releases the lock');
$other->returns(1, 'then that one has it');
$holder->shows(q(SELECT advisory.try_lock('move', 'name')), 0,
    '... and excludes a session from before');
$holder->shows(q(SELECT advisory.unlock_key(4711) AND advisory.unlock('move', 42)
        AND advisory.unlock_shared('move', 'shared')), 1, 'the other locks are released');
$in_transaction->run('COMMIT');
$bounded->returns(1, 'who waited with a timeout for the lock of a transaction has it');
$gate->run('SELECT pg_advisory_unlock(99)');
$plain_job->returns(1, 'a job has run to its end');
$other->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'),
    0, 'and all of that is released');

is_deeply($owner->rows($CLAIMS), $claims, 'claims are there');
is_deeply([ @{ $owner->rows($LEASES) }[ 0, 2 ], $owner->rows($LEASES)->[1][4] ],
    [ @$leases[ 0, 2 ], 'restarted' ], 'leases are there, with the times that are left to them');
$owner->shows("SELECT advisory.check_lease('move', 'held', $token)", 1,
    '... and their owner relies on them');
$owner->shows("SELECT advisory.check_lease('move', 'slot', $slot_token), slot
    FROM advisory.lease_slot('move', 'slot', 2, '1 hour')", '1|2', '... and on slots, which count');
$owner->shows("SELECT advisory.end_lease('move', 'held', $token), token > $token
    FROM advisory.lease('move', 'new', '1 hour')", '1|1', '... and new tokens are greater');
is($other->value(q(SELECT advisory.claim('move', 'daily', '1 day', '2026-03-02 00:00+00'))), undef,
    '... a window that was claimed is not claimed again');
$owner->shows(q(SELECT advisory.unclaim('move', 'daily', '2026-03-02 00:00+00')), 1,
    '... but can be taken back');
$other->shows(q(CALL advisory.run('move', 'failed', 'SELECT 1', once_per => '1 hour',
        once_window => '2026-03-02 03:00Z')), 0, '... nor does a job run again that failed');
$other->fails(q(SELECT advisory.check_token('move', 'file', 6)), '55000', 'fences are there');
is_deeply($owner->rows('SELECT key, key1, key2, label, note FROM advisory.key_labels ORDER BY key'),
    [[ 4711, undef, undef, 'import', 'of the night' ], [ undef, 1, 2, 'pair', undef ]],
    'labels are there');
is_deeply($owner->rows(q(SELECT p.oid::regprocedure::text FROM pg_proc AS p
        WHERE pronamespace = 'advisory'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid
    AND deptype = 'e'))), [], 'every function is the extension\'s');

like(move($name), qr/ERROR:  this database does not have the portable edition/,
    'it cannot be done twice');
$owner->shows('SELECT advisory.edition()', 'extension', '... and it is still the extension');

# ---- Elsewhere -----------------------------------------------------------------------------------

my $empty = create_database(name => "advisory_empty_$$", extension => 0, aside => 1);
like(move($empty, $ENV{PGUSER}), qr/ERROR:  this database does not have the portable edition/,
    'where no edition is');
is(session(database => $empty)->value(q(SELECT to_regnamespace('advisory'))), undef,
    '... it creates nothing');

# Tokens of the extension are greater than those that were checked before.
my $great = "advisory_great_$$";
my $great_owner = create_portable_database(name => $great, aside => 1);
$great_owner->run(q(INSERT INTO advisory.fences VALUES
        (advisory.key('move', 'file'), 4000000000000000000),
        (advisory.key('move', 'rubbish'), 9223372036854775807)),
    'CREATE TABLE advisory._keep (n int)', 'CREATE FUNCTION advisory._mine() RETURNS int
        LANGUAGE sql AS \'SELECT 1\'', 'CREATE FUNCTION advisory.lock(text[]) RETURNS int
        LANGUAGE sql AS \'SELECT 1\'', 'CREATE TABLE advisory.xorders (n int)');
# What a DBA may have set for all.
$admin->run(map { qq(ALTER DATABASE "$great" SET $_) } 'quote_all_identifiers = on',
    q(default_transaction_isolation = 'repeatable read'), 'default_transaction_read_only = on');
$admin->run(qq(ALTER DATABASE "$great" SET standard_conforming_strings = off))
    if $admin->value(q(SELECT current_setting('server_version_num')::int < 190000));
my $others = move($great, $ENV{PGUSER});
like($others, qr/ \Q$_\E depends /, "what others made stays: $_")
    for 'table advisory_portable._keep', 'table advisory_portable.xorders',
    'function advisory_portable._mine()', 'function advisory_portable.lock(text[])';
$great_owner->run('DROP TABLE advisory._keep, advisory.xorders',
    'DROP FUNCTION advisory._mine(), advisory.lock(text[])');
# What is committed while it waits goes along.
my $late = session(database => $great);
$late->run('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    q(SELECT advisory.lease('move', 'late', '1 hour'), advisory.claim('move', 'late', '1 day')));
{
    local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
    open my $moving, '-|', "psql -Xq -v ON_ERROR_STOP=1 -o /dev/null -f '$FILE' '$great' 2>&1"
        or die "$!\n";
    $admin->wait_until('it waits', q(SELECT count(*) FROM pg_stat_activity
        WHERE datname = ? AND wait_event_type = 'Lock'), $great);
    $late->run('COMMIT');
    is(join('', <$moving>), '', 'with a great token, as a superuser');
    close $moving;
}
$admin->run(qq(ALTER DATABASE "$great" RESET ALL));
session(database => $great)->shows(q(SELECT advisory.lock('move', 'file')
        AND advisory.check_token('move', 'file', advisory.token('move', 'file')),
        advisory.try_lease('move', 'late', '1 h'), advisory.claim('move', 'late', '1 day')),
    '1|(,)|NULL', '... new tokens are greater, and what was committed meanwhile is there');
my $era = "advisory_era_$$";
create_portable_database(name => $era, aside => 1)
    ->run(q(SELECT advisory.tokens_above((7::bigint << 50) + 1)));
is(move($era, $ENV{PGUSER}), '', 'with an era of its own');
session(database => $era)->shows(q(SELECT token >> 50 > 8 FROM advisory.lease('a', 'b', '1 h')), 1,
    '... new tokens are of a later one');

# Sessions at work. None of their transactions may be ended.
my $work = "advisory_work_$$";
my $working_owner = create_portable_database(name => $work, aside => 1);
$working_owner->run('CREATE TABLE done (name text, token bigint)', 'GRANT ALL ON done TO PUBLIC',
    'GRANT CREATE ON SCHEMA public TO PUBLIC', <<'SQL');
    CREATE PROCEDURE work(worker int) LANGUAGE plpgsql AS $$
    DECLARE
        token bigint;
        i int := 0;
    BEGIN
        WHILE advisory.edition() = 'portable' LOOP
            i := i + 1;
            token := (SELECT l.token
                FROM advisory.lease('work', worker || '_' || i, '1 hour') AS l);
            PERFORM advisory.claim('work', worker || '_' || i, '1 day'),
                    advisory.check_token('work', worker::text, token);
            INSERT INTO done VALUES (worker || '_' || i, token);
            COMMIT;
        END LOOP;
    END $$
SQL
my @workers = map { session(database => $work, role => 'move_nobody') } 1 .. 3;
$workers[$_]->start("CALL work($_)") for 0 .. $#workers;
$working_owner->wait_until('they work', 'SELECT count(DISTINCT left(name, 1)) / 3 FROM done');
is(move($work), '', 'beside sessions at work');
my %ended = map { ($_->finish->{state} // '') => 1 } @workers;
# Calls that run meanwhile find no function, or the other edition.
is_deeply([ grep { !/^(|42883|42P01|3F000|XX000)$/ } keys %ended ], [],
    '... none of which is ended');
session(database => $work)->shows(q(SELECT count(*) > 0, count(*) - count(l.token),
    count(*) - count(c.key) FROM done AS d LEFT JOIN advisory.leases AS l USING (name)
    LEFT JOIN advisory._claims AS c ON c.name = d.name WHERE l.token IS NULL
        OR l.token = d.token), '1|0|0', '... and no lease and no claim is lost');

# ---- As a superuser, where the owner has put functions of his own into the schema ----------------

my $planted = "advisory_planted_$$";
my $planter = create_portable_database(name => $planted, aside => 1);
$planter->run(q(INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'import')),
    q(SELECT advisory.claim('move', 'daily', '1 day', '2026-03-01 00:00+00')),
    q(CALL advisory.run('move', 'hourly', 'SELECT 1', once_per => '1 hour')),
    'UPDATE advisory._claims SET finished_at = NULL',
    <<'SQL', q(CREATE INDEX ON advisory._claims (abs(key)) WHERE advisory.planted(1) > 0));
    CREATE FUNCTION advisory.planted(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 1'
SQL
$planter->run(
    'ALTER TABLE advisory.fences ADD CONSTRAINT planted CHECK (advisory.planted(2) > 0)',
    'CREATE STATISTICS advisory.planted ON (advisory.planted(key) + advisory.planted(3)), name
        FROM advisory._claims',
    q(CREATE SCHEMA evil), <<'SQL');
    CREATE FUNCTION evil.sprung() RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('is_superuser') = 'on' THEN
            RAISE EXCEPTION 'sprung' USING ERRCODE = 'EV000';
        END IF;
        RETURN 1;
    END $$
SQL
# Every function of the schema that the owner can replace is his, and so is the view _keys.
$planter->run('CREATE OR REPLACE VIEW advisory._keys AS SELECT evil.sprung()::bigint AS key,
    1 AS pid, evil.sprung() AS mode, true AS granted', <<'SQL');
    DO $do$
    DECLARE
        definition text;
    BEGIN
        FOR definition IN
            SELECT regexp_replace(pg_get_functiondef(p.oid), ' LANGUAGE .*', '')
            || CASE provolatile WHEN 'i' THEN ' IMMUTABLE' ELSE '' END
            || ' LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.sprung(); END $$'
            FROM pg_proc AS p
            WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f' AND NOT proretset
        LOOP
            EXECUTE definition;
        END LOOP;
    END $do$
SQL
$admin->run(qq(ALTER DATABASE "$planted" SET constraint_exclusion = on));
my $super = session(database => $planted);
$super->fails('SELECT * FROM advisory._keys', 'EV000', 'the trap works');
$super->fails('SELECT * FROM advisory._claims', 'EV000', '... also in a table');
$planter->run('ALTER TABLE advisory.key_labels RENAME TO labels',
    'CREATE VIEW advisory.key_labels AS SELECT *, evil.sprung() FROM advisory.labels');
like(move($planted, $ENV{PGUSER}),
    qr/ERROR:  table "key_labels" is not as the portable edition makes it/,
    'a view in the place of a table');
$planter->run('DROP VIEW advisory.key_labels', 'ALTER TABLE advisory.labels RENAME TO key_labels',
    'ALTER TABLE advisory._claims ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
    'CREATE POLICY planted ON advisory._claims USING (evil.sprung() IS NULL)');
like(move($planted, $_), qr/ERROR:  table "_claims" is not as the portable edition makes it/,
    'rows that a policy hides') for $ENV{PGUSER}, 'portable_owner';
$planter->run('ALTER TABLE advisory._claims DISABLE ROW LEVEL SECURITY');
my $moved = move($planted, $ENV{PGUSER});
unlike($moved, qr/sprung/, 'nothing of the owner runs');
like($moved, qr/function advisory_portable.planted\(bigint\)/, '... only what he added is named');
$planter->run('DROP FUNCTION advisory.planted CASCADE');
is(move($planted, $ENV{PGUSER}), '', 'the rest moves');
session(database => $planted)->shows(
    q(SELECT advisory.edition(), (SELECT count(*) FROM advisory._claims),
        (SELECT label FROM advisory.key_labels)), 'extension|2|import', '... with its rows');

done_testing();
