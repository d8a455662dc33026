#!/usr/bin/env perl
# A number of slots that changes while sessions work and wait: the recipe of doc/semaphores.md.
use AdvisoryTest;
use List::Util qw(max);
use Semaphores;
use Time::HiRes qw(sleep);

use constant { WORKERS => 12, PHASE_S => 1.2 };

my $look = observer();
$look->run(
    q(CREATE TABLE "limit" (name text PRIMARY KEY, slots integer, ends boolean DEFAULT false)),
    q(INSERT INTO "limit" VALUES ('changes', 3)),
    'CREATE TABLE call (slots integer, slot integer, works boolean, got timestamptz,
        done timestamptz, released timestamptz)',
    'CREATE TABLE seen (before timestamptz, inside integer, after timestamptz)',
    <<'SQL', <<'SQL');
    -- Both statements of the recipe, and again if the second one gives the slot back.
    CREATE PROCEDURE work() LANGUAGE plpgsql AS $$
    DECLARE
        c call;
    BEGIN
        WHILE NOT (SELECT ends FROM "limit") LOOP
            SELECT slots, advisory.acquire('sem', name, slots) INTO c.slots, c.slot
                FROM "limit" WHERE name = 'changes';
            c.got := clock_timestamp();
            PERFORM advisory.release('sem', name, c.slot) FROM "limit"
                WHERE name = 'changes' AND c.slot > slots;
            c.works := NOT FOUND;
            IF c.works THEN
                PERFORM pg_sleep(0.02 + random() * 0.02);
                c.done := clock_timestamp();
                PERFORM advisory.release('sem', 'changes', c.slot);
            END IF;
            c.released := clock_timestamp();
            INSERT INTO call SELECT c.*;
            COMMIT;
        END LOOP;
    END $$
SQL
    -- Counts the holders, but for one session, again and again.
    CREATE PROCEDURE watch(operator integer) LANGUAGE plpgsql AS $$
    BEGIN
        WHILE NOT (SELECT ends FROM "limit") LOOP
            INSERT INTO seen SELECT now, count(*), clock_timestamp()
                FROM clock_timestamp() AS now, pg_locks
                WHERE locktype = 'advisory' AND objsubid > 16384 AND granted AND pid <> operator
                    AND (classid::bigint << 32) | objid::bigint = advisory.key('sem', 'changes')
                GROUP BY now;
            COMMIT;
            PERFORM pg_sleep(0.001);
        END LOOP;
    END $$
SQL

# Changes the number. Returns times before and after the commit, and the transaction's number.
sub change ($slots) {
    my $from = $look->value('SELECT clock_timestamp()');
    my $transaction = $look->value(
        qq(UPDATE "limit" SET slots = $slots RETURNING pg_current_xact_id()::text::bigint));
    return ($from, $look->value('SELECT clock_timestamp()'), $transaction);
}

# Sessions that work, and one that watches; and their results when the load ends.
sub begin_load ($slots, $operator) {
    $look->run(qq(UPDATE "limit" SET slots = $slots, ends = false), 'TRUNCATE call, seen');
    return map { session()->start($_) } ('CALL work()') x WORKERS, "CALL watch($operator)";
}

sub end_load (@sessions) {
    $look->run(q(UPDATE "limit" SET ends = true));
    return map { $_->finish } @sessions;
}

# The largest number of holders that was seen while a condition holds.
sub most ($condition, @values) {
    return $look->value("SELECT max(inside) FROM seen WHERE $condition", @values);
}

