/*
 * views/pressure.cpp
 *		The row of advisory.pressure, and what else the views of the lock table ask.
 */
#include "base/pg.h"

#include "server/backends.h"
#include "base/guc.h"
#include "server/pool.h"
#include "base/sqlfunction.h"

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
	{
		int64		processes = MaxBackends + max_prepared_xacts;
		int64		needed = pool_guaranteed_for(pool, Min(warning, critical));

		recommended = (needed + processes - 1) / processes;
	}

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

/* role_name(role oid): null if there is none, or if the lock table is full. */
static Datum
name_of_role(FunctionCallInfo fcinfo)
{
	const char *name = role_name(PG_GETARG_OID(0));

	if (name == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(text_datum(name));
}

ADVISORY_SQL_FUNCTION(advisory_pressure, rows_function<show_pressure>);
ADVISORY_SQL_FUNCTION(advisory_role_name, name_of_role);

}								/* namespace advisory */
