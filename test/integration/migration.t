#!/usr/bin/env perl
# Migrations: two deployments start at the same time. One migrates, with CREATE INDEX CONCURRENTLY,
# while the other waits and then has nothing to do. The test uses a psql script, node-pg-migrate and
# Alembic, all as in examples/migration. It also shows for each what happens if the other deployment
# waits in SELECT pg_advisory_lock() instead.
use AdvisoryTest;
use Gate;
use Launch;
use Programs;
use Time::HiRes qw(sleep);

my ($session, $gate);
my $number = 0;

# A new database, in which every CREATE INDEX is noted and waits at a gate, which is shut; and
# everything that was made is noted.
sub new_database {
    create_database(name => "advisory_migration_${$}_" . ++$number);
    $session = session()->run(
        'CREATE TABLE attempt (pid integer)',
        'CREATE TABLE made (object text)',
        <<'SQL',
        CREATE FUNCTION attempt() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO attempt VALUES (pg_backend_pid());
        END $$
SQL
        <<'SQL',
        CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO made SELECT command_tag || ' ' || object_identity
            FROM pg_event_trigger_ddl_commands();
        END $$
SQL
        "CREATE EVENT TRIGGER attempt ON ddl_command_start
            WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION attempt()",
        'CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note()');
    $gate = shut_gate($session);
    return;
}

# The session that holds or awaits a lock of this key: its pid, if there is one.
sub of_lock ($granted, $key) {
    return $session->value(<<'SQL', $granted, $key);
        SELECT pid FROM advisory.locks
        WHERE database = current_database() AND granted = $1 AND key = $2
        AND pid <> pg_backend_pid()
SQL
}

sub key { $session->value("SELECT advisory.key('migration', 'app')") }

sub xmin { $session->value('SELECT backend_xmin FROM pg_stat_activity WHERE pid = ?', $_[0]) }

# Waits until one deployment is at the gate and another one waits for it; the waiter's pid.
sub until_one_waits {
    my $key = key();
    wait_until('one deployment is at the gate', sub { $gate->waiter });
    wait_until('the other one waits', sub { of_lock(0, $key) });
    return of_lock(0, $key);
}

sub attempts { $session->value('SELECT count(*) FROM attempt') }

