'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Advisory, advisory, pool, makePool, value, waitUntil, testWith } = require('./helpers');

test.before(() => pool.query('CREATE TABLE IF NOT EXISTS claim_test (day timestamptz)'));

test('a window is claimed once', async () => {
    const windowStart = new Date('2026-03-01T00:00:00Z');
    assert.deepEqual(await advisory.claim('claim', 'daily', '1 day', { windowStart }), windowStart);
    assert.equal(await advisory.claim('claim', 'daily', '1 day', { windowStart }), null);
    assert.equal(
        await advisory.claim('claim', 'daily', 86400000, { windowStart: '2026-03-01 00:00+00' }),
        null);
    assert.deepEqual(
        await advisory.claim('claim', 'daily', '1 day', { windowStart: '2026-03-02 00:00+00' }),
        new Date('2026-03-02T00:00:00Z'));
});

test('by default the window is the present one', async () => {
    const began = await advisory.claim('claim', 'hourly', '1 hour');
    assert.equal(began.getTime() % 3600000, 0);
    assert.ok(Math.abs(Date.now() - began) <= 3660000);
});

test('days of a time zone begin at its midnight', async () => {
    const began = await advisory.claim('claim', 'zone', '1 day', { timeZone: 'Asia/Kolkata' });
    assert.equal(began.getTime() % 86400000, (24 - 5.5) * 3600000);
    await assert.rejects(
        advisory.claim('claim', 'zone', '1 day', { windowStart: began, timeZone: 'Asia/Kolkata' }),
        { code: '22023' });
});

test('with a client, the claim belongs to its transaction', async () => {
    const run = (work) => advisory.withLock('claim', 'job', { timeout: '5s' }, async (client) => {
        const day = await advisory.claim(
            'claim', 'job', '1 day', { windowStart: '2026-03-01 00:00+00', client });
        if (day) await client.query('INSERT INTO claim_test VALUES ($1)', [day]);
        await work();
        return day;
    });
    await assert.rejects(run(() => { throw new Error('mine'); }), /mine/);
    assert.notEqual(await run(() => {}), null);
    assert.equal(await run(() => {}), null);
    assert.equal((await pool.query('SELECT FROM claim_test')).rowCount, 1);
});

test('if the connection ends meanwhile, the pool gets no broken one, '
    + 'not even for a moment', async () => {
    const holder = await pool.connect();
    await holder.query('BEGIN');
    await advisory.claim('claim', 'broken', '1 day', { client: holder });
    const small = makePool({ max: 1, application_name: 'waiter' });
    const failed = new Advisory(small).claim('claim', 'broken', '1 day').catch(
        async (error) => [error.code, (await small.query('SELECT 1 AS one')).rows[0].one]);
    await waitUntil(
        'it waits', () => value(`SELECT bool_or(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'waiter' AND wait_event_type = 'Lock'
            AND datname = current_database()`));
    assert.deepEqual(await failed, ['57P01', 1]);
    await holder.query('ROLLBACK');
    holder.release();
});

test(
    'a time without a unit is refused',
    () => assert.rejects(advisory.claim('claim', 'x', '60'), TypeError));

testWith('TRANSACTION_POOLER', 'transaction pooler: one of many claims the window', async () => {
    const claims = new Advisory(makePool({ port: process.env.TRANSACTION_POOLER, max: 10 }));
    const days = await Promise.all(
        Array.from({ length: 20 }, () => claims.claim('claim', 'pooled', '1 day')));
    assert.equal(days.filter((day) => day !== null).length, 1);
});
