
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
