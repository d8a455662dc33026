#!/usr/bin/env bash
# What becomes of a transaction in which node-postgres' query_timeout ends a statement
#
# The guess: the program gets the error and its transaction is rolled back; if the ROLLBACK fails,
# the connection is thrown away. At least the query builders and ORMs, which do that for it, see to
# it that nothing of the transaction stays.
#
# Seen on 2026-11-29 (pg 8.23.1 with pg-pool 3.14.0, Node 20, PostgreSQL 15.20): the server knows
# nothing of the timeout, and goes on. The ROLLBACK stands in the client's queue behind the
# statement until it times out, too, and is taken out of the queue: it is never sent. release()
# puts the client back, with its transaction open. As soon as the statement ends, here because the
# lock that it waits for is free, the next user's BEGIN is but a warning, and the next user's COMMIT
# commits what the first was told has failed. It is so with pg's own pool and the transactions of
# Drizzle 0.45.4, Kysely 0.28.17, TypeORM 1.1.1, pg-promise 12.7.1 and knex 3.3.0. Nothing stays
# with release(error), and with Sequelize 6.37.8, which ends the connection.
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
npm install --silent --no-audit --no-fund --prefix "$work" pg@8.23.1 pg-pool@3.14.0 \
    drizzle-orm@0.45.4 kysely@0.28.17 typeorm@1.1.1 pg-promise@12.7.1 knex@3.3.0 \
    sequelize@6.37.8 >/dev/null
cat >seen.js <<'JS'
const { Pool } = require('pg');

const server = { host: '127.0.0.1', port: process.argv[2], user: 'tester', database: 'postgres' };
const limited = { ...server, query_timeout: 1000 };

function onPool(argumentOfRelease) {
    const pool = new Pool({ ...limited, max: 1 });
    const transaction = async (body) => {
        const client = await pool.connect();
        let failure;
        try {
            await client.query('BEGIN');
            await body((text) => client.query(text));
            await client.query('COMMIT');
        } catch (error) {
            failure = error;
            await client.query('ROLLBACK').catch(() => {});
            throw error;
        } finally {
            client.release(argumentOfRelease(failure));
        }
    };
    return { transaction, end: () => pool.end() };
}

// For each: transaction(body) runs body(query) in a transaction, in the way of the library.
const libraries = {
    'pg, release()': () => onPool(() => undefined),
    'pg, release(error)': () => onPool((error) => error),
    Drizzle() {
        const { sql } = require('drizzle-orm');
        const pool = new Pool({ ...limited, max: 1 });
        const db = require('drizzle-orm/node-postgres').drizzle(pool);
        return {
            transaction: (body) => db.transaction((t) => body((text) => t.execute(sql.raw(text)))),
            end: () => pool.end(),
        };
    },
    Kysely() {
        const { Kysely, PostgresDialect, sql } = require('kysely');
        const pool = new Pool({ ...limited, max: 1 });
        const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
        return {
            transaction: (body) =>
                db.transaction().execute((t) => body((text) => sql.raw(text).execute(t))),
            end: () => db.destroy(),
        };
    },
    async TypeORM() {
        const { DataSource } = require('typeorm');
        const extra = { max: 1, query_timeout: 1000 };
        const source = new DataSource({
            type: 'postgres', ...server, username: 'tester', port: Number(server.port), extra,
        });
        await source.initialize();
        return {
            transaction: (body) => source.transaction((t) => body((text) => t.query(text))),
            end: () => source.destroy(),
        };
    },
    'pg-promise'() {
        const db = require('pg-promise')()({ ...limited, max: 1 });
        return {
            transaction: (body) => db.tx((t) => body((text) => t.none(text))),
            end: () => db.$pool.end(),
        };
    },
    knex() {
        const db = require('knex')({ client: 'pg', connection: limited, pool: { min: 0, max: 1 } });
        return {
            transaction: (body) => db.transaction((t) => body((text) => t.raw(text))),
            end: () => db.destroy(),
        };
    },
    Sequelize() {
        const { Sequelize } = require('sequelize');
        const db = new Sequelize('postgres', 'tester', '', {
            ...server, dialect: 'postgres', pool: { max: 1 }, logging: false,
            dialectOptions: { query_timeout: 1000 },
        });
        return {
            transaction: (body) => db.transaction((transaction) =>
                body((text) => db.query(text, { transaction }))),
            end: () => db.close(),
        };
    },
};

async function see(name, open) {
    const outcome = (promise) => promise.then(() => 'done', () => 'failed');
    const add = (money, id) => `UPDATE account SET money = money + ${money} WHERE id = '${id}'`;
    const admin = new Pool(server);
    await admin.query(`DROP TABLE IF EXISTS account;
        CREATE TABLE account AS SELECT id, 100 AS money FROM unnest('{a,b,c}'::text[]) AS id`);
    const other = await admin.connect();
    await other.query(`BEGIN; SELECT FROM account WHERE id = 'b' FOR UPDATE`);

    const { transaction, end } = await open();
    const first = await outcome(transaction(async (query) => {
        await query(add(-10, 'a'));
        await query(add(10, 'b'));
    }));
    await other.query('COMMIT');
    const second = await outcome(transaction((query) => query(add(1, 'c'))));
    const { rows } = await admin.query('SELECT id, money FROM account ORDER BY id');
    console.log(`${name}: a to b ${first}, c ${second}:`,
        rows.map(({ id, money }) => `${id} ${money}`).join(', '));
    other.release();
    await Promise.all([end(), admin.end()]);
}

async function main() {
    for (const [name, open] of Object.entries(libraries))
        await see(name, open);
}

main().catch((error) => { console.log(String(error)); process.exitCode = 1; });
JS
node seen.js "$port" 2>/dev/null | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
pg, release(): a to b failed, c done: a 90, b 110, c 101
pg, release(error): a to b failed, c done: a 100, b 100, c 101
Drizzle: a to b failed, c done: a 90, b 110, c 101
Kysely: a to b failed, c done: a 90, b 110, c 101
TypeORM: a to b failed, c done: a 90, b 110, c 101
pg-promise: a to b failed, c done: a 90, b 110, c 101
knex: a to b failed, c done: a 90, b 110, c 101
Sequelize: a to b failed, c done: a 100, b 100, c 101
SEEN
