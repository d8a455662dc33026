// The server is stopped in the middle of the work, as by a crash, and started again.
'use strict';

const assert = require('node:assert/strict');
const { execSync } = require('node:child_process');
const { LeaseLost, LockLost } = require('advisory-ext');
const { Advisory, makePool, defer, lockCount, value, testWith } = require('./helpers');

const ctl = (command) => execSync(
    `${process.env.SERVER_CTL} ${command}`, { stdio: ['ignore', 'ignore', 'inherit'] });

testWith('SERVER_CTL', 'a server that is killed', async () => {
    const pool = makePool();
    const advisory = new Advisory(pool);
    await value('CREATE TABLE killed_test (what text)');
    const isDown = defer();
    const begun = [];
    const work = async (...what) => {
        begun.push(what);
        await isDown.promise;
    };
    const settled = (promise) => promise.then(
        (result) => ({ result }), (error) => ({ error, at: performance.now() }));
    const all = {
        transaction: settled(advisory.withLock('killed', 'transaction', async (client) => {
            await client.query(`INSERT INTO killed_test VALUES ('lost')`);
            await work();
        })),
        session: settled(advisory.withLock('killed', 'session', { scope: 'session' }, work)),
        slot: settled(advisory.withSlot('killed', 'slot', 2, work)),
        short: settled(advisory.withLease('killed', 'short', {
            ttl: 1500,
        }, (lease, signal) => new Promise((resolve, reject) => {
            begun.push(lease);
            signal.addEventListener('abort', () => reject(signal.reason));
        }))),
        long: settled(advisory.withLease('killed', 'long', { ttl: '60s' }, async (lease) => {
            await work();
            // The server is there again, and the lease is still ours, or so says the server.
            assert.equal(
                await value(`SELECT advisory.check_lease('killed', 'long', $1)`, [lease.token]),
                true);
            return 'done';
        })),
    };
    while (begun.length < 5) {
        await new Promise(setImmediate);
    }
    const stoppedAt = performance.now();
    await new Promise(setImmediate);
    ctl('stop -m immediate');
    const short = await all.short;
    assert.ok(short.error instanceof LeaseLost, String(short.error));
    assert.ok(
        short.at - stoppedAt < 3500,
        'in time, though the command has blocked the process for a while');
    ctl('start');
    isDown.resolve();

    const { transaction, session, slot, long } = Object.fromEntries(
        await Promise.all(
            Object.entries(all).map(async ([name, promise]) => [name, await promise])));
    assert.ok(transaction.error && slot.error, 'no COMMIT is believed');
    assert.ok(session.error instanceof LockLost, String(session.error));
    assert.equal(long.result, 'done', String(long.error));
    // The same pool works on.
    assert.equal(
        await advisory.withLock('killed', 'session', { scope: 'session' }, () => 'again'), 'again');
    assert.equal(
        await advisory.withLease('killed', 'long', { ttl: 1000 }, () => 'again'), 'again',
        'the lease has ended');
    assert.equal(await value('SELECT count(*)::int FROM killed_test'), 0);
    assert.equal(await lockCount(), 0);
});
