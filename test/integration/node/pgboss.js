// Starts pg-boss, which creates its schema, and ends.
'use strict';

const PgBoss = require('pg-boss');

async function main() {
  const boss = new PgBoss({
    supervise: false,
    schedule: false,
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    database: process.env.PGDATABASE,
  });
  await boss.start();
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
