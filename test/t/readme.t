#!/usr/bin/env perl
# README.md as a reader follows it, from top to bottom, in the two psql sessions that its text
# names. Nothing that the reader does not see is run. First what psql prints is compared with what
# the page shows. Then every block is pasted into terminals, small and large, as a whole and by
# lines, with psql's pager on: nothing fails, and no pager eats what is pasted next.
use utf8;
use AdvisoryTest;
use List::Util qw(first sum);
use Psql;
use Readme;
use Terminal;

my $page = readme();
is_deeply([ map { $_->{do} // () } $page->steps ], [], 'no statement is hidden in a comment');
cmp_ok(scalar(grep { $_->{in} eq '2' } $page->steps), '>', 1, 'the page names two sessions');
cmp_ok(scalar(grep { ($_->{sql} // '') =~ /^CREATE EXTENSION/ } $page->steps), '==', 1,
    'and says when to create the extension');
fits($page);

my $server = own_server('deadlock_timeout=200ms');
my $admin  = session(server => $server);

# ---- What psql prints ----------------------------------------------------------------------------

# By the superuser of the page, and by a role that owns the database and may create the role of
# "Behind a transaction pooler".
$page->run($server, pid => 4711);
$admin->run('DROP ROLE web', 'CREATE ROLE reader LOGIN CREATEROLE');
$page->run($server, pid => 4711, role => 'reader', called => 'postgres') unless $ENV{WRITE};

# What the page has created is still there, all but the extension.
my @to_database = (server => $server, database => 'documents');
my $psql = Psql->new(@to_database, role => 'reader');
is($psql->run('CREATE EXTENSION advisory_ext;'), '', 'the extension can be created again');
queue_works($page, $psql, session(@to_database));
$psql->quit;

# ---- In terminals --------------------------------------------------------------------------------

my $unavailable = Terminal->unavailable;

# A table that is too wide opens the pager, and the pager eats the next block.
SKIP: {
    skip $unavailable, 2 if $unavailable;
    my $terminal = Terminal->new(@to_database, rows => 24, columns => 80, by => 'lines');
    $terminal->paste("SELECT * FROM advisory.settings;");
    ok($terminal->wait_for(qr/:\z/), 'psql has its pager');
    $terminal->paste("SELECT 'eat' || 'en';");
    ok(!$terminal->wait_for(qr/^ eaten\n/m, 1), '... which eats what is typed next');
}

for my $size ([ 24, 80 ], [ 50, 120 ]) {
    for my $by (qw(paste lines)) {
        SKIP: {
            skip $unavailable, 1 if $unavailable;
            $admin->run('DROP ROLE web', 'DROP DATABASE documents WITH (FORCE)',
                'CREATE DATABASE documents');
            subtest "a terminal of @{$size} characters, $by", \&in_terminals, @{$size}, $by;
        }
    }
}
done_testing();

sub in_terminals ($rows, $columns, $by) {
    my $look = session(@to_database);
    my $new = sub { Terminal->new(@to_database, rows => $rows, columns => $columns, by => $by) };
    my %terminals;
    for my $step ($page->steps) {
        my $in = $step->{in} eq '2' ? 2 : 1;
        my $terminal = $terminals{$in} //= $new->();
        my $what = "line $step->{line}: " . ($step->{sql} =~ /^(.{0,60})/)[0];
        my $waits = $step->{sql} =~ /-- waits$/m;
        my @lines = grep { /\S/ } map { split /\n/ } Page::normal($step->{shown} // '');
        if (delete $terminal->{waits} && !$terminal->is_done) {
            fail("$what: the terminal is free again");
            diag($terminal->seen);
            last;
        }
        $terminal->paste($step->{sql});
        my $good = $waits
            ? $terminal->wait_for(qr/^HINT:.*\n/m) && waiting($look)
            : $terminal->is_done(30);
        $terminal->{waits} = $waits;
        my $seen = $terminal->seen;
        ok($good, "$what: psql runs all of it") or diag($seen);
        last if !$good;     # the terminals are not where the page is any more
        my $failed = qr/^\S*(?:ERROR|FATAL|WARNING|PANIC):|invalid |unrecognized|extra argument/m;
        unlike($seen, $failed, "... without an error") if !grep { /^ERROR/ } @lines;
        is_deeply([ missing($seen, @lines) ], [], '... and shows what the page shows')
            or diag($seen);
    }
    $_->quit for values %terminals;
    return;
}

# Waits until a session waits for a lock.
sub waiting ($look) {
    return wait_until('a session waits', sub {
        $look->value('SELECT count(*) FROM pg_locks WHERE NOT granted');
    });
}

# The lines that are not in the text, each after the one before. Process IDs differ.
sub missing ($text, @lines) {
    my @there = split /\n/, Page::normal($text);
    my @missing;
    for my $line (@lines) {
        my $pattern = join '.*?', map { quotemeta($_) =~ s/4711/\\d+/gr } split /…/, $line, -1;
        my $at = first { $there[$_] =~ /^$pattern$/ } 0 .. $#there;
        if (defined $at) { splice @there, 0, $at + 1 }
        else { push @missing, $line }
    }
    return @missing;
}

# Screens of 50 lines of 120 characters.
sub fits ($page) {
    my @lines = $page->lines;
    my $place = sub ($pattern) { return first { $lines[$_] =~ $pattern } 0 .. $#lines };
    my $rows = sub ($from, $to) {
        return sum(map { int((length(s/\n//r) + 119) / 120) || 1 } @lines[ $from .. $to ]);
    };
    # The picture has 616 pixels, on a screen of 1,000.
    my $picture = $place->(qr/^!.*race\.svg/);
    cmp_ok($rows->(0, $picture), '<', 17, 'the race is above the fold');
    my ($start, $remedy) = map { $place->($_) } qr/^## Getting started/, qr/^remedy\s+\|/;
    cmp_ok($rows->($start, $remedy), '<', 50, 'a screen shows install, lock, error and remedy');
    my $words = () = join('', @lines) =~ /\S+/g;
    return cmp_ok($words, '<', 2000, 'and the page is short');
}