# Is the index valid? NULL if there is none.
sub valid {
    $session->value(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('item_name_idx')")
}

# The examples, with another way to wait.
my $others = 0;
sub with_other_wait ($statement) {
    my $to = scratch() . '/other.' . ++$others;
    system('cp', '-r', examples('migration'), $to) == 0 or die "cannot copy the examples\n";
    my $replaced = 0;
    for my $file (grep { -f } glob "$to/* $to/*/*") {
        my $text = slurp($file);
        $text =~ s/CALL advisory\.await_lock\('migration', 'app', '10 min'\)/$statement/ or next;
        spew($file, $text);
        $replaced++;
    }
    die "found $replaced ways to wait\n" unless $replaced == 3;
    return $to;
}

my $node = program('node') && node_modules();
undef $node unless $node && -x "$node/.bin/node-pg-migrate";
my $python = python('psycopg2', 'alembic');

my @TOOLS = (
    {   name      => 'psql',
        available => 1,
        start     => sub ($dir, %environment) {
            launch(\%environment, 'psql', '-X', '-v', 'VERBOSITY=verbose', '-f', "$dir/deploy.sql")
        },
        migrated  => qr/^CREATE INDEX$/m,
        versions  => [
            'SELECT version FROM schema_migrations ORDER BY 1', '1_item', '2_item_name' ],
        one_connection => 1,
    },
    {   name      => 'node-pg-migrate',
        available => $node,
        start     => sub ($dir, %environment) {
            launch({ NODE_PATH => $node, PATH => "$node/.bin:$ENV{PATH}", %environment }, 'node',
                "$dir/node/deploy.js");
        },
        migrated  => qr/^CREATE INDEX CONCURRENTLY/m,
        nothing   => qr/^No migrations to run!$/m,
        versions  => [ 'SELECT name FROM pgmigrations ORDER BY 1', '1700000000001_item',
            '1700000000002_item_name' ],
    },
    {   name      => 'Alembic',
        available => $python,
        start     => sub ($dir, %environment) {
            launch(\%environment, $python, '-m', 'alembic', '-c', "$dir/alembic/alembic.ini",
                'upgrade', 'head');
        },
        migrated  => qr/Running upgrade 1_item -> 2_item_name/,
        versions  => [ 'SELECT version_num FROM alembic_version', '2_item_name' ],
    },
);

my $with_builtin = with_other_wait("SELECT pg_advisory_lock(advisory.key('migration', 'app'))");
my $with_lock    = with_other_wait("SELECT advisory.lock('migration', 'app', '10 min')");

sub is_migrated ($tool) {
    $session->shows("SELECT object FROM made WHERE object ~ 'item( |_name|\$)' ORDER BY 1",
        [ 'CREATE INDEX public.item_name_idx', 'CREATE TABLE public.item' ],
        "$tool->{name}: table and index were made once");
    is(valid(), 1, "$tool->{name}: the index is valid");
    my ($query, @versions) = @{ $tool->{versions} };
    $session->shows($query, \@versions, "$tool->{name}: each migration is recorded, once");
    return $session->shows(
        'SELECT count(*) FROM advisory.locks WHERE database = current_database() AND pid <> ?', 0,
        "$tool->{name}: no lock is left", $gate->pid);
}

# ---- Two deployments -----------------------------------------------------------------------------

sub two_deployments ($tool) {
    my $name = $tool->{name};
    new_database();
    my @deployments = map { $tool->{start}->(examples('migration')) } 1, 2;
    my $waiter = until_one_waits();
    is(xmin($waiter), undef, "$name: while one migrates, the other waits without a snapshot");
    $session->shows('SELECT namespace, name FROM advisory.locks WHERE pid = ?', 'migration|app',
        "$name: for the named lock", $waiter);
    my $holder = of_lock(1, key());
    my ($said, $status) =
        $tool->{start}->(examples('migration'), PGOPTIONS => '-c lock_timeout=50ms')->finish;
    isnt($status, 0, "$name: a third one, which has waited long enough, fails");
    like($said, qr{could not obtain advisory lock "migration/app".*Process $holder of role}s,
        "$name: and is told by whom");
    $gate->open;
    my @ends = map { [ $_->finish ] } @deployments;
    is_deeply([ map { $_->[1] } @ends ], [ 0, 0 ], "$name: both end well")
        or diag(map { $_->[0] } @ends);
    my ($done, $idle) =
        sort { ($b->[0] =~ $tool->{migrated}) <=> ($a->[0] =~ $tool->{migrated}) } @ends;
    like($done->[0], $tool->{migrated}, "$name: one migrates");
    unlike($idle->[0], $tool->{migrated}, "$name: the other one does not");
    like($idle->[0], $tool->{nothing}, "$name: and says that there is nothing to do")
        if $tool->{nothing};
    is(attempts(), 1, "$name: the index was built once");
    is_migrated($tool);
    return;
}

# The same, but the second one waits in a query. Only the first looks for deadlocks, so that it is
# the one that is told.
sub second_waits_in_a_query ($tool, $dir) {
    my $name = "$tool->{name}, with a wait in a query";
    new_database();
    my $first = $tool->{start}->($dir, PGOPTIONS => '-c deadlock_timeout=100ms');
    wait_until('the first is at the gate', sub { $gate->waiter });
    my $builder = $gate->waiter;
    my $second = $tool->{start}->($dir, PGOPTIONS => '-c deadlock_timeout=10min');
    my $waiter = until_one_waits();
    isnt(xmin($waiter), undef, "$name: it has a snapshot");
    $gate->open;
    if ($tool->{one_connection}) {
        my ($said, $status) = $first->finish;
        isnt($status, 0, "$name: the first deployment fails");
        like($said, qr/deploy\.sql:\d+: ERROR:  40P01: deadlock detected\n/,
            "$name: in a deadlock");
    } else {
        # The lock and the index belong to different connections, so the server cannot see the
        # cycle.
        $session->wait_until('the index waits for the other deployment',
            'SELECT pg_blocking_pids(?) = ARRAY[?::int]', $builder, $waiter);
        $session->shows('SELECT pg_blocking_pids(?) = ARRAY[?::int]', 1,
            "$name: the index waits for the other deployment, and that for the lock of the first",
            $waiter, of_lock(1, key()));
        $session->shows('SELECT phase FROM pg_stat_progress_create_index WHERE pid = ?',
            'waiting for old snapshots', "$name: for its snapshot", $builder);
        # Four times as long as the server takes to look for deadlocks.
        sleep 0.4;
        ok(!$first->is_done && !$second->is_done, "$name: for ever");
        # Only another session can end that.
        $session->value('SELECT pg_terminate_backend(?)', $waiter);
        is(($first->finish)[1], 0, "$name: until one is ended");
        isnt(($second->finish)[1], 0, "$name: which fails");
        is_migrated($tool);
        return;
    }
    my ($said, $status) = $second->finish;
    is($status, 0, "$name: the second one gets the lock");
    unlike($said, qr/index "item_name_idx" does not exist/,
        "$name: finds an index that is not valid");
    is(attempts(), 2, "$name: and builds another one");
    is_migrated($tool);
    return;
}

for my $tool (@TOOLS) {
    SKIP: {
        skip "$tool->{name} is not here", 1 unless $tool->{available};
        two_deployments($tool);
        second_waits_in_a_query($tool, $with_builtin);
    }
}
second_waits_in_a_query($TOOLS[0], $with_lock);

# ---- Many at once, with nothing to hold them up --------------------------------------------------

# Some have just begun their CALL, and so have a snapshot still, when the index looks whom to wait
# for.
for my $round (1 .. 6) {
    new_database();
    $gate->open;
    my @ends = map { [ $_->finish ] } map { $TOOLS[0]{start}->(examples('migration')) } 1 .. 8;
    is_deeply([ map { $_->[1] } @ends ], [ (0) x 8 ],
        "eight deployments at once, round $round: all end well")
            or diag(map { $_->[0] } grep { $_->[1] } @ends);
    is(attempts(), 1, "eight deployments at once, round $round: the index was built once");
    is_migrated($TOOLS[0]);
}

# ---- node-pg-migrate by itself -------------------------------------------------------------------

SKIP: {
    skip 'node-pg-migrate is not here', 1 unless $node;
    new_database();
    my @command = ("$node/.bin/node-pg-migrate", 'up', '-m', examples('migration/node/migrations'));
    my $first = launch(@command);
    wait_until('the first is at the gate', sub { $gate->waiter });
    launch(@command)->ends(1, qr/Another migration is already running/,
        'node-pg-migrate: a second one gives up at once, and says why');
    $gate->open;
    is(($first->finish)[1], 0, 'the first one migrates');
    is_migrated($TOOLS[1]);

    # The program around it is ended, as by a scheduler.
    new_database();
    $first = $TOOLS[1]{start}->(examples('migration'));
    wait_until('the first is at the gate', sub { $gate->waiter });
    my $second = $TOOLS[1]{start}->(examples('migration'));
    until_one_waits();
    kill TERM => $first->{pid};
    $first->ends(1, qr/\A(?!.*Migrations complete)/s,
        'a deployment that is ended ends with what it had started');
    $gate->open;
    is(($second->finish)[1], 0, 'and the next one goes on');
    is(valid(), 1, 'to an index that is valid');
}

done_testing();
