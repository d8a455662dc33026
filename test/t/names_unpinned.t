#!/usr/bin/env perl
# Names of locks that an idle session does not hold any more can be evicted, and the session does
# not remember these locks for ever: locks that pg_advisory_unlock() released one by one, and holds
# that ended with an abort and are still to be logged.
use AdvisoryTest;

my $server = own_server('advisory_ext.max_names=400');
sub there { return session(server => $server, @_) }

my $look = there()->run('CREATE EXTENSION advisory_ext');
my $worker = there();

# The oldest lock stays, so it cannot be told from it that others are gone.
$worker->run(q(SELECT advisory.lock('app', 'leader')));
$worker->run(q(DO $$ BEGIN
    FOR i IN 1..3000 LOOP
        PERFORM advisory.lock('job', i);
        PERFORM pg_advisory_unlock(advisory.key('job', i));
    END LOOP;
END $$));
$worker->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 1,
    'all but the oldest lock are released');
$look->shows('SELECT not_stored FROM advisory.directory', 0, 'every name found room');
cmp_ok($worker->value(q(SELECT used_bytes FROM pg_backend_memory_contexts
        WHERE name = 'advisory_ext held locks')), '<', 65536, 'the session has few entries');

# Others can evict the names.
there()->run(q(SELECT count(advisory.try_xact_lock('other', i)) FROM generate_series(1, 300) AS i));
$look->shows(q(SELECT count(*) FROM advisory.stats WHERE namespace = 'other'), 300,
    'there is room for the names of others');
$look->shows(q(SELECT name FROM advisory.locks WHERE pid = ?), 'leader',
    'the lock that is held has its name', $worker->pid);

# With locks that are really held, and with both scopes.
$worker->run('BEGIN', q(SELECT count(advisory.lock('held', i)) FROM generate_series(1, 100) AS i),
    q(SELECT advisory.xact_lock('job', 1), advisory.lock('job', 1)));
$worker->run(q(DO $$ BEGIN
    FOR i IN 1..1000 LOOP
        PERFORM advisory.lock('job', i);
        PERFORM pg_advisory_unlock(advisory.key('job', i));
    END LOOP;
END $$));
$worker->shows(q(SELECT advisory.hold_count('job', 1)), 2, 'in both scopes');
$worker->shows(q(SELECT advisory.unlock_all('held')), 100, 'a namespace');
$worker->shows(q(SELECT count(*) FROM advisory.locks WHERE pid = pg_backend_pid()
    AND namespace = 'job'), 1, 'one lock of the other');
$worker->run('COMMIT');
$worker->shows(q(SELECT advisory.unlock_all('job')), 1,
    'the session-level hold outlives the transaction');

# Calls that only asked, in a transaction that goes on: they have no lock. An error ended the first.
$worker->run(q(SELECT pg_advisory_lock(advisory.key('asked', 'failed'))));
my $asking = there()->run('BEGIN', 'SAVEPOINT before', q(SET LOCAL statement_timeout = '50 ms'));
$asking->fails(q(SELECT advisory.lock('asked', 'failed')), '57014', 'a wait is ended');
$asking->run('ROLLBACK TO before', q(SELECT advisory.claim('asked', 'claim', '1 hour')));
$worker->run(q(SELECT pg_advisory_unlock(advisory.key('asked', 'failed'))));
$look->shows(q(SELECT count(key) FROM advisory.stats WHERE namespace = 'asked'), 2,
    'names of which the session has no lock are stored');
there()->run("SELECT count(advisory.try_xact_lock('beside $_', i))
    FROM generate_series(1, 300) AS i") for 1 .. 2;
$look->shows(q(SELECT count(key) FROM advisory.stats WHERE namespace = 'asked'), 0,
    '... and make room before the transaction ends');
leave($look, $asking);

# Holds that must be logged after an abort.
my $aborting = there()->run('SET advisory_ext.log_hold = 0', 'BEGIN', q(SELECT
    count(advisory.xact_lock('aborted', i)) FROM generate_series(1, 350) AS i), 'ROLLBACK');
there()->run(q(SELECT count(advisory.try_xact_lock('others', i))
    FROM generate_series(1, 300) AS i));
$look->shows(q(SELECT count(*) FROM advisory.stats WHERE namespace = 'others'), 300,
    'there is room while holds are still to be logged');
$aborting->query(q(SELECT advisory.xact_lock('failed', i::text), 1 / (i - 1)
    FROM generate_series(1, 1) AS i)) for 1 .. 2000;
cmp_ok($aborting->value(q(SELECT used_bytes FROM pg_backend_memory_contexts
        WHERE name = 'advisory_ext held locks')), '<', 131072,
    'they do not pile up where every transaction fails (from 16 on the server keeps some '
    . 'empty blocks)');
open my $log, '<', $server->{ADVISORY_EXT_LOG} or die "cannot read the log: $!\n";
my @logged = grep { m{session held advisory lock "(?:aborted|failed)/} } <$log>;
cmp_ok(scalar @logged, '>=', 2349, 'and are logged');

done_testing();
