---- Tokens and fences

CREATE OR REPLACE FUNCTION advisory._no_token(what text) RETURNS bigint LANGUAGE sql AS $$
    SELECT 0 FROM advisory._require(false, '0A000', pg_catalog.format('advisory.%s() is not in the portable edition', what),
        'SQL writes a token to disk at COMMIT only, so after a crash or failover tokens could repeat or fall. So could those of a sequence.',
        'Write in one transaction under advisory.xact_lock(), or claim windows with advisory.claim(), or take tokens from a store such as etcd.')
$$;

-- Only check_token() writes this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory.fences (key bigint PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';

CREATE OR REPLACE FUNCTION advisory._check_writable(what text) RETURNS void LANGUAGE sql AS $$ SELECT advisory._require(
    current_setting('transaction_read_only') = 'off', '25006', format('cannot execute advisory.%s() in a read-only transaction', what)) $$;

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, name text, token bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    highest bigint;
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(token::text, 'token'),
            advisory._require(token > 0, '22023', 'token must be greater than zero'), advisory._check_writable('check_token');
    INSERT INTO advisory.fences AS f VALUES (advisory.key(namespace, name), check_token.token)
        ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE SET token = greatest(f.token, EXCLUDED.token) RETURNING f.token INTO highest;
    PERFORM advisory._require(highest = token, '55000', format('stale token %s of "%s"', token, advisory._display(namespace, name)),
        format('A later holder has already used %s.', CASE WHEN has_table_privilege(advisory._caller(), 'advisory.fences', 'SELECT')
                                                           THEN 'token ' || highest ELSE 'a greater token' END));
    RETURN true;
END $$;
COMMENT ON FUNCTION advisory.check_token(text, text, bigint) IS 'true if no greater token of this name was checked, or error 55000';

CREATE OR REPLACE FUNCTION advisory.fenced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place text := format('column "%s" of relation "%s"', TG_ARGV[0], TG_TABLE_NAME);
    token bigint; old_token bigint;
BEGIN
    PERFORM advisory._require(TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' AND TG_OP IN ('INSERT', 'UPDATE'), '39P01',
                              'advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW'),
            advisory._require(TG_NARGS = 1, '39P01', 'advisory.fenced() takes the name of the token''s column as its only argument'),
            advisory._require(atttypid IS NOT NULL, '42703', place || ' does not exist'),
            advisory._require(atttypid = 'bigint'::regtype, '42804', place || ' must have type bigint')
    FROM (VALUES (TG_RELID)) AS t (id) LEFT JOIN pg_attribute ON attrelid = id AND attname = TG_ARGV[0] AND attnum > 0 AND NOT attisdropped;
    EXECUTE format('SELECT ($1).%I', TG_ARGV[0]) INTO token USING NEW;
    IF TG_OP = 'UPDATE' THEN EXECUTE format('SELECT ($1).%I', TG_ARGV[0]) INTO old_token USING OLD; END IF;
    -- The error does not tell the old token: the role may be unable to read it.
    PERFORM advisory._require(token IS NOT NULL, '23502', 'null token in ' || place), advisory._require(token >= old_token, '55000',
        format('stale token %s in %s', token, place), 'A later holder has already written a greater token.');
    RETURN NEW;
END $$;
COMMENT ON FUNCTION advisory.fenced() IS 'trigger function: refuses a NULL token and one smaller than the row''s';

---- Once per window

-- Only _claim(), _finish_claim() and unclaim() write this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory._claims (
    key bigint PRIMARY KEY, namespace text NOT NULL, name text NOT NULL, last_window timestamptz NOT NULL, window_before timestamptz NOT NULL,
    claimed_at timestamptz, claimed_by text, role text NOT NULL, finished_at timestamptz) WITH (fillfactor = 50);

CREATE OR REPLACE VIEW advisory.claims AS
    SELECT CASE WHEN may_see THEN advisory._printable(left(namespace, 1024)) ELSE hidden END AS namespace,
           CASE WHEN may_see THEN advisory._printable(left(name, 1024)) ELSE hidden END AS name,
           CASE WHEN may_see THEN key END AS key, last_window, claimed_at,
           CASE WHEN may_see OR claimed_by IS NULL THEN advisory._printable(left(claimed_by, 256)) ELSE hidden END AS claimed_by, finished_at
    FROM advisory._claims, LATERAL (SELECT '<insufficient privilege>', pg_has_role('pg_read_all_stats', 'USAGE')
        OR EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role AND pg_has_role(r.oid, 'USAGE'))) AS l (hidden, may_see)
    WHERE last_window > '-infinity';    -- That is what unclaim() of the first window leaves.
COMMENT ON VIEW advisory.claims IS 'the last claimed window of each name';
GRANT SELECT ON advisory.claims TO PUBLIC;

