#!/usr/bin/env bash
# Where a statement stands that waited for a lock until a timeout
#
# The guess: with log_min_duration_statement, auto_explain and pg_stat_statements a statement that
# took a second stands in all three, however it ended; they are what one reads when the service was
# slow.
#
# Seen on 2026-11-29 (PostgreSQL 15.20): in none of them. They look at a statement that has
# succeeded. One that lock_timeout or statement_timeout ends has no duration in the log, no plan,
# and is not counted, although it waited longer than the others: the worse the waiting, the fewer
# the entries. What there is: the error with its STATEMENT, without the time, and log_lock_waits,
# which says "still waiting" once, after deadlock_timeout; how long it was it says only if the lock
# was got.
#
# Needs a PostgreSQL server with initdb and its contrib modules (Debian: postgresql-15); it starts
# one of its own in a temporary folder.
set -euo pipefail

work=$(mktemp -d)
bin=${PG_BIN:-/usr/lib/postgresql/15/bin}
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid postgres --regid postgres --clear-groups --)
    chmod 755 "$work"
fi
end() {
    "${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -m immediate -w stop >/dev/null 2>&1 ||
        true
    rm -rf "$work"
}
trap end EXIT

mkdir "$work/data"
[ "${#as_user[@]}" -eq 0 ] || chown postgres "$work/data"
"${as_user[@]}" "$bin/initdb" -D "$work/data/server" -A trust -U tester >/dev/null
port=$((20000 + RANDOM % 20000))
"${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -w -l "$work/data/log" \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data \
        -c shared_preload_libraries=pg_stat_statements,auto_explain -c log_lock_waits=on \
        -c deadlock_timeout=200ms -c log_min_duration_statement=500 \
        -c auto_explain.log_min_duration=500" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
sql() { "$bin/psql" -X -At -h 127.0.0.1 -p "$port" -U tester postgres "$@"; }

sql -q -c 'CREATE EXTENSION pg_stat_statements'
sql -q -c 'SELECT pg_advisory_lock(1)' -c 'SELECT pg_sleep(4)' >/dev/null &
sleep 0.5
sql -q -c "SET lock_timeout = '1 s'" -c 'SELECT pg_advisory_lock(1) /* lock_timeout */' \
    >/dev/null 2>&1 || true
sql -q -c "SET statement_timeout = '1 s'" -c 'SELECT pg_advisory_lock(1) /* statement_timeout */' \
    >/dev/null 2>&1 || true
sql -q -c 'SELECT pg_advisory_lock(1) /* got it */' >/dev/null
wait
for what in lock_timeout statement_timeout 'got it'; do
    # Its lines in the log, which follow those that say what it is about.
    count() { grep -A "$2" "$1" data/log | grep -c "/[*] $what [*]/" || true; }
    printf '%s: duration %s, plan %s, still waiting %s, acquired %s, error %s\n' "$what" \
        "$(count 'duration: .* statement:' 0)" "$(count 'duration: .* plan:' 1)" \
        "$(count 'process .* still waiting' 2)" "$(count 'process .* acquired' 1)" \
        "$(count 'ERROR: *canceling statement' 1)"
done | tee seen.txt
sql -c "SELECT 'pg_stat_statements: ' || sum(calls) || ' calls' FROM pg_stat_statements
        WHERE query ~ 'SELECT pg_advisory_lock'" | tee -a seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
lock_timeout: duration 0, plan 0, still waiting 1, acquired 0, error 1
statement_timeout: duration 0, plan 0, still waiting 1, acquired 0, error 1
got it: duration 1, plan 1, still waiting 1, acquired 1, error 0
pg_stat_statements: 2 calls
SEEN
