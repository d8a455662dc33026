#!/usr/bin/env perl
# Semaphores in the views: their holders, waiters and prepared transactions, and what other roles
# see of them.
use AdvisoryTest;
use Semaphores;

my $look = observer();

{
    my $role = "advisory_semaphores_$$";
    $look->run("CREATE ROLE $role LOGIN");
    my $key = $look->value(q(SELECT advisory.key('sem', 'shown')));
    my ($holder, $other, $first, $second) = map { session(application => $_) } qw(holder other
        first second);
    my $from = $look->value('SELECT clock_timestamp()');
    $holder->run(acquires('shown', 3));
    $other->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'shown', 3)));
    my $prepares = session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'shown', 3)),
        q(PREPARE TRANSACTION 'a gid'));
    leave($look, $prepares);
    in_queue($_, acquires('shown', 3)) for $first, $second;
    my $to = $look->value('SELECT clock_timestamp()');
    my @holders = ($holder->pid, $other->pid, 0);
    my $given = '3 by '
        . join ', ', sort { $a <=> $b } map { $_->pid } $holder, $other, $first, $second;
    is_deeply($look->rows('SELECT * FROM advisory.semaphores'),
        [ [ 'sem', 'shown', $key, 3, 3, 0, 2, \@holders, 0, $given, 2 ] ],
        'semaphores');
    is_deeply($look->rows(q(SELECT pid, gid, kind, namespace, name, slot, key, key1, key2, mode,
            scope, granted, blocked_by, acquired_at BETWEEN ? AND ?, held >= '0', wait_start, waited
                            FROM advisory.locks WHERE granted ORDER BY slot), $from, $to),
        [ [ $holder->pid, undef, 'semaphore', 'sem', 'shown', 1, $key, undef, undef, 'exclusive',
            'session', 1, undef, 1, 1, undef, undef ],
          [ $other->pid, undef, 'semaphore', 'sem', 'shown', 2, $key, undef, undef, 'exclusive',
              'transaction', 1, undef, 1, 1, undef, undef ],
          [ undef, 'a gid', 'semaphore', 'sem', 'shown', 3, $key, undef, undef,
              'exclusive', 'transaction', 1, undef, undef, undef, undef, undef ] ],
          'locks: a row for each slot');
    my @waiting = @{ $look->rows(q(SELECT pid, kind, namespace, name, slot, key, mode, granted,
            acquired_at, held, wait_start BETWEEN ? AND ?, waited >= '0', blocked_by
                                   FROM advisory.locks WHERE NOT granted ORDER BY wait_start),
                                   $from, $to) };
    is_deeply([ map { [ @$_[ 0 .. 11 ] ] } @waiting ], [ map { [ $_->pid, 'queue', 'sem', 'shown',
            undef, $key, 'exclusive', 0, undef, undef, 1, 1 ] } $first, $second ],
        'and one for each waiter');
    for my $row (@waiting) {
        my %blocked_by = map { $_ => 1 } @{ $row->[12] };
        is_deeply([ @blocked_by{@holders} ], [ 1, 1, 1 ], 'blocked by the holders of the slots');
    }
    is_deeply($look->rows('SELECT root_pid, depth, path, pid, waits_for_pid, namespace, name, key,
            mode FROM advisory.waits WHERE depth = 0 AND root_pid = ?', $holder->pid),
        [ [ $holder->pid, 0, [ $holder->pid ], $holder->pid, undef, 'sem', 'shown', $key,
            'exclusive' ] ], 'waits: a holder is a root');
    $look->shows('SELECT objsubid, key1, key2 FROM advisory.waits WHERE pid = ? UNION
        SELECT objsubid, key1, key2 FROM advisory.waits WHERE pid = ? ORDER BY 1',
        [ '16383|NULL|NULL', '16385|NULL|NULL' ], 'the queue and the slot by their objsubid',
        $holder->pid, $first->pid);
    is_deeply($look->rows(q(SELECT DISTINCT pid FROM advisory.waits WHERE depth > 0
            AND waits_for_pid IS NOT NULL AND name = 'shown' AND waited >= '0' ORDER BY pid)),
        [ map { [$_] } sort { $a <=> $b } map { $_->pid } $first, $second ],
        'with the waiters below');
    is_deeply($look->rows('SELECT pid, root_pid FROM advisory.waits WHERE depth > 0
            ORDER BY waited DESC'), [ map { [ $_->pid, $holder->pid ] } $first, $second ],
        'each once, under the holder that has had its slot longest');
    my $tree = join '', map { "$_->[0]\n" } @{ $look->rows('SELECT * FROM advisory.wait_tree()') };
    my ($h, $o, $f, $s) = map { $_->pid } $holder, $other, $first, $second;
    like($tree, qr{^$h postgres\@holder holds slot 1 of sem/shown exclusive, idle \d+ s
  $f postgres\@first waits for a slot of sem/shown exclusive \d+ s \(and 2 more holders\)
  $s postgres\@second waits for a slot of sem/shown exclusive \d+ s \(and 2 more holders\)
\z}, 'wait_tree()') or diag $tree;
    is_deeply($look->rows('SELECT lock, slot, pid, who, state FROM advisory.activity'),
        [ [ 'sem/shown', undef, $f, 'postgres@first', 'active' ],
            [ 'sem/shown', undef, $s, 'postgres@second', 'active' ],
          @{ $look->rows('SELECT lock, slot, pid, who, state FROM advisory.activity
              WHERE waiting IS NULL ORDER BY slot') } ], 'activity: the waiters first');
    $look->shows('SELECT slot, who, state, waiting IS NULL, blocked_by FROM advisory.activity
        WHERE slot IS NOT NULL ORDER BY slot', [ '1|postgres@holder|idle|1|NULL',
            '2|postgres@other|idle in xact|1|NULL', '3|postgres (prepared a gid)|NULL|1|NULL' ],
        'then the holders');

    # No session waits for a session behind it in the queue. (With only two or three waiters the
    # order could be right by chance.)
    my @behind = queue_up('shown', 3, map { {} } 1 .. 4);
    my @queue = map { $_->pid } $first, $second, @behind;
    my %place = map { $queue[$_] => $_ + 1 } 0 .. $#queue;
    my $behind_it = sub ($pid, @in_its_way) {
        return map { "number $place{$pid} waits for number $place{$_}" } grep { ($place{$_}
                // 0) > $place{$pid} } @in_its_way;
    };
    is(join("\n", map { $behind_it->($_->[0], @{ $_->[1] }) } @{ $look->rows('SELECT pid, blocked_by
            FROM advisory.locks WHERE NOT granted ORDER BY wait_start') }), '',
        'blocked_by: no session is blocked by one behind it');
    is(join("\n", map { $behind_it->(@$_) } @{ $look->rows('SELECT DISTINCT pid, waits_for_pid
            FROM advisory.waits WHERE waits_for_pid IS NOT NULL') }), '',
        'waits: no session waits for one behind it');
    leave($look, @behind);

    # The columns that an unprivileged role sees of other roles' slots, and of its own.
    my $HIDDEN = '<insufficient privilege>';
    my $unprivileged = session(role => $role);
    $unprivileged->run(acquires('mine', 2));
    is_deeply($unprivileged->rows('SELECT namespace, name, slots, in_use, waiting, holders
            FROM advisory.semaphores ORDER BY in_use'),
        [ [ 'sem', 'mine', 2, 1, 0, [ $unprivileged->pid ] ], [ $HIDDEN, $HIDDEN, 3, 3, 2,
            \@holders ] ], 'an unprivileged role: no names of others in semaphores');
    $unprivileged->shows('SELECT DISTINCT namespace, name, kind FROM advisory.locks
            WHERE role <> current_user ORDER BY kind',
            [ "$HIDDEN|$HIDDEN|queue", "$HIDDEN|$HIDDEN|semaphore" ], 'nor in locks');
    is_deeply($unprivileged->rows('SELECT DISTINCT lock FROM advisory.activity ORDER BY lock'),
        [ [ $look->value("SELECT advisory.key('sem', 'shown')") ], ['sem/mine'] ],
        'activity shows the key instead');
    $unprivileged->shows('SELECT DISTINCT namespace, name FROM advisory.waits', "$HIDDEN|$HIDDEN",
        'nor in waits');
    unlike(join("\n", $unprivileged->column('SELECT * FROM advisory.wait_tree()')), qr/shown/,
        'nor in wait_tree()');
    $unprivileged->shows('SELECT name FROM advisory.locks WHERE pid = pg_backend_pid()', 'mine',
        'but the names of its own slots');
    $look->run("GRANT pg_read_all_stats TO $role");
    $unprivileged->shows(q(SELECT namespace, name FROM advisory.semaphores WHERE name = 'shown'),
        'sem|shown', 'with pg_read_all_stats it sees them');

    $look->run(q(ROLLBACK PREPARED 'a gid'));
    $first->returns(3, 'the first waiter gets the slot of the prepared transaction');
    $holder->run(releases('shown'));
    $second->returns(1, 'and the second one that of a session');
    leave($look, $holder, $other, $first, $second, $unprivileged);
    $look->run("DROP ROLE $role");

    # Of another database, where the name has the same key.
    my $elsewhere = session(database => create_database(name => "advisory_there_$$",
            aside => 1))->run(acquires('shown', 3));
    $elsewhere->shows('SELECT in_use FROM advisory.semaphores', 1,
        'semaphores has those of the current database');
    $look->shows('SELECT count(*) FROM advisory.semaphores', 0, '... and of no other one');
}

# A session with very many slots is in the way of a waiter once, and stops no view.
{
    my $holder = session()->run('SELECT count(advisory.acquire(\'sem\', \'many\', 2000))
        FROM generate_series(1, 2000)');
    my @waiters = map { session() } 1 .. 12;
    in_queue($_, acquires('many', 2000)) for @waiters;
    $look->shows('SELECT blocked_by[1], cardinality(blocked_by) FROM advisory.locks
        WHERE NOT granted ORDER BY cardinality(blocked_by)',
        [ map { $holder->pid . "|$_" } 1 .. @waiters ],
        'blocked_by has each session once: the holder, and those ahead');
    $look->run(q(SET statement_timeout = '10s'));
    $look->succeeds("SELECT count(v) FROM advisory.$_ AS v", "$_ ends soon")
        for qw(locks activity waits wait_tree() blockers semaphores leaks);
    $look->run('RESET statement_timeout');
    $look->shows('SELECT waiters FROM advisory.blockers', 12, 'all wait for the one holder');
    $look->shows('SELECT DISTINCT line LIKE \'%more holder%\' FROM advisory.wait_tree() AS line', 0,
        '... and it is one holder');
    leave($holder, @waiters);
}
done_testing();
