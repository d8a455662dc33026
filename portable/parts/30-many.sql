-- Several locks at once.

-- Take all of them, in the order of their keys, or none.
CREATE OR REPLACE FUNCTION advisory._take_all(must boolean, is_xact boolean, namespace text,
    names text[], timeout interval) RETURNS boolean LANGUAGE plpgsql COST 1000 AS $$
DECLARE most integer := _milliseconds(timeout); deadline timestamptz := _deadline(most);
    taken bigint[] := '{}'; one record; busy text; BEGIN
    FOR one IN SELECT DISTINCT ON (key) key, element
               FROM unnest(_check_list(namespace, names, 'name')) AS element,
                    advisory.key(namespace, element) AS key ORDER BY key
    LOOP
        IF isfinite(deadline) THEN
            most := greatest(ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000), 0);
        END IF;
        busy := one.element;
        EXIT WHEN NOT _take(false, is_xact, one.key, most);
        taken := taken || one.key; busy := NULL;
    END LOOP;
    PERFORM _require(busy IS NULL, '55P03', 'busy');
    RETURN true;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    -- The end of this block has released the transaction-level ones.
    PERFORM pg_advisory_unlock(key) FROM unnest(taken) AS key WHERE NOT is_xact;
    IF busy IS NULL OR SQLSTATE <> '55P03' THEN RAISE; END IF;
    PERFORM _raise_not_available(namespace, busy, advisory.key(namespace, busy), NULL, 1, timeout)
    WHERE must;
    RETURN false; END $$;
