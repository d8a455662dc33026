# Phase memory: the lock table, shared memory, dynamic shared memory, the table of names and the
# memory of a session are full, for some time or all the time, under load. Errors are the documented
# ones, a COMMIT never fails for it, and everything recovers.
package Stress::Memory;

use AdvisoryTest;
use Stress::Load qw(slurp);
use Time::HiRes qw(sleep time);

# More locks than fit into any lock table here, and a range of keys of their own for them.
use constant { MANY => 1_000_000, HOG_S => 0.3, SMALL_SHM => '3M' };

# The documented errors: out of memory, which a full lock table is, too; and the guard of the lock
# table.
my @FULL = qw(53200 53400);

# What is full; the server's settings; who fills it; whether it needs a small /dev/shm, which only
# this process and its servers see.
my @CASES = (
    { name => 'lock table', settings => [ 'max_locks_per_transaction=10' ],
        hog => \&fill_lock_table },
    { name => 'lock table, preloaded, no guard',
        settings => [ 'max_locks_per_transaction=10', 'shared_preload_libraries=advisory_ext',
            'advisory_ext.pool_limit=0' ], hog => \&fill_lock_table },
    { name => 'table of names', settings => [ 'advisory_ext.max_names=20' ], hog => \&fill_names },
    { name => 'no names at all', settings => [ 'advisory_ext.max_names=0' ], hog => \&fill_names },
    { name => 'dynamic shared memory (posix)',
        settings => [ 'dynamic_shared_memory_type=posix', 'advisory_ext.max_names=1000000' ],
        hog => \&fill_names, small_shm => 1 },
    { name => 'dynamic shared memory (in the main one)',
        settings => [ 'dynamic_shared_memory_type=posix', 'min_dynamic_shared_memory=2MB',
            'advisory_ext.max_names=1000000' ],
        hog => \&fill_names, small_shm => 1 },
    { name => 'dynamic shared memory (sysv)',
        settings => [ 'dynamic_shared_memory_type=sysv', 'max_locks_per_transaction=10' ],
        hog => \&fill_lock_table },
    { name => 'dynamic shared memory (mmap)',
        settings => [ 'dynamic_shared_memory_type=mmap', 'max_locks_per_transaction=10' ],
        hog => \&fill_lock_table },
);

sub run (%how) {
    my $inner = $ENV{STRESS_MEMORY_CASE};
    if (defined $inner) { return load(%how, %{ $CASES[$inner] }) }
    for my $number (0 .. $#CASES) {
        my $case = $CASES[$number];
        print "-- full: $case->{name}\n";
        if    (!$case->{small_shm}) { load(%how, %$case) }
        elsif (!can_mount())        {
            print "  skipped: a small /dev/shm cannot be mounted here, in a namespace of its own\n"
        }
        else                        { in_small_shm($number, %how) }
    }
    print "-- full: the memory of a session\n";
    session_memory(%how);
    return;
}

sub can_mount {
    return $> == 0 && system('unshare -m mount -t tmpfs tmpfs /dev/shm 2>/dev/null') == 0
}

# Runs one case in a process whose /dev/shm is small. The mount ends with it, and nobody else sees
# it.
sub in_small_shm ($number, %how) {
    local %ENV = (%ENV, STRESS => 'memory', STRESS_MEMORY_CASE => $number, SEED => $how{seed});
    system('unshare', '-m', 'sh', '-c',
        "mount -t tmpfs -o mode=1777,size=@{[SMALL_SHM]} tmpfs /dev/shm && exec \"\$\@\"", 'sh',
        $^X, $0) == 0
        or die "case $number fails with a small /dev/shm\n";
    return;
}

