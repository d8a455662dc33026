#!/usr/bin/env perl
# scripts/meta.pl finds each file that says another version than the control file, or does not agree
# that it is released. scripts/addresses.pl finds each address that is not that of project.conf, and
# writes them.
# Runs once: no server is asked.
use strict;
use warnings;
use FindBin;
use File::Copy qw(copy);
use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $root = "$FindBin::Bin/../..";
my $tree = tempdir(CLEANUP => 1);

sub content {
    my ($file) = @_;
    open my $in, '<:raw', $file or die "$file: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

sub put {
    my ($name, $text) = @_;
    open my $out, '>:raw', "$tree/$name" or die "$name: $!\n";
    print {$out} $text;
    close $out or die "$name: $!\n";
    return;
}

# Those with addresses, and others that meta.pl reads.
my @addressed = qw(META.json README.md SECURITY.md clients/node/package.json
    clients/python/pyproject.toml debian/changelog debian/control debian/control.in debian/copyright
    debian/upstream/metadata rpm/advisory_ext.spec);
my @files = (@addressed, qw(project.conf advisory_ext.control CHANGELOG.md portable/advisory.sql
    examples/monitoring/check_advisory.sh),
    map { s{^\Q$root\E/}{}r } glob "$root/sql/*--*--*.sql");
make_path(map { "$tree/$_" } qw(debian/upstream rpm sql portable examples/monitoring
    clients/node clients/python));

sub reset_tree {
    copy("$root/$_", "$tree/$_") or die "$_: $!\n" for @files;
    return;
}

sub mistakes {
    my (@options) = @_;
    return scalar qx("$^X" "$root/scripts/meta.pl" @options "$tree" 2>&1);
}

# refused WHAT, HOW, MESSAGE: changes the decoded META.json.
sub refused {
    my ($what, $change, $message) = @_;
    my $meta = decode_json(content("$root/META.json"));
    $change->($meta);
    reset_tree();
    put('META.json', JSON::PP->new->canonical->encode($meta));
    like(mistakes(), $message, $what);
    return;
}

# refused_file FILE, PATTERN, REPLACEMENT, MESSAGE: changes another file.
sub refused_file {
    my ($file, $pattern, $replacement, $message) = @_;
    my $text = content("$root/$file");
    $text =~ s/$pattern/$replacement/ or die "$file has nothing like $pattern\n";
    reset_tree();
    put($file, $text);
    like(mistakes(), $message, "the tree with a mistake in $file");
    return;
}

reset_tree();
is(mistakes(), '', 'our META.json is accepted');
like(mistakes('--dist'), qr/there is no sql\/advisory_ext--/,
    'in a distribution the install script must be there');
put(decode_json(content("$root/META.json"))->{provides}{advisory_ext}{file}, "SELECT 1;\n");
is(mistakes('--dist'), '', 'with it, the distribution is accepted');

refused('another version in META.json', sub { $_[0]{version} = '9.9.9' }, qr/^version in META/m);
refused('another version of the extension',
    sub { $_[0]{provides}{advisory_ext}{version} = '9.9.9' },
    qr/^version of the extension in META\.json is 9\.9\.9/m);
refused('no extension', sub { $_[0]{provides} = {} }, qr/^version of the .* is \(none\)/m);
refused('a file that is not the script',
    sub { $_[0]{provides}{advisory_ext}{file} = 'README.md' },
    qr/^install script in META\.json is/m);
refused('a document that is not there',
    sub { $_[0]{provides}{advisory_ext}{docfile} = 'doc/none.md' },
    qr/^there is no doc\/none\.md/m);
refused('another status than in CHANGELOG.md',
    sub { $_[0]{release_status} = $_[0]{release_status} eq 'stable' ? 'unstable' : 'stable' },
    qr/^META\.json does not say/m);

put('META.json', '{ "name": ');
like(mistakes(), qr/^META\.json is not JSON/m, 'half a file');

# What is changed in each file, and how the mistake is called.
for my $case (
    [ 'advisory_ext.control', qr/default_version = '[^']*'/, "default_version = '7.0'",
        qr/META\.json is .*, not 7\.0\.0/ ],
    [ 'CHANGELOG.md', qr/^## /m, "## 8.0\n\n## ", qr/CHANGELOG\.md is 8\.0/ ],
    [ 'CHANGELOG.md', qr/\z/, "\n## 0.9\n", qr/there is no sql\/advisory_ext--0\.9--/ ],
    [ 'debian/changelog', qr/\([^)]*\)/, '(8.0.0-1)', qr/debian\/changelog is 8\.0\.0/ ],
    [ 'rpm/advisory_ext.spec', qr/^Version:.*$/m, 'Version: 8.0.0', qr/spec is 8\.0\.0/ ],
    [ 'rpm/advisory_ext.spec', qr/- [\d.]+-1$/m, '- 8.0.0-1', qr/spec is 8\.0\.0/ ],
    [ 'README.md', qr/This is version [\d.]*\d/, 'This is version 8.0', qr/README\.md is 8\.0/ ],
    [ 'portable/advisory.sql', qr/SELECT '[\d.]+'/, "SELECT '8.0'", qr/advisory\.sql is 8\.0/ ],
    [ 'examples/monitoring/check_advisory.sh', qr/[\d.]+ \(adv/, '8.0 (adv', qr/sh is 8\.0/ ],
    [ 'clients/node/package.json', qr/"version": "[^"]*"/, '"version": "8.0.0"',
        qr/package\.json is 8\.0\.0/ ],
    [ 'clients/python/pyproject.toml', qr/^version = .*$/m, 'version = "8.0.0"',
        qr/pyproject\.toml is 8\.0\.0/ ],
) {
    refused_file(@{$case});
}

