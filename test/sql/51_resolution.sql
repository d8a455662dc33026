-- Editions: both.
-- The functions that calls resolve to, with literals, typed values and the untyped parameters that
-- drivers send.
\pset format unaligned \pset tuples_only on
-- The function that a call means, as the parser has it: a view depends on just that.
CREATE FUNCTION pg_temp.resolved(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'CREATE TEMP VIEW resolved AS SELECT 1 AS one FROM ' || call;
    SELECT string_agg(refobjid::regprocedure::text, ', ') FROM pg_depend
        JOIN pg_rewrite r ON r.oid = objid
        WHERE classid = 'pg_rewrite'::regclass AND ev_class = 'pg_temp.resolved'::regclass
          AND refclassid = 'pg_proc'::regclass AND refobjid::regprocedure::text LIKE 'advisory.%'
          INTO result;
    DROP VIEW pg_temp.resolved;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

-- The types that a statement with untyped parameters gives them.
CREATE FUNCTION pg_temp.parameters(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'PREPARE untyped AS SELECT ' || call;
    SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped' INTO STRICT result;
    DEALLOCATE untyped;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

---- key(): two of a kind that could be mistaken
SELECT call, pg_temp.resolved(call) FROM unnest(ARRAY[
    $$advisory.key('name')$$, $$advisory.key('name'::varchar)$$, $$advisory.key('name'::name)$$,
    $$advisory.key(42)$$,
    $$advisory.key('ns', '42')$$, $$advisory.key('ns', 42)$$,
    $$advisory.key(namespace => 'ns', name => '42')$$,
    $$advisory.key(namespace => 'ns', id => 42)$$,
    $$advisory.key(id => '42', namespace => 'ns')$$]) AS call;
--> advisory.key('name')|advisory.key(text)
--> advisory.key('name'::varchar)|advisory.key(text)
--> advisory.key('name'::name)|advisory.key(text)
--> advisory.key(42)|42883
--> advisory.key('ns', '42')|advisory.key(text,text)
--> advisory.key('ns', 42)|advisory.key(text,bigint)
--> advisory.key(namespace => 'ns', name => '42')|advisory.key(text,text)
--> advisory.key(namespace => 'ns', id => 42)|advisory.key(text,bigint)
--> advisory.key(id => '42', namespace => 'ns')|42725
SELECT call, pg_temp.parameters(call)
    FROM unnest(ARRAY['advisory.key($1)', 'advisory.key($1, $2)', 'advisory.key($1, $2::bigint)'])
    AS call;
--> advisory.key($1)|{text}
--> advisory.key($1, $2)|{text,text}
--> advisory.key($1, $2::bigint)|{text,bigint}

---- One lock: each function alike for each way to write its name
CREATE TABLE pg_temp.functions AS
    SELECT function, CASE function WHEN 'terminate_holder' THEN ', 1' ELSE '' END AS rest
    FROM unnest(ARRAY['key', 'lock', 'lock_shared', 'xact_lock', 'xact_lock_shared', 'try_lock',
        'try_lock_shared', 'try_xact_lock', 'try_xact_lock_shared',
                      'unlock', 'unlock_shared', 'unlock_all', 'holds', 'is_locked', 'holders',
                      'terminate_holder']) AS function;
CREATE TYPE pg_temp.job AS ENUM ('nightly');
CREATE DOMAIN pg_temp.job_name AS text;
CREATE DOMAIN pg_temp.job_id AS bigint;

-- Only the type of the second argument is shown, since that is what makes the difference.
SELECT taken_as, count(*) AS calls,
    string_agg(DISTINCT name COLLATE "C", ' ' ORDER BY name COLLATE "C") AS names
    FROM unnest(ARRAY[$$'name'$$, $$'42'$$, $$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'$$, $$NULL$$,
                      $$42$$, $$4200000000$$, $$42::smallint$$, $$42::integer$$, $$42::bigint$$,
                      $$'42'::integer$$, $$42::oid$$,
                      $$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid$$, $$gen_random_uuid()$$,
                      $$'name'::text$$, $$'name'::varchar$$, $$'name'::varchar(9)$$,
                      $$'name'::char(9)$$, $$'name'::name$$, $$'n'::"char"$$,
                      $$'name'::job_name$$, $$42::job_id$$,
                      $$42.0$$, $$42::numeric$$, $$42::float8$$, $$true$$, $$now()$$,
                      $$'nightly'::job$$, $$'{}'::jsonb$$,
                      $$ARRAY[true]$$]) AS name,
         pg_temp.functions, pg_temp.resolved(format('advisory.%s(''ns'', %s%s)', function, name,
         rest)) AS resolved,
         coalesce(substring(resolved FROM '\(text,(\w+)'), resolved) AS taken_as
    GROUP BY taken_as ORDER BY taken_as;
--> 42883|144|'nightly'::job '{}'::jsonb 42.0 42::float8 42::numeric 42::oid ARRAY[true] now() true
--> bigint|112|'42'::integer 42 4200000000 42::bigint 42::integer 42::job_id 42::smallint
--> text|176|'42' 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' 'n'::"char" 'name' 'name'::char(9) 'name'::job_name 'name'::name 'name'::text 'name'::varchar 'name'::varchar(9) NULL
--> uuid|32|'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid gen_random_uuid()
-- The namespace is text and nothing else.
SELECT namespace, coalesce(resolved, '') AS resolved
    FROM unnest(ARRAY[$$'ns'$$, $$'ns'::varchar$$, $$'ns'::name$$, $$'ns'::char(2)$$, $$42$$])
        AS namespace,
         pg_temp.resolved(format('advisory.lock(%s, 42)', namespace)) AS resolved;
--> 'ns'|advisory.lock(text,bigint,interval)
--> 'ns'::varchar|advisory.lock(text,bigint,interval)
--> 'ns'::name|advisory.lock(text,bigint,interval)
--> 'ns'::char(2)|advisory.lock(text,bigint,interval)
--> 42|42883
-- Parameters without a type are text, like literals.
SELECT pg_temp.parameters(format('advisory.%s($1, $2%s)', function, rest)), count(*)
    FROM pg_temp.functions GROUP BY 1; --> {text,text}|16
SELECT pg_temp.parameters(format('advisory.%s($1, 42%s)', function, rest)), count(*)
    FROM pg_temp.functions GROUP BY 1; --> {text}|16
SELECT pg_temp.parameters(format('advisory.%s($1, $2, $3)', function)),
    string_agg(function, ' ' ORDER BY function)
    FROM pg_temp.functions WHERE function LIKE '%lock%' AND function NOT LIKE 'unlock%'
        AND function <> 'is_locked' GROUP BY 1;
--> {text,text,interval}|lock lock_shared try_lock try_lock_shared try_xact_lock try_xact_lock_shared xact_lock xact_lock_shared
SELECT pg_temp.parameters('advisory.terminate_holder($1, $2, $3)'),
    pg_temp.parameters('advisory.terminate_holder($1, $2, $3, $4)');
--> {text,text,integer}|{text,text,integer,interval}

---- Timeouts
SELECT timeout, resolved FROM unnest(ARRAY[$$'5s'$$, $$NULL$$, $$interval '5s'$$, $$'5s'::text$$,
    $$5$$, $$5.0$$, $$timeout => '5s'$$,
                                           $$timeout => NULL$$]) AS timeout,
    pg_temp.resolved(format('advisory.lock(''ns'', 42, %s)', timeout)) AS resolved;
--> '5s'|advisory.lock(text,bigint,interval)
--> NULL|advisory.lock(text,bigint,interval)
--> interval '5s'|advisory.lock(text,bigint,interval)
--> '5s'::text|42883
--> 5|42883
--> 5.0|42883
--> timeout => '5s'|advisory.lock(text,bigint,interval)
--> timeout => NULL|advisory.lock(text,bigint,interval)
-- Where the third argument could be taken for something else.
SELECT call, pg_temp.resolved(call) FROM unnest(ARRAY[
    $$advisory.lock('42', '5s')$$, $$advisory.lock_key(42, '5s')$$,
    $$advisory.lock_key('42', '5s')$$, $$advisory.lock_key(42, NULL, 'label')$$,
    $$advisory.lock_key(42, label => 'label')$$, $$advisory.lock_key('ns', 'name')$$,
    $$advisory.lock_key(42, 43)$$, $$advisory.lock('name')$$,
    $$advisory.lock(42)$$, $$advisory.lock(name => 'name', namespace => 'ns')$$,
    $$advisory.lock(id => 42, namespace => 'ns')$$,
    $$advisory.lock(namespace => 'ns', name => 'name', timeout => '5s')$$,
    $$advisory.unlock_all('ns')$$,
    $$advisory.unlock_all(namespace => 'ns', names => ARRAY['a'])$$,
    $$advisory.unlock_all(namespace => 'ns', ids => ARRAY[1])$$]) AS call;
--> advisory.lock('42', '5s')|advisory.lock(text,text,interval)
--> advisory.lock_key(42, '5s')|advisory.lock_key(bigint,interval,text)
--> advisory.lock_key('42', '5s')|advisory.lock_key(bigint,interval,text)
--> advisory.lock_key(42, NULL, 'label')|advisory.lock_key(bigint,interval,text)
--> advisory.lock_key(42, label => 'label')|advisory.lock_key(bigint,interval,text)
--> advisory.lock_key('ns', 'name')|22P02
--> advisory.lock_key(42, 43)|42883
--> advisory.lock('name')|42883
--> advisory.lock(42)|42883
--> advisory.lock(name => 'name', namespace => 'ns')|advisory.lock(text,text,interval)
--> advisory.lock(id => 42, namespace => 'ns')|advisory.lock(text,bigint,interval)
--> advisory.lock(namespace => 'ns', name => 'name', timeout => '5s')|advisory.lock(text,text,interval)
--extension> advisory.unlock_all('ns')|advisory.unlock_all(text)
--portable> advisory.unlock_all('ns')|42883
--> advisory.unlock_all(namespace => 'ns', names => ARRAY['a'])|advisory.unlock_all(text,text[])
--> advisory.unlock_all(namespace => 'ns', ids => ARRAY[1])|advisory.unlock_all(text,bigint[])

---- By key
SELECT pg_temp.parameters(format('advisory.%s($1)', function)), count(*)
    FROM unnest(ARRAY['lock_key', 'lock_shared_key', 'xact_lock_key', 'xact_lock_shared_key',
        'try_lock_key', 'try_lock_shared_key',
                      'try_xact_lock_key', 'try_xact_lock_shared_key', 'unlock_key',
                      'unlock_shared_key', 'holds_key', 'is_locked_key',
                      'holders_key']) AS function GROUP BY 1; --> {bigint}|13
SELECT pg_temp.parameters(format('advisory.%s($1, $2, $3)', function)), count(*)
    FROM unnest(ARRAY['lock_key', 'lock_shared_key', 'xact_lock_key', 'xact_lock_shared_key',
        'try_lock_key', 'try_lock_shared_key',
                      'try_xact_lock_key', 'try_xact_lock_shared_key']) AS function GROUP BY 1;
--> {bigint,interval,text}|8

---- Lists: untyped ones are text[] literals, except in unlock_all, where they are a name
SELECT taken_as, functions, string_agg(list, '  ' ORDER BY i) AS lists
    FROM (SELECT i, list, taken_as, string_agg(function, ' ' ORDER BY function) AS functions
    FROM unnest(ARRAY[$$ARRAY['a', 'b']$$, $$ARRAY['a', 'b']::varchar[]$$,
        $$ARRAY['a', 'b']::name[]$$, $$ARRAY['a']::char(9)[]$$, $$'{a,b}'::text[]$$,
                      $$ARRAY[1, 2]$$, $$ARRAY[1, 2]::smallint[]$$, $$ARRAY[1, 4200000000]$$,
                      $$ARRAY[1, 2]::bigint[]$$, $$'{1,2}'::bigint[]$$,
                      $$ARRAY[gen_random_uuid()]$$, $$'{}'::uuid[]$$, $$'{a,b}'$$, $$'{1,2}'$$,
                      $$'{}'$$, $$NULL$$, $$'{a,b}'::text$$,
                      $$ARRAY[1.5]$$, $$42$$, $$(SELECT array_agg(42))$$,
                      $$string_to_array('a,b', ',')$$]) WITH ORDINALITY AS n(list, i),
         unnest(ARRAY['lock_all', 'try_lock_all', 'xact_lock_all', 'try_xact_lock_all',
         'try_lock_any', 'try_xact_lock_any', 'unlock_all']) AS function,
         pg_temp.resolved(format('advisory.%s(''ns'', %s)', function, list)) AS resolved,
         coalesce(substring(resolved FROM '\(text,(\w+(\[\])?)'), resolved) AS taken_as
    GROUP BY i, list, taken_as) AS l
    GROUP BY taken_as, functions ORDER BY taken_as, functions;
--> 42883|lock_all try_lock_all try_lock_any try_xact_lock_all try_xact_lock_any unlock_all xact_lock_all|ARRAY[1.5]
--> 42883|lock_all try_lock_all try_lock_any try_xact_lock_all try_xact_lock_any xact_lock_all|42
--> bigint|unlock_all|42
--> bigint[]|lock_all try_lock_all try_lock_any try_xact_lock_all try_xact_lock_any unlock_all xact_lock_all|ARRAY[1, 2]  ARRAY[1, 2]::smallint[]  ARRAY[1, 4200000000]  ARRAY[1, 2]::bigint[]  '{1,2}'::bigint[]  (SELECT array_agg(42))
--> text|lock_all try_lock_all try_lock_any try_xact_lock_all try_xact_lock_any unlock_all xact_lock_all|'{a,b}'  '{1,2}'  '{}'  NULL  '{a,b}'::text
--> text[]|lock_all try_lock_all try_lock_any try_xact_lock_all try_xact_lock_any unlock_all xact_lock_all|ARRAY['a', 'b']  ARRAY['a', 'b']::varchar[]  ARRAY['a', 'b']::name[]  ARRAY['a']::char(9)[]  '{a,b}'::text[]  string_to_array('a,b', ',')
--> uuid[]|lock_all try_lock_all try_lock_any try_xact_lock_all try_xact_lock_any unlock_all xact_lock_all|ARRAY[gen_random_uuid()]  '{}'::uuid[]
SELECT pg_temp.parameters(format('advisory.%s($1, $2)', function)) AS two,
       pg_temp.parameters(format('advisory.%s($1, $2, $3)', function)) AS three,
       string_agg(function, ' ' ORDER BY function) AS functions
    FROM unnest(ARRAY['lock_all', 'try_lock_all', 'xact_lock_all', 'try_xact_lock_all',
        'try_lock_any', 'try_xact_lock_any']) AS function
    GROUP BY 1, 2 ORDER BY 2;
--> {text,text}|{text,text,integer}|try_lock_any try_xact_lock_any
--> {text,text}|{text,text,interval}|lock_all try_lock_all try_xact_lock_all xact_lock_all

---- And what runs then is the lock that was meant
PREPARE take AS SELECT advisory.lock($1, $2, $3);
EXECUTE take('ns', '42', '1s'); --> t
SELECT advisory.holds('ns', 42), advisory.unlock('ns', 42); --> t|t
PREPARE take_all AS SELECT advisory.lock_all($1, $2);
EXECUTE take_all('ns', '{1,"b c"}'); --> t
SELECT advisory.unlock('ns', 1), advisory.unlock('ns', 'b c'); --> t|t
PREPARE take_any AS SELECT * FROM advisory.try_lock_any($1, $2, $3);
EXECUTE take_any('ns', '{b,a,c}', 2);
--> b
--> a
SELECT advisory.unlock_all('ns', ARRAY['a', 'b', 'c']); --> 2
PREPARE take_slots AS SELECT * FROM advisory.try_acquire_any($1, $2, $3, $4);
EXECUTE take_slots('ns', '{b,a,c}', 3, 2);
--> b|1
--> a|1
SELECT advisory.release('ns', 'a'), advisory.release('ns', 'b'); --> t|t
PREPARE by_key AS SELECT advisory.lock_key($1, $2, $3);
EXECUTE by_key(42, NULL, 'label'); --> t
SELECT advisory.unlock_key(42); --> t
-- Procedures have no views to depend on: by what they lock.
CALL advisory.await_lock('ns', 'name');
CALL advisory.await_lock('ns', 42);
CALL advisory.await_lock('ns', 43::smallint, '1s');
CALL advisory.await_lock('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11');
CALL advisory.await_lock('ns', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12'::uuid, timeout => NULL);
CALL advisory.await_lock_shared('ns', 'name'::varchar);
CALL advisory.await_lock_shared(id => 42, namespace => 'ns');
CALL advisory.await_lock_key(42, '1s', 'label');
CALL advisory.await_lock_shared_key(42, label => 'label');
SELECT n, mode FROM unnest(ARRAY['42', '43', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', 'name']) AS n
    JOIN advisory.locks ON key = advisory.key('ns', n) AND pid = pg_backend_pid()
        ORDER BY n COLLATE "C", mode;
--> 42|exclusive
--> 42|shared
--> 43|exclusive
--> A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11|exclusive
--> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12|exclusive
--> name|exclusive
--> name|shared
SELECT count(*) AS all FROM advisory.locks WHERE pid = pg_backend_pid(); --> 9
SELECT pg_advisory_unlock_all(), advisory.holds_key(42); --> |f
DEALLOCATE ALL;

SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0
