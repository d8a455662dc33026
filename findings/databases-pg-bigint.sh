#!/usr/bin/env bash
# What @databases/pg makes of a bigint that a double does not hold
#
# The guess: it uses node-postgres, so a bigint is a string, whole; or, as it has the types of
# columns generated, a BigInt; or it raises an error for what a number does not hold.
#
# Seen on 2026-11-29 (@databases/pg 5.5.0, Node 20, PostgreSQL 15): by default a number, rounded,
# without an error: 9007199254740993 is 9007199254740992. So a key that was read does not find its
# row or lock again. A warning on stderr, once, says that the default of bigIntMode will change.
# With bigIntMode "string" or "bigint" it is whole. As a parameter a string or a BigInt is whole in
# all modes.
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
npm install --silent --no-audit --no-fund --prefix "$work" @databases/pg@5.5.0 >/dev/null
cat >seen.js <<'JS'
const create = require('@databases/pg');
const { sql } = create;

async function main() {
    for (const mode of [undefined, 'number', 'string', 'bigint']) {
        const db = create({
            connectionString: `postgres://tester@127.0.0.1:${process.argv[2]}/postgres`,
            bigIntMode: mode,
        });
        const [{ it }] = await db.query(sql`SELECT 9007199254740993::bigint AS it`);
        console.log(mode, typeof it, String(it));
        const [{ sent }] = await db.query(sql`SELECT ${9007199254740993n}::bigint::text AS sent`);
        console.log(mode, 'sent', sent);
        await db.dispose();
    }
}

main().catch((error) => { console.log(String(error)); process.exitCode = 1; });
JS
node seen.js "$port" 2>warnings.txt | tee seen.txt
diff seen.txt - <<'SEEN' && grep -q 'bigIntMode currently defaults' warnings.txt &&
undefined number 9007199254740992
undefined sent 9007199254740993
number number 9007199254740992
number sent 9007199254740993
string string 9007199254740993
string sent 9007199254740993
bigint bigint 9007199254740993
bigint sent 9007199254740993
SEEN
    echo "as seen before"
