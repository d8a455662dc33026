# A server under the load of many workers (Stress::Worker), which others cancel and terminate; and
# the checks when the load has ended.
package Stress::Load;

use AdvisoryTest;
use Exporter 'import';
use File::Basename qw(dirname);
use List::Util qw(max sum0);
use POSIX qw(WNOHANG);
use Storable qw(retrieve store);
use Stress::Model;
use Stress::Worker;
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(slurp);

# A worker that is silent for so long waits for something that does not come.
use constant { STUCK_S => 40, END_S => 30, WOKEN_S => 0.3, LOG_LINES => 30 };

# How many sessions there are for a lock of each type of name, for a semaphore, and for a lease; and
# the most slots that anybody says.
use constant { FOR_A_LOCK => 1, FOR_A_SEMAPHORE => 3, FOR_A_LEASE => 8, SLOTS => 6 };

# Whatever ends this process also ends those that it started.
my @loads;
END {
    my $status = $?;
    kill TERM => keys %{ $_->{children} } for @loads;
    $? = $status;
}

# new(sessions => …, seed => …, settings => [of the server], may => [SQLSTATEs that are no
# violation], server => one that is there, semaphores => how many, only_sets => see Worker).
sub new ($class, %how) {
    my $self = bless { counts => {}, errors => {}, figures => {}, children => {}, %how }, $class;
    $self->{server} //= own_server(
        'max_connections=' . ($how{sessions} + 30),
        'max_prepared_transactions=' . 2 * $how{sessions},
        'deadlock_timeout=50ms', 'restart_after_crash=on', 'log_lock_waits=off',
        'log_min_messages=log', 'autovacuum_naptime=5s', @{ $how{settings} // [] });
    push @loads, $self;
    $self->{directory} = $self->{server}{ADVISORY_EXT_TMP};
    $self->{look} = $self->observer;
    $self->make_plan;
    $self->make_tables;
    $self->{model} =
        Stress::Model->new(path => "$self->{directory}/model.$$", workers => $how{sessions},
        resources => scalar @{ $self->{plan}{resources} },
        leases => scalar @{ $self->{plan}{leases} });
    return $self;
}

sub observer ($self) { return session(server => $self->{server}, application => 'look') }

# ---- What there is to lock -----------------------------------------------------------------------

# Resources are locks and slots, which have numbers. {call} is for SQL, and {tag} what pg_locks
# shows.
sub make_plan ($self) {
    $self->{look}->run('CREATE EXTENSION advisory_ext');
    my (@resources, %plan);
    my $add = sub (%resource) {
        push @resources, { %resource, index => scalar @resources };
        return $resources[-1];
    };
    for my $number (1 .. 3 + $self->{sessions} / FOR_A_LOCK) {
        my $uuid = sprintf '00000000-0000-4000-8000-%012d', $number;
        for my $lock ([ text => "'lock $number'", "lock $number" ], [ bigint => $number, $number ],
                [ uuid => "'$uuid'::uuid", $uuid ]) {
            my ($type, $name, $text) = @$lock;
            my $key = $self->{look}->value("SELECT advisory.key('stress', $name)");
            my $resource = $add->(what => "lock $name", name => $name, text => $text,
                call => "'stress', $name", key => $key, tag => "$key:1");
            push @{ $plan{locks} }, $resource;
            push @{ $plan{locks_of}{$type} }, $resource;
        }
    }
    my $semaphores = $self->{semaphores} // 3 + int $self->{sessions} / FOR_A_SEMAPHORE;
    for my $number (0 .. $semaphores - 1) {
        my $call = "'stress', 'semaphore $number'";
        my $key = $self->{look}->value("SELECT advisory.key($call)");
        my @slots = map {
            $add->(what => "slot $_ of semaphore $number", slot => $_, semaphore => $number,
                call => $call, tag => "$key:" . (16384 + $_))
        } 1 .. SLOTS;
        push @{ $plan{semaphores} },
            { call => $call, key => $key, k => 1 + $number % 4,
                slots => [ map { $_->{index} } @slots ] };
    }
    $plan{leases} = [
        map { { index => $_, call => "'stress', 'lease $_'" } } 0 .. 1
            + $self->{sessions} / FOR_A_LEASE ];
    $self->{plan} = { %plan, resources => \@resources };
    return;
}

sub make_tables ($self) {
    my $tables = dirname(__FILE__) . '/tables.sql';
    local $ENV{PGHOST} = $self->{server}{PGHOST};
    system("$ENV{PG_BINDIR}/psql", '-XqAt', '-v', 'ON_ERROR_STOP=1', '-p', $self->{server}{PGPORT},
        '-f', $tables, 'postgres') == 0 or die "$tables fails\n";
    my $look = $self->{look};
    for my $resource (map { $_->{index} } @{ $self->{plan}{resources} }) {
        $look->run("INSERT INTO stress.counter VALUES ($resource, 0)",
            "INSERT INTO stress.fenced VALUES ($resource, 0, 0)",
            "CREATE SEQUENCE stress.alone_$resource");
    }
    for my $semaphore (@{ $self->{plan}{semaphores} }) {
        $look->run("INSERT INTO stress.slot
                VALUES ($semaphore->{key}, $_, $semaphore->{slots}[$_ - 1])")
                    for 1 .. @{ $semaphore->{slots} };
    }
    $look->run(map { "GRANT ALL ON ALL $_ IN SCHEMA stress TO PUBLIC" } qw(TABLES SEQUENCES));
    return;
}

# ---- The processes -------------------------------------------------------------------------------

# Runs the code in another process, which leaves no trace in this one's sessions and servers.
sub spawn ($self, $name, $code) {
    my $path = "$self->{directory}/$name.$$";
    my $child = fork // die "cannot fork: $!\n";
    if (!$child) {
        $SIG{TERM} = $SIG{INT} = 'DEFAULT';
        open STDERR, '>', "$path.err" or POSIX::_exit(2);
        my $result = eval { $code->($self->{model}->reopened) };
        print STDERR $@ if !$result;
        store $result, $path if $result;
        close STDERR;
        POSIX::_exit($result ? 0 : 1);
    }
    $self->{children}{$child} = { name => $name, path => $path };
    return $child;
}

sub start ($self) {
    $self->{started} = time;
    for my $number (0 .. $self->{sessions} - 1) {
        $self->spawn("worker-$number", sub ($model) {
            return Stress::Worker->new(
                number => $number, model => $model, server => $self->{server},
                plan => $self->{plan}, seed => $self->{seed} * 1000 + $number,
                may => $self->{may}, only_sets => $self->{only_sets})->work;
        });
    }
    $self->{trouble} = $self->spawn('trouble', sub { $self->make_trouble(@_) });
    return;
}

# Cancels statements and ends sessions, at random, until the run ends.
sub make_trouble ($self, $model) {
    srand $self->{seed} * 1000 + 999;
    my ($session, %done);
    while ($model->state ne 'end' && !-e "$self->{directory}/no_trouble") {
        sleep rand 0.04;
        next if $model->state ne 'go';
        $session //= eval { $self->observer } or next;
        my $worker = int rand $self->{sessions};
        next if !$model->pid($worker);
        my $cancels = rand() < 0.9;
        my ($pid) = $cancels ? $model->pid($worker) : $model->doom([$worker]);
        my $function = $cancels ? 'pg_cancel_backend' : 'pg_terminate_backend';
        my $result = eval {
            $session->query("SELECT $function(pid) FROM pg_stat_activity
                WHERE pid = $pid AND application_name = 'stress'")
        };
        if (!$result || $result->{state}) { undef $session; next }
        $done{ $cancels ? 'cancels' : 'sessions terminated' }++;
    }
    $session->disconnect if $session;
    return { counts => {}, errors => {}, figures => \%done };
}

# Watches the load for so many seconds. Dies when something is violated.
sub watch ($self, $seconds) {
    my $end = time + $seconds;
    while (time < $end) {
        $self->look_after;
        sleep 0.2;
    }
    return;
}

# One look at the processes.
sub look_after ($self) {
    $self->reap;
    my $model = $self->{model};
    if (!defined $model->violation && $model->state eq 'go') {
        for my $worker (0 .. $self->{sessions} - 1) {
            my $touched = $model->last_touch($worker) or next;
            next if time - $touched < STUCK_S;
            # What it waits for is worth more than that it waits.
            my $waits = eval {
                join "\n", map {
                    $_->[0]
                } @{ $self->{look}->rows('SELECT * FROM advisory.wait_tree()') }
            } // $@;
            eval { $model->violate("worker $worker waits for " . STUCK_S . " seconds:\n$waits") };
            last;
        }
    }
    $self->fail($model->violation) if defined $model->violation;
    return;
}

sub reap ($self) {
    while ((my $child = waitpid -1, WNOHANG) > 0) {
        my $status = $?;
        my $process = delete $self->{children}{$child} or next;
        if ($status) {
            eval {
                $self->{model}->violate(
                    "the process $process->{name} ended with status $status: "
                        . slurp("$process->{path}.err"))
            };
            next;
        }
        my $result = retrieve($process->{path});
        for my $kind (qw(counts errors figures)) {
            $self->{$kind}{$_} += $result->{$kind}{$_} for keys %{ $result->{$kind} };
        }
        $self->{longest} = max($self->{longest} // 0, $result->{longest} // 0);
        unlink $process->{path}, "$process->{path}.err";
    }
    return;
}

sub slurp ($path) {
    open my $file, '<', $path or return '';
    local $/ = undef;
    return <$file> // ''
}

# Ends the load: first the trouble, since a session that is ended while its worker leaves would look
# lost.
sub finish ($self) {
    open my $file, '>', "$self->{directory}/no_trouble" or die "no_trouble: $!\n";
    close $file;
    wait_until('the trouble ends', sub {
        $self->look_after;
        !$self->{children}{ $self->{trouble} }
    }, END_S);
    $self->{seconds} = time - $self->{started};
    $self->{model}->set_state('end');
    my $end = time + END_S + STUCK_S;
    while (%{ $self->{children} }) {
        $self->look_after;
        sleep 0.05;
        $self->fail('these processes do not end: ' . join ' ',
            map { $_->{name} } values %{ $self->{children} }) if time > $end;
    }
    $self->look_after;
    unlink "$self->{directory}/no_trouble";
    return;
}

# Prints everything that is needed to repeat the run, and dies.
sub fail ($self, $text) {
    my $model = $self->{model};
    $model->set_state('end');
    print "VIOLATED: $text\nwith SEED=$self->{seed} SESSIONS=$self->{sessions}. The last "
        . "operations of each worker:\n";
    for my $worker (0 .. $self->{sessions} - 1) {
        print "  worker $worker, process ", $model->pid($worker), ":\n";
        print "    $_\n" for $model->operations($worker);
    }
    die "$text\n";
}

# The end of each server's log, without the lines that show how a session uses its memory. The
# server tells of a crash a moment later.
sub print_logs {
    sleep 1;
    for my $load (@loads) {
        my @lines = grep { /^\d{4}-/ } split /\n/, slurp($load->{server}{ADVISORY_EXT_LOG});
        print "The end of the log of $load->{server}{ADVISORY_EXT_DATADIR}:\n",
            map { "  $_\n" } @lines > LOG_LINES ? @lines[ -LOG_LINES .. -1 ] : @lines if @lines;
    }
    return;
}

# ---- The end -------------------------------------------------------------------------------------

# When only prepared transactions hold locks, everything must work: each lock and each slot is free,
# and waiters are woken.
sub check_works ($self) {
    my ($one, $other) = ($self->observer, $self->observer);
    # It also looks when it checks for a deadlock.
    $other->run(q(SET deadlock_timeout = '10s'));
    my @waits;
    my %prepared = map {
        $_->[0] => 1
    } @{ $one->rows(q(SELECT (classid::bigint << 32 | objid::bigint) || ':' || objsubid
        FROM pg_locks WHERE locktype = 'advisory')) };
    for my $lock (@{ $self->{plan}{locks} }) {
        my $is_free = $one->value("SELECT advisory.try_lock($lock->{call})");
        $self->fail(
            "$lock->{what} is "
                . ($is_free ? 'free, though a prepared transaction holds it' : 'not free'))
                if !$is_free != !!$prepared{ $lock->{tag} };
        $one->run("SELECT advisory.unlock($lock->{call})") if $is_free;
    }
    for my $semaphore (@{ $self->{plan}{semaphores} }) {
        my @slots = grep {
            !$prepared{ $self->{plan}{resources}[ $semaphore->{slots}[ $_ - 1 ] ]{tag} }
        } 1 .. SLOTS;
        next if !@slots;
        # No slot stays marked: all that are free can be had at once, and then there are none.
        my $got = $one->value("SELECT array_to_string(advisory.try_acquire_many(
            $semaphore->{call}, @{[SLOTS]}, @{[scalar @slots]}), ' ')") // 'none';
        my $more = $one->value("SELECT advisory.try_acquire($semaphore->{call}, @{[SLOTS]})");
        $self->fail("of $semaphore->{call} the slots @slots are free, and the slots $got are had"
            . (defined $more ? ", and then $more" : '')) if $got ne "@slots" || defined $more;
        $other->start("SELECT advisory.acquire($semaphore->{call}, @{[SLOTS]})");
        wait_until('it waits', sub {
            $other->is_done || $one->value('SELECT count(*) FROM advisory.locks WHERE NOT granted')
        });
        my $released = time;
        $one->run("SELECT advisory.release($semaphore->{call}, $slots[0])");
        my $slot = $other->finish(END_S)->{value};
        push @waits, time - $released;
        $self->fail(
            "slot $slots[0] of $semaphore->{call} is released, and the one who waits has $slot")
                if $slot != $slots[0];
        $_->run(q(SELECT advisory.unlock_all('stress'))) for $one, $other;
    }
    # A waiter that nobody wakes looks once a second.
    $self->fail(sprintf 'a waiter gets a slot %.3f s after its release (median)', median(@waits))
        if @waits && median(@waits) > WOKEN_S;
    my ($lock) = grep { !$prepared{ $_->{tag} } } @{ $self->{plan}{locks} };
    my $token = $one->value(
        "SELECT advisory.token($lock->{call}) FROM advisory.lock($lock->{call})");
    $self->fail("token $token is given after " . $self->{model}->greatest_token)
        if $token <= $self->{model}->greatest_token;
    $_->disconnect for $one, $other;
    return;
}

# When all sessions have ended: no lock is held, no session waits, nothing has crashed.
sub check_end ($self, %how) {
    my $look = $self->{look} = $self->observer;
    my $held = q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory');
    # Sessions whose sockets were closed may still have to find that out.
    eval { wait_until('nothing is held', sub { !$look->value($held) }, END_S) }
        or $self->fail(
            'when all have left there is still held: ' . join '; ',
            map {
                join ' ', map { $_ // 'null' } @$_
            } @{ $look->rows(
                q(SELECT l.*, a.query FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
                    WHERE locktype = 'advisory')) });
    for my $view (qw(locks semaphores waits activity)) {
        # A lease whose TTL is not over is shown as activity.
        my $left = $look->value(
            "SELECT count(*) FROM advisory.$view"
                . ($view eq 'activity' ? q( WHERE mode <> 'lease') : ''));
        $self->fail("advisory.$view has $left rows when all have left") if $left;
    }
    $self->fail('a prepared transaction is left')
        if $look->value('SELECT count(*) FROM pg_prepared_xacts');
    $self->check_log(%how);
    $self->check_cancels;
    return;
}

sub check_log ($self, %how) {
    my ($line) = grep {
        /PANIC:|TRAP:|terminated by signal/ && !($how{crashes} && /signal 9\b/)
    } split /\n/, slurp($self->{server}{ADVISORY_EXT_LOG});
    $self->fail("the server's log has: $line") if defined $line;
    my @cores = glob "$self->{server}{ADVISORY_EXT_DATADIR}/core*";
    $self->fail("there are core files: @cores") if @cores;
    return;
}

# A cancel that comes after the grant is rare. If many cancelled requests leave a lock behind, that
# is something else.
sub check_cancels ($self) {
    my ($cancelled, $granted) = map {
        $self->{figures}{$_} // 0
    } 'cancelled requests of session-level locks', 'granted, though cancelled';
    $self->fail(
        "of $cancelled cancelled requests of session-level locks $granted left something held")
            if $granted > 5 + 0.05 * $cancelled;
    return;
}

# Bytes of dynamic shared memory that the server's processes have mapped.
sub shared_bytes ($self) {
    my %bytes;
    for my $pid (map { $_->[0] } @{ $self->{look}->rows('SELECT pid FROM pg_stat_activity') }) {
        $bytes{$_} = -s $_ // 0 for slurp("/proc/$pid/maps") =~ m{ (/dev/shm/PostgreSQL\.\d+)}g;
    }
    return sum0 values %bytes;
}

# ---- Figures -------------------------------------------------------------------------------------

sub acquisitions ($self) { return sum0 values %{ $self->{counts} } }

sub report ($self) {
    my $seconds = $self->{seconds};
    my $total = $self->acquisitions;
    printf "  %d acquisitions in %d s by %d sessions: %.0f a second\n", $total, $seconds,
        $self->{sessions}, $total / $seconds if $total;
    my $list = sub ($title, $of) {
        print "  $title\n";
        printf "    %10d  %9.2f/s  %s\n", $of->{$_}, $of->{$_} / $seconds, $_
            for sort { $of->{$b} <=> $of->{$a} } keys %$of;
    };
    $list->('acquisitions by function', $self->{counts}) if $total;
    $list->('errors by SQLSTATE', $self->{errors});
    $list->('what else', $self->{figures});
    return;
}

1;
