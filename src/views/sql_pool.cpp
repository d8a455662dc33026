/*
 * views/sql_pool.cpp
 *		SQL: how full the server's lock table is.
 */
#include "base/pg.h"

#include "server/pool.h"
#include "views/pressure.h"
#include "base/sqlfunction.h"

namespace advisory
{

/* _pressure(by_counting boolean) */
static Datum
pressure(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	show_pressure(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), !PG_ARGISNULL(0) && PG_GETARG_BOOL(0));
	return Datum(0);
}

/* can_fit(n integer) */
static Datum
can_fit(FunctionCallInfo fcinfo)
{
	int32		n;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("number of locks must not be null")));
	n = PG_GETARG_INT32(0);
	if (n < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of locks must not be negative")));
	PG_RETURN_BOOL(n <= read_pool().capacity.headroom);
}

ADVISORY_SQL_FUNCTION(advisory_pressure, pressure);
ADVISORY_SQL_FUNCTION(advisory_pressure_by_backend, rows_function<show_pressure_by_backend>);
ADVISORY_SQL_FUNCTION(advisory_pressure_by_type, rows_function<show_pressure_by_type>);
ADVISORY_SQL_FUNCTION(advisory_can_fit, can_fit);

}								/* namespace advisory */
