---- Tokens and fences

-- Who calls a SECURITY DEFINER function: the role of the last SET ROLE, or of the session.
CREATE OR REPLACE FUNCTION advisory._caller() RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END $$;

CREATE OR REPLACE FUNCTION advisory._check_name(namespace text, name text) RETURNS void LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    $$ SELECT advisory._check(namespace, 'namespace'); SELECT advisory._check(name, 'name') $$;
CREATE OR REPLACE FUNCTION advisory._require_writable(what text) RETURNS void LANGUAGE sql AS $$
    SELECT advisory._require(current_setting('transaction_read_only') = 'off', '25006', 'cannot execute ' || what || ' in a read-only transaction')
$$;

-- Tokens must be on disk before anybody sees them.  But SQL flushes the log at COMMIT only: a crash before it would let a later token be smaller.
DO $do$
DECLARE
    f text;
BEGIN
    FOREACH f IN ARRAY ARRAY['token(namespace text, name text)', 'token(namespace text, name text, slot integer)', 'token_key(key bigint)',
                             'tokens_above(token bigint)'] LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE plpgsql COST 1000 AS %L', f,
            CASE WHEN f LIKE 'tokens_above%' THEN 'void' ELSE 'bigint' END,
            format($$ BEGIN RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = 'advisory.%s() is not in the portable edition',
                DETAIL = 'SQL cannot write a token to disk before the transaction commits, so after a crash or failover tokens could repeat or fall.',
                HINT = 'Write in one transaction under advisory.xact_lock(), claim windows with advisory.claim(), or take tokens from a consensus '
                       'store such as etcd. A sequence is not safe: a crash before COMMIT, or a failover, sets it back.'; END $$, split_part(f, '(', 1)));
        EXECUTE format('COMMENT ON FUNCTION advisory.%s IS %L', f, 'not in the portable edition: error 0A000');
    END LOOP;
    REVOKE ALL ON FUNCTION advisory.tokens_above(bigint) FROM PUBLIC;
END $do$;

-- Only check_token() writes this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory.fences (key bigint PRIMARY KEY, token bigint NOT NULL) WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';
REVOKE ALL ON advisory.fences FROM PUBLIC;

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, name text, token bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    highest bigint;
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(token::text, 'token'),
            advisory._require(token > 0, '22023', 'token must be greater than zero'), advisory._require_writable('advisory.check_token()');
    INSERT INTO advisory.fences AS f VALUES (advisory.key(namespace, name), check_token.token)
        ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE SET token = greatest(f.token, EXCLUDED.token) RETURNING f.token INTO highest;
    IF highest > token THEN
        RAISE EXCEPTION 'stale token % of "%"', token, advisory._display(namespace, name) USING ERRCODE = '55000', SCHEMA = namespace, CONSTRAINT = name,
            DETAIL = format('A later holder has already used %s.', CASE WHEN pg_has_role(advisory._caller(), 'pg_read_all_stats', 'USAGE')
                                                                        THEN 'token ' || highest ELSE 'a greater token' END);
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION advisory.check_token(text, text, bigint) IS 'true if no greater token of this name was checked, or error 55000';

CREATE OR REPLACE FUNCTION advisory.fenced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place text := format('column "%s" of relation "%s"', TG_ARGV[0], TG_TABLE_NAME);
    type oid;
    token bigint;
    replaced bigint;