-- Checks the arguments, and returns the window: start, or that of now, counted from the first Monday of the century.  A minute early is in time.
CREATE OR REPLACE FUNCTION advisory._window(namespace text, name text, every interval, start timestamptz, every_is text, start_is text)
    RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
    length numeric := advisory._microseconds(every);
    early numeric := least(div(length, 2), 60000000);
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(every::text, every_is),
            advisory._require(octet_length(namespace) <= 1024, '22001', 'namespace of a claim is too long', 'It can have at most 1024 bytes.'),
            advisory._require(octet_length(name) <= 1024, '22001', 'name of a claim is too long', 'It can have at most 1024 bytes.'),
            advisory._require(every > '0', '22023', every_is || ' must be greater than zero'),
            advisory._require(isfinite(every) AND length < 9223372036854775808, '22008', every_is || ' is out of range'),
            advisory._require(isfinite(start), '22008', start_is || ' must be finite'),
            advisory._require(start <= now + least(every, '366 days'), '22023', format('window %s is too far ahead', start),
                              'A window can be claimed at most one window, and at most 366 days, before it begins.'),
            advisory._require(start IS NOT NULL OR date_trunc('month', every) = '0', '22023', every_is || ' must not have months or years',
                'Months and years differ in length.', 'Give the window itself as ' || start_is || ', such as date_trunc(''month'', now() + '
                'interval ''1 minute'', ''UTC'').');
    RETURN coalesce(start, now + (early - mod(advisory._microseconds(now - '2001-01-01 00:00+00') + early, length))::bigint * interval '1 us');
END $$;

-- Claims the window, and returns it, or for run() the time of the claim; NULL if it or a later one is claimed.  Every role may call it.
CREATE OR REPLACE FUNCTION advisory._claim(namespace text, name text, every interval, window_start timestamptz, is_for_run boolean)
    RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    k bigint := advisory.key(namespace, name);
    start timestamptz := advisory._window(namespace, name, every, window_start, 'every', 'window_start');
    result timestamptz;
BEGIN
    PERFORM advisory._check_writable('claim');
    INSERT INTO advisory._claims AS c
        SELECT k, _claim.namespace, _claim.name, start, '-infinity', now, concat_ws('@', caller, nullif(current_setting('application_name'), '')),
               caller, CASE WHEN NOT is_for_run THEN now END
        FROM clock_timestamp() AS now, advisory._caller() AS caller
        WHERE NOT EXISTS (SELECT FROM advisory._claims AS o WHERE o.key = k AND o.last_window >= start)
        ON CONFLICT ON CONSTRAINT _claims_pkey DO UPDATE
        SET last_window = EXCLUDED.last_window, window_before = c.last_window, claimed_at = EXCLUDED.claimed_at, claimed_by = EXCLUDED.claimed_by,
            role = EXCLUDED.role, finished_at = EXCLUDED.finished_at WHERE c.last_window < EXCLUDED.last_window
        RETURNING CASE WHEN is_for_run THEN c.claimed_at ELSE start END INTO STRICT result;
    PERFORM set_config('synchronous_commit', 'on', true)    -- The command must not run before the claim is on disk.
    WHERE is_for_run AND current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
    RETURN result;
EXCEPTION WHEN no_data_found THEN RETURN NULL;    -- If another transaction claimed it meanwhile, this releases its row.
END $$;

-- The window before it is the last one again, so that no window before that can be claimed once more.
CREATE OR REPLACE FUNCTION advisory.unclaim(namespace text, name text, window_start timestamptz) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(window_start::text, 'window_start'),
            advisory._require(isfinite(window_start), '22008', 'window_start must be finite'), advisory._check_writable('unclaim');
    UPDATE advisory._claims AS c SET last_window = c.window_before, claimed_at = NULL, claimed_by = NULL, finished_at = NULL
        WHERE c.key = advisory.key(unclaim.namespace, unclaim.name) AND c.last_window = window_start AND c.claimed_at IS NOT NULL;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION advisory.unclaim(text, text, timestamptz) IS 'take a claim back, so that its window can be claimed again';
REVOKE ALL ON FUNCTION advisory.unclaim(text, text, timestamptz) FROM PUBLIC;

-- Records the end of the caller's job, unless that had to wait for somebody who claims a later window.
CREATE OR REPLACE FUNCTION advisory._finish_claim(key bigint, at timestamptz) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    LOCK TABLE advisory._claims IN ROW EXCLUSIVE MODE NOWAIT;
    UPDATE advisory._claims AS c SET finished_at = clock_timestamp() WHERE c.key = (SELECT o.key FROM advisory._claims AS o
        WHERE o.key = _finish_claim.key AND o.claimed_at = at AND o.role = advisory._caller() FOR UPDATE SKIP LOCKED);
EXCEPTION WHEN lock_not_available OR serialization_failure THEN NULL;
END $$;

---- Jobs

-- What run() does before its command: it checks, takes the lock or a slot for the transaction, and claims the window.  NULL: do not run it.
-- commit_error is what COMMIT said in run() in a block with an EXCEPTION clause, where it never succeeds.
CREATE OR REPLACE FUNCTION advisory._begin_job(namespace text, name text, command text, timeout interval, slots integer, if_busy text,
        once_per interval, once_window timestamptz, commit_error text) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    key bigint := CASE WHEN slots IS NULL THEN advisory.key(namespace, name) ELSE advisory._slot_key(namespace, name, 0) END;
    claimed_at timestamptz; reason text;
