/*
 * views/knownkeys.cpp
 *		What a lock may be used for, judging by its key: advisory.known_keys and the
 *		column known_as of advisory.locks.
 *
 * The keys are rows of two functions of the install script: key_facts() has the keys of programs, and key_labels() those of the table
 * advisory.key_labels.  This file reads them and compares locks with them.  The results are candidates, not verdicts: a key does not tell
 * which program took the lock, and several programs use the same small numbers.
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
 * The columns of the queries below.  Those after the columns of known_keys say which locks are meant, and what they are used for.
 * If one of them is null except DETAIL, no lock is meant.
 */
enum
{
	KNOWN_KEYS_TEXTS = 7,
	KNOWN_KEYS_COLUMNS = 10,
	FIRST_OBJSUBID = KNOWN_KEYS_COLUMNS,
	LAST_OBJSUBID,
	FIRST_KEY,
	LAST_KEY,
	USE,
	DETAIL,
	COLUMNS
};

#define SELECT_KEYS \
	"SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2, first_objsubid, last_objsubid, first_key, last_key," \
	" concat_ws(': ', tool, purpose), detail FROM advisory_internal."

/* They run as the bootstrap superuser, because the user may lack USAGE on the schema. */
static OwnStatement SELECT_LABELS = {"key_labels", SELECT_KEYS "key_labels()", SPI_OK_SELECT, false, false, {}, nullptr};
static OwnStatement SELECT_FACTS = {nullptr, SELECT_KEYS "key_facts($1, $2)", SPI_OK_SELECT, false, false, {BYTEAOID, BOOLOID}, nullptr};

/*
 * May the current user read the labels?  Then lock their table and its indexes, unless that would mean to wait, because
 * views must not wait.  A role that is subject to a policy sees no labels.  A standby has no rows of an unlogged table.
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

	is_locked = ConditionalLockRelationOid(table, AccessShareLock);
	if (Relation relation = is_locked ? try_relation_open(table, NoLock) : nullptr)
	{
		ListCell   *index;

		foreach(index, RelationGetIndexList(relation))
			is_locked = is_locked && ConditionalLockRelationOid(lfirst_oid(index), AccessShareLock);
		relation_close(relation, NoLock);
	}
	else
		is_locked = false;
	if (!is_locked)
		ereport(NOTICE, (errmsg("labels of keys are not shown, because table \"advisory.key_labels\" is locked")));
	return is_locked;
}

/* Is this a database whose extension has not been updated, so that the functions are not there, or are not the extension's? */
static bool
is_older_version()
{
	HeapTuple	row = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum("key_facts"), PointerGetDatum(buildoidvector(SELECT_FACTS.types, 2)),
									  ObjectIdGetDatum(own_schema("advisory_internal")));

	if (HeapTupleIsValid(row))
	{
		Oid			owner = reinterpret_cast<Form_pg_proc>(GETSTRUCT(row))->proowner;

		ReleaseSysCache(row);
		if (owner == BOOTSTRAP_SUPERUSERID)
			return false;
	}
	ereport(NOTICE, (errmsg("well-known keys are not shown before the extension is updated"), errhint(OTHER_VERSION_HINT)));
	return true;
}

/* Run use(is_label, values, nulls) for the keys in a database, those of labels first.  May ereport. */
template <typename Use>
static void
read_keys(Oid database, Use use)
{
	const char *name = stored_database_name(database);
	NullableDatum bytes = {PointerGetDatum(name != nullptr ? cstring_to_text(name) : nullptr), name == nullptr};
	NullableDatum is_current = {BoolGetDatum(database == MyDatabaseId), false};
	auto		read = [=](OwnStatement *statement, std::initializer_list<NullableDatum> arguments) {
		run_own_statement(statement, arguments, [=](const OwnRow &row) {
			Datum		values[COLUMNS];
			bool		nulls[COLUMNS];

			heap_deform_tuple(SPI_tuptable->vals[row.number], SPI_tuptable->tupdesc, values, nulls);
			use(statement == &SELECT_LABELS, values, nulls);
		});
	};

	unless_lock_table_is_full([=]() {
		/* As long as this sequence is locked, nobody can drop the extension, so the functions stay the extension's. */
		bool		stays = OidIsValid(lock_own_relation("_era", RELKIND_SEQUENCE, AccessShareLock, false));

		if (is_older_version())
			return;
		if (!stays)
		{
			ereport(NOTICE, (errmsg("well-known keys are not shown, because sequence \"advisory._era\" is locked")));
			return;
		}
		if (database == MyDatabaseId && can_read_labels())
			read(&SELECT_LABELS, {});
		read(&SELECT_FACTS, {bytes, is_current});
	});
}

/* ---- Looking up a lock ---- */

/* Locks with a key in a range.  A pair is one key here. */
struct KeyRange
{
	int			first_objsubid;
	int			last_objsubid;
	int64		first;
	int64		last;
	KnownUse	use;
	char		detail;			/* the keys also tell a table ('t') or a name ('n'); or 0 */
};

