#!/usr/bin/env perl
# Leases when others do not behave: clients that are dead, calls that are late, tables that are
# locked, clocks that are set, texts that are too long, and servers that take over.
use AdvisoryTest;
use Leases;
use Psql;
use File::Temp qw(tempdir);
use List::Util qw(min);
use Time::HiRes qw(sleep time clock_gettime CLOCK_MONOTONIC);

# A server whose clock this test sets: the library adds the number in the file to what
# gettimeofday() returns.
my $folder = tempdir(CLEANUP => 1);
chmod 0755, $folder;
sub write_file ($name, $text) {
    open my $file, '>', "$folder/$name" or die "$name: $!\n";
    print {$file} $text;
    close $file or die "$name: $!\n";
    return;
}
sub set_clock ($seconds) {
    open my $file, '+<', "$folder/clock" or die "clock: $!\n";
    syswrite $file, pack('q', $seconds);
    close $file or die "clock: $!\n";
    return;
}
write_file('clock', pack 'q', 0);
write_file('clock.c', <<'C');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile long long *offset;

__attribute__((constructor)) static void
open_clock(void)
{
    const char *name = getenv("ADVISORY_TEST_CLOCK");

    if (name)
        offset = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, open(name, O_RDONLY), 0);
}

int
gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    static int    (*real) (struct timeval *, void *);
    int            result;

    if (!real)
        real = (int (*) (struct timeval *, void *)) dlsym(RTLD_NEXT, "gettimeofday");
    result = real(time, zone);
    if (offset && offset != MAP_FAILED)
        time->tv_sec += *offset;
    return result;
}
C
system('cc', '-shared', '-fPIC', '-o', "$folder/clock.so", "$folder/clock.c", '-ldl') == 0
    or BAIL_OUT('no C compiler');
my $server;
{
    local %ENV = (%ENV, LD_PRELOAD => "$folder/clock.so", ADVISORY_TEST_CLOCK => "$folder/clock");
    $server = own_server('fsync=off');
}
my $look = begin_leases(session(server => $server, application => 'look')
    ->run('CREATE EXTENSION advisory_ext'));
delete local $ENV{LD_PRELOAD};

sub is_there ($pid) {
    return $look->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $pid);
}
sub now { return clock_gettime(CLOCK_MONOTONIC) }
sub token_of ($name, $more = '') {
    return $look->value("SELECT token FROM advisory.lease('l', '$name', '1h'$more)");
}
sub other (%how) { return session(server => $server, %how) }

