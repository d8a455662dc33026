#!/usr/bin/env perl
# Fencing tokens grow even when a new line of WAL begins, or a part of the WAL is lost: the server
# is killed under load, a standby is promoted that has not received the last tokens, pg_upgrade, a
# failover after that, dump and restore, and several of these in a row.
# Runs first: the server is killed and starts again many times.
use AdvisoryTest;
use Replica;
use Time::HiRes qw(sleep time);

use constant { CRASHES => 20, WORKERS => 4, LOADED_SECONDS => 0.3 };

my $TOKEN = "SELECT advisory.lock('t', 'x'), advisory.token('t', 'x') AS token,
    advisory.unlock('t', 'x')";
my $highest = 0;

sub token_of ($session) {
    my $token = $session->rows($TOKEN)->[0][1];
    return $token;
}

# A new token, which must be greater than all before.
sub grows ($session, $what) {
    my $token = token_of($session);
    cmp_ok($token, '>', $highest, $what);
    $highest = $token if $token > $highest;
    return;
}

# Dumps a server's database, and restores it in a database of another server. Returns a session
# there.
sub restore {
    my ($from, $to, $database) = (@_, 'postgres');
    as_server($from, 'sh', '-c', 'pg_dump -p "$1" postgres >dump.sql', 'sh', $from->{PGPORT});
    as_server($to, 'sh', '-c', 'psql -X -q -v ON_ERROR_STOP=1 -p "$1" -f "$2/dump.sql" "$3" '
        . '>/dev/null', 'sh', $to->{PGPORT}, $from->{ADVISORY_EXT_TMP}, $database);
    return session(server => $to, database => $database);
}

sub era_of_cell ($session) { return $session->value('SELECT last_value >> 50 FROM advisory._era') }

# ---- The server is killed under load -------------------------------------------------------------

# Tokens depend on the system identifier. As everywhere but in these tests, each cluster has one of
# its own.
local $ENV{ADVISORY_EXT_OWN_IDENTIFIER} = 1;

my $first = own_server('autovacuum=off', 'fsync=on', 'wal_log_hints=on');
my $session = session(server => $first)->run('CREATE EXTENSION advisory_ext',
    "CREATE TABLE load (t text)");
my ($given, $smaller) = (0, 0);

for my $crash (1 .. CRASHES) {
    my @workers = map { session(server => $first) } 1 .. WORKERS;
    # A worker's token has to be greater than each that was there when it began.
    my @begun = map { $highest } @workers;
    $_->start($TOKEN) for @workers;
    my $end = time + LOADED_SECONDS;
    my $postmaster = $session->value('SELECT pg_catalog.pg_read_file(?)',
        'postmaster.pid') =~ /^(\d+)/ ? $1 : die "no pid\n";
    my $transaction = session(server => $first)->run('BEGIN',
        "INSERT INTO load SELECT repeat('x', 1000) FROM generate_series(1, 1000)");
    my @processes = $session->column('SELECT pid FROM pg_stat_activity');
    # (On a busy machine that takes longer.)
    while (time < $end || $given <= $crash * 10) {
        for my $i (0 .. $#workers) {
            next unless $workers[$i]->is_done;
            my $result = $workers[$i]->finish;
            my $token = $result->{rows}[0][1];
            $given++;
            $smaller++ unless $token > $begun[$i];
            $highest = $token if $token > $highest;
            $begun[$i] = $highest;
            $workers[$i]->start($TOKEN);
        }
        sleep 0.001;
    }
    # Kill all processes, so that none of them can write data that it has in memory. One that was
    # left could also wait for ever for an LWLock of a dead one, and keep the shared memory.
    kill KILL => $postmaster, @processes;
    wait_until('the server is gone', sub { !kill 0, $postmaster });
    # Ignore tokens that no session has received. New tokens must be greater than those that were
    # received.
    eval { $_->disconnect } for @workers, $transaction, $session;
    wait_until('it starts again', sub { $first->ctl('start') });
    $session = session(server => $first);
    my $token = token_of($session);
    $smaller++ unless $token > $highest;
    $highest = $token;
}
cmp_ok($given, '>', CRASHES * 10, "${\CRASHES} crashes: $given tokens were given under load");
is($smaller, 0, 'and not one was smaller than an earlier one');

# ---- Failover ------------------------------------------------------------------------------------

my $era = era_of_cell($session);
my $second = replica($first);
my $standby = session(server => $second);
caught_up($session, $second);
for my $call ("advisory.lock('t', 's')", "advisory.token('t', 's')") {
    $standby->fails("SELECT $call", $call =~ /token/ ? '25006' : undef, "on a standby: $call");
}
$standby->fails("SELECT advisory.check_token('t', 'x', 1)", '25006',
    'nor can one be checked there');
$standby->fails('SELECT advisory.tokens_above(1)', '25006', 'nor another era be begun');
# As after a loss of the network: the standby hears of nothing any more, and is promoted, and the
# old primary goes on.
$standby->run("ALTER SYSTEM SET primary_conninfo = ''", 'SELECT pg_reload_conf()');
wait_until('the standby is alone',
    sub { !$session->value('SELECT count(*) FROM pg_stat_replication') });
