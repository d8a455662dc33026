#!/usr/bin/env perl
# Node and node-postgres: the examples of clients/node that serve HTTP do what they promise, those
# of the webhooks also through PgBouncer in transaction mode; and calls resolve correctly as that
# driver sends them. (client_node.t tests the package and its other examples.)
use AdvisoryTest;
use FindBin;
use IO::Socket::INET;
use IPC::Open2;
use JSON::PP;
use List::Util qw(shuffle);
use Launch;
use PgBouncer;
use Programs;

use constant { PROCESSES => 8, EVENTS => 200, COPIES => 5, AT_ONCE => 8 };

plan skip_all => 'there is no Node with node-postgres here' unless node_modules();

create_database();
my $look = session();

# ---- Webhooks ------------------------------------------------------------------------------------

# Without the primary key that the example's table has: here nothing but the lock keeps two
# deliveries apart.
$look->run('CREATE TABLE webhook_done (event_id text NOT NULL,
        done_at timestamptz NOT NULL DEFAULT now())',
    'CREATE TABLE payment (event_id text NOT NULL)');

# A request whose answer is awaited later: "status body".
sub post ($port, $path) {
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp')
        or die "port $port: $!\n";
    print {$socket} "POST $path HTTP/1.0\r\n\r\n";
    $socket->flush;
    return $socket;
}

sub answer ($socket) {
    local $/ = undef;
    my ($status, $body) = <$socket> =~ m{^HTTP/\S+ (\d+).*?\r\n\r\n(.*?)\n?$}s or die "no answer\n";
    return "$status $body";
}

# So many events, each delivered to several processes at once. What was answered, and how often.
sub deliver ($file, $events, $server = \%ENV) {
    $look->run('TRUNCATE webhook_done, payment', 'SELECT advisory.stats_reset()');
    my %where = map { $_ => $server->{$_} } qw(PGHOST PGPORT PGUSER);
    my @programs = map { launch_node(\%where, $file) } 1 .. PROCESSES;
    my @ports = map { $_->says(qr/listening on port (\d+)/) } @programs;
    my %answers;
    my @ids = map { "evt_$_" } 1 .. $events;
    while (my @batch = splice @ids, 0, AT_ONCE) {
        my %to = map { $_ => [ shuffle @ports ] } @batch;
        my @sockets =
            map { my $copy = $_; map { post($to{$_}[$copy], "/webhook/$_") } @batch } 1 .. COPIES;
        $answers{ answer($_) }++ for @sockets;
    }
    my @failed = grep { $_->stop } @programs;
    is(scalar @failed, 0, 'all processes end well when asked to')
        or diag(map { $_->said } @failed);
    return \%answers;
}

sub payments { return $look->rows('SELECT count(*), count(DISTINCT event_id) FROM payment')->[0] }

sub once ($how, @server) {
    is_deeply(deliver(client_node('examples/webhook.js'), EVENTS, @server),
        { '200 processed' => EVENTS, '200 duplicate' => EVENTS * (COPIES - 1) },
        "webhooks, $how: of the deliveries of each event one is processed, the others are told");
    is_deeply(payments(), [ EVENTS, EVENTS ], '... and each is processed exactly once');
    $look->shows(q{SELECT sum(contended) > 0 FROM advisory.stats WHERE namespace = 'webhook'}, 1,
        '... though they met');
    return;
}

once('directly');

SKIP: {
    skip 'there is no PgBouncer here', 4 unless pgbouncer();
    my $pooler = PgBouncer->new(\%ENV, pool_mode => 'transaction', default_pool_size => 6);
    once('through PgBouncer in transaction mode', $pooler);
    $pooler->stop;
}

