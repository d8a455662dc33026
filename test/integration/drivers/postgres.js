// postgres.js.
'use strict';

const postgres = require('postgres');
const run = require('./lines');

const notices = [];
const sql = postgres({
    host: process.env.PGHOST, port: process.env.PGPORT, database: process.env.PGDATABASE,
    username: process.env.PGUSER, max: 1, onnotice: (notice) => notices.push(notice.message),
});
run((text, values) => sql.unsafe(text, values), notices).finally(() => sql.end());
