-- Every object belongs to the bootstrap superuser: neither the role that creates the extension nor
-- the owner of the database can alter it, attach anything to it, or put anything in its place.  The
-- script runs as the bootstrap superuser unless another superuser runs it.  All privileges are
-- granted after this, because the server keeps a record of those that a script has granted, which
-- would go on naming the previous owner.

DO $$
DECLARE
    member record;
BEGIN
    FOR member IN
        SELECT replace(i.type, '-', ' ') AS type, i.identity
        FROM pg_extension AS e
        JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
            AND d.deptype = 'e'
        CROSS JOIN pg_identify_object(d.classid, d.objid, 0) AS i
        WHERE e.extname = 'advisory_ext' AND current_user <> pg_get_userbyid(10)
            -- From 17 on row types and arrays are members, too.  Their owner is that of the table.
            AND NOT EXISTS (SELECT FROM pg_depend AS i
                            WHERE (i.classid, i.objid, i.deptype) = (d.classid, d.objid, 'i'))
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO %I', member.type, member.identity,
                       pg_get_userbyid(10));
    END LOOP;
END $$;

-- Default privileges do not apply: who has TRIGGER could attach functions, and who has EXECUTE
-- could end leases of others.  But where they take EXECUTE on functions from PUBLIC, that is
-- respected.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT object, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS grantee
        FROM (SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || oid::regclass,
                     relowner, relacl, relnamespace::regnamespace
              FROM pg_class
              UNION ALL
              SELECT 'ROUTINE ' || oid::regprocedure, proowner, proacl, pronamespace::regnamespace
              FROM pg_proc
              UNION ALL
              SELECT 'SCHEMA ' || nspname, nspowner, nspacl, oid::regnamespace
              FROM pg_namespace)
            AS o (object, owner, privileges, namespace), aclexplode(privileges)
        WHERE namespace IN ('advisory'::regnamespace, 'advisory_internal'::regnamespace)
            AND grantee <> owner AND NOT (object LIKE 'ROUTINE %' AND grantee = 0)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', granted.object, granted.grantee);
    END LOOP;
END $$;

-- Everybody reads the views, and calls the functions but these.
GRANT USAGE ON SCHEMA advisory TO PUBLIC;
GRANT SELECT ON advisory.activity, advisory.blockers, advisory.claims, advisory.directory,
    advisory.key_labels, advisory.known_keys, advisory.leaks, advisory.leases, advisory.locks,
    advisory.pressure, advisory.pressure_by_backend, advisory.pressure_by_type,
    advisory.semaphores, advisory.settings, advisory.stats, advisory.waits,
    advisory._unnamed_texts TO PUBLIC;
-- Functions in SQL read these with the rights of the current user.
GRANT SELECT ON advisory_internal.exact_uses, advisory_internal.key_facts,
    advisory_internal.key_ranges, advisory_internal.own_uses, advisory_internal.range_starts
    TO PUBLIC;
REVOKE ALL ON FUNCTION advisory.stats_reset(), advisory.tokens_above(bigint),
    advisory_internal.begin_era(),
    advisory.break_lease(text, text, bigint), advisory.break_lease(text, bigint, bigint),
    advisory.break_lease(text, uuid, bigint), advisory.unclaim(text, text, timestamptz),
    advisory.unclaim(text, bigint, timestamptz), advisory.unclaim(text, uuid, timestamptz)
    FROM PUBLIC;

-- The owner of the database ends leases and windows of others, and may let others do that.
GRANT EXECUTE ON FUNCTION
    advisory.break_lease(text, text, bigint), advisory.break_lease(text, bigint, bigint),
    advisory.break_lease(text, uuid, bigint), advisory.unclaim(text, text, timestamptz),
    advisory.unclaim(text, bigint, timestamptz), advisory.unclaim(text, uuid, timestamptz)
    TO pg_database_owner WITH GRANT OPTION;
-- It can dump and restore the rows, and delete those of names that are no longer used.
GRANT SELECT, INSERT, DELETE ON advisory.fences, advisory._claims TO pg_database_owner;
GRANT SELECT, INSERT ON advisory._leases TO pg_database_owner;
GRANT SELECT, UPDATE ON SEQUENCE advisory._era TO pg_database_owner;
-- It can write labels, restore them, and grant that to others.
GRANT SELECT, INSERT, UPDATE, DELETE ON advisory.key_labels TO pg_database_owner WITH GRANT OPTION;

-- It uses the sequences only as those of the bootstrap superuser.
SELECT advisory_internal.begin_era();
