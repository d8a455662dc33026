#!/usr/bin/env perl
# Leader election, with examples/node/leader-election.js itself: there are three candidates, and the
# leader loses its connection in every possible way. Each time another candidate leads within a
# second. There are never two leaders, even if the old leader's process was stopped, or the server
# did not answer it.
use AdvisoryTest;
use Launch;
use Programs;

use constant { SECONDS => 1, ATTEMPTS => 3 };

plan skip_all => 'there is no Node with node-postgres here' unless node_modules();

create_database();
my $look = session();
# The example's own table, from its head.
my ($table) = slurp(examples('node/leader-election.js')) =~ m{^//\s+(CREATE TABLE term \(.*?\));$}ms
    or die "the example has no table\n";
$look->run($table =~ s{^//}{}gmr);

my %candidates;
sub candidate ($name) {
    $candidates{$name} = launch_node(examples('node/leader-election.js'), $name);
    return;
}

# The term after a number: its own number, the leader, and the server's process, as soon as that one
# has the lock and says so.
sub term ($after = 0) {
    my $rows;
    wait_until('somebody leads', sub {
        $rows = $look->rows(<<'SQL', $after);
            SELECT number, leader, pid
            FROM (SELECT * FROM term ORDER BY number DESC LIMIT 1) AS term
            JOIN advisory.holders('leader', 'scheduler') h
                ON granted AND h.application_name = leader
            WHERE number > ?
SQL
        return scalar @$rows });
    return { number => $rows->[0][0], leader => $rows->[0][1], pid => $rows->[0][2] };
}

sub all_waiting {
    return $look->wait_until('one leads and two wait',
        q{SELECT count(*) FILTER (WHERE granted) = 1 AND count(*) FILTER (WHERE NOT granted) = 2
            FROM advisory.holders('leader', 'scheduler')});
}

my $terms = 1;
sub next_term ($old) {
    $terms++;
    return term($old->{number});
}

# Waits for the leader's next one; when it has just been given, its session has nothing to do for a
# while.
sub gives_sign_of_life ($term) {
    my $seen = $look->value('SELECT last_seen FROM term WHERE number = ?', $term->{number});
    return $look->wait_until('it gives a sign of life', q{SELECT last_seen > ? AND state = 'idle'
        FROM term, pg_stat_activity a WHERE number = ? AND a.pid = ?}, $seen,
        @$term{qw(number pid)});
}

sub knows_of_its_end ($term) {
    ok($candidates{ $term->{leader} }->says(
        qr/term $term->{number}\n(?:.*\n)*?(\Q$term->{leader}\E leads no more)\n/),
        '... the old one knows that it leads no more');
    return;
}

candidate($_) for qw(ann bob cyd);
all_waiting();
term();
is($look->value('SELECT count(*) FROM term'), 1, 'three candidates, one leader');
$look->shows(q{SELECT count(*) FROM pg_stat_activity JOIN advisory.holders('leader', 'scheduler') h
    USING (pid) WHERE NOT granted AND backend_xmin IS NULL}, 2,
    'the others wait without a snapshot');

my $TERMINATE = q{advisory.terminate_holder('leader', 'scheduler', ?)};
for my $case (
    # how the leader's connection ends, by which function, and whether its process sleeps meanwhile
    ['its process is killed'],    # the server finds the connection closed by itself
    [ 'pg_terminate_backend',      'pg_terminate_backend(?)' ],
    [ 'advisory.terminate_holder', $TERMINATE ],
    # As if it had been swapped out: when it wakes up, it still takes itself for the leader.
    [ 'its session is ended while it sleeps', $TERMINATE, 1 ],
) {
    my ($way, $function, $sleeps) = @$case;
    # A machine that is busy with other things is forgiven twice.
    for my $attempt (1 .. ATTEMPTS) {
        all_waiting();
        my $old = term();
        my $program = $candidates{ $old->{leader} };
        gives_sign_of_life($old);

        # On the server's clock, as the terms are.
        my $ended = $look->value('SELECT clock_timestamp()');
        kill STOP => $program->{pid} if $sleeps;
        if ($function) { $look->shows("SELECT $function", 1, "$way: it is told", $old->{pid}) }
        else           { isnt($program->stop('KILL'), 0, "$way: it is dead") }
        my $new = next_term($old);
        my $seconds = $look->value(
            'SELECT extract(epoch FROM began - ?) FROM term WHERE number = ?', $ended,
            $new->{number});
        kill CONT => $program->{pid} if $sleeps;
        isnt($new->{leader}, $old->{leader}, '... another one leads');
        if ($function) { knows_of_its_end($old) }
        else           { candidate($old->{leader}) }
        next if $seconds >= SECONDS && $attempt < ATTEMPTS;
        cmp_ok($seconds, '<', SECONDS, '... within a second');
        note("$way: $seconds s");
        last;
    }
}

# The server's process stands still, as if the network were cut: the lock is still taken, and nobody
# leads.
SKIP: {
    my ($version) = slurp(node_modules() . '/pg/package.json') =~ /"version": *"(\d+\.\d+)/;
    my ($major, $minor) = split /\./, $version;
    skip "a limit for each query came with pg 8.13, and this is $version", 4
        if $major == 8 && $minor < 13;
    all_waiting();
    my $old = term();
    # not to be stopped while it has its hands on something that everybody needs
    gives_sign_of_life($old);
    kill STOP => $old->{pid};
    eval { knows_of_its_end($old); 1 } or fail($@);
    is($look->value(q{SELECT pid FROM advisory.holders('leader', 'scheduler') WHERE granted}),
        $old->{pid}, '... though the lock is still its session\'s');
    $look->shows('SELECT max(number) FROM term', $old->{number}, '... and so nobody else leads');
    kill CONT => $old->{pid};
    isnt(next_term($old)->{pid}, $old->{pid}, '... until the server finds out that it has gone');
}
ok(all_waiting(), 'a process that lost its connection is a candidate again');

# The last one may have begun just now.
my $silent = 'SELECT count(*) FROM term WHERE last_seen = began';
wait_until('the last leader gives a sign of life',
    sub { $look->value("$silent AND number = (SELECT max(number) FROM term)") == 0 });

# The record, on the server's clock: from when a leader began to when it last gave a sign of life.
is($look->value('SELECT count(*) FROM term'), $terms, 'as many terms as leaders were seen');
is($look->value($silent), 0, 'every leader gave signs of life');
my $overlaps =
    'SELECT count(*) FROM term a JOIN term b ON a.number < b.number AND a.last_seen >= b.began';
is($look->value($overlaps), 0, 'never two at once');
$look->run('BEGIN', 'UPDATE term SET last_seen = clock_timestamp() WHERE number = 1');
is($look->value($overlaps), $terms - 1, '... (which the record would show)');
$look->run('ROLLBACK');

# Each candidate's own words: it leads, it leads no more, in turn.
for my $name (sort keys %candidates) {
    my $words = join ' ', $candidates{$name}->said =~ /(leads(?:, term| no more))/g;
    like($words, qr/\A(?:leads, term leads no more ?)*(?:leads, term)?\z/,
        "$name has one term after the other");
    $candidates{$name}->stop;
}
ok($look->wait_until('all have gone', q{SELECT NOT advisory.is_locked('leader', 'scheduler')}),
    'when all have gone, nobody leads');

done_testing();
