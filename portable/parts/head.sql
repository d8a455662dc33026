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
