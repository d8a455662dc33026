#!/usr/bin/env perl
# Well-known keys: real tools, stopped in the middle, hold locks that advisory.locks and
# advisory.activity recognize as theirs. test/sql/75_known_keys.sql tests what no tool can show
# (formulas for other names, other databases).
# Runs first: npm brings the modules of six tools.
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
    my ($pid, $key, $first) =
        @{ $session->rows("SELECT pid, key, known_as[1] $lock", $known_as)->[0] };
    is($first, $known_as, "$tool: its lock is known as that");
    my $shown = length $known_as > 24 ? substr($known_as, 0, 21) . '...' : $known_as;
    is($session->value('SELECT count(*) FROM advisory.activity WHERE pid = ? AND lock = ?', $pid,
        (defined $key && abs $key < 100_000 ? "$key " : '') . qq{"$shown"}), 1,
        "$tool: activity shows it");
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
    system(q(ruby -e 'require "active_record"; require "pg"' >/dev/null 2>&1)) == 0
        or skip 'Ruby with ActiveRecord and its driver for PostgreSQL is not here', 1;
    my $migrations = scratch() . '/rails';
    mkdir $migrations or die "cannot make $migrations: $!\n";
    spew("$migrations/1_add_item.rb", <<'RUBY');
class AddItem < ActiveRecord::Migration[ActiveRecord::Migration.current_version]
  def change
    create_table(:item) { |table| table.string :name, index: true }
  end
end
RUBY
    my $program = spew(scratch() . '/rails.rb', <<'RUBY');
require 'active_record'
require 'pg'
ActiveRecord::Base.establish_connection(
  adapter: 'postgresql', host: ENV['PGHOST'], port: ENV['PGPORT'], username: ENV['PGUSER'],
  database: ENV['PGDATABASE'])
context = ActiveRecord::MigrationContext
arguments = context.instance_method(:initialize).arity == 2 ? [ActiveRecord::SchemaMigration] : []
context.new(ARGV[0], *arguments).migrate
RUBY
    stopped_at_gate('Rails', 'Rails: schema migration', 'ruby', $program, $migrations);
}

# A tool for Node, which runs in a folder that has the modules.
my $folders = 0;
sub node_tool ($tool) {
    my $folder = scratch() . '/tool.' . ++$folders;
    mkdir $folder or die "cannot make $folder: $!\n";
    symlink node_modules("$FindBin::Bin/node/package.json"), "$folder/node_modules"
        or die "cannot link the modules: $!\n";
    spew("$folder/package.json", '{ "type": "module" }');
    spew("$folder/keys.mjs", slurp("$FindBin::Bin/node/keys.mjs"));
    return ('node', "$folder/keys.mjs", $tool, $folder);
}

my %NODE_TOOLS = (
    'kysely' => 'Kysely: migration lock',
    'lucid' => 'AdonisJS Lucid: migrations',
    'slonik' => 'slonik: migration (migration)',
    'graphile-migrate' => 'graphile-migrate: migration lock',
    'node-pg-migrate' => 'node-pg-migrate: migration lock',
    'pg-boss' => 'pg-boss: create and migrate (pgboss)',
);
my $has_node_tools =
    system('node', '-e', 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)') == 0
    && node_modules("$FindBin::Bin/node/package.json") ne '';

SKIP: {
    skip 'there is no npm, or Node is too old for these tools', 1 unless $has_node_tools;
    stopped_at_gate((split /:/, $NODE_TOOLS{$_})[0], $NODE_TOOLS{$_}, node_tool($_))
        for sort keys %NODE_TOOLS;
}

# ---- pg-boss at work -----------------------------------------------------------------------------

# Each statement of its own on its tables notes the locks of its transaction.
SKIP: {
    skip 'there is no npm, or Node is too old for pg-boss', 1 unless $has_node_tools;
    new_database();
    launch(node_tool('pg-boss'))->ends(0, '', 'pg-boss has made its schema');
    $session->run('CREATE TABLE seen (known_as text)', <<'SQL', <<'SQL');
        CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen SELECT known_as::text FROM advisory.locks
                WHERE pid = pg_backend_pid();
            RETURN NULL;
        END $$
SQL
        DO $$
        DECLARE
            of_boss regclass;
        BEGIN
            FOR of_boss IN SELECT oid FROM pg_class
                WHERE relnamespace = 'pgboss'::regnamespace AND relkind IN ('r', 'p')
            LOOP
                EXECUTE format('CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON %s
                                FOR EACH STATEMENT EXECUTE FUNCTION see()', of_boss);
            END LOOP;
        END $$
SQL
    launch(node_tool('pg-boss at work'))->ends(0, '', 'pg-boss works');
    is_deeply(
        [ map { $_->[0] } @{ $session->rows('SELECT DISTINCT known_as FROM seen ORDER BY 1') } ],
        [ map { qq({"pg-boss: $_ (pgboss)"}) } 'create a queue', 'delete a queue',
            'dependencies of old jobs', 'history of statistics', 'jobs that took too long',
            'jobs without a sign of life', 'old jobs', 'statistics of queues' ],
        'pg-boss: each of its locks is known');
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
