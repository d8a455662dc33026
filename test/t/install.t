#!/usr/bin/env perl
# Installing and using the extension in different roles and databases, and on a server whose lock
# table is full.
use AdvisoryTest;
use IO::Socket::INET;

my $admin = session();
my ($owner, $stranger, $reader) = map { "advisory_${_}_$$" } qw(owner stranger reader);
$admin->run("CREATE ROLE $owner LOGIN", "CREATE ROLE $stranger LOGIN", "CREATE ROLE $reader LOGIN",
    "GRANT pg_read_all_stats TO $reader");

# ---- The installing role -------------------------------------------------------------------------

my $database = create_database(extension => 0);
$admin->run(qq{ALTER DATABASE "$database" OWNER TO $owner});
session(role => $stranger)->fails('CREATE EXTENSION advisory_ext', '42501',
    'a role without rights cannot install it');
my $owners = session(role => $owner);
$owners->run('CREATE EXTENSION advisory_ext');
pass('the owner of the database, no superuser, can');
$owners->shows("SELECT advisory.try_lock('install', 'a')", 1, 'and use it');
my $other = session(role => $stranger, application => 'stranger');
$other->shows("SELECT advisory.try_lock('install', 'a')", 0, 'and so can everybody');
$other->fails("SELECT advisory.lock('install', 'a', '0')", '55P03', 'with its errors');
cmp_ok($other->value('SELECT count(*) FROM advisory.locks'), '>=', 1, 'its view of the locks');
cmp_ok(session(role => $stranger)->value('SELECT count(*) FROM advisory.settings'), '>=', 1,
    'and of the settings, in a session that has not loaded it');
