/*
 * views/lockstable.cpp
 *		SQL: advisory._locks, a foreign table of the server's own advisory locks.
 *
 * It is a foreign table, not a set-returning function, because its rows then go
 * straight to where they are wanted: nothing is stored first, and what is not
 * asked for is not looked up.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "views/locks.h"
#include "base/sqlfunction.h"

namespace advisory
{

/* For the planner: a guess, since to know it is to have read it. */
static constexpr double EXPECTED_ROWS = 1000;

static void
estimate_size(PlannerInfo *, RelOptInfo *table, Oid)
{
	table->rows = EXPECTED_ROWS;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *table, Oid)
{
	Cost		cost = EXPECTED_ROWS * cpu_tuple_cost;

	add_path(table, reinterpret_cast<Path *>(compat::create_scan_path(root, table, table->rows, cost, cost)));
}

static bool
uses_any(const Bitmapset *columns, int first, int count) noexcept
{
	/* A reference to the whole row is column 0. */
	if (bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, columns))
		return true;
	for (int column = first; column < first + count; column++)
	{
		if (bms_is_member(column - FirstLowInvalidHeapAttributeNumber, columns))
			return true;
	}
	return false;
}

static ForeignScan *
make_plan(PlannerInfo *, RelOptInfo *table, Oid, ForeignPath *, List *target_list, List *clauses, Plan *outer_plan)
{
	Bitmapset  *columns = nullptr;
	List	   *wanted;

	pull_varattnos(reinterpret_cast<Node *>(table->reltarget->exprs), table->relid, &columns);
	pull_varattnos(reinterpret_cast<Node *>(extract_actual_clauses(clauses, false)), table->relid, &columns);
	wanted = list_make2_int(uses_any(columns, FIRST_NAME_COLUMN, 2),
							uses_any(columns, SCOPE_COLUMN, 1) || uses_any(columns, FIRST_HOLD_COLUMN, 2));
	return make_foreignscan(target_list, extract_actual_clauses(clauses, false), table->relid,
							nullptr, wanted, nullptr, nullptr, outer_plan);
}

static void
begin_scan(ForeignScanState *, int)
{
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
