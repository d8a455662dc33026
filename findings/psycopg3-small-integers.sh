#!/usr/bin/env bash
# Which type psycopg 3 gives to an integer
#
# The guess: an int of Python is a bigint, or its type is left to the server, as that of a string
# is; so what is right for small numbers is right for all that a bigint holds.
#
# Seen on 2026-11-29 (python3-psycopg 3.1.7-4 and python3-psycopg2 2.9.5-1+b1 of Debian 12,
# PostgreSQL 15): psycopg 3 gives each value the smallest type that holds it: 5 is smallint, 40000
# integer, 5000000000 bigint. So 20000 + 20000 is an error, and 40000 + 40000 is not; and where a
# function has a form for smallint and one for bigint, the value decides which is called. psycopg2
# writes the number into the statement, where it is an integer, or a bigint if it must.
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
apt-get -qq download python3-psycopg=3.1.7-4 python3-psycopg2=2.9.5-1+b1
ls ./*.deb
for package in ./*.deb; do dpkg -x "$package" root; done
cat >seen.py <<'PY'
import sys
import psycopg
import psycopg2

at = f"host=127.0.0.1 port={sys.argv[1]} user=tester dbname=postgres"

def answer(db, statement, values):
    cursor = db.cursor()
    try:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]
    except (psycopg.Error, psycopg2.Error) as error:
        return str(error).split("\n")[0]

for driver in psycopg, psycopg2:
    db = driver.connect(at)
    db.autocommit = True
    name = driver.__name__
    for value in 5, 40000, 5000000000:
        print(name, value, answer(db, "SELECT pg_typeof(%s)::text", (value,)))
    for value in 20000, 30000, 40000:
        print(name, value, "+", value, "=", answer(db, "SELECT %s + %s", (value, value)))
    cursor = db.cursor()
    cursor.execute("CREATE OR REPLACE FUNCTION pg_temp.kind(bigint) RETURNS text LANGUAGE sql "
                   "AS $$ SELECT 'bigint' $$")
    cursor.execute("CREATE OR REPLACE FUNCTION pg_temp.kind(smallint) RETURNS text LANGUAGE sql "
                   "AS $$ SELECT 'smallint' $$")
    for value in 32767, 32768:
        print(name, "kind of", value, answer(db, "SELECT pg_temp.kind(%s)", (value,)))
PY
PYTHONPATH=$work/root/usr/lib/python3/dist-packages /usr/bin/python3 seen.py "$port" |
    tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
psycopg 5 smallint
psycopg 40000 integer
psycopg 5000000000 bigint
psycopg 20000 + 20000 = smallint out of range
psycopg 30000 + 30000 = smallint out of range
psycopg 40000 + 40000 = 80000
psycopg kind of 32767 smallint
psycopg kind of 32768 bigint
psycopg2 5 integer
psycopg2 40000 integer
psycopg2 5000000000 bigint
psycopg2 20000 + 20000 = 40000
psycopg2 30000 + 30000 = 60000
psycopg2 40000 + 40000 = 80000
psycopg2 kind of 32767 bigint
psycopg2 kind of 32768 bigint
SEEN
