#!/usr/bin/env bash
# What advisory_ext is for, shown on real concurrent sessions of a throw-away server: `make demo`.
#
# Each claim is checked against the rows that the sessions wrote into tables. If a claim is not
# true, the demo stops with a non-zero exit code. PG_CONFIG selects the server. EDITION=portable
# shows the portable edition.
set -euo pipefail
# shellcheck source=scripts/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/server.sh"

DEMO=$REPOSITORY/demo
workers=()      # process ids of the sessions that run right now

# ---- Telling -------------------------------------------------------------------------------------

heading() {
    if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n\n' "$*"; else printf '\n--- %s\n\n' "$*"; fi
}

tell() { printf '%s\n' "$@"; }

sql() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }

# Shows a query's result as psql draws it.
show() { psql -Xq -v ON_ERROR_STOP=1 -P footer=off -P null='-' -c "$1" | sed 's/^/    /'; }

# check CLAIM QUERY: the query must say true.
check() {
    if [ "$(sql -c "SELECT ($2) IS TRUE")" = t ]; then
        say "  [checked] $1"
    else
        say "  [FAILED]  $1"
        psql -X -c 'TABLE report' -c 'TABLE failure' -c 'TABLE invoice' || true
        die "this claim is not true: $1"
    fi
}

# ---- Concurrent sessions -------------------------------------------------------------------------

# start NAME FILE [psql options]: a session of its own that runs the file.
start() {
    local name=$1 file=$2
    shift 2
    PGAPPNAME=$name sql -v worker="$name" "$@" -f "$DEMO/$file" \
        >"$server_dir/$name.out" 2>&1 </dev/null &
    workers+=("$!:$name")
}

# Waits for every session that was started. Each of them must succeed.
finish() {
    local worker status
    for worker in "${workers[@]}"; do
        status=0
        wait "${worker%%:*}" || status=$?
        if [ "$status" -ne 0 ]; then
            cat "$server_dir/${worker#*:}.out" >&2
            die "the session '${worker#*:}' failed"
        fi
    done
    workers=()
}

# until_true QUERY: waits until the query says true.
until_true() {
    local tenth
    for tenth in {1..100}; do
        [ "$(sql -c "SELECT ($1) IS TRUE")" != t ] || return 0
        sleep 0.1
    done
    die "gave up after $((tenth / 10)) s, waiting for: $1"
}

# ---- The scenes ----------------------------------------------------------------------------------

scene_without_lock() {
    local n
    heading "1. Five workers make the same invoices, without a lock"
    tell "Each worker checks whether the invoices of November exist. If not, the worker makes" \
         "them. All five workers check at the same moment:" ""
    for n in 1 2 3 4 5; do start "worker-$n" invoices-without-lock.sql -v window=2026-11; done
    finish
    show "SELECT customer, count(*) AS november_invoices FROM invoice
          GROUP BY customer ORDER BY customer"
    check "every customer got 5 invoices instead of one" \
        "SELECT count(*) = 3 AND bool_and(n = 5)
         FROM (SELECT count(*) AS n FROM invoice GROUP BY customer) AS c"
    sql -c 'TRUNCATE invoice'
}

scene_invoices() {
    local n
    heading "2. The same five workers, with a named lock"
    tell "Now each worker first tries to take a lock:" "" \
         "    SELECT advisory.try_lock('billing', 'invoices:2026-11');" \
         "    -- false: another session holds it" ""
    for n in 1 2 3 4 5; do
        start "worker-$n" invoices.sql -v window=2026-11 -v meeting=five -v expected=5
    done
    finish
    show "SELECT worker, got_lock, outcome FROM report WHERE scene = 'with'
          ORDER BY got_lock DESC, outcome, worker"
    check "exactly one of the five workers made the invoices" \
        "SELECT count(*) = 5 AND count(*) FILTER (WHERE outcome = 'made invoices') = 1
         FROM report WHERE scene = 'with'"
    check "every customer has exactly one invoice" \
        "SELECT count(*) = 3 AND count(DISTINCT customer) = 3
         FROM invoice WHERE billing_window = '2026-11'"

    tell "" "A sixth worker starts late. The first worker has finished and has released the lock," \
         "so the sixth worker gets it. To stop this worker, too, the first one has stored a row" \
         "which says that November is done. Every worker reads this row, and writes it, while it" \
         "holds the lock:" ""
    start worker-6 invoices.sql -v window=2026-11 -v meeting=late -v expected=1
    finish
    show "SELECT worker, got_lock, outcome FROM report WHERE scene = 'with' AND worker = 'worker-6'"
    check "the late worker got the lock, and made no invoices" \
        "SELECT got_lock AND outcome = 'was done already'
         FROM report WHERE scene = 'with' AND worker = 'worker-6'"
    check "November still has one invoice for each customer" \
        "SELECT count(*) = 3 AND count(DISTINCT customer) = 3
         FROM invoice WHERE billing_window = '2026-11'"
}

