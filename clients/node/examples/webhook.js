// Webhooks, each processed once, although their sender sends them again and to several processes:
// POST /webhook/<event id>
//
//     CREATE TABLE webhook_done (event_id text PRIMARY KEY,
//         done_at timestamptz NOT NULL DEFAULT now());
//     CREATE TABLE payment (event_id text NOT NULL);
'use strict';

const http = require('http');
const { Pool } = require('pg');
const { Advisory, NotAvailable } = require('advisory-ext');

const pool = new Pool({ application_name: 'webhooks', max: 5 });
// An idle connection was lost; the pool makes another.
pool.on('error', (error) => console.error(error.message));
const advisory = new Advisory(pool);

const receive = (eventId) => advisory.withLock('webhook', eventId, {
    timeout: '10s',
}, async (client) => {
    // Looked for under the lock, and committed together with the work.
    const { rowCount } = await client.query(
        'SELECT FROM webhook_done WHERE event_id = $1', [eventId]);
    if (rowCount > 0) return 'duplicate';
    // Stands for the work.
    await client.query('INSERT INTO payment (event_id) VALUES ($1)', [eventId]);
    await client.query('INSERT INTO webhook_done (event_id) VALUES ($1)', [eventId]);
    return 'processed';
});

const server = http.createServer(async (request, response) => {
    const [, eventId] = request.method === 'POST' && request.url.match(/^\/webhook\/(\w+)$/) || [];
    if (!eventId) return response.writeHead(404).end('try POST /webhook/evt_1\n');
    try {
        response.end(await receive(eventId) + '\n');
    } catch (error) {
        if (!(error instanceof NotAvailable)) console.error(error);
        response.writeHead(503).end('not now\n');               // the sender sends again
    }
});

server.listen(
    process.env.PORT || 0, '127.0.0.1',
    () => console.log(`listening on port ${server.address().port}`));
process.on('SIGTERM', () => server.close(() => pool.end()));
