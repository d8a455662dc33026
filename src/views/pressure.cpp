/*
 * views/pressure.cpp
 *		The row of advisory.pressure, and those from which SQL makes advisory.pressure_by_backend.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "server/locktable.h"
#include "server/pool.h"

namespace advisory
{

/* With two decimals. */
static double
rounded(double percent) noexcept
{
	return rint(percent * 100) / 100;
}

/* Add the row of advisory.pressure.  What depends on the use is null if that is not known. */
static void
show_pressure(ReturnSetInfo *result)
{
	PoolState	pool = read_pool();
	int64		guaranteed = guaranteed_locks();
	double		percent_used = rounded(pool_percent_used(pool));
	double		of_guaranteed = 100.0 * Max(pool.use.locks, pool.use.holders / 2.0) / guaranteed;
	int			warning = setting::pressure_warning;
	int			critical = setting::pressure_critical;
	int64		recommended = max_locks_per_xact;
	Row			row;
	auto		add_known = [&](Datum value) { row.add(value, !pool.is_known); };

	/* The setting with which the present use would have the status "ok". */
	if (percent_used >= Min(warning, critical))
		recommended = pool_setting_for(pool, Min(warning, critical));

	add_known(text_datum(percent_used >= critical ? "critical"
						 : percent_used >= warning ? "warning" : "ok"));
	add_known(Float8GetDatum(percent_used));
	add_known(Int64GetDatum(pool.capacity.locks - pool.use.locks));
	add_known(Int64GetDatum(pool.use.locks));
	add_known(Int64GetDatum(pool.capacity.locks));
	row.add_int64(guaranteed);
	add_known(Float8GetDatum(rounded(of_guaranteed)));
	add_known(Int64GetDatum(pool.use.holders));
	row.add_int64(2 * guaranteed);
	row.add_int32(static_cast<int32>(recommended));
	row.add_bool(pool.is_exact);
	add_known(Int64GetDatum(pool.capacity.holders));
	row.put(result);
}

/* lock_use(): pid, or transaction of a prepared one; type; holders; locks */
static void
show_lock_use(ReturnSetInfo *result)
{
	const LockUse *use = read_lock_use();

	show_each(LOCK_TYPES * proc_count(), [&](int i) {
		const PGPROC *proc = GetPGProcByNumber(i / LOCK_TYPES);
		Row			row;

		if (use[i].holders == 0)
			return;
		row.add(Int32GetDatum(proc->pid), proc->pid == 0);
		row.add(TransactionIdGetDatum(proc->xid), proc->pid != 0);
		row.add_text(LockTagTypeNames[i % LOCK_TYPES]);
		row.add_int64(use[i].holders);
		row.add_int64(use[i].locks);
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_pressure, rows_function<show_pressure>);
ADVISORY_SQL_FUNCTION(advisory_lock_use, rows_function<show_lock_use>);

}								/* namespace advisory */
