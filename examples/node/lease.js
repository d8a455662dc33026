// A lease that is renewed in the background during the work. A holder that has lost it cannot write any more.
//
//     await withLease({ namespace: 'leader', name: 'mailer', ttl: 30000 }, async (lease, signal) => {     // waits until it has it
//         for (const letter of letters) {
//             lease.throwIfLost();                     // before each step; signal is for fetch() and others that take one
//             await client.query('BEGIN');
//             await lease.check(client);               // in each transaction that writes
//             …
//             await writeFenced(directory, lease.token, text);     // everything outside the database compares tokens
//         }
//     });
//
// Times are in milliseconds. In SQL they have a unit, as in '30000 ms': the number 5000 would mean 5,000 seconds.
//
// As a program it shows that, with a report that has a line for each step, in a table and in a file. Start it several times, with
// the name of the worker, the directory, the number of steps, how many seconds to sleep after each, the TTL if it is not 30, and how
// long to wait for the lease:
//
//     CREATE TABLE report (line bigint GENERATED ALWAYS AS IDENTITY, worker text, token bigint);
//
//     npm install pg       # 8.13 or later: query_timeout for a single query
//     PGDATABASE=shop node lease.js worker-1 /var/tmp/report 100 2
'use strict';

const fs = require('fs/promises');
const path = require('path');
const { setTimeout: sleep } = require('timers/promises');
const { Client } = require('pg');

// Somebody else may have the lease: stop the work.
class LeaseLost extends Error {}

// Somebody else had the lease for as long as we were willing to wait.
class LeaseTaken extends Error {}

// Runs work(lease, signal) with the lease. It is renewed on a connection of its own, at each third of its TTL. If that fails, it is
// tried again on a new connection, until no renewal has succeeded for a whole TTL. That time begins before the call that
// succeeded, and is measured by the monotonic clock. The signal is aborted when the lease is lost.
//
// Ctrl-C and SIGTERM abort the signal, too, so that the work ends and the lease does not stay behind; a second one ends the program.
//
// options: namespace, name, ttl, timeout (how long to wait for the lease, which ends by LeaseTaken), owner, connection (for node-postgres).
// If the lease was lost, the promise is rejected with LeaseLost, whatever the work did.
async function withLease(options, work) {
    const lease = new Lease(options);
    await lease.take();
    const done = new AbortController();
    const keeping = lease.keep(done.signal);
    const stop = (signal) => lease.stop(`the program was ended by ${signal}`);
    process.once('SIGINT', stop).once('SIGTERM', stop);
    try {
        return await work(lease, lease.signal);
    } finally {
        process.off('SIGINT', stop).off('SIGTERM', stop);
        done.abort();
        await keeping;                  // not for longer than a third of the TTL
        await lease.end();
        if (lease.signal.aborted) {
            throw lease.signal.reason;
        }
    }
}

// Of the network, or of a server that ends, starts, has no connection left, or is a standby now. Errors of SQL have a severity.
function isOfConnection(error) {
    return error.severity === undefined || /^(08|53|57|25006)/.test(error.code);
}

class Lease {
    token = null;                       // a string, as node-postgres has bigint
    #name; #ttl; #timeout; #owner; #connection;
    #client = null;
    #warnings = [];
    #until = 0;                         // on the monotonic clock
    #lost = new AbortController();

    constructor({ namespace, name, ttl = 30000, timeout = Infinity, owner = null, connection = {} }) {
        this.#name = [namespace, name];
        this.#ttl = ttl;
        this.#timeout = timeout;
        this.#owner = owner;
        this.#connection = connection;
    }

    // ---- For the work ------------------------------------------------------------------------------------------

    get signal() {
        return this.#lost.signal;
    }

    isLost() {
        // Not only keep() looks at the clock: if the process was stopped, the work may go on before the timers do.
        if (performance.now() >= this.#until) {
            this.#lose(`no renewal has succeeded for ${this.#ttl} ms`);
        }
        return this.signal.aborted;
    }

    throwIfLost() {
        if (this.isLost()) {
            throw this.signal.reason;
        }
    }

    // Ends by LeaseLost as soon as the lease is lost.
    async sleep(ms) {
        await sleep(ms, undefined, { signal: this.signal }).catch(() => {});
        this.throwIfLost();
    }

