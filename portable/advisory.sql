-- advisory_ext, portable edition: named locks, semaphores, jobs and views for servers where no library can be installed.
--
--     psql -d mydb -f advisory.sql
--
-- The role that runs it owns the objects.  It needs no privilege but CREATE on the database, and no setting.  To remove all:
-- DROP SCHEMA advisory CASCADE.  To upgrade, run a newer file: rows of tables are kept.  doc/portable.md says what differs from the extension.
--
-- Nobody's search_path may replace an operator.  So each function in PL/pgSQL gets a search_path of its own, at the end of this file.
-- Procedures that COMMIT cannot have one, and SQL functions that the planner shall inline need none: these have no operators, and call
-- functions by their full names.  Other SQL functions are called by functions with a search_path only.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'this database has the extension advisory_ext',
            HINT = 'It has all that the portable edition has. Never use both editions in one database.';
    ELSIF to_regprocedure('advisory.edition()') IS NULL AND to_regnamespace('advisory') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'schema "advisory" exists, and is not that of the portable edition';
    ELSIF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'advisory' AND NOT pg_has_role(nspowner, 'USAGE')) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'schema "advisory" belongs to another role',
            HINT = 'Run this file as the role that ran it first.';
    END IF;
END $$;
CREATE SCHEMA IF NOT EXISTS advisory;
COMMENT ON SCHEMA advisory IS 'advisory locks by name: portable edition of advisory_ext';
GRANT USAGE ON SCHEMA advisory TO PUBLIC;

CREATE OR REPLACE FUNCTION advisory.edition() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 'portable' $$;
COMMENT ON FUNCTION advisory.edition() IS 'portable, or extension';
CREATE OR REPLACE FUNCTION advisory.version() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT '1.1' $$;
COMMENT ON FUNCTION advisory.version() IS 'version of the functions of this schema';

---- Names and keys

