-- Leases.

-- Only the owner's code writes this table, on behalf of every role.  A row is a lease, slot 0, or a
-- slot that outlives sessions; slots is how many its taker said there are, 0 for a lease.  queue is
-- the key of the lock of those who wait; _lease_lock() has that of the row.  server is that of the
-- last renewal.  Without WAL functions the row stays, and its end is -infinity: it keeps the token.
CREATE TABLE IF NOT EXISTS advisory._leases (
    key bigint,
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
    system bigint NOT NULL,
    slot integer NOT NULL DEFAULT 0,
    slots integer NOT NULL DEFAULT 0,
    max_hold interval,
    PRIMARY KEY (key, slot))
    WITH (fillfactor = 50);

-- An older file has made it without the last ones, and with a role that had to be there when a dump
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
        ADD COLUMN IF NOT EXISTS system bigint,
        ADD COLUMN IF NOT EXISTS slot integer NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS slots integer NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS max_hold interval;
    UPDATE advisory._leases
    SET role_name = pg_get_userbyid(role), system = advisory._system()
    WHERE system IS NULL;
    ALTER TABLE advisory._leases
        ALTER role_name SET NOT NULL,
        ALTER system SET NOT NULL;
    IF EXISTS (SELECT FROM pg_constraint
               WHERE conrelid = 'advisory._leases'::regclass
                   AND contype = 'p' AND cardinality(conkey) = 1) THEN
        ALTER TABLE advisory._leases
            DROP CONSTRAINT _leases_pkey,
            ADD CONSTRAINT _leases_pkey PRIMARY KEY (key, slot);
    END IF;
END $$;

-- Until when: on another server its whole TTL again, unless it had been free for a minute by then.
-- The planner inlines it: some leases have very many slots.
CREATE OR REPLACE FUNCTION advisory._expiry(l advisory._leases, here bigint, began timestamptz)
    RETURNS timestamptz
    LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN l.server OPERATOR(pg_catalog.=) here
                     OR (l.expires_at OPERATOR(pg_catalog.+) l.lock_delay)
                        OPERATOR(pg_catalog.<) (began OPERATOR(pg_catalog.-) interval '1 minute')
                THEN l.expires_at ELSE began OPERATOR(pg_catalog.+) l.ttl END $$;

-- May the caller use advisory locks?  Not on every service.
CREATE OR REPLACE FUNCTION advisory._can_lock()
    RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT has_function_privilege('pg_try_advisory_xact_lock(bigint)', 'EXECUTE')
           AND has_function_privilege('pg_advisory_lock(bigint)', 'EXECUTE') $$;

-- The key of the lock of those who wait.  The next 16,000 belong to the same lease or slots.  None
-- of these ends in 14 zero bits: that is the key of a semaphore.
CREATE OR REPLACE FUNCTION advisory._lease_queue(namespace text, name text, is_for_slots boolean)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT _hash(_bytes(namespace, name)
                 || CASE WHEN is_for_slots THEN decode('006c65617365736c6f74', 'hex')
                         ELSE decode('006c65617365', 'hex') END) & -16384 | 1 $$;

-- An older file had another key.
UPDATE advisory._leases
SET queue = advisory._lease_queue(namespace, name, slot > 0)
WHERE queue & 16383 <> 1;

-- The key of the lock of a lease (slot 0) or a slot: who has taken or ended it in this transaction
-- (exclusive), or relies on it (shared).
CREATE OR REPLACE FUNCTION advisory._lease_lock(queue bigint, slot integer)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT queue OPERATOR(pg_catalog.+) greatest(slot, 1) $$;

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

-- Greater than the last one.  Two slots never get the same one, also where that is not less than
-- what the WAL gives, or without WAL functions.
CREATE OR REPLACE FUNCTION advisory._lease_token(last_token bigint, slot integer)
    RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    next_token bigint := CASE slot WHEN 0 THEN last_token + 1
                                   ELSE (last_token & -16384) + 16384 + slot END;
    token bigint;
BEGIN
    token := _make_token(pg_logical_emit_message(false, 'advisory', ''));
    RETURN CASE WHEN token > last_token THEN token ELSE next_token END;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    RETURN next_token;
END $$;

