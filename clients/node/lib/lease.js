'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { AdvisoryError, LeaseLost, asNotAvailable } = require('./errors');
const { openConnection, within, LONGEST_TIMER } = require('./connection');

const now = () => performance.now();        // the monotonic clock, in ms

const PATIENCE = 10000;     // ms for one answer, if the lease has so long

// What the work gets to see of its lease.
class Lease {
    #keeper;

    constructor(keeper) {
        this.#keeper = keeper;
    }

    // A BigInt that is greater than those of all earlier holders. Whatever is written outside the database is to compare it.
    get token() {
        return this.#keeper.token;
    }

    // When the server would let others have it, unless it is renewed once more.
    get expiresAt() {
        return this.#keeper.expiresAt;
    }

    // Throws LeaseLost if it is lost. Unlike the signal, it also knows at once when the process was stopped, or too busy for its timers.
    check() {
        if (this.#keeper.isLost()) {
            throw this.#keeper.signal.reason;
        }
    }
}

// Runs work(lease, signal) with the lease, and ends it afterwards. If the lease was lost, LeaseLost is thrown, whatever the work did; what
// the work threw is its cause.
async function withLease(pool, namespace, name, options, work) {
    const keeper = new Keeper(pool, namespace, name, options);
    let result, failure, hasFailed = false;
    try {
        await keeper.take();
        try {
            result = await work(new Lease(keeper), keeper.signal);
        } catch (error) {
            failure = error;
            hasFailed = true;
        }
        await keeper.end();
    } finally {
        keeper.disconnect(false);
    }
    const { aborted: isLost, reason } = keeper.signal;
    if (isLost && hasFailed && failure !== reason) {
        reason.cause ??= failure;
    }
    if (isLost || hasFailed) {
        throw isLost ? reason : failure;
    }
    return result;
}

// Takes, renews and ends a lease, all on a connection of its own.
//
// The lease is renewed after a third of its TTL. If that fails it is tried again, on a new connection, until the TTL is over. The TTL counts
// from before the last call was sent that succeeded, so that we never believe in the lease for longer than the server does.
class Keeper {
    token = null;
    expiresAt = null;
    #pool; #name; #options;
    #ttl; #retry;                           // ms
    #connection = null;
    #until = Infinity;                      // on the monotonic clock
    #watchdog;
    #done = new AbortController();
    #lost = new AbortController();
    #keeping;
    #failure = '';                          // of the last renewal

    constructor(pool, namespace, name, options) {
        this.#pool = pool;
        this.#name = [namespace, name];
        this.#options = options;
    }

    get signal() {
        return this.#lost.signal;
    }

    isLost() {
        if (now() >= this.#until) {
            this.#lose(`no renewal has succeeded for ${this.#ttl} ms${this.#failure}`);
        }
        return this.signal.aborted;
    }

