# Slots that outlive a session, between sessions of both editions: lease_slots.t has it of the
# extension, portable/lease_slots.t of the portable edition. All have the namespace l.
package LeaseSlots;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use Leases;
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT = qw(begin_lease_slots lease_slot try_lease_slot slots_outlive slots_in_order
    slots_in_transactions slot_waits_end longest_hold slots_and_roles);

my ($look, $session);

# look: a session that sees all, and may write the table; session: makes one, of role lessee, of
# that application.
sub begin_lease_slots (%how) {
    $session = $how{session};
    return $look = begin_leases($how{look});
}

# The slot and its token, which is waited for, or only tried.
sub lease_slot ($taker, $name, $slots, $more = q(, '1 h')) {
    return @{ $taker->rows("SELECT slot, token
        FROM advisory.lease_slot('l', '$name', $slots$more)")->[0] };
}

sub try_lease_slot ($taker, $name, $slots, $more = q(, '1 h')) {
    return @{ $taker->rows("SELECT slot, token
        FROM advisory.try_lease_slot('l', '$name', $slots$more)")->[0] };
}

# How many are held: slots, and the lease of the same name.
sub observed ($name, $count, $is_leased, $what) {
    return $look->shows("SELECT advisory.leased_slots('l', '$name'),
        advisory.is_leased('l', '$name')", "$count|$is_leased", $what);
}

# ---- They outlive sessions, and there are no more than so many -----------------------------------

sub slots_outlive {
    my @tokens;
    for my $i (1 .. 3) {
        my $taker = $session->("taker $i");
        my ($slot, $token) = lease_slot($taker, 'outlive', 3, qq(, '$i h'));
        is($slot, $i, 'each gets the lowest slot that is free');
        cmp_ok($token, '>', $tokens[-1], '... and a greater token') if @tokens;
        push @tokens, $token;
        leave($look, $taker);
    }
    observed('outlive', 3, 0, 'they are held when their sessions have ended');
    my $taker = $session->('late');
    is_deeply([ try_lease_slot($taker, 'outlive', 3) ], [ undef, undef ], 'there is no fourth');
    my $error = $taker->fails(q(SELECT advisory.lease_slot('l', 'outlive', 3, '1 h', '10 ms')),
        '55P03', '... which is an error');
    is($error->{message}, 'could not obtain a slot of lease "l/outlive" within 10 ms',
        '... that says what is not free');
    is($error->{detail} =~ s/until \S+ \S+[.]$/until TIME./gmr,
        join("\n", '3 of 3 taken, the first until TIME.',
            map { qq("lessee\@taker $_" holds slot $_ until TIME.) } 1 .. 3),
        '... how many there are, and who has them, the first to become free first');
    is("$error->{schema}/$error->{constraint}", 'l/outlive', '... and has the name in its fields');
    # The lease of the same name is another thing.
    my $lease = lease($taker, 'outlive');
    cmp_ok($lease, '>', 0, 'the lease of the same name is free');
    observed('outlive', 3, 1, '... and held, beside the slots');
    $look->shows(q(SELECT slot FROM advisory.leases WHERE name = 'outlive' ORDER BY slot),
        [ 1, 2, 3, 'NULL' ], 'the view tells one from the other');
    $look->shows(q(SELECT advisory.break_lease('l', 'outlive')), 1, 'without a token');
    observed('outlive', 3, 0, '... only the lease is broken');
    # Each is renewed, checked, ended and broken by its token.
    $taker->shows("SELECT advisory.renew_lease('l', 'outlive', $tokens[1]) > now(),
        advisory.check_lease('l', 'outlive', $tokens[1]),
        advisory.end_lease('l', 'outlive', $tokens[1])", '1|1|1', 'by its token a slot is ended');
    observed('outlive', 2, 0, '... and no other one');
    $taker->shows("SELECT advisory.renew_lease('l', 'outlive', $tokens[1]),
        advisory.end_lease('l', 'outlive', $tokens[1])", 'NULL|0', '... once');
    $taker->fails("SELECT advisory.check_lease('l', 'outlive', $tokens[1])", '55000',
        '... and it is lost');
    my ($slot, $token) = try_lease_slot($taker, 'outlive', 3);
    is($slot, 2, 'that slot is free again');
    cmp_ok($token, '>', $tokens[2], '... and its token greater than that of any slot');
    is_deeply([ try_lease_slot($taker, 'outlive', 2) ], [ undef, undef ],
        'nobody gets a slot beyond the number that he gives');
    $look->shows("SELECT advisory.break_lease('l', 'outlive', $token),
        advisory.break_lease('l', 'outlive', $token)", '1|0', 'by its token a slot is broken');
    # One that expires.
    $taker->run("SELECT advisory.renew_lease('l', 'outlive', $tokens[0], '1 ms')");
    sleep 0.01;
    observed('outlive', 1, 0, 'one that has expired is not held');
    is_deeply([ map { (try_lease_slot($taker, 'outlive', 3))[0] } 1 .. 3 ], [ 1, 2, undef ],
        '... and is taken over');
    $taker->shows("SELECT advisory.renew_lease('l', 'outlive', $tokens[0])", 'NULL',
        '... which its last owner is told');
    return;
}

# ---- Who waits -----------------------------------------------------------------------------------

# In their order, whichever slot becomes free. Returns how late they were served, in seconds.
sub slots_in_order {
    my $ender = $session->('ender');
    my @slots = map { [ lease_slot($ender, 'order', 3) ] } 1 .. 3;
    my @waiters = map { $session->("waiter $_") } 1 .. 4;
    waits_for_lease($_, q(SELECT slot, token, clock_timestamp()
        FROM advisory.lease_slot('l', 'order', 3, '1 h'))) for @waiters;
    my @late;
    for my $i (2, 0, 1, 2) {
        my $waiter = shift @waiters;
        my $ended = $ender->rows("SELECT advisory.end_lease('l', 'order', $slots[$i][1]),
            clock_timestamp()")->[0][1];
        my ($slot, $token, $served) = @{ $waiter->finish->{rows}[0] };
        is($slot, $i + 1, 'the first gets the slot that has become free');
        cmp_ok($token, '>', $slots[$i][1], '... with a greater token');
        ok(!(grep { $_->is_done } @waiters), '... and nobody else does');
        push @late, $look->value('SELECT extract(epoch FROM ?::timestamptz - ?)', $served, $ended);
        $slots[$i] = [ $slot, $token ];
    }
    $ender->run("SELECT advisory.end_lease('l', 'order', $_->[1])") for @slots;
    observed('order', 0, 0, 'all are free at last');
    note sprintf 'served after %s ms', join ', ', map { sprintf '%.1f', 1000 * $_ } @late;
    return @late;
}

# A transaction that goes on keeps nobody from other slots.
sub slots_in_transactions {
    my ($one, $two, $three) = map { $session->($_) } qw(one two three);
    $one->run('BEGIN');
    is((lease_slot($one, 'open', 3))[0], 1, 'a transaction takes a slot');
    my ($slot, $token) = try_lease_slot($two, 'open', 3);
    is($slot, 2, '... and another one the next');
    is((try_lease_slot($three, 'open', 2))[0], undef, 'nobody gets that of the first, or waits');
    like($three->fails(q(SELECT advisory.lease_slot('l', 'open', 2, '1 h', '0')), '55P03',
            'an error')->{detail}, qr/^1 of 2 taken/, '... which counts those that are committed');
    $one->run('ROLLBACK');
    is((try_lease_slot($three, 'open', 2))[0], 1, '... until it is rolled back');
    # One that has waited.
    $one->run('BEGIN');
    waits_for_lease($one, q(SELECT slot FROM advisory.lease_slot('l', 'open', 2, '1 h')));
    $two->run("SELECT advisory.end_lease('l', 'open', $token)");
    $one->returns(2, 'a transaction that has waited gets a slot');
    is((try_lease_slot($two, 'open', 3))[0], 3, '... and keeps nobody from others, who try');
    $two->run(q(SELECT advisory.end_lease('l', 'open', token) FROM advisory.leases
        WHERE name = 'open' AND slot = 3));
    is((lease_slot($two, 'open', 3, q(, '1 h', '10 s')))[0], 3, '... or wait');
    $one->fails(q(SELECT advisory.lease_slot('l', 'open', 1, '1 h', '50 ms')), '55P03',
        'it can wait for a slot of others');
    $one->run('ROLLBACK', 'BEGIN');
    lease_slot($one, 'own', 1);
    $one->fails(q(SELECT advisory.lease_slot('l', 'own', 1, '1 h')), '55000',
        '... but not for its own');
    $one->run('ROLLBACK');
    # One that relies on its slot.
    (undef, $token) = lease_slot($two, 'relied', 1);
    $one->run('BEGIN', "SELECT advisory.check_lease('l', 'relied', $token)");
    $two->run("SELECT advisory.renew_lease('l', 'relied', $token, '1 ms')");
    sleep 0.01;
    is((try_lease_slot($three, 'relied', 1))[0], undef,
        'nobody takes over a slot that a transaction relies on');
    is((try_lease_slot($three, 'relied', 2))[0], 2, '... but another one');
    $one->run('COMMIT');
    is((try_lease_slot($three, 'relied', 2))[0], 1, '... until that ends');
    return;
}

# A wait for a slot ends in every way.
sub slot_waits_end {
    my ($owner, $waiter) = map { $session->($_) } qw(owner waiter);
    lease_slot($owner, 'ends', 1);
    waits_end($waiter, 'ends', q(SELECT token FROM advisory.lease_slot('l', 'ends', 1, '1 h')));
    $waiter->start(q(CALL advisory.await_lease_slot('l', 'ends', 1, '1 h')));
    sleep 0.2;
    ok(!$waiter->is_done, 'await_lease_slot() waits');
    $look->run(q(SELECT advisory.break_lease('l', 'ends', token) FROM advisory.leases
        WHERE name = 'ends'));
    is_deeply([ map { $_->[0] } @{ $waiter->finish->{rows} } ], [1], '... and gets a slot');
    return;
}

# ---- The longest hold ----------------------------------------------------------------------------

sub longest_hold {
    my $holder = $session->('holder');
    for my $case (
        [ 'a lease', q(lease('l', 'longest', '2 h', max_hold => '1 h')) ],
        [ 'a lease for less', q(lease('l', 'longest', '1 min', max_hold => '1 h')) ],
        [ 'a slot', q(lease_slot('l', 'longest', 1, '2 h', max_hold => '1 h')) ],
    ) {
        my ($what, $call) = @$case;
        my $token = $holder->value("SELECT token FROM advisory.$call");
        my $SEEN = q(SELECT max_hold, expires_at <= acquired_at + max_hold FROM advisory.leases
            WHERE name = 'longest');
        $look->shows($SEEN, '01:00:00|1', "$what: no longer than max_hold");
        $holder->shows("SELECT advisory.renew_lease('l', 'longest', $token, '1 min')
            < now() + interval '2 min'", 1, '... is renewed');
        $holder->shows("SELECT advisory.renew_lease('l', 'longest', $token, '3 h') > now()", 1,
            '... for as long as it may');
        $look->shows($SEEN =~ s/<=/=/r, '01:00:00|1', '... and no longer');
        $look->run(q(UPDATE advisory._leases SET acquired_at = now() - max_hold,
            expires_at = now() WHERE name = 'longest'));
        for my $level ('READ COMMITTED', 'REPEATABLE READ') {
            $holder->run("BEGIN ISOLATION LEVEL $level");
            $holder->shows("SELECT advisory.renew_lease('l', 'longest', $token)", 'NULL',
                "... and not any more after that, $level");
            $holder->run('COMMIT');
        }
        my $taker = $session->('taker');
        my $next = $taker->value("SELECT token FROM advisory.$call");
        cmp_ok($next, '>', $token, '... when another one takes it');
        $taker->run("SELECT advisory.end_lease('l', 'longest', $next)");
    }
    return;
}

# ---- Whose they are ------------------------------------------------------------------------------

# stranger: a session of another role.
sub slots_and_roles ($stranger) {
    my $owner = $session->('owner');
    my ($slot, $token) = lease_slot($owner, 'whose', 1);
    $stranger->shows("SELECT advisory.renew_lease('l', 'whose', $token),
        advisory.end_lease('l', 'whose', $token)", 'NULL|0', 'another role loses with the token');
    $stranger->fails("SELECT advisory.check_lease('l', 'whose', $token)", '55000',
        '... as is said');
    $stranger->shows(q(SELECT advisory.leased_slots('l', 'whose'),
        advisory.is_leased('l', 'whose')), '1|0', '... but may know that it is held');
    $stranger->shows(q(SELECT count(*) > 0, count(token) FROM advisory.leases
        WHERE name = '<insufficient privilege>' AND slot = 1), '1|0', '... without its name');
    my $error = $stranger->fails(q(SELECT advisory.lease_slot('l', 'whose', 1, '1 h', '0')),
        '55P03', '... nor does the error');
    like($error->{detail}, qr/^1 of 1 taken, .*\nSlot 1 is held until [^\n]*[.]$/, '... name it');
    $owner->run("SELECT advisory.end_lease('l', 'whose', $token)");
    return;
}

1;
