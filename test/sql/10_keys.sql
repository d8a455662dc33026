-- Editions: both.
-- key(): a permanent public format.  11_encodings tests it in other encodings.

---- The published vectors

SELECT advisory.key('invoice-generation') = -8670053900832782221 AS name_alone,
       advisory.key('billing', 'invoice:42') = 1572001551135567388 AS text,
       advisory.key('user', 42) = 8907056734076048704 AS bigint,
       advisory.key('order', '00000000-0000-0000-0000-000000000001'::uuid) = -3943673449234501271 AS uuid;

---- The definition, in SQL

CREATE FUNCTION pg_temp.defined_key(bytes bytea) RETURNS bigint LANGUAGE sql AS
    $$ SELECT ('x' || encode(substr(sha256(bytes), 1, 8), 'hex'))::bit(64)::bigint $$;
SELECT count(*) AS compared,
       count(*) FILTER (WHERE advisory.key(name) = pg_temp.defined_key(name::bytea)) AS same_alone,
       count(*) FILTER (WHERE advisory.key('ns' || i, name)
                              = pg_temp.defined_key(('ns' || i)::bytea || '\x00' || name::bytea)) AS same
    FROM (SELECT i, repeat(md5(i::text), i % 7) || i AS name FROM generate_series(1, 1000) i) names;
-- Longer than SHA-256's block, and long enough to be toasted.
SELECT length, advisory.key(name) = pg_temp.defined_key(name::bytea) AS same_alone,
       advisory.key('ns', name) = pg_temp.defined_key('ns'::bytea || '\x00' || name::bytea) AS same
    FROM unnest(ARRAY[1, 55, 56, 63, 64, 65, 1000, 1000000]) AS length, repeat('x', length) AS name;

---- Namespace and name stand apart: nothing can be shifted across

SELECT advisory.key('a', 'bc') = advisory.key('ab', 'c') AS shifted,
       advisory.key('a', 'b') = advisory.key('ab') AS joined,
       advisory.key('a', 'b') = advisory.key('b', 'a') AS swapped,
       advisory.key('a', 'b') = advisory.key('a', 'b ') AS trimmed;

---- An id means id::text, and the letters of a text count

SELECT id, advisory.key('ns', id) = advisory.key('ns', id::text) AS same
    FROM unnest(ARRAY[0, 1, -1, 9223372036854775807, -9223372036854775808]) AS id;
SELECT id, advisory.key('ns', id) = advisory.key('ns', id::text) AS same,
       advisory.key('ns', id) = advisory.key('ns', upper(id::text)) AS same_in_upper_case
    FROM unnest(ARRAY['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{00000000000000000000000000000001}']::uuid[]) AS id;
SELECT advisory.key('ns', 42) = advisory.key('ns', '042') AS leading_zero;

---- The same lock as pg_advisory_lock(key)

SELECT advisory.lock('billing', 'invoice:42');
SELECT pg_advisory_unlock(advisory.key('billing', 'invoice:42'));
SELECT pg_advisory_lock(1572001551135567388);
SELECT advisory.holds('billing', 'invoice:42'), advisory.unlock('billing', 'invoice:42');

---- Immutable: in indexes, generated columns and parallel plans

CREATE TEMP TABLE jobs (name text, key bigint GENERATED ALWAYS AS (advisory.key('jobs', name)) STORED);
CREATE INDEX ON jobs (advisory.key(name));
INSERT INTO jobs VALUES ('nightly');
SELECT key = advisory.key('jobs', 'nightly') AS generated FROM jobs;

---- Wrong input: never a silent nothing

SELECT advisory.key(NULL);
SELECT advisory.key('');
SELECT advisory.key(NULL, 'name');
SELECT advisory.key('', 'name');
SELECT advisory.key('ns', NULL::text);
SELECT advisory.key('ns', '');
SELECT advisory.key('ns', NULL::bigint);
SELECT advisory.key('ns', NULL::uuid);
SELECT advisory.key(NULL, 42);
SELECT advisory.key('', '00000000-0000-0000-0000-000000000001'::uuid);
\set VERBOSITY sqlstate
SELECT advisory.key(NULL);
SELECT advisory.key('');
\set VERBOSITY default
-- An error in between leaves the digest as new.
SELECT advisory.key('billing', 'invoice:42');
SELECT count(*) AS left_locked FROM pg_locks WHERE locktype = 'advisory';