    // Waits in calls of a third of the TTL: the TTL of one call that waits for long could be over before its answer comes. Who waits
    // goes on when the connection is lost, or the server restarts or fails over; but who begins at a standby is at the wrong address.
    async take() {
        const { ttl, owner, lockDelay } = this.#options;
        const { row: times } = await this.#ask(PATIENCE,
            'SELECT 1000 * extract(epoch FROM $1::interval)::float8 AS ttl, 1000 * extract(epoch FROM $2::interval)::float8 AS timeout',
            [ttl, this.#options.timeout]);
        this.#ttl = Number(times.ttl);
        this.#retry = Math.min(1000, this.#ttl / 30);
        const timeout = times.timeout === null ? Infinity : Number(times.timeout);
        const giveUp = now() + timeout;
        let warning, hasWaited = false;
        for (;;) {
            const wait = Math.floor(Math.max(0, Math.min(this.#ttl / 3, giveUp - now())));
            try {
                const answer = await this.#ask(wait + PATIENCE,
                    'SELECT token::text, 1000 * extract(epoch FROM expires_at)::float8 AS expires_at '
                    + 'FROM advisory.lease($1::text, $2::text, $3::interval, $4::interval, $5::text, $6::interval)',
                    [...this.#name, ttl, `${wait} ms`, owner, lockDelay]);
                this.token = BigInt(answer.row.token);
                this.#held(answer);
                ({ warning } = answer);
                break;
            } catch (error) {
                const isTaken = error.code === '55P03' && error.schema !== undefined;
                hasWaited ||= isTaken;
                const isPassing = isTaken || isOfConnection(error) && (hasWaited || error.code !== '25006');
                if (now() >= giveUp || !isPassing) {
                    const limit = timeout > 0 ? ` within ${timeout} ms` : ' without waiting';
                    throw asNotAvailable(error, error.message.replace(/ (?:within .*|without waiting)$/, limit));
                }
                await sleep(isTaken ? 0 : this.#retry);
            }
        }
        // The server answers so if the wait for its standby was cancelled: then a failover could give the lease to somebody else.
        if (warning) {
            this.#lose(`the grant is not confirmed: ${warning}`);
        }
        if (this.isLost()) {
            await this.end();
            throw this.signal.reason;
        }
        this.#watch();
        this.#keeping = this.#keep();
    }

    #held({ row, sentAt }) {
        this.expiresAt = new Date(Number(row.expires_at));
        this.#until = sentAt + this.#ttl;
    }

    // Independent of the renewals, so that one that hangs does not keep the work from stopping in time.
    #watch() {
        this.#watchdog = setTimeout(() => this.isLost() || this.#watch(), Math.min(Math.ceil(this.#until - now()), LONGEST_TIMER));
    }

    async #keep() {
        let pause = this.#until - this.#ttl * 2 / 3 - now();
        for (;;) {
            await sleep(Math.min(Math.max(0, pause), LONGEST_TIMER), undefined, { signal: this.#done.signal }).catch(() => {});
            if (this.#done.signal.aborted || this.isLost()) {
                return;
            }
            try {
                await this.#renew();
                pause = this.#until - this.#ttl * 2 / 3 - now();
            } catch (error) {
                this.#failure = `: ${error.message}`;
                pause = this.#retry;            // then again, on a new connection if this one is broken
            }
        }
    }

    async #renew() {
        const answer = await this.#ask(Math.min(PATIENCE, this.#ttl / 3),
            'SELECT 1000 * extract(epoch FROM advisory.renew_lease($1::text, $2::text, $3::bigint))::float8 AS expires_at',
            [...this.#name, this.token]);
        if (answer.row.expires_at === null) {
            this.#lose('it was ended, or somebody else has it');
        } else if (answer.warning) {
            throw new AdvisoryError(answer.warning);
        } else {
            this.#failure = '';
            this.#held(answer);
        }
    }

    // Never fails, so that it does not hide an error of the work: if the server does not answer, the lease ends when its TTL is over.
    async end() {
        this.isLost();                          // as of now, not of when the server has answered
        clearTimeout(this.#watchdog);
        this.#done.abort();
        await this.#keeping;
        const giveUp = now() + Math.min(PATIENCE, this.#ttl / 3);
        const askToEnd = () => this.#ask(Math.max(1, giveUp - now()),
            'SELECT advisory.end_lease($1::text, $2::text, $3::bigint) AS is_ended', [...this.#name, this.token]);
        try {
            if (!(await askToEnd()).row.is_ended) {
                this.#lose('it was no longer ours at the end');
            }
        } catch {
            await askToEnd().catch(() => {});       // what it answers says nothing: the first call may have ended it
        }
    }

    #lose(reason) {
        if (!this.signal.aborted) {
            const [namespace, name] = this.#name;
            this.#lost.abort(new LeaseLost(`lease "${namespace}/${name}" is lost: ${reason}`, { namespace, name }));
        }
    }

    // The row that the call returns, when it was sent, and what the server warned of. After an error of the connection, or if no answer
    // comes in time, the next call makes a new connection.
    async #ask(ms, text, values) {
        this.#connection ??= openConnection(this.#pool);
        const connection = this.#connection;
        const answer = async () => {
            const client = await connection.client;
            let warning;
            const notice = ({ severity, message }) => { warning ??= severity === 'WARNING' ? message : undefined; };
            client.on('notice', notice);
            const sentAt = now();
            const { rows: [row] } = await client.query(text, values).finally(() => client.off('notice', notice));
            return { row, sentAt, warning };
        };
        try {
            return await within(ms, answer(), () => new AdvisoryError(`the server has not answered for ${Math.round(ms)} ms`));
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

// Of the network, or of a server that ends, starts, has no connection left, or is a standby now. Errors of SQL have a severity.
function isOfConnection(error) {
    return error.severity === undefined || /^(?:08|53|57P|25006)/.test(error.code);
}

module.exports = { withLease };
