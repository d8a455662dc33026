-- Several locks at once.

-- Take all of them, in the order of their keys, or none.
CREATE OR REPLACE FUNCTION advisory._take_all(must boolean, is_xact boolean, namespace text,
                                              names text[], timeout interval)
    RETURNS boolean
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    most integer := _milliseconds(timeout);
    deadline timestamptz := _deadline(most);
    one record;
    busy text;
    taken bigint[] := '{}';
BEGIN
    FOR one IN
        SELECT DISTINCT ON (key) key, element
        FROM unnest(_check_list(namespace, names, 'name')) AS element,
             advisory.key(namespace, element) AS key
        ORDER BY key
    LOOP
        IF isfinite(deadline) THEN
            most := greatest(ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000), 0);
        END IF;
        busy := one.element;
        EXIT WHEN NOT _take(false, is_xact, one.key, most);
        taken := taken || one.key;
        busy := NULL;
    END LOOP;

    IF busy IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'busy';    -- To the handler below.
    END IF;
    RETURN true;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    -- The end of this block has released the transaction-level ones.
    IF NOT is_xact THEN
        PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key;
    END IF;
    IF busy IS NULL OR SQLSTATE <> '55P03' THEN
        RAISE;
    END IF;
    IF must THEN
        PERFORM _raise_not_available(
            namespace, busy, advisory.key(namespace, busy), NULL, 1, timeout);
    END IF;
    RETURN false;
END $$;
