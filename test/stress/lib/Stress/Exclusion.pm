# Phase exclusion: a random mix of all operations, with cancels, terminated sessions and closed
# sockets. The model checks that no two sessions have conflicting locks.
package Stress::Exclusion;

use AdvisoryTest;
use Stress::Load;

# Dynamic shared memory grows by segments of a megabyte.
use constant { SEGMENT_BYTES => 1024 * 1024 };

sub run (%how) {
    my $load = Stress::Load->new(%how);
    my $started = $load->{look}->value('SELECT pg_postmaster_start_time()');
    $load->start;
    $load->watch($how{seconds} / 2);
    my ($bytes, $names) =
        ($load->shared_bytes, $load->{look}->value('SELECT names FROM advisory.directory'));
    $load->watch($how{seconds} / 2);
    my ($bytes_now, $names_now) =
        ($load->shared_bytes, $load->{look}->value('SELECT names FROM advisory.directory'));
    $load->finish;
    $load->check_end;
    $load->check_works;
    $load->fail("dynamic shared memory has grown from $bytes to $bytes_now bytes")
        if $bytes_now > $bytes + SEGMENT_BYTES;
    $load->fail("the name table has grown from $names to $names_now") if $names_now > $names;
    $load->fail('the server has restarted')
        if $load->{look}->value('SELECT pg_postmaster_start_time()') ne $started;
    printf "  %.1f MB of dynamic shared memory at half time, %.1f MB at the end; %d and %d names\n",
        $bytes / SEGMENT_BYTES, $bytes_now / SEGMENT_BYTES, $names, $names_now;
    $load->report;
    $load->{server}->stop;
    return;
}

1;
