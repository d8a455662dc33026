#!/usr/bin/env perl
# What both editions have is declared alike, and has comments; what a database has only once.
# (absent.t: which of the extension's objects there are.)
use AdvisoryTest;

# Objects that begin with an underscore are each edition's own.
my %PUBLIC = (
    functions => q(SELECT proname, format('%s(%s)', proname, pg_get_function_arguments(oid)),
                       concat_ws(', ', pg_get_function_result(oid), 'kind ' || prokind::text,
                       'volatile ' || provolatile::text, 'parallel ' || proparallel::text,
                       'strict ' || proisstrict),
                       obj_description(oid, 'pg_proc')
                   FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_'),
    relations => q(SELECT relname, relname,
        (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
                                             FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0
                                             AND NOT attisdropped),
                       obj_description(oid, 'pg_class')
                   FROM pg_class c WHERE relnamespace = 'advisory'::regnamespace AND relname !~ '^_'
                   AND relkind IN ('r', 'v')),
);

# Of each kind of object: {signature => [name, definition, comment]}.
sub api_of ($session) {
    return { map {
        $_ => { map {
            my ($name, $signature, @rest) = @$_;
            $signature => [ $name, @rest ]
        } @{ $session->rows($PUBLIC{$_}) } }
    } keys %PUBLIC };
}

create_database(name => "advisory_extension_$$");
my $extension = api_of(session());
my $portable_session = create_portable_database(name => "advisory_portable_$$");
my $portable = api_of($portable_session);

for my $kind (sort keys %PUBLIC) {
    my ($there, $here) = map { $_->{$kind} } $extension, $portable;
    my @both = sort grep { $here->{$_} } keys %$there;
    is_deeply({ map { $_ => $here->{$_}[1] } @both }, { map { $_ => $there->{$_}[1] } @both },
        "$kind: the definitions are the same")
        or diag explain [
            map { [ $_, $here->{$_}[1], $there->{$_}[1] ] } grep {
                $here->{$_}[1] ne $there->{$_}[1]
            } @both ];
    is_deeply([ grep { !length $here->{$_}[2] || length $here->{$_}[2] > 70 } map {
        $_ // ''
    } @both ], [], "$kind: each has a comment of at most 70 characters");
}

# ---- What a database has only once ---------------------------------------------------------------

$portable_session->shows('SELECT advisory.edition()', 'portable', 'edition()');
$portable_session->shows('SELECT advisory.version()',
    session(database => "advisory_extension_$$")->value('SELECT advisory.version()'),
    'version() is that of the extension');
is(load_portable("advisory_portable_$$"), '', 'the file can be loaded again');
is_deeply(api_of($portable_session), $portable, 'and changes nothing');
isnt(load_portable("advisory_extension_$$", $ENV{PGUSER}), '',
    'it cannot be loaded beside the extension');
session(database => "advisory_extension_$$")->shows('SELECT advisory.edition()', 'extension',
    'which stays as it is');
like(session(database => "advisory_portable_$$")->query('CREATE EXTENSION advisory_ext')->{message},
    qr/schema "advisory" already exists/, 'nor can the extension be created beside it');

# ---- The owner of the database is no more than that ----------------------------------------------

$portable_session->shows(q(SELECT count(*) FROM pg_proc p JOIN pg_language l ON l.oid = prolang
    WHERE pronamespace = 'advisory'::regnamespace AND lanname NOT IN ('sql', 'plpgsql')), 0,
    'everything is in SQL and PL/pgSQL');
is_deeply($portable_session->rows(q(SELECT oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f'
    AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)
        AND (proname ~ '^_' AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'sql')
        OR proname !~ '^_' AND prosrc !~ '^ ?SELECT [^-+=<>|&~#%^!]*$'))), [],
    'every function that has operators, or is in PL/pgSQL, has a search_path of its own');
$portable_session->run('SET client_min_messages = warning', 'DROP SCHEMA advisory CASCADE');
is_deeply($portable_session->rows(q(SELECT oid::regprocedure::text FROM pg_proc
        WHERE proowner = 'portable_owner'::regrole
    UNION ALL SELECT oid::regclass::text FROM pg_class WHERE relowner = 'portable_owner'::regrole
    AND relkind IN ('r', 'v', 'S'))), [], 'DROP SCHEMA advisory CASCADE removes all');

done_testing();
