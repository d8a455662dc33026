'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Client, Pool } = require('pg');
const { AdvisoryError, LockLost, NotAvailable, TransactionPooler } = require('advisory-ext');
const {
    Advisory, advisory, pool, makePool, makeNetwork, value, lockCount, waitUntil, defer, otherwise,
    sleep, testWith,
} = require('./helpers');

const pidOf = async (client) => (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
const SCOPES = ['transaction', 'session'];
// await_lock() of the portable edition waits for no lock.
const WAITERS = `pg_stat_activity WHERE datname = current_database() AND state = 'active'
    AND query ~ '^(SELECT|CALL) advisory[.](xact|await)_'
    AND clock_timestamp() > query_start + interval '50 ms'`;

test.before(() => pool.query('CREATE TABLE IF NOT EXISTS lock_test (what text, n int DEFAULT 0)'));

for (const scope of SCOPES) {
    test(`${scope}: returns what the work returns, which has the lock`, async () => {
        const result = await advisory.withLock('lock', scope, { scope }, async (client) => {
            const { rows } = await client.query('SELECT advisory.holds($1, $2)', ['lock', scope]);
            assert.equal(rows[0].holds, true);
            return { some: 'thing' };
        });
        assert.deepEqual(result, { some: 'thing' });
        assert.equal(await lockCount(), 0);
    });

    test(`${scope}: what somebody else has is an error that says who`, async () => {
        const other = await otherwise('withLock', 'lock', `it's ${scope}`, { scope });
        const error = await advisory.withLock(
            'lock', `it's ${scope}`, { scope }, () => assert.fail('it has begun')).catch((e) => e);
        for (const kind of [NotAvailable, AdvisoryError, Error]) {
            assert.ok(error instanceof kind, String(error));
        }
        assert.equal(error.name, 'NotAvailable');
        assert.match(
            error.message, /could not obtain advisory lock "lock\/it's \w+" without waiting/);
        assert.equal(error.namespace, 'lock');
        assert.equal(error.lockName, `it's ${scope}`);
        assert.equal(error.holder.application, 'other');
        assert.equal(error.holder.role, await value('SELECT current_user'));
        assert.equal(await value(
            'SELECT application_name FROM pg_stat_activity WHERE pid = $1',
            [error.holder.pid]), 'other');
        assert.match(
            error.holder.text, /^Process \d+ of role .* holds it in exclusive mode; it is idle/);
        assert.equal(error.remedy, `SELECT advisory.terminate_holder('lock', 'it''s ${scope}', `
            + `${error.holder.pid}, kind => 'lock')`);
        assert.equal(error.cause.code, '55P03');
        await other.done();
        assert.equal(await lockCount(), 0);
    });

    test(`${scope}: waits up to the timeout, in milliseconds`, async () => {
        const other = await otherwise('withLock', 'lock', scope);
        const start = performance.now();
        await assert.rejects(
            advisory.withLock('lock', scope, { scope, timeout: 200 }, () => {}), /within 200 ms/);
        assert.ok(performance.now() - start >= 199);
        const waiter = advisory.withLock('lock', scope, { scope, timeout: null }, () => 'at last');
        await waitUntil('it waits', () => value(`SELECT count(*)::int FROM ${WAITERS}`));
        await other.done();
        assert.equal(await waiter, 'at last');
    });

    test(`${scope}: shared mode is for several, and keeps others out`, async () => {
        const other = await otherwise('withLock', 'lock', 'shared', { scope, shared: true });
        assert.equal(
            await advisory.withLock('lock', 'shared', { scope, shared: true }, () => 2), 2);
        await assert.rejects(
            advisory.withLock('lock', 'shared', { scope }, () => {}),
            (error) => /shared mode/.test(error.holder.text));
        await other.done();
        assert.equal(await lockCount(), 0);
    });

    test(`${scope}: an error of the work comes through, and the lock is free`, async () => {
        const mine = new RangeError('mine');
        await assert.rejects(
            advisory.withLock('lock', scope, { scope }, () => { throw mine; }),
            (error) => error === mine);
        await assert.rejects(
            advisory.withLock('lock', scope, { scope }, (client) => client.query('SELECT 1/0')),
            { code: '22012' });
        // 55P03 of the work itself is not ours.
        await assert.rejects(
            advisory.withLock('lock', scope, { scope }, (client) => client.query(`DO $$ BEGIN
            RAISE 'busy' USING ERRCODE = '55P03', SCHEMA = 'a', CONSTRAINT = 'b'; END $$`)),
            { code: '55P03', severity: 'ERROR' });
        assert.equal(await lockCount(), 0);
    });

    test(`${scope}: a wait that is cancelled is the driver's error, `
        + 'and leaves nothing', async () => {
        const other = await otherwise('withLock', 'lock', scope);
        const waiter = advisory.withLock(
            'lock', scope, { scope, timeout: null }, () => assert.fail('it has begun'));
        const cancelled = assert.rejects(waiter, { code: '57014' });
        await waitUntil(
            'it waits', () => value(`SELECT bool_or(pg_cancel_backend(pid)) FROM ${WAITERS}`));
        await cancelled;
        await other.done();
        assert.equal(await lockCount(), 0);
    });

    test(`${scope}: a time limit of the driver leaves nothing either`, async () => {
        const impatient = makePool({ query_timeout: 300, max: 1, idleTimeoutMillis: 0 });
        const other = await otherwise('withLock', 'lock', scope);
        await assert.rejects(
            new Advisory(impatient).withLock('lock', scope, { scope, timeout: null }, () => {}),
            /timeout/);
        await other.done();
        await waitUntil('nothing is held', async () => await lockCount() === 0);
    });

    test(`${scope}: many clients, one at a time`, async () => {
        await pool.query('DELETE FROM lock_test');
        await pool.query(`INSERT INTO lock_test VALUES ('counter')`);
        await Promise.all(Array.from({ length: 40 }, () => advisory.withLock('lock', 'counter', {
            scope, timeout: null,
        }, async (client) => {
            const { rows: [{ n }] } = await client.query('SELECT n FROM lock_test');
            await client.query('UPDATE lock_test SET n = $1', [n + 1]);
        })));
        assert.equal(await value('SELECT n FROM lock_test'), 40);
    });

    test(`${scope}: the end of the connection is an error, `
        + 'and the pool gets no broken one', async () => {
        const small = makePool({ max: 1 });
        const locks = new Advisory(small);
        const terminate = async (client) => {
            await value('SELECT pg_terminate_backend($1)', [await pidOf(client)]);
            await sleep(100);
        };
        const expected = scope === 'session' ? LockLost : Error;
        await assert.rejects(locks.withLock('lock', scope, { scope }, terminate), expected);
        const mine = new Error('mine');
        const failing = locks.withLock(
            'lock', scope, { scope }, async (client) => { await terminate(client); throw mine; });
        await assert.rejects(failing, (error) => error === mine);
        assert.equal(await locks.withLock('lock', scope, { scope }, () => 'works'), 'works');
    });

    test(`${scope}: if the connection ends while it waits, the pool gets no broken one, `
        + 'not even for a moment', async () => {
        const small = makePool({ max: 1 });
        const other = await otherwise('withLock', 'lock', scope);
        const waiting = new Advisory(small).withLock(
            'lock', scope, { scope, timeout: null }, () => assert.fail('it has begun'));
        const failed = waiting.catch(
            async (error) => [error.code, (await small.query('SELECT 1 AS one')).rows[0].one]);
        await waitUntil(
            'it waits', () => value(`SELECT bool_or(pg_terminate_backend(pid)) FROM ${WAITERS}`));
        assert.deepEqual(await failed, ['57P01', 1]);
        await other.done();
    });
}

test('transaction: the work is committed with the lock, or rolled back', async () => {
    const insert = (what) => (client) => client.query('INSERT INTO lock_test VALUES ($1)', [what]);
    await advisory.withLock('lock', 'commit', insert('kept'));
    await assert.rejects(advisory.withLock(
        'lock', 'commit',
        async (client) => { await insert('lost')(client); throw new Error('mine'); }));
    assert.equal(
        await value(`SELECT string_agg(what, ' ') FROM lock_test WHERE what IN ('kept', 'lost')`),
        'kept');
});

test('transaction: a failure that the work has swallowed is not reported as success', async () => {
    await assert.rejects(advisory.withLock(
        'lock', 'commit', (client) => client.query('SELECT 1/0').catch(() => 'no matter')),
        { name: 'AdvisoryError', message: /nothing is committed/, lockName: 'commit' });
});

test('transaction: work that ends the transaction itself is told that it had no lock', async () => {
    await assert.rejects(
        advisory.withLock('lock', 'commit', (client) => client.query('COMMIT')), LockLost);
});

test('transaction: work that ends the transaction itself and begins another is told so, '
    + 'too', async () => {
    for (const options of ['', '-c client_min_messages=error']) {
        const locks = new Advisory(makePool({ options }));
        for (const statements of [
            ['COMMIT', 'BEGIN'], ['ROLLBACK', 'BEGIN'], ['COMMIT'], ['COMMIT; BEGIN'],
            ['COMMIT AND CHAIN'],
            ['ROLLBACK AND CHAIN']]) {
            await assert.rejects(locks.withLock('lock', 'commit', async (client) => {
                for (const statement of statements) await client.query(statement);
            }), LockLost, `${statements} ${options}`);
        }
        // A savepoint is no end.
        assert.equal(await locks.withLock('lock', 'commit', async (client) => {
            for (const statement of [
                'SAVEPOINT a', 'ROLLBACK TO a', 'RELEASE a']) await client.query(statement);
            return 'done';
        }), 'done');
    }
});

test('transaction: the reason why the server has ended the connection is the cause', async () => {
    const locks = new Advisory(makePool({ options: '-c idle_in_transaction_session_timeout=100' }));
    await assert.rejects(
        locks.withLock('lock', 'idle', () => sleep(300)), (error) => error.cause?.code === '25P03');
});

test('session: work that releases the lock itself is told that it had no lock', async () => {
    await assert.rejects(advisory.withLock(
        'lock', 'released', { scope: 'session' },
        (client) => client.query('SELECT pg_advisory_unlock_all()')),
        { name: 'LockLost', namespace: 'lock', lockName: 'released', message: /no longer held/ });
});

test('session: an unfinished transaction is rolled back before the lock is free, '
    + 'and does not go back into the pool', async () => {
    const small = makePool({ max: 1 });
    const fail = (client) => client.query('SELECT 1/0').catch(() => {});
    for (const last of [(client) => client, fail]) {
        const unfinished = new Advisory(small).withLock('lock', 'unfinished', {
            scope: 'session',
        }, async (client) => {
            await client.query('BEGIN');
            await client.query(`INSERT INTO lock_test VALUES ('unfinished')`);
            await last(client);
        });
        await assert.rejects(unfinished, {
            name: 'AdvisoryError', message: /left a transaction open: it is rolled back/,
            lockName: 'unfinished',
        });
        await small.query(`INSERT INTO lock_test VALUES ('finished')`);
        assert.equal(await lockCount(), 0);
    }
    assert.equal(
        await value(`SELECT string_agg(what, ' ') FROM lock_test WHERE what LIKE '%finished'`),
        'finished finished');
    const mine = new Error('mine');
    const failing = new Advisory(small).withLock('lock', 'unfinished', {
        scope: 'session',
    }, async (client) => {
        await client.query('BEGIN');
        throw mine;
    });
    await assert.rejects(failing, (error) => error === mine);
    assert.equal((await small.query(
        'SELECT count(*)::int AS n FROM lock_test WHERE what = $1', ['finished'])).rows[0].n, 2);
});

test('session: two replicas build an index under the lock, one after the other', async () => {
    for (const timeout of ['20s', null]) {
        await pool.query('DROP TABLE IF EXISTS migrated');
        await pool.query('CREATE TABLE migrated (id int)');
        await Promise.all([1, 2].map(() => advisory.withLock('migration', 'app', {
            scope: 'session', timeout,
        }, async (client) => {
            await sleep(200);       // the other one waits
            await client.query(
                'CREATE INDEX CONCURRENTLY IF NOT EXISTS migrated_id ON migrated (id)');
        })));
        assert.equal(await value(
            `SELECT indisvalid FROM pg_index WHERE indexrelid = 'migrated_id'::regclass`), true);
    }
});

test('session: who waits has no snapshot', async () => {
    for (const [method, ...slots] of [['withLock'], ['withSlot', 1]]) {
        const other = await otherwise(
            method, 'lock', 'no snapshot', ...slots, { scope: 'session' });
        const waiter = advisory[method](
            'lock', 'no snapshot', ...slots, { scope: 'session', timeout: null }, () => 'at last');
        // The portable edition has a snapshot only for as long as it looks.
        const waits = `SELECT count(*)::int FROM pg_stat_activity
            WHERE query LIKE 'CALL advisory.await_%' AND state = 'active'
            AND datname = current_database() AND backend_xid IS NULL
            AND (backend_xmin IS NULL OR advisory.edition() = 'portable')`;
        await waitUntil('it waits', () => value(waits));
        await other.done();
        assert.equal(await waiter, 'at last');
    }
});

test('callers that have all connections of the pool, and need one more each, '
    + 'get an error', { timeout: 60000 }, async () => {
    const locks = new Advisory(makePool({ max: 2 }));
    const start = performance.now();
    const nested = (i) => locks.withLock('lock', `outer ${i}`, async () => {
        await sleep(200);
        await locks.withLock('lock', `inner ${i}`, { timeout: '500 ms' }, () => 'never');
    });
    const failed = await Promise.allSettled([1, 2].map(nested));
    assert.ok(
        failed.some(({ reason }) => /no free connection for 1000 ms/.test(reason?.message)),
        JSON.stringify(failed));
    assert.ok(performance.now() - start < 8000);
    assert.equal(await locks.withLock('lock', 'after', () => 'works'), 'works');
});

test('session: a session whose transactions are REPEATABLE READ waits, too', async () => {
    const locks = new Advisory(
        makePool({ options: '-c default_transaction_isolation=repeatable\\ read' }));
    const other = await otherwise('withLock', 'lock', 'isolated');
    const waiter = locks.withLock(
        'lock', 'isolated', { scope: 'session', timeout: '30s' }, () => 'at last');
    await sleep(300);
    await other.done();
    assert.equal(await waiter, 'at last');
    assert.equal(
        await locks.withSlot('lock', 'isolated', 3, { scope: 'session' }, (client, slot) => slot),
        1);
});

test('work may set the time zone, and how a time is shown', async () => {
    const statement = `SET LOCAL TIME ZONE 'Asia/Tokyo'; SET LOCAL datestyle = 'SQL, DMY'`;
    assert.equal(await advisory.withLock(
        'lock', 'zone',
        async (client) => { await client.query(statement); return 'done'; }), 'done');
});

test('what the wait for a connection took, the wait for the lock no longer has', async () => {
    const locks = new Advisory(makePool({ max: 1 }));
    const other = await otherwise('withLock', 'lock', 'taken');
    const first = locks.withLock('lock', 'first', () => sleep(1500));
    const start = performance.now();
    await assert.rejects(
        locks.withLock('lock', 'taken', { timeout: '4 s' }, () => {}),
        /NotAvailable: .* within 4000 ms$/);
    assert.ok(performance.now() - start < 5400, 'not one after the other');
    await first;
    await other.done();
});

test('a pool of one connection is enough', async () => {
    const locks = new Advisory(makePool({ max: 1 }));
    for (const scope of SCOPES) {
        assert.equal(await locks.withLock('lock', 'one', { scope }, () => scope), scope);
    }
});

test('session: without a pooler one statement finds that out, '
    + 'and no second connection', async () => {
    let count = 0;
    class Counting extends Client {
        constructor(...config) {
            super(...config);
            count++;
        }
    }
    await new Advisory(makePool({ Client: Counting })).withLock(
        'lock', 'count', { scope: 'session' }, () => {});
    assert.equal(count, 1);
});

test('any object with connect() will do', async () => {
    const locks = new Advisory({ connect: () => pool.connect() });
    for (const scope of SCOPES) {
        assert.equal(await locks.withLock('lock', 'any', { scope }, () => scope), scope);
    }
    assert.equal(await locks.withLease('lock', 'any', { ttl: 1000 }, () => 'lease'), 'lease');
});

test('a prepared transaction that holds it is named, with its remedy', async () => {
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query(`SELECT advisory.xact_lock('lock', 'prepared')`);
    // Its identifier must be free in all databases of the server.
    const gid = `'it''s ${await value('SELECT current_database()')}'`;
    await client.query(`PREPARE TRANSACTION ${gid}`);
    client.release();
    const error = await advisory.withLock('lock', 'prepared', () => {}).catch((e) => e);
    assert.match(error.holder.text, /prepared transaction/i);
    assert.equal(error.holder.pid, null);
    const isPortable = await value(
        `SELECT NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'advisory_ext')`);
    assert.equal(error.remedy, isPortable ? null : `ROLLBACK PREPARED ${gid}`);
    await pool.query(`ROLLBACK PREPARED ${gid}`);
});

test('whoever waits is not taken for the holder, whatever its application is called', async () => {
    const holder = await pool.connect();
    const gid = `'waiter ${await value('SELECT current_database()')}'`;
    await holder.query('BEGIN');
    await holder.query(`SELECT advisory.xact_lock('lock', 'forged')`);
    await holder.query(`PREPARE TRANSACTION ${gid}`);
    holder.release();
    const forger = makePool({ application_name: 'x", holds it in exclusive mode' });
    const waiting = new Advisory(forger).withLock(
        'lock', 'forged', { timeout: null }, () => 'at last');
    await waitUntil('it waits', () => value(
        `SELECT count(*)::int FROM advisory.holders('lock', 'forged') WHERE NOT granted`));
    const error = await advisory.withLock('lock', 'forged', () => {}).catch((e) => e);
    await pool.query(`ROLLBACK PREPARED ${gid}`);
    assert.match(error.holder.text, /waits for it/);
    assert.deepEqual([error.holder.pid, error.holder.application], [null, null]);
    assert.equal(await waiting, 'at last');
});

// ---- Behind a pooler ----

const behind = (variable, options) => makePool({ port: process.env[variable], ...options });

testWith('TRANSACTION_POOLER', 'transaction pooler: transactions work, '
    + 'many at a time', async () => {
    const locks = new Advisory(behind('TRANSACTION_POOLER', { max: 20 }));
    await pool.query('UPDATE lock_test SET n = 0');
    await pool.query(`DELETE FROM lock_test WHERE what <> 'counter'`);
    await Promise.all(Array.from({ length: 40 }, () => locks.withLock('lock', 'pooled', {
        timeout: '20s',
    }, async (client) => {
        const { rows: [{ n }] } = await client.query('SELECT n FROM lock_test');
        await client.query('UPDATE lock_test SET n = $1', [n + 1]);
    })));
    assert.equal(await value('SELECT n FROM lock_test'), 40);
});

for (const max of [1, 5]) {
    testWith('TRANSACTION_POOLER', 'transaction pooler: session-level locks are refused, '
        + `with ${max} in the pool`, async () => {
        const locks = new Advisory(behind('TRANSACTION_POOLER', { max }));
        for (const use of [(work) => locks.withLock('lock', 'refused', { scope: 'session' }, work),
            (work) => locks.withSlot('lock', 'refused', 2, { scope: 'session' }, work)]) {
            const error = await use(() => assert.fail('it has begun')).catch((e) => e);
            assert.ok(
                error instanceof TransactionPooler && error instanceof AdvisoryError,
                String(error));
            assert.match(error.message, /withLease/);
        }
        assert.equal(await lockCount(), 0);
    });
}

testWith('TRANSACTION_POOLER', 'transaction pooler: session-level locks are refused while others '
    + 'keep it busy', async () => {
    const clients = behind('TRANSACTION_POOLER', { max: 10 });
    let isOver = false;
    const noise = Array.from(
        { length: 6 },
        async () => { while (!isOver) await clients.query('SELECT pg_sleep(random() * 0.003)'); });
    const locks = new Advisory(clients);
    for (let i = 0; i < 20; i++) {
        await assert.rejects(locks.withLock(
            'lock', 'refused', { scope: 'session' },
            () => assert.fail('it has begun')), TransactionPooler);
    }
    isOver = true;
    await Promise.all(noise);
});

testWith('TRANSACTION_POOLER', 'transaction pooler: session-level locks are refused, '
    + 'however slow the network is', async () => {
    const network = await makeNetwork(process.env.TRANSACTION_POOLER, 250);
    await assert.rejects(new Advisory(makePool(network.options)).withLock(
        'lock', 'refused', { scope: 'session' }, () => {}), TransactionPooler);
});

testWith('TRANSACTION_POOLER', 'transaction pooler: session-level locks are refused while all '
    + 'its servers are in use', async () => {
    const clients = behind('TRANSACTION_POOLER', { max: 16 });
    let isOver = false;
    const noise = Array.from(
        { length: 16 },
        async () => { while (!isOver) await clients.query('SELECT pg_sleep(0.4)'); });
    await assert.rejects(new Advisory(behind('TRANSACTION_POOLER')).withLock(
        'lock', 'refused', { scope: 'session' }, () => {}), TransactionPooler);
    isOver = true;
    await Promise.all(noise);
    assert.equal(await lockCount(), 0);
});

testWith('TRANSACTION_POOLER', 'transaction pooler: without a second connection there is no '
    + 'session-level lock', async () => {
    class Refused extends Client {
        async connect() { throw new Error('no more connections allowed'); }
    }
    const first = behind('TRANSACTION_POOLER');
    const full = { Client: Refused, options: first.options, connect: () => first.connect() };
    await assert.rejects(new Advisory(full).withLock(
        'lock', 'refused', { scope: 'session' },
        () => assert.fail('it has begun')), /no more connections/);
    assert.equal(await lockCount(), 0);
});

testWith('TRANSACTION_POOLER', 'a BEGIN that comes too late for a time limit of the driver '
    + 'leaves no transaction in the pool', async () => {
    const others = behind('TRANSACTION_POOLER', { max: 8 });
    const impatient = behind('TRANSACTION_POOLER', { max: 1, query_timeout: 300 });
    await impatient.query('SELECT 1');
    const noise = Array.from({ length: 8 }, () => others.query('SELECT pg_sleep(0.9)'));
    await waitUntil(
        'its servers are in use',
        async () => await value(`SELECT count(*)::int FROM pg_stat_activity
        WHERE query = 'SELECT pg_sleep(0.9)' AND state = 'active'
            AND datname = current_database()`) === 4);
    await assert.rejects(
        new Advisory(impatient).withLock('lock', 'late', () => assert.fail('it has begun')),
        /timeout/);
    await Promise.all(noise);
    await impatient.query(`INSERT INTO lock_test VALUES ('late')`);
    assert.equal(await value(`SELECT count(*)::int FROM lock_test WHERE what = 'late'`), 1);
});

testWith('SESSION_POOLER', 'session pooler: session-level locks work', async () => {
    const clients = behind('SESSION_POOLER', { max: 2 });
    const locks = new Advisory(clients);
    const start = performance.now();
    for (let i = 0; i < 5; i++) {
        const result = await locks.withLock('lock', 'pooled', {
            scope: 'session',
        }, async (client) => {
            assert.equal(await value(`SELECT advisory.try_lock('lock', 'pooled')`), false);
            return pidOf(client);
        });
        assert.ok(result > 0);
    }
    assert.ok(performance.now() - start < 5000);
    assert.equal(await lockCount(), 0);
    await clients.end();
});

testWith('SESSION_POOLER', 'session pooler without a second server: goes on after a '
    + 'second', async () => {
    const clients = behind('SESSION_POOLER', { max: 20 });
    const others = [];
    try {
        while (others.length < process.env.SESSION_POOLER_SIZE - 1) {
            others.push(await clients.connect());
            await others.at(-1).query('SELECT 1');
        }
        const start = performance.now();
        assert.equal(await new Advisory(clients).withLock(
            'lock', 'full', { scope: 'session' }, () => 'done'), 'done');
        const took = performance.now() - start;
        assert.ok(took > 900 && took < 4000, `${took} ms`);
    } finally {
        others.forEach((client) => client.release(true));
    }
    assert.equal(await lockCount(), 0);
});

test('a client that is lost in the moment in which the pool lends it ends neither the process '
    + 'nor the next one', async () => {
    const short = makePool();
    const lend = short.connect.bind(short);
    const lost = (client) => client.emit('error', new Error('terminated'));
    short.connect = (callback) => callback
        ? lend((error, client, done) => { callback(error, client, done); lost(client); })
        : new Promise(
            (resolve) => { lend((error, client) => { resolve(client); lost(client); }); });
    await new Advisory(short).withLock('lock', 'lost', (client) => client.query('SELECT'));
    assert.equal(short.totalCount, 0);
});

test('session: a cancel that comes after the grant leaves no lock on a pooled client', async () => {
    const own = makePool({ max: 1 });
    own.on('connect', (client) => {
        const { query } = client;
        client.query = (what, ...rest) => {
            const answer = query.call(client, what, ...rest);
            return !/advisory[.]await_lock/.test(what.text) ? answer : answer.then(() => {
                throw Object.assign(new Error('canceled'), { code: '57014', severity: 'ERROR' });
            });
        };
    });
    const locks = new Advisory(own);
    await assert.rejects(
        locks.withLock('lock', 'granted', { scope: 'session' }, () => assert.fail('it has begun')),
        { code: '57014' });
    await waitUntil('nothing is held', async () => await lockCount() === 0, 5000);
});

test('a pool with a connect() of its own gets its client back', async () => {
    class Wrapped extends Pool {
        async connect(callback) {
            return super.connect(callback);
        }
    }
    const wrapped = new Wrapped({ max: 1 });
    for (let i = 0; i < 3; i++) {
        assert.equal(await new Advisory(wrapped).withLock('lock', 'wrapped', () => i), i);
    }
    assert.equal(wrapped.idleCount, 1);
    await wrapped.end();
});
