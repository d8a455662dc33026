// slonik.
'use strict';

const { createPool, createTypeParserPreset, sql } = require('slonik');
const run = require('./lines');

// As the driver gets a template literal from a program.
function template(text) {
    const parts = text.split('?');
    return Object.assign(parts, { raw: Object.freeze([...parts]) });
}
const bound = (value) => (Array.isArray(value) ? sql.array(value, 'text') : value);
const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
async function main() {
    const pool = await createPool(
        `postgresql://${PGUSER}@${encodeURIComponent(PGHOST)}:${PGPORT}/${PGDATABASE}`,
        { maximumPoolSize: 1 });
    const notices = [];
    await pool.connect((connection) => run(async (text, values) => {
        const result = await connection.query(sql.unsafe(template(text), ...values.map(bound)));
        notices.push(...result.notices.map((notice) => notice.message));
        return result.rows;
    }, notices));
    await pool.end();
}
main();
