/*
 * sql/pressure.cpp
 *		SQL: whether locks fit into the server's lock table.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/sqlfunction.h"
#include "core/poolguard.h"
#include "server/pool.h"
#include "sql/args.h"

namespace advisory
{

static int
count_argument(FunctionCallInfo fcinfo)
{
	int			count = integer_argument(fcinfo, 0, "number of locks");

	if (count < 0)
		raise_invalid("number of locks must not be negative");
	return count;
}

/* can_fit(n integer) */
static Datum
can_fit(FunctionCallInfo fcinfo)
{
	int			count = count_argument(fcinfo);
	PoolState	pool = read_pool();

	if (!pool.is_known)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(count <= Min(pool_room(pool, 100), pool_limit_room(pool)));
}

/* max_locks_for(n integer) */
static Datum
max_locks_for(FunctionCallInfo fcinfo)
{
	int			count = count_argument(fcinfo);
	int			percent = Min(setting::pressure_warning, setting::pressure_critical);
	PoolState	pool = read_pool();
	int64		needed;

	if (!pool.is_known)
		PG_RETURN_NULL();
	if (setting::pool_limit > 0)
		percent = Min(percent, setting::pool_limit);
	pool.use.locks += count;
	pool.use.holders += count;
	needed = pool_setting_for(pool, Max(percent, 1));
	PG_RETURN_INT32(static_cast<int32>(Min(Max(needed, max_locks_per_xact), PG_INT32_MAX)));
}

ADVISORY_SQL_FUNCTION(advisory_can_fit, can_fit);
ADVISORY_SQL_FUNCTION(advisory_max_locks_for, max_locks_for);

}								/* namespace advisory */
