-- Editions: both.
-- Wrong input: an error with the right SQLSTATE, never a silent nothing, and nothing locked.
\pset format unaligned \pset tuples_only on
-- The outcome of a statement: its result, or the SQLSTATE and message of its error.
CREATE FUNCTION pg_temp.outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := 'done';
BEGIN
    IF statement LIKE 'CALL%' THEN
        EXECUTE statement;
    ELSE
        EXECUTE statement INTO result;
    END IF;
    RETURN coalesce(result, 'null');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

---- Namespace and name
CREATE TABLE pg_temp.functions AS
    SELECT function, coalesce(rest, '') AS rest
    FROM (VALUES ('lock'), ('lock_shared'), ('xact_lock'), ('xact_lock_shared'), ('try_lock'),
        ('try_lock_shared'),
                 ('try_xact_lock'), ('try_xact_lock_shared'), ('unlock'), ('unlock_shared'),
                 ('unlock_all'),
                 ('holds'), ('is_locked'), ('holders'), ('terminate_holder')) AS f(function)
         LEFT JOIN (VALUES ('terminate_holder', ', 0')) AS r(function, rest) USING (function);
-- Each function gives each of these the same answer: fifteen of a kind.
SELECT arguments, pg_temp.outcome(format('SELECT advisory.%s(%s%s)', function, arguments, rest))
    AS outcome, count(*)
    FROM pg_temp.functions,
         unnest(ARRAY['NULL, ''name''', ''''', ''name''', '''ns'', NULL::text', '''ns'', ''''',
         'NULL, 42', ''''', 42',
                      '''ns'', NULL::bigint',
                      'NULL, ''00000000-0000-0000-0000-000000000001''::uuid', '''ns'', NULL::uuid',
                      'NULL, NULL::text', ''''', ''''']) WITH ORDINALITY AS a(arguments, i)
    GROUP BY i, 1, 2 ORDER BY i;
--> NULL, 'name'|22004 namespace must not be null|15
--> '', 'name'|22023 namespace must not be empty|15
--> 'ns', NULL::text|22004 name must not be null|15
--> 'ns', ''|22023 name must not be empty|15
--> NULL, 42|22004 namespace must not be null|15
--> '', 42|22023 namespace must not be empty|15
--> 'ns', NULL::bigint|22004 id must not be null|15
--> NULL, '00000000-0000-0000-0000-000000000001'::uuid|22004 namespace must not be null|15
--> 'ns', NULL::uuid|22004 id must not be null|15
--> NULL, NULL::text|22004 namespace must not be null|15
--> '', ''|22023 namespace must not be empty|15
SELECT call, pg_temp.outcome(call) FROM unnest(ARRAY[
    $$CALL advisory.await_lock(NULL, 'name')$$, $$CALL advisory.await_lock('', 'name')$$,
    $$CALL advisory.await_lock('ns', '')$$, $$CALL advisory.await_lock('ns', NULL::bigint)$$,
    $$CALL advisory.await_lock('ns', NULL::uuid)$$,
    $$CALL advisory.await_lock_shared('ns', NULL::text)$$,
    $$CALL advisory.await_lock_shared('', 42)$$, $$CALL advisory.await_lock_key(NULL)$$,
    $$CALL advisory.await_lock_shared_key(42, NULL, '')$$,
    $$SELECT advisory.unlock_all(NULL)$$, $$SELECT advisory.unlock_all('')$$]) AS call;
--> CALL advisory.await_lock(NULL, 'name')|22004 namespace must not be null
--> CALL advisory.await_lock('', 'name')|22023 namespace must not be empty
--> CALL advisory.await_lock('ns', '')|22023 name must not be empty
--> CALL advisory.await_lock('ns', NULL::bigint)|22004 id must not be null
--> CALL advisory.await_lock('ns', NULL::uuid)|22004 id must not be null
--> CALL advisory.await_lock_shared('ns', NULL::text)|22004 name must not be null
--> CALL advisory.await_lock_shared('', 42)|22023 namespace must not be empty
--> CALL advisory.await_lock_key(NULL)|22004 key must not be null
--> CALL advisory.await_lock_shared_key(42, NULL, '')|22023 label must not be empty
--extension> SELECT advisory.unlock_all(NULL)|22004 namespace must not be null
--extension> SELECT advisory.unlock_all('')|22023 namespace must not be empty
--portable> SELECT advisory.unlock_all(NULL)|42883 function advisory.unlock_all(unknown) does not exist
--portable> SELECT advisory.unlock_all('')|42883 function advisory.unlock_all(unknown) does not exist

