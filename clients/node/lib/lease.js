'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { AdvisoryError, LeaseLost, asNotAvailable } = require('./errors');
const {
    PATIENCE, isOfConnection, openConnection, within, asTimer, outcomeOf,
} = require('./connection');
const { NAMES, inMs } = require('./values');

// The two forms: a lease, or one of so many slots. Each has an argument of its own.
const taking = (slot, call, argument) => `SELECT token::text, ${inMs('expires_at')} AS expires_at, `
    + `${slot} AS slot FROM advisory.${call}(${NAMES}, ttl => $3::interval, `
    + `timeout => $4::interval, owner => $5::text, max_hold => $6::interval, ${argument})`;
const TAKE = {
    lease: taking('NULL', 'lease', 'lock_delay => $7::interval'),
    lease_slot: taking('slot', 'lease_slot', 'slots => $7::integer'),
};

const now = () => performance.now();        // the monotonic clock, in ms

// What the extension warns of at a grant that is as good as any: other numbers of slots, and
// another name of the key. These texts have no translations.
const HARMLESS = /^the (?:slots of lease|key of advisory lock) "/;

// What the work gets to see of its lease.
const seenBy = (keeper) => ({
    // A BigInt that is greater than those of all earlier holders. Whatever is written outside the
    // database is to compare it.
    get token() { return keeper.token; },
    // When the server would let others have it, unless it is renewed once more.
    get expiresAt() { return keeper.expiresAt; },
    // If it is one of so many: which one, from 1 on.
    slot: keeper.slot ?? undefined,
    // Throws LeaseLost if it is lost. Unlike the signal, it also knows at once when the process was
    // stopped, or too busy for its timers.
    check: () => keeper.check(),
});

// Runs work(lease, signal) with the lease, and ends it afterwards. If the lease was lost, LeaseLost
// is thrown, whatever the work did; what the work threw is its cause.
async function withLease(pool, names, options, work) {
    const keeper = new Keeper(pool, names, options);
    let done;
    try {
        await keeper.take();
        done = await outcomeOf(() => work(seenBy(keeper), keeper.signal));
        await keeper.end();
    } finally {
        keeper.disconnect(false);
    }
    const { reason } = keeper.signal;       // if it was lost
    if (reason && done.reason && done.reason !== reason) {
        reason.cause ??= done.reason;
    }
    if (reason || done.status === 'rejected') {
        throw reason ?? done.reason;
    }
    return done.value;
}

// Takes, renews and ends a lease, all on a connection of its own.
//
// The lease is renewed after a third of its TTL. If that fails it is tried again, on a new
// connection, until the TTL is over. The TTL counts from before the last call was sent that
// succeeded, and maxHold from before the first one, so that we never believe in the lease for
// longer than the server does.
class Keeper {
    token; expiresAt; slot;
    #pool; #names; #options; #ttl; #retry;  // the last two in ms
    #connection = null;
    // On the monotonic clock: when maxHold ends, when it is lost, when a renewal is due.
    #last; #until = Infinity; #due;
    #done = new AbortController();
    #lost = new AbortController();
    #watchdog; #keeping;
    #failure = '';                          // of the last renewal

    constructor(pool, names, options) {
        this.#pool = pool;
        this.#names = names;
        this.#options = options;
    }

    get signal() { return this.#lost.signal; }

    isLost() {
        if (now() >= this.#until) {
            this.#lose(this.#until === this.#last ? 'it was held for as long as maxHold allows'
                : `no renewal has succeeded for ${this.#ttl} ms${this.#failure}`);
        }
        return this.signal.aborted;
    }

    check() {
        if (this.isLost() || this.#done.signal.aborted) {
            throw this.signal.reason ?? this.#error('has ended');
        }
    }

