#!/usr/bin/env perl
# A standby is promoted while it is busy: sessions continuously take locks and slots on it, the
# primary writes, and other sessions read the views. No call fails, no session gets a lock that
# another one holds, and at the end no lock is left.
use AdvisoryTest;
use Replica;
use Semaphores qw(largest_overlap);
use Time::HiRes qw(sleep);

use constant { WORKERS => 4, SLOTS => 2, CALLS => 30 };

my $first = own_server();
my $primary = session(server => $first)->run('CREATE EXTENSION advisory_ext',
    'CREATE TABLE item (id bigint GENERATED ALWAYS AS IDENTITY, text text)');
my $second = replica($first);
my $look = session(server => $second);
caught_up($primary, $second);

# When it was got and given back, in seconds.
sub held ($take, $give) {
    return "SELECT $take, extract(epoch FROM clock_timestamp()), pg_sleep(0.002), extract(epoch
        FROM clock_timestamp()), $give";
}

my %STATEMENT = (
    lock      => held(q(advisory.lock('load', 'x')), q(advisory.unlock('load', 'x'))),
    xact      => held(q(advisory.xact_lock('load', 'y')), 'NULL'),
    timed     => held(q(advisory.try_lock('load', 'z', '10s')), q(advisory.unlock('load', 'z'))),
    semaphore => held("advisory.acquire('load', 's', ${\SLOTS})", q(advisory.release('load', 's'))),
    all       => held(q(advisory.xact_lock_all('load', '{a,b,c}')), 'NULL'),
    look      => 'SELECT (SELECT count(*) FROM advisory.locks), (SELECT count(*)
    FROM advisory.activity), (SELECT count(*) FROM advisory.waits)',
);

# Sessions that repeat a statement as long as they are asked to; what they have had, by kind.
my @workers = map {
    my $kind = $_;
    map { { kind => $kind, sql => $STATEMENT{$kind}, session => session(server => $second,
            application => "$kind $_") } } 1 .. ($kind eq 'look' ? 1 : WORKERS)
} sort keys %STATEMENT;
push @workers, map { { kind => 'writer', sql => q(INSERT INTO item (text) SELECT repeat('x', 500)
        FROM generate_series(1, 50)), session => session(server => $first) } } 1 .. 2;
my (%spans, %done, @errors);

sub keep_busy ($until) {
    until ($until->()) {
        for my $worker (@workers) {
            my $session = $worker->{session};
            if ($worker->{busy}) {
                next unless $session->is_done;
                collect($worker, $session->finish);
            }
            $session->start($worker->{sql});
            $worker->{busy} = 1;
        }
        sleep 0.0005;
    }
    return;
}

sub collect ($worker, $result) {
    push @errors, "$worker->{kind}: $result->{state} $result->{message}" if $result->{state};
    $done{ $worker->{kind} }++;
    push @{ $spans{ $worker->{kind} } }, [ @{ $result->{rows}[0] }[1, 3] ]
        if $worker->{kind} !~ /look|writer/ && !$result->{state};
    return;
}

# Until each kind has ended so many calls from now on.
sub calls_each ($count) {
    my %wanted = map { $_ => ($done{$_} // 0) + $count } keys %STATEMENT, 'writer';
    return sub { !grep { ($done{$_} // 0) < $wanted{$_} } keys %wanted };
}

keep_busy(calls_each(CALLS));
$look->start('SELECT pg_promote()');
keep_busy(sub { $look->is_done });
$look->returns(1, 'it is promoted while it is busy');
keep_busy(calls_each(CALLS));
collect($_, $_->{session}->finish) for @workers;

is_deeply(\@errors, [], 'no call has failed');
for my $kind (sort keys %STATEMENT) {
    is(largest_overlap(@{ $spans{$kind} }), $kind eq 'semaphore' ? SLOTS : 1,
        "$kind: never more at once than may be") if $spans{$kind};
}
$look->shows(q(SELECT count(*) FROM advisory.locks), 0, 'at the end nothing is held');
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0,
    '... in the lock table either');

# Sessions that have been there since before the promotion.
my $session = $workers[0]{session};
$session->run(q(SELECT advisory.lock('load', 'x')));
cmp_ok($session->value(q(SELECT advisory.token('load', 'x'))), '>', 0,
    'a session from before gets tokens');
isnt($session->value(q(SELECT (advisory.lease('load', 'l', '1 minute')).token)), undef,
    '... and leases');

done_testing();
