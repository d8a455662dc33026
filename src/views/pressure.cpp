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
#include "views/pressure.h"
#include "shmem/heldread.h"
#include "base/srf.h"

namespace advisory
{

/*
 * What a session-level lock costs its session at the end of each transaction, when the server
 * looks at every lock that the session has: measured between 0.02 us (1,000 locks) and
 * 0.2 us (100,000) each, as the processor's caches hold them or not.
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
	if (percent_used >= pressure_critical_setting())
		return "critical";
	return percent_used >= pressure_warning_setting() ? "warning" : "ok";
}

/* The setting by which so much would be in use with the status "ok"; the present one if it is. */
static int32
recommended_setting(const PoolState &pool, double percent_used) noexcept
{
	int64		processes = MaxBackends + max_prepared_xacts;
	int			limit = Min(pressure_warning_setting(), pressure_critical_setting());

	if (percent_used < limit)
		return max_locks_per_xact;
	return static_cast<int32>((pool_guaranteed_for(pool.size, pool.capacity, pool.use, limit) + processes - 1) / processes);
}

void
show_pressure(ReturnSetInfo *result, bool by_counting)
{
	PoolState	pool = read_pool(by_counting);
	int64		guaranteed = pool.size.guaranteed;
	double		percent_used = rounded(pool_percent_used(pool.capacity, pool.use));
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
 * Outside a transaction all that a session holds is session-level; in one, what it took
 * through this extension is known.
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

void
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

void
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

}								/* namespace advisory */
