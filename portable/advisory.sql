-- advisory_ext, portable edition: locks by name, semaphores, jobs, leases and views for servers
-- where no library can be installed.
--
--     psql -d mydb -v ON_ERROR_STOP=1 -f advisory.sql
--
-- Without ON_ERROR_STOP psql would go on after an error: the first one says what is wrong, all
-- others follow from it, and nothing has changed.  The last statement says what the database has.
--
-- The role that runs it owns the objects.  It needs no privilege but CREATE on the database, and no
-- setting.  To remove all: DROP SCHEMA advisory CASCADE.  To upgrade, run a newer file: rows of
-- tables are kept.  doc/portable.md says what differs from the extension.
--
-- "make portable" joins this file of portable/parts and of sql/surface.  Change those.
--
-- Nobody's search_path may replace an operator.  So functions in PL/pgSQL get a search_path of
-- their own, at the end of this file.  Procedures that COMMIT cannot have one, SQL functions that
-- the planner shall inline must not, and for a few it would take too long: these write operators
-- and functions with their schema.  Other SQL functions without one are called by functions with
-- one only.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL search_path = pg_catalog, advisory, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;
SET LOCAL standard_conforming_strings = on;
SET LOCAL quote_all_identifiers = off;

-- Only where pg_locks shows each lock at once, and it can be released.  The first is advisory/load:
-- loads come one after the other.  The keys of the others are this session's own.
DO $$
DECLARE
    name text;
    key bigint;
    is_right boolean;
    is_released boolean := true;
BEGIN
    FOR name, key IN
        SELECT 'pg_' || f, 3110684617034927664 + (i > 1)::integer * (8 * pg_backend_pid() + i)
        FROM unnest('{advisory_xact_lock,advisory_xact_lock_shared,try_advisory_xact_lock,
                      try_advisory_xact_lock_shared,advisory_lock,advisory_lock_shared,
                      try_advisory_lock,try_advisory_lock_shared}'::text[])
            WITH ORDINALITY AS l (f, i)
    LOOP
        BEGIN
            EXECUTE format('SELECT %s(%s)', name, key);
        EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
            CONTINUE;    -- What says no does not lie.
        END;

        is_right := granted AND mode = CASE WHEN name LIKE '%shared' THEN 'ShareLock'
                                            ELSE 'ExclusiveLock' END
            FROM pg_locks
            WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 1
                AND (classid::bigint << 32) | objid::bigint = key;
        IF name NOT LIKE '%xact%' THEN
            EXECUTE format('SELECT pg_advisory_un%s(%s)', substring(name, 'lock.*'), key)
            INTO is_released;
        END IF;
        IF (is_right AND is_released) IS NOT TRUE THEN
            RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
                MESSAGE = name || '() does not do here what it does in PostgreSQL',
                DETAIL = 'pg_locks must show a lock at once, and the session must be able to '
                         'release it. Otherwise two sessions would get the same slot of a '
                         'semaphore, and holds() would be wrong.',
                HINT = 'doc/portable.md says what to use on other servers.';
        END IF;
    END LOOP;
END $$;

SET LOCAL lock_timeout = '100ms';   -- Others cannot use it while this file waits for them.

-- The schema: new, or that of an older file.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'this database has the extension advisory_ext',
            HINT = 'It has all that the portable edition has. '
                   'Never use both editions in one database.';
    ELSIF EXISTS (SELECT FROM pg_namespace
                  WHERE nspname = 'advisory' AND pg_get_userbyid(nspowner) <> current_user) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = 'schema "advisory" belongs to another role',
            HINT = 'Run this file as that role.';
    ELSIF to_regnamespace('advisory') IS NULL THEN
        IF NOT has_database_privilege(current_database(), 'CREATE') THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
                MESSAGE = format('role %I may not create a schema in database %I', current_user,
                                 current_database()),
                HINT = format('Let its owner GRANT CREATE ON DATABASE %I TO %I. Nothing has '
                              'changed. What psql reports after this follows from it.',
                              current_database(), current_user);
        END IF;
        CREATE SCHEMA advisory;
    ELSIF to_regprocedure('advisory.edition()') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'schema "advisory" exists, and is not that of the portable edition';
    END IF;
END $$;

-- What follows, up to the comment on the schema, finds nothing in a new one.

-- Nobody may wait for this file while it waits for him.  So it locks all before it changes
-- anything, in the order in which calls do: views before what they read.  If somebody is in the
-- way, it begins again.  (LOCK TABLE would lock the views of the server, too.)
DO $$
DECLARE
    old record;
BEGIN
    FOR attempts_left IN REVERSE 20..0 LOOP
        BEGIN
            FOR old IN
                SELECT oid::regclass AS name
                FROM pg_class
                WHERE relnamespace = 'advisory'::regnamespace AND relkind IN ('r', 'v')
                    AND relowner = quote_ident(current_user)::regrole
                ORDER BY relkind = 'r' OR relname LIKE '\_%', array_position(
                    '{_blockers,_tree,_edges,_entry,_sets,_shown_leases,key_labels,_keys,_own,_uses,
                      _prepared,_request}', relname::text), relname
            LOOP
                EXECUTE format('ALTER TABLE %s OWNER TO CURRENT_USER', old.name);
            END LOOP;
            EXIT;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempts_left = 0 THEN
                RAISE;
            END IF;
        END;
    END LOOP;
END $$;

