'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { NotAvailable } = require('advisory-ext');
const {
    Advisory, advisory, makePool, lockCount, otherwise, sleep, testWith,
} = require('./helpers');

for (const scope of ['transaction', 'session']) {
    test(`${scope}: each gets a slot of its own, `
        + 'and the next one an error that says who has them', async () => {
        const first = await otherwise('withSlot', 'slot', 'two', 2, { scope });
        assert.equal(
            await advisory.withSlot('slot', 'two', 2, { scope }, (client, slot) => slot), 2);
        const second = await otherwise('withSlot', 'slot', 'two', 2, { scope });
        const error = await advisory.withSlot(
            'slot', 'two', 2, { scope, timeout: 50 },
            () => assert.fail('it has begun')).catch((e) => e);
        assert.ok(error instanceof NotAvailable, String(error));
        assert.equal(error.holder.application, 'other');
        assert.match(error.holder.text, /has slot 1;.*\n.*has slot 2;/);
        assert.match(
            error.remedy,
            /^SELECT advisory\.terminate_holder\('slot', 'two', \d+, kind => 'semaphore'\)$/);
        await first.done();
        assert.equal(
            await advisory.withSlot('slot', 'two', 2, { scope }, (client, slot) => slot), 1);
        await second.done();
        assert.equal(await lockCount(), 0);
    });

    test(`${scope}: never more than there are slots, and a failure releases its own`, async () => {
        let now = 0, most = 0;
        const visit = async (i) => advisory.withSlot('slot', 'three', 3, {
            scope, timeout: '20s',
        }, async () => {
            most = Math.max(most, ++now);
            await sleep(5);
            now--;
            if (i % 2) throw new Error('mine');
        }).catch((error) => assert.equal(error.message, 'mine'));
        await Promise.all(Array.from({ length: 30 }, (_, i) => visit(i)));
        assert.equal(most, 3);
        assert.equal(await lockCount(), 0);
    });
}

testWith('TRANSACTION_POOLER', 'transaction pooler: slots of transactions', async () => {
    const slots = new Advisory(makePool({ port: process.env.TRANSACTION_POOLER, max: 10 }));
    let now = 0, most = 0;
    await Promise.all(Array.from({ length: 20 }, () => slots.withSlot('slot', 'pooled', 2, {
        timeout: '20s',
    }, async () => {
        most = Math.max(most, ++now);
        await sleep(5);
        now--;
    })));
    assert.equal(most, 2);
});
