#!/usr/bin/env bash
# What PgBouncer's query_timeout does to the statement that takes too long
#
# The guess: "queries running longer than that are canceled", says its manual. So the client gets an
# error, and nothing of the statement stays, as with the server's statement_timeout.
#
# Seen on 2026-11-29 (pgbouncer 1.18.0-1+deb12u1 of Debian 12, PostgreSQL 15.20), with pool_mode
# session and transaction: nothing is canceled. PgBouncer closes both connections, and the server,
# which notices that only when it next writes to the client, goes on. An UPDATE that waits for a
# lock is made and committed as soon as the lock is free, after the client was told "query timeout";
# who tries again does it twice. With client_connection_check_interval, which is off by default, the
# server notices it, and nothing is made; with statement_timeout neither.
#
# Needs apt, and a PostgreSQL server with initdb (Debian: postgresql-15); it starts one of its own
# in a temporary folder.
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
    [ ! -s "$work/data/pgbouncer.pid" ] || kill "$(cat "$work/data/pgbouncer.pid")"
    rm -rf "$work"
}
trap end EXIT

mkdir "$work/data"
[ "${#as_user[@]}" -eq 0 ] || chown postgres "$work/data"
"${as_user[@]}" "$bin/initdb" -D "$work/data/server" -A trust -U tester >/dev/null
port=$((20000 + RANDOM % 20000))
"${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -w -l "$work/data/log" \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
apt-get -qq download pgbouncer=1.18.0-1+deb12u1 libc-ares2=1.18.1-3 \
    libevent-2.1-7=2.1.12-stable-8+deb12u1
for package in ./*.deb; do dpkg -x "$package" root; done
cat >data/pgbouncer.ini <<INI
[databases]
session = host=127.0.0.1 port=$port dbname=postgres pool_mode=session user=tester
transaction = host=127.0.0.1 port=$port dbname=postgres pool_mode=transaction user=tester
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $((port + 1))
unix_socket_dir =
auth_type = any
query_timeout = 1
logfile = $work/data/pgbouncer.log
pidfile = $work/data/pgbouncer.pid
INI
LD_LIBRARY_PATH=$(echo "$work"/root/usr/lib/*-linux-gnu) \
    "${as_user[@]}" root/usr/sbin/pgbouncer -q -d data/pgbouncer.ini

sql() { "$bin/psql" -X -q -At -h 127.0.0.1 -U tester "$@"; }
server() { sql -p "$port" postgres "$@"; }
# see SESSION_OR_TRANSACTION SETTING: prints the number when PgBouncer gave up, and at last.
see() {
    server -c 'DROP TABLE IF EXISTS item; CREATE TABLE item AS SELECT 0 AS number' 2>/dev/null
    server -c 'BEGIN; SELECT FROM item FOR UPDATE; SELECT pg_sleep(4); COMMIT' >/dev/null &
    sleep 0.5
    sql -p $((port + 1)) "$1" -c "SET $2; UPDATE item SET number = number + 1" \
        2>error.txt || true
    printf '%s, %s: %s: %s' "$1" "$2" "$(sed -n '1s/^[A-Z]*: *//p' error.txt)" \
        "$(server -c 'SELECT number FROM item')"
    wait $!
    sleep 0.5
    printf ', at last %s\n' "$(server -c 'SELECT number FROM item')"
}
for mode in session transaction; do
    for setting in 'statement_timeout = 0' 'statement_timeout = 700' \
        'client_connection_check_interval = 200'; do
        see "$mode" "$setting"
    done
done | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
session, statement_timeout = 0: query timeout: 0, at last 1
session, statement_timeout = 700: canceling statement due to statement timeout: 0, at last 0
session, client_connection_check_interval = 200: query timeout: 0, at last 0
transaction, statement_timeout = 0: query timeout: 0, at last 1
transaction, statement_timeout = 700: canceling statement due to statement timeout: 0, at last 0
transaction, client_connection_check_interval = 200: query timeout: 0, at last 0
SEEN
