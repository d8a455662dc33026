// The programs of README.md, as they stand there: each prints what the block after it shows.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { advisory, pool, as, makePool } = require('./helpers');

const text = readFileSync(
    path.join(path.dirname(require.resolve('advisory-ext')), 'README.md'), 'utf8');
const blocks = [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(
    ([, language, content]) => ({ language, content }));
const programs = blocks.flatMap(({ language, content }, i) => language !== 'js' ? []
    : [{ content, output: blocks[i + 1]?.language === '' ? blocks[i + 1].content : '' }]);

const made = [];
const AsyncFunction = (async () => {}).constructor;

// What the program prints, and its error as Node shows it at the end.
async function run(content) {
    const lines = [];
    const console = { log: (...what) => lines.push(what.map((one) => typeof one === 'string' ? one
        : one instanceof Error ? `${one.name}: ${one.message}` : inspect(one)).join(' ')) };
    // The Pool that it makes itself ends with the test.
    const pg = { Pool: function Pool() { return makePool(); } };
    const from = (name) => name === 'pg' ? pg : require(name);
    // A program that makes its own says so in its first lines.
    const given = content.includes('const advisory') ? { pool } : { pool, advisory };
    const compute = async (step, { signal }) => { made.push([step, signal.aborted]); };
    const names = { ...given, require: from, console, compute };
    const program = new AsyncFunction(...Object.keys(names), content);
    let error;
    await program(...Object.values(names)).catch((e) => { error = e; });
    if (error) {
        console.log(error);
        for (const more of ['holder', 'remedy']) {
            if (error[more]) lines.push(`${more}: ${inspect(error[more], { breakLength: 80 })}`);
        }
    }
    return lines.map((line) => `${line}\n`).join('');
}

// Numbers of processes, roles and moments are different each time.
const normal = (output) => output.replace(/since [\d.: +-]+\./g, 'since a moment.')
    .replace(/(pid: |Process |, )\d+(?=[ ,)]|$)/gm, '$1PID')
    .replace(/role: '\w+'|role "\w+"/g, 'role');

test.before(() => pool.query(`
    CREATE TABLE invoice (id int, paid boolean DEFAULT false, reminded_at timestamptz);
    CREATE TABLE item (cart int, price int);
    CREATE TABLE report (day timestamptz, token bigint);
    INSERT INTO invoice VALUES (41), (42), (43);
    INSERT INTO item VALUES (7, 10), (7, 20), (8, 5)`));

test('README.md has a program for each call', () => {
    for (const call of ['withLock', 'withSlot', 'withLease', 'claim', 'key']) {
        assert.ok(programs.some(({ content }) => content.includes(call)), call);
    }
    assert.equal(programs.length, 11);
});

for (const { content, output } of programs) {
    const title = content.match(/(with\w+|claim|key)\('\w+', '?[\w:.]+'?/)[0];
    test(`README.md: ${title} …`, async () => {
        const isFirst = content.includes('new Pool');
        if (isFirst) {
            assert.equal(await run(content), '');
            assert.equal((await pool.query('SELECT FROM invoice WHERE paid')).rowCount, 1);
        }
        const isTaken = isFirst || output.includes('is taken');
        const other = isTaken && await as('worker-3', 'withLock', 'billing', 'invoice:42');
        assert.equal(normal(await run(content)), normal(output));
        if (isTaken) await other.done();
    });
}

test('README.md: the work of withLease', async () => {
    assert.deepEqual(made, [
        ['read', false], ['compute', false], ['write', false], ['slot 1 of 4', false]]);
    assert.equal((await pool.query('SELECT FROM report WHERE token IS NOT NULL')).rowCount, 1);
});

test('README.md: the error of a transaction pooler', () => {
    const source = readFileSync(
        require.resolve('advisory-ext').replace('index.js', 'lib/pooler.js'), 'utf8');
    const [, message] = source.match(/new TransactionPooler\((.*?), names\)/s);
    assert.ok(text.replace(/\s+/g, ' ').includes(new Function(`return ${message}`)()));
});
