-- Jobs.

-- Checks the arguments but the name, and those that claim the window.
CREATE OR REPLACE FUNCTION advisory._check_job(command text, timeout interval, slots integer,
                                               if_busy text, once_per interval,
                                               once_window timestamptz, time_zone text,
                                               apart interval)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM _milliseconds(timeout);
    PERFORM _check(command, 'command');
    PERFORM _check_slot(coalesce(slots, 1), 'slots');
    PERFORM _check(if_busy, 'if_busy');
    IF if_busy NOT IN ('skip', 'error') THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'if_busy must be "skip" or "error"';
    ELSIF once_per IS NULL AND once_window IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'once_window must not be given without once_per';
    ELSIF once_per IS NULL AND time_zone IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'time_zone must not be given without once_per';
    ELSIF once_per IS NOT NULL AND apart IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'apart must not be given together with once_per';
    ELSIF regexp_replace(    -- It has only blanks and comments.
              command, E'--[^\n\r]*|/\\*([^*]|\\*+[^*/])*\\*+/|[;[:space:]]', '', 'g') = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'command must not be empty';
    END IF;
    -- The server parses the whole text first.  So a syntax error comes before anything happens.
    BEGIN
        EXECUTE 'SELECT 1/0; ' || command;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
END $$;

-- Before the command: checks, takes the lock or a slot, claims the window.  NULL: do not run it.
CREATE OR REPLACE FUNCTION advisory._begin_job(namespace text, name text, command text,
                                               timeout interval, slots integer, if_busy text,
                                               once_per interval, once_window timestamptz,
                                               time_zone text, apart interval)
    RETURNS timestamptz
    LANGUAGE plpgsql AS $$
DECLARE
    key bigint := CASE WHEN slots IS NULL THEN advisory.key(namespace, name)
                       ELSE _slot_key(namespace, name, 0) END;
    every interval := coalesce(once_per, apart);
    is_taken boolean;
    answer _request;
    reason text;
BEGIN
    PERFORM _check_job(command, timeout, slots, if_busy, once_per, once_window, time_zone, apart);
    IF every IS NOT NULL THEN
        once_window := _window(namespace, name, every, once_window, time_zone,
            CASE WHEN apart IS NULL THEN 'once_per' ELSE 'apart' END, 'once_window');
    END IF;

    is_taken := CASE WHEN slots IS NULL THEN advisory.try_xact_lock(namespace, name, timeout)
                     ELSE advisory.try_xact_acquire(namespace, name, slots, timeout) > 0 END;
    IF is_taken IS NOT TRUE THEN
        IF if_busy = 'error' THEN
            PERFORM _raise_not_available(namespace, name, key, slots, 1, timeout);
        END IF;
        RAISE NOTICE 'command was not run because % "%" is taken',
            CASE WHEN slots IS NULL THEN 'advisory lock' ELSE 'semaphore' END,
            _display(namespace, name)
            USING ERRCODE = '55P03', DETAIL = _holders(key, slots);
        RETURN NULL;
    ELSIF every IS NULL THEN
        RETURN clock_timestamp();
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
    RETURN answer.result;
END $$;

-- The error of a command that cannot run in a transaction, or not in a function.
CREATE OR REPLACE FUNCTION advisory._raise_not_inside(state text, message text)
    RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = replace(state, '2D000', '0A000'), MESSAGE = message,
        HINT = 'This command cannot run inside advisory.run(). Take the lock with CALL '
               'advisory.await_lock() as a separate statement before the command, and release it '
               'with SELECT advisory.unlock() after the command.';
END $$;

-- The hold is transaction-level: it lasts until the effects of the command are committed, and an
-- error leaves nothing behind.  No SET clause, which would forbid to commit, and would change the
-- command's search_path.
CREATE OR REPLACE PROCEDURE advisory.run(namespace text, name text, command text,
                                         timeout interval DEFAULT '0', slots integer DEFAULT NULL,
                                         if_busy text DEFAULT 'skip',
                                         INOUT ran boolean DEFAULT NULL,
                                         once_per interval DEFAULT NULL,
                                         once_window timestamptz DEFAULT NULL,
                                         time_zone text DEFAULT NULL,
                                         apart interval DEFAULT NULL)
    LANGUAGE plpgsql AS $$
DECLARE
    role_before pg_catalog.text := pg_catalog.current_setting('role');
    role_after pg_catalog.text;
    claimed_at timestamp with time zone;
BEGIN
    claimed_at := advisory._begin_job(
        namespace, name, command, timeout, slots, if_busy, once_per, once_window, time_zone, apart);
    ran := claimed_at IS NOT NULL;
    IF NOT ran THEN
        RETURN;
    END IF;
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
           AND command OPERATOR(pg_catalog.!~*) '\mWAIT\s+FOR\M' THEN
            RAISE;
        END IF;
        PERFORM advisory._raise_not_inside(SQLSTATE, SQLERRM);
    END;

    IF once_per IS NULL AND apart IS NULL THEN
        RETURN;
    END IF;
    BEGIN
        -- The command can have set another role.
        role_after := pg_catalog.current_setting('role');
        IF role_before OPERATOR(pg_catalog.<>) role_after THEN
            PERFORM pg_catalog.set_config('role', role_before, true);
        END IF;
        PERFORM advisory._request('finish', namespace, name, NULL, NULL, claimed_at);
        IF role_before OPERATOR(pg_catalog.<>) role_after THEN
            PERFORM pg_catalog.set_config('role', role_after, true);
        END IF;
    EXCEPTION WHEN insufficient_privilege OR invalid_parameter_value OR lock_not_available
                   OR serialization_failure THEN
        NULL;
    END;
END $$;
