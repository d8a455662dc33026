#!/usr/bin/env perl
# DROP EXTENSION while locks, slots and leases are held and waited for, and CREATE EXTENSION again
# in the same life of the server: nobody who waits is lost, what is held stays held and gets its
# name back, and another database does not notice.
use AdvisoryTest;

my $beside = create_database(name => "advisory_beside_$$", aside => 1);
create_database();
my $other = session(database => $beside, application => 'other');
$other->run(q(SELECT advisory.lock('life', 'a')), q(SELECT advisory.acquire('life', 's', 1)));

my ($holder, $leases, $admin, $job, $wants_lock, $wants_slot, $wants_lease) =
    map { session(application => $_) }
    qw(holder leases admin job wants_lock wants_slot wants_lease);
my $key = $holder->value(q(SELECT advisory.key('life', 'a')));
$holder->run(q(SELECT advisory.lock('life', 'a')), q(SELECT advisory.acquire('life', 's', 1)));

# How many locks a session holds and how many it waits for, as PostgreSQL sees it.
sub native ($session) {
    return $admin->rows(
        q(SELECT count(*) FILTER (WHERE granted), count(*) FILTER (WHERE NOT granted) FROM pg_locks
        WHERE locktype = 'advisory' AND pid = ? AND database = (SELECT oid FROM pg_database
        WHERE datname = current_database())), $session->pid)->[0];
}

my $held = native($holder);
is_deeply($held, [ 2, 0 ], 'a lock and a slot are held');
$leases->run(q(SELECT advisory.lease('life', 'leased', '1 hour')));
$admin->run('SELECT pg_advisory_lock(4711)');
$job->start(
    q(CALL advisory.run('life', 'job', 'SELECT pg_advisory_lock(4711)', if_busy => 'error')));
$wants_lock->start(q(SELECT advisory.lock('life', 'a')));
$wants_slot->start(q(SELECT advisory.acquire('life', 's', 1)));
waits($admin, $_) for $job, $wants_lock;
$admin->wait_until('the slot is waited for',
    q(SELECT waiting FROM advisory.semaphores WHERE name = 's'));

# ---- It waits for nobody who waits ---------------------------------------------------------------

$wants_lease->start(q(CALL advisory.await_lease('life', 'leased', '1 hour', '30s')));
$admin->wait_until('the lease is waited for',
    q(SELECT count(*) FROM advisory.waits WHERE name = 'leased'));
# (Before it sleeps it has looked into the table.)
my $no_table = q(SELECT count(*) = 0 FROM pg_locks WHERE pid = ? AND locktype = 'relation');
ok($admin->wait_until('it sleeps', $no_table, $wants_lease->pid),
    'who waits for a lease has locked no table');
$admin->run(q(SET lock_timeout = '5s'));

$admin->run('DROP EXTENSION advisory_ext');
pass('DROP EXTENSION, while a lock and a slot are held and waited for, and a job runs');
is_deeply(native($holder), $held, 'what is held stays held');
$holder->fails(q(SELECT advisory.unlock('life', 'a')), '3F000',
    'a function that has gone cannot be called');
ok(!$wants_lock->is_done, 'who waits for the lock goes on waiting');
$holder->run("SELECT pg_advisory_unlock($key)");
$wants_lock->returns(1, '... and gets it');
$wants_lock->shows("SELECT pg_advisory_unlock($key)", 1, '... and can give it back');
$admin->run('SELECT pg_advisory_unlock(4711)');
$job->returns(1, 'the job ends well');
is_deeply(native($job), [ 1, 0 ], '... and keeps only what its command took');
ok(!$wants_slot->is_done, 'who waits for the slot goes on waiting');
like($wants_lease->finish(15)->{state}, qr/^(3F000|42P01)$/,
    'who waits for a lease finds that its table has gone');

# ---- And again, in the same life of the server ---------------------------------------------------

$admin->run('CREATE EXTENSION advisory_ext');
$admin->shows(q(SELECT namespace, name, kind FROM advisory.locks WHERE pid = ? ORDER BY kind),
    'life|s|semaphore', 'created again, it shows what is held, by name', $holder->pid);
$admin->shows(q(SELECT waiting FROM advisory.semaphores WHERE name = 's'), 1, 'and who waits');
$admin->shows(q(SELECT count(*) FROM advisory.leases), 0, 'leases have gone with their table');
$holder->shows(q(SELECT advisory.release('life', 's')), 1, 'the holder gives its slot back');
$wants_slot->returns(1, '... and who waits for it gets it');
$wants_slot->shows(q(SELECT advisory.release('life', 's')), 1, '... and gives it back');
cmp_ok($leases->value(q(SELECT (advisory.lease('life', 'leased', '1 hour')).token)), '>', 0,
    'a session with plans for the tables that have gone makes new ones');
cmp_ok($holder->value(q(SELECT advisory.lock('life', 'b'), advisory.token('life', 'b'))), '>', 0,
    'and so for tokens');

# ---- Another database ----------------------------------------------------------------------------

$other->shows(q(SELECT name, kind, granted FROM advisory.locks
    WHERE pid = pg_backend_pid() ORDER BY kind), [ 'a|lock|1', 's|semaphore|1' ],
    'in another database, what was held before is held, and shown');
$other->shows(q(SELECT advisory.unlock('life', 'a') AND advisory.release('life', 's')), 1,
    'and is given back');

# ---- A DROP that is undone -----------------------------------------------------------------------

$holder->run(q(SELECT advisory.lock('life', 'c')));
$admin->run('BEGIN', 'DROP EXTENSION advisory_ext', 'ROLLBACK');
$holder->shows(q(SELECT advisory.unlock('life', 'c')), 1,
    'a DROP that is rolled back changes nothing');
$_->disconnect for $holder, $leases, $job, $wants_lock, $wants_slot, $wants_lease;
wait_until('nothing is held',
    sub { !$admin->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')) });
$admin->shows('SELECT count(*) FROM advisory.locks', 0,
    'at the end nothing is held, and nothing shown');

done_testing();
