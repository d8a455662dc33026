# A psql in a terminal of its own, with readline and its pager, as a person has it who pastes into
# it:
#
#     my $terminal = Terminal->new(rows => 24, columns => 80, server => $server, by => 'paste');
#     $terminal->paste("SELECT 1;\nSELECT 2;\n");
#     $terminal->seen;                    # what has come since then, without control sequences
#
# by => 'paste': in one go if the program asks for that, as terminals do ("bracketed paste").
# by => 'lines': as if every line were typed.
package Terminal;

use strict;
use warnings;
use Encode qw(decode_utf8);
use IO::Pty;
use Time::HiRes qw(time);

my $PROMPT = qr/=[*!]?[#>] \z/;

# Why this machine has none, or nothing: a chroot may be without /dev/pts.
sub unavailable { return eval { IO::Pty->new } ? undef : "no terminal can be opened here" }

# Besides: database, role.
sub new {
    my ($class, %how) = @_;
    my $pty = IO::Pty->new;
    my $pid = fork // die "cannot fork: $!\n";
    if (!$pid) {
        $pty->make_slave_controlling_terminal;
        my $slave = $pty->slave;
        $slave->set_winsize(@how{qw(rows columns)});
        close $pty;
        open STDIN,  '<&', $slave or die "$!\n";
        open STDOUT, '>&', $slave or die "$!\n";
        open STDERR, '>&', $slave or die "$!\n";
        @ENV{qw(PGHOST PGPORT PGUSER)} = @{ $how{server} }{qw(PGHOST PGPORT PGUSER)};
        $ENV{PGUSER} = $how{role} if $how{role};
        @ENV{qw(PGDATABASE PGAPPNAME)} = ($how{database}, 'psql');
        # As on a Debian where nothing is set, with a file of its own for the history.
        delete @ENV{qw(PAGER PSQL_PAGER LESS LESSOPEN PSQLRC COLUMNS LINES INPUTRC)};
        @ENV{qw(PAGER TERM PSQL_HISTORY)} = ('less', 'xterm', '/dev/null');
        exec "$ENV{PG_BINDIR}/psql", '-X' or die "cannot run psql: $!\n";
    }
    $pty->close_slave;
    my $self = bless { pty => $pty, pid => $pid, raw => '', marks => 0, by => $how{by} // 'paste' },
        $class;
    $self->wait_for($PROMPT) or die "psql shows no prompt: $self->{raw}\n";
    return $self;
}

# What psql has written since the last paste.
sub seen { return plain($_[0]{raw}) }

sub plain {
    my ($text) = @_;
    $text = decode_utf8($text);
    $text =~ s/\e\[[0-9;?]*[A-Za-z]|\e[=>]//g;
    # Readline goes to the next line by a blank and a return to its begin.
    $text =~ s/ \r(?!\n)//g;
    $text =~ s/[\r\0]//g;
    return $text;
}

# Reads until the text matches, at most this many seconds. Returns whether it does.
sub wait_for {
    my ($self, $pattern, $seconds) = @_;
    my $end = time + ($seconds // 60);
    until ($self->seen =~ $pattern) {
        my $left = $end - time;
        vec(my $ready = '', fileno $self->{pty}, 1) = 1;
        return 0 if $left <= 0 || !select $ready, undef, undef, $left;
        sysread $self->{pty}, $self->{raw}, 65536, length $self->{raw} or return 0;
    }
    return 1;
}

# Types into it, whatever is on its screen.
sub type {
    my ($self, $text) = @_;
    while ($text ne '') {
        my $length = syswrite $self->{pty}, $text;
        defined $length or die "cannot type: $!\n";
        substr $text, 0, $length, '';
    }
    return;
}

# Pastes a block, and presses Enter.
sub paste {
    my ($self, $block) = @_;
    my ($is_asked) = reverse $self->{raw} =~ /\e\[\?2004([hl])/g;
    chomp $block;
    my $text = $block =~ s/\n/\r/gr;
    my $is_whole = $self->{by} eq 'paste' && ($is_asked // 'l') eq 'h';
    $self->{raw} = '';
    return $self->type(($is_whole ? "\e[200~$text\e[201~" : $text) . "\r");
}

# Has psql run all that was pasted? Asks it to write a mark, which a pager would eat, and waits.
sub is_done {
    my ($self, $seconds) = @_;
    my $mark = ++$self->{marks};
    $self->type("\\echo 'mark' $mark\r");
    return $self->wait_for(qr/^mark $mark\n/m, $seconds) && $self->wait_for($PROMPT, $seconds);
}

sub quit {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill 'KILL', $pid;
    close $self->{pty};
    waitpid $pid, 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!);
    return $self->quit;
}

1;
