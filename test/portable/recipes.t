#!/usr/bin/env perl
# doc/recipes.md with the portable edition: test/t/recipes.t, but for what doc/portable.md says is
# not there.
# Runs once: recipes.t runs with each version, and so do the tests of what the recipes call.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t/lib";

$ENV{EDITION} = 'portable';
defined do "$FindBin::Bin/../t/recipes.t" or die "cannot run recipes.t: ", $@ || $!, "\n";
