
---- The public functions that are one call

DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT format(signature, prefix, timeout) AS signature, result, format(call, must, is_xact) AS call, format(comment, scope, ending) AS comment
        FROM (VALUES
            -- These in four forms, as the list of forms says.  In calls %1$L says whether it is an error if it is not free.
            ('%slock(namespace text, name text, timeout interval DEFAULT %s)', 'boolean',
                '_lock(%L, false, %L, namespace, name, advisory.key(namespace, name), timeout)', 'take an exclusive %s-level lock%s'),
            ('%slock_shared(namespace text, name text, timeout interval DEFAULT %s)', 'boolean',
                '_lock(%L, true, %L, namespace, name, advisory.key(namespace, name), timeout)', 'take a shared %s-level lock%s'),
            ('%slock_key(key bigint, timeout interval DEFAULT %s, label text DEFAULT NULL)', 'boolean',
                '_lock(%L, false, %L, NULL, label, key, timeout)', 'take an exclusive %s-level lock%s'),
            ('%slock_shared_key(key bigint, timeout interval DEFAULT %s, label text DEFAULT NULL)', 'boolean',
                '_lock(%L, true, %L, NULL, label, key, timeout)', 'take a shared %s-level lock%s'),
            ('%slock_all(namespace text, names text[], timeout interval DEFAULT %s)', 'boolean',
                '_take_all(%L, %L, namespace, names, timeout)', 'lock all of the list for the %s%s'),
            ('%slock_any(namespace text, names text[], wanted integer DEFAULT 1)', 'SETOF text',
                '_try_any(%2$L, namespace, names, false, NULL, wanted)', 'lock up to wanted of the list that are free, for the %s'),
            ('%sacquire(namespace text, name text, slots integer, timeout interval DEFAULT %s)', 'integer',
                '_acquire(%L, %L, namespace, name, slots, timeout)', 'take a slot for the %s%s'),
            ('%sacquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)', 'TABLE (name text, slot integer)',
                '_try_any(%2$L, namespace, names, true, slots, wanted)', 'take a slot of up to wanted names that have one, for the %s'),
            -- These once.
            ('await_lock(namespace text, name text, timeout interval DEFAULT NULL)', 'CALL',
                '_await(false, namespace, name, advisory.key(namespace, name), NULL, timeout, ignored)', 'take an exclusive session-level lock, waiting without a snapshot'),
            ('await_lock_shared(namespace text, name text, timeout interval DEFAULT NULL)', 'CALL',
                '_await(true, namespace, name, advisory.key(namespace, name), NULL, timeout, ignored)', 'take a shared session-level lock, waiting without a snapshot'),
            ('await_lock_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)', 'CALL',
                '_await(false, NULL, label, key, NULL, timeout, ignored)', 'take an exclusive session-level lock, waiting without a snapshot'),
            ('await_lock_shared_key(key bigint, timeout interval DEFAULT NULL, label text DEFAULT NULL)', 'CALL',
                '_await(true, NULL, label, key, NULL, timeout, ignored)', 'take a shared session-level lock, waiting without a snapshot'),
            ('await_acquire(namespace text, name text, slots integer, timeout interval DEFAULT NULL, INOUT slot integer DEFAULT NULL)', 'CALL',
                '_await(false, namespace, name, advisory._slot_key(namespace, name, 0), slots, timeout, slot)', 'take a slot of a semaphore, waiting without a snapshot'),
            ('unlock(namespace text, name text)', 'boolean', '_unlock(false, namespace, name, advisory.key(namespace, name))', 'release one exclusive hold'),
            ('unlock_shared(namespace text, name text)', 'boolean', '_unlock(true, namespace, name, advisory.key(namespace, name))',
                'release one shared hold'),
            ('unlock_key(key bigint)', 'boolean', '_unlock(false, NULL, NULL, key)', 'release one exclusive session-level hold'),
            ('unlock_shared_key(key bigint)', 'boolean', '_unlock(true, NULL, NULL, key)', 'release one shared session-level hold'),
            ('unlock_all(namespace text, name text)', 'integer', '_unlock_all(namespace, ARRAY[name], false)', 'release every hold of the lock'),
            ('unlock_all(namespace text, names text[])', 'integer', '_unlock_all(namespace, names, true)', 'release every hold of each lock'),
            ('holds(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), true)', 'does this session hold the lock?'),
            ('holds_key(key bigint)', 'boolean', '_is_held(key, true)', 'does this session hold the lock?'),
            ('is_locked(namespace text, name text)', 'boolean', '_is_held(advisory.key(namespace, name), false)', 'does any session hold the lock?'),
            ('is_locked_key(key bigint)', 'boolean', '_is_held(key, false)', 'does any session hold the lock?'),
            ('holders(namespace text, name text)', pg_get_function_result('advisory._holders_of'::regproc),
                '_holders_of(namespace, name, advisory.key(namespace, name))', 'sessions that hold the lock, or a slot of this name, or wait for it'),
            ('holders_key(key bigint)', pg_get_function_result('advisory._holders_of'::regproc), '_holders_of(NULL, NULL, key)',
                'sessions that hold the lock, or a slot of this key, or wait for it'),
            ('terminate_holder(namespace text, name text, pid integer, timeout interval DEFAULT ''5s'')', 'boolean',
                '_terminate(namespace, name, advisory.key(namespace, name), pid, timeout)', 'end a session if it still holds the lock, or a slot, of this name'),
            ('terminate_holder_key(key bigint, pid integer, timeout interval DEFAULT ''5s'')', 'boolean',
                '_terminate(NULL, NULL, key, pid, timeout)', 'end a session if it still holds the lock, or a slot, of this key')
        ) AS one (signature, result, call, comment)
        CROSS JOIN (VALUES ('', 'NULL', true, false, 'session', ': true, or error 55P03'), ('try_', '''0''', false, false, 'session', ' if it is free within timeout'),
            ('xact_', 'NULL', true, true, 'transaction', ': true, or error 55P03'), ('try_xact_', '''0''', false, true, 'transaction', ' if it is free within timeout')
        ) AS form (prefix, timeout, must, is_xact, scope, ending)
        WHERE CASE WHEN signature LIKE '%\_any(%' THEN prefix LIKE 'try%' WHEN signature LIKE '\%s%' THEN true ELSE prefix = '' END
    LOOP
        EXECUTE format(CASE f.result WHEN 'CALL' THEN 'CREATE OR REPLACE PROCEDURE advisory.%s LANGUAGE plpgsql AS %3$L'
                                     ELSE 'CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE sql COST 1000 AS %L' END, f.signature, f.result,
            format(CASE WHEN f.result = 'CALL' THEN 'DECLARE ignored integer; BEGIN CALL advisory.%s; END' WHEN f.result = 'SETOF text' THEN 'SELECT name FROM advisory.%s'
                        WHEN f.result LIKE 'TABLE%' THEN 'SELECT * FROM advisory.%s' ELSE 'SELECT advisory.%s' END, f.call));
        EXECUTE format('COMMENT ON ROUTINE advisory.%s IS %L', regexp_replace(f.signature, ' DEFAULT [^,)]+', '', 'g'), f.comment);
    END LOOP;
END $do$;
