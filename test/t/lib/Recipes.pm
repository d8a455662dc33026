# Runs the blocks of SQL of a document of recipes, exactly as they stand there, for a test that says
# when and in which session:
#
#     recipe 'Singleton job' => sub {              # the heading; in a database of its own
#         my ($one, $other) = sessions(2);
#         block(1, $one);                          # its first block, in this session; what psql
#                                                  printed comes back
#         start_block(2, $other);                  # … does not wait for the end: finished($other)
#                                                  does
#     };
#     all_recipes_checked();
#
# With EDITION=portable in the environment that is what the databases have. Then not_here(2, $one)
# checks that this block needs something that does not exist there, and returns true.
#
# An ERROR in a block fails the test, unless it is announced: block(2, $one, error => qr/…/). If the
# document shows output after a block (in a fence without a language), the first session that runs
# it must print that. The test must run every block, and the first runs must be in the order of the
# document.
package Recipes;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';
use Psql;
use Test::More;

our @EXPORT = qw(document recipe portable not_here sessions block block_sql start_block finished
    broken database look gate waits_for all_recipes_checked);

use constant BLOCK_S => 30;

my (@titles, %blocks, %checked);
my ($title, $next, $look, $database, $server, %running);

# Reads it: headings of the second level are recipes. A block is {sql, shown, line}.
sub document {
    my ($file) = @_;
    open my $in, '<', $file or die "cannot read $file: $!\n";
    my ($heading, $block, $fence);
    while (my $line = <$in>) {
        if (defined $fence) {
            if ($line =~ /^```$/) { undef $fence; next }
            $block->{$fence} .= $line if $block;
        } elsif ($line =~ /^```(\w*)$/) {
            $fence = $1 eq 'sql' ? 'sql' : 'shown';
            die "$file, line $.: a fence of neither SQL nor what it prints\n"
                unless $heading && ($1 eq 'sql' || (!$1 && $block));
            push @{ $blocks{$heading} }, $block = { sql => '', shown => '', line => $. }
                if $fence eq 'sql';
        } elsif ($line =~ /^## (.*)$/) {
            push @titles, $heading = $1;
            ($blocks{$heading}, $block) = ([], undef);
        }
    }
    die "there are no recipes in $file\n" unless @titles;
    return;
}

# recipe TITLE => CODE, server => …: on that server.
sub recipe {
    my ($name, $code, %how) = @_;
    $checked{$name} = 1;
    ($title, $next, $server) = ($name, 1, $how{server});
    %running = ();
    subtest $name => sub {
        my $blocks = $blocks{$title} or return fail('the document has no such recipe');
        $database = "recipe_$$" . '_' . keys %checked;
        if ($server) {
            session(server => $server)->run("CREATE DATABASE $database");
        } else {
            create_database(name => $database, extension => 0);
        }
        $look = session(server => $server, database => $database, application => 'look');
        if (portable()) {
            is(load_portable($database, ($server // \%ENV)->{PGUSER}, $server), '',
                'the portable edition is loaded')
        }
        else            { $look->run('CREATE EXTENSION advisory_ext') }
        $look->run($_) for gate_sql();
        # What hangs is a failure of this recipe, and the others go on.
        eval { $code->(); 1 } or fail("stopped: $@");
        is($next, @$blocks + 1, 'every block was run: ' . @$blocks);
        is(scalar(keys %running), 0, 'and waited for');
    };
    undef $look;
    return;
}

sub portable { return ($ENV{EDITION} // '') eq 'portable' }

sub not_here {
    my ($number, $session) = @_;
    return 0 unless portable();
    block($number, $session, error => qr/^ERROR:  (?:function|relation) \S+ does not exist/);
    return 1;
}

# The SQL of these blocks.
sub block_sql { return map { $blocks{$title}[ $_ - 1 ]{sql} } @_ }

sub all_recipes_checked {
    ok($checked{$_}, "there is a check of: $_") for @titles;
    return;
}

sub database { return $database }

# A session to look from, and to prepare what a recipe takes for granted.
sub look { return $look }

# This many sessions of psql.
sub sessions {
    my ($count, %how) = @_;
    my @sessions = map {
        Psql->new(database => $database, application => "session $_", server => $server, %how)
    } 1 .. $count;
    return wantarray ? @sessions : $sessions[0];
}

sub start_block {
    my ($number, $session, %how) = @_;
    my $block = $blocks{$title}[$number - 1] or die "recipe '$title' has no block $number\n";
    die "recipe '$title': block $number before block $next\n" if $number > $next;
    $how{shown} = $block->{shown} if $number == $next;
    $next = $number + 1 if $number == $next;
    $running{$session} = { %how, what => "block $number (line $block->{line})" };
    $session->start($block->{sql});
    return $session;
}

# What psql printed.
sub finished {
    my ($session) = @_;
    my $how = delete $running{$session} or die "session runs no block\n";
    my $printed = $session->finish(BLOCK_S);
    if ($how->{error}) {
        like($printed, $how->{error}, "$how->{what}: the error");
    } elsif ($printed =~ /ERROR:|FATAL:|invalid command|no rows returned|connection/) {
        fail("$how->{what}: no error");
        diag($printed);
    }
    # Dots stand for what differs each time.
    for my $line (split /\n/, $how->{shown} // '') {
        my $pattern = join '.*', map { quotemeta } split /…/, $line, -1;
        like($printed, qr/^$pattern$/m, "$how->{what}: prints what the document shows");
    }
    return $printed;
}

# The same of a block whose session has been ended in the middle of it, which is no failure then.
sub broken {
    my ($session) = @_;
    delete $running{$session} or die "session runs no block\n";
    return $session->finish(BLOCK_S);
}

sub block {
    my ($number, $session, %how) = @_;
    return finished(start_block($number, $session, %how));
}

# Waits until the session waits for the lock, as the extension sees it. (In the portable edition
# await_lock() sleeps between two looks.)
sub waits_for {
    my ($session, $namespace, $name) = @_;
    return wait_until("session waits for $namespace/$name", sub {
        $look->value(
            'SELECT count(*) FROM advisory.holders(?, ?::text) WHERE pid = ? AND NOT granted',
            $namespace, $name, $session->pid)
            || portable()
            && $look->value(
                q{SELECT count(*) FROM pg_stat_activity WHERE pid = ? AND wait_event = 'PgSleep'},
                $session->pid);
    });
}

# ---- work() --------------------------------------------------------------------------------------
# Records which session worked from when to when. While the gate is shut, sessions that work wait
# inside.

sub gate_sql {
    return ('CREATE TABLE gate ()',
        'CREATE TABLE worked (pid integer, began timestamptz, ended timestamptz)', <<~'SQL');
        CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            began timestamptz := clock_timestamp();
        BEGIN
            LOCK TABLE gate IN ROW SHARE MODE;
            INSERT INTO worked VALUES (pg_backend_pid(), began, clock_timestamp());
        END $$
        SQL
}

# gate(): shut from now on, until $gate->open.
sub gate {
    return bless { keeper => session(database => $database, server => $server)
        ->run('BEGIN', 'LOCK TABLE gate') }, 'Recipes::Gate'
}

sub Recipes::Gate::open { return delete($_[0]{keeper})->run('COMMIT') }

# Waits until these are at work, and says who is.
sub Recipes::Gate::inside {
    my ($self, @sessions) = @_;
    my $inside = sub { join ' ', map { $_->[0] }
        @{ $look->rows("SELECT pid FROM pg_locks WHERE relation = 'gate'::regclass AND NOT granted
            ORDER BY pid") } };
    my $expected = join ' ', sort { $a <=> $b } map { $_->pid } @sessions;
    eval { wait_until('they are inside', sub { $inside->() eq $expected }, 10) };
    return is($inside->(), $expected, 'inside: ' . (@sessions || 'nobody'));
}

1;
