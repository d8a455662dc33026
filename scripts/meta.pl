#!/usr/bin/env perl
# Checks META.json against version 1.0.0 of PGXN's specification (https://pgxn.org/meta/spec.txt) and against this tree.
#
#   perl scripts/meta.pl [--dist] [FOLDER]
#
# It prints one line for each mistake, and fails if there is one. The tree is the folder that holds META.json (default: this file's).
# With --dist the tree is an unpacked distribution: then the files that META.json names must be there. In a clone the install script
# is not there before make has built it.
use strict;
use warnings;
use FindBin;
use JSON::PP;

my $is_dist = @ARGV && $ARGV[0] eq '--dist' && shift;
my $root    = @ARGV ? $ARGV[0] : "$FindBin::Bin/..";
my @mistakes;

sub mistake { push @mistakes, "@_"; return }

# ---- Types of the specification: each takes where a value is, and the value, and reports what is wrong with it -------------------

my $SEMVER = qr/(?:0|[1-9]\d*)[.](?:0|[1-9]\d*)[.](?:0|[1-9]\d*)(?:-?[A-Za-z][0-9A-Za-z-]*)?/;

sub matches {
    my ($pattern, $what) = @_;
    return sub {
        my ($where, $value) = @_;
        mistake("$where is not $what") if !defined $value || ref $value || $value !~ /\A$pattern\z/;
    };
}

