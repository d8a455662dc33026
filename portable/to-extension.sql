-- advisory_ext: from the portable edition to the extension, in one transaction.
--
--     psql -d mydb -v ON_ERROR_STOP=1 -f to-extension.sql
--
-- Run it as the owner of the schema and the database, or as a superuser.  It calls no function of
-- that owner, and reads only the rows of four tables.  Only a superuser can run it if callers made
-- tokens greater than those of the extension.
--
-- Locks by name and key go on: both editions have the same keys, so sessions that hold them exclude
-- those that use the extension.  Slots of semaphores have other keys, so nobody should hold any
-- meanwhile.  Calls that run meanwhile may end with an error.  Rights that you granted on objects
-- of the schema must be granted again, and what you revoked must be revoked again.
--
-- What depends on the schema, such as a trigger that calls advisory.fenced(), must be dropped
-- before, and created again afterwards.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;   -- It copies what is committed while it waits.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL standard_conforming_strings = on;
SET LOCAL quote_all_identifiers = off;
SET LOCAL row_security = off;    -- An error instead of rows that are missing.
SET LOCAL lock_timeout = '100ms';

DO $$
DECLARE
    tables regclass[];
    one text;
    job text;
BEGIN
    IF to_regprocedure('advisory.edition()') IS NULL
       OR EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'this database does not have the portable edition of advisory_ext';
    ELSIF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_portable') THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'here the portable edition is an extension of pg_tle',
            HINT = 'Save the tables key_labels, fences, _claims and _leases, drop the extension '
                   'advisory_portable, and create advisory_ext.';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('advisory._leases')
                       AND attname = 'max_hold') THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'this is the portable edition of an older version',
            HINT = 'Run the file advisory.sql of this version first.';
    END IF;
    -- Nobody may wait for this file while it waits for him.  So it locks all before it changes
    -- anything.  If somebody is in the way, it begins again.
    FOR attempts_left IN REVERSE 50..0 LOOP
        BEGIN
            -- Whoever would change a row waits from here on, and then finds the extension's table,
            -- or fails.  _request comes first, as in every call.
            LOCK TABLE advisory._request, advisory._leases, advisory._claims, advisory.fences,
                advisory.key_labels IN ACCESS EXCLUSIVE MODE;
            -- From here on nobody puts another schema or table into the place of these.
            ALTER SCHEMA advisory RENAME TO advisory_portable;
            LOCK TABLE advisory_portable._claims, advisory_portable._leases,
                advisory_portable.fences, advisory_portable.key_labels IN ACCESS EXCLUSIVE MODE;
            -- A view would run what its owner has put into it, and so would a policy, and a column
            -- of a type of theirs.
            tables := '{advisory_portable._claims, advisory_portable._leases,
                        advisory_portable.fences, advisory_portable.key_labels}';
            SELECT relname INTO one
            FROM pg_class AS c
            WHERE oid = ANY (tables)
                AND (relkind <> 'r' OR relrowsecurity
                     OR EXISTS (SELECT FROM pg_attribute
                                WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
                                    AND (atttypid >= 16384 OR attgenerated <> '')));
            IF one IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = '55000',
                    MESSAGE = format('table "%s" is not as the portable edition makes it', one);
            END IF;
            -- The planner computes what is constant in these expressions.
            FOR one IN
                SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
                FROM pg_constraint
                WHERE conrelid = ANY (tables) AND contype IN ('c', 'x')
                UNION ALL
                SELECT 'DROP INDEX ' || indexrelid::regclass
                FROM pg_index
                WHERE indrelid = ANY (tables) AND (indexprs IS NOT NULL OR indpred IS NOT NULL)
                    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
                UNION ALL
                SELECT format('DROP STATISTICS %s.%I', stxnamespace::regnamespace, stxname)
                FROM pg_statistic_ext
                WHERE stxrelid = ANY (tables)
            LOOP
                EXECUTE one;
            END LOOP;
            -- A job with once_per could not record its end.  It holds the lock of its name, or a
            -- slot.
            SELECT string_agg(namespace || '/' || name, ', ') INTO job
            FROM ONLY advisory_portable._claims,
                 LATERAL (SELECT ('x' || encode(substr(sha256(
                     convert_to(namespace, 'UTF8') || zero || convert_to(name, 'UTF8') || zero),
                     1, 8), 'hex'))::bit(64)::bigint FROM decode('00', 'hex') AS zero) AS s (hash)
            WHERE finished_at IS NULL AND claimed_at IS NOT NULL
                AND EXISTS (
                    SELECT FROM pg_locks AS l,
                        LATERAL (SELECT classid::bigint << 32 | objid::bigint) AS k (number)
                    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
                        AND l.database = (SELECT oid FROM pg_database
                                          WHERE datname = current_database())
                        AND (number = key OR number & -16384 = hash & -16384));
            IF job IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = '55006',
                    MESSAGE = 'jobs are running: ' || regexp_replace(job, '[[:cntrl:]]', '?', 'g'),
                    HINT = 'Run this file when they have ended.';
            END IF;
            -- The views and sequences, which are dropped.
            FOR one IN
                SELECT format('ALTER TABLE %s OWNER TO %s', c.oid::regclass, relowner::regrole)
                FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
                WHERE nspname = 'advisory_portable' AND relowner = nspowner
                    AND relkind IN ('v', 'S')
            LOOP
                EXECUTE one;
            END LOOP;
            EXIT;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempts_left = 0 THEN RAISE; END IF;
        END;
    END LOOP;
