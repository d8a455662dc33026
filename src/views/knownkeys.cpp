/*
 * views/knownkeys.cpp
 *		Which well-known use a lock may be.
 *
 * One hash table has every key that can be written down, with its candidates.
 * It is filled as late as can be: with the labels and the keys that are the same
 * everywhere at the start; with a database's keys when its first lock comes by;
 * with what has to be looked for in the catalogs when a lock comes by that has
 * so small a key.  Patterns are tried on each lock.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/compat.h"
#include "views/keyfacts.h"
#include "views/knownkeys.h"
#include "base/srf.h"
#include "base/errors.h"

namespace advisory
{

/* Labels come before all facts, which go by their place in the list. */
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
	Oid			database;		/* only in this one; invalid for any */
	int			rank;
	const char *text;
	Candidate  *next;
};

/* Candidates by ascending rank. */
struct KnownKey
{
	TagKeys		keys;			/* hash key */
	Candidate  *first;
	Candidate  *last;
};

struct KnownKeys
{
	MemoryContext context;
	HTAB	   *keys;			/* of KnownKey */
	HTAB	   *databases;		/* those whose keys are in it */
	Oid			last_database;	/* one of them */
	bool		has_catalogs;
};

/* ---- Labels ------------------------------------------------------------------------- */

static constexpr char SCHEMA[] = "advisory";
static constexpr char LABELS[] = "key_labels";

/* As many labels as are read, and characters of each: whatever the table has, the view works. */
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
 * Can the labels be read, by this user and without waiting?  Takes the lock that
 * reading them takes, since a view for bad times must not wait for a table.
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

/* False for what the table's constraints forbid. */
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
		elog(ERROR, "could not read what is known of keys");

	/* each may run another query. */
	SPITupleTable *table = SPI_tuptable;

	for (uint64 i = 0; i < table->numvals; i++)
		each(table->vals[i], table->tupdesc);
	SPI_finish();
}

/*
 * Run each(row, columns) for the rows of a query; memory is freed at the end.  There
 * are none where the lock table is too full to plan it.
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

/* Queues are q_<queue>; their partitions, where they have some, are no queues. */
static constexpr char PGMQ_QUEUES[] =
	"SELECT pg_catalog.substr(c.relname::pg_catalog.text, 3)"
	" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
	" WHERE n.nspname OPERATOR(pg_catalog.=) 'pgmq'"
	" AND c.relname OPERATOR(pg_catalog.>=) 'q_' AND c.relname OPERATOR(pg_catalog.<) 'q`'"
	" AND (c.relkind OPERATOR(pg_catalog.=) 'r' OR c.relkind OPERATOR(pg_catalog.=) 'p') AND NOT c.relispartition"
	" ORDER BY 1 LIMIT 10000";

/* A table that migrations are noted in has one key for each way to connect. */
template <typename Each>
static void
each_key_of_migrate_table(const KeyFact &fact, const char *database, const char *schema, const char *table, Each each)
{
	for (bool slash : {false, true})
		each(key_of_migrate_table(fact, schema, table, slash, database), quote_qualified_identifier(schema, table));
}

/* The default one counts also before it is made, which is done under the lock. */
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
 * Run each(key, detail) for each key of a fact; detail may be null.  database is
 * the name of the one that the lock is in; that it is the current one is the
 * caller's to know where the catalogs are asked.
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

/* ---- The table ---------------------------------------------------------------------- */

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

/* Put the candidate into the chain behind those of its rank. */
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

/* Add the keys of this origin; in_database is where they hold, invalid for everywhere. */
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

KnownKeys *
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

/* See to it that keys which follow from this database's name are there. */
static void
have_database(KnownKeys *known, Oid database)
{
	bool		found;

	if (database == known->last_database)
		return;
	hash_search(known->databases, &database, HASH_ENTER, &found);
	known->last_database = database;
	if (found)
		return;

	/* None if it was dropped meanwhile, or is none. */
	if (const char *name = stored_database_name(database))
		add_facts(known, KeyOrigin::database_name, database, name);
}

/* See to it that keys which follow from the catalogs are there, if the lock's could be one. */
static void
have_catalogs(KnownKeys *known, const DecodedTag &tag)
{
	/* All of them are 32 bits wide: unsigned, or signed. */
	if (known->has_catalogs || tag.kind != Kind::lock || tag.database != MyDatabaseId ||
		tag.key.value < PG_INT32_MIN || tag.key.value > PG_UINT32_MAX)
		return;
	add_facts(known, KeyOrigin::catalogs, MyDatabaseId, stored_database_name(MyDatabaseId));
	known->has_catalogs = true;
}

/* ---- Asking ------------------------------------------------------------------------- */

/* What fits a lock, by rank. */
struct Matches
{
	Datum	   *texts;
	int		   *ranks;
	int			count;
	int			capacity;
};

static void
add_match(Matches *matches, int rank, const char *text)
{
	int			place = matches->count;

	if (matches->count == matches->capacity)
	{
		matches->capacity = Max(8, 2 * matches->capacity);
		if (matches->texts == nullptr)
		{
			matches->texts = static_cast<Datum *>(palloc(sizeof(Datum) * matches->capacity));
			matches->ranks = static_cast<int *>(palloc(sizeof(int) * matches->capacity));
		}
		else
		{
			matches->texts = static_cast<Datum *>(repalloc(matches->texts, sizeof(Datum) * matches->capacity));
			matches->ranks = static_cast<int *>(repalloc(matches->ranks, sizeof(int) * matches->capacity));
		}
	}
	for (; place > 0 && matches->ranks[place - 1] > rank; place--)
	{
		matches->texts[place] = matches->texts[place - 1];
		matches->ranks[place] = matches->ranks[place - 1];
	}
	matches->texts[place] = CStringGetTextDatum(text);
	matches->ranks[place] = rank;
	matches->count++;
}

/* The name of the table, or its number where it cannot be looked up. */
static const char *
table_detail(Oid database, Oid table)
{
	char	   *name = database == MyDatabaseId ? get_rel_name(table) : nullptr;
	char	   *schema = name != nullptr ? get_namespace_name(get_rel_namespace(table)) : nullptr;

	if (schema == nullptr)
		return psprintf("oid %u", table);
	return quote_qualified_identifier(schema, name);
}

/* What a lock that fits a pattern tells beyond that; null for nothing. */
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

ArrayType *
known_as(KnownKeys *known, const DecodedTag &tag)
{
	TagKeys		keys = {static_cast<uint32>(tag.key1), static_cast<uint32>(tag.key2), tag.objsubid};
	Matches		matches = {};

	have_database(known, tag.database);
	have_catalogs(known, tag);

	auto	   *entry = static_cast<KnownKey *>(hash_search(known->keys, &keys, HASH_FIND, nullptr));

	for (Candidate *candidate = entry != nullptr ? entry->first : nullptr; candidate != nullptr; candidate = candidate->next)
	{
		if (!OidIsValid(candidate->database) || candidate->database == tag.database)
			add_match(&matches, candidate->rank, candidate->text);
	}
	for (const KeyFact &fact : key_patterns())
	{
		if (fits_pattern(fact, tag))
			add_match(&matches, rank_of(fact), candidate_text(fact, pattern_detail(fact, tag)));
	}
	if (matches.count == 0)
		return nullptr;
	return construct_array(matches.texts, matches.count, TEXTOID, -1, false, TYPALIGN_INT);
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

/* A row of a fact; keys is null where it has none. */
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

void
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

}								/* namespace advisory */
