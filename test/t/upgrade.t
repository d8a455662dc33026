#!/usr/bin/env perl
# From 1.0 to this version: ALTER EXTENSION UPDATE results in the same objects as CREATE EXTENSION, and keeps the users' data and their
# objects that depend on the extension. Before the update, locks work with this library, and functions that need newer objects say so.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

# The objects of the extension in the catalogs, as text without OIDs. Grant options of an owner make no difference.
my %CATALOG = (
    functions => q(SELECT p.oid::regprocedure, pg_get_functiondef(p.oid), proacl, pg_get_userbyid(proowner), obj_description(p.oid, 'pg_proc') FROM member JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass),
    relations => q(SELECT c.oid::regclass, relkind, translate(relacl::text, '*', ''), pg_get_userbyid(relowner), reloptions, obj_description(c.oid, 'pg_class') FROM member JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass),
    columns => q(SELECT c.oid::regclass, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attacl, pg_get_expr(adbin, adrelid), col_description(c.oid, attnum)
                 FROM member JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum),
    views => q(SELECT c.oid::regclass, pg_get_viewdef(c.oid) FROM member JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass WHERE relkind = 'v'),
    indexes => q(SELECT pg_get_indexdef(indexrelid) FROM member JOIN pg_index ON indrelid = objid AND classid = 'pg_class'::regclass),
    constraints => q(SELECT conrelid::regclass, conname, pg_get_constraintdef(c.oid) FROM member JOIN pg_constraint c ON conrelid = objid AND member.classid = 'pg_class'::regclass),
    sequences => q(SELECT seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle FROM member JOIN pg_sequence ON seqrelid = objid AND classid = 'pg_class'::regclass),
    privileges => q(SELECT pg_describe_object(i.classoid, i.objoid, i.objsubid), privtype, translate(initprivs::text, '*', '') FROM pg_init_privs i JOIN member ON classoid = classid AND objoid = objid),
    members => q(SELECT pg_describe_object(classid, objid, 0) FROM member),
    extension => q(SELECT extversion, pg_get_userbyid(extowner), (SELECT array_agg(c::regclass::text ORDER BY 1) FROM unnest(extconfig) AS c) FROM pg_extension WHERE extname = 'advisory_ext'),
);
my $MEMBER = q(WITH member AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'advisory_ext')));

