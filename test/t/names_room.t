#!/usr/bin/env perl
# A name is stored as long as another name in the table is not in use: in a table with rows of sums,
# in one that was made smaller, beside names in use, and beside locks that nobody has pinned. And
# one role cannot keep the names of others out. It takes servers of its own for max_names, and
# sessions of several roles.
use AdvisoryTest;

my ($server, $look);

# A new server, whose table has room for so many names.
sub serve ($max_names, @settings) {
    $server->stop if $server;
    $server = own_server("advisory_ext.max_names=$max_names", @settings);
    $look   = there()->run('CREATE EXTENSION advisory_ext');
    return;
}

sub there {
    return session(server => $server, @_)->run('SET advisory_ext.warn_no_transaction = off');
}

sub directory { return $look->rows("SELECT $_[0] FROM advisory.directory")->[0] }

# Take and release locks with new names, one after the other.
sub pass_by ($session, $namespace, $first, $last) {
    return $session->run(qq(DO \$\$ BEGIN
        FOR i IN $first..$last LOOP
            PERFORM advisory.lock('$namespace', i), advisory.unlock('$namespace', i);
        END LOOP;
    END \$\$));
}

# Take so many locks and keep them.
sub hold ($session, $namespace, $count) {
    return $session->run(
        "SELECT count(advisory.lock('$namespace', i)) FROM generate_series(1, $count) AS i");
}

sub release { $_->run('SELECT pg_advisory_unlock_all()') for @_; return }

# How many names of a namespace another session sees at the locks of a session.
sub named ($session, $namespace) {
    return $look->value('SELECT count(*) FROM advisory.locks WHERE pid = ? AND namespace = ?',
        $session->pid, $namespace);
}

sub stored { return $look->value(
        'SELECT count(key) FROM advisory.stats WHERE namespace = ?', $_[0]) }

# ---- A table that is full, but has names that are not in use ------------------------------------

serve(10_000, 'max_locks_per_transaction=1024');
my $worker = there();
pass_by($worker, 'many', 1, 10_000);
# Some of them are used again.
hold($worker, 'many', 2_000);
release($worker);
pass_by($worker, 'many', 10_001, 40_700);
is_deeply(directory('names, evicted, not_stored'), [ 10_000, 30_700, 0 ],
    'each of 30,700 new names evicts another one');

pass_by($worker, "namespace $_", 1, 1) for 1 .. 300;
pass_by($worker, 'flood', 1, 30_000);
cmp_ok($look->value(q(SELECT count(*) FROM advisory.stats WHERE name = '<evicted>')), '>=', 256,
    'with 256 rows of sums, or more');
is_deeply(directory('not_stored'), [0], '... too');

# So many names that the hand does not get round at once, and all of them were used again.
serve(25_000);
$worker = there();
pass_by($worker, 'again', 1, 25_000) for 1 .. 2;
pass_by($worker, 'new',   1, 100);
is_deeply(directory('names, evicted, not_stored'), [ 25_000, 100, 0 ],
    'if all names were used lately, each new one evicts one of them');

serve(10_000);
$worker = there();
pass_by($worker, 'many', 1, 10_000);

# ---- The table is made smaller while the server runs --------------------------------------------

$look->run('ALTER SYSTEM SET advisory_ext.max_names = 50', 'SELECT pg_reload_conf()');
for my $session ($look, $worker) {
    wait_until('the session has the setting',
        sub { $session->value(q(SELECT current_setting('advisory_ext.max_names'))) == 50 });
}
pass_by($worker, 'smaller', 1, 100);
is_deeply(directory('not_stored, names < 10000, names > 8500'), [ 0, 1, 1 ],
    'a table that is now too large stores each new name, and shrinks by a few names each time');
pass_by($worker, 'smaller', 101, 2_000);
is_deeply(directory('not_stored, names'), [ 0, 50 ], '... to its new size');

# ---- Names in use, and locks that nobody has pinned ---------------------------------------------

