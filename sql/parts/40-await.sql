-- Waiting without a snapshot.
--
-- Procedures, because only those can release the session's snapshot.  They have no SET
-- clause, because a procedure with one cannot.

CREATE PROCEDURE advisory.await_lock(namespace text, name text, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock(text, text, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock(namespace text, id bigint, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock(text, bigint, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock(namespace text, id uuid, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock(text, uuid, interval) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock_key(key bigint, timeout interval DEFAULT NULL,
                                         label text DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_key'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_key(bigint, interval, text) IS
    'take an exclusive session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock_shared(namespace text, name text,
                                            timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, text, interval) IS
    'take a shared session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock_shared(namespace text, id bigint,
                                            timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, bigint, interval) IS
    'take a shared session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock_shared(namespace text, id uuid, timeout interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared(text, uuid, interval) IS
    'take a shared session-level lock, waiting without a snapshot';

CREATE PROCEDURE advisory.await_lock_shared_key(key bigint, timeout interval DEFAULT NULL,
                                                label text DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_await_lock_shared_key'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.await_lock_shared_key(bigint, interval, text) IS
    'take a shared session-level lock, waiting without a snapshot';

