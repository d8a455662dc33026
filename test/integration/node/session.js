// A session of node-postgres that does what it is told: each line of its input is {sql, values,
// name}, and each line of its output says what came back, as JavaScript has it: {rows: [["boolean
// true", "number 1"]], notices: []} or {error, notices}.
'use strict';

const readline = require('readline');
const { Client } = require('pg');

// JSON has no BigInt.
const revive = (key, value) => (value && value.bigint ? BigInt(value.bigint) : value);

async function main() {
    const client = new Client();
    const notices = [];
    client.on('notice', (notice) => notices.push(notice.message));
    await client.connect();
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const { sql, values, name } = JSON.parse(line, revive);
        let answer;
        try {
            const { rows } = await client.query({ text: sql, values, name, rowMode: 'array' });
            answer = { rows: rows.map((row) => row.map((value) => `${typeof value} ${value}`)) };
        } catch (error) {
            const { code, message, detail, hint, schema, constraint } = error;
            answer = { error: { code, message, detail, hint, schema, constraint } };
        }
        console.log(JSON.stringify({ ...answer, notices: notices.splice(0) }));
    }
    await client.end();
}

main();
