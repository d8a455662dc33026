#!/usr/bin/env perl
# make: objects that were built for another server, or with other flags, are built again. Two builds
# of one server version shared objects once, and crashed on every call. And its help,
# and what Python finds beside the library.
# Runs once: no server is asked.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $repository = "$FindBin::Bin/../..";
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $directory = tempdir(CLEANUP => 1);

# A tree with one source that needs nothing, and a server that says what we want of its
# configuration.
mkdir "$directory/$_" for 'src', 'src/base';
symlink "$repository/$_", "$directory/$_" or die "$_: $!\n" for qw(Makefile advisory_ext.control);
put('src/base/pg.h', "#pragma once\n");
put('src/base/nothing.cpp', qq{#include "base/pg.h"\nint nothing;\n});

sub put {
    my ($name, $text) = @_;
    open my $file, '>', "$directory/$name" or die "$name: $!\n";
    print {$file} $text;
    close $file or die "$name: $!\n";
    return;
}

sub configured {
    my ($how) = @_;
    put('pg_config',
        qq{#!/bin/sh\n[ "\$1" = --configure ] && echo "$how" && exit\nexec '$pg_config' "\$@"\n});
    return chmod 0755, "$directory/pg_config";
}

# Is the object built, with these variables of make?
sub builds {
    my (@variables) = @_;
    local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
    delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
    my $variables = join ' ', map { "'$_'" } @variables;
    my $make = "make -C '$directory' 'PG_CONFIG=$directory/pg_config'";
    my $said = qx{$make $variables src/base/nothing.o 2>&1};
    is($?, 0, "make @variables") or diag($said);
    return $said =~ /nothing\.cpp/ ? 1 : 0;
}

configured('--one');
is(builds(), 1, 'the object is built');
is(builds(), 0, 'once');
for my $other (['COPT=-DOTHER'], ['COPT=-DOTHER="x y"'], ['CXXFLAGS=-O1'], ['CFLAGS=-O1'],
        ['CPPFLAGS=-DOTHER']) {
    is(builds(@$other), 1, "@$other: it is built again");
    is(builds(@$other), 0, 'once');
    is(builds(), 1, 'and again without');
}
put('src/base/pg.h', "#pragma once\nextern int nothing;\n");
is(builds(), 1, 'the header that is compiled once has changed: it is built again');
is(builds(), 0, 'once');
configured('--two --with-other');
is(builds(), 1, 'the server was configured otherwise: it is built again');
is(builds(), 0, 'once');

# The Docker image is built from what .dockerignore lets through. (The job "image" of CI builds it.)
{
    my $context = tempdir(CLEANUP => 1);
    open my $rules, '<', "$repository/.dockerignore" or die ".dockerignore: $!\n";
    for my $path (map { /^!([\w\/.]+)$/ ? $1 : () } <$rules>) {
        my ($folder) = $path =~ m{^(.*)/};
        system('mkdir', '-p', "$context/$folder") if $folder;
        system('cp', '-r', "$repository/$path", "$context/$path");
    }
    my $script = qx{ls '$context'/sql/*--*.sql 2>/dev/null};
    unlink split /\n/, $script;
    my ($version) = do { local (@ARGV, $/) = "$repository/advisory_ext.control"; <> }
        =~ /^default_version *= *'(.*)'/m;
    my $made = "sql/advisory_ext--$version.sql";
    my $said = qx{make -C '$context' PG_CONFIG=none $made 2>&1};
    is($?, 0, 'the files for the Docker image give the install script') or diag($said);
    ok(-s "$context/$made", 'which is not empty');
}

# Python looks for modules in the current folder first, and a library there is one. But a folder of
# the same name goes before: the link to the package.
SKIP: {
    skip 'there is no python3 here', 1 if system('python3 -c "" 2>/dev/null') != 0;
    skip 'only a clone has it', 1 if !-e "$repository/.ci";
    symlink "$repository/advisory_ext", "$directory/advisory_ext" or die "advisory_ext: $!\n";
    put('advisory_ext.so', 'no module of Python');
    my $found = qx{cd '$directory' &&
        python3 -B -c 'import advisory_ext; print(advisory_ext.Advisory)' 2>&1};
    is($found, "<class 'advisory_ext._advisory.Advisory'>\n",
        'beside the library, Python imports the package');
}

my @help = split /\n/, qx{make -s -C '$repository' help};
is($?, 0, 'make help');
ok(@help > 10 && @help < 24 && !(grep { length > 80 } @help), 'it fits a screen');
my $contributing = do { local (@ARGV, $/) = "$repository/CONTRIBUTING.md"; <> };
my @unknown = grep { $contributing !~ /^make \Q$_\E /m } grep { $_ ne 'demo' } map {
    /^[ ]+make[ ]([a-z-]+)[ ]/x
} @help;
is("@unknown", '', 'CONTRIBUTING.md has each target');
done_testing();
