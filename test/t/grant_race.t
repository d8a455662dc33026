#!/usr/bin/env perl
# A wait never ends in false or an error with the lock held. If the lock is granted before the
# waiter handles its timeout or cancel, the server gives it the lock and still raises the error. The
# test has to stop the waiter's process at that moment.
use AdvisoryTest;
use Time::HiRes qw(sleep);

# The timeout, in milliseconds: the lock must be released before it ends. If the machine was too
# busy for that, the next try has twice as long.
use constant { FIRST_LIMIT_MS => 100, REPETITIONS => 3, TRIES => 8 };

create_database();
my ($observer, $holder) = map { session() } 1 .. 2;

# Is the lock held by the waiter?
sub held ($waiter) {
    return $observer->value(<<'SQL', $waiter->pid);
        SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory' AND pid = ? AND granted
            AND (classid::bigint << 32 | objid::bigint) = advisory.key('race', 'a') AND objsubid = 1
SQL
}

# Makes the waiter wait, stops its process, releases the lock, interrupts the waiter or lets its
# timeout pass, and continues it. Returns the result of the wait, or undef if the waiter was too
# slow.
sub race ($waiter, $statement, $limit, $interrupt = undef) {
    $holder->value("SELECT advisory.lock('race', 'a')");
    waits($observer, $waiter, $statement);
    kill STOP => $waiter->pid or die 'cannot stop the process ' . $waiter->pid . ": $!\n";
    $holder->value("SELECT advisory.unlock('race', 'a')");
    my $caught = held($waiter);
    $interrupt ? $interrupt->($waiter) : sleep 1.25 * $limit / 1000;
    kill CONT => $waiter->pid;
    my $result = $waiter->finish;
    return $caught ? $result : undef;
}

sub cancel { return $observer->value('SELECT pg_cancel_backend(?)', $_[0]->pid) }

# name, call, settings of the session, what interrupts it, and the expected results: in some cases
# two are right
my $own = '<limit>';
my @ways = (
    [ 'try, its own timeout', 'try_%s(\'race\', \'a\', \'' . $own . '\')' ],
    [ 'lock, its own timeout', '%s(\'race\', \'a\', \'' . $own . '\')' ],
    [ 'try, lock_timeout', 'try_%s(\'race\', \'a\', NULL)', { lock_timeout => $own } ],
    [ 'lock, lock_timeout', '%s(\'race\', \'a\')', { lock_timeout => $own } ],
    [ 'try, statement_timeout', 'try_%s(\'race\', \'a\', NULL)', { statement_timeout => $own } ],
    [ 'lock, statement_timeout', '%s(\'race\', \'a\')', { statement_timeout => $own } ],
    [ 'try, cancelled', 'try_%s(\'race\', \'a\', NULL)', {}, \&cancel ],
    [ 'lock, cancelled', '%s(\'race\', \'a\')', {}, \&cancel ],
);
my %functions =
    (session => [qw(lock lock_shared)], transaction => [qw(xact_lock xact_lock_shared)]);

sub with_limit ($sql, $limit) { return $sql =~ s/<limit>/${limit}ms/gr }

