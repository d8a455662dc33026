-- What the workers of make stress work on. Resources are locks and slots, which have numbers.
-- SQLSTATE SXVIO is a violation of what the extension promises.
CREATE SCHEMA stress;
GRANT USAGE ON SCHEMA stress TO PUBLIC;
CREATE ROLE stress_a;
CREATE ROLE stress_b;

CREATE TABLE stress.counter (resource int PRIMARY KEY, value bigint NOT NULL)
    WITH (fillfactor = 20);
CREATE TABLE stress.slot (key bigint, slot int, resource int);
CREATE TABLE stress.claimed (w timestamptz PRIMARY KEY);
CREATE TABLE stress.fenced (id int PRIMARY KEY, token bigint NOT NULL, writes bigint NOT NULL)
    WITH (fillfactor = 20);
CREATE TRIGGER fence BEFORE INSERT OR UPDATE ON stress.fenced FOR EACH ROW
    EXECUTE FUNCTION advisory.fenced('token');

-- A token that falls all the same.
CREATE FUNCTION stress.falls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.token < OLD.token THEN
        RAISE EXCEPTION 'the fence let the token of row % fall from % to %',
            NEW.id, OLD.token, NEW.token USING ERRCODE = 'SXVIO';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER falls AFTER UPDATE ON stress.fenced FOR EACH ROW EXECUTE FUNCTION stress.falls();

-- To be called by whoever is inside alone: nobody else calls it meanwhile. A sequence is no part of
-- any transaction, so it shows at once what others do.
CREATE FUNCTION stress.is_alone(sequence regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first bigint := nextval(sequence);
BEGIN
    IF random() < 0.02 THEN
        PERFORM pg_sleep(0.0005);
    END IF;
    IF nextval(sequence) <> first + 1 THEN
        RAISE EXCEPTION 'two sessions are inside % at once', sequence USING ERRCODE = 'SXVIO';
    END IF;
END
$$;

-- The same for who is inside with others who all only look.
CREATE FUNCTION stress.nobody_is_alone(sequence regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first bigint := pg_sequence_last_value(sequence);
BEGIN
    IF random() < 0.02 THEN
        PERFORM pg_sleep(0.0005);
    END IF;
    IF pg_sequence_last_value(sequence) <> first THEN
        RAISE EXCEPTION 'a session in exclusive mode is inside % beside one in shared mode',
            sequence USING ERRCODE = 'SXVIO';
    END IF;
END
$$;

-- Takes and releases a lock so many times, and returns how often it was free.
CREATE FUNCTION stress.cycle(
    way text, key bigint, sequence regclass, times int, timeout interval)
    RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    taken int := 0;
BEGIN
    FOR i IN 1 .. times LOOP
        IF way = 'exclusive' THEN
            CONTINUE WHEN NOT advisory.try_lock_key(key, timeout);
            PERFORM stress.is_alone(sequence);
            PERFORM advisory.unlock_key(key);
        ELSIF way = 'shared' THEN
            CONTINUE WHEN NOT advisory.try_lock_shared_key(key, timeout);
            PERFORM stress.nobody_is_alone(sequence);
            PERFORM advisory.unlock_shared_key(key);
        ELSE
            BEGIN
                CONTINUE WHEN NOT advisory.try_xact_lock_key(key, timeout);
                PERFORM stress.is_alone(sequence);
                RAISE EXCEPTION USING ERRCODE = 'SXEND';
            EXCEPTION WHEN SQLSTATE 'SXEND' THEN
                NULL;
            END;
        END IF;
        taken := taken + 1;
    END LOOP;
    RETURN taken;
END
$$;

-- The same for a slot of a semaphore, or for a set of them.
CREATE FUNCTION stress.cycle_slots(
    way text, namespace text, name text, key bigint, k int, wanted int, times int, timeout interval)
    RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    sequences regclass[] := array_agg('stress.alone_' || resource ORDER BY slot)
        FROM stress.slot s WHERE s.key = cycle_slots.key;
    taken int := 0;
    own int[];
    slot int;
BEGIN
    FOR i IN 1 .. times LOOP
        BEGIN
            own := CASE way
                WHEN 'session' THEN ARRAY[advisory.try_acquire(namespace, name, k, timeout)]
                WHEN 'savepoint' THEN ARRAY[advisory.try_xact_acquire(namespace, name, k, timeout)]
                WHEN 'session, sets'
                THEN advisory.try_acquire_many(namespace, name, k, wanted, timeout)
                ELSE advisory.try_xact_acquire_many(namespace, name, k, wanted, timeout) END;
            CONTINUE WHEN own[1] IS NULL;
            FOREACH slot IN ARRAY own LOOP
                IF slot > k OR way LIKE '%sets' AND cardinality(own) <> wanted THEN
                    RAISE EXCEPTION 'slots % of %, wanted %', own, k, wanted
                        USING ERRCODE = 'SXVIO';
                END IF;
                PERFORM stress.is_alone(sequences[slot]);
            END LOOP;
            IF way LIKE 'session%' THEN
                PERFORM advisory.release_many(namespace, name, own);
            ELSE
                RAISE EXCEPTION USING ERRCODE = 'SXEND';
            END IF;
        EXCEPTION WHEN SQLSTATE 'SXEND' THEN
            NULL;
        END;
        taken := taken + 1;
    END LOOP;
    RETURN taken;
END
$$;

-- Cancels those who wait for this lock, or in the queue of this semaphore, when it is released, or
-- just before: a wait is then ended while it is granted.
CREATE FUNCTION stress.cancel_waiters(semaphore_or_lock bigint, releases text)
    RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    pids int[] := array_agg(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = semaphore_or_lock
        AND pid <> pg_backend_pid() AND (NOT granted OR objsubid = 16383);
    is_first boolean := random() < 0.3;
    is_released boolean;
BEGIN
    IF is_first THEN
        PERFORM pg_cancel_backend(pid) FROM unnest(pids) AS pid;
    END IF;
    EXECUTE 'SELECT ' || releases INTO is_released;
    IF NOT is_first THEN
        PERFORM pg_cancel_backend(pid) FROM unnest(pids) AS pid;
    END IF;
    RETURN is_released;
END
$$;

-- Reads, waits and writes. It fails if somebody else has written meanwhile, also if that is not
-- committed yet.
CREATE FUNCTION stress.count_up(resource int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    seen bigint := value FROM stress.counter c WHERE c.resource = count_up.resource;
BEGIN
    PERFORM stress.is_alone('stress.alone_' || resource);
    UPDATE stress.counter c SET value = seen + 1
        WHERE c.resource = count_up.resource AND value = seen;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'somebody else has counted up resource % at the same time', resource
            USING ERRCODE = 'SXVIO';
    END IF;
END
$$;

-- The same under one of this session's slots of a semaphore of k slots.
CREATE FUNCTION stress.count_up_in_slot(semaphore bigint, k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own int := min(resource) FROM stress.slot s JOIN pg_locks l ON l.objsubid = 16384 + s.slot
        WHERE s.key = semaphore AND s.slot <= k AND l.locktype = 'advisory'
            AND l.pid = pg_backend_pid() AND l.granted AND l.mode = 'ExclusiveLock'
            AND (l.classid::bigint << 32 | l.objid::bigint) = semaphore;
BEGIN
    IF own IS NULL THEN
        RAISE EXCEPTION 'the command runs without one of % slots', k USING ERRCODE = 'SXVIO';
    END IF;
    PERFORM stress.count_up(own);
END
$$;
