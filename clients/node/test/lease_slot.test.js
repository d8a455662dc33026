// Slots that outlive a session, and leases that are not to be held for ever.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LeaseLost, NotAvailable } = require('advisory-ext');
const {
    Advisory, advisory, pool, makePool, value, waitUntil, otherwise, sleep, testWith,
} = require('./helpers');

const rows = async (name) => (await pool.query(
    `SELECT * FROM advisory.leases WHERE namespace = 'leased' AND name = $1 ORDER BY slot`,
    [name])).rows;
const endless = (lease, signal) => new Promise(
    (resolve, reject) => { signal.addEventListener('abort', () => reject(signal.reason)); });

test('each has a slot of its own, and the next one an error that says who has them', async () => {
    const options = { ttl: 60000 };
    const first = await otherwise('withSlot', 'leased', 'two', 2, { ...options, owner: 'first' });
    const other = await otherwise('withSlot', 'leased', 'two', 2, { ...options, owner: 'other' });
    const error = await advisory.withSlot('leased', 'two', 2, { ...options, timeout: 50 },
        () => assert.fail('it has begun')).catch((e) => e);
    assert.ok(error instanceof NotAvailable, String(error));
    assert.match(error.message, /"leased\/two" within 50 ms$/);
    assert.match(error.holder.text, /"first" holds/);
    assert.deepEqual([error.namespace, error.lockName], ['leased', 'two']);
    await first.done();
    const [slot, token] = await advisory.withSlot(
        'leased', 'two', 2, { ttl: '10s', owner: 'me' }, async (lease, signal) => {
            const [mine] = await rows('two');
            assert.deepEqual([mine.slot, mine.owner, mine.ttl.seconds], [1, 'me', 10]);
            assert.ok(Math.abs(lease.expiresAt - mine.expires_at) <= 1);
            assert.equal(lease.token, BigInt(mine.token));
            assert.equal(signal.aborted, false);
            lease.check();
            return [lease.slot, lease.token];
        });
    assert.equal(slot, 1);
    await other.done();
    assert.deepEqual(await rows('two'), []);
    assert.ok(token < await advisory.withSlot('leased', 'two', 2, options, (it) => it.token));
});

// The extension warns of that, but the grant is as good as any.
test('another number of slots does not make a grant doubtful', async () => {
    const other = await otherwise('withSlot', 'leased', 'numbers', 2, { ttl: 60000 });
    const slot = await advisory.withSlot('leased', 'numbers', 3, { ttl: '10s' }, (it) => it.slot);
    assert.equal(slot, 2);
    await other.done();
});

test('a lease of that name is another one', async () => {
    await advisory.withSlot('leased', 'both', 1, { ttl: 60000 }, () => advisory.withLease(
        'leased', 'both', { ttl: 60000 }, async (lease) => {
            assert.equal(lease.slot, undefined);
            assert.equal((await rows('both')).length, 2);
        }));
});

test('never more than there are slots, and a failure ends its own', async () => {
    let now = 0, most = 0;
    const visit = (i) => advisory.withSlot('leased', 'three', 3, {
        ttl: '10s', timeout: '20s',
    }, async () => {
        most = Math.max(most, ++now);
        await waitUntil('all slots are taken at once', () => most === 3);
        await sleep(5);
        now--;
        if (i % 2) throw new Error('mine');
    }).catch((error) => assert.equal(error.message, 'mine'));
    await Promise.all(Array.from({ length: 12 }, (_, i) => visit(i)));
    assert.equal(most, 3);
    assert.deepEqual(await rows('three'), []);
});

test('it is renewed for as long as the work takes', async () => {
    await advisory.withSlot('leased', 'renewed', 2, { ttl: '3s' }, async (lease) => {
        await waitUntil('it is renewed', async () => (await rows('renewed'))[0].renewals >= 3);
        lease.check();
    });
});

test('a slot that is broken aborts the work at the next renewal', async () => {
    const lost = advisory.withSlot('leased', 'broken', 2, { ttl: '3s' }, async (lease, signal) => {
        await pool.query(`SELECT advisory.break_lease('leased', 'broken', $1)`, [lease.token]);
        await endless(lease, signal);
    });
    await assert.rejects(lost, (error) => error instanceof LeaseLost && error.lockName === 'broken'
        && /^slot 1 of lease "leased\/broken" is lost: .*somebody else/.test(error.message));
});

for (const [what, call] of [
    ['a lease', (...rest) => advisory.withLease('leased', 'max', ...rest)],
    ['a slot', (...rest) => advisory.withSlot('leased', 'max', 2, ...rest)],
]) {
    test(`${what} is lost when maxHold is over, however often it was renewed`, async () => {
        const start = performance.now();
        let renewals, remaining;
        const lost = call({ ttl: 1500, maxHold: '3s' }, async (lease, signal) => {
            // Another connection looks until the abort.
            while (!signal.aborted) {
                const { rows: [row] } = await pool.query(`SELECT renewals,
                    extract(epoch FROM expires_at - clock_timestamp())::float8 AS remaining
                    FROM advisory.leases WHERE namespace = 'leased' AND name = 'max'`);
                if (!signal.aborted) ({ renewals, remaining } = row);
                await sleep(2);
            }
            assert.throws(() => lease.check(), (error) => error === signal.reason);
            throw signal.reason;
        });
        await assert.rejects(lost, (error) => error instanceof LeaseLost
            && error.message.endsWith('is lost: it was held for as long as maxHold allows'));
        const took = performance.now() - start;
        assert.ok(took >= 3000, `${took} ms`);
        assert.ok(renewals >= 2 && renewals <= 6, `${renewals} renewals`);
        assert.ok(remaining > -0.02 && remaining < 0.5, `${remaining} s remained`);
        await call({ ttl: 600 }, () => {});
    });
}

test('what does not fit is refused', async () => {
    const refused = (options, what, slots = 2) => assert.rejects(
        advisory.withSlot('leased', 'wrong', slots, options, () => assert.fail('begun')), what);
    await refused({ ttl: '10s', scope: 'session' }, /there is no option scope; there are ttl, /);
    await refused({ owner: 'me' }, /there is no option owner; there are timeout, scope/);
    await refused({ ttl: '10' }, /ttl is a number of milliseconds or a string with a unit/);
    await refused({ ttl: '10s', maxHold: '10' }, /maxHold is a number of milliseconds/);
    await refused({ ttl: '10s', maxHold: 0 }, { code: '22023' });
    await refused({ ttl: '10s' }, { code: '22023' }, 0);
    await refused({ ttl: '10s' }, { code: /^220/ }, null);
});

testWith('TRANSACTION_POOLER', 'transaction pooler: slots of leases work', async () => {
    const slots = new Advisory(makePool({ port: process.env.TRANSACTION_POOLER }));
    let now = 0, most = 0;
    await Promise.all(Array.from({ length: 6 }, () => slots.withSlot('leased', 'pooled', 2, {
        ttl: '3s', timeout: '30s',
    }, async (lease) => {
        most = Math.max(most, ++now);
        await waitUntil('it is renewed', async () => await value(
            'SELECT renewals FROM advisory.leases WHERE token = $1', [lease.token]) > 0);
        lease.check();
        now--;
    })));
    assert.equal(most, 2);
    assert.deepEqual(await rows('pooled'), []);
});
