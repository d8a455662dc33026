#!/usr/bin/env perl
# Any language computes the same key as the server in one line. The lines are those of doc/locks.md.
use utf8;
use AdvisoryTest;
use FindBin;
use Encode qw(encode_utf8);
use Launch;
use Programs;

# What the page shows, without comments.
my %shown = map { $_ => shown($_) } qw(js python java);

sub shown ($language) {
    my ($block) = slurp("$FindBin::Bin/../../doc/locks.md") =~ /^```$language\n(.*?)^```/ms
        or die "doc/locks.md does not show the key in $language\n";
    return join '', grep { /\S/ } map { s{\s*(?://|#) .*|\s+$}{}gsr } split /\n/, $block;
}

# Each reads namespace and name from alternate lines, and prints a key a line.
my %PROGRAMS = (
    node => [ 'key.js', <<"JS" ],
const key = (ns, name) => $shown{js}
const lines = require("fs").readFileSync(0, "utf8").split("\\n")
for (let i = 0; i + 1 < lines.length; i += 2) console.log(String(key(lines[i], lines[i + 1])))
JS
    python3 => [ 'key.py', <<"PYTHON" ],
import hashlib, sys
key = lambda ns, name: $shown{python}
lines = sys.stdin.buffer.read().decode().split("\\n")
for i in range(0, len(lines) - 1, 2):
    print(key(lines[i], lines[i + 1]))
PYTHON
    java => [ 'Key.java', <<"JAVA" ],
import static java.nio.charset.StandardCharsets.UTF_8;
import java.nio.ByteBuffer;
import java.security.MessageDigest;

class Key {
    static long key(String ns, String name) throws Exception { return $shown{java}; }

    public static void main(String[] arguments) throws Exception {
        String[] lines = new String(System.in.readAllBytes(), "UTF-8").split("\\n", -1);
        for (int i = 0; i + 1 < lines.length; i += 2)
            System.out.println(key(lines[i], lines[i + 1]));
    }
}
JAVA
);

# The vectors of the format, which never change.
my @vectors = (
    [ 'billing', 'invoice:42', '1572001551135567388' ],
    [ 'user',    '42',         '8907056734076048704' ],
    [ 'größe',   'naïve ☃',    '733500587011654506' ],
    [ 'order',   '00000000-0000-0000-0000-000000000001', '-3943673449234501271' ],
);

# Names of one to three words of whatever a UTF-8 database can hold; the seed is shown, so that a
# failure can be repeated.
my $seed = srand;
my @alphabet = ('a' .. 'z', 'A' .. 'Z', 0 .. 9, split //, q{:/.-_'"\\$ %{}äßñøЖあ漢字😀🔒𝄞é‍});
my @random = map { [ random_text(), random_text() ] } 1 .. 100;
sub random_text { return join '', map { $alphabet[ rand @alphabet ] } 1 .. 1 + rand 40 }

create_database();
my $server = session();
for my $vector (@vectors) {
    $server->shows('SELECT advisory.key(?::text, ?::text)', $vector->[2],
        encode_utf8("the server: @$vector[0, 1]"), @$vector[ 0, 1 ]);
}
for my $case ([ q{'invoice-generation'}, '-8670053900832782221', 'a name alone' ],
    [ q{'user', 42}, '8907056734076048704', 'an id' ],
    [ q{'order', '00000000-0000-0000-0000-000000000001'::uuid}, '-3943673449234501271', 'a uuid' ])
{
    my ($arguments, $key, $what) = @$case;
    $server->shows("SELECT advisory.key($arguments)", $key, "the server: $what");
}

my @names = (@vectors, @random);
my @expected = map { $server->value('SELECT advisory.key(?::text, ?::text)', @$_[ 0, 1 ]) } @names;
my $input = spew(scratch() . '/input', join '', map { "$_->[0]\n$_->[1]\n" } @names);

for my $language (sort keys %PROGRAMS) {
    SKIP: {
        skip "$language is not installed", 1
            unless program($language) && system("$language --version >/dev/null 2>&1") == 0;
        my ($file, $source) = @{ $PROGRAMS{$language} };
        my $program = spew(scratch() . "/$file", $source);
        my @keys = split /\n/, `$language $program <$input 2>&1`;
        is_deeply(\@keys, \@expected, "$language: the same keys as the server's")
            or diag("seed $seed");
    }
}

# And the key is the lock's.
my $key = $expected[0];
my $client = session();
$client->value('SELECT pg_advisory_lock(?::bigint)', $key);
$server->shows("SELECT advisory.try_lock('billing', 'invoice:42')", 0,
    'a client that locks the key has the named lock');

done_testing();
