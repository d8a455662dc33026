#!/usr/bin/env bash
# What advisory_ext is for, shown on real concurrent sessions of a throw-away server: `make demo`.
#
# Every claim is checked against what the sessions left in tables; the demo stops, with a non-zero exit code, at the
# first one that does not come out. PG_CONFIG picks the server version.
set -euo pipefail
# shellcheck source=scripts/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/server.sh"

DEMO=$REPOSITORY/demo
workers=()      # process ids of the sessions that run right now

# ---- Telling ----------------------------------------------------------------------------------------

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
        die "this did not come out as promised: $1"
    fi
}

# ---- Concurrent sessions ------------------------------------------------------------------------------

# start NAME FILE [psql options]: a session of its own that runs the file.
start() {
    local name=$1 file=$2
    shift 2
    PGAPPNAME=$name sql -v worker="$name" "$@" -f "$DEMO/$file" >"$server_dir/$name.out" 2>&1 </dev/null &
    workers+=("$!:$name")
}

# Waits for every session that was started, all of which must end well.
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

# until_true QUERY: for what another session is about to do.
until_true() {
    local tenth
    for tenth in {1..100}; do
        [ "$(sql -c "SELECT ($1) IS TRUE")" != t ] || return 0
        sleep 0.1
    done
    die "gave up after $((tenth / 10)) s, waiting for: $1"
}

# ---- The scenes -----------------------------------------------------------------------------------------

scene_without_lock() {
    local n
    heading "1. Five workers, one billing window, no lock"
    tell "Each worker looks whether November has invoices yet; if not, it makes them. All five look at" \
         "the same moment:" ""
    for n in 1 2 3 4 5; do start "worker-$n" invoices-without-lock.sql -v window=2026-11; done
    finish
    show "SELECT customer, count(*) AS november_invoices FROM invoice GROUP BY customer ORDER BY customer"
    check "every customer got 5 invoices instead of one" \
        "SELECT count(*) = 3 AND bool_and(n = 5) FROM (SELECT count(*) AS n FROM invoice GROUP BY customer) AS c"
    sql -c 'TRUNCATE invoice'
}

scene_invoices() {
    local n
    heading "2. The same five, with a lock by name"
    tell "Now each one asks first:" "" \
         "    SELECT advisory.try_lock('billing', 'invoices:2026-11');     -- true: it is yours; false: it is taken" ""
    for n in 1 2 3 4 5; do start "worker-$n" invoices.sql -v window=2026-11 -v meeting=five -v expected=5; done
    finish
    show "SELECT worker, got_lock, outcome FROM report WHERE scene = 'with' ORDER BY got_lock DESC, outcome, worker"
    check "exactly one of five made the invoices" \
        "SELECT count(*) = 5 AND count(*) FILTER (WHERE outcome = 'made invoices') = 1 FROM report WHERE scene = 'with'"
    check "every customer has exactly one" \
        "SELECT count(*) = 3 AND count(DISTINCT customer) = 3 FROM invoice WHERE billing_window = '2026-11'"

    tell "" "A sixth worker comes late: the first has finished, and its lock is gone. A lock alone cannot stop" \
         "this one, for nobody holds it any more. That takes a row which says that November is done, and" \
         "which is written, and looked at, under the lock:" ""
    start worker-6 invoices.sql -v window=2026-11 -v meeting=late -v expected=1
    finish
    show "SELECT worker, got_lock, outcome FROM report WHERE scene = 'with' AND worker = 'worker-6'"
    check "the late worker was given the lock, and made nothing" \
        "SELECT got_lock AND outcome = 'was done already' FROM report WHERE scene = 'with' AND worker = 'worker-6'"
    check "November still has one invoice for each customer" \
        "SELECT count(*) = 3 AND count(DISTINCT customer) = 3 FROM invoice WHERE billing_window = '2026-11'"
}

scene_exports() {
    local user n
    heading "3. One export at a time for each user"
    tell "Three impatient users ask twice each. The lock is ('export', user): users do not hinder each other," \
         "and the second request of the same user hears at once that the first is still running:" ""
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
    check "'busy' was said while the export ran, not after a wait for it" \
        "SELECT bool_and(b.ended_at < e.ended_at)
         FROM report AS b JOIN report AS e USING (scene) WHERE b.outcome = 'told: busy' AND e.outcome = 'exported'"
}

