#!/usr/bin/env perl
# examples/shell/with_lock: a command under a lock, as flock(1) runs it. The test starts it as cron
# does, without a terminal.
use FindBin;
use AdvisoryTest;
use Encode qw(decode_utf8);
use POSIX qw(setsid dup2);
use Time::HiRes qw(sleep);

my $WITH_LOCK = "$FindBin::Bin/../../examples/shell/with_lock";

my $database = create_database();
my ($look, $holder) = (session(), session(application => 'holder'));

# begin({NAME => VALUE}, PROGRAM, ARGUMENT…): a program whose input we write, and whose output and
# messages we read.
sub begin ($environment, @arguments) {
    my %program;
    pipe my $in_of, $program{in} or die "pipe: $!\n";
    pipe $program{out}, my $out_of or die "pipe: $!\n";
    pipe $program{messages}, my $messages_of or die "pipe: $!\n";
    $program{in}->autoflush(1);
    $program{pid} = fork // die "fork: $!\n";
    if (!$program{pid}) {
        setsid();
        # A shell cannot trap a signal that is ignored when it starts, as nohup and background jobs
        # leave signals.
        local @SIG{qw(HUP INT QUIT TERM USR1 USR2 PIPE ALRM)} = ('DEFAULT') x 8;
        close $_ for @program{qw(in out messages)};
        dup2(fileno $in_of, 0);
        dup2(fileno $out_of, 1);
        dup2(fileno $messages_of, 2);
        %ENV = (%ENV, PGDATABASE => $database, %$environment);
        exec @arguments or POSIX::_exit(99);
    }
    return \%program;
}

sub start ($environment, @arguments) { return begin($environment, $WITH_LOCK, @arguments) }

