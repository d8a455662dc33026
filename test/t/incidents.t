#!/usr/bin/env perl
# Ten incidents as a DBA meets them at 3 a.m., each built anew: one or two statements show what is
# wrong and what ends it, on a terminal of 120 columns and 60 lines. It takes 500 sessions that
# wait, a full lock table, and what psql prints.
use AdvisoryTest;
use Screen;

use constant { WAITERS => 500, COLUMNS => 120, LINES => 60 };

my $BLOCKERS = 'SELECT * FROM advisory.blockers \gx';
my $ACTIVITY = 'SELECT * FROM advisory.activity;';
my $TREE = 'SELECT * FROM advisory.wait_tree();';

my $server = own_server('max_connections=' . (WAITERS + 40), 'advisory_ext.leak_after=1ms');
sub there { return session(server => $server, @_) }
my $look = there(application => 'look');
$look->run('CREATE EXTENSION advisory_ext', 'CREATE TABLE item (id int PRIMARY KEY, n int)',
    'INSERT INTO item VALUES (1, 0)', 'CREATE ROLE app LOGIN', 'GRANT ALL ON item TO app');

# With a full lock table nobody can connect any more.
my @connected;

# Each statement with what its output must contain.
sub incident ($what, @looks) {
    cmp_ok(@looks / 2, '<=', 2, "$what: at most two statements");
    while (my ($statement, $shows) = splice @looks, 0, 2) {
        my $text = screen($statement, server => $server, database => 'postgres',
            psql => shift @connected);
        my $lines = () = $text =~ /\n/g;
        cmp_ok(columns($text), '<=', COLUMNS, "$what: $statement is not too wide") or diag $text;
        cmp_ok($lines, '<=', LINES, "$what: nor too long") or diag $text;
        like($text, $_, "$what: it shows $_") for @$shows;
    }
    return;
}

# What blockers names as the remedy, which is run, and must end the waits of these sessions.
sub cured ($what, @waiters) {
    $look->run($_->[0]) for @{ $look->rows('SELECT remedy FROM advisory.blockers') };
    $_->ends(undef, "$what: the remedy ends it") for @waiters;
    leave($look, @waiters);
    return;
}

sub waiter ($statement, %how) {
    my $waiter = there(role => 'app', application => 'worker', %how);
    $waiter->start($statement);
    $look->wait_until('it waits',
        'SELECT count(*) FROM advisory.waits WHERE pid = ? AND waited IS NOT NULL', $waiter->pid);
    return $waiter;
}

