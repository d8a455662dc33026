#!/usr/bin/env perl
# How psycopg2 sends values. (client_python.t tests the package for Python and its examples.)
use AdvisoryTest;
use FindBin;
use Launch;
use Programs;

my $python = python('psycopg2') or plan skip_all => 'Python with psycopg2 is not here';

create_database();
launch($python, "$FindBin::Bin/calls.py", calls())->reports(250);
done_testing();
