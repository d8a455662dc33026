#!/usr/bin/env perl
# The figures of advisory.stats for semaphores.
use AdvisoryTest;
use Semaphores;

use constant { CLIENTS => 12 };

my $look = observer();

{
    my ($h, $t) = (session(application => 'h'), session(application => 't'));
    my $counts = sub { return $look->rows(q(SELECT acquired, contended, failed, timeouts, skipped
            FROM advisory.stats WHERE namespace = 'sem' AND name = 'counted'))->[0] };
    $h->run(acquires('counted', 2), q(SELECT advisory.try_acquire('sem', 'counted', 2)));
    is_deeply($counts->(), [ 2, 0, 0, 0, 0 ], 'each slot is counted');
    $t->query($_) for q(SELECT advisory.try_acquire('sem', 'counted', 2)),
        q(SELECT advisory.acquire('sem', 'counted', 2, '0')),
        q(SELECT advisory.try_xact_acquire('sem', 'counted', 2));
    is_deeply($counts->(), [ 2, 0, 3, 0, 0 ],
        'calls that do not wait and find no free slot have failed');
    $t->fails(q(SELECT advisory.acquire('sem', 'counted', 2, '20ms')), '55P03', 'a timeout');
    $t->shows(q(SELECT advisory.try_acquire('sem', 'counted', 2, '20ms')), 'NULL',
        'a timeout of try_acquire()');
    is_deeply($counts->(), [ 2, 2, 3, 2, 0 ], 'both are counted');
    $t->run(q(SET lock_timeout = '20ms'));
    $t->fails(q(SELECT advisory.xact_acquire('sem', 'counted', 2)), '55P03', 'lock_timeout');
    $t->run('RESET lock_timeout');
    is_deeply($counts->(), [ 2, 3, 3, 3, 0 ], 'is counted as a timeout, too');
    in_queue($t, acquires('counted', 2));
    is_deeply($counts->(), [ 2, 4, 3, 3, 0 ], 'a wait is counted when it begins');
    $look->value('SELECT pg_cancel_backend(?)', $t->pid);
    $t->ends('57014', 'the wait is cancelled');
    is_deeply($counts->(), [ 2, 4, 3, 3, 0 ], 'a cancel adds nothing');
    in_queue($t, acquires('counted', 2));
    $h->run(releases('counted'));
    $t->finish;
    is_deeply($counts->(), [ 3, 5, 3, 3, 0 ], 'a wait that ends with a slot');
    $h->run('BEGIN');
    $t->run(releases('counted'));
    $h->run(q(SELECT advisory.xact_acquire('sem', 'counted', 2)), 'ROLLBACK');
    is_deeply($counts->(), [ 4, 5, 3, 3, 0 ], 'a transaction-level slot');
    $_->run('SELECT pg_advisory_unlock_all()') for $h, $t;
    $look->shows(q(SELECT hold_total > '0' AND hold_max <= hold_total AND wait_total >= '60ms'
        AND wait_max < wait_total AND last_acquired_at <= clock_timestamp()
                      FROM advisory.stats WHERE name = 'counted'), 1, 'times are counted, too');
    leave($look, $h, $t);

    # With very short timeouts each call is counted as acquired, timed out or failed.
    $look->run('CREATE UNLOGGED TABLE outcome (slot int)');
    my $total = CLIENTS * 200;
    is(run_pgbench(q(WITH s AS MATERIALIZED (SELECT advisory.try_acquire('sem', 'hasty', 2,
            '1ms') AS slot), o AS (INSERT INTO outcome SELECT slot FROM s)
                        SELECT pg_sleep(0.0005), advisory.unlock_all('sem') FROM s;), CLIENTS, '-t',
                        200), 0, CLIENTS . ' clients with short timeouts');
    $look->shows(q(SELECT acquired + failed + timeouts, timeouts > 0 FROM advisory.stats
            WHERE name = 'hasty'), "$total|1", 'every call is counted');
    is($look->value(q(SELECT acquired FROM advisory.stats WHERE name = 'hasty')),
        $look->value('SELECT count(slot) FROM outcome'), 'with its result');
    $look->shows(q(SELECT count(*) FROM advisory.semaphores WHERE name = 'hasty'), 0,
        'no slot is left');
    is_deeply([ map { $look->value(tries('hasty', 2)) } 1 .. 3 ], [ 1, 2, undef ],
        'and no session waits');
    $look->run('SELECT pg_advisory_unlock_all()');
}

done_testing();
