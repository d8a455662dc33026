-- Editions: both.
-- key(): a permanent public format.  11_encodings tests it in other encodings.
\pset format unaligned \pset tuples_only on

---- The published vectors
SELECT advisory.key('invoice-generation') = -8670053900832782221 AS name_alone,
       advisory.key('billing', 'invoice:42') = 1572001551135567388 AS text,
       advisory.key('user', 42) = 8907056734076048704 AS bigint,
       advisory.key('order', '00000000-0000-0000-0000-000000000001'::uuid) = -3943673449234501271
       AS uuid; --> t|t|t|t

---- The definition, in SQL
CREATE FUNCTION pg_temp.defined_key(bytes bytea) RETURNS bigint LANGUAGE sql AS
    $$ SELECT ('x' || encode(substr(sha256(bytes), 1, 8), 'hex'))::bit(64)::bigint $$;
SELECT count(*) AS compared,
       count(*) FILTER (WHERE advisory.key(name) = pg_temp.defined_key(name::bytea)) AS same_alone,
       count(*) FILTER (WHERE advisory.key('ns' || i, name)
                              = pg_temp.defined_key(('ns' || i)::bytea || '\x00' || name::bytea))
                              AS same
    FROM (SELECT i, repeat(md5(i::text), i % 7) || i AS name FROM generate_series(1, 1000) i) names;
--> 1000|1000|1000
-- Longer than SHA-256's block, and long enough to be toasted.
SELECT length, advisory.key(name) = pg_temp.defined_key(name::bytea) AS same_alone,
       advisory.key('ns', name) = pg_temp.defined_key('ns'::bytea || '\x00' || name::bytea) AS same
    FROM unnest(ARRAY[1, 55, 56, 63, 64, 65, 1000, 1000000]) AS length, repeat('x', length) AS name;
--> 1|t|t
--> 55|t|t
--> 56|t|t
--> 63|t|t
--> 64|t|t
--> 65|t|t
--> 1000|t|t
--> 1000000|t|t

---- Namespace and name stand apart: nothing can be shifted across
SELECT advisory.key('a', 'bc') = advisory.key('ab', 'c') AS shifted,
       advisory.key('a', 'b') = advisory.key('ab') AS joined,
       advisory.key('a', 'b') = advisory.key('b', 'a') AS swapped,
       advisory.key('a', 'b') = advisory.key('a', 'b ') AS trimmed; --> f|f|f|f

---- An id means id::text, and the letters of a text count
SELECT id, advisory.key('ns', id) = advisory.key('ns', id::text) AS same
    FROM unnest(ARRAY[0, 1, -1, 9223372036854775807, -9223372036854775808]) AS id;
--> 0|t
--> 1|t
--> -1|t
--> 9223372036854775807|t
--> -9223372036854775808|t
SELECT id, advisory.key('ns', id) = advisory.key('ns', id::text) AS same,
       advisory.key('ns', id) = advisory.key('ns', upper(id::text)) AS same_in_upper_case
    FROM unnest(ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
        '{00000000000000000000000000000001}']::uuid[]) AS id;
--> a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|t|f
--> 00000000-0000-0000-0000-000000000001|t|t
SELECT advisory.key('ns', 42) = advisory.key('ns', '042') AS leading_zero; --> f

---- The same lock as pg_advisory_lock(key)
SELECT advisory.lock('billing', 'invoice:42'); --> t
SELECT pg_advisory_unlock(advisory.key('billing', 'invoice:42')); --> t
SELECT pg_advisory_lock(1572001551135567388); -->
SELECT advisory.holds('billing', 'invoice:42'), advisory.unlock('billing', 'invoice:42'); --> t|t

---- Immutable: in indexes, generated columns and parallel plans
CREATE TEMP TABLE jobs (name text, key bigint GENERATED ALWAYS
    AS (advisory.key('jobs', name)) STORED);
CREATE INDEX ON jobs (advisory.key(name));
INSERT INTO jobs VALUES ('nightly');
SELECT key = advisory.key('jobs', 'nightly') AS generated FROM jobs; --> t

---- Wrong input: never a silent nothing
SELECT advisory.key(NULL); --> ERROR:  name must not be null
SELECT advisory.key(''); --> ERROR:  name must not be empty
SELECT advisory.key(NULL, 'name'); --> ERROR:  namespace must not be null
SELECT advisory.key('', 'name'); --> ERROR:  namespace must not be empty
SELECT advisory.key('ns', NULL::text); --> ERROR:  name must not be null
SELECT advisory.key('ns', ''); --> ERROR:  name must not be empty
SELECT advisory.key('ns', NULL::bigint); --> ERROR:  id must not be null
SELECT advisory.key('ns', NULL::uuid); --> ERROR:  id must not be null
SELECT advisory.key(NULL, 42); --> ERROR:  namespace must not be null
SELECT advisory.key('', '00000000-0000-0000-0000-000000000001'::uuid);
--> ERROR:  namespace must not be empty
\set VERBOSITY sqlstate
SELECT advisory.key(NULL); --> ERROR:  22004
SELECT advisory.key(''); --> ERROR:  22023
\set VERBOSITY default
-- An error in between leaves the digest as new.
SELECT advisory.key('billing', 'invoice:42'); --> 1572001551135567388
SELECT count(*) AS left_locked FROM pg_locks WHERE locktype = 'advisory'; --> 0
