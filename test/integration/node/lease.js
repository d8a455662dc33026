// A worker that holds a lease by clients/node, for lease_clients.t: a report with a line for each
// step. The arguments are its name, the number of steps, how many seconds to sleep after each, the
// TTL, and how long to wait for the lease.
'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { Pool } = require('pg');
const { Advisory, NotAvailable } = require('../../../clients/node');

async function addLine(client, lease, worker) {
    lease.check();
    await client.query('BEGIN');
    try {
        await client.query(
            'SELECT advisory.check_lease($1, $2, $3)', ['report', 'daily', lease.token]);
        await client.query(
            'INSERT INTO report (worker, token) VALUES ($1, $2)', [worker, lease.token]);
        await client.query('COMMIT');
    } catch (error) {
        await client.query('ROLLBACK').catch(() => {});
        throw error;
    }
}

async function main(worker, steps, pause, ttl = 30, timeout = null) {
    const advisory = new Advisory(new Pool({ application_name: `${worker}-lease` }));
    const ended = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM']) {
        process.once(signal, () => ended.abort(new Error(`the program was ended by ${signal}`)));
    }
    const options = {
        ttl: 1000 * ttl, timeout: timeout === null ? null : 1000 * timeout, owner: worker,
    };
    try {
        await advisory.withLease('report', 'daily', options, async (lease, signal) => {
            signal.addEventListener('abort', () => console.log(`${worker}: the lease is lost`));
            console.log(`${worker} has the lease, token ${lease.token}`);
            const pool = new Pool({ application_name: worker, max: 1 });
            pool.on('error', (error) => console.error(error.message));
            // The pool throws it away.
            pool.on('connect', (client) => client.on('error', () => {}));
            const either = AbortSignal.any([signal, ended.signal]);
            try {
                for (let step = 0; step < steps; step++) {
                    const client = await pool.connect();
                    try {
                        await addLine(client, lease, worker);
                    } finally {
                        client.release();
                    }
                    await sleep(1000 * pause, undefined, { signal: either }).catch(
                        () => { throw either.reason; });
                }
            } finally {
                pool.end();
            }
        });
        console.log(`${worker} is done`);
    } catch (error) {
        const why = error instanceof NotAvailable ? 'does not begin: somebody else has the lease'
            : `stops: ${error.message}`;
        console.error(`${worker} ${why.replace('lease "report/daily" is lost: ', '')}`);
        process.exitCode = 1;
    }
}

main(...process.argv.slice(2));