# Waits until that many holders were seen at once since then: on a busy machine the one that watches
# may not run for a while.
sub see ($holders, $since) {
    wait_until("$holders sessions have a slot",
        sub { (most('before > ?', $since) // 0) >= $holders });
    return;
}

# Waits until no session but this one has given five, or can still give it: first for those whose
# statement has read the number before this transaction changed it, then for those who have a slot.
sub all_know_two ($transaction, $operator) {
    wait_until('nobody else has read five', sub {
        !$look->value('SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
            AND backend_xmin::text::bigint <= ?', $transaction);
    });
    wait_until('nobody else has given five', sub {
        !$look->value(q(SELECT count(*) FROM advisory.holders('sem', 'changes')
            WHERE slots > 2 AND pid <> ?), $operator);
    });
    return;
}

# ---- Under load ----------------------------------------------------------------------------------

{
    my @sessions = begin_load(3, 0);
    see(3, '-infinity');
    sleep PHASE_S;
    my ($from, $raised) = change(5);
    see(5, $from);
    sleep PHASE_S;
    my (undef, $lowered, $transaction) = change(2);
    all_know_two($transaction, 0);
    see(2, $look->value('SELECT clock_timestamp()'));
    sleep PHASE_S;
    my @warnings = map { scalar grep { /different numbers of slots/ } @{ $_->{warnings} } }
        end_load(@sessions);

    is(most('after < ?', $from), 3, 'never more than three at once');
    cmp_ok($look->value('SELECT extract(epoch FROM min(after) - ?) FROM seen
        WHERE inside = 5 AND before > ?', $raised, $from), '<', 1,
        'five instead: both new slots are taken within a second');
    is(most('after > ?', $raised), 5, '... and never more');
    my ($worked, $gone) = map { $look->value("SELECT max(released) FROM call WHERE slots = 5 $_") }
        'AND works', '';
    is(most('before > ?', $gone), 2,
        'two instead: never more, as soon as nobody is there who has given five');
    is(largest_overlap(map { [@$_] } @{ $look->rows('SELECT extract(epoch FROM got),
            extract(epoch FROM done) FROM call WHERE works AND done > ?', $worked) }), 2,
        '... and never more than two work when those that did have ended');
    $look->shows('SELECT count(*) FROM call WHERE works AND slot > 2 AND got > ?', 0,
        'nobody begins to work in another slot', $lowered);
    cmp_ok($look->value('SELECT count(*) FROM call WHERE NOT works'), '>', 0,
        '... for sessions that have waited give it back');
    is(max(@warnings), 1, 'a session is warned once, though the number has changed twice');
    note sprintf 'lowered: the last session with five ended after %.0f ms, the last holder %.0f ms',
        map { 1000 * $look->value('SELECT extract(epoch FROM ?::timestamptz - ?)', $_, $lowered) }
        $gone, $worked;
}

# A waiter that has given the old number gets a slot beyond the new one: the second statement of the
# recipe is for that.
{
    my @inside = map { holder('waiter', 5) } 1 .. 5;
    my ($old) = queue_up('waiter', 5, {});
    my ($new) = queue_up('waiter', 2, {});
    $inside[3]->run(releases('waiter'));
    $old->returns(4, 'who waits with the old number gets a slot beyond the new one');
    ok(!$new->is_done, '... and who gives the new one waits on');
    leave($look, @inside, $old);
    $new->returns(1, '... until one of its slots is free');
    leave($look, $new);
}

# ---- Lowered, and never more from then on --------------------------------------------------------

{
    my $operator = session();
    my @sessions = begin_load(5, $operator->pid);
    see(5, '-infinity');
    sleep PHASE_S / 2;
    $operator->run(q(SELECT advisory.acquire_many('sem', 'changes', 5, 3)));
    my $from = $look->value('SELECT clock_timestamp()');
    see(2, $from);
    my (undef, undef, $transaction) = change(2);
    all_know_two($transaction, $operator->pid);
    my $until = $look->value('SELECT clock_timestamp()');
    $operator->run(q(SELECT advisory.unlock_all('sem')));
    my $free = $look->value('SELECT clock_timestamp()');
    see(2, $free);
    sleep PHASE_S / 2;
    end_load(@sessions);
    is(most('after < ?', $from), 5, 'five at once');
    is(most('before > ? AND after < ?', $from, $until), 2,
        'who takes three of five slots leaves two to the others');
    is(most('before > ?', $free), 2, '... and so does the new number');
    note sprintf 'lowered in %.0f ms',
        1000 * $look->value('SELECT extract(epoch FROM ?::timestamptz - ?)', $until, $from);
}
done_testing();
