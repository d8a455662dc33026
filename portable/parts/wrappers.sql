
---- The public functions that are one call

DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT * FROM (VALUES
            ('unlock(namespace text, name text)', 'boolean', '_unlock(false, namespace, name, advisory.key(namespace, name))',
             'release one exclusive session-level hold; false if there is none'),
            ('unlock_shared(namespace text, name text)', 'boolean', '_unlock(true, namespace, name, advisory.key(namespace, name))',
             'release one shared session-level hold; false if there is none'),
            ('unlock_key(key bigint)', 'boolean', '_unlock(false, NULL, NULL, key)', 'release one exclusive session-level hold; false if there is none'),
            ('unlock_shared_key(key bigint)', 'boolean', '_unlock(true, NULL, NULL, key)', 'release one shared session-level hold; false if there is none'),
            ('holds(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), true)', 'does this session hold the lock, in any mode and scope?'),
            ('holds_key(key bigint)', 'boolean', '_is_held(key, true)', 'does this session hold the lock, in any mode and scope?'),
            ('is_locked(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), false)',
             'does any session hold the lock: an observation, never a guard'),
            ('is_locked_key(key bigint)', 'boolean', '_is_held(key, false)', 'does any session hold the lock: an observation, never a guard'),
            ('lock_all(namespace text, names text[], timeout interval DEFAULT NULL)', 'boolean', '_lock_all(false, namespace, names, timeout)',
             'lock all of the list for the session: true, or error 55P03 and none'),
            ('xact_lock_all(namespace text, names text[], timeout interval DEFAULT NULL)', 'boolean', '_lock_all(true, namespace, names, timeout)',
             'lock all of the list for the transaction: true, or error 55P03'),
            ('try_lock_all(namespace text, names text[], timeout interval DEFAULT ''0'')', 'boolean', '_take_all(false, namespace, names, timeout) IS NULL',
             'lock all of the list for the session if all are free within timeout'),
            ('try_xact_lock_all(namespace text, names text[], timeout interval DEFAULT ''0'')', 'boolean', '_take_all(true, namespace, names, timeout) IS NULL',
             'lock all of the list for the transaction if free within timeout'),
            ('try_lock_any(namespace text, names text[], wanted integer DEFAULT 1)', 'SETOF text', '_try_any(false, namespace, names, false, NULL, wanted)',
             'lock up to wanted of the list that are free, for the session'),
            ('try_xact_lock_any(namespace text, names text[], wanted integer DEFAULT 1)', 'SETOF text', '_try_any(true, namespace, names, false, NULL, wanted)',
             'lock up to wanted of the list that are free, for the transaction'),
            ('acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL)', 'integer',
             '_acquire(true, false, namespace, name, slots, timeout)', 'take a slot of a semaphore for the session, or error 55P03'),
            ('xact_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL)', 'integer',
             '_acquire(true, true, namespace, name, slots, timeout)', 'take a slot of a semaphore for the transaction, or error 55P03'),
            ('try_acquire(namespace text, name text, slots integer, timeout interval DEFAULT ''0'')', 'integer',
             '_acquire(false, false, namespace, name, slots, timeout)', 'take a slot for the session if one is free within timeout, or NULL'),
            ('try_xact_acquire(namespace text, name text, slots integer, timeout interval DEFAULT ''0'')', 'integer',
             '_acquire(false, true, namespace, name, slots, timeout)', 'take a slot for the transaction if one is free within timeout, or NULL'),
            ('try_acquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)', 'TABLE (name text, slot integer)',
             '_try_any(false, namespace, names, true, slots, wanted)', 'take a slot of each of the first names that have one free'),
            ('try_xact_acquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)', 'TABLE (name text, slot integer)',
             '_try_any(true, namespace, names, true, slots, wanted)', 'the same for the transaction: a slot of each name that has one free'),
            ('claim(namespace text, name text, every interval, window_start timestamptz DEFAULT NULL)', 'timestamptz',
             '_claim(namespace, name, every, window_start, false)', 'claim a window of time once: the window, or NULL if it is claimed'),
            ('token(namespace text, name text)', 'bigint', '_no_token(''token'')', 'not in the portable edition: error 0A000'),
            ('token(namespace text, name text, slot integer)', 'bigint', '_no_token(''token'')', 'not in the portable edition: error 0A000'),
            ('token_key(key bigint)', 'bigint', '_no_token(''token_key'')', 'not in the portable edition: error 0A000')
        ) AS one (signature, result, call, comment)
        UNION ALL
        -- Eight functions by name, and eight by key.
        SELECT concat(prefix, 'xact_' || CASE WHEN is_xact THEN '' END, 'lock', '_shared' || CASE WHEN is_shared THEN '' END,
                      CASE WHEN by_key THEN '_key(key bigint' ELSE '(namespace text, name text' END,
                      ', timeout interval DEFAULT ', CASE prefix WHEN '' THEN 'NULL' ELSE '''0''' END, ', label text DEFAULT NULL' || CASE WHEN by_key THEN '' END, ')'),
               'boolean', format('%s(%L, %L, %s, timeout)', CASE prefix WHEN '' THEN '_lock' ELSE '_try' END, is_shared, is_xact,
                                 CASE WHEN by_key THEN 'NULL, label, key' ELSE 'namespace, name, advisory.key(namespace, name)' END),
               format('take %s %s-level lock%s', CASE WHEN is_shared THEN 'a shared' ELSE 'an exclusive' END, CASE WHEN is_xact THEN 'transaction' ELSE 'session' END,
                      CASE prefix WHEN '' THEN ': true, or error 55P03' ELSE ' if it is free within timeout' END)
        FROM unnest(ARRAY['', 'try_']) AS prefix, unnest(ARRAY[false, true]) AS is_shared, unnest(ARRAY[false, true]) AS is_xact, unnest(ARRAY[false, true]) AS by_key
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE sql COST 1000 AS %L', f.signature, f.result,
                       format(CASE WHEN f.result = 'SETOF text' THEN 'SELECT name FROM advisory.%s' WHEN f.result LIKE 'TABLE%' THEN 'SELECT * FROM advisory.%s'
                                   ELSE 'SELECT advisory.%s' END, f.call));
        EXECUTE format('COMMENT ON FUNCTION advisory.%s IS %L', regexp_replace(f.signature, ' DEFAULT [^,)]+', '', 'g'), f.comment);
    END LOOP;
END $do$;
