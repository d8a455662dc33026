-- The owner of the tables and sequences that pg_dump dumps.
--
-- They belong to the role that owns the extension, also if that is no superuser, so that REASSIGN OWNED gives all to the
-- same role.  (The script's placeholder for that role refuses names with quotes, $ or \.)
--
-- The server notes privileges that the script grants as the initial ones, with the owner's name.  Up to 16 REASSIGN OWNED and
-- DROP OWNED do not change that note, and when the role is dropped, pg_dump writes REVOKE for a role that is not
-- there.  Without the note it writes the GRANT.

DO $$
DECLARE
    relation regclass;
BEGIN
    FOREACH relation IN ARRAY ARRAY['advisory.key_labels', 'advisory.fences', 'advisory.claims', 'advisory._leases', 'advisory._era', 'advisory._era_began']::regclass[] LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO %I', relation,
                       (SELECT pg_get_userbyid(extowner) FROM pg_extension WHERE extname = 'advisory_ext'));
        -- The names and tokens of leases are not for everybody; but the owner of the database has to be able to dump them.
        EXECUTE format('GRANT SELECT ON %s TO %I', relation,
                       CASE WHEN relation IN ('advisory._leases'::regclass, 'advisory.fences'::regclass) THEN 'pg_database_owner' ELSE 'public' END);
        IF current_setting('server_version_num')::integer < 170000 THEN
            DELETE FROM pg_catalog.pg_init_privs
            WHERE classoid = 'pg_catalog.pg_class'::regclass::oid AND objoid = relation::oid;
        END IF;
    END LOOP;
END $$;
