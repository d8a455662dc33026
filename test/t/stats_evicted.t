#!/usr/bin/env perl
# What advisory.stats says of names that were evicted: one row for each namespace keeps their sums,
# so that no sum ever falls.
use AdvisoryTest;

use constant { CLIENTS => 6, TRANSACTIONS => 800 };
# Without wait_max and hold_max, which are not sums, but grow, too.
use constant SUMS => 'sum(acquired), sum(contended), sum(failed), sum(timeouts), sum(skipped), '
    . 'sum(wait_total), max(wait_max), sum(hold_total), max(hold_max), max(last_acquired_at)';

$ENV{PGOPTIONS} = '-c advisory_ext.warn_no_transaction=off';
my $database = create_database();
my $look = session();
$look->run(q(SELECT advisory.key('load the library')),
    'ALTER SYSTEM SET advisory_ext.max_names = 100', 'SELECT pg_reload_conf()');
wait_until('the setting is there',
    sub { $look->value(q(SELECT current_setting('advisory_ext.max_names', true))) // '' eq '100' });

sub rows_of {
    return $look->rows(q(SELECT name, key, acquired, failed FROM advisory.stats
        WHERE namespace IS NOT DISTINCT FROM $1 ORDER BY key NULLS LAST), $_[0]);
}
# How often something was counted since the last stats_reset(), or would have been if there had been
# room for the name.
my $not_stored = 0;
sub counted {
    return $_[0]->value(q(SELECT sum(acquired) + sum(failed) FROM advisory.stats)) + $look->value(
        'SELECT not_stored FROM advisory.directory') - $not_stored;
}
sub reset_stats {
    $look->run('SELECT advisory.stats_reset()');
    $not_stored = $look->value('SELECT not_stored FROM advisory.directory');
    return;
}

sub flood {
    return $look->run("SELECT count(*) FILTER (WHERE advisory.try_lock('$_[0]', i)
        AND advisory.unlock('$_[0]', i)) FROM generate_series(1, 1000) AS i");
}

# ---- The row -------------------------------------------------------------------------------------

my $other = session();
$other->run(q(SELECT advisory.lock('kept', 'held')));
$look->run(q(SELECT count(advisory.try_xact_lock('kept', i)) FROM generate_series(1, 20) AS i,
    generate_series(1, 3)), q(SELECT advisory.try_xact_lock('kept', 'held')),
    q(SELECT advisory.try_xact_lock_key(1, label => 'label')));
$look->shows(q(SELECT count(*) FROM advisory.stats WHERE name = '<evicted>'), 0,
    'no row while nothing was evicted');
my $sums = 'SELECT namespace, ' . SUMS . q( FROM advisory.stats
    WHERE namespace = 'kept' OR namespace IS NULL GROUP BY 1 ORDER BY 1);
my $before = $look->rows($sums);
my $since = $look->value(q(SELECT min(stats_since) FROM advisory.stats
    WHERE namespace = 'kept' AND name <> 'held'));
flood('flood');
is_deeply(rows_of('kept'), [ [ 'held', $look->value(q(SELECT advisory.key('kept', 'held'))), 1, 1 ],
        [ '<evicted>', undef, 60, 0 ] ],
    'a name in use stays, and one row has the sums of the evicted ones');
is_deeply(rows_of(undef), [ [ '<evicted>', undef, 1, 0 ] ],
    'labels have one, too, without a namespace');
is_deeply($look->rows($sums), $before, 'no sum has changed, and no maximum');
is($look->value(q(SELECT stats_since FROM advisory.stats WHERE namespace = 'kept'
        AND name = '<evicted>')), $since, 'counting began with the first of them');
$look->shows('SELECT names FROM advisory.directory', 100, 'the rows take no room of names');
$look->run(q(SELECT advisory.try_xact_lock('kept', 7)));
$look->shows(q(SELECT sum(acquired) FROM advisory.stats WHERE namespace = 'kept'), 62,
    'a name that comes back counts on');
$look->shows(q(SELECT acquired FROM advisory.stats WHERE namespace = 'kept' AND name = '7'), 1,
    '... in a row of its own, from one');

{
    $look->run('CREATE ROLE stats_stranger LOGIN', 'CREATE ROLE stats_user LOGIN');
    my $user = session(role => 'stats_user');
    $user->run(q(SELECT advisory.try_xact_lock('of user', 1)));
    flood('flood');
    $user->shows(q(SELECT namespace, name FROM advisory.stats WHERE namespace = 'of user'),
        'of user|<evicted>', 'the role that gave a name sees the row');
    is_deeply(session(role => 'stats_stranger')->rows('SELECT DISTINCT namespace, name, key
            FROM advisory.stats'), [ [ ('<insufficient privilege>') x 2, undef ] ],
        'another one does not');
}

# ---- stats_reset() -------------------------------------------------------------------------------

reset_stats();
is_deeply(rows_of('kept')->[-1], [ '<evicted>', undef, 0, 0 ],
    'stats_reset() sets the row to zero');
flood('flood');
is(counted($look), 1000, '... and it counts anew');

# ---- While names are evicted ---------------------------------------------------------------------

{
    my $script = "$ENV{ADVISORY_EXT_TMP}/evicted.$$.sql";
    open my $file, '>', $script or die "$script: $!\n";
    print {$file} <<'SQL';
\set ns random(1, 3)
\set id random_exponential(1, 1000, 5)
SELECT advisory.try_xact_lock('load ' || :ns, :id);
SQL
    close $file;
    reset_stats();
    my $evicted = $look->value('SELECT evicted FROM advisory.directory');
    open my $bench, '-|', "$ENV{PG_BINDIR}/pgbench -n -c @{[CLIENTS]} -j 2 -t @{[TRANSACTIONS]} -f "
        . "$script $database 2>&1" or die "pgbench: $!\n";
    my (%last, @fallen);
    my $looks = 0;
    my $read = sub {
        for my $row (@{
            $look->rows(q(SELECT namespace, sum(acquired), sum(failed), sum(hold_total)
                FROM advisory.stats WHERE namespace LIKE 'load %' GROUP BY 1));
        }) {
            my ($namespace, @now) = @$row;
            my $then = $last{$namespace} // [ 0, 0, '00:00:00' ];
            push @fallen, "$namespace: @$then, @now" if $now[0] < $then->[0] || $now[1] < $then->[1]
                || $now[2] lt $then->[2];
            $last{$namespace} = \@now;
        }
        $looks++;
    };
    $read->() while $look->value(q(SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'pgbench')) || !$looks || $looks < 50;
    my $said = join '', <$bench>;
    close $bench;
    $read->();
    unlink $script;
    is_deeply(\@fallen, [], 'no sum falls while names are evicted') or diag("$looks looks");
    is(counted($look), CLIENTS * TRANSACTIONS, '... and in the end all is counted') or diag($said);
    cmp_ok($look->value('SELECT evicted FROM advisory.directory') - $evicted, '>', 500,
        '... of which there were many');
}

# ---- Many namespaces, and another database -------------------------------------------------------

reset_stats();
$look->run(q(SELECT count(*) FILTER (WHERE advisory.try_lock('ns' || i, 'x')
    AND advisory.unlock('ns' || i, 'x')) FROM generate_series(1, 1000) AS i));
is(counted($look), 1000, 'with a thousand namespaces, the sum of all is right');
cmp_ok($look->value(q(SELECT count(*) FROM advisory.stats WHERE name = '<evicted>')), '<=', 257,
    '... though not each has a row');
cmp_ok($look->value(q(SELECT acquired FROM advisory.stats WHERE namespace IS NULL)), '>', 500,
    '... and the others are with the labels');
my $there = session(database => create_database(name => "advisory_stats_other_$$", aside => 1));
reset_stats();
$there->run(q(SELECT count(*) FILTER (WHERE advisory.try_lock('there', i)
    AND advisory.unlock('there', i)) FROM generate_series(1, 300) AS i));
is(counted($there), 300, 'each database has its own');
$look->shows('SELECT sum(acquired) FROM advisory.stats', 0, '... sums');

done_testing();
