
---- Ids as names

-- Every function of a name is there for bigint and uuid, too, and every function of a list for lists of these.  A list that a driver sends
-- without a type arrives as text.  Comments and privileges are those of the function for text.
DO $$
DECLARE
    f record;
    form record;
    call text;
    signature text;
BEGIN
    FOR f IN SELECT oid, proname, proretset, proacl, prokind = 'p' AS is_procedure, proargnames[1:pronargs] AS names,
                    pg_get_function_result(oid) AS result, pg_get_function_arguments(oid) AS arguments, obj_description(oid, 'pg_proc') AS comment
             FROM pg_proc
             WHERE pronamespace = 'advisory'::regnamespace AND proname !~ '^_' AND proargnames[1] = 'namespace'
               AND (proargnames[2], proargtypes[1]) IN (('name', 'text'::regtype), ('names', 'text[]'::regtype)) LOOP
        FOR form IN SELECT * FROM (VALUES ('name', 'id bigint', 'id', 'bigint', '(advisory._check_list(namespace, ARRAY[id::pg_catalog.text], ''id''))[1]'),
                                          ('name', 'id uuid', 'id', 'uuid', '(advisory._check_list(namespace, ARRAY[id::pg_catalog.text], ''id''))[1]'),
                                          ('names', 'ids bigint[]', 'id', 'bigint', 'advisory._check_list(namespace, ids::pg_catalog.text[], ''id'')'),
                                          ('names', 'ids uuid[]', 'id', 'uuid', 'advisory._check_list(namespace, ids::pg_catalog.text[], ''id'')'),
                                          ('names', 'names text', 'name', 'text', 'names::pg_catalog.text[]')) AS v (old, new, out_name, type, value)
                    WHERE v.old = f.names[2] AND NOT (f.proname = 'unlock_all' AND type = 'text') LOOP
            signature := format('%I(%s)', f.proname, regexp_replace(f.arguments, '\mnames? text(\[\])?', form.new));
            call := format('advisory.%I(%s)', f.proname, (SELECT string_agg(CASE place WHEN 2 THEN form.value ELSE quote_ident(name) END, ', ' ORDER BY place)
                                                          FROM unnest(f.names) WITH ORDINALITY AS n (name, place)));
            IF f.is_procedure THEN
                EXECUTE format('CREATE OR REPLACE PROCEDURE advisory.%s LANGUAGE plpgsql AS %L', signature, format('BEGIN CALL %s; END', call));
            ELSE
                EXECUTE format('CREATE OR REPLACE FUNCTION advisory.%s RETURNS %s LANGUAGE sql %s AS %L', signature,
                    regexp_replace(regexp_replace(f.result, '^SETOF text', 'SETOF ' || form.type), '^TABLE\(name text', format('TABLE(%s %s', form.out_name, form.type)),
                    CASE f.proname WHEN 'key' THEN 'IMMUTABLE PARALLEL SAFE' ELSE 'COST 1000' END,
                    CASE WHEN f.result = 'SETOF text' THEN format('SELECT name::%s FROM %s AS name', form.type, call)
                         WHEN f.result LIKE 'TABLE(name text, %' THEN format('SELECT name::%s, slot FROM %s', form.type, call)
                         WHEN f.proretset THEN 'SELECT * FROM ' || call ELSE 'SELECT ' || call END);
            END IF;
            signature := regexp_replace(signature, ' DEFAULT [^,)]+', '', 'g');
            EXECUTE format('COMMENT ON ROUTINE advisory.%s IS %L', signature, f.comment);
            IF NOT has_function_privilege('public', f.oid, 'EXECUTE') THEN
                EXECUTE format('REVOKE ALL ON ROUTINE advisory.%s FROM PUBLIC', signature);
            END IF;
        END LOOP;
    END LOOP;
    FOR f IN SELECT oid::regprocedure AS name FROM pg_proc
             WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f' AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', f.name);
    END LOOP;
END $$;
COMMIT;
