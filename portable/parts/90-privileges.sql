-- Privileges.

-- Default privileges do not apply: with INSERT or TRIGGER a role could claim in the name of others.
-- What the owner has granted since is kept.
DO $$
DECLARE
    changed record;
BEGIN
    FOR changed IN
        WITH object (name, oid, owner, privileges, namespace) AS (
            SELECT 'TABLE ' || oid::regclass, oid, relowner, relacl, relnamespace FROM pg_class
            UNION ALL
            SELECT 'ROUTINE ' || oid::regprocedure, oid, proowner, proacl, pronamespace FROM pg_proc
            UNION ALL
            SELECT 'SCHEMA advisory', oid, nspowner, nspacl, oid FROM pg_namespace),
        new AS (
            -- 00-begin.sql has set what was there before.
            SELECT *
            FROM object
            WHERE namespace = 'advisory'::regnamespace
                AND (oid::text = ANY (string_to_array(
                    current_setting('advisory_portable.known', true), ' '))) IS NOT TRUE)
        SELECT c.command
        FROM new,
             LATERAL (
                 -- What default privileges have granted.
                 SELECT format('REVOKE ALL ON %s FROM %s', name,
                               CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
                 FROM aclexplode(privileges)
                 WHERE grantee <> owner AND (grantee <> 0 OR name NOT LIKE 'ROUTINE%')
                 UNION ALL
                 SELECT format('REVOKE ALL ON %s FROM PUBLIC', name)
                 WHERE name ~ 'ROUTINE .*\m(unclaim|break_lease|tokens_above)\('
                 UNION ALL
                 SELECT format('GRANT INSERT, SELECT ON %s TO PUBLIC', name)
                 WHERE name ~ 'TABLE .*\m_request$') AS c (command)
    LOOP
        EXECUTE changed.command;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA advisory TO PUBLIC;

GRANT SELECT ON
    key_labels, claims, known_keys, locks, semaphores, waits, blockers, activity, pressure, leases,
    _shown_leases, _keys, _own, _uses, _prepared, _tree, _sets, _blockers TO PUBLIC;

COMMIT;

-- An error, if the file has failed in a database that had no older one.
SELECT advisory.edition(), advisory.version();
