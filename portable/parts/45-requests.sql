-- Requests.

-- A SECURITY DEFINER function cannot tell which role has called it: session_user is a superuser
-- where autovacuum calls a function that another role has put into an index, or a superuser one
-- that is SECURITY DEFINER.  So roles ask for claims and leases by an INSERT into a view.  Its
-- first trigger runs as the role that inserts, and says who that is; the second one runs as the
-- owner, and answers.  (In the order of their names.)
-- what: claim, claim_apart, run, run_apart, or finish, the end of the work of a claim; take,
-- take_slot, renew, check or end, of a lease.  length: every, apart or ttl.  at: the window, or the
-- time of the claim that is finished.  result: the window, or for run the time of the claim; when a
-- lease expires.  NULL if there is none; then reason says why, and free_at when all are held, and
-- the first of them can be taken.
CREATE OR REPLACE VIEW advisory._request AS
    SELECT NULL::oid AS asked_by,
           NULL::text AS what,
           NULL::text AS namespace,
           NULL::text AS name,
           NULL::interval AS length,
           NULL::bigint AS token,
           NULL::timestamptz AS at,
           NULL::text AS time_zone,
           NULL::text AS owner,
           NULL::interval AS lock_delay,
           NULL::boolean AS is_answered,
           NULL::timestamptz AS result,
           NULL::timestamptz AS free_at,
           NULL::text AS reason,
           NULL::integer AS slots,
           NULL::interval AS max_hold,
           NULL::integer AS slot;

CREATE OR REPLACE FUNCTION advisory._sign_request()
    RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.asked_by := quote_ident(current_user)::regrole;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION advisory._serve_request()
    RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    -- Whoever attached it to a table of his own could say that he is somebody else.
    IF TG_RELID <> 'advisory._request'::regclass THEN
        RAISE EXCEPTION USING ERRCODE = '39P01',
            MESSAGE = 'this trigger function must be fired by advisory._request';
    END IF;

    NEW := CASE WHEN NEW.what ~ '^(claim|run)(_apart)?$' THEN _claim_window(NEW)
                WHEN NEW.what = 'finish' THEN _end_claim(NEW)
                WHEN NEW.what LIKE 'take%' THEN _take_lease(NEW)
                ELSE _use_lease(NEW) END;
    NEW.is_answered := true;

    -- Nothing may be done before it is on disk.
    IF NEW.what ~ '^(run|take|renew)' AND NEW.result IS NOT NULL
       AND current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION advisory._request(what text, namespace text, name text,
                                             length interval DEFAULT NULL,
                                             token bigint DEFAULT NULL,
                                             at timestamptz DEFAULT NULL,
                                             time_zone text DEFAULT NULL,
                                             owner text DEFAULT NULL,
                                             lock_delay interval DEFAULT NULL,
                                             slots integer DEFAULT NULL,
                                             max_hold interval DEFAULT NULL)
    RETURNS advisory._request
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    answer _request;
BEGIN
    INSERT INTO _request AS r
        VALUES (NULL, what, namespace, name, length, token, at, time_zone, owner, lock_delay, NULL,
                NULL, NULL, NULL, slots, max_hold)
        RETURNING r.* INTO answer;
    IF answer.is_answered IS NULL THEN    -- The triggers have not fired.
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = 'claims and leases are not there while session_replication_role is replica';
    END IF;
    RETURN answer;
END $$;

-- What a row says of the session that has asked for it.
CREATE OR REPLACE FUNCTION advisory._who(asked_by oid)
    RETURNS text
    LANGUAGE sql STABLE AS $$
    SELECT concat_ws('@', pg_get_userbyid(asked_by),
                     nullif(current_setting('application_name'), '')) $$;

-- The server that writes a row, with its standbys; 0 where a service does not tell.
CREATE OR REPLACE FUNCTION advisory._system()
    RETURNS bigint
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT system_identifier FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    RETURN 0;
END $$;

-- The role that a row means.  On the server that wrote it its OID, which a rename keeps, and which
-- another role of that name does not get; on another one, after a restored dump, its name.
CREATE OR REPLACE FUNCTION advisory._role_here(role oid, role_name name, system bigint)
    RETURNS oid
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT CASE
        WHEN system = 0
        THEN (SELECT r.oid FROM pg_roles AS r WHERE r.oid = role AND r.rolname = role_name)
        WHEN system = _system() THEN role
        ELSE (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = role_name) END $$;

-- Has a role the rights of the role that a row means?  If that is missing, only a superuser has.
CREATE OR REPLACE FUNCTION advisory._has_role(member name, role oid, role_name name, system bigint,
                                              how text)
    RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, advisory, pg_temp AS $$
    SELECT coalesce(pg_has_role(member, _role_here(role, role_name, system), how),
                    (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = member)) $$;
