#!/usr/bin/env perl
# A full name table: each role fills no more than a quarter of it, names of locks that are held or awaited stay, what is evicted is
# counted, and the size can be changed while the server runs.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

my $server = own_server('advisory_ext.max_names=200');
sub there { return session(server => $server, @_) }

my $look = there()->run('CREATE EXTENSION advisory_ext', map { "CREATE ROLE $_ LOGIN" } qw(a b flood));
my $DIRECTORY = 'SELECT names, evicted, not_stored FROM advisory.directory';
sub names { return $look->value('SELECT count(*) FROM advisory.stats WHERE namespace = ?', $_[0]) }

is_deeply($look->rows($DIRECTORY), [ [ 0, 0, 0 ] ], 'an empty name table');
my ($role_a, $role_b) = map { there(role => $_) } qw(a b);
my $root = there();
$role_a->run(q(SELECT count(advisory.try_xact_lock('a', i)) FROM generate_series(1, 50) AS i));
$role_b->run(q(SELECT count(advisory.try_xact_lock('b', i)) FROM generate_series(1, 40) AS i), q(SELECT count(advisory.lock('b held', i)) FROM generate_series(1, 10) AS i));
$root->run(q(SELECT count(advisory.try_xact_lock('root', i)) FROM generate_series(1, 40) AS i), q(SELECT count(advisory.lock('root held', i)) FROM generate_series(1, 10) AS i));
is_deeply($look->rows($DIRECTORY), [ [ 150, 0, 0 ] ], 'three roles with fifty names each');

# An unprivileged role that takes ever new names gets a quarter of the table, and the others keep their names.
my $flood = there(role => 'flood');
is($flood->value(q(SELECT count(*) FILTER (WHERE advisory.try_lock('flood', i) AND advisory.unlock('flood', i)) FROM generate_series(1, 2000) AS i)), 2000, 'a flood of names, one after the other');
cmp_ok(names('flood'), '<=', 50, 'keeps to a quarter');
is(names('flood') + $look->value('SELECT evicted + not_stored FROM advisory.directory'), 2000, 'what was evicted is counted');
my %kept = (a => 50, b => 40, 'b held' => 10, root => 40, 'root held' => 10);
my $others = sub {
    my ($what) = @_;
    is_deeply({ map { $_ => names($_) } keys %kept }, \%kept, "$what: the others' names are there");
    is($look->value(q(SELECT count(*) FROM advisory.locks WHERE pid = ANY (?) AND namespace LIKE '% held'), [ $role_b->pid, $root->pid ]), 20, "$what: those that are held, too");
    is_deeply($look->rows(q(SELECT sum(acquired), min(acquired), max(acquired) FROM advisory.stats WHERE namespace = ANY (?)), [ keys %kept ]), [ [ 150, 1, 1 ] ], "$what: with their statistics");
    return;
};
$others->('names');
is($flood->value(q(SELECT count(*) FILTER (WHERE advisory.lock('flood held', i)) FROM generate_series(1, 500) AS i)), 500, 'a flood of locks that are held');
$others->('locks');
is($look->value(q(SELECT count(*) FROM advisory.locks WHERE pid = ?), $flood->pid), 500, 'which are all shown');
cmp_ok($look->value('SELECT not_stored FROM advisory.directory'), '>=', 400, 'most of them without a name: counted');
is($flood->value(q(SELECT count(*) FROM advisory.locks WHERE namespace = 'flood held')), 500, 'which the session itself knows');
is($flood->value(q(SELECT advisory.unlock_all('flood held'))), 500, 'and releases by it');
is($flood->value(q(SELECT count(*) FILTER (WHERE advisory.lock_key(i, label => repeat('l', 1000) || i)) FROM generate_series(1, 500) AS i)), 500, 'a flood of long labels');
$flood->run('SELECT pg_advisory_unlock_all()');
$others->('labels');
$role_a->value(q(SELECT advisory.lock('a', 50)));
is($look->value(q(SELECT name FROM advisory.locks WHERE pid = ?), $role_a->pid), '50', 'the others go on');
$role_a->value(q(SELECT advisory.unlock('a', 50)));

# A superuser may fill all of it, but names of locks that are held or awaited stay.
my $waiter = there(role => 'a');
$waiter->start(q(SELECT advisory.lock('root held', 1)));
waits($look, $waiter);
my ($names, $evicted, $refused) = @{ $look->rows($DIRECTORY)->[0] };
is($root->value(q(SELECT count(*) FILTER (WHERE advisory.try_xact_lock('superuser', i)) FROM generate_series(1, 1000) AS i)), 1000, 'a superuser floods it');
my ($names_now, $evicted_now, $refused_now) = @{ $look->rows($DIRECTORY)->[0] };
cmp_ok($names_now, '<=', 200, 'it is never more than full');
is($names_now + $evicted_now + $refused_now - $names - $evicted - $refused, 1000, 'what was evicted, or found no room, is counted');
is_deeply([ map { names($_) } 'b held', 'root held' ], [ 10, 10 ], 'what is held stays');
is_deeply($look->rows(q(SELECT namespace, name FROM advisory.locks WHERE NOT granted)), [ [ 'root held', '1' ] ], 'and what is waited for');
$waiter->disconnect;

# More locks held than it has room for.
is($root->value(q(SELECT count(*) FILTER (WHERE advisory.lock('many', i)) FROM generate_series(1, 400) AS i)), 400, 'more are held than there is room for');
is($look->value('SELECT count(*) FROM advisory.locks WHERE pid = ?', $root->pid), 410, 'the view shows them');
is($look->value('SELECT names FROM advisory.directory'), 200, 'those for which there was room by name');
is($look->value(q(SELECT count(*) FROM advisory.locks WHERE pid = ? AND namespace = 'many'), $root->pid), names('many'), 'just these');
$root->run('SELECT pg_advisory_unlock_all()');
$role_b->run('SELECT pg_advisory_unlock_all()');

# Its size can be changed while the server runs.
sub resize {
    my ($size) = @_;
    $look->run("ALTER SYSTEM SET advisory_ext.max_names = $size", 'SELECT pg_reload_conf()');
    for my $session ($look, $root, $role_a) {
        wait_until('the session has the setting', sub { $session->value(q(SELECT current_setting('advisory_ext.max_names'))) == $size });
    }
    return;
}
resize(20);
# After an eviction has failed, a session tries again only after EVICTION_PAUSE.
ok(wait_until('the names are evicted', sub {
    $root->run(q(SELECT count(advisory.try_xact_lock('small', i)) FROM generate_series(1, 100) AS i));
    return $look->value('SELECT names FROM advisory.directory') <= 20;
}), 'made smaller, it shrinks');
resize(0);
is($root->value(q(SELECT advisory.lock('none', 1))), 1, 'with no room at all: locks');
is_deeply($look->rows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', $root->pid), [ [ undef, undef ] ], 'without names');
resize(1000);
$root->run(q(SELECT advisory.lock('none', 1)));
is_deeply($look->rows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', $root->pid), [ [ 'none', '1' ] ], 'made larger, names are stored again');

done_testing();