# Leaves the database as a failover does: the era is of an older timeline, and nobody has recorded
# the present one.
sub new_era {
    return $look->run('SELECT setval(\'advisory._era\', last_value - (1::bigint << 37))
        FROM advisory._era');
}
sub era_cell { return $look->value('SELECT last_value FROM advisory._era') }

# ---- Clients that are dead -----------------------------------------------------------------------

{
    my $token = token_of('dead');
    $look->run('CREATE TABLE ran (what text)');
    my @dead = map { Psql->new(server => $server) } 1 .. 2;
    for my $client (@dead) {
        $client->start("SELECT advisory.lease('l', 'dead', '1h');");
        waits_for_lease($client);
    }
    my $live = other()->start("SELECT token FROM advisory.lease('l', 'dead', '1h')");
    waits_for_lease($live);
    my $for_lock = Psql->new(server => $server);
    $look->run("SELECT advisory.lock('l', 'dead')");
    $for_lock->start("SELECT advisory.lock('l', 'dead', '1 min') \\; INSERT INTO ran
        VALUES ('after a lock');");
    $look->wait_until('it waits', q(SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ?),
        $for_lock->pid);
    my @pids = map { $_->pid } @dead, $for_lock;
    $_->quit('KILL') for @dead, $for_lock;
    my $from = now();
    $look->run("SELECT advisory.end_lease('l', 'dead', $token)");
    cmp_ok($live->finish->{value}, '>', $token,
        'a waiter behind two whose clients were killed gets the lease');
    cmp_ok(now() - $from, '<', 3, '... without a TTL of theirs');
    $look->run("SELECT advisory.unlock('l', 'dead')");
    wait_until('they are gone', sub { !grep { is_there($_) } @pids });
    $look->shows('SELECT count(*) FROM ran', 0,
        'what follows a lock is not run for a client that was killed while it waited');
}

# ---- Calls that are late -------------------------------------------------------------------------

{
    my ($owner, $late, $third) = (other(application => 'owner'),
        other()->run("SET lock_timeout = '10s'"), other());
    my $token = token_of('late');
    $owner->run('BEGIN', "SELECT advisory.check_lease('l', 'late', $token)");
    for my $call ("end_lease('l', 'late', 1)", "renew_lease('l', 'late', 1)") {
        my $from = now();
        ok(!$late->value("SELECT advisory.$call"),
            "$call beside a transaction that relies on the lease: lost");
        cmp_ok(now() - $from, '<', 5, '... at once');
    }
    $late->fails("SELECT advisory.check_lease('l', 'late', 1)", '55000', 'check_lease, too');
    $owner->run('COMMIT', 'CREATE ROLE stranger LOGIN');
    # Two sessions try a free lease, while others make late calls: one of the two gets it.
    my @callers = map { other(role => $_ % 2 ? 'stranger' : undef)->start("DO \$\$ BEGIN FOR i IN
            1 .. 100000 LOOP PERFORM advisory.end_lease('l', 'free', 1), advisory.renew_lease('l',
            'free', 1); BEGIN PERFORM advisory.check_lease('l', 'free', 1); EXCEPTION
            WHEN object_not_in_prerequisite_state THEN NULL; END; END LOOP; END \$\$") } 1 .. 2;
    my $nobody = 0;
    for my $round (1 .. 200) {
        $_->start("SELECT token FROM advisory.try_lease('l', 'free', '1h')") for $owner, $third;
        my ($taken) = grep { defined } map { $_->finish->{value} } $owner, $third;
        if (defined $taken) { $look->run("SELECT advisory.end_lease('l', 'free', $taken)") }
        else                { $nobody++ }
    }
    is($nobody, 0, 'of two sessions that try a free lease one gets it, whoever ends it in vain');
    $look->value('SELECT pg_cancel_backend(?)', $_->pid) for @callers;
    $_->finish for @callers;
}

# ---- The table is locked -------------------------------------------------------------------------

{
    my ($locker, $tries) = (other(), other()->run("SET lock_timeout = '10s'"));
    my $token = token_of('locked');
    $locker->run('BEGIN', 'LOCK TABLE advisory._leases');
    my $from = now();
    is(try_lease($tries, 'free'), undef, 'try_lease does not wait for a locked table');
    cmp_ok(now() - $from, '<', 5, '... not at all');
    my $rows = $tries->query('SELECT count(*) FROM advisory.leases');
    is($rows->{value}, 0, 'leases shows no row then');
    like("@{$rows->{warnings}}", qr/leases are not shown/, '... and says why');
    like($tries->warned('SELECT count(*) FROM advisory.activity'), qr/leases are not shown/,
        'activity says so, too');
    $locker->run('ROLLBACK');
    isnt(try_lease($tries, 'free'), undef, 'afterwards it is taken');
}

# ---- A shorter renewal; what a look costs --------------------------------------------------------

{
    my $token = token_of('shorter');
    my $waiter = other()->start("SELECT token FROM advisory.lease('l', 'shorter', '1h')");
    waits_for_lease($waiter);
    my $from = now();
    $look->run("SELECT advisory.renew_lease('l', 'shorter', $token, '300ms')");
    cmp_ok($waiter->finish->{value}, '>', $token, 'a renewal for a shorter time');
    cmp_ok(now() - $from, '<', 3, '... wakes the first waiter');

    # Each of these renewals wakes the waiter, which looks, and must keep nothing of it. If it tells
    # in the middle of a look what it uses, that is more: the least of three counts.
    $token = token_of('looks');
    $waiter->start("SELECT token FROM advisory.lease('l', 'looks', '1h')");
    waits_for_lease($waiter);
    my $memory_once = sub {
        my $total;
        my $from = -s $server->{ADVISORY_EXT_LOG};
        $look->value('SELECT pg_log_backend_memory_contexts(?)', $waiter->pid);
        $look->run("SELECT advisory.renew_lease('l', 'looks', $token, '55 min')");
        wait_until('it says what it uses', sub {
            open my $log, '<', $server->{ADVISORY_EXT_LOG}
                or die "cannot read the server's log: $!\n";
            seek $log, $from, 0;
            local $/ = undef;
            ($total) = <$log> =~ /Grand total: .*?; (\d+) used/;
            return defined $total;
        });
        return $total;
    };
    my $memory = sub { return min(map { $memory_once->() } 1 .. 3) };
    my $looks = sub { for (1 .. $_[0]) { $look->run(
            "SELECT advisory.renew_lease('l', 'looks', $token, '1h')",
            "SELECT advisory.renew_lease('l', 'looks', $token, '50 min')") } return };
    $looks->(20);
    my $before = $memory->();
    $looks->(600);
    my $grown = $memory->() - $before;
    cmp_ok($grown, '<', 20_000, 'a waiter keeps no memory of its looks');
    $look->run("SELECT advisory.end_lease('l', 'looks', $token)");
    $waiter->finish;
}

# ---- The clock is set back -----------------------------------------------------------------------

{
    my $token = token_of('clock');
    my $waiter = other()->start("SELECT token FROM advisory.try_lease('l', 'clock', '1h', '2s')");
    my $from = now();
    waits_for_lease($waiter);
    set_clock(-30);
    $waiter->returns(undef, 'a try with a timeout, while the clock is set back by 30 s');
    cmp_ok(now() - $from, '<', 15, '... ends in time');
    set_clock(0);
}

# ---- break_lease is for the owner of the database, and for those to whom it grants it ------------

{
    $look->run('CREATE ROLE dbo LOGIN', 'CREATE ROLE oncall LOGIN',
        'CREATE DATABASE owned OWNER dbo');
    my ($dbo, $oncall) = map { other(role => $_, database => 'owned') } qw(dbo oncall);
    $dbo->run('CREATE EXTENSION advisory_ext');
    $dbo->value("SELECT token FROM advisory.lease('l', 'broken', '1h', lock_delay => '366 days')");
    $oncall->fails("SELECT advisory.break_lease('l', 'broken')", '42501',
        'not everybody may break a lease');
    $dbo->run('GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text, bigint) TO oncall');
    $oncall->shows("SELECT advisory.break_lease('l', 'broken')", 1,
        '... but those to whom the owner of the database grants it');
    isnt(try_lease($oncall, 'broken'), undef, '... and nothing is left of it');
}

# ---- Long texts, of a restored dump --------------------------------------------------------------

{
    token_of('long');
    $look->run(q(UPDATE advisory._leases SET name = repeat('n', 20000000),
        owner = repeat('o', 20000000) WHERE name = 'long'));
    my $long = $look->rows(q(SELECT length(name), length(owner) FROM advisory.leases
        WHERE name ~ '^nn'))->[0];
    is_deeply($long, [ 1024, 256 ], 'no more of a name and owner is read than a call can give');
    cmp_ok($look->value(q(SELECT max(length(lock || who)) FROM advisory.activity
            WHERE lock ~ 'nn')), '<', 2000, 'in activity, too');
    $look->run(q(DELETE FROM advisory._leases WHERE length(name) > 2000));
    # The owner of the database can restore any values.
    $look->run(map { "INSERT INTO advisory._leases
            VALUES ($_->[0], 0, 0, 1, 4711, 'gone', 1, 1, $_->[1], 'ns', 'restored', 'owner')" }
        [ 1, q('178000000 years', '178000000 years', 'infinity', 'infinity', 'infinity', 0) ],
        [ 2, q('-178000000 years', '-1 s', '-infinity', '-infinity', '-infinity', -1) ],
        [ 3, q('1 s', '1000000 h', '294276-12-31', '4713-01-01 BC', '294276-12-31',
            9223372036854775807) ]);
    $look->shows(q(SELECT count(*) FROM advisory.leases WHERE name = 'restored'), 3,
        'leases shows rows of a restored dump, whatever is in them');
    cmp_ok($look->value('SELECT count(*) FROM advisory.activity'), '>', 1, 'so does activity');
    new_era();
    $look->shows(q(SELECT count(*) FROM advisory.leases WHERE name = 'restored'), 3,
        '... and in a new era');
    $look->run(q(DELETE FROM advisory._leases WHERE name = 'restored'));
}

# ---- Leases that are forgotten leave no rows for ever --------------------------------------------

{
    $look->run('DELETE FROM advisory._leases');
    my $over = sub ($ago) { return $look->run("SELECT advisory.lease('l', 'over ' || i, '10ms')
            FROM generate_series(1, 12) AS i", "UPDATE advisory._leases
            SET expires_at = now() - interval '$ago' WHERE name ~ 'over'") };
    my $left = sub ($session = $look) { return $session->value("SELECT count(*)
            FROM advisory._leases WHERE name ~ 'over'") };
    $over->('6 days');
    $look->run(map { "SELECT advisory.lease('l', 'next $_', '1h')" } 1 .. 12);
    is($left->(), 12, 'the rows of leases that are over stay for a week');
    # Beside a statement that has granted a lease, others can take leases that are over.
    my $long = other()->start("SELECT advisory.lease('l', 'long statement', '1h'), pg_sleep(60)");
    $look->wait_until('it sleeps', q(SELECT count(*) FROM pg_stat_activity
        WHERE wait_event = 'PgSleep' AND pid = ?), $long->pid);
    $look->shows("SELECT count(token) FROM generate_series(1, 12) AS i,
        advisory.try_lease('l', 'over ' || i, '10ms')", 12, '... and keep nobody from taking them');
    $look->value('SELECT pg_cancel_backend(?)', $long->pid);
    $long->finish;
    $over->('8 days');
    my $block = other()->run('BEGIN');
    $block->run(map { "SELECT advisory.lease('l', 'block $_', '1h')" } 1 .. 12);
    is($left->($block), 12, 'a transaction block deletes none');
    $block->run('ROLLBACK');
    $look->run(map { "SELECT advisory.lease('l', 'last $_', '1h')" } 1 .. 200);
    is($left->(), 0, 'grants delete those that nobody has wanted for a week');
    $look->shows("SELECT count(*) FROM advisory._leases WHERE name ~ 'next|last'", 212,
        '... and no others');
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0,
        '... and keep no lock');
}

# ---- A role that takes very many leases ----------------------------------------------------------

{
    $look->run(q(INSERT INTO advisory._leases SELECT i, 0, 0, 1, 10,
        'postgres', (SELECT system_identifier FROM pg_control_system()), 1, '1 h', '0', now(),
        now(), now() + interval '1 h', 0, 'ns', 'many ' || i, 'owner'
        FROM generate_series(1, 20000) AS i));
    my $shown = $look->query('SELECT count(*) FROM advisory.leases');
    is($shown->{value}, 10_000, 'leases shows no more than 10,000');
    like("@{$shown->{warnings}}", qr/only 10000 leases of each role are shown/, '... and says so');
    $look->run(q(SELECT advisory.lease('ns', 'longer than many', '2 h')));
    $look->shows(q(SELECT count(*) FROM advisory.leases WHERE name = 'longer than many'), 1,
        '... those first that are held longest');
    # Nor does it hide the leases of others, nor what somebody waits for.
    $look->run('CREATE ROLE modest LOGIN');
    my $modest = other(role => 'modest');
    $modest->run(q(SELECT advisory.lease('ns', 'modest', '1 min')));
    for my $session ($modest, $look) {
        $session->shows(q(SELECT count(*) FROM advisory.leases WHERE name = 'modest'), 1,
            '... but that of another role, which is not held as long');
    }
    $look->run(q(SELECT advisory.lease('ns', 'awaited', '30 min')));
    $look->shows(q(SELECT count(*) FROM advisory.leases WHERE name = 'awaited'), 0,
        'one of very many is not shown');
    my $waiter = other(application => 'waiter');
    $waiter->start(q(SELECT advisory.lease('ns', 'awaited', '1h')));
    waits_for_lease($waiter);
    is_deeply($look->rows(q(SELECT who, state, waiters, remedy ~ 'break_lease'
            FROM advisory.blockers WHERE lock ~ 'ns/awaited')),
        [ [ 'postgres@look', 'held', 1, 1 ] ], '... but to who waits for it: blockers');
    $look->shows(q(SELECT count(*) FROM advisory.activity WHERE lock ~ 'ns/awaited'), 2,
        '... and activity');
    $look->value('SELECT pg_cancel_backend(?)', $waiter->pid);
    $waiter->finish;
    $look->run(q(DELETE FROM advisory._leases WHERE name ~ 'many|awaited|modest'));
}

# ---- Roles: of a restored dump, and of another server --------------------------------------------

{
    $look->run(map { "CREATE ROLE $_ LOGIN" } qw(leaver stayer outsider));
    $look->run('CREATE DATABASE dumped', 'CREATE DATABASE restored');
    other(database => 'dumped')->run('CREATE EXTENSION advisory_ext');
    for my $role (qw(leaver stayer)) {
        other(role => $role, database => 'dumped')->run("SELECT advisory.lease('l', '$role', '1h')",
            "SELECT advisory.claim('c', '$role', '1 hour')");
    }
    $look->run('DROP ROLE leaver');
    my $at = "-p $server->{PGPORT} -h $server->{PGHOST} -U postgres";
    is(qx(pg_dump $at dumped | psql -X -q -1 -v ON_ERROR_STOP=1 -o /dev/null $at restored 2>&1), '',
        'a dump with a lease of a role that is gone is restored');
    my $super = other(database => 'restored');
    $super->shows(q(SELECT count(*) FROM advisory.leases), 2, '... with all leases');
    roles_elsewhere(super => $super, cluster => 'server',
        connect => sub ($role) { other(database => 'restored', role => $role) });
}

# ---- Somebody else writes the era ----------------------------------------------------------------

{
    my $older = q(SELECT setval('advisory._era', last_value - (1::bigint << 50))
        FROM advisory._era);
    era_set_back($look, $look, $older);
    # What one can restore must not use up all eras.
    $look->run(q(INSERT INTO advisory.fences VALUES (1, 9223372036854775807)), $older);
    cmp_ok(token_of('rubbish') >> 50, '<', 4096, 'a token that nobody made does not count');
    $look->run(q(DELETE FROM advisory.fences));
}

# ---- A lock table that is full for a while -------------------------------------------------------

{
    my $full = own_server('max_locks_per_transaction=10', 'max_connections=20');
    my $there = session(server => $full)->run('CREATE EXTENSION advisory_ext',
        'SELECT advisory.lease(\'l\', \'full\', \'3s\')');
    my $waiter = session(server => $full)->start("SELECT token
        FROM advisory.lease('l', 'full', '1h')");
    $there->wait_until('it waits',
        q(SELECT count(*) FROM advisory.locks WHERE kind = 'lease' AND NOT granted));
    my $fills = session(server => $full);
    $fills->fails('DO $$ BEGIN FOR i IN 1 .. 1000000 LOOP PERFORM pg_advisory_lock(i); END LOOP;
        END $$', '53200', 'the lock table is full');
    sleep 4;
    ok(!$waiter->is_done, 'who waits for a lease goes on waiting');
    $fills->run('SELECT pg_advisory_unlock_all()');
    isnt($waiter->finish(30)->{value}, undef, '... and gets it afterwards');
    leave($there, $waiter, $fills);
    $full->stop;
}

# ---- A server that takes over --------------------------------------------------------------------

{
    my $old = $look->value("SELECT token
        FROM advisory.lease('l', 'a year ago', '1h', lock_delay => '1h')");
    my $recent = token_of('recent');
    $look->run(q(UPDATE advisory._leases SET expires_at = expires_at - interval '1 year'
        WHERE name = 'a year ago'));
    new_era();
    my $cell = era_cell();
    $look->shows("SELECT name, state FROM advisory.leases WHERE name IN ('a year ago', 'recent')
        ORDER BY name", [ 'a year ago|expired', 'recent|restarted' ],
        'a new era restarts only the leases that had not ended long before');
    # The waiter without a snapshot does not record the era, because that needs a transaction ID.
    my $waiter = other()->start("CALL advisory.await_lease('l', 'recent', '1h')");
    waits_for_lease($waiter);
    sleep 0.2;
    is(era_cell(), $cell, 'the era is not recorded yet');
    $look->shows('SELECT backend_xid, backend_xmin FROM pg_stat_activity WHERE pid = ?',
        'NULL|NULL', 'a waiter without a snapshot has no transaction ID in a new era',
        $waiter->pid);
    $look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND pid = ?), 0,
        '... and no lock on a table or sequence', $waiter->pid);
    $look->value('SELECT pg_cancel_backend(?)', $waiter->pid);
    $waiter->ends('57014', '... until it is canceled');
    $waiter->fails("CALL advisory.await_lease('l', 'recent', '1h', '100ms')", '55P03',
        'one that gives up');
    isnt(era_cell(), $cell, '... has recorded the era');
    isnt(try_lease($look, 'a year ago'), undef, 'the lease of a year ago is free');
    # A lease that nobody renews is free after its TTL, though nobody but waiters without a snapshot
    # has asked.
    my $short = $look->value("SELECT token FROM advisory.lease('l', 'short', '2s')");
    new_era();
    $waiter->start("CALL advisory.await_lease('l', 'short', '1h')");
    cmp_ok($waiter->finish(30)->{value}, '>', $short,
        'it waits for the whole TTL, and gets the lease');
    # A server whose clock is a little behind, or ahead: the lease that has just expired there still
    # has its TTL.
    my $skewed = $look->value("SELECT token FROM advisory.lease('l', 'skewed', '2s')");
    set_clock(30);
    new_era();
    $look->shows("SELECT state FROM advisory.leases WHERE name = 'skewed'", 'restarted',
        'clocks of servers differ: a lease that ended less than a minute before the new era is '
        . 'restarted');
    set_clock(0);
    # The beginning of an era is recorded before the era: otherwise leases would for a moment be
    # restarted from the beginning of the previous one.
    new_era();
    $cell = era_cell();
    my $locker = other()->run('BEGIN', 'ALTER SEQUENCE advisory._era_began NO CYCLE');
    $waiter->start("SELECT advisory.lease('l', 'era', '1h')");
    $look->wait_until('it waits', q(SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ?),
        $waiter->pid);
    is(era_cell(), $cell, 'an era is not recorded before its beginning');
    $locker->run('ROLLBACK');
    $waiter->ends(undef, '... which is recorded at last');
    isnt(era_cell(), $cell, '... and then the era');
}

# ---- The commit that grants a lease, or claims a window, waits for a standby ---------------------

{
    my $commits = other();
    my $is_confirmed = sub ($what, @statements) {
        $commits->run(@statements[0 .. $#statements - 1]);
        $commits->start($statements[-1]);
        ok(wait_until('it waits', sub { $look->value(q(SELECT count(*) FROM pg_stat_activity
                WHERE wait_event = 'SyncRep' AND pid = ?), $commits->pid) || $commits->is_done })
            && !$commits->is_done, $what);
        $look->value('SELECT pg_cancel_backend(?)', $commits->pid) unless $commits->is_done;
        $commits->finish;
        $commits->shows('SHOW synchronous_commit', 'off', '... and only this one');
        return;
    };
    $look->run('CREATE FUNCTION take(name text) RETURNS bigint LANGUAGE sql SET synchronous_commit =
        off AS $$ SELECT token FROM advisory.lease(\'l\', name, \'1h\') $$');
    set_standby_names($look, 'nobody');
    $commits->run('SET synchronous_commit = off', 'CREATE TABLE is_asynchronous (i int)');
    $is_confirmed->('a grant in a function that sets synchronous_commit waits for the standby',
        "SELECT take('synchronous')");
    $is_confirmed->('a grant before SET LOCAL, too', 'BEGIN', "SELECT advisory.lease('l', 'local',
        '1h')", 'SET LOCAL synchronous_commit = off', 'COMMIT');
    $is_confirmed->('a claim by run()',
        "CALL advisory.run('l', 'once', 'SELECT 1', once_per => '1 h')");
    $commits->run("SET statement_timeout = '20s'", 'INSERT INTO is_asynchronous VALUES (1)',
        'SET advisory_ext.lease_sync = off', "SELECT take('asynchronous')");
    pass('lease_sync = off leaves the level to the user');
    $look->run('ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()');
}

done_testing();
