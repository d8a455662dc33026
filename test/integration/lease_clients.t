#!/usr/bin/env perl
# The leases of clients/python, clients/node and examples/java/Lease.java themselves, all
# at the same time: the clients renew them during the work, even after a connection was killed or is
# dead, and report the loss of a lease to their user, in every possible case. Runs alone: its leases
# end after a second or two unless a client renews them.
use AdvisoryTest;
use FindBin;
use Launch;
use POSIX qw(WUNTRACED);
use Programs;
use Time::HiRes qw(sleep time);

# What a busy machine may take longer, in seconds.
use constant SLACK => 0.7;

# How to run the worker of each.
my $port = free_port();
my %commands;
if (my $python = python('psycopg2')) {
    $commands{Python} = {
        program     => [ $python, "$FindBin::Bin/lease_client.py" ],
        environment => { PYTHONPATH => "$FindBin::Bin/../../clients/python/src" },
    };
}
if (my $modules = node_modules()) {
    $commands{Node} = {
        program     => [ 'node', "$FindBin::Bin/node/lease.js" ],
        environment => { NODE_PATH => $modules },
    };
}
if (my @java = java(examples('java/Lease.java'))) {
    $commands{Java} = { program => [ @java, 'Lease' ] };
}
my @languages = sort keys %commands
    or plan skip_all => 'neither psycopg2 nor node-postgres nor the JDBC driver is here';

my $server = own_server('listen_addresses=127.0.0.1', "port=$port");
my %look;

# A database for each language, so that they do not see each other's lease.
for my $language (@languages) {
    session(server => $server)->run(qq(CREATE DATABASE "$language"));
    connect_to($language);
    $look{$language}->run(
        'CREATE EXTENSION advisory_ext',
        'CREATE TABLE report (line bigint GENERATED ALWAYS AS IDENTITY, worker text,
            token bigint)');
}

sub connect_to ($language) {
    $look{$language} = session(server => $server, database => $language)
        ->run('SET synchronous_commit = local');
    return;
}

# work('Python', 'worker', steps, seconds for each, TTL): the example runs.
sub work ($language, @how) { return work_in($language, $language, @how) }

sub work_in ($database, $language, $worker, @more) {
    my @where = $language eq 'Java'
        ? ("jdbc:postgresql://127.0.0.1:$port/$database?user=postgres", $worker)
        : ($worker);
    return launch({ %{ environment_of($language) }, PGDATABASE => $database },
        @{ $commands{$language}{program} }, @where, @more);
}

