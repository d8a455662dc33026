
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
