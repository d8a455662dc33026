/*
 * core/owntables.cpp
 *		Tables and sequences of this extension that its functions write on behalf of every role.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "base/guc.h"
#include "core/owntables.h"

namespace advisory
{

static constexpr char SCHEMA[] = "advisory";

Oid
own_schema(const char *name)
{
	HeapTuple	row = SearchSysCache1(NAMESPACENAME, CStringGetDatum(name));
	Oid			schema = InvalidOid;

	if (HeapTupleIsValid(row))
	{
		auto	   *form = reinterpret_cast<Form_pg_namespace>(GETSTRUCT(row));

		if (form->nspowner == BOOTSTRAP_SUPERUSERID)
			schema = form->oid;
		ReleaseSysCache(row);
	}
	return schema;
}

Oid
own_relation(const char *name, char relkind, bool missing_ok)
{
	HeapTuple	row = SearchSysCache2(RELNAMENSP, PointerGetDatum(name), ObjectIdGetDatum(get_namespace_oid(SCHEMA, missing_ok)));
	bool		is_there = HeapTupleIsValid(row);
	Oid			relation = InvalidOid;

	if (is_there)
	{
		auto	   *form = reinterpret_cast<Form_pg_class>(GETSTRUCT(row));

		/* Another owner could attach functions, which would run as the superuser. */
		if (form->relkind == relkind && form->relowner == BOOTSTRAP_SUPERUSERID && form->relnamespace == own_schema(SCHEMA))
			relation = form->oid;
		ReleaseSysCache(row);
	}
	if (!OidIsValid(relation) && !missing_ok)
		ereport(ERROR,
				(errcode(is_there ? ERRCODE_WRONG_OBJECT_TYPE : ERRCODE_UNDEFINED_TABLE),
				 is_there
				 ? errmsg("relation \"%s.%s\" is not a %s of the bootstrap superuser", SCHEMA, name,
						  relkind == RELKIND_SEQUENCE ? "sequence" : "table")
				 : errmsg("relation \"%s.%s\" does not exist", SCHEMA, name)));
	return relation;
}

Oid
lock_own_relation(const char *name, char relkind, LOCKMODE mode, bool may_wait)
{
	for (;;)
	{
		Oid			relation = own_relation(name, relkind, !may_wait);

		if (may_wait)
			LockRelationOid(relation, mode);
		else if (!OidIsValid(relation) || !ConditionalLockRelationOid(relation, mode))
			return InvalidOid;
		/* It may have been dropped before it was locked. */
		if (own_relation(name, relkind, !may_wait) == relation)
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

void
execute_own_statement(OwnStatement *statement, std::initializer_list<NullableDatum> arguments)
{
	Datum		values[lengthof(statement->types)];
	char		nulls[lengthof(statement->types)];
	Snapshot	snapshot = InvalidSnapshot;
	int			count = 0;

	for (const NullableDatum &argument : arguments)
	{
		values[count] = argument.value;
		nulls[count++] = argument.isnull ? 'n' : ' ';
	}
	if (statement->plan == nullptr)
	{
		SPIPlanPtr	prepared = SPI_prepare(statement->text, count, statement->types);

		if (prepared == nullptr || SPI_keepplan(prepared) != 0)
			elog(ERROR, "could not prepare \"%s\"", statement->text);
		statement->plan = prepared;
	}
	/* A parallel operation can only use its own snapshot. */
	if (statement->sees_latest)
		snapshot = IsInParallelMode() ? GetActiveSnapshot() : GetLatestSnapshot();

	int			result = SPI_execute_snapshot(statement->plan, values, nulls, snapshot, InvalidSnapshot,
											  statement->result == SPI_OK_SELECT, true, 0);

	if (result != statement->result)
		elog(ERROR, "could not run \"%s\": %s", statement->text, SPI_result_code_string(result));
	if (statement->has_one_row && SPI_processed != 1)
		raise_changed(statement->table, "A trigger or rule has prevented a row from being written.");
}

Datum
OwnRow::column(int column, Oid type) const
{
	TupleDesc	columns = SPI_tuptable->tupdesc;
	bool		is_null = true;
	Datum		value = Datum(0);

	if (column <= columns->natts && SPI_gettypeid(columns, column) == type)
		value = SPI_getbinval(SPI_tuptable->vals[number], columns, column, &is_null);
	if (is_null)
		raise_changed(table, psprintf("Column %d of a result has another type, or is null.", column));
	return value;
}

char *
OwnRow::text(int column) const
{
	this->column(column, TEXTOID);

	char	   *text = SPI_getvalue(SPI_tuptable->vals[number], SPI_tuptable->tupdesc, column);

	return strcpy(static_cast<char *>(SPI_palloc(strlen(text) + 1)), text);
}

/* ---- Commits that a failover must not lose ---- */

/*
 * The setting is raised at once, so that users see it.  But the end of a function with its own SET,
 * or a SET LOCAL, can lower it again.  So the level is raised once more for the commit itself, and
 * restored after it.  That does not use set_config_option(), because a commit must not fail.
 */
static constexpr int LEAST_LEVEL = SYNCHRONOUS_COMMIT_REMOTE_FLUSH; /* "on" */

static bool is_wanted = false;
static bool is_raised = false;
static int	users_level;

void
commit_synchronously()
{
	if (!setting::lease_sync)
		return;
	is_wanted = true;
	if (synchronous_commit < LEAST_LEVEL)
		(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* Change the variable as SET does, but without its memory. */
static void
set_level(int level) noexcept
{
	synchronous_commit = level;
	assign_synchronous_commit(level, nullptr);
}

void
synccommit_at_xact_end(XactEvent event) noexcept
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		if (is_wanted && synchronous_commit < LEAST_LEVEL)
		{
			is_raised = true;
			users_level = synchronous_commit;
			set_level(LEAST_LEVEL);
		}
	}
	else
	{
		if (is_raised)
			set_level(users_level);
		is_wanted = is_raised = false;
	}
}

}								/* namespace advisory */
