-- Locks that look forgotten.

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

CREATE VIEW advisory.leaks AS
    SELECT pid, database, role, application_name, client_addr, state, kind, namespace,
           name, slot, key, key1, key2, mode, acquired_at, held, taken_by_role,
           taken_by_application, reason,
           advisory_internal.known_as(datid, objsubid, high, low, own, exact, is_small, is_start)
               AS known_as,
           transactions
    FROM advisory_internal.leaks()
    LEFT JOIN advisory_internal.own_uses USING (datid, objsubid, high, low)
    LEFT JOIN advisory_internal.exact_uses USING (objsubid, high, low)
    LEFT JOIN advisory_internal.range_starts USING (objsubid, high)
    -- With a max_hold the owner has said that it does not hold the lease for ever.  The setting is
    -- there when the rows are.
    UNION ALL
    SELECT NULL, current_database(), NULL, NULL, NULL, state, 'lease', namespace, name, slot, key,
           NULL, NULL, 'exclusive', acquired_at, held, NULL, NULL,
           format('renewed %s times by "%s", for at most %s', renewals, owner, max_hold),
           NULL, NULL
    FROM advisory_internal.lease_rows()
    CROSS JOIN LATERAL (SELECT clock_timestamp() - acquired_at) AS age (held)
    WHERE max_hold IS NOT NULL AND renewals > 0 AND state <> 'expired' AND key IS NOT NULL
        AND held >= current_setting('advisory_ext.leak_after', true)::interval;
COMMENT ON VIEW advisory.leaks IS 'locks and leases that look forgotten, and why';
COMMENT ON COLUMN advisory.leaks.pid IS 'process that holds it; null for a lease';
COMMENT ON COLUMN advisory.leaks.database IS 'database that the lock is in';
COMMENT ON COLUMN advisory.leaks.role IS 'role of the session';
COMMENT ON COLUMN advisory.leaks.application_name IS 'application_name of the session, at present';
COMMENT ON COLUMN advisory.leaks.client_addr IS
    'address of the client (or pooler); null for a socket';
COMMENT ON COLUMN advisory.leaks.state IS 'state of the session as in pg_stat_activity; of a lease';
COMMENT ON COLUMN advisory.leaks.kind IS 'lock, semaphore (a slot), lease or foreign';
COMMENT ON COLUMN advisory.leaks.namespace IS 'namespace of the lock; null if unknown';
COMMENT ON COLUMN advisory.leaks.name IS 'name or label of the lock; null if unknown';
COMMENT ON COLUMN advisory.leaks.slot IS 'slot of a semaphore, or lease slot, from 1';
COMMENT ON COLUMN advisory.leaks.key IS '64-bit key';
COMMENT ON COLUMN advisory.leaks.key1 IS 'first key of the pair form, signed';
COMMENT ON COLUMN advisory.leaks.key2 IS 'second key of the pair form, signed';
COMMENT ON COLUMN advisory.leaks.mode IS 'exclusive or shared';
COMMENT ON COLUMN advisory.leaks.acquired_at IS
    'when it was acquired; null for locks taken by the built-in functions';
COMMENT ON COLUMN advisory.leaks.held IS 'how long it has been held';
COMMENT ON COLUMN advisory.leaks.taken_by_role IS
    'current user then; null for the built-in functions';
COMMENT ON COLUMN advisory.leaks.taken_by_application IS
    'application_name then; null for the built-in functions';
COMMENT ON COLUMN advisory.leaks.reason IS 'what makes it look forgotten';
COMMENT ON COLUMN advisory.leaks.known_as IS
    'well-known uses of this key: candidates, not proof; see known_keys';
COMMENT ON COLUMN advisory.leaks.transactions IS
    'how many transactions the session has ended since; null if unknown';