serve(200, 'max_prepared_transactions=10');
$worker = there();
pass_by($worker, 'known', 1, 200);
# Names that were not in use, and are now: by a session, by the built-in function, and by a prepared
# transaction.
hold($worker, 'known', 60);
my $native = there()->run(
    q(SELECT pg_advisory_lock(advisory.key('known', i)) FROM generate_series(61, 100) AS i));
there()->run('BEGIN',
    q(SELECT advisory.xact_lock('known', i) FROM generate_series(101, 120) AS i),
    q(PREPARE TRANSACTION 'names_room'));
my $passer = there();
pass_by($passer, 'passing', 1, 1_000);
is_deeply(directory('not_stored'), [0], 'beside them each new name is stored');
$look->shows(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'known'), 120,
    '... and theirs stay');
$look->run(q(ROLLBACK PREPARED 'names_room'));
release($worker, $native);
pass_by($passer, 'passing', 1_001, 1_400);
is(stored('known'), 0, 'when they are over, theirs make room');
is_deeply(directory('not_stored'), [0], '... and each new name is stored');

# All but one name are in use, by two roles. That one makes room again and again.
$look->run('CREATE ROLE names_room_other LOGIN');
my $other = there(role => 'names_room_other');
hold($worker, 'held', 149);
hold($other,  'held too', 50);
pass_by($passer, 'last', 1, 300);
is_deeply(directory('names, not_stored'), [ 200, 0 ], 'one name that is not in use is enough');
is_deeply([ named($worker, 'held'), named($other, 'held too') ], [ 149, 50 ],
    '... for those that others hold stay');
release($worker, $other);

# ---- Many sessions at once ----------------------------------------------------------------------

# Names come, go, come back and are shared by sessions, some of which are ended. No entry of the
# table is lost by that: in the end all of them can be evicted.
serve(100);
{
    my $script = "$ENV{ADVISORY_EXT_TMP}/names_room.$$.sql";
    open my $file, '>', $script or die "$script: $!\n";
    print {$file} <<'SQL';
\set hot random(1, 20)
\set cold random(1, 100000)
BEGIN;
SELECT advisory.try_xact_lock_shared('hot', :hot), advisory.try_xact_lock('cold', :cold);
COMMIT;
SQL
    close $file;
    my @settings = map { "$_=$server->{$_}" } qw(PGHOST PGPORT PGUSER);
    my $pgbench = "$ENV{PG_BINDIR}/pgbench -n -M prepared -c 8 -j 2 -t 2000 -f $script postgres";
    open my $bench, '-|', "env @settings $pgbench 2>&1" or die "pgbench: $!\n";
    my $running = q(FROM pg_stat_activity WHERE application_name = 'pgbench');
    wait_until('they are at work', sub { directory('evicted')->[0] > 1_000 });
    $look->run("SELECT pg_terminate_backend(pid) $running ORDER BY pid LIMIT 2");
    my $said = join '', <$bench>;
    close $bench;
    unlink $script;
    wait_until('they are gone', sub { !$look->value("SELECT count(*) $running") });
    is_deeply(directory('evicted > 5000, not_stored'), [ 1, 0 ],
        'many sessions at once: names are evicted, and each new one is stored') or diag $said;
    pass_by($look, 'after', 1, 220);
    is(stored('after'), 100, '... and in the end all entries can be evicted');
    is_deeply(directory('not_stored'), [0], '... for the next ones');
}

# ---- One role beside others ---------------------------------------------------------------------