CREATE OR REPLACE FUNCTION advisory._check(value text, what text) RETURNS void LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF coalesce(value, '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = CASE WHEN value IS NULL THEN 'null_value_not_allowed' ELSE 'invalid_parameter_value' END,
            MESSAGE = what || CASE WHEN value IS NULL THEN ' must not be null' ELSE ' must not be empty' END;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._check_name(namespace text, name text) RETURNS void LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace');
    PERFORM advisory._check(name, 'name');
END $$;

-- An id as a name.
CREATE OR REPLACE FUNCTION advisory._id(namespace text, id text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace');
    PERFORM advisory._check(id, 'id');
    RETURN id;
END $$;

-- The same bytes in every database.  Only in SQL_ASCII can a text be something else than text.
CREATE OR REPLACE FUNCTION advisory._utf8(value text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF getdatabaseencoding() = 'SQL_ASCII' THEN
        PERFORM convert_from(convert_to(value, 'UTF8'), 'UTF8');
    END IF;
    RETURN convert_to(value, 'UTF8');
END $$;

CREATE OR REPLACE FUNCTION advisory._hash(value bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT ('x' || encode(substr(sha256(value), 1, 8), 'hex'))::bit(64)::bigint $$;

CREATE OR REPLACE FUNCTION advisory.key(name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check(name, 'name');
    RETURN advisory._hash(advisory._utf8(name));
END $$;
COMMENT ON FUNCTION advisory.key(text) IS 'key of a name without a namespace';

CREATE OR REPLACE FUNCTION advisory.key(namespace text, name text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name);
    RETURN advisory._hash(advisory._utf8(namespace) || '\x00' || advisory._utf8(name));
END $$;
COMMENT ON FUNCTION advisory.key(text, text) IS 'key of a namespace and a name';

-- The slots of a semaphore have 16,384 keys in a row.  The first one, slot 0, is the lock of the queue.
CREATE OR REPLACE FUNCTION advisory._slot_key(namespace text, name text, slot integer) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name);
    RETURN advisory._hash(advisory._utf8(namespace) || '\x00' || advisory._utf8(name) || '\x00') & -16384 | slot;
END $$;

-- What a lock is called in messages.
CREATE OR REPLACE FUNCTION advisory._display(namespace text, name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(coalesce(CASE WHEN length(namespace) > 256 THEN left(namespace, 256) || '...' ELSE namespace END || '/', '')
                          || CASE WHEN length(name) > 256 THEN left(name, 256) || '...' ELSE name END, '[[:cntrl:]]', '?', 'g')
$$;

---- Waiting

-- In milliseconds, rounded up; NULL for ever.  A month has 30 days, as in comparisons.
CREATE OR REPLACE FUNCTION advisory._milliseconds(timeout interval) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    days numeric;
    result numeric;
BEGIN
    IF timeout IS NULL OR timeout = '0' THEN
        RETURN extract(epoch FROM timeout);
    ELSIF timeout < '0' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'timeout must not be negative';
    END IF;
    IF isfinite(timeout) THEN
        days := (extract(year FROM timeout)::numeric * 12 + extract(month FROM timeout)::numeric) * 30 + extract(day FROM timeout)::numeric;
        result := ceil((days * 24 + extract(hour FROM timeout)::numeric) * 3600000 + extract(minute FROM timeout)::numeric * 60000
                       + extract(milliseconds FROM timeout)::numeric);
    END IF;
    IF result IS NULL OR result > 2147483647 THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow', MESSAGE = 'timeout is out of range',
            DETAIL = 'A timeout can be at most 2147483647 milliseconds.', HINT = 'To wait without a limit, pass NULL.';
    END IF;
    RETURN result;
END $$;

-- The setting lock_timeout in milliseconds; NULL if it is off.
CREATE OR REPLACE FUNCTION advisory._lock_timeout() RETURNS integer LANGUAGE sql STABLE AS
    $$ SELECT nullif(advisory._milliseconds(current_setting('lock_timeout')::interval), 0) $$;

-- All advisory locks and waiters of this database whose key is a bigint.
CREATE OR REPLACE VIEW advisory._keys AS
    SELECT (classid::bigint << 32) | objid::bigint AS key, pid, mode, granted, virtualtransaction
    FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
GRANT SELECT ON advisory._keys TO PUBLIC;

-- Does this session hold it in that mode, in any scope?
CREATE OR REPLACE FUNCTION advisory._is_mine(is_shared boolean, key bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM advisory._keys AS k
                   WHERE k.key = $2 AND pid = pg_backend_pid() AND granted AND mode = CASE WHEN is_shared THEN 'ShareLock' ELSE 'ExclusiveLock' END)
$$;

-- The built-in functions, chosen by mode and scope.
CREATE OR REPLACE FUNCTION advisory._try_once(is_shared boolean, is_xact boolean, key bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE WHEN is_xact AND is_shared THEN pg_try_advisory_xact_lock_shared(key)
                WHEN is_xact THEN pg_try_advisory_xact_lock(key)
                WHEN is_shared THEN pg_try_advisory_lock_shared(key)
                ELSE pg_try_advisory_lock(key) END
$$;

CREATE OR REPLACE FUNCTION advisory._wait(is_shared boolean, is_xact boolean, key bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF is_xact AND is_shared THEN PERFORM pg_advisory_xact_lock_shared(key);
    ELSIF is_xact THEN PERFORM pg_advisory_xact_lock(key);
    ELSIF is_shared THEN PERFORM pg_advisory_lock_shared(key);
    ELSE PERFORM pg_advisory_lock(key);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._unlock_once(is_shared boolean, key bigint) RETURNS boolean LANGUAGE sql AS
    $$ SELECT CASE WHEN is_shared THEN pg_advisory_unlock_shared(key) ELSE pg_advisory_unlock(key) END $$;

-- Take the lock.  Returns whether it was free within so many milliseconds, and within lock_timeout.  Without a wait, and in a wait without a
-- limit, there is no subtransaction.
CREATE OR REPLACE FUNCTION advisory._take(is_shared boolean, is_xact boolean, key bigint, milliseconds integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    setting text := current_setting('lock_timeout');
    most integer;
BEGIN
    IF advisory._try_once(is_shared, is_xact, key) THEN
        RETURN true;
    ELSIF milliseconds = 0 THEN
        RETURN false;
    END IF;
    most := least(milliseconds, advisory._lock_timeout());
    IF most IS NULL THEN
        PERFORM advisory._wait(is_shared, is_xact, key);
        RETURN true;
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', most::text, true);
        PERFORM advisory._wait(is_shared, is_xact, key);
        PERFORM set_config('lock_timeout', setting, true);
        RETURN true;
    EXCEPTION WHEN lock_not_available OR query_canceled THEN
        -- The lock can be granted at the very moment when the wait ends.  An error does not release it.  It was not held before: then
        -- nothing had to be waited for.
        IF NOT is_xact AND advisory._is_mine(is_shared, key) THEN
            PERFORM advisory._unlock_once(is_shared, key);
        END IF;
        IF SQLSTATE = '57014' THEN
            RAISE;
        END IF;
        RETURN false;
    END;
END $$;

-- Who holds or awaits one of these keys, a line each.
CREATE OR REPLACE FUNCTION advisory._describe(first_key bigint, slots integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT nullif(concat(string_agg(line, E'\n' ORDER BY place) FILTER (WHERE place <= 5),
                         E'\n' || nullif(max(place) - 5, -abs(max(place) - 5)) || ' more hold or wait for it.'), '')
    FROM (SELECT row_number() OVER (ORDER BY k.granted DESC, k.key, k.pid) AS place,
                 regexp_replace(
                     CASE WHEN k.pid IS NULL THEN 'A prepared transaction'
                          ELSE format('Process %s of role "%s"%s', k.pid, a.usename, ', application "' || nullif(a.application_name, '') || '",') END
                     || CASE WHEN slots IS NOT NULL AND k.granted AND k.key > first_key THEN ' has slot ' || (k.key - first_key)
                             WHEN slots IS NOT NULL THEN ' waits for a slot'
                             ELSE format(' %s it in %s mode', CASE WHEN k.granted THEN 'holds' ELSE 'waits for' END,
                                         CASE k.mode WHEN 'ShareLock' THEN 'shared' ELSE 'exclusive' END) END
                     || coalesce(CASE WHEN NOT k.granted THEN NULL
                                      WHEN a.wait_event_type = 'Lock' THEN '; it is waiting for a lock since ' || a.state_change
                                      ELSE '; it is ' || a.state || ' since ' || a.state_change END, '') || '.',
                     '[[:cntrl:]]', '?', 'g') AS line
          FROM advisory._keys AS k
          LEFT JOIN pg_stat_activity AS a ON a.pid = k.pid
          WHERE k.key BETWEEN first_key AND first_key + coalesce(slots, 0) AND k.pid IS DISTINCT FROM pg_backend_pid()) AS blocker
$$;

-- Error 55P03.  For a semaphore, slots says how many, and key is that of slot 0.
CREATE OR REPLACE FUNCTION advisory._raise_not_available(namespace text, name text, key bigint, slots integer, timeout interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    milliseconds integer := advisory._milliseconds(timeout);
    setting integer := advisory._lock_timeout();
    is_setting boolean := milliseconds IS DISTINCT FROM 0 AND setting <= coalesce(milliseconds, setting);
    most integer := CASE WHEN is_setting THEN setting ELSE milliseconds END;
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
        MESSAGE = format('could not obtain %s "%s" %s', CASE WHEN slots IS NULL THEN 'advisory lock' ELSE 'a slot of semaphore' END,
                         advisory._display(namespace, coalesce(name, key::text)),
                         CASE WHEN coalesce(most, 0) = 0 THEN 'without waiting'
                              ELSE format('within %s%s', CASE WHEN is_setting THEN 'lock_timeout of ' END,
                                          CASE WHEN most % 1000 = 0 THEN most / 1000 || ' s' ELSE most || ' ms' END) END),
        DETAIL = coalesce(advisory._describe(key, slots), 'Nobody holds it any more.'),
        HINT = CASE WHEN namespace IS NULL THEN format('To see who holds it: SELECT * FROM advisory.holders_key(%s).', key)
                    ELSE format('To see who %s: SELECT * FROM advisory.holders(%L, %L).', CASE WHEN slots IS NULL THEN 'holds it' ELSE 'has its slots' END,
                                left(namespace, 256), left(name, 256)) END,
        SCHEMA = coalesce(namespace, ''), CONSTRAINT = coalesce(name, key::text);
END $$;

-- What the public functions call.  For locks by key, namespace is null, and name is the label.
CREATE OR REPLACE FUNCTION advisory._try(is_shared boolean, is_xact boolean, namespace text, name text, key bigint, timeout interval) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(key::text, 'key'), advisory._check(coalesce(namespace, name, 'no label'), 'label');
    RETURN advisory._take(is_shared, is_xact, key, advisory._milliseconds(timeout));
END $$;

CREATE OR REPLACE FUNCTION advisory._lock(is_shared boolean, is_xact boolean, namespace text, name text, key bigint, timeout interval) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT advisory._try(is_shared, is_xact, namespace, name, key, timeout) THEN
        PERFORM advisory._raise_not_available(namespace, name, key, NULL, timeout);
    END IF;
    RETURN true;
END $$;

---- Release and ask

-- The built-in function's own warning does not bear the name.
CREATE OR REPLACE FUNCTION advisory._unlock_quietly(is_shared boolean, key bigint) RETURNS boolean LANGUAGE sql
    SET client_min_messages = error AS $$ SELECT advisory._unlock_once(is_shared, key) $$;

CREATE OR REPLACE FUNCTION advisory._unlock(is_shared boolean, namespace text, name text, key bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(key::text, 'key');
    IF advisory._unlock_quietly(is_shared, key) THEN
        RETURN true;
    END IF;
    RAISE WARNING 'you don''t own a lock of type % on "%"', CASE WHEN is_shared THEN 'ShareLock' ELSE 'ExclusiveLock' END,
        advisory._display(namespace, coalesce(name, key::text))
        USING DETAIL = CASE WHEN advisory._is_mine(NOT is_shared, key) THEN 'This session holds it in the other mode.'
                            WHEN advisory._is_mine(is_shared, key) THEN 'This session holds it until the end of the transaction.'
                            ELSE 'This session does not hold it.' END;
    RETURN false;
END $$;

-- The list, if it has no nulls and no empty names.
CREATE OR REPLACE FUNCTION advisory._check_list(namespace text, names text[], what text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM advisory._check(namespace, 'namespace');
    IF names IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'list of names must not be null';
    END IF;
    PERFORM advisory._check(element, what) FROM unnest(names) AS element;
    RETURN names;
END $$;

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, names text[]) RETURNS integer LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    released integer := 0;
    one record;
BEGIN
    FOR one IN SELECT DISTINCT advisory.key(namespace, element) AS key, is_shared
               FROM unnest(advisory._check_list(namespace, names, 'name')) AS element, unnest(ARRAY[false, true]) AS is_shared LOOP
        WHILE advisory._is_mine(one.is_shared, one.key) AND advisory._unlock_quietly(one.is_shared, one.key) LOOP
            released := released + 1;
        END LOOP;
    END LOOP;
    RETURN released;
END $$;
COMMENT ON FUNCTION advisory.unlock_all(text, text[]) IS 'release every session-level hold of each lock in the list';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, name text) RETURNS integer LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    released integer;
BEGIN
    PERFORM advisory._check_name(namespace, name);
    released := advisory.unlock_all(namespace, ARRAY[name]);
    -- In a finally block nobody would notice that an untyped list became one name.
    IF released = 0 AND name LIKE '{_%}' AND NOT advisory._is_mine(false, advisory.key(namespace, name)) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'this session does not hold an advisory lock of that name, which looks like a list',
            HINT = 'To release a list of locks, cast it: unlock_all(namespace, list::text[]).';
    END IF;
    RETURN released;
END $$;
COMMENT ON FUNCTION advisory.unlock_all(text, text) IS 'release every session-level hold of the lock, in both modes';

CREATE OR REPLACE FUNCTION advisory._is_held(key bigint, is_by_me boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check(key::text, 'key');
    RETURN EXISTS (SELECT FROM advisory._keys AS k WHERE k.key = _is_held.key AND granted AND (NOT is_by_me OR pid = pg_backend_pid()));
END $$;

---- Several locks at once

-- Take all of them, in the order of their keys, or none.  Returns the name that was not free in time, or NULL.
CREATE OR REPLACE FUNCTION advisory._take_all(is_xact boolean, namespace text, names text[], timeout interval) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    most integer := advisory._milliseconds(timeout);
    deadline timestamptz;
    one record;
    taken bigint[] := '{}';
    busy text;
BEGIN
    names := advisory._check_list(namespace, names, 'name');
    IF most IS DISTINCT FROM 0 THEN
        most := least(most, advisory._lock_timeout());
        deadline := clock_timestamp() + most * interval '1 ms';
    END IF;
    BEGIN
        FOR one IN SELECT DISTINCT ON (key) key, element
                   FROM (SELECT advisory.key(namespace, element) AS key, element FROM unnest(names) AS element) AS wanted ORDER BY key LOOP
            IF deadline IS NOT NULL THEN
                most := greatest(ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000), 0);
            END IF;
            IF NOT advisory._take(false, is_xact, one.key, most) THEN
                busy := one.element;
                RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = 'busy';
            END IF;
            taken := taken || one.key;
        END LOOP;
        RETURN NULL;
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        -- The end of this block has released the transaction-level ones.
        PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key WHERE NOT is_xact;
        IF busy IS NULL THEN
            RAISE;
        END IF;
        RETURN busy;
    END;
END $$;

CREATE OR REPLACE FUNCTION advisory._lock_all(is_xact boolean, namespace text, names text[], timeout interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    busy text := advisory._take_all(is_xact, namespace, names, timeout);
BEGIN
    IF busy IS NOT NULL THEN
        PERFORM advisory._raise_not_available(namespace, busy, advisory.key(namespace, busy), NULL, timeout);
    END IF;
    RETURN true;
END $$;

---- Semaphores

CREATE OR REPLACE FUNCTION advisory._check_slot(slot integer, what text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM advisory._check(slot::text, what);
    IF slot NOT BETWEEN 1 AND 16000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = what || ' must be between 1 and 16000';
    END IF;
END $$;

-- A slot that nobody has, this session included; NULL if there is none.  base is the key of slot 0.
CREATE OR REPLACE FUNCTION advisory._take_slot(is_xact boolean, base bigint, slots integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    slot integer;
BEGIN
    FOR slot IN SELECT number FROM generate_series(1, slots) AS number
                EXCEPT SELECT (key - base)::integer FROM advisory._keys WHERE key BETWEEN base + 1 AND base + slots AND granted
                ORDER BY 1 LOOP
        IF advisory._try_once(false, is_xact, base + slot) THEN
            RETURN slot;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- A slot, or, if none is free in time, NULL or an error.
CREATE OR REPLACE FUNCTION advisory._acquire(must boolean, is_xact boolean, namespace text, name text, slots integer, timeout interval)
    RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    base bigint := advisory._slot_key(namespace, name, 0);
    most integer := advisory._milliseconds(timeout);
    deadline timestamptz;
    slot integer;
BEGIN
    PERFORM advisory._check_slot(slots, 'slots');
    -- Nobody overtakes those who wait.  The first of them holds the lock of the queue.
    IF NOT advisory._is_held(base, false) THEN
        slot := advisory._take_slot(is_xact, base, slots);
    END IF;
    IF slot IS NULL AND most IS DISTINCT FROM 0 THEN
        most := least(most, advisory._lock_timeout());
        deadline := coalesce(clock_timestamp() + most * interval '1 ms', 'infinity');
        BEGIN
            IF advisory._take(false, true, base, most) THEN
                LOOP
                    slot := advisory._take_slot(false, base, slots);
                    EXIT WHEN slot IS NOT NULL OR clock_timestamp() >= deadline;
                    PERFORM pg_sleep(0.01);
                END LOOP;
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = 'leave the queue';
        EXCEPTION
            -- The end of this block releases the lock of the queue, whatever has happened.
            WHEN lock_not_available THEN
                NULL;
            WHEN query_canceled OR OTHERS THEN
                PERFORM pg_advisory_unlock(base + slot) WHERE slot IS NOT NULL;
                RAISE;
        END;
        IF is_xact AND slot IS NOT NULL THEN
            PERFORM pg_advisory_xact_lock(base + slot), pg_advisory_unlock(base + slot);
        END IF;
    END IF;
    IF must AND slot IS NULL THEN
        PERFORM advisory._raise_not_available(namespace, name, base, slots, timeout);
    END IF;
    RETURN slot;
END $$;

-- Up to wanted of the list that are free: their locks, or with slots, a slot of each.
CREATE OR REPLACE FUNCTION advisory._try_any(is_xact boolean, namespace text, names text[], is_for_slots boolean, slots integer, wanted integer)
    RETURNS TABLE (name text, slot integer) LANGUAGE plpgsql AS $$
DECLARE
    taken bigint[] := '{}';
BEGIN
    names := advisory._check_list(namespace, names, 'name');
    IF is_for_slots THEN
        PERFORM advisory._check_slot(slots, 'slots');
    END IF;
    PERFORM advisory._check(wanted::text, 'wanted');
    IF wanted < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'wanted must be at least 1';
    END IF;
    FOR name IN SELECT element FROM unnest(names) WITH ORDINALITY AS list (element, place) GROUP BY element ORDER BY min(place) LOOP
        EXIT WHEN cardinality(taken) = wanted;
        IF is_for_slots THEN
            slot := advisory._acquire(false, is_xact, namespace, name, slots, '0');
            CONTINUE WHEN slot IS NULL;
        ELSE
            CONTINUE WHEN NOT advisory._take(false, is_xact, advisory.key(namespace, name), 0);
        END IF;
        taken := taken || CASE WHEN is_for_slots THEN advisory._slot_key(namespace, name, slot) ELSE advisory.key(namespace, name) END;
        RETURN NEXT;
    END LOOP;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key WHERE NOT is_xact;
    RAISE;
END $$;

CREATE OR REPLACE FUNCTION advisory.release(namespace text, name text, slot integer DEFAULT NULL) RETURNS boolean LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    base bigint := advisory._slot_key(namespace, name, 0);
    mine bigint;
BEGIN
    IF slot IS NOT NULL THEN
        PERFORM advisory._check_slot(slot, 'slot');
    END IF;
    FOR mine IN SELECT key FROM advisory._keys
                WHERE key BETWEEN base + coalesce(slot, 1) AND base + coalesce(slot, 16000) AND pid = pg_backend_pid() AND granted
                ORDER BY key DESC LOOP
        IF advisory._unlock_quietly(false, mine) THEN
            RETURN true;
        END IF;
    END LOOP;
    RAISE WARNING 'you don''t own % semaphore "%"', coalesce('slot ' || slot || ' of', 'a slot of'), advisory._display(namespace, name);
    RETURN false;
END $$;
COMMENT ON FUNCTION advisory.release(text, text, integer) IS 'give back a slot of this session (NULL: the one with the greatest number)';

---- Waiting without a snapshot

CREATE OR REPLACE FUNCTION advisory._check_await() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'active_sql_transaction', MESSAGE = 'advisory.await_*() cannot wait without a snapshot here',
            DETAIL = 'The transaction has written.', HINT = 'Call it before the transaction writes, or use advisory.lock() or advisory.acquire().';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._deadline(timeout interval) RETURNS timestamptz LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(clock_timestamp() + least(advisory._milliseconds(timeout), advisory._lock_timeout()) * interval '1 ms', 'infinity')
$$;

-- Sleeps until the next look, and returns how long the next sleep may be; NULL if it is too late.
CREATE OR REPLACE FUNCTION advisory._pause(seconds double precision, deadline timestamptz) RETURNS double precision LANGUAGE plpgsql AS $$
BEGIN
    IF clock_timestamp() >= deadline THEN
        RETURN NULL;
    END IF;
    PERFORM pg_sleep(CASE WHEN isfinite(deadline) THEN least(seconds, extract(epoch FROM deadline - clock_timestamp())) ELSE seconds END);
    RETURN least(seconds * 1.5, 0.1);
END $$;

CREATE OR REPLACE PROCEDURE advisory._await(is_shared boolean, namespace text, name text, key bigint, timeout interval) LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(timeout);
    pause double precision := 0.001;
BEGIN
    PERFORM advisory._check_await();
    LOOP
        -- Each COMMIT ends the snapshot.
        COMMIT;
        EXIT WHEN advisory._try(is_shared, false, namespace, name, key, '0');
        pause := advisory._pause(pause, deadline);
        IF pause IS NULL THEN
            PERFORM advisory._raise_not_available(namespace, name, key, NULL, timeout);
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE PROCEDURE advisory.await_lock(namespace text, name text, timeout interval DEFAULT NULL) LANGUAGE plpgsql AS
    $$ BEGIN CALL advisory._await(false, namespace, name, advisory.key(namespace, name), timeout); END $$;
COMMENT ON PROCEDURE advisory.await_lock(text, text, interval) IS 'take an exclusive session-level lock, waiting without a snapshot';
CREATE OR REPLACE PROCEDURE advisory.await_lock_shared(namespace text, name text, timeout interval DEFAULT NULL) LANGUAGE plpgsql AS
    $$ BEGIN CALL advisory._await(true, namespace, name, advisory.key(namespace, name), timeout); END $$;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, text, interval) IS 'take a shared session-level lock, waiting without a snapshot';
CREATE OR REPLACE PROCEDURE advisory.await_lock_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL) LANGUAGE plpgsql AS
    $$ BEGIN CALL advisory._await(false, NULL, label, key, timeout); END $$;
COMMENT ON PROCEDURE advisory.await_lock_key(bigint, interval, text) IS 'take an exclusive session-level lock, waiting without a snapshot';
CREATE OR REPLACE PROCEDURE advisory.await_lock_shared_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL) LANGUAGE plpgsql AS
    $$ BEGIN CALL advisory._await(true, NULL, label, key, timeout); END $$;
COMMENT ON PROCEDURE advisory.await_lock_shared_key(bigint, interval, text) IS 'take a shared session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL, INOUT slot integer DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(timeout);
    pause double precision := 0.001;
BEGIN
    PERFORM advisory._check_await();
    LOOP
        COMMIT;
        slot := advisory.try_acquire(namespace, name, slots);
        EXIT WHEN slot IS NOT NULL;
        pause := advisory._pause(pause, deadline);
        IF pause IS NULL THEN
            PERFORM advisory._raise_not_available(namespace, name, advisory._slot_key(namespace, name, 0), slots, timeout);
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE advisory.await_acquire(text, text, integer, interval, integer) IS 'take a slot of a semaphore, waiting without a snapshot';

---- The public functions that are one call

DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT * FROM (VALUES
            ('unlock(namespace text, name text)', 'boolean', '_unlock(false, namespace, name, advisory.key(namespace, name))',
             'release one exclusive session-level hold; false if there is none'),
            ('unlock_shared(namespace text, name text)', 'boolean', '_unlock(true, namespace, name, advisory.key(namespace, name))',
             'release one shared session-level hold; false if there is none'),
            ('unlock_key(key bigint)', 'boolean', '_unlock(false, NULL, NULL, key)', 'release one exclusive session-level hold; false if there is none'),
            ('unlock_shared_key(key bigint)', 'boolean', '_unlock(true, NULL, NULL, key)', 'release one shared session-level hold; false if there is none'),
            ('holds(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), true)', 'does this session hold the lock, in any mode and scope?'),
            ('holds_key(key bigint)', 'boolean', '_is_held(key, true)', 'does this session hold the lock, in any mode and scope?'),
            ('is_locked(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), false)',
             'does any session hold the lock: an observation, never a guard'),
            ('is_locked_key(key bigint)', 'boolean', '_is_held(key, false)', 'does any session hold the lock: an observation, never a guard'),
            ('lock_all(namespace text, names text[], timeout interval DEFAULT NULL)', 'boolean', '_lock_all(false, namespace, names, timeout)',
             'lock all of the list for the session: true, or error 55P03 and none'),
            ('xact_lock_all(namespace text, names text[], timeout interval DEFAULT NULL)', 'boolean', '_lock_all(true, namespace, names, timeout)',
             'lock all of the list for the transaction: true, or error 55P03'),
            ('try_lock_all(namespace text, names text[], timeout interval DEFAULT ''0'')', 'boolean', '_take_all(false, namespace, names, timeout) IS NULL',
             'lock all of the list for the session if all are free within timeout'),
            ('try_xact_lock_all(namespace text, names text[], timeout interval DEFAULT ''0'')', 'boolean', '_take_all(true, namespace, names, timeout) IS NULL',
             'lock all of the list for the transaction if free within timeout'),
            ('try_lock_any(namespace text, names text[], wanted integer DEFAULT 1)', 'SETOF text', '_try_any(false, namespace, names, false, NULL, wanted)',
             'lock up to wanted of the list that are free, for the session'),
            ('try_xact_lock_any(namespace text, names text[], wanted integer DEFAULT 1)', 'SETOF text', '_try_any(true, namespace, names, false, NULL, wanted)',
             'lock up to wanted of the list that are free, for the transaction'),
            ('acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL)', 'integer',
             '_acquire(true, false, namespace, name, slots, timeout)', 'take a slot of a semaphore for the session, or error 55P03'),
            ('xact_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL)', 'integer',
             '_acquire(true, true, namespace, name, slots, timeout)', 'take a slot of a semaphore for the transaction, or error 55P03'),
            ('try_acquire(namespace text, name text, slots integer, timeout interval DEFAULT ''0'')', 'integer',
             '_acquire(false, false, namespace, name, slots, timeout)', 'take a slot for the session if one is free within timeout, or NULL'),
            ('try_xact_acquire(namespace text, name text, slots integer, timeout interval DEFAULT ''0'')', 'integer',
             '_acquire(false, true, namespace, name, slots, timeout)', 'take a slot for the transaction if one is free within timeout, or NULL'),
            ('try_acquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)', 'TABLE (name text, slot integer)',
             '_try_any(false, namespace, names, true, slots, wanted)', 'take a slot of each of the first names that have one free'),
            ('try_xact_acquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)', 'TABLE (name text, slot integer)',
             '_try_any(true, namespace, names, true, slots, wanted)', 'the same for the transaction: a slot of each name that has one free')
        ) AS one (signature, result, call, comment)
        UNION ALL
        -- Eight functions by name, and eight by key.
        SELECT concat(prefix, 'xact_' || CASE WHEN is_xact THEN '' END, 'lock', '_shared' || CASE WHEN is_shared THEN '' END,
                      CASE WHEN by_key THEN '_key(key bigint' ELSE '(namespace text, name text' END,
                      ', timeout interval DEFAULT ', CASE prefix WHEN '' THEN 'NULL' ELSE '''0''' END, ', label text DEFAULT NULL' || CASE WHEN by_key THEN '' END, ')'),
               'boolean', format('%s(%L, %L, %s, timeout)', CASE prefix WHEN '' THEN '_lock' ELSE '_try' END, is_shared, is_xact,
                                 CASE WHEN by_key THEN 'NULL, label, key' ELSE 'namespace, name, advisory.key(namespace, name)' END),
               format('take %s %s-level lock%s', CASE WHEN is_shared THEN 'a shared' ELSE 'an exclusive' END, CASE WHEN is_xact THEN 'transaction' ELSE 'session' END,
                      CASE prefix WHEN '' THEN ': true, or error 55P03' ELSE ' if it is free within timeout' END)
        FROM unnest(ARRAY['', 'try_']) AS prefix, unnest(ARRAY[false, true]) AS is_shared, unnest(ARRAY[false, true]) AS is_xact, unnest(ARRAY[false, true]) AS by_key
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE sql COST 1000 AS %L', f.signature, f.result,
                       format(CASE WHEN f.result = 'SETOF text' THEN 'SELECT name FROM advisory.%s' WHEN f.result LIKE 'TABLE%' THEN 'SELECT * FROM advisory.%s'
                                   ELSE 'SELECT advisory.%s' END, f.call));
        EXECUTE format('COMMENT ON FUNCTION advisory.%s IS %L', regexp_replace(f.signature, ' DEFAULT [^,)]+', '', 'g'), f.comment);
    END LOOP;
END $do$;

---- Ids as names

-- Every function of a name is there for bigint and uuid, too, and every function of a list for lists of these.  A list that a driver sends
-- without a type arrives as text.
DO $$
DECLARE
    f record;
    form record;
    call text;
BEGIN
    FOR f IN SELECT oid, proname, prokind, proretset, proacl, pronargs, proargnames[1:pronargs] AS names, pg_get_function_result(oid) AS result,
                    pg_get_function_arguments(oid) AS arguments, obj_description(oid, 'pg_proc') AS comment
             FROM pg_proc
             WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_' AND proargnames[1] = 'namespace'
               AND (proargnames[2], proargtypes[1]) IN (('name', 'text'::regtype), ('names', 'text[]'::regtype)) LOOP
        FOR form IN SELECT * FROM (VALUES ('name', 'id bigint', 'id', 'bigint', 'advisory._id(namespace, id::pg_catalog.text)'),
                                          ('name', 'id uuid', 'id', 'uuid', 'advisory._id(namespace, id::pg_catalog.text)'),
                                          ('names', 'ids bigint[]', 'id', 'bigint', 'advisory._check_list(namespace, ids::pg_catalog.text[], ''id'')'),
                                          ('names', 'ids uuid[]', 'id', 'uuid', 'advisory._check_list(namespace, ids::pg_catalog.text[], ''id'')'),
                                          ('names', 'names text', 'name', 'text', 'names::pg_catalog.text[]')) AS v (old, new, out_name, type, value)
                    WHERE v.old = f.names[2] AND NOT (f.proname = 'unlock_all' AND type = 'text') LOOP
            call := format('advisory.%I(%s)', f.proname,
                           (SELECT string_agg(CASE place WHEN 2 THEN form.value ELSE quote_ident(name) END, ', ' ORDER BY place)
                            FROM unnest(f.names) WITH ORDINALITY AS n (name, place)));
            EXECUTE format('CREATE OR REPLACE %s advisory.%I(%s) %s AS %L',
                CASE f.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, f.proname, regexp_replace(f.arguments, '\mnames? text(\[\])?', form.new),
                CASE WHEN f.prokind = 'p' THEN 'LANGUAGE plpgsql'
                     ELSE format('RETURNS %s LANGUAGE sql %s', regexp_replace(regexp_replace(f.result, '^SETOF text', 'SETOF ' || form.type),
                                                                               '^TABLE\(name text', 'TABLE(' || form.out_name || ' ' || form.type),
                                 CASE f.proname WHEN 'key' THEN 'IMMUTABLE PARALLEL SAFE' ELSE 'COST 1000' END) END,
                CASE WHEN f.prokind = 'p' THEN 'BEGIN CALL ' || call || '; END'
                     WHEN f.result = 'SETOF text' THEN format('SELECT name::%s FROM %s AS name', form.type, call)
                     WHEN f.result LIKE 'TABLE(name text, %' THEN format('SELECT name::%s, slot FROM %s', form.type, call)
                     WHEN f.proretset THEN 'SELECT * FROM ' || call
                     ELSE 'SELECT ' || call END);
        END LOOP;
    END LOOP;
    FOR f IN SELECT oid::regprocedure AS name FROM pg_proc
             WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f' AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', f.name);
    END LOOP;
END $$;
COMMIT;