BEGIN
    PERFORM advisory._milliseconds(timeout), advisory._check(command, 'command'), advisory._check_slot(coalesce(slots, 1), 'slots'),
            advisory._check(if_busy, 'if_busy'), advisory._require(if_busy IN ('skip', 'error'), '22023', 'if_busy must be "skip" or "error"'),
            advisory._require(once_per IS NOT NULL OR once_window IS NULL, '22023', 'once_window must not be given without once_per'),
            advisory._require(regexp_replace(command, '--[^\n\r]*|/\*([^*]|\*+[^*/])*\*+/|[;[:space:]]', '', 'g') <> '',
                              '22023', 'command must not be empty');    -- It has more than blanks and comments.
    -- The server parses the whole text before it runs the first statement.  So a syntax error is found before anything else happens.
    BEGIN EXECUTE 'SELECT 1/0; ' || command; EXCEPTION WHEN division_by_zero THEN NULL; END;
    IF once_per IS NOT NULL THEN
        once_window := advisory._window(namespace, name, once_per, once_window, 'once_per', 'once_window');
        -- In this function no COMMIT succeeds either.  The message is the same only if none would succeed anywhere in run().
        BEGIN COMMIT; EXCEPTION WHEN invalid_transaction_termination THEN
            PERFORM advisory._require(SQLERRM <> commit_error, '2D000', 'advisory.run() cannot commit the claim of a window here', NULL,
                'Send the CALL as a separate statement outside a transaction block. Turn autocommit on, and do not send other statements together '
                'with the CALL. In a transaction, use advisory.claim().');
        END;
    END IF;
    IF NOT (CASE WHEN slots IS NULL THEN advisory.try_xact_lock(namespace, name, timeout)
                 ELSE advisory.try_xact_acquire(namespace, name, slots, timeout) IS NOT NULL END) THEN
        PERFORM advisory._raise_not_available(namespace, name, key, slots, timeout) WHERE if_busy = 'error';
        RAISE NOTICE 'command was not run because % "%" is taken', CASE WHEN slots IS NULL THEN 'advisory lock' ELSE 'semaphore' END,
            advisory._display(namespace, name)
            USING ERRCODE = '55P03', DETAIL = coalesce(advisory._describe(key, slots), 'Nobody holds it any more.');
        RETURN NULL;
    END IF;
    IF once_per IS NULL THEN RETURN clock_timestamp(); END IF;
    claimed_at := advisory._claim(namespace, name, once_per, once_window, true);
    reason := format('window %s of "%s" or a later one is already claimed', once_window, advisory._display(namespace, name));
    PERFORM advisory._require(claimed_at IS NOT NULL OR if_busy = 'skip', '55000', reason);
    IF claimed_at IS NULL THEN RAISE NOTICE 'command was not run because %', reason USING ERRCODE = '55000'; END IF;
    RETURN claimed_at;
END $$;

-- The hold is transaction-level: it lasts until the effects of the command are committed, and an error leaves nothing behind.
-- No SET clause, which would forbid to commit, and would change the command's search_path.
CREATE OR REPLACE PROCEDURE advisory.run(namespace text, name text, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL,
        if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL, once_window timestamptz DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    commit_error pg_catalog.text;
    claimed_at timestamp with time zone;
BEGIN
    BEGIN COMMIT; EXCEPTION WHEN invalid_transaction_termination THEN commit_error := SQLERRM; END;
    claimed_at := advisory._begin_job(namespace, name, command, timeout, slots, if_busy, once_per, once_window, commit_error);
    ran := claimed_at IS NOT NULL;
    IF NOT ran THEN RETURN; END IF;
    IF once_per IS NOT NULL THEN
        -- This releases the lock, too.  Whoever waits for it goes first, and finds the window claimed.  (A session-level hold would outlast
        -- the COMMIT, but also its failure.)
        COMMIT AND CHAIN;
        PERFORM advisory._begin_job(namespace, name, command, NULL, slots, 'error', NULL, NULL, NULL);
    END IF;
    BEGIN EXECUTE command; EXCEPTION WHEN invalid_transaction_termination OR active_sql_transaction THEN
        PERFORM advisory._require(false, pg_catalog.replace(SQLSTATE, '2D000', '0A000'), SQLERRM, NULL,
            'This command cannot run inside advisory.run(). Take the lock with CALL advisory.await_lock() as a separate statement before the '
            'command, and release it with SELECT advisory.unlock() after the command.');
    END;
    IF once_per IS NOT NULL THEN PERFORM advisory._finish_claim(advisory.key(namespace, name), claimed_at); END IF;
END $$;
COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean, interval, timestamptz) IS
    'run a command while holding a lock or slot, and once_per window';
