// Named locks, semaphores, leases and claims of advisory_ext, for node-postgres. README.md has an example of each.
'use strict';

const { AdvisoryError, NotAvailable, LockLost, LeaseLost, TransactionPooler, asNotAvailable } = require('./lib/errors');
const { key, checkName, checkTime, checkTimeout, withDefaults } = require('./lib/values');
const { refuseTransactionPooler } = require('./lib/pooler');
const lease = require('./lib/lease');

class Advisory {
    #pool;

    // pool: a pg.Pool, or any object whose connect() gives a client that has a release().
    constructor(pool) {
        if (typeof pool?.connect !== 'function') {
            throw new TypeError('new Advisory(pool) needs a pg.Pool, or an object with connect()');
        }
        this.#pool = pool;
    }

    // Runs work(client) while it has the lock, and returns what work returns.
    //
    // By default in a transaction, whose COMMIT or ROLLBACK releases the lock: what the work changes by this client is visible when the
    // next one gets the lock. With scope: 'session', without a transaction.
    async withLock(namespace, name, ...optionsAndWork) {
        const [{ timeout, scope, shared }, work] = split(optionsAndWork, { timeout: 0, scope: 'transaction', shared: false });
        const names = [checkName(namespace), checkName(name)];
        const mode = shared ? '_shared' : '';
        return this.#hold(scope, names, {
            take: [`${xact(scope)}lock${mode}($1::text, $2::text, $3::interval)`, checkTimeout(timeout)],
            release: () => [`unlock${mode}($1::text, $2::text)`],
        }, (client) => work(client));
    }

    // The same with one of so many slots: work(client, slot), with slot from 1 on.
    async withSlot(namespace, name, slots, ...optionsAndWork) {
        const [{ timeout, scope }, work] = split(optionsAndWork, { timeout: 0, scope: 'transaction' });
        const names = [checkName(namespace), checkName(name)];
        return this.#hold(scope, names, {
            take: [`${xact(scope)}acquire($1::text, $2::text, $3::integer, $4::interval)`, slots, checkTimeout(timeout)],
            release: (slot) => ['release($1::text, $2::text, $3::integer)', slot],
        }, work);
    }

    // Runs work(lease, signal) with a lease, which is renewed in the background. For work that takes long, or that is not SQL.
    async withLease(namespace, name, ...optionsAndWork) {
        const [options, work] = split(optionsAndWork, { ttl: null, timeout: 0, owner: null, lockDelay: 0 });
        return lease.withLease(this.#pool, checkName(namespace), checkName(name), {
            ttl: checkTime(options.ttl, 'ttl'),
            timeout: checkTimeout(options.timeout),
            lockDelay: checkTime(options.lockDelay, 'lockDelay'),
            owner: options.owner,
        }, work);
    }

    // Claims the present window of time, such as this day with every: '1 day': the Date at which it begins, or null if it is claimed already.
    // With client, in its transaction: if that rolls back, the window can be claimed again.
    async claim(namespace, name, every, options = {}) {
        const { windowStart, timeZone, client } = withDefaults(options, { windowStart: null, timeZone: null, client: null });
        const values = [checkName(namespace), checkName(name), checkTime(every, 'every'), windowStart, timeZone];
        const ask = (connection) => call(connection, '1000 * extract(epoch FROM '
            + 'advisory.claim($1::text, $2::text, $3::interval, $4::timestamptz, $5::text))::float8', values);
        const began = await (client ? ask(client) : this.#onClient(ask));
        return began === null ? null : new Date(Number(began));
    }

    // Both ways of holding: take and release are a routine with its values after the names.
    async #hold(scope, names, { take, release }, work) {
        const routine = (client, [text, ...values]) => call(client, `advisory.${text}`, [...names, ...values]);
        const lock = { namespace: names[0], name: names[1] };
        return this.#onClient((client, discard) => {
            const takeIt = () => routine(client, take).catch((error) => {
                if (error.severity === undefined) {
                    discard();                  // a time limit of the driver: the server may give it to this session later
                }
                throw asNotAvailable(error);
            });
            return scope === 'session'
                ? this.#inSession(client, discard, lock, takeIt, (slot) => routine(client, release(slot)), work)
                : this.#inTransaction(client, discard, lock, takeIt, work);
        });
    }

    async #inTransaction(client, discard, lock, take, work) {
        await client.query('BEGIN');
        let result;
        try {
            const slot = await take();
            result = await work(client, slot);
        } catch (error) {
            await client.query('ROLLBACK').catch(discard);
            throw error;
        }
        let hasEnded = false;
        const notice = ({ code }) => { hasEnded ||= code === '25P01'; };
        client.on('notice', notice);
        const { command } = await client.query('COMMIT').finally(() => client.off('notice', notice));
        if (command === 'ROLLBACK') {
            throw new AdvisoryError('a statement of the work has failed, so nothing is committed', lock);
        }
        if (hasEnded) {
            throw new LockLost('the work itself has ended the transaction that held the lock', lock);
        }
        return result;
    }

    async #inSession(client, discard, lock, take, release, work) {
        await refuseTransactionPooler(this.#pool, client);
        const slot = await take();
        let result;
        try {
            result = await work(client, slot);
        } catch (error) {
            // The end of the session releases it, too, and nobody else gets the connection of an unfinished transaction.
            await release(slot).then((wasHeld) => wasHeld || discard(), discard);
            throw error;
        }
        const wasHeld = await release(slot).catch((error) => {
            discard();
            throw new LockLost(`the lock could not be released at the end of the work: ${error.message}`, { ...lock, cause: error });
        });
        if (!wasHeld) {
            discard();
            throw new LockLost('the lock was no longer held at the end of the work', lock);
        }
        return result;
    }

    // Lends a client of the pool. One that is broken, or that use() has discarded, does not come back into the pool, and its session ends.
    async #onClient(use) {
        const client = await this.#pool.connect();
        let isBroken = false;
        const discard = () => { isBroken = true; };
        client.on('error', discard);
        try {
            return await use(client, discard);
        } finally {
            client.off('error', discard);
            client.release(isBroken);
        }
    }
}

function split([first, second], defaults) {
    const [options, work] = typeof first === 'function' ? [{}, first] : [first, second];
    if (typeof work !== 'function') {
        throw new TypeError('the last argument is the function that does the work');
    }
    return [withDefaults(options ?? {}, defaults), work];
}

function xact(scope) {
    if (scope !== 'transaction' && scope !== 'session') {
        throw new TypeError(`scope is 'transaction' or 'session', not ${JSON.stringify(scope)}`);
    }
    return scope === 'transaction' ? 'xact_' : '';
}

// The value of an expression. Without a name for the statement, which old poolers could not carry.
async function call(client, expression, values) {
    const { rows } = await client.query({ text: `SELECT ${expression}`, values, rowMode: 'array' });
    return rows[0][0];
}

module.exports = { Advisory, key, AdvisoryError, NotAvailable, LockLost, LeaseLost, TransactionPooler };
