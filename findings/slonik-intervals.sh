#!/usr/bin/env bash
# What slonik makes of an interval
#
# The guess: as slonik gives a timestamp as a number of milliseconds, it gives an interval as a
# number of seconds, negative where the interval is.
#
# Seen on 2026-11-29 (slonik 37.6.0, Node 20, PostgreSQL 15): a number of seconds, but each negative
# part of an interval is left out, without an error. -90 minutes is 0, and so is -1 day; 1 day -1
# hour is 86400. So an overdue job is due now, and a time that has run out has just begun. A month
# is 30 days and a year 365, so that 12 months are more than 12 times a month.
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
npm install --silent --no-audit --no-fund --prefix "$work" slonik@37.6.0 zod@3.24.1 >/dev/null
cat >seen.js <<'JS'
const { createPool, sql } = require('slonik');

async function main() {
    const pool = await createPool(`postgres://tester@127.0.0.1:${process.argv[2]}/postgres`);
    for (const interval of ['90 minutes', '1.5 s', '-90 minutes', '-1.5 s', '-1 day',
        '1 day -1 hour', '1 month', '12 months'])
        console.log(interval, '=', await pool.oneFirst(sql.unsafe`SELECT ${interval}::interval`));
    await pool.end();
}

main().catch((error) => { console.log(String(error)); process.exitCode = 1; });
JS
node seen.js "$port" | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
90 minutes = 5400
1.5 s = 1.5
-90 minutes = 0
-1.5 s = 0
-1 day = 0
1 day -1 hour = 86400
1 month = 2592000
12 months = 31536000
SEEN
