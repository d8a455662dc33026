# One worker: a session that performs random operations (Stress::Operations), knows what it holds,
# and tells the model of it.
#
# The rule that it checks is the extension's own: true means held; false or an error means not held.
package Stress::Worker;

use AdvisoryTest;
use List::Util qw(first uniq);
use Socket qw(SHUT_RDWR);
use Stress::Model qw(SESSION TRANSACTION PREPARED);
use Stress::Operations;
use Time::HiRes qw(sleep);

use constant { MANY_HOLDS => 4, TRIES => 200 };

# Errors that any statement can end with: not available, cancelled, deadlock, serialization failure,
# terminated.
my %ALWAYS = map { $_ => 1 } qw(55P03 57014 40P01 40001 57P01);

# new(number, model, server, plan, seed, may => [SQLSTATEs that are no violation here], only_sets =>
# of the operations only those of the phase sets). A hold is a
# hash of resource, mode ('X', 'S'), scope ('session', 'transaction'), level (of the savepoint), by
# ('name', 'key', 'builtin': the session's other holds of the resource have to agree) and token.
sub new ($class, %how) {
    my $self = bless { %how, holds => [], level => 0, pending => [], counts => {}, errors => {},
        figures => {}, old_tokens => {} }, $class;
    $self->{may} = { %ALWAYS, map { $_ => 1 } @{ $how{may} // [] } };
    return $self;
}

# Until the run ends. Returns what was counted.
sub work ($self) {
    srand $self->{seed};
    while ((my $state = $self->{model}->state) ne 'end') {
        if (!$self->{session}) { $state eq 'go' && $self->connect or sleep 0.02; next }
        $self->step;
    }
    $self->finish if !defined $self->{model}->violation;
    return { map { $_ => $self->{$_} } qw(counts errors figures longest) };
}

sub count ($self, $what, $times = 1) { $self->{counts}{$what} += $times; return }

sub figure ($self, $what) { $self->{figures}{$what}++; return }

sub violate ($self, $text) {
    # When the first one was found the others leave, and their marks stay.
    $self->note("VIOLATION: $text") if !defined $self->{model}->violation;
    return $self->{model}->violate("worker $self->{number}: $text");
}

sub note ($self, $text) { $self->{model}->note_operation($self->{number}, $text); return }

sub in_transaction { return $_[0]{level} > 0 }

# One operation, and what follows from its failure.
sub step ($self) {
    $self->{error} = undef;
    $self->{asked} = [];
    $self->{set} = 0;
    $self->{is_uncertain} = 0;
    $self->{is_by_builtin} = 0;
    Stress::Operations::perform($self, @{ $self->{holds} } >= MANY_HOLDS);
    if (!$self->{session}) { $self->figure('sessions that ended') }
    elsif ($self->{error}) { $self->recover }
    elsif (rand() < 0.04) { $self->compare }
    sleep rand 0.002 if rand() < 0.1;
    return;
}

# ---- Statements ----------------------------------------------------------------------------------

# Runs a statement. Returns its result, or nothing after an error, when {error} says which, or if
# the session is gone. The marks of the transaction's holds do not stand meanwhile. With may =>
# [SQLSTATEs] these are no violation, either.
sub statement ($self, $sql, %how) {
    my @resources = uniq map { $_->{resource} } $self->held(scope => 'transaction');
    $self->note($sql);
    $self->figure('statements');
    $self->{model}->mark($self->{number}, map { [ $_, TRANSACTION, '' ] } @resources) if @resources;
    $self->{model}->touch($self->{number});
    my $result = eval { $self->{session}->query($sql) } // { state => 'lost', message => $@ };
    $self->{model}->touch($self->{number});
    if (!$result->{state}) {
        $self->note('-> ' . ($result->{value} // 'null'));
        $self->show(TRANSACTION, @resources);
        return $result;
    }
    $self->{error} = $result->{state};
    $self->{message} = $result->{message};
    $self->{errors}{ $result->{state} }++;
    $self->note("-> $result->{state} $result->{message}");
    # 3: in a transaction block; 4: in one that has failed.
    my $ping = $self->{session}->dbh->ping;
    $self->{is_in_block} = $ping >= 3;
    if ($ping < 1) {
        $self->gone($result->{message});
    } elsif (!$self->{may}{ $result->{state} }
            && !grep { $_ eq $result->{state} } @{ $how{may} // [] }) {
        $self->violate("SQLSTATE $result->{state}, $result->{message}, from: $sql");
    }
    return;
}

# The same for what has to succeed in the end. A transaction that is in the way of that is rolled
# back.
sub surely ($self, $sql) {
    for (1 .. TRIES) {
        my $result = $self->statement($sql);
        return $result if $result || !$self->{session};
        $self->rollback if $self->in_transaction;
        return if !$self->{session};
        # Memory may have to be released first.
        sleep 0.05 if $self->{error} =~ /^53/;
    }
    return $self->violate(TRIES . " times without success: $sql");
}

# ---- The session ---------------------------------------------------------------------------------

sub connect ($self) {
    my $session = eval { session(server => $self->{server}, application => 'stress') };
    if (!$session || !$self->{model}->connected($self->{number}, $session->pid)) {
        $self->figure('connections that failed') if !$session;
        return;
    }
    $self->{session} = $session;
    $self->{left} = 0;
    $self->note('connected as ' . $session->pid);
    $self->look_for_prepared if $self->{unknown_gid};
    return 1;
}

# The session has ended, and with it what it held.
sub gone ($self, $message) {
    $self->violate("the session has ended without a reason: $message")
        if !$self->{left} && !$self->{model}->is_doomed($self->{number});
    $self->forget(sub { 1 });
    $self->{level} = 0;
    $self->{pending} = [];
    delete $self->{session};
    $self->{is_asynchronous} = 0;
    $self->{model}->disconnected($self->{number});
    return;
}

# Leaves without a word: the server sees the connection closed. With a statement it is closed while
# that runs.
sub close_socket ($self, $sql) {
    $self->note('closes its socket' . ($sql ? " while this runs: $sql" : ''));
    $self->{left} = 1;
    $self->forget(sub { 1 });
    my $session = $self->{session};
    if ($sql) {
        $session->start($sql);
        sleep rand 0.02;
    }
    open my $socket, '+<&', $session->dbh->{pg_socket} or die "cannot close the socket: $!\n";
    shutdown $socket, SHUT_RDWR;
    close $socket;
    delete $session->{sth};
    $session->dbh->disconnect;
    $self->gone('by itself');
    return;
}

# ---- What it holds -------------------------------------------------------------------------------

# Holds with these properties, such as held(resource => 3, scope => 'session').
sub held ($self, %which) {
    return grep {
        my $hold = $_;
        !grep { $hold->{$_} ne $which{$_} } keys %which
    } @{ $self->{holds} };
}

# Marks these resources as this session holds them.
sub show ($self, $layer, @resources) {
    return if !@resources;
    my $scope = $layer == SESSION ? 'session' : 'transaction';
    my @marks;
    for my $resource (@resources) {
        my %modes = map { $_->{mode} => 1 } $self->held(resource => $resource, scope => $scope);
        push @marks, [ $resource, $layer, $modes{X} ? 'X' : $modes{S} ? 'S' : '' ];
    }
    my $conflict = $self->{model}->mark($self->{number}, @marks);
    $self->violate(
        $conflict . '; ' . join ', ',
        map { "resource $_ is $self->{plan}{resources}[$_]{what}" } @resources) if $conflict;
    return;
}

# The server says that the session now holds this.
sub gain ($self, %hold) {
    push @{ $self->{holds} }, { level => $self->{level}, %hold };
    $self->show($hold{scope} eq 'session' ? SESSION : TRANSACTION, $hold{resource});
    return;
}

# Forgets the holds for which the code returns true, because their state is unknown, or because they
# will be released next.
sub forget ($self, $is_meant) {
    my (@kept, @lost);
    push @{ $is_meant->($_) ? \@lost : \@kept }, $_ for @{ $self->{holds} };
    $self->{holds} = \@kept;
    for my $hold (@lost) {
        $self->{old_tokens}{ $hold->{resource} } = $hold->{token} if $hold->{token};
    }
    $self->show(SESSION, uniq map { $_->{resource} } grep { $_->{scope} eq 'session' } @lost);
    $self->show(
        TRANSACTION, uniq map { $_->{resource} } grep { $_->{scope} eq 'transaction' } @lost);
    return scalar @lost;
}

# ---- Transactions --------------------------------------------------------------------------------

# Runs the code when the last statement of the session is committed.
sub on_commit ($self, $code) {
    if ($self->in_transaction) {
        push @{ $self->{pending} }, { level => $self->{level}, code => $code }
    }
    else { $code->() }
    return;
}

sub begin ($self) {
    my $level = rand() < 0.85 ? 'READ COMMITTED' : rand() < 0.5 ? 'REPEATABLE READ'
        : 'SERIALIZABLE';
    my $result = $self->statement("BEGIN ISOLATION LEVEL $level");
    $self->{level} = 1 if $result || $self->{session} && $self->{is_in_block};
    return;
}

sub savepoint ($self) {
    $self->{level}++ if $self->{level} < 4 && $self->statement("SAVEPOINT s$self->{level}");
    return;
}

sub release_savepoint ($self) {
    my $level = $self->{level} - 1;
    return if !$level || !$self->statement("RELEASE SAVEPOINT s$level");
    $self->{level} = $level;
    for my $entry (@{ $self->{holds} }, @{ $self->{pending} }) {
        $entry->{level} = $level if $entry->{level} > $level;
    }
    return;
}

# Undoes the innermost savepoint, if there is one, and stays in it.
sub rollback_to_savepoint ($self) {
    my $level = $self->{level};
    return if $level < 2;
    $self->forget(sub { $_->{scope} eq 'transaction' && $_->{level} >= $level });
    $self->{pending} = [ grep { $_->{level} < $level } @{ $self->{pending} } ];
    $self->statement('ROLLBACK TO SAVEPOINT s' . ($level - 1));
    return;
}

sub commit ($self) {
    $self->forget(sub { $_->{scope} eq 'transaction' });
    my @pending = @{ $self->{pending} };
    my $result = $self->statement('COMMIT');
    return if !$self->{session};
    # Nothing at the end of a transaction may need memory.
    $self->violate("COMMIT fails: $self->{message}") if !$result && $self->{error} =~ /^53/;
    # A cancel that comes before it does anything leaves a transaction block that has failed.
    $self->{level} = !$result && $self->{is_in_block} ? 1 : 0;
    $self->{pending} = [];
    if ($result) { $_->{code}->() for @pending }
    return;
}

sub rollback ($self) {
    $self->forget(sub { $_->{scope} eq 'transaction' });
    for (1 .. TRIES) {
        my $result = $self->statement('ROLLBACK');
        return if !$self->{session};
        next if !$result;
        $self->{level} = 0;
        $self->{pending} = [];
        return;
    }
    return $self->violate('no ROLLBACK succeeds');
}

# PREPARE TRANSACTION. After that no session has its locks.
sub prepare ($self) {
    my @moved = $self->held(scope => 'transaction');
    my @pending = @{ $self->{pending} };
    my $gid = sprintf 'stress %d %d', $self->{number}, ++$self->{last_gid};
    $self->forget(sub { $_->{scope} eq 'transaction' });
    $self->{unknown_gid} = $gid;
    # A lock that the session holds in both scopes, too.
    my $result = $self->statement("PREPARE TRANSACTION '$gid'", may => ['0A000']);
    return if !$self->{session};
    $self->{level} = !$result && $self->{is_in_block} ? 1 : 0;
    $self->{pending} = [];
    delete $self->{unknown_gid};
    return if !$result;
    $self->figure('prepared transactions');
    my %modes;
    for my $hold (@moved) {
        my $mode = $modes{ $hold->{resource} } // '';
        $modes{ $hold->{resource} } = $mode eq 'X' ? $mode : $hold->{mode};
    }
    $self->{prepared} = { gid => $gid, resources => [ keys %modes ], pending => \@pending };
    my $conflict =
        $self->{model}->mark($self->{number}, map { [ $_, PREPARED, $modes{$_} ] } keys %modes);
    $self->violate("prepared: $conflict") if $conflict;
    return;
}

# COMMIT PREPARED or ROLLBACK PREPARED.
sub end_prepared ($self) {
    return if !$self->{prepared};
    my $how = rand() < 0.5 ? 'COMMIT' : 'ROLLBACK';
    # Superusers may end those of the roles that they play.
    $self->surely($_) or return for 'RESET SESSION AUTHORIZATION', 'RESET ROLE';
    my $prepared = $self->forget_prepared;
    my $result = $self->statement("$how PREPARED '$prepared->{gid}'");
    return if !$self->{session};
    if (!$result) { return $self->look_for_prepared }
    delete $self->{unknown_gid};
    if ($how eq 'COMMIT') { $_->{code}->() for @{ $prepared->{pending} } }
    return;
}

# The prepared transaction is to be ended next, and then it is not known whether it has.
sub forget_prepared ($self) {
    my $prepared = delete $self->{prepared};
    $self->{unknown_gid} = $prepared->{gid};
    $self->{model}->mark($self->{number}, map { [ $_, PREPARED, '' ] } @{ $prepared->{resources} });
    return $prepared;
}

# Ends the prepared transaction of which it is not known whether there is one.
sub look_for_prepared ($self) {
    my $gid = $self->{unknown_gid};
    $self->surely($_) or return for 'RESET SESSION AUTHORIZATION', 'RESET ROLE';
    for (1 .. TRIES) {
        my $found = $self->surely("SELECT count(*) FROM pg_prepared_xacts WHERE gid = '$gid'")
            or return;
        if (!$found->{value}) { delete $self->{unknown_gid}; return }
        # It is busy while another session, which is about to end, is at it: 55000. It is gone by
        # now: 42704.
        $self->statement("ROLLBACK PREPARED '$gid'", may => [qw(55000 42704)]);
        return if !$self->{session};
    }
    return $self->violate("the prepared transaction $gid cannot be ended");
}

# ---- After an error ------------------------------------------------------------------------------

# Nothing is held that was not held before. Only a cancel can come when the function has returned
# already, and undo nothing. (A built-in function's error can leave the lock held if it was granted
# meanwhile; see test/races/grant_race.t.)
sub recover ($self) {
    my $cancelled = $self->{error} eq '57014' || $self->{is_by_builtin}
        && $self->{error} eq '55P03';
    my $asked = [ @{ $self->{asked} } ];
    my $uncertain = $self->{is_uncertain} && $self->{error} =~ /^(?:57014|53)/;
    if ($self->{level} > 1 && rand() < 0.5) {
        $self->{error} = undef;
        $self->rollback_to_savepoint;
        return if !$self->{session};
        $self->rollback if $self->{error};
    } elsif ($self->in_transaction) {
        $self->rollback;
    }
    return if !$self->{session};
    if ($uncertain || $cancelled && @$asked) {
        $self->figure('cancelled requests of session-level locks') if @$asked;
        $self->compare(may_have => $asked) if !$uncertain;
        # How often a lock is held now is not known.
        return if !$self->{session};
        $self->forget(sub { $_->{scope} eq 'session' });
        $self->surely('SELECT pg_advisory_unlock_all()');
        return if !$self->{session};
    }
    $self->compare if $cancelled || @$asked || rand() < 0.3;
    return;
}

# Checks that the server shows the same locks of this session as the worker knows. With may_have,
# the session may hold further resources. Then the function has returned, and the extension knows
# them.
sub compare ($self, %how) {
    my $way = $how{may_have} ? 1 : int rand 3;
    my $result = $self->surely($way == 1 ? <<'OF_EXTENSION' : <<'OF_SERVER') or return;
        SELECT concat_ws(':', key, coalesce(16384 + slot, 1),
            CASE mode WHEN 'exclusive' THEN 'X' ELSE 'S' END, scope) FROM advisory.locks
        WHERE pid = pg_backend_pid() AND granted AND kind IN ('lock', 'semaphore')
OF_EXTENSION
        SELECT concat_ws(':', classid::bigint << 32 | objid::bigint, objsubid,
            CASE mode WHEN 'ExclusiveLock' THEN 'X' WHEN 'ShareLock' THEN 'S' ELSE mode END)
        FROM pg_locks
        WHERE pid = pg_backend_pid() AND granted AND locktype = 'advisory'
            AND (objsubid = 1 OR objsubid > 16384)
OF_SERVER
    my %known;
    for my $hold (@{ $self->{holds} }) {
        my $tag = "$self->{plan}{resources}[$hold->{resource}]{tag}:$hold->{mode}";
        # A lock held in both scopes shows as session. Of the built-in functions' locks the scope is
        # not known.
        $known{$tag} = $hold->{scope} if ($known{$tag} // '') ne 'session';
        $known{$tag} = '' if $hold->{by} eq 'builtin';
    }
    # Where memory is full they may not be known.
    my $knows_scopes = !$self->{may}{53200};
    my %may_have = map { $self->{plan}{resources}[$_]{tag} => 1 } @{ $how{may_have} // [] };
    my $surplus = 0;
    for my $row (@{ $result->{rows} }) {
        my ($tag, $scope) = $row->[0] =~ /^(.*:[A-Z]\w*)(?::(\w+))?$/;
        my $expected = delete $known{$tag};
        if (!defined $expected) {
            if ($may_have{ $tag =~ s/:\w+$//r }
                && ($scope || $self->{is_by_builtin} || !$knows_scopes)) {
                    $self->figure(
                        'granted, though cancelled'
                            . ($self->{is_by_builtin} ? ', by built-in functions' : ''));
                    $surplus++;
                    next
                }
            $self->violate("the server says that it holds $row->[0], and it does not know that");
        }
        $self->violate("it holds $tag for the $expected, and advisory.locks says $scope")
            if $way == 1 && $knows_scopes && $expected ne '' && ($scope // '') ne $expected
            && !$self->holds_builtin($tag);
    }
    $self->violate('the server does not say that it holds ' . join ' ', %known) if %known;
    $self->violate("it has $surplus slots of a set of $self->{set}")
        if $surplus && $self->{set} && $surplus != $self->{set};
    $self->compare_counts if $way == 2;
    $self->figure('comparisons');
    return;
}

sub holds_builtin ($self, $tag) {
    return first {
        $_->{by} eq 'builtin' && $tag =~ /^\Q$self->{plan}{resources}[$_->{resource}]{tag}:/
    } @{ $self->{holds} };
}

# holds(), hold_count() and is_locked() of one of the locks.
sub compare_counts ($self) {
    my $lock = $self->{plan}{locks}[ rand @{ $self->{plan}{locks} } ];
    # The answer is compared with what is held when the statement has run: surely() may have ended
    # the transaction.
    my $result = $self->surely(
        "SELECT concat_ws(' ', advisory.holds($lock->{call})::int,
            advisory.hold_count($lock->{call}), advisory.is_locked($lock->{call})::int)") or return;
    my @holds = $self->held(resource => $lock->{index});
    return if grep { $_->{by} eq 'builtin' } @holds;
    my ($holds, $count, $is_locked) = split ' ', $result->{value};
    $self->violate(
        "of $lock->{what} it has " . @holds
            . " holds; holds(), hold_count() and is_locked() say $result->{value}")
        if $holds != (@holds ? 1 : 0) || $count != @holds || @holds && !$is_locked;
    return;
}

# ---- The end -------------------------------------------------------------------------------------

# Ends its prepared transaction, compares a last time, and disconnects. The server may still be
# starting, and the session may be gone.
sub finish ($self) {
    $self->{left} = 1;
    $self->forget_prepared if $self->{prepared};
    for (1 .. TRIES) {
        $self->{session} //= eval { session(server => $self->{server}, application => 'stress') };
        if (!$self->{session}) { sleep 0.1; next }
        $self->rollback if $self->in_transaction;
        $self->look_for_prepared if $self->{session} && $self->{unknown_gid};
        $self->compare if $self->{session};
        next if !$self->{session};
        $self->note('leaves');
        $self->forget(sub { 1 });
        $self->{session}->disconnect;
        return;
    }
    return $self->violate('it cannot finish');
}

1;
