#!/usr/bin/env perl
# Logical replication: a publication of all tables has the extension's, and a lease on the
# subscriber stops it; one of the schemas of doc/beyond-a-session.md does not. One of all sequences
# (PostgreSQL 19) has the era, but tokens do not fall.
use FindBin;
use AdvisoryTest;

my $LEASE = q(SELECT token FROM advisory.lease('logical', 'both', '1h'));

open my $page, '<', "$FindBin::Bin/../../doc/beyond-a-session.md"
    or die "beyond-a-session.md: $!\n";
my ($documented) = do { local $/ = undef; <$page> } =~ /^(CREATE PUBLICATION .*);$/m;

my $server = own_server('wal_level=logical', 'wal_retrieve_retry_interval=100ms');
my $admin = session(server => $server);
for my $database (qw(publisher subscriber)) {
    $admin->run("CREATE DATABASE $database");
    session(server => $server, database => $database)->run('CREATE EXTENSION advisory_ext',
        'CREATE TABLE public.work (id int PRIMARY KEY)');
}
my $publisher = session(server => $server, database => 'publisher');
my $subscriber = session(server => $server, database => 'subscriber');

# Within one server, the slot is not to be made by the subscription, which would wait for its own
# transaction.
sub publish ($sql, $name) {
    $publisher->run($sql);
    $publisher->run("SELECT pg_create_logical_replication_slot('$name', 'pgoutput')");
    my $database = $publisher->value('SELECT current_database()');
    $subscriber->run("CREATE SUBSCRIPTION $name CONNECTION
        'host=$server->{PGHOST} port=$server->{PGPORT} user=postgres dbname=$database'
        PUBLICATION $name WITH (create_slot = false, copy_data = false, slot_name = '$name')");
    return;
}

sub published {
    return $publisher->value(q(SELECT string_agg(schemaname || '.' || tablename, ' ' ORDER BY 1)
        FROM pg_publication_tables WHERE pubname = ?), $_[0]);
}

sub log_of_server {
    open my $log, '<', $server->{ADVISORY_EXT_LOG} or die "cannot read the server's log: $!\n";
    local $/ = undef;
    return <$log> // '';
}

publish($documented, 'app');
is(published('app'), 'public.work', 'the documented publication has no table of the extension');
my $held = $subscriber->value($LEASE);
my $held_there = $publisher->value($LEASE);
ok($held && $held_there, 'both servers have a lease of one name');
$publisher->run('INSERT INTO work VALUES (1)');
ok(eval { wait_until('the row is there', sub { $subscriber->value('SELECT count(*) FROM work') },
        60) }, 'and the rows of others are replicated');
$publisher->run("SELECT advisory.end_lease('logical', 'both', $held_there)");
$subscriber->run('DROP SUBSCRIPTION app');

publish('CREATE PUBLICATION everything FOR ALL TABLES', 'everything');
like(published('everything'), qr/advisory\._leases/,
    'a publication of all tables has those of the extension');
$publisher->run($LEASE, 'INSERT INTO work VALUES (2)');
ok(eval { wait_until('the error is logged', sub { log_of_server() =~ /"_leases_pkey"/ }, 60) },
    'a lease on the subscriber stops it');
$subscriber->shows('SELECT count(*) FROM work WHERE id = 2', 0,
    'so what was committed later does not arrive');
$subscriber->run('ALTER SUBSCRIPTION everything DISABLE');

SKIP: {
    skip 'before 19 no publication has sequences', 5
        if $subscriber->value('SHOW server_version_num') < 190000;
    my $take = sub ($name) { return $subscriber->value(
            "SELECT token FROM advisory.lease('logical', ?, '1h')", $name) };
    my $other = $take->('era');
    $subscriber->run("SELECT advisory.tokens_above($other)");
    my $before = $take->('before');
    cmp_ok($before >> 50, '>', $other >> 50, 'the subscriber is in a later era');
    publish('CREATE PUBLICATION sequences FOR ALL SEQUENCES', 'sequences');
    $subscriber->run('ALTER SUBSCRIPTION sequences REFRESH SEQUENCES');
    ok(eval { wait_until('the era is there', sub {
                $subscriber->value('SELECT last_value >> 50 FROM advisory._era') < $before >> 50
    }, 60) }, 'all sequences: the era of the publisher is there');
    my $next = $take->('next');
    cmp_ok($next, '>', $before, '... but tokens do not fall');
    $subscriber->shows("SELECT advisory.check_token('logical', 'next', $next)", 1,
        '... and are valid');
    $subscriber->run("SELECT advisory.end_lease('logical', 'before', $before)");
    cmp_ok($take->('before'), '>', $before, '... nor those of the next owner');
}

done_testing();