BEGIN
    PERFORM advisory._require(TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' AND TG_OP IN ('INSERT', 'UPDATE'), '39P01',
                              'advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW'),
            advisory._require(TG_NARGS = 1, '39P01', 'advisory.fenced() takes the name of the token''s column as its only argument');
    SELECT atttypid INTO type FROM pg_attribute WHERE attrelid = TG_RELID AND attname = TG_ARGV[0] AND attnum > 0 AND NOT attisdropped;
    PERFORM advisory._require(FOUND, '42703', place || ' does not exist'),
            advisory._require(type = 'bigint'::regtype, '42804', place || ' must have type bigint');
    EXECUTE format('SELECT ($1).%I', TG_ARGV[0]) INTO token USING NEW;
    IF TG_OP = 'UPDATE' THEN
        EXECUTE format('SELECT ($1).%I', TG_ARGV[0]) INTO replaced USING OLD;
    END IF;
    IF token IS NULL THEN
        RAISE EXCEPTION 'null token in %', place USING ERRCODE = '23502', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0];
    ELSIF token < replaced THEN
        -- It does not tell the token that was there, because the role may be unable to read it.
        RAISE EXCEPTION 'stale token % in %', token, place USING ERRCODE = '55000', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0],
            DETAIL = 'A later holder has already written a greater token.';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION advisory.fenced() IS 'trigger function: refuses a NULL token and one smaller than the row''s';

---- Once per window

-- Only _claim(), _finish_claim() and unclaim() write this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory._claims (
    key bigint PRIMARY KEY, namespace text NOT NULL, name text NOT NULL, last_window timestamptz NOT NULL, window_before timestamptz NOT NULL,
    claimed_at timestamptz, claimed_by text, role text NOT NULL, finished_at timestamptz
) WITH (fillfactor = 50);
REVOKE ALL ON advisory._claims FROM PUBLIC;

CREATE OR REPLACE VIEW advisory.claims AS
    SELECT CASE WHEN may_see THEN regexp_replace(left(namespace, 1024), '[[:cntrl:]]', '?', 'g') ELSE '<insufficient privilege>' END AS namespace,
           CASE WHEN may_see THEN regexp_replace(left(name, 1024), '[[:cntrl:]]', '?', 'g') ELSE '<insufficient privilege>' END AS name,
           CASE WHEN may_see THEN key END AS key,
           last_window, claimed_at,
           CASE WHEN may_see THEN regexp_replace(left(claimed_by, 256), '[[:cntrl:]]', '?', 'g')
                WHEN claimed_by IS NOT NULL THEN '<insufficient privilege>' END AS claimed_by,
           finished_at
    FROM advisory._claims,
    LATERAL (SELECT pg_has_role('pg_read_all_stats', 'USAGE')
                    OR EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role AND pg_has_role(r.oid, 'USAGE'))) AS visible (may_see)
    -- That is what unclaim() of the first one leaves.
    WHERE last_window > '-infinity';
COMMENT ON VIEW advisory.claims IS 'the last claimed window of each name';
GRANT SELECT ON advisory.claims TO PUBLIC;

-- An interval without months, in microseconds.
CREATE OR REPLACE FUNCTION advisory._microseconds(value interval) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(day FROM value)::numeric * 24 + extract(hour FROM value)::numeric) * 3600000000
           + extract(minute FROM value)::numeric * 60000000 + extract(microseconds FROM value)::numeric
$$;

-- The window that claim() claims at a time.  Windows are counted from the first Monday of the century; a minute early is early enough.
CREATE OR REPLACE FUNCTION advisory._window(every interval, at timestamptz) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    length numeric := advisory._microseconds(every);
    early numeric := least(div(length, 2), 60000000);
    since numeric := mod(advisory._microseconds(at - '2001-01-01 00:00+00') + early, length);
BEGIN
    RETURN at + (early - since - CASE WHEN since < 0 THEN length ELSE 0 END)::double precision * interval '1 us';
END $$;

