#!/usr/bin/env perl
# doc/reference.md lists every function, view, table and setting of a fresh database, and nothing
# else. Each entry leads to a heading. (That each object has a COMMENT is tested in
# test/pgtap/10_api.sql.)
use FindBin;
use AdvisoryTest;

my $folder = "$FindBin::Bin/../../doc";

sub lines_of ($file) {
    open my $in, '<:encoding(UTF-8)', $file or return;
    chomp(my @lines = <$in>);
    close $in;
    return @lines;
}

# The entries of the page, by chapter: {name => target of its link}.
my %listed;
{
    my ($chapter, %description);
    for my $line (lines_of("$folder/reference.md")) {
        if ($line =~ /^## (.+)/) { $chapter = $1 }
        next unless $line =~ /^\| \[`([^`]+)`\]\(([^)]+)\) \| (.*?) \|$/;
        ok(!exists $listed{$chapter}{$1}, "$1 is listed once") if exists $listed{$chapter}{$1};
        $listed{$chapter}{$1} = $2;
        $description{$1} = $3;
    }
    is_deeply([ grep { !length $description{$_} } sort keys %description ], [],
        'every entry has a description');
}

create_database();
my $look = session();
my %asked = (
    Functions => q{SELECT DISTINCT proname::text FROM pg_proc
        WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_'},
    Views     => q{SELECT relname::text FROM pg_class WHERE relnamespace = 'advisory'::regnamespace
        AND relname !~ '^_' AND relkind IN ('v', 'm')},
    Tables    => q{SELECT relname::text FROM pg_class WHERE relnamespace = 'advisory'::regnamespace
        AND relname !~ '^_' AND relkind IN ('r', 'p', 'f', 'S')},
    Settings  => q{SELECT name FROM pg_settings WHERE name LIKE 'advisory\_ext.%'},
);
$look->run('SELECT FROM advisory.settings');    # loads the library
for my $chapter (sort keys %asked) {
    my @there = sort $look->column($asked{$chapter});
    cmp_ok(scalar @there, '>', 0, "there are objects for the chapter $chapter");
    is_deeply([ sort keys %{ $listed{$chapter} } ], \@there,
        "the chapter $chapter lists what there is");
}
is_deeply([ sort keys %listed ], [ sort keys %asked ], 'there are no other chapters with entries');

# A heading's anchor, by the rule of GitHub.
sub anchor { return lc($_[0] =~ s/[`*]//gr) =~ s/[^\w -]//gr =~ tr/ /-/r }

my %anchors;
for my $target (map { values %$_ } values %listed) {
    my ($page, $heading) = split /#/, $target;
    $anchors{$page} //= { map { /^#+ (.+)/ ? (anchor($1) => 1) : () } lines_of("$folder/$page") };
    ok($anchors{$page}{ $heading // '' }, "the link to $target")
        or diag('there is no such heading');
}

# The pages name no function, view or table that does not exist.
my %exists = map { $_ => 1 } map { keys %{ $listed{$_} } } qw(Functions Views Tables);
for my $file (sort grep { !/recipes/ } glob("$folder/*.md"), "$folder/../README.md") {
    my %unknown;
    for my $line (lines_of($file)) {
        $unknown{$_} = 1
            for grep { !/^_/ && !$exists{$_} } $line =~ m{(?<!/)\badvisory[.]([a-z_]+)}g;
    }
    is_deeply([ sort keys %unknown ], [],
        ($file =~ s{.*/}{}r) . ' names no object that does not exist');
}
done_testing();
