# The portable edition beside the built-in functions that it is made of, and beside the extension.
package Bench::Part::portable;

use AdvisoryTest;
use Bench;
use List::Util qw(max);
use Time::HiRes qw(sleep time);

my $names = QUICK ? 500 : 2000;
my $repeated = QUICK ? 5 : 20;
my $seconds = QUICK ? 1 : 4;
my (%sessions, @table);

# Both editions are never in one database. A large lock table would make pg_locks slow, which the
# portable edition reads.
my @SETTINGS = ('max_locks_per_transaction=64', 'max_connections=100');
sub extension_server ($tree) { return server_of($tree, 'beside portable', @SETTINGS) }
sub server ($tree) { return server_of($tree, 'portable', @SETTINGS) }
sub portable_server ($tree) { return { %{ server($tree) }, PGDATABASE => 'portable' } }
sub extension ($tree) {
    return $sessions{extension}{$tree} //= session(server => extension_server($tree));
}

sub portable ($tree) {
    return $sessions{portable}{$tree} //= do {
        session(server => server($tree))->run('CREATE DATABASE portable');
        local %ENV =
            (%ENV, map { $_ => portable_server($tree)->{$_} } qw(PGHOST PGPORT PGUSER PGDATABASE));
        system(qw(psql -Xq -v ON_ERROR_STOP=1 -o /dev/null -f portable/advisory.sql)) == 0
            or die "cannot load portable/advisory.sql\n";
        session(server => server($tree), database => 'portable')
            ->run('CREATE TABLE done (name text PRIMARY KEY, at timestamptz)');
    };
}

# A line of the table: both ratios of ours.
sub line ($work, $ours, $built_in, $extension, @bound) {
    my @how = (work => "portable: $work", of => 'time', ours => $ours);
    push @table, [ $work, compare(@how, against => "the built-in's", theirs => $built_in, @bound),
        compare(@how, against => "the extension's", theirs => $extension) ];
    return;
}

# The same for a measurement of a session and of what it does.
sub measure ($work, $time_of, $ours, $built_in) {
    return line($work, sub { $time_of->(portable($_[0]), $ours) },
        sub { $time_of->(portable($_[0]), $built_in) },
        sub { $time_of->(extension($_[0]), $ours) });
}

# Statements about element, a name.
my $new = 0;
sub known_names ($session, $statements) {
    return loop($session, names_array($names, 'known '), 'text', @$statements);
}
sub new_names ($session, $statements) {
    return loop($session, names_array($names, ++$new . ' '), 'text', @$statements);
}
sub calls ($work, @both) {
    return measure($work, \&known_names, map { [ map { "PERFORM $_" } @$_ ] } @both);
}

my $KEY = 'length(element)';
my ($LOCK, $UNLOCK) = ("pg_advisory_lock($KEY)", "pg_advisory_unlock($KEY)");
my $IN_PG_LOCKS = q{EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'
    AND objsubid = 1 AND granted AND classid = 0 AND objid = 42};

calls('key', [q{advisory.key('bench', element)}], [q{sha256(convert_to(element, 'UTF8'))}]);
calls('lock, unlock', [ q{advisory.lock('bench', element)}, q{advisory.unlock('bench', element)} ],
    [ $LOCK, $UNLOCK ]);
calls('lock with a timeout, unlock', [ q{advisory.lock('bench', element, '1s')},
    q{advisory.unlock('bench', element)} ], [ $LOCK, $UNLOCK ]);
calls('lock_shared, unlock_shared', [ q{advisory.lock_shared('bench', element)},
    q{advisory.unlock_shared('bench', element)} ],
    [ "pg_advisory_lock_shared($KEY)", "pg_advisory_unlock_shared($KEY)" ]);
calls('lock_key, unlock_key', [ "advisory.lock_key($KEY)", "advisory.unlock_key($KEY)" ],
    [ $LOCK, $UNLOCK ]);
calls('try_lock, unlock', [ q{advisory.try_lock('bench', element)},
    q{advisory.unlock('bench', element)} ],
    [ "pg_try_advisory_lock($KEY)", $UNLOCK ]);
calls('xact_lock', [q{advisory.xact_lock('bench', element)}],
    ['pg_advisory_xact_lock(hashtextextended(element, 0))']);
