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