$session->run("INSERT INTO load SELECT repeat('x', 1000) FROM generate_series(1, 20000)");
grows($session, 'a token that the standby does not hear of');
$standby->shows('SELECT pg_promote()', 1, 'a standby that is behind is promoted');
grows($session, 'the superseded primary gives tokens that grow') for 1 .. 3;
my $of_old_primary = $highest;
cmp_ok($standby->value('SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), ?)',
        $session->value('SELECT pg_current_wal_lsn()')), '<', 0, 'which is ahead of the new one');
grows($standby,
    'but those of the new one are greater, at once, also in a session that has come along');
grows(session(server => $second), 'and in a new one');
my $of_new_primary = $highest;
$highest = 0;
grows($session, 'the superseded primary goes on');
cmp_ok($highest, '<', $of_new_primary, 'with smaller ones');
$highest = $of_new_primary;
is(era_of_cell($standby), $era + 1, 'the new primary has written its era down');
# The superseded primary, which has the same system identifier and an older timeline, gets a dump of
# the new one.
$session->fails("SELECT advisory.check_token('t', 'x', $of_new_primary)", '22023',
    'the superseded primary refuses a token that it cannot have given');
$standby->shows("SELECT advisory.check_token('t', 'other', $of_old_primary)", 1,
    'the new one knows those of its predecessor');
$session->run('CREATE DATABASE older');
my $older = restore($second, $first, 'older');
grows($older, 'a database on an older timeline that the dump of a newer one was restored in');
grows($older, 'and its next one');
$older->shows("SELECT advisory.check_token('t', 'other', $of_new_primary)", 1,
    'where tokens of the newer one are known');
$older->disconnect;
$highest = $of_new_primary;

# ---- pg_upgrade, and a failover after it ---------------------------------------------------------

$session->disconnect;
$first->ctl('stop', '-m', 'immediate');
$standby->disconnect;
$second->ctl('stop', '-m', 'fast');
my $third = cluster($first, 'upgraded');
as_server($first, 'initdb', "--pgdata=$third->{ADVISORY_EXT_DATADIR}", '--username=postgres',
    '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync');
as_server($first, 'sh', '-c',
    'conf=$1; grep -E "^(extension_control_path|dynamic_library_path|shared_preload)" "$2" '
    . '>>"$conf" || :; cd "$3"; exec pg_upgrade -b "$4" -B "$4" -d "$5" -D "$6" -s "$3" -U '
    . 'postgres >upgrade.log 2>&1 || { cat upgrade.log; exit 1; }',
    'sh', "$third->{ADVISORY_EXT_DATADIR}/postgresql.conf",
    "$first->{ADVISORY_EXT_DATADIR}/postgresql.conf", $first->{ADVISORY_EXT_TMP},
    $first->{PG_BINDIR}, $second->{ADVISORY_EXT_DATADIR}, $third->{ADVISORY_EXT_DATADIR});
configure($third, "unix_socket_directories=$first->{PGHOST}");
$third->ctl('start') or die "the upgraded server did not start: see $third->{ADVISORY_EXT_LOG}\n";
my $upgraded = session(server => $third);
$upgraded->shows('SELECT timeline_id FROM pg_control_checkpoint()', 1,
    'pg_upgrade: a new cluster, on timeline 1');
# Of a transaction that may not write.
$upgraded->run('BEGIN READ ONLY');
grows($upgraded, 'its first token is greater, in a READ ONLY transaction');
$upgraded->run('ROLLBACK');
grows($upgraded, 'and the next one');
my $fourth = replica($third);
my $promoted = session(server => $fourth);
caught_up($upgraded, $fourth);
$promoted->run("ALTER SYSTEM SET primary_conninfo = ''", 'SELECT pg_reload_conf()');
wait_until('the standby is alone',
    sub { !$upgraded->value('SELECT count(*) FROM pg_stat_replication') });
$upgraded->run("INSERT INTO load SELECT repeat('x', 1000) FROM generate_series(1, 20000)");
grows($upgraded, 'more tokens of the upgraded server');
$promoted->value('SELECT pg_promote()');
grows($promoted, 'a failover after pg_upgrade');

# ---- Dump and restore ----------------------------------------------------------------------------

my $fifth = own_server();
$promoted->run('DROP TABLE load', "SELECT advisory.check_token('t', 'x', $highest)");
grows(restore($fourth, $fifth), 'a new server that the dump was restored in');
session(server => $fifth)->fails("SELECT advisory.check_token('t', 'x', 1)", '55000',
    'which also refuses tokens that were stale');
# Where the extension is there before.
my $sixth = own_server();
session(server => $sixth)->run('CREATE EXTENSION advisory_ext')->disconnect;
grows(restore($fifth, $sixth), 'another one, which had the extension, and eras of its own');
# A migration that does not take the era along.
my $seventh = own_server();
my $migrated = session(server => $seventh)->run('CREATE EXTENSION advisory_ext');
cmp_ok(token_of($migrated), '<', $highest, 'a server that knows nothing of it gives smaller ones');
$migrated->run("SELECT advisory.tokens_above($highest)");
grows($migrated, 'and greater ones after tokens_above()');
$seventh->ctl('restart', '-m', 'immediate');
grows(session(server => $seventh), 'also after a crash at once');
# Another database of the same server, made of this one.
session(server => $seventh, database => 'template1')->run('CREATE DATABASE copy TEMPLATE postgres')
    ->disconnect if eval {
    $migrated->disconnect;
    1
};
grows(session(server => $seventh, database => 'copy'), 'a database that is a copy');

done_testing();
