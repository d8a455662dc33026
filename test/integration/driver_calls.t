#!/usr/bin/env perl
# The tables of doc/drivers.md: one small program for each driver makes the calls of
# test/t/lib/calls.tsv, and shows what comes back. What the page says of a driver is compared with
# that.
#
# Runs first: it compiles programs in three languages.
use AdvisoryTest;
use FindBin;
use Launch;
use Programs;

my $here = "$FindBin::Bin/drivers";
my $scratch = scratch();
alarm 900;      # compilers on a busy machine
my $gopath = '/usr/share/gocode';

# ---- The programs --------------------------------------------------------------------------------

# Each returns the start of a command line; nothing if the driver is not here.

sub in_python ($name, $module, @arguments) {
    my $python = python($module) or return;
    return ($python, "$here/$name.py", @arguments);
}

sub in_node ($name) {
    my $modules = node_modules("$here/package.json") or return;
    return ({ NODE_PATH => $modules }, 'node', "$here/$name.js");
}

sub in_php ($name, $module) {
    return unless program('php') && qx(php -m 2>/dev/null) =~ /^\Q$module\E$/m;
    return ('php', "$here/$name.php");
}

sub in_go ($name, $package) {
    return unless program('go') && -d "$gopath/src/$package";
    my $environment =
        { GO111MODULE => 'off', GOPATH => $gopath, GOCACHE => "$ENV{ADVISORY_EXT_STAGE}/go" };
    return compiled($name, $environment, 'go', 'build', '-o', "$scratch/$name", "$here/lines.go",
        "$here/$name.go");
}

sub in_ecpg {
    return unless program('ecpg') && program('gcc');
    run_program('ecpg', '-o', "$scratch/ecpg.c", "$here/ecpg.pgc");
    return compiled('ecpg', 'gcc', '-I/usr/include/postgresql', '-o', "$scratch/ecpg",
        "$scratch/ecpg.c", '-lecpg');
}

sub in_cpp {
    return unless program('g++') && -e '/usr/include/pqxx/pqxx';
    # (Its later versions have another function beside exec_params().)
    return compiled('pqxx', 'g++', '-std=c++17', '-Wno-deprecated-declarations', '-o',
        "$scratch/pqxx", "$here/pqxx.cpp", '-lpqxx', '-lpq');
}

sub compiled ($name, @compiler) {
    my ($said, $code) = launch(@compiler)->finish(600);
    is($code, 0, "$name is compiled") or diag($said);
    return "$scratch/$name";
}

sub in_odbc {
    my ($library) = glob '/usr/lib/*/odbc/psqlodbcw.so' or return;
    return in_python('odbc', 'pyodbc', $library);
}

sub in_ruby { return system(q(ruby -e 'require "pg"' 2>/dev/null)) ? () : ('ruby', "$here/pg.rb") }

sub in_tcl {
    return unless program('tclsh')
        && qx(echo 'puts [catch {package require tdbc::postgres}]' | tclsh) =~ /^0/;
    return ('tclsh', "$here/tdbc.tcl");
}

# ---- The drivers ---------------------------------------------------------------------------------

# As the page names them: how a statement marks its values, the program, and what differs from the
# list of calls: kinds of values, and what becomes of them without a cast, and with one. Of an error
# there are DETAIL, HINT, the namespace and the name as fields, or some of them in its message.
my $FIELDS = [ 'detail', 'hint', 'schema', 'constraint', 'notice' ];
my $TEXT = [ 'detail', 'hint', 'notice' ];
my %DRIVERS = (
    'asyncpg'     => { mark => '$', program => sub { in_python('asyncpg_', 'asyncpg') },
        differs => [ qr/\tinteger|\tbigint|\[\]|::interval/ => 'refused' ], says => $FIELDS },
    'DBD::Pg'     => { mark => '?', program => sub { ('perl', "$here/dbd_pg.pl") },
        says => $FIELDS },
    'ECPG'        => { mark => '?', program => \&in_ecpg, says => ['notice'] },
    'kysely'      => { mark => '$', program => sub { in_node('kysely') }, says => $FIELDS },
    'lib/pq'      => { mark => '$', program => sub { in_go('pq', 'github.com/lib/pq') },
        differs => [ qr/\tinterval/ => 'error 22008' ], says => $FIELDS },
    'libpqxx'     => { mark => '$', program => \&in_cpp, says => $TEXT },
    'PDO'         => { mark => '?', program => sub { in_php('pdo', 'pdo_pgsql') },
        says => [ 'detail', 'hint' ] },
    'PHP pgsql'   => { mark => '$', program => sub { in_php('pgsql', 'pgsql') }, says => $FIELDS },
    'pgx'         => { mark => '$', program => sub { in_go('pgx', 'github.com/jackc/pgx/v4') },
        differs => [ qr/\tinteger|\tbigint|\[\]/ => 'refused' ], says => $FIELDS },
    'postgres.js' => { mark => '$', program => sub { in_node('postgres') },
        differs => [ qr/\tbigint\[\]/ => 'error 42883', qr/\[\]/ => 'error 22P02' ],
        with_cast => [ qr/\tbigint\[\]/ => 'error 42846' ], says => $FIELDS },
    'psqlodbc'    => { mark => '?', program => \&in_odbc,
        differs => [ qr/\tinterval/ => 'refused' ], says => [ 'detail', 'notice' ] },
    'psycopg 3'   => { mark => '?', program => sub { in_python('psycopg3', 'psycopg') },
        says => $FIELDS },
    'Ruby pg'     => { mark => '$', program => \&in_ruby,
        differs => [ qr/\[\]/ => 'error 22P02' ], with_cast => [ qr/\[\]/ => 'error 22P02' ],
        says => $FIELDS },
    'slonik'      => { mark => '?', program => sub { in_node('slonik') }, says => $FIELDS },
    'tdbc'        => { mark => ':', program => \&in_tcl, says => [] },
);

