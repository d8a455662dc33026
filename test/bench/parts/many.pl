# Many locks in one call.
package Bench::Part::many;

use AdvisoryTest;
use Bench;

my $calls = QUICK ? 20 : 100;

sub calls ($statement) {
    return on_server(sub { loop($_[0], "ARRAY(SELECT generate_series(1, $calls))", 'int',
        $statement) });
}

my $names = names_array(100, 'name ');
compare(work => 'lock_all and unlock_all of 100 names', of => 'time',
    against => "a sorted loop's", 'at most' => 1, ours => calls(<<"SQL"), theirs => calls(<<"SQL"));
PERFORM advisory.lock_all('bench', $names); PERFORM advisory.unlock_all('bench', $names)
SQL
DECLARE
    key bigint;
    keys bigint[] := ARRAY(SELECT hashtextextended('bench' || name, 0) AS key
        FROM unnest($names) AS name ORDER BY key);
BEGIN
    FOREACH key IN ARRAY keys LOOP PERFORM pg_advisory_lock(key); END LOOP;
    FOREACH key IN ARRAY keys LOOP PERFORM pg_advisory_unlock(key); END LOOP;
END
SQL

$names = names_array(10, 'any ');
compare(work => 'try_lock_any of 10 names, and unlock', of => 'time',
    against => "a loop's", 'at most' => 2, ours => calls(<<"SQL"), theirs => calls(<<"SQL"));
PERFORM advisory.unlock('bench', advisory.try_lock_any('bench', $names))
SQL
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY $names LOOP
        IF pg_try_advisory_lock(hashtextextended('bench' || name, 0)) THEN
            PERFORM pg_advisory_unlock(hashtextextended('bench' || name, 0));
            EXIT;
        END IF;
    END LOOP;
END
SQL
1;
