#!/usr/bin/env perl
# portable/advisory.sql by other roles and beside other objects, what it keeps when it is loaded
# again, and callers with a hostile search_path.
use FindBin;
use AdvisoryTest;
use Psql;

my $owner = create_portable_database(name => "advisory_portable_$$");
my $database = "advisory_portable_$$";
my $admin = session(database => $database);
sub install { return load_portable($database, @_) }

$owner->shows('SELECT advisory.edition()', 'portable',
    'it can be installed by an ordinary role that owns the database');
$owner->shows(q(SELECT count(*) FROM pg_proc p JOIN pg_language l ON l.oid = prolang
    WHERE pronamespace = 'advisory'::regnamespace AND lanname NOT IN ('sql', 'plpgsql')), 0,
    'everything is in SQL and PL/pgSQL');

# ---- Once more -----------------------------------------------------------------------------------

my $ALL = q(SELECT p.oid::regprocedure::text, md5(pg_get_functiondef(p.oid)), proacl::text
        FROM pg_proc AS p WHERE pronamespace = 'advisory'::regnamespace ORDER BY 1);
my $before = $owner->rows($ALL);
$owner->run(q(INSERT INTO advisory.key_labels (key, label) VALUES (42, 'answer')),
    q(SELECT advisory.claim('c', 'n', '1 day')), q(SELECT advisory.check_token('t', 'n', 1)));
is(install(), '', 'it can be run again');

# CREATE OR REPLACE VIEW cannot change a collation, so a file of another version would fail. (A name
# has "C"; _prepared has had it in all versions.)
$owner->shows(q(SELECT attrelid::regclass, attname
    FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
    WHERE relnamespace = 'advisory'::regnamespace AND relkind = 'v' AND relname <> '_prepared'
        AND atttypid = 'text'::regtype AND attcollation <> 'default'::regcollation), [],
    'each text of a view has the default collation');
is_deeply($owner->rows($ALL), $before, '... and changes no function');
$owner->shows(q(SELECT count(*) FROM advisory.key_labels WHERE label = 'answer'), 1,
    '... and keeps the labels');
$owner->shows('SELECT count(*) FROM advisory.claims', 1, '... the claims');
$owner->shows('SELECT count(*) FROM advisory.fences', 1, '... and the fences');
$admin->run(
    'CREATE ROLE portable_other LOGIN', qq(GRANT CREATE ON DATABASE "$database" TO portable_other));
like(install($_), qr/schema "advisory" belongs to another role/,
    'another role may not, not even a superuser') for 'portable_other', $ENV{PGUSER};
$admin->shows(q(SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'advisory'),
    'portable_owner', '... and it belongs to whoever ran it first');

