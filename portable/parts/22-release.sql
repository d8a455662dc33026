-- Release.

-- What the public functions call if there was nothing to release.
CREATE OR REPLACE FUNCTION advisory._unlock(is_shared boolean, namespace text, name text,
                                            key bigint)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
BEGIN
    PERFORM _check(key::text, 'key');
    RAISE WARNING 'you don''t own a lock of type % on "%"',
        CASE WHEN is_shared THEN 'ShareLock' ELSE 'ExclusiveLock' END,
        _display(namespace, coalesce(name, key::text));
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
