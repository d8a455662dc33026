-- Leases: holds that outlive a session or a server.

-- Only the functions below write this table, on behalf of every role.  Some rows are read without a
-- statement, by the places of the columns (leaserows.cpp); those of fixed length come first.
CREATE TABLE advisory._leases (
    key bigint NOT NULL,
    slot integer NOT NULL,
    slots integer NOT NULL,
    token bigint NOT NULL,
    role oid NOT NULL,
    role_name name NOT NULL,
    server bigint NOT NULL,
    era bigint NOT NULL,
    ttl interval NOT NULL,
    lock_delay interval NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    renewals bigint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    max_hold interval,
    PRIMARY KEY (key, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE advisory._leases IS 'rows of advisory.leases';
COMMENT ON COLUMN advisory._leases.key IS 'key of the name';
COMMENT ON COLUMN advisory._leases.slot IS 'slot, from 1; 0 for a lease';
COMMENT ON COLUMN advisory._leases.slots IS 'number of slots that its taker gave; 0 for a lease';
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
COMMENT ON COLUMN advisory._leases.max_hold IS
    'no renewal goes beyond acquired_at + max_hold; null: no limit';
SELECT pg_extension_config_dump('advisory._leases', '');
