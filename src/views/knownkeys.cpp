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
 * Labels, and formulas over the catalogs, apply to locks of the current database
 * only.  Formulas over a database's name apply to the locks of each database.
 *
 * Lock tag				compared with
 * bigint key			exact keys, formulas, ranges, labels
 * int4 pair			pg_repack's tables, names of DistributedLock.NET, labels
 * other objsubids		classes
 *
 * One hash table holds every key that is known, with its candidates.  It is filled
 * only as far as needed: first with the labels and the keys that are the same in all
 * databases; with the keys of a database when its first lock is looked up; with the
 * keys that follow from the catalogs when a lock with a 32-bit key is looked up,
 * since all of those have 32 bits.  Patterns are compared with each lock.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/errors.h"
#include "base/locktag.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "server/backends.h"
#include "views/keyfacts.h"

namespace advisory
{

/* The rank of a label, which is shown before all facts.  The rank of a fact is its place in the list. */
static constexpr int LABEL_RANK = -1;

/* The keys of a tag, without its database. */
struct TagKeys
{
	uint32		high;
	uint32		low;
	uint32		objsubid;
};

struct Candidate
{
	Oid			database;		/* applies to locks of this database; invalid: of any */
	int			rank;
	const char *text;
	Candidate  *next;
};

struct KnownKey
{
	TagKeys		keys;			/* hash key */
	/* candidates by ascending rank */
	Candidate  *first;
	Candidate  *last;
};

struct KnownKeys
{
	MemoryContext context;
	HTAB	   *keys;			/* of KnownKey */
	HTAB	   *databases;		/* the databases whose keys are in it */
	Oid			last_database;	/* the one added or looked up last */
	bool		has_catalogs;
};

/* ---- Labels ------------------------------------------------------------------------- */

static constexpr char SCHEMA[] = "advisory";
static constexpr char LABELS[] = "key_labels";

/* The number of labels and their lengths are limited, so that the view works whatever is in the table. */
static constexpr char READ_LABELS[] =
	"SELECT key, key1, key2, pg_catalog.\"left\"(label, 200), pg_catalog.\"left\"(note, 1000)"
	" FROM advisory.key_labels ORDER BY key, key1, key2, label LIMIT 10000";

struct Label
{
	TagKeys		keys;
	const char *label;
	const char *note;			/* or null */
};

/*
 * Can this user read the labels without waiting?  Takes the lock that reading them
 * takes, because the view must not wait for a table.
 */
static bool
labels_are_readable()
{
	Oid			schema = get_namespace_oid(SCHEMA, true);
	Oid			labels = OidIsValid(schema) ? get_relname_relid(LABELS, schema) : InvalidOid;

	return OidIsValid(labels) &&
		compat::schema_aclcheck(schema, GetUserId(), ACL_USAGE) == ACLCHECK_OK &&
		pg_class_aclcheck(labels, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		ConditionalLockRelationOid(labels, AccessShareLock);
}

static TagKeys
keys_of(Key key) noexcept
{
	return TagKeys{static_cast<uint32>(static_cast<uint64>(key.value) >> 32), static_cast<uint32>(key.value), OBJSUBID_KEY};
}

static TagKeys
keys_of_pair(int32 key1, int32 key2) noexcept
{
	return TagKeys{static_cast<uint32>(key1), static_cast<uint32>(key2), OBJSUBID_PAIR};
}

/* False if the row is one that the table's constraints forbid. */
static bool
read_label(HeapTuple row, TupleDesc columns, Label *label)
{
	bool		no_key;
	bool		no_key1;
	bool		no_key2;
	Datum		key = SPI_getbinval(row, columns, 1, &no_key);
	Datum		key1 = SPI_getbinval(row, columns, 2, &no_key1);
	Datum		key2 = SPI_getbinval(row, columns, 3, &no_key2);

	if (!no_key)
		label->keys = keys_of(Key{DatumGetInt64(key)});
	else if (!no_key1 && !no_key2)
		label->keys = keys_of_pair(DatumGetInt32(key1), DatumGetInt32(key2));
	else
		return false;
	label->label = SPI_getvalue(row, columns, 4);
	label->note = SPI_getvalue(row, columns, 5);
	return label->label != nullptr;
}

template <typename Each>
static void
run_query(const char *query, Each each)
{
	SPI_connect();
	if (SPI_execute(query, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read known keys");

	/* each may run another query. */
	SPITupleTable *table = SPI_tuptable;

	for (uint64 i = 0; i < table->numvals; i++)
		each(table->vals[i], table->tupdesc);
	SPI_finish();
}

/*
 * Run each(row, columns) for the rows of a query, in memory that is freed at the end.
 * Does nothing if the lock table is too full to plan the query.
 */
template <typename Each>
static void
each_row(const char *query, Each each)
{
	unless_lock_table_is_full([&]() { run_query(query, each); });
}

template <typename Each>
static void
each_label(Each each)
{
	bool		readable = false;

	if (!unless_lock_table_is_full([&]() { readable = labels_are_readable(); }) || !readable)
		return;
	each_row(READ_LABELS, [&](HeapTuple row, TupleDesc columns) {
		Label		label = {};

		if (read_label(row, columns, &label))
			each(label);
	});
}

/* ---- Keys that follow from facts ---------------------------------------------------- */

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

/* golang-migrate's table has two keys, since a client may write the database's name with a slash. */
template <typename Each>
static void
each_key_of_migrate_table(const KeyFact &fact, const char *database, const char *schema, const char *table, Each each)
{
	for (bool slash : {false, true})
		each(key_of_migrate_table(fact, schema, table, slash, database), quote_qualified_identifier(schema, table));
}

/* The default table counts even if it does not exist yet, because it is created under the lock. */
template <typename Each>
static void
each_migrate_key(const KeyFact &fact, const char *database, Each each)
{
	each_key_of_migrate_table(fact, database, MIGRATE_SCHEMA, MIGRATE_TABLE, each);
	each_row(MIGRATE_TABLES, [&](HeapTuple row, TupleDesc columns) {
		const char *schema = SPI_getvalue(row, columns, 1);
		const char *table = SPI_getvalue(row, columns, 2);

		if (strcmp(schema, MIGRATE_SCHEMA) != 0 || strcmp(table, MIGRATE_TABLE) != 0)
			each_key_of_migrate_table(fact, database, schema, table, each);
	});
}

template <typename Each>
static void
each_pgmq_key(const KeyFact &fact, Each each)
{
	each_row(PGMQ_QUEUES, [&](HeapTuple row, TupleDesc columns) {
		const char *queue = SPI_getvalue(row, columns, 1);

		each(key_of_hash(psprintf("%s%s", fact.text, queue)), queue);
	});
}

/*
 * Run each(key, detail) for each key of a fact; detail may be null.  database is the
 * name of the lock's database, which has to be the current one for a fact whose keys
 * follow from the catalogs.
 */
template <typename Each>
static void
each_key(const KeyFact &fact, const char *database, Each each)
{
	switch (fact.rule)
	{
		case KeyRule::exact:
			return each(Key{fact.number}, nullptr);
		case KeyRule::hash:
			return each(key_of_hash(fact.text), nullptr);
		case KeyRule::crc_product:
		case KeyRule::crc_product_32:
			return each(key_of_crc(fact, database), nullptr);
		case KeyRule::migrate_table:
			return each_migrate_key(fact, database, each);
		case KeyRule::pgmq_queue:
			return each_pgmq_key(fact, each);
		default:
			return;				/* a pattern has no keys */
	}
}

/* ---- The hash table ---------------------------------------------------------------------- */

/* "what", or "what (detail)". */
static const char *
with_detail(const char *what, const char *detail)
{
	return detail != nullptr ? psprintf("%s (%s)", what, detail) : what;
}

/* The candidate that a fact gives, palloc'd. */
static const char *
candidate_text(const KeyFact &fact, const char *detail)
{
	return psprintf("%s: %s", fact.tool, with_detail(fact.purpose, detail));
}

static int
rank_of(const KeyFact &fact) noexcept
{
	return static_cast<int>(&fact - key_facts().first);
}

/* Insert the candidate behind those of the same rank. */
static void
insert_candidate(KnownKey *entry, Candidate *candidate) noexcept
{
	Candidate **place = &entry->first;

	if (entry->last != nullptr && entry->last->rank <= candidate->rank)
		place = &entry->last->next;
	while (*place != nullptr && (*place)->rank <= candidate->rank)
		place = &(*place)->next;
	candidate->next = *place;
	*place = candidate;
	if (candidate->next == nullptr)
		entry->last = candidate;
}

static void
add_candidate(KnownKeys *known, TagKeys keys, Oid database, int rank, const char *text)
{
	auto	   *candidate = static_cast<Candidate *>(MemoryContextAllocZero(known->context, sizeof(Candidate)));
	bool		found;

	candidate->database = database;
	candidate->rank = rank;
	candidate->text = MemoryContextStrdup(known->context, text);

	auto	   *entry = static_cast<KnownKey *>(hash_search(known->keys, &keys, HASH_ENTER, &found));

	if (!found)
		entry->first = entry->last = nullptr;
	insert_candidate(entry, candidate);
}

static void
add_labels(KnownKeys *known)
{
	each_label([=](const Label &label) {
		const char *text = label.note != nullptr ? psprintf("%s: %s", label.label, label.note) : label.label;

		add_candidate(known, label.keys, MyDatabaseId, LABEL_RANK, text);
	});
}

/* Add the keys of this origin.  They apply to locks of in_database; if that is invalid, of all databases. */
static void
add_facts(KnownKeys *known, KeyOrigin origin, Oid in_database, const char *database_name)
{
	for (const KeyFact &fact : key_facts())
	{
		if (origin_of(fact.rule) != origin)
			continue;
		each_key(fact, database_name, [&](Key key, const char *detail) {
			add_candidate(known, keys_of(key), in_database, rank_of(fact), candidate_text(fact, detail));
		});
	}
}

static HTAB *
make_table(MemoryContext context, const char *name, Size key_size, Size entry_size)
{
	HASHCTL		control = {};

	control.keysize = key_size;
	control.entrysize = entry_size;
	control.hcxt = context;
	return hash_create(name, 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Read the labels and the keys that are the same in all databases.  Everything,
 * including what is added later, is allocated in the context.  Labels are left out
 * if this user may not read them or their table is locked.
 */
static KnownKeys *
load_known_keys(MemoryContext context)
{
	auto	   *known = static_cast<KnownKeys *>(MemoryContextAllocZero(context, sizeof(KnownKeys)));

	known->context = context;
	known->keys = make_table(context, "advisory_ext known keys", sizeof(TagKeys), sizeof(KnownKey));
	known->databases = make_table(context, "advisory_ext known databases", sizeof(Oid), sizeof(Oid));
	add_labels(known);
	add_facts(known, KeyOrigin::anywhere, InvalidOid, nullptr);
	return known;
}

/* Add the keys that follow from this database's name, if they are not there. */
static void
add_database(KnownKeys *known, Oid database)
{
	bool		found;

	if (database == known->last_database)
		return;
	hash_search(known->databases, &database, HASH_ENTER, &found);
	known->last_database = database;
	if (found)
		return;

	/* The database may have been dropped, or the number is not a database's. */
	if (const char *name = stored_database_name(database))
		add_facts(known, KeyOrigin::database_name, database, name);
}

/* Add the keys that follow from the catalogs, if they are not there and the lock's key could be one of them. */
static void
add_catalogs(KnownKeys *known, const DecodedTag &tag)
{
	/* All of them are 32 bits wide: unsigned, or signed. */
	if (known->has_catalogs || tag.kind != Kind::lock || tag.database != MyDatabaseId ||
		tag.key.value < PG_INT32_MIN || tag.key.value > PG_UINT32_MAX)
		return;
	add_facts(known, KeyOrigin::catalogs, MyDatabaseId, stored_database_name(MyDatabaseId));
	known->has_catalogs = true;
}

/* ---- Looking up a lock ------------------------------------------------------------------------- */

/* The name of the table, or its OID if it cannot be looked up from this database. */
static const char *
table_detail(Oid database, Oid table)
{
	char	   *name = database == MyDatabaseId ? get_rel_name(table) : nullptr;
	char	   *schema = name != nullptr ? get_namespace_name(get_rel_namespace(table)) : nullptr;

	if (schema == nullptr)
		return psprintf("oid %u", table);
	return quote_qualified_identifier(schema, name);
}

/* What else the keys of a lock that fits a pattern tell, or null. */
static const char *
pattern_detail(const KeyFact &fact, const DecodedTag &tag)
{
	char		name[ASCII_NAME_SIZE];

	if (fact.rule == KeyRule::repack_table)
		return table_detail(tag.database, repacked_table(tag.key2));
	if (fact.rule == KeyRule::ascii_name && ascii_name(tag.key1, tag.key2, name))
		return psprintf("perhaps \"%s\"", name);
	return nullptr;
}

/*
 * What the lock may be used for, as text[] in the current memory context: labels
 * first, then the facts in their order; null if nothing is known.
 */
static ArrayType *
known_as(KnownKeys *known, const DecodedTag &tag)
{
	TagKeys		keys = {static_cast<uint32>(tag.key1), static_cast<uint32>(tag.key2), tag.objsubid};
	ArrayBuildState *texts = nullptr;
	auto		add = [&texts](const char *text) {
		texts = accumArrayResult(texts, CStringGetTextDatum(text), false, TEXTOID, CurrentMemoryContext);
	};

	add_database(known, tag.database);
	add_catalogs(known, tag);

	auto	   *entry = static_cast<KnownKey *>(hash_search(known->keys, &keys, HASH_FIND, nullptr));

	for (Candidate *candidate = entry != nullptr ? entry->first : nullptr; candidate != nullptr; candidate = candidate->next)
	{
		if (!OidIsValid(candidate->database) || candidate->database == tag.database)
			add(candidate->text);
	}
	/* Patterns rank behind all candidates. */
	for (const KeyFact &fact : key_patterns())
	{
		if (fits_pattern(fact, tag))
			add(candidate_text(fact, pattern_detail(fact, tag)));
	}
	return texts != nullptr ? DatumGetArrayTypeP(makeArrayResult(texts, CurrentMemoryContext)) : nullptr;
}

/* ---- The view ----------------------------------------------------------------------- */

static const char *
key_text(TagKeys keys)
{
	auto		high = static_cast<int32>(keys.high);
	auto		low = static_cast<int32>(keys.low);

	if (keys.objsubid == OBJSUBID_PAIR)
		return psprintf("(%d, %d)", high, low);
	return psprintf(INT64_FORMAT, static_cast<int64>((static_cast<uint64>(keys.high) << 32) | keys.low));
}

/* key, key1, key2 */
static void
add_keys(Row &row, TagKeys keys)
{
	if (keys.objsubid == OBJSUBID_PAIR)
	{
		row.add_null();
		row.add_int32(static_cast<int32>(keys.high));
		row.add_int32(static_cast<int32>(keys.low));
		return;
	}
	row.add_int64(static_cast<int64>((static_cast<uint64>(keys.high) << 32) | keys.low));
	row.add_null();
	row.add_null();
}

static void
show_label(ReturnSetInfo *result, const Label &label)
{
	Row			row;

	row.add_text(label.label);
	row.add_text(label.note);
	row.add_text(label.keys.objsubid == OBJSUBID_PAIR ? "int4 pair" : "bigint");
	row.add_null();				/* scope */
	row.add_text(match_name(KeyRule::exact));
	row.add_text(key_text(label.keys));
	row.add_text("advisory.key_labels");
	add_keys(row, label.keys);
	row.put(result);
}

/* A row for a fact, or for one of its keys.  keys is null for a fact without keys. */
static void
show_fact(ReturnSetInfo *result, const KeyFact &fact, const TagKeys *keys, const char *detail)
{
	Row			row;

	row.add_text(fact.tool);
	row.add_text(with_detail(fact.purpose, detail));
	row.add_text(fact.form);
	row.add_text(fact.scope);
	row.add_text(match_name(fact.rule));
	row.add_text(fact.formula != nullptr ? fact.formula : key_text(*keys));
	row.add_text(fact.source);
	if (keys != nullptr)
		add_keys(row, *keys);
	else
	{
		row.add_null();
		row.add_null();
		row.add_null();
	}
	row.put(result);
}

/* Add the rows of advisory.known_keys: one for each label and each key of a fact. */
static void
show_known_keys(ReturnSetInfo *result)
{
	const char *database = stored_database_name(MyDatabaseId);

	each_label([=](const Label &label) {
		show_label(result, label);
	});
	for (const KeyFact &fact : key_facts())
	{
		bool		has_keys = false;

		each_key(fact, database, [&](Key key, const char *detail) {
			TagKeys		keys = keys_of(key);

			show_fact(result, fact, &keys, detail);
			has_keys = true;
		});
		if (!has_keys)
			show_fact(result, fact, nullptr, nullptr);
	}
}

/* ---- SQL ---- */

/* The first call of a query loads them for all of its rows. */
static KnownKeys *
loaded_keys(FmgrInfo *function)
{
	if (function->fn_extra == nullptr)
		function->fn_extra = load_known_keys(function->fn_mcxt);
	return static_cast<KnownKeys *>(function->fn_extra);
}

/* _known_as(database oid, high integer, low integer, objsubid integer) */
static Datum
known_as_of_tag(FunctionCallInfo fcinfo)
{
	LOCKTAG		tag;
	ArrayType  *candidates;

	/* Not a lock tag. */
	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	if (PG_GETARG_INT32(3) < 0 || PG_GETARG_INT32(3) > PG_UINT16_MAX)
		PG_RETURN_NULL();

	SET_LOCKTAG_ADVISORY(tag, PG_GETARG_OID(0), PG_GETARG_UINT32(1), PG_GETARG_UINT32(2), PG_GETARG_INT32(3));
	candidates = known_as(loaded_keys(fcinfo->flinfo), decode_tag(tag));
	if (candidates == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(candidates);
}

ADVISORY_SQL_FUNCTION(advisory_known_keys, rows_function<show_known_keys>);
ADVISORY_SQL_FUNCTION(advisory_known_as, known_as_of_tag);

}								/* namespace advisory */
