#!/usr/bin/env perl
# The views of the portable edition, as a role without any privilege and as the owner of the
# database: names by labels, slots of semaphores, other databases, prepared transactions, who waits
# for whom, and what ends it. Waits that are made at random follow the same rules as those of
# test/t/waits.t.
use utf8;
use AdvisoryTest;
use Waits;

srand 4711;
my $server = own_server('max_prepared_transactions=5', 'max_connections=90');
session(server => $server)->run('CREATE ROLE views_owner LOGIN', 'CREATE ROLE views_nobody LOGIN',
    'CREATE DATABASE views_one OWNER views_owner', 'CREATE DATABASE views_two');
sub there { return session(server => $server, database => 'views_one', @_) }
my $owner = there(role => 'views_owner', application => 'owner');
for (1, 2) {
    is(load_portable('views_one', 'views_owner', $server), '', 'the owner of a database loads it');
    $owner->run(
        q(INSERT INTO advisory.key_labels (key, label) VALUES (1, 'kept') ON CONFLICT DO NOTHING));
}
$owner->shows('SELECT count(*) FROM advisory.key_labels', 1, 'twice, and keeps its rows');

my $look = there(role => 'views_nobody', application => 'look');
my $super = there(application => 'super');
sub waiting ($statement, @how) {
    my $s = there(@how)->run(q(SET deadlock_timeout = '1h'));
    $s->start($statement);
    waits($super, $s);
    return $s
}
sub key { my (@name) = @_; return $owner->value('SELECT advisory.key(?, ?)', @name) }
sub done { leave($super, @_); return }

# ---- Labels --------------------------------------------------------------------------------------

for my $case (
    [ "(key, label) VALUES (1, 'kept')", '23505' ], [ "(key1, label) VALUES (1, 'half')", '23514' ],
    [ "(key, key1, key2, label) VALUES (1, 1, 1, 'both')", '23514' ],
            [ "(key, label) VALUES (1, '')", '23514' ]) {
    $owner->fails("INSERT INTO advisory.key_labels $case->[0]", $case->[1], "no label $case->[0]");
}
$look->fails("INSERT INTO advisory.key_labels (key, label) VALUES (1, 'x')", '42501',
    'others may not write labels');