# A load beside a process that fills the memory and releases it, by turns.
sub load (%how) {
    my $load = Stress::Load->new(
        %how, sessions => $how{sessions} > 12 ? 12 : $how{sessions}, may => \@FULL);
    $load->{look}->run('CREATE TABLE stress.figure (fulls int)');
    $load->start;
    my $hog = $load->spawn(
        'hog', sub ($model) {
            return { counts => {}, errors => {}, figures => fill($load, $model, $how{hog}) }
        });
    $load->watch($how{seconds} / @CASES);
    $load->finish;
    $load->check_end;
    my $recovers = time;
    $load->check_works;
    my $fulls = $load->{figures}{'times that the memory was full'} // 0;
    $load->fail('the memory was never full') if !$fulls;
    printf '  %d acquisitions by %d sessions, %.0f a second; %d times full; errors: %s; '
        . "connections that failed: %d; works again in %.1f s\n",
        $load->acquisitions, $load->{sessions},
        $load->acquisitions / $load->{seconds}, $fulls,
        join(', ', map { "$_: $load->{errors}{$_}" } sort keys %{ $load->{errors} }),
        $load->{figures}{'connections that failed'} // 0,
        time - $recovers;
    $load->{server}->stop;
    return;
}

# Fills the memory again and again, by a function that returns whether it was full. Returns figures.
sub fill ($load, $model, $fill) {
    my ($session, $fulls) = (undef, 0);
    while ($model->state ne 'end') {
        $session //= eval { $load->observer } or next;
        $fulls++ if $fill->($session);
    }
    $session->disconnect if $session;
    return { 'times that the memory was full' => $fulls };
}

