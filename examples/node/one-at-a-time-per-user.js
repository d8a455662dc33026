// One at a time per user: POST /users/7/export makes the export of user 7. A second request for the same user meanwhile gets the status 409.
// Requests for other users are not affected.
//
// The lock is transaction-level, so the end of the transaction releases it. Nothing is left on a connection that goes back into the pool, and a
// transaction pooler such as PgBouncer works, too. If the lock is taken, xact_lock with a timeout of 0 raises an error. try_xact_lock would
// return false, which is easier to overlook.
// A timeout has its unit, as in '5s': the number 5000 would mean 5,000 seconds.
//
//     CREATE TABLE purchase (user_id bigint NOT NULL, item text NOT NULL);
//     CREATE TABLE export (user_id bigint NOT NULL, content jsonb NOT NULL, made_at timestamptz NOT NULL DEFAULT now());
//
//     npm install pg && PORT=8080 PGHOST=localhost PGDATABASE=shop node one-at-a-time-per-user.js
//     curl -X POST localhost:8080/users/7/export
'use strict';

const http = require('http');
const { Pool } = require('pg');

const pool = new Pool({ application_name: 'exports' });
pool.on('error', (error) => console.error(error.message));     // an idle connection was lost; the pool makes another

async function makeExport(userId) {
    const client = await pool.connect();
    let broken;
    try {
        await client.query('BEGIN');
        await client.query('SELECT advisory.xact_lock($1, $2, $3)', ['export', userId, '0']);
        const purchases = await client.query('SELECT item FROM purchase WHERE user_id = $1 ORDER BY item', [userId]);
        await client.query('INSERT INTO export (user_id, content) VALUES ($1, $2)', [userId, JSON.stringify(purchases.rows)]);
        await client.query('COMMIT');
        return purchases.rowCount;
    } catch (error) {
        await client.query('ROLLBACK').catch((lost) => { broken = lost; });
        throw error;
    } finally {
        client.release(broken);        // with an error, the pool throws the connection away
    }
}

const server = http.createServer(async (request, response) => {
    const [, userId] = request.method === 'POST' && request.url.match(/^\/users\/(\d{1,18})\/export$/) || [];
    if (!userId) {
        response.writeHead(404).end('try POST /users/7/export\n');
        return;
    }
    try {
        response.end(`exported ${await makeExport(userId)} purchases\n`);
    } catch (error) {
        // 55P03 is lock_not_available; the error's schema and constraint are the lock's namespace and name.
        if (error.code === '55P03' && error.schema === 'export') {
            response.writeHead(409).end(`an export for user ${error.constraint} is being made\n`);
        } else {
            console.error(error);
            response.writeHead(500).end('the export failed\n');
        }
    }
});

server.listen(process.env.PORT || 0, '127.0.0.1', () => console.log(`listening on port ${server.address().port}`));
process.on('SIGTERM', () => server.close(() => pool.end()));