    // In a transaction that writes: LeaseLost, or nobody else gets the lease before the transaction has ended.
    async check(client) {
        this.throwIfLost();
        try {
            await client.query('SELECT advisory.check_lease($1, $2, $3)', [...this.#name, this.token]);
        } catch (error) {
            if (error.code !== '55000') {
                throw error;
            }
            this.#lose(error.message);
            throw this.signal.reason;
        }
    }

    // ---- For withLease() ---------------------------------------------------------------------------------------

    // Waits in several short calls. The TTL of one that waited for long could be over by the time that it began.
    //
    // If the connection is lost meanwhile, or the server restarts or fails over, it goes on with a new connection. (If the answer was
    // lost that we have the lease, it is free again when its TTL is over.) But if the server cannot be reached to begin with, the error comes out.
    async take() {
        const third = this.#ttl / 3;
        const giveUp = performance.now() + this.#timeout;
        let row = null;
        for (;;) {
            const before = performance.now();
            const wait = Math.floor(Math.max(0, Math.min(third, giveUp - before)));
            try {
                row = await this.#ask(wait + third, 'SELECT * FROM advisory.try_lease($1, $2, $3, $4, $5)',
                    [...this.#name, `${this.#ttl} ms`, `${wait} ms`, this.#owner]);
            } catch (error) {
                if (row === null || !isOfConnection(error) || performance.now() >= giveUp) {
                    throw error;
                }
                await sleep(this.#ttl / 30);
                continue;
            }
            this.token = row.token;
            this.#until = before + this.#ttl;
            if (this.token !== null) {
                if (this.#warnings.length === 0) {
                    return;
                }
                this.#lose(`the grant is not confirmed: ${this.#warnings[0]}`);
                await this.end();
                throw this.signal.reason;
            }
            if (performance.now() >= giveUp) {
                this.#disconnect();
                throw new LeaseTaken('somebody else has the lease');
            }
        }
    }

    async keep(done) {
        let pause = this.#ttl / 3;
        for (;;) {
            await sleep(pause, undefined, { signal: done }).catch(() => {});
            if (done.aborted) {
                return;
            }
            try {
                await this.#renew();
                pause = Math.max(0, this.#until - this.#ttl * 2 / 3 - performance.now());
            } catch {
                pause = this.#ttl / 30;         // then again, on a new connection if it was lost
            }
            if (this.isLost()) {
                return;
            }
        }
    }

    async #renew() {
        const before = performance.now();
        const row = await this.#ask(Math.min(this.#ttl / 3, this.#until - before),
            'SELECT advisory.renew_lease($1, $2, $3) AS expires_at', [...this.#name, this.token]);
        if (row.expires_at === null) {
            this.#lose('it was ended, or somebody else has it');
        } else if (this.#warnings.length === 0) {
            this.#until = before + this.#ttl;
        } else {
            throw new Error(`the renewal is not confirmed: ${this.#warnings[0]}`);
        }
    }

    stop(reason) {
        this.#lose(reason);
    }

    // If the server does not answer, the lease ends by itself when its TTL is over.
    async end() {
        this.isLost();                  // as of now, not of when the server has answered
        const row = await this.#ask(this.#ttl / 3, 'SELECT advisory.end_lease($1, $2, $3) AS ended', [...this.#name, this.token])
            .catch(() => ({ ended: true }));
        if (!row.ended) {
            this.#lose('it was no longer ours at the end');
        }
        this.#disconnect();
    }

    #lose(reason) {
        if (!this.signal.aborted) {
            this.#lost.abort(new LeaseLost(reason));
        }
    }

    // The row, if it comes within this time; #warnings has what the server warned of. After an error the next call makes a new
    // connection.
    //
    // If somebody cancels a COMMIT that waits for the synchronous standby, the server reports success, and a WARNING. Its SQLSTATE is
    // 01000, as of others, and its text is in the server's language. So any warning is taken for that one.
    async #ask(ms, text, values) {
        const until = performance.now() + ms;
        try {
            if (this.#client === null) {
                this.#client = new Client({ ...this.#connection, connectionTimeoutMillis: Math.max(1, ms) });
                this.#client.on('error', () => {});     // the next query says so, too
                this.#client.on('notice', (notice) => {
                    if (notice.code !== '00000') {
                        this.#warnings.push(notice.message);
                    }
                });
                await this.#client.connect();
            }
            this.#warnings = [];
            const { rows } = await this.#client.query({ text, values, query_timeout: Math.max(1, until - performance.now()) });
            return rows[0];
        } catch (error) {
            this.#disconnect();
            throw error;
        }
    }

    #disconnect() {
        this.#client?.end().catch(() => {});    // not to be waited for: the connection may be dead
        this.#client = null;
    }
}