-- Take the lock of a lease or a slot for the transaction.  Returns whether it was free, or, where
-- there are no advisory locks, true.
CREATE OR REPLACE FUNCTION advisory._mark_lease(lock bigint, is_owner boolean)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF _can_lock() THEN    -- To name the function in this condition would need the privilege.
        RETURN _try_once(NOT is_owner, true, lock);
    END IF;
    RETURN true;
END $$;

-- Does another session wait?  The first that does holds the lock of the queue.
CREATE OR REPLACE FUNCTION advisory._is_awaited(queue bigint)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF NOT _can_lock() THEN
        RETURN false;
    END IF;
    -- No cancel comes between the two.  Before 17 they say no to whoever is the first, too.
    RETURN NOT (pg_try_advisory_lock_shared(queue) AND pg_advisory_unlock_shared(queue))
           AND NOT _is_held(queue, true, false);
END $$;

-- Returns until when it was.  The lease if the token is null; of any role if that is.
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
        AND CASE WHEN _end_lease.token IS NULL THEN l.slot = 0
                 ELSE l.token = _end_lease.token END
        AND l.expires_at > '-infinity'
        AND (asked_by IS NULL
             OR _has_role(pg_get_userbyid(asked_by), l.role, l.role_name, l.system, 'USAGE'))
    FOR UPDATE;
    -- Without WAL functions the row has to keep the token, so that the next one is greater.
    IF _lease_token(0, 0) > 1 THEN
        DELETE FROM _leases AS l WHERE l.key = old.key AND l.slot = old.slot;
    ELSE
        UPDATE _leases AS l
        SET expires_at = '-infinity', lock_delay = '0'
        WHERE l.key = old.key AND l.slot = old.slot;
    END IF;
    IF FOUND THEN
        PERFORM _mark_lease(_lease_lock(old.queue, old.slot), true);
    END IF;
    RETURN old.expires_at;
END $$;

-- Returns until when it is now, -infinity if that would be beyond max_hold, or NULL if it is lost.
CREATE OR REPLACE FUNCTION advisory._renew_lease(r advisory._request)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    old _leases;
    now timestamptz;
    renewed timestamptz;
BEGIN
    -- First the lock, then the clock.
    SELECT l.* INTO old
    FROM _leases AS l
    WHERE l.key = advisory.key(r.namespace, r.name) AND l.token = r.token
        AND l.expires_at > '-infinity'
        AND _has_role(pg_get_userbyid(r.asked_by), l.role, l.role_name, l.system, 'USAGE')
    FOR NO KEY UPDATE;
    now := clock_timestamp();
    IF old.acquired_at + old.max_hold <= now THEN
        RETURN '-infinity';
    END IF;
    -- A restart gives no more again than this.
    r.length := least(
        coalesce(r.length, old.ttl),
        _microseconds(old.acquired_at + old.max_hold - now)::bigint * interval '1 us');
    UPDATE _leases AS l
    SET ttl = r.length, renewed_at = now, renewals = l.renewals + 1, expires_at = now + r.length,
        server = h.server, role = m.role, role_name = pg_get_userbyid(m.role), system = _system()
    FROM _here() AS h,
         (SELECT coalesce(_role_here(old.role, old.role_name, old.system), r.asked_by)) AS m (role)
    WHERE l.key = old.key AND l.slot = old.slot
    RETURNING l.expires_at INTO renewed;
    RETURN renewed;
END $$;

