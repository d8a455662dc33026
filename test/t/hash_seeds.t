#!/usr/bin/env perl
# Keys that a user chooses so that they collide, and a full name table, cost no more than others:
# the hash functions are seeded, and a name that evicts another one looks at a bounded number of
# entries. It takes servers of its own for the number of locks and names.
# Runs once: what is measured is our own work.
use integer;
use AdvisoryTest;

use constant { KEYS => 20_000, NAMES => 200_000, NEW => 200, TRIES => 3, MOST_ROUNDS => 5,
    MOST_TIMES => 3 };

# PostgreSQL's murmurhash32().
sub murmur ($h) {
    $h &= 0xffffffff;
    $h ^= $h >> 16;
    $h = ($h * 0x85ebca6b) & 0xffffffff;
    $h ^= $h >> 13;
    $h = ($h * 0xc2b2ae35) & 0xffffffff;
    return $h ^ ($h >> 16);
}

# Keys whose hash would be the same if it were murmur(low ^ murmur(high)), as it once was.
sub colliding { return map { ($_ << 32) | (murmur($_) ^ 4711) } 1 .. $_[0] }

# The processor time of the session that the shortest of some tries takes, in seconds.
sub shortest ($session, $body, $after) {
    my $best;
    for (1 .. TRIES) {
        no integer;
        my $took = processor_time($session, $body);
        $best = $took if !defined $best || $took < $best;
        $after->();
    }
    return $best;
}

{
    my $server  = own_server('max_locks_per_transaction=1000');
    my $session = session(server => $server)->run('CREATE EXTENSION advisory_ext',
        'CREATE TABLE keys (kind text, key bigint)');
    my $look    = session(server => $server);
    my %keys    = (colliding => [ colliding(KEYS) ],
        others => [ map { 1_000_000_007 * $_ } 1 .. KEYS ]);
    $session->run("INSERT INTO keys SELECT '$_', unnest('{" . join(',',
            @{ $keys{$_} }) . "}'::bigint[])") for sort keys %keys;
    my (%taking, %looking);
    # Another program may disturb the processor's caches: the shortest of several times counts, and
    # of more where the ratio is still too large.
    for my $round (1 .. MOST_ROUNDS) {
        no integer;
        for my $kind (qw(others colliding)) {
            my $take = sub { $session->run("SELECT count(advisory.lock_key(key,
                    label => 'x' || key)) FROM keys WHERE kind = '$kind'") };
            my $free = sub { $session->run('SELECT pg_advisory_unlock_all()') };
            my $took = shortest($session, $take, $free);
            $taking{$kind} = $took if !defined $taking{$kind} || $took < $taking{$kind};
            $take->();
            $took = shortest($look, sub { $look->value('SELECT count(name) FROM advisory.locks
                    WHERE held IS NOT NULL') }, sub { });
            $looking{$kind} = $took if !defined $looking{$kind} || $took < $looking{$kind};
            is($look->value('SELECT count(name) FROM advisory.locks'), 7_500,
                "$kind: as many names as there is room for") if $round == 1;
            $free->();
        }
        last if $taking{colliding} < MOST_TIMES * $taking{others}
            && $looking{colliding} < MOST_TIMES * $looking{others};
    }
    no integer;
    diag sprintf('taking %d locks: %.2f s, with colliding keys %.2f s; looking at them: %.2f '
        . 's, %.2f s', KEYS, @taking{qw(others colliding)}, @looking{qw(others colliding)});
    cmp_ok($taking{colliding}, '<', MOST_TIMES * $taking{others},
        'locks with colliding keys are taken as fast as others');
    cmp_ok($looking{colliding}, '<', MOST_TIMES * $looking{others}, 'and shown as fast');
    $server->stop;
}

{
    no integer;
    my $server  = own_server('advisory_ext.max_names=' . NAMES);
    my $session = session(server => $server)->run('CREATE EXTENSION advisory_ext');
    my $names   = 0;
    my $add     = sub ($count) {
        my $from = $names + 1;
        $names += $count;
        $session->run("DO \$\$ BEGIN FOR i IN $from .. $names LOOP
            PERFORM advisory.try_xact_lock('n', i); COMMIT; END LOOP; END \$\$");
    };
    my $room = shortest($session, sub { $add->(NEW) }, sub { });
    $add->(NAMES - $names);
    is($session->value('SELECT names FROM advisory.directory'), NAMES, 'the name table is full');
    # The first names that are evicted make room for their sums, once, which can take another piece
    # of shared memory.
    my $evicting = median(map { processor_time($session, sub { $add->(NEW) }) } 1 .. 5);
    diag sprintf('%d new names: %.1f ms, in a full table of %d %.1f ms', NEW, 1000 * $room, NAMES,
        1000 * $evicting);
    cmp_ok($evicting, '<', 10 * $room,
        'new names that evict others cost about what they cost before');
}

done_testing();
