#!/usr/bin/env perl
# Who may see which name, where several roles act in one session, and where a label was given by
# somebody else: a role sees the names that it gave itself, a label counts only while its giver
# holds or awaits the lock, and half of a hidden name cannot be guessed.
use AdvisoryTest;

create_database();
my $admin = session(application => 'admin');
# a has the secret, b is to learn nothing. p may act as a and does not inherit that; b may see p's
# sessions. pool may act as both.
my %role = map { $_ => "advisory_${_}_$$" } qw(a b p pool);
$admin->run((map { "CREATE ROLE $role{$_} LOGIN" } qw(a b)),
    (map { "CREATE ROLE $role{$_} LOGIN NOINHERIT" } qw(p pool)),
    "GRANT $role{a} TO $role{p}", "GRANT $role{p} TO $role{b}",
    "GRANT $role{a}, $role{b} TO $role{pool}");
$admin->run("CREATE SCHEMA b AUTHORIZATION $role{b}", "GRANT USAGE ON SCHEMA b TO PUBLIC");

my $SECRET = 'hush';
my $HIDDEN = '<insufficient privilege>';

sub as ($who) { return session(role => $role{$who}, application => $who) }
sub key { $admin->value('SELECT advisory.key(?, ?)', $SECRET, $_[0]) }

my @heard;
local $SIG{__WARN__} = sub { push @heard, @_ };

# All that b can read in this session about a lock, whose key it labels: views, warnings, errors.
my @VIEWS = map { "advisory.$_" } qw(activity locks waits wait_tree() stats leaks known_keys
    holders_key(wanted));
my $read = join ' || ',
    map { "coalesce((SELECT string_agg(v::text, ' ') FROM $_ AS v), '')" } @VIEWS;
$admin->run("SET ROLE $role{b}", <<"SQL", 'RESET ROLE');
    CREATE FUNCTION b.reads(wanted bigint) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET
        search_path = pg_catalog AS \$\$
    DECLARE
        what text := '';
        message text;
        detail text;
    BEGIN
        SET LOCAL client_min_messages = debug1;
        PERFORM advisory.try_lock_key(wanted, '0', 'mine');
        PERFORM advisory.try_lock_key(wanted, label => '$SECRET');
        PERFORM advisory.try_xact_lock_key(wanted), advisory.try_lock_shared_key(wanted,
            label => 'mine'), advisory.holds_key(wanted);
        what := what || $read;
        BEGIN
            PERFORM advisory.unlock_key(wanted), advisory.unlock_shared_key(wanted),
                advisory.unlock_shared_key(wanted);
            PERFORM advisory.lock_key(wanted, '0');
            PERFORM advisory.lock_shared_key(wanted, '10ms', 'mine');
        EXCEPTION WHEN lock_not_available THEN
            GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
            what := what || message || detail;
        END;
        PERFORM advisory.unlock_key(wanted);
        RETURN what || $read;
    END \$\$
SQL

# Nothing of the secret was told by what the code returns, or on the way.
sub learns_nothing ($what, $code) {
    @heard = ();
    my $text = join "\n", $code->(), @heard;
    like($text, qr/holds|exclusive/, "$what: something was read");
    unlike($text, qr/$SECRET-/, "$what: and the secret not told");
    return;
}

