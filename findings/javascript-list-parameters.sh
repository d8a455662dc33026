#!/usr/bin/env bash
# What JavaScript drivers send for a list where the server expects one text
#
# The guess: a driver turns a list into an array of SQL, '{x,y}', or raises an error, since the type
# of the parameter is text.
#
# Seen on 2026-11-28 (Node 20, PostgreSQL 15), for SELECT $1::text with the list ["x", "y"]:
#   pg 8.23.1 (node-postgres)     {"x","y"}
#   postgres 3.4.9 (postgres.js)  x,y
#   ts-postgres 2.0.4             x,y
# The last two send what JavaScript makes of a list as a string. So a function that has a form for
# text and one for text[] gets one name that nobody has, without an error. For $1::text[]
# postgres.js sends {x,y}, as all others do.
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
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data" start >/dev/null

cd "$work"
npm install --silent --no-audit --no-fund --prefix "$work" \
    pg@8.23.1 postgres@3.4.9 ts-postgres@2.0.4 >/dev/null
cat >seen.js <<'JS'
const port = Number(process.argv[2]);
const at = { host: '127.0.0.1', port, user: 'tester', database: 'postgres' };
const list = ['x', 'y'];

async function main() {
    const { Client } = require('pg');
    const pg = new Client(at);
    await pg.connect();
    console.log('pg text', (await pg.query('SELECT $1::text AS it', [list])).rows[0].it);
    await pg.end();

    const postgres = require('postgres');
    const sql = postgres({ ...at, max: 1 });
    console.log('postgres text', (await sql.unsafe('SELECT $1::text AS it', [list]))[0].it);
    const [row] = await sql.unsafe('SELECT $1::text[]::text AS it', [list]);
    console.log('postgres text[]', row.it);
    await sql.end();

    const ts = await require('ts-postgres').connect({ ...at, ssl: 'disable' });
    const { rows } = await ts.query('SELECT $1::text AS it', [list]);
    console.log('ts-postgres text', rows[0].get('it'));
    await ts.end();
}

main().catch((error) => { console.log(String(error)); process.exitCode = 1; });
JS
node seen.js "$port" | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
pg text {"x","y"}
postgres text x,y
postgres text[] {x,y}
ts-postgres text x,y
SEEN
