#!/usr/bin/env perl
# Named locks while the server's lock table is full and no byte of shared memory is left, when
# nobody has used the extension's shared memory yet: locks fail where the built-ins fail and succeed
# where they do, the views answer, and one NOTICE says that names are not shared (from 17 on they
# are). A shared server must not suffer that.
use AdvisoryTest;

use constant { MORE_THAN_FITS => 1_000_000, SERVERS => 8, NAMES => 20 };

# Each byte of this setting changes the memory that is left by a few dozen bytes.
my $query_size = 1024;
my ($server, @hogs, $look, $t, $other, $fresh);

sub spare {
    return $look->value('SELECT coalesce(sum(size), 0) FROM pg_shmem_allocations
        WHERE name IS NULL');
}

# A server with a full lock table, and sessions on it, since a new one could not connect.
sub fill_a_server {
    my @settings = @_;
    $server = own_server('max_locks_per_transaction=10', 'max_connections=20',
        'max_prepared_transactions=2',
        "track_activity_query_size=$query_size", @settings);
    $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
    ($t, $other, $fresh, @hogs) = map { session(server => $server) } 1 .. 5;
    # Look up what every query needs. The views are read for the first time when the table is full.
    $_->run('SELECT relname FROM pg_class') for $t, $other, $look;
    # Shared locks, so that the second session uses up the entries for holders of locks that exist
    # already.
    for my $hog (@hogs) {
        $hog->fails('SELECT count(pg_advisory_lock_shared(i)) FROM generate_series(1, '
            . MORE_THAN_FITS . ') AS i', '53200',
            "the lock table is full (query size $query_size)");
    }
    return spare();
}

# The result of a statement.
sub outcome ($session, $statement) {
    my $result = $session->query($statement);
    return $result->{state} // $result->{value};
}

sub is_as_built_in ($what) {
    my (@ours, @theirs);
    for my $i (1 .. NAMES) {
        push @theirs, outcome($t, "SELECT pg_try_advisory_lock(advisory.key('full', $i))");
        $t->run('SELECT pg_advisory_unlock_all()');
        push @ours, outcome($t, "SELECT advisory.try_lock('full', $i)");
        $t->run('SELECT pg_advisory_unlock_all()');
    }
    is_deeply(\@ours, \@theirs, "$what: a named lock does what the built-in does");
    return @theirs;
}

# One lock less. Either of the two sessions may have taken it.
sub free_key ($key) {
    $_->run("SELECT pg_advisory_unlock_shared($key)") for @hogs;
    return;
}

sub locks_of ($session) {
    return $look->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?",
        $session->pid);
}

my $NOTICE = qr/^NOTICE: +names of advisory locks are not shared with other sessions for now\b/;

# Guarantees that do not depend on the free memory; only names may be missing.
sub locks_as_ever ($what) {
    is_deeply([ is_as_built_in("$what, full") ], [ ('53200') x NAMES ], "$what: which is to fail");
    for my $call (q(lock('full', 'a')), q(lock('full', 'a', '10s')),
        q(try_lock_shared('full', 'a')), q(xact_lock('full', 'a')),
        q(try_xact_lock('full', 'a', '1s')),
        q(lock_key(-1, label => 'a')), q(lock_all('full', '{a,b}')),
        q(try_xact_lock_all('full', '{a,b}')))
    {
        is(outcome($t, "SELECT advisory.$call"), '53200', "$what: $call");
    }
    is(outcome($t, "CALL advisory.await_lock('full', 'a')"), '53200', "$what: await_lock");
    is(outcome($t, "SELECT advisory.hold_count('full', 'a')"), 0, "$what: nothing is noted");
    is(locks_of($t), 0, "$what: nothing is held");

    for my $view (qw(activity locks waits stats leaks directory known_keys settings)) {
        $t->succeeds("SELECT * FROM advisory.$view", "$what: $view answers");
    }
    my $total = $look->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
    is($t->value('SELECT count(*) FROM advisory.locks'), $total, "$what: with every lock, locks");
    # Which counts the many locks of one session.
    is($t->value(q{SELECT sum(coalesce(substring(lock FROM '^\((\d+) locks\)$')::int, 1))
            FROM advisory.activity}), $total, "$what: with every lock, activity");
    $t->succeeds('SELECT * FROM advisory.wait_tree()', "$what: wait_tree() answers");

    # Room for one.
    free_key(7);
    is(outcome($t, "SELECT pg_try_advisory_lock(advisory.key('full', 'one'))"), 1,
        "$what: when one is released the built-in finds room");
    $t->run('SELECT pg_advisory_unlock_all()');
    is(outcome($t, "SELECT advisory.lock('full', 'one')"), 1, "$what: and so does a named lock");
    is(outcome($t, "SELECT advisory.lock('full', 'one')"), 1, "$what: twice");
    is(outcome($t, "SELECT advisory.hold_count('full', 'one')"), 2, "$what: as noted");
    is(outcome($t, "SELECT advisory.try_lock('full', 'two')"),
        outcome($t, 'SELECT pg_try_advisory_lock(-2)'),
        "$what: for another one there is as much room as for a built-in");
    is(outcome($t, "SELECT count(*) FROM advisory.activity WHERE lock = 'full/one'"), 1,
        "$what: who holds it sees its name");
    $t->run('SELECT pg_advisory_unlock_all()');
    is(locks_of($t), 0, "$what: all is given back");
    return;
}