calls('acquire, release', [ q{advisory.acquire('bench', element, 4)},
    q{advisory.release('bench', element)} ], [ $LOCK, $UNLOCK ]);
measure('acquire, release of its slot', \&known_names,
    [ q{DECLARE slot integer;
        BEGIN slot := advisory.acquire('bench', element, 4);
            PERFORM advisory.release('bench', element, slot); END} ],
    [ map { "PERFORM $_" } $LOCK, $UNLOCK ]);
calls('holds', [q{advisory.holds('bench', element)}], ["$IN_PG_LOCKS AND pid = pg_backend_pid())"]);
calls('is_locked', [q{advisory.is_locked('bench', element)}], ["$IN_PG_LOCKS)"]);
# A claim is a row of a table.
measure('claim', \&new_names, [q{PERFORM advisory.claim('bench', element, '1 day')}],
    [q{INSERT INTO done VALUES (element, now()) ON CONFLICT DO NOTHING}]);
measure('run', \&known_names,
    [ q{DECLARE ran boolean;
        BEGIN CALL advisory.run('bench', element, 'SELECT 1', ran => ran); END} ],
    [ 'PERFORM pg_try_advisory_xact_lock(hashtextextended(element, 0))', q{EXECUTE 'SELECT 1'} ]);

# Over connections.
sub over_connections ($server_of, @statements) {
    my @scripts = map { "\\set id random(1, 1000)\n$_;" } @statements;
    return map { my $tps = $_; sub { return 1 / $tps->(@_) } }
        throughputs($server_of, 2, $seconds, 'prepared', @scripts);
}
my ($LOCK_OVER, $TRY_OVER) = ("SELECT pg_advisory_lock(:id);\nSELECT pg_advisory_unlock(:id)",
    'SELECT pg_try_advisory_xact_lock(:id)');
for my $over ([ 'try_xact_lock', q{SELECT advisory.try_xact_lock('bench', :id)}, $TRY_OVER, 1.5 ],
    [ 'lock, unlock',
        qq{SELECT advisory.lock('bench', :id);\nSELECT advisory.unlock('bench', :id)}, $LOCK_OVER,
        1.7 ],
    [ 'acquire, release of its slot', qq{SELECT advisory.acquire('bench', :id, 4) AS slot \\gset
        SELECT advisory.release('bench', :id, :slot)}, $LOCK_OVER, 5 ])
{
    my ($work, $ours, $built_in, $most) = @$over;
    line("$work over 2 connections", over_connections(\&portable_server, $ours, $built_in),
        over_connections(\&extension_server, $ours), 'at most' => $most);
}

# Sixteen sessions share three slots.
my $SHARE = q{SELECT advisory.acquire('share', 's', 3) AS slot \gset
    SELECT pg_sleep(0.005);
    SELECT advisory.release('share', 's', :slot);};
compare(work => 'portable: 16 sessions and 3 slots, each for 5 ms', of => 'grants',
    against => "the extension's", 'at least' => 0.85, map {
        my $server_of = $_->[1];
        $_->[0] => sub ($tree, @) {
            pgbench($server_of->($tree), 16, $seconds, 'prepared', $SHARE)->[0]
        }
    } [ ours => \&portable_server ], [ theirs => \&extension_server ]);

# Views, on an empty server and with locks of another session.
sub rows ($session, $query) {
    my $start = time;
    $session->rows($query) for 1 .. $repeated;
    return time - $start;
}

for my $held (0, 1000) {
    my @holders =
    map { $_->run("SELECT count(advisory.lock('held', i)) FROM generate_series(1, $held) AS i") }
        map { session(server => portable_server($_), database => 'portable'),
            session(server => extension_server($_)) } tree_names();
    my $some = $held ? ', 1,000 locks' : '';
    for my $view (qw(locks waits activity), q{holders('held', 1)}) {
        measure("$view$some", \&rows, "SELECT * FROM advisory.$view",
            q{SELECT * FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
                WHERE locktype = 'advisory'});
    }
    measure("pressure$some", \&rows, 'SELECT * FROM advisory.pressure',
        'SELECT count(*) FROM pg_locks');
    $_->disconnect for @holders;
}

