#!/usr/bin/env perl
# Functions called through the fast-path protocol read their arguments by the declared types. That
# protocol has no expressions that would tell the types, and SQL statements do not use it.
use AdvisoryTest;
use IO::Socket::UNIX;

my $database = create_database();
my $observer = session();

# A connection made by hand, because DBD::Pg does not support this protocol.
my $socket = IO::Socket::UNIX->new(Peer => "$ENV{PGHOST}/.s.PGSQL.$ENV{PGPORT}")
    or die "cannot connect: $!\n";

sub send_message ($type, $body) {
    print {$socket} $type . pack('N', 4 + length $body) . $body;
    $socket->flush;
    return;
}

# The messages up to the server's next ReadyForQuery, by type.
sub receive {
    my %messages;
    while (1) {
        read($socket, my $head, 5) == 5 or die "the server has closed the connection\n";
        my ($type, $length) = unpack 'aN', $head;
        my $body = '';
        read($socket, $body, $length - 4) if $length > 4;
        $messages{$type} = $body;
        return \%messages if $type eq 'Z';
    }
}

send_message(
    '', pack('N', 196_608) . join("\0", 'user', $ENV{PGUSER}, 'database', $database, '', ''));
my $pid = unpack 'N', receive()->{K};

# Calls a function with text arguments: its result as text, or the SQLSTATE of its error.
sub call ($signature, @arguments) {
    my $oid = $observer->value('SELECT ?::regprocedure::oid', $signature);
    my $values = join '', map { pack('N', length $_) . $_ } @arguments;
    send_message('F', pack('N n n n', $oid, 1, 0, scalar @arguments) . $values . pack('n', 0));
    my $answer = receive();
    return $answer->{E} =~ /\0C(\w{5})\0/ ? $1 : 'no SQLSTATE' if exists $answer->{E};
    return substr $answer->{V}, 4;
}

sub held {
    return $observer->value(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?", $pid);
}

my $filler = 'x' x 100;
for my $function (qw(lock_all try_lock_all)) {
    is call("advisory.$function(text, text, interval)", 'ns', "{a,$filler}", '0'), 't',
        "$function, a list as text";
    is held(), 2, '… takes both';
    is call('advisory.unlock_all(text, text[])', 'ns', "{a,$filler}"), '2',
        '… and they are released as an array';
    is call("advisory.$function(text, text[], interval)", 'ns', '{a,b}', '0'), 't',
        "$function, an array";
    is call('advisory.unlock_all(text)', 'ns'), '2', '… and released by namespace';
    is call("advisory.$function(text, bigint[], interval)", 'ns', '{1,2,3}', '0'), 't',
        "$function, bigints";
    is call('advisory.unlock_all(text, bigint[])', 'ns', '{1,2,3}'), '3', '… and released';
    for my $text ('xxxx', 'x' x 7, $filler) {
        is call("advisory.$function(text, text, interval)", 'ns', $text, '0'), '22P02',
            "$function, a text of " . length($text) . ' bytes that is no list';
    }
}
for my $way (['text', 'a'], ['bigint', '42'], ['uuid', '00000000-0000-0000-0000-000000000001']) {
    my ($type, $name) = @$way;
    is call("advisory.try_lock(text, $type, interval)", 'ns', $name, '0'), 't', "try_lock by $type";
    is call("advisory.unlock(text, $type)", 'ns', $name), 't', '… and unlock';
}
is held(), 0, 'nothing stays locked';

done_testing;
