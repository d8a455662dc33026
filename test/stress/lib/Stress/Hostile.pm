# Phase hostile: every function of the schema advisory, as the catalog lists them, with edge values
# of each type and random text and bytes, by six roles at once, in a database in UTF8 and one in
# SQL_ASCII. Beside them the owner of the database runs DDL on the extension's objects, and takes
# leases with very long texts. The server does not crash, errors have only the SQLSTATEs that
# doc/errors.md lists, no DDL takes effect on the extension's objects, no long lease is granted, and
# nothing stays locked.
package Stress::Hostile;

use AdvisoryTest;
use FindBin;
use List::Util qw(sum0);
use Stress::Load qw(slurp);
use Time::HiRes qw(sleep time);

# Calls after which everything is released, and the longest wait.
use constant { CALLS_TOGETHER => 50, LONGEST_MS => 10, END_S => 60 };

# Errors of the server itself: for bytes that are not valid text, for text that is not an array (a
# list without a type is read as one), for missing privileges, for calls that return no value, and
# in a session that another one has ended by terminate_holder().
my @SERVERS_OWN = qw(22021 22P02 42501 0A000 57P01 08000);

# The roles, and the options that they are created with. The owner of the database, who is not a
# superuser, installs the extension.
my @ROLES = ([ postgres => undef ], [ h_owner => 'LOGIN' ], [ h_plain => 'LOGIN' ],
    [ h_stats => 'LOGIN IN ROLE pg_read_all_stats' ],
    [ h_signal => 'LOGIN IN ROLE pg_signal_backend' ], [ h_reader => 'LOGIN' ]);

# For each database a session of its owner, who runs DDL there.
my @OWNERS = map { { role => 'h_owner', database => $_ } } qw(h_utf8 h_ascii);

