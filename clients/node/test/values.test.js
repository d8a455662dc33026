// What can be said without a transaction: keys, times, options.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { key } = require('advisory-ext');
const { advisory, value, lockCount } = require('./helpers');

test('keys are those that are published', () => {
    assert.equal(key('invoice-generation'), -8670053900832782221n);
    assert.equal(key('billing', 'invoice:42'), 1572001551135567388n);
    assert.equal(key('user', 42), 8907056734076048704n);
    assert.equal(key('user', 42n), 8907056734076048704n);
    assert.equal(key('größe', 'naïve ☃'), 733500587011654506n);
    assert.equal(key('order', '00000000-0000-0000-0000-000000000001'), -3943673449234501271n);
});

test('keys are those of the server', async () => {
    for (const [namespace, name] of [
        ['a', 'b'], ['漢字 😀', `"'\\`], ['x', -1], ['x', 'y'.repeat(5000)],
    ]) {
        assert.equal(
            String(key(namespace, name)),
            await value('SELECT advisory.key($1::text, $2::text)::text', [namespace, name]));
        assert.equal(String(key(name)), await value('SELECT advisory.key($1::text)::text', [name]));
    }
});

test('what is no name has no key', () => {
    for (const name of [
        '', 'a\0b', '\ud800', null, undefined, 1.5, NaN, 2 ** 60, {}, ['x'], true,
    ]) {
        assert.throws(() => key('namespace', name), TypeError, String(name));
        assert.throws(() => key(name), TypeError, String(name));
    }
    assert.throws(() => key(), TypeError);
    assert.throws(() => key('a', 'b', 'c'), TypeError);
});

const never = () => assert.fail('the work must not begin');

test('a time is a number of milliseconds or has a unit', async () => {
    for (const timeout of [
        '5000', ' 5 ', '1e3', '', '-5s', ' -1 s', -1, NaN, Infinity, 5n, true, {}, new Date(),
    ]) {
        await assert.rejects(
            advisory.withLock('values', 'time', { timeout }, never), TypeError, String(timeout));
        await assert.rejects(advisory.withSlot('values', 'time', 1, { timeout }, never), TypeError);
        await assert.rejects(
            advisory.withLease('values', 'time', { ttl: 1000, timeout }, never), TypeError);
        await assert.rejects(advisory.claim('values', 'time', timeout), TypeError);
    }
    for (const timeout of [0, 0.5, 1e9, '5s', '00:00:05', 'PT5S', '2 min', null, undefined]) {
        assert.equal(
            await advisory.withLock('values', 'time', { timeout }, () => 'done'), 'done',
            String(timeout));
    }
});

test('mistakes are found before anything is taken', async () => {
    await assert.rejects(
        advisory.withLock('values', 'x', { timout: 5 }, never),
        /no option timout; there are timeout, scope, shared/);
    await assert.rejects(
        advisory.withLock('values', 'x', 5000, never), /^TypeError: there is no option 5000;/);
    await assert.rejects(
        advisory.withLock('values', 'x', { scope: 'sessions' }, never),
        /scope is 'transaction' or 'session'/);
    await assert.rejects(advisory.withLock('values', 'x', {}), /last argument is the function/);
    await assert.rejects(advisory.withLock('values', 'x'), /last argument is the function/);
    await assert.rejects(advisory.withLock('values', null, never), /a namespace or a name is/);
    await assert.rejects(advisory.withLease('values', 'x', never), /^TypeError: ttl is a number/);
    await assert.rejects(
        advisory.withLease('values', 'x', { ttl: null }, never), /^TypeError: ttl is a number/);
    assert.throws(() => new advisory.constructor({}), /needs a pg.Pool/);
    assert.equal(await lockCount(), 0);
});

test('mistakes that the server finds come through unchanged', async () => {
    await assert.rejects(
        advisory.withSlot('values', 'x', 0, never), { code: '22023', severity: 'ERROR' });
    await assert.rejects(
        advisory.withLock('values', 'x', { timeout: '5 parsecs' }, never), { code: '22007' });
    assert.equal(await lockCount(), 0);
});
