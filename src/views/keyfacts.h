/*
 * views/keyfacts.h
 *		The keys of advisory locks that other programs take.
 *
 * This is the only list of these facts.  The view advisory.known_keys and the column
 * known_as of advisory.locks use it.  Each fact names its source, a file of a public
 * repository.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/* How the key of a fact is computed, or how a lock is recognized. */
enum class KeyRule
{
	exact,						/* number */
	/* A hash of text */
	hash,						/* hashtext(text) */
	hash_pair,					/* a pair: number, and hashtext(text) */
	crc_product,				/* number * crc32(text), 64 bits wide */
	crc_product_32,				/* the same, 32 bits wide and unsigned */
	md5_32,						/* the first 32 bits of md5(text), unsigned */
	sha224,						/* the first 64 bits of sha224(text) */
	sha256,						/* the first 64 bits of sha256(text) */
	/* Patterns */
	range,						/* number to last */
	repack_table,				/* a pair: number, and a table's oid - 2^31 */
	ascii_name,					/* a pair that encodes a name in 7-bit characters */
	classes						/* an objsubid whose bit is set in number, by the extension text */
};

/* Where the names of schemas, tables and queues in a fact's text come from. */
enum class NameSource
{
	none,
	migrate_tables,				/* of golang-migrate */
	slonik_tables,
	pgboss_schemas,
	dbos_schemas,
	pgmq_queues,
	partman_tables
};
constexpr int NAME_SOURCES = index_of(NameSource::partman_tables) + 1;

struct KeyFact
{
	const char *tool;
	const char *purpose;		/* may be null */
	const char *form;			/* "bigint", "int4 pair" or the objsubids */
	const char *scope;			/* may be null */
	KeyRule		rule;
	int64		number;			/* the rule says what number and text mean */
	/*
	 * In a text that is hashed, %d stands for the name of the database, %s for the schema, %t for the table or
	 * queue, %j for the table as JSON, %J for [schema, table] as JSON, and %0 for a zero byte.
	 */
	const char *text;
	const char *formula;		/* the rule in words; null if it is just the number */
	const char *source;
	NameSource	names = NameSource::none;
	int64		last = 0;		/* of a range */
};

constexpr char BIGINT[] = "bigint";
constexpr char PAIR[] = "int4 pair";

constexpr char SESSION[] = "session";
constexpr char TRANSACTION[] = "transaction";
constexpr char EITHER[] = "session or transaction";
constexpr char ANY_SCOPE[] = "any";

/* The set of objsubids from first to last, as bits. */
constexpr int64
objsubids(int first, int last)
{
	return ((INT64CONST(1) << (last - first + 1)) - 1) << first;
}

/* The factor of golang-migrate, which Grafana uses too. */
constexpr int64 MIGRATE_SALT = 1486364155;

/* The middle of Flyway's range. */
constexpr int64 FLYWAY_BASE = 77431708279161;

