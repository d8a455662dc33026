#!/usr/bin/env perl
# The portable edition and clients in Node that compute the keys themselves and call the built-in
# functions exclude each other. (keys_clients.t: clients in other languages have the same keys.)
use utf8;
use AdvisoryTest;
use FindBin;
use JSON::PP;
use Launch;
use List::Util qw(sum0);
use POSIX qw(ceil);
use Programs;
use Time::HiRes qw(sleep);

use constant { OPERATIONS => 10_000, PROGRAMS => 2 };

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);

# The sessions of each program.
my @KINDS = qw(portable portable keys keys slots slots);

plan skip_all => 'there is no Node with node-postgres here' unless node_modules();

create_portable_database();
my $look = session();

# Whoever has a lock is in, and looks for others that should not be. The COMMIT lets one of two see
# the other.
$look->run('CREATE UNLOGGED TABLE inside (what text, pid integer, is_shared boolean)',
    'CREATE TABLE wrong (what text)', <<'SQL', <<'SQL');
CREATE PROCEDURE enter(me integer, it text, shared boolean) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO inside VALUES (it, me, shared);
    COMMIT;
    INSERT INTO wrong SELECT format('%s: %s and %s', it, me, pid) FROM inside
    WHERE what = it AND pid <> me AND NOT (shared AND is_shared);
END $$
SQL
CREATE PROCEDURE holds_nothing(me integer) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wrong SELECT format('%s holds %s %s, which it was refused', me, classid, objid)
    FROM pg_locks WHERE locktype = 'advisory' AND pid = me AND granted;
END $$
SQL

# Few names, so that sessions meet.
my $seed = srand;
my @alphabet = ('a' .. 'z', 0 .. 9, split //, q{:/.'"\\$% {}äßñЖあ漢字😀🔒é});
my $random = sub { return join '', map { $alphabet[ rand @alphabet ] } 1 .. 1 + rand $_[0] };
my @names = ([ 'billing', 'invoice:42', 'text' ], [ 'größe', 'naïve ☃', 'text' ],
    [ 'long', 'ü' x 5000, 'text' ],
    [ 'user', '42', 'bigint' ], [ 'user', '-9223372036854775808', 'bigint' ],
    [ 'order', '00000000-0000-0000-0000-00000000000a', 'uuid' ],
    map { [ $random->(20), $random->(40), 'text' ] } 1 .. 2);
my $file = spew(scratch() . '/names.json', JSON::PP->new->encode(\@names));
my @program = ("$FindBin::Bin/node/exclusion.js", $file, ceil(OPERATIONS / @KINDS / PROGRAMS));
my @running = map { launch_node(@program, @KINDS) } 1 .. PROGRAMS;
# One that waits is cancelled now and then.
my $end = time + 200;
until (!grep { !$_->is_done } @running) {
    if (time > $end) {
        diag explain $look->rows(q(SELECT pg_blocking_pids(pid), a.*, l.* FROM pg_stat_activity a
            LEFT JOIN pg_locks l USING (pid) WHERE datname = current_database()));
        die "the programs do not end; seed $seed\n";
    }
    $look->rows(q(SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                  WHERE application_name = 'locks' AND wait_event_type = 'Lock' ORDER BY random()
                  LIMIT 1));
    sleep 0.05;
}
my %sum;
for my $program (@running) {
    my ($said, $status) = $program->finish;
    is($status, 0, "$program->{command} ends well") or diag $said;
    my $tally = eval { decode_json($said) } // {};
    $sum{$_} += $tally->{$_} for keys %$tally;
}
diag join ', ', map { "$_ $sum{$_}" } sort keys %sum;
$look->shows('SELECT left(what, 100) FROM wrong LIMIT 20', [],
    'no two have a lock or a slot that they cannot share, and who was refused holds nothing')
    or diag "seed $seed";
for my $kind (qw(portable keys slots)) {
    cmp_ok($sum{"$kind $_"} // 0, '>', OPERATIONS / 100, "... $kind: often $_")
        for qw(taken refused);
}
cmp_ok(sum0(map { $sum{"$_ cancelled"} // 0 } qw(portable keys slots)), '>', 10,
    '... and some are cancelled');
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');
done_testing();
