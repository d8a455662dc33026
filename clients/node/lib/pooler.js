'use strict';

const { TransactionPooler } = require('./errors');
const { PATIENCE, call, openConnection, within, outcomeOf } = require('./connection');

const ROUNDS = 5;
const QUEUE = 1000;     // ms for a statement: in session mode it may have to wait for a server

// Refuses session-level locks behind a pooler in transaction mode: there the next transaction of
// this client may run in another session.
//
// Whoever talks to the server itself pays one statement. The server tells each client the number of
// its process; a pooler invents that. If the two differ there is a pooler, but it may be in session
// mode. Then it is in transaction mode if two connections that are both open share a process, or if
// one of them has two. Each is asked when it has no transaction. Without a second connection there
// is no lock.
async function refuseTransactionPooler(pool, lent, names) {
    const mine = new Set([await processOf(lent)]);
    if (mine.has(lent.client.processID)) {
        return;
    }
    const other = openConnection(pool);
    let isShared = false, isServed = true;
    try {
        const second = await within(PATIENCE, other.client);
        for (let round = 0; round < ROUNDS && isServed && !isShared; round++) {
            const asked = processOf(second);
            await outcomeOf(() => within(QUEUE, asked));
            // Twice, as a pooler that hands out its servers in turn could keep in step with us.
            mine.add(await processOf(lent)).add(await processOf(lent));
            // In transaction mode, whoever has waited for longer was served before us.
            const { value: theirs } = await outcomeOf(() => within(QUEUE / 10, asked));
            isServed = theirs !== undefined;
            isShared = mine.size > 1 || mine.has(theirs);
        }
    } finally {
        other.close(true);
    }
    if (isShared) {
        throw new TransactionPooler('a session-level lock cannot be held behind a pooler '
            + 'in transaction mode: leave scope out for a lock of a transaction, '
            + 'or use withLease(), or connect to the server itself', names);
    }
}

async function processOf(client) {
    const [process] = await call(client, 'SELECT pg_catalog.pg_backend_pid()');
    return Number(process);
}

module.exports = { refuseTransactionPooler };