-- Renew, check or end it.
CREATE OR REPLACE FUNCTION advisory._use_lease(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    lock bigint;
BEGIN
    IF (r.what IN ('renew', 'check', 'end')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'no request';
    END IF;
    PERFORM _check_kept(r.namespace, r.name, 'lease');
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
        SELECT l.expires_at, _lease_lock(l.queue, l.slot) INTO r.result, lock
        FROM _leases AS l
        WHERE l.key = k AND l.token = r.token AND l.expires_at > '-infinity'
            AND _has_role(pg_get_userbyid(r.asked_by), l.role, l.role_name, l.system, 'USAGE')
        FOR KEY SHARE;
        IF FOUND THEN
            PERFORM _mark_lease(lock, false);
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
    r.result := nullif(r.result, '-infinity');
    RETURN r;
END $$;

-- The sentences that say why a lease, or a slot, cannot be taken before free_at, as far as that
-- role may know.
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
             THEN format('"%s" %s %s', _printable(left(l.owner, 256)),
                         CASE WHEN is_held THEN 'holds' ELSE 'held' END,
                         coalesce('slot ' || nullif(l.slot, 0), 'it'))
             ELSE format('%s %s held', coalesce('Slot ' || nullif(l.slot, 0), 'It'),
                         CASE WHEN is_held THEN 'is' ELSE 'was' END) END,
        ' until ', l.expires_at, '.',
        CASE WHEN l.lock_delay > '0'
             THEN format(' Nobody else can take it before %s.', free_at) END);
END $$;

-- Why a lease, or a slot, cannot be taken.  So many of them are held; those that become free first
-- are named.
CREATE OR REPLACE FUNCTION advisory._why_taken(r advisory._request, held integer, server bigint,
                                               began timestamptz)
    RETURNS text
    LANGUAGE plpgsql AS $$
DECLARE
    l _leases;
    lines text[];
BEGIN
    IF r.slots > 0 THEN
        lines := ARRAY[format('%s of %s taken%s.', held, r.slots,
                              ', the first until ' || r.free_at)];
    END IF;
    IF held < greatest(r.slots, 1) THEN
        lines := lines || format(
            'Another session takes %1$s or ends %1$s, relies on %1$s, or waits for %1$s.',
            CASE WHEN r.slots > 0 THEN 'one' ELSE 'it' END);
    END IF;
    FOR l IN
        SELECT o.*
        FROM _leases AS o
        WHERE o.key = advisory.key(r.namespace, r.name)
            AND o.slot BETWEEN least(r.slots, 1) AND r.slots
            AND _expiry(o, $3, $4) + o.lock_delay > clock_timestamp()
        ORDER BY _expiry(o, $3, $4), o.slot
        LIMIT 3
    LOOP
        l.expires_at := _expiry(l, $3, $4);
        lines := lines || _why_held(l, l.expires_at + l.lock_delay, r.asked_by);
    END LOOP;
    RETURN array_to_string(lines || (nullif(greatest(held, 3), 3) - 3 || ' more.'), E'\n');
END $$;

-- Deletes some leases that nobody has wanted for a week.
CREATE OR REPLACE FUNCTION advisory._sweep_leases(here bigint, began timestamptz)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM _leases AS l
    WHERE (l.key, l.slot) IN (
        SELECT o.key, o.slot
        FROM _leases AS o
        WHERE o.expires_at < clock_timestamp() - interval '7 days'
            AND o.expires_at > '-infinity' AND o.token >> 50 > 0
            AND _expiry(o, here, began) + o.lock_delay < clock_timestamp() - interval '7 days'
        LIMIT 10
        FOR UPDATE SKIP LOCKED);
END $$;

-- The request to take a lease or a slot, with what it has left out, or the error of what is wrong.
CREATE OR REPLACE FUNCTION advisory._checked_take(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _check_kept(r.namespace, r.name, 'lease');
    r.token := NULL;
    IF r.what = 'take' THEN
        r.slots := 0;
    ELSE
        PERFORM _check_slot(r.slots, 'slots');
    END IF;
    r.length := _lease_length(r.length, 'ttl', false);
    r.owner := coalesce(r.owner, _who(r.asked_by));
    r.lock_delay := _lease_length(r.lock_delay, 'lock_delay', true);
    PERFORM _check(r.owner, 'owner');
    PERFORM _check(r.owner, 'owner of a lease', 256);
    IF r.max_hold IS NOT NULL THEN
        r.max_hold := _lease_length(r.max_hold, 'max_hold', false);
        r.length := least(r.length, r.max_hold);
    END IF;
    RETURN r;
END $$;

-- Write the row of the request's slot, whose lock this transaction has.  Its token is greater than
-- that one, or null if somebody has renewed the row meanwhile, or relies on it.
CREATE OR REPLACE FUNCTION advisory._write_lease(r advisory._request, queue bigint,
                                                 last_token bigint, server bigint,
                                                 began timestamptz)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    old _leases;
BEGIN
    SELECT l.* INTO old
    FROM _leases AS l
    WHERE l.key = k AND l.slot = r.slot
    FOR UPDATE SKIP LOCKED;
    IF old.key IS NULL AND EXISTS (SELECT FROM _leases AS l WHERE l.key = k AND l.slot = r.slot)
       OR _expiry(old, server, began) + old.lock_delay > clock_timestamp() THEN
        RETURN r;
    END IF;
    DELETE FROM _leases AS l WHERE l.key = k AND l.slot = old.slot;
    INSERT INTO _leases AS l
        SELECT k, queue, _lease_token(greatest(last_token, old.token, 0), r.slot), r.namespace,
               r.name, r.owner, r.asked_by, server, r.length, r.lock_delay, now, now,
               now + r.length, 0, pg_get_userbyid(r.asked_by), _system(), r.slot, r.slots,
               r.max_hold
        FROM clock_timestamp() AS n (now)
        ON CONFLICT ON CONSTRAINT _leases_pkey DO NOTHING
        RETURNING l.token, l.expires_at INTO r.token, r.result;
    RETURN r;
END $$;

-- Take the lease, or the lowest slot that is free.  That does not wait, and does not overtake those
-- who do.
CREATE OR REPLACE FUNCTION advisory._take_lease(r advisory._request)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    k bigint := advisory.key(r.namespace, r.name);
    here record;
    queue bigint;
    free integer[];
    held integer;
    last_token bigint;
BEGIN
    r := _checked_take(r);
    queue := _lease_queue(r.namespace, r.name, r.slots > 0);
    here := _here();
    -- (SELECT r.slots): one plan for all numbers.
    WITH given AS MATERIALIZED (
        SELECT l.slot, l.token, _expiry(l, here.server, here.began) + l.lock_delay AS free_at
        FROM _leases AS l
        WHERE l.key = k
            AND l.slot BETWEEN least(r.slots, 1) AND CASE WHEN r.slots > 0 THEN 16000 ELSE 0 END),
    held AS MATERIALIZED (
        SELECT slot, free_at FROM given WHERE slot <= r.slots AND free_at > clock_timestamp())
    SELECT ARRAY(SELECT s
                 FROM generate_series(least(r.slots, 1), (SELECT r.slots)) AS s
                 WHERE s NOT IN (SELECT h.slot FROM held AS h)
                 ORDER BY s),
           (SELECT max(token) FROM given),
           (SELECT min(h.free_at) FROM held AS h)
    INTO free, last_token, r.free_at;
    held := greatest(r.slots, 1) - cardinality(free);

    IF free <> '{}' AND _is_awaited(queue) THEN
        free := '{}';
    END IF;
    WHILE free <> '{}' LOOP
        BEGIN
            r.slot := (SELECT s
                       FROM unnest(free) AS s
                       WHERE _mark_lease(_lease_lock(queue, s), true)
                       LIMIT 1);
            IF r.slot IS NOT NULL THEN
                r := _write_lease(r, queue, last_token, here.server, here.began);
            END IF;
            EXIT WHEN r.token IS NOT NULL;
            RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'somebody was faster';
        EXCEPTION WHEN lock_not_available THEN
            -- This has released the locks.
            free := ARRAY(SELECT s FROM unnest(free) AS s WHERE s > r.slot);
        END;
    END LOOP;
    IF r.token IS NULL THEN
        r.reason := _why_taken(r, held, here.server, here.began);
        RETURN r;
    END IF;

    -- First in a transaction only, since that keeps rows locked.
    IF random() < 0.1 AND now() = statement_timestamp()
       AND current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM _sweep_leases(here.server, here.began);
    END IF;
    RETURN r;
END $$;

-- Leave the queue, if this session is in front of it.
CREATE OR REPLACE FUNCTION advisory._leave_queue(queue bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF _is_held(queue, true, false) THEN
        PERFORM _unlock_quietly(false, queue);
    END IF;
END $$;

-- Wait for what was asked for.  Those who wait queue up on a lock, and only the first of them looks
-- whether the lease, or a slot, is free.  Others may take slots before this transaction ends, so
-- this is a lock of the session.
CREATE OR REPLACE FUNCTION advisory._wait_for_lease(asked advisory._request, most integer,
                                                    deadline timestamptz)
    RETURNS advisory._request
    LANGUAGE plpgsql AS $$
DECLARE
    queue bigint := _lease_queue(asked.namespace, asked.name, asked.slots > 0);
    pause interval := '2 ms';
    answer _request := asked;
BEGIN
    PERFORM _check_lease_wait(asked, queue);
    BEGIN
        IF _can_lock() AND NOT _take(false, false, queue, most) THEN
            RETURN answer;
        END IF;
        LOOP
            answer := _request(asked.what, asked.namespace, asked.name, asked.length, NULL, NULL,
                               NULL, asked.owner, asked.lock_delay, asked.slots, asked.max_hold);
            EXIT WHEN answer.token IS NOT NULL OR clock_timestamp() >= deadline;
            -- Nothing wakes it, so that it has to look whether the lease was ended.
            PERFORM pg_sleep(greatest(0.001, extract(epoch FROM least(
                clock_timestamp() + pause, deadline, answer.free_at) - clock_timestamp())));
            pause := least(pause * 1.5, '50 ms');
        END LOOP;
        PERFORM _leave_queue(queue);
        RETURN answer;
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        PERFORM _leave_queue(queue);
        RAISE;
    END;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    -- A second cancel, as that of a driver beside statement_timeout, can come while the first one
    -- is served.
    PERFORM _leave_queue(queue);
    RAISE;
END $$;

-- Take it, or wait for it.
CREATE OR REPLACE FUNCTION advisory._lease(must boolean, what text, namespace text, name text,
                                           slots integer, ttl interval, timeout interval,
                                           owner text, lock_delay interval, max_hold interval,
                                           OUT slot integer, OUT token bigint,
                                           OUT expires_at timestamptz, OUT remaining interval)
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    most integer := _milliseconds(timeout);
    deadline timestamptz := _deadline(most);
    answer _request;
BEGIN
    answer := _request(what, namespace, name, ttl, NULL, NULL, NULL, owner, lock_delay, slots,
                       max_hold);
    IF answer.token IS NULL AND most IS DISTINCT FROM 0 THEN
        answer := _wait_for_lease(answer, most, deadline);
    END IF;

    IF answer.token IS NOT NULL THEN
        slot := answer.slot;
        token := answer.token;
        expires_at := answer.result;
        remaining := _remaining(expires_at);
    ELSIF must THEN
        PERFORM _raise_taken(answer, timeout);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._remaining(until timestamptz)
    RETURNS interval
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(until - clock_timestamp(), '0');
END $$;

-- The error if a call cannot wait for a lease, or a slot.
CREATE OR REPLACE FUNCTION advisory._check_lease_wait(asked advisory._request, queue bigint)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = '25001',
            MESSAGE = 'cannot wait for a lease in this isolation level',
            DETAIL = 'The snapshot of the transaction cannot see that the lease becomes free.',
            HINT = 'Use READ COMMITTED, or try_lease() with a timeout of 0.';
    ELSIF (SELECT count(*)
           FROM _own
           WHERE key BETWEEN queue + 1 AND queue + greatest(asked.slots, 1)
               AND mode = 'ExclusiveLock') = greatest(asked.slots, 1) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('this transaction has already taken or ended %slease "%s"',
                             CASE WHEN asked.slots > 0 THEN 'all slots of ' END,
                             _display(asked.namespace, asked.name)),
            DETAIL = 'It would wait for itself.',
            HINT = format('(advisory.%1$s(...)).* calls the function for each column. '
                          'Use SELECT * FROM advisory.%1$s(...).',
                          CASE WHEN asked.slots > 0 THEN 'lease_slot' ELSE 'lease' END);
    END IF;
END $$;

-- Error 55P03.
CREATE OR REPLACE FUNCTION advisory._raise_taken(answer advisory._request, timeout interval)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not obtain %lease "%" %',
        CASE WHEN answer.slots > 0 THEN 'a slot of ' ELSE '' END,
        _display(answer.namespace, answer.name), _limit(timeout)
        USING ERRCODE = 'lock_not_available', DETAIL = answer.reason,
            HINT = format('To see who holds %s: SELECT * FROM advisory.leases.',
                          CASE WHEN answer.slots > 0 THEN 'them' ELSE 'it' END),
            SCHEMA = answer.namespace, CONSTRAINT = answer.name;
END $$;

CREATE OR REPLACE PROCEDURE advisory._await_lease(what text, namespace text, name text,
                                                  slots integer, ttl interval, timeout interval,
                                                  owner text, lock_delay interval,
                                                  max_hold interval, INOUT slot integer,
                                                  INOUT token bigint,
                                                  INOUT expires_at timestamptz)
    LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamp with time zone := advisory._deadline(advisory._milliseconds(timeout));
    pause double precision := advisory._pause(NULL, deadline, 'advisory.lease()');
    answer advisory._request;
BEGIN
    LOOP
        COMMIT;    -- Each ends the snapshot.
        answer := advisory._request(what, namespace, name, ttl, NULL, NULL, NULL, owner,
                                    lock_delay, slots, max_hold);
        EXIT WHEN answer.token IS NOT NULL;
        IF pause IS NULL THEN
            PERFORM advisory._raise_taken(answer, timeout);
        END IF;
        pause := advisory._pause(pause, deadline, NULL);
    END LOOP;
    slot := answer.slot;
    token := answer.token;
    expires_at := answer.result;
END $$;

-- How many are held now: the lease of that name, or its slots.
CREATE OR REPLACE FUNCTION advisory._leased(namespace text, name text, is_for_slots boolean)
    RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    k bigint := advisory.key(namespace, name);
BEGIN
    PERFORM _check_kept(namespace, name, 'lease');
    RETURN (
        SELECT count(*)
        FROM _here() AS h, _leases AS l
        WHERE l.key = k AND (l.slot > 0) = is_for_slots
            AND _expiry(l, h.server, h.began) > clock_timestamp());
END $$;

CREATE OR REPLACE FUNCTION advisory.break_lease(namespace text, name text,
                                                token bigint DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
BEGIN
    PERFORM advisory.key(namespace, name);    -- Checks the name.
    PERFORM _check_kept(namespace, name, 'lease');
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
           known_queue AS queue,
           'lease ' || CASE WHEN may_see
                            THEN _printable(left(namespace, 256) || '/' || left(name, 256))
                            ELSE hidden END AS lock,
           -- What is printed with '?' could not be found.
           CASE WHEN is_mine AND _printable(namespace || name) = namespace || name
                THEN format('SELECT advisory.break_lease(%L, %L, %s);', namespace, name, token) END
               AS remedy,
           place,
           nullif(slot, 0) AS slot,
           max_hold,
           -- Those who wait for any of these slots have the same.
           CASE WHEN slot > 0 THEN 'lease slots ' ELSE 'lease ' END || known_queue AS tag
    FROM (SELECT _expiry(l, h.server, h.began) AS until, l.*, o.place
          FROM _here() AS h, _leases AS l
          JOIN (SELECT key, slot,
                       row_number() OVER (PARTITION BY role ORDER BY expires_at DESC) AS place
                FROM _leases) AS o USING (key, slot)) AS l,
         LATERAL (SELECT '<insufficient privilege>', clock_timestamp(),
                         _has_role(current_user, role, role_name, system, 'USAGE'))
             AS c (hidden, now, is_mine),
         LATERAL (SELECT is_mine OR pg_has_role('pg_read_all_stats', 'USAGE')) AS m (may_see),
         -- No key tells a hidden name, unless pg_locks shows it.
         LATERAL (SELECT CASE WHEN may_see OR queue IN (SELECT key & -16384 | 1 FROM _keys)
                              THEN queue END) AS q (known_queue)
    WHERE expires_at > '-infinity';

CREATE OR REPLACE VIEW advisory.leases AS
    SELECT namespace, name, owner, token, state, ttl, acquired_at, renewed_at, expires_at,
           remaining, renewals, slot, max_hold
    FROM _shown_leases
    -- One role that takes very many hides nobody else's.
    WHERE place <= 10000 AND (SELECT _tell_of_standby(false))
    ORDER BY expires_at DESC;
COMMENT ON VIEW advisory.leases IS 'the leases of this database';
