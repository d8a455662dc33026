# Races step by step: a session stops at a named point of the library (src/base/stoppoint.h), the
# test does what is to come in between, and lets it go on. For test/races, with the library that
# make FAULTS=1 builds.
package StopPoints;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';

our @EXPORT = qw(create_stoppable_database stop_at has_stopped go_on);

# Creates a database with the extension, and with the functions of test/faults/faults.cpp that the
# tests call themselves.
sub create_stoppable_database {
    my $name = create_database(faults => 1);
    session()->run(
        q(CREATE FUNCTION stop_at(point text, pass integer DEFAULT 1) RETURNS void
            AS 'advisory_ext_faults', 'advisory_stop_at' LANGUAGE c STRICT),
        q(CREATE FUNCTION interrupts_are_late(boolean) RETURNS void
            AS 'advisory_ext_faults', 'advisory_interrupts_are_late' LANGUAGE c STRICT));
    return $name;
}

# The session is to stop when it comes to the point, or does so for the n-th time. Returns the
# session.
sub stop_at ($session, $point, $pass = 1) {
    return $session->run("SELECT stop_at('$point', $pass)");
}

# Waits until the session has stopped, and returns true; or false if its statement has ended without
# coming to the point.
sub has_stopped ($session) {
    my $is_done;
    wait_until('session has stopped', sub {
        is_stopped($session->pid) || ($is_done = $session->is_done) });
    return !$is_done;
}

# Returns the session.
sub go_on ($session) {
    kill CONT => $session->pid or die 'cannot continue the process ' . $session->pid . ": $!\n";
    return $session;
}

sub is_stopped ($pid) {
    open my $stat, '<', "/proc/$pid/stat" or return 0;
    return (<$stat> // '') =~ /.*\) T /;
}

1;
