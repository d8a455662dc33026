/*
 * sql/leases.cpp
 *		SQL: taking, renewing, ending and checking a lease.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/await.h"
#include "core/notavailable.h"
#include "core/lease.h"
#include "server/backends.h"
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
 * (namespace, name, ttl, timeout, owner, lock_delay, max_hold, OUT token, OUT expires_at); for a
 * slot (namespace, name, slots, ttl, timeout, owner, max_hold, OUT slot, OUT token, OUT expires_at,
 * OUT remaining).  Nulls if nothing was granted.
 */
template <By by, bool is_slot, OnFailure on_failure, bool awaits = false>
static Datum
lease(FunctionCallInfo fcinfo)
{
	constexpr int ttl = next_argument(by) + is_slot;
	constexpr int max_hold = is_slot ? ttl + 3 : ttl + 4;
	bool		raises = on_failure == OnFailure::raise;
	const char *function = psprintf("%slease%s", awaits ? "await_" : raises ? "" : "try_",
									is_slot ? "_slot" : "");
	Lease		lease = {lease_name_argument(fcinfo, by)};
	Interval	remaining = {};
	Timeout		timeout;
	auto		take = [&]() { return lease_take(&lease, timeout); };
	Outcome		outcome;

	if (is_slot)
		lease.wanted.slots = slot_number_argument(fcinfo, ttl - 1, "slots");
	lease.wanted.ttl = microseconds_argument(fcinfo, ttl, "ttl");
	lease.wanted.owner = owner_argument(fcinfo, ttl + 2);
	if (!is_slot)
		lease.wanted.lock_delay = microseconds_argument(fcinfo, ttl + 3, "lock_delay", true);
	if (!PG_ARGISNULL(max_hold))
		lease.wanted.max_hold = microseconds_argument(fcinfo, max_hold, "max_hold");
	timeout = timeout_argument(fcinfo, ttl + 1);

	lease_check_can_change(psprintf("advisory.%s()", function));
	if (awaits)
	{
		NameHandle	asked = release_snapshots(lease.name, function);

		outcome = without_vxid_lock(take);
		name_end(asked);
		EnsurePortalSnapshotExists();
	}
	else
		outcome = take();
	if (raises && outcome != Outcome::granted)
		raise_lease_not_available(lease.name, lease.wanted.slots, outcome, timeout);
	remaining.time = Max(lease.wanted.ends_at - GetCurrentTimestamp(), 0);

	bool		is_null = outcome != Outcome::granted;
	Datum		values[] = {Int32GetDatum(lease.wanted.slot), Int64GetDatum(lease.wanted.token),
		TimestampTzGetDatum(lease.wanted.ends_at), IntervalPGetDatum(&remaining)};
	bool		nulls[] = {is_null, is_null, is_null, is_null};
	int			first = is_slot ? 0 : 1;

	return HeapTupleGetDatum(result_row(fcinfo, values + first, nulls + first));
}

template <By by>
static Datum
is_leased(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(lease_count_held(lease_name_argument(fcinfo, by).key, false) > 0);
}

template <By by>
static Datum
leased_slots(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT32(lease_count_held(lease_name_argument(fcinfo, by).key, true));
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

ADVISORY_SQL_NAME_FUNCTIONS(advisory_lease, lease, false, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_lease, lease, false, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_lease, lease, false, OnFailure::raise, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_lease_slot, lease, true, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_lease_slot, lease, true, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_lease_slot, lease, true, OnFailure::raise, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_is_leased, is_leased);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_leased_slots, leased_slots);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_renew_lease, renew);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_end_lease, end_lease, false);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_break_lease, end_lease, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_check_lease, check_lease);

}								/* namespace advisory */
