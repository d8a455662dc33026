#!/usr/bin/env perl
# `make portable-tle`: the portable edition as an extension of pg_tle. Where there is no pg_tle, the
# server's own CREATE EXTENSION runs the script, by the rules for extension scripts, from the folder
# of `make portable-extension`.
use FindBin;
use AdvisoryTest;
use File::Copy qw(copy);
use File::Temp qw(tempdir);

my $root   = "$FindBin::Bin/../..";
my $dir    = tempdir(CLEANUP => 1);
my $file   = "$dir/tle.sql";
my $folder = $ENV{ADVISORY_EXT_STAGE} . `$ENV{PG_CONFIG} --sharedir` =~ s/\n//r . '/extension';
my $has_tle = -e "$folder/pg_tle.control";
my $server = own_server($has_tle ? 'shared_preload_libraries=pg_tle' : ());
local @ENV{qw(PGHOST PGPORT PGUSER)} = @{$server}{qw(PGHOST PGPORT PGUSER)};
diag $has_tle ? 'with pg_tle' : 'without pg_tle';

sub write_file ($name, $text) {
    open my $out, '>:encoding(UTF-8)', $name or die "$name: $!\n";
    print {$out} $text;
    close $out or die "$name: $!\n";
    return;
}

# What psql says to a file, run by a role.
sub psql ($database, $role, $sql) {
    return scalar `psql -Xq -v ON_ERROR_STOP=1 -o /dev/null -U '$role' -f '$sql' '$database' 2>&1`
}

my $admin = session(server => $server);
$admin->run(
    'CREATE ROLE portable_owner LOGIN',
    map { "CREATE DATABASE $_ OWNER portable_owner" } qw(tle plain));
sub connection ($database, $role) {
    return session(server => $server, database => $database, role => $role)
}

is(system('make', '--no-print-directory', '-s', '-C', $root, 'portable-tle', "TLE=$file",
    "PORTABLE_EXTENSION=$dir/layout"), 0, 'make portable-tle writes it');
# dbdev reads these files, and skips a version that does not have three numbers.
my @written = sort map { s{.*/}{}r } glob "$dir/layout/*";
like("@written", qr/^README\.md advisory_portable--\d+\.\d+\.\d+\.sql advisory_portable\.control$/,
    'make portable-extension writes the layout that dbdev wants');
my $tle = connection('tle', 'postgres');
if ($has_tle) {
    $tle->run('CREATE EXTENSION pg_tle', 'GRANT pgtle_admin TO portable_owner');
} else {
    $tle->run('CREATE SCHEMA pgtle AUTHORIZATION portable_owner',
        'CREATE TABLE pgtle.installed (name text, version text, ext text)', <<'SQL');
        CREATE FUNCTION pgtle.install_extension(name text, version text, description text, ext text,
        requires text[] DEFAULT NULL,
                                                schema text DEFAULT NULL) RETURNS boolean
                                                LANGUAGE sql SECURITY DEFINER AS $$
            INSERT INTO pgtle.installed VALUES (name, version, ext) RETURNING true
        $$
SQL
}
is(psql('tle', 'portable_owner', $file), '', 'an ordinary role that owns the database installs it');

# Makes the step from one version to another of the same text, too.
if (!$has_tle) {
    my ($name, $version, $script) = @{ $tle->rows('SELECT * FROM pgtle.installed')->[0] };
    is("$name--$version.sql", $written[1], 'it is the same version');
    copy("$dir/layout/$_", $folder) or die "$_: $!\n" for @written[1, 2];
    write_file("$folder/${name}--$version--9.sql", $script);
    $tle->run('DROP SCHEMA pgtle CASCADE');
}
my $owner = connection('tle', 'portable_owner');
$owner->run('CREATE SCHEMA other', 'SET search_path = other');
$owner->run('CREATE EXTENSION advisory_portable');

# ---- It is the same ------------------------------------------------------------------------------

my $plain = connection('plain', 'portable_owner');
is(psql('plain', 'portable_owner', "$root/portable/advisory.sql"), '',
    'the file for psql in another database');
