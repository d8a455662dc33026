-- advisory_ext, portable edition: locks by name, semaphores, jobs, leases and views for servers
-- where no library can be installed.
--
--     psql -d mydb -v ON_ERROR_STOP=1 -f advisory.sql
--
-- Without ON_ERROR_STOP psql would go on after an error: the first one says what is wrong, all
-- others follow from it, and nothing has changed.  The last statement says what the database has.
--
-- The role that runs it owns the objects.  It needs no privilege but CREATE on the database, and no
-- setting.  To remove all: DROP SCHEMA advisory CASCADE.  To upgrade, run a newer file: rows of
-- tables are kept.  doc/portable.md says what differs from the extension.
--
-- "make portable" joins this file of portable/parts and of sql/surface.  Change those.
--
-- Nobody's search_path may replace an operator.  So functions in PL/pgSQL get a search_path of
-- their own, at the end of this file.  Procedures that COMMIT cannot have one, SQL functions that
-- the planner shall inline must not, and for a few it would take too long: these write operators
-- and functions with their schema.  Other SQL functions without one are called by functions with
-- one only.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL search_path = pg_catalog, advisory, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = off;
SET LOCAL standard_conforming_strings = on;
SET LOCAL quote_all_identifiers = off;

-- Only where pg_locks shows each lock at once, and it can be released.  The first is advisory/load:
-- loads come one after the other.  The keys of the others are this session's own.
DO $$
DECLARE
    name text;
    key bigint;
    is_right boolean;
    is_released boolean := true;
BEGIN
    FOR name, key IN
        SELECT 'pg_' || f, 3110684617034927664 + (i > 1)::integer * (8 * pg_backend_pid() + i)
        FROM unnest('{advisory_xact_lock,advisory_xact_lock_shared,try_advisory_xact_lock,
                      try_advisory_xact_lock_shared,advisory_lock,advisory_lock_shared,
                      try_advisory_lock,try_advisory_lock_shared}'::text[])
            WITH ORDINALITY AS l (f, i)
    LOOP
        BEGIN
            EXECUTE format('SELECT %s(%s)', name, key);
        EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
            CONTINUE;    -- What says no does not lie.
        END;

        is_right := granted AND mode = CASE WHEN name LIKE '%shared' THEN 'ShareLock'
                                            ELSE 'ExclusiveLock' END
            FROM pg_locks
            WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 1
                AND (classid::bigint << 32) | objid::bigint = key;
        IF name NOT LIKE '%xact%' THEN
            EXECUTE format('SELECT pg_advisory_un%s(%s)', substring(name, 'lock.*'), key)
            INTO is_released;
        END IF;
        IF (is_right AND is_released) IS NOT TRUE THEN
            RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
                MESSAGE = name || '() does not do here what it does in PostgreSQL',
                DETAIL = 'pg_locks must show a lock at once, and the session must be able to '
                         'release it. Otherwise two sessions would get the same slot of a '
                         'semaphore, and holds() would be wrong.',
                HINT = 'doc/portable.md says what to use on other servers.';
        END IF;
    END LOOP;
END $$;

SET LOCAL lock_timeout = '100ms';   -- Others cannot use it while this file waits for them.

-- The schema: new, or that of an older file.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'this database has the extension advisory_ext',
            HINT = 'It has all that the portable edition has. '
                   'Never use both editions in one database.';
    ELSIF EXISTS (SELECT FROM pg_namespace
                  WHERE nspname = 'advisory' AND pg_get_userbyid(nspowner) <> current_user) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = 'schema "advisory" belongs to another role',
            HINT = 'Run this file as that role.';
    ELSIF to_regnamespace('advisory') IS NULL THEN
        IF NOT has_database_privilege(current_database(), 'CREATE') THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
                MESSAGE = format('role %I may not create a schema in database %I', current_user,
                                 current_database()),
                HINT = format('Let its owner GRANT CREATE ON DATABASE %I TO %I. Nothing has '
                              'changed. What psql reports after this follows from it.',
                              current_database(), current_user);
        END IF;
        CREATE SCHEMA advisory;
    ELSIF to_regprocedure('advisory.edition()') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'schema "advisory" exists, and is not that of the portable edition';
    END IF;
