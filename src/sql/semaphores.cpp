/*
 * sql/semaphores.cpp
 *		SQL: taking and giving back slots of semaphores.
 *
 * The number of slots takes the place of a lock function's timeout, and the timeout follows it.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/await.h"
#include "core/release.h"
#include "base/sqlfunction.h"

namespace advisory
{

template <By by>
static LockRequest
slot_request(FunctionCallInfo fcinfo, Scope scope)
{
	return LockRequest{lock_argument(fcinfo, by), Mode::exclusive, scope,
					   slot_number_argument(fcinfo, next_argument(by), "slots")};
}

template <By by, Scope scope, OnFailure on_failure>
static Datum
acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, scope);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	int			slot;

	check_scope(fcinfo, scope);
	if (on_failure == OnFailure::raise)
		PG_RETURN_INT32(lock_must(request, timeout));
	if (!lock_try(request, timeout, &slot))
		PG_RETURN_NULL();
	PG_RETURN_INT32(slot);
}

template <By by>
static Datum
await_acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, Scope::session);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);

	check_scope(fcinfo, Scope::session);
	return row_made_first<int32>(fcinfo, [&]() {
		return await_lock(request, timeout, get_func_name(fcinfo->flinfo->fn_oid));
	});
}

template <By by>
static Datum
release(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);
	int			slot = NO_SLOT;

	if (!PG_ARGISNULL(next_argument(by)))
		slot = slot_number_argument(fcinfo, next_argument(by), "slot");
	PG_RETURN_BOOL(slot_release(name, slot));
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_acquire, acquire, Scope::session, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_xact_acquire, acquire, Scope::transaction, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_acquire, acquire, Scope::session, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_xact_acquire, acquire, Scope::transaction, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_acquire, await_acquire);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_release, release);

}								/* namespace advisory */
