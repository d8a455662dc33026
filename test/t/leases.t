#!/usr/bin/env perl
# Leases between sessions: there are never two owners at a time, acquirers come in order, the commit
# that ends a lease wakes the next, waits end in every way, transactions rely on a lease, and a
# lease has its whole TTL again in a new era.
use AdvisoryTest;
use Leases;
use Time::HiRes qw(sleep time);

create_database();
my $look = begin_leases(session(application => 'look'));

sub state_of ($name) {
    return $look->value('SELECT state FROM advisory.leases WHERE namespace = ? AND name = ?',
        'l', $name);
}
# Waits until these sessions sleep in the queues of leases. Before that they look at the lease, with
# a lock that is in the way of others.
sub sleep_for_leases (@sessions) {
    return wait_until('they sleep', sub { $look->value(q(SELECT count(*) FROM pg_stat_activity
            WHERE pid = ANY (?) AND wait_event IN ('advisory', 'AdvisoryExtLease')),
            [ map { $_->pid } @sessions ]) == @sessions });
}

# ---- It outlives its session ---------------------------------------------------------------------

{
    my $owner = session(application => 'owner');
    my $token = lease($owner, 'outlives');
    leave($look, $owner);
    is(state_of('outlives'), 'held', 'a lease is held after its session has ended');
    is(try_lease($look, 'outlives'), undef, 'and nobody else gets it');
    $look->shows("SELECT advisory.end_lease('l', 'outlives', $token)", 1,
        'until another session ends it by its token');
    $look->shows("SELECT count(*) FROM advisory._leases", 0, 'which leaves nothing behind');
}

# ---- The commit that ends it wakes the first waiter ----------------------------------------------