my $ALL = <<'SQL';
    SELECT 'advisory'::regnamespace::text, (SELECT nspacl::text FROM pg_namespace
    WHERE nspname = 'advisory')
    UNION ALL SELECT p.oid::regprocedure::text,
    concat(md5(pg_get_functiondef(p.oid)), proacl, obj_description(p.oid))
        FROM pg_proc AS p WHERE pronamespace = 'advisory'::regnamespace
    UNION ALL SELECT c.oid::regclass::text, concat(relkind, relacl, obj_description(c.oid))
        FROM pg_class AS c WHERE relnamespace = 'advisory'::regnamespace
    ORDER BY 1
SQL
my $expected = $plain->rows($ALL);
is_deeply($owner->rows($ALL), $expected, 'both have the same objects, privileges and comments');
$owner->shows(q(SELECT count(*) FROM pg_class
        WHERE relnamespace IN ('other'::regnamespace, 'public'::regnamespace)), 0,
    'nothing is outside its schema');
my $STRAYS = <<'SQL';
    SELECT count(*)
    FROM (SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace
    UNION ALL
          SELECT 'pg_class'::regclass, oid FROM pg_class
          WHERE relnamespace = 'advisory'::regnamespace AND relkind IN ('r', 'v')) AS o (class, oid)
    WHERE NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = o.oid
    AND deptype = 'e')
SQL
$owner->shows($STRAYS, 0, 'and all belongs to the extension');

my $error = $plain->query('CREATE EXTENSION advisory_portable');
isnt($error->{state}, undef, 'not where the file has been run') or diag explain $error;
is_deeply($plain->rows($ALL), $expected, '... which stays as it is');

# ---- It works, is updated, dumped, restored and dropped ------------------------------------------

my $user = connection('tle', 'postgres');
$owner->run(q(SELECT advisory.lock('a', 'b')), q(SELECT advisory.claim('c', 'n', '1 day')),
    q(SELECT advisory.check_token('t', 'n', 7)),
    q(INSERT INTO advisory.key_labels (key, label) VALUES (42, 'answer')));
$user->shows(q(SELECT advisory.edition() || advisory.try_lock('a', 'b')), 'portablefalse',
    'it locks');
my $ROWS = q(SELECT (SELECT string_agg(name, ',') FROM advisory.claims), (SELECT max(token)
        FROM advisory.fences),
                    (SELECT string_agg(label, ',') FROM advisory.key_labels WHERE key = 42));
my @rows = @{ $owner->rows($ROWS)->[0] };
is("@rows", 'n 7 answer', 'it keeps claims, fences and labels');

$owner->value(q{SELECT pgtle.install_update_path(extname, extversion, '9', ?) FROM pg_extension
        WHERE extname = 'advisory_portable'}, read_script())
    if $has_tle;
$owner->run(q(ALTER EXTENSION advisory_portable UPDATE TO '9'));
is_deeply($owner->rows($ROWS)->[0], \@rows, 'the same text updates it, and keeps the rows');
$owner->shows($STRAYS, 0, '... and its objects');
$user->shows(q(SELECT advisory.try_lock('a', 'b')), 0, '... and a lock that is held');

# The restored version is again the first one, if pg_tle does not know a newer one.
$admin->run('CREATE DATABASE restored OWNER portable_owner');
my $restore = 'psql -Xq -v ON_ERROR_STOP=1 -o /dev/null -U postgres restored';
is(scalar `pg_dump -U postgres tle 2>&1 | $restore 2>&1`, '', 'it can be dumped and restored');
my $restored = connection('restored', 'postgres');
is_deeply($restored->rows($ROWS)->[0], \@rows, '... with its rows');
$restored->shows(q(SELECT advisory.try_lock('a', 'b')), 1, '... and works');
$restored->disconnect;

like(psql('tle', 'portable_owner', "$root/portable/to-extension.sql"),
    qr/here the portable edition is an extension of pg_tle/, 'to-extension.sql refuses it');
$owner->run('DROP EXTENSION advisory_portable');
$owner->shows(q(SELECT count(*) FROM pg_namespace WHERE nspname = 'advisory'), 0,
    'DROP EXTENSION removes all');
$owner->run(contents("$dir/layout/README.md") =~ /^```sql\n(.*?)^```/ms);
$owner->shows(q(SELECT advisory.holds('billing', 'invoice:42')), 1,
    '... and it can be created again, as its README says');
done_testing();

sub contents ($name) {
    open my $in, '<:encoding(UTF-8)', $name or die "$name: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

sub read_script { return (contents($file) =~ /\$_pgtle_\$\n(.*)\$_pgtle_\$/s)[0] }
