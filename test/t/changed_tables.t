#!/usr/bin/env perl
# The extension's own tables, changed by a superuser: the functions and views raise an error that
# says so, and never read memory that is not a value of the expected type.
use AdvisoryTest;

create_database();
my $session = session();
my $started = $session->value('SELECT pg_postmaster_start_time()');
$session->run(
    'SET client_min_messages = error',
    'CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$',
    q{SELECT advisory.lease('changed', 'kept', '1 hour')});

my %calls = (
    texts  => [ q{SELECT * FROM advisory.leases} ],
    leases => [ q{SELECT * FROM advisory.leases}, q{SELECT advisory.try_lease('changed', 'kept',
        '1 hour')}, q{SELECT advisory.check_lease('changed', 'kept',
        (SELECT token FROM advisory._leases))} ],
    lease  => [ q{SELECT advisory.lease('changed', 'new', '1 hour')} ],
    fences => [ q{SELECT advisory.check_token('changed', 'name', 1)} ],
    era    => [ q{SELECT advisory.lease('changed', 'new', '1 hour')} ],
);
for my $case (
    [ 'a column of another type', q{ALTER TABLE advisory._leases ALTER ttl TYPE text},
        'leases', '42804' ],
    [ 'a column of another type that is passed by value',
        q{ALTER TABLE advisory._leases ALTER renewals TYPE integer}, 'leases', '42804' ],
    [ 'a null', q{ALTER TABLE advisory._leases ALTER namespace DROP NOT NULL;
        UPDATE advisory._leases SET namespace = NULL}, 'texts', '42804' ],
    [ 'a null time', q{ALTER TABLE advisory._leases ALTER acquired_at DROP NOT NULL;
        UPDATE advisory._leases SET acquired_at = NULL}, 'leases', '42804' ],
    [ 'no such column', q{ALTER TABLE advisory._leases DROP renewals},
        'leases', '42804' ],
    [ 'a row that a trigger suppresses', q{CREATE TRIGGER suppress BEFORE
        INSERT ON advisory._leases FOR EACH ROW EXECUTE FUNCTION suppress();
        ALTER TABLE advisory._leases ENABLE ALWAYS TRIGGER suppress}, 'lease', '42804' ],
    [ 'another row that a trigger suppresses', q{CREATE TRIGGER suppress BEFORE
        INSERT ON advisory.fences FOR EACH ROW EXECUTE FUNCTION suppress();
        ALTER TABLE advisory.fences ENABLE ALWAYS TRIGGER suppress}, 'fences', '42804' ],
    [ 'a token of another type', q{ALTER TABLE advisory.fences ALTER token TYPE numeric},
        'fences', '42804' ],
    [ 'a table in place of a sequence', q{ALTER SEQUENCE advisory._era RENAME TO _other;
        CREATE TABLE advisory._era AS SELECT 1::bigint AS last_value}, 'era', '42809' ],
    [ 'a view in place of a table', q{ALTER TABLE advisory.fences RENAME TO other;
        CREATE VIEW advisory.fences AS SELECT * FROM advisory.other}, 'fences', '42809' ],
) {
    my ($what, $change, $which, $state) = @$case;
    for my $call (@{ $calls{$which} }) {
        $session->run('BEGIN', $change);
        $session->fails($call, $state, "$what: $call: $state");
        $session->run('ROLLBACK');
    }
}
is($session->value('SELECT pg_postmaster_start_time()'), $started, 'the server has not crashed');
$session->shows(q{SELECT count(*) FROM advisory.leases}, 1,
    'and with the tables as they were, all is well');
done_testing();