# Who waits for a slot is woken when it comes free: two sessions hand it to each other.
sub hand_over ($take, $give) {
    return sub ($tree, @) {
        my @two = map { session(server => portable_server($tree), database => 'portable') } 1, 2;
        $two[0]->run("SELECT $take");
        my @took;
        for (1 .. $repeated) {
            $two[1]->start("SELECT $take");
            sleep 0.05 + rand 0.02;
            my $start = time;
            $two[0]->run("SELECT $give");
            $two[1]->finish;
            push @took, time - $start;
            @two = reverse @two;
        }
        $_->disconnect for @two;
        return median(@took);
    };
}
my $ACQUIRE = q{advisory.acquire('bench', 'slot', 1)};
my $RELEASE = q{advisory.release('bench', 'slot')};
compare(work => 'portable: hand-over of a slot', of => 'time', against => "a plain lock's",
    'at most' => 30, ours => hand_over($ACQUIRE, $RELEASE),
    theirs => hand_over('pg_advisory_lock(1)', 'pg_advisory_unlock(1)'));

# And is served in its turn, which sessions that poll are not: the longest wait of eight.
sub longest_wait ($wait, $give) {
    return sub ($tree, @) {
        my $server = portable_server($tree);
        my @eight = map { session(server => $server, database => 'portable') } 1 .. 8;
        my $finish = $eight[0]->value("SELECT clock_timestamp() + '$seconds s'");
        $_->start(<<"SQL") for @eight;
DO \$\$
DECLARE
    longest double precision := 0;
    asked timestamptz;
BEGIN
    WHILE clock_timestamp() < '$finish' LOOP
        asked := clock_timestamp();
        $wait;
        longest := greatest(longest, extract(epoch FROM clock_timestamp() - asked));
        PERFORM pg_sleep(0.02);
        PERFORM $give;
        COMMIT;
    END LOOP;
    PERFORM set_config('bench.longest', longest::text, false);
END \$\$
SQL
        $_->finish for @eight;
        my $longest = max(map { $_->value(q{SELECT current_setting('bench.longest')}) } @eight);
        $_->disconnect for @eight;
        return $longest;
    };
}
my $POLL = 'WHILE NOT pg_try_advisory_lock(4711) LOOP PERFORM pg_sleep(0.01); END LOOP';
compare(work => 'portable: the longest of many waits of 8 sessions for 1 slot', of => 'time',
    against => "polling every 10 ms's", 'at most' => 0.33,
    ours => longest_wait("PERFORM $ACQUIRE", $RELEASE),
    theirs => longest_wait($POLL, 'pg_advisory_unlock(4711)'));

# A slot that outlives the session, beside a lease: one of 100, and the last one of 100. Each call
# is a transaction of its own.
sub take_and_end ($name, $call) {
    return sub ($tree, @) {
        portable($tree)->run(<<"SQL");
DO \$\$
DECLARE
    start timestamptz := clock_timestamp();
    token bigint;
BEGIN
    FOR element IN 1..$repeated * 10 LOOP
        SELECT t.token INTO token FROM advisory.$call AS t;
        COMMIT;
        ASSERT advisory.end_lease('bench', '$name', token);
        COMMIT;
    END LOOP;
    PERFORM set_config('bench.us',
                       (extract(epoch FROM clock_timestamp() - start) * 1e6)::text, false);
END \$\$
SQL
        return portable($tree)->value(q{SELECT current_setting('bench.us')});
    };
}
my $LEASE = take_and_end('lease', q{try_lease('bench', 'lease', '1 h')});
portable($_)->run(q{SELECT count(advisory.try_lease_slot('bench', 'full', 99, '1 day'))
    FROM generate_series(1, 99)}) for tree_names();
for my $case ([ 'free', 'a slot of 100 that outlives the session' ],
    [ 'full', '... the last one of 100' ])
{
    my ($name, $work) = @$case;
    compare(work => "portable: $work", of => 'time', against => "a lease's", 'at most' => 1.5,
        ours => take_and_end($name, "try_lease_slot('bench', '$name', 100, '1 h')"),
        theirs => $LEASE);
}

# For doc/portable.md.
print "\n| call | time, compared with the built-in functions or views | with the extension |\n",
    "|---|---|---|\n";
printf "| %s | %s | %s |\n", $_->[0], map { sprintf $_ < 10 ? '%.1f' : '%.0f', $_ } @$_[ 1, 2 ]
    for @table;
1;
