/*
 * views/pressure.cpp
 *		The rows of advisory.pressure, pressure_by_backend and pressure_by_type.
 */
#include "base/pg.h"

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

static double
rounded(double percent) noexcept
{
	return rint(percent * 100) / 100;
}

static double
percent_of(int64 part, int64 whole) noexcept
{
	return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

static const char *
status_of(double percent_used) noexcept
{
	if (percent_used >= setting::pressure_critical)
		return "critical";
	return percent_used >= setting::pressure_warning ? "warning" : "ok";
}

/* The setting with which the present use would have the status "ok". */
static int32
recommended_setting(const PoolState &pool, double percent_used) noexcept
{
	int64		processes = MaxBackends + max_prepared_xacts;
	int			limit = Min(setting::pressure_warning, setting::pressure_critical);

	if (percent_used < limit)
		return max_locks_per_xact;
	return static_cast<int32>((pool_guaranteed_for(pool, limit) + processes - 1) / processes);
}

/* Add the row of advisory.pressure.  If by_counting, the use is counted lock by lock. */
static void
show_pressure(ReturnSetInfo *result, bool by_counting)
{
	PoolState	pool = read_pool(by_counting);
	int64		guaranteed = pool.size.guaranteed;
	double		percent_used = rounded(pool_percent_used(pool));
	double		of_guaranteed = Max(percent_of(pool.use.locks, guaranteed), percent_of(pool.use.holders, 2 * guaranteed));
	Row			row;

	row.add_text(status_of(percent_used));
	row.add_float8(percent_used);
	row.add_int64(pool.capacity.headroom);
	row.add_int64(pool.use.locks);
	row.add_int64(pool.capacity.locks);
	row.add_int64(guaranteed);
	row.add_float8(rounded(of_guaranteed));
	row.add_int64(pool.use.holders);
	row.add_int64(2 * guaranteed);
	row.add_int32(recommended_setting(pool, percent_used));
	row.add_bool(pool.is_exact);
	row.add_int64(pool.capacity.holders);
	row.put(result);
}

/*
 * Outside a transaction all locks of a session are session-level.  Inside one, only
 * those that it took through this extension are known to be.
 */
static int64
session_locks_of(const PoolSessionUse &use, const LocalPgBackendStatus *status)
{
	if (use.holder.pid == 0)
		return 0;
	if (status != nullptr && status->backendStatus.st_state == STATE_IDLE)
		return use.advisory_locks;
	return Min(count_session_holds(use.holder.proc_number, use.holder.pid), use.advisory_locks);
}

static Datum
cost_of(int64 session_locks)
{
	auto	   *cost = static_cast<Interval *>(palloc0(sizeof(Interval)));

	cost->time = static_cast<TimeOffset>(rint(session_locks * STATEMENT_COST_US));
	return IntervalPGetDatum(cost);
}

namespace
{

class UseByBackend
{
public:
	explicit UseByBackend(ReturnSetInfo *result) : result(result), prepared(prepared_xacts(&prepared_count))
	{
	}

	void		show(const PoolSessionUse &use);

private:
	ReturnSetInfo *result;
	Backends	backends;
	int			prepared_count = 0;
	PreparedXact *prepared;
};

}								/* anonymous namespace */

void
UseByBackend::show(const PoolSessionUse &use)
{
	const LocalPgBackendStatus *status = use.holder.pid != 0 ? backends.find(use.holder.pid) : nullptr;
	const PreparedXact *xact = use.holder.pid == 0 ? find_prepared(prepared, prepared_count, use.holder.xid) : nullptr;
	int64		session_locks = session_locks_of(use, status);
	Row			row;

	if (use.holder.pid != 0)
		row.add_int32(use.holder.pid);
	else
		row.add_null();
	row.add_text(role_name(xact != nullptr ? xact->owner : use.holder.role));
	row.add_text(status != nullptr ? status->backendStatus.st_appname : nullptr);
	row.add_text(status != nullptr && may_see_role(status->backendStatus.st_userid)
				 ? state_name(status->backendStatus.st_state) : nullptr);
	row.add_int64(use.locks);
	row.add_int64(use.advisory_locks);
	row.add_int64(session_locks);
	row.add(cost_of(session_locks));
	row.add_text(xact != nullptr ? xact->gid : nullptr);
	row.put(result);
}

static void
show_pressure_by_backend(ReturnSetInfo *result)
{
	PoolTypeUse types[POOL_TYPES];
	PoolSessionUse *sessions;
	int			count;

	read_pool_use(types, &sessions, &count);

	UseByBackend rows(result);

	show_each(count, [&](int i) {
		rows.show(sessions[i]);
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

/* ---- SQL ---- */

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