END $$;

-- What follows, up to the comment on the schema, finds nothing in a new one.

-- Nobody may wait for this file while it waits for him.  So it locks all before it changes
-- anything, in the order in which calls do: views before what they read.  If somebody is in the
-- way, it begins again.  (LOCK TABLE would lock the views of the server, too.)
DO $$
DECLARE
    old record;
BEGIN
    FOR attempts_left IN REVERSE 20..0 LOOP
        BEGIN
            FOR old IN
                SELECT oid::regclass AS name
                FROM pg_class
                WHERE relnamespace = 'advisory'::regnamespace AND relkind IN ('r', 'v')
                    AND relowner = quote_ident(current_user)::regrole
                ORDER BY relkind = 'r' OR relname LIKE '\_%', array_position(
                    '{_blockers,_tree,_edges,_entry,_sets,_shown_leases,key_labels,_keys,_own,_uses,
                      _prepared,_request}', relname::text), relname
            LOOP
                EXECUTE format('ALTER TABLE %s OWNER TO CURRENT_USER', old.name);
            END LOOP;
            EXIT;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempts_left = 0 THEN
                RAISE;
            END IF;
        END;
    END LOOP;
END $$;

-- What an older file has made otherwise: arguments or results without this.
DO $$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT p.oid::regprocedure AS name,
               CASE WHEN proname ~ '^_serve_' THEN ' CASCADE' END AS cascades    -- Triggers.
        FROM pg_proc AS p
        JOIN (VALUES ('slots', '{holders,holders_key,_holders_of}'),
                     ('time_zone', '{claim,run,_window,_begin_job}'),
                     ('wanted', '{_acquire,_take_slot,_raise_not_available}'),
                     ('kind', '{terminate_holder,terminate_holder_key}'),
                     ('only_kind', '{_terminate}'),
                     ('most', '{_check}'), ('instead', '{_pause}'), ('with', '{_end_lease}'),
                     ('max_hold', '{lease,try_lease,await_lease,_lease,_await_lease,_request}'),
                     ('is_for_slots', '{_lease_queue}'), ('lock', '{_mark_lease}'),
                     ('last_token', '{_lease_token}'), ('asked', '{_check_lease_wait}'),
                     -- These have gone.  Every role could call most of them as the owner.
                     ('never', '{_caller,_check_answer,_check_await,_check_length,_check_table,
                        _claim,_commit_synchronously,_describe_claim,_finish_claim,
                        _lock_timeout,_no_token,_raise_lease_taken,_request_claim,
                        _request_lease,_serve_claim,_serve_lease,_utf8}'))
            AS new (has, functions) ON proname = ANY (functions::text[])
        WHERE pronamespace = 'advisory'::regnamespace
            AND concat(pg_get_function_arguments(p.oid), ' -> ', pg_get_function_result(p.oid))
                !~ ('\m' || has || '\M')
    LOOP
        EXECUTE format('DROP ROUTINE %s%s', old.name, old.cascades);
    END LOOP;
END $$;

DROP VIEW IF EXISTS advisory._claim_request, advisory._lease_request;

-- What was there before keeps its privileges: 90-privileges.sql reads this.
DO $$
BEGIN
    IF to_regprocedure('advisory.edition()') IS NOT NULL THEN
        PERFORM set_config('advisory_portable.known', string_agg(oid::text, ' '), true)
        FROM (SELECT objid
              FROM pg_depend
              WHERE (refclassid, refobjid) = ('pg_namespace'::regclass, 'advisory'::regnamespace)
              UNION ALL
              SELECT 'advisory'::regnamespace) AS known (oid);
    END IF;
END $$;
COMMENT ON SCHEMA advisory IS 'advisory locks by name: portable edition of advisory_ext';

CREATE OR REPLACE FUNCTION advisory.edition()
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'portable' $$;
COMMENT ON FUNCTION advisory.edition() IS 'portable, or extension';

CREATE OR REPLACE FUNCTION advisory.version()
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT '1.0' $$;
COMMENT ON FUNCTION advisory.version() IS 'version of the functions of this schema';
