#!/usr/bin/env perl
# `make demo` with the portable edition. The demo itself checks what it says.
# Runs once: the tests of what it calls run with each version.
use File::Temp qw(tempdir);
use FindBin;
use AdvisoryTest;

local $ENV{EDITION} = 'portable';
local $ENV{TMPDIR} = tempdir(CLEANUP => 1);
local $ENV{ADVISORY_EXT_STAGE} = '';    # it installs one for itself
chmod 0755, $ENV{TMPDIR};
# In a container root may not look into the processes of other users; on some machines nobody else
# may read what root makes.
umask 0077;
my $contained = $> == 0 ? 'setpriv --bounding-set=-sys_ptrace --' : '';
my $said = qx($contained bash "$FindBin::Bin/../../demo/demo.sh" 2>&1);
is($?, 0, 'the demo ends well') or diag $said;
my @checked = $said =~ /^\s*\[checked\] (.*)/mg;
pass($_) for @checked;
cmp_ok(scalar @checked, '>', 15, 'it has checked what it says');
like($said, qr/exactly one of the five workers made the invoices/, '... and the race was one');
is(join('; ', grep { /\Q$ENV{TMPDIR}\E/ } map { command_line($_) } glob '/proc/[0-9]*'), '',
    'nothing is left running');
done_testing();

# Nothing of a process that has ended.
sub command_line ($process) {
    open my $file, '<', "$process/cmdline" or return;
    return (<$file> // '') =~ tr/\0/ /r;
}
