// PGlite behind its socket server: node server.js port
'use strict';
const { PGlite } = require('@electric-sql/pglite');
const { PGLiteSocketServer } = require('@electric-sql/pglite-socket');

async function main() {
    const db = await PGlite.create();
    const [host, port] = ['127.0.0.1', Number(process.argv[2])];
    await new PGLiteSocketServer({ db, host, port, maxConnections: 10 }).start();
    console.log(`listening on port ${port}`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
