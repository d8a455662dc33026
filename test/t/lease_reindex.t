#!/usr/bin/env perl
# REINDEX CONCURRENTLY of the table of leases, beside sessions that wait for leases and take them,
# loses no row. It waits for a transaction that writes by the lock on its virtual transaction ID,
# which await_lease() releases while it sleeps.
use AdvisoryTest;
use Time::HiRes qw(time);

my $SECONDS = 10;
my $TAKERS = 4;

create_database();
my $look = session(application => 'look');
plan skip_all => 'there is no amcheck'
    if !$look->value(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'});
$look->run('CREATE EXTENSION amcheck');

# What a transaction writes is written slowly, and its own work after that takes no time.
$look->run(q{CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    PERFORM pg_sleep(0.01); RETURN NEW; END$$},
    'CREATE TRIGGER slowly BEFORE INSERT OR UPDATE ON advisory._leases FOR EACH ROW EXECUTE FUNCTION
    slowly()', 'ALTER TABLE advisory._leases ENABLE ALWAYS TRIGGER slowly');

my @takers = map { session(application => 'taker') } 1 .. $TAKERS;
for my $taker (@takers) {
    $taker->start(q{DO $$
        DECLARE token bigint; expires_at timestamptz;
        BEGIN
            LOOP
                CALL advisory.await_lease('l', 'reindexed', '1h', token => token,
                expires_at => expires_at);
                COMMIT;
                IF NOT advisory.end_lease('l', 'reindexed', token) THEN
                    RAISE 'lost a lease of an hour';
                END IF;
                COMMIT;
            END LOOP;
        END$$});
}

my ($damaged, $rounds, $start) = (0, 0, time);
while ($rounds < 20 || time - $start < $SECONDS) {
    $look->run('REINDEX TABLE CONCURRENTLY advisory._leases');
    for my $index ($look->column(q{SELECT indexrelid::regclass::text FROM pg_index
            WHERE indrelid = 'advisory._leases'::regclass})) {
        # heapallindexed: each row of the table is in the index.
        $damaged += defined $look->query('SELECT bt_index_check(?, true)', $index)->{message};
    }
    $rounds++;
}
note "$rounds rounds";
is($damaged, 0, 'and each row is in the index each time');
for my $taker (@takers) {
    ok(!$taker->is_done, 'nobody has lost a lease');
    $look->run('SELECT pg_terminate_backend(' . $taker->pid . ')');
}
done_testing();