sub run (%how) {
    # It has the processes, the figures and the server's log.
    my $load = Stress::Load->new(%how, sessions => @ROLES + @OWNERS);
    my $look = $load->{look};
    for my $role (@ROLES) {
        $look->run("CREATE ROLE $role->[0] $role->[1]") if $role->[1];
    }
    $look->run(q(ALTER ROLE h_reader SET default_transaction_read_only = on),
        q(ALTER ROLE h_reader SET search_path = 'hostile'), 'CREATE DATABASE h_utf8 OWNER h_owner',
        q(CREATE DATABASE h_ascii OWNER h_owner TEMPLATE template0 ENCODING 'SQL_ASCII'));
    for my $database (qw(h_utf8 h_ascii)) {
        my $owner = session(server => $load->{server}, database => $database, role => 'h_owner');
        # Whoever looks in the wrong schema finds these.
        $owner->run('CREATE EXTENSION advisory_ext', 'CREATE SCHEMA hostile', q(CREATE FUNCTION
                hostile.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'),
            q(CREATE FUNCTION hostile.nothing() RETURNS trigger
                LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'),
                'GRANT USAGE ON SCHEMA hostile TO PUBLIC');
        $owner->disconnect;
    }
    my $started = $look->value('SELECT pg_postmaster_start_time()');
    my %documented = map { $_ => 1 } documented(), @SERVERS_OWN;
    my $functions = functions($load);
    $load->{started} = time;
    my @callers = ((map { { role => $_->[0] } } @ROLES), @OWNERS);
    for my $number (0 .. $#callers) {
        my $owns = $number > $#ROLES;
        $load->spawn("hostile-$number", sub ($model) {
            srand $how{seed} * 1000 + $number;
            my $self = bless { %{ $callers[$number] }, number => $number, model => $model,
                server => $load->{server}, functions => $functions, documented => \%documented,
                counts => {}, errors => {}, figures => {} }, __PACKAGE__;
            return $self->call_them($how{calls} / @ROLES) if !$owns;
            $self->{extension} = extension($load, $callers[$number]);
            return $self->change_objects($how{calls} / @ROLES / 20);
        });
    }
    while (%{ $load->{children} }) { $load->look_after; sleep 0.1 }
    $load->look_after;
    $load->{seconds} = time - $load->{started};
    $load->{look} = $look = $load->observer;
    eval {
        wait_until('nothing is held', sub {
            !$look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'))
        }, END_S)
    } or $load->fail('something stays locked');
    $load->check_log;
    my @undocumented = grep { /^undocumented/ } sort keys %{ $load->{figures} };
    die join '', "there are SQLSTATEs that doc/errors.md does not list:\n",
        map { s/[^ -~]/?/gr . "\n" } @undocumented if @undocumented;
    $load->fail('the server has restarted')
        if $look->value('SELECT pg_postmaster_start_time()') ne $started;
    printf "  %d calls of %d functions by %d roles\n", sum0(values %{ $load->{counts} }),
        scalar keys %{ $load->{counts} }, scalar @ROLES;
    $load->{counts} = {};
    $load->report;
    $load->{server}->stop;
    return;
}

# SQLSTATEs in the tables of doc/errors.md, but not those of the installation, which no call is to
# raise here.
sub documented {
    my ($tables) = slurp("$FindBin::Bin/../../doc/errors.md")
        =~ /^## All SQLSTATEs\n(.*?)^### The installation$/ms
        or die "errors.md has no tables of SQLSTATEs\n";
    return map { /\b([0-9][0-9A-Z]{4})\b/g } $tables =~ /^\| ([^|]*) \|/mg;
}

# Each: name, whether it is a procedure, types of its arguments, how many of these have defaults,
# whether it can be called in FROM.
sub functions ($load) {
    return $load->{look}->rows(<<'SQL');
        SELECT proname, prokind = 'p', coalesce((SELECT array_agg(format_type(t, NULL) ORDER BY n)
        FROM unnest(proargtypes) WITH ORDINALITY AS a (t, n)), '{}'), pronargdefaults,
            prokind = 'f' AND (SELECT typtype <> 'p' FROM pg_type t WHERE t.oid = prorettype)
        FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace
        ORDER BY proname, oid::regprocedure::text
SQL
}

# ---- Values, as SQL ------------------------------------------------------------------------------

sub one_of { return $_[ rand @_ ] }

sub bytes ($count, @codes) {
    return join '',
        map { sprintf '\\x%02x', @codes ? one_of(@codes) : 1 + int rand 255 } 1 .. $count
}

sub utf8_of {
    my $text = chr $_[0];
    utf8::encode($text);
    return join '', map { sprintf '\\x%02x', ord } split //, $text
}

my @NAMES = (map { "'$_'" } qw(a b c stress billing), 'lock 1', 'invoice:42');
my %VALUES = (
    text => [ sub { one_of(@NAMES) }, sub { one_of(@NAMES) }, sub { "''" }, sub { "' '" }, sub {
        one_of(q('{a,b}'), q('%s%n%d'), q('"'), q(''''), q(E'\\n\\t\\x07'), q(E'\\\\'), q('NULL'))
    },
        sub {
            one_of(map { "repeat('" . one_of('a', "\xe4", "\x{2603}") . "', $_)" } 63, 64, 255, 256,
                257, 10_000)
        }, sub { "E'" . bytes(1 + rand 20) . "'" },
        sub { "E'" . bytes(1 + rand 300, 1 .. 127) . "'" }, sub {
            "E'a" . utf8_of(one_of(0x80, 0x7ff, 0x2028, 0xfffd, 0x1f600, 0x10ffff, 0x200b)) . "'"
        } ],
    integer => [ sub { one_of(0, 1, 2, 3, -1, 16_000, 16_001, 2**31 - 1, '(-2147483648)') },
        sub { int rand 20 }, sub { 'pg_backend_pid()' } ],
    bigint => [ sub {
        one_of(0, 1, -1, 2**31, '9223372036854775807', '(-9223372036854775808)', '1125899906842624')
    }, sub { int rand 5 } ],
    boolean => [ sub { one_of('true', 'false') } ],
    oid => [ sub { one_of(0, 1, 4294967295) } ],
    interval => [
        sub { "'" . one_of('0', '1ms', '2ms', '5ms', '1 hour') . "'" },
        sub { one_of(map { "'$_'" } '-1 ms', '-178000000 years', '178000000 years', '1 month',
            '2147483647 ms',
        '2147483648 ms', '24855 days', '0.000001 s', '1 mon -30 days', '-1 day 24 hours',
        '1 year 1 month 1 day') } ],
    'timestamp with time zone' => [
        sub {
            one_of('now()', map { "'$_'" } 'infinity', '-infinity', 'epoch',
                '4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59+00', '2001-01-01', '2999-01-01')
        } ],
    uuid => [ sub {
        one_of('gen_random_uuid()', q('00000000-0000-0000-0000-000000000000'),
            q('ffffffff-ffff-ffff-ffff-ffffffffffff'))
    } ],
);

sub value ($type) {
    return "NULL::$type" if rand() < 0.05;
    if ($type =~ /^(.*)\[\]$/) {
        my $element = $1;
        my $list = join ', ', map { value($element) } 1 .. one_of(1, 2, 3, 5, 100);
        return one_of(
            "ARRAY[$list]::$type", "ARRAY[$list]::$type", "'{}'::$type",
            "ARRAY[ARRAY[$list], ARRAY[$list]]::$type",
            "('[5:5]=' || ARRAY[" . value($element) . "]::${type}::text)::$type");
    }
    my $values = $VALUES{$type} or return "NULL::$type";
    return '(' . one_of(@$values)->() . ")::$type";
}

# ---- Calls ---------------------------------------------------------------------------------------

my @COMMANDS = (
    '', ' ', ';', 'SELECT 1', 'SELECT 1 / 0', 'COMMIT', 'ROLLBACK', 'BEGIN', 'SAVEPOINT a',
    'VACUUM', 'COPY pg_class TO STDOUT', 'SELECT pg_advisory_unlock_all()', 'DISCARD ALL',
    'SELECT pg_sleep(1)', 'SET LOCAL lock_timeout = 1; SELECT 1', 'DO $$ BEGIN COMMIT; END $$',
    'LISTEN a; NOTIFY a', 'PREPARE TRANSACTION $$a$$', 'DECLARE c CURSOR FOR SELECT 1',
    q(CALL advisory.run('a', 'b', 'SELECT 1')), q(SELECT advisory.lock('a', 'b')),
    q(SELECT advisory.unlock_all('a')), 'EXPLAIN ANALYZE SELECT 1', 'TABLE nowhere', '\\',
    "\x{2603}");

sub call_them ($self, $calls) {
    while ($calls > 0 && $self->{model}->state ne 'end') {
        $self->{session} //= $self->connect or next;
        # In a transaction block, or each on its own.
        my $in_block = rand() < 0.3;
        $self->query('BEGIN') if $in_block;
        for (1 .. CALLS_TOGETHER) {
            last if !$self->{session};
            $calls--;
            $self->query(rand() < 0.2 ? 'ROLLBACK; BEGIN' : 'SAVEPOINT s') if $in_block;
            # It may be cancelled, too.
            $self->query('ROLLBACK') if $in_block && $self->{has_failed};
            $self->call;
            $self->query($_) for grep { $in_block && $self->{has_failed} } 'ROLLBACK TO s',
                'ROLLBACK', 'ROLLBACK';
        }
        $self->release_all if $self->{session};
    }
    return { map { $_ => $self->{$_} } qw(counts errors figures) };
}

sub connect ($self) {
    my $session = eval {
        session(server => $self->{server},
            database => $self->{database} // ($self->{number} % 2 ? 'h_utf8' : 'h_ascii'),
            role => $self->{role}, application => 'hostile')
    };
    if (!$session) { sleep 0.05; return }
    $session->query("SET statement_timeout = @{[LONGEST_MS]}");
    return $session;
}

sub query ($self, $sql) {
    return if !$self->{session};
    my $result = eval { $self->{session}->query($sql) } // { state => 'lost', message => $@ };
    $self->{has_failed} = $result->{state} ? 1 : 0;
    if ($result->{state} && $self->{session}->dbh->ping < 1) {
        $self->{figures}{'sessions ended by terminate_holder()'}++;
        delete $self->{session};
    }
    return $result;
}

# Each function as often as any other one, except those that make later tokens of the database
# impossible.
sub call ($self) {
    my ($name, $is_procedure, $types, $defaults, $is_from) = @{ one_of(@{ $self->{functions} }) };
    return if $name =~ /^(?:tokens_above|_begin_era)$/ && rand() < 0.99;
    my @arguments = map { value($_) } @{$types}[ 0 .. $#$types - int rand($defaults + 1) ];
    my $is_run = $name eq 'run' && @arguments > 2;
    my $command = one_of(@COMMANDS);
    $arguments[2] = "\$command\$$command\$command\$" if $is_run;
    my $call = "advisory.$name(" . join(', ', @arguments) . ')';
    my $sql = $is_procedure ? "CALL $call" : rand() < 0.7 || !$is_from ? "SELECT $call"
        : "SELECT * FROM $call";
    $self->{model}->note_operation($self->{number}, $sql);
    my $result = $self->query($sql) or return;
    $self->{counts}{$name}++;
    my $state = $result->{state} or return;
    $self->{errors}{$state}++;
    # An error of a command is its own.
    return if $self->{documented}{$state} || !$self->{session} || $is_run && $state !~ /^(?:XX|53)/;
    # All of these are collected, with the first call of each.
    $self->{undocumented}{$state} //=
        "undocumented: SQLSTATE $state, $result->{message}, as $self->{role} from "
            . substr $sql, 0, 600;
    $self->{figures}{ $self->{undocumented}{$state} }++;
    return;
}

# ---- The owner of the database -------------------------------------------------------------------

# The extension's objects as DDL names them, by kind. A statement for a table is also tried on a
# view, and the other way round.
sub extension ($load, $owner) {
    my %objects;
    my $look = session(server => $load->{server}, database => $owner->{database});
    my $rows = $look->rows(<<'SQL');
        SELECT CASE WHEN type ~ '^(table|view|sequence)$' THEN 'relation' WHEN type = 'procedure'
        THEN 'function' ELSE type END, identity,
            (SELECT min(attname) FROM pg_attribute WHERE classid = 'pg_class'::regclass
            AND attrelid = objid AND attnum > 0)
        FROM pg_depend, pg_identify_object(classid, objid, 0)
        WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension
        WHERE extname = 'advisory_ext')
        AND type ~ '^(table|view|sequence|function|procedure|type|schema)$'
SQL
    push @{ $objects{ $_->[0] } }, [ @{$_}[1, 2] ] for @$rows;
    $look->disconnect;
    return \%objects;
}

# Statements for each kind of object. <one> is one of what follows the statement.
my %DDL = (
    relation => [
        [ 'ALTER TABLE <name> ALTER <column> TYPE <one> USING NULL',
            qw(bigint text bytea smallint jsonb oid interval) ],
        [ 'ALTER TABLE <name> ALTER <column> <one>', 'DROP NOT NULL', 'SET DEFAULT NULL',
            'DROP DEFAULT', 'SET STATISTICS 0' ],
        [ 'ALTER TABLE <name> <one>', 'DROP <column> CASCADE', 'RENAME <column> TO other' ],
        [ 'ALTER TABLE <name> <one>', 'RENAME TO other', 'ADD hostile text',
            'ADD CHECK (false) NOT VALID', 'ENABLE ROW LEVEL SECURITY', 'FORCE ROW LEVEL SECURITY',
            'SET SCHEMA public', 'OWNER TO h_owner', 'DISABLE TRIGGER ALL', 'SET UNLOGGED',
            'REPLICA IDENTITY NOTHING' ],
        ['CREATE TRIGGER hostile BEFORE INSERT OR UPDATE OR DELETE ON <name>
            FOR EACH ROW EXECUTE FUNCTION hostile.nothing()'],
        [ 'CREATE RULE hostile AS ON <one> TO <name> DO INSTEAD NOTHING',
            qw(INSERT UPDATE DELETE) ],
        ['CREATE POLICY hostile ON <name> USING (hostile.now() IS NULL)'],
        ['CREATE INDEX ON <name> ((hostile.now()))'],
        ['CREATE OR REPLACE VIEW <name> AS SELECT NULL::text AS a, 1 / 0 AS b'],
        [ 'DROP <one> <name> CASCADE', qw(TABLE VIEW SEQUENCE) ],
        [ 'ALTER SEQUENCE <name> <one>', 'MAXVALUE 1', 'AS smallint', 'RESTART', 'INCREMENT -1',
            'CYCLE' ],
        [q(SELECT setval('<name>', 1))],
        [ '<one> <name>', 'TRUNCATE', 'LOCK TABLE', 'DELETE FROM' ],
        ['INSERT INTO <name> DEFAULT VALUES'],
        [ 'ALTER EXTENSION advisory_ext DROP <one> <name>', qw(TABLE VIEW SEQUENCE) ],
    ],
    function => [
        [ 'ALTER ROUTINE <name> <one>', 'RENAME TO other', 'OWNER TO h_owner',
            'SET search_path = hostile', 'SET role = h_plain', 'SECURITY DEFINER', 'STRICT',
            'IMMUTABLE', 'PARALLEL SAFE', 'SET SCHEMA public', 'SUPPORT hostile.now' ],
        [q(CREATE OR REPLACE FUNCTION <name> RETURNS text LANGUAGE sql AS 'SELECT NULL::text')],
        ['DROP ROUTINE <name> CASCADE'],
        ['ALTER EXTENSION advisory_ext DROP ROUTINE <name>'],
    ],
    type => [
        [ 'ALTER TYPE <name> <one>', 'RENAME TO other', 'ADD ATTRIBUTE hostile text',
            'OWNER TO h_owner' ],
        ['DROP TYPE <name> CASCADE'],
    ],
    schema => [
        [ 'ALTER SCHEMA <name> <one>', 'RENAME TO other', 'OWNER TO h_owner' ],
        ['CREATE TABLE <name>.hostile (a int)'],
        [q(CREATE FUNCTION <name>.try_lock(text, text) RETURNS boolean
            LANGUAGE sql AS 'SELECT true')],
    ],
);

# Half of it in a transaction that calls functions on what it has changed, and is rolled back.
sub change_objects ($self, $rounds) {
    while ($rounds-- > 0 && $self->{model}->state ne 'end') {
        $self->{session} //= $self->connect or next;
        if (rand() < 0.02) { $self->take_long_lease; next }
        my $kind = one_of(keys %{ $self->{extension} });
        my ($ddl, @one) = @{ one_of(@{ $DDL{$kind} }) };
        my ($name, $column) = @{ one_of(@{ $self->{extension}{$kind} }) };
        $ddl =~ s/<one>/one_of(@one)/e;
        $ddl =~ s/<name>/$name/;
        $ddl =~ s/<column>/$column/;
        my $is_undone = rand() < 0.5;
        $self->{model}->note_operation($self->{number}, $ddl);
        $self->query('BEGIN') if $is_undone;
        my $result = $self->query($ddl) or next;
        $self->{counts}{'DDL'}++;
        if (!$result->{state} && $ddl =~ /^(?:ALTER|CREATE|DROP)/) {
            $self->{figures}{"permitted: $ddl"}++;
            $self->{model}->violate("h_owner may change the extension: $ddl") if !$is_undone;
        }
        for (1 .. 3) {
            last if !$is_undone || $result->{state} || !$self->{session};
            $self->query('SAVEPOINT s');
            $self->call;
            $self->query('ROLLBACK TO s') if $self->{has_failed};
        }
        $self->query('ROLLBACK; SELECT pg_advisory_unlock_all()');
    }
    $self->release_all if $self->{session};
    return { map { $_ => $self->{$_} } qw(counts errors figures) };
}

# With a namespace, name or owner of up to 200 MB.
sub take_long_lease ($self) {
    my @texts = (q('a'), q('b'), q('c'));
    my $bytes = rand() < 0.1 ? 200_000_000 : one_of(1025, 10_000, 1_000_000);
    $texts[ rand @texts ] =
        one_of("repeat('x', $bytes)", "repeat(md5(random()::text), $bytes / 32 + 1)");
    my $sql = "SELECT token
            FROM advisory.try_lease($texts[0], $texts[1], '1 s', owner => $texts[2])";
    $self->{model}->note_operation($self->{number}, $sql);
    $self->query(q(SET statement_timeout = '30s'));
    my $result = $self->query($sql);
    $self->query("SET statement_timeout = @{[LONGEST_MS]}");
    $self->{counts}{'long leases'}++;
    $self->{model}->violate("a lease with a text of $bytes bytes is granted: $sql")
        if $result && $result->{value};
    $self->{errors}{ $result->{state} }++ if $result && $result->{state};
    return;
}

# Nothing stays locked.
sub release_all ($self) {
    for (1 .. 100) {
        my $result = $self->query('ROLLBACK; SELECT pg_advisory_unlock_all()') or return;
        next if $result->{state};
        $result = $self->query(
            q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()))
                or return;
        next if $result->{state};
        return if !$result->{value};
        return $self->{model}->violate("$result->{value} locks stay when all are released");
    }
    return $self->{model}->violate("cannot release: $self->{role}");
}

1;
