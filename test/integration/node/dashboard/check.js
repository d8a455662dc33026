// Checks a dashboard against Grafana's types: node check.js dashboard.json. Names what does not
// fit.
//
// TypeScript takes the JSON for an expression. So that a plain string fits an enum, the enums of
// Grafana's files are read as unions of their values. What Grafana has a default for may be missing
// from the options of a panel.
'use strict';
const fs = require('fs');
const path = require('path');
const ts = require('typescript');

const sdk = path.join(process.env.NODE_PATH, '@grafana/grafana-foundation-sdk');
const dashboard = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
delete dashboard.__requires;

const OPTIONS = { stat: 'Partial<stat.Options>', gauge: 'Partial<gauge.Options>',
    timeseries: 'Partial<timeseries.Options>' };
const parts = ['dashboard', 'prometheus', 'stat', 'gauge', 'timeseries'];
let source = parts.map(
    (part) => `import * as ${part} from '${sdk}/dist/${part}/types.gen';`).join('\n') + '\n';
const check = (name, type, value) => {
    source += `export const ${name}: ${type} = ${JSON.stringify(value, null, 1)};\n`;
};
check('whole', 'dashboard.Dashboard', dashboard);
for (const panel of dashboard.panels) {
    check(`panel${panel.id}`,
        panel.type === 'row' ? 'dashboard.RowPanel' : 'dashboard.Panel', panel);
    if (panel.type === 'row') continue;
    check(`panel${panel.id}_options`, OPTIONS[panel.type] || 'never', panel.options);
    if (panel.type === 'timeseries') {
        check(`panel${panel.id}_custom`, 'timeseries.FieldConfig',
            panel.fieldConfig.defaults.custom);
    }
    panel.targets.forEach(
        (target, i) => check(`panel${panel.id}_target${i}`, 'prometheus.Dataquery', target));
}

const readable = (text) => text
    .replace(/export declare enum (\w+) \{([^}]*)\}/g, (_, name, body) => {
        const values = [...body.matchAll(/(\w+) = ("[^"]*"|-?\d+)/g)];
        return `export type ${name} = ${values.map((value) => value[2]).join(' | ')};\n`
            + `export declare namespace ${name} { `
            + values.map((value) => `type ${value[1]} = ${value[2]};`).join(' ') + ' }';
    })
    .replace(/_implementsDataqueryVariant\(\): void;/g, '');

const options = { strict: true, noEmit: true, skipLibCheck: true, types: [],
    target: ts.ScriptTarget.ES2020, module: ts.ModuleKind.CommonJS };
const host = ts.createCompilerHost(options);
const main = '/dashboard.ts';
const original = host.getSourceFile.bind(host);
host.fileExists = (name) => name === main || ts.sys.fileExists(name);
host.getSourceFile = (name, ...rest) => {
    if (name === main) return ts.createSourceFile(name, source, options.target);
    if (name.startsWith(sdk)) {
        return ts.createSourceFile(name, readable(ts.sys.readFile(name)), options.target);
    }
    return original(name, ...rest);
};
const program = ts.createProgram([main], options, host);
const found = ts.getPreEmitDiagnostics(program);
for (const diagnostic of found) {
    const line = diagnostic.file
        ? diagnostic.file.text.slice(0, diagnostic.start).split('\n').length : 0;
    const where = diagnostic.file && diagnostic.file.fileName === main
        ? source.split('\n')[line - 1].trim() : diagnostic.file?.fileName;
    console.log(`${where}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ')}`);
}
console.log(`${dashboard.panels.length} panels checked`);
process.exitCode = found.length ? 1 : 0;