constexpr KeyFact KEY_FACTS[] = {
	{"Prisma Migrate", "migration lock", BIGINT, SESSION, KeyRule::exact, 72707369,
		nullptr, nullptr, "prisma/prisma-engines schema-engine postgres flavour"},
	{"goose", "migration lock", BIGINT, SESSION, KeyRule::exact, 4097083626,
		nullptr, nullptr, "pressly/goose lock/session_locker_options.go"},
	{"goose", "migration lock (v3.15.1 to v3.25.0)", BIGINT, SESSION, KeyRule::exact, 5887940537704921958,
		nullptr, nullptr, "pressly/goose lock/session_locker_options.go"},
	{"Kysely", "migration lock", BIGINT, SESSION, KeyRule::exact, 3853314791062309107,
		nullptr, nullptr, "kysely-org/kysely src/dialect/postgres/postgres-adapter.ts"},
	{"node-pg-migrate", "migration lock", BIGINT, SESSION, KeyRule::exact, 7241865325823964,
		nullptr, nullptr, "salsita/node-pg-migrate src/runner.ts"},
	{"graphile-migrate", "migration lock", BIGINT, SESSION, KeyRule::exact, 4727445306447283,
		nullptr, nullptr, "graphile/migrate src/pgReal.ts"},
	{"postgres-migrations", "migration lock", BIGINT, SESSION, KeyRule::exact, -8525285245963000605,
		nullptr, nullptr, "ThomWright/postgres-migrations src/with-lock.ts"},
	{"tern", "migration lock", BIGINT, SESSION, KeyRule::exact, 9628173550095224,
		nullptr, nullptr, "jackc/tern migrate/migrate.go"},
	{"pgroll", "state lock", BIGINT, TRANSACTION, KeyRule::exact, 12388221127840347,
		nullptr, nullptr, "xataio/pgroll pkg/state/state.go"},
	{"Atlas", "migrate execute", BIGINT, SESSION, KeyRule::exact, 2686470616,
		nullptr, nullptr, "ariga/atlas sql/postgres/driver.go"},
	{"Atlas", "migrate diff", BIGINT, SESSION, KeyRule::exact, 361947982,
		nullptr, nullptr, "ariga/atlas sql/postgres/driver.go"},
	{"DBOS", "system database migration", BIGINT, SESSION, KeyRule::exact, 1234567890,
		nullptr, nullptr, "dbos-inc/dbos-transact-py dbos/_sys_db_postgres.py"},
	{"authentik", "migration lock", BIGINT, SESSION, KeyRule::exact, 1000,
		nullptr, nullptr, "goauthentik/authentik lifecycle/migrate.py"},
	{"Evolve", "migration lock", BIGINT, SESSION, KeyRule::exact, 12345,
		nullptr, nullptr, "lecaillon/Evolve PostgreSQLDatabase.cs"},
	{"Marten", "default global lock", BIGINT, SESSION, KeyRule::exact, 4004,
		nullptr, nullptr, "JasperFx/marten StoreOptions.cs"},
	{"Airflow", "migrations", BIGINT, SESSION, KeyRule::exact, 1,
		nullptr, nullptr, "apache/airflow utils/db.py DBLocks"},
	{"Airflow", "scheduler critical section", BIGINT, SESSION, KeyRule::exact, 2,
		nullptr, nullptr, "apache/airflow utils/db.py DBLocks"},
	{"Concourse", "database migration", BIGINT, SESSION, KeyRule::exact, 5,
		nullptr, nullptr, "concourse/concourse atc/db/lock/lock.go"},
	{"sqitch", "deployment", BIGINT, SESSION, KeyRule::exact, 75474063,
		nullptr, nullptr, "sqitchers/sqitch lib/App/Sqitch/Engine/pg.pm"},
	{"pgBackRest", "backup", BIGINT, SESSION, KeyRule::exact, 12340078987004321,
		nullptr, nullptr, "pgbackrest/pgbackrest src/db/db.h"},
	{"Unleash", "migration", BIGINT, SESSION, KeyRule::exact, 479341,
		nullptr, nullptr, "Unleash/unleash src/lib/util/db-lock.ts"},
	{"rake-db", "migration", BIGINT, TRANSACTION, KeyRule::exact, 8582141715823621641,
		nullptr, nullptr, "romeerez/orchid-orm packages/rake-db"},
	{"dumbo (Emmett)", "migration", BIGINT, SESSION, KeyRule::exact, 999956789,
		nullptr, nullptr, "event-driven-io/Pongo packages/dumbo"},
	{"pg-workflows", "migration", BIGINT, TRANSACTION, KeyRule::exact, 738291645,
		nullptr, nullptr, "pg-workflows"},
	{"n8n", "migrations and maintenance", BIGINT, TRANSACTION, KeyRule::range, 1001,
		nullptr, "1001 to 1009 (1005: migrations)", "n8n-io/n8n packages/@n8n/db db-lock.service.ts", NameSource::none, 1009},
	{"Rails", "schema migration", BIGINT, SESSION, KeyRule::crc_product, 2053462845,
		"%d", "2053462845 * crc32(database)", "rails/rails activerecord migration.rb"},
	{"golang-migrate", "migration lock", BIGINT, SESSION, KeyRule::crc_product_32, MIGRATE_SALT,
		"%s%0%t%0%d", "uint32(crc32(schema || '\\0' || table || '\\0' || database) * 1486364155)",
		"golang-migrate/migrate database/util.go", NameSource::migrate_tables},
	{"golang-migrate", "migration lock", BIGINT, SESSION, KeyRule::crc_product_32, MIGRATE_SALT,
		"%s%0%t%0/%d", "uint32(crc32(schema || '\\0' || table || '\\0/' || database) * 1486364155), connected by URL",
		"golang-migrate/migrate database/util.go", NameSource::migrate_tables},
	{"golang-migrate", "migration lock", BIGINT, SESSION, KeyRule::crc_product_32, MIGRATE_SALT,
		"%s%0%t%0/", "uint32(crc32(schema || '\\0' || table || '\\0/') * 1486364155), by a URL without a database",
		"golang-migrate/migrate database/util.go", NameSource::migrate_tables},
	{"Grafana", "migration lock", BIGINT, SESSION, KeyRule::crc_product_32, MIGRATE_SALT,
		"%d", "uint32(crc32(database) * 1486364155)", "grafana/grafana migrator/advisory_lock_id.go"},
	{"sqlx", "migration lock", BIGINT, SESSION, KeyRule::crc_product, 0x3d32ad9e,
		"%d", "0x3d32ad9e * crc32(database)", "launchbadge/sqlx sqlx-postgres/src/migrate.rs"},
	{"slonik", "migration", BIGINT, SESSION, KeyRule::md5_32, 0,
		"@slonik/migrator advisory lock:%j", "first 32 bits of md5('@slonik/migrator advisory lock:' || json(table))",
		"mmkal/slonik-tools packages/migrator", NameSource::slonik_tables},
	{"slonik", "migration", BIGINT, SESSION, KeyRule::md5_32, 0,
		"@slonik/migrator advisory lock:%J", "first 32 bits of md5('@slonik/migrator advisory lock:' || json([schema, table]))",
		"mmkal/slonik-tools packages/migrator", NameSource::slonik_tables},
	{"pg-boss", "create and migrate", BIGINT, TRANSACTION, KeyRule::sha224, 0,
		"%d.pgboss.%s", "first 8 bytes, big-endian, of sha224(database || '.pgboss.' || schema)",
		"timgit/pg-boss src/plans.js", NameSource::pgboss_schemas},
	{"DBOS", "data source migration", BIGINT, TRANSACTION, KeyRule::sha256, 0,
		"dbos.datasource_migrations.%s", "first 8 bytes, big-endian, of sha256('dbos.datasource_migrations.' || schema)",
		"dbos-inc/dbos-transact-ts datasource.ts", NameSource::dbos_schemas},
	{"pg_partman", "run_maintenance", BIGINT, EITHER, KeyRule::hash, 0,
		"pg_partman run_maintenance", "hashtext('pg_partman run_maintenance')",
		"pgpartman/pg_partman sql/functions, sql/procedures"},
	{"pg_partman", "run_maintenance procedure (from 5.1.0)", BIGINT, SESSION, KeyRule::hash, 0,
		"pg_partman run_maintenance procedure", "hashtext('pg_partman run_maintenance procedure')",
		"pgpartman/pg_partman sql/procedures"},
	{"pg_partman", "drop_partition_id", BIGINT, TRANSACTION, KeyRule::hash, 0,
		"pg_partman drop_partition_id", "hashtext('pg_partman drop_partition_id')", "pgpartman/pg_partman sql/functions"},
	{"pg_partman", "drop_partition_time", BIGINT, TRANSACTION, KeyRule::hash, 0,
		"pg_partman drop_partition_time", "hashtext('pg_partman drop_partition_time')", "pgpartman/pg_partman sql/functions"},
	{"pg_partman", "undo_partition_native", BIGINT, TRANSACTION, KeyRule::hash, 0,
		"pg_partman undo_partition_native", "hashtext('pg_partman undo_partition_native')", "pgpartman/pg_partman sql/functions"},
	{"pg_partman", "undo_partition", BIGINT, TRANSACTION, KeyRule::hash, 0,
		"pg_partman undo_partition", "hashtext('pg_partman undo_partition')", "pgpartman/pg_partman sql/functions"},
	{"pg_partman", "reapply_constraints", BIGINT, SESSION, KeyRule::hash, 0,
		"pg_partman reapply_constraints", "hashtext('pg_partman reapply_constraints')", "pgpartman/pg_partman sql/functions"},
	{"pg_partman", "run_analyze", BIGINT, SESSION, KeyRule::hash, 0,
		"pg_partman run_analyze", "hashtext('pg_partman run_analyze')", "pgpartman/pg_partman sql/functions"},
	{"pg_partman", "partition_data_proc", PAIR, EITHER, KeyRule::hash_pair, 1734705784,
		"%s.%t", "(1734705784, hashtext(parent_table))", "pgpartman/pg_partman sql/procedures", NameSource::partman_tables},
	{"pg_partman", "undo_partition_proc", PAIR, EITHER, KeyRule::hash_pair, 2070001301,
		"%s.%t", "(2070001301, hashtext(parent_table))", "pgpartman/pg_partman sql/procedures", NameSource::partman_tables},
	{"pgmq", "queue creation", BIGINT, TRANSACTION, KeyRule::hash, 0,
		"pgmq.queue_%t", "hashtext('pgmq.queue_' || queue)", "pgmq/pgmq pgmq.sql", NameSource::pgmq_queues},
	{"Flyway", "migration lock", BIGINT, EITHER, KeyRule::range, FLYWAY_BASE + PG_INT32_MIN,
		nullptr, "77431708279161 + Java String.hashCode of the quoted history table; within +-2^31",
		"flyway/flyway PostgreSQLAdvisoryLockTemplate.java", NameSource::none, FLYWAY_BASE + PG_INT32_MAX},
	{"pg_repack", "table being repacked", PAIR, SESSION, KeyRule::repack_table, 16185446,
		nullptr, "(16185446, table oid - 2^31)", "reorg/pg_repack bin/pg_repack.c"},
	{"DistributedLock.NET", "name of up to 9 ASCII characters", PAIR, SESSION, KeyRule::ascii_name, 0,
		nullptr, "7 bits a character, a 0 bit, then 1 bits", "madelson/DistributedLock PostgresAdvisoryLockKey.cs"},
	{"pg_auto_failover", "monitor state", "objsubid 10 and 11", ANY_SCOPE, KeyRule::classes,
		objsubids(10, 11), "pgautofailover", "objsubid (10 is Citus's too)", "hapostgres/pg_auto_failover metadata.h"},
	{"Citus", "distributed execution", "objsubid 4-10 and 12-16", ANY_SCOPE, KeyRule::classes,
		objsubids(4, 10) | objsubids(12, 16), "citus", "objsubid", "citusdata/citus resource_lock.h"},
};

constexpr int FACT_COUNT = lengthof(KEY_FACTS);

}								/* namespace advisory */
