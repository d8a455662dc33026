-- Release.

-- A session does not hold what it releases: a WARNING, or if advisory_ext.unlock_not_held is error,
-- that.  Without the library this is a setting that only this function knows.  If the session has
-- nothing of that name, HINT says why that may be.  By key, namespace is null.
CREATE OR REPLACE FUNCTION advisory._not_held(what text, namespace text, name text, key bigint,
                                              instead text)
    RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    base bigint := CASE WHEN namespace IS NOT NULL THEN _slot_key(namespace, name, 0) END;
    message text := format('you don''t own %s "%s"',
                           what, _display(namespace, coalesce(name, key::text)));
BEGIN
    IF lower(current_setting('advisory_ext.unlock_not_held', true)) IS DISTINCT FROM 'error' THEN
        RAISE WARNING USING MESSAGE = message;
    ELSIF EXISTS (SELECT FROM _own AS o
                  WHERE o.key = _not_held.key OR o.key BETWEEN base + 1 AND base + 16000) THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = message;
    ELSE
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = message,
            HINT = 'Another connection of a pool may have taken it. Take and release it on one '
                   'connection, or use advisory.' || instead || '().';
    END IF;
END $$;

-- What the public functions call if there was nothing to release.
CREATE OR REPLACE FUNCTION advisory._unlock(is_shared boolean, namespace text, name text,
                                            key bigint)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
BEGIN
    PERFORM _check(key::text, 'key');
    PERFORM _not_held(
        CASE WHEN is_shared THEN 'a lock of type ShareLock on'
             ELSE 'a lock of type ExclusiveLock on' END,
        namespace, name, key, CASE WHEN is_shared THEN 'xact_lock_shared' ELSE 'xact_lock' END);
    RETURN false;
END $$;

-- Every session-level hold of each lock in the list.
CREATE OR REPLACE FUNCTION advisory._unlock_all(namespace text, names text[], is_list boolean)
    RETURNS integer
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    keys bigint[] := ARRAY(SELECT advisory.key(namespace, element)
                           FROM unnest(_check_list(namespace, names, 'name')) AS element);
    hold record;
    released integer := 0;
BEGIN
    FOR hold IN
        SELECT key, mode = 'ShareLock' AS is_shared FROM _own WHERE key = ANY (keys)
    LOOP
        -- What stays when nothing more can be released is held by the transaction.
        WHILE _is_held(hold.key, true, hold.is_shared)
              AND _unlock_quietly(hold.is_shared, hold.key) LOOP
            released := released + 1;
        END LOOP;
    END LOOP;

    -- In a finally block nobody would notice that an untyped list became one name, in any form that
    -- drivers send.  A comma beside a space is in ordinary names.
    IF NOT is_list AND released = 0 AND names[1] ~ '^({.+}|\[.+\])$|[^ ],[^ ]'
       AND NOT _is_held(keys[1], true) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'this session does not hold an advisory lock of that name, which looks like '
                      'a list',
            HINT = 'To release a list of locks, cast it: unlock_all(namespace, list::text[]).';
    END IF;
    RETURN released;
END $$;
