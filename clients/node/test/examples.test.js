// The examples do what they promise. (Those that serve HTTP are tested together with other
// languages' in the repository.)
'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { after, test } = require('node:test');
const { pool, value, waitUntil, sleep } = require('./helpers');

const folder = path.join(path.dirname(require.resolve('advisory-ext')), 'examples');
const running = new Set();
after(() => running.forEach((program) => program.kill('SIGKILL')));

// The tables that stand in the head of an example.
const makeTables = (name) => pool.query(
    readFileSync(path.join(folder, name), 'utf8').match(/^\/\/ {5}CREATE [^]*?;$/gm).join('\n')
    .replaceAll('//', ''));

function run(name, ...args) {
    const program = spawn(
        process.execPath, [path.join(folder, name), ...args],
        { stdio: ['ignore', 'pipe', 'pipe'] });
    program.said = '';
    for (const stream of [program.stdout, program.stderr]) {
        stream.on('data', (data) => { program.said += data; });
    }
    running.add(program);
    program.ended = new Promise((resolve) => {
        program.on(
            'close', (code, signal) => { running.delete(program); resolve(code ?? signal); });
    });
    return program;
}

test('queue.js: every job once, two of a tenant at a time', async () => {
    await makeTables('queue.js');
    await pool.query(`INSERT INTO job (tenant, mail)
        SELECT CASE WHEN i % 4 = 0 THEN 'small' ELSE 'large' END, i
        FROM generate_series(1, 40) AS i`);
    // Who does how many at the same time, as the server sees it when a job begins.
    await pool.query(`CREATE TABLE job_log (id bigint, tenant text, at_work int)`);
    await pool.query(
        `CREATE OR REPLACE FUNCTION log_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO job_log SELECT NEW.id, NEW.tenant, count(*)
            FROM advisory.holders('tenant', NEW.tenant) WHERE granted AND slot > 0;
        RETURN NEW; END $$`);
    await pool.query(
        'CREATE TRIGGER log_job BEFORE UPDATE ON job FOR EACH ROW EXECUTE FUNCTION log_job()');
    const workers = [run('queue.js'), run('queue.js'), run('queue.js')];
    await waitUntil(
        'all jobs are done',
        async () => await value('SELECT count(*)::int FROM job WHERE done_at IS NULL') === 0);
    workers.forEach((worker) => worker.kill('SIGTERM'));
    for (const worker of workers) {
        assert.equal(await worker.ended, 0, worker.said);
        assert.equal(worker.said, '');
    }
    assert.equal(await value('SELECT count(DISTINCT id)::int FROM job_log'), 40);
    assert.equal(await value('SELECT count(*)::int FROM job_log'), 40);
    assert.equal(await value('SELECT max(at_work) FROM job_log'), 2);
});

test('election.js: one leads; another one takes over, and never are there two', async () => {
    await makeTables('election.js');
    const candidates = Object.fromEntries(
        ['ann', 'bob', 'cyd'].map((name) => [name, run('election.js', name)]));
    const newest = async () => (await pool.query(
        'SELECT leader, token FROM beat ORDER BY at DESC LIMIT 1')).rows[0];
    const nextAfter = async ({ token }) => {
        await waitUntil('another one has led for a while', async () => await value(
            'SELECT count(*)::int FROM beat WHERE token > $1', [token]) > 2);
        return newest();
    };
    const first = await nextAfter({ token: '0' });

    // It vanishes.
    candidates[first.leader].kill('SIGKILL');
    const second = await nextAfter(first);
    assert.notEqual(second.leader, first.leader);

    // It stands still, and then it takes itself for the leader.
    candidates[second.leader].kill('SIGSTOP');
    const third = await nextAfter(second);
    assert.notEqual(third.leader, second.leader);
    candidates[second.leader].kill('SIGCONT');
    await waitUntil('it is told', () => /is lost|55000/.test(candidates[second.leader].said));

    // It is asked to end: then the next one leads at once.
    const start = performance.now();
    candidates[third.leader].kill('SIGTERM');
    assert.equal(await candidates[third.leader].ended, 0, candidates[third.leader].said);
    const fourth = await nextAfter(third);
    assert.ok(
        performance.now() - start < 1900, `within ${performance.now() - start} ms, not the TTL`);
    assert.equal(fourth.leader, second.leader, 'the one that was told is a candidate again');
    candidates[fourth.leader].kill('SIGTERM');
    assert.equal(await candidates[fourth.leader].ended, 0);
    await sleep(50);
    assert.equal(await value('SELECT count(DISTINCT token)::int FROM beat'), 4);
    assert.equal(await value(
        'SELECT count(*)::int FROM beat a JOIN beat b ON a.token < b.token AND a.at > b.at'), 0);
});
