#!/usr/bin/env bash
# Whom pg_activity's view "blocking" shows when sessions wait for an advisory lock
#
# The guess: the view "waiting" has those that wait, and the view "blocking" those that they wait
# for, whatever the kind of lock, as pg_blocking_pids() has them.
#
# Seen on 2026-11-29 (pg-activity 3.0.3-1 of Debian 12, PostgreSQL 15): "waiting" has the session
# that waits, "blocking" is empty: its query joins the two by the table, page, tuple or transaction
# that they lock, which an advisory lock does not have. With a lock on a table it has both. So one
# sees that the service waits, and nobody to blame.
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
sql() { "$bin/psql" -X -At -h 127.0.0.1 -p "$port" -U tester postgres "$@"; }

apt-get -qq download pg-activity=3.0.3-1
ls ./*.deb
dpkg -x ./*.deb root
queries=root/usr/lib/python3/dist-packages/pgactivity/queries
# The queries of the program's two views, with its own defaults.
view() {
    sed -e 's/%(dbname_filter)s/NULL/g; s/{dbname_filter}//; s/%(min_duration)s/0/g' \
        -e 's/{duration_column}/query_start/g' "$queries/$1" >view.sql
    sql -f view.sql | wc -l
}
sql -q -c 'CREATE TABLE item (i integer)'
for lock in 'SELECT pg_advisory_lock(1)' 'LOCK TABLE item'; do
    sql -q -c "BEGIN; $lock; SELECT pg_sleep(5)" >/dev/null &
    sleep 0.7
    sql -q -c "BEGIN; $lock" >/dev/null &
    sleep 0.7
    printf '%s: waiting %s, blocking %s, pg_blocking_pids %s\n' "$lock" \
        "$(view get_waiting_post_090200.sql)" "$(view get_blocking_post_090600.sql)" \
        "$(sql -c 'SELECT count(DISTINCT b)
                   FROM pg_stat_activity, unnest(pg_blocking_pids(pid)) AS b')"
    wait
done | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
SELECT pg_advisory_lock(1): waiting 1, blocking 0, pg_blocking_pids 1
LOCK TABLE item: waiting 1, blocking 1, pg_blocking_pids 1
SEEN
