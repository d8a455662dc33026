-- What the load of the soak calls. Each call leaves a row in soak.turns.
CREATE EXTENSION advisory_ext;
CREATE SCHEMA soak;

-- How long a call waited, and, where it waited for others, how long the lock, slot or lease that it
-- got had been free, in seconds.
CREATE UNLOGGED TABLE soak.turns (kind text, at timestamptz, waited float8, handed float8);

-- Since when a lock, slot or lease is free. (slot is 0 where there are none.)
CREATE UNLOGGED TABLE soak.places (
    kind text, n bigint, slot bigint, freed timestamptz, PRIMARY KEY (kind, n, slot))
    WITH (fillfactor = 20);

CREATE FUNCTION soak.seconds_since(t timestamptz) RETURNS float8 LANGUAGE sql
    AS 'SELECT extract(epoch FROM clock_timestamp() - t)::float8';

-- Takes what others hold. There is always somebody who waits, so the time for which it was free is
-- that of the wake-up. A session waits for about 10 s; for 40 s only if it was forgotten.
CREATE FUNCTION soak.take(k text, which bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    got bigint := 0;
BEGIN
    CASE k
        WHEN 'locks' THEN PERFORM advisory.lock('soak', which, '40 s');
        WHEN 'slots' THEN got := advisory.acquire('soak', which, 10, '40 s');
        WHEN 'plain' THEN PERFORM pg_advisory_lock(which);
        WHEN 'leases' THEN
            SELECT token INTO got FROM advisory.lease('soak', which, '1 min', timeout => '40 s');
    END CASE;
    INSERT INTO soak.turns
        SELECT k, clock_timestamp(), soak.seconds_since(statement_timestamp()),
               soak.seconds_since(freed)
        FROM soak.places AS p
        WHERE p.kind = k AND k <> 'plain' AND p.n = which
            AND p.slot = CASE k WHEN 'slots' THEN got ELSE 0 END;
    RETURN got;
END $$;

CREATE PROCEDURE soak.give(k text, which bigint, got bigint) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO soak.places
        VALUES (k, which, CASE k WHEN 'slots' THEN got ELSE 0 END, clock_timestamp())
        ON CONFLICT (kind, n, slot) DO UPDATE SET freed = excluded.freed;
    -- Whoever takes it next reads that.
    COMMIT;
    IF NOT (CASE k
        WHEN 'locks' THEN advisory.unlock('soak', which)
        WHEN 'slots' THEN advisory.release('soak', which, got::integer)
        WHEN 'plain' THEN pg_advisory_unlock(which)
        WHEN 'leases' THEN advisory.end_lease('soak', which, got)
    END) THEN
        RAISE 'session does not hold % %', k, which;
    END IF;
END $$;

-- 10,000 leases, which are renewed for another 30 s each time.
CREATE TABLE soak.kept AS
    SELECT n, token
    FROM generate_series(0, 9999) AS n, advisory.try_lease('soak', 'kept ' || n, '10 min');
ALTER TABLE soak.kept ADD PRIMARY KEY (n);

CREATE FUNCTION soak.renew(which bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF advisory.renew_lease('soak', 'kept ' || which,
                            (SELECT token FROM soak.kept WHERE n = which), '30 s') IS NULL THEN
        RAISE 'lease % is lost', which;
    END IF;
    INSERT INTO soak.turns
        VALUES ('renewals', clock_timestamp(), soak.seconds_since(statement_timestamp()));
END $$;

-- So many locks, one after the other, and a semaphore, of 1,000,000 names of different lengths.
CREATE FUNCTION soak.use_names(first bigint, many bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR i IN first .. first + many - 1 LOOP
        name := 'name ' || i % 1000000 || repeat('-', i::integer % 120);
        PERFORM advisory.lock('soak', name);
        PERFORM advisory.unlock('soak', name);
    END LOOP;
    PERFORM advisory.release('soak', name, advisory.acquire('soak', name, 3));
    INSERT INTO soak.turns
        VALUES ('names', clock_timestamp(), soak.seconds_since(statement_timestamp()));
END $$;
