#!/usr/bin/env perl
# An unprivileged role sees no names of other roles: not in a view, an error, a warning, the context
# or detail of a deadlock, nor in log messages that are sent to the client. It sees its own names
# from other sessions, and roles with the privilege see all.
use AdvisoryTest;

create_database();
my $admin = session();
# a has the secret, b is to learn nothing, m may act as a, and s may see statistics.
my %role = map { $_ => "advisory_${_}_$$" } qw(a b m s);
$admin->run(map { "CREATE ROLE $_ LOGIN" } values %role);
$admin->run("GRANT $role{a} TO $role{m}", "GRANT pg_read_all_stats TO $role{s}");

sub as ($who, @more) { return session(role => $role{$who}, application => $who, @more) }

my $SECRET = 'hush';    # part of every name of a's
my $HIDDEN = '<insufficient privilege>';

# Collects everything that a session receives, also between two statements.
my @heard;
local $SIG{__WARN__} = sub { $_[0] =~ /^(?:DEBUG|LOG|INFO|NOTICE|WARNING): / ? push @heard,
    $_[0] : print {*STDERR} $_[0] };

sub hear ($session, $result) {
    my $text = join "\n", map { !defined $_ ? () : ref $_ ? explain($_) : $_ } @{$result}{qw(message
        detail hint context schema constraint)},
        @{ $result->{warnings} // [] }, $result->{rows} // [];
    push @heard, $text;
    return $result;
}

sub ask ($session, @call) { return hear($session, $session->query(@call)) }

# The session has received nothing of the secret since the last check.
sub learnt_nothing ($what) {
    cmp_ok(scalar @heard, '>', 0, "$what: something was asked");
    my @told = grep { /$SECRET/ } @heard;
    is_deeply(\@told, [], "$what: and the secret not told");
    @heard = ();
    return;
}

my @VIEWS = map { "SELECT * FROM advisory.$_" } qw(activity locks waits wait_tree() stats leaks
    directory known_keys settings);

my $owner = as('a');
my $stranger = as('b');
my ($m, $s) = (as('m'), as('s'));
# Everything that the server can send to clients.
$stranger->run('SELECT advisory.key(1::text)', 'SET client_min_messages = debug5',
    'SET advisory_ext.leak_after = 0');
$_->run('SELECT advisory.key(1::text)', 'SET advisory_ext.leak_after = 0') for $m, $s, $owner;

# ---- Views ---------------------------------------------------------------------------------------

my $waiter = as('a');
$owner->run("SELECT advisory.lock('$SECRET', '$SECRET-1')",
    "SELECT advisory.lock_key(-5, label => '$SECRET label')");
$owner->run('BEGIN', "SELECT advisory.xact_lock_shared('$SECRET', '$SECRET-2')", 'COMMIT', 'BEGIN',
    "SELECT advisory.xact_lock('$SECRET', '$SECRET-2')");
{
    my $prepares = as('a');
    $prepares->run('BEGIN', "SELECT advisory.xact_lock('$SECRET', '$SECRET-prepared')",
        "PREPARE TRANSACTION 'advisory_privileges'");
}
waits($admin, $waiter, "SELECT advisory.lock('$SECRET', '$SECRET-1')");

ask($stranger, $_) for @VIEWS;
learnt_nothing('views');
$stranger->shows('SELECT DISTINCT namespace, name FROM advisory.locks
        WHERE database = current_database()', "$HIDDEN|$HIDDEN",
        'locks says that there are names, and hides them');
is_deeply($stranger->rows('SELECT DISTINCT lock FROM advisory.activity ORDER BY lock'),
    $admin->rows('SELECT DISTINCT key::text FROM advisory.locks ORDER BY 1'),
    'activity shows the keys in their place');
$stranger->shows('SELECT DISTINCT namespace, name FROM advisory.waits', "$HIDDEN|$HIDDEN",
    'so does waits');
like($stranger->value('SELECT * FROM advisory.wait_tree() LIMIT 1'),
    qr/holds ${\$admin->value("SELECT advisory.key('$SECRET', '$SECRET-1')")} exclusive$/,
    'and so does wait_tree()');
$stranger->shows('SELECT DISTINCT namespace, name FROM advisory.stats', "$HIDDEN|$HIDDEN",
    'so does stats');
$stranger->shows('SELECT * FROM advisory.leaks', [], 'leaks shows none');
$stranger->shows('SELECT count(*) FROM advisory.locks WHERE acquired_at IS NOT NULL', 3,
    'the times are for everybody, as the sessions are');
$stranger->shows('SELECT count(*) FROM advisory.locks WHERE state IS NOT NULL OR query <> ?
    OR client_addr IS NOT NULL', 0, 'states and queries are not', $HIDDEN);
$stranger->shows("SELECT DISTINCT application_name FROM advisory.$_ WHERE pid <> 0", 'a',
    "application names are, in $_ as in pg_stat_activity") for qw(locks waits);

for my $who ([ 'a itself, in another session', as('a') ], [ 'a member of a', $m ],
    [ 'a member of pg_read_all_stats', $s ], [ 'a superuser', session() ]) {
    my ($what, $session) = @$who;
    $session->run('SELECT advisory.key(1::text)', 'SET advisory_ext.leak_after = 0');
    $session->shows(q(SELECT DISTINCT namespace, name FROM advisory.locks
            WHERE pid IS NOT NULL AND database = current_database() ORDER BY name),
            [ "NULL|$SECRET label", "$SECRET|$SECRET-1", "$SECRET|$SECRET-2" ],
            "$what sees them: locks");
    is($session->value("SELECT string_agg(DISTINCT lock, ' ' ORDER BY lock) FROM advisory.activity
            WHERE pid IS NOT NULL"), qq("$SECRET label" $SECRET/$SECRET-1 $SECRET/$SECRET-2),
        "$what: activity");
    $session->shows('SELECT DISTINCT namespace, name FROM advisory.waits', "$SECRET|$SECRET-1",
        "$what: waits");
    like($session->value('SELECT * FROM advisory.wait_tree() LIMIT 1'),
        qr{holds $SECRET/$SECRET-1 exclusive}, "$what: wait_tree()");
    $session->shows("SELECT string_agg(name, ' ' ORDER BY name) FROM advisory.stats",
        "$SECRET label $SECRET-1 $SECRET-2 $SECRET-prepared", "$what: stats");
    $session->shows("SELECT name FROM advisory.locks WHERE gid = 'advisory_privileges'",
        "$SECRET-prepared", "$what: a prepared transaction's");
}
$owner->run('COMMIT');
for my $who ([ 'a member of a', $m ], [ 'a member of pg_read_all_stats', $s ]) {
    $who->[1]->shows("SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM advisory.leaks",
        "$SECRET label $SECRET-1", "$who->[0]: leaks");
}

# ---- The same key by number ----------------------------------------------------------------------

my $key = $admin->value("SELECT advisory.key('$SECRET', '$SECRET-1')");
my $free = $admin->value("SELECT advisory.key('$SECRET', '$SECRET-2')");
for my $known ($key, $free, -5) {
    ask($stranger, "SELECT advisory.try_lock_key($known)");
    ask($stranger, "SELECT advisory.try_lock_key($known, '10ms')");
    ask($stranger, "SELECT advisory.lock_key($known, '10ms')");
    ask($stranger, "SELECT advisory.lock_key($known, '0')");
    ask($stranger, "SELECT pg_try_advisory_lock($known)");
    ask($stranger, "SELECT * FROM advisory.holders_key($known)");
    ask($stranger, "SELECT advisory.hold_count('x', 'y'), advisory.holds_key($known),
        advisory.is_locked_key($known)");
    ask($stranger, $_) for @VIEWS;
    ask($stranger, "SELECT advisory.unlock_key($known)") for 1 .. 3;
    ask($stranger, "SELECT advisory.unlock_shared_key($known)");
    ask($stranger, "SELECT advisory.terminate_holder('x', 'y', " . $owner->pid . ')');
}
$stranger->run('SELECT pg_advisory_unlock_all()');
learnt_nothing('keys by number');

# A session with a label of its own learns that there is another name, but not which.
my $warned = ask($stranger, "SELECT advisory.try_lock_key($free, label => 'mine')");
like("@{ $warned->{warnings} }",
    qr/"mine" also has another name.*the key of a name that the current user may not see/s,
    'a label for a key that has a name');
ask($stranger, $_) for @VIEWS;
{
    # The same for other sessions of its role, and while one of them waits for it under a label.
    my $again = as('b');
    waits($admin, $again, "SELECT advisory.lock_key($free, label => 'mine')");
    ask($stranger, $_) for @VIEWS;
    $stranger->run('SELECT pg_advisory_unlock_all()');
    hear($again, $again->finish);
    ask($stranger, $_) for @VIEWS;
}
ask($stranger, "SELECT advisory.unlock_key($free)");
ask($stranger, $_) for @VIEWS;
learnt_nothing('a label for it');
$warned = ask($stranger, "SELECT advisory.try_lock_key(-5, label => 'mine too')");
like("@{ $warned->{warnings} }", qr/the key of a name that the current user may not see/,
    'a label for a key that has a label');
ask($stranger, $_) for @VIEWS;
learnt_nothing('another label');
like($m->warned("SELECT advisory.try_lock_key($free, label => 'mine')"),
    qr{is also the key of "$SECRET/$SECRET-2"}, 'a member of a is told');
$m->run('SELECT pg_advisory_unlock_all()');

# ---- Errors that involve others ------------------------------------------------------------------

# A deadlock of a's lock by name and b's by number, from both sides.
$waiter->disconnect;
$owner->run('SELECT pg_advisory_unlock_all()', "SELECT advisory.lock('$SECRET', '$SECRET-1')");
$stranger->run("SELECT advisory.lock('b', 'own')");
$admin->run("ALTER ROLE $role{a} SET deadlock_timeout = '1h'");
{
    my $patient = as('a');
    $patient->run("SELECT advisory.lock('$SECRET', '$SECRET-3')");
    my $third = $admin->value("SELECT advisory.key('$SECRET', '$SECRET-3')");
    # a waits for ever, so it is b whose wait finds the deadlock.
    waits($admin, $patient, "SELECT advisory.lock('b', 'own')");
    my $deadlock = ask($stranger, "SELECT advisory.lock_key($third)");
    is($deadlock->{state}, '40P01', 'a deadlock');
    like($deadlock->{detail}, qr{waits for ExclusiveLock on advisory lock \[[\d,]+\]; blocked},
        'its detail has the number of the one');
    like($deadlock->{detail}, qr{\] "b/own"; blocked}, 'and the name of the other');
    like($deadlock->{context}, qr{while waiting for advisory lock "$third"}, 'its context the key');
    ask($stranger, $_) for @VIEWS;
    learnt_nothing('a deadlock');
    $stranger->run('SELECT pg_advisory_unlock_all()');
    $patient->returns(1, 'the other goes on');

    # The same for a role with the privilege.
    $m->run("SELECT advisory.lock('b', 'third')");
    waits($admin, $patient, "SELECT advisory.lock('b', 'third')");
    $deadlock = $m->query("SELECT advisory.lock_key($third)");
    like($deadlock->{detail}, qr{\] "$SECRET/$SECRET-3"; blocked},
        'a member of a has both names in the detail of a deadlock');
    like($deadlock->{context}, qr{"$SECRET/$SECRET-3"}, 'and in its context');
    $m->run('SELECT pg_advisory_unlock_all()');
    $patient->finish;
}

# Messages about locks in the server's log have the name that the session itself knows.
$admin->run("ALTER ROLE $role{$_} SET advisory_ext.log_wait = 0",
    "ALTER ROLE $role{$_} SET advisory_ext.log_hold = 0") for qw(a b);
{
    my ($logged_a, $logged_b) = (as('a'), as('b'));
    $logged_b->run('SELECT advisory.key(1::text)', 'SET client_min_messages = debug5');
    $logged_a->run("SELECT advisory.lock('$SECRET', '$SECRET-4')");
    my $fourth = $admin->value("SELECT advisory.key('$SECRET', '$SECRET-4')");
    my $log = logged(sub {
        ask($logged_b, "SELECT advisory.try_lock_key($fourth, '10ms')");
        waits($admin, $logged_b, "SELECT advisory.lock_key($fourth)");
        $logged_a->run("SELECT advisory.unlock('$SECRET', '$SECRET-4')");
        hear($logged_b, $logged_b->finish);
        ask($logged_b, "SELECT advisory.unlock_key($fourth)");
        ask($logged_b, "SELECT advisory.try_xact_lock('b', 'own')");
    });
    my $of_b = join '', map { "$_\n" } grep { /$role{b}\@/ } split /\n/, $log;
    like($of_b, qr{session waited for advisory lock "$fourth" in exclusive mode},
        'the log of a wait has the key');
    like($of_b, qr{session held advisory lock "$fourth"}, 'so has that of a hold');
    like($of_b, qr{session held advisory lock "b/own"}, 'what is named is logged by name');
    unlike($of_b, qr{$SECRET}, 'but not what others have named');
    like($log, qr{$role{a}\@.*session held advisory lock "$SECRET/$SECRET-4"},
        'they do, in their own lines');
    is_deeply([ grep { /session (?:waited|held)/ } @heard ], [],
        'clients are not told what is logged');
    learnt_nothing('logs');
    $logged_b->run('SET client_min_messages = notice');
}

# ---- What is b's own -----------------------------------------------------------------------------

my $b2 = as('b');
$stranger->run("SELECT advisory.lock('b', 'own')",
    "SELECT advisory.lock_key(77, label => 'b label')");
$b2->shows('SELECT namespace, name FROM advisory.locks WHERE pid = ? ORDER BY name',
    [ 'NULL|b label', 'b|own' ], 'own names come back from another session: locks', $stranger->pid);
$b2->shows(q(SELECT lock FROM advisory.activity WHERE pid = ? ORDER BY lock),
    [ '"b label"', 'b/own' ], 'activity', $stranger->pid);
$b2->shows(q(SELECT count(*) FROM advisory.stats WHERE namespace = 'b' AND name = 'own'),
    1, 'stats');
$b2->run('SET advisory_ext.leak_after = 0');
$b2->shows(q(SELECT string_agg(name, ' ' ORDER BY name) FROM advisory.leaks WHERE pid = ?),
    'b label own', 'leaks', $stranger->pid);

# A name that both have given: each sees it in its own sessions, and not that the other holds it by
# that name.
$owner->run("SELECT advisory.lock_shared('common', '$SECRET-5')");
is($b2->value('SELECT string_agg(DISTINCT name, ?) FROM advisory.locks WHERE pid = ?', ' ',
        $owner->pid), $HIDDEN, 'a name of a: hidden');
$stranger->run("SELECT advisory.lock_shared('common', '$SECRET-5')");
$b2->shows(q(SELECT count(*) FROM advisory.locks WHERE pid = ? AND namespace = 'common'), 1,
    'given by b, too: b sees it in its own session', $stranger->pid);
$b2->shows(q(SELECT count(*) FROM advisory.locks WHERE pid = ? AND namespace = 'common'), 0,
    'but not in that of a', $owner->pid);
$s->shows(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'common'), 2,
    'who may see both sees both');

# A role that is no longer a member no longer sees names; after SET ROLE the new role's privileges
# count.
$admin->run("REVOKE $role{a} FROM $role{m}");
$m->shows(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'common'), 0,
    'no member any more: hidden');
$admin->run("SET ROLE $role{b}");
$admin->shows(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'common'), 1,
    'a superuser who has set the role b sees what b sees');
$admin->shows(qq(SELECT count(*) FROM advisory.stats WHERE namespace = '$SECRET'), 0,
    'in stats too');
$admin->run('RESET ROLE');

$stranger->run('SET client_min_messages = notice');

done_testing();
