#!/usr/bin/env perl
# portable/advisory.sql by other roles and beside other objects, what it keeps when it is loaded
# again, and callers with a hostile search_path.
use AdvisoryTest;

my $owner = create_portable_database(name => "advisory_portable_$$");
my $database = "advisory_portable_$$";
my $admin = session(database => $database);
sub install { return load_portable($database, @_) }

$owner->shows('SELECT advisory.edition()', 'portable',
    'it can be installed by an ordinary role that owns the database');

# ---- Once more -----------------------------------------------------------------------------------

my $ALL = q(SELECT p.oid::regprocedure::text, md5(pg_get_functiondef(p.oid)), proacl::text
        FROM pg_proc AS p WHERE pronamespace = 'advisory'::regnamespace ORDER BY 1);
my $before = $owner->rows($ALL);
$owner->run(q(INSERT INTO advisory.key_labels (key, label) VALUES (42, 'answer')),
    q(SELECT advisory.claim('c', 'n', '1 day')), q(SELECT advisory.check_token('t', 'n', 1)));
is(install(), '', 'it can be run again');
is_deeply($owner->rows($ALL), $before, '... and changes no function');
$owner->shows(q(SELECT count(*) FROM advisory.key_labels WHERE label = 'answer'), 1,
    '... and keeps the labels');
$owner->shows('SELECT count(*) FROM advisory.claims', 1, '... the claims');
$owner->shows('SELECT count(*) FROM advisory.fences', 1, '... and the fences');
$admin->run(
    'CREATE ROLE portable_other LOGIN', qq(GRANT CREATE ON DATABASE "$database" TO portable_other));
like(install($_), qr/schema "advisory" belongs to another role/,
    'another role may not, not even a superuser') for 'portable_other', $ENV{PGUSER};
$admin->shows(q(SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'advisory'),
    'portable_owner', '... and it belongs to whoever ran it first');

# ---- A hostile search_path -----------------------------------------------------------------------

