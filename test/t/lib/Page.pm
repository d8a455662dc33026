# Runs the SQL of a page of the documents as a reader would, and compares what psql prints with what
# the page shows:
#
#     my $page = Page->new("doc/locks.md");
#     $page->run($server);                # one subtest, in a new database that has the extension,
#                                         unless the page creates it
#
# A fence of `sql` is run in psql. If a fence without a language follows, with nothing but blank
# lines between them, psql has to print that. Otherwise it must print no error and no warning.
#
# Sessions beside the page's own psql are described in HTML comments, which a reader does not see:
#
#     <!-- test
#     4711 app@worker: BEGIN; SELECT advisory.xact_lock('billing', 'invoice:42');
#     4712 app@web waits: SELECT advisory.lock('billing', 'invoice:42');
#     -->
#
# 4711 is the process ID that the page shows for the session.  app@worker is its role, which is
# created, and its application name; they are needed the first time.  The SQL can go on in lines
# that are indented.  With `waits` the test goes on when the session waits for a lock, and sees what
# it prints when it is next given something.  `4711 ends` closes a session.  `psql` is the page's
# own session; `psql 4710` gives it a process ID.  `<!-- in 4711 -->` before a fence runs it in that
# session.  `pause 5` lets 5 seconds pass where the page is to be written, so that it shows a
# duration.
#
# A page can also name its sessions in its text, where a reader sees it. If the paragraph before a
# fence says "terminal 2", the fence is run in a psql of its own. It runs as the role of the page
# (run(…, role => NAME)), as the page's own psql does then. A fence whose last line ends in
# "-- waits" is run until its session waits. What this prints later is not compared.
#
# A statement that ends a session, as in terminate_holder('export', 7, 4711), gets the process ID
# that this session has.
#
# What differs from run to run is made equal before the comparison: process IDs and their order in
# arrays, times, tokens, and the width of columns. `…` in the page stands for any text in a line, or
# for any lines if it is alone in its line.
package Page;

use strict;
use warnings;
use utf8;
use AdvisoryTest;
use Encode qw(encode_utf8 decode_utf8);
use Psql;
use Test::More;

use constant { BLOCK_S => 60, DATABASE => 'documents' };

# Page->new(FILE): reads it. Dies if it cannot be understood.
sub new {
    my ($class, $file) = @_;
    open my $in, '<:encoding(UTF-8)', $file or die "cannot read $file: $!\n";
    my @lines = <$in>;
    close $in;
    my $self = bless { file => $file, lines => \@lines, steps => [], others => [] }, $class;
    $self->parse;
    return $self;
}

# Blocks of SQL, {in, sql, line, chapter, shown, shown_from, shown_to}; and what other sessions do,
# {do, line}. In their order.
sub steps { return @{ $_[0]{steps} } }

sub lines { return @{ $_[0]{lines} } }

# Fences in other languages: {language, line, text, run_by}.
sub others { return @{ $_[0]{others} } }