-- What an older file has made otherwise: arguments or results without this.
DO $$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT p.oid::regprocedure AS name,
               CASE WHEN proname ~ '^_serve_' THEN ' CASCADE' END AS cascades    -- Triggers.
        FROM pg_proc AS p
        JOIN (VALUES ('slots', '{holders,holders_key,_holders_of}'),
                     ('time_zone', '{claim,run,_window,_begin_job}'),
                     ('wanted', '{_acquire,_take_slot,_raise_not_available}'),
                     ('kind', '{terminate_holder,terminate_holder_key}'),
                     ('only_kind', '{_terminate}'),
                     ('most', '{_check}'), ('instead', '{_pause}'), ('with', '{_end_lease}'),
                     ('max_hold', '{lease,try_lease,await_lease,_lease,_await_lease,_request}'),
                     ('is_for_slots', '{_lease_queue}'), ('lock', '{_mark_lease}'),
                     ('last_token', '{_lease_token}'), ('asked', '{_check_lease_wait}'),
                     -- These have gone.  Every role could call most of them as the owner.
                     ('never', '{_caller,_check_answer,_check_await,_check_length,_check_table,
                        _claim,_commit_synchronously,_describe_claim,_finish_claim,
                        _lock_timeout,_no_token,_raise_lease_taken,_request_claim,
                        _request_lease,_serve_claim,_serve_lease,_utf8}'))
            AS new (has, functions) ON proname = ANY (functions::text[])
        WHERE pronamespace = 'advisory'::regnamespace
            AND concat(pg_get_function_arguments(p.oid), ' -> ', pg_get_function_result(p.oid))
                !~ ('\m' || has || '\M')
    LOOP
        EXECUTE format('DROP ROUTINE %s%s', old.name, old.cascades);
    END LOOP;
END $$;

DROP VIEW IF EXISTS advisory._claim_request, advisory._lease_request;

-- What was there before keeps its privileges: 90-privileges.sql reads this.
DO $$
BEGIN
    IF to_regprocedure('advisory.edition()') IS NOT NULL THEN
        PERFORM set_config('advisory_portable.known', string_agg(oid::text, ' '), true)
        FROM (SELECT objid
              FROM pg_depend
              WHERE (refclassid, refobjid) = ('pg_namespace'::regclass, 'advisory'::regnamespace)
              UNION ALL
              SELECT 'advisory'::regnamespace) AS known (oid);
    END IF;
END $$;
COMMENT ON SCHEMA advisory IS 'advisory locks by name: portable edition of advisory_ext';

CREATE OR REPLACE FUNCTION advisory.edition()
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'portable' $$;
COMMENT ON FUNCTION advisory.edition() IS 'portable, or extension';

CREATE OR REPLACE FUNCTION advisory.version()
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT '1.0' $$;
COMMENT ON FUNCTION advisory.version() IS 'version of the functions of this schema';

-- Checks.

-- The error, unless ok.  Never IMMUTABLE: the planner would call it early.
CREATE OR REPLACE FUNCTION advisory._require(ok boolean, state text, message text,
                                             detail text DEFAULT NULL, hint text DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    IF ok IS NOT FALSE THEN
        RETURN;
    END IF;
    -- RAISE takes no null DETAIL or HINT.
    IF detail IS NULL AND hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    ELSIF detail IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSE
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
    END IF;
END $$;

-- The error if the value is null or empty.  What is kept in a table has at most so many bytes.
CREATE OR REPLACE FUNCTION advisory._check(value text, what text, most integer DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    IF value IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22004', MESSAGE = what || ' must not be null';
    ELSIF value = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = what || ' must not be empty';
    ELSIF octet_length(value) > most THEN
        RAISE EXCEPTION USING ERRCODE = '22001', MESSAGE = what || ' is too long',
            DETAIL = format('It can have at most %s bytes.', most);
    END IF;
END $$;

-- The error if this is too long for the name of a lease or of a claim, which is kept in a table.
-- advisory.key() has checked the rest.
CREATE OR REPLACE FUNCTION advisory._check_kept(namespace text, name text, of_what text)
    RETURNS void
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(namespace, 'namespace of a ' || of_what, 1024);
    PERFORM _check(name, 'name of a ' || of_what, 1024);
END $$;

-- The list, if it has no nulls and no empty names.
CREATE OR REPLACE FUNCTION advisory._check_list(namespace text, names text[], what text)
    RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(namespace, 'namespace');
    IF names IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22004', MESSAGE = 'list of names must not be null';
    END IF;
    PERFORM _check(element, what) FROM unnest(names) AS element;
    RETURN names;
END $$;

-- Tells a session on a standby, once, that locks there are its own.  DISCARD ALL resets a setting,
-- so after it the next client of a session pooler is told, too.  Always true, for conditions.
CREATE OR REPLACE FUNCTION advisory._tell_of_standby(takes_locks boolean)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    told text := 'advisory_portable.told_' || CASE WHEN takes_locks THEN 'taker' ELSE 'reader' END;
BEGIN
    IF NOT pg_is_in_recovery() OR current_setting(told, true) = 'yes' THEN
        RETURN true;
    END IF;
    PERFORM set_config(told, 'yes', false);
    IF takes_locks THEN
        RAISE WARNING 'locks on a standby do not exclude sessions of the primary'
            USING HINT = 'Take the lock on the primary.';
    ELSE
        RAISE NOTICE 'this server is a standby: it shows its own locks, not those of the primary'
            USING DETAIL = 'Leases and claims are those of the primary, as far as they have been '
                           'replicated.', HINT = 'Look on the primary.';
    END IF;
    RETURN true;
END $$;

-- '?' for control characters, line separators, and changes of direction: a name forges no line.
CREATE OR REPLACE FUNCTION advisory._printable(line text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT regexp_replace(line, CASE getdatabaseencoding() WHEN 'UTF8'
        THEN E'[\\u0001-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]'
        ELSE E'[\\x01-\\x1f\\x7f]' END, '?', 'g') $$;

-- What a lock is called in messages.
CREATE OR REPLACE FUNCTION advisory._display(namespace text, name text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT _printable(string_agg(
        left(part, 256) || CASE WHEN length(part) > 256 THEN '...' ELSE '' END, '/'))
    FROM unnest(ARRAY[namespace, name]) AS part $$;

-- Keys.

-- The first 8 bytes of the SHA-256 of the value.
CREATE OR REPLACE FUNCTION advisory._hash(value bytea)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.encode(pg_catalog.substr(
        pg_catalog.sha256(value), 1, 8), 'hex'))::pg_catalog.bit(64)::pg_catalog.int8 $$;

-- The same in every database; NULL if a name is null or empty.  In SQL_ASCII convert_to() checks
-- the bytes and leaves them as they are.
CREATE OR REPLACE FUNCTION advisory._bytes(namespace text, name text)
    RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN namespace OPERATOR(pg_catalog.<>) '' AND name OPERATOR(pg_catalog.<>) ''
                THEN pg_catalog.convert_to(namespace, 'UTF8')
                     OPERATOR(pg_catalog.||) pg_catalog.decode('00', 'hex')
                     OPERATOR(pg_catalog.||) pg_catalog.convert_to(name, 'UTF8') END $$;

-- The error of a name that has no key, because it is null or empty.
CREATE OR REPLACE FUNCTION advisory._no_key(namespace text, name text)
    RETURNS bigint
    LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(namespace, 'namespace');
    PERFORM _check(name, 'name');
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION advisory.key(name text)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM _check(name, 'name');
    RETURN _hash(convert_to(name, 'UTF8'));
END $$;
COMMENT ON FUNCTION advisory.key(text) IS 'key of a name without a namespace';

CREATE OR REPLACE FUNCTION advisory.key(namespace text, name text)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(advisory._hash(advisory._bytes(namespace, name)),
                    advisory._no_key(namespace, name));
END $$;

-- The slots of a semaphore have 16,384 keys in a row.  The first, slot 0, is the queue's lock.
CREATE OR REPLACE FUNCTION advisory._slot_key(namespace text, name text, slot integer)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(advisory._hash(advisory._bytes(namespace, name)
                                   OPERATOR(pg_catalog.||) pg_catalog.decode('00', 'hex'))
                    OPERATOR(pg_catalog.&) -16384 OPERATOR(pg_catalog.|) slot,
                    advisory._no_key(namespace, name));
END $$;

-- Remedies.

-- Is this the name of the key?  Not if something in it was cut or replaced.  False for NULL.
CREATE OR REPLACE FUNCTION advisory._is_name(namespace text, name text, key bigint)
    RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE WHEN namespace <> '' AND name <> '' THEN advisory.key(namespace, name) = $3
                ELSE false END $$;

-- The statement that ends a session, for the HINTs of errors and for blockers.  It names the lock,
-- slot or lease, and hits only whoever still holds that.  A name that is not printed as it is, or
-- is not that of the key, is not named; a long one, which would not fit on a line, only if nothing
-- has a key.  NULL if nothing is exact.
CREATE OR REPLACE FUNCTION advisory._terminate_statement(namespace text, name text, key bigint,
                                                         pid integer, kind text)
    RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE
        WHEN is_exact AND (key IS NULL OR octet_length(namespace || name) <= 50)
        THEN format('SELECT advisory.terminate_holder(%L, %L, %s, kind => %L)',
                    namespace, name, pid, kind)
        WHEN key IS NOT NULL
        THEN format('SELECT advisory.terminate_holder_key(%s, %s, kind => %L)', key, pid, kind) END
    FROM (SELECT _display(namespace, name) = namespace || '/' || name
                 AND (key IS NULL OR _is_name(namespace, name, key))) AS n (is_exact) $$;

-- Taking a lock.

-- A month has 30 days, as in comparisons.  (In 13, the epoch of a whole interval is not exact.)
CREATE OR REPLACE FUNCTION advisory._microseconds(value interval)
    RETURNS numeric
    LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(year FROM value) * 12 + extract(month FROM value))::numeric * 2592000000000
           + (extract(day FROM value) * 86400 + extract(hour FROM value) * 3600
              + extract(minute FROM value) * 60)::numeric * 1000000
           + extract(microseconds FROM value)::numeric $$;

-- In milliseconds, rounded up; NULL for ever.
CREATE OR REPLACE FUNCTION advisory._milliseconds(timeout interval)
    RETURNS integer
    LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF timeout IS NULL THEN
        RETURN NULL;
    ELSIF timeout = '0' THEN
        RETURN 0;
    ELSIF timeout < '0' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'timeout must not be negative';
    ELSIF timeout > '2147483647 ms' THEN
        RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = 'timeout is out of range',
            DETAIL = 'A timeout can be at most 2147483647 milliseconds.',
            HINT = 'To wait without a limit, pass NULL.';
    END IF;
    RETURN ceil(_microseconds(timeout) / 1000);
END $$;

-- How long a wait may last in milliseconds; NULL for ever.  The setting 0 means that, too.
CREATE OR REPLACE FUNCTION advisory._most(milliseconds integer)
    RETURNS integer
    LANGUAGE sql STABLE AS $$
    SELECT CASE milliseconds WHEN 0 THEN 0 ELSE least(milliseconds, nullif(
        _milliseconds(current_setting('lock_timeout')::interval), 0)) END $$;

-- When a wait that begins now ends at the latest.
CREATE OR REPLACE FUNCTION advisory._deadline(milliseconds integer)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(clock_timestamp() + _most(milliseconds) * '1 ms'::interval, 'infinity');
END $$;

-- All advisory locks and waiters of this database whose key is a bigint.
CREATE OR REPLACE VIEW advisory._keys AS
    SELECT (classid::bigint << 32) | objid::bigint AS key, pid, mode, granted
    FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- Those of this session.  Without pg_database, since a full lock table has no room for its lock.
CREATE OR REPLACE VIEW advisory._own AS
    SELECT (classid::bigint << 32) | objid::bigint AS key, mode
    FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND pid = pg_backend_pid() AND granted;

-- Is it held, by this session or by any?  By this session also: in that mode, or in any (NULL)?
CREATE OR REPLACE FUNCTION advisory._is_held(key bigint, is_by_me boolean,
                                             is_shared boolean DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _check(key::text, 'key');
    IF NOT is_by_me THEN
        RETURN EXISTS (SELECT FROM _keys AS k WHERE k.key = _is_held.key AND granted);
    END IF;
    RETURN EXISTS (SELECT FROM _own AS o WHERE o.key = _is_held.key
                       AND (mode = 'ShareLock') = coalesce(is_shared, mode = 'ShareLock'));
END $$;

-- The built-in functions, chosen by mode and scope.
CREATE OR REPLACE FUNCTION advisory._try_once(is_shared boolean, is_xact boolean, key bigint)
    RETURNS boolean
    LANGUAGE sql AS $$
    SELECT CASE WHEN is_xact AND is_shared THEN pg_try_advisory_xact_lock_shared(key)
                WHEN is_xact THEN pg_try_advisory_xact_lock(key)
                WHEN is_shared THEN pg_try_advisory_lock_shared(key)
                ELSE pg_try_advisory_lock(key) END $$;

CREATE OR REPLACE FUNCTION advisory._wait(is_shared boolean, is_xact boolean, key bigint)
    RETURNS void
    LANGUAGE sql AS $$
    SELECT CASE WHEN is_xact AND is_shared THEN pg_advisory_xact_lock_shared(key)
                WHEN is_xact THEN pg_advisory_xact_lock(key)
                WHEN is_shared THEN pg_advisory_lock_shared(key)
                ELSE pg_advisory_lock(key) END $$;

-- The built-in function's own warning does not bear the name.
CREATE OR REPLACE FUNCTION advisory._unlock_quietly(is_shared boolean, key bigint)
    RETURNS boolean
    LANGUAGE plpgsql STRICT
    SET client_min_messages = error AS $$
BEGIN
    RETURN CASE WHEN is_shared THEN pg_catalog.pg_advisory_unlock_shared(key)
                ELSE pg_catalog.pg_advisory_unlock(key) END;
END $$;

-- Take the lock.  Returns whether it was free within so many milliseconds, and within lock_timeout.
-- Only a wait with a limit is a subtransaction.
CREATE OR REPLACE FUNCTION advisory._take(is_shared boolean, is_xact boolean, key bigint,
                                          milliseconds integer)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    setting text := current_setting('lock_timeout');
BEGIN
    IF pg_is_in_recovery() THEN
        PERFORM _tell_of_standby(true);
    END IF;
    IF _try_once(is_shared, is_xact, key) THEN
        RETURN true;
    END IF;

    milliseconds := _most(milliseconds);
    IF milliseconds = 0 THEN
        RETURN false;
    ELSIF milliseconds IS NULL THEN
        PERFORM _wait(is_shared, is_xact, key);
        RETURN true;
    END IF;

    BEGIN
        PERFORM set_config('lock_timeout', milliseconds::text, true);
        PERFORM _wait(is_shared, is_xact, key);
        PERFORM set_config('lock_timeout', setting, true);
        RETURN true;
    EXCEPTION WHEN lock_not_available OR query_canceled THEN
        -- The lock can be granted at the very moment when the wait ends, and an error does not
        -- release it.  It was not held before: then nothing had to be waited for.
        IF NOT is_xact AND _is_held(key, true, is_shared) THEN
            PERFORM _unlock_quietly(is_shared, key);
        END IF;
        IF SQLSTATE = '57014' THEN    -- query_canceled
            RAISE;
        END IF;
        RETURN false;
    END;
END $$;

-- Who holds or awaits one of these keys, a line each.  For a semaphore, slots says how many it has,
-- and first_key is that of slot 0.
CREATE OR REPLACE FUNCTION advisory._holders(first_key bigint, slots integer)
    RETURNS text
    LANGUAGE sql STABLE AS $$
    WITH semaphore AS (
        -- Only those have further keys: there may be no next key.
        SELECT CASE WHEN slots > 0 THEN first_key END AS base),
    other AS (
        SELECT k.pid, k.key, k.mode, k.granted, a.usename, a.application_name, a.state,
               a.state_change, a.wait_event_type, w.key - first_key - 16000 AS wanted,
               row_number() OVER (ORDER BY k.granted DESC, k.key, k.pid) AS place
        FROM _keys AS k
        CROSS JOIN semaphore
        LEFT JOIN pg_stat_activity AS a ON a.pid = k.pid
        LEFT JOIN _keys AS w ON w.pid = k.pid AND w.key BETWEEN base + 16001 AND base + 16382
        WHERE k.key BETWEEN first_key AND first_key + coalesce(slots, 0)
            AND k.pid IS DISTINCT FROM pg_backend_pid()),
    described AS (
        SELECT place, _printable(concat(
            CASE WHEN pid IS NULL THEN 'A prepared transaction'
                 ELSE format('Process %s of role "%s"', pid, usename) END,
            ', application "' || nullif(application_name, '') || '",',
            CASE WHEN slots IS NULL
                 THEN format(' %s it in %s mode',
                             CASE WHEN granted THEN 'holds' ELSE 'waits for' END,
                             CASE mode WHEN 'ShareLock' THEN 'shared' ELSE 'exclusive' END)
                 WHEN granted AND key > first_key THEN ' has slot ' || (key - first_key)
                 ELSE ' waits for ' || coalesce(wanted || ' slots', 'a slot') END,
            CASE WHEN granted
                 THEN '; it is ' || CASE wait_event_type WHEN 'Lock' THEN 'waiting for a lock'
                                         ELSE state END
                      || ' since ' || state_change END,
            '.')) AS line
        FROM other)
    SELECT coalesce(
        string_agg(line, E'\n' ORDER BY place) FILTER (WHERE place <= 5)
        || CASE WHEN max(place) > 5 THEN format(E'\n%s more hold or wait for it.', max(place) - 5)
                ELSE '' END,
        (SELECT 'This session has ' || nullif(count(*), 0) || ' of the slots itself.'
         FROM _keys, semaphore
         WHERE key BETWEEN base + 1 AND base + slots AND granted),
        'Nobody holds it any more.')
    FROM described $$;

-- How long a call has waited that ends with error 55P03.
CREATE OR REPLACE FUNCTION advisory._limit(timeout interval)
    RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT CASE most WHEN 0 THEN 'without waiting'
                ELSE concat('within ',
                            CASE WHEN most IS DISTINCT FROM given THEN 'lock_timeout of ' END,
                            CASE WHEN most % 1000 = 0 THEN most / 1000 || ' s'
                                 ELSE most || ' ms' END) END
    FROM (SELECT _milliseconds(timeout)) AS g (given), LATERAL (SELECT _most(given)) AS m (most) $$;

-- Error 55P03.  For a semaphore, slots says how many it has, and key is that of slot 0.
CREATE OR REPLACE FUNCTION advisory._raise_not_available(namespace text, name text, key bigint,
                                                         slots integer, wanted integer,
                                                         timeout interval)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    first_key bigint := key + (slots IS NOT NULL)::integer;
    holder record;
    hint text;
BEGIN
    SELECT k.pid, wait_event_type = 'Lock' AS is_waiting INTO holder
    FROM _keys AS k LEFT JOIN pg_stat_activity AS a ON a.pid = k.pid
    WHERE k.key BETWEEN first_key AND _raise_not_available.key + coalesce(slots, 0)
        AND granted AND k.pid IS DISTINCT FROM pg_backend_pid()
    ORDER BY k.key, k.pid
    LIMIT 1;
    IF holder.is_waiting THEN
        hint := 'To see who waits for whom: SELECT * FROM advisory.wait_tree().';
    ELSIF FOUND AND holder.pid IS NULL THEN
        hint := 'To see the prepared transaction that holds it: '
                'SELECT * FROM pg_catalog.pg_prepared_xacts.';
    ELSE
        -- A semaphore is found by its name alone, or by a label.  Nobody is named if this session
        -- has all slots itself, or the holder has just gone.
        hint := concat(
            'To see what others wait for: SELECT * FROM advisory.blockers.',
            ' To end that session: '
            || CASE WHEN holder.pid IS NULL THEN NULL
                    WHEN slots IS NULL
                    THEN _terminate_statement(namespace, name, key, holder.pid, 'lock')
                    ELSE _terminate_statement(namespace, name, NULL, holder.pid, 'semaphore') END
            || '.');
    END IF;

    RAISE EXCEPTION 'could not obtain % "%" %',
        CASE WHEN slots IS NULL THEN 'advisory lock'
             WHEN wanted = 1 THEN 'a slot of semaphore'
             ELSE wanted || ' slots of semaphore' END,
        _display(namespace, coalesce(name, key::text)), _limit(timeout)
        USING ERRCODE = 'lock_not_available', DETAIL = _holders(key, slots), HINT = hint,
            SCHEMA = coalesce(namespace, ''), CONSTRAINT = coalesce(name, key::text);
END $$;

-- If the lock is not free, or an argument is wrong.  By key, namespace is null, name is the label.
CREATE OR REPLACE FUNCTION advisory._lock(must boolean, is_shared boolean, is_xact boolean,
                                          namespace text, name text, key bigint, timeout interval)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
BEGIN
    IF namespace IS NULL THEN    -- A name was checked when its key was made.
        PERFORM _check(key::text, 'key');
        PERFORM _check(coalesce(name, 'no label'), 'label');
    END IF;
    IF _take(is_shared, is_xact, key, _milliseconds(timeout)) THEN
        RETURN true;
    END IF;
    IF must THEN
        PERFORM _raise_not_available(namespace, name, key, NULL, 1, timeout);
    END IF;
    RETURN false;
END $$;

-- Release.

-- A session does not hold what it releases: a WARNING, or if advisory_ext.unlock_not_held is error,
-- that.  Without the library this is a setting that only this function knows.  If the session has
-- nothing of that name, HINT says why that may be.  By key, namespace is null.
CREATE OR REPLACE FUNCTION advisory._not_held(what text, namespace text, name text, key bigint,
                                              instead text)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    base bigint := CASE WHEN namespace IS NOT NULL THEN _slot_key(namespace, name, 0) END;
    message text := format('you don''t own %s "%s"',
                           what, _display(namespace, coalesce(name, key::text)));
BEGIN
    IF lower(current_setting('advisory_ext.unlock_not_held', true)) IS DISTINCT FROM 'error' THEN
        RAISE WARNING USING MESSAGE = message;
    ELSIF EXISTS (SELECT FROM _own AS o
                  WHERE o.key = _not_held.key OR o.key BETWEEN base + 1 AND base + 16000) THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = message;
    ELSE
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = message,
            HINT = 'Another connection of a pool may have taken it. Take and release it on one '
                   'connection, or use advisory.' || instead || '().';
    END IF;
END $$;

-- What the public functions call if there was nothing to release.
CREATE OR REPLACE FUNCTION advisory._unlock(is_shared boolean, namespace text, name text,
                                            key bigint)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
BEGIN
    PERFORM _check(key::text, 'key');
    PERFORM _not_held(
        CASE WHEN is_shared THEN 'a lock of type ShareLock on'
             ELSE 'a lock of type ExclusiveLock on' END,
        namespace, name, key, CASE WHEN is_shared THEN 'xact_lock_shared' ELSE 'xact_lock' END);
    RETURN false;
END $$;

-- Every session-level hold of each lock in the list.
CREATE OR REPLACE FUNCTION advisory._unlock_all(namespace text, names text[], is_list boolean)
    RETURNS integer
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    keys bigint[] := ARRAY(SELECT advisory.key(namespace, element)
                           FROM unnest(_check_list(namespace, names, 'name')) AS element);
    hold record;
    released integer := 0;
BEGIN
    FOR hold IN
        SELECT key, mode = 'ShareLock' AS is_shared FROM _own WHERE key = ANY (keys)
    LOOP
        -- What stays when nothing more can be released is held by the transaction.
        WHILE _is_held(hold.key, true, hold.is_shared)
              AND _unlock_quietly(hold.is_shared, hold.key) LOOP
            released := released + 1;
        END LOOP;
    END LOOP;

    -- In a finally block nobody would notice that an untyped list became one name, in any form that
    -- drivers send.  A comma beside a space is in ordinary names.
    IF NOT is_list AND released = 0 AND names[1] ~ '^({.+}|\[.+\])$|[^ ],[^ ]'
       AND NOT _is_held(keys[1], true) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'this session does not hold an advisory lock of that name, which looks like '
                      'a list',
            HINT = 'To release a list of locks, cast it: unlock_all(namespace, list::text[]).';
    END IF;
    RETURN released;
END $$;

-- Several locks at once.

-- Take all of them, in the order of their keys, or none.
CREATE OR REPLACE FUNCTION advisory._take_all(must boolean, is_xact boolean, namespace text,
                                              names text[], timeout interval)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    most integer := _milliseconds(timeout);
    deadline timestamptz := _deadline(most);
    one record;
    busy text;
    taken bigint[] := '{}';
BEGIN
    FOR one IN
        SELECT DISTINCT ON (key) key, element
        FROM unnest(_check_list(namespace, names, 'name')) AS element,
             advisory.key(namespace, element) AS key
        ORDER BY key
    LOOP
        IF isfinite(deadline) THEN
            most := greatest(ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000), 0);
        END IF;
        busy := one.element;
        EXIT WHEN NOT _take(false, is_xact, one.key, most);
        taken := taken || one.key;
        busy := NULL;
    END LOOP;

    IF busy IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'busy';    -- To the handler below.
    END IF;
    RETURN true;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    -- The end of this block has released the transaction-level ones.
    IF NOT is_xact THEN
        PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key;
    END IF;
    IF busy IS NULL OR SQLSTATE <> '55P03' THEN
        RAISE;
    END IF;
    IF must THEN
        PERFORM _raise_not_available(
            namespace, busy, advisory.key(namespace, busy), NULL, 1, timeout);
    END IF;
    RETURN false;
END $$;

-- Semaphores.

CREATE OR REPLACE FUNCTION advisory._check_slot(slot integer, what text)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _check(slot::text, what);
    IF slot NOT BETWEEN 1 AND 16000 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = what || ' must be between 1 and 16000';
    END IF;
END $$;

-- So many slots that nobody has, this session included, all or none (NULL).  base is the key of
-- slot 0.  Nobody overtakes those who wait: the first of them holds the lock of slot 0, the queue.
-- Whoever takes several at once holds that of 16383, and for a moment slots that it may not keep.
CREATE OR REPLACE FUNCTION advisory._take_slots(is_xact boolean, base bigint, slots integer,
                                                wanted integer)
    RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    is_awaited boolean;
    is_moving boolean;
    free integer[];
    slot integer;
    taken integer[];
BEGIN
    FOR attempt IN 1 .. 100 LOOP
        -- One look: all this was true at one moment.  (SELECT slots): one plan for all numbers.
        WITH held AS MATERIALIZED (
            SELECT (key - base)::integer AS slot
            FROM _keys
            WHERE key BETWEEN base AND base + 16383 AND granted
                AND (key BETWEEN base + 1 AND base + slots OR pid <> pg_backend_pid()))
        SELECT 0 IN (SELECT h.slot FROM held AS h), 16383 IN (SELECT h.slot FROM held AS h),
               ARRAY(SELECT s
                     FROM generate_series(1, (SELECT slots)) AS s
                     WHERE s NOT IN (SELECT h.slot FROM held AS h)
                     ORDER BY s)
        INTO is_awaited, is_moving, free;

        taken := '{}';
        EXIT WHEN is_awaited;
        IF cardinality(free) >= wanted THEN
            FOREACH slot IN ARRAY free LOOP
                IF _try_once(false, is_xact, base + slot) THEN
                    taken := taken || slot;
                END IF;
                IF cardinality(taken) = wanted THEN
                    RETURN taken;
                END IF;
            END LOOP;
        END IF;

        -- Others were faster.  Those that move may give some back in a moment.
        PERFORM pg_advisory_unlock(base + s) FROM unnest(taken) AS s;
        EXIT WHEN cardinality(free) < wanted AND NOT is_moving;
        IF is_moving THEN
            PERFORM pg_sleep(0.001);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- The slots, by way of a lock that only one session can have: base, the queue, or base + 16383.
-- They are session-level, and NULL if they are not free in time.  mine are the keys of slots that
-- this session has already.
CREATE OR REPLACE FUNCTION advisory._take_slots_through(gate bigint, base bigint, slots integer,
                                                        wanted integer, most integer,
                                                        deadline timestamptz, mine bigint[])
    RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    pause double precision := 0.0005;    -- pg_sleep() makes a millisecond of it.
    taken integer[];
BEGIN
    IF gate = base THEN
        IF wanted BETWEEN 2 AND 382 THEN
            -- This tells others how many slots it waits for.
            PERFORM pg_try_advisory_xact_lock_shared(base + 16000 + wanted);
        END IF;
        IF NOT _take(false, true, base, most) THEN
            RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'too late';
        END IF;
    ELSE
        -- No lock_timeout here: the server would drop a cancel that comes together with it.
        FOR attempt IN 1 .. 100 LOOP
            EXIT WHEN pg_try_advisory_xact_lock(gate);
            IF attempt = 100 THEN
                RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'too late';
            END IF;
            PERFORM pg_sleep(0.001);
        END LOOP;
    END IF;

    LOOP
        -- To try some locks costs less than a look at pg_locks.
        IF wanted = 1 AND slots <= 100 THEN
            taken := (SELECT ARRAY[s]
                      FROM generate_series(1, (SELECT slots)) AS s
                      WHERE CASE WHEN base + s <> ALL (mine)
                                 THEN pg_try_advisory_lock(base + s) END
                      LIMIT 1);
        ELSE
            taken := _take_slots(false, base, slots, wanted);
        END IF;
        EXIT WHEN taken IS NOT NULL OR gate <> base OR clock_timestamp() >= deadline;
        PERFORM pg_sleep(pause);
        pause := least(pause * 1.05, 0.01);
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'leave the queue';
EXCEPTION WHEN lock_not_available THEN
    -- This has released the lock of the queue, whatever has happened.
    RETURN taken;
END $$;

-- So many slots, or, if they are not free in time, NULL or an error.
CREATE OR REPLACE FUNCTION advisory._acquire(must boolean, is_xact boolean, namespace text,
                                             name text, slots integer, wanted integer,
                                             timeout interval)
    RETURNS integer[]
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    base bigint := _slot_key(namespace, name, 0);
    most integer := _milliseconds(timeout);
    deadline timestamptz;
    gate bigint;
    mine bigint[];
    taken integer[];
BEGIN
    IF (slots BETWEEN 1 AND 16000 AND wanted BETWEEN 1 AND slots) IS NOT TRUE THEN
        PERFORM _check_slot(slots, 'slots');
        PERFORM _check(wanted::text, 'wanted');
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'wanted must be between 1 and ' || slots;
    ELSIF pg_is_in_recovery() THEN
        PERFORM _tell_of_standby(true);
    END IF;

    IF wanted = 1 THEN
        taken := _take_slots(is_xact, base, slots, 1);
        IF taken IS NOT NULL THEN
            RETURN taken;
        END IF;
    END IF;

    deadline := _deadline(most);
    -- Several are taken at once by one session after the other.
    FOREACH gate IN ARRAY CASE WHEN wanted > 1 THEN ARRAY[base + 16383] ELSE '{}' END
                          || CASE WHEN most = 0 THEN '{}' ELSE ARRAY[base] END
    LOOP
        EXIT WHEN taken IS NOT NULL;
        mine := ARRAY(SELECT key FROM _own WHERE key BETWEEN base + 1 AND base + slots);
        BEGIN
            taken := _take_slots_through(gate, base, slots, wanted, most, deadline, mine);
            -- They were taken in a block that had to fail, so they are session-level until here.
            IF is_xact THEN
                PERFORM pg_advisory_xact_lock(base + s) FROM unnest(taken) AS s;
                PERFORM pg_advisory_unlock(base + s) FROM unnest(taken) AS s;
            END IF;
        EXCEPTION WHEN query_canceled OR OTHERS THEN
            -- A cancel can come when slots are taken, and taken does not say so yet.
            PERFORM pg_advisory_unlock(key)
            FROM _own
            WHERE key BETWEEN base + 1 AND base + slots AND key <> ALL (mine);
            RAISE;
        END;
    END LOOP;

    IF must AND taken IS NULL THEN
        PERFORM _raise_not_available(namespace, name, base, slots, wanted, timeout);
    END IF;
    RETURN taken;
END $$;

-- A slot of each of the list, all or none (NULL), in the order of the list.  It tries again until
-- they are free in time, and in between holds none.  So it is not in turn: others overtake it.
CREATE OR REPLACE FUNCTION advisory._try_acquire_all(is_xact boolean, namespace text,
                                                     names text[], slots integer[],
                                                     timeout interval)
    RETURNS integer[]
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    most integer := _milliseconds(timeout);
    deadline timestamptz := _deadline(most);
    bases bigint[];
    mine bigint[];
    wanted record;
    slot integer;
    keys bigint[];
    taken integer[];
BEGIN
    names := _check_list(namespace, names, 'name');
    PERFORM _check(slots::text, 'slots');
    PERFORM _check_slot(s, 'slots') FROM unnest(slots) AS s;
    IF cardinality(names) <> cardinality(slots) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'the lists of names and of slots must have the same length';
    ELSIF cardinality(names) > 16 THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'cannot take slots of more than 16 semaphores at once';
    ELSIF cardinality(names) <> (SELECT count(DISTINCT name) FROM unnest(names) AS name) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'a semaphore must not be in the list twice';
    ELSIF pg_is_in_recovery() THEN
        PERFORM _tell_of_standby(true);
    END IF;

    bases := ARRAY(SELECT _slot_key(namespace, name, 0) FROM unnest(names) AS name);
    mine := ARRAY(SELECT key FROM _own, unnest(bases) AS base
                  WHERE key BETWEEN base + 1 AND base + 16000);
    LOOP
        keys := '{}';
        taken := array_fill(NULL::integer, ARRAY[cardinality(names)]);
        BEGIN
            FOR wanted IN
                SELECT n.base, n.slots, n.place
                FROM unnest(bases, slots) WITH ORDINALITY AS n (base, slots, place)
                ORDER BY n.base
            LOOP
                slot := (_take_slots(is_xact, wanted.base, wanted.slots, 1))[1];
                EXIT WHEN slot IS NULL;
                keys := keys || wanted.base + slot;
                taken[wanted.place] := slot;
            END LOOP;
            IF cardinality(keys) = cardinality(names) THEN
                RETURN taken;
            END IF;
            RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'busy';
        EXCEPTION WHEN query_canceled OR OTHERS THEN
            -- The end of this block has released the transaction-level ones.
            IF NOT is_xact THEN
                PERFORM pg_advisory_unlock(key) FROM unnest(keys) AS key;
            END IF;
            IF SQLSTATE <> '55P03' THEN
                -- A cancel can come when a slot is taken, and keys does not say so yet.
                PERFORM pg_advisory_unlock(key)
                FROM _own, unnest(bases) AS base
                WHERE NOT is_xact AND key BETWEEN base + 1 AND base + 16000 AND key <> ALL (mine);
                RAISE;
            END IF;
        END;
        EXIT WHEN most = 0 OR clock_timestamp() >= deadline;
        PERFORM pg_sleep(0.01 + random() * 0.01);
    END LOOP;
    RETURN NULL;
END $$;

-- Up to wanted of the list that are free: their locks, or with slots, a slot of each.
CREATE OR REPLACE FUNCTION advisory._try_any(is_xact boolean, namespace text, names text[],
                                             is_for_slots boolean, slots integer, wanted integer)
    RETURNS TABLE (taken text, slot integer)
    LANGUAGE plpgsql AS $$
DECLARE
    keys bigint[] := '{}';
BEGIN
    names := _check_list(namespace, names, 'name');
    IF is_for_slots THEN
        PERFORM _check_slot(slots, 'slots');
    END IF;
    PERFORM _check(wanted::text, 'wanted');
    IF wanted < 1 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'wanted must be at least 1';
    END IF;

    FOR taken IN
        SELECT element
        FROM unnest(names) WITH ORDINALITY AS list (element, place)
        GROUP BY element
        ORDER BY min(place)
    LOOP
        EXIT WHEN cardinality(keys) = wanted;
        slot := CASE WHEN is_for_slots
                     THEN (_acquire(false, is_xact, namespace, taken, slots, 1, '0'))[1]
                     WHEN _take(false, is_xact, advisory.key(namespace, taken), 0) THEN 0 END;
        CONTINUE WHEN slot IS NULL;
        keys := keys || CASE WHEN is_for_slots THEN _slot_key(namespace, taken, slot)
                             ELSE advisory.key(namespace, taken) END;
        RETURN NEXT;
    END LOOP;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    IF NOT is_xact THEN
        PERFORM pg_advisory_unlock(key) FROM unnest(keys) AS key;
    END IF;
    RAISE;
END $$;

CREATE OR REPLACE FUNCTION advisory.release(namespace text, name text, slot integer DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    base bigint := _slot_key(namespace, name, 0);
    is_released boolean;
BEGIN
    IF slot NOT BETWEEN 1 AND 16000 THEN
        PERFORM _check_slot(slot, 'slot');
    END IF;
    IF slot IS NOT NULL THEN
        is_released := _unlock_quietly(false, base + slot);
    ELSE
        is_released := EXISTS (
            SELECT FROM (SELECT key
                         FROM _own
                         WHERE key BETWEEN base + 1 AND base + 16000
                         ORDER BY key DESC
                         OFFSET 0) AS own    -- So it tries one after the other.
            WHERE _unlock_quietly(false, key));
    END IF;
    IF is_released THEN
        RETURN true;
    END IF;
    PERFORM _not_held(coalesce('slot ' || slot, 'a slot') || ' of semaphore',
                      namespace, name, advisory.key(namespace, name), 'xact_acquire');
    RETURN false;
END $$;

CREATE OR REPLACE FUNCTION advisory.release_many(namespace text, name text, slots integer[])
    RETURNS integer
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    base bigint := _slot_key(namespace, name, 0);    -- Checks the name.
    missing integer[];
BEGIN
    PERFORM _check(slots::text, 'slots');
    PERFORM _check_slot(slot, 'slot') FROM unnest(slots) AS slot;
    missing := ARRAY(SELECT slot FROM unnest(slots) AS slot
                     WHERE NOT _unlock_quietly(false, base + slot));
    -- It may raise an error, so all that this session has is released before.
    PERFORM _not_held(format('slot %s of semaphore', slot), namespace, name,
                      advisory.key(namespace, name), 'xact_acquire')
    FROM unnest(missing) AS slot;
    RETURN cardinality(slots) - cardinality(missing);
END $$;

-- Waiting without a snapshot.

-- Sleeps between two looks, and returns the next pause, NULL if it is too late.  The first is null.
CREATE OR REPLACE FUNCTION advisory._pause(seconds double precision, deadline timestamptz,
                                           instead text)
    RETURNS double precision
    LANGUAGE plpgsql AS $$
BEGIN
    IF seconds IS NULL THEN
        IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = '25001',
                MESSAGE = 'advisory.await_*() cannot wait without a snapshot here',
                DETAIL = 'The transaction has written.',
                HINT = format('Call it outside of a transaction block, or use %s.', instead);
        END IF;
        RETURN 0.001;
    END IF;
    PERFORM pg_sleep(CASE WHEN NOT isfinite(deadline) THEN seconds
                          ELSE least(seconds, extract(epoch FROM deadline - clock_timestamp()))
                     END);
    RETURN CASE WHEN clock_timestamp() < deadline THEN least(seconds * 1.5, 0.1) END;
END $$;

-- How long the next of several waits may last, after that one; NULL if it is too late.  At most
-- half of the time after which the server looks for a deadlock: else it would find one with a
-- CREATE INDEX CONCURRENTLY of the holder, which waits for the snapshot of this wait.
CREATE OR REPLACE FUNCTION advisory._next_wait(last interval, deadline timestamptz)
    RETURNS interval
    LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    IF now >= deadline THEN
        RETURN NULL;
    END IF;
    RETURN least(greatest(last * 2, '10 ms'), '500 ms',
                 current_setting('deadlock_timeout')::interval / 2,
                 CASE WHEN isfinite(deadline) THEN deadline - now END);
END $$;

-- A lock, or, if is_shared is null, a slot of the semaphore whose slot 0 has that key.  It waits in
-- the queue of the lock, so that holders in shared mode that overlap do not keep it out for ever.
CREATE OR REPLACE PROCEDURE advisory._await(is_shared boolean, namespace text, name text,
                                            key bigint, slots integer, timeout interval,
                                            INOUT slot integer)
    LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(advisory._milliseconds(timeout));
    wait interval := '0';
BEGIN
    PERFORM advisory._check(key::pg_catalog.text, 'key');
    PERFORM advisory._check(coalesce(namespace, name, 'no label'), 'label');
    IF is_shared IS NULL THEN
        PERFORM advisory._check_slot(slots, 'slots');
    END IF;
    PERFORM advisory._pause(NULL, deadline, 'advisory.lock() or advisory.acquire()');
    LOOP
        COMMIT;    -- Each ends the snapshot.
        slot := CASE WHEN is_shared IS NULL
                     THEN (advisory._acquire(false, false, namespace, name, slots, 1, wait))[1]
                     WHEN advisory._lock(false, is_shared, false, namespace, name, key, wait)
                     THEN 0 END;
        EXIT WHEN slot IS NOT NULL;
        wait := advisory._next_wait(wait, deadline);
        IF wait IS NULL THEN
            PERFORM advisory._raise_not_available(namespace, name, key, slots, 1, timeout);
        END IF;
    END LOOP;
END $$;

-- Requests.

-- A SECURITY DEFINER function cannot tell which role has called it: session_user is a superuser
-- where autovacuum calls a function that another role has put into an index, or a superuser one
-- that is SECURITY DEFINER.  So roles ask for claims and leases by an INSERT into a view.  Its
-- first trigger runs as the role that inserts, and says who that is; the second one runs as the
-- owner, and answers.  (In the order of their names.)
-- what: claim, claim_apart, run, run_apart, or finish, the end of the work of a claim; take,
-- take_slot, renew, check or end, of a lease.  length: every, apart or ttl.  at: the window, or the
-- time of the claim that is finished.  result: the window, or for run the time of the claim; when a
-- lease expires.  NULL if there is none; then reason says why, and free_at when all are held, and
-- the first of them can be taken.
CREATE OR REPLACE VIEW advisory._request AS
    SELECT NULL::oid AS asked_by,
           NULL::text AS what,
           NULL::text AS namespace,
           NULL::text AS name,
           NULL::interval AS length,
           NULL::bigint AS token,
           NULL::timestamptz AS at,
           NULL::text AS time_zone,
           NULL::text AS owner,
           NULL::interval AS lock_delay,
           NULL::boolean AS is_answered,
           NULL::timestamptz AS result,
           NULL::timestamptz AS free_at,
           NULL::text AS reason,
           NULL::integer AS slots,
           NULL::interval AS max_hold,
           NULL::integer AS slot;

CREATE OR REPLACE FUNCTION advisory._sign_request()
    RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.asked_by := quote_ident(current_user)::regrole;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION advisory._serve_request()
    RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    -- Whoever attached it to a table of his own could say that he is somebody else.
    IF TG_RELID <> 'advisory._request'::regclass THEN
        RAISE EXCEPTION USING ERRCODE = '39P01',
            MESSAGE = 'this trigger function must be fired by advisory._request';
    END IF;

    NEW := CASE WHEN NEW.what ~ '^(claim|run)(_apart)?$' THEN _claim_window(NEW)
                WHEN NEW.what = 'finish' THEN _end_claim(NEW)
                WHEN NEW.what LIKE 'take%' THEN _take_lease(NEW)
                ELSE _use_lease(NEW) END;
    NEW.is_answered := true;

    -- Nothing may be done before it is on disk.
    IF NEW.what ~ '^(run|take|renew)' AND NEW.result IS NOT NULL
       AND current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION advisory._request(what text, namespace text, name text,
                                             length interval DEFAULT NULL,
                                             token bigint DEFAULT NULL,
                                             at timestamptz DEFAULT NULL,
                                             time_zone text DEFAULT NULL,
                                             owner text DEFAULT NULL,
                                             lock_delay interval DEFAULT NULL,
                                             slots integer DEFAULT NULL,
                                             max_hold interval DEFAULT NULL)
    RETURNS advisory._request
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    answer _request;
BEGIN
    INSERT INTO _request AS r
        VALUES (NULL, what, namespace, name, length, token, at, time_zone, owner, lock_delay, NULL,
                NULL, NULL, NULL, slots, max_hold)
        RETURNING r.* INTO answer;
    IF answer.is_answered IS NULL THEN    -- The triggers have not fired.
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'claims and leases are not there while session_replication_role is replica';
    END IF;
    RETURN answer;
END $$;

-- What a row says of the session that has asked for it.
CREATE OR REPLACE FUNCTION advisory._who(asked_by oid)
    RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT concat_ws('@', pg_get_userbyid(asked_by),
                     nullif(current_setting('application_name'), '')) $$;

-- The server that writes a row, with its standbys; 0 where a service does not tell.
CREATE OR REPLACE FUNCTION advisory._system()
    RETURNS bigint
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT system_identifier FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    RETURN 0;
END $$;

-- The role that a row means.  On the server that wrote it its OID, which a rename keeps, and which
-- another role of that name does not get; on another one, after a restored dump, its name.
CREATE OR REPLACE FUNCTION advisory._role_here(role oid, role_name name, system bigint)
    RETURNS oid
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE
        WHEN system = 0
        THEN (SELECT r.oid FROM pg_roles AS r WHERE r.oid = role AND r.rolname = role_name)
        WHEN system = _system() THEN role
        ELSE (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = role_name) END $$;

-- Has a role the rights of the role that a row means?  If that is missing, only a superuser has.
CREATE OR REPLACE FUNCTION advisory._has_role(member name, role oid, role_name name, system bigint,
                                              how text)
    RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT coalesce(pg_has_role(member, _role_here(role, role_name, system), how),
                    (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = member)) $$;

-- Tokens and fences.

-- A token is the era, and the place of a WAL record in units of 8 bytes.  No transaction rolls back
-- these cells: the era, its timeline, and of what cluster and database; the start of the server
-- that has last looked at them; and when it did so first, in ms, with the era again.
CREATE SEQUENCE IF NOT EXISTS advisory._era MINVALUE 0 START 0;

CREATE SEQUENCE IF NOT EXISTS advisory._server MINVALUE 0 START 0;

CREATE SEQUENCE IF NOT EXISTS advisory._server_began MINVALUE 0 START 0;

-- The timeline, and of what cluster and database it is; 1 and 0 where a service does not tell them.
CREATE OR REPLACE FUNCTION advisory._timeline(OUT timeline bigint, OUT system bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    timeline := 1;
    system := 0;
    timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint;
    system := (SELECT (system_identifier # (d.oid::bigint << 5)) & 137438953471
               FROM pg_control_system(), pg_database AS d
               WHERE datname = current_database());
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    NULL;    -- What was told before stays.
END $$;

-- This server: a restart or a promotion makes it another one.  On a later timeline the era grows by
-- as much as the timeline, so it does not matter if a failover lost the cells; in another cluster,
-- after pg_upgrade or a restored dump, by the timeline.  If somebody else has written the cells, as
-- logical replication of all sequences does, it does not fall below that of any lease or fence.
CREATE OR REPLACE FUNCTION advisory._here(OUT server bigint, OUT began timestamptz, OUT era bigint)
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    known bigint := (SELECT last_value FROM _server);    -- Before the others.
    last bigint := (SELECT last_value FROM _era);
    lowest bigint := (SELECT seqstart FROM pg_sequence WHERE seqrelid = 'advisory._era'::regclass);
    known_began bigint := (SELECT last_value FROM _server_began);
    can_write boolean := current_setting('transaction_read_only') = 'off';
    timeline bigint;
    system bigint;
BEGIN
    server := extract(epoch FROM pg_postmaster_start_time()) * 1000000;
    era := last >> 50;
    began := 'epoch'::timestamptz + (known_began >> 13) * interval '1 ms';
    IF known = server AND known_began & 8191 = era AND era >= lowest OR pg_is_in_recovery() THEN
        server := known;    -- A standby shows leases as the primary does.
        RETURN;
    END IF;

    began := clock_timestamp();
    SELECT t.timeline, t.system INTO timeline, system FROM _timeline() AS t;
    BEGIN
        -- Sequences can be set in no order but this one.  The end of the block unlocks them.
        IF can_write THEN
            LOCK TABLE advisory.fences IN SHARE UPDATE EXCLUSIVE MODE;
        END IF;
        last := (SELECT last_value FROM _era);
        era := (last >> 50) + timeline
               - CASE WHEN last & 137438953471 = system AND (last >> 37) & 8191 <= timeline
                      THEN (last >> 37) & 8191 ELSE 0 END;
        -- An older file let every role check a token that would use up all eras.
        era := greatest(era, lowest, (
            SELECT max(token) >> 50
            FROM (SELECT token FROM fences UNION ALL SELECT token FROM _leases) AS given
            WHERE token >> 50 < 4096));
        IF era >= 8192 THEN
            RAISE EXCEPTION USING ERRCODE = '2200H', MESSAGE = 'there are no tokens left';
        END IF;

        IF can_write THEN
            PERFORM setval('advisory._server_began',
                           ceil(extract(epoch FROM began) * 1000)::bigint << 13 | era);
            PERFORM setval('advisory._era', (era << 50) | (timeline << 37) | system);
            PERFORM setval('advisory._server', server);
        END IF;
        RAISE EXCEPTION 'done';
    EXCEPTION WHEN raise_exception THEN
        NULL;
    END;
END $$;

CREATE OR REPLACE FUNCTION advisory._make_token(place pg_lsn)
    RETURNS bigint
    LANGUAGE sql AS $$
    SELECT (era << 50) | div(place - '0/0', 8)::bigint FROM _here() $$;

-- For a lock or slot that this session holds, given by its key or its name.  The record is on disk
-- when the call returns: else a crash could make the same token again, with another holder.
CREATE OR REPLACE FUNCTION advisory._token(is_slot boolean, namespace text, name text, key bigint,
                                           slot integer)
    RETURNS bigint
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    place pg_lsn;
BEGIN
    IF current_setting('server_version_num')::integer < 170000 THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = 'advisory.token() needs PostgreSQL 17 or later',
            DETAIL = 'Before, SQL cannot write a token to disk before COMMIT, so after a crash or '
                     'failover tokens could repeat or fall. So could those of a sequence.',
            HINT = 'Take a lease: it has a token. Or write in one transaction under '
                   'advisory.xact_lock(), or claim windows with advisory.claim().';
    END IF;
    IF is_slot THEN
        PERFORM _check_slot(slot, 'slot');
        key := _slot_key(namespace, name, slot);
    ELSIF is_slot IS NOT NULL THEN
        key := advisory.key(namespace, name);
    END IF;
    PERFORM _check(key::text, 'key');
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = '25006',
            MESSAGE = 'cannot execute advisory.token() during recovery';
    END IF;
    IF NOT _is_held(key, true, false) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format(
                CASE WHEN is_slot THEN 'this session does not have slot %2$s of semaphore "%1$s"'
                     ELSE 'this session does not hold advisory lock "%s" in exclusive mode' END,
                _display(namespace, coalesce(name, key::text)), slot),
            DETAIL = 'A session can get a token only for a lock or slot that it holds in '
                     'exclusive mode.';
    END IF;
    -- By EXECUTE, because the fourth argument is new in 17.
    EXECUTE $sql$ SELECT pg_logical_emit_message(false, 'advisory', '', true) $sql$ INTO place;
    RETURN _make_token(place);
END $$;

CREATE OR REPLACE FUNCTION advisory.tokens_above(token bigint)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last bigint;
    last_began bigint;
BEGIN
    PERFORM _check(token::text, 'token');
    IF token <= 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'token must be greater than zero';
    ELSIF token >> 50 >= 8191 THEN
        RAISE EXCEPTION USING ERRCODE = '22003', MESSAGE = format('token %s is too large', token);
    END IF;

    LOCK TABLE advisory.fences IN SHARE UPDATE EXCLUSIVE MODE;
    PERFORM _here();
    SELECT e.last_value, b.last_value INTO last, last_began FROM _era AS e, _server_began AS b;
    IF last >> 50 <= token >> 50 THEN
        -- The era is the one after that of the token; the other bits of the cells stay.
        PERFORM setval('advisory._server_began', last_began & -8192 | (token >> 50) + 1);
        PERFORM setval('advisory._era', ((token >> 50) + 1) << 50 | (last & 1125899906842623));
    END IF;
    -- No dump of the data alone and no replication of sequences changes this.
    EXECUTE format('ALTER SEQUENCE advisory._era START %s',
                   (SELECT greatest(seqstart, (token >> 50) + 1)
                    FROM pg_sequence
                    WHERE seqrelid = 'advisory._era'::regclass));
END $$;
COMMENT ON FUNCTION advisory.tokens_above(bigint) IS
    'make all later tokens of this database greater than this one';

-- Only check_token() writes this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory.fences (
    key bigint PRIMARY KEY,
    token bigint NOT NULL)
    WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, name text, token bigint)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    k bigint := advisory.key(namespace, name);
    highest bigint;
BEGIN
    PERFORM _check(token::text, 'token');
    IF token <= 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'token must be greater than zero';
    END IF;
    IF token >> 50 > (SELECT h.era FROM _here() AS h) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('token %s is greater than all tokens of this database', token),
            DETAIL = 'If it counted as used, no later holder''s token would be accepted.';
    END IF;

    INSERT INTO advisory.fences AS f VALUES (k, check_token.token)
        ON CONFLICT ON CONSTRAINT fences_pkey
        DO UPDATE SET token = greatest(f.token, EXCLUDED.token)
        RETURNING f.token INTO highest;
    -- The error does not tell the greater token: nothing says whether the caller may read it.
    IF highest <> token THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('stale token %s of "%s"', token, _display(namespace, name)),
            DETAIL = 'A later holder has already used a greater token.';
    END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION advisory.fenced()
    RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    place text := format('column "%s" of relation "%s"', TG_ARGV[0], TG_TABLE_NAME);
    type oid;
    token bigint;
    old_token bigint;
BEGIN
    IF NOT (TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' AND TG_OP IN ('INSERT', 'UPDATE')) THEN
        RAISE EXCEPTION USING ERRCODE = '39P01',
            MESSAGE = 'advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW';
    ELSIF TG_NARGS <> 1 THEN
        RAISE EXCEPTION USING ERRCODE = '39P01',
            MESSAGE = 'advisory.fenced() takes the name of the token''s column as its only '
                      'argument';
    END IF;
    SELECT atttypid INTO type
    FROM pg_attribute
    WHERE attrelid = TG_RELID AND attname = TG_ARGV[0] AND attnum > 0 AND NOT attisdropped;
    IF type IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42703', MESSAGE = place || ' does not exist';
    ELSIF type <> 'bigint'::regtype THEN
        RAISE EXCEPTION USING ERRCODE = '42804', MESSAGE = place || ' must have type bigint';
    END IF;

    -- For INSERT, OLD is null.  The error does not tell the old token: the role may not read it.
    EXECUTE format('SELECT ($1).%1$I, ($2).%1$I', TG_ARGV[0]) INTO token, old_token USING NEW, OLD;
    IF token IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '23502', MESSAGE = 'null token in ' || place;
    ELSIF token < old_token THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('stale token %s in %s', token, place),
            DETAIL = 'A later holder has already written a greater token.';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION advisory.fenced() IS
    'trigger function: refuses a NULL token and one smaller than the row''s';

-- Once per window.

-- Only the owner's code writes this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory._claims (
    key bigint PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    last_window timestamptz NOT NULL,
    window_before timestamptz NOT NULL,
    claimed_at timestamptz,
    claimed_by text,
    role oid NOT NULL,
    finished_at timestamptz,    -- For claim() it is claimed_at: the work ends with its transaction.
    every interval,
    pid integer,
    role_name name NOT NULL,
    system bigint NOT NULL)
    WITH (fillfactor = 50);

-- An older file has made it without the last two.
ALTER TABLE advisory._claims
    ADD COLUMN IF NOT EXISTS role_name name,
    ADD COLUMN IF NOT EXISTS system bigint;

UPDATE advisory._claims
SET role_name = pg_get_userbyid(role), system = advisory._system()
WHERE system IS NULL;

ALTER TABLE advisory._claims
    ALTER role_name SET NOT NULL,
    ALTER system SET NOT NULL;

CREATE OR REPLACE VIEW advisory.claims AS
    SELECT CASE WHEN may_see THEN _printable(left(namespace, 1024)) ELSE hidden END AS namespace,
           CASE WHEN may_see THEN _printable(left(name, 1024)) ELSE hidden END AS name,
           CASE WHEN may_see THEN key END AS key,
           last_window,
           claimed_at,
           CASE WHEN may_see OR claimed_by IS NULL THEN _printable(left(claimed_by, 256))
                ELSE hidden END AS claimed_by,
           nullif(finished_at, claimed_at) AS finished_at,
           -- It runs while its session holds the lock of its name, or a slot.  A standby does not
           -- know that.
           CASE WHEN finished_at IS NULL AND claimed_at IS NOT NULL AND pg_is_in_recovery()
                THEN NULL
                WHEN finished_at IS NULL AND claimed_at IS NOT NULL
                     AND ((pid, key) IN (SELECT k.pid, k.key FROM _keys AS k)
                          OR (pid, _slot_key(namespace, name, 0)) IN (
                              SELECT k.pid, k.key & -16384 FROM _keys AS k)) THEN 'running'
                WHEN last_window > now + least(every / 2, '1 minute') THEN 'ahead'
                WHEN claimed_at IS NULL THEN 'taken back'
                WHEN finished_at IS NULL THEN 'failed'
                ELSE 'done' END AS state,
           every,
           extract(epoch FROM now) - extract(epoch FROM last_window)
               > 2.1 * extract(epoch FROM every) AS overdue,
           NULL::timestamptz AS last_skipped_at
    FROM _claims,
         LATERAL (SELECT '<insufficient privilege>', clock_timestamp(),
                         pg_has_role('pg_read_all_stats', 'USAGE')
                         OR _has_role(current_user, role, role_name, system, 'USAGE'))
             AS l (hidden, now, may_see)
    -- That is what unclaim() of the first window leaves.
    WHERE last_window > '-infinity' AND (SELECT _tell_of_standby(false));
COMMENT ON VIEW advisory.claims IS 'the last claimed window of each name';

-- The window at a time, on the clocks of a time zone, counted from the first Monday of the century.
-- A minute early is in time.
CREATE OR REPLACE FUNCTION advisory._window_at(every interval, at timestamptz, time_zone text)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    zone text := coalesce(time_zone, 'UTC');
    length numeric := _microseconds(every);
    early interval := least(div(length, 2), 60000000)::bigint * interval '1 us';
    local timestamp := (at + early) AT TIME ZONE zone;
    begins timestamp := local - mod(_microseconds(local - '2001-01-01'), length)::bigint
                                * interval '1 us';
    -- A midnight that is there twice was there first before the clocks were put back.
    first timestamptz := (begins - interval '4 hours') AT TIME ZONE zone + interval '4 hours';
BEGIN
    RETURN least(begins AT TIME ZONE zone,
                 CASE WHEN first AT TIME ZONE zone = begins THEN first END);
END $$;

-- Checks the length of a window, or of what must be between two.  It is called every_is.
CREATE OR REPLACE FUNCTION advisory._check_every(every interval, every_is text)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF every <= '0' THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = every_is || ' must be greater than zero';
    ELSIF NOT isfinite(every) THEN
        RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = every_is || ' must be finite';
    ELSIF every > '366 days' THEN
        RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = every_is || ' is out of range',
            DETAIL = 'It can be at most 366 days.',
            HINT = 'A number without a unit counts seconds. '
                   'Pass the length with its unit, such as ''1 hour''.';
    END IF;
END $$;

-- Checks the arguments, and returns the window, in whole milliseconds, because many drivers keep no
-- more: start, or that of now; now itself for apart.
CREATE OR REPLACE FUNCTION advisory._window(namespace text, name text, every interval,
                                            start timestamptz, time_zone text, every_is text,
                                            start_is text)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
    length numeric := _microseconds(every);
BEGIN
    PERFORM advisory.key(namespace, name);    -- Checks the name.
    PERFORM _check_kept(namespace, name, 'claim');
    PERFORM _check(every::text, every_is);
    PERFORM _check_every(every, every_is);
    IF NOT isfinite(start) THEN
        RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = start_is || ' must be finite';
    ELSIF start > now + every THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('window %s is too far ahead', start),
            DETAIL = 'A window can be claimed at most one window before it begins.';
    ELSIF start IS NULL AND date_trunc('month', every) <> '0' THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = every_is || ' must not have months or years',
            DETAIL = 'Months and years differ in length.',
            HINT = CASE every_is WHEN 'apart' THEN 'Use days or smaller units.'
                       ELSE 'Give the window itself as ' || start_is || ', such as '
                            'date_trunc(''month'', now() + interval ''1 minute'', ''UTC'').' END;
    ELSIF time_zone IS NOT NULL AND start IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'time_zone must not be given together with ' || start_is;
    ELSIF time_zone IS NOT NULL AND mod(length, 86400000000) <> 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = every_is || ' must be whole days if time_zone is given';
    END IF;

    IF start IS NOT NULL THEN
        RETURN date_trunc('milliseconds', start);
    ELSIF every_is = 'apart' THEN
        RETURN now;
    END IF;
    RETURN date_trunc('milliseconds', _window_at(every, now, time_zone));
END $$;

-- The sentence that says who has made the last claim of a key, as far as that role may know it.
CREATE OR REPLACE FUNCTION advisory._last_claim(k bigint, asked_by oid)
    RETURNS text
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT concat(
            CASE WHEN every IS NULL THEN 'It' ELSE 'Window ' || last_window END,
            ' was claimed ',
            coalesce('at ' || date_trunc('second', claimed_at), 'before one that was taken back'),
            CASE WHEN pg_has_role(asked_by, 'pg_read_all_stats', 'USAGE')
                      OR _has_role(pg_get_userbyid(asked_by), role, role_name, system, 'USAGE')
                 THEN ' by ' || _printable(left(claimed_by, 256)) END,
            CASE WHEN finished_at = claimed_at THEN ', and its work is done'
                 WHEN claimed_at IS NOT NULL
                 THEN coalesce(', and finished at ' || date_trunc('second', finished_at),
                               ', and has not finished') END,
            '.')
        FROM _claims AS c
        WHERE c.key = k);
END $$;

-- With apart the window is now, and length what it must be apart from the last one.
CREATE OR REPLACE FUNCTION advisory._claim_window(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    is_for_run boolean := r.what LIKE 'run%';
    is_apart boolean := r.what LIKE '%apart';
    start timestamptz := _window(
        r.namespace, r.name, r.length, r.at, CASE WHEN NOT is_for_run THEN r.time_zone END,
        CASE WHEN is_apart THEN 'apart' ELSE 'every' END, 'window_start');
    -- A day has 24 hours here.  New data of the zone, or another zone, can move days by hours.
    last timestamptz := start - CASE WHEN is_apart
                                     THEN _microseconds(r.length)::bigint * interval '1 us'
                                     WHEN r.time_zone IS NULL THEN '1 us' ELSE '12 hours' END;
BEGIN
    INSERT INTO _claims AS c
        SELECT k, r.namespace, r.name, date_trunc('milliseconds', start), '-infinity', now,
               _who(r.asked_by), r.asked_by,
               CASE WHEN NOT is_for_run THEN now END, CASE WHEN NOT is_apart THEN r.length END,
               pg_backend_pid(), pg_get_userbyid(r.asked_by), _system()
        FROM (SELECT CASE WHEN is_apart THEN start ELSE clock_timestamp() END) AS n (now)
        WHERE NOT EXISTS (
            SELECT FROM _claims AS o
            WHERE o.key = k
                AND greatest(o.last_window, CASE WHEN is_apart THEN o.claimed_at END) > last)
        ON CONFLICT ON CONSTRAINT _claims_pkey DO UPDATE
        SET last_window = EXCLUDED.last_window, window_before = c.last_window, pid = EXCLUDED.pid,
            claimed_at = EXCLUDED.claimed_at, claimed_by = EXCLUDED.claimed_by,
            role = EXCLUDED.role, role_name = EXCLUDED.role_name, system = EXCLUDED.system,
            finished_at = EXCLUDED.finished_at, every = EXCLUDED.every
        WHERE greatest(c.last_window, CASE WHEN is_apart THEN c.claimed_at END) <= last
        RETURNING CASE WHEN is_for_run THEN c.claimed_at ELSE c.last_window END
        INTO STRICT r.result;

    -- It may have waited for a transaction that rolled back: the next one is apart from now.
    IF is_apart AND clock_timestamp() - start >= '1 ms' THEN
        UPDATE _claims AS c
        SET last_window = date_trunc('milliseconds', now), claimed_at = now,
            finished_at = CASE WHEN NOT is_for_run THEN now END
        FROM (SELECT clock_timestamp()) AS n (now)
        WHERE c.key = k
        RETURNING CASE WHEN is_for_run THEN c.claimed_at ELSE c.last_window END INTO r.result;
    END IF;
    RETURN r;
EXCEPTION WHEN no_data_found THEN
    -- If another transaction claimed it meanwhile, the end of this block has released its row.
    r.reason := CASE WHEN is_for_run THEN _last_claim(k, r.asked_by) END;
    RETURN r;
END $$;

CREATE OR REPLACE FUNCTION advisory._end_claim(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
BEGIN
    -- Unless that had to wait for somebody who claims a later window.
    LOCK TABLE advisory._claims IN ROW EXCLUSIVE MODE NOWAIT;
    UPDATE _claims AS c
    SET finished_at = clock_timestamp()
    WHERE c.key = (SELECT o.key
                   FROM _claims AS o
                   WHERE o.key = advisory.key(r.namespace, r.name) AND o.claimed_at = r.at
                       AND _has_role(pg_get_userbyid(r.asked_by), o.role, o.role_name, o.system,
                                     'MEMBER')
                   FOR UPDATE SKIP LOCKED);
    RETURN r;
END $$;

-- The window before it is the last one again, so that none before that can be claimed once more.
CREATE OR REPLACE FUNCTION advisory.unclaim(namespace text, name text, window_start timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    k bigint := advisory.key(namespace, name);
BEGIN
    PERFORM _check_kept(namespace, name, 'claim');
    PERFORM _check(window_start::text, 'window_start');
    IF NOT isfinite(window_start) THEN
        RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = 'window_start must be finite';
    END IF;
    UPDATE _claims AS c
    SET last_window = c.window_before, claimed_at = NULL, claimed_by = NULL, finished_at = NULL
    WHERE c.key = k AND c.last_window = date_trunc('milliseconds', window_start)
        AND c.claimed_at IS NOT NULL;
    RETURN FOUND;
END $$;

-- Leases.

-- Only the owner's code writes this table, on behalf of every role.  A row is a lease, slot 0, or a
-- slot that outlives sessions; slots is how many its taker said there are, 0 for a lease.  queue is
-- the key of the lock of those who wait; _lease_lock() has that of the row.  server is that of the
-- last renewal.  Without WAL functions the row stays, and its end is -infinity: it keeps the token.
CREATE TABLE IF NOT EXISTS advisory._leases (
    key bigint,
    queue bigint NOT NULL,
    token bigint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    role oid NOT NULL,
    server bigint NOT NULL,
    ttl interval NOT NULL CONSTRAINT _leases_ttl CHECK (ttl BETWEEN '0' AND '366 days'),
    lock_delay interval NOT NULL
        CONSTRAINT _leases_lock_delay CHECK (lock_delay BETWEEN '0' AND '366 days'),
    acquired_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
        CONSTRAINT _leases_expires_at CHECK (expires_at < '9999-01-01 00:00:00+00'),
    renewals bigint NOT NULL,
    role_name name NOT NULL,
    system bigint NOT NULL,
    slot integer NOT NULL DEFAULT 0,
    slots integer NOT NULL DEFAULT 0,
    max_hold interval,
    PRIMARY KEY (key, slot))
    WITH (fillfactor = 50);

-- An older file has made it without the last ones, and with a role that had to be there when a dump
-- was restored.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute
               WHERE attrelid = 'advisory._leases'::regclass
                   AND attname = 'role' AND atttypid = 'regrole'::regtype) THEN
        -- Until below it reads no role, so that what users have built on it stays.
        CREATE OR REPLACE VIEW advisory._shown_leases AS
            SELECT NULL::text AS namespace, NULL::text AS name, NULL::text AS owner,
                   NULL::bigint AS token, NULL::text AS state, NULL::interval AS ttl,
                   NULL::timestamptz AS acquired_at, NULL::timestamptz AS renewed_at,
                   NULL::timestamptz AS expires_at, NULL::interval AS remaining,
                   NULL::bigint AS renewals, NULL::bigint AS queue, NULL::text AS lock,
                   NULL::text AS remedy;
        ALTER TABLE advisory._leases ALTER role TYPE oid;
    END IF;
    ALTER TABLE advisory._leases
        ADD COLUMN IF NOT EXISTS role_name name,
        ADD COLUMN IF NOT EXISTS system bigint,
        ADD COLUMN IF NOT EXISTS slot integer NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS slots integer NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS max_hold interval;
    UPDATE advisory._leases
    SET role_name = pg_get_userbyid(role), system = advisory._system()
    WHERE system IS NULL;
    ALTER TABLE advisory._leases
        ALTER role_name SET NOT NULL,
        ALTER system SET NOT NULL;
    IF EXISTS (SELECT FROM pg_constraint
               WHERE conrelid = 'advisory._leases'::regclass
                   AND contype = 'p' AND cardinality(conkey) = 1) THEN
        ALTER TABLE advisory._leases
            DROP CONSTRAINT _leases_pkey,
            ADD CONSTRAINT _leases_pkey PRIMARY KEY (key, slot);
    END IF;
END $$;

-- Until when: on another server its whole TTL again, unless it had been free for a minute by then.
-- The planner inlines it: some leases have very many slots.
CREATE OR REPLACE FUNCTION advisory._expiry(l advisory._leases, here bigint, began timestamptz)
    RETURNS timestamptz
    LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN l.server OPERATOR(pg_catalog.=) here
                     OR (l.expires_at OPERATOR(pg_catalog.+) l.lock_delay)
                        OPERATOR(pg_catalog.<) (began OPERATOR(pg_catalog.-) interval '1 minute')
                THEN l.expires_at ELSE began OPERATOR(pg_catalog.+) l.ttl END $$;

-- May the caller use advisory locks?  Not on every service.
CREATE OR REPLACE FUNCTION advisory._can_lock()
    RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT has_function_privilege('pg_try_advisory_xact_lock(bigint)', 'EXECUTE')
           AND has_function_privilege('pg_advisory_lock(bigint)', 'EXECUTE') $$;

-- The key of the lock of those who wait.  The next 16,000 belong to the same lease or slots.  None
-- of these ends in 14 zero bits: that is the key of a semaphore.
CREATE OR REPLACE FUNCTION advisory._lease_queue(namespace text, name text, is_for_slots boolean)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT _hash(_bytes(namespace, name)
                 || CASE WHEN is_for_slots THEN decode('006c65617365736c6f74', 'hex')
                         ELSE decode('006c65617365', 'hex') END) & -16384 | 1 $$;

-- An older file had another key.
UPDATE advisory._leases
SET queue = advisory._lease_queue(namespace, name, slot > 0)
WHERE queue & 16383 <> 1;

-- The key of the lock of a lease (slot 0) or a slot: who has taken or ended it in this transaction
-- (exclusive), or relies on it (shared).
CREATE OR REPLACE FUNCTION advisory._lease_lock(queue bigint, slot integer)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT queue OPERATOR(pg_catalog.+) greatest(slot, 1) $$;

-- How long, in hours and smaller units: a day has 24 hours here.
CREATE OR REPLACE FUNCTION advisory._lease_length(length interval, what text, may_be_zero boolean)
    RETURNS interval
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _check(length::text, what);
    IF length < '0' AND may_be_zero THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = what || ' must not be negative';
    ELSIF length <= '0' AND NOT may_be_zero THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = what || ' must be greater than zero';
    ELSIF date_trunc('month', length) <> '0' THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = what || ' must not have months or years',
            DETAIL = 'Months and years differ in length.',
            HINT = 'Use days or smaller units.';
    ELSIF length > '366 days' THEN
        RAISE EXCEPTION USING ERRCODE = '22008', MESSAGE = what || ' is out of range',
            DETAIL = 'It can be at most 366 days.',
            HINT = 'A number without a unit counts seconds. '
                   'Pass the length with its unit, such as ''1 hour''.';
    END IF;
    RETURN _microseconds(length)::bigint * interval '1 us';
END $$;

-- Greater than the last one.  Two slots never get the same one, also where that is not less than
-- what the WAL gives, or without WAL functions.
CREATE OR REPLACE FUNCTION advisory._lease_token(last_token bigint, slot integer)
    RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    next_token bigint := CASE slot WHEN 0 THEN last_token + 1
                                   ELSE (last_token & -16384) + 16384 + slot END;
    token bigint;
BEGIN
    token := _make_token(pg_logical_emit_message(false, 'advisory', ''));
    RETURN CASE WHEN token > last_token THEN token ELSE next_token END;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    RETURN next_token;
END $$;

-- Take the lock of a lease or a slot for the transaction.  Returns whether it was free, or, where
-- there are no advisory locks, true.
CREATE OR REPLACE FUNCTION advisory._mark_lease(lock bigint, is_owner boolean)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF _can_lock() THEN    -- To name the function in this condition would need the privilege.
        RETURN _try_once(NOT is_owner, true, lock);
    END IF;
    RETURN true;
END $$;

-- Does another session wait?  The first that does holds the lock of the queue.
CREATE OR REPLACE FUNCTION advisory._is_awaited(queue bigint)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT _can_lock() THEN
        RETURN false;
    END IF;
    -- No cancel comes between the two.  Before 17 they say no to whoever is the first, too.
    RETURN NOT (pg_try_advisory_lock_shared(queue) AND pg_advisory_unlock_shared(queue))
           AND NOT _is_held(queue, true, false);
END $$;

-- Returns until when it was.  The lease if the token is null; of any role if that is.
CREATE OR REPLACE FUNCTION advisory._end_lease(namespace text, name text, token bigint,
                                               asked_by oid)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    old _leases;
BEGIN
    SELECT l.* INTO old
    FROM _leases AS l
    WHERE l.key = advisory.key(_end_lease.namespace, _end_lease.name)
        AND CASE WHEN _end_lease.token IS NULL THEN l.slot = 0
                 ELSE l.token = _end_lease.token END
        AND l.expires_at > '-infinity'
        AND (asked_by IS NULL
             OR _has_role(pg_get_userbyid(asked_by), l.role, l.role_name, l.system, 'USAGE'))
    FOR UPDATE;
    -- Without WAL functions the row has to keep the token, so that the next one is greater.
    IF _lease_token(0, 0) > 1 THEN
        DELETE FROM _leases AS l WHERE l.key = old.key AND l.slot = old.slot;
    ELSE
        UPDATE _leases AS l
        SET expires_at = '-infinity', lock_delay = '0'
        WHERE l.key = old.key AND l.slot = old.slot;
    END IF;
    IF FOUND THEN
        PERFORM _mark_lease(_lease_lock(old.queue, old.slot), true);
    END IF;
    RETURN old.expires_at;
END $$;

-- Returns until when it is now, -infinity if that would be beyond max_hold, or NULL if it is lost.
CREATE OR REPLACE FUNCTION advisory._renew_lease(r advisory._request)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    old _leases;
    now timestamptz;
    renewed timestamptz;
BEGIN
    -- First the lock, then the clock.
    SELECT l.* INTO old
    FROM _leases AS l
    WHERE l.key = advisory.key(r.namespace, r.name) AND l.token = r.token
        AND l.expires_at > '-infinity'
        AND _has_role(pg_get_userbyid(r.asked_by), l.role, l.role_name, l.system, 'USAGE')
    FOR NO KEY UPDATE;
    now := clock_timestamp();
    IF old.acquired_at + old.max_hold <= now THEN
        RETURN '-infinity';
    END IF;
    -- A restart gives no more again than this.
    r.length := least(
        coalesce(r.length, old.ttl),
        _microseconds(old.acquired_at + old.max_hold - now)::bigint * interval '1 us');
    UPDATE _leases AS l
    SET ttl = r.length, renewed_at = now, renewals = l.renewals + 1, expires_at = now + r.length,
        server = h.server, role = m.role, role_name = pg_get_userbyid(m.role), system = _system()
    FROM _here() AS h,
         (SELECT coalesce(_role_here(old.role, old.role_name, old.system), r.asked_by)) AS m (role)
    WHERE l.key = old.key AND l.slot = old.slot
    RETURNING l.expires_at INTO renewed;
    RETURN renewed;
END $$;

-- Renew, check or end it.
CREATE OR REPLACE FUNCTION advisory._use_lease(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    lock bigint;
BEGIN
    IF (r.what IN ('renew', 'check', 'end')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'no request';
    END IF;
    PERFORM _check_kept(r.namespace, r.name, 'lease');
    PERFORM _check(r.token::text, 'token');
    IF r.token <= 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'token must be greater than zero';
    END IF;
    IF r.length IS NOT NULL THEN
        r.length := _lease_length(r.length, 'ttl', false);
    END IF;

    IF r.what = 'end' THEN
        r.result := _end_lease(r.namespace, r.name, r.token, r.asked_by);
    ELSIF r.what = 'renew' THEN
        r.result := _renew_lease(r);
    ELSE
        SELECT l.expires_at, _lease_lock(l.queue, l.slot) INTO r.result, lock
        FROM _leases AS l
        WHERE l.key = k AND l.token = r.token AND l.expires_at > '-infinity'
            AND _has_role(pg_get_userbyid(r.asked_by), l.role, l.role_name, l.system, 'USAGE')
        FOR KEY SHARE;
        IF FOUND THEN
            PERFORM _mark_lease(lock, false);
        END IF;
    END IF;

    -- An older snapshot cannot tell that it is lost.
    IF r.result IS NULL AND current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = '40001',
            MESSAGE = 'could not serialize access to a lease', HINT = 'Use READ COMMITTED.';
    ELSIF r.result IS NULL AND r.what = 'check' THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('lease "%s" with token %s is lost', _display(r.namespace, r.name),
                             r.token),
            DETAIL = 'The lease was ended, or it expired and was taken over, or it belongs to '
                     'another role.';
    END IF;
    r.result := nullif(r.result, '-infinity');
    RETURN r;
END $$;

-- The sentences that say why a lease, or a slot, cannot be taken before free_at, as far as that
-- role may know.
CREATE OR REPLACE FUNCTION advisory._why_held(l advisory._leases, free_at timestamptz,
                                              asked_by oid)
    RETURNS text
    LANGUAGE plpgsql AS $$
DECLARE
    is_held boolean := l.expires_at > clock_timestamp();
    may_see boolean := pg_has_role(asked_by, 'pg_read_all_stats', 'USAGE')
                       OR _has_role(pg_get_userbyid(asked_by), l.role, l.role_name, l.system,
                                    'USAGE');
BEGIN
    RETURN concat(
        CASE WHEN may_see
             THEN format('"%s" %s %s', _printable(left(l.owner, 256)),
                         CASE WHEN is_held THEN 'holds' ELSE 'held' END,
                         coalesce('slot ' || nullif(l.slot, 0), 'it'))
             ELSE format('%s %s held', coalesce('Slot ' || nullif(l.slot, 0), 'It'),
                         CASE WHEN is_held THEN 'is' ELSE 'was' END) END,
        ' until ', l.expires_at, '.',
        CASE WHEN l.lock_delay > '0'
             THEN format(' Nobody else can take it before %s.', free_at) END);
END $$;

-- Why a lease, or a slot, cannot be taken.  So many of them are held; those that become free first
-- are named.
CREATE OR REPLACE FUNCTION advisory._why_taken(r advisory._request, held integer, server bigint,
                                               began timestamptz)
    RETURNS text
    LANGUAGE plpgsql AS $$
DECLARE
    l _leases;
    lines text[];
BEGIN
    IF r.slots > 0 THEN
        lines := ARRAY[format('%s of %s taken%s.', held, r.slots,
                              ', the first until ' || r.free_at)];
    END IF;
    IF held < greatest(r.slots, 1) THEN
        lines := lines || format(
            'Another session takes %1$s or ends %1$s, relies on %1$s, or waits for %1$s.',
            CASE WHEN r.slots > 0 THEN 'one' ELSE 'it' END);
    END IF;
    FOR l IN
        SELECT o.*
        FROM _leases AS o
        WHERE o.key = advisory.key(r.namespace, r.name)
            AND o.slot BETWEEN least(r.slots, 1) AND r.slots
            AND _expiry(o, $3, $4) + o.lock_delay > clock_timestamp()
        ORDER BY _expiry(o, $3, $4), o.slot
        LIMIT 3
    LOOP
        l.expires_at := _expiry(l, $3, $4);
        lines := lines || _why_held(l, l.expires_at + l.lock_delay, r.asked_by);
    END LOOP;
    RETURN array_to_string(lines || (nullif(greatest(held, 3), 3) - 3 || ' more.'), E'\n');
END $$;

-- Deletes some leases that nobody has wanted for a week.
CREATE OR REPLACE FUNCTION advisory._sweep_leases(here bigint, began timestamptz)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM _leases AS l
    WHERE (l.key, l.slot) IN (
        SELECT o.key, o.slot
        FROM _leases AS o
        WHERE o.expires_at < clock_timestamp() - interval '7 days'
            AND o.expires_at > '-infinity' AND o.token >> 50 > 0
            AND _expiry(o, here, began) + o.lock_delay < clock_timestamp() - interval '7 days'
        LIMIT 10
        FOR UPDATE SKIP LOCKED);
END $$;

-- The request to take a lease or a slot, with what it has left out, or the error of what is wrong.
CREATE OR REPLACE FUNCTION advisory._checked_take(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _check_kept(r.namespace, r.name, 'lease');
    r.token := NULL;
    IF r.what = 'take' THEN
        r.slots := 0;
    ELSE
        PERFORM _check_slot(r.slots, 'slots');
    END IF;
    r.length := _lease_length(r.length, 'ttl', false);
    r.owner := coalesce(r.owner, _who(r.asked_by));
    r.lock_delay := _lease_length(r.lock_delay, 'lock_delay', true);
    PERFORM _check(r.owner, 'owner');
    PERFORM _check(r.owner, 'owner of a lease', 256);
    IF r.max_hold IS NOT NULL THEN
        r.max_hold := _lease_length(r.max_hold, 'max_hold', false);
        r.length := least(r.length, r.max_hold);
    END IF;
    RETURN r;
END $$;

-- Write the row of the request's slot, whose lock this transaction has.  Its token is greater than
-- that one, or null if somebody has renewed the row meanwhile, or relies on it.
CREATE OR REPLACE FUNCTION advisory._write_lease(r advisory._request, queue bigint,
                                                 last_token bigint, server bigint,
                                                 began timestamptz)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    old _leases;
BEGIN
    SELECT l.* INTO old
    FROM _leases AS l
    WHERE l.key = k AND l.slot = r.slot
    FOR UPDATE SKIP LOCKED;
    IF old.key IS NULL AND EXISTS (SELECT FROM _leases AS l WHERE l.key = k AND l.slot = r.slot)
       OR _expiry(old, server, began) + old.lock_delay > clock_timestamp() THEN
        RETURN r;
    END IF;
    DELETE FROM _leases AS l WHERE l.key = k AND l.slot = old.slot;
    INSERT INTO _leases AS l
        SELECT k, queue, _lease_token(greatest(last_token, old.token, 0), r.slot), r.namespace,
               r.name, r.owner, r.asked_by, server, r.length, r.lock_delay, now, now,
               now + r.length, 0, pg_get_userbyid(r.asked_by), _system(), r.slot, r.slots,
               r.max_hold
        FROM clock_timestamp() AS n (now)
        ON CONFLICT ON CONSTRAINT _leases_pkey DO NOTHING
        RETURNING l.token, l.expires_at INTO r.token, r.result;
    RETURN r;
END $$;

-- Take the lease, or the lowest slot that is free.  That does not wait, and does not overtake those
-- who do.
CREATE OR REPLACE FUNCTION advisory._take_lease(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    here record;
    queue bigint;
    free integer[];
    held integer;
    last_token bigint;
BEGIN
    r := _checked_take(r);
    queue := _lease_queue(r.namespace, r.name, r.slots > 0);
    here := _here();
    -- (SELECT r.slots): one plan for all numbers.
    WITH given AS MATERIALIZED (
        SELECT l.slot, l.token, _expiry(l, here.server, here.began) + l.lock_delay AS free_at
        FROM _leases AS l
        WHERE l.key = k
            AND l.slot BETWEEN least(r.slots, 1) AND CASE WHEN r.slots > 0 THEN 16000 ELSE 0 END),
    held AS MATERIALIZED (
        SELECT slot, free_at FROM given WHERE slot <= r.slots AND free_at > clock_timestamp())
    SELECT ARRAY(SELECT s
                 FROM generate_series(least(r.slots, 1), (SELECT r.slots)) AS s
                 WHERE s NOT IN (SELECT h.slot FROM held AS h)
                 ORDER BY s),
           (SELECT max(token) FROM given),
           (SELECT min(h.free_at) FROM held AS h)
    INTO free, last_token, r.free_at;
    held := greatest(r.slots, 1) - cardinality(free);

    IF free <> '{}' AND _is_awaited(queue) THEN
        free := '{}';
    END IF;
    WHILE free <> '{}' LOOP
        BEGIN
            r.slot := (SELECT s
                       FROM unnest(free) AS s
                       WHERE _mark_lease(_lease_lock(queue, s), true)
                       LIMIT 1);
            IF r.slot IS NOT NULL THEN
                r := _write_lease(r, queue, last_token, here.server, here.began);
            END IF;
            EXIT WHEN r.token IS NOT NULL;
            RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'somebody was faster';
        EXCEPTION WHEN lock_not_available THEN
            -- This has released the locks.
            free := ARRAY(SELECT s FROM unnest(free) AS s WHERE s > r.slot);
        END;
    END LOOP;
    IF r.token IS NULL THEN
        r.reason := _why_taken(r, held, here.server, here.began);
        RETURN r;
    END IF;

    -- First in a transaction only, since that keeps rows locked.
    IF random() < 0.1 AND now() = statement_timestamp()
       AND current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM _sweep_leases(here.server, here.began);
    END IF;
    RETURN r;
END $$;

-- Leave the queue, if this session is in front of it.
CREATE OR REPLACE FUNCTION advisory._leave_queue(queue bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF _is_held(queue, true, false) THEN
        PERFORM _unlock_quietly(false, queue);
    END IF;
END $$;

-- Wait for what was asked for.  Those who wait queue up on a lock, and only the first of them looks
-- whether the lease, or a slot, is free.  Others may take slots before this transaction ends, so
-- this is a lock of the session.
CREATE OR REPLACE FUNCTION advisory._wait_for_lease(asked advisory._request, most integer,
                                                    deadline timestamptz)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    queue bigint := _lease_queue(asked.namespace, asked.name, asked.slots > 0);
    pause interval := '2 ms';
    answer _request := asked;
BEGIN
    PERFORM _check_lease_wait(asked, queue);
    BEGIN
        IF _can_lock() AND NOT _take(false, false, queue, most) THEN
            RETURN answer;
        END IF;
        LOOP
            answer := _request(asked.what, asked.namespace, asked.name, asked.length, NULL, NULL,
                               NULL, asked.owner, asked.lock_delay, asked.slots, asked.max_hold);
            EXIT WHEN answer.token IS NOT NULL OR clock_timestamp() >= deadline;
            -- Nothing wakes it, so that it has to look whether the lease was ended.
            PERFORM pg_sleep(greatest(0.001, extract(epoch FROM least(
                clock_timestamp() + pause, deadline, answer.free_at) - clock_timestamp())));
            pause := least(pause * 1.5, '50 ms');
        END LOOP;
        PERFORM _leave_queue(queue);
        RETURN answer;
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        PERFORM _leave_queue(queue);
        RAISE;
    END;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    -- A second cancel, as that of a driver beside statement_timeout, can come while the first one
    -- is served.
    PERFORM _leave_queue(queue);
    RAISE;
END $$;

-- Take it, or wait for it.
CREATE OR REPLACE FUNCTION advisory._lease(must boolean, what text, namespace text, name text,
                                           slots integer, ttl interval, timeout interval,
                                           owner text, lock_delay interval, max_hold interval,
                                           OUT slot integer, OUT token bigint,
                                           OUT expires_at timestamptz, OUT remaining interval)
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    most integer := _milliseconds(timeout);
    deadline timestamptz := _deadline(most);
    answer _request;
BEGIN
    answer := _request(what, namespace, name, ttl, NULL, NULL, NULL, owner, lock_delay, slots,
                       max_hold);
    IF answer.token IS NULL AND most IS DISTINCT FROM 0 THEN
        answer := _wait_for_lease(answer, most, deadline);
    END IF;

    IF answer.token IS NOT NULL THEN
        slot := answer.slot;
        token := answer.token;
        expires_at := answer.result;
        remaining := _remaining(expires_at);
    ELSIF must THEN
        PERFORM _raise_taken(answer, timeout);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._remaining(until timestamptz)
    RETURNS interval
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(until - clock_timestamp(), '0');
END $$;

-- The error if a call cannot wait for a lease, or a slot.
CREATE OR REPLACE FUNCTION advisory._check_lease_wait(asked advisory._request, queue bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = '25001',
            MESSAGE = 'cannot wait for a lease in this isolation level',
            DETAIL = 'The snapshot of the transaction cannot see that the lease becomes free.',
            HINT = 'Use READ COMMITTED, or try_lease() with a timeout of 0.';
    ELSIF (SELECT count(*)
           FROM _own
           WHERE key BETWEEN queue + 1 AND queue + greatest(asked.slots, 1)
               AND mode = 'ExclusiveLock') = greatest(asked.slots, 1) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('this transaction has already taken or ended %slease "%s"',
                             CASE WHEN asked.slots > 0 THEN 'all slots of ' END,
                             _display(asked.namespace, asked.name)),
            DETAIL = 'It would wait for itself.',
            HINT = format('(advisory.%1$s(...)).* calls the function for each column. '
                          'Use SELECT * FROM advisory.%1$s(...).',
                          CASE WHEN asked.slots > 0 THEN 'lease_slot' ELSE 'lease' END);
    END IF;
END $$;

-- Error 55P03.
CREATE OR REPLACE FUNCTION advisory._raise_taken(answer advisory._request, timeout interval)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not obtain %lease "%" %',
        CASE WHEN answer.slots > 0 THEN 'a slot of ' ELSE '' END,
        _display(answer.namespace, answer.name), _limit(timeout)
        USING ERRCODE = 'lock_not_available', DETAIL = answer.reason,
            HINT = format('To see who holds %s: SELECT * FROM advisory.leases.',
                          CASE WHEN answer.slots > 0 THEN 'them' ELSE 'it' END),
            SCHEMA = answer.namespace, CONSTRAINT = answer.name;
END $$;

CREATE OR REPLACE PROCEDURE advisory._await_lease(what text, namespace text, name text,
                                                  slots integer, ttl interval, timeout interval,
                                                  owner text, lock_delay interval,
                                                  max_hold interval, INOUT slot integer,
                                                  INOUT token bigint,
                                                  INOUT expires_at timestamptz)
    LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(advisory._milliseconds(timeout));
    pause double precision := advisory._pause(NULL, deadline, 'advisory.lease()');
    answer advisory._request;
BEGIN
    LOOP
        COMMIT;    -- Each ends the snapshot.
        answer := advisory._request(what, namespace, name, ttl, NULL, NULL, NULL, owner,
                                    lock_delay, slots, max_hold);
        EXIT WHEN answer.token IS NOT NULL;
        IF pause IS NULL THEN
            PERFORM advisory._raise_taken(answer, timeout);
        END IF;
        pause := advisory._pause(pause, deadline, NULL);
    END LOOP;
    slot := answer.slot;
    token := answer.token;
    expires_at := answer.result;
END $$;

-- How many are held now: the lease of that name, or its slots.
CREATE OR REPLACE FUNCTION advisory._leased(namespace text, name text, is_for_slots boolean)
    RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    k bigint := advisory.key(namespace, name);
BEGIN
    PERFORM _check_kept(namespace, name, 'lease');
    RETURN (
        SELECT count(*)
        FROM _here() AS h, _leases AS l
        WHERE l.key = k AND (l.slot > 0) = is_for_slots
            AND _expiry(l, h.server, h.began) > clock_timestamp());
END $$;

CREATE OR REPLACE FUNCTION advisory.break_lease(namespace text, name text,
                                                token bigint DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
BEGIN
    PERFORM advisory.key(namespace, name);    -- Checks the name.
    PERFORM _check_kept(namespace, name, 'lease');
    IF token <= 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'token must be greater than zero';
    END IF;
    RETURN _end_lease(namespace, name, token, NULL) IS NOT NULL;
END $$;

-- place: the last to expire of each role comes first.
CREATE OR REPLACE VIEW advisory._shown_leases AS
    SELECT CASE WHEN may_see THEN _printable(left(namespace, 1024)) ELSE hidden END AS namespace,
           CASE WHEN may_see THEN _printable(left(name, 1024)) ELSE hidden END AS name,
           CASE WHEN may_see THEN _printable(left(owner, 256)) ELSE hidden END AS owner,
           CASE WHEN is_mine THEN token END AS token,
           CASE WHEN until <= now THEN 'expired'
                WHEN until <> expires_at THEN 'restarted'
                ELSE 'held' END AS state,
           ttl,
           acquired_at,
           renewed_at,
           until AS expires_at,
           greatest(until - now, '0') AS remaining,
           renewals,
           known_queue AS queue,
           'lease ' || CASE WHEN may_see
                            THEN _printable(left(namespace, 256) || '/' || left(name, 256))
                            ELSE hidden END AS lock,
           -- What is printed with '?' could not be found.
           CASE WHEN is_mine AND _printable(namespace || name) = namespace || name
                THEN format('SELECT advisory.break_lease(%L, %L, %s);', namespace, name, token) END
               AS remedy,
           place,
           nullif(slot, 0) AS slot,
           max_hold,
           -- Those who wait for any of these slots have the same.
           CASE WHEN slot > 0 THEN 'lease slots ' ELSE 'lease ' END || known_queue AS tag
    FROM (SELECT _expiry(l, h.server, h.began) AS until, l.*, o.place
          FROM _here() AS h, _leases AS l
          JOIN (SELECT key, slot,
                       row_number() OVER (PARTITION BY role ORDER BY expires_at DESC) AS place
                FROM _leases) AS o USING (key, slot)) AS l,
         LATERAL (SELECT '<insufficient privilege>', clock_timestamp(),
                         _has_role(current_user, role, role_name, system, 'USAGE'))
             AS c (hidden, now, is_mine),
         LATERAL (SELECT is_mine OR pg_has_role('pg_read_all_stats', 'USAGE')) AS m (may_see),
         -- No key tells a hidden name, unless pg_locks shows it.
         LATERAL (SELECT CASE WHEN may_see OR queue IN (SELECT key & -16384 | 1 FROM _keys)
                              THEN queue END) AS q (known_queue)
    WHERE expires_at > '-infinity';

CREATE OR REPLACE VIEW advisory.leases AS
    SELECT namespace, name, owner, token, state, ttl, acquired_at, renewed_at, expires_at,
           remaining, renewals, slot, max_hold
    FROM _shown_leases
    -- One role that takes very many hides nobody else's.
    WHERE place <= 10000 AND (SELECT _tell_of_standby(false))
    ORDER BY expires_at DESC;
COMMENT ON VIEW advisory.leases IS 'the leases of this database';

-- Jobs.

-- Checks the arguments but the name, and those that claim the window.
CREATE OR REPLACE FUNCTION advisory._check_job(command text, timeout interval, slots integer,
                                               if_busy text, once_per interval,
                                               once_window timestamptz, time_zone text,
                                               apart interval)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _milliseconds(timeout);
    PERFORM _check(command, 'command');
    PERFORM _check_slot(coalesce(slots, 1), 'slots');
    PERFORM _check(if_busy, 'if_busy');
    IF if_busy NOT IN ('skip', 'error') THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'if_busy must be "skip" or "error"';
    ELSIF once_per IS NULL AND once_window IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'once_window must not be given without once_per';
    ELSIF once_per IS NULL AND time_zone IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'time_zone must not be given without once_per';
    ELSIF once_per IS NOT NULL AND apart IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'apart must not be given together with once_per';
    ELSIF regexp_replace(    -- It has only blanks and comments.
              command, E'--[^\n\r]*|/\\*([^*]|\\*+[^*/])*\\*+/|[;[:space:]]', '', 'g') = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'command must not be empty';
    END IF;
    -- The server parses the whole text first.  So a syntax error comes before anything happens.
    BEGIN
        EXECUTE 'SELECT 1/0; ' || command;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
END $$;

-- Before the command: checks, takes the lock or a slot, claims the window.  NULL: do not run it.
CREATE OR REPLACE FUNCTION advisory._begin_job(namespace text, name text, command text,
                                               timeout interval, slots integer, if_busy text,
                                               once_per interval, once_window timestamptz,
                                               time_zone text, apart interval)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    key bigint := CASE WHEN slots IS NULL THEN advisory.key(namespace, name)
                       ELSE _slot_key(namespace, name, 0) END;
    every interval := coalesce(once_per, apart);
    is_taken boolean;
    answer _request;
    reason text;
BEGIN
    PERFORM _check_job(command, timeout, slots, if_busy, once_per, once_window, time_zone, apart);
    IF every IS NOT NULL THEN
        once_window := _window(namespace, name, every, once_window, time_zone,
            CASE WHEN apart IS NULL THEN 'once_per' ELSE 'apart' END, 'once_window');
    END IF;

    is_taken := CASE WHEN slots IS NULL THEN advisory.try_xact_lock(namespace, name, timeout)
                     ELSE advisory.try_xact_acquire(namespace, name, slots, timeout) > 0 END;
    IF is_taken IS NOT TRUE THEN
        IF if_busy = 'error' THEN
            PERFORM _raise_not_available(namespace, name, key, slots, 1, timeout);
        END IF;
        RAISE NOTICE 'command was not run because % "%" is taken',
            CASE WHEN slots IS NULL THEN 'advisory lock' ELSE 'semaphore' END,
            _display(namespace, name)
            USING ERRCODE = '55P03', DETAIL = _holders(key, slots);
        RETURN NULL;
    ELSIF every IS NULL THEN
        RETURN clock_timestamp();
    END IF;

    answer := CASE WHEN apart IS NOT NULL THEN _request('run_apart', namespace, name, apart)
                   ELSE _request('run', namespace, name, every, NULL, once_window, time_zone) END;
    IF answer.result IS NULL THEN
        reason := format(CASE WHEN apart IS NULL
                              THEN 'window %2$s of "%1$s" or a later one is already claimed'
                              ELSE 'the last claim of "%s" is not long enough ago' END,
                         _display(namespace, name), once_window);
        PERFORM _require(if_busy = 'skip', '55000', reason, answer.reason);
        RAISE NOTICE 'command was not run because %', reason
            USING ERRCODE = '55000', DETAIL = coalesce(answer.reason, '');
    END IF;
    RETURN answer.result;
END $$;

-- The error of a command that cannot run in a transaction, or not in a function.
CREATE OR REPLACE FUNCTION advisory._raise_not_inside(state text, message text)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = replace(state, '2D000', '0A000'), MESSAGE = message,
        HINT = 'This command cannot run inside advisory.run(). Take the lock with CALL '
               'advisory.await_lock() as a separate statement before the command, and release it '
               'with SELECT advisory.unlock() after the command.';
END $$;

-- The hold is transaction-level: it lasts until the effects of the command are committed, and an
-- error leaves nothing behind.  No SET clause, which would forbid to commit, and would change the
-- command's search_path.
CREATE OR REPLACE PROCEDURE advisory.run(namespace text, name text, command text,
                                         timeout interval DEFAULT '0', slots integer DEFAULT NULL,
                                         if_busy text DEFAULT 'skip',
                                         INOUT ran boolean DEFAULT NULL,
                                         once_per interval DEFAULT NULL,
                                         once_window timestamptz DEFAULT NULL,
                                         time_zone text DEFAULT NULL,
                                         apart interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    role_before pg_catalog.text := pg_catalog.current_setting('role');
    role_after pg_catalog.text;
    claimed_at timestamp with time zone;
BEGIN
    claimed_at := advisory._begin_job(
        namespace, name, command, timeout, slots, if_busy, once_per, once_window, time_zone, apart);
    ran := claimed_at IS NOT NULL;
    IF NOT ran THEN
        RETURN;
    END IF;
    IF once_per IS NOT NULL OR apart IS NOT NULL THEN
        -- This releases the lock, too.  Whoever waits for it goes first, and finds the window
        -- claimed.  (A session-level hold would outlast the COMMIT, but also its failure.)
        COMMIT AND CHAIN;
        PERFORM advisory._begin_job(
            namespace, name, command, NULL, slots, 'error', NULL, NULL, NULL, NULL);
    END IF;

    BEGIN
        EXECUTE command;
    EXCEPTION WHEN invalid_transaction_termination OR active_sql_transaction
                   OR feature_not_supported THEN
        -- Of the last ones only 19's WAIT FOR, which cannot run in any other statement.
        IF SQLSTATE OPERATOR(pg_catalog.=) '0A000'
           AND command OPERATOR(pg_catalog.!~*) '\mWAIT\s+FOR\M' THEN
            RAISE;
        END IF;
        PERFORM advisory._raise_not_inside(SQLSTATE, SQLERRM);
    END;

    IF once_per IS NULL AND apart IS NULL THEN
        RETURN;
    END IF;
    BEGIN
        -- The command can have set another role.
        role_after := pg_catalog.current_setting('role');
        IF role_before OPERATOR(pg_catalog.<>) role_after THEN
            PERFORM pg_catalog.set_config('role', role_before, true);
        END IF;
        PERFORM advisory._request('finish', namespace, name, NULL, NULL, claimed_at);
        IF role_before OPERATOR(pg_catalog.<>) role_after THEN
            PERFORM pg_catalog.set_config('role', role_after, true);
        END IF;
    EXCEPTION WHEN insufficient_privilege OR invalid_parameter_value OR lock_not_available
                   OR serialization_failure THEN
        NULL;
    END;
END $$;

-- Labels and known keys.

CREATE TABLE IF NOT EXISTS advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    note text CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_one_form
        CHECK ((key IS NULL) = (key1 IS NOT NULL) AND (key1 IS NULL) = (key2 IS NULL)));

CREATE UNIQUE INDEX IF NOT EXISTS key_labels_unique ON advisory.key_labels
    ((key IS NULL), coalesce(key, 0), coalesce(key1, 0), coalesce(key2, 0), label);

-- It has no primary key.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';

-- Labels, and keys of programs.  After key2: which locks are meant; a pair is one key there.
CREATE OR REPLACE VIEW advisory._uses AS
    SELECT _printable(label) AS tool,
           _printable(note) AS purpose,
           CASE WHEN key IS NULL THEN 'int4 pair' ELSE 'bigint' END AS form,
           NULL AS scope,
           'exact' AS match,
           coalesce(key::text, format('(%s, %s)', key1, key2)) AS rule,
           'advisory.key_labels' AS source,
           key,
           key1,
           key2,
           number AS first_key,
           number AS last_key,
           CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
           true AS is_label,
           NULL::name AS only_with
    FROM advisory.key_labels,
         LATERAL (SELECT coalesce(key, (key1::bigint << 32) | (key2 & 4294967295))) AS n (number)
    UNION ALL
    SELECT tool, purpose, 'bigint', scope, match, rule, source,
           CASE WHEN first_key = last_key THEN first_key END, NULL, NULL, first_key, last_key, 1,
           false, only_with
    FROM (
    -- Keys of other programs that both editions know, in every database.  Each fact names its
    -- source, a file of a public repository.  only_with: see below.
    SELECT tool, purpose, scope, 'exact' AS match, key::text AS rule, source,
           key AS first_key, key AS last_key, NULL::name AS only_with
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 'session', 72707369::bigint,
            'prisma/prisma-engines schema-engine postgres flavour'),
        ('goose', 'migration lock', 'session', 4097083626,
            'pressly/goose lock/session_locker_options.go'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 'session', 5887940537704921958,
            'pressly/goose lock/session_locker_options.go'),
        ('Kysely', 'migration lock', 'session or transaction', 3853314791062309107,
            'kysely-org/kysely src/dialect/postgres/postgres-adapter.ts (session from 0.29.3)'),
        ('node-pg-migrate', 'migration lock', 'session', 7241865325823964,
            'salsita/node-pg-migrate src/runner.ts'),
        ('graphile-migrate', 'migration lock', 'session', 4727445306447283,
            'graphile/migrate src/pgReal.ts'),
        ('postgres-migrations', 'migration lock', 'session', -8525285245963000605,
            'ThomWright/postgres-migrations src/with-lock.ts'),
        ('tern', 'migration lock', 'session', 9628173550095224, 'jackc/tern migrate/migrate.go'),
        ('pgroll', 'state lock', 'transaction', 12388221127840347,
            'xataio/pgroll pkg/state/state.go'),
        ('Atlas', 'migrate execute', 'session', 2686470616, 'ariga/atlas sql/postgres/driver.go'),
        ('Atlas', 'migrate diff', 'session', 361947982, 'ariga/atlas sql/postgres/driver.go'),
        ('DBOS', 'system database migration', 'session', 1234567890,
            'dbos-inc/dbos-transact-py dbos/_sys_db_postgres.py'),
        ('sqitch', 'deployment', 'session', 75474063,
            'sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm'),
        ('pgBackRest', 'backup', 'session', 12340078987004321, 'pgbackrest/pgbackrest src/db/db.h'),
        ('Unleash', 'migration', 'session', 479341, 'Unleash/unleash src/lib/util/db-lock.ts'),
        ('rake-db', 'migration', 'transaction', 8582141715823621641,
            'romeerez/orchid-orm packages/rake-db'),
        ('dumbo (Emmett)', 'migration', 'session', 999956789,
            'event-driven-io/Pongo packages/dumbo'),
        ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows'),
        ('Zero', 'changes of the schema', 'transaction', 4353719051050729648,
            'rocicorp/mono packages/zero-cache schema/ddl.ts')
    ) AS fact (tool, purpose, scope, key, source)
    UNION ALL
    -- Small numbers, which everybody uses.  A lock is shown as the program's only in a database
    -- that has a table of the program, only_with.
    SELECT tool, purpose, scope,
           CASE WHEN first_key = last_key THEN 'exact' ELSE 'range' END,
           CASE WHEN first_key = last_key THEN first_key::text
                ELSE format('%s to %s', first_key, last_key) END
               || ', beside a table ' || only_with COLLATE "default",    -- A name has "C".
           source, first_key, last_key, only_with
    FROM (VALUES
        ('AdonisJS Lucid', 'migrations', 'session', 1, 1, 'adonis_schema'::name,
            'adonisjs/lucid src/migration/runner.ts'),
        ('Airflow', 'migrations', 'session', 1, 1, 'dag_run', 'apache/airflow utils/db.py DBLocks'),
        ('Airflow', 'scheduler critical section', 'transaction', 2, 2, 'dag_run',
            'apache/airflow utils/db.py DBLocks'),
        ('Concourse', 'database migration', 'session', 5, 5, 'resource_config_versions',
            'concourse/concourse atc/db/lock/lock.go'),
        ('authentik', 'migration lock', 'session', 1000, 1000, 'authentik_core_user',
            'goauthentik/authentik lifecycle/migrate.py'),
        ('n8n', 'migrations and maintenance', 'transaction', 1001, 1009, 'workflow_entity',
            'n8n-io/n8n packages/@n8n/db db-lock.service.ts (1005: migrations)'),
        ('Marten', 'default global lock', 'session', 4004, 4004, 'mt_events',
            'JasperFx/marten StoreOptions.cs'),
        ('Evolve', 'migration lock', 'session', 12345, 12345, 'changelog',
            'lecaillon/Evolve PostgreSQLDatabase.cs'),
        ('pg_fact_loader', 'dependencies of queue tables', 'transaction', 99995, 99995,
            'fact_tables', 'enova/pg_fact_loader sql')
    ) AS fact (tool, purpose, scope, first_key, last_key, only_with, source)
    UNION ALL
    -- One key that is computed; null if it depends on names that are not known here.  Only slonik's
    -- is written down, because md5() fails on a server in FIPS mode.
    SELECT tool, purpose, scope, 'formula', rule, source, key, key, NULL
    FROM (VALUES
        ('slonik', 'migration (migration)', 'session',
         'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json(table))',
         'mmkal/slonik-tools packages/migrator', 1230759186),
        ('slonik', 'migration', 'session',
         'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json([schema, table]))',
         'mmkal/slonik-tools packages/migrator', NULL),
        ('DBOS', 'data source migration (dbos)', 'transaction',
         'first 8 bytes, big-endian, of sha256(''dbos.datasource_migrations.'' || schema)',
         'dbos-inc/dbos-transact-ts datasource.ts',
         advisory.key('dbos.datasource_migrations.dbos')),
        ('pgmq', 'queue creation', 'transaction', 'hashtext(''pgmq.queue_'' || queue)',
         'pgmq/pgmq pgmq.sql', NULL),
        ('pg_fact_loader', 'load of a fact table', 'transaction', 'fact_table_id',
         'enova/pg_fact_loader sql', NULL)
    ) AS fact (tool, purpose, scope, rule, source, key)
    UNION ALL
    SELECT 'pg_partman', purpose, scope, 'formula', format('hashtext(%L)', named),
           'pgpartman/pg_partman sql/' || file, hashtext(named), hashtext(named), NULL
    FROM (VALUES
        ('run_maintenance', 'session or transaction', 'functions, sql/procedures'),
        ('run_maintenance procedure (from 5.1.0)', 'session', 'procedures'),
        ('drop_partition_id', 'transaction', 'functions'),
        ('drop_partition_time', 'transaction', 'functions'),
        ('undo_partition_native', 'transaction', 'functions'),
        ('undo_partition', 'transaction', 'functions'),
        ('reapply_constraints', 'session', 'functions'),
        ('run_analyze', 'session', 'functions')
    ) AS fact (purpose, scope, file),
    LATERAL (SELECT 'pg_partman ' || replace(purpose, ' (from 5.1.0)', '')) AS names (named)
    UNION ALL
    SELECT 'Zero', purpose || ' (zero_0)', 'transaction', 'formula',
           format('hashtext(%L || app || ''_'' || shard)', named),
           'rocicorp/mono packages/zero-cache ' || file, hashtext(named || 'zero_0'),
           hashtext(named || 'zero_0'), NULL
    FROM (VALUES
        ('migration of its schema', 'migrate-schema:', 'db/migration.ts'),
        ('replication slots', 'replication-slot-management:', 'replication-slots.ts')
    ) AS fact (purpose, named, file)
    ) AS fact
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL, first_key, last_key,
           objsubid, false, only_with
    FROM (
    -- Ranges of keys of other programs that both editions know.  detail: what else the key tells.
    -- only_with: see known-keys.sql.
    -- Pairs with a certain first key.
    SELECT tool, purpose, 'int4 pair' AS form, scope, 'formula' AS match, rule, source,
           2 AS objsubid, key1::bigint << 32 AS first_key,
           (key1::bigint << 32) | 4294967295 AS last_key, detail,
           NULL::name AS only_with
    FROM (VALUES
        ('pg_partman', 'partition_data_proc', 'session or transaction',
         '(hashtext(''pg_partman partition_data_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman partition_data_proc'), NULL),
        ('pg_partman', 'undo_partition_proc', 'session or transaction',
         '(hashtext(''pg_partman undo_partition_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman undo_partition_proc'), NULL),
        ('mimeo', 'refresh of a table', 'transaction',
         '(hashtext(''mimeo advisory lock''), hashtext(dest_table))', 'omniti-labs/mimeo sql',
         hashtext('mimeo advisory lock'), NULL),
        ('pg_repack', 'table being repacked', 'session', '(16185446, table oid - 2^31)',
         'reorg/pg_repack bin/pg_repack.c', 16185446, 'table')
    ) AS fact (tool, purpose, scope, rule, source, key1, detail)
    UNION ALL
    SELECT tool, purpose, 'bigint', scope, 'range', rule, source, 1, first_key, last_key, detail,
           NULL
    FROM (VALUES
        ('Flyway', 'migration lock', 'session or transaction',
         '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31',
         'flyway/flyway PostgreSQLAdvisoryLockTemplate.java',
         77431708279161 - 2147483648, 77431708279161 + 2147483647, NULL),
        ('Mastra', 'columns of a vector index', 'transaction', '(1936876916 << 32) | table oid',
         'mastra-ai/mastra stores/pg', 1936876916::bigint << 32,
         (1936876916::bigint << 32) | 4294967295, 'oid')
    ) AS fact (tool, purpose, scope, rule, source, first_key, last_key, detail)
    UNION ALL
    SELECT 'n8n', 'migrations and maintenance of a part', 'int4 pair', 'transaction', 'range',
           '(1001 to 1009, part), beside a table workflow_entity',
           'n8n-io/n8n packages/@n8n/db db-lock.service.ts', 2, 1001::bigint << 32,
           (1009::bigint << 32) | 4294967295, NULL, 'workflow_entity'
    ) AS range
    UNION ALL
    SELECT 'Citus', 'distributed execution', 'objsubid 4-16', 'any', 'class', 'objsubid',
           'citusdata/citus', NULL, NULL, NULL, -1::bigint << 63, ~(-1::bigint << 63), 4, false,
           NULL;

CREATE OR REPLACE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM _uses;
COMMENT ON VIEW known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';

-- Locks.

-- Locks of a prepared transaction show its virtual transaction.  If two have one, none is named.
CREATE OR REPLACE VIEW advisory._prepared AS
    SELECT virtualtransaction, raw_gid, gid, role, prepared, datname,
           role || ' (prepared ' || gid || ')' AS who,
           'ROLLBACK PREPARED ' || CASE raw_gid WHEN gid THEN quote_literal(gid) END || ';'
           || coalesce(' -- in database ' || quote_ident(nullif(datname, current_database())), '')
               AS rollback
    FROM (SELECT virtualtransaction, min(gid) AS raw_gid, _printable(min(gid)) AS gid,
                 _printable(min(owner)) AS role, min(prepared) AS prepared,
                 _printable(min(p.database)) AS datname
          FROM pg_locks AS l JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid
          WHERE pid IS NULL
          GROUP BY virtualtransaction
          HAVING count(*) = 1) AS one;

-- The names of locks and semaphores of this database: those of labels namespace/name, and that of
-- the arguments.  key is that of a lock, base that of slot 0 of a semaphore.  Last come semaphores
-- that have no name.
CREATE OR REPLACE FUNCTION advisory._names(of_namespace text, of_name text)
    RETURNS TABLE (key bigint, base bigint, namespace text, name text)
    LANGUAGE sql STABLE AS $$
    WITH given (key, space, name) AS (
        -- Any of the slashes can be the one between the two.
        SELECT k.key, left(label, i - 1), substr(label, i + 1)
        FROM advisory.key_labels AS k, generate_series(2, length(label) - 1) AS i
        WHERE substr(label, i, 1) = '/'
            AND k.key = advisory.key(left(label, i - 1), substr(label, i + 1))
        UNION
        SELECT CASE WHEN of_name <> '' THEN advisory.key(of_namespace, of_name) END,
               of_namespace, of_name),
    named AS MATERIALIZED (
        SELECT g.key, _slot_key(g.space, g.name, 0) AS base, _printable(g.space) AS namespace,
               _printable(g.name) AS name
        FROM given AS g
        WHERE g.space IS NOT NULL)
    SELECT n.key, n.base, n.namespace, n.name
    FROM named AS n
    UNION ALL
    -- One without a label is told by its queue: a lock whose key is that of a slot 0, and locks
    -- with the next keys.  No small numbers.
    SELECT NULL, k.key & -16384, NULL, NULL
    FROM _keys AS k
    WHERE abs(k.key >> 32) > 32768
    GROUP BY k.key & -16384
    HAVING bool_or(k.key & 16383 = 0) AND count(DISTINCT k.key) > 1
        AND k.key & -16384 NOT IN (SELECT n.base FROM named AS n) $$;

-- The locks of the server with their sessions and names, and leases that sessions wait for: their
-- raw is null.  number: the key that pg_locks shows; key: that of the name.  session: the process,
-- of a parallel worker its leader; below 0 a prepared transaction, or a lease.  tag: what is waited
-- for; the queue of a semaphore or lease is one with it.  start: since when a session waits.
CREATE OR REPLACE FUNCTION advisory._named_locks(of_namespace text, of_name text)
    RETURNS TABLE (raw pg_locks, number bigint, key bigint, namespace text, name text,
                   slot integer, lease text, datname name, is_here boolean, role text,
                   application_name text, client_addr inet, state text, query text,
                   since timestamptz, who text, remedy text, session bigint, tag text,
                   is_held boolean, start timestamptz)
    LANGUAGE sql STABLE ROWS 100 AS $$
    WITH backend AS MATERIALIZED (SELECT *, _printable(usename) AS role FROM pg_stat_activity),
    name AS MATERIALIZED (SELECT * FROM _names(of_namespace, of_name)),
    lease AS MATERIALIZED (
        SELECT * FROM _shown_leases WHERE queue IN (SELECT k.key & -16384 | 1 FROM _keys AS k)),
    lease_name AS MATERIALIZED (
        SELECT DISTINCT ON (queue) * FROM lease ORDER BY queue, slot)
    SELECT l, number, CASE l.objsubid WHEN 1 THEN coalesce(s.key, number) END,
           coalesce(n.namespace, s.namespace, e.namespace), coalesce(n.name, s.name, e.name),
           o.slot, e.lock, d.datname, is_here, b.role, b.application_name, b.client_addr, b.state,
           b.query, b.state_change, NULL, NULL,
           coalesce(b.leader_pid, l.pid,
                    -abs(split_part(l.virtualtransaction, '/', 1)::bigint * 4294967296)
                    - split_part(l.virtualtransaction, '/', 2)::bigint),
           coalesce(s.base::text, e.tag,
                    (l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid,
                     l.transactionid, l.classid, l.objid, l.objsubid)::text),
           -- Whoever holds the lock of a queue waits for a slot or a lease, and is the only one
           -- that looks for it.
           l.granted AND (NOT is_queue OR l.pid IS NULL),
           -- waitstart is new in 14.
           CASE WHEN NOT l.granted THEN (to_jsonb(l) ->> 'waitstart')::timestamptz
                WHEN is_queue THEN b.query_start END
    FROM pg_locks AS l
    LEFT JOIN backend AS b ON b.pid = l.pid
    LEFT JOIN pg_database AS d ON d.oid = l.database
    CROSS JOIN LATERAL (
        SELECT CASE WHEN l.locktype = 'advisory'
                    THEN (l.classid::bigint << 32) | l.objid::bigint END,
               d.datname = current_database()) AS k (number, is_here)
    LEFT JOIN name AS n ON n.key = number AND l.objsubid = 1 AND is_here
    LEFT JOIN name AS s ON s.base = number & -16384 AND l.objsubid = 1 AND is_here
    LEFT JOIN lease_name AS e ON e.queue = number & -16384 | 1 AND l.objsubid = 1 AND is_here
    CROSS JOIN LATERAL (
        SELECT coalesce(number IN (s.base, e.queue), false),
               CASE WHEN s.base IS NOT NULL THEN number - s.base
                    WHEN e.slot IS NOT NULL THEN number - e.queue END::integer)
        AS o (is_queue, slot)
    -- Not the locks that tell how many slots are awaited.
    WHERE l.mode <> 'SIReadLock' AND (o.slot > 16000) IS NOT TRUE
    UNION ALL
    SELECT NULL, NULL, NULL, e.namespace, e.name, e.slot, e.lock, current_database(), true, NULL,
           NULL, NULL, e.state, NULL, e.acquired_at, e.owner, e.remedy,
           -abs(e.queue) - coalesce(e.slot, 0), e.tag, true, NULL
    FROM lease AS e $$;

-- What a lock is on: text for people.  label is one of those of its key.
CREATE OR REPLACE FUNCTION advisory._described(raw pg_locks, number bigint, key bigint,
                                               namespace text, name text, lease text, label text,
                                               datname name, is_here boolean)
    RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN number IS NULL    -- No advisory lock.
        THEN concat_ws(' ',
            CASE WHEN raw.locktype = 'tuple' THEN format('row (%s,%s) of', raw.page, raw.tuple)
                 WHEN raw.locktype = 'transactionid' THEN 'transaction'
                 WHEN (raw.locktype, raw.database, raw.classid, raw.objid) = ('object', 0, 1262, 0)
                 THEN 'NOTIFY''s commit lock'
                 ELSE raw.locktype END,
            raw.transactionid,
            raw.virtualxid,
            _printable(CASE WHEN raw.database = 0 OR is_here THEN raw.relation::regclass::text
                            ELSE raw.relation::text END))
        ELSE concat_ws(' ',
            coalesce(lease, namespace || '/' || name, key::text,
                     concat(raw.classid::integer, ', ', raw.objid::integer)),
            '(objsubid ' || nullif(nullif(raw.objsubid, 1), 2) || ')',
            CASE WHEN name IS NULL
                 THEN '"' || replace(regexp_replace(label, '^(.{21}).{4,}$', '\1...'), '"', '""')
                      || '"' END,
            CASE WHEN is_here IS NOT TRUE
                 THEN coalesce('in database "' || _printable(datname) || '"',
                               'in a dropped database') END) END $$;

-- All advisory locks, and other locks that a session waits for.  Only a name tells that a lock is a
-- slot of a semaphore: that of a label namespace/name, or the arguments.  session and tag are those
-- of _named_locks.  blocked_by: for slots and leases their holders, then what the server says.
CREATE OR REPLACE FUNCTION advisory._entries(of_namespace text DEFAULT NULL,
                                             of_name text DEFAULT NULL)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, namespace text, name text, slot integer, key bigint,
                   key1 integer, key2 integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], known_as text[], gid text, query text, session bigint,
                   objsubid integer, tag text, lock text, who text, since timestamptz,
                   rollback text, is_waiting boolean, has_advisory boolean)
    LANGUAGE sql ROWS 100
    SET search_path = pg_catalog, advisory, pg_temp
    SET jit = off AS $$
    -- Otherwise pg_stat_activity stays as it was when the transaction first looked at it.
    SELECT pg_stat_clear_snapshot();
    SELECT _tell_of_standby(false);
    WITH lock AS MATERIALIZED (SELECT * FROM _named_locks(of_namespace, of_name)),
    holder AS MATERIALIZED (    -- Of slots and leases.
        SELECT tag, array_agg(DISTINCT greatest(session, 0)::integer) AS pids
        FROM lock WHERE (slot > 0 OR lease IS NOT NULL) AND is_held GROUP BY tag),
    use AS MATERIALIZED (
        SELECT *, concat_ws(': ', tool, purpose) AS use,
               only_with IS NULL OR EXISTS (
                   SELECT FROM pg_class
                   WHERE relname = only_with AND relkind IN ('r', 'p')
                       AND relpersistence <> 't') AS has_table
        FROM _uses
        WHERE first_key < last_key OR first_key IN (SELECT number FROM lock))
    SELECT (raw).pid, lock.datname, coalesce(lock.role, p.role), application_name, client_addr,
           state,
           CASE WHEN lease IS NOT NULL THEN 'lease' WHEN slot > 0 THEN 'semaphore'
                WHEN slot = 0 THEN 'queue' WHEN number IS NULL THEN NULL
                WHEN (raw).objsubid NOT IN (1, 2) THEN 'foreign' ELSE 'lock' END,
           namespace, name, nullif(slot, 0), key,
           CASE WHEN key IS NULL THEN (raw).classid::integer END,
           CASE WHEN key IS NULL THEN (raw).objid::integer END,
           CASE (raw).mode WHEN 'ExclusiveLock' THEN 'exclusive' WHEN 'ShareLock' THEN 'shared'
                ELSE (raw).mode END,
           CASE WHEN (raw).pid IS NULL THEN 'transaction' END,
           is_held, start, clock_timestamp() - start, NULL::timestamptz, NULL::interval,
           CASE WHEN NOT is_held THEN array_remove(pids, session::integer) END
               || CASE WHEN NOT (raw).granted THEN ARRAY(
                   SELECT p FROM unnest(pg_blocking_pids((raw).pid)) AS p
                   WHERE (p = ANY (pids)) IS NOT TRUE) END,
           known_as, gid, query, session, (raw).objsubid::integer, tag,
           _described(raw, number, key, namespace, name, lease, known_as[1], lock.datname, is_here),
           coalesce(lock.role || coalesce('@' || nullif(application_name, ''), ''), p.who),
           coalesce(since, prepared), p.rollback,
           bool_or(NOT is_held) OVER of_session, bool_or(number IS NOT NULL) OVER of_session
    FROM lock LEFT JOIN holder USING (tag)
    LEFT JOIN _prepared AS p
        ON (raw).pid IS NULL AND p.virtualtransaction = (raw).virtualtransaction
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(use ORDER BY is_label DESC, use COLLATE "C")
                            FILTER (WHERE is_shown), '{}'),
               bool_or(NOT is_shown)
        FROM use AS r, LATERAL (SELECT only_with IS NULL OR is_here AND has_table) AS s (is_shown)
        WHERE number BETWEEN first_key AND last_key
            AND r.objsubid = least((raw).objsubid, 4) AND is_here >= is_label)
        AS found (uses, is_anybodys)
    CROSS JOIN LATERAL (
        SELECT
           -- What a lock is known as.  uses: labels and programs.  is_anybodys: some program uses
           -- this small number, but this database has no table of it (only_with).
           CASE WHEN cardinality(uses) > 0 THEN uses
                WHEN is_anybodys THEN ARRAY['several programs use it'] END
        ) AS a (known_as)
    WHERE (raw).locktype IS NOT NULL
        AND (number IS NOT NULL OR tag IN (SELECT tag FROM lock WHERE NOT (raw).granted))
    WINDOW of_session AS (PARTITION BY session)
    UNION ALL
    SELECT NULL, datname, NULL, NULL, NULL, state, 'lease', namespace, name, slot, NULL, NULL, NULL,
           'exclusive', NULL, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, session, NULL,
           tag, lease, who, since, remedy, false, true
    FROM lock WHERE (raw).locktype IS NULL $$;

-- How many slots of a semaphore a session has and waits for: NULL is one, or more than 382.
CREATE OR REPLACE VIEW advisory._sets AS
    SELECT pid,
           key & -16384 AS base,
           nullif(count(*) FILTER (WHERE key & 16383 <= 16000), 1) AS held,
           max(key & 16383) FILTER (WHERE key & 16383 > 16000) - 16000 AS wanted
    FROM _keys
    WHERE granted AND key & 16383 BETWEEN 1 AND 16382
    GROUP BY pid, key & -16384;

-- The entries, with the slots of a semaphore that a session has or waits for; part has the words,
-- those of a slot of a lease, too.
CREATE OR REPLACE VIEW advisory._entry AS
    SELECT e.*,
           slots,
           CASE WHEN kind IN ('semaphore', 'queue') OR tag LIKE 'lease slots %'
                THEN coalesce(slots || ' slots', 'slot ' || slot, 'a slot') || ' of ' END AS part
    FROM _entries() AS e
    LEFT JOIN _sets AS s ON s.pid = e.pid AND s.base::text = e.tag,
         LATERAL (SELECT CASE WHEN granted THEN s.held ELSE wanted END) AS n (slots);

CREATE OR REPLACE VIEW advisory.locks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace, name, slot,
           key, key1, key2, mode, scope, granted, wait_start, waited, acquired_at, held,
           blocked_by, known_as, gid, query, NULL::integer AS slots
    FROM _entry
    WHERE kind IS NOT NULL AND objsubid IS NOT NULL;
COMMENT ON VIEW locks IS 'every advisory lock on the server, with its name, holders and waiters';

CREATE OR REPLACE FUNCTION advisory._holders_of(namespace text, name text, key bigint)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, slot integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], gid text, query text, slots integer)
    LANGUAGE sql
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT _check(key::text, 'key');
    SELECT pid, database, role, application_name, client_addr, state, kind, slot, mode, scope,
           granted, wait_start, waited, acquired_at, held, blocked_by, gid, query, NULL::integer
    FROM _entries($1, $2) AS e
    WHERE e.key = $3 AND database = current_database() $$;

-- One without a label is there while somebody waits for a slot; its key is that of its slot 0.
-- Nothing says how many slots a semaphore has.
CREATE OR REPLACE VIEW advisory.semaphores AS
    SELECT namespace,
           name,
           CASE WHEN name IS NULL THEN tag::bigint ELSE key END AS key,
           NULL::integer AS slots,
           (count(*) FILTER (WHERE granted))::integer AS in_use,
           NULL::integer AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}')
               AS holders,
           false AS slots_disagree,
           NULL::text AS slots_given,
           (sum(coalesce(slots, 1)) FILTER (WHERE NOT granted))::integer AS slots_wanted
    FROM _entry
    WHERE kind IN ('semaphore', 'queue')
    GROUP BY 1, 2, 3;
COMMENT ON VIEW semaphores IS 'semaphores of this database that have holders of slots, or waiters';

-- Waits.

-- What is in the way of a session that waits: all holders, or else the last waiter ahead of it.
-- Trees show it under rank 1; if it waits for a slot, that is a holder that does not itself wait.
-- Only waits that have to do with an advisory lock, through others or not.
CREATE OR REPLACE VIEW advisory._edges AS
    WITH RECURSIVE entry AS MATERIALIZED (
        SELECT e,
               (e).session,
               (e).tag,
               greatest((e).session, 0)::integer AS pid,
               (e).granted,
               (e).mode,
               -- Does a holder's mode conflict with this one?
               (e).mode IN ('exclusive', 'shared')
                   AND bool_or((e).granted AND (e).mode = 'exclusive') OVER (PARTITION BY (e).tag)
               OR (e).mode = 'exclusive'
                   AND bool_or((e).granted AND (e).mode = 'shared') OVER (PARTITION BY (e).tag)
                   AS has_holder
        FROM _entry AS e),
    edge AS MATERIALIZED (
        -- Behind a holder the other waiters do not matter.  Each session is in the way once.
        SELECT w.e AS waiter,
               b.e AS blocker,
               w.session,
               b.session AS above,
               count(*) FILTER (WHERE b.granted) OVER of_waiter AS holders,
               row_number() OVER (
                   of_waiter
                   ORDER BY b.granted DESC, (b.e).slot IS NOT NULL AND (b.e).is_waiting,
                            CASE WHEN b.granted THEN array_position(w.blocked_by, b.pid) END,
                            (b.e).wait_start DESC, b.mode DESC, (b.e).since) AS rank
        FROM (SELECT DISTINCT ON (session) *, (e).blocked_by
              FROM entry
              WHERE NOT granted
              ORDER BY session, (e).wait_start) AS w
        JOIN (SELECT DISTINCT ON (tag, session, granted, mode) *
              FROM entry
              ORDER BY tag, session, granted, mode, (e).slot) AS b
            ON b.tag = w.tag AND b.session <> w.session
            AND b.granted >= w.has_holder AND b.pid = ANY (w.blocked_by)
        WHERE NOT (w.mode = 'shared' AND b.mode = 'shared')
        WINDOW of_waiter AS (PARTITION BY w.session)),
    link (one, other) AS MATERIALIZED (
        SELECT session, above FROM edge
        UNION
        SELECT above, session FROM edge),
    concerned (session) AS (
        SELECT unnest(ARRAY[session, above])
        FROM edge
        WHERE (waiter).has_advisory OR (blocker).has_advisory
        UNION
        SELECT other FROM concerned AS c JOIN link ON one = c.session)
    SELECT *
    FROM edge
    WHERE (rank = 1 OR (blocker).granted) AND session IN (SELECT session FROM concerned);

-- Each session once, with the entry that is shown.  The root of a cycle is its smallest process.
CREATE OR REPLACE VIEW advisory._tree AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT *,
               row_number() OVER (PARTITION BY above ORDER BY (waiter).wait_start, session)
                   AS number
        FROM _edges
        WHERE rank = 1),
    climb (session, above) AS (
        SELECT session, above FROM edge
        UNION
        SELECT c.session, e.above FROM climb AS c JOIN edge AS e ON e.session = c.above),
    root AS (
        SELECT above AS session FROM edge
        EXCEPT
        SELECT session FROM edge
        UNION
        -- Whoever comes to himself is in a cycle.
        SELECT session FROM climb GROUP BY session HAVING min(above) = session),
    line (session, root, e, above, holders, path, place) AS (
        SELECT r.session, r.session, coalesce(own.waiter, f.blocker), own.above, own.holders,
               ARRAY[greatest(r.session, 0)::integer], '{}'::bigint[]
        FROM root AS r
        LEFT JOIN edge AS own ON own.session = r.session
        LEFT JOIN edge AS f ON f.above = r.session AND f.number = 1
        UNION ALL
        SELECT n.session, root, waiter, n.above, n.holders, path || n.session::integer,
               place || number
        FROM line JOIN edge AS n ON n.above = line.session AND n.session <> root)
    SELECT *,
           cardinality(place) AS depth,
           min((e).wait_start) OVER (PARTITION BY root) AS oldest
    FROM line;

CREATE OR REPLACE VIEW advisory.waits AS
    SELECT path[1] AS root_pid,
           depth,
           path,
           path[depth + 1] AS pid,
           CASE WHEN above < 0 THEN 0 ELSE above END::integer AS waits_for_pid,
           (e).namespace,
           (e).name,
           (e).key,
           (e).mode,
           (e).waited,
           (e).state,
           (e).application_name,
           (e).query,
           (e).key1,
           (e).key2,
           CASE WHEN (e).kind IS NOT NULL THEN (e).objsubid END AS objsubid
    FROM _tree
    ORDER BY oldest, root, place;
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';

CREATE OR REPLACE FUNCTION advisory.wait_tree()
    RETURNS SETOF text
    LANGUAGE sql COST 1000 ROWS 100
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT concat(
        repeat('  ', depth),
        coalesce((e).pid || ' ' || (e).who,
                 CASE WHEN (e).objsubid IS NULL AND (e).kind = 'lease' THEN (e).who END,
                 'prepared transaction "' || (e).gid || '" of ' || (e).role,
                 'a prepared transaction'),
        CASE WHEN (e).granted THEN ' holds ' ELSE ' waits for ' END,
        (e).part, (e).lock, ' ', (e).mode,
        CASE WHEN (e).granted THEN ', ' || (e).state END,
        ' ' || floor(extract(epoch FROM greatest(clock_timestamp(), start) - start)) || ' s',
        -- A root that waits itself is in a cycle.
        ', in a cycle with ' || CASE depth WHEN 0 THEN above END,
        CASE WHEN holders > 1
             THEN format(' (and %s more holder%s)', holders - 1,
                         left('s', (holders > 2)::integer)) END)
    FROM _tree,
         LATERAL (SELECT CASE WHEN NOT (e).granted THEN (e).wait_start
                              WHEN (e).state <> '' THEN (e).since END) AS a (start)
    ORDER BY oldest, root, place $$;
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';

-- The text of a lock for remedies, which no other lock has: by its key, or by a name that cannot be
-- a part of another text.  NULL if what is shown of a table or a database can be that of another.
CREATE OR REPLACE FUNCTION advisory._exact_lock(e advisory._entry)
    RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE
        WHEN kind IS NULL THEN CASE WHEN e.lock !~ '[?]' THEN e.lock END
        WHEN NOT is_here THEN part || keys || ' in database "'
            || CASE _printable(database) WHEN database THEN database END || '"'
        WHEN namespace !~ '[ /]' AND name !~ ' ' AND _is_name(namespace, name, key)
        THEN part || namespace || '/' || name
        ELSE part || keys END
    FROM (SELECT e.kind, e.namespace, e.name, e.key, e.database,
                 e.database IS NOT DISTINCT FROM current_database() AS is_here,
                 concat(e.part, CASE e.kind WHEN 'lease' THEN 'lease ' END) AS part,
                 coalesce(e.key::text,
                          concat(e.key1, ', ', e.key2,
                                 ' (objsubid ' || nullif(e.objsubid, 2) || ')')) AS keys) AS of $$;

-- What sessions wait for in the end, directly or through others.
CREATE OR REPLACE VIEW advisory._blockers AS
    WITH RECURSIVE edge AS MATERIALIZED (
        SELECT *, (waiter).wait_start AS start FROM _edges),
    reach (waiter, start, above) AS (
        SELECT session, start, above FROM edge
        UNION
        SELECT r.waiter, r.start, e.above
        FROM reach AS r JOIN edge AS e ON e.session = r.above),
    root AS (
        SELECT above, count(*)::integer AS waiters, min(start) AS start
        FROM reach
        WHERE above NOT IN (SELECT session FROM edge)
        GROUP BY above)
    SELECT (e).pid,
           (e).who,
           -- What an active session waits for itself, for no other session holds that.
           (e).state || CASE WHEN a.state = 'active' AND wait_event IS NOT NULL
                             THEN format(', waits for %s (%s)', wait_event, wait_event_type)
                             ELSE '' END AS state,
           date_trunc('second', (e).since) AS since,
           concat((e).part, (e).lock) AS lock,
           waiters,
           date_trunc('second', clock_timestamp() - root.start) AS longest_wait,
           -- These end the session only if it still holds the lock.
           CASE WHEN (e).pid IS NULL THEN (e).rollback
                WHEN to_cancel IS NOT NULL
                THEN 'SELECT advisory.cancel_waiter(' || to_cancel || ', '
                     || quote_literal(exact_lock) || ');'
                WHEN (e).key IS NULL OR (e).database IS DISTINCT FROM current_database()
                THEN 'SELECT advisory.terminate_blocker(' || (e).pid || ', '
                     || quote_literal(exact_lock) || ');'
                ELSE _terminate_statement((e).namespace, (e).name, (e).key, (e).pid, (e).kind)
                     || ';'
           END AS remedy,
           backend_type,
           a.client_addr,
           regexp_replace(_printable(regexp_replace(left(a.query, 1000), '\s+', ' ', 'g')),
                          '^(.{43}).{5,}(.{43})$', '\1...\2') AS query,
           exact_lock,
           to_cancel
    FROM root
    JOIN (SELECT DISTINCT ON (above) above, blocker AS e
          FROM edge
          ORDER BY above, start, session) AS first USING (above)
    CROSS JOIN LATERAL _exact_lock(e) AS exact_lock
    LEFT JOIN pg_stat_activity AS a ON a.pid = (e).pid
    -- The program of an idle holder works in another session, and waits there for the snapshot, as
    -- CREATE INDEX CONCURRENTLY does, or for the transaction of somebody who waits for the lock.
    -- If the holder were ended, the lock would be free while its program works.
    LEFT JOIN LATERAL (
        SELECT min(work.above)
        FROM edge AS work
        JOIN edge AS m ON m.session = work.above AND m.above = root.above
        JOIN pg_stat_activity AS w ON w.pid = work.session
        WHERE (e).kind IS NOT NULL AND (m.waiter).tag = (e).tag
            AND a.state LIKE 'idle%'
            AND (w.usesysid, w.datid) = (a.usesysid, a.datid)
            AND w.application_name = a.application_name) AS h (to_cancel) ON true;

CREATE OR REPLACE VIEW advisory.blockers AS
    SELECT pid, who, state, since, lock, waiters, longest_wait, remedy, backend_type, client_addr,
           query
    FROM _blockers
    ORDER BY waiters DESC, longest_wait DESC NULLS LAST, pid;
COMMENT ON VIEW blockers IS 'what others wait for in the end, and the statement that ends it';

CREATE OR REPLACE FUNCTION advisory.terminate_blocker(pid integer, lock text)
    RETURNS boolean
    LANGUAGE sql
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT coalesce(pg_terminate_backend((
        SELECT b.pid
        FROM _blockers AS b
        WHERE b.pid = $1 AND b.exact_lock = $2)), false) $$;
COMMENT ON FUNCTION advisory.terminate_blocker(integer, text) IS
    'end a session if advisory.blockers still shows it with this lock';

CREATE OR REPLACE FUNCTION advisory.cancel_waiter(pid integer, lock text)
    RETURNS boolean
    LANGUAGE sql
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT coalesce(pg_cancel_backend((
        SELECT $1
        FROM _blockers AS b
        WHERE b.to_cancel = $1 AND b.exact_lock = $2
        LIMIT 1)), false) $$;
COMMENT ON FUNCTION advisory.cancel_waiter(integer, text) IS
    'cancel the wait of a session if advisory.blockers still asks for it';

-- Waiters (1), holders of what they wait for (2), and other locks (3).  It shows ten waiters for
-- a lock, thirty other locks of a session; the line of the next one counts it and all that follow.
CREATE OR REPLACE VIEW advisory.activity AS
    WITH known AS MATERIALIZED (
        SELECT * FROM _entry WHERE kind IS NOT NULL),
    every_one AS (
        SELECT lock, slot, CASE kind WHEN 'lease' THEN kind ELSE mode END AS mode, pid, who, state,
               granted, is_waiting, wait_start, waited, session, tag
        FROM known
        UNION ALL
        -- Leases that nobody waits for count as those of one session.
        SELECT lock, slot, 'lease', NULL, owner, state, true, false, NULL, NULL, 0, NULL
        FROM _shown_leases AS l
        WHERE state <> 'expired' AND place <= 10000
            AND (l.tag IN (SELECT k.tag FROM known AS k)) IS NOT TRUE),
    entry AS (
        SELECT *,
               CASE WHEN NOT granted THEN 1
                    WHEN bool_or(NOT granted) OVER same THEN 2
                    ELSE 3 END AS rank,
               CASE WHEN granted THEN session::text ELSE tag END AS crowd,
               coalesce(wait_start, min(wait_start) OVER same) AS start,
               CASE WHEN NOT granted
                    THEN array_remove(array_agg(greatest(session, 0)) FILTER (WHERE granted)
                                          OVER same, session) END AS pids
        FROM every_one
        WINDOW same AS (PARTITION BY tag)),
    placed AS (
        SELECT *,
               CASE rank WHEN 1 THEN 10 WHEN 3 THEN 30 END AS most,
               count(*) OVER (PARTITION BY rank, crowd) AS total,
               row_number() OVER (PARTITION BY rank, crowd ORDER BY start, lock, pid) AS place
        FROM entry)
    SELECT CASE WHEN place > most THEN format('(%s more)', total - most)
                ELSE regexp_replace(lock, '^(.{19}).{4,}(.{18})$', '\1...\2') END AS lock,
           slot,
           mode,
           pid,
           regexp_replace(who, '^(.{14}).{4,}(.{13})$', '\1...\2') AS who,
           CASE WHEN granted AND is_waiting THEN 'waiting' ELSE state END AS state,
           date_trunc('second', waited) AS waiting,
           NULL::interval AS held,
           nullif(concat(array_to_string(pids[:3], ','),
                         ' +' || nullif(greatest(cardinality(pids), 3) - 3, 0)), '') AS blocked_by
    FROM placed
    WHERE rank = 2 OR place <= most + 1
    ORDER BY rank, start, CASE rank WHEN 3 THEN pid END, place;
COMMENT ON VIEW activity IS 'waiters for advisory locks, their blockers, and all other holders';

-- Ends the session if it still holds the lock, a slot, or a lock of the lease, of that name.
CREATE OR REPLACE FUNCTION advisory._terminate(namespace text, name text, key bigint, pid integer,
                                               timeout interval, only_kind text)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + _milliseconds(timeout) * interval '1 ms';
BEGIN
    PERFORM _check(pid::text, 'pid');
    PERFORM _require(only_kind IN ('lock', 'semaphore', 'lease'), '22023',
                     'kind must be "lock", "semaphore" or "lease"');

    IF NOT EXISTS (
            SELECT FROM _holders_of(namespace, name, key) AS h
            WHERE granted AND h.pid = _terminate.pid AND h.kind = coalesce(only_kind, h.kind))
       AND NOT EXISTS (
            SELECT FROM locks AS l
            WHERE kind = 'lease' AND granted AND l.pid = _terminate.pid
                AND l.kind = coalesce(only_kind, l.kind)
                AND (l.namespace, l.name) = (_printable($1), _printable($2))) THEN
        RAISE WARNING '%', format(
            CASE only_kind
                WHEN 'lock' THEN 'PID %s does not hold advisory lock "%s"'
                WHEN 'semaphore' THEN 'PID %s does not hold a slot of semaphore "%s"'
                WHEN 'lease' THEN 'PID %s does not hold lease "%s"'
                ELSE 'PID %s does not hold advisory lock "%s", '
                     'nor a slot of the semaphore of that name' END,
            pid, _display(namespace, coalesce(name, key::text)));
        RETURN false;
    END IF;

    IF NOT pg_terminate_backend(pid) OR timeout = '0' THEN
        RETURN coalesce(timeout = '0', false);
    END IF;
    WHILE EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = _terminate.pid) LOOP
        IF clock_timestamp() >= deadline THEN
            RAISE WARNING 'backend with PID % did not terminate within % milliseconds',
                pid, _milliseconds(timeout);
            RETURN false;
        END IF;
        PERFORM pg_sleep(0.01);
        PERFORM pg_stat_clear_snapshot();
    END LOOP;
    RETURN true;