# Runs one case several times, and compares the waiter's result with what it holds, while its
# transaction is open.
sub try_way ($name, $call, $settings, $interrupt, $in_transaction) {
    my ($wrong, $done, $limit, %ends) = (0, 0, FIRST_LIMIT_MS);
    while ($done < REPETITIONS && $limit < FIRST_LIMIT_MS * 2**TRIES) {
        my $waiter = session();
        $waiter->run(map { with_limit("SET $_ = '$settings->{$_}'", $limit) } keys %$settings);
        $waiter->run('BEGIN', 'SAVEPOINT s') if $in_transaction;
        my $result = race($waiter, with_limit($call, $limit), $limit, $interrupt);
        $limit *= 2 if !$result;
        if ($result) {
            $done++;
            # An error ends the savepoint and not the transaction, which would release the lock in
            # any case.
            $waiter->run('ROLLBACK TO s') if $in_transaction && $result->{state};
            my $told = $result->{state} ? 0 : !defined $result->{value} || $result->{value} ? 1 : 0;
            $ends{ $result->{state} // ($told ? 'true' : 'false') }++;
            $wrong++ if $told != held($waiter);
            $wrong++ if $result->{state} && $result->{state} !~ /^(57014|55P03)$/;
        }
    }
    return ($done, $wrong, \%ends);
}

for my $scope (sort keys %functions) {
    for my $way (@ways) {
        my ($name, $call, $settings, $interrupt) = @$way;
        # Every second way in shared mode.
        my $function = $functions{$scope}[ $way == $ways[0] || $way == $ways[3] || $way == $ways[4]
            || $way == $ways[7] ? 0 : 1 ];
        my ($done, $wrong, $ends) =
            try_way($name, 'SELECT advisory.' . sprintf($call, $function), $settings // {},
            $interrupt, $scope eq 'transaction');
        is($done, REPETITIONS, "$scope: $name ($function): caught in time");
        is($wrong, 0, "$scope: $name ($function): true if held, and only then")
            or diag(explain($ends));
        if ($name =~ /statement_timeout|cancelled/) {
            is_deeply($ends, { 57014 => REPETITIONS }, "$scope: $name ($function): error 57014");
        } elsif ($scope eq 'session') {
            is_deeply($ends, { true => REPETITIONS },
                "$scope: $name ($function): a lock that was granted counts");
        }
    }
}

for my $case (
    [ 'await_lock, its own timeout',  "CALL advisory.await_lock('race', 'a', '$own')",           {},
        undef, 'true' ],
    [ 'await_lock, cancelled', "CALL advisory.await_lock('race', 'a')", {}, \&cancel, '57014' ],
    [ 'lock_all, its own timeout',    "SELECT advisory.lock_all('race', '{a}', '$own')",         {},
        undef, 'true' ],
    [ 'lock_all, cancelled', "SELECT advisory.lock_all('race', '{a}')", {}, \&cancel, '57014' ],
    # The server reports the one that ended first, but the statement has outlived the other one,
    # too.
    [ 'lock, its own timeout, then statement_timeout',
        "SELECT advisory.lock('race', 'a', interval '$own' * 0.8)", { statement_timeout => $own },
        undef, '57014' ],
    [ 'lock_key, statement_timeout',  "SELECT advisory.lock_key(advisory.key('race', 'a'))",
        { statement_timeout => $own }, undef, '57014' ],
) {
    my ($name, $call, $settings, $interrupt, $end) = @$case;
    my ($done, $wrong, $ends) = try_way($name, $call, $settings, $interrupt, 0);
    is($wrong, 0, "session: $name: true if held, and only then") or diag(explain($ends));
    is_deeply($ends, { $end => REPETITIONS }, "session: $name: $end");
}

# The only slot of a semaphore is waited for by the lock manager: a slot that is granted in time is
# there to be released.
{
    my ($done, $limit) = (0, FIRST_LIMIT_MS);
    while ($done < REPETITIONS && $limit < FIRST_LIMIT_MS * 2**TRIES) {
        my $waiter = session();
        $holder->value("SELECT advisory.acquire('race', 'only', 1)");
        waits($observer, $waiter, "SELECT advisory.try_acquire('race', 'only', 1, '${limit}ms')");
        kill STOP => $waiter->pid or die 'cannot stop the process ' . $waiter->pid . ": $!\n";
        $holder->value("SELECT advisory.release('race', 'only')");
        sleep 1.5 * $limit / 1000;
        kill CONT => $waiter->pid;
        my $slot = $waiter->finish->{value};
        $limit *= 2 if !$slot;
        next if !$slot;
        $waiter->shows("SELECT slot, scope, acquired_at IS NOT NULL FROM advisory.locks
                WHERE pid = pg_backend_pid() AND kind = 'semaphore'", '1|session|1',
                'try_acquire, its own timeout: a slot that was granted counts');
        is($waiter->warned("SELECT advisory.release('race', 'only')"), '',
            'and is released without a warning');
        $waiter->disconnect;
        $done++;
    }
    is($done, REPETITIONS, 'try_acquire: caught in time');
}

# The server's own function in the same race, to show that the race happens.
my $waiter = session();
my ($result, $limit) = (undef, FIRST_LIMIT_MS);
while (!$result && $limit < FIRST_LIMIT_MS * 2**TRIES) {
    $result = race($waiter->run("SET lock_timeout = '${limit}ms'"),
        "SELECT pg_advisory_lock(advisory.key('race', 'a'))", $limit);
    $limit *= 2;
}
is($result->{state}, '55P03', 'pg_advisory_lock() ends with an error');
ok(held($waiter), 'and holds the lock (so the test can fail)');

# If both its own timeout and statement_timeout have passed when the waiter looks, the server
# reports the lock timeout only. The statement must end all the same.
$limit = 2 * FIRST_LIMIT_MS;
for my $call ("advisory.try_lock('race', 'a', '${limit}ms')",
    "advisory.try_lock_all('race', ARRAY['a', 'b'], '${limit}ms')",
              "advisory.try_xact_lock('race', 'a', '${limit}ms')") {
    $waiter = session()->run("SET statement_timeout = '" . 2 * $limit . "ms'");
    $holder->value("SELECT advisory.lock('race', 'a')");
    waits($observer, $waiter, "SELECT $call, pg_sleep(10)");
    kill STOP => $waiter->pid or die 'cannot stop the process ' . $waiter->pid . ": $!\n";
    sleep 2.5 * $limit / 1000;
    kill CONT => $waiter->pid;
    $waiter->ends('57014', "$call: statement_timeout ends the statement");
    $holder->value("SELECT advisory.unlock('race', 'a')");
    $observer->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?", 0,
        'and nothing is held', $waiter->pid);
}

done_testing();
