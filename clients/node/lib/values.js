// What callers pass: names, times, options. Everything is checked before it is sent.
'use strict';

const { createHash } = require('crypto');
const { inspect } = require('util');

// The key of a name, as advisory.key() computes it on the server: key('billing', 'invoice:42'), or
// key('nightly') for a name without a namespace. The first eight bytes of SHA-256, as a BigInt.
function key(...names) {
    if (names.length < 1 || names.length > 2) {
        throw new TypeError('key() takes a namespace and a name, or only a name');
    }
    const bytes = Buffer.from(checkNames(...names).join('\0'), 'utf8');
    return createHash('sha256').update(bytes).digest().readBigInt64BE(0);
}

// A name as text. Ids may be numbers; 42, 42n and '42' are the same name.
function checkName(name) {
    if (typeof name === 'bigint' || Number.isSafeInteger(name)) {
        return String(name);
    }
    if (typeof name !== 'string') {
        throw new TypeError(
            `a namespace or a name is a string, an integer or a BigInt, not ${inspect(name)}`);
    }
    if (name === '' || name.includes('\0') || /[\uD800-\uDFFF]/u.test(name)) {
        throw new TypeError('a namespace or a name is not empty, '
            + 'and has neither a zero character nor half a surrogate pair');
    }
    return name;
}

// Both names of a call, as its first parameters.
const NAMES = '$1::text, $2::text';

const checkNames = (...names) => names.map(checkName);

// A time as PostgreSQL reads it. A number is in milliseconds. A string has a unit, because
// PostgreSQL takes '5000' for seconds.
function checkTime(value, what) {
    if (typeof value === 'number' && value >= 0 && value < 2 ** 53) {
        return `${Math.ceil(value)} ms`;
    }
    if (typeof value === 'string' && !/^[\s\d.eE+-]*$|^\s*-/.test(value)) {
        return value;
    }
    throw new TypeError(`${what} is a number of milliseconds or a string with a unit, `
        + `such as '5s', not ${inspect(value)}`);
}

// The same where null means: no limit.
const checkLimit = (value, what) => value === null ? null : checkTime(value, what);
const checkTimeout = (value) => checkLimit(value, 'timeout');

const MS = { ms: 1, s: 1000, min: 60000, h: 3600000, d: 86400000 };

// What such a time is in milliseconds; Infinity if only the server can tell.
function msOf(time) {
    const parts = /(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)[a-z]*\s*/g;
    if (time.replace(parts, '').trim() !== '') {
        return Infinity;
    }
    return [...time.matchAll(parts)].reduce((ms, [, count, unit]) => ms + count * MS[unit], 0);
}

// An interval or a point in time of SQL as a number of milliseconds.
const inMs = (expression) => `1000 * extract(epoch FROM ${expression})::float8`;

// The options with their defaults. An option that does not exist is a mistake, such as a "timout"
// that would not be heeded.
function withDefaults(options, defaults) {
    for (const name of typeof options === 'object' ? Object.keys(options) : [options]) {
        if (!Object.hasOwn(defaults, name)) {
            const known = Object.keys(defaults).join(', ');
            throw new TypeError(`there is no option ${name}; there are ${known}`);
        }
    }
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    return { ...defaults, ...Object.fromEntries(given) };
}

module.exports = {
    NAMES, key, checkNames, checkTime, checkLimit, checkTimeout, msOf, inMs, withDefaults,
};