---- Keys and labels
SELECT pg_temp.outcome(format('SELECT advisory.%s(NULL)', function)) AS outcome, count(*)
    FROM unnest(ARRAY['lock_key', 'lock_shared_key', 'xact_lock_key', 'xact_lock_shared_key',
        'try_lock_key', 'try_lock_shared_key',
                      'try_xact_lock_key', 'try_xact_lock_shared_key', 'unlock_key',
                      'unlock_shared_key', 'holds_key',
                      'is_locked_key', 'holders_key']) AS function
    GROUP BY 1; --> 22004 key must not be null|13
SELECT pg_temp.outcome($$SELECT advisory.lock_key(42, label => '')$$);
--> 22023 label must not be empty

---- Lists
-- Each of the seven functions says the same.
SELECT list, pg_temp.outcome(format('SELECT advisory.%s(%L, %s)', function, 'ns', list)) AS outcome,
    count(*)
    FROM unnest(ARRAY['lock_all', 'try_lock_all', 'xact_lock_all', 'try_xact_lock_all',
        'try_lock_any', 'try_xact_lock_any', 'unlock_all']) AS function,
         unnest(ARRAY['NULL::text[]', 'NULL::bigint[]', 'NULL::uuid[]', 'ARRAY[''a'', NULL]',
         'ARRAY[NULL, ''a'']', 'ARRAY[''a'', '''']',
                      'ARRAY[1, NULL]', 'ARRAY[NULL]::uuid[]']) WITH ORDINALITY AS a(list, i)
    GROUP BY i, 1, 2 ORDER BY i;
--> NULL::text[]|22004 list of names must not be null|7
--> NULL::bigint[]|22004 list of names must not be null|7
--> NULL::uuid[]|22004 list of names must not be null|7
--> ARRAY['a', NULL]|22004 name must not be null|7
--> ARRAY[NULL, 'a']|22004 name must not be null|7
--> ARRAY['a', '']|22023 name must not be empty|7
--> ARRAY[1, NULL]|22004 id must not be null|7
--> ARRAY[NULL]::uuid[]|22004 id must not be null|7
SELECT pg_temp.outcome(format('SELECT advisory.%s(%s)', function, arguments)) AS outcome, count(*)
    FROM unnest(ARRAY['lock_all', 'try_lock_all', 'xact_lock_all', 'try_xact_lock_all',
        'try_lock_any', 'try_xact_lock_any']) AS function,
         unnest(ARRAY['NULL, ARRAY[''a'']', ''''', ARRAY[''a'']', 'NULL, ARRAY[1]',
         '''ns'', NULL::text']) AS arguments
    GROUP BY 1 ORDER BY 1;
--> 22004 list of names must not be null|6
--> 22004 namespace must not be null|12
--> 22023 namespace must not be empty|6
SELECT advisory.lock_all('ns', ARRAY['a', 'b', NULL, 'd']);
--> ERROR:  name must not be null
--extension> DETAIL:  Element 3 of the list is null.

---- wanted
SELECT wanted, pg_temp.outcome(format('SELECT advisory.try_lock_any(%L, ARRAY[1, 2], %s)', 'ns',
       wanted)),
       pg_temp.outcome(format('SELECT advisory.try_xact_lock_any(%L, ARRAY[1, 2], %s)', 'ns',
       wanted))
    FROM unnest(ARRAY['0', '-1', '-2147483648', 'NULL']) AS wanted;
--> 0|22023 wanted must be at least 1|22023 wanted must be at least 1
--> -1|22023 wanted must be at least 1|22023 wanted must be at least 1
--> -2147483648|22023 wanted must be at least 1|22023 wanted must be at least 1
--> NULL|22004 wanted must not be null|22004 wanted must not be null

---- Timeouts: rounded up to milliseconds, at most INT_MAX of them, and not below zero
CREATE TABLE pg_temp.timeouts (i serial, timeout text);
INSERT INTO pg_temp.timeouts (timeout) VALUES
    ('0'), ('1us'), ('2147483647ms'), ('24 days 20:31:23.647'), ('24 days'), ('2147483646.001 ms'),
    ('1 mon -29 days'), ('-1 day +24:00:01'),
    ('2147483647.001 ms'), ('2147483648ms'), ('25 days'), ('1 mon'), ('178000000 years'),
    ('2147483647 days'),
    ('-1us'), ('1 day -24:00:00.000001'), ('-1 day +23:59:59.999999'), ('-1s'), ('-1 day'),
    ('1 day -25:00'), ('1 mon -31 days'), ('-178000000 years'), ('-2147483648 days');
CREATE TABLE pg_temp.timed AS
    SELECT * FROM unnest(ARRAY['lock', 'lock_shared', 'xact_lock', 'xact_lock_shared', 'try_lock',
        'try_lock_shared',
                               'try_xact_lock', 'try_xact_lock_shared', 'lock_all', 'try_lock_all',
                               'xact_lock_all', 'try_xact_lock_all',
                               'lock_key', 'lock_shared_key', 'xact_lock_key',
                               'xact_lock_shared_key', 'try_lock_key', 'try_lock_shared_key',
                               'try_xact_lock_key', 'try_xact_lock_shared_key']) AS function,
         LATERAL (SELECT CASE WHEN function LIKE '%key' THEN '42'
         WHEN function LIKE '%all' THEN '''ns'', ARRAY[42]' ELSE '''ns'', 42' END) AS a(arguments);
SELECT outcome, calls, string_agg(timeout, ', ' ORDER BY i) AS timeouts
    FROM (SELECT i, timeout, outcome, count(*) AS calls
          FROM pg_temp.timeouts, pg_temp.timed,
              pg_temp.outcome(format('SELECT advisory.%s(%s, %L)', function, arguments, timeout))
              AS outcome GROUP BY i, timeout, outcome) AS t
    GROUP BY outcome, calls ORDER BY min(i);
--> true|20|0, 1us, 2147483647ms, 24 days 20:31:23.647, 24 days, 2147483646.001 ms, 1 mon -29 days, -1 day +24:00:01
--> 22008 timeout is out of range|20|2147483647.001 ms, 2147483648ms, 25 days, 1 mon, 178000000 years, 2147483647 days
--> 22023 timeout must not be negative|20|-1us, 1 day -24:00:00.000001, -1 day +23:59:59.999999, -1s, -1 day, 1 day -25:00, 1 mon -31 days, -178000000 years, -2147483648 days
-- Six of them are session-level and by name.
SELECT advisory.unlock_all('ns', 42) = 6 * 8 AS were_locked; --> t
SELECT pg_advisory_unlock_all(); -->
SELECT advisory.lock('ns', 'name', '25 days');
--> ERROR:  timeout is out of range
--> DETAIL:  A timeout can be at most 2147483647 milliseconds.
--> HINT:  To wait without a limit, pass NULL.
SELECT advisory.lock('ns', 'name', '-1s'); --> ERROR:  timeout must not be negative
-- Infinity is an interval since 17; before, it is none.
SELECT timeout, left(pg_temp.outcome(format('SELECT advisory.lock(%L, 42, %L)', 'ns', timeout)), 5)
           = CASE WHEN current_setting('server_version_num')::int < 170000 THEN '22007'
           ELSE since_17 END AS as_expected
    FROM (VALUES ('infinity', '22008'), ('-infinity', '22023')) AS t(timeout, since_17);
--> infinity|t
--> -infinity|t
SELECT call, left(pg_temp.outcome(call), 5) AS sqlstate FROM unnest(ARRAY[
    $$CALL advisory.await_lock('ns', 'name', '-1s')$$,
    $$CALL advisory.await_lock('ns', 42, '25 days')$$,
    $$CALL advisory.await_lock_shared('ns', 'name', '-1us')$$,
    $$CALL advisory.await_lock_key(42, '25 days')$$,
    $$CALL advisory.await_lock_shared_key(42, '-1s')$$,
    $$SELECT advisory.terminate_holder('ns', 'name', 1, '-1s')$$,
    $$SELECT advisory.terminate_holder('ns', 'name', 1, '25 days')$$,
    $$SELECT advisory.lock('ns', 'name', 'soon')$$]) AS call;
--> CALL advisory.await_lock('ns', 'name', '-1s')|22023
--> CALL advisory.await_lock('ns', 42, '25 days')|22008
--> CALL advisory.await_lock_shared('ns', 'name', '-1us')|22023
--> CALL advisory.await_lock_key(42, '25 days')|22008
--> CALL advisory.await_lock_shared_key(42, '-1s')|22023
--> SELECT advisory.terminate_holder('ns', 'name', 1, '-1s')|22023
--> SELECT advisory.terminate_holder('ns', 'name', 1, '25 days')|22008
--> SELECT advisory.lock('ns', 'name', 'soon')|22007

---- Names of a megabyte, and those that are made to be mistaken for others
SELECT advisory.lock(repeat('n', 1000000), repeat('x', 1000000)) AS lock,
       advisory.holds(repeat('n', 1000000), repeat('x', 1000000)) AS holds,
       advisory.holds(repeat('n', 1000000), repeat('x', 999999)) AS holds_shorter,
       advisory.unlock(repeat('n', 1000000), repeat('x', 1000000)); --> t|t|f|t
SELECT advisory.lock_all('ns', ARRAY[repeat('x', 1000000), repeat('y', 1000000)]),
    advisory.unlock_all('ns', ARRAY[repeat('x', 1000000), repeat('y', 1000000)]); --> t|2
SELECT advisory.lock_key(42, label => repeat('l', 1000000)), advisory.unlock_key(42); --> t|t
SELECT advisory.lock('a/b', 'c'), advisory.lock('a', E'b/c\n"\\'), advisory.lock(' ', ' '),
    advisory.lock('%s', '$1'); --> t|t|t|t
SELECT count(*) AS locks FROM advisory.locks WHERE pid = pg_backend_pid(); --> 4
SELECT advisory.unlock_all('a', E'b/c\n"\\') + advisory.unlock_all('a/b', 'c')
    + advisory.unlock_all(' ', ' ') + advisory.unlock_all('%s', '$1') AS unlocked; --> 4

---- terminate_holder: what is no holder is not terminated
SELECT advisory.terminate_holder('ns', 'name', NULL); --> ERROR:  pid must not be null
SELECT advisory.terminate_holder('ns', 'name', 0);
--extension> WARNING:  PID 0 is not a PostgreSQL backend process
--portable> WARNING:  PID 0 does not hold advisory lock "ns/name", nor a slot of the semaphore of that name
--> f
SELECT advisory.terminate_holder('ns', 'name', -1);
--extension> WARNING:  PID -1 is not a PostgreSQL backend process
--portable> WARNING:  PID -1 does not hold advisory lock "ns/name", nor a slot of the semaphore of that name
--> f
SELECT advisory.terminate_holder('ns', 'name', 2147483647);
--extension> WARNING:  PID 2147483647 is not a PostgreSQL backend process
--portable> WARNING:  PID 2147483647 does not hold advisory lock "ns/name", nor a slot of the semaphore of that name
--> f
SELECT pg_temp.outcome(call) FROM unnest(ARRAY[
    'SELECT advisory.terminate_holder_key(NULL, 1)',
    'SELECT advisory.terminate_holder_key(42, NULL)',
    'SELECT advisory.terminate_holder_key(42, 0)',
    $$SELECT advisory.terminate_holder_key(42, 1, '-1s')$$]) AS call;
--extension> WARNING:  PID 0 is not a PostgreSQL backend process
--portable> WARNING:  PID 0 does not hold advisory lock "42", nor a slot of the semaphore of that name
--> 22004 key must not be null
--> 22004 pid must not be null
--> false
--> 22023 timeout must not be negative
SELECT advisory.lock('ns', 'other'); --> t
-- Not even this session, which holds another lock, and not that. (The warning has the pid.)
SET client_min_messages = error;
SELECT advisory.terminate_holder('ns', 'name', pg_backend_pid()); --> f
RESET client_min_messages;
SELECT advisory.unlock('ns', 'other'); --> t

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
