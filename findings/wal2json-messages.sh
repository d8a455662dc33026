#!/usr/bin/env bash
# Whether wal2json's filters apply to logical messages
#
# The guess: a consumer that asks for one table (add-tables), or for inserts (actions), gets these,
# and nothing of what pg_logical_emit_message() writes.
#
# Seen on 2026-11-29 (postgresql-15-wal2json 2.5-1+b1 of Debian 12, PostgreSQL 15.20): it gets every
# message of the database, whatever the filters of tables and actions, and also one of a transaction
# that was rolled back if it was not transactional. Only filter-msg-prefixes and add-msg-prefixes
# leave messages out. So a program that looks for "table" in each change fails when another program
# begins to write messages. And from 15.20 on the slot is not made at all without
# output_plugin_libraries = 'wal2json' in the server's configuration.
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
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data -c wal_level=logical" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
sql() { "$bin/psql" -X -At -q -h 127.0.0.1 -p "$port" -U tester postgres "$@"; }
apt-get -qq download postgresql-15-wal2json=2.5-1+b1
ls ./*.deb
dpkg -x ./*.deb root
sql -c "ALTER SYSTEM SET dynamic_library_path = '\$libdir:$work/root/usr/lib/postgresql/15/lib'" \
    -c "SELECT pg_reload_conf()" >/dev/null
# Earlier versions do not have this, and do not need it.
sql -c "ALTER SYSTEM SET output_plugin_libraries = 'wal2json'" -c "SELECT pg_reload_conf()" \
    >/dev/null 2>&1 || true
sleep 1
sql >/dev/null <<'SQL'
SELECT pg_create_logical_replication_slot('seen', 'wal2json');
CREATE TABLE mine (i integer PRIMARY KEY);
CREATE TABLE other (i integer PRIMARY KEY);
INSERT INTO mine VALUES (1);
INSERT INTO other VALUES (2);
SELECT pg_logical_emit_message(true, 'job', 'done');
BEGIN;
SELECT pg_logical_emit_message(false, 'job', 'failed');
INSERT INTO mine VALUES (3);
ROLLBACK;
SQL
changes() {
    printf '%s:\n' "$*"
    sql -c "SELECT concat_ws(' ', change ->> 'action', change ->> 'table', change ->> 'prefix',
                             change ->> 'content')
            FROM pg_logical_slot_peek_changes('seen', NULL, NULL, 'format-version', '2'$1) AS c,
                 CAST(c.data AS jsonb) AS change
            WHERE change ->> 'action' NOT IN ('B', 'C')"
}
{
    changes ""
    changes ", 'add-tables', 'public.mine'"
    changes ", 'actions', 'insert'"
    changes ", 'add-tables', 'public.mine', 'filter-msg-prefixes', 'job'"
} | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
:
I mine
I other
M job done
M job failed
, 'add-tables', 'public.mine':
I mine
M job done
M job failed
, 'actions', 'insert':
I mine
I other
M job done
M job failed
, 'add-tables', 'public.mine', 'filter-msg-prefixes', 'job':
I mine
SEEN
