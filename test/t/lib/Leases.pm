# What leases of both editions have in common: leases.t has it of the extension, portable/leases.t
# of the portable edition. All leases have the namespace l, unless it says otherwise.
package Leases;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(begin_leases lease try_lease waits_for_lease queue_for_lease
    served_in_order waits_end never_two_owners
    roles_elsewhere era_set_back);

my $look;

# A session that sees all, as a superuser.
sub begin_leases ($session) { return $look = $session }

# The token of a lease, which is waited for, or only tried.
sub lease ($session, $name, $more = q(, '1 h')) {
    return $session->value("SELECT token FROM advisory.lease('l', '$name'$more)");
}

sub try_lease ($session, $name, $more = q(, '1 h')) {
    return $session->value("SELECT token FROM advisory.try_lease('l', '$name'$more)");
}

sub waits_for_lease ($session, @statement) {
    $session->start(@statement) if @statement;
    return wait_until('it waits', sub { $look->value(q(SELECT count(*) FROM advisory.locks WHERE
            kind = 'lease' AND wait_start IS NOT NULL AND pid = ?), $session->pid)
        || $session->is_done });
}

# These sessions wait for this lease, one behind the other.
sub queue_for_lease ($name, @waiters) {
    waits_for_lease($_, "SELECT token, acquired_at FROM advisory.lease('l', '$name', '1 h'),
        LATERAL (SELECT clock_timestamp()) AS a (acquired_at)") for @waiters;
    return;
}

# Another session ends the lease that has this token, and then each that one of them has got.
# Returns the last token, and how late they were served, in seconds.
sub served_in_order ($session, $name, $token, @waiters) {
    my @late;
    for my $waiter (@waiters) {
        my $stalled = stalled($session, $waiter);
        my $ended = $session->rows("SELECT advisory.end_lease('l', '$name', $token),
            clock_timestamp()")->[0][1];
        my ($next, $served) = @{ $waiter->finish->{rows}[0] };
        push @late, $look->value('SELECT extract(epoch FROM ?::timestamptz - ?)', $served, $ended)
            - (stalled($session, $waiter) - $stalled);
        cmp_ok($next, '>', $token, 'they are served in their order, with tokens that grow');
        $token = $next;
    }
    note sprintf 'served after %s ms', join ', ', map { sprintf '%.1f', 1000 * $_ } @late;
    return ($token, @late);
}

# A session waits for this lease, or by this call for a slot, which somebody else has, and the wait
# ends in every way.
sub waits_end ($session, $name, $WAIT = "SELECT token FROM advisory.lease('l', '$name', '1 h')") {
    for my $end (
        [ 'its timeout', [], $WAIT =~ s/'1 h'\)/'1 h', '50 ms')/r, '55P03' ],
        [ 'lock_timeout', [q(SET lock_timeout = '50 ms')], $WAIT, '55P03' ],
        [ 'statement_timeout', [q(SET statement_timeout = '100 ms')], $WAIT, '57014' ],
        [ 'a cancel', [], $WAIT, '57014' ],
    ) {
        my ($what, $settings, $call, $state) = @$end;
        $session->run(@$settings)->start($call);
        if ($what eq 'a cancel') {
            waits_for_lease($session);
            $look->value('SELECT pg_cancel_backend(?)', $session->pid);
        }
        my $result = $session->ends($state, "a wait that is ended by $what");
        is($result->{schema} . '/' . $result->{constraint}, "l/$name",
            "$what: the error names the lease") if $state eq '55P03';
        $session->run('RESET ALL');
        $look->shows(q(SELECT count(*) FROM advisory.locks WHERE kind = 'lease'), 0,
            "$what: nothing is left");
    }
    return;
}

# ---- Never two owners ----------------------------------------------------------------------------

# What each owner had, as it is committed: from when the call returned to its last expiry, or to a
# time before it has ended the lease. It had asked for it before that.
my @OWN = ('CREATE TABLE owned (token bigint PRIMARY KEY, slot integer, asked timestamptz,
        since timestamptz, until timestamptz)',
    'GRANT ALL ON owned TO PUBLIC', <<'SQL');