END $$;
SET LOCAL lock_timeout = '5s';
CREATE EXTENSION advisory_ext;

INSERT INTO advisory._claims (
        key, namespace, name, last_window, window_before, claimed_at, claimed_by, role, role_name,
        server, finished_at, every, pid)
    SELECT
        key, namespace, name, last_window, window_before, claimed_at, claimed_by, role, role_name,
        system, finished_at, every, pid
    FROM ONLY advisory_portable._claims;
INSERT INTO advisory.fences (key, token) SELECT key, token FROM ONLY advisory_portable.fences;
INSERT INTO advisory.key_labels (key, key1, key2, label, note)
    SELECT key, key1, key2, label, note FROM ONLY advisory_portable.key_labels;

DO $$
DECLARE
    -- Of those that were checked, of leases, and of the era.  Older files let every role check a
    -- token that would use up all eras: what is above the half of them does not count.
    highest bigint := greatest(
        (SELECT max(token) FROM advisory.fences WHERE token >> 50 < 4096),
        (SELECT max(token) FROM ONLY advisory_portable._leases WHERE token >> 50 < 4096),
        pg_sequence_last_value('advisory_portable._era') >> 50 << 50);
    -- What the portable edition has made, besides the names of the extension.
    own text[] := '{_acquire,_await,_await_lease,_begin_job,_blockers,_bytes,_can_lock,_check,
        _check_every,_check_job,_check_kept,_check_lease_wait,_check_list,_check_slot,_checked_take,
        _claim_window,_claims,_deadline,_described,_display,_edges,_end_claim,_end_lease,_entries,
        _entry,_era,_exact_lock,_expiry,_has_role,_hash,_here,_holders,_holders_of,_is_awaited,
        _is_held,_is_name,_keys,_last_claim,_lease,_lease_length,_lease_lock,_lease_queue,
        _lease_token,_leased,_leases,_leave_queue,_limit,_lock,_make_token,_mark_lease,
        _microseconds,_milliseconds,_most,_named_locks,_names,_next_wait,_no_key,_not_held,_own,
        _pause,_prepared,_printable,_raise_not_available,_raise_not_inside,_raise_taken,_remaining,
        _renew_lease,_request,_require,_role_here,_serve_request,_server,_server_began,_sets,
        _shown_leases,_sign_request,_slot_key,_sweep_leases,_system,_take,_take_all,_take_lease,
        _take_slots,_take_slots_through,_tell_of_standby,_terminate,_terminate_statement,_timeline,
        _token,_tree,_try_acquire_all,_try_any,_try_once,_unlock,_unlock_all,_unlock_quietly,
        _use_lease,_uses,_wait,_wait_for_lease,_who,_why_held,_why_taken,_window,_window_at,
        _write_lease}';
    one text;
    was_dropped boolean := true;
    objects text;
BEGIN
    -- The extension's tokens must be greater than those that were there before.
    PERFORM advisory.xact_lock('advisory_ext', 'to-extension');
    IF highest >= advisory.token('advisory_ext', 'to-extension') THEN
        PERFORM advisory.tokens_above(highest);
    END IF;
    -- A lease of an older server, or of none, has its whole TTL again.
    INSERT INTO advisory._leases (
            key, slot, slots, token, namespace, name, owner, role, role_name, server, era, ttl,
            lock_delay, acquired_at, renewed_at, expires_at, renewals, max_hold)
        SELECT
            key, slot, slots, token, namespace, name, owner, role, role_name, system,
            CASE server
                WHEN (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
                THEN advisory.token('advisory_ext', 'to-extension') >> 50
                ELSE 0 END,
            ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals, max_hold
        FROM ONLY advisory_portable._leases
        WHERE expires_at > '-infinity';
    -- Drop each object of the portable edition that nothing else depends on, over and over.  What
    -- others use stays, and then DROP SCHEMA fails, and its error names that.
    WHILE was_dropped LOOP
        was_dropped := false;
        FOR one IN
            SELECT format('%s advisory_portable.%I',
                          CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE'
                                       ELSE 'TABLE' END, relname)
            FROM pg_class AS c
            WHERE relnamespace = 'advisory_portable'::regnamespace AND relkind IN ('v', 'r', 'S')
                AND (relname = ANY (own)
                     OR to_regclass(format('advisory.%I', relname)) IS NOT NULL)
            UNION ALL
            SELECT 'ROUTINE ' || oid::regprocedure
            FROM pg_proc AS p
            WHERE pronamespace = 'advisory_portable'::regnamespace
                AND (proname = ANY (own)
                     OR EXISTS (SELECT FROM pg_proc AS e
                                WHERE pronamespace = 'advisory'::regnamespace
                                    AND (e.proname, e.proargtypes) = (p.proname, p.proargtypes)))
        LOOP
            BEGIN
                EXECUTE 'DROP ' || one;
                was_dropped := true;
            EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
            END;
        END LOOP;
    END LOOP;
    DROP SCHEMA advisory_portable;
EXCEPTION WHEN dependent_objects_still_exist THEN
    GET STACKED DIAGNOSTICS objects = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION USING ERRCODE = '2BP01',
        MESSAGE = 'other objects are in schema advisory, or depend on it',
        -- The names of objects may have line breaks, too.
        DETAIL = regexp_replace(replace(objects, E'\n', '; '), '[[:cntrl:]]', '?', 'g'),
        HINT = 'Drop or move them, run this file again, and create them again.';
END $$;
COMMIT;
