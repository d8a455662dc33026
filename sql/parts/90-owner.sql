-- The owner of the tables and sequences that pg_dump dumps.
--
-- They belong to the role that owns the extension, even if that role is not a superuser, so that REASSIGN OWNED gives all of
-- them to the same role.  (The script's placeholder for that role refuses names with quotes, $ or \.)
--
-- The server records privileges that the script grants as initial privileges, with the owner's name.  Up to 16, REASSIGN OWNED
-- and DROP OWNED do not change that record.  After the role is dropped, pg_dump then writes a REVOKE for a role that does not
-- exist.  Without the record, pg_dump writes the GRANT.

DO $$
DECLARE
    relation regclass;
BEGIN
    FOREACH relation IN ARRAY ARRAY['advisory.fences', 'advisory.claims', 'advisory._leases', 'advisory._era', 'advisory._era_began']::regclass[] LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO %I', relation,
                       (SELECT pg_get_userbyid(extowner) FROM pg_extension WHERE extname = 'advisory_ext'));
        -- Not every role may see the names and tokens of leases, but the owner of the database must be able to dump them.
        EXECUTE format('GRANT SELECT ON %s TO %I', relation,
                       CASE WHEN relation IN ('advisory._leases'::regclass, 'advisory.fences'::regclass) THEN 'pg_database_owner' ELSE 'public' END);
        IF current_setting('server_version_num')::integer < 170000 THEN
            DELETE FROM pg_catalog.pg_init_privs
            WHERE classoid = 'pg_catalog.pg_class'::regclass::oid AND objoid = relation::oid;
        END IF;
    END LOOP;
END $$;
