#!/usr/bin/env perl
# Slots that outlive a session, in the portable edition, as a role without privileges: between
# sessions, after crashes, where a service refuses what they are made of, and how views show them.
use AdvisoryTest;
use Leases;
use LeaseSlots;
use Time::HiRes qw(sleep time);

use constant { TAKERS => 10, GRANTS => 150, CRASHES => 3 };

my $owner = create_portable_database();
my $look = session(application => 'look');
$look->run('CREATE ROLE lessee LOGIN', 'CREATE ROLE stranger LOGIN');
my $lessee = sub ($application) { session(role => 'lessee', application => $application) };
begin_lease_slots(look => $look, session => $lessee);

slots_outlive();
cmp_ok(median(slots_in_order()), '<', 1, 'soon');
slots_in_transactions();
slot_waits_end();
longest_hold();
slots_and_roles(session(role => 'stranger'));
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');
$owner->run('DELETE FROM advisory._leases');

never_two_owners(session => sub { session(role => 'lessee') }, takers => TAKERS, grants => GRANTS,
    waits_in => qr/READ COMMITTED/, slots => 3);
$look->shows(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), 0, 'no lock is left');
done_testing();
