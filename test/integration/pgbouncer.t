#!/usr/bin/env perl
# Behind PgBouncer. In transaction mode a server connection serves the client that has a
# transaction. Transaction-level locks and slots work there under load. A session-level lock stays
# behind when its client has gone, which a setting can forbid, and which advisory.leaks shows. In
# session mode everything works as without a pooler.
use AdvisoryTest;
use Launch;
use PgBouncer;
use Programs;

use constant { CLIENTS => 12, SERVERS => 4, SLOTS => 2, TIMES => 20 };

plan skip_all => 'there is no PgBouncer here' unless pgbouncer();
plan skip_all => 'there is no pgbench here'   unless program('pgbench');

my $server = own_server();
my $look = session(server => $server);
$look->run('CREATE EXTENSION advisory_ext', 'CREATE ROLE app LOGIN',
    'GRANT pg_read_all_stats TO app');

# As a role, and as the application that PgBouncer is told of.
sub client ($pooler, $application) {
    return session(server => $pooler, role => 'app', application => $application);
}

sub pooler (@settings) { return PgBouncer->new($server, @settings) }

# Holders and locks, as the server sees them: "pid namespace/name".
sub held {
    return join ', ', map { "$_->[0] $_->[1]" } @{ $look->rows(<<'SQL') };
        SELECT pid, namespace || '/' || name FROM advisory.locks WHERE granted
        ORDER BY pid, namespace, name, slot
SQL
}

sub backend ($session) { return $session->value('SELECT pg_backend_pid()') }

# ---- Transaction mode: transaction-level locks under load ----------------------------------------

# What each client does in the critical section: reads, takes its time, and writes what it read plus
# one. Two of them inside at the same time lose a step, and the visitors' book shows it.
$look->run(
    'CREATE TABLE counter (what text PRIMARY KEY, value int NOT NULL)',
    'CREATE TABLE visit (what text, client int, entered numeric, departed numeric)',
    'CREATE TABLE refused (what text)',
    'GRANT ALL ON counter, visit, refused TO app');

sub visit ($what) {
    return <<"SQL";
        SELECT value AS seen, extract(epoch FROM clock_timestamp()) AS entered
            FROM counter WHERE what = $what \\gset
        SELECT pg_sleep(0.002);
        UPDATE counter SET value = :seen + 1 WHERE what = $what;
        INSERT INTO visit
            VALUES ($what, :client_id, :entered, extract(epoch FROM clock_timestamp()));
SQL
}

my $busy = pooler(pool_mode => 'transaction', default_pool_size => SERVERS);

# A script of pgbench's, by CLIENTS clients, TIMES times each.
sub load ($protocol, $script) {
    return launch('pgbench', '-n', '-M', $protocol, '-c', CLIENTS, '-t', TIMES,
        '-f', spew(scratch() . '/script', $script), '-h', $busy->{PGHOST}, '-p', $busy->{PGPORT},
        '-U', 'app', 'postgres')->ends(0, qr/^/, '... all of them got through');
}

sub steps { return $look->value('SELECT sum(value) FROM counter WHERE what ~ ?', $_[0]) }

# How many were inside at once, at the most.
sub together {
    return $look->value(<<'SQL', $_[0]);
        SELECT max(n) FROM (SELECT count(*) AS n FROM visit a JOIN visit b ON b.entered <= a.entered
        AND a.entered < b.departed
            WHERE a.what ~ $1 AND b.what ~ $1 GROUP BY a.ctid) AS moment
SQL
}

my $all = CLIENTS * TIMES;
$look->run(q{INSERT INTO counter SELECT what, 0
        FROM unnest(ARRAY['none', 'lock', 'try', 'slot 1', 'slot 2']) AS what});

load(simple => "BEGIN;\n" . visit(q{'none'}) . 'COMMIT;');
cmp_ok(steps('none'), '<', $all,
    'without a lock, counting up loses something (so the test can fail)');
cmp_ok(together('none'), '>', 1, '... since several are inside at once');

load(extended => "BEGIN;\nSELECT advisory.xact_lock('critical', 'lock', '60s');\n"
    . visit(q{'lock'}) . 'COMMIT;');