serve(10_000, 'max_locks_per_transaction=1024');
$look->run('CREATE ROLE names_room_hog LOGIN', 'CREATE ROLE names_room_monitor LOGIN');
my @hogs = map { there(role => 'names_room_hog') } 1 .. 2;
for my $case (
    [ 'with new names',        sub { hold($hogs[0], 'hog', 9_990) } ],
    [ 'with the same again',   sub { hold($hogs[0], 'hog', 9_990) } ],
    [ 'held by two sessions',  sub { hold($hogs[$_], "hog $_", 6_000) for 1, 0 } ],
) {
    my ($what, $take) = @$case;
    $take->();
    my $monitor = hold(there(role => 'names_room_monitor'), 'monitor', 100);
    is(named($monitor, 'monitor'), 100,
        "beside the many locks of a role, $what: others have names");
    my $names = $look->value(q(SELECT count(*) FROM advisory.locks WHERE namespace LIKE 'hog%'));
    # A session counts with up to 15 names more than it has.
    cmp_ok($names, '>=', 7_470, '... and so has the role, for three quarters of the table');
    cmp_ok($names, '<=', 7_500, '... but not for more');
    $hogs[0]->run(q(SELECT advisory.try_lock('hog beyond', 1)));
    $hogs[0]->shows(q(SELECT name FROM advisory.locks WHERE namespace = 'hog beyond'), '1',
        '... though its session knows the others');
    release(@hogs, $monitor);
    my $before = directory('not_stored');
    pass_by($hogs[0], 'hog again', 1, 10);
    is_deeply(directory('not_stored'), $before, 'when it has released them it has room again');
}

# Many sessions that take names in turns, each a few.
serve(1_000, 'max_connections=100');
$look->run('CREATE ROLE names_room_hog LOGIN', 'CREATE ROLE names_room_monitor LOGIN');
{
    my @hogs = map { there(role => 'names_room_hog') } 1 .. 30;
    hold($_, "hog $_->{pid}", 8) for @hogs;
    for my $i (9 .. 40) {
        $_->run("SELECT advisory.lock('hog $_->{pid}', $i)") for @hogs;
    }
    my $monitor = hold(there(role => 'names_room_monitor'), 'monitor', 100);
    is(named($monitor, 'monitor'), 100, 'beside 30 sessions of a role others have names');
    $look->shows(q(SELECT count(*) > 1000 - 250 - 30 * 15, count(*) <= 750 FROM advisory.locks
        WHERE namespace LIKE 'hog%'), '1|1', '... and so have they');
    leave($look, @hogs, $monitor);
}

# ---- Locks that nobody has pinned ---------------------------------------------------------------

serve(100, 'max_prepared_transactions=10');
{
    my $worker = there();
    for my $i (1 .. 4) {
        $worker->run('BEGIN', "SELECT advisory.xact_lock('prepared $i', n),
            advisory.xact_acquire('semaphore $i', n, 3) FROM generate_series(1, 25 / 2) AS n",
            "SELECT advisory.xact_lock('prepared $i', 0)", "PREPARE TRANSACTION 'p$i'");
    }
    $worker->run(q(SELECT advisory.lock('refused', 1)));
    is_deeply(directory('names, not_stored'), [ 100, 1 ], 'all names belong to such locks');
    $look->shows(q(SELECT count(*), count(name), count(DISTINCT name) FILTER (WHERE slot = 1)
        FROM advisory.locks WHERE gid IS NOT NULL), '100|100|12',
        '... which keep their names, slots too');
    $worker->run(q(COMMIT PREPARED 'p4'));
    pass_by($worker, 'stored', 1, 100);
    is_deeply(directory('not_stored'), [1], 'when one of them has ended, each name is stored');
    $worker->run("COMMIT PREPARED 'p$_'") for 1 .. 3;
}

# ---- Labels -------------------------------------------------------------------------------------

{
    my @sessions = map { there() } 1 .. 33;
    my $key = q(advisory.key('billing', 'invoice:42'));
    $sessions[$_]->run("SELECT advisory.lock_shared_key($key, '0', 'evil/label$_')") for 1 .. 32;
    $sessions[0]->run(q(SELECT advisory.lock_shared('billing', 'invoice:42')));
    $look->shows(q(SELECT namespace, name FROM advisory.locks WHERE pid = ?), 'billing|invoice:42',
        'a name finds a place beside any number of labels of its key', $sessions[0]->pid);
}

done_testing();