# Its exit code, when its input has ended, its output and its messages.
sub end ($program) {
    close $program->{in} if $program->{in};
    my ($out, $messages) = do {
        local $/ = undef;
        map { scalar readline $program->{$_} } qw(out messages)
    };
    waitpid $program->{pid}, 0;
    return { code => $? >> 8, signal => $? & 127, out => $out // '', messages => $messages // '' };
}

sub done { return end(start({}, @_)) }

sub is_locked { return $look->value('SELECT advisory.is_locked(?, ?::text)', @_) }

# A command that prints a line, waits for one, prints that, and ends with 7.
my @COMMAND = ('--', 'sh', '-c', 'echo begun; read line; echo "$line"; exit 7');

sub line_of ($program) { return scalar readline $program->{out} }

# ---- The command's exit code, input and output ---------------------------------------------------

{
    my $program = start({}, 'backup', 'nightly', @COMMAND);
    is(line_of($program), "begun\n", 'the command runs');
    is(is_locked('backup', 'nightly'), 1, 'with the lock');
    $look->shows('SELECT application_name FROM advisory.holders(?, ?::text)', 'with_lock sh',
        'by a session that is named after the command', 'backup',
        'nightly');
    $look->shows('SELECT count(*) FROM pg_stat_activity
            WHERE application_name = ? AND backend_xmin IS NOT NULL', 0, 'and has no snapshot',
            'with_lock sh');
    print { $program->{in} } "a line\n";
    my $end = end($program);
    is(is_locked('backup', 'nightly'), 0, 'the lock is free when with_lock has ended');
    is_deeply($end, { code => 7, signal => 0, out => "a line\n", messages => '' },
        'the exit code, the input and the output are those of the command');
}
is(done('a', 'b', '--', 'true')->{code}, 0, 'a command that succeeds');
is(done('a', 'b', '--', 'sh', '-c', 'kill -KILL $$')->{code}, 128 + 9, 'one that a signal ends');
is(done('a', 'b', '--', '/nowhere')->{code}, 127, 'one that is not there');
is(done('a', 'b', '--', 'perl', '-e', 'print scalar @ARGV, join "|", @ARGV', 'a b', '', '*',
    '--')->{out}, '4a b||*|--', 'arguments stay as they are');
my @files = ('sh', '-c', 'ls /proc/$$/fd');
my ($has, $had) = map { scalar split /\n/, $_->{out} } done('a', 'b', '--', @files),
    end(begin({}, @files));
is($has, $had + 1, 'the command has one pipe more');
# psql's input would let a command that has given up rights get them back.
is(done('a', 'b', '--', 'bash', '-c', 'trap "" PIPE; for pipe in $(ls /proc/$$/fd); do
        [ $pipe -gt 2 ] && { echo "\\! echo escaped" >&$pipe; } 2>/dev/null; done; sleep 1; true')
    ->{out}, '', '... which is not the input of psql');
is(done('a', 'b', '--', 'sh', '-c', 'echo "${PGAPPNAME-none}"')->{out}, "none\n",
    'nor its environment');

# ---- Busy ----------------------------------------------------------------------------------------

$holder->run(q(SELECT advisory.lock('backup', 'nightly')));
{
    my $end = done('backup', 'nightly', '0', @COMMAND);
    is($end->{code}, 75, 'somebody else has the lock: 75');
    is($end->{out}, '', 'and the command does not run');
    like($end->{messages},
        qr{could\ not\ obtain\ advisory\ lock\ "backup/nightly"\ without\ waiting\n
            DETAIL:\ .*\ application\ "holder"}x,
        'the message names the holder');
    is_deeply(done('-q', 'backup', 'nightly', '0', @COMMAND),
        { code => 75, signal => 0, out => '', messages => '' }, '-q: no message');
    is(done('-E', '9', '-q', 'backup', 'nightly', '0', @COMMAND)->{code}, 9,
        '-E: another exit code');
    is(done('-q', 'backup', 'nightly', '200ms', @COMMAND)->{code}, 75, 'after the timeout, too');
}
{
    my $program = start({ PGOPTIONS => '-c statement_timeout=100ms -c lock_timeout=100ms' },
        'backup', 'nightly', @COMMAND);
    $look->wait_until('it waits',
        'SELECT count(*) FROM advisory.holders(?, ?::text) WHERE NOT granted',
            'backup', 'nightly');
    $look->shows('SELECT pg_sleep(0.3)::text || count(*) FROM advisory.holders(?, ?::text)
            WHERE NOT granted', 1, 'without a timeout it waits on', 'backup', 'nightly');
    $holder->run(q(SELECT advisory.unlock('backup', 'nightly')));
    is(line_of($program), "begun\n", 'until the lock is free');
    is(end($program)->{code}, 7, 'and runs the command');
}
for my $setting (
    (map { "default_transaction_isolation=$_" } 'repeatable\\ read', 'serializable'),
    (map { "$_=200ms" } qw(idle_session_timeout advisory_ext.idle_holder_timeout),
        $look->value('SELECT name FROM pg_settings WHERE name = ?', 'transaction_timeout') // ())
) {
    $holder->run(q(SELECT advisory.lock('backup', 'nightly')));
    my $program = start(
        { PGOPTIONS => "-c $setting" }, 'backup', 'nightly', '--', 'sh', '-c', 'sleep 0.5; exit 7');
    $look->value('SELECT pg_sleep(0.4)::text');
    $holder->run(q(SELECT advisory.unlock('backup', 'nightly')));
    my $end = end($program);
    is_deeply([ @$end{qw(code messages)} ], [ 7, '' ], "a role or database with $setting");
}

# ---- Names ---------------------------------------------------------------------------------------

for my $name (q(o'brien), q("x"), q(a\\b), q(:'name'),
        q('; SELECT pg_terminate_backend(pg_backend_pid()); --), '-v', 'größe ☃', '$(id)', ' ') {
    my $program = start({}, "ns $name", $name, @COMMAND);
    is(line_of($program), "begun\n", "a name like $name");
    is(is_locked(decode_utf8("ns $name"), decode_utf8($name)), 1, 'is that name');
    end($program);
}
is(done('a', 'b', q(soon), @COMMAND)->{code}, 69, 'a timeout that is none: 69');

# psql's messages quote what they are about, and must not pass for an answer.
{
    my $answer = "x\nwith_lock 00000\n";
    my $end = end(start({ PGDATABASE => $answer }, 'a', 'b', @COMMAND));
    is_deeply([ @$end{qw(code out)} ], [ 69, '' ], 'a database that looks like one');
    $end = done('a', 'b', "1$answer", @COMMAND);
    is_deeply([ @$end{qw(code out)} ], [ 64, '' ], 'a timeout that looks like one');
}

# ---- The server ----------------------------------------------------------------------------------

{
    my $end = end(start({ PGPORT => 1 }, 'a', 'b', @COMMAND));
    is($end->{code}, 69, 'there is no server: 69');
    like($end->{messages}, qr/psql: error: connection/, 'with the message of psql');
    is($end->{out}, '', 'and the command does not run');
}
is(done('', 'b', @COMMAND)->{code}, 69, 'the server refuses the name: 69');
for my $wrong ([], ['a'], ['a', 'b'], ['a', 'b', '--'], ['a', '--', 'true'],
    ['a', 'b', '0', 'c', '--', 'true'], ['-x', 'a', 'b', '--', 'true'],
    map { [ '-E', $_, 'a', 'b', '--', 'true' ] } '', 'x', '-1', '256', '99999999999999999999') {
    is(done(@$wrong)->{code}, 64, "wrong usage: @$wrong");
}
for my $wrong ('0', '0.0', '-1', '5s', '0,5', '') {
    is(end(start({ WITH_LOCK_CHECK_S => $wrong }, 'a', 'b', '--', 'true'))->{code},
        $wrong eq '' ? 0 : 64, "WITH_LOCK_CHECK_S='$wrong'");
}
like(done('--help')->{out}, qr/^Usage: with_lock/, '--help');

sub end_holder {
    $look->value('SELECT pg_terminate_backend(pid, 10000) FROM advisory.holders(?, ?::text)
            WHERE granted', 'backup', 'nightly');
    return;
}
{
    my $program = start({ WITH_LOCK_CHECK_S => '0.2' }, 'backup', 'nightly', '--', 'sh', '-c',
        'trap "echo ended; exit 3" TERM; echo begun; while :; do sleep 0.1; done');
    line_of($program);
    end_holder();
    my $end = end($program);
    is($end->{code}, 74, 'the connection breaks while the command runs: 74');
    is($end->{out}, "ended\n", 'the command gets SIGTERM');
    like($end->{messages}, qr{^with_lock: lock backup/nightly is lost, ending the command$}m,
        'and there is a message');
}
{
    my $program = start({ WITH_LOCK_CHECK_S => '100' }, 'backup', 'nightly', @COMMAND);
    line_of($program);
    end_holder();
    my $end = end($program);
    is($end->{code}, 74, 'it breaks, and the command ends before that is noticed: 74');
    like($end->{messages}, qr{^with_lock: lock backup/nightly was lost before the command ended$}m,
        'with a message');
}

# ---- Signals -------------------------------------------------------------------------------------

for my $signal (qw(TERM HUP INT QUIT USR1)) {
    my $program = start(
        { WITH_LOCK_CHECK_S => '0.1' }, 'backup', 'nightly', '--', 'perl', '-e',
        q($| = 1; $SIG{$ARGV[0]} = sub { print "got\n"; exit 5 }; print "begun\n"; sleep 60),
        $signal);
    line_of($program);
    kill $signal, $program->{pid};
    my $end = end($program);
    is_deeply([ @$end{qw(code out)} ], [ 5, "got\n" ],
        "SIG$signal reaches the command, whose exit code counts");
    is(is_locked('backup', 'nightly'), 0, 'and the lock is free');
}
# bash can lose the end of a child if a signal comes at the same time.
for my $round (1 .. 5) {
    my $program = start({}, 'backup', 'nightly', '--', 'perl', '-e',
        q($SIG{USR1} = 'IGNORE'; $| = 1; print "begun\n"; select undef, undef, undef, 0.1; exit 4));
    line_of($program);
    my $until = time + 20;
    my $ended = 0;
    until ($ended || time > $until) {
        kill 'USR1', $program->{pid};
        sleep 0.002;
        $ended = waitpid $program->{pid}, POSIX::WNOHANG;
    }
    is($ended ? $? >> 8 : 'none', 4, 'a command that ends under signals: its exit code');
    kill 'KILL', $program->{pid} unless $ended;
}
for my $signal (2, 3) {
    my $program =
        start({}, 'backup', 'nightly', '--', 'sh', '-c', 'ulimit -c 0; echo begun; exec sleep 60');
    line_of($program);
    kill $signal, $program->{pid};
    is(end($program)->{code}, 128 + $signal,
        "signal $signal ends a command that does not handle it");
}
{
    my $program = start({}, 'backup', 'nightly', '--', 'sh', '-c', 'echo $$; exec sleep 60');
    my ($command) = line_of($program) =~ /(\d+)/;
    kill 'KILL', $program->{pid};
    waitpid $program->{pid}, 0;
    sleep 0.5;
    ok(is_locked('backup', 'nightly'), 'when with_lock is killed, its command has the lock');
    kill 'TERM', $command;
    wait_until('the lock is free', sub { !is_locked('backup', 'nightly') }, 10);
    pass('... until it ends');
}
{
    my $program = start({ WITH_LOCK_CHECK_S => '0.2' }, 'backup', 'nightly', '--', 'sh', '-c',
        'echo $$ $PPID; exec sleep 60');
    my ($command, $runner) = line_of($program) =~ /(\d+)/g;
    kill 'KILL', $runner;
    waitpid $program->{pid}, 0;
    is($? >> 8, 137, 'when who waits for the command is killed, with_lock says so');
    ok(is_locked('backup', 'nightly'), '... and the command has the lock');
    kill 'TERM', $command;
    wait_until('the lock is free', sub { !is_locked('backup', 'nightly') }, 10);
    pass('... until it ends');
}
{
    my $end = done('backup', 'nightly', '--', 'sh', '-c', 'sleep 60 >/dev/null 2>&1 & echo $!');
    is($end->{code}, 0, 'a command that leaves a process running');
    $look->wait_until('the connection is closed', q(SELECT count(*) = 0 FROM pg_stat_activity
            WHERE application_name LIKE 'with_lock %'));
    ok(!is_locked('backup', 'nightly'), '... does not leave the lock');
    kill 'TERM', $end->{out};
}
$holder->run(q(SELECT advisory.lock('backup', 'nightly')));
for my $signal (15, 9) {
    my $program = start({}, 'backup', 'nightly', @COMMAND);
    $look->wait_until('it waits',
        'SELECT count(*) FROM advisory.holders(?, ?::text) WHERE NOT granted',
            'backup', 'nightly');
    kill $signal, $program->{pid};
    my $end = end($program);
    is($end->{code} || 128 + $end->{signal}, 128 + $signal, "signal $signal ends its wait");
    wait_until('nobody waits', sub {
        !$look->value('SELECT count(*) FROM advisory.holders(?, ?::text) WHERE NOT granted',
            'backup', 'nightly')
    }, 10);
    pass('and leaves no waiter behind');
}
done_testing();
