# At most K at once: how well slots are used, and how long one waits for a slot.
package Bench::Part::semaphores;

use AdvisoryTest;
use Bench;
use List::Util qw(max);

use constant SLOTS => 4;
my $slots = SLOTS;
my $seconds = QUICK ? 1 : 2;

# So many sessions run take, sleep and give in a loop. Returns {count => loops of all, p50, p99,
# longest => of the times that take took, in s; longest_fourth => the same for each fourth session;
# slots => loops, if each fourth session has two slots}. The statements may use number, the
# session's.
sub contend ($sessions, $ms, $take, $give) {
    my $work = $ms ? "PERFORM pg_sleep($ms / 1000.0);" : '';
    return once(sub ($tree, @) {
        my @active = sessions_of($tree, $sessions);
        my $end = $active[0]->value("SELECT clock_timestamp() + '$seconds s'");
        for my $number (0 .. $#active) {
            $active[$number]->start(<<"SQL");
DO \$\$
DECLARE
    number integer := $number;
    taken integer;
    own integer[];
    waits float8[];
    start timestamptz := clock_timestamp();
BEGIN
    WHILE start < '$end' LOOP
        $take
        waits := waits || extract(epoch FROM clock_timestamp() - start)::float8;
        $work
        $give
        start := clock_timestamp();
    END LOOP;
    PERFORM set_config('bench.waits', waits::text, false);
END \$\$
SQL
        }
        my (@waits, @fourth);
        for my $number (0 .. $#active) {
            my $finished = $active[$number]->finish;
            die $finished->{message} if $finished->{state};
            my @own = $active[$number]
                ->column(q{SELECT unnest(current_setting('bench.waits')::float8[])});
            push @waits, @own;
            push @fourth, @own if $number % 4 == 0;
        }
        @waits = sort { $a <=> $b } @waits;
        return { count => scalar @waits, p50 => $waits[ @waits / 2 ],
            p99 => $waits[ 0.99 * @waits ], longest => $waits[-1],
            longest_fourth => max(@fourth), slots => @waits + @fourth };
    });
}

sub polling ($sleep, $choose) {
    return <<"SQL";
<<poll>> LOOP
    $choose
    PERFORM pg_sleep($sleep);
END LOOP;
SQL
}

my $EACH_SLOT = <<"SQL";
FOR slot IN 1..$slots LOOP
    taken := slot;
    EXIT poll WHEN pg_try_advisory_lock(slot);
END LOOP;
SQL
my $GIVE_TAKEN = 'PERFORM pg_advisory_unlock(taken);';
my @OURS = ("taken := advisory.acquire('bench', 'slots', $slots);",
    q{PERFORM advisory.release('bench', 'slots', taken);});
my %RIVALS = (
    "$slots plain locks'" => ["PERFORM pg_advisory_lock(number % $slots);",
        "PERFORM pg_advisory_unlock(number % $slots);"],
    "a random slot's" => ["taken := trunc(random() * $slots); PERFORM pg_advisory_lock(taken);",
        $GIVE_TAKEN],
    "polling every 10 ms's" => [polling(0.01, $EACH_SLOT), $GIVE_TAKEN],
    "polling every 1 ms's" => [polling(0.001, $EACH_SLOT), $GIVE_TAKEN],
);
my %PROMISED = (
    "$slots plain locks'" => { count => ['at least' => 0.98] },
    "polling every 10 ms's" => { longest => ['at most' => 0.05] },
);
my %OF = (count => 'throughput', p50 => 'median wait', p99 => '99th percentile of the waits',
    longest => 'longest wait');

sub result_of ($field, $code) { return sub { return $code->(@_)->{$field} } }