-- Checks the arguments, and returns the window.
CREATE OR REPLACE FUNCTION advisory._check_window(namespace text, name text, every interval, start timestamptz, every_is text, start_is text)
    RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name),
            advisory._require(octet_length(namespace) <= 1024, '22001', 'namespace of a claim is too long', 'It can have at most 1024 bytes.'),
            advisory._require(octet_length(name) <= 1024, '22001', 'name of a claim is too long', 'It can have at most 1024 bytes.'),
            advisory._check(every::text, every_is), advisory._require(every > '0', '22023', every_is || ' must be greater than zero'),
            advisory._require(isfinite(every), '22008', every_is || ' must be finite'),
            advisory._require(isfinite(start), '22008', start_is || ' must be finite');
    IF start IS NULL THEN
        PERFORM advisory._require(extract(year FROM every) = 0 AND extract(month FROM every) = 0, '22023', every_is || ' must not have months or years',
                    'Months and years differ in length.',
                    'Give the window itself as ' || start_is || ', such as date_trunc(''month'', now() + interval ''1 minute'', ''UTC'').'),
                advisory._require(advisory._microseconds(every) < 9223372036854775808, '22008', every_is || ' is out of range');
        RETURN advisory._window(every, clock_timestamp());
    END IF;
    PERFORM advisory._require(start <= clock_timestamp() + least(every, '366 days'), '22023', format('window %s is too far ahead', start),
                              'A window can be claimed at most one window, and at most 366 days, before it begins.');
    RETURN start;
END $$;

-- Claims the window, and returns the time; NULL if this window or a later one is claimed.  Everybody may call it, so it checks its arguments.
CREATE OR REPLACE FUNCTION advisory._claim(namespace text, name text, every interval, start timestamptz, is_finished boolean) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    its_key bigint := advisory.key(namespace, name);
    caller text := advisory._caller();
    at timestamptz;
BEGIN
    start := advisory._check_window(namespace, name, every, start, 'every', 'window_start');
    PERFORM advisory._require_writable('advisory.claim()');
    INSERT INTO advisory._claims AS c
        SELECT its_key, _claim.namespace, _claim.name, start, '-infinity', now, concat_ws('@', caller, nullif(current_setting('application_name'), '')),
               caller, CASE WHEN is_finished THEN now END
        FROM clock_timestamp() AS now
        WHERE NOT EXISTS (SELECT FROM advisory._claims AS o WHERE o.key = its_key AND o.last_window >= start)
        ON CONFLICT ON CONSTRAINT _claims_pkey DO UPDATE
        SET (namespace, name, last_window, window_before, claimed_at, claimed_by, role, finished_at) = ROW (EXCLUDED.namespace, EXCLUDED.name,
             EXCLUDED.last_window, c.last_window, EXCLUDED.claimed_at, EXCLUDED.claimed_by, EXCLUDED.role, EXCLUDED.finished_at)
        WHERE c.last_window < EXCLUDED.last_window
        RETURNING c.claimed_at INTO at;
    -- If another transaction claimed it meanwhile, the row is locked now.  The end of this block releases it.
    PERFORM advisory._require(FOUND, 'P0002', 'is claimed');
    RETURN at;
EXCEPTION WHEN no_data_found THEN
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION advisory.claim(namespace text, name text, every interval, window_start timestamptz DEFAULT NULL) RETURNS timestamptz
    LANGUAGE plpgsql COST 1000 AS $$
BEGIN
    window_start := advisory._check_window(namespace, name, every, window_start, 'every', 'window_start');
    RETURN CASE WHEN advisory._claim(namespace, name, every, window_start, true) IS NOT NULL THEN window_start END;