END $$;

-- The lock table.

-- The server's own formula for what surely fits.  How much more does before 19 cannot be seen.
CREATE OR REPLACE VIEW advisory.pressure AS
    SELECT CASE WHEN percent >= 75 THEN 'critical'
                WHEN percent >= 50 THEN 'warning'
                ELSE 'ok' END AS status,
           CASE WHEN fixed > 0 THEN percent END AS percent_used,
           fixed - locks AS headroom,
           locks AS locks_used,
           fixed AS locks_estimated,
           guaranteed AS locks_guaranteed,
           percent AS percent_of_guaranteed,
           holders AS holders_used,
           2 * guaranteed AS holders_guaranteed,
           greatest(per_process,
                    CASE WHEN percent >= 50 THEN ceil(percent * per_process / 50) + 1 END)::integer
               AS recommended_max_locks_per_transaction,
           fixed IS NOT NULL AS exact,
           2 * fixed AS holders_estimated
    FROM (SELECT count(DISTINCT tag) AS locks,
                 count(DISTINCT (tag, pid, virtualtransaction)) AS holders
          FROM pg_locks,
               LATERAL (SELECT (locktype, database, relation, page, tuple, virtualxid,
                                transactionid, classid, objid, objsubid)::text) AS t (tag)
          WHERE NOT fastpath AND mode <> 'SIReadLock') AS used,
         -- Where there is no autovacuum_worker_slots, before 18, there are so many workers.
         (SELECT current_setting('max_locks_per_transaction')::bigint AS per_process,
                 sum(coalesce(current_setting(s, true),
                              current_setting('autovacuum_max_workers'))::bigint)::bigint
                     + 1 + current_setting('server_version_num')::integer / 170000 AS processes
          FROM unnest('{max_connections,max_prepared_transactions,max_worker_processes,'
                      'max_wal_senders,autovacuum_worker_slots}'::text[]) AS s) AS p,
         LATERAL (SELECT per_process * processes) AS g (guaranteed),
         LATERAL (SELECT CASE WHEN current_setting('server_version_num')::integer >= 190000
                              THEN guaranteed END,
                         round(100.0 * greatest(locks, holders / 2.0) / guaranteed, 2)
                             ::double precision) AS f (fixed, percent);
