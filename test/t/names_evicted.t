#!/usr/bin/env perl
# A full name table: the least recently used names make room, names of locks that are held or
# awaited stay, what is evicted is counted, and the size can be changed while the server runs.
use AdvisoryTest;

my $server = own_server('advisory_ext.max_names=200');
sub there { return session(server => $server, @_) }

my $look = there()->run('CREATE EXTENSION advisory_ext',
    map { "CREATE ROLE $_ LOGIN" } qw(a b flood));
my $DIRECTORY = 'SELECT names, evicted, not_stored FROM advisory.directory';
sub names {
    return $look->value('SELECT count(key) FROM advisory.stats WHERE namespace = ?', $_[0]);
}

$look->shows($DIRECTORY, '0|0|0', 'an empty name table');

# The least recently used names go first. 200 names fill the table, every second one is used again,
# and 100 new names come.
my $root = there();
# One lock at a time, since one role does not get room for 200 names in use (names_room.t).
sub use_names ($session, $namespace, $which) {
    return $session->run("SELECT count(*) FILTER (WHERE advisory.try_lock('$namespace', i)
        AND advisory.unlock('$namespace', i)) FROM $which AS i");
}
use_names($root, 'lru', 'generate_series(1, 200)');
$look->shows($DIRECTORY, '200|0|0', 'a full one');
use_names($root,    'lru', 'generate_series(1, 100, 2)');
use_names(there(),  'lru', 'generate_series(101, 200, 2)');
use_names($root,    'new', 'generate_series(1, 100)');
$look->shows($DIRECTORY, '200|100|0', 'each new name evicts one');
is($look->value(q(SELECT string_agg(name, ' ' ORDER BY name::int) FROM advisory.stats
        WHERE namespace = 'lru' AND key IS NOT NULL)), join(' ', map { 2 * $_ - 1 } 1 .. 100),
    'of those that were not used again, by this session or by another one');
$look->shows(q(SELECT min(acquired), max(acquired) FROM advisory.stats
    WHERE namespace = 'lru' AND key IS NOT NULL), '2|2', 'which keep their statistics');
there()->shows(q(SELECT advisory.try_lock('first', 'call')), 1,
    'a session can begin with a name that evicts another one');

# A list of names, some of which the session knows. While it takes the locks of the others it
# forgets names, and has new ones in their place.
my $lister = there();
use_names($lister, 'list', 'generate_series(1, 250)');
$lister->run('BEGIN', q(SELECT advisory.try_xact_lock_all('list',
    ARRAY(SELECT generate_series(1, 600)::bigint))));
$lister->shows(q(SELECT count(*), count(*) FILTER (WHERE key = advisory.key(namespace, name))
    FROM advisory.locks WHERE pid = pg_backend_pid()), '600|600',
    'each lock of a list has its name');
$lister->run('ROLLBACK');
leave($look, $lister);

# A role that takes ever new names pushes out unused names of others, but none of a lock that is
# held.
my ($role_a, $role_b) = map { there(role => $_) } qw(a b);
use_names($role_a, 'a', 'generate_series(1, 50)');
$role_b->run(q(SELECT count(advisory.lock('b held', i)) FROM generate_series(1, 10) AS i));
$root->run(q(SELECT count(advisory.lock('root held', i)) FROM generate_series(1, 10) AS i));
my $flood = there(role => 'flood');
my $COUNTED = 'SELECT names + evicted + not_stored FROM advisory.directory';
my $before = $look->value($COUNTED);
$flood->shows(q(SELECT count(*) FILTER (WHERE advisory.try_lock('flood', i)
    AND advisory.unlock('flood', i)) FROM generate_series(1, 2000) AS i), 2000,
    'a flood of names, one after the other');
is_deeply([ map { names($_) } qw(a flood) ], [ 0, 180 ], 'the unused names of others make room');
is($look->value($COUNTED) - $before, 2000, 'what was evicted is counted');
my %kept = ('b held' => 10, 'root held' => 10);
my $others = sub ($what) {
    is_deeply({ map { $_ => names($_) } keys %kept }, \%kept,
        "$what: names of locks that others hold are there");
    $look->shows(q(SELECT count(*) FROM advisory.locks WHERE pid = ANY (?)
        AND namespace LIKE '% held'), 20, "$what: and are shown", [ $role_b->pid, $root->pid ]);
    $look->shows(q(SELECT sum(acquired), min(acquired), max(acquired) FROM advisory.stats
        WHERE namespace = ANY (?)), '20|1|1', "$what: with their statistics", [ keys %kept ]);
    return;
};
$others->('names');
$flood->shows(q(SELECT count(*) FILTER (WHERE advisory.lock('flood held', i))
    FROM generate_series(1, 500) AS i), 500, 'a flood of locks that are held');
