#!/usr/bin/env perl
# Text that others read cannot forge lines: control characters, line separators and what changes the
# direction of text are replaced in errors, with DETAIL, HINT and CONTEXT, in warnings and notices,
# in the server's log, and in the columns of views. (activity.t has it for activity and
# wait_tree().)
use AdvisoryTest;

create_database();
my $admin = session(application => 'admin');
my $odd_role = "advisory\x{2028}HINT:  all is well $$";
$admin->run(qq(CREATE ROLE "$odd_role" LOGIN SUPERUSER));
my ($holder, $caller) =
    (session(role => $odd_role, application => 'holder'), session(application => 'caller'));

# Namespace, name and identifier: a line feed, an escape sequence, C1's next line and its last
# control, a line separator and an override.
my ($NS, $NAME) = ("E'n\\ns'", "E'a\\x1b[31m\\u0085\\u009F\\u2028\\u202Eb'");
my $SHOWN = 'n?s/a?[31m????b';
my $GID   = "E'g\\nid\\u2028\\u202E$$'";
my $UNPRINTABLE =
    qr/[\x00-\x09\x0b-\x1f\x7f-\x9f\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]/;

# Checks that a text of the server is as expected, has at most this many lines, and has no
# unprintable characters.
sub shows ($text, $expected, $what, $lines = 1) {
    $text //= '';
    $text =~ s/\n\z//;
    like($text, $expected, $what);
    unlike($text, $UNPRINTABLE, '… with nothing that is not printable');
    is(scalar(split /\n/, $text), $lines, '… in as many lines as there are to be');
    return;
}

