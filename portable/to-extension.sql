-- advisory_ext: from the portable edition to the extension, in one transaction.
--
--     psql -d mydb -v ON_ERROR_STOP=1 -f to-extension.sql
--
-- Run it as the owner of the database and of the schema, or as a superuser, which it needs if callers made great tokens.  Locks by name and key go on: both editions have the same keys,
-- so sessions that hold them exclude those that use the extension.  Slots of semaphores have other keys: nobody should hold any meanwhile.
-- Calls that wait for a lock meanwhile may end with an error.  Rights that you granted on objects of the schema must be granted again.
--
-- What depends on the schema, such as a trigger that calls advisory.fenced(), must be dropped before, and created again afterwards.  If its
-- column has greater tokens than advisory.token() gives, call advisory.tokens_above(max(column)) first.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
BEGIN
    IF to_regprocedure('advisory.edition()') IS NULL OR EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext') THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'this database does not have the portable edition of advisory_ext';
    END IF;
END $$;
-- From here on, calls that would change a row wait, and then find the extension's table.
LOCK TABLE advisory._claims, advisory.fences, advisory.key_labels IN ACCESS EXCLUSIVE MODE;
ALTER SCHEMA advisory RENAME TO advisory_portable;
CREATE EXTENSION advisory_ext;

INSERT INTO advisory._claims (key, namespace, name, last_window, window_before, claimed_at, claimed_by, role, finished_at)
    SELECT key, namespace, name, last_window, window_before, claimed_at, claimed_by, role, finished_at FROM advisory_portable._claims;
INSERT INTO advisory.fences (key, token) SELECT key, token FROM advisory_portable.fences;
INSERT INTO advisory.key_labels (key, key1, key2, label, note) SELECT key, key1, key2, label, note FROM advisory_portable.key_labels;

-- The extension's tokens must be greater than those that callers made.
DO $$
DECLARE
    highest bigint := (SELECT max(token) FROM advisory.fences);
BEGIN
    PERFORM advisory.xact_lock('advisory_ext', 'to-extension');
    IF highest >= advisory.token('advisory_ext', 'to-extension') THEN
        PERFORM advisory.tokens_above(highest);
    END IF;
END $$;

-- Drop each object of the old schema that nothing else depends on, over and over.  What others use stays, and so does what is not of the
-- portable edition.  Then DROP SCHEMA fails, and its error names that.
DO $$
DECLARE
    old oid := 'advisory_portable'::regnamespace;
    new oid := 'advisory'::regnamespace;
    one text;
    dropped integer;
    objects text;
BEGIN
    LOOP
        dropped := 0;
        FOR one IN SELECT format('%s advisory_portable.%I', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, relname)
                   FROM pg_class WHERE relnamespace = old AND relkind IN ('v', 'r', 'S')
                       AND (relname LIKE '\_%' OR relname IN (SELECT relname FROM pg_class WHERE relnamespace = new))
                   UNION ALL SELECT 'ROUTINE ' || oid::regprocedure FROM pg_proc WHERE pronamespace = old
                       AND (proname ~ '^(_|edition$|version$)' OR proname IN (SELECT proname FROM pg_proc WHERE pronamespace = new)) LOOP
            BEGIN
                EXECUTE 'DROP ' || one;
                dropped := dropped + 1;
            EXCEPTION WHEN dependent_objects_still_exist THEN
                NULL;
            END;
        END LOOP;
        EXIT WHEN dropped = 0;
    END LOOP;
    DROP SCHEMA advisory_portable;
EXCEPTION WHEN dependent_objects_still_exist THEN
    GET STACKED DIAGNOSTICS objects = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist', DETAIL = objects,
        MESSAGE = 'other objects are in schema advisory, or depend on it',
        HINT = 'Drop or move them, run this file again, and create them again.';
END $$;
COMMIT;
