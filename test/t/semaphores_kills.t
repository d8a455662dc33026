#!/usr/bin/env perl
# Under random cancels and kills there are never more than K sessions inside a semaphore, and no
# slot is lost.
use AdvisoryTest;
use POSIX ();
use Semaphores;
use Time::HiRes qw(sleep time);

# It goes on until there were that many of each.
use constant { CLIENTS => 12, SLOTS => 3, CANCELS => 200, KILLS => 80, HOLDS => 1000,
    MOST_S => 120 };

srand 4711;

my $look = observer();

# One process of the load. It writes the times of each hold into a file, as 'got done'; of an
# interrupted hold only the times that are certain.
sub hold_slots ($path, $stop) {
    open my $out, '>', $path or die "$path: $!\n";
    my $session;
    # Repeats a statement until it is not cancelled. Returns nothing if the session is lost.
    my $surely = sub ($sql) {
        while (1) {
            my $result = $session->query($sql);
            return $result if !$result->{state};
            return if $result->{state} ne '57014';
        }
    };
    while (!-e $stop) {
        eval { $session //= session(application => 'victim') } or next;
        my $result = $session->query(acquires('kills',
                SLOTS) . ', extract(epoch FROM clock_timestamp())');
        if ($result->{state}) {
            # If the cancel came after the grant, the session has the slot.
            undef $session if $result->{state} ne '57014'
                || !$surely->(q(SELECT advisory.unlock_all('sem')));
            next;
        }
        my $got = my $done = $result->{rows}[0][1];
        $result = $session->query('SELECT pg_sleep(0.002), extract(epoch FROM clock_timestamp())');
        $result = $surely->('SELECT 1, extract(epoch FROM clock_timestamp())')
            if ($result->{state} // '') eq '57014';
        $done = $result->{rows}[0][1] if $result && $result->{rows};
        print {$out} "$got $done\n";
        undef $session if !$result || $result->{state}
            || !$surely->(q(SELECT advisory.unlock_all('sem')));
    }
    close $out;
    return;
}

{
    my $stop = "$ENV{ADVISORY_EXT_TMP}/kills.$$.stop";
    my %children;
    for my $n (1 .. CLIENTS) {
        my $path = "$ENV{ADVISORY_EXT_TMP}/kills.$$.$n";
        my $child = fork // die "cannot fork: $!\n";
        if (!$child) {
            # The parent's sessions must survive the child's exit.
            alarm 2 * MOST_S;
            open STDERR, '>', '/dev/null';
            my $is_done = eval { hold_slots($path, $stop); 1 } or print "# $@";
            close STDOUT;
            POSIX::_exit($is_done ? 0 : 1);
        }
        $children{$child} = $path;
    }
    my ($cancels, $kills) = (0, 0);
    my $end = time + MOST_S;
    my $holds = sub { return $look->value(q(SELECT acquired FROM advisory.stats
            WHERE name = 'kills')) // 0 };
    while (($cancels < CANCELS || $kills < KILLS || $holds->() < HOLDS) && time < $end) {
        my $way = rand() < 0.3 ? 'terminate' : 'cancel';
        my $hit = $look->value("SELECT pg_${way}_backend(pid) FROM (SELECT pid FROM pg_stat_activity
            WHERE application_name = 'victim' ORDER BY random() LIMIT 1) AS a");
        $hit && $way eq 'cancel' ? $cancels++ : $hit ? $kills++ : 0;
        sleep 0.01;
    }
    open my $file, '>', $stop or die "$stop: $!\n";
    close $file;
    my (@spans, @ends);
    for my $child (keys %children) {
        waitpid $child, 0;
        push @ends, $?;
        open my $in, '<', $children{$child} or die "$children{$child}: $!\n";
        push @spans, map { [split] } <$in>;
        close $in;
        unlink $children{$child};
    }
    unlink $stop;
    is_deeply(\@ends, [ (0) x CLIENTS ],
        'all processes of the load end normally in spite of random cancels and kills');
    cmp_ok($cancels, '>', 50, "$cancels cancels");
    cmp_ok($kills, '>', 20, "$kills kills");
    cmp_ok(scalar @spans, '>', 500, scalar(@spans) . ' holds');
    is(largest_overlap(@spans), SLOTS, 'never more than ' . SLOTS . ' of them at once');
    wait_until('the sessions are gone', sub { !$look->value(q(SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'victim')) });
    $look->shows(q(SELECT * FROM advisory.semaphores), [], 'no session holds or awaits a slot');
    my $session = session();
    is_deeply([ sort map { $_->[0]
            // 'none' } @{ $session->rows("SELECT advisory.try_acquire('sem', 'kills', i)
            FROM generate_series(@{[SLOTS]}, @{[SLOTS]}) AS i, generate_series(1, @{[SLOTS]})") } ],
        [ 1 .. SLOTS ], 'all slots can be taken');
    is_deeply($look->rows('SELECT in_use, free, waiting, holders, slots_disagree
            FROM advisory.semaphores'), [ [ SLOTS, 0, 0, [ ($session->pid) x SLOTS ], 0 ] ],
        'the view shows exactly these');
}
done_testing();
