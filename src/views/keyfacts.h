/*
 * views/keyfacts.h
 *		The keys of advisory locks that other programs take.
 *
 * This is the only list of these facts; the view advisory.known_keys and the column
 * known_as of advisory.locks are made from it.  Each fact names its source, a file
 * of a public repository.
 */
#pragma once

namespace advisory
{

/* How the keys of a fact are computed, or how a lock is recognized. */
enum class KeyRule
{
	/* One key, the same in every database */
	exact,						/* number */
	hash,						/* hashtext(text) */
	/* One key that follows from the name of the database */
	crc_product,				/* number * crc32(database), 64 bits wide */
	crc_product_32,				/* the same, 32 bits wide and unsigned */
	/* Keys that follow from names in the database's catalogs */
	migrate_table,				/* of golang-migrate's tables, and number */
	pgmq_queue,					/* hashtext(text || queue) */
	/* Patterns */
	range_32,					/* number - 2^31 to number + 2^31 - 1 */
	repack_table,				/* a pair: number, and a table's oid - 2^31 */
	ascii_name,					/* a pair that encodes a name in 7-bit characters */
	classes						/* an objsubid whose bit is set in number */
};

struct KeyFact
{
	const char *tool;
	const char *purpose;		/* may be null */
	const char *form;			/* "bigint", "int4 pair" or the objsubids */
	const char *scope;			/* may be null */
	KeyRule		rule;
	int64		number;			/* this and text: what the rule says */
	const char *text;
	const char *formula;		/* the rule in words; null if it is just the number */
	const char *source;
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

constexpr KeyFact KEY_FACTS[] = {
	{"Prisma Migrate", "migration lock", BIGINT, SESSION, KeyRule::exact, 72707369,
		nullptr, nullptr, "prisma/prisma-engines schema-engine postgres flavour"},
	{"goose", "migration lock", BIGINT, SESSION, KeyRule::exact, 4097083626,
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
	{"Rails", "schema migration", BIGINT, SESSION, KeyRule::crc_product, 2053462845,
		nullptr, "2053462845 * crc32(database)", "rails/rails activerecord migration.rb"},
	{"golang-migrate", "migration lock", BIGINT, SESSION, KeyRule::migrate_table, MIGRATE_SALT,
		nullptr, "uint32(crc32(schema || '\\0' || table || '\\0' || database) * 1486364155), "
		"with '/' before the database where it came in a URL", "golang-migrate/migrate database/util.go"},
	{"Grafana", "migration lock", BIGINT, SESSION, KeyRule::crc_product_32, MIGRATE_SALT,
		nullptr, "uint32(crc32(database) * 1486364155)", "grafana/grafana migrator/advisory_lock_id.go"},
	{"sqlx", "migration lock", BIGINT, SESSION, KeyRule::crc_product, 0x3d32ad9e,
		nullptr, "0x3d32ad9e * crc32(database)", "launchbadge/sqlx sqlx-postgres/src/migrate.rs"},
	{"pg_partman", "run_maintenance", BIGINT, EITHER, KeyRule::hash, 0,
		"pg_partman run_maintenance", "hashtext('pg_partman run_maintenance')",
		"pgpartman/pg_partman sql/functions, sql/procedures"},
	{"pgmq", "queue creation", BIGINT, TRANSACTION, KeyRule::pgmq_queue, 0,
		"pgmq.queue_", "hashtext('pgmq.queue_' || queue)", "pgmq/pgmq pgmq.sql"},
	{"Flyway", "migration lock", BIGINT, EITHER, KeyRule::range_32, 77431708279161,
		nullptr, "77431708279161 + Java String.hashCode of the quoted history table; within +-2^31",
		"flyway/flyway PostgreSQLAdvisoryLockTemplate.java"},
	{"pg_repack", "table being repacked", PAIR, SESSION, KeyRule::repack_table, 16185446,
		nullptr, "(16185446, table oid - 2^31)", "reorg/pg_repack bin/pg_repack.c"},
	{"DistributedLock.NET", "name of up to 9 ASCII characters", PAIR, SESSION, KeyRule::ascii_name, 0,
		nullptr, "7 bits a character, a 0 bit, then 1 bits", "madelson/DistributedLock PostgresAdvisoryLockKey.cs"},
	{"Citus", "distributed execution", "objsubid 4-10 and 12-16", ANY_SCOPE, KeyRule::classes,
		objsubids(4, 10) | objsubids(12, 16), nullptr, "objsubid", "citusdata/citus resource_lock.h"},
	{"pg_auto_failover", "monitor state", "objsubid 10 and 11", ANY_SCOPE, KeyRule::classes,
		objsubids(10, 11), nullptr, "objsubid (10 is Citus's too)", "hapostgres/pg_auto_failover metadata.h"},
};

}								/* namespace advisory */
