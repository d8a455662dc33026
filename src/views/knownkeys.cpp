/*
 * views/knownkeys.cpp
 *		What a lock may be used for, judging by its key: advisory.known_keys and the
 *		column known_as of advisory.locks.
 *
 * The sources are the facts in keyfacts, the keys that follow from them in this
 * database, and the labels that users put into advisory.key_labels.  The results are
 * candidates, not verdicts: a key does not tell which program took the lock, and
 * several programs use the same small numbers.
 *
 * Labels, and keys that follow from names in the catalogs, apply to locks of the current
 * database only.  They are in a hash table; keys that follow from the catalogs are added to it
 * when a lock that could have such a key is looked up.  Every lock is compared with all other
 * facts; their keys are computed once for each database whose locks are looked up.
 */
#include "base/pg.h"

extern "C" {
#include "commands/extension.h"
#include "utils/array.h"
#include "utils/hsearch.h"
}

#include "base/errors.h"
#include "base/locktag.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "server/backends.h"
#include "views/keylabels.h"
#include "views/keyrules.h"
#include "views/knownkeys.h"

namespace advisory
{

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

/* ---- Looking up a lock ---- */

static KnownUse *
make_use(const KeyFact *fact, char *text)
{
	auto	   *use = static_cast<KnownUse *>(palloc(sizeof(KnownUse)));

	*use = KnownUse{fact, text};
	return use;
}

/* The possible uses of a key of this database. */
struct LocalKey
{
	LOCKTAG		tag;			/* hash key */
	List	   *uses;			/* of KnownUse */
};

/* The locks that the facts have in a database, without those that follow from its catalogs. */
struct DatabaseKeys
{
	Oid			database;		/* hash key */
	bool		has_tag[FACT_COUNT];
	LOCKTAG		tag[FACT_COUNT];
};

struct KnownKeys
{
	MemoryContext context;
	HTAB	   *local_keys;		/* of LocalKey */
	bool		has_names[NAME_SOURCES];	/* are the keys among them that follow from these names? */
	HTAB	   *databases;		/* of DatabaseKeys */
	bool		has_extensions;	/* are the next two known? */
	bool		is_installed[FACT_COUNT];	/* is the fact's extension installed here? */
	bool		is_one_installed;
};

static void
add_local_key(KnownKeys *known, const LOCKTAG &tag, const KeyFact *fact, const char *text)
{
	MemoryContext old_context = MemoryContextSwitchTo(known->context);
	bool		found;
	auto	   *key = static_cast<LocalKey *>(hash_search(known->local_keys, &tag, HASH_ENTER, &found));

	if (!found)
		key->uses = NIL;
	key->uses = lappend(key->uses, make_use(fact, pstrdup(text)));
	MemoryContextSwitchTo(old_context);
}

KnownKeys *
make_known_keys(MemoryContext context)
{
	auto	   *known = static_cast<KnownKeys *>(MemoryContextAllocZero(context, sizeof(KnownKeys)));
	HASHCTL		control = {};
	HASHCTL		database_control = {};

	known->context = context;
	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(LocalKey);
	control.hcxt = context;
	known->local_keys = hash_create("advisory_ext known keys", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	database_control.keysize = sizeof(Oid);
	database_control.entrysize = sizeof(DatabaseKeys);
	database_control.hcxt = context;
	known->databases = hash_create("advisory_ext known keys of databases", 4, &database_control,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	each_label([=](const KeyFact &label, const LOCKTAG &tag) {
		add_local_key(known, tag, nullptr, candidate(label, nullptr));
	});
	return known;
}

/* The keys of a database; the first lock of it computes them. */
static const DatabaseKeys *
keys_of_database(KnownKeys *known, Oid database)
{
	auto	   *keys = static_cast<DatabaseKeys *>(hash_search(known->databases, &database, HASH_FIND, nullptr));
	DatabaseKeys computed = {database};
	const char *name;

	if (keys != nullptr)
		return keys;
	/* Null if the database was dropped, or the number is not a database's. */
	name = stored_database_name(database);
	for (int i = 0; i < FACT_COUNT; i++)
		computed.has_tag[i] = tag_of_fact(KEY_FACTS[i], database, name, usual_names(KEY_FACTS[i].names), &computed.tag[i]);
	keys = static_cast<DatabaseKeys *>(hash_search(known->databases, &database, HASH_ENTER, nullptr));
	*keys = computed;
	return keys;
}

/* Add the keys that follow from the names that a source has in this database. */
static void
know_names(KnownKeys *known, NameSource source)
{
	const char *database = stored_database_name(MyDatabaseId);
	const NameList list = read_names(source);

	for (int i = 0; i < list.count; i++)
	{
		for (const KeyFact &fact : KEY_FACTS)
		{
			LOCKTAG		tag;

			if (fact.names == source && tag_of_fact(fact, MyDatabaseId, database, list.names[i], &tag))
				add_local_key(known, tag, &fact, candidate(fact, display_names(list.names[i])));
		}
	}
	known->has_names[index_of(source)] = true;
}

/*
 * Do the installed extensions rule out that a lock of this database belongs to the fact?  If one of the extensions
 * that use objsubids is installed, those that are not installed are ruled out.
 */
static bool
is_ruled_out(KnownKeys *known, int fact, const DecodedTag &tag)
{
	if (KEY_FACTS[fact].rule != KeyRule::classes || tag.database != MyDatabaseId)
		return false;
	if (!known->has_extensions)
	{
		for (int i = 0; i < FACT_COUNT; i++)
		{
			if (KEY_FACTS[i].rule != KeyRule::classes)
				continue;
			unless_lock_table_is_full([=]() {
				known->is_installed[i] = OidIsValid(get_extension_oid(KEY_FACTS[i].text, true));
			});
			known->is_one_installed = known->is_one_installed || known->is_installed[i];
		}
		known->has_extensions = true;
	}
	return known->is_one_installed && !known->is_installed[fact];
}

List *
known_uses(KnownKeys *known, const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	const DatabaseKeys *keys = keys_of_database(known, decoded.database);
	LocalKey   *local;
	List	   *uses = NIL;
	/* Add the uses of the key in this database by this fact; null stands for labels. */
	auto		add_local = [&](const KeyFact *fact) {
		bool		has_added = false;
		ListCell   *cell;

		foreach(cell, local != nullptr ? local->uses : NIL)
		{
			if (static_cast<KnownUse *>(lfirst(cell))->fact != fact)
				continue;
			uses = lappend(uses, lfirst(cell));
			has_added = true;
		}
		return has_added;
	};

	for (const KeyFact &fact : KEY_FACTS)
	{
		if (fact.names != NameSource::none && !known->has_names[index_of(fact.names)] &&
			decoded.database == MyDatabaseId && could_have(fact, decoded))
			know_names(known, fact.names);
	}

	local = static_cast<LocalKey *>(hash_search(known->local_keys, &tag, HASH_FIND, nullptr));
	add_local(nullptr);
	for (int i = 0; i < FACT_COUNT; i++)
	{
		const KeyFact &fact = KEY_FACTS[i];
		bool		has_added = add_local(&fact);
		const char *detail;

		if (keys->has_tag[i] && memcmp(&keys->tag[i], &tag, sizeof(tag)) == 0)
			uses = lappend(uses, make_use(&fact, candidate(fact, display_names(usual_names(fact.names)))));
		else if (!has_added && fits_pattern(fact, decoded, &detail) && !is_ruled_out(known, i, decoded))
			uses = lappend(uses, make_use(&fact, candidate(fact, detail)));
	}
	return uses;
}

/* _known_as(database oid, high integer, low integer, objsubid integer): the uses of a lock as text[]; null if there are none. */
static Datum
known_as(FunctionCallInfo fcinfo)
{
	FmgrInfo   *function = fcinfo->flinfo;
	ArrayBuildState *texts = nullptr;
	LOCKTAG		tag;
	ListCell   *cell;

	/* Not a lock tag. */
	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	if (PG_GETARG_INT32(3) < 0 || PG_GETARG_INT32(3) > PG_UINT16_MAX)
		PG_RETURN_NULL();

	/* The first call in a query reads the data that all of its rows need. */
	if (function->fn_extra == nullptr)
		function->fn_extra = make_known_keys(function->fn_mcxt);
	SET_LOCKTAG_ADVISORY(tag, PG_GETARG_OID(0), PG_GETARG_UINT32(1), PG_GETARG_UINT32(2), PG_GETARG_INT32(3));
	foreach(cell, known_uses(static_cast<KnownKeys *>(function->fn_extra), tag))
		texts = accumArrayResult(texts, CStringGetTextDatum(static_cast<KnownUse *>(lfirst(cell))->text), false, TEXTOID,
								 CurrentMemoryContext);
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
	else if (fact.rule == KeyRule::range)
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
		const NameList list = read_names(fact.names);
		bool		has_keys = false;
		auto		show_key = [&](const Names &names) {
			LOCKTAG		tag;

			if (tag_of_fact(fact, MyDatabaseId, database, names, &tag))
			{
				show_fact(result, fact, &tag, display_names(names));
				has_keys = true;
			}
		};

		show_key(usual_names(fact.names));
		for (int i = 0; i < list.count; i++)
			show_key(list.names[i]);
		if (!has_keys)
			show_fact(result, fact, nullptr, nullptr);
	}
}

ADVISORY_SQL_FUNCTION(advisory_known_keys, rows_function<show_known_keys>);
ADVISORY_SQL_FUNCTION(advisory_known_as, known_as);

}								/* namespace advisory */
