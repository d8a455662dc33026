#!/usr/bin/env perl
# A name is stored as long as another name in the table is not in use: in a table with rows of sums, in one that was made
# smaller, beside names in use, and beside locks that nobody has pinned. And one role cannot keep the names of others out. It
# takes servers of its own for max_names, and sessions of several roles.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

my ($server, $look);

# A new server, whose table has room for so many names.
sub serve {
    my ($max_names, @settings) = @_;
    $server->stop if $server;
    $server = own_server("advisory_ext.max_names=$max_names", @settings);
    $look   = there()->run('CREATE EXTENSION advisory_ext');
    return;
}
sub there { return session(server => $server, @_)->run('SET advisory_ext.warn_no_transaction = off') }

sub directory { return $look->value("SELECT $_[0] FROM advisory.directory") }

# Take and release locks with new names, one after the other.
sub pass_by {
    my ($session, $namespace, $first, $last) = @_;
    return $session->run(qq(DO \$\$ BEGIN
        FOR i IN $first..$last LOOP
            PERFORM advisory.lock('$namespace', i), advisory.unlock('$namespace', i);
        END LOOP;
    END \$\$));
}

# How many locks of a namespace a session holds, and how many of them have a name in another session.
sub held_and_named {
    my ($session, $namespace) = @_;
    return $look->rows(q(SELECT count(*), count(*) FILTER (WHERE namespace = $1) FROM advisory.locks WHERE pid = $2), $namespace, $session->pid)->[0];
}

# ---- A table that is full, but has names that are not in use -----------------------------------------------------------

serve(10_000, 'max_locks_per_transaction=1024');
my $worker = there();
pass_by($worker, 'many', 1, 10_000);
# The lock of each fifth name is held for a while.
$worker->run(q(SELECT count(advisory.lock('many', i)) FROM generate_series(1, 10000, 5) AS i), q(SELECT advisory.unlock_all('many')));
pass_by($worker, 'many', 10_001, 40_700);
is_deeply($look->rows('SELECT names, evicted, not_stored FROM advisory.directory'), [ [ 10_000, 30_700, 0 ] ], 'each of 30,700 new names evicts another one');

pass_by($worker, "namespace $_", 1, 1) for 1 .. 300;
pass_by($worker, 'flood', 1, 30_000);
cmp_ok($look->value(q(SELECT count(*) FROM advisory.stats WHERE name = '<evicted>')), '>=', 256, 'with 256 rows of sums, or more');
is(directory('not_stored'), 0, '... too');

# ---- The table is made smaller while the server runs -------------------------------------------------------------------

$look->run('ALTER SYSTEM SET advisory_ext.max_names = 50', 'SELECT pg_reload_conf()');
for my $session ($look, $worker) {
    wait_until('the session has the setting', sub { $session->value(q(SELECT current_setting('advisory_ext.max_names'))) == 50 });
}
pass_by($worker, 'smaller', 1, 100);
is(directory('not_stored'), 0, 'in a table that is now too large, each new name is stored at once');
my $names = directory('names');
cmp_ok($names, '<', 10_000, '... and the table shrinks');
cmp_ok($names, '>', 8_500, '... by a few names each time');
pass_by($worker, 'smaller', 101, 2_000);
is_deeply($look->rows('SELECT names, not_stored FROM advisory.directory'), [ [ 50, 0 ] ], '... to its new size');

# ---- Names in use, and locks that nobody has pinned --------------------------------------------------------------------

serve(200, 'max_prepared_transactions=10');
$worker = there();
pass_by($worker, 'known', 1, 200);
# Names that were not in use, and are now: 60 by a session, 40 by the built-in function, 20 by a prepared transaction.
$worker->run(q(SELECT count(advisory.lock('known', i)) FROM generate_series(1, 60) AS i));
my $native = there()->run(q(SELECT count(pg_advisory_lock(advisory.key('known', i))) FROM generate_series(61, 100) AS i));
there()->run('BEGIN', q(SELECT count(advisory.xact_lock('known', i)) FROM generate_series(101, 120) AS i), q(PREPARE TRANSACTION 'names_room'));
my $passer = there();
pass_by($passer, 'passing', 1, 1_000);
is(directory('not_stored'), 0, 'beside them each new name is stored');
is_deeply($look->rows(q(SELECT count(*), count(DISTINCT name) FROM advisory.locks WHERE namespace = 'known')), [ [ 120, 120 ] ], '... and theirs stay');
$look->run(q(ROLLBACK PREPARED 'names_room'));
$worker->run('SELECT pg_advisory_unlock_all()');
$native->run('SELECT pg_advisory_unlock_all()');
pass_by($passer, 'passing', 1_001, 1_400);
is($look->value(q(SELECT count(key) FROM advisory.stats WHERE namespace = 'known')), 0, 'when they are over, theirs make room');
is(directory('not_stored'), 0, '... and each new name is stored');

