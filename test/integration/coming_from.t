#!/usr/bin/env perl
# The JavaScript of doc/coming-from-pg_advisory_lock.md, as it stands there, with Node and
# node-postgres: the old and the new code exclude each other, and the test with two sessions passes,
# and fails without the lock.
use utf8;
use AdvisoryTest;
use FindBin;
use Launch;
use Page;
use Programs;

plan skip_all => 'there is no Node with node-postgres here' unless node_modules();

create_database();
my $look = session();

my ($old, $new, $two_sessions, @more) = map { $_->{text} } grep { $_->{language} eq 'js' }
    Page->new("$FindBin::Bin/../../doc/coming-from-pg_advisory_lock.md")->others;
like($old, qr/function lockIdFor/, 'the page has the old code');
like($new, qr/advisory[.]lock_key/, '... the new code');
like($two_sessions, qr/function testTwoSessions/, '... and a test with two sessions');
is(scalar @more, 0, '... and nothing else');

# Runs a program, and returns what it said and its exit code.
sub node ($name, $source) {
    return launch_node(spew(scratch() . "/$name.js", $source))->finish;
}

# ---- Old and new code side by side ---------------------------------------------------------------

my ($said, $status) = node('beside', <<"JS");
const assert = require('node:assert');
const { Client } = require('pg');
const old = (() => {
$old
return { withLock, lockIdFor };
})();
const now = (() => {
$new
return { withLock };
})();

(async () => {
    const name = 'größe: ☃';
    const [one, two, look] = [new Client(), new Client(), new Client()];
    for (const client of [one, two, look]) await client.connect();

    for (const text of [name, 'invoice-generation', 'x']) {
        const key = (await look.query('SELECT advisory.key(\$1) AS key', [text])).rows[0].key;
        assert.equal(old.lockIdFor(text), key);
    }

    // The first one holds the lock until the second one waits for it.
    for (const [first, second] of [[old, now], [now, old], [now, now]]) {
        const order = [];
        let finish;
        const begun = new Promise((resolve) => {
            const work = () => {
                resolve();
                return new Promise((end) => {
                    finish = () => { order.push('first'); end(); };
                });
            };
            order.done = first.withLock(one, name, work);
        });
        await begun;
        const waiting = second.withLock(two, name, async () => { order.push('second'); });
        while ((await look.query('SELECT FROM advisory.locks WHERE NOT granted')).rowCount === 0);
        finish();
        await order.done;
        await waiting;
        assert.deepEqual([...order], ['first', 'second']);
    }

    // A name in the views, and an error that bears it.
    await now.withLock(one, name, async () => {
        const shown = await look.query('SELECT lock FROM advisory.activity');
        assert.equal(shown.rows[0].lock, `"\${name}"`);
        await assert.rejects(now.withLock(two, name, async () => {}),
            { code: '55P03', constraint: name });
    });
    for (const client of [one, two, look]) await client.end();
    console.log('done');
})();
JS
is($status, 0,
    'lockIdFor() and advisory.key() are one key; old and new code exclude each other in every '
        . 'order; the lock has its name');
is($said, "done\n", '... to the end');
is($look->value(q{SELECT count(*) FROM advisory.locks}), 0, '... and nothing is left locked');

# ---- The test with two sessions ------------------------------------------------------------------

my $run = "\ntestTwoSessions().then(() => console.log('passed'), (error) => "
    . "{ console.error(error.message); process.exit(1); });\n";
($said, $status) = node('two', $two_sessions . $run);
is($status, 0, 'the test with two sessions passes');
is($said, "passed\n", '... and says so');
my $without = $two_sessions =~ s/SELECT advisory\.xact_lock\('invoice', 42\)/SELECT 42/r;
isnt($without, $two_sessions, 'without the lock');
($said, $status) = node('without', $without . $run);
isnt($status, 0, '... it fails');
like($said, qr/Missing expected rejection/, '... because nobody is kept out');
done_testing();
