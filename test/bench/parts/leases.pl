# Tokens and leases. Both write WAL and wait until it is on disk, so their servers run with fsync = on and off.
package Bench::Part::leases;

use strict;
use warnings;
use AdvisoryTest;
use Bench;

my $calls = QUICK ? 50 : 200;
my (%session, %token);

sub timed {
    my ($fsync, @statements) = @_;
    return sub {
        my ($tree) = @_;
        my $session = $session{$tree}{$fsync} //= do {
            my $server = server_of($tree, "fsync $fsync");
            my $new = session(server => $server)->run("ALTER SYSTEM SET fsync = $fsync", 'SELECT pg_reload_conf()', q{SELECT pg_sleep(0.2)},
                'CREATE TABLE work (done int)', 'CREATE TABLE by_hand (LIKE advisory._leases INCLUDING ALL)');
            session(server => $server)->run(q{SELECT advisory.lock('bench', 'token')}, q{SELECT set_config('bench.token', (advisory.try_lease('bench', 'renewed', '1 hour')).token::text, false)});
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
    PERFORM set_config('bench.us', (extract(epoch FROM clock_timestamp() - start) * 1e6)::text, false);
END \$\$
SQL
        return $session->value(q{SELECT current_setting('bench.us')});
    };
}

# The same row, as one would write it without the extension.
my $BY_HAND = <<'SQL';
INSERT INTO by_hand AS l (key, token, namespace, name, owner, role, era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals)
VALUES (1, element, 'bench', 'free', current_user, current_user::regrole, 1, '1 us', '0', now(), now(), now(), 0)
ON CONFLICT (key) DO UPDATE SET (token, namespace, name, owner, role, era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals) =
    (EXCLUDED.token, EXCLUDED.namespace, EXCLUDED.name, EXCLUDED.owner, EXCLUDED.role, EXCLUDED.era, EXCLUDED.ttl, EXCLUDED.lock_delay,
     EXCLUDED.acquired_at, EXCLUDED.renewed_at, EXCLUDED.expires_at, 0)
    WHERE l.expires_at + l.lock_delay <= now()
RETURNING token, expires_at INTO taken
SQL
my $IS_TAKEN = 'ASSERT taken.token IS NOT NULL';

for my $fsync (qw(off on)) {
    my $insert = timed($fsync, 'INSERT INTO work VALUES (element)');
    compare(work => "token, fsync $fsync", of => 'time', against => "lock and unlock's", ours => timed($fsync, q{PERFORM advisory.token('bench', 'token')}),
        theirs => timed($fsync, q{PERFORM advisory.lock('bench', 'plain')}, q{PERFORM advisory.unlock('bench', 'plain')}));
    compare(work => "token, fsync $fsync", of => 'time', against => "an INSERT's", ours => timed($fsync, q{PERFORM advisory.token('bench', 'token')}), theirs => $insert);
    compare(work => "try_lease of a free lease, fsync $fsync", of => 'time', against => "an INSERT ON CONFLICT's", 'at most' => 2.5,
        ours => timed($fsync, q{SELECT * INTO taken FROM advisory.try_lease('bench', 'free', '1 us')}, $IS_TAKEN), theirs => timed($fsync, $BY_HAND, $IS_TAKEN));
    compare(work => "try_lease and end_lease, fsync $fsync", of => 'time', against => "an INSERT's", 'at most' => 20,
        ours => timed($fsync, q{SELECT * INTO taken FROM advisory.try_lease('bench', 'lease', '1 min')}, q{PERFORM advisory.end_lease('bench', 'lease', taken.token)}), theirs => $insert);
    compare(work => "renew_lease, fsync $fsync", of => 'time', against => "an INSERT's", 'at most' => 10,
        ours => timed($fsync, q{PERFORM advisory.renew_lease('bench', 'renewed', current_setting('bench.token')::bigint)}), theirs => $insert);
}
undef %session;
1;
