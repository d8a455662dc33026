/*
 * views/keyfacts.cpp
 *		The keys of advisory locks that other programs take.
 */
#include "base/pg.h"

#include "views/keyfacts.h"

namespace advisory
{

static constexpr char BIGINT[] = "bigint";
static constexpr char PAIR[] = "int4 pair";

static constexpr char SESSION[] = "session";
static constexpr char TRANSACTION[] = "transaction";
static constexpr char EITHER[] = "session or transaction";
static constexpr char ANY_SCOPE[] = "any";

/* The set of objsubids from first to last, as bits. */
static constexpr int64
objsubids(int first, int last)
{
	return ((INT64CONST(1) << (last - first + 1)) - 1) << first;
}

/* The factor of golang-migrate, which Grafana uses too. */
static constexpr int64 MIGRATE_SALT = 1486364155;

static constexpr KeyFact FACTS[] = {
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

/* The index of the first pattern. */
static constexpr int
first_pattern() noexcept
{
	int			first = lengthof(FACTS);

	while (first > 0 && origin_of(FACTS[first - 1].rule) == KeyOrigin::pattern)
		first--;
	return first;
}

static constexpr int
count_patterns() noexcept
{
	int			count = 0;

	for (const KeyFact &fact : FACTS)
		count += origin_of(fact.rule) == KeyOrigin::pattern;
	return count;
}

static_assert(first_pattern() + count_patterns() == lengthof(FACTS), "patterns stand together at the end");

KeyFacts
key_facts() noexcept
{
	return KeyFacts{FACTS, lengthof(FACTS)};
}

KeyFacts
key_patterns() noexcept
{
	return KeyFacts{FACTS + first_pattern(), count_patterns()};
}

const char *
match_name(KeyRule rule) noexcept
{
	switch (rule)
	{
		case KeyRule::exact:
			return "exact";
		case KeyRule::range_32:
			return "range";
		case KeyRule::classes:
			return "class";
		default:
			return "formula";
	}
}

/* As hashtext() with a deterministic collation, which is the default collation of each database. */
Key
key_of_hash(std::string_view text) noexcept
{
	Datum		hash = hash_any(reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()));

	return Key{DatumGetInt32(hash)};
}

/* CRC-32 as zlib computes it, over several pieces. */
class Crc32
{
public:
	Crc32() noexcept
	{
		INIT_TRADITIONAL_CRC32(value);
	}
	Crc32	   &add(std::string_view bytes) noexcept
	{
		COMP_TRADITIONAL_CRC32(value, bytes.data(), bytes.size());
		return *this;
	}
	uint32		finish() noexcept
	{
		FIN_TRADITIONAL_CRC32(value);
		return value;
	}

private:
	pg_crc32	value;
};

static Key
product(const KeyFact &fact, uint32 crc) noexcept
{
	uint64		full = static_cast<uint64>(fact.number) * crc;

	if (fact.rule == KeyRule::crc_product)
		return Key{static_cast<int64>(full)};
	return Key{static_cast<int64>(static_cast<uint32>(full))};
}

Key
key_of_crc(const KeyFact &fact, std::string_view database) noexcept
{
	return product(fact, Crc32().add(database).finish());
}

Key
key_of_migrate_table(const KeyFact &fact, std::string_view schema, std::string_view table,
					 bool slash, std::string_view database) noexcept
{
	constexpr std::string_view ZERO("\0", 1);
	Crc32		crc;

	crc.add(schema).add(ZERO).add(table).add(ZERO);
	crc.add(slash ? "/" : "").add(database);
	return product(fact, crc.finish());
}

Oid
repacked_table(int32 key2) noexcept
{
	return static_cast<uint32>(key2) ^ (UINT32_C(1) << 31);
}

/*
 * From the highest bit: 7 bits for each character, then a 0, then 1s up to 64 bits.
 */
bool
ascii_name(int32 key1, int32 key2, char name[ASCII_NAME_SIZE]) noexcept
{
	constexpr uint64 CHARACTER = 0x7f;
	uint64		bits = (static_cast<uint64>(static_cast<uint32>(key1)) << 32) | static_cast<uint32>(key2);
	int			length = ASCII_NAME_SIZE - 1;

	for (; length > 0 && (bits & CHARACTER) == CHARACTER; length--)
		bits >>= 7;
	if (length == 0 || (bits & 1) != 0)
		return false;
	bits >>= 1;
	name[length] = '\0';
	while (length-- > 0)
	{
		name[length] = static_cast<char>(bits & CHARACTER);
		if (name[length] < ' ' || name[length] > '~')
			return false;
		bits >>= 7;
	}
	return true;
}

bool
fits_pattern(const KeyFact &fact, const DecodedTag &tag) noexcept
{
	char		name[ASCII_NAME_SIZE];

	switch (fact.rule)
	{
		case KeyRule::range_32:
			return tag.kind == Kind::lock &&
				tag.key.value >= fact.number + PG_INT32_MIN && tag.key.value <= fact.number + PG_INT32_MAX;
		case KeyRule::repack_table:
			return tag.kind == Kind::pair && tag.key1 == fact.number;
		case KeyRule::ascii_name:
			return tag.kind == Kind::pair && ascii_name(tag.key1, tag.key2, name);
		case KeyRule::classes:
			return tag.objsubid < 64 && ((fact.number >> tag.objsubid) & 1) != 0;
		default:
			return false;
	}
}

}								/* namespace advisory */
