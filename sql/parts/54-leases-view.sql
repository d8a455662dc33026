-- The view of leases.  Their table is made further down.

-- The one with this key, or all, but no more than 10,000 of each role.
CREATE FUNCTION advisory_internal.lease_rows(only_one boolean DEFAULT false,
                                             wanted_key bigint DEFAULT NULL)
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
        slot integer,
        max_hold interval,
        key bigint,
        lock text)
    AS 'MODULE_PATHNAME', 'advisory_leases'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION advisory_internal.lease_rows(boolean, bigint) IS 'rows of advisory.leases';

CREATE VIEW advisory.leases AS
    SELECT namespace, name, owner, token, state, ttl, acquired_at, renewed_at, expires_at,
           remaining, renewals, slot, max_hold
    FROM advisory_internal.lease_rows();
COMMENT ON VIEW advisory.leases IS 'the leases of this database';
COMMENT ON COLUMN advisory.leases.namespace IS 'namespace; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.leases.name IS 'name; hidden without the privilege to see it';
COMMENT ON COLUMN advisory.leases.owner IS
    'the owner as it calls itself, or its role and application, or hidden';
COMMENT ON COLUMN advisory.leases.token IS
    'fencing token; shown to the role that took the lease, and its members';
COMMENT ON COLUMN advisory.leases.state IS
    'held, expired, or restarted: its whole TTL again after a failover';
COMMENT ON COLUMN advisory.leases.ttl IS 'how long the lease lasts from its last renewal';
COMMENT ON COLUMN advisory.leases.acquired_at IS 'when it was granted';
COMMENT ON COLUMN advisory.leases.renewed_at IS 'when it was last renewed, or granted';
COMMENT ON COLUMN advisory.leases.expires_at IS 'when it expires';
COMMENT ON COLUMN advisory.leases.remaining IS 'how long it lasts from now on; 0 if it has expired';
COMMENT ON COLUMN advisory.leases.renewals IS 'how often it was renewed';
COMMENT ON COLUMN advisory.leases.slot IS 'lease slot, from 1; null for a lease';
COMMENT ON COLUMN advisory.leases.max_hold IS
    'no renewal goes beyond acquired_at + max_hold; null: no limit';
