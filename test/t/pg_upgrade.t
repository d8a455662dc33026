#!/usr/bin/env perl
# pg_upgrade from an older PostgreSQL that is installed here, with this extension: what users have
# written stays, leases are kept, and tokens grow.
use FindBin;
use AdvisoryTest;
use File::Path qw(make_path);
use Replica;

# The oldest server that is older than the one under test, with what an extension is built with.
sub older_server {
    my $version = sub { qx("$_[0]" --version) =~ /^PostgreSQL (\d+)/ ? $1 : 0 };
    my $this = $version->("$ENV{PG_BINDIR}/pg_config");
    for my $config (sort glob '/usr/lib/postgresql/*/bin/pg_config') {
        my ($bin, $headers) = map { chomp(my $dir = qx("$config" $_)); $dir } '--bindir',
            '--includedir-server';
        return ($config, $version->($config), $this) if $version->($config) < $this
            && $version->($config) >= 15 && -x "$bin/postgres" && -e "$headers/postgres.h";
    }
    return;
}

my ($config, $from, $to) = older_server()
    or plan skip_all => 'there is no older PostgreSQL here, with its headers';

# ---- The old server, with the extension built for it ---------------------------------------------

# It is built in a copy of the tree.
my $new = own_server();
my $tree = "$new->{ADVISORY_EXT_TMP}/tree";
make_path($tree);
system(qw(cp -r),
    (map { "$FindBin::Bin/../../$_" } qw(Makefile advisory_ext.control src sql scripts test)),
    $tree) == 0 or die "cannot copy the tree\n";
system(qw(find), $tree, qw(( -name *.o -o -name *.bc -o -name *.so -o -name *.d ) -delete)) == 0
    or die "cannot clean the copy\n";
my $old = do {
    local $AdvisoryTest::Server::tree = $tree;
    local $ENV{PG_CONFIG} = $config;
    own_server('fsync=on', 'wal_log_hints=on');
};
my $session = session(server => $old);
is($session->value(q(SELECT current_setting('server_version_num')::integer / 10000)), $from,
    "the old server is PostgreSQL $from");
$session->run('CREATE DATABASE recent', 'CREATE ROLE app LOGIN');
$session->disconnect;

# With views of a user's on the extension's, and rows in each table.
my $recent = session(server => $old, database => 'recent');
$recent->run(
    'CREATE EXTENSION advisory_ext',
    q(INSERT INTO advisory.key_labels (key, label) VALUES (4711, 'nightly import')),
    'CREATE VIEW held AS SELECT pid, namespace, name FROM advisory.locks',
    'CREATE VIEW waiting AS SELECT pid, name FROM advisory.waits',
    q(CREATE TABLE guarded (k integer CHECK (advisory.key('upgrade', 'a') <> 0))),
    'GRANT SELECT ON advisory.key_labels TO app', 'CREATE TABLE item (id integer, token bigint)',
    q(CREATE TRIGGER fenced BEFORE INSERT
        OR UPDATE ON item FOR EACH ROW EXECUTE FUNCTION advisory.fenced('token')));
my $token = $recent->run(q(SELECT advisory.lock('upgrade', 'a')))
    ->value(q(SELECT advisory.token('upgrade', 'a')));
$recent->run(
    "SELECT advisory.check_token('upgrade', 'a', $token)", "INSERT INTO item VALUES (1, $token)");
my $lease = $recent->value(q(SELECT (advisory.lease('upgrade', 'leased', '1 hour')).token));
my $CLAIM = q(SELECT advisory.claim('upgrade', 'first of the year', '1 year', '2026-01-01'));
ok($recent->value($CLAIM), 'a window is claimed');
my $key = $recent->value(q(SELECT advisory.key('upgrade', 'a')));
$recent->disconnect;
$old->ctl('stop', '-m', 'fast') or die "the old server did not stop\n";

# ---- pg_upgrade ----------------------------------------------------------------------------------

my $upgraded = cluster($new, 'upgraded');
as_server($new, 'initdb', "--pgdata=$upgraded->{ADVISORY_EXT_DATADIR}", '--username=postgres',
    '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync',
    # From 18 on initdb makes checksums unless told otherwise, and pg_upgrade wants both clusters
    # alike.
    $to >= 18 && $from < 18 ? '--no-data-checksums' : ());
as_server($new, 'sh', '-c',
    'pg_upgrade --no-sync -b "$1" -B "$2" -d "$3" -D "$4" -s "$PWD" -U postgres >upgrade.log 2>&1 '
        . '|| { cat upgrade.log; exit 1; }', 'sh',
    $old->{PG_BINDIR}, $new->{PG_BINDIR}, $old->{ADVISORY_EXT_DATADIR},
    $upgraded->{ADVISORY_EXT_DATADIR});
pass("pg_upgrade from PostgreSQL $from to $to");
configure($upgraded, "unix_socket_directories=$new->{PGHOST}");
$upgraded->ctl('start')
    or die "the upgraded server did not start: see $upgraded->{ADVISORY_EXT_LOG}\n";

# ---- What was left behind ------------------------------------------------------------------------

my $version = session(server => $upgraded)
    ->value(q(SELECT default_version FROM pg_available_extensions WHERE name = 'advisory_ext'));
my $here = session(server => $upgraded, database => 'recent');
is($here->value('SELECT advisory.version()'), $version,
    'the extension has the version of its files');
$here->shows(q(SELECT label FROM advisory.key_labels WHERE key = 4711), 'nightly import',
    'labels are kept');
$here->shows(q(SELECT has_table_privilege('app', 'advisory.key_labels', 'SELECT')), 1,
    'and privileges');
is($here->value(q(SELECT advisory.key('upgrade', 'a'))), $key, 'keys are the same');
$here->run(q(SELECT advisory.lock('upgrade', 'a')));
$here->shows(q(SELECT count(*) FROM held WHERE name = 'a'), 1, 'a view on locks works');
$here->shows(q(SELECT count(*) FROM waiting), 0, 'and one on waits');
$here->succeeds('INSERT INTO guarded VALUES (1)', 'and a constraint');
cmp_ok($here->value(q(SELECT advisory.token('upgrade', 'a'))), '>', $token, 'tokens grow');
$here->fails(q(SELECT advisory.check_token('upgrade', 'a', 1)), '55000',
    'a stale token is refused');
$here->fails('UPDATE item SET token = 1', '55000', '... and by the trigger');
$here->shows(q(SELECT advisory.check_lease('upgrade', 'leased', ?)), 1, 'a lease is kept', $lease);
$here->shows(q(SELECT advisory.try_lease('upgrade', 'leased', '1 hour') IS NULL), 1,
    '... and nobody else gets it');
$here->shows(q(SELECT advisory.end_lease('upgrade', 'leased', ?)), 1,
    '... until it is given back', $lease);
$here->shows($CLAIM, 'NULL', 'a window that was claimed is claimed');

done_testing();
