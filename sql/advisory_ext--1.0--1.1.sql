\echo Use "ALTER EXTENSION advisory_ext UPDATE TO '1.1'" to load this file. \quit

-- 1.0 to 1.1: tokens, leases and windows; more columns in views; labels belong to the bootstrap superuser.
--
-- Views keep their OIDs, so that objects that users have built on them stay. If the function behind a view returns other columns
-- now, the view temporarily reads nothing. activity, holders(), holders_key() and run() are dropped and created again, because their
-- columns or parameters have changed, and key_labels, so that nothing of what others have attached to it is left. What users have built on
-- them is in the way. Any role may do that, even in another session's temporary schema, so the error says whose it is.

DO $$
DECLARE
    use record;
BEGIN
    SELECT format('%s is used by %s.', pg_describe_object(d.refclassid, d.refobjid, 0),
                  coalesce(CASE view.relkind WHEN 'm' THEN 'materialized ' ELSE '' END || 'view ' || view.oid::regclass || ' of role ' || quote_ident(pg_get_userbyid(view.relowner)),
                           pg_describe_object(d.classid, d.objid, d.objsubid))) AS detail,
           coalesce('DROP ' || CASE view.relkind WHEN 'm' THEN 'MATERIALIZED ' ELSE '' END || 'VIEW ' || view.oid::regclass, 'Drop that') AS hint
    INTO use
    FROM (SELECT 'pg_proc'::regclass AS classid, oid
          FROM pg_proc
          WHERE pronamespace = 'advisory'::regnamespace
              AND proname IN ('holders', 'holders_key', 'run', '_pressure', '_waits', '_leaks', '_stats', '_settings', '_semaphores', '_pressure_by_backend', '_pressure_by_type')
          UNION ALL
          SELECT 'pg_class'::regclass, unnest(ARRAY['advisory.activity', 'advisory.key_labels']::regclass[])
          UNION ALL
          SELECT 'pg_type'::regclass, unnest(ARRAY[oid, typarray]) FROM pg_type
          WHERE typrelid IN ('advisory.activity'::regclass, 'advisory.key_labels'::regclass)) AS changed
    JOIN pg_depend AS d ON d.refclassid = changed.classid AND d.refobjid = changed.oid
        AND (d.deptype = 'n' OR d.classid IN ('pg_publication_rel'::regclass, 'pg_statistic_ext'::regclass))
    LEFT JOIN pg_constraint AS c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid
    LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    LEFT JOIN pg_class AS view ON view.oid = CASE d.classid WHEN 'pg_class'::regclass THEN d.objid ELSE r.ev_class END AND view.relkind IN ('v', 'm')
    WHERE c.conrelid IS DISTINCT FROM 'advisory.key_labels'::regclass
        AND (view.oid IS NULL OR view.oid <> ALL (ARRAY['advisory.waits', 'advisory.leaks', 'advisory.stats', 'advisory.settings', 'advisory.activity',
                                                        'advisory.semaphores', 'advisory.pressure', 'advisory.pressure_by_backend', 'advisory.pressure_by_type']::regclass[]))
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'cannot update extension advisory_ext, because another object depends on one that has changed'
            USING ERRCODE = 'dependent_objects_still_exist', DETAIL = use.detail,
                  HINT = use.hint || ', update the extension, and create it again.';
    END IF;
END $$;

-- ---- The schemas

-- What users do not call.  PUBLIC has no USAGE on it, and views do not need that.
CREATE SCHEMA advisory_internal;
COMMENT ON SCHEMA advisory_internal IS 'what the views of advisory_ext are made of';

-- What belongs to the extension will run as the bootstrap superuser.  So the update stops if the schemas have anything else in them, or
-- if a role that may have changed something is no superuser.  1.0 belonged to the role that created it, which was a superuser then.  Its
-- owner can take objects out of an extension and put others into it.  Default privileges can have let others attach something.
CREATE FUNCTION advisory_internal.check_objects(is_end boolean) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    schemas CONSTANT oid[] := ARRAY['advisory'::regnamespace, 'advisory_internal'::regnamespace];
    other record;
BEGIN
    -- With an older snapshot, a role may still look like a superuser.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'cannot update extension advisory_ext at isolation level "%"', current_setting('transaction_isolation')
            USING ERRCODE = 'active_sql_transaction', HINT = 'Use isolation level "read committed".';
    END IF;

    SELECT pg_describe_object(classid, objid, 0) AS name, pg_get_userbyid(owner) AS owner INTO other
    FROM (SELECT 1, 'pg_namespace'::regclass, oid, nspowner FROM pg_namespace WHERE oid = ANY (schemas)
          UNION ALL SELECT 2, 'pg_class'::regclass, oid, relowner FROM pg_class WHERE relnamespace = ANY (schemas)
          UNION ALL SELECT 3, 'pg_proc'::regclass, oid, proowner FROM pg_proc WHERE pronamespace = ANY (schemas)
          UNION ALL SELECT 4, 'pg_type'::regclass, oid, typowner FROM pg_type WHERE typnamespace = ANY (schemas)
          UNION ALL SELECT 5, 'pg_foreign_server'::regclass, oid, srvowner FROM pg_foreign_server WHERE srvname = 'advisory_ext'
          UNION ALL SELECT 6, 'pg_foreign_data_wrapper'::regclass, oid, fdwowner FROM pg_foreign_data_wrapper WHERE fdwname = 'advisory_ext'
         ) AS o (number, classid, objid, owner)
    WHERE CASE WHEN is_end THEN owner <> 10 ELSE NOT (SELECT rolsuper FROM pg_roles WHERE oid = owner) END
    ORDER BY number LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'cannot update extension advisory_ext, because a role owns something in its schema'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = format('Role %I owns %s.', other.owner, other.name),
                  HINT = 'If it is not a part of the extension, take it out of it and drop or move it. Otherwise save the rows of advisory.key_labels as a role without '
                         'privileges, drop the extension, and create it again. Do not give the objects to a superuser.';
    END IF;

    SELECT pg_describe_object(d.classid, d.objid, 0) AS name INTO other
    FROM pg_depend AS d
    WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = ANY (schemas) AND d.deptype = 'n'
        AND NOT (d.classid IN ('pg_class'::regclass, 'pg_proc'::regclass)
                 AND EXISTS (SELECT FROM pg_depend AS member JOIN pg_extension AS e ON e.oid = member.refobjid
                             WHERE member.classid = d.classid AND member.objid = d.objid AND member.deptype = 'e' AND e.extname = 'advisory_ext'))
    UNION ALL
    SELECT pg_describe_object('pg_trigger'::regclass, t.oid, 0) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE c.relnamespace = ANY (schemas) AND NOT t.tgisinternal
    UNION ALL
    SELECT pg_describe_object('pg_rewrite'::regclass, r.oid, 0) FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
    WHERE c.relnamespace = ANY (schemas) AND r.rulename <> '_RETURN'
    UNION ALL
    SELECT pg_describe_object('pg_policy'::regclass, p.oid, 0) FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
    WHERE c.relnamespace = ANY (schemas)
    UNION ALL
    SELECT pg_describe_object('pg_class'::regclass, attrelid, attnum) FROM pg_attribute
    WHERE attrelid = 'advisory.key_labels'::regclass AND attnum > 5 AND NOT attisdropped
    UNION ALL
    SELECT pg_describe_object('pg_class'::regclass, inhparent, 0) FROM pg_inherits WHERE inhrelid = 'advisory.key_labels'::regclass
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'cannot update extension advisory_ext, because something else is in its schema or attached to it'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = format('It is %s.', other.name),
                  HINT = 'Drop or move it, update the extension, and make it again if it is trusted.';
    END IF;
END $$;

SELECT advisory_internal.check_objects(false);

-- ---- Labels
--
-- A new table has no triggers, constraints, indexes, policies and privileges of others.  What is written to an unlogged
-- table is not replicated: a subscriber has these rows already.

ALTER TABLE advisory.key_labels SET SCHEMA advisory_internal;
CREATE UNLOGGED TABLE advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL,
    note text,
    CONSTRAINT key_labels_one_form CHECK (
        CASE WHEN key IS NOT NULL THEN key1 IS NULL AND key2 IS NULL
             ELSE key1 IS NOT NULL AND key2 IS NOT NULL END),
    CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_unique UNIQUE NULLS NOT DISTINCT (key, key1, key2, label)
);
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE advisory.key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';
COMMENT ON COLUMN advisory.key_labels.key IS 'key, as in pg_advisory_lock(bigint); null for a pair';
COMMENT ON COLUMN advisory.key_labels.key1 IS 'first key of a pair, as in pg_advisory_lock(int, int)';
COMMENT ON COLUMN advisory.key_labels.key2 IS 'second key of a pair';
COMMENT ON COLUMN advisory.key_labels.label IS 'what the lock is called, up to 200 characters';
COMMENT ON COLUMN advisory.key_labels.note IS 'note about the lock, up to 1000 characters';
INSERT INTO advisory.key_labels SELECT key, key1, key2, label, note FROM ONLY advisory_internal.key_labels;
ALTER TABLE advisory.key_labels SET LOGGED;
SELECT pg_extension_config_dump('advisory.key_labels', '');

-- ---- Edition and version

CREATE FUNCTION advisory.edition() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'extension'::text;
COMMENT ON FUNCTION advisory.edition() IS 'which edition is installed: extension or portable';

CREATE FUNCTION advisory.version() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    -- (The library can be newer, until ALTER EXTENSION UPDATE.)
    SELECT extversion FROM pg_extension WHERE extname = 'advisory_ext';
END;
COMMENT ON FUNCTION advisory.version() IS 'installed version of this edition';

-- ---- Internal functions

ALTER FUNCTION advisory._known_keys() SET SCHEMA advisory_internal;
ALTER FUNCTION advisory_internal._known_keys() RENAME TO known_keys;
ALTER FUNCTION advisory._known_as(oid, integer, integer, integer) SET SCHEMA advisory_internal;
ALTER FUNCTION advisory_internal._known_as(oid, integer, integer, integer) RENAME TO known_as;
ALTER FUNCTION advisory._locks_handler() SET SCHEMA advisory_internal;
ALTER FUNCTION advisory_internal._locks_handler() RENAME TO locks_handler;
ALTER FUNCTION advisory._directory() SET SCHEMA advisory_internal;
ALTER FUNCTION advisory_internal._directory() RENAME TO directory;
-- A view's definition has the name that the function had.
CREATE OR REPLACE VIEW advisory.directory AS
    SELECT available, names, max_names, evicted, not_stored, collisions, reason
    FROM advisory_internal.directory();
CREATE OR REPLACE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM advisory_internal.known_keys();
CREATE FUNCTION advisory_internal.pressure(
    OUT status text,
    OUT percent_used double precision,
    OUT headroom bigint,
    OUT locks_used bigint,
    OUT locks_estimated bigint,
    OUT locks_guaranteed bigint,
    OUT percent_of_guaranteed double precision,
    OUT holders_used bigint,
    OUT holders_guaranteed bigint,
    OUT recommended_max_locks_per_transaction integer,
    OUT exact boolean,
    OUT holders_estimated bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'advisory_pressure'
    LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
CREATE OR REPLACE VIEW advisory.pressure AS
    SELECT status, percent_used, headroom, locks_used, locks_estimated, locks_guaranteed,
           percent_of_guaranteed, holders_used, holders_guaranteed,
           recommended_max_locks_per_transaction, exact, holders_estimated
    FROM advisory_internal.pressure();
DROP FUNCTION advisory._pressure(boolean);

-- ---- Locks

DROP FUNCTION advisory.holders(text, text);
DROP FUNCTION advisory.holders(text, bigint);
DROP FUNCTION advisory.holders(text, uuid);
DROP FUNCTION advisory.holders_key(bigint);

CREATE FUNCTION advisory.holders(namespace text, name text)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, text) IS 'sessions that hold the lock, or a slot of this name, or wait for it';
CREATE FUNCTION advisory.holders(namespace text, id bigint)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, bigint) IS 'sessions that hold the lock, or a slot of this name, or wait for it';
CREATE FUNCTION advisory.holders(namespace text, id uuid)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders(text, uuid) IS 'sessions that hold the lock, or a slot of this name, or wait for it';
COMMENT ON FUNCTION advisory.terminate_holder(text, text, integer, interval) IS 'end a session if it still holds the lock, or a slot, of this name';
COMMENT ON FUNCTION advisory.terminate_holder(text, bigint, integer, interval) IS 'end a session if it still holds the lock, or a slot, of this name';
COMMENT ON FUNCTION advisory.terminate_holder(text, uuid, integer, interval) IS 'end a session if it still holds the lock, or a slot, of this name';

