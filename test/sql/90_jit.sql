-- The server's JIT compiles what it can of every call and view, and copies into it what it has as
-- bitcode. (It once ended the server over this library's.) Every declaration is called, as the
-- catalog has it. No statement here may fail: the tests of the packages run this file with psql.
\pset format unaligned \pset tuples_only on
SET client_min_messages = error;
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;

---- A call is compiled, if this server can do that at all
CREATE FUNCTION pg_temp.compiled(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        IF line LIKE '%Inlining true, Optimization true%' THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT pg_temp.compiled($$ SELECT advisory.try_xact_lock('jit', 'a') $$) = pg_jit_available(); --> t

---- Every function and procedure

CREATE TEMP TABLE argument (name text, type regtype, value text);
INSERT INTO argument VALUES
    ('namespace', 'text', 'jit'), ('name', 'text', 'a'), ('id', 'bigint', '7'),
    ('id', 'uuid', '00000000-0000-0000-0000-000000000001'), ('names', 'text', '{a,b}'),
    ('names', 'text[]', '{a,b}'), ('ids', 'bigint[]', '{7,8}'),
    ('ids', 'uuid[]',
     '{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002}'),
    ('key', 'bigint', '42'), ('slots', 'integer', '100'), ('slots', 'integer[]', '{100,99}'),
    ('slot', 'integer', '1'),
    ('wanted', 'integer', '2'), ('ttl', 'interval', '1 h'), ('token', 'bigint', '1'),
    ('every', 'interval', '1 day'), ('apart', 'interval', '1 day'),
    ('window_start', 'timestamptz', '2026-01-01Z'), ('command', 'text', 'SELECT 1'),
    ('pid', 'integer', '0'), ('lock', 'text', 'none'), ('n', 'integer', '10');

-- With the arguments that have no default. In a query they come from subqueries, so that no call is
-- replaced by its result when the query is planned. A lease has a token of its own.
CREATE TEMP VIEW call AS
    SELECT proname AS name, format(
        CASE prokind WHEN 'p' THEN 'CALL advisory.%I(%s)' ELSE 'SELECT advisory.%I(%s)' END,
        proname, string_agg(format(
            CASE WHEN prokind = 'p' THEN '%I => %L::%s'
                 WHEN a.name = 'token' AND proname ~ '_lease$' THEN
                     '%I => (SELECT token FROM advisory.leases WHERE name = %4$L)'
                 ELSE '%I => (SELECT %L::%s)' END,
            a.name, given.value, a.type, named.value), ', ' ORDER BY i)
        FILTER (WHERE i IS NOT NULL)) AS sql
    FROM pg_proc
        LEFT JOIN LATERAL unnest(proargnames, proargtypes::oid[]::regtype[])
            WITH ORDINALITY AS a(name, type, i) ON i <= pronargs - pronargdefaults
        LEFT JOIN argument AS given ON (given.name, given.type) = (a.name, a.type)
        LEFT JOIN argument AS named
            ON (named.name, named.type) = (proargnames[2], proargtypes[1]::regtype)
    WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_'
        AND prorettype <> 'trigger'::regtype
    GROUP BY pg_proc.oid, proname, prokind;

-- New arguments need a value above.
SELECT DISTINCT a.name, a.type::regtype
    FROM pg_proc, unnest(proargnames, proargtypes::oid[]) WITH ORDINALITY AS a(name, type, i)
    WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_'
        AND i <= pronargs - pronargdefaults
EXCEPT SELECT name, type FROM argument;

---- All of them, and every view and table, with what is held

-- A lease from begin to end; then what takes, and asks; then what shows; last what releases.
CREATE TEMP VIEW statement AS
    SELECT sql, coalesce(array_position(ARRAY['lease', 'check_lease', 'renew_lease', 'end_lease',
               'await_lease', 'break_lease'], name::text),
               CASE WHEN name ~ '^(release|unlock)' THEN 9 ELSE 7 END) AS step
    FROM call
    UNION ALL
    SELECT format('SELECT count(v::text) FROM advisory.%I AS v', relname), 8 FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relname !~ '^_' AND relkind IN ('r', 'v');
SELECT count(DISTINCT step) FROM statement; --> 9
SET advisory_ext.warn_no_transaction = off;
\o /dev/null
SELECT sql FROM statement ORDER BY step, sql \set ECHO none \\ \gexec \set ECHO all
\o

---- The trigger
CREATE TEMP TABLE guarded (token bigint);
CREATE TRIGGER fence BEFORE INSERT ON guarded
    FOR EACH ROW EXECUTE FUNCTION advisory.fenced('token');
INSERT INTO guarded VALUES (1) RETURNING token; --> 1

SELECT count(*) FILTER (WHERE slot IS NULL) = 3, count(slot) = 9 FROM advisory.leases
WHERE namespace = 'jit' AND advisory.break_lease(namespace, name, token); --> t|t
DELETE FROM advisory._claims USING argument WHERE key = advisory.key('jit', value);
DELETE FROM advisory.fences USING argument WHERE key = advisory.key('jit', value);
SELECT pg_advisory_unlock_all(); -->
SELECT count(*) FROM advisory.locks WHERE namespace = 'jit'; --> 0
