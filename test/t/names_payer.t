#!/usr/bin/env perl
# A name counts to the share of the role that gave the present name. So names and statistics of a role that stays within its
# share survive 8,000 new names of another role, even if that role labelled the keys first, or used the names first.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use Test::More;

use constant { NEW_NAMES => 8000, SHARE => 2500, NAMES => 200, OTHERS => 2000 };

local $SIG{__WARN__} = sub { $_[0] =~ /also has another name|DETAIL|HINT/ or print {*STDERR} @_ };
my $server = own_server();
my $admin = session(server => $server)->run('CREATE EXTENSION advisory_ext', 'CREATE ROLE app LOGIN', 'CREATE ROLE churn LOGIN', 'CREATE ROLE busy LOGIN');
my ($app, $churn, $busy) = map { session(server => $server, role => $_) } qw(app churn busy);

sub use_names {
    my ($session, $namespace, $from, $to) = @_;
    return $session->run("SELECT count(advisory.lock('$namespace', i)), count(advisory.unlock('$namespace', i)) FROM generate_series($from, $to) AS i");
}

sub label_keys {
    my ($session, $namespace, $label) = @_;
    my $key = "advisory.key('$namespace', i)";
    return $session->run("SELECT count(advisory.lock_key($key, label => '$label' || i)), count(advisory.unlock_key($key)) FROM generate_series(1, @{[NAMES]}) AS i");
}

# namespace => how many names of it there are, and how often these were acquired
sub kept {
    my ($namespace) = @_;
    return $admin->rows(q(SELECT count(*), coalesce(sum(acquired), 0) FROM advisory.stats WHERE namespace IS NOT DISTINCT FROM $1), $namespace)->[0];
}

# churn labels keys that app gives names to; it gives keys a label for which app has another one; it uses names that app uses, too.
label_keys($churn, 'labelled', 'churn ');
use_names($app, 'labelled', 1, NAMES);
label_keys($churn, 'relabelled', 'churn ');
label_keys($app, 'relabelled', 'app ');
use_names($churn, 'common', 1, NAMES);
use_names($app, 'common', 1, NAMES);
use_names($app, 'own', 1, NAMES);
is_deeply(kept('labelled'), [ NAMES, 2 * NAMES ], 'names that take the place of labels, with their statistics');
is_deeply(kept('common'),   [ NAMES, 2 * NAMES ], 'names that two roles use');
is_deeply(kept(undef),      [ NAMES, 2 * NAMES ], 'labels that take the place of labels');

use_names($churn, 'new', 1, NEW_NAMES);
is_deeply(kept('labelled'), [ NAMES, 2 * NAMES ], 'after the new names of the other role: names that took the place of its labels are there');
is_deeply(kept('common'),   [ NAMES, 2 * NAMES ], 'so are names that it used first');
is_deeply(kept('own'),      [ NAMES, NAMES ],     "so are those of one's own");
is_deeply(kept(undef),      [ NAMES, 2 * NAMES ], 'and labels that took the place of its labels');
is($admin->value("SELECT count(*) FROM advisory.stats WHERE namespace IS NULL AND name LIKE 'app %'"), NAMES, 'by the newer label');
my $new = kept('new')->[0];
cmp_ok($new, '<=', SHARE, 'the other role has its share at most');
cmp_ok($new, '>=', SHARE / 2, 'and can use it');

# The same with the table full: others have their shares.
use_names($admin, 'admin', 1, OTHERS);
use_names($busy, 'busy', 1, SHARE);
use_names($admin, 'more', 1, OTHERS);
cmp_ok($admin->value('SELECT names FROM advisory.directory'), '>=', 9000, 'the table is nearly full');
use_names($churn, 'newer', 1, NEW_NAMES);
is_deeply([ map { kept($_)->[0] } qw(labelled common own), undef ], [ (NAMES) x 4 ], "beside others' names they survive as well");

# The names count to the share of app now: its own new names evict names that it gave, and no others.
use_names($app, 'app', 1, NEW_NAMES);
cmp_ok($admin->value("SELECT count(*) FROM advisory.stats WHERE namespace IN ('labelled', 'common', 'own', 'app') OR namespace IS NULL"), '<=', SHARE, 'they count to the share of their role');
is(kept('busy')->[0], SHARE, "another role's share is untouched");

leave($admin, $app, $churn, $busy);
done_testing();
