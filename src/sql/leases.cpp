/*
 * sql/leases.cpp
 *		SQL: leases.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/acquire.h"
#include "core/await.h"
#include "core/errors.h"
#include "core/lease.h"
#include "server/backends.h"
#include "base/sqlfunction.h"

namespace advisory
{

/* The row (token, expires_at); with nulls if the lease was not granted. */
static Datum
lease_row(FunctionCallInfo fcinfo, const LockRequest &request, bool is_granted)
{
	Datum		values[] = {Int64GetDatum(request.lease->token), TimestampTzGetDatum(request.lease->expires_at)};
	bool		nulls[] = {!is_granted, !is_granted};

	return HeapTupleGetDatum(result_row(fcinfo, values, nulls));
}

/*
 * A ttl or lock_delay, in microseconds.  A day has 24 hours, so that its length does not depend on
 * the session's time zone.
 */
static int64
lease_length_argument(FunctionCallInfo fcinfo, int arg, const char *what, bool may_be_zero)
{
	int64		length = microseconds_argument(fcinfo, arg, what, may_be_zero, "Use days or smaller units.");

	if (length > LONGEST_LEASE_DAYS * USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("%s is out of range", what),
				 errdetail("It can be at most " INT64_FORMAT " days.", LONGEST_LEASE_DAYS)));
	return length;
}

/* A request for the lease of a name.  Its lock counts for the guard of the lock table. */
static LockRequest
lease_argument(FunctionCallInfo fcinfo, By by)
{
	auto	   *lease = static_cast<Lease *>(palloc0(sizeof(Lease)));
	LockRequest request = {lock_argument(fcinfo, by), Mode::exclusive, Scope::transaction, 0, lease};

	check_kept_name(request.name, "lease");
	check_pool_limit(request);
	return request;
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

/* (namespace, name, ttl, timeout, owner, lock_delay, OUT token, OUT expires_at) */
template <By by>
static LockRequest
lease_arguments(FunctionCallInfo fcinfo)
{
	constexpr int ttl = next_argument(by);
	LockRequest request = lease_argument(fcinfo, by);
	Lease	   *lease = request.lease;

	lease->ttl = lease_length_argument(fcinfo, ttl, "ttl", false);
	lease->owner = owner_argument(fcinfo, ttl + 2);
	lease->lock_delay = lease_length_argument(fcinfo, ttl + 3, "lock_delay", true);
	return request;
}

template <By by, OnFailure on_failure>
static Datum
lease(FunctionCallInfo fcinfo)
{
	LockRequest request = lease_arguments<by>(fcinfo);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	Outcome		outcome;

	lease_check_can_change(on_failure == OnFailure::raise ? "advisory.lease()" : "advisory.try_lease()");
	outcome = lease_take(request, timeout);
	if (on_failure == OnFailure::raise && outcome != Outcome::granted)
		raise_not_available(request, outcome, timeout);
	return lease_row(fcinfo, request, outcome == Outcome::granted);
}

template <By by>
static Datum
await_lease(FunctionCallInfo fcinfo)
{
	LockRequest request = lease_arguments<by>(fcinfo);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	Outcome		outcome;

	lease_check_can_change("advisory.await_lease()");
	release_snapshots(request.name, "await_lease");
	outcome = without_vxid_lock([&]() { return lease_take(request, timeout); });
	EnsurePortalSnapshotExists();
	if (outcome != Outcome::granted)
		raise_not_available(request, outcome, timeout);
	return lease_row(fcinfo, request, true);
}

template <By by>
static Datum
renew(FunctionCallInfo fcinfo)
{
	constexpr int ttl = next_argument(by) + 1;
	LockName	name = lease_argument(fcinfo, by).name;
	int64		token = token_argument(fcinfo, next_argument(by));
	int64		new_ttl = PG_ARGISNULL(ttl) ? 0 : lease_length_argument(fcinfo, ttl, "ttl", false);
	TimestampTz expires_at = lease_renew(name, token, new_ttl);

	if (expires_at == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(expires_at);
}

template <By by>
static Datum
end_lease(FunctionCallInfo fcinfo)
{
	LockName	name = lease_argument(fcinfo, by).name;

	PG_RETURN_BOOL(lease_end(name, token_argument(fcinfo, next_argument(by))));
}

template <By by>
static Datum
break_lease(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(lease_end(lease_argument(fcinfo, by).name, ANY_TOKEN));
}

template <By by>
static Datum
check_lease(FunctionCallInfo fcinfo)
{
	LockName	name = lease_argument(fcinfo, by).name;

	lease_check(name, token_argument(fcinfo, next_argument(by)));
	PG_RETURN_BOOL(true);
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_lease, lease, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_lease, lease, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_lease, await_lease);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_renew_lease, renew);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_end_lease, end_lease);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_break_lease, break_lease);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_check_lease, check_lease);

}								/* namespace advisory */
