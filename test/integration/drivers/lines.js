// Runs the calls that driver_calls.t writes, and says what came of each; see README.md here.
'use strict';

const fs = require('fs');

// A value of the list, as a program has it.
function valueOf(text) {
    const [, kind, value] = text.match(/^([^:]*):(.*)$/su);
    if (kind.endsWith('[]')) {
        const each = kind.slice(0, -2);
        return value.split(',').filter(Boolean).map((one) => valueOf(`${each}:${one}`));
    }
    if (kind === 'null') return null;
    if (kind === 'integer') return Number(value);
    if (kind === 'bigint') return BigInt(value);
    return value;
}

function shown(value) {
    if (value === null || ['boolean', 'number'].includes(typeof value)) return String(value);
    if (typeof value === 'string') return `'${value}'`;
    if (typeof value === 'object') return `${value.constructor.name} ${JSON.stringify(value)}`;
    return typeof value === 'bigint' ? `BigInt ${value}` : `${typeof value} ${value}`;
}

// query(sql, values) returns rows, each an object, or throws; what it adds to notices comes last.
module.exports = async (query, notices, errorOf = (error) => error) => {
    const lines = fs.readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean);
    for (const line of lines) {
        const [sql, ...values] = line.split('\t');
        notices.length = 0;
        let said;
        try {
            const rows = await query(sql, values.map(valueOf));
            said = [rows.map((row) => Object.values(row).map(shown).join('|')).join(' '),
                '', '', '', ''];
        } catch (thrown) {
            const error = errorOf(thrown);
            said = /^[0-9A-Z]{5}$/.test(error.code)
                ? [`error ${error.code}`, error.detail, error.hint,
                    error.schema ?? error.schema_name, error.constraint ?? error.constraint_name]
                : [`refused ${error.message}`];
        }
        console.log([...said, ...notices].map((one) => String(one ?? '').replace(/\s+/g, ' '))
            .join('\t'));
    }
};
