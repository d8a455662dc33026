/*
 * views/knownkeys.cpp
 *		What a lock may be used for, judging by its key: advisory.known_keys and the
 *		column known_as of advisory.locks.
 *
 * The sources are the facts in keyfacts, the keys that follow from them in this
 * database, and the labels that users put into advisory.key_labels.  The results are
 * candidates, not verdicts: a key does not tell who took the lock, and several
 * programs use the same small numbers.
 *
 * Labels, and keys that follow from the catalogs, apply to locks of the current database
 * only.  A hash table holds them; the keys from the catalogs are added to it when a lock
 * with a 32-bit key is looked up, since all of those have 32 bits.  All other facts are
 * compared with each lock.
 */
#include "base/pg.h"

extern "C" {
#include "common/hashfn.h"
#include "executor/spi.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/pg_crc.h"
}

#include <initializer_list>
#include <string_view>

#include "base/errors.h"
#include "base/locktag.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "server/backends.h"
#include "views/keyfacts.h"
#include "views/keylabels.h"

namespace advisory
{

/* ---- Reading tables ---- */

/*
 * Run each(row, columns) for the rows of a query of the server's catalogs, in memory that is
 * freed at the end.  Does nothing if the lock table is too full to plan the query.
 */
template <typename Each>
static void
each_row(const char *query, Each each)
{
	unless_lock_table_is_full([&]() {
		SPI_connect();
		if (SPI_execute(query, true, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not read known keys");
		for (uint64 i = 0; i < SPI_tuptable->numvals; i++)
			each(SPI_tuptable->vals[i], SPI_tuptable->tupdesc);
		SPI_finish();
	});
}

/* Run each(label, tag) for each label, as a fact whose tool is the label and whose purpose is the note. */
template <typename Each>
static void
each_label(Each each)
{
	int			count;
	const KeyLabel *labels = read_key_labels(&count);

	for (int i = 0; i < count; i++)
	{
		KeyFact		fact = {labels[i].label, labels[i].note};

		fact.form = decode_tag(labels[i].tag).kind == Kind::pair ? PAIR : BIGINT;
		fact.source = "advisory.key_labels";
		each(fact, labels[i].tag);
	}
}

/* ---- Keys that follow from facts ---- */

/* As hashtext() with a deterministic collation, which is the default collation of each database. */
static Key
key_of_hash(std::string_view text) noexcept
{
	Datum		hash = hash_any(reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()));

	return Key{DatumGetInt32(hash)};
}

/* The fact's number times the CRC-32 of the pieces, as zlib computes it. */
static uint64
crc_product(const KeyFact &fact, std::initializer_list<std::string_view> pieces) noexcept
{
	pg_crc32	crc;

	INIT_TRADITIONAL_CRC32(crc);
	for (std::string_view piece : pieces)
		COMP_TRADITIONAL_CRC32(crc, piece.data(), piece.size());
	FIN_TRADITIONAL_CRC32(crc);
	return static_cast<uint64>(fact.number) * crc;
}

/* The key of a fact that has one in a database of this name; false if it has none.  The name may be null. */
static bool
single_key(const KeyFact &fact, const char *database, Key *key) noexcept
{
	switch (fact.rule)
	{
		case KeyRule::exact:
			*key = Key{fact.number};
			return true;
		case KeyRule::hash:
			*key = key_of_hash(fact.text);
			return true;
		case KeyRule::crc_product:
		case KeyRule::crc_product_32:
			if (database == nullptr)
				return false;
			key->value = static_cast<int64>(crc_product(fact, {database}));
			if (fact.rule == KeyRule::crc_product_32)
				key->value = static_cast<uint32>(key->value);
			return true;
		default:
			return false;
	}
}

static constexpr char MIGRATE_SCHEMA[] = "public";
static constexpr char MIGRATE_TABLE[] = "schema_migrations";

/* Tables as golang-migrate makes them, whatever they are called: (version, dirty). */
static constexpr char MIGRATE_TABLES[] =
	"SELECT n.nspname, c.relname"
	" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
	" WHERE c.relnatts OPERATOR(pg_catalog.=) 2 AND c.relkind OPERATOR(pg_catalog.=) 'r'"
	" AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid"
	" AND a.attnum OPERATOR(pg_catalog.=) 1 AND a.attname OPERATOR(pg_catalog.=) 'version')"
	" AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid"
	" AND a.attnum OPERATOR(pg_catalog.=) 2 AND a.attname OPERATOR(pg_catalog.=) 'dirty')"
	" ORDER BY 1, 2 LIMIT 10000";

/* The table of a queue is called q_<queue>.  A partition of it is not a queue. */
static constexpr char PGMQ_QUEUES[] =
	"SELECT pg_catalog.substr(c.relname::pg_catalog.text, 3)"
	" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
	" WHERE n.nspname OPERATOR(pg_catalog.=) 'pgmq'"
	" AND c.relname OPERATOR(pg_catalog.>=) 'q_' AND c.relname OPERATOR(pg_catalog.<) 'q`'"
	" AND (c.relkind OPERATOR(pg_catalog.=) 'r' OR c.relkind OPERATOR(pg_catalog.=) 'p') AND NOT c.relispartition"
	" ORDER BY 1 LIMIT 10000";

/*
 * Run each(key, detail) for each key of a fact whose keys follow from the catalogs of this
 * database, whose name may be null; for no other fact.
 */
template <typename Each>
static void
each_catalog_key(const KeyFact &fact, const char *database, Each each)
{
	auto		each_of_table = [&](const char *schema, const char *table) {
		constexpr std::string_view ZERO("\0", 1);

		/* A program that connects by URL writes the URL's slash before the database's name. */
		for (const char *slash : {"", "/"})
		{
			auto		key = static_cast<uint32>(crc_product(fact, {schema, ZERO, table, ZERO, slash, database}));

			each(Key{key}, quote_qualified_identifier(schema, table));
		}
	};

	if (fact.rule == KeyRule::migrate_table && database != nullptr)
	{
		/* The default table counts even if it does not exist yet, because it is created under the lock. */
		each_of_table(MIGRATE_SCHEMA, MIGRATE_TABLE);
		each_row(MIGRATE_TABLES, [&](HeapTuple row, TupleDesc columns) {
			const char *schema = SPI_getvalue(row, columns, 1);
			const char *table = SPI_getvalue(row, columns, 2);

			if (strcmp(schema, MIGRATE_SCHEMA) != 0 || strcmp(table, MIGRATE_TABLE) != 0)
				each_of_table(schema, table);
		});
	}
	else if (fact.rule == KeyRule::pgmq_queue)
		each_row(PGMQ_QUEUES, [&](HeapTuple row, TupleDesc columns) {
			const char *queue = SPI_getvalue(row, columns, 1);

			each(key_of_hash(psprintf("%s%s", fact.text, queue)), queue);
		});
}

/* "what", or "what (detail)".  Null for null. */
static const char *
with_detail(const char *what, const char *detail)
{
	return detail != nullptr ? psprintf("%s (%s)", what, detail) : what;
}

/* The candidate that a fact gives, palloc'd. */
static char *
candidate(const KeyFact &fact, const char *detail)
{
	if (fact.purpose == nullptr)
		return pstrdup(fact.tool);
	return psprintf("%s: %s", fact.tool, with_detail(fact.purpose, detail));
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

/*
 * Does the lock fit a fact other than one whose keys follow from the catalogs?  database is
 * the name of its database, or null.  *detail is what else its keys tell, or null; palloc'd.
 */
static bool
fits(const KeyFact &fact, const DecodedTag &tag, const char *database, const char **detail)
{
	Key			key;

	*detail = nullptr;
	switch (fact.rule)
	{
		case KeyRule::range_32:
			return tag.kind == Kind::lock &&
				tag.key.value >= fact.number + PG_INT32_MIN && tag.key.value <= fact.number + PG_INT32_MAX;

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
			return tag.kind == Kind::lock && single_key(fact, database, &key) && tag.key == key;
	}
}

/* ---- Looking up a lock ---- */

/* What a key of this database may stand for. */
struct LocalUse
{
	const KeyFact *fact;		/* null for a label */
	char	   *text;
};

struct LocalKey
{
	LOCKTAG		tag;			/* hash key */
	List	   *uses;			/* of LocalUse */
};

/* What one call site knows, in its memory context. */
struct KnownKeys
{
	MemoryContext context;
	HTAB	   *local_keys;		/* of LocalKey */
	bool		has_catalogs;	/* has it the keys that follow from the catalogs? */
	Oid			database;		/* of the last lock */
	const char *database_name;	/* or null */
};

static void
add_local_key(KnownKeys *known, const LOCKTAG &tag, const KeyFact *fact, const char *text)
{
	MemoryContext old_context = MemoryContextSwitchTo(known->context);
	auto	   *use = static_cast<LocalUse *>(palloc(sizeof(LocalUse)));
	bool		found;
	auto	   *key = static_cast<LocalKey *>(hash_search(known->local_keys, &tag, HASH_ENTER, &found));

	if (!found)
		key->uses = NIL;
	use->fact = fact;
	use->text = pstrdup(text);
	key->uses = lappend(key->uses, use);
	MemoryContextSwitchTo(old_context);
}

/* Those of the call site of this function.  The first call of a query loads them for all of its rows. */
static KnownKeys *
known_keys_of(FmgrInfo *function)
{
	auto	   *known = static_cast<KnownKeys *>(function->fn_extra);
	HASHCTL		control = {};

	if (known != nullptr)
		return known;

	known = static_cast<KnownKeys *>(MemoryContextAllocZero(function->fn_mcxt, sizeof(KnownKeys)));
	known->context = function->fn_mcxt;
	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(LocalKey);
	control.hcxt = known->context;
	known->local_keys = hash_create("advisory_ext known keys", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	each_label([=](const KeyFact &label, const LOCKTAG &tag) {
		add_local_key(known, tag, nullptr, candidate(label, nullptr));
	});
	function->fn_extra = known;
	return known;
}

/*
 * _known_as(database oid, high integer, low integer, objsubid integer): what the lock may be
 * used for, as text[]: labels first, then the facts in their order; null if nothing is known.
 */
static Datum
known_as(FunctionCallInfo fcinfo)
{
	KnownKeys  *known = known_keys_of(fcinfo->flinfo);
	ArrayBuildState *texts = nullptr;
	LOCKTAG		tag;
	DecodedTag	decoded;
	LocalKey   *local;
	auto		add = [&texts](const char *text) {
		texts = accumArrayResult(texts, CStringGetTextDatum(text), false, TEXTOID, CurrentMemoryContext);
	};
	auto		add_local = [&](const KeyFact *fact) {
		ListCell   *cell;

		foreach(cell, local != nullptr ? local->uses : NIL)
		{
			auto	   *use = static_cast<LocalUse *>(lfirst(cell));

			if (use->fact == fact)
				add(use->text);
		}
	};

	/* Not a lock tag. */
	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	if (PG_GETARG_INT32(3) < 0 || PG_GETARG_INT32(3) > PG_UINT16_MAX)
		PG_RETURN_NULL();

	SET_LOCKTAG_ADVISORY(tag, PG_GETARG_OID(0), PG_GETARG_UINT32(1), PG_GETARG_UINT32(2), PG_GETARG_INT32(3));
	decoded = decode_tag(tag);
	if (known->database != decoded.database)
	{
		/* Null if the database was dropped, or the number is not a database's. */
		const char *name = stored_database_name(decoded.database);

		known->database_name = name != nullptr ? MemoryContextStrdup(known->context, name) : nullptr;
		known->database = decoded.database;
	}
	/* Keys that follow from the catalogs are 32 bits wide: unsigned, or signed. */
	if (!known->has_catalogs && decoded.kind == Kind::lock && decoded.database == MyDatabaseId &&
		decoded.key.value >= PG_INT32_MIN && decoded.key.value <= PG_UINT32_MAX)
	{
		for (const KeyFact &fact : KEY_FACTS)
		{
			each_catalog_key(fact, known->database_name, [&](Key key, const char *detail) {
				add_local_key(known, lock_tag(MyDatabaseId, key), &fact, candidate(fact, detail));
			});
		}
		known->has_catalogs = true;
	}

	local = static_cast<LocalKey *>(hash_search(known->local_keys, &tag, HASH_FIND, nullptr));
	add_local(nullptr);
	for (const KeyFact &fact : KEY_FACTS)
	{
		const char *detail;

		add_local(&fact);
		if (fits(fact, decoded, known->database_name, &detail))
			add(candidate(fact, detail));
	}
	if (texts == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(makeArrayResult(texts, CurrentMemoryContext));
}

/* ---- The view ---- */

/* A row for a label, a fact, or one of its keys.  tag is null for a fact without keys. */
static void
show_fact(ReturnSetInfo *result, const KeyFact &fact, const LOCKTAG *tag, const char *detail)
{
	DecodedTag	decoded = {};
	const char *rule = fact.formula;
	const char *match = "formula";
	bool		is_pair;
	Row			row;

	if (tag != nullptr)
		decoded = decode_tag(*tag);
	is_pair = decoded.kind == Kind::pair;
	if (rule == nullptr && is_pair)
		rule = psprintf("(%d, %d)", decoded.key1, decoded.key2);
	else if (rule == nullptr)
		rule = psprintf(INT64_FORMAT, decoded.key.value);
	if (fact.rule == KeyRule::exact)
		match = "exact";
	else if (fact.rule == KeyRule::range_32)
		match = "range";
	else if (fact.rule == KeyRule::classes)
		match = "class";

	row.add_text(fact.tool);
	row.add_text(with_detail(fact.purpose, detail));
	row.add_text(fact.form);
	row.add_text(fact.scope);
	row.add_text(match);
	row.add_text(rule);
	row.add_text(fact.source);
	row.add(Int64GetDatum(decoded.key.value), tag == nullptr || is_pair);
	row.add(Int32GetDatum(decoded.key1), tag == nullptr || !is_pair);
	row.add(Int32GetDatum(decoded.key2), tag == nullptr || !is_pair);
	row.put(result);
}

/* Add the rows of advisory.known_keys: one for each label and each key of a fact. */
static void
show_known_keys(ReturnSetInfo *result)
{
	const char *database = stored_database_name(MyDatabaseId);

	each_label([=](const KeyFact &label, const LOCKTAG &tag) {
		show_fact(result, label, &tag, nullptr);
	});
	for (const KeyFact &fact : KEY_FACTS)
	{
		bool		has_keys = false;
		Key			key;
		auto		show_key = [&](Key shown, const char *detail) {
			LOCKTAG		tag = lock_tag(MyDatabaseId, shown);

			show_fact(result, fact, &tag, detail);
			has_keys = true;
		};

		if (single_key(fact, database, &key))
			show_key(key, nullptr);
		each_catalog_key(fact, database, show_key);
		if (!has_keys)
			show_fact(result, fact, nullptr, nullptr);
	}
}

ADVISORY_SQL_FUNCTION(advisory_known_keys, rows_function<show_known_keys>);
ADVISORY_SQL_FUNCTION(advisory_known_as, known_as);

}								/* namespace advisory */
