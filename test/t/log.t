#!/usr/bin/env perl
# The messages about long waits and long holds in the server's log, and that no client receives
# them.
use AdvisoryTest;

create_database();
my $look = session();
my ($h, $t) = (session(application => 'h'), session(application => 't'));

# A session's own lines of the server's log.
my $log_of = sub ($session, @statements) {
    my $pid = $session->pid;
    my $log = logged(sub { $session->query($_) for @statements });
    return join '', map { "$_\n" } grep { /\[$pid\].*\bsession (?:waited|held)\b/ } split /\n/,
        $log;
};
$t->run('SET advisory_ext.log_wait = 0', 'SET client_min_messages = log');
$h->run(q(SELECT advisory.lock('log', 'a')));
my $IN_VAIN = q(SELECT advisory.try_lock('log', 'a', '20ms'));
my $WAITED = qr{LOG: +session waited for advisory lock "log/a" in exclusive mode};
like($log_of->($t, $IN_VAIN), qr{$WAITED for \d+\.\d{3} ms and timed out$}m, 'log_wait: a timeout');
is($t->warned($IN_VAIN), '', 'which the client is not told');
like($log_of->($t, q(SET statement_timeout = '20ms'), q(SELECT advisory.lock('log', 'a')),
        'RESET statement_timeout'), qr{ ms and did not obtain it$}m, 'a wait that is cancelled');
is($log_of->($t, q(SELECT advisory.try_lock('log', 'a'))), '', 'not where there was no wait');
like(logged(sub {
    waits($look, $t, q(SELECT advisory.lock_shared('log', 'a')));
    $h->run(q(SELECT advisory.unlock('log', 'a')));
    $t->finish;
}), qr{"log/a" in shared mode for \d+\.\d{3} ms and obtained it$}m, 'a wait that ended well');
$t->run('SELECT pg_advisory_unlock_all()', q(SET advisory_ext.log_wait = '1h'));
is($log_of->($h, q(SELECT advisory.lock('log', 'a')), q(SELECT advisory.unlock('log', 'a'))), '',
    'log_hold is off');
$h->run(q(SELECT advisory.lock('log', 'a')), 'SET advisory_ext.log_hold = 0');
is($log_of->($t, $IN_VAIN), '', 'not a wait that was shorter');
like($log_of->($h, q(SELECT advisory.unlock('log', 'a'))),
    qr{LOG: +session held advisory lock "log/a" in exclusive mode for \d+\.\d{3} ms$}m,
    'log_hold: when it is released');
my $xact = $log_of->($h, 'BEGIN',
    q(SELECT advisory.xact_lock('log', 'b'), advisory.xact_lock_key(43)), 'COMMIT');
like($xact, qr{"log/b" in exclusive mode}, 'at the end of a transaction');
like($xact, qr{"43" in exclusive mode}, 'by its key where it has no name');
# The session forgets names that it does not use when there are 256 of them, but not before they are
# logged.
my $many = session()->run('SET advisory_ext.log_hold = 0');
my @names = $log_of->($many, 'BEGIN',
    q(SELECT count(advisory.xact_lock('log many', i)) FROM generate_series(1, 256) AS i),
    'ROLLBACK', q(SELECT advisory.try_lock('log', 'next'))) =~ m{"log many/(\d+)" in}g;
is_deeply([ sort { $a <=> $b } @names ], [ 1 .. 256 ],
    'after a rollback, when the session takes the next lock');
leave($look, $many);
$h->run(q(SET advisory_ext.log_hold = '1h'));
is($log_of->($h, q(SELECT advisory.try_xact_lock('log', 'b'))), '', 'not a hold that was shorter');
leave($look, $h, $t);

# ---- A deadlock: the log has the names of all its locks, the client those that it may see --------

my $role = "log_$$";
$look->run("CREATE ROLE $role LOGIN");
# The victim took b by its key, so it may not see the name that the other session gave.
my $deadlock = sub ($take_b, $take_a, $other) {
    my ($other_session, $victim) = (session(), session(role => $role));
    $other_session->run(q(SET deadlock_timeout = '10min'), $other->[0]);
    $victim->run($take_b);
    waits($look, $other_session->start($other->[1]));
    my ($log, $error);
    $log = logged(sub { $error = $victim->query($take_a); leave($look, $victim) });
    $other_session->finish;
    leave($look, $other_session);
    return ($error, $log =~ s/.*deadlock detected$//msr);
};
my ($error, $log) = $deadlock->(q(SELECT advisory.lock_key(advisory.key('log', 'b'))),
    q(SELECT advisory.lock('log', 'a')),
    [ q(SELECT advisory.lock('log', 'a')), q(SELECT advisory.lock('log', 'b') /* [1,2,3,4] */) ]);
is($error->{state}, '40P01', 'a deadlock');
my $WAITS = qr{Process \d+ waits for ExclusiveLock on advisory lock \[\d+,\d+,\d+,1\] "log/a"};
like($error->{detail}, qr{^$WAITS; blocked by process \d+\.\n.*,1\]; blocked}m,
    'the client gets the name that it may see');
like($log, qr{DETAIL:  $WAITS; .*\n.*,1\] "log/b"; blocked}, 'the log gets both');
like($log, qr{Process \d+: SELECT advisory.lock\('log', 'b'\) /\* \[1,2,3,4\] \*/$}m,
    'and the statements, as ever');
($error, $log) = $deadlock->(q(SELECT advisory.lock_key(advisory.key('log', 'b'))),
    q(SELECT advisory.acquire('log', 's', 2)),
    [ q(SELECT advisory.acquire('log', 's', 2), advisory.acquire('log', 's', 2)),
        q(SELECT advisory.lock('log', 'b')) ]);
is($error->{state}, '40P01', 'a deadlock over a slot');
unlike($error->{detail}, qr{log/b}, 'the client does not get the other name');
my $SLOTS = qr{one of the 2 slots of advisory lock \[[\d,]+\] "log/s"};
like($log, qr{DETAIL:  Process \d+ waits for $SLOTS; .*\n.*,1\] "log/b"; blocked},
    'the log gets both names');

done_testing();
