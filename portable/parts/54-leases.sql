-- Leases.

-- Only the owner's code writes this table, on behalf of every role.  queue is the key of the lock
-- of those who would take the lease; that of queue + 1 shows who has taken or ended it in this
-- transaction (exclusive), or relies on it (shared).  server is that of the last renewal.  Without
-- WAL functions the row stays, its end is -infinity, and the next token is one more.
CREATE TABLE IF NOT EXISTS advisory._leases (
    key bigint PRIMARY KEY,
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
    system bigint NOT NULL)
    WITH (fillfactor = 50);

-- An older file has made it without the last two, and with a role that had to be there when a dump
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
        ADD COLUMN IF NOT EXISTS system bigint;
    UPDATE advisory._leases
    SET role_name = pg_get_userbyid(role), system = advisory._system()
    WHERE system IS NULL;
    ALTER TABLE advisory._leases
        ALTER role_name SET NOT NULL,
        ALTER system SET NOT NULL;
END $$;

-- Until when: on another server its whole TTL again, unless it had been free for a minute by then.
CREATE OR REPLACE FUNCTION advisory._expiry(l advisory._leases, here bigint, began timestamptz)
    RETURNS timestamptz
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE WHEN l.server = here OR l.expires_at + l.lock_delay < began - interval '1 minute'
                THEN l.expires_at ELSE began + l.ttl END $$;

-- May the caller use advisory locks?  Not on every service.
CREATE OR REPLACE FUNCTION advisory._can_lock()
    RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT has_function_privilege('pg_try_advisory_xact_lock(bigint)', 'EXECUTE')
           AND has_function_privilege('pg_advisory_xact_lock(bigint)', 'EXECUTE') $$;

-- An even key: the next one belongs to the same lease.
CREATE OR REPLACE FUNCTION advisory._lease_queue(namespace text, name text)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT _hash(_bytes(namespace, name) || decode('006c65617365', 'hex')) & -2 $$;

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

-- Greater than the last one.
CREATE OR REPLACE FUNCTION advisory._lease_token(last bigint)
    RETURNS bigint
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(last + 1, _make_token(pg_logical_emit_message(false, 'advisory', '')));
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    RETURN last + 1;
END $$;

-- For the views.
CREATE OR REPLACE FUNCTION advisory._mark_lease(queue bigint, is_owner boolean)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF _can_lock() THEN
        PERFORM _try_once(NOT is_owner, true, queue + 1);
    END IF;
END $$;

-- Returns until when it was.  Any token, and any role, if they are null.
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
        AND l.token = coalesce(_end_lease.token, l.token) AND l.expires_at > '-infinity'
        AND (asked_by IS NULL
             OR _has_role(pg_get_userbyid(asked_by), l.role, l.role_name, l.system, 'USAGE'))
    FOR UPDATE;
    -- Without WAL functions the row has to keep the token, so that the next one is greater.
    IF _lease_token(0) > 1 THEN
        DELETE FROM _leases AS l WHERE l.key = old.key;
    ELSE
        UPDATE _leases AS l SET expires_at = '-infinity', lock_delay = '0' WHERE l.key = old.key;
    END IF;
    IF FOUND THEN
        PERFORM _mark_lease(old.queue, true);
    END IF;
    RETURN old.expires_at;
END $$;

-- Returns until when it is now, or NULL if it is lost.
CREATE OR REPLACE FUNCTION advisory._renew_lease(r advisory._request)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    renewed timestamptz;
BEGIN
    -- First the lock, then the clock.
    PERFORM
    FROM _leases AS l
    WHERE l.key = k AND l.token = r.token AND l.expires_at > '-infinity'
        AND _has_role(pg_get_userbyid(r.asked_by), l.role, l.role_name, l.system, 'USAGE')
    FOR NO KEY UPDATE;
    IF FOUND THEN
        UPDATE _leases AS l
        SET ttl = coalesce(r.length, l.ttl), renewed_at = n.now, renewals = l.renewals + 1,
            expires_at = n.now + coalesce(r.length, l.ttl), server = h.server,
            role = m.role, role_name = pg_get_userbyid(m.role), system = _system()
        FROM clock_timestamp() AS n (now), _here() AS h,
             (SELECT coalesce(_role_here(o.role, o.role_name, o.system), r.asked_by)
              FROM _leases AS o
              WHERE o.key = k) AS m (role)
        WHERE l.key = k
        RETURNING l.expires_at INTO renewed;
    END IF;
    RETURN renewed;
END $$;

