/*
 * views/lockstable.cpp
 *		SQL: advisory._locks, a foreign table of the server's own advisory locks.
 *
 * A foreign table hands each row to the executor as soon as it is made.  A
 * set-returning function would first store all rows, and it would not know which
 * columns the query uses.
 *
 * Whoever has USAGE on the foreign server can make foreign tables of other columns
 * on it.  Writing our columns into the rows of such a table would overwrite memory,
 * so a scan is refused unless the table is the extension's own and still has the
 * columns in LOCK_COLUMNS.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "views/locks.h"
#include "base/sqlfunction.h"

namespace advisory
{

/* For the planner.  A guess, since counting the locks takes as long as reading them. */
static constexpr double EXPECTED_ROWS = 1000;

/* Raise an error unless this is the extension's own foreign table. */
static void
check_owner(Oid table)
{
	Oid			extension = get_extension_oid("advisory_ext", true);

	if (OidIsValid(extension) && getExtensionOfObject(RelationRelationId, table) == extension)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot read foreign table \"%s\"", get_rel_name(table)),
			 errdetail("The foreign-data wrapper of extension \"advisory_ext\" does not support foreign tables other than its own."),
			 errhint("Use the view advisory.locks.")));
}

/* Raise an error unless the table has the columns that next_lock_row() fills. */
static void
check_columns(Relation table)
{
	TupleDesc	columns = RelationGetDescr(table);
	bool		fits = columns->natts == LOCK_COLUMN_COUNT;

	for (int i = 0; fits && i < LOCK_COLUMN_COUNT; i++)
	{
		Form_pg_attribute column = TupleDescAttr(columns, i);

		fits = !column->attisdropped && column->atttypid == LOCK_COLUMNS[i].type;
	}
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("columns of foreign table \"%s\" are not as advisory_ext created them",
						RelationGetRelationName(table)),
				 errhint("Drop extension advisory_ext and create it again.")));
}

static void
estimate_size(PlannerInfo *, RelOptInfo *table, Oid relation)
{
	check_owner(relation);
	table->rows = EXPECTED_ROWS;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *table, Oid)
{
	Cost		cost = EXPECTED_ROWS * cpu_tuple_cost;

	add_path(table, reinterpret_cast<Path *>(compat::create_scan_path(root, table, table->rows, cost, cost)));
}

/* Does the set, as pull_varattnos() makes it, contain this column or the whole row? */
static bool
uses_column(const Bitmapset *columns, std::string_view name)
{
	int			number = 1;

	while (LOCK_COLUMNS[number - 1].name != name)
		number++;
	return bms_is_member(number - FirstLowInvalidHeapAttributeNumber, columns) ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, columns);
}

static ForeignScan *
make_plan(PlannerInfo *, RelOptInfo *table, Oid, ForeignPath *, List *target_list, List *clauses, Plan *outer_plan)
{
	Bitmapset  *columns = nullptr;
	List	   *wanted;

	pull_varattnos(reinterpret_cast<Node *>(table->reltarget->exprs), table->relid, &columns);
	pull_varattnos(reinterpret_cast<Node *>(extract_actual_clauses(clauses, false)), table->relid, &columns);
	wanted = list_make2_int(uses_column(columns, "namespace") || uses_column(columns, "name"),
							uses_column(columns, "scope") || uses_column(columns, "acquired_at") || uses_column(columns, "held"));
	return make_foreignscan(target_list, extract_actual_clauses(clauses, false), table->relid,
							nullptr, wanted, nullptr, nullptr, outer_plan);
}

static void
begin_scan(ForeignScanState *scan, int)
{
	check_columns(scan->ss.ss_currentRelation);
}

static TupleTableSlot *
next_row(ForeignScanState *scan)
{
	TupleTableSlot *slot = scan->ss.ss_ScanTupleSlot;
	auto	   *rows = static_cast<LockRows *>(scan->fdw_state);

	if (rows == nullptr)
	{
		List	   *wanted = reinterpret_cast<ForeignScan *>(scan->ss.ps.plan)->fdw_private;
		MemoryContext old_context = MemoryContextSwitchTo(scan->ss.ps.state->es_query_cxt);

		rows = open_lock_rows(WantedColumns{linitial_int(wanted) != 0, lsecond_int(wanted) != 0});
		scan->fdw_state = rows;
		MemoryContextSwitchTo(old_context);
	}

	CHECK_FOR_INTERRUPTS();
	ExecClearTuple(slot);
	if (next_lock_row(rows, slot->tts_values, slot->tts_isnull))
		ExecStoreVirtualTuple(slot);
	return slot;
}

static void
rescan(ForeignScanState *scan)
{
	if (scan->fdw_state != nullptr)
		restart_lock_rows(static_cast<LockRows *>(scan->fdw_state));
}

static void
end_scan(ForeignScanState *)
{
}

static Datum
locks_handler(FunctionCallInfo)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = estimate_size;
	routine->GetForeignPaths = add_paths;
	routine->GetForeignPlan = make_plan;
	routine->BeginForeignScan = begin_scan;
	routine->IterateForeignScan = next_row;
	routine->ReScanForeignScan = rescan;
	routine->EndForeignScan = end_scan;
	PG_RETURN_POINTER(routine);
}

ADVISORY_SQL_FUNCTION(advisory_locks_handler, locks_handler);

}								/* namespace advisory */
