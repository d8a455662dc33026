#!/usr/bin/env perl
# `make demo` with the portable edition. The demo itself checks what it says.
# Runs once: the tests of what it calls run with each version.
use FindBin;
use AdvisoryTest;

local $ENV{EDITION} = 'portable';
my $said = qx(bash "$FindBin::Bin/../../demo/demo.sh" 2>&1);
is($?, 0, 'the demo ends well') or diag $said;
my @checked = $said =~ /^\s*\[checked\] (.*)/mg;
pass($_) for @checked;
cmp_ok(scalar @checked, '>', 15, 'it has checked what it says');
like($said, qr/exactly one of the five workers made the invoices/, '... and the race was one');
done_testing();
