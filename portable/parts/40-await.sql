-- Waiting without a snapshot.

-- Sleeps between two looks, and returns the next pause, NULL if it is too late.  The first is null.
CREATE OR REPLACE FUNCTION advisory._pause(seconds double precision, deadline timestamptz,
    instead text) RETURNS double precision LANGUAGE plpgsql AS $$ BEGIN
    IF seconds IS NULL THEN
        PERFORM _require(pg_current_xact_id_if_assigned() IS NULL, '25001',
            'advisory.await_*() cannot wait without a snapshot here',
            'The transaction has written.',
            format('Call it outside of a transaction block, or use %s.', instead));
        RETURN 0.001;
    END IF;
    PERFORM pg_sleep(CASE WHEN NOT isfinite(deadline) THEN seconds
                          ELSE least(seconds, extract(epoch FROM deadline - clock_timestamp()))
                     END);
    RETURN CASE WHEN clock_timestamp() < deadline THEN least(seconds * 1.5, 0.1) END; END $$;

-- A lock, or, if is_shared is null, a slot of the semaphore whose slot 0 has that key.
CREATE OR REPLACE PROCEDURE advisory._await(is_shared boolean, namespace text, name text,
    key bigint, slots integer, timeout interval, INOUT slot integer) LANGUAGE plpgsql AS $$
DECLARE pause double precision;
    deadline timestamp with time zone := advisory._deadline(advisory._milliseconds(timeout)); BEGIN
    PERFORM advisory._check(key::pg_catalog.text, 'key'),
            advisory._check(coalesce(namespace, name, 'no label'), 'label');
    PERFORM advisory._check_slot(slots, 'slots') WHERE is_shared IS NULL;
    pause := advisory._pause(NULL, deadline, 'advisory.lock() or advisory.acquire()');
    LOOP
        COMMIT;    -- Each ends the snapshot.
        slot := CASE WHEN is_shared IS NULL
                     THEN (advisory._acquire(false, false, namespace, name, slots, 1, '0'))[1]
                     WHEN advisory._lock(false, is_shared, false, namespace, name, key, '0')
                     THEN 0 END;
        EXIT WHEN slot IS NOT NULL;
        PERFORM advisory._raise_not_available(namespace, name, key, slots, 1, timeout)
        WHERE pause IS NULL;
        pause := advisory._pause(pause, deadline, NULL);
    END LOOP; END $$;
