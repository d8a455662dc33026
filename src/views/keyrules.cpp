/*
 * views/keyrules.cpp
 *		How the keys of facts are computed, and locks recognized.
 */
#include "base/pg.h"

#include "views/keyrules.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "common/cryptohash.h"
#include "common/hashfn.h"
#include "common/sha2.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "port/pg_bswap.h"
#include "utils/catcache.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/pg_crc.h"
#include "utils/syscache.h"
}

#include "base/errors.h"
#include "core/owntables.h"

namespace advisory
{

/* ---- Names in the catalogs ---- */

#define FROM_TABLES \
	" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace WHERE "
#define IS_TABLE "c.relkind OPERATOR(pg_catalog.=) 'r'"
#define HAS_COLUMN(number_, name_) \
	"EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid" \
	" AND a.attnum OPERATOR(pg_catalog.=) " #number_ " AND a.attname OPERATOR(pg_catalog.=) '" name_ "')"

/* The names of the sources, in the order of NameSource. */
static constexpr struct
{
	Names		usual;
	const char *query;			/* returns the names in this database: schema, table */
	const char *tables[2];		/* without a query: the names are the schemas that have these tables */
} NAME_SOURCE[NAME_SOURCES] = {
	{},

	/* Tables as golang-migrate makes them, whatever they are called: (version, dirty). */
	{{"public", "schema_migrations"},
		"SELECT n.nspname, c.relname" FROM_TABLES IS_TABLE " AND c.relnatts OPERATOR(pg_catalog.=) 2"
		" AND " HAS_COLUMN(1, "version") " AND " HAS_COLUMN(2, "dirty") " ORDER BY 1, 2 LIMIT 10000"},

	/* The same of slonik: (name, hash, date).  The usual name is that of its manual. */
	{{nullptr, "migration"},
		"SELECT n.nspname, c.relname" FROM_TABLES IS_TABLE " AND c.relnatts OPERATOR(pg_catalog.=) 3"
		" AND " HAS_COLUMN(1, "name") " AND " HAS_COLUMN(2, "hash") " AND " HAS_COLUMN(3, "date") " ORDER BY 1, 2 LIMIT 10000"},

	/*
	 * The keys of pg-boss and DBOS have 64 bits, like those of named locks.  The schemas are looked up in the
	 * system cache, so that the display of named locks needs no query.
	 */
	{{"pgboss", nullptr}, nullptr, {"job", "version"}},
	{{"dbos", nullptr}, nullptr, {"transaction_completion", "transaction_completion"}},

	/* The table of a queue of pgmq is called q_<queue>.  A partition of it is not a queue. */
	{{},
		"SELECT NULL, pg_catalog.substr(c.relname::pg_catalog.text, 3)" FROM_TABLES "n.nspname OPERATOR(pg_catalog.=) 'pgmq'"
		" AND c.relname OPERATOR(pg_catalog.>=) 'q_' AND c.relname OPERATOR(pg_catalog.<) 'q`'"
		" AND (" IS_TABLE " OR c.relkind OPERATOR(pg_catalog.=) 'p') AND NOT c.relispartition ORDER BY 2 LIMIT 10000"},

	/*
	 * Tables with partitions, if pg_partman is installed.  pg_partman's own list of them is a user's table,
	 * and the views of locks must not query such tables (see keylabels.cpp).
	 */
	{{},
		"SELECT n.nspname, c.relname" FROM_TABLES "(c.relkind OPERATOR(pg_catalog.=) 'p' OR (" IS_TABLE " AND c.relhassubclass))"
		" AND EXISTS (SELECT FROM pg_catalog.pg_extension e WHERE e.extname OPERATOR(pg_catalog.=) 'pg_partman')"
		" ORDER BY 1, 2 LIMIT 10000"},
};

const Names &
usual_names(NameSource source) noexcept
{
	return NAME_SOURCE[index_of(source)].usual;
}

static bool
is_same_name(const char *a, const char *b) noexcept
{
	return a == nullptr || b == nullptr ? a == b : strcmp(a, b) == 0;
}

/* Add names, if they are not the usual ones. */
static void
add_names(NameList *list, const Names &names, const Names &usual) noexcept
{
	if (!is_same_name(names.schema, usual.schema) || !is_same_name(names.table, usual.table))
		list->names[list->count++] = names;
}

static void
read_by_query(NameList *found, NameSource source)
{
	SPI_connect();
	if (SPI_execute(NAME_SOURCE[index_of(source)].query, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the names that known keys are made of");
	found->names = static_cast<Names *>(SPI_palloc(SPI_tuptable->numvals * sizeof(Names)));
	for (uint64 i = 0; i < SPI_tuptable->numvals; i++)
		add_names(found, {result_text(1, i), result_text(2, i)}, usual_names(source));
	SPI_finish();
}

static void
read_by_tables(NameList *found, NameSource source)
{
	auto	   &tables = NAME_SOURCE[index_of(source)].tables;
	CatCList   *list = SearchSysCacheList1(RELNAMENSP, CStringGetDatum(tables[0]));

	found->names = static_cast<Names *>(palloc(list->n_members * sizeof(Names)));
	for (int i = 0; i < list->n_members; i++)
	{
		Oid			schema = reinterpret_cast<Form_pg_class>(GETSTRUCT(&list->members[i]->tuple))->relnamespace;

		if (OidIsValid(get_relname_relid(tables[1], schema)))
			add_names(found, {get_namespace_name(schema), nullptr}, usual_names(source));
	}
	ReleaseSysCacheList(list);
}

NameList
read_names(NameSource source)
{
	NameList	found = {};
	bool		has_read;

	if (source == NameSource::none)
		return found;
	has_read = unless_lock_table_is_full([&]() {
		if (NAME_SOURCE[index_of(source)].query != nullptr)
			read_by_query(&found, source);
		else
			read_by_tables(&found, source);
	});
	return has_read ? found : NameList{};
}

const char *
display_names(const Names &names)
{
	if (names.schema != nullptr && names.table != nullptr)
		return quote_qualified_identifier(names.schema, names.table);
	return names.schema != nullptr ? names.schema : names.table;
}

/* ---- Keys that follow from facts ---- */

/* Write the fact's text with these names; false if a name in it is null. */
static bool
write_text(const KeyFact &fact, const char *database, const Names &names, StringInfo text)
{
	initStringInfo(text);
	for (const char *c = fact.text; *c != '\0'; c++)
	{
		const char *name = nullptr;

		if (*c != '%')
		{
			appendStringInfoChar(text, *c);
			continue;
		}
		switch (*++c)
		{
			case '0':
				appendStringInfoChar(text, '\0');
				continue;
			case 'd':
				name = database;
				break;
			case 's':
				name = names.schema;
				break;
			case 't':
			case 'j':
				name = names.table;
				break;
			case 'J':
				name = names.schema != nullptr ? names.table : nullptr;
				break;
		}
		if (name == nullptr)
			return false;
		if (*c == 'J')
		{
			appendStringInfoChar(text, '[');
			escape_json(text, names.schema);
			appendStringInfoChar(text, ',');
			escape_json(text, name);
			appendStringInfoChar(text, ']');
		}
		else if (*c == 'j')
			escape_json(text, name);
		else
			appendStringInfoString(text, name);
	}
	return true;
}

/* As hashtext() with a deterministic collation, which is the default collation of each database. */
static int32
hashtext_of(const StringInfoData &text) noexcept
{
	return DatumGetInt32(hash_any(reinterpret_cast<const unsigned char *>(text.data), text.len));
}

/* As zlib computes it. */
static uint64
crc32_of(const StringInfoData &text) noexcept
{
	pg_crc32	crc;

	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, text.data, text.len);
	FIN_TRADITIONAL_CRC32(crc);
	return crc;
}

/* The first 64 bits of a digest; false if the server's library does not compute it, such as MD5 in FIPS mode. */
static bool
digest_of(const StringInfoData &text, pg_cryptohash_type type, uint64 *first)
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	pg_cryptohash_ctx *context = pg_cryptohash_create(type);
	bool		succeeded;

	succeeded = context != nullptr && pg_cryptohash_init(context) == 0 &&
		pg_cryptohash_update(context, reinterpret_cast<const uint8 *>(text.data), text.len) == 0 &&
		pg_cryptohash_final(context, digest, sizeof(digest)) == 0;
	pg_cryptohash_free(context);
	if (succeeded)
	{
		memcpy(first, digest, sizeof(*first));
		*first = pg_ntoh64(*first);
	}
	return succeeded;
}

bool
tag_of_fact(const KeyFact &fact, Oid database, const char *database_name, const Names &names, LOCKTAG *tag)
{
	StringInfoData text;
	uint64		key = static_cast<uint64>(fact.number);

	if (fact.rule != KeyRule::exact && (fact.text == nullptr || !write_text(fact, database_name, names, &text)))
		return false;
	switch (fact.rule)
	{
		case KeyRule::exact:
			break;
		case KeyRule::hash:
			key = static_cast<uint64>(hashtext_of(text));
			break;
		case KeyRule::hash_pair:
			SET_LOCKTAG_ADVISORY(*tag, database, static_cast<uint32>(fact.number), static_cast<uint32>(hashtext_of(text)),
								 OBJSUBID_PAIR);
			return true;
		case KeyRule::crc_product:
			key *= crc32_of(text);
			break;
		case KeyRule::crc_product_32:
			key = static_cast<uint32>(key * crc32_of(text));
			break;
		case KeyRule::md5_32:
			if (!digest_of(text, PG_MD5, &key))
				return false;
			key >>= 32;
			break;
		case KeyRule::sha224:
		case KeyRule::sha256:
			if (!digest_of(text, fact.rule == KeyRule::sha224 ? PG_SHA224 : PG_SHA256, &key))
				return false;
			break;
		default:
			return false;
	}
	*tag = lock_tag(database, Key{static_cast<int64>(key)});
	return true;
}

bool
could_have(const KeyFact &fact, const DecodedTag &tag) noexcept
{
	switch (fact.rule)
	{
		case KeyRule::hash:
			return tag.kind == Kind::lock && tag.key.value >= PG_INT32_MIN && tag.key.value <= PG_INT32_MAX;
		case KeyRule::hash_pair:
			return tag.kind == Kind::pair && tag.key1 == fact.number;
		case KeyRule::crc_product_32:
		case KeyRule::md5_32:
			return tag.kind == Kind::lock && tag.key.value >= 0 && tag.key.value <= PG_UINT32_MAX;
		default:
			return tag.kind == Kind::lock;
	}
}

/* ---- Patterns ---- */

/*
 * The name of up to 9 printable characters in a pair of keys; null if there is none.  From
 * the highest bit: 7 bits for each character, then a 0, then 1s up to 64 bits.
 */
static char *
ascii_name(const DecodedTag &tag)
{
	constexpr uint64 CHARACTER = 0x7f;
	auto		bits = static_cast<uint64>(tag.key.value);
	int			length = 9;
	char	   *name;

	for (; length > 0 && (bits & CHARACTER) == CHARACTER; length--)
		bits >>= 7;
	if (length == 0 || (bits & 1) != 0)
		return nullptr;
	bits >>= 1;
	name = static_cast<char *>(palloc0(length + 1));
	while (length-- > 0)
	{
		name[length] = static_cast<char>(bits & CHARACTER);
		if (name[length] < ' ' || name[length] > '~')
			return nullptr;
		bits >>= 7;
	}
	return name;
}

/* The table that pg_repack works on, by the second key of its pair: its OID if it is in another database. */
static char *
table_of_key(Oid database, int32 key2)
{
	Oid			table = static_cast<uint32>(key2) ^ (UINT32_C(1) << 31);
	char	   *name = database == MyDatabaseId ? get_rel_name(table) : nullptr;
	char	   *schema = name != nullptr ? get_namespace_name(get_rel_namespace(table)) : nullptr;

	return schema != nullptr ? quote_qualified_identifier(schema, name) : psprintf("oid %u", table);
}

bool
fits_pattern(const KeyFact &fact, const DecodedTag &tag, const char **detail)
{
	*detail = nullptr;
	switch (fact.rule)
	{
		case KeyRule::range:
			return tag.kind == Kind::lock && tag.key.value >= fact.number && tag.key.value <= fact.last;

		case KeyRule::hash_pair:
			return could_have(fact, tag);

		case KeyRule::repack_table:
			if (tag.kind == Kind::pair && tag.key1 == fact.number)
				*detail = table_of_key(tag.database, tag.key2);
			return *detail != nullptr;

		case KeyRule::ascii_name:
			if (const char *name = tag.kind == Kind::pair ? ascii_name(tag) : nullptr)
				*detail = psprintf("perhaps \"%s\"", name);
			return *detail != nullptr;

		case KeyRule::classes:
			return tag.objsubid < 64 && ((fact.number >> tag.objsubid) & 1) != 0;

		default:
			return false;
	}
}

}								/* namespace advisory */