$others->('locks');
$look->shows(q(SELECT count(*) FROM advisory.locks WHERE pid = ?), 500, 'which are all shown',
    $flood->pid);
is(names('flood held'), 150, 'those for which there was room by name: three quarters of the table');
cmp_ok($look->value('SELECT not_stored FROM advisory.directory'), '>=', 350,
    'the others without one: counted');
$flood->shows(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'flood held'), 500,
    'which the session itself knows');
$flood->shows(q(SELECT advisory.unlock_all('flood held')), 500, 'and releases by it');
$flood->shows(q(SELECT count(*) FILTER (WHERE advisory.lock_key(i, label => repeat('l', 1000) || i))
    FROM generate_series(1, 500) AS i), 500, 'a flood of long labels');
$flood->run('SELECT pg_advisory_unlock_all()');
$others->('labels');
$flood->shows(q(SELECT count(*) FILTER (WHERE advisory.lock_key(1, label => i::text))
    FROM generate_series(1, 500) AS i), 500, 'a flood of labels for one key, whose lock is held');
cmp_ok($look->value(q(SELECT count(*) FROM advisory.stats WHERE namespace IS NULL
        AND name ~ '^[0-9]+$')), '<=', 32, 'of which a key has a limited number');
$look->shows(q(SELECT name FROM advisory.locks WHERE pid = ?), '500', 'and the last one is shown',
    $flood->pid);
$flood->run('SELECT pg_advisory_unlock_all()');
$role_a->value(q(SELECT advisory.lock('a', 50)));
$look->shows(q(SELECT name FROM advisory.locks WHERE pid = ?), '50', 'the others go on',
    $role_a->pid);
$role_a->value(q(SELECT advisory.unlock('a', 50)));

# Names of locks that are awaited stay, too.
my $waiter = there(role => 'a');
waits($look, $waiter, q(SELECT advisory.lock('root held', 1)));
my ($names, $evicted, $not_stored) = @{ $look->rows($DIRECTORY)->[0] };
$root->shows(q(SELECT count(*) FILTER (WHERE advisory.try_xact_lock('superuser', i))
    FROM generate_series(1, 1000) AS i), 1000, 'a superuser floods it');
my ($names_now, $evicted_now, $not_stored_now) = @{ $look->rows($DIRECTORY)->[0] };
cmp_ok($names_now, '<=', 200, 'it is never more than full');
is($names_now + $evicted_now + $not_stored_now - $names - $evicted - $not_stored, 1000,
    'what was evicted, or found no room, is counted');
is_deeply([ map { names($_) } 'b held', 'root held' ], [ 10, 10 ], 'what is held stays');
$look->shows(q(SELECT namespace, name FROM advisory.locks WHERE NOT granted), 'root held|1',
    'and what is waited for');
$waiter->disconnect;

# More locks held than it has room for, by two roles.
$flood->run(q(SELECT count(advisory.lock('many', i)) FROM generate_series(1001, 1100) AS i));
$root->shows(q(SELECT count(*) FILTER (WHERE advisory.lock('many', i))
    FROM generate_series(1, 400) AS i), 400, 'more are held than there is room for');
$look->shows('SELECT count(*) FROM advisory.locks WHERE pid = ?', 410, 'the view shows them',
    $root->pid);
$look->shows('SELECT names FROM advisory.directory', 200, 'those for which there was room by name');
is($look->value(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'many' AND pid = ANY (?)),
        [ $root->pid, $flood->pid ]), names('many'), 'just these');
$flood->run('SELECT pg_advisory_unlock_all()');
$root->run('SELECT pg_advisory_unlock_all()');
$role_b->run('SELECT pg_advisory_unlock_all()');

# Its size can be changed while the server runs.
sub resize ($size) {
    $look->run("ALTER SYSTEM SET advisory_ext.max_names = $size", 'SELECT pg_reload_conf()');
    for my $session ($look, $root, $role_a) {
        wait_until('the session has the setting',
            sub { $session->value(q(SELECT current_setting('advisory_ext.max_names'))) == $size });
    }
    return;
}
resize(20);
use_names($root, 'small', 'generate_series(1, 100)');
cmp_ok($look->value('SELECT names FROM advisory.directory'), '<=', 20, 'made smaller, it shrinks');
resize(0);
$root->shows(q(SELECT advisory.lock('none', 1)), 1, 'with no room at all: locks');
$look->shows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', 'NULL|NULL',
    'without names', $root->pid);
resize(1000);
$root->run(q(SELECT advisory.lock('none', 1)));
$look->shows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', 'none|1',
    'made larger, names are stored again', $root->pid);

done_testing();