sub text_of ($result) {
    return join "\n", map { $_ // '' } $result->{value}, @{$result}{qw(message detail hint)},
        @{ $result->{warnings} // [] }
}

# ---- Several roles in one session ----------------------------------------------------------------

{
    my $session = as('p');
    $session->run("SET ROLE $role{a}", "SELECT advisory.lock('$SECRET', '$SECRET-1')",
        'RESET ROLE');
    my $key = key("$SECRET-1");
    learns_nothing('a SECURITY DEFINER function',
        sub { text_of($session->query("SELECT b.reads($key)")) });
    my $other = as('b');
    learns_nothing('another session of b', sub { text_of($other->query("SELECT b.reads($key)")) });
    cmp_ok($other->value('SELECT count(*) FROM advisory.locks WHERE pid = ? AND namespace = ?',
            $session->pid, $HIDDEN), '>=', 1, 'it sees the lock, and that it has a name');
    is($other->value('SELECT lock FROM advisory.activity WHERE pid = ?', $session->pid), $key,
        'activity shows its key');
    # The role that has given the name goes on seeing it, whatever b has called it.
    $session->run("SET ROLE $role{a}");
    as('a')->shows("SELECT count(*) FROM advisory.stats WHERE name = '$SECRET-1'", 1,
        'the name stays');
    $session->run('RESET ROLE');
    # A lock that both roles hold in this session, each under its own name for it.
    my $second = key("$SECRET-2");
    $session->run("SET ROLE $role{a}", "SELECT advisory.lock('$SECRET', '$SECRET-2')",
        "SELECT advisory.lock_shared('$SECRET', '$SECRET-2')",
        'RESET ROLE', 'BEGIN', 'SAVEPOINT s');
    learns_nothing('in a savepoint', sub { text_of($session->query("SELECT b.reads($second)")) });
    $session->run('ROLLBACK TO s');
    learns_nothing('after it', sub { text_of($session->query("SELECT b.reads($second)")) });
    $session->run('ROLLBACK');
}

{
    # A label for the key that gets a hidden name later, in a session that b may see.
    my $key = key("$SECRET-label");
    my $session = as('p')->run("SELECT advisory.lock_shared_key($key, label => 'mine')");
    my $owner = as('a')->run("SELECT advisory.lock_shared('$SECRET', '$SECRET-label')");
    learns_nothing('a label beside it', sub { text_of(as('b')->query("SELECT b.reads($key)")) });
}

{
    # An index's functions run as the owner of its table, whoever makes the index anew.
    $admin->run("CREATE TABLE b.t (k bigint)", "ALTER TABLE b.t OWNER TO $role{b}",
        "SET ROLE $role{b}", <<'SQL',
        CREATE FUNCTION b.spies(wanted bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
        BEGIN
            RAISE WARNING 'b reads: %', b.reads(wanted);
            RETURN wanted;
        END $$
SQL
        'CREATE INDEX i ON b.t (b.spies(k))', 'RESET ROLE',
        'INSERT INTO b.t VALUES (' . key("$SECRET-3") . ')');
    $admin->run("SELECT advisory.lock('$SECRET', '$SECRET-3')");
    @heard = ();
    my $result = $admin->query('REINDEX INDEX b.i');
    my @spied = grep { /b reads: / } @{ $result->{warnings} }, @heard;
    is(scalar @spied, 1, "REINDEX runs the function of the index's owner");
    my ($told) = $spied[0] =~ /b reads: (.*)/s;
    $told =~ s/^CONTEXT:.*//ms;
    learns_nothing('REINDEX by a superuser', sub { $told });
    $admin->run('SELECT pg_advisory_unlock_all()');
}

{
    # A pooled connection.
    my $session = as('pool');
    my $key = key("$SECRET-4");
    $admin->run("GRANT $role{pool} TO CURRENT_USER");
    for my $between ('DISCARD ALL', 'RESET ALL') {
        $session->run("SET ROLE $role{a}", "SELECT advisory.lock('$SECRET', '$SECRET-4')",
            'RESET ROLE', $between, "SET ROLE $role{b}");
        learns_nothing("a pooled connection after $between",
            sub { text_of($session->query("SELECT b.reads($key)")) });
        for my $call ("unlock_key($key)", "unlock_shared_key($key)",
            "try_lock_key($key, label => 'x')", "lock_shared_key($key, '1ms')") {
            unlike(text_of($session->query("SELECT advisory.$call")), qr/$SECRET/, "nor by $call");
        }
        $session->run('RESET ROLE', 'DISCARD ALL');
    }
    # The role that used the name itself sees it, in the same session.
    $session->run("SET ROLE $role{a}", "SELECT advisory.lock('$SECRET', '$SECRET-4')");
    is($session->query("SELECT advisory.unlock_shared_key($key)")->{warnings}[0]
        =~ m{"$SECRET/$SECRET-4"}, 1, 'the role that gave the name is told it');
    $admin->shows('SELECT lock FROM advisory.activity WHERE pid = ?', "$SECRET/$SECRET-4",
        'and so is a superuser', $session->pid);
    # Each role that uses a name sees it, also if another one has used it before.
    $session->run(map { ("SET ROLE $role{$_}", "SELECT advisory.lock('$SECRET', '$SECRET-5')",
        "SELECT advisory.unlock('$SECRET', '$SECRET-5')", 'RESET ROLE') } qw(a b));
    as($_)->shows("SELECT count(*) FROM advisory.stats WHERE name = '$SECRET-5'", 1,
        "$_ has used the name") for qw(a b);
}

{
    # What a session knows of names it finds by key and role. With so many roles, some of what it
    # seeks has the place of what another role has used.
    my @many = map { "$role{pool}_$_" } 1 .. 60;
    my $session = session()->run(map { ("CREATE ROLE $_ IN ROLE $role{pool}", "SET ROLE $_",
        "SELECT advisory.unlock('many', '$_') FROM advisory.lock('many', '$_')",
        'RESET ROLE') } @many);
    my $pooled = as('pool');
    $pooled->value(q(SELECT count(pg_advisory_lock(advisory.key('many', name)))
        FROM unnest(?::text[]) AS name), \@many);
    is_deeply([ map { $session->run("SET ROLE $_")->value(
        q(SELECT string_agg(name, ' ') FROM advisory.locks WHERE namespace = 'many')) } @many ],
        \@many, 'each of many roles is shown its own name only');
}

{
    # A name remembers four roles that gave it. The session that waits under it says its own.
    my $key = key("$SECRET-6");
    $admin->run(map { ("SET ROLE $role{pool}_$_", "SELECT advisory.lock('$SECRET', '$SECRET-6')",
        "SELECT advisory.unlock('$SECRET', '$SECRET-6')", 'RESET ROLE') } 1 .. 4);
    $admin->run("SELECT pg_advisory_lock($key)");
    my $waiter = as('pool');
    waits($admin, $waiter, "SELECT advisory.lock('$SECRET', '$SECRET-6')");
    as('pool')->shows('SELECT name FROM advisory.locks WHERE pid = ?', "$SECRET-6",
        'the fifth role that gives a name sees it while it waits', $waiter->pid);
    $admin->run("SELECT pg_advisory_unlock($key)");
    $waiter->finish;
}

# ---- A label counts only while its giver holds or awaits the lock --------------------------------

my ($holder, $b) = (as('a'), as('b'));

sub names ($session, $key) {
    return $session->rows('SELECT namespace, name FROM advisory.locks WHERE key = ?
        ORDER BY granted DESC, pid = ? DESC', $key, $holder->pid);
}
sub shown ($session, $key) {
    return join ' ',
        $session->column(q(SELECT a.lock FROM advisory.activity AS a JOIN advisory.locks AS l
        USING (pid) WHERE l.key = ? AND a.lock !~ '/' ORDER BY l.granted DESC, a.pid), $key);
}

for my $take ('pg_advisory_lock(555001)', 'advisory.lock_key(555001)',
    'advisory.lock_shared_key(555001)') {
    my $exclusive = $take =~ /shared/ ? '_shared' : '';
    $holder->run("SELECT $take");
    my $label = 'payroll';
    my $failing = $take =~ /shared/ ? "SELECT advisory.try_lock_key(555001, '0', '$label')"
        : "SELECT advisory.try_lock_shared_key(555001, '0', '$label')";
    $b->shows($failing, 0, "$take: another role's attempt fails");
    $b->shows("SELECT advisory.try_lock_key(555001, '20ms', '$label')", 0,
        'so does one that waits');
    is_deeply(names($holder, 555001), [ [ undef, undef ] ], 'the holder sees no name');
    is(shown($holder, 555001), '555001', 'but the key, in activity');
    is_deeply(names($admin, 555001), [ [ undef, undef ] ],
        'a superuser sees no label of somebody who never held it');
    is(shown($admin, 555001), '555001', 'nor in activity');
    like($admin->query("SELECT advisory.lock_key(555001, '0')")->{message}, qr/"555001"/,
        'nor in an error');
    as('b')->shows("SELECT lock FROM advisory.activity WHERE pid = ?", '555001',
        'nor does a session of the giver', $holder->pid);
    # While it waits, its label counts.
    waits($admin, $b, "SELECT advisory.lock_key(555001, label => '$label')");
    is_deeply(names($admin, 555001), [ [ undef, $label ], [ undef, $label ] ],
        'while the giver waits the label counts');
    is_deeply(names($holder, 555001), [ [ $HIDDEN, $HIDDEN ], [ $HIDDEN, $HIDDEN ] ],
        'and is hidden from the holder');
    $holder->shows('SELECT lock FROM advisory.activity WHERE pid = pg_backend_pid()', '555001',
        'whose activity shows the key');
    like($holder->value('SELECT * FROM advisory.wait_tree() LIMIT 1'), qr/holds 555001 /,
        'and so does its wait_tree()');
    $holder->run('SELECT pg_advisory_unlock_all()');
    $b->finish;
    is_deeply(names($admin, 555001), [ [ undef, $label ] ], 'while the giver holds it, too');
    is(shown($admin, 555001), qq("$label"), 'in quotes in activity');
    $b->run('SELECT pg_advisory_unlock_all()');
    $holder->run("SELECT $take");
    is_deeply(names($admin, 555001), [ [ undef, undef ] ], 'and not any more when others hold it');
    $holder->run('SELECT pg_advisory_unlock_all()');
}

{
    # What becomes of a label: each session's is its own, and it is not told about one that does not
    # count.
    my $second = as('a');
    is($holder->warned("SELECT advisory.lock_shared_key(555001, label => 'invoices')"), '',
        'a label that does not count is no other name');
    is_deeply(names($holder, 555001), [ [ undef, 'invoices' ] ],
        'the label of the one that holds it counts');
    $b->shows("SELECT advisory.try_lock_shared_key(555001, label => 'mine')", 1,
        'another role shares it');
    is_deeply(names($holder, 555001)->[0], [ undef, 'invoices' ],
        'and does not take the label away');
    is_deeply(names($b, 555001)->[1], [ undef, 'mine' ], 'but sees its own in its own session');
    is_deeply(names($admin, 555001), [ [ undef, 'invoices' ], [ undef, 'mine' ] ],
        'who may see both labels sees that of each session');
    $second->run('SELECT pg_advisory_lock_shared(555001)');
    $holder->run('SELECT pg_advisory_unlock_all()');
    is_deeply(names($admin, 555001), [ ([ undef, 'mine' ]) x 2 ], 'when its giver is gone it does '
        . 'not count, and the other one is shown for a session that gave none');
    $second->run('SELECT pg_advisory_unlock_all()');
    $b->run('SELECT pg_advisory_unlock_all()');
    # Two sessions with two labels, one after the other.
    $holder->run("SELECT advisory.lock_key(555002, label => 'x')");
    waits($admin, $b, "SELECT advisory.lock_key(555002, label => 'y')");
    waits($admin, $second, "SELECT advisory.lock_key(555002, label => 'x')");
    is_deeply(names($admin, 555002), [ [ undef, 'x' ], [ undef, 'y' ], [ undef, 'x' ] ],
        'each session gives its own');
    $holder->run('SELECT pg_advisory_unlock_all()');
    $b->finish;
    is_deeply(names($admin, 555002), [ [ undef, 'y' ], [ undef, 'x' ] ],
        'the next one keeps its own');
    $b->run('SELECT pg_advisory_unlock_all()');
    $second->finish;
    is_deeply(names($admin, 555002), [ [ undef, 'x' ] ], 'then the third one');
    # A label that is given when the lock is held already; whichever of two was given first.
    $holder->run("SELECT advisory.lock_shared_key($_)") for 555005, 555006;
    $holder->run("SELECT advisory.lock_shared_key(555005, label => 'x')");
    $b->run("SELECT advisory.lock_shared_key($_, label => 'y')") for 555005, 555006;
    $holder->run("SELECT advisory.lock_shared_key(555006, label => 'x')");
    is_deeply(names($admin, $_), [ [ undef, 'x' ], [ undef, 'y' ] ],
        "$_: a label that comes later is the session's own, too") for 555005, 555006;
    $_->run('SELECT pg_advisory_unlock_all()') for $holder, $b;
    # A prepared transaction's label is that of its owner.
    $second->run('SELECT pg_advisory_unlock_all()', 'BEGIN', "SELECT advisory.xact_lock_key(555003,
        label => 'kept')", "PREPARE TRANSACTION 'advisory_name_roles'");
    $second->run("SELECT 1");
    is_deeply(names($admin, 555003), [ [ undef, 'kept' ] ],
        "a prepared transaction's label counts");
    $b->shows("SELECT advisory.try_lock_key(555003, '0', 'b has it')", 0,
        'another role does not get it');
    is_deeply(names($admin, 555003), [ [ undef, 'kept' ] ], 'nor the name');
    $admin->run("ROLLBACK PREPARED 'advisory_name_roles'");
    # An ending session's does not.
    $second->run("SELECT advisory.lock_key(555004, label => 'short')");
    leave($admin, $second);
    $b->run('SELECT pg_advisory_lock(555004)');
    is_deeply(names($admin, 555004), [ [ undef, undef ] ],
        'that of a session that has ended does not');
    $b->run('SELECT pg_advisory_unlock_all()');
}

# ---- Half of a hidden name cannot be guessed -----------------------------------------------------

{
    $holder->run("SELECT advisory.lock('$SECRET-unguessable', 'invoice:42')");
    my $key = $admin->value("SELECT advisory.key('$SECRET-unguessable', 'invoice:42')");
    # A new session for each label, since each is warned once.
    my $guess = sub ($label) {
        my $before = $admin->value('SELECT collisions FROM advisory.directory');
        my $warnings = join '', @{ as('b')
            ->query("SELECT advisory.try_lock_key($key, label => '$label')")->{warnings} };
        $warnings =~ s/\Q$label\E/LABEL/g;
        return ($warnings, $admin->value('SELECT collisions FROM advisory.directory') - $before);
    };
    my @wrong = $guess->('anything else');
    like($wrong[0], qr/"LABEL" also has another name.*that the current user may not see/s,
        'a label for a key with a hidden name: a warning');
    is_deeply([ $guess->('invoice:42') ], \@wrong,
        'the same one if it is the second half of that name');
    is_deeply([ $guess->("$SECRET-unguessable") ], \@wrong, 'or the first half');
    is_deeply([ $guess->("$SECRET-unguessable/") ], \@wrong, 'with the slash');
    is_deeply([ $guess->("$SECRET-unguessable/invoice:42") ], [ '', 0 ],
        'none if it is the whole name, whose key one can compute');
    my $owner = as('a');
    is($owner->warned("SELECT advisory.try_lock_key($key, label => 'invoice:42')"), '',
        'who may see the name may call it by half of it');
    $holder->run('SELECT pg_advisory_unlock_all()');
}

done_testing();