CREATE PROCEDURE own(name text, slots integer, timeout interval) LANGUAGE plpgsql AS $$
DECLARE
    asked timestamptz := clock_timestamp();
    ttl interval := (1 + 3 * random()) * interval '20 ms';
    l record;
    renewed timestamptz;
BEGIN
    IF slots IS NULL THEN
        SELECT 1 AS slot, * INTO l FROM advisory.try_lease('race', name, ttl, timeout);
    ELSE
        SELECT * INTO l FROM advisory.try_lease_slot('race', name, slots, ttl, timeout);
    END IF;
    IF l.token IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO owned VALUES (l.token, l.slot, asked, clock_timestamp(), l.expires_at);
    COMMIT;
    IF random() < 0.3 THEN
        renewed := advisory.renew_lease('race', name, l.token);
        UPDATE owned SET until = renewed WHERE token = l.token AND renewed IS NOT NULL;
        COMMIT;
    END IF;
    IF random() < 0.3 THEN
        renewed := clock_timestamp();
        IF advisory.end_lease('race', name, l.token) THEN
            UPDATE owned SET until = least(until, renewed) WHERE token = l.token;
        END IF;
        COMMIT;
    END IF;
END $$;
SQL

# What is wrong with them: more owners at a time than there are slots, two of one slot, and tokens
# that do not grow, in one slot or from a grant to the next call.
sub wrong_owners ($slots) {
    return $look->rows(q(
        SELECT 'too many', o.*
        FROM owned AS o
        WHERE (SELECT count(*) FROM owned AS p WHERE o.since >= p.since AND o.since < p.until) > $1
        UNION ALL
        SELECT CASE WHEN slot NOT BETWEEN 1 AND $1 THEN 'no such slot'
                    WHEN since < before THEN 'two owners' ELSE 'tokens' END,
            token, slot, asked, since, until
        FROM (SELECT *, lag(until) OVER s AS before, lag(since) OVER s AS last FROM owned
            WINDOW s AS (PARTITION BY slot ORDER BY token)) AS o
        WHERE slot NOT BETWEEN 1 AND $1 OR since < before OR since < last
        UNION ALL
        SELECT 'tokens', o.*
        FROM owned AS o JOIN owned AS p ON p.since < o.asked AND p.token > o.token)
        =~ s/\$1/$slots/gr);
}

