// Sessions that take random locks. Used by portable.t.
//
//     node exclusion.js NAMES OPERATIONS KIND...
//
// Each KIND is a session: portable calls the edition's functions, keys computes the keys itself and
// calls the built-in functions, slots takes slots of a semaphore. A second connection of each
// session records who is in, so that the record does not depend on any lock.
'use strict';

const { readFileSync } = require('fs');
const { Client } = require('pg');

const [file, operations, ...kinds] = process.argv.slice(2);
const names = JSON.parse(readFileSync(file, 'utf8'));
const tally = {};
const count = (what) => { tally[what] = (tally[what] || 0) + 1; };
const choose = (list) => list[Math.floor(Math.random() * list.length)];

const key = (ns, name) => require('crypto').createHash('sha256').update(ns + '\0' + name)
    .digest().readBigInt64BE();

// One session: its locks, and a connection that records who is in.
async function work(kind) {
    const [locks, record] = ['locks', 'record'].map((use) => new Client({ application_name: use }));
    await locks.connect();
    await record.connect();
    const pid = (await locks.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
    const sql = async (text, ...values) => {
        const { rows } = await locks.query({ text, values, rowMode: 'array' });
        return rows.length ? rows[0][0] : true;
    };
    const say = (text, ...values) => record.query(text, values);
    // A cancel can come late.
    const surely = async (text) => {
        for (;;) {
            try {
                return await sql(text);
            } catch (error) {
                if (error.code !== '57014') throw error;
                count('late');
            }
        }
    };

    for (let i = 0; i < operations; i++) {
        const [ns, name, form] = choose(names);
        const [isTry, isXact, anyShared] = [1, 2, 3].map(() => Math.random() < 0.5);
        const isShared = anyShared && kind !== 'slots';
        const timeout = choose([0, 0, 1, 5, 30, null]);
        const interval = timeout === null ? null : `${timeout} ms`;
        const prefix = (isTry ? 'try_' : '') + (isXact ? 'xact_' : '');
        const suffix = isShared ? '_shared' : '';
        let what = `${ns}/${name}`;
        let unlock;
        let got = false;
        let isCancelled = false;
        try {
            if (isXact) await sql('BEGIN');
            if (kind === 'slots') {
                got = await sql(`SELECT advisory.${prefix}acquire('slots', 'é', 2, $1)`, interval);
                what = `slot ${got}`;
                unlock = [`SELECT advisory.release('slots', 'é', $1)`, got];
            } else if (kind === 'keys') {
                await sql(`SET lock_timeout = ${timeout || 0}`);
                const builtin =
                    `pg_${isTry ? 'try_' : ''}advisory_${isXact ? 'xact_' : ''}lock${suffix}`;
                got = await sql(`SELECT ${builtin}($1)`, key(ns, name)) !== false;
                unlock = [`SELECT pg_advisory_unlock${suffix}($1)`, key(ns, name)];
            } else if (Math.random() < 0.2) {
                got = await sql(
                    `SELECT advisory.${prefix}lock${suffix}_key($1, $2)`, key(ns, name), interval);
                unlock = [`SELECT advisory.unlock${suffix}_key($1)`, key(ns, name)];
            } else {
                const isAwait = !isXact && !isTry && Math.random() < 0.5;
                const call = isAwait ? `CALL advisory.await_lock${suffix}`
                    : `SELECT advisory.${prefix}lock${suffix}`;
                got = await sql(`${call}($1, $2::${form}, $3)`, ns, name, interval);
                unlock = [`SELECT advisory.unlock${suffix}($1, $2::${form})`, ns, name];
            }
        } catch (error) {
            if (error.code !== '55P03' && error.code !== '57014') throw error;
            isCancelled = error.code === '57014';
        }
        if (!got) {
            count(kind + (isCancelled ? ' cancelled' : ' refused'));
            if (isXact) await surely('ROLLBACK');
            // A cancel can come after the grant, and after the error of lock_timeout a built-in
            // function's lock can be held.
            if (isCancelled || kind === 'keys') await surely('SELECT pg_advisory_unlock_all()');
            else await say('CALL holds_nothing($1)', pid);
            continue;
        }
        count(`${kind} taken`);
        await say('CALL enter($1, $2, $3)', pid, what, isShared);
        await new Promise((resolve) => { setTimeout(resolve, Math.random() * 2); });
        await say('DELETE FROM inside WHERE pid = $1', pid);
        try {
            if (isXact) await sql('COMMIT');
            else if (!await sql(...unlock)) {
                await say('INSERT INTO wrong VALUES ($1)', `${kind}: ${what} was not held`);
            }
        } catch (error) {
            if (error.code !== '57014') throw error;
            count('late');
            await surely('ROLLBACK');
            await surely('SELECT pg_advisory_unlock_all()');
        }
    }
    await locks.end();
    await record.end();
}

Promise.all(kinds.map(work))
    .then(() => console.log(JSON.stringify(tally)),
        (error) => { console.error(error); process.exit(1); });
