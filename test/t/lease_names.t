#!/usr/bin/env perl
# The locks of leases have a name wherever they are shown, held or awaited, though the name table
# has forgotten it: after a restart of the server, which leases exist to survive, and after an
# eviction.
use AdvisoryTest;

my $server = own_server('advisory_ext.max_names=200');
sub there { return session(server => $server, @_) }
my $look = there()->run('CREATE EXTENSION advisory_ext');

# A session that has used no name itself.
sub looker { leave($look); return $look = there() }

# Takes many names, one at a time: a role may not have more than its share of names in use.
sub flood {
    my $flood = there()->run(q(SELECT count(*) FROM generate_series(1, 1000) AS i
        WHERE advisory.try_lock('flood', i) AND advisory.unlock('flood', i)));
    leave($look, $flood);
    $look = there();
    return;
}

sub restart {
    leave($look);
    $server->ctl('restart', '-m', 'fast') or die "it did not start again\n";
    $look = there();
    return;
}

my %forget = (restart => \&restart, eviction => \&flood);

sub token_of ($name) {
    return there()->value("SELECT token FROM advisory.try_lease('l', ?, '1h')", $name);
}
sub is_known ($name) {
    return $look->value('SELECT count(*) FROM advisory.stats WHERE namespace = ? AND name = ?',
        'l', $name);
}
sub shown_lock ($pid, $is_granted) {
    return $look->rows('SELECT DISTINCT namespace, name FROM advisory.locks
        WHERE kind = ? AND pid = ? AND granted = ?', 'lease', $pid, $is_granted ? 1 : 0);
}

for my $what (sort keys %forget) {
    for my $call ('renew_lease', 'check_lease', 'end_lease') {
        my $name = "$call $what";
        my $token = token_of($name);
        $forget{$what}->();
        is(is_known($name), 0, "$name: the name table has forgotten it");

        # Held: the name is in use as long as the lock.
        my $owner = there()->run('BEGIN', "SELECT advisory.$call('l', '$name', $token)");
        flood();
        is_deeply(shown_lock($owner->pid, 1), [ [ 'l', $name ] ],
            '... locks has the name of what it holds');
        $look->shows('SELECT lock FROM advisory.activity WHERE pid = ? AND mode IS NOT NULL',
            "lease l/$name", '... activity, too', $owner->pid);
        $owner->run('ROLLBACK');
        flood();
        is(is_known($name), 0, '... and afterwards it is in use no more');

        # Awaited: behind a prepared transaction, which registers nothing after the restart.
        $owner->run('BEGIN', "SELECT advisory.end_lease('l', '$name', $token)",
            "PREPARE TRANSACTION 'ends'");
        leave($look, $owner);
        $look = there();
        $forget{$what}->();
        # (The name table keeps it while the prepared transaction holds the lock.)
        is(is_known($name), $what eq 'restart' ? 0 : 1,
            "$name: only a restart makes it forget the name again");
        my $waiter = there()->start("SELECT advisory.$call('l', '$name', $token)");
        waits($look, $waiter);
        looker();
        is_deeply(shown_lock($waiter->pid, 0), [ [ 'l', $name ] ],
            '... locks has the name of what it waits for');
        $look->shows('SELECT lock FROM advisory.activity WHERE pid = ? AND waiting IS NOT NULL',
            "lease l/$name", '... so has activity', $waiter->pid);
        $look->shows('SELECT DISTINCT namespace, name FROM advisory.waits', "l|$name", '... waits');
        like(join("\n", $look->column('SELECT * FROM advisory.wait_tree()')),
            qr{^  ${\$waiter->pid} .* waits for lease l/$name }m, '... wait_tree()');
        $look->shows('SELECT lock FROM advisory.blockers', "lease l/$name", '... and blockers');
        flood();
        is_deeply(shown_lock($waiter->pid, 0), [ [ 'l', $name ] ],
            '... where it stays while it is awaited');
        $look->run("ROLLBACK PREPARED 'ends'");
        is($waiter->finish->{value} ? 1 : 0, 1, '... until the wait ends');
        leave($waiter);
    }
}

# A lease that was just taken, and whose row nobody else can see yet.
my $taker = there()->run('BEGIN', "SELECT advisory.lease('l', 'taken', '1h')");
flood();
is_deeply(shown_lock($taker->pid, 1), [ [ 'l', 'taken' ] ],
    'a lease that was just taken keeps its name until its transaction ends');
$taker->run('SAVEPOINT s', "SELECT advisory.lease('l', 'rolled back', '1h')", 'ROLLBACK TO s',
    "SELECT advisory.lease('l', 'rolled back', '1h')", 'COMMIT');
flood();
$look->shows(q(SELECT count(*) FROM advisory.stats WHERE namespace = 'l' AND name
    IN ('taken', 'rolled back')), 0, '... and no longer');
leave($taker);

# Two transactions that rely on a lease each, and end the other's.
my %token = map { $_ => token_of("dead $_") } 1, 2;
my @sessions = map { there()->run('BEGIN',
        "SELECT advisory.check_lease('l', 'dead $_', $token{$_})") } 1, 2;
$sessions[0]->start("SELECT advisory.end_lease('l', 'dead 2', $token{2})");
waits($look, $sessions[0]);
$sessions[1]->start("SELECT advisory.end_lease('l', 'dead 1', $token{1})");
my ($dead) = grep { ($_->{state} // '') eq '40P01' } map {
    my $result = $_->finish;
    $_->run('ROLLBACK');
    $result
} @sessions;
like($dead->{detail} // '', qr{"l/dead 1".*"l/dead 2"|"l/dead 2".*"l/dead 1"}s,
    'a deadlock over leases names both');
like($dead->{context} // '', qr{^while waiting for lease "l/dead [12]"\z}m,
    '... and says for which one the session waited');
is($dead->{schema}, 'l', '... also in the fields for programs');

# A call that has waited for the end of the lease knows that it has ended.
{
    my ($ends, $relies) = map { there() } 1 .. 2;
    my $token = $ends->value(q(SELECT token FROM advisory.lease('l', 'ended meanwhile', '1h')));
    $ends->run('BEGIN', "SELECT advisory.end_lease('l', 'ended meanwhile', $token)");
    $relies->start("SELECT advisory.check_lease('l', 'ended meanwhile', $token)");
    $ends->wait_until('it waits', 'SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted',
        $relies->pid);
    $ends->run('COMMIT');
    $relies->ends('55000', 'a lease that was ended while its owner waited is lost');
}

done_testing();
