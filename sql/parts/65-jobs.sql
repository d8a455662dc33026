-- Jobs: a command that runs while a lock is held.
--
-- Procedures, so that the command may commit; without a SET clause, which would forbid it.

CREATE PROCEDURE advisory.run(namespace text, name text, command text, timeout interval DEFAULT '0',
                              slots integer DEFAULT NULL, if_busy text DEFAULT 'skip',
                              INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL,
                              once_window timestamptz DEFAULT NULL,
                              time_zone text DEFAULT NULL, apart interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_text'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, text, text, interval, integer, text, boolean, interval,
                                  timestamptz, text, interval) IS
    'run a command while holding a lock or slot, once_per window, or apart';

CREATE PROCEDURE advisory.run(namespace text, id bigint, command text, timeout interval DEFAULT '0',
                              slots integer DEFAULT NULL, if_busy text DEFAULT 'skip',
                              INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL,
                              once_window timestamptz DEFAULT NULL,
                              time_zone text DEFAULT NULL, apart interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_bigint'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, bigint, text, interval, integer, text, boolean, interval,
                                  timestamptz, text, interval) IS
    'run a command while holding a lock or slot, once_per window, or apart';

CREATE PROCEDURE advisory.run(namespace text, id uuid, command text, timeout interval DEFAULT '0',
                              slots integer DEFAULT NULL, if_busy text DEFAULT 'skip',
                              INOUT ran boolean DEFAULT NULL, once_per interval DEFAULT NULL,
                              once_window timestamptz DEFAULT NULL,
                              time_zone text DEFAULT NULL, apart interval DEFAULT NULL)
    AS 'MODULE_PATHNAME', 'advisory_run_uuid'
    LANGUAGE C;
COMMENT ON PROCEDURE advisory.run(text, uuid, text, interval, integer, text, boolean, interval,
                                  timestamptz, text, interval) IS
    'run a command while holding a lock or slot, once_per window, or apart';
