'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { AdvisoryError } = require('./errors');

const PATIENCE = 10000;     // ms for a connection, or for an answer

// Of the network, or of a server that ends, starts, has no connection left, or is a standby now.
// Errors of SQL have a severity.
const isOfConnection = (it) => !it.severity || /^(08|53|57P|25006|25P0[34])/.test(it.code);

// Lends a client of the pool. One that is broken, has been discarded, or has a transaction does not
// go back, and its session ends.
// patience: ms to wait for it; when those who have all clients wait for a further one each, nobody
// would ever get one.
async function lend(pool, use, patience = Infinity) {
    let isBroken = false;
    const discard = (why = true) => { isBroken ||= why; };
    // By pg's callback: an error that comes before a promise goes on would have no listener, and
    // end the process.
    const coming = new Promise((resolve, reject) => {
        const lent = (it) => { it.on('error', discard); resolve(it); };
        const callback = pool.Client && ((error, it) => error ? reject(error) : lent(it));
        pool.connect(callback)?.then((it) => it && lent(it)).catch(reject);
    });
    const inTime = within(patience, coming, 'the pool has had no free connection');
    const client = await inTime.catch((error) => {
        coming.then((it) => it.off('error', discard).release(), () => {});
        throw error;
    });
    // For our own statements. If one gets no answer, the server may still do it later. What the
    // server said when it ended the connection is the cause of the driver's error.
    const query = (what) => client.query(what).catch((error) => {
        Object.assign(error, isBroken && isBroken !== error && { cause: isBroken });
        // A cancel may have come after the grant.
        isBroken ||= isOfConnection(error) || error.code === '57014';
        throw error;
    });
    // The server says after each statement whether there is a transaction.
    const lent = { client, query, discard, isInTransaction: false };
    const hear = ({ status }) => { lent.isInTransaction = status !== 'I'; };
    client.connection?.on('readyForQuery', hear);
    try {
        return await use(lent);
    } finally {
        client.off('error', discard);
        client.connection?.off('readyForQuery', hear);
        client.release(isBroken || lent.isInTransaction);
    }
}

// A connection of one's own, beside those of the pool: with a pool that is used up, one more
// connect() would wait for those who wait for us. (An object that is no pg.Pool has only its
// connect().)
//
// client is a promise. close() never waits, and also gives up one that is still connecting.
function openConnection(pool) {
    if (!pool.Client || !pool.options) {
        const client = pool.connect();
        client.then((it) => it.on('error', () => {}), () => {});
        return { client, close: () => client.then((it) => it.release(true), () => {}) };
    }
    // Whoever asks it has a time limit of his own.
    const { password } = pool.options;      // which a copy would not have
    const own = new pool.Client({ ...pool.options, password, query_timeout: 0 });
    const client = own.connect().then(() => own);
    client.catch(() => {});
    const close = (isBroken) => {
        own.end().catch(() => {});
        // At once, or if the server does not say good-bye.
        setTimeout(() => own.connection?.stream?.destroy(), isBroken ? 0 : 1000).unref();
    };
    const connection = { client, close, isBroken: false };
    own.on('error', () => { connection.isBroken = true; });
    return connection;
}

// The row that a statement returns. Without a name for the statement, which old poolers could not
// carry.
async function call(client, text, values) {
    const { rows } = await client.query({ text, values, rowMode: 'array' });
    return rows[0] ?? [];
}

// What the promise gives, or an error if it takes longer than so many milliseconds.
async function within(ms, promise, what = 'the server has not answered') {
    if (ms === Infinity) return promise;
    const timer = new AbortController();
    const late = sleep(asTimer(ms), undefined, { signal: timer.signal }).then(() => {
        throw new AdvisoryError(`${what} for ${Math.round(ms)} ms`);
    });
    return Promise.race([promise, late]).finally(() => timer.abort());
}

// Milliseconds for a timer: Node takes more than it can count for one.
const asTimer = (ms) => Math.min(Math.max(0, Math.ceil(ms)), 2 ** 31 - 1);

// What comes of a function, whether it returns, fails, or fails later: { status, value } or
// { status, reason }.
async function outcomeOf(run) {
    const [outcome] = await Promise.allSettled([(async () => run())()]);
    return outcome;
}

module.exports = {
    PATIENCE, isOfConnection, lend, openConnection, call, within, asTimer, outcomeOf,
};