my $caller = session(role => 'portable_other', database => $database);
$caller->run('CREATE SCHEMA evil', 'CREATE TABLE evil.called (what text)');
my $number = 0;
for my $operator ([ '=', 'bigint, bigint' ], [ '=', 'text, text' ], [ '=', 'integer, integer' ],
    [ '=', 'oid, oid' ], [ '=', 'name, text' ], [ '=', 'name, name' ], [ '=', 'boolean, boolean' ],
    [ '<', 'integer, integer' ], [ '<', 'bigint, bigint' ], [ '>=', 'timestamptz, timestamptz' ],
    [ '<', 'interval, interval' ], [ '+', 'bigint, integer' ], [ '+', 'integer, integer' ],
    [ '+', 'timestamptz, interval' ], [ '||', 'text, text' ], [ '||', 'bytea, bytea' ],
            [ '||', 'text, anynonarray' ], [ '&', 'bigint, bigint' ], [ '<<', 'bigint, integer' ],
                    [ '|', 'bigint, bigint' ], [ '!~', 'name, text' ]) {
    my ($name, $types) = @$operator;
    my ($left, $right) = split /, /, $types;
    my $function = 'op' . ++$number;
    my $result = $name =~ /[=<>~]$/ && $name ne '<<' ? 'boolean' : $left eq 'timestamptz'
        ? 'timestamptz' : $left =~ /text|bytea/ ? $left : 'bigint';
    $caller->run(
        qq(CREATE FUNCTION evil.$function($types) RETURNS $result
            LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''evil $name''; END'),
        qq(CREATE OPERATOR evil.$name (LEFTARG = $left, RIGHTARG = $right,
            FUNCTION = evil.$function)));
}
for my $function (
        'convert_to(text, name)', 'pg_try_advisory_lock(bigint)', 'pg_advisory_lock(bigint)',
                'clock_timestamp()', 'pg_sleep(double precision)', 'format(text, text)',
                        'set_config(text, text, boolean)', 'current_setting(text)') {
    $caller->run(
        qq(CREATE FUNCTION evil.$function RETURNS text
            LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''evil function''; END'));
}
$caller->run(
    'CREATE DOMAIN evil.text AS pg_catalog.text',
    'CREATE DOMAIN evil.timestamptz AS pg_catalog.timestamptz',
    'SET search_path = evil, pg_catalog');
my @CALLS = (
    'SELECT advisory.key(q, q) FROM (VALUES (pg_catalog.text \'a\')) AS v (q)',
    q(SELECT advisory.key('a')), q(SELECT advisory.lock('a', 'b')),
    q(SELECT advisory.lock('a', 'b', '1s')), q(SELECT advisory.try_lock('a', 3)),
    q(SELECT advisory.xact_lock_shared('a', 'x')), q(SELECT advisory.lock_key(5, '1s', 'label')),
    q(SELECT advisory.holds('a', 'b')), q(SELECT advisory.is_locked('a', 'b')),
    q(SELECT advisory.unlock('a', 'b')),
    q(SELECT advisory.unlock('a', 'nothing')), q(SELECT advisory.unlock_all('a', 'b')),
    q(SELECT advisory.lock_all('a', ARRAY['1', '2'], '1s')),
    q(SELECT advisory.try_lock_any('a', ARRAY[1, 2], 2)),
    q(SELECT advisory.acquire('a', 's', 2)), q(SELECT advisory.try_acquire('a', 's', 2, '10ms')),
    q(SELECT advisory.try_acquire('a', 's', 2, '10ms')),
    q(SELECT * FROM advisory.try_acquire_any('a', '{p,q}', 2, 2)),
    q(SELECT advisory.release('a', 's')),
    q(CALL advisory.await_lock('a', 'w')), q(CALL advisory.await_lock('a', 7, '1s')),
    q(CALL advisory.await_acquire('a', 'w', 2)), q(CALL advisory.run('a', 'run', 'SELECT 1')),
    q(CALL advisory.run('a', 'run2', 'SELECT 1', once_per => '1 day')),
    q(SELECT advisory.claim('a', 'b', '1 day')), q(SELECT advisory.check_token('a', 'b', 5)),
    q(SELECT * FROM advisory.holders('a', 'w')),
    map { "SELECT * FROM advisory.$_" } qw(locks waits activity blockers semaphores known_keys
        pressure claims fences wait_tree()));
for my $call (@CALLS) {
    my $result = $caller->query($call);
    my $said = ($result->{message} // '') . join '', @{ $result->{warnings} };
    unlike($said, qr/evil/, "not taken in: $call") or diag $said;
    ok(!defined $result->{state} || $result->{state} =~ /^(42501)$/, '... and it works')
        or diag "$result->{state} $said";
}
$caller->run('SELECT pg_advisory_unlock_all()');

# ---- Names and settings --------------------------------------------------------------------------

for my $role ('My-App', 'alice@example.com') {
    create_database(name => "advisory_odd_$$", extension => 0);
    $admin->run(
        qq(CREATE ROLE "$role" LOGIN), qq(ALTER DATABASE "advisory_odd_$$" OWNER TO "$role"));
    is(load_portable("advisory_odd_$$", $role), '', "the role $role can install it") for 1 .. 2;
    $admin->run(qq(DROP DATABASE "advisory_odd_$$"), qq(DROP ROLE "$role"));
}
SKIP: {
    skip 'from 19 on it is always on', 4
        if $admin->value(q(SELECT current_setting('server_version_num')::int >= 190000));
    my $session = session(role => 'portable_other', database => $database)
        ->run('SET standard_conforming_strings = off', 'SET escape_string_warning = off');
    $session->shows(q(SELECT advisory.key('billing', 'invoice:42')), '1572001551135567388',
        'standard_conforming_strings does not matter to keys');
    $session->shows(q(SELECT advisory.acquire('scs', 'a', 2)), 1, '... nor to slots');
    ok(defined $session->value('SELECT count(*) FROM advisory.locks'), '... nor to views');
    local $ENV{PGOPTIONS} = '-c standard_conforming_strings=off';
    is(install(), '', '... nor to the file');
}

# ---- Gone ----------------------------------------------------------------------------------------

$owner->run('DROP SCHEMA advisory CASCADE');
$owner->shows(
    q(SELECT count(*) FROM pg_proc WHERE proname ~ 'xact_lock_shared_key|try_acquire_any'), 0,
    'DROP SCHEMA removes all');
like(install(), qr/^$/, '... and it can be installed again');
$owner->run('DROP SCHEMA advisory CASCADE', 'CREATE SCHEMA advisory');
like(install(), qr/schema "advisory" exists, and is not that of the portable edition/,
    "it does not adopt somebody else's schema");
done_testing();
