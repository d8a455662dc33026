#!/usr/bin/env perl
# A key has 32 labels, and then a name that is as long as names may be. The name takes the place of
# a label that does not count. It must not write beyond the memory of that label.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

my $server  = own_server('advisory_ext.max_names=1000');
my $session = session(server => $server)->run('CREATE EXTENSION advisory_ext');
my $long    = q(repeat('a', 256), repeat('b', 256));
my $label   = 'SELECT advisory.lock_key(advisory.key(%s), label => %s),
    advisory.unlock_key(advisory.key(%1$s))';

# The labels of this key, and beside them in memory those of another one.
for my $i (1 .. 32) {
    $session->run(sprintf $label, $long,                 "'label $i'");
    $session->run(sprintf $label, q('other', 'key'), "'other $i'");
}
is_deeply($session->rows(q(SELECT count(*), count(*) FILTER (WHERE name LIKE 'label%'),
        count(*) FILTER (WHERE name LIKE 'other%'), sum(acquired) FROM advisory.stats)),
    [ [ 64, 32, 32, 64 ] ], 'the labels of two keys');
$session->run("SELECT advisory.lock($long)");
my $name = $session->rows('SELECT namespace, name FROM advisory.locks')->[0];
is_deeply($name, [ 'a' x 256, 'b' x 256 ], 'a long name takes the place of a label');
is_deeply($session->rows(q(SELECT count(*), count(DISTINCT key), sum(acquired)
        FROM advisory.stats WHERE name LIKE 'other%')),
    [ [ 32, 1, 32 ] ], '... and the labels of the other key are as they were');
is_deeply($session->rows(q(SELECT count(*), sum(acquired) FROM advisory.stats)), [ [ 65, 65 ] ],
    '... and every request is counted once');
$session->run('SELECT pg_advisory_unlock_all()');

# All of them can be evicted.
$session->run('ALTER SYSTEM SET advisory_ext.max_names = 20', 'SELECT pg_reload_conf()');
wait_until('the session has the setting',
    sub { $session->value(q(SELECT current_setting('advisory_ext.max_names'))) == 20 });
$session->run(q(DO $$ BEGIN
    FOR i IN 1 .. 200 LOOP
        PERFORM advisory.lock('after', i), advisory.unlock('after', i);
    END LOOP;
END $$));
is_deeply($session->rows('SELECT names, not_stored FROM advisory.directory'), [ [ 20, 0 ] ],
    'all entries can be evicted');

done_testing();
