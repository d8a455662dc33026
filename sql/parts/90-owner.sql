-- Every object belongs to the bootstrap superuser: neither the role that creates the extension nor the owner of the database can alter
-- it, attach anything to it, or put anything in its place.  The script runs as the bootstrap superuser unless another superuser runs it.

DO $$
DECLARE
    member record;
BEGIN
    FOR member IN
        SELECT d.classid, d.objid, s.refobjid AS owner, replace(i.type, '-', ' ') AS type, i.identity
        FROM pg_extension AS e
        JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        -- It has no rows for what belongs to the bootstrap superuser.
        JOIN pg_shdepend AS s ON s.classid = d.classid AND s.objid = d.objid AND s.deptype = 'o'
            AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
        CROSS JOIN pg_identify_object(d.classid, d.objid, 0) AS i
        -- Begins with the schema, if there is one.  Unlike the other columns it is never in quotes.
        CROSS JOIN pg_identify_object_as_address(d.classid, d.objid, 0) AS o (type, name)
        -- Another role can add what it owns to its extension: its SECURITY DEFINER functions must not become the superuser's.
        WHERE e.extname = 'advisory_ext' AND (SELECT rolsuper FROM pg_roles WHERE oid = s.refobjid)
            AND o.name[1] IN ('advisory', 'advisory_internal', 'advisory_ext')
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO %I', member.type, member.identity, pg_get_userbyid(10));
        -- The server's record of the privileges that a script has granted keeps the previous owner.  pg_dump compares the privileges
        -- with it, and would write statements that name that role.
        UPDATE pg_init_privs
        SET initprivs = ARRAY(
            SELECT trim(E'\n' FROM replace(replace(E'\n' || item || E'\n',
                        E'\n' || old || '=', new || '='), '/' || old || E'\n', '/' || new))::aclitem
            FROM unnest(initprivs::text[]) WITH ORDINALITY AS items (item, number),
                 (SELECT substr(makeaclitem(0, member.owner, 'SELECT', false)::text, 4),
                         substr(makeaclitem(0, 10, 'SELECT', false)::text, 4)) AS names (old, new)
            ORDER BY number)
        WHERE classoid = member.classid AND objoid = member.objid;
        -- Since 17 that record counts as a reference to the role.
        DELETE FROM pg_shdepend
        WHERE deptype = 'i' AND classid = member.classid AND objid = member.objid AND refobjid = member.owner
            AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database());
    END LOOP;
END $$;

-- Default privileges of the role that runs the script may have granted more.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || c.oid::regclass AS object, grantee, privilege_type
        FROM pg_class AS c, aclexplode(relacl)
        WHERE relnamespace IN ('advisory'::regnamespace, 'advisory_internal'::regnamespace) AND grantee <> relowner
            AND (relkind IN ('r', 'S') OR privilege_type <> 'SELECT')
        UNION ALL
        SELECT 'SCHEMA ' || nspname, grantee, privilege_type
        FROM pg_namespace, aclexplode(nspacl)
        WHERE nspname IN ('advisory', 'advisory_internal') AND privilege_type = 'CREATE' AND grantee <> nspowner
    LOOP
        EXECUTE format('REVOKE %s ON %s FROM %s CASCADE', granted.privilege_type, granted.object,
                       CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(granted.grantee)) END);
    END LOOP;
END $$;

-- The owner of the database can dump and restore the rows, and delete those of names that are no longer used.
GRANT SELECT, INSERT, DELETE ON advisory.fences, advisory._claims TO pg_database_owner;
GRANT SELECT, INSERT ON advisory._leases TO pg_database_owner;
GRANT SELECT, UPDATE ON SEQUENCE advisory._era TO pg_database_owner;
-- It can write labels, restore them, and grant that to others.
GRANT SELECT ON advisory.key_labels TO PUBLIC;
GRANT SELECT, INSERT, UPDATE, DELETE ON advisory.key_labels TO pg_database_owner WITH GRANT OPTION;

-- It uses the sequences only as those of the bootstrap superuser.
SELECT advisory_internal.begin_era();
