#!/usr/bin/env perl
# Every link of the documents leads to a file or a heading that exists, in the tree and where `make
# install` puts the documents; and every picture can be drawn. The pictures are left in
# results/pictures, to be looked at.
# Runs first: it draws every picture.
use AdvisoryTest;
use FindBin;
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use File::Spec;
use JSON::PP;

my $root = File::Spec->canonpath("$FindBin::Bin/../..");
plan skip_all => 'there is no pandoc' unless program('pandoc');

# Below a folder; not what tests leave behind, and not the packages that npm brings.
sub files ($folder, $ending) {
    open my $found, '-|', 'find', $folder, '(', '-name', 'results', '-o', '-name', 'node_modules',
        '-o', '-name', '.git', ')', '-prune', '-o',
        '-name', "*.$ending", '-print' or die "cannot run find: $!\n";
    return map { chomp; File::Spec->abs2rel($_, $folder) } <$found>;
}

# pandoc's document as nested lists; each element has a type "t" and a content "c".
sub elements ($node, $type) {
    my @inside = ref $node eq 'HASH' ? values %$node : ref $node eq 'ARRAY' ? @$node : ();
    return ((ref $node eq 'HASH' && ($node->{t} // '') =~ $type ? $node : ()),
        map { elements($_, $type) } @inside);
}

# The targets of all links in a folder. Each is tested.
sub follow_links ($folder, $what) {
    my (%anchors, %targets);
    for my $file (files($folder, 'md')) {
        open my $json, '-|', 'pandoc', '--from=gfm', '--to=json', "$folder/$file"
            or die "cannot run pandoc: $!\n";
        local $/ = undef;
        my $document = decode_json(scalar <$json>);
        $anchors{$file}{ $_->{c}[1][0] } = 1 for elements($document, qr/^Header$/);
        $targets{$file} = [
            (map { $_->{c}[2][0] } elements($document, qr/^(?:Link|Image)$/)),
            (map { $_->{c}[1] =~ /\b(?:src|href)="([^"]*)"/g } elements(
                $document, qr/^Raw(?:Inline|Block)$/)),
        ];
        for my $image (elements($document, qr/^Image$/)) {
            ok(scalar @{ $image->{c}[1] },
                "$what, $file: $image->{c}[2][0] has a text for those who do not see the picture");
        }
    }
    for my $file (sort keys %targets) {
        my @broken;
        for my $target (@{ $targets{$file} }) {
            next if $target =~ m{^https://[\w.-]+(?:/|$)|^mailto:};
            my ($path, $anchor) = $target =~ /^([^#]*)(?:#(.*))?$/;
            my $there = $path eq '' ? $file
                : File::Spec->abs2rel(
                    File::Spec->rel2abs($path, dirname("$folder/$file")), $folder);
            1 while $there =~ s{(?:^|(?<=/))(?![.][.]/)[^/]+/[.][.]/}{};
            push @broken, $target if $there =~ /^[.][.]/ || !-e "$folder/$there"
                || (defined $anchor && !$anchors{$there}{$anchor});
        }
        is_deeply(\@broken, [], "$what, $file: " . @{ $targets{$file} } . ' links lead somewhere');
    }
    return map { @$_ } values %targets;
}

my $installed = `"@{[$ENV{PG_CONFIG} // 'pg_config']}" --docdir`;
chomp $installed;
cmp_ok(scalar follow_links("$ENV{ADVISORY_EXT_STAGE}$installed/extension/advisory_ext",
    'installed'), '>', 100, 'the installed documents have links');
my @targets = follow_links($root, 'tree');

SKIP: {
    skip 'there is no rsvg-convert', 1 unless program('rsvg-convert');
    make_path("$root/results/pictures");
    for my $file (files($root, 'svg')) {
        my $picture = "$root/results/pictures/" . basename($file) =~ s/svg$/png/r;
        is(system('rsvg-convert', '--output', $picture, "$root/$file"), 0, "$file can be drawn");
        cmp_ok(-s $picture // 0, '>', 5000, 'and is not empty');
        ok((scalar grep { basename($_) eq basename($file) } @targets), 'and a page shows it');
    }
}
done_testing();
