// kysely, with pg.
'use strict';

const { CompiledQuery, Kysely, PostgresDialect } = require('kysely');
const { Pool } = require('pg');
const run = require('./lines');

const notices = [];
const pool = new Pool({ max: 1 });
pool.on('connect', (client) => client.on('notice', (notice) => notices.push(notice.message)));
const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
run(async (text, values) => (await db.executeQuery(CompiledQuery.raw(text, values))).rows, notices)
    .finally(() => db.destroy());