my $string  = matches(qr/.*\S.*/s, 'a string with something in it');
my $version = matches($SEMVER, 'a semantic version, such as 1.2.0');
my $range   = matches(qr/0|(?:(?:[<>]=?|[!=]=)?\s*$SEMVER)(?:,\s*(?:[<>]=?|[!=]=)?\s*$SEMVER)*/, '0 or versions, such as ">= 1.2.0, != 1.5.0"');
my $url     = matches(qr{[a-z][a-z0-9+.-]*://[^\s/?#]+\S*}i, 'a URL');
my $term    = matches(qr{[^\s[:cntrl:]/\\]{2,}}, 'a term: two characters or more, and no blanks, / or \\');
my $tag     = matches(qr{[^[:cntrl:]/\\]{1,255}}, 'a tag: up to 255 characters, and no / or \\');
my $email   = matches(qr/\S+@\S+/, 'an e-mail address');
my $contact = matches(qr/.*\S.*<\S+@\S+>|\S+@\S+/, 'a person or list with an e-mail address, such as "Jo <jo@host>"');
my $license = matches(
    qr/agpl_3|apache_1_1|apache_2_0|artistic_[12]|bsd|freebsd|gfdl_1_[23]|gpl_[123]|lgpl_2_1|lgpl_3_0|mit|mozilla_1_[01]
       |openssl|perl_5|postgresql|qpl_1_0|ssleay|sun|zlib|open_source|restricted|unrestricted|unknown/x,
    q(one of the specification's licenses));
my $path = matches(qr{(?!/)(?!.*(?:\A|/)[.][.](?:/|\z))\S+}, 'a path inside the distribution');

sub anything { return }

# A list, or a single value in place of a list of one.
sub list_of {
    my ($type) = @_;
    return sub {
        my ($where, $value) = @_;
        return $type->($where, $value) if ref $value ne 'ARRAY';
        mistake("$where is empty") if !@{$value};
        $type->("$where\[$_]", $value->[$_]) for 0 .. $#{$value};
    };
}

# An object whose keys are free: both they and the values have a type.
sub map_of {
    my ($key_type, $type) = @_;
    return sub {
        my ($where, $value) = @_;
        return mistake("$where is not an object") if ref $value ne 'HASH';
        mistake("$where is empty") if !%{$value};
        for my $key (sort keys %{$value}) {
            $key_type->("the key '$key' of $where", $key);
            $type->("$where.$key", $value->{$key});
        }
    };
}

# An object with these fields; a field that begins with ! is required. Others must begin with x_.
sub object {
    my (%fields) = @_;
    my %type = map { s/^!//r => $fields{$_} } keys %fields;
    return sub {
        my ($where, $value) = @_;
        my $prefix = $where ? "$where." : '';
        return mistake(($where || 'META.json') . ' is not an object') if ref $value ne 'HASH';
        for my $field (map { /^!(.*)/ ? $1 : () } sort keys %fields) {
            mistake("$prefix$field is missing") if !defined $value->{$field};
        }
        for my $field (grep { defined $value->{$_} || !$fields{"!$_"} } sort keys %{$value}) {
            my $known = $type{$field};
            if    ($known)            { $known->("$prefix$field", $value->{$field}) }
            elsif ($field !~ /^x_/i) { mistake("$prefix$field is unknown: an own field begins with x_") }
        }
    };
}

sub license_field {
    my ($where, $value) = @_;
    return ref $value eq 'HASH' ? map_of($string, $url)->($where, $value) : list_of($license)->($where, $value);
}

my $specification = object(
    '!name'       => $term,
    '!version'    => $version,
    '!abstract'   => $string,
    '!maintainer' => list_of($contact),
    '!license'    => \&license_field,
    '!provides'   => map_of($term, object('!file' => $path, '!version' => $version, abstract => $string, docfile => $path)),
    '!meta-spec'  => object('!version' => matches(qr/1[.]0[.]0/, '1.0.0'), url => $url),
    description    => $string,
    generated_by   => $string,
    release_status => matches(qr/stable|testing|unstable/, 'stable, testing or unstable'),
    tags           => list_of($tag),
    no_index       => object(file => list_of($path), directory => list_of($path)),
    prereqs        => map_of(
        matches(qr/configure|build|test|runtime|develop|x_.+/i, 'a phase'),
        map_of(matches(qr/requires|recommends|suggests|conflicts|x_.+/i, 'a relation'), map_of($term, $range))),
    resources => object(
        homepage   => $url,
        license    => list_of($url),
        bugtracker => object(web => $url, mailto => $email),
        repository => object(url => $url, web => $url, type => matches(qr/[^[:upper:]]+/, 'in lower case'))),
);

# ---- The tree ----------------------------------------------------------------------------------------------------------------

sub content {
    my ($name) = @_;
    open my $in, '<:raw', "$root/$name" or do { mistake("there is no $name"); return '' };
    local $/ = undef;
    return scalar <$in>;
}

my $meta = eval { decode_json(content('META.json')) };
mistake("META.json is not JSON: $@") if !$meta;

if ($meta) {
    $specification->('', $meta);
    check_tree($meta) if !@mistakes;
}

# What META.json says twice, and what others say too: the control file has the version, CHANGELOG.md says whether it is released.
sub check_tree {
    my ($meta) = @_;
    my $name = $meta->{name};
    my ($control) = content("$name.control") =~ /^default_version\s*=\s*'([^']*)'/m;
    $control //= '(none)';
    my $full = $control =~ /\A\d+[.]\d+\z/ ? "$control.0" : $control;
    mistake("version is $meta->{version}, but the control file's is $control") if $meta->{version} ne $full;

    my $provided = $meta->{provides}{$name} // return mistake("provides has no $name");
    mistake("provides.$name.version is $provided->{version}, but the control file's is $control") if $provided->{version} ne $full;
    my $script = "sql/$name--$control.sql";
    mistake("provides.$name.file is not the install script, $script") if $provided->{file} ne $script;
    for my $field ('docfile', $is_dist ? 'file' : ()) {
        my $file = $provided->{$field} // next;
        mistake("provides.$name.$field: there is no $file") if !-s "$root/$file";
    }

    # CHANGELOG.md has the newest version first. Each version is released, and then has its date, or not.
    my $changelog = content('CHANGELOG.md');
    my ($newest, $remark) = $changelog =~ /^## (\S+)(?: +\((.*)\))?$/m;
    mistake("the newest version of CHANGELOG.md is " . ($newest // '(none)') . ", but the control file's is $control")
        if ($newest // '') ne $control;
    $remark //= '';
    my $is_released = $remark ne 'unreleased';
    mistake("CHANGELOG.md says '$remark' of $control, neither 'unreleased' nor a date, such as 2026-12-31")
        if $is_released && $remark !~ /\A\d{4}-\d\d-\d\d\z/;
    my $says = "but CHANGELOG.md says that $control is " . ($is_released ? 'released' : 'unreleased');
    my $status = $meta->{release_status} // 'stable';
    mistake("release_status is $status, $says") if $is_released != ($status eq 'stable');

    # Every version can be updated to the next one.
    my @versions = reverse $changelog =~ /^## (\d\S*)/mg;
    for my $i (1 .. $#versions) {
        my $upgrade = "sql/$name--$versions[$i - 1]--$versions[$i].sql";
        mistake("there is no $upgrade") if !-s "$root/$upgrade";
    }

    # Who else says the version.
    for my $copy (
        [ 'rpm/advisory_ext.spec',                 qr/^Version:\s*(\S+)/m,                             $full ],
        [ 'rpm/advisory_ext.spec',                 qr/^%changelog\n.* - (\S+)-\d+$/m,                  $full ],
        [ 'debian/changelog',                      qr/\A\S+ \(([^)]+)-[^-)]+\)/,                       $full ],
        [ 'README.md',                             qr/This is version (\d+(?:[.]\d+)+)/,               $control ],
        [ 'portable/advisory.sql',                 qr/FUNCTION advisory[.]version\(\).*?SELECT '(.*?)'/s, $control ],
        [ 'examples/monitoring/check_advisory.sh', qr/(\S+) \(advisory_ext\)/,                         $control ],
    ) {
        my ($file, $pattern, $expected) = @{$copy};
        my $found = content($file) =~ $pattern ? $1 : '(none)';
        mistake("$file has version $found, not $expected") if $found ne $expected;
    }

    # Who else says whether it is released. Debian's changelog has UNRELEASED in place of a release.
    my ($distribution) = content('debian/changelog') =~ /\A\S+ \S+ ([^\s;]+);/;
    mistake("debian/changelog is for " . ($distribution // '(none)') . ", $says")
        if $is_released != (($distribution // '') ne 'UNRELEASED');
    mistake("README.md does not agree on 'not yet released', $says") if $is_released != (content('README.md') !~ /not yet released/);
    mistake("project.conf has placeholders, $says") if $is_released && content('project.conf') =~ /^[^#\n]*[.]example\b/m;
}

print map { "$_\n" } @mistakes;
exit(@mistakes ? 1 : 0);