scene_exports() {
    local user n
    heading "3. One export at a time for each user"
    tell "Three users send two requests each. The lock is ('export', user), so users do not block" \
         "each other. While the first request of a user runs, the second one gets the answer" \
         "'busy' at once:" ""
    for user in ada bob cyd; do
        for n in 1 2; do start "$user-$n" export.sql -v user="$user"; done
    done
    finish
    show "SELECT substr(scene, 8) AS \"user\", outcome, count(*) AS requests
          FROM report WHERE scene LIKE 'export %' GROUP BY 1, 2 ORDER BY 1, 2"
    check "each user had one export and one 'busy'" \
        "SELECT count(*) = 3 AND bool_and(exported = 1 AND busy = 1) FROM
            (SELECT count(*) FILTER (WHERE outcome = 'exported') AS exported,
                    count(*) FILTER (WHERE outcome = 'told: busy') AS busy
             FROM report WHERE scene LIKE 'export %' GROUP BY scene) AS u"
    check "the three users' exports ran at the same time" \
        "SELECT max(got_at) < min(ended_at) FROM report WHERE outcome = 'exported'"
    check "each 'busy' came while the export ran, not after it" \
        "SELECT bool_and(b.ended_at < e.ended_at)
         FROM report AS b JOIN report AS e USING (scene)
         WHERE b.outcome = 'told: busy' AND e.outcome = 'exported'"
}

scene_webhook() {
    local n
    heading "4. A webhook event that arrives three times at once"
    tell "Each delivery waits at most 5 seconds for the lock. The lock ends with the transaction" \
         "of the delivery:" "" \
         "    SELECT advisory.xact_lock('webhook', 'evt_4711', '5s');" \
         "    -- true, or an error after 5 seconds" ""
    for n in 1 2 3; do start "delivery-$n" webhook.sql -v event=evt_4711; done
    finish
    show "SELECT worker, outcome, round(extract(epoch FROM got_at - asked_at), 1) AS waited_s
          FROM report WHERE scene = 'webhook' ORDER BY got_at"
    check "the event was processed exactly once" \
        "SELECT count(*) = 3 AND count(*) FILTER (WHERE outcome = 'processed') = 1
         FROM report WHERE scene = 'webhook'"
    check "all three deliveries got the lock, one after the other, within 5 s" \
        "SELECT bool_and(got_lock AND got_at - asked_at <= '5s' AND got_at >= before)
         FROM (SELECT got_lock, got_at, asked_at,
                      coalesce(lag(ended_at) OVER (ORDER BY got_at), '-infinity') AS before
               FROM report WHERE scene = 'webhook') AS d"
}

