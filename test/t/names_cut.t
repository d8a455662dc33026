#!/usr/bin/env perl
# A namespace or name of more than 256 bytes is cut wherever it is shown, at a whole character, and
# says so by "..." at its end: whether all sessions know the name, or only the session that used it.
# (Errors' fields are never cut.)
use utf8;
use AdvisoryTest;
use Encode qw(decode);

# 300 bytes, and 301 of which 255 are whole characters.
my ($ns, $name) = ('n' x 300, 'x' . 'ü' x 150);
my ($NS, $NAME) = ('n' x 256 . '...', 'x' . 'ü' x 127 . '...');
my $SHOWN = qr{(?<!n)\Q$NS\E/\Q$NAME\E(?!\.)};

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);
create_database();
my $look = session(application => 'look');

# How the name is called in calls.
my $CALL = "'$ns', '$name'";
my $key = $look->value("SELECT advisory.key($CALL)");

# ---- All places, each with what it shows ---------------------------------------------------------
# A session that used the name looks, which may be the only one to know it.

sub places ($h, $w, $is_shared) {
    my %shown;
    my $rows = sub ($session, $sql) { return join "\n",
        map { join '/', map { $_ // '' } @$_ } @{ $session->rows($sql) } };
    my $text = sub ($result) { return join "\n", (map { $result->{$_} // () } qw(message detail hint
            context)), map { decode('UTF-8', $_) } @{ $result->{warnings} } };

    # The holder has the lock and all slots of the semaphore; the waiter waits for the lock.
    $h->run("SELECT advisory.lock($CALL), advisory.acquire($CALL, 2), advisory.acquire($CALL, 2)");
    waits($look, $w, "SELECT advisory.lock($CALL)");
    $shown{'locks'} = $rows->($h, qq(SELECT namespace, name FROM advisory.locks
        WHERE kind = 'lock' AND granted AND key = $key));
    $shown{'locks, a waiter'} = $rows->($h,
        qq(SELECT namespace, name FROM advisory.locks WHERE NOT granted AND key = $key));
    $shown{'locks, a slot'} = $rows->($h,
        qq(SELECT namespace, name FROM advisory.locks WHERE kind = 'semaphore' AND key = $key));
    $shown{'semaphores'} = $rows->($h, 'SELECT namespace, name FROM advisory.semaphores');
    $shown{'waits'} = $rows->($h, 'SELECT namespace, name FROM advisory.waits');
    $shown{'wait_tree()'} = $rows->($h, 'SELECT advisory.wait_tree()');
    $h->run(q(SET application_name = 'another'));
    $shown{'leaks'} = $rows->($h,
        q(SELECT namespace, name FROM advisory.leaks WHERE kind = 'lock'));
    $shown{'stats'} = $rows->($h, q(SELECT namespace, name FROM advisory.stats)) if $is_shared;

    # Messages about a lock by name, and by the key whose name is known.
    $shown{'a wait that is cancelled'} = do {
        $look->run('SELECT pg_cancel_backend(' . $w->pid . ')');
        $text->($w->finish)
    };
    $shown{'a failed wait'} = $text->($w->query("SELECT advisory.lock($CALL, '0')"));
    $shown{'a failed wait by key'} = $text->($w->query("SELECT advisory.lock_key($key, '0')"));
    $shown{'a failed wait for a slot'} = $text->(
        $w->query("SELECT advisory.acquire($CALL, 2, '0')"));
    $shown{'the notice of run()'} = $text->($w->query("CALL advisory.run($CALL, 'SELECT 1')"));
    $shown{'the context of run()'} = $text->($h->query("CALL advisory.run($CALL, 'SELECT 1/0')"));
    $shown{'unlock() without a hold'} = $text->($w->query("SELECT advisory.unlock($CALL)"));
    $shown{'unlock() by key without a hold'} =
        $text->($w->query("SELECT advisory.unlock_key($key)"));
    $shown{'release() without a slot'} = $text->($w->query("SELECT advisory.release($CALL)"));
    $shown{'terminate_holder()'} = $text->(
        $w->query("SELECT advisory.terminate_holder($CALL, pg_backend_pid())"));
    $shown{'another number of slots'} = $text->($w->query("SELECT advisory.try_acquire($CALL, 3)"));

    # A deadlock: its victim keeps the lock, of whose name the detail and the hint tell.
    $_->run('SELECT pg_advisory_unlock_all()') for $h, $w;
    $h->run("SELECT advisory.lock($CALL)", q(SET deadlock_timeout = '1ms'));
    $w->run(q(SET deadlock_timeout = '1h'), 'SELECT pg_advisory_lock(4711)');
    waits($look, $w, "SELECT advisory.lock($CALL)");
    my $deadlock = $h->query('SELECT advisory.lock_key(4711)');
    $shown{"a deadlock's detail"} = $deadlock->{detail};
    $shown{"a deadlock's hint"} = $deadlock->{hint};
    $h->run('SELECT pg_advisory_unlock_all()');
    $w->finish;
    $w->run('SELECT pg_advisory_unlock_all()');

    # The log.
    my $log = sub ($pid, $code) { return join "\n",
        grep { /\[$pid\].* session (?:held|waited)/ } split /\n/, decode('UTF-8', logged($code)) };
    $h->run('SET advisory_ext.log_hold = 0');
    $shown{'log_hold'} = $log->($h->pid,
        sub { $h->run("SELECT advisory.lock($CALL), advisory.unlock($CALL)") });
    $shown{'log_hold, logged before a commit'} = $log->($h->pid,
        sub { $h->run("SELECT advisory.xact_lock($CALL)") });
    $h->run('RESET advisory_ext.log_hold', "SELECT advisory.lock($CALL)");
    $shown{'log_wait'} = $log->($w->pid,
        sub { $w->run('SET advisory_ext.log_wait = 0', "SELECT advisory.try_lock($CALL, '1ms')") });
    $shown{'log_wait, by key'} = $log->($w->pid,
        sub { $w->run("SELECT advisory.try_lock_key($key, '1ms')") });

    # Two names of one key.
    $shown{'a label for a key that has a name'} =
        $text->(session()->query("SELECT advisory.try_lock_key($key, label => 'l')")) if $is_shared;
    $_->run('SELECT pg_advisory_unlock_all()', 'RESET ALL') for $h, $w;
    return \%shown;
}

sub check ($how, $shown) {
    for my $place (sort keys %$shown) {
        like($shown->{$place}, $SHOWN, "$how: $place");
        unlike($shown->{$place} =~ s/\Q$NS\E|\Q$NAME\E//gr, qr/n{200}|ü{100}/,
            '... and nowhere without the mark');
    }
    return;
}

check('all know the name', places(session(), session(), 1));

# In another database no name is known yet, and none is given.
my $untracked = create_database(name => "advisory_names_cut_untracked_$$");
$look = session(application => 'look');
$look->run(qq(ALTER DATABASE "$untracked" SET advisory_ext.track = none));
check('track = none', places(session(), session(), 0));

my $small = own_server('advisory_ext.max_names=0', 'shared_preload_libraries=advisory_ext');
{
    local $ENV{ADVISORY_EXT_LOG} = $small->{ADVISORY_EXT_LOG};
    $look = session(server => $small)->run('CREATE EXTENSION advisory_ext');
    check('max_names = 0', places(session(server => $small), session(server => $small), 0));
}

done_testing;
