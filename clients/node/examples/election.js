// An election: of all the processes that run this, one leads. When it ends, another one leads at
// once; if it vanishes or hangs, after the TTL. `node election.js ann`
//
//     CREATE TABLE beat (leader text NOT NULL, token bigint NOT NULL,
//         at timestamptz NOT NULL DEFAULT clock_timestamp());
'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { Pool } = require('pg');
const { Advisory, NotAvailable } = require('advisory-ext');

const me = process.argv[2] ?? String(process.pid);
const pool = new Pool({ application_name: me });
// An idle connection was lost; the pool makes another.
pool.on('error', (error) => console.error(error.message));
let isOver = false;
process.on('SIGTERM', () => { isOver = true; });

async function lead(lease, signal) {
    console.log(`${me} leads, token ${lease.token}`);
    while (!signal.aborted && !isOver) {
        // Checked in the transaction that writes: nobody else gets the lease before that is
        // committed.
        await pool.query(`INSERT INTO beat (leader, token)
            SELECT $1, $2::bigint FROM advisory.check_lease($3, $4, $2::bigint)`,
            [me, lease.token, 'leader', 'scheduler']);
        await sleep(100);
    }
}

async function main() {
    while (!isOver) {
        try {
            await new Advisory(pool).withLease(
                'leader', 'scheduler', { ttl: '2s', timeout: '1s', owner: me }, lead);
        } catch (error) {
            if (error instanceof NotAvailable) continue;       // somebody else leads
            console.error(`${me}: ${error.message}`);
        }
    }
    await pool.end();
}

main();
