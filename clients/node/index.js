// Named locks, semaphores, leases and claims of advisory_ext, for node-postgres. README.md has an
// example of each.
'use strict';

const { asNotAvailable, ...errors } = require('./lib/errors');
const { PATIENCE, call, lend, outcomeOf } = require('./lib/connection');
const {
    NAMES, key, checkNames, checkTime, checkLimit, checkTimeout, msOf, inMs, withDefaults,
} = require('./lib/values');
const { refuseTransactionPooler } = require('./lib/pooler');
const { withLease } = require('./lib/lease');

const { AdvisoryError, LockLost } = errors;

// The options with their defaults.
const HOLD = { timeout: 0, scope: 'transaction' };
const LEASE_SLOT = { ttl: null, timeout: 0, owner: null, maxHold: null };
const LEASE = { ...LEASE_SLOT, lockDelay: 0 };
const CLAIM = { windowStart: null, timeZone: null, client: null };

// When the present transaction began; in every time zone the same.
const NOW = 'extract(epoch FROM pg_catalog.now())::text';

// A connection of the pool is waited for as long as the lock may be, but for so many ms at least: a
// new connection takes its time. Without a timeout PATIENCE is the limit.
const CONNECTING = 1000;

class Advisory {
    #pool;

    // pool: a pg.Pool, or any object whose connect() gives a client of pg that has a release().
    constructor(pool) {
        if (typeof pool?.connect !== 'function') {
            throw new TypeError('new Advisory(pool) needs a pg.Pool, or an object with connect()');
        }
        this.#pool = pool;
    }

