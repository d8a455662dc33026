# The operations that a worker (Stress::Worker) chooses from at random.
package Stress::Operations;

use AdvisoryTest;
use List::Util qw(max min shuffle sum uniq);
use Time::HiRes qw(time);

# Each operation has a frequency, situations, and a function, or a method of the worker. The
# situations are: t in a transaction, o outside a transaction, p while a transaction that this
# worker has prepared is still open, h only if the worker holds something, r if the function
# releases something, s also in the phase of sets.
#
# Only this worker ends its prepared transaction, and no deadlock detector knows that. So while
# there is one, the worker never waits without a limit, and writes no row that the prepared
# transaction may have written.
my @OPERATIONS = (
    [ 30, 'tops',  \&lock ],
    [ 6,  'top',   \&lock_several ],
    [ 5,  'top',   \&lock_any ],
    [ 16, 'tops',  \&acquire ],
    [ 16, 'tops',  \&acquire_many ],
    [ 4,  'top',   \&await_lock ],
    [ 3,  'tops',  \&await_acquire ],
    [ 5,  'top',   \&run_command ],
    [ 2,  'ops',   \&run_in_slot ],
    [ 36, 'tophrs', \&unlock ],
    [ 20, 'tophrs', \&release ],
    [ 10, 'tophrs', \&release_many ],
    [ 2,  'tophrs', \&unlock_all_of_namespace ],
    [ 1,  'tophrs', \&unlock_everything ],
    [ 1,  'ophrs', \&discard_all ],
    [ 12, 'ops',   'begin' ],
    [ 6,  'ts',    'savepoint' ],
    [ 4,  'trs',   'rollback_to_savepoint' ],
    [ 3,  'ts',    'release_savepoint' ],
    [ 10, 'trs',   'commit' ],
    [ 4,  'trs',   'rollback' ],
    [ 3,  'trs',   'prepare' ],
    [ 40, 'ops',   'end_prepared' ],
    [ 8,  'toph',  \&count_up ],
    [ 12, 'top',   \&cycle ],
    [ 6,  'tops',  \&cycle_slots ],
    [ 5,  'toph',  \&take_token ],
    [ 4,  'to',    \&write_stale ],
    [ 8,  'to',    \&lease ],
    [ 4,  'to',    \&renew_lease ],
    [ 4,  'to',    \&end_lease ],
    [ 2,  'to',    \&check_lease ],
    [ 1,  'o',     \&claim ],
    [ 2,  'op',    \&change_settings ],
    [ 2,  'tops',  \&change_role ],
    [ 1,  'tops',  \&read_views ],
    [ 0.4, 'ops',  \&close_socket ],
    [ 0.2, 'ops',  \&reconnect ],
);

# One operation; one that releases something, if it is to.
sub perform ($worker, $is_full) {
    my $has = ($worker->in_transaction ? 't' : 'o') . ($worker->{prepared} ? 'p' : '')
        . (@{ $worker->{holds} } ? 'h' : '');
    my @fitting = grep {
        my $in = $_->[1];
        $in =~ /[$has]/ && ($in =~ /t/ || $has !~ /t/) && ($in =~ /o/ || $has !~ /o/)
            && ($in =~ /p/ || $has !~ /p/) && ($in !~ /h/ || $has =~ /h/)
            && ($in =~ /r/ || !$is_full) && ($in =~ /s/ || !$worker->{only_sets});
    } @OPERATIONS;
    my $at = rand sum map { $_->[0] } @fitting;
    for my $operation (@fitting) {
        $at -= $operation->[0];
        my $what = $operation->[2];
        return $worker->$what if $at < 0;
    }
    return;
}

sub one_of { return $_[ rand @_ ] }

# For SQL: no wait, a wait with a limit, or one without.
sub timeout ($worker) {
    my $chance = rand;
    return $chance < 0.4 ? "'0'" : $chance < 0.85 || $worker->{prepared}
        ? "'" . (1 + int rand 20) . "ms'" : 'NULL';
}

# Often one of the three hot ones.
sub some_of ($list) {
    return $list->[ rand() < 0.2 && @$list > 3 ? rand 3 : rand @$list ];
}