sub parse {
    my ($self) = @_;
    my ($in, $run_by, $fence, $after_sql, $comment, $chapter);
    my ($number, $was_blank) = (0, 1);
    for my $line (@{ $self->{lines} }) {
        $number++;
        if ($fence) {
            if ($line !~ /^\s*```\s*$/) { $fence->{text} .= $line; next }
            $after_sql = $self->add_fence($fence, $number, $after_sql);
            ($fence, $in, $run_by) = ();
        } elsif (defined $comment) {
            if ($line =~ /^\s*-->\s*$/) { undef $comment; next }
            if ($line =~ /^\s/ && $self->{steps}[-1]{do}) { $self->{steps}[-1]{do} .= $line }
            else { push @{ $self->{steps} }, { do => $line, line => $number } }
        } elsif ($line =~ /^\s*```(\S*)\s*$/) {
            $fence = { language => $1, line => $number, in => $in // 'psql', run_by => $run_by,
                chapter => $chapter, text => '' };
        } elsif ($line =~ /^<!-- test$/) {
            ($comment, $after_sql) = (1);
        } elsif ($line =~ /^<!-- in (\d+) -->$/) {
            $in = $1;
        } elsif ($line =~ /^<!-- run by (\S+) -->$/) {
            $run_by = $1;
        } elsif ($line =~ /^<!--/) {
            die "$self->{file}, line $number: a comment that is not understood: $line";
        } elsif ($line =~ /\S/) {
            undef $after_sql;
            $chapter = $1 if $line =~ /^## (.+)$/;
            undef $in if $was_blank;
            $in = $1 if $line =~ /\b(?:T|t)erminal (\d)\b/;
        }
        $was_blank = $line !~ /\S/;
    }
    die "$self->{file}: a fence or a comment has no end\n" if $fence || defined $comment;
    return;
}

# Returns the block of SQL whose output may follow.
sub add_fence {
    my ($self, $fence, $end, $after_sql) = @_;
    if ($fence->{language} eq 'sql' && !$fence->{run_by}) {
        my $step = { in => $fence->{in}, sql => $fence->{text}, line => $fence->{line},
            chapter => $fence->{chapter} };
        push @{ $self->{steps} }, $step;
        return $step;
    }
    if ($fence->{language} eq '' && $after_sql) {
        @{$after_sql}{qw(shown shown_from shown_to)} = ($fence->{text}, $fence->{line}, $end - 1);
    } else {
        push @{ $self->{others} }, $fence;
    }
    return;
}

# ---- Running it ----------------------------------------------------------------------------------

# Runs it on a server (AdvisoryTest::own_server), as a subtest; with role => NAME as that role,
# which owns the database, and which the page calls called => NAME. With pid => NUMBER that is the
# process ID that the page shows for its own psql. With steps => […] only these. With portable => 1
# in a database that has the portable edition, and without the CONTEXT of errors there. With WRITE
# set in the environment the page gets what was printed.
sub run {
    my ($self, $server, %how) = @_;
    my $name = $self->{file} =~ s{.*/}{}r;
    return subtest $name => sub {
        local $self->{server} = $server;
        local $self->{form} = '-P pager=off' . ($how{portable} ? ' -v SHOW_CONTEXT=never' : '');
        my @steps = $how{steps} ? @{ $how{steps} } : $self->steps;
        my $admin = session(server => $server);
        $admin->run(
            'DROP DATABASE IF EXISTS ' . DATABASE . ' WITH (FORCE)', 'CREATE DATABASE ' . DATABASE);
        # Roles outlive a page; their settings do not.
        my $roles = $admin->rows(
            'SELECT DISTINCT setrole::regrole FROM pg_db_role_setting WHERE setrole <> 0');
        $admin->run("ALTER ROLE $_->[0] RESET ALL") for @$roles;
        $self->{look} = session(server => $server, database => DATABASE);
        @{$self}{qw(role called)} = @how{qw(role called)};
        $self->make_role($how{role}),
            $admin->run('ALTER DATABASE ' . DATABASE . qq( OWNER TO "$how{role}")) if $how{role};
        if ($how{portable}) {
            is(load_portable(DATABASE, $how{role} // $server->{PGUSER}, $server), '',
                'the portable edition is loaded')
        }
        elsif (!grep { ($_->{sql} // '') =~ /^CREATE EXTENSION advisory_ext/m } @steps) {
            $self->{look}->run('CREATE EXTENSION advisory_ext')
        }
        $self->{sessions} = { psql => $self->open_session('psql', $how{role}) };
        $self->{sessions}{psql}{shown_pid} = $how{pid};
        for my $step (@steps) {
            if ($step->{do}) { $self->beside($step) }
            else { $self->block($step) }
        }
        ok((grep { $_->{sql} } @steps), 'the page has blocks of SQL');
        $_->{psql}->quit for values %{ $self->{sessions} };
        $self->write_page if $ENV{WRITE};
    };
}

sub make_role {
    my ($self, $role) = @_;
    $self->{look}->run(qq(CREATE ROLE "$role" LOGIN))
        unless $self->{look}->value('SELECT count(*) FROM pg_roles WHERE rolname = ?', $role);
    return;
}

sub open_session {
    my ($self, $application, $role) = @_;
    $self->make_role($role) if $role;
    return { psql => Psql->new(server => $self->{server}, database => DATABASE,
        application => $application, role => $role, form => $self->{form}) };
}

# One line of what other sessions do.
sub beside {
    my ($self, $step) = @_;
    if ($step->{do} =~ /^pause (\d+)$/) { sleep $1 if $ENV{WRITE}; return }
    my ($name, $shown_pid, $role, $application, $how, $sql) =
        $step->{do} =~ /^(psql|\d+)(?:\s+(\d+))?(?:\s+(\w+)@(\S+?))?(?:\s+(waits|ends))?\s*
            (?::\s*(.*))?$/sx
        or die "$self->{file}, line $step->{line}: not understood: $step->{do}";
    my $session = $self->{sessions}{$name} //= $self->open_session($application, $role);
    $session->{shown_pid} = $shown_pid // ($name eq 'psql' ? $session->{shown_pid} : $name);
    $self->finish($session);
    my $psql = $session->{psql};
    if (($how // '') eq 'ends') {
        my $pid = $psql->pid;
        $psql->quit;
        wait_until("process $name is gone", sub {
            !$self->{look}->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ?', $pid)
        }, BLOCK_S);
        delete $self->{sessions}{$name};
    } elsif (($how // '') eq 'waits') {
        $psql->start(encode_utf8($sql));
        wait_until("the session of line $step->{line} waits",
            sub { $self->is_waiting($psql) }, BLOCK_S);
        $session->{is_busy} = 1;
    } elsif ($sql) {
        my $printed = decode_utf8($psql->run(encode_utf8($sql)));
        unlike($printed, qr/ERROR:|FATAL:/,
            "line $step->{line}: what a session does beside the page");
    }
    return;
}

sub is_waiting {
    my ($self, $psql) = @_;
    return $self->{look}->value(
        'SELECT (SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted)
        + (SELECT count(*) FROM advisory.locks WHERE pid = ? AND NOT granted)', $psql->pid,
        $psql->pid) > 0;
}

# What a session printed that waited until now may be an error: the page does not show it.
sub finish {
    my ($self, $session) = @_;
    return '' unless delete $session->{is_busy};
    return decode_utf8($session->{psql}->finish(BLOCK_S));
}

# With the process IDs that the page shows. All in one go, since one session's process ID may be
# what the page shows for another.
sub shown_pids {
    my ($self, $text) = @_;
    my %shown = map {
        $_->{shown_pid} ? ($_->{psql}->pid => $_->{shown_pid}) : ()
    } values %{ $self->{sessions} };
    my $pids = join '|', keys %shown or return $text;
    # In a column, which is aligned to the right, with as many characters as before.
    $text =~ s{(?<=[|])( +)($pids)(?= [|])|\b($pids)\b}
        {defined $2 ? sprintf '%*s', length "$1$2", " $shown{$2}" : $shown{$3}}ge;
    return $text;
}

# With the role that the page shows, too.
sub as_shown {
    my ($self, $text) = @_;
    $text =~ s/\b\Q$self->{role}\E\b/$self->{called}/g if $self->{called};
    return $self->shown_pids($text);
}

sub block {
    my ($self, $step) = @_;
    # The page's own psql is terminal 1.
    my $terminal = $step->{in} =~ /^\d$/ ? $step->{in} : undef;
    my $in = ($terminal // 0) == 1 ? 'psql' : $step->{in};
    $self->{sessions}{$in} //= $self->open_session('psql', $self->{role}) if $terminal;
    my $session = $self->{sessions}{$in}
        or die "$self->{file}, line $step->{line}: there is no session $step->{in}\n";
    my $waited = $self->finish($session);
    $waited = '' if delete $session->{has_compared};
    my %pid = map { ($_->{shown_pid} // 0) => $_->{psql}->pid } values %{ $self->{sessions} };
    my $sql = $step->{sql} =~ s{(\bterminate_holder\([^()]*, )(\d+)(?=[),])}
        {$1 . ($pid{$2} // $2)}ger;
    my $psql = $session->{psql}->start(encode_utf8($sql));
    my $printed = sub { $self->as_shown($waited . decode_utf8($_[0])) };
    if ($step->{sql} =~ /-- waits\n\z/) {
        # Statements before the last one may wait, too.
        my $done = pattern($step->{shown} // '…');
        ok(eval { wait_until("psql waits that has printed what is shown", sub {
            normal($printed->($psql->seen)) =~ $done && $self->is_waiting($psql)
        }, BLOCK_S) }, "line $step->{line}: the session waits") or diag($@);
        @{$session}{qw(is_busy has_compared)} = (1, 1);
        $printed = $printed->($psql->seen);
    } else {
        $printed = $printed->($psql->finish(BLOCK_S));
    }
    my $what = "line $step->{line}: " . ($step->{sql} =~ /^(.{0,60})/)[0];
    if (defined $step->{shown}) {
        if ($ENV{WRITE} && normal($printed) !~ pattern($step->{shown})) {
            $step->{printed} = $printed;
            pass(encode_utf8("$what: written"));
        } else {
            like(normal($printed), pattern($step->{shown}), encode_utf8($what))
                or diag(encode_utf8("printed:\n$printed\nshown:\n$step->{shown}"));
        }
    } else {
        unlike($printed,
            qr/^\S*(?:ERROR|FATAL|WARNING|PANIC):|^invalid|^unrecognized|^psql:|: invalid command/m,
            encode_utf8($what)) or diag(encode_utf8($printed));
    }
    return;
}

# ---- Comparing -----------------------------------------------------------------------------------

# Without what differs from run to run.
sub normal {
    my ($text) = @_;
    for ($text) {
        s/\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[+-]\d\d(?::\d\d)?| UTC)?/<time>/g;
        s/\d\d:\d\d:\d\d(?:\.\d+)?/<duration>/g;
        s/\b11258999\d{8}\b/<token>/g;
        s/\{(\d+(?:,\d+)+)\}/'{' . join(',', sort split m{,}, $1) . '}'/ge;
        s{^(\s*.*(?:holds|waits for|idle|active).* )\d+ (?:ms|s)(?=$| \(and \d+ more holder)}
            {$1<duration>}mg;
        s/[ \t]+$//mg;
        s/-+(\+-+)*$/<rule>/mg;
        s/\|$/| /mg;
        s/ *\| */|/g;
        s/^ (?=\S.*\|)//mg;
        s/(?<=\S) {2,}/ /g;
        s/^ +(?=\S+$)//mg;
        s/\A\n+|\n+\z//g;
    }
    return $text;
}

# What is printed has to match what is shown.
sub pattern {
    my ($shown) = @_;
    my $pattern = join "\n",
        map { /^…$/ ? '(?:.*\n)*?.*' : join '.*?', map { quotemeta } split /…/, $_, -1 }
        split /\n/, normal($shown);
    return qr/\A$pattern\z/;
}

# Puts what was printed in the place of what is shown, where they differ.
sub write_page {
    my ($self) = @_;
    my @lines = @{ $self->{lines} };
    for my $step (reverse grep { defined $_->{printed} } $self->steps) {
        my $printed = $step->{printed} =~ s/[ \t]+$//mgr =~ s/\A\n+|\n+\z//gr;
        splice @lines, $step->{shown_from}, $step->{shown_to} - $step->{shown_from},
            map { "$_\n" } split /\n/, $printed;
    }
    open my $out, '>:encoding(UTF-8)', $self->{file} or die "cannot write $self->{file}: $!\n";
    print {$out} @lines;
    close $out or die "cannot write $self->{file}: $!\n";
    return;
}

1;
