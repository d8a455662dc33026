-- advisory_ext, portable edition: named locks, semaphores, jobs and views for servers where no library can be installed.
--
--     psql -d mydb -f advisory.sql
--
-- The role that runs it owns the objects.  It needs no privilege but CREATE on the database, and no setting.  To remove all: DROP SCHEMA
-- advisory CASCADE.  To upgrade, run a newer file: rows of tables are kept.  doc/portable.md says what differs from the extension.
--
-- Nobody's search_path may replace an operator.  So each function in PL/pgSQL gets a search_path of its own, at the end of this file.
-- Procedures that COMMIT cannot have one, and SQL functions that the planner shall inline must not: these have no operators, and call
-- functions by their full names.  Other SQL functions without one are called by functions with one only.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'this database has the extension advisory_ext',
            HINT = 'It has all that the portable edition has. Never use both editions in one database.';
    ELSIF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'advisory' AND nspowner <> current_user::regrole) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'schema "advisory" belongs to another role',
            HINT = 'Run this file as that role.';
    ELSIF to_regnamespace('advisory') IS NULL THEN
        CREATE SCHEMA advisory;
    ELSIF to_regprocedure('advisory.edition()') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'schema "advisory" exists, and is not that of the portable edition';
    END IF;
END $$;
COMMENT ON SCHEMA advisory IS 'advisory locks by name: portable edition of advisory_ext';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

CREATE OR REPLACE FUNCTION advisory.edition() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 'portable' $$;
COMMENT ON FUNCTION advisory.edition() IS 'portable, or extension';
CREATE OR REPLACE FUNCTION advisory.version() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT '1.1' $$;
COMMENT ON FUNCTION advisory.version() IS 'version of the functions of this schema';

---- Checks

