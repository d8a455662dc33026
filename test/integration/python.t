#!/usr/bin/env perl
# Python: the unchanged examples, several instances at once if that is their purpose; and how
# psycopg2 sends values.
use AdvisoryTest;
use FindBin;
use Launch;
use Programs;

my $python = python('psycopg2') or plan skip_all => 'Python with psycopg2 is not here';

create_database();
my $session = session();
my $gate    = session();

sub example { return ($python, examples("python/$_[0]"), @_[1 .. $#_]) }

# ---- A job that must not overlap -----------------------------------------------------------------

$session->run(
    'CREATE TABLE usage (customer_id bigint, amount numeric, billed boolean DEFAULT false)',
    'CREATE TABLE invoice (customer_id bigint, total numeric)');

my $INVOICES = 'SELECT customer_id, total FROM invoice ORDER BY 1, 2';

# Everything is to be billed. Sessions that want to write an invoice wait until $gate commits.
sub begin_anew {
    $session->run('TRUNCATE usage, invoice',
        'INSERT INTO usage SELECT c, c FROM generate_series(1, 3) c, generate_series(1, 2)');
    $gate->run('BEGIN', 'LOCK TABLE invoice IN SHARE MODE');
}

begin_anew();
my $first = launch(example('scheduled_job.py'));
wait_for($session, 1, 'billing', 'relation');
my $holder = waiting_pid($session, 'billing');
for my $other (map { launch(example('scheduled_job.py')) } 1, 2) {
    $other->ends(0, qr/^skipped: Process $holder of role "\w+", application "billing", holds it/,
        'a job that finds another at work ends well, and names the holder');
}
ok(!$first->is_done, 'while that one works');
$gate->run('COMMIT');
$first->ends(0, "billed 3 customers\n", 'which bills everybody');
$session->shows($INVOICES, [ '1|2', '2|4', '3|6' ], 'once');
launch(example('scheduled_job.py'))->ends(
    0, "billed 0 customers\n", 'the next run gets the lock, and finds nothing');

# Killed in the middle.
begin_anew();
$first = launch(example('scheduled_job.py'));
wait_for($session, 1, 'billing', 'relation');
$holder = waiting_pid($session, 'billing');
$first->kill;
$gate->run('COMMIT');
$session->wait_until('its session is gone',
    'SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ?', $holder);
launch(example('scheduled_job.py'))->ends(
    0, "billed 3 customers\n", 'a job that is killed leaves no lock');
$session->shows($INVOICES, [ '1|2', '2|4', '3|6' ], 'and nothing half done');

# The same file without its lock.
my $text = slurp(examples('python/scheduled_job.py'));
is($text =~ s/advisory\.lock\(.*?\)/1/g, 1, 'the example takes one lock');
my $without = spew(scratch() . '/without_lock.py', $text);
begin_anew();
my @both = map { launch($python, $without) } 1, 2;
wait_for($session, 2, 'billing', 'relation');
$gate->run('COMMIT');
$_->finish for @both;
$session->shows('SELECT count(*) FROM invoice', 6,
    'without the lock each customer gets two invoices (so the test can fail)');

# ---- One at a time for each user -----------------------------------------------------------------

$session->run('CREATE TABLE app_user (id bigint, exports integer DEFAULT 0)',
    'INSERT INTO app_user VALUES (7), (8)',
    'CREATE TABLE orders (id bigint, user_id bigint, amount numeric)',
    'INSERT INTO orders VALUES (1, 7, 10), (2, 8, 20), (3, 7, 30)');

my $EXPORTS = 'SELECT id, exports FROM app_user ORDER BY id';

$gate->run('BEGIN', 'SELECT FROM app_user FOR UPDATE');
$first = launch(example('one_at_a_time_per_user.py', 7));
wait_for($session, 1, 'exporter', 'transactionid');
$holder = waiting_pid($session, 'exporter');
launch(example('one_at_a_time_per_user.py', 7))->ends(1,
    qr{^an\ export\ of\ user\ 7\ is\ under\ way:\ Process\ $holder\ of\ role\ "\w+",
    \ application\ "exporter",\ holds\ it\ in\ exclusive\ mode;
    \ it\ is\ waiting\ for\ a\ lock\ since\ }x,
    'the second export of a user fails, and is told by whom');
my $other = launch(example('one_at_a_time_per_user.py', 8));
$session->wait_until('that of another user goes on', q(SELECT count(*) = 2 FROM pg_stat_activity
    WHERE application_name = 'exporter' AND wait_event IN ('transactionid', 'tuple')));
$gate->run('COMMIT');
$first->ends(0, "id,amount\n1,10\n3,30\n", 'the first export is done');
$other->ends(0, "id,amount\n2,20\n", 'and the other one');
$session->shows($EXPORTS, [ '7|1', '8|1' ], 'each once');
launch(example('one_at_a_time_per_user.py', 7))->ends(
    0, "id,amount\n1,10\n3,30\n", 'the user can have another one afterwards');
$session->shows($EXPORTS, [ '7|2', '8|1' ], 'which was made');

$gate->run('BEGIN', 'SELECT FROM app_user FOR UPDATE');
launch({ PGOPTIONS => '-c lock_timeout=50ms' }, example('one_at_a_time_per_user.py', 7))->ends(
    1, qr/\A(?!.*under way).*LockNotAvailable: canceling statement due to lock timeout/s,
    'an export that waits too long for a row fails, and is not taken for one that waits for an '
        . 'export, although the SQLSTATE is the same');
$gate->run('COMMIT');

# ---- A webhook -----------------------------------------------------------------------------------

$session->run('CREATE TABLE webhook_event (id text PRIMARY KEY)',
    'CREATE TABLE account (id bigint, balance numeric DEFAULT 0)',
    'INSERT INTO account VALUES (7), (8)');

my $BALANCES = 'SELECT id, balance FROM account ORDER BY id';

$gate->run('BEGIN', 'SELECT FROM account WHERE id = 7 FOR UPDATE');
my @deliveries = map { launch(example('webhook.py', 'evt_1', 7, '12.50')) } 1 .. 5;
wait_for($session, 1, 'webhook', 'transactionid');
wait_for($session, 4, 'webhook', 'advisory');
launch(example('webhook.py', 'evt_2', 8, '3'))->ends(
    0, "handled\n", 'another event is handled meanwhile');
launch({ PGOPTIONS => '-c lock_timeout=50ms' }, example('webhook.py', 'evt_1', 7, '12.50'))->ends(
    1, qr{^503, try again later: could not obtain advisory lock "webhook/evt_1"},
    'a delivery that has waited long enough fails, and says why');
$gate->run('COMMIT');
is_deeply([ sort map { join ' ', $_->finish } @deliveries ],
    [ "handled\n 0", ("handled before\n 0") x 4 ],
    'of five deliveries at once one is handled, and all are answered');
$session->shows($BALANCES, [ '7|12.50', '8|3' ], 'the money is there, once');
launch(example('webhook.py', 'evt_1', 7, '12.50'))->ends(
    0, "handled before\n", 'a late delivery: handled before');
launch(example('webhook.py', 'evt_3', 7, 'much'))->ends(1, qr/./, 'a handler that fails');
$session->shows("SELECT count(*) FROM webhook_event WHERE id = 'evt_3'", 0, 'leaves no trace');
launch(example('webhook.py', 'evt_3', 7, '1'))->ends(
    0, "handled\n", 'so that the event can be delivered again');
$session->shows($BALANCES, [ '7|13.50', '8|3' ], 'and counts');
$session->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0, 'no lock is left');

# ---- What psycopg2 makes of values ---------------------------------------------------------------

launch($python, "$FindBin::Bin/calls.py")->reports(200);
done_testing();
