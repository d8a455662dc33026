// A work queue for several workers, at most two jobs of a tenant at a time: `node queue.js`, as
// often as you like. Behind PgBouncer, too.
//
//     CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
//         tenant text NOT NULL, mail text NOT NULL, done_at timestamptz);
//     CREATE INDEX ON job (tenant, id) WHERE done_at IS NULL;
'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { Pool } = require('pg');
const { Advisory, NotAvailable } = require('advisory-ext');

const pool = new Pool();
// An idle connection was lost; the pool makes another.
pool.on('error', (error) => console.error(error.message));
const advisory = new Advisory(pool);

// Does a job of the tenant; false if all of them are done, or other workers have them. Slot, job
// and work are one transaction: after a crash another worker does the job.
const workFor = (tenant) => advisory.withSlot('tenant', tenant, 2, async (client) => {
    const { rows: [job] } = await client.query(
        `SELECT id, mail FROM job WHERE tenant = $1 AND done_at IS NULL
        ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`, [tenant]);
    if (!job) return false;
    await sleep(50);                                            // stands for the work
    await client.query('UPDATE job SET done_at = clock_timestamp() WHERE id = $1', [job.id]);
    return true;
});

// The same, also if two jobs of this tenant are at work.
const tryToWorkFor = (tenant) => workFor(tenant).catch((error) => {
    if (!(error instanceof NotAvailable)) throw error;
});

async function main() {
    let isOver = false;
    process.on('SIGTERM', () => { isOver = true; });
    while (!isOver) {
        const { rows } = await pool.query(
            'SELECT DISTINCT tenant FROM job WHERE done_at IS NULL ORDER BY tenant');
        const wasBusy = await Promise.all(rows.map(({ tenant }) => tryToWorkFor(tenant)));
        if (!wasBusy.includes(true)) await sleep(200);
    }
    await pool.end();
}

main();