$owner->run(
    'DELETE FROM advisory.key_labels', q(INSERT INTO advisory.key_labels (key, label, note) VALUES
    (advisory.key('billing', 'invoice:42'), 'billing/invoice:42', NULL),
    (advisory.key('a/b', 'c'), 'a/b/c', NULL), (advisory.key('mail', 'smtp'), 'mail/smtp', NULL),
    (4711, 'nightly "import"', 'ask them'), (-9223372036854775808, 'no/name', NULL)),
    q(INSERT INTO advisory.key_labels (key1, key2, label) VALUES (-1, -42, 'pair')));
{
    my $s = there(application => 'labels')
        ->run(q(SELECT pg_advisory_lock(k)
            FROM unnest(ARRAY[advisory.key('billing', 'invoice:42'), advisory.key('a/b', 'c'),
        4711, -9223372036854775808, 1, 1005, 4242, 72707369]) AS k),
        'SELECT pg_advisory_lock_shared(-1, -42), pg_advisory_lock(-1, 42)');
    is_deeply($look->rows('SELECT lock, mode, who, state, waiting, held, blocked_by
            FROM advisory.activity WHERE pid = ? ORDER BY lock COLLATE "C"', $s->pid),
        [ map {
            [ $_, $_ =~ 'pair' ? 'shared' : 'exclusive', 'postgres@labels', undef, undef,
                undef, undef ]
        }
            '-1, -42 "pair"', '-1, 42', '-9223372036854775808 "no/name"',
            '1 "several programs use it"',
            '1005 "several programs use it"', '4242',
            '4711 "nightly ""import"": ask..."', '72707369 "Prisma Migrate: migra..."', 'a/b/c',
            'billing/invoice:42' ], 'what locks are called');
    is_deeply($look->rows('SELECT namespace, name, key, key1, key2, known_as, query
            FROM advisory.locks WHERE pid = ? AND (namespace IS NOT NULL OR key1 IS NOT NULL)
            ORDER BY key, key2', $s->pid),
        [ [ 'billing', 'invoice:42', key('billing', 'invoice:42'), undef, undef,
            ['billing/invoice:42'], '<insufficient privilege>' ],
          [ 'a/b', 'c', key('a/b', 'c'), undef, undef, ['a/b/c'], '<insufficient privilege>' ],
          [ undef, undef, undef, -1, -42, ['pair'], '<insufficient privilege>' ],
          [ undef, undef, undef, -1, 42, undef, '<insufficient privilege>' ] ],
          'names, and signed pairs');
    is_deeply($super->rows(q(SELECT pid, mode, granted FROM pg_locks WHERE locktype = 'advisory'
            EXCEPT
                             SELECT pid, CASE mode WHEN 'shared' THEN 'ShareLock'
                             ELSE 'ExclusiveLock' END, granted FROM advisory.locks)), [],
                                 'all are there');
    done($s);
}

# ---- A chain, a prepared transaction, another database -------------------------------------------

$owner->run(
    'CREATE TABLE public.item (id int, n int)', 'INSERT INTO public.item VALUES (1, 0)',
    'GRANT ALL ON public.item TO PUBLIC') if $owner->value('SELECT has_schema_privilege(?, ?)',
    'public', 'CREATE');
{
    my $holder = there(role => 'views_owner', application => 'holder')
        ->run('BEGIN', 'SELECT pg_advisory_xact_lock(advisory.key(\'billing\', \'invoice:42\'))',
            'UPDATE public.item SET n = 1');
    my $middle = there(role => 'views_owner', application => 'middle')
        ->run('SELECT pg_advisory_lock(777)');
    my $first = waiting(
        q(SELECT pg_advisory_lock(advisory.key('billing', 'invoice:42'))), application => 'first');
    $middle->start('UPDATE public.item SET n = 2');
    waits($super, $middle);
    my $last = waiting('SELECT pg_advisory_lock_shared(777)', application => 'last');
    my ($h, $m, $f, $l) = map { $_->pid } $holder, $middle, $first, $last;
    is_deeply($look->rows('SELECT path, depth, waits_for_pid, namespace, key, mode, objsubid,
            waited IS NULL FROM advisory.waits'), [
        [ [$h], 0, undef, 'billing', key('billing', 'invoice:42'), 'exclusive', 1, 1 ],
        [ [ $h, $f ], 1, $h, 'billing', key('billing', 'invoice:42'), 'exclusive', 1, 0 ],
        [ [ $h, $m ], 1, $h, undef, undef, 'shared', undef, 0 ],
        [ [ $h, $m, $l ], 2, $m, undef, 777, 'shared', 1, 0 ] ], 'waits: also through a row');
    my $text = join "\n", map { $_->[0] } @{ $super->rows('SELECT * FROM advisory.wait_tree()') };
    like($text,
        qr{\A$h views_owner\@holder holds billing/invoice:42 exclusive, idle in transaction \d+ s
  $f postgres\@first waits for billing/invoice:42 exclusive \d+ s
  $m views_owner\@middle waits for transaction \d+ shared \d+ s
    $l postgres\@last waits for 777 shared \d+ s\z}, 'wait_tree()');
    is_deeply($look->rows('SELECT pid, who, state, lock, waiters, longest_wait IS NOT NULL, remedy
            FROM advisory.blockers'),
        [ [ $h, 'views_owner@holder', undef, 'billing/invoice:42', 3, 1,
            "SELECT advisory.terminate_holder('billing', 'invoice:42', $h, kind => 'lock');" ] ],
        'blockers');
    is_deeply($owner->rows('SELECT lock, pid, state, blocked_by FROM advisory.activity'),
        [ [ 'billing/invoice:42', $f, undef, $h ], [ '777', $l, undef, $m ],
        [ 'billing/invoice:42', $h, 'idle in transaction', undef ],
        [ '777', $m, 'waiting', undef ] ], 'activity: waiters first; a holder that waits');
    is_deeply($look->rows(q(SELECT pid, granted, blocked_by
            FROM advisory.holders('billing', 'invoice:42') ORDER BY granted DESC)),
                [ [ $h, 1, undef ], [ $f, 0, [$h] ] ], 'holders');
    my $none = $look->query('SELECT advisory.terminate_holder_key(777, ?)', $h);
    is_deeply([ $none->{state}, $none->{rows} ], [ undef, [ [0] ] ],
        'terminate_holder_key: not a holder');
    $look->fails("SELECT advisory.terminate_holder('billing', 'invoice:42', $h)", '42501',
        'nor without the privilege');
    $owner->shows($owner->value('SELECT remedy FROM advisory.blockers'), 1,
        'the remedy ends the session');
    $_->ends(undef, 'and the wait') for $first, $middle;
    done($first, $middle);
    $last->ends(undef, 'of the last, too');
    done($last);
}
migrations(look => $super, takes => [q(lock('billing', 'invoice:42'))],
    connect => sub ($application) { there(application => $application) });

# Two locks can be shown by the same text: a remedy names the one that is in the way, and no other.
{
    $owner->run(q(INSERT INTO advisory.key_labels (key1, key2, label)
        VALUES (7, -8, 'twin'), (7, -9, 'twin')));
    my $holder = there()->run('SELECT pg_advisory_lock(7, -8)');
    my $waiter = waiting('SELECT pg_advisory_lock(7, -8)');
    my $BOTH = 'SELECT lock, remedy FROM advisory.blockers';
    my ($text, $remedy) = @{ $super->rows($BOTH)->[0] };
    is($remedy, 'SELECT advisory.terminate_blocker(' . $holder->pid . ", '7, -8');",
        'the remedy for a pair has its keys');
    $holder->run('SELECT pg_advisory_unlock(7, -8)', 'SELECT pg_advisory_lock(7, -9)');
    $waiter->finish;
    $waiter->run('SELECT pg_advisory_unlock(7, -8)');
    my $next = waiting('SELECT pg_advisory_lock(7, -9)');
    is($super->value('SELECT waiters FROM advisory.blockers'), 1, '... another one has a waiter');
    $super->shows($remedy =~ s/;//r, 0, '... but it ends nobody who has that');
    $super->shows($super->value('SELECT remedy FROM advisory.blockers') =~ s/;//r, 1,
        '... which has a remedy of its own');
    $next->finish;
    done($waiter);
    done($next);
    $owner->run('DELETE FROM advisory.key_labels WHERE label = $$twin$$');
}
# The HINT of an error has the same statement as the view.
for my $case ([ "lock('billing', 'invoice:42')", "terminate_holder('billing', 'invoice:42'" ],
    [ "lock('q', repeat('x', 50))", 'terminate_holder_key(' ],
    [ q{lock('q', E'two\nlines')}, 'terminate_holder_key(' ],
    [ 'lock_key(4711)', 'terminate_holder_key(4711' ])
{
    my ($take, $start) = @$case;
    my $holder = there()->run("SELECT advisory.$take");
    my $waiter = waiting("SELECT advisory.$take");
    my $remedy = $super->value('SELECT remedy FROM advisory.blockers');
    like($remedy, qr/^SELECT advisory\.\Q$start\E/, "the remedy for $take");
    my $error = $super->query('SELECT advisory.' . $take =~ s/\)$/, timeout => '0')/r);
    like($error->{hint} // '', qr/: \Q${\($remedy =~ s{;$}{}r)}\E\.$/, '... is that of the HINT');
    done($holder);
    $waiter->finish;
    done($waiter);
}
# A slot is not the lock of its name.
{
    my $holder = there()->run(q(SELECT advisory.lock('q', 'both')));
    my $ends = "SELECT advisory.terminate_holder('q', 'both', " . $holder->pid . ', kind => ';
    $super->shows("${ends}'$_')", 0, "who has the lock has no $_ of that name")
        for qw(semaphore lease);
    $super->fails("${ends}'slot')", '22023', 'nor is there another kind');
    $holder->run(q(SELECT advisory.unlock('q', 'both'), advisory.acquire('q', 'both', 2)));
    $super->shows("${ends}'lock')", 0, 'who has a slot does not have the lock of that name');
    $super->shows("${ends}'semaphore')", 1, '... but the slot');
}
{
    there(role => 'views_owner')
        ->run('BEGIN', 'SELECT pg_advisory_xact_lock(5)', q(PREPARE TRANSACTION 'it''s'));
    my $waiter = waiting('SELECT pg_advisory_lock(5)');
    my $other = session(server => $server, database => 'views_two', application => 'other')
        ->run('SELECT pg_advisory_lock(4711)');
    my $behind = session(server => $server, database => 'views_two');
    $behind->start('SELECT pg_advisory_lock(4711)');
    waits($super, $behind);
    is_deeply($look->rows('SELECT pid, database, role, scope, granted, gid, blocked_by, known_as
            FROM advisory.locks ORDER BY database, granted DESC'),
        [ [ undef, 'views_one', 'views_owner', 'transaction', 1, "it's", undef,
            ['several programs use it'] ],
          [ $waiter->pid, 'views_one', 'postgres', undef, 0, undef, [0],
              ['several programs use it'] ],
          [ $other->pid, 'views_two', 'postgres', undef, 1, undef, undef, undef ],
          [ $behind->pid, 'views_two', 'postgres', undef, 0, undef, [ $other->pid ], undef ] ],
        'prepared transactions, and other databases, whose keys have no labels');
    is_deeply($look->rows('SELECT pid, who, lock, remedy FROM advisory.blockers ORDER BY lock'),
        [ [ $other->pid, 'postgres@other', '4711 in database "views_two"',
            'SELECT advisory.terminate_blocker(' . $other->pid
                . q{, '4711 in database "views_two"');} ],
          [ undef, "views_owner (prepared it's)", '5 "several programs use it"',
              "ROLLBACK PREPARED 'it''s';" ] ], 'their remedies');
    $look->shows('SELECT lock FROM advisory.activity WHERE pid = ?', '4711 in database "views_two"',
        'activity says which database', $other->pid);
    like(join("\n", map { $_->[0] } @{ $look->rows('SELECT * FROM advisory.wait_tree()') }),
        qr{^prepared transaction "it's" of views_owner holds 5 }m, 'the text');
    # Nothing forges a line, and no remedy names another one.
    there()->run('BEGIN', 'SELECT pg_advisory_xact_lock(7)', "PREPARE TRANSACTION E'a\\nb'");
    my $third = waiting('SELECT pg_advisory_lock(7)');
    is_deeply($look->rows(q(SELECT who, remedy FROM advisory.blockers WHERE lock LIKE '7%')),
        [ [ 'postgres (prepared a?b)', undef ] ], 'a newline in its name');
    $super->run("ROLLBACK PREPARED E'a\\nb'");
    $third->finish;
    done($third);
    # Of two prepared transactions with the same local number neither is named.
    my @pair = map { there() } 1, 2;
    $_->run('BEGIN', 'SELECT pg_advisory_xact_lock_shared(6)',
        sprintf q(PREPARE TRANSACTION 'pair %d'), $_->pid) for @pair;
    my $same = $super->value(q(SELECT count(*) - count(DISTINCT virtualtransaction) FROM pg_locks
            WHERE pid IS NULL AND locktype = 'transactionid'));
    is($look->value('SELECT count(gid) FROM advisory.locks WHERE key = 6'), $same ? 0 : 2,
        "gid is right or null ($same alike)");
    is_deeply($look->rows('SELECT remedy FROM advisory.blockers WHERE pid IS NULL AND who IS NULL'),
        [], 'no remedy for the wrong one');
    $owner->run($_) for q(ROLLBACK PREPARED 'it''s');
    $super->run(sprintf q(ROLLBACK PREPARED 'pair %d'), $_->pid) for @pair;
    done($other);
    $_->finish for $waiter, $behind;
    done($waiter, $behind, @pair);
}

# What one checks before ending a session; and a root that waits itself, for a standby, with the
# lock of NOTIFY.
{
    my $holder = there(role => 'views_owner')->run('SELECT pg_advisory_lock(8)');
    my $waiter = waiting('SELECT pg_advisory_lock(8)');
    my $CHECKED = 'SELECT state, backend_type, client_addr, query FROM advisory.blockers';
    $holder->start("/* " . 'x' x 900 . " */ SELECT\n\t  pg_sleep(600)");
    $owner->wait_until('it sleeps', q(SELECT count(*) FROM pg_stat_activity WHERE pid = ?
        AND wait_event = 'PgSleep'), $holder->pid);
    is_deeply($owner->rows($CHECKED),
        [ [ 'active, waits for PgSleep (Timeout)', 'client backend', undef,
            '/* ' . 'x' x 40 . '...' . 'x' x 19 . ' */ SELECT pg_sleep(600)' ] ],
        'blockers: what a holder does');
    is_deeply($look->rows($CHECKED), [ [ undef, undef, undef, '<insufficient privilege>' ] ],
        '... for those only who may see it');
    $super->run('SELECT pg_cancel_backend(' . $holder->pid . ')');
    $holder->finish;
    done($holder);
    $waiter->finish;
    set_standby_names($super, 'nobody');
    my ($commit, $second) = map { there() } 1, 2;
    $commit->start('BEGIN; CREATE TEMP TABLE written (); NOTIFY x; COMMIT');
    $super->wait_until('it waits for the standby',
        q(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'));
    $second->start('BEGIN; SELECT pg_advisory_xact_lock(9); NOTIFY x; COMMIT');
    waits($super, $second);
    is_deeply($super->rows('SELECT state, lock FROM advisory.blockers'),
        [ [ 'active, waits for SyncRep (IPC)', q(NOTIFY's commit lock) ] ],
        q(NOTIFY's commit lock));
    set_standby_names($super, '');
    $_->finish for $commit, $second;
    done($waiter, $commit, $second);
}

# ---- Semaphores ----------------------------------------------------------------------------------

{
    my @slots = map {
        there()->run("SELECT pg_advisory_lock(advisory._slot_key('mail', 'smtp', $_))")
    } 1, 2;
    my $head = there()->run(q(SELECT pg_advisory_lock(advisory._slot_key('mail', 'smtp', 0))));
    $head->start('SELECT pg_sleep(600)');
    my $queued = waiting(q(SELECT pg_advisory_lock(advisory._slot_key('mail', 'smtp', 0))));
    my @held = map { $_->pid } @slots;
    is_deeply($look->rows('SELECT pid, kind, namespace, name, key, slot, granted, blocked_by
            FROM advisory.locks ORDER BY kind DESC, slot, cardinality(blocked_by)'),
        [ (map {
            [ $held[ $_ - 1 ], 'semaphore', 'mail', 'smtp', key('mail', 'smtp'), $_, 1, undef ]
        } 1, 2),
          [ $head->pid, 'queue', 'mail', 'smtp', key('mail', 'smtp'), undef, 0, [@held] ],
          [ $queued->pid, 'queue', 'mail', 'smtp', key('mail', 'smtp'), undef, 0,
              [ @held, $head->pid ] ] ], 'slots and queue of a labelled semaphore');
    is_deeply($look->rows('SELECT * FROM advisory.semaphores'),
        [ [ 'mail', 'smtp', key('mail', 'smtp'), undef, 2, undef, 2, [@held], 0, undef, 2 ] ],
        'semaphores');
    is_deeply($look->rows('SELECT pid, waiters, remedy FROM advisory.blockers ORDER BY lock'),
        [ map { [ $_, 2,
            "SELECT advisory.terminate_holder('mail', 'smtp', $_, kind => 'semaphore');" ] }
            @held ],
        'every slot is in the way');
    like(join("\n", map { $_->[0] } @{ $look->rows('SELECT * FROM advisory.wait_tree()') }),
        qr{holds\ slot\ 1\ of\ mail/smtp\ .*\n
            \ \ \d+\ .*\ waits\ for\ a\ slot\ of\ mail/smtp\ .*and\ 1\ more\ holder}x,
        'the text');
    my $third = q((advisory._slot_key('mail', 'smtp', 3)));
    $slots[0]->run("SELECT pg_advisory_lock$third");
    is_deeply($look->rows('SELECT blocked_by FROM advisory.locks WHERE pid = ?', $head->pid),
        [ [ [ sort { $a <=> $b } @held ] ] ], 'who has two slots stands once in blocked_by');
    like(join("\n", map { $_->[0] } @{ $look->rows('SELECT * FROM advisory.wait_tree()') }),
        qr/and 1 more holder\)/, '... and is one holder, also if many have many slots');
    $slots[0]->run("SELECT pg_advisory_unlock$third");
    $owner->run(q(DELETE FROM advisory.key_labels WHERE label = 'mail/smtp'));
    $look->shows(q(SELECT count(*) FROM advisory.holders('mail', 'smtp')
            WHERE kind IN ('semaphore', 'queue')), 4, 'holders() needs no label');
    $super->shows(q(SELECT advisory.terminate_holder('mail', 'smtp', ?)), 1,
        'terminate_holder() neither', $held[1]);
    $super->run('SELECT pg_cancel_backend(' . $_->pid . ')') for $head, $queued;
    $_->finish for $head, $queued;
    done($slots[0], $head, $queued);
}

# ---- Many ----------------------------------------------------------------------------------------

{
    my $holder = there(application => 'h' x 60)
        ->run('SELECT pg_advisory_lock(99)',
            'SELECT pg_advisory_lock(i) FROM generate_series(1, 40) AS i');
    my @waiters =
        map { waiting('SELECT pg_advisory_lock(99)', application => "waiter $_") } 1 .. 13;
    my $lines = $super->rows('SELECT lock, who, blocked_by FROM advisory.activity');
    is_deeply([ map { $_->[0] } @{$lines}[ 0 .. 11 ] ], [ ('99') x 10, '(3 more)', '99' ],
        'activity counts the others');
    is_deeply([ map { $lines->[$_][2] } 0, 9, 10, 11 ], [ ($holder->pid) x 3, undef ],
        'and says who holds the lock');
    is_deeply([ scalar @$lines, $lines->[-1][0] ], [ 43, '(10 more)' ],
        'of one session it shows thirty other locks');
    is_deeply([ map { length $lines->[$_][1] } 11, 12, -1 ], [ 30, 30, 30 ], 'long names are cut');
    my $tree = $super->rows('SELECT * FROM advisory.wait_tree()');
    is(scalar @$tree, 14, 'wait_tree() shows all');
    is_deeply($super->rows('SELECT waiters, remedy FROM advisory.blockers'),
        [ [ 13, 'SELECT advisory.terminate_holder_key(99, ' . $holder->pid
            . q{, kind => 'lock');} ] ],
        'blockers counts all; a lock without a name');
    done($holder);
    $super->run('SELECT pg_terminate_backend(' . $_->pid . ')') for @waiters;
    until_gone($super, $_) for @waiters;
}

# ---- At random -----------------------------------------------------------------------------------

cmp_ok(random_waits(look => $super, waiters => [ map { there() } 1 .. 24 ], locks => 8,
    rounds => 4), '>', 0, 'cycles were among them');

# ---- Semaphores without a label, and a lock of a queue that a prepared transaction has -----------

{
    my ($holder, @waiters) = map { there() } 1 .. 3;
    $holder->run(q(SELECT advisory.acquire('nameless', 's', 1)));
    for (@waiters) { $_->start(q(SELECT advisory.acquire('nameless', 's', 1))) }
    wait_until('they wait', sub {
        $super->value('SELECT count(*) FROM advisory.locks WHERE NOT granted AND pid IN (?, ?)',
            map { $_->pid } @waiters) == 2
    });
    my $pid = $holder->pid;
    my $queue = $owner->value(q(SELECT advisory._slot_key('nameless', 's', 0)));
    is_deeply($look->rows('SELECT * FROM advisory.semaphores'),
        [ [ undef, undef, $queue, undef, 1, undef, 2, [$pid], 0, undef, 2 ] ],
        'semaphores shows it, without names');
    is_deeply($super->rows(
        q{SELECT pid, waiters, remedy LIKE 'SELECT advisory.terminate_holder_key(%'
            FROM advisory.blockers}), [ [ $pid, 2, 1 ] ], 'the root is the holder');
    $super->shows($super->value('SELECT remedy FROM advisory.blockers'), 1,
        '... and the remedy ends it');
    wait_until('one has the slot', sub {
        $super->value(q(SELECT count(*) FROM advisory.holders('nameless', 's') WHERE granted)) == 1
    });
    $super->run('SELECT pg_terminate_backend(' . $_->pid . ')') for @waiters;
}
{
    my ($zero, $seven) = map { there()->run("SELECT pg_advisory_lock($_)") } 0, 7;
    is_deeply($super->rows(
        'SELECT kind, key, granted FROM advisory.locks WHERE key IN (0, 7) ORDER BY key'),
        [ [ 'lock', 0, 1 ], [ 'lock', 7, 1 ] ], 'small numbers are no semaphore');
}
$super->run(
    q(INSERT INTO advisory.key_labels (key, label) VALUES (advisory.key('odd', 's'), 'odd/s')),
    'BEGIN',
    q(SELECT pg_advisory_xact_lock(advisory._slot_key('odd', 's', 0))),
    q(PREPARE TRANSACTION 'regress_portable_queue'));
ok(defined $super->value("SELECT count(*) FROM advisory.$_"),
    "$_: a prepared transaction has the lock of a queue")
        for qw(locks activity waits blockers semaphores);
$super->run(q(ROLLBACK PREPARED 'regress_portable_queue'));

# ---- The lock table ------------------------------------------------------------------------------

$super->run('SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 300) AS i',
    'SELECT count(pg_advisory_lock_shared(i)) FROM generate_series(1, 300) AS i');
my $PRESSURE = q(SELECT status, percent_used = percent_of_guaranteed,
    headroom = locks_guaranteed - locks_used, locks_used >= 300,
    holders_guaranteed = 2 * locks_guaranteed, exact, locks_estimated = locks_guaranteed,
    holders_estimated = holders_guaranteed FROM advisory.pressure);
my $is_fixed = $super->value('SHOW server_version_num') >= 190_000;
is_deeply($look->rows($PRESSURE),
    [ $is_fixed ? [ 'ok', 1, 1, 1, 1, 1, 1, 1 ] : [ 'ok', undef, undef, 1, 1, 0, undef, undef ] ],
    'pressure');
SKIP: {
    skip 'before 19 the tables grow', 2 unless $is_fixed;
    my $LOCKS = 'SELECT count(pg_advisory_lock(1000 + i)) FROM generate_series(1, %s) AS i';
    my $room = $super->value('SELECT headroom FROM advisory.pressure');
    $super->run('BEGIN', sprintf $LOCKS, $room - 50);
    my ($percent, $status) =
        @{ $super->rows('SELECT percent_used, status FROM advisory.pressure')->[0] };
    ok($percent > 99 && $status eq 'critical', 'it knows how many locks fit') or diag $percent;
    $super->fails(sprintf($LOCKS, $room + 50), '53200', '... and that no more do');
    $super->run('ROLLBACK', 'SELECT pg_advisory_unlock_all()');
}

done_testing;
