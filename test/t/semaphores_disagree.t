#!/usr/bin/env perl
# Sessions that disagree on the number of slots of a semaphore.
use AdvisoryTest;
use Semaphores;

my $look = observer();

{
    my $DISAGREES =
        qr{^WARNING:  semaphore "sem/disagreed" is used with different numbers of slots};
    my $try = sub { return tries('disagreed', @_) };
    my ($three, $five, $five_too) = map { session(application => $_) } '3', '5', '5 too';
    is($three->warned($try->(3)), '', 'the first number is not a disagreement');
    $look->shows(q(SELECT slots_disagree FROM advisory.semaphores WHERE name = 'disagreed'), 0,
        'no session disagrees');
    for my $session ($five, $five_too) {
        my $result = $session->query($try->(5));
        like($result->{value}, qr/^[1-5]$/, 'a session with another number gets a slot');
        is(scalar(grep { /$DISAGREES/ } @{ $result->{warnings} }), 1, 'and a warning')
            or diag explain $result->{warnings};
        my ($pid, $other) = map { $_->pid } $session, $three;
        like(join('', @{ $result->{warnings} }),
            qr/number of slots is 5 in this session, but in process $other it is 3\./,
            'which says which session uses which number');
    }
    $look->shows(q(SELECT slots, in_use, slots_disagree FROM advisory.semaphores
        WHERE name = 'disagreed'), '5|3|1', 'the view shows it');
    my @more = map { $five->query($try->(5)) } 1 .. 3;
    is(scalar(grep { defined $_->{value} } @more), 2, 'five slots are held at once');
    is_deeply([ map { @{ $_->{warnings} } } @more ], [], 'without another warning');
    # A session takes only slots up to its own number.
    my %has = map { $_->[0] => $_->[1] } @{ $look->rows(q(SELECT slot, pid FROM advisory.locks
            WHERE name = 'disagreed')) };
    my %of = map { $_->pid => $_ } $three, $five, $five_too;
    $of{ $has{$_} }->run("SELECT advisory.release('sem', 'disagreed', $_)") for 4, 5;
    $three->shows($try->(3), 'NULL',
        'slots 4 and 5 are free, but a session that uses 3 does not get them');
    my $waiter = session()->start(acquires('disagreed', 3));
    in_queue($waiter);
    $look->shows(q(SELECT in_use || ' of ' || slots FROM advisory.semaphores
        WHERE name = 'disagreed'), '3 of 5', 'a session that uses 3 waits');
    # Which number each session gives, and what there is to do: nobody is ended who may be right.
    my %gave = ($three->pid => 3, $five->pid => 5, $five_too->pid => 5, $waiter->pid => 3);
    my @given = map { my $number = $_;
        my @pids = sort { $a <=> $b } grep { $gave{$_} == $number } keys %gave;
        "$number by " . join ', ', @pids } 3, 5;
    $look->shows(q(SELECT slots_given FROM advisory.semaphores WHERE name = 'disagreed'),
        join('; ', @given), 'the view shows who gives which number');
    for my $view (q(advisory.holders('sem', 'disagreed')), 'advisory.locks') {
        my %shown = map { @$_ } @{ $look->rows("SELECT pid, slots FROM $view WHERE slots > 0") };
        is_deeply(\%shown, \%gave, "... and so does $view, for each session");
    }
    my %remedies = map { @$_ } @{ $look->rows('SELECT remedy, pid FROM advisory.blockers') };
    is(scalar(keys %remedies), 1, 'blockers has one remedy for all holders');
    my ($remedy) = keys %remedies;
    like($remedy, qr/^SELECT pid, .*; -- they give different numbers of slots$/,
        '... which does not end any');
    my %answer = map { $_->[0] => $_->[2] } @{ $look->rows($remedy) };
    is_deeply(\%answer, \%gave, '... but shows what they give');
    like(session()->fails(q(SELECT advisory.acquire('sem', 'disagreed', 3, '10ms')), '55P03',
        'no slot')->{hint},
        qr/^To see who gives which number of slots: SELECT \* FROM advisory\.semaphores\.$/,
        '... and nor does the error');
    my $beyond = session();
    $beyond->shows($try->(5), 4, 'another session gets a slot that it cannot use');
    $look->shows('SELECT ? = ANY (blocked_by) FROM advisory.locks WHERE pid = ? AND NOT granted', 0,
        'and is not in its way', $beyond->pid, $waiter->pid);
    $beyond->run(releases('disagreed'));
    $of{ $has{2} }->run(q(SELECT advisory.release('sem', 'disagreed', 2)));
    $waiter->returns(2, 'until one of the first three is free');
    is_deeply([ sort map { $five->value($try->(5)) } 1, 2 ], [ 4, 5 ],
        'a session that uses 5 gets the others');
    $_->run('SELECT pg_advisory_unlock_all()') for $three, $five, $five_too, $waiter;
    $look->shows(q(SELECT * FROM advisory.semaphores WHERE name = 'disagreed'), [],
        'all slots are released');
    is($three->warned($try->(7)), '', 'then another number is not a disagreement');
    is_deeply(session()->query($try->(7))->{warnings}, [], 'for other sessions, too');
    $look->shows(q(SELECT slots, slots_disagree FROM advisory.semaphores WHERE name = 'disagreed'),
        '7|0', 'in the view, too');
}

# ---- The only slot, beside a queue of waiters that give two --------------------------------------

{
    my $has_one = session()->run('BEGIN', q(SELECT advisory.xact_acquire('sem', 'only', 1)));
    my $has_two = session()->run(acquires('only', 2));
    my ($waiter) = queue_up('only', 2, {});
    for my $try (qw(try_acquire try_xact_acquire)) {
        for my $who ([$has_one, 'the transaction that has it'], [session(), 'another session']) {
            my ($session, $name) = @$who;
            $session->shows("SELECT advisory.$try('sem', 'only', 1, '50ms')", 'NULL',
                "$try: $name does not get the only slot within 50 ms");
        }
    }
    is_deeply([ map { $_->[0] } @{ slots_of($has_one) } ], [1],
        'the transaction still has its slot, once');
    ok(!$waiter->is_done, 'the waiter waits');
    $has_one->fails(q(SELECT advisory.acquire('sem', 'only', 1, '50ms')), '55P03',
        'an error says so, too');
    $has_one->run('ROLLBACK');
    $waiter->returns(1, 'the waiter gets the slot when the transaction ends');
    is_deeply(slots_of($has_one), [], '... which has left nothing');
    leave($look, $has_one, $has_two, $waiter);
    session()->shows(q(SELECT advisory.try_acquire('sem', 'only', 1)), 1, 'it is free at the end');
}
done_testing();
