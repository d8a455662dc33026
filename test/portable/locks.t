#!/usr/bin/env perl
# Locks of the portable edition between sessions: what an outsider sees of them, the race of timeout
# and grant, cancels.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib";
use AdvisoryTest;
use Test::More;
use Time::HiRes qw(sleep time);

use constant RACES => 1000;

create_portable_database();
my ($holder, $waiter, $observer) = map { session(application => $_) } qw(holder waiter observer);

# Holds of a session, as the server has them.
sub holds {
    return $observer->value(
        q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = ?),
        $_[0]->pid)
}

# ---- Errors --------------------------------------------------------------------------------------

$holder->run(q(SELECT advisory.lock('billing', 'invoice:42')));
{
    my $error = $waiter->query(q(SELECT advisory.lock('billing', 'invoice:42', '10ms')));
    is($error->{state}, '55P03', 'a lock that is not free in time');
    is($error->{message}, 'could not obtain advisory lock "billing/invoice:42" within 10 ms',
        '... is named');
    my $pid = $holder->pid;
    like($error->{detail},
        qr{^Process\ $pid\ of\ role\ "postgres",\ application\ "holder",\ holds\ it\ in
            \ exclusive\ mode;\ it\ is\ idle\ since\ }x, '... its holder, too');
    is("$error->{schema} $error->{constraint}", 'billing invoice:42',
        '... and the fields for programs');
    is($waiter->query(q(SELECT advisory.lock('billing', 'invoice:42', '0')))->{message},
        'could not obtain advisory lock "billing/invoice:42" without waiting', 'without a wait');
    $waiter->run(q(SET lock_timeout = '20ms'));
    is($waiter->query(q(SELECT advisory.lock('billing', 'invoice:42')))->{message},
        'could not obtain advisory lock "billing/invoice:42" within lock_timeout of 20 ms',
        'with lock_timeout');
    is($waiter->value(q(SELECT advisory.try_lock('billing', 'invoice:42', NULL))), 0,
        'try_lock() returns false for it');
    is($waiter->value('SHOW lock_timeout'), '20ms', 'lock_timeout is as before');
    $waiter->run('BEGIN', q(SELECT advisory.try_lock('billing', 'invoice:42', '5ms')));
    is($waiter->value('SHOW lock_timeout'), '20ms', '... in the transaction, too');
    $waiter->run(q(SELECT advisory.lock('billing', 'free', '1s')));
    is($waiter->value('SHOW lock_timeout'), '20ms', '... and after a wait that had its lock');
    $waiter->run('COMMIT', 'RESET lock_timeout', 'SELECT pg_advisory_unlock_all()');
}

# ---- Timeout and grant at the same moment --------------------------------------------------------

{
    my ($true, $false, $wrong) = (0, 0, 0);
    my @ways = ([ 'try_lock', q(SELECT advisory.try_lock('race', 'a', '8ms')) ],
        [ 'lock', q(SELECT advisory.lock('race', 'a', '8ms')) ],
        [ 'shared', q(SELECT advisory.try_lock_shared('race', 'a', '8ms')) ],
        [ 'lock_timeout', q(SELECT advisory.try_lock('race', 'a', NULL)) ],
        [ 'xact', q(SELECT advisory.try_xact_lock('race', 'a', '8ms')) ]);
    for my $race (1 .. RACES) {
        my $way = $ways[ $race % @ways ];
        $holder->run(q(SELECT advisory.lock('race', 'a')));
        $waiter->run($way->[0] eq 'lock_timeout' ? q(SET lock_timeout = '8ms')
            : 'RESET lock_timeout', 'BEGIN');
        $waiter->start($way->[1]);
        if ($race % 4 == 0) {
            # The process stands still while both happen: it gets the lock, and then notices its
            # timeout.
            waits($observer, $waiter);
            # (It may have in its hands what the holder needs, so nothing is waited for meanwhile.)
            kill STOP => $waiter->pid or die "cannot stop the waiter: $!\n";
            $holder->start(q(SELECT advisory.unlock('race', 'a')));
            sleep 0.012;
            kill CONT => $waiter->pid;
            $holder->finish;
        } else {
            sleep 0.007 + rand 0.003;
            $holder->run(q(SELECT advisory.unlock('race', 'a')));
        }
        my $result = $waiter->finish;
        my $has = $result->{value} ? 1 : 0;
        $has ? $true++ : $false++;
        $wrong++ if holds($waiter) != $has;
        $waiter->run('ROLLBACK', 'SELECT pg_advisory_unlock_all()');
        $wrong++ if holds($waiter);
    }
    is($wrong, 0, 'true means held, and false or an error means not held, in ' . RACES . ' races')
        or diag "$true true, $false false";
    cmp_ok($true,  '>', 10, '... of which some had the lock');
    cmp_ok($false, '>', 10, '... and some had not');
    $waiter->run('RESET lock_timeout');
}

