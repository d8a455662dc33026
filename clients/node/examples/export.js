// One at a time per user: a second POST /users/7/export gets the status 409 until the first one is
// done. Other users are not affected.
//
//     CREATE TABLE purchase (user_id bigint NOT NULL, item text NOT NULL);
//     CREATE TABLE export (user_id bigint NOT NULL, content jsonb NOT NULL,
//         made_at timestamptz NOT NULL DEFAULT now());
'use strict';

const http = require('http');
const { Pool } = require('pg');
const { Advisory, NotAvailable } = require('advisory-ext');

const pool = new Pool({ application_name: 'exports' });
// An idle connection was lost; the pool makes another.
pool.on('error', (error) => console.error(error.message));
const advisory = new Advisory(pool);

const makeExport = (userId) => advisory.withLock('export', userId, async (client) => {
    const { rows, rowCount } = await client.query(
        'SELECT item FROM purchase WHERE user_id = $1 ORDER BY item', [userId]);
    await client.query(
        'INSERT INTO export (user_id, content) VALUES ($1, $2)', [userId, JSON.stringify(rows)]);
    return rowCount;
});

const server = http.createServer(async (request, response) => {
    const [, userId] = request.method === 'POST'
        && request.url.match(/^\/users\/(\d{1,18})\/export$/) || [];
    if (!userId) return response.writeHead(404).end('try POST /users/7/export\n');
    try {
        response.end(`exported ${await makeExport(userId)} purchases\n`);
    } catch (error) {
        if (error instanceof NotAvailable) {
            return response.writeHead(409).end(
                `an export for user ${error.lockName} is being made\n`);
        }
        console.error(error);
        response.writeHead(500).end('the export failed\n');
    }
});

server.listen(
    process.env.PORT || 0, '127.0.0.1',
    () => console.log(`listening on port ${server.address().port}`));
process.on('SIGTERM', () => server.close(() => pool.end()));