# The names that users see: functions, relations, and "relation.column".
my $NAMES = q(SELECT proname FROM member JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass WHERE pronamespace = 'advisory'::regnamespace
    UNION SELECT relname || coalesce('.' || attname, '') FROM member JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass AND relnamespace = 'advisory'::regnamespace
        CROSS JOIN LATERAL (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v') UNION SELECT NULL) AS a);

sub names_of { return { map { $_->[0] => 1 } grep { $_->[0] !~ /^_/ } @{ $_[0]->rows("$MEMBER $NAMES") } } }

sub catalog_of {
    my ($session) = @_;
    return { map { my $rows = $session->rows("$MEMBER $CATALOG{$_}"); $_ => [ sort map { join "\t", map { ref ? "{@$_}" : $_ // '' } @$_ } @$rows ] } keys %CATALOG };
}

my $owner = "advisory_owner_$$";
my $writer = "advisory_writer_$$";
my $super = "advisory_super_$$";
my $admin = session(database => $ENV{PGDATABASE})->run("CREATE ROLE $owner LOGIN", "CREATE ROLE $writer LOGIN", "CREATE ROLE $super SUPERUSER LOGIN");

my $version = $admin->value(q(SELECT default_version FROM pg_available_extensions WHERE name = 'advisory_ext'));
my @databases;

# What CHANGELOG.md says of the versions after 1.0.
open my $changelog, '<', "$FindBin::Bin/../../CHANGELOG.md" or die "CHANGELOG.md: $!\n";
my ($news) = do { local $/ = undef; <$changelog> } =~ /^## \d[^\n]*\n(.*)^## 1\.0$/ms or die "CHANGELOG.md has no versions\n";
close $changelog;

sub database_of_owner {
    my ($name) = @_;
    my $database = create_database(name => "advisory_$name\_$$", extension => 0, aside => 1);
    push @databases, $database;
    $admin->run("ALTER DATABASE $database OWNER TO $owner");
    return $database;
}

for my $role ($ENV{PGUSER}, $owner, $super) {
    my ($old, $new) = map { my $name = database_of_owner("$_\_" . ($role =~ /(\w+)_\d+$/ ? $1 : 'first')); session(database => $name, role => $role) } qw(old new);

    # ---- This library, and the objects of 1.0 ----------------------------------------------------------------------

    $old->run(q(CREATE EXTENSION advisory_ext VERSION '1.0'));
    my $old_names = names_of($old);
    is($old->value(q(SELECT advisory.try_lock('upgrade', 'a'))), 1, "$role: a lock works before the update");
    is($old->query('SELECT count(*) FROM advisory.wait_tree()')->{state}, undef, "$role: and wait_tree()");
    my $before = $old->query('SELECT count(*) FROM advisory.known_keys');
    like("@{ $before->{warnings} }", qr/before the extension is updated.*ALTER EXTENSION advisory_ext UPDATE/s, "$role: known_keys says what to do");
    is($old->query(q(CALL advisory.run('upgrade', 'job', 'SELECT 1')))->{state}, undef, "$role: so does run()");
    is($old->value(q(SELECT advisory.acquire('upgrade', 'slots', 2))), 1, "$role: and a semaphore");
    # They are what the HINT of a failed wait names.
    for my $case ([ "advisory.holders('upgrade', 'a')", 1 ], [ "advisory.holders_key(advisory.key('upgrade', 'a'))", 1 ], [ "advisory.locks WHERE name = 'a'", 1 ],
        [ "advisory.activity WHERE lock = 'upgrade/a'", 1 ], [ 'advisory.waits', 0 ], [ 'advisory.leaks', 0 ])
    {
        my ($rows, $count) = @$case;
        my $result = $old->query("SELECT count(*) FROM $rows");
        is($result->{value}, $count, "$role: so do rows of $rows") or diag explain $result;
    }
    is_deeply($old->rows(q(SELECT pid, state, mode, scope, granted, blocked_by FROM advisory.holders('upgrade', 'a'))), [ [ $old->pid, 'active', 'exclusive', 'session', 1, undef ] ],
        "$role: with what belongs into each column");

    is($old->query('SELECT advisory.version()')->{state}, '42883', "$role: 1.0 has no version()");

    # Functions that another role has put in the place of later ones do not run as the superuser.
    if ($role eq $owner) {
        session(database => $old->value('SELECT current_database()'))->run("GRANT CREATE ON SCHEMA advisory TO $owner")->disconnect;
        my $columns = 'tool text, purpose text, form text, scope text, match text, rule text, source text, key bigint, key1 integer, key2 integer,' .
            ' first_objsubid integer, last_objsubid integer, first_key bigint, last_key bigint, detail text';
        $old->run('CREATE SCHEMA advisory_internal', qq{CREATE FUNCTION advisory_internal.key_labels() RETURNS TABLE ($columns) LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION \$\$ran as %\$\$, current_user; END'},
            qq{CREATE FUNCTION advisory_internal.key_facts(bytea, boolean) RETURNS TABLE ($columns) LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION \$\$ran as %\$\$, current_user; END'});
        my $keys = $old->query('SELECT count(*) FROM advisory.known_keys');
        is($keys->{state}, undef, 'functions of another role in the schema do not run') or diag explain $keys;
        $old->run('DROP FUNCTION advisory_internal.key_labels()', 'DROP FUNCTION advisory_internal.key_facts(bytea, boolean)', 'DROP SCHEMA advisory_internal',
            'CREATE FUNCTION advisory.who() RETURNS name SECURITY DEFINER LANGUAGE sql AS $$ SELECT current_user $$');
        session(database => $old->value('SELECT current_database()'))->run("REVOKE CREATE ON SCHEMA advisory FROM $owner")->disconnect;
    }

    # ---- The update ----------------------------------------------------------------------------------------------------

    $old->run(q(INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'mine')),
        'CREATE VIEW public.on_locks AS SELECT pid, name FROM advisory.locks',
        'CREATE VIEW public.on_waits AS SELECT pid, name FROM advisory.waits') if $role ne $owner;
    $old->run(q(INSERT INTO advisory.key_labels (key, label) VALUES (4712, 'mine, too')),
        "GRANT INSERT ON advisory.key_labels TO $writer") if $role eq $owner;

    # What anybody has built on a function that must be dropped is in the way, and the error says what it is. What can stay is not.
    my $stranger = session(database => $old->value('SELECT current_database()'), role => $writer);
    $stranger->run('CREATE TEMP VIEW on_views AS SELECT l.pid FROM advisory.locks l, advisory.waits w, advisory.leaks k, advisory.known_keys, advisory.pressure, advisory.settings, advisory.stats',
        q{CREATE TEMP VIEW on_functions AS SELECT advisory.try_lock('upgrade', 'b'), advisory.key('a') AS of_a, k.* FROM advisory._known_keys() k}, 'CREATE TEMP TABLE typed (locks advisory._locks)');
    for my $case ([ q{SELECT * FROM advisory.holders('upgrade', 'a')}, 'holders(text,text)' ], [ 'SELECT * FROM advisory.holders_key(1)', 'holders_key(bigint)' ], [ 'SELECT * FROM advisory._waits()', '_waits()' ], [ 'SELECT pid FROM advisory._leaks()', '_leaks()' ],
        [ 'SELECT pid FROM advisory.activity', 'activity' ], [ 'SELECT NULL::advisory.activity AS of_type', 'activity' ],
        [ 'SELECT label FROM advisory.key_labels', 'key_labels' ]) {
        my ($query, $changed) = @$case;
        $stranger->run("CREATE TEMP VIEW \"in The way\" AS $query");
        my $error = $old->query('ALTER EXTENSION advisory_ext UPDATE');
        is($error->{state}, '2BP01', "$role: a view on $changed is in the way");
        like($error->{detail}, qr/^(?:function|view|table|type) (?:advisory\.)?\Q$changed\E is used by view pg_temp_\d+\."in The way" of role $writer\.$/, 'the error says which, and whose');
        like($error->{hint}, qr/^DROP VIEW pg_temp_\d+\."in The way", update the extension, and create it again\.$/, 'and what to do');
        $stranger->run('DROP VIEW "in The way"');
    }
    # What a role that is no superuser owns in the extension's schema may have been changed by that role.
    my $refused = sub {
        my ($by, $what) = @_;
        my $error = $by->query('ALTER EXTENSION advisory_ext UPDATE');
        is($error->{state}, '55000', "the update stops if another role owns $what") or diag explain $error;
        is($error->{detail}, "Role $role owns $what.", 'and says so');
    };
    my $stopped = sub {
        my ($what) = @_;
        my $error = $old->query('ALTER EXTENSION advisory_ext UPDATE');
        is($error->{state}, '55000', "the update stops if there is something else: $what") or diag explain $error;
        is($error->{detail}, "It is $what.", '... and says what');
    };
    if ($role eq $owner) {
        $old->run('ALTER EXTENSION advisory_ext ADD FUNCTION advisory.who()');
        $refused->($old, 'function advisory.who()');
        $old->run('ALTER EXTENSION advisory_ext DROP FUNCTION advisory.who()');
        $refused->($old, 'function advisory.who()');
        $old->run('DROP FUNCTION advisory.who()');
    }
    if ($role eq $super) {
        my $other = session(database => $old->value('SELECT current_database()'));
        $admin->run("ALTER ROLE $super NOSUPERUSER");
        $refused->($other, "schema advisory");
        $admin->run("ALTER ROLE $super SUPERUSER");
        # What a superuser has dropped from the extension would stay its own.
        $old->run('ALTER EXTENSION advisory_ext DROP FUNCTION advisory._known_keys()');
        $stopped->('function advisory._known_keys()');
        $old->run('ALTER EXTENSION advisory_ext ADD FUNCTION advisory._known_keys()');
        # A predefined role owns nothing in pg_shdepend.
        $old->run('CREATE FUNCTION advisory.trojan(text, integer) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$', 'ALTER FUNCTION advisory.trojan OWNER TO pg_monitor');
        is($old->query('ALTER EXTENSION advisory_ext UPDATE')->{detail}, 'Role pg_monitor owns function advisory.trojan(text,integer).', 'nor may a predefined role own anything');
        $old->run('DROP FUNCTION advisory.trojan');
        # What default privileges have granted.
        $other->run("GRANT CREATE ON SCHEMA advisory TO $writer, PUBLIC", "GRANT ALL ON advisory.key_labels TO $writer");
        $other->disconnect;
    }
    # What is attached to the extension's relations would run as the bootstrap superuser, or as whoever uses them.
    for my $case ([ 'trigger t on table advisory.key_labels', 'CREATE TRIGGER t BEFORE UPDATE ON advisory.key_labels FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'DROP TRIGGER t ON advisory.key_labels' ],
        [ 'trigger t on view advisory.settings', 'CREATE TRIGGER t INSTEAD OF UPDATE ON advisory.settings FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'DROP TRIGGER t ON advisory.settings' ],
        [ 'rule r on view advisory.settings', 'CREATE RULE r AS ON UPDATE TO advisory.settings DO INSTEAD NOTHING', 'DROP RULE r ON advisory.settings' ],
        [ 'column extra of table advisory.key_labels', 'ALTER TABLE advisory.key_labels ADD extra int', 'ALTER TABLE advisory.key_labels DROP extra' ],
        [ 'table public.parent', 'CREATE TABLE public.parent (key bigint); ALTER TABLE advisory.key_labels INHERIT public.parent', 'ALTER TABLE advisory.key_labels NO INHERIT public.parent; DROP TABLE public.parent' ],
        [ 'policy p on table advisory.key_labels', 'CREATE POLICY p ON advisory.key_labels', 'DROP POLICY p ON advisory.key_labels' ]) {
        my ($what, $make, $drop) = @$case;
        my $maker = session(database => $old->value('SELECT current_database()'))->run($make);
        $stopped->($what);
        $maker->run($drop)->disconnect;
    }
    {
        my $maker = session(database => $old->value('SELECT current_database()'));
        $maker->run('CREATE TABLE child (key bigint, key1 int, key2 int, label text, FOREIGN KEY (key, key1, key2, label) REFERENCES advisory.key_labels (key, key1, key2, label))');
        my $error = $old->query('ALTER EXTENSION advisory_ext UPDATE');
        is($error->{state}, '2BP01', 'so does a foreign key');
        like($error->{detail}, qr/^table advisory\.key_labels is used by constraint child_key_key1_key2_label_fkey on table public\.child\.$/, '... with its name');
        $maker->run('DROP TABLE child');
        for my $other ([ 'MATERIALIZED VIEW public.m', 'AS SELECT label FROM advisory.key_labels', 'materialized view public.m of role postgres' ], [ 'PUBLICATION p', 'FOR TABLE advisory.key_labels', 'publication of table advisory.key_labels in publication p' ]) {
            my ($name, $rest, $described) = @$other;
            $maker->run('SET client_min_messages = error', "CREATE $name $rest");
            is($old->query('ALTER EXTENSION advisory_ext UPDATE')->{detail}, "table advisory.key_labels is used by $described.", 'so does what would be lost');
            $maker->run("DROP $name");
        }
        # These stay.
        $maker->run("GRANT UPDATE (note) ON advisory.key_labels TO $writer", 'ALTER TABLE advisory.key_labels ENABLE ROW LEVEL SECURITY');
        # These go with the old table.
        $maker->run('ALTER TABLE advisory.key_labels ADD CONSTRAINT more CHECK (key > -1)', 'CREATE INDEX ON advisory.key_labels (label)', "GRANT REFERENCES (label) ON advisory.key_labels TO $writer")->disconnect;
        # Uncommitted, a trigger does not slip through: the update waits for it.
        my $late = session(database => $old->value('SELECT current_database()'));
        $late->run('BEGIN', 'CREATE TRIGGER t INSTEAD OF UPDATE ON advisory.waits FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()');
        $old->start('ALTER EXTENSION advisory_ext UPDATE');
        waits($late, $old);
        $late->run('COMMIT');
        is($old->finish->{detail}, 'It is trigger t on view advisory.waits.', 'a trigger that is committed during the update');
        $late->run('DROP TRIGGER t ON advisory.waits')->disconnect;
    }
    $old->run('BEGIN ISOLATION LEVEL REPEATABLE READ');
    is($old->query('ALTER EXTENSION advisory_ext UPDATE')->{state}, '25001', 'it needs READ COMMITTED');
    $old->run('ROLLBACK');
    # What the extension's owner has added to it elsewhere stays its own.
    $old->run('CREATE SCHEMA added', 'CREATE FUNCTION added.who() RETURNS name SECURITY DEFINER LANGUAGE sql AS $$ SELECT current_user $$', 'CREATE TABLE added.rows (x int)',
        map { "ALTER EXTENSION advisory_ext ADD $_" } 'SCHEMA added', 'FUNCTION added.who()', 'TABLE added.rows');
    # Settings of whoever runs the update make no difference.
    my @settings = $role ne $super ? () : ('quote_all_identifiers = on', $old->value(q{SELECT current_setting('server_version_num')::int < 190000}) ? 'standard_conforming_strings = off' : ());
    $old->run(map({ "SET $_" } @settings), 'ALTER EXTENSION advisory_ext UPDATE', 'RESET quote_all_identifiers', 'RESET standard_conforming_strings');
    $stranger->disconnect;
    my $keeper = session(database => $old->value('SELECT current_database()'));
    is($keeper->value(q(SELECT concat_ws(' ', has_column_privilege($1, 'advisory.key_labels', 'note', 'UPDATE'), relrowsecurity) FROM pg_class WHERE oid = 'advisory.key_labels'::regclass), $writer), 't t',
        "$role: who may write a column stays, and row-level security");
    like(join('', grep { /UPDATE.note/ } do { my $database = $old->value('SELECT current_database()'); `pg_dump $database` }), qr/^GRANT UPDATE\(note\) ON TABLE advisory.key_labels TO $writer;$/, "$role: ... also in a dump");
    $keeper->run("REVOKE UPDATE (note) ON advisory.key_labels FROM $writer", 'ALTER TABLE advisory.key_labels DISABLE ROW LEVEL SECURITY')->disconnect;
    is($old->value('SELECT added.who()'), $role, "$role: a SECURITY DEFINER function that was added to the extension runs as before");
    is($old->value(q(SELECT count(*) FROM pg_class WHERE oid = 'added.rows'::regclass AND relowner = ?::regrole), $role), 1, 'and a table belongs to whom it did');
    $old->run(map({ "ALTER EXTENSION advisory_ext DROP $_" } 'TABLE added.rows', 'FUNCTION added.who()', 'SCHEMA added'), 'SET client_min_messages = warning', 'DROP SCHEMA added CASCADE', 'RESET client_min_messages');
    $new->run('CREATE EXTENSION advisory_ext');
    is_deeply([ map { $_->value(q(SELECT concat_ws(' ', advisory.edition(), advisory.version()))) } $old, $new ], [ ("extension $version") x 2 ], "$role: version() is the new one");
    if ($role eq $owner) {
        is($old->value("SELECT has_table_privilege('$writer', 'advisory.key_labels', 'INSERT')"), 1, "$role: what was granted stays granted");
        my ($database) = $old->value('SELECT current_database()');
        like(join('', grep { /^GRANT.*key_labels/ } `pg_dump $database`), qr/^GRANT INSERT ON TABLE advisory.key_labels TO $writer;\n\z/, "$role: and nothing else is, in a dump");
        session(database => $database)->run("REVOKE INSERT ON advisory.key_labels FROM $writer")->disconnect;
    }
    if ($role eq $super) {
        is($old->value(q{SELECT string_agg(privilege_type, ', ') FROM pg_class, aclexplode(relacl)
                         WHERE oid = 'advisory.key_labels'::regclass AND grantee = $1::regrole AND privilege_type NOT IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')}, $writer), undef,
            "$role: of the table of labels, nobody keeps more than what concerns its rows");
        is($old->value(q{SELECT has_schema_privilege($1, 'advisory', 'CREATE')}, $writer), 0, "$role: and nobody the right to put functions into the schema");
        $old->run("REVOKE ALL ON advisory.key_labels FROM $writer");
    }
    # A column of a new view is not told one by one.
    my $new_names = names_of($new);
    my @unsaid = grep { my ($relation, $name) = /^(?:(\w+)\.)?(\w+)$/; !$old_names->{$_} && (!$relation || $old_names->{$relation}) && $news !~ /\b\Q$name\E\b/ } sort keys %$new_names;
    is_deeply(\@unsaid, [], "$role: CHANGELOG.md names everything that is new");
    is_deeply([ grep { !$new_names->{$_} && $news !~ /\b\Q$_\E\b/ } sort keys %$old_names ], [], "$role: and everything that is gone");
    my ($updated, $fresh) = map { catalog_of($_) } $old, $new;
    is_deeply($updated->{$_}, $fresh->{$_}, "$role: $_ are as after CREATE EXTENSION") for sort keys %CATALOG;
    is($old->value("$MEMBER SELECT count(*) FROM member JOIN pg_shdepend s USING (classid, objid) WHERE s.deptype = 'o' AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"), 0,
        "$role: everything belongs to the bootstrap superuser");
    is($old->value(q(SELECT count(*) FROM advisory.key_labels WHERE label LIKE 'mine%')), 1, "$role: labels are kept");
    is($old->query(q(INSERT INTO advisory.key_labels (key, label) VALUES (1, 'more')))->{state}, undef, "$role: and can be written");
    is($old->value(q(SELECT name FROM advisory.locks WHERE name = 'a')), 'a', "$role: the lock from before is still held, and has its name");
    is($old->value('SELECT count(*) FROM public.on_locks WHERE name IS NOT NULL'), 2, "$role: a view of a user's still works") if $role ne $owner;
    is($old->query(q(SELECT advisory.token('upgrade', 'a')))->{state}, undef, "$role: what is new works");
    $_->disconnect for $old, $new;
}

$admin->run(map({ "DROP DATABASE $_" } @databases), "DROP ROLE $owner, $writer, $super");
done_testing();
