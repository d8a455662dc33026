// Leader election: one of the processes that run this is the leader. When it ends, or loses its connection, another one becomes the leader.
//
// The leader holds a session-level lock. It uses the connection of that lock only to hold it, and to write down that it is alive. As long as
// statements on this connection succeed, it holds the lock. If the connection is lost, it is no longer the leader. The connection must go to
// the server itself, or through a pooler in session mode.
//
// The candidates wait with await_lock, without a snapshot. So a wait of days does not hold vacuum back.
// A timeout has its unit, as in '5s': the number 5000 would mean 5,000 seconds.
//
//     CREATE TABLE term (
//         number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
//         leader    text NOT NULL,
//         began     timestamptz NOT NULL DEFAULT clock_timestamp(),
//         last_seen timestamptz NOT NULL DEFAULT clock_timestamp());
//
//     npm install pg       # 8.13 or later: query_timeout for a single query
//     PGHOST=localhost PGDATABASE=shop node leader-election.js [name of this candidate]
//
// A process that is killed is noticed by the server at once. A machine that is cut off is noticed when TCP says so: see
// tcp_keepalives_idle and tcp_user_timeout in the server's configuration, and let PATIENCE be less than these.
'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { Client } = require('pg');

const HEARTBEAT = 200;      // ms from one sign of life to the next
const PATIENCE = 2000;      // ms for the server to answer one; then the connection counts as lost
const PAUSE = 300;          // ms until a process that has lost its connection tries again

const me = process.argv[2] || `${require('os').hostname()}:${process.pid}`;

// Leads until the signal comes or the server does not answer, and always ends with an error.
//
// Work that does not go over this connection has to carry the number of the term: its receiver refuses numbers
// lower than the highest one seen, for an answer that takes long may belong to a leader of yesterday.
async function lead(client, term, lost) {
    console.log(`${me} leads, term ${term}`);
    try {
        for (;;) {
            await client.query({
                text: 'UPDATE term SET last_seen = clock_timestamp() WHERE number = $1',
                values: [term],
                query_timeout: PATIENCE,
            });
            await sleep(HEARTBEAT, undefined, { signal: lost });       // the leader's work, which is to heed the signal
        }
    } finally {
        console.log(`${me} leads no more`);
    }
}

async function campaign() {
    const client = new Client({ application_name: me, keepAlive: true });
    const lost = new AbortController();
    client.on('error', () => lost.abort());
    client.on('end', () => lost.abort());
    try {
        await client.connect();
        await client.query('CALL advisory.await_lock($1, $2)', ['leader', 'scheduler']);
        const { rows } = await client.query('INSERT INTO term (leader) VALUES ($1) RETURNING number', [me]);
        await lead(client, rows[0].number, lost.signal);
    } finally {
        client.end().catch(() => {});      // not to be waited for: the connection may be dead
    }
}

async function main() {
    for (;;) {
        await campaign().catch((error) => console.error(`${me}: ${error.message}`));
        await sleep(PAUSE);
    }
}

main();
