// The server's answers are watched over a network that the test can cut.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Client } = require('pg');
const { AdvisoryError, LeaseLost, NotAvailable } = require('advisory-ext');
const {
    Advisory, advisory, pool, makePool, makeNetwork, value, waitUntil, otherwise, sleep, testWith,
} = require('./helpers');

const row = async (name) => (await pool.query(
    'SELECT * FROM advisory.leases WHERE name = $1', [name])).rows[0];
const takenBySomebody = (name) => value(
    `SELECT token::text FROM advisory.lease('lease', $1, '1 hour')`, [name]);

// Work that goes on until it is told to stop; then rejects as fetch() and others do.
const endless = (lease, signal) => new Promise(
    (resolve, reject) => { signal.addEventListener('abort', () => reject(signal.reason)); });

// A machine that is busy with other things, and does not let a process run for half a second, is
// forgiven twice.
async function forgiven(attempt) {
    for (let i = 1; ; i++) {
        try {
            return await attempt();
        } catch (error) {
            if (i === 3 || !(error instanceof LeaseLost)) throw error;
        }
    }
}

test('the work has a lease, which ends with it', async () => {
    const result = await advisory.withLease('lease', 'plain', {
        ttl: '10s', owner: 'me',
    }, async (lease, signal) => {
        const { token, owner, ttl, expires_at: expiresAt } = await row('plain');
        assert.equal(lease.token, BigInt(token));
        assert.equal(owner, 'me');
        assert.equal(ttl.seconds, 10);
        assert.ok(Math.abs(lease.expiresAt - expiresAt) <= 1);
        assert.equal(signal.aborted, false);
        lease.check();
        return 'result';
    });
    assert.equal(result, 'result');
    assert.equal(await row('plain'), undefined);
});

test('tokens rise', async () => {
    const token = () => advisory.withLease('lease', 'token', { ttl: 1000 }, (lease) => lease.token);
    const first = await token();
    assert.ok(await token() > first);
});

test('an error of the work comes through, and the lease has ended', async () => {
    const mine = new Error('mine');
    await assert.rejects(
        advisory.withLease('lease', 'error', { ttl: 1000 }, () => { throw mine; }),
        (error) => error === mine);
    assert.equal(await row('error'), undefined);
});

test('what somebody else has is an error that says who', async () => {
    const other = await otherwise('withLease', 'lease', 'taken', { ttl: 60000, owner: 'somebody' });
    const error = await advisory.withLease(
        'lease', 'taken', { ttl: 300 }, () => assert.fail('it has begun')).catch((e) => e);
    assert.ok(error instanceof NotAvailable && error instanceof AdvisoryError, String(error));
    assert.match(error.message, /could not obtain lease "lease\/taken" without waiting$/);
    assert.match(error.holder.text, /^"somebody" holds it until/);
    assert.deepEqual(
        [error.namespace, error.lockName, error.holder.pid, error.remedy],
        ['lease', 'taken', null, null]);

    // A timeout that takes several calls is reported as a whole.
    const start = performance.now();
    await assert.rejects(
        advisory.withLease('lease', 'taken', { ttl: 300, timeout: '700ms' }, () => {}),
        /within 700 ms$/);
    const took = performance.now() - start;
    assert.ok(took >= 695 && took < 3000, String(took));
    const waiter = advisory.withLease(
        'lease', 'taken', { ttl: 300, timeout: null }, () => 'at last');
    await sleep(500);
    await other.done();
    assert.equal(await waiter, 'at last');
});

test('the name of a lease is no part of the limit', async () => {
    const name = 'stay within "bounds" within reason';
    const other = await otherwise('withLease', 'lease', name, { ttl: 60000 });
    await assert.rejects(advisory.withLease('lease', name, { ttl: 300, timeout: 100 }, () => {}),
        { message: `could not obtain lease "lease/${name}" within 100 ms` });
    await other.done();
});

test('a time limit of the driver does not end a wait: it would leave somebody behind who '
    + 'waits', async () => {
    const other = await otherwise('withLease', 'lease', 'limit', { ttl: 60000 });
    const waiting = new Advisory(makePool({ application_name: 'limited', query_timeout: 200 }))
        .withLease('lease', 'limit', { ttl: 6000, timeout: null }, () => 'at last');
    await sleep(1000);
    assert.equal(await value(`SELECT count(*)::int FROM pg_stat_activity
        WHERE application_name = 'limited' AND datname = current_database()`), 1);
    await other.done();
    assert.equal(await waiting, 'at last');
});

test('after the end check() does not say that it is ours, '
    + 'and the signal says nothing', async () => {
    const [lease, signal] = await advisory.withLease(
        'lease', 'after', { ttl: 60000 }, (...all) => all);
    await takenBySomebody('after');
    assert.throws(
        () => lease.check(),
        (error) => error instanceof LeaseLost && /"lease\/after" has ended/.test(error.message));
    assert.equal(signal.aborted, false);
});

