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
