-- Release.

-- What the public functions call if there was nothing to release.
CREATE OR REPLACE FUNCTION advisory._unlock(is_shared boolean, namespace text, name text,
    key bigint) RETURNS boolean LANGUAGE plpgsql COST 1000 AS $$ BEGIN
    PERFORM _check(key::text, 'key');
    RAISE WARNING 'you don''t own a lock of type % on "%"',
        CASE WHEN is_shared THEN 'ShareLock' ELSE 'ExclusiveLock' END,
        _display(namespace, coalesce(name, key::text));
    RETURN false; END $$;

-- Every session-level hold of each lock in the list.
CREATE OR REPLACE FUNCTION advisory._unlock_all(namespace text, names text[], is_list boolean)
    RETURNS integer LANGUAGE plpgsql COST 1000 AS $$ DECLARE hold record; released integer := 0;
    keys bigint[] := ARRAY(SELECT advisory.key(namespace, element)
                           FROM unnest(_check_list(namespace, names, 'name')) AS element); BEGIN
    FOR hold IN SELECT key, mode = 'ShareLock' AS is_shared FROM _own WHERE key = ANY (keys)
    LOOP
        WHILE _is_held(hold.key, true, hold.is_shared)
              AND _unlock_quietly(hold.is_shared, hold.key) LOOP
            released := released + 1;
        END LOOP;
    END LOOP;
    -- In a finally block nobody would notice that an untyped list became one name, in any form that
    -- drivers send.  A comma beside a space is in ordinary names.
    PERFORM _require(is_list OR released > 0 OR names[1] !~ '^({.+}|\[.+\])$|[^ ],[^ ]'
                     OR _is_held(keys[1], true),
        '22023',
        'this session does not hold an advisory lock of that name, which looks like a list', NULL,
        'To release a list of locks, cast it: unlock_all(namespace, list::text[]).');
    RETURN released; END $$;
