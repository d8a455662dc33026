#!/usr/bin/env perl
# Calls of drivers resolve to the intended function: node-postgres and psycopg send parameters
# without a type over the extended protocol, JDBC sends varchar and bigint, psycopg 3 the smallest
# integer type that fits. A literal in psql goes another way.
use AdvisoryTest;
use FindBin;
use DBD::Pg qw(:pg_types);

create_database();
my ($session, $observer) = map { session() } 1 .. 2;

# The locks that the session holds, as name, mode.
my @NAMES = ('x', 'y', '42', '{x,y}');
my @UUIDS = map { "00000000-0000-0000-0000-00000000000$_" } 1, 2;
sub held {
    return join ' ',
        map { "$_->[0]:$_->[1]" } @{ $observer->rows(<<'SQL', $session->pid, [ @NAMES, @UUIDS ]) };
        SELECT n, l.mode FROM advisory.locks l
        JOIN unnest($2::text[]) n ON l.key = advisory.key('u', n)
        WHERE l.pid = $1 AND l.granted ORDER BY n, l.mode
SQL
}

# Calls with parameters of these types: 0 leaves the type to the server.
sub call ($sql, @parameters) {
    my $sth = $session->dbh->prepare($sql, { pg_server_prepare => 1 });
    my $position = 0;
    $sth->bind_param(++$position, $_->[0], { pg_type => $_->[1] }) for @parameters;
    $sth->execute or return 'error ' . $session->dbh->state . ' ' . $session->dbh->errstr;
    my $rows = $sth->{NUM_OF_FIELDS} ? $sth->fetchall_arrayref : [];
    return join ' ', map { $_->[0] // 'NULL' } @$rows;
}

sub untyped { return map { [ $_, 0 ] } @_ }

sub let_go { $session->run('SELECT pg_advisory_unlock_all()') }

# Tests in a transaction what a call returns, and which locks it takes.
sub takes ($what, $sql, $values, $returned, $locks) {
    $session->run('BEGIN');
    is(call($sql, @$values), $returned, "$what: what it returns");
    is(held(), $locks, "$what: those locks") if defined $locks;
    $session->run('COMMIT');
    return let_go();
}

my %mode = (lock => 'exclusive', lock_shared => 'shared');

# ---- What all drivers send -----------------------------------------------------------------------

# As node-postgres does: without types, a list as the text of an array.
{
    open my $list, '<:encoding(UTF-8)', "$FindBin::Bin/lib/calls.tsv" or die "calls.tsv: $!\n";
    my (@functions, $calls);
    while (my $line = <$list>) {
        chomp $line;
        next if $line =~ /^#/;
        if ($line =~ /^= (.*)/) { @functions = split ' ', $1; next }
        my ($what, $sql, $expected, $names, @values) = split /\t/, $line, -1;
        my ($at, @parameters) = (0);
        for (@values) {
            my ($kind, $value) = split /:/, $_, 2;
            push @parameters, $kind eq 'null' ? undef : $kind =~ /\[\]/ ? "{$value}" : $value;
        }
        $sql =~ s/[?]/'$' . ++$at/ge;
        $expected = $sql =~ /^CALL/ ? '' : $expected =~ s/^t$/1/r;
        for my $function (@functions) {
            $calls++;
            $session->run('BEGIN') unless $sql =~ /^CALL/;
            my $result = call($sql =~ s/F[(]/$function(/r, untyped(@parameters));
            is($result =~ s/^error (\w+).*/$1/sr, $expected, "$function, $what");
            is_deeply([ sort $observer->column(q(SELECT n FROM pg_locks AS l, unnest(?::text[]) AS n
                WHERE l.locktype = 'advisory' AND l.pid = ? AND l.granted AND l.objsubid = 1
                AND advisory.key('calls', n) = (l.classid::bigint << 32) | l.objid::bigint
                ), [ split /,/, $names ], $session->pid) ], [ sort split /,/, $names ],
                "$function, $what: those locks");
            $observer->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                AND pid = ?), scalar(() = $names =~ /[^,]+/g), '... and no others', $session->pid);
            $session->run('ROLLBACK') unless $sql =~ /^CALL/;
            let_go();
        }
    }
    cmp_ok($calls, '>', 100, 'that are many');
}

# ---- One lock ------------------------------------------------------------------------------------

for my $try ('', 'try_') {
    for my $scope ('', 'xact_') {
        for my $mode (qw(lock lock_shared)) {
            my $function = "$try$scope$mode";
            for my $case (
                [ 'untyped name', '$1, $2', [ untyped('u', 'x') ], 'x' ],
                [ 'varchar, as JDBC', '$1, $2', [ map { [ $_, PG_VARCHAR ] } 'u', 'x' ], 'x' ],
                [ 'varchar and bigint, as JDBC', '$1, $2',
                    [ [ 'u', PG_VARCHAR ], [ 42, PG_INT8 ] ], '42' ],
                [ 'integer', '$1, $2', [ [ 'u', 0 ], [ 42, PG_INT4 ] ], '42' ],
                [ 'smallint, as psycopg 3', '$1, $2', [ [ 'u', 0 ], [ 42, PG_INT2 ] ], '42' ],
                [ 'uuid', '$1, $2', [ [ 'u', 0 ], [ $UUIDS[0], PG_UUID ] ], $UUIDS[0] ],
            ) {
                my ($name, $arguments, $values, $lock) = @$case;
                takes("$function, $name", "SELECT advisory.$function($arguments)", $values, '1',
                    "$lock:$mode{$mode}");
            }
            $session->run('BEGIN');
            is(call("SELECT advisory.${function}_key(\$1)",
                untyped($session->value("SELECT advisory.key('u', 'x')"))), '1',
                "${function}_key, untyped");
            is(call("SELECT advisory.${function}_key(\$1, \$2, \$3)",
                untyped($session->value("SELECT advisory.key('u', 'y')"), '1s', 'label')), '1',
                "${function}_key, untyped, all of them");
            is(held(), "x:$mode{$mode} y:$mode{$mode}", "${function}_key: those locks");
            $session->run('COMMIT');
            let_go();
        }
    }
}

for my $procedure (qw(await_lock await_lock_shared)) {
    my ($mode) = $procedure =~ /^await_(.*)/;
    is(call("CALL advisory.$procedure(\$1, \$2)", untyped('u', 'x')), '', "$procedure, untyped");
    is(call("CALL advisory.$procedure(\$1, \$2, \$3)", untyped('u', 42, '1s')), '',
        "$procedure, untyped, with a timeout");
    is(call("CALL advisory.${procedure}_key(\$1)",
        untyped($session->value("SELECT advisory.key('u', 'y')"))), '',
        "${procedure}_key, untyped");
    is(held(), "42:$mode{$mode} x:$mode{$mode} y:$mode{$mode}", "$procedure: those locks");
    let_go();
}

# ---- Several -------------------------------------------------------------------------------------

for my $try ('', 'try_') {
    for my $scope ('', 'xact_') {
        my $function = "$try${scope}lock_all";
        for my $case (
            [ 'array text, untyped',        '$1, $2',     [ untyped('u', '{x,y}') ],
                'x:exclusive y:exclusive' ],
            [ 'array text, quoted',         '$1, $2',     [ untyped('u', '{"x","y"}') ],
                'x:exclusive y:exclusive' ],
            [ 'array text as varchar',      '$1, $2',
                [ map { [ $_, PG_VARCHAR ] } 'u', '{x,y}' ], 'x:exclusive y:exclusive' ],
            [ 'text[]', '$1, $2::text[]', [ untyped('u', '{x,y}') ], 'x:exclusive y:exclusive' ],
            [ 'varchar[], as JDBC',         '$1, $2::varchar[]', [ untyped('u', '{x,y}') ],
                'x:exclusive y:exclusive' ],
            [ 'smallint[], as psycopg 3',   '$1, $2::smallint[]', [ untyped('u', '{42}') ],
                '42:exclusive' ],
            [ 'integer[]', '$1, $2::integer[]', [ untyped('u', '{42}') ], '42:exclusive' ],
            [ 'bigint[]', '$1, $2::bigint[]', [ untyped('u', '{42}') ], '42:exclusive' ],
            [ 'uuid[]', '$1, $2::uuid[]', [ untyped('u', "{$UUIDS[0]}") ], "$UUIDS[0]:exclusive" ],
        ) {
            my ($name, $arguments, $values, $locks) = @$case;
            takes("$function, $name", "SELECT advisory.$function($arguments)", $values, '1',
                $locks);
        }
        like(call("SELECT advisory.$function(\$1, \$2)", untyped('u', 'x')), qr/^error 22P02/,
            "$function, no array: 22P02");
    }
}

for my $function (qw(try_lock_any try_xact_lock_any)) {
    for my $case (
        [ 'array text, untyped', '$1, $2', [ untyped('u', '{x,y}') ], 'x', 'x:exclusive' ],
        [ 'array text, wanted',       '$1, $2, $3', [ untyped('u', '{y,x}', 2) ], 'y x',
            'x:exclusive y:exclusive' ],
        [ 'smallint[], as psycopg 3', '$1, $2::smallint[]', [ untyped('u', '{42}') ], '42',
            '42:exclusive' ],
        [ 'varchar[], as JDBC', '$1, $2::varchar[]', [ untyped('u', '{x}') ], 'x', 'x:exclusive' ],
    ) {
        my ($name, $arguments, $values, $returned, $locks) = @$case;
        takes("$function, $name", "SELECT advisory.$function($arguments)", $values, $returned,
            $locks);
    }
}

for my $function (qw(try_acquire_any try_xact_acquire_any)) {
    for my $case (
        [ 'array text, untyped', '$1, $2, $3', [ untyped('u', '{x,y}', 3) ], '(x,1)' ],
        [ 'array text, wanted', '$1, $2, $3, $4', [ untyped('u', '{y,x}', 3, 2) ], '(y,1) (x,1)' ],
        [ 'smallint[], as psycopg 3', '$1, $2::smallint[], $3',
            [ untyped('u', '{42}', 3) ], '(42,1)' ],
        [ 'varchar[], as JDBC', '$1, $2::varchar[], $3', [ untyped('u', '{x}', 3) ], '(x,1)' ],
    ) {
        my ($name, $arguments, $values, $returned) = @$case;
        takes("$function, $name", "SELECT advisory.$function($arguments)", $values, $returned,
            undef);
    }
}

# ---- Releasing and asking ------------------------------------------------------------------------

$session->run("SELECT advisory.lock('u', 'x')", "SELECT advisory.lock('u', 42)",
    "SELECT advisory.lock_shared('u', 'y')");
is(call('SELECT advisory.holds($1, $2)', untyped('u', 'x')), '1', 'holds, untyped');
is(call('SELECT advisory.hold_count($1, $2)', untyped('u', 42)), '1', 'hold_count, untyped id');
is(call('SELECT advisory.is_locked($1, $2)', untyped('u', 'x')), '1', 'is_locked, untyped');
is(call('SELECT mode FROM advisory.holders($1, $2)', untyped('u', 'y')), 'shared',
    'holders, untyped');
is(call('SELECT advisory.key($1, $2)', untyped('u', 42)),
    $session->value("SELECT advisory.key('u', 42)"), 'key, untyped');
is(call('SELECT advisory.unlock($1, $2)', untyped('u', 'x')), '1', 'unlock, untyped');
is(call('SELECT advisory.unlock_shared($1, $2)', untyped('u', 'y')), '1', 'unlock_shared, untyped');
is(call('SELECT advisory.unlock_all($1, $2)', untyped('u', 42)), '1',
    'unlock_all, untyped: a name');
is(held(), '', 'nothing is left');

# A name that looks like an array is a name where one name is expected.
$session->run("SELECT advisory.lock('u', '{x,y}')");
is(call('SELECT advisory.unlock_all($1, $2)', untyped('u', '{x,y}')), '1',
    'unlock_all, untyped: also a name with braces');
$session->run("SELECT advisory.lock_all('u', ARRAY['x', 'y'])");
is(call('SELECT advisory.unlock_all($1, $2::text[])', untyped('u', '{x,y}')), '2',
    'unlock_all of an array');
$session->run("SELECT advisory.lock_all('u', ARRAY['x', 'y'])");
is(call('SELECT advisory.unlock_all($1)', untyped('u')), '2', 'unlock_all of a namespace, untyped');
is(held(), '', 'nothing is left');

done_testing();
