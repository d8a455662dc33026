// A scheduled job that must not overlap with itself. Cron starts it every minute. While one run works, the next one ends at once.
//
// The lock is session-level, because the job commits several times. So it needs a connection of its own, to the server or through a pooler in
// session mode. All the work uses this connection: if it is lost, and the lock with it, the job fails and does not go on without the lock.
// A timeout has its unit, as in '5s': the number 5000 would mean 5,000 seconds.
//
//     CREATE TABLE invoice (id bigint PRIMARY KEY, due date NOT NULL, reminded_at timestamptz);
//     CREATE TABLE reminder (invoice_id bigint NOT NULL, sent_at timestamptz NOT NULL DEFAULT clock_timestamp());
//
//     npm install pg && PGHOST=localhost PGDATABASE=shop node scheduled-job.js
'use strict';

const { Client } = require('pg');

async function sendReminders(client) {
    const overdue = await client.query(
        'SELECT id FROM invoice WHERE due < current_date AND reminded_at IS NULL ORDER BY id');
    for (const { id } of overdue.rows) {
        await client.query('INSERT INTO reminder (invoice_id) VALUES ($1)', [id]);     // stands for sending a mail
        await client.query('UPDATE invoice SET reminded_at = clock_timestamp() WHERE id = $1', [id]);
    }
    return overdue.rowCount;
}

async function main() {
    const client = new Client({ application_name: 'reminders' });
    client.on('error', () => {});      // a lost connection; the query that needs it says so, too
    await client.connect();
    try {
        // Not to get it is no error here, so this asks. (To wait for it: advisory.lock with a timeout, which raises one.)
        const { rows } = await client.query('SELECT advisory.try_lock($1, $2) AS mine', ['job', 'reminders']);
        if (!rows[0].mine) {
            console.log('the previous run is still at work');
            return;
        }
        try {
            console.log(`${await sendReminders(client)} reminders sent`);
        } finally {
            // The end of the session would do it as well; a connection that goes back into a pool needs this.
            await client.query('SELECT advisory.unlock($1, $2)', ['job', 'reminders']).catch(() => {});
        }
    } finally {
        await client.end();
    }
}

main().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
});
