-- A small shop, and the tables in which the demo records what each worker did.
\if :{?portable}
    \ir ../portable/advisory.sql
    -- There a view shows only names that have a label.
    INSERT INTO advisory.key_labels (key, label)
        VALUES (advisory.key('billing', 'invoices:2026-12'), 'billing/invoices:2026-12');
\else
    CREATE EXTENSION advisory_ext;
\endif

CREATE TABLE customer (name text PRIMARY KEY);
INSERT INTO customer VALUES ('Ada'), ('Bob'), ('Cyd');

CREATE TABLE invoice (
    number          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    billing_window  text NOT NULL,
    customer        text NOT NULL REFERENCES customer,
    made_by         text NOT NULL);

-- The lock keeps workers from running at the same time. This row stops a worker that comes later.
CREATE TABLE billing_done (billing_window text PRIMARY KEY, made_by text NOT NULL);

CREATE TABLE webhook_done (event text PRIMARY KEY, made_by text NOT NULL);

-- What each worker saw and did. The demo checks its claims against these rows.
CREATE TABLE report (
    scene     text NOT NULL,
    worker    text NOT NULL,
    got_lock  boolean,
    outcome   text NOT NULL,
    asked_at  timestamptz,
    got_at    timestamptz,
    ended_at  timestamptz NOT NULL DEFAULT clock_timestamp());

-- The error of a wait with a timeout, as a program receives it.
CREATE TABLE failure (
    sqlstate text, message text, detail text, hint text,
    namespace text, name text, seconds numeric);

CREATE PROCEDURE make_invoices(billing_window text, worker text) LANGUAGE sql AS $$
    INSERT INTO invoice (billing_window, customer, made_by)
        SELECT billing_window, name, worker FROM customer
$$;

-- A meeting place: sessions wait here until the given number of them has arrived. So a rare race
-- happens every time.
CREATE TABLE arrival (place text, worker text, PRIMARY KEY (place, worker));

CREATE PROCEDURE meet(meeting_place text, who text, expected integer) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO arrival VALUES (meeting_place, who);
    COMMIT;
    FOR hundredth IN 1 .. 3000 LOOP
        IF (SELECT count(*) FROM arrival WHERE place = meeting_place) >= expected THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    RAISE EXCEPTION 'only % of % came to "%"',
        (SELECT count(*) FROM arrival WHERE place = meeting_place), expected, meeting_place;
END
$$;