# May the session take this resource in this way, too? Only holds of one kind can be counted.
sub agrees ($worker, $resource, $by) {
    return !grep { $_->{by} ne $by } $worker->held(resource => $resource);
}

# ---- Locks ---------------------------------------------------------------------------------------

sub lock ($worker) {
    my $lock = some_of($worker->{plan}{locks});
    my $by = one_of(qw(name name name key builtin));
    my $mode = one_of(qw(X X S));
    my $scope = $worker->in_transaction ? one_of(qw(session transaction transaction))
        : one_of(('session') x 9, 'transaction');
    my $tries = rand() < 0.6 || $by eq 'builtin' && $worker->{prepared};
    return if $scope eq 'session' && !agrees($worker, $lock->{index}, $by)
        || $by eq 'builtin' && !agrees($worker, $lock->{index}, $by);
    my $function = ($tries ? 'try_' : '') . ($by eq 'builtin' ? 'advisory_' : '')
        . ($scope eq 'session' ? '' : 'xact_') . 'lock' . ($mode eq 'S' ? '_shared' : '');
    my $arguments = $lock->{call};
    if ($by eq 'builtin') {
        $function = "pg_$function";
        $arguments = $lock->{key};
    } else {
        $arguments = $lock->{key} if $by eq 'key';
        $arguments .= ', ' . timeout($worker) if !$tries || rand() < 0.4;
        $arguments .= ", label => 'stress'" if $by eq 'key' && rand() < 0.3;
        $function = "advisory.$function" . ($by eq 'key' ? '_key' : '');
    }
    $worker->{asked} = [ $lock->{index} ] if $scope eq 'session';
    $worker->{is_by_builtin} = $by eq 'builtin';
    my $result = $worker->statement("SELECT $function($arguments)") or return;
    return $worker->figure('tries that found it taken') if $tries && !$result->{value};
    $worker->violate("$function() returned $result->{value}")
        if $function !~ /^pg_/ && !$result->{value};
    $worker->count($function);
    # Outside a transaction block such a lock has ended with the statement.
    $worker->gain(resource => $lock->{index}, mode => $mode, scope => $scope, by => $by)
        if $scope eq 'session' || $worker->in_transaction;
    return;
}

# Several locks whose names have one type, such that the session has no other kind of hold on them.
sub several ($worker) {
    my $type = one_of(qw(text bigint uuid));
    my @locks = uniq map { some_of($worker->{plan}{locks_of}{$type}) } 1 .. 1 + rand 4;
    return if grep { !agrees($worker, $_->{index}, 'name') } @locks;
    return (\@locks, 'ARRAY[' . join(', ', map { $_->{name} } @locks) . ']');
}

sub lock_several ($worker) {
    my ($locks, $list) = several($worker) or return;
    my $tries = rand() < 0.5;
    my $scope = $worker->in_transaction && rand() < 0.7 ? 'transaction' : 'session';
    my $function = 'advisory.' . ($tries ? 'try_' : '') . ($scope eq 'session' ? '' : 'xact_')
        . 'lock_all';
    $worker->{asked} = [ map { $_->{index} } @$locks ] if $scope eq 'session';
    my $result = $worker->statement("SELECT $function('stress', $list, " . timeout($worker) . ')')
        or return;
    return $worker->figure('tries that found it taken') if $tries && !$result->{value};
    $worker->violate("$function() returned $result->{value}") if !$result->{value};
    $worker->count($function, scalar @$locks);
    $worker->gain(resource => $_->{index}, mode => 'X', scope => $scope, by => 'name') for @$locks;
    return;
}

sub lock_any ($worker) {
    my ($locks, $list) = several($worker) or return;
    my $wanted = 1 + int rand 2;
    my $scope = $worker->in_transaction && rand() < 0.7 ? 'transaction' : 'session';
    my $function = 'advisory.try_' . ($scope eq 'session' ? '' : 'xact_') . 'lock_any';
    $worker->{asked} = [ map { $_->{index} } @$locks ] if $scope eq 'session';
    my $result = $worker->statement("SELECT * FROM $function('stress', $list, $wanted)") or return;
    my @got = map { $_->[0] } @{ $result->{rows} };
    $worker->violate("$function() returned " . @got . " locks instead of $wanted")
        if @got > $wanted;
    for my $name (@got) {
        my ($lock) = grep { $_->{text} eq $name } @$locks
            or $worker->violate("$function() returned $name");
        $worker->count($function);
        $worker->gain(resource => $lock->{index}, mode => 'X', scope => $scope, by => 'name');
    }
    return;
}

