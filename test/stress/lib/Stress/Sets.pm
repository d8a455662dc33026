# Phase sets: of few semaphores, sessions take one, two or three slots at once, with the same
# trouble as in the phase exclusion. Nobody keeps a part of a set, and no stream of sessions that
# want one slot keeps one that wants all of them waiting.
package Stress::Sets;

use AdvisoryTest;
use FindBin;
use List::Util qw(max);
use Stress::Load qw(slurp);
use Time::HiRes qw(time);

# A set is waited for while others hold its slots, and while deadlocks are found, one a second. A
# session that all others overtake waits as long as the load or the stream.
use constant { SEMAPHORES => 6, LONGEST_S => 20, STREAM_S => 4, LONGEST_BESIDE_STREAM_S => 1 };

# Of address space: less than the first segment of shared memory takes.
use constant BYTES_LEFT => 900 * 1024;

sub run (%how) {
    my $load = Stress::Load->new(%how, semaphores => SEMAPHORES, only_sets => 1);
    my $keeper = keeper($load);
    $load->start;
    $load->spawn('stranger', sub ($model) { stranger($load, $model) }) if program('prlimit');
    $load->watch($how{seconds});
    $load->finish;
    $load->check_end;
    $load->check_works;
    printf "  the longest call of an acquire_many took %.2f s\n", $load->{longest};
    $load->fail("a call of acquire_many took $load->{longest} s") if $load->{longest} > LONGEST_S;
    check_stream($load);
    $keeper->disconnect;
    $load->report;
    $load->{server}->stop;
    return;
}

# A session that knows all semaphores. As long as it lives the server remembers which slots are
# marked, also if all others have left.
sub keeper ($load) {
    return $load->observer->run(map {
        ("SELECT advisory.acquire($_->{call}, 6)", "SELECT advisory.release($_->{call})")
    } @{ $load->{plan}{semaphores} });
}

# Until the load ends, takes two slots at once in a session that cannot map the shared memory, and
# so marks nothing there: others find slots of their sets locked that are marked as free.
sub stranger ($load, $model) {
    my $session = $load->observer;
    $session->run(q(SELECT advisory.key('loads the library')));
    my ($mapped) = map { 1024 * $_ } slurp('/proc/' . $session->pid . '/status')
        =~ /^VmSize:\s+(\d+) kB/m;
    local %ENV = (%ENV, map { $_ => $load->{server}{$_} } grep { /^ADVISORY_EXT_/ }
        keys %{ $load->{server} });
    system('bash', "$FindBin::Bin/../../scripts/server.sh", 'as', 'prlimit', '--pid',
        $session->pid, '--as=' . ($mapped + BYTES_LEFT)) == 0
        or die "cannot limit the stranger's memory\n";
    my $sets = 0;
    while ($model->state ne 'end') {
        for my $semaphore (@{ $load->{plan}{semaphores} }) {
            my $call = $semaphore->{call};
            my $result = $session->query("SELECT advisory.try_acquire_many($call, 4, 2, '5ms')");
            next if !$result->{value};
            $sets++;
            # A cancel for the call can come as late as here.
            while (my $state = $session->query('SELECT pg_advisory_unlock_all()')->{state}) {
                die "the stranger cannot release its slots: $state\n" if $state ne '57014';
            }
        }
    }
    $session->disconnect;
    return { counts => {}, errors => {}, figures => { 'sets of the stranger' => $sets } };
}

# At no moment are all slots free, unless they are set aside.
sub check_stream ($load) {
    my $slots = "'stress', 'stream', 4";
    my ($heavy, @stream) = map { $load->observer } 0 .. 8;
    my $end = time + STREAM_S;
    $_->start(<<"SQL") for @stream;
DO \$\$
BEGIN
    WHILE clock_timestamp() < to_timestamp($end) LOOP
        PERFORM pg_sleep(0.003 * slot) FROM advisory.acquire($slots) AS slot;
        PERFORM advisory.release('stress', 'stream');
    END LOOP;
END \$\$
SQL
    my ($longest, $count) = (0, 0);
    while (time < $end - 1) {
        my $start = time;
        $heavy->run("SELECT advisory.acquire_many($slots, 4)");
        $longest = max($longest, time - $start);
        $count++;
        $heavy->run(q(SELECT advisory.unlock_all('stress')));
    }
    for my $session (@stream) {
        my $result = $session->finish;
        $load->fail("the stream: $result->{message}") if $result->{state};
    }
    printf "  beside a stream one session had all slots %d times; its longest wait was %.3f s\n",
        $count, $longest;
    $load->fail("beside a stream of sessions, one waits $longest s for all slots")
        if $longest > LONGEST_BESIDE_STREAM_S;
    return;
}

1;
