/*
 * views/readable.cpp
 *		What the SQL of the views needs and SQL does not have: to read a table only if that is
 *		possible at once, names of roles, and some functions of texts and bytes.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "base/sqlfunction.h"
#include "server/backends.h"
#include "server/standby.h"
#include "views/visiblename.h"

namespace advisory
{

/*
 * It must be a table of the bootstrap superuser: another owner could make a view of it, whose
 * functions would run as the current user.  A standby has no rows of an unlogged table.
 */
static bool
may_read(Oid table)
{
	return get_rel_relkind(table) == RELKIND_RELATION &&
		GetSysCacheOid1(RELOID, Anum_pg_class_relowner, ObjectIdGetDatum(table)) ==
		BOOTSTRAP_SUPERUSERID &&
		pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
		DatumGetBool(DirectFunctionCall2(has_schema_privilege_id,
										 ObjectIdGetDatum(get_rel_namespace(table)),
										 CStringGetTextDatum("USAGE"))) &&
		check_enable_rls(table, InvalidOid, true) != RLS_ENABLED &&
		(get_rel_persistence(table) == RELPERSISTENCE_PERMANENT || !RecoveryInProgress());
}

/* Lock a table and its indexes, unless that would mean to wait. */
static bool
lock_to_read(Oid table)
{
	bool		is_locked = ConditionalLockRelationOid(table, AccessShareLock);

	if (is_locked)
	{
		Relation	relation = relation_open(table, NoLock);
		ListCell   *index;

		foreach(index, RelationGetIndexList(relation))
			is_locked = is_locked && ConditionalLockRelationOid(lfirst_oid(index), AccessShareLock);
		relation_close(relation, NoLock);
	}
	return is_locked;
}

/*
 * readable(relation regclass, otherwise text): the table, locked for reading; null if the current
 * user may not read it, or if the server's lock table is full.  If somebody has locked it, a NOTICE
 * says what the view does without it, because views must not wait.  What was read before the table
 * was locked is read once more, because it may have changed.
 */
static Datum
readable(FunctionCallInfo fcinfo)
{
	Oid			table = PG_GETARG_OID(0);
	bool		may = false;
	bool		is_locked = false;
	bool		is_full = !unless_lock_table_is_full([&]() {
		may = may_read(table);
		is_locked = may && lock_to_read(table);
		may = may && may_read(table);
	});

	if (is_locked && may)
		PG_RETURN_OID(table);
	if (may && !is_full)
		ereport(NOTICE,
				(errmsg("%s, because table \"%s.%s\" is locked",
						text_to_cstring(PG_GETARG_TEXT_PP(1)),
						get_namespace_name(get_rel_namespace(table)), get_rel_name(table))));
	PG_RETURN_NULL();
}

/* tell_of_standby(): true, after it has told whoever reads a view on a standby. */
static Datum
tell_of_standby(FunctionCallInfo)
{
	tell_reader_of_standby();
	PG_RETURN_BOOL(true);
}

/*
 * has_table(classes regclass, named name): has any schema a table of this name, which is not
 * temporary?  The first argument is that readable() has locked pg_class and its indexes, so that
 * this waits for nothing and needs no room in the lock table.  (The planner of a query would read
 * pg_statistic, too.)
 */
static Datum
has_table(FunctionCallInfo fcinfo)
{
	Relation	classes = relation_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, Anum_pg_class_relname, BTEqualStrategyNumber, F_NAMEEQ,
				NameGetDatum(PG_GETARG_NAME(1)));
	scan = systable_beginscan(classes, ClassNameNspIndexId, true, nullptr, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		const FormData_pg_class *row = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));

		found = (row->relkind == RELKIND_RELATION || row->relkind == RELKIND_PARTITIONED_TABLE) &&
			row->relpersistence != RELPERSISTENCE_TEMP;
	}
	systable_endscan(scan);
	relation_close(classes, AccessShareLock);
	PG_RETURN_BOOL(found);
}

static Datum
this_database(FunctionCallInfo)
{
	PG_RETURN_OID(MyDatabaseId);
}

/* role_name(role oid): null if there is none, or if the lock table is full. */
static Datum
name_of_role(FunctionCallInfo fcinfo)
{
	const char *name = role_name(PG_GETARG_OID(0));

	if (name == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(text_datum(name));
}

/*
 * role_here(role, role_name, server): the role that a row of a table means; 0 if there is none.
 */
static Datum
role_here_of_row(FunctionCallInfo fcinfo)
{
	PG_RETURN_OID(role_here(PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)), PG_GETARG_INT64(2)));
}

/* shown(value, may_see): a text as views show it */
static Datum
shown(FunctionCallInfo fcinfo)
{
	return text_datum(PG_GETARG_BOOL(1) ? text_to_cstring(PG_GETARG_TEXT_PP(0)) : HIDDEN);
}

/* printable(text): the text with ? for control characters. */
static Datum
printable(FunctionCallInfo fcinfo)
{
	PG_RETURN_DATUM(text_datum(text_to_cstring(PG_GETARG_TEXT_PP(0))));
}

/* bytes_of(name): as they are stored. */
static Datum
bytes_of(FunctionCallInfo fcinfo)
{
	PG_RETURN_DATUM(raw_text_datum(NameStr(*PG_GETARG_NAME(0))));
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

ADVISORY_SQL_FUNCTION(advisory_readable, readable);
ADVISORY_SQL_FUNCTION(advisory_tell_of_standby, tell_of_standby);
ADVISORY_SQL_FUNCTION(advisory_has_table, has_table);
ADVISORY_SQL_FUNCTION(advisory_this_database, this_database);
ADVISORY_SQL_FUNCTION(advisory_role_name, name_of_role);
ADVISORY_SQL_FUNCTION(advisory_role_here, role_here_of_row);
ADVISORY_SQL_FUNCTION(advisory_shown, shown);
ADVISORY_SQL_FUNCTION(advisory_printable, printable);
ADVISORY_SQL_FUNCTION(advisory_bytes_of, bytes_of);
ADVISORY_SQL_FUNCTION(advisory_crc32, crc32);

}								/* namespace advisory */