// ---- Outside the database --------------------------------------------------------------------------------------

const DIGITS = 19;

// Somebody with a greater token was here before.
class StaleToken extends Error {}

// Makes this the content, or throws StaleToken.
//
// The directory has a file for each token. That of the greatest one is the content, so what comes late with a smaller one changes
// nothing. No lock is needed, and a write is there as a whole, or not at all, also after a crash.
async function writeFenced(directory, token, content) {
    const name = token.padStart(DIGITS, '0');
    const file = path.join(directory, name);
    await refuseIfStale(directory, name);
    await inFile(`${file}.new`, 'w', (handle) => handle.writeFile(content));
    await fs.rename(`${file}.new`, file).catch(unlessMissing);      // a greater token may have cleared it away
    await inFile(directory, 'r', () => {});
    try {
        await refuseIfStale(directory, name);   // once more: only now all who come later see ours
    } catch (error) {
        await fs.unlink(file).catch(unlessMissing);
        throw error;
    }
    for (const other of await fs.readdir(directory)) {
        if (other.slice(0, DIGITS) < name) {
            await fs.unlink(path.join(directory, other)).catch(unlessMissing);
        }
    }
}

// The content with the greatest token, or null.
async function readNewest(directory) {
    for (;;) {
        const newest = (await fs.readdir(directory)).filter((name) => !name.endsWith('.new')).sort().pop();
        if (newest === undefined) {
            return null;
        }
        const content = await fs.readFile(path.join(directory, newest), 'utf8').catch(unlessMissing);
        if (content !== undefined) {            // else a greater one has come meanwhile
            return content;
        }
    }
}

// Flushes it to the disk, too.
async function inFile(name, flags, write) {
    const handle = await fs.open(name, flags);
    try {
        await write(handle);
        await handle.sync();
    } finally {
        await handle.close();
    }
}

function unlessMissing(error) {
    if (error.code !== 'ENOENT') {
        throw error;
    }
}

async function refuseIfStale(directory, name) {
    const greatest = (await fs.readdir(directory)).map((other) => other.slice(0, DIGITS)).sort().pop();
    if (greatest > name) {
        throw new StaleToken(`token ${BigInt(name)} is stale, ${BigInt(greatest)} was here`);
    }
}

// ---- A program that uses both ----------------------------------------------------------------------------------

async function addLine(client, lease, worker, directory) {
    let report;
    await client.query('BEGIN');
    try {
        await lease.check(client);
        await client.query('INSERT INTO report (worker, token) VALUES ($1, $2)', [worker, lease.token]);
        const { rows } = await client.query(`SELECT string_agg(line || ' by ' || worker || E'\\n', '' ORDER BY line) AS text FROM report`);
        report = rows[0].text;
        await client.query('COMMIT');
    } catch (error) {
        await client.query('ROLLBACK').catch(() => {});
        throw error;
    }
    await writeFenced(directory, lease.token, report);
}

async function main(worker, directory, steps, pause, ttl = '30', timeout = 'Infinity') {
    await fs.mkdir(directory, { recursive: true });
    const options = {
        namespace: 'report', name: 'daily', ttl: 1000 * ttl, timeout: 1000 * timeout, owner: worker,
        connection: { application_name: `${worker}-lease` },
    };
    try {
        await withLease(options, async (lease, signal) => {
            signal.addEventListener('abort', () => console.log(`${worker}: the lease is lost`));
            console.log(`${worker} has the lease, token ${lease.token}`);
            const client = new Client({ application_name: worker });
            client.on('error', (error) => console.error(error.message));
            try {
                await client.connect();
                for (let step = 0; step < steps; step++) {
                    await addLine(client, lease, worker, directory);
                    await lease.sleep(1000 * pause);
                }
            } finally {
                client.end().catch(() => {});
            }
        });
        console.log(`${worker} is done`);
    } catch (error) {
        console.error(`${worker} ${error instanceof LeaseTaken ? 'does not begin' : 'stops'}: ${error.message}`);
        process.exitCode = 1;
    }
}

if (require.main === module) {
    main(...process.argv.slice(2));
}

module.exports = { LeaseLost, LeaseTaken, StaleToken, readNewest, withLease, writeFenced };