struct KnownLock
{
	LOCKTAG		tag;			/* hash key */
	List	   *ranges;			/* of KeyRange */
};

/*
 * A range of one key is in the entry of its lock.  The other ranges in a database are in the entry of key 0 with
 * objsubid 0, which no lock has.  That entry is made when the keys in the database are read.
 */
struct KnownKeys
{
	MemoryContext context;
	HTAB	   *locks;			/* of KnownLock */
};

KnownKeys *
make_known_keys(MemoryContext context)
{
	auto	   *known = static_cast<KnownKeys *>(MemoryContextAlloc(context, sizeof(KnownKeys)));
	HASHCTL		control = {};

	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(KnownLock);
	control.hcxt = context;
	known->context = context;
	known->locks = hash_create("advisory_ext known keys", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return known;
}

/* The entry of a lock, which is made if it is not there. */
static KnownLock *
enter_lock(KnownKeys *known, const LOCKTAG &tag, bool *is_there)
{
	auto	   *lock = static_cast<KnownLock *>(hash_search(known->locks, &tag, HASH_ENTER, is_there));

	if (!*is_there)
		lock->ranges = NIL;
	return lock;
}

/* Add what a row means, if it means any locks. */
static void
add_range(KnownKeys *known, Oid database, bool is_label, const Datum *values, const bool *nulls)
{
	if (memchr(nulls + FIRST_OBJSUBID, true, DETAIL - FIRST_OBJSUBID) != nullptr)
		return;

	MemoryContext old_context = MemoryContextSwitchTo(known->context);
	auto	   *range = static_cast<KeyRange *>(palloc(sizeof(KeyRange)));
	LOCKTAG		tag;
	KnownLock  *lock;
	bool		is_there;

	*range = KeyRange{DatumGetInt32(values[FIRST_OBJSUBID]), DatumGetInt32(values[LAST_OBJSUBID]),
					  DatumGetInt64(values[FIRST_KEY]), DatumGetInt64(values[LAST_KEY]),
					  {TextDatumGetCString(values[USE]), is_label},
					  nulls[DETAIL] ? '\0' : *TextDatumGetCString(values[DETAIL])};
	tag = range->first == range->last ? lock_tag(database, Key{range->first}, range->first_objsubid) : lock_tag(database, Key{0}, 0);
	lock = enter_lock(known, tag, &is_there);
	lock->ranges = lappend(lock->ranges, range);
	MemoryContextSwitchTo(old_context);
}

/*
 * The name of up to 9 printable characters in a pair of keys; null if there is none.  From the highest bit: 7 bits
 * for each character, then a 0, then 1s up to 64 bits.
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

/* The table that pg_repack works on, by the second key of its pair: its OID if it is in another database. */
static const char *
table_in_key(const DecodedTag &tag)
{
	Oid			table = static_cast<uint32>(tag.key2) ^ (UINT32_C(1) << 31);
	char	   *name = tag.database == MyDatabaseId ? get_rel_name(table) : nullptr;
	char	   *schema = name != nullptr ? get_namespace_name(get_rel_namespace(table)) : nullptr;

	return schema != nullptr ? quote_qualified_identifier(schema, name) : psprintf("oid %u", table);
}

List *
known_uses(KnownKeys *known, const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	bool		is_there;
	KnownLock  *others = enter_lock(known, lock_tag(decoded.database, Key{0}, 0), &is_there);
	KnownLock  *lock;
	List	   *uses = NIL;
	ListCell   *cell;

	if (!is_there)
		read_keys(decoded.database, [=](bool is_label, const Datum *values, const bool *nulls) {
			add_range(known, decoded.database, is_label, values, nulls);
		});
	lock = static_cast<KnownLock *>(hash_search(known->locks, &tag, HASH_FIND, nullptr));
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

/* known_as(database oid, high integer, low integer, objsubid integer): the uses of a lock as text[]; null if there are none. */
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
		function->fn_extra = make_known_keys(function->fn_mcxt);
	SET_LOCKTAG_ADVISORY(tag, PG_GETARG_OID(0), PG_GETARG_UINT32(1), PG_GETARG_UINT32(2), PG_GETARG_INT32(3));
	foreach(cell, known_uses(static_cast<KnownKeys *>(function->fn_extra), tag))
		texts = accumArrayResult(texts, text_datum(static_cast<KnownUse *>(lfirst(cell))->text), false, TEXTOID, CurrentMemoryContext);
	if (texts == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(makeArrayResult(texts, CurrentMemoryContext));
}

/* Add the rows of advisory.known_keys. */
static void
show_known_keys(ReturnSetInfo *result)
{
	read_keys(MyDatabaseId, [=](bool, const Datum *values, const bool *nulls) {
		Row			row;

		for (int i = 0; i < KNOWN_KEYS_COLUMNS; i++)
		{
			if (i < KNOWN_KEYS_TEXTS && !nulls[i])
				row.add_text(TextDatumGetCString(values[i]));
			else
				row.add(values[i], nulls[i]);
		}
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