scene_webhook() {
    local n
    heading "4. A webhook that is delivered three times at once"
    tell "Each delivery waits for its turn, but for 5 seconds at most, and the lock ends with its transaction:" "" \
         "    SELECT advisory.xact_lock('webhook', 'evt_4711', '5s');      -- held, or an error: never a maybe" ""
    for n in 1 2 3; do start "delivery-$n" webhook.sql -v event=evt_4711; done
    finish
    show "SELECT worker, outcome, round(extract(epoch FROM got_at - asked_at), 1) AS waited_s
          FROM report WHERE scene = 'webhook' ORDER BY got_at"
    check "the event was processed exactly once" \
        "SELECT count(*) = 3 AND count(*) FILTER (WHERE outcome = 'processed') = 1 FROM report WHERE scene = 'webhook'"
    check "all three deliveries got their turn, one after the other, within 5 s" \
        "SELECT bool_and(got_lock AND got_at - asked_at <= '5s' AND got_at >= before)
         FROM (SELECT got_lock, got_at, asked_at,
                      coalesce(lag(ended_at) OVER (ORDER BY got_at), '-infinity') AS before
               FROM report WHERE scene = 'webhook') AS d"
}

scene_dba() {
    heading "5. What a DBA sees"
    tell "One session holds a lock, another waits for it. Who?" ""
    start billing-worker hold.sql
    start late-worker wait.sql
    until_true "SELECT count(*) = 1 FROM advisory.holders('billing', 'invoices:2026-12') WHERE NOT granted"
    tell "TABLE advisory.activity: waiters first, then the sessions in their way, each lock by its name:" ""
    show "TABLE advisory.activity"
    check "it names the lock, the session that holds it, and the one that waits for that session" \
        "SELECT count(*) = 2 AND bool_and(lock = 'billing/invoices:2026-12')
                AND bool_or(waiting IS NULL AND who LIKE '%@billing-worker')
                AND bool_or(waiting >= '0' AND who LIKE '%@late-worker' AND blocked_by =
                    ARRAY(SELECT pid FROM advisory.activity WHERE who LIKE '%@billing-worker'))
         FROM advisory.activity"
    check "advisory.holders() says the same of this lock, without a look at all others" \
        "SELECT count(*) = 2 AND bool_or(granted AND application_name = 'billing-worker')
                AND bool_or(NOT granted AND application_name = 'late-worker' AND blocked_by =
                    ARRAY(SELECT pid FROM advisory.holders('billing', 'invoices:2026-12') WHERE granted))
         FROM advisory.holders('billing', 'invoices:2026-12')"
    tell "" "SELECT advisory.wait_tree(): who waits for whom, also through locks of tables and rows:" ""
    sql -c "SELECT advisory.wait_tree()" | sed 's/^/    /'
    tell ""
    check "the waiter stands under the session that it waits for, and both with the lock's name" \
        "SELECT count(*) = 2 AND bool_or(n = 1 AND line LIKE '%@billing-worker holds billing/invoices:2026-12 exclusive%')
                AND bool_or(n = 2 AND line LIKE '  %@late-worker waits for billing/invoices:2026-12 exclusive%')
         FROM advisory.wait_tree() WITH ORDINALITY AS t(line, n)"
    check "advisory.locks has both, by the key that every other program can compute" \
        "SELECT count(*) FILTER (WHERE granted) = 1 AND count(*) FILTER (WHERE NOT granted AND waited > '0') = 1
         FROM advisory.locks WHERE key = advisory.key('billing', 'invoices:2026-12')"
    scene_dba_error
    sql -c "CALL meet('seen enough', 'dba', 1)"
    finish
    tell "" "The holder lets go, and the one that waited without a bound has its turn:"
    check "the waiter got the lock" "SELECT got_lock FROM report WHERE scene = 'dba' AND worker = 'waiter'"
    check "nothing is left behind" "SELECT count(*) = 0 FROM advisory.locks"
}

scene_dba_error() {
    tell "" "A third session is willing to wait for one second, and is told which session blocked it:" ""
    PGAPPNAME=hurried-worker psql -Xq -c "SELECT advisory.lock('billing', 'invoices:2026-12', '1s')" 2>&1 |
        sed 's/^/    /' || true
    tell ""
    PGAPPNAME=hurried-worker sql -f "$DEMO/bounded-wait.sql"
    check "a bounded wait ends in time, with lock_not_available (55P03)" \
        "SELECT count(*) = 1 AND bool_and(sqlstate = '55P03' AND seconds BETWEEN 0.9 AND 4) FROM failure"
    check "the error names the lock, for people and for programs" \
        "SELECT message LIKE '%billing/invoices:2026-12%' AND namespace = 'billing' AND name = 'invoices:2026-12'
         FROM failure"
    check "its detail says who holds the lock, and its hint what to do" \
        "SELECT detail LIKE '%' || (SELECT pid FROM advisory.holders('billing', 'invoices:2026-12') WHERE granted) || '%'
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
    sql -f "$DEMO/schema.sql"
    scene_without_lock
    scene_invoices
    scene_exports
    scene_webhook
    scene_dba
    heading "All of it came out as promised. The server and its files are being removed."
}

main