    // Waits in calls of a third of the TTL: the TTL of one call that waits for long could be over
    // before its answer comes. Who waits goes on when the connection is lost, or the server
    // restarts or fails over; but who begins at a standby is at the wrong address.
    async take() {
        const { form, ttl, owner, maxHold, argument } = this.#options;
        const { row: times } = await this.#ask(PATIENCE,
            `SELECT ${inMs('$1::interval')} AS ttl, ${inMs('$2::interval')} AS timeout, `
            + `${inMs('$3::interval')} AS most`, [ttl, this.#options.timeout, maxHold]);
        this.#ttl = Number(times.ttl);
        this.#retry = Math.min(1000, this.#ttl / 30);
        const timeout = times.timeout === null ? Infinity : Number(times.timeout);
        const giveUp = now() + timeout;
        let warning, hasWaited = false;
        for (;;) {
            const wait = Math.floor(Math.max(0, Math.min(this.#ttl / 3, giveUp - now(), 1e9)));
            try {
                const values = [...this.#names, ttl, `${wait} ms`, owner, maxHold, argument];
                const answer = await this.#ask(wait + PATIENCE, TAKE[form], values);
                this.token = BigInt(answer.row.token);
                this.slot = answer.row.slot;
                this.#last = answer.sentAt + Number(times.most ?? Infinity);
                this.#held(answer);
                ({ warning } = answer);
                break;
            } catch (error) {
                const isTaken = error.code === '55P03' && error.schema !== undefined;
                hasWaited ||= isTaken;
                const isPassing = isTaken
                    || isOfConnection(error) && (hasWaited || error.code !== '25006');
                if (now() >= giveUp || !isPassing) {
                    const limit = timeout > 0 ? ` within ${timeout} ms` : ' without waiting';
                    throw asNotAvailable(error, error.message.replace(/ with[^"]*$/, limit));
                }
                await sleep(isTaken ? 0 : this.#retry);
            }
        }
        // The server answers so if the wait for its standby was cancelled: then a failover could
        // give the lease to somebody else.
        if (warning) {
            this.#lose(`the grant is not confirmed: ${warning}`);
        }
        if (this.isLost()) {
            await this.end();
            this.check();
        }
        this.#watch();
        this.#keeping = this.#keep();
    }

    #held({ row, sentAt }) {
        this.expiresAt = new Date(Number(row.expires_at));
        this.#until = Math.min(sentAt + this.#ttl, this.#last);
        this.#due = sentAt + this.#ttl / 3;
    }

    // Independent of the renewals, so that one that hangs does not keep the work from stopping in
    // time.
    #watch() {
        const goOn = () => this.isLost() || this.#watch();
        this.#watchdog = setTimeout(goOn, asTimer(this.#until - now()));
    }

    async #keep() {
        for (;;) {
            // After a failure again soon, on a new connection if this one is broken.
            const pause = this.#failure ? this.#retry : this.#due - now();
            await sleep(asTimer(pause), undefined, { signal: this.#done.signal }).catch(() => {});
            if (this.#done.signal.aborted || this.isLost()) {
                return;
            }
            await this.#renew().catch((error) => { this.#failure = `: ${error.message}`; });
        }
    }

    async #renew() {
        const answer = await this.#ask(Math.min(PATIENCE, this.#ttl / 3),
            `SELECT ${inMs(`advisory.renew_lease(${NAMES}, $3::bigint)`)} AS expires_at`,
            [...this.#names, this.token]);
        if (answer.row.expires_at === null) {
            this.isLost();                      // so says the server when maxHold is over, too
            this.#lose('it was ended, or somebody else has it');
        } else if (answer.warning) {
            throw new AdvisoryError(answer.warning);
        } else {
            this.#failure = '';
            this.#held(answer);
        }
    }

    // Never fails, so that it does not hide an error of the work: if the server does not answer,
    // the lease ends when its TTL is over.
    async end() {
        this.isLost();                          // as of now, not of when the server has answered
        clearTimeout(this.#watchdog);
        this.#done.abort();
        await this.#keeping;
        const giveUp = now() + Math.min(PATIENCE, this.#ttl / 3);
        const askToEnd = () => this.#ask(Math.max(1, giveUp - now()),
            `SELECT advisory.end_lease(${NAMES}, $3::bigint) AS is_ended`,
            [...this.#names, this.token]);
        try {
            if (!(await askToEnd()).row.is_ended) {
                this.#lose('it was no longer ours at the end');
            }
        } catch {
            // What it answers says nothing: the first call may have ended it.
            await askToEnd().catch(() => {});
        }
    }

    #lose(reason) {
        if (!this.signal.aborted) {
            this.#lost.abort(this.#error(`is lost: ${reason}`));
        }
    }

    #error(what) {
        const slot = this.slot ? `slot ${this.slot} of ` : '';
        return new LeaseLost(`${slot}lease "${this.#names.join('/')}" ${what}`, this.#names);
    }

    // The row that the call returns, when it was sent, and what the server warned of. After an
    // error of the connection, or if no answer comes in time, the next call makes a new connection.
    async #ask(ms, text, values) {
        if (this.#connection?.isBroken) {
            this.disconnect(true);
        }
        this.#connection ??= openConnection(this.#pool);
        const connection = this.#connection;
        const answer = async () => {
            const client = await connection.client;
            if (this.#connection !== connection) throw new AdvisoryError('it is too late to ask');
            let warning;
            // The code of a NOTICE; the severity is in the language of the server.
            const hear = ({ code, message }) => {
                if (code !== '00000' && !HARMLESS.test(message)) warning ??= message;
            };
            client.on('notice', hear);
            const sentAt = now();
            const asked = client.query(text, values).finally(() => client.off('notice', hear));
            const { rows: [row] } = await asked;
            return { row, sentAt, warning };
        };
        try {
            return await within(ms, answer());
        } catch (error) {
            if (isOfConnection(error)) {
                this.disconnect(true);
            }
            throw error;
        }
    }

    disconnect(isBroken) {
        this.#connection?.close(isBroken);
        this.#connection = null;
    }
}

module.exports = { withLease };