$other->fails('CREATE FUNCTION advisory.try_lock(text) RETURNS boolean LANGUAGE sql
        AS $$ SELECT true $$', '42501', 'nobody can put anything beside it');
$owners->fails('CREATE FUNCTION advisory.try_lock(text) RETURNS boolean LANGUAGE sql
        AS $$ SELECT true $$', '42501', 'not even the owner of the database');
$owners->run('DROP EXTENSION advisory_ext');
$admin->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?", 1,
    'without it, what is held is held', $owners->pid);
$owners->shows("SELECT count(*) FROM pg_namespace WHERE nspname = 'advisory'", 0,
    'but the schema has gone');
$owners->run('SELECT pg_advisory_unlock_all()', 'CREATE EXTENSION advisory_ext');

# ---- A schema that somebody else has made --------------------------------------------------------

my $planted = create_database(name => "advisory_planted_$$", extension => 0, aside => 1);
my $victim = session(database => $planted);
$victim->run("CREATE SCHEMA advisory AUTHORIZATION $stranger");
session(database => $planted, role => $stranger)->run(
    'CREATE FUNCTION advisory.try_lock(namespace text, name text, timeout interval DEFAULT NULL)
        RETURNS boolean LANGUAGE sql AS $$ SELECT true $$');
my $result = $victim->fails('CREATE EXTENSION advisory_ext', '42P06',
    'a schema of that name is not adopted: 42P06');
ok($victim->query('CREATE EXTENSION advisory_ext SCHEMA advisory')->{state},
    'not even when asked to');
$victim->shows("SELECT count(*) FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace", 1,
    'and nothing is put into it');
$victim->shows("SELECT count(*) FROM pg_extension WHERE extname = 'advisory_ext'", 0,
    'and nothing is installed');

# ---- Other databases -----------------------------------------------------------------------------

$victim->run('SELECT pg_advisory_lock(7)', 'SELECT pg_advisory_lock(-1, 2)');
my $here = session();
is_deeply(
    $here->rows('SELECT database, role, kind, key, key1, key2, mode, granted FROM advisory.locks
        WHERE pid = ? ORDER BY key', $victim->pid),
    [ [ $planted, $ENV{PGUSER}, 'lock', 7, undef, undef, 'exclusive', 1 ],
        [ $planted, $ENV{PGUSER}, 'lock', undef, -1, 2, 'exclusive', 1 ] ],
    'locks of another database appear with it');
$here->shows('SELECT advisory.is_locked_key(7)', 0, 'and are other locks');
$here->shows('SELECT count(*) FROM advisory.holders_key(7)', 0, 'with other holders');
$here->shows('SELECT advisory.try_lock_key(7)', 1, 'that do not exclude these');
$here->run('SELECT pg_advisory_unlock_all()');
$victim->run('SELECT pg_advisory_unlock_all()');

# ---- A small server, which listens on the network too --------------------------------------------

my $port = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport;
my $server = own_server('max_locks_per_transaction=10', 'max_connections=10',
    'max_prepared_transactions=0', 'autovacuum=off',
    'listen_addresses=127.0.0.1', "port=$port");
$server->{PGPORT} = $port;
my $root = session(server => $server)->run(
    'CREATE EXTENSION advisory_ext', "CREATE ROLE $stranger LOGIN", "CREATE ROLE $reader LOGIN",
    "GRANT pg_read_all_stats TO $reader");

# The columns that each role sees of a session that came over the network.
my $remote =
    session(server => { %$server, PGHOST => '127.0.0.1' }, application => 'over the network');
$remote->value("SELECT advisory.lock('install', 'a')");
my $SEEN = 'SELECT pid, role, application_name, state, client_addr, query FROM %s
        WHERE granted AND pid = ?';
my @known = ($remote->pid, $server->{PGUSER}, 'over the network');
for my $source (q{advisory.locks}, q{advisory.holders('install', 'a')}) {
    my $see = sprintf $SEEN, $source;
    is_deeply(session(server => $server, role => $stranger)->rows($see, $remote->pid),
        [ [ @known, undef, undef, '<insufficient privilege>' ] ],
        "$source: a role without privileges sees pid, role and application");
    for my $role ($reader, $server->{PGUSER}) {
        is_deeply(session(server => $server, role => $role)->rows($see, $remote->pid),
            [ [ @known, 'idle', '127.0.0.1', q{SELECT advisory.lock('install', 'a')} ] ],
            "$source: $role also state, address and query");
    }
}
my $own = session(server => $server, role => $stranger);
$own->value("SELECT advisory.lock('install', 'own')");
$own->shows("SELECT state FROM advisory.holders('install', 'own')", 'active',
    'of its own sessions a role sees everything');
$_->disconnect for $own, $remote;

# ---- A full lock table ---------------------------------------------------------------------------

my ($filler, $user, $holder, $watcher) = map { session(server => $server) } 1 .. 4;
$filler->run(<<'SQL', 'CREATE TABLE filled (upto int)', 'INSERT INTO filled VALUES (0)');
    CREATE FUNCTION fill() RETURNS int LANGUAGE plpgsql AS $$
    DECLARE i int := 0;
    BEGIN
        LOOP
            BEGIN
                PERFORM pg_advisory_lock(1, i);
            EXCEPTION WHEN out_of_memory THEN
                RETURN i;
            END;
            i := i + 1;
        END LOOP;
    END $$
SQL
# All sessions have used everything before, because a session's first look-ups take locks.
my @calls = (
    "SELECT advisory.lock('install', 'x')", "SELECT advisory.lock('install', 'x', '1s')",
    "SELECT advisory.try_lock('install', 'x')",
    "SELECT advisory.try_lock('install', 'x', '1s')", "SELECT advisory.xact_lock('install', 'x')",
    "SELECT advisory.try_xact_lock('install', 'x')",
    "SELECT advisory.lock_key(7)", "SELECT advisory.lock_shared('install', 'x')",
    "SELECT advisory.lock_all('install', '{x,y}')",
    "SELECT advisory.try_lock_all('install', '{x,y}')",
    "SELECT advisory.xact_lock_all('install', '{x,y}')",
    "SELECT advisory.try_lock_any('install', '{x,y}', 2)",
    "CALL advisory.await_lock('install', 'x')",
);
my @looks = ("SELECT count(*) FROM advisory.locks",
    "SELECT count(*) FROM advisory.holders('install', 'held')",
    "SELECT advisory.is_locked('install', 'held')", "SELECT advisory.holds('install', 'held')",
    "SELECT count(known_as) = 0 FROM advisory.locks");
my $MINE = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?";
for my $session ($user, $watcher) {
    $session->query($_) for @calls, @looks, 'SELECT pg_advisory_lock(7)',
        "SELECT advisory.lock('install', 'x', '0')";
    $session->value($MINE, 0);
    $session->run('SELECT pg_advisory_unlock_all()');
}
$holder->value("SELECT advisory.lock('install', 'held')");

my $capacity = $filler->value('SELECT fill()');
cmp_ok($capacity, '>', 100, 'a session fills the lock table');
my $native = $user->fails('SELECT pg_advisory_lock(7)', '53200', 'the built-in fails: 53200');
for my $call (@calls) {
    my $result = $user->query($call);
    is_deeply([ @$result{qw(state message hint)} ], [ @$native{qw(state message hint)} ],
        "$call: the same error");
}
$watcher->shows($MINE, 0, 'nothing of all that is held', $user->pid);
is($watcher->value($_) // '', $_ eq $looks[0] ? $capacity + 1 : $_ eq $looks[3] ? 0 : 1,
    "$_: still answers") for @looks;
my $error = $user->query("SELECT advisory.lock('install', 'held', '0')");
like($error->{state}, qr/^(53200|55P03)$/,
    'asked for what is taken, it says so, or that there is no place even to ask');

# If only some locks of a list fit, none is taken.
sub unfill { $filler->run(map { "SELECT pg_advisory_unlock(1, $_)" } @_) }
unfill(1 .. 5);
my $many = "ARRAY(SELECT 'n' || i FROM generate_series(1, 400) i)";
for my $call (
    "SELECT advisory.lock_all('install', $many)", "SELECT advisory.try_lock_all('install', $many)",
    "SELECT count(*) FROM advisory.try_lock_any('install', $many, 400)",
            "SELECT advisory.lock_all('install', $many, '10s')") {
    $user->fails($call, '53200', "$call: does not fit");
    $watcher->shows($MINE, 0, 'and leaves nothing held', $user->pid);
}
$user->run('BEGIN', 'SAVEPOINT s');
$user->fails("SELECT advisory.xact_lock_all('install', $many)", '53200',
    'transaction-level: does not fit');
$user->run('ROLLBACK TO s');
$watcher->shows($MINE, 0, 'and leaves nothing held, while the transaction goes on', $user->pid);
$user->run('COMMIT');
$error = $user->fails("SELECT advisory.lock('install', 'held', '20ms')", '55P03',
    'with a little room a wait ends as ever');
like($error->{detail}, qr/Process ${\$holder->pid}\b/, 'and its error names the holder');

$filler->run('SELECT pg_advisory_unlock_all()');
$user->run('SELECT pg_advisory_unlock_all()');
$user->shows("SELECT advisory.lock_all('install', ARRAY(SELECT 'n' || i
    FROM generate_series(1, 100) i))", 1, 'when there is room again, everything works');
$watcher->shows($MINE, 100, 'and is held', $user->pid);
$user->shows("SELECT advisory.unlock_all('install')", 100, 'and let go');

# A query in another encoding, which this database's cannot have as it is, is escaped.
my $latin = "advisory_latin_$$";
$admin->run(
    qq{CREATE DATABASE "$latin" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0});
my $foreign = session(database => $latin);
$foreign->run('SET client_encoding = \'UTF8\'', "SELECT pg_advisory_lock(4711), '\x{e9}t\x{e9}'");
is($here->value('SELECT query FROM advisory.locks WHERE pid = ?', $foreign->pid),
    q{SELECT pg_advisory_lock(4711), '\xe9t\xe9'},
    'bytes of another encoding are escaped');

done_testing();
