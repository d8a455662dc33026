#!/usr/bin/env perl
# Labels of keys: pg_dump dumps them, the role that installs the extension can write them, whatever its name is, and the view
# works if their table is locked or the lock table is full.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AdvisoryTest;
use File::Temp qw(tempdir);
use Test::More;

my $admin = session();

# ---- The installing role can write them ---------------------------------------------------------------------

my @roles = map { "$_ $$" } 'advisory Owner-1', q{o'brien}, q{a"quote}, q{back\\slash}, q{cost$}, 'grüße', 'PUBLIC';
for my $name (@roles) {
    my $role = $admin->dbh->quote_identifier($name);
    my $database = create_database(name => "advisory_owned_$$", extension => 0, aside => 1);
    my $session = session(database => $database);
    $session->run("CREATE ROLE $role", qq{GRANT CREATE ON DATABASE "$database" TO $role}, "SET ROLE $role", 'CREATE EXTENSION advisory_ext');
    is($session->value('SELECT extowner::regrole::text = quote_ident(current_user) FROM pg_extension WHERE extname = ?', 'advisory_ext'), 1, "$name installs it");
    $session->run("INSERT INTO advisory.key_labels (key, label) VALUES (1, 'one')", 'UPDATE advisory.key_labels SET key = 2');
    is($session->value('SELECT label FROM advisory.key_labels'), 'one', 'and writes labels');
    is($session->query('DROP TABLE advisory.key_labels')->{state}, '42501', 'but does not own their table');
    is($session->query('TRUNCATE advisory.key_labels')->{state}, '42501', 'and may no more than that');
    ok(!$session->query('GRANT INSERT ON advisory.key_labels TO PUBLIC')->{state}, 'and hand it on');
    $session->run('RESET ROLE', 'DROP EXTENSION advisory_ext');
    $session->disconnect;
    $admin->run(qq{DROP DATABASE "$database"}, "DROP ROLE $role");
}

# ---- pg_dump ---------------------------------------------------------------------------------------------------

my $owner = "advisory_owner_$$";
$admin->run("CREATE ROLE $owner LOGIN");
my ($from, $to, $clean) = map { create_database(name => "advisory_${_}_$$", extension => 0, aside => 1) } qw(from to clean);
$admin->run(qq{ALTER DATABASE "$_" OWNER TO $owner}) for $from, $to, $clean;
my $LABELS = 'SELECT key, key1, key2, label, note FROM advisory.key_labels ORDER BY label COLLATE "C"';
my @labels = ([ -1, undef, undef, 'a', "one\ttab\\ and 'quotes'\n" ], [ undef, 1, -2, 'größe', undef ]);
my $source = session(database => $from, role => $owner);
$source->run('CREATE EXTENSION advisory_ext');
$source->rows('INSERT INTO advisory.key_labels VALUES (?, ?, ?, ?, ?)', @$_) for @labels;
is_deeply($source->rows($LABELS), \@labels, 'labels');

my $dump = tempdir(CLEANUP => 1) . '/dump.sql';
my @as_owner = ('-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', $owner);
is(system('pg_dump', '-U', $owner, '-f', $dump, $from), 0, 'the owner of the database, no superuser, dumps it');
is(system('psql', @as_owner, '-d', $to, '-f', $dump), 0, 'and restores it');
is_deeply(session(database => $to)->rows($LABELS), \@labels, 'with all labels');
is(session(database => $to)->value('SELECT tool FROM advisory.known_keys WHERE key = -1'), 'a', 'which the view has at once');
is(system('pg_dump', '-Fc', '-f', $dump, $from), 0, 'a superuser dumps it in another form');
is(system('pg_restore', '-d', $clean, $dump), 0, 'and restores it');
is_deeply(session(database => $clean)->rows($LABELS), \@labels, 'with all labels');

# ---- In the way of nothing ------------------------------------------------------------------------------------

my $reader = session(database => $from, role => $owner);
my $KNOWN = 'SELECT known_as::text FROM advisory.locks WHERE key = -1 AND pid = pg_backend_pid()';
$reader->run('SELECT pg_advisory_lock(-1)');
is($reader->value($KNOWN), qq{{"a: one\ttab\\\\ and 'quotes'\n"}}, 'a label is shown');
$source->run('BEGIN', 'LOCK TABLE advisory.key_labels IN ACCESS EXCLUSIVE MODE');
my $result = $reader->start($KNOWN)->finish(10);
is_deeply($result->{rows}, [ [undef] ], 'while its table is locked, the view does without, at once');
cmp_ok($reader->value('SELECT count(*) FROM advisory.known_keys'), '>', 20, 'and so does the list');
$source->run('COMMIT');
ok($reader->value($KNOWN), 'then it is there again');

# A REPEATABLE READ transaction sees the labels of its snapshot.
$reader->run('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
$source->run("UPDATE advisory.key_labels SET label = 'b', note = NULL WHERE key = -1");
like($reader->value($KNOWN), qr/a: one/, 'as of the beginning of the transaction');
$reader->run('COMMIT');
is($reader->value($KNOWN), '{b}', 'as of now');

$_->disconnect for $source, $reader;
$admin->run(map({ qq{DROP DATABASE "$_" WITH (FORCE)} } $from, $to, $clean), "DROP ROLE $owner");

done_testing();
