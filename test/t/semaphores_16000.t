#!/usr/bin/env perl
# A semaphore with as many slots as there can be.
use AdvisoryTest;
use Semaphores;

# A search through all slots takes some 8 ms; finding one by its bit 0.2 ms.
use constant { MAX_SLOTS => 16000, MANY => 2000, FOUND_MS => 3, REPETITIONS => 3 };

{
    my $server = own_server('max_locks_per_transaction=512');
    my ($holder, $other) = map { session(server => $server) } 1, 2;
    $holder->run('CREATE EXTENSION advisory_ext');
    # The processor time of the session's statement, and its result.
    my $milliseconds = sub ($session, $method, @arguments) {
        my $result;
        my $took = processor_time($session, sub { $result = $session->$method(@arguments) });
        return (1000 * $took, $result);
    };
    my $TRY = tries('large', MAX_SLOTS);
    my $TAKE = "SELECT count(slot), count(DISTINCT slot)
        FROM ($TRY AS slot FROM generate_series(1, ?)) AS s";
    my ($took, $rows) = $milliseconds->($holder, 'rows', $TAKE, MANY);
    is_deeply($rows, [ [ MANY, MANY ] ], MANY . ' slots of ' . MAX_SLOTS);
    diag sprintf '%d slots taken in %.0f ms', MANY, $took;
    like($other->value($TRY), qr/^\d+$/, 'another session finds a free one');
    $other->shows(q(SELECT advisory.release('sem', 'large')), 1, 'and releases it');
    ($took, $rows) = $milliseconds->($holder, 'rows', $TAKE, MAX_SLOTS - MANY - 1);
    is_deeply($rows, [ [ (MAX_SLOTS - MANY - 1) x 2 ] ], 'all but one');
    diag sprintf '%d more in %.0f ms', MAX_SLOTS - MANY - 1, $took;
    for my $session ($other, session(server => $server)) {
        my @found = map {
            my ($found, $slot) = $milliseconds->($session, 'value', $TRY);
            like($slot, qr/^\d+$/, 'the last free slot is found');
            my ($refused, $none) = $milliseconds->($session, 'value', $TRY);
            is($none, undef, 'and then none is free');
            $session->run(q(SELECT advisory.release('sem', 'large')));
            [ $found, $refused ];
        } 1 .. REPETITIONS;
        note join '; ', map { sprintf '%.1f ms, none in %.1f ms', @$_ } @found;
        cmp_ok(median(map { $_->[0] } @found), '<', FOUND_MS, 'finding the last free slot is fast');
        cmp_ok(median(map { $_->[1] } @found), '<', FOUND_MS, 'as is finding that none is free');
    }
    is_deeply($other->rows('SELECT slots, in_use, free, waiting, cardinality(holders),
            slots_disagree FROM advisory.semaphores'),
        [ [ MAX_SLOTS, MAX_SLOTS - 1, 1, 0, MAX_SLOTS - 1, 0 ] ], 'semaphores counts them');
    is_deeply($other->rows(q(SELECT count(DISTINCT slot), max(slot) FROM advisory.holders('sem',
            'large'))), [ [ (MAX_SLOTS - 1) x 2 ] ], 'holders() shows them');
    # A session waits when all of them are released at once.
    my $last = $other->value($TRY);
    my $waiter = session(server => $server);
    $waiter->start(acquires('large', MAX_SLOTS));
    wait_until('it is waiting',
        sub { $other->value('SELECT waiting FROM advisory.semaphores') == 1 });
    ($took) = $milliseconds->($holder, 'value', 'SELECT pg_advisory_unlock_all()');
    like($waiter->finish->{value}, qr/^\d+$/, 'all are released: the waiter gets one');
    diag sprintf '%d slots released in %.0f ms', MAX_SLOTS - 1, $took;
    is($holder->value($TRY) // 'none', $holder->value(q(SELECT max(slot) FROM advisory.locks
            WHERE pid = pg_backend_pid())), 'and the session can take one again');
}
done_testing();
