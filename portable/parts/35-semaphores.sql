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
