# Common code of the script tests: a new database, sessions whose queries run while the test goes
# on, and separate servers for tests that would harm the shared one. A test that uses it also has
# strict, warnings, signatures and the functions of Test::More.
package AdvisoryTest;

use strict;
use warnings;
use feature ();
use parent 'Exporter';
use DBI;
use File::Basename qw(basename dirname);
use File::Spec;
use IPC::Open2;
use List::Util qw(max sum0);
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(create_database create_portable_database load_portable session wait_until waits
    until_gone leave own_server set_standby_names median program logged processor_time stalled
    undisturbed_time);

sub import {
    my ($class, @names) = @_;
    strict->import;
    warnings->import;
    feature->import('signatures');
    warnings->unimport('experimental::signatures');
    Test::More->export_to_level(1) if caller eq 'main';
    return $class->export_to_level(1, $class, @names);
}

my @servers;

# A test that hangs must fail. On a busy machine a test takes many times as long as else.
alarm($ENV{TEST_SECONDS} // 280);

# Creates a database with the extension (unless extension => 0), to which session() connects from
# then on. With faults => 1 its functions are those of the library that make FAULTS=1 builds.
# Returns its name.
sub create_database {
    my %how = (extension => 1, @_);
    my $name = $how{name} // join '_', 'advisory', basename($0) =~ /^(\w+)/, $$;
    my $server = AdvisoryTest::Session->new(database => $ENV{PGDATABASE});
    $server->run(qq{CREATE DATABASE "$name"});
    $ENV{ADVISORY_TEST_DATABASE} = $name unless $how{aside};
    session(database => $name)->run('CREATE EXTENSION advisory_ext') if $how{extension};
    # A session loads a library when it first calls one of its functions.
    session(database => $name)->run(q(UPDATE pg_proc SET probin = probin || '_faults'
        WHERE probin = '$libdir/advisory_ext')) if $how{faults};
    return $name;
}

# The same with the portable edition, which a role that only owns the database loads. Returns a
# session of this role.
sub create_portable_database {
    my (%how) = @_;
    my $server = AdvisoryTest::Session->new(database => $ENV{PGDATABASE});
    $server->run('CREATE ROLE portable_owner LOGIN')
        unless $server->value(q(SELECT count(*) FROM pg_roles WHERE rolname = 'portable_owner'));
    my $name = create_database(%how, extension => 0);
    $server->run(qq{ALTER DATABASE "$name" OWNER TO portable_owner});
    my $said = load_portable($name);
    die "portable/advisory.sql: $said\n" if $said ne '';
    return session(database => $name, role => 'portable_owner');
}

# Loads portable/advisory.sql into a database as a role, also on a server of one's own. Returns
# psql's warnings and errors.
sub load_portable {
    my ($database, $role, $server) = @_;
    $role //= 'portable_owner';
    my $file = dirname($INC{'AdvisoryTest.pm'}) . '/../../../portable/advisory.sql';
    local %ENV = (%ENV, PGOPTIONS => '-c client_min_messages=warning');
    @ENV{qw(PGHOST PGPORT)} = @{$server}{qw(PGHOST PGPORT)} if $server;
    return scalar `psql -Xq -v ON_ERROR_STOP=1 -o /dev/null -U '$role' -f '$file' '$database' 2>&1`;
}

# session(role => …, database => …, application => …, server => …): a connection.
sub session { return AdvisoryTest::Session->new(@_) }

# Waits until the code returns true; dies if it does not within this many seconds.
sub wait_until {
    my ($what, $code, $seconds) = @_;
    my $end = time + ($seconds // 60);
    until ($code->()) {
        die "gave up waiting until $what\n" if time > $end;
        sleep 0.005;
    }
    return 1;
}

# Sets synchronous_standby_names, by the session of a superuser, and waits until the server heeds
# it. Commits wait for a standby once the checkpointer has heard of it, too: then it does what we
# ask.
sub set_standby_names {
    my ($session, $names) = @_;
    $session->run("ALTER SYSTEM SET synchronous_standby_names = '$names'",
        'SELECT pg_reload_conf()');
    wait_until('the setting is known',
        sub { $session->value('SHOW synchronous_standby_names') eq $names });
    return $session->run('CHECKPOINT');
}

# Waits until the observer sees that the other session is in a lock's queue, with its timers set; or
# until that session has finished its statement, because on a busy machine the wait can end before
# the observer sees it. With a statement, the session is sent that first.
sub waits {
    my ($observer, $waiter, @statement) = @_;
    $waiter->start(@statement) if @statement;
    return wait_until('session waits for a lock', sub {
        $observer->value(
            'SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted AND waitstart IS NOT NULL',
            $waiter->pid) || $waiter->is_done;
    });
}

# Waits until the observer no longer sees the session, and its process has ended, which writes the
# last lines into the log.
sub until_gone {
    my ($observer, $session) = @_;
    my $pid = $session->pid;
    return wait_until(
        "process $pid is gone", sub {
            !$observer->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $pid)
                && !-e "/proc/$pid"
        });
}

# Disconnects sessions, and waits until they are gone.
sub leave {
    my ($observer, @sessions) = @_;
    for my $session (@sessions) {
        $session->disconnect;
        until_gone($observer, $session);
    }
    return;
}

# Runs the code, and returns the lines that the shared server writes into its log meanwhile.
sub logged {
    my ($code) = @_;
    my $from = -s $ENV{ADVISORY_EXT_LOG};
    $code->();
    open my $log, '<', $ENV{ADVISORY_EXT_LOG} or die "cannot read the server's log: $!\n";
    seek $log, $from, 0;
    local $/ = undef;
    return <$log> // '';
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return $sorted[@sorted / 2];
}

# ---- Times that a busy machine does not change ---------------------------------------------------

# How long a process has run, and how long it could have run but waited for a processor, both in
# seconds. Two zeros for a process that has ended, and where the kernel does not tell.
sub scheduled {
    my ($pid) = @_;
    open my $stat, '<', "/proc/$pid/schedstat" or return (0, 0);
    return map { $_ / 1e9 } (split ' ', <$stat> // '0 0')[0, 1];
}

# The processor time that the code takes of the session, in seconds; the clock's time where the
# kernel does not tell.
sub processor_time {
    my ($session, $code) = @_;
    my ($from, ($before)) = (time, scheduled($session->pid));
    $code->();
    return -r '/proc/self/schedstat' ? (scheduled($session->pid))[0] - $before : time - $from;
}

# How long this process and those of the sessions have waited for a processor so far, in seconds.
sub stalled {
    my (@sessions) = @_;
    return sum0(map { (scheduled($_))[1] } $$, map { $_->pid } @sessions);
}

# How long the code takes, in seconds, if it does not have to wait for a processor: name all
# sessions that it waits for.
sub undisturbed_time {
    my ($code, @sessions) = @_;
    my ($from, $before) = (time, stalled(@sessions));
    $code->();
    # (A session may have ended meanwhile.)
    return time - $from - max(0, stalled(@sessions) - $before);
}

# ---- Servers -------------------------------------------------------------------------------------

# The path of a program, or nothing.
sub program {
    my ($name) = @_;
    for my $dir (File::Spec->path) {
        return "$dir/$name" if -x "$dir/$name";
    }
    return;
}

# own_server('name=value', …): a server with these settings, which lives as long as the returned
# object.
sub own_server { return AdvisoryTest::Server->new(@_) }

END {
    my $status = $?;
    $_->stop for grep { defined } @servers;
    $? = $status;
}

# ---- A session -----------------------------------------------------------------------------------

package AdvisoryTest::Session;

use DBD::Pg qw(:async);
use Test::More;
use Time::HiRes qw(sleep time);

sub new {
    my ($class, %how) = @_;
    my $server   = $how{server};
    my $database = $how{database}
        // ($server ? 'postgres' : $ENV{ADVISORY_TEST_DATABASE} // $ENV{PGDATABASE});
    my $source   = "dbi:Pg:dbname='$database'";
    $source .= ";host='$server->{PGHOST}';port=$server->{PGPORT}" if $server;
    $source .= ";application_name='$how{application}'" if defined $how{application};
    my $dbh = DBI->connect($source, $how{role} // ($server ? $server->{PGUSER} : $ENV{PGUSER}), '',
        { RaiseError => 0, PrintError => 0, PrintWarn => 1, AutoCommit => 1, pg_enable_utf8 => 1 })
        or die "cannot connect: $DBI::errstr\n";
    my $self = bless { dbh => $dbh, pid => $dbh->{pg_pid} }, $class;
    return $self;
}

sub pid { return $_[0]{pid} }

sub dbh { return $_[0]{dbh} }

# Runs a statement to its end. Returns the same as finish().
sub query {
    my ($self, $sql, @values) = @_;
    $self->start($sql, @values);
    return $self->finish;
}

# The same for statements that must succeed: return their result, its rows, its first value, its
# first column, its warnings as one text, or the session.
sub successful {
    my ($self, $sql, @values) = @_;
    my $result = $self->query($sql, @values);
    die "$result->{message}\nin: $sql\n" if $result->{state};
    return $result;
}

sub rows { return successful(@_)->{rows} }

sub value {
    my ($self, $sql, @values) = @_;
    my $rows = $self->rows($sql, @values);
    return @$rows ? $rows->[0][0] : undef;
}

sub column { return map { $_->[0] } @{ rows(@_) } }

sub warned { return join '', @{ successful(@_)->{warnings} } }

sub run {
    my ($self, @statements) = @_;
    $self->rows($_) for @statements;
    return $self;
}

# Tests what a statement returns. A row is written as its columns with | between them, and NULL is
# written out; several rows, or none, are an array.
sub shows {
    my ($self, $sql, $expected, $name, @values) = @_;
    my @rows = map { join '|', map { $_ // 'NULL' } @$_ } @{ $self->rows($sql, @values) };
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply(\@rows, ref $expected ? $expected : [$expected], $name);
}

# Tests that a statement fails with this SQLSTATE, or that it succeeds; and how the statement that
# was started ends (undef: it succeeds). They return the same as finish().
sub fails {
    my ($self, $sql, $state, $name, @values) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $self->start($sql, @values)->ends($state, $name);
}

sub succeeds {
    my ($self, $sql, $name, @values) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $self->start($sql, @values)->ends(undef, $name);
}

sub ends {
    my ($self, $state, $name) = @_;
    my $result = $self->finish;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is($result->{state}, $state, $name) or diag explain $result;
    return $result;
}

# Tests the value that the statement that was started returns.
sub returns {
    my ($self, $value, $name) = @_;
    my $result = $self->finish;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is($result->{value}, $value, $name) || diag explain $result;
}

# Waits until the value of a statement is true.
sub wait_until {
    my ($self, $what, $sql, @values) = @_;
    return AdvisoryTest::wait_until($what, sub { $self->value($sql, @values) });
}

# Sends a statement and returns immediately. Uses the simple protocol without values, and the
# extended one with values.
sub start {
    my ($self, $sql, @values) = @_;
    my $direct = @values ? 0 : 1;
    my $sth = $self->{dbh}->prepare(
        $sql, { pg_async => PG_ASYNC, pg_direct => $direct, pg_server_prepare => !$direct });
    $self->{sth} = $sth;
    $self->{warnings} = [];
    local $SIG{__WARN__} = sub { push @{ $self->{warnings} }, $_[0] };
    $self->{failed} = !defined $sth->execute(@values);
    return $self;
}

sub is_done {
    my ($self) = @_;
    return $self->{failed} || $self->{dbh}->pg_ready;
}

# Waits for the end of the statement that was started, but not longer than this many seconds.
# Returns {rows, value} after success, {state, message, detail, hint, context, schema, constraint}
# after an error, and {warnings} in both cases.
sub finish {
    my ($self, $seconds) = @_;
    my ($dbh, $sth) = @{$self}{qw(dbh sth)};
    my $warnings = $self->{warnings};
    local $SIG{__WARN__} = sub { push @$warnings, $_[0] };
    my $end = time + ($seconds // 120);
    until ($self->is_done) {
        die "gave up waiting for a statement of $self->{pid}\n" if time > $end;
        vec(my $socket = '', $dbh->{pg_socket}, 1) = 1;
        select($socket, undef, undef, 0.2);
    }
    my $affected = $self->{failed} ? undef : $dbh->pg_result;
    delete $self->{sth};
    # DBD::Pg (3.21) reports success for a canceled statement (57014).
    if (!defined $affected || $dbh->err || $dbh->state eq '57014') {
        my %error = (
            state => $dbh->state || 'XX000', message => $dbh->pg_error_field('message_primary')
                // $dbh->errstr // 'the connection is lost',
            warnings => $warnings);
        # (It spoils its argument.)
        $error{$_} = $dbh->pg_error_field("$_") for qw(detail hint context schema constraint);
        return \%error;
    }
    my $rows = $sth->{NUM_OF_FIELDS} ? $sth->fetchall_arrayref : [];
    return { rows => $rows, value => (@$rows ? $rows->[0][0] : undef), warnings => $warnings };
}

sub disconnect {
    my ($self) = @_;
    # DBD::Pg would wait for its end.
    $self->{dbh}->pg_cancel if $self->{sth} && !$self->{failed};
    delete $self->{sth};
    $self->{dbh}->disconnect;
    # Its end frees what it held. It does not end while it is stopped.
    my $end = time + 10;
    sleep 0.002 while !$self->{gone} && -e "/proc/$self->{pid}" && time < $end;
    $self->{gone} = 1;
    return;
}

# A test that has died may have left the process stopped.
sub DESTROY {
    my ($self) = @_;
    return if ${^GLOBAL_PHASE} eq 'DESTRUCT';
    kill CONT => $self->{pid} unless $self->{gone};
    return $self->disconnect;
}

# ---- A server ------------------------------------------------------------------------------------

package AdvisoryTest::Server;

use File::Basename qw(dirname);
use IPC::Open2;

# The tree whose extension the server has, if it is not this one.
our $tree;

# scripts/server.sh starts it, waits for the end of its input, and removes it.
sub new {
    my ($class, @settings) = @_;
    local $ENV{PG_CONFIG} = $ENV{PG_CONFIG} // "$ENV{PG_BINDIR}/pg_config";
    local $ENV{ADVISORY_EXT_STAGE} = $tree ? '' : $ENV{ADVISORY_EXT_STAGE};
    my $script = ($tree // dirname($INC{'AdvisoryTest.pm'}) . '/../../..') . '/scripts/server.sh';
    my $self = bless { script => $script }, $class;
    $self->{pid} = open2(
        $self->{out}, $self->{in}, 'bash', $script, 'run', (map { ('--conf', $_) } @settings), '--',
        'sh', '-c', 'env; echo ready=; exec cat >/dev/null');
    my $out = $self->{out};
    while (my $line = <$out>) {
        my ($name, $value) = $line =~ /^(\w+)=(.*)$/ or next;
        last if $name eq 'ready';
        $self->{$name} = $value if $name =~ /^(PG|ADVISORY_EXT_)/;
    }
    die "the server did not start\n" unless $self->{PGHOST};
    push @servers, $self;
    return $self;
}

# pg_ctl on it, as in $server->ctl('restart', '-m', 'immediate').
sub ctl {
    my ($self, @arguments) = @_;
    local %ENV = (%ENV, map { $_ => $self->{$_} } grep { /^(PG|ADVISORY_EXT_)/ } keys %$self);
    return system('bash', $self->{script}, 'ctl', @arguments) == 0;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    close $self->{in};
    waitpid $pid, 0;
    return;
}

1;
