#!/usr/bin/env perl
# The portable edition in PGlite, which is PostgreSQL inside of a program in Node: it can be loaded
# there, twice, and names, keys, claims, jobs, tokens and leases are what they are elsewhere. But
# all clients of PGlite's socket server are one session, so locks never exclude there.
use AdvisoryTest;
use FindBin;
use Launch;
use Programs;

my $modules = node_modules("$FindBin::Bin/pglite/package.json");
plan skip_all => 'there is no Node with PGlite here' unless $modules;

create_database();
my $port = free_port();
my $program = launch({ NODE_PATH => $modules }, 'node', "$FindBin::Bin/pglite/server.js", $port);
$program->says(qr/listening on port (\d+)/);
my $pglite = { PGHOST => '127.0.0.1', PGPORT => $port, PGUSER => 'postgres' };
is(load_portable('postgres', 'postgres', $pglite), '', "it is loaded, run $_") for 1, 2;
my ($one, $two) = map { session(server => $pglite) } 1, 2;
diag $one->value('SELECT version()');
$one->shows('SELECT advisory.edition()', 'portable', 'it is the portable edition');

# ---- What is as elsewhere ------------------------------------------------------------------------

$one->shows(q(SELECT advisory.key('billing', 'invoice:42'), advisory.key('order', 42)),
    '1572001551135567388|' . session()->value(q(SELECT advisory.key('order', 42))),
    'names have the keys of the extension');
$one->run(q(INSERT INTO advisory.key_labels (key, label) VALUES (advisory.key('a', 'b'), 'a/b')));
$one->shows(q(SELECT advisory.lock('a', 'b'), advisory.holds('a', 'b')), '1|1', 'it locks');
$one->shows(q(SELECT namespace, name, mode, granted FROM advisory.locks), 'a|b|exclusive|1',
    '... views show the lock by its name');
$one->shows(q(SELECT pg_advisory_unlock(advisory.key('a', 'b')), advisory.is_locked('a', 'b')),
    '1|0', '... and it is that of the built-in functions');
$one->shows(q(SELECT advisory.acquire('s', 'a', 2), advisory.acquire('s', 'a', 2),
    advisory.try_acquire('s', 'a', 2)), '1|2|NULL', 'slots are counted');
$one->run(q(SELECT advisory.unlock_all('s', 'a'), advisory.release_many('s', 'a', '{1,2}')));
$two->shows(q(SELECT advisory.claim('c', 'a', '1 day') IS NULL), 0, 'a window can be claimed');
$one->shows(q(SELECT advisory.claim('c', 'a', '1 day') IS NULL), 1, '... once, by all clients');
$one->shows(q(CALL advisory.run('j', 'a', 'SELECT 1', once_per => '1 day')), $_,
    'a job runs once in its window') for 1, 0;

my $token = $one->value(q(SELECT token FROM advisory.lease('l', 'a', '1 hour')));
$two->shows(q(SELECT token FROM advisory.try_lease('l', 'a', '1 hour')), 'NULL',
    'a lease is a row, so it excludes other clients');
$two->shows("SELECT advisory.renew_lease('l', 'a', $token) > now(),
    advisory.check_lease('l', 'a', $token), advisory.end_lease('l', 'a', $token)", '1|1|1',
    '... by its token');
$one->run(q(SELECT advisory.lock('t', 'a')));
cmp_ok($one->value(q(SELECT advisory.token('t', 'a'))), '>', $token, 'and tokens grow');

# ---- What is not ---------------------------------------------------------------------------------

is($one->value('SELECT pg_backend_pid()'), $two->value('SELECT pg_backend_pid()'),
    'all clients are one session');
$_->shows(q(SELECT advisory.try_lock('a', 'b')), 1, 'so each gets the lock that the other has')
    for $one, $two;
$_->disconnect for $one, $two;
$program->stop;
done_testing();