# ---- The day of the release ----------------------------------------------------------------------

# One file after the other says that the version is released, and only the last one makes it right.
my $address = 'https://pgxn.org/advisory_ext';
my ($version) = content("$root/advisory_ext.control") =~ /^default_version = '([^']*)'/m;
my @release = (
    [ 'CHANGELOG.md',     qr/^## \Q$version\E.*$/m,       "## $version (2030-12-31)" ],
    [ 'META.json',        qr/("release_status": )"\w+"/,  '"release_status": "stable"' ],
    [ 'debian/changelog', qr/\) \S+;/,                    ') unstable;' ],
    [ 'README.md',        qr/, which is \[not yet.*?\)/,  '' ],
    [ 'project.conf',     qr/\S+[.]example\S*(.*?)\S+[.]example\S*/s,
        "$address\nmaintainer = Jo <jo\@pgxn.org>" ],
);
reset_tree();
my $is_released = content("$root/META.json") !~ /"unstable"/;
for my $step (@release) {
    my ($file, $pattern, $replacement) = @{$step};
    isnt(mistakes(), '', "before the change of $file something is missing")
        if !$is_released && $file ne 'CHANGELOG.md';
    put($file, content("$tree/$file") =~ s/$pattern/$replacement/r);
}
is(mistakes(), '', 'a released version');
put('CHANGELOG.md', content("$tree/CHANGELOG.md") =~ s/2030-12-31/soon/r);
like(mistakes(), qr/CHANGELOG\.md says 'soon'/, 'it needs its date');

# ---- Addresses -----------------------------------------------------------------------------------

sub addresses { return scalar qx("$^X" "$root/scripts/addresses.pl" @_ "$tree" 2>&1) }

reset_tree();
is(addresses(), '', 'every address is that of project.conf');
my ($repository, $mail) =
    content("$root/project.conf") =~ m{^repository = (\S+)\nmaintainer = .*<(\S+)>$}m;
for my $file (@addressed) {
    reset_tree();
    put($file, content("$root/$file") =~ s{\Q$repository\E|\Q$mail\E}{https://elsewhere.example/}r);
    like(addresses(), qr/\A\Q$file\E has other addresses than project\.conf.*\n\z/,
        "another address in $file");
}
reset_tree();
put('project.conf', "repository = $address\nmaintainer = Jo Doe <jo\@pgxn.org>\n");
is(() = addresses() =~ /has other addresses/g, scalar @addressed,
    'with other addresses in project.conf, all files differ');
is(addresses('--write'), '', 'make addresses writes them');
is(addresses(), '', 'and then they agree');
is(mistakes(), '', 'also those that scripts/meta.pl reads');
unlike(content("$tree/$_"), qr/\Q$repository\E|\Q$mail\E/, "$_ has no old one") for @addressed;
put('SECURITY.md', "nothing\n");
like(addresses('--write'), qr/^SECURITY\.md has no place for an address/,
    'a file that has lost its place is named');

# No other file has them.
my @known = map { "$root/$_" } @addressed, qw(project.conf);
my @others;
my $ours = sub { grep { !/^(?:[.]git|results|node_modules)$/ } @_ };
find({ no_chdir => 1, preprocess => $ours, wanted => sub {
    push @others, $_ if -f && !/[.]zip$/ && content($_) =~ /\Q$repository\E|\Q$mail\E/;
} }, $root);
is_deeply([ sort @others ], [ sort @known ], 'no other file has them');
done_testing();
