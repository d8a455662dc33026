'use strict';

// A connection of one's own, beside those of the pool: with a pool that is used up, one more connect() would wait for those who wait
// for us. (An object that is no pg.Pool has only its connect().)
//
// client is a promise. close() never waits, and also gives up one that is still connecting.
function openConnection(pool) {
    if (!pool.Client || !pool.options) {
        const client = pool.connect();
        client.then((connected) => connected.on('error', () => {}), () => {});
        return { client, close: () => client.then((connected) => connected.release(true), () => {}) };
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

// What the promise gives, or this error if it takes longer than so many milliseconds.
async function within(ms, promise, makeError) {
    let timer;
    const late = new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(makeError()), Math.min(Math.ceil(ms), LONGEST_TIMER));
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

const LONGEST_TIMER = 2 ** 31 - 1;      // ms; Node takes a longer one for 1 ms

module.exports = { openConnection, within, LONGEST_TIMER };
