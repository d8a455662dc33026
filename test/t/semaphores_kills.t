#!/usr/bin/env perl
# Under random cancels and kills there are never more than K sessions inside a semaphore, and no
# slot is lost.
use AdvisoryTest;
use Semaphores;

use constant SLOTS => 3;

srand 4711;

my $look = observer();
never_beyond(sessions => 12, slots => SLOTS, seconds => 1, cancels => 200, kills => 80,
    done => 1000);
{
    $look->shows(q(SELECT * FROM advisory.semaphores), [], 'no session holds or awaits a slot');
    my $session = session();
    is_deeply([ sort map { $_->[0]
            // 'none' } @{ $session->rows("SELECT advisory.try_acquire('sem', 'k', i)
            FROM generate_series(@{[SLOTS]}, @{[SLOTS]}) AS i, generate_series(1, @{[SLOTS]})") } ],
        [ 1 .. SLOTS ], 'all slots can be taken');
    is_deeply($look->rows('SELECT in_use, free, waiting, holders, slots_disagree
            FROM advisory.semaphores'), [ [ SLOTS, 0, 0, [ ($session->pid) x SLOTS ], 0 ] ],
        'the view shows exactly these');
}
done_testing();
