-- Tokens and fences.

-- A token is the era, and the place of a WAL record in units of 8 bytes.  No transaction rolls back
-- these cells: the era, its timeline, and of what cluster and database; the start of the server
-- that has last looked at them; and when it did so first, in ms, with the era again.
CREATE SEQUENCE IF NOT EXISTS advisory._era MINVALUE 0 START 0;

CREATE SEQUENCE IF NOT EXISTS advisory._server MINVALUE 0 START 0;

CREATE SEQUENCE IF NOT EXISTS advisory._server_began MINVALUE 0 START 0;

-- The timeline, and of what cluster and database it is; 1 and 0 where a service does not tell them.
CREATE OR REPLACE FUNCTION advisory._timeline(OUT timeline bigint, OUT system bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    timeline := 1;
    system := 0;
    timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint;
    system := (SELECT (system_identifier # (d.oid::bigint << 5)) & 137438953471
               FROM pg_control_system(), pg_database AS d
               WHERE datname = current_database());
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    NULL;    -- What was told before stays.
END $$;

-- This server: a restart or a promotion makes it another one.  On a later timeline the era grows by
-- as much as the timeline, so it does not matter if a failover lost the cells; in another cluster,
-- after pg_upgrade or a restored dump, by the timeline.  If somebody else has written the cells, as
-- logical replication of all sequences does, it does not fall below that of any lease or fence.
CREATE OR REPLACE FUNCTION advisory._here(OUT server bigint, OUT began timestamptz, OUT era bigint)
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    known bigint := (SELECT last_value FROM _server);    -- Before the others.
    last bigint := (SELECT last_value FROM _era);
    lowest bigint := (SELECT seqstart FROM pg_sequence WHERE seqrelid = 'advisory._era'::regclass);
    known_began bigint := (SELECT last_value FROM _server_began);
    can_write boolean := current_setting('transaction_read_only') = 'off';
    timeline bigint;
    system bigint;
BEGIN
    server := extract(epoch FROM pg_postmaster_start_time()) * 1000000;
    era := last >> 50;
    began := 'epoch'::timestamptz + (known_began >> 13) * interval '1 ms';
    IF known = server AND known_began & 8191 = era AND era >= lowest OR pg_is_in_recovery() THEN
        server := known;    -- A standby shows leases as the primary does.
        RETURN;
    END IF;

    began := clock_timestamp();
    SELECT t.timeline, t.system INTO timeline, system FROM _timeline() AS t;
    BEGIN
        -- Sequences can be set in no order but this one.  The end of the block unlocks them.
        IF can_write THEN
            LOCK TABLE advisory.fences IN SHARE UPDATE EXCLUSIVE MODE;
        END IF;
        last := (SELECT last_value FROM _era);
        era := (last >> 50) + timeline
               - CASE WHEN last & 137438953471 = system AND (last >> 37) & 8191 <= timeline
                      THEN (last >> 37) & 8191 ELSE 0 END;
        -- An older file let every role check a token that would use up all eras.
        era := greatest(era, lowest, (
            SELECT max(token) >> 50
            FROM (SELECT token FROM fences UNION ALL SELECT token FROM _leases) AS given
            WHERE token >> 50 < 4096));
        IF era >= 8192 THEN
            RAISE EXCEPTION USING ERRCODE = '2200H', MESSAGE = 'there are no tokens left';
        END IF;

        IF can_write THEN
            PERFORM setval('advisory._server_began',
                           ceil(extract(epoch FROM began) * 1000)::bigint << 13 | era);
            PERFORM setval('advisory._era', (era << 50) | (timeline << 37) | system);
            PERFORM setval('advisory._server', server);
        END IF;
        RAISE EXCEPTION 'done';
    EXCEPTION WHEN raise_exception THEN
        NULL;
    END;
END $$;

CREATE OR REPLACE FUNCTION advisory._make_token(place pg_lsn)
    RETURNS bigint
    LANGUAGE sql AS $$
    SELECT (era << 50) | div(place - '0/0', 8)::bigint FROM _here() $$;

-- For a lock or slot that this session holds, given by its key or its name.  The record is on disk
-- when the call returns: else a crash could make the same token again, with another holder.
CREATE OR REPLACE FUNCTION advisory._token(is_slot boolean, namespace text, name text, key bigint,
                                           slot integer)
    RETURNS bigint
    LANGUAGE plpgsql COST 1000 AS $$
DECLARE
    place pg_lsn;
BEGIN
    IF current_setting('server_version_num')::integer < 170000 THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = 'advisory.token() needs PostgreSQL 17 or later',
            DETAIL = 'Before, SQL cannot write a token to disk before COMMIT, so after a crash or '
                     'failover tokens could repeat or fall. So could those of a sequence.',
            HINT = 'Take a lease: it has a token. Or write in one transaction under '
                   'advisory.xact_lock(), or claim windows with advisory.claim().';
    END IF;
    IF is_slot THEN
        PERFORM _check_slot(slot, 'slot');
        key := _slot_key(namespace, name, slot);
    ELSIF is_slot IS NOT NULL THEN
        key := advisory.key(namespace, name);
    END IF;
    PERFORM _check(key::text, 'key');
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = '25006',
            MESSAGE = 'cannot execute advisory.token() during recovery';
    END IF;
    IF NOT _is_held(key, true, false) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format(
                CASE WHEN is_slot THEN 'this session does not have slot %2$s of semaphore "%1$s"'
                     ELSE 'this session does not hold advisory lock "%s" in exclusive mode' END,
                _display(namespace, coalesce(name, key::text)), slot),
            DETAIL = 'A session can get a token only for a lock or slot that it holds in '
                     'exclusive mode.';
    END IF;
    -- By EXECUTE, because the fourth argument is new in 17.
    EXECUTE $sql$ SELECT pg_logical_emit_message(false, 'advisory', '', true) $sql$ INTO place;
    RETURN _make_token(place);
END $$;

CREATE OR REPLACE FUNCTION advisory.tokens_above(token bigint)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last bigint;
    last_began bigint;
BEGIN
    PERFORM _check(token::text, 'token');
    IF token <= 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'token must be greater than zero';
    ELSIF token >> 50 >= 8191 THEN
        RAISE EXCEPTION USING ERRCODE = '22003', MESSAGE = format('token %s is too large', token);
    END IF;

    LOCK TABLE advisory.fences IN SHARE UPDATE EXCLUSIVE MODE;
    PERFORM _here();
    SELECT e.last_value, b.last_value INTO last, last_began FROM _era AS e, _server_began AS b;
    IF last >> 50 <= token >> 50 THEN
        -- The era is the one after that of the token; the other bits of the cells stay.
        PERFORM setval('advisory._server_began', last_began & -8192 | (token >> 50) + 1);
        PERFORM setval('advisory._era', ((token >> 50) + 1) << 50 | (last & 1125899906842623));
    END IF;
    -- No dump of the data alone and no replication of sequences changes this.
    EXECUTE format('ALTER SEQUENCE advisory._era START %s',
                   (SELECT greatest(seqstart, (token >> 50) + 1)
                    FROM pg_sequence
                    WHERE seqrelid = 'advisory._era'::regclass));
END $$;
COMMENT ON FUNCTION advisory.tokens_above(bigint) IS
    'make all later tokens of this database greater than this one';

-- Only check_token() writes this table, on behalf of every role.
CREATE TABLE IF NOT EXISTS advisory.fences (
    key bigint PRIMARY KEY,
    token bigint NOT NULL)
    WITH (fillfactor = 50);
COMMENT ON TABLE advisory.fences IS 'for each name, the greatest token that check_token() has seen';

CREATE OR REPLACE FUNCTION advisory.check_token(namespace text, name text, token bigint)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER COST 1000 AS $$
DECLARE
    k bigint := advisory.key(namespace, name);
    highest bigint;
BEGIN
    PERFORM _check(token::text, 'token');
    IF token <= 0 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'token must be greater than zero';
    END IF;
    IF token >> 50 > (SELECT h.era FROM _here() AS h) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = format('token %s is greater than all tokens of this database', token),
            DETAIL = 'If it counted as used, no later holder''s token would be accepted.';
    END IF;

    INSERT INTO advisory.fences AS f VALUES (k, check_token.token)
        ON CONFLICT ON CONSTRAINT fences_pkey
        DO UPDATE SET token = greatest(f.token, EXCLUDED.token)
        RETURNING f.token INTO highest;
    -- The error does not tell the greater token: nothing says whether the caller may read it.
    IF highest <> token THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('stale token %s of "%s"', token, _display(namespace, name)),
            DETAIL = 'A later holder has already used a greater token.';
    END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION advisory.fenced()
    RETURNS trigger
    LANGUAGE plpgsql AS $$
DECLARE
    place text := format('column "%s" of relation "%s"', TG_ARGV[0], TG_TABLE_NAME);
    type oid;
    token bigint;
    old_token bigint;
BEGIN
    IF NOT (TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' AND TG_OP IN ('INSERT', 'UPDATE')) THEN
        RAISE EXCEPTION USING ERRCODE = '39P01',
            MESSAGE = 'advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW';
    ELSIF TG_NARGS <> 1 THEN
        RAISE EXCEPTION USING ERRCODE = '39P01',
            MESSAGE = 'advisory.fenced() takes the name of the token''s column as its only '
                      'argument';
    END IF;
    SELECT atttypid INTO type
    FROM pg_attribute
    WHERE attrelid = TG_RELID AND attname = TG_ARGV[0] AND attnum > 0 AND NOT attisdropped;
    IF type IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42703', MESSAGE = place || ' does not exist';
    ELSIF type <> 'bigint'::regtype THEN
        RAISE EXCEPTION USING ERRCODE = '42804', MESSAGE = place || ' must have type bigint';
    END IF;

    -- For INSERT, OLD is null.  The error does not tell the old token: the role may not read it.
    EXECUTE format('SELECT ($1).%1$I, ($2).%1$I', TG_ARGV[0]) INTO token, old_token USING NEW, OLD;
    IF token IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '23502', MESSAGE = 'null token in ' || place;
    ELSIF token < old_token THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('stale token %s in %s', token, place),
            DETAIL = 'A later holder has already written a greater token.';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION advisory.fenced() IS
    'trigger function: refuses a NULL token and one smaller than the row''s';
