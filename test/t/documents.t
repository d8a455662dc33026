#!/usr/bin/env perl
# Every block of SQL of the documents is run, and prints what the page shows (see lib/Page.pm).
#
#   PAGES="locks views"     only these pages
#   WRITE=1                 where psql prints something else, write that into the page
#
# Runs once: the pages are the same for each version, and what they call is tested with each.
use utf8;
use FindBin;
use AdvisoryTest;
use File::Basename qw(basename);
use File::Spec;
use Page;
use Psql;

my $root = "$FindBin::Bin/../..";

# This page has a test of its own, test/t/recipes.t, which runs its SQL in several sessions at the
# same time. So have incidents.md, test/t/incidents.t, and README.md.
my $RECIPES   = 'recipes.md';
my $INCIDENTS = 'incidents.md';
my $README    = 'README.md';

# This one is about the portable edition.
my $PORTABLE = 'portable.md';

my %wanted = map { $_ => 1 } split ' ', $ENV{PAGES} // '';
my $server = own_server('deadlock_timeout=200ms');

sub content ($file) {
    open my $in, '<:encoding(UTF-8)', $file or return;
    local $/ = undef;
    return scalar <$in>;
}

for my $file ("$root/README.md", sort glob "$root/doc/*.md $root/doc/pictures/*.md") {
    my $name = basename($file);
    next if %wanted && !$wanted{ $name =~ s/[.]md$//r };
    my $page = Page->new($file);
    $page->run($server, portable => $name eq $PORTABLE)
        if $page->steps && !grep { $name eq $_ } $RECIPES, $INCIDENTS, $README;

    # psql takes what is pasted as one line, and a backslash command takes the rest of its line.
    my @pasted = map { $_->{sql} // $_->{text} // () } $page->steps,
        grep { $_->{language} eq 'psql' } $page->others;
    is_deeply([ grep { /^(?:.*\s)?\\[a-z].*\n(?=.)/m && !/\A-- (?:a|the) script\b/ } @pasted ], [],
        "$name: where a block is pasted, a backslash command is its end");

    # Blocks in other languages: the page names the test, which reads the page, or has the block's
    # lines itself.
    for my $block ($name eq $RECIPES ? grep { $_->{language} } $page->others : $page->others) {
        my $what = "$name, line $block->{line}: a block of " . ($block->{language} || 'text');
        my $by = $block->{run_by} // do { fail("$what is run by no test"); next };
        my $test = content("$root/$by") // do { fail("$what: there is no $by"); next };
        my @missing = $test =~ /\b\Q$name\E/ ? ()
            : grep { /\S/ && !/^\s*#/ && index($test, s/\s+#.*|^\s+|\s+$//gr) < 0 } split /\n/,
            $block->{text};
        is_deeply(\@missing, [], "$what is run by $by");
    }
}

# Pictures of terminals are what their pages say. (With WRITE they are drawn afterwards.)
for my $file ($ENV{WRITE} ? () : glob "$root/doc/pictures/*.md") {
    my $picture = $file =~ s/[.]md$/.svg/r;
    open my $drawn, '-|:encoding(UTF-8)', $^X, "$root/scripts/terminal.pl", $file
        or die "cannot run terminal.pl: $!\n";
    local $/ = undef;
    ok(scalar(<$drawn>) eq (content($picture) // ''),
        basename($picture) . " is drawn from what psql prints ('make pictures')");
    unlike(content($file), qr/^WARNING/m, '... and shows nothing that went wrong');
}

# A file that a page tells the reader to run, who may do so again after an upgrade.
for my $run (grep { !%wanted } 1, 2) {
    unlike(Psql->new(server => $server)->run("\\i $root/monitoring/grants.sql"), qr/ERROR|error:/,
        "monitoring/grants.sql, run $run");
}

# What a page calls by its schema exists in one of the two editions.
my $admin = session(server => $server);
my %exists;
for my $edition (grep { !%wanted } qw(extension portable)) {
    $admin->run("CREATE DATABASE $edition");
    my $there = session(server => $server, database => $edition);
    if ($edition eq 'portable') {
        is(load_portable($edition, $server->{PGUSER}, $server), '', 'the portable edition');
    } else {
        $there->run('CREATE EXTENSION advisory_ext');
    }
    $exists{ $_->[0] } = 1 for @{ $there->rows(q(
        SELECT relname FROM pg_class WHERE relnamespace = 'advisory'::regnamespace
        UNION SELECT proname FROM pg_proc WHERE pronamespace = 'advisory'::regnamespace)) };
}
for my $file (grep { !%wanted } glob("$root/*.md"), glob("$root/doc/*.md")) {
    my %named = map { $_ => 1 } content($file) =~ m{(?<![/\w])advisory[.](?!sql\b)(\w+)(?![.\w-])}g;
    is_deeply([ grep { !$exists{$_} } sort keys %named ], [],
        File::Spec->abs2rel($file, $root) . ': what it calls by its schema exists');
}

# The targets of make that a page names.
my %target = map { $_ => 1 } content("$root/Makefile") =~ /^([a-z-]+):/mg,
    content("$root/Makefile") =~ /^all ([a-z ]+):/m ? split(/ /, $1) : ();
for my $file (grep { !%wanted } glob("$root/*.md"), glob("$root/doc/*.md")) {
    my $text = content($file);
    my @named = $text =~ /`make ([a-z-]+)/g;
    push @named, $_ =~ /^(?:sudo )?make ([a-z-]+)/mg for $text =~ /^```sh\n(.*?)^```/msg;
    is_deeply([ grep { !$target{$_} } @named ], [],
        basename($file) . ': the targets of make that it names exist');
}
done_testing();
