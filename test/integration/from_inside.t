#!/usr/bin/env perl
# Functions of other languages, and other extensions of the server, that call ours: PL/Perl and
# PL/Tcl, dblink, pg_stat_statements. What doc/errors.md shows for the first two is run.
use AdvisoryTest;
use FindBin;
use Launch;
use Page;
use Programs;
use Time::HiRes qw(time);

chomp(my $share = qx('$ENV{PG_BINDIR}/pg_config' --sharedir));

sub is_here ($extension) { return -e "$share/extension/$extension.control" }

create_database();
my $session = session();
my $holder = session(application => 'holder')->run(q{SELECT advisory.lock('taken', 'x')});
my $LOCK = q{SELECT advisory.lock('taken', 'x', '10 ms')};

# ---- PL/Perl and PL/Tcl --------------------------------------------------------------------------

# A function that takes the lock: the SQLSTATE and DETAIL that its caller gets.
sub becomes ($language, $body) {
    $session->run("CREATE FUNCTION take() RETURNS text LANGUAGE $language AS \$\$ $body \$\$");
    my $error = $session->fails('SELECT take()', '38000', "$language: 55P03 becomes 38000");
    is($error->{detail}, undef, '... without DETAIL');
    like($error->{message}, qr{could not obtain advisory lock "taken/x"}, '... but with the name');
    return $session->run('DROP FUNCTION take');
}

# A function's answer.
sub answers ($language, $body, $answer, $what) {
    $session->run("CREATE FUNCTION ask() RETURNS text LANGUAGE $language AS \$\$ $body \$\$");
    like($session->value('SELECT ask()'), $answer, "$language: $what");
    return $session->run('DROP FUNCTION ask');
}

# What the page shows for a language says whether the lock is free.
my $page = Page->new("$FindBin::Bin/../../doc/errors.md");
sub as_shown ($name, $language, $end) {
    my ($body) = map { $_->{text} } grep { $_->{language} eq $name } $page->others;
    is($body =~ s/5s/50 ms/, 1, "$language: the page shows how");
    $session->run(
        "CREATE FUNCTION ask() RETURNS text LANGUAGE $language AS \$\$ $body\n$end \$\$");
    $session->shows('SELECT ask()', 'mine', '... it takes what is free');
    $holder->run(q{SELECT advisory.lock('billing', 'nightly')});
    $session->shows('SELECT ask()', 'busy', '... and says what is taken');
    $holder->run(q{SELECT advisory.unlock('billing', 'nightly')});
    return $session->run('DROP FUNCTION ask');
}

SKIP: {
    skip 'PL/Perl is not here', 1 unless is_here('plperl');
    $session->run('CREATE EXTENSION plperl');
    becomes('plperl', qq{spi_exec_query("$LOCK"); return 'got'});
    answers('plperl', qq{eval { spi_exec_query("$LOCK") }; return \$@},
        qr/^could not obtain advisory lock[^\n]*\n\z/, 'eval has the message only');
    as_shown('perl', 'plperl', q{return 'mine'});
}

SKIP: {
    skip 'PL/Tcl is not here', 1 unless is_here('pltcl');
    $session->run('CREATE EXTENSION pltcl');
    becomes('pltcl', qq{spi_exec "$LOCK"; return got});
    answers('pltcl', qq{catch {spi_exec "$LOCK"}; return \$::errorCode},
        qr/SQLSTATE 55P03 .* detail \{Process \d+ .*"holder", holds it/, 'catch has all fields');
    as_shown('tcl', 'pltcl', 'return mine');
}

# ---- dblink --------------------------------------------------------------------------------------

SKIP: {
    skip 'dblink is not here', 1 unless is_here('dblink');
    my $database = "dbname=$ENV{ADVISORY_TEST_DATABASE}";
    $session->run('CREATE EXTENSION dblink', "SELECT dblink_connect('far', '$database')",
        'SET statement_timeout = 100');
    my $from = time;
    $session->fails(
        q{SELECT dblink('far', 'SELECT advisory.lock(''far'', ''y'') FROM pg_sleep(1)')},
        '57014', 'statement_timeout ends a call by dblink');
    cmp_ok(time - $from, '>=', 1, '... when the other session returns');
    $session->run('RESET statement_timeout');
    $session->shows(q{SELECT advisory.is_locked('far', 'y')}, 1, '... which keeps what it got');
    $session->run("SELECT dblink_disconnect('far')",
        qq{SELECT dblink_connect('far', '$database options=''-c statement_timeout=100''')});
    $session->fails(
        q{SELECT dblink('far', 'SELECT advisory.lock(''taken'', ''x'')')},
        '57014', '... and its own statement_timeout ends its wait');
}

# ---- pg_stat_statements --------------------------------------------------------------------------

SKIP: {
    skip 'pg_stat_statements is not here', 1 unless is_here('pg_stat_statements');
    my $server = own_server('shared_preload_libraries=pg_stat_statements');
    my $other = session(server => $server)
        ->run('CREATE EXTENSION advisory_ext', 'CREATE EXTENSION pg_stat_statements');
    my $entries = 'SELECT count(*), sum(calls) FROM pg_stat_statements WHERE query LIKE ?';
    $other->run(map { "CALL advisory.await_lock('constants', '$_')" } 1 .. 3);
    # (DBD::Pg writes the values of a CALL into the statement.)
    my $script = spew(scratch() . '/calls.sql', <<'SQL');
\set name random(1, 1000000000)
CALL advisory.await_lock('parameters', :name::bigint);
SQL
    launch({ PGHOST => $server->{PGHOST}, PGPORT => $server->{PGPORT} }, 'pgbench', '-n',
        '--protocol=extended', '-t', 3, '-f', $script, '-U', $server->{PGUSER}, 'postgres')
        ->ends(0, qr/3\/3/, 'pgbench calls it with parameters');
    $other->shows($entries, '1|3', '... of which pg_stat_statements has one entry',
        q{CALL advisory.await_lock('parameters', %});
    my $version = $other->value('SHOW server_version_num');
    skip 'later versions replace constants', 1 if $version >= 160000;
    $other->shows($entries, '3|3', '... and one of each CALL with other constants',
        q{CALL advisory.await_lock('constants', %});
}
done_testing();
