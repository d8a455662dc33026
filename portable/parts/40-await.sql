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
