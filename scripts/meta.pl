#!/usr/bin/env perl
# Checks that this tree says one version, and that all agree on whether it is released. (PGXN checks
# the form of META.json when the archive is uploaded.)
#
#   perl scripts/meta.pl [--dist] [FOLDER]
#
# It prints one line for each mistake, and fails if there is one. The tree is the folder that holds
# META.json (default: this file's). With --dist the tree is an unpacked distribution: then the
# install script must be there. In a clone it is not there before make has built it.
use strict;
use warnings;
use FindBin;
use JSON::PP;

my $is_dist = @ARGV && $ARGV[0] eq '--dist' && shift;
my $root    = @ARGV ? $ARGV[0] : "$FindBin::Bin/..";
my @mistakes;

sub mistake { push @mistakes, "@_"; return }

sub content {
    my ($name) = @_;
    open my $in, '<:raw', "$root/$name" or do { mistake("there is no $name"); return '' };
    local $/ = undef;
    return scalar <$in>;
}

my $meta = eval { decode_json(content('META.json')) };
mistake("META.json is not JSON: $@") if !$meta;
check_tree($meta) if $meta;
print map { "$_\n" } @mistakes;
exit(@mistakes ? 1 : 0);

sub same {
    my ($what, $found, $expected) = @_;
    $found //= '(none)';
    mistake("$what is $found, not $expected") if $found ne $expected;
    return;
}

# The control file has the version, CHANGELOG.md says whether it is released.
sub check_tree {
    my ($meta) = @_;
    my ($control) = content('advisory_ext.control') =~ /^default_version\s*=\s*'([^']*)'/m;
    $control //= '(none)';
    my $full = $control =~ /\A\d+[.]\d+\z/ ? "$control.0" : $control;

    my $provided = $meta->{provides}{advisory_ext} // {};
    same('version in META.json', $meta->{version}, $full);
    same('version of the extension in META.json', $provided->{version}, $full);
    same('install script in META.json', $provided->{file}, "sql/advisory_ext--$control.sql");
    for my $file (grep { defined } $provided->{docfile}, $is_dist ? $provided->{file} : ()) {
        mistake("there is no $file, which META.json names") if !-s "$root/$file";
    }

    # CHANGELOG.md has the newest version first. Each is released, and then has its date, or not.
    my $changelog = content('CHANGELOG.md');
    my ($newest, $remark) = $changelog =~ /^## (\S+)(?: +\((.*)\))?$/m;
    same('the newest version in CHANGELOG.md', $newest, $control);
    $remark //= '';
    my $is_released = $remark ne 'unreleased';
    mistake("CHANGELOG.md says '$remark' of $control, not 'unreleased' or a date as 2026-12-31")
        if $is_released && $remark !~ /\A\d{4}-\d\d-\d\d\z/;

    # Every version can be updated to the next one.
    my @versions = reverse $changelog =~ /^## (\d\S*)/mg;
    for my $i (1 .. $#versions) {
        my $upgrade = "sql/advisory_ext--$versions[$i - 1]--$versions[$i].sql";
        mistake("there is no $upgrade") if !-s "$root/$upgrade";
    }

    # Who else says the version.
    for my $copy (
        [ 'rpm/advisory_ext.spec', qr/^Version:\s*(\S+)/m, $full ],
        [ 'rpm/advisory_ext.spec', qr/^%changelog\n.* - (\S+)-\d+$/m, $full ],
        [ 'debian/changelog', qr/\A\S+ \(([^)]+)-[^-)]+\)/, $full ],
        [ 'README.md', qr/This is version (\d+(?:[.]\d+)+)/, $control ],
        [ 'portable/advisory.sql', qr/ advisory[.]version\(\).*?SELECT '(.*?)'/s, $control ],
        [ 'examples/monitoring/check_advisory.sh', qr/(\S+) \(advisory_ext\)/, $control ],
        [ 'clients/node/package.json', qr/"version": *"([^"]*)"/, $full ],
        [ 'clients/python/pyproject.toml', qr/^version = "([^"]*)"/m, $full ],
    ) {
        my ($file, $pattern, $expected) = @{$copy};
        same("version in $file", content($file) =~ $pattern ? $1 : undef, $expected);
    }

    # Who else says whether it is released.
    my %says = (
        'META.json'        => ($meta->{release_status} // 'stable') eq 'stable',
        'debian/changelog' => content('debian/changelog') !~ /\A\S+ \S+ UNRELEASED;/,
        'README.md'        => content('README.md') !~ /not yet released/,
    );
    my $is = $is_released ? 'released' : 'unreleased';
    for my $file (sort keys %says) {
        mistake("$file does not say that $control is $is, as CHANGELOG.md does")
            if $says{$file} != $is_released;
    }
    mistake("project.conf has placeholders, but $control is released")
        if $is_released && content('project.conf') =~ /^[^#\n]*[.]example\b/m;
    return;
}