{
    my $migration = there(application => 'migrate')->run('SELECT pg_advisory_lock(72707369)',
        'BEGIN');
    my @next = map { waiter('SELECT pg_advisory_lock(72707369)') } 1 .. 2;
    my $pid = $migration->pid;
    incident('a stuck migration', $ACTIVITY => [qr/"Prisma Migrate: migra.*\b$pid\b.*idle in xact/],
        $BLOCKERS => [qr/^waiters +\| 2$/m, qr/advisory\.terminate_holder_key\(72707369, $pid\);/]);
    cured('a stuck migration', shift @next);
}

{
    my $pooled = there(application => 'pool')->run(q(SELECT advisory.lock('billing', 'invoice:42')),
        'SELECT pg_sleep(0.01)');
    my $next = waiter(q(SELECT advisory.lock('billing', 'invoice:42')));
    my $pid = $pooled->pid;
    incident('a lock forgotten in a pool', 'SELECT * FROM advisory.leaks \gx' => [
            qr/^pid +\| $pid$/m, qr/^name +\| invoice:42$/m, qr/^reason +\| \w/m ],
        $BLOCKERS => [qr/terminate_holder\('billing', 'invoice:42', $pid\);/]);
    cured('a lock forgotten in a pool', $next);
}

{
    # They keep a whole pool, though nobody waits: others only try.
    my @idle = map {
        there(role => 'app', application => 'shop')
            ->run('BEGIN', "SELECT advisory.try_xact_lock('cart', $_)")
    } 1 .. 20;
    my $failed = there(role => 'app', application => 'shop')->run('SELECT pg_advisory_lock(4711)',
        'BEGIN');
    $failed->query('SELECT 1/0');
    my ($lease) = @{ $look->rows(q(SELECT token FROM advisory.lease('leader', 'a', '1ms')))->[0] };
    my $relies = there()->run('BEGIN', "SELECT advisory.check_lease('leader', 'a', $lease)");
    is_deeply($look->rows(q(SELECT pid, kind, namespace, key, mode,
            reason ~ '^idle in a transaction for \d+ s$', state FROM advisory.leaks ORDER BY pid)),
        [ (map { [ $idle[ $_ - 1 ]->pid, 'lock', 'cart',
            $look->value("SELECT advisory.key('cart', $_)"), 'exclusive', 1,
            'idle in transaction' ] } 1 .. 20),
            [ $failed->pid, 'lock', undef, 4711, 'exclusive', 1, 'idle in transaction (aborted)' ],
            [ $relies->pid, 'lease', 'leader', $look->value(q(SELECT advisory.key('leader', 'a'))),
                'shared', 1, 'idle in transaction' ] ],
        'leaks shows who is idle in a transaction, though nobody waits');
    my $busy = $idle[0]->start('SELECT pg_sleep(600)');
    $look->wait_until('it works', q(SELECT state = 'active' FROM pg_stat_activity WHERE pid = ?),
        $busy->pid);
    $look->shows('SELECT count(*) FROM advisory.leaks WHERE pid = ?', 0, '... but not who works',
        $busy->pid);
    $look->run(q(SET advisory_ext.leak_after = '1h'));
    $look->shows('SELECT count(*) FROM advisory.leaks', 0, '... nor who has just begun to be idle');
    $look->run('RESET advisory_ext.leak_after');
    leave($look, @idle, $failed, $relies);
    $look->run(q(SELECT advisory.break_lease('leader', 'a')));
}

{
    my @hung = map { there(application => "render-$_")
        ->run(q(SELECT advisory.acquire('reports', 'render', 3))) } 1 .. 3;
    my $next = waiter(q(SELECT advisory.acquire('reports', 'render', 3)));
    my $pids = join ',', map { $_->pid } @hung;
    incident('hung slots', 'SELECT * FROM advisory.semaphores \gx' => [ qr/^name +\| render$/m,
            qr/^free +\| 0$/m, qr/^holders +\| \{$pids\}$/m ], $BLOCKERS => [ map {
        my $pid = $_->pid;
        qr/terminate_holder\('reports', 'render', $pid\);/
    } @hung ]);
    cured('hung slots', $next);
}

{
    my $owner = there(role => 'app', application => 'leader')
        ->run(q(SELECT advisory.lease('service', 'leader', '1 hour', owner => 'host-1')));
    leave($look, $owner);
    my $next = waiter(q(SELECT advisory.lease('service', 'leader', '1 hour')));
    incident('a lease whose owner is dead',
        $BLOCKERS => [ qr/^who +\| host-1$/m, qr/break_lease\('service', 'leader', \d+\);/ ],
        $ACTIVITY => [qr/service\/leader +\| +\| lease .*host-1/]);
    cured('a lease whose owner is dead', $next);
}

{
    # The loser keeps the lock that it has, for which the other one still waits.
    my ($one, $two) = map { there(role => 'app', application => $_) } qw(one two);
    $one->run(q(SELECT advisory.lock('q', 'a')));
    $two->run(q(SELECT advisory.lock('q', 'b')));
    waits($look, $one, q(SELECT advisory.lock('q', 'b')));
    $two->start(q(SELECT advisory.lock('q', 'a')));
    wait_until('the server ends one of the waits', sub { $one->is_done || $two->is_done });
    my ($loser, $other) = $one->is_done ? ($one, $two) : ($two, $one);
    my $error = $loser->ends('40P01', 'a deadlock: one session gets the error');
    like($error->{detail}, qr{"q/a".*"q/b"|"q/b".*"q/a"}s, '... with the names of both locks');
    my $pid = $loser->pid;
    incident('a deadlock', $BLOCKERS => [qr/terminate_holder\('q', '[ab]', $pid\);/],
        $TREE => [qr/$pid app\@\w+ holds q\/[ab] /]);
    cured('a deadlock', $other);
}

{
    my $holder = there(application => 'holder')
        ->run(q(SELECT advisory.lock('billing', 'invoice:42')));
    my $root = there(application => 'root')->run('BEGIN', 'UPDATE item SET n = 1');
    waits($look, $holder, 'UPDATE item SET n = 2');
    my $next = waiter(q(SELECT advisory.lock('billing', 'invoice:42')));
    my ($pid, $middle) = ($root->pid, $holder->pid);
    incident('a holder that waits for a row',
        $BLOCKERS => [ qr/^waiters +\| 2$/m, qr/advisory\.terminate_blocker\($pid, '/ ],
        $TREE => [qr/^ $pid .*\n +$middle .* waits for .*\n.*waits for billing\/invoice:42/m]);
    $look->run($look->value('SELECT remedy FROM advisory.blockers'));
    $holder->ends(undef, 'a holder that waits for a row: the remedy ends its wait');
    leave($look, $holder);
    $next->ends(undef, '... and then that of the others');
}

{
    my $run = there(application => 'nightly')->run('BEGIN',
        q(SELECT advisory.claim('jobs', 'nightly', '1 hour', '2026-01-01 00:00Z')));
    my $next = waiter(q(SELECT advisory.claim('jobs', 'nightly', '1 hour', '2026-01-01 00:00Z')));
    my ($pid, $waits) = ($run->pid, $next->pid);
    incident('a waiter in claim()',
        $BLOCKERS => [ qr/^waiters +\| 1$/m, qr/advisory\.terminate_blocker\($pid, '/ ], $TREE => [
            qr/^ $pid .*idle in transaction.*\n +$waits .* waits for a window of jobs\/nightly/m]);
    cured('a waiter in claim()', $next);
}

# ---- 500 waiters ---------------------------------------------------------------------------------

my @waiters = map { there(application => sprintf 'worker-%d', $_) } 1 .. WAITERS;

sub all_wait ($statement) {
    $_->start($statement) for @waiters;
    wait_until('all wait', sub { $look->value('SELECT count(*) FROM advisory.locks
            WHERE wait_start IS NOT NULL') == WAITERS }, 120);
    return;
}

sub end_waits {
    $look->run('SELECT count(pg_cancel_backend(pid)) FROM advisory.locks WHERE NOT granted');
    $_->finish for @waiters;
    return;
}

{
    my $holder = there(application => 'worker-0')
        ->run(q(SELECT advisory.lock('billing', 'invoice:42')));
    all_wait(q(SELECT advisory.lock('billing', 'invoice:42')));
    my $pid = $holder->pid;
    incident('500 waiters for a lock', $ACTIVITY => [ qr/^ \(490 more\) .*\| $pid *$/m,
            qr/^ billing\/invoice:42 .* $pid .*worker-0 .*idle/m ],
        $BLOCKERS => [ qr/^waiters +\| 500$/m, qr/invoice:42', $pid\);/ ]);
    incident('500 waiters for a lock', $TREE => [qr/and 490 more, the longest \d+ s/]);
    end_waits();
}

{
    my @holders = map { there(application => "holder-$_")
        ->run(q(SELECT advisory.acquire('reports', 'render', 3))) } 1 .. 3;
    all_wait(q(SELECT advisory.acquire('reports', 'render', 3)));
    my $pids = join ',', sort { $a <=> $b } map { $_->pid } @holders;
    incident('500 waiters for a semaphore', $ACTIVITY => [qr/^ \(490 more\) .*\| $pids *$/m],
        $BLOCKERS => [ qr/(?:\nwaiters +\| 500\n.*?){3}/s, map {
        my $pid = $_->pid;
        qr/render', $pid\);/
    } @holders ]);
    incident('500 waiters for a semaphore', $TREE => [ qr/and 490 more, the longest \d+ s/,
            qr/and 2 more holders/ ]);
    end_waits();
}
leave($look, @waiters);
$look->disconnect;
$server->stop;

# ---- A full lock table ---------------------------------------------------------------------------

$server = own_server('max_connections=20', 'max_locks_per_transaction=10');
$look = there(application => 'look')->run('CREATE EXTENSION advisory_ext');
{
    @connected = map { psql_begun(server => $server, database => 'postgres') } 1 .. 2;
    wait_until('both are connected', sub { $look->value(q(SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'psql')) == 2 });
    my $hog = there(application => 'import');
    $hog->fails('SELECT pg_advisory_lock(i) FROM generate_series(1, 100000) AS i', '53200',
        'a full lock table');
    my $pid = $hog->pid;
    incident('a full lock table',
        'SELECT * FROM advisory.pressure \gx' => [qr/^status +\| critical$/m],
        'SELECT * FROM advisory.pressure_by_backend LIMIT 5;' => [qr/^ +$pid .*import/m]);
}

done_testing();
