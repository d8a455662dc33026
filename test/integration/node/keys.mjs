// Runs one tool with its defaults, which migrates the database of PGHOST, PGDATABASE, … and creates
// an index there.
//
//     node keys.mjs TOOL FOLDER      FOLDER has nothing but node_modules
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';

const [tool, folder] = process.argv.slice(2);
const at = {
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    database: process.env.PGDATABASE,
};
const TABLE = 'CREATE TABLE item (name text)';
const INDEX = 'CREATE INDEX ON item (name)';
const write = (name, text) => writeFileSync(`${folder}/${name}`, text);

const tools = {
    async kysely() {
        const { Kysely, PostgresDialect, sql } = await import('kysely');
        const { Migrator } = await import('kysely/migration');
        const { default: pg } = await import('pg');
        const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool(at) }) });
        const up = async (db) => {
            await sql.raw(TABLE).execute(db);
            await sql.raw(INDEX).execute(db);
        };
        const provider = { getMigrations: async () => ({ item: { up } }) };
        const { error } = await new Migrator({ db, provider }).migrateToLatest();
        await db.destroy();
        if (error) throw error;
    },

    async lucid() {
        // What it needs of its framework is checks of health, which are not called.
        const module = (text) => `data:text/javascript,${encodeURIComponent(text)}`;
        const checks = module('export class BaseCheck {}; export class Result {}');
        register(module(`export async function resolve(name, context, next) {
            return name === '@adonisjs/core/health'
                ? { url: '${checks}', shortCircuit: true } : next(name, context);
        }`));
        const { Database } = await import('@adonisjs/lucid/database');
        const { MigrationRunner } = await import('@adonisjs/lucid/migration');
        mkdirSync(`${folder}/migrations`);
        write('migrations/item.js', `
            import { BaseSchema } from '@adonisjs/lucid/schema';
            export default class extends BaseSchema {
                up() { this.schema.createTable('item', (table) => table.string('name').index()); }
            }`);
        const db = new Database({
            connection: 'pg',
            connections: {
                pg: { client: 'pg', connection: at, migrations: { paths: ['migrations'] } },
            },
        }, { trace() {}, warn: console.warn }, { emit() {}, hasListeners: () => false });
        const application = {
            appRoot: new URL(`file://${folder}/`),
            migrationsPath: () => 'migrations',
            relativePath: (path) => path,
        };
        const runner = new MigrationRunner(db, application, { direction: 'up' });
        await runner.run();
        await db.manager.closeAll();
        if (runner.error) throw runner.error;
    },

    async slonik() {
        const { SlonikMigrator } = await import('@slonik/migrator');
        const { createPool } = await import('slonik');
        mkdirSync(`${folder}/migrations`);
        write('migrations/2026.01.01T00.00.00.item.sql', `${TABLE}; ${INDEX};`);
        const slonik = await createPool('');
        await new SlonikMigrator({
            slonik,
            migrationsPath: `${folder}/migrations`,
            migrationTableName: 'migration',
            logger: undefined,
        }).up();
        await slonik.end();
    },

    async 'graphile-migrate'() {
        const { migrate } = await import('graphile-migrate');
        mkdirSync(`${folder}/migrations/committed`, { recursive: true });
        const body = `${TABLE};\n${INDEX};`;
        const hash = createHash('sha1').update(`${body}\n`).digest('hex');
        write('migrations/committed/000001.sql',
            `--! Previous: -\n--! Hash: sha1:${hash}\n\n${body}\n`);
        const server = `host=${encodeURIComponent(at.host)}&port=${at.port}`;
        await migrate({
            connectionString: `postgresql://${at.user}@/${at.database}?${server}`,
            migrationsFolder: `${folder}/migrations`,
        });
    },

    async 'node-pg-migrate'() {
        const { runner } = await import('node-pg-migrate');
        mkdirSync(`${folder}/migrations`);
        write('migrations/1_item.sql', `-- Up Migration\n${TABLE}; ${INDEX};\n`);
        await runner({
            databaseUrl: at,
            dir: `${folder}/migrations`,
            direction: 'up',
            migrationsTable: 'pgmigrations',
        });
    },

    // Its first start makes its schema; then work() does what takes its other locks.
    async 'pg-boss'(work = async () => {}) {
        const { PgBoss } = await import('pg-boss');
        const boss = new PgBoss({
            ...at, schedule: false, supervise: false, persistQueueStats: true,
        });
        boss.on('error', (error) => console.error(error));
        await boss.start();
        await work(boss);
        await boss.stop({ graceful: false });
    },

    async 'pg-boss at work'() {
        await tools['pg-boss'](async (boss) => {
            await boss.createQueue('mail');
            await boss.supervise();
            await boss.deleteQueue('mail');
        });
    },
};

await tools[tool]();
process.exit(0);