# Without the extension, so that its guard does not stop it.
sub fill_lock_table ($session) {
    my $result = $session->query(
        "SELECT count(pg_advisory_lock_shared(1, i)) FROM generate_series(1, @{[MANY]}) AS i");
    sleep rand HOG_S;
    $session->query('SELECT pg_advisory_unlock_all()');
    sleep rand HOG_S;
    return ($result->{state} // '') eq '53200';
}

# New names as long as there is room, and then some.
my ($number, $last) = (0, 0);
sub fill_names ($session) {
    my $result = $session->query(
        "DO \$\$ BEGIN FOR i IN 1 .. 200 LOOP PERFORM advisory.xact_lock('name',
            repeat('x', 200) || $number + i); COMMIT; END LOOP; END \$\$");
    die "$result->{message}\n" if $result->{state};
    $number += 200;
    my $missed = $session->value(
        'SELECT not_stored + CASE WHEN max_names < 1000 THEN evicted
            ELSE 0 END + (max_names = 0)::int FROM advisory.directory');
    my $is_full = $missed > $last || $missed == 1;
    $last = $missed;
    return $is_full;
}

# ---- The memory of a session ---------------------------------------------------------------------

# Calls that need memory, and which a session without any is given; each is done, or fails for it.
my @CALLS = (
    (map {
        my $scope = $_;
        map { "SELECT advisory.$scope$_" } (
            map { ("lock$_", "lock$_, '5ms'") } "('m', 'a')", "_shared('m', 'b')", '_key(7)')
    } '', 'xact_', 'try_', 'try_xact_'),
    (map {
        my $size = $_;
        map {
            "SELECT advisory.$_('m', ARRAY(SELECT 'n' || i FROM generate_series(1, $size) AS i))"
        } qw(lock_all try_xact_lock_all try_lock_any)
    } 10, 2000),
    (map { "SELECT advisory.$_('m', 's', 4)" } qw(try_acquire try_xact_acquire)),
    q(SELECT advisory.try_acquire_any('m', ARRAY['s', 't'], 4, 2)),
    q(CALL advisory.await_lock('m', 'c', '5ms')),
    q(CALL advisory.await_acquire('m', 's', 4, '5ms')), q(CALL advisory.run('m', 'd', 'SELECT 1')),
    q(CALL advisory.run('m', 'd', 'SELECT 1', slots => 2)),
    q(SELECT advisory.token('m', 'held')), q(SELECT advisory.check_token('m', 'held', 1)),
    q(SELECT token FROM advisory.try_lease('m', 'l', '1ms')),
    q(SELECT advisory.claim('m', 'c', '1ms')),
    q(SELECT advisory.key('m', repeat('x', 100000))),
    (map { "SELECT count(*) FROM advisory.$_" } qw(activity locks waits semaphores leases stats
        leaks pressure pressure_by_backend known_keys)),
    q(SELECT count(*) FROM advisory.holders('m', 'held')),
    'SELECT count(*) FROM advisory.wait_tree()', q(SELECT advisory.unlock_all('m')),
);

# A session takes locks and slots, gets no more memory, and commits; or calls something.
sub session_memory (%how) {
    srand $how{seed};
    my $load = Stress::Load->new(
        %how, sessions => 1, settings => ['max_locks_per_transaction=1000']);
    my $look = $load->{look};
    my $waiter = $load->observer;
    my (%done, %states, $session);
    my $end = time + $how{seconds} / @CASES;
    while (time < $end) {
        # Now one that is new, now one that has memory left over from before.
        if (!$session || rand() < 0.3) {
            $session->disconnect if $session;
            $session = session(server => $load->{server}, application => 'hungry');
        }
        $session->run(
            q(SELECT advisory.lock('m', 'held')), 'BEGIN',
            "SELECT advisory.xact_lock_all('m', ARRAY(SELECT 'x' || i
                FROM generate_series(1, @{[1 + int rand 100]}) AS i))",
            map { "SELECT advisory.xact_acquire('m', 'slots', 3)" } 1 .. 3);
        $waiter->start(q(SELECT advisory.acquire('m', 'slots', 3)));
        wait_until('it waits', sub {
            $waiter->is_done
                || $look->value(q(SELECT count(*) FROM advisory.locks WHERE NOT granted))
        });
        limit($session, 1024 * (0, 30, 100, 300, 1000, 3000)[ rand 6 ]);
        my $way = rand() < 0.5 ? 'COMMIT' : $CALLS[ rand @CALLS ];
        my $result = $session->query($way);
        limit($session, undef);
        $load->fail("a session without memory is lost in $way: $result->{message}")
            if $session->dbh->ping < 1;
        my $state = $result->{state} // 'done';
        $load->fail("without memory: $way: $state $result->{message}")
            if $state ne 'done' && ($state ne '53200' || $way eq 'COMMIT');
        $done{ $way eq 'COMMIT' ? 'COMMIT' : 'calls' }++;
        $states{$state}++ if $way ne 'COMMIT';
        $session->run(rand() < 0.5 ? 'ROLLBACK' : 'COMMIT') if $way ne 'COMMIT';
        my $slot = $waiter->finish(30)->{value};
        $load->fail("after $way the one who waits got slot " . ($slot // 'null')) if !$slot;
        $waiter->run('SELECT pg_advisory_unlock_all()');
        $session->run('SELECT pg_advisory_unlock_all()');
        my $left = $look->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'));
        $load->fail("after $way $left locks are left") if $left;
    }
    $_->disconnect for $session, $waiter;
    $load->check_log;
    $load->check_works;
    print '  ', join(', ', map { "$_: $done{$_}" } sort keys %done), '; the calls: ',
        join(', ', map { "$_: $states{$_}" } sort keys %states), "\n";
    $load->{server}->stop;
    return;
}

# A session's address space may grow by so many bytes; by any number if that is undefined.
sub limit ($session, $more) {
    my $limit = 'unlimited';
    if (defined $more) {
        my ($pages) = split ' ', slurp('/proc/' . $session->pid . '/statm');
        $limit = $pages * 4096 + $more;
    }
    # The process's owner may do that, as long as the hard limit stays.
    my $owner = $ENV{ADVISORY_EXT_SERVER_USER};
    system(($owner
        ? ('setpriv', '--reuid', $owner, '--regid', (getpwnam $owner)[3], '--clear-groups', '--')
        : ()), 'prlimit', '--pid', $session->pid, "--as=$limit:") == 0
        or die "prlimit: $?\n";
    return;
}

1;
