#!/usr/bin/env perl
# Java: the unchanged example, several instances at once; and how JDBC sends values and calls over
# the extended protocol.
use FindBin;
use lib "$FindBin::Bin/../t/lib", "$FindBin::Bin/lib";
use AdvisoryTest;
use Launch;
use Programs;

my $jdbc = '/usr/share/java/postgresql.jar';
-e $jdbc or plan skip_all => 'the JDBC driver is not here';
program('javac') && program('java') or plan skip_all => 'Java is not here';

# JDBC knows no Unix sockets.
my $port   = free_port();
my $server = own_server('listen_addresses=127.0.0.1', "port=$port");
my $url = "jdbc:postgresql://127.0.0.1:$port/postgres?user=$server->{PGUSER}";
my $session = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $gate    = session(server => $server);

# (The second half of the compiler would cost more than it gains here.)
my @JAVA = ('java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', scratch() . ":$jdbc");
my ($said, $status) = run_program('javac', '-encoding', 'UTF-8', '-cp', $jdbc, '-d', scratch(),
    examples('java/Patterns.java'), "$FindBin::Bin/Calls.java");
is($status, 0, 'the example compiles') or BAIL_OUT($said);

sub patterns { return launch(@JAVA, 'Patterns', "$url&ApplicationName=patterns", @_) }

# How many sessions of the example wait, and for what (as in pg_stat_activity).
sub wait_for ($count, $event) {
    return wait_until("$count wait for $event", sub { $session->value(<<'SQL', $event) == $count });
        SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'patterns' AND wait_event_type = 'Lock' AND wait_event = $1
SQL
}

sub pid_of_waiter {
    return $session->value("SELECT pid FROM pg_stat_activity WHERE application_name = 'patterns'
            AND wait_event_type = 'Lock'");
}

# ---- A job that must not overlap -----------------------------------------------------------------

$session->run(
    'CREATE TABLE usage (customer_id bigint, amount numeric, billed boolean DEFAULT false)',
    'CREATE TABLE invoice (customer_id bigint, total numeric)',
    'INSERT INTO usage SELECT c, c FROM generate_series(1, 3) c, generate_series(1, 2)');
$gate->run('BEGIN', 'LOCK TABLE invoice IN SHARE MODE');
my $first = patterns('bill');
wait_for(1, 'relation');
my $holder = pid_of_waiter();
($said, $status) = patterns('bill')->finish;
is($status, 75, 'a job that finds another at work fails for the time being');
like($said, qr/^Process $holder of role "\w+", application "patterns", holds it in exclusive mode/,
    'and names the holder');
ok(!$first->is_done, 'while that one works');
$gate->run('COMMIT');
is_deeply([ $first->finish ], [ "billed 3 customers\n", 0 ], 'which bills everybody');
is_deeply($session->rows('SELECT customer_id, total FROM invoice ORDER BY 1'),
    [ [ 1, 2 ], [ 2, 4 ], [ 3, 6 ] ], 'once');

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
wait_for(1, 'transactionid');
$holder = pid_of_waiter();
my $other = patterns('export', 8);
($said, $status) = patterns('export', 7)->finish;
is($status, 75, 'the second export of a user fails for the time being');
like($said, qr{^an\ export\ of\ user\ 7\ is\ under\ way:\ Process\ $holder\ of\ role\ "\w+",
    \ application\ "patterns",\ holds\ it\ in\ exclusive\ mode}x,
    'and is told by whom');
is_deeply([ $other->finish ], [ "2,20\n", 0 ], 'that of another user is done meanwhile');
$gate->run('COMMIT');
is_deeply([ $first->finish ], [ "1,10\n3,30\n", 0 ], 'and then the first');
is_deeply($session->rows('SELECT id, exports FROM app_user ORDER BY 1'), [ [ 7, 1 ], [ 8, 1 ] ],
    'each once');

$gate->run('BEGIN', 'SELECT FROM account FOR UPDATE');
my @deliveries = map { patterns('webhook', 'evt_1', 7, '12.50') } 1 .. 3;
wait_for(1, 'transactionid');
wait_for(2, 'advisory');
$gate->run('COMMIT');
my @said = map { [ $_->finish ] } @deliveries;
is_deeply([ sort map { $_->[0] } @said ], [ "handled\n", ("handled before\n") x 2 ],
    'of three deliveries at once one is handled');
is_deeply([ map { $_->[1] } @said ], [ 0, 0, 0 ], 'and all are answered');
is($session->value('SELECT balance FROM account'), '12.50', 'the money is there, once');
is($session->value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0,
    'no lock is left');

# ---- What JDBC makes of values and calls ---------------------------------------------------------

($said, $status) = run_program(@JAVA, 'Calls', $url);
is($status, 0, 'Calls ends well') or diag($said);
my @lines = split /\n/, $said;
is(pop @lines, 'end', 'at its end');
is((split /\t/)[1], (split /\t/)[2], (split /\t/)[0]) for @lines;
cmp_ok(scalar @lines, '>', 800, 'it tried all there is');

done_testing();