END $$;
COMMENT ON FUNCTION advisory.claim(text, text, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

-- The window before it is the last one again, so that no window before that can be claimed once more.
CREATE OR REPLACE FUNCTION advisory.unclaim(namespace text, name text, window_start timestamptz) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._check(window_start::text, 'window_start'),
            advisory._require(isfinite(window_start), '22008', 'window_start must be finite'), advisory._require_writable('advisory.unclaim()');
    UPDATE advisory._claims AS c SET last_window = c.window_before, claimed_at = NULL, claimed_by = NULL, finished_at = NULL
        WHERE c.key = advisory.key(unclaim.namespace, unclaim.name) AND c.last_window = window_start AND c.claimed_at IS NOT NULL;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION advisory.unclaim(text, text, timestamptz) IS 'take a claim back, so that its window can be claimed again';
REVOKE ALL ON FUNCTION advisory.unclaim(text, text, timestamptz) FROM PUBLIC;

-- Records the end of the caller's job, unless somebody is about to claim a later window.
CREATE OR REPLACE FUNCTION advisory._finish_claim(namespace text, name text, start timestamptz, at timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF current_setting('transaction_read_only') = 'on' THEN
        RAISE WARNING 'the end of window % of "%" is not recorded, because the transaction is read-only', start, advisory._display(namespace, name);
        RETURN;
    END IF;
    LOCK TABLE advisory._claims IN ROW EXCLUSIVE MODE NOWAIT;
    UPDATE advisory._claims SET finished_at = clock_timestamp()
        WHERE key = (SELECT c.key FROM advisory._claims AS c WHERE c.key = advisory.key(_finish_claim.namespace, _finish_claim.name)
                     AND c.last_window = start AND c.claimed_at = at AND c.role = advisory._caller() FOR UPDATE SKIP LOCKED);
EXCEPTION WHEN lock_not_available OR serialization_failure THEN
    NULL;
END $$;

---- Jobs

-- Checks what run() was given, and returns the window; NULL without once_per.
CREATE OR REPLACE FUNCTION advisory._check_job(namespace text, name text, command text, timeout interval, slots integer, if_busy text,
                                               once_per interval, once_window timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM advisory._check_name(namespace, name), advisory._milliseconds(timeout), advisory._check(command, 'command'),
            advisory._check_slot(coalesce(slots, 1), 'slots'), advisory._check(if_busy, 'if_busy'),
            advisory._require(if_busy IN ('skip', 'error'), '22023', 'if_busy must be "skip" or "error"'),
            advisory._require(once_per IS NOT NULL OR once_window IS NULL, '22023', 'once_window must not be given without once_per');
    IF once_per IS NOT NULL THEN
        once_window := advisory._check_window(namespace, name, once_per, once_window, 'once_per', 'once_window');
    END IF;
    -- More than blanks and comments.
    PERFORM advisory._require(regexp_replace(command, '--[^\n\r]*|/\*([^*]|\*+[^*/])*\*+/|[;[:space:]]', '', 'g') <> '', '22023', 'command must not be empty');
    -- The server parses the whole text before it runs the first statement.  So a syntax error is found before anything else happens.
    BEGIN
        EXECUTE 'SELECT 1/0; ' || command;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    IF once_per IS NOT NULL THEN
        PERFORM advisory._require_writable('advisory.run()');
    END IF;
    RETURN once_window;
END $$;

-- Raises 2D000 if that is the message of a COMMIT where none is possible, as inside this function.
CREATE OR REPLACE FUNCTION advisory._check_can_commit(message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
    PERFORM advisory._require(SQLERRM <> message, '2D000', 'advisory.run() cannot commit the claim of a window here', NULL,
        'Send the CALL as a separate statement outside a transaction block. Turn autocommit on, and do not send other statements together with '
        'the CALL. In a transaction, use advisory.claim().');
END $$;

-- The NOTICE, or the error, of a job that did not run: the lock is taken, or a window is claimed.
CREATE OR REPLACE FUNCTION advisory._report_not_run(namespace text, name text, slots integer, timeout interval, if_busy text, claimed timestamptz)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key bigint := CASE WHEN slots IS NULL THEN advisory.key(namespace, name) ELSE advisory._slot_key(namespace, name, 0) END;
    reason text := format(CASE WHEN claimed IS NOT NULL THEN 'window %2$s of "%1$s" or a later one is already claimed'
                               WHEN slots IS NULL THEN 'advisory lock "%s" is taken' ELSE 'semaphore "%s" is taken' END,
                          advisory._display(namespace, name), claimed);
BEGIN
    IF claimed IS NOT NULL AND if_busy = 'error' THEN
        RAISE EXCEPTION '%', reason USING ERRCODE = '55000', SCHEMA = namespace, CONSTRAINT = name;
    ELSIF claimed IS NOT NULL THEN
        RAISE NOTICE 'command was not run because %', reason USING ERRCODE = '55000', SCHEMA = namespace, CONSTRAINT = name;
    ELSIF if_busy = 'error' THEN
        PERFORM advisory._raise_not_available(namespace, name, key, slots, timeout);
    ELSE
        RAISE NOTICE 'command was not run because %', reason USING ERRCODE = '55P03', SCHEMA = namespace, CONSTRAINT = name,
            DETAIL = coalesce(advisory._holders(key, slots), 'Nobody holds it any more.');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION advisory._commit_synchronously() RETURNS text LANGUAGE sql AS
    $$ SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') $$;

-- Take the lock or a slot for the transaction.
CREATE OR REPLACE FUNCTION advisory._take_for_job(namespace text, name text, slots integer, timeout interval) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RETURN CASE WHEN slots IS NULL THEN advisory.try_xact_lock(namespace, name, timeout)
                         ELSE advisory.try_xact_acquire(namespace, name, slots, timeout) IS NOT NULL END; END $$;

-- The hold is transaction-level, so that it lasts until the effects of the command are committed, and an error leaves nothing behind.
-- Without a SET clause, which would forbid to commit, and would change the command's search_path.
CREATE OR REPLACE PROCEDURE advisory.run(namespace text, name text, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL,
                                         if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL,
                                         once_window timestamptz DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
    claimed_at timestamp with time zone;
    hint pg_catalog.text := 'This command cannot run inside advisory.run(). Take the lock with CALL advisory.await_lock() as a separate '
        'statement before the command, and release it with SELECT advisory.unlock() after the command.';
BEGIN
    ran := false;
    once_window := advisory._check_job(namespace, name, command, timeout, slots, if_busy, once_per, once_window);
    IF once_per IS NOT NULL THEN
        -- In this block no COMMIT succeeds.  The message says whether one could elsewhere.
        BEGIN
            COMMIT;
        EXCEPTION WHEN invalid_transaction_termination THEN
            PERFORM advisory._check_can_commit(SQLERRM);
        END;
    END IF;
    IF NOT advisory._take_for_job(namespace, name, slots, timeout) THEN
        PERFORM advisory._report_not_run(namespace, name, slots, timeout, if_busy, NULL);
        RETURN;
    END IF;
    IF once_per IS NOT NULL THEN
        claimed_at := advisory._claim(namespace, name, once_per, once_window, false);
        IF claimed_at IS NULL THEN
            PERFORM advisory._report_not_run(namespace, name, slots, timeout, if_busy, once_window);
            RETURN;
        END IF;
        -- The claim must be on disk before the command runs.
        PERFORM advisory._commit_synchronously();
        COMMIT AND CHAIN;
        -- The COMMIT has released the lock.  Whoever waited for it goes first, and finds the window claimed.  (A session-level hold would
        -- outlast the COMMIT, but also its failure.)
        IF NOT advisory._take_for_job(namespace, name, slots, NULL) THEN
            PERFORM advisory._report_not_run(namespace, name, slots, NULL, 'error', NULL);
        END IF;
    END IF;
    BEGIN
        EXECUTE command;
    EXCEPTION
        WHEN invalid_transaction_termination THEN
            PERFORM advisory._require(false, '0A000', 'a command of advisory.run() cannot commit or roll back in the portable edition', NULL, hint);
        WHEN active_sql_transaction THEN
            PERFORM advisory._require(false, '25001', SQLERRM, NULL, hint);
    END;
    IF once_per IS NOT NULL THEN
        PERFORM advisory._finish_claim(namespace, name, once_window, claimed_at);
    END IF;
    ran := true;
END $$;
COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean, interval, timestamptz) IS
    'run a command while holding a lock or slot, and once_per window';
