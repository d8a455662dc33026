'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { AdvisoryError } = require('./errors');

// A connection of one's own, beside those of the pool: with a pool that is used up, one more connect() would wait for those who wait
// for us. (An object that is no pg.Pool has only its connect().)
//
// client is a promise. close() never waits, and also gives up one that is still connecting.
function openConnection(pool) {
    if (!pool.Client || !pool.options) {
        const client = pool.connect();
        client.then((it) => it.on('error', () => {}), () => {});
        return { client, close: () => client.then((it) => it.release(true), () => {}) };
    }
    const own = new pool.Client({ ...pool.options, password: pool.options.password });
    own.on('error', () => {});          // the query that needs it says so, too
    const client = own.connect().then(() => own);
    client.catch(() => {});
    return {
        client,
        close(isBroken) {
            const destroy = () => own.connection?.stream?.destroy();
            if (isBroken) {
                destroy();
            }
            own.end().catch(() => {});
            setTimeout(destroy, 1000).unref();      // if the server does not say good-bye
        },
    };
}

// What the promise gives, or an error if it takes longer than so many milliseconds.
async function within(ms, promise) {
    const timer = new AbortController();
    const late = sleep(asTimer(ms), undefined, { signal: timer.signal }).then(() => {
        throw new AdvisoryError(`the server has not answered for ${Math.round(ms)} ms`);
    });
    return Promise.race([promise, late]).finally(() => timer.abort());
}

// Milliseconds for a timer: Node takes more than it can count for one.
const asTimer = (ms) => Math.min(Math.max(0, Math.ceil(ms)), 2 ** 31 - 1);

// What comes of a function, whether it returns, fails, or fails later: { status, value } or { status, reason }.
async function outcomeOf(run) {
    const [outcome] = await Promise.allSettled([(async () => run())()]);
    return outcome;
}

module.exports = { openConnection, within, asTimer, outcomeOf };