CREATE FUNCTION advisory.holders_key(key bigint)
    RETURNS TABLE (
    pid integer, database text, role text, application_name text, client_addr inet, state text,
    kind text, slot integer, mode text, scope text, granted boolean, wait_start timestamptz, waited interval,
    acquired_at timestamptz, held interval, blocked_by integer[], gid text, query text)
    AS 'MODULE_PATHNAME', 'advisory_holders_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory.holders_key(bigint) IS 'sessions that hold the lock, or a slot of this key, or wait for it';
CREATE FUNCTION advisory.terminate_holder_key(key bigint, pid integer, timeout interval DEFAULT '5s')
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_terminate_holder_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.terminate_holder_key(bigint, integer, interval) IS 'end a session if it still holds the lock, or a slot, of this key';

---- A slot of each of the first names that have one free

CREATE FUNCTION advisory.try_acquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, text[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_acquire_any(namespace text, ids bigint[], slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (id bigint, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, bigint[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_acquire_any(namespace text, ids uuid[], slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (id uuid, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, uuid[], integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_acquire_any(namespace text, names text, slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_acquire_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_acquire_any(text, text, integer, integer) IS
    'take free slots of up to wanted of the list, each session-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, names text[], slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, text[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, ids bigint[], slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (id bigint, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, bigint[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, ids uuid[], slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (id uuid, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, uuid[], integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

CREATE FUNCTION advisory.try_xact_acquire_any(namespace text, names text, slots integer, wanted integer DEFAULT 1)
    RETURNS TABLE (name text, slot integer)
    AS 'MODULE_PATHNAME', 'advisory_try_xact_acquire_any_literal'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION advisory.try_xact_acquire_any(text, text, integer, integer) IS
    'take free slots of up to wanted of the list, each transaction-level';

-- ---- Views

ALTER FUNCTION advisory_internal.known_keys() ROWS 60;
ALTER FUNCTION advisory_internal.known_as(oid, integer, integer, integer) STRICT;
-- The next two functions have the same columns.  known_keys shows those up to key2.  The others say which locks are meant: those
-- with an objsubid and a key in these ranges, where a pair is one key.  detail says what else the keys of a lock tell: a table, or a name.

CREATE FUNCTION advisory_internal.key_labels()
    RETURNS TABLE (
        tool text, purpose text, form text, scope text, match text, rule text, source text,
        key bigint, key1 integer, key2 integer,
        first_objsubid integer, last_objsubid integer, first_key bigint, last_key bigint, detail text)
    LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    -- Limits, so that the views work whatever is in the table.
    SELECT left(label, 200), left(note, 1000),
           CASE WHEN is_pair THEN 'int4 pair' ELSE 'bigint' END, NULL, 'exact',
           CASE WHEN is_pair THEN format('(%s, %s)', key1, key2) ELSE key::text END, 'advisory.key_labels',
           key, key1, key2,
           objsubid, objsubid, tag, tag, NULL
    FROM (SELECT *, key IS NULL AS is_pair, CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
                 coalesce(key, (key1::bigint << 32) | (key2 & 4294967295)) AS tag
          FROM ONLY advisory.key_labels
          LIMIT 10000) AS labels
    WHERE tag IS NOT NULL AND label IS NOT NULL
    ORDER BY tag, is_pair, label COLLATE "C";
END;
COMMENT ON FUNCTION advisory_internal.key_labels() IS 'rows of advisory.known_keys: labels';

CREATE FUNCTION advisory_internal.crc32(bytes bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_crc32'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.crc32(bytea) IS 'CRC-32 as zlib computes it';

CREATE OR REPLACE VIEW advisory.settings AS
    SELECT name, setting, unit, boot_val AS default_setting, context, short_desc AS description
    FROM pg_catalog.pg_settings
    -- The call, which the planner makes, loads the library, and that defines the settings.
    WHERE pg_catalog.starts_with(name, 'advisory_ext.') AND advisory_internal.crc32('') OPERATOR(pg_catalog.=) 0;
DROP FUNCTION advisory._settings();

-- The only list of these facts.  Each one names its source, a file of a public repository.  The name of the database is in its own
-- encoding, and null if it is unknown.
CREATE FUNCTION advisory_internal.key_facts(database bytea, is_current boolean)
    RETURNS TABLE (
        tool text, purpose text, form text, scope text, match text, rule text, source text,
        key bigint, key1 integer, key2 integer,
        first_objsubid integer, last_objsubid integer, first_key bigint, last_key bigint, detail text)
    LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000 ROWS 60
BEGIN ATOMIC
    SELECT tool, purpose, 'bigint', scope, 'exact', key::text, source, key, NULL::integer, NULL::integer, 1, 1, key, key, NULL
    FROM (VALUES
        ('Prisma Migrate', 'migration lock', 'session', 72707369::bigint, 'prisma/prisma-engines schema-engine postgres flavour'),
        ('goose', 'migration lock', 'session', 4097083626, 'pressly/goose lock/session_locker_options.go'),
        ('goose', 'migration lock (v3.15.1 to v3.25.0)', 'session', 5887940537704921958, 'pressly/goose lock/session_locker_options.go'),
        ('Kysely', 'migration lock', 'session', 3853314791062309107, 'kysely-org/kysely src/dialect/postgres/postgres-adapter.ts'),
        ('node-pg-migrate', 'migration lock', 'session', 7241865325823964, 'salsita/node-pg-migrate src/runner.ts'),
        ('graphile-migrate', 'migration lock', 'session', 4727445306447283, 'graphile/migrate src/pgReal.ts'),
        ('postgres-migrations', 'migration lock', 'session', -8525285245963000605, 'ThomWright/postgres-migrations src/with-lock.ts'),
        ('tern', 'migration lock', 'session', 9628173550095224, 'jackc/tern migrate/migrate.go'),
        ('pgroll', 'state lock', 'transaction', 12388221127840347, 'xataio/pgroll pkg/state/state.go'),
        ('Atlas', 'migrate execute', 'session', 2686470616, 'ariga/atlas sql/postgres/driver.go'),
        ('Atlas', 'migrate diff', 'session', 361947982, 'ariga/atlas sql/postgres/driver.go'),
        ('DBOS', 'system database migration', 'session', 1234567890, 'dbos-inc/dbos-transact-py dbos/_sys_db_postgres.py'),
        ('authentik', 'migration lock', 'session', 1000, 'goauthentik/authentik lifecycle/migrate.py'),
        ('Evolve', 'migration lock', 'session', 12345, 'lecaillon/Evolve PostgreSQLDatabase.cs'),
        ('Marten', 'default global lock', 'session', 4004, 'JasperFx/marten StoreOptions.cs'),
        ('Airflow', 'migrations', 'session', 1, 'apache/airflow utils/db.py DBLocks'),
        ('Airflow', 'scheduler critical section', 'session', 2, 'apache/airflow utils/db.py DBLocks'),
        ('Concourse', 'database migration', 'session', 5, 'concourse/concourse atc/db/lock/lock.go'),
        ('sqitch', 'deployment', 'session', 75474063, 'sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm'),
        ('pgBackRest', 'backup', 'session', 12340078987004321, 'pgbackrest/pgbackrest src/db/db.h'),
        ('Unleash', 'migration', 'session', 479341, 'Unleash/unleash src/lib/util/db-lock.ts'),
        ('rake-db', 'migration', 'transaction', 8582141715823621641, 'romeerez/orchid-orm packages/rake-db'),
        ('dumbo (Emmett)', 'migration', 'session', 999956789, 'event-driven-io/Pongo packages/dumbo'),
        ('pg-workflows', 'migration', 'transaction', 738291645, 'pg-workflows')
    ) AS fact (tool, purpose, scope, key, source)
    UNION ALL
    -- One key that is computed, mostly from the name of the database.  It is null if it depends on names that are not known here.
    -- Only slonik's is written down, because md5() fails on a server in FIPS mode.
    SELECT tool, purpose, 'bigint', scope, 'formula', rule, source, key, NULL, NULL, 1, 1, key, key, NULL
    FROM (VALUES
        ('Rails', 'schema migration', 'session', '2053462845 * crc32(database)',
         'rails/rails activerecord migration.rb', 2053462845 * advisory_internal.crc32(database)),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0'' || database) * 1486364155)',
         'golang-migrate/migrate database/util.go', advisory_internal.crc32(E'public\\000schema_migrations\\000' || database) * 1486364155 & 4294967295),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0/'' || database) * 1486364155), connected by URL',
         'golang-migrate/migrate database/util.go', advisory_internal.crc32(E'public\\000schema_migrations\\000/' || database) * 1486364155 & 4294967295),
        ('golang-migrate', 'migration lock (public.schema_migrations)', 'session',
         E'uint32(crc32(schema || ''\\0'' || table || ''\\0/'') * 1486364155), by a URL without a database',
         'golang-migrate/migrate database/util.go', advisory_internal.crc32(E'public\\000schema_migrations\\000/') * 1486364155 & 4294967295),
        ('Grafana', 'migration lock', 'session', 'uint32(crc32(database) * 1486364155)',
         'grafana/grafana migrator/advisory_lock_id.go', advisory_internal.crc32(database) * 1486364155 & 4294967295),
        ('sqlx', 'migration lock', 'session', '0x3d32ad9e * crc32(database)',
         'launchbadge/sqlx sqlx-postgres/src/migrate.rs', 1026731422 * advisory_internal.crc32(database)),
        ('slonik', 'migration (migration)', 'session', 'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json(table))',
         'mmkal/slonik-tools packages/migrator', 1230759186),
        ('slonik', 'migration', 'session', 'first 32 bits of md5(''@slonik/migrator advisory lock:'' || json([schema, table]))',
         'mmkal/slonik-tools packages/migrator', NULL),
        ('pg-boss', 'create and migrate (pgboss)', 'transaction', 'first 8 bytes, big-endian, of sha224(database || ''.pgboss.'' || schema)',
         'timgit/pg-boss src/plans.js',
         ('x' || left(encode(sha224(database || '.pgboss.pgboss'), 'hex'), 16))::bit(64)::bigint),
        ('DBOS', 'data source migration (dbos)', 'transaction', 'first 8 bytes, big-endian, of sha256(''dbos.datasource_migrations.'' || schema)',
         'dbos-inc/dbos-transact-ts datasource.ts', advisory.key('dbos.datasource_migrations.dbos')),
        ('pg_partman', 'run_maintenance', 'session or transaction', 'hashtext(''pg_partman run_maintenance'')',
         'pgpartman/pg_partman sql/functions, sql/procedures', hashtext('pg_partman run_maintenance')),
        ('pg_partman', 'run_maintenance procedure (from 5.1.0)', 'session', 'hashtext(''pg_partman run_maintenance procedure'')',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman run_maintenance procedure')),
        ('pg_partman', 'drop_partition_id', 'transaction', 'hashtext(''pg_partman drop_partition_id'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman drop_partition_id')),
        ('pg_partman', 'drop_partition_time', 'transaction', 'hashtext(''pg_partman drop_partition_time'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman drop_partition_time')),
        ('pg_partman', 'undo_partition_native', 'transaction', 'hashtext(''pg_partman undo_partition_native'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman undo_partition_native')),
        ('pg_partman', 'undo_partition', 'transaction', 'hashtext(''pg_partman undo_partition'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman undo_partition')),
        ('pg_partman', 'reapply_constraints', 'session', 'hashtext(''pg_partman reapply_constraints'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman reapply_constraints')),
        ('pg_partman', 'run_analyze', 'session', 'hashtext(''pg_partman run_analyze'')',
         'pgpartman/pg_partman sql/functions', hashtext('pg_partman run_analyze')),
        ('pgmq', 'queue creation', 'transaction', 'hashtext(''pgmq.queue_'' || queue)', 'pgmq/pgmq pgmq.sql', NULL)
    ) AS fact (tool, purpose, scope, rule, source, key)
    UNION ALL
    -- Pairs with a certain first key.
    SELECT tool, purpose, 'int4 pair', scope, 'formula', rule, source, NULL, NULL, NULL, 2, 2,
           key1::bigint << 32, (key1::bigint << 32) | 4294967295, detail
    FROM (VALUES
        ('pg_partman', 'partition_data_proc', 'session or transaction', '(hashtext(''pg_partman partition_data_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman partition_data_proc'), NULL),
        ('pg_partman', 'undo_partition_proc', 'session or transaction', '(hashtext(''pg_partman undo_partition_proc''), hashtext(parent_table))',
         'pgpartman/pg_partman sql/procedures', hashtext('pg_partman undo_partition_proc'), NULL),
        ('pg_repack', 'table being repacked', 'session', '(16185446, table oid - 2^31)',
         'reorg/pg_repack bin/pg_repack.c', 16185446, 'table')
    ) AS fact (tool, purpose, scope, rule, source, key1, detail)
    UNION ALL
    -- Ranges of keys.
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL, objsubid, objsubid, first_key, last_key, detail
    FROM (VALUES
        ('n8n', 'migrations and maintenance', 'bigint', 'transaction', 'range', '1001 to 1009 (1005: migrations)',
         'n8n-io/n8n packages/@n8n/db db-lock.service.ts', 1, 1001, 1009, NULL),
        ('Flyway', 'migration lock', 'bigint', 'session or transaction', 'range',
         '77431708279161 + Java String.hashCode of the quoted history table; within +-2^31',
         'flyway/flyway PostgreSQLAdvisoryLockTemplate.java', 1, 77431708279161 - 2147483648, 77431708279161 + 2147483647, NULL),
        ('DistributedLock.NET', 'name of up to 9 ASCII characters', 'int4 pair', 'session', 'formula',
         '7 bits a character, a 0 bit, then 1 bits', 'madelson/DistributedLock PostgresAdvisoryLockKey.cs',
         2, '-9223372036854775808'::bigint, 9223372036854775807, 'name')
    ) AS fact (tool, purpose, form, scope, match, rule, source, objsubid, first_key, last_key, detail)
    UNION ALL
    -- All keys of some objsubids.  If an extension that uses them is installed in this database, the others are ruled out here.
    SELECT tool, purpose, form, 'any', 'class', rule, source, NULL, NULL, NULL, first_objsubid, last_objsubid,
           CASE WHEN NOT (is_current AND is_one_installed) OR extension IN (SELECT extname FROM pg_extension)
                THEN '-9223372036854775808'::bigint END,
           9223372036854775807, NULL
    FROM (VALUES
        ('pg_auto_failover', 'monitor state', 'objsubid 10 and 11', 'objsubid (10 is Citus''s too)',
         'hapostgres/pg_auto_failover metadata.h', 10, 11, 'pgautofailover'),
        ('Citus', 'distributed execution', 'objsubid 4-10', 'objsubid', 'citusdata/citus resource_lock.h', 4, 10, 'citus'),
        ('Citus', 'distributed execution', 'objsubid 12-16', 'objsubid', 'citusdata/citus resource_lock.h', 12, 16, 'citus')
    ) AS fact (tool, purpose, form, rule, source, first_objsubid, last_objsubid, extension),
    (SELECT count(*) > 0 FROM pg_extension WHERE extname IN ('pgautofailover', 'citus')) AS installed (is_one_installed);
END;
COMMENT ON FUNCTION advisory_internal.key_facts(bytea, boolean) IS 'rows of advisory.known_keys: keys of programs, in a database';
COMMENT ON COLUMN advisory.known_keys.purpose IS 'what the lock is for; or the note of key_labels';

ALTER FOREIGN TABLE advisory._locks ADD COLUMN lock text, ADD COLUMN slots integer;
COMMENT ON FOREIGN TABLE advisory._locks IS 'rows of advisory.locks, advisory.activity and advisory.semaphores';
COMMENT ON COLUMN advisory.locks.kind IS 'lock, semaphore (a slot), queue (waits for a slot), lease or foreign';
COMMENT ON COLUMN advisory.stats.skipped IS 'how often advisory.run() did not run its command';

-- The view of leases.  Their table is made further down.

CREATE FUNCTION advisory_internal.lease_rows()
    RETURNS TABLE (
        namespace text,
        name text,
        owner text,
        token bigint,
        state text,
        ttl interval,
        acquired_at timestamptz,
        renewed_at timestamptz,
        expires_at timestamptz,
        remaining interval,
        renewals bigint,
        key bigint,
        lock text)
    AS 'MODULE_PATHNAME', 'advisory_leases'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.lease_rows() IS 'rows of advisory.leases';

CREATE VIEW advisory.leases AS
    SELECT namespace, name, owner, token, state, ttl, acquired_at, renewed_at, expires_at, remaining, renewals
    FROM advisory_internal.lease_rows();
COMMENT ON VIEW advisory.leases IS 'the leases of this database';
COMMENT ON COLUMN advisory.leases.namespace IS 'namespace; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.leases.name IS 'name; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.leases.owner IS 'the owner as it calls itself, or its role and application, or hidden';
COMMENT ON COLUMN advisory.leases.token IS 'fencing token; shown to the role that took the lease, and its members';
COMMENT ON COLUMN advisory.leases.state IS 'held, expired, or restarted: its whole TTL again after a failover';
COMMENT ON COLUMN advisory.leases.ttl IS 'how long the lease lasts from its last renewal';
COMMENT ON COLUMN advisory.leases.acquired_at IS 'when it was granted';
COMMENT ON COLUMN advisory.leases.renewed_at IS 'when it was last renewed, or granted';
COMMENT ON COLUMN advisory.leases.expires_at IS 'when it expires';
COMMENT ON COLUMN advisory.leases.remaining IS 'how long it lasts from now on; 0 if it has expired';
COMMENT ON COLUMN advisory.leases.renewals IS 'how often it was renewed';
GRANT SELECT ON advisory.leases TO PUBLIC;

CREATE OR REPLACE VIEW advisory.waits AS
    SELECT NULL::integer AS root_pid,
           NULL::integer AS depth,
           NULL::integer[] AS path,
           NULL::integer AS pid,
           NULL::integer AS waits_for_pid,
           NULL::text AS namespace,
           NULL::text AS name,
           NULL::bigint AS key,
           NULL::text AS mode,
           NULL::interval AS waited,
           NULL::text AS state,
           NULL::text AS application_name,
           NULL::text AS query;
DROP FUNCTION advisory._waits();

CREATE FUNCTION advisory_internal.waits()
    RETURNS TABLE (
        root_pid integer,
        depth integer,
        path integer[],
        pid integer,
        waits_for_pid integer,
        namespace text,
        name text,
        key bigint,
        mode text,
        waited interval,
        state text,
        application_name text,
        query text,
        key1 integer,
        key2 integer,
        objsubid integer)
    AS 'MODULE_PATHNAME', 'advisory_waits'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.waits() IS 'rows of advisory.waits';
CREATE OR REPLACE VIEW advisory.waits AS
    SELECT root_pid, depth, path, pid, waits_for_pid, namespace, name, key, mode, waited, state, application_name, query,
           key1, key2, objsubid
    FROM advisory_internal.waits();
COMMENT ON VIEW advisory.waits IS 'who waits for whom, as trees; each session stands once';
COMMENT ON COLUMN advisory.waits.key1 IS 'first key of the pair form, signed; classid of a foreign lock';
COMMENT ON COLUMN advisory.waits.key2 IS 'second key of the pair form, signed; objid of a foreign lock';
COMMENT ON COLUMN advisory.waits.objsubid IS 'as in pg_locks; null for locks of other types';

CREATE OR REPLACE VIEW advisory.leaks AS
    SELECT NULL::integer AS pid,
           NULL::text AS database,
           NULL::text AS role,
           NULL::text AS application_name,
           NULL::inet AS client_addr,
           NULL::text AS state,
           NULL::text AS kind,
           NULL::text AS namespace,
           NULL::text AS name,
           NULL::integer AS slot,
           NULL::bigint AS key,
           NULL::integer AS key1,
           NULL::integer AS key2,
           NULL::text AS mode,
           NULL::timestamptz AS acquired_at,
           NULL::interval AS held,
           NULL::text AS taken_by_role,
           NULL::text AS taken_by_application,
           NULL::text AS reason;
DROP FUNCTION advisory._leaks();

CREATE FUNCTION advisory_internal.leaks()
    RETURNS TABLE (
        pid integer,
        database text,
        role text,
        application_name text,
        client_addr inet,
        state text,
        kind text,
        namespace text,
        name text,
        slot integer,
        key bigint,
        key1 integer,
        key2 integer,
        mode text,
        acquired_at timestamptz,
        held interval,
        taken_by_role text,
        taken_by_application text,
        reason text,
        datid oid,
        high integer,
        low integer,
        objsubid integer,
        transactions bigint)
    AS 'MODULE_PATHNAME', 'advisory_leaks'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory_internal.leaks() IS 'rows of advisory.leaks';
CREATE OR REPLACE VIEW advisory.leaks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace,
           name, slot, key, key1, key2, mode, acquired_at, held, taken_by_role,
           taken_by_application, reason, advisory_internal.known_as(datid, high, low, objsubid) AS known_as,
           transactions
    FROM advisory_internal.leaks();
COMMENT ON COLUMN advisory.leaks.known_as IS 'well-known uses of this key: candidates, not proof; see known_keys';
COMMENT ON COLUMN advisory.leaks.transactions IS 'how many transactions the session has ended since; null if unknown';

CREATE OR REPLACE VIEW advisory.stats AS
    SELECT NULL::text AS namespace,
           NULL::text AS name,
           NULL::bigint AS acquired,
           NULL::bigint AS contended,
           NULL::bigint AS failed,
           NULL::bigint AS timeouts,
           NULL::bigint AS skipped,
           NULL::interval AS wait_total,
           NULL::interval AS wait_max,
           NULL::interval AS hold_total,
           NULL::interval AS hold_max,
           NULL::timestamptz AS last_acquired_at,
           NULL::timestamptz AS stats_since;
DROP FUNCTION advisory._stats();

CREATE FUNCTION advisory_internal.stats()
    RETURNS TABLE (
        namespace text,
        name text,
        acquired bigint,
        contended bigint,
        failed bigint,
        timeouts bigint,
        skipped bigint,
        wait_total interval,
        wait_max interval,
        hold_total interval,
        hold_max interval,
        last_acquired_at timestamptz,
        stats_since timestamptz,
        key bigint)
    AS 'MODULE_PATHNAME', 'advisory_stats'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 1000;
COMMENT ON FUNCTION advisory_internal.stats() IS 'rows of advisory.stats';
CREATE OR REPLACE VIEW advisory.stats AS
    SELECT namespace, name, acquired, contended, failed, timeouts, skipped, wait_total,
           wait_max, hold_total, hold_max, last_acquired_at, stats_since, key
    FROM advisory_internal.stats();
COMMENT ON COLUMN advisory.stats.key IS '64-bit key, to look up a number in a log; null if hidden or evicted';

DROP VIEW advisory.activity;

-- The text without its middle if it is wider than so many columns of a terminal. Names often differ only at their ends.
CREATE FUNCTION advisory_internal.cut(line text, columns integer)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    -- A character takes two columns at most, and none that is shorter than these takes more than one.
    WITH setting AS (
        SELECT getdatabaseencoding() = 'UTF8' AS is_utf8,
               getdatabaseencoding() = 'UTF8' AND pg_client_encoding() = 'UTF8' AS has_ellipsis
    ), sign AS (
        SELECT CASE WHEN has_ellipsis THEN convert_from(E'\\xe280a6', 'UTF8') ELSE '...' END AS mark,
               columns - CASE WHEN has_ellipsis THEN 1 ELSE 3 END AS room
        FROM setting
    ), one AS (
        -- In SQL_ASCII a letter is a byte, and a part of a character would be no text.
        SELECT CASE WHEN getdatabaseencoding() = 'SQL_ASCII' AND ascii(letter) > 127 THEN '?' ELSE letter END AS letter, number,
               CASE WHEN octet_length(letter) > CASE WHEN is_utf8 THEN 2 ELSE 1 END THEN 2 ELSE 1 END AS width
        FROM setting, string_to_table(line, NULL) WITH ORDINALITY AS letters (letter, number)
    ), placed AS (
        SELECT letter, number,
               sum(width) OVER (ORDER BY number) AS from_left,
               sum(width) OVER (ORDER BY number DESC) AS from_right
        FROM one
    )
    SELECT CASE WHEN max(from_left) <= columns THEN line
                ELSE concat(string_agg(letter, '' ORDER BY number) FILTER (WHERE from_left <= (room + 1) / 2), mark,
                            string_agg(letter, '' ORDER BY number) FILTER (WHERE from_right <= room / 2))
           END
    FROM placed, sign
    GROUP BY mark;
END;
COMMENT ON FUNCTION advisory_internal.cut(text, integer) IS 'text cut to so many columns of a terminal';

CREATE VIEW advisory_internal.activity AS
    WITH entry AS MATERIALIZED (
        SELECT kind, key, database, slot, mode, pid, gid, state, granted, wait_start, waited, held, blocked_by,
               CASE WHEN database = current_database() THEN lock ELSE concat(coalesce(database, '(dropped)'), ': ', lock) END AS what,
               CASE WHEN gid IS NOT NULL THEN concat(role, ' (prepared ', gid, ')')
                    WHEN application_name <> '' THEN concat(role, '@', application_name)
                    ELSE role
               END AS who,
               -- A semaphore's slots and its queue are one lock.
               ROW (datid, high, low, CASE kind WHEN 'semaphore' THEN 16383 ELSE objsubid END) AS tag
        FROM advisory._locks
    ), waiting AS MATERIALIZED (
        -- The server shows this to those who may see the state, too.
        SELECT pid
        FROM pg_catalog.pg_stat_get_activity(NULL)
        WHERE wait_event_type = 'Lock' OR wait_event = 'AdvisoryExtLease'
    ), waiter AS (
        SELECT *,
               row_number() OVER in_turn AS place,
               count(*) OVER (PARTITION BY tag) - 10 AS others,
               nth_value(wait_start, 10) OVER in_turn AS tenth_start
        FROM entry
        WHERE NOT granted
        WINDOW in_turn AS (PARTITION BY tag ORDER BY wait_start, pid)
    ), blocker AS (
        -- Whoever is in the way of a later waiter is also in the way of one of these.
        SELECT w.tag, w.place, w.wait_start, blocker_pid
        FROM waiter AS w, unnest(blocked_by) AS blocker_pid
        WHERE place <= 11
    ), holder AS (
        SELECT *, NOT is_blocker AND count(*) OVER (PARTITION BY is_blocker, pid, gid) > 20 AS is_one_of_many
        FROM (SELECT e.tag, what, slot, mode, pid, gid, who, state, held, b.blocker_pid IS NOT NULL AS is_blocker, b.awaited_since
              FROM entry AS e
              LEFT JOIN (SELECT tag, blocker_pid, min(wait_start) AS awaited_since FROM blocker GROUP BY tag, blocker_pid) AS b
                  ON b.tag = e.tag AND b.blocker_pid = coalesce(e.pid, 0)
              WHERE granted) AS held
    ), held_by AS (
        SELECT b.tag, b.place, array_agg(DISTINCT blocker_pid) AS pids
        FROM blocker AS b
        JOIN holder AS h ON h.is_blocker AND h.tag = b.tag AND coalesce(h.pid, 0) = blocker_pid
        GROUP BY b.tag, b.place
    ), shown_waiter AS (
        -- If only waiters ahead of it are in the way, it waits for the same holders as these.
        SELECT w.*, coalesce(pids, min(pids) OVER (PARTITION BY tag)) AS held_by
        FROM waiter AS w
        LEFT JOIN held_by USING (tag, place)
        WHERE place <= 11
    ), lease AS (
        SELECT l.*, w.key IS NOT NULL AS is_awaited, w.since,
               row_number() OVER (ORDER BY w.key IS NULL, w.since, l.acquired_at, l.lock) > 20 AS is_one_of_many
        FROM advisory_internal.lease_rows() AS l
        LEFT JOIN (SELECT key, min(wait_start) AS since
                   FROM entry
                   WHERE NOT granted AND kind = 'lease' AND database = current_database()
                   GROUP BY key) AS w ON w.key = l.key
        WHERE l.state <> 'expired'
    ), line (rank, since, place, lock, slot, mode, pid, who, state, waiting, held, pids) AS (
        SELECT 1, wait_start, place, what, slot, mode, pid, who, state, waited, NULL::interval, held_by
        FROM shown_waiter
        WHERE place <= 10
        UNION ALL
        -- The eleventh stands for the others, of whom it has waited longest.
        SELECT 1, tenth_start, place, concat('(', others, ' more)'), NULL, NULL, NULL, NULL, NULL, waited, NULL, held_by
        FROM shown_waiter
        WHERE place = 11
        UNION ALL
        SELECT CASE WHEN is_blocker THEN 2 ELSE 3 END, awaited_since, NULL, what, slot, mode, pid, who,
               CASE WHEN pid IN (SELECT pid FROM waiting) THEN 'waiting' ELSE state END, NULL, held, NULL
        FROM holder
        WHERE NOT is_one_of_many
        UNION ALL
        SELECT 3, NULL, NULL, concat('(', count(*), ' locks)'), NULL, NULL, pid, who, state, NULL, max(held), NULL
        FROM holder
        WHERE is_one_of_many
        GROUP BY pid, gid, who, state
        UNION ALL
        SELECT CASE WHEN is_awaited THEN 2 ELSE 3 END, since, NULL, lock, NULL, 'lease', NULL, owner, state, NULL,
               clock_timestamp() - acquired_at, NULL
        FROM lease
        WHERE NOT is_one_of_many
        UNION ALL
        SELECT 3, NULL, NULL, concat('(', count(*), ' leases)'), NULL, 'lease', NULL, NULL, NULL, NULL, clock_timestamp() - min(acquired_at), NULL
        FROM lease
        WHERE is_one_of_many
        HAVING count(*) > 0
    ), narrow AS MATERIALIZED (
        SELECT rank, since, place, lock, slot,
               CASE WHEN length(mode) > 9 THEN advisory_internal.cut(mode, 9) ELSE mode END AS mode,
               pid, who,
               replace(replace(replace(state, 'idle in transaction (aborted)', 'failed xact'),
                               'idle in transaction', 'idle in xact'), 'fastpath function call', 'fastpath') AS state,
               date_trunc('second', waiting) AS waiting,
               date_trunc('second', held) AS held, held AS exactly,
               -- Three processes, or two if their numbers are long.
               concat(array_to_string(pids[:shown], ','), ' +' || nullif(cardinality(pids) - shown, 0)) AS blocked_by
        FROM line, LATERAL (SELECT least(cardinality(pids), CASE WHEN length(array_to_string(pids[:3], ',')) > 17 THEN 2 ELSE 3 END)) AS few (shown)
    ), wanted AS (
        -- What a line of 120 columns leaves for lock and who.  No text takes more columns than it has bytes.
        SELECT 120 - 26 - greatest(max(length(slot::text)), 4) - greatest(max(length(mode)), 4) - greatest(max(length(pid::text)), 3)
                   - greatest(max(length(state)), 5) - greatest(max(length(waiting::text)), 7) - greatest(max(length(held::text)), 4)
                   - greatest(max(length(blocked_by)), 10) AS room,
               greatest(max(octet_length(lock)), 4) AS lock,
               greatest(max(octet_length(who)), 3) AS who
        FROM narrow
    ), width AS (
        -- The lock matters more: if both do not fit, who gets 14 columns, or less on a crowded line.
        SELECT lock, room - lock AS who
        FROM (SELECT greatest(least(lock, greatest(room - who, room - 14, room * 3 / 5)), 4) AS lock, room FROM wanted) AS of_lock
    )
    SELECT CASE WHEN octet_length(n.lock) > width.lock THEN advisory_internal.cut(n.lock, width.lock) ELSE n.lock END AS lock,
           slot, mode, pid,
           CASE WHEN octet_length(n.who) > width.who THEN advisory_internal.cut(n.who, width.who) ELSE n.who END AS who,
           state, waiting, held,
           nullif(blocked_by, '') AS blocked_by
    FROM narrow AS n, width
    ORDER BY rank, since, place, exactly DESC NULLS LAST, n.lock, slot, pid;
COMMENT ON VIEW advisory_internal.activity IS 'rows of advisory.activity';

CREATE VIEW advisory.activity AS
    SELECT lock, slot, mode, pid, who, state, waiting, held, blocked_by
    FROM advisory_internal.activity;
COMMENT ON VIEW advisory.activity IS 'waiters for advisory locks, their blockers, and all other holders';
COMMENT ON COLUMN advisory.activity.lock IS 'namespace/name, a label in quotes, or the key; or a number of others';
COMMENT ON COLUMN advisory.activity.slot IS 'slot of a semaphore, from 1';
COMMENT ON COLUMN advisory.activity.mode IS 'exclusive or shared; or lease, which is not held by a session';
COMMENT ON COLUMN advisory.activity.pid IS 'process; null for a prepared transaction, and for a lease';
COMMENT ON COLUMN advisory.activity.who IS 'role@application; the owner of a lease';
COMMENT ON COLUMN advisory.activity.state IS 'state, shortened; waiting: a holder that waits; null if hidden';
COMMENT ON COLUMN advisory.activity.waiting IS 'how long it has waited; null for a holder';
COMMENT ON COLUMN advisory.activity.held IS 'how long it has held the lock; null where unknown';
COMMENT ON COLUMN advisory.activity.blocked_by IS 'up to three holders, and +N for others; 0: a prepared transaction';
GRANT SELECT ON advisory.activity TO PUBLIC;

CREATE FUNCTION advisory_internal.blockers()
    RETURNS TABLE (
        pid integer,
        gid text,
        role text,
        application_name text,
        other_database text,
        state text,
        since timestamptz,
        lock text,
        waiters integer,
        longest_wait interval,
        kind text,
        namespace text,
        name text,
        slot integer,
        key bigint,
        key1 integer,
        key2 integer)
    AS 'MODULE_PATHNAME', 'advisory_blockers'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory_internal.blockers() IS 'rows of advisory.blockers';

CREATE VIEW advisory.blockers AS
    SELECT b.pid,
           advisory_internal.cut(CASE WHEN b.gid IS NOT NULL THEN concat(role, ' (prepared ', b.gid, ')')
                              WHEN application_name <> '' THEN concat(role, '@', application_name)
                              ELSE coalesce(role, l.owner)
                         END, 60) AS who,
           coalesce(b.state, l.state) AS state,
           date_trunc('second', coalesce(b.since, p.prepared, l.acquired_at)) AS since,
           advisory_internal.cut(b.lock, 90) AS lock,
           waiters,
           date_trunc('second', longest_wait) AS longest_wait,
           -- No statement can name a prepared transaction whose identifier is shown with special characters replaced.
           CASE WHEN b.gid IS NOT NULL THEN 'ROLLBACK PREPARED ' || quote_literal(p.gid) || ';' || coalesce(' -- in database ' || quote_ident(other_database), '')
                WHEN b.pid IS NULL AND is_named THEN format('SELECT advisory.break_lease(%L, %L);', b.namespace, b.name)
                -- These two end the session only if it still holds the lock.  Long names would not fit on a line.
                WHEN kind IN ('lock', 'semaphore') AND is_named AND octet_length(b.namespace || b.name) <= 50
                THEN format('SELECT advisory.terminate_holder(%L, %L, %s);', b.namespace, b.name, b.pid)
                WHEN kind IN ('lock', 'semaphore') AND b.key IS NOT NULL
                THEN format('SELECT advisory.terminate_holder_key(%s, %s);', b.key, b.pid)
                WHEN b.pid IS NOT NULL THEN format('SELECT pg_terminate_backend(%s);', b.pid)
           END AS remedy
    FROM advisory_internal.blockers() AS b
    CROSS JOIN LATERAL (SELECT CASE WHEN b.namespace IS NOT NULL THEN advisory.key(b.namespace, b.name) = b.key END) AS named (is_named)
    LEFT JOIN pg_catalog.pg_prepared_xact() AS p ON p.gid = b.gid
    LEFT JOIN advisory_internal.lease_rows() AS l ON b.pid IS NULL AND b.gid IS NULL AND b.kind = 'lease' AND l.key = b.key
    ORDER BY waiters DESC, b.longest_wait DESC NULLS LAST, b.pid;
COMMENT ON VIEW advisory.blockers IS 'what others wait for in the end, and the statement that ends it';
COMMENT ON COLUMN advisory.blockers.pid IS 'process; null for a prepared transaction, and for a lease';
COMMENT ON COLUMN advisory.blockers.who IS 'role@application; the owner of a lease';
COMMENT ON COLUMN advisory.blockers.state IS 'state as in pg_stat_activity; null without the privilege to see it';
COMMENT ON COLUMN advisory.blockers.since IS 'since when in that state; when it was prepared, or granted';
COMMENT ON COLUMN advisory.blockers.lock IS 'what it holds, of which the longest wait is';
COMMENT ON COLUMN advisory.blockers.waiters IS 'how many sessions wait for it, directly or through others';
COMMENT ON COLUMN advisory.blockers.longest_wait IS 'how long the first of them has waited';
COMMENT ON COLUMN advisory.blockers.remedy IS 'statement that ends it; null where no statement can name it';
GRANT SELECT ON advisory.blockers TO PUBLIC;

-- ---- Tokens, leases and windows

-- Fencing tokens: numbers that grow with every holder of a lock, beyond sessions and servers.

-- Which era the tokens are of, packed with its timeline and a part of the system identifier: one value, which no
-- transaction rolls back.  src/core/token.cpp says how it is read.
CREATE SEQUENCE advisory._era MINVALUE 1;
COMMENT ON SEQUENCE advisory._era IS 'era of the fencing tokens; see advisory.token()';
SELECT pg_extension_config_dump('advisory._era', '');

-- When it was seen first on this server, in microseconds since 2000.
CREATE SEQUENCE advisory._era_began MINVALUE -9223372036854775808;
COMMENT ON SEQUENCE advisory._era_began IS 'when the present era of the fencing tokens began';

CREATE FUNCTION advisory_internal.begin_era()
    RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_begin_era'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.begin_era() IS 'record the present era';
REVOKE ALL ON FUNCTION advisory_internal.begin_era() FROM PUBLIC;

---- token, token_key

CREATE FUNCTION advisory.token(namespace text, name text)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token(text, text) IS 'fencing token for a lock that this session holds in exclusive mode';

CREATE FUNCTION advisory.token(namespace text, id bigint)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token(text, bigint) IS 'fencing token for a lock that this session holds in exclusive mode';

CREATE FUNCTION advisory.token(namespace text, id uuid)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token(text, uuid) IS 'fencing token for a lock that this session holds in exclusive mode';

CREATE FUNCTION advisory.token(namespace text, name text, slot integer)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_slot_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token(text, text, integer) IS 'fencing token for a slot of this session';

CREATE FUNCTION advisory.token(namespace text, id bigint, slot integer)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_slot_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token(text, bigint, integer) IS 'fencing token for a slot of this session';

CREATE FUNCTION advisory.token(namespace text, id uuid, slot integer)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_slot_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token(text, uuid, integer) IS 'fencing token for a slot of this session';

CREATE FUNCTION advisory.token_key(key bigint)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'advisory_token_key'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.token_key(bigint) IS 'fencing token for the lock of this key, which this session holds';

CREATE FUNCTION advisory.tokens_above(token bigint)
    RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_tokens_above'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.tokens_above(bigint) IS 'make all later tokens of this database greater than this one';
REVOKE ALL ON FUNCTION advisory.tokens_above(bigint) FROM PUBLIC;

---- Fences: what refuses smaller tokens

-- Written by check_token() alone, for everybody.
CREATE TABLE advisory.fences (
    key bigint PRIMARY KEY,
    token bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';
COMMENT ON COLUMN advisory.fences.key IS 'key of the name';
COMMENT ON COLUMN advisory.fences.token IS 'greatest token that was checked';
SELECT pg_extension_config_dump('advisory.fences', '');

CREATE FUNCTION advisory.check_token(namespace text, name text, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_token_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_token(text, text, bigint) IS 'true if no greater token of this name was checked, or error 55000';

CREATE FUNCTION advisory.check_token(namespace text, id bigint, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_token_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_token(text, bigint, bigint) IS 'true if no greater token of this name was checked, or error 55000';

CREATE FUNCTION advisory.check_token(namespace text, id uuid, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_token_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_token(text, uuid, bigint) IS 'true if no greater token of this name was checked, or error 55000';

CREATE FUNCTION advisory.fenced()
    RETURNS trigger
    AS 'MODULE_PATHNAME', 'advisory_fenced'
    LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION advisory.fenced() IS 'trigger function: refuses a NULL token and one smaller than the row''s';

-- Leases: holds that outlive a session or a server.

-- Written by the functions below alone, for everybody.
CREATE TABLE advisory._leases (
    key bigint PRIMARY KEY,
    token bigint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    role regrole NOT NULL,
    era bigint NOT NULL,
    ttl interval NOT NULL,
    lock_delay interval NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    renewals bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory._leases IS 'rows of advisory.leases';
COMMENT ON COLUMN advisory._leases.key IS 'key of the name';
COMMENT ON COLUMN advisory._leases.token IS 'fencing token of the present owner';
COMMENT ON COLUMN advisory._leases.namespace IS 'namespace';
COMMENT ON COLUMN advisory._leases.name IS 'name';
COMMENT ON COLUMN advisory._leases.owner IS 'the owner as it calls itself';
COMMENT ON COLUMN advisory._leases.role IS 'role that took it';
COMMENT ON COLUMN advisory._leases.era IS 'era of its last renewal';
COMMENT ON COLUMN advisory._leases.ttl IS 'how long the lease lasts from its last renewal';
COMMENT ON COLUMN advisory._leases.lock_delay IS 'how long it stays taken after it has expired';
COMMENT ON COLUMN advisory._leases.acquired_at IS 'when it was granted';
COMMENT ON COLUMN advisory._leases.renewed_at IS 'when it was last renewed, or granted';
COMMENT ON COLUMN advisory._leases.expires_at IS 'when it expires, if no other era begins';
COMMENT ON COLUMN advisory._leases.renewals IS 'how often it was renewed';
SELECT pg_extension_config_dump('advisory._leases', '');

CREATE FUNCTION advisory.lease(namespace text, name text, ttl interval, timeout interval DEFAULT NULL, owner text DEFAULT NULL, lock_delay interval DEFAULT '0', OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lease(text, text, interval, interval, text, interval) IS 'take a lease, which outlives the session, or error 55P03';

CREATE FUNCTION advisory.lease(namespace text, id bigint, ttl interval, timeout interval DEFAULT NULL, owner text DEFAULT NULL, lock_delay interval DEFAULT '0', OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lease(text, bigint, interval, interval, text, interval) IS 'take a lease, which outlives the session, or error 55P03';

CREATE FUNCTION advisory.lease(namespace text, id uuid, ttl interval, timeout interval DEFAULT NULL, owner text DEFAULT NULL, lock_delay interval DEFAULT '0', OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lease(text, uuid, interval, interval, text, interval) IS 'take a lease, which outlives the session, or error 55P03';

CREATE FUNCTION advisory.try_lease(namespace text, name text, ttl interval, timeout interval DEFAULT '0', owner text DEFAULT NULL, lock_delay interval DEFAULT '0', OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_try_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lease(text, text, interval, interval, text, interval) IS 'take a lease, which outlives the session, if free within timeout';

CREATE FUNCTION advisory.try_lease(namespace text, id bigint, ttl interval, timeout interval DEFAULT '0', owner text DEFAULT NULL, lock_delay interval DEFAULT '0', OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_try_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lease(text, bigint, interval, interval, text, interval) IS 'take a lease, which outlives the session, if free within timeout';

CREATE FUNCTION advisory.try_lease(namespace text, id uuid, ttl interval, timeout interval DEFAULT '0', owner text DEFAULT NULL, lock_delay interval DEFAULT '0', OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_try_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lease(text, uuid, interval, interval, text, interval) IS 'take a lease, which outlives the session, if free within timeout';

CREATE FUNCTION advisory.renew_lease(namespace text, name text, token bigint, ttl interval DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_renew_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.renew_lease(text, text, bigint, interval) IS 'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE FUNCTION advisory.renew_lease(namespace text, id bigint, token bigint, ttl interval DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_renew_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.renew_lease(text, bigint, bigint, interval) IS 'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE FUNCTION advisory.renew_lease(namespace text, id uuid, token bigint, ttl interval DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_renew_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.renew_lease(text, uuid, bigint, interval) IS 'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE FUNCTION advisory.end_lease(namespace text, name text, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_end_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.end_lease(text, text, bigint) IS
    'end a lease of this role: false if it is lost';

CREATE FUNCTION advisory.end_lease(namespace text, id bigint, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_end_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.end_lease(text, bigint, bigint) IS 'end a lease of this role: false if it is lost';

CREATE FUNCTION advisory.end_lease(namespace text, id uuid, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_end_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.end_lease(text, uuid, bigint) IS 'end a lease of this role: false if it is lost';

CREATE FUNCTION advisory.check_lease(namespace text, name text, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_lease(text, text, bigint) IS 'true if the lease of this role has this token, or error 55000';

CREATE FUNCTION advisory.check_lease(namespace text, id bigint, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_lease(text, bigint, bigint) IS 'true if the lease of this role has this token, or error 55000';

CREATE FUNCTION advisory.check_lease(namespace text, id uuid, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_lease(text, uuid, bigint) IS 'true if the lease of this role has this token, or error 55000';

CREATE FUNCTION advisory.break_lease(namespace text, name text)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_break_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.break_lease(text, text) IS 'end the lease of any owner, and its lock_delay';
REVOKE ALL ON FUNCTION advisory.break_lease(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advisory.break_lease(text, text) TO pg_database_owner WITH GRANT OPTION;

CREATE FUNCTION advisory.break_lease(namespace text, id bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_break_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.break_lease(text, bigint) IS 'end the lease of any owner, and its lock_delay';
REVOKE ALL ON FUNCTION advisory.break_lease(text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advisory.break_lease(text, bigint) TO pg_database_owner WITH GRANT OPTION;

CREATE FUNCTION advisory.break_lease(namespace text, id uuid)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_break_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.break_lease(text, uuid) IS 'end the lease of any owner, and its lock_delay';
REVOKE ALL ON FUNCTION advisory.break_lease(text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advisory.break_lease(text, uuid) TO pg_database_owner WITH GRANT OPTION;

CREATE PROCEDURE advisory.await_lease(namespace text, name text, ttl interval, timeout interval DEFAULT NULL, owner text DEFAULT NULL, lock_delay interval DEFAULT '0', INOUT token bigint DEFAULT NULL, INOUT expires_at timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lease_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lease(text, text, interval, interval, text, interval, bigint, timestamptz) IS 'take a lease, waiting without a snapshot, or error 55P03';

CREATE PROCEDURE advisory.await_lease(namespace text, id bigint, ttl interval, timeout interval DEFAULT NULL, owner text DEFAULT NULL, lock_delay interval DEFAULT '0', INOUT token bigint DEFAULT NULL, INOUT expires_at timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lease_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lease(text, bigint, interval, interval, text, interval, bigint, timestamptz) IS 'take a lease, waiting without a snapshot, or error 55P03';

CREATE PROCEDURE advisory.await_lease(namespace text, id uuid, ttl interval, timeout interval DEFAULT NULL, owner text DEFAULT NULL, lock_delay interval DEFAULT '0', INOUT token bigint DEFAULT NULL, INOUT expires_at timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lease_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lease(text, uuid, interval, interval, text, interval, bigint, timestamptz) IS 'take a lease, waiting without a snapshot, or error 55P03';

-- Once per window: the last claimed window of time of each name.

-- Only claim(), run() and unclaim() write this table, on behalf of every role.
CREATE TABLE advisory._claims (
    key bigint PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    last_window timestamptz NOT NULL,
    window_before timestamptz NOT NULL,
    claimed_at timestamptz,
    claimed_by text,
    role text NOT NULL,
    finished_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory._claims IS 'rows of advisory.claims';
COMMENT ON COLUMN advisory._claims.key IS 'key of the name';
COMMENT ON COLUMN advisory._claims.namespace IS 'namespace';
COMMENT ON COLUMN advisory._claims.name IS 'name';
COMMENT ON COLUMN advisory._claims.last_window IS 'last claimed window; earlier ones cannot be claimed';
COMMENT ON COLUMN advisory._claims.window_before IS 'window claimed before it; unclaim() goes back to it';
COMMENT ON COLUMN advisory._claims.claimed_at IS 'when it was claimed; null if a later claim was taken back';
COMMENT ON COLUMN advisory._claims.claimed_by IS 'role and application that claimed it';
COMMENT ON COLUMN advisory._claims.role IS 'name of the role that claimed it';
COMMENT ON COLUMN advisory._claims.finished_at IS 'when its work was done';
SELECT pg_extension_config_dump('advisory._claims', '');

CREATE FUNCTION advisory_internal.shown(value text, may_see boolean)
    RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_shown'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.shown(text, boolean) IS 'a text as views show it';

-- A restored dump may contain any text.
CREATE VIEW advisory.claims AS
    SELECT advisory_internal.shown(pg_catalog.left(namespace, 1024), may_see) AS namespace,
           advisory_internal.shown(pg_catalog.left(name, 1024), may_see) AS name,
           CASE WHEN may_see THEN key END AS key,
           last_window,
           claimed_at,
           advisory_internal.shown(pg_catalog.left(claimed_by, 256), may_see) AS claimed_by,
           finished_at
    FROM advisory._claims,
    LATERAL (SELECT pg_catalog.pg_has_role('pg_read_all_stats'::name, 'USAGE'::text)
                    OR EXISTS (SELECT FROM pg_catalog.pg_authid AS a
                               WHERE a.rolname OPERATOR(pg_catalog.=) role AND pg_catalog.pg_has_role(a.oid, 'USAGE'::text))) AS visible (may_see)
    -- That is what unclaim() of the first one leaves.
    WHERE last_window > '-infinity'::timestamptz;
COMMENT ON VIEW advisory.claims IS 'the last claimed window of each name';
COMMENT ON COLUMN advisory.claims.namespace IS 'namespace; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.claims.name IS 'name; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.claims.key IS 'key of the name; null without the privilege to see it';
COMMENT ON COLUMN advisory.claims.last_window IS 'last claimed window; earlier ones cannot be claimed';
COMMENT ON COLUMN advisory.claims.claimed_at IS 'when it was claimed; null if a later claim was taken back';
COMMENT ON COLUMN advisory.claims.claimed_by IS 'role@application that claimed it; or hidden';
COMMENT ON COLUMN advisory.claims.finished_at IS 'when its work was done; null while it runs, and if it failed';
GRANT SELECT ON advisory.claims TO PUBLIC;

CREATE FUNCTION advisory_internal.window(every interval, at timestamptz)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_window'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION advisory_internal.window(interval, timestamptz) IS 'the window that claim() claims at a time';

CREATE FUNCTION advisory.claim(namespace text, name text, every interval, window_start timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, text, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.claim(namespace text, id bigint, every interval, window_start timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, bigint, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.claim(namespace text, id uuid, every interval, window_start timestamptz DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_claim_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.claim(text, uuid, interval, timestamptz) IS 'claim a window of time once: the window, or NULL if it is claimed';

CREATE FUNCTION advisory.unclaim(namespace text, name text, window_start timestamptz)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unclaim_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unclaim(text, text, timestamptz) IS 'take a claim back, so that its window can be claimed again';
REVOKE ALL ON FUNCTION advisory.unclaim(text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advisory.unclaim(text, text, timestamptz) TO pg_database_owner WITH GRANT OPTION;

CREATE FUNCTION advisory.unclaim(namespace text, id bigint, window_start timestamptz)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unclaim_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unclaim(text, bigint, timestamptz) IS 'take a claim back, so that its window can be claimed again';
REVOKE ALL ON FUNCTION advisory.unclaim(text, bigint, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advisory.unclaim(text, bigint, timestamptz) TO pg_database_owner WITH GRANT OPTION;

CREATE FUNCTION advisory.unclaim(namespace text, id uuid, window_start timestamptz)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_unclaim_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.unclaim(text, uuid, timestamptz) IS 'take a claim back, so that its window can be claimed again';
REVOKE ALL ON FUNCTION advisory.unclaim(text, uuid, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advisory.unclaim(text, uuid, timestamptz) TO pg_database_owner WITH GRANT OPTION;

-- ---- Jobs

DROP PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean);
DROP PROCEDURE advisory.run(text, bigint, text, interval, integer, text, boolean);
DROP PROCEDURE advisory.run(text, uuid, text, interval, integer, text, boolean);

CREATE PROCEDURE advisory.run(namespace text, name text, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL, once_window timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean, interval, timestamptz) IS
    'run a command while holding a lock or slot, and once_per window';

CREATE PROCEDURE advisory.run(namespace text, id bigint, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL, once_window timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, bigint, text, interval, integer, text, boolean, interval, timestamptz) IS
    'run a command while holding a lock or slot, and once_per window';

CREATE PROCEDURE advisory.run(namespace text, id uuid, command text, timeout interval DEFAULT '0', slots integer DEFAULT NULL, if_busy text DEFAULT 'skip', INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL, once_window timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, uuid, text, interval, integer, text, boolean, interval, timestamptz) IS
    'run a command while holding a lock or slot, and once_per window';

-- ---- Comments

COMMENT ON COLUMN advisory.known_keys.match IS 'how a lock is recognized: exact, formula, range or class';
COMMENT ON COLUMN advisory.known_keys.key IS 'the key in this database, bigint form; null if there is not one';
COMMENT ON FUNCTION advisory_internal.known_as(oid, integer, integer, integer) IS 'possible uses of a lock tag according to known_keys, labels first';
COMMENT ON COLUMN advisory.locks.blocked_by IS 'processes that block a waiter; 0 is a prepared transaction';
CREATE OR REPLACE VIEW advisory.semaphores AS
    SELECT (array_agg(namespace ORDER BY granted DESC, slot DESC))[1] AS namespace,
           (array_agg(name ORDER BY granted DESC, slot DESC))[1] AS name,
           key,
           max(slots) AS slots,
           (count(*) FILTER (WHERE granted))::integer AS in_use,
           CASE WHEN max(slots) IS NOT NULL THEN greatest(max(slots) - count(*) FILTER (WHERE granted), 0)::integer END AS free,
           (count(*) FILTER (WHERE NOT granted))::integer AS waiting,
           coalesce(array_agg(coalesce(pid, 0) ORDER BY slot) FILTER (WHERE granted), '{}') AS holders,
           coalesce(min(slots) <> max(slots), false) AS slots_disagree
    FROM advisory._locks
    WHERE kind IN ('semaphore', 'queue') AND database = current_database()
    GROUP BY key;
DROP FUNCTION advisory._semaphores();
COMMENT ON VIEW advisory.semaphores IS 'semaphores of this database that have holders of slots, or waiters';
COMMENT ON COLUMN advisory.semaphores.free IS 'slots that are free';
COMMENT ON COLUMN advisory.waits.waits_for_pid IS 'process that blocks it; null for a root, which waits for nothing';
COMMENT ON COLUMN advisory.waits.namespace IS 'namespace of the lock; null if unknown, and for locks of other types';
COMMENT ON COLUMN advisory.waits.name IS 'name or label of the lock; null if unknown, or of another type';
COMMENT ON COLUMN advisory.waits.key IS '64-bit key; null for a pair, and for locks of other types';
COMMENT ON COLUMN advisory.stats.contended IS 'how often a session had to wait for it, whether or not it was granted';
COMMENT ON COLUMN advisory.stats.failed IS 'how often it was not free and the session did not wait';
COMMENT ON COLUMN advisory.stats.wait_total IS 'total time of all waits';
COMMENT ON COLUMN advisory.stats.hold_total IS 'total time of all holds that have ended';
COMMENT ON COLUMN advisory.directory.evicted IS 'names that were removed to make room for others';
COMMENT ON FUNCTION advisory_internal.pressure() IS 'row of advisory.pressure';
COMMENT ON VIEW advisory.pressure IS 'how full the server''s lock table is; one row, in constant time';
COMMENT ON COLUMN advisory.pressure.percent_used IS 'use of the fuller table, in percent of its estimated capacity';
COMMENT ON COLUMN advisory.pressure.locks_estimated IS 'how many locks are estimated to fit in total';
COMMENT ON COLUMN advisory.pressure.percent_of_guaranteed IS 'use of the fuller table, in percent of its guaranteed size';
COMMENT ON COLUMN advisory.pressure.holders_used IS 'entries of the second table: one for each lock and session';
COMMENT ON COLUMN advisory.pressure.holders_guaranteed IS 'how many such entries fit at least';
COMMENT ON COLUMN advisory.pressure.recommended_max_locks_per_transaction IS 'setting with which the status would be ok';
COMMENT ON COLUMN advisory.pressure.exact IS 'false if the use or the growth is unknown';
CREATE FUNCTION advisory_internal.role_name(role oid)
    RETURNS text
    AS 'MODULE_PATHNAME', 'advisory_role_name'
    LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory_internal.role_name(oid) IS 'name of a role; null if the lock table is too full to look it up';

CREATE OR REPLACE VIEW advisory.pressure_by_backend AS
    SELECT l.pid,
           advisory_internal.role_name(coalesce(a.usesysid, p.ownerid)) AS role,
           a.application_name,
           a.state,
           l.locks,
           l.advisory_locks,
           s.session_locks,
           s.session_locks * 0.1 * interval '1 microsecond' AS statement_cost,
           p.gid
    FROM (SELECT pid, virtualtransaction, count(*) AS locks, count(*) FILTER (WHERE locktype = 'advisory') AS advisory_locks,
                 array_agg(transactionid) FILTER (WHERE locktype = 'transactionid') AS xids
          FROM (SELECT DISTINCT pid, virtualtransaction, locktype, database, relation, page, tuple, virtualxid, transactionid,
                       classid, objid, objsubid
                FROM pg_catalog.pg_lock_status()
                WHERE NOT fastpath AND mode <> 'SIReadLock') AS holders
          GROUP BY pid, virtualtransaction) AS l
    LEFT JOIN pg_catalog.pg_stat_get_activity(NULL) AS a ON a.pid = l.pid
    LEFT JOIN pg_catalog.pg_prepared_xact() AS p ON l.pid IS NULL AND p.transaction = ANY (l.xids)
    LEFT JOIN (SELECT pid, count(*) AS locks FROM advisory._locks WHERE granted AND scope = 'session' GROUP BY pid) AS h ON h.pid = l.pid
    CROSS JOIN LATERAL (SELECT CASE WHEN a.state = 'idle' THEN l.advisory_locks
                                    ELSE least(coalesce(h.locks, 0), l.advisory_locks)
                               END AS session_locks) AS s
    ORDER BY l.locks DESC, l.pid;
DROP FUNCTION advisory._pressure_by_backend();
CREATE OR REPLACE VIEW advisory.pressure_by_type AS
    SELECT locktype AS type, count(*) AS locks, sum(holders)::bigint AS holders
    FROM (SELECT locktype, count(*) AS holders
          FROM (SELECT DISTINCT pid, virtualtransaction, locktype, database, relation, page, tuple, virtualxid, transactionid,
                       classid, objid, objsubid
                FROM pg_catalog.pg_lock_status()
                WHERE NOT fastpath AND mode <> 'SIReadLock') AS holders
          GROUP BY locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid) AS l
    GROUP BY locktype
    ORDER BY locks DESC, type;
DROP FUNCTION advisory._pressure_by_type();
COMMENT ON VIEW advisory.pressure_by_backend IS 'use of the lock table by session and prepared transaction';
COMMENT ON COLUMN advisory.pressure_by_backend.state IS 'state as in pg_stat_activity; null without the privilege to see it';
COMMENT ON COLUMN advisory.pressure_by_backend.session_locks IS 'session-level locks among those, as far as known';
COMMENT ON COLUMN advisory.pressure_by_backend.statement_cost IS 'estimated time that they cost at the end of each transaction';
COMMENT ON VIEW advisory.pressure_by_type IS 'use of the server''s shared lock table by type of lock, largest first';
COMMENT ON COLUMN advisory.pressure_by_type.type IS 'type of the lock, as in pg_locks.locktype';
COMMENT ON COLUMN advisory.pressure_by_type.holders IS 'entries of the second table for locks of that type';
COMMENT ON VIEW advisory.settings IS 'the settings of advisory_ext, also before the library is loaded';
COMMENT ON COLUMN advisory.settings.default_setting IS 'default value';
COMMENT ON COLUMN advisory.settings.context IS 'context required to set it, as in pg_settings';
COMMENT ON COLUMN advisory.leaks.name IS 'name or label of the lock; null if unknown';
COMMENT ON COLUMN advisory.leaks.namespace IS 'namespace of the lock; null if unknown';
COMMENT ON COLUMN advisory.locks.known_as IS 'well-known uses of this key: candidates, not proof; see known_keys';
COMMENT ON COLUMN advisory.locks.name IS 'name or label of the lock; null if unknown';
COMMENT ON COLUMN advisory.locks.namespace IS 'namespace of the lock; null if unknown';
COMMENT ON COLUMN advisory.pressure.holders_estimated IS 'entries of the second table when the lock table is full';
COMMENT ON COLUMN advisory.pressure.locks_used IS 'locks of all types that are held or waited for, without fast path';
COMMENT ON COLUMN advisory.semaphores.name IS 'name; null if unknown';
COMMENT ON COLUMN advisory.semaphores.namespace IS 'namespace; null if unknown';
COMMENT ON COLUMN advisory.settings.setting IS 'current value';
COMMENT ON FUNCTION advisory.acquire(pg_catalog.text, bigint, integer, interval) IS 'take a slot of a semaphore for the session, or error 55P03';
COMMENT ON FUNCTION advisory.acquire(pg_catalog.text, pg_catalog.text, integer, interval) IS 'take a slot of a semaphore for the session, or error 55P03';
COMMENT ON FUNCTION advisory.acquire(pg_catalog.text, pg_catalog.uuid, integer, interval) IS 'take a slot of a semaphore for the session, or error 55P03';
COMMENT ON FUNCTION advisory.is_locked(pg_catalog.text, bigint) IS 'does any session hold the lock: an observation, never a guard';
COMMENT ON FUNCTION advisory.is_locked(pg_catalog.text, pg_catalog.text) IS 'does any session hold the lock: an observation, never a guard';
COMMENT ON FUNCTION advisory.is_locked(pg_catalog.text, pg_catalog.uuid) IS 'does any session hold the lock: an observation, never a guard';
COMMENT ON FUNCTION advisory.is_locked_key(bigint) IS 'does any session hold the lock: an observation, never a guard';
COMMENT ON FUNCTION advisory.try_acquire(pg_catalog.text, bigint, integer, interval) IS 'take a slot for the session if one is free within timeout, or NULL';
COMMENT ON FUNCTION advisory.try_acquire(pg_catalog.text, pg_catalog.text, integer, interval) IS 'take a slot for the session if one is free within timeout, or NULL';
COMMENT ON FUNCTION advisory.try_acquire(pg_catalog.text, pg_catalog.uuid, integer, interval) IS 'take a slot for the session if one is free within timeout, or NULL';
COMMENT ON FUNCTION advisory.try_lock_any(pg_catalog.text, bigint[], integer) IS 'lock up to wanted of the list that are free, for the session';
COMMENT ON FUNCTION advisory.try_lock_any(pg_catalog.text, pg_catalog.text, integer) IS 'lock up to wanted of the list that are free, for the session';
COMMENT ON FUNCTION advisory.try_lock_any(pg_catalog.text, pg_catalog.text[], integer) IS 'lock up to wanted of the list that are free, for the session';
COMMENT ON FUNCTION advisory.try_lock_any(pg_catalog.text, pg_catalog.uuid[], integer) IS 'lock up to wanted of the list that are free, for the session';
COMMENT ON FUNCTION advisory.try_xact_acquire(pg_catalog.text, bigint, integer, interval) IS 'take a slot for the transaction if one is free within timeout, or NULL';
COMMENT ON FUNCTION advisory.try_xact_acquire(pg_catalog.text, pg_catalog.text, integer, interval) IS 'take a slot for the transaction if one is free within timeout, or NULL';
COMMENT ON FUNCTION advisory.try_xact_acquire(pg_catalog.text, pg_catalog.uuid, integer, interval) IS 'take a slot for the transaction if one is free within timeout, or NULL';
COMMENT ON FUNCTION advisory.try_xact_lock_any(pg_catalog.text, bigint[], integer) IS 'lock up to wanted of the list that are free, for the transaction';
COMMENT ON FUNCTION advisory.try_xact_lock_any(pg_catalog.text, pg_catalog.text, integer) IS 'lock up to wanted of the list that are free, for the transaction';
COMMENT ON FUNCTION advisory.try_xact_lock_any(pg_catalog.text, pg_catalog.text[], integer) IS 'lock up to wanted of the list that are free, for the transaction';
COMMENT ON FUNCTION advisory.try_xact_lock_any(pg_catalog.text, pg_catalog.uuid[], integer) IS 'lock up to wanted of the list that are free, for the transaction';
COMMENT ON FUNCTION advisory.wait_tree() IS 'who waits for whom, as indented text';
COMMENT ON FUNCTION advisory.xact_acquire(pg_catalog.text, bigint, integer, interval) IS 'take a slot of a semaphore for the transaction, or error 55P03';
COMMENT ON FUNCTION advisory.xact_acquire(pg_catalog.text, pg_catalog.text, integer, interval) IS 'take a slot of a semaphore for the transaction, or error 55P03';
COMMENT ON FUNCTION advisory.xact_acquire(pg_catalog.text, pg_catalog.uuid, integer, interval) IS 'take a slot of a semaphore for the transaction, or error 55P03';
COMMENT ON FUNCTION advisory.key(pg_catalog.text, bigint) IS 'key of a named lock, the same that pg_advisory_lock() takes';
COMMENT ON FUNCTION advisory.key(pg_catalog.text, pg_catalog.uuid) IS 'key of a named lock, the same that pg_advisory_lock() takes';
COMMENT ON FUNCTION advisory.lock(pg_catalog.text, pg_catalog.text, interval) IS 'take an exclusive session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.lock(pg_catalog.text, bigint, interval) IS 'take an exclusive session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.lock(pg_catalog.text, pg_catalog.uuid, interval) IS 'take an exclusive session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_lock(pg_catalog.text, pg_catalog.text, interval) IS 'take an exclusive session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_lock(pg_catalog.text, bigint, interval) IS 'take an exclusive session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_lock(pg_catalog.text, pg_catalog.uuid, interval) IS 'take an exclusive session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.lock_shared(pg_catalog.text, pg_catalog.text, interval) IS 'take a shared session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.lock_shared(pg_catalog.text, bigint, interval) IS 'take a shared session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.lock_shared(pg_catalog.text, pg_catalog.uuid, interval) IS 'take a shared session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_lock_shared(pg_catalog.text, pg_catalog.text, interval) IS 'take a shared session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_lock_shared(pg_catalog.text, bigint, interval) IS 'take a shared session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_lock_shared(pg_catalog.text, pg_catalog.uuid, interval) IS 'take a shared session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.xact_lock(pg_catalog.text, pg_catalog.text, interval) IS 'take an exclusive transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock(pg_catalog.text, bigint, interval) IS 'take an exclusive transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock(pg_catalog.text, pg_catalog.uuid, interval) IS 'take an exclusive transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_xact_lock(pg_catalog.text, pg_catalog.text, interval) IS 'take an exclusive transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock(pg_catalog.text, bigint, interval) IS 'take an exclusive transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock(pg_catalog.text, pg_catalog.uuid, interval) IS 'take an exclusive transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.xact_lock_shared(pg_catalog.text, pg_catalog.text, interval) IS 'take a shared transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock_shared(pg_catalog.text, bigint, interval) IS 'take a shared transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock_shared(pg_catalog.text, pg_catalog.uuid, interval) IS 'take a shared transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_xact_lock_shared(pg_catalog.text, pg_catalog.text, interval) IS 'take a shared transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock_shared(pg_catalog.text, bigint, interval) IS 'take a shared transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock_shared(pg_catalog.text, pg_catalog.uuid, interval) IS 'take a shared transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.unlock(pg_catalog.text, pg_catalog.text) IS 'release one exclusive session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.unlock(pg_catalog.text, bigint) IS 'release one exclusive session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.unlock(pg_catalog.text, pg_catalog.uuid) IS 'release one exclusive session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.unlock_shared(pg_catalog.text, pg_catalog.text) IS 'release one shared session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.unlock_shared(pg_catalog.text, bigint) IS 'release one shared session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.unlock_shared(pg_catalog.text, pg_catalog.uuid) IS 'release one shared session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.holds(pg_catalog.text, bigint) IS 'does this session hold the lock, in any mode and scope';
COMMENT ON FUNCTION advisory.holds(pg_catalog.text, pg_catalog.uuid) IS 'does this session hold the lock, in any mode and scope';
COMMENT ON FUNCTION advisory.hold_count(pg_catalog.text, pg_catalog.text) IS 'how often this session holds the lock through this extension';
COMMENT ON FUNCTION advisory.hold_count(pg_catalog.text, bigint) IS 'how often this session holds the lock through this extension';
COMMENT ON FUNCTION advisory.hold_count(pg_catalog.text, pg_catalog.uuid) IS 'how often this session holds the lock through this extension';
COMMENT ON FUNCTION advisory.lock_key(bigint, interval, pg_catalog.text) IS 'take an exclusive session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_lock_key(bigint, interval, pg_catalog.text) IS 'take an exclusive session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.lock_shared_key(bigint, interval, pg_catalog.text) IS 'take a shared session-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_lock_shared_key(bigint, interval, pg_catalog.text) IS 'take a shared session-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.xact_lock_key(bigint, interval, pg_catalog.text) IS 'take an exclusive transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_xact_lock_key(bigint, interval, pg_catalog.text) IS 'take an exclusive transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.xact_lock_shared_key(bigint, interval, pg_catalog.text) IS 'take a shared transaction-level lock: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_xact_lock_shared_key(bigint, interval, pg_catalog.text) IS 'take a shared transaction-level lock if it is free within timeout';
COMMENT ON FUNCTION advisory.unlock_key(bigint) IS 'release one exclusive session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.unlock_shared_key(bigint) IS 'release one shared session-level hold; false if there is none';
COMMENT ON FUNCTION advisory.lock_all(pg_catalog.text, pg_catalog.text[], interval) IS 'lock all of the list for the session: true, or error 55P03 and none';
COMMENT ON FUNCTION advisory.lock_all(pg_catalog.text, bigint[], interval) IS 'lock all of the list for the session: true, or error 55P03 and none';
COMMENT ON FUNCTION advisory.lock_all(pg_catalog.text, pg_catalog.uuid[], interval) IS 'lock all of the list for the session: true, or error 55P03 and none';
COMMENT ON FUNCTION advisory.lock_all(pg_catalog.text, pg_catalog.text, interval) IS 'lock all of the list for the session: true, or error 55P03 and none';
COMMENT ON FUNCTION advisory.try_lock_all(pg_catalog.text, pg_catalog.text[], interval) IS 'lock all of the list for the session if all are free within timeout';
COMMENT ON FUNCTION advisory.try_lock_all(pg_catalog.text, bigint[], interval) IS 'lock all of the list for the session if all are free within timeout';
COMMENT ON FUNCTION advisory.try_lock_all(pg_catalog.text, pg_catalog.uuid[], interval) IS 'lock all of the list for the session if all are free within timeout';
COMMENT ON FUNCTION advisory.try_lock_all(pg_catalog.text, pg_catalog.text, interval) IS 'lock all of the list for the session if all are free within timeout';
COMMENT ON FUNCTION advisory.xact_lock_all(pg_catalog.text, pg_catalog.text[], interval) IS 'lock all of the list for the transaction: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock_all(pg_catalog.text, bigint[], interval) IS 'lock all of the list for the transaction: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock_all(pg_catalog.text, pg_catalog.uuid[], interval) IS 'lock all of the list for the transaction: true, or error 55P03';
COMMENT ON FUNCTION advisory.xact_lock_all(pg_catalog.text, pg_catalog.text, interval) IS 'lock all of the list for the transaction: true, or error 55P03';
COMMENT ON FUNCTION advisory.try_xact_lock_all(pg_catalog.text, pg_catalog.text[], interval) IS 'lock all of the list for the transaction if free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock_all(pg_catalog.text, bigint[], interval) IS 'lock all of the list for the transaction if free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock_all(pg_catalog.text, pg_catalog.uuid[], interval) IS 'lock all of the list for the transaction if free within timeout';
COMMENT ON FUNCTION advisory.try_xact_lock_all(pg_catalog.text, pg_catalog.text, interval) IS 'lock all of the list for the transaction if free within timeout';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text, pg_catalog.text) IS 'release every session-level hold of the lock, in both modes';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text, bigint) IS 'release every session-level hold of the lock, in both modes';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text, pg_catalog.uuid) IS 'release every session-level hold of the lock, in both modes';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text, pg_catalog.text[]) IS 'release every session-level hold of each lock in the list';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text, bigint[]) IS 'release every session-level hold of each lock in the list';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text, pg_catalog.uuid[]) IS 'release every session-level hold of each lock in the list';
COMMENT ON FUNCTION advisory.unlock_all(pg_catalog.text) IS 'release all session-level holds of the namespace taken by name';
COMMENT ON FUNCTION advisory.release(pg_catalog.text, pg_catalog.text, integer) IS 'give back a slot of this session (NULL: the one that it took last)';
COMMENT ON FUNCTION advisory.release(pg_catalog.text, bigint, integer) IS 'give back a slot of this session (NULL: the one that it took last)';
COMMENT ON FUNCTION advisory.release(pg_catalog.text, pg_catalog.uuid, integer) IS 'give back a slot of this session (NULL: the one that it took last)';
COMMENT ON PROCEDURE advisory.await_lock(pg_catalog.text, pg_catalog.text, interval) IS 'take an exclusive session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock(pg_catalog.text, bigint, interval) IS 'take an exclusive session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock(pg_catalog.text, pg_catalog.uuid, interval) IS 'take an exclusive session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock_key(bigint, interval, pg_catalog.text) IS 'take an exclusive session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock_shared(pg_catalog.text, pg_catalog.text, interval) IS 'take a shared session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock_shared(pg_catalog.text, bigint, interval) IS 'take a shared session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock_shared(pg_catalog.text, pg_catalog.uuid, interval) IS 'take a shared session-level lock, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_lock_shared_key(bigint, interval, pg_catalog.text) IS 'take a shared session-level lock, waiting without a snapshot';
COMMENT ON FUNCTION advisory.can_fit(integer) IS 'would n more locks fit into the lock table? an estimate for now';
COMMENT ON PROCEDURE advisory.await_acquire(pg_catalog.text, bigint, integer, interval, integer) IS 'take a slot of a semaphore, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_acquire(pg_catalog.text, pg_catalog.text, integer, interval, integer) IS 'take a slot of a semaphore, waiting without a snapshot';
COMMENT ON PROCEDURE advisory.await_acquire(pg_catalog.text, pg_catalog.uuid, integer, interval, integer) IS 'take a slot of a semaphore, waiting without a snapshot';
COMMENT ON SCHEMA advisory IS 'advisory_ext: named advisory locks, semaphores, leases, and views';
COMMENT ON VIEW advisory.directory IS 'state of the name table, which all sessions of the server share';
COMMENT ON VIEW advisory.known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';
COMMENT ON VIEW advisory.locks IS 'every advisory lock on the server, with its name, holders and waiters';
COMMENT ON VIEW advisory.stats IS 'statistics of the locks of this database, one row for each name';
COMMENT ON COLUMN advisory.stats.name IS 'name or label; or hidden; <evicted>: the sums of evicted names';

COMMENT ON COLUMN advisory.locks.client_addr IS 'address of the client; null for a socket, and if hidden';
COMMENT ON COLUMN advisory.locks.state IS 'state as in pg_stat_activity; null if hidden';
COMMENT ON COLUMN advisory.locks.acquired_at IS 'when it was acquired; null for the built-in functions';
COMMENT ON COLUMN advisory.semaphores.slots IS 'how many slots it has, as its users say: the largest number';
COMMENT ON COLUMN advisory.semaphores.holders IS 'process of each taken slot, in order; 0 is a prepared transaction';
COMMENT ON COLUMN advisory.waits.state IS 'state as in pg_stat_activity; null if hidden';
COMMENT ON COLUMN advisory.stats.namespace IS 'namespace; null for the label of a key; or hidden';
COMMENT ON VIEW advisory.leaks IS 'session-level locks that look forgotten, and why';
COMMENT ON COLUMN advisory.leaks.taken_by_role IS 'current user then; null for the built-in functions';
COMMENT ON COLUMN advisory.leaks.taken_by_application IS 'application_name then; null for the built-in functions';
COMMENT ON COLUMN advisory.pressure.status IS 'ok, warning or critical; see pressure_warning and pressure_critical';
COMMENT ON COLUMN advisory.pressure.locks_guaranteed IS 'how many it holds at least, by max_locks_per_transaction';

-- ---- Owners and privileges, as in the install script
--
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

-- ALTER TABLE locks each relation, so nobody attaches anything any more, and what was attached meanwhile is seen.
DO $$
DECLARE
    relation regclass;
BEGIN
    FOR relation IN SELECT oid FROM pg_class WHERE relnamespace = 'advisory'::regnamespace AND relkind IN ('r', 'v') AND relowner = 10
    LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO %I', relation, pg_get_userbyid(10));
    END LOOP;
END $$;
SELECT advisory_internal.check_objects(true);
DROP FUNCTION advisory_internal.check_objects(boolean);

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
            AND c.oid <> 'advisory_internal.key_labels'::regclass
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

-- Those who could read or write labels still can.  That must not become an initial privilege, as the GRANTs here would make it.
DO $$
DECLARE
    granted record;
    initial CONSTANT aclitem[] := (SELECT initprivs FROM pg_init_privs
                                   WHERE classoid = 'pg_class'::regclass AND objoid = 'advisory.key_labels'::regclass AND objsubid = 0);
BEGIN
    FOR granted IN
        SELECT a.*, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role
        FROM pg_class, aclexplode(relacl) AS a
        WHERE oid = 'advisory_internal.key_labels'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
            AND grantee NOT IN (relowner, 10, (SELECT extowner FROM pg_extension WHERE extname = 'advisory_ext'))
            AND (grantee, privilege_type) <> (0, 'SELECT')
    LOOP
        EXECUTE format('GRANT %s ON advisory.key_labels TO %s %s', granted.privilege_type, granted.role,
                       CASE WHEN granted.is_grantable THEN 'WITH GRANT OPTION' END);
    END LOOP;
    FOR granted IN
        SELECT a.*, attname, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role
        FROM pg_attribute, aclexplode(attacl) AS a
        WHERE attrelid = 'advisory_internal.key_labels'::regclass AND NOT attisdropped AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE')
            AND attname IN ('key', 'key1', 'key2', 'label', 'note')
    LOOP
        EXECUTE format('GRANT %s (%I) ON advisory.key_labels TO %s %s', granted.privilege_type, granted.attname, granted.role,
                       CASE WHEN granted.is_grantable THEN 'WITH GRANT OPTION' END);
    END LOOP;
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = 'advisory_internal.key_labels'::regclass) THEN
        ALTER TABLE advisory.key_labels ENABLE ROW LEVEL SECURITY;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class, aclexplode(relacl)
                   WHERE oid = 'advisory_internal.key_labels'::regclass AND grantee = 0 AND privilege_type = 'SELECT') THEN
        REVOKE SELECT ON advisory.key_labels FROM PUBLIC;
    END IF;
    DELETE FROM pg_init_privs WHERE classoid = 'pg_class'::regclass AND objoid = 'advisory.key_labels'::regclass AND objsubid <> 0;
    UPDATE pg_init_privs SET initprivs = initial
    WHERE classoid = 'pg_class'::regclass AND objoid = 'advisory.key_labels'::regclass AND objsubid = 0;
    -- Since 17 that record counts as a reference to the roles.
    DELETE FROM pg_shdepend
    WHERE deptype = 'i' AND classid = 'pg_class'::regclass AND objid = 'advisory.key_labels'::regclass
        AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
-- Otherwise it stays in the list of tables that pg_dump dumps.
ALTER EXTENSION advisory_ext DROP TABLE advisory_internal.key_labels;
DROP TABLE advisory_internal.key_labels;
