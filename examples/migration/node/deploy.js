// node-pg-migrate for deployments that may start at the same time: one migrates, the others wait
// and then find nothing to do. With its own lock, node-pg-migrate fails if another one runs
// ("Another migration is already running"). So this program turns that lock off (--no-lock), and
// holds a lock of its own, on a connection that does nothing else.
//
//   PGDATABASE=shop npm exec -- node deploy.js
//
// (npm exec, so that node-pg-migrate is found; or make it a script in package.json.)
//
// CALL advisory.await_lock() waits without a snapshot, so CREATE INDEX CONCURRENTLY of the other
// deployment does not wait for it. See "Wait without a snapshot" in doc/locks.md.
//
// A timeout has its unit, as in '5s': the number 5000 would mean 5,000 seconds.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { Client } = require('pg');

async function deploy() {
    const client = new Client(process.env.DATABASE_URL);    // or PGHOST, PGDATABASE, …
    client.on('error', () => {});           // a lost connection: unlock, below, fails
    await client.connect();
    try {
        await client.query("CALL advisory.await_lock('migration', 'app', '10 min')");
        const options = ['--no-lock', '--no-single-transaction', '-m', `${__dirname}/migrations`];
        const migrate = spawn('node-pg-migrate', ['up', ...options], { stdio: 'inherit' });
        process.on('SIGTERM', () => migrate.kill());        // it must not go on without the lock
        const [status] = await once(migrate, 'exit');
        // Raises an error if the connection, and with it the lock, was lost in between.
        await client.query("SELECT advisory.unlock('migration', 'app')");
        return status ?? 1;
    } finally {
        await client.end();
    }
}

deploy().then((status) => { process.exitCode = status; }, (error) => {
    console.error(error.detail ? `${error.message}: ${error.detail}` : error);
    process.exitCode = 1;
});
