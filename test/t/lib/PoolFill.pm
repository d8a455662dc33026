# Fills the lock table of a separate server, and returns how many locks fit and how many were
# estimated before.
package PoolFill;

use strict;
use warnings;
use AdvisoryTest;
use Exporter 'import';

our @EXPORT = qw(MANY_POOLS pool_server fill_pool);

# max_locks_per_transaction/max_connections/max_prepared_transactions
use constant MANY_POOLS => qw(
    10/100/0 16/60/5 20/70/0 24/40/0 30/50/0 40/30/0 48/25/0 64/100/0 256/100/50 64/20/0 128/300/0
    64/100/100 512/60/0 20/50/2 32/50/10 30/20/0 16/30/0 10/90/0 10/40/0 10/20/0 10/10/0);

# Uses a separate session, because a session-level lock survives the error.
my $FILL = <<'SQL';
DO $$
DECLARE
    filled bigint := 0;
BEGIN
    LOOP
        PERFORM pg_advisory_lock(filled);
        filled := filled + 1;
    END LOOP;
EXCEPTION WHEN out_of_memory THEN
    PERFORM set_config('pool.filled', filled::text, false);
END $$
SQL

# The formula that most articles give.
my $USUAL = q{SELECT current_setting('max_locks_per_transaction')::int
    * (current_setting('max_connections')::int
    + current_setting('max_prepared_transactions')::int)};

# A server with this pool, and a session on it.
sub pool_server {
    my ($pool) = @_;
    my ($locks, $connections, $prepared) = split m{/}, $pool;
    my $server = own_server("max_locks_per_transaction=$locks", "max_connections=$connections",
        "max_prepared_transactions=$prepared", 'autovacuum=off');
    return ($server, session(server => $server)->run('CREATE EXTENSION advisory_ext'));
}

# The row of advisory.pressure, by its columns' names.
sub pressure_of {
    my ($session) = @_;
    return $session->dbh->selectrow_hashref('SELECT * FROM advisory.pressure');
}

# {before, after: rows of advisory.pressure; filled: how many locks fitted in between; usual: what
# the usual formula says}
sub fill_pool {
    my ($server, $look) = @_;
    # A session that looked whether the server is there may still be ending.
    $look->wait_until('nobody else has locks',
        'SELECT count(*) = 0 FROM pg_locks WHERE pid <> pg_backend_pid()');
    my %result = (before => pressure_of($look), usual => $look->value($USUAL));
    my $hog = session(server => $server)->run($FILL);
    $result{filled} = $hog->value(q{SELECT current_setting('pool.filled')});
    $result{after} = pressure_of($look);
    $hog->disconnect;
    return \%result;
}

1;