    // Runs work(client) while it has the lock, and returns what work returns.
    //
    // By default in a transaction, whose COMMIT or ROLLBACK releases the lock: what the work
    // changes by this client is visible when the next one gets the lock. With scope: 'session',
    // without a transaction.
    async withLock(namespace, name, ...rest) {
        const [{ timeout, scope, shared }, work] = split(rest, { ...HOLD, shared: false });
        const mode = shared ? '_shared' : '';
        return this.#hold(scope, checkNames(namespace, name), checkTimeout(timeout), {
            take: (limit) => [`${taking(scope, 'lock')}${mode}(${NAMES}, $3::interval)`, limit],
            release: () => [`unlock${mode}(${NAMES})`],
        }, (client) => work(client));
    }

    // The same with one of so many slots: work(client, slot), with slot from 1 on. With a ttl it is
    // a lease as below, which has that slot: work(lease, signal), with lease.slot.
    async withSlot(namespace, name, slots, ...rest) {
        if (rest[0]?.ttl !== undefined) {
            const [options, work] = split(rest, LEASE_SLOT);
            return this.#lease('lease_slot', checkNames(namespace, name), options, slots, work);
        }
        const [{ timeout, scope }, work] = split(rest, HOLD);
        return this.#hold(scope, checkNames(namespace, name), checkTimeout(timeout), {
            take: (limit) => [
                `${taking(scope, 'acquire')}(${NAMES}, $3::integer, $4::interval)`, slots, limit,
            ],
            release: (slot) => [`release(${NAMES}, $3::integer)`, slot],
        }, work);
    }

    // Runs work(lease, signal) with a lease, which is renewed in the background. For work that
    // takes long, or that is not SQL.
    async withLease(namespace, name, ...rest) {
        const [options, work] = split(rest, LEASE);
        const lockDelay = checkTime(options.lockDelay, 'lockDelay');
        return this.#lease('lease', checkNames(namespace, name), options, lockDelay, work);
    }

    #lease(form, names, { ttl, timeout, owner, maxHold }, argument, work) {
        return withLease(this.#pool, names, {
            form, ttl: checkTime(ttl, 'ttl'), timeout: checkTimeout(timeout), owner,
            maxHold: checkLimit(maxHold, 'maxHold'), argument,
        }, work);
    }

    // Claims the present window of time, such as this day with every: '1 day': the Date at which it
    // begins, or null if it is claimed already. With client, in its transaction: if that rolls
    // back, the window can be claimed again.
    async claim(namespace, name, every, options = {}) {
        const { windowStart, timeZone, client } = withDefaults(options, CLAIM);
        const names = checkNames(namespace, name);
        const values = [...names, checkTime(every, 'every'), windowStart, timeZone];
        const claimed = `advisory.claim(${NAMES}, $3::interval, $4::timestamptz, $5::text)`;
        const ask = (connection) => call(connection, `SELECT ${inMs(claimed)}`, values);
        const [began] = await (client ? ask(client) : lend(this.#pool, ask, PATIENCE));
        return began === null ? null : new Date(Number(began));
    }

    // Both ways of holding: take and release are a routine with its values after the names. What
    // the wait for a connection took of the timeout, the wait for the lock no longer has.
    async #hold(scope, names, timeout, { take, release }, work) {
        const ms = timeout === null ? Infinity : msOf(timeout);
        const start = performance.now();
        return lend(this.#pool, (lent) => {
            // The limit in a message is the whole of it.
            const limit = ms > 0 && ms < Infinity ? ` within ${ms} ms` : '$&';
            const fail = (error) => {
                throw asNotAvailable(error, error.message.replace(/ with[^"]*$/, limit));
            };
            const ask = (verb, [text, ...more]) =>
                call(lent, `${verb} advisory.${text}`, [...names, ...more]).catch(fail);
            const remaining = Math.max(0, ms - performance.now() + start);
            const [text, ...more] = take(ms < Infinity ? checkTimeout(remaining) : timeout);
            if (scope === 'transaction') {
                const takeIt = () => ask('SELECT', [`${text}, ${NOW}`, ...more]);
                return this.#inTransaction(lent, names, takeIt, work);
            }
            // Where transactions are REPEATABLE READ by default, nothing but a function can wait.
            const takeIt = () => ask('CALL', [text, ...more]).catch((error) => {
                if (error.code !== '25001' || lent.isInTransaction) throw error;
                return ask('SELECT', [text.replace('await_', ''), ...more]);
            });
            const releaseIt = (slot) => ask('SELECT', release(slot));
            return this.#inSession(lent, names, takeIt, releaseIt, work);
        }, ms > 0 ? Math.max(ms, CONNECTING) : PATIENCE);
    }

    async #inTransaction(lent, names, take, work) {
        await lent.query('BEGIN');
        let begun;
        const done = await outcomeOf(async () => {
            const [slot, now] = await take();
            begun = now;
            return work(lent.client, slot);
        });
        if (done.status === 'rejected') {
            await lent.query('ROLLBACK').catch(lent.discard);
            throw done.reason;
        }
        // If a statement has failed, COMMIT says so.
        const [last] = await call(lent, `SELECT ${NOW}`).catch(() => [begun]);
        const { command } = await lent.query('COMMIT');
        if (command === 'ROLLBACK') {
            throw new AdvisoryError(
                'a statement of the work has failed: nothing is committed', names);
        }
        if (last !== begun) {
            throw new LockLost(
                'the work itself has ended the transaction that held the lock', names);
        }
        return done.value;
    }

    async #inSession(lent, names, take, release, work) {
        await refuseTransactionPooler(this.#pool, lent, names);
        const [slot] = await take();
        const done = await outcomeOf(() => work(lent.client, slot));
        const wasOpen = lent.isInTransaction;
        if (wasOpen) {
            lent.query('ROLLBACK').catch(lent.discard);     // before the lock is free
        }
        const { value: [wasHeld] = [], reason: cause } = await outcomeOf(() => release(slot));
        if (!wasHeld) {
            lent.discard();     // its session ends, and with it what it still holds
        }
        if (done.status === 'rejected') {
            throw done.reason;
        }
        if (!wasHeld) {
            const what = cause ? `could not be released at the end of the work: ${cause.message}`
                : 'was no longer held at the end of the work';
            throw new LockLost(`the lock ${what}`, names, cause);
        }
        if (wasOpen) {
            throw new AdvisoryError(
                'the work has left a transaction open: it is rolled back', names);
        }
        return done.value;
    }
}

function split([first, second], defaults) {
    const [options, work] = typeof first === 'function' ? [{}, first] : [first, second];
    if (typeof work !== 'function') {
        throw new TypeError('the last argument is the function that does the work');
    }
    return [withDefaults(options ?? {}, defaults), work];
}

// The routine that takes a lock or slot. In session scope a procedure, which waits without a
// snapshot: a function would be in the way of what the work of its holder may be, such as CREATE
// INDEX CONCURRENTLY.
function taking(scope, what) {
    if (scope !== 'transaction' && scope !== 'session') {
        throw new TypeError(`scope is 'transaction' or 'session', not ${JSON.stringify(scope)}`);
    }
    return `${scope === 'transaction' ? 'xact' : 'await'}_${what}`;
}

module.exports = { Advisory, key, ...errors };
