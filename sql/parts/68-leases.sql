-- Leases: holds that outlive a session or a server.

-- Only the functions below write this table, on behalf of every role.
CREATE TABLE advisory._leases (
    key bigint PRIMARY KEY,
    token bigint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    role oid NOT NULL,
    role_name name NOT NULL,
    server bigint NOT NULL,
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
-- No regrole: a dump could not be restored where one of the roles is missing.
COMMENT ON COLUMN advisory._leases.role IS 'OID of the role that took it, on that server';
COMMENT ON COLUMN advisory._leases.role_name IS 'name of that role, for other servers';
COMMENT ON COLUMN advisory._leases.server IS 'system identifier of the server that wrote this';
COMMENT ON COLUMN advisory._leases.era IS 'era of its last renewal';
COMMENT ON COLUMN advisory._leases.ttl IS 'how long the lease lasts from its last renewal';
COMMENT ON COLUMN advisory._leases.lock_delay IS 'how long it stays taken after it has expired';
COMMENT ON COLUMN advisory._leases.acquired_at IS 'when it was granted';
COMMENT ON COLUMN advisory._leases.renewed_at IS 'when it was last renewed, or granted';
COMMENT ON COLUMN advisory._leases.expires_at IS 'when it expires, if no other era begins';
COMMENT ON COLUMN advisory._leases.renewals IS 'how often it was renewed';
SELECT pg_extension_config_dump('advisory._leases', '');

CREATE FUNCTION advisory.lease(namespace text, name text, ttl interval,
                               timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                               lock_delay interval DEFAULT '0', OUT token bigint,
                               OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lease(text, text, interval, interval, text, interval) IS
    'take a lease, which outlives the session, or error 55P03';

CREATE FUNCTION advisory.lease(namespace text, id bigint, ttl interval,
                               timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                               lock_delay interval DEFAULT '0', OUT token bigint,
                               OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lease(text, bigint, interval, interval, text, interval) IS
    'take a lease, which outlives the session, or error 55P03';

CREATE FUNCTION advisory.lease(namespace text, id uuid, ttl interval, timeout interval DEFAULT NULL,
                               owner text DEFAULT NULL, lock_delay interval DEFAULT '0',
                               OUT token bigint, OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.lease(text, uuid, interval, interval, text, interval) IS
    'take a lease, which outlives the session, or error 55P03';

CREATE FUNCTION advisory.try_lease(namespace text, name text, ttl interval,
                                   timeout interval DEFAULT '0', owner text DEFAULT NULL,
                                   lock_delay interval DEFAULT '0', OUT token bigint,
                                   OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_try_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lease(text, text, interval, interval, text, interval) IS
    'take a lease, which outlives the session, if free within timeout';

CREATE FUNCTION advisory.try_lease(namespace text, id bigint, ttl interval,
                                   timeout interval DEFAULT '0', owner text DEFAULT NULL,
                                   lock_delay interval DEFAULT '0', OUT token bigint,
                                   OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_try_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lease(text, bigint, interval, interval, text, interval) IS
    'take a lease, which outlives the session, if free within timeout';

CREATE FUNCTION advisory.try_lease(namespace text, id uuid, ttl interval,
                                   timeout interval DEFAULT '0', owner text DEFAULT NULL,
                                   lock_delay interval DEFAULT '0', OUT token bigint,
                                   OUT expires_at timestamptz)
    AS 'MODULE_PATHNAME', 'advisory_try_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.try_lease(text, uuid, interval, interval, text, interval) IS
    'take a lease, which outlives the session, if free within timeout';

CREATE FUNCTION advisory.renew_lease(namespace text, name text, token bigint,
                                     ttl interval DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_renew_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.renew_lease(text, text, bigint, interval) IS
    'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE FUNCTION advisory.renew_lease(namespace text, id bigint, token bigint,
                                     ttl interval DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_renew_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.renew_lease(text, bigint, bigint, interval) IS
    'renew a lease of this role: when it expires, or NULL if it is lost';

CREATE FUNCTION advisory.renew_lease(namespace text, id uuid, token bigint,
                                     ttl interval DEFAULT NULL)
    RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'advisory_renew_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.renew_lease(text, uuid, bigint, interval) IS
    'renew a lease of this role: when it expires, or NULL if it is lost';

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
COMMENT ON FUNCTION advisory.end_lease(text, bigint, bigint) IS
    'end a lease of this role: false if it is lost';

CREATE FUNCTION advisory.end_lease(namespace text, id uuid, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_end_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.end_lease(text, uuid, bigint) IS
    'end a lease of this role: false if it is lost';

CREATE FUNCTION advisory.check_lease(namespace text, name text, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_lease(text, text, bigint) IS
    'true if the lease of this role has this token, or error 55000';

CREATE FUNCTION advisory.check_lease(namespace text, id bigint, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_lease(text, bigint, bigint) IS
    'true if the lease of this role has this token, or error 55000';

CREATE FUNCTION advisory.check_lease(namespace text, id uuid, token bigint)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_check_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.check_lease(text, uuid, bigint) IS
    'true if the lease of this role has this token, or error 55000';

CREATE FUNCTION advisory.break_lease(namespace text, name text, token bigint DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_break_lease_text'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.break_lease(text, text, bigint) IS
    'end the lease of any owner, or only the one with this token';

CREATE FUNCTION advisory.break_lease(namespace text, id bigint, token bigint DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_break_lease_bigint'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.break_lease(text, bigint, bigint) IS
    'end the lease of any owner, or only the one with this token';

CREATE FUNCTION advisory.break_lease(namespace text, id uuid, token bigint DEFAULT NULL)
    RETURNS boolean
    AS 'MODULE_PATHNAME', 'advisory_break_lease_uuid'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
COMMENT ON FUNCTION advisory.break_lease(text, uuid, bigint) IS
    'end the lease of any owner, or only the one with this token';

CREATE PROCEDURE advisory.await_lease(namespace text, name text, ttl interval,
                                      timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                                      lock_delay interval DEFAULT '0',
                                      INOUT token bigint DEFAULT NULL,
                                      INOUT expires_at timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lease_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lease(text, text, interval, interval, text, interval, bigint,
                                          timestamptz) IS
    'take a lease, waiting without a snapshot, or error 55P03';

CREATE PROCEDURE advisory.await_lease(namespace text, id bigint, ttl interval,
                                      timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                                      lock_delay interval DEFAULT '0',
                                      INOUT token bigint DEFAULT NULL,
                                      INOUT expires_at timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lease_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lease(text, bigint, interval, interval, text, interval, bigint,
                                          timestamptz) IS
    'take a lease, waiting without a snapshot, or error 55P03';

CREATE PROCEDURE advisory.await_lease(namespace text, id uuid, ttl interval,
                                      timeout interval DEFAULT NULL, owner text DEFAULT NULL,
                                      lock_delay interval DEFAULT '0',
                                      INOUT token bigint DEFAULT NULL,
                                      INOUT expires_at timestamptz DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lease_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lease(text, uuid, interval, interval, text, interval, bigint,
                                          timestamptz) IS
    'take a lease, waiting without a snapshot, or error 55P03';
