/*
 * sql/leases.cpp
 *		SQL: leases, and the rows of advisory.leases, from which advisory.activity has them, too.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/acquire.h"
#include "core/await.h"
#include "core/errors.h"
#include "core/lease.h"
#include "server/backends.h"
#include "views/visiblename.h"
#include "base/sqlfunction.h"

namespace advisory
{

static LockName
lease_name_argument(FunctionCallInfo fcinfo, By by)
{
	LockName	name = lock_argument(fcinfo, by);

	check_kept_name(name, "lease");
	return name;
}

/* The name that an owner gives itself; by default role@application. */
static const char *
owner_argument(FunctionCallInfo fcinfo, int arg)
{
	if (PG_ARGISNULL(arg))
		return own_description();

	std::string_view owner = text_argument(fcinfo, arg, "owner");

	check_bytes(owner, "owner", "lease", LEASE_OWNER_BYTES);
	return to_cstring(owner);
}

/*
 * (namespace, name, ttl, timeout, owner, lock_delay, OUT token, OUT expires_at), with nulls if the
 * lease was not granted.
 */
template <By by, OnFailure on_failure, bool awaits = false>
static Datum
lease(FunctionCallInfo fcinfo)
{
	constexpr int ttl = next_argument(by);
	bool		raises = on_failure == OnFailure::raise;
	Lease		lease = {lease_name_argument(fcinfo, by)};
	Timeout		timeout;
	auto		take = [&]() { return lease_take(&lease, timeout); };
	Outcome		outcome;

	lease.wanted.ttl = microseconds_argument(fcinfo, ttl, "ttl");
	lease.wanted.owner = owner_argument(fcinfo, ttl + 2);
	lease.wanted.lock_delay = microseconds_argument(fcinfo, ttl + 3, "lock_delay", true);
	timeout = timeout_argument(fcinfo, ttl + 1);

	/* Only here: who has a lease can always renew, check and end it. */
	check_pool_limit(lease.name);
	lease_check_can_change(awaits ? "advisory.await_lease()"
						   : raises ? "advisory.lease()" : "advisory.try_lease()");
	if (awaits)
	{
		release_snapshots(lease.name, "await_lease");
		outcome = without_vxid_lock(take);
		EnsurePortalSnapshotExists();
	}
	else
		outcome = take();
	if (raises && outcome != Outcome::granted)
		raise_lease_not_available(lease.name, outcome, timeout);

	bool		is_null = outcome != Outcome::granted;
	Datum		values[] = {Int64GetDatum(lease.wanted.token),
		TimestampTzGetDatum(lease.wanted.ends_at)};
	bool		nulls[] = {is_null, is_null};

	return HeapTupleGetDatum(result_row(fcinfo, values, nulls));
}

template <By by>
static Datum
renew(FunctionCallInfo fcinfo)
{
	constexpr int ttl = next_argument(by) + 1;
	LockName	name = lease_name_argument(fcinfo, by);
	int64		token = token_argument(fcinfo, next_argument(by));
	int64		new_ttl = PG_ARGISNULL(ttl) ? 0 : microseconds_argument(fcinfo, ttl, "ttl");
	TimestampTz expires_at = lease_renew(name, token, new_ttl);

	if (expires_at == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(expires_at);
}

/* end_lease(namespace, name, token); break_lease(), which takes any token for null */
template <By by, bool breaks>
static Datum
end_lease(FunctionCallInfo fcinfo)
{
	constexpr int token = next_argument(by);
	LockName	name = lease_name_argument(fcinfo, by);

	PG_RETURN_BOOL(lease_end(name, breaks && PG_ARGISNULL(token)
							 ? ANY_TOKEN : token_argument(fcinfo, token), breaks));
}

template <By by>
static Datum
check_lease(FunctionCallInfo fcinfo)
{
	LockName	name = lease_name_argument(fcinfo, by);

	lease_check(name, token_argument(fcinfo, next_argument(by)));
	PG_RETURN_BOOL(true);
}

/* lease_rows(only_one, wanted_key): the lease with this key, or all that are shown */
static Datum
lease_rows(FunctionCallInfo fcinfo)
{
	auto	   *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	TimestampTz now = GetCurrentTimestamp();
	int			count = 1;
	const LeaseRow *leases = !PG_GETARG_BOOL(0) ? lease_rows_read(&count)
		: PG_ARGISNULL(1) ? nullptr : lease_row_read_now(Key{PG_GETARG_INT64(1)});

	InitMaterializedSRF(fcinfo, 0);
	if (leases == nullptr)
		return Datum(0);
	show_each(count, [&](int i) {
		const LeaseRow &lease = leases[i];
		bool		is_visible = may_see_role(lease.role);
		Row			row;

		row.add_text(is_visible ? lease.ns : HIDDEN);
		row.add_text(is_visible ? lease.name : HIDDEN);
		row.add_text(is_visible ? lease.owner : HIDDEN);
		row.add(Int64GetDatum(lease.token), !lease.is_mine());
		row.add_text(lease.state_at(now));
		row.add_interval(lease.ttl);
		row.add_time(lease.acquired_at);
		row.add_time(lease.renewed_at);
		row.add_time(lease.ends_at);
		row.add_interval(Max(lease.ends_at - now, 0));
		row.add_int64(lease.renewals);
		/*
		 * The key of a name that can be guessed tells the name, and no lock in pg_locks shows it.
		 */
		row.add(Int64GetDatum(lease.key.value), !is_visible);
		row.add_text(is_visible ? join_name(lease.ns, lease.name) : HIDDEN);
		row.put(result);
	});
	return Datum(0);
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_lease, lease, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_lease, lease, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_lease, lease, OnFailure::raise, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_renew_lease, renew);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_end_lease, end_lease, false);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_break_lease, end_lease, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_check_lease, check_lease);
ADVISORY_SQL_FUNCTION(advisory_leases, lease_rows);

}								/* namespace advisory */