test('a grant that is not confirmed is lost, in whatever language the server warns', async () => {
    for (const [severity, code, isLost] of [
        ['WARNUNG', '01000', true],
        ['HINWEIS', '00000', false],
    ]) {
        class German extends Client {
            query(text, ...rest) {
                if (/advisory\.lease\(/.test(text)) setImmediate(() => this.emit(
                    'notice', { severity, code, message: 'Warten wird abgebrochen' }));
                return super.query(text, ...rest);
            }
        }
        const result = new Advisory(makePool({ Client: German })).withLease(
            'lease', 'german', { ttl: 5000 }, () => 'done');
        await (isLost
            ? assert.rejects(result, /LeaseLost: .*is lost: the grant is not confirmed: Warten/)
            : result);
    }
});

for (const ttl of [300, '900ms']) {
    test(`a lease of ${ttl} is renewed for as long as the work takes`, async () => {
        await forgiven(() => advisory.withLease('lease', 'renewed', {
            ttl,
        }, async (lease, signal) => {
            const { expiresAt } = lease;
            await sleep(2000);
            lease.check();
            assert.equal(signal.aborted, false);
            assert.ok(lease.expiresAt - expiresAt > 1000);
            const { token, renewals } = await row('renewed');
            assert.equal(lease.token, BigInt(token));
            // After a third each: a machine that is busy makes them fewer, but never more.
            const most = 2000 / (typeof ttl === 'number' ? ttl : 900) * 3;
            assert.ok(renewals > most / 3 && renewals <= most + 1, `${renewals} renewals`);
        }));
    });
}

test('lockDelay keeps others out for a while', async () => {
    await advisory.withLease('lease', 'delay', { ttl: 60000, lockDelay: '1h' }, async () => {
        const refused = advisory.withLease('lease', 'delay', { ttl: 1000 }, () => {});
        const error = await refused.catch((e) => e);
        assert.match(error.holder.text, /Nobody else can take it before/);
    });
});

test('a lease that is broken aborts the work at the next renewal', async () => {
    const start = performance.now();
    const lost = advisory.withLease('lease', 'broken', { ttl: 1500 }, async (lease, signal) => {
        assert.equal(await value(`SELECT advisory.break_lease('lease', 'broken')`), true);
        await takenBySomebody('broken');
        await endless(lease, signal);
    });
    await assert.rejects(lost, (error) => error instanceof LeaseLost
        && error.lockName === 'broken' && /somebody else has it/.test(error.message));
    const took = performance.now() - start;
    assert.ok(took < 1400, `${took} ms`);
    assert.equal((await row('broken')).state, 'held', 'the other one still has it');
});

test('work that does not listen is told at its end, and its own error is the cause', async () => {
    const breakIt = (name) => value(`SELECT advisory.break_lease('lease', $1)`, [name]);
    await assert.rejects(
        advisory.withLease('lease', 'deaf', { ttl: 60000 }, () => breakIt('deaf')),
        /no longer ours at the end/);
    const mine = new Error('mine');
    await assert.rejects(advisory.withLease(
        'lease', 'deaf', { ttl: 60000 }, async () => { await breakIt('deaf'); throw mine; }),
        (error) => error instanceof LeaseLost && error.cause === mine);
});

test('it is told even if the connection is lost as well', async () => {
    const keeper = new Advisory(makePool({ application_name: 'lost keeper' }));
    await assert.rejects(keeper.withLease('lease', 'both', { ttl: 60000 }, async () => {
        assert.equal(await value(`SELECT advisory.break_lease('lease', 'both')`), true);
        await takenBySomebody('both');
        const count = () => value(
            `SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity
            WHERE application_name = 'lost keeper' AND datname = current_database()`);
        await waitUntil('it is gone', async () => await count() === 0);
        await sleep(50);
    }), /no longer ours at the end/);
});

// Cuts the network, and returns when the work is told: ms after the moment at which the server lets
// others have the lease. (Both have the same clock here.)
async function latenessOfAbort(ttl, cut) {
    const network = await makeNetwork();
    let late, cutAt;
    const lost = new Advisory(makePool(network.options)).withLease('lease', 'late', {
        ttl,
    }, async (lease, signal) => {
        const { expiresAt } = lease;
        await waitUntil('it is renewed', () => lease.expiresAt > expiresAt);
        cutAt = performance.now();
        await Promise.all([cut(network), endless(lease, signal).catch(() => {
            late = Date.now() - lease.expiresAt;
            assert.throws(() => lease.check(), (error) => error === signal.reason);
        })]);
        throw signal.reason;
    });
    await assert.rejects(lost, (error) => error instanceof LeaseLost
        && error.message.includes(`no renewal has succeeded for ${ttl} ms`));
    assert.ok(performance.now() - cutAt < 2 * ttl + 200, 'the end does not wait for the network');
    return late;
}

test('a network that hangs does not keep the work from being told in time', async () => {
    const late = await latenessOfAbort(1200, (network) => network.freeze());
    assert.ok(late > -200 && late < 100, `${late} ms after its TTL`);
});

test('nor does a renewal that is sent at the very end', async () => {
    const late = await latenessOfAbort(1500, async (network) => {
        network.refuse();
        await sleep(1300);
        network.freeze();
    });
    assert.ok(late > -200 && late < 100, `${late} ms after its TTL`);
});

test('the server believes in the lease for at least as long as the work does', async () => {
    let stateAtAbort;
    const network = await makeNetwork();
    const lost = new Advisory(makePool(network.options)).withLease('lease', 'believed', {
        ttl: 900,
    }, async (lease, signal) => {
        await sleep(500);
        network.freeze();
        // Another connection, which is not cut, looks until the abort.
        while (!signal.aborted) {
            const { remaining } = (await pool.query(
                `SELECT extract(epoch FROM remaining)::float8 AS remaining
                FROM advisory.leases WHERE name = 'believed'`)).rows[0] ?? {};
            if (!signal.aborted) stateAtAbort = remaining;
            await sleep(2);
        }
        throw signal.reason;
    });
    await assert.rejects(lost, LeaseLost);
    assert.ok(stateAtAbort > -0.02, `${stateAtAbort} s remained`);
});

test('after a lost connection the lease is renewed on another one', async () => {
    const keeperPool = makePool({ application_name: 'keeper', max: 1 });
    await new Advisory(keeperPool).withLease('lease', 'reconnect', {
        ttl: 1500,
    }, async (lease, signal) => {
        const renewals = async () => Number((await row('reconnect')).renewals);
        for (let i = 0; i < 2; i++) {
            assert.equal(
                await value(`SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity
                WHERE application_name = 'keeper' AND datname = current_database()`), 1);
            const before = await renewals();
            await waitUntil('it is renewed again', async () => await renewals() > before, 5000);
        }
        assert.equal(signal.aborted, false);
    });
    assert.equal(await row('reconnect'), undefined);
    await waitUntil('no connection is left',
        async () => await value(`SELECT count(*)::int FROM pg_stat_activity
            WHERE application_name = 'keeper' AND datname = current_database()`) === 0);
});

test('a row that is locked for too long is a renewal that fails, not one that hangs', async () => {
    const client = await pool.connect();
    await client.query('BEGIN');
    try {
        const lost = advisory.withLease('lease', 'row', { ttl: 900 }, async (lease, signal) => {
            await client.query('SELECT FROM advisory._leases FOR UPDATE');
            await endless(lease, signal);
        });
        await assert.rejects(
            lost, /no renewal has succeeded for 900 ms: the server has not answered for 300 ms/);
    } finally {
        await client.query('ROLLBACK');
        client.release();
    }
});

test('a waiter whose connection is lost goes on with a new one', async () => {
    const other = await otherwise('withLease', 'lease', 'waiter', { ttl: 60000 });
    const waiter = new Advisory(makePool({ application_name: 'waiter' }));
    const waiting = waiter.withLease(
        'lease', 'waiter', { ttl: 3000, timeout: null }, () => 'at last');
    for (let i = 0; i < 2; i++) {
        await waitUntil(
            'it waits',
            () => value(`SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity
            WHERE application_name = 'waiter' AND datname = current_database()
                AND state = 'active' AND query LIKE '%advisory.lease(%'`));
        await sleep(100);
    }
    await other.done();
    assert.equal(await waiting, 'at last');
});

test('if the server cannot be reached to begin with, the error comes out', async () => {
    const nowhere = new Advisory(makePool({ port: 1 }));
    await assert.rejects(
        nowhere.withLease('lease', 'nowhere', { ttl: 1000, timeout: null }, () => {}),
        { code: /ENOENT|ECONNREFUSED/ });
});

test('nor does anybody wait for a server that is a standby', async () => {
    const readOnly = new Advisory(makePool({ options: '-c default_transaction_read_only=on' }));
    await assert.rejects(
        readOnly.withLease('lease', 'standby', { ttl: 1000, timeout: null }, () => {}),
        { code: '25006' });
});

test('a pool that is used up does not keep the lease from being renewed', async () => {
    const small = makePool({ max: 1 });
    await forgiven(() => new Advisory(small).withLease('lease', 'small', {
        ttl: 400,
    }, async (lease) => {
        await small.query('SELECT pg_sleep(1.2)');
        lease.check();
    }));
});

test('work that keeps the processor busy finds out by check()', async () => {
    await assert.rejects(advisory.withLease('lease', 'busy', { ttl: 200 }, (lease) => {
        const end = performance.now() + 300;
        lease.check();
        while (performance.now() < end);
        lease.check();
        assert.fail('check() has not noticed');
    }), LeaseLost);
});

testWith('TRANSACTION_POOLER', 'transaction pooler: leases work', async () => {
    const clients = makePool({ port: process.env.TRANSACTION_POOLER });
    const leases = new Advisory(clients);
    const work = async (lease) => {
        await sleep(1500);
        lease.check();
    };
    await Promise.all(Array.from({ length: 4 }, (_, i) => forgiven(
        () => leases.withLease('lease', `pooled ${i}`, { ttl: 600 }, work))));
    assert.equal(
        await value(`SELECT count(*)::int FROM advisory.leases WHERE name LIKE 'pooled%'`), 0);
});