sub locks_as_ever_afterwards ($what) {
    $_->run('SELECT pg_advisory_unlock_all()') for @hogs;
    is_deeply([ is_as_built_in("$what, released") ], [ (1) x NAMES ],
        "$what: released, there is room");
    is(outcome($t, "SELECT advisory.lock_all('full',
            ARRAY(SELECT generate_series(1, 20)::bigint))"), 1, "$what: for many");
    is(outcome($other, "SELECT advisory.try_lock('full', 20)"), 0,
        "$what: which exclude each other");
    is(outcome($t, "SELECT advisory.unlock_all('full')"), 20, "$what: and are released");
    is(outcome($other, "SELECT advisory.try_lock('full', 20)"), 1, "$what: for the other to take");
    $look->shows("SELECT count(*) FROM advisory.locks", 1, "$what: the views have just that");
    return;
}

sub names_are_shared ($what) {
    $look->shows('SELECT available, reason FROM advisory.directory', '1|NULL',
        "$what: names are shared");
    $t->run("SELECT advisory.lock('full', 'shared')");
    $look->shows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', 'full|shared',
        "$what: in another session", $t->pid);
    return;
}

# ---- With some bytes left, which the root of our memory is content with; or with a registry ------

my $left = fill_a_server();
my $has_registry = $look->value(q(SELECT current_setting('server_version_num')::int >= 170000));
if ($has_registry || $left >= 128) {
    my $what = $has_registry ? 'with a registry' : "with $left bytes";
    my $first = $fresh->fails("SELECT advisory.try_lock('full', 'first')", '53200',
        "$what: the first lock of all fails");
    is_deeply($first->{warnings}, [], "$what: and there is no notice");
    locks_as_ever($what);
    free_key(8);
    names_are_shared("$what, full");
    $t->run('SELECT pg_advisory_unlock_all()');
    locks_as_ever_afterwards($what);
}
undef @hogs;
$server->stop;

SKIP: {
    skip 'from 17 on the server has a registry for such memory', 1 if $has_registry;

    # ---- With nothing left -----------------------------------------------------------------------

    for (1 .. SERVERS) {
        last if $left == 0;
        # A byte more for each process, of which there are not quite fifty.
        $query_size += $left > 1024 ? int($left / 50) : 1;
        $left = fill_a_server();
    }
    is($left, 0, 'a server with nothing left is found') or skip 'there is none', 1;

    my $what = 'with nothing left';
    my $first = $fresh->fails("SELECT advisory.try_lock('full', 'first')", '53200',
        "$what: the first lock of all fails");
    is(scalar(@{ $first->{warnings} }), 1, "$what: with one notice");
    like($first->{warnings}[0], $NOTICE, "$what: that names are not shared");
    like($first->{warnings}[0],
        qr/^DETAIL: +The locks themselves are not affected.*^HINT: .*shared_preload_libraries/ms,
        "$what: and what to do");
    is_deeply($fresh->query("SELECT advisory.try_lock('full', 'first')")->{warnings}, [],
        "$what: it comes once a session");
    like($t->query('SELECT * FROM advisory.activity')->{warnings}[0] // '', $NOTICE,
        "$what: a view says so, too");
    locks_as_ever($what);
    $look->shows('SELECT available, names, reason LIKE ? FROM advisory.directory', '0|0|1',
        "$what: the directory says why", 'not enough shared memory%');
    locks_as_ever_afterwards($what);
    undef @hogs;
    $server->stop;

    # ---- Preloaded -------------------------------------------------------------------------------

    fill_a_server('shared_preload_libraries=advisory_ext');
    $look->shows(q(SELECT count(*) FROM pg_shmem_allocations WHERE name LIKE 'advisory_ext%'), 1,
        'preloaded: the memory is there before it is used');
    free_key(8);
    names_are_shared('preloaded, full');
}

done_testing();