COMMENT ON VIEW advisory.pressure IS 'how full the server''s lock table is; one row';

COMMENT ON FUNCTION advisory.key(text, text) IS
    'key of a named lock, the same that pg_advisory_lock() takes';

CREATE OR REPLACE FUNCTION advisory.key(namespace text, id bigint)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])) $$;
COMMENT ON FUNCTION advisory.key(text, bigint) IS
    'key of a named lock, the same that pg_advisory_lock() takes';

CREATE OR REPLACE FUNCTION advisory.key(namespace text, id uuid)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])) $$;
COMMENT ON FUNCTION advisory.key(text, uuid) IS
    'key of a named lock, the same that pg_advisory_lock() takes';

CREATE OR REPLACE FUNCTION advisory.lock(namespace text, name text, timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 'f', namespace, name, advisory.key(namespace, name),
            timeout)) $$;
COMMENT ON FUNCTION advisory.lock(text, text, interval) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.lock(text, bigint, interval) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.lock(text, uuid, interval) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_lock(namespace text, name text,
                                             timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 'f', namespace, name, advisory.key(namespace, name),
            timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock(text, text, interval) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock(namespace text, id bigint,
                                             timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock(text, bigint, interval) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock(namespace text, id uuid, timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock(text, uuid, interval) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.lock_shared(namespace text, name text,
                                                timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 'f', namespace, name, advisory.key(namespace, name), timeout)) $$;
COMMENT ON FUNCTION advisory.lock_shared(text, text, interval) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lock_shared(namespace text, id bigint,
                                                timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.lock_shared(text, bigint, interval) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lock_shared(namespace text, id uuid,
                                                timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.lock_shared(text, uuid, interval) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_lock_shared(namespace text, name text,
                                                    timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 'f', namespace, name, advisory.key(namespace, name), timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock_shared(text, text, interval) IS
    'take a shared session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock_shared(namespace text, id bigint,
                                                    timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock_shared(text, bigint, interval) IS
    'take a shared session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock_shared(namespace text, id uuid,
                                                    timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock_shared(text, uuid, interval) IS
    'take a shared session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.xact_lock(namespace text, name text,
                                              timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 't', namespace, name, advisory.key(namespace, name),
            timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock(text, text, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock(namespace text, id bigint,
                                              timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock(text, bigint, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock(namespace text, id uuid,
                                              timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock(text, uuid, interval) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock(namespace text, name text,
                                                  timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 't', namespace, name, advisory.key(namespace, name),
            timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock(text, text, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock(namespace text, id bigint,
                                                  timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock(text, bigint, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock(namespace text, id uuid,
                                                  timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock(text, uuid, interval) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.xact_lock_shared(namespace text, name text,
                                                     timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 't', namespace, name, advisory.key(namespace, name), timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, text, interval) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock_shared(namespace text, id bigint,
                                                     timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, bigint, interval) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock_shared(namespace text, id uuid,
                                                     timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock_shared(text, uuid, interval) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_shared(namespace text, name text,
                                                         timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(advisory.key(namespace, name)) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 't', namespace, name, advisory.key(namespace, name), timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, text, interval) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_shared(namespace text, id bigint,
                                                         timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, bigint, interval) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_shared(namespace text, id uuid,
                                                         timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery() THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_shared(text, uuid, interval) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.unlock(namespace text, name text)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(false, advisory.key(namespace, name)) THEN true
             ELSE advisory._unlock(false, namespace, name, advisory.key(namespace, name)) END $$;
COMMENT ON FUNCTION advisory.unlock(text, text) IS
    'release one exclusive session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.unlock(namespace text, id bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(false, advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) THEN true
             ELSE advisory._unlock(false, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END $$;
COMMENT ON FUNCTION advisory.unlock(text, bigint) IS
    'release one exclusive session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.unlock(namespace text, id uuid)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(false, advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) THEN true
             ELSE advisory._unlock(false, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END $$;
COMMENT ON FUNCTION advisory.unlock(text, uuid) IS
    'release one exclusive session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.unlock_shared(namespace text, name text)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(true, advisory.key(namespace, name)) THEN true
             ELSE advisory._unlock(true, namespace, name, advisory.key(namespace, name)) END $$;
COMMENT ON FUNCTION advisory.unlock_shared(text, text) IS
    'release one shared session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.unlock_shared(namespace text, id bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(true, advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) THEN true
             ELSE advisory._unlock(true, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END $$;
COMMENT ON FUNCTION advisory.unlock_shared(text, bigint) IS
    'release one shared session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.unlock_shared(namespace text, id uuid)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(true, advisory.key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) THEN true
             ELSE advisory._unlock(true, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) END $$;
COMMENT ON FUNCTION advisory.unlock_shared(text, uuid) IS
    'release one shared session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.holds(namespace text, name text)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(advisory.key(namespace, name), true) $$;
COMMENT ON FUNCTION advisory.holds(text, text) IS
    'does this session hold the lock, in any mode and scope';

CREATE OR REPLACE FUNCTION advisory.holds(namespace text, id bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(advisory.key(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])), true) $$;
COMMENT ON FUNCTION advisory.holds(text, bigint) IS
    'does this session hold the lock, in any mode and scope';

CREATE OR REPLACE FUNCTION advisory.holds(namespace text, id uuid)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(advisory.key(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])), true) $$;
COMMENT ON FUNCTION advisory.holds(text, uuid) IS
    'does this session hold the lock, in any mode and scope';

CREATE OR REPLACE FUNCTION advisory.is_locked(namespace text, name text)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(advisory.key(namespace, name), false) $$;
COMMENT ON FUNCTION advisory.is_locked(text, text) IS
    'does any session hold the lock: an observation, never a guard';

CREATE OR REPLACE FUNCTION advisory.is_locked(namespace text, id bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(advisory.key(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])), false) $$;
COMMENT ON FUNCTION advisory.is_locked(text, bigint) IS
    'does any session hold the lock: an observation, never a guard';

CREATE OR REPLACE FUNCTION advisory.is_locked(namespace text, id uuid)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(advisory.key(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])), false) $$;
COMMENT ON FUNCTION advisory.is_locked(text, uuid) IS
    'does any session hold the lock: an observation, never a guard';

CREATE OR REPLACE FUNCTION advisory.holders(namespace text, name text)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, slot integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], gid text, query text, slots integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._holders_of(namespace, name, advisory.key(namespace, name)) $$;
COMMENT ON FUNCTION advisory.holders(text, text) IS
    'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE OR REPLACE FUNCTION advisory.holders(namespace text, id bigint)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, slot integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], gid text, query text, slots integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._holders_of(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) $$;
COMMENT ON FUNCTION advisory.holders(text, bigint) IS
    'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE OR REPLACE FUNCTION advisory.holders(namespace text, id uuid)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, slot integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], gid text, query text, slots integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._holders_of(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]))) $$;
COMMENT ON FUNCTION advisory.holders(text, uuid) IS
    'sessions that hold the lock, or a slot of this name, or wait for it';

CREATE OR REPLACE FUNCTION advisory.terminate_holder(namespace text, name text, pid integer,
                                                     timeout interval DEFAULT '5s',
                                                     kind text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._terminate(namespace, name, advisory.key(namespace, name), pid, timeout,
            kind) $$;
COMMENT ON FUNCTION advisory.terminate_holder(text, text, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE OR REPLACE FUNCTION advisory.terminate_holder(namespace text, id bigint, pid integer,
                                                     timeout interval DEFAULT '5s',
                                                     kind text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._terminate(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), pid, timeout, kind) $$;
COMMENT ON FUNCTION advisory.terminate_holder(text, bigint, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE OR REPLACE FUNCTION advisory.terminate_holder(namespace text, id uuid, pid integer,
                                                     timeout interval DEFAULT '5s',
                                                     kind text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._terminate(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), pid, timeout, kind) $$;
COMMENT ON FUNCTION advisory.terminate_holder(text, uuid, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this name';

CREATE OR REPLACE FUNCTION advisory.lock_key(key bigint, timeout interval DEFAULT NULL,
                                             label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(key) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 'f', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_lock_key(key bigint, timeout interval DEFAULT '0',
                                                 label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock(key) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 'f', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.lock_shared_key(key bigint, timeout interval DEFAULT NULL,
                                                    label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(key) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 'f', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_lock_shared_key(key bigint, timeout interval DEFAULT '0',
                                                        label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_lock_shared(key) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 'f', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.try_lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.xact_lock_key(key bigint, timeout interval DEFAULT NULL,
                                                  label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(key) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', false, 't', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock_key(bigint, interval, text) IS
    'take an exclusive transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_key(key bigint, timeout interval DEFAULT '0',
                                                      label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock(key) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', false, 't', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_key(bigint, interval, text) IS
    'take an exclusive transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.xact_lock_shared_key(key bigint, timeout interval DEFAULT NULL,
                                                         label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(key) END
        OR CASE WHEN NOT 't' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('t', true, 't', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.xact_lock_shared_key(bigint, interval, text) IS
    'take a shared transaction-level lock: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_shared_key(key bigint,
                                                             timeout interval DEFAULT '0',
                                                             label text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT coalesce(
        CASE WHEN timeout OPERATOR(pg_catalog.<) '0'
                  OR timeout OPERATOR(pg_catalog.>) '2147483647 ms'
                  OR pg_catalog.pg_is_in_recovery()
                  OR label OPERATOR(pg_catalog.=) '' THEN NULL
             ELSE pg_catalog.pg_try_advisory_xact_lock_shared(key) END
        OR CASE WHEN NOT 'f' AND timeout OPERATOR(pg_catalog.=) '0' THEN false END,
        advisory._lock('f', true, 't', NULL, label, key, timeout)) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_shared_key(bigint, interval, text) IS
    'take a shared transaction-level lock if it is free within timeout';

CREATE OR REPLACE FUNCTION advisory.unlock_key(key bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(false, key) THEN true
             ELSE advisory._unlock(false, NULL, NULL, key) END $$;
COMMENT ON FUNCTION advisory.unlock_key(bigint) IS
    'release one exclusive session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.unlock_shared_key(key bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT CASE WHEN advisory._unlock_quietly(true, key) THEN true
             ELSE advisory._unlock(true, NULL, NULL, key) END $$;
COMMENT ON FUNCTION advisory.unlock_shared_key(bigint) IS
    'release one shared session-level hold; false if there is none';

CREATE OR REPLACE FUNCTION advisory.holds_key(key bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(key, true) $$;
COMMENT ON FUNCTION advisory.holds_key(bigint) IS
    'does this session hold the lock, in any mode and scope';

CREATE OR REPLACE FUNCTION advisory.is_locked_key(key bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._is_held(key, false) $$;
COMMENT ON FUNCTION advisory.is_locked_key(bigint) IS
    'does any session hold the lock: an observation, never a guard';

CREATE OR REPLACE FUNCTION advisory.holders_key(key bigint)
    RETURNS TABLE (pid integer, database text, role text, application_name text, client_addr inet,
                   state text, kind text, slot integer, mode text, scope text, granted boolean,
                   wait_start timestamptz, waited interval, acquired_at timestamptz, held interval,
                   blocked_by integer[], gid text, query text, slots integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._holders_of(NULL, NULL, key) $$;
COMMENT ON FUNCTION advisory.holders_key(bigint) IS
    'sessions that hold the lock, or a slot of this key, or wait for it';

CREATE OR REPLACE FUNCTION advisory.terminate_holder_key(key bigint, pid integer,
                                                         timeout interval DEFAULT '5s',
                                                         kind text DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._terminate(NULL, NULL, key, pid, timeout, kind) $$;
COMMENT ON FUNCTION advisory.terminate_holder_key(bigint, integer, interval, text) IS
    'end a session if it still holds the lock, or a slot, of this key';

CREATE OR REPLACE FUNCTION advisory.lock_all(namespace text, names text[],
                                             timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 'f', namespace, names, timeout) $$;
COMMENT ON FUNCTION advisory.lock_all(text, text[], interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE OR REPLACE FUNCTION advisory.lock_all(namespace text, ids bigint[],
                                             timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 'f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.lock_all(text, bigint[], interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE OR REPLACE FUNCTION advisory.lock_all(namespace text, ids uuid[],
                                             timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 'f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.lock_all(text, uuid[], interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE OR REPLACE FUNCTION advisory.lock_all(namespace text, names text,
                                             timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 'f', namespace, names::pg_catalog.text[], timeout) $$;
COMMENT ON FUNCTION advisory.lock_all(text, text, interval) IS
    'lock all of the list for the session: true, or error 55P03 and none';

CREATE OR REPLACE FUNCTION advisory.try_lock_all(namespace text, names text[],
                                                 timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 'f', namespace, names, timeout) $$;
COMMENT ON FUNCTION advisory.try_lock_all(text, text[], interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock_all(namespace text, ids bigint[],
                                                 timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 'f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.try_lock_all(text, bigint[], interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock_all(namespace text, ids uuid[],
                                                 timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 'f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.try_lock_all(text, uuid[], interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock_all(namespace text, names text,
                                                 timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 'f', namespace, names::pg_catalog.text[], timeout) $$;
COMMENT ON FUNCTION advisory.try_lock_all(text, text, interval) IS
    'lock all of the list for the session if all are free within timeout';

CREATE OR REPLACE FUNCTION advisory.xact_lock_all(namespace text, names text[],
                                                  timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 't', namespace, names, timeout) $$;
COMMENT ON FUNCTION advisory.xact_lock_all(text, text[], interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock_all(namespace text, ids bigint[],
                                                  timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 't', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.xact_lock_all(text, bigint[], interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock_all(namespace text, ids uuid[],
                                                  timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 't', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.xact_lock_all(text, uuid[], interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_lock_all(namespace text, names text,
                                                  timeout interval DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('t', 't', namespace, names::pg_catalog.text[], timeout) $$;
COMMENT ON FUNCTION advisory.xact_lock_all(text, text, interval) IS
    'lock all of the list for the transaction: true, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_all(namespace text, names text[],
                                                      timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 't', namespace, names, timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, text[], interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_all(namespace text, ids bigint[],
                                                      timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 't', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, bigint[], interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_all(namespace text, ids uuid[],
                                                      timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 't', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, uuid[], interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_all(namespace text, names text,
                                                      timeout interval DEFAULT '0')
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._take_all('f', 't', namespace, names::pg_catalog.text[], timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_all(text, text, interval) IS
    'lock all of the list for the transaction if free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lock_any(namespace text, names text[],
                                                 wanted integer DEFAULT 1)
    RETURNS SETOF text
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text
        FROM advisory._try_any('f', namespace, names, false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_lock_any(text, text[], integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE OR REPLACE FUNCTION advisory.try_lock_any(namespace text, ids bigint[],
                                                 wanted integer DEFAULT 1)
    RETURNS SETOF bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.int8
        FROM advisory._try_any('f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_lock_any(text, bigint[], integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE OR REPLACE FUNCTION advisory.try_lock_any(namespace text, ids uuid[],
                                                 wanted integer DEFAULT 1)
    RETURNS SETOF uuid
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.uuid
        FROM advisory._try_any('f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_lock_any(text, uuid[], integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE OR REPLACE FUNCTION advisory.try_lock_any(namespace text, names text,
                                                 wanted integer DEFAULT 1)
    RETURNS SETOF text
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text
        FROM advisory._try_any('f', namespace, names::pg_catalog.text[], false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_lock_any(text, text, integer) IS
    'lock up to wanted of the list that are free, for the session';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_any(namespace text, names text[],
                                                      wanted integer DEFAULT 1)
    RETURNS SETOF text
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text
        FROM advisory._try_any('t', namespace, names, false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, text[], integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_any(namespace text, ids bigint[],
                                                      wanted integer DEFAULT 1)
    RETURNS SETOF bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.int8
        FROM advisory._try_any('t', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, bigint[], integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_any(namespace text, ids uuid[],
                                                      wanted integer DEFAULT 1)
    RETURNS SETOF uuid
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.uuid
        FROM advisory._try_any('t', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, uuid[], integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE OR REPLACE FUNCTION advisory.try_xact_lock_any(namespace text, names text,
                                                      wanted integer DEFAULT 1)
    RETURNS SETOF text
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text
        FROM advisory._try_any('t', namespace, names::pg_catalog.text[], false, NULL, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_lock_any(text, text, integer) IS
    'lock up to wanted of the list that are free, for the transaction';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, name text)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._unlock_all(namespace, ARRAY[name], false) $$;
COMMENT ON FUNCTION advisory.unlock_all(text, text) IS
    'release every session-level hold of the lock, in both modes';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, id bigint)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._unlock_all(namespace, ARRAY[coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])], false) $$;
COMMENT ON FUNCTION advisory.unlock_all(text, bigint) IS
    'release every session-level hold of the lock, in both modes';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, id uuid)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._unlock_all(namespace, ARRAY[coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1])], false) $$;
COMMENT ON FUNCTION advisory.unlock_all(text, uuid) IS
    'release every session-level hold of the lock, in both modes';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, names text[])
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._unlock_all(namespace, names, true) $$;
COMMENT ON FUNCTION advisory.unlock_all(text, text[]) IS
    'release every session-level hold of each lock in the list';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, ids bigint[])
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._unlock_all(namespace, advisory._check_list(namespace, ids::pg_catalog.text[],
            'id'), true) $$;
COMMENT ON FUNCTION advisory.unlock_all(text, bigint[]) IS
    'release every session-level hold of each lock in the list';

CREATE OR REPLACE FUNCTION advisory.unlock_all(namespace text, ids uuid[])
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._unlock_all(namespace, advisory._check_list(namespace, ids::pg_catalog.text[],
            'id'), true) $$;
COMMENT ON FUNCTION advisory.unlock_all(text, uuid[]) IS
    'release every session-level hold of each lock in the list';

CREATE OR REPLACE FUNCTION advisory.acquire(namespace text, name text, slots integer,
                                            timeout interval DEFAULT NULL)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('t', 'f', namespace, name, slots, 1, timeout))[1] $$;
COMMENT ON FUNCTION advisory.acquire(text, text, integer, interval) IS
    'take a slot of a semaphore for the session, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.acquire(namespace text, id bigint, slots integer,
                                            timeout interval DEFAULT NULL)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('t', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.acquire(text, bigint, integer, interval) IS
    'take a slot of a semaphore for the session, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.acquire(namespace text, id uuid, slots integer,
                                            timeout interval DEFAULT NULL)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('t', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.acquire(text, uuid, integer, interval) IS
    'take a slot of a semaphore for the session, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_acquire(namespace text, name text, slots integer,
                                                timeout interval DEFAULT '0')
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('f', 'f', namespace, name, slots, 1, timeout))[1] $$;
COMMENT ON FUNCTION advisory.try_acquire(text, text, integer, interval) IS
    'take a slot for the session if one is free within timeout, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire(namespace text, id bigint, slots integer,
                                                timeout interval DEFAULT '0')
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('f', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.try_acquire(text, bigint, integer, interval) IS
    'take a slot for the session if one is free within timeout, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire(namespace text, id uuid, slots integer,
                                                timeout interval DEFAULT '0')
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('f', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.try_acquire(text, uuid, integer, interval) IS
    'take a slot for the session if one is free within timeout, or NULL';

CREATE OR REPLACE FUNCTION advisory.xact_acquire(namespace text, name text, slots integer,
                                                 timeout interval DEFAULT NULL)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('t', 't', namespace, name, slots, 1, timeout))[1] $$;
COMMENT ON FUNCTION advisory.xact_acquire(text, text, integer, interval) IS
    'take a slot of a semaphore for the transaction, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_acquire(namespace text, id bigint, slots integer,
                                                 timeout interval DEFAULT NULL)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('t', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.xact_acquire(text, bigint, integer, interval) IS
    'take a slot of a semaphore for the transaction, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_acquire(namespace text, id uuid, slots integer,
                                                 timeout interval DEFAULT NULL)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('t', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.xact_acquire(text, uuid, integer, interval) IS
    'take a slot of a semaphore for the transaction, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire(namespace text, name text, slots integer,
                                                     timeout interval DEFAULT '0')
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('f', 't', namespace, name, slots, 1, timeout))[1] $$;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, text, integer, interval) IS
    'take a slot for the transaction if one is free within timeout, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire(namespace text, id bigint, slots integer,
                                                     timeout interval DEFAULT '0')
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('f', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, bigint, integer, interval) IS
    'take a slot for the transaction if one is free within timeout, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire(namespace text, id uuid, slots integer,
                                                     timeout interval DEFAULT '0')
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._acquire('f', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, 1,
            timeout))[1] $$;
COMMENT ON FUNCTION advisory.try_xact_acquire(text, uuid, integer, interval) IS
    'take a slot for the transaction if one is free within timeout, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_any(namespace text, names text[], slots integer,
                                                    wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text, slot
        FROM advisory._try_any('f', namespace, names, true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_acquire_any(text, text[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE OR REPLACE FUNCTION advisory.try_acquire_any(namespace text, ids bigint[], slots integer,
                                                    wanted integer DEFAULT 1)
    RETURNS TABLE (id bigint, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.int8, slot
        FROM advisory._try_any('f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_acquire_any(text, bigint[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE OR REPLACE FUNCTION advisory.try_acquire_any(namespace text, ids uuid[], slots integer,
                                                    wanted integer DEFAULT 1)
    RETURNS TABLE (id uuid, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.uuid, slot
        FROM advisory._try_any('f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_acquire_any(text, uuid[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE OR REPLACE FUNCTION advisory.try_acquire_any(namespace text, names text, slots integer,
                                                    wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text, slot
        FROM advisory._try_any('f', namespace, names::pg_catalog.text[], true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_acquire_any(text, text, integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_any(namespace text, names text[],
                                                         slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text, slot
        FROM advisory._try_any('t', namespace, names, true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, text[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_any(namespace text, ids bigint[],
                                                         slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (id bigint, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.int8, slot
        FROM advisory._try_any('t', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, bigint[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_any(namespace text, ids uuid[], slots integer,
                                                         wanted integer DEFAULT 1)
    RETURNS TABLE (id uuid, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.uuid, slot
        FROM advisory._try_any('t', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, uuid[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_any(namespace text, names text, slots integer,
                                                         wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    LANGUAGE sql COST 1000 AS $$
    SELECT taken::pg_catalog.text, slot
        FROM advisory._try_any('t', namespace, names::pg_catalog.text[], true, slots, wanted) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, text, integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

COMMENT ON FUNCTION advisory.release(text, text, integer) IS
    'give back a slot of this session (NULL: the greatest)';

CREATE OR REPLACE FUNCTION advisory.release(namespace text, id bigint, slot integer DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.release(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slot) $$;
COMMENT ON FUNCTION advisory.release(text, bigint, integer) IS
    'give back a slot of this session (NULL: the greatest)';

CREATE OR REPLACE FUNCTION advisory.release(namespace text, id uuid, slot integer DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.release(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slot) $$;
COMMENT ON FUNCTION advisory.release(text, uuid, integer) IS
    'give back a slot of this session (NULL: the greatest)';

CREATE OR REPLACE FUNCTION advisory.acquire_many(namespace text, name text, slots integer,
                                                 wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('t', 'f', namespace, name, slots, wanted, timeout) $$;
COMMENT ON FUNCTION advisory.acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the session, all or none, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.acquire_many(namespace text, id bigint, slots integer,
                                                 wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('t', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the session, all or none, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.acquire_many(namespace text, id uuid, slots integer,
                                                 wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('t', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the session, all or none, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_acquire_many(namespace text, name text, slots integer,
                                                     wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('f', 'f', namespace, name, slots, wanted, timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_many(namespace text, id bigint, slots integer,
                                                     wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('f', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_many(namespace text, id uuid, slots integer,
                                                     wanted integer, timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('f', 'f', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.xact_acquire_many(namespace text, name text, slots integer,
                                                      wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('t', 't', namespace, name, slots, wanted, timeout) $$;
COMMENT ON FUNCTION advisory.xact_acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_acquire_many(namespace text, id bigint, slots integer,
                                                      wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('t', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.xact_acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.xact_acquire_many(namespace text, id uuid, slots integer,
                                                      wanted integer, timeout interval DEFAULT NULL)
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('t', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.xact_acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_many(namespace text, name text, slots integer,
                                                          wanted integer,
                                                          timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('f', 't', namespace, name, slots, wanted, timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_many(text, text, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_many(namespace text, id bigint, slots integer,
                                                          wanted integer,
                                                          timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('f', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_many(text, bigint, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_many(namespace text, id uuid, slots integer,
                                                          wanted integer,
                                                          timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._acquire('f', 't', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots, wanted,
            timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_many(text, uuid, integer, integer, interval) IS
    'take several slots for the transaction, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_all(namespace text, names text[], slots integer[],
                                                    timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('f', namespace, names, slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_all(text, text[], integer[], interval) IS
    'take a slot of each for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_all(namespace text, ids bigint[], slots integer[],
                                                    timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_all(text, bigint[], integer[], interval) IS
    'take a slot of each for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_all(namespace text, ids uuid[], slots integer[],
                                                    timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('f', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_all(text, uuid[], integer[], interval) IS
    'take a slot of each for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_acquire_all(namespace text, names text, slots integer[],
                                                    timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('f', namespace, names::pg_catalog.text[], slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_acquire_all(text, text, integer[], interval) IS
    'take a slot of each for the session, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_all(namespace text, names text[],
                                                         slots integer[],
                                                         timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('t', namespace, names, slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_all(text, text[], integer[], interval) IS
    'take a slot of each for the transaction, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_all(namespace text, ids bigint[],
                                                         slots integer[],
                                                         timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('t', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_all(text, bigint[], integer[], interval) IS
    'take a slot of each for the transaction, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_all(namespace text, ids uuid[],
                                                         slots integer[],
                                                         timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('t', namespace, advisory._check_list(namespace,
            ids::pg_catalog.text[], 'id'), slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_all(text, uuid[], integer[], interval) IS
    'take a slot of each for the transaction, all or none, or NULL';

CREATE OR REPLACE FUNCTION advisory.try_xact_acquire_all(namespace text, names text,
                                                         slots integer[],
                                                         timeout interval DEFAULT '0')
    RETURNS integer[]
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._try_acquire_all('t', namespace, names::pg_catalog.text[], slots, timeout) $$;
COMMENT ON FUNCTION advisory.try_xact_acquire_all(text, text, integer[], interval) IS
    'take a slot of each for the transaction, all or none, or NULL';

COMMENT ON FUNCTION advisory.release_many(text, text, integer[]) IS
    'give back these slots of this session; returns how many it had';

CREATE OR REPLACE FUNCTION advisory.release_many(namespace text, id bigint, slots integer[])
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.release_many(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots) $$;
COMMENT ON FUNCTION advisory.release_many(text, bigint, integer[]) IS
    'give back these slots of this session; returns how many it had';

CREATE OR REPLACE FUNCTION advisory.release_many(namespace text, id uuid, slots integer[])
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.release_many(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), slots) $$;
COMMENT ON FUNCTION advisory.release_many(text, uuid, integer[]) IS
    'give back these slots of this session; returns how many it had';

CREATE OR REPLACE PROCEDURE advisory.await_acquire(namespace text, name text, slots integer,
                                                   timeout interval DEFAULT NULL,
                                                   INOUT slot integer DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(
        NULL, namespace, name, advisory._slot_key(namespace, name, 0), slots, timeout, slot);
END $$;
COMMENT ON PROCEDURE advisory.await_acquire(text, text, integer, interval, integer) IS
    'take a slot of a semaphore, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_acquire(namespace text, id bigint, slots integer,
                                                   timeout interval DEFAULT NULL,
                                                   INOUT slot integer DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(
        NULL, namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), advisory._slot_key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), 0), slots, timeout, slot);
END $$;
COMMENT ON PROCEDURE advisory.await_acquire(text, bigint, integer, interval, integer) IS
    'take a slot of a semaphore, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_acquire(namespace text, id uuid, slots integer,
                                                   timeout interval DEFAULT NULL,
                                                   INOUT slot integer DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(
        NULL, namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), advisory._slot_key(namespace,
            coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), 0), slots, timeout, slot);
END $$;
COMMENT ON PROCEDURE advisory.await_acquire(text, uuid, integer, interval, integer) IS
    'take a slot of a semaphore, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock(namespace text, name text,
                                                timeout interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(false, namespace, name, advisory.key(namespace, name), NULL, timeout,
            ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock(text, text, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock(namespace text, id bigint,
                                                timeout interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(false, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), NULL, timeout, ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock(text, bigint, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock(namespace text, id uuid,
                                                timeout interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(false, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), NULL, timeout, ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock(text, uuid, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock_key(key bigint, timeout interval DEFAULT NULL,
                                                    label text DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(false, NULL, label, key, NULL, timeout, ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock_shared(namespace text, name text,
                                                       timeout interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(true, namespace, name, advisory.key(namespace, name), NULL, timeout,
            ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, text, interval) IS
    'take a shared session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock_shared(namespace text, id bigint,
                                                       timeout interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(true, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), NULL, timeout, ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, bigint, interval) IS
    'take a shared session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock_shared(namespace text, id uuid,
                                                       timeout interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(true, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            advisory.key(namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1])), NULL, timeout, ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, uuid, interval) IS
    'take a shared session-level lock, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lock_shared_key(key bigint,
                                                           timeout interval DEFAULT NULL,
                                                           label text DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await(true, NULL, label, key, NULL, timeout, ignored);
END $$;
COMMENT ON PROCEDURE advisory.await_lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock, waiting without a snapshot';

COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean, interval,
                                  timestamptz, text, interval) IS
    'run a command while holding a lock or slot, once_per window, or apart';

CREATE OR REPLACE PROCEDURE advisory.run(namespace text, id bigint, command text,
                                         timeout interval DEFAULT '0', slots integer DEFAULT NULL,
                                         if_busy text DEFAULT 'skip',
                                         INOUT ran boolean DEFAULT NULL,
                                         once_per interval DEFAULT NULL,
                                         once_window timestamptz DEFAULT NULL,
                                         time_zone text DEFAULT NULL, apart interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory.run(
        namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), command, timeout, slots, if_busy, ran,
            once_per, once_window, time_zone,
        apart);
END $$;
COMMENT ON PROCEDURE advisory.run(text, bigint, text, interval, integer, text, boolean, interval,
                                  timestamptz, text, interval) IS
    'run a command while holding a lock or slot, once_per window, or apart';

CREATE OR REPLACE PROCEDURE advisory.run(namespace text, id uuid, command text,
                                         timeout interval DEFAULT '0', slots integer DEFAULT NULL,
                                         if_busy text DEFAULT 'skip',
                                         INOUT ran boolean DEFAULT NULL,
                                         once_per interval DEFAULT NULL,
                                         once_window timestamptz DEFAULT NULL,
                                         time_zone text DEFAULT NULL, apart interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory.run(
        namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), command, timeout, slots, if_busy, ran,
            once_per, once_window, time_zone,
        apart);
END $$;
COMMENT ON PROCEDURE advisory.run(text, uuid, text, interval, integer, text, boolean, interval,
                                  timestamptz, text, interval) IS
    'run a command while holding a lock or slot, once_per window, or apart';

CREATE OR REPLACE FUNCTION advisory.token(namespace text, name text)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(false, namespace, name, NULL, NULL) $$;
COMMENT ON FUNCTION advisory.token(text, text) IS
    'fencing token for a lock that this session holds in exclusive mode';

CREATE OR REPLACE FUNCTION advisory.token(namespace text, id bigint)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(false, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, NULL) $$;
COMMENT ON FUNCTION advisory.token(text, bigint) IS
    'fencing token for a lock that this session holds in exclusive mode';

CREATE OR REPLACE FUNCTION advisory.token(namespace text, id uuid)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(false, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, NULL) $$;
COMMENT ON FUNCTION advisory.token(text, uuid) IS
    'fencing token for a lock that this session holds in exclusive mode';

CREATE OR REPLACE FUNCTION advisory.token(namespace text, name text, slot integer)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(true, namespace, name, NULL, slot) $$;
COMMENT ON FUNCTION advisory.token(text, text, integer) IS
    'fencing token for a slot of this session';

CREATE OR REPLACE FUNCTION advisory.token(namespace text, id bigint, slot integer)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(true, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, slot) $$;
COMMENT ON FUNCTION advisory.token(text, bigint, integer) IS
    'fencing token for a slot of this session';

CREATE OR REPLACE FUNCTION advisory.token(namespace text, id uuid, slot integer)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(true, namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, slot) $$;
COMMENT ON FUNCTION advisory.token(text, uuid, integer) IS
    'fencing token for a slot of this session';

CREATE OR REPLACE FUNCTION advisory.token_key(key bigint)
    RETURNS bigint
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._token(NULL, NULL, NULL, key, NULL) $$;
COMMENT ON FUNCTION advisory.token_key(bigint) IS
    'fencing token for the lock of this key, which this session holds';

COMMENT ON FUNCTION advisory.check_token(text, text, bigint) IS
    'true if no greater token of this name was checked, or error 55000';

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, id bigint, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.check_token(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), token) $$;
COMMENT ON FUNCTION advisory.check_token(text, bigint, bigint) IS
    'true if no greater token of this name was checked, or error 55000';

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, id uuid, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.check_token(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), token) $$;
COMMENT ON FUNCTION advisory.check_token(text, uuid, bigint) IS
    'true if no greater token of this name was checked, or error 55000';

CREATE OR REPLACE FUNCTION advisory.lease(namespace text, name text, ttl interval,
                                          timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                                          lock_delay interval DEFAULT '0',
                                          max_hold interval DEFAULT NULL, OUT token bigint,
                                          OUT expires_at timestamptz)
    LANGUAGE sql COST 1000 AS $$
    SELECT token, expires_at
        FROM advisory._lease('t', 'take', namespace, name, NULL, ttl, timeout, owner,
            lock_delay, max_hold) $$;
COMMENT ON FUNCTION advisory.lease(text, text, interval, interval, text, interval, interval) IS
    'take a lease, which outlives the session, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lease(namespace text, id bigint, ttl interval,
                                          timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                                          lock_delay interval DEFAULT '0',
                                          max_hold interval DEFAULT NULL, OUT token bigint,
                                          OUT expires_at timestamptz)
    LANGUAGE sql COST 1000 AS $$
    SELECT token, expires_at
        FROM advisory._lease('t', 'take', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, ttl,
            timeout, owner,
            lock_delay, max_hold) $$;
COMMENT ON FUNCTION advisory.lease(text, bigint, interval, interval, text, interval, interval) IS
    'take a lease, which outlives the session, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lease(namespace text, id uuid, ttl interval,
                                          timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                                          lock_delay interval DEFAULT '0',
                                          max_hold interval DEFAULT NULL, OUT token bigint,
                                          OUT expires_at timestamptz)
    LANGUAGE sql COST 1000 AS $$
    SELECT token, expires_at
        FROM advisory._lease('t', 'take', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, ttl,
            timeout, owner,
            lock_delay, max_hold) $$;
COMMENT ON FUNCTION advisory.lease(text, uuid, interval, interval, text, interval, interval) IS
    'take a lease, which outlives the session, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_lease(namespace text, name text, ttl interval,
                                              timeout interval DEFAULT '0', owner text DEFAULT NULL,
                                              lock_delay interval DEFAULT '0',
                                              max_hold interval DEFAULT NULL, OUT token bigint,
                                              OUT expires_at timestamptz)
    LANGUAGE sql COST 1000 AS $$
    SELECT token, expires_at
        FROM advisory._lease('f', 'take', namespace, name, NULL, ttl, timeout, owner,
            lock_delay, max_hold) $$;
COMMENT ON FUNCTION advisory.try_lease(text, text, interval, interval, text, interval, interval) IS
    'take a lease, which outlives the session, if free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lease(namespace text, id bigint, ttl interval,
                                              timeout interval DEFAULT '0', owner text DEFAULT NULL,
                                              lock_delay interval DEFAULT '0',
                                              max_hold interval DEFAULT NULL, OUT token bigint,
                                              OUT expires_at timestamptz)
    LANGUAGE sql COST 1000 AS $$
    SELECT token, expires_at
        FROM advisory._lease('f', 'take', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, ttl,
            timeout, owner,
            lock_delay, max_hold) $$;
COMMENT ON FUNCTION advisory.try_lease(text, bigint, interval, interval, text, interval,
                                       interval) IS
    'take a lease, which outlives the session, if free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lease(namespace text, id uuid, ttl interval,
                                              timeout interval DEFAULT '0', owner text DEFAULT NULL,
                                              lock_delay interval DEFAULT '0',
                                              max_hold interval DEFAULT NULL, OUT token bigint,
                                              OUT expires_at timestamptz)
    LANGUAGE sql COST 1000 AS $$
    SELECT token, expires_at
        FROM advisory._lease('f', 'take', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, ttl,
            timeout, owner,
            lock_delay, max_hold) $$;
COMMENT ON FUNCTION advisory.try_lease(text, uuid, interval, interval, text, interval, interval) IS
    'take a lease, which outlives the session, if free within timeout';

CREATE OR REPLACE FUNCTION advisory.renew_lease(namespace text, name text, token bigint,
                                                ttl interval DEFAULT NULL)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('renew', namespace, name, ttl, token)).result $$;
COMMENT ON FUNCTION advisory.renew_lease(text, text, bigint, interval) IS
    'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE OR REPLACE FUNCTION advisory.renew_lease(namespace text, id bigint, token bigint,
                                                ttl interval DEFAULT NULL)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('renew', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), ttl,
            token)).result $$;
COMMENT ON FUNCTION advisory.renew_lease(text, bigint, bigint, interval) IS
    'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE OR REPLACE FUNCTION advisory.renew_lease(namespace text, id uuid, token bigint,
                                                ttl interval DEFAULT NULL)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('renew', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), ttl,
            token)).result $$;
COMMENT ON FUNCTION advisory.renew_lease(text, uuid, bigint, interval) IS
    'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE OR REPLACE FUNCTION advisory.end_lease(namespace text, name text, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('end', namespace, name, NULL, token)).result IS NOT NULL $$;
COMMENT ON FUNCTION advisory.end_lease(text, text, bigint) IS
    'end a lease of this role: false if it is lost';

CREATE OR REPLACE FUNCTION advisory.end_lease(namespace text, id bigint, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('end', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL,
            token)).result IS NOT NULL $$;
COMMENT ON FUNCTION advisory.end_lease(text, bigint, bigint) IS
    'end a lease of this role: false if it is lost';

CREATE OR REPLACE FUNCTION advisory.end_lease(namespace text, id uuid, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('end', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL,
            token)).result IS NOT NULL $$;
COMMENT ON FUNCTION advisory.end_lease(text, uuid, bigint) IS
    'end a lease of this role: false if it is lost';

CREATE OR REPLACE FUNCTION advisory.check_lease(namespace text, name text, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('check', namespace, name, NULL, token)).result IS NOT NULL $$;
COMMENT ON FUNCTION advisory.check_lease(text, text, bigint) IS
    'true if the lease of this role has this token, or error 55000';

CREATE OR REPLACE FUNCTION advisory.check_lease(namespace text, id bigint, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('check', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL,
            token)).result IS NOT NULL $$;
COMMENT ON FUNCTION advisory.check_lease(text, bigint, bigint) IS
    'true if the lease of this role has this token, or error 55000';

CREATE OR REPLACE FUNCTION advisory.check_lease(namespace text, id uuid, token bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('check', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), NULL,
            token)).result IS NOT NULL $$;
COMMENT ON FUNCTION advisory.check_lease(text, uuid, bigint) IS
    'true if the lease of this role has this token, or error 55000';

COMMENT ON FUNCTION advisory.break_lease(text, text, bigint) IS
    'end the lease of any owner, or only the one with this token';

CREATE OR REPLACE FUNCTION advisory.break_lease(namespace text, id bigint,
                                                token bigint DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.break_lease(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), token) $$;
COMMENT ON FUNCTION advisory.break_lease(text, bigint, bigint) IS
    'end the lease of any owner, or only the one with this token';

CREATE OR REPLACE FUNCTION advisory.break_lease(namespace text, id uuid, token bigint DEFAULT NULL)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.break_lease(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), token) $$;
COMMENT ON FUNCTION advisory.break_lease(text, uuid, bigint) IS
    'end the lease of any owner, or only the one with this token';

CREATE OR REPLACE FUNCTION advisory.is_leased(namespace text, name text)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._leased(namespace, name, false) OPERATOR(pg_catalog.>) 0 $$;
COMMENT ON FUNCTION advisory.is_leased(text, text) IS
    'does anybody hold the lease now: an observation, never a guard';

CREATE OR REPLACE FUNCTION advisory.is_leased(namespace text, id bigint)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._leased(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            false) OPERATOR(pg_catalog.>) 0 $$;
COMMENT ON FUNCTION advisory.is_leased(text, bigint) IS
    'does anybody hold the lease now: an observation, never a guard';

CREATE OR REPLACE FUNCTION advisory.is_leased(namespace text, id uuid)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._leased(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            false) OPERATOR(pg_catalog.>) 0 $$;
COMMENT ON FUNCTION advisory.is_leased(text, uuid) IS
    'does anybody hold the lease now: an observation, never a guard';

CREATE OR REPLACE PROCEDURE advisory.await_lease(namespace text, name text, ttl interval,
                                                 timeout interval DEFAULT NULL,
                                                 owner text DEFAULT NULL,
                                                 lock_delay interval DEFAULT '0',
                                                 max_hold interval DEFAULT NULL,
                                                 INOUT token bigint DEFAULT NULL,
                                                 INOUT expires_at timestamptz DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await_lease(
        'take', namespace, name, NULL, ttl, timeout, owner, lock_delay, max_hold, ignored, token,
        expires_at);
END $$;
COMMENT ON PROCEDURE advisory.await_lease(text, text, interval, interval, text, interval, interval,
                                          bigint, timestamptz) IS
    'take a lease, waiting without a snapshot, or error 55P03';

CREATE OR REPLACE PROCEDURE advisory.await_lease(namespace text, id bigint, ttl interval,
                                                 timeout interval DEFAULT NULL,
                                                 owner text DEFAULT NULL,
                                                 lock_delay interval DEFAULT '0',
                                                 max_hold interval DEFAULT NULL,
                                                 INOUT token bigint DEFAULT NULL,
                                                 INOUT expires_at timestamptz DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await_lease(
        'take', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, ttl, timeout, owner, lock_delay,
            max_hold, ignored, token,
        expires_at);
END $$;
COMMENT ON PROCEDURE advisory.await_lease(text, bigint, interval, interval, text, interval,
                                          interval, bigint, timestamptz) IS
    'take a lease, waiting without a snapshot, or error 55P03';

CREATE OR REPLACE PROCEDURE advisory.await_lease(namespace text, id uuid, ttl interval,
                                                 timeout interval DEFAULT NULL,
                                                 owner text DEFAULT NULL,
                                                 lock_delay interval DEFAULT '0',
                                                 max_hold interval DEFAULT NULL,
                                                 INOUT token bigint DEFAULT NULL,
                                                 INOUT expires_at timestamptz DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await_lease(
        'take', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), NULL, ttl, timeout, owner, lock_delay,
            max_hold, ignored, token,
        expires_at);
END $$;
COMMENT ON PROCEDURE advisory.await_lease(text, uuid, interval, interval, text, interval, interval,
                                          bigint, timestamptz) IS
    'take a lease, waiting without a snapshot, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lease_slot(namespace text, name text, slots integer,
                                               ttl interval, timeout interval DEFAULT NULL,
                                               owner text DEFAULT NULL,
                                               max_hold interval DEFAULT NULL, OUT slot integer,
                                               OUT token bigint, OUT expires_at timestamptz,
                                               OUT remaining interval)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._lease(
        't', 'take_slot', namespace, name, slots, ttl, timeout, owner, '0', max_hold) $$;
COMMENT ON FUNCTION advisory.lease_slot(text, text, integer, interval, interval, text, interval) IS
    'take a slot that outlives the session, as a lease does, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lease_slot(namespace text, id bigint, slots integer,
                                               ttl interval, timeout interval DEFAULT NULL,
                                               owner text DEFAULT NULL,
                                               max_hold interval DEFAULT NULL, OUT slot integer,
                                               OUT token bigint, OUT expires_at timestamptz,
                                               OUT remaining interval)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._lease(
        't', 'take_slot', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), slots, ttl, timeout, owner, '0', max_hold) $$;
COMMENT ON FUNCTION advisory.lease_slot(text, bigint, integer, interval, interval, text,
                                        interval) IS
    'take a slot that outlives the session, as a lease does, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.lease_slot(namespace text, id uuid, slots integer, ttl interval,
                                               timeout interval DEFAULT NULL,
                                               owner text DEFAULT NULL,
                                               max_hold interval DEFAULT NULL, OUT slot integer,
                                               OUT token bigint, OUT expires_at timestamptz,
                                               OUT remaining interval)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._lease(
        't', 'take_slot', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), slots, ttl, timeout, owner, '0', max_hold) $$;
COMMENT ON FUNCTION advisory.lease_slot(text, uuid, integer, interval, interval, text, interval) IS
    'take a slot that outlives the session, as a lease does, or error 55P03';

CREATE OR REPLACE FUNCTION advisory.try_lease_slot(namespace text, name text, slots integer,
                                                   ttl interval, timeout interval DEFAULT '0',
                                                   owner text DEFAULT NULL,
                                                   max_hold interval DEFAULT NULL, OUT slot integer,
                                                   OUT token bigint, OUT expires_at timestamptz,
                                                   OUT remaining interval)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._lease(
        'f', 'take_slot', namespace, name, slots, ttl, timeout, owner, '0', max_hold) $$;
COMMENT ON FUNCTION advisory.try_lease_slot(text, text, integer, interval, interval, text,
                                            interval) IS
    'take a slot that outlives the session, if one is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lease_slot(namespace text, id bigint, slots integer,
                                                   ttl interval, timeout interval DEFAULT '0',
                                                   owner text DEFAULT NULL,
                                                   max_hold interval DEFAULT NULL, OUT slot integer,
                                                   OUT token bigint, OUT expires_at timestamptz,
                                                   OUT remaining interval)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._lease(
        'f', 'take_slot', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), slots, ttl, timeout, owner, '0', max_hold) $$;
COMMENT ON FUNCTION advisory.try_lease_slot(text, bigint, integer, interval, interval, text,
                                            interval) IS
    'take a slot that outlives the session, if one is free within timeout';

CREATE OR REPLACE FUNCTION advisory.try_lease_slot(namespace text, id uuid, slots integer,
                                                   ttl interval, timeout interval DEFAULT '0',
                                                   owner text DEFAULT NULL,
                                                   max_hold interval DEFAULT NULL, OUT slot integer,
                                                   OUT token bigint, OUT expires_at timestamptz,
                                                   OUT remaining interval)
    LANGUAGE sql COST 1000 AS $$
    SELECT * FROM advisory._lease(
        'f', 'take_slot', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), slots, ttl, timeout, owner, '0', max_hold) $$;
COMMENT ON FUNCTION advisory.try_lease_slot(text, uuid, integer, interval, interval, text,
                                            interval) IS
    'take a slot that outlives the session, if one is free within timeout';

CREATE OR REPLACE PROCEDURE advisory.await_lease_slot(namespace text, name text, slots integer,
                                                      ttl interval, timeout interval DEFAULT NULL,
                                                      owner text DEFAULT NULL,
                                                      max_hold interval DEFAULT NULL,
                                                      INOUT slot integer DEFAULT NULL,
                                                      INOUT token bigint DEFAULT NULL,
                                                      INOUT expires_at timestamptz DEFAULT NULL,
                                                      INOUT remaining interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await_lease(
        'take_slot', namespace, name, slots, ttl, timeout, owner, '0', max_hold, slot, token,
        expires_at);
    remaining := advisory._remaining(expires_at);
END $$;
COMMENT ON PROCEDURE advisory.await_lease_slot(text, text, integer, interval, interval, text,
                                               interval, integer, bigint, timestamptz, interval) IS
    'take a slot that outlives the session, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lease_slot(namespace text, id bigint, slots integer,
                                                      ttl interval, timeout interval DEFAULT NULL,
                                                      owner text DEFAULT NULL,
                                                      max_hold interval DEFAULT NULL,
                                                      INOUT slot integer DEFAULT NULL,
                                                      INOUT token bigint DEFAULT NULL,
                                                      INOUT expires_at timestamptz DEFAULT NULL,
                                                      INOUT remaining interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await_lease(
        'take_slot', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), slots, ttl, timeout, owner, '0', max_hold,
            slot, token,
        expires_at);
    remaining := advisory._remaining(expires_at);
END $$;
COMMENT ON PROCEDURE advisory.await_lease_slot(text, bigint, integer, interval, interval, text,
                                               interval, integer, bigint, timestamptz, interval) IS
    'take a slot that outlives the session, waiting without a snapshot';

CREATE OR REPLACE PROCEDURE advisory.await_lease_slot(namespace text, id uuid, slots integer,
                                                      ttl interval, timeout interval DEFAULT NULL,
                                                      owner text DEFAULT NULL,
                                                      max_hold interval DEFAULT NULL,
                                                      INOUT slot integer DEFAULT NULL,
                                                      INOUT token bigint DEFAULT NULL,
                                                      INOUT expires_at timestamptz DEFAULT NULL,
                                                      INOUT remaining interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    ignored integer;
BEGIN
    CALL advisory._await_lease(
        'take_slot', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), slots, ttl, timeout, owner, '0', max_hold,
            slot, token,
        expires_at);
    remaining := advisory._remaining(expires_at);
END $$;
COMMENT ON PROCEDURE advisory.await_lease_slot(text, uuid, integer, interval, interval, text,
                                               interval, integer, bigint, timestamptz, interval) IS
    'take a slot that outlives the session, waiting without a snapshot';

CREATE OR REPLACE FUNCTION advisory.leased_slots(namespace text, name text)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._leased(namespace, name, true) $$;
COMMENT ON FUNCTION advisory.leased_slots(text, text) IS
    'how many slots that outlive sessions are held now: an observation';

CREATE OR REPLACE FUNCTION advisory.leased_slots(namespace text, id bigint)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._leased(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), true) $$;
COMMENT ON FUNCTION advisory.leased_slots(text, bigint) IS
    'how many slots that outlive sessions are held now: an observation';

CREATE OR REPLACE FUNCTION advisory.leased_slots(namespace text, id uuid)
    RETURNS integer
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory._leased(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]), true) $$;
COMMENT ON FUNCTION advisory.leased_slots(text, uuid) IS
    'how many slots that outlive sessions are held now: an observation';

CREATE OR REPLACE FUNCTION advisory.claim(namespace text, name text, every interval,
                                          window_start timestamptz DEFAULT NULL,
                                          time_zone text DEFAULT NULL)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request(
        'claim', namespace, name, every, NULL, window_start, time_zone)).result $$;
COMMENT ON FUNCTION advisory.claim(text, text, interval, timestamptz, text) IS
    'claim a window of time once: the window, or NULL if it is claimed';

CREATE OR REPLACE FUNCTION advisory.claim(namespace text, id bigint, every interval,
                                          window_start timestamptz DEFAULT NULL,
                                          time_zone text DEFAULT NULL)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request(
        'claim', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), every, NULL, window_start,
            time_zone)).result $$;
COMMENT ON FUNCTION advisory.claim(text, bigint, interval, timestamptz, text) IS
    'claim a window of time once: the window, or NULL if it is claimed';

CREATE OR REPLACE FUNCTION advisory.claim(namespace text, id uuid, every interval,
                                          window_start timestamptz DEFAULT NULL,
                                          time_zone text DEFAULT NULL)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request(
        'claim', namespace, coalesce(id::pg_catalog.text, (advisory._check_list(namespace,
            ARRAY[id::pg_catalog.text], 'id'))[1]), every, NULL, window_start,
            time_zone)).result $$;
COMMENT ON FUNCTION advisory.claim(text, uuid, interval, timestamptz, text) IS
    'claim a window of time once: the window, or NULL if it is claimed';

CREATE OR REPLACE FUNCTION advisory.claim_apart(namespace text, name text, apart interval)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('claim_apart', namespace, name, apart)).result $$;
COMMENT ON FUNCTION advisory.claim_apart(text, text, interval) IS
    'claim now: the time, or NULL if the last claim is younger than apart';

CREATE OR REPLACE FUNCTION advisory.claim_apart(namespace text, id bigint, apart interval)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('claim_apart', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            apart)).result $$;
COMMENT ON FUNCTION advisory.claim_apart(text, bigint, interval) IS
    'claim now: the time, or NULL if the last claim is younger than apart';

CREATE OR REPLACE FUNCTION advisory.claim_apart(namespace text, id uuid, apart interval)
    RETURNS timestamptz
    LANGUAGE sql COST 1000 AS $$
    SELECT (advisory._request('claim_apart', namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            apart)).result $$;
COMMENT ON FUNCTION advisory.claim_apart(text, uuid, interval) IS
    'claim now: the time, or NULL if the last claim is younger than apart';

COMMENT ON FUNCTION advisory.unclaim(text, text, timestamptz) IS
    'take a claim back, so that its window can be claimed again';

CREATE OR REPLACE FUNCTION advisory.unclaim(namespace text, id bigint, window_start timestamptz)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.unclaim(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            window_start) $$;
COMMENT ON FUNCTION advisory.unclaim(text, bigint, timestamptz) IS
    'take a claim back, so that its window can be claimed again';

CREATE OR REPLACE FUNCTION advisory.unclaim(namespace text, id uuid, window_start timestamptz)
    RETURNS boolean
    LANGUAGE sql COST 1000 AS $$
    SELECT advisory.unclaim(namespace, coalesce(id::pg_catalog.text,
            (advisory._check_list(namespace, ARRAY[id::pg_catalog.text], 'id'))[1]),
            window_start) $$;
COMMENT ON FUNCTION advisory.unclaim(text, uuid, timestamptz) IS
    'take a claim back, so that its window can be claimed again';

-- What the functions and the requests need besides.

DO $do$
DECLARE
    f record;
BEGIN
    -- The path of the functions in PL/pgSQL.
    FOR f IN
        SELECT oid::regprocedure AS name
        FROM pg_proc
        WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f'
            AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')
            AND (proname, pronargs) NOT IN (('key', 2), ('_slot_key', 3), ('_unlock_quietly', 2))
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, advisory, pg_temp', f.name);
    END LOOP;

    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'advisory._request'::regclass) THEN
        CREATE TRIGGER asked_by INSTEAD OF INSERT ON advisory._request
            FOR EACH ROW EXECUTE FUNCTION advisory._sign_request();
        CREATE TRIGGER serve INSTEAD OF INSERT ON advisory._request
            FOR EACH ROW EXECUTE FUNCTION advisory._serve_request();
    END IF;
END $do$;

-- Privileges.

-- Default privileges do not apply: with INSERT or TRIGGER a role could claim in the name of others.
-- What the owner has granted since is kept.
DO $$
DECLARE
    changed record;
BEGIN
    FOR changed IN
        WITH object (name, oid, owner, privileges, namespace) AS (
            SELECT 'TABLE ' || oid::regclass, oid, relowner, relacl, relnamespace FROM pg_class
            UNION ALL
            SELECT 'ROUTINE ' || oid::regprocedure, oid, proowner, proacl, pronamespace FROM pg_proc
            UNION ALL
            SELECT 'SCHEMA advisory', oid, nspowner, nspacl, oid FROM pg_namespace),
        new AS (
            -- 00-begin.sql has set what was there before.
            SELECT *
            FROM object
            WHERE namespace = 'advisory'::regnamespace
                AND (oid::text = ANY (string_to_array(
                    current_setting('advisory_portable.known', true), ' '))) IS NOT TRUE)
        SELECT c.command
        FROM new,
             LATERAL (
                 -- What default privileges have granted.
                 SELECT format('REVOKE ALL ON %s FROM %s', name,
                               CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
                 FROM aclexplode(privileges)
                 WHERE grantee <> owner AND (grantee <> 0 OR name NOT LIKE 'ROUTINE%')
                 UNION ALL
                 SELECT format('REVOKE ALL ON %s FROM PUBLIC', name)
                 WHERE name ~ 'ROUTINE .*\m(unclaim|break_lease|tokens_above)\('
                 UNION ALL
                 SELECT format('GRANT INSERT, SELECT ON %s TO PUBLIC', name)
                 WHERE name ~ 'TABLE .*\m_request$') AS c (command)
    LOOP
        EXECUTE changed.command;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA advisory TO PUBLIC;

GRANT SELECT ON
    key_labels, claims, known_keys, locks, semaphores, waits, blockers, activity, pressure, leases,
    _shown_leases, _keys, _own, _uses, _prepared, _tree, _sets, _blockers TO PUBLIC;

COMMIT;

-- An error, if the file has failed in a database that had no older one.
SELECT advisory.edition(), advisory.version();