# Many sessions take one lease, renew it and end it, or let it expire, in each isolation level,
# while calls are cancelled and sessions ended. session: makes one of them; takers: how many;
# grants: how many there must be; waits_in: the levels in which half of the takers wait; slots: how
# many there are, if it is not a lease.
sub never_two_owners (%how) {
    my $slots = $how{slots} // 1;
    $look->run('DROP TABLE IF EXISTS owned', 'DROP PROCEDURE IF EXISTS own', @OWN);
    for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE') {
        my (@takers, %errors);
        my $join = sub { $how{session}->()->run("SET default_transaction_isolation = '$level'") };
        push @takers, $join->() for 1 .. $how{takers};
        my $call = sub ($i) {
            sprintf "CALL own('%s', %s, '%s')", $level, $how{slots} // 'NULL',
                $i % 2 && $level =~ $how{waits_in} ? '1 s' : '0'
        };
        my $end = time + 60;
        my $grants = 0;
        $takers[$_]->start($call->($_)) for 0 .. $#takers;
        while ($grants < $how{grants} && time < $end) {
            for my $i (0 .. $#takers) {
                next unless $takers[$i]->is_done;
                my $state = $takers[$i]->finish->{state};
                $errors{$state}++ if $state;
                $takers[$i] = $join->() if ($state // '') =~ /^(57P01|08)/;
                $takers[$i]->start($call->($i));
            }
            my $pid = $takers[ rand @takers ]->pid;
            $look->run(($errors{57014} // 0) > 20 ? "SELECT pg_terminate_backend($pid)"
                : "SELECT pg_cancel_backend($pid)") if rand() < 0.02;
            $grants = $look->value('SELECT count(*) FROM owned') if rand() < 0.02;
            sleep 0.0005;
        }
        $_->finish for @takers;
        cmp_ok($grants, '>=', $how{grants}, "$level: grants");
        my $wrong = wrong_owners($slots);
        is_deeply($wrong, [], "$level: never more than $slots owners at a time, and tokens grow");
        diag explain $look->rows('SELECT * FROM owned ORDER BY token') if @$wrong;
        is_deeply([ grep { !/^(40001|57014|57P01|08...|55P03)$/ } keys %errors ], [],
            "$level: no errors");
        note join ', ', map { "$_: $errors{$_}" } sort keys %errors;
        $look->run('TRUNCATE owned');
    }
    return;
}

# ---- Of another server, and of another time ------------------------------------------------------

# Whose a lease and a claim are when their role gets another name, and when they come from another
# server. In the database are roles stayer and outsider, and the lease l/stayer and the claim
# c/stayer of the first one. super: a superuser's session; connect: makes one of a role; cluster:
# the column that says of which server a row is.
sub roles_elsewhere (%how) {
    my ($super, $connect) = @how{qw(super connect)};
    my ($stayer, $outsider) = map { $connect->($_) } qw(stayer outsider);
    my $token = $super->value(q(SELECT token FROM advisory._leases WHERE name = 'stayer'));
    my $renewed = "SELECT advisory.renew_lease('l', 'stayer', $token) IS NOT NULL";
    my $seen = q(SELECT (SELECT count(*) FROM advisory.leases WHERE name = 'stayer'),
        (SELECT count(*) FROM advisory.claims WHERE name = 'stayer'));
    $stayer->shows($renewed, 1, 'the owner of a lease renews it');
    $super->run('ALTER ROLE stayer RENAME TO first_name', 'CREATE ROLE stayer LOGIN');
    $stayer->shows($renewed, 1, '... also when it has got another name');
    my $namesake = $connect->('stayer');
    $namesake->shows($renewed, 0, '... but not another role of its old name');
    $namesake->shows($seen, '0|0', '... which does not see it either');
    # A dump of another server has OIDs of there, and the name counts.
    my $elsewhere = sub ($name) {
        $super->run(map { "UPDATE advisory.$_ SET $how{cluster} = $how{cluster} # 1,
            role_name = '$name', role = 'outsider'::regrole WHERE name = 'stayer'" }
                qw(_leases _claims));
    };
    $elsewhere->('stayer');
    $outsider->shows($renewed, 0, 'who has the OID on another server does not get the lease');
    $outsider->shows($seen, '0|0', '... nor sees it or the claim');
    $namesake->shows($seen, '1|1', '... but who has the name does');
    $namesake->shows($renewed, 1, '... and renews it');
    $super->run('ALTER ROLE stayer RENAME TO second_name', 'CREATE ROLE stayer LOGIN');
    $namesake->shows($renewed, 1, '... which makes it that of the role here, whatever its name');
    $connect->('stayer')->shows($renewed, 0, '... and not of the next one of that name');
    $elsewhere->('nobody_here');
    $_->shows($renewed, 0, 'a lease of a role that is missing is nobody else\'s')
        for $outsider, $namesake;
    return $super->shows($renewed, 1, '... but a superuser can renew it');
}

# Tokens do not fall when these statements set the era back, as a restored dump of the data does,
# and logical replication of all sequences. The owner runs them; another session takes leases.
sub era_set_back ($owner, $taker, @statements) {
    my $held = lease($taker, 'era');
    $owner->run("SELECT advisory.tokens_above($held)");
    my $after = lease($taker, 'after');
    cmp_ok($after >> 50, '>', $held >> 50, 'tokens_above() begins an era');
    $taker->run("SELECT advisory.check_token('l', 'fence', $after)");
    for my $what ('leases and fences', 'fences', 'the beginning of the era') {
        $owner->run('DELETE FROM advisory._leases') unless $what =~ /leases/;
        $owner->run('DELETE FROM advisory.fences') if $what =~ /beginning/;
        $owner->run(@statements);
        my $next = lease($taker, "after $what");
        cmp_ok($next, '>', $after, "$what: tokens do not fall when the era is set back");
        $taker->shows("SELECT advisory.check_token('l', 'fence', $next)", 1, '... nor are stale');
        $after = $next;
    }
    return;
}

1;