for my $case (QUICK ? ([32, 1]) : ([6, 1], [6, 2], [6, 10], [32, 1], [32, 2], [32, 10])) {
    my ($sessions, $ms) = @$case;
    my $ours = contend($sessions, $ms, @OURS);
    for my $rival (sort keys %RIVALS) {
        my $theirs = contend($sessions, $ms, @{ $RIVALS{$rival} });
        for my $field (qw(count p50 p99 longest)) {
            # What is promised is promised for 32 sessions and 1 ms.
            my @promised = $sessions == 32 && $ms == 1 ? @{ $PROMISED{$rival}{$field} // [] } : ();
            compare(work => "semaphore, $sessions sessions, $slots slots, $ms ms inside",
                of => $OF{$field}, against => $rival, @promised,
                series => "semaphore $field", at => "$sessions/$ms",
                ours => result_of($field, $ours), theirs => result_of($field, $theirs));
        }
    }
}

# Each fourth session wants two slots. Beside polling these get fewer turns than they ask for, so
# there are more turns in all, but not more slots in use.
my @GIVE_SET = (q{PERFORM advisory.release_many('bench', 'sets', own);});
sub take_set ($function) {
    return "own := advisory.$function('bench', 'sets', $slots, 1 + (number % 4 = 0)::int);";
}
my $sets = contend(32, 5, take_set('acquire_many'), @GIVE_SET);
my %OF_SETS = (slots => 'slots used', count => 'turns', longest_fourth => 'longest wait for two');
for my $ms (1, 10) {
    my $polls = contend(32, 5,
        polling($ms / 1000, take_set('try_acquire_many') . ' EXIT poll WHEN own IS NOT NULL;'),
        @GIVE_SET);
    # What is promised is promised beside polling every 10 ms.
    my %promised = $ms == 10 ? (slots => ['at least' => 0.9], longest_fourth => ['at most' => 0.2])
        : ();
    for my $field (sort keys %OF_SETS) {
        compare(work => "acquire_many, 32 sessions, $slots slots, a fourth takes 2, 5 ms inside",
            of => $OF_SETS{$field}, against => "polling every $ms ms's",
            @{ $promised{$field} // [] },
            ours => result_of($field, $sets), theirs => result_of($field, $polls));
    }
}

# Each fourth session wants a slot of two semaphores, the others one of either. Those that poll get
# a slot of both only by chance, because the others wait in the queues.
my $of_both = q{string_to_array((ARRAY['tenant,vendor', 'tenant', 'tenant', 'tenant',
    'vendor,tenant', 'vendor', 'vendor', 'vendor'])[number % 8 + 1], ',')};
my $arguments = "'bench', $of_both, array_fill($slots, ARRAY[1 + (number % 4 = 0)::int])";
my $give_all = "PERFORM advisory.release('bench', name, slot)
    FROM unnest($of_both, own) AS each (name, slot);";
my $all = contend(32, 5, "own := advisory.acquire_all($arguments);", $give_all);
my $polls_for_all = contend(32, 5, polling(0.02, <<"SQL"), $give_all);
own := CASE WHEN number % 4 = 0 THEN advisory.try_acquire_all($arguments)
       ELSE advisory.acquire_all($arguments) END;
EXIT poll WHEN own IS NOT NULL;
SQL
my %OF_ALL = (slots => ['slots used', 'at least' => 0.9],
    longest_fourth => ['longest wait for both', 'at most' => 0.2]);
for my $field (sort keys %OF_ALL) {
    my ($of, @promised) = @{ $OF_ALL{$field} };
    compare(
        work => "acquire_all, 32 sessions, two of $slots slots, a fourth wants both, 5 ms inside",
        of => $of, against => "polling every 20 ms's", @promised,
        ours => result_of($field, $all), theirs => result_of($field, $polls_for_all));
}

# The time of a hand-over is the inverse of their number.
sub per_hand_over ($code) { return sub { return 1 / $code->(@_)->{count} } }
compare(work => 'semaphore, 4 sessions, 1 slot, nothing inside', of => 'time of a hand-over',
    against => "a plain lock's", 'at most' => 1.2,
    ours => per_hand_over(contend(4, 0, q{taken := advisory.acquire('bench', 'slot', 1);},
        q{PERFORM advisory.release('bench', 'slot', taken);})),
    theirs => per_hand_over(contend(4, 0, 'PERFORM pg_advisory_lock(1);',
        'PERFORM pg_advisory_unlock(1);')));

my $array = 'ARRAY(SELECT generate_series(1, 2000))';
compare(work => 'acquire and release, nobody waits', of => 'time', against => "a plain lock's",
    ours => on_server(sub { loop($_[0], $array, 'int',
        q{PERFORM advisory.release('bench', 'free', advisory.acquire('bench', 'free', 4))}) }),
    theirs => on_server(sub { loop($_[0], $array, 'int', 'PERFORM pg_advisory_lock(1)',
        'PERFORM pg_advisory_unlock(1)') }));

# A session that has very many slots, beside one that has as many built-in locks: the processor time
# of its statements, and of its blocks with an EXCEPTION clause.
my $many = 16_000;
my %takes = (
    slots => { session => "advisory.acquire('bench', 'many', $many)",
        transaction => "advisory.xact_acquire('bench', 'many', $many)" },
    locks => { session => 'pg_advisory_lock(i)', transaction => 'pg_advisory_xact_lock(i)' },
);
sub blocks ($statement) {
    return "DO \$\$ BEGIN FOR i IN 1 .. 1000 LOOP
        BEGIN $statement; EXCEPTION WHEN division_by_zero THEN NULL; END;
    END LOOP; END \$\$";
}
my %does = (
    'blocks with an error'    => [ blocks('RAISE division_by_zero'), 1 ],
    'blocks without an error' => [ blocks('PERFORM 1'), 1 ],
    'statements'              => [ 'SELECT 1', 200 ],
);
for my $scope (qw(session transaction)) {
    my %having;
    my $time_with = sub ($way, $statement, $times) {
        return sub ($tree, @) {
            my $session = $having{"$tree $way"} //= session(server => server_of($tree))
                ->run(('BEGIN') x ($scope eq 'transaction'),
                    "SELECT count($takes{$way}{$scope}) FROM generate_series(1, $many) AS i");
            return processor_time($session, sub { $session->run($statement) for 1 .. $times });
        };
    };
    for my $what (sort keys %does) {
        compare(work => "$what, with $many slots of the $scope", of => 'time',
            against => 'with as many built-in locks', 'at most' => 3,
            ours => $time_with->('slots', @{ $does{$what} }),
            theirs => $time_with->('locks', @{ $does{$what} }));
    }
    $_->disconnect for values %having;
}
1;
