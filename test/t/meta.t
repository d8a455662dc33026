#!/usr/bin/env perl
# scripts/meta.pl accepts our META.json, and refuses one that breaks PGXN's specification or says something else than the tree does.
# scripts/addresses.pl finds each address that is not that of project.conf, and writes them all.
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
my @addressed = qw(META.json README.md SECURITY.md debian/changelog debian/control debian/control.in debian/copyright debian/upstream/metadata
    rpm/advisory_ext.spec);
my @files = (@addressed, qw(project.conf advisory_ext.control CHANGELOG.md portable/advisory.sql examples/monitoring/check_advisory.sh));
make_path(map { "$tree/$_" } qw(debian/upstream rpm sql portable examples/monitoring));

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

# refused_file WHAT, FILE, PATTERN, REPLACEMENT, MESSAGE: changes another file.
sub refused_file {
    my ($what, $file, $pattern, $replacement, $message) = @_;
    my $text = content("$root/$file");
    $text =~ s/$pattern/$replacement/ or die "$file has nothing like $pattern\n";
    reset_tree();
    put($file, $text);
    like(mistakes(), $message, $what);
    return;
}

reset_tree();
is(mistakes(), '', 'our META.json is accepted');
like(mistakes('--dist'), qr/there is no sql\/advisory_ext--/, 'in a distribution the install script must be there');
put($_, "SELECT 1;\n") for map { $_->{file} } decode_json(content("$root/META.json"))->{provides}{advisory_ext};
is(mistakes('--dist'), '', 'with it, the distribution is accepted');

for my $field (qw(name version abstract maintainer license provides meta-spec)) {
    refused("without $field", sub { delete $_[0]{$field} }, qr/^\Q$field\E is missing$/m);
}
refused('a version of two parts', sub { $_[0]{version} = '1.1' }, qr/^version is not a semantic version/m);
refused('an empty abstract', sub { $_[0]{abstract} = ' ' }, qr/^abstract is not a string with/m);
refused('a maintainer without an address', sub { $_[0]{maintainer} = ['the authors'] }, qr/^maintainer\[0\] is not a person/m);
refused('an unknown license', sub { $_[0]{license} = 'postgres' }, qr/^license is not one of/m);
refused('a license that leads nowhere', sub { $_[0]{license} = { PostgreSQL => 'licence' } }, qr/^license\.PostgreSQL is not a URL/m);
refused('no extension', sub { $_[0]{provides} = {} }, qr/^provides is empty/m);
refused('an extension without a file', sub { delete $_[0]{provides}{advisory_ext}{file} }, qr/^provides\.advisory_ext\.file is missing/m);
refused('a file outside', sub { $_[0]{provides}{advisory_ext}{file} = '../a.sql' }, qr/file is not a path inside/m);
refused('a file that is not the script', sub { $_[0]{provides}{advisory_ext}{file} = 'README.md' }, qr/file is not the install script/m);
refused('a document that is not there', sub { $_[0]{provides}{advisory_ext}{docfile} = 'doc/none.md' }, qr/there is no doc\/none\.md/m);
refused('another version of the extension', sub { $_[0]{provides}{advisory_ext}{version} = '9.9.9' }, qr/version is 9\.9\.9, but the control/m);
refused('a specification of the future', sub { $_[0]{'meta-spec'}{version} = '2.0.0' }, qr/^meta-spec\.version is not 1\.0\.0/m);
refused('an unknown status', sub { $_[0]{release_status} = 'unreleased' }, qr/^release_status is not stable, testing/m);
refused('an unknown phase', sub { $_[0]{prereqs}{run} = { requires => { a1 => 0 } } }, qr/^the key 'run' of prereqs is not a phase/m);
refused('an unknown relation', sub { $_[0]{prereqs}{test} = { needs => { a1 => 0 } } }, qr/^the key 'needs' of prereqs\.test is not a rel/m);
refused('a requirement of two parts', sub { $_[0]{prereqs}{runtime}{requires}{PostgreSQL} = '15.0' }, qr/PostgreSQL is not 0 or versions/m);
refused('a home without a scheme', sub { $_[0]{resources}{homepage} = 'pgxn.org' }, qr/^resources\.homepage is not a URL/m);
refused('a repository of a type in capitals', sub { $_[0]{resources}{repository} = { type => 'Git' } }, qr/type is not in lower case/m);
refused('a tag with a slash', sub { $_[0]{tags} = ['a/b'] }, qr/^tags\[0\] is not a tag/m);
refused('a misspelled field', sub { $_[0]{licence} = 'postgresql' }, qr/^licence is unknown/m);
refused('another status than in CHANGELOG.md',
    sub { $_[0]{release_status} = $_[0]{release_status} eq 'stable' ? 'unstable' : 'stable' }, qr/^release_status is \w+, but/m);

put('META.json', '{ "name": ');
like(mistakes(), qr/^META\.json is not JSON/m, 'half a file');