# ---- Cancelled waits hold nothing ----------------------------------------------------------------

$holder->run(q(SELECT advisory.lock('c', 'a'), advisory.acquire('c', 's', 1)));
for my $call (
    q(advisory.lock('c', 'a')), q(advisory.try_lock('c', 'a', '1min')),
    q(advisory.lock_all('c', ARRAY['1', 'a', '2', '3'])),
    q(advisory.try_xact_lock('c', 'a', '1min')),
    q(advisory.acquire('c', 's', 1)), q(advisory.try_xact_acquire('c', 's', 1, '1min'))) {
    $waiter->start("SELECT $call");
    $call =~ /acquire/ ? wait_until('it polls', sub { holds($waiter) }) : waits($observer, $waiter);
    $observer->run('SELECT pg_cancel_backend(' . $waiter->pid . ')');
    is($waiter->finish->{state}, '57014', "a cancelled $call");
    is(holds($waiter), 0, '... holds nothing');
}
is($waiter->value(q(SELECT advisory.try_lock_all('c', ARRAY['1', 'a', '2', '3'], '20ms'))), 0,
    'a list of which one is taken');
is(holds($waiter), 0, '... is not taken in part');

# ---- Deadlocks of named locks are the server's ---------------------------------------------------

$waiter->run(q(SELECT advisory.lock('d', '2')));
$holder->run(q(SELECT advisory.lock('d', '1')))->start(q(SELECT advisory.lock('d', '2')));
waits($observer, $holder);
$waiter->start(q(SELECT advisory.lock('d', '1', '1min')));
wait_until('one of them ends', sub { $waiter->is_done || $holder->is_done });
my ($victim, $other) = $waiter->is_done ? ($waiter, $holder) : ($holder, $waiter);
is($victim->finish->{state}, '40P01', 'a deadlock is found');
$victim->run('SELECT pg_advisory_unlock_all()');
is($other->finish->{value}, 1, '... and the other one gets its lock');

# ---- await_lock ----------------------------------------------------------------------------------

$_->run('SELECT pg_advisory_unlock_all()') for $holder, $waiter;
$holder->run(q(SELECT advisory.lock('a', 'w')));
$waiter->start(q(CALL advisory.await_lock('a', 'w')));
my %seen;
wait_until('its snapshots end', sub {
    $seen{ $observer->value('SELECT backend_xmin FROM pg_stat_activity WHERE pid = ?', $waiter->pid)
        // 'none' }++;
    $observer->run('SELECT pg_current_xact_id()');
    keys %seen > 3
});
pass('a waiting session does not keep its snapshot');
is($waiter->is_done, 0, '... and waits');
$holder->run(q(SELECT advisory.unlock('a', 'w')));
is($waiter->finish->{state}, undef, '... until it has the lock');
is($observer->value(q(SELECT advisory.is_locked('a', 'w'))), 1, '... which it keeps');
is($holder->query(q(CALL advisory.await_lock('a', 'w', '30ms')))->{state}, '55P03',
    '... and a timeout ends such a wait');
is($holder->query(q(BEGIN; CALL advisory.await_lock('a', 'x')))->{state}, '2D000',
    'in a transaction block it cannot be called');
$holder->run('ROLLBACK');

done_testing();