sub await_lock ($worker) {
    my $lock = some_of($worker->{plan}{locks});
    my ($by, $mode) = (one_of(qw(name name key)), one_of(qw(X S)));
    return if !agrees($worker, $lock->{index}, $by);
    my $procedure = 'advisory.await_lock' . ($mode eq 'S' ? '_shared' : '')
        . ($by eq 'key' ? '_key' : '');
    $worker->{asked} = [ $lock->{index} ];
    $worker->statement(
        "CALL $procedure(" . ($by eq 'key' ? $lock->{key} : $lock->{call}) . ', ' . timeout($worker)
            . ')', may => ['25001']) or return;
    $worker->count($procedure);
    $worker->gain(resource => $lock->{index}, mode => $mode, scope => 'session', by => $by);
    return;
}

# ---- Semaphores ----------------------------------------------------------------------------------

# A slot that the server gave: one of the first K, and none that the session had.
sub slot_gained ($worker, $function, $semaphore, $k, $slot, $scope) {
    return $worker->figure('tries that found it taken') if !defined $slot && $function =~ /try/;
    $worker->violate("$function() of $k slots returned " . ($slot // 'null'))
        if !defined $slot || $slot < 1 || $slot > $k;
    my $resource = $semaphore->{slots}[ $slot - 1 ];
    $worker->violate("$function() returned slot $slot, which the session had already")
        if $worker->held(resource => $resource);
    $worker->count($function);
    $worker->gain(resource => $resource, mode => 'X', scope => $scope, by => 'name')
        if $scope eq 'session' || $worker->in_transaction;
    return;
}

# How many slots there are is for the caller to say, and callers do not agree.
sub some_k ($semaphore) {
    return rand() < 0.7 ? $semaphore->{k} : 1 + int rand @{ $semaphore->{slots} }
}

sub acquire ($worker) {
    my $semaphore = one_of(@{ $worker->{plan}{semaphores} });
    my $k = some_k($semaphore);
    my $tries = rand() < 0.5;
    my $scope = $worker->in_transaction ? one_of(qw(session transaction)) : 'session';
    my $function = 'advisory.' . ($tries ? 'try_' : '') . ($scope eq 'session' ? '' : 'xact_')
        . 'acquire';
    $worker->{asked} = [ @{ $semaphore->{slots} }[ 0 .. $k - 1 ] ] if $scope eq 'session';
    my $result = $worker->statement(
        "SELECT $function($semaphore->{call}, $k"
            . (rand() < 0.85 || !$tries && $worker->{prepared} ? ', ' . timeout($worker) : '')
            . ')') or return;
    return slot_gained($worker, $function, $semaphore, $k, $result->{value}, $scope);
}

# One, two or three slots: all of them, or none.
sub acquire_many ($worker) {
    my $semaphore = one_of(@{ $worker->{plan}{semaphores} });
    my $k = some_k($semaphore);
    my $wanted = 1 + int rand min(3, $k);
    my $tries = rand() < 0.5;
    my $scope = $worker->in_transaction ? one_of(qw(session transaction)) : 'session';
    my $function = 'advisory.' . ($tries ? 'try_' : '') . ($scope eq 'session' ? '' : 'xact_')
        . 'acquire_many';
    if ($scope eq 'session') {
        $worker->{asked} = [ @{ $semaphore->{slots} }[ 0 .. $k - 1 ] ];
        $worker->{set} = $wanted;
    }
    my $start = time;
    my $result = $worker->statement(
        "SELECT array_to_string($function($semaphore->{call}, $k, $wanted"
            . (rand() < 0.85 || !$tries && $worker->{prepared} ? ', ' . timeout($worker) : '')
            . "), ' ')");
    $worker->{longest} = max($worker->{longest} // 0, time - $start);
    return if !$result;
    my @slots = split ' ', $result->{value} // '';
    return $worker->figure('tries that found it taken') if $tries && !@slots;
    $worker->violate("$function() of $wanted returned '@slots'")
        if @slots != $wanted || "@slots" ne join ' ', sort { $a <=> $b } uniq @slots;
    slot_gained($worker, "$function, $wanted slots", $semaphore, $k, $_, $scope) for @slots;
    return;
}

sub await_acquire ($worker) {
    my $semaphore = one_of(@{ $worker->{plan}{semaphores} });
    my $k = some_k($semaphore);
    $worker->{asked} = [ @{ $semaphore->{slots} }[ 0 .. $k - 1 ] ];
    my $result = $worker->statement(
        "CALL advisory.await_acquire($semaphore->{call}, $k, " . timeout($worker) . ')',
        may => ['25001']) or return;
    return slot_gained(
        $worker, 'advisory.await_acquire', $semaphore, $k, $result->{value}, 'session');
}

sub release ($worker) {
    my $resources = $worker->{plan}{resources};
    my @slots = grep { $resources->[ $_->{resource} ]{slot} } $worker->held(scope => 'session')
        or return;
    my $hold = one_of(@slots);
    my $slot = $resources->[ $hold->{resource} ];
    # Without a number it is the one that was taken last.
    my $last = (
        grep { $resources->[ $_->{resource} ]{semaphore} == $slot->{semaphore} } @slots)[-1];
    my $which = $hold == $last && rand() < 0.5 ? '' : ", $slot->{slot}";
    $worker->forget(sub { $_ == $hold });
    $worker->{is_uncertain} = 1;
    my $result = $worker->statement(
        perhaps_cancelling($worker->{plan}{semaphores}[ $slot->{semaphore} ]{key},
            "advisory.release($slot->{call}$which)")) or return;
    $worker->violate("release() of $slot->{what} returned false") if !$result->{value};
    return;
}

# Some of the slots that it has of a semaphore.
sub release_many ($worker) {
    my $resources = $worker->{plan}{resources};
    my @slots = grep { $resources->[ $_->{resource} ]{slot} } $worker->held(scope => 'session')
        or return;
    my $semaphore = $resources->[ one_of(@slots)->{resource} ]{semaphore};
    my @holds = grep { $resources->[ $_->{resource} ]{semaphore} == $semaphore } shuffle @slots;
    splice @holds, 1 + rand @holds;
    $worker->forget(sub ($hold = $_) { scalar grep { $_ == $hold } @holds });
    $worker->{is_uncertain} = 1;
    my ($count, $numbers) =
        (scalar @holds, join ', ', map { $resources->[ $_->{resource} ]{slot} } @holds);
    my ($call, $key) = @{ $worker->{plan}{semaphores}[$semaphore] }{qw(call key)};
    my $result = $worker->statement(
        perhaps_cancelling($key, "advisory.release_many($call, ARRAY[$numbers]) = $count"))
            or return;
    $worker->violate("release_many() of the slots $numbers did not return $count")
        if !$result->{value};
    return;
}

# ---- Jobs ----------------------------------------------------------------------------------------

# run() with a command that shows whether it runs alone.
sub run_command ($worker) {
    my $lock = some_of($worker->{plan}{locks});
    my $fails = rand() < 0.1;
    my $command = $fails ? 'SELECT 1 / 0' : "SELECT stress.count_up($lock->{index})";
    my $result = $worker->statement(
        "CALL advisory.run($lock->{call}, '$command', " . timeout($worker) . ')',
        may => [ $fails ? '22012' : () ]) or return;
    return $worker->figure('tries that found it taken') if !$result->{value};
    $worker->count('advisory.run');
    # In a transaction the lock is the transaction's then.
    $worker->gain(resource => $lock->{index}, mode => 'X', scope => 'transaction', by => 'name')
        if $worker->in_transaction;
    return;
}

sub run_in_slot ($worker) {
    my $semaphore = one_of(@{ $worker->{plan}{semaphores} });
    my $k = some_k($semaphore);
    my $result = $worker->statement(
        "CALL advisory.run($semaphore->{call},
            'SELECT stress.count_up_in_slot($semaphore->{key}, $k)', " . timeout($worker)
            . ", slots => $k)") or return;
    $worker->count('advisory.run with slots') if $result->{value};
    return;
}

# Reads, waits a moment and writes under an exclusive lock that lasts until the transaction has
# ended: nobody else has written meanwhile.
sub count_up ($worker) {
    my @holds = grep {
        $_->{mode} eq 'X' && ($_->{scope} eq 'transaction' || !$worker->in_transaction)
    } @{ $worker->{holds} } or return;
    my $resource = one_of(@holds)->{resource};
    $worker->figure('counted up') if $worker->statement("SELECT stress.count_up($resource)");
    return;
}

# Many times in one statement, in the server, where a sequence tells whether somebody else was
# inside at the same time.
sub cycle ($worker) {
    my $lock = some_of($worker->{plan}{locks});
    return if $worker->held(resource => $lock->{index});
    return in_cycles($worker, one_of(qw(exclusive exclusive shared savepoint)),
        "stress.cycle(%s, $lock->{key}, 'stress.alone_$lock->{index}'");
}

sub cycle_slots ($worker) {
    my $semaphore = one_of(@{ $worker->{plan}{semaphores} });
    return if grep { $worker->held(resource => $_) } @{ $semaphore->{slots} };
    my $k = some_k($semaphore);
    return in_cycles($worker, one_of('session', 'savepoint', 'session, sets', 'savepoint, sets'),
        "stress.cycle_slots(%s, $semaphore->{call}, $semaphore->{key}, $k, "
            . (1 + int rand min(3, $k)));
}

sub in_cycles ($worker, $way, $call) {
    # A cancel can come in the middle.
    $worker->{is_uncertain} = 1;
    my $result = $worker->statement(
        'SELECT ' . sprintf($call, "'$way'") . ', ' . one_of(3, 10, 30, 100) . ", '"
            . one_of(0, 0, '1ms', '10ms') . "')") or return;
    return $worker->count(
        'in cycles: ' . ($call =~ /slots/ ? "slot, $way" : "lock, $way"), $result->{value});
}

# ---- Releasing -----------------------------------------------------------------------------------

sub unlock ($worker) {
    my $resources = $worker->{plan}{resources};
    my @holds = grep { !$resources->[ $_->{resource} ]{slot} } $worker->held(scope => 'session')
        or return;
    my $hold = one_of(@holds);
    my $lock = $resources->[ $hold->{resource} ];
    my $shared = $hold->{mode} eq 'S' ? '_shared' : '';
    $worker->{is_uncertain} = 1;
    if ($hold->{by} ne 'builtin' && rand() < 0.2) {
        my $count = $worker->forget(
            sub { $_->{scope} eq 'session' && $_->{resource} == $hold->{resource} });
        my $list = rand() < 0.5 ? ", $lock->{name}" : ", ARRAY[$lock->{name}]";
        my $result = $worker->statement("SELECT advisory.unlock_all('stress'$list)") or return;
        $worker->violate(
            "unlock_all() of $lock->{what} released $result->{value} holds instead of $count")
                if $result->{value} != $count;
        return;
    }
    $worker->forget(sub { $_ == $hold });
    my $call = $hold->{by} eq 'builtin' ? "pg_advisory_unlock$shared($lock->{key})"
             : rand() < 0.3 ? "advisory.unlock${shared}_key($lock->{key})"
             : "advisory.unlock$shared($lock->{call})";
    my $result = $worker->statement(perhaps_cancelling($lock->{key}, $call)) or return;
    $worker->violate("$call returned false") if !$result->{value};
    return;
}

# Sometimes those who wait are cancelled at the same moment.
sub perhaps_cancelling ($key, $call) {
    return rand() < 0.2 ? "SELECT stress.cancel_waiters($key, \$call\$$call\$call\$)"
        : "SELECT $call";
}

# What was taken by name, slots included.
sub unlock_all_of_namespace ($worker) {
    my $count = $worker->forget(sub { $_->{scope} eq 'session' && $_->{by} eq 'name' });
    $worker->{is_uncertain} = 1;
    my $result = $worker->statement(q(SELECT advisory.unlock_all('stress'))) or return;
    $worker->violate(
        "unlock_all() of the namespace released $result->{value} holds instead of $count")
            if $result->{value} != $count;
    return;
}

sub unlock_everything ($worker, $sql = 'SELECT pg_advisory_unlock_all()') {
    $worker->forget(sub { $_->{scope} eq 'session' });
    $worker->{is_uncertain} = 1;
    $worker->statement($sql);
    return;
}

sub discard_all ($worker) { return unlock_everything($worker, 'DISCARD ALL') }

# ---- Tokens --------------------------------------------------------------------------------------

# A token of a lock that it holds in exclusive mode is greater than any token that anybody had
# before the call; and as long as the lock is held no fence refuses it.
sub take_token ($worker) {
    my $model = $worker->{model};
    my @holds = grep {
        $_->{mode} eq 'X' && !$worker->{plan}{resources}[ $_->{resource} ]{slot}
    } @{ $worker->{holds} } or return;
    my $hold = one_of(@holds);
    my $lock = $worker->{plan}{resources}[ $hold->{resource} ];
    my $before = $model->greatest_token;
    my $result = $worker->statement(
        'SELECT advisory.' . (rand() < 0.3 ? "token_key($lock->{key})" : "token($lock->{call})"))
            or return;
    my $token = $result->{value};
    $worker->violate("token() of $lock->{what} returned $token when there was $before already")
        if $token <= $before;
    $model->token_given($token);
    $worker->figure('tokens');
    $_->{token} = $token for $worker->held(resource => $hold->{resource});
    return if $worker->{prepared};
    my $passed = use_token($worker, $lock, $token);
    # What is committed asynchronously may be lost in a crash.
    $worker->on_commit(sub { $model->fence_checked($lock->{index}, $token) })
        if $passed eq 'checked' && !$worker->{is_asynchronous};
    return;
}

# Writes into a row with a fence, or checks the token. Returns which of them it did, if it could.
sub use_token ($worker, $lock, $token, @may) {
    my ($did, $sql) = rand() < 0.5
        ? ('written', "UPDATE stress.fenced SET token = $token, writes = writes + 1
            WHERE id = $lock->{index}")
        : ('checked', "SELECT advisory.check_token($lock->{call}, $token)");
    return $worker->statement($sql, may => \@may) ? $did : '';
}

# With a token from an earlier hold. The table's own trigger (stress.falls) finds whatever the fence
# should have refused.
sub write_stale ($worker) {
    my ($resource) = one_of(keys %{ $worker->{old_tokens} }) // return;
    my $lock = $worker->{plan}{resources}[$resource];
    my $token = delete $worker->{old_tokens}{$resource};
    $worker->figure(
        use_token($worker, $lock, $token, '55000') ? 'late writes' : 'stale writes refused');
    return;
}

# ---- Leases --------------------------------------------------------------------------------------

my $IN_US = '(extract(epoch FROM expires_at) * 1e6)::bigint';

sub lease ($worker) {
    my $lease = one_of(@{ $worker->{plan}{leases} });
    my $ttl = 20 + int rand 150;
    my $function = one_of(qw(lease try_lease await_lease));
    my $timeout = $function eq 'try_lease' ? one_of("'0'", timeout($worker))
        : "'" . (1 + int rand 60) . "ms'";
    my $before = $worker->{model}->greatest_token;
    my $result;
    # 55000: its own transaction has taken or ended the lease.
    if ($function eq 'await_lease') {
        $result = $worker->statement(
            "CALL advisory.await_lease($lease->{call}, '${ttl}ms', $timeout)",
            may => [ '25001', '55000' ]) or return;
        # Of a timestamp the microseconds would have to be read from text.
        my $row = $result->{rows}[0];
        $result = $worker->statement(
            "SELECT $row->[0], (extract(epoch FROM '$row->[1]'::timestamptz) * 1e6)::bigint")
                or return;
    } else {
        $result = $worker->statement(
            "SELECT token, $IN_US FROM advisory.$function($lease->{call}, '${ttl}ms', $timeout)",
            may => ['55000']) or return;
    }
    my ($token, $to) = @{ $result->{rows}[0] };
    return $worker->figure('tries that found it taken') if !defined $token;
    $worker->violate("$function() returned token $token when there was $before already")
        if $token <= $before;
    $worker->{model}->token_given($token);
    $worker->count("advisory.$function");
    $worker->on_commit(sub {
        held_lease($worker, $lease, $token, $to - 1000 * $ttl, $to);
        $worker->{leases}{ $lease->{index} } = $token;
    });
    return;
}

sub held_lease ($worker, $lease, $token, $from, $to) {
    my $conflict = $worker->{model}->lease_held($lease->{index}, $token, $from, $to);
    $worker->violate($conflict) if $conflict;
    return;
}

# A lease that the worker had in a transaction that is committed, and its token. Perhaps it is lost
# since.
sub own_lease ($worker) {
    my $index = one_of(keys %{ $worker->{leases} // {} }) // return;
    return ($worker->{plan}{leases}[$index], $worker->{leases}{$index});
}

sub renew_lease ($worker) {
    my ($lease, $token) = own_lease($worker) or return;
    my $ttl = 20 + int rand 150;
    # It may be shorter than what is left.
    $worker->{model}->lease_may_end($lease->{index}, $token, int 1e6 * time + 1000 * $ttl);
    my $result = $worker->statement(
        "SELECT $IN_US FROM advisory.renew_lease($lease->{call}, $token, '${ttl}ms') AS expires_at")
            or return;
    my $to = $result->{value} // return $worker->figure('leases found lost');
    $worker->figure('leases renewed');
    # Unless it ends the lease in the same transaction.
    $worker->on_commit(
        sub {
            held_lease($worker, $lease, $token, $to - 1000 * $ttl, $to)
                if ($worker->{leases}{ $lease->{index} } // 0) == $token
        });
    return;
}

sub end_lease ($worker) {
    my ($lease, $token) = own_lease($worker) or return;
    $worker->{model}->lease_may_end($lease->{index}, $token, 0);
    delete $worker->{leases}{ $lease->{index} };
    $worker->figure('leases ended')
        if $worker->statement("SELECT advisory.end_lease($lease->{call}, $token)");
    return;
}

# While the transaction lasts no other session gets the lease.
sub check_lease ($worker) {
    my ($lease, $token) = own_lease($worker) or return;
    $worker->figure('leases checked')
        if $worker->statement(
            "SELECT advisory.check_lease($lease->{call}, $token)", may => ['55000']);
    return;
}

# The table has a unique index, so the second one who claims a window is found out.
sub claim ($worker) {
    $worker->statement(
        q(INSERT INTO stress.claimed SELECT w FROM advisory.claim('stress', 'window', '100ms') AS w
            WHERE w IS NOT NULL)) or return;
    return $worker->figure('claims');
}

# ---- The session ---------------------------------------------------------------------------------

sub change_settings ($worker) {
    my ($name, @values) =
        @{ one_of([ 'statement_timeout', 0, 0, 0, '30ms', '100ms' ],
            [ 'lock_timeout', 0, 0, '20ms', '60ms' ], [ 'synchronous_commit', 'on', 'off' ],
        [ 'client_connection_check_interval', 0, '50ms' ],
        [ 'advisory_ext.warn_no_transaction', 'on', 'off' ]) };
    my $value = one_of(@values);
    $worker->{is_asynchronous} = 1 if $name eq 'synchronous_commit';
    $worker->{is_asynchronous} = 0
        if $worker->statement("SET $name = '$value'") && "$name $value" eq 'synchronous_commit on';
    return;
}

sub change_role ($worker) {
    $worker->statement(
        one_of('SET ROLE stress_a', 'SET ROLE stress_b', 'RESET ROLE',
            'SET SESSION AUTHORIZATION stress_a', 'RESET SESSION AUTHORIZATION'), may => ['42501']);
    return;
}

sub read_views ($worker) {
    $worker->statement(
        'SELECT count(*) FROM '
            . one_of(map { "advisory.$_" } qw(activity locks waits semaphores leases stats leaks
                pressure directory wait_tree())));
    return;
}

# Alone, or while a statement runs that may wait.
sub close_socket ($worker) {
    my ($lock, $semaphore) =
        (some_of($worker->{plan}{locks}), one_of(@{ $worker->{plan}{semaphores} }));
    $worker->close_socket(
        one_of(undef, "SELECT advisory.lock($lock->{call})",
            "SELECT advisory.acquire($semaphore->{call}, $semaphore->{k})"));
    return $worker->figure('sockets closed');
}

sub reconnect ($worker) {
    $worker->note('disconnects');
    $worker->forget(sub { 1 });
    $worker->{left} = 1;
    $worker->{session}->disconnect;
    $worker->gone('by itself');
    return;
}

1;
