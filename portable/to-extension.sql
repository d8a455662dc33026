-- advisory_ext: from the portable edition to the extension, in one transaction.
--
--     psql -d mydb -v ON_ERROR_STOP=1 -f to-extension.sql
--
-- Run it as the owner of the schema and the database, or as a superuser who trusts that owner,
-- whose functions it calls.  Only a superuser can run it if callers made tokens greater than those
-- of the extension.
--
-- Locks by name and key go on: both editions have the same keys, so sessions that hold them exclude
-- those that use the extension.  Slots of semaphores have other keys, so nobody should hold any
-- meanwhile.  Calls that run meanwhile may end with an error.  Rights that you granted on objects
-- of the schema must be granted again, and what you revoked must be revoked again.
--
-- What depends on the schema, such as a trigger that calls advisory.fenced(), must be dropped
-- before, and created again afterwards.
BEGIN;
SET LOCAL lock_timeout = '5s';   -- Others cannot use the schema while this file waits for them.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
    job text;
BEGIN
    IF to_regprocedure('advisory.edition()') IS NULL
       OR EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'this database does not have the portable edition of advisory_ext';
    ELSIF EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_portable') THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'here the portable edition is an extension of pg_tle',
            HINT = 'Save the tables key_labels, fences and _claims, drop the extension '
                   'advisory_portable, and create advisory_ext.';
    END IF;
    -- Whoever would change a row waits from here on, and then finds the extension's table, or
    -- fails.
    LOCK TABLE advisory._claims, advisory.fences, advisory.key_labels IN ACCESS EXCLUSIVE MODE;
    -- A job with once_per could not record its end.
    SELECT advisory._printable(string_agg(namespace || '/' || name, ', ')) INTO job
    FROM advisory._claims AS c
    WHERE finished_at IS NULL AND claimed_at IS NOT NULL
        AND EXISTS (
            SELECT FROM advisory._keys AS k
            WHERE granted
                AND (k.key = c.key OR k.key & -16384 = advisory._slot_key(namespace, name, 0)));
    IF job IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55006',
            MESSAGE = 'jobs are running: ' || job,
            HINT = 'Run this file when they have ended.';
    END IF;
END $$;
ALTER SCHEMA advisory RENAME TO advisory_portable;
CREATE EXTENSION advisory_ext;

INSERT INTO advisory._claims (
        key, namespace, name, last_window, window_before, claimed_at, claimed_by, role, finished_at,
        every, pid)
    SELECT
        key, namespace, name, last_window, window_before, claimed_at, claimed_by, role, finished_at,
        every, pid
    FROM advisory_portable._claims;
INSERT INTO advisory.fences (key, token) SELECT key, token FROM advisory_portable.fences;
INSERT INTO advisory.key_labels (key, key1, key2, label, note)
    SELECT key, key1, key2, label, note FROM advisory_portable.key_labels;

DO $$
DECLARE
    highest bigint := (SELECT max(token) FROM advisory.fences);
    one text;
    was_dropped boolean := true;
    objects text;
BEGIN
    -- The extension's tokens must be greater than those that callers made.
    PERFORM advisory.xact_lock('advisory_ext', 'to-extension');
    IF highest >= advisory.token('advisory_ext', 'to-extension') THEN
        PERFORM advisory.tokens_above(highest);
    END IF;
    -- Drop each object of the portable edition that nothing else depends on, over and over.  What
    -- others use stays, and then DROP SCHEMA fails, and its error names that.
    WHILE was_dropped LOOP
        was_dropped := false;
        FOR one IN
            SELECT format('%s advisory_portable.%I',
                          CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, relname)
            FROM pg_class AS c
            WHERE relnamespace = 'advisory_portable'::regnamespace AND relkind IN ('v', 'r')
                AND (relname LIKE '\_%'
                     OR to_regclass(format('advisory.%I', relname)) IS NOT NULL)
            UNION ALL
            SELECT 'ROUTINE ' || oid::regprocedure
            FROM pg_proc AS p
            WHERE pronamespace = 'advisory_portable'::regnamespace
                AND (proname LIKE '\_%'
                     OR EXISTS (SELECT FROM pg_proc
                                WHERE proname = p.proname
                                    AND pronamespace = 'advisory'::regnamespace))
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
        DETAIL = advisory_portable._printable(replace(objects, E'\n', '; ')),
        HINT = 'Drop or move them, run this file again, and create them again.';
END $$;
COMMIT;