refused_file('a new version in the control file', 'advisory_ext.control',
    qr/default_version = '[^']*'/, "default_version = '7.0'", qr/the control file's is 7\.0/);
refused_file('a newer version in CHANGELOG.md', 'CHANGELOG.md', qr/^## /m, "## 8.0\n\n## ", qr/CHANGELOG\.md is 8\.0/);
refused_file('another version in debian/changelog', 'debian/changelog', qr/\([^)]*\)/, '(8.0.0-1)', qr/debian\/changelog has version 8\.0\.0/);
refused_file('another version in the spec file', 'rpm/advisory_ext.spec', qr/^Version:.*$/m, 'Version: 8.0.0', qr/spec has version 8\.0\.0/);
refused_file('another version in its changelog', 'rpm/advisory_ext.spec', qr/- [\d.]+-1$/m, '- 8.0.0-1', qr/spec has version 8\.0\.0/);
refused_file('another version in README.md', 'README.md', qr/This is version [\d.]*\d/, 'This is version 8.0', qr/README\.md has version 8\.0/);
refused_file('another version of the portable edition', 'portable/advisory.sql', qr/SELECT '[\d.]+'/, "SELECT '8.0'", qr/advisory\.sql has version 8\.0/);
refused_file('another version of the check', 'examples/monitoring/check_advisory.sh', qr/[\d.]+ \(adv/, '8.0 (adv', qr/check_advisory\.sh has version 8\.0/);
refused_file('a version from which no script leads on', 'CHANGELOG.md', qr/\z/, "\n## 0.9\n",
    qr/there is no sql\/advisory_ext--0\.9--/);

# ---- The day of the release: one file after the other says that the version is released, and only the last one makes it right --------

my $address = 'https://pgxn.org/advisory_ext';
my ($version) = content("$root/advisory_ext.control") =~ /^default_version = '([^']*)'/m;
my @release = (
    [ 'CHANGELOG.md',     qr/^## \Q$version\E.*$/m,       "## $version (2030-12-31)" ],
    [ 'META.json',        qr/("release_status": )"\w+"/,  '"release_status": "stable"' ],
    [ 'debian/changelog', qr/\) \S+;/,                    ') unstable;' ],
    [ 'README.md',        qr/, which is \[not yet.*?\)/,  '' ],
    [ 'project.conf',     qr/\S+[.]example\S*(.*?)\S+[.]example\S*/s, "$address\nmaintainer = Jo <jo\@pgxn.org>" ],
);
reset_tree();
my $is_released = content("$root/META.json") !~ /"unstable"/;
for my $step (@release) {
    my ($file, $pattern, $replacement) = @{$step};
    isnt(mistakes(), '', "before the change of $file something is missing") if !$is_released && $file ne 'CHANGELOG.md';
    put($file, content("$tree/$file") =~ s/$pattern/$replacement/r);
}
is(mistakes(), '', 'a released version');
put('CHANGELOG.md', content("$tree/CHANGELOG.md") =~ s/2030-12-31/soon/r);
like(mistakes(), qr/CHANGELOG\.md says 'soon'/, 'it needs its date');

# ---- Addresses --------------------------------------------------------------------------------------------------------------------

sub addresses { return scalar qx("$^X" "$root/scripts/addresses.pl" @_ "$tree" 2>&1) }

reset_tree();
is(addresses(), '', 'every address is that of project.conf');
my ($repository, $mail) = content("$root/project.conf") =~ m{^repository = (\S+)\nmaintainer = .*<(\S+)>$}m;
for my $file (@addressed) {
    reset_tree();
    put($file, content("$root/$file") =~ s{\Q$repository\E|\Q$mail\E}{https://elsewhere.example/x}r);
    like(addresses(), qr/\A\Q$file\E has other addresses than project\.conf.*\n\z/, "another address in $file");
}
reset_tree();
put('project.conf', "repository = $address\nmaintainer = Jo Doe <jo\@pgxn.org>\n");
is(() = addresses() =~ /has other addresses/g, scalar @addressed, 'with other addresses in project.conf, all files differ');
is(addresses('--write'), '', 'make addresses writes them');
is(addresses(), '', 'and then they agree');
is(mistakes(), '', 'also with the specification');
unlike(content("$tree/$_"), qr/\Q$repository\E|\Q$mail\E/, "$_ has no old one") for @addressed;
put('SECURITY.md', "nothing\n");
like(addresses('--write'), qr/^SECURITY\.md has no place for an address/, 'a file that has lost its place is named');

# No other file has them.
my @known = map { "$root/$_" } @addressed, qw(project.conf);
my @others;
find({ no_chdir => 1, preprocess => sub { grep { !/^(?:[.]git|results|node_modules)$/ } @_ }, wanted => sub {
    push @others, $_ if -f && !/[.]zip$/ && content($_) =~ /\Q$repository\E|\Q$mail\E/;
} }, $root);
is_deeply([ sort @others ], [ sort @known ], 'no other file has them');
done_testing();
