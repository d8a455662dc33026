#!/usr/bin/env perl
# Labels of keys: the owner of the database writes them, whatever its name is, even when it changes;
# but their table belongs to the bootstrap superuser, so that nobody else can attach anything to it.
# pg_dump dumps the table. The views work if it is locked.
use AdvisoryTest;
use File::Temp qw(tempdir);

my $admin = session();

# ---- The owner of the database writes them -------------------------------------------------------

my @roles = map { "$_ $$" } 'advisory Owner-1', q{o'brien}, q{a"quote}, q{back\\slash}, q{cost$},
    'grüße', 'PUBLIC';
for my $name (@roles) {
    my $role = $admin->dbh->quote_identifier($name);
    my $database = create_database(name => "advisory_owned_$$", extension => 0, aside => 1);
    my $session = session(database => $database);
    $session->run("CREATE ROLE $role", qq{ALTER DATABASE "$database" OWNER TO $role},
        "SET ROLE $role", 'CREATE EXTENSION advisory_ext');
    $session->shows('SELECT extowner::regrole::text = quote_ident(current_user) FROM pg_extension
        WHERE extname = ?', 1, "$name installs it", 'advisory_ext');
    $session->run("INSERT INTO advisory.key_labels (key, label) VALUES (1, 'one')",
        'UPDATE advisory.key_labels SET key = 2');
    $session->shows('SELECT label FROM advisory.key_labels', 'one', 'and writes labels');
    $session->shows("SELECT relowner FROM pg_class WHERE oid = 'advisory.key_labels'::regclass", 10,
        'but the bootstrap superuser owns their table');
    is($session->warned('GRANT INSERT ON advisory.key_labels TO PUBLIC'), '',
        'and lets others write');
    $session->shows("SELECT has_table_privilege('public', 'advisory.key_labels', 'INSERT')", 1,
        'who may then');
    $session->fails('DROP TABLE advisory.key_labels', '42501', 'it cannot drop the table');
    $session->fails('ALTER TABLE advisory.key_labels RENAME TO mine', '42501',
        'and nothing can be put in its place');
    $session->run('RESET ROLE', 'DROP EXTENSION advisory_ext');
    $session->disconnect;
    $admin->run(qq{DROP DATABASE "$database"}, "DROP ROLE $role");
}

# A superuser other than the first one installs it.
{
    my $other = "advisory_superuser_$$";
    my $database = create_database(name => "advisory_other_$$", extension => 0, aside => 1);
    $admin->run("CREATE ROLE $other SUPERUSER LOGIN");
    my $session = session(database => $database, role => $other)->run('CREATE EXTENSION
        advisory_ext', q{INSERT INTO advisory.key_labels (key, label) VALUES (1, 'one')});
    $session->shows("SELECT relowner FROM pg_class WHERE oid = 'advisory.key_labels'::regclass", 10,
        'where another superuser installs it, the table is the bootstrap superuser\'s, too');
    $session->disconnect;
    session(database => $database)->run("REASSIGN OWNED BY $other TO CURRENT_USER",
        "DROP OWNED BY $other")->disconnect;
    $admin->run("DROP ROLE $other");
    unlike(dumped_privileges($database), qr/key_labels/,
        'and after DROP ROLE a dump grants and revokes nothing on it');
    is(session(database => $database)->value('SELECT tool FROM advisory.known_keys WHERE key = 1'),
        'one', 'the labels are shown');
    $admin->run(qq{DROP DATABASE "$database" WITH (FORCE)});
}

# ---- pg_dump -------------------------------------------------------------------------------------

my $owner = "advisory_owner_$$";
$admin->run("CREATE ROLE $owner LOGIN");
my ($from, $to, $clean) = map { create_database(name => "advisory_${_}_$$", extension => 0,
        aside => 1) } qw(from to clean);
$admin->run(qq{ALTER DATABASE "$_" OWNER TO $owner}) for $from, $to, $clean;
my $LABELS = 'SELECT key, key1, key2, label, note FROM advisory.key_labels
    ORDER BY label COLLATE "C"';
my @labels = ([ -1, undef, undef, 'a', "one\ttab\\ and 'quotes'\n" ],
    [ undef, 1, -2, 'größe', undef ]);
my $source = session(database => $from, role => $owner);
$source->run('CREATE EXTENSION advisory_ext');
$source->rows('INSERT INTO advisory.key_labels VALUES (?, ?, ?, ?, ?)', @$_) for @labels;
is_deeply($source->rows($LABELS), \@labels, 'labels');

my $dump = tempdir(CLEANUP => 1) . '/dump.sql';
my @as_owner = ('-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', $owner);
is(system('pg_dump', '-U', $owner, '-f', $dump, $from), 0,
    'the owner of the database, no superuser, dumps it');
is(system('psql', @as_owner, '-d', $to, '-f', $dump), 0, 'and restores it');
is_deeply(session(database => $to)->rows($LABELS), \@labels, 'with all labels');
session(database => $to)->shows('SELECT tool FROM advisory.known_keys WHERE key = -1', 'a',
    'which the view has at once');
is(system('pg_dump', '-Fc', '-f', $dump, $from), 0, 'a superuser dumps it in another form');
is(system('pg_restore', '-d', $clean, $dump), 0, 'and restores it');
is_deeply(session(database => $clean)->rows($LABELS), \@labels, 'with all labels');

# A role that owns neither dumps and restores a database in which a superuser has installed the
# extension.
my $plain = create_database(name => "advisory_plain_$$", aside => 1);
$admin->run(qq{ALTER DATABASE "$plain" OWNER TO $owner});
is(system('pg_dump', '-U', $owner, '-f', $dump, $plain), 0,
    'a database in which a superuser installed it is dumped by its owner');
$admin->run(qq{DROP DATABASE "$plain"});

# ---- The owner goes ------------------------------------------------------------------------------

my ($old, $new) = map { "advisory_${_}_$$" } qw(old new);
my @moved = map { create_database(name => "advisory_${_}_$$", extension => 0, aside => 1) } qw(moved
    restored cleaned);
$admin->run("CREATE ROLE $old LOGIN", "CREATE ROLE $new LOGIN",
    qq{ALTER DATABASE "$moved[0]" OWNER TO $old});
my $moving = session(database => $moved[0], role => $old);
$moving->run('CREATE EXTENSION advisory_ext',
    q{INSERT INTO advisory.key_labels (key, label) VALUES (1, 'by the old owner')});
$moving->disconnect;
is(dumped_privileges($moved[0]) =~ /\b$old\b/, '', 'a dump does not name the owner');
$moving = session(database => $moved[0]);
$moving->run("REASSIGN OWNED BY $old TO $new", "DROP OWNED BY $old");
$admin->run("DROP ROLE $old");
my $heir = session(database => $moved[0], role => $new);
$heir->run(q{INSERT INTO advisory.key_labels (key, label) VALUES (2, 'by the new owner')},
    q{UPDATE advisory.key_labels SET note = 'seen'});
$heir->shows('SELECT count(*) FROM advisory.key_labels', 2,
    'after REASSIGN OWNED the new owner writes them');
unlike(dumped_privileges($moved[0]), qr/"\d+"/,
    'after DROP ROLE a dump names no role that is gone');
for my $case ([ $moved[1] ], [ $moved[2], '--clean', '--if-exists' ], [ $moved[2], '--clean' ]) {
    my ($to, @options) = @$case;
    is(system('pg_dump', @options, '-f', $dump, $moved[0]), 0, "it is dumped: @options");
    is(system('psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $to, '-f', $dump), 0,
        'and restored without an error');
    session(database => $to)->shows('SELECT count(*) FROM advisory.key_labels', 2,
        'with all labels');
}
$moving->run("DROP OWNED BY $new");
$moving->shows(q{SELECT count(*) FROM pg_extension WHERE extname = 'advisory_ext'}, 0,
    'DROP OWNED of its owner drops the extension');
$_->disconnect for $heir, $moving;
$admin->run(map({ qq{DROP DATABASE "$_" WITH (FORCE)} } @moved), "DROP ROLE $new");

# The lines of a dump that grant and revoke.
sub dumped_privileges ($database) {
    open my $lines, '-|', 'pg_dump', $database or die "cannot run pg_dump: $!\n";
    return join '', grep { /^(GRANT|REVOKE)/ } <$lines>;
}

# ---- The owner of the database attaches nothing to their table -----------------------------------

my $trap = create_database(name => "advisory_trap_$$", extension => 0, aside => 1);
$admin->run(qq{ALTER DATABASE "$trap" OWNER TO $owner});
my $trapper = session(database => $trap, role => $owner);
$trapper->run('CREATE EXTENSION advisory_ext',
    q{INSERT INTO advisory.key_labels (key, label) VALUES (1, 'one')},
    'CREATE SCHEMA trap', 'GRANT USAGE ON SCHEMA trap TO PUBLIC', 'CREATE TABLE trap.sprung
    (by name)', 'GRANT INSERT ON trap.sprung TO PUBLIC', <<'SQL', <<'SQL');
    CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO trap.sprung VALUES (current_user);
        RETURN true;
    END $$
SQL
    CREATE FUNCTION trap.on_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO trap.sprung VALUES (current_user);
        RETURN NEW;
    END $$
SQL
for my $attempt ('CREATE POLICY trap ON advisory.key_labels USING (trap.spring())',
    'ALTER TABLE advisory.key_labels ENABLE ROW LEVEL SECURITY',
    'CREATE TRIGGER trap BEFORE INSERT ON advisory.key_labels
    FOR EACH ROW EXECUTE FUNCTION trap.on_write()',
    'CREATE TABLE trap.child () INHERITS (advisory.key_labels)',
    'CREATE INDEX ON advisory.key_labels (trap.spring())',
    'CREATE RULE trap AS ON INSERT TO advisory.key_labels DO ALSO SELECT trap.spring()',
    map { "ALTER TABLE advisory.key_labels $_" } 'ALTER COLUMN note TYPE name',
    'RENAME note TO remark', 'ALTER note SET DEFAULT trap.spring()::text',
    'ADD CHECK (trap.spring())', 'DROP CONSTRAINT key_labels_one_form', 'SET UNLOGGED',
    "OWNER TO $owner") {
    $trapper->fails($attempt, '42501', "not allowed: $attempt");
}

# What a superuser attaches.
my $visitor = session(database => $trap);
$visitor->run('SELECT pg_advisory_lock(1)');
my $LOOK = q{SELECT known_as[1] FROM advisory.locks WHERE key = 1 AND pid = pg_backend_pid()};
sub springs_nothing ($what) {
    $visitor->shows($LOOK, 'one', "$what: what a superuser sees");
    $visitor->shows(q{SELECT count(*) FROM advisory.known_keys
        WHERE source = 'advisory.key_labels'}, 1, "$what: and in known_keys");
    $visitor->shows(q{SELECT count(*) FROM trap.sprung}, 0, "$what: nothing has run");
    return;
}
springs_nothing('nothing attached');
$visitor->run('CREATE TABLE trap.child () INHERITS (advisory.key_labels)',
    q{INSERT INTO trap.child (key, label) VALUES (1, 'a child')});
springs_nothing('a child table');
$visitor->run('DROP TABLE trap.child', 'CREATE POLICY trap ON advisory.key_labels
    USING (trap.spring())', 'ALTER TABLE advisory.key_labels ENABLE ROW LEVEL SECURITY');
springs_nothing('a policy');
my $nobody = "advisory_nobody_$$";
$admin->run("CREATE ROLE $nobody");
for my $role ($nobody, $owner) {
    $visitor->run("SET ROLE $role");
    $visitor->shows($LOOK, 'several programs use it',
        "$role is subject to a policy and sees no labels");
    $visitor->run('RESET ROLE');
}
$admin->run("DROP ROLE $nobody");
$_->disconnect for $trapper, $visitor;
$admin->run(qq{DROP DATABASE "$trap" WITH (FORCE)});

# ---- In the way of nothing -----------------------------------------------------------------------

my $reader = session(database => $from, role => $owner);
my $KNOWN = 'SELECT known_as::text FROM advisory.locks WHERE key = -1 AND pid = pg_backend_pid()';
$reader->run('SELECT pg_advisory_lock(-1)');
is($reader->value($KNOWN), qq{{"a: one?tab\\\\ and 'quotes'?"}}, 'a label is shown');
my $labels_owner = session(database => $from);
for my $locked ('LOCK TABLE advisory.key_labels IN ACCESS EXCLUSIVE MODE',
    'REINDEX INDEX advisory.key_labels_unique') {
    $labels_owner->run('BEGIN', $locked);
    my $result = $reader->start($KNOWN)->finish(10);
    is_deeply($result->{rows}, [ [undef] ], "$locked: the view does without, at once");
    like("@{ $result->{warnings} }",
        qr/labels of keys are not shown, because table "advisory.key_labels" is locked/,
        'and says so');
    cmp_ok($reader->value('SELECT count(*) FROM advisory.known_keys'), '>', 20, 'so does the list');
    $labels_owner->run('COMMIT');
    ok($reader->value($KNOWN), 'then it is there again');
}
for my $catalog (qw(pg_extension pg_depend)) {
    for my $locked ("LOCK TABLE $catalog IN ACCESS EXCLUSIVE MODE", "REINDEX TABLE $catalog") {
        # (To connect, the server itself may have to wait.)
        my $fresh = session(database => $from)->run(q(SET statement_timeout = '10s'));
        $labels_owner->run('BEGIN', $locked);
        $fresh->succeeds("SELECT * FROM advisory.$_", "$locked: $_")
            for qw(locks activity semaphores waits blockers leaks known_keys);
        $labels_owner->run('COMMIT');
        $fresh->disconnect;
    }
}
$labels_owner->disconnect;

# A REPEATABLE READ transaction sees the labels of its snapshot.
$reader->run('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
$source->run("UPDATE advisory.key_labels SET label = 'b', note = NULL WHERE key = -1");
like($reader->value($KNOWN), qr/a: one/, 'as of the beginning of the transaction');
$reader->run('COMMIT');
$reader->shows($KNOWN, '{b}', 'as of now');

done_testing();
