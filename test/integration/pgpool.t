#!/usr/bin/env perl
# Behind pgpool-II, which sends reads to a standby: first with its defaults, then with the settings
# that doc/drivers.md names. Where do locks, views and reads under a lock go, and does pgpool-II
# still know the primary when the holder of a lock was ended?
use AdvisoryTest;
use FindBin;
use Launch;
use PgPool;
use Programs;
use Replica;

plan skip_all => 'there is no pgpool-II here' unless pgpool();

# The settings are a block of the page.
my ($block) = slurp("$FindBin::Bin/../../doc/drivers.md")
    =~ /^```ini\n(.*?failover_on_backend_shutdown.*?)^```/ms or die "the page has no settings\n";
my %settings = $block =~ /^(\w+) = '?(.*?)'?(?: +#.*)?$/mg;
is_deeply([ sort keys %settings ],
    [qw(failover_on_backend_shutdown primary_routing_query_pattern_list)], 'the page names two');

my $first = own_server();
session(server => $first)->run('CREATE DATABASE defaults', 'CREATE DATABASE settings');
my $second = replica($first);

# What is different with the settings: where a function goes that was called before it existed,
# where the views are read, and the primary when a holder was ended.
for my $case (
    [ 'defaults', {},         qw(standby standby down) ],
    [ 'settings', \%settings, qw(primary primary up) ],
) {
    my ($database, $settings, $early, $views, $after) = @$case;
    my $pooler = PgPool->new($first, $second, %$settings);
    my $primary = session(server => $first, database => $database)
        ->run('CREATE TABLE item (id integer)');
    my $standby = session(server => $second, database => $database);
    my %server = (primary => $primary, standby => $standby);
    my sub client { return session(server => $pooler, database => $database) }
    my ($client, $other) = (client(), client());

    # Where the client's lock is: on one of the two.
    my $held = sub ($name) {
        return join ' and ', grep {
            $server{$_}->value(q(SELECT advisory.is_locked('pool', ?)), $name)
        } sort keys %server;
    };

    $client->fails(q(SELECT advisory.lock('pool', 'early')), '3F000', "$database: no extension");
    $primary->run('CREATE EXTENSION advisory_ext');
    caught_up($primary, $second);
    my $warned = $other->warned(q(SELECT advisory.lock('pool', 'early')));
    is($held->('early'), $early, "a function that was called before: its lock is on the $early");
    is($warned =~ /locks on a standby/ ? 'standby' : 'primary', $early,
        '... and a warning says so');
    $warned = $client->warned(q(SELECT advisory.try_lock('pool', 'late')));
    is("$warned " . $held->('late'), ' primary', 'one that was not: on the primary');

    # What is read.
    $warned = $client->warned(q(SELECT namespace FROM advisory.locks));
    is($warned =~ /this server is a standby/ ? 'standby' : 'primary', $views,
        "a view is read on the $views, and a notice says so");
    $client->shows(q(SELECT count(*) FROM advisory.locks WHERE name = ?),
        $views eq 'primary' ? 1 : 0, '... also in a prepared statement', 'late');
    $standby->run('SELECT pg_wal_replay_pause()');
    $standby->wait_until('the standby lags behind',
        q(SELECT pg_get_wal_replay_pause_state() = 'paused'));
    $primary->run('INSERT INTO item VALUES (1)');
    $client->shows('SELECT count(*) FROM item', 0,
        'rows under a session-level lock are old, outside of a transaction block');
    $client->run('BEGIN', q(SELECT advisory.try_lock('pool', 'late')));
    $client->shows('SELECT count(*) FROM item', 1, 'in one with the lock they are not');
    $client->run('COMMIT', 'BEGIN');
    $client->shows('SELECT count(*) FROM item', 0, 'in one without it they are');
    $client->run('COMMIT');
    $standby->run('SELECT pg_wal_replay_resume()');

    # How a lock ends that its client does not release.
    my $idle = client()->run(q(SET advisory_ext.idle_holder_timeout = '50ms'),
        q(SELECT advisory.try_lock('pool', 'idle')));
    client()->run(q(SELECT advisory.try_lock('pool', 'gone')))->disconnect;
    for my $case ([ gone => 'a client disconnects' ], [ idle => 'idle_holder_timeout ends one' ]) {
        my ($name, $what) = @$case;
        wait_until($what, sub { $held->($name) eq '' });
        is($pooler->statuses, '0:up 1:up', "$what: its lock is free, and no server is given up");
    }

    # A holder is ended by a client.
    $other->run('BEGIN', q(SELECT advisory.xact_lock('pool', 'ended')));
    my $end = $client->query(q(SELECT advisory.terminate_holder('pool', 'ended', pid)
        FROM advisory.holders('pool', 'ended')));
    $other->query('SELECT 1');
    wait_until("then the primary is $after", sub { $pooler->statuses =~ /^0:$after\b/ });
    is($end->{state} // 'still there', $after eq 'up' ? 'still there' : '08000',
        "a client ends a holder: then the primary is $after, and the client is");
    $pooler->stop;
}

done_testing();