scene_dba() {
    heading "5. What a DBA sees"
    tell "One session holds a lock, and another session waits for it. Which sessions are they?" ""
    start billing-worker hold.sql
    start late-worker wait.sql
    until_true "SELECT count(*) = 1 FROM advisory.holders('billing', 'invoices:2026-12')
                WHERE NOT granted"
    tell "TABLE advisory.activity shows the waiters first, then the sessions that block them:" ""
    show "TABLE advisory.activity"
    check "the view names the lock, its holder and its waiter" \
        "SELECT count(*) = 2 AND bool_and(lock = 'billing/invoices:2026-12')
                AND bool_or(a.waiting IS NULL AND h.application_name = 'billing-worker')
                AND bool_or(a.waiting >= '0' AND h.application_name = 'late-worker'
                            AND a.blocked_by = array_to_string(h.blocked_by, ','))
         FROM advisory.activity AS a
         JOIN advisory.holders('billing', 'invoices:2026-12') AS h USING (pid)"
    check "advisory.holders() shows the same holder and waiter for this one lock" \
        "SELECT count(*) = 2 AND bool_or(granted AND application_name = 'billing-worker')
                AND bool_or(NOT granted AND application_name = 'late-worker' AND blocked_by =
                    ARRAY(SELECT pid FROM advisory.holders('billing', 'invoices:2026-12')
                          WHERE granted))
         FROM advisory.holders('billing', 'invoices:2026-12')"
    tell "" "SELECT advisory.wait_tree() shows which session waits for which. It also follows" \
         "locks of tables and rows:" ""
    sql -c "SELECT advisory.wait_tree()" | sed 's/^/    /'
    tell ""
    check "the waiter is below the session that it waits for, both with the name of the lock" \
        "SELECT count(*) = 2
                AND bool_or(n = 1 AND line LIKE
                            '%@billing-worker holds billing/invoices:2026-12 exclusive%')
                AND bool_or(n = 2 AND line LIKE
                            '  %@late-worker waits for billing/invoices:2026-12 exclusive%')
         FROM advisory.wait_tree() WITH ORDINALITY AS t(line, n)"
    check "advisory.locks shows both sessions, with the key that advisory.key() computes" \
        "SELECT count(*) FILTER (WHERE granted) = 1
                AND count(*) FILTER (WHERE NOT granted AND waited > '0') = 1
         FROM advisory.locks WHERE key = advisory.key('billing', 'invoices:2026-12')"
    scene_dba_error
    sql -c "CALL meet('seen enough', 'dba', 1)"
    finish
    tell "" "The holder releases the lock, and the session that waits without a limit gets it:"
    check "the waiter got the lock" \
        "SELECT got_lock FROM report WHERE scene = 'dba' AND worker = 'waiter'"
    check "no advisory lock is left" "SELECT count(*) = 0 FROM advisory.locks"
}

scene_dba_error() {
    tell "" "A third session waits for one second. Then it gets an error that names the session" \
         "which blocks it:" ""
    PGAPPNAME=hurried-worker \
        psql -Xq -c "SELECT advisory.lock('billing', 'invoices:2026-12', '1s')" 2>&1 |
        sed 's/^/    /' || true
    tell ""
    PGAPPNAME=hurried-worker sql -f "$DEMO/bounded-wait.sql"
    check "a wait with a timeout ends in time, with the error lock_not_available (55P03)" \
        "SELECT count(*) = 1 AND bool_and(sqlstate = '55P03' AND seconds BETWEEN 0.9 AND 4)
         FROM failure"
    check "the error names the lock in its message, and in fields for programs" \
        "SELECT message LIKE '%billing/invoices:2026-12%'
                AND namespace = 'billing' AND name = 'invoices:2026-12'
         FROM failure"
    check "its detail names the holder, and it has a hint" \
        "SELECT detail LIKE '%' || (SELECT pid FROM advisory.holders('billing', 'invoices:2026-12')
                                    WHERE granted) || '%'
                AND hint <> '' FROM failure"
}

main() {
    bash "$REPOSITORY/scripts/packages.sh" demo
    PG_CONFIG=$(find_pg_config) || die "found no PostgreSQL: say PG_CONFIG=/path/to/pg_config"
    server_open
    say "Building advisory_ext and starting a throw-away $("$PG_CONFIG" --version) …"
    server_stage
    server_start
    sql -c 'CREATE DATABASE shop'
    export PGDATABASE=shop
    sql ${EDITION:+-v "$EDITION=1"} -o /dev/null -f "$DEMO/schema.sql"
    scene_without_lock
    scene_invoices
    scene_exports
    scene_webhook
    scene_dba
    heading "All claims are true. The demo now removes the server and its files."
}

main
