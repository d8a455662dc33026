/*
 * views/knownkeys.cpp
 *		What a lock may be used for, judging by its key: advisory.known_keys and the
 *		column known_as of advisory.locks.
 *
 * The keys are rows of two functions of the install script: key_facts() has the keys of programs,
 * and key_labels() those of the table advisory.key_labels.  This file reads them and compares locks
 * with them.  The results are candidates, not verdicts: a key does not tell which program took the
 * lock, and several programs use the same small numbers.
 */
#include "base/pg.h"

#include "views/knownkeys.h"

#include "base/errors.h"
#include "base/locktag.h"
#include "base/sqlfunction.h"
#include "core/owntables.h"
#include "server/backends.h"

namespace advisory
{

/* ---- Reading the keys ---- */

/*
 * The columns of a row: which locks are meant, and what they are used for (KnownKeys::add); then
 * those of known_keys, texts first.
 */
static constexpr int FIRST_SHOWN = 7;
static constexpr int FIRST_KEY = FIRST_SHOWN + 7;
static constexpr int COLUMNS = FIRST_KEY + 3;

#define SELECT_KEYS \
	"SELECT first_key, last_key, first_objsubid, last_objsubid, concat_ws(': ', tool, purpose), source = 'advisory.key_labels', detail," \
	" tool, purpose, form, scope, match, rule, source, key, key1, key2 FROM advisory_internal."

/* They run as the bootstrap superuser, because the user may lack USAGE on the schema. */
static OwnStatement SELECT_LABELS = {"key_labels", SELECT_KEYS "key_labels()", SPI_OK_SELECT, false, false, {}, nullptr};
static OwnStatement SELECT_FACTS = {nullptr, SELECT_KEYS "key_facts($1, $2)", SPI_OK_SELECT, false, false, {BYTEAOID, BOOLOID}, nullptr};

/*
 * May the current user read the labels?  Then lock their table and its indexes, unless that would
 * mean to wait, because views must not wait.  A role that is subject to a policy sees no labels.
 * A standby has no rows of an unlogged table.
 */
static bool
can_read_labels()
{
	Oid			table = own_relation("key_labels", RELKIND_RELATION, true);
	bool		is_locked;

	if (!OidIsValid(table) ||
		!DatumGetBool(DirectFunctionCall2(has_schema_privilege_id, ObjectIdGetDatum(own_schema("advisory")), CStringGetTextDatum("USAGE"))) ||
		pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK ||
		check_enable_rls(table, InvalidOid, true) == RLS_ENABLED ||
		(get_rel_persistence(table) != RELPERSISTENCE_PERMANENT && RecoveryInProgress()))
		return false;

	is_locked = OidIsValid(lock_own_relation("key_labels", RELKIND_RELATION, AccessShareLock, false));
	if (is_locked)
	{
		Relation	relation = relation_open(table, NoLock);
		ListCell   *index;

		foreach(index, RelationGetIndexList(relation))
			is_locked = is_locked && ConditionalLockRelationOid(lfirst_oid(index), AccessShareLock);
		relation_close(relation, NoLock);
	}
	if (!is_locked)
		ereport(NOTICE, (errmsg("labels of keys are not shown, because table \"advisory.key_labels\" is locked")));
	return is_locked;
}

/* Run use(values, nulls) for the keys in a database, those of labels first.  May ereport. */
template <typename Use>
static void
read_keys(Oid database, Use use)
{
	const char *name = stored_database_name(database);
	NullableDatum bytes = name != nullptr ? argument(std::string_view(name)) : NullableDatum{Datum(0), true};
	NullableDatum is_current = {BoolGetDatum(database == MyDatabaseId), false};
	auto		use_row = [=](const OwnRow &row) {
		Datum		values[COLUMNS];
		bool		nulls[COLUMNS];

		heap_deform_tuple(SPI_tuptable->vals[row.number], SPI_tuptable->tupdesc, values, nulls);
		use(values, nulls);
	};

	unless_lock_table_is_full([=]() {
		/*
		 * Version 1.0 of the extension has neither this sequence nor the functions, so functions of
		 * these names are not the extension's.
		 */
		if (!OidIsValid(own_relation("_era", RELKIND_SEQUENCE, true)))
			ereport(NOTICE, (errmsg("well-known keys are not shown before the extension is updated"), errhint(OTHER_VERSION_HINT)));
		/*
		 * As long as it is locked, nobody can drop the extension, so the functions stay the
		 * extension's.
		 */
		else if (!OidIsValid(lock_own_relation("_era", RELKIND_SEQUENCE, AccessShareLock, false)))
			ereport(NOTICE, (errmsg("well-known keys are not shown, because sequence \"advisory._era\" is locked")));
		else
		{
			if (database == MyDatabaseId && can_read_labels())
				run_own_statement(&SELECT_LABELS, {}, use_row);
			run_own_statement(&SELECT_FACTS, {bytes, is_current}, use_row);
		}
	});
}

/* ---- Looking up a lock ---- */

/* Locks with a key in a range.  A pair is one key here. */
struct KeyRange
{
	int64		first;
	int64		last;
	int			first_objsubid;
	int			last_objsubid;
	KnownUse	use;
	char		detail;			/* the keys also tell a table ('t') or a name ('n'); or 0 */
};

/*
 * A range of one key is in the entry of its lock.  The other ranges in a database are in the entry
 * of key 0 with objsubid 0, which no lock has.  That entry is made when the keys in the database
 * are read.
 */
struct KnownLock
{
	LOCKTAG		tag;			/* hash key */
	List	   *ranges;			/* (KeyRange *) */
};

KnownKeys::KnownKeys(MemoryContext context) : context(context)
{
	HASHCTL		control = {};

	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(KnownLock);
	control.hcxt = context;
	locks = hash_create("advisory_ext known keys", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Add what a row means.  Its first key is null if it means no lock. */
void
KnownKeys::add(Oid database, const Datum *values, const bool *nulls)
{
	if (nulls[0])
		return;

	MemoryContext old_context = MemoryContextSwitchTo(context);
	auto	   *range = static_cast<KeyRange *>(palloc(sizeof(KeyRange)));
	LOCKTAG		tag;
	KnownLock  *lock;
	bool		is_there;

	*range = KeyRange{DatumGetInt64(values[0]), DatumGetInt64(values[1]), DatumGetInt32(values[2]), DatumGetInt32(values[3]),
					  {TextDatumGetCString(values[4]), DatumGetBool(values[5])},
					  nulls[6] ? '\0' : *TextDatumGetCString(values[6])};
	tag = range->first == range->last ? lock_tag(database, Key{range->first}, range->first_objsubid) : lock_tag(database, Key{0}, 0);
	lock = static_cast<KnownLock *>(hash_search(locks, &tag, HASH_ENTER, &is_there));
	if (!is_there)
		lock->ranges = NIL;		/* also if there is no memory for the next line */
	lock->ranges = lappend(lock->ranges, range);
	MemoryContextSwitchTo(old_context);
}

/*
 * The name of up to 9 printable characters in a pair of keys; null if there is none.  From the
 * highest bit: 7 bits for each character, then a 0, then 1s up to 64 bits.
 */
static const char *
name_in_key(uint64 bits)
{
	int			length = ~bits != 0 ? 63 - pg_rightmost_one_pos64(~bits) : 0;
	char		name[10] = "";

	if (length == 0 || length % 7 != 0)
		return nullptr;
	for (int i = 0; i < length / 7; i++)
	{
		name[i] = static_cast<char>((bits >> (57 - 7 * i)) & 0x7f);
		if (name[i] < ' ' || name[i] > '~')
			return nullptr;
	}
	return psprintf("perhaps \"%s\"", name);
}

/*
 * The table that pg_repack works on, by the second key of its pair: its OID if it is in another
 * database.
 */
static const char *
table_in_key(const DecodedTag &tag)
{
	Oid			table = static_cast<uint32>(tag.key2) ^ (UINT32_C(1) << 31);
	char	   *name = tag.database == MyDatabaseId ? get_rel_name(table) : nullptr;
	char	   *schema = name != nullptr ? get_namespace_name(get_rel_namespace(table)) : nullptr;

	return schema != nullptr ? quote_qualified_identifier(schema, name) : psprintf("oid %u", table);
}

List *
KnownKeys::uses_of(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	LOCKTAG		tag_of_others = lock_tag(decoded.database, Key{0}, 0);
	bool		is_there;
	auto	   *others = static_cast<KnownLock *>(hash_search(locks, &tag_of_others, HASH_ENTER, &is_there));
	KnownLock  *lock;
	List	   *uses = NIL;
	ListCell   *cell;

	if (!is_there)
	{
		others->ranges = NIL;
		read_keys(decoded.database, [=](const Datum *values, const bool *nulls) { add(decoded.database, values, nulls); });
	}
	lock = static_cast<KnownLock *>(hash_search(locks, &tag, HASH_FIND, nullptr));
	foreach(cell, lock != nullptr ? lock->ranges : NIL)
		uses = lappend(uses, &static_cast<KeyRange *>(lfirst(cell))->use);
	foreach(cell, others->ranges)
	{
		auto	   *range = static_cast<KeyRange *>(lfirst(cell));
		KnownUse   *use = &range->use;

		if (decoded.objsubid < range->first_objsubid || decoded.objsubid > range->last_objsubid ||
			decoded.key.value < range->first || decoded.key.value > range->last)
			continue;
		if (range->detail != '\0')
		{
			const char *detail = range->detail == 't' ? table_in_key(decoded) : name_in_key(decoded.key.value);

			if (detail == nullptr)
				continue;
			use = static_cast<KnownUse *>(palloc(sizeof(KnownUse)));
			*use = KnownUse{psprintf("%s (%s)", range->use.text, detail), false};
		}
		uses = lappend(uses, use);
	}
	return uses;
}

/* ---- SQL functions ---- */

/*
 * known_as(database oid, high integer, low integer, objsubid integer): the uses of a lock as
 * text[]; null if there are none.
 */
static Datum
known_as(FunctionCallInfo fcinfo)
{
	FmgrInfo   *function = fcinfo->flinfo;
	ArrayBuildState *texts = nullptr;
	LOCKTAG		tag;
	ListCell   *cell;

	/* Not a lock tag. */
	if (PG_GETARG_INT32(3) <= 0 || PG_GETARG_INT32(3) > PG_UINT16_MAX)
		PG_RETURN_NULL();

	/* The first call in a query reads the keys that all of its rows need. */
	if (function->fn_extra == nullptr)
		function->fn_extra = new (MemoryContextAlloc(function->fn_mcxt, sizeof(KnownKeys))) KnownKeys(function->fn_mcxt);
	SET_LOCKTAG_ADVISORY(tag, PG_GETARG_OID(0), PG_GETARG_UINT32(1), PG_GETARG_UINT32(2), PG_GETARG_INT32(3));
	foreach(cell, static_cast<KnownKeys *>(function->fn_extra)->uses_of(tag))
		texts = accumArrayResult(texts, text_datum(static_cast<KnownUse *>(lfirst(cell))->text), false, TEXTOID, CurrentMemoryContext);
	if (texts == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(makeArrayResult(texts, CurrentMemoryContext));
}

/* Add the rows of advisory.known_keys. */
static void
show_known_keys(ReturnSetInfo *result)
{
	read_keys(MyDatabaseId, [=](const Datum *values, const bool *nulls) {
		Row			row;

		for (int i = FIRST_SHOWN; i < FIRST_KEY; i++)
			row.add_text(nulls[i] ? nullptr : TextDatumGetCString(values[i]));
		for (int i = FIRST_KEY; i < COLUMNS; i++)
			row.add(values[i], nulls[i]);
		row.put(result);
	});
}

/* crc32(bytea): as zlib computes it. */
static Datum
crc32(FunctionCallInfo fcinfo)
{
	const bytea *bytes = PG_GETARG_BYTEA_PP(0);
	pg_crc32	crc;

	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	FIN_TRADITIONAL_CRC32(crc);
	PG_RETURN_INT64(crc);
}

ADVISORY_SQL_FUNCTION(advisory_known_keys, rows_function<show_known_keys>);
ADVISORY_SQL_FUNCTION(advisory_known_as, known_as);
ADVISORY_SQL_FUNCTION(advisory_crc32, crc32);

}								/* namespace advisory */