# The same file without its lock.
my $code = slurp(client_node('examples/webhook.js'));
$code =~ s/advisory\.withLock\('webhook', eventId, \{.*?\}, /withoutLock(/s
    or die "the example takes no lock\n";
$code .= <<'JS';
async function withoutLock(work) {
    const client = await pool.connect();
    try {
        return await work(client);
    } finally {
        client.release();
    }
}
JS
$code =~ s/'advisory-ext'/"'" . client_node('') . "'"/e;
deliver(spew(scratch() . '/webhook.js', $code), 5 * AT_ONCE);
cmp_ok(payments()->[0], '>', payments()->[1],
    'without the lock, some are processed twice (so the test can fail)');

# ---- One at a time per user ----------------------------------------------------------------------

$look->run('CREATE TABLE purchase (user_id bigint NOT NULL, item text NOT NULL)',
    'CREATE TABLE export (user_id bigint NOT NULL, content jsonb NOT NULL,
        made_at timestamptz NOT NULL DEFAULT now())',
    q{INSERT INTO purchase VALUES (7, 'tea'), (7, 'cup'), (8, 'jar')});

my @exporters = map { launch_node(client_node('examples/export.js')) } 1, 2;
my @at = map { $_->says(qr/listening on port (\d+)/) } @exporters;
sub ask ($process, $user) { return post($at[$process], "/users/$user/export") }

# The table is locked, so that an export lasts as long as it shall.
my $other = session();
$other->run('BEGIN', 'LOCK TABLE purchase');
my $of_7 = ask(0, 7);
$look->wait_until('the export is being made', q{SELECT advisory.is_locked('export', 7)});
is(answer(ask($_, 7)), '409 an export for user 7 is being made',
    'one at a time per user: the second request is told so, at process ' . ($_ + 1)) for 0, 1;
my $of_8 = ask(1, 8);
$look->wait_until('another user\'s is made at the same time',
    q{SELECT advisory.is_locked('export', 8)});
$other->run('COMMIT');
is(answer($of_7), '200 exported 2 purchases', 'the first one comes to its end');
is(answer($of_8), '200 exported 1 purchases', '... and the other user\'s');
is(answer(ask(1, 7)), '200 exported 2 purchases', '... and then the next');
$look->shows('SELECT user_id, count(*), min(content::text) FROM export GROUP BY 1 ORDER BY 1',
    [ '7|2|[{"item": "cup"}, {"item": "tea"}]', '8|1|[{"item": "jar"}]' ],
    'these were made, and no others');
$look->shows(q{SELECT count(*) FROM advisory.locks WHERE namespace = 'export'}, 0,
    'nothing is held any more');
is($_->stop, 0, 'the process ends well when asked to') for @exporters;

# ---- Calls as node-postgres sends them -----------------------------------------------------------

my $json = JSON::PP->new->canonical;
my ($node_out, $node_in);
my $node_pid = do {
    local %ENV = (%ENV, NODE_PATH => node_modules(), PGDATABASE => $ENV{ADVISORY_TEST_DATABASE},
        PGAPPNAME => 'calls');
    open2($node_out, $node_in, 'setpriv', '--pdeathsig', 'KILL', '--', 'node',
        "$FindBin::Bin/node/session.js");
};
END { kill KILL => $node_pid if $node_pid }

sub node ($sql, $values = [], %more) {
    print {$node_in} $json->encode({ sql => $sql, values => $values, %more }), "\n";
    $node_in->flush;
    return $json->decode(scalar readline($node_out) // die "Node has ended\n");
}

# The rows, a line each; or the error's code.
sub outcome ($answer) {
    return $answer->{error}{code} if $answer->{error};
    return join "\n", map { join ', ', @$_ } @{ $answer->{rows} };
}

# What Node's session holds, by name, without the extension's own idea of names.
my ($UUID, $UUID2) = map { "00000000-0000-0000-0000-00000000000$_" } 'a', 'b';
my @NAMES = ('x', 'y', '42', '43', '7', '9007199254740993', '1.5', '{"x","y"}', $UUID, $UUID2);
sub held_by_node {
    return join ' ', $look->column(<<'SQL', \@NAMES);
        SELECT n FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        JOIN unnest($1::text[]) n ON (l.classid::bigint << 32 | l.objid::bigint)
        = advisory.key('u', n) AND l.objsubid = 1
        WHERE l.locktype = 'advisory' AND a.application_name = 'calls'
        AND a.datname = current_database() AND l.granted ORDER BY n COLLATE "C"
SQL
}

my $TRUE = 'boolean true';
for my $case (
    # what, call, values, which locks, and what comes back if it is not true
    [ 'a string',                   'try_lock($1, $2)',             [ 'u', 'x' ], 'x' ],
    [ 'a number',                   'try_lock($1, $2)',             [ 'u', 42 ], '42' ],
    [ 'a number after a literal',   q{try_lock('u', $1)},           [42], '42' ],
    [ 'the same id as a string',    'try_lock($1, $2)',             [ 'u', '42' ], '42' ],
    [ 'a number with a cast',       'try_lock($1, $2::bigint)',     [ 'u', 42 ], '42' ],
    [ 'a number, cast to int',      'try_lock($1, $2::int)',        [ 'u', 42 ], '42' ],
    [ 'a BigInt', 'try_lock($1, $2)',
        [ 'u', { bigint => '9007199254740993' } ], '9007199254740993' ],
    [ 'a BigInt with a cast', 'try_lock($1, $2::bigint)',
        [ 'u', { bigint => '9007199254740993' } ], '9007199254740993' ],
    [ 'a fraction is a name',       'try_lock($1, $2)',             [ 'u', 1.5 ], '1.5' ],
    [ '... but no bigint',          'try_lock($1, $2::bigint)',     [ 'u', 1.5 ], '', '22P02' ],
    [ 'a uuid',                     'try_lock($1, $2)',             [ 'u', $UUID ], $UUID ],
    [ 'a uuid with a cast',         'try_lock($1, $2::uuid)',       [ 'u', uc $UUID ], $UUID ],
    [ 'null',                       'try_lock($1, $2)',             [ 'u', undef ], '', '22004' ],
    [ 'an empty string',            'try_lock($1, $2)',             [ 'u', '' ], '', '22023' ],
    [ 'a timeout',                  'try_lock($1, $2, $3)',         [ 'u', 'x', '250ms' ], 'x' ],
    [ 'must hold',                  'lock($1, $2)',                 [ 'u', 42 ], '42' ],
    [ 'must hold, a timeout',       'lock($1, $2, $3)',             [ 'u', 42, '5s' ], '42' ],
    [ 'must hold, seconds',         'lock($1, $2, $3)',             [ 'u', 42, 5 ], '42' ],
    [ 'must hold, for ever',        'lock($1, $2, $3)',             [ 'u', 'x', undef ], 'x' ],
    [ 'by key',                     'lock_key($1, $2, $3)',         [ '-2', '1s', 'label' ], '' ],
    [ 'a list without a cast',      'lock_all($1, $2)',             [ 'u', [ 'x', 'y' ] ], 'x y' ],
    [ 'a list as text[]',           'lock_all($1, $2::text[])',     [ 'u', [ 'x', 'y' ] ], 'x y' ],
    [ 'numbers without a cast',     'lock_all($1, $2)',             [ 'u', [ 43, 42 ] ], '42 43' ],
    [ 'numbers as bigint[]', 'lock_all($1, $2::bigint[], $3)',
        [ 'u', [ 43, 42, 42 ], '1s' ], '42 43' ],
    [ 'uuids without a cast', 'lock_all($1, $2)', [ 'u', [ $UUID, $UUID2 ] ], "$UUID $UUID2" ],
    [ 'uuids as uuid[]', 'lock_all($1, $2::uuid[])',
        [ 'u', [ uc $UUID, $UUID2 ] ], "$UUID $UUID2" ],
    [ 'an empty list',              'lock_all($1, $2)',             [ 'u', [] ], '' ],
    [ 'a null in a list', 'lock_all($1, $2)', [ 'u', [ 'x', undef ] ], '', '22004' ],
    [ 'the first that is free', 'try_lock_any($1, $2)', [ 'u', [ 'x', 'y' ] ], 'x', 'string x' ],
    [ '... of numbers', 'try_lock_any($1, $2)', [ 'u', [ 42, 43 ] ], '42', 'string 42' ],
    [ '... of bigint[], which are strings in JavaScript', 'try_lock_any($1, $2::bigint[])',
        [ 'u', [ 42, 43 ] ], '42', 'string 42' ],
    [ '... two of them', 'try_lock_any($1, $2, $3)',
        [ 'u', [ 'x', '42', 'y' ], 2 ], '42 x', "string x\nstring 42" ],
    [ 'the length of a lock', 'holds($1, $2)', [ 'u', 'x' ], '', 'boolean false' ],
    [ 'a key is a string', 'key($1, $2)',
        [ 'billing', 'invoice:42' ], '', 'string 1572001551135567388' ],
    [ 'a slot is a number', 'acquire($1, $2, $3, $4)', [ 's', 'x', 3, '1s' ], '', 'number 1' ],
    [ 'CALL',                       'await_lock($1, $2)',           [ 'u', 'x' ], 'x', '' ],
    [ 'CALL',                       'await_lock($1, $2, $3)',       [ 'u', 42, '1s' ], '42', '' ],
    [ 'CALL', 'await_lock($1, $2, $3)', [ 'u', $UUID, undef ], $UUID, '' ],
    [ 'CALL',                       'await_lock($1, $2::bigint)',   [ 'u', 42 ], '42', '' ],
    [ 'CALL',                       'await_lock_shared($1, $2, $3)', [ 'u', 'x', '1s' ], 'x', '' ],
    [ 'CALL',                       'await_lock_key($1, $2, $3)',   [ 7, '1s', 'label' ], '', '' ],
    [ 'CALL returns the slot', 'await_acquire($1, $2, $3)', [ 's', 'x', 3 ], '', 'number 1' ],
) {
    my ($what, $call, $values, $locks, $expected) = @$case;
    my $sql = $call =~ /^await/ ? "CALL advisory.$call" : "SELECT * FROM advisory.$call";
    my $answer = node($sql, $values);
    is(outcome($answer), $expected // $TRUE, "node-postgres, $what: $call")
        or diag(explain($answer));
    is(held_by_node(), $locks, '... those locks');
    node('SELECT pg_advisory_unlock_all()');
}

# A wait without a snapshot, as the driver sends it.
my $holder = session(application => 'holder')->run(q{SELECT advisory.lock('u', 'x')});
is(outcome(node('SELECT advisory.try_lock($1, $2)', [ 'u', 'x' ])), 'boolean false',
    'what somebody else has: false');
my $refused = node('SELECT advisory.lock($1, $2, $3)', [ 'u', 'x', '50ms' ])->{error};
is_deeply([ @$refused{qw(code schema constraint)} ], [ '55P03', 'u', 'x' ],
    '... or an error that bears the lock\'s name in fields');
like($refused->{detail}, qr/application "holder", holds it/, '... and names the holder');
print {$node_in} $json->encode(
    { sql => 'CALL advisory.await_lock($1, $2, $3)', values => [ 'u', 'x', '30s' ] }), "\n";
$node_in->flush;
$look->wait_until('Node waits',
    q{SELECT count(*) FROM advisory.holders('u', 'x') WHERE NOT granted});
$look->shows(q{SELECT backend_xmin, backend_xid FROM pg_stat_activity
    WHERE application_name = 'calls'}, 'NULL|NULL',
    'await_lock waits without a snapshot over the extended protocol, too');
$holder->run(q{SELECT advisory.unlock('u', 'x')});
is(outcome($json->decode(scalar readline $node_out)), '', '... until it has the lock');
is(held_by_node(), 'x', '... that lock');

# Releasing: booleans and numbers; a list has to say that it is one.
is(outcome(node('SELECT advisory.unlock($1, $2)', [ 'u', 'x' ])), $TRUE, 'unlock: true');
my $again = node('SELECT advisory.unlock($1, $2)', [ 'u', 'x' ]);
is(outcome($again), 'boolean false', '... and false for what is not held');
like($again->{notices}[0], qr/"u\/x"/, '... with a warning that says which');
node('SELECT advisory.lock_all($1, $2)', [ 'u', [ 'x', 'y' ] ]);
my $as_name = node('SELECT advisory.unlock_all($1, $2)', [ 'u', [ 'x', 'y' ] ]);
is(outcome($as_name), '22023', 'unlock_all of a list without a cast is an error');
is(held_by_node(), 'x y', '... all is held still');
is(outcome(node('SELECT advisory.unlock_all($1, $2::text[])', [ 'u', [ 'x', 'y' ] ])), 'number 2',
    '... with the cast it releases them');
is(held_by_node(), '', '... all of them');

# A prepared statement with a name, again and again.
is(outcome(node('SELECT advisory.try_lock($1, $2)', [ 'u', $_ ], name => 'take')), $TRUE,
    "a prepared statement: $_") for 'x', 42, 43;
is(held_by_node(), '42 43 x', '... those locks');

close $node_in;
waitpid $node_pid, 0;
undef $node_pid;
done_testing();
