# Questions about one lock, and about the lock table, beside more and more locks of others.
package Bench::Part::questions;

use strict;
use warnings;
use AdvisoryTest;
use Bench;
use Time::HiRes qw(time);

my %hog;
my $calls = QUICK ? 3 : 5;

sub time_of {
    my ($query) = @_;
    return on_server(sub { my ($session) = @_; my $start = time; $session->rows($query) for 1 .. $calls; return (time - $start) / $calls });
}

my $FILTER = q{FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND classid = 0 AND granted};
for my $locks (QUICK ? (0, 50_000) : (0, 1000, 200_000)) {
    $hog{$_} //= session(server => server_of($_)) for tree_names();
    $hog{$_}->run('SELECT pg_advisory_unlock_all()', "SELECT count(pg_advisory_lock(i + 1000)) FROM generate_series(1, $locks) AS i") for tree_names();
    my %at = (series => 'questions', at => $locks);
    compare(%at, work => "is_locked, $locks locks", of => 'time', against => "a filtered query on pg_locks's", 'at most' => 1.2,
        ours => time_of(q{SELECT advisory.is_locked('bench', 'question')}), theirs => time_of("SELECT EXISTS (SELECT $FILTER)"));
    compare(%at, work => "holders, $locks locks", of => 'time', against => "a filtered query on pg_locks's", 'at most' => 2,
        ours => time_of(q{SELECT pid FROM advisory.holders('bench', 'question')}), theirs => time_of("SELECT pid $FILTER"));
    compare(%at, work => "pressure, $locks locks", of => 'time', against => 'SELECT count(*) FROM pg_locks', 'at most' => 2,
        ours => time_of('SELECT percent_used, headroom, status FROM advisory.pressure'), theirs => time_of('SELECT count(*) FROM pg_locks'));
}
undef %hog;
1;
