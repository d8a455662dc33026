# Tokens and leases. Both write WAL and wait until it is on disk, so their servers run with fsync on
# and off.
package Bench::Part::leases;

use AdvisoryTest;
use Bench;

my $calls = QUICK ? 50 : 200;
my (%session, %token);

sub timed ($fsync, @statements) {
    return sub ($tree, @) {
        my $session = $session{$tree}{$fsync} //= do {
            my $server = server_of($tree, "fsync $fsync");
            session(server => $server)->run(
                "ALTER SYSTEM SET fsync = $fsync", 'SELECT pg_reload_conf()',
                'SELECT pg_sleep(0.2)', 'CREATE TABLE work (done int)',
                'CREATE TABLE by_hand (LIKE advisory._leases INCLUDING ALL)');
            session(server => $server)->run(q{DO $$
                BEGIN
                    FOR slot IN 1..99 LOOP
                        PERFORM advisory.try_lease_slot('bench', 'slots', 100, '1 hour');
                        COMMIT;
                    END LOOP;
                END $$});
            session(server => $server)->run(q{SELECT advisory.lock('bench', 'token')},
                q{SELECT set_config('bench.token', token::text, false)
                  FROM advisory.try_lease('bench', 'renewed', '1 hour')});
        };
        # Each call is a transaction of its own.
        $session->run(<<"SQL");
DO \$\$
DECLARE
    start timestamptz := clock_timestamp();
    taken record;
BEGIN
    FOR element IN 1..$calls LOOP
        @{[ map { "$_; COMMIT;" } @statements ]}
    END LOOP;
    PERFORM set_config('bench.us',
                       (extract(epoch FROM clock_timestamp() - start) * 1e6)::text, false);
END \$\$
SQL
        return $session->value(q{SELECT current_setting('bench.us')});
    };
}

# The same row, as one would write it without the extension.
my $BY_HAND = <<'SQL';
INSERT INTO by_hand AS l (key, slot, slots, token, namespace, name, owner, role, role_name, server,
                          era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals)
VALUES (1, 0, 0, element, 'bench', 'free', current_user, current_user::regrole, current_user, 1, 1,
        '1 us', '0', now(), now(), now(), 0)
ON CONFLICT (key, slot) DO UPDATE SET (token, namespace, name, owner, role, role_name, server, era,
                                 ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals) =
    (EXCLUDED.token, EXCLUDED.namespace, EXCLUDED.name, EXCLUDED.owner, EXCLUDED.role,
     EXCLUDED.role_name, EXCLUDED.server, EXCLUDED.era, EXCLUDED.ttl, EXCLUDED.lock_delay,
     EXCLUDED.acquired_at, EXCLUDED.renewed_at, EXCLUDED.expires_at, 0)
    WHERE l.expires_at + l.lock_delay <= now()
RETURNING token, expires_at INTO taken
SQL
my $IS_TAKEN = 'ASSERT taken.token IS NOT NULL';

my $TRY_LEASE = 'SELECT * INTO taken FROM advisory.try_lease';
my $TOKEN = q{PERFORM advisory.token('bench', 'token')};
my $RENEW = q{PERFORM advisory.renew_lease('bench', 'renewed',
                                           current_setting('bench.token')::bigint)};

for my $fsync (qw(off on)) {
    my $insert = timed($fsync, 'INSERT INTO work VALUES (element)');
    my $compared = sub ($work, $against, $ours, $theirs, @at_most) {
        compare(work => "$work, fsync $fsync", of => 'time', against => $against, @at_most,
            ours => timed($fsync, @{$ours}), theirs => $theirs);
    };
    $compared->('token', "lock and unlock's", [$TOKEN],
        timed($fsync, map { "PERFORM advisory.$_('bench', 'plain')" } qw(lock unlock)));
    $compared->('token', "an INSERT's", [$TOKEN], $insert);
    $compared->('try_lease of a free lease', "an INSERT ON CONFLICT's",
        ["$TRY_LEASE('bench', 'free', '1 us')", $IS_TAKEN], timed($fsync, $BY_HAND, $IS_TAKEN),
        'at most' => 2.5);
    $compared->('try_lease and end_lease', "an INSERT's",
        ["$TRY_LEASE('bench', 'lease', '1 min')",
         q{PERFORM advisory.end_lease('bench', 'lease', taken.token)}], $insert, 'at most' => 20);
    # All slots but the last are taken.
    $compared->('try_lease_slot and end_lease, 99 of 100 taken', "try_lease's and end_lease's",
        ["${TRY_LEASE}_slot('bench', 'slots', 100, '1 min')", $IS_TAKEN,
         q{PERFORM advisory.end_lease('bench', 'slots', taken.token)}],
        timed($fsync, "$TRY_LEASE('bench', 'lease', '1 min')", $IS_TAKEN,
            q{PERFORM advisory.end_lease('bench', 'lease', taken.token)}), 'at most' => 1.5);
    $compared->('renew_lease', "an INSERT's", [$RENEW], $insert, 'at most' => 10);
}
undef %session;
1;
