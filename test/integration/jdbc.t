#!/usr/bin/env perl
# Java: the unchanged example, several instances at once; and how JDBC sends values and calls over
# the extended protocol.
use AdvisoryTest;
use FindBin;
use Launch;
use Programs;

my @java = java(examples('java/Patterns.java'), "$FindBin::Bin/Calls.java")
    or plan skip_all => 'Java or the JDBC driver is not here';

# JDBC knows no Unix sockets.
my $port   = free_port();
my $server = own_server('listen_addresses=127.0.0.1', "port=$port");
my $url = "jdbc:postgresql://127.0.0.1:$port/postgres?user=$server->{PGUSER}";
my $session = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $gate    = session(server => $server);

sub patterns (@how) { return launch(@java, 'Patterns', "$url&ApplicationName=patterns", @how) }

# ---- A job that must not overlap -----------------------------------------------------------------

$session->run(
    'CREATE TABLE usage (customer_id bigint, amount numeric, billed boolean DEFAULT false)',
    'CREATE TABLE invoice (customer_id bigint, total numeric)',
    'INSERT INTO usage SELECT c, c FROM generate_series(1, 3) c, generate_series(1, 2)');
$gate->run('BEGIN', 'LOCK TABLE invoice IN SHARE MODE');
my $first = patterns('bill');
wait_for($session, 1, 'patterns', 'relation');
my $holder = waiting_pid($session, 'patterns');
patterns('bill')->ends(
    75, qr/^Process $holder of role "\w+", application "patterns", holds it in exclusive mode/,
    'a job that finds another at work fails for the time being, and names the holder');
ok(!$first->is_done, 'while that one works');
$gate->run('COMMIT');
$first->ends(0, "billed 3 customers\n", 'which bills everybody');
$session->shows('SELECT customer_id, total FROM invoice ORDER BY 1', [ '1|2', '2|4', '3|6' ],
    'once');

# ---- One at a time for each user, and a webhook, together ----------------------------------------

$session->run('CREATE TABLE app_user (id bigint, exports integer DEFAULT 0)',
    'INSERT INTO app_user VALUES (7), (8)',
    'CREATE TABLE orders (id bigint, user_id bigint, amount numeric)',
    'INSERT INTO orders VALUES (1, 7, 10), (2, 8, 20), (3, 7, 30)',
    'CREATE TABLE webhook_event (id text PRIMARY KEY)',
    'CREATE TABLE account (id bigint, balance numeric DEFAULT 0)',
    'INSERT INTO account VALUES (7)');
$gate->run('BEGIN', 'SELECT FROM app_user WHERE id = 7 FOR UPDATE');
$first = patterns('export', 7);
wait_for($session, 1, 'patterns', 'transactionid');
$holder = waiting_pid($session, 'patterns');
my $other = patterns('export', 8);
patterns('export', 7)->ends(75,
    qr{^an\ export\ of\ user\ 7\ is\ under\ way:\ Process\ $holder\ of\ role\ "\w+",
    \ application\ "patterns",\ holds\ it\ in\ exclusive\ mode}x,
    'the second export of a user fails for the time being, and is told by whom');
$other->ends(0, "2,20\n", 'that of another user is done meanwhile');
$gate->run('COMMIT');
$first->ends(0, "1,10\n3,30\n", 'and then the first');
$session->shows('SELECT id, exports FROM app_user ORDER BY 1', [ '7|1', '8|1' ], 'each once');

$gate->run('BEGIN', 'SELECT FROM account FOR UPDATE');
my @deliveries = map { patterns('webhook', 'evt_1', 7, '12.50') } 1 .. 3;
wait_for($session, 1, 'patterns', 'transactionid');
wait_for($session, 2, 'patterns', 'advisory');
$gate->run('COMMIT');
is_deeply([ sort map { join ' ', $_->finish } @deliveries ],
    [ "handled\n 0", ("handled before\n 0") x 2 ],
    'of three deliveries at once one is handled, and all are answered');
$session->shows('SELECT balance FROM account', '12.50', 'the money is there, once');
$session->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0, 'no lock is left');

# ---- What JDBC makes of values and calls ---------------------------------------------------------

launch(@java, 'Calls', $url, calls())->reports(1500);
done_testing();
