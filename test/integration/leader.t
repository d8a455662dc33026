#!/usr/bin/env perl
# Leader election, with examples/node/leader-election.js itself: three candidates, of whom the leader loses its connection in
# every way that there is. Each time another one leads within a second; never two at once.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib", "$FindBin::Bin/lib";
use AdvisoryTest;
use NodeProgram;
use Programs;
use Test::More;

use constant { SECONDS => 1, ATTEMPTS => 3 };

plan skip_all => 'there is no Node with node-postgres here' unless node_modules();

create_database();
my $look = session();
# The example's own table, from its head.
open my $source, '<', examples('node/leader-election.js') or die "cannot read the example: $!\n";
my ($table) = do { local $/ = undef; <$source> } =~ m{^//\s+(CREATE TABLE term \(.*?\));$}ms or die "the example has no table\n";
$look->run($table =~ s{^//}{}gmr);

my %candidates;
sub candidate {
    my ($name) = @_;
    $candidates{$name} = NodeProgram->start(program => [ examples('node/leader-election.js'), $name ]);
    return;
}

# The last term: number, leader, and the server's process.
sub term {
    my $rows = $look->rows(<<'SQL');
        SELECT number, leader, pid FROM term JOIN advisory.holders('leader', 'scheduler') h ON granted AND h.application_name = leader
        ORDER BY number DESC LIMIT 1
SQL
    return @$rows ? { number => $rows->[0][0], leader => $rows->[0][1], pid => $rows->[0][2] } : undef;
}

sub all_waiting {
    return wait_until('one leads and two wait', sub {
        $look->value(q{SELECT count(*) FILTER (WHERE granted) = 1 AND count(*) FILTER (WHERE NOT granted) = 2 FROM advisory.holders('leader', 'scheduler')}) });
}

my %ways = (
    # The server finds the connection closed by itself.
    'its process is killed' => sub {
        my ($leader) = @_;
        isnt($candidates{ $leader->{leader} }->stop('KILL'), 0, '... it is dead');
        return;
    },
    'pg_terminate_backend' => sub {
        my ($leader) = @_;
        is($look->value('SELECT pg_terminate_backend(?)', $leader->{pid}), 1, '... its session is told to end');
        return;
    },
    'advisory.terminate_holder' => sub {
        my ($leader) = @_;
        is($look->value(q{SELECT advisory.terminate_holder('leader', 'scheduler', ?)}, $leader->{pid}), 1, '... its session is ended');
        return;
    },
);

candidate($_) for qw(ann bob cyd);
all_waiting();
wait_until('there is a term', sub { term() });
is($look->value('SELECT count(*) FROM term'), 1, 'three candidates, one leader');
is($look->value(q{SELECT count(*) FROM pg_stat_activity JOIN advisory.holders('leader', 'scheduler') h USING (pid) WHERE NOT granted AND backend_xmin IS NULL}), 2,
    'the others wait without a snapshot');

my $terms = 1;
for my $way ('its process is killed', 'pg_terminate_backend', 'advisory.terminate_holder') {
    # A machine that is busy with other things is forgiven twice.
    for my $attempt (1 .. ATTEMPTS) {
        all_waiting();
        my $old = term();
        my $heartbeat = q{SELECT last_seen FROM term WHERE number = ?};
        my $seen = $look->value($heartbeat, $old->{number});
        wait_until('it gives a sign of life', sub { $look->value($heartbeat, $old->{number}) ne $seen });

        # On the server's clock, as the terms are.
        my $ended = $look->value('SELECT clock_timestamp()');
        $ways{$way}->($old);
        my $new;
        wait_until('there is another leader', sub { ($new = term()) && $new->{number} != $old->{number} });
        $terms++;
        my $seconds = $look->value('SELECT extract(epoch FROM began - ?) FROM term WHERE number = ?', $ended, $new->{number});
        isnt($new->{leader}, $old->{leader}, "$way: another one leads");
        if ($way eq 'its process is killed') {
            candidate($old->{leader});
        } else {
            my $output = $candidates{ $old->{leader} }->says(qr/\A(.*term $old->{number}\n.*leads no more\n)/s);
            like($output, qr/\Q$old->{leader}\E leads no more\n\z/, '... the old one knows that it leads no more');
        }
        next if $seconds >= SECONDS && $attempt < ATTEMPTS;
        cmp_ok($seconds, '<', SECONDS, '... within a second');
        note("$way: $seconds s");
        last;
    }
}
all_waiting();
pass('whoever has lost its connection is a candidate again');

# The record, on the server's clock: from when a leader began to when it last gave a sign of life.
is($look->value('SELECT count(*) FROM term'), $terms, 'as many terms as leaders were seen');
is($look->value('SELECT count(*) FROM term WHERE last_seen > began'), $terms, 'every leader gave signs of life');
is($look->value('SELECT count(*) FROM term a JOIN term b ON a.number < b.number AND a.last_seen >= b.began'), 0, 'never two at once');

# Each candidate's own words: it leads, it leads no more, in turn.
for my $name (sort keys %candidates) {
    my $words = join ' ', $candidates{$name}->output =~ /(leads(?:, term| no more))/g;
    like($words, qr/\A(?:leads, term leads no more ?)*(?:leads, term)?\z/, "$name has one term after the other");
    $candidates{$name}->stop;
}
wait_until('all have gone', sub { !$look->value(q{SELECT advisory.is_locked('leader', 'scheduler')}) });
pass('when all have gone, nobody leads');

done_testing();