-- Renew, check or end it.
CREATE OR REPLACE FUNCTION advisory._use_lease(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
BEGIN
    IF (r.what IN ('renew', 'check', 'end')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'no request';
    END IF;
    PERFORM _check(r.namespace, 'namespace of a lease', 1024);
    PERFORM _check(r.name, 'name of a lease', 1024);
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
        SELECT l.expires_at INTO r.result
        FROM _leases AS l
        WHERE l.key = k AND l.token = r.token AND l.expires_at > '-infinity'
            AND _has_role(pg_get_userbyid(r.asked_by), l.role, l.role_name, l.system, 'USAGE')
        FOR KEY SHARE;
        IF FOUND THEN
            PERFORM _mark_lease(_lease_queue(r.namespace, r.name), false);
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
    RETURN r;
END $$;

-- The sentences that say why a lease cannot be taken before free_at, as far as that role may know.
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
             THEN format('"%s" %s it', _printable(left(l.owner, 256)),
                         CASE WHEN is_held THEN 'holds' ELSE 'held' END)
             WHEN is_held THEN 'It is held'
             ELSE 'It was held' END,
        ' until ', l.expires_at, '.',
        CASE WHEN l.lock_delay > '0'
             THEN format(' Nobody else can take it before %s.', free_at) END);
END $$;

-- Deletes some leases that nobody has wanted for a week.
CREATE OR REPLACE FUNCTION advisory._sweep_leases(here bigint, began timestamptz)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM _leases AS l
    WHERE l.key IN (
        SELECT o.key
        FROM _leases AS o
        WHERE o.expires_at < clock_timestamp() - interval '7 days'
            AND o.expires_at > '-infinity' AND o.token >> 50 > 0
            AND _expiry(o, here, began) + o.lock_delay < clock_timestamp() - interval '7 days'
        LIMIT 10
        FOR UPDATE SKIP LOCKED);
END $$;

-- Take it.  That does not wait, and does not overtake those who do.
CREATE OR REPLACE FUNCTION advisory._take_lease(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    queue bigint := _lease_queue(r.namespace, r.name);
    here record;
    old _leases;
BEGIN
    PERFORM _check(r.namespace, 'namespace of a lease', 1024);
    PERFORM _check(r.name, 'name of a lease', 1024);
    r.length := _lease_length(r.length, 'ttl', false);
    r.owner := coalesce(r.owner, _who(r.asked_by));
    r.lock_delay := _lease_length(r.lock_delay, 'lock_delay', true);
    PERFORM _check(r.owner, 'owner');
    PERFORM _check(r.owner, 'owner of a lease', 256);

    here := _here();
    SELECT l.* INTO old FROM _leases AS l WHERE l.key = k;
    old.expires_at := _expiry(old, here.server, here.began);
    r.free_at := coalesce(old.expires_at + old.lock_delay, '-infinity');
    IF r.free_at > clock_timestamp() THEN
        r.reason := _why_held(old, r.free_at, r.asked_by);
        RETURN r;
    END IF;

    r.reason := 'Another session takes it or ends it, relies on it, or waits for it.';
    BEGIN
        IF _can_lock() THEN    -- To name the function in this condition would need the privilege.
            PERFORM _require(pg_try_advisory_xact_lock(queue), '55P03', 'somebody waits');
        END IF;
        SELECT l.* INTO old FROM _leases AS l WHERE l.key = k FOR UPDATE SKIP LOCKED;
        IF old.key IS NULL AND EXISTS (SELECT FROM _leases AS l WHERE l.key = k)
           OR old.key IS NOT NULL
              AND _expiry(old, here.server, here.began) + old.lock_delay > clock_timestamp() THEN
            RAISE EXCEPTION USING ERRCODE = '55P03',
                MESSAGE = 'somebody has renewed it, or has locked it';
        END IF;
        DELETE FROM _leases AS l WHERE l.key = old.key;
        INSERT INTO _leases AS l
            SELECT k, queue, _lease_token(coalesce(old.token, 0)), r.namespace, r.name, r.owner,
                   r.asked_by, here.server, r.length, r.lock_delay, now, now, now + r.length, 0,
                   pg_get_userbyid(r.asked_by), _system()
            FROM clock_timestamp() AS n (now)
            ON CONFLICT ON CONSTRAINT _leases_pkey DO NOTHING
            RETURNING l.token, l.expires_at INTO r.token, r.result;
        IF r.token IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'somebody has taken it';
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        RETURN r;    -- This releases the lock of the queue.
    END;
    PERFORM _mark_lease(queue, true);
    -- First in a transaction only, since that keeps rows locked.
    IF random() < 0.1 AND now() = statement_timestamp()
       AND current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM _sweep_leases(here.server, here.began);
    END IF;
    RETURN r;
END $$;

-- Take it, or wait for it.  Those who wait queue up on a lock, and only the first of them looks
-- whether the lease is free.
CREATE OR REPLACE FUNCTION advisory._lease(must boolean, namespace text, name text, ttl interval,
                                           timeout interval, owner text, lock_delay interval,
                                           OUT token bigint, OUT expires_at timestamptz)
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    most integer := _milliseconds(timeout);
    deadline timestamptz := _deadline(most);
    pause double precision := 0.002;
    queue bigint;
    answer _request;
BEGIN
    answer := _request('take', namespace, name, ttl, NULL, NULL, NULL, owner, lock_delay);
    IF answer.token IS NULL AND most IS DISTINCT FROM 0 THEN
        queue := _lease_queue(namespace, name);
        PERFORM _check_lease_wait(namespace, name, queue);
        BEGIN
            IF _can_lock() AND NOT _take(false, true, queue, most) THEN
                RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'too late';
            END IF;
            LOOP
                answer := _request(
                    'take', namespace, name, ttl, NULL, NULL, NULL, owner, lock_delay);
                EXIT WHEN answer.token IS NOT NULL;
                IF clock_timestamp() >= deadline THEN
                    RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'too late';
                END IF;
                -- Nothing wakes it, so that it has to look whether the lease was ended.
                PERFORM pg_sleep(greatest(0.001, least(pause, extract(epoch FROM least(
                    deadline, greatest(answer.free_at, clock_timestamp() + '1 ms'))
                    - clock_timestamp()))));
                pause := least(pause * 1.5, 0.05);
            END LOOP;
        EXCEPTION WHEN lock_not_available THEN
            answer.token := NULL;    -- This releases the lock of the queue.
        END;
    END IF;

    IF must AND answer.token IS NULL THEN
        PERFORM _raise_taken(answer, timeout);
    END IF;
    token := answer.token;
    expires_at := answer.result;
END $$;

-- The error if a call cannot wait for a lease.
CREATE OR REPLACE FUNCTION advisory._check_lease_wait(namespace text, name text, queue bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = '25001',
            MESSAGE = 'cannot wait for a lease in this isolation level',
            DETAIL = 'The snapshot of the transaction cannot see that the lease becomes free.',
            HINT = 'Use READ COMMITTED, or try_lease() with a timeout of 0.';
    ELSIF _is_held(queue + 1, true, false) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('this transaction has already taken or ended lease "%s"',
                             _display(namespace, name)),
            DETAIL = 'It would wait for itself.',
            HINT = '(advisory.lease(...)).* calls the function twice. '
                   'Use SELECT * FROM advisory.lease(...).';
    END IF;
END $$;

-- Error 55P03.
CREATE OR REPLACE FUNCTION advisory._raise_taken(answer advisory._request, timeout interval)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not obtain lease "%" %',
        _display(answer.namespace, answer.name), _limit(timeout)
        USING ERRCODE = 'lock_not_available', DETAIL = answer.reason,
            HINT = 'To see who holds it: SELECT * FROM advisory.leases.',
            SCHEMA = answer.namespace, CONSTRAINT = answer.name;
END $$;

CREATE OR REPLACE PROCEDURE advisory._await_lease(namespace text, name text, ttl interval,
                                                  timeout interval, owner text,
                                                  lock_delay interval, INOUT token bigint,
                                                  INOUT expires_at timestamptz)
    LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(advisory._milliseconds(timeout));
    pause double precision := advisory._pause(NULL, deadline, 'advisory.lease()');
    answer advisory._request;
BEGIN
    LOOP
        COMMIT;    -- Each ends the snapshot.
        answer := advisory._request(
            'take', namespace, name, ttl, NULL, NULL, NULL, owner, lock_delay);
        EXIT WHEN answer.token IS NOT NULL;
        IF pause IS NULL THEN
            PERFORM advisory._raise_taken(answer, timeout);
        END IF;
        pause := advisory._pause(pause, deadline, NULL);
    END LOOP;
    token := answer.token;
    expires_at := answer.result;
END $$;

CREATE OR REPLACE FUNCTION advisory.break_lease(namespace text, name text,
                                                token bigint DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
BEGIN
    PERFORM advisory.key(namespace, name);    -- Checks the name.
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
           -- No key tells a hidden name, unless pg_locks shows it.
           CASE WHEN may_see OR queue IN (SELECT key & -2 FROM _keys) THEN queue END AS queue,
           'lease ' || CASE WHEN may_see
                            THEN _printable(left(namespace, 256) || '/' || left(name, 256))
                            ELSE hidden END AS lock,
           -- What is printed with '?' could not be found.
           CASE WHEN is_mine AND _printable(namespace || name) = namespace || name
                THEN format('SELECT advisory.break_lease(%L, %L, %s);', namespace, name, token) END
               AS remedy,
           place
    FROM (SELECT _expiry(l, h.server, h.began) AS until, l.*, o.place
          FROM _here() AS h, _leases AS l
          JOIN (SELECT key, row_number() OVER (PARTITION BY role ORDER BY expires_at DESC) AS place
                FROM _leases) AS o USING (key)) AS l,
         LATERAL (SELECT '<insufficient privilege>', clock_timestamp(),
                         _has_role(current_user, role, role_name, system, 'USAGE'))
             AS c (hidden, now, is_mine),
         LATERAL (SELECT is_mine OR pg_has_role('pg_read_all_stats', 'USAGE')) AS m (may_see)
    WHERE expires_at > '-infinity';

CREATE OR REPLACE VIEW advisory.leases AS
    SELECT namespace, name, owner, token, state, ttl, acquired_at, renewed_at, expires_at,
           remaining, renewals
    FROM _shown_leases
    -- One role that takes very many hides nobody else's.
    WHERE place <= 10000 AND (SELECT _tell_of_standby(false))
    ORDER BY expires_at DESC;
COMMENT ON VIEW advisory.leases IS 'the leases of this database';
