// What the tests share. They run against the database of PGHOST, PGPORT, PGUSER and PGDATABASE,
// with the extension or the portable edition.
//
//     TRANSACTION_POOLER, SESSION_POOLER: ports of a PgBouncer in these modes, with its socket in
//         PGHOST
//     SERVER_CTL: a command that takes "stop -m immediate" and "start" (the tests of this kind run
//         alone)
'use strict';

const net = require('net');
const { after, test } = require('node:test');
const { setTimeout: sleep } = require('timers/promises');
const { Pool } = require('pg');
const { Advisory } = require('advisory-ext');

const pools = [];
const clients = new Set();
const holders = [];

// A pool, and whatever else pg.Pool takes; its connections end with the tests of the file.
function makePool(options = {}) {
    const pool = new Pool({ application_name: 'test', ...options });
    pool.on('error', () => {});
    pool.on('connect', (client) => clients.add(client));
    pools.push(pool);
    return pool;
}

// A test that has failed may have left some in use.
after(async () => {
    holders.forEach((done) => done.resolve());
    const ends = pools.filter((pool) => !pool.ending).map((pool) => pool.end());
    await Promise.race([Promise.all(ends), sleep(3000, undefined, { ref: false })]);
    clients.forEach((client) => client.connection.stream.destroy());
});

const pool = makePool();
const advisory = new Advisory(pool);

// The first value of the first row.
async function value(text, values) {
    const { rows } = await pool.query({ text, values, rowMode: 'array' });
    return rows[0]?.[0];
}

// The locks that anybody holds, as the server itself knows them.
const lockCount = () => value(
    `SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);

async function waitUntil(what, isSo, ms = 20000) {
    const end = performance.now() + ms;
    while (!await isSo()) {
        if (performance.now() > end) {
            throw new Error(`gave up waiting until ${what}`);
        }
        await sleep(5);
    }
}

// A promise with its resolve().
function defer() {
    let resolve;
    const promise = new Promise((r) => { resolve = r; });
    return { promise, resolve };
}

// Somebody else, whose application is "other", has something until done(): otherwise('withLock',
// 'ns', 'name', options).
const otherwise = (...what) => as('other', ...what);

async function as(application, method, ...args) {
    const other = new Advisory(makePool({ application_name: application, max: 1 }));
    const taken = defer(), done = defer();
    holders.push(done);
    const held = other[method](...args, async (...what) => {
        taken.resolve(what);
        await done.promise;
    });
    held.catch(() => {});
    await Promise.race([taken.promise, held]);
    return { held, done: async () => { done.resolve(); await held; } };
}

// A network that can be cut: a port of loopback that leads to the server, or to that port of it,
// with a delay of so many milliseconds each way. After freeze() nothing comes through any more;
// after refuse() all connections end, and new ones at once.
async function makeNetwork(port = process.env.PGPORT ?? 5432, delay = 0) {
    const sockets = new Set();
    let isFrozen = false, isRefusing = false;
    const server = net.createServer((here) => {
        if (isRefusing) {
            return here.destroy();
        }
        const there = net.connect(`${process.env.PGHOST}/.s.PGSQL.${port}`);
        for (const [from, to] of [[here, there], [there, here]]) {
            sockets.add(from);
            const pass = (what) => isFrozen || (delay ? setTimeout(what, delay) : what());
            from.on('data', (data) => pass(() => to.write(data)));
            from.on('close', () => pass(() => to.destroy())).on('error', () => {});
        }
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    after(() => {
        sockets.forEach((socket) => socket.destroy());
        server.close();
    });
    return {
        options: { host: '127.0.0.1', port: server.address().port },
        freeze() {
            isRefusing = false;
            isFrozen = true;
        },
        refuse() {
            isRefusing = true;
            sockets.forEach((socket) => socket.destroy());
        },
    };
}

// A test that needs one of the variables above.
const testWith = (variable, title, body) => test(
    title, { skip: process.env[variable] ? false : `there is no ${variable}` }, body);

module.exports = {
    Advisory, advisory, pool, makePool, makeNetwork, value, lockCount, waitUntil, defer, as,
    otherwise, sleep, testWith,
};
