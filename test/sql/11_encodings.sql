-- One name has one key in every database, whatever its encoding, and is shown readably there.
SELECT current_database() AS regression \gset

---- UTF8

CREATE DATABASE regress_advisory_utf8 TEMPLATE template0
    ENCODING 'UTF8' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_advisory_utf8
SET client_encoding = 'UTF8';
CREATE EXTENSION advisory_ext;
SELECT advisory.key('größe', 'naïve ☃') = 733500587011654506 AS vector,
       advisory.key('größe') AS alone,
       advisory.key('größe', 'Fuß') AS both,
       advisory.key('ns', 'plain') AS plain;
SELECT advisory.unlock('größe', 'naïve ☃');
-- Composed and decomposed are different bytes, and so different names.
SELECT advisory.key('ü') = advisory.key(U&'u\0308') AS normalised;
-- A name too long to be shown is cut between characters, never within one.
SELECT advisory.unlock('ns', 'x' || repeat('ü', 200));

---- LATIN1: the same bytes of UTF-8 go into the key

\c :regression
CREATE DATABASE regress_advisory_latin1 TEMPLATE template0
    ENCODING 'LATIN1' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_advisory_latin1
SET client_encoding = 'UTF8';
CREATE EXTENSION advisory_ext;
SELECT advisory.key('größe') AS alone,
       advisory.key('größe', 'Fuß') AS both,
       advisory.key('ns', 'plain') AS plain;
SELECT advisory.key('invoice-generation') = -8670053900832782221 AS name_alone,
       advisory.key('billing', 'invoice:42') = 1572001551135567388 AS text,
       advisory.key('user', 42) = 8907056734076048704 AS bigint,
       advisory.key('order', '00000000-0000-0000-0000-000000000001'::uuid) = -3943673449234501271 AS uuid;
SELECT advisory.lock('größe', 'Fuß');
SELECT namespace, name FROM advisory.locks WHERE pid = pg_backend_pid();
SELECT advisory.unlock_all('größe');
SELECT advisory.unlock('größe', 'Fuß');
SELECT advisory.lock_all('größe', ARRAY['ä', 'ö']), advisory.unlock_all('größe', ARRAY['ä', 'ö']);

---- SQL_ASCII: the bytes as they are, if they are UTF-8

\c :regression
CREATE DATABASE regress_advisory_ascii TEMPLATE template0
    ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_advisory_ascii
SET client_encoding = 'SQL_ASCII';
CREATE EXTENSION advisory_ext;
SELECT advisory.key('größe', 'naïve ☃') = 733500587011654506 AS vector,
       advisory.key('größe') AS alone,
       advisory.key('größe', 'Fuß') AS both,
       advisory.key('ns', 'plain') AS plain;
SELECT advisory.lock('größe', 'naïve ☃');
SELECT namespace, name FROM advisory.locks WHERE pid = pg_backend_pid();
SELECT advisory.unlock('größe', 'naïve ☃');
-- Bytes that are no UTF-8: alone, as namespace, as name, in a list; a cut and an overlong character.
\set VERBOSITY sqlstate
SELECT advisory.key(E'\xf6');
SELECT advisory.key(E'\xf6', 'name');
SELECT advisory.key('ns', E'gr\xf6\xdfe');
SELECT advisory.key('ns', E'cut \xe2\x98');
SELECT advisory.key('ns', E'overlong \xc0\xaf');
SELECT advisory.try_lock('ns', E'\xff');
SELECT advisory.unlock(E'\xff', 'name');
SELECT advisory.unlock_all('ns', E'\xff');
SELECT advisory.lock_all('ns', ARRAY['good', E'bad \xff']);
SELECT advisory.try_lock_any('ns', ARRAY['good', E'bad \xff']);
CALL advisory.await_lock('ns', E'\xff');
\set VERBOSITY default
-- No call has locked anything.
SELECT count(*) AS left_locked FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

\c :regression
DROP DATABASE regress_advisory_utf8;
DROP DATABASE regress_advisory_latin1;
DROP DATABASE regress_advisory_ascii;
