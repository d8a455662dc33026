/*
 * core/owntables.cpp
 *		Tables and sequences of this extension that its functions write on behalf of every role.
 */
#include "base/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

#include "base/errors.h"
#include "core/owntables.h"

namespace advisory
{

static constexpr char SCHEMA[] = "advisory";

Oid
own_relation(const char *name)
{
	Oid			relation = get_relname_relid(name, get_namespace_oid(SCHEMA, false));

	if (!OidIsValid(relation))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s.%s\" does not exist", SCHEMA, name),
				 errhint(OTHER_VERSION_HINT)));
	return relation;
}

Oid
owner_of_relation(Oid relation)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(row))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation)));
	owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relowner;
	ReleaseSysCache(row);
	return owner;
}

void
execute_own_statement(OwnStatement *statement, const NullableDatum *arguments)
{
	Datum		values[lengthof(statement->types)];
	char		nulls[lengthof(statement->types)];
	Snapshot	snapshot = InvalidSnapshot;

	for (int i = 0; i < statement->argument_count; i++)
	{
		values[i] = arguments[i].value; // NOLINT(clang-analyzer-core.uninitialized.Assign): there are argument_count
		nulls[i] = arguments[i].isnull ? 'n' : ' ';
	}
	if (statement->plan == nullptr)
	{
		SPIPlanPtr	prepared = SPI_prepare(statement->text, statement->argument_count, statement->types);

		if (prepared == nullptr || SPI_keepplan(prepared) != 0)
			elog(ERROR, "could not prepare a statement on advisory.%s", statement->table);
		statement->plan = prepared;
	}
	/* A parallel operation can only use its own snapshot. */
	if (statement->sees_latest)
		snapshot = IsInParallelMode() ? GetActiveSnapshot() : GetLatestSnapshot();

	int			result = SPI_execute_snapshot(statement->plan, values, nulls, snapshot, InvalidSnapshot,
											  statement->result == SPI_OK_SELECT, true, 0);

	if (result != statement->result)
		elog(ERROR, "could not run a statement on advisory.%s: %s", statement->table, SPI_result_code_string(result));
}

char *
result_text(int column, uint64 row)
{
	char	   *text = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);

	return text != nullptr ? strcpy(static_cast<char *>(SPI_palloc(strlen(text) + 1)), text) : nullptr;
}

}								/* namespace advisory */
