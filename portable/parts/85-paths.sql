-- What the functions and the requests need besides.

DO $do$
DECLARE
    f record;
BEGIN
    -- The path of the functions in PL/pgSQL.
    FOR f IN
        SELECT oid::regprocedure AS name
        FROM pg_proc
        WHERE pronamespace = 'advisory'::regnamespace AND prokind = 'f'
            AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')
            AND (proname, pronargs) NOT IN (('key', 2), ('_slot_key', 3), ('_unlock_quietly', 2))
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, advisory, pg_temp', f.name);
    END LOOP;

    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'advisory._request'::regclass) THEN
        CREATE TRIGGER asked_by INSTEAD OF INSERT ON advisory._request
            FOR EACH ROW EXECUTE FUNCTION advisory._sign_request();
        CREATE TRIGGER serve INSTEAD OF INSERT ON advisory._request
            FOR EACH ROW EXECUTE FUNCTION advisory._serve_request();
    END IF;
END $do$;
