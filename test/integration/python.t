#!/usr/bin/env perl
# Python: the unchanged examples, several instances at once if that is their purpose; and how
# psycopg2 sends values.
use FindBin;
use lib "$FindBin::Bin/../t/lib", "$FindBin::Bin/lib";
use AdvisoryTest;
use Launch;
use Programs;

my $python = python('psycopg2') or plan skip_all => 'Python with psycopg2 is not here';

create_database();
my $session = session();
my $gate    = session();

sub example { return ($python, examples("python/$_[0]"), @_[1 .. $#_]) }

# How many sessions of the application wait, and for what (as in pg_stat_activity).
sub waiting ($application, $event) {
    return $session->value(<<'SQL', $application, $event);
        SELECT count(*) FROM pg_stat_activity
        WHERE application_name = $1 AND wait_event_type = 'Lock' AND wait_event = $2
        AND datname = current_database()
SQL
}

sub wait_for ($count, $application, $event) {
    return wait_until(
        "$count of $application wait for $event", sub { waiting($application, $event) == $count });
}

sub pid_of {
    return $session->value(
        "SELECT pid FROM pg_stat_activity WHERE application_name = ? AND wait_event_type = 'Lock'",
        $_[0]);
}

# ---- A job that must not overlap -----------------------------------------------------------------

$session->run(
    'CREATE TABLE usage (customer_id bigint, amount numeric, billed boolean DEFAULT false)',
    'CREATE TABLE invoice (customer_id bigint, total numeric)');

sub use_things {
    $session->run(
        'INSERT INTO usage SELECT c, c FROM generate_series(1, 3) c, generate_series(1, 2)')
}

sub invoices {
    $session->value("SELECT string_agg(customer_id || ':' || coalesce(total::text, 'NULL'), ' '
            ORDER BY customer_id, total) FROM invoice")
}

# Sessions that want to write an invoice wait until $gate commits.
sub shut { $gate->run('BEGIN', 'LOCK TABLE invoice IN SHARE MODE') }

use_things();
shut();
my $first = launch(example('scheduled_job.py'));
wait_for(1, 'billing', 'relation');
my $holder = pid_of('billing');
for my $other (map { launch(example('scheduled_job.py')) } 1, 2) {
    my ($said, $status) = $other->finish;
    is($status, 0, 'a job that finds another at work ends well');
    like($said, qr/^skipped: Process $holder of role "\w+", application "billing", holds it/,
        'and names the holder');
}
ok(!$first->is_done, 'while that one works');
$gate->run('COMMIT');
is_deeply([ $first->finish ], [ "billed 3 customers\n", 0 ], 'which bills everybody');
is(invoices(), '1:2 2:4 3:6', 'once');
is_deeply([ run_program(example('scheduled_job.py')) ], [ "billed 0 customers\n", 0 ],
    'the next run gets the lock, and finds nothing');

# Killed in the middle.
$session->run('TRUNCATE usage, invoice');
use_things();
shut();
$first = launch(example('scheduled_job.py'));
wait_for(1, 'billing', 'relation');
$holder = pid_of('billing');
$first->kill;
$gate->run('COMMIT');
wait_until('its session is gone',
    sub { !$session->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $holder) });
is((run_program(example('scheduled_job.py')))[0], "billed 3 customers\n",
    'a job that is killed leaves no lock');
is(invoices(), '1:2 2:4 3:6', 'and nothing half done');

# The same file without its lock.
my $without = scratch() . '/without_lock.py';
{
    local (@ARGV, $/) = examples('python/scheduled_job.py');
    my $text = <>;
    is($text =~ s/advisory\.lock\(.*?\)/1/g, 1, 'the example takes one lock');
    open my $file, '>', $without or die "cannot write $without: $!\n";
    print {$file} $text;
    close $file or die "cannot write $without: $!\n";
}
$session->run('TRUNCATE usage, invoice');
use_things();
shut();
my @both = map { launch($python, $without) } 1, 2;
wait_for(2, 'billing', 'relation');
$gate->run('COMMIT');
$_->finish for @both;
is($session->value('SELECT count(*) FROM invoice'), 6,
    'without the lock each customer gets two invoices (so the test can fail)');

# ---- One at a time for each user -----------------------------------------------------------------

$session->run('CREATE TABLE app_user (id bigint, exports integer DEFAULT 0)',
    'INSERT INTO app_user VALUES (7), (8)',
    'CREATE TABLE orders (id bigint, user_id bigint, amount numeric)',
    'INSERT INTO orders VALUES (1, 7, 10), (2, 8, 20), (3, 7, 30)');

sub exports {
    $session->value("SELECT string_agg(id || ':' || exports, ' ' ORDER BY id) FROM app_user")
}

$gate->run('BEGIN', 'SELECT FROM app_user FOR UPDATE');
$first = launch(example('one_at_a_time_per_user.py', 7));
wait_for(1, 'exporter', 'transactionid');
$holder = pid_of('exporter');
my ($said, $status) = run_program(example('one_at_a_time_per_user.py', 7));
is($status, 1, 'the second export of a user fails');
like($said, qr{^an\ export\ of\ user\ 7\ is\ under\ way:\ Process\ $holder\ of\ role\ "\w+",
    \ application\ "exporter",\ holds\ it\ in\ exclusive\ mode;
    \ it\ is\ waiting\ for\ a\ lock\ since\ }x,
    'and is told by whom');
my $other = launch(example('one_at_a_time_per_user.py', 8));
wait_until('both export',
    sub { waiting('exporter', 'transactionid') + waiting('exporter', 'tuple') == 2 });
pass('that of another user goes on');
$gate->run('COMMIT');
is_deeply([ $first->finish ], [ "id,amount\n1,10\n3,30\n", 0 ], 'the first export is done');
is_deeply([ $other->finish ], [ "id,amount\n2,20\n", 0 ], 'and the other one');
is(exports(), '7:1 8:1', 'each once');
is((run_program(example('one_at_a_time_per_user.py', 7)))[1], 0,
    'the user can have another one afterwards');
is(exports(), '7:2 8:1', 'which was made');

$gate->run('BEGIN', 'SELECT FROM app_user FOR UPDATE');
($said, $status) =
    run_program({ PGOPTIONS => '-c lock_timeout=50ms' }, example('one_at_a_time_per_user.py', 7));
$gate->run('COMMIT');
is($status, 1, 'an export that waits too long for a row fails');
unlike($said, qr/under way/, 'and is not taken for one that waits for an export');
like($said, qr/LockNotAvailable: canceling statement due to lock timeout/,
    'although the SQLSTATE is the same');

# ---- A webhook -----------------------------------------------------------------------------------

$session->run('CREATE TABLE webhook_event (id text PRIMARY KEY)',
    'CREATE TABLE account (id bigint, balance numeric DEFAULT 0)',
    'INSERT INTO account VALUES (7), (8)');

sub balances {
    $session->value("SELECT string_agg(id || ':' || balance, ' ' ORDER BY id) FROM account")
}

$gate->run('BEGIN', 'SELECT FROM account WHERE id = 7 FOR UPDATE');
my @deliveries = map { launch(example('webhook.py', 'evt_1', 7, '12.50')) } 1 .. 5;
wait_for(1, 'webhook', 'transactionid');
wait_for(4, 'webhook', 'advisory');
is_deeply([ run_program(example('webhook.py', 'evt_2', 8, '3')) ], [ "handled\n", 0 ],
    'another event is handled meanwhile');
($said, $status) = run_program(
    { PGOPTIONS => '-c lock_timeout=50ms' }, example('webhook.py', 'evt_1', 7, '12.50'));
is($status, 1, 'a delivery that has waited long enough fails');
like($said, qr{^503, try again later: could not obtain advisory lock "webhook/evt_1"},
    'and says why');
$gate->run('COMMIT');
my @said = map { [ $_->finish ] } @deliveries;
is_deeply([ sort map { $_->[0] } @said ], [ "handled\n", ("handled before\n") x 4 ],
    'of five deliveries at once one is handled');
is_deeply([ map { $_->[1] } @said ], [ (0) x 5 ], 'and all are answered');
is(balances(), '7:12.50 8:3', 'the money is there, once');
is_deeply([ run_program(example('webhook.py', 'evt_1', 7, '12.50')) ], [ "handled before\n", 0 ],
    'a late delivery: handled before');
($said, $status) = run_program(example('webhook.py', 'evt_3', 7, 'much'));
is($status, 1, 'a handler that fails');
is($session->value("SELECT count(*) FROM webhook_event WHERE id = 'evt_3'"), 0, 'leaves no trace');
is((run_program(example('webhook.py', 'evt_3', 7, '1')))[0], "handled\n",
    'so that the event can be delivered again');
is(balances(), '7:13.50 8:3', 'and counts');
is($session->value(
    "SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database
        WHERE datname = current_database())"),
    0, 'no lock is left');

# ---- What psycopg2 makes of values ---------------------------------------------------------------

($said, $status) = run_program($python, "$FindBin::Bin/calls.py");
is($status, 0, 'calls.py ends well') or diag($said);
my @lines = split /\n/, $said;
is(pop @lines, 'end', 'at its end');
is((split /\t/)[1], (split /\t/)[2], (split /\t/)[0]) for @lines;
cmp_ok(scalar @lines, '>', 200, 'it tried all there is');

done_testing();