-- The error, unless ok.
CREATE OR REPLACE FUNCTION advisory._require(ok boolean, state text, message text, detail text DEFAULT NULL, hint text DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF ok IS NOT FALSE THEN RETURN;
    ELSIF coalesce(detail, hint) IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF hint IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    ELSIF detail IS NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSE RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._check(value text, what text) RETURNS void LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF value <> '' THEN RETURN; END IF;
    PERFORM advisory._require(value IS NOT NULL, '22004', what || ' must not be null'), advisory._require(false, '22023', what || ' must not be empty');
END $$;

-- The list, if it has no nulls and no empty names.
CREATE OR REPLACE FUNCTION advisory._check_list(namespace text, names text[], what text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace'), advisory._require(names IS NOT NULL, '22004', 'list of names must not be null');
    PERFORM advisory._check(element, what) FROM unnest(names) AS element;
    RETURN names;
END $$;

-- '?' for control characters, line separators, and what changes the direction of text: a name cannot forge a line.
CREATE OR REPLACE FUNCTION advisory._printable(line text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding() WHEN 'UTF8'
        THEN '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]' ELSE '[\x01-\x1f\x7f]' END, '?', 'g')
$$;

-- What a lock is called in messages.
CREATE OR REPLACE FUNCTION advisory._display(namespace text, name text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT advisory._printable(string_agg(left(part, 256) || CASE WHEN length(part) > 256 THEN '...' ELSE '' END, '/'))
    FROM unnest(ARRAY[namespace, name]) AS part
$$;

---- Keys

-- The same bytes in every database.  Only in SQL_ASCII can a text be something else than text.
CREATE OR REPLACE FUNCTION advisory._utf8(value text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT convert_to(CASE getdatabaseencoding() WHEN 'SQL_ASCII' THEN convert_from(convert_to(value, 'UTF8'), 'UTF8') ELSE value END, 'UTF8')
$$;
CREATE OR REPLACE FUNCTION advisory._hash(value bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT ('x' || encode(substr(sha256(value), 1, 8), 'hex'))::bit(64)::bigint $$;

CREATE OR REPLACE FUNCTION advisory.key(name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
    $$ BEGIN PERFORM advisory._check(name, 'name'); RETURN advisory._hash(advisory._utf8(name)); END $$;
COMMENT ON FUNCTION advisory.key(text) IS 'key of a name without a namespace';
CREATE OR REPLACE FUNCTION advisory.key(namespace text, name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace'), advisory._check(name, 'name');
    RETURN advisory._hash(advisory._utf8(namespace) || '\x00' || advisory._utf8(name));
END $$;
COMMENT ON FUNCTION advisory.key(text, text) IS 'key of a namespace and a name';

-- The slots of a semaphore have 16,384 keys in a row.  The first one, slot 0, is the lock of the queue.
CREATE OR REPLACE FUNCTION advisory._slot_key(namespace text, name text, slot integer) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace'), advisory._check(name, 'name');
    RETURN advisory._hash(advisory._utf8(namespace) || '\x00' || advisory._utf8(name) || '\x00') & -16384 | slot;
END $$;

---- Taking a lock

-- In milliseconds, rounded up; NULL for ever.  A month has 30 days, as in comparisons.
CREATE OR REPLACE FUNCTION advisory._milliseconds(timeout interval) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF timeout IS NULL OR timeout = '0' THEN RETURN extract(epoch FROM timeout); END IF;
    PERFORM advisory._require(timeout > '0', '22023', 'timeout must not be negative'),
            advisory._require(timeout <= '2147483647 ms', '22008', 'timeout is out of range',
                              'A timeout can be at most 2147483647 milliseconds.', 'To wait without a limit, pass NULL.');
    RETURN ceil(extract(epoch FROM justify_interval(timeout))::numeric * 1000);
END $$;

-- The setting lock_timeout in milliseconds; NULL if it is off.
CREATE OR REPLACE FUNCTION advisory._lock_timeout() RETURNS integer LANGUAGE sql STABLE AS
    $$ SELECT nullif(advisory._milliseconds(current_setting('lock_timeout')::interval), 0) $$;

-- When a wait that begins now ends at the latest.
CREATE OR REPLACE FUNCTION advisory._deadline(milliseconds integer) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(clock_timestamp() + least(milliseconds, CASE milliseconds WHEN 0 THEN 0 ELSE advisory._lock_timeout() END) * interval '1 ms', 'infinity');
END $$;

-- All advisory locks and waiters of this database whose key is a bigint.
CREATE OR REPLACE VIEW advisory._keys AS
    SELECT (classid::bigint << 32) | objid::bigint AS key, pid, mode, granted
    FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- Is it held, by this session or by any, in that mode or in any?
CREATE OR REPLACE FUNCTION advisory._is_held(key bigint, is_by_me boolean, is_shared boolean DEFAULT NULL) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(key::text, 'key');
    RETURN EXISTS (SELECT FROM advisory._keys AS k WHERE k.key = _is_held.key AND granted AND (NOT is_by_me OR pid = pg_backend_pid())
                   AND (mode = 'ShareLock') = coalesce(is_shared, mode = 'ShareLock'));
END $$;

-- The built-in functions, chosen by mode and scope.
CREATE OR REPLACE FUNCTION advisory._try_once(is_shared boolean, is_xact boolean, key bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE WHEN is_xact AND is_shared THEN pg_try_advisory_xact_lock_shared(key) WHEN is_xact THEN pg_try_advisory_xact_lock(key)
                WHEN is_shared THEN pg_try_advisory_lock_shared(key) ELSE pg_try_advisory_lock(key) END
$$;
CREATE OR REPLACE FUNCTION advisory._wait(is_shared boolean, is_xact boolean, key bigint) RETURNS void LANGUAGE sql AS $$
    SELECT CASE WHEN is_xact AND is_shared THEN pg_advisory_xact_lock_shared(key) WHEN is_xact THEN pg_advisory_xact_lock(key)
                WHEN is_shared THEN pg_advisory_lock_shared(key) ELSE pg_advisory_lock(key) END
$$;
-- The built-in function's own warning does not bear the name.
CREATE OR REPLACE FUNCTION advisory._unlock_quietly(is_shared boolean, key bigint) RETURNS boolean LANGUAGE sql
    SET client_min_messages = error AS $$ SELECT CASE WHEN is_shared THEN pg_advisory_unlock_shared(key) ELSE pg_advisory_unlock(key) END $$;

-- Take the lock.  Returns whether it was free within so many milliseconds, and within lock_timeout.  Without a wait, and in a wait without
-- a limit, there is no subtransaction.
CREATE OR REPLACE FUNCTION advisory._take(is_shared boolean, is_xact boolean, key bigint, milliseconds integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    setting text := current_setting('lock_timeout');
BEGIN
    IF advisory._try_once(is_shared, is_xact, key) THEN RETURN true; END IF;
    IF milliseconds = 0 THEN RETURN false; END IF;
    milliseconds := least(milliseconds, advisory._lock_timeout());
    IF milliseconds IS NULL THEN
        PERFORM advisory._wait(is_shared, is_xact, key);
        RETURN true;
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', milliseconds::text, true);
        PERFORM advisory._wait(is_shared, is_xact, key);
        PERFORM set_config('lock_timeout', setting, true);
        RETURN true;
    EXCEPTION WHEN lock_not_available OR query_canceled THEN
        -- The lock can be granted at the very moment when the wait ends, and an error does not release it.  It was not held before: then
        -- nothing had to be waited for.
        IF NOT is_xact AND advisory._is_held(key, true, is_shared) THEN PERFORM advisory._unlock_quietly(is_shared, key); END IF;
        IF SQLSTATE = '57014' THEN RAISE; END IF;
        RETURN false;
    END;
END $$;

-- Who holds or awaits one of these keys, a line each.
CREATE OR REPLACE FUNCTION advisory._holders(first_key bigint, slots integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(string_agg(line, E'\n' ORDER BY place) FILTER (WHERE place <= 5)
                    || CASE WHEN max(place) > 5 THEN format(E'\n%s more hold or wait for it.', max(place) - 5) ELSE '' END,
                    (SELECT 'This session has ' || nullif(count(*), 0) || ' of the slots itself.'
                     FROM advisory._keys WHERE key BETWEEN first_key + 1 AND first_key + slots AND granted), 'Nobody holds it any more.')
    FROM (SELECT row_number() OVER (ORDER BY k.granted DESC, k.key, k.pid) AS place, advisory._printable(concat(
                     CASE WHEN k.pid IS NULL THEN 'A prepared transaction' ELSE format('Process %s of role "%s"', k.pid, a.usename) END,
                     ', application "' || nullif(a.application_name, '') || '",',
                     CASE WHEN slots IS NULL THEN format(' %s it in %s mode', CASE WHEN k.granted THEN 'holds' ELSE 'waits for' END,
                                                         CASE k.mode WHEN 'ShareLock' THEN 'shared' ELSE 'exclusive' END)
                          WHEN k.granted AND k.key > first_key THEN ' has slot ' || (k.key - first_key) ELSE ' waits for a slot' END,
                     CASE WHEN k.granted THEN '; it is ' || CASE a.wait_event_type WHEN 'Lock' THEN 'waiting for a lock' ELSE a.state END
                                              || ' since ' || a.state_change END, '.')) AS line
          FROM advisory._keys AS k LEFT JOIN pg_stat_activity AS a ON a.pid = k.pid
          WHERE k.key BETWEEN first_key AND first_key + coalesce(slots, 0) AND k.pid IS DISTINCT FROM pg_backend_pid()) AS other
$$;

-- Error 55P03.  For a semaphore, slots says how many, and key is that of slot 0.
CREATE OR REPLACE FUNCTION advisory._raise_not_available(namespace text, name text, key bigint, slots integer, timeout interval) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    most integer := coalesce(advisory._milliseconds(timeout), 2147483647);
    setting integer := CASE WHEN most > 0 THEN coalesce(advisory._lock_timeout(), 0) ELSE 0 END;
    is_setting boolean := setting BETWEEN 1 AND most;
BEGIN
    most := CASE WHEN is_setting THEN setting ELSE most END;
    RAISE EXCEPTION 'could not obtain % "%" %', CASE WHEN slots IS NULL THEN 'advisory lock' ELSE 'a slot of semaphore' END,
        advisory._display(namespace, coalesce(name, key::text)),
        CASE most WHEN 0 THEN 'without waiting'
             ELSE concat('within ', CASE WHEN is_setting THEN 'lock_timeout of ' END, CASE WHEN most % 1000 = 0 THEN most / 1000 || ' s' ELSE most || ' ms' END) END
        USING ERRCODE = 'lock_not_available', DETAIL = advisory._holders(key, slots),
            HINT = format('To see who %s: SELECT * FROM advisory.%s.', CASE WHEN slots IS NULL THEN 'holds it' ELSE 'has its slots' END,
                CASE WHEN namespace IS NULL THEN format('holders_key(%s)', key) ELSE format('holders(%L, %L)', left(namespace, 256), left(name, 256)) END),
            SCHEMA = coalesce(namespace, ''), CONSTRAINT = coalesce(name, key::text);
END $$;

-- What the public functions call.  For locks by key, namespace is null, and name is the label.
CREATE OR REPLACE FUNCTION advisory._lock(must boolean, is_shared boolean, is_xact boolean, namespace text, name text, key bigint, timeout interval)
    RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(key::text, 'key'), advisory._check(coalesce(namespace, name, 'no label'), 'label');
    IF advisory._take(is_shared, is_xact, key, advisory._milliseconds(timeout)) THEN RETURN true; END IF;
    IF must THEN PERFORM advisory._raise_not_available(namespace, name, key, NULL, timeout); END IF;
    RETURN false;
END $$;

---- Release

CREATE OR REPLACE FUNCTION advisory._unlock(is_shared boolean, namespace text, name text, key bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(key::text, 'key');
    IF advisory._unlock_quietly(is_shared, key) THEN RETURN true; END IF;
    RAISE WARNING 'you don''t own a lock of type % on "%"', CASE WHEN is_shared THEN 'ShareLock' ELSE 'ExclusiveLock' END,
        advisory._display(namespace, coalesce(name, key::text));
    RETURN false;
END $$;

-- Every session-level hold of each lock in the list.
CREATE OR REPLACE FUNCTION advisory._unlock_all(namespace text, names text[], is_list boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    keys bigint[] := ARRAY(SELECT advisory.key(namespace, element) FROM unnest(advisory._check_list(namespace, names, 'name')) AS element);
    released integer := 0;
    hold record;
BEGIN
    FOR hold IN SELECT key, mode = 'ShareLock' AS is_shared FROM advisory._keys WHERE pid = pg_backend_pid() AND granted AND key = ANY (keys) LOOP
        WHILE advisory._is_held(hold.key, true, hold.is_shared) AND advisory._unlock_quietly(hold.is_shared, hold.key) LOOP
            released := released + 1;
        END LOOP;
    END LOOP;
    -- In a finally block nobody would notice that an untyped list became one name.
    PERFORM advisory._require(is_list OR released > 0 OR names[1] NOT LIKE '{_%}' OR advisory._is_held(keys[1], true), '22023',
        'this session does not hold an advisory lock of that name, which looks like a list', NULL,
        'To release a list of locks, cast it: unlock_all(namespace, list::text[]).');
    RETURN released;
END $$;

---- Several locks at once

-- Take all of them, in the order of their keys, or none.
CREATE OR REPLACE FUNCTION advisory._take_all(must boolean, is_xact boolean, namespace text, names text[], timeout interval) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    most integer := advisory._milliseconds(timeout);
    deadline timestamptz := advisory._deadline(most);
    one record;
    taken bigint[] := '{}';
    busy text;
BEGIN
    names := advisory._check_list(namespace, names, 'name');
    FOR one IN SELECT DISTINCT ON (key) key, element
               FROM (SELECT advisory.key(namespace, element) AS key, element FROM unnest(names) AS element) AS wanted ORDER BY key LOOP
        IF isfinite(deadline) THEN most := greatest(ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000), 0); END IF;
        busy := one.element;
        EXIT WHEN NOT advisory._take(false, is_xact, one.key, most);
        taken := taken || one.key;
        busy := NULL;
    END LOOP;
    PERFORM advisory._require(busy IS NULL, '55P03', 'busy');
    RETURN true;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    -- The end of this block has released the transaction-level ones.
    PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key WHERE NOT is_xact;
    IF busy IS NULL OR SQLSTATE <> '55P03' THEN RAISE; END IF;
    IF must THEN PERFORM advisory._raise_not_available(namespace, busy, advisory.key(namespace, busy), NULL, timeout); END IF;
    RETURN false;
END $$;

---- Semaphores

CREATE OR REPLACE FUNCTION advisory._check_slot(slot integer, what text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM advisory._check(slot::text, what), advisory._require(slot BETWEEN 1 AND 16000, '22023', what || ' must be between 1 and 16000');
END $$;

-- A slot that nobody has, this session included; NULL if there is none.  base is the key of slot 0.
CREATE OR REPLACE FUNCTION advisory._take_slot(is_xact boolean, base bigint, slots integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    slot integer;
BEGIN
    FOR slot IN SELECT number FROM generate_series(1, slots) AS number
                EXCEPT SELECT (key - base)::integer FROM advisory._keys WHERE key BETWEEN base + 1 AND base + slots AND granted
                ORDER BY 1 LOOP
        EXIT WHEN advisory._try_once(false, is_xact, base + slot);
        slot := NULL;
    END LOOP;
    RETURN slot;
END $$;

-- A slot, or, if none is free in time, NULL or an error.
CREATE OR REPLACE FUNCTION advisory._acquire(must boolean, is_xact boolean, namespace text, name text, slots integer, timeout interval)
    RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    base bigint := advisory._slot_key(namespace, name, 0);
    most integer := advisory._milliseconds(timeout);
    deadline timestamptz := advisory._deadline(most);
    slot integer;
BEGIN
    PERFORM advisory._check_slot(slots, 'slots');
    -- Nobody overtakes those who wait.  The first of them holds the lock of the queue.
    IF NOT advisory._is_held(base, false) THEN slot := advisory._take_slot(is_xact, base, slots); END IF;
    IF slot IS NULL AND most IS DISTINCT FROM 0 THEN
        BEGIN
            IF advisory._take(false, true, base, most) THEN
                LOOP
                    slot := advisory._take_slot(false, base, slots);
                    EXIT WHEN slot IS NOT NULL OR clock_timestamp() >= deadline;
                    PERFORM pg_sleep(0.01);
                END LOOP;
            END IF;
            PERFORM advisory._require(false, '55P03', 'leave the queue');
        EXCEPTION WHEN query_canceled OR OTHERS THEN
            -- The end of this block releases the lock of the queue, whatever has happened.
            IF SQLSTATE <> '55P03' THEN
                PERFORM pg_advisory_unlock(base + slot) WHERE slot IS NOT NULL;
                RAISE;
            END IF;
        END;
        IF is_xact AND slot IS NOT NULL THEN PERFORM pg_advisory_xact_lock(base + slot), pg_advisory_unlock(base + slot); END IF;
    END IF;
    IF must AND slot IS NULL THEN PERFORM advisory._raise_not_available(namespace, name, base, slots, timeout); END IF;
    RETURN slot;
END $$;

-- Up to wanted of the list that are free: their locks, or with slots, a slot of each.
CREATE OR REPLACE FUNCTION advisory._try_any(is_xact boolean, namespace text, names text[], is_for_slots boolean, slots integer, wanted integer)
    RETURNS TABLE (name text, slot integer) LANGUAGE plpgsql AS $$
DECLARE
    taken bigint[] := '{}';
BEGIN
    names := advisory._check_list(namespace, names, 'name');
    IF is_for_slots THEN PERFORM advisory._check_slot(slots, 'slots'); END IF;
    PERFORM advisory._check(wanted::text, 'wanted'), advisory._require(wanted >= 1, '22023', 'wanted must be at least 1');
    FOR name IN SELECT element FROM unnest(names) WITH ORDINALITY AS list (element, place) GROUP BY element ORDER BY min(place) LOOP
        EXIT WHEN cardinality(taken) = wanted;
        IF is_for_slots THEN
            slot := advisory._acquire(false, is_xact, namespace, name, slots, '0');
            CONTINUE WHEN slot IS NULL;
            taken := taken || advisory._slot_key(namespace, name, slot);
        ELSE
            CONTINUE WHEN NOT advisory._take(false, is_xact, advisory.key(namespace, name), 0);
            taken := taken || advisory.key(namespace, name);
        END IF;
        RETURN NEXT;
    END LOOP;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key WHERE NOT is_xact;
    RAISE;
END $$;

CREATE OR REPLACE FUNCTION advisory.release(namespace text, name text, slot integer DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    base bigint := advisory._slot_key(namespace, name, 0);
    mine bigint;
BEGIN
    PERFORM advisory._check_slot(coalesce(slot, 1), 'slot');
    FOR mine IN SELECT key FROM advisory._keys WHERE key BETWEEN base + coalesce(slot, 1) AND base + coalesce(slot, 16000)
                    AND pid = pg_backend_pid() AND granted ORDER BY key DESC LOOP
        IF advisory._unlock_quietly(false, mine) THEN RETURN true; END IF;
    END LOOP;
    RAISE WARNING 'you don''t own % semaphore "%"', coalesce('slot ' || slot || ' of', 'a slot of'), advisory._display(namespace, name);
    RETURN false;
END $$;
COMMENT ON FUNCTION advisory.release(text, text, integer) IS 'give back a slot (NULL: the greatest of this session)';

---- Waiting without a snapshot

-- Sleeps until the next look, and returns how long the next sleep may be; NULL if it is too late.
CREATE OR REPLACE FUNCTION advisory._pause(seconds double precision, deadline timestamptz) RETURNS double precision LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(CASE WHEN isfinite(deadline) THEN least(seconds, extract(epoch FROM deadline - clock_timestamp())) ELSE seconds END);
    RETURN CASE WHEN clock_timestamp() < deadline THEN least(seconds * 1.5, 0.1) END;
END $$;

-- A lock; or with slots, a slot.
CREATE OR REPLACE PROCEDURE advisory._await(is_shared boolean, namespace text, name text, key bigint, slots integer, timeout interval, INOUT slot integer)
    LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(advisory._milliseconds(timeout));
    pause double precision := 0.001;
BEGIN
    PERFORM advisory._check(key::pg_catalog.text, 'key'), advisory._check(coalesce(namespace, name, 'no label'), 'label');
    PERFORM advisory._require(pg_catalog.pg_current_xact_id_if_assigned() IS NULL, '25001', 'advisory.await_*() cannot wait without a snapshot here',
        'The transaction has written.', 'Call it before the transaction writes, or use advisory.lock() or advisory.acquire().');
    LOOP
        -- Each COMMIT ends the snapshot.
        COMMIT;
        slot := CASE WHEN slots IS NOT NULL THEN advisory._acquire(false, false, namespace, name, slots, '0')
                     WHEN advisory._lock(false, is_shared, false, namespace, name, key, '0') THEN 0 END;
        EXIT WHEN slot IS NOT NULL;
        IF pause IS NULL THEN PERFORM advisory._raise_not_available(namespace, name, key, slots, timeout); END IF;
        pause := advisory._pause(pause, deadline);
    END LOOP;
END $$;
---- Tokens and fences

-- Who calls a SECURITY DEFINER function: the role of the last SET ROLE, or of the session.
CREATE OR REPLACE FUNCTION advisory._caller() RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END $$;

CREATE OR REPLACE FUNCTION advisory._check_name(namespace text, name text) RETURNS void LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT advisory._check(namespace, 'namespace'); SELECT advisory._check(name, 'name') $$;
CREATE OR REPLACE FUNCTION advisory._require_writable(what text) RETURNS void LANGUAGE sql AS $$
    SELECT advisory._require(current_setting('transaction_read_only') = 'off', '25006', 'cannot execute ' || what || ' in a read-only transaction')
$$;

-- Tokens must be on disk before anybody sees them.  But SQL flushes the log at COMMIT only: a crash before it would let a later token be smaller.
DO $do$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['token(namespace text, name text)', 'token(namespace text, name text, slot integer)', 'token_key(key bigint)',
                             'tokens_above(token bigint)'] LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE plpgsql COST 1000 AS %L', f,
            CASE WHEN f LIKE 'tokens_above%' THEN 'void' ELSE 'bigint' END,
            format($$ BEGIN RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = 'advisory.%s() is not in the portable edition',
                DETAIL = 'SQL cannot write a token to disk before the transaction commits, so after a crash or failover tokens could repeat or fall.',
                HINT = 'Write in one transaction under advisory.xact_lock(), claim windows with advisory.claim(), or take tokens from a consensus '
                       'store such as etcd. A sequence is not safe: a crash before COMMIT, or a failover, sets it back.'; END $$, split_part(f, '(', 1)));
        EXECUTE format('COMMENT ON FUNCTION advisory.%s IS %L', f, 'not in the portable edition: error 0A000');
    END LOOP;
    REVOKE ALL ON FUNCTION advisory.tokens_above(bigint) FROM PUBLIC;
END $do$;

-- Only check_token() writes this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory.fences (key bigint PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';
REVOKE ALL ON advisory.fences FROM PUBLIC;

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, name text, token bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    highest bigint;
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(token::text, 'token'),
            advisory._require(token > 0, '22023', 'token must be greater than zero'), advisory._require_writable('advisory.check_token()');
    INSERT INTO advisory.fences AS f VALUES (advisory.key(namespace, name), check_token.token)
        ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE SET token = greatest(f.token, EXCLUDED.token) RETURNING f.token INTO highest;
    IF highest > token THEN
        RAISE EXCEPTION 'stale token % of "%"', token, advisory._display(namespace, name) USING ERRCODE = '55000', SCHEMA = namespace, CONSTRAINT = name,
            DETAIL = format('A later holder has already used %s.', CASE WHEN pg_has_role(advisory._caller(), 'pg_read_all_stats', 'USAGE')
                                                                        THEN 'token ' || highest ELSE 'a greater token' END);
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION advisory.check_token(text, text, bigint) IS 'true if no greater token of this name was checked, or error 55000';

CREATE OR REPLACE FUNCTION advisory.fenced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place text := format('column "%s" of relation "%s"', TG_ARGV[0], TG_TABLE_NAME);
    type oid;
    token bigint;
    replaced bigint;
BEGIN
    PERFORM advisory._require(TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' AND TG_OP IN ('INSERT', 'UPDATE'), '39P01',
                              'advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW'),
            advisory._require(TG_NARGS = 1, '39P01', 'advisory.fenced() takes the name of the token''s column as its only argument');
    SELECT atttypid INTO type FROM pg_attribute WHERE attrelid = TG_RELID AND attname = TG_ARGV[0] AND attnum > 0 AND NOT attisdropped;
    PERFORM advisory._require(FOUND, '42703', place || ' does not exist'),
            advisory._require(type = 'bigint'::regtype, '42804', place || ' must have type bigint');
    EXECUTE format('SELECT ($1).%I', TG_ARGV[0]) INTO token USING NEW;
    IF TG_OP = 'UPDATE' THEN
        EXECUTE format('SELECT ($1).%I', TG_ARGV[0]) INTO replaced USING OLD;
    END IF;
    IF token IS NULL THEN
        RAISE EXCEPTION 'null token in %', place USING ERRCODE = '23502', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0];
    ELSIF token < replaced THEN
        -- It does not tell the token that was there, because the role may be unable to read it.
        RAISE EXCEPTION 'stale token % in %', token, place USING ERRCODE = '55000', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0],
            DETAIL = 'A later holder has already written a greater token.';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION advisory.fenced() IS 'trigger function: refuses a NULL token and one smaller than the row''s';

---- Once per window

-- Only _claim(), _finish_claim() and unclaim() write this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory._claims (
    key bigint PRIMARY KEY, namespace text NOT NULL, name text NOT NULL, last_window timestamptz NOT NULL, window_before timestamptz NOT NULL,
    claimed_at timestamptz, claimed_by text, role text NOT NULL, finished_at timestamptz
) WITH (fillfactor = 50);
REVOKE ALL ON advisory._claims FROM PUBLIC;

CREATE OR REPLACE VIEW advisory.claims AS
    SELECT CASE WHEN may_see THEN regexp_replace(left(namespace, 1024), '[[:cntrl:]]', '?', 'g') ELSE '<insufficient privilege>' END AS namespace,
           CASE WHEN may_see THEN regexp_replace(left(name, 1024), '[[:cntrl:]]', '?', 'g') ELSE '<insufficient privilege>' END AS name,
           CASE WHEN may_see THEN key END AS key,
           last_window, claimed_at,
           CASE WHEN may_see THEN regexp_replace(left(claimed_by, 256), '[[:cntrl:]]', '?', 'g')
                WHEN claimed_by IS NOT NULL THEN '<insufficient privilege>' END AS claimed_by,
           finished_at
    FROM advisory._claims,
    LATERAL (SELECT pg_has_role('pg_read_all_stats', 'USAGE')
                    OR EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role AND pg_has_role(r.oid, 'USAGE'))) AS visible (may_see)
    -- That is what unclaim() of the first one leaves.
    WHERE last_window > '-infinity';
COMMENT ON VIEW advisory.claims IS 'the last claimed window of each name';
GRANT SELECT ON advisory.claims TO PUBLIC;

-- An interval without months, in microseconds.
CREATE OR REPLACE FUNCTION advisory._microseconds(value interval) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(day FROM value)::numeric * 24 + extract(hour FROM value)::numeric) * 3600000000
           + extract(minute FROM value)::numeric * 60000000 + extract(microseconds FROM value)::numeric
$$;

-- The window that claim() claims at a time.  Windows are counted from the first Monday of the century; a minute early is early enough.
CREATE OR REPLACE FUNCTION advisory._window(every interval, at timestamptz) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    length numeric := advisory._microseconds(every);
    early numeric := least(div(length, 2), 60000000);
    since numeric := mod(advisory._microseconds(at - '2001-01-01 00:00+00') + early, length);
BEGIN
    RETURN at + (early - since - CASE WHEN since < 0 THEN length ELSE 0 END)::double precision * interval '1 us';
END $$;

-- Checks the arguments, and returns the window.
CREATE OR REPLACE FUNCTION advisory._check_window(namespace text, name text, every interval, start timestamptz, every_is text, start_is text)
    RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name),
            advisory._require(octet_length(namespace) <= 1024, '22001', 'namespace of a claim is too long', 'It can have at most 1024 bytes.'),
            advisory._require(octet_length(name) <= 1024, '22001', 'name of a claim is too long', 'It can have at most 1024 bytes.'),
            advisory._check(every::text, every_is), advisory._require(every > '0', '22023', every_is || ' must be greater than zero'),
            advisory._require(isfinite(every), '22008', every_is || ' must be finite'),
            advisory._require(isfinite(start), '22008', start_is || ' must be finite');
    IF start IS NULL THEN
        PERFORM advisory._require(extract(year FROM every) = 0 AND extract(month FROM every) = 0, '22023', every_is || ' must not have months or years',
                    'Months and years differ in length.',
                    'Give the window itself as ' || start_is || ', such as date_trunc(''month'', now() + interval ''1 minute'', ''UTC'').'),
                advisory._require(advisory._microseconds(every) < 9223372036854775808, '22008', every_is || ' is out of range');
        RETURN advisory._window(every, clock_timestamp());
    END IF;
    PERFORM advisory._require(start <= clock_timestamp() + least(every, '366 days'), '22023', format('window %s is too far ahead', start),
                              'A window can be claimed at most one window, and at most 366 days, before it begins.');
    RETURN start;
END $$;

-- Claims the window, and returns the time; NULL if this window or a later one is claimed.  Everybody may call it, so it checks its arguments.
CREATE OR REPLACE FUNCTION advisory._claim(namespace text, name text, every interval, start timestamptz, is_finished boolean) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    its_key bigint := advisory.key(namespace, name);
    caller text := advisory._caller();
    at timestamptz;
BEGIN
    start := advisory._check_window(namespace, name, every, start, 'every', 'window_start');
    PERFORM advisory._require_writable('advisory.claim()');
    INSERT INTO advisory._claims AS c
        SELECT its_key, _claim.namespace, _claim.name, start, '-infinity', now, concat_ws('@', caller, nullif(current_setting('application_name'), '')),
               caller, CASE WHEN is_finished THEN now END
        FROM clock_timestamp() AS now
        WHERE NOT EXISTS (SELECT FROM advisory._claims AS o WHERE o.key = its_key AND o.last_window >= start)
        ON CONFLICT ON CONSTRAINT _claims_pkey DO UPDATE
        SET (namespace, name, last_window, window_before, claimed_at, claimed_by, role, finished_at) = ROW (EXCLUDED.namespace, EXCLUDED.name,
             EXCLUDED.last_window, c.last_window, EXCLUDED.claimed_at, EXCLUDED.claimed_by, EXCLUDED.role, EXCLUDED.finished_at)
        WHERE c.last_window < EXCLUDED.last_window
        RETURNING c.claimed_at INTO at;
    -- If another transaction claimed it meanwhile, the row is locked now.  The end of this block releases it.
    PERFORM advisory._require(FOUND, 'P0002', 'is claimed');
    RETURN at;
EXCEPTION WHEN no_data_found THEN
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION advisory.claim(namespace text, name text, every interval, window_start timestamptz DEFAULT NULL) RETURNS timestamptz
    LANGUAGE plpgsql COST 1000 AS $$
BEGIN
    window_start := advisory._check_window(namespace, name, every, window_start, 'every', 'window_start');
    RETURN CASE WHEN advisory._claim(namespace, name, every, window_start, true) IS NOT NULL THEN window_start END;
END $$;
COMMENT ON FUNCTION advisory.claim(text, text, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

-- The window before it is the last one again, so that no window before that can be claimed once more.
CREATE OR REPLACE FUNCTION advisory.unclaim(namespace text, name text, window_start timestamptz) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(window_start::text, 'window_start'),
            advisory._require(isfinite(window_start), '22008', 'window_start must be finite'), advisory._require_writable('advisory.unclaim()');
    UPDATE advisory._claims AS c SET last_window = c.window_before, claimed_at = NULL, claimed_by = NULL, finished_at = NULL
        WHERE c.key = advisory.key(unclaim.namespace, unclaim.name) AND c.last_window = window_start AND c.claimed_at IS NOT NULL;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION advisory.unclaim(text, text, timestamptz) IS 'take a claim back, so that its window can be claimed again';
REVOKE ALL ON FUNCTION advisory.unclaim(text, text, timestamptz) FROM PUBLIC;

-- Records the end of the caller's job, unless somebody is about to claim a later window.
CREATE OR REPLACE FUNCTION advisory._finish_claim(namespace text, name text, start timestamptz, at timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF current_setting('transaction_read_only') = 'on' THEN
        RAISE WARNING 'the end of window % of "%" is not recorded, because the transaction is read-only', start, advisory._display(namespace, name);
        RETURN;
    END IF;
    LOCK TABLE advisory._claims IN ROW EXCLUSIVE MODE NOWAIT;
    UPDATE advisory._claims SET finished_at = clock_timestamp()
        WHERE key = (SELECT c.key FROM advisory._claims AS c WHERE c.key = advisory.key(_finish_claim.namespace, _finish_claim.name)
                     AND c.last_window = start AND c.claimed_at = at AND c.role = advisory._caller() FOR UPDATE SKIP LOCKED);
EXCEPTION WHEN lock_not_available OR serialization_failure THEN
    NULL;
END $$;

---- Jobs

-- Checks what run() was given, and returns the window; NULL without once_per.
CREATE OR REPLACE FUNCTION advisory._check_job(namespace text, name text, command text, timeout interval, slots integer, if_busy text,
                                               once_per interval, once_window timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._milliseconds(timeout), advisory._check(command, 'command'),
            advisory._check_slot(coalesce(slots, 1), 'slots'), advisory._check(if_busy, 'if_busy'),
            advisory._require(if_busy IN ('skip', 'error'), '22023', 'if_busy must be "skip" or "error"'),
            advisory._require(once_per IS NOT NULL OR once_window IS NULL, '22023', 'once_window must not be given without once_per');
    IF once_per IS NOT NULL THEN
        once_window := advisory._check_window(namespace, name, once_per, once_window, 'once_per', 'once_window');
    END IF;
    -- More than blanks and comments.
    PERFORM advisory._require(regexp_replace(command, '--[^\n\r]*|/\*([^*]|\*+[^*/])*\*+/|[;[:space:]]', '', 'g') <> '', '22023', 'command must not be empty');
    -- The server parses the whole text before it runs the first statement.  So a syntax error is found before anything else happens.
    BEGIN
        EXECUTE 'SELECT 1/0; ' || command;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    IF once_per IS NOT NULL THEN
        PERFORM advisory._require_writable('advisory.run()');
    END IF;
    RETURN once_window;
END $$;

-- Raises 2D000 if that is the message of a COMMIT where none is possible, as inside this function.
CREATE OR REPLACE FUNCTION advisory._check_can_commit(message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
    PERFORM advisory._require(SQLERRM <> message, '2D000', 'advisory.run() cannot commit the claim of a window here', NULL,
        'Send the CALL as a separate statement outside a transaction block. Turn autocommit on, and do not send other statements together with '
        'the CALL. In a transaction, use advisory.claim().');
END $$;

-- The NOTICE, or the error, of a job that did not run: the lock is taken, or a window is claimed.
CREATE OR REPLACE FUNCTION advisory._report_not_run(namespace text, name text, slots integer, timeout interval, if_busy text, claimed timestamptz)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key bigint := CASE WHEN slots IS NULL THEN advisory.key(namespace, name) ELSE advisory._slot_key(namespace, name, 0) END;
    reason text := format(CASE WHEN claimed IS NOT NULL THEN 'window %2$s of "%1$s" or a later one is already claimed'
                               WHEN slots IS NULL THEN 'advisory lock "%s" is taken' ELSE 'semaphore "%s" is taken' END,
                          advisory._display(namespace, name), claimed);
BEGIN
    IF claimed IS NOT NULL AND if_busy = 'error' THEN
        RAISE EXCEPTION '%', reason USING ERRCODE = '55000', SCHEMA = namespace, CONSTRAINT = name;
    ELSIF claimed IS NOT NULL THEN
        RAISE NOTICE 'command was not run because %', reason USING ERRCODE = '55000', SCHEMA = namespace, CONSTRAINT = name;
    ELSIF if_busy = 'error' THEN
        PERFORM advisory._raise_not_available(namespace, name, key, slots, timeout);
    ELSE
        RAISE NOTICE 'command was not run because %', reason USING ERRCODE = '55P03', SCHEMA = namespace, CONSTRAINT = name,
            DETAIL = coalesce(advisory._holders(key, slots), 'Nobody holds it any more.');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._commit_synchronously() RETURNS text LANGUAGE sql AS
    $$ SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') $$;

-- Take the lock or a slot for the transaction.
CREATE OR REPLACE FUNCTION advisory._take_for_job(namespace text, name text, slots integer, timeout interval) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RETURN CASE WHEN slots IS NULL THEN advisory.try_xact_lock(namespace, name, timeout)
                         ELSE advisory.try_xact_acquire(namespace, name, slots, timeout) IS NOT NULL END; END $$;

-- The hold is transaction-level, so that it lasts until the effects of the command are committed, and an error leaves nothing behind.
-- Without a SET clause, which would forbid to commit, and would change the command's search_path.
CREATE OR REPLACE PROCEDURE advisory.run(namespace text, name text, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL,
                                         if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL,
                                         once_window timestamptz DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
    claimed_at timestamp with time zone;
    hint pg_catalog.text := 'This command cannot run inside advisory.run(). Take the lock with CALL advisory.await_lock() as a separate '
        'statement before the command, and release it with SELECT advisory.unlock() after the command.';
BEGIN
    ran := false;
    once_window := advisory._check_job(namespace, name, command, timeout, slots, if_busy, once_per, once_window);
    IF once_per IS NOT NULL THEN
        -- In this block no COMMIT succeeds.  The message says whether one could elsewhere.
        BEGIN
            COMMIT;
        EXCEPTION WHEN invalid_transaction_termination THEN
            PERFORM advisory._check_can_commit(SQLERRM);
        END;
    END IF;
    IF NOT advisory._take_for_job(namespace, name, slots, timeout) THEN
        PERFORM advisory._report_not_run(namespace, name, slots, timeout, if_busy, NULL);
        RETURN;
    END IF;
    IF once_per IS NOT NULL THEN
        claimed_at := advisory._claim(namespace, name, once_per, once_window, false);
        IF claimed_at IS NULL THEN
            PERFORM advisory._report_not_run(namespace, name, slots, timeout, if_busy, once_window);
            RETURN;
        END IF;
        -- The claim must be on disk before the command runs.
        PERFORM advisory._commit_synchronously();
        COMMIT AND CHAIN;
        -- The COMMIT has released the lock.  Whoever waited for it goes first, and finds the window claimed.  (A session-level hold would
        -- outlast the COMMIT, but also its failure.)
        IF NOT advisory._take_for_job(namespace, name, slots, NULL) THEN
            PERFORM advisory._report_not_run(namespace, name, slots, NULL, 'error', NULL);
        END IF;
    END IF;
    BEGIN
        EXECUTE command;
    EXCEPTION
        WHEN invalid_transaction_termination THEN
            PERFORM advisory._require(false, '0A000', 'a command of advisory.run() cannot commit or roll back in the portable edition', NULL, hint);
        WHEN active_sql_transaction THEN
            PERFORM advisory._require(false, '25001', SQLERRM, NULL, hint);
    END;
    IF once_per IS NOT NULL THEN
        PERFORM advisory._finish_claim(namespace, name, once_window, claimed_at);
    END IF;
    ran := true;
END $$;
COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean, interval, timestamptz) IS
    'run a command while holding a lock or slot, and once_per window';
-- ==== Known keys and labels ====

CREATE TABLE IF NOT EXISTS advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    note text CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_one_form CHECK (
        CASE WHEN key IS NOT NULL THEN key1 IS NULL AND key2 IS NULL
             ELSE key1 IS NOT NULL AND key2 IS NOT NULL END));
CREATE UNIQUE INDEX IF NOT EXISTS key_labels_unique
    ON advisory.key_labels ((key IS NULL), coalesce(key, 0), coalesce(key1, 0), coalesce(key2, 0), label);
-- It has no primary key.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';
GRANT SELECT ON advisory.key_labels TO PUBLIC;

-- '?' for control characters, line separators, and what changes the direction of text: a name cannot forge a line of a view.
CREATE OR REPLACE FUNCTION advisory._printable(line text) RETURNS text
    LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding()
        WHEN 'UTF8' THEN '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]' ELSE '[\x01-\x1f\x7f]' END, '?', 'g')
$$;

-- The text without its middle if it is longer than so many characters.  Names often differ only at their ends.
CREATE OR REPLACE FUNCTION advisory._cut(line text, columns integer) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN length(line) <= columns THEN line
                ELSE left(line, (columns - 2) / 2) || '...' || right(line, greatest((columns - 3) / 2, 0)) END
$$;

-- The columns up to key2 are those of known_keys.  The others say which locks are meant: a pair is one key there.
CREATE OR REPLACE VIEW advisory._key_facts AS
    SELECT tool, purpose, form, scope, match, coalesce(rule, first_key::text) AS rule, source,
           CASE WHEN first_key = last_key THEN first_key END AS key, NULL::integer AS key1, NULL::integer AS key2,
           coalesce(first_key, '-9223372036854775808'::bigint) AS first_key, coalesce(last_key, 9223372036854775807) AS last_key,
           CASE form WHEN 'bigint' THEN 1 WHEN 'int4 pair' THEN 2 ELSE 4 END AS first_objsubid,
           CASE form WHEN 'bigint' THEN 1 WHEN 'int4 pair' THEN 2 ELSE 16 END AS last_objsubid
    FROM (
        SELECT tool, purpose, 'bigint', scope, 'exact', NULL, key, key, source
        FROM (VALUES
            ('Prisma Migrate', 'migration lock', 'session', 72707369::bigint, 'prisma/prisma-engines schema-engine postgres flavour'),
            ('goose', 'migration lock', 'session', 4097083626, 'pressly/goose lock/session_locker_options.go'),
            ('goose', 'migration lock (v3.15.1 to v3.25.0)', 'session', 5887940537704921958, 'pressly/goose lock/session_locker_options.go'),
            ('Kysely', 'migration lock', 'session', 3853314791062309107, 'kysely-org/kysely src/dialect/postgres/postgres-adapter.ts'),
            ('node-pg-migrate', 'migration lock', 'session', 7241865325823964, 'salsita/node-pg-migrate src/runner.ts'),
            ('graphile-migrate', 'migration lock', 'session', 4727445306447283, 'graphile/migrate src/pgReal.ts'),
            ('postgres-migrations', 'migration lock', 'session', -8525285245963000605, 'ThomWright/postgres-migrations src/with-lock.ts'),
            ('tern', 'migration lock', 'session', 9628173550095224, 'jackc/tern migrate/migrate.go'),
            ('pgroll', 'state lock', 'transaction', 12388221127840347, 'xataio/pgroll pkg/state/state.go'),
            ('Atlas', 'migrate execute', 'session', 2686470616, 'ariga/atlas sql/postgres/driver.go'),
            ('Atlas', 'migrate diff', 'session', 361947982, 'ariga/atlas sql/postgres/driver.go'),
            ('DBOS', 'system database migration', 'session', 1234567890, 'dbos-inc/dbos-transact-py dbos/_sys_db_postgres.py'),
            ('authentik', 'migration lock', 'session', 1000, 'goauthentik/authentik lifecycle/migrate.py'),
            ('Evolve', 'migration lock', 'session', 12345, 'lecaillon/Evolve PostgreSQLDatabase.cs'),
            ('Marten', 'default global lock', 'session', 4004, 'JasperFx/marten StoreOptions.cs'),
            ('Airflow', 'migrations', 'session', 1, 'apache/airflow utils/db.py DBLocks'),
            ('Airflow', 'scheduler critical section', 'session', 2, 'apache/airflow utils/db.py DBLocks'),
            ('Concourse', 'database migration', 'session', 5, 'concourse/concourse atc/db/lock/lock.go'),
            ('sqitch', 'deployment', 'session', 75474063, 'sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm'),
            ('pgBackRest', 'backup', 'session', 12340078987004321, 'pgbackrest/pgbackrest src/db/db.h'),
            ('Unleash', 'migration', 'session', 479341, 'Unleash/unleash src/lib/util/db-lock.ts'),
            ('rake-db', 'migration', 'transaction', 8582141715823621641, 'romeerez/orchid-orm packages/rake-db'),
            ('dumbo (Emmett)', 'migration', 'session', 999956789, 'event-driven-io/Pongo packages/dumbo'),
            ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows')) AS fact (tool, purpose, scope, key, source)
        UNION ALL
        SELECT 'pg_partman', job || since, 'bigint', scope, 'formula', format('hashtext(%L)', text), hashtext(text), hashtext(text),
               'pgpartman/pg_partman sql/' || folder
        FROM (VALUES
            ('run_maintenance', '', 'session or transaction', 'functions, sql/procedures'), ('drop_partition_id', '', 'transaction', 'functions'),
            ('run_maintenance procedure', ' (from 5.1.0)', 'session', 'procedures'), ('drop_partition_time', '', 'transaction', 'functions'),
            ('undo_partition_native', '', 'transaction', 'functions'), ('undo_partition', '', 'transaction', 'functions'),
            ('reapply_constraints', '', 'session', 'functions'), ('run_analyze', '', 'session', 'functions')) AS job (job, since, scope, folder),
            concat('pg_partman ', job) AS text
        UNION ALL
        SELECT 'pg_partman', job, 'int4 pair', 'session or transaction', 'formula', format('(hashtext(%L), hashtext(parent_table))', 'pg_partman ' || job),
               first, first | 4294967295, 'pgpartman/pg_partman sql/procedures'
        FROM unnest('{partition_data_proc,undo_partition_proc}'::text[]) AS job, LATERAL (SELECT hashtext('pg_partman ' || job)::bigint << 32) AS k (first)
        UNION ALL VALUES
            ('slonik', 'migration (migration)', 'bigint', 'session', 'formula', 'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json(table))',
                1230759186, 1230759186, 'mmkal/slonik-tools packages/migrator'),
            ('DBOS', 'data source migration (dbos)', 'bigint', 'transaction', 'formula',
                'first 8 bytes, big-endian, of sha256(''dbos.datasource_migrations.'' || schema)',
                advisory.key('dbos.datasource_migrations.dbos'), advisory.key('dbos.datasource_migrations.dbos'), 'dbos-inc/dbos-transact-ts datasource.ts'),
            ('pg_repack', 'table being repacked', 'int4 pair', 'session', 'formula', '(16185446, table oid - 2^31)',
                16185446::bigint << 32, (16185447::bigint << 32) - 1, 'reorg/pg_repack bin/pg_repack.c'),
            ('n8n', 'migrations and maintenance', 'bigint', 'transaction', 'range', '1001 to 1009 (1005: migrations)',
                1001, 1009, 'n8n-io/n8n packages/@n8n/db db-lock.service.ts'),
            ('Flyway', 'migration lock', 'bigint', 'session or transaction', 'range',
                '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31', 77429560795513, 77433855762808,
                'flyway/flyway PostgreSQLAdvisoryLockTemplate.java'),
            ('Citus', 'distributed execution', 'objsubid 4-16', 'any', 'class', 'objsubid', NULL, NULL, 'citusdata/citus resource_lock.h')
    ) AS fact (tool, purpose, form, scope, match, rule, first_key, last_key, source);

CREATE OR REPLACE VIEW advisory._labels AS
    SELECT advisory._printable(label) AS tool, advisory._printable(note) AS purpose,
           CASE WHEN key IS NULL THEN 'int4 pair' ELSE 'bigint' END AS form, NULL::text AS scope, 'exact' AS match,
           CASE WHEN key IS NULL THEN format('(%s, %s)', key1, key2) ELSE key::text END AS rule, 'advisory.key_labels' AS source,
           key, key1, key2, CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
           coalesce(key, (key1::bigint << 32) | (key2 & 4294967295)) AS tag
    FROM advisory.key_labels
    ORDER BY tag, objsubid, label COLLATE "C";

CREATE OR REPLACE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2 FROM advisory._labels
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2 FROM advisory._key_facts;
COMMENT ON VIEW advisory.known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';

-- The labels that are names: namespace/name, if that has the key.  Any of the slashes can be the one between the two.
CREATE OR REPLACE VIEW advisory._names AS
    SELECT DISTINCT ON (key) key, left(label, slash - 1) AS namespace, substr(label, slash + 1) AS name
    FROM advisory.key_labels, generate_series(2, length(label) - 1) AS slash
    WHERE key IS NOT NULL AND substr(label, slash, 1) = '/' AND advisory.key(left(label, slash - 1), substr(label, slash + 1)) = key
    ORDER BY key, slash;

-- ==== Locks ====

-- Only the local number of a prepared transaction stands at its locks.  If two of a database have the same, neither is named.
CREATE OR REPLACE VIEW advisory._prepared AS
    SELECT l.virtualtransaction, d.oid AS datid, min(gid) AS gid, min(owner) AS owner, min(prepared) AS prepared
    FROM pg_locks AS l JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid JOIN pg_database AS d ON d.datname = p.database
    WHERE pid IS NULL
    GROUP BY l.virtualtransaction, d.oid HAVING count(*) = 1;

-- All advisory locks, and the locks of other types that a session waits for.  A slot of a semaphore is a lock of its own, which only its
-- name tells: that of a label, or the arguments.  session: the process, of a parallel worker its leader; below 0 a prepared transaction.
-- tag: what is waited for; the slots of a semaphore and its queue are one.
CREATE OR REPLACE FUNCTION advisory._entries(of_namespace text DEFAULT NULL, of_name text DEFAULT NULL)
    RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, namespace text, name text,
        slot integer, key bigint, key1 integer, key2 integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
        acquired_at timestamptz, held interval, blocked_by integer[], known_as text[], gid text, query text,
        session bigint, objsubid integer, tag text, lock text, who text, since timestamptz, is_waiting boolean, has_advisory boolean)
    LANGUAGE sql VOLATILE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    -- Otherwise pg_stat_activity stays as it was when the transaction first looked at it.
    SELECT pg_stat_clear_snapshot();
    WITH backend AS MATERIALIZED (
        SELECT *, advisory._printable(usename) AS role FROM pg_stat_activity
    ), slot_key AS (
        SELECT n.*, i AS slot, CASE i WHEN -1 THEN n.key ELSE advisory._slot_key(n.namespace, n.name, i) END AS lock_key
        FROM (SELECT * FROM advisory._names UNION SELECT advisory.key(of_namespace, of_name), of_namespace, of_name WHERE of_name IS NOT NULL) AS n,
             generate_series(-1, 100) AS i
    ), lock AS MATERIALIZED (
        -- Whoever holds the lock of a queue waits for a slot, and is the only one that looks for it.  waitstart is new in 14.
        SELECT l.*, d.datname, n.number, t.kind, s.namespace, s.name, s.slot, s.slot = 0 AND granted AS is_head,
               granted AND s.slot IS DISTINCT FROM 0 AS is_held, CASE WHEN objsubid = 1 THEN coalesce(s.key, number) END AS key,
               coalesce(b.leader_pid, l.pid, -split_part(virtualtransaction, '/', 2)::bigint) AS session,
               CASE WHEN NOT granted THEN (to_jsonb(l) ->> 'waitstart')::timestamptz WHEN s.slot = 0 THEN b.query_start END AS start,
               CASE WHEN s.slot >= 0 THEN 'semaphore ' || s.key
                    ELSE (locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text END AS tag
        FROM pg_locks AS l
        LEFT JOIN backend AS b ON b.pid = l.pid
        LEFT JOIN pg_database AS d ON d.oid = l.database
        CROSS JOIN LATERAL (SELECT CASE locktype WHEN 'advisory' THEN (classid::bigint << 32) | objid::bigint END) AS n (number)
        LEFT JOIN slot_key AS s ON s.lock_key = number AND objsubid = 1 AND d.datname = current_database()
        CROSS JOIN LATERAL (SELECT CASE WHEN number IS NULL THEN NULL WHEN objsubid > 2 THEN 'foreign' WHEN s.slot > 0 THEN 'semaphore'
                                        WHEN s.slot = 0 THEN 'queue' ELSE 'lock' END) AS t (kind)
        WHERE mode <> 'SIReadLock'
    ), taken AS (
        SELECT tag, array_agg(greatest(session, 0)::integer ORDER BY slot) AS pids FROM lock WHERE slot > 0 AND granted GROUP BY tag
    ), label AS (
        SELECT tag, objsubid, array_agg(concat_ws(': ', tool, purpose)) AS uses FROM advisory._labels GROUP BY tag, objsubid
    ), fact AS MATERIALIZED (
        SELECT *, concat_ws(': ', tool, purpose) AS use FROM advisory._key_facts
    )
    SELECT l.pid, l.datname, coalesce(b.role, advisory._printable(p.owner)), b.application_name, b.client_addr, b.state, l.kind,
           advisory._printable(l.namespace), advisory._printable(l.name), nullif(greatest(l.slot, 0), 0),
           l.key, k.key1, k.key2, CASE l.mode WHEN 'ExclusiveLock' THEN 'exclusive' WHEN 'ShareLock' THEN 'shared' ELSE l.mode END,
           CASE WHEN l.pid IS NULL THEN 'transaction' END, is_held, start, clock_timestamp() - start, NULL::timestamptz, NULL::interval,
           CASE WHEN NOT is_held THEN array_remove(pids, l.session::integer) || CASE WHEN NOT granted THEN pg_blocking_pids(l.pid) END END,
           u.known_as, advisory._printable(p.gid), b.query, l.session, l.objsubid::integer, l.tag,
           CASE WHEN l.kind IS NULL
                THEN concat_ws(' ', CASE locktype WHEN 'tuple' THEN format('row (%s,%s) of', page, tuple) WHEN 'transactionid' THEN 'transaction'
                                                  ELSE locktype END, transactionid, virtualxid,
                               CASE WHEN l.database = 0 OR l.datname = current_database() THEN relation::regclass::text ELSE relation::text END)
                WHEN l.name IS NOT NULL THEN advisory._printable(concat(l.namespace, '/', l.name))
                -- Any program may use a small number.
                WHEN a.uses IS NOT NULL OR u.quoted IS NOT NULL AND (l.key IS NULL OR l.key NOT BETWEEN -99999 AND 99999) THEN u.quoted
                ELSE concat_ws(' ', coalesce(l.key::text, concat(k.key1, ', ', k.key2, ' (objsubid ' || nullif(l.objsubid, 2) || ')')), u.quoted) END,
           coalesce(b.role || coalesce('@' || nullif(b.application_name, ''), ''), advisory._printable(p.owner || ' (prepared ' || p.gid || ')')),
           coalesce(b.state_change, p.prepared), coalesce(b.wait_event_type = 'Lock', false), bool_or(l.kind IS NOT NULL) OVER (PARTITION BY l.session)
    FROM lock AS l
    LEFT JOIN backend AS b ON b.pid = l.pid
    LEFT JOIN advisory._prepared AS p ON l.pid IS NULL AND p.virtualtransaction = l.virtualtransaction AND p.datid = l.database
    LEFT JOIN taken USING (tag)
    LEFT JOIN label AS a ON a.tag = number AND a.objsubid = l.objsubid AND l.datname = current_database() AND coalesce(l.slot, -1) < 0
    CROSS JOIN LATERAL (SELECT CASE WHEN l.key IS NULL THEN classid::integer END, CASE WHEN l.key IS NULL THEN objid::integer END) AS k (key1, key2)
    CROSS JOIN LATERAL (
        SELECT nullif(a.uses || ARRAY(SELECT use FROM fact AS f WHERE l.kind IN ('lock', 'foreign') AND number BETWEEN first_key AND last_key
                                          AND l.objsubid BETWEEN first_objsubid AND last_objsubid), '{}')) AS c (known_as)
    CROSS JOIN LATERAL (
        SELECT c.known_as, '"' || replace(CASE WHEN length(known_as[1]) > 24 THEN left(known_as[1], 21) || '...' ELSE known_as[1] END, '"', '""') || '"'
    ) AS u (known_as, quoted)
    WHERE l.kind IS NOT NULL OR l.tag IN (SELECT tag FROM lock WHERE NOT granted)
$$;

CREATE OR REPLACE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace, name, slot, key, key1, key2, mode, scope, granted,
           wait_start, waited, acquired_at, held, blocked_by, known_as, gid, query
    FROM advisory._entries() WHERE kind IS NOT NULL;
COMMENT ON VIEW advisory.locks IS 'every advisory lock on the server, with its name, holders and waiters';

CREATE OR REPLACE FUNCTION advisory.holders(namespace text, name text)
    RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, slot integer, mode text, scope text,
        granted boolean, wait_start timestamptz, waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    LANGUAGE sql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._check_name(namespace, name);
    SELECT e.pid, e.database, e.role, e.application_name, e.client_addr, e.state, e.kind, e.slot, e.mode, e.scope,
           e.granted, e.wait_start, e.waited, e.acquired_at, e.held, e.blocked_by, e.gid, e.query
    FROM advisory._entries(holders.namespace, holders.name) AS e
    WHERE e.key = advisory.key(holders.namespace, holders.name) AND e.database = current_database()
$$;
COMMENT ON FUNCTION advisory.holders(text, text) IS 'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE OR REPLACE FUNCTION advisory.holders_key(key bigint)
    RETURNS TABLE (
        pid integer, database text, role text, application_name text, client_addr inet, state text, kind text, slot integer, mode text, scope text,
        granted boolean, wait_start timestamptz, waited interval, acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    LANGUAGE plpgsql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION 'key must not be null' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    RETURN QUERY
    SELECT e.pid, e.database, e.role, e.application_name, e.client_addr, e.state, e.kind, e.slot, e.mode, e.scope,
           e.granted, e.wait_start, e.waited, e.acquired_at, e.held, e.blocked_by, e.gid, e.query
    FROM advisory._entries() AS e WHERE e.key = holders_key.key AND e.database = current_database();
END $$;
COMMENT ON FUNCTION advisory.holders_key(bigint) IS 'sessions that hold the lock, or a slot of this key, or wait for it';

-- Those that have a label.  Nothing says how many slots a semaphore has.
CREATE OR REPLACE VIEW advisory.semaphores AS
    SELECT namespace, name, key, NULL::integer AS slots, (count(*) FILTER (WHERE granted))::integer AS in_use, NULL::integer AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}') AS holders, false AS slots_disagree
    FROM advisory._entries() WHERE kind IN ('semaphore', 'queue') GROUP BY namespace, name, key;
COMMENT ON VIEW advisory.semaphores IS 'semaphores of this database that have holders of slots, or waiters';

-- ==== Waits ====

CREATE OR REPLACE VIEW advisory._entry AS SELECT * FROM advisory._entries();

-- What is in the way of a session that waits: the holders, or else the waiters ahead of it.  In the trees it stands under the first, of
-- the waiters under the last that came.  For a slot, a holder that does not itself wait comes first.
CREATE OR REPLACE VIEW advisory._edges AS
    WITH entry AS MATERIALIZED (
        SELECT e, (e).session, (e).tag, greatest((e).session, 0) AS pid, (e).granted FROM advisory._entry AS e
    ), wait AS MATERIALIZED (
        SELECT DISTINCT ON (session) * FROM entry WHERE NOT granted ORDER BY session, (e).wait_start
    ), way AS MATERIALIZED (
        SELECT session, tag, p.pid, n, is_held, bool_or(is_held) OVER (PARTITION BY session) AS has_holder
        FROM wait, unnest((e).blocked_by) WITH ORDINALITY AS p (pid, n),
             LATERAL (SELECT (tag, p.pid) IN (SELECT tag, pid FROM entry WHERE granted)) AS h (is_held)
    )
    SELECT w.e AS waiter, b.e AS blocker, w.session, b.session AS above, count(*) FILTER (WHERE is_held) OVER (PARTITION BY w.session) AS holders,
           row_number() OVER (PARTITION BY w.session ORDER BY (b.e).slot IS NOT NULL AND (b.e).is_waiting,
                              CASE WHEN is_held THEN n END, (b.e).wait_start DESC, (b.e).mode DESC) AS rank
    FROM way JOIN wait AS w USING (session) JOIN entry AS b ON b.tag = way.tag AND b.pid = way.pid AND b.granted = is_held
    WHERE is_held >= has_holder AND b.session <> w.session AND NOT ((w.e).mode = 'shared' AND (b.e).mode = 'shared');

-- Each session of the trees with the entry that is shown.  The root of a cycle is its smallest process.
CREATE OR REPLACE VIEW advisory._tree AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT * FROM advisory._edges WHERE rank = 1
    ), climb (session, top, path) AS (
        SELECT session, above, ARRAY[session] FROM edge
        UNION ALL
        SELECT c.session, e.above, path || e.session FROM climb AS c JOIN edge AS e ON e.session = c.top WHERE c.top <> ALL (path)
    ), way AS (
        SELECT session, root, CASE WHEN root = ANY (path) THEN path[:array_position(path, root)] ELSE path || root END AS path
        FROM climb, LATERAL (SELECT coalesce((SELECT min(s) FROM unnest(path[array_position(path, top):]) AS s), top)) AS r (root)
        WHERE top = ANY (path) OR top NOT IN (SELECT session FROM edge)
    ), shown AS (
        -- Those that wait for an advisory lock or hold one, those behind them, and all that they wait for.
        SELECT DISTINCT unnest(path) AS session FROM way
        WHERE EXISTS (SELECT FROM edge AS e WHERE e.session = ANY (path) AND ((waiter).has_advisory OR (blocker).has_advisory))
    ), line AS (
        SELECT session, root, waiter AS entry, above, holders, ARRAY(SELECT s FROM unnest(path) WITH ORDINALITY AS p (s, n) ORDER BY n DESC) AS path
        FROM way JOIN edge USING (session) JOIN shown USING (session)
        UNION ALL
        (SELECT DISTINCT ON (above) above, above, blocker, NULL, 0, ARRAY[above] FROM edge JOIN shown ON shown.session = above
         WHERE above NOT IN (SELECT session FROM edge) ORDER BY above, (waiter).wait_start, edge.session)
    ), placed AS (
        SELECT *, cardinality(path) - 1 AS depth, min((entry).wait_start) OVER (PARTITION BY root) AS oldest,
               ARRAY(SELECT concat(to_char((e.waiter).wait_start AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS'), '~', lpad(s::text, 12))
                     FROM unnest(path[2:]) WITH ORDINALITY AS p (s, n) JOIN edge AS e ON e.session = s ORDER BY n) COLLATE "C" AS place
        FROM line
    )
    SELECT *, row_number() OVER (PARTITION BY path[:depth], depth > 0 ORDER BY place) AS number FROM placed;

CREATE OR REPLACE VIEW advisory.waits AS
    SELECT greatest(root, 0)::integer AS root_pid, depth, ARRAY(SELECT greatest(s, 0)::integer FROM unnest(path) AS s) AS path,
           greatest(session, 0)::integer AS pid, CASE WHEN above < 0 THEN 0 ELSE above END::integer AS waits_for_pid,
           (entry).namespace, (entry).name, (entry).key, (entry).mode, (entry).waited, (entry).state, (entry).application_name, (entry).query,
           (entry).key1, (entry).key2, CASE WHEN (entry).kind IS NOT NULL THEN (entry).objsubid END AS objsubid
    FROM advisory._tree ORDER BY oldest, root, place;
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';

CREATE OR REPLACE FUNCTION advisory._age(start timestamptz) RETURNS text
    LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat(' ', greatest(floor(extract(epoch FROM clock_timestamp() - start)), 0), ' s')
$$;

-- Below each session it shows ten that wait for it.  The line of the eleventh counts it and all that follow, with those below them.
CREATE OR REPLACE FUNCTION advisory.wait_tree() RETURNS SETOF text
    LANGUAGE sql VOLATILE COST 1000 ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    WITH tree AS MATERIALIZED (
        SELECT *, depth > 0 AND number > 10 AS is_cut FROM advisory._tree
    )
    SELECT repeat('  ', depth) || CASE WHEN is_cut
        THEN (SELECT concat('... and ', count(*), ' more', ', the longest' || advisory._age(min((b.entry).wait_start)))
              FROM tree AS b WHERE b.path[:t.depth] = t.path[:t.depth] AND b.depth >= t.depth AND b.place >= t.place)
        ELSE concat(
            coalesce((entry).pid::text, 'prepared transaction "' || (entry).gid || '"', 'a prepared transaction'),
            CASE WHEN (entry).pid IS NULL THEN ' of ' || (entry).role ELSE ' ' || (entry).who END,
            CASE WHEN (entry).granted THEN ' holds ' ELSE ' waits for ' END,
            CASE (entry).kind WHEN 'semaphore' THEN concat('slot ', (entry).slot, ' of ') WHEN 'queue' THEN 'a slot of ' END, (entry).lock,
            CASE WHEN (entry).kind IS NOT NULL AND (entry).database <> current_database() THEN format(' in database "%s"', (entry).database) END,
            ' ', (entry).mode, advisory._age((entry).wait_start),
            CASE WHEN (entry).granted THEN ', ' || (entry).state || coalesce(advisory._age((entry).since), '') END,
            CASE WHEN depth = 0 THEN ', in a cycle with ' || above END,
            CASE WHEN holders > 1 THEN format(' (and %s more holder%s)', holders - 1, left('s', (holders > 2)::integer)) END) END
    FROM tree AS t
    WHERE NOT EXISTS (SELECT FROM tree AS c WHERE c.is_cut AND c.root = t.root AND c.depth <= t.depth AND c.path[:c.depth] = t.path[:c.depth]
                          AND c.place < t.place AND (c.number = 11 AND c.depth = t.depth OR c.path = t.path[:c.depth + 1]))
    ORDER BY oldest, root, place
$$;
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';

-- What each session waits for in the end: all holders count, or the last waiter ahead of it.
CREATE OR REPLACE VIEW advisory.blockers AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT * FROM advisory._edges WHERE rank = 1 OR (blocker).granted
    ), reach (waiter, start, session, above, entry, has_advisory) AS (
        SELECT session, (waiter).wait_start, session, above, blocker, (waiter).has_advisory OR (blocker).has_advisory FROM edge
        UNION
        SELECT r.waiter, start, e.session, e.above, e.blocker, (e.waiter).has_advisory OR (e.blocker).has_advisory
        FROM reach AS r JOIN edge AS e ON e.session = r.above
    ), concerned AS MATERIALIZED (
        SELECT waiter, above FROM reach WHERE waiter IN (SELECT waiter FROM reach WHERE has_advisory)
    ), root AS (
        SELECT DISTINCT ON (above) above, entry, min(start) OVER (PARTITION BY above) AS start,
               dense_rank() OVER (PARTITION BY above ORDER BY waiter) + dense_rank() OVER (PARTITION BY above ORDER BY waiter DESC) - 1 AS waiters
        FROM reach
        WHERE above NOT IN (SELECT session FROM edge) AND (waiter IN (SELECT waiter FROM concerned) OR waiter IN (SELECT above FROM concerned))
        ORDER BY above, reach.start, waiter
    )
    SELECT (entry).pid, advisory._cut((entry).who, 60) AS who, (entry).state, date_trunc('second', (entry).since) AS since,
           advisory._cut(concat('slot ' || (entry).slot || ' of ', (entry).lock,
               CASE WHEN NOT is_here THEN coalesce(format(' in database "%s"', (entry).database), ' in a dropped database') END), 90) AS lock,
           waiters::integer AS waiters, date_trunc('second', clock_timestamp() - start) AS longest_wait,
           CASE WHEN p.gid IS NOT NULL
                THEN format('ROLLBACK PREPARED %L;', p.gid) || CASE WHEN p.database <> current_database() THEN format(' -- in database %I', p.database) ELSE '' END
                WHEN (entry).pid IS NULL THEN NULL
                -- These two end the session only if it still holds the lock.  Long names would not fit on a line.
                WHEN is_here AND octet_length((entry).namespace || (entry).name) <= 50 AND advisory.key((entry).namespace, (entry).name) = (entry).key
                THEN format('SELECT advisory.terminate_holder(%L, %L, %s);', (entry).namespace, (entry).name, (entry).pid)
                WHEN is_here AND (entry).key IS NOT NULL THEN format('SELECT advisory.terminate_holder_key(%s, %s);', (entry).key, (entry).pid)
                ELSE format('SELECT pg_terminate_backend(%s);', (entry).pid) END AS remedy
    FROM root
    CROSS JOIN LATERAL (SELECT (entry).kind IS NULL OR (entry).database IS NOT DISTINCT FROM current_database()) AS h (is_here)
    LEFT JOIN pg_prepared_xacts AS p ON advisory._printable(p.gid) = (entry).gid
    ORDER BY waiters DESC, longest_wait DESC NULLS LAST, pid;
COMMENT ON VIEW advisory.blockers IS 'what others wait for in the end, and the statement that ends it';

-- Waiters and what blocks them, then all other holders.  No row is wider than a terminal of 120 columns.
CREATE OR REPLACE VIEW advisory.activity AS
    WITH entry AS MATERIALIZED (
        SELECT *, concat(CASE WHEN database IS DISTINCT FROM current_database() THEN coalesce(database, '(dropped)') || ': ' END, lock) AS what
        FROM advisory._entries() WHERE kind IS NOT NULL
    ), waiter AS (
        SELECT *, row_number() OVER in_turn AS place, count(*) OVER (PARTITION BY tag) - 10 AS others, nth_value(wait_start, 10) OVER in_turn AS tenth_start
        FROM entry WHERE NOT granted
        WINDOW in_turn AS (PARTITION BY tag ORDER BY wait_start, pid)
    ), blocker AS (
        -- Whoever is in the way of a later waiter is also in the way of one of these.
        SELECT w.tag, w.place, w.wait_start, blocker_pid FROM waiter AS w, unnest(blocked_by) AS blocker_pid WHERE place <= 11
    ), held_by AS (
        SELECT tag, place, array_agg(DISTINCT blocker_pid) AS pids FROM blocker
        WHERE (tag, blocker_pid) IN (SELECT tag, greatest(session, 0) FROM entry WHERE granted)
        GROUP BY tag, place
    ), holder AS (
        SELECT *, NOT is_blocker AND count(*) OVER (PARTITION BY is_blocker, session, gid) > 20 AS is_one_of_many
        FROM (SELECT e.*, b.tag IS NOT NULL AS is_blocker, b.since AS awaited_since
              FROM entry AS e
              LEFT JOIN (SELECT tag, blocker_pid, min(wait_start) AS since FROM blocker GROUP BY tag, blocker_pid) AS b
                  ON b.tag = e.tag AND b.blocker_pid = greatest(e.session, 0)
              WHERE granted) AS held
    ), line (rank, since, place, lock, slot, mode, pid, who, state, waiting, pids) AS (
        -- If only waiters ahead of it are in the way, it waits for the same holders as these.  The eleventh stands for the others.
        SELECT 1, CASE WHEN place = 11 THEN tenth_start ELSE wait_start END, place, CASE WHEN place = 11 THEN concat('(', others, ' more)') ELSE what END,
               slot, CASE WHEN place <= 10 THEN mode END, CASE WHEN place <= 10 THEN pid END, CASE WHEN place <= 10 THEN who END,
               CASE WHEN place <= 10 THEN state END, waited, coalesce(pids, min(pids) OVER (PARTITION BY tag))
        FROM waiter LEFT JOIN held_by USING (tag, place) WHERE place <= 11
        UNION ALL
        SELECT CASE WHEN is_blocker THEN 2 ELSE 3 END, awaited_since, NULL, what, slot, mode, pid, who,
               CASE WHEN is_waiting THEN 'waiting' ELSE state END, NULL, NULL
        FROM holder WHERE NOT is_one_of_many
        UNION ALL
        SELECT 3, NULL, NULL, concat('(', count(*), ' locks)'), NULL, NULL, pid, who, state, NULL, NULL
        FROM holder WHERE is_one_of_many GROUP BY session, pid, gid, who, state
    ), narrow AS MATERIALIZED (
        SELECT rank, since, place, lock, slot, mode, pid, who,
               replace(replace(replace(state, 'idle in transaction (aborted)', 'failed xact'), 'idle in transaction', 'idle in xact'),
                       'fastpath function call', 'fastpath') AS state,
               date_trunc('second', waiting) AS waiting,
               concat(array_to_string(pids[:shown], ','), ' +' || nullif(cardinality(pids) - shown, 0)) AS blocked_by
        FROM line, LATERAL (SELECT least(cardinality(pids), CASE WHEN length(array_to_string(pids[:3], ',')) > 17 THEN 2 ELSE 3 END)) AS few (shown)
    ), wanted AS (
        -- What the other columns leave for lock and who.
        SELECT 120 - 26 - 4 - greatest(max(length(slot::text)), 4) - greatest(max(length(mode)), 4) - greatest(max(length(pid::text)), 3)
                   - greatest(max(length(state)), 5) - greatest(max(length(waiting::text)), 7) - greatest(max(length(blocked_by)), 10) AS room,
               greatest(max(length(lock)), 4) AS lock, greatest(max(length(who)), 3) AS who
        FROM narrow
    ), width AS (
        -- The lock matters more: if both do not fit, who gets 14 columns, or less on a crowded line.
        SELECT room, greatest(least(lock, greatest(room - who, room - 14, room * 3 / 5)), 4) AS lock FROM wanted
    )
    SELECT advisory._cut(n.lock, width.lock) AS lock, slot, mode, pid, advisory._cut(n.who, room - width.lock) AS who, state, waiting,
           NULL::interval AS held, nullif(blocked_by, '') AS blocked_by
    FROM narrow AS n, width
    ORDER BY rank, since, place, n.lock, slot, pid;
COMMENT ON VIEW advisory.activity IS 'waiters for advisory locks, their blockers, and all other holders';

-- ==== Ending a holder ====

CREATE OR REPLACE FUNCTION advisory._terminate(lock text, pid integer, timeout interval, holders integer[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    milliseconds numeric := ceil(extract(epoch FROM timeout)::numeric * 1000);
    until timestamptz := clock_timestamp() + timeout;
    other text := (SELECT datname FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid AND datname <> current_database());
BEGIN
    IF pid IS NULL THEN
        RAISE EXCEPTION 'pid must not be null' USING ERRCODE = 'null_value_not_allowed';
    ELSIF milliseconds < 0 THEN
        RAISE EXCEPTION 'timeout must not be negative' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) THEN
        RAISE WARNING 'PID % is not a PostgreSQL backend process', pid;
        RETURN false;
    ELSIF pid <> ALL (holders) THEN
        RAISE WARNING 'PID % does not hold advisory lock "%", nor a slot of the semaphore of that name', pid, lock
            USING HINT = coalesce(format('That session is in another database. To end it, connect to database "%s".', other), '');
        RETURN false;
    ELSIF NOT pg_terminate_backend(pid) OR milliseconds = 0 THEN
        RETURN milliseconds = 0;
    END IF;
    LOOP
        PERFORM pg_stat_clear_snapshot();
        IF NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) THEN
            RETURN true;
        ELSIF clock_timestamp() >= until THEN
            RAISE WARNING 'backend with PID % did not terminate within % milliseconds', pid, milliseconds;
            RETURN false;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION advisory.terminate_holder(namespace text, name text, pid integer, timeout interval DEFAULT '5s') RETURNS boolean
    LANGUAGE sql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._terminate(advisory._display(namespace, name), terminate_holder.pid, timeout,
                               ARRAY(SELECT h.pid FROM advisory.holders(namespace, name) AS h WHERE granted AND h.pid IS NOT NULL))
$$;
COMMENT ON FUNCTION advisory.terminate_holder(text, text, integer, interval) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE OR REPLACE FUNCTION advisory.terminate_holder_key(key bigint, pid integer, timeout interval DEFAULT '5s') RETURNS boolean
    LANGUAGE sql VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
    SELECT advisory._terminate(key::text, terminate_holder_key.pid, timeout,
                               ARRAY(SELECT h.pid FROM advisory.holders_key(key) AS h WHERE granted AND h.pid IS NOT NULL))
$$;
COMMENT ON FUNCTION advisory.terminate_holder_key(bigint, integer, interval) IS
    'end a session if it still holds the lock, or a slot, of this key';

-- ==== The lock table ====

-- Its entries, without those on the fast path.
CREATE OR REPLACE VIEW advisory._lock_table AS
    SELECT DISTINCT locktype, pid, virtualtransaction, (locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text AS tag
    FROM pg_locks WHERE NOT fastpath AND mode <> 'SIReadLock';

-- The server's own formula.  It holds more up to 18, but how many more cannot be seen from SQL, and the figures are on the safe side.
CREATE OR REPLACE VIEW advisory.pressure AS
    SELECT CASE WHEN percent >= 75 THEN 'critical' WHEN percent >= 50 THEN 'warning' ELSE 'ok' END AS status, NULL::double precision AS percent_used,
           NULL::bigint AS headroom, used.locks AS locks_used, NULL::bigint AS locks_estimated, guaranteed AS locks_guaranteed,
           percent AS percent_of_guaranteed, used.holders AS holders_used, 2 * guaranteed AS holders_guaranteed,
           greatest(per_process, CASE WHEN percent >= 50 THEN ceil(percent * guaranteed / 50 / processes) + 1 END)::integer
               AS recommended_max_locks_per_transaction, false AS exact, NULL::bigint AS holders_estimated
    FROM (SELECT count(DISTINCT tag) AS locks, count(*) AS holders FROM advisory._lock_table) AS used,
         (SELECT current_setting('max_locks_per_transaction')::bigint AS per_process,
                 current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint
                 + coalesce(current_setting('autovacuum_worker_slots', true), current_setting('autovacuum_max_workers'))::bigint
                 + current_setting('max_worker_processes')::bigint + current_setting('max_wal_senders')::bigint + 1 AS processes) AS server,
         LATERAL (SELECT per_process * processes AS guaranteed) AS size,
         LATERAL (SELECT round(100.0 * greatest(locks, holders / 2.0) / guaranteed, 2)::double precision AS percent) AS fullness;
COMMENT ON VIEW advisory.pressure IS 'how full the server''s lock table is; one row';

CREATE OR REPLACE VIEW advisory.pressure_by_backend AS
    SELECT l.pid, advisory._printable(coalesce(b.usename, p.owner)) AS role, b.application_name, b.state, l.locks, l.advisory_locks,
           CASE WHEN b.state = 'idle' THEN l.advisory_locks END AS session_locks, NULL::interval AS statement_cost, advisory._printable(p.gid) AS gid
    FROM (SELECT pid, virtualtransaction, count(*) AS locks, count(*) FILTER (WHERE locktype = 'advisory') AS advisory_locks
          FROM advisory._lock_table GROUP BY pid, virtualtransaction) AS l
    LEFT JOIN pg_stat_activity AS b ON b.pid = l.pid
    LEFT JOIN advisory._prepared AS p ON l.pid IS NULL AND p.virtualtransaction = l.virtualtransaction
    ORDER BY l.locks DESC, l.pid;
COMMENT ON VIEW advisory.pressure_by_backend IS 'use of the lock table by session and prepared transaction';

CREATE OR REPLACE VIEW advisory.pressure_by_type AS
    SELECT locktype AS type, count(DISTINCT tag) AS locks, count(*) AS holders FROM advisory._lock_table
    GROUP BY locktype ORDER BY locks DESC, type;
COMMENT ON VIEW advisory.pressure_by_type IS 'use of the server''s shared lock table by type of lock, largest first';

CREATE OR REPLACE FUNCTION advisory.can_fit(n integer) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF n IS NULL THEN
        RAISE EXCEPTION 'number of locks must not be null' USING ERRCODE = 'null_value_not_allowed';
    ELSIF n < 0 THEN
        RAISE EXCEPTION 'number of locks must not be negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN (SELECT n <= locks_guaranteed - greatest(locks_used, ceil(holders_used / 2.0)) FROM advisory.pressure);
END $$;
COMMENT ON FUNCTION advisory.can_fit(integer) IS 'would n more locks fit into the lock table? an estimate for now';

GRANT SELECT ON advisory.known_keys, advisory.locks, advisory.semaphores, advisory.waits, advisory.blockers, advisory.activity,
    advisory.pressure, advisory.pressure_by_backend, advisory.pressure_by_type, advisory._names, advisory._labels, advisory._key_facts,
    advisory._prepared, advisory._entry, advisory._edges, advisory._tree TO PUBLIC;

---- The public functions that are one call

DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT format(signature, prefix, timeout) AS signature, result, format(call, must, is_xact) AS call, format(comment, scope, ending) AS comment
        FROM (VALUES
            -- These in four forms, as the list of forms says.  In calls %1$L says whether it is an error if it is not free.
            ('%slock(namespace text, name text, timeout interval DEFAULT %s)', 'boolean',
                '_lock(%L, false, %L, namespace, name, advisory.key(namespace, name), timeout)', 'take an exclusive %s-level lock%s'),
            ('%slock_shared(namespace text, name text, timeout interval DEFAULT %s)', 'boolean',
                '_lock(%L, true, %L, namespace, name, advisory.key(namespace, name), timeout)', 'take a shared %s-level lock%s'),
            ('%slock_key(key bigint, timeout interval DEFAULT %s, label text DEFAULT NULL)', 'boolean',
                '_lock(%L, false, %L, NULL, label, key, timeout)', 'take an exclusive %s-level lock%s'),
            ('%slock_shared_key(key bigint, timeout interval DEFAULT %s, label text DEFAULT NULL)', 'boolean',
                '_lock(%L, true, %L, NULL, label, key, timeout)', 'take a shared %s-level lock%s'),
            ('%slock_all(namespace text, names text[], timeout interval DEFAULT %s)', 'boolean',
                '_take_all(%L, %L, namespace, names, timeout)', 'lock all of the list for the %s%s'),
            ('%slock_any(namespace text, names text[], wanted integer DEFAULT 1)', 'SETOF text',
                '_try_any(%2$L, namespace, names, false, NULL, wanted)', 'lock up to wanted of the list that are free, for the %s'),
            ('%sacquire(namespace text, name text, slots integer, timeout interval DEFAULT %s)', 'integer',
                '_acquire(%L, %L, namespace, name, slots, timeout)', 'take a slot for the %s%s'),
            ('%sacquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)', 'TABLE (name text, slot integer)',
                '_try_any(%2$L, namespace, names, true, slots, wanted)', 'take a slot of up to wanted names that have one, for the %s'),
            -- These once.
            ('await_lock(namespace text, name text, timeout interval DEFAULT NULL)', 'CALL',
                '_await(false, namespace, name, advisory.key(namespace, name), NULL, timeout, ignored)', 'take an exclusive session-level lock, waiting without a snapshot'),
            ('await_lock_shared(namespace text, name text, timeout interval DEFAULT NULL)', 'CALL',
                '_await(true, namespace, name, advisory.key(namespace, name), NULL, timeout, ignored)', 'take a shared session-level lock, waiting without a snapshot'),
            ('await_lock_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)', 'CALL',
                '_await(false, NULL, label, key, NULL, timeout, ignored)', 'take an exclusive session-level lock, waiting without a snapshot'),
            ('await_lock_shared_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)', 'CALL',
                '_await(true, NULL, label, key, NULL, timeout, ignored)', 'take a shared session-level lock, waiting without a snapshot'),
            ('await_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL, INOUT slot integer DEFAULT NULL)', 'CALL',
                '_await(false, namespace, name, advisory._slot_key(namespace, name, 0), slots, timeout, slot)', 'take a slot of a semaphore, waiting without a snapshot'),
            ('unlock(namespace text, name text)', 'boolean', '_unlock(false, namespace, name, advisory.key(namespace, name))',
                'release one exclusive session-level hold; false if there is none'),
            ('unlock_shared(namespace text, name text)', 'boolean', '_unlock(true, namespace, name, advisory.key(namespace, name))',
                'release one shared session-level hold; false if there is none'),
            ('unlock_key(key bigint)', 'boolean', '_unlock(false, NULL, NULL, key)', 'release one exclusive session-level hold; false if there is none'),
            ('unlock_shared_key(key bigint)', 'boolean', '_unlock(true, NULL, NULL, key)', 'release one shared session-level hold; false if there is none'),
            ('unlock_all(namespace text, name text)', 'integer', '_unlock_all(namespace, ARRAY[name], false)',
                'release every session-level hold of the lock, in both modes'),
            ('unlock_all(namespace text, names text[])', 'integer', '_unlock_all(namespace, names, true)',
                'release every session-level hold of each lock in the list'),
            ('holds(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), true)',
                'does this session hold the lock, in any mode and scope?'),
            ('holds_key(key bigint)', 'boolean', '_is_held(key, true)', 'does this session hold the lock, in any mode and scope?'),
            ('is_locked(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), false)',
                'does any session hold the lock: an observation, never a guard'),
            ('is_locked_key(key bigint)', 'boolean', '_is_held(key, false)', 'does any session hold the lock: an observation, never a guard')
        ) AS one (signature, result, call, comment)
        CROSS JOIN (VALUES ('', 'NULL', true, false, 'session', ': true, or error 55P03'), ('try_', '''0''', false, false, 'session', ' if it is free within timeout'),
            ('xact_', 'NULL', true, true, 'transaction', ': true, or error 55P03'), ('try_xact_', '''0''', false, true, 'transaction', ' if it is free within timeout')
        ) AS form (prefix, timeout, must, is_xact, scope, ending)
        WHERE CASE WHEN signature LIKE '%\_any(%' THEN prefix LIKE 'try%' WHEN signature LIKE '\%s%' THEN true ELSE prefix = '' END
    LOOP
        EXECUTE format(CASE f.result WHEN 'CALL' THEN 'CREATE OR REPLACE PROCEDURE advisory.%s LANGUAGE plpgsql AS %3$L'
                                     ELSE 'CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE sql COST 1000 AS %L' END, f.signature, f.result,
            format(CASE WHEN f.result = 'CALL' THEN 'DECLARE ignored integer; BEGIN CALL advisory.%s; END' WHEN f.result = 'SETOF text' THEN 'SELECT name FROM advisory.%s'
                        WHEN f.result LIKE 'TABLE%' THEN 'SELECT * FROM advisory.%s' ELSE 'SELECT advisory.%s' END, f.call));
        EXECUTE format('COMMENT ON ROUTINE advisory.%s IS %L', regexp_replace(f.signature, ' DEFAULT [^,)]+', '', 'g'), f.comment);
    END LOOP;
END $do$;

---- Ids as names

-- Every function of a name is there for bigint and uuid, too, and every function of a list for lists of these.  A list that a driver sends
-- without a type arrives as text.  Comments and privileges are those of the function for text.
DO $$
DECLARE
    f record;
    form record;
    call text;
    signature text;
BEGIN
    FOR f IN SELECT oid, proname, proretset, proacl, prokind = 'p' AS is_procedure, proargnames[1:pronargs] AS names,
                    pg_get_function_result(oid) AS result, pg_get_function_arguments(oid) AS arguments, obj_description(oid, 'pg_proc') AS comment
             FROM pg_proc
             WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_' AND proargnames[1] = 'namespace'
               AND (proargnames[2], proargtypes[1]) IN (('name', 'text'::regtype), ('names', 'text[]'::regtype)) LOOP
        FOR form IN SELECT * FROM (VALUES ('name', 'id bigint', 'id', 'bigint', '(advisory._check_list(namespace, ARRAY[id::pg_catalog.text], ''id''))[1]'),
                                          ('name', 'id uuid', 'id', 'uuid', '(advisory._check_list(namespace, ARRAY[id::pg_catalog.text], ''id''))[1]'),
                                          ('names', 'ids bigint[]', 'id', 'bigint', 'advisory._check_list(namespace, ids::pg_catalog.text[], ''id'')'),
                                          ('names', 'ids uuid[]', 'id', 'uuid', 'advisory._check_list(namespace, ids::pg_catalog.text[], ''id'')'),
                                          ('names', 'names text', 'name', 'text', 'names::pg_catalog.text[]')) AS v (old, new, out_name, type, value)
                    WHERE v.old = f.names[2] AND NOT (f.proname = 'unlock_all' AND type = 'text') LOOP
            signature := format('%I(%s)', f.proname, regexp_replace(f.arguments, '\mnames? text(\[\])?', form.new));
            call := format('advisory.%I(%s)', f.proname, (SELECT string_agg(CASE place WHEN 2 THEN form.value ELSE quote_ident(name) END, ', ' ORDER BY place)
                                                          FROM unnest(f.names) WITH ORDINALITY AS n (name, place)));
            IF f.is_procedure THEN
                EXECUTE format('CREATE OR REPLACE PROCEDURE advisory.%s LANGUAGE plpgsql AS %L', signature, format('BEGIN CALL %s; END', call));
            ELSE
                EXECUTE format('CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE sql %s AS %L', signature,
                    regexp_replace(regexp_replace(f.result, '^SETOF text', 'SETOF ' || form.type), '^TABLE\(name text', format('TABLE(%s %s', form.out_name, form.type)),
                    CASE f.proname WHEN 'key' THEN 'IMMUTABLE PARALLEL SAFE' ELSE 'COST 1000' END,
                    CASE WHEN f.result = 'SETOF text' THEN format('SELECT name::%s FROM %s AS name', form.type, call)
                         WHEN f.result LIKE 'TABLE(name text, %' THEN format('SELECT name::%s, slot FROM %s', form.type, call)
                         WHEN f.proretset THEN 'SELECT * FROM ' || call ELSE 'SELECT ' || call END);
            END IF;
            signature := regexp_replace(signature, ' DEFAULT [^,)]+', '', 'g');
            EXECUTE format('COMMENT ON ROUTINE advisory.%s IS %L', signature, f.comment);
            IF NOT has_function_privilege('public', f.oid, 'EXECUTE') THEN
                EXECUTE format('REVOKE ALL ON ROUTINE advisory.%s FROM PUBLIC', signature);
            END IF;
        END LOOP;
    END LOOP;
    FOR f IN SELECT oid::regprocedure AS name FROM pg_proc
             WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f' AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', f.name);
    END LOOP;
END $$;
COMMIT;
