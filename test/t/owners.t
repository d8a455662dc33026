#!/usr/bin/env perl
# Everything in the extension belongs to the bootstrap superuser, whoever creates it. Neither the
# role that creates it nor the owner of the database can alter it, attach anything to it, or put
# anything in its place. The owner of the database can dump and restore it.
use AdvisoryTest;
use File::Temp qw(tempdir);

my $admin = session(database => $ENV{PGDATABASE});
my ($creator, $owner, $super) = map { "advisory_${_}_$$" } qw(creator owner super);
$admin->run("CREATE ROLE $creator LOGIN", "CREATE ROLE $owner LOGIN",
    "CREATE ROLE $super SUPERUSER LOGIN");

# What does not belong to the bootstrap superuser, of the members of the extension, and of all that
# is in its schema or belongs to that.
my $STRAY = q{SELECT pg_describe_object(s.classid, s.objid, s.objsubid) FROM pg_shdepend s
    WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND s.deptype = 'o' AND (
        EXISTS (SELECT FROM pg_depend d WHERE d.classid = s.classid AND d.objid = s.objid
        AND d.deptype = 'e')
        OR s.objid IN (SELECT oid FROM pg_class
        WHERE relnamespace::regnamespace::text LIKE 'advisory%' UNION ALL SELECT oid FROM pg_type
        WHERE typnamespace::regnamespace::text LIKE 'advisory%'
                       UNION ALL SELECT oid FROM pg_proc WHERE pronamespace::regnamespace::text
                       LIKE 'advisory%' UNION ALL SELECT 'advisory'::regnamespace::oid UNION ALL
                       SELECT 'advisory_internal'::regnamespace::oid))};
# Roles that are named in privileges, or in the server's record of initial privileges.
my $NAMED = q{SELECT DISTINCT unnest(regexp_split_to_array(acl::text, '[=,/{}]')) FROM (
    SELECT relacl FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'advisory%' UNION ALL
    SELECT proacl FROM pg_proc WHERE pronamespace::regnamespace::text LIKE 'advisory%'
    UNION ALL SELECT nspacl FROM pg_namespace WHERE nspname = 'advisory'
    UNION ALL SELECT initprivs FROM pg_init_privs WHERE EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = classoid AND d.objid = objoid AND d.deptype = 'e')) AS x (acl)};

sub database_of_owner ($name) {
    my $database = create_database(name => "advisory_${name}_$$", extension => 0, aside => 1);
    $admin->run("ALTER DATABASE $database OWNER TO $owner",
        "GRANT CREATE ON DATABASE $database TO $creator");
    return $database;
}

# ---- Whoever creates it --------------------------------------------------------------------------

my %made;
for my $role ($creator, $owner, $super) {
    $made{$role} = database_of_owner("by_$role");
    my $session = session(database => $made{$role},
        role => $role)->run('CREATE EXTENSION advisory_ext');
    $session->shows($STRAY, [], "created by $role: everything belongs to the bootstrap superuser");
    is_deeply([ grep { /$$/ } $session->column($NAMED) ], [],
        "created by $role: no privileges name a role of this test");
    $session->shows(q{SELECT advisory.lock('owners', 'a') AND advisory.check_token('owners', 'a',
        advisory.token('owners', 'a'))}, 1, "created by $role: it works");
}

# ---- What is dropped and replaced while a call waits for it --------------------------------------