# A role that may create nothing. By psql as whoever forgets ON_ERROR_STOP runs it; and by another
# program, which sends the file as one string.
{
    my $file = "$FindBin::Bin/../../portable/advisory.sql";
    create_database(name => "advisory_denied_$$", extension => 0);
    my $denied = session(role => 'portable_other', database => "advisory_denied_$$");
    my $refused = qr/role portable_other may not create a schema in database advisory_denied_$$/;
    my $said = `psql -Xq -o /dev/null -U portable_other -f '$file' advisory_denied_$$ 2>&1`;
    my @errors = $said =~ /(ERROR: .*)/g;
    like($errors[0], $refused, 'a role that may create nothing is told so first');
    like($said, qr/\nHINT:  .*GRANT CREATE ON DATABASE advisory_denied_$$ TO portable_other[.]/,
        '... with the remedy');
    is_deeply([ grep { !/current transaction is aborted/ } @errors[ 1 .. $#errors ] ],
        ['ERROR:  schema "advisory" does not exist'], '... and last that nothing is there');
    open my $in, '<', $file or die "$!\n";
    my $text = do { local $/ = undef; <$in> };
    like($denied->fails($text, '42501', 'as one string')->{message}, $refused,
        '... it has this error only');
    $denied->disconnect;
    $admin->run(qq(DROP DATABASE "advisory_denied_$$"));
}

# ---- A hostile search_path -----------------------------------------------------------------------

$owner->shows(q{SELECT oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f'
    AND NOT coalesce('search_path=pg_catalog, advisory, pg_temp' = ANY (proconfig), false)
        AND (proname ~ '^(_hash|_bytes|[^_].*)$'
             OR prolang <> (SELECT oid FROM pg_language WHERE lanname = 'sql'))
        AND regexp_replace(prosrc, 'OPERATOR\(pg_catalog\.[^)]+\)|coalesce\(|-16384', '', 'g')
            ~ '[-+=<>|&~#%^!]|[^.\w]\w+\('}, [],
    'every function that names operators or functions without their schema has a search_path');

# Twins of all of pg_catalog, as test/pgtap has them. What cannot be called there is called here.
my $trap = do {
    open my $in, '<', "$FindBin::Bin/../pgtap/evil.psql" or die "$!\n";
    local $/ = undef;
    <$in>;
};
my $caller = session(role => 'portable_other', database => $database);
$caller->run($trap,
    q(CREATE FUNCTION evil."||"(text, anynonarray) RETURNS text LANGUAGE sql
        AS 'SELECT evil.sprung()'),
    q(CREATE OPERATOR evil.|| (LEFTARG = text, RIGHTARG = anynonarray, FUNCTION = evil."||")),
    'CREATE DOMAIN evil.text AS pg_catalog.text',
    'CREATE DOMAIN evil.timestamptz AS pg_catalog.timestamptz',
    'SET search_path = evil, pg_catalog');
$caller->fails(q(SELECT 'a' || 1), 'EV000', 'the trap works');
my @CALLS = (
    'SELECT advisory.key(q, q) FROM (VALUES (pg_catalog.text \'a\')) AS v (q)',
    q(SELECT advisory.key('a')), q(SELECT advisory.lock('a', 'b')),
    q(SELECT advisory.lock('a', 'b', '1s')), q(SELECT advisory.try_lock('a', 3)),
    q(SELECT advisory.xact_lock_shared('a', 'x')), q(SELECT advisory.lock_key(5, '1s', 'label')),
    q(SELECT advisory.holds('a', 'b')), q(SELECT advisory.is_locked('a', 'b')),
    q(SELECT advisory.unlock('a', 'b')),
    q(SELECT advisory.unlock('a', 'nothing')), q(SELECT advisory.unlock_all('a', 'b')),
    q(SELECT advisory.lock_all('a', ARRAY['1', '2'], '1s')),
    q(SELECT advisory.try_lock_any('a', ARRAY[1, 2], 2)),
    q(SELECT advisory.acquire('a', 's', 2)), q(SELECT advisory.try_acquire('a', 's', 2, '10ms')),
    q(SELECT advisory.try_acquire('a', 's', 2, '10ms')),
    q(SELECT * FROM advisory.try_acquire_any('a', '{p,q}', 2, 2)),
    q(SELECT advisory.release('a', 's')),
    q(SELECT advisory.acquire_many('a', 'm', 3, 2), advisory.acquire_many('a', 'm', 3, 1, '1s')),
    q(SELECT advisory.try_xact_acquire_many('a', 'm', 3, 2, '10ms')),
    q(SELECT advisory.release_many('a', 'm', '{1,2,3,3}')),
    q(CALL advisory.await_lock('a', 'w')), q(CALL advisory.await_lock('a', 7, '1s')),
    q(CALL advisory.await_acquire('a', 'w', 2)), q(CALL advisory.run('a', 'run', 'SELECT 1')),
    q(CALL advisory.run('a', 'run2', 'SELECT 1', once_per => '1 day')),
    q(SELECT advisory.claim('a', 'b', '1 day')), q(SELECT advisory.check_token('a', 'b', 5)),
    q(SELECT advisory.claim('a', 'c', '1 day', time_zone => 'Asia/Tokyo')),
    q(SELECT advisory.claim_apart('a', 'd', '1 day')),
    (q(CALL advisory.run('a', 'run3', 'SELECT 1', apart => '1 day'))) x 2,
    q(SELECT * FROM advisory.holders('a', 'w')),
    q(SELECT * FROM advisory.lease('a', 'l', '1 day')), q(CALL advisory.await_lease('a', 1, '1h')),
    q(SELECT * FROM advisory.try_lease('a', 'l', '1 day', '10ms', lock_delay => '1 day')),
    q(SELECT advisory.renew_lease('a', 'l', token) FROM advisory.leases
        WHERE name OPERATOR(pg_catalog.=) 'l'),
    q(SELECT advisory.check_lease('a', 'l', token) FROM advisory.leases
        WHERE name OPERATOR(pg_catalog.=) 'l'),
    q(SELECT * FROM advisory.lease_slot('a', 'l', 2, '1 day', max_hold => '2 days')),
    q(SELECT * FROM advisory.try_lease_slot('a', 'l', 1, '1 day', '10ms')),
    q(CALL advisory.await_lease_slot('a', 1, 2, '1h')),
    q(SELECT advisory.is_leased('a', 'l'), advisory.leased_slots('a', 1)),
    map { "SELECT * FROM advisory.$_" } qw(locks waits activity blockers semaphores known_keys
        pressure claims fences leases wait_tree()));
for my $call (@CALLS, q(SELECT advisory.end_lease('a', 'l', token) FROM advisory.leases
        WHERE name OPERATOR(pg_catalog.=) 'l')) {
    my $result = $caller->query($call);
    my $said = ($result->{message} // '') . join '', @{ $result->{warnings} };
    unlike($said, qr/sprung/, "not taken in: $call") or diag $said;
    ok(!defined $result->{state} || $result->{state} =~ /^(42501)$/, "... and it works")
        or diag "$call: $result->{state} $said";
}
$caller->run('SELECT pg_catalog.pg_advisory_unlock_all()');

# ---- Beside sessions at work ---------------------------------------------------------------------

# pgbench ends a session at any error but a deadlock, which it counts.
my @WORK = map { "\\set i random(1, 4)\n$_;\n" } (
    q(SELECT advisory.try_lock('load', :i, '20ms'); SELECT pg_advisory_unlock_all()),
    q(SELECT advisory.try_acquire('load', 's', 2, '20ms'); SELECT pg_advisory_unlock_all()),
    q(SELECT advisory.claim('load', :i, '1 ms'); SELECT advisory.check_token('load', :i, 1)),
    q(CALL advisory.run('load', :i, 'SELECT 1', slots => 2, once_per => '1 ms')),
    q(BEGIN; SELECT advisory.try_xact_acquire('load', 's', 2, '20ms'), advisory.claim('load', :i,
        '1 ms'); SELECT count(*) FROM advisory.locks; COMMIT),
    q(BEGIN; SELECT count(*) FROM advisory.key_labels; SELECT advisory.claim('load', :i, '1 ms');
        SELECT advisory.try_xact_lock('load', :i, '20ms'); COMMIT),
    'SELECT count(*) FROM advisory.wait_tree()', q(SELECT count(*) FROM advisory.holders('a', 'b')),
    map { "SELECT count(*) FROM advisory.$_" }
        qw(activity blockers waits semaphores known_keys claims pressure));
{
    my @files = map { "$ENV{ADVISORY_EXT_TMP}/install.$$.$_.sql" } 0 .. $#WORK;
    for my $i (0 .. $#WORK) {
        open my $file, '>', $files[$i] or die "$files[$i]: $!\n";
        print {$file} $WORK[$i];
        close $file or die "$files[$i]: $!\n";
    }
    my $AT_WORK = q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench');
    my ($loaded, @status, @reports, @errors) = (0);
    # On a machine that is busy with other things, too, a load can wait for a lock for too long.
    for (1 .. 12) {
        local $ENV{PGOPTIONS} = '-c client_min_messages=error';
        open my $bench, '-|', "$ENV{PG_BINDIR}/pgbench -n -c 4 -T 10 -U portable_owner "
            . "@{[ map { qq(-f $_) } @files ]} $database 2>&1" or die "pgbench: $!\n";
        wait_until('sessions are at work', sub { $admin->value($AT_WORK) == 4 });
        while ($admin->value($AT_WORK)) {
            my $said = install();
            $loaded += $said eq '';
            push @errors, $said if $said !~ /\A(?:\z|.*canceling statement due to lock timeout)/;
        }
        push @reports, join '', <$bench>;
        close $bench;
        push @status, $?;
        last if $loaded > 2;
    }
    unlink @files;
    ok(!(grep { $_ } @status),
        'it is loaded again and again beside sessions at work, none of which gets an error')
        or diag @reports;
    ok(!(grep { !/^number of failed transactions: 0 /m } @reports), '... nor a deadlock');
    is_deeply(\@errors, [], '... and a load can only fail by giving up');
    cmp_ok($loaded, '>', 2, '... and several succeed');
}

{
    my $reader = session(role => 'portable_owner', database => $database)
        ->run('BEGIN', 'SELECT FROM advisory.key_labels');
    local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
    my $load = Psql->new(role => 'portable_owner', database => $database)
        ->start("\\o /dev/null\n\\i $FindBin::Bin/../../portable/advisory.sql");
    my %tries;
    wait_until('it has been turned away twice', sub {
        $tries{$_}++ for $admin->column(q(SELECT waitstart FROM pg_locks WHERE waitstart IS NOT NULL
            AND relation = 'advisory.key_labels'::regclass));
        return keys %tries > 2;
    });
    $reader->run('COMMIT');
    is($load->finish, '', 'it begins again if a transaction has read a table, and then succeeds');

    $reader->run('BEGIN', 'SELECT FROM advisory.key_labels');
    like(install(), qr/ERROR:  canceling statement due to lock timeout/,
        'it gives up where a transaction that stays open has read a table');
    $reader->run('COMMIT');
    is(install(), '', '... and can be run again');
}

# ---- An older file -------------------------------------------------------------------------------

$owner->run(q(SELECT advisory.claim('older', 'a', '1 hour', '2026-01-01')),
    map { "CREATE $_ LANGUAGE sql AS 'SELECT NULL::timestamptz'" }
        'FUNCTION advisory.claim(namespace text, name text, every interval,
            window_start timestamptz DEFAULT NULL) RETURNS timestamptz',
    'PROCEDURE advisory.run(namespace text, name text, command text, timeout interval)',
        'FUNCTION advisory._take_slot(is_xact boolean, base bigint, slots integer)
            RETURNS timestamptz',
        'FUNCTION advisory._acquire(must boolean, is_xact boolean, namespace text, name text,
            slots integer, timeout interval) RETURNS timestamptz');
is(install(), '', 'it is installed over an older one');
$owner->shows(q(SELECT advisory.claim('older', 'a', '1 hour', '2026-01-01'), (SELECT state
    FROM advisory.claims WHERE name = 'a')), 'NULL|done', '... whose claims stay');
$owner->shows(q(CALL advisory.run('older', 'a', 'SELECT 1', '0')), 1, '... and whose functions go');
is_deeply($owner->rows($ALL), $before, '... so that those of this file are left');

# ---- Names and settings --------------------------------------------------------------------------

for my $role ('My-App', 'alice@example.com') {
    create_database(name => "advisory_odd_$$", extension => 0);
    $admin->run(
        qq(CREATE ROLE "$role" LOGIN), qq(ALTER DATABASE "advisory_odd_$$" OWNER TO "$role"));
    is(load_portable("advisory_odd_$$", $role), '', "the role $role can install it") for 1 .. 2;
    $admin->run(qq(DROP DATABASE "advisory_odd_$$"), qq(DROP ROLE "$role"));
}
SKIP: {
    skip 'from 19 on it is always on', 4
        if $admin->value(q(SELECT current_setting('server_version_num')::int >= 190000));
    my $session = session(role => 'portable_other', database => $database)
        ->run('SET standard_conforming_strings = off', 'SET escape_string_warning = off');
    $session->shows(q(SELECT advisory.key('billing', 'invoice:42')), '1572001551135567388',
        'standard_conforming_strings does not matter to keys');
    $session->shows(q(SELECT advisory.acquire('scs', 'a', 2)), 1, '... nor to slots');
    ok(defined $session->value('SELECT count(*) FROM advisory.locks'), '... nor to views');
    local $ENV{PGOPTIONS} = '-c standard_conforming_strings=off';
    is(install(), '', '... nor to the file');
}

# ---- Session-level locks are forbidden -----------------------------------------------------------

{
    open my $in, '<', "$FindBin::Bin/../../doc/portable.md" or die "$!\n";
    local $/ = undef;
    my ($block) = <$in> =~ /^```sql\n(DO \$\$(?:(?!```).)*REVOKE EXECUTE.*?)^```/ms;
    $owner->run($block);
    is(install(), '', 'the file is loaded after session-level locks have been forbidden');
    my $BY_OTHERS = q(FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace
        AND %s has_function_privilege('portable_other', oid, 'EXECUTE'));
    $owner->shows(sprintf("SELECT DISTINCT proname $BY_OTHERS AND obj_description(oid, 'pg_proc')
        ~ '^(take|lock) .* (session|without a snapshot)' AND proname !~ 'lease'", ''), [],
        'no function takes one');
    $owner->shows(sprintf("SELECT DISTINCT proname $BY_OTHERS
        AND proname NOT IN ('unclaim', 'break_lease', 'tokens_above')
        AND obj_description(oid, 'pg_proc') !~ '^(take|lock) .*(session|without a snapshot)'",
        'NOT'), [], '... and no other is forbidden');
    my $other = session(role => 'portable_other', database => $database);
    $other->fails($_, '42501', "$_ is refused") for q(SELECT advisory.lock('a', 'b')),
        q(SELECT advisory.try_lock('a', 'b', '1 s')), q(CALL advisory.await_lock('a', 'b')),
        q(SELECT advisory.acquire('a', 'b', 2)), q(SELECT * FROM advisory.try_lock_any('a', '{b}'));
    ok(defined $other->value($_), "$_ is not") for q(SELECT advisory.xact_lock('a', 1)),
        q(SELECT advisory.try_xact_acquire('a', 'b', 2)), q(SELECT advisory.claim_apart('f', 'a',
        '1 us')), q(CALL advisory.run('a', 'b', 'SELECT 1', slots => 2, once_per => '1 us'));
    $owner->run($block =~ s/\bREVOKE\b(.*)FROM PUBLIC/GRANT$1TO portable_other/r);
    $other->shows(q(SELECT advisory.lock('a', 'b')), 1, 'a role can be allowed to');
    $owner->run($block =~ s/\bREVOKE\b(.*)FROM PUBLIC/GRANT$1TO PUBLIC/r);
}

# ---- Several at once -----------------------------------------------------------------------------

{
    create_database(name => "advisory_first_$$", extension => 0);
    my $has_no_off = $admin->value(q(SELECT current_setting('server_version_num')::int >= 190000));
    my $load = "psql -Xq -v ON_ERROR_STOP=1 -o /dev/null "
        . "-f '$FindBin::Bin/../../portable/advisory.sql' advisory_first_$$ 2>&1";
    local $ENV{PGOPTIONS} =
        '-c client_min_messages=warning -c default_transaction_isolation=serializable '
        . '-c quote_all_identifiers=on -c default_transaction_read_only=on '
        . ($has_no_off ? '' : '-c standard_conforming_strings=off');
    is(scalar `$load & $load & $load; wait`, '', 'one of several first loads waits for the other');
    session(database => "advisory_first_$$")->shows('SELECT advisory.edition()', 'portable',
        '... and it is installed');
    $admin->run(qq(DROP DATABASE "advisory_first_$$"));
}

# ---- Servers whose locks are not those of PostgreSQL ---------------------------------------------

# As YugabyteDB hides young transactions, and as CockroachDB's functions did nothing.
for my $case (
    [ 'pg_locks shows nothing young', 'xact_lock',
        q(CREATE OR REPLACE VIEW pg_catalog.pg_locks AS SELECT l.* FROM pg_lock_status() AS l
            WHERE pid <> pg_backend_pid()) ],
    [ 'a function says true without a lock', 'lock', q(CREATE OR REPLACE FUNCTION
        pg_catalog.pg_try_advisory_lock(bigint) RETURNS bool LANGUAGE sql AS 'SELECT true') ],
    [ '... for a transaction', 'xact_lock_shared', q(CREATE OR REPLACE FUNCTION
        pg_catalog.pg_try_advisory_xact_lock_shared(bigint) RETURNS bool LANGUAGE sql
            AS 'SELECT true') ],
    [ 'a lock cannot be released', 'lock_shared', q(CREATE OR REPLACE FUNCTION
        pg_catalog.pg_advisory_unlock_shared(bigint) RETURNS bool LANGUAGE sql
            AS 'SELECT false') ],
) {
    my ($what, $function, $change) = @$case;
    create_database(name => "advisory_other_$$", extension => 0);
    my $there = session(database => "advisory_other_$$");
    $there->run('SET allow_system_table_mods = on', $change);
    my $said = load_portable("advisory_other_$$", $ENV{PGUSER});
    like($said, qr/ERROR:  pg_(?:try_)?advisory_$function\(\) does not do here/, "$what: refused");
    like($said, qr/\nDETAIL:  .* same slot .*\nHINT:  .*doc\/portable[.]md/, '... and told why');
    $there->shows(q(SELECT to_regnamespace('advisory')), 'NULL', '... and nothing is left behind');
    $there->disconnect;
    $admin->run(qq(DROP DATABASE "advisory_other_$$"));
}

# ---- Gone ----------------------------------------------------------------------------------------

$owner->run('DROP SCHEMA advisory CASCADE');
$owner->shows(q(SELECT oid::regprocedure::text FROM pg_proc
        WHERE proowner = 'portable_owner'::regrole
    UNION ALL SELECT oid::regclass::text FROM pg_class WHERE relowner = 'portable_owner'::regrole
    AND relkind IN ('r', 'v', 'S')), [], 'DROP SCHEMA removes all');
like(install(), qr/^$/, '... and it can be installed again');
{
    my @defaults = qw(TABLES SEQUENCES ROUTINES SCHEMAS);
    my $GRANTS = q(SELECT count(*) FROM (SELECT relacl, relnamespace, relname FROM pg_class
        UNION ALL SELECT proacl, pronamespace, proname FROM pg_proc
        UNION ALL SELECT nspacl, oid, nspname FROM pg_namespace) AS o (privileges, namespace, name),
        aclexplode(privileges) WHERE namespace = to_regnamespace('advisory')
        AND (grantee = 'portable_other'::regrole
             OR grantee = 0 AND privilege_type NOT IN ('SELECT', 'USAGE', 'EXECUTE')
                AND NOT (name = '_request' AND privilege_type = 'INSERT')));
    $owner->run('DROP SCHEMA advisory CASCADE',
        (map { "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO portable_other" } @defaults),
        'ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC');
    is(install(), '', 'with default privileges it can be installed');
    $owner->shows($GRANTS, 0, '... and they do not apply');
    $owner->run('GRANT SELECT ON advisory.fences TO portable_other');
    is(install(), '', '... nor when it is run again');
    $owner->shows($GRANTS, 1, '... which keeps what the owner has granted');
    my $MAY_CLAIM = q(SELECT has_table_privilege('portable_other', 'advisory._request',
        'INSERT'));
    $owner->shows($MAY_CLAIM, 1, 'every role may claim');
    $owner->run('REVOKE INSERT ON advisory._request FROM PUBLIC');
    my $MAY_BREAK = q(SELECT has_function_privilege('portable_other',
        'advisory.break_lease(text, text, bigint)', 'EXECUTE'));
    $owner->shows($MAY_BREAK, 0, '... but not break leases');
    $owner->run('GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) TO PUBLIC');
    is(install(), '', 'unless the owner has decided otherwise');
    $owner->shows("$MAY_CLAIM UNION ALL $MAY_BREAK", [ 0, 1 ], '... for good');
    $owner->run('REVOKE EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) FROM PUBLIC');
    # An older file: fewer columns of holders(), and requests by other views.
    my $claim = q(SELECT advisory.claim('older', 'file', '1 day'));
    $owner->run($claim, 'CREATE VIEW advisory._claim_request AS SELECT 1 AS one',
        'CREATE FUNCTION advisory._serve_claim() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
            AS $$ BEGIN RETURN NEW; END $$',
        'CREATE TRIGGER serve INSTEAD OF INSERT ON advisory._claim_request FOR EACH ROW
            EXECUTE FUNCTION advisory._serve_claim()',
        'REVOKE ALL ON advisory._claim_request FROM PUBLIC, portable_other',
        'REVOKE ALL ON FUNCTION advisory._serve_claim FROM portable_other',
        'DROP FUNCTION advisory.claim(text, text, interval, timestamptz, text)',
        'CREATE FUNCTION advisory.claim(namespace text, name text, every interval,
                window_start timestamptz DEFAULT NULL)
            RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() $$',
        'REVOKE ALL ON FUNCTION advisory.claim(text, text, interval, timestamptz)
            FROM portable_other',
        'DROP FUNCTION advisory._holders_of(text, text, bigint)',
        'CREATE FUNCTION advisory._holders_of(namespace text, name text, key bigint)
            RETURNS TABLE (pid integer) LANGUAGE sql AS $$ SELECT 1 $$',
        'REVOKE ALL ON FUNCTION advisory._holders_of(text, text, bigint) FROM portable_other',
        'CREATE FUNCTION advisory._finish_claim(key bigint, at timestamptz) RETURNS void
            LANGUAGE sql SECURITY DEFINER AS $$ SELECT NULL $$',
        'REVOKE ALL ON FUNCTION advisory._finish_claim FROM portable_other');
    is(install(), '', 'a newer file is installed over an older one');
    $owner->shows($GRANTS, 1, '... and default privileges do not apply to what is new');
    $owner->shows($claim, 'NULL', '... its claims stay');
    $owner->shows(q(SELECT to_regproc('advisory._finish_claim'),
            to_regproc('advisory._serve_claim'), to_regclass('advisory._claim_request')),
        'NULL|NULL|NULL', '... and no function that served every role');
    $owner->run((map { "ALTER DEFAULT PRIVILEGES REVOKE ALL ON $_ FROM portable_other" } @defaults),
        'ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM PUBLIC');
}
$owner->run('DROP SCHEMA advisory CASCADE', 'CREATE SCHEMA advisory');
like(install(), qr/schema "advisory" exists, and is not that of the portable edition/,
    "it does not adopt somebody else's schema");
done_testing();
