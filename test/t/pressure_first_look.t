#!/usr/bin/env perl
# The first look at advisory.pressure in a session takes a bounded time, also where another library has a large hash table
# in shared memory (pg_stat_statements here), and finds what the lock tables have grown by as exactly as without it.
# Runs alone: it compares the times of single queries.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use List::Util qw(min);
use Test::More;

use constant { STATEMENTS => 1_000_000, SESSIONS => 7, MOST_MS => 20, TOLERANCE => 0.02, LOCKS => 20_000 };

# The processor time in milliseconds: the first look of a session which has connected and loaded the library before; the best of several.
sub first_look {
    my ($server) = @_;
    return min(map {
        my $session = session(server => $server)->run(q{SELECT advisory.key('loaded')});
        my $taken = 1000 * processor_time($session, sub { $session->run('SELECT * FROM advisory.pressure') });
        $session->disconnect;
        $taken;
    } 1 .. SESSIONS);
}

my @settings = ('max_locks_per_transaction=64', 'max_connections=100');
my $plain = own_server(@settings);
session(server => $plain)->run('CREATE EXTENSION advisory_ext');
my $usual = first_look($plain);

my $server = own_server(@settings, 'shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=' . STATEMENTS,
    'pg_stat_statements.save=off');
my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $megabytes = $look->value(q{SELECT pg_size_bytes(current_setting('shared_memory_size')) / 1024 / 1024});
my $beside = first_look($server);
cmp_ok($beside, '<', $usual + MOST_MS, sprintf 'a first look takes %.1f ms in %d MB of shared memory, %.1f ms without them', $beside, $megabytes, $usual);

# From 19 on the tables do not grow.
if ($look->value(q{SELECT current_setting('server_version_num')::int >= 190000})) {
    done_testing();
    exit;
}

# What had been taken and given back before the first look counts.
$look->disconnect;
my $hog = session(server => $server)->run("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, @{[LOCKS / 2]}) AS i", 'SELECT pg_advisory_unlock_all()');
$look = session(server => $server);
my ($headroom, $exact) = @{ $look->rows('SELECT headroom, exact FROM advisory.pressure')->[0] };
ok($exact, 'it can be told how the tables have grown');
my $filled = $hog->value(<<'SQL');
DO $$ DECLARE filled bigint := 0; BEGIN LOOP PERFORM pg_advisory_lock(filled); filled := filled + 1; END LOOP;
EXCEPTION WHEN out_of_memory THEN PERFORM set_config('pool.filled', filled::text, false); END $$
SQL
$filled = $hog->value(q{SELECT current_setting('pool.filled')});
cmp_ok(abs($headroom - $filled), '<=', TOLERANCE * $filled, "the headroom was estimated at $headroom, and $filled locks fitted");
cmp_ok($look->value('SELECT percent_used FROM advisory.pressure'), '>=', 98, 'and then it is full');
done_testing();