# ---- What is called ------------------------------------------------------------------------------

# Of the list the first function of each line: what it is, the statement, what comes back, the
# names whose locks are held then, and the values.
my (@calls, $function);
for my $line (grep { !/^#/ } split /\n/, slurp(calls())) {
    if ($line =~ /^= (\w+)/) { $function = $1; next }
    my ($what, $sql, $expected, $names, @values) = split /\t/, $line, -1;
    push @calls, { what => "$function, $what", sql => $sql =~ s/F[(]/$function(/r, expected =>
        $expected, names => join(',', sort split /,/, $names), values => \@values };
}

# The values of a call in a statement, each with a cast to its type. A duration is a string then.
sub with_casts ($call) {
    my @values = map { s/^interval:/text:/r } @{ $call->{values} };
    my @types = map { /^(?!null)([^:]*)/ ? '::' . $1 =~ s/uuid\[\]/text[]/r : '' }
        @{ $call->{values} };
    $_ = $_ eq '::interval' ? '::text::interval' : $_ for @types;
    my $sql = $call->{sql} =~ s/[?]::interval/?::text::interval/r;
    $sql =~ s/[?](?!::)/'?' . shift @types/ge;
    return { %$call, sql => $sql, values => \@values };
}

# Of what comes back. Another session has "taken".
my %results = (
    false    => q{SELECT advisory.try_lock('taken', 'x')},
    true     => q{SELECT advisory.try_lock('calls', 'x')},
    NULL     => q{SELECT advisory.try_acquire('taken', 'slots', 1)},
    bigint   => q{SELECT advisory.key('billing', 'invoice:42')},
    interval => q{SELECT interval '1.5 s'},
    INOUT    => q{CALL advisory.await_acquire('calls', 'slots', 1)},
    'no row' => q{SELECT 1 WHERE advisory.try_lock('taken', 'x')},
    'a row'  => q{SELECT 1 WHERE advisory.try_lock('calls', 'x')},
    error    => q{SELECT advisory.lock('taken', 'x', '10 ms')},
    notice   => q{SELECT advisory.unlock('calls', 'none')},
);

# The statement that the page shows for all of them, for a user whose export is being made, and for
# another one.
my ($export) = slurp("$FindBin::Bin/../../doc/drivers.md") =~ /^(SELECT 1 WHERE .*'export'.*);$/m;
is($export =~ s/7::bigint, '2s'/?::bigint, '50ms'/, 1, 'the page shows a statement for all');
@results{ 'an export', 'busy' } = ("$export\tinteger:8", "$export\tinteger:7");

my $LET_GO = 'SELECT pg_advisory_unlock_all()::text';

sub held ($names) {
    my $list = join ', ', map { q(') . s/'/''/gr . q(') } split(/,/, $names), 'none';
    return "SELECT string_agg(n, ',' ORDER BY n COLLATE \"C\") FROM pg_locks AS l, "
        . "unnest(ARRAY[$list]) AS n WHERE l.locktype = 'advisory' AND l.granted "
        . 'AND l.pid = pg_backend_pid() AND l.objsubid = 1 '
        . q{AND advisory.key('calls', n) = (l.classid::bigint << 32) | l.objid::bigint};
}

# ---- What the page says --------------------------------------------------------------------------

# The rows of the page's tables of drivers: name => { column => cell }. A version follows the name.
my (%page, @columns);
for my $line (split /\n/, slurp("$FindBin::Bin/../../doc/drivers.md")) {
    my @cells = $line =~ /^[|] *(.*?) *[|]$/ ? split / *[|] */, $1 : ();
    @columns = @cells if !@cells || $cells[0] eq 'driver';
    next unless grep { $_ eq 'seen' } @columns;
    my ($name) = $cells[0] =~ /^(.+?) \d[\d.]*(?:,.*)?$/ or next;
    # (The first of several versions.)
    next if $page{$name};
    @{ $page{$name} }{@columns} = @cells;
}

# What came back, in the page's words: false and NULL as they are, of others the type.
sub in_words ($said) {
    return "`$said`" if $said =~ /^(?:true|false|null|'[^']?')$/;
    return 'string' if $said =~ /^'/;
    return $said =~ /^[\d.]+$/ ? 'number' : '`' . $said =~ s/ .*//r . '`';
}

# ---- The test ------------------------------------------------------------------------------------

create_database();
my $holder = session(application => 'holder');
$holder->run(q{SELECT advisory.lock('taken', 'x')},
    q{SELECT advisory.acquire('taken', 'slots', 1)}, q{SELECT advisory.lock('export', 7)});

sub marked ($mark, $sql) {
    my $at = 0;
    return $sql =~ s{[?]}{ $mark eq '?' ? '?' : $mark eq ':' ? ':v' . ++$at : '$' . ++$at }ger;
}

# Runs the lines by a driver. Of each: [outcome, detail, hint, schema, constraint, notice …].
sub by ($name, $program, @lines) {
    my $file = spew("$scratch/calls", join '', map { "$_\n" } @lines);
    my @environment = ref $program->[0] ? shift @$program : ();
    my ($command, @arguments) = @$program;
    my ($script, @more) = @arguments;
    my ($said, $code) =
        launch(@environment, $command, defined $script ? $script : (), $file, @more)->finish;
    utf8::decode($said);
    my @said = map { [ split /\t/, $_, -1 ] } split /\n/, $said;
    is($code, 0, "$name: the program ends well") or diag($said);
    is(scalar @said, scalar @lines, '... and has an answer to each call') or diag($said);
    return @said;
}

# What becomes of a call, by the exceptions of a driver.
sub expected ($call, @differs) {
    my $words = join "\t", $call->{sql}, @{ $call->{values} };
    while (my ($pattern, $outcome) = splice @differs, 0, 2) {
        return ($outcome, '') if $words =~ $pattern;
    }
    return ("error $call->{expected}", '') if $call->{expected} =~ /^22/;
    return ($call->{expected} =~ s/^done$//r, $call->{names});
}

for my $name (sort { lc $a cmp lc $b } keys %DRIVERS) {
    my $driver = $DRIVERS{$name};
    SKIP: {
        my $program = [ $driver->{program}->() ];
        skip "$name is not here", 1 unless @$program;
        my @tried = map { ([ $_, @{ $driver->{differs} // [] } ],
                [ with_casts($_), @{ $driver->{with_cast} // [] } ]) } @calls;
        my @lines = map {
            my ($call) = @$_;
            (join("\t", marked($driver->{mark}, $call->{sql}), @{ $call->{values} }),
                held($call->{names}), $LET_GO)
        } @tried;
        push @lines, map { marked($driver->{mark}, $results{$_}) } sort keys %results;
        my @said = by($name, $program, @lines);

        for my $try (@tried) {
            my ($call, @differs) = @$try;
            my ($came, $held) = map { $_->[0] } splice @said, 0, 3;
            my ($outcome, $names) = expected($call, @differs);
            $came =~ s/^(?:true|'1'|'t'|1)$/t/ if $outcome eq 't';
            $came =~ s/^refused.*/refused/;
            is($came =~ s/'|BigInt //gr, $outcome, "$name, $call->{what}: $call->{sql}");
            is($held =~ s/^(?:null|'(.*)')$/$1 \/\/ ''/er, $names, '... those locks');
        }

        my %came;
        @came{ sort keys %results } = @said;
        my %is = map { $_ => $came{$_}[0] } keys %came;
        my $row = $page{$name} or fail("doc/drivers.md has a row for $name");
        is(in_words($is{$_}), $row->{$_}, "$name: $_ comes back as the page says")
            for qw(false NULL bigint interval);
        isnt($is{true}, $is{false}, '... and true is something else');
        like($is{INOUT}, qr/^'?1'?$/, '... CALL returns the INOUT argument as a row');
        is($is{'no row'}, '', '... SELECT 1 WHERE try_lock() returns no row for what is taken');
        like($is{'a row'}, qr/^'?1'?$/, '... and one for what is free');
        is($is{busy}, '', '... and so it is with the statement of the page');
        like($is{'an export'}, qr/^'?1'?$/, '... for both users');
        my ($state, %field);
        ($state, @field{qw(detail hint schema constraint)}) = @{ $came{error} };
        $field{notice} = $came{notice}[5];
        is($state, 'error 55P03', '... an error has its SQLSTATE');
        my @says = grep { length($field{$_} // '') } qw(detail hint schema constraint notice);
        is("@says", "@{ $driver->{says} }", '... and those fields');
        like($field{detail}, qr/application "holder", holds it/, '... DETAIL names the holder')
            if grep { $_ eq 'detail' } @says;
        is("@field{qw(schema constraint)}", 'taken x', '... and so do the fields of the name')
            if grep { $_ eq 'schema' } @says;
    }
}
done_testing();
