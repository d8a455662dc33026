#!/usr/bin/env bash
# What node-postgres makes of an interval in another IntervalStyle
#
# The guess: the setting IntervalStyle of a server, database or role is a matter of display: the
# driver reads each style, sets its own for the session, as it does with DateStyle, or raises an
# error.
#
# Seen on 2026-11-29 (pg 8.23.1, Node 20, PostgreSQL 15): it sets DateStyle only, and reads the
# style "postgres" only. With iso_8601 and postgres_verbose each interval is an object without
# anything in it, without an error: that is an interval of 0. With sql_standard 90 minutes are
# right, and 1 day and half a second are nothing. So after ALTER DATABASE … SET intervalstyle every
# timeout is 0. As EXTRACT(epoch FROM …) it is right in each.
#
# Needs Node with npm, and a PostgreSQL server with initdb (Debian: postgresql-15); it starts one of
# its own in a temporary folder.
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
npm install --silent --no-audit --no-fund --prefix "$work" pg@8.23.1 >/dev/null
cat >seen.js <<'JS'
const { Client } = require('pg');

async function main() {
    const db = new Client({
        host: '127.0.0.1', port: Number(process.argv[2]), user: 'tester', database: 'postgres',
    });
    await db.connect();
    for (const style of ['postgres', 'postgres_verbose', 'sql_standard', 'iso_8601']) {
        await db.query(`SET intervalstyle = ${style}`);
        const { rows: [row] } = await db.query(`SELECT a, b, extract(epoch FROM a) AS seconds
            FROM (SELECT interval '90 minutes' AS a, interval '1 day 0.5 s' AS b) AS i`);
        console.log(style, JSON.stringify(row.a), JSON.stringify(row.b), Number(row.seconds));
    }
    await db.end();
}

main().catch((error) => { console.log(String(error)); process.exitCode = 1; });
JS
node seen.js "$port" | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
postgres {"hours":1,"minutes":30} {"days":1,"milliseconds":500} 5400
postgres_verbose {} {} 5400
sql_standard {"hours":1,"minutes":30} {} 5400
iso_8601 {} {} 5400
SEEN
