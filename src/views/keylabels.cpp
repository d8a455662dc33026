/*
 * views/keylabels.cpp
 *		Reading the labels that users give to keys.
 *
 * The table belongs to the owner of the extension, which need not be a superuser.  But a superuser who
 * queries advisory.locks reads it, too.  A query of the table would run policies or rules that the owner
 * has attached to it as that superuser.  So the rows are read without a query: only the stored values of
 * a plain table, whose columns have the types that they were created with.
 */
#include "base/pg.h"

#include "views/keylabels.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
}

#include "base/compat.h"
#include "base/errors.h"
#include "base/locktag.h"

namespace advisory
{

static constexpr char SCHEMA[] = "advisory";
static constexpr char TABLE[] = "key_labels";

/* Limits, so that the views work whatever is in the table. */
static constexpr int MAX_LABELS = 10000;
static constexpr int LABEL_CHARACTERS = 200;
static constexpr int NOTE_CHARACTERS = 1000;

enum
{
	KEY,
	KEY1,
	KEY2,
	LABEL,
	NOTE,
	COLUMNS
};

static constexpr struct
{
	const char *name;
	Oid			type;
} COLUMN[COLUMNS] = {{"key", INT8OID}, {"key1", INT4OID}, {"key2", INT4OID}, {"label", TEXTOID}, {"note", TEXTOID}};

/*
 * Open the table.  Null if this user cannot read it, or not without waiting.  If a policy applies to the
 * user, the whole table is hidden, because policies are not run here.
 */
static Relation
open_labels()
{
	Oid			schema = get_namespace_oid(SCHEMA, true);
	Oid			table = OidIsValid(schema) ? get_relname_relid(TABLE, schema) : InvalidOid;

	if (!OidIsValid(table) ||
		compat::schema_aclcheck(schema, GetUserId(), ACL_USAGE) != ACLCHECK_OK ||
		pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK ||
		check_enable_rls(table, InvalidOid, true) == RLS_ENABLED ||
		!ConditionalLockRelationOid(table, AccessShareLock))
		return nullptr;
	/* Null if it was dropped meanwhile. */
	return try_relation_open(table, NoLock);
}

/* Find the columns' numbers; false if it is not a plain table with them.  A standby has no rows of an unlogged table. */
static bool
find_columns(Relation table, AttrNumber numbers[COLUMNS])
{
	TupleDesc	columns = RelationGetDescr(table);

	if (table->rd_rel->relkind != RELKIND_RELATION || (!RelationIsPermanent(table) && RecoveryInProgress()))
		return false;
	for (int i = 0; i < COLUMNS; i++)
	{
		numbers[i] = InvalidAttrNumber;
		for (int j = 0; j < columns->natts; j++)
		{
			Form_pg_attribute column = TupleDescAttr(columns, j);

			if (!column->attisdropped && column->atttypid == COLUMN[i].type &&
				strcmp(NameStr(column->attname), COLUMN[i].name) == 0)
				numbers[i] = column->attnum;
		}
		if (numbers[i] == InvalidAttrNumber)
			return false;
	}
	return true;
}

/* The first characters of a text, palloc'd. */
static char *
first_characters(Datum value, int characters)
{
	char	   *start = text_to_cstring(DatumGetTextPSlice(value, 0, characters * pg_database_encoding_max_length()));

	start[pg_mbcharcliplen(start, strlen(start), characters)] = '\0';
	return start;
}

/* Read a row; false if the table's constraints do not allow it. */
static bool
read_row(HeapTuple row, TupleDesc columns, const AttrNumber numbers[COLUMNS], KeyLabel *label)
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS];

	for (int i = 0; i < COLUMNS; i++)
		values[i] = heap_getattr(row, numbers[i], columns, &nulls[i]);
	if (nulls[LABEL] || (nulls[KEY] && (nulls[KEY1] || nulls[KEY2])))
		return false;

	if (nulls[KEY])
		SET_LOCKTAG_ADVISORY(label->tag, MyDatabaseId, DatumGetUInt32(values[KEY1]), DatumGetUInt32(values[KEY2]),
							 OBJSUBID_PAIR);
	else
		label->tag = lock_tag(MyDatabaseId, Key{DatumGetInt64(values[KEY])});
	label->label = first_characters(values[LABEL], LABEL_CHARACTERS);
	label->note = nulls[NOTE] ? nullptr : first_characters(values[NOTE], NOTE_CHARACTERS);
	return true;
}

/* By key, and the labels of one key by their bytes. */
static int
compare_labels(const void *a, const void *b)
{
	auto	   *left = static_cast<const KeyLabel *>(a);
	auto	   *right = static_cast<const KeyLabel *>(b);
	int			by_key = compare_locktags(&left->tag, &right->tag);

	return by_key != 0 ? by_key : strcmp(left->label, right->label);
}

const KeyLabel *
read_key_labels(int *count)
{
	auto	   *labels = static_cast<KeyLabel *>(palloc(MAX_LABELS * sizeof(KeyLabel)));
	int			found = 0;
	bool		has_read;

	has_read = unless_lock_table_is_full([labels, &found]() {
		AttrNumber	numbers[COLUMNS];
		Relation	table = open_labels();

		if (table == nullptr)
			return;
		if (find_columns(table, numbers))
		{
			SysScanDesc scan = systable_beginscan(table, InvalidOid, false, GetActiveSnapshot(), 0, nullptr);
			HeapTuple	row;

			while (found < MAX_LABELS && (row = systable_getnext(scan)) != nullptr)
				found += read_row(row, RelationGetDescr(table), numbers, &labels[found]);
			systable_endscan(scan);
		}
		relation_close(table, NoLock);
	});
	*count = has_read ? found : 0;
	qsort(labels, *count, sizeof(KeyLabel), compare_labels);
	return labels;
}

}								/* namespace advisory */
