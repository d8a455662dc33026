/*
 * views/pressure.cpp
 *		The rows of advisory.pressure, pressure_by_backend and pressure_by_type.
 */
#include "base/pg.h"

extern "C" {
#include "access/twophase.h"
#include "funcapi.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/backend_status.h"
}

#include <math.h>

#include "server/backends.h"
#include "base/guc.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "shmem/heldread.h"
#include "base/srf.h"
#include "base/sqlfunction.h"

namespace advisory
{

/*
 * What one session-level lock costs its session at the end of each transaction, when
 * the server visits every lock of the session.  Measured: 0.02 us with 1,000 locks,
 * 0.2 us with 100,000, which do not fit into the processor's caches.
 */
static constexpr double STATEMENT_COST_US = 0.1;

/* With two decimals. */
static double
rounded(double percent) noexcept
{
	return rint(percent * 100) / 100;
}

/*
 * _pressure(by_counting boolean): the row of advisory.pressure.  If by_counting, the use is
 * counted lock by lock.
 */
static Datum
pressure(FunctionCallInfo fcinfo)
{
	PoolState	pool = read_pool(!PG_ARGISNULL(0) && PG_GETARG_BOOL(0));
	int64		guaranteed = pool.size.guaranteed;
	double		percent_used = rounded(pool_percent_used(pool));
	double		of_guaranteed = 100.0 * Max(pool.use.locks, pool.use.holders / 2.0) / guaranteed;
	int			warning = setting::pressure_warning;
	int			critical = setting::pressure_critical;
	int64		recommended = max_locks_per_xact;
	Row			row;

	/* The setting with which the present use would have the status "ok". */
	if (percent_used >= Min(warning, critical))
	{
		int64		processes = MaxBackends + max_prepared_xacts;
		int64		needed = pool_guaranteed_for(pool, Min(warning, critical));

		recommended = (needed + processes - 1) / processes;
	}

	row.add_text(percent_used >= critical ? "critical" : percent_used >= warning ? "warning" : "ok");
	row.add_float8(percent_used);
	row.add_int64(pool.capacity.headroom);
	row.add_int64(pool.use.locks);
	row.add_int64(pool.capacity.locks);
	row.add_int64(guaranteed);
	row.add_float8(rounded(of_guaranteed));
	row.add_int64(pool.use.holders);
	row.add_int64(2 * guaranteed);
	row.add_int32(static_cast<int32>(recommended));
	row.add_bool(pool.is_exact);
	row.add_int64(pool.capacity.holders);

	InitMaterializedSRF(fcinfo, 0);
	row.put(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

static void
show_pressure_by_backend(ReturnSetInfo *result)
{
	PoolTypeUse types[POOL_TYPES];
	PoolSessionUse *sessions;
	int			count;

	read_pool_use(types, &sessions, &count);

	Backends	backends;

	show_each(count, [&](int i) {
		const PoolSessionUse &use = sessions[i];
		bool		is_prepared = use.holder.pid == 0;
		const LocalPgBackendStatus *local = is_prepared ? nullptr : backends.find(use.holder.pid);
		VisibleSession session = backends.of(use.holder);
		int64		session_locks = 0;
		Row			row;

		/*
		 * Outside a transaction all locks of a session are session-level.  Inside one, only
		 * those that it took through this extension are known to be.
		 */
		if (local != nullptr && local->backendStatus.st_state == STATE_IDLE)
			session_locks = use.advisory_locks;
		else if (!is_prepared)
			session_locks = Min(count_session_holds(use.holder.proc_number, use.holder.pid), use.advisory_locks);

		row.add(Int32GetDatum(use.holder.pid), is_prepared);
		row.add_text(session.role);
		row.add_text(session.application);
		row.add_text(session.state);
		row.add_int64(use.locks);
		row.add_int64(use.advisory_locks);
		row.add_int64(session_locks);
		row.add_interval(static_cast<int64>(rint(session_locks * STATEMENT_COST_US)));
		row.add_text(session.gid);
		row.put(result);
	});
}

static void
show_pressure_by_type(ReturnSetInfo *result)
{
	PoolTypeUse types[POOL_TYPES];
	PoolSessionUse *sessions;
	int			count;

	read_pool_use(types, &sessions, &count);
	for (int type = 0; type < POOL_TYPES; type++)
	{
		Row			row;

		if (types[type].holders == 0)
			continue;
		row.add_text(GetLockNameFromTagType(static_cast<uint16>(type)));
		row.add_int64(types[type].locks);
		row.add_int64(types[type].holders);
		row.put(result);
	}
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
