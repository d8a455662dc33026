#!/usr/bin/env perl
# doc/portable.md names all that the portable edition does not have of doc/reference.md, or refuses,
# and nothing else. The rest is declared alike, has comments, and is called by a test that both
# editions share. A database has one edition.
use FindBin;
use AdvisoryTest;

my $root = "$FindBin::Bin/../..";

sub content ($file) {
    open my $in, '<:encoding(UTF-8)', "$root/$file" or die "cannot read $file: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

my $page = content('doc/portable.md');

# The rows of the page's table whose first column has this head.
sub rows_under ($head) {
    my ($rows) = $page =~ /^\| $head \|.*\n\|[-|]+\n((?:\|.*\n)+)/m
        or die "the page has no table of: $head\n";
    return split /\n/, $rows;
}

my %absent = map { $_ => 1 } map { /`([^`]+)`/g } map { (split /\|/)[1] } rows_under('absent');
my ($names) = $page =~ /^\*\*Refused before PostgreSQL 17\.\*\* (.*?) raise error 0A000/m
    or die "the page does not say what is refused\n";
my ($install) = $page =~ /^```sh\n(psql [^\n]*)\n```/m
    or die "the page does not say how to install it\n";

# ---- Both editions -------------------------------------------------------------------------------

# Functions: name and types; kind, what the planner may do, arguments and result; name; comment;
# name and arguments. Columns of views and tables: view and column; type and place; view; comment of
# the view. Names that begin with an underscore are each edition's own.
my %ASKED = (
    functions => q{SELECT format('%s(%s)', proname, array_to_string(proargtypes::regtype[], ', ')),
            concat_ws(' ', prokind::text, provolatile::text, proparallel::text, proisstrict,
            pg_get_function_arguments(oid), '->', pg_get_function_result(oid)), proname,
            obj_description(oid, 'pg_proc'),
            format('%s(%s)', proname, array_to_string(proargnames, ', '))
        FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_'},
    columns => q{SELECT concat(relname, '.', attname),
        concat_ws(' ', format_type(atttypid, atttypmod), attnum), relname,
        obj_description(c.oid, 'pg_class')
        FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
        WHERE relnamespace = 'advisory'::regnamespace AND relname !~ '^_'
        AND relkind IN ('r', 'v')},
);

create_database(name => "absent_extension_$$");
my $extension = session()->run('SELECT FROM advisory.settings');
my %refused = map { $_ => 1 }
    $extension->value('SHOW server_version_num') < 170000 ? $names =~ /`([^`]+)`/g : ();
my $portable = create_portable_database(name => "absent_portable_$$");
$portable->run('DROP SCHEMA advisory CASCADE');
$install =~ s/\byourdb\b/absent_portable_$$/ or die "the page's command does not say 'yourdb'\n";
{
    local @ENV{qw(PGOPTIONS PGUSER)} = ('-c client_min_messages=warning', 'portable_owner');
    is(qx(cd '$root' && $install -q -o /dev/null 2>&1), '', 'the page says how to install it');
}

for my $kind (sort keys %ASKED) {
    my ($there, $here) = map {
        my $session = $_;
        +{ map { $_->[0] => $_ } @{ $session->rows($ASKED{$kind}) } }
    } $extension, $portable;
    # The page can name one form of a function by its arguments, and by their names.
    my $is_absent = sub {
        my (undef, undef, $name, undef, $form) = @{$_[0]};
        $absent{$name} || $absent{ $form // '' }
    };
    is_deeply([ sort grep { !$here->{$_} && !$is_absent->($there->{$_}) } keys %$there ], [],
        "$kind: all that is absent is on the page");
    is_deeply([ sort grep { $is_absent->($here->{$_}) } keys %$here ], [],
        "$kind: what the page names as absent is absent");
    is_deeply([ sort grep { !$there->{$_} } keys %$here ], [],
        "$kind: the portable edition has no others");
    my %both = map { $_ => $there->{$_}[1] } grep { $there->{$_} } keys %$here;
    is_deeply({ map { $_ => $here->{$_}[1] } keys %both }, \%both,
        "$kind: those of both editions are defined alike");
    is_deeply([ grep { ($here->{$_}[3] // '') !~ /^.{1,70}$/ } sort keys %both ], [],
        "$kind: each has a comment of at most 70 characters");
    cmp_ok(scalar keys %both, '>', 100, "$kind: there are many");
}

# ---- One database has one edition ----------------------------------------------------------------

my $version = $extension->value('SELECT advisory.version()');
$portable->shows('SELECT advisory.edition(), advisory.version()', "portable|$version",
    'edition() and version()');
isnt(load_portable("absent_extension_$$", $ENV{PGUSER}), '',
    'the file cannot be loaded beside the extension');
$extension->shows('SELECT advisory.edition()', 'extension', 'which stays as it is');
my $refused = session()->fails('CREATE EXTENSION advisory_ext', '42P06',
    'nor can the extension be created beside it');
like($refused->{message}, qr/schema "advisory" already exists/, '... as the error says');
like($refused->{hint}, qr{portable/to-extension[.]sql}, '... which names the way to the extension');

# ---- The reference -------------------------------------------------------------------------------

{
    my (%listed, $chapter);
    for my $line (split /\n/, content('doc/reference.md')) {
        $chapter = $1 if $line =~ /^## (.+)/;
        $listed{$1} = $chapter if $line =~ /^\| \[`([^`]+)`\]/;
    }
    my %here = map {
        $_->[0] => 1
    } @{ $portable->rows(q{SELECT proname FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace
        UNION SELECT relname FROM pg_class WHERE relnamespace = 'advisory'::regnamespace
        UNION SELECT name FROM pg_settings}) };
    is_deeply([ grep { !$here{$_} && !$absent{$_} } sort keys %listed ], [],
        'what the reference lists is there, or the page names it');
    is_deeply([ grep { $here{$_} && $absent{$_} } sort keys %listed ], [], '... and not both');
    is_deeply([ grep { !$listed{s/\(.*//r} } sort(keys %absent, keys %refused) ], [],
        'what the page names is in the reference');
    cmp_ok((grep { $_ eq 'Settings' } values %listed) + 0, '>', 10, 'settings, too');
    # The tests that run against both editions, whose first line says so.
    my $tests = join '', grep { /\A(?:--|#) Editions: both\./ }
        map { content(s{^\Q$root\E/}{}r) }
        glob "$root/test/sql/*.sql $root/test/isolation/specs/*.spec $root/test/pgtap/*.sql";
    is_deeply([ grep { $listed{$_} ne 'Settings' && !$absent{$_} && $names !~ /`$_`/
            && $tests !~ /\badvisory\.\Q$_\E\b/ } sort keys %listed ], [],
        'what is in both editions is called by a test of both');
}

# ---- Refused -------------------------------------------------------------------------------------

# Every function is called with nulls: those that refuse do so first of all. (A function for
# triggers cannot be called.)
my %said;
for my $row (@{ $portable->rows(q{
    SELECT proname, prokind, (SELECT string_agg('NULL::' || t::regtype, ', ' ORDER BY n)
                              FROM unnest(coalesce(proallargtypes, proargtypes::oid[])) WITH
                              ORDINALITY AS a (t, n)
                              WHERE proargmodes IS NULL OR proargmodes[n] IN ('i', 'b'))
    FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_'
    AND prorettype <> 'trigger'::regtype}) }) {
    my ($name, $kind, $arguments) = ($row->[0], $row->[1], $row->[2] // '');
    my $error = $portable->query(
        ($kind eq 'p' ? 'CALL ' : 'SELECT * FROM ') . "advisory.$name($arguments)");
    next if ($error->{state} // '') ne '0A000';
    $said{$name} = 1;
    ok(length($error->{hint} // ''), "$name($arguments): its error has a hint");
    like($error->{message}, qr/ needs PostgreSQL 17 or later$/, '... and says why');
}
is_deeply([ sort keys %said ], [ sort keys %refused ],
    'the page names the functions that raise 0A000');

# ---- Columns -------------------------------------------------------------------------------------

# With a lock, a slot, a waiter, and labels for all, the named columns are NULL.
$portable->run(
    q{INSERT INTO advisory.key_labels (key, label) SELECT advisory.key('n', name), 'n/' || name
        FROM unnest('{a,s}'::text[]) AS name},
    q{SELECT advisory.lock('n', 'a'), advisory.acquire('n', 's', 1)});
my $waiter = session(role => 'portable_owner')->start(q{SELECT advisory.lock('n', 'a')});
waits($extension, $waiter);
for my $row (rows_under('view or function')) {
    my (undef, $views, $columns) = split /\|/, $row;
    my ($below) = $views =~ /before PostgreSQL (\d+)/;
    my $is_null = !$below || $portable->value('SHOW server_version_num') < $below * 10_000;
    my ($null, $false) = split /;(?= `\w+` is false)/, $columns;
    for my $view ($views =~ /`(\w+)`/g) {
        my $from = 'advisory.'
            . ({ holders => q{holders('n', 'a')},
                holders_key => q{holders_key(advisory.key('n', 'a'))} }->{$view} // $view);
        cmp_ok($portable->value("SELECT count(*) FROM $from"), '>', 0, "$view has rows");
        $portable->shows("SELECT count($_) = 0 FROM $from", $is_null + 0,
            "$view.$_ is NULL where it should") for $null =~ /`(\w+)`/g;
        $portable->shows("SELECT count(*) = 0 FROM $from WHERE $_ IS NOT false", $is_null + 0,
            "$view.$_ is false where it should") for ($false // '') =~ /`(\w+)`/g;
    }
}
$portable->run(q{SELECT pg_advisory_unlock_all()});
$waiter->finish;
my $SIZE = 'SELECT locks_guaranteed, holders_guaranteed FROM advisory.pressure';
is_deeply($portable->rows($SIZE), $extension->rows($SIZE),
    'both editions know the same size of the lock table');
done_testing();