is(steps('lock'), $all, 'xact_lock: counting up loses nothing');
is(together('lock'), 1, '... one at a time');

load(simple => "BEGIN;\nSELECT advisory.try_xact_lock('critical', 'try') AS mine \\gset\n\\if "
    . ":mine\n" . visit(q{'try'})
    . "\\else\nINSERT INTO refused VALUES ('try');\n\\endif\nCOMMIT;");
my $refused = $look->value('SELECT count(*) FROM refused');
cmp_ok($refused, '>', 0, 'try_xact_lock: some are refused');
is(steps('try') + $refused, $all, '... all the others count up, and that loses nothing');
is(together('try'), 1, '... one at a time');

load(extended => "BEGIN;\nSELECT 'slot ' || advisory.xact_acquire('critical', 'slots', @{[SLOTS]}, "
    . "'60s') AS slot \\gset\n"
    . visit(':slot') . 'COMMIT;');
is(steps('slot'), $all, 'xact_acquire: counting up by slot loses nothing');
is(together('slot'), SLOTS, '... as many at a time as there are slots');
is(together("slot $_"), 1, "... one in slot $_") for 1 .. SLOTS;

# Jobs and leases need no connection of their own, either.
$look->run(<<'SQL', 'GRANT EXECUTE ON FUNCTION step(text) TO app');
    CREATE FUNCTION step(counted text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        seen int := (SELECT value FROM counter WHERE what = counted);
    BEGIN
        PERFORM pg_sleep(0.002);
        UPDATE counter SET value = seen + 1 WHERE what = counted;
    END $$
SQL
$look->run(q{INSERT INTO counter VALUES ('run', 0), ('window', 0)});
load(simple => q{CALL advisory.run('critical', 'run', $$SELECT step('run')$$, '60s');});
is(steps('run'), $all, 'run: counting up loses nothing');
load(simple => q{CALL advisory.run('critical', 'window', $$SELECT step('window')$$,
        once_per => '1 hour', once_window => '2026-01-01 00:00+00');});
is(steps('window'), 1, 'run with once_per: once per window');
my $owner = client($busy, 'owner');
my $token = $owner->value(q{SELECT token FROM advisory.lease('critical', 'lease', '1 min')});
$owner->disconnect;
is(client($busy, 'other')
    ->value(q{SELECT token FROM advisory.try_lease('critical', 'lease', '1 min')}), undef,
    'a lease stays when its client has gone');
is(client($busy, 'owner')
    ->value(q{SELECT advisory.renew_lease('critical', 'lease', ?) > now()}, $token), 1,
    '... which renews it through another connection');
is(client($busy, 'owner')->value(q{SELECT advisory.end_lease('critical', 'lease', ?)}, $token), 1,
    '... and ends it');

cmp_ok($look->value('SELECT count(DISTINCT pid) FROM pg_stat_activity WHERE usename = ?', 'app'),
    '<=', SERVERS, 'few server connections did it all');
is(held(), '', '... and hold nothing any more');
$busy->stop;

# ---- Transaction mode: a session-level lock leaks ------------------------------------------------

# One server connection, so that it is the same that serves everybody.
my $one = pooler(pool_mode => 'transaction', default_pool_size => 1);
my $careless = client($one, 'careless');
my $backend = backend($careless);
is($careless->value(q{SELECT advisory.lock('export', 7)}), 1,
    'a client takes a session-level lock through the transaction pooler');
$careless->value(q{SELECT advisory.acquire('export', 'slots', 3)});
$careless->disconnect;
is(held(), "$backend export/7, $backend export/slots",
    '... and leaves it behind on the server connection');
is($look->value('SELECT count(*) FROM advisory.leaks'), 0,
    'it is no leak yet: nobody else has come, and no time has passed');

# The plain way to find it: idle for long. It has to be longer than nothing.
$look->wait_until('the connection has been idle for a while',
    q(SELECT clock_timestamp() - state_change > '1.1s' FROM pg_stat_activity WHERE pid = ?),
    $backend);
$look->run(q{SET advisory_ext.leak_after = '1s'});
$look->shows(q(SELECT pid, namespace, name, slot, taken_by_role, taken_by_application,
    regexp_replace(reason, '\d+', 'N') FROM advisory.leaks ORDER BY name),
    [ map { "$backend|export|$_|app|careless|idle outside a transaction for N s" } '7|NULL',
        'slots|1' ],
    'idle for longer than leak_after: a leak, with its role and application, and why');
$look->run('RESET advisory_ext.leak_after');
is($look->value('SELECT count(*) FROM advisory.leaks'), 0, '... but not with ten minutes');

my $next = client($one, 'next');
is(backend($next), $backend, 'the same server connection serves another client');
is($next->value(q{SELECT advisory.try_lock('export', 7)}), 1,
    '... which is told that the lock is its own, wrongly');
is($next->value(q{SELECT advisory.unlock('export', 7)}), 1, '... (and gives that back)');
$look->shows('SELECT pid, application_name, namespace, name, slot, taken_by_role, reason
    FROM advisory.leaks ORDER BY name',
    [ map { "$backend|next|export|$_|app|taken by application \"careless\", now serves \"next\"; "
        . "held through 3 transactions of others' work" } '7|NULL', 'slots|1' ],
    'now it is a leak at once, with the application that took it and the one that is served');
$next->shows('SELECT namespace, name, taken_by_application FROM advisory.leaks ORDER BY name',
    [ 'export|7|careless', 'export|slots|careless' ], '... as the clients see it too');

# On a busy connection, all clients of which are one application: nothing tells it from a leader
# that works.
my ($careless_too, $colleague) = (client($one, 'next'), client($one, 'next'));
$careless_too->value(q{SELECT advisory.lock('export', 9)});
$colleague->value('SELECT 1') for 1 .. 5;
is($look->value(q{SELECT count(*) FROM advisory.leaks WHERE name = '9'}), 0,
    'on a busy connection of one application a lock that was left is not found');
$careless_too->value(q{SELECT advisory.unlock('export', 9)});
$_->disconnect for $careless_too, $colleague;

# Unless PgBouncer adds the client's address to its application_name, also when the first client is
# back. (By TCP, because a socket's address is the client's process.)
my $named = pooler(pool_mode => 'transaction', default_pool_size => 1,
    application_name_add_host => 1, listen_addr => '127.0.0.1');
my $by_tcp = { %$named, PGHOST => '127.0.0.1' };
($careless_too, $colleague) = (client($by_tcp, 'same'), client($by_tcp, 'same'));
$careless_too->value(q{SELECT advisory.lock('export', 10)});
$colleague->value('SELECT 1') for 1 .. 5;
$careless_too->value('SELECT 1');
is($look->value(q{SELECT reason FROM advisory.leaks WHERE name = '10'}),
    q{held through 5 transactions of others' work}, 'with application_name_add_host it is');
$_->disconnect for $careless_too, $colleague;
$named->stop;

# PAUSE closes a server connection between two transactions of its client.
$one->console('PAUSE');
$one->console('RESUME');
$look->wait_until('the server connection is gone',
    'SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ?', $backend);
is(held(), '', 'PAUSE and RESUME in its console take session-level locks away');
$backend = backend($next);

# ---- Transaction mode: session-level locks turned off --------------------------------------------

$look->run('ALTER ROLE app SET advisory_ext.session_locks = off');
is($next->value(q{SELECT advisory.lock('export', 8)}), 1,
    'a role setting is for new connections, and the pooler still has an old one');
$one->console('RECONNECT');
$look->wait_until('the old server connection is gone',
    'SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ?', $backend);
is(held(), '', 'RECONNECT in its console closes that, and what leaked goes with it');

# (test/sql/80_settings.sql has the hint of each function.)
for my $case ([ q{SELECT advisory.lock('export', 7, '5s')}, 'xact_lock' ],
    [ q{CALL advisory.await_acquire('export', 'slots', 3)}, 'xact_acquire' ]) {
    my ($statement, $instead) = @$case;
    my $result = $next->fails($statement, '55000', "turned off: $statement");
    is($result->{hint}, "Use advisory.$instead() instead.", '... with what to use instead');
}
is($next->value(q{SELECT advisory.xact_lock('export', 7, '5s')}), 1, 'what the hints name works');
$next->shows(q{SELECT advisory.try_xact_lock_all('export', ARRAY[7, 8])}, 1, '... so does this');
is($next->value(q{SELECT advisory.xact_acquire('export', 'slots', 3)}), 1, '... and this');
is(held(), '', '... and nothing is left behind');

$look->run('ALTER ROLE app SET advisory_ext.session_locks = warn');
$one->console('RECONNECT');
wait_until('the setting has come through',
    sub { $next->value('SHOW advisory_ext.session_locks') eq 'warn' });
my $warned = $next->query(q{SELECT advisory.lock('export', 7)});
is($warned->{value}, 1, 'set to warn, it works');
like("@{ $warned->{warnings} }",
    qr/session-level advisory lock taken.*\n.*\n.*Use advisory\.xact_lock\(\) instead/,
    '... with a warning that reaches the client');
$look->run('ALTER ROLE app RESET advisory_ext.session_locks');
$next->disconnect;
$one->stop;

# ---- Session mode --------------------------------------------------------------------------------

my $pooler = pooler(pool_mode => 'session', default_pool_size => 3);
my @clients = map { client($pooler, "client $_") } 1 .. 3;
my @backends = map { backend($_) } @clients;

# The client waits in a queue, as the server sees it.
sub asleep ($number) {
    return $look->wait_until("client $number waits",
        'SELECT count(*) FROM advisory.locks WHERE pid = ? AND NOT granted', $backends[$number]);
}

# A client that disconnects. Its server connection is cleaned, and serves the next client.
sub replace ($number) {
    $clients[$number]->disconnect;
    $look->wait_until("the connection of client $number is clean", q{SELECT state = 'idle'
        AND query = 'DISCARD ALL' FROM pg_stat_activity WHERE pid = ?}, $backends[$number]);
    $clients[$number] = client($pooler, 'new client ' . ($number + 1));
    $backends[$number] = backend($clients[$number]);
    return;
}

my ($first, $second) = @clients;
is($first->value(q{SELECT advisory.lock('job', 1)}), 1, 'session mode: a session-level lock');
is($first->value(q{SELECT advisory.holds('job', 1)}), 1,
    '... which the client has still in its next transaction');
is($second->value(q{SELECT advisory.try_lock('job', 1)}), 0, '... and nobody else can have');
my $timeout = $second->fails(q{SELECT advisory.lock('job', 1, '200ms')}, '55P03',
    '... a wait with a timeout ends in an error');
like($timeout->{detail}, qr/^Process $backends[0] of role "app", application "client 1", holds it/,
    '... that names the holder, through the pooler');
$second->start(q{SELECT advisory.lock('job', 1, '60s')});
asleep(1);
$first->run(q{SELECT advisory.unlock('job', 1)});
$second->returns(1, '... or when it is given back');

$first->start(q{CALL advisory.await_lock('job', 1, '60s')});
asleep(0);
is($look->value('SELECT backend_xmin IS NULL FROM pg_stat_activity WHERE pid = ?', $backends[0]), 1,
    'await_lock waits without a snapshot');
my $old = $backends[1];
replace(1);
ok(!$first->finish->{state}, '... until the holder disconnects, which releases');
is($backends[1], $old, '... (its server connection is still there, and serves another client)');
is(held(), "$backends[0] job/1", '... and the lock is the waiter\'s');

is($_->value(q{SELECT advisory.acquire('workers', 'embedding', 2)}), $_ == $clients[0] ? 1 : 2,
    'a slot') for @clients[ 0, 1 ];
$clients[2]->start(q{SELECT advisory.acquire('workers', 'embedding', 2, '60s')});
asleep(2);
$old = $backends[0];
replace(0);
$clients[2]->returns(1, 'the slot of a client that disconnects goes to the next waiter');
is($backends[0], $old, '... (its server connection is still there)');
is(held(), join(', ', map { "$_ workers/embedding" } sort { $a <=> $b } @backends[ 1, 2 ]),
    '... and of that client nothing is left');

$_->disconnect for @clients;
ok(wait_until('nothing is held', sub { held() eq '' }), 'when all have gone, nothing is held');
is($look->value('SELECT count(*) FROM advisory.leaks'), 0, '... nor is there a leak');

done_testing();
