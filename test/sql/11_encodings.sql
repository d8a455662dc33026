-- One name has one key in every database, whatever its encoding, and is shown readably there.
\pset format unaligned \pset tuples_only on
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
--> t|-3219050744914661377|-3601697160706137082|6132683816227330997
SELECT advisory.unlock('größe', 'naïve ☃');
--> WARNING:  you don't own a lock of type ExclusiveLock on "größe/naïve ☃"
--> f
-- Composed and decomposed are different bytes, and so different names.
SELECT advisory.key('ü') = advisory.key(U&'u\0308') AS normalised; --> f
-- A name too long to be shown is cut between characters, never within one.
SELECT advisory.unlock('ns', 'x' || repeat('ü', 200));
--> WARNING:  you don't own a lock of type ExclusiveLock on "ns/xüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü..."
--> f

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
--> -3219050744914661377|-3601697160706137082|6132683816227330997
SELECT advisory.key('invoice-generation') = -8670053900832782221 AS name_alone,
       advisory.key('billing', 'invoice:42') = 1572001551135567388 AS text,
       advisory.key('user', 42) = 8907056734076048704 AS bigint,
       advisory.key('order', '00000000-0000-0000-0000-000000000001'::uuid) = -3943673449234501271
       AS uuid; --> t|t|t|t
SELECT advisory.lock('größe', 'Fuß'); --> t
SELECT namespace, name FROM advisory.locks WHERE pid = pg_backend_pid(); --> größe|Fuß
SELECT advisory.unlock_all('größe'); --> 1
SELECT advisory.unlock('größe', 'Fuß');
--> WARNING:  you don't own a lock of type ExclusiveLock on "größe/Fuß"
--> f
SELECT advisory.lock_all('größe', ARRAY['ä', 'ö']), advisory.unlock_all('größe', ARRAY['ä', 'ö']);
--> t|2

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
--> t|-3219050744914661377|-3601697160706137082|6132683816227330997
SELECT advisory.lock('größe', 'naïve ☃'); --> t
SELECT namespace, name FROM advisory.locks WHERE pid = pg_backend_pid(); --> größe|naïve ☃
SELECT advisory.unlock('größe', 'naïve ☃'); --> t
-- Bytes that are no UTF-8: alone, as namespace, as name, in a list; a cut and an overlong
-- character.
\set VERBOSITY sqlstate
SELECT advisory.key(E'\xf6'); --> ERROR:  22021
SELECT advisory.key(E'\xf6', 'name'); --> ERROR:  22021
SELECT advisory.key('ns', E'gr\xf6\xdfe'); --> ERROR:  22021
SELECT advisory.key('ns', E'cut \xe2\x98'); --> ERROR:  22021
SELECT advisory.key('ns', E'overlong \xc0\xaf'); --> ERROR:  22021
SELECT advisory.try_lock('ns', E'\xff'); --> ERROR:  22021
SELECT advisory.unlock(E'\xff', 'name'); --> ERROR:  22021
SELECT advisory.unlock_all('ns', E'\xff'); --> ERROR:  22021
SELECT advisory.lock_all('ns', ARRAY['good', E'bad \xff']); --> ERROR:  22021
SELECT advisory.try_lock_any('ns', ARRAY['good', E'bad \xff']); --> ERROR:  22021
CALL advisory.await_lock('ns', E'\xff'); --> ERROR:  22021
\set VERBOSITY default
-- No call has locked anything.
SELECT count(*) AS left_locked FROM advisory.locks WHERE database = current_database(); --> 0

\c :regression
DROP DATABASE regress_advisory_utf8;
DROP DATABASE regress_advisory_latin1;
DROP DATABASE regress_advisory_ascii;
