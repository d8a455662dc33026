#!/usr/bin/env perl
# ALTER ROLE … SET and ALTER DATABASE … SET of a setting, by the owner of a database who is no
# superuser: the server allows it once the session has loaded the library, as CREATE EXTENSION does,
# and as the statements of doc/settings.md do in a new session.
use FindBin;
use AdvisoryTest;

my $file = "$FindBin::Bin/../../doc/settings.md";
open my $in, '<', $file or die "cannot read $file: $!\n";
my ($example) = do {
    local $/ = undef;
    <$in>
} =~ /^```sql\n((?:(?!^```).)*^ALTER ROLE shop SET advisory_ext\..*?)^```/ms;
close $in;
my @example = $example =~ /^(\w.*?);/mg;
is(scalar @example, 2, 'the page has a line that loads the library, and one that sets');

my $database = create_database(extension => 0);
my $root = session();
my ($owner, $app) = map { "settings_$_\_$$" } qw(owner app);
$root->run("CREATE ROLE $owner LOGIN CREATEROLE", qq{ALTER DATABASE "$database" OWNER TO $owner});

sub setting_of ($where) {
    return $root->value(
        "SELECT array_to_string(setconfig, ',') FROM pg_db_role_setting WHERE $where")
}

my $session = session(role => $owner);
$session->run('CREATE EXTENSION advisory_ext', "CREATE ROLE $app LOGIN");
is($session->query("ALTER ROLE $app SET advisory_ext.session_locks = warn")->{message}, undef,
    'in the session of CREATE EXTENSION: ALTER ROLE');
is($session->query(qq{ALTER DATABASE "$database" SET advisory_ext.leak_after = '1 min'})->{message},
    undef, 'and ALTER DATABASE');
is(setting_of("setrole = '$app'::regrole"), 'advisory_ext.session_locks=warn', 'which is set');

# The library knows more of the settings than the server does without it: who may set them, and to
# what.
$session = session(role => $owner);
my ($load, $set) = map { s/\bshop\b/$app/r } @example;
$session->fails($set, '42501', 'in a new session: permission denied');
$session->run($load);
is($session->query($set)->{message}, undef, "not after $load");
is(setting_of("setrole = '$app'::regrole"), 'advisory_ext.session_locks=off', 'and it is set');
$session->fails($set =~ s/off/maybe/r, '22023', 'a value that there is not is refused');
$session->fails("ALTER ROLE $app SET advisory_ext.pool_limit = 0", '42501',
    'as is a setting for superusers');

$session = session(role => $app);
$session->fails("SELECT advisory.lock('a', 'b')", '55000', 'the role has the setting');
$session->shows('SHOW advisory_ext.leak_after', '1min', "and the database's");

done_testing();
