// Webhooks, each processed exactly once. If the sender of POST /webhook/<event id> gets no answer in time, it sends the event again. So the same
// event may come several times, even at the same time and to several processes.
//
// The lock keeps two deliveries of one event from running at the same time. A row says that the event was processed: the program looks for it
// under the lock, and commits it together with the work. The lock is transaction-level, so it works behind a transaction pooler such as
// PgBouncer. xact_lock returns true, or raises an error that stops the work.
// A timeout has its unit, as in '5s': the number 5000 would mean 5,000 seconds.
//
//     CREATE TABLE webhook_done (event_id text PRIMARY KEY, done_at timestamptz NOT NULL DEFAULT now());
//     CREATE TABLE payment (event_id text NOT NULL);
//
//     npm install pg && PORT=8080 PGHOST=localhost PGDATABASE=shop node webhook.js
//     curl -X POST localhost:8080/webhook/evt_1
'use strict';

const http = require('http');
const { Pool } = require('pg');

const pool = new Pool({ application_name: 'webhooks', max: 5 });
pool.on('error', (error) => console.error(error.message));     // an idle connection was lost; the pool makes another

async function work(client, eventId) {
    await client.query('INSERT INTO payment (event_id) VALUES ($1)', [eventId]);
}

async function receive(eventId) {
    const client = await pool.connect();
    let broken;
    try {
        await client.query('BEGIN');
        await client.query('SELECT advisory.xact_lock($1, $2, $3)', ['webhook', eventId, '10s']);
        // A statement of its own, after the lock: it sees what the one before us has committed. (In READ COMMITTED, that is.)
        const done = await client.query('SELECT FROM webhook_done WHERE event_id = $1', [eventId]);
        if (done.rowCount === 0) {
            await work(client, eventId);
            await client.query('INSERT INTO webhook_done (event_id) VALUES ($1)', [eventId]);
        }
        await client.query('COMMIT');
        return done.rowCount === 0 ? 'processed' : 'duplicate';
    } catch (error) {
        await client.query('ROLLBACK').catch((lost) => { broken = lost; });
        throw error;
    } finally {
        client.release(broken);        // with an error, the pool throws the connection away
    }
}

const server = http.createServer(async (request, response) => {
    const [, eventId] = request.method === 'POST' && request.url.match(/^\/webhook\/(\w+)$/) || [];
    if (!eventId) {
        response.writeHead(404).end('try POST /webhook/evt_1\n');
        return;
    }
    try {
        response.end(await receive(eventId) + '\n');
    } catch (error) {
        // Whatever it is, the sender sends again. 55P03: the delivery before this one takes longer than 10 s.
        if (error.code !== '55P03') console.error(error);
        response.writeHead(503).end('not now\n');
    }
});

server.listen(process.env.PORT || 0, '127.0.0.1', () => console.log(`listening on port ${server.address().port}`));
process.on('SIGTERM', () => server.close(() => pool.end()));