sub environment_of ($language) {
    return { %{ $commands{$language}{environment} // {} }, PGDATABASE => $language,
        map { $_ => $server->{$_} } qw(PGHOST PGPORT PGUSER) };
}

sub token_of ($program) { return $program->says(qr/has the lease, token (\d+)/) }

# For each language at the same time: what comes first for all, and so on.
sub each_of :prototype(&) ($code) {
    my @results;
    for my $language (@languages) {
        local $_ = $language;
        push @results, $language => scalar $code->();
    }
    return @results;
}

sub look { return $look{$_}->value(@_) }

my $HAS_REPORTED = 'SELECT count(*) FROM report WHERE worker = ?';

sub lease { return $look{$_}->rows('SELECT token, owner, state FROM advisory.leases') }

sub renewals { return look(q{SELECT renewals FROM advisory.leases WHERE state = 'held'}) // 0 }

# The session that renews the worker's lease.
sub renewing ($worker) {
    return look(
        'SELECT pid FROM pg_stat_activity
            WHERE application_name = ? AND datname = current_database()
            ORDER BY backend_start DESC', "$worker-lease");
}

# The session of that worker that waits for the lease.
sub waiting ($worker) {
    return look(q{SELECT pid FROM advisory.locks WHERE kind = 'lease' AND NOT granted
            AND database = current_database() AND application_name = ?}, "$worker-lease");
}

# When the present call of that session began.
sub asked { return look('SELECT query_start FROM pg_stat_activity WHERE pid = ?', waiting($_[0])) }

# ---- All goes well -------------------------------------------------------------------------------

{
    # Long enough for all to have started before the first one ends, also on a busy machine.
    use constant STEPS => 120;
    my %first = each_of { work($_, 'first', STEPS, 0.1, 2.4) };
    my %token = each_of { token_of($first{$_}) };
    my %second = each_of { work($_, 'second', 3, 0.1, 2.4) };
    for (@languages) {
        wait_until('it is renewed', sub { renewals() });
        is_deeply(lease(), [ [ $token{$_}, 'first', 'held' ] ],
            "$_: the lease is renewed in the background");
        is($second{$_}->said, '', "$_: and so another worker waits");
    }
    for (@languages) {
        $first{$_}->ends(0, qr/^first is done$/m,
            "$_: the work ends well, for longer than the TTL");
        $second{$_}->ends(0, qr/^second has the lease.*\nsecond is done$/m,
            "$_: and then that of the other one");
        is_deeply(lease(), [], "$_: both have ended their lease");
        is_deeply($look{$_}->rows('SELECT worker, count(*), count(DISTINCT token)
                FROM (SELECT * FROM report ORDER BY line) AS r GROUP BY 1 ORDER BY min(line)'),
            [ [ 'first', STEPS, 1 ], [ 'second', 3, 1 ] ], "$_: all lines are in the table");
    }
}

# The work fails.
{
    $look{$_}->run('ALTER TABLE report RENAME TO elsewhere') for @languages;
    my %worker = each_of { work($_, 'failing', 5, 0.1, 30) };
    for (@languages) {
        $worker{$_}->ends(1, qr/relation "report" does not exist/,
            "$_: if the work fails, the error comes out");
        is_deeply(lease(), [], "$_: and the lease is ended");
        $look{$_}->run('ALTER TABLE elsewhere RENAME TO report');
    }
}

# ---- The lease is taken away ---------------------------------------------------------------------

{
    use constant LONG_TTL => 2.4;
    my %worker = each_of { work($_, 'sleeper', 2, 60, LONG_TTL) };
    for (@languages) {
        $look{$_}->wait_until('it sleeps', $HAS_REPORTED, 'sleeper');
        wait_until('it was renewed', sub { renewals() });
        my $begun = time;
        is(look("SELECT advisory.break_lease('report', 'daily')"), 1, "$_: the lease is broken");
        $worker{$_}->says(qr/^sleeper: the lease is (lost)$/m);
        cmp_ok(time - $begun, '<', LONG_TTL / 3 + SLACK,
            "$_: its user is told by the next renewal");
        $worker{$_}->ends(1, qr/^sleeper stops: it was ended, or somebody else has it$/m,
            "$_: in the middle of its sleep, and the process ends");
        $look{$_}->shows($HAS_REPORTED, 1, "$_: without the next step", 'sleeper');
    }
}

# ---- Somebody else has it ------------------------------------------------------------------------

{
    each_of { look(q{SELECT token FROM advisory.lease('report', 'daily', '1 hour')}) };
    my %late = each_of { work($_, 'late', 1, 0, 1.2, 1) };
    my %waiter = each_of { work($_, 'waiter', 1, 0, 4.2) };
    $late{$_}->ends(1, qr/\Alate does not begin: somebody else has the lease\n\z/,
        "$_: after its timeout an error says that somebody else has the lease") for @languages;

    # Who waits goes on after its connection has been lost, and after a restart of the server, if
    # the server has answered it once.
    each_of {
        my $first;
        wait_until('it waits in its second call', sub {
            my $now = asked('waiter') // return 0;
            $first //= $now;
            return $now ne $first });
    };
    for my $way ('is killed', 'is lost by a restart') {
        my %before = each_of {
            my $pid;
            wait_until('it waits', sub { $pid = waiting('waiter') });
            $pid
        };
        if ($way eq 'is killed') { each_of { look('SELECT pg_terminate_backend(?)', $before{$_}) } }
        else {
            $server->ctl('stop', '-m', 'immediate');
            $_->disconnect for values %look;
            sleep 1;
            $server->ctl('start');
            connect_to($_) for @languages;
        }
        for (@languages) {
            my $pid;
            wait_until('it waits again', sub {
                $pid = waiting('waiter');
                $pid && $pid != $before{$_}
            });
            is($waiter{$_}->said, '',
                "$_: the connection $way, and the waiter goes on with a new one");
        }
    }
    each_of { look("SELECT advisory.break_lease('report', 'daily')") };
    $waiter{$_}->ends(0, qr/\Awaiter has the lease.*\nwaiter is done\n\z/, "$_: and gets the lease")
        for @languages;

    # But a mistake in the address comes out.
    for (@languages) {
        work_in('nowhere', $_, 'lost', 1, 0, 1.2)->ends(1, qr/"nowhere" does not exist/,
            "$_: if the server cannot be reached to begin with, the error comes out");
    }
}

# ---- The process is stopped ----------------------------------------------------------------------

{
    my %stopped = each_of { work($_, 'stopped', 1000, 0.05, 2.7) };
    my %token = each_of { token_of($stopped{$_}) };
    for (@languages) {
        $look{$_}->wait_until('it works', $HAS_REPORTED, 'stopped');
        # Not in the middle of a transaction, for nobody takes the lease over before that has ended.
        wait_until('it is stopped', sub {
            kill STOP => $stopped{$_}{pid};
            waitpid $stopped{$_}{pid}, WUNTRACED;
            sleep 0.1;      # the server does what it was sent before
            look(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stopped'
                    AND state = 'idle' AND datname = current_database()}) and return 1;
            kill CONT => $stopped{$_}{pid};
            return 0;
        });
    }
    my %next = each_of { work($_, 'next', 1, 60, 30) };
    for (@languages) {
        cmp_ok(token_of($next{$_}), '>', $token{$_},
            "$_: while a process is stopped for longer than its TTL, another one gets the lease");
        $look{$_}->wait_until('it works', $HAS_REPORTED, 'next');
        kill CONT => $stopped{$_}{pid};
        $stopped{$_}->ends(1, qr/^stopped: the lease is lost\nstopped stops: /m,
            "$_: the stopped one finds out when it goes on");
        is(look('SELECT worker FROM report ORDER BY line DESC LIMIT 1'), 'next',
            "$_: before it writes into the table");
        # One that does not look at all.
        is($look{$_}->query("SELECT advisory.check_lease('report', 'daily', ?)",
            $token{$_})->{state}, '55000', "$_: the table refuses its token");
        $next{$_}->kill;
        look("SELECT advisory.break_lease('report', 'daily')");
    }
}

# ---- Nothing is left behind ----------------------------------------------------------------------

for my $signal ('INT', 'TERM') {
    my %worker = each_of { work($_, 'interrupted', 1000, 0.1, 300) };
    each_of { token_of($worker{$_}) };
    # Of two that wait, one is killed. The other one must not have to wait for the dead one's TTL.
    my %dead = each_of { work($_, 'dead', 1, 0, 300) };
    each_of { wait_until('it waits', sub { waiting('dead') }) };
    each_of { kill KILL => $dead{$_}{pid} };
    my %next = each_of { work($_, 'next', 1, 0, 300) };
    each_of { wait_until('it waits', sub { waiting('next') }) };
    each_of { kill $signal => $worker{$_}{pid} };
    for (@languages) {
        $next{$_}->ends(0, qr/next is done/,
            "$_: SIG$signal ends the lease, and a dead waiter does not get it");
        $worker{$_}->finish;
        $dead{$_}->finish;
        is_deeply(lease(), [], "$_: no lease is left");
    }
}

# ---- The connection is lost ----------------------------------------------------------------------

{
    my %worker = each_of { work($_, 'renewer', 150, 0.1, 2.7) };
    my %token = each_of { token_of($worker{$_}) };
    my %session;
    for my $way ('killed', 'dead') {
        for (@languages) {
            $session{$_} = renewing('renewer');
            if ($way eq 'killed') { look('SELECT pg_terminate_backend(?)', $session{$_}) }
            else {
                # Not while it has its hands on something that everybody needs.
                wait_until('it has nothing to do', sub {
                    look(q{SELECT state = 'idle' FROM pg_stat_activity WHERE pid = ?}, $session{$_})
                });
                kill STOP => $session{$_};
            }
        }
        for (@languages) {
            my $new;
            my $before = renewals();
            wait_until('it is renewed on another connection', sub {
                $new = renewing('renewer') // 0;
                $new != $session{$_} && renewals() > $before
            });
            is_deeply(lease(), [ [ $token{$_}, 'renewer', 'held' ] ],
                "$_: the connection is $way, and the lease is renewed over another one");
        }
    }
    kill CONT => $_ for values %session;
    $worker{$_}->ends(0, qr/\Arenewer has the lease.*\nrenewer is done\n\z/,
        "$_: and the work goes through to the end") for @languages;
}

# ---- The server is away --------------------------------------------------------------------------

# The last renewal takes long, for another session has the lease's row. Then nothing comes back any
# more.
{
    use constant { TTL => 4.2, RENEWAL => 0.9 };
    my %worker = each_of { work($_, 'lonely', 2, 60, TTL) };
    for (@languages) { wait_until('it is renewed', sub { renewals() }) }
    $look{$_}->run('BEGIN', 'SELECT FROM advisory._leases FOR UPDATE') for @languages;
    my (%asked, %answered);
    wait_until('the last renewals are through', sub {
        for (@languages) {
            if (!$asked{$_}) {
                $asked{$_} = time
                    if look(q{SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted},
                        renewing('lonely'));
            } elsif (!$answered{$_} && time >= $asked{$_} + RENEWAL) {
                my $before = renewals();
                $look{$_}->run('COMMIT');
                wait_until('it is renewed', sub { renewals() > $before });
                $look{$_}->run('BEGIN', 'SELECT FROM advisory._leases FOR UPDATE');
                $answered{$_} = 1;
            }
        }
        return keys %answered == @languages });
    $server->ctl('stop', '-m', 'immediate');
    $_->disconnect for values %look;
    my %lost;
    wait_until('it is lost', sub {
        for (@languages) {
            $lost{$_} //= time - $asked{$_} if $worker{$_}->said =~ /the lease is lost/
        }
        return keys %lost == @languages });
    for (@languages) {
        cmp_ok($lost{$_}, '>', TTL - SLACK,
            "$_: the server is away, and the lease is not lost before the TTL is over");
        cmp_ok($lost{$_}, '<', TTL + RENEWAL - 0.25,
            "$_: but then, from before the call on that was answered late");
        $worker{$_}->ends(1, qr/^lonely stops: no renewal has succeeded for 4/m,
            "$_: the process ends, though the server is away");
    }
    $server->ctl('start');
    connect_to($_) for @languages;
}

# ---- The wait for a synchronous standby is cancelled ---------------------------------------------

sub standby ($name) {
    set_standby_names((values %look)[0], $name);
    each_of { wait_until('it is so', sub { look('SHOW synchronous_standby_names') eq $name }) };
    return;
}

# Cancels each such wait until the program has come to its end.
sub cancel_until_done (@programs) {
    my ($session) = values %look;
    wait_until('they are done', sub {
        $session->run(
            q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
        return !grep { !$_->is_done } @programs;
    });
    return;
}

{
    $look{$_}->run(q{SELECT advisory.break_lease('report', 'daily')}) for @languages;
    my %worker = each_of { work($_, 'unsure', 2, 60, 4.2) };
    for (@languages) { wait_until('it is renewed', sub { renewals() }) }
    standby('nobody');
    $look{ $languages[0] }->wait_until('they wait', q{SELECT count(*) >= ? FROM pg_stat_activity
        WHERE wait_event = 'SyncRep'}, scalar @languages);
    cancel_until_done(values %worker);
    for (@languages) {
        $worker{$_}->ends(1, qr/^unsure stops: no renewal has succeeded for 4/m,
            "$_: renewals whose wait for the standby was cancelled do not count");
    }
    my %granted = each_of { work($_, 'granted', 2, 60, 4.2) };
    cancel_until_done(values %granted);
    for (@languages) {
        $granted{$_}->ends(1,
            qr{\Agranted\ stops:\ the\ grant\ is\ not\ confirmed:\ (?:WARNING:\ +)?
                canceling\ wait\ for\ synchronous\ replication}x,
            "$_: nor does a grant");
        is_deeply(lease(), [], "$_: which is ended again");
    }
    standby('');
    my %again = each_of { work($_, 'again', 1, 0, 4.2) };
    $again{$_}->ends(0, qr/^again is done$/m, "$_: afterwards it can be had") for @languages;
}

for (@languages) {
    is(look(q{SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%-lease'
            AND datname = current_database()}), 0, "$_: no session is left");
}
done_testing();
