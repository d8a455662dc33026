/*
 * core/owntables.cpp
 *		Tables and sequences of this extension that its functions write on behalf of every role.
 */
#include "base/pg.h"

#include "core/owntables.h"

namespace advisory
{

static constexpr char SCHEMA[] = "advisory";

Oid
own_relation(const char *name, char relkind, bool missing_ok)
{
	Oid			schema = get_namespace_oid(SCHEMA, missing_ok);
	Oid			relation = get_relname_relid(name, schema);
	bool		is_there = OidIsValid(relation);

	/*
	 * Another owner could attach functions, which would run as the superuser, or rename the schema
	 * and put another one in its place.
	 */
	if (get_rel_relkind(relation) == relkind &&
		GetSysCacheOid1(RELOID, Anum_pg_class_relowner, ObjectIdGetDatum(relation)) ==
		BOOTSTRAP_SUPERUSERID &&
		GetSysCacheOid1(NAMESPACEOID, Anum_pg_namespace_nspowner, ObjectIdGetDatum(schema)) ==
		BOOTSTRAP_SUPERUSERID)
		return relation;
	if (!missing_ok)
		ereport(ERROR,
				(errcode(is_there ? ERRCODE_WRONG_OBJECT_TYPE : ERRCODE_UNDEFINED_TABLE),
				 is_there
				 ? errmsg("relation \"%s.%s\" is not a %s of the bootstrap superuser", SCHEMA, name,
						  relkind == RELKIND_SEQUENCE ? "sequence" : "table")
				 : errmsg("relation \"%s.%s\" does not exist", SCHEMA, name)));
	return InvalidOid;
}

Oid
lock_own_relation(const char *name, char relkind, LOCKMODE mode, bool may_wait)
{
	for (;;)
	{
		uint64		seen = SharedInvalidMessageCounter;
		Oid			relation = own_relation(name, relkind, !may_wait);

		if (may_wait)
			LockRelationOid(relation, mode);
		else if (!OidIsValid(relation) || !ConditionalLockRelationOid(relation, mode))
			return InvalidOid;
		/* It may have been dropped before it was locked; most messages are about something else. */
		if (seen == SharedInvalidMessageCounter ||
			own_relation(name, relkind, !may_wait) == relation)
			return relation;
		UnlockRelationOid(relation, mode);
	}
}

/* The table is not as CREATE EXTENSION made it. */
[[noreturn]] static void
raise_changed(const char *table, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("table \"%s.%s\" has been changed", SCHEMA, table),
			 errdetail("%s", detail)));
}

[[noreturn]] void
raise_row_prevented(const char *table)
{
	raise_changed(table, "A trigger or rule has prevented a row from being written.");
}

/* The latest committed data.  A parallel operation can only use its own snapshot. */
static Snapshot
latest_snapshot()
{
	return IsInParallelMode() ? GetActiveSnapshot() : GetLatestSnapshot();
}

void
execute_own_statement(OwnStatement *statement, std::initializer_list<Argument> arguments)
{
	Oid			types[MOST_ARGUMENTS];
	Datum		values[MOST_ARGUMENTS];
	char		nulls[MOST_ARGUMENTS];
	Snapshot	snapshot = InvalidSnapshot;
	int			count = 0;

	if (arguments.size() > MOST_ARGUMENTS)
		elog(ERROR, "\"%s\" has more than %d arguments", statement->text, MOST_ARGUMENTS);
	for (const Argument &argument : arguments)
	{
		types[count] = argument.type;
		values[count] = argument.value;
		nulls[count++] = argument.is_null ? 'n' : ' ';
	}
	if (statement->plan == nullptr)
	{
		SPIPlanPtr	prepared = SPI_prepare(statement->text, count, types);

		if (prepared == nullptr || SPI_keepplan(prepared) != 0)
			elog(ERROR, "could not prepare \"%s\"", statement->text);
		statement->plan = prepared;
	}
	if (statement->sees_latest)
		snapshot = latest_snapshot();

	int			result = SPI_execute_snapshot(statement->plan, values, nulls, snapshot,
											  InvalidSnapshot, statement->result == SPI_OK_SELECT,
											  true, 0);

	if (result != statement->result)
		elog(ERROR, "could not run \"%s\": %s", statement->text, SPI_result_code_string(result));
}

[[noreturn]] void
OwnRow::raise_column_changed(int column) const
{
	raise_changed(table, psprintf("Column %d has another type, or is null.", column));
}

char *
OwnRow::text(int column, int most_bytes) const
{
	const auto *value = PG_DETOAST_DATUM_SLICE(this->column(column, TEXTOID), 0, most_bytes);
	int			length = static_cast<int>(VARSIZE_ANY_EXHDR(value));

	return pnstrdup(VARDATA_ANY(value), pg_mbcliplen(VARDATA_ANY(value), length, most_bytes));
}

OwnScan::OwnScan(const char *table, const char *primary_key, int64 key, int32 first, int32 last)
{
	ScanKeyData keys[3];

	relation = relation_open(lock_own_relation(table, RELKIND_RELATION, AccessShareLock), NoLock);
	index = index_open(lock_own_relation(primary_key, RELKIND_INDEX, AccessShareLock), NoLock);
	if (index->rd_index->indrelid != RelationGetRelid(relation) ||
		index->rd_rel->relam != BTREE_AM_OID ||
		IndexRelationGetNumberOfKeyAttributes(index) != 2 ||
		index->rd_index->indkey.values[0] != 1 || index->rd_index->indkey.values[1] != 2 ||
		TupleDescAttr(RelationGetDescr(index), 0)->atttypid != INT8OID ||
		TupleDescAttr(RelationGetDescr(index), 1)->atttypid != INT4OID)
		raise_changed(table, "Its primary key is another one.");
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(key));
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_INT4GE, Int32GetDatum(first));
	ScanKeyInit(&keys[2], 2, BTLessEqualStrategyNumber, F_INT4LE, Int32GetDatum(last));
	snapshot = RegisterSnapshot(latest_snapshot());
	scan = systable_beginscan_ordered(relation, index, snapshot, 3, keys);
	row = {table, scan->slot};
}

bool
OwnScan::next()
{
	if (systable_getnext_ordered(scan, ForwardScanDirection) == nullptr)
		return false;
	slot_getallattrs(scan->slot);	/* costs less than one column after the other */
	return true;
}

void
OwnScan::end()
{
	systable_endscan_ordered(scan);
	UnregisterSnapshot(snapshot);
	index_close(index, NoLock);
	relation_close(relation, NoLock);
}

}								/* namespace advisory */
