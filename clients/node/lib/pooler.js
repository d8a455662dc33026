'use strict';

const { TransactionPooler } = require('./errors');
const { openConnection, within, outcomeOf } = require('./connection');

const ROUNDS = 5;
// Milliseconds for all rounds: in session mode, the second connection may have to wait for a server.
const PATIENCE = 1000;

// Refuses session-level locks behind a pooler in transaction mode: there the next transaction of this client may run in another session.
//
// Whoever talks to the server itself pays one statement. The server tells each client the number of its process; a pooler invents that.
// If the two differ there is a pooler, but it may be in session mode. Then it is in transaction mode if two connections that are both open
// share a process, or if one of them has two. Each is asked when it has no transaction.
async function refuseTransactionPooler(pool, client, names) {
    const mine = new Set([await processOf(client)]);
    if (mine.has(client.processID)) {
        return;
    }
    const other = openConnection(pool);
    const search = async () => {
        const second = await other.client;
        for (let round = 0; round < ROUNDS; round++) {
            const theirs = await processOf(second);
            // Twice, as a pooler that hands out its servers in turn could keep in step with us.
            mine.add(await processOf(client)).add(await processOf(client));
            if (mine.size > 1 || mine.has(theirs)) {
                return true;
            }
        }
        return false;
    };
    // If the second connection is not served it is not proven, and unlock will tell.
    const { value: isShared = mine.size > 1 } = await outcomeOf(() => within(PATIENCE, search()));
    other.close(true);
    if (isShared) {
        throw new TransactionPooler('a session-level lock cannot be held behind a pooler '
            + 'in transaction mode: leave scope out for a lock of a transaction, '
            + 'or use withLease(), or connect to the server itself', names);
    }
}

async function processOf(client) {
    const { rows: [row] } = await client.query('SELECT pg_catalog.pg_backend_pid() AS process');
    return Number(row.process);
}

module.exports = { refuseTransactionPooler };
