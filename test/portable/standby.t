#!/usr/bin/env perl
# The portable edition on a standby: who takes a lock or reads a view is told that the locks there
# are those of the standby, and locks exclude there as on the primary.
use AdvisoryTest;
use Replica;
use Standbys;

my $first = own_server('autovacuum=off');
session(server => $first)->run('CREATE ROLE app LOGIN', 'CREATE DATABASE app OWNER app');
is(load_portable('app', 'app', $first), '', 'the owner of a database loads it');
my $second = replica($first);
my ($primary, $worker) =
    map { session(server => $first, database => 'app', role => 'app') } 1 .. 2;
caught_up($primary, $second);
my ($there, $other) = map { session(server => $second, database => 'app', role => 'app') } 1 .. 2;

told_readers($there);
told_takers($there);
is($primary->warned(q(SELECT advisory.lock('s', 'a') FROM advisory.locks)), '',
    'it does not concern the primary');
$primary->run('SELECT pg_advisory_unlock_all()');

# A lock that is free takes another way on a standby than on the primary.
$there->run('SELECT pg_advisory_unlock_all()');
for my $case (
    [ q(SELECT advisory.lock('s', 'a')),             q(SELECT advisory.try_lock('s', 'a')) ],
    [ q(SELECT advisory.lock_shared('s', 'a', '1s')),
        q(SELECT advisory.try_lock('s', 'a', '1ms')) ],
    [ q(SELECT advisory.try_xact_lock_key(4711)),    q(SELECT advisory.try_lock_key(4711)) ],
    [ q(SELECT advisory.acquire('s', 'a', 1)),
        q(SELECT advisory.try_acquire('s', 'a', 1) IS NOT NULL) ],
) {
    my ($take, $ask) = @$case;
    $there->run('BEGIN', $take);
    $other->shows($ask, 0, "$take: it excludes");
    $there->run('COMMIT', 'SELECT pg_advisory_unlock_all()');
    isnt($other->value($ask), 0, '... until it is released');
    $other->run('SELECT pg_advisory_unlock_all()');
}
$there->fails(q(SELECT advisory.try_lock('s', 'a', '-1s')), '22023', 'arguments are checked');
$there->fails(q(SELECT advisory.lock_key(1, label => '')),  '22023', '... the label, too');

job_from_standby($primary, $worker, $second, $there);

done_testing();
