#!/usr/bin/env perl
# doc/recipes.md with the portable edition: test/t/recipes.t, but for what doc/portable.md says is
# not there.
# Runs once: the recipes are the same for each version, and what they call is tested with each.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib";

$ENV{EDITION} = 'portable';
defined do "$FindBin::Bin/../t/recipes.t" or die "cannot run recipes.t: ", $@ || $!, "\n";