$holder->run("SELECT advisory.lock($NS, $NAME)");
{
    my $error = $caller->fails("SELECT advisory.lock($NS, $NAME, '0')", '55P03',
        'a lock that is taken');
    my @text = split /^(?=(?:DETAIL|HINT|CONTEXT): )/m, $error->{message};
    shows($text[0], qr/"\Q$SHOWN\E" without waiting/, 'the message has its name');
    shows($error->{detail}, qr/of role "advisory\?HINT:  all is well $$"/,
        'the detail has the role');
    my $key = $admin->value("SELECT advisory.key($NS, $NAME)");
    shows($error->{hint}, qr/terminate_holder_key\($key, /,
        'the hint does without the name');
    $admin->shows("SELECT count(*) FROM advisory.holders_key($key)", 1, 'and works');
    my $skipped = $caller->query("CALL advisory.run($NS, $NAME, 'SELECT 1')");
    like(join("\n", @{ $skipped->{warnings} }), qr/advisory lock "\Q$SHOWN\E" is taken/,
        'the notice of run()');
    unlike(join("\n", @{ $skipped->{warnings} }), $UNPRINTABLE, '… is printable');
    my $warning = $caller->query("SELECT advisory.unlock($NS, $NAME)");
    shows((split /^(?=(?:DETAIL|HINT):)/m, $warning->{warnings}[0])[0],
        qr/ExclusiveLock on "\Q$SHOWN\E"/, 'the warning of unlock()');
    $warning = $caller->query("SELECT advisory.try_lock_key($key, '0', E'c\\nd')");
    shows((split /^(?=(?:DETAIL|HINT):)/m, $warning->{warnings}[0])[0],
        qr/"c\?d" also has another name/, 'the warning of a label');
    unlike($warning->{warnings}[0], $UNPRINTABLE, '… and what it says of the other name');
    my $cancelled = $caller->query("SET statement_timeout = '20ms'");
    $cancelled = $caller->query("SELECT advisory.lock($NS, $NAME)");
    # From 19 on the server has a line of its own in it.
    my @context = grep { /advisory lock "/ } split /\n/, $cancelled->{context};
    shows($context[0], qr/waiting for advisory lock "\Q$SHOWN\E" in exclusive mode$/,
        'the context of a cancelled wait');
    $caller->run('RESET statement_timeout');
}

{
    my $prepares = session();
    $prepares->run(
        'BEGIN', "SELECT advisory.xact_lock('printable', 'prepared'),
            advisory.xact_lock('printable', 'other')", "PREPARE TRANSACTION $GID");
    my $error = $caller->query("SELECT advisory.lock('printable', 'prepared', '0')");
    shows($error->{detail}, qr/^Prepared transaction "g\?id\?\?$$" \(transaction \d+\) holds it/,
        "the detail has a prepared transaction's identifier");
    shows($error->{hint}, qr/pg_prepared_xacts/, 'the hint does without it');
    # The holder itself waits for such a transaction.
    waits($admin, $holder, "SELECT advisory.lock('printable', 'other')");
    $error = $caller->query("SELECT advisory.lock($NS, $NAME, '0')");
    shows($error->{detail},
        qr/^Process \d+ of role .* holds it in exclusive mode; it is waiting for a lock since /,
        'the detail of a holder that waits');
    shows($error->{hint}, qr/wait_tree/, 'its hint');
    shows($admin->value('SELECT line FROM advisory.wait_tree() AS line LIMIT 1'),
        qr/^prepared transaction "g\?id\?\?$$" of /, 'and what that shows');
    $admin->run("ROLLBACK PREPARED $GID");
    $holder->finish;
    $prepares->run('BEGIN', "SELECT advisory.xact_lock('printable', 'prepared')",
        "PREPARE TRANSACTION 'it''s $$'");
    like($caller->query("SELECT advisory.lock('printable', 'prepared', '0')")->{hint},
        qr/COMMIT PREPARED 'it''s $$' or ROLLBACK PREPARED 'it''s $$'/,
        'other identifiers stand in the hint');
    $admin->run("ROLLBACK PREPARED 'it''s $$'");
}

{
    $holder->run("SELECT advisory.acquire($NS, $NAME, 1)");
    $admin->run('SET advisory_ext.leak_after = 0');
    my $shown_role = "advisory?HINT:  all is well $$";
    for my $of (['locks', "kind = 'lock'"], ['leaks', "kind = 'lock'"], ['semaphores', 'true'],
            ['stats', 'true']) {
        my ($view, $where) = @$of;
        is($admin->value("SELECT concat_ws('/', namespace, name) FROM advisory.$view
                WHERE $where AND namespace LIKE 'n%' LIMIT 1"), $SHOWN,
                    "namespace and name in $view");
    }
    for my $rows ("locks WHERE kind = 'lock' AND", "leaks WHERE kind = 'lock' AND",
            "holders($NS, $NAME) WHERE kind = 'lock' AND", 'pressure_by_backend WHERE') {
        is($admin->value("SELECT role FROM advisory.$rows pid = ?", $holder->pid), $shown_role,
            "the role in $rows");
    }
    $admin->shows("SELECT query FROM advisory.locks WHERE kind = 'semaphore'",
        "SELECT advisory.acquire($NS, $NAME, 1)", 'a query is shown as it was sent');
    $holder->run("SELECT advisory.release($NS, $NAME)");
}

{
    # The log has no line that does not begin as the server's lines do.
    my $logs = session();
    $logs->run('SET advisory_ext.log_wait = 0', 'SET advisory_ext.log_hold = 0');
    my $log = logged(sub {
        $logs->query("SELECT advisory.try_lock($NS, $NAME, '20ms')");
        $logs->run("SELECT advisory.lock(E'h\\n\\u2028', E'\\u009b')",
            "SELECT advisory.unlock(E'h\\n\\u2028', E'\\u009b')",
            "SELECT advisory.lock_key(1, label => E'l\\n')", 'SELECT advisory.unlock_key(1)');
    });
    utf8::decode($log);
    my $pid = $logs->pid;
    my @lines = grep { /\[$pid\]/ && /\bsession (?:waited|held)\b/ } split /\n/, $log;
    is(scalar @lines, 3, 'a line for a wait, and for each hold');
    shows($lines[0],
        qr/session waited for advisory lock "\Q$SHOWN\E" in exclusive mode .* and timed out$/,
        'the log of a wait');
    shows($lines[1], qr{session held advisory lock "h\?\?/\?" in exclusive mode},
        'the log of a hold');
    shows($lines[2], qr{session held advisory lock "l\?" in exclusive mode}, 'of a label');
}

done_testing();
