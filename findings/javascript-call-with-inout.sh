#!/usr/bin/env bash
# CALL of a procedure with an INOUT argument, in JavaScript drivers
#
# The guess: CALL is no query, so pg-promise's none(), "expects no data", is the method for it, and
# what one gets from others is empty.
#
# Seen on 2026-11-28 (Node 20, PostgreSQL 15): an INOUT argument makes a row. none() of pg-promise
# 12.7.1 rejects with "No return data was expected.", but the procedure has run and its work is
# committed: who tries again does it twice. one(), knex 3.3.0 raw() and Sequelize 6.37.8 query()
# give the row. Without an INOUT argument none() succeeds.
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
    pg@8.23.1 pg-promise@12.7.1 knex@3.3.0 sequelize@6.37.8 >/dev/null
cat >seen.js <<'JS'
const port = Number(process.argv[2]);
const url = `postgres://tester@127.0.0.1:${port}/postgres`;

async function main() {
    const db = require('pg-promise')()(url);
    await db.none('CREATE TABLE done (by text)');
    await db.none(`CREATE PROCEDURE work(INOUT who text) LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO done VALUES (who); COMMIT; END $$`);
    await db.none(`CREATE PROCEDURE quiet_work(who text) LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO done VALUES (who); COMMIT; END $$`);
    const outcome = (promise) => promise.then(() => 'done', (error) => error.message);
    console.log('none, INOUT:', await outcome(db.none(`CALL work('none')`)));
    console.log('none, IN:', await outcome(db.none(`CALL quiet_work('quiet')`)));
    console.log('one, INOUT:', JSON.stringify(await db.one(`CALL work('one')`)));

    const knex = require('knex')({ client: 'pg', connection: url });
    console.log('knex raw, INOUT:', JSON.stringify((await knex.raw(`CALL work('knex')`)).rows));
    await knex.destroy();

    const { Sequelize } = require('sequelize');
    const sequelize = new Sequelize(url, { logging: false });
    const [rows] = await sequelize.query(`CALL work('sequelize')`);
    console.log('sequelize query, INOUT:', JSON.stringify(rows));
    await sequelize.close();

    console.log('has run:', (await db.any('SELECT by FROM done')).map(({ by }) => by).join(' '));
    await db.$pool.end();
}

main().catch((error) => { console.log(String(error)); process.exitCode = 1; });
JS
node seen.js "$port" | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
none, INOUT: No return data was expected.
none, IN: done
one, INOUT: {"who":"one"}
knex raw, INOUT: [{"who":"knex"}]
sequelize query, INOUT: [{"who":"sequelize"}]
has run: none quiet one knex sequelize
SEEN