{
    my @waiters = map { session(application => "w$_") } 1 .. 3;
    my $token = lease($look, 'queue');
    queue_for_lease('queue', @waiters);
    my $pids = join ',', map { $_->pid } @waiters;
    is_deeply($look->rows("SELECT lock, mode, pid, who ~ '^postgres', waiting IS NOT NULL
            FROM advisory.activity WHERE lock ~ 'queue'
            ORDER BY waiting DESC NULLS LAST, array_position(ARRAY[$pids], pid)"),
        [ (map { [ 'lease l/queue', 'lease', $_->pid, 1, 1 ] } @waiters),
            [ 'lease l/queue', 'lease', undef, 1, 0 ] ],
        'activity shows those who wait, and the lease');
    my @tree = $look->column('SELECT * FROM advisory.wait_tree()');
    my $held = qr{lease l/queue exclusive .*, which postgres\@look holds until };
    like($tree[0], qr{^$waiters[0]{pid} .* waits for $held},
        'wait_tree() begins with the first in the queue, and says who has the lease');
    like($tree[1], qr{^  $waiters[1]{pid} .* waits for lease l/queue},
        'the next one waits for the first');
    ($token, my @late) = served_in_order($look, 'queue', $token, @waiters);
    cmp_ok(median(@late), '<', 0.02, 'within 20 ms') or diag "@late";
    $look->shows("SELECT advisory.end_lease('l', 'queue', $token)", 1, 'the last one ends it');
    # An end that is rolled back ends nothing.
    $token = lease($look, 'queue');
    $waiters[0]->start("SELECT token FROM advisory.lease('l', 'queue', '1h', '200ms')");
    waits_for_lease($waiters[0]);
    $look->run('BEGIN', "SELECT advisory.end_lease('l', 'queue', $token)", 'ROLLBACK');
    $waiters[0]->ends('55P03', 'an end that is rolled back');
    $look->shows("SELECT advisory.check_lease('l', 'queue', $token)", 1, 'leaves the lease');
    $look->run("SELECT advisory.end_lease('l', 'queue', $token)");
}

{
    # A transaction that ends several leases wakes the first waiter for each. Otherwise a waiter
    # looks after 5 s.
    my @waiters = map { session() } 1, 2;
    for my $i (1, 2) {
        $look->run("SELECT advisory.lease('l', 'one of two $i', '1h')");
        $waiters[ $i - 1 ]->start("SELECT clock_timestamp()
            FROM advisory.lease('l', 'one of two $i', '1h')");
    }
    sleep_for_leases(@waiters);
    my $ended = $look->value("SELECT max(clock_timestamp())
        FROM advisory.leases, advisory.end_lease('l', name, token) WHERE name ~ '^one of two '");
    cmp_ok($look->value('SELECT extract(epoch FROM ?::timestamptz - ?)', $_->finish->{value},
            $ended), '<', 3, 'a transaction that ends two leases wakes the waiters for both')
        for @waiters;
    $look->run("SELECT advisory.break_lease('l', name) FROM advisory.leases
        WHERE name ~ '^one of two '");
}

{
    # While the first waiter cannot look, a session that only tries does not take the free lease.
    my ($waiter, $token) = (session(), lease($look, 'overtaken'));
    $waiter->start("SELECT token FROM advisory.lease('l', 'overtaken', '1h')");
    sleep_for_leases($waiter);
    kill STOP => $waiter->pid or die 'cannot stop the process ' . $waiter->pid . ": $!\n";
    $look->run("SELECT advisory.end_lease('l', 'overtaken', $token)");
    is(try_lease($look, 'overtaken'), undef, 'a session that only tries does not come first');
    kill CONT => $waiter->pid;
    $token = $waiter->finish->{value};
    $look->shows("SELECT advisory.end_lease('l', 'overtaken', $token)", 1, 'the waiter gets it');
}

# ---- Takers at once ------------------------------------------------------------------------------

use constant { TAKERS => 8, GRANTS => 150 };

never_two_owners(session => sub { session() }, takers => TAKERS, grants => GRANTS,
    waits_in => qr//);

# Sessions that only try, which have odd numbers, must not wait for a lock of a lease. The server
# itself has other locks, for the size of a table, say, for which a busy machine lets a session wait
# for 2 ms once in a while.
for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE') {
    my @takers = map { session()->run("SET default_transaction_isolation = '$level'") } 1 .. TAKERS;
    my $name = lc $level;
    my (%tokens, %errors);
    my ($grants, $tries, $tries_that_waited) = (0, 0, 0);
    $takers[$_]->run("SET lock_timeout = '2ms'") for grep { $_ % 2 } 0 .. $#takers;
    my $begin = sub ($i) {
        $takers[$i]->start('SELECT token FROM advisory.'
            . ($i % 2 ? "try_lease('l', '$name', '20ms')" : "lease('l', '$name', '20ms', '1s')"));
    };
    $begin->($_) for 0 .. $#takers;
    my $end = time + 60;
    while ($grants < GRANTS && time < $end) {
        for my $i (grep { $takers[$_]->is_done } 0 .. $#takers) {
            my $result = $takers[$i]->finish;
            my ($state, $token) = ($result->{state} // '', $result->{value});
            $tries++ if $i % 2;
            $tries_that_waited++ if $i % 2 && $state eq '55P03';
            $errors{$state}++ if $state;
            if (defined $token) {
                $grants++;
                $tokens{$token}++;
                # Half of them end it early, so that acquirers are woken, too.
                $takers[$i]->query("SELECT advisory.end_lease('l', '$name', $token)")
                    if $grants % 2;
            }
            $begin->($i);
        }
        sleep 0.0005;
    }
    $_->finish for @takers;
    is(scalar keys %tokens, $grants, "$level: $grants grants to many takers, each with its token");
    cmp_ok($grants, '>=', GRANTS, "$level: enough");
    is_deeply([ grep { !/^(?:40001|55P03)$/ || (/^40001$/ && $level ne 'SERIALIZABLE') }
            keys %errors ], [], "$level: no errors but those of the level and of timeouts");
    cmp_ok($tries_that_waited, '<=', 0.01 * $tries, "$level: nobody who only tried waited for a "
        . 'lock') or diag "$tries_that_waited of $tries waited";
}

# ---- A session that only tries waits for nobody --------------------------------------------------

{
    my ($taking, $trying, $relying) = map { session(application => $_) } qw(taking trying relying);
    my $TRY = "SELECT token FROM advisory.try_lease('l', 'try', '1h')";
    $trying->run("SET lock_timeout = '5s'", $TRY =~ s/'try'/'warm'/r);
    $taking->run('BEGIN', "SELECT advisory.lease('l', 'try', '1h')");
    my $took = undisturbed_time(sub { $trying->shows($TRY, 'NULL',
            'while another transaction is taking it: at once no') }, $trying);
    cmp_ok($took, '<', 1, 'without waiting');
    $taking->run('ROLLBACK');
    my $token = $trying->value($TRY);
    cmp_ok($token, '>', 0, 'a grant that was rolled back is none');
    # A transaction that relies on the lease keeps others from taking it over, and from ending it.
    $look->run("SELECT advisory.renew_lease('l', 'try', $token, '50ms')");
    $relying->run('BEGIN', "SELECT advisory.check_lease('l', 'try', $token)");
    sleep 0.1;
    is(state_of('try'), 'expired', 'a lease has expired');
    $taking->shows("SELECT token FROM advisory.try_lease('l', 'try', '1h', '50ms')", 'NULL',
        'but nobody takes it over while a transaction relies on it');
    my $pid = $relying->pid;
    like($taking->query("SELECT advisory.lease('l', 'try', '1h', '50ms')")->{hint},
        qr/advisory\.blockers\.\ To\ .*:\ SELECT\ advisory\.terminate_holder
            \('l',\ 'try',\ $pid,\ kind\ =>\ 'lease'\)\.$/x,
        '... and the error says how to end that session');
    $look->start("SELECT advisory.end_lease('l', 'try', $token)");
    sleep 0.1;
    is($look->is_done ? 1 : 0, 0, 'nor is it ended');
    $relying->run('COMMIT');
    $look->returns(1, 'until that transaction ends');
    # While a transaction relies on the lease, a session that waits for the lease does not keep its
    # owner from renewing it.
    $token = $trying->run('RESET lock_timeout')->value("SELECT token
        FROM advisory.lease('l', 'renewed', '1h')");
    $relying->run('BEGIN', "SELECT advisory.check_lease('l', 'renewed', $token)");
    waits_for_lease($taking, "SELECT token FROM advisory.lease('l', 'renewed', '1h', '1min')");
    $trying->run("SET lock_timeout = '200ms'");
    isnt($trying->query("SELECT advisory.renew_lease('l', 'renewed', $token, '10ms')")->{value},
        undef, 'a waiter does not keep the owner from renewing the lease');
    waits($look, $taking);
    # When it has expired: the error names the transaction that relies on it.
    my $result = $trying->fails("SELECT advisory.lease('l', 'renewed', '1h', '50ms')", '55P03',
        'one that has expired, but which a transaction relies on');
    my ($who, $idle) = ("Process $relying->{pid}", 'it is idle in transaction since');
    my $locked = 'application "relying", has locked it in shared mode';
    like($result->{detail}, qr/^$who of role "\w+", $locked; $idle .*\.$/m,
        'the error says which one');
    for my $wait ("renew_lease('l', 'renewed', $token)", "end_lease('l', 'renewed', $token)",
        "check_lease('l', 'renewed', $token)") {
        $result = $trying->fails("SELECT advisory.$wait", '55P03',
            "$wait waits for who takes it over");
        # From 19 on the server has a line of its own before it.
        like($result->{context}, qr{^while waiting for lease "l/renewed"\z}m, 'and says for what');
    }
    $look->shows("SELECT DISTINCT name, mode, pid, granted FROM advisory.locks
            WHERE pid = ? AND NOT granted ORDER BY 1", "renewed|exclusive|$taking->{pid}|0",
            'its wait is shown', $taking->pid);
    $relying->run('COMMIT');
    cmp_ok($taking->finish->{value}, '>', $token, 'who waited takes it over');
    $trying->run('RESET lock_timeout');
    # The lease is renewed while a waiter that has found it free waits for the transaction that
    # relies on it: the waiter leaves no lock behind.
    $token = $look->value("SELECT token FROM advisory.lease('l', 'renewed late', '1ms')");
    $relying->run('BEGIN', "SELECT advisory.check_lease('l', 'renewed late', $token)");
    waits($look, $taking, "SELECT token FROM advisory.lease('l', 'renewed late', '1h')");
    $relying->run("SELECT advisory.renew_lease('l', 'renewed late', $token, '1h')", 'COMMIT');
    isnt($look->run("SET lock_timeout = '20s'")
        ->query("SELECT advisory.renew_lease('l', 'renewed late', $token)")->{value}, undef,
        'a waiter that has found the lease renewed does not keep it from being renewed again');
    $look->run('RESET lock_timeout')->shows(
        "SELECT advisory.end_lease('l', 'renewed late', $token)", 1, '... or ended');
    cmp_ok($taking->finish->{value}, '>', $token, '... and takes it then');
    # While a transaction takes the lease: the error names it.
    $relying->run('BEGIN', "SELECT advisory.lease('l', 'being taken', '1h')");
    like($trying->query("SELECT advisory.lease('l', 'being taken', '1h', '50ms')")->{detail},
        qr/^$who .* has locked it in exclusive mode; $idle/, 'who is taking it');
    waits_for_lease($taking, "SELECT token FROM advisory.lease('l', 'being taken', '1h')");
    like(join("\n", $look->column('SELECT * FROM advisory.wait_tree()')),
        qr{^  ${\$taking->pid} .* waits for lease l/being taken exclusive}m,
        'wait_tree() shows who waits for that');
    # A prepared transaction, which ends in another session.
    $relying->run('COMMIT');
    $token = $look->value("SELECT token FROM advisory.leases WHERE name = 'being taken'");
    $relying->run('BEGIN', "SELECT advisory.end_lease('l', 'being taken', $token)",
        "PREPARE TRANSACTION 'lease'");
    is(try_lease($trying, 'being taken'), undef, 'an end that is prepared');
    like($trying->query("SELECT advisory.lease('l', 'being taken', '1h', '0')")->{detail} // '',
        qr/holds it until/, 'has not ended the lease');
    $took = undisturbed_time(sub {
        $relying->run("COMMIT PREPARED 'lease'");
        cmp_ok($taking->finish->{value}, '>', $token, 'its commit does');
    }, $relying, $taking);
    cmp_ok($took, '<', 1, 'at once');
    # Late renewal, and one that is too late.
    $token = $taking->value("SELECT token FROM advisory.lease('l', 'late', '30ms')");
    sleep 0.05;
    isnt($taking->value("SELECT advisory.renew_lease('l', 'late', $token)"), undef,
        'a late renewal is fine while nobody took it over');
    sleep 0.05;
    my $next = try_lease($trying, 'late');
    $taking->shows("SELECT advisory.renew_lease('l', 'late', $token)", 'NULL',
        'and says that it is lost afterwards');
    $taking->fails("SELECT advisory.check_lease('l', 'late', $token)", '55000', 'as a check does');
    $taking->shows("SELECT advisory.end_lease('l', 'late', $token)", 0, 'which then cannot end it');
    $trying->shows("SELECT advisory.check_lease('l', 'late', $next)", 1, 'the new owner has it');
    # A check in an old snapshot sees the latest committed data.
    $relying->run('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
    $trying->run("SELECT advisory.end_lease('l', 'late', $next)");
    $relying->fails("SELECT advisory.check_lease('l', 'late', $next)", '55000',
        'REPEATABLE READ: a check is not fooled by an old snapshot');
    $relying->run('ROLLBACK');
    # A lease that was taken after the snapshot does not count as lost.
    $relying->run('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
    $token = lease($trying, 'later');
    isnt($relying->value("SELECT advisory.renew_lease('l', 'later', $token, '2h')"), undef,
        'REPEATABLE READ: a lease that is younger than the snapshot can be renewed');
    $relying->shows("SELECT advisory.end_lease('l', 'later', $token)", 1, 'and ended');
    $relying->run('COMMIT');
    is(state_of('later'), undef, 'in truth');
}

# ---- How waits end -------------------------------------------------------------------------------

{
    my ($first, $second) = map { session(application => $_) } qw(first second);
    my $token = lease($look, 'wait');
    my $WAIT = "SELECT token FROM advisory.lease('l', 'wait', '1h')";
    waits_end($first, 'wait');
    $first->shows("SELECT token FROM advisory.try_lease('l', 'wait', '1h', '50ms')", 'NULL',
        'try_lease with a timeout: nulls');
    $first->shows('SELECT 1', 1, 'and the session goes on');
    # The timeout is for all steps of the wait together: in the queue, and then for a transaction
    # that relies on the lease.
    $first->run("SELECT advisory.lease('l', 'steps', '10ms')");
    my $relies = session()->run('BEGIN', "SELECT advisory.check_lease('l', 'steps', (SELECT token
        FROM advisory.leases WHERE name = 'steps'))");
    waits_for_lease($first, "SELECT token FROM advisory.lease('l', 'steps', '1h', '500ms')");
    my $took = undisturbed_time(sub {
        $second->start("SELECT token FROM advisory.lease('l', 'steps', '1h', '800ms')");
        $_->ends('55P03', 'a wait of several steps') for $first, $second;
    }, $first, $second);
    cmp_ok($took, '<', 1.1, 'ends in time');
    $relies->run('COMMIT');
    leave($look, $relies);
    $first->run('BEGIN', 'CREATE TEMP TABLE kept (i int)');
    $first->shows("SELECT token FROM advisory.try_lease('l', 'wait', '1h', '50ms')", 'NULL',
        'in a transaction');
    $first->succeeds('INSERT INTO kept VALUES (1)', 'which stays usable');
    $first->run('ROLLBACK');
    # The first in the queue dies, and the next one goes on.
    waits_for_lease($first, $WAIT);
    waits_for_lease($second, $WAIT);
    $look->value('SELECT pg_terminate_backend(?)', $first->pid);
    until_gone($look, $first);
    $look->run("SELECT advisory.end_lease('l', 'wait', $token)");
    cmp_ok($second->finish->{value}, '>', $token,
        'after the first in the queue has died the next one is woken');
}

# ---- lock_delay, break_lease, a new era ----------------------------------------------------------

{
    my $start = time;
    my $token = $look->value("SELECT token
        FROM advisory.lease('l', 'delay', '20ms', lock_delay => '300ms')");
    cmp_ok(lease($look, 'delay'), '>', $token, 'lock_delay: it can be taken');
    cmp_ok(time - $start, '>', 0.31, 'that long after it expired');
    $token = $look->value("SELECT token FROM advisory.leases WHERE name = 'delay'");
    $look->shows("SELECT advisory.break_lease('l', 'delay')", 1, 'break_lease');
    $look->shows("SELECT advisory.renew_lease('l', 'delay', $token)", 'NULL',
        'the owner cannot renew it any more');
    isnt(try_lease($look, 'delay'), undef, 'and others can take it');
    $look->run("SELECT advisory.lease('l', 'broken', '1h', lock_delay => '1h')",
        "SELECT advisory.break_lease('l', 'broken')");
    isnt(try_lease($look, 'broken'), undef, '... at once: its lock_delay ends, too');
    $look->shows("SELECT advisory.break_lease('l', 'not taken')", 0,
        'a free lease cannot be broken');
    isnt(try_lease($look, 'not taken'), undef, '... and that delays nobody');
    $look->run("UPDATE advisory._leases SET expires_at = now() - interval '1 s', lock_delay = '1h'
        WHERE name = 'broken'");
    like($look->query("SELECT advisory.lease('l', 'broken', '1h', '0')")->{detail},
        qr/^"[\w@]+" held it until .*\. Nobody else can take it before /,
        'a lease that has expired is held no more, but its lock_delay runs');
    $look->run("DELETE FROM advisory._leases WHERE name IN ('broken', 'not taken')");
    # The waiter is not woken by a commit here, but it looks again by itself, as after a change of
    # the server's clock.
    my $waiter = session()->start("SELECT token FROM advisory.lease('l', 'delay', '1h', '1min')");
    waits_for_lease($waiter);
    $look->run("UPDATE advisory._leases SET expires_at = 'infinity', lock_delay = '1s'
        WHERE name = 'delay'");
    my $error = $look->query("SELECT advisory.lease('l', 'delay', '1h', '0')");
    like($error->{detail},
        qr/^"[\w@]+" holds it until infinity\. Nobody else can take it before infinity\.$/,
        'a lease that a superuser has made endless');
    $look->run("UPDATE advisory._leases SET expires_at = now() - interval '1 min'
        WHERE name = 'delay'");
    isnt($waiter->finish->{value}, undef,
        'and one that has expired earlier than was known when the wait began');
    leave($look, $waiter);
    # In a new era it is unknown how much of the TTL was left. If the TTL was too short for this
    # machine, the next try has a longer one.
    my ($era, $in_era);
    for my $ttl (0.4, 2, 10) {
        $era = "era of $ttl";
        $token = $look->value("SELECT token FROM advisory.lease('l', '$era', '$ttl s')");
        wait_until('it has expired', sub { state_of($era) eq 'expired' });
        my $from = time;
        $look->run("SELECT advisory.tokens_above($token)");
        $in_era = [ try_lease($look, $era),
            state_of($era),
            defined $look->value("SELECT advisory.renew_lease('l', '$era', $token)"),
            state_of($era) ];
        last if time - $from < $ttl;
    }
    is($in_era->[0], undef, 'a lease that has expired is held again in a new era');
    is($in_era->[1], 'restarted', 'and says so');
    ok($in_era->[2], 'its owner can renew it');
    is($in_era->[3], 'held', 'so that it is held as ever');
    ok(wait_until('it expires', sub { defined try_lease($look, $era) }),
        'and expires after its TTL');
}

{
    # A new era begins while a waiter, which has found the lease free, waits for a transaction that
    # relies on it.
    my ($relies, $waiter) = map { session() } 1, 2;
    my $token = lease($look, 'era meanwhile');
    $look->run("UPDATE advisory._leases SET expires_at = now() - interval '10 s'
        WHERE name = 'era meanwhile'");
    $relies->run('BEGIN', "SELECT advisory.check_lease('l', 'era meanwhile', $token)");
    waits($look, $waiter, "SELECT advisory.lease('l', 'era meanwhile', '1h')");
    $look->run("SELECT advisory.tokens_above($token)");
    $relies->run('COMMIT');
    wait_until('it sleeps',
        sub { $waiter->is_done || $look->value(q(SELECT count(*) FROM pg_stat_activity AS a
            WHERE wait_event IN ('advisory', 'AdvisoryExtLease') AND pid = ? AND NOT EXISTS (SELECT
            FROM pg_locks AS l WHERE l.pid = a.pid AND NOT granted)), $waiter->pid) });
    $look->shows("SELECT advisory.check_lease('l', 'era meanwhile', $token)", 1,
        'a lease that a new era restarts is held again, though a waiter had found it free before');
    $look->value('SELECT pg_cancel_backend(?)', $waiter->pid);
    $waiter->ends('57014', '... which goes on waiting');
}

# ---- What a call leaves behind until its transaction ends ----------------------------------------

{
    my ($first, $second) = map { session(application => $_) } qw(first second);
    $second->run("SET lock_timeout = '5s'");
    my $token = lease($look, 'renewed twice');
    # Two concurrent renewals: the time of the second one begins when the first has ended.
    for my $level ('READ COMMITTED', 'REPEATABLE READ') {
        $first->run('BEGIN', "SELECT advisory.renew_lease('l', 'renewed twice', $token, '1h')");
        $second->run("BEGIN ISOLATION LEVEL $level", 'SELECT 1');
        waits($look, $second, "SELECT advisory.renew_lease('l', 'renewed twice', $token,
            '10s') - clock_timestamp() BETWEEN '9.55s' AND '10s'");
        sleep 0.5;
        $first->run('COMMIT');
        my $result = $second->ends(undef, "$level: a renewal waits for another one");
        is($result->{value}, 1, '... and has its whole TTL from then on');
        $second->run('COMMIT');
    }
    # A transaction that relies on the lease does not keep its owner from renewing it, nor the
    # reverse.
    $token = lease($look, 'relied on');
    $first->run('BEGIN', "SELECT advisory.check_lease('l', 'relied on', $token)");
    isnt($second->value("SELECT advisory.renew_lease('l', 'relied on', $token)"), undef,
        'a lease that somebody relies on can be renewed');
    $second->run('BEGIN', "SELECT advisory.renew_lease('l', 'relied on', $token)");
    $look->shows("SELECT advisory.check_lease('l', 'relied on', $token)", 1,
        'one that somebody renews can be relied on');
    $_->run('COMMIT') for $first, $second;
    # Calls that change nothing.
    for my $call ("renew_lease('l', 'relied on', 1)", "end_lease('l', 'relied on', 1)",
        "break_lease('l', 'no such lease')") {
        ok(!$first->run('BEGIN')->value("SELECT advisory.$call"), "$call: in vain");
        $first->shows(q(SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()
            AND locktype = 'advisory'), 0, '... locks nothing');
        isnt($second->value("SELECT advisory.renew_lease('l', 'relied on', $token)"), undef,
            '... and its transaction keeps nobody waiting');
        $first->run('COMMIT');
    }
    # A broken lease stays broken.
    $look->run("SELECT advisory.break_lease('l', 'relied on')",
        "SELECT advisory.tokens_above($token)");
    is(state_of('relied on'), undef, 'a lease that was broken does not come back in a new era');
    isnt(try_lease($look, 'relied on'), undef, '... so that others can take it');
}

# ---- The views, when several wait, and when the table is locked ----------------------------------

{
    my @names = map { "view $_" } 1 .. 3;
    $look->run(map { "SELECT advisory.lease('l', '$_', '1h', owner => 'owner of $_')" } @names);
    my @waiters = session(application => 'alone')
        ->start("SELECT advisory.lease('l', '$names[0]', '1h')");
    waits_for_lease($waiters[0]);
    is_deeply($look->rows('SELECT pid, name FROM advisory.waits'),
        [ [ $waiters[0]->pid, $names[0] ] ],
        'waits shows the only session that waits, though it is in no queue of the lock manager');
    push @waiters,
        map { session(application => $_)->start("SELECT advisory.lease('l', '$_', '1h')") } @names;
    waits_for_lease($_) for @waiters;
    my @tree = $look->column('SELECT * FROM advisory.wait_tree()');
    for my $name (@names) {
        ok((grep {
            m{waits for lease l/$name exclusive .*, which owner of $name holds until }
        } @tree), "wait_tree() says who has l/$name") or diag explain \@tree;
    }
    # A session of another database waits for a lease of the same name there, which has another
    # owner.
    my $there = create_database(name => "advisory_there_$$", aside => 1);
    my $elsewhere = session(database => $there)
        ->run("SELECT advisory.lease('l', '$names[2]', '1h')");
    waits_for_lease($elsewhere, "SELECT advisory.lease('l', '$names[2]', '1h')");
    my @of_other = grep { $_->[0] =~ /^\s*${\$elsewhere->pid} / } @{ $look->rows('SELECT *
            FROM advisory.wait_tree()') };
    like($of_other[0][0], qr{in database "$there"},
        'wait_tree() shows who waits for a lease of another database');
    unlike($of_other[0][0], qr{which}, '... without the owner of the lease of the same name here');
    leave($look, $elsewhere);
    $look->shows('SELECT count(*) FROM advisory.semaphores', 0, 'semaphores has no leases');
    # A session that waits for a lease, and holds a lock.
    my $both = session(application => 'both')->run("SELECT advisory.lock('l', 'lock')");
    waits_for_lease($both, "SELECT advisory.lease('l', '$names[1]', '1h')");
    my $third = session()->run("SELECT advisory.lock('l', 'of the first')",
        "SELECT advisory.lease('l', 'other', '1h')");
    waits_for_lease($third, "SELECT advisory.lease('l', 'other', '1h')");
    like($look->query("SELECT advisory.lock('l', 'of the first', '0')")->{detail},
        qr/it is waiting for a lease since /, 'an error says that a holder waits for a lease');
    # The table is locked: views do not wait.
    my $locker = session()->run('BEGIN', 'LOCK TABLE advisory._leases');
    $look->run("SET statement_timeout = '20s'");
    for my $view ('advisory.activity', 'advisory.wait_tree()', 'advisory.locks', 'advisory.waits') {
        $look->shows("SELECT count(*) > 0 FROM $view", 1,
            "$view does not wait for the table of leases");
    }
    $look->fails("SELECT advisory.lock('l', 'of the first', '0')", '55P03',
        'nor does the error of a failed wait');
    $locker->run('ROLLBACK');
    $look->run('RESET statement_timeout');
}

# ---- Synchronous commit --------------------------------------------------------------------------

{
    my $session = session()->run('SET synchronous_commit = off', 'BEGIN');
    $session->shows('SHOW synchronous_commit', 'off', 'asynchronous commit');
    my $token = lease($session, 'sync');
    $session->shows('SHOW synchronous_commit', 'on', 'is not for a transaction that takes a lease');
    $session->run('COMMIT');
    $session->shows('SHOW synchronous_commit', 'off', 'only for that');
    $session->run('BEGIN', 'SAVEPOINT s', "SELECT advisory.renew_lease('l', 'sync', $token)");
    $session->shows('SHOW synchronous_commit', 'on', 'nor one that renews it');
    $session->run('ROLLBACK TO s');
    $session->shows('SHOW synchronous_commit', 'off', 'unless that is rolled back');
    $session->run('ROLLBACK', 'SET advisory_ext.lease_sync = off', 'BEGIN',
        "SELECT advisory.renew_lease('l', 'sync', $token)");
    $session->shows('SHOW synchronous_commit', 'off', 'lease_sync = off leaves it to the user');
    $session->run('COMMIT', "SET synchronous_commit = remote_apply", 'SET advisory_ext.lease_sync =
        on', 'BEGIN', "SELECT advisory.renew_lease('l', 'sync', $token)");
    $session->shows('SHOW synchronous_commit', 'remote_apply', 'what is stronger stays');
    $session->run('COMMIT');
}

# ---- Waiting without a snapshot ------------------------------------------------------------------

{
    my $waiter = session(application => 'awaits');
    my $token = lease($look, 'await');
    waits_for_lease($waiter, "CALL advisory.await_lease('l', 'await', '1h')");
    # It has one for a moment whenever it looks at the lease.
    ok($look->wait_until('it has no snapshot', q(SELECT backend_xmin IS NULL AND backend_xid IS NULL
            AND wait_event_type IN ('Lock', 'Extension') FROM pg_stat_activity WHERE pid = ?),
            $waiter->pid), 'await_lease() waits without a snapshot');
    $look->run("SELECT advisory.end_lease('l', 'await', $token)");
    my $row = $waiter->finish->{rows}[0];
    cmp_ok($row->[0], '>', $token, 'and takes the lease');
    $look->shows("SELECT advisory.check_lease('l', 'await', $row->[0])", 1, 'for good');
}

# ---- Wrong arguments that differ between versions ------------------------------------------------

# Intervals can be infinite since 17.
if ($look->value(q{SELECT current_setting('server_version_num')::int >= 170000})) {
    $look->fails("SELECT advisory.$_", '22008', "$_: 22008")
        for "lease('l', 'i', 'infinity')", "lease('l', 'i', '1h', lock_delay => 'infinity')",
        "renew_lease('l', 'i', 1, 'infinity')";
    $look->fails("SELECT advisory.$_", '22023', "$_: 22023") for "lease('l', 'i', '-infinity')",
        "lease('l', 'i', '1h', lock_delay => '-infinity')";
}

# ---- Statistics ----------------------------------------------------------------------------------

{
    sub hold ($name) {
        return $look->value('SELECT extract(epoch FROM hold_total) FROM advisory.stats
            WHERE namespace = ? AND name = ?', 'l', $name);
    }
    my ($owner, $other) = map { session() } 1 .. 2;
    my $from = time;
    my $token = lease($owner, 'timed');
    sleep 0.1;
    cmp_ok(hold('timed'), '==', 0, 'stats: a lease that is held');
    $other->run("SELECT advisory.end_lease('l', 'timed', 1)");
    cmp_ok(hold('timed'), '==', 0, 'stats: or that the wrong token ends');
    $other->run("SELECT advisory.end_lease('l', 'timed', $token)");
    my $held = hold('timed');
    cmp_ok($held, '>=', 0.1, 'stats: counts as a hold when it is ended, by any session');
    cmp_ok($held, '<=', time - $from, 'stats: for as long as it was held');
    $owner->run("SELECT advisory.lease('l', 'timed', '50ms')");
    sleep 0.2;
    $other->run("SELECT advisory.lease('l', 'timed', '1h')");
    is(sprintf('%.3f', hold('timed') - $held), '0.050',
        'stats: or when it is taken over, for as long as it had not expired');
    $look->shows("SELECT acquired FROM advisory.stats WHERE namespace = 'l' AND name = 'timed'", 3,
        'stats: and each as a grant');
    my $broken_at = hold('timed');
    $look->run("SELECT advisory.break_lease('l', 'timed')");
    cmp_ok(hold('timed'), '>', $broken_at, 'stats: or when it is broken');
    $token = lease($owner, 'since the reset');
    sleep 0.5;
    $from = time;
    $look->run('SELECT advisory.stats_reset()');
    $other->run("SELECT advisory.end_lease('l', 'since the reset', $token)");
    cmp_ok(hold('since the reset'), '<=', time - $from,
        'stats: and after a reset, for as long as since then');
}

done_testing();