# All but one name are in use, of two roles. That one makes room again and again.
$look->run('CREATE ROLE names_room_other LOGIN');
my $other = there(role => 'names_room_other');
$worker->run(q(SELECT count(advisory.lock('held', i)) FROM generate_series(1, 149) AS i));
$other->run(q(SELECT count(advisory.lock('held too', i)) FROM generate_series(1, 50) AS i));
pass_by($passer, 'last', 1, 300);
is_deeply($look->rows('SELECT names, not_stored FROM advisory.directory'), [ [ 200, 0 ] ], 'one name that is not in use is enough');
is_deeply([ held_and_named($worker, 'held'), held_and_named($other, 'held too') ], [ [ 149, 149 ], [ 50, 50 ] ], '... for those that others hold stay');
$_->run('SELECT pg_advisory_unlock_all()') for $worker, $other;

# ---- Many sessions at once ---------------------------------------------------------------------------------------------

# Names come, go, come back and are shared by sessions, some of which are killed. No entry of the table is lost by that: in the
# end all of them can be evicted.
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
    open my $bench, '-|', "env @settings $ENV{PG_BINDIR}/pgbench -n -M prepared -c 8 -j 2 -t 2000 -f $script postgres 2>&1" or die "pgbench: $!\n";
    wait_until('they are at work', sub { directory('evicted') > 1000 });
    $look->run(q(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY pid LIMIT 2));
    my $said = join '', <$bench>;
    close $bench;
    unlink $script;
    wait_until('they are gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench')) });
    cmp_ok(directory('evicted'), '>', 5_000, 'many sessions at once: names are evicted') or diag $said;
    is(directory('not_stored'), 0, '... and each new one is stored');
    pass_by($look, 'after', 1, 220);
    is($look->value(q(SELECT count(key) FROM advisory.stats WHERE namespace = 'after')), 100, '... and in the end all entries can be evicted');
    is(directory('not_stored'), 0, '... for the next ones');
}

# ---- One role beside others --------------------------------------------------------------------------------------------

serve(10_000, 'max_locks_per_transaction=1024');
$look->run('CREATE ROLE names_room_hog LOGIN', 'CREATE ROLE names_room_monitor LOGIN');
my @hogs = map { there(role => 'names_room_hog') } 1 .. 2;

# The locks are taken with new names, with names that are known already, and by two sessions.
for my $case (
    [ 'new names',                    sub { $hogs[0]->run(q(SELECT count(advisory.lock('hog', i)) FROM generate_series(1, 9990) AS i)) } ],
    [ 'names that are known already', sub { $hogs[0]->run(q(SELECT count(advisory.lock('hog', i)) FROM generate_series(1, 9990) AS i)) } ],
    [ 'two sessions',                 sub { $hogs[$_]->run("SELECT count(advisory.lock('hog $_', i)) FROM generate_series(1, 6000) AS i") for 0, 1 } ],
) {
    my ($what, $take) = @$case;
    $take->();
    my $monitor = there(role => 'names_room_monitor')->run(q(SELECT count(advisory.lock('monitor', i)) FROM generate_series(1, 100) AS i));
    is_deeply(held_and_named($monitor, 'monitor'), [ 100, 100 ], "a role with nearly as many locks as there is room for names, $what: others have names");
    my $named = $look->value(q(SELECT count(*) FROM advisory.locks WHERE namespace LIKE 'hog%'));
    cmp_ok($named, '>=', 7_500, '... and so has the role, for three quarters of the table');
    cmp_ok($named, '<=', 7_516, '... but not for more');
    $hogs[0]->run(q(SELECT advisory.try_lock('hog beyond', 1)));
    is_deeply($hogs[0]->rows(q(SELECT name FROM advisory.locks WHERE namespace = 'hog beyond')), [ ['1'] ], '... though its session knows the others');
    $_->run('SELECT pg_advisory_unlock_all()') for @hogs, $monitor;
    my $before = directory('not_stored');
    pass_by($hogs[0], 'hog again', 1, 10);
    is(directory('not_stored'), $before, 'when it has released them it has room again');
}

done_testing();