{
    my $database = database_of_owner('replaced');
    my ($attacker, $victim) = (session(database => $database, role => $creator),
        session(database => $database));
    my $look = session(database => $database);
    $attacker->run('CREATE SCHEMA trap',
        "CREATE FUNCTION trap.spring() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN RAISE
        EXCEPTION 'the trap ran as %', current_user USING ERRCODE = 'P0009'; END \$\$",
        'GRANT USAGE ON SCHEMA trap TO PUBLIC');
    for my $call (q{SELECT advisory.claim('a', 'b', '1 hour')}, q{SELECT advisory.check_token('a',
        'b', 1)}, q{SELECT advisory.tokens_above(1)}, q{SELECT advisory.end_lease('a', 'b', 1)},
        q{SELECT token FROM advisory.lease('a', 'b', '1 hour')},
        q{CALL advisory.run('a', 'b', 'SELECT 1', once_per => '1 hour')}) {
        $attacker->run('CREATE EXTENSION advisory_ext', 'BEGIN', 'DROP EXTENSION advisory_ext',
            'CREATE SCHEMA advisory', 'GRANT ALL ON SCHEMA advisory TO PUBLIC',
            'CREATE TABLE advisory._claims (key bigint PRIMARY KEY, last_window timestamptz)',
            'CREATE TABLE advisory.fences (key bigint PRIMARY KEY, token bigint)',
            'CREATE TABLE advisory._leases (key bigint PRIMARY KEY, token bigint)',
            map { ("CREATE TRIGGER t BEFORE INSERT ON advisory.$_
                FOR EACH ROW EXECUTE FUNCTION trap.spring()",
                "ALTER TABLE advisory.$_ ENABLE ALWAYS TRIGGER t") } qw(_claims fences _leases));
        $victim->start($call);
        # (Some calls wait for the catalogs' rows earlier.)
        wait_until('it waits', sub { $victim->is_done || $look->value('SELECT count(*) FROM
                pg_stat_activity WHERE wait_event_type = $$Lock$$ AND pid = ?', $victim->pid) });
        $attacker->run('COMMIT');
        my $result = $victim->finish;
        isnt($result->{state} // '', 'P0009', "$call: what was put in the place of a table that is "
            . "dropped meanwhile does not run as the superuser");
        like($result->{state} // '', qr/^(42809|42P01|3F000|42883)$/, '... but is refused')
            or diag explain $result;
        $attacker->run('DROP SCHEMA advisory CASCADE');
    }
    $_->disconnect for $attacker, $victim, $look;
    $admin->run("DROP DATABASE $database WITH (FORCE)");
}

# ---- A schema that was given away can be renamed at any time -------------------------------------

{
    my $database = database_of_owner('renamed');
    my $session = session(database => $database)->run('CREATE EXTENSION advisory_ext',
        "ALTER SCHEMA advisory OWNER TO $creator");
    for my $call (q{SELECT advisory.claim('a', 'b', '1 hour')},
        q{SELECT token FROM advisory.lease('a', 'b', '1 hour')},
        q{SELECT advisory.lock('a', 'b') AND advisory.token('a', 'b') > 0}) {
        $session->fails($call, '42809', "$call: nothing in a schema with another owner is used");
    }
    $session->run(q{INSERT INTO advisory.key_labels (key, label) VALUES (1, 'a label')},
        'SELECT pg_advisory_lock(1)');
    my $KNOWN = q{SELECT known_as::text FROM advisory.locks
        WHERE key = 1 AND pid = pg_backend_pid()};
    $session->shows($KNOWN, '{"a label"}',
        'but the views go on, which know their tables');
    $session->run("ALTER TABLE advisory.key_labels OWNER TO $creator");
    $session->shows($KNOWN, '{"several programs use it"}', 'without one that was given away, too');
    $session->disconnect;
    $admin->run("DROP DATABASE $database WITH (FORCE)");
}

# ---- What the creator, and the owner of the database, cannot do ----------------------------------

my @tables = map { "advisory.$_" } qw(_leases fences _claims key_labels);
my @attempts = (
    map({ my $table = $_; map { s/TABLE_/$table/gr } 'ALTER TABLE TABLE_ OWNER TO CURRENT_USER',
        'ALTER TABLE TABLE_ RENAME TO other', 'ALTER TABLE TABLE_ SET SCHEMA public',
        'ALTER TABLE TABLE_ ALTER key TYPE text', 'ALTER TABLE TABLE_ ALTER key DROP NOT NULL',
        'ALTER TABLE TABLE_ ALTER key SET DEFAULT trap.spring()',
        'ALTER TABLE TABLE_ ADD CHECK (trap.spring() > 0)', 'ALTER TABLE TABLE_ ADD x int',
        'ALTER TABLE TABLE_ DROP key', 'ALTER TABLE TABLE_ INHERIT trap.parent',
        'ALTER TABLE trap.like_it INHERIT TABLE_', 'CREATE TABLE trap.child () INHERITS (TABLE_)',
        'ALTER TABLE TABLE_ ENABLE ROW LEVEL SECURITY', 'ALTER TABLE TABLE_
        FORCE ROW LEVEL SECURITY', 'CREATE POLICY p ON TABLE_ USING (trap.spring() > 0)',
        'CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE
        ON TABLE_ FOR EACH ROW EXECUTE FUNCTION trap.on_write()',
        'CREATE TRIGGER t AFTER INSERT ON TABLE_ EXECUTE FUNCTION trap.on_write()',
        'CREATE RULE r AS ON INSERT TO TABLE_ DO ALSO SELECT trap.spring()',
        'CREATE RULE "_RETURN" AS ON SELECT TO TABLE_ DO INSTEAD SELECT * FROM TABLE_',
        'CREATE INDEX ON TABLE_ ((trap.spring() + key))',
        'CREATE STATISTICS trap.s ON key, (trap.spring() + key) FROM TABLE_',
        'CREATE TABLE trap.refers (key bigint REFERENCES TABLE_ (key))',
        'CREATE PUBLICATION p FOR TABLE TABLE_', 'TRUNCATE TABLE_',
        'ALTER TABLE TABLE_ REPLICA IDENTITY FULL', 'ALTER TABLE TABLE_ SET UNLOGGED',
        'CLUSTER TABLE_ USING x', 'COMMENT ON TABLE TABLE_ IS $$x$$',
        'DROP TABLE TABLE_', 'ALTER EXTENSION advisory_ext DROP TABLE TABLE_',
        'GRANT TRIGGER ON TABLE_ TO CURRENT_USER' } @tables),
    map({ ("LOCK TABLE $_ IN ACCESS EXCLUSIVE MODE",
        "UPDATE $_ SET key = key") } 'advisory._leases'),
    map({ my $sequence = "advisory.$_"; ("ALTER SEQUENCE $sequence AS integer",
        "ALTER SEQUENCE $sequence OWNED BY trap.parent.key",
        "ALTER SEQUENCE $sequence RENAME TO other",
        "ALTER SEQUENCE $sequence OWNER TO CURRENT_USER", "DROP SEQUENCE $sequence",
        "ALTER EXTENSION advisory_ext DROP SEQUENCE $sequence") } qw(_era _era_began)),
    q{CREATE OR REPLACE FUNCTION advisory_internal.key_labels() RETURNS SETOF record
    LANGUAGE sql AS 'SELECT trap.spring()'},
    'ALTER FUNCTION advisory_internal.key_labels() RENAME TO other',
    'ALTER FUNCTION advisory_internal.key_labels() SECURITY DEFINER',
    'ALTER FUNCTION advisory_internal.key_labels() SET search_path = trap',
    'ALTER FUNCTION advisory_internal.key_labels() SUPPORT trap.spring',
    'ALTER FUNCTION advisory_internal.key_labels() OWNER TO CURRENT_USER',
    'ALTER FUNCTION advisory_internal.key_labels() DEPENDS ON EXTENSION plpgsql',
    'ALTER EXTENSION advisory_ext DROP FUNCTION advisory_internal.key_labels()',
    'GRANT EXECUTE ON FUNCTION advisory.tokens_above(bigint) TO CURRENT_USER',
    'DROP FUNCTION advisory_internal.key_labels()',
    'CREATE OR REPLACE VIEW advisory.known_keys AS SELECT trap.spring()',
    'ALTER VIEW advisory.known_keys RENAME TO other',
    'ALTER VIEW advisory.leases SET (security_barrier)',
    'CREATE RULE r AS ON UPDATE TO advisory.locks DO INSTEAD SELECT trap.spring()',
    'CREATE TRIGGER t INSTEAD OF INSERT ON advisory.locks FOR EACH ROW EXECUTE FUNCTION
    trap.on_write()', 'ALTER FOREIGN TABLE advisory._locks ADD x int',
    'ALTER SERVER advisory_ext OWNER TO CURRENT_USER',
    'CREATE USER MAPPING FOR CURRENT_USER SERVER advisory_ext',
    'ALTER SCHEMA advisory OWNER TO CURRENT_USER', 'ALTER SCHEMA advisory RENAME TO other',
    'DROP SCHEMA advisory CASCADE', 'GRANT CREATE ON SCHEMA advisory TO CURRENT_USER',
    'ALTER SCHEMA advisory_internal RENAME TO other',
    'GRANT USAGE ON SCHEMA advisory_internal TO CURRENT_USER',
    'CREATE TABLE advisory.mine (x int)', 'CREATE VIEW advisory._mine AS SELECT 1',
    'CREATE FUNCTION advisory_internal.key_facts(text, boolean) RETURNS int
    LANGUAGE sql AS $$ SELECT 1 $$',
    'CREATE OPERATOR advisory.= (FUNCTION = int8eq, LEFTARG = bigint, RIGHTARG = bigint)',
    'CREATE DOMAIN advisory.bigint AS int', 'ALTER TABLE trap.like_it SET SCHEMA advisory',
    'ALTER FUNCTION trap.spring() SET SCHEMA advisory',
    'ALTER TYPE advisory._leases RENAME TO other', 'ALTER EXTENSION advisory_ext SET SCHEMA trap',
    'ALTER EXTENSION advisory_ext DROP SCHEMA advisory', 'ALTER DEFAULT PRIVILEGES
    IN SCHEMA advisory GRANT ALL ON TABLES TO CURRENT_USER; CREATE TABLE advisory.x ()',
    'CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION trap.on_event()',
    'SET ROLE postgres', q{UPDATE pg_proc SET prosrc = '' WHERE proname = 'key_labels'},
    q{SELECT pg_extension_config_dump('advisory._leases', '')}, q{SELECT lo_import('/etc/passwd')});

for my $role ($creator, $owner) {
    my $database = $made{$creator};
    my $session = session(database => $database, role => $role);
    my $watch = session(database => $database);
    $session->run('CREATE SCHEMA trap', 'GRANT ALL ON SCHEMA trap TO PUBLIC',
        'CREATE TABLE trap.sprung (by name)', 'GRANT ALL ON trap.sprung TO PUBLIC',
        'CREATE TABLE trap.parent (key bigint)',
        'CREATE FUNCTION trap.spring() RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO trap.sprung VALUES (current_user); RETURN 1; END $$',
        'CREATE FUNCTION trap.on_write() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO trap.sprung VALUES (current_user); RETURN NULL; END $$',
        'CREATE FUNCTION trap.on_event() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO trap.sprung VALUES (current_user); END $$');
    $watch->run('CREATE TABLE trap.like_it (LIKE advisory._claims)',
        "ALTER TABLE trap.like_it OWNER TO $role");
    my $objects = q{SELECT array_agg(o ORDER BY o)
        FROM (SELECT format('%s %s %s %s %s', oid, relname, relacl, reltype, relhastriggers)
        FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'advisory%'
        UNION ALL SELECT format('%s %s %s', oid, proname, proacl) FROM pg_proc
        WHERE pronamespace::regnamespace::text LIKE 'advisory%') AS x (o)};
    my $before = $watch->rows($objects);
    my @allowed = grep { defined } map {
        $session->run('BEGIN');
        my $result = $session->query($_);
        $session->run('ROLLBACK');
        $result->{state} || @{ $result->{warnings} } ? undef : $_
    } @attempts;
    is_deeply(\@allowed, [], "$role may do none of " . @attempts . ' things');
    is_deeply($watch->rows($objects), $before, 'and has changed nothing');

    # What names mean to the caller makes no difference to what the functions run. What can be in
    # the way is done first.
    $session->run('SET search_path = trap, pg_temp, pg_catalog', map({ "CREATE TEMP TABLE $_
            (key text, token text, last_window text)" } qw(fences _claims _leases key_labels)),
        'CREATE FUNCTION trap.eq(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$
        SELECT trap.spring() > 0 $$',
        'CREATE OPERATOR trap.= (FUNCTION = trap.eq, LEFTARG = bigint, RIGHTARG = bigint)',
        'CREATE FUNCTION trap.lt(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS $$
        SELECT trap.spring() > 0 $$', 'CREATE OPERATOR trap.< (FUNCTION = trap.lt,
        LEFTARG = timestamptz, RIGHTARG = timestamptz)',
        'CREATE OPERATOR trap.>= (FUNCTION = trap.lt, LEFTARG = timestamptz,
        RIGHTARG = timestamptz)',
        'CREATE FUNCTION trap.concat_ws(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT
        trap.spring()::text $$', 'CREATE DOMAIN trap.int8 AS bigint CHECK (trap.spring() > 0)');
    $session->shows(q{SELECT advisory.lock('owners', 'b') AND advisory.check_token('owners', 'b',
        advisory.token('owners', 'b'))}, 1, "a fence, by $role with a search_path of its own");
    is($session->value(q{SELECT advisory.claim('owners', 'b', '1 hour',
            '2026-01-01 10:00+00') IS NOT NULL}), $role eq $creator ? 1 : 0, 'a claim');
    $session->shows(q{SELECT (advisory.claim('owners', 'b', '1 hour', '2026-01-01 10:00+00')) IS
        NULL}, 1, 'and again');
    $session->shows(q{SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 20
        FROM advisory.known_keys}, 1, 'the known keys');
    $watch->shows('SELECT count(*) FROM trap.sprung', 0, 'and nothing of it has run');
    $session->disconnect;
    $watch->run('DROP SCHEMA trap CASCADE')->disconnect;
}

# A superuser's own audit trigger runs with a search_path that no caller can change.
{
    my $watch = session(database => $made{$owner});
    $watch->run('CREATE TABLE public.audit (path text, by name)', 'CREATE FUNCTION
        public.audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.audit
        VALUES (current_setting($x$search_path$x$), current_user); RETURN NULL; END $$',
        map { ("CREATE TRIGGER audit AFTER INSERT OR UPDATE ON $_ FOR EACH ROW EXECUTE FUNCTION
            public.audit()", "ALTER TABLE $_ ENABLE ALWAYS TRIGGER audit") } 'advisory._claims',
        'advisory.fences');
    my $session = session(database => $made{$owner}, role => $creator)->run('CREATE SCHEMA mine',
        'SET search_path = mine, pg_catalog');
    $session->run(q{SELECT advisory.claim('owners', 'audited', '1 hour', '2026-01-01 10:00+00')},
        q{SELECT advisory.check_token('owners', 'audited', 1)});
    is_deeply($watch->rows('SELECT DISTINCT path, by FROM audit'),
        [ [ 'pg_catalog, pg_temp', $watch->value('SELECT pg_get_userbyid(10)') ] ],
        'a trigger of a superuser does not have the search_path of the caller');
    $session->shows('SHOW search_path', 'mine, pg_catalog', 'which is as it was');
    # A table that a superuser has given away: its new owner's functions do not run as the
    # superuser.
    $watch->run("ALTER TABLE advisory.fences OWNER TO $creator");
    $session->fails(q{SELECT advisory.check_token('owners', 'audited', 2)}, '42809',
        'a table with another owner is not used: 42809');
    $watch->run('ALTER TABLE advisory.fences OWNER TO CURRENT_USER', map({
        "DROP TRIGGER audit ON $_"
    } 'advisory._claims', 'advisory.fences'), 'DROP TABLE audit', 'DROP FUNCTION audit()');
    $session->run('DROP SCHEMA mine');
}

# A role that was granted ALL, by GRANT or by default privileges: its triggers never run as the
# superuser.
{
    my $database = database_of_owner('granted');
    my $watch = session(database => $database);
    my @defaults = qw(TABLES SEQUENCES SCHEMAS FUNCTIONS);
    $watch->run(map({ "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO $creator" } @defaults),
        'CREATE EXTENSION advisory_ext');
    $watch->shows(q{SELECT count(*) FROM pg_class, aclexplode(relacl)
        WHERE relnamespace::regnamespace::text LIKE 'advisory%' AND (relkind IN ('r', 'S')
        OR privilege_type <> 'SELECT') AND grantee = ?::regrole}, 0, 'default privileges do not '
        . 'apply to the tables, and let nobody attach triggers to the views', $creator);
    $watch->shows(q{SELECT has_schema_privilege(?, 'advisory', 'CREATE')}, 0,
        'nor to the schema', $creator);
    $watch->shows(q{SELECT count(*) FROM pg_proc, aclexplode(proacl)
        WHERE pronamespace::regnamespace::text LIKE 'advisory%' AND grantee = ?::regrole}, 0,
        'nor to the functions', $creator);
    $watch->run("GRANT ALL ON ALL TABLES IN SCHEMA advisory TO $creator",
        'CREATE TABLE public.sprung (by name)', 'GRANT ALL ON public.sprung TO PUBLIC');
    my $session = session(database => $database, role => $creator)->run('CREATE SCHEMA mine',
        'GRANT USAGE ON SCHEMA mine TO PUBLIC',
        'CREATE FUNCTION mine.on_write() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO public.sprung VALUES (current_user); RETURN NEW; END $$',
        map {
            my $table = $_;
            map { ("CREATE TRIGGER t$_ $_ INSERT OR UPDATE OR DELETE ON advisory.$table FOR EACH ROW
                    EXECUTE FUNCTION mine.on_write()", "CREATE TRIGGER s$_ $_ INSERT OR UPDATE OR
                    DELETE ON advisory.$table EXECUTE FUNCTION mine.on_write()") } qw(BEFORE AFTER)
        }
            qw(fences _claims _leases));
    $session->fails('ALTER TABLE advisory.fences ENABLE ALWAYS TRIGGER "tbefore"', '42501',
        'a role that was granted ALL cannot make its trigger fire always');
    for my $caller ($session, $watch) {
        $caller->query($_) for q{SELECT advisory.check_token('granted', 'a', 1)},
            q{SELECT advisory.check_token('granted', 'a', 2)},
            q{SELECT advisory.claim('granted', 'a', '1 hour', '2026-01-01 10:00+00')},
            q{SELECT advisory.claim('granted', 'a', '1 hour')},
            q{SELECT advisory.end_lease('granted', 'a', (SELECT token
            FROM advisory.try_lease('granted', 'a', '1 hour')))};
        $watch->shows('SELECT count(*) FROM sprung', 0, 'and it does not fire');
        $caller->shows('SHOW session_replication_role', 'origin',
            'what it depends on is as it was');
        $caller->fails(q{SELECT advisory.check_token('granted', 'a', 1)}, '55000',
            'after an error, too');
        $caller->shows('SHOW session_replication_role', 'origin',
            'what it depends on is as it was');
    }
    $session->run('INSERT INTO advisory.fences VALUES (1, 1)');
    is($watch->value('SELECT DISTINCT by FROM sprung'), $creator,
        'where the role itself writes, it does');
    $watch->run(map { "ALTER DEFAULT PRIVILEGES REVOKE ALL ON $_ FROM $creator" } @defaults);
    $_->disconnect for $session, $watch;
    $admin->run(qq{DROP DATABASE "$database" WITH (FORCE)});
}

# ---- Dump and restore by the owner of the database -----------------------------------------------

my $dump = tempdir(CLEANUP => 1) . '/dump.sql';
my $ROWS = q{SELECT 'fence', key::text, token::text FROM advisory.fences UNION ALL
    SELECT 'claim', key::text, last_window::text FROM advisory._claims
    UNION ALL SELECT 'lease', key::text, token::text FROM advisory._leases
    UNION ALL SELECT 'label', key::text, label FROM advisory.key_labels UNION ALL
    SELECT 'era', last_value::text, NULL FROM advisory._era ORDER BY 1, 2};
for my $role ($owner, $creator, $super) {
    my $session = session(database => $made{$role}, role => $owner);
    $session->run(q{SELECT advisory.lease('owners', 'kept', '1 hour')},
        q{SELECT advisory.claim('owners', 'kept', '1 hour', '2026-01-01 10:00+00')},
        q{SELECT advisory.check_token('owners', 'kept', 1)},
        q{INSERT INTO advisory.key_labels (key, label) VALUES (1, 'kept')});
    my $target = database_of_owner("to_$role");
    is(system('pg_dump', '-U', $owner, '-f', $dump, $made{$role}), 0,
        "created by $role: the owner of the database dumps it");
    is(system('psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', $owner, '-o', '/dev/null', '-d',
            $target, '-f', $dump), 0, 'and restores it');
    my $restored = session(database => $target, role => $owner);
    is_deeply($restored->rows($ROWS), $session->rows($ROWS), 'with all rows');
    cmp_ok(scalar @{ $restored->rows($ROWS) }, '>=', 5, 'of all tables');
    is(join('', grep { /^(GRANT|REVOKE|ALTER)/ && /advisory\./ } `pg_dump -U $owner $made{$role}`),
        '', 'the dump has no privileges and no owners');
    $session->succeeds('DELETE FROM advisory._claims', 'it can delete claims') if $role eq $owner;
}

# The creators go.
$admin->run("REVOKE ALL ON DATABASE $_->[0] FROM $creator")
    for @{ $admin->rows("SELECT datname FROM pg_database WHERE datname LIKE 'advisory%\\_$$'") };
session(database => $_)->run("REASSIGN OWNED BY $creator, $super TO $owner",
    "DROP OWNED BY $creator, $super")->disconnect for values %made;
$admin->run("DROP ROLE $creator, $super");
for my $role (sort keys %made) {
    my @lines = `pg_dump $made{$role}`;
    ok((grep { /^CREATE EXTENSION.* advisory_ext/ } @lines),
        "created by $role, who is gone: the extension is still there");
    is(join('', grep { /advisory\b/ && /^(GRANT|REVOKE|ALTER)/ } @lines), '',
        'and a dump has no privileges and no owners');
}

done_testing();
