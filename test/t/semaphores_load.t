#!/usr/bin/env perl
# Semaphores under load: never more than K sessions inside, no slot idle while a session waits, and waits that are much
# shorter than those of a loop that polls.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Semaphores;
use Test::More;


use constant { CLIENTS => 12, SLOTS => 3, WORK_S => 2, WORK_REPEATS => 3 };

my $look = observer();

$look->run('CREATE UNLOGGED TABLE span (way text, client int, asked timestamptz, got timestamptz, done timestamptz)', <<'SQL', <<'SQL');
    CREATE FUNCTION work(client int) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        asked timestamptz := clock_timestamp();
        got timestamptz;
        done timestamptz;
    BEGIN
        PERFORM advisory.acquire('sem', 'work', 3);
        got := clock_timestamp();
        PERFORM pg_sleep(0.001);
        done := clock_timestamp();
        PERFORM advisory.release('sem', 'work');
        INSERT INTO span VALUES ('work', client, asked, got, done);
    END
    $$
SQL
    -- The same without a semaphore.
    CREATE FUNCTION poll(client int) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        asked timestamptz := clock_timestamp();
        got timestamptz;
        done timestamptz;
        slot int;
    BEGIN
        LOOP
            FOR i IN 1 .. 3 LOOP
                IF pg_try_advisory_lock(4711, i) THEN
                    slot := i;
                    EXIT;
                END IF;
            END LOOP;
            EXIT WHEN slot IS NOT NULL;
            PERFORM pg_sleep(0.01);
        END LOOP;
        got := clock_timestamp();
        PERFORM pg_sleep(0.001);
        done := clock_timestamp();
        PERFORM pg_advisory_unlock(4711, slot);
        INSERT INTO span VALUES ('poll', client, asked, got, done);
    END
    $$
SQL

my $worked = 0;
{
    # The longest wait depends on the machine's load, so the median of several runs counts.
    my (%longest, @utilisation, @overlap);
    for (1 .. WORK_REPEATS) {
        $look->run('TRUNCATE span');
        is(run_pgbench("SELECT $_(:client_id);", CLIENTS, '-T', WORK_S), 0, CLIENTS . " clients, $_") for qw(work poll);
        push @{ $longest{ $_->[0] } }, $_->[1] for @{ $look->rows('SELECT way, 1000 * extract(epoch FROM max(got - asked)) FROM span GROUP BY way') };
        push @overlap, largest_overlap(map { [ @$_ ] } @{ $look->rows(q(SELECT extract(epoch FROM got), extract(epoch FROM done) FROM span WHERE way = 'work')) });
        # During the time in which all of them work.
        push @utilisation, $look->value(<<'SQL', SLOTS);
            WITH range AS (SELECT max(first) AS first, min(last) AS last
                           FROM (SELECT min(got) AS first, max(got) AS last FROM span WHERE way = 'work' GROUP BY client) AS client)
            SELECT sum(extract(epoch FROM done - got)) / (? * extract(epoch FROM max(done) - min(got)))
            FROM span, range WHERE way = 'work' AND got BETWEEN first AND last
SQL
        my $holds = $look->value(q(SELECT count(*) FROM span WHERE way = 'work'));
        $worked += $holds;
        note sprintf '%d holds; longest wait %.1f ms, polling %.1f ms; utilisation %.3f', $holds, $longest{work}[-1], $longest{poll}[-1], $utilisation[-1];
    }
    is_deeply(\@overlap, [ (SLOTS) x WORK_REPEATS ], 'by the times of the work itself, at most ' . SLOTS . ' sessions work at once, and at times that many');
    # It is 0.90 to 0.96 on an idle machine.
    cmp_ok(median(@utilisation), '>=', 0.5, 'the slots are in use nearly all the time');
    cmp_ok(median(@{ $longest{work} }), '<=', median(@{ $longest{poll} }) / 5, 'the longest wait is a fraction of the longest one of a polling loop');
    is($look->value(q(SELECT count(*) FROM advisory.semaphores WHERE namespace = 'sem')), 0, 'no session holds or awaits a slot afterwards');
    is_deeply($look->rows(q(SELECT acquired, failed, timeouts, contended <= acquired FROM advisory.stats WHERE name = 'work')), [ [ $worked, 0, 0, 1 ] ],
        'advisory.stats counted every acquire() of ' . CLIENTS . ' clients');
}
done_testing();
