-- Jobs.

-- Before the command: checks, takes the lock or a slot, claims the window.  NULL: do not run it.
CREATE OR REPLACE FUNCTION advisory._begin_job(namespace text, name text, command text,
    timeout interval, slots integer, if_busy text, once_per interval, once_window timestamptz,
    time_zone text, apart interval) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE answer _request; reason text; is_taken boolean;
    every interval := coalesce(once_per, apart);
    key bigint := CASE WHEN slots IS NULL THEN advisory.key(namespace, name)
                       ELSE _slot_key(namespace, name, 0) END; BEGIN
    PERFORM _milliseconds(timeout), _check(command, 'command'),
            _check_slot(coalesce(slots, 1), 'slots'), _check(if_busy, 'if_busy'),
            _require(if_busy IN ('skip', 'error'), '22023', 'if_busy must be "skip" or "error"'),
            _require(once_per IS NOT NULL OR once_window IS NULL, '22023',
                     'once_window must not be given without once_per'),
            _require(once_per IS NOT NULL OR time_zone IS NULL, '22023',
                     'time_zone must not be given without once_per'),
            _require(once_per IS NULL OR apart IS NULL, '22023',
                     'apart must not be given together with once_per'),
            -- It has more than blanks and comments.
            _require(regexp_replace(
                command, E'--[^\n\r]*|/\\*([^*]|\\*+[^*/])*\\*+/|[;[:space:]]', '', 'g') <> '',
                '22023', 'command must not be empty');
    -- The server parses the whole text first.  So a syntax error comes before anything happens.
    BEGIN EXECUTE 'SELECT 1/0; ' || command; EXCEPTION WHEN division_by_zero THEN NULL; END;
    IF every IS NOT NULL THEN
        once_window := _window(namespace, name, every, once_window, time_zone,
            CASE WHEN apart IS NULL THEN 'once_per' ELSE 'apart' END, 'once_window');
    END IF;
    is_taken := CASE WHEN slots IS NULL THEN advisory.try_xact_lock(namespace, name, timeout)
                     ELSE advisory.try_xact_acquire(namespace, name, slots, timeout) > 0 END;
    IF is_taken IS NOT TRUE THEN
        PERFORM _raise_not_available(namespace, name, key, slots, 1, timeout)
        WHERE if_busy = 'error';
        RAISE NOTICE 'command was not run because % "%" is taken',
            CASE WHEN slots IS NULL THEN 'advisory lock' ELSE 'semaphore' END,
            _display(namespace, name) USING ERRCODE = '55P03', DETAIL = _holders(key, slots);
    END IF;
    IF is_taken IS NOT TRUE OR every IS NULL THEN
        RETURN CASE WHEN is_taken THEN clock_timestamp() END;
    END IF;
    answer := CASE WHEN apart IS NOT NULL THEN _request('run_apart', namespace, name, apart)
                   ELSE _request('run', namespace, name, every, NULL, once_window, time_zone) END;
    IF answer.result IS NULL THEN
        reason := format(CASE WHEN apart IS NULL
                              THEN 'window %2$s of "%1$s" or a later one is already claimed'
                              ELSE 'the last claim of "%s" is not long enough ago' END,
                         _display(namespace, name), once_window);
        PERFORM _require(if_busy = 'skip', '55000', reason, answer.reason);
        RAISE NOTICE 'command was not run because %', reason
            USING ERRCODE = '55000', DETAIL = coalesce(answer.reason, '');
    END IF;
    RETURN answer.result; END $$;

-- The hold is transaction-level: it lasts until the effects of the command are committed, and an
-- error leaves nothing behind.  No SET clause, which would forbid to commit, and would change the
-- command's search_path.
CREATE OR REPLACE PROCEDURE advisory.run(namespace text, name text, command text,
    timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip',
    INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL,
    once_window timestamptz DEFAULT NULL, time_zone text DEFAULT NULL, apart interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE role_before pg_catalog.text := pg_catalog.current_setting('role');
    role_after pg_catalog.text; claimed_at timestamp with time zone; BEGIN
    claimed_at := advisory._begin_job(
        namespace, name, command, timeout, slots, if_busy, once_per, once_window, time_zone, apart);
    ran := claimed_at IS NOT NULL;
    IF NOT ran THEN RETURN; END IF;
    IF once_per IS NOT NULL OR apart IS NOT NULL THEN
        -- This releases the lock, too.  Whoever waits for it goes first, and finds the window
        -- claimed.  (A session-level hold would outlast the COMMIT, but also its failure.)
        COMMIT AND CHAIN;
        PERFORM advisory._begin_job(
            namespace, name, command, NULL, slots, 'error', NULL, NULL, NULL, NULL);
    END IF;
    BEGIN
        EXECUTE command;
    EXCEPTION WHEN invalid_transaction_termination OR active_sql_transaction
                   OR feature_not_supported THEN
        -- Of the last ones only 19's WAIT FOR, which cannot run in any other statement.
        IF SQLSTATE OPERATOR(pg_catalog.=) '0A000'
           AND command OPERATOR(pg_catalog.!~*) '\mWAIT\s+FOR\M' THEN RAISE; END IF;
        PERFORM advisory._require(
            false, pg_catalog.replace(SQLSTATE, '2D000', '0A000'), SQLERRM, NULL,
            'This command cannot run inside advisory.run(). Take the lock with CALL '
            'advisory.await_lock() as a separate statement before the command, and release it '
            'with SELECT advisory.unlock() after the command.');
    END;
    IF once_per IS NULL AND apart IS NULL THEN RETURN; END IF;
    BEGIN
        -- The command can have set another role.
        role_after := pg_catalog.current_setting('role');
        PERFORM pg_catalog.set_config('role', role_before, true)
        WHERE role_before OPERATOR(pg_catalog.<>) role_after;
        PERFORM advisory._request('finish', namespace, name, NULL, NULL, claimed_at);
        PERFORM pg_catalog.set_config('role', role_after, true)
        WHERE role_before OPERATOR(pg_catalog.<>) role_after;
    EXCEPTION WHEN insufficient_privilege OR invalid_parameter_value OR lock_not_available
                   OR serialization_failure THEN NULL;
    END; END $$;
