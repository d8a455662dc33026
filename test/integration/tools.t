#!/usr/bin/env perl
# Well-known keys: real tools, stopped in the middle, hold locks that advisory.locks and
# advisory.activity recognize as theirs. test/sql/75_known_keys.sql tests what no tool can show
# (formulas for other names, other databases).
use AdvisoryTest;
use FindBin;
use Gate;
use Launch;
use Programs;

my $session;
my $number = 0;

sub new_database {
    create_database(name => "advisory_tools_${$}_" . ++$number);
    return $session = session();
}

# While the tool is stopped, its lock is recognised as this, before anything else.
sub holds ($tool, $known_as) {
    my $lock = 'FROM advisory.locks WHERE granted AND ? = ANY (known_as)';
    $session->wait_until("$tool holds a lock that is known as $known_as", "SELECT count(*) $lock",
        $known_as);
    my ($pid, $first) = @{ $session->rows("SELECT pid, known_as[1] $lock", $known_as)->[0] };
    is($first, $known_as, "$tool: its lock is known as that");
    my $shown = length $known_as > 24 ? substr($known_as, 0, 21) . '...' : $known_as;
    is($session->value('SELECT count(*) FROM advisory.activity WHERE pid = ? AND lock = ?', $pid,
        qq{"$shown"}), 1, "$tool: activity shows it");
    return;
}

# The tool goes on to its end, and its lock is gone.
sub ends_well ($tool, $program) {
    $program->ends(0, qr/^/, "$tool: ends well");
    return $session->shows(q{SELECT count(*) FROM advisory.locks
        WHERE database = current_database() AND known_as::text ~ ?}, 0, "$tool: no lock is left",
        $tool);
}

# ---- Migration tools, stopped where they create an index -----------------------------------------

sub stopped_at_gate ($tool, $known_as, @command) {
    my $gate = shut_gate(new_database());
    my $program = launch(@command);
    wait_until("$tool is at the gate", sub {
        $gate->waiter
            || ($program->is_done && die "$tool did not come to the gate: " . $program->said)
    });
    holds($tool, $known_as);
    $gate->open;
    ends_well($tool, $program);
    return;
}

SKIP: {
    skip 'sqitch is not here', 1 unless program('sqitch');
    my $project = scratch() . '/sqitch';
    mkdir $_ or die "cannot make $_: $!\n" for $project, "$project/deploy";
    spew("$project/sqitch.conf", "[core]\n\tengine = pg\n");
    spew("$project/sqitch.plan",
        "%syntax-version=1.0.0\n%project=tools\n\nitem 2026-01-01T00:00:00Z Tester "
            . "<tester\@example.org> # Adds items\n");
    spew("$project/deploy/item.sql",
        "CREATE TABLE item (name text);\nCREATE INDEX ON item (name);\n");
    stopped_at_gate(
        'sqitch', 'sqitch: deployment',
        { SQITCH_FULLNAME => 'Tester', SQITCH_EMAIL => 'tester@example.org' },
        'sh', '-c', 'cd "$1" && exec sqitch deploy db:pg:', 'sh', $project);
}

SKIP: {
    my $modules = node_modules();
    skip 'node-pg-migrate is not here', 1 unless $modules && -x "$modules/.bin/node-pg-migrate";
    stopped_at_gate('node-pg-migrate', 'node-pg-migrate: migration lock',
        "$modules/.bin/node-pg-migrate", 'up', '-m', examples('migration/node/migrations'));
}

SKIP: {
    my $modules = node_modules("$FindBin::Bin/node/package.json");
    skip 'pg-boss is not here, or Node is too old for it', 1
        unless $modules
        && system('node', '-e', 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)') == 0;
    stopped_at_gate('pg-boss', 'pg-boss: create and migrate (pgboss)', { NODE_PATH => $modules },
        'node', "$FindBin::Bin/node/pgboss.js");
}

# ---- Extensions, stopped by a lock on a table ----------------------------------------------------

sub has_extension {
    return new_database()
        ->value('SELECT count(*) FROM pg_available_extensions WHERE name = ?', $_[0])
}

SKIP: {
    skip 'pg_repack is not here', 1 unless has_extension('pg_repack') && program('pg_repack');
    $session->run('CREATE EXTENSION pg_repack', 'CREATE TABLE item (id integer PRIMARY KEY)');
    my $reader = session()->run('BEGIN', 'LOCK TABLE item IN ACCESS SHARE MODE');
    my $program = launch('pg_repack', '--no-kill-backend', '--table=public.item',
        '--dbname=' . $session->value('SELECT current_database()'));
    holds('pg_repack', 'pg_repack: table being repacked (public.item)');
    $reader->run('COMMIT');
    ends_well('pg_repack', $program);
}

SKIP: {
    skip 'pg_partman is not here', 1 unless has_extension('pg_partman');
    $session->run('CREATE SCHEMA partman', 'CREATE EXTENSION pg_partman SCHEMA partman',
        'CREATE TABLE event (id bigint NOT NULL) PARTITION BY RANGE (id)');
    my $kind = $session->value(
        q{SELECT extversion < '5' FROM pg_extension WHERE extname = 'pg_partman'})
            ? ", p_type => 'native'" : '';
    $session->run("SELECT partman.create_parent(p_parent_table => 'public.event', p_control => 'id',
            p_interval => '10'$kind)");

    my $maintenance = session()->run('BEGIN', 'SELECT partman.run_maintenance()');
    holds('pg_partman', 'pg_partman: run_maintenance');
    $maintenance->run('COMMIT');

    $session->run('INSERT INTO event VALUES (1000)');
    my $reader = session()->run('BEGIN', 'LOCK TABLE event_default IN ACCESS EXCLUSIVE MODE');
    my $program = launch('psql', '-X', '-c', q{CALL partman.partition_data_proc('public.event')});
    holds('pg_partman', 'pg_partman: partition_data_proc');
    $reader->run('COMMIT');
    ends_well('pg_partman', $program);
}

# ---- pgBackRest, stopped where it waits for a WAL segment ----------------------------------------

SKIP: {
    skip 'pgBackRest is not here', 1 unless program('pgbackrest');
    my ($version) = `pgbackrest version` =~ /(\d+\.\d+)/;
    skip "pgBackRest $version takes no advisory lock", 1 if $version >= 2.60;
    # The server's program and the backup have the same repository, beside the data.
    my $options = '--no-config --stanza=tools --log-level-file=off --lock-path=$PWD/../lock '
        . '--repo1-path=$PWD/../repo --pg1-path=$PWD';
    my $server = own_server('archive_mode=on', 'wal_level=replica', 'max_wal_senders=1',
        "archive_command=while [ ! -e ../gate ]; do sleep 0.05; done; pgbackrest $options "
            . "archive-push %p");
    $session = session(server => $server)->run('CREATE EXTENSION advisory_ext');
    my $pgbackrest = sub {
        launch(as_user(), 'sh', '-c',
            "cd '$server->{ADVISORY_EXT_DATADIR}' && exec pgbackrest $options "
                . "--pg1-socket-path='$server->{PGHOST}'"
            . " --pg1-port=$server->{PGPORT} --pg1-user='$server->{PGUSER}' " . join ' ', @_);
    };
    my ($said, $status) = $pgbackrest->('stanza-create')->finish;
    skip "pgBackRest does not work with this server: $said", 1 if $status;
    my $program = $pgbackrest->('--start-fast', 'backup');
    holds('pgBackRest', 'pgBackRest: backup');
    spew("$server->{ADVISORY_EXT_DATADIR}/../gate", '');
    ends_well('pgBackRest', $program);
}

done_testing();
